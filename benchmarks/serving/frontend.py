"""PostgreSQL's protocol from the client's side over loopback sockets: as little client as there can be.

For the benchmark of the protocol and for its tests, which also send what no client would.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import socket
import struct
from collections.abc import Generator
from typing import NamedTuple

from benchmarks.serving.wire import LOOPBACK, Gone

PROTOCOL = 3 << 16


class Said(NamedTuple):
    """A message of the server."""

    kind: bytes
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """Of an error or a notice."""
        parts = self.body.rstrip(b"\0").split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts if part}

    @property
    def row(self) -> list[bytes | None]:
        (count,), at = struct.unpack_from("!H", self.body), 2
        found: list[bytes | None] = []
        for _ in range(count):
            (length,) = struct.unpack_from("!i", self.body, at)
            at += 4
            found.append(None if length < 0 else self.body[at : at + length])
            at += max(0, length)
        return found


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def text(*words: str) -> bytes:
    return b"".join(word.encode() + b"\0" for word in words)


def startup(user: str, database: str = "", **more: str) -> bytes:
    given = {"user": user, **({"database": database} if database else {}), **more}
    body = struct.pack("!i", PROTOCOL) + text(*(word for pair in given.items() for word in pair)) + b"\0"
    return message(b"", body)


def cancelling(process: int, secret: int) -> bytes:
    return message(b"", struct.pack("!iII", 80877102, process, secret))


def query(statement: str) -> bytes:
    return message(b"Q", text(statement))


def parse(statement: str, name: str = "", types: tuple[int, ...] = ()) -> bytes:
    return message(b"P", text(name, statement) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(values: list[bytes | None], portal: str = "", name: str = "", formats: tuple[int, ...] = ()) -> bytes:
    shown = b"".join(b"\xff\xff\xff\xff" if v is None else struct.pack("!i", len(v)) + v for v in values)
    results = struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    return message(b"B", text(portal, name) + struct.pack("!HH", 0, len(values)) + shown + results)


def describe(name: str = "", *, portal: bool = True) -> bytes:
    return message(b"D", (b"P" if portal else b"S") + text(name))


def execute(portal: str = "", most: int = 0) -> bytes:
    return message(b"E", text(portal) + struct.pack("!i", most))


SYNC, FLUSH, TERMINATE = message(b"S"), message(b"H"), message(b"X")


def login(key: str) -> Generator[bytes, Said, None]:
    """SCRAM: what to send, given what the server said. Ends when the server has shown that it knows the key."""
    said = yield b""
    assert said.body.startswith(struct.pack("!i", 10)), said
    mine = f"n=,r={secrets.token_urlsafe(18)}"
    first = f"n,,{mine}".encode()
    said = yield message(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(first)) + first)
    if said.kind == b"E":
        raise PermissionError(said.fields["M"])
    theirs = said.body[4:].decode()
    given = dict(part.split("=", 1) for part in theirs.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", key.encode(), base64.b64decode(given["s"]), int(given["i"]))
    bare = f"c=biws,r={given['r']}"
    spoken = f"{mine},{theirs},{bare}".encode()
    own = hmac.digest(salted, b"Client Key", "sha256")
    proof = hmac.digest(hashlib.sha256(own).digest(), spoken, "sha256")
    shown = base64.b64encode(bytes(a ^ b for a, b in zip(own, proof, strict=True))).decode()
    said = yield message(b"p", f"{bare},p={shown}".encode())
    if said.kind == b"E":
        raise PermissionError(said.fields["M"])
    signed = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), spoken, "sha256")
    assert said.body[4:] == b"v=" + base64.b64encode(signed)


class Frontend:
    """One connection, for a thread. Without a user nothing is said at first."""

    def __init__(self, port: int, user: str = "", key: str = "", database: str = "", timeout: float = 600.0) -> None:
        self.socket = socket.create_connection((LOOPBACK, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self.process = self.secret = 0
        if user:
            self._enter(user, key, database)

    def _enter(self, user: str, key: str, database: str) -> None:
        self.send(startup(user, database))
        steps = login(key)
        next(steps)
        try:
            while True:
                self.send(steps.send(self.read()))
        except StopIteration:
            pass
        while (said := self.read()).kind != b"Z":
            if said.kind == b"E":
                raise PermissionError(said.fields["M"])
            if said.kind == b"K":
                self.process, self.secret = struct.unpack("!II", said.body)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> Said:
        """The next message; `Gone` where the server has closed."""
        while len(self._rest) < 5 or len(self._rest) < 1 + struct.unpack_from("!i", self._rest, 1)[0]:
            try:
                got = self.socket.recv(2**16)
            except ConnectionError:
                got = b""
            if not got:
                raise Gone
            self._rest += got
        (length,) = struct.unpack_from("!i", self._rest, 1)
        said, self._rest = Said(self._rest[:1], self._rest[5 : 1 + length]), self._rest[1 + length :]
        return said

    def until_ready(self) -> list[Said]:
        found = [self.read()]
        while found[-1].kind != b"Z":
            found.append(self.read())
        return found

    def ask(self, *parts: bytes) -> list[Said]:
        """What the server says to these messages, up to its next `ready`."""
        self.send(b"".join(parts))
        return self.until_ready()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Frontend:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Asking:
    """One connection, on an event loop."""

    def __init__(self, port: int, user: str, key: str, database: str = "") -> None:
        self._port, self._who = port, (user, key, database)

    async def open(self) -> None:
        user, key, database = self._who
        self._reader, self._writer = await asyncio.open_connection(LOOPBACK, self._port, limit=2**24)
        self._writer.write(startup(user, database))
        steps = login(key)
        next(steps)
        try:
            while True:
                self._writer.write(steps.send(await self._read()))
        except StopIteration:
            pass
        await self._until_ready()

    async def ask(self, sent: bytes) -> list[Said]:
        self._writer.write(sent)
        return await self._until_ready()

    async def _read(self) -> Said:
        head = await self._reader.readexactly(5)
        return Said(head[:1], await self._reader.readexactly(int.from_bytes(head[1:], "big") - 4))

    async def _until_ready(self) -> list[Said]:
        found = [await self._read()]
        while found[-1].kind != b"Z":
            found.append(await self._read())
        return found

    async def close(self) -> None:
        self._writer.write(TERMINATE)
        self._writer.close()
