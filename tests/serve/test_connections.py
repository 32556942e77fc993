"""Connections end before the system's limit does, downloads are one file, and nobody waits for a client that is silent.

Timers are either so long that they never fire here, or fire at once: nothing is decided by how long something took.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from serving import Served
from uvicorn import Config
from uvicorn.server import ServerState

import tacit
from support import PATIENCE
from tacit.serve import connections
from tacit.serve.connections import _AT_ONCE, BACKLOG, SPARE, BufferedTransport, Complaints, HttpConnection, room
from tacit.store import rows

REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
LARGE = 2**24  # bytes: more than the buffers of a socket hold
STEPS = 100_000  # of the event loop, until something that must happen has


async def app(scope: Any, receive: Any, send: Any) -> None:
    body = b"x" * (LARGE if scope["path"] == "/large" else 1)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(*, log_level: str = "critical", **settings: Any) -> AsyncIterator[tuple[int, ServerState]]:
    """A server with nothing behind it: its port, and its connections."""
    config, state = Config(app, log_config=None, log_level=log_level), ServerState()
    config.load()
    kind = type("Kind", (HttpConnection,), {"header_seconds": PATIENCE, "unread_seconds": PATIENCE, **settings})
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}, loop), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], state
    finally:
        server.close()


async def until(done: Callable[[], bool]) -> None:
    for _ in range(STEPS):
        if done():
            return
        await asyncio.sleep(0)
    pytest.fail("it never happens")


def played(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), PATIENCE))


def test_the_oldest_silent_connection_gives_way() -> None:
    async def scene() -> None:
        async with serving(most=3) as (port, state):
            silent = []
            for number in range(5):
                silent.append(await asyncio.open_connection("127.0.0.1", port))
                await until(lambda number=number: len(state.connections) == min(3, number + 1))
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(REQUEST)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            for old, _ in silent[:3]:  # two for those after them, one for the last
                with suppress(ConnectionResetError):
                    assert await old.read() == b""
            assert len(state.connections) <= 3
            silent[-1][1].write(REQUEST)  # the newest of the silent ones was left alone
            assert (await silent[-1][0].readline()).startswith(b"HTTP/1.1 200")

    played(scene)


def test_half_a_head_has_its_time_also_on_a_connection_that_was_used() -> None:
    async def scene() -> None:
        async with serving() as (port, state):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await until(lambda: bool(state.connections))
            (own,) = state.connections
            first = own._header
            writer.write(REQUEST)
            await reader.readuntil(b"x")
            assert first.cancelled()
            assert own._header is None
            writer.write(REQUEST[:5])
            await until(lambda: own._header is not None)
            own._header._run()  # the time is over
            await until(lambda: not state.connections)

    played(scene)


def test_what_is_not_read_ends() -> None:
    async def scene() -> None:
        async with serving() as (port, state):
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=2)
            writer.write(REQUEST.replace(b"/ ", b"/large "))
            await until(lambda: any(one._unread is not None for one in state.connections))
            (own,) = state.connections
            own._unread._run()
            await until(lambda: not state.connections)

    played(scene)


@pytest.mark.parametrize(
    ("soft", "hard", "others", "expected", "raised"),
    [
        (1 << 20, 1 << 20, 0, 1000, None),
        (256, 256, 0, 256 - BACKLOG - SPARE, None),
        (256, 4096, 0, 1000, 1000 + BACKLOG + SPARE),
        (256, 512, 0, 512 - BACKLOG - SPARE, 512),
        (1024, 1024, 1000, (1024 - 2 * BACKLOG - SPARE) // 2, None),
        (64, 64, 0, 1, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 0, 1000, None),
    ],
)
def test_connections_fit_below_the_systems_limit(
    soft: int, hard: int, others: int, expected: int, raised: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(connections.resource, "setrlimit", lambda _, new: asked.append(new))
    assert room(others=others) == expected
    assert asked == ([] if raised is None else [(raised, hard)])


def test_the_log_has_a_complaint_once(caplog: pytest.LogCaptureFixture) -> None:
    complain, loop = Complaints(), asyncio.new_event_loop()
    for _ in range(1000):
        complain(loop, {"message": "secret", "exception": OSError(24, "Too many open files: secret")})
    complain(loop, {"message": "secret"})
    loop.close()
    assert len(caplog.records) == 2
    assert "secret" not in caplog.text


def test_a_broken_body_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever has no key can send such bytes as often as he likes; an error inside is noted each time."""
    broken = REQUEST[:-2] + b"transfer-encoding: chunked\r\n\r\nzz\r\n"
    complain, logger = Complaints(), logging.getLogger("uvicorn.error")

    async def scene() -> None:
        async with serving(log_level="error") as (port, _):
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(broken)
                assert b" 400 " in await reader.read()
                writer.close()

    played(scene)
    try:
        assert len(caplog.records) == 1
        for _ in range(3):
            logger.error("ASGI callable returned without completing response.")
        assert len(caplog.records) == 2
        for _ in range(3):
            logger.error("an error inside", exc_info=ValueError())
        assert len(caplog.records) == 5
    finally:
        logger.removeFilter(complain.filter)


def test_downloads_are_one_file_that_grows(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = served.people
    served.ask({"count": {"sex": "F"}})
    first = people.published.edition()
    read, line_of = list[int](), rows.line_of
    monkeypatch.setattr(rows, "line_of", lambda row: read.append(row[0]) or line_of(row))
    assert [people.published.edition() for _ in range(32)] == [first] * 32
    assert len(read) == 0
    before = people.session.entries
    served.ask({"count": {"age": [20, 29]}})
    read.clear()
    second = people.published.edition()
    assert second.file == first.file
    assert set(read) == set(range(before + 1, people.session.entries + 1))  # no old entry is read again
    assert os.fstat(first.file).st_nlink == 0  # it has no name that a killed server could leave behind
    for name, edition in (("first", first), ("second", second)):
        tacit.verify(_saved(tmp_path / name, edition))
    tacit.publish(people.session, tmp_path / "alone")
    assert served.rea.get("/v1/people/published").content == (tmp_path / "alone").read_bytes()


def _saved(path: Path, edition: Any) -> Path:
    path.write_bytes(os.pread(edition.file, edition.size, 0) + edition.last)
    return path


class Pipe:
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        self.said: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def close(self) -> None:
        self.said.append("close")

    def is_closing(self) -> bool:
        return "close" in self.said


def test_a_head_goes_with_its_body_and_nothing_is_held_back() -> None:
    async def scene() -> None:
        pipe = Pipe()
        joined = BufferedTransport(pipe, asyncio.get_running_loop())  # type: ignore[arg-type]
        joined.write(b"head ")
        joined.write(b"body")
        assert pipe.said == []
        await asyncio.sleep(0)
        assert pipe.said == [b"head body"]
        joined.write(bytes(_AT_ONCE + 1))  # the transport has to know at once, so that it can say that it is too much
        assert len(pipe.said) == 2
        joined.write(b"last")
        joined.close()
        await asyncio.sleep(0)
        assert pipe.said[2:] == [b"last", "close"]

    played(scene)
