"""The analytic centre: its conditions of optimality, its covariance where that is known, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from tacit.errors import InvalidQuery
from tacit.release.samplers.polytope import Slabs, centre


def some_slabs(seed: int, atoms: int, slabs: int, *, largest: float) -> Slabs:
    rng = np.random.default_rng(seed)
    found = Slabs.whole(np.exp(rng.uniform(0, np.log(largest), size=atoms)).round())
    data = rng.dirichlet(np.ones(atoms))
    for _ in range(slabs):
        weights = (rng.random(atoms) < 0.5).astype(float)
        found = found.within(weights, float(weights @ data), 0.02)
    return found


@pytest.mark.parametrize("largest", [1.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_vanishes_within_the_sum(seed: int, largest: float) -> None:
    """At the maximum of sum |a| log p_a + sum log gaps, every atom's derivative is the same."""
    slabs = some_slabs(seed, 40, 8, largest=largest)
    found = centre(slabs)
    values = slabs.weights.T @ found.masses
    assert found.masses.sum() == pytest.approx(1)
    assert (found.masses > 0).all()
    assert slabs.violation(values[:, None]).max() < 1e-13
    scores = slabs.sizes / found.masses - slabs.weights @ found.forces
    assert np.abs(scores / np.median(scores) - 1).max() < 1e-4
    pushes = 1 / (slabs.high - values) - 1 / (values - slabs.low)
    strong = np.abs(found.forces) > 1e-3 * np.abs(found.forces).max()
    assert np.abs(pushes[strong] / found.forces[strong] - 1).max() < 0.02  # gaps of 1 / force, from values near 1
    assert found.steps < 100  # half of what is allowed, since a step's last digits are the processor's: 5 to 49 here


def test_it_is_the_maximum() -> None:
    slabs = some_slabs(5, 6, 2, largest=20)
    found = centre(slabs)

    def loss(logits: np.ndarray) -> float:
        masses = np.exp(logits - logits.max())
        masses /= masses.sum()
        values = slabs.weights.T @ masses
        gaps = np.concatenate([slabs.high - values, values - slabs.low])
        if (gaps <= 0).any():
            return 1e6 + 1e6 * float(slabs.violation(values[:, None])[0])
        return -float(slabs.sizes @ np.log(masses) + np.log(gaps).sum())

    start = np.log(found.masses) + 0.001 * np.arange(6)
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20_000})
    assert loss(np.log(found.masses)) <= best.fun + 1e-7


def test_without_slabs_it_is_the_dirichlet_law() -> None:
    sizes = np.array([1.0, 5.0, 20.0, 1e6])
    found = centre(Slabs.whole(sizes))
    share = sizes / sizes.sum()
    assert found.masses == pytest.approx(share)
    exact = (np.diag(share) - np.outer(share, share)) / (sizes.sum() + 1)
    assert found.covariance(np.eye(4)) == pytest.approx(exact, rel=1e-4, abs=1e-14)
    drawn = found.draw(np.random.default_rng(1), 20_000).masses
    assert drawn.std(axis=1) == pytest.approx(np.sqrt(exact.diagonal()), rel=0.03)


@pytest.mark.parametrize("largest", [1.0, 1e6, 1e12])
def test_draws_lie_inside(largest: float) -> None:
    slabs = some_slabs(7, 60, 10, largest=largest)
    state = centre(slabs).draw(np.random.default_rng(2), 100)
    assert slabs.violation(state.values).max() < 1e-12
    assert (state.masses >= 0).all()


def test_the_force_of_an_exponential_gap() -> None:
    """Half of 10^6 cells must hold 0.6: the uniform law is 10^-5 from the edge, with deviation as large as that."""
    slabs = Slabs.whole([5e5, 5e5]).within([1, 0], 0.6, 0.01)
    found = centre(slabs)
    rate = 5e5 / 0.41 - 5e5 / 0.59  # of the density p^(5e5) (1 - p)^(5e5) at the slab's edge 0.59
    assert found.masses[0] - 0.59 == pytest.approx(1 / rate, rel=0.01)
    assert np.sqrt(found.covariance(np.array([[1.0], [0.0]]))[0, 0]) == pytest.approx(1 / rate, rel=0.02)


def test_slabs_without_a_common_point_are_refused() -> None:
    weights = np.arange(10) < 5
    slabs = Slabs.whole(np.full(10, 100.0)).within(weights, 0.2, 0.05).within(weights, 0.8, 0.05)
    with pytest.raises(InvalidQuery, match="no common point"):
        centre(slabs)


def test_the_same_slab_twice_is_no_trouble() -> None:
    slabs = Slabs.whole(np.full(6, 1e4)).within(np.arange(6) < 3, 0.55, 0.01).within(np.arange(6) < 3, 0.55, 0.01)
    assert centre(slabs).masses[:3].sum() == pytest.approx(0.54, abs=0.002)
