"""One writer for each data set: a thread that asks the session, one batch after the other. Called by the server.

What waits together is answered together: while one batch is being committed the next ones queue up, and all the plain
counts among them go into a single `ask_many`, which shares a commit. There is no artificial delay, so a lone client
does not wait for company. An answer leaves the thread only after the ledger has it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from tacit.errors import TacitError
from tacit.model.answer import Answer
from tacit.serve.pricing import Bought, Counted, Cut, charges, claimed
from tacit.serve.refusal import Refusal, refusal_of

MAX_WAITING = 256  # requests
MAX_TOGETHER = 2_000  # questions of one commit


class Asks(Bought, Protocol):
    """The part of a session that the writer uses itself."""

    def ask_many(self, questions: Sequence[Counted]) -> list[Answer]: ...


Note = Callable[[Any], None]  # told of a result, or of the exception in its place, before anybody else sees it


@dataclass(eq=False)
class Job:
    """One request's work: plain counts that may share a commit with others, or anything else, done by itself."""

    note: Note
    counts: tuple[Counted, ...] = ()
    alone: Callable[[], Any] | None = None
    done: Future[Any] = field(default_factory=Future)


class Writer:
    """The only thread that asks this session anything. Its queue is bounded; `close` finishes what is queued.

    `sync` makes what the notes wrote durable; it is called once for every batch, before its results are let go.
    """

    def __init__(
        self, session: Asks, name: str, *, sync: Callable[[], None] = lambda: None, most_waiting: int = MAX_WAITING
    ) -> None:
        self._session, self._sync = session, sync
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._most, self._waiting = most_waiting, 0
        self._lock, self._closing = threading.Lock(), False
        self.batches = 0  # how many times the session was asked; for tests of sharing
        # Not a daemon: the interpreter waits for it at exit, and with it for what was promised.
        self._thread = threading.Thread(target=self._work, name=f"tacit writer of {name}")
        self._thread.start()

    def count(self, queries: Sequence[Counted], note: Note = lambda _: None) -> Future[list[Answer]]:
        """Answer plain counts, in a commit that others may share."""
        return self._put(Job(note, counts=tuple(queries)))

    def do(self, work: Callable[[], Any], note: Note = lambda _: None) -> Future[Any]:
        """Do something else with the session, by itself."""
        return self._put(Job(note, alone=work))

    def close(self) -> None:
        """Take no more, finish what is queued, and stop."""
        with self._lock:
            self._closing = True
            self._jobs.put(None)
        self._thread.join()

    def _put(self, job: Job) -> Future[Any]:
        with self._lock:
            if self._closing:
                raise Refusal(503, "closing", "The server is closing down.", retry_after=5)
            if self._waiting >= self._most:
                raise Refusal(503, "queue_full", f"{self._most:,} requests are waiting already.", retry_after=1)
            self._waiting += 1
            self._jobs.put(job)
        return job.done

    def _work(self) -> None:
        while True:
            taken, last = self._take()
            # Who went away while waiting is not asked for; who goes away later has been, and may ask again for free.
            jobs = [job for job in taken if job.done.set_running_or_notify_cancel()]
            self._answer_together([job for job in jobs if job.alone is None])
            for job in jobs:
                if job.alone is not None:
                    self._let_go([(job, _outcome(job.alone))])
            if last:
                return

    def _take(self) -> tuple[list[Job], bool]:
        """Everything that is waiting, up to a commit's fill, and whether it is the last."""
        taken: list[Job] = []
        questions, job = 0, self._jobs.get()
        while job is not None:
            taken.append(job)
            questions += len(job.counts)
            if questions >= MAX_TOGETHER:
                break
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
        with self._lock:
            self._waiting -= len(taken)
        return taken, job is None

    def _answer_together(self, jobs: list[Job], paid: dict[str, int] | None = None) -> None:
        """`paid` is what a batch that failed had bought for them, by the keys of their questions."""
        if not jobs:
            return
        paid = {} if paid is None else paid
        together = [query for job in jobs for query in job.counts]
        self.batches += 1
        head = _outcome(lambda: self._session.entries)
        result = _outcome(lambda: self._session.ask_many(together))
        if isinstance(result, TacitError) and isinstance(head, int):
            for key, atoms in charges(self._session, head, result, together).items():
                paid[key] = paid.get(key, 0) + atoms
        if isinstance(result, TacitError) and len(jobs) > 1:
            # One of them is refused, or there is not enough for all: each gets its own answer. What the batch had
            # bought before that is read back from the ledger, and whoever asked for it is told what it cost.
            for job in jobs:
                self._answer_together([job], paid)
        elif isinstance(result, BaseException):
            if isinstance(result, TacitError) and (mine := sum(paid.pop(query.core.key, 0) for query in together)):
                result = Cut(result, mine)
            self._let_go([(job, result) for job in jobs])
        else:
            answers = iter(claimed(together, result, paid) if paid else result)
            self._let_go([(job, [next(answers) for _ in job.counts]) for job in jobs])

    def _let_go(self, results: list[tuple[Job, Any]]) -> None:
        """Note what is about to be shown, then show it; what could not be noted is not shown."""
        noted = [(job, result, _outcome(partial(job.note, result))) for job, result in results]
        synced = _outcome(self._sync)
        for job, result, problem in noted:
            refused = result.error if isinstance(result, Cut) else result
            failed = next((e for e in (refused, problem, synced) if isinstance(e, BaseException)), None)
            if failed is None:
                job.done.set_result(result)
            else:
                # Nothing but a public refusal leaves the thread: an error's own words and frames may hold data.
                job.done.set_exception(refusal_of(failed))


def _outcome(work: Callable[[], Any]) -> Any:
    """What comes of it: its result, or the exception in its place."""
    try:
        return work()
    except BaseException as error:
        return error
