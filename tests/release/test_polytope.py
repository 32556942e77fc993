"""The polytope and its pair moves: what holds exactly, move by move. The law is in tests/statistical."""

from __future__ import annotations

import numpy as np
import pytest
from uncompiled import uncompiled

from tacit.errors import InvalidQuery
from tacit.release.samplers import pairs
from tacit.release.samplers.pairs import pair_step
from tacit.release.samplers.polytope import Samples, Slabs, dirichlet, repair, settled
from tacit.theory.median_efficient import grid_start


def random_slabs(rng: np.random.Generator, atoms: int, slabs: int, *, weighted: bool, width: float = 0.02) -> Slabs:
    found = Slabs.whole(np.ones(atoms))
    data = rng.dirichlet(np.full(atoms, 0.5))
    for _ in range(slabs):
        weights = rng.random(atoms) if weighted else (rng.random(atoms) < 0.4).astype(float)
        found = found.within(weights, float(weights @ data), width)
    return found


def sized(slabs: Slabs, sizes: np.ndarray) -> Slabs:
    return Slabs(sizes, slabs.weights, slabs.low, slabs.high)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("atomic", [False, True])
def test_moves_stay_in_the_polytope(weighted: bool, atomic: bool) -> None:
    rng = np.random.default_rng(1)
    slabs = random_slabs(rng, 30, 6, weighted=weighted)
    if atomic:
        slabs = sized(slabs, np.exp(rng.uniform(0, 20, size=30)).round())
    state = repair(rng, slabs, dirichlet(rng, slabs, 50))
    assert slabs.violation(state.values).max() == 0
    before = state.masses.copy()
    moved = pair_step(rng, slabs, state, 5)
    assert (state.masses == before).all(), "a step leaves the state that it is given alone"
    assert (moved.masses >= 0).all()
    assert np.abs(moved.masses.sum(axis=0) - 1).max() < 1e-12
    assert slabs.violation(slabs.weights.T @ moved.masses).max() < 1e-12
    assert (moved.masses != before).mean() > 0.9


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_moves_on_cells_give_the_same_bits_as_plain_python(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    slabs = random_slabs(rng, 41, 7, weighted=weighted)
    before = dirichlet(rng, slabs, 9)  # outside some slabs, too
    some = rng.permutation(40).reshape(-1, 2)
    results = []
    uniforms = rng.random((20, 9))
    for module in (pairs, uncompiled(pairs, "_uniform_moves", "_limits")):
        points = Samples(before.masses.copy(), before.values.copy())
        module.uniform_moves(points, slabs, some, uniforms)
        results.append(points)
    assert results[0].masses.tobytes() == results[1].masses.tobytes()
    assert results[0].values.tobytes() == results[1].values.tobytes()
    assert (results[0].masses != before.masses).any()


def test_compiled_moves_on_atoms_give_the_same_bits_as_plain_python() -> None:
    rng = np.random.default_rng(3)
    slabs = sized(random_slabs(rng, 40, 5, weighted=False), np.exp(rng.uniform(0, 27, size=40)).round())
    before = repair(rng, slabs, dirichlet(rng, slabs, 200))
    some = rng.permutation(40).reshape(-1, 2)
    uniforms, coins = rng.random((2, 20, 200))
    results = []
    for module in (pairs, uncompiled(pairs, "_beta_moves", "_exchange")):
        points = Samples(before.masses.copy(), before.values.copy())
        module.beta_moves(points, slabs, some, uniforms, coins)
        results.append(points.masses)
    assert results[0].tobytes() == results[1].tobytes()
    assert (results[0] != before.masses).mean() > 0.5


def test_a_chain_outside_never_moves_further_out() -> None:
    rng = np.random.default_rng(4)
    slabs = random_slabs(rng, 50, 4, weighted=False, width=0.01)
    state = dirichlet(rng, slabs, 40)
    out = np.maximum(slabs.low[:, None] - state.values, state.values - slabs.high[:, None])
    assert (out > 0).any()
    for _ in range(6):
        state = pair_step(rng, slabs, state)
        now = np.maximum(slabs.low[:, None] - state.values, state.values - slabs.high[:, None])
        assert (now <= np.maximum(out, 0) + 1e-12).all()
        out = now
    assert slabs.violation(state.values).max() < 1e-9, "a few sweeps bring it in"


def test_a_new_slab_is_reached_from_the_old_state() -> None:
    rng = np.random.default_rng(5)
    slabs = random_slabs(rng, 500, 10, weighted=False)
    state = pair_step(rng, slabs, repair(rng, slabs, dirichlet(rng, slabs, 100)), 5)
    harder = slabs.within(np.arange(500) < 100, 0.5, 0.005)  # 0.2 before
    state = settled(harder, state.masses)
    assert harder.violation(state.values).min() > 0.1
    assert harder.violation(repair(rng, harder, state).values).max() == 0
    assert harder.violation(pair_step(rng, harder, state, 5).values).max() == 0  # by pair moves alone, too


def test_slabs_without_a_common_point_are_noticed() -> None:
    rng = np.random.default_rng(6)
    weights = np.arange(10) < 5
    slabs = Slabs.whole(np.ones(10)).within(weights, 0.2, 0.05).within(weights, 0.8, 0.05)
    state = pair_step(rng, slabs, repair(rng, slabs, dirichlet(rng, slabs, 20)), 20)
    assert slabs.violation(state.values).min() > 0.2


def test_a_spare_cell_makes_the_sum_at_most_one() -> None:
    """The paper's C_0 has Beta(1, |X|) coordinates: mean 1 / (|X| + 1)."""
    state = dirichlet(np.random.default_rng(7), Slabs.whole(np.ones(4)), 100_000)
    assert np.abs(state.masses[:3].mean(axis=1) - 1 / 4).max() < 0.01


def test_a_slab_beyond_the_ends_is_moved_inside() -> None:
    slabs = Slabs.whole([1, 1]).within([1, 0], -0.2, 0.05).within([0, 1], 1.3, 0.05)
    assert slabs.low.tolist() == [0, 0.95]
    assert slabs.high.tolist() == [0.05, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Slabs.whole([]),
        lambda: Slabs.whole([1, 0.5]),
        lambda: Slabs.whole([1, np.inf]),
        lambda: Slabs.whole([1, 1]).within([1], 0.5, 0.1),
        lambda: Slabs.whole([1, 1]).within([1, 2], 0.5, 0.1),
        lambda: Slabs.whole([1, 1]).within([1, np.nan], 0.5, 0.1),
        lambda: Slabs.whole([1, 1]).within([1, 0], 0.5, 0),
        lambda: Slabs.whole([1, 1]).within([1, 0], np.nan, 0.1),
        lambda: dirichlet(np.random.default_rng(1), Slabs.whole(np.ones(2**20)), 2**20),
        lambda: grid_start(Slabs.whole([1, 2]), np.array([[0.5], [0.5]]), 0.1),
        lambda: grid_start(Slabs.whole([1, 1]).within([1, 0], 0.55, 0.01), np.array([[0.55], [0.45]]), 0.1),
    ],
)
def test_wrong_input_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidQuery):
        wrong()  # type: ignore[operator]


def test_a_state_is_a_plain_tuple() -> None:
    slabs = Slabs.whole([2, 3])
    state = dirichlet(np.random.default_rng(8), slabs, 4)
    assert isinstance(state, tuple)
    assert Samples(*state).masses is state.masses
    assert Slabs.whole([5]).violation(np.zeros((0, 3))).tolist() == [0, 0, 0]
    single = dirichlet(np.random.default_rng(9), Slabs.whole([5]), 3)
    assert pair_step(np.random.default_rng(9), Slabs.whole([5]), single).masses.tolist() == [[1, 1, 1]]
