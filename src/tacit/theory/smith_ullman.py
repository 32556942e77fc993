"""Smith & Ullman, notes on query release: the ladder of ways to answer all ranges, and what came after.

Errors are in counts. Neighbours replace one row. Logs are natural where nothing else is said. Where the notes' constant
allows for less structure than ours, both are given. The two ways in which the notes and their successors read prefixes
off a tree run on noisy answers, which have the nodes on their last axis; the product's is `ranges.tree.consistent`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Tree
from tacit.release.ranges.tree import from_below, node_counts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder: noise of this scale on a number of answers, and a bound on the expected largest error."""

    source: str
    answers: int
    scale: float
    expected_max: float


def every_interval(bins: int, epsilon: float) -> Rung:
    """Independent Laplace noise on all intervals: equation (6).

    The notes bound the sensitivity by the number of intervals; exactly it is floor((D+1)²/4) (their exercise 2.1).
    """
    _check(bins, epsilon)
    answers, scale = bins * (bins + 1) // 2, (bins + 1) ** 2 // 4 / epsilon
    return Rung("equation (6)", answers, scale, scale * _laplace_max(answers))


def prefixes_and_differences(bins: int, epsilon: float) -> Rung:
    """Noisy prefixes, and intervals as their differences: equation (7). The last prefix is n, so D - 1 are noisy."""
    _check(bins, epsilon)
    scale = (bins - 1) / epsilon
    return Rung("equation (7)", bins - 1, scale, 2 * scale * _laplace_max(bins - 1))


def binary_tree(bins: int, epsilon: float) -> Rung:
    """The binary tree: claims 2.2 and 2.3, theorem 2.5.

    Noise 2 log2(D)/epsilon on at most 2D - 1 nodes; all nodes are within the bound of equation (10) in expectation; a
    threshold is a sum of at most log2 D of them (equation (15)), an interval a difference of two thresholds.
    """
    _check(bins, epsilon)
    levels = _levels(bins, 2)
    scale, answers = 2 * levels / epsilon, 2 * 2**levels - 1
    return Rung("theorem 2.5", answers, scale, 2 * levels * scale * _laplace_max(answers))


def wide_tree(bins: int, branching: int, epsilon: float) -> Rung:
    """A tree with a larger branching factor: footnote 2. At most branching - 1 nodes of a level for a threshold."""
    _check(bins, epsilon)
    levels = _levels(bins, branching)
    scale = 2 * levels / epsilon
    answers = sum(branching**level for level in range(1, levels + 1))
    return Rung("footnote 2", answers, scale, 2 * levels * (branching - 1) * scale * _laplace_max(answers))


def best_branching(bins: int) -> int:
    """The branching factor with the least variance of a sum of nodes, (b-1) h³ for h levels: footnote 2.

    After least squares about 16 is best (Qardaji, Yang & Li 2013); `choice.choose` works that out exactly.
    """
    _check(bins, 1.0)
    return min(range(2, max(3, min(bins, 1024) + 1)), key=lambda b: (b - 1) * _levels(bins, b) ** 3)


def square_root(bins: int, rho: float) -> Rung:
    """The square-root factorisation under zCDP: Fichtenberger, Henzinger & Upadhyay 2023, theorem 1.

    Rows and columns of the factor have squared norm at most 1 + (log(D) + gamma)/pi; two columns differ by at most the
    sum of theirs. D prefixes of that deviation have an expected maximum of at most sqrt(2 log 2D) deviations.
    """
    _check(bins, rho)
    norm = 1 + (math.log(bins) + np.euler_gamma) / math.pi
    scale = math.sqrt(2 * norm / (2 * rho))
    return Rung("square root", bins, scale, 2 * scale * math.sqrt(norm) * math.sqrt(2 * math.log(2 * bins)))


def lower_bound(bins: int) -> int:
    """log* D: every algorithm errs by at least that order (Bun, Nissim, Stemmer & Vadhan 2015). At most 5 here."""
    value, times = float(bins), 0
    while value > 1:
        value, times = math.log2(value), times + 1
    return times


def textbook(values: ArrayLike, tree: Tree, leaves: int, total: float) -> Floats:
    """Every prefix as a sum of nodes: F(0) = 0, ..., F(leaves) = n.

    Smith & Ullman, claim 2.3: at most log2 D nodes for a binary tree; branching - 1 of each level in general.
    """
    return _added_up(node_counts(values, tree, leaves), tree, leaves, total)


def honaker(values: ArrayLike, tree: Tree, leaves: int, total: float) -> Floats:
    """Every prefix as a sum of nodes, each first combined with all that lies below it.

    Honaker 2015, "estimation from below": a node's own answer and the sum of its children, weighted by precision.
    """
    seen, _ = from_below(values, tree, leaves)
    return _added_up(seen, tree, leaves, total)


def _added_up(nodes: list[Floats], tree: Tree, leaves: int, total: float) -> Floats:
    """Where every leaf starts, by sums over the older siblings of its ancestors."""
    starts = np.zeros((*nodes[0].shape[:-1], 1))
    for level, branching in zip(nodes, tree.branching, strict=True):
        width = level.shape[-1]
        padded = np.zeros((*level.shape[:-1], starts.shape[-1] * branching))
        padded[..., :width] = level
        families = padded.reshape(*level.shape[:-1], starts.shape[-1], branching)
        older = np.cumsum(families, axis=-1) - families
        starts = (starts[..., None] + older).reshape(padded.shape)[..., :width]
    return np.concatenate([starts, np.full((*starts.shape[:-1], 1), float(total))], axis=-1)


def _laplace_max(draws: int) -> float:
    """E max of that many Laplace draws of scale 1 is at most log(draws) + 1: equation (10)."""
    return math.log(draws) + 1


def _levels(bins: int, branching: int) -> int:
    levels, reached = 1, branching
    while reached < bins:
        levels, reached = levels + 1, reached * branching
    return levels


def _check(bins: int, budget: float) -> None:
    if bins < 2:
        raise ValueError(f"bins is {bins!r}; it must be at least 2: a single bin has no ranges.")
    if not 0 < budget < math.inf:
        raise ValueError(f"the budget is {budget!r}; it must be a positive number.")
