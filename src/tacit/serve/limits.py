"""How much one key, and all together, may ask of the server at once. Called on the event loop's thread only.

These guard the machine, not the data: the budget does that.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import Request

from tacit.serve.refusal import Refusal

MAX_BODY = 2**20  # bytes
MAX_BATCH = 1_000  # questions
QUESTIONS_A_TOKEN = 50  # a batch takes one more token for each of these
_MOST_BUCKETS = 10_000


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
