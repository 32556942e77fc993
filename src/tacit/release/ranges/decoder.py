"""One face for all strategies over one attribute: prefixes from answers, and variances. Post-processing; anybody.

A `Decoder` is a strategy and the number of leaves it is over: all that is public about a measurement but its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Convolution, Tree
from tacit.release.ranges import convolution, tree
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
            return convolution.prefixes(values, self.strategy, self.leaves, total)
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
            return convolution.interval_variance(self.strategy, self.leaves, first, end)
        return tree.interval_variance(self.strategy, self.leaves, first, end)

    def functional_variance(self, weights: ArrayLike) -> float:
        """The variance of the estimate of Σ weight * leaf."""
        if isinstance(self.strategy, Convolution):
            return convolution.functional_variance(self.strategy, self.leaves, weights)
        return tree.functional_variance(self.strategy, self.leaves, weights)
