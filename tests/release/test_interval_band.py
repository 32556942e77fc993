"""Error bars and bands: against what is known exactly, and no wider than needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.model.noise_law import Noise, NoiseKind, pmf
from tacit.model.workload import Convolution, Tree
from tacit.release.ranges import band as module
from tacit.release.ranges.band import band, continuous_band
from tacit.release.ranges.choice import choose
from tacit.release.ranges.decoder import Decoder


def test_one_threshold_is_known_exactly() -> None:
    # Two leaves: one noisy number. Least squares of x and n - x halves the variance: (Z1 - Z2)/2.
    plan = Decoder(Tree("x", (2,), (1,)), 2)
    found = continuous_band(plan, "gaussian", 0.95)
    assert found.prefixes == pytest.approx(1.96 / math.sqrt(2), rel=0.06)
    assert found.intervals == pytest.approx(found.prefixes)


@pytest.mark.parametrize(("measure", "kind"), [("epsilon", "laplace"), ("rho", "gaussian")])
@pytest.mark.parametrize("leaves", [16, 256])
def test_the_bound_is_valid_and_not_far_from_the_simulation(measure: str, kind: str, leaves: int) -> None:
    plan = Decoder(choose("x", leaves, measure).strategy, leaves)  # type: ignore[arg-type]
    simulated = continuous_band(plan, kind, 0.95)  # type: ignore[arg-type]
    bounded = module._bounded(plan, kind, 0.95)  # type: ignore[arg-type]
    assert simulated.prefixes < bounded < (1.5 if kind == "gaussian" else 2.2) * simulated.prefixes
    assert simulated.prefixes < simulated.intervals < 2 * simulated.prefixes


def test_a_high_confidence_is_bounded_and_grows() -> None:
    plan = Decoder(choose("x", 64, "epsilon").strategy, 64)
    widths = [continuous_band(plan, "laplace", c).prefixes for c in (0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9)]
    assert widths == sorted(widths)
    bounded = continuous_band(plan, "laplace", 0.9999)
    assert bounded.intervals == 2 * bounded.prefixes == 2 * module._bounded(plan, "laplace", 0.9999)


def test_a_long_convolution_is_bounded_quickly() -> None:
    plan = Decoder(Convolution("x", 48, cyclic=False), 2**16)
    assert continuous_band(plan, "gaussian", 0.95).prefixes == module._bounded(plan, "gaussian", 0.95)
    with pytest.raises(ValueError, match="Gaussian"):
        module._bounded(plan, "laplace", 0.95)


def test_it_is_the_same_every_time() -> None:
    plan = Decoder(Convolution("x", 48, cyclic=True), 32)
    first = continuous_band(plan, "gaussian", 0.9)
    module.continuous_band.cache_clear()
    assert continuous_band(plan, "gaussian", 0.9) == first


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_band_of_integer_noise_holds_by_its_exact_law(kind: NoiseKind) -> None:
    """Two leaves: the error is (Z1 - Z2)/2. What the continuous law says is too narrow for some scales."""
    plan = Decoder(Tree("x", (2,), (1,)), 2)
    control = 0.0
    for scale in (0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0):
        noise = Noise(kind, scale)
        one = pmf(noise, np.arange(-130, 131))
        both = np.convolve(one, one)
        off = np.abs(np.arange(both.size) - both.size // 2) / 2
        for confidence in (0.8, 0.95, 0.99):
            found = band(plan, noise, confidence)
            assert float(both[off > found.prefixes].sum()) <= 1 - confidence
            assert float(both[off > found.intervals].sum()) <= 1 - confidence
        control = max(control, float(both[off > scale * continuous_band(plan, kind, 0.95).prefixes].sum()))
    assert control > (0.055 if kind == "gaussian" else 0.04)  # that law has a little more in hand


def test_the_band_of_much_noise_is_that_of_a_continuous_law() -> None:
    plan = Decoder(choose("x", 64, "epsilon").strategy, 64)
    for scale, more in ((100.0, 1.01), (1e4, 1.0005)):
        found, old = band(plan, Noise("laplace", scale), 0.95), continuous_band(plan, "laplace", 0.95)
        assert scale * old.prefixes <= found.prefixes <= more * scale * old.prefixes + 1
        assert scale * old.intervals <= found.intervals <= more * scale * old.intervals + 2
