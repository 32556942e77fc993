"""What every request passes first and every response last: the host's name, the headers, and no error's own words.

An ASGI middleware; it wraps the pages as well as the API.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.serve.refusal import Refusal, log, refusal_of

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]{1,253})(:\d{1,5})?")


class Guard:
    """Lets through requests for these hosts (None: any), and sets headers that a response has not set itself."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None, *, hsts: bool = False) -> None:
        self._app, self._hosts = app, None if hosts is None else {host.lower() for host in hosts}
        self._headers = HEADERS | ({"strict-transport-security": "max-age=31536000"} if hsts else {})

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
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            try:
                await send(message)
            except Exception as error:  # the client broke the protocol meanwhile; there is nobody to be told
                log.info("a response could not be sent: %s", type(error).__name__)
                raise ClientDisconnect from None

        try:
            self._check_host(Headers(scope=scope).getlist("host"))
            await self._app(scope, receive, guarded)
        except ClientDisconnect:
            return None
        except Exception as error:
            response = refused(refusal_of(error))  # logs what may be logged
            if not started:
                await response(scope, receive, guarded)

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
