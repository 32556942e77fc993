"""Who comes next of those who wait for a writer: keys take turns by the work that was done for them. For `writer`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from tacit.model.ask import Count
from tacit.model.table import Answers

MAX_WAITING = 256  # requests
MAX_TOGETHER = 2_000  # questions of one commit
SLICE = 250  # counts of one request that are answered before others have their turn
SLICE_WORK = 2**24  # and the work of them, see `Question.work`
Steps = Generator[int, None, Any]  # yields the work of each step, and returns the result
Note = Callable[[Any], None]  # told of a result, or of the exception in its place, before anybody else sees it


@dataclass(frozen=True)
class Ticket:
    """Whose a request is (the number of a key), how much work each of its questions is, and when it arrived."""

    key: int = 0
    work: tuple[int, ...] = ()
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))

    @cached_property
    def second(self) -> int:
        return int(self.arrived.timestamp())


@dataclass(eq=False)
class Job:
    """One request's work: plain counts that may share a commit with others, or anything else, done in steps.

    `claim` is asked before its counts share a commit: it adds up what they could cost at most, by the name of whoever
    asks, and says whether that fits. Where it does not, the request is done by itself, in `steps`.
    """

    note: Note
    ticket: Ticket
    counts: tuple[Count, ...] = ()
    claim: Callable[[Counter[str]], bool] | None = None
    steps: Callable[[], Steps] | None = None
    done: Future[Any] = field(default_factory=Future)
    begun: bool = False
    running: Steps | None = None
    answers: list[Answers] = field(default_factory=list)  # to the first of the counts

    def part(self) -> tuple[list[Count], int]:
        """The next counts, as many as one slice has and one at least, and their work."""
        start, work = len(self.answers), 0
        part = list(self.counts[start : start + SLICE])
        for index, own in enumerate(self.ticket.work[start : start + SLICE]):
            if index and work + own > SLICE_WORK:
                return part[:index], work
            work += own
        return part, work


class Turns:
    """Jobs that wait, by key. Next is the key for which the least work was done, and of its jobs the oldest.

    A key that comes back after a pause is level with the one that was served last: it has saved nothing up. This is
    start-time fair queuing (Goyal, Vin & Cheng 1996), with work in the place of packets' lengths.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, deque[Job]] = {}
        self._had: dict[int, int] = {}
        self._level = 0
        self.waiting = 0  # how many jobs

    def put(self, job: Job, *, again: bool = False) -> None:
        """One more job; one that was interrupted comes `again`, before its key's others."""
        key = job.ticket.key
        self.waiting += 1
        if key not in self._waiting:
            self._waiting[key] = deque()
            self._had[key] = max(self._had.get(key, 0), self._level)
        if again:
            self._waiting[key].appendleft(job)
        else:
            self._waiting[key].append(job)

    def take(self) -> list[tuple[Job, list[Count]]]:
        """The next job that is done in steps; or counts that share a commit, a slice of every key's at most."""
        keys = sorted(self._waiting, key=lambda key: self._had[key])
        self._level = self._had[keys[0]]
        first = self._waiting[keys[0]][0]
        if not first.counts:
            self._pop(keys[0])
            self.charge(keys[0], 1)
            return [(first, [])]
        taken = list[tuple[Job, list[Count]]]()
        for key in keys:
            taken += self._share(key, first.ticket.second)
            if sum(len(part) for _, part in taken) >= MAX_TOGETHER:
                break
        return taken

    def _share(self, key: int, second: int) -> list[tuple[Job, list[Count]]]:
        """What a key has waiting of counts that arrived in this second, up to a slice."""
        share, questions, work = list[tuple[Job, list[Count]]](), 0, 0
        while key in self._waiting and (job := self._waiting[key][0]).counts and job.ticket.second == second:
            part, own = job.part()
            if share and (questions + len(part) > SLICE or work + own > SLICE_WORK):
                break
            self._pop(key)
            share.append((job, part))
            questions, work = questions + len(part), work + own
        self.charge(key, work + len(share))
        return share

    def charge(self, key: int, work: int) -> None:
        """Count what was done for a key."""
        self._had[key] = self._had.get(key, self._level) + work
        if len(self._had) > 10 * MAX_WAITING:
            self._had = {k: had for k, had in self._had.items() if k in self._waiting or had > self._level}

    def _pop(self, key: int) -> None:
        self._waiting[key].popleft()
        self.waiting -= 1
        if not self._waiting[key]:
            del self._waiting[key]
