"""What pages show beside forms and answers: their frame, the budget, the history, the plan and the audit log.

All of it is worked out from what was released, from public parameters and from the audit log, which holds no values.
Called by the routes; what a function gives as a dictionary is named by a template.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import Response

from tacit.model.answer import says_words
from tacit.model.budget import Loss, percent_of, percent_words
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.residuals import Residuals
from tacit.model.sql.spelling import column, span
from tacit.model.statistic_check import offered
from tacit.model.status import rows_in_words
from tacit.model.workload import Marginal
from tacit.questions import Questions
from tacit.replies import QuotaLine
from tacit.serve.endpoint import Call
from tacit.serve.key import Key
from tacit.serve.page.answer import PANEL_WIDTH, number
from tacit.serve.page.form import FORM_KINDS, Forms
from tacit.serve.page.link import fields_of, retold, without, words
from tacit.serve.refusal import Refusal
from tacit.serve.served_data import ServedData
from tacit.serve.server import Server
from tacit.serve.work import picture_work
from tacit.session import Session
from tacit.show.chart import Gauge
from tacit.show.chart.paint import COLOUR_ROLES, CSS, FONT, Picture, clean
from tacit.show.events import Event, SpendingTally, latest, pictures, single, spending
from tacit.show.pages import drawn, environment
from tacit.show.report import expectation, odds
from tacit.show.streams import has_arrow

# Scripts and styles from this server alone, none inside a page. A form goes nowhere else, and nobody may frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    # With no-referrer a browser would send its forms with "Origin: null", which tells them from no other site's.
    "referrer-policy": "same-origin",
}
_PAGE = 50  # lines
MOST_NOTED = 10_000  # of the newest lines of the audit log that are looked through
MOST_ENTRY_PICTURES = 30  # of one entry of the ledger
T = TypeVar("T")
# What a series protects, after "every single row" or "every person": see `SeriesTerms.protects`.
WHERE = {
    "row": "",
    "person within a block": " of a block, in each block by itself",
    "person over blocks": " of a block, over all blocks together",
}
_NEARLY_NOTHING = 1e-6  # of the budget: nothing that anybody could buy
ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True)
class Location:
    """Where a reader is: whose key, which data set (none before one is chosen), and which of its pages."""

    key: Key | None = None
    dataset: str = ""
    page: str = ""
    several: bool = False

    @property
    def address(self) -> str:
        return f"/data/{self.dataset}"

    def entry(self, receipt: Receipt) -> str:
        """The address of what stands in the ledger."""
        return f"{self.address}/entry/{receipt.entry}-{receipt.seal[:12]}"

    @property
    def pages(self) -> list[tuple[str, str, bool]]:
        """The pages that this key may open, in the order of the navigation: name, address, and whether it is here."""
        owner = self.key is not None and self.key.role == "owner"
        kept = self.key is None or not self.key.is_visitor
        own = [("Ask", ""), *([("Questions", "questions")] if kept else []), ("History", "history"), ("Plan", "plan")]
        own += [("Audit log", "audit")] if owner else []
        found = [(name, f"{self.address}/{page}".rstrip("/"), page == self.page) for name, page in own]
        keys = [("Keys", "/keys", self.page == "keys")] if owner else []
        return [*(found if self.dataset else [("Data sets", "/", self.page == "")]), *keys]


def place_of(call: Call, page: str = "") -> Location:
    """Where whoever calls is."""
    return Location(call.key, call.about.name, page, len(call.server.datasets) > 1)


def page(template: str, place: Location, status: int = 200, **words: Any) -> Response:
    """The page of a template. `words` are what the template names."""
    text = _templates().get_template(template).render(place=place, **words)
    return Response(text, status, _HEADERS, media_type="text/html")


def refused_page(refusal: Refusal, place: Location) -> Response:
    """A page with nothing but a refusal."""
    return page("refused.html", place, refusal.status, refusal=refusal)


def picture(chart: Picture, name: str) -> Markup:
    """A picture that stands below its title on the page, and is called so by those who hear it."""
    broad = " broad" if getattr(chart, "width", 0) >= PANEL_WIDTH and not isinstance(chart, Gauge) else ""
    return Markup('<figure class="chart{}">{}</figure>').format(broad, drawn(chart, name, styled=False))


@cache
def asset(name: str) -> bytes:
    """A file that pages load. The style begins with the colours of the charts, and their rules."""
    text = files("tacit.serve.page").joinpath("static", name).read_text(encoding="utf-8")
    if name == "page.css":
        text = f"{_colours()}{CSS}\n{text}"
    return text.encode()


@cache
def address(name: str) -> str:
    """Where a file is; a new version has a new address, so that browsers may keep it."""
    return f"/page/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


@cache
def _templates() -> Environment:
    made = environment("tacit.serve.page", styled=False)
    made.filters |= {"picture": picture, "capital": lambda words: words[:1].upper() + words[1:]}
    made.globals |= {"address": address, "column": column, "span": span, "kinds": FORM_KINDS, "offered": offered}
    made.globals["has_arrow"] = has_arrow
    return made


def _colours() -> str:
    def values(which: int) -> str:
        return ":root{" + "".join(f"--{role}:{both[which]};" for role, both in COLOUR_ROLES.items()) + "}"

    return f"{values(0)}\n@media (prefers-color-scheme:dark){{{values(1)}}}\nbody{{font-family:{FONT}}}\n"


def about(dataset: ServedData) -> dict[str, Any]:
    """What a data set is and who is protected: the owner's words, and public parameters."""
    session, said = dataset.session, dataset.about
    many, row = session.rows_per_person, said.get("row", "")
    protected = (
        f"Protected: every single row{f', which is {row}' if row else ''}"
        if many == 1
        else f"Protected: every person, with up to {many:,} rows{f', each of which is {row}' if row else ''}"
    )
    within, where = "", ""
    if not isinstance(session, Session):
        within = f" in {len(session.blocks):,} blocks"
        where = WHERE[session.terms.protects]
    facts = [("Source", said.get("source")), ("Licence", said.get("licence"))]
    return {
        "name": dataset.name,
        "title": said.get("title") or dataset.name,
        "text": said.get("text", ""),
        "size": f"{rows_in_words(session.rows, session.rows_per_person)}{within}, {len(session.domain):,} columns",
        "row": row or "one row",
        "protected": f"{protected}{where}.",
        "facts": [(name, words) for name, words in facts if words],
        "started": session.started,
    }


def conditions(asked: Forms, domain: Domain) -> list[dict[str, Any]]:
    """The conditions as chips: words, the link that takes each away, and whether it is being made."""
    names = dict.fromkeys([*(name for name in domain if name in asked.built.narrowed), *filter(None, [asked.adding])])
    return [
        {
            "name": name,
            "place": domain.names.index(name),
            "words": words(asked.built, name, domain),
            "without": urlencode(list(fields_of(without(asked.built, name), domain))),
            "open": name == asked.adding,
        }
        for name in names
    ]


def entry_work(event: Event) -> int:
    """What it takes to draw an entry of the ledger."""
    if not isinstance(event.answer, Measured):
        return 0
    return picture_work(event.answer.values.size, curved=not isinstance(event.answer.question, Marginal | Residuals))


def entry(event: Event, session: Session, *, drawn: bool) -> dict[str, Any]:
    """One thing that was bought or told, and if wanted with what can be drawn of it."""
    shown = pictures(event, session) if drawn else ()
    drawn_ones = [(one.question, replace(one.chart(), note="", width=PANEL_WIDTH)) for one in shown]
    return {
        "event": event,
        "told": _told(event, session),
        "cost": percent_of(event.cost, session.total) if event.cost.atoms else "",
        "drawn": drawn_ones[:MOST_ENTRY_PICTURES],
        "too_large": not drawn,
    }


def plan(dataset: ServedData) -> dict[str, Any]:
    """The mechanism and why, what to expect of it, and what is promised: from public parameters."""
    session = dataset.table(dataset.newest)
    size = f"{session.rows:,} rows, {len(session.domain)} attributes, {session.domain.size:,} cells"
    which = f"Every block has a budget of its own. In {dataset.newest}, the newest: " if dataset.newest else ""
    return {
        "about": f"{which}{size}; {session.budget}.",
        "expected": _once(dataset, "plan", dataset.newest, lambda: expectation(session)),  # it takes a moment
        "session": session,
        "odds": odds(session),
    }


def budget(dataset: ServedData, quota: QuotaLine | None) -> dict[str, Any]:
    """The one budget: what is left, what was bought, and a quota if the key has one."""
    now = dataset.session.status()
    total, spent = now.total.atoms, now.spent.atoms
    gauge = _once(dataset, "gauge", (spent, total), lambda: _gauge(dataset))
    used = 0.0
    if quota is not None:
        used, most = (next(iter(part.values())) for part in (quota.used, quota.of))
        used = min(1.0, used / most) if most else 1.0
    return {
        "left": 1 - min(1.0, spent / total),
        "finished": total - spent < _NEARLY_NOTHING * total,
        "now": now,
        "gauge": gauge,
        "reserved": any(name == "reserved" for name, _ in gauge.parts),
        "quota": quota,
        "quota_used": used,
    }


def _once(dataset: ServedData, name: str, at: object, make: Callable[[], T]) -> T:
    """What need not be worked out again while what it depends on is the same: what is spent, and out of how much."""
    known = dataset.shown.get(name)
    if known is None or known[0] != at:
        known = dataset.shown[name] = at, make()
    found: T = known[1]
    return found


def _gauge(dataset: ServedData) -> Gauge:
    if dataset.newest:  # of the block that has spent most
        now = dataset.session.status()
        return Gauge(
            "", [("spent", 100 * now.spent.atoms / now.total.atoms)], 100, "% of the budget", width=PANEL_WIDTH
        )
    session = dataset.table()
    with dataset.shown_lock:  # the tally goes on from where it was
        tally = dataset.shown.setdefault("tally", (0, SpendingTally()))[1].catch_up(session)
    parts = [(n, 100 * cost.atoms / session.total.atoms) for n, _, cost in spending(tally, session)]
    whole = max(100.0, sum(size for _, size in parts))  # spent meanwhile
    return Gauge("", parts, whole, "% of the budget", width=PANEL_WIDTH)


def history(
    session: Session, who: Mapping[int, str] | None, before: int, place: Location, *, free: bool
) -> dict[str, Any]:
    """What was bought, and if wanted what was told for nothing; newest first, in pages. `who` is for the owner."""
    newest = latest(session, _PAGE + 1, before, free=free)
    shown = newest[:_PAGE]
    rows = [
        [
            str(event.receipt.entry),
            Markup('<a href="{}">{}</a>').format(place.entry(event.receipt), clean(event.question)),
            _told(event, session),
            percent_of(event.cost, session.total) if event.cost.atoms else "free",
            event.receipt.seal[:12],
            *([] if who is None else [who.get(event.receipt.entry, "")]),
        ]
        for event in shown
    ]
    return {
        "head": ["entry", "question", "answer", "of the budget", "seal", *([] if who is None else ["who"])],
        "rows": rows,
        "free": free,
        "free_ones": session.told,
        "before": before,
        "older": shown[-1].receipt.entry if len(newest) > _PAGE else None,
    }


def audit(records: Sequence[Mapping[str, Any]], session: Questions, address: str) -> list[list[str]]:
    """Who asked what, newest first. The log holds no values."""
    total, domain = session.total, session.domain
    return [
        [
            _time(record),
            str(record.get("who", "")),
            str(record.get("role", "")),
            _asked(record, domain, address),
            _outcome(record, total),
            str(record.get("entry", "")),
        ]
        for record in records
    ]


def mine(
    records: Sequence[Mapping[str, Any]], name: str, session: Questions, address: str, most: int
) -> list[list[str]]:
    """What a name has asked, newest first, each question once, and at most `most` of them."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in records:
        if record.get("who") == name and record.get("asked") and len(found) < most:
            found.setdefault(record["asked"], record)
    domain, total = session.domain, session.total
    return [[_time(one), _asked(one, domain, address), _outcome(one, total)] for one in found.values()]


def _time(record: Mapping[str, Any]) -> str:
    return str(record.get("time", "")).replace("T", " ")[:19]


def _asked(record: Mapping[str, Any], domain: Domain, address: str) -> Markup | str:
    """A question in words or in SQL, which leads to its answer; a line from before these were kept has its key."""
    text = clean(str(record.get("asked", "")))
    if not text:
        many = f"{record['questions']:,} questions" if "questions" in record else ""
        return str(record.get("question", ""))[:16] or many
    told, query = retold(text, domain)
    return Markup('<a href="{}?{}"><code>{}</code></a>').format(address, query, told) if query else told


def keys(server: Server) -> list[dict[str, Any]]:
    """Every key, those in use first, with what each has spent of each budget."""
    found = []
    for key in server.ring.all():
        spent = [(name, one.spent_by(key), one.session.total) for name, one in sorted(server.datasets.items())]
        said = [f"{name} {percent_of(loss, total)}" for name, loss, total in spent if loss.atoms]
        found.append({"key": key, "spent": ", ".join(said) or "nothing"})
    return sorted(found, key=lambda one: one["key"].revoked is not None)


def askers(dataset: ServedData) -> dict[int, str]:
    """Who asked for each entry, as far back as the audit log's newest lines go."""
    found: dict[int, str] = {}
    for record in dataset.noted(MOST_NOTED):  # newest first: the first to ask has the last word
        if "entry" in record and "who" in record:
            found[int(record["entry"])] = str(record["who"])
    return found


def _outcome(record: Mapping[str, Any], total: Loss) -> str:
    cost = record["cost"].values() if isinstance(record.get("cost"), Mapping) else ()
    paid = ", ".join(f"{percent_words(100 * float(amount) / float(total))} of the budget" for amount in cost)
    if "refused" in record:  # a part of it may have been paid for
        return f"refused: {record['refused']}" + (f", after {paid}" if paid else "")
    if paid:
        return paid
    return "free" if record.get("free") == 1 else f"{record.get('free', 0):,} free"


def _told(event: Event, session: Session) -> str:
    found = single(event, session)
    if found is not None:
        bar = "" if found.error is None else f" ± {number(found.error)}"
        return f"{number(found.value)}{bar}{says_words(found)}"
    if isinstance(event.answer, Measured):
        what = "table" if isinstance(event.answer.question, Marginal) else "release"
        many = event.answer.values.size
        return f"a {what} of {many:,} number{'s' * (many != 1)}"
    return ""
