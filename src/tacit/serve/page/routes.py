"""The addresses of the pages, and what each does. `run.serve` adds them to the application.

Pages know who is there by the session cookie alone. What acts is a POST, and has to come from one of these pages
(`Logins.check_origin`); what only shows is a GET. Asking goes through the data set's writer, as in the API.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.serve.admission import MAX_LOGIN, address_of
from tacit.serve.api import HISTORY_TOKENS, PUBLISHED_TOKENS, published
from tacit.serve.endpoint import Call, outcome
from tacit.serve.key import PREFIX, Key
from tacit.serve.page import dialogue, records, view
from tacit.serve.page.form import last, read_form
from tacit.serve.page.view import ASSETS, Location, address, asset, page, refused_page
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.server import Server, server_of

# An address of a page, where somebody who has to log in may go on to.
_HERE = re.compile(r"/(data/[a-z0-9_-]+(/[a-z]+|/entry/[0-9a-f-]+)*|ask|keys)(\?[!-~]*)?", re.ASCII)
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
        at(here, dialogue.main),
        at(f"{here}/ask", dialogue.main),  # who reloads without the form
        at(f"{here}/ask", dialogue.ask, "POST"),
        at(f"{here}/price", dialogue.price, "POST"),
        at(f"{here}/start", dialogue.main),  # who reloads without the form
        at(f"{here}/start", dialogue.begin, "POST", owner=True),
        at(f"{here}/words", dialogue.words),
        at(f"{here}/answer.{{kind}}", dialogue.file),
        at(f"{here}/entry/{{receipt}}", records.entry, tokens=HISTORY_TOKENS),
        at(f"{here}/history", records.history, tokens=HISTORY_TOKENS),
        at(f"{here}/plan", records.plan, tokens=HISTORY_TOKENS),
        at(f"{here}/published", published, tokens=PUBLISHED_TOKENS),
        at(f"{here}/report", records.report, tokens=PUBLISHED_TOKENS),
        at(f"{here}/audit", records.audit, owner=True),
        at(f"{here}/questions", records.questions, tokens=PUBLISHED_TOKENS),
        at(f"{here}/save", records.save, "POST"),
        at("/keys", records.keys, owner=True),
        at("/keys", records.change_keys, "POST", owner=True),
    ]


async def _serve(request: Request, do: Doing, owner: bool, tokens: int) -> Response:
    """The same checks in the same order as in the API: who, how often, which data set, the form."""
    server, place = server_of(request), Location()
    try:
        key = server.logins.by_cookie(request)
        if key is None:
            return _login_first(request)
        place = Location(key)
        acts = request.method == "POST"
        if acts:
            server.logins.check_origin(request)
        if owner:
            server.check_owner(key)
        server.traffic.take(key.id)
        dataset = server.find(request.path_params["dataset"]) if "dataset" in request.path_params else None
        place = Location(key, "" if dataset is None else dataset.name, "-", len(server.datasets) > 1)
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
        return page("login.html", Location(), refusal=None, prefix=PREFIX, then=then)
    names = sorted(server.datasets)
    if len(names) == 1:
        return RedirectResponse(f"/data/{names[0]}", 303)
    return await run_in_threadpool(_cards, server, key)


async def _choose(request: Request) -> Response:
    """A question without its data set: the page where it can be asked, or the choice where there are several."""
    server = server_of(request)
    key = server.logins.by_cookie(request)
    if key is None:
        return _login_first(request)
    asked = [(name, text) for name, text in request.query_params.multi_items() if name != "data"]
    names = [request.query_params.get("data", "")] if "data" in request.query_params else sorted(server.datasets)
    if len(names) == 1 and names[0] in server.datasets:
        return RedirectResponse(f"/data/{names[0]}?{urlencode(asked)}", 303)
    return await run_in_threadpool(_cards, server, key, urlencode(asked))


def _cards(server: Server, key: Key, asked: str = "") -> Response:
    """The data sets, with what is left of each. `asked` is a question that was brought along."""
    cards = [(view.about(one), view.budget(one, one.quota(key))) for _, one in sorted(server.datasets.items())]
    return page("datasets.html", Location(key), cards=cards, asked=asked)


def _login_first(request: Request) -> Response:
    """Where somebody without a session goes, to come back afterwards."""
    if request.method != "GET":
        return RedirectResponse("/", 303)
    # A link on another site comes without the cookie, which is SameSite=Strict: asked again from here, it has it.
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return page("again.html", Location())
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/?{urlencode({'then': request.url.path + query})}", 303)


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
        return page("login.html", Location(), refusal.status, refusal=refusal, prefix=PREFIX, then=then)


async def _logout(request: Request) -> Response:
    server = server_of(request)
    try:
        server.logins.check_origin(request)
    except Refusal as refusal:
        return refused_page(refusal, Location())
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
        return refused_page(refusal_of(error), Location())


async def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in ASSETS:
        return refused_page(Refusal(404, "no_such_address", "There is nothing at this address."), Location())
    fresh = request.url.query == address(name).partition("?")[2]
    lasting = {"cache-control": "public, max-age=31536000, immutable" if fresh else "no-cache"}
    return Response(asset(name), headers=lasting, media_type=ASSETS[name])
