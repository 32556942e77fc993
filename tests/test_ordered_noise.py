"""The best noise for ranges: it costs what independent noise costs, and no strategy that is known is better."""

from __future__ import annotations

import numpy as np
from benchmarks.bench_ordered import best


def test_the_best_noise_for_ranges_costs_no_more_and_is_better_than_prefixes_and_trees() -> None:
    size = 12
    ends = [(low, high) for low in range(size) for high in range(low + 1, size + 1)]
    ranges = np.array([[low <= at < high for at in range(size)] for low, high in ends], dtype=float)
    apart = ranges - ranges.mean(axis=1, keepdims=True)

    def error(covariance: np.ndarray) -> float:
        return float(np.einsum("ij,jk,ik->", apart, covariance, apart))

    def prices(precision: np.ndarray) -> np.ndarray:
        """Of replaced rows, over that of independent noise."""
        own = np.diag(precision)
        return (own[:, None] + own - 2 * precision) / 2

    plain = np.eye(size) - 1 / size
    found = best(size, size, 0.0)
    assert prices(np.linalg.pinv(found, hermitian=True, rcond=1e-9)).max() <= 1 + 1e-9
    trees = [np.kron(np.eye(size // span), np.ones((1, span))) for span in (1, 2, 3, 4, 6)]
    weighted = [weight * tree for tree in trees for weight in (0.5, 1, 2)]
    known = [np.tril(np.ones((size, size))), *(np.concatenate([np.eye(size), tree]) for tree in weighted)]
    for strategy in known:
        precision = plain @ strategy.T @ strategy @ plain
        at_equal_price = np.linalg.pinv(precision / prices(precision).max(), hermitian=True, rcond=1e-9)
        assert error(found) < error(at_equal_price)
    assert error(found) < 0.85 * error(plain)
