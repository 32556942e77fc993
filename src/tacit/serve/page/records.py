"""The pages about what is kept: the ledger's entries, the audit log, a key's own questions, keys, plan and report."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from tacit.errors import ConfigError
from tacit.model.block import slug
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.public.work import steps_of
from tacit.serve.endpoint import Call
from tacit.serve.key import DEFAULT_QUOTA, Role
from tacit.serve.page import view
from tacit.serve.page.answer import panel
from tacit.serve.page.dialogue import main, read_question
from tacit.serve.page.form import last, linked
from tacit.serve.page.view import Location, page, place_of
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.work import MAX_WORK, line_work, picture_work, report_work
from tacit.session import Session
from tacit.show.chronicle import Chronicle
from tacit.show.events import Event, latest
from tacit.show.report import page as report_page
from tacit.store.chain import Line

AUDIT_LINES = 100
MOST_AUDIT = 6_400
MOST_TITLE = 100
UNCURVED = ("marginal", "residuals")  # their pictures need no band that is simulated
MOST_KEPT = 8  # blocks whose report is kept
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_PERCENT = re.compile(r"\d{1,3}(\.\d{1,6})?", re.ASCII)


def history(call: Call) -> Response:
    before, free = _parameter(call, "before", 0, 2**53), "free" in call.request.query_params
    block = _block(call)
    who = view.askers(call.about) if call.asker.role == "owner" and not block else None
    place = place_of(call, "history")
    found = view.history(call.about.table(block), who, before, place, free=free)
    session = call.about.session
    others = [] if isinstance(session, Session) else [one for one in session.blocks if one != block]
    return page("history.html", place, **found, block=block, others=others)


async def entry(call: Call) -> Response:
    """One entry of the ledger, at the address that its receipt makes; with a question, what it says of that."""
    found = await run_in_threadpool(_receipt, call)
    if call.request.url.query:
        return await main(call)
    work = view.entry_work(found[0])
    drawn = work <= MAX_WORK
    with call.server.traffic.working(call.asker.id, work if drawn else 0):
        entry = await run_in_threadpool(partial(view.entry, *found, drawn=drawn))
    return page("entry.html", place_of(call, "history"), **entry)


def _receipt(call: Call) -> tuple[Event, Session]:
    """The entry that the address names, if it is one of this ledger, or of one block's."""
    number, _, seal = call.request.path_params["receipt"].partition("-")
    entry = int(number) if _WHOLE.fullmatch(number) else 0
    for session in call.about.tables():
        found = next(iter(latest(session, 1, entry + 1, free=True)), None)
        if found is not None and found.receipt.entry == entry and seal and found.receipt.seal.startswith(seal):
            return found, session
    raise Refusal(404, "no_such_entry", "The ledger has no such entry: the address may be of another ledger.")


def plan(call: Call) -> Response:
    return page("plan.html", place_of(call, "plan"), **view.plan(call.about))


async def report(call: Call) -> Response:
    block = await run_in_threadpool(_block, call)
    name = f"{call.about.name}-{slug(block)}" if block else call.about.name
    attached = {"content-disposition": f'attachment; filename="{name}.html"'}
    reports: Reports = call.about.shown.setdefault("reports", (0, Reports()))[1]
    return Response(await reports.page(call, block, name), headers=attached, media_type="text/html")


def audit(call: Call) -> Response:
    limit = _parameter(call, "limit", AUDIT_LINES, MOST_AUDIT)
    place = place_of(call, "audit")
    rows = view.audit(call.about.noted(limit), call.about.session, place.address)
    return page("audit.html", place, rows=rows, limit=limit)


async def questions(call: Call) -> Response:
    """What a key has saved, with the answers that are known, and what it has asked."""
    board = [
        await _saved(call, title, query) for title, query in call.server.ring.saved(call.about.name, call.asker.name)
    ]

    def make() -> Response:
        place = place_of(call, "questions")
        noted, session = call.about.noted(view.MOST_NOTED), call.about.session
        rows = view.mine(noted, call.asker.name, session, place.address, AUDIT_LINES)
        return page("questions.html", place, board=board, rows=rows)

    return await run_in_threadpool(make)


async def _saved(call: Call, title: str, query: str) -> dict[str, Any]:
    """One card of the board: the answer where it is known. Looking at it is no question."""
    card: dict[str, Any] = {"title": title, "query": query, "answer": None}
    try:
        asked, _, parsed = await read_question(call, linked(parse_qsl(query)))
        found = await asyncio.wrap_future(call.about.writer.do(lambda: call.about.known(parsed.ask, parsed.within)))
        if found is not None:
            built = asked.built if asked.clicked else None
            card["answer"] = await run_in_threadpool(panel, parsed.ask, found, call.about.session, built)
    except Exception as error:  # a card that fails leaves the others alone
        card["refusal"] = refusal_of(error).sentence
    return card


async def save(call: Call) -> Response:
    """Keep a question under a title, or take it away."""
    title, query = " ".join(last(call.body, "title").split()), last(call.body, "question")
    away = last(call.body, "do") == "forget"
    if not title or len(title) > MOST_TITLE or not title.isprintable():
        raise Refusal(400, "bad_title", f"A title has 1 to {MOST_TITLE} letters.")
    if not away:
        await read_question(call, linked(parse_qsl(query)))
    if not call.server.ring.save(call.about.name, call.asker.name, title, None if away else query):
        raise Refusal(409, "too_many", "You have as many saved questions as there may be: take one away first.")
    return RedirectResponse(f"{place_of(call).address}/questions", 303)


def change_keys(call: Call) -> Response:
    """Make a key, which is shown this once, or take one back."""
    from tacit.serve.keys import make_key, revoke_key  # a server of published files has none

    made, refusal = None, None
    try:
        name = last(call.body, "name").strip()
        if last(call.body, "do") == "revoke":
            if name == call.asker.name:
                raise Refusal(409, "own_key", "This is the key that you are here with: nobody could let you in again.")
            revoke_key(call.server.ring.path, name)
        else:
            percent = last(call.body, "quota").strip().removesuffix("%").strip()
            quota = None if not percent else _share(percent)
            made = name, make_key(call.server.ring.path, name, cast(Role, last(call.body, "role")), quota)
    except ConfigError as error:  # of the file of keys: its words are for the owner
        refusal = Refusal(422, "bad_key", error.sentence)
    except Exception as error:
        refusal = refusal_of(error)
    return keys(call, made, refusal)


def keys(call: Call, made: tuple[str, str] | None = None, refusal: Refusal | None = None) -> Response:
    """Every key, with the one that was just made or why none was."""
    place, status = Location(call.key, "", "keys"), 200 if refusal is None else refusal.status
    known = {"usual": DEFAULT_QUOTA, "keys": view.keys(call.server)}
    return page("keys.html", place, status, **known, made=made, refusal=refusal)


def _share(percent: str) -> float:
    if not _PERCENT.fullmatch(percent) or not 0 < float(percent) <= 100:
        raise Refusal(400, "bad_quota", "A quota is a number of per cent, above 0 and at most 100.")
    return float(percent) / 100


def _block(call: Call) -> str:
    """The block that is meant: the newest unless one is named."""
    return call.request.query_params.get("block", "") or call.about.newest


def _parameter(call: Call, name: str, unless: int, most: int) -> int:
    text = call.request.query_params.get(name, "")
    return min(most, int(text)) if _WHOLE.fullmatch(text) else unless


# -- reports -----------------------------------------------------------------------------------------------------------


@dataclass
class KeptReport:
    """The last report about a ledger, as the bytes of its page, and what it was made of.

    `of` is the ledger and its whole budget, of which a report says shares; `entry` the newest one by then.
    """

    of: tuple[str, Loss]
    past: Chronicle
    entry: int = -1
    page: bytes = b""


class Reports:
    """The reports of one data set, one at a time. On the event loop's thread.

    Everything in a report is public, and a function of the ledger: so it is made once for each newest entry, whoever
    asks, and a later one goes on from where the last one was. It is priced before it is begun.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._kept: OrderedDict[str, KeptReport] = OrderedDict()  # by block, the oldest first

    async def page(self, call: Call, block: str, title: str) -> bytes:
        """The report as it is now. Who has left meanwhile is not worked for."""
        async with self._turn:
            if await call.request.is_disconnected():
                raise ClientDisconnect
            session = await run_in_threadpool(call.about.table, block)
            of, entry = await run_in_threadpool(lambda: ((session.origin, session.total), session.entries))
            kept = self._kept.pop(block, None)
            if kept is None or kept.of != of:
                kept = KeptReport(of, Chronicle(_weights, MAX_WORK // 2, MAX_WORK))
            if kept.entry != entry:
                try:
                    kept.page = await _made(call, session, kept.past, entry, title)
                except Refusal:  # before something was begun: what was done before it stays
                    self._keep(block, kept)
                    raise
                kept.entry = entry
            self._keep(block, kept)
            return kept.page

    def _keep(self, block: str, kept: KeptReport) -> None:
        self._kept[block] = kept
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


async def _made(call: Call, session: Session, past: Chronicle, newest: int, title: str) -> bytes:
    traffic, who = call.server.traffic, call.asker.id
    with traffic.working(who, report_work(newest - past.entry)):
        await run_in_threadpool(past.catch_up, session, newest)
    with traffic.working(who, past.work):
        return await run_in_threadpool(lambda: report_page(session, title, past.read(session)).encode())


def _weights(line: Line, kind: str, domain: Domain) -> tuple[int, int]:
    values = line.body.count(",")  # about as many
    return line_work(len(line.body), steps_of(line, domain)), picture_work(values, curved=kind not in UNCURVED)
