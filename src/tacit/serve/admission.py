"""Who asks, and how much at once: keys in headers, browsers' sessions, rates, bodies. Called by endpoints and pages.

A request shows its key in the Authorization header, or through a session cookie. The cookie holds a random number that
stands for the key in this process's memory: the key itself is never stored in a browser, a restart asks for it again,
and a revoked key ends its sessions. Limits guard the machine, not the data: the budget does that. All of it runs on the
event loop's thread.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from tacit.serve.keys import Key, KeyRing, digest
from tacit.serve.refusal import Refusal

SESSION_SECONDS = 12 * 3600
MAX_SESSIONS = 1_000
MAX_BODY = 2**20  # bytes
MAX_BATCH = 1_000  # questions
QUESTIONS_A_TOKEN = 50  # a batch takes one more token for each of these
_MOST_BUCKETS = 10_000
_BEARER = re.compile(r"Bearer (tacit_[A-Za-z0-9_-]{43})")


@dataclass
class Logins:
    """The browsers' sessions. `secure` says that the server speaks TLS itself."""

    keys: KeyRing
    secure: bool = False
    port: int = 0
    clock: Callable[[], float] = time.monotonic
    _open: OrderedDict[bytes, tuple[int, float]] = field(default_factory=OrderedDict)

    @property
    def cookie(self) -> str:
        """The cookie's name. Browsers share cookies between the ports of a host, so the port is in it."""
        return "__Host-tacit" if self.secure else f"tacit_{self.port}"

    def start(self, secret: str, response: Response) -> Key:
        """Begin a session for whoever knows a key; the cookie goes with the response."""
        key = self.keys.find(secret)
        if key is None:
            raise _unknown()
        token = secrets.token_urlsafe(32)
        self._open[digest(token)] = key.id, self.clock() + SESSION_SECONDS
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)
        response.set_cookie(
            self.cookie, token, max_age=SESSION_SECONDS, path="/", secure=self.secure, httponly=True, samesite="strict"
        )
        return key

    def end(self, request: Request, response: Response) -> None:
        """End the session that a request belongs to."""
        self._open.pop(digest(request.cookies.get(self.cookie, "")), None)
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")

    def who(self, request: Request) -> Key:
        """Whose request this is, or a refusal. With a cookie it must come from our own pages."""
        given = request.headers.getlist("authorization")
        if given:
            match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
            key = self.keys.find(match[1]) if match else None
        else:
            key = self.by_cookie(request)
            if key is not None:
                self.check_origin(request)
        if key is None:
            raise _unknown()
        return key

    def by_cookie(self, request: Request) -> Key | None:
        """Whose session a request belongs to, wherever it comes from: for showing pages, not for acting."""
        id, until = self._open.get(digest(request.cookies.get(self.cookie, "")), (0, 0.0))
        return self.keys.get(id) if self.clock() < until else None

    def check_origin(self, request: Request) -> None:
        """Refuse what another site's page has sent with our cookie. A page on another port of this host is another."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        host = request.headers.get("host", "")
        ours = {f"https://{host}"} if self.secure else {f"http://{host}", f"https://{host}"}  # a proxy may add TLS
        if site not in (None, "same-origin", "none") or (origin is not None and origin not in ours):
            raise _foreign()
        if request.method not in ("GET", "HEAD") and origin is None and site != "same-origin":
            raise _foreign()


def check_owner(key: Key) -> None:
    if key.role != "owner":
        raise Refusal(403, "owner_only", "This is for the owner's key.")


def _unknown() -> Refusal:
    return Refusal(401, "unauthorized", "A key is needed: Authorization: Bearer tacit_…, one that was not revoked.")


def _foreign() -> Refusal:
    return Refusal(403, "foreign_origin", "With a session cookie, requests come from this server's own pages.")


@dataclass(frozen=True)
class Limits:
    """The settings, with what is sensible on one machine."""

    rate: float = 100.0  # requests a second of one key, in the long run
    burst: int = 200  # and at once
    together: int = 128  # requests that are being worked on
    together_of_one: int = 32  # of them, of one key
    body_seconds: float = 10.0  # to send a body


@dataclass
class Traffic:
    """A token bucket for each key, and who is being served now."""

    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[int, tuple[float, float]] = field(default_factory=OrderedDict)
    _active: Counter[int] = field(default_factory=Counter)

    def take(self, key: int, tokens: float = 1.0) -> None:
        """Take tokens out of a key's bucket; refused when there are not enough."""
        now, limits = self.clock(), self.limits
        level, then = self._buckets.get(key, (float(limits.burst), now))
        level = min(limits.burst, level + (now - then) * limits.rate)
        if level < tokens:
            wait = math.ceil((tokens - level) / limits.rate)
            self._buckets[key] = level, now
            raise Refusal(
                429, "rate_limited", f"A key has {limits.rate:g} requests a second in the long run.", retry_after=wait
            )
        self._buckets[key] = level - tokens, now
        self._buckets.move_to_end(key)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)

    @contextmanager
    def slot(self, key: int) -> Iterator[None]:
        """A place among those being served."""
        if self._active[key] >= self.limits.together_of_one or self._active.total() >= self.limits.together:
            raise Refusal(503, "busy", "Too many requests are being worked on.", retry_after=1)
        self._active[key] += 1
        try:
            yield
        finally:
            self._active[key] -= 1
            if not self._active[key]:
                del self._active[key]


async def read_body(request: Request, limits: Limits, most: int = MAX_BODY) -> bytes:
    """The body, counted as it comes: what is announced may be wrong, or missing."""
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large(most)
    except TimeoutError:
        raise Refusal(408, "slow_body", f"A body is sent within {limits.body_seconds:g} seconds.") from None
    return bytes(body)


def too_large(most: int = MAX_BODY) -> Refusal:
    return Refusal(413, "body_too_large", f"a body has at most {most:,} bytes.")
