"""From the noisy nodes of a tree to all leaves, and how precise they are. Post-processing; anybody may call it.

Values have the nodes on their last axis, level by level as `model.workload.Tree` orders them, and may have any axes
before it. Variances are for noise of variance 1 on every answer, so they follow from public parameters alone. The count
of all leaves is public (n), except where `total` is None.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Tree

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class _Spread:
    """Variances seen from below, of one level: of a node, and of the sum over a node's siblings and itself.

    All nodes of a level but the last cover full subtrees, so two numbers say it all: for any other node, and the last.
    """

    width: int
    branching: int
    node: tuple[float, float]
    family: tuple[float, float]

    def nodes(self) -> Floats:
        return self._spelled(self.node, self.width)

    def families(self) -> Floats:
        return self._spelled(self.family, self.parents)

    @property
    def parents(self) -> int:
        return -(-self.width // self.branching)

    @staticmethod
    def _spelled(pair: tuple[float, float], width: int) -> Floats:
        found = np.full(width, pair[0])
        found[-1] = pair[1]
        return found


def node_counts(values: ArrayLike, tree: Tree, leaves: int) -> list[Floats]:
    """The noisy count of every node, one array for each level."""
    cuts = np.cumsum((0, *tree.widths(leaves)))
    found = np.asarray(values, dtype=np.float64)
    return [found[..., a:b] / w for (a, b), w in zip(pairwise(cuts.tolist()), tree.weights, strict=True)]


def consistent(values: ArrayLike, tree: Tree, leaves: int, total: float | None) -> Floats:
    """The least squares estimate of every leaf, in linear time. Nodes are then sums of their leaves, and the root is n.

    Hay, Rastogi, Miklau & Suciu 2010, theorem 3, for any branching, weights and a known root. Upwards each node is
    combined with the sum of its children, weighted by precision; downwards what a parent has too much or too little is
    shared among its children in proportion to their variances.
    """
    seen, sums = from_below(values, tree, leaves)
    parents = sums[0] if total is None else np.broadcast_to(np.float64(total), sums[0].shape)
    for level, spread in enumerate(_spreads(tree, leaves)):
        missing = (parents - sums[level]) / spread.families()
        parents = seen[level] + spread.nodes() * np.repeat(missing, spread.branching, axis=-1)[..., : spread.width]
    return np.asarray(parents)


def interval_variance(tree: Tree, leaves: int, first: ArrayLike, end: ArrayLike) -> Floats:
    """The variance of the least squares count of leaves first <= i < end, for many intervals at once."""
    inside, _ = _two_parts(tree, leaves, first, end)
    return inside


def interval_moments(tree: Tree, leaves: int, first: ArrayLike, end: ArrayLike) -> tuple[Floats, Floats, float]:
    """Without a public total: an interval's variance, its covariance with the sum of all leaves, and that one's own."""
    inside, share = _two_parts(tree, leaves, first, end)
    root = _spreads(tree, leaves)[0].family[1]
    return inside + share**2 * root, share * root, root


def _two_parts(tree: Tree, leaves: int, first: ArrayLike, end: ArrayLike) -> tuple[Floats, Floats]:
    """The count of an interval is `share` times the root plus noise of variance `inside`, independent of the root.

    From the leaves up: a part of a node is share * node + noise. Given their sum, siblings with variances V from below
    have a part Σ a x, a in [0, 1] for each sibling, of share Σ aV/ΣV and variance Σ a²V - (Σ aV)²/ΣV.
    """
    low, high = np.asarray(first, dtype=np.intp), np.asarray(end, dtype=np.intp) - 1
    low, high = (side.copy() for side in np.broadcast_arrays(low, high))
    empty = low > high
    high[empty] = low[empty] = 0
    # Two prefixes until they meet in a node: up to `low`, none of it, and up to `high`, all of it.
    share_low, share_high = np.zeros(low.shape), np.ones(low.shape)
    inside = np.zeros(low.shape)
    met = low == high
    share = np.ones(low.shape)  # of the node in which they met
    for spread in reversed(_spreads(tree, leaves)):
        up_low, up_high = low // spread.branching, high // spread.branching
        before_low, before_high = low % spread.branching, high % spread.branching
        full = spread.node[0]
        v_low, v_high = (np.where(at == spread.width - 1, spread.node[1], full) for at in (low, high))
        s_low, s_high = (np.where(at == spread.parents - 1, *spread.family[::-1]) for at in (up_low, up_high))
        meeting = ~met & (up_low == up_high)
        # a and a² weighted by V: the met part; the part between two siblings; two prefixes that stay apart.
        rest = 1 - share_low
        one = np.where(met, share * v_low, rest * v_low + share_high * v_high + (before_high - before_low - 1) * full)
        two = np.where(
            met, share**2 * v_low, rest**2 * v_low + share_high**2 * v_high + (before_high - before_low - 1) * full
        )
        a_low, a_high = before_low * full + share_low * v_low, before_high * full + share_high * v_high
        apart = (
            before_low * full + share_low**2 * v_low - a_low**2 / s_low
            + before_high * full + share_high**2 * v_high - a_high**2 / s_high
        )  # fmt: skip
        together = met | meeting
        inside += np.where(together, two - one**2 / s_low, apart)
        share = np.where(together, one / s_low, share)
        share_low, share_high = a_low / s_low, a_high / s_high
        low, high, met = up_low, up_high, together
    inside[empty] = share[empty] = 0.0
    return np.maximum(inside, 0.0), share


def node_variances(tree: Tree) -> list[float]:
    """The variance of a node of each level, seen from below, in a tree whose siblings have equally many children."""
    return [spread.node[0] for spread in _spreads(tree, math.prod(tree.branching))]


def functional_variance(tree: Tree, leaves: int, weights: ArrayLike) -> float:
    """The variance of the least squares estimate of Σ weight * leaf.

    Least squares turns answers A'u into C u, C the covariance of the leaves. With u at the leaves only, that is known.
    """
    u = np.asarray(weights, dtype=np.float64)
    widths = tree.widths(leaves)
    answers = np.concatenate([np.zeros(sum(widths[:-1])), u / tree.weights[-1]])
    return max(0.0, float(u @ consistent(answers, tree, leaves, 0.0)))


@lru_cache(maxsize=256)
def _spreads(tree: Tree, leaves: int) -> list[_Spread]:
    """Variances from below, from the top level to the leaves."""
    found: list[_Spread] = []
    below: tuple[float, float] | None = None
    for width, branching, weight in reversed(list(zip(tree.widths(leaves), tree.branching, tree.weights, strict=True))):
        own = float(weight * weight)
        node = (1 / own, 1 / own) if below is None else (1 / (own + 1 / below[0]), 1 / (own + 1 / below[1]))
        in_last = width - (-(-width // branching) - 1) * branching
        family = (branching * node[0], (in_last - 1) * node[0] + node[1])
        found.append(_Spread(width, branching, node, family))
        below = family
    return found[::-1]


def from_below(values: ArrayLike, tree: Tree, leaves: int) -> tuple[list[Floats], list[Floats]]:
    """Each node combined with what lies below it, and the sums of these over siblings; from the top level down."""
    counts, spreads = node_counts(values, tree, leaves), _spreads(tree, leaves)
    seen, sums = [counts[-1]], [_families(counts[-1], spreads[-1])]
    for level in reversed(range(len(counts) - 1)):
        trust = spreads[level].nodes() / spreads[level + 1].families()  # in the sum of the children
        seen.append(counts[level] + trust * (sums[-1] - counts[level]))
        sums.append(_families(seen[-1], spreads[level]))
    return seen[::-1], sums[::-1]


def _families(nodes: Floats, spread: _Spread) -> Floats:
    return np.add.reduceat(nodes, np.arange(0, spread.width, spread.branching), axis=-1)
