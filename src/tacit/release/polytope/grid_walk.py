"""The grid walk of Dyer, Frieze & Kannan 1991, as Roth & Roughgarden 2010, section 5.1, use it: a reference for tiny X.

The body is seen through a membership oracle only. Its points are rounded to a grid of a given step in all coordinates
but the last (which is what the others leave), and a lazy walk goes from grid point to neighbouring grid point inside
the body. Its law tends to the uniform law on the grid points inside that the walk can reach. Against the uniform law on
the body this is an approximation: query values are off by at most about |X| * step, and an edge thinner than the step
may not be seen at all. The number of steps to mix grows like |X|^2 / step^2 and worse, which is why nobody uses it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.release.samplers.polytope import Array, Slabs


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
