"""Published methods for ranges over one or two ordered attributes, small and from their papers. For benchmarks.

Each takes counts and a price list and gives back estimated counts of the same shape. The papers' neighbours add or
remove a row; here one is replaced, which is a removal and an addition: a pure method runs at half its epsilon. For
zCDP noise is Gaussian wherever a histogram is measured, and formulas that ask for an epsilon get that whose Laplace
noise would be as large. The number of rows is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
from numpy.typing import NDArray

from tacit.exact.bounds import rho_from
from tacit.model.budget import Budget

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prices:
    """What a share of the budget buys."""

    budget: Budget
    rng: np.random.Generator

    def epsilon(self, share: float) -> float:
        """The epsilon of Laplace noise that is as large as a histogram's, for one row added or removed."""
        if not self.budget.delta:
            return share * self.budget.epsilon / 2
        return math.sqrt(2 * share * rho_from(self.budget.epsilon, self.budget.delta))

    def pure(self, share: float) -> float:
        """The epsilon, for one row added or removed, of something that is not a histogram: rho buys sqrt(2 rho)."""
        return self.epsilon(share) / (2 if self.budget.delta else 1)

    def noise(self, share: float, shape: int | tuple[int, ...]) -> Floats:
        """For every count of a partition."""
        if not self.budget.delta:
            return self.rng.laplace(0, 1 / self.epsilon(share), shape)
        return self.rng.normal(0, math.sqrt(2) / self.epsilon(share), shape)


def hb(counts: Floats, prices: Prices, share: float = 1.0) -> Floats:
    """HB: a tree of the best branching, the same noise on every level, least squares (Qardaji, Yang & Li 2013)."""
    leaves = len(counts)
    branching = min(range(2, leaves + 1), key=lambda b: _hb_error(b, leaves)) if leaves > 1 else 2
    return _tree(counts, prices, share, branching, _height(branching, leaves))


def _height(branching: int, leaves: int) -> int:
    return max(1, math.ceil(math.log(leaves) / math.log(branching) - 1e-9))


def _hb_error(branching: int, leaves: int) -> float:
    """The paper's mean squared error of ranges, up to a factor."""
    height = _height(branching, leaves)
    return (branching - 1) * height**3 - 2 * (branching + 1) * height**2 / 3


def _tree(counts: Floats, prices: Prices, share: float, branching: int, height: int) -> Floats:
    """Least squares in two passes (Hay, Rastogi, Miklau & Suciu 2010); the root is the public number of rows."""
    whole = np.zeros(branching**height)
    whole[: len(counts)] = counts
    levels = [whole]
    for _ in range(height - 1):
        levels.append(levels[-1].reshape(-1, branching).sum(axis=1))
    noisy = [level + prices.noise(share / height, level.shape) for level in levels]  # from the leaves up
    variance, found = 1.0, [noisy[0]]
    for level in noisy[1:]:
        below = branching * variance
        found.append((below * level + found[-1].reshape(-1, branching).sum(axis=1)) / (below + 1))
        variance = below / (below + 1)
    above = np.array([whole.sum()])
    for level in reversed(found):
        children = level.reshape(-1, branching)
        above = (children + (above - children.sum(axis=1))[:, None] / branching).ravel()
    return above[: len(counts)]


def dawa(counts: Floats, prices: Prices, *, proved: bool = False) -> Floats:
    """DAWA (Li, Hay & Miklau 2014): a quarter of the budget finds runs that are nearly even, the rest counts them.

    The second stage is HB over the runs, which needs no workload, in place of the paper's GreedyH.
    """
    first = 0.25
    ends = _partition(counts, prices, first, proved=proved)
    starts = np.concatenate([[0], ends[:-1]])
    runs = hb(np.add.reduceat(counts, starts), prices, 1 - first)
    return np.repeat(runs / (ends - starts), ends - starts)


def _partition(counts: Floats, prices: Prices, share: float, *, proved: bool = False) -> NDArray[np.int64]:
    """The runs, of 2^k counts each, whose deviations from even and noise are least.

    The noise, and cutting noisy deviations at 0, are those of the program that its authors published: this peer may be
    better than it is private. With `proved` there is the noise that the plain argument asks for. A row is in one run of
    each partition. It moves the deviation of a run by less than 2, of the chosen one and of another in opposite ways,
    so the noise of the chosen run has to make up for twice that; and the cost that it must stay below may pass 0, where
    a cut leaves no chance at all.
    """
    size = len(counts)
    costs = np.full((size.bit_length(), size), np.inf)  # by the run's length and its last place
    for power in range(size.bit_length()):
        length = 2**power
        noisy = _deviations(counts, length)
        if power:
            scale = (2 - 1 / length - 1 / size) / prices.pure(share)
            noisy = noisy + prices.rng.laplace(0, 2 * scale if proved else scale, len(noisy))
            noisy = noisy if proved else np.maximum(noisy, 0)
        costs[power, length - 1 :] = noisy + 1 / prices.epsilon(1 - share)
    return _best_runs(costs)


@numba.njit(cache=True, fastmath=True)  # type: ignore[untyped-decorator] # sums in any order: several at a time
def _deviations(counts: Floats, length: int) -> Floats:  # pragma: no cover - compiled
    found = np.zeros(len(counts) - length + 1)
    total = counts[:length].sum()
    for start in range(len(found)):
        if start:
            total += counts[start + length - 1] - counts[start - 1]
        mean, sum_of = total / length, 0.0
        for place in range(start, start + length):
            sum_of += abs(counts[place] - mean)
        found[start] = sum_of
    return found


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _best_runs(costs: Floats) -> NDArray[np.int64]:  # pragma: no cover - compiled
    size = costs.shape[1]
    best, length_of = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = 0.0
    for end in range(1, size + 1):
        for power in range(costs.shape[0]):
            length = 1 << power
            if length > end:
                break
            cost = best[end - length] + costs[power, end - 1]
            if cost <= best[end]:  # of two that are as good, the longer one
                best[end], length_of[end] = cost, length
    ends, end = [size], size - length_of[size]
    while end > 0:
        ends.append(end)
        end -= length_of[end]
    return np.array(ends[::-1], dtype=np.int64)


def ahp(counts: Floats, prices: Prices, share: float = 0.85, eta: float = 0.35) -> Floats:
    """AHP (Zhang, Chen, Xu, Meng & Xie 2014): noisy counts are cut at a threshold, sorted and clustered; each cluster
    is counted again. The clusters are the best ones, by dynamic programming; share and eta are DPBench's."""
    rough = counts + prices.noise(share, len(counts))
    rough = np.where(rough > eta * math.sqrt(math.log(len(counts))) / prices.epsilon(share), rough, 0.0)
    order = np.argsort(rough, kind="stable")
    ends = _clusters(rough[order], 2 / prices.epsilon(1 - share) ** 2)
    starts = np.concatenate([[0], ends[:-1]])
    sums = np.add.reduceat(counts[order], starts)
    sums = sums + prices.noise(1 - share, len(sums))
    found = np.empty(len(counts))
    found[order] = np.repeat(sums / (ends - starts), ends - starts)
    return found


def _clusters(values: Floats, variance: float) -> NDArray[np.int64]:
    """Of sorted values: the least squared distance to the cluster's mean, and noise of this variance on its sum."""
    size = len(values)
    sums, squares = np.concatenate([[0], values.cumsum()]), np.concatenate([[0], (values**2).cumsum()])
    best, before = np.zeros(size + 1), np.zeros(size + 1, dtype=np.int64)
    for end in range(1, size + 1):
        lengths = end - np.arange(end)
        spread = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / lengths
        costs = best[:end] + np.maximum(spread, 0) + variance / lengths
        before[end] = int(np.argmin(costs))
        best[end] = costs[before[end]]
    ends, end = [size], int(before[size])
    while end > 0:
        ends.append(end)
        end = int(before[end])
    return np.array(ends[::-1], dtype=np.int64)


def ugrid(counts: Floats, prices: Prices) -> Floats:
    """UG: an even grid of sqrt(n epsilon / 10) cells a side (Qardaji, Yang & Li 2013)."""
    side = max(1, math.ceil(math.sqrt(counts.sum() * prices.epsilon(1.0) / 10)))
    lines = [_lines(size, side) for size in counts.shape]
    coarse = _coarse(counts, lines)
    return _spread(coarse + prices.noise(1.0, coarse.shape), lines)


def agrid(counts: Floats, prices: Prices) -> Floats:
    """AG: a coarse grid for half of the budget, each cell of it cut as finely as its count allows for the other."""
    side = max(10, math.ceil(math.sqrt(counts.sum() * prices.epsilon(1.0) / 10) / 4))
    lines = [_lines(size, side) for size in counts.shape]
    coarse = _coarse(counts, lines)
    rough = coarse + prices.noise(0.5, coarse.shape)
    found = np.empty(counts.shape)
    for row in range(len(lines[0]) - 1):
        for column in range(len(lines[1]) - 1):
            place = slice(*lines[0][row : row + 2]), slice(*lines[1][column : column + 2])
            part = counts[place]
            finer = max(1, math.ceil(math.sqrt(max(rough[row, column], 0) * prices.epsilon(0.5) / 5)))
            within = [_lines(size, finer) for size in part.shape]
            fine = _coarse(part, within)
            fine = fine + prices.noise(0.5, fine.shape)
            # both halves have the same noise: the finer cells' sum has that of so many
            told = (fine.size * rough[row, column] + fine.sum()) / (fine.size + 1)
            found[place] = _spread(fine + (told - fine.sum()) / fine.size, within)
    return found


def _lines(size: int, parts: int) -> NDArray[np.int64]:
    return np.unique(np.rint(np.linspace(0, size, min(size, parts) + 1)).astype(np.int64))


def _coarse(counts: Floats, lines: list[NDArray[np.int64]]) -> Floats:
    return np.asarray(np.add.reduceat(np.add.reduceat(counts, lines[0][:-1], axis=0), lines[1][:-1], axis=1))


def _spread(coarse: Floats, lines: list[NDArray[np.int64]]) -> Floats:
    widths = [np.diff(line) for line in lines]
    even = coarse / np.multiply.outer(*widths)
    return np.repeat(np.repeat(even, widths[0], axis=0), widths[1], axis=1)


def dawa_2d(counts: Floats, prices: Prices) -> Floats:
    """DAWA along a Hilbert curve, as its paper does."""
    order = hilbert(counts.shape[0])
    found = np.empty(counts.size)
    found[order] = dawa(counts.ravel()[order], prices)
    return found.reshape(counts.shape)


def quad_tree(counts: Floats, prices: Prices) -> Floats:
    """HB in two dimensions: squares cut into b x b squares, b a power of two, by the same formula for sides."""
    order = hilbert(counts.shape[0])  # whose runs of 4^k are squares
    sides = [2**power for power in range(1, counts.shape[0].bit_length()) if _whole(counts.shape[0], 2**power)]
    side = min(sides, key=lambda b: (b**2 - 1) * _height(b, counts.shape[0]) ** 3)
    found = np.empty(counts.size)
    found[order] = _tree(counts.ravel()[order], prices, 1.0, side**2, _height(side, counts.shape[0]))
    return found.reshape(counts.shape)


def _whole(size: int, side: int) -> bool:
    return side ** _height(side, size) == size


def hilbert(side: int) -> NDArray[np.int64]:
    """The places of a square, as numbers of its flattened table, in the order of Hilbert's curve; side is 2^k."""
    place = np.arange(side * side)
    x, y = np.zeros_like(place), np.zeros_like(place)
    rest, size = place.copy(), 1
    while size < side:
        right = 1 & (rest // 2)
        up = 1 & (rest ^ right)
        flip = (up == 0) & (right == 1)
        x, y = np.where(flip, size - 1 - x, x), np.where(flip, size - 1 - y, y)
        x, y = np.where(up == 0, y, x), np.where(up == 0, x, y)
        x, y = x + size * right, y + size * up
        rest //= 4
        size *= 2
    return x * side + y


PEERS_1D = {"HB": hb, "DAWA": dawa, "DAWA x 2": partial(dawa, proved=True), "AHP": ahp}
PEERS_2D = {"HB": quad_tree, "DAWA": dawa_2d, "UGrid": ugrid, "AGrid": agrid}
