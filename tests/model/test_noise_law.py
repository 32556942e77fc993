"""The public laws of integer noise, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.model.noise_law import MAX_SCALE, Noise, NoiseKind, pmf, quantile, quantile_of_sum, variance

KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
SCALES = (0.05, 0.2, 0.5, 1.0, 3.7, 12.0)
CONFIDENCES = (0.01, 0.5, 0.95, 0.999, 1 - 1e-9)


def law(noise: Noise) -> NDArray[np.float64]:
    """The probabilities of -r..r, from the definition alone: unnormalised weights divided by their sum."""
    r = math.ceil((45 if noise.kind == "laplace" else 12) * noise.scale) + 8
    z = np.arange(-r, r + 1, dtype=np.float64)
    power = -np.abs(z) / noise.scale if noise.kind == "laplace" else -(z**2) / (2 * noise.scale**2)
    return np.exp(power) / math.fsum(np.exp(power))


def tails(law_: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pr[|Z| > h] for h = 0, 1, ..., of a symmetric law given on -r..r."""
    r = len(law_) // 2
    return np.append(2 * np.cumsum(law_[::-1])[:r][::-1], 0.0)


def exact_quantile(law_: NDArray[np.float64], confidence: float) -> int:
    return int(np.argmax(tails(law_) <= 1 - confidence))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [*SCALES, 9.9, 10.1, 300.0])
def test_pmf_and_variance_follow_the_definition(kind: NoiseKind, scale: float) -> None:
    # Catches a wrong normaliser (the continuous one at small scales) and a continuous variance.
    noise = Noise(kind, scale)
    expected = law(noise)
    z = np.arange(len(expected)) - len(expected) // 2
    np.testing.assert_allclose(pmf(noise, z), expected, rtol=1e-11, atol=1e-300)
    assert variance(noise) == pytest.approx(float((z.astype(float) ** 2 * expected).sum()), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-160, 0.001])
def test_vanishing_scales_are_the_constant_zero(kind: NoiseKind, scale: float) -> None:
    # Catches a division by a square that underflows.
    noise = Noise(kind, scale)
    assert pmf(noise, [-1, 0, 1]).tolist() == [0.0, 1.0, 0.0]
    assert variance(noise) == 0
    assert quantile(noise, 0.999) == quantile_of_sum(noise, 50, 0.999) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [*SCALES, 300.0])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_quantile_is_the_smallest_half_width_that_holds(kind: NoiseKind, scale: float, confidence: float) -> None:
    # Catches the continuous formula (scale * log(1/miss)), which is one step off about half of the time.
    noise = Noise(kind, scale)
    assert quantile(noise, confidence) == exact_quantile(law(noise), confidence)


def test_the_continuous_formula_would_fail_that_test() -> None:
    wrong = [math.ceil(s * math.log(1 / (1 - c))) for s in SCALES for c in CONFIDENCES]
    right = [exact_quantile(law(Noise("laplace", s)), c) for s in SCALES for c in CONFIDENCES]
    assert wrong != right


@pytest.mark.parametrize("scale", [4096.0, 4097.0, 1e6, 1e9, 1e15, MAX_SCALE])
def test_quantiles_of_wide_noise_are_conservative_by_at_most_a_step(scale: float) -> None:
    # Catches a jump or an unsafe side where the discrete Gaussian is bounded by the continuous one.
    rounding = 4e-16 * scale  # of the products below
    above = quantile(Noise("gaussian", scale), 0.95) - 1.959963984540054 * scale
    assert (-1 if scale <= 4096 else 0) - rounding <= above <= 1 + 1e-11 * scale
    above = quantile(Noise("laplace", scale), 0.95) - (math.log(40 / (1 + math.exp(-1 / scale))) * scale - 1)
    assert -rounding <= above <= 1 + 1e-11 * scale


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("terms", [2, 3, 4, 9, 30])
def test_half_widths_of_sums_hold_and_are_not_wasteful(kind: NoiseKind, scale: float, terms: int) -> None:
    # Catches terms instead of sqrt(terms), a one-sided bound, a forgotten term, a wrong mixture weight.
    noise = Noise(kind, scale)
    one = law(noise)
    of_sum = one
    for _ in range(terms - 1):
        of_sum = np.convolve(of_sum, one)
    for confidence in CONFIDENCES:
        exact = exact_quantile(of_sum, confidence)
        given = quantile_of_sum(noise, terms, confidence)
        assert given >= exact
        if kind == "laplace" or scale >= 1:
            assert given == exact
        else:  # a narrow Gaussian has only its subgaussian tail
            assert given <= max(2.0, 1.4 * scale * math.sqrt(2 * terms * math.log(2 / (1 - confidence))))


def test_half_widths_of_sums_grow_with_the_terms_and_never_jump_down() -> None:
    # Catches an unsafe switch between the exact law of a sum and its tail bound.
    for kind in KINDS:
        widths = [quantile_of_sum(Noise(kind, 5.0), terms, 0.95) for terms in (1, 2, 3, 5, 100, 4096, 4097, 10**6)]
        assert widths == sorted(widths)
    assert quantile_of_sum(Noise("laplace", 5.0), 10**6, 0.95) <= 1.4 * 1.96 * math.sqrt(2 * 10**6) * 5.0
    # In the limit of a wide scale: four continuous Laplace draws (a mixture of gammas) and four Gaussian ones.
    assert quantile_of_sum(Noise("laplace", 1e9), 4, 0.95) == pytest.approx(5.6925713e9, rel=1e-7)
    assert quantile_of_sum(Noise("gaussian", 1e9), 4, 0.95) == pytest.approx(2 * 1.9599640e9, rel=1e-7)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**60 * 1.0001])
def test_impossible_scales_are_refused(scale: float) -> None:
    # Catches a scale of 0, which the sampler takes to mean "no noise".
    with pytest.raises(ValueError, match="scale"):
        Noise("laplace", scale)


def test_other_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="laplace or gaussian"):
        Noise("uniform", 1.0)  # type: ignore[arg-type]
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            quantile(Noise("laplace", 1.0), confidence)
    with pytest.raises(ValueError, match="term"):
        quantile_of_sum(Noise("laplace", 1.0), 0, 0.95)
