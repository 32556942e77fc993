"""Ranges in two attributes from a nested product: rectangles cut into smaller ones. Post-processing; anybody.

Level by level every rectangle has as many children as every other, so the whole is one tree over pairs of leaves, and
`tree.consistent` decodes it. Where a side is not as long as its branching factors multiply to, the missing leaves are
taken for empty ones that were counted without noise. They are empty, so least squares stays unbiased; and noise that is
missing makes no estimate worse, so variances of the full tree are never too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Product, Tree
from tacit.release.ranges.tree import consistent, node_variances

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
_ASKED, _SEED = 400, 20170402  # of the rectangles by which products are compared: how many, and a public seed
_FEW, _MANY = 8, 16  # parts of a side on top
_FAINT = 2_000.0  # rows, in units of the noise of one count, below which they are few


def least_squares(values: ArrayLike, asked: Product, sizes: tuple[int, int], total: float) -> Floats:
    """The count of every pair of leaves."""
    sides = asked.first.branching, asked.second.branching
    widths = [tree.widths(size) for tree, size in zip((asked.first, asked.second), sizes, strict=True)]
    told, levels, start = np.asarray(values, dtype=np.float64), [], 0
    for level, (rows, columns) in enumerate(zip(*widths, strict=True), start=1):
        nodes = np.zeros([math.prod(side[:level]) for side in sides])
        nodes[:rows, :columns] = told[start : start + rows * columns].reshape(rows, columns)
        levels.append(_by_path(nodes, *(side[:level] for side in sides)))
        start += rows * columns
    tree = _as_one(asked)
    cells = consistent(np.concatenate(levels), tree, math.prod(tree.branching), total)
    pairs = [factor for pair in zip(*sides, strict=True) for factor in pair]
    depth = len(sides[0])
    back = [2 * level for level in range(depth)] + [2 * level + 1 for level in range(depth)]
    return cells.reshape(pairs).transpose(back).reshape([math.prod(side) for side in sides])[: sizes[0], : sizes[1]]


def rectangle_variance(asked: Product, low: list[Places], end: list[Places]) -> Floats:
    """The variance of the estimate for low[k] <= i < end[k], for noise of variance 1; never too small.

    A rectangle's share of a node is its leaves there over the node's. Given a parent, its k children have independent
    noise of variance V from below, corrected evenly to their sum: their part with shares a has V (Σ a² - (Σ a)²/k), and
    Σ a is k times the parent's own share. The squares of shares, added up over a level, are a product of both sides.
    """
    sides = asked.first, asked.second
    tree = _as_one(asked)
    leaves = [math.prod(side.branching) for side in sides]
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

    signal: the rows in units of the noise of one count. The fewer they are, the fewer rectangles on top: each has noise
    of its own, and what lies below is mostly even or empty then. Found by trying (decision 0056).
    """
    top = _FEW if signal < _FAINT else _MANY
    depth = max(1 + _levels(size / top) for _, size in sides)
    trees = [_tree(name, size, top, depth) for name, size in sides]
    return Product(trees[0], trees[1], nested=True) if trees[0] and trees[1] else None


def _levels(rest: float) -> int:
    """How many levels there are below the top, for that many leaves a part: up to eight children a side."""
    return max(1, math.ceil(math.log(max(rest, 2.0), _FEW) - 1e-9))


def _tree(name: str, size: int, top: int, depth: int) -> Tree | None:
    """A tree of `depth` levels with about `top` parts on top, even branching below, and few leaves beyond the last."""
    lower = [below for below in combinations_with_replacement(range(_FEW, 1, -1), depth - 1) if math.prod(below) < size]
    trees = [Tree.over(name, size, (2, *below), (1,) * depth) for below in lower]

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
