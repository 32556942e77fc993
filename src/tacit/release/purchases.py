"""What is already bought: every release that tells a question, what it answers, and how sure that is.

A fold over what was released, in the ledger's order. The first release that tells a question answers it, now and for
ever, in whichever form it is asked: so one question has one answer. A later release may tell it more sharply; then the
answer says so and stays. Everything here is public, and anybody may call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured, Told
from tacit.model.factor import Factor
from tacit.model.facts import EXACT, NOISE, Bar, Facts, Source, joined
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Convolution, Marginal, Product, Strategy, Tree
from tacit.release.candidates import Candidates
from tacit.release.estimate import Centre, Estimate, TableEstimate, of_stored
from tacit.release.hypothesis.noisy_residuals import NoisyResiduals
from tacit.release.hypothesis.noisy_table import NoisyTable, conditions_apart
from tacit.release.public import Public, past
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.flat_table import FlatTable
from tacit.release.ranges.rectangles import Rectangles
from tacit.store.chain import Mark

READ_SHARE = 0.1  # of 1 - confidence: for bars that are read off releases, where several kinds are compared
_MUCH = 0.9  # of a bar: what a later release must stay below to be mentioned

FIRST_STAYS = "the first answer stays, and a later release is sharper"

Ranged = Distribution | FlatTable | Rectangles


# What one purchase says about any question inside it, in the question's grid steps: whether it covers it, its value,
# the bar of the noise alone (`law`), and how far the truth is from whatever value at most, by that law (`reach`).
Release = NoisyTable | NoisyResiduals | Rectangles | Distribution


@dataclass(frozen=True, eq=False)
class Purchase:
    """Tables or a release of ranges as they were measured; decoded when something is first read off them."""

    measured: Measured
    domain: Domain
    rows: int
    confidence: float

    @cached_property
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
        if isinstance(question, Residuals):
            return frozenset(question.names)
        assert isinstance(question, Tree | Convolution)
        return frozenset({question.name})

    @cached_property
    def release(self) -> Release:
        question = self.measured.question
        if isinstance(question, Marginal):
            return NoisyTable(self.measured, self.domain, self.rows, self.confidence)
        if isinstance(question, Residuals):
            return NoisyResiduals(self.measured, self.domain, self.rows, self.confidence)
        if isinstance(question, Product):
            return Rectangles(self.measured, self.domain, self.rows, self.confidence)
        return Distribution(self.measured, self.domain, self.rows, self.confidence)

    @cached_property
    def plain(self) -> bool:
        """Whether it is about all rows: every release but a table under a condition."""
        question = self.measured.question
        return not isinstance(question, Marginal) or question.where.is_everyone

    @property
    def apart(self) -> tuple[Factor, ...]:
        """What each question that it tells, or its complement, has among its factors."""
        question = self.measured.question
        return conditions_apart(question.where, question.names) if isinstance(question, Marginal) else ()

    def covers(self, query: Query) -> bool:
        return self.scope.issuperset(query.scope) and self.release.covers(query)

    def reach(self, query: Query, shown: int, confidence: float, law: float) -> float:
        """How far the truth is from a value at most, where the bar of the noise alone is known."""
        found = self.release
        if isinstance(found, NoisyTable | NoisyResiduals):
            return abs(shown - found.value(query)) + law
        return found.reach(query, shown, confidence)

    def spread(self, scope: tuple[str, ...]) -> float:
        """The variance of a table's counts of these attributes."""
        cells = self.domain.size_of(scope)
        return variance(self.measured.noise) * self.measured.values.size / cells

    def table(self, asked: Marginal) -> TableEstimate | None:
        """All cells of a table from this one; None where they do not follow from it."""
        found = self.release
        return found.table(asked) if isinstance(found, NoisyTable | NoisyResiduals) and found.has(asked) else None

    def ranges(self, names: tuple[str, ...], confidence: float | None = None) -> Ranged | None:
        """All that this says about the ranges of one attribute or of two; None where it does not say all of it."""
        sure, found = self.confidence if confidence is None else confidence, self.release
        if isinstance(found, Rectangles):
            return found.at(sure) if found.names == names else None
        if len(names) > 1 or names[0] not in self.scope or not self.plain:
            return None
        if isinstance(found, NoisyTable) or (isinstance(found, NoisyResiduals) and names in found.question.scopes):
            return FlatTable(found.values_of(names[0]), names[0], self.domain, self.rows, sure)
        if isinstance(found, NoisyResiduals):
            return None
        return found.at(sure)

    def estimate(self, query: Query) -> Estimate:
        value, free = self.release.value(query), Loss.nothing(self.measured.cost.measure)
        width = self.release.reach(query, value, self.confidence)
        source: Source = "hypothesis" if isinstance(self.release, NoisyTable | NoisyResiduals) else "repeat"
        return Estimate(value, Facts(source, free, self.confidence, self.release.receipt).within(width))


class Bought:
    """Everything that was released of one table, in order.

    A mechanism that learns has its own say about what is inside the tables that it learned from: there only releases of
    ranges, which it does not learn from, tell a question before it is asked.
    """

    def __init__(self, public: Public, confidence: float, *, learned: bool) -> None:
        self._public, self._confidence, self._learned = public, confidence, learned
        self._sure_of = split(confidence).read
        self._purchases: list[Purchase] = []
        self._telling: list[Purchase] = []
        self._candidates = Candidates()  # the places of those that tell
        self._singles: dict[frozenset[str], int] = {}  # where the first question about some attributes was answered
        self._about: dict[tuple[str, ...], tuple[list[Purchase], list[Purchase]]] = {}
        self._read_to = 0

    def catch_up(self, newest: Mark | None = None) -> None:
        """Fold in what this or another process has released since the last look; `newest` is the newest entry."""
        entries = self._public.entries if newest is None else newest.seq
        if entries == self._read_to:
            return
        tables, singles, newest_one = self._public.tables(after=self._read_to)
        for measured in tables:
            if isinstance(measured.question, Marginal | Residuals | Tree | Convolution | Product):
                found = Purchase(measured, self._public.domain, self._public.rows, self._confidence)
                self._purchases.append(found)
                self._about.clear()
                ours = measured.start is None and not isinstance(measured.question, Marginal | Residuals)
                if ours or not self._learned:
                    self._telling.append(found)
                    self._candidates.add(found.scope, found.apart)
        for scope, entry in singles.items():
            self._singles.setdefault(scope, entry)
        self._read_to = max(entries, newest_one)

    def pass_over(self, told: Iterable[Estimate]) -> None:
        """Answers that were told for nothing need not be looked at."""
        self._read_to = past(self._read_to, (one.facts.receipt for one in told))

    def first(self, query: Query) -> Purchase | None:
        """The first purchase that tells a question."""
        return next(self._covering(query), None) if self._telling else None

    def source(self, names: tuple[str, ...]) -> tuple[Purchase, Ranged] | None:
        """The first purchase that tells all ranges of one attribute or of two, and what it says about them."""
        for one in self._telling:
            if (found := one.ranges(names)) is not None:
                return one, found
        return None

    def ranges_of(self, names: tuple[str, ...], by: Strategy | None = None) -> tuple[Purchase, Ranged] | None:
        """The first release that was bought for the ranges of one attribute or of two, by whichever strategy or one."""
        for one in self._purchases:
            strategy = not isinstance(one.measured.question, Marginal | Residuals)
            wanted = by is None or one.measured.question == by
            if strategy and wanted and one.measured.start is None and one.scope == set(names):
                found = one.ranges(names)
                return None if found is None else (one, found)
        return None

    def tells_before(self, scope: frozenset[str], entry: int | None) -> bool:
        """Whether something before an entry may have told a part of what depends on these attributes."""
        purchases = (one.entry for one in self._telling if one.scope & scope)
        singles = (first for some, first in self._singles.items() if some <= scope)
        return any(entry is None or first < entry for first in (*purchases, *singles))

    def tables(self, asked: Marginal) -> Iterator[tuple[Purchase, TableEstimate]]:
        """The purchases that tell every cell of a table, the first of them first."""
        for one in self._telling:
            if one.scope.issuperset(asked.names) and (found := one.table(asked)) is not None:
                yield one, found

    def told(self, query: Query, stored: Measured | Told | None, before: int | None = None) -> Estimate | None:
        """The answer that a question has already: by itself, or from the first purchase that tells it.

        before: only that of a purchase before this entry, so that what the entry itself tells is not worked out.
        """
        first = self.first(query)
        if stored is not None and (first is None or stored.receipt.entry < first.entry):
            return self._sharper(query, of_stored(stored, query, self._public.rows, self._confidence))
        if first is None or (before is not None and first.entry >= before):
            return None
        return self._sharper(query, first.estimate(query))

    def read_to(self, entry: int) -> None:
        """Know what comes before an entry, at least: where it is known, this costs no look at the ledger."""
        if self._read_to < entry:
            self.catch_up()

    def settled(self, query: Query, answer: Estimate) -> Estimate:
        """The answer to a question that something settles, unless a purchase had told it before that."""
        if self._telling:
            first, receipt = self.first(query), answer.facts.receipt
            if first is not None and receipt is not None and first.entry < receipt.entry:
                return self._sharper(query, first.estimate(query))
            return self._sharper(query, self.barred(query, answer))
        return self.barred(query, answer)

    def barred(self, query: Query | Statistic, answer: Estimate) -> Estimate:
        """An answer with one more bar: how far it is from what the surest earlier purchase says, and that one's own.

        For answers of what learns, which are no release's own. Only what was bought before the answer counts, so that
        it always has the same bars; which purchase is the surest goes by the laws of noise alone, so that one bar is
        all that has to hold.
        """
        facts = answer.facts
        if not self._learned or not isinstance(query, Query) or facts.receipt is None:
            return answer
        if facts.bars and facts.bars[0].about in (NOISE, EXACT):
            return answer
        most = self._public.rows * query.unit  # a bar as wide as that says nothing
        sure, shown = self._sure_of, facts.bars[0].width if facts.bars else most
        laws = [(one.release.law(query, sure), one.entry, one) for one in self._sure(query, facts.receipt.entry)]
        law, _, surest = min(laws, default=(most, 0, None))
        if surest is None or law >= shown:
            return answer
        bar = Bar(surest.reach(query, answer.value, sure, law), NOISE, self._confidence)
        if bar.width >= most:
            return answer
        bars = (bar, *facts.bars) if bar.width < shown else (*facts.bars, bar)
        return replace(answer, facts=replace(facts, bars=bars))

    def centre(self, query: Query, answer: Estimate) -> Centre | None:
        """What the surest purchase says about a question whose answer this is, and by which law; None where none does.

        As in `barred`, only what was bought by then counts, and which purchase is the surest goes by laws alone. What
        learns buys single answers where a gate calls for them, and the gate has seen guesses that follow the noise of
        the start: so there the start tells all centres that it can, hard answers' too, and no choice follows noise.
        """
        if answer.facts.receipt is None or (answer.centre is not None and not self._learned):
            return answer.centre
        known = [
            one
            for one in self._sure(query, answer.facts.receipt.entry + 1)
            if isinstance(one.release, NoisyTable | NoisyResiduals)
            and (one.measured.start is not None or not self._learned)
        ]
        surest = min(known, key=lambda one: (one.release.law(query, self._sure_of), one.entry), default=None)
        if surest is None:
            return answer.centre
        assert isinstance(surest.release, NoisyTable | NoisyResiduals)
        return surest.release.centre(query)

    def band(self, name: str, values: NDArray[np.float64], entry: int) -> float | None:
        """How far cumulative counts are off, all at once, by the surest purchase before an entry; None where none says.

        As in `barred`: its own band, which its law alone makes the narrowest, and how far the counts are from it.
        """
        whole = (one for one in self._purchases if one.entry < entry and one.plain)
        known = [found for one in whole if (found := one.ranges((name,), self._sure_of)) is not None]
        bands = [one.cdf() for one in known if not isinstance(one, Rectangles)]
        best = min(bands, key=lambda band: band.half_width, default=None)
        return None if best is None else best.half_width + float(np.abs(values - best.values).max(initial=0.0))

    def _sure(self, query: Query, entry: int) -> list[Purchase]:
        """The purchases before an entry that say most about a question: one table, and every other release."""
        scope = query.scope
        if scope not in self._about:
            tables = [
                p for p in self._purchases if isinstance(p.release, NoisyTable) and p.plain and p.scope >= set(scope)
            ]
            others = [p for p in self._purchases if not isinstance(p.release, NoisyTable) and p.scope >= set(scope)]
            self._about[scope] = sorted(tables, key=lambda one: one.spread(scope)), others
        tables, others = self._about[scope]
        best = next((one for one in tables if one.entry < entry), None)
        others = [one for one in others if one.entry < entry and one.covers(query)]
        return others if best is None else [best, *others]

    def _covering(self, query: Query, after: int = 0) -> Iterator[Purchase]:
        """The purchases after an entry that tell a question, in order."""
        for place in self._candidates.of(query):
            one = self._telling[place]
            if one.entry > after and one.covers(query):
                yield one

    def _sharper(self, query: Query, told: Estimate) -> Estimate:
        """The same answer, which says so where a later purchase tells it more sharply."""
        receipt, width = told.facts.receipt, told.facts.width
        entry = 0 if receipt is None else receipt.entry
        later = (one.estimate(query) for one in self._covering(query, after=entry))
        best = min(later, key=lambda one: one.facts.width or 0, default=None)
        if best is None or best.facts.width is None or (width is not None and best.facts.width >= _MUCH * width):
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
