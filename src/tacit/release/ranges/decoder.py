"""One face for all strategies over one attribute: prefixes from answers, and variances. Post-processing; anybody.

A `Decoder` is a strategy and the number of leaves it is over: all that is public about a measurement but its noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.workload import Convolution, Tree
from tacit.release.ranges import convolution, tree

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Decoder:
    """A strategy over so many leaves. Variances are for noise of variance 1 on every answer."""

    strategy: Tree | Convolution
    leaves: int

    @property
    def answers(self) -> int:
        """How many numbers are measured."""
        return sum(self.strategy.widths(self.leaves)) if isinstance(self.strategy, Tree) else self.leaves

    def prefixes(self, values: ArrayLike, total: float) -> Floats:
        """F(0) = 0, ..., F(leaves) = n by least squares, along the last axis; linear in the values and the total."""
        if isinstance(self.strategy, Convolution):
            return convolution.prefixes(values, self.strategy, self.leaves, total)
        found = np.cumsum(tree.consistent(values, self.strategy, self.leaves, total), axis=-1)
        return np.concatenate([np.zeros((*found.shape[:-1], 1)), found], axis=-1)

    def interval_variance(self, first: ArrayLike, end: ArrayLike) -> Floats:
        """Of the counts of leaves first <= i < end, for many intervals at once; never too small."""
        if isinstance(self.strategy, Convolution):
            return convolution.interval_variance(self.strategy, self.leaves, first, end)
        return tree.interval_variance(self.strategy, self.leaves, first, end)

    def functional_variance(self, weights: ArrayLike) -> float:
        """Of the estimate of Σ weight * leaf."""
        if isinstance(self.strategy, Convolution):
            return convolution.functional_variance(self.strategy, self.leaves, weights)
        return tree.functional_variance(self.strategy, self.leaves, weights)


def monotone(prefixes: Floats, total: float) -> Floats:
    """The closest prefixes that rise from 0 to n, so that no interval has a negative count.

    True prefixes are monotone, and isotonic regression takes nothing farther from a monotone vector, neither in root
    mean square nor in the largest error (Robertson, Wright & Dykstra 1988, section 1.6); to cut at 0 and n neither. It
    commutes with adding a constant, so the largest error over all intervals does not grow.
    """
    from scipy.optimize import isotonic_regression  # imported where it is needed: it takes a while

    risen = np.clip(isotonic_regression(prefixes).x, 0.0, total)
    risen[0], risen[-1] = 0.0, total
    return np.asarray(risen, dtype=np.float64)
