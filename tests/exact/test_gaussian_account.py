"""Prices in gdp, exactly: every mechanism against the curve of the Gaussian that it is charged as. No randomness.

A mechanism is charged `half` = mu²/2. It is mu-GDP if for every neighbour and every t the hockey-stick divergence
sum of max(0, p - e^t q) is at most that of N(mu, 1) from N(0, 1): docs/understand/privacy.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from test_noise_pmf import CASES, Counts, neighbours
from test_selection import exponential_mechanism
from test_sparse_vector import Variant, geometric_tail, one_sided, transcripts

from tacit.exact.gaussian import half_from, within
from tacit.exact.price import Sensitivity, choice_price, choice_scale, gate_price, gate_scales, noise_for, price, total
from tacit.model.budget import ATOMS, PURE, Budget, Loss
from tacit.model.noise_law import Noise, pmf

COUNT = Sensitivity(1, 1)
TINY = 1e-12  # of floats, in a divergence
Floats = NDArray[np.float64]


def curve(half: float, t: Floats) -> Floats:
    """The hockey-stick divergence of N(mu, 1) from N(0, 1) at e^t, mu² = 2 half."""
    mu = math.sqrt(2 * half)
    return np.asarray(ndtr(mu / 2 - t / mu) - np.exp(t) * ndtr(-mu / 2 - t / mu))


def excess(p: Floats, q: Floats, half: float) -> float:
    """By how much the worst divergence of two laws, at any e^t, is above the curve of `half`. Both directions.

    At e^t the best set to look at is where p > e^t q: so outcomes are sorted by log-ratio and added up from above.
    """
    assert min(p.min(), q.min()) > 0
    worst = -1.0
    for one, other in ((p, q), (q, p)):
        logs = np.log(one / other)
        order = np.argsort(logs)[::-1]
        t = np.concatenate([np.linspace(-3, 3, 1201), logs[order[:: max(1, order.size // 1000)]]])
        above = np.searchsorted(-logs[order], -t)  # so many outcomes have a log-ratio above t
        first, second = (np.append(0.0, np.cumsum(law[order]))[above] for law in (one, other))
        worst = max(worst, float((first - np.exp(t) * second - curve(half, t)).max()))
    return worst


# Whole Gaussian noise


@cache
def widest_step(scale: float) -> mp.mpf:
    """The largest q(k + 1) - q(k) over whole k, q(k) the normal quantile of Pr[Z < k]; to 30 digits, far into the tail.

    Noise of this law that is shifted by d is mu-GDP for all d at once if and only if no step is above mu/d.
    """
    with mp.workdps(30):
        far = math.ceil(30 * scale) + 6
        weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)) for k in range(2 * far)]
        whole = 2 * mp.fsum(weights) - 1
        tails, beyond = dict[int, mp.mpf](), mp.mpf(0)
        for k in reversed(range(1, 2 * far)):
            beyond += weights[k]
            tails[k] = beyond / whole
        quantiles = [_upper_quantile(tails[k]) for k in range(1, far)]
        return max(2 * quantiles[0], *(b - a for a, b in pairwise(quantiles)))


def _upper_quantile(p: mp.mpf) -> mp.mpf:
    """x with Pr[N >= x] = p <= 1/2, by Newton's steps on the logarithm, which is concave."""
    x, root = mp.sqrt(-2 * mp.log(2 * p)) if p < 0.5 else mp.mpf(0), mp.sqrt(2)
    for _ in range(60):
        tail = mp.erfc(x / root) / 2
        step = mp.log(tail / p) * tail / mp.npdf(x)
        x += step
        if abs(step) < mp.mpf("1e-26"):
            break
    return x


SCALES = (0.02, 0.1, 0.25, 0.3, 0.365, 0.37, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0, 1.3, 2.0, 4.0, 8.25, 17.0)


@pytest.mark.parametrize("scale", SCALES)
def test_whole_gaussian_noise_is_worth_its_price(scale: float) -> None:
    half = price(Noise("gaussian", scale), COUNT, 1, "gdp").exact
    step = widest_step(scale)
    assert step**2 <= mp.mpf(half.numerator) / half.denominator * 2
    if scale >= 1:  # and the price is tight: a check that sees nothing would fail here
        assert step**2 >= 2 * float(half) * 0.98
    # Planted: the price of continuous noise, and a correction of a thirteenth.
    assert step**2 > 2 * float(price(Noise("gaussian", scale), COUNT, 1, "rho").exact)
    if scale >= 0.5:
        assert step**2 > 1 / (Fraction(scale) ** 2 - Fraction(1, 13))
    if scale < 0.1:
        assert step**2 > 3 / Fraction(scale) ** 2  # planted: a third of the variance where a quarter is right


def test_the_last_step_of_the_proof() -> None:
    # H(D) = 2 log(Pr[|N| <= r] / Pr[r <= N <= 3 r]), r = sqrt(D)/2, rises from D = 2 on, so between two points of the
    # grid 1/H - 1/D is at most 1/H(lower) - 1/upper. Below 2 and above 30 the proof has closed forms, checked too.
    def rise(d: mp.mpf) -> mp.mpf:
        r = mp.sqrt(d / 8)  # over sqrt(2)
        return 2 * mp.log(2 * mp.erf(r) / (mp.erfc(r) - mp.erfc(3 * r)))

    with mp.workdps(30):
        grid = [mp.mpf(i) / 50 for i in range(100, 1501)]
        rises = [rise(d) for d in grid]
        assert all(a < b for a, b in pairwise(rises))
        assert max(1 / h - 1 / d for h, d in zip(rises, grid[1:], strict=False)) <= mp.mpf("0.1")
        for i in range(1, 101):
            d = mp.mpf(i) / 50
            assert d - d**2 / 12 <= rise(d) <= d
            assert 1 / rise(d) - 1 / d <= 1 / (12 - d) <= mp.mpf("0.1")
        assert all(rise(mp.mpf(d)) >= mp.mpf(d) / 4 for d in (0.01, 1, 5, 30, 100, 1000))


@pytest.mark.parametrize(("question", "sensitivity", "unit"), CASES)
@pytest.mark.parametrize("loss", [0.005, 0.02, 0.5, 4.0])
def test_gaussian_answers_over_all_neighbours(
    question: object, sensitivity: Sensitivity, unit: int, loss: float
) -> None:
    # One count, and histograms of three cells, each law the product of its cells' laws.
    assert callable(question)
    noise = noise_for(Loss.of("gdp", loss), sensitivity, unit)
    charged = float(price(noise, sensitivity, unit, "gdp"))
    assert charged <= loss
    pairs = set(neighbours(question))
    moves = {tuple(sorted((b - a) * unit for a, b in zip(x, y, strict=True))) for x, y in pairs}
    found = max(excess(*_laws(noise, move), charged) for move in moves if any(move))
    assert -0.05 < found <= TINY
    # Planted: noise for one count used for a table, or not scaled to the grid; and a tenth less noise.
    less = noise.scale / max(2, unit) if unit > 1 else noise.scale * 0.9
    assert max(excess(*_laws(Noise("gaussian", less), move), charged) for move in moves if any(move)) > 1e-6


def _laws(noise: Noise, move: Counts) -> tuple[Floats, Floats]:
    """The law of noisy answers, and of those that are moved; only the cells that move, since the others say nothing."""
    reach = math.ceil(9 * noise.scale) + max(map(abs, move))
    z = np.arange(-reach, reach + 1)
    here, there = np.ones(1), np.ones(1)
    for step in filter(None, move):
        here, there = (np.multiply.outer(law, pmf(noise, z - by)).ravel() for law, by in ((here, 0), (there, step)))
    return here, there


# Pure pieces


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_a_pure_piece_is_worth_its_price(epsilon: float) -> None:
    # Randomised response, the worst of all epsilon-DP mechanisms; then what has bounded range 2 epsilon, every offset.
    half = price(Noise("laplace", 1 / epsilon), COUNT, 1, "gdp").exact
    with mp.workdps(30):
        mu = mp.sqrt(2 * mp.mpf(half.numerator) / half.denominator)
        worst = mp.mpf(0)
        for i in range(41):
            t = mp.mpf(2 * epsilon) * i / 40  # log-ratios t and t - 2 epsilon, of the two outcomes
            q = mp.expm1(2 * epsilon - t) / mp.expm1(2 * epsilon) if i < 40 else mp.mpf(0)
            p = q * mp.exp(t)
            if 0 < q < p < 1:
                worst = max(worst, _quantile(p) - _quantile(q))
        assert worst <= mu
        if epsilon <= 0.1:
            assert worst >= 0.999 * mu
            assert worst > epsilon * mp.mpf("1.2")  # planted: epsilon²/2, as in rho, has mu = epsilon
    assert choice_price(1 / epsilon, 1, "gdp").exact == half  # 2 move/scale = 2 epsilon


def _quantile(p: mp.mpf) -> mp.mpf:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def test_pi_is_rounded_up() -> None:
    used = PURE["gdp"]
    assert mp.pi / 4 < mp.mpf(used.numerator) / used.denominator < mp.pi / 4 * (1 + mp.mpf(10) ** -7)


@pytest.mark.parametrize("loss", [0.01, 0.3, 2.0])
def test_a_choice_over_all_neighbours(loss: float) -> None:
    scale = choice_scale(Loss.of("gdp", loss), 1)
    charged = float(choice_price(scale, 1, "gdp"))
    assert 0.99 * loss < charged <= loss
    found, cheap = -1.0, -1.0
    for scores in product((0, 1, 4), repeat=3):
        here = np.array(exponential_mechanism(scores, scale))
        for move in product((-1, 0, 1), repeat=3):
            there = np.array(exponential_mechanism(tuple(s + m for s, m in zip(scores, move, strict=True)), scale))
            found = max(found, excess(here, there, charged))
            cheap = max(cheap, excess(here, there, charged / 1.5))
    assert found <= TINY
    assert cheap > 1e-3  # planted: the factor pi/2 left out, nearly


@pytest.mark.parametrize("loss", [0.05, 0.5])
def test_a_gate_over_all_transcripts(loss: float) -> None:
    # Three lenses, each of which moves up, down or not at all; every transcript, one outcome each.
    first, second = gate_scales(Loss.of("gdp", loss), 1)
    charged = float(gate_price(first, second, 1, "gdp"))
    assert 0.99 * loss < charged <= loss
    gate = Variant(one_sided(first), geometric_tail(second), 1)
    found = -1.0
    said = [(0,) * 3, *(((0,) * k + (1,)) for k in range(3))]
    assert {*said} == {
        one[: one.index(1) + 1] if 1 in one else one
        for n in range(1, 4)
        for one in transcripts(n, 1)
        if 1 in one or n == 3
    }
    for values in product((-2, 1), repeat=3):
        here = np.array([gate.chance(values[: len(one)], one) for one in said])
        for move in product((-1, 1), repeat=3):
            moved = tuple(v + m for v, m in zip(values, move, strict=True))
            there = np.array([gate.chance(moved[: len(one)], one) for one in said])
            assert here.sum() == pytest.approx(1, abs=1e-9)
            found = max(found, excess(here, there, charged))
    assert found <= TINY


# The filter, and the total


def test_choosing_the_next_by_what_was_said_does_not_help() -> None:
    # The first step is randomised response. What follows depends on what it said: all that is left at once by another,
    # or whole Gaussian noise, or two smaller ones; every combination. The whole is within the curve of the total.
    whole, start = 0.4, 0.1
    rest = Loss.of("gdp", whole - start)
    first = _response(start)
    gaussian = _laws(noise_for(rest, COUNT, 1), (1,))
    half = _response(float(rest.split(2)))
    twice = tuple(np.multiply.outer(a, b).ravel() for a, b in zip(half, half, strict=True))
    follow = [_response(float(rest)), gaussian, twice]
    found, uncounted = -1.0, -1.0
    for after in product(follow, repeat=2):
        laws = [np.concatenate([first[side][said] * after[said][side] for said in range(2)]) for side in range(2)]
        found = max(found, excess(laws[0], laws[1], whole))
        uncounted = max(uncounted, excess(laws[0], laws[1], float(rest)))
    assert found <= TINY
    assert uncounted > 1e-3  # planted: the first step left out of the sum


def _response(loss: float) -> tuple[Floats, Floats]:
    epsilon = math.sqrt(loss * 452 / 355)
    right = 1 / (1 + math.exp(-epsilon))
    return np.array([right, 1 - right]), np.array([1 - right, right])


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.001, 1e-6), (0.1, 1e-9), (0.3, 1e-6), (1.0, 1e-9), (1.0, 1e-30), (3.0, 0.5), (10.0, 1e-12), (50.0, 1e-100)],
)
def test_the_total_is_the_largest_within_the_curve(epsilon: float, delta: float) -> None:
    loss = total(Budget(epsilon=epsilon, delta=delta))
    with mp.workdps(120):
        here, next_ = (_delta(mp.mpf(atoms) / ATOMS, epsilon) for atoms in (loss.atoms, loss.atoms + 1))
        assert here <= mp.mpf(repr(delta)) < next_
    assert within(loss.exact, epsilon, delta)
    assert not within(loss.exact + Fraction(1, ATOMS), epsilon, delta)
    assert total(Budget(epsilon=epsilon, delta=delta), "rho").atoms < loss.atoms


def _delta(half: mp.mpf, epsilon: float) -> mp.mpf:
    """As Balle & Wang print it."""
    mu, e, root = mp.sqrt(2 * half), mp.mpf(repr(epsilon)), mp.sqrt(2)
    return (mp.erfc((e / mu - mu / 2) / root) - mp.exp(e) * mp.erfc((e / mu + mu / 2) / root)) / 2


def test_the_curve_is_also_an_integral() -> None:
    # An independent derivation: its derivative in mu is the normal density at epsilon/mu - mu/2.
    with mp.workdps(30):
        for epsilon, half in ((0.5, 0.05), (1.0, 0.5), (3.0, 2.0)):
            found = mp.quad(
                lambda m, e=epsilon: mp.npdf(e / m - m / 2), mp.linspace(mp.sqrt(2 * half) / 20, mp.sqrt(2 * half), 12)
            )
            assert mp.almosteq(found, _delta(mp.mpf(half), epsilon), rel_eps=mp.mpf("1e-9"))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 1000.0])
@pytest.mark.parametrize("delta", [1e-100, 1e-9, 0.5])
def test_edges_of_the_curve(epsilon: float, delta: float) -> None:
    # Catches digits lost to e^epsilon, and steps that run away from a far start.
    atoms = round(half_from(epsilon, delta) * ATOMS)
    with mp.workdps(600 if epsilon > 100 else 130):
        below, above = (_delta(mp.mpf(n) / ATOMS, epsilon) if n else mp.mpf(0) for n in (atoms, atoms + 1))
        assert below <= mp.mpf(repr(delta)) < above
