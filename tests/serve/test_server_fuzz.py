"""A server that is sent anything at all: no error inside, no charge without an answer that says so, no growing memory.

A few hundred requests here, a million in `make audit`. All of it is over loopback, to a process of its own.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving.launch import PROGRAM, Server
from benchmarks.serving.wire import Plain
from fuzzing import Judge, Maker, fuzz, fuzz_bytes
from serving import WHO, write_config

from audit_record import record
from support import Stopwatch
from tacit.serve import make_key

REQUESTS = 1_000_000  # in the whole audit
MAX_GROWTH = 100 * 2**20  # bytes of memory: caches fill up, and then it must stop
CLIENTS = 3
LOG = "server.log"
# What the server's log may have: bytes that are no request break off the response to what was read of them.
HARMLESS = re.compile(
    r"tacit: (ASGI callable returned without completing response\.|the event loop met LocalProtocolError)"
)


def started(folder: Path, program: str = PROGRAM) -> tuple[Server, dict[str, str]]:
    config = write_config(folder, questions=1_000_000)
    keys = {name: make_key(folder / "tacit.keys", name, role, quota) for name, (role, quota) in WHO.items()}
    return Server(config, program, folder / LOG), keys


def complaints(folder: Path) -> list[str]:
    """Errors inside, by the server's own log: also those whose response came when nobody waited for it any more."""
    return [line for line in (folder / LOG).read_text().splitlines() if not HARMLESS.match(line)]


def spent(server: Server, keys: dict[str, str]) -> int:
    budget = Plain(server.address, keys["olga"]).call("GET", "/v1/people/budget").json()
    return round(sum(budget["spent"].values()) * 10**12)


def together(what: Any, *given: Any, count: int, seed: int) -> None:
    threads = [threading.Thread(target=what, args=(*given, count, 100 * seed + i)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_whatever_is_sent(tmp_path: Path) -> None:
    send(tmp_path, rounds=1, count=130, raw=40, seed=0)


@pytest.mark.audit
def test_whatever_is_sent_a_million_times(tmp_path: Path, size: float) -> None:
    """20 rounds of 3 clients with 800 requests by the description and 150 of raw bytes are 57,000 for one server."""
    watch, statuses = Stopwatch(), Counter[int]()
    while statuses.total() < size * REQUESTS:
        (folder := tmp_path / str(statuses.total())).mkdir()
        left = size * REQUESTS - statuses.total()
        statuses += send(folder, rounds=min(20, math.ceil(left / 2850)), count=800, raw=150, seed=statuses.total())
    told = {str(status): many for status, many in sorted(statuses.items())}
    record("requests", "HTTP", sent=statuses.total(), refused=sum(n for status, n in statuses.items() if status >= 400),
           wrong=0, statuses=told, taken=str(watch))  # fmt: skip


def send(folder: Path, *, rounds: int, count: int, raw: int, seed: int) -> Counter[int]:
    """Rounds of requests to a server of their own, after each of which all that is promised holds; how they ended."""
    watch, judge = Stopwatch(), Judge()
    server, keys = started(folder)
    with server:
        together(fuzz, server.address, keys, judge, count=100, seed=seed)  # what is loaded once
        before = server.resident
        for number in range(seed + 1, seed + rounds + 1):
            unsure = judge.unsure
            together(fuzz, server.address, keys, judge, count=count, seed=number)
            now = spent(server, keys)
            assert now == judge.charged if judge.unsure == unsure else now >= judge.charged
            together(fuzz_bytes, server.address, keys["rea"], judge, count=raw, seed=number)
            assert spent(server, keys) == now
            assert judge.wrong == []
            judge.charged = now
        growth = server.resident - before
        assert server.running
        assert complaints(folder) == []
        assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) < 100
    total = judge.statuses.total()
    assert judge.charged > 0
    assert judge.statuses[200] > total / 20
    assert judge.statuses[422] > total / 20
    assert growth < MAX_GROWTH
    print(f"\n{total:,} requests in {watch}, {dict(sorted(judge.statuses.items()))}, {growth / 2**20:.0f} MB more")
    return judge.statuses


PLANTED = {
    "an error inside": "from tacit.serve import question\nquestion.shaped = lambda *given: 1 / 0\n",
    "a charge for a price": (
        "from tacit.serve import dataset\nprice = dataset.price\n"
        "def buys(session, question):\n"
        "    session.answer(question.ask)\n"
        "    return price(session, question)\n"
        "dataset.price = buys\n"
    ),
}


@pytest.mark.audit
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_noticed(tmp_path: Path, bug: str) -> None:
    judge = Judge()
    server, keys = started(tmp_path, PLANTED[bug] + PROGRAM)
    with server:
        together(fuzz, server.address, keys, judge, count=300, seed=0)
        if bug == "an error inside":
            assert any("is an error inside" in words for words in judge.wrong)
            assert any("unexpected ZeroDivisionError" in line for line in complaints(tmp_path))
        else:
            assert spent(server, keys) > judge.charged


def test_the_same_seed_makes_the_same_requests() -> None:
    first, second = Maker(7), Maker(7)
    assert [next(first.requests()) for _ in range(50)] == [next(second.requests()) for _ in range(50)]
    assert first.raw("tacit_x") == second.raw("tacit_x")
