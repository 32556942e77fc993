"""Ranges in two attributes from a nested product: rectangles cut into smaller ones. Post-processing; anybody.

Level by level every rectangle has as many children as every other, so the whole is one tree over pairs of leaves, and
it is decoded as such. Where a side is not as long as its branching factors multiply to, the missing leaves are empty
ones that were counted without noise. What is known for certain makes no estimate worse, so variances of the full tree
are never too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Product, Tree
from tacit.release.ranges.tree import node_variances

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_ASKED, _SEED = 400, 20170402  # of the rectangles by which products are compared: how many, and a public seed
# Up to so many rows, in units of the noise of one count: the parts of a side on top, the most children a side below
# them, and the weights of levels from the top on, of which the last is for all below.
_SHAPES: tuple[tuple[float, int, int, tuple[int, ...]], ...] = (
    (1_000.0, 8, 4, (8, 6, 2, 1)),
    (2_000.0, 8, 4, (4, 3, 2, 1)),
    (math.inf, 16, 8, (1,)),
)
_ALIKE = 4  # how many times as long one side may be as the other, for such weights; beyond it levels are alike


def least_squares(values: ArrayLike, asked: Product, sizes: tuple[int, int], total: float) -> Floats:
    """The count of every pair of leaves. As in `tree.consistent`, but a node may have any of its children missing."""
    sides = asked.first.branching, asked.second.branching
    widths = [tree.widths(size) for tree, size in zip((asked.first, asked.second), sizes, strict=True)]
    told, start, nodes = np.asarray(values, dtype=np.float64), 0, []
    for level, (rows, columns) in enumerate(zip(*widths, strict=True), start=1):
        both = np.zeros((2, *[math.prod(side[:level]) for side in sides]))  # the answers, and where there are any
        both[0, :rows, :columns] = told[start : start + rows * columns].reshape(rows, columns)
        both[1, :rows, :columns] = 1.0
        nodes.append([_by_path(one, *(side[:level] for side in sides)) for one in both])
        start += rows * columns
    tree = _as_one(asked)
    # Upwards: every node with the sum of its children, weighted by precision; what is missing has no variance.
    seen: list[tuple[Floats, Floats]] = []
    for (answers, there), weight in zip(reversed(nodes), reversed(tree.weights), strict=True):
        counts, own = answers / weight, there / weight**2
        if seen:
            sums, spread = (one.reshape(len(there), -1).sum(axis=1) for one in seen[-1])
            trust = np.divide(own, own + spread, out=np.zeros_like(own), where=there > 0)
            counts, own = counts + trust * (sums - counts), trust * spread
        seen.append((counts, own))
    # Downwards: what a parent has too much or too little is shared among its children by their variances.
    parents = np.array([float(total)])
    for counts, own in reversed(seen):
        families = own.reshape(parents.size, -1)
        missing = parents - counts.reshape(families.shape).sum(axis=1)
        share = np.divide(
            families, families.sum(axis=1, keepdims=True), out=np.zeros_like(families), where=families > 0
        )
        parents = counts + (share * missing[:, None]).ravel()
    pairs = [factor for pair in zip(*sides, strict=True) for factor in pair]
    depth = len(sides[0])
    back = [2 * level for level in range(depth)] + [2 * level + 1 for level in range(depth)]
    return parents.reshape(pairs).transpose(back).reshape([math.prod(side) for side in sides])[: sizes[0], : sizes[1]]


def rectangle_variance(asked: Product, sizes: tuple[int, int], low: list[Places], end: list[Places]) -> Floats:
    """The variance of the estimate for low[k] <= i < end[k], for noise of variance 1; never too small.

    A rectangle's share of a node is its leaves there over the node's. Given a parent, its k children have independent
    noise of variance V from below, corrected evenly to their sum: their part with shares a has V (Σ a² - (Σ a)²/k), and
    Σ a is k times the parent's own share. The squares of shares, added up over a level, are a product of both sides.
    """
    sides = asked.first, asked.second
    tree = _as_one(asked)
    leaves = [math.prod(side.branching) for side in sides]
    # Nobody is beyond the end of a side, so what ends there ends with its last node.
    low, end = (
        [np.where(at == size, all_of, at) for at, size, all_of in zip(one, sizes, leaves, strict=True)]
        for one in (low, end)
    )
    above = math.prod((e - s) / all_of for s, e, all_of in zip(low, end, leaves, strict=True)) ** 2
    found = np.zeros(np.broadcast(*low, *end).shape)
    spans = zip(*(side.spans() for side in sides), strict=True)
    for children, spread, pair in zip(tree.branching, node_variances(tree), spans, strict=True):
        squares = math.prod(_squares(s, e, span) for s, e, span in zip(low, end, pair, strict=True))
        found += spread * (squares - children * above)
        above = squares
    return np.maximum(found, 0.0)


def rectangles(sizes: tuple[int, int]) -> tuple[list[Places], list[Places]]:
    """Some hundred rectangles by which products are compared, the same for everybody."""
    chance = np.random.Generator(np.random.PCG64(_SEED))
    ends = [np.sort(chance.integers(0, size + 1, (_ASKED, 2)), axis=1) for size in sizes]
    return [pair[:, 0] for pair in ends], [pair[:, 1] for pair in ends]


def choose(sides: Sequence[tuple[str, int]], signal: float) -> Product | None:
    """A nested product with about eight parts a side on top, or sixteen; None where a side is too short for one.

    signal: the rows in units of the noise of one count. The fewer they are, the fewer rectangles on top, and the more
    of the budget is theirs: each has noise of its own, and what lies below is mostly even or empty then. Found by
    trying (decisions 0056 and 0060).
    """
    _, top, children, weights = next(shape for shape in _SHAPES if signal <= shape[0])
    lengths = [size for _, size in sides]
    if max(lengths) > _ALIKE * min(lengths):
        _, _, children, weights = _SHAPES[-1]
    depth = max(1 + _levels(size / top, children) for _, size in sides)
    trees = [_tree(name, size, top, depth, children) for name, size in sides]
    if trees[0] is None or trees[1] is None:
        return None
    each = tuple(weights[min(level, len(weights) - 1)] for level in range(depth))
    return Product(replace(trees[0], weights=each), trees[1], nested=True)


def _levels(rest: float, children: int) -> int:
    """How many levels there are below the top, for that many leaves a part."""
    return max(1, math.ceil(math.log(max(rest, 2.0), children) - 1e-9))


def _tree(name: str, size: int, top: int, depth: int, children: int) -> Tree | None:
    """A tree of `depth` levels with about `top` parts on top, even branching below, and few leaves beyond the last."""
    ways = combinations_with_replacement(range(children, 1, -1), depth - 1)
    trees = [Tree.over(name, size, (2, *below), (1,) * depth) for below in ways if math.prod(below) < size]

    def cost(tree: Tree) -> float:
        first, *below = tree.branching
        beyond = (math.prod(tree.branching) / size) ** 2
        return float(beyond * max(first / top, top / first) * (max(below) / min(below)) ** 0.25)

    return min(trees, key=cost, default=None)


def _squares(low: Places, end: Places, span: int) -> Floats:
    """Σ (share of a node)² over the nodes of `span` leaves that an interval touches."""
    first, last = low // span, (end - 1) // span
    apart = ((first + 1) * span - low) ** 2.0 + (end - last * span) ** 2.0 + (last - first - 1) * float(span) ** 2
    return np.asarray(np.where(first >= last, (end - low) ** 2.0, apart) / float(span) ** 2)


def _as_one(asked: Product) -> Tree:
    """The tree over pairs of leaves. It is not asked of anybody: its name says nothing."""
    sides = zip(asked.first.branching, asked.second.branching, strict=True)
    return Tree("", tuple(one * other for one, other in sides), asked.weights)


def _by_path(nodes: Floats, first: tuple[int, ...], second: tuple[int, ...]) -> Floats:
    """The nodes of one level in the order in which the tree has them: children of one parent side by side."""
    depth = len(first)
    return nodes.reshape(*first, *second).transpose([i for k in range(depth) for i in (k, depth + k)]).ravel()
