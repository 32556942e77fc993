"""AboveThreshold, exactly: the probability of every transcript, on neighbours, by summing over the threshold's noise.

The same checker passes our gate and the two sound variants of Lyu, Su & Li (2017), and flags their four broken ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact.price import gate_price, gate_scales
from tacit.model.budget import Loss

EPSILON = 1.0
REACH = 600  # of the threshold's noise: what is left out has probability below e^-40 at every scale used here
R = np.arange(-REACH, REACH + 1)
Tail = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class Variant:
    """A sparse vector algorithm: the law of the threshold's noise, Pr[comparison noise >= x], and how it goes on."""

    threshold_law: NDArray[np.float64]
    at_least: Tail
    hits: float  # how many before it stops
    refresh: bool = False  # a fresh threshold after a hit
    numeric: Callable[[int], NDArray[np.float64]] | None = None  # Pr[comparison noise = x], where that is the answer

    def chance(self, values: tuple[int, ...], transcript: tuple[int, ...]) -> float:
        """Pr[transcript], threshold 0. 1 is a hit, 0 is none; for numeric variants a hit's answer is 0."""
        parts: list[tuple[list[int], list[int]]] = [([], [])]
        for value, said in zip(values, transcript, strict=True):
            parts[-1][0].append(value)
            parts[-1][1].append(said)
            if said and self.refresh:
                parts.append(([], []))
        chance = 1.0
        for vs, ss in parts:
            given_r = np.ones(R.size)
            for value, said in zip(vs, ss, strict=True):
                above = self.at_least(R - value)
                if said and self.numeric:
                    given_r = given_r * np.where(R <= 0, self.numeric(-value), 0.0)
                else:
                    given_r = given_r * (above if said else 1 - above)
            chance *= float((self.threshold_law * given_r).sum())
        return chance


def two_sided(scale: float) -> NDArray[np.float64]:
    return math.tanh(0.5 / scale) * np.exp(-np.abs(R) / scale)


def one_sided(scale: float) -> NDArray[np.float64]:
    return np.where(R >= 0, -math.expm1(-1 / scale) * np.exp(-np.maximum(R, 0) / scale), 0.0)


def laplace_tail(scale: float) -> Tail:
    q = math.exp(-1 / scale)
    return lambda x: np.where(
        x > 0, np.exp(-np.maximum(x, 0) / scale) / (1 + q), 1 - q * np.exp(np.minimum(x, 0) / scale) / (1 + q)
    )


def geometric_tail(scale: float) -> Tail:
    return lambda x: np.exp(-np.maximum(x, 0) / scale)


def transcripts(length: int, hits: float) -> Iterator[tuple[int, ...]]:
    """All full transcripts: they end at the last allowed hit, or with the questions."""
    for said in product((0, 1), repeat=length):
        if sum(said) < hits or (sum(said) == hits and said[-1]):
            yield said


def largest_loss(variant: Variant, lengths: tuple[int, ...] = (1, 2, 3, 4)) -> float:
    """The largest log-ratio over neighbours (every value moves by -1, 0 or 1) and transcripts."""
    worst = 0.0
    for length in lengths:
        for said in transcripts(length, variant.hits):
            for values in product((0, 3), repeat=length):
                chance = variant.chance(values, said)
                for move in product((-1, 1), repeat=length):
                    other = variant.chance(tuple(v + m for v, m in zip(values, move, strict=True)), said)
                    if chance > 0:
                        worst = max(worst, math.log(chance / other) if other > 0 else math.inf)
    return worst


def long_loss(variant: Variant, below: int, above: int) -> float:
    """The log-ratio of `below` misses and then `above` hits, when the misses' values rise and the hits' fall by one."""
    said = (0,) * below + (1,) * above
    low, high = (0,) * below + (1,) * above, (1,) * below + (0,) * above
    chance, other = variant.chance(low, said), variant.chance(high, said)
    return math.log(chance / other) if other > 0 else math.inf


def ours() -> Variant:
    first, second = gate_scales(Loss.of("epsilon", EPSILON), 1)
    assert gate_price(first, second, 1, "epsilon") == Loss.of("epsilon", EPSILON)
    return Variant(one_sided(first), geometric_tail(second), hits=1)


def test_our_gate_costs_what_it_is_charged() -> None:
    loss = max(largest_loss(ours()), long_loss(ours(), 30, 1), long_loss(ours(), 200, 1))
    assert 0.9 * EPSILON < loss <= EPSILON + 1e-9  # the second half: nor is it charged for what it does not cost


def test_one_sided_noise_halves_the_variance_of_two_sided_at_the_same_price() -> None:
    # Why the gate uses it: same price, and the noise between a value and the bar has half the variance.
    first, second = gate_scales(Loss.of("epsilon", EPSILON), 1)
    z = np.arange(4000)
    variances = []
    for scale in (first, second):
        law = -math.expm1(-1 / scale) * np.exp(-z / scale)
        mean = float((law * z).sum())
        variances.append((float((law * (z - mean) ** 2).sum()), 2 * math.exp(1 / scale) / math.expm1(1 / scale) ** 2))
    assert sum(one for one, _ in variances) == pytest.approx(sum(two for _, two in variances) / 2, rel=1e-9)


@pytest.mark.parametrize(
    "mutant",
    [
        Variant(one_sided(1 / 0.3865), geometric_tail(1 / 0.6135), hits=1),  # comparison noise for one move, not two
        Variant(one_sided(0.02), geometric_tail(2 / 0.6135), hits=1),  # no noise on the threshold
        Variant(one_sided(1 / 0.3865), geometric_tail(2 / 0.6135), hits=2),  # not shut after the first hit
        Variant(np.flip(one_sided(1 / 0.3865)), geometric_tail(2 / 0.6135), hits=1),  # noise on the wrong side
    ],
)
def test_planted_bugs_in_the_gate_are_caught(mutant: Variant) -> None:
    assert max(largest_loss(mutant), long_loss(mutant, 30, 1)) > EPSILON + 0.05


# Lyu, Su & Li 2017, figure 1; sensitivity 1, c hits, a total of EPSILON.
HALF = EPSILON / 2


@pytest.mark.parametrize("c", [1, 2])
def test_variants_1_and_2_are_sound(c: int) -> None:
    first = Variant(two_sided(1 / HALF), laplace_tail(2 * c / HALF), hits=c)
    second = Variant(two_sided(c / HALF), laplace_tail(2 * c / HALF), hits=c, refresh=True)
    for variant in (first, second):
        assert largest_loss(variant) <= EPSILON + 1e-9
        assert long_loss(variant, 50, c) <= EPSILON + 1e-9


def test_variant_3_answers_with_the_comparison_noise() -> None:
    def law(x: int) -> NDArray[np.float64]:
        return np.asarray(math.tanh(0.5 * HALF) * math.exp(-abs(x) * HALF))

    variant = Variant(two_sided(1 / HALF), laplace_tail(1 / HALF), hits=1, numeric=law)
    assert long_loss(variant, 40, 1) > 3 * EPSILON


def test_variant_4_does_not_scale_with_the_hits() -> None:
    variant = Variant(two_sided(4 / EPSILON), laplace_tail(4 / (3 * EPSILON)), hits=3)
    assert long_loss(variant, 60, 3) > 2 * EPSILON


def test_variant_5_has_no_comparison_noise() -> None:
    variant = Variant(two_sided(1 / HALF), lambda x: (x <= 0).astype(np.float64), hits=math.inf)
    assert long_loss(variant, 1, 1) == math.inf


def test_variant_6_never_stops() -> None:
    variant = Variant(two_sided(1 / HALF), laplace_tail(1 / HALF), hits=math.inf)
    assert long_loss(variant, 20, 20) > 5 * EPSILON
