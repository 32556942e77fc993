"""The bytes of one connection: messages come in, what is said goes out, and TLS is begun. Runs on the event loop.

A client that sends half a message, or does not read what it is told, is cut off after a while.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tacit.serve.postgres.messages import MAX_MESSAGE, First, Malformed, Message, Reader

MAX_SENT_AHEAD = 2 * MAX_MESSAGE  # bytes that a client may send ahead
_TOGETHER = 2**16  # bytes that are sent at once


class Gone(Exception):
    """The client has gone away, or is not listening: there is nobody to be told."""


@dataclass(frozen=True)
class WireLimits:
    """What guards the machine from clients, beside the limits of `admission`."""

    connections: int = 1_000
    of_one_key: int = 200
    unknown: int = 100  # that have not logged in
    login_seconds: float = 10.0
    message_seconds: float = 10.0  # to send the rest of a message
    send_seconds: float = 30.0  # in which a client reads something
    lookup_seconds: float = 5.0  # of a look into the catalogues


class Channel(asyncio.Protocol):
    """Messages of one client. `began` is called when it is there, `ended` when it is gone."""

    def __init__(self, limits: WireLimits, began: Callable[[], None], ended: Callable[[], None]) -> None:
        self._limits, self._began, self._on_end = limits, began, ended
        self.reader = Reader()
        self._out: list[bytes] = []
        self._size = 0  # of it, in bytes
        self._more: asyncio.Future[None] | None = None  # waits for bytes
        self._room: asyncio.Future[None] | None = None  # waits for the client to read
        self._transport: asyncio.Transport | None = None
        self.ended = False

    # -- what the event loop calls ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        first, self._transport = self._transport is None, transport
        if first:  # once more when TLS is begun
            if (
                used := transport.get_extra_info("socket")
            ) is not None:  # so that a client whose machine died is noticed
                used.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._began()

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        if len(self.reader) > MAX_SENT_AHEAD:
            self.transport.pause_reading()
        _wake(self._more)

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            _wake(self._more)
            _wake(self._room)
            self._on_end()

    # -- what a conversation calls ------------------------------------------------------------------------------------

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def peer(self) -> str:
        """The address of the other side; "" where it is not known."""
        name = self.transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else ""

    def say(self, *said: bytes) -> None:
        """Put something among what is sent next."""
        self._out += said
        self._size += sum(map(len, said))

    async def say_rows(self, rows: Iterable[bytes]) -> None:
        """Send many messages, as fast as the client reads them; others are served between."""
        for row in rows:
            self.say(row)
            if self._size > _TOGETHER:
                await self.flush()
                await asyncio.sleep(0)

    async def flush(self) -> None:
        """Send what there is to be said, and wait where the client does not read."""
        if self._out:
            out, self._out, self._size = b"".join(self._out), [], 0
            self._check()
            self.transport.write(out)
        if self._room is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._room), self._limits.send_seconds)
            except TimeoutError:
                self.transport.abort()
                raise Gone from None
        self._check()

    async def first(self) -> First:
        """The next message before the login."""
        await self.flush()
        while (found := self.reader.first()) is None:
            await self._bytes()
        return found

    async def next(self) -> Message:
        """The next message. One that has begun has to be whole in time."""
        if self._size > _TOGETHER:  # a client that sends and sends has to read, too
            await self.flush()
        found = self.reader.next()
        if found is None:
            await self.flush()
            while not len(self.reader):
                await self._bytes()
            found = self.reader.next()
            if found is None:  # not `or`: a message without fields is an empty tuple
                found = await self._rest()
        if len(self.reader) < MAX_SENT_AHEAD and not self.transport.is_closing():
            self.transport.resume_reading()
        return found

    async def _rest(self) -> Message:
        try:
            async with asyncio.timeout(self._limits.message_seconds):
                while (found := self.reader.next()) is None:
                    await self._bytes()
                return found
        except TimeoutError:
            raise Malformed from None

    async def _bytes(self) -> None:
        self._check()
        self._more = asyncio.get_running_loop().create_future()
        try:
            await self._more
        finally:
            self._more = None
        self._check()

    def _check(self) -> None:
        if self.ended or self.transport.is_closing():
            raise Gone

    async def encrypt(self, context: ssl.SSLContext) -> None:
        """Say yes to TLS, and begin it."""
        if len(self.reader):  # sent before the answer: nobody can tell whether it was our client
            raise Malformed
        self.say(b"S")
        await self.flush()
        loop, limit = asyncio.get_running_loop(), self._limits.login_seconds
        try:
            begun = await loop.start_tls(self.transport, self, context, server_side=True, ssl_handshake_timeout=limit)
        except (OSError, TimeoutError):  # the TLS of the client failed, or it went away
            raise Gone from None
        assert isinstance(begun, asyncio.Transport)
        self._transport = begun

    def close(self) -> None:
        """Send what is left, and end."""
        if not self.transport.is_closing():
            if self._out:
                self.transport.write(b"".join(self._out))
            if self.transport.get_write_buffer_size():  # what is not read would keep the connection for ever
                asyncio.get_running_loop().call_later(self._limits.send_seconds, self.transport.abort)
            self.transport.close()
        self._out, self._size = [], 0
        self._end()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
