"""What answers need, what is found for it, what is public about a session, and what several parts say together.

`answering` says which needs a question has, and `parts` fetches or prices them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.aggregate import RANGE_SHARE
from tacit.model.answer import Answer
from tacit.model.ask import GroupBy
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.facts import NOISE, About, Bar, Facts, about, joined
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import MAX_ANSWERS, Marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.purchases import Ranged

T = TypeVar("T")
Floats = NDArray[np.float64]
Interval = tuple[int, int]
FEW = 3  # from this many questions on, one table is the better bargain where every question has fresh noise
MAX_SEPARATE = 2_000  # questions that one value, or one column of values, is made of
_MOST_WEIGHTS = 2**25  # of all of these questions, where each is about the whole of a wide attribute


@dataclass(frozen=True)
class RangesOf:
    """All ranges of one ordered attribute, or of two: from what is bought already or, with a share, from a release.

    The release is bought for that share of the budget; without a share, for the usual one, where nothing tells the
    ranges yet. `intervals` are those of them that are counts of their own: first bin, and the bin after the last.
    """

    names: tuple[str, ...]
    share: float | None
    intervals: tuple[Interval, ...] = ()
    strategy: str | None = None  # a name of `ranges.choice.LADDER`; the best one without it

    def loss(self, total: Loss) -> Loss:
        return Loss(total.measure, int(total.atoms * (RANGE_SHARE if self.share is None else self.share)))


@dataclass(frozen=True, eq=False)
class Released:
    """What one release says about all ranges, the facts about it, and why it was measured this way.

    `told` has the intervals that something else had told before: these answers stay.
    """

    ranges: Ranged
    facts: Facts
    why: str = ""
    told: Mapping[Interval, Estimate] = field(default_factory=dict)


Need = Query | Statistic | Marginal | RangesOf
AnswerPart = Estimate | TableEstimate | Released
Found = Mapping[Need, AnswerPart]


@dataclass(frozen=True)
class Setting:
    """What is public about a session, and what answers depend on beside their parts."""

    domain: Domain
    rows: int
    confidence: float
    free: Loss
    fresh: bool  # every new question has noise of its own, and a price
    piecewise: Callable[[tuple[str, ...], Sequence[Query]], bool]  # whether ranges are put together from counts
    offer: Callable[[tuple[str, ...]], str] = lambda _: ""  # what would be sharper about ranges, in words
    band: Callable[[str, Floats, int], float | None] = lambda *_: None  # of cumulative counts
    certifies: Callable[[Query], bool] = lambda _: False  # whether the first purchase answers a question

    def public(self, note: str = "") -> Facts:
        """The facts of what follows from the declared domain and the number of rows."""
        return Facts("public", self.free, self.confidence, note=note)


def separate(number: int, weights: int) -> bool:
    """Whether so many counts, each with so many weights, may be looked up one by one.

    Where they are more, an answer is read off a release alone, whatever was told before that.
    """
    return number <= MAX_SEPARATE and number * weights <= _MOST_WEIGHTS


def answer_to(text: str, query: Query | Statistic, found: Found, rows: int) -> Answer:
    estimate = found[query]
    assert isinstance(estimate, Estimate)
    return one_answer(text, query, estimate, rows)


def one_answer(text: str, query: Query | Statistic, estimate: Estimate, rows: int) -> Answer:
    """An estimate, which is in grid steps, as an answer in counts, which lie between 0 and the number of rows."""
    facts, unit = estimate.facts, query.unit
    if unit == 1:
        return Answer(text, estimate.value, facts, (0, rows))
    bars = tuple(replace(bar, width=bar.width / unit) for bar in facts.bars)
    later = "" if estimate.sharper is None else estimate.sharper.note(text, estimate.sharper.steps / unit)
    return Answer(text, estimate.value / unit, replace(facts, bars=bars, note=joined((facts.note, later))), (0, rows))


def need_of_table(table: Marginal, domain: Domain) -> Query | Marginal:
    """A table of one cell is the same question as its condition."""
    size = table.size(domain)
    if size > MAX_ANSWERS:
        raise InvalidQuery(f"the table would have {size:,} cells; the most is {MAX_ANSWERS:,}.")
    return table.where if size == 1 else table


def cells_of(groups: Sequence[GroupBy], domain: Domain) -> list[tuple[Sequence[int], ...]]:
    """The values of each attribute that each group takes together."""
    return list(product(*(group.parts(domain) for group in groups)))


def rows_in(groups: Sequence[GroupBy], cell: Sequence[Sequence[int]], domain: Domain) -> list[Query]:
    """The conditions that the rows of a group meet."""
    return [Query.among(domain, one.name, among) for one, among in zip(groups, cell, strict=True)]


def once(needs: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(needs))


def facts_of(needs: Sequence[Need], found: Found, confidence: float, setting: Setting, *notes: str) -> Facts:
    """The facts of a value that these parts were put together to."""
    told = [found[need].facts for need in dict.fromkeys(needs)]
    return Facts.of([*told, setting.public(joined(notes))], confidence)


def with_widest(
    facts: Facts, errors: Sequence[float | None], needs: Sequence[Need], found: Found, said: About | None = None
) -> Facts:
    """The facts with the widest bar of some values; with none where a value has none. `said` is what it is about."""
    sure = [math.inf if error is None else error for error in errors]
    width = max(sure, default=0.0)
    shown = (bar for need in needs for bar in _shown(found[need]))
    return facts.within(None if math.isinf(width) else width, said or about(shown, facts.confidence))


def _shown(part: AnswerPart) -> tuple[Bar, ...]:
    """The bar that a part is shown with. A release of ranges has one for each of them, and all are about its noise."""
    return (Bar(math.inf, NOISE, part.facts.confidence),) if isinstance(part, Released) else part.facts.bars[:1]


def held_for_all(bars: Iterable[Bar]) -> float | None:
    """The width of a bar that is one event about many answers: it holds for all of them as surely as for one.

    None where there is none. A bar about a share of questions, or about one noise, holds for each answer by itself.
    """
    return next((bar.width for bar in bars if bar.about.kind in ("free", "exact", "all")), None)


def sure(noisy: int, confidence: float) -> float:
    """How sure several bars are at once: the union bound."""
    return round(max(0.0, 1 - noisy * (1 - confidence)), 12) if noisy else confidence


def least_sure(parts: Iterable[Facts], setting: Setting) -> float:
    """The least confidence of the bars that parts are shown with: the session's, or less for a sum over blocks."""
    return min([setting.confidence, *(bar.confidence for part in parts for bar in part.bars[:1])])


def release_of(name: str, share: float | None, found: Found) -> Released | None:
    """The release of an attribute's ranges among the parts, where the answer is read off one."""
    for need, part in found.items():
        if isinstance(need, RangesOf) and (need.names, need.share) == ((name,), share):
            assert isinstance(part, Released)
            return part
    return None
