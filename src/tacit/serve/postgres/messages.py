"""The messages of PostgreSQL's protocol as bytes: what a client sends is read, what the server says is written. Pure.

A client is not trusted: every length is checked against what was announced, and what does not fit ends the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

MAX_STARTUP = 10_000  # bytes of a message before a client is known
MAX_MESSAGE = 2**20  # and after
MAX_WIRE_VALUES = 2**15  # parameters of one statement, columns of one row
_VERSION, SSL, GSS, CANCEL = 3 << 16, 80877103, 80877104, 80877102


class Malformed(Exception):
    """What the client sent is no message of the protocol."""


class Startup(NamedTuple):
    version: int
    parameters: Mapping[str, str]


class Encryption(NamedTuple):
    tls: bool  # else GSS


class Cancel(NamedTuple):
    process: int
    secret: int


class Query(NamedTuple):
    text: str


class Parse(NamedTuple):
    name: str
    text: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    portal: bool  # else a statement
    name: str


class Close(NamedTuple):
    portal: bool
    name: str


class Execute(NamedTuple):
    portal: str
    most: int  # rows; 0 for all


class Password(NamedTuple):
    data: bytes


class Sync(NamedTuple):
    pass


class Flush(NamedTuple):
    pass


class Terminate(NamedTuple):
    pass


class CopyIn(NamedTuple):
    """Data for a COPY FROM STDIN, which no statement here begins: skipped, as the protocol has it."""


class FunctionCall(NamedTuple):
    """A call by the fast path, which clients gave up long ago, and which is not answered."""


First = Startup | Encryption | Cancel
Message = (
    Query | Parse | Bind | Describe | Close | Execute | Password | Sync | Flush | Terminate | CopyIn | FunctionCall
)  # fmt: skip


class Body:
    """The body of one message, read from the front. What is missing or left over is `Malformed`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise Malformed
        found, self._at = self._data[self._at : end], end
        return found

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def count(self) -> int:
        found = int.from_bytes(self.take(2), "big")
        if found > MAX_WIRE_VALUES:
            raise Malformed
        return found

    def formats(self) -> tuple[int, ...]:
        found = tuple(int.from_bytes(self.take(2), "big") for _ in range(self.count()))
        if any(code > 1 for code in found):
            raise Malformed
        return found

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise Malformed
        found, self._at = self._data[self._at : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise Malformed from None

    def value(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.take(length)

    def end(self) -> None:
        if self._at != len(self._data):
            raise Malformed


def _parse(body: Body) -> Message:
    return Parse(body.text(), body.text(), tuple(body.int32() & 0xFFFFFFFF for _ in range(body.count())))


def _bind(body: Body) -> Message:
    portal, statement, formats = body.text(), body.text(), body.formats()
    values = tuple(body.value() for _ in range(body.count()))
    if len(formats) not in (0, 1, len(values)):
        raise Malformed
    return Bind(portal, statement, formats, values, body.formats())


def _of(kind: type[Describe] | type[Close]) -> Callable[[Body], Message]:
    def read(body: Body) -> Message:
        which = body.take(1)
        if which not in (b"S", b"P"):
            raise Malformed
        return kind(which == b"P", body.text())

    return read


def _skipped(kind: type[CopyIn] | type[FunctionCall]) -> Callable[[Body], Message]:
    def read(body: Body) -> Message:
        body.rest()
        return kind()

    return read


_READERS: dict[int, Callable[[Body], Message]] = {
    ord("Q"): lambda body: Query(body.text()),
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): _of(Describe),
    ord("C"): _of(Close),
    ord("E"): lambda body: Execute(body.text(), max(0, body.int32())),
    ord("p"): lambda body: Password(body.rest()),
    ord("S"): lambda body: Sync(),
    ord("H"): lambda body: Flush(),
    ord("X"): lambda body: Terminate(),
    ord("d"): _skipped(CopyIn),
    ord("c"): _skipped(CopyIn),
    ord("f"): _skipped(CopyIn),
    ord("F"): _skipped(FunctionCall),
}


class Reader:
    """Messages out of bytes as they come. `feed` takes bytes; `first` and `next` give a message, or None as yet."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self.most = MAX_STARTUP

    def __len__(self) -> int:
        """How many bytes wait."""
        return len(self._buffer) - self._at

    def feed(self, data: bytes) -> None:
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def first(self) -> First | None:
        """A message of the kind that begins a connection: it has no letter."""
        found = self._take(0)
        if found is None:
            return None
        body = Body(found)
        code = body.int32()
        if code in (SSL, GSS):
            body.end()
            return Encryption(code == SSL)
        if code == CANCEL:
            process, secret = body.int32(), body.int32()
            body.end()
            return Cancel(process & 0xFFFFFFFF, secret & 0xFFFFFFFF)
        parameters: dict[str, str] = {}
        if code >> 16 == 3:
            while name := body.text():
                parameters[name] = body.text()
            body.end()
        return Startup(code, parameters)

    def next(self) -> Message | None:
        found = self._take(1)
        if found is None:
            return None
        body = Body(found)
        message = _READERS[self._kind](body)
        body.end()
        return message

    def _take(self, letter: int) -> bytes | None:
        """The body of the next message that begins with `letter` bytes and its length."""
        waiting = len(self)
        if letter and waiting:
            # A letter that is none is refused at once: the length after it would mean nothing.
            self._kind = self._buffer[self._at]
            if self._kind not in _READERS:
                raise Malformed
        if waiting < letter + 4:
            return None
        start = self._at + letter
        length = int.from_bytes(self._buffer[start : start + 4], "big")
        if not 4 <= length <= self.most:
            raise Malformed
        if waiting < letter + length:
            return None
        found = bytes(self._buffer[start + 4 : start + length])
        self._at = start + length
        return found


# -- what the server says ---------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A column of a result: its name, and the type by PostgreSQL's number and size."""

    name: str
    type: int
    size: int = -1


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def text(words: str) -> bytes:
    return words.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATED = message(b"R", struct.pack("!i", 0))
PARSED, BOUND_REPLY, CLOSED = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY_QUERY, SUSPENDED = message(b"n"), message(b"I"), message(b"s")
COPY_DONE = message(b"c")


def sasl(mechanisms: Iterable[str]) -> bytes:
    return message(b"R", struct.pack("!i", 10) + b"".join(map(text, mechanisms)) + b"\0")


def sasl_more(words: str, *, final: bool) -> bytes:
    return message(b"R", struct.pack("!i", 12 if final else 11) + words.encode())


def negotiated(minor: int, options: Sequence[str]) -> bytes:
    """That a newer version of the protocol, or these of its options, are not spoken here."""
    return message(b"v", struct.pack("!ii", _VERSION | minor, len(options)) + b"".join(map(text, options)))


def parameter(name: str, value: str) -> bytes:
    return message(b"S", text(name) + text(value))


def backend_key(process: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!II", process, secret))


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def complete(tag: str) -> bytes:
    """That a statement is done; the empty one has no tag."""
    return message(b"C", text(tag)) if tag else EMPTY_QUERY


def described(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    body = b"".join(
        text(field.name) + struct.pack("!ihIhih", 0, 0, field.type, field.size, -1, code)
        for field, code in zip(fields, formats, strict=True)
    )
    return message(b"T", struct.pack("!h", len(fields)) + body)


def parameters_described(types: Sequence[int]) -> bytes:
    return message(b"t", struct.pack("!H", len(types)) + b"".join(struct.pack("!I", type) for type in types))


def row(values: Sequence[bytes | None]) -> bytes:
    return message(b"D", len(values).to_bytes(2, "big") + b"".join(map(measured, values)))


def measured(value: bytes | None) -> bytes:
    """A value after its length; NULL has the length -1."""
    return b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value


def copying(columns: int, *, binary: bool) -> bytes:
    codes = struct.pack("!h", int(binary)) * columns
    return message(b"H", struct.pack("!bh", int(binary), columns) + codes)


def copied(data: bytes) -> bytes:
    return message(b"d", data)


def said(kind: bytes, severity: str, code: str, sentence: str, **more: str) -> bytes:
    """An error (`E`) or a notice (`N`). `more` has further fields by their letter, as D="…" for the detail."""
    fields = {"S": severity, "V": severity, "C": code, "M": sentence, **more}
    return message(kind, b"".join(name.encode() + text(words) for name, words in fields.items()) + b"\0")
