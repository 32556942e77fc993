"""One writer for each data set: a thread that asks the session, one batch after the other. Called by the server.

What waits together is answered together: while one batch is being committed the next ones queue up, and all the plain
counts among them go into a single `answer_many`, which shares a commit. There is no artificial delay, so a lone client
does not wait for company. An answer leaves the thread only after the ledger has it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from tacit.errors import TacitError
from tacit.model.ask import Count
from tacit.model.budget import Loss
from tacit.release.answering import Answers
from tacit.serve.refusal import Refusal, refusal_of
from tacit.session import Session

MAX_WAITING = 256  # requests
MAX_TOGETHER = 2_000  # questions of one commit
T = TypeVar("T")


class Cut(Exception):
    """A request that was refused with `error` after `atoms` of the budget had been paid for a part of it."""

    def __init__(self, error: TacitError, atoms: int) -> None:
        super().__init__(error.sentence)
        self.error, self.atoms = error, atoms


Note = Callable[[Any], None]  # told of a result, or of the exception in its place, before anybody else sees it


@dataclass(eq=False)
class Job:
    """One request's work: plain counts that may share a commit with others, or anything else, done by itself."""

    note: Note
    counts: tuple[Count, ...] = ()
    alone: Callable[[], Any] | None = None
    done: Future[Any] = field(default_factory=Future)


class Writer:
    """The only thread that asks this session anything. Its queue is bounded; `close` finishes what is queued.

    `sync` makes what the notes wrote durable; it is called once for every batch, before its results are let go.
    """

    def __init__(
        self, session: Session, name: str, *, sync: Callable[[], None] = lambda: None, most_waiting: int = MAX_WAITING
    ) -> None:
        self._session, self._sync = session, sync
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._most, self._waiting = most_waiting, 0
        self._lock, self._closing = threading.Lock(), False
        self.batches = 0  # how many times the session was asked; for tests of sharing
        # Not a daemon: the interpreter waits for it at exit, and with it for what was promised.
        self._thread = threading.Thread(target=self._work, name=f"tacit writer of {name}")
        self._thread.start()

    def count(self, asks: Sequence[Count], note: Note = lambda _: None) -> Future[list[Answers]]:
        """Answer plain counts, in a commit that others may share."""
        return self._put(Job(note, counts=tuple(asks)))

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
        together = [ask for job in jobs for ask in job.counts]
        self.batches += 1
        result = _outcome(lambda: self._session.answer_many(together))
        if isinstance(result, TacitError):
            for key, atoms in charges(self._session, result, together).items():
                paid[key] = paid.get(key, 0) + atoms
        if isinstance(result, TacitError) and len(jobs) > 1:
            # One of them is refused, or there is not enough for all: each gets its own answer. What the batch had
            # bought before that is read back from the ledger, and whoever asked for it is told what it cost.
            for job in jobs:
                self._answer_together([job], paid)
        elif isinstance(result, BaseException):
            if isinstance(result, TacitError) and (mine := sum(paid.pop(_core(ask), 0) for ask in together)):
                result = Cut(result, mine)
            self._let_go([(job, result) for job in jobs])
        else:
            answers = iter(claimed(together, result, paid, self._session.total) if paid else result)
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


def accounted(session: Session, work: Callable[[], T]) -> T:
    """Do it; where it fails after something was paid for, `Cut` says how much that was."""
    try:
        return work()
    except TacitError as error:
        atoms = sum(atoms for _, atoms in _bought(session, error))
        if not atoms:
            raise
        raise Cut(error, atoms) from None


def charges(session: Session, error: TacitError, asks: Iterable[Count]) -> dict[str, int]:
    """What each of the counts had cost, by the key of its core, before a batch of them failed with `error`.

    What belongs to no question of its own comes before the answer that it was bought for: a start, and the gate that
    found a hard question.
    """
    paid: dict[str, int] = {}
    keys, waiting = {_core(ask) for ask in asks}, 0
    for key, atoms in _bought(session, error):
        waiting += atoms
        if key in keys and waiting:
            paid[key], waiting = waiting, 0
    return paid


def claimed(
    asks: Sequence[Count], answers: Sequence[Answers], paid: dict[str, int], total: Loss | None = None
) -> list[Answers]:
    """Answers that a batch which failed had bought, as what they are: paid for. Each charge is claimed once."""
    shown = list[Answers]()
    for ask, answer in zip(asks, answers, strict=True):
        atoms = paid.pop(_core(ask), 0)
        cost = Loss(answer.cost.measure, answer.cost.atoms + atoms)
        bought = replace(answer, facts=replace(answer.facts, source="measured", cost=cost, total=total))
        shown.append(bought if atoms else answer)
    return shown


def _bought(session: Session, error: TacitError) -> list[tuple[str | None, int]]:
    """What was bought for a question before it failed."""
    if error.nothing_spent or error.after is None:
        return []
    try:
        return session.bought(error.after)
    except TacitError:  # the ledger cannot be read any more: what it holds is charged, and nobody is named for it
        return []


def _core(ask: Count) -> str:
    return ask.query.core.key
