"""What every mechanism gives for a question: an estimate with a half width, before it is dressed up as an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import Measured, Receipt, Source, Told
from tacit.model.budget import Loss
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and a half width for one query, both in grid steps (`unit` to a count). No half width: no guarantee.

    `alone` is the half width of this answer by itself, where that is another; `likely` is no promise.
    """

    value: int
    half_width: int | None
    source: Source
    cost: Loss
    receipt: Receipt | None
    note: str = ""
    alone: int | None = None
    likely: int | None = None


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """All the cells of a marginal, with one half width for each of them by itself, in grid steps."""

    values: NDArray[np.int64]
    half_width: int | None
    source: Source
    cost: Loss
    receipt: Receipt | None
    note: str = ""
    alone: int | None = None
    likely: int | None = None


class Mechanism(Protocol):
    """A way of answering. It is given different queries, none constant, whose cores were not measured before."""

    def estimate(self, queries: Sequence[Query | Statistic]) -> list[Estimate]: ...

    def table(self, asked: Marginal, /) -> TableEstimate: ...

    def recall(self, query: Query | Statistic, stored: Measured | Told) -> Estimate:
        """The answer to a query about whose core something is stored."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Rows that look like what is published: a column of codes for each attribute."""
        ...

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        """The most that a new question could cost now."""
        ...


def of_stored(
    stored: Measured | Told, query: Query | Statistic, rows: int, confidence: float, *, paid_now: bool = False
) -> Estimate:
    """What an answer about the query's core says about the query: n is public, so a complement is n less the core."""
    core = int(stored.values[0]) if isinstance(stored, Measured) else stored.value
    value = rows * query.unit - core if query.complement else core
    if isinstance(stored, Told):
        figures = stored.alone, stored.likely
        return Estimate(value, stored.half_width, "repeat", stored.free, stored.receipt, stored.note, *figures)
    cost = stored.cost if paid_now else Loss(stored.cost.measure, 0)
    source: Source = "measured" if paid_now else "repeat"
    return Estimate(value, quantile(stored.noise, confidence), source, cost, stored.receipt)
