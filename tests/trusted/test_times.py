"""Lines are published with their times: when something was asked, and never how long the data were looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_gate import EPSILON, WOMEN, curator_at

import tacit
from curators import public_of
from tacit.model.entry import FreeAnswer
from tacit.model.request import Distance
from tacit.owner import discovery, opening
from tacit.owner import rows as owner_rows
from tacit.store import conditions
from tacit.store import log as log_module
from tacit.store.log import Log
from tacit.trusted.curator import Curator
from tacit.trusted.records import Records


class Clock:
    """A clock that stands still but for looks at the data, each of which takes an hour."""

    def __init__(self) -> None:
        self.hours = 0

    def now(self) -> str:
        return f"2031-01-{1 + self.hours // 24:02}T{self.hours % 24:02}:00:00.000+00:00"

    def slow(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*args: Any, **more: Any) -> Any:
            self.hours += 1
            return look(*args, **more)

        return looked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(log_module, "now", made.now)
    for method in ("answer", "table"):
        monkeypatch.setattr(Records, method, made.slow(getattr(Records, method)))
    return made


def told_beside(curator: Curator, hit: bool) -> tuple[str, str]:
    """When two questions are asked of a gate, the second of which passes or not: the times of the question and of the
    free answer that is told to the first.
    """
    gate = curator.open_gate(30, EPSILON)
    asked = log_module.now()
    found = gate.first_above([WOMEN, ~WOMEN], [Distance(70), Distance(1000 if hit else 30)])
    assert (found is not None) == hit
    [told] = public_of(curator).tell([FreeAnswer(WOMEN if hit else ~WOMEN, 70, "")], gate)
    line = next(line for line in curator._ledger.log.lines() if line.seq == told.receipt.entry)
    return asked, line.time


@pytest.mark.parametrize("hit", [False, True])
def test_what_is_told_beside_a_hit_has_the_time_of_the_question(
    tmp_path: Path, clock: Clock, hit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.trusted.gate.draw_geometric", lambda scale, size: np.full(size, round(scale)))
    curator = curator_at(tmp_path)
    before = clock.hours
    asked, told = told_beside(curator, hit)
    assert clock.hours > before  # the data were looked at
    assert told == asked
    curator._ledger.close()


def times_of_questions(folder: Path, mechanism: str, clock: Clock) -> list[set[str]]:
    """The times of the lines that each question leaves behind, but for the end of a gate: that has its beginning's."""
    sexes, ages = ["F"] * 400 + ["M"] * 100, [i % 10 if i < 250 else 3 for i in range(500)]
    session = tacit.open(
        data=pd.DataFrame({"sex": sexes, "age": ages}),
        domain=tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 9)}),
        budget=tacit.Budget(epsilon=20.0, delta=0.0),
        ledger=folder / "l",
        anchor=folder / "a",
        mechanism=mechanism,
        start=True,
        **({"hits": 5, "questions": 50} if mechanism == "iterative" else {}),
    )
    found = list[set[str]]()
    with session:
        for questions in (["sex = 'F'", "age = 3", "age = 4"], ["age < 4"], ["sex = 'M' AND age = 3", "sex = 'F'"]):
            before = session.transcript()[1]
            session.ask_many([f"SELECT COUNT(*) FROM data WHERE {condition}" for condition in questions])
            found.append({line.time for line in session.transcript()[1][len(before) :] if line.kind != "shut"})
    return [times for times in found if times]


@pytest.mark.parametrize("mechanism", ["direct", "histogram", "iterative"])
def test_all_that_a_question_leaves_has_the_time_at_which_it_was_asked(
    tmp_path: Path, clock: Clock, mechanism: str
) -> None:
    found = times_of_questions(tmp_path, mechanism, clock)
    assert clock.hours > 0
    assert found
    assert all(len(times) == 1 for times in found)


def test_planted_times_of_writing(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "time", lambda self: clock.now())
    assert any(len(times) > 1 for times in times_of_questions(tmp_path, "iterative", clock))


def test_a_request_has_the_second_in_which_it_arrived(tmp_path: Path, clock: Clock) -> None:
    session = tacit.open(
        data=pd.DataFrame({"age": [1, 2, 2]}),
        domain=tacit.Domain({"age": tacit.integer(0, 9)}),
        budget=tacit.Budget(epsilon=20.0, delta=0.0),
        ledger=tmp_path / "l",
        anchor=tmp_path / "a",
        mechanism="direct",
    )
    arrived = datetime(2030, 5, 6, 7, 8, 9, 999_999, tzinfo=UTC)
    with session:
        with session.asked_at(arrived):
            session.ask("SELECT COUNT(*) FROM data WHERE age = 2")
        assert {line.time for line in session.transcript()[1]} == {"2030-05-06T07:08:09.000+00:00"}
        session.ask("SELECT COUNT(*) FROM data WHERE age = 1")
        assert session.transcript()[1][-1].time.startswith("2031-01-01")  # its own time again


def reads_for_an_hour(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a table reads it for an hour, and the clock is right before and afterwards."""

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromisoformat(clock.now())

    for module in (opening, discovery, conditions):
        monkeypatch.setattr(module, "datetime", Now)
    for module in (owner_rows, discovery):
        monkeypatch.setattr(module, "open_source", clock.slow(module.open_source))


def test_an_accepted_rollback_has_the_time_at_which_it_was_asked_for(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads_for_an_hour(clock, monkeypatch)
    terms: dict[str, Any] = {
        "data": pd.DataFrame({"age": [1, 2, 2]}),
        "domain": tacit.Domain({"age": tacit.integer(0, 9)}),
        "budget": tacit.Budget(epsilon=1.0, delta=0.0),
        "ledger": tmp_path / "l",
        "anchor": tmp_path / "a",
        "mechanism": "direct",
    }
    tacit.open(**terms).close()
    copy = (tmp_path / "l").read_bytes()
    with tacit.open(**terms) as session:
        session.ask("SELECT COUNT(*) FROM data WHERE age = 2")
    (tmp_path / "l").write_bytes(copy)
    asked, before = clock.now(), clock.hours
    with tacit.open(**terms, accept_rollback="the disk broke") as session:
        assert clock.hours > before
        [line] = [line for line in session.transcript()[1] if line.kind == "override"]
    assert line.time == asked


def test_a_rollback_that_a_discovery_accepts_has_the_time_of_its_beginning(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads_for_an_hour(clock, monkeypatch)
    terms: dict[str, Any] = {
        "data": pd.DataFrame({"age": [1, 2, 2] * 100, "clinic": ["a", "b", "b"] * 100}),
        "columns": {"clinic": {"kind": "category", "discover": True}},
        "budget": tacit.Budget(epsilon=1.0, delta=1e-9),
        "ledger": tmp_path / "l",
        "anchor": tmp_path / "a",
    }
    more = {"columns": {**terms["columns"], "age": {"kind": "integer", "discover": 5, "low": 0, "high": 99}}}
    tacit.discover(**terms)
    copy = (tmp_path / "l").read_bytes()
    tacit.discover(**(terms | more))
    (tmp_path / "l").write_bytes(copy)
    asked, before = clock.now(), clock.hours
    tacit.discover(**(terms | more), accept_rollback="the disk broke")
    assert clock.hours > before
    found = tacit.open(**{k: v for k, v in terms.items() if k != "columns"}, domain={"age": tacit.integer(0, 9)})
    with found:
        [line] = [line for line in found.transcript()[1] if line.kind == "override"]
    assert line.time == asked
