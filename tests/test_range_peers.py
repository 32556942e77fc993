"""The published methods for ranges that ours are measured against: they do what their papers say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from benchmarks import bench_ranges
from benchmarks.accuracy import range_peers
from benchmarks.accuracy.range_peers import PEERS_1D, PEERS_2D, Prices, hilbert
from benchmarks.accuracy.tables import MILD, PURE

from tacit.exact.bounds import rho_from
from tacit.model.budget import Budget

PLENTY = (Budget(epsilon=900.0, delta=0.0), Budget(epsilon=900.0, delta=1e-9))


def prices(budget: Budget, seed: int = 1) -> Prices:
    return Prices(budget, np.random.Generator(np.random.PCG64(seed)))


@pytest.mark.parametrize("budget", PLENTY, ids=["pure", "zCDP"])
@pytest.mark.parametrize("name", ["HB", "DAWA", "AHP"])
def test_a_large_budget_gives_the_counts_of_one_attribute(name: str, budget: Budget) -> None:
    counts = np.random.Generator(np.random.PCG64(2)).integers(0, 1_000, 200).astype(np.float64)
    assert np.abs(PEERS_1D[name](counts, prices(budget)) - counts).max() < 2


@pytest.mark.parametrize("budget", PLENTY, ids=["pure", "zCDP"])
@pytest.mark.parametrize("name", ["HB", "DAWA", "UGrid", "AGrid"])
def test_a_large_budget_gives_the_counts_of_two_attributes(name: str, budget: Budget) -> None:
    counts = np.random.Generator(np.random.PCG64(2)).integers(0, 1_000, (16, 16)).astype(np.float64)
    assert np.abs(PEERS_2D[name](counts, prices(budget)) - counts).max() < 2


def test_a_replaced_row_is_two_that_are_added_or_removed() -> None:
    pure, mild = prices(PURE), prices(MILD)
    assert pure.epsilon(0.25) == pure.pure(0.25) == 0.125  # L1 moves by 2
    assert mild.epsilon(0.5) == pytest.approx(np.sqrt(rho_from(1.0, 1e-9)))
    drawn = mild.noise(0.5, 10**6)
    rho = 2 / (2 * drawn.var())  # the squared L2 distance of two histograms over twice the variance
    assert rho == pytest.approx(0.5 * rho_from(1.0, 1e-9), rel=0.02)


def test_the_tree_is_least_squares_with_a_known_root() -> None:
    counts = np.random.Generator(np.random.PCG64(2)).integers(0, 50, 8).astype(np.float64)
    found = range_peers._tree(counts, prices(PURE, 7), 1.0, 2, 3)
    drawn = prices(PURE, 7)
    rows, told = [], []
    for width in (1, 2, 4):  # from the leaves up, as the noise is drawn
        matrix = np.kron(np.eye(8 // width), np.ones(width))
        rows.append(matrix)
        told.append(matrix @ counts + drawn.noise(1 / 3, 8 // width))
    known = 10.0**5  # so sure is the root
    matrix = np.vstack([*rows, known * np.ones((1, 8))])
    values = np.concatenate([*told, [known * counts.sum()]])
    assert np.allclose(found, np.linalg.lstsq(matrix, values, rcond=None)[0], atol=1e-4)


def test_dawa_joins_what_is_even_and_keeps_what_is_not() -> None:
    even = np.full(256, 40.0)
    assert len(range_peers._partition(even, prices(PURE), 0.25)) < 40
    steps = np.repeat([0.0, 5_000.0, 0.0, 9_000.0], 64)
    ends = range_peers._partition(steps, prices(PURE), 0.25)
    assert {64, 128, 192, 256} <= set(ends.tolist())
    assert np.array_equal(np.sort(ends), ends)


def test_clusters_are_the_best_of_all() -> None:
    values = np.sort(np.random.Generator(np.random.PCG64(4)).integers(0, 20, 9)).astype(np.float64)

    def cost(ends: tuple[int, ...]) -> float:
        parts = np.split(values, ends[:-1])
        return sum(((part - part.mean()) ** 2).sum() + 6.0 / len(part) for part in parts)

    every = [(*cut, 9) for size in range(9) for cut in combinations(range(1, 9), size)]
    found = tuple(range_peers._clusters(values, 6.0).tolist())
    assert cost(found) == pytest.approx(min(map(cost, every)))


def test_hilberts_curve_steps_to_neighbours_and_its_runs_are_squares() -> None:
    order = hilbert(8)
    assert sorted(order.tolist()) == list(range(64))
    x, y = np.divmod(order, 8)
    assert (np.abs(np.diff(x)) + np.abs(np.diff(y)) == 1).all()
    for first in range(0, 64, 16):
        assert np.ptp(x[first : first + 16]) == np.ptp(y[first : first + 16]) == 3


def test_ranges_are_counted_from_sums() -> None:
    counts = np.arange(12.0).reshape(3, 4)
    ends = [np.array([[0, 2], [1, 1]]), np.array([[1, 4], [0, 4]])]
    assert np.array_equal(bench_ranges.ranges(counts, ends), [counts[0:2, 1:4].sum(), 0])
    assert np.array_equal(bench_ranges.ranges(counts[0], ends[1:]), [6, 6])


def test_the_program_compares_all_ways_on_one_shape() -> None:
    shapes = {"ridge": np.exp(-((np.arange(64.0)[:, None] - np.arange(64.0)) ** 2) / 20)}
    for budget in (PURE, MILD):
        found = bench_ranges.compare(shapes, {**PEERS_2D, "auto": bench_ranges.ours_2d}, budget, 10_000, 1)
        assert all(one.figures["ridge", "mean"][0] < 0.5 for one in found)
        line = {"hump": np.exp(-((np.arange(256.0) / 64 - 2) ** 2))}
        found = bench_ranges.compare(line, {**PEERS_1D, "auto": bench_ranges.ours_1d}, budget, 10_000, 1)
        assert all(one.figures["hump", "mean"][0] < 0.5 for one in found)
