"""The application: every endpoint behind the same checks, in the same order. Called by `run.serve` and by tests.

The order: the host's name (in `Guard`), who asks, how often, which data set, the parameters, the body, how many at
once, what the body says. A later check is never reached by whom an earlier one refuses. Whoever has no key holds no
place among those being served: so health always answers, and a login waits for nobody.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.serve.admission import Who, address_of, too_large
from tacit.serve.api import ENDPOINTS, SHORT
from tacit.serve.endpoint import Call, Endpoint, outcome
from tacit.serve.refusal import Refusal, log, refusal_of
from tacit.serve.schema import MAX_JSON_TEXT, AskBody, parse, shaped
from tacit.serve.server import Server, server_of

_JSON = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?', re.IGNORECASE)
_WHOLE = re.compile(r"\d{1,16}", re.ASCII)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_API = "/v1/"
_ABOUT = f"{_API}{{dataset}}/"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(:\d{1,5})?")


def make_app(
    server: Server,
    *,
    pages: Sequence[BaseRoute] = (),
    ready: Callable[[], None] = lambda: None,
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> ASGIApp:
    """The application of a server. `pages` are routes beside the API, which find it with `server_of(request)`.

    `beside` is another way in that lives as long as the application, on the same event loop.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            async with beside():
                ready()
                yield
        finally:
            await run_in_threadpool(server.close)

    hsts = server.secure and server.hosts is not None and not any(map(is_loopback, server.hosts))
    app = Starlette(
        routes=[*(_route(endpoint) for endpoint in ENDPOINTS), *pages],
        exception_handlers={HTTPException: _no_such},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would quote the Host header
    app.state.tacit = server
    return Guard(app, server, hsts=hsts)


def _route(endpoint: Endpoint) -> Route:
    async def serve(request: Request) -> Response:
        return await _serve(endpoint, request, server_of(request), request.path_params.get("dataset", ""))

    return Route(endpoint.path, serve, methods=[endpoint.method], name=endpoint.answer.__name__)


async def _serve(endpoint: Endpoint, request: Request, server: Server, name: str) -> Response:
    try:
        return await _respond(endpoint, request, server, name)
    except Exception as error:
        return refused(refusal_of(error))


async def _respond(endpoint: Endpoint, request: Request, server: Server, name: str) -> Response:
    """The response of an endpoint; `name` is that of a data set, where the address has one."""
    key = None
    if endpoint.access != "anyone":
        key = server.logins.who(request)
        if endpoint.access == "owner":
            server.check_owner(key)
        server.traffic.take(key.id)
    elif endpoint.method == "POST":
        server.logins.check_origin(request)
    dataset = server.find(name) if "{dataset}" in endpoint.path else None
    parameters, texts = _parameters(endpoint, request)
    text = await _text(endpoint, request, server, address_of(request) if key is None else key.id)
    with nullcontext() if key is None else server.traffic.slot(key.id):
        before = server.read_before.get((name, text)) if endpoint.body is AskBody else None
        body = await _body(endpoint, text) if before is None else None
        call = Call(
            request=request,
            server=server,
            key=key,
            dataset=dataset,
            parameters=parameters,
            body=body,
            texts=texts,
            text=text,
            before=before,
        )
        return await outcome(endpoint.answer, call, endpoint.tokens)


def _parameters(endpoint: Endpoint, request: Request) -> tuple[Mapping[str, int], Mapping[str, str]]:
    """The parameters of the address: whole numbers, and texts, of which there is one where an endpoint takes any."""
    given = request.query_params.multi_items()
    allowed, worded = endpoint.parameters, endpoint.texts
    found, texts = {name: unless for name, (_, _, unless) in allowed.items()}, dict[str, str]()
    for name, text in given:
        if name not in (*allowed, *worded) or sum(name == other for other, _ in given) > 1:
            known = ", ".join((*allowed, *worded))
            known = f"are {known}, each once" if known else "of this address are none"
            raise Refusal(400, "bad_parameter", f"the parameters {known}.")
        if name in worded:
            if len(text) > MAX_JSON_TEXT:
                raise Refusal(400, "bad_parameter", f"{name} has at most {MAX_JSON_TEXT:,} characters.")
            texts[name] = text
            continue
        low, high, _ = allowed[name]
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise Refusal(400, "bad_parameter", f"{name} is a whole number from {low:,} to {high:,}.")
        found[name] = int(text)
    if endpoint.one_of and sum(name in texts for name in endpoint.one_of) != 1:
        raise Refusal(400, "bad_parameter", f"one of {', '.join(endpoint.one_of)} is given.")
    return found, texts


async def _text(endpoint: Endpoint, request: Request, server: Server, who: Who) -> bytes:
    """The body as it came; empty where the endpoint takes none."""
    if endpoint.body is None:
        return b""
    headers = request.headers
    if len(headers.getlist("content-type")) != 1 or not _JSON.fullmatch(headers["content-type"].strip()):
        raise Refusal(415, "wrong_content_type", "The body is JSON: Content-Type: application/json.")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "wrong_content_type", "The body is not compressed.")
    announced = headers.get("content-length", "0")
    if not _WHOLE.fullmatch(announced) or int(announced) > endpoint.most:
        raise too_large(endpoint.most)
    return await server.traffic.body(request, who, endpoint.most)


async def _body(endpoint: Endpoint, text: bytes) -> Any:
    """The body as what the endpoint takes. A long one is read in the pool, so that nobody else waits for it."""
    kind = endpoint.body
    if kind is None:
        return None
    if len(text) <= SHORT:
        return shaped(parse(text), kind, endpoint.bad)
    return await run_in_threadpool(lambda: shaped(parse(text), kind, endpoint.bad))


async def _no_such(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    if status == 405:
        response = refused(Refusal(405, "wrong_method", "This address takes another method."))
        if isinstance(error, HTTPException) and error.headers:
            response.headers.update(error.headers)
        return response
    return refused(Refusal(404, "no_such_address", "There is nothing at this address; GET /v1/openapi.json lists all."))


class Guard:
    """What every request passes first and every response last, the pages' too: an ASGI application.

    Lets through requests for the server's hosts, sets headers that a response has not set itself, and shows no error's
    own words. Endpoints of a data set are called from here, which is what most requests are for; `app` has the rest.
    """

    def __init__(self, app: ASGIApp, server: Server, *, hsts: bool = False) -> None:
        hosts = server.hosts
        self._app, self._server, self._hosts = app, server, None if hosts is None else {host.lower() for host in hosts}
        headers = _HEADERS | ({"strict-transport-security": "max-age=31536000"} if hsts else {})
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        about = (endpoint for endpoint in ENDPOINTS if endpoint.path.startswith(_ABOUT))
        self._about = {(endpoint.method, endpoint.path.removeprefix(_ABOUT)): endpoint for endpoint in about}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # no web sockets here
            return None
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                has = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self._headers if one[0] not in has)]
            try:
                await send(message)
            except Exception as error:  # the client broke the protocol meanwhile; there is nobody to be told
                log.info("a response could not be sent: %s", type(error).__name__)
                raise ClientDisconnect from None

        try:
            self._check_host(Headers(scope=scope).getlist("host"))
            await self._respond(scope, receive, guarded)
        except ClientDisconnect:
            return None
        except Exception as error:
            response = refused(refusal_of(error))  # logs what may be logged
            if not started:
                await response(scope, receive, guarded)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, _, path = scope["path"].partition(_API)
        name, _, asked = path.partition("/")
        endpoint = self._about.get((scope["method"], asked))
        if endpoint is None or not name or scope["path"] != f"{_API}{name}/{asked}":
            await self._app(scope, receive, send)
            return
        response = await _serve(endpoint, Request(scope, receive, send), self._server, name)
        await response(scope, receive, send)

    def _check_host(self, given: list[str]) -> None:
        """A page of another site that has its name resolve to this machine still sends its own name (DNS rebinding)."""
        match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if match is None:
            raise Refusal(400, "bad_host", "A request has one Host header.")
        if self._hosts is not None and match[1].lower() not in self._hosts:
            raise Refusal(421, "wrong_host", "This server does not go by that name.")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def refused(refusal: Refusal) -> Response:
    """A refusal as a response."""
    headers = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
    headers |= {"www-authenticate": "Bearer"} if refusal.status == 401 else {}
    body = json.dumps(refusal.body(), ensure_ascii=False).encode()
    return Response(body, refusal.status, headers, media_type="application/json")
