"""Messages of PostgreSQL's protocol, as they should be and changed; and a connection without a socket to send them to.

Each client's messages follow from a seed. What comes back is judged: whole messages, and no error inside.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections import Counter
from typing import Any

from benchmarks.serving.frontend import (
    FLUSH,
    SYNC,
    TERMINATE,
    bind,
    cancelling,
    describe,
    execute,
    message,
    parse,
    query,
    startup,
    text,
)
from fuzzing import CONDITIONS, PIECES

from support import PATIENCE
from tacit.serve.keys import Key
from tacit.serve.postgres.connection import Connection
from tacit.serve.postgres.listener import Listener

NAMES = ["", "a", "b", "é", "x" * 70]
VALUES = [
    b"F",
    b"20",
    b"",
    b"\0",
    b"t",
    b"1e999",
    b"2020-01-01",
    b"\xff\xfe",
    b"NaN",
    b"9" * 400,
    struct.pack("!q", 20),
    None,
]
TYPES = [0, 16, 20, 21, 23, 25, 700, 701, 1043, 1082, 1114, 1184, 1700, 705, 1009, 2**32 - 1]
STATEMENTS = [
    "SELECT COUNT(*) FROM data", "SELECT sex, COUNT(*) FROM people GROUP BY sex", "SELECT DISTINCT age FROM people",
    "SELECT COUNT(*) FROM people WHERE sex = $1", "SELECT COUNT(*) FROM data WHERE age BETWEEN $1 AND $2 AND pay < $3",
    "EXPLAIN SELECT COUNT(*) FROM data WHERE active", "COPY (SELECT COUNT(*) FROM data) TO STDOUT (FORMAT csv, HEADER)",
    "COPY people FROM STDIN", "BEGIN", "COMMIT", "SET a.b = 'c'", "SHOW ALL", "SHOW server_version", "RESET ALL",
    "DISCARD ALL", "DEALLOCATE a", "SAVEPOINT s", "", ";", ";;;", "SELECT", "SELECT 'a", "$$", "/*", "SELECT $0", "\\d",
    "SET client_encoding = x", "CLOSE ALL", "LISTEN a", "EXPLAIN (", "COPY (", "COPY ((", "SET", "SHOW",
    "DECLARE c CURSOR FOR SELECT 1", "EXPLAIN", "COPY", "SELECT * FROM people", "TABLE people", "FETCH 1 FROM c",
    "PREPARE a (int, text) AS SELECT COUNT(*) FROM data WHERE age < $1 AND sex = $2", "EXECUTE a (20, 'F')", "PREPARE",
    "EXECUTE a (20, NULL)", "EXECUTE a (", "EXECUTE a ()", "EXECUTE a (-1, +2, DATE '2020-01-01')", "FETCH",
    "DECLARE c CURSOR WITH HOLD FOR SELECT sex, COUNT(*) FROM people GROUP BY sex", "FETCH ALL FROM c", "MOVE 1 IN c",
    "FETCH 99999999999999999999 FROM c", "FETCH 1e9 FROM c", "FETCH NEXT c", "CLOSE c", "DECLARE c", "EXECUTE",
    "DECLARE c BINARY CURSOR FOR", "PREPARE a AS", "PREPARE a () AS SELECT 1", "FETCH FORWARD FROM c", "MOVE ALL",
]  # fmt: skip
CATALOGUES = [
    "SELECT 1", "SELECT $1::int", "SELECT * FROM pg_class WHERE oid = $1::oid", "SELECT * FROM tacit.values LIMIT 3",
    "SELECT current_setting('a')", "SELECT * FROM nothing", "SELECT f(1)", "SELECT 'people'::regclass", "VALUES (1)",
]  # fmt: skip


class Maker:
    """Messages from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def statement(self) -> str:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.5:
            return rng.choice(STATEMENTS)
        if kind < 0.51:  # each takes an engine a while
            return rng.choice(CATALOGUES)
        if kind < 0.75:
            return f"SELECT COUNT(*) FROM people WHERE {rng.choice(CONDITIONS)}"
        return (
            " ".join(rng.choices(PIECES, k=rng.randint(1, 8)))
            if kind < 0.9
            else rng.choice(STATEMENTS)[: rng.randint(0, 30)]
        )

    def whole(self) -> bytes:
        """A message as a client would send it."""
        rng = self.rng
        name, portal = rng.choice(NAMES), rng.choice(NAMES)
        values = rng.choices(VALUES, k=rng.choice([0, 0, 1, 2, 3]))
        match rng.randrange(16):
            case 0 | 1 | 2:
                return query(self.statement())
            case 3 | 4 | 5:
                return parse(self.statement(), name, tuple(rng.choices(TYPES, k=rng.choice([0, 0, 1, 3]))))
            case 6 | 7:
                return bind(values, portal, name, tuple(rng.choices([0, 1], k=rng.choice([0, 1, 2]))))
            case 8:
                return describe(portal, portal=rng.random() < 0.5)
            case 9 | 10:
                return execute(portal, rng.choice([0, 0, 1, 2, 2**31 - 1, -1]))
            case 11:
                return message(b"C", rng.choice([b"S", b"P"]) + text(name))
            case 12 | 13:
                return SYNC
            case 14:
                return rng.choice(
                    [FLUSH, message(b"d", b"abc"), message(b"c"), message(b"f", text("no")), message(b"F", b"\0\0")]
                )
        return rng.choice([TERMINATE, message(b"p", b"secret"), startup("ana"), cancelling(1, 2), SYNC, SYNC])

    def changed(self, sent: bytes) -> bytes:
        """The same with something wrong in it."""
        rng, data = self.rng, bytearray(sent)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(7):
                case 0 | 1:
                    data[at : at + 1] = bytes([rng.randrange(256)])
                case 2:
                    del data[at : at + rng.randint(1, 8)]
                case 3:
                    data[at:at] = rng.randbytes(rng.randint(1, 8))
                case 4:
                    data[1:5] = struct.pack("!I", rng.choice([0, 3, 4, 5, len(data), 2**20, 2**31, 2**32 - 1]))
                case 5:
                    data[:1] = bytes([rng.randrange(256)])
                case 6:
                    data[at:at] = data[: rng.randrange(len(data) + 1)]
        return bytes(data)

    def body_changed(self, sent: bytes) -> bytes:
        """The same kind of message with another body, and the right length."""
        return message(sent[:1], self.changed(sent)[5:])

    def next(self) -> bytes:
        sent, kind = self.whole(), self.rng.random()
        return sent if kind < 0.6 else self.body_changed(sent) if kind < 0.85 else self.changed(sent)


class Pipe(asyncio.Transport):
    """Takes what a connection says, and is read by nobody but the judge."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self._closing = bytearray(), False

    def write(self, data: Any) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self._closing = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


async def converse(listener: Listener, maker: Maker, key: Key | None, most: int, told: Counter[str]) -> int:
    """One connection, with its key already shown or without; how many messages it took. What is said is judged."""
    pipe, connection = Pipe(), listener._connection()
    if key is not None:

        async def enter(channel: object) -> tuple[Key, dict[str, str]]:
            assert key is not None
            return key, {"user": key.name, "database": "people"}

        connection._enter = enter  # type: ignore[method-assign]
    connection.channel.connection_made(pipe)
    sent = 0
    for sent in range(1, most + 1):
        data = (
            maker.next() if key is not None else maker.changed(startup("rea", "people") if sent == 1 else maker.whole())
        )
        cut = maker.rng.randrange(len(data) + 1) if maker.rng.random() < 0.2 else 0
        for part in (data[:cut], data[cut:]):
            if part:
                connection.channel.data_received(part)
        if maker.rng.random() < 0.5:  # the others come while it is still busy
            await asyncio.wait_for(_idle(connection), PATIENCE)
        if pipe.is_closing():
            break
    await asyncio.wait_for(_idle(connection), PATIENCE)
    connection.channel.eof_received()
    await asyncio.wait_for(asyncio.shield(connection.task), PATIENCE)
    judge(bytes(pipe.said), told)
    return sent


async def _idle(connection: Connection) -> None:
    """Until it waits for more, or has ended."""
    await asyncio.sleep(0)
    while not connection.task.done() and connection.channel._more is None:
        await asyncio.sleep(0.0002 if connection._talk.asking is not None else 0)


def judge(said: bytes, told: Counter[str]) -> None:
    """Whole messages, and errors of the client's alone."""
    at = 0
    while at < len(said):
        kind, (length,) = said[at : at + 1], struct.unpack_from("!i", said, at + 1)
        assert kind in b"RKSZTDCEINstn123vHdc", (kind, said[at : at + 40])
        body = said[at + 5 : at + 1 + length]
        assert len(body) == length - 4
        at += 1 + length
        told[kind.decode()] += 1
        if kind == b"E":
            code = next(part[1:] for part in body.split(b"\0") if part[:1] == b"C").decode()
            told[code] += 1
            assert code != "XX000", body
