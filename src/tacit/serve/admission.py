"""Who asks, and how much at once: keys in headers, browsers' sessions, rates, bodies. Called by endpoints and pages.

A request shows its key in the Authorization header, or through a session cookie. The cookie holds a random number that
stands for the key in this process's memory: the key itself is never stored in a browser, a restart asks for it again,
and a revoked key ends its sessions. Limits guard the machine, not the data: the budget does that. All of it runs on the
event loop's thread.

Who is counted: a key by its number, and somebody without one by the address that the connection comes from (`Who`). A
right key is never refused for what strangers do, not even for strangers at its own address: behind a proxy all are.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from tacit.serve.key import Key, digest, visitor
from tacit.serve.refusal import Refusal

if TYPE_CHECKING:
    from tacit.serve.keys import KeyRing

SESSION_SECONDS = 12 * 3600
MAX_SESSIONS = 20  # browsers of one key: a login more ends the oldest of the same key, and nobody else's
MAX_BODY = 2**20  # bytes
MAX_LOGIN = 2**10  # bytes of what is read without a key
STRANGERS, STRANGERS_OF_ONE = 64, 16  # bodies that are being read without a key: all, and those from one address
WORK_A_TOKEN = 2**20  # and one more for this much work: see `Question.work`
WORK_TOGETHER, WORK_OF_ONE = 2**29, 2**28  # that is under way: all of it, and that of one key
BYTES_A_TOKEN = 2**14  # a body takes one more token for each of these
QUESTIONS_A_TOKEN = 50  # a batch takes one more token for each of these
_MOST_BUCKETS = 10_000
_BEARER = re.compile(r"Bearer (tacit_[A-Za-z0-9_-]{43})")

Who = int | str  # the number of a key, or the address of somebody who has shown none


@dataclass
class Logins:
    """The browsers' sessions. `secure` says that the server speaks TLS itself.

    Without a file of keys nobody needs one: whoever asks is a visitor.
    """

    keys: KeyRing | None
    secure: bool = False
    port: int = 0
    clock: Callable[[], float] = time.monotonic
    _open: dict[bytes, tuple[int, float]] = field(default_factory=dict)
    _of_key: dict[int, deque[bytes]] = field(default_factory=dict)  # oldest first; some may have ended

    @property
    def cookie(self) -> str:
        """The cookie's name. Browsers share cookies between the ports of a host, so the port is in it."""
        return "__Host-tacit" if self.secure else f"tacit_{self.port}"

    def start(self, key: Key, response: Response) -> None:
        """Begin a session of a key; the cookie goes with the response."""
        token = secrets.token_urlsafe(32)
        own = self._of_key.setdefault(key.id, deque())
        own.append(digest(token))
        self._open[own[-1]] = key.id, self.clock() + SESSION_SECONDS
        while len(own) > MAX_SESSIONS:
            self._open.pop(own.popleft(), None)
        response.set_cookie(
            self.cookie, token, max_age=SESSION_SECONDS, path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def end(self, request: Request, response: Response) -> None:
        """End the session that a request belongs to."""
        self._open.pop(digest(request.cookies.get(self.cookie, "")), None)
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")

    def who(self, request: Request) -> Key:
        """Whose request this is, or a refusal. With a cookie it must come from our own pages."""
        if self.keys is None:
            return visitor(address_of(request))
        given = request.headers.getlist("authorization")
        if given:
            match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
            key = self.keys.find(match[1]) if match else None
        else:
            key = self.by_cookie(request)
            if key is not None:
                self.check_origin(request)
        if key is None:
            raise unknown()
        return key

    def by_cookie(self, request: Request) -> Key | None:
        """Whose session a request belongs to, wherever it comes from: for showing pages, not for acting."""
        if self.keys is None:
            return visitor(address_of(request))
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


def unknown() -> Refusal:
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
    """A token bucket for each key and each address, who is being served now, and whose bodies are being read."""

    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[Who, tuple[float, float]] = field(default_factory=OrderedDict)
    _active: Counter[int] = field(default_factory=Counter)
    _work: Counter[int] = field(default_factory=Counter)
    _reading: Counter[int] = field(default_factory=Counter)
    _strangers: list[tuple[str, asyncio.Timeout]] = field(default_factory=list)  # oldest first

    def take(self, who: Who, tokens: float = 1.0) -> None:
        """Take tokens out of a bucket, all that it can hold at most; refused when there are not enough."""
        limits = self.limits
        tokens = min(tokens, limits.burst)
        level, now = self._level(who)
        if level < tokens:
            wait = math.ceil((tokens - level) / limits.rate)
            self._buckets[who] = level, now
            raise Refusal(
                429, "rate_limited", f"A key has {limits.rate:g} requests a second in the long run.", retry_after=wait
            )
        self._buckets[who] = level - tokens, now
        self._buckets.move_to_end(who)
        while len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)

    def charge(self, who: Who, work: int) -> None:
        """Take what was done already out of a bucket, below nothing if need be: then who it is waits the longer."""
        tokens = min(work // WORK_A_TOKEN, self.limits.burst)
        if tokens:
            level, now = self._level(who)
            self._buckets[who] = level - tokens, now

    def _level(self, who: Who) -> tuple[float, float]:
        """What is in a bucket now."""
        now, limits = self.clock(), self.limits
        level, then = self._buckets.get(who, (float(limits.burst), now))
        return min(limits.burst, level + (now - then) * limits.rate), now

    @cached_property
    def slot(self) -> Callable[[int], AbstractContextManager[None]]:
        """A place among those being served, for a key whose request has been read."""
        return partial(_counted, self._active, most=self.limits.together_of_one, of_all=self.limits.together)

    @contextmanager
    def working(self, key: int, work: int) -> Iterator[None]:
        """Room for so much work, which takes more of a key's rate: what is held in memory is bounded by it."""
        with _counted(self._work, key, work, most=WORK_OF_ONE, of_all=WORK_TOGETHER):
            if work >= WORK_A_TOKEN:
                self.take(key, work // WORK_A_TOKEN)
            yield

    async def body(self, request: Request, who: Who, most: int = MAX_BODY) -> bytes:
        """The body of a request, counted as it comes: what is announced may be wrong, or missing.

        A body that comes slowly holds none of the places of `slot`. Of one key so many are read at once as may be
        served. Without a key there is little room, but always some: the oldest that has not come whole gives way.
        """
        if isinstance(who, int):
            with _counted(self._reading, who, most=self.limits.together_of_one):
                async with _in_time(self.limits) as until:
                    text = await _whole(request, most)
            if len(text) >= BYTES_A_TOKEN:
                self.take(who, len(text) // BYTES_A_TOKEN)
            return text
        async with _in_time(self.limits) as until:
            self._make_room(who)
            self._strangers.append((who, until))
            try:
                return await _whole(request, most)
            finally:
                self._strangers = [one for one in self._strangers if one[1] is not until]

    def _make_room(self, address: str) -> None:
        own = [one for one in self._strangers if one[0] == address]
        full = own if len(own) >= STRANGERS_OF_ONE else self._strangers if len(self._strangers) >= STRANGERS else []
        if full:
            oldest = full[0]
            self._strangers.remove(oldest)
            oldest[1].reschedule(0)  # it is refused as one that took too long


@contextmanager
def _counted(among: Counter[int], key: int, more: int = 1, *, most: int, of_all: float = math.inf) -> Iterator[None]:
    """So many more of a key's; refused where it would have too many, or all of them together."""
    if among[key] + more > most or among.total() + more > of_all:
        raise _busy()
    among[key] += more
    try:
        yield
    finally:
        among[key] -= more
        if not among[key]:
            del among[key]


@asynccontextmanager
async def _in_time(limits: Limits) -> AsyncIterator[asyncio.Timeout]:
    try:
        async with asyncio.timeout(limits.body_seconds) as until:
            yield until
    except TimeoutError:
        raise Refusal(408, "slow_body", f"A body is sent within {limits.body_seconds:g} seconds.") from None


async def _whole(request: Request, most: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_large(most)
    return bytes(body)


def address_of(request: Request) -> str:
    """Where a request comes from; a proxy's own address behind one."""
    return "" if request.client is None else request.client.host


def too_large(most: int = MAX_BODY) -> Refusal:
    return Refusal(413, "body_too_large", f"a body has at most {most:,} bytes.")


def _busy() -> Refusal:
    return Refusal(503, "busy", "Too many requests are being worked on.", retry_after=1)
