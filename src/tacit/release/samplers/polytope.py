"""The fractional databases that agree with the answers so far, and samples of them. Public post-processing.

Roth & Roughgarden 2010, section 5.1: C_i is the set of distributions F over X with |q_j(F) - a_j| <= w_j for the hard
queries j, and the median mechanism needs uniform samples of it. Cells that no query tells apart form an atom. Under the
uniform law the masses of atoms have the Dirichlet law with the atoms' sizes, restricted to the slabs; a cell is an atom
of size 1. So one sampler serves cells and atoms, and the atoms' law is exact, not an approximation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery

Array = NDArray[np.float64]
MAX_MASSES = 2**26  # half a gigabyte, of which a stir needs four


class Slabs(NamedTuple):
    """The polytope {p >= 0, sum p = 1, low <= weights' p <= high}, with the Dirichlet law of these sizes on it.

    `weights` has a row for each atom and a column for each slab.
    """

    sizes: Array
    weights: Array
    low: Array
    high: Array

    @classmethod
    def whole(cls, sizes: ArrayLike) -> Slabs:
        """The whole simplex: nothing is known yet. Sizes are at least 1."""
        given = np.ascontiguousarray(sizes, dtype=np.float64)
        if given.ndim != 1 or not len(given) or not ((given >= 1) & np.isfinite(given)).all():
            raise InvalidQuery("the sizes of atoms are numbers from 1.")
        return cls(given, np.zeros((len(given), 0)), np.zeros(0), np.zeros(0))

    @classmethod
    def of_cells(cls, queries: ArrayLike, answers: ArrayLike, width: float, *, spare: bool = False) -> Slabs:
        """The polytope over the cells of X: a row of weights for each query, its answer, and one half width.

        With `spare`, masses sum to at most 1, as the paper's C_0 has it: one more cell, in no query, takes the rest.
        """
        rows = np.atleast_2d(np.asarray(queries, dtype=np.float64))
        slabs = cls.whole(np.ones(rows.shape[1] + spare))
        for row, answer in zip(rows, np.atleast_1d(np.asarray(answers, dtype=np.float64)), strict=False):
            slabs = slabs.within(np.append(row, 0.0) if spare else row, float(answer), width)
        return slabs

    def within(self, weights: ArrayLike, centre: float, width: float) -> Slabs:
        """One more slab: |weights' p - centre| <= width."""
        column = np.asarray(weights, dtype=np.float64)
        if column.shape != self.sizes.shape or not ((column >= 0) & (column <= 1)).all():
            raise InvalidQuery(f"a slab has {len(self.sizes):,} weights from 0 to 1, one for each atom.")
        if not width > 0 or not np.isfinite(centre):
            raise InvalidQuery("a slab has a finite centre and a width above 0.")
        # A slab that lies outside [0, 1] would be empty whatever the masses: its nearest end takes its place.
        low = min(max(centre - width, 0.0), 1 - width)
        high = max(min(centre + width, 1.0), width)
        return Slabs(
            self.sizes,
            np.column_stack([self.weights, column]),
            np.append(self.low, low),
            np.append(self.high, high),
        )

    def violation(self, values: Array) -> Array:
        """How far each chain is from its worst slab; 0 for a chain inside all of them."""
        if not len(self.low):
            return np.zeros(values.shape[1])
        beyond = np.maximum(self.low[:, None] - values, values - self.high[:, None])
        worst: Array = np.maximum(beyond.max(axis=0), 0.0)
        return worst


class Samples(NamedTuple):
    """Many chains: the masses of the atoms, a column for each chain, and the slabs' values on them."""

    masses: Array
    values: Array


def dirichlet(rng: np.random.Generator, slabs: Slabs, chains: int) -> Samples:
    """Independent draws of the Dirichlet law without regard to the slabs: exact where there are none."""
    if len(slabs.sizes) * chains > MAX_MASSES:
        raise InvalidQuery(
            f"{chains:,} chains of {len(slabs.sizes):,} masses are more than the {MAX_MASSES:,} that fit."
        )
    return settled(slabs, rng.standard_gamma(slabs.sizes[:, None], size=(len(slabs.sizes), chains)))


def settled(slabs: Slabs, masses: Array) -> Samples:
    """The samples with these masses, normalised, with the slabs' values computed afresh."""
    masses = masses / masses.sum(axis=0)
    return Samples(masses, slabs.weights.T @ masses)


def repair(rng: np.random.Generator, slabs: Slabs, samples: Samples, rounds: int = 50) -> Samples:
    """Brings chains into the slabs by reweighting: each violated slab in turn scales what is in it and what is not.

    This is iterative proportional fitting, chain by chain, aimed at a random point of the slab. It is a start, not a
    sample: the chains still have to be stirred. Chains that are inside are left alone.
    """
    masses, values = samples.masses.copy(), samples.values
    for _ in range(rounds):
        outside = np.flatnonzero(slabs.violation(values) > 0)
        if not len(outside):
            break
        some = masses[:, outside]
        for j in range(len(slabs.low)):
            weights = slabs.weights[:, j]
            value = weights @ some
            low, high = slabs.low[j], slabs.high[j]
            wrong = np.flatnonzero((value < low) | (value > high))
            if len(wrong):
                now = np.clip(value[wrong], 1e-300, 1 - 1e-16)
                depth = 0.5 * (high - low) * rng.random(len(wrong))
                aim = np.where(now < low, low + depth, high - depth)
                some[:, wrong] *= np.outer(weights, aim / now) + np.outer(1 - weights, (1 - aim) / (1 - now))
        masses[:, outside] = some / some.sum(axis=0)
        values = slabs.weights.T @ masses
    return settled(slabs, masses)
