"""The fractional databases that agree with the answers so far, and samples of them. Public post-processing.

Roth & Roughgarden 2010, section 5.1: C_i is the set of distributions F over X with |q_j(F) - a_j| <= w_j for the hard
queries j, and the median mechanism needs uniform samples of it. Cells that no query tells apart form an atom. Under the
uniform law the masses of atoms have the Dirichlet law with the atoms' sizes, restricted to the slabs; a cell is an atom
of size 1. So one sampler serves cells and atoms, and the atoms' law is exact, not an approximation.

Over 10^5 cells and more, the uniform law is practically one point, its `centre`: the masses that maximise
sum |a| log p_a (Burg's entropy of the cells) within the slabs. The slabs enter by their own logarithmic barrier. At a
slab that pushes back with force y, the uniform law leaves an exponential gap of mean 1/y and variance 1/y^2, and the
barrier's optimum and curvature give just these two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery

Array = NDArray[np.float64]
MAX_MASSES = 2**26  # half a gigabyte, of which a stir needs four
MAX_STEPS = 200  # of Newton's method, to the centre
_DONE = 1e-9  # the squared Newton decrement, in which the law itself is about 1 wide
_DOUBLINGS, _HALVINGS = 60, 8  # of a step that may be longer, and of where its best end may be
_POLISH = 5  # steps for the centre's last digits
_TILTS = 20  # steps for a draw's


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


@dataclass(frozen=True, eq=False)
class PolytopeCentre:
    """The centre's masses, and what the covariance needs: variances of free masses and of the slabs' own values."""

    slabs: Slabs
    masses: Array
    forces: Array
    steps: int
    _spread: Array  # p_a^2 / |a|, the variance that the mass of an atom would have by itself
    _give: Array  # the variance of a slab's value that its own barrier alone would leave
    _rows: Array  # a column of ones, then the slabs' weights
    _bare: Array  # the covariance of free masses along the rows
    _factor: tuple[Array, bool]  # of the same and the slabs' give

    def covariance(self, weights: Array) -> Array:
        """The covariance of linear functions of the masses: a column of weights for each of them."""
        cross = self._rows.T @ (self._spread[:, None] * weights)
        explained = cross.T @ scipy.linalg.cho_solve(self._factor, cross)
        result: Array = weights.T @ (self._spread[:, None] * weights) - explained
        return result

    def draw(self, rng: np.random.Generator, chains: int) -> Samples:
        """Draws around the centre, inside the slabs.

        Free masses are drawn as Gammas and the slabs' values as Gaussians, then conditioned on each other (Matheron's
        rule). A value beyond its slab is reflected into it. Then the masses are tilted, by Newton's method with a fixed
        matrix, to have these values and sum to 1. A draw that is not inside even so is pulled towards the centre.
        """
        sizes, half = self.slabs.sizes[:, None], (self.slabs.high - self.slabs.low)[:, None] / 2
        low = self.slabs.low[:, None]
        masses = self.masses[:, None] * (rng.standard_gamma(sizes, size=(len(sizes), chains)) / sizes)
        given = np.zeros((self._rows.shape[1], chains))
        given[1:] = np.sqrt(self._give)[:, None] * rng.standard_normal((len(self._give), chains))
        now = self._rows.T @ masses
        centre = (self._rows.T @ self.masses)[:, None]
        correction = self._bare @ scipy.linalg.cho_solve(self._factor, now - centre - given)
        aim = now - correction
        aim[0] = 1
        aim[1:] = low + 2 * half - np.abs(np.mod(aim[1:] - low, 4 * half) - 2 * half)
        tilt = self._spread / self.masses
        bare = scipy.linalg.cho_factor(_lifted(self._bare))
        close, late = 1e-6 * np.sqrt(self._bare.diagonal())[:, None], np.arange(chains)
        for _ in range(_TILTS):
            pushes = tilt[:, None] * (self._rows @ scipy.linalg.cho_solve(bare, (now - aim)[:, late]))
            masses[:, late] *= np.exp(-np.clip(pushes, -1, 1))
            now[:, late] = self._rows.T @ masses[:, late]
            late = np.flatnonzero((np.abs(now - aim) > close).any(axis=0))
            if not len(late):
                break
        return self._pulled(settled(self.slabs, masses))

    def _pulled(self, samples: Samples) -> Samples:
        """Draws outside a slab, moved straight towards the centre until they are inside all."""
        here = (self.slabs.weights.T @ self.masses)[:, None]
        up, down = self.slabs.high[:, None] - here, self.slabs.low[:, None] - here
        away = samples.values - here
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(away > 0, up / away, np.where(away < 0, down / away, np.inf))
        share = np.minimum(reach.min(axis=0, initial=np.inf) * (1 - 1e-9), 1.0)
        return settled(self.slabs, self.masses[:, None] + share * (samples.masses - self.masses[:, None]))


def centre(slabs: Slabs) -> PolytopeCentre:
    """Newton's method on the dual: one variable for the total and one for each slab, however many atoms there are.

    The masses are p_a = |a| / (total + forces . weights_a), so that every dual point gives positive masses and the
    start needs no point of the polytope. If the slabs have no common point the dual has no maximum; that is noticed
    by its steps and refused.
    """
    rows = np.column_stack([np.ones(len(slabs.sizes)), slabs.weights])
    middle, half = (slabs.high + slabs.low) / 2, (slabs.high - slabs.low) / 2
    dual = np.zeros(rows.shape[1])
    dual[0] = slabs.sizes.sum()

    def objective(point: Array) -> float:
        scores = rows @ point
        if not (scores > 0).all():
            return -np.inf
        root = np.sqrt(1 + (point[1:] * half) ** 2)
        # For each slab, the least of -log(half - x) - log(half + x) - y x over x, up to a constant.
        barrier = np.log((1 + root) / 2) - (root - 1) - point[1:] * middle
        return float(slabs.sizes @ np.log(scores / slabs.sizes.sum()) - point[0] + barrier.sum())

    value = objective(dual)
    for step in range(1, MAX_STEPS + 1):
        scores = rows @ dual
        masses = slabs.sizes / scores
        root = np.sqrt(1 + (dual[1:] * half) ** 2)
        offset = dual[1:] * half**2 / (1 + root)
        give = half**2 / (root * (1 + root))  # the derivative of the offset: one over the barrier's curvature
        spread = masses**2 / slabs.sizes
        hessian = rows.T @ (spread[:, None] * rows)
        bare = hessian.copy()
        hessian[np.arange(1, len(dual)), np.arange(1, len(dual))] += give
        factor = scipy.linalg.cho_factor(_lifted(hessian))
        gradient = rows.T @ masses
        gradient[0] -= 1
        gradient[1:] -= middle + offset
        move = scipy.linalg.cho_solve(factor, gradient)
        decrement = float(gradient @ move)
        if not np.isfinite(decrement):
            break
        if decrement < _DONE:
            # Where a small atom holds much mass, its score is a small difference of large numbers. The masses are not,
            # so their last digits are put right here.
            target, fixed = np.append(1.0, middle + offset), scipy.linalg.cho_factor(_lifted(bare))
            for _ in range(_POLISH):
                tilt = spread / masses * (rows @ scipy.linalg.cho_solve(fixed, rows.T @ masses - target))
                masses = masses * np.exp(-np.clip(tilt, -1, 1))
            return PolytopeCentre(
                slabs=slabs,
                masses=masses,
                forces=dual[1:],
                steps=step,
                _spread=spread,
                _give=give,
                _rows=rows,
                _bare=bare,
                _factor=factor,
            )
        # The dual is self-concordant: a step of this length keeps all scores positive and always gains. Far from the
        # maximum it is short, so the best point along the way is looked for.
        length = 1.0 if decrement < 0.1 else 1 / (1 + np.sqrt(decrement))
        if length < 1:
            length = _farthest_gain(slabs, dual, move, scores, rows @ move, length)
        dual = dual + length * move
        value, before = objective(dual), value
        if value - before > 1e3 * slabs.sizes.sum():
            break
    raise InvalidQuery("the slabs have no common point, or one so thin that its centre was not found.")


def _farthest_gain(slabs: Slabs, dual: Array, move: Array, scores: Array, along: Array, length: float) -> float:
    """About how far to go from a dual point for the most gain: to no less than a length that is known to gain.

    The dual is concave, so what it gains at a point of the way falls, and is 0 at the best of them.
    """
    middle, half = (slabs.high + slabs.low) / 2, (slabs.high - slabs.low) / 2

    def gains(far: float) -> bool:
        there = scores + far * along
        if not (there > 0).all():
            return False
        forces = dual[1:] + far * move[1:]
        pushed = middle + forces * half**2 / (1 + np.sqrt(1 + (forces * half) ** 2))
        return bool(slabs.sizes @ (along / there) > move[0] + pushed @ move[1:])

    end = 2 * length
    for _ in range(_DOUBLINGS):
        if not gains(end):
            break
        length, end = end, 2 * end
    for _ in range(_HALVINGS):
        between = (length + end) / 2
        length, end = (between, end) if gains(between) else (length, between)
    return length


def _lifted(matrix: Array) -> Array:
    """Slabs with equal weights make the matrix singular up to rounding; this much keeps it factorable."""
    return matrix + np.diag(1e-14 * matrix.diagonal())
