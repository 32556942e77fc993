"""All samplers of the polytope against dense rejection sampling, on one small polytope: one conformance test.

Chains are independent, so their last states are independent draws. Two empirical distributions are compared by their
largest distance. By the inequality of Dvoretzky, Kiefer, Wolfowitz & Massart, each is further than sqrt(log(2/p) / 2n)
from its own law with probability at most p, whatever the law; FALSE_ALARM is shared out over all comparisons of the
file. Samplers with a wrong law must be further apart than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binom

from tacit.model.attribute import category
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers import fractions as fractional
from tacit.release.samplers import pairs as pair_moves
from tacit.release.samplers import polytope
from tacit.release.samplers.fractions import Fractions, atoms
from tacit.release.samplers.pairs import pair_step
from tacit.release.samplers.polytope import Samples, Slabs, centre, dirichlet, repair, settled
from tacit.theory.median_efficient import GridState, grid_masses, grid_start, grid_step, member

FALSE_ALARM = 1e-9
COMPARISONS = 100  # more than the file makes
CHAINS = 20_000
SWEEPS = 25

DOMAIN = Domain({"a": category(["x", "y"]), "b": category([0, 1, 2])})
X, ZERO = Query.among(DOMAIN, "a", [0]), Query.among(DOMAIN, "b", [0])
ANSWERS = [(X, 0.55, 0.06), (~(X & ZERO), 0.65, 0.08)]
PROBES = [
    X,
    ZERO,
    ~X & ~ZERO,
    Query.among(DOMAIN, "b", [1]),
    Query.weighted(DOMAIN, ["a", "b"], [[0.1, 0.9, 0.3], [1, 0, 0.5]]),
]
Values = NDArray[np.float64]  # a row for each probe, a column for each sample


def weights(query: Query) -> Values:
    return query.table(DOMAIN.names, DOMAIN.shape).ravel() / query.unit


PROBE_ROWS = np.array([weights(query) for query in PROBES])


def begun(rng: np.random.Generator, slabs: Slabs, chains: int, sweeps: int) -> Samples:
    """Chains from scratch: Dirichlet draws, brought into the slabs and stirred."""
    return pair_step(rng, slabs, repair(rng, slabs, dirichlet(rng, slabs, chains)), sweeps)


def cells() -> Slabs:
    slabs = Slabs.whole(np.ones(DOMAIN.size))
    for query, answer, width in ANSWERS:
        slabs = slabs.within(weights(query), answer, width)
    return slabs


def collapsed() -> Slabs:
    """The same polytope over the atoms of the two answers."""
    found = atoms(DOMAIN, [query.core for query, _, _ in ANSWERS])
    slabs = Slabs.whole(found.sizes)
    for column, (query, answer, width) in zip(found.weights.T, ANSWERS, strict=True):
        slabs = slabs.within(column, 1 - answer if query.complement else answer, width)
    return slabs


@cache
def reference() -> Values:
    rng = np.random.default_rng(1)
    kept = []
    slabs = cells()
    for _ in range(8):
        state = dirichlet(rng, slabs, 400_000)
        kept.append(PROBE_ROWS @ state.masses[:, slabs.violation(state.values) == 0])
    return np.concatenate(kept, axis=1)


def radius(n: int) -> float:
    return math.sqrt(math.log(4 * COMPARISONS / FALSE_ALARM) / (2 * n))


def distance(a: Values, b: Values) -> float:
    """The largest distance of two empirical distribution functions."""
    both = np.concatenate([a, b])
    return float(
        np.abs(
            np.searchsorted(np.sort(a), both, side="right") / len(a)
            - np.searchsorted(np.sort(b), both, side="right") / len(b)
        ).max()
    )


def agrees(values: Values, law: Values) -> bool:
    limit = radius(values.shape[1]) + radius(law.shape[1])
    return all(distance(a, b) <= limit for a, b in zip(values, law, strict=True))


def corner(slabs: Slabs, chains: int) -> Samples:
    """All chains at one point near an edge of the polytope: what they show later, they must have found by moving."""
    rng = np.random.default_rng(3)
    state = polytope.repair(rng, slabs, dirichlet(rng, slabs, 100))
    worst = state.values[0].argmax()
    return settled(slabs, np.repeat(state.masses[:, [worst]], chains, axis=1))


def pairs() -> Values:
    slabs = cells()
    return PROBE_ROWS @ pair_step(np.random.default_rng(4), slabs, corner(slabs, CHAINS), SWEEPS).masses


def ensemble(*, large: float = math.inf, sweeps: int = SWEEPS) -> Values:
    """Atoms, with exact Beta draws inside them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fractional, "LARGE", large)
        samples = Fractions.start(DOMAIN, CHAINS, seed=5)
        for query, answer, width in ANSWERS:
            samples = samples.restrict(query, answer, width, sweeps=sweeps)
        assert samples.diagnostics(0).infeasible == 0
        return np.array([samples.values(query) for query in PROBES])


def atoms_from_a_corner() -> Values:
    """Atom masses by pair moves, and exact Beta draws inside the atoms."""
    slabs = collapsed()
    return inside_atoms(pair_step(np.random.default_rng(6), slabs, corner(slabs, CHAINS), SWEEPS))


def inside_atoms(state: Samples) -> Values:
    found = atoms(DOMAIN, [query.core for query, _, _ in ANSWERS])
    samples = Fractions(DOMAIN, 7, found, collapsed(), state, state)
    return np.array([samples.values(query) for query in PROBES])


SAMPLERS: dict[str, Callable[[], Values]] = {
    "pair moves on cells": pairs,
    "collapsed": atoms_from_a_corner,
    "ensemble": ensemble,
    "ensemble, from the centre": lambda: ensemble(large=0),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_the_law_of_rejection_sampling(name: str) -> None:
    assert agrees(SAMPLERS[name](), reference())


def wrong_sizes() -> Values:
    """Atoms taken for cells: the mistake that collapsing invites."""
    slabs = collapsed()
    plain = Slabs(np.ones(len(slabs.sizes)), slabs.weights, slabs.low, slabs.high)
    return inside_atoms(pair_step(np.random.default_rng(8), plain, corner(plain, CHAINS), SWEEPS))


def wide_slab() -> Values:
    """A slab that is a third wider than it should be."""
    slabs = cells()
    slabs = Slabs(slabs.sizes, slabs.weights, slabs.low - [0, 0.05], slabs.high)
    return PROBE_ROWS @ pair_step(np.random.default_rng(9), slabs, corner(slabs, CHAINS), SWEEPS).masses


def skewed_segment() -> Values:
    """Not quite uniform points of the segments."""

    def skewed(points: Samples, slabs: Slabs, some: NDArray[np.intp], uniforms: Values) -> None:
        right(points, slabs, some, 0.5 + (uniforms - 0.5) * np.abs(2 * uniforms - 1))

    right = pair_moves.uniform_moves
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_moves, "uniform_moves", skewed)
        return pairs()


def unmixed() -> Values:
    """The right moves, but too few of them."""
    slabs = cells()
    return PROBE_ROWS @ pair_step(np.random.default_rng(10), slabs, corner(slabs, CHAINS), 1).masses


@pytest.mark.parametrize("wrong", [wrong_sizes, wide_slab, skewed_segment, unmixed])
def test_a_wrong_law_is_rejected(wrong: Callable[[], Values]) -> None:
    assert not agrees(wrong(), reference())


def test_collapsed_and_plain_pair_moves_agree_on_more_cells() -> None:
    """24 cells in 5 atoms, with too little room for rejection sampling; the control leaves out one slab."""
    rng = np.random.default_rng(11)
    label = np.repeat(np.arange(5), [1, 9, 4, 8, 2])
    patterns = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=float)
    fine, coarse = Slabs.whole(np.ones(24)), Slabs.whole(np.bincount(label))
    for j, (answer, width) in enumerate([(0.4, 0.03), (0.2, 0.02), (0.2, 0.02)]):
        fine, coarse = fine.within(patterns[label, j], answer, width), coarse.within(patterns[:, j], answer, width)
    chains = 10_000
    plain = begun(rng, fine, chains, 60)
    atomic = begun(rng, coarse, chains, 60)
    sums = np.array([plain.masses[label == a].sum(axis=0) for a in range(5)])
    assert agrees(atomic.masses, sums)
    loose = Slabs(coarse.sizes, coarse.weights[:, :2], coarse.low[:2], coarse.high[:2])
    assert not agrees(begun(rng, loose, chains, 60).masses, sums)


@pytest.mark.parametrize("sizes", [(2.0, 3.0), (1.0, 40.0), (1e6, 3e6), (1e12, 3.0), (1e12, 7e11)])
def test_two_atoms_have_the_truncated_beta_law(sizes: tuple[float, float]) -> None:
    """Against scipy's Beta, also where it is 10^-6 wide. The same law moved by a third of its deviation is rejected."""
    (a, b), chains = sizes, 4_000
    law = beta(a, b)
    low, high = law.ppf(0.3), law.ppf(0.9)
    slabs = Slabs(np.array(sizes), np.array([[1.0], [0.0]]), np.array([low]), np.array([high]))
    start = np.full((2, chains), low + (high - low) / 7)
    start[1] = 1 - start[0]
    state = pair_step(np.random.default_rng(12), slabs, Samples(start, start[:1].copy()), 15)

    def gap(shift: float) -> float:
        chances = (law.cdf(np.sort(state.masses[0]) + shift) - law.cdf(low)) / (law.cdf(high) - law.cdf(low))
        return float(np.abs(chances - np.arange(chains) / chains).max())

    assert gap(0.0) <= radius(chains) + 1 / chains
    assert gap(law.std() / 3) > radius(chains) + 1 / chains


# -- the grid walk: its own law is exactly known --------------------------------------------------------------------


GRID = Slabs.whole(np.ones(3)).within([1.0, 0.5, 0.0], 0.6, 0.1)
STEP = 1 / 16
MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))


@cache
def grid_points() -> NDArray[np.int64]:
    """Those that a walk from the middle can reach. One corner of the body, (0, 16), has no neighbour inside."""
    every = np.array([(i, j) for i in range(17) for j in range(17)])
    inside = {(int(i), int(j)) for i, j in every[member(GRID, every.T * STEP)]}
    reached, new = set(), {(7, 6)}
    while new:
        reached |= new
        new = {(i + u, j + v) for i, j in new for u, v in MOVES} & inside - reached
    assert inside - reached == {(0, 16)}
    return np.array(sorted(reached)).T


def test_the_grid_walk_is_uniform_on_the_grid_points_inside() -> None:
    points = grid_points()
    chains = 15_000
    state = GridState(np.repeat(points[:, :1], chains, axis=1), STEP)
    state = grid_step(np.random.default_rng(13), GRID, state, 1_500)
    index = {tuple(point): i for i, point in enumerate(points.T.tolist())}
    counts = np.bincount([index[tuple(point)] for point in state.points.T.tolist()], minlength=len(index))
    each = FALSE_ALARM / COMPARISONS / len(index) / 2

    def accepts(chances: NDArray[np.float64]) -> bool:
        low, high = binom.ppf(each, chains, chances), binom.isf(each, chains, chances)
        return bool(((low <= counts) & (counts <= high)).all())

    assert accepts(np.full(len(index), 1 / len(index)))
    # The control: a walk that chooses among the neighbours inside, instead of staying, is proportional to their number.
    degrees = np.array([sum((p + u, q + v) in index for u, v in MOVES) for p, q in index], dtype=float)
    assert not accepts(degrees / degrees.sum())


def test_the_grid_walk_approximates_the_uniform_law() -> None:
    """Its mean is off by no more than |X| steps, as promised; the walk's exact law is the one of the test above."""
    masses = grid_masses(GridState(grid_points(), STEP))
    rng = np.random.default_rng(14)
    state = dirichlet(rng, GRID, 400_000)
    true = state.masses[:, GRID.violation(state.values) == 0].mean(axis=1)
    assert np.abs(masses.mean(axis=1) - true).max() < 3 * STEP
    fine = grid_start(GRID, np.array([[0.4], [0.4], [0.2]]), 1 / 64)
    assert fine.points.shape == (2, 1)


# -- the centre: an approximation, with its error in figures ---------------------------------------------------------


def test_the_centre_has_the_means_and_deviations_of_the_samples() -> None:
    """1,000 cells, 10 slabs, several of which push back. Deviations within 10 %, means within 0.3 of them."""
    rng = np.random.default_rng(15)
    slabs = Slabs.whole(np.ones(1_000))
    for _ in range(10):
        slabs = slabs.within(rng.random(1_000) < 0.5, 0.5 + rng.normal(0, 0.03), 0.01)
    found = centre(slabs)
    assert (np.abs(found.forces) > 50).sum() >= 3
    probes = (rng.random((1_000, 30)) < 0.3).astype(float)
    chains = 600
    values = probes.T @ begun(rng, slabs, chains, 30).masses
    deviations = np.sqrt(found.covariance(probes).diagonal())
    drawn = probes.T @ found.draw(rng, chains).masses
    for mean, deviation in ((probes.T @ found.masses, deviations), (drawn.mean(axis=1), drawn.std(axis=1))):
        assert np.abs((values.mean(axis=1) - mean) / deviations).max() < 0.3
        assert np.abs(deviation / values.std(axis=1) - 1).max() < 0.12
    # The control: the centre of the simplex, which knows no slabs, is far off.
    nothing = centre(Slabs.whole(np.ones(1_000)))
    assert np.abs((values.mean(axis=1) - probes.T @ nothing.masses) / deviations).max() > 0.5
