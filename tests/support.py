"""What tests of all kinds share: how long they wait for others, and how they count work instead of timing it."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing.pool import Pool
from types import FrameType
from typing import Any

import pytest

from tacit.load import NumberColumns, Progress, Source, open_source

# Seconds until something that hangs fails its test. What is waited for takes seconds on a quiet machine, so a test that
# passes there passes on one that is a hundred times slower: no test decides by the clock.
PATIENCE = 600


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process is about to do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what is waited for never happens"
        time.sleep(0.002)


def pause(rng: random.Random, least: float, most: float) -> None:
    """Let a random moment go by before a process is killed. Whatever it was doing then is judged alike."""
    time.sleep(rng.uniform(least, most))


class Stopwatch:
    """How long something takes, in words for a report: nothing is decided by what cannot be compared."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self._start:.1f} s"


def once(data: object) -> Source:
    """A table for files of tests that open hundreds of sessions about it: its engine runs every statement once."""
    source = open_source(data)
    run = cache(source.engine.run)

    def kept(statements: Sequence[str], progress: Progress | None) -> list[NumberColumns]:
        return [[column.copy() for column in columns] for columns in run(tuple(statements), None)]

    source.engine.run = kept  # type: ignore[method-assign]
    return source


def processes(number: int) -> Pool:
    """So many processes that share nothing with this one.

    They are forked from one that was started afresh and has imported what they need: once, and not for each of them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "hypothesis", "ledger_tools", "curators"])
    return context.Pool(number)


@contextmanager
def counted(of: Any, name: str) -> Iterator[list[int]]:
    """How often a function of a class or a module is called meanwhile."""
    made, was = [0], getattr(of, name)

    def counting(*given: Any, **named: Any) -> Any:
        made[0] += 1
        return was(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of, name, counting)
        yield made


def calls(work: Callable[..., object], *given: object) -> int:
    """How many functions `work` calls, in this thread and in those that it starts: a stopwatch without a clock.

    >>> calls(lambda: [abs(number) for number in range(100)]) >= 100
    True
    """
    made = itertools.count()

    def note(frame: FrameType, event: str, given: object) -> None:
        if event in ("call", "c_call"):
            next(made)  # one step of C, so that no thread's call is lost

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work(*given)
    finally:
        sys.setprofile(before)
        threading.setprofile(before)  # type: ignore[arg-type]
    return next(made)


def events(session: Any) -> list[Any]:
    """Everything that was bought or told, in the order of the ledger."""
    from tacit.show.events import latest

    return latest(session, 10_000, free=True)[::-1]
