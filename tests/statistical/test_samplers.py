"""The samplers against their law: the right scale must pass, a wrong one must not.

Draws are pooled into cells, and the number in each cell is binomial, exactly. A test accepts if every cell lies in its
acceptance region; the regions miss with probability FALSE_ALARM over the whole file, by a union bound. The same draws
are then held against the laws of 0.8 and 1.25 times the scale, which must be rejected; the probability that such a
control passes by luck is computed, and is below 1e-9. Draws from tables are so fast that millions of them are held
against scales wrong by one percent, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.exact.opendp import sampler
from tacit.exact.table import suits
from tacit.model.noise_law import Noise, NoiseKind, pmf, quantile
from tacit.trusted.noise import add_noise, draw_geometric

FALSE_ALARM = 1e-9
KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
# 2 and 3 are there for a reason: up to 0.14.1, a wrong division of rationals biased OpenDP's samplers, by 5 % at these
# scales and invisibly at many others (github.com/opendp/opendp/issues/2638).
SCALES = (0.5, 2.0, 3.0, 3.7, 40.0, 1000.0)
CELLS = 24  # at most, on each side of 0
TESTS = 4 * len(KINDS) * len(SCALES) * (2 * CELLS + 3)  # two routes; and magnitudes and one-sided draws
DRAWS, FEWER, MANY, FINE = 200_000, 40_000, 5_000_000, 4_000_000

Cells = tuple[NDArray[np.int64], NDArray[np.float64]]
Draw = Callable[[Noise, int], NDArray[np.int64]]


def from_tables(noise: Noise, size: int) -> NDArray[np.int64]:
    assert suits(noise, size)
    return add_noise(np.full(size, 7, dtype=np.int64), noise) - 7


def from_opendp(noise: Noise, size: int) -> NDArray[np.int64]:
    return np.array(sampler(noise.kind, noise.scale)(np.full(size, 7, dtype=np.int64)), dtype=np.int64) - 7


def cells(law: Noise, around: Noise) -> Cells:
    """Edges that spread `around` over about 2 * CELLS + 1 cells, and the probability of each cell under `law`.

    A value z is in cell i if i edges are <= z.
    """
    confidences = [*np.linspace(0.02, 0.98, CELLS - 4), 0.995, 0.999, 0.9999]
    ends = sorted({quantile(around, float(c)) for c in confidences})
    edges = np.array([*(-h for h in reversed(ends)), *(h + 1 for h in ends)], dtype=np.int64)
    reach = quantile(Noise(law.kind, 1.5 * law.scale), 1 - 1e-12)  # what lies beyond is folded into the end cells
    z = np.arange(min(-reach, edges[0] - 1), max(reach, edges[-1]) + 1)
    chances = np.bincount(np.searchsorted(edges, z, side="right"), weights=pmf(law, z), minlength=len(edges) + 1)
    return edges, chances / chances.sum()


def region(chances: NDArray[np.float64], draws: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each cell, the counts outside of which lies at most FALSE_ALARM / TESTS of the binomial's mass."""
    each_side = FALSE_ALARM / TESTS / 2
    return np.asarray(binom.ppf(each_side, draws, chances)), np.asarray(binom.isf(each_side, draws, chances))


def accepts(values: NDArray[np.int64], law: Noise, around: Noise) -> bool:
    edges, chances = cells(law, around)
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(chances))
    low, high = region(chances, len(values))
    return bool(np.all((low <= counts) & (counts <= high)))


def luck(truth: Noise, law: Noise, draws: int) -> float:
    """A bound on the chance that draws of `truth` are accepted as `law`: the best single cell."""
    _, under_truth = cells(truth, truth)
    low, high = region(cells(law, truth)[1], draws)
    return float(np.min(binom.cdf(high, draws, under_truth) - binom.cdf(low - 1, draws, under_truth)))


def check(kind: NoiseKind, scale: float, draws: int, draw: Draw) -> None:
    noise = Noise(kind, scale)
    values = np.concatenate([draw(noise, draws // 10) for _ in range(10)])
    assert accepts(values, noise, around=noise)
    for factor in (0.8, 1.25):
        wrong = Noise(kind, scale * factor)
        assert luck(noise, wrong, draws) < 1e-9
        assert not accepts(values, wrong, around=noise)
    # Coordinates and consecutive draws: the lag-1 products have mean 0. Signs make a test with an exact law.
    signs = np.sign(values)
    agree = signs[:-1] * signs[1:]
    pairs = int(np.count_nonzero(agree))
    # Given the magnitudes, neighbouring signs agree like fair coins.
    agreeing = int(np.count_nonzero(agree > 0))
    assert binom.ppf(1e-12, pairs, 0.5) <= agreeing <= binom.isf(1e-12, pairs, 0.5)
    size = np.abs(values) - np.abs(values).mean()  # and the magnitudes do not follow each other either
    correlation = float((size[:-1] * size[1:]).mean() / size.var())
    assert abs(correlation) < 8 / np.sqrt(draws)  # 8 standard deviations: below 1e-13, heavy tails included


@pytest.mark.parametrize(("draw", "draws"), [(from_tables, DRAWS), (from_opendp, FEWER)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law_and_reject_a_wrong_scale(kind: NoiseKind, scale: float, draw: Draw, draws: int) -> None:
    # Catches a scale that means a standard deviation (laplace), a variance (gaussian) or a step of another grid.
    check(kind, scale, draws, draw)


@pytest.mark.audit
@pytest.mark.parametrize("draw", [from_tables, from_opendp])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_many_draws_follow_the_law_and_reject_a_wrong_scale(
    kind: NoiseKind, scale: float, draw: Draw, size: float
) -> None:
    check(kind, scale, max(FEWER, round(size * MANY)), draw)


def check_finely(kind: NoiseKind, scale: float, draws: int) -> None:
    """The events |z| <= h, each binomial: they show a wrong scale best. Then the signs, fair coins except for 0."""
    noise = Noise(kind, scale)
    values = from_tables(noise, draws)
    ends = np.array(sorted({quantile(noise, c) for c in np.linspace(0.05, 0.95, CELLS)}), dtype=np.int64)
    counts = np.cumsum(np.bincount(np.searchsorted(ends, np.abs(values)), minlength=len(ends) + 1))[:-1]

    def within(law: Noise) -> NDArray[np.float64]:
        z = np.arange(ends[-1] + 1)
        return np.cumsum(pmf(law, z) * np.where(z == 0, 1, 2))[ends]

    low, high = region(within(noise), draws)
    assert np.all((low <= counts) & (counts <= high))
    for factor in (0.99, 1.01):
        low, high = region(within(Noise(kind, scale * factor)), draws)
        lucky = binom.cdf(high, draws, within(noise)) - binom.cdf(low - 1, draws, within(noise))
        assert np.min(lucky) < 1e-9
        assert not np.all((low <= counts) & (counts <= high))
    signed, positive = np.count_nonzero(values), np.count_nonzero(values > 0)
    assert binom.ppf(1e-12, signed, 0.5) <= positive <= binom.isf(1e-12, signed, 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_one_percent_of_the_scale_shows(kind: NoiseKind) -> None:
    check_finely(kind, 40.0, FINE)


@pytest.mark.audit
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_one_percent_of_every_scale_shows(kind: NoiseKind, scale: float) -> None:
    check_finely(kind, scale, 12 * FINE if scale < 1 else 2 * FINE)


@pytest.mark.parametrize("scale", [0.5, 3.7, 40.0, 1000.0, 1e7])
def test_one_sided_draws_follow_their_law(scale: float) -> None:
    # On z >= 0 the law is that of laplace, given z >= 0; the wide ones are put together from digits.
    noise = Noise("laplace", scale)
    draws = 5 * DRAWS
    assert suits(noise, draws)
    values = draw_geometric(scale, draws)
    assert values.min() >= 0
    ends = np.array(sorted({quantile(noise, c) for c in np.linspace(0.05, 0.999, CELLS)}), dtype=np.int64)
    counts = np.cumsum(np.bincount(np.searchsorted(ends, values), minlength=len(ends) + 1))[:-1]

    def accepted(b: float) -> bool:
        low, high = region(-np.expm1(-(ends + 1) / b), draws)
        return bool(np.all((low <= counts) & (counts <= high)))

    assert accepted(scale)
    assert not accepted(scale * 0.97)  # 23 standard deviations away, where 7 are allowed
    assert not accepted(scale * 1.03)


@pytest.mark.parametrize("kind", KINDS)
def test_rounded_floats_are_rejected(kind: NoiseKind) -> None:
    # The planted bug: continuous noise from numpy, rounded. Only narrow noise can show it, so narrow noise is tested.
    rng = np.random.default_rng(0)
    draw = rng.laplace if kind == "laplace" else rng.normal
    noise = Noise(kind, 0.5)
    values = np.rint(draw(0.0, 0.5, DRAWS)).astype(np.int64)
    assert not accepts(values, noise, around=noise)


@pytest.mark.parametrize("kind", KINDS)
def test_the_checker_accepts_an_independent_sampler_of_the_law(kind: NoiseKind) -> None:
    # Must pass: the law sampled by inversion. Otherwise the controls above would prove nothing.
    rng = np.random.default_rng(1)
    for scale in SCALES:
        noise = Noise(kind, scale)
        z = np.arange(-60 * int(scale + 1), 60 * int(scale + 1) + 1)
        values = z[np.searchsorted(np.cumsum(pmf(noise, z)), rng.random(DRAWS))]
        assert accepts(values, noise, around=noise)


def test_no_two_vectors_are_alike() -> None:
    # Catches a reseeded or buffered generator: two of 2,000 draws are equal with a chance of 2e6 / (3 scale) or less,
    # below 1e-10 for both kinds together.
    for kind in KINDS:
        drawn = [add_noise(np.zeros(50, dtype=np.int64), Noise(kind, 2.0**55)) for _ in range(40)]
        assert len(np.unique(np.concatenate(drawn))) == 2000
    for first, second in itertools.pairwise(drawn):
        assert not np.array_equal(np.sort(np.abs(first)), np.sort(np.abs(second)))
