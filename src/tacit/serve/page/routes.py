"""The addresses of the pages, and what each does. `run.serve` adds them to the application.

Pages know who is there by the session cookie alone. What acts is a POST, and has to come from one of these pages
(`Logins.check_origin`); what only shows is a GET. Asking goes through the data set's writer, as in the API.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.model.answer import sure_words
from tacit.model.ask import Quantile
from tacit.model.budget import percent_of
from tacit.release.answering import Answers
from tacit.serve.admission import MAX_LOGIN, address_of, check_owner
from tacit.serve.api import (
    HISTORY_TOKENS,
    PUBLISHED_TOKENS,
    Call,
    Server,
    answers,
    outcome,
    published,
    server_of,
    shown,
)
from tacit.serve.dataset import Dataset
from tacit.serve.keys import PREFIX, Key
from tacit.serve.page import view
from tacit.serve.page.answer import drawing, panel, price_words, sharper, ways
from tacit.serve.page.form import Forms, last, question, read_form, read_forms, width, words_of
from tacit.serve.page.link import link, unclicked
from tacit.serve.page.overview import known_tables, listed
from tacit.serve.page.view import ASSETS, Place, address, asset, page, refused_page
from tacit.serve.question import Question, read
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.schema import Json, encode
from tacit.show.events import events
from tacit.show.report import page as report_page

AUDIT_LINES = 100
MOST_AUDIT = 6_400
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_HERE = re.compile(r"/(data/[a-z0-9_-]+(/[a-z]+)*|ask|keys)(\?[!-~]*)?", re.ASCII)  # an address of a page
FILES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "svg": "image/svg+xml"}


Doing = Callable[[Call], Any]  # an endpoint of the API, or like one: the body of its call is the fields of a form


def routes(invitations: Mapping[str, str] | None = None, landing: str = "/") -> list[Route]:
    """All pages.

    invitations: words that log somebody in once, each with its key: /enter/WORD leads to `landing`.
    """
    open_ones = dict(invitations or {})

    async def enter(request: Request) -> Response:
        return _enter(request, open_ones, landing)

    def at(path: str, do: Doing, method: str = "GET", *, owner: bool = False, tokens: int = 0) -> Route:
        async def serve(request: Request) -> Response:
            return await _serve(request, do, owner, tokens)

        return Route(path, serve, methods=[method])

    here = "/data/{dataset}"
    return [
        Route("/ask", _choose, methods=["GET"]),
        Route("/", _start, methods=["GET"]),
        Route("/login", _start, methods=["GET"]),
        Route("/login", _login, methods=["POST"]),
        Route("/logout", _logout, methods=["POST"]),
        Route("/enter/{word}", enter, methods=["GET"]),
        Route("/page/{file}", _asset, methods=["GET"]),
        at(here, _main),
        at(f"{here}/ask", _main),  # who reloads without the form
        at(f"{here}/ask", _ask, "POST"),
        at(f"{here}/price", _price, "POST"),
        at(f"{here}/start", _main),  # who reloads without the form
        at(f"{here}/start", _begin, "POST", owner=True),
        at(f"{here}/words", _words),
        at(f"{here}/answer.{{kind}}", _file),
        at(f"{here}/entry/{{receipt}}", _entry, tokens=HISTORY_TOKENS),
        at(f"{here}/history", _history, tokens=HISTORY_TOKENS),
        at(f"{here}/plan", _plan, tokens=HISTORY_TOKENS),
        at(f"{here}/published", published, tokens=PUBLISHED_TOKENS),
        at(f"{here}/report", _report, tokens=PUBLISHED_TOKENS),
        at(f"{here}/audit", _audit, owner=True),
    ]


async def _serve(request: Request, do: Doing, owner: bool, tokens: int) -> Response:
    """The same checks in the same order as in the API: who, how often, which data set, the form."""
    server, place = server_of(request), Place()
    try:
        key = server.logins.by_cookie(request)
        if key is None:
            return RedirectResponse(_login_first(request), 303)
        place = Place(key)
        acts = request.method == "POST"
        if acts:
            server.logins.check_origin(request)
        if owner:
            check_owner(key)
        server.traffic.take(key.id)
        dataset = server.find(request.path_params["dataset"])
        place = Place(key, dataset.name, "-", len(server.datasets) > 1)
        fields = await read_form(request, server.traffic, key.id) if acts else []
        with server.traffic.slot(key.id):
            return await outcome(do, Call(request, server, key, dataset, {}, fields), tokens)
    except Exception as error:
        return refused_page(refusal_of(error), place)


async def _start(request: Request) -> Response:
    """The way in: a key, then a data set."""
    server = server_of(request)
    key = server.logins.by_cookie(request)
    if key is None:
        then = _then(request.query_params.get("then", ""))
        return page("login.html", Place(), refusal=None, prefix=PREFIX, then=then)
    names = sorted(server.datasets)
    if len(names) == 1:
        return RedirectResponse(f"/data/{names[0]}", 303)
    return await run_in_threadpool(_cards, server, key)


async def _choose(request: Request) -> Response:
    """A question without its data set: the page where it can be asked, or the choice where there are several."""
    server = server_of(request)
    key = server.logins.by_cookie(request)
    if key is None:
        return RedirectResponse(_login_first(request), 303)
    asked = [(name, text) for name, text in request.query_params.multi_items() if name != "data"]
    names = [request.query_params.get("data", "")] if "data" in request.query_params else sorted(server.datasets)
    if len(names) == 1 and names[0] in server.datasets:
        return RedirectResponse(f"/data/{names[0]}?{urlencode(asked)}", 303)
    return await run_in_threadpool(_cards, server, key, urlencode(asked))


def _cards(server: Server, key: Key, asked: str = "") -> Response:
    """The data sets, with what is left of each. `asked` is a question that was brought along."""
    cards = [(view.about(one), view.budget(one, one.quota(key))) for _, one in sorted(server.datasets.items())]
    return page("datasets.html", Place(key), cards=cards, asked=asked)


def _login_first(request: Request) -> str:
    """Where somebody without a session goes, to come back afterwards."""
    if request.method != "GET":
        return "/"
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/?{urlencode({'then': request.url.path + query})}"


def _then(text: str) -> str:
    """An address of a page here; anything else is the start."""
    return text if _HERE.fullmatch(text) else "/"


async def _login(request: Request) -> Response:
    server, then = server_of(request), _then(request.query_params.get("then", ""))
    try:
        server.logins.check_origin(request)
        who = address_of(request)
        secret = last(await read_form(request, server.traffic, who, MAX_LOGIN), "key").strip()
        response = RedirectResponse(then, 303)
        server.logins.start(server.recognise(secret, who), response)
        return response
    except Exception as error:
        refusal = refusal_of(error)
        if refusal.code == "unauthorized":
            refusal = Refusal(401, "unauthorized", "No key in use reads like this one. Was it pasted whole?")
        return page("login.html", Place(), refusal.status, refusal=refusal, prefix=PREFIX, then=then)


async def _logout(request: Request) -> Response:
    server = server_of(request)
    try:
        server.logins.check_origin(request)
    except Refusal as refusal:
        return refused_page(refusal, Place())
    response = RedirectResponse("/", 303)
    server.logins.end(request, response)
    return response


def _enter(request: Request, invitations: dict[str, str], landing: str) -> Response:
    """An invitation is a word that logs its holder in once, with the key beside it."""
    try:
        server = server_of(request)
        given = request.path_params["word"].encode("utf-8", "surrogatepass")
        word = next((one for one in invitations if secrets.compare_digest(one.encode(), given)), None)
        if word is None:
            server.traffic.take(address_of(request))
            raise Refusal(404, "no_such_invitation", "This invitation is not known, or was used: it opens once.")
        response = RedirectResponse(landing, 303)
        server.logins.start(server.recognise(invitations.pop(word), address_of(request)), response)
        return response
    except Exception as error:
        return refused_page(refusal_of(error), Place())


async def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in ASSETS:
        return refused_page(Refusal(404, "no_such_address", "There is nothing at this address."), Place())
    fresh = request.url.query == address(name).partition("?")[2]
    lasting = {"cache-control": "public, max-age=31536000, immutable" if fresh else "no-cache"}
    return Response(asset(name), headers=lasting, media_type=ASSETS[name])


async def _main(call: Call) -> Response:
    """The page, and with a question its answer if it is known already, else its price: a link never spends.

    A question is ?sql=STATEMENT, or the fields of the form that is clicked.
    """
    fields = call.request.query_params.multi_items()
    if not last(fields, "sql").strip() and not last(fields, "what"):
        return await _show(call, Forms())
    do = "filter" if last(fields, "do") == "filter" else "look"
    way = "click" if last(fields, "what") else "sql"
    return await _ask(replace(call, body=[*fields, ("way", way), ("do", do)]))


async def _ask(call: Call) -> Response:
    """Answer the form, or say what it would cost. A refusal stands where the answer would.

    The field `do` is "ask" to buy what is not known, "look" to see an answer only if it is, and "filter" to make a
    condition.
    """
    session, asked = call.about.session, Forms()
    try:
        asked = await run_in_threadpool(read_forms, call.body, session.domain)
        do = last(call.body, "do")
        if do == "filter":
            return await _show(call, asked)
        given = await run_in_threadpool(question, asked, session.domain)
        if asked.clicked:  # the box shows what was clicked
            asked = replace(asked, sql=given if isinstance(given, str) else "")
        within = width(last(call.body, "within"))
        parsed = await run_in_threadpool(read, given, session.domain, within)
        if not asked.clicked:  # the form shows what was written, where it can
            built = await run_in_threadpool(unclicked, parsed.ask, session.domain)
            asked = asked if built is None else replace(asked, built=built, clicked=True)
        if do != "ask":  # whoever says nothing spends nothing
            found = await asyncio.wrap_future(call.about.price(call.asker, parsed))
        if do != "ask" and not (do == "look" and found.known):
            words = price_words(found, session.left, session.total, may_spend=call.asker.may_spend)
            title = parsed.ask.words(session.domain)
            may = call.asker.may_spend and found.cost_at_most <= session.left
            return await _show(
                call, asked, "price.html", within=within, known=found.known, words=words, title=title, may=may
            )
        (answer,) = await answers(call, [parsed])
        shown = await run_in_threadpool(panel, parsed.ask, answer, session, asked.built if asked.clicked else None)
        same = ways(given, call.about.name, _base(call), within)
        offers = await _offers(call, parsed, answer) if isinstance(given, str) else []
        return await _show(
            call, asked, "answer.html", within=within, answer=shown, ways=same, given=given, offers=offers
        )
    except Exception as error:
        return await _show(call, asked, refusal=refusal_of(error))


async def _offers(call: Call, parsed: Question, answer: Answers) -> list[tuple[str, str]]:
    """Sharper answers that can be bought: the half width, and the words of the button."""
    session, found = call.about.session, []
    for half in sharper(parsed.ask, answer) if call.asker.may_spend else []:
        price = await asyncio.wrap_future(call.about.price(call.asker, replace(parsed, within=half)))
        if price.known:
            found.append((f"{half:g}", f"± {half:,g}, known already and free"))
        elif price.cost_at_most <= session.left:
            share = percent_of(price.cost_at_most, session.total)
            found.append((f"{half:g}", f"± {half:,g} for {share} of the budget"))
    return found


async def _begin(call: Call) -> Response:
    """Buy what the answers start from, if the owner ticked that it is meant."""
    try:
        if last(call.body, "sure") != "yes":
            raise Refusal(400, "not_sure", "Tick the box first: what is spent cannot be had back.")
        await asyncio.wrap_future(call.about.start(call.asker))
    except Exception as error:
        return await _show(call, Forms(), refusal=refusal_of(error))
    return RedirectResponse(_place(call).address, 303)


async def _show(
    call: Call,
    asked: Forms,
    panel: str = "",
    *,
    refusal: Refusal | None = None,
    within: float | None = None,
    **words: Any,
) -> Response:
    """The page where questions are asked, with what came of the last one."""
    tables = await known_tables(call.about)
    query = link(asked, call.about.session.domain)
    if query and within is not None:
        query += f"&within={within:g}"

    def make() -> Response:
        about, session = call.about, call.about.session
        facts = words | {
            "base": None if session.started else session.base,
            "asked": asked,
            "query": query,
            "domain": session.domain,
            "columns": listed(about, asked.built, tables),
            "conditions": view.conditions(asked, session.domain),
            "about": view.about(about),
            "budget": view.budget(about, about.quota(call.asker)),
        }
        status = 200 if refusal is None else refusal.status
        return page("ask.html", _place(call), status, panel=panel, refusal=refusal, **facts)

    return await run_in_threadpool(make)


async def _file(call: Call) -> Response:
    """An answer that is known, as a file: for spreadsheets, programs and papers."""
    kind, fields, domain = (
        call.request.path_params["kind"],
        call.request.query_params.multi_items(),
        call.about.session.domain,
    )
    if kind not in FILES:
        raise Refusal(404, "no_such_address", f"An answer is a file of {', '.join(FILES)}.")
    way = "click" if last(fields, "what") else "sql"
    asked = await run_in_threadpool(read_forms, [*fields, ("way", way)], domain)
    given = await run_in_threadpool(question, asked, domain)
    parsed = await run_in_threadpool(read, given, domain, width(last(fields, "within")))
    found = await asyncio.wrap_future(call.about.price(call.asker, parsed))
    if not found.known:
        raise Refusal(
            403, "would_spend", "This is not known yet, and a file is made of what is: ask it on the page first."
        )
    (answer,) = await answers(call, [parsed])
    return await run_in_threadpool(_written, call.about, parsed, answer, kind)


def _written(dataset: Dataset, asked: Question, answer: Answers, kind: str) -> Response:
    if kind == "csv":
        text = answer.frame().csv()
    elif kind == "json":
        text = encode(shown(asked, answer)).decode()
    else:
        attribute = dataset.session.domain[asked.ask.name] if isinstance(asked.ask, Quantile) else None
        chart = drawing(answer, attribute)
        if chart is None:
            raise Refusal(404, "no_such_address", "This answer has no picture.")
        text = replace(chart, title=answer.question, note=sure_words(answer)).svg()
    attached = {"content-disposition": f'attachment; filename="{dataset.name}-answer.{kind}"'}
    return Response(text, headers=attached, media_type=FILES[kind])


def _entry(call: Call) -> Response:
    """One entry of the ledger, at the address that its receipt makes."""
    number, _, seal = call.request.path_params["receipt"].partition("-")
    session = call.about.session
    found = next((event for event in events(session) if str(event.receipt.entry) == number), None)
    if found is None or not seal or not found.receipt.seal.startswith(seal):
        raise Refusal(404, "no_such_entry", "The ledger has no such entry: the address may be of another ledger.")
    return page("entry.html", _place(call, "history"), **view.entry(found, session))


async def _price(call: Call) -> Json:
    """For the script: what the form stands for and would cost, as one sentence."""
    session = call.about.session
    told: dict[str, Any] = {"sql": "", "text": "", "level": "free"}
    try:
        asked = await run_in_threadpool(read_forms, call.body, session.domain)
        given = await run_in_threadpool(question, asked, session.domain)
        told["sql"] = given if asked.clicked and isinstance(given, str) else ""
        parsed = await run_in_threadpool(read, given, session.domain)
        found = await asyncio.wrap_future(call.about.price(call.asker, parsed))
        told["text"] = price_words(found, session.left, session.total, may_spend=call.asker.may_spend)
        if found.cost_at_most.atoms:
            told["level"] = "cost" if found.cost_at_most <= session.left and call.asker.may_spend else "much"
    except Exception as error:
        told |= {"text": refusal_of(error).sentence, "level": "wrong"}
    return told


def _words(call: Call) -> Json:
    return words_of(call.about.session.domain)


def _history(call: Call) -> Response:
    before, free = _parameter(call, "before", 0, 2**53), "free" in call.request.query_params
    session = call.about.session
    who = view.askers(call.about) if call.asker.role == "owner" else None
    place = _place(call, "history")
    return page("history.html", place, **view.history(events(session), session, who, before, place, free=free))


def _plan(call: Call) -> Response:
    return page("plan.html", _place(call, "plan"), **view.plan(call.about))


def _audit(call: Call) -> Response:
    limit = _parameter(call, "limit", AUDIT_LINES, MOST_AUDIT)
    rows = view.audit(call.about.audit.last(limit), call.about.session.total)
    return page("audit.html", _place(call, "audit"), rows=rows, limit=limit)


def _report(call: Call) -> Response:
    name = call.about.name
    attached = {"content-disposition": f'attachment; filename="{name}.html"'}
    return Response(report_page(call.about.session, name), headers=attached, media_type="text/html")


def _place(call: Call, page: str = "") -> Place:
    return Place(call.key, call.about.name, page, len(call.server.datasets) > 1)


def _base(call: Call) -> str:
    """This server's address as the browser has it: a proxy may have added TLS."""
    scheme = "https" if call.server.secure else "http"
    return call.request.headers.get("origin") or f"{scheme}://{call.request.headers['host']}"


def _parameter(call: Call, name: str, unless: int, most: int) -> int:
    text = call.request.query_params.get(name, "")
    return min(most, int(text)) if _WHOLE.fullmatch(text) else unless
