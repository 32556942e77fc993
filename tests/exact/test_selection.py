"""The choice of the worst, exactly: Pr[i] of both selectors over all neighbours, and the samplers against that law."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.exact.price import choice_price, choice_scale
from tacit.model.budget import ATOMS, Loss, Measure
from tacit.trusted.noise import draw_geometric, noisy_max


def exponential_mechanism(scores: tuple[int, ...], scale: float) -> list[float]:
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip(scores: tuple[int, ...], scale: float) -> list[float]:
    """McKenna & Sheldon 2020: in random order, take a candidate with probability exp((score - best)/scale)."""
    takes = [math.exp((score - max(scores)) / scale) for score in scores]
    chances = [0.0] * len(scores)
    for order in permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for i in order:
            chances[i] += left * takes[i]
            left *= 1 - takes[i]
    return chances


def planted_price(scale: float, measure: Measure) -> float:
    """A planted bug: the price of a choice without the factor 2, which the worst of all neighbours must exceed."""
    return 1 / scale if measure == "epsilon" else (1 / scale) ** 2 / 8


@pytest.mark.parametrize(("measure", "law"), [("epsilon", permute_and_flip), ("rho", exponential_mechanism)])
def test_a_choice_costs_what_it_is_charged(measure: Measure, law: object) -> None:
    # All moves of -1, 0, 1 of three scores. For rho: a choice of bounded range epsilon has Renyi divergence at most
    # a epsilon²/8 at every order a. What is charged is held against the law by itself, not against what was asked for,
    # so that a wrong scale cannot hide a wrong price.
    assert callable(law)
    for amount in (0.3, 1.0, 2.5):
        loss = Loss.of(measure, amount)
        scale = choice_scale(loss, 1)
        assert choice_price(scale, 1, measure) <= loss
        worst = 0.0
        for scores in product((0, 2, 7), repeat=3):
            chances = law(scores, scale)
            for move in product((-1, 0, 1), repeat=3):
                others = law(tuple(s + m for s, m in zip(scores, move, strict=True)), scale)
                if measure == "epsilon":
                    worst = max(worst, *(math.log(p / q) for p, q in zip(chances, others, strict=True)))
                else:
                    for a in (1.1, 1.5, 2.0, 4.0, 16.0):
                        moments = sum(p**a * q ** (1 - a) for p, q in zip(chances, others, strict=True))
                        worst = max(worst, math.log(moments) / (a - 1) / a)
        assert 0.5 * amount < worst <= amount + 1e-9
        assert worst <= choice_price(scale, 1, measure).atoms / ATOMS + 1e-9
        assert worst > planted_price(scale, measure)


@pytest.mark.parametrize(("measure", "law"), [("epsilon", permute_and_flip), ("rho", exponential_mechanism)])
@pytest.mark.parametrize("factor", [1.0, 0.8, 1.25])
def test_the_selectors_have_that_law(measure: Measure, law: object, factor: float) -> None:
    # False alarm 1e-10. The controls at 0.8 and 1.25 times the scale must be rejected: their statistic has two degrees
    # of freedom and a noncentrality of 204 or more, so that it is below 46 with a chance below 1e-12. Of all scores up
    # to 20 these show the scale best: with (0, 3, 5) the same takes 24,000 draws.
    assert callable(law)
    scores, scale, draws = (0, 1, 7), 4.0, 9_000
    seen = np.bincount([noisy_max(np.array(scores), scale * factor, measure) for _ in range(draws)], minlength=3)
    expected = np.array(law(scores, scale)) * draws
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert (statistic < chi2.isf(1e-10, 2)) == (factor == 1.0)


@pytest.mark.parametrize("factor", [1.0, 0.8, 1.25])
def test_one_sided_draws_have_their_law(factor: float) -> None:
    # False alarm 1e-10; the controls have a noncentrality of 1,600 or more, far beyond chance.
    scale, draws = 5.0, 40_000
    drawn = draw_geometric(scale * factor, draws)
    assert drawn.min() == 0
    edges = np.array([0, 1, 2, 4, 6, 9, 13, 20, 10**9])
    seen = np.histogram(drawn, edges)[0]
    expected = draws * -np.diff(np.exp(-np.minimum(edges, 5000) / scale))
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert (statistic < chi2.isf(1e-10, len(seen) - 1)) == (factor == 1.0)
