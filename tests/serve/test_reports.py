"""Reports for many: one is made at a time, priced before it is begun, kept, and for nobody who has left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sent_requests import Sent
from serving import Served

from support import PATIENCE, until
from tacit.serve.admission import Limits, Traffic
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.page import records, routes
from tacit.serve.server import Server
from tacit.serve.work import MAX_WORK, report_work
from tacit.session import Session
from tacit.show.report import page

REPORT = "/data/people/report"


class Made:
    """Counts the pages that are made. While it is `held` they wait."""

    def __init__(self) -> None:
        self.count, self.going = 0, threading.Event()
        self.going.set()

    def __call__(self, session: Session, *given: Any) -> str:
        self.count += 1
        assert self.going.wait(PATIENCE)
        return page(session, *given)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    found = Made()
    monkeypatch.setattr(records, "report_page", found)
    return found


def at(served: Served, scene: Callable[[Any], Awaitable[None]], limits: Limits | None = None) -> None:
    """Play a scene with an application of this data set that asks nobody for a key."""
    server = Server(served.state.datasets, None, limits or Limits(rate=1e9, burst=10**9), LOOPBACK, 8470)
    asyncio.run(scene(make_app(server, pages=routes())))


def asked(app: Any, path: str = REPORT) -> Sent:
    return Sent(app, "GET", path).body(b"")


def test_all_who_ask_share_one_report_until_the_ledger_goes_on(served: Served, made: Made) -> None:
    async def scene(app: Any) -> None:
        made.going.clear()
        many = [asked(app) for _ in range(10)]
        await asyncio.to_thread(until, lambda: made.count)
        assert await asked(app, "/v1/health").task == 200  # it is made beside the event loop
        made.going.set()
        assert [await one.task for one in many] == [200] * 10
        assert len({one.said for one in many}) == 1
        assert made.count == 1
        served.people.session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
        later = asked(app)
        assert await later.task == 200
        assert later.said != many[0].said
        assert later.said.decode() == page(served.people.session, "people")
        assert made.count == 2

    at(served, scene)


def test_nothing_is_made_for_who_has_left(served: Served, made: Made) -> None:
    async def scene(app: Any) -> None:
        made.going.clear()
        first = asked(app)
        await asyncio.to_thread(until, lambda: made.count)
        served.people.session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")  # for those who come now
        left = [Sent(app, "GET", REPORT) for _ in range(5)]
        for one in left:
            one._parts.put_nowait({"type": "http.disconnect"})
        made.going.set()
        assert await first.task == 200
        await asyncio.gather(*(one.task for one in left))
        assert made.count == 1

    at(served, scene)


def test_a_report_is_priced_before_it_is_begun(served: Served, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    session = served.people.session
    assert isinstance(session, Session)
    session.ask_many([f"SELECT COUNT(*) FROM data WHERE age < {i}0" for i in range(1, 9)])
    taken, working = list[tuple[int, int]](), Traffic.working

    @contextmanager
    def noted(self: Traffic, key: int, work: int) -> Iterator[None]:
        taken.append((work, made.count))
        with working(self, key, work):
            yield

    monkeypatch.setattr(Traffic, "working", noted)

    async def scene(app: Any) -> None:
        assert await asked(app).task == 200
        assert await asked(app).task == 200
        assert taken[0] == (report_work(session.entries), 0)
        assert taken[1][0] > 8 * 2**14
        assert taken[1][1] == 0
        assert len(taken) == 2  # the second costs nothing but its tokens
        before = session.entries
        session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
        assert await asked(app).task == 200
        assert taken[2] == (report_work(session.entries - before), 1)

    at(served, scene)
    assert report_work(10**9) == MAX_WORK


def test_whose_rate_is_used_up_gets_no_report_and_takes_none_from_others(served: Served, made: Made) -> None:
    async def scene(app: Any) -> None:
        assert await asked(app).task == 429  # the tokens of the request are there, those of the work are not
        assert made.count == 0

    at(served, scene, Limits(rate=1e-9, burst=12))

    async def later(app: Any) -> None:
        assert await asked(app).task == 200

    at(served, later)


def test_what_is_large_is_named_and_not_drawn(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.people.session.ask("SELECT age, COUNT(*) FROM data GROUP BY age")
    (bought,) = served.people.session.history
    entry = f"/data/people/entry/{bought.receipt.entry}-{bought.receipt.seal[:12]}"

    async def drawn(app: Any) -> None:
        report, page = asked(app), asked(app, entry)
        assert [await report.task, await page.task] == [200, 200]
        assert (b"too large" in report.said, b"too large" in page.said) == (large, large)
        assert (b"table of age</title>" in report.said) != large

    for large in (False, True):
        served.people.shown.clear()
        monkeypatch.setattr(records, "MAX_WORK", 500 if large else MAX_WORK)
        at(served, drawn)


def test_a_report_that_fails_is_begun_anew(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    session = served.people.session
    session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")

    def fails(*_: object) -> str:
        raise RuntimeError

    async def scene(app: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(records, "report_page", fails)
            assert await asked(app).task == 500
        again = asked(app)
        assert await again.task == 200
        assert again.said.decode() == page(session, "people")

    at(served, scene)
