"""One writer for each data set: a thread that asks the session, one commit after the other. Called by the server.

Keys take turns: of those who wait, the key for which least work was done comes next, whoever asked first (`Turns`). A
long batch, and whatever else comes in steps, is done a slice at a time, with the others between two slices. Work is
priced by public things before it is queued (`Question.work`). Who comes next is decided by that alone; how far the
others had come by then, which the order of the lines shows, may depend on how long looks took: see "Timing" in
docs/understand/limits.md.

What waits together is answered together: while one commit is being written the next ones queue up, and the plain counts
at the head of every key's queue go into a single `answer_many`, which shares a commit. There is no artificial delay, so
a lone client does not wait for company. An answer leaves the thread only after the ledger has it.

Lines of the ledger are published with their times. A request's lines have the second in which it arrived, which is its
client's doing, and never that in which the writer came to it, which may tell how long the data were looked at for the
request before. So only requests of the same second share a commit.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import TacitError
from tacit.model.ask import Count
from tacit.model.budget import Loss
from tacit.model.table import Answers
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.turns import MAX_WAITING, Job, Note, Steps, Ticket, Turns
from tacit.session import Session

if TYPE_CHECKING:  # a server of published files loads no ledger
    from tacit.blocks.series import Series

T = TypeVar("T")


class Cut(Exception):
    """A request that was refused with `error` after `atoms` of the budget had been paid for a part of it."""

    def __init__(self, error: TacitError | Refusal, atoms: int) -> None:
        super().__init__(error.sentence)
        self.error, self.atoms = error, atoms


class Writer:
    """The only thread that asks this session anything. What waits is bounded; `close` finishes it.

    `sync` makes what the notes wrote durable; it is called once for every commit, before its results are let go.
    """

    def __init__(
        self,
        session: Session | Series,
        name: str,
        *,
        sync: Callable[[], None] = lambda: None,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._session, self._sync = session, sync
        self._turns, self._most = Turns(), most_waiting
        self._lock, self._closing = threading.Condition(), False
        self.batches = 0  # how many times the session was asked; for tests of sharing
        # Not a daemon: the interpreter waits for it at exit, and with it for what was promised.
        self._thread = threading.Thread(target=self._work, name=f"tacit writer of {name}")
        self._thread.start()

    def count(
        self,
        asks: Sequence[Count],
        note: Note = lambda _: None,
        ticket: Ticket | None = None,
        *,
        claim: Callable[[Counter[str]], bool] | None = None,
        otherwise: Callable[[], Steps] | None = None,
    ) -> Future[list[Answers]]:
        """Answer plain counts, in a commit that others may share; `otherwise` where they do not fit: see `Job`."""
        return self._put(Job(note, ticket or Ticket(), tuple(asks), claim, otherwise))

    def do(self, work: Callable[[], Any], note: Note = lambda _: None, ticket: Ticket | None = None) -> Future[Any]:
        """Do something else with the session, by itself."""
        return self.do_in_steps(lambda: _at_once(work), note, ticket)

    def do_in_steps(
        self, steps: Callable[[], Steps], note: Note = lambda _: None, ticket: Ticket | None = None
    ) -> Future[Any]:
        """Do something by itself that others may come between, at every `yield` of it."""
        return self._put(Job(note, ticket or Ticket(), steps=steps))

    def close(self) -> None:
        """Take no more, finish what is queued, and stop."""
        with self._lock:
            self._closing = True
            self._lock.notify()
        self._thread.join()

    def _put(self, job: Job) -> Future[Any]:
        with self._lock:
            if self._closing:
                raise Refusal(503, "closing", "The server is closing down.", retry_after=5)
            if self._turns.waiting >= self._most:
                raise Refusal(503, "queue_full", f"{self._most:,} requests are waiting already.", retry_after=1)
            self._turns.put(job)
            self._lock.notify()
        return job.done

    def _work(self) -> None:
        while taken := self._take():
            # Who went away while waiting is not asked for; who goes away later has been, and may ask again for free.
            jobs = [(job, part) for job, part in taken if job.begun or job.done.set_running_or_notify_cancel()]
            if not jobs:
                continue
            try:
                with self._session.asked_at(jobs[0][0].ticket.arrived):
                    if jobs[0][1]:
                        self._answer_together(self._claimed(jobs))
                    else:
                        self._step(jobs[0][0])
            except BaseException as error:  # of this thread's own: whoever comes next is answered all the same
                for job, _ in jobs:
                    if not job.done.done():
                        job.done.set_exception(refusal_of(error))

    def _take(self) -> list[tuple[Job, list[Count]]]:
        """What is done next; nothing when all is over."""
        with self._lock:
            while not self._turns.waiting:
                if self._closing:
                    return []
                self._lock.wait()
            return self._turns.take()

    def _again(self, job: Job, work: int = 0) -> None:
        """The rest of a job, after others have had their turn."""
        job.begun = True
        with self._lock:
            self._turns.charge(job.ticket.key, work)
            self._turns.put(job, again=True)

    def _step(self, job: Job) -> None:
        """The next step of a job that is done by itself."""
        assert job.steps is not None
        stepped = job.running is not None
        job.running = job.running or job.steps()
        try:
            self._again(job, next(job.running))
        except StopIteration as finished:
            with self._lock:
                self._turns.charge(job.ticket.key, 0 if stepped else sum(job.ticket.work))
            self._let_go([(job, finished.value)])
        except BaseException as error:
            self._let_go([(job, error)])

    def _claimed(self, jobs: list[tuple[Job, list[Count]]]) -> list[tuple[Job, list[Count]]]:
        """The jobs that may share a commit. The others are done by themselves, next."""
        claims, sharing = Counter[str](), list[tuple[Job, list[Count]]]()
        for job, part in jobs:
            fits = True if job.claim is None else _outcome(partial(job.claim, claims))
            if isinstance(fits, BaseException):
                self._let_go([(job, fits)])
            elif fits:
                sharing.append((job, part))
            else:
                job.counts = ()
                self._again(job)
        return sharing

    def _answer_together(self, jobs: list[tuple[Job, list[Count]]], paid: Counter[str] | None = None) -> None:
        """`paid` is what a batch that failed had bought for them, by the keys of their questions."""
        if not jobs:
            return
        paid = Counter() if paid is None else paid
        together = [ask for _, part in jobs for ask in part]
        self.batches += 1
        result = _outcome(lambda: self._session.answer_many(together))
        if isinstance(result, TacitError):
            paid.update(charges(self._session, result, together))
        if isinstance(result, TacitError) and len(jobs) > 1:
            # One of them is refused, or there is not enough for all: each gets its own answer. What the batch had
            # bought before that is read back from the ledger, and whoever asked for it is told what it cost.
            for one in jobs:
                self._answer_together([one], paid)
        elif isinstance(result, BaseException):
            for job, part in jobs:
                self._let_go([(job, _cut(job, part, result, paid))])
        else:
            answers = iter(claimed(together, result, paid, self._session.total) if paid else result)
            for job, part in jobs:
                job.answers += [next(answers) for _ in part]
            self._let_go([(job, job.answers) for job, _ in jobs if len(job.answers) == len(job.counts)])
            for job, _ in jobs:
                if len(job.answers) < len(job.counts):
                    self._again(job)

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


def _at_once(work: Callable[[], Any]) -> Steps:
    """One step, and nothing between."""
    yield from ()
    return work()


def _cut(job: Job, part: Sequence[Count], error: BaseException, paid: dict[str, int]) -> BaseException:
    """What a job is refused with: `Cut` where a part of it was paid for, in this batch or before."""
    if not isinstance(error, TacitError):
        return error
    before = sum(answer.facts.cost.atoms for answer in job.answers)
    mine = cut_short(error, before) + sum(paid.pop(_core(ask), 0) for ask in part)
    return Cut(error, mine) if mine else error


def accounted(session: Session | Series, work: Callable[[], T], before: int = 0) -> T:
    """Do it; where it fails after something was paid for, `Cut` says how much that was, and what was paid `before`."""
    try:
        return work()
    except (TacitError, Refusal) as error:
        now = sum(atoms for _, atoms in _paid(session, error))
        atoms = now + cut_short(error, before)
        if not atoms:
            raise
        raise Cut(error, atoms) from None


def cut_short(error: TacitError | Refusal, before: int) -> int:
    """Let a refusal say that something was paid for before it, if it was: how much."""
    if before and error.nothing_spent:
        error.nothing_spent = False
        error.sentence += " What was paid for before that stays spent."
    return before


def charges(session: Session | Series, error: TacitError, asks: Sequence[Count]) -> Counter[str]:
    """What each of the counts had cost, by the key of its core, before a batch of them failed with `error`.

    A start, and the gate that finds a hard question, come before the answer that they were bought for. A hard question
    pays for the next gate too, which comes after its answer. What is left without an answer belongs to the first.
    """
    cores = [_core(ask) for ask in asks]
    keys, paid, waiting, last = set(cores), Counter[str](), 0, cores[0]
    for key, atoms in _paid(session, error):
        if key in keys:
            last = str(key)
            paid[last] += waiting + atoms
            waiting = 0
        elif key is None and paid:
            paid[last] += atoms
        else:
            waiting += atoms
    return paid + Counter({last: waiting})


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


def _paid(session: Session | Series, error: TacitError | Refusal) -> list[tuple[str | None, int]]:
    """What was paid for a question before it failed; nothing before the server itself refuses it.

    A series counts that by itself, for each block.
    """
    if not isinstance(session, Session) or isinstance(error, Refusal) or error.nothing_spent or error.after is None:
        return []
    try:
        return session.paid_since(error.after)
    except TacitError:  # the ledger cannot be read any more: what it holds is charged, and nobody is named for it
        return []


def _core(ask: Count) -> str:
    return ask.query.core.key
