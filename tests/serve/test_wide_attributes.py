"""Attributes of a million values: what is asked about them in a few bytes holds up nobody, and is paid for.

Nothing here is decided by the clock: what is worked out is counted, and what reads a statement waits for the test.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from sent_requests import JSON, Sent, at
from serving import Serve, Served

import tacit
from support import PATIENCE, counted
from tacit.errors import InvalidQuery
from tacit.model import formula, values
from tacit.model.attribute import Attribute
from tacit.serve import api, question, work
from tacit.serve.admission import WORK_A_TOKEN, Limits, Traffic
from tacit.serve.postgres import select
from tacit.serve.refusal import Refusal
from tacit.serve.work import MAX_WORK, Meter

WIDE = tacit.Domain({"wide": tacit.integer(0, 999_999), "sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99)})
BINS = "SELECT FLOOR(wide / 100) * 100 AS b, COUNT(*) FROM data GROUP BY b"
SUMS = "SELECT sex, age, SUM(wide), AVG(wide) FROM data GROUP BY sex, age"
GROUPED = "SELECT FLOOR(age / 20) * 20 AS twenties, COUNT(*) FROM data GROUP BY twenties"


@pytest.mark.parametrize("statement", [BINS, SUMS])
def test_what_is_too_much_is_refused_before_it_is_worked_out(statement: str) -> None:
    meter = Meter()
    with (
        counted(Attribute, "label") as labels,
        counted(values.Integers, "label") as made,
        counted(formula, "bounds_of") as middles,
        pytest.raises(Refusal) as refused,
    ):
        question.read(statement, WIDE, None, meter)
    assert refused.value.code == "too_much_work"
    assert (labels[0], middles[0]) == (0, 0)
    assert made[0] <= 10_000  # one for each group, and not again for each place where the group stands
    assert meter.work > MAX_WORK  # which is charged


def test_wide_groups_are_read_once() -> None:
    """The same words stand in SELECT, in GROUP BY and in ORDER BY."""
    bins = "FLOOR(wide / 1000) * 1000"
    with counted(values.Integers, "label") as made, pytest.raises(Refusal):
        question.read(f"SELECT {bins}, COUNT(*) FROM data GROUP BY {bins} ORDER BY {bins}", WIDE)
    assert made[0] <= 1_000


def test_each_column_of_a_table_is_work_of_its_own() -> None:
    """A second column does not make a table cheaper: its cells are still counts that go through a million values."""
    wide = "SELECT FLOOR(wide / 200) * 200 AS b, {} FROM data GROUP BY b"
    columns = ("COUNT(*)", "COUNT(*), COUNT(*) FILTER (WHERE age < 50), COUNT(*) FILTER (WHERE sex = 'F')")
    for listed in columns:
        with pytest.raises(Refusal, match="goes through"):
            question.read(wide.format(listed), WIDE)


def test_listed_values_are_a_table_too() -> None:
    with pytest.raises(InvalidQuery, match="1,000,000 cells; over HTTP the most is 100,000"):
        question.read("SELECT DISTINCT wide FROM data", WIDE)
    assert question.read("SELECT DISTINCT sex, age FROM data", WIDE)


def _noted(in_pool: list[Any]) -> Callable[..., Awaitable[Any]]:
    async def run(work: Callable[..., Any], *given: Any) -> Any:
        in_pool.append(work)
        return work(*given)

    return run


@pytest.mark.parametrize(
    ("asked", "pooled"),
    [
        ("SELECT COUNT(*) FROM data WHERE age < 50 AND sex = 'F'", False),
        ({"count": {"sex": "F"}}, False),
        (GROUPED, True),
        ("SELECT COUNT(*) FROM data WHERE (sex = 'F' AND age < 50) OR (active AND age < 30)", True),
        ("SELECT COUNT(*) FROM data WHERE nothing = 1", True),  # what is wrong with it may take long to say
        ({"cdf": "age"}, True),
    ],
)
def test_only_the_plainest_questions_are_read_on_the_loop(
    served: Served, asked: Any, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pool = list[Any]()
    monkeypatch.setattr(api, "run_in_threadpool", _noted(in_pool))
    served.ana.post("/v1/people/ask", json={"question": asked})
    assert (api.read in in_pool) == pooled


def test_nothing_about_a_wide_table_is_read_on_the_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    in_pool = list[Any]()
    monkeypatch.setattr(api, "run_in_threadpool", _noted(in_pool))
    for asked, most, pooled in (("F", 10, False), ("M", 9, True)):  # age has ten values
        monkeypatch.setattr(question, "_SMALL", most)
        served.ask({"count": {"sex": asked}})
        assert (api.read in in_pool) == pooled
    for small in ("SELECT COUNT(*) FROM data", {"count": {"sex": "F"}}):
        assert question.read_at_once(small, WIDE) is None


def test_health_answers_while_a_statement_is_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on, read = threading.Event(), threading.Event(), api.read

    def waiting(*given: Any) -> Any:
        reading.set()
        assert go_on.wait(PATIENCE)
        return read(*given)

    monkeypatch.setattr(api, "read", waiting)

    async def scene(app: Any) -> None:
        key = (b"authorization", f"Bearer {served.keys['ana']}".encode())
        asked = Sent(app, "POST", "/v1/people/ask", JSON, key).body(json.dumps({"question": GROUPED}).encode())
        try:
            # Were it read on the loop, nothing would let it go on, and the wait in it would end the test.
            while not reading.is_set():
                await asyncio.sleep(0)
            assert not go_on.is_set()
            assert await Sent(app, "GET", "/v1/health").task == 200
            assert not asked.task.done()
        finally:
            go_on.set()
        assert await asked.task == 200

    at(served, scene)


def test_over_the_wire_too_only_plain_counts_are_read_on_the_loop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = list[str]()
    read, at_once = select.read, select.read_at_once

    def noting(what: Callable[..., Any], *given: Any) -> Any:
        found = what(*given)
        if found is not None:
            where.append(threading.current_thread().name.partition("_")[0])
        return found

    monkeypatch.setattr(select, "read", lambda *given: noting(read, *given))
    monkeypatch.setattr(select, "read_at_once", lambda *given: noting(at_once, *given))
    login = {"host": "127.0.0.1", "port": served.wire, "user": "ana", "dbname": "people"}
    with psycopg.connect(password=served.keys["ana"], autocommit=True, **login) as client:
        client.execute("SELECT COUNT(*) FROM data WHERE age < 50")
        loop = set(where)
        where.clear()
        client.execute(GROUPED)
        some = GROUPED.replace("GROUP", "WHERE sex = %s GROUP")
        for sex in "FM":
            client.execute(some, [sex], prepare=True)  # described before it is bound
    assert "asyncio" not in loop
    assert len(loop) == 1
    assert set(where) == {"asyncio"}


def test_what_is_refused_takes_of_the_rate_by_its_work(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(limits=Limits(rate=1e-6, burst=20))
    monkeypatch.setattr(work, "MAX_WORK", 5 * WORK_A_TOKEN)

    def asked(who: str, sent: Any) -> int:
        return served.clients[who].post("/v1/people/ask", json={"question": sent}).status_code

    assert [asked("rea", "SELECT COUNT(*) FROM nothing") for _ in range(3)] == [422] * 3  # its work is little
    monkeypatch.setattr(work, "COUNT_WORK", 8 * WORK_A_TOKEN)
    assert [asked("rea", GROUPED) for _ in range(3)] == [422, 422, 429]
    assert asked("ana", "SELECT COUNT(*) FROM nothing") == 422  # a rate of her own
    for refused in (
        lambda: served.bob.get(f"/v1/people/ask?sql={quote(GROUPED)}"),
        lambda: served.ana.post("/v1/people/ask_many", json={"questions": [{"count": {"sex": "F"}}]}),
    ):
        codes = [refused().json()["error"]["code"] for _ in range(4)]
        assert codes == ["too_much_work"] * 3 + ["rate_limited"]


def test_what_was_refused_may_take_more_than_there_is() -> None:
    now = [0.0]
    traffic = Traffic(Limits(rate=1.0, burst=10), lambda: now[0])
    for _ in range(3):  # at the same time: each was let in before any was charged
        traffic.take(1)
    for _ in range(3):
        traffic.charge(1, 100 * WORK_A_TOKEN)
    with pytest.raises(Refusal) as refused:
        traffic.take(1)
    assert refused.value.retry_after == 3 + 3 * 10 - 10 + 1  # no request is charged more than a bucket holds
    traffic.take(2)  # somebody else
    now[0] = 100.0
    traffic.take(1)


# -- curves -----------------------------------------------------------------------------------------------------------

CURVES = [
    ({"cdf": "age"}, "the curve of age would have 10 cells"),
    ({"cdf": "age", "strategy": "cells"}, "the curve of age would have 10 cells"),
    ({"histogram": "age"}, "the histogram would have 10 cells"),
    ({"histogram": "age", "width": 10}, "with a width of 12 or more"),
    ("SELECT DISTINCT age FROM data", "the table would have 10 cells"),
    ("SELECT age, COUNT(*) FROM data GROUP BY age", "the table would have 10 cells"),
]


@pytest.mark.parametrize(("asked", "words"), CURVES)
def test_a_curve_of_too_many_cells_is_refused_before_it_is_queued(
    served: Served, monkeypatch: pytest.MonkeyPatch, asked: Any, words: str
) -> None:
    served.ask({"count": {"sex": "F"}})
    session, spent = served.people.session, served.people.session.spent
    monkeypatch.setattr(work, "MAX_SERVED_CELLS", 9)
    with monkeypatch.context() as patch:
        patch.setattr(type(served.people), "ask", lambda *given, **named: pytest.fail("it was queued"))
        patch.setattr(type(served.people), "price", lambda *given, **named: pytest.fail("its price was queued"))
        for path in ("/v1/people/ask", "/v1/people/cost"):
            refused = served.ana.post(path, json={"question": asked})
            assert refused.status_code == 422
            error = refused.json()["error"]
            assert error["code"] == "invalid_query"
            assert error["nothing_spent"] is True
            assert words in error["message"]
            assert "over HTTP the most is 9" in error["message"]
        form = {"sql": asked} if isinstance(asked, str) else {"question": json.dumps(asked)}
        assert served.rea.get("/v1/people/ask", params=form).status_code == 422
    assert session.spent == spent


@pytest.mark.parametrize(("asked", "_"), CURVES)
def test_a_curve_of_as_many_cells_as_there_may_be_is_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch, asked: Any, _: str
) -> None:
    monkeypatch.setattr(work, "MAX_SERVED_CELLS", 10)
    assert served.ask(asked)


def test_wider_bins_of_a_wide_attribute_are_answered(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_SERVED_CELLS", 9)
    assert len(served.ask({"histogram": "age", "width": 20})["rows"]) == 5
    assert served.ask({"quantile": "age", "q": 0.5})
    with counted(Attribute, "below") as cuts, pytest.raises(InvalidQuery, match="wider bins"):
        question.read({"histogram": "wide", "width": 3}, WIDE)
    assert cuts[0] == 0  # nor are they looked for


def test_a_curve_over_the_wire_is_a_table(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_SERVED_CELLS", 9)
    login = {"host": "127.0.0.1", "port": served.wire, "user": "ana", "dbname": "people"}
    with psycopg.connect(password=served.keys["ana"], autocommit=True, **login) as client:
        for statement in ("SELECT DISTINCT age FROM data", "SELECT age, COUNT(*) FROM data GROUP BY age"):
            with pytest.raises(psycopg.Error, match="the most is 9"):
                client.execute(statement)
    assert not served.people.session.spent.atoms


def test_a_curve_is_priced_by_what_is_simulated() -> None:
    """Its band takes 199 simulated releases at least, each of which has an answer for every bin."""
    for bins in (100, 5_000, 100_000):
        domain = tacit.Domain({"age": tacit.integer(0, bins - 1)})
        assert 199 * bins <= question.read({"cdf": "age"}, domain).work <= MAX_WORK
    assert question.read({"quantile": "wide", "q": 0.5}, WIDE).work == MAX_WORK  # it comes with the same band
    assert question.read({"cdf": "age"}, WIDE).light  # all that is kept of it is a name
