"""Noise against its price, on the probability mass function itself, over all neighbours of small databases.

No randomness: the log ratio of probabilities for pure epsilon, the Rényi divergence of many orders for rho.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact.price import Sensitivity, noise_for, price
from tacit.model.budget import Loss
from tacit.model.noise_law import Noise, pmf

COUNT, PARTITION = Sensitivity(l1=1, l2_squared=1), Sensitivity(l1=2, l2_squared=2)
ROWS, CELLS = 3, 3
ORDERS = (1.01, 1.1, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 33.3, 100.0, 500.0)
SLACK = 1e-9

Counts = tuple[int, ...]
LogPmf = Callable[[NDArray[np.int64]], NDArray[np.float64]]  # of the noise on one entry
Mechanism = Callable[[Counts], LogPmf]  # the noise may depend on the data only in a planted bug


def histogram(rows: tuple[int, ...]) -> Counts:
    return tuple(rows.count(cell) for cell in range(CELLS))


def count(rows: tuple[int, ...]) -> Counts:
    return (rows.count(0),)


def neighbours(question: Callable[[tuple[int, ...]], Counts]) -> Iterator[tuple[Counts, Counts]]:
    """The answers on every database of three rows over three cells, and on each with one row replaced."""
    for rows in itertools.product(range(CELLS), repeat=ROWS):
        for i, cell in itertools.product(range(ROWS), range(CELLS)):
            yield question(rows), question((*rows[:i], cell, *rows[i + 1 :]))


def log_pmf(noise: Noise) -> LogPmf:
    """The log of the law, from its definition, because `pmf` itself underflows where high orders look."""

    def law(z: NDArray[np.int64]) -> NDArray[np.float64]:
        steps = np.abs(z.astype(np.float64)) / noise.scale
        power = -steps if noise.kind == "laplace" else -0.5 * steps**2
        return power + math.log(float(pmf(noise, 0)))

    near = np.arange(-20, 21, dtype=np.int64)
    np.testing.assert_allclose(np.exp(law(near)), pmf(noise, near), rtol=1e-9, atol=1e-300)
    return law


def worst_log_ratio(mechanism: Mechanism, question: Callable[..., Counts], unit: int = 1) -> float:
    """The largest log(Pr[output | x] / Pr[output | x']) over all neighbours and all outputs.

    Entries are independent, so the largest ratio of the vector is the sum of the largest ratios of its entries.
    """
    z = np.arange(-60 * unit, 60 * unit, dtype=np.int64)
    return max(
        sum(float((mechanism(x)(z - a * unit) - mechanism(y)(z - b * unit)).max()) for a, b in zip(x, y, strict=True))
        for x, y in set(neighbours(question))
    )


def worst_rho(mechanism: Mechanism, question: Callable[..., Counts], unit: int = 1, reach: int = 60) -> float:
    """The largest D_a(output | x, output | x') / a over all neighbours and the orders above.

    The terms p^a q^(1-a) of a Gaussian are centred at most (a-1) unit away from the data with the noise's own spread;
    beyond `reach` more than that, they are below exp(-800) of the sum for every scale used here.
    """
    worst = 0.0
    for order in ORDERS:
        far = math.ceil(order * unit * ROWS) + reach * unit
        z = np.arange(-far, far, dtype=np.int64)
        for x, y in set(neighbours(question)):
            divergence = 0.0
            for a, b in zip(x, y, strict=True):
                terms = order * mechanism(x)(z - a * unit) + (1 - order) * mechanism(y)(z - b * unit)
                divergence += float(np.logaddexp.reduce(terms)) / (order - 1)
            worst = max(worst, divergence / order)
    return worst


def fixed(noise: Noise) -> Mechanism:
    law = log_pmf(noise)
    return lambda counts: law


CASES = [(count, COUNT, 1), (histogram, PARTITION, 1), (histogram, PARTITION, 4)]


@pytest.mark.parametrize(("question", "sensitivity", "unit"), CASES)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
def test_laplace_noise_is_worth_its_epsilon(
    question: Callable[..., Counts], sensitivity: Sensitivity, unit: int, epsilon: float
) -> None:
    loss = Loss.of("epsilon", epsilon)
    noise = noise_for(loss, sensitivity, unit)
    worst = worst_log_ratio(fixed(noise), question, unit)
    assert worst <= float(price(noise, sensitivity, unit, "epsilon")) + SLACK <= epsilon + 2 * SLACK
    assert worst >= epsilon - SLACK  # and the price is tight: a checker that sees nothing would fail here


@pytest.mark.parametrize(("question", "sensitivity", "unit"), CASES)
@pytest.mark.parametrize("rho", [0.02, 0.5, 4.0])
def test_gaussian_noise_is_worth_its_rho(
    question: Callable[..., Counts], sensitivity: Sensitivity, unit: int, rho: float
) -> None:
    noise = noise_for(Loss.of("rho", rho), sensitivity, unit)
    worst = worst_rho(fixed(noise), question, unit, reach=300)
    assert worst <= float(price(noise, sensitivity, unit, "rho")) + SLACK <= rho + 2 * SLACK
    assert worst >= rho - SLACK  # tight at whole orders


@pytest.mark.parametrize(("question", "sensitivity", "unit"), CASES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_laplace_noise_is_worth_its_rho(
    question: Callable[..., Counts], sensitivity: Sensitivity, unit: int, epsilon: float
) -> None:
    noise = noise_for(Loss.of("epsilon", epsilon), sensitivity, unit)
    assert worst_rho(fixed(noise), question, unit) <= float(price(noise, sensitivity, unit, "rho")) + SLACK


# Planted bugs, which the same two checkers must reject


def test_the_noise_of_one_count_is_too_little_for_a_histogram() -> None:
    assert worst_log_ratio(fixed(noise_for(Loss.of("epsilon", 0.7), COUNT, 1)), histogram) > 0.7 + SLACK
    assert worst_rho(fixed(noise_for(Loss.of("rho", 0.5), COUNT, 1)), histogram) > 0.5 + SLACK


def test_one_percent_less_noise_is_too_little() -> None:
    laplace, gaussian = (noise_for(Loss.of(m, 0.7), PARTITION, 1) for m in ("epsilon", "rho"))
    assert worst_log_ratio(fixed(Noise("laplace", laplace.scale * 0.99)), histogram) > 0.7 + SLACK
    assert worst_rho(fixed(Noise("gaussian", gaussian.scale * 0.99)), histogram) > 0.7 + SLACK


def test_noise_not_scaled_to_the_grid_is_too_little() -> None:
    assert worst_log_ratio(fixed(noise_for(Loss.of("epsilon", 0.7), COUNT, 1)), count, unit=4) > 0.7 + SLACK
    assert worst_rho(fixed(noise_for(Loss.of("rho", 0.7), COUNT, 1)), count, unit=4) > 0.7 + SLACK


def test_continuous_noise_cut_to_an_integer_is_too_little() -> None:
    # int(laplace()) doubles the mass at 0: Pr[0] = 1 - q, Pr[z] = q^|z| (1 - q)/2.
    scale = noise_for(Loss.of("epsilon", 0.7), COUNT, 1).scale
    stay = -math.expm1(-1 / scale)

    def cut(z: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(z == 0, math.log(stay), math.log(stay / 2) - np.abs(z) / scale)

    assert worst_log_ratio(lambda counts: cut, count) > 0.7 + SLACK


def test_noise_scaled_by_a_private_number_is_too_little() -> None:
    # Wider noise for larger counts: the width itself tells the counts apart, however wide.
    laplace, gaussian = (noise_for(Loss.of(m, 0.7), COUNT, 1) for m in ("epsilon", "rho"))

    def private(noise: Noise) -> Mechanism:
        return lambda counts: log_pmf(Noise(noise.kind, noise.scale * (1 + counts[0])))

    assert worst_log_ratio(private(laplace), count) > 0.7 + SLACK
    assert worst_rho(private(gaussian), count) > 0.7 + SLACK
