"""The choice of a strategy: public, valid, explained, and never far from the best."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.model.attribute import integer
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, Tree, check
from tacit.release.ranges.choice import About, ErrorLoss, choose, regular, signal, trees
from tacit.release.ranges.decoder import Decoder
from tacit.trusted.sensitivity import sensitivity as strategy_sensitivity

SIZES = (2, 3, 5, 8, 13, 64, 100, 257, 5000)
LOSSES: tuple[ErrorLoss, ...] = ("max", "mean")
ABOUT: tuple[About, ...] = ("intervals", "thresholds")


def rms(strategy: Tree | Convolution, leaves: int, measure: Measure, about: About) -> float:
    """The root mean squared error over intervals or thresholds, for epsilon = 1 or rho = 1/2, exactly."""
    moves = strategy_sensitivity(strategy, Domain({"x": integer(0, leaves - 1)}))
    noise = 2 * moves.l1**2 if measure == "epsilon" else moves.l2_squared
    if about == "thresholds":
        first, end = np.zeros(leaves - 1, dtype=np.int64), np.arange(1, leaves)
    else:
        first, end = (side.astype(np.int64) for side in np.triu_indices(leaves + 1, k=1))
    if first.size > 20_000:
        kept = np.random.default_rng(5).choice(first.size, 20_000, replace=False)
        first, end = first[kept], end[kept]
    return math.sqrt(noise * float(Decoder(strategy, leaves).interval_variance(first, end).mean()))


@pytest.mark.parametrize("leaves", SIZES)
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_what_is_chosen_can_be_asked_and_says_why(leaves: int, measure: Measure) -> None:
    domain = Domain({"x": integer(0, leaves - 1)})
    for loss in LOSSES:
        for about in ABOUT:
            choice = choose("x", leaves, measure, loss=loss, about=about)
            check(choice.strategy, domain)
            assert isinstance(choice.strategy, Tree) == (measure == "epsilon")
            assert about in choice.why
            assert f"{leaves:,} leaves." in choice.why
            assert choice == choose("x", leaves, measure, loss=loss, about=about)


@pytest.mark.parametrize("leaves", [4, 16, 100, 300])
@pytest.mark.parametrize("about", ABOUT)
def test_no_candidate_beats_it_by_five_percent_in_the_mean(leaves: int, about: About) -> None:
    # The largest error needs simulation: benchmarks/bench_intervals.py.
    candidates: list[Tree | Convolution] = list(trees("x", leaves))
    candidates += [Convolution("x", p, cyclic) for p in (0, 20, 30, 40, 45, 50, 55) for cyclic in (True, False)]
    for measure in ("epsilon", "rho"):
        mine = rms(choose("x", leaves, measure, loss="mean", about=about).strategy, leaves, measure, about)
        best = min(rms(candidate, leaves, measure, about) for candidate in candidates)
        assert mine <= 1.05 * best


@pytest.mark.parametrize("leaves", [16, 100])
@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_no_candidate_beats_it_by_five_percent_in_the_largest_error(
    leaves: int, about: About, measure: Measure
) -> None:
    # 1,000 public draws; the largest errors vary by about 35%, so their means by 1.1%.
    def largest(strategy: Tree | Convolution) -> float:
        moves = strategy_sensitivity(strategy, Domain({"x": integer(0, leaves - 1)}))
        chance, plan = np.random.default_rng(1), Decoder(strategy, leaves)
        size = (1000, plan.answers)
        noise = chance.laplace(size=size) if measure == "epsilon" else chance.normal(size=size)
        errors = plan.prefixes(noise, 0.0) * (moves.l1 if measure == "epsilon" else math.sqrt(moves.l2_squared))
        return float((np.ptp(errors, axis=1) if about == "intervals" else np.abs(errors).max(axis=1)).mean())

    candidates: list[Tree | Convolution] = [tree for tree in trees("x", leaves) if len(tree.branching) <= 4]
    candidates += [choose("x", leaves, "epsilon", loss="mean", about=about).strategy]
    if measure == "rho":
        candidates += [Convolution("x", p, cyclic) for p in (30, 40, 45, 50) for cyclic in (True, False)]
    assert largest(choose("x", leaves, measure, about=about).strategy) <= 1.05 * min(map(largest, candidates))


def test_it_beats_the_binary_tree_by_far() -> None:
    for measure, times in (("epsilon", 1.7), ("rho", 1.3)):
        two = rms(regular("x", 4096, 2), 4096, measure, "intervals")
        assert two > times * rms(choose("x", 4096, measure, loss="mean").strategy, 4096, measure, "intervals")


@pytest.mark.parametrize("leaves", [*SIZES, 2**20, 999_983])
def test_trees_of_all_depths_reach_all_leaves(leaves: int) -> None:
    found = list(trees("x", leaves))
    assert found[0].branching == (max(2, leaves),)
    for tree in [*found, *(regular("x", leaves, children) for children in (2, 4, 16))]:
        assert tree.spans()[0] < leaves <= tree.spans()[0] * tree.branching[0]


def test_a_single_leaf_is_refused() -> None:
    with pytest.raises(ValueError, match="no ranges"):
        choose("x", 1, "rho")


@pytest.mark.parametrize("leaves", SIZES)
@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_for_few_rows_it_is_a_tree_whose_bars_are_little_wider(leaves: int, measure: Measure) -> None:
    domain, plain = Domain({"x": integer(0, leaves - 1)}), choose("x", leaves, measure)
    assert choose("x", leaves, measure, signal=40.0 * leaves) == plain
    for faint in (0.01, 0.7):
        choice = choose("x", leaves, measure, signal=faint * leaves)
        check(choice.strategy, domain)
        assert isinstance(choice.strategy, Tree)
        assert list(choice.strategy.weights) == sorted(choice.strategy.weights, reverse=True)
        assert f"{leaves:,} leaves." in choice.why
        wider = rms(choice.strategy, leaves, measure, "intervals") / rms(plain.strategy, leaves, measure, "intervals")
        assert wider < 1.42


def test_for_few_rows_under_pure_epsilon_the_root_has_eight_children() -> None:
    found = {
        (leaves, faint): choose("x", leaves, "epsilon", signal=faint * leaves).strategy
        for leaves in (255, 1024, 4096)
        for faint in (0.1, 1.0, 3.0)
    }
    assert found[4096, 0.1] == Tree("x", (8, 8, 8, 8), (12, 9, 6, 5))
    assert found[4096, 1.0] == Tree("x", (8, 8, 8, 8), (12, 10, 9, 8))
    assert found[4096, 3.0] == Tree("x", (16, 16, 16), (1, 1, 1))
    assert found[1024, 0.1] == found[1024, 1.0] == Tree("x", (8, 8, 16), (12, 10, 9))  # bars allow no more
    assert found[255, 1.0] == Tree("x", (16, 16), (1, 1))


def test_the_signal_is_rows_over_the_noise_of_one_count() -> None:
    assert signal(1000, Loss.of("epsilon", 0.5)) == pytest.approx(250)
    assert signal(1000, Loss.of("rho", 0.04)) == pytest.approx(200)
