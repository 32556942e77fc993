"""The ladder's numbers: against the notes, against simulation, and against the curator's own sensitivities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.exact.price import noise_for
from tacit.model.attribute import integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, kernel
from tacit.release.ranges.bin_width import noise_of
from tacit.release.ranges.choice import regular
from tacit.theory.smith_ullman import (
    best_branching,
    binary_tree,
    every_interval,
    lower_bound,
    prefixes_and_differences,
    square_root,
    textbook,
    wide_tree,
)
from tacit.trusted.sensitivity import sensitivity


@pytest.mark.parametrize("bins", [2, 3, 16, 40])
def test_scales_are_the_sensitivities_over_epsilon(bins: int) -> None:
    intervals = [(first, end) for first in range(bins) for end in range(first + 1, bins + 1)]
    for rung, asked in (
        (every_interval(bins, 0.5), intervals),
        (prefixes_and_differences(bins, 0.5), [(0, end) for end in range(1, bins)]),
    ):
        assert rung.answers == len(asked)
        member = np.array([[first <= x < end for x in range(bins)] for first, end in asked])  # of a row in bin x
        moves = max(int((member[:, x] != member[:, y]).sum()) for x in range(bins) for y in range(x))
        assert rung.scale == moves / 0.5
    domain, loss = Domain({"x": integer(0, bins - 1)}), Loss.of("epsilon", 0.5)
    tree = regular("x", bins, 2)
    assert binary_tree(bins, 0.5).scale == noise_for(loss, sensitivity(tree, domain), 1).scale  # the curator's own


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
    tree = regular("x", bins, 2)
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
