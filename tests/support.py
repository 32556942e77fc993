"""What tests of all kinds share: how long they wait for others, and how they count work instead of timing it."""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.pool import Pool
from types import FrameType

from tacit.load import Numbers, Progress, Source, open_source

# Seconds until something that hangs fails its test. What is waited for takes seconds on a quiet machine, so a test that
# passes there passes on one that is a hundred times slower: no test decides by the clock.
PATIENCE = 600.0


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process is about to do."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what is waited for never happens"
        time.sleep(0.002)


def once(data: object) -> Source:
    """A table for files of tests that open hundreds of sessions about it: its engine runs every statement once."""
    source = open_source(data)
    run = cache(source.engine.run)

    def kept(statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
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
