"""How many connections there are, and how long each may be silent, slow or unread. For `run.serve`; uvicorn calls it.

Whoever connects needs no key, so connections end before the system's limit on open files is reached: past that nobody
could connect, and the event loop would fill the log. The oldest connection that has nothing asked gives way to a new
one. What is being asked and answered is bounded elsewhere (`admission`).
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from tacit.serve.refusal import Seldom

MAX_CONNECTIONS = 1_000
BACKLOG = 64  # connections that are taken at a time, before one of them is looked at
SPARE = 64  # files that are not connections: ledgers, keys, logs, the data's own
HEADER_SECONDS = 10.0  # to send the head of a request
UNREAD_SECONDS = 30.0  # in which a client reads something of what it is sent
_AT_ONCE = 2**16  # bytes of what is written that are sent together


def room(most: int = MAX_CONNECTIONS, others: int = 0) -> int:
    """How many connections fit below the system's limit on open files, which is raised where it may be.

    others: connections of another kind that need files of their own.
    """
    backlog = 2 * BACKLOG if others else BACKLOG
    wanted = most + others + backlog + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if raised > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        most = min(most, (soft - backlog - SPARE) * most // (most + others))
    return max(1, most)


class BufferedTransport:
    """A transport that sends what is written in one turn of the loop at once: a response's head with its body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._out: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._send)
        self._out.append(data)
        self._size += len(data)
        if self._size > _AT_ONCE:  # the transport says when there is too much of it, and has to know
            self._send()

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        out, self._out, self._size = self._out, [], 0
        if out and not self._transport.is_closing():
            self._transport.write(b"".join(out))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpConnection(H11Protocol):
    """One connection of a client."""

    most = MAX_CONNECTIONS
    header_seconds, unread_seconds = HEADER_SECONDS, UNREAD_SECONDS
    _header: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is asked: the head of a request has not come yet."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(BufferedTransport(transport, self.loop))  # type: ignore[arg-type]  # it does what one does
        self._since = self.loop.time()
        self._watch()
        if len(self.connections) > self.most:
            others = (
                one for one in self.connections if isinstance(one, HttpConnection) and one.idle and one is not self
            )
            min(others, key=lambda one: one._since, default=self).end()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._header, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.unread_seconds, self.end)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.loop.time()
        self._end_when_closed()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._end_when_closed()

    def end(self) -> None:
        """End it at once, whatever is still to be sent or read."""
        self.connections.discard(self)  # it does not count any more
        self.transport.abort()

    def _watch(self) -> None:
        """The head of a request has so long to come whole, from the connection on or from its first byte on."""
        if not self.idle and self._header is not None:
            self._header.cancel()
            self._header = None
        elif self.idle and self._header is None and not self.transport.is_closing():
            self._header = self.loop.call_later(self.header_seconds, self.end)

    def _end_when_closed(self) -> None:
        """What is closed has yet to be read: a client that does not would keep it open."""
        if self.transport.is_closing():
            self.loop.call_later(self.unread_seconds, self.transport.abort)


class Complaints:
    """What the event loop and uvicorn complain about, in the log once a minute for each kind.

    Anybody can make them complain, with bytes that are no request: so nobody can fill the log with it.
    """

    def __init__(self) -> None:
        self._due = Seldom()
        logging.getLogger("uvicorn.error").addFilter(self.filter)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        kind = type(error).__name__ if isinstance(error, BaseException) else "trouble"
        self._due.error(kind, "the event loop met %s", kind)  # never in the loop's own words

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line of uvicorn's is logged. One with an exception is an error of ours, and always is.

        But for that of h11: it does not send a response on a connection whose request broke off meanwhile.
        """
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, LocalProtocolError | None) or self._due(str(record.msg))
