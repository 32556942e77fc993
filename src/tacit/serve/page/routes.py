"""The addresses of the pages, and what each does. `run.serve` adds them to the application.

Pages know who is there by the session cookie alone. What acts is a POST, and has to come from one of these pages
(`Logins.check_origin`); what only shows is a GET. Asking goes through the data set's writer, as in the API.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.chart import Gauge
from tacit.model.domain import Domain
from tacit.model.sql import parse
from tacit.reporting import page as report_page
from tacit.reporting.steps import Step, bought_by_kind, steps
from tacit.serve import api
from tacit.serve.api import HISTORY_TOKENS, PUBLISHED_TOKENS, Call
from tacit.serve.dataset import Dataset
from tacit.serve.keys import Key
from tacit.serve.page import answer as shown
from tacit.serve.page import places
from tacit.serve.page.asking import Asked, asking, budget_html, words_of
from tacit.serve.page.builder import question, read_built
from tacit.serve.page.entering import entering
from tacit.serve.page.form import Fields, last, read_form
from tacit.serve.page.layout import Place, message, page, refused_page
from tacit.serve.page.same import same_html
from tacit.serve.question import Given, Question, read
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.state import State, state_of
from tacit.serve.strict import Json

AUDIT_LINES = 100
MOST_AUDIT = 6_400
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)


@dataclass(frozen=True)
class Visit:
    """A request of somebody who is logged in, about a data set if its address names one."""

    request: Request
    state: State
    key: Key
    found: Dataset | None
    fields: Fields
    kept: Kept

    @property
    def about(self) -> Dataset:
        assert self.found is not None
        return self.found

    @property
    def base(self) -> str:
        """This server's address as the browser has it: a proxy may have added TLS."""
        scheme = "https" if self.state.secure else "http"
        return self.request.headers.get("origin") or f"{scheme}://{self.request.headers['host']}"

    def place(self, page: str = "") -> Place:
        return Place(self.key, self.found.name if self.found else "", page, len(self.state.datasets) > 1)


@dataclass
class Kept:
    """What need not be worked out again: each data set's plan, and its gauge until more is spent."""

    plans: dict[str, str] = field(default_factory=dict)
    gauges: dict[str, tuple[int, Gauge]] = field(default_factory=dict)

    def plan(self, dataset: Dataset) -> str:
        if dataset.name not in self.plans:
            self.plans[dataset.name] = places.expectations(dataset.session)
        return places.plan(dataset.session, self.plans[dataset.name])

    def gauge(self, dataset: Dataset) -> Gauge:
        spent = dataset.session.spent.atoms
        known = self.gauges.get(dataset.name)
        if known is None or known[0] != spent:
            session = dataset.session
            parts = [(name, float(cost)) for name, _, cost in bought_by_kind(steps(session), session)]
            whole = max(float(session.total), sum(size for _, size in parts))  # spent meanwhile
            known = spent, Gauge("", parts, whole, session.total.measure, width=shown.WIDTH)
            self.gauges[dataset.name] = known
        return known[1]


Doing = Callable[[Visit], Awaitable[Response]]


def routes(invitations: Mapping[str, str] | None = None) -> list[Route]:
    """All pages. `invitations` are words that log somebody in once, each with its key: /enter/WORD."""
    kept = Kept()

    def at(path: str, do: Doing, method: str = "GET", *, owner: bool = False) -> Route:
        async def serve(request: Request) -> Response:
            return await _serve(request, do, kept, owner=owner)

        return Route(path, serve, methods=[method])

    here = "/data/{dataset}"
    return [
        *entering(invitations or {}),
        at(here, _main),
        at(f"{here}/ask", _main),  # who reloads without the form
        at(f"{here}/ask", _ask, "POST"),
        at(f"{here}/price", _price, "POST"),
        at(f"{here}/words", _words),
        at(f"{here}/history", _history),
        at(f"{here}/plan", _plan),
        at(f"{here}/published", _published),
        at(f"{here}/report", _report),
        at(f"{here}/audit", _audit, owner=True),
    ]


async def _serve(request: Request, do: Doing, kept: Kept, *, owner: bool) -> Response:
    """The same checks in the same order as in the API: who, how often, which data set, the form."""
    state, place = state_of(request), Place()
    try:
        key = state.logins.by_cookie(request)
        if key is None:
            return RedirectResponse("/", 303)
        place = Place(key)
        fields: Fields = []
        if request.method == "POST":
            state.logins.check_origin(request)
        if owner and key.role != "owner":
            raise Refusal(403, "owner_only", "This is for the owner's key.")
        state.traffic.take(key.id)
        with state.traffic.slot(key.id):
            name = request.path_params["dataset"]
            dataset = state.datasets.get(name)
            if dataset is None:
                raise Refusal(404, "no_such_dataset", f"The data sets are {', '.join(sorted(state.datasets))}.")
            place = Place(key, name, "-", len(state.datasets) > 1)
            if request.method == "POST":
                fields = await read_form(request, state)
            return await do(Visit(request, state, key, dataset, fields, kept))
    except ClientDisconnect:
        raise
    except Exception as error:
        return refused_page(refusal_of(error), place)


async def _main(visit: Visit) -> Response:
    return await _show(visit, Asked(), "")


async def _ask(visit: Visit) -> Response:
    """Answer the form, or say what it would cost. A refusal stands where the answer would."""
    session, asked, status = visit.about.session, Asked(), 200
    try:
        asked = await run_in_threadpool(_asked, visit)
        given = await run_in_threadpool(_given, asked, session.domain)
        if asked.clicked:  # the box shows what was clicked
            asked = replace(asked, sql=given if isinstance(given, str) else "")
        parsed = await run_in_threadpool(read, given, session.domain)
        if last(visit.fields, "do") != "ask":  # whoever says nothing spends nothing
            found = await asyncio.wrap_future(visit.about.price(parsed))
            stands = given if asked.clicked and isinstance(given, str) else ""
            panel = shown.price_html(
                found, session.left, session.total, may_spend=visit.key.may_spend, stands_for=stands
            )
        else:
            panel = await run_in_threadpool(_answered, visit, given, await _answer(visit, parsed))
    except ClientDisconnect:
        raise
    except Exception as error:
        refusal = refusal_of(error)
        panel, status = message(refusal), refusal.status
    return await _show(visit, asked, panel, status)


def _asked(visit: Visit) -> Asked:
    if last(visit.fields, "way") == "click":
        return Asked(built=read_built(visit.fields, visit.about.session.domain), clicked=True)
    return Asked(sql=last(visit.fields, "sql"))


def _given(asked: Asked, domain: Domain) -> str | Json:
    """The question that a form asks."""
    if asked.clicked:
        return question(asked.built, domain)
    if not asked.sql.strip():
        raise Refusal(400, "bad_question", "The box is empty: write a statement, or put a question together.")
    return asked.sql.strip()


async def _answer(visit: Visit, parsed: Question) -> Given:
    found = visit.about.ask(visit.key, [parsed])
    (answer,) = await asyncio.wrap_future(found) if isinstance(found, Future) else found
    return answer


def _answered(visit: Visit, given: str | Json, answer: Given) -> str:
    session = visit.about.session
    attribute, most = None, None
    if isinstance(given, str):
        select = parse(given, session.domain)
        most = session.rows if select.is_count else None
        name = select.aggregates[0].name if select.aggregates else ""
        attribute = session.domain[name] if name else None
    body = shown.answer_html(answer, session.total, most=most, attribute=attribute)
    return body + same_html(given, visit.about.name, visit.base)


async def _show(visit: Visit, asked: Asked, panel: str, status: int = 200) -> Response:
    def body() -> str:
        about = visit.about
        gauge, quota = visit.kept.gauge(about), about.quota(visit.key)
        budget = budget_html(about.session, gauge, quota, about.name)
        return asking(about.name, about.session.domain, asked, visit.key, budget, panel)

    return page(visit.about.name, visit.place(), await run_in_threadpool(body), status)


async def _price(visit: Visit) -> Response:
    """For the script: what the form stands for and would cost, as one sentence."""
    told: dict[str, Any] = {"sql": "", "text": "", "level": "free"}
    try:
        asked = await run_in_threadpool(_asked, visit)
        given = await run_in_threadpool(_given, asked, visit.about.session.domain)
        told["sql"] = given if asked.clicked and isinstance(given, str) else ""
        parsed = await run_in_threadpool(read, given, visit.about.session.domain)
        found = await asyncio.wrap_future(visit.about.price(parsed))
        session = visit.about.session
        told["text"] = shown.price_words(found, session.left, session.total, may_spend=visit.key.may_spend)
        if found.cost_at_most.atoms:
            told["level"] = "cost" if found.cost_at_most <= session.left and visit.key.may_spend else "much"
    except ClientDisconnect:
        raise
    except Exception as error:
        told |= {"text": refusal_of(error).sentence, "level": "wrong"}
    return _json(told)


async def _words(visit: Visit) -> Response:
    return _json(await run_in_threadpool(words_of, visit.about.session.domain))


def _json(value: Any) -> Response:
    return Response(json.dumps(value, ensure_ascii=False, allow_nan=False), media_type="application/json")


async def _history(visit: Visit) -> Response:
    visit.state.traffic.take(visit.key.id, HISTORY_TOKENS)
    before = _parameter(visit, "before", 0, 2**53)
    here, free = f"/data/{visit.about.name}/history", "free" in visit.request.query_params

    def body() -> str:
        found: list[Step] = steps(visit.about.session)
        who = places.askers(visit.about) if visit.key.role == "owner" else None
        return places.history(found, visit.about.session, who, before=before, free=free, here=here)

    return page("History", visit.place("history"), await run_in_threadpool(body))


async def _plan(visit: Visit) -> Response:
    visit.state.traffic.take(visit.key.id, HISTORY_TOKENS)
    return page("Plan", visit.place("plan"), await run_in_threadpool(visit.kept.plan, visit.about))


async def _audit(visit: Visit) -> Response:
    limit = _parameter(visit, "limit", AUDIT_LINES, MOST_AUDIT)
    records = await run_in_threadpool(visit.about.audit.last, limit)
    body = places.audit(records, limit, f"/data/{visit.about.name}/audit")
    return page("Audit log", visit.place("audit"), body)


async def _published(visit: Visit) -> Response:
    return await api.published(Call(visit.request, visit.state, visit.key, visit.about, {}, None))


async def _report(visit: Visit) -> Response:
    visit.state.traffic.take(visit.key.id, PUBLISHED_TOKENS)
    name = visit.about.name
    text = await run_in_threadpool(report_page, visit.about.session, name)
    attached = {"content-disposition": f'attachment; filename="{name}.html"'}
    return Response(text, headers=attached, media_type="text/html")


def _parameter(visit: Visit, name: str, unless: int, most: int) -> int:
    text = visit.request.query_params.get(name, "")
    return min(most, int(text)) if _WHOLE.fullmatch(text) else unless
