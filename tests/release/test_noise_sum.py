"""Error bars of weighted sums of integer noise: exact laws, the steps of the proof, and how wide they may be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erfc, erfcx, gammaincc
from scipy.stats import binom

from tacit.model.attribute import integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise, NoiseKind, pmf, variance
from tacit.model.workload import Product, Tree
from tacit.release.noise_sum import Draws, continuous, half_widths, weighted_widths, width_of_all
from tacit.release.ranges.decoder import Decoder
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import Rectangles

Floats = NDArray[np.float64]

KINDS: tuple[NoiseKind, ...] = ("gaussian", "laplace")
SCALES = (0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.7, 2.0, 2.6, 3.3, 4.0, 5.5)
CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
# Weights in twelfths, as few lattices as possible and as many: what is released has such ones, by its tree.
SUMS = ((12,), (12, 12, 12, 12), (11, -1, -1, -1), (12, 6, 4, 3), (8, 8, -4), (6, 6, 6, 6, 6, 6, 1), (9, 7, 5, 3, 2, 1))


def law(noise: Noise, weights: tuple[int, ...]) -> Floats:
    """The exact probabilities of Σ weight * Z, from the smallest sum to the largest, but for a chance below 1e-15."""
    reach = math.ceil((9 if noise.kind == "gaussian" else 37) * noise.scale) + 1
    found = np.ones(1)
    for weight in map(abs, weights):
        spread = np.zeros(2 * reach * weight + 1)
        spread[::weight] = pmf(noise, np.arange(-reach, reach + 1))
        found = np.convolve(found, spread)
    return found


def missed(noise: Noise, weights: tuple[int, ...], bar: float) -> float:
    """Pr[|Σ weight/12 * Z| > bar]."""
    found = law(noise, weights)
    at = np.abs(np.arange(found.size) - found.size // 2) / 12
    return float(found[at > bar * (1 + 1e-12)].sum())


def squares(weights: tuple[int, ...]) -> float:
    return sum(w * w for w in weights) / 144


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", SUMS)
def test_bars_hold_by_the_exact_law_of_integer_noise(kind: NoiseKind, weights: tuple[int, ...]) -> None:
    distinct = squares(tuple(set(map(abs, weights))))
    control = 0.0
    for scale in SCALES[:: 1 if len(weights) < 5 else 3]:
        noise = Noise(kind, scale)
        for confidence in CONFIDENCES:
            for bar in (
                half_widths(noise, squares(weights), confidence),
                half_widths(noise, squares(weights), confidence, distinct),
                weighted_widths(noise, squares(weights), confidence),
            ):
                assert missed(noise, weights, float(bar)) <= 1 - confidence
        # The control, a continuous quantile, is what bars were before.
        old = continuous(kind, 0.95) * math.sqrt(variance(noise) * squares(weights))
        control = max(control, missed(noise, weights, old))
    if len(weights) < 4:
        assert control > 0.06


@pytest.mark.parametrize("kind", KINDS)
def test_bars_of_several_scales_at_once_hold_by_the_exact_law(kind: NoiseKind) -> None:
    """The same table of two blocks, each with noise of its own: twelfths of both, added up."""
    control = 0.0
    for scales, weights in itertools.product(
        ((0.4, 2.6), (1.0, 5.5), (3.3, 4.0)), (((12,), (5, 4)), ((9, 7), (12, 12)))
    ):
        parts = [
            Draws(Noise(kind, scale), squares(some), max(some) / 12, len(some))
            for scale, some in zip(scales, weights, strict=True)
        ]
        both = np.convolve(*(law(part.noise, some) for part, some in zip(parts, weights, strict=True)))
        at = np.abs(np.arange(both.size) - both.size // 2) / 12
        for confidence in CONFIDENCES:
            assert both[at > width_of_all(parts, confidence) * (1 + 1e-12)].sum() <= 1 - confidence
        deviation = math.sqrt(sum(variance(part.noise) * part.squares for part in parts))
        control = max(control, float(both[at > 1.9 * deviation].sum()))
        if kind == "gaussian":
            assert width_of_all(parts, 0.95) <= 1.96 * deviation + math.sqrt(sum(part.squares for part in parts))
    assert control > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_sum_of_equal_weights_is_one_lattice(kind: NoiseKind) -> None:
    for scale, terms in itertools.product((0.7, 1.0, 2.0), (10, 40)):
        noise = Noise(kind, scale)
        bar = float(half_widths(noise, float(terms), 0.95, 1.0))
        assert missed(noise, (1,) * terms, bar / 12) <= 0.05  # twelve times as many steps to the row
        assert bar <= float(half_widths(noise, float(terms), 0.95))
    assert half_widths(Noise(kind, 2.0), 400.0, 0.95, 1.0) < 0.93 * half_widths(Noise(kind, 2.0), 400.0, 0.95)


@pytest.mark.parametrize("kind", KINDS)
def test_bars_are_no_wider_where_noise_is_large(kind: NoiseKind) -> None:
    """From a deviation of 50 on by a row or 2 % at most, and beyond that by less and less."""
    for deviation in (50.0, 80.0, 300.0, 1e4, 1e9):
        noise = Noise(kind, deviation / (math.sqrt(2) if kind == "laplace" else 1))
        for confidence in CONFIDENCES[2:]:
            old = continuous(kind, confidence) * deviation
            for spread in (0.1, 1.0, 30.0):
                new = float(half_widths(noise, spread, confidence))
                assert new <= max(
                    1 + math.sqrt(spread) * old, (1 + min(0.02, 2 / deviation + 1e-6)) * math.sqrt(spread) * old
                )
    for scale in (4.0, 20.0):  # a long sum of little noise is large too
        noise = Noise(kind, scale)
        old = continuous(kind, 0.95) * math.sqrt(2500 * variance(noise))
        assert float(half_widths(noise, 2500.0, 0.95, 1.0)) <= 1.02 * old


def test_many_sums_are_answered_as_one_by_one() -> None:
    noise, spreads = Noise("laplace", 1.5), np.array([[0.0, 0.3], [1.0, 40.0]])
    for distinct in (math.inf, 1.0):
        found = half_widths(noise, spreads, 0.95, distinct)
        each = [[float(half_widths(noise, one, 0.95, distinct)) for one in row] for row in spreads]
        assert found.tolist() == each
    assert found[0, 0] == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_bars_of_many_weighted_sums_are_about_those_of_each_and_of_a_normal_law(kind: NoiseKind) -> None:
    """Many sums of Laplace noise share a few bounds."""
    noise, spreads = Noise(kind, 20.0), np.geomspace(0.01, 5_000, 300)
    many = weighted_widths(noise, spreads, 0.95)
    each = np.array([float(weighted_widths(noise, one, 0.95)) for one in spreads])
    assert (many <= 1.1 * each).all()
    normal = 1.96 * np.sqrt(variance(noise) * spreads[spreads > 30])
    assert (normal <= each[spreads > 30]).all()
    assert (each[spreads > 30] <= (1.03 if kind == "gaussian" else 1.2) * normal).all()


def test_what_is_shown_holds_by_the_exact_law() -> None:
    """All noisy answers of a small release with their probabilities: ranges and the curve, rounded and cut."""
    domain, rows = Domain({"x": integer(0, 2)}), 60
    counts = np.array([20, 25, 15])
    reach = np.arange(-7, 8)
    for kind, scale in (("gaussian", 0.85), ("laplace", 0.5)):
        noise = Noise(kind, scale)  # type: ignore[arg-type]
        chances, outside = pmf(noise, reach), np.zeros(4)
        for places in itertools.product(range(reach.size), repeat=3):
            chance = float(np.prod(chances[list(places)]))
            if chance < 1e-7:  # all of them together: below 1e-3
                continue
            values = counts + reach[list(places)]
            tree = Tree("x", (3,), (1,))
            measured = Measured(
                key="k",
                question=tree,
                values=values,
                unit=1,
                noise=noise,
                cost=Loss.of("rho", 1.0),
                receipt=Receipt(1, "s"),
            )
            found = Distribution(measured, domain, rows)
            told = found.counts([0, 1, 0], [0, 1, 1])
            outside[:3] += chance * (np.abs(told.values - [20, 25, 45]) > told.errors)
            outside[3] += chance * bool(np.abs(found.prefixes - [0, 20, 45, 60]).max() > found.half_width)
        assert (outside + 1e-3 <= 0.05).all(), outside


def rejected(covered: NDArray[np.bool_]) -> bool:
    """Whether so few were covered that independent ones, 95 % each, would be with a probability below 1e-9."""
    return bool(binom.cdf(int(covered.sum()), covered.size, 0.95) < 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bins_and_pairs_of_bins_of_a_release_are_covered(kind: NoiseKind) -> None:
    """With noise of scale 1, as the sampler's law has it; the draws have a seed, so that every run finds the same.

    The error of one of 40,000 cells is its own draw less the mean of all, which is beyond 0.1, its 14 deviations, with
    a chance far below 1e-9. A cell is covered then if its draw is within the whole part of its bar, and draws are
    independent: so `rejected` has its chance over fresh draws too.
    """
    noise, side = Noise(kind, 1.0), 200
    support = np.arange(-40, 41)
    chances = pmf(noise, support)
    values = 50 + np.random.default_rng(11).choice(support, side**2, p=chances / chances.sum())
    two = Domain({name: integer(0, side - 1) for name in "ab"})
    one = Domain({"a": integer(0, side**2 - 1)})
    pairs, bins = Product(Tree("a", (side,), (1,)), Tree("b", (side,), (1,))), Tree("a", (side**2,), (1,))
    about = [
        Measured(
            key="k",
            question=asked,
            values=values,
            unit=1,
            noise=noise,
            cost=Loss.of("rho", 1.0),
            receipt=Receipt(1, "s"),
        )
        for asked in (pairs, bins)
    ]
    x, y = np.indices((side, side)).reshape(2, -1)
    at = np.arange(side**2)
    old = math.floor(continuous(kind, 0.95) * math.sqrt(variance(noise)))  # what bars were before: the control
    for told in (
        Rectangles(about[0], two, 50 * side**2).counts((x, y), (x, y)),
        Distribution(about[1], one, 50 * side**2).counts(at, at),
    ):
        assert not rejected(np.abs(told.values - 50) <= told.errors)
    assert rejected(np.abs(values - 50) <= old)


def test_two_different_weights_stand_for_a_single_level() -> None:
    decoder = Decoder(Tree("x", (9,), (3,)), 9)
    answers = np.eye(9)
    weights = np.diff(decoder.prefixes(answers, 0.0)[:, [2, 6]], axis=1).ravel()  # of the leaves 2 .. 5
    assert np.unique(weights.round(12)).size == 2
    assert sum(np.unique(weights.round(12)) ** 2) <= decoder.distinct == 1 / 9
    assert float(weights @ weights) == pytest.approx(float(decoder.interval_variance(2, 6)))
    assert math.isinf(Decoder(Tree("x", (3, 3), (1, 1)), 9).distinct)


def less_peaked(scale: float, added: float) -> bool:
    """Whether |Z + U| is stochastically smaller than |N(0, scale² + added)|, Z discrete Gaussian, U uniform.

    On each cell (m - 1/2, m + 1/2) the left side's chance of being larger falls linearly, and the right side's is
    convex: the difference is least where slopes agree. Beyond the cells both are 0 to any float.
    """
    v, m = scale**2 + added, np.arange(0, math.ceil(36 * scale) + 3)
    chances = pmf(Noise("gaussian", scale), m)
    beyond = 2 * (np.cumsum(chances[::-1])[::-1] - chances)  # Pr[|Z| > m]
    with np.errstate(divide="ignore"):
        least = np.sqrt(np.maximum(0.0, -2 * v * np.log(chances * math.sqrt(2 * math.pi * v))))
    least = np.clip(least, np.maximum(m - 0.5, 0), m + 0.5)
    left, right = beyond + 2 * chances * (m + 0.5 - least), erfc(least / math.sqrt(2 * v))
    told = left > 1e-280
    return bool((left[told] <= right[told] * (1 + 1e-12)).all())


def test_a_discrete_gaussian_draw_is_more_peaked_than_a_slightly_wider_normal_one() -> None:
    scales = np.geomspace(0.05, 200, 1200).tolist()
    assert all(less_peaked(scale, 0.2) for scale in scales)
    assert all(less_peaked(scale, 0.25) for scale in scales)
    assert not any(less_peaked(scale, 0.1) for scale in scales if scale > 0.5)  # the control


def test_a_discrete_laplace_draw_is_more_peaked_than_a_slightly_wider_one() -> None:
    x = np.linspace(0, 40, 8001)
    for scale in (0.05, 0.3, 1.0, 2.5, 10.0):
        m = np.rint(x)
        left = np.exp(-m / scale) * (1 - 2 * (x - m) * math.tanh(1 / (2 * scale)))
        right = np.exp(-x * 2 * math.tanh(1 / (2 * scale)))
        assert (left <= right * (1 + 1e-12)).all()
        chances = pmf(Noise("laplace", scale), np.arange(0, 2000))
        tails = [float(2 * chances[k + 1 :].sum() + chances[k]) for k in range(5)]  # Pr[|Z + U| > k]
        np.testing.assert_allclose(tails, np.exp(-np.arange(5) / scale), rtol=1e-9)
        assert not (left <= np.exp(-x / scale) * (1 + 1e-12)).all()  # the control: the same scale is too narrow


def most(g: Floats, y: Floats, survival: Floats, excess: Floats) -> float:
    """A bound on E g(Y) for all Y that are smaller in convex order than a V with these Pr[V > y] and E max(0, V - y).

    g rises, convex up to some point and concave beyond. Up to a y in the convex part G is g, then the steepest line to
    any later point: convex, nowhere below g, and so E g(Y) <= E G(Y) <= E G(V). Cells are taken at their upper ends.
    """
    slopes = np.diff(g) / np.diff(y)
    turn = int(slopes.argmax())
    assert (np.diff(slopes[: turn + 1]) >= -1e-5 * slopes[:turn]).all()
    below = np.append(0.0, np.cumsum(g[1:] * -np.diff(survival)))
    steepest = [float(((g[k + 1 :] - g[k]) / (y[k + 1 :] - y[k])).max()) for k in range(0, turn + 1, 8)]
    bounds = below[: turn + 1 : 8] + survival[: turn + 1 : 8] * g[: turn + 1 : 8] + steepest * excess[: turn + 1 : 8]
    return float(bounds.min())


def mixed(y: Floats, rho: float, h: float) -> Floats:
    """Pr[|√rho L + √(2y) N| > h], L a Laplace draw of scale 1 and N a normal one."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        a, b = h / (2 * np.sqrt(y)), np.sqrt(y / rho)
        found = erfc(a) + (np.exp(b * b - h / math.sqrt(rho)) * erfc(b - a) - np.exp(-a * a) * erfcx(a + b)) / 2
    return np.where(y == 0, math.exp(-h / math.sqrt(rho)), found)


@pytest.mark.parametrize("miss", [0.05, 0.04, 0.03, 0.02, 0.01, 0.005, 0.001, 0.0001])
def test_no_sum_of_laplace_draws_is_beyond_one_draw_from_95_percent_on(miss: float) -> None:
    """Weights with squares l that add up to 1: a sum is N √(2Q), Q = Σ l V, V exponential with mean 1.

    One l, rho, may be 1/2 or more. Given its V, the others' part of Q is smaller in convex order than (1 - rho) V.
    Or all are at most 1/2: then Q is smaller in that order than the mean of two V.
    """
    h = -math.log(miss)
    assert h == pytest.approx(math.sqrt(2) * continuous("laplace", 1 - miss))
    y = np.linspace(0, 1, 3000) ** 3 * 40
    for rho in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99, 0.995, 0.999):
        rest = 1 - rho
        survival = np.exp(-y / rest)
        assert most(mixed(y, rho, h), y, survival, rest * survival) < miss
        # The control: the normal bar is too narrow, for one draw already.
        assert mixed(np.zeros(1), 1.0, math.sqrt(2) * continuous("gaussian", 1 - miss))[0] > 1.2 * miss
    with np.errstate(divide="ignore"):
        normal = erfc(h / (2 * np.sqrt(y)))
    survival = gammaincc(2, 2 * y)
    assert most(normal, y, survival, gammaincc(3, 2 * y) - y * survival) < miss


def test_continuous_bars_are_normal_or_laplace_whichever_is_wider() -> None:
    assert continuous("gaussian", 0.95) == pytest.approx(1.959964, abs=1e-5)
    assert continuous("laplace", 0.95) == pytest.approx(math.log(20) / math.sqrt(2))
    assert continuous("laplace", 0.5) == pytest.approx(continuous("gaussian", 0.5))
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="confidence"):
            continuous("laplace", wrong)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_continuous_bars_hold_for_sums_of_laplace_draws(confidence: float) -> None:
    # Weighted sums of 1 to 40 draws. 100,000 runs each: a bar that is right fails with a chance below 1e-9 (6 sigma).
    chance = np.random.default_rng(8)
    runs = 100_000
    slack = 6 * math.sqrt(confidence * (1 - confidence) / runs)
    for terms in (1, 2, 3, 5, 10, 40):
        weights = chance.random(terms) ** 3 + 0.01
        drawn = sum(w * chance.laplace(size=runs) for w in weights)
        deviation = math.sqrt(2 * float(weights @ weights))
        covered = float(np.mean(np.abs(drawn) <= continuous("laplace", confidence) * deviation))
        assert covered >= confidence - slack
        too_narrow = float(np.mean(np.abs(drawn) <= 0.9 * continuous("gaussian", confidence) * deviation))
        assert too_narrow < covered  # the control is narrower, and for high confidences misses
    if confidence >= 0.95:
        assert too_narrow < confidence - slack
