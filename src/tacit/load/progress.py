"""How far an engine has come: told while it works where it says so, and after each statement where it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from tacit.load import Progress

T = TypeVar("T")
_LOOK_EVERY = 0.1  # seconds: how often an engine is asked


def one_by_one(work: Callable[[str], T], statements: Sequence[str], progress: Progress | None) -> list[T]:
    """What each statement comes to, where an engine does not say how far it is within one."""
    found = list[T]()
    for sql in statements:
        found.append(work(sql))
        if progress:
            progress(len(found) / len(statements))
    return found


def part_of(progress: Progress, first: float, share: float) -> Progress:
    """What a part of the work tells, which begins when so much is done and is that share of it."""
    return lambda done: progress(first + share * done)


def watched(work: Callable[[], T], share: Callable[[], float], stop: Callable[[], None], progress: Progress) -> T:
    """Work in a thread of its own, while this one says how far the engine has come."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        found = pool.submit(work)
        try:
            shown = 0.0
            while not wait([found], timeout=_LOOK_EVERY).done:
                if (done := share()) > shown:
                    shown = min(1.0, done)
                    progress(shown)
        except BaseException:  # an interrupt, or a bar that fails: the engine is not left working alone
            stop()
            raise
    return found.result()
