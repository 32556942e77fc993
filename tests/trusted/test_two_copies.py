"""Two copies of one ledger, one anchor, both in use: one of them answers, however their steps fall between each other.

A step is a transaction of a ledger, or a look or a change of the anchor. Of two copies one begins, the other begins
and is stopped, the first goes on to its end, and then the other does.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ledger_tools import backup
from test_gate import DOMAIN, EPSILON, WOMEN, curator_at

from curators import public_of
from support import PATIENCE
from tacit.errors import TacitError
from tacit.exact.price import total
from tacit.model.budget import Budget, Loss
from tacit.model.entry import FreeAnswer
from tacit.model.query import Query
from tacit.model.request import Distance
from tacit.model.workload import marginal
from tacit.store.anchor import Anchor, Mark, _mark
from tacit.store.log import Log
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

ONCE = Budget(epsilon=1.0, delta=0.0)  # whatever is asked costs all of it
Way = Callable[[Curator], object]


def measure(curator: Curator) -> object:
    return curator.measure([WOMEN], EPSILON)


def measure_many(curator: Curator) -> object:
    return curator.measure([WOMEN, ~WOMEN, marginal(DOMAIN, "age")], Loss(EPSILON.measure, EPSILON.atoms // 3))


def choose(curator: Curator) -> object:
    return curator.select_worst([WOMEN, ~WOMEN], [50.0, 50.0], EPSILON)


def distinguish(curator: Curator) -> object:
    return curator.first_far([WOMEN], [0.0], 10.0, EPSILON)


def compare(curator: Curator) -> object:
    return curator.compare(WOMEN, Distance(0), 10.0, EPSILON)


def hit(curator: Curator) -> object:
    return curator.open_gate(-1000, EPSILON).first_above([WOMEN], [Distance(0)])


def pass_gate(curator: Curator) -> object:
    gate = curator.open_gate(10_000, EPSILON)
    assert gate.first_above([WOMEN], [Distance(0)]) is None
    return public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)


def resume(curator: Curator) -> object:
    """The gate was open when the copy was made: both have its noise."""
    gate = curator.resume_gate()
    assert gate is not None
    if gate.first_above([WOMEN], [Distance(0)]) is None:
        return public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)
    return "a hit"


def tell_and_measure(curator: Curator) -> object:
    """Five free answers first, so that the numbers of one copy are ahead of the other's."""
    ages = [Query.among(DOMAIN, "age", [age]) for age in range(5)]
    public_of(curator).tell([FreeAnswer(query, 0, "") for query in ages])
    return measure(curator)


WAYS = [measure, measure_many, choose, distinguish, compare, hit, pass_gate]


@dataclass
class Turns:
    """Lets one of two threads run at a time: `plan` says how many steps each takes before the other goes on."""

    plan: list[tuple[str, int]]
    turn: threading.Condition = field(default_factory=threading.Condition)
    steps: int = 0
    running: str | None = None
    ended: set[str] = field(default_factory=set)

    def _free_for(self, name: str) -> bool:
        while len(self.plan) > 1 and (self.steps >= self.plan[0][1] or self.plan[0][0] in self.ended):
            self.plan.pop(0)
            self.steps = 0
        return self.running is None and self.plan[0][0] == name

    def begin(self, name: str) -> None:
        """Before a step: go on when it is this one's turn, and the other stands before a step of its own."""
        with self.turn:
            self.leave(name)
            assert self.turn.wait_for(lambda: self._free_for(name), timeout=PATIENCE)
            self.running, self.steps = name, self.steps + 1

    def end(self, name: str) -> None:
        with self.turn:
            self.ended.add(name)
            self.leave(name)

    def leave(self, name: str) -> None:
        if self.running == name:
            self.running = None
        self.turn.notify_all()


class Copies:
    """A ledger and a copy of it, with one anchor; who got how far."""

    def __init__(self, folder: Path, records: Records, *, gate: float | None = None) -> None:
        self.folder, self.records = folder, records
        self.made = folder / "made"
        self.made.mkdir(parents=True)
        original = self._curator(self.made / "people.tacit", self.made, make="new")
        if gate is not None:
            original.open_gate(gate, EPSILON)
        original._ledger.close()
        shutil.copy(backup(self.made, "copy"), self.made / "b")
        self.looked, self.shown = list[str](), list[str]()

    def _curator(self, path: Path, folder: Path, **more: Any) -> Curator:
        terms: dict[str, Any] = {"budget": ONCE, "total": total(ONCE), "binding": {"data": "d"}}
        return Curator(self.records, Ledger.open(path, **terms, anchor=Anchor(folder / "anchors.sqlite"), **more))

    def race(self, a: Way, b: Way, first: int, second: int) -> tuple[list[str], list[str]]:
        """Who looked at the data, and who was answered, where `a` stops after so many steps and `b` after as many."""
        here = self.folder / "race"
        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(self.made, here)
        turns = Turns([("a", first), ("b", second), ("a", 10**6), ("b", 10**6)])
        looked, shown = list[str](), list[str]()
        curators = {name: self._curator(here / file, here) for name, file in (("a", "people.tacit"), ("b", "b"))}

        def run(name: str) -> None:
            try:
                turns.begin(name)
                {"a": a, "b": b}[name](curators[name])
                shown.append(name)
            except TacitError:
                pass
            finally:
                turns.end(name)

        with pytest.MonkeyPatch.context() as patch:
            for where, method in ((Log, "write"), (Anchor, "newest"), (Anchor, "advance")):
                patch.setattr(where, method, _stepping(getattr(where, method), turns))
            patch.setattr(Ledger, "reserve", _noting(Ledger.reserve, looked))
            threads = [threading.Thread(target=run, args=(name,), name=name) for name in "ab"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
                assert not thread.is_alive()
        for curator in curators.values():
            curator._ledger.close()
        return looked, shown


def _stepping(function: Callable[..., Any], turns: Turns) -> Callable[..., Any]:
    def stepped(*args: Any, **more: Any) -> Any:
        turns.begin(threading.current_thread().name)
        return function(*args, **more)

    return stepped


def _noting(function: Callable[..., Any], looked: list[str]) -> Callable[..., Any]:
    def noted(*args: Any, **more: Any) -> Any:
        done = function(*args, **more)
        looked.append(threading.current_thread().name)
        return done

    return noted


MOST = 12  # steps of any of these
ONE_SWITCH = [(0, steps) for steps in range(1, MOST)] + [(steps, 99) for steps in range(1, MOST)]
TWO_SWITCHES = [(first, second) for first in range(MOST) for second in range(1, MOST)]


def check(copies: Copies, a: Way, b: Way | None = None, schedules: list[tuple[int, int]] = ONE_SWITCH) -> None:
    answered = set[str]()
    for first, second in schedules:
        looked, shown = copies.race(a, b or a, first, second)
        assert len(shown) <= 1, (first, second, shown)
        assert len(looked) <= 1, (first, second, looked)
        answered |= set(shown)
    assert answered == {"a", "b"}  # either may be the one


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    curator = curator_at(tmp_path_factory.mktemp("records"))
    curator._ledger.close()
    return curator._records


@pytest.fixture
def memory() -> Iterator[Path]:
    """No power is cut here, and syncs take most of the time."""
    disk = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=disk if disk.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("way", WAYS)
def test_one_of_two_copies_answers(memory: Path, records: Records, way: Way) -> None:
    check(Copies(memory, records), way, schedules=TWO_SWITCHES if way in (measure, hit) else ONE_SWITCH)


def test_one_of_two_copies_answers_whose_numbers_differ(memory: Path, records: Records) -> None:
    check(Copies(memory, records), measure, tell_and_measure, TWO_SWITCHES)


@pytest.mark.parametrize("threshold", [-1000.0, 10_000.0])
def test_one_of_two_copies_of_an_open_gate_speaks(memory: Path, records: Records, threshold: float) -> None:
    check(Copies(memory, records, gate=threshold), resume, schedules=TWO_SWITCHES)


def larger_numbers_win(self: Anchor, ledger: str, mark: Mark, replaces: Mark | None, path: Path | None = None) -> Any:
    """What the anchor did once: whoever has more lines moves it, whatever stands there."""

    def work(db: Any) -> Mark:
        seen = _mark(db, ledger)
        if seen is None or mark.seq > seen.seq:
            db.execute("INSERT OR REPLACE INTO anchors VALUES (?, ?, ?, ?, NULL)", (ledger, *mark))
        return _mark(db, ledger) or mark

    return self._ready.transact(work)


def test_planted_an_anchor_that_does_not_compare(
    memory: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Anchor, "advance", larger_numbers_win)
    with pytest.raises(AssertionError):
        check(Copies(memory, records), measure, tell_and_measure)


def test_planted_intents_that_the_anchor_does_not_know(
    memory: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = Log._tell_anchor

    def answers_only(self: Log, head: Mark, path: Path | None = None) -> None:
        if path is not None or head.seq % 2 == 0:
            tell(self, head, path)

    monkeypatch.setattr(Log, "_tell_anchor", answers_only)
    with pytest.raises(AssertionError):
        check(Copies(memory, records), measure)


def test_planted_copies_that_write_the_very_same_lines(
    memory: Path, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.store.rows.secrets.token_hex", lambda size: "0" * 2 * size)
    monkeypatch.setattr("tacit.store.log.now", lambda: "2031-01-01T00:00:00.000+00:00")
    with pytest.raises(AssertionError):
        check(Copies(memory, records), measure, schedules=TWO_SWITCHES)
    with pytest.raises(AssertionError):
        check(Copies(memory / "gate", records, gate=-1000.0), resume, schedules=TWO_SWITCHES)
