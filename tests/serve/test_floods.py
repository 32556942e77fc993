"""What strangers and greedy clients can do to a server: each limit is reached, and everybody else goes on.

Nothing here is decided by the clock: bodies that never end are held until the test lets them go.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sent_requests import JSON, Sent, at
from serving import Serve, Served, write_config

import tacit
from tacit.config import read_config
from tacit.serve import admission, api, question
from tacit.serve.admission import (
    MAX_LOGIN,
    MAX_SESSIONS,
    STRANGERS,
    STRANGERS_OF_ONE,
    WORK_OF_ONE,
    Limits,
    Traffic,
)
from tacit.serve.refusal import Refusal
from tacit.serve.schema import MAX_NESTED, parse
from tacit.serve.work import MAX_WORK
from tacit.show.events import SpendingTally, spending
from tacit.store import rows

WOMEN = {"question": {"count": {"sex": "F"}}}
OURS = (b"sec-fetch-site", b"same-origin")


async def until_read(bodies: list[Sent]) -> None:
    """Every one of them waits for the rest of its body."""
    for _ in range(1000):
        await asyncio.sleep(0)
    assert all(one._parts.empty() for one in bodies)


def test_a_login_is_small(served: Served) -> None:
    big = served.nobody.post("/v1/login", json={"key": [[]] * MAX_LOGIN}, headers={"origin": "http://127.0.0.1:8470"})
    assert big.status_code == 413
    chunks = (b" " for _ in range(MAX_LOGIN + 1))  # no length is announced
    kind = {"content-type": "application/json", "origin": "http://127.0.0.1:8470"}
    assert served.nobody.post("/v1/login", content=chunks, headers=kind).status_code == 413
    form = served.nobody.post("/login", data={"key": "a" * MAX_LOGIN}, headers={"origin": "http://127.0.0.1:8470"})
    assert form.status_code in (404, 413)  # 404 where the pages are not served


def test_long_bodies_are_read_in_the_pool_and_nests_are_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pool = []
    monkeypatch.setattr("tacit.serve.app.run_in_threadpool", _noted(in_pool))
    served.ask({"count": {"sex": "F"}})
    assert in_pool == []
    long = {"question": {"count": {"sex": {"in": ["F"] * 2000}}}}
    served.ana.post("/v1/people/ask", json=long)
    assert len(in_pool) == 1
    with pytest.raises(Refusal, match="lists and objects"):
        parse(json.dumps([[]] * MAX_NESTED).encode())


def _noted(calls: list[Any]) -> Callable[..., Awaitable[Any]]:
    async def run(work: Callable[..., Any], *given: Any) -> Any:
        calls.append(work)
        return work(*given)

    return run


def test_slow_bodies_hold_up_neither_health_nor_logins(served: Served) -> None:
    async def scene(app: Any) -> None:
        # From one address, then from many: more than there is room for.
        slow = [Sent(app, "POST", "/v1/login", JSON, OURS).body(b"{", more=True) for _ in range(STRANGERS_OF_ONE + 3)]
        slow += [
            Sent(app, "POST", "/v1/login", JSON, OURS, address=f"10.0.1.{i}").body(b"{", more=True)
            for i in range(STRANGERS)
        ]
        await until_read(slow)
        assert await Sent(app, "GET", "/v1/health").task == 200
        right = json.dumps({"key": served.keys["olga"]}).encode()
        assert await Sent(app, "POST", "/v1/login", JSON, OURS).body(right).task == 204
        await until_read(slow)
        for one in slow:  # the oldest gave way; the others are still read
            one.body(b"")
        statuses = [await one.task for one in slow]
        assert statuses.count(408) == len(slow) - STRANGERS + 1
        assert statuses[:3] == [408] * 3

    at(served, scene)


def test_slow_bodies_of_a_key_hold_no_place_of_anybody_else(serve: Serve) -> None:
    served = serve(limits=Limits(together=2, together_of_one=2))

    async def scene(app: Any) -> None:
        def asked(who: str) -> Sent:
            return Sent(app, "POST", "/v1/people/ask", JSON, (b"authorization", f"Bearer {served.keys[who]}".encode()))

        slow = [asked("rea").body(b"{", more=True) for _ in range(2)] + [asked("mia").body(b"{", more=True)]
        await until_read(slow)
        assert await asked("rea").task == 503  # has as many as one key may
        assert await asked("ana").body(json.dumps(WOMEN).encode()).task == 200
        for one in slow:
            one.body(b"}")
            assert await one.task == 400

    at(served, scene)


def test_wrong_logins_lock_out_no_right_one(serve: Serve) -> None:
    served = serve(limits=Limits(rate=1e-6, burst=3))
    headers = {"origin": "http://127.0.0.1:8470"}

    def login(key: str) -> int:
        return served.nobody.post("/v1/login", json={"key": key}, headers=headers).status_code

    assert [login("tacit_" + "a" * 43) for _ in range(5)] == [401] * 3 + [429] * 2
    assert login(served.keys["olga"]) == 204  # from the same address
    assert [login(served.keys["rea"]) for _ in range(4)] == [204] * 3 + [429]  # a key has a rate of its own
    assert login(served.keys["olga"]) == 204


def test_a_thousand_logins_end_the_sessions_of_nobody_else(serve: Serve) -> None:
    served = serve(limits=Limits(burst=10_000))
    headers = {"origin": "http://127.0.0.1:8470"}
    cookies = [
        served.nobody.post("/v1/login", json={"key": served.keys[who]}, headers=headers).headers["set-cookie"]
        for who in ("olga", *["rea"] * 1001)
    ]
    served.nobody.cookies.clear()

    def who(cookie: str) -> int:
        return served.nobody.get("/v1/whoami", headers={"cookie": cookie.partition(";")[0]}).status_code

    assert who(cookies[0]) == 200  # the owner is still there
    assert [who(cookie) for cookie in cookies[-MAX_SESSIONS - 1 : -MAX_SESSIONS + 1]] == [401, 200]
    assert len(served.state.logins._open) == 1 + MAX_SESSIONS


def test_a_large_body_takes_more_of_the_rate(serve: Serve) -> None:
    served = serve(limits=Limits(rate=1e-6, burst=10))
    text = json.dumps(WOMEN).encode()
    kind = {"content-type": "application/json"}
    padded = text + b" " * 5 * admission.BYTES_A_TOKEN
    assert served.ana.post("/v1/people/ask", content=padded, headers=kind).status_code == 200
    assert served.ana.post("/v1/people/ask", content=padded, headers=kind).status_code == 429
    assert served.ana.post("/v1/people/ask", content=text, headers=kind).status_code == 200


def test_work_is_priced_before_it_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch about a wide attribute: it is read as far as it fits, and nobody is asked."""
    wide = tacit.Domain({"id": tacit.integer(0, 999_999), "sex": tacit.category(["F", "M"])})
    batch = [{"count": {"id": [low, low + 9]}} for low in range(1_000)]
    made, key_of = [], question._key
    monkeypatch.setattr(question, "_key", lambda *given: made.append(1) or key_of(*given))
    with pytest.raises(Refusal, match="goes through more than") as refused:
        question.read_batch(batch, wide)
    assert (refused.value.status, refused.value.code) == (422, "too_much_work")
    assert len(made) <= 1 + MAX_WORK // (4 * 1_000_000)
    assert len(question.read_batch(batch[:20], wide)) == 20
    assert len(question.read_batch([{"count": {"sex": "F"}}] * 1_000, wide)) == 1_000


def test_the_work_under_way_is_bounded() -> None:
    traffic = Traffic(Limits(rate=1e-6, burst=300))
    with traffic.working(1, WORK_OF_ONE // 2):
        with pytest.raises(Refusal, match="Too many"), traffic.working(1, 1 + WORK_OF_ONE // 2):
            pass
        with traffic.working(2, WORK_OF_ONE), pytest.raises(Refusal, match="Too many"), traffic.working(3, WORK_OF_ONE):
            pass
    with pytest.raises(Refusal) as spent, traffic.working(2, WORK_OF_ONE):  # a wide question takes more of the rate
        pass
    assert spent.value.code == "rate_limited"
    with traffic.working(1, WORK_OF_ONE // 2):
        pass


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"count": {"age": [20, 39]}}, 2**13),
        ("SELECT sex, COUNT(*) FROM data GROUP BY sex", 2**13),
        ({"table": ["sex", "age"]}, 2**14),
        ({"cdf": "age"}, 2**17),  # its band is simulated, and each of its counts may have been told before
        ({"quantile": "age", "q": 0.5, "where": {"sex": "F"}}, 2**14),
        ({"range": {"age": [20, 39]}}, 2**14),
        ({"stump": "age", "predicts": "sex"}, 2**14),
    ],
)
def test_every_kind_has_a_price_in_work(served: Served, asked: Any, most: int) -> None:
    assert 0 < question.read(asked, served.people.session.domain).work <= most


def test_a_page_of_the_history_is_all_that_is_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    session = served.people.session
    for age in range(0, 90, 10):
        session.ask(f"SELECT COUNT(*) FROM data WHERE age BETWEEN {age} AND {age + 9}")
    read, line_of = list[int](), rows.line_of
    monkeypatch.setattr(rows, "line_of", lambda row: read.append(row[0]) or line_of(row))
    whole = served.rea.get("/v1/people/history?limit=100").json()["history"]
    assert len(whole) == 9
    for after, limit in ((0, 1), (0, 3), (whole[3]["entry"], 2), (whole[-1]["entry"], 100)):
        read.clear()
        page = served.rea.get(f"/v1/people/history?after={after}&limit={limit}").json()
        assert page["history"] == [line for line in whole if line["entry"] > after][:limit]
        assert page["next"] == (page["history"][-1]["entry"] if limit < 9 else None)
        assert len(read) <= limit + 1


def test_old_ledgers_get_the_index_that_pages_are_read_by(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path))
    with config.open() as session:
        session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    with closing(sqlite3.connect(config.ledger)) as file, file:
        file.execute("DROP INDEX outcomes")
    with config.open() as session:
        assert len(session.history_after(0, 10)) == 1
        assert session.told == 0


def test_what_was_spent_is_added_up_as_it_is_bought(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    session, tally = served.people.session, SpendingTally()
    for ask in ("sex, COUNT(*) FROM data GROUP BY sex", "COUNT(*) FROM data WHERE age < 50", "MEDIAN(age) FROM data"):
        session.ask(f"SELECT {ask}")
        assert spending(tally.catch_up(session), session) == spending(SpendingTally().catch_up(session), session)
    assert set(tally.number) == {"table", "count", "range"}
    monkeypatch.setattr(rows, "line_of", lambda row: pytest.fail("nothing is read again"))
    tally.catch_up(session)


def test_a_long_batch_is_sent_in_parts(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "SENT_AT_ONCE", 2)
    questions = [{"count": {"sex": sex}} for sex in ("F", "M", "F", "M", "F")]
    one = served.ana.post("/v1/people/ask", json={"question": questions[0]}).json()["answer"]
    for many in (2, 5):
        got = served.ana.post("/v1/people/ask_many", json={"questions": questions[:many]})
        assert ("content-length" in got.headers) == (many == 2)
        assert [answer["value"] for answer in got.json()["answers"]][0::2] == [one["value"]] * ((many + 1) // 2)
