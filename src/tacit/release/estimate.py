"""What every mechanism gives for a question: an estimate with a half width, before it is dressed up as an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Loss
from tacit.model.entry import Measured, Told
from tacit.model.facts import EXACT, NOISE, Bar, Facts, widest
from tacit.model.noise_law import Noise, quantile
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.status import DryRun
from tacit.model.workload import Marginal
from tacit.release.noise_sum import Draws
from tacit.store.chain import Mark


class Centre(NamedTuple):
    """A value in grid steps around which the truth lies by the law of some draws alone; it may be rounded so far."""

    value: int
    draws: Draws
    rounded: float = 0.0


class Ceiling(NamedTuple):
    """What the errors of so many questions are at most, in grid steps: `least`, less what some draws come to."""

    least: float
    draws: Draws
    questions: int


class Sharper(NamedTuple):
    """A later answer of the same question: its half width in grid steps, its entry, and what the facts say of it."""

    steps: int
    entry: int
    said: str = ""

    def note(self, words: str, width: float | None) -> str:
        """What is said beside the first answer, which stays: of a question in these words, in their unit."""
        bar = "" if width is None else f" ± {width:,.4g},"
        return f"{words}: a sharper answer was bought,{bar} entry {self.entry}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value for one query, and the facts about it, whose bars are in grid steps too (`unit` to a count)."""

    value: int
    facts: Facts
    centre: Centre | None = None  # of an answer that was measured by itself
    ceiling: Ceiling | None = None  # of one that was certified with all boxes
    sharper: Sharper | None = None  # what was bought of it later: see `composition`


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """All the cells of a marginal, and facts that hold for each of them by itself; bars are in grid steps.

    Where every cell is a sum of `draws` draws of one noise, `noise` is its law. `read` answers any question about sums
    of cells, where that takes more than adding up. own: the bar that each cell is shown with, where these differ.
    """

    values: NDArray[np.int64]
    facts: Facts
    noise: Noise | None = None
    draws: int = 1
    read: Callable[[Query], Estimate] | None = None
    own: NDArray[np.float64] | None = None


class Answerer(Protocol):
    """A way of answering. It is given different queries, none constant, about which nothing was told before."""

    fresh: bool  # every new question has noise of its own, and a price: one table is cheaper than many questions
    learns: bool  # a new question is free while what is public answers it well
    everything: bool  # its first purchase answers all questions
    starts_itself: bool  # whether a question may make the first purchase

    def estimate(self, queries: Sequence[Query | Statistic], newest: Mark | None = None) -> list[Estimate]:
        """Answers to new questions. `newest` is the ledger's newest entry, if the caller has looked in this turn."""
        ...

    def table(self, asked: Marginal, /) -> TableEstimate | None:
        """A table that is bought; None where every cell is a question of its own."""
        ...

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        """For each query the answer that nothing can change any more, if it has one: from what is public alone."""
        ...

    def certifies(self, query: Query) -> bool:
        """Whether its first purchase answers a question: by what is public, and the same before it and after."""
        ...

    @property
    def knows(self) -> bool:
        """Whether it starts from a purchase about everything, so that whatever is asked of it has a bar."""
        ...

    def ahead(self) -> Loss:
        """What the base would cost if it were bought now: nothing where it is bought, or where there is none."""
        ...

    def bought(self) -> bool:
        """Whether the base is bought, or a part of it."""
        ...

    def begin(self) -> Loss:
        """Buy the base, if that is still to do; what was paid."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Rows that look like what is published: a column of codes for each attribute."""
        ...

    def arrays(self) -> Iterable[NDArray[Any]]:
        """What is known beyond the released answers, in numbers whose bits can be compared; nothing if that is all."""
        ...

    def by_itself(self, statistic: Statistic) -> Loss | None:
        """The price of a statistic that the mechanism cannot answer, so that it is bought by itself; None if it can."""
        ...

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        """The most that a new question could cost now."""
        ...

    @property
    def checking(self) -> Loss:
        """What a new question costs that what is public answers well: a gate, where none is open to find that out."""
        ...

    def refuses(self) -> DryRun | None:
        """Where new questions are refused, whatever they are: why, and what one would have cost."""
        ...


def of_stored(
    stored: Measured | Told, query: Query | Statistic, rows: int, confidence: float, *, paid_now: bool = False
) -> Estimate:
    """What an answer about the query's core says about the query: n is public, so a complement is n less the core."""
    core = int(stored.values[0]) if isinstance(stored, Measured) else stored.value
    value = rows * query.unit - core if query.complement else core
    if isinstance(stored, Told):
        return Estimate(value, Facts("repeat", stored.free, confidence, stored.receipt, stored.note, stored.bars))
    facts = Facts("measured", stored.cost, confidence, stored.receipt).within(quantile(stored.noise, confidence))
    return Estimate(value, facts if paid_now else repeated(facts), Centre(value, Draws(stored.noise)))


def repeated(facts: Facts) -> Facts:
    """The facts of the same answer given again."""
    return replace(facts, source="repeat", cost=Loss.nothing(facts.cost.measure))


def for_each(cells: Sequence[Sequence[Bar]]) -> tuple[Bar, ...]:
    """Bars that hold for each cell of a table: the widest of those shown, then one for each kind of the others.

    A cell that has no bar of a kind stands in with the one that it shows.
    """
    shown = widest([cell[:1] for cell in cells])
    kinds = dict.fromkeys(bar.about for cell in cells for bar in cell if bar.about not in (NOISE, EXACT))
    bars = list(shown)
    for kind in kinds if shown else ():
        bars += widest([[next((bar for bar in cell if bar.about == kind), cell[0])] for cell in cells])
    return tuple({bar.width: bar for bar in reversed(bars)}.values())[::-1]
