"""Roth & Roughgarden 2010, section 5: the efficient median mechanism. Its bounds, its random walk, its databases.

`Efficient` has the numbers of theorems 5.1 and 5.5 and their lemmas.

The grid walk is that of Dyer, Frieze & Kannan 1991, as section 5.1 uses it: a reference for tiny X. The body is seen
through a membership oracle only. Its points are rounded to a grid of a given step in all coordinates but the last,
which is what the others leave, and a lazy walk goes from grid point to neighbouring grid point inside the body. Its law
tends to the uniform law on the grid points inside that the walk can reach. Against the uniform law on the body this is
an approximation: query values are off by at most about |X| * step, and an edge thinner than the step may not be seen at
all. The number of steps to mix grows like |X|^2 / step^2 and worse, which is why nobody uses it.

DatabaseSample, section 5.3, draws databases of a population that is itself drawn at random. It says which databases the
mechanism is useful for: almost all of those that are drawn like this (lemma 5.6), and, since small ones are close to
uniform, almost all small databases (lemma 5.7). It reads no data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.release.samplers.polytope import Array, Slabs
from tacit.theory.median_paper import BAD, HARD, PaperConstants


@dataclass(frozen=True, slots=True)
class Efficient:
    """Section 5: C_0 holds fractional databases, and volumes replace numbers. Theorems 5.1 and 5.5: the same n, epsilon
    and failure (sampling errors aside) for almost all data. Logarithms, as the fractions are too small for floats.
    """

    constants: PaperConstants

    @property
    def log_bad_histograms(self) -> float:
        """Lemma 5.3: all but |X|^-m of C_0 have Vol(Good) >= Vol(C_0)/|X|^2m.

        The union is over the points with at most m records: (|X|+m choose m) <= |X|^m from m = 4 on.
        """
        return -self.constants.log_net

    @property
    def hard_answers(self) -> float:
        """Lemma 5.4: 2 m ln|X|/ln(50/47), below 40 M. Figure 1's limit must be doubled for it."""
        return 2 * self.constants.hard_answers

    @property
    def privacy_at_forty(self) -> float:
        """Theorem 4.8's sum with 40 M hard answers and 320 M bad ones at exact prices (3/2 and 1/2 epsilon'). Ours.

        By the paper's prices, 2 for hard and 1 for easy, 400 M epsilon' would pass its epsilon/2; 220 M does not.
        """
        c = self.constants
        return (3 / 2 * 2 * HARD + 1 / 2 * 2 * BAD) * c.log_net * c.epsilon_each + c.epsilon / 2

    def log_bad_samples(self, n: float) -> float:
        """Lemma 5.6, repaired: a database drawn from a random point F is bad with at most this (log) probability.

        F is bad, or has less than (1 - alpha/400) m mass (chance (1 - alpha/400)^|X|: the term that the paper misses),
        or the sample is off by alpha/400: 2k exp(-2 n (alpha/400)^2).
        """
        c, part = self.constants, self.constants.alpha / 400
        light, off = c.cells * math.log1p(-part), math.log(2 * c.questions) - 2 * n * part**2
        return min(0.0, float(np.logaddexp.reduce([self.log_bad_histograms, light, off])))

    def bad_databases(self, n: float) -> float:
        """Lemma 5.7: the fraction of all databases of n rows that are bad; needs 2 n^2 < |X|, otherwise 1."""
        collisions = n**2 / self.constants.cells
        if 2 * collisions >= 1:
            return 1.0
        return min(1.0, math.exp(self.log_bad_samples(n)) / (1 - 2 * collisions) + collisions)


class GridState(NamedTuple):
    """Many chains: integer coordinates (all cells but the last, a column for each chain) and the size of a step."""

    points: NDArray[np.int64]
    step: float


def member(slabs: Slabs, points: Array) -> NDArray[np.bool_]:
    """The membership oracle: which columns, completed by their last cell, lie in the polytope (up to rounding)."""
    masses = np.vstack([points, 1 - points.sum(axis=0)])
    outside = np.maximum(slabs.violation(slabs.weights.T @ masses), -masses.min(axis=0))
    inside: NDArray[np.bool_] = outside <= 1e-12
    return inside


def grid_start(slabs: Slabs, masses: Array, step: float) -> GridState:
    """The grid points next to these masses, all of which must lie in the body. For cells only, not for atoms."""
    if not (slabs.sizes == 1).all():
        raise InvalidQuery("the grid walk knows the uniform law only, so it takes cells, not atoms.")
    points = np.floor(masses[:-1] / step).astype(np.int64)
    if not member(slabs, points * np.float64(step)).all():
        raise InvalidQuery(f"a grid of step {step} has no point of the polytope beside one of the given ones.")
    return GridState(points, step)


def grid_step(rng: np.random.Generator, slabs: Slabs, state: GridState, steps: int = 1) -> GridState:
    """Lazy steps: each chain stays with probability 1/2, otherwise tries one of its 2(|X| - 1) neighbours."""
    points = state.points.copy()
    coordinates, chains = points.shape
    columns = np.arange(chains)
    for _ in range(steps):
        axis = rng.integers(coordinates, size=chains)
        change = rng.choice(np.array([-1, 0, 0, 1]), size=chains)
        points[axis, columns] += change
        points[axis, columns] -= np.where(member(slabs, points * np.float64(state.step)), 0, change)
    return GridState(points, state.step)


def grid_masses(state: GridState) -> Array:
    """The masses of all cells, a column for each chain."""
    points = state.points * state.step
    masses: Array = np.vstack([points, np.maximum(1 - points.sum(axis=0), 0.0)])
    return masses


def population(cells: int, seed: int) -> NDArray[np.float64]:
    """The distribution that a uniform point of C_0 induces: a uniform point of the simplex.

    Each of its masses is Beta(1, |X| - 1). (Before it is divided by its sum, a coordinate of C_0 is Beta(1, |X|).)
    """
    drawn = np.random.Generator(np.random.PCG64(seed)).standard_exponential(cells)
    masses: NDArray[np.float64] = drawn / drawn.sum()
    return masses


def database_sample(domain: Domain, rows: int, seed: int) -> NDArray[np.int64]:
    """A database of independent rows from such a population: value indices, one row for each record.

    The population is not listed. Given t rows, the next is a copy of a random one of them with probability
    t / (t + |X|), and otherwise a uniform cell: Pólya's urn, which is the same law (Blackwell & MacQueen 1973).

    >>> from tacit.model.attribute import integer
    >>> domain = Domain({f"digit {i}": integer(0, 9) for i in range(12)})
    >>> database_sample(domain, 3, seed=1).shape
    (3, 12)
    """
    if rows < 0:
        raise InvalidDomain(f"a database has 0 or more rows, not {rows}.")
    rng = np.random.Generator(np.random.PCG64(seed))
    records = np.column_stack([rng.integers(size, size=rows) for size in domain.shape])
    before = np.arange(rows)
    copies = np.flatnonzero(rng.random(rows) < before / (before + float(domain.size)))
    sources = rng.integers(np.maximum(before, 1))  # for all rows: the stream must not depend on what is copied
    for row in copies.tolist():  # in order: what is copied may be a copy
        records[row] = records[sources[row]]
    return records
