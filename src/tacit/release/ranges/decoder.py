"""One face for all strategies over one attribute: prefixes from answers, and variances. Post-processing; anybody.

A `Decoder` is a strategy and the number of leaves it is over: all that is public about a measurement but its noise.

Trees are read with `tree`, which others use too; convolutions are read here. With R the matrix of a convolution and L
that of all prefixes, the prefixes are L R^-1 (answers). Values have the answers on their last axis. Variances are for
noise of variance 1, and the total over the leaves, n, is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Convolution, Tree, kernel
from tacit.release.ranges import tree
from tacit.release.ranges.shrinkage import Corner, corridor, shared

Floats = NDArray[np.float64]
_FIRST = (0.5, 0.38, 0.62, 0.44, 0.56)  # shares of the bins before the first cut: each makes other cuts


@dataclass(frozen=True)
class Decoder:
    """A strategy over a number of leaves. Variances are for noise of variance 1 on every answer."""

    strategy: Tree | Convolution
    leaves: int

    @property
    def answers(self) -> int:
        """How many numbers are measured."""
        return sum(self.strategy.widths(self.leaves)) if isinstance(self.strategy, Tree) else self.leaves

    @property
    def distinct(self) -> float:
        """At least the sum of squares of the different weights that the answers have in the count of an interval.

        A single level has two: (1 - p)/w inside and -p/w outside, p the part of the leaves that lie inside. Of more
        levels nothing is said, nor of a convolution, whose grid is fine.
        """
        weights = self.strategy.weights if isinstance(self.strategy, Tree) else ()
        return 1 / weights[0] ** 2 if len(weights) == 1 else math.inf

    def prefixes(self, values: ArrayLike, total: float) -> Floats:
        """F(0) = 0, ..., F(leaves) = n by least squares, along the last axis; linear in the values and the total."""
        if isinstance(self.strategy, Convolution):
            return _convolution_prefixes(values, self.strategy, self.leaves, total)
        found = np.cumsum(tree.consistent(values, self.strategy, self.leaves, total), axis=-1)
        return np.concatenate([np.zeros((*found.shape[:-1], 1)), found], axis=-1)

    def likely(self, prefixes: Floats, noise: float) -> Floats:
        """Prefixes that rise from 0 to n: least squares ones, less what noise of this variance explains better.

        Whatever bounds the largest error of the least squares prefixes, or of all their intervals, bounds theirs too.
        A convolution was counted in no runs, so it is cut in several ways, none of them better, and their mean taken.
        """
        if isinstance(self.strategy, Tree):
            ways = [shared(prefixes, self._of_boxes, [self.strategy.spans()], noise=noise)]
        else:
            ways = [shared(prefixes, self._of_boxes, [()], noise=noise, first=first) for first in _FIRST]
        found = np.concatenate([[0.0], np.cumsum(np.mean(ways, axis=0))])
        return corridor(found, prefixes)

    def _of_boxes(self, low: Corner, end: Corner) -> Floats:
        return self.interval_variance(low[0], end[0])

    def interval_variance(self, first: ArrayLike, end: ArrayLike) -> Floats:
        """The variance of the count of leaves first <= i < end, for many intervals at once; never too small."""
        if isinstance(self.strategy, Convolution):
            return _convolution_interval(self.strategy, self.leaves, first, end)
        return tree.interval_variance(self.strategy, self.leaves, first, end)

    def functional_variance(self, weights: ArrayLike) -> float:
        """The variance of the estimate of Σ weight * leaf."""
        if isinstance(self.strategy, Convolution):
            return _convolution_functional(self.strategy, self.leaves, weights)
        return tree.functional_variance(self.strategy, self.leaves, weights)


def _convolution_prefixes(values: ArrayLike, strategy: Convolution, leaves: int, total: float) -> Floats:
    """F(0) = 0, F(1), ..., F(leaves) = n: the least squares estimate, given the total.

    Fichtenberger, Henzinger & Upadhyay 2023 for the plain one. The answers determine the leaves; that their total is
    known corrects the prefixes in proportion to their covariance with it. On a circle the total is one frequency of its
    own, independent of the others, and is simply put in its place.
    """
    answers = np.asarray(values, dtype=np.float64)
    if leaves == 1:
        found = np.full(answers.shape, float(total))
    elif strategy.cyclic:
        spectrum = np.fft.rfft(answers, axis=-1)
        spectrum /= np.fft.rfft(kernel(leaves, strategy.exponent))
        spectrum[..., 0] = total
        found = np.cumsum(np.fft.irfft(spectrum, leaves, axis=-1), axis=-1)
    else:
        known = _in_row(leaves, strategy.exponent)
        found = _convolved(answers, known.sums)
        found += (total - found[..., -1:]) * (known.with_total / known.with_total[-1])
    return np.concatenate([np.zeros((*found.shape[:-1], 1)), found], axis=-1)


def _convolution_interval(strategy: Convolution, leaves: int, first: ArrayLike, end: ArrayLike) -> Floats:
    """The variance of the count of leaves first <= i < end: exact on a circle and for prefixes, else never too small.

    Off the circle, F(end) - F(first) has variance Σ (b_i - b_(i-d))² over i < end, d = end - first, less what the total
    explains. The sum over all i < leaves is at least that, hardly more, and depends on d alone.
    """
    low, high = np.broadcast_arrays(np.asarray(first, dtype=np.intp), np.asarray(end, dtype=np.intp))
    length = np.maximum(high - low, 0)
    if leaves == 1:
        return np.zeros(length.shape)
    if strategy.cyclic:
        return np.asarray(_on_circle(leaves, strategy.exponent)[length])
    known = _in_row(leaves, strategy.exponent)
    explained = np.concatenate([[0.0], known.with_total])
    raw = np.where(
        low == 0, known.prefix[high], np.minimum(known.apart[length], known.prefix[low] + known.prefix[high])
    )
    less = (explained[high] - explained[low]) ** 2 / explained[-1]
    return np.where(length == 0, 0.0, np.maximum(raw - less, 0.0))


def _convolution_functional(strategy: Convolution, leaves: int, weights: ArrayLike) -> float:
    """The variance of the estimate of Σ weight * leaf: |R^-T u|², less what the total explains."""
    u = np.asarray(weights, dtype=np.float64)
    if leaves == 1:
        return 0.0
    if strategy.cyclic:
        power = np.abs(np.fft.rfft(u) / np.fft.rfft(kernel(leaves, strategy.exponent))) ** 2
        # Every frequency but the first, and the last of an even number, stands for two.
        twice = np.full(power.size, 2.0)
        twice[0] = 0.0
        if leaves % 2 == 0:
            twice[-1] = 1.0
        return float(power @ twice) / leaves
    inverse = _in_row(leaves, strategy.exponent).inverse
    # R is lower triangular and constant along diagonals, so its transpose is itself, turned around.
    mine, total = (_convolved(side[::-1].copy(), inverse) for side in (u, np.ones(leaves)))
    return max(0.0, float(mine @ mine - (mine @ total) ** 2 / (total @ total)))


@dataclass(frozen=True, eq=False)
class _InRow:
    """What a convolution off the circle has for all questions."""

    inverse: Floats  # coefficients of 1/g
    sums: Floats  # b: their running sums, the first column of L R^-1
    prefix: Floats  # |row t of L R^-1|², t = 0 .. leaves: variances of prefixes, before the total is used
    apart: Floats  # Σ (b_i - b_(i-d))² over i < leaves, d = 0 .. leaves
    with_total: Floats  # covariances of the prefixes 1 .. leaves with the total


@lru_cache(maxsize=8)
def _in_row(leaves: int, exponent: int) -> _InRow:
    inverse = _inverse(kernel(leaves, exponent).astype(np.float64))
    b = np.cumsum(inverse)
    squares = np.concatenate([[0.0], np.cumsum(b * b)])
    overlap = np.append(_convolved(b, b[::-1].copy())[::-1], 0.0)  # Σ b_i b_(i+d): the sum for t = leaves
    apart = squares[-1] + squares[::-1] - 2 * overlap
    return _InRow(inverse, b, squares, np.maximum(apart, 0.0), overlap[:-1][::-1])


@lru_cache(maxsize=8)
def _on_circle(leaves: int, exponent: int) -> Floats:
    """The variance of an interval of each length 0 .. leaves on the circle."""
    turn = 2 * np.sin(np.pi * np.arange(1, leaves // 2 + 1) / leaves)  # |1 - w^k|
    spectrum = np.zeros(leaves // 2 + 1)
    spectrum[1:] = 1 / (np.abs(np.fft.rfft(kernel(leaves, exponent))[1:]) * turn) ** 2
    kept = np.fft.irfft(spectrum, leaves)
    return np.append(np.maximum(2 * (kept[0] - kept), 0.0), 0.0)


def _inverse(g: Floats) -> Floats:
    """The power series 1/g, by Newton's iteration h <- h - h (g h - 1), which doubles the number of right coefficients.

    Transforms of the new length suffice: what wraps around falls on the coefficients that are right already.
    """
    h = np.array([1 / g[0]])
    while h.size < g.size:
        size = 2 * h.size
        spectrum = np.fft.rfft(h, size)
        wrong = np.fft.irfft(spectrum * np.fft.rfft(g[:size], size), size)[h.size :]
        h = np.append(h, -np.fft.irfft(spectrum * np.fft.rfft(wrong, size), size)[: h.size])
    return h[: g.size]


def _convolved(left: Floats, right: Floats) -> Floats:
    """The first entries of the linear convolution, along the last axis."""
    size = right.shape[-1]
    length = 1 << (2 * size - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(left, length) * np.fft.rfft(right, length), length)[..., :size]
