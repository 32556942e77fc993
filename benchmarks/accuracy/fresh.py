"""Fresh noise for every question, through OpenDP itself: its measurements, its composition, its conversion to delta.

Neighbours replace one row, so that a count moves by 1 at most. For benchmarks and their tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from tacit.model.query import Query
from tacit.trusted.records import Records

Law = Literal["laplace", "gaussian"]
_ROUNDING = 1 - 1e-9  # OpenDP adds the parts up in floating point, and rounds up


class Fresh:
    """An adaptive composition of so many counts, each with its equal part of the budget; repeats are kept."""

    def __init__(self, records: Records, law: Law, *, epsilon: float, delta: float, questions: int) -> None:
        dp.enable_features("contrib", "honest-but-curious")
        self._records, self._bought = records, dict[Query, float]()
        self.hard: int | None = None
        self._space = dp.user_domain("rows of a table", lambda _: True), dp.user_distance("replaced rows")
        self._count = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
        self._make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
        measure = dp.max_divergence() if law == "laplace" else dp.zero_concentrated_divergence()
        whole = epsilon if law == "laplace" else opendp_rho(epsilon, delta)
        each = whole * _ROUNDING / questions
        composed = dp.c.make_adaptive_composition(*self._space, measure, d_in=1, d_mids=[each] * questions)
        assert composed.map(1) <= whole
        self._noise = self._make(*self._count, scale=self._scale(each))
        self._queryable: Any = composed(records)

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        for query in queries:
            if query.core not in self._bought:
                self._bought[query.core] = self._buy(query.core)
        found = [self._bought[query.core] for query in queries]
        rows = self._records.rows
        return np.array([rows - v if q.complement else v for q, v in zip(queries, found, strict=True)], dtype=float)

    def _buy(self, query: Query) -> float:
        count = dp.t.make_user_transformation(
            *self._space, *self._count, lambda records: records.answer(query), lambda moved: moved
        )
        return float(self._queryable(count >> self._noise))

    def _scale(self, each: float) -> float:
        return float(dp.binary_search_param(lambda s: self._make(*self._count, scale=s), d_in=1, d_out=each))


def opendp_rho(epsilon: float, delta: float) -> float:
    """The rho that OpenDP's own conversion turns into at most (epsilon, delta)."""
    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")

    def holds(scale: float) -> bool:
        measurement = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale))
        return bool(measurement.map(1).delta(epsilon) <= delta)

    scale = dp.binary_search(holds, bounds=(0.01, 1e6))
    return float(dp.m.make_gaussian(*space, scale=scale).map(1))
