"""Error bars and bands: against what is known exactly, and no wider than needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.model.workload import Convolution, Tree
from tacit.release.ranges import band as module
from tacit.release.ranges.band import band, single
from tacit.release.ranges.choice import choose
from tacit.release.ranges.decoder import Decoder


def test_one_threshold_is_known_exactly() -> None:
    # Two leaves: one noisy number. Least squares of x and n - x halves the variance: (Z1 - Z2)/2.
    plan = Decoder(Tree("x", (2,), (1,)), 2)
    found = band(plan, "gaussian", 0.95)
    assert found.prefixes == pytest.approx(1.96 / math.sqrt(2), rel=0.06)
    assert found.intervals == pytest.approx(found.prefixes)


@pytest.mark.parametrize(("measure", "kind"), [("epsilon", "laplace"), ("rho", "gaussian")])
@pytest.mark.parametrize("leaves", [16, 256])
def test_the_bound_is_valid_and_not_far_from_the_simulation(measure: str, kind: str, leaves: int) -> None:
    plan = Decoder(choose("x", leaves, measure).strategy, leaves)  # type: ignore[arg-type]
    simulated = band(plan, kind, 0.95)  # type: ignore[arg-type]
    bounded = module._bounded(plan, kind, 0.95)  # type: ignore[arg-type]
    assert simulated.prefixes < bounded < (1.5 if kind == "gaussian" else 2.2) * simulated.prefixes
    assert simulated.prefixes < simulated.intervals < 2 * simulated.prefixes


def test_a_high_confidence_is_bounded_and_grows() -> None:
    plan = Decoder(choose("x", 64, "epsilon").strategy, 64)
    widths = [band(plan, "laplace", c).prefixes for c in (0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9)]
    assert widths == sorted(widths)
    bounded = band(plan, "laplace", 0.9999)
    assert bounded.intervals == 2 * bounded.prefixes == 2 * module._bounded(plan, "laplace", 0.9999)


def test_a_long_convolution_is_bounded_quickly() -> None:
    plan = Decoder(Convolution("x", 48, cyclic=False), 2**16)
    assert band(plan, "gaussian", 0.95).prefixes == module._bounded(plan, "gaussian", 0.95)
    with pytest.raises(ValueError, match="Gaussian"):
        module._bounded(plan, "laplace", 0.95)


def test_it_is_the_same_every_time() -> None:
    plan = Decoder(Convolution("x", 48, cyclic=True), 32)
    first = band(plan, "gaussian", 0.9)
    module.band.cache_clear()
    assert band(plan, "gaussian", 0.9) == first


def test_single_bars_are_normal_or_laplace_whichever_is_wider() -> None:
    assert single("gaussian", 0.95) == pytest.approx(1.959964, abs=1e-5)
    assert single("laplace", 0.95) == pytest.approx(math.log(20) / math.sqrt(2))
    assert single("laplace", 0.5) == pytest.approx(single("gaussian", 0.5))
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="confidence"):
            single("laplace", wrong)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_single_bars_hold_for_sums_of_laplace_draws(confidence: float) -> None:
    # Weighted sums of 1 to 40 draws. 100,000 runs each: a bar that is right fails with a chance below 1e-9 (6 sigma).
    chance = np.random.default_rng(8)
    runs = 100_000
    slack = 6 * math.sqrt(confidence * (1 - confidence) / runs)
    for terms in (1, 2, 3, 5, 10, 40):
        weights = chance.random(terms) ** 3 + 0.01
        drawn = sum(w * chance.laplace(size=runs) for w in weights)
        deviation = math.sqrt(2 * float(weights @ weights))
        covered = float(np.mean(np.abs(drawn) <= single("laplace", confidence) * deviation))
        assert covered >= confidence - slack
        too_narrow = float(np.mean(np.abs(drawn) <= 0.9 * single("gaussian", confidence) * deviation))
        assert too_narrow < covered  # the control is narrower, and for high confidences misses
    if confidence >= 0.95:
        assert too_narrow < confidence - slack
