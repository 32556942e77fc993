"""The ladder's numbers: against the notes, against simulation, and against the curator's own sensitivities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.model.attribute import integer
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.strategy import Convolution, Tree, kernel
from tacit.model.workload import Intervals, Prefixes
from tacit.release.intervals.choice import binary, choose
from tacit.release.intervals.guarantee import (
    best_branching,
    binary_tree,
    every_interval,
    lower_bound,
    noise_of,
    prefixes_and_differences,
    square_root,
    wide_tree,
)
from tacit.release.intervals.tree import textbook
from tacit.trusted.loss import noise_for
from tacit.trusted.sensitivity import sensitivity


@pytest.mark.parametrize("bins", [2, 3, 16, 100])
def test_scales_are_those_that_the_curator_would_use(bins: int) -> None:
    domain, loss = Domain({"x": integer(0, bins - 1)}), Loss.of("epsilon", 0.5)
    for rung, question in (
        (every_interval(bins, 0.5), Intervals("x")),
        (prefixes_and_differences(bins, 0.5), Prefixes("x")),
        (binary_tree(bins, 0.5), binary("x", bins)),
    ):
        assert rung.scale == noise_for(loss, sensitivity(question, domain), 1).scale


@pytest.mark.parametrize("bins", [2, 7, 64, 1000])
def test_planned_noise_is_the_curators(bins: int) -> None:
    domain = Domain({"x": integer(0, bins - 1)})
    asked: list[tuple[Measure, Tree | Convolution]] = [
        ("epsilon", choose("x", bins, "epsilon").strategy),
        ("rho", choose("x", bins, "rho").strategy),
        ("rho", choose("x", bins, "rho", about="thresholds").strategy),
    ]
    for measure, strategy in asked:
        loss = Loss.of(measure, 0.3)
        assert noise_of(strategy, bins, loss) == noise_for(loss, sensitivity(strategy, domain), 1)


def test_the_numbers_of_the_notes() -> None:
    rung = binary_tree(4096, 1.0)
    assert rung.scale == 2 * 12  # claim 2.2
    assert rung.answers == 2 * 4096 - 1
    assert rung.expected_max == pytest.approx(2 * 12 * 24 * (math.log(8191) + 1))  # equations (10) and (15), twice
    assert wide_tree(4096, 2, 1.0).scale == rung.scale
    assert wide_tree(4096, 16, 1.0).scale == 6
    assert best_branching(4096) == 16
    assert [lower_bound(bins) for bins in (2, 4, 16, 65536, 2**20)] == [1, 2, 3, 4, 5]


def test_expected_errors_stay_below_the_bounds_and_the_bounds_fall() -> None:
    bins, runs = 256, 200
    chance = np.random.default_rng(2)
    tree = binary("x", bins)
    bound = binary_tree(bins, 1.0)
    noise = chance.laplace(scale=bound.scale, size=(runs, sum(tree.widths(bins))))
    errors = textbook(noise, tree, bins, 0.0)
    assert np.ptp(errors, axis=1).mean() < bound.expected_max
    prefixes = prefixes_and_differences(bins, 1.0)
    errors = np.pad(chance.laplace(scale=prefixes.scale, size=(runs, bins - 1)), ((0, 0), (1, 1)))
    assert np.ptp(errors, axis=1).mean() < prefixes.expected_max
    assert every_interval(4096, 1.0).expected_max > prefixes_and_differences(4096, 1.0).expected_max
    assert prefixes_and_differences(4096, 1.0).expected_max > 10 * binary_tree(4096, 1.0).expected_max


@pytest.mark.parametrize("bins", [2, 10, 1000, 2**16])
def test_the_square_root_bound_covers_its_norms(bins: int) -> None:
    g = kernel(bins, 50) / 2**16
    norm = float(g @ g)
    rung = square_root(bins, 0.5)
    assert math.sqrt(2 * norm) <= rung.scale * (1 + 1e-9)
    loss = Loss.of("rho", 0.5)
    assert noise_of(Convolution("x", 50, cyclic=False), bins, loss).scale / 2**16 <= rung.scale


def test_nonsense_is_refused() -> None:
    for bins, budget in ((1, 1.0), (8, 0.0), (8, math.inf)):
        with pytest.raises(ValueError, match="must be"):
            binary_tree(bins, budget)
