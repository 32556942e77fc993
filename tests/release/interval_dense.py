"""Strategies as dense matrices, and least squares by the definition: what the fast code is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.model.workload import Convolution, Tree, kernel

Floats = NDArray[np.float64]

PLANS: list[tuple[Tree | Convolution, int]] = [
    (Tree("x", (2, 2, 2), (1, 1, 1)), 8),
    (Tree("x", (3, 2, 4), (3, 1, 2)), 21),
    (Tree("x", (2, 2, 2, 2), (1, 2, 3, 4)), 11),
    (Tree("x", (5, 3), (1, 7)), 13),
    (Tree("x", (4,), (3,)), 4),
    (Tree("x", (7,), (1,)), 5),
    (Tree("x", (2, 9, 3), (5, 2, 3)), 37),
    (Tree("x", (2,) * 5, (1,) * 5), 17),
    *[
        (Convolution("x", exponent, cyclic), size)
        for exponent, size in ((50, 2), (40, 3), (0, 9), (48, 8), (50, 17), (46, 40), (60, 33))
        for cyclic in (True, False)
    ],
]


def matrix(strategy: Tree | Convolution, leaves: int) -> Floats:
    if isinstance(strategy, Tree):
        at = np.arange(leaves)
        nodes = [
            weight * ((start <= at) & (at < start + span))
            for span, weight in zip(strategy.spans(), strategy.weights, strict=True)
            for start in range(0, leaves, span)
        ]
        return np.array(nodes, dtype=np.float64)
    g = kernel(leaves, strategy.exponent).astype(np.float64)
    shift = np.arange(leaves)[:, None] - np.arange(leaves)[None, :]
    return np.where((shift >= 0) | strategy.cyclic, g[shift % leaves], 0.0)


def free_directions(leaves: int) -> Floats:
    """An orthonormal basis of the vectors whose entries add up to 0."""
    return np.linalg.svd(np.ones((1, leaves)))[2][1:].T


def least_squares(strategy: Tree | Convolution, leaves: int, values: Floats, total: float | None) -> Floats:
    """The leaves, by a dense solver."""
    a = matrix(strategy, leaves)
    if total is None:
        return np.linalg.lstsq(a, values, rcond=None)[0]
    free, start = free_directions(leaves), np.full(leaves, total / leaves)
    return start + free @ np.linalg.lstsq(a @ free, values - a @ start, rcond=None)[0]


def covariance(strategy: Tree | Convolution, leaves: int, *, known_total: bool = True) -> Floats:
    """Of the leaves, for noise of variance 1."""
    a = matrix(strategy, leaves)
    if not known_total:
        return np.linalg.inv(a.T @ a)
    free = free_directions(leaves)
    return free @ np.linalg.inv(free.T @ a.T @ a @ free) @ free.T


def all_intervals(leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """first, end (excluded), and the indicator of each interval, the empty ones included."""
    first, end = (side.astype(np.int64) for side in np.triu_indices(leaves + 1))
    at = np.arange(leaves)
    return first, end, ((at >= first[:, None]) & (at < end[:, None])).astype(np.float64)
