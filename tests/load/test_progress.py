"""How far an engine has come: by its own word while it works, and after each statement where it has none."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from support import PATIENCE
from tacit.load import spark
from tacit.load.progress import one_by_one, part_of, watched


def test_each_statement_is_told_when_it_is_done() -> None:
    told = list[float]()
    assert one_by_one(len, ["a", "bb", "ccc", "dddd"], told.append) == [1, 2, 3, 4]
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert one_by_one(len, ["a"], None) == [1]


def test_a_part_is_told_in_its_place() -> None:
    told = list[float]()
    half = part_of(told.append, 0.5, 0.25)
    half(0.0)
    half(1.0)
    assert told == [0.5, 0.75]


def until(seen: Event) -> Callable[[], str]:
    """Work that is done once something was seen."""

    def work() -> str:
        assert seen.wait(PATIENCE)
        return "done"

    return work


def test_what_an_engine_says_is_told_while_it_works_and_only_forwards() -> None:
    says, told, seen = iter([-1.0, 0.2, 0.1, 0.2, 0.7, 3.0]), list[float](), Event()

    def tell(share: float) -> None:
        told.append(share)
        if share == 1.0:
            seen.set()

    assert watched(until(seen), lambda: next(says, 1.0), lambda: None, tell) == "done"
    assert told == [0.2, 0.7, 1.0]  # what is less than nothing is not known, and more than all is all


@pytest.mark.parametrize("fails", ["share", "progress"])
def test_who_stops_watching_stops_the_engine(fails: str) -> None:
    stopped = Event()

    def share() -> float:
        if fails == "share":
            raise KeyboardInterrupt
        return 0.5

    def progress(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watched(until(stopped), share, stopped.set, progress)
    assert stopped.is_set()


def test_what_fails_in_the_engine_fails_here() -> None:
    with pytest.raises(ZeroDivisionError):
        watched(lambda: 1 // 0, lambda: 0.0, lambda: None, print)


class Tracker:
    """Spark's: two jobs, one of which is not known any more, and a stage that was never begun."""

    def getJobIdsForGroup(self, group: str) -> list[int]:
        return {"ours": [1, 2]}.get(group, [])

    def getJobInfo(self, job: int) -> Any:
        return {1: SimpleNamespace(stageIds=[10, 11, 12])}.get(job)

    def getStageInfo(self, stage: int) -> Any:
        done = {10: (8, 8), 11: (4, 1)}.get(stage)
        return done and SimpleNamespace(numTasks=done[0], numCompletedTasks=done[1])


def test_sparks_share_is_of_the_tasks_that_it_knows() -> None:
    context = SimpleNamespace(statusTracker=Tracker)
    assert spark._share(context, "ours") == 0.75
    assert spark._share(context, "another's") == 0.0
