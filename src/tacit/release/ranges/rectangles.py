"""Ranges in two ordered attributes at once, from a product of two trees. Post-processing; anybody may call it.

Of all pairs of nodes the matrix is a Kronecker product, so least squares works along one axis after the other, and
variances multiply; that all rows together are n is public, and corrects everything once at the end. A nested product is
one tree over pairs of leaves (`nested_product`).

True counts rise with rectangles: whatever bounds the rows of an *outer* rectangle from above bounds those of all that
lie within, and an *inner* one's bound from below holds for all around it. So a rectangle is bracketed by others that
were counted with less noise, and its bar reaches from one bound to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Measure
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.workload import Product, Tree, leaves
from tacit.release.noise_sum import continuous, half_widths
from tacit.release.ranges import nested_product
from tacit.release.ranges.choice import falling, trees, weightings
from tacit.release.ranges.distribution import Counts, cut_errors
from tacit.release.ranges.shrinkage import Corner, box, shared
from tacit.release.ranges.tree import consistent, interval_moments

Floats = NDArray[np.float64]
Place = NDArray[np.intp]
PlaceList = list[Place]  # one array for each attribute
Bars = Callable[[PlaceList, PlaceList], Floats]  # of the least squares counts of rectangles low[k] <= i < end[k]
# Rows for every pair of leaves, in units of the noise of one count: below which trees are nested, and below which the
# leaves of other ones tell nothing, so that weights fall from level to level by this step.
_FAINT, _FAINTER, _STEP = 32.0, 0.02, 2.0
_WIDER = 1.4  # how much wider bars may be where trees are nested


class Rectangles:
    """Two ordered attributes as one release knows them. Counts of rectangles add up; rounding may make one -1 or -2."""

    def __init__(self, measured: Measured, domain: Domain, rows: int, confidence: float = 0.95) -> None:
        product = measured.question
        if not isinstance(product, Product):
            raise TypeError("rectangles are read off a product of two trees")
        self.names = (product.first.name, product.second.name)
        self.rows, self.confidence, self.noise = rows, confidence, measured.noise
        self._product = product
        self._leaves = (leaves(domain[self.names[0]]), leaves(domain[self.names[1]]))
        self._bins = (domain[self.names[0]].bins, domain[self.names[1]].bins)
        self._raw = sums_of(least_squares(measured.values, product, self._leaves, rows))
        # Whole numbers, as counts are: so a rectangle is the same number in whichever form it is asked.
        shown = likely(self._raw, product, self._leaves, variance(self.noise), rows)
        self._sums = np.rint(sums_of(shown))
        self.receipt = measured.receipt

    def at(self, confidence: float) -> Rectangles:
        """These rectangles with error bars of another confidence."""
        found = copy(self)
        found.confidence = confidence
        return found

    def counts(self, first: tuple[ArrayLike, ArrayLike], last: tuple[ArrayLike, ArrayLike]) -> Counts:
        """Rows in the bins first[k] <= i <= last[k] of both attributes k, for many rectangles at once."""
        low = [np.asarray(side, dtype=np.intp) for side in first]
        end = [np.asarray(side, dtype=np.intp) + 1 for side in last]
        for axis, name in enumerate(self.names):
            if np.any(low[axis] < 0) or np.any(end[axis] > self._bins[axis]) or np.any(low[axis] > end[axis]):
                raise InvalidQuery(f"{name} has the bins 0 to {self._bins[axis] - 1}, and a range goes up.")
        values = box(self._sums, low, end)
        return Counts(values, self._errors(values, low, end, self.confidence))

    def covers(self, query: Query) -> bool:
        """Whether the query is a rectangle of these attributes, or the complement of one."""
        return not query.is_constant and self._sides(query) is not None

    def value(self, query: Query) -> int:
        found = self._sides(query)
        assert found is not None
        inside = int(box(self._sums, *found[:2]))
        return self.rows - inside if found[2] else inside

    def law(self, query: Query, confidence: float) -> float:
        """The bar that is to be expected if rows are spread evenly: it depends on public sizes alone."""
        found = self._sides(query)
        assert found is not None
        return float(self._brackets(*found[:2], confidence).half_width)

    def reach(self, query: Query, shown: int, confidence: float) -> int:
        """How far the truth is from a value at most: as far as the bounds of an inner rectangle and an outer one."""
        found = self._sides(query)
        assert found is not None
        inside = self.rows - shown if found[2] else shown
        return int(self._errors(np.asarray(float(inside)), *found[:2], confidence))

    def _errors(self, values: Floats, low: PlaceList, end: PlaceList, confidence: float) -> Floats:
        """From what a rectangle's inner one has at least to what its outer one has at most, cut at 0 and n."""
        found = self._brackets(low, end, confidence)
        least, most = box(self._raw, *found.inner) - found.bars[0], box(self._raw, *found.outer) + found.bars[1]
        return cut_errors(values, (least + most) / 2, (most - least) / 2, self.rows)

    def _brackets(self, low: PlaceList, end: PlaceList, confidence: float) -> Brackets:
        return brackets(self._product, self._leaves, low, end, lambda s, e: self._bar(s, e, confidence), self.rows)

    def _bar(self, low: PlaceList, end: PlaceList, confidence: float) -> Floats:
        """The bar of the least squares estimate."""
        spread = rectangle_variance(self._product, self._leaves, low, end)
        # Pairs of leaves alone have two weights, inside and outside, as in `Decoder.distinct`.
        weights = self._product.weights
        distinct = 1 / weights[0] ** 2 if len(weights) == 1 else math.inf
        return half_widths(self.noise, spread, confidence, distinct)

    def _sides(self, query: Query) -> tuple[PlaceList, PlaceList, bool] | None:
        """The leaves that a rectangle starts with and ends before, and whether the query is its complement."""
        factors = query.factors
        if not set(query.scope) <= set(self.names) or any(len(f.scope) > 1 or f.unit > 1 for f in factors):
            return None
        low, end, complement = [0, 0], list(self._leaves), query.complement
        for factor in factors:
            axis = self.names.index(factor.scope[0])
            found = self._interval(factor.weights, axis)
            if found is None and len(factors) == 1:
                complement, found = not complement, self._interval(1 - factor.weights.astype(np.int8), axis)
            if found is None:
                return None
            low[axis], end[axis] = found
        return [np.asarray(at) for at in low], [np.asarray(at) for at in end], complement

    def _interval(self, weights: NDArray[np.generic], axis: int) -> tuple[int, int] | None:
        """The first leaf and the one after the last, where the chosen ones are neighbours."""
        beyond, leaves = weights[self._bins[axis] :], self._leaves[axis]
        inside = np.flatnonzero(weights[:leaves])
        if (beyond.size and not (beyond == beyond[0]).all()) or inside[-1] - inside[0] + 1 != inside.size:
            return None
        return int(inside[0]), int(inside[-1]) + 1


def sums_of(cells: Floats) -> Floats:
    """Over all cells before each place, on both axes."""
    return np.pad(np.cumsum(np.cumsum(cells, axis=0), axis=1), ((1, 0), (1, 0)))


def least_squares(values: ArrayLike, product: Product, sizes: tuple[int, int], total: float) -> Floats:
    """The count of every pair of leaves."""
    if product.nested:
        return nested_product.least_squares(values, product, sizes, total)
    pair = product.first, product.second
    nodes = np.asarray(values, dtype=np.float64).reshape([sum(t.widths(n)) for t, n in zip(pair, sizes, strict=True)])
    along_second = consistent(nodes, pair[1], sizes[1], None)
    cells = consistent(along_second.T, pair[0], sizes[0], None).T
    each = [_with_total(tree, size) for tree, size in zip(pair, sizes, strict=True)]
    return np.asarray(cells + (total - cells.sum()) * np.outer(each[0], each[1]))


def likely(sums: Floats, product: Product, sizes: tuple[int, int], noise: float, total: float) -> Floats:
    """The count of every pair of leaves: the least squares one, less what noise of this variance explains better.

    Which attribute is cut first matters to shapes that are even along one of them: the mean of both is taken.
    """

    def spread(low: Corner, end: Corner) -> Floats:
        return rectangle_variance(product, sizes, list(low), list(end))

    spans = [tree.spans() for tree in (product.first, product.second)]
    ways = (shared(sums, spread, spans, noise=noise, axis=axis, total=total) for axis in (0, 1))
    return np.asarray(sum(ways) / 2)


def rectangle_variance(
    product: Product, sizes: tuple[int, int], low: list[NDArray[np.intp]], end: list[NDArray[np.intp]]
) -> Floats:
    """The variance of the estimate for low[k] <= i < end[k], for noise of variance 1; never too small.

    Of all pairs of nodes it is the product of both sides, less what the total explains.
    """
    if product.nested:
        return nested_product.rectangle_variance(product, sizes, low, end)
    sides = [interval_moments(tree, sizes[k], low[k], end[k]) for k, tree in enumerate((product.first, product.second))]
    own = sides[0][0] * sides[1][0]
    explained = (sides[0][1] * sides[1][1]) ** 2 / (sides[0][2] * sides[1][2])
    return np.maximum(own - explained, 0.0)


# -- rectangles between others -----------------------------------------------------------------------------------------
#
# Where rows are few for the noise a rectangle is best rounded to larger nodes: few rows lie in between, and the noise
# of many small nodes stays out. To which nodes follows from public sizes, as if rows were spread evenly. So one bound
# may fail above and one below, each with half the chance that a bar may, as noise is symmetric: the bar holds as that
# of one estimate does.


@dataclass(frozen=True, eq=False)
class Brackets:
    """The corners of inner and outer rectangles, the bars of both, and half of what lies between if rows are even."""

    inner: tuple[PlaceList, PlaceList]
    outer: tuple[PlaceList, PlaceList]
    bars: tuple[Floats, Floats]
    half_width: Floats


def brackets(
    asked: Product, sizes: tuple[int, int], low: PlaceList, end: PlaceList, bars: Bars, rows: float
) -> Brackets:
    """For each rectangle those of whole nodes of some level that make its bar the narrowest.

    Leaves are a level too, to which a rectangle is rounded as it is: so no bar is expected to be wider for this. Of all
    pairs of nodes there would be too many levels to try, so there a rectangle stays what it is.
    """
    if not asked.nested:
        own = bars(low, end)
        return Brackets((low, end), (low, end), (own, own), own)
    ends = np.stack(np.broadcast_arrays(*low, *end)).reshape(2, 2, 1, *np.broadcast(*low, *end).shape)
    spans = np.array(list(zip(asked.first.spans(), asked.second.spans(), strict=True))).T
    spans = spans.reshape(*spans.shape, *[1] * (ends.ndim - 3))
    sides = [_rounded(ends[0, axis], ends[1, axis], spans[axis], sizes[axis]) for axis in (0, 1)]
    corners = np.stack(sides, axis=1)  # of inner low, inner end, outer low, outer end: attributes, levels, rectangles
    in_low, in_end, out_low, out_end = (list(corner) for corner in corners)
    between = rows * (_share(out_low, out_end, sizes) - _share(in_low, in_end, sizes))
    both = np.stack([bars(in_low, in_end), bars(out_low, out_end)])
    widths = (both.sum(axis=0) + between) / 2
    best = widths.argmin(axis=0, keepdims=True)
    taken = np.take_along_axis(corners, best[None, None], axis=2)[:, :, 0]
    inner, outer = np.take_along_axis(both, best[None], axis=1)[:, 0]
    in_low, in_end, out_low, out_end = (list(corner) for corner in taken)
    return Brackets((in_low, in_end), (out_low, out_end), (inner, outer), widths.min(axis=0))


def _rounded(low: Place, end: Place, span: Place, size: int) -> Place:
    """The largest run of whole nodes within an interval, perhaps an empty one, and the smallest run around it.

    The last node may be shorter than others: it ends where the attribute does.
    """
    first, last = np.minimum(-(-low // span) * span, size), np.where(end == size, size, end // span * span)
    return np.stack([first, np.maximum(first, last), low // span * span, np.minimum(-(-end // span) * span, size)])


def _share(low: PlaceList, end: PlaceList, sizes: tuple[int, int]) -> Floats:
    """The part of all pairs of leaves that lie in a rectangle."""
    return np.asarray(np.prod([(e - s) / size for s, e, size in zip(low, end, sizes, strict=True)], axis=0))


# -- which product is measured -----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def choose_product(
    first: str, first_leaves: int, second: str, second_leaves: int, measure: Measure, signal: float = math.inf
) -> Product:
    """The product of trees with little variance over rectangles, from public sizes alone.

    With delta > 0 it is the largest variance that is least, of all pairs of nodes: sensitivity and variance both
    multiply, so each side is chosen by itself. Under pure epsilon it is the mean one, of trees with equal weights: so
    fewer levels are chosen, and rectangles err less in truth and in their bars.

    Under pure epsilon a row pays for every pair of levels. So unless the rows are many for so many pairs of leaves
    (`choice.signal`), the trees are nested where bars are then at most 1.4 times as wide: what `likely` makes of them
    errs less, down to half as much. Where they are not and rows are very few, the weights fall to the leaves.
    """
    sides = sorted([(first, first_leaves), (second, second_leaves)])
    if measure != "epsilon":
        one, other = (_side(name, size) for name, size in sides)
        return Product(one, other)
    pairs = first_leaves * second_leaves
    trees = [_flat_side(name, size) for name, size in sides]
    levels = max(len(tree.branching) for tree in trees)  # one: the pairs of leaves themselves are what is best
    sizes = sides[0][1], sides[1][1]
    large = nested_product.choose(sides, math.inf) if levels > 1 and signal < _FAINT * pairs else None
    # Sides that differ much are not cut alike: whether they fit goes by least squares, where all weights are equal.
    if large is not None and _width(large, sizes) > _WIDER * _width(Product(trees[0], trees[1]), sizes):
        large = None
    if signal < _FAINTER * pairs:
        trees = [Tree(tree.name, tree.branching, falling(len(tree.branching), _STEP)) for tree in trees]
    found = Product(trees[0], trees[1])
    smaller = None if large is None else nested_product.choose(sides, signal)
    if smaller is None or _width(smaller, sizes, signal) > _WIDER * _width(found, sizes, signal):
        return found
    return smaller


def _width(product: Product, sizes: tuple[int, int], signal: float = math.inf) -> float:
    """The mean bar of rectangles under pure epsilon, in units of the noise of one count, of which n is `signal`.

    With no end of rows nothing is rounded: then it is the bar of least squares.
    """
    low, end = nested_product.rectangles(sizes)
    noise = continuous("laplace", 0.95) * math.sqrt(2) * sum(product.weights)

    def bars(low: PlaceList, end: PlaceList) -> Floats:
        return noise * np.sqrt(rectangle_variance(product, sizes, low, end))

    if math.isinf(signal):
        return float(np.sqrt((bars(low, end) ** 2).mean()))
    return float(brackets(product, sizes, low, end, bars, signal).half_width.mean())


def _side(name: str, size: int) -> Tree:
    low, high = _corners(size)

    def error(tree: Tree) -> float:
        return float(sum(w * w for w in tree.weights) * interval_moments(tree, size, low, high)[0].max())

    few = sorted((tree for tree in trees(name, size) if len(tree.branching) <= 12), key=error)[:3]
    return min((Tree(name, t.branching, w) for t in few for w in weightings(len(t.branching))), key=error)


def _flat_side(name: str, size: int) -> Tree:
    low, high = _corners(size)

    def error(tree: Tree) -> float:
        return float(len(tree.branching) ** 2 * interval_moments(tree, size, low, high)[0].mean())

    return min((tree for tree in trees(name, size) if len(tree.branching) <= 12), key=error)


def _corners(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All intervals, or some hundred: all pairs of about forty evenly spread ends, the outermost included."""
    ends = np.arange(size + 1) if size <= 64 else np.unique(np.linspace(0, size, 41).astype(np.intp))
    low, high = np.triu_indices(len(ends), k=1)
    return ends[low], ends[high]


def _with_total(tree: Tree, size: int) -> Floats:
    """Each leaf's covariance with the sum of all, as a part of that sum's variance."""
    at = np.arange(size)
    _, covariance, whole = interval_moments(tree, size, at, at + 1)
    return covariance / whole
