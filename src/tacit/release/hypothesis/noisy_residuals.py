"""A release of many tables in the residual basis, and all that is read off it for free. Post-processing only.

With P the projection (along each axis, a table less its mean along that axis), the table over attributes T is the sum
over all subsets B of T of P N_B, spread evenly over the other attributes; for B empty that is n / cells, and n is
public. So a query with weights W over T is n * mean(W) + Σ_B <P (mean of W over T - B), P N_B>. The released answers of
B, divided by weight * cells of B, are P N_B with independent noise. What the query's answer is off by is thus a sum of
these draws with weights P (mean of W) / (weight * cells), and its law follows from their squares (`noise_sum`).

Answers are worked out in whole numbers, and rounded to whole grid steps at the end: the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.factor import Factor
from tacit.model.facts import Facts
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.residuals import Residuals, residual
from tacit.model.workload import Marginal, marginal
from tacit.release.estimate import Centre, TableEstimate
from tacit.release.hypothesis.noisy_table import MOST_SUMMED_UP, exact_dot
from tacit.release.noise_sum import Draws, width_of_bridge, width_of_sum

Names = tuple[str, ...]


class Component(NamedTuple):
    """The part of a factor's weights in the residual of some of its attributes: Σ of its squares, and its largest."""

    names: Names
    squares: float
    largest: float


class Piece(NamedTuple):
    """A part of a table: projected answers, the sum of their sizes, the axes that they lack, what they are times."""

    answers: NDArray[Any]
    size: float
    beyond: tuple[int, ...]
    times: int


class NoisyResiduals:
    """Every query whose attributes, and all subsets of them, are scopes of one release of residuals."""

    def __init__(self, measured: Measured, domain: Domain, rows: int, confidence: float) -> None:
        question = measured.question
        assert isinstance(question, Residuals)
        self.question, self.receipt, self.noise = question, measured.receipt, measured.noise
        self._measure = measured.cost.measure
        self._domain, self._rows, self._confidence = domain, rows, confidence
        self._sizes = domain.sizes
        sizes = [self._cells(scope) for scope in question.scopes]
        parts = np.split(measured.values, np.cumsum(sizes)[:-1])
        self._answers = dict(zip(question.scopes, parts, strict=True))
        # The weight that a residual's draws have in an answer, relative to the projected weights of the query.
        self._scales = {
            scope: 1 / (w * cells) for scope, w, cells in zip(question.scopes, question.weights, sizes, strict=True)
        }
        self._weights = dict(zip(question.scopes, question.weights, strict=True))
        self._closed = lru_cache(maxsize=4096)(self._all_there)
        self._projected = lru_cache(maxsize=1024)(self._project)
        self._pieces = lru_cache(maxsize=1024)(self._put)

    def covers(self, query: Query) -> bool:
        """Whether every residual that the query's answer is made of was released."""
        return self._closed(query.scope)

    def has(self, asked: Marginal) -> bool:
        """Whether every residual was released that the cells of a table are made of."""
        return self._closed(self._scope(asked))

    def value(self, query: Query) -> int:
        """The query's answer in grid steps, rounded to a whole one; a query and its complement add up to n."""
        core = query.core
        weights = core.table(core.scope, [self._sizes[name] for name in core.scope])
        whole, parts = self._pieces(core.scope)
        found = self._rows * (whole // weights.size) * int(weights.sum())
        for part in parts:
            sums = weights.sum(axis=part.beyond) if part.beyond else weights
            found += part.times * exact_dot(sums, part.answers, part.size)
        rounded = (2 * found + whole) // (2 * whole)
        return self._rows * query.unit - rounded if query.complement else rounded

    def law(self, query: Query, confidence: float) -> int:
        """The bar of the noise alone, in grid steps. Rounding adds half a step; both ends are whole, so it is whole."""
        return math.floor(query.unit * width_of_sum(self._drawn(query), confidence) + 0.5)

    def reach(self, query: Query, shown: int, confidence: float) -> int:
        """How far the truth is from a value at most, in grid steps: by the law of the noise."""
        return abs(shown - self.value(query)) + self.law(query, confidence)

    def centre(self, query: Query) -> Centre:
        """The query's answer, which is rounded to a whole step, and the draws that it is made of."""
        return Centre(self.value(query), self._drawn(query).times(query.unit), 0.5)

    def table(self, asked: Marginal) -> TableEstimate:
        """A table within one scope. Every cell is what its own question is answered with."""
        scope, domain = self._scope(asked), self._domain
        shape, beyond = self._shape(scope), tuple(axis for axis, name in enumerate(scope) if name not in asked.names)
        whole, parts = self._pieces(scope)
        counts = np.full(shape, self._rows * (whole // math.prod(shape)), dtype=object)
        for part in parts:
            counts += np.expand_dims(part.answers, part.beyond).astype(object) * part.times
        inside = asked.where.table(scope, shape)
        doubled = 2 * (inside * counts).sum(axis=beyond) + whole
        values = np.asarray(doubled // (2 * whole)).astype(np.int64).reshape(self._shape(asked.names))
        cells = list(asked.queries(domain)) if self._shared(asked) or (doubled % (2 * whole) == 0).any() else []
        for at in np.flatnonzero(doubled % (2 * whole) == 0):  # half a step: a question and its complement round apart
            if not cells[at].is_constant:
                values.flat[at] = self.value(cells[at])
        some = [cell for cell in (cells if self._shared(asked) else [next(asked.queries(domain))]) if cell.scope]
        width = max(self.law(cell, self._confidence) for cell in some)
        return TableEstimate(values, self._facts.within(width))

    def counts(self, scope: Names) -> NDArray[np.float64]:
        """The table over a scope before any rounding: what is compared with, and never told."""
        whole, parts = self._pieces(scope)
        found = np.full(self._shape(scope), self._rows / self._cells(scope))
        for part in parts:
            found += np.expand_dims(part.answers.astype(np.float64) * (part.times / whole), part.beyond)
        return found

    def spread(self, scope: Names) -> float:
        """The variance of the count of each cell of a table over these attributes."""
        cell = next(marginal(self._domain, *scope).queries(self._domain))
        return variance(self.noise) * self._drawn(cell).squares

    def values_of(self, name: str) -> MainEffect:
        """The counts of one attribute's values, from its own residual."""
        whole, (part,) = self._pieces((name,))
        # Sums of them, twice over for rounding, are within 64 bits or Python's own.
        fits = 4 * (self._rows * whole + part.size) < MOST_SUMMED_UP
        answers = part.answers if fits else part.answers.astype(object)
        cells = self._rows * (whole // answers.size) + answers * part.times
        return MainEffect(self.noise, cells, whole, self._scales[name,])

    def _drawn(self, query: Query) -> Draws:
        """What the error of an answer is made of: components of a product are the products of its factors'."""
        squares, largest, draws = 0.0, 0.0, 0
        for parts in product(*_components(query, self._domain)):
            names = tuple(sorted([name for part in parts for name in part.names]))
            square = math.prod([part.squares for part in parts])
            if not names or not square:
                continue
            scale = self._scales[names]
            squares += square * scale**2
            largest = max(largest, scale * math.prod([part.largest for part in parts]))
            draws += self._answers[names].size
        return Draws(self.noise, squares * (1 + 1e-12), largest * (1 + 1e-12), draws)

    def _all_there(self, scope: Names) -> bool:
        return bool(scope) and all(part in self._scales for part in _subsets(scope))

    def _project(self, scope: Names) -> tuple[NDArray[Any], float]:
        """The projected answers of a scope, times its cells, and the sum of their sizes.

        They are whole numbers, and Python's own where 64 bits are too few.
        """
        answers = self._answers[scope].reshape(self._shape(scope))
        largest = max(int(answers.max()), -int(answers.min()))
        fits = largest * math.prod(2 * size for size in answers.shape) < MOST_SUMMED_UP
        found = residual(answers if fits else answers.astype(object))
        return found, float(np.abs(found.astype(np.float64)).sum()) + 1

    def _put(self, scope: Names) -> tuple[int, list[Piece]]:
        """How many steps a row has in the table over a scope, and what it is put together from.

        Answers of a part B are divided by weight * cells of B, their projection was times cells of B, and spreading
        them over the scope divides by the other cells: together by weight * cells of B * cells of the scope.
        """
        subsets = list(_subsets(scope))
        each = [self._weights[part] * self._cells(part) * self._cells(scope) for part in subsets]
        whole = math.lcm(*each)
        beyond = [tuple(axis for axis, name in enumerate(scope) if name not in part) for part in subsets]
        divided = zip(subsets, beyond, each, strict=True)
        return whole, [Piece(*self._projected(part), axes, whole // divisor) for part, axes, divisor in divided]

    def _shared(self, asked: Marginal) -> bool:
        """Whether the cells of a table have bars that differ: where its condition is about its own attributes."""
        return not set(asked.names).isdisjoint(asked.where.scope)

    def _scope(self, asked: Marginal) -> Names:
        """The attributes that a table depends on, sorted: one with a single value says nothing."""
        names = sorted({*asked.names, *asked.where.scope})
        return tuple([name for name in names if self._sizes[name] > 1])

    def _shape(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple([self._sizes[name] for name in names])

    def _cells(self, names: Sequence[str]) -> int:
        return math.prod(self._shape(names))

    @property
    def _facts(self) -> Facts:
        return Facts("hypothesis", Loss.nothing(self._measure), self._confidence, self.receipt)


@dataclass(frozen=True, eq=False)
class MainEffect:
    """One attribute's counts in `steps` to a row, which add up to n. The noise is that of independent draws of `scale`
    rows each, less their mean.
    """

    noise: Noise
    counts: NDArray[Any]
    steps: int
    scale: float

    def some(self, many: int, confidence: float) -> int:
        """The error of the count of that many values, rounded to a whole one."""
        size = self.counts.size
        drawn = Draws(self.noise, many * (size - many) / size, max(many, size - many) / size, size)
        return math.floor(self.scale * width_of_sum(drawn, confidence) + 0.5)

    def weighted(self, total: float, squares: float, confidence: float) -> float:
        """The error of a sum with weights in [-1, 1], from their sum and the sum of their squares."""
        size = self.counts.size
        drawn = Draws(self.noise, max(0.0, squares - total**2 / size), 1 + abs(total) / size, size)
        return self.scale * width_of_sum(drawn, confidence)

    def band(self, confidence: float) -> float:
        """The error of all cumulative counts at once, each rounded to a whole one."""
        size = self.counts.size
        return math.floor(self.scale * width_of_bridge(self.noise, size, confidence) + 0.5) if size > 1 else 0.0


def _components(query: Query, domain: Domain) -> Iterator[Sequence[Component]]:
    """The components of each factor of the query's core, in weights of a row."""
    factors: Iterable[Factor] = query.factors
    if sum([factor.unit > 1 for factor in query.factors]) > 1:
        # A product of weights is rounded to the grid, so it is taken as the one table that it is.
        alone = query.core.table(query.scope, domain.shape_of(query.scope))
        factors = (Factor(query.scope, alone, query.unit),)
    for factor in factors:
        yield _parts(factor.scope, factor.unit, factor.weights.shape, factor.weights.tobytes())


@lru_cache(maxsize=2**14)
def _parts(scope: Names, unit: int, shape: tuple[int, ...], weights: bytes) -> tuple[Component, ...]:
    """The component of a factor's weights in each subset of its attributes."""
    kind = np.uint8 if unit == 1 else np.int32
    table = np.frombuffer(weights, dtype=kind).reshape(shape).astype(np.float64) / unit
    found = [Component((), float(table.mean()) ** 2, abs(float(table.mean())))]
    for names in _subsets(scope):
        part = table.mean(axis=tuple(axis for axis, name in enumerate(scope) if name not in names))
        for axis in range(part.ndim):
            part = part - part.mean(axis=axis, keepdims=True)
        found.append(Component(names, float((part**2).sum()), float(np.abs(part).max())))
    return tuple(found)


def _subsets(scope: Names) -> Iterator[Names]:
    """All of a scope's subsets but the empty one."""
    return (part for k in range(1, len(scope) + 1) for part in combinations(scope, k))
