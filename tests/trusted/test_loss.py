"""Prices and conversions of privacy loss, against exact arithmetic, other people's code and the classics."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as reference  # type: ignore[import-untyped]
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from tacit.errors import InvalidBudget
from tacit.exact.bounds import delta_from, rho_from, root_above
from tacit.exact.price import Sensitivity, noise_for, price, total
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.noise_law import Noise
from tacit.release.epsilon import epsilon_from

COUNT, PARTITION = Sensitivity(l1=1, l2_squared=1), Sensitivity(l1=2, l2_squared=2)
EPSILONS = (1e-9, 1e-4, 0.1, 1.0, 10.0, 1000.0)
DELTAS = (1e-100, 1e-30, 1e-9, 1e-3, 0.1, 0.5)

measures: st.SearchStrategy[Measure] = st.sampled_from(("epsilon", "rho", "gdp"))
sensitivities = st.sampled_from((COUNT, PARTITION, Sensitivity(3, 5), Sensitivity(40, 80), Sensitivity(7, 49)))
units = st.sampled_from((1, 3, 2**20))


# Prices


def test_prices_by_hand() -> None:
    # Catches l1 for l2, a forgotten square of the unit, a forgotten half, rounding down.
    assert price(Noise("laplace", 4.0), PARTITION, 1, "epsilon") == Loss.of("epsilon", 0.5)
    assert price(Noise("laplace", 4.0), PARTITION, 8, "epsilon") == Loss.of("epsilon", 4.0)
    assert price(Noise("laplace", 4.0), PARTITION, 1, "rho") == Loss.of("rho", 0.125)
    assert price(Noise("gaussian", 4.0), PARTITION, 1, "rho") == Loss.of("rho", 0.0625)
    assert price(Noise("gaussian", 4.0), PARTITION, 8, "rho") == Loss.of("rho", 4.0)
    assert price(Noise("gaussian", 4.0), PARTITION, 1, "gdp") == Loss.of("gdp", Fraction(10, 159))  # 1/(16 - 1/10)
    assert price(Noise("gaussian", 0.25), COUNT, 1, "gdp") == Loss.of("gdp", 32.0)  # 4/(2 scale²)
    assert price(Noise("laplace", 4.0), PARTITION, 1, "gdp") == Loss.of("gdp", Fraction(355, 4 * 452))
    assert price(Noise("laplace", 3.0), COUNT, 1, "epsilon").atoms == 333333333334  # rounded up
    assert price(Noise("laplace", 1.0), Sensitivity(0, 0), 1, "epsilon").atoms == 0
    with pytest.raises(ValueError, match="pure"):
        price(Noise("gaussian", 4.0), COUNT, 1, "epsilon")


def test_the_price_is_that_of_the_float_in_use_not_of_its_decimal() -> None:
    # 0.1 as a float is a little above 1/10, so its noise is a little cheaper than 10: ten exactly after rounding up.
    # A float just below 1/10 costs more than 10 and must be charged for it.
    assert price(Noise("laplace", 0.1), COUNT, 1, "epsilon").exact == 10
    assert price(Noise("laplace", math.nextafter(0.1, 0)), COUNT, 1, "epsilon").exact > 10


@given(measure=measures, atoms=st.integers(1, 10**15), sensitivity=sensitivities, unit=units)
def test_noise_for_a_loss_costs_at_most_that_and_wastes_nothing(
    measure: Measure, atoms: int, sensitivity: Sensitivity, unit: int
) -> None:
    # Catches rounding to the nearest float, l1 used for gaussian noise, and generous scales.
    loss = Loss(measure, atoms)
    try:
        noise = noise_for(loss, sensitivity, unit)
    except InvalidBudget:
        assume(False)
    charged = price(noise, sensitivity, unit, measure)
    assert charged <= loss
    assert charged.atoms > atoms * (1 - 1e-9) - 1
    less = Noise(noise.kind, math.nextafter(noise.scale, 0))  # the least scale: one float less is too dear
    scale = Fraction(less.scale)
    square = max(scale**2 - Fraction(1, 10), scale**2 / 4) if measure == "gdp" else scale**2
    exact = sensitivity.l1 * unit / scale if measure == "epsilon" else sensitivity.l2_squared * unit**2 / square / 2
    assert exact > loss.exact


@given(measure=measures, atoms=st.integers(1, 10**15), sensitivity=sensitivities)
def test_planted_bugs_would_fail_that_test(measure: Measure, atoms: int, sensitivity: Sensitivity) -> None:
    loss = Loss(measure, atoms)
    try:
        noise = noise_for(loss, sensitivity, 2**20)
    except InvalidBudget:
        assume(False)
    assume(atoms > 100)
    # "1 % less noise", "noise not scaled to the grid", "noise for one count used for a whole table"
    assert not price(Noise(noise.kind, noise.scale * 0.99), sensitivity, 2**20, measure) <= loss
    assert not price(noise_for(loss, sensitivity, 1), sensitivity, 2**20, measure) <= loss
    if sensitivity != COUNT:
        assert not price(noise_for(loss, COUNT, 2**20), sensitivity, 2**20, measure) <= loss


def test_the_kind_follows_the_measure_and_nonsense_is_refused() -> None:
    assert noise_for(Loss.of("epsilon", 0.5), COUNT, 1) == Noise("laplace", 2.0)
    assert noise_for(Loss.of("rho", 0.5), COUNT, 1) == Noise("gaussian", 1.0)
    assert noise_for(Loss.of("gdp", 8.0), COUNT, 1) == Noise("gaussian", root_above(Fraction(13, 80)))  # 1/16 + 1/10
    assert noise_for(Loss.of("gdp", 32.0), COUNT, 1) == Noise("gaussian", 0.25)  # 4/64 is less than 1/64 + 1/10
    for loss in (Loss("epsilon", 0), Loss("rho", -1), Loss("epsilon", 1)):
        with pytest.raises(InvalidBudget):
            noise_for(loss, PARTITION, 2**20)
    with pytest.raises(ValueError, match="no noise"):
        noise_for(Loss("rho", 1), Sensitivity(0, 0), 1)
    for l1, l2_squared in [(1, 2), (0, 1), (1, 0), (-1, 1), (2, -1)]:
        with pytest.raises(ValueError, match="no vector"):
            Sensitivity(l1, l2_squared)


# Conversions


def log_delta_by_minimising(rho: float, epsilon: float) -> float:
    """The formula of Canonne, Kamath & Steinke 2020, corollary 13, as printed, minimised over log(a - 1)."""

    def printed(x: float) -> float:
        u = math.exp(x)  # a - 1
        return u * ((1 + u) * rho - epsilon) - x - (1 + u) * math.log1p(1 / u)

    grid = np.linspace(-30, 60, 1801)
    best = grid[int(np.argmin([printed(x) for x in grid]))]
    found = minimize_scalar(printed, bounds=(best - 0.1, best + 0.1), method="bounded", options={"xatol": 1e-12})
    return min(0.0, float(found.fun))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_the_largest_that_the_formula_allows(epsilon: float, delta: float) -> None:
    # Catches a transcription slip, an optimiser that gives up early, and overflow at the corners.
    rho = rho_from(epsilon, delta)
    assert delta_from(rho, epsilon) <= delta
    assert log_delta_by_minimising(rho, epsilon) <= math.log(delta) + 1e-9
    assert log_delta_by_minimising(rho * (1 + 1e-6), epsilon) > math.log(delta)
    assert epsilon_from(rho, delta) == pytest.approx(epsilon, rel=1e-6, abs=1e-15)
    assert delta_from(rho, epsilon_from(rho, delta)) <= delta


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-9, 1e-3])
def test_epsilon_agrees_with_googles_accountant(epsilon: float, delta: float) -> None:
    rho = rho_from(epsilon, delta)
    centre = 1 + 10 ** np.linspace(-2, 6, 40_001)
    theirs, _ = reference.compute_epsilon(centre, centre * rho, delta)
    assert epsilon <= theirs * (1 + 1e-9)
    assert epsilon == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_between_the_classic_bound_and_the_truth_for_the_gaussian(epsilon: float, delta: float) -> None:
    # Catches a conversion that is worse than the classic one, or better than possible.
    rho = rho_from(epsilon, delta)
    log = -math.log(delta)
    assert rho >= (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2 * (1 - 1e-9)
    assert epsilon_from(rho, delta) <= (rho + 2 * math.sqrt(rho * log)) * (1 + 1e-9)
    mu = math.sqrt(2 * rho)  # N(0, 1) against N(mu, 1) is rho-zCDP, and this is its exact delta
    first, second = float(log_ndtr(mu / 2 - epsilon / mu)), float(log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
    exact = math.exp(first) * -math.expm1(min(0.0, second - first))
    assert exact <= delta_from(rho, epsilon) * (1 + 1e-9)


@given(st.floats(1e-9, 1000), st.floats(1e-9, 1000), st.floats(1e-100, 0.5))
def test_conversions_are_monotone_and_safe(epsilon: float, other: float, delta: float) -> None:
    low, high = sorted((epsilon, other))
    assert rho_from(low, delta) <= rho_from(high, delta) * (1 + 1e-12)
    assert delta_from(low, epsilon) <= delta_from(high, epsilon) * (1 + 1e-9)
    assert delta_from(rho_from(epsilon, delta), epsilon) <= delta


def test_edges_of_the_conversions() -> None:
    assert 0 < delta_from(1e-9, 1000.0) < 1e-300  # never a delta of 0 for what is not pure
    assert delta_from(1e6, 0.1) == 1.0
    assert delta_from(0.0, 0.0) < 1e-300
    assert epsilon_from(0.0, 1e-9) == 0.0


# Budgets


def test_totals_round_down() -> None:
    # Catches a total rounded up, or taken from the binary float instead of the decimal the owner wrote.
    assert total(Budget(epsilon=0.1, delta=0)) == Loss("epsilon", 10**11)
    assert total(Budget(epsilon=1.0, delta=1e-9)) == Loss("gdp", 16557415245)
    assert total(Budget(epsilon=1.0, delta=1e-9), "rho") == Loss("rho", 14973057673)
    for epsilon in (0.01, 0.3, 7.0):
        for delta in (1e-12, 1e-5):
            loss = total(Budget(epsilon=epsilon, delta=delta), "rho")
            assert delta_from(float(loss), epsilon) <= delta
            assert delta_from(float(loss + Loss("rho", 2)), epsilon) > delta


def test_a_budget_too_small_to_count_is_refused() -> None:
    with pytest.raises(InvalidBudget, match="smallest amount"):
        total(Budget(epsilon=1e-6, delta=1e-9))
    assert total(Budget(epsilon=1e-9, delta=0)) == Loss("epsilon", 1000)
    measures: tuple[Measure, ...] = ("rho", "gdp")
    for measure in measures:  # what is pure has no other total, and what is not has no pure one
        with pytest.raises(InvalidBudget, match="not counted"):
            total(Budget(epsilon=1.0, delta=0), measure)
    with pytest.raises(InvalidBudget, match="not counted"):
        total(Budget(epsilon=1.0, delta=1e-9), "epsilon")
