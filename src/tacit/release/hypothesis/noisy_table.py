"""A released noisy table, and all that follows from it for free: any query within its attributes, any coarser table."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Loss
from tacit.model.cell_sum import answer_from, sides, summed
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Facts
from tacit.model.noise_law import Noise, quantile_of_sum, variance
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate

_REMEMBERED = 2**16  # cells of a sum that is kept for the next question


class NoisyTable:
    """Noisy counts of every combination of some attributes. Post-processing only."""

    def __init__(self, measured: Measured, domain: Domain, rows: int, confidence: float) -> None:
        assert isinstance(measured.question, Marginal)
        assert measured.question.where.is_everyone
        self.names = measured.question.names
        self._sizes = {name: domain[name].size for name in self.names}
        self._cells = measured.values.reshape(tuple(self._sizes.values()))
        self._noise, self._receipt, self._measure = measured.noise, measured.receipt, measured.cost.measure
        self._rows, self._confidence = rows, confidence
        self._small_sums = lru_cache(maxsize=256)(self._sum_over)

    @property
    def entry(self) -> int:
        """Where in the ledger the table stands."""
        return self._receipt.entry

    def covers(self, question: Query | Marginal) -> bool:
        return set(_scope(question)) <= set(self.names)

    def variance(self, question: Query | Marginal) -> float:
        """A bound on the variance of an estimate (of each cell, for a table), in counts."""
        return self._draws(question) * variance(self._noise)

    def half_width(self, question: Query | Marginal) -> int:
        """The error of an estimate of the question (of each cell, for a table), in grid steps."""
        steps = question.unit if isinstance(question, Query) else 1
        return _half_width(self._noise, self._draws(question), steps, self._confidence)

    def estimate(self, query: Query) -> Estimate:
        """The query's answer from the cells on its smaller side: n is public, so the rest is n less those."""
        value = answer_from(query, query.scope, self._sums(query.scope), self._rows)
        return Estimate(value, self._facts.within(self.half_width(query)))

    def table(self, marginal: Marginal) -> TableEstimate:
        """A table of fewer attributes, or of fewer rows."""
        scope = _scope(marginal)
        inside, _ = self._sides(marginal.where, scope)
        cells = (inside * self._sums(scope)).sum(axis=self._beyond(scope, marginal.names))
        facts = self._facts.within(self.half_width(marginal))
        return TableEstimate(cells, facts, self._noise, self._draws(marginal))

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Independent rows, each cell in proportion to its noisy count where that is above 0."""
        sums = np.cumsum(np.maximum(self._cells, 0), dtype=np.float64)
        if sums[-1] <= 0:  # all noise, and all of it below 0: nothing is known
            sums = np.arange(1, sums.size + 1, dtype=np.float64)
        cells = np.searchsorted(sums, rng.random(rows) * sums[-1], side="right")
        return list(np.unravel_index(np.minimum(cells, sums.size - 1), self._cells.shape))  # a product may round up

    def _draws(self, question: Query | Marginal) -> int:
        """How many noise draws are summed in the estimate (in the fullest cell of a table)."""
        scope = _scope(question)
        each = math.prod(size for name, size in self._sizes.items() if name not in scope)
        if isinstance(question, Query):
            return each * summed(question, scope, [self._sizes[name] for name in scope])
        inside, _ = self._sides(question.where, scope)
        return each * max(1, int(np.count_nonzero(inside, axis=self._beyond(scope, question.names)).max()))

    def _sums(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        small = math.prod(self._sizes[name] for name in names) <= _REMEMBERED
        return self._small_sums(names) if small else self._sum_over(names)

    def _sum_over(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        """The noisy counts of fewer attributes: sums over the others."""
        return np.asarray(self._cells.sum(axis=self._beyond(self.names, names)))

    def _sides(self, query: Query, scope: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return sides(query, scope, [self._sizes[name] for name in scope])

    def _beyond(self, names: tuple[str, ...], kept: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(axis for axis, name in enumerate(names) if name not in kept)

    @property
    def _facts(self) -> Facts:
        return Facts("hypothesis", Loss(self._measure, 0), self._confidence, self._receipt)


def half_width_within(query: Query, domain: Domain, noise: Noise, confidence: float) -> int:
    """The error, in grid steps, of the query's answer from the table of its own attributes: before it is bought."""
    cells = summed(query, query.scope, [domain[name].size for name in query.scope])
    return _half_width(noise, cells, query.unit, confidence)


def _half_width(noise: Noise, draws: int, steps: int, confidence: float) -> int:
    return steps * quantile_of_sum(noise, draws, confidence, weighted=steps > 1)


def _scope(question: Query | Marginal) -> tuple[str, ...]:
    """The attributes it depends on, sorted."""
    return question.scope if isinstance(question, Query) else tuple(sorted({*question.names, *question.where.scope}))
