"""What every mechanism gives for a question: an estimate with a half width, before it is dressed up as an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import Receipt, Source
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.model.workload import Marginal


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and a half width, both in grid steps (`unit` to a count), for a canonical query."""

    value: int
    half_width: int
    source: Source
    cost: Loss
    receipt: Receipt


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """All the cells of a marginal, with one half width for each of them by itself, in grid steps."""

    values: NDArray[np.int64]
    half_width: int
    source: Source
    cost: Loss
    receipt: Receipt


class Mechanism(Protocol):
    """A way of answering. It is given canonical queries that were not measured before."""

    def estimate(self, queries: Sequence[Query]) -> list[Estimate]: ...

    def table(self, marginal: Marginal) -> TableEstimate: ...

    def most(self, questions: int) -> Loss:
        """The most that so many new questions could cost now."""
        ...
