"""Two doors. `Public` is what everybody may know; the `Curator` is what pays and looks at the data.

A ledger has both. A published file has the first: whatever needs the second is refused there with `NeedsData`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from tacit.errors import TacitError
from tacit.model.budget import Loss
from tacit.model.entry import FreeAnswer, Intent, Measured, Told, beside, decode, released
from tacit.model.facts import Receipt
from tacit.model.query import Query
from tacit.model.request import Declared
from tacit.model.statistic import Statistic
from tacit.model.status import Extension
from tacit.model.workload import Question, key
from tacit.release.account import Account, Lines, Spendable, owner_of, scope_of_single, spendable
from tacit.store.chain import Line, Mark

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior
    from tacit.trusted.gate import Gate

UNCHECKED = "not checked against the data"


class Unchecked:
    """In the place of a gate where there are no data: it lets everything pass, since nobody can say what is wrong."""

    threshold = 0.0

    def first_above(self, queries: Sequence[Query | Statistic], lenses: Sequence[object]) -> None:
        return None


class Kept(Protocol):
    """A place for what takes long to work out again; nothing rests on what it gives back: see `tacit.shelf`."""

    def get(self, kind: str, name: str) -> bytes | None: ...
    def put(self, kind: str, name: str, content: bytes) -> None: ...


Keep = Callable[[Sequence[tuple[str, FreeAnswer]], "Gate | None"], list[Line]]


class Public:
    """What everybody may know about a table and what was released of it. Nothing here costs anything.

    `keep` stores free answers, so that they never change; a published file has no such place. `prior` is a table that
    was public before, which a start is drawn to. `aside` is the part of delta that was kept for discovered values.
    `shelf` spares work that another process has done.
    """

    def __init__(
        self,
        lines: Lines,
        declared: Declared,
        keep: Keep | None = None,
        *,
        prior: Prior | None = None,
        aside: float = 0.0,
        shelf: Kept | None = None,
    ) -> None:
        self.shelf = shelf
        self._lines, self._keep, self.declared, self.prior, self.aside = lines, keep, declared, prior, aside
        # `total` is what the ledger was made with. Prices are shares of it, so that an extension changes none of them.
        self.domain, self.rows, self.rows_per_person, self.total, _ = declared
        self.account = Account(lines, self.total.measure)

    @property
    def spent(self) -> Loss:
        """What is spent for good, reservations without an outcome included."""
        return Loss(self.total.measure, self._lines.head().spent)

    @property
    def limits(self) -> Spendable:
        """What may be spent as it is now, and what has made it so."""
        return spendable(self.total, self._lines.limits())

    @property
    def whole(self) -> Loss:
        """The whole budget as it is now: what the ledger was made with, and what the owner has added."""
        return self.limits.whole

    @property
    def left(self) -> Loss:
        return Loss(self.total.measure, max(0, self.whole.atoms - self._lines.head().spent))

    def left_before(self, entry: int) -> Loss:
        """What was left before a purchase was made, by its entry."""
        line = next(iter(self._lines.lines(entry - 1)))
        before = spendable(self.total, (one for one in self._lines.limits() if one.seq < entry))
        return Loss(self.total.measure, max(0, before.whole.atoms - line.spent + line.atoms))

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The decisions to raise the budget, in order."""
        return self.limits.extensions

    @cached_property
    def divided(self) -> Loss:
        """What a mechanism divides among its purchases: the first budget, less what was spent before it could buy."""
        before = next(self._lines.lines(kinds=("terms", "carried")), None)
        return Loss(self.total.measure, max(0, self.total.atoms - (before.spent if before else 0)))

    @property
    def entries(self) -> int:
        """The number of the newest entry."""
        return self._lines.head().seq

    def find(self, questions: Sequence[Question]) -> list[Measured | Told | None]:
        """What was answered before, for each question."""
        return self.look(questions)[1]

    def look(self, questions: Sequence[Question]) -> tuple[Mark, list[Measured | Told | None]]:
        """The newest entry, and what was answered before, for each question."""
        keys = [key(question) for question in questions]
        newest, found = self._lines.look(list(dict.fromkeys(keys)))
        read = [self._read(found[k], q) if k in found else None for k, q in zip(keys, questions, strict=True)]
        return newest, read

    def measured(self, question: Question) -> Measured | None:
        """What was measured for a question, which may have been told for nothing before."""
        asked = key(question)
        found = self._lines.keyed([asked, beside(asked)])
        read = [self._read(found[k]) for k in (asked, beside(asked)) if k in found]
        return next((one for one in read if isinstance(one, Measured)), None)

    def sharpest(self, questions: Sequence[Question]) -> list[Measured | None]:
        """The last measurement of each question: one that is bought beside an earlier answer is sharper than that."""
        keys = {k: k for k in map(key, questions)}
        last, now = dict[str, Line](), self._lines.keyed(list(keys))
        while now:
            last |= {k: now[at] for k, at in keys.items() if at in now}
            keys = {k: beside(at) for k, at in keys.items() if at in now}
            now = self._lines.keyed(list(keys.values()))
        read = [self._read(last[k], q) if (k := key(q)) in last else None for q in questions]
        return [one if isinstance(one, Measured) else None for one in read]

    def line(self, key: str) -> Line | None:
        """The line that has a key."""
        return self._lines.keyed([key]).get(key)

    def released(self, after: int = 0) -> Iterator[Measured]:
        """Everything measured since entry `after`, in order: what a hypothesis is folded from."""
        yield from self.since(after)[1]

    def since(self, after: int) -> tuple[Mark, Iterator[Measured]]:
        """The newest entry, and everything measured since entry `after`, in order."""
        head, lines = self._lines.since(after)
        read = (self._read(line) for line in lines if line.kind == "measured")
        return head, (one for one in read if isinstance(one, Measured))

    def tables(self, after: int) -> tuple[list[Measured], dict[frozenset[str], int], int]:
        """What was measured since entry `after` and says more than one value; where attributes were first asked about.

        That is the entry of the first single count about just these attributes. And the newest entry of all. A ledger
        may hold a million single counts, so none of them is made into a question here.
        """
        found, singles, newest = list[Measured](), dict[frozenset[str], int](), after
        for line in self._lines.since(after)[1]:
            newest = max(newest, line.seq)
            if line.kind == "measured":
                scope = scope_of_single(line.body)
                if scope is not None:
                    singles.setdefault(scope, line.seq)
                elif isinstance(one := self._read(line), Measured):
                    found.append(one)
        return found, singles, newest

    def keys_before(self, entry: int) -> frozenset[str]:
        """The keys of everything that was measured or told before an entry, without making the questions."""
        lines = takewhile(lambda line: line.seq < entry, self._lines.lines(kinds=("measured", "told")))
        return frozenset(str(line.key) for line in lines)

    def answers(self) -> Iterator[Measured | Told]:
        """Everything measured and everything told, in order."""
        for line in self._lines.lines(kinds=("measured", "told")):
            if (stored := self._read(line)) is not None:
                yield stored

    @property
    def told(self) -> int:
        """How many answers were told for nothing."""
        return self._lines.unpaid_count() - self._later_terms

    @cached_property
    def _later_terms(self) -> int:
        return sum(1 for _ in self._lines.lines(kinds=("terms",)))

    def tell(self, said: Sequence[FreeAnswer], gate: Gate | Unchecked | None = None) -> list[Told | Measured]:
        """Tell free answers. An earlier answer to the same question stays.

        Where there is a ledger they are kept, so that they never change, and the gate that let them pass can go on from
        the same transaction on. From a published file they have no half width, and their receipt is the newest entry's,
        which seals all that they were worked out from; the hypothesis cannot change, so neither can they.
        """
        if self._keep is None or isinstance(gate, Unchecked):
            # Without a gate the guarantee had ended before, and the note says so.
            ours, receipt = "" if gate is None else UNCHECKED, Receipt(*self._lines.head()[:2])
            return [self._unkept(one, "; ".join(filter(None, (ours, one.note))), receipt) for one in said]
        lines = self._keep([(one.question.key, one) for one in said], gate)
        read = [self._read(line, one.question) for line, one in zip(lines, said, strict=True)]
        return [answer for answer in read if answer is not None]

    def turn(self) -> AbstractContextManager[None]:
        """One asker at a time, so that a question is paid once."""
        return self._lines.turn()

    @contextmanager
    def honest(self, newest: Mark | None = None) -> Iterator[None]:
        """An error that comes meanwhile says that nothing was spent only if nothing was, since the newest entry.

        It also says after which entry to look for what was bought before it came.
        """
        before = self._lines.head() if newest is None else newest
        try:
            yield
        except TacitError as error:
            try:
                moved = self._lines.head().spent != before.spent
            except TacitError:  # the ledger cannot be read any more
                moved = True
            error.after = before.seq
            if error.nothing_spent and moved:
                error.nothing_spent = False
                error.sentence += " What was paid for before that stays spent."
            raise

    def gates_before(self, entry: int, owner: str) -> int:
        """How many gates this owner had opened before an entry, shut and lost ones included."""
        intents = takewhile(lambda line: line.seq < entry, self._lines.lines(kinds=("intent",)))
        purposes = (decode(line.kind, line.body) for line in intents)
        return sum(isinstance(one, Intent) and owner_of(one) == owner for one in purposes)

    def has_gate(self, owner: str) -> bool:
        """Whether a gate of this owner is open. In a published file, one that was lost cannot be told from it."""
        intents = (decode(line.kind, line.body) for line in self._lines.kept_intents())
        return any(isinstance(one, Intent) and owner_of(one) == owner for one in intents)

    def transcript(self) -> tuple[str, list[Line]]:
        """Everything released so far, sealed: the hash that the chain starts from, and the lines."""
        with self.turn():  # no question is half way between its charge and its answer
            return self._lines.snapshot()

    @property
    def origin(self) -> str:
        """The hash that the chain starts from."""
        return self._lines.origin

    def lines(self, after: int) -> Iterator[Line]:
        """The transcript after an entry, up to now, read as it is asked for."""
        with self.turn():  # no question is half way between its charge and its answer
            newest = self._lines.head().seq
        return takewhile(lambda line: line.seq <= newest, self._lines.lines(after))

    def _read(self, line: Line, asked: Question | None = None) -> Measured | Told | None:
        return released(line, self.total.measure, asked if isinstance(asked, Query | Statistic) else None)

    def _unkept(self, one: FreeAnswer, note: str, receipt: Receipt) -> Told:
        free = Loss.nothing(self.total.measure)
        return Told(
            key=one.question.key, question=one.question, value=one.value, note=note, bars=(), free=free, receipt=receipt
        )


def past(read_to: int, told: Iterable[Receipt | None]) -> int:
    """How far the ledger is known after something was told: entries have numbers, so a gap shows where others wrote."""
    new = {one.entry for one in told if one is not None and one.entry > read_to}
    return max(new) if new and max(new) - read_to == len(new) else read_to
