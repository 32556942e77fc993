"""HTTP/1.1 over plain loopback sockets: as little client as there can be, so that the server is what is measured.

For the server's benchmark and its tests.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"


class Gone(Exception):
    """The other side closed before it had answered."""


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    closing: bool = False

    def json(self) -> Any:
        return json.loads(self.body)


def port_of(address: str) -> int:
    """The port of an address of this machine; no other is ever called from here."""
    parts = urlsplit(address)
    assert parts.hostname == LOOPBACK
    assert parts.port is not None
    return parts.port


def request(method: str, path: str, key: str | None = None, body: bytes | None = None, more: str = "") -> bytes:
    """The bytes of a request. `more` is further header lines, each with its end."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n{more}"
    if key is not None:
        lines += f"Authorization: Bearer {key}\r\n"
    if body is not None:
        lines += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return lines.encode("latin-1") + b"\r\n" + (body or b"")


def head_of(head: bytes) -> tuple[int, int | None, bool]:
    """The status, the length of the body (None: it comes in chunks), and whether the connection ends with it."""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    length = None if headers.get("transfer-encoding") == "chunked" else int(headers.get("content-length", 0))
    return int(first.split(" ")[1]), length, headers.get("connection") == "close"


class Client:
    """One connection that is kept, on an event loop."""

    def __init__(self, address: str, key: str) -> None:
        self._port, self._key = port_of(address), key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, body: bytes | None = None) -> Response:
        if self._streams is None:
            self._streams = await asyncio.open_connection(LOOPBACK, self._port, limit=2**24)
        reader, writer = self._streams
        writer.write(request(method, path, self._key, body))
        try:
            status, length, closing = head_of(await reader.readuntil(b"\r\n\r\n"))
            body = await _chunks(reader) if length is None else await reader.readexactly(length)
            response = Response(status, body, closing)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Gone from None
        if closing:
            await self.close()
        return response

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A body that comes in chunks: each with its length before it, the last of length 0."""
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return body


class Plain:
    """One connection that is kept, for a thread. `raw` sends any bytes at all."""

    def __init__(self, address: str, key: str | None = None, timeout: float = 600.0) -> None:
        self._port, self._key, self._timeout = port_of(address), key, timeout
        self._socket: socket.socket | None = None
        self._rest = b""

    def call(self, method: str, path: str, body: Any = None, more: str = "") -> Response:
        given = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.raw(request(method, path, self._key, given, more), head_only=method == "HEAD")

    def raw(self, sent: bytes, *, head_only: bool = False) -> Response:
        """The first response to these bytes."""
        try:
            if self._socket is None:
                self._socket = socket.create_connection((LOOPBACK, self._port), self._timeout)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(sent)
            while (end := self._rest.find(b"\r\n\r\n")) < 0:
                self._more()
            status, length, closing = head_of(self._rest[:end])
            self._rest = self._rest[end + 4 :]
            body = b"" if head_only else self._chunks() if length is None else self._take(length)
        except OSError:
            self.close()
            raise Gone from None
        if closing:
            self.close()
        return Response(status, body, closing)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def _take(self, length: int) -> bytes:
        while len(self._rest) < length:
            self._more()
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken

    def _chunks(self) -> bytes:
        body = b""
        while True:
            while (end := self._rest.find(b"\r\n")) < 0:
                self._more()
            size = int(self._take(end + 2), 16)
            body += self._take(size + 2)[:-2]
            if size == 0:
                return body

    def _more(self) -> None:
        assert self._socket is not None
        got = self._socket.recv(2**16)
        if not got:
            raise ConnectionResetError
        self._rest += got
