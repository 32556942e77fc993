"""What endpoints and pages are handed: a session under a name. One of its kinds is a published file, `Replica`.

The others have data and a ledger: `Dataset`, and a series of blocks.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import ConfigError, NeedsData
from tacit.model.ask import Ask
from tacit.model.budget import Loss
from tacit.model.status import DryRun, Started
from tacit.model.table import Answers
from tacit.public import opened, sound
from tacit.release.public import Kept
from tacit.replies import AttributeLine, DomainReply, QuotaLine
from tacit.serve.edition import Edition, Published, PublishedFile
from tacit.serve.key import Key
from tacit.serve.question import Memory, Question
from tacit.serve.refusal import Refusal, not_here
from tacit.serve.turns import SLICE, Steps, Ticket
from tacit.serve.work import COUNT_WORK
from tacit.serve.writer import Writer
from tacit.session import Session

if TYPE_CHECKING:  # a server of published files loads no ledger
    from tacit.blocks.series import Series

DATASET_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MAX_LABELS = 10_000  # of one attribute
MAX_REPEATS = 10_000  # counts whose answers need not wait for the writer
Do = Callable[[Callable[[], Any], int], Any]  # does something, after so much was paid


class ServedData(ABC):
    """A session under a name. What differs between the kinds is below; where a kind has nothing of it, this stays."""

    def __init__(
        self,
        name: str,
        session: Session | Series,
        published: Published | PublishedFile,
        *,
        about: Mapping[str, str] | None = None,
        columns: Mapping[str, str] | None = None,
        sync: Callable[[], None] = lambda: None,
    ) -> None:
        """`about` and `columns` are the owner's words, for people to read. `sync`: see `Writer`."""
        self.name, self.session, self.published = name, session, published
        self.elsewhere = ""  # the address of the server that sells what this one does not have
        self.about, self.columns = about or {}, columns or {}
        self.writer = Writer(session, name, sync=sync)
        self._repeats = Memory[str, Answers](MAX_REPEATS)  # answers to plain counts that stay as they are
        self.shown: dict[str, tuple[object, Any]] = {}  # what the pages have worked out, and from what
        self.shown_lock = threading.Lock()  # for what is worked out in several steps

    @cached_property
    def _found(self) -> DomainReply:
        return describe(self.session)

    @property
    def described(self) -> DomainReply:
        """What may be asked about: the declared attributes. All of it is public; that of one table never changes."""
        return self._found

    def table(self, block: str = "") -> Session:
        """The session whose ledger is read: that of the table, or of one block of a series."""
        assert isinstance(self.session, Session)
        if block:
            raise Refusal(404, "no_such_block", f"{self.name} is one table, and has no blocks.")
        return self.session

    @property
    def grows(self) -> bool:
        """Whether it is a series, to which blocks may be added: what is worked out of a question is then not kept."""
        return not isinstance(self.session, Session)

    @property
    def newest(self) -> str:
        """The label of the newest block; empty where there are none."""
        return ""

    def tables(self) -> Iterator[Session]:
        """Every session whose ledger is read, the newest block's first."""
        yield self.table()

    def edition(self, block: str = "") -> Edition:
        """All that was released so far, of the table or of one block, as a file."""
        self.table(block)
        return self.published.edition()

    def recall(self, questions: Sequence[Question]) -> list[Answers] | None:
        """The answers to all of the questions, where each was told before and stays as it is."""
        found = list[Answers]()
        for question in questions:
            answer = self._repeats.get(question.key) if question.plain else None
            if answer is None:
                return None
            found.append(answer)
        return found

    def known(self, ask: Ask, within: float | None = None) -> Answers | None:
        """The answer that a question has already, if it has one. For the writer's thread; nobody is told, so far."""
        with self.session.free():
            found = self.session.price(ask, within=within)
            return self.session.answer(ask, within=within) if found.known else None

    def in_steps(self, question: Question, do: Do, paid: int = 0) -> Generator[int, None, Answers]:
        """The answer to a question, each step of which is done by `do`: what to do, and what was paid before it."""
        session, within = self.session, question.within
        if within is not None:
            sharp: Answers = do(lambda: session.answer(question.ask, within=within), paid)
            return sharp
        steps = session.in_steps(question.ask, SLICE)
        while True:
            try:
                facts = do(lambda: next(steps), paid)
            except StopIteration as finished:
                answer: Answers = finished.value
                return answer
            paid += sum(one.cost.atoms for one in facts)
            yield COUNT_WORK * len(facts)

    def in_turn(self, questions: Sequence[Question], do: Do) -> Steps:
        """Answers to questions, one after the other; `do` as in `in_steps`."""
        answers, paid = list[Answers](), 0
        for question in questions:
            answers.append((yield from self.in_steps(question, do, paid)))
            paid += answers[-1].facts.cost.atoms
            yield question.work
        return answers

    def close(self) -> None:
        """Finish what is queued, then let go of everything."""
        self.writer.close()
        self.published.close()
        self.session.close()

    # -- what differs -------------------------------------------------------------------------------------------------

    @abstractmethod
    def ask(
        self, key: Key, questions: list[Question], arrived: datetime | None = None, *, free: bool = False
    ) -> Future[list[Answers]] | list[Answers]:
        """Answers to all of the questions, or a refusal. Several questions are plain counts.

        arrived: when the request came in, which is the time that is published with what it leaves in the ledger; now by
            default. `Server.ask` calls this, and bounds the work that is under way.
        free: only what is known is answered, whatever the key may spend.
        """

    @abstractmethod
    def price(self, key: Key, question: Question) -> Future[DryRun]:
        """The most that a question could cost now. Asks nothing."""

    @abstractmethod
    def start(self, key: Key) -> Future[Started]:
        """Buy what the answers start from. For the owner."""

    def spent_by(self, key: Key) -> Loss:
        """What a key's name has spent here."""
        return Loss.nothing(self.session.total.measure)

    def quota(self, key: Key) -> QuotaLine | None:
        """What a key may spend out of the budget, and has spent; None if it may spend all there is, or nothing."""
        return None

    def noted(self, limit: int) -> list[dict[str, Any]]:
        """The newest lines of the audit log, newest first."""
        return []


class Replica(ServedData):
    """Answers for everybody from one published file: what was released is answered, what would be bought is refused.

    There are no data, no ledger, no keys and no secrets here, and nothing is written but what was worked out from the
    file, where a place for it was named: any number of processes answer from copies of one file, and whichever is asked
    gives the same bytes. Safe from any thread.
    """

    @classmethod
    def open(
        cls,
        name: str,
        path: Path,
        elsewhere: str = "",
        *,
        unlimited: bool = False,
        keep: Callable[[str], Kept] | None = None,
    ) -> Replica:
        """Read and check a file, and work out what its answers start from: before the first question, not at it.

        elsewhere: the address of the server that has the data.
        unlimited: as for `tacit.read`.
        keep: the place for what was worked out from the file with this digest; by default it is worked out afresh.
        """
        check_name(name)
        found = sound(path, unlimited=unlimited)
        session = opened(found, None if keep is None else keep(found.digest))
        with suppress(NeedsData):  # published before its start, or while that was being bought
            session.arrays()
        made = cls(name, session, PublishedFile(path, found.digest))
        made.elsewhere = elsewhere
        return made

    def ask(
        self, key: Key, questions: list[Question], arrived: datetime | None = None, *, free: bool = False
    ) -> Future[list[Answers]] | list[Answers]:
        remembered = self.recall(questions)
        if remembered is not None:
            return remembered
        waits = ticket(key, questions, arrived)
        if all(question.plain for question in questions):
            return self.writer.do_in_steps(lambda: self._counts(questions), ticket=waits)
        return self.writer.do_in_steps(lambda: self.in_turn(questions, lambda work, _: work()), ticket=waits)

    def price(self, key: Key, question: Question) -> Future[DryRun]:
        return self.writer.do(
            lambda: self.session.price(question.ask, within=question.within), ticket=ticket(key, [question])
        )

    def start(self, key: Key) -> Future[Started]:
        raise not_here(self.elsewhere)

    def _counts(self, questions: list[Question]) -> Steps:
        """Answers to plain counts. A question that comes twice is asked once: the second answer would be a repeat of
        the first, and say so, where another server says nothing of it.

        Nothing here can change an answer, so it is kept, and the next who asks need not wait.
        """
        asks = {question.key: question.ask for question in questions}
        work, keys, answers = {question.key: question.work for question in questions}, list(asks), dict[str, Answers]()
        for start in range(0, len(keys), SLICE):
            some = keys[start : start + SLICE]
            answers |= zip(some, self.session.answer_many([asks[one] for one in some]), strict=True)
            yield sum(work[one] for one in some)
        for key, answer in answers.items():
            self._repeats.keep(key, answer)
        return [answers[question.key] for question in questions]


def describe(session: Session | Series) -> DomainReply:
    """What is public about a session."""
    attributes = [
        AttributeLine(
            name=name,
            kind=attribute.kind,
            ordered=attribute.ordered,
            size=attribute.size,
            labels=[attribute.label(i) for i in range(min(attribute.size, MAX_LABELS))],
            takes=attribute.takes,
        )
        for name, attribute in session.domain.items()
    ]
    return DomainReply(
        rows=session.rows,
        cells=session.domain.size,
        attributes=attributes,
        confidence=session.confidence,
        mechanism=session.choice.mechanism,
        reason=session.choice.reason,
        rows_per_person=session.rows_per_person,
        measure=session.total.measure,
        declared=session.domain.to_toml(),
        blocks="" if isinstance(session, Session) else session.terms.name,
    )


def ticket(key: Key, questions: Sequence[Question], arrived: datetime | None = None) -> Ticket:
    """What the writer goes by."""
    return Ticket(key.id, tuple(question.work for question in questions), arrived or datetime.now(UTC))


def check_name(name: str) -> None:
    if not DATASET_NAME.fullmatch(name):
        raise ConfigError(
            f"a data set's name has 1 to 64 small letters, digits, - and _, and {name!r} has not: rename the file, or "
            "give a name."
        )
