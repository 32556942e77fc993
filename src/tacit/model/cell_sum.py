"""A query's answer from the cells of a noisy table. Arithmetic only: post-processing, so that anybody may call it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.model.query import Query


def sides(query: Query, names: Sequence[str], shape: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The query's weights over the cells of a table, in grid steps, and those of its complement."""
    inside = query.table(names, shape)
    return inside, query.unit - inside


def summed(query: Query, names: Sequence[str], shape: Sequence[int]) -> int:
    """How many cells the answer is a sum of: those on the smaller side. At least one: small weights may round to 0."""
    return max(1, min(int(np.count_nonzero(side)) for side in sides(query, names, shape)))


def answer_from(query: Query, names: Sequence[str], cells: NDArray[np.int64], rows: int) -> int:
    """The query's answer in grid steps, from the cells on its smaller side: n is public, so the rest is n less those.

    Of two sides of one size it is the side of the query's core. So a query and its complement always add up to n.
    `cells` has one axis for each of the names, among which are all that the query depends on.
    """
    inside, outside = sides(query, names, cells.shape)
    few, others = np.count_nonzero(inside), np.count_nonzero(outside)
    if few < others or (few == others and not query.complement):
        return _dot(inside, cells)
    return rows * query.unit - _dot(outside, cells)


def _dot(weights: NDArray[np.int64], cells: NDArray[np.int64]) -> int:
    size = max(int(cells.max(initial=0)), -int(cells.min(initial=0)))  # numpy's own abs leaves -2^63 below 0
    largest = int(weights.max(initial=0)) * size * math.prod(weights.shape)
    if largest < 2**62:
        return int((weights * cells).sum())
    return sum(int(w) * int(c) for w, c in zip(weights.flat, cells.flat, strict=True) if w)
