"""Trees: linear-time least squares against a dense solver, and the two older ways of reading a tree."""

from __future__ import annotations

import numpy as np
import pytest
from interval_dense import PLANS, all_intervals, covariance, least_squares, matrix
from numpy.typing import NDArray

from support import calls
from tacit.model.workload import Tree
from tacit.release.ranges import tree as interval_tree
from tacit.release.ranges.tree import (
    consistent,
    functional_variance,
    interval_moments,
    interval_variance,
)
from tacit.theory.smith_ullman import honaker, textbook

TREES = [(strategy, leaves) for strategy, leaves in PLANS if isinstance(strategy, Tree)]


@pytest.mark.parametrize(("tree", "leaves"), TREES)
@pytest.mark.parametrize("total", [50.0, None])
def test_consistency_is_least_squares(tree: Tree, leaves: int, total: float | None) -> None:
    values = np.random.default_rng(0).normal(size=(3, len(matrix(tree, leaves)))) * 10
    found = consistent(values, tree, leaves, total)
    for row, expected in zip(found, values, strict=True):
        np.testing.assert_allclose(row, least_squares(tree, leaves, expected, total), atol=1e-9)


@pytest.mark.parametrize(("tree", "leaves"), TREES)
def test_variances_are_those_of_the_dense_covariance(tree: Tree, leaves: int) -> None:
    first, end, chosen = all_intervals(leaves)
    known, free = covariance(tree, leaves), covariance(tree, leaves, known_total=False)
    expected = np.einsum("ij,jk,ik->i", chosen, known, chosen)
    np.testing.assert_allclose(interval_variance(tree, leaves, first, end), expected, atol=1e-10)
    own, with_total, total = interval_moments(tree, leaves, first, end)
    np.testing.assert_allclose(own, np.einsum("ij,jk,ik->i", chosen, free, chosen), atol=1e-10)
    np.testing.assert_allclose(with_total, chosen @ free @ np.ones(leaves), atol=1e-10)
    assert total == pytest.approx(free.sum())
    weights = np.random.default_rng(1).normal(size=leaves)
    assert functional_variance(tree, leaves, weights) == pytest.approx(weights @ known @ weights)


@pytest.mark.parametrize(("tree", "leaves"), TREES)
def test_every_reading_is_right_without_noise(tree: Tree, leaves: int) -> None:
    counts = np.random.default_rng(2).integers(0, 9, leaves)
    values, total = matrix(tree, leaves) @ counts, float(counts.sum())
    expected = np.concatenate([[0], np.cumsum(counts)])
    for read in (textbook, honaker):
        np.testing.assert_allclose(read(values, tree, leaves, total), expected, atol=1e-9)
    np.testing.assert_allclose(consistent(values, tree, leaves, total), counts, atol=1e-9)


def test_a_textbook_threshold_is_a_sum_of_at_most_log_d_nodes() -> None:
    # Claim 2.3 of Smith & Ullman's notes: the linear map has at most log2 D ones in a row, and nothing else.
    tree, leaves = Tree("x", (2,) * 6, (1,) * 6), 64
    nodes = np.eye(sum(tree.widths(leaves)))
    rows = textbook(nodes, tree, leaves, 0.0).T[:-1]
    assert set(np.unique(rows)) == {0.0, 1.0}
    assert rows.sum(axis=1).max() == 6


def test_each_rung_is_better_than_the_one_before() -> None:
    tree, leaves = Tree("x", (2,) * 8, (1,) * 8), 256
    nodes = np.eye(sum(tree.widths(leaves)))
    squares = [(read(nodes, tree, leaves, 0.0) ** 2).sum(axis=0)[1:-1] for read in (textbook, honaker)]
    squares.append(interval_variance(tree, leaves, 0, np.arange(1, leaves)))
    assert squares[0].mean() > 1.3 * squares[1].mean() > 1.3**2 * squares[2].mean()


def test_least_squares_of_a_million_leaves_has_no_loop_over_them() -> None:
    tree, leaves = Tree("x", (16,) * 5, (8, 11, 11, 11, 12)), 2**20
    values = np.random.default_rng(3).normal(size=sum(tree.widths(leaves)))
    found: list[NDArray[np.float64]] = []
    assert calls(lambda: found.append(consistent(values, tree, leaves, 5.0))) < 10_000
    assert found[0].sum() == pytest.approx(5.0, abs=1e-6)


def test_the_checks_notice_wrong_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    # The control: a tree solved as if all its levels were equally precise.
    tree, leaves = TREES[2]
    values = np.random.default_rng(0).normal(size=len(matrix(tree, leaves))) * 10
    equal = Tree("x", tree.branching, (1,) * len(tree.weights))
    spreads = interval_tree._spreads
    monkeypatch.setattr(interval_tree, "_spreads", lambda _tree, size: spreads(equal, size))
    wrong = consistent(values, tree, leaves, 50.0)
    assert np.abs(wrong - least_squares(tree, leaves, values, 50.0)).max() > 0.1
