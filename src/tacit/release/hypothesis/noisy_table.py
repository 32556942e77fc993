"""A released noisy table, and all that follows from it for free: any query within its attributes, any coarser table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.factor import MAX_JOINED, MAX_TABLE, ONE, Factor, join
from tacit.model.facts import Facts, Receipt
from tacit.model.noise_law import Noise, quantile_of_sum
from tacit.model.query import Query, plain_product
from tacit.model.workload import Marginal
from tacit.release.estimate import Centre, TableEstimate
from tacit.release.noise_sum import Draws, weighted_widths

MOST_SUMMED_UP = 2**62  # within 64 bits, with a bit to spare
_LIMB = 12  # bits of weights that are multiplied at a time, where all at once would not fit
_REMEMBERED = 2**16  # cells of a sum that is kept for the next question


class NoisyTable:
    """Noisy counts of every combination of some attributes, among the rows of a condition. Post-processing only."""

    def __init__(self, measured: Measured, domain: Domain, rows: int, confidence: float) -> None:
        assert isinstance(measured.question, Marginal)
        self.names, self.where = measured.question.names, measured.question.where
        self.receipt, self.noise = measured.receipt, measured.noise
        self._sizes = {name: domain[name].size for name in self.names}
        self._cells = measured.values.reshape(tuple(self._sizes.values()))
        self._measure = measured.cost.measure
        self._rows, self._confidence = rows, confidence
        self._small_sums = lru_cache(maxsize=256)(self._sum_over)

    def covers(self, query: Query) -> bool:
        """Whether the query's answer is a sum of cells, or n less such a sum."""
        return not query.is_constant and self._within(query) is not None

    def has(self, marginal: Marginal) -> bool:
        """Whether every cell of another table is a sum of cells of this one."""
        if self.where.is_everyone:
            return set(_scope(marginal)) <= set(self.names)
        return marginal.where == self.where and set(marginal.names) <= set(self.names)

    def value(self, query: Query) -> int:
        """The query's answer in grid steps, from the cells on its smaller side: n is public, so the rest is n less."""
        inside = self._inside(query)
        if self.where.is_everyone:
            return answer_from(inside, inside.scope, self._sums(inside.scope), self._rows)
        # How many rows meet the table's own condition is not public: there is one side only.
        weights = inside.table(inside.scope, [self._sizes[name] for name in inside.scope])
        found = int((weights * self._sums(inside.scope)).sum())
        apart = _rest(self.where, self.names, query) is None
        return self._rows * query.unit - found if apart else found

    def reach(self, query: Query, shown: int, confidence: float) -> int:
        """How far the truth is from a value at most, in grid steps: by the law of the noise in the cells' sum."""
        return abs(shown - self.value(query)) + self.law(query, confidence)

    def law(self, query: Query, confidence: float) -> int:
        """The bar of the noise alone: the error of the query's answer, in grid steps."""
        inside = self._inside(query)
        if inside.unit == 1 and self.where.is_everyone:
            # A conjunction of conditions is as many cells as its factors multiply to: no array of them is made.
            some = math.prod(int(np.count_nonzero(factor.weights)) for factor in inside.factors)
            cells = math.prod(factor.weights.size for factor in inside.factors)
            each = self._cells.size // cells
            return quantile_of_sum(self.noise, each * min(some, cells - some), confidence)
        chosen, each = self._added_up(inside)
        if inside.unit == 1:
            return quantile_of_sum(self.noise, each * max(1, int(np.count_nonzero(chosen))), confidence)
        squares = float(((chosen / inside.unit) ** 2).sum())
        return math.ceil(inside.unit * float(weighted_widths(self.noise, each * squares, confidence)))

    def centre(self, query: Query) -> Centre:
        """The query's answer, and the draws in the cells that it is a sum of."""
        chosen, each = self._added_up(self._inside(query))
        squares, draws = float((chosen.astype(np.float64) ** 2).sum()), max(1, int(np.count_nonzero(chosen)))
        law = Draws(self.noise, each * squares, float(chosen.max(initial=0)), each * draws)
        return Centre(self.value(query), law)

    def table(self, marginal: Marginal) -> TableEstimate:
        """A table of fewer attributes, or of fewer rows. Every cell is what its own question is answered with."""
        scope = _scope(marginal) if self.where.is_everyone else marginal.names
        where = marginal.where if self.where.is_everyone else Query.constant(everyone=True)
        sizes = [self._sizes[name] for name in scope]
        inside = where.table(scope, sizes)
        beyond = self._beyond(scope, marginal.names)
        cells = (inside * self._sums(scope)).sum(axis=beyond)
        each = math.prod(size for name, size in self._sizes.items() if name not in scope)
        draws = each * max(1, int(np.count_nonzero(inside, axis=beyond).max()))
        if self.where.is_everyone and math.prod(sizes) == 2 and inside.flat[0]:
            # Of two halves the second is the question, and the first is n less that: see `Query.core`.
            cells.flat[0] = self._rows - int(self._sums(scope).flat[1])
        facts = self._facts.within(quantile_of_sum(self.noise, draws, self._confidence))
        return TableEstimate(cells, facts, self.noise, draws)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Independent rows, each cell in proportion to its noisy count where that is above 0."""
        sums = np.cumsum(np.maximum(self._cells, 0), dtype=np.float64)
        if sums[-1] <= 0:  # all noise, and all of it below 0: nothing is known
            sums = np.arange(1, sums.size + 1, dtype=np.float64)
        cells = np.searchsorted(sums, rng.random(rows) * sums[-1], side="right")
        return list(np.unravel_index(np.minimum(cells, sums.size - 1), self._cells.shape))  # a product may round up

    def values_of(self, name: str) -> CellSums:
        """The noisy counts of one attribute's values."""
        return CellSums(self.noise, self._sums((name,)), self._cells.size // self._sizes[name])

    def _added_up(self, inside: Query) -> tuple[NDArray[np.int64], int]:
        """The weights of the sums that an answer adds up, and how many cells each of these is a sum of."""
        shape = [self._sizes[name] for name in inside.scope]
        each = math.prod(size for name, size in self._sizes.items() if name not in inside.scope)
        if self.where.is_everyone:
            return smaller_side(inside, inside.scope, shape)[0], each
        return inside.table(inside.scope, shape), each

    def _inside(self, query: Query) -> Query:
        found = self._within(query)
        assert found is not None
        return found

    def _within(self, query: Query) -> Query | None:
        """The query about the cells whose sum answers this one, or answers its complement; None where there is none."""
        if self.where.is_everyone:
            return query if set(query.scope) <= set(self.names) else None
        return _rest(self.where, self.names, query) or _rest(self.where, self.names, ~query)

    def _sums(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        small = math.prod(self._sizes[name] for name in names) <= _REMEMBERED
        return self._small_sums(names) if small else self._sum_over(names)

    def _sum_over(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """The noisy counts of fewer attributes: sums over the others."""
        return np.asarray(self._cells.sum(axis=self._beyond(self.names, names)))

    def _beyond(self, names: tuple[str, ...], kept: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(axis for axis, name in enumerate(names) if name not in kept)

    @property
    def _facts(self) -> Facts:
        return Facts("hypothesis", Loss.nothing(self._measure), self._confidence, self.receipt)


def unmeasured(table: Marginal, counts: NDArray[np.int64], domain: Domain, rows: int) -> NoisyTable:
    """A table with these counts, which were not measured as a table: nothing is known of how far they are off."""
    receipt, cost, law = Receipt(0, ""), Loss.nothing("epsilon"), Noise("laplace", 1.0)  # nobody asks for these
    told = Measured(key="", question=table, values=counts, unit=1, noise=law, cost=cost, receipt=receipt)
    return NoisyTable(told, domain, rows, 0.5)


@dataclass(frozen=True, eq=False)
class CellSums:
    """The counts of one attribute's values: each a sum of equally many cells, with independent noise."""

    noise: Noise
    counts: NDArray[np.int64]
    each: int

    steps = 1

    def some(self, many: int, confidence: float) -> int:
        """The error of the count of that many values, from the side that has fewer."""
        return quantile_of_sum(self.noise, max(1, min(many, self.counts.size - many)) * self.each, confidence)

    def weighted(self, total: float, squares: float, confidence: float) -> float:
        """The error of a sum with weights in [-1, 1], from the sum of their squares."""
        return float(weighted_widths(self.noise, self.each * squares, confidence))

    def band(self, confidence: float) -> float:
        """The error of all cumulative counts at once.

        Those up to the middle are partial sums from the left, the others n less partial sums from the right. The noise
        is symmetric and independent, so Lévy's inequality Pr[max |S_k| > x] <= 2 Pr[|S_m| > x] bounds each half by its
        longest sum: a quarter of 1 - confidence for each.
        """
        longest = max(1, self.counts.size // 2) * self.each
        return quantile_of_sum(self.noise, longest, 1 - (1 - confidence) / 4)


def half_width_within(query: Query, domain: Domain, noise: Noise, confidence: float) -> int:
    """The error, in grid steps, of the query's answer from the table of its own attributes: before it is bought."""
    weights, _ = smaller_side(query, query.scope, domain.shape_of(query.scope))
    cells = max(1, int(np.count_nonzero(weights)))  # small weights may round to 0
    if query.unit == 1:
        return quantile_of_sum(noise, cells, confidence)
    return math.ceil(query.unit * float(weighted_widths(noise, cells, confidence)))


def conditions_apart(where: Query, names: tuple[str, ...]) -> tuple[Factor, ...]:
    """What a condition says of other attributes than a table's own.

    Every question that the table tells, or its complement, has each of these among its factors. Where the condition is
    too large for a product there are none: such a table tells nothing.
    """
    if where.complement and not set(where.scope).isdisjoint(names):
        return ()  # as a product it is one factor, of the table's own attributes and of others
    try:
        return tuple(factor for factor in plain_product(where) if set(factor.scope).isdisjoint(names))
    except InvalidQuery:
        return ()


def _rest(where: Query, names: tuple[str, ...], query: Query) -> Query | None:
    """The condition on these attributes that, together with `where`, makes the query; None where there is none."""
    try:
        return _quotient(where, names, query)
    except InvalidQuery:  # as a product, one of them would be a larger table than a question may have
        return None


def _quotient(where: Query, names: tuple[str, ...], query: Query) -> Query | None:
    theirs, apart = plain_product(where), conditions_apart(where, names)
    mine = {_form(factor): factor for factor in plain_product(query)}
    if not all(_form(factor) in mine for factor in apart):
        return None
    for factor in apart:
        del mine[_form(factor)]
    own = list(mine.values())
    # A condition such as `a = 7 OR b = 4` ties an attribute of the table to another: there, the query is divided by it.
    for tied in theirs:
        if not set(tied.scope).isdisjoint(names) and not set(tied.scope) <= set(names):
            near = [factor for factor in own if not set(factor.scope).isdisjoint(tied.scope)]
            divided = _divided(near, tied, names)
            if divided is None:
                return None
            own = [factor for factor in own if set(factor.scope).isdisjoint(tied.scope)] + [divided]
    if not all(set(factor.scope) <= set(names) for factor in own):
        return None
    rest = Query.product(own, complement=False)
    return rest if Query.all([where, rest]) == query else None


def _divided(asked: Sequence[Factor], tied: Factor, names: tuple[str, ...]) -> Factor | None:
    """The weights on some attributes that, times a condition, are what is asked; None where there are none."""
    sizes = {name: size for one in (*asked, tied) for name, size in zip(one.scope, one.weights.shape, strict=True)}
    if len(sizes) > MAX_JOINED or math.prod(sizes.values()) > MAX_TABLE:
        return None
    kept = tuple(sorted(name for name in sizes if name in names))
    order = (*kept, *(name for name in sizes if name not in names))
    whole = reduce(join, asked, ONE)
    ours, theirs = (_spread(factor, order).astype(np.int64) for factor in (whole, tied))
    beyond = tuple(range(len(kept), len(order)))
    # Where the condition leaves nothing, no row counts. Elsewhere all rows that meet it have the same weight.
    weights = np.where(theirs > 0, ours, 0).max(axis=beyond, keepdims=True)
    if not (ours == weights * (theirs > 0)).all():
        return None
    shape = [sizes[name] for name in kept]
    return Factor(kept, np.broadcast_to(weights.reshape(weights.shape[: len(kept)]), shape), whole.unit)


def _spread(factor: Factor, names: tuple[str, ...]) -> NDArray[np.integer[Any]]:
    """The weights of a factor with an axis for each of these attributes, of one value where it does not have it."""
    order = sorted(range(len(factor.scope)), key=lambda axis: names.index(factor.scope[axis]))
    sizes = dict(zip(factor.scope, factor.weights.shape, strict=True))
    return factor.weights.transpose(order).reshape([sizes.get(name, 1) for name in names])


def _form(factor: Factor) -> tuple[tuple[str, ...], int, bytes]:
    return factor.scope, factor.unit, factor.weights.tobytes()


def _scope(marginal: Marginal) -> tuple[str, ...]:
    """The attributes it depends on, sorted."""
    return tuple(sorted({*marginal.names, *marginal.where.scope}))


def answer_from(query: Query, names: Sequence[str], cells: NDArray[np.int64], rows: int) -> int:
    """The query's answer in grid steps, from the cells on its smaller side: n is public, so the rest is n less those.

    So a query and its complement always add up to n. `cells` has one axis for each of the names, among which are all
    that the query depends on.
    """
    weights, own = smaller_side(query, names, cells.shape)
    largest = max(int(cells.max(initial=0)), -int(cells.min(initial=0)))  # numpy's own abs leaves -2^63 below 0
    found = exact_dot(weights, cells, float(largest * cells.size) + 1)
    return found if own else rows * query.unit - found


def smaller_side(query: Query, names: Sequence[str], shape: Sequence[int]) -> tuple[NDArray[np.int64], bool]:
    """The weights over the cells of a table, in grid steps, on the query's side or on that of its complement.

    On that which has fewer cells; of two sides of one size on that of the query's core. And whether it is its own.
    """
    inside = query.table(names, shape)
    outside = query.unit - inside
    few, others = np.count_nonzero(inside), np.count_nonzero(outside)
    own = bool(few < others or (few == others and not query.complement))
    return inside if own else outside, own


def exact_dot(weights: NDArray[np.int64], cells: NDArray[Any], size: float) -> int:
    """The exact sum of weights, which are 0 and more, times cells, whose sizes add up to at most `size`."""
    if cells.dtype == object:
        return int((weights.astype(object) * cells).sum())
    largest = int(weights.max(initial=0))
    if largest * size < MOST_SUMMED_UP:
        return int((weights * cells).sum())
    if largest < 2**_LIMB:
        return exact_dot(weights, cells.astype(object), size)
    return (exact_dot(weights >> _LIMB, cells, size) << _LIMB) + exact_dot(weights & (2**_LIMB - 1), cells, size)
