"""What is already bought: every release that tells a question, what it answers, and how sure that is.

A fold over what was released, in the ledger's order. The first release that tells a question answers it, now and for
ever, in whichever form it is asked: so one question has one answer. A later release may tell it more sharply; then the
answer says so and stays. Everything here is public, and anybody may call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured, Told
from tacit.model.facts import Facts, Receipt, Source, joined
from tacit.model.query import Query
from tacit.model.strategy import Convolution, Product, Tree
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate, of_stored
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.release.public import Public
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.flat import FlatTable
from tacit.release.ranges.rectangles import Rectangles

READ_SHARE = 0.1  # of 1 - confidence: for bars that are read off releases, where several kinds are compared
_MUCH = 0.9  # of a bar: what a later release must stay below to be mentioned

FIRST_STAYS = "the first answer stays, and a later release is sharper"

Ranged = Distribution | FlatTable | Rectangles


class Release(Protocol):
    """What one purchase says about any question inside it, in the question's grid steps."""

    receipt: Receipt

    @property
    def words(self) -> str: ...

    def covers(self, query: Query) -> bool: ...

    def value(self, query: Query) -> int: ...

    def reach(self, query: Query, shown: int, confidence: float) -> int:
        """How far the truth is from a value at most, with this probability: by the law of this release's noise."""
        ...


@dataclass(frozen=True, eq=False)
class Purchase:
    """A table or a release of ranges as it was measured; it is decoded when something is first read off it."""

    measured: Measured
    domain: Domain
    rows: int
    confidence: float

    @property
    def entry(self) -> int:
        return self.measured.receipt.entry

    @cached_property
    def scope(self) -> frozenset[str]:
        """The attributes that a question may depend on to be told by it."""
        question = self.measured.question
        if isinstance(question, Marginal):
            return frozenset({*question.names, *question.where.scope})
        if isinstance(question, Product):
            return frozenset({question.first.name, question.second.name})
        assert isinstance(question, Tree | Convolution)
        return frozenset({question.name})

    @cached_property
    def release(self) -> Release:
        question = self.measured.question
        if isinstance(question, Marginal):
            return NoisyTable(self.measured, self.domain, self.rows, self.confidence)
        if isinstance(question, Product):
            return Rectangles(self.measured, self.domain, self.rows, self.confidence)
        return Distribution(self.measured, self.domain, self.rows, self.confidence)

    @cached_property
    def plain(self) -> bool:
        """Whether it is a table of all rows, or a release of ranges."""
        question = self.measured.question
        return not isinstance(question, Marginal) or question.where.is_everyone

    def covers(self, query: Query) -> bool:
        return self.scope.issuperset(query.scope) and self.release.covers(query)

    def table(self, asked: Marginal) -> TableEstimate | None:
        """All cells of a table from this one; None where they do not follow from it."""
        found = self.release
        return found.table(asked) if isinstance(found, NoisyTable) and found.has(asked) else None

    def ranges(self, names: tuple[str, ...]) -> Ranged | None:
        """All that this says about the ranges of one attribute or of two; None where it does not say all of it."""
        found = self.release
        if isinstance(found, Rectangles):
            return found if found.names == names else None
        if len(names) > 1 or names[0] not in self.scope or not self.plain:
            return None
        if isinstance(found, NoisyTable):
            return FlatTable(found, names[0], self.domain, self.rows, self.confidence)
        assert isinstance(found, Distribution)
        return found

    def estimate(self, query: Query) -> Estimate:
        value, free = self.release.value(query), Loss(self.measured.cost.measure, 0)
        width = self.release.reach(query, value, self.confidence)
        source: Source = "hypothesis" if isinstance(self.release, NoisyTable) else "repeat"
        return Estimate(value, Facts(source, free, self.confidence, self.release.receipt).within(width))


class Bought:
    """Everything that was released of one table, in order.

    A mechanism that learns has its own say about what is inside the tables that it learned from: there only releases of
    ranges, which it does not learn from, tell a question before it is asked.
    """

    def __init__(self, public: Public, confidence: float, *, learned: bool) -> None:
        self._public, self._confidence, self._learned = public, confidence, learned
        self._purchases: list[Purchase] = []
        self._telling: list[Purchase] = []
        self._singles: dict[frozenset[str], int] = {}  # where the first question about some attributes was answered
        self._read_to = 0

    def catch_up(self) -> None:
        """Fold in what this or another process has released since the last look."""
        entries = self._public.entries
        if entries == self._read_to:
            return
        for measured in self._public.released(after=self._read_to):
            entries = max(entries, measured.receipt.entry)
            if isinstance(measured.question, Marginal | Tree | Convolution | Product):
                found = Purchase(measured, self._public.domain, self._public.rows, self._confidence)
                self._purchases.append(found)
                ours = measured.start is None and not isinstance(measured.question, Marginal)
                if ours or not self._learned:
                    self._telling.append(found)
            elif isinstance(measured.question, Query):
                self._singles.setdefault(frozenset(measured.question.scope), measured.receipt.entry)
        self._read_to = entries

    def first(self, query: Query) -> Purchase | None:
        """The first purchase that tells a question."""
        return next((one for one in self._telling if one.covers(query)), None)

    def source(self, names: tuple[str, ...]) -> tuple[Purchase, Ranged] | None:
        """The first purchase that tells all ranges of one attribute or of two, and what it says about them."""
        for one in self._telling:
            if (found := one.ranges(names)) is not None:
                return one, found
        return None

    def at(self, entry: int, names: tuple[str, ...]) -> tuple[Purchase, Ranged] | None:
        """The purchase of this entry, and what it says about all ranges of these attributes."""
        for one in self._purchases:
            if one.entry == entry and (found := one.ranges(names)) is not None:
                return one, found
        return None

    def tells_before(self, scope: frozenset[str], entry: int | None) -> bool:
        """Whether something before an entry may have told a part of what depends on these attributes."""
        purchases = (one.entry for one in self._telling if one.scope & scope)
        singles = (first for some, first in self._singles.items() if some <= scope)
        return any(entry is None or first < entry for first in (*purchases, *singles))

    def tells_some(self, asked: Marginal) -> bool:
        """Whether some purchase may tell a cell of a table."""
        scope = {*asked.names, *asked.where.scope}
        return any(not one.scope.isdisjoint(scope) for one in self._telling)

    def tables(self, asked: Marginal) -> Iterator[tuple[Purchase, TableEstimate]]:
        """The purchases that tell every cell of a table, the first of them first."""
        for one in self._telling:
            if one.scope.issuperset(asked.names) and (found := one.table(asked)) is not None:
                yield one, found

    def told(self, query: Query, stored: Measured | Told | None) -> Estimate | None:
        """The answer that a question has already: by itself, or from the first purchase that tells it."""
        first = self.first(query)
        if stored is not None and (first is None or stored.receipt.entry < first.entry):
            return self._sharper(query, of_stored(stored, query, self._public.rows, self._confidence))
        return None if first is None else self._sharper(query, first.estimate(query))

    def tells_any(self, entry: int) -> bool:
        """Whether something is bought that tells questions by itself. What comes before an entry is read, at least."""
        if self._read_to < entry:
            self.catch_up()
        return bool(self._telling)

    def settled(self, query: Query, answer: Estimate) -> Estimate:
        """The answer to a question that something settles, unless a purchase had told it before that."""
        first = self.first(query)
        receipt = answer.facts.receipt
        earlier = first is not None and receipt is not None and first.entry < receipt.entry
        return self._sharper(query, first.estimate(query) if first is not None and earlier else answer)

    def narrowest(self, query: Query) -> Purchase | None:
        """The purchase whose own law says most about a question. Chosen by laws alone, so that its bar holds."""
        known = [one for one in self._purchases if one.covers(query)]
        sure = split(self._confidence).read
        return min(known, key=lambda one: one.release.reach(query, one.release.value(query), sure), default=None)

    def _sharper(self, query: Query, told: Estimate) -> Estimate:
        """The same answer, which says so where a later purchase tells it more sharply."""
        receipt, width = told.facts.receipt, told.half_width
        entry = 0 if receipt is None else receipt.entry
        later = (one.estimate(query) for one in self._telling if one.entry > entry and one.covers(query))
        best = min(later, key=lambda one: one.half_width or 0, default=None)
        if best is None or best.half_width is None or (width is not None and best.half_width >= _MUCH * width):
            return told
        assert best.facts.receipt is not None
        note = joined((told.facts.note, f"{FIRST_STAYS} (#{best.facts.receipt.entry})"))
        return replace(told, facts=replace(told.facts, note=note))


@dataclass(frozen=True)
class Split:
    """The confidence of bars that are read off releases, and of all others, where the narrowest of both is shown."""

    read: float
    others: float


def split(confidence: float) -> Split:
    """What may go wrong, parted: a tenth for bars read off releases, nine tenths for the others; together 1 - c."""
    miss = 1 - confidence
    return Split(1 - READ_SHARE * miss, 1 - (1 - READ_SHARE) * miss)
