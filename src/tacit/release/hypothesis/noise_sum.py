"""How far a weighted sum of integer noise strays, for one sum and for all prefixes at once. Public; nothing is drawn.

Gaussian noise has two bounds, and the smaller one counts. First, it is subgaussian with its scale. Second, and sharper
where the scale is a few steps or more: add to each draw a little continuous Gaussian noise, of variance σ². What comes
out has a density of at most 1 + δ times that of N(0, s² + σ²). Proof: completing the square, it is that density times
Σ_z exp(-(z - μ)²/(2τ²)) / (τ √(2π)) over the integers z, with 1/τ² = 1/s² + 1/σ² and some μ, divided by the same sum
for s and μ = 0. By Poisson's formula the first is at most 1 + 2 Σ_k exp(-2π²τ²k²) over k >= 1, the second at least 1.
So what has the probability p for m normal draws has at most (1 + δ)^m p for these. A bar then allows for the noise that
was added: it takes back three of its own deviations or more with probability 1 - Φ(3) only, whatever the sum was.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from tacit.model.noise_law import Noise

_NORMAL = NormalDist()
_DEVIATIONS = 3.0  # of the added noise, that a bar allows for
_EXCESS = 1e-3  # (1 + δ)^m is at most e to this
_UP = 1 + 1e-12  # covers rounding
_GRAIN = 16  # steps to an octave, to which weights of Laplace noise are rounded up: few bounds serve all


def width_of_sum(noise: Noise, squares: float, largest: float, draws: int, confidence: float) -> float:
    """An h with Pr[|Σ c Z| <= h] >= confidence for independent draws Z: an error bar.

    squares, largest: at least Σ c² and at least every |c|. draws: at least as many as there are c other than 0.

    Gaussian: see above. Laplace: Chernoff's bound. The logarithm of a draw's moment generating function is a power
    series in the square of its argument, with coefficients of 0 and more. So it is at most (c/largest)² times as large
    at c t as at largest * t, and the sum over all draws at most squares / largest² times.
    """
    return _width(noise, squares, largest, draws, 1 - confidence)


def width_of_bridge(noise: Noise, draws: int, confidence: float) -> float:
    """An h with Pr[max over k of |S_k - (k/m) S_m| <= h] >= confidence, S_k the sum of the first k of m >= 2 draws.

    Each one is a sum with squares k(m - k)/m <= m/4, which the union bound serves. For normal draws these are values of
    a Brownian bridge, whose largest is above y √m deviations with probability 2 exp(-2y²) at most (Kolmogorov).
    """
    miss, longest = 1 - confidence, math.sqrt(draws) / 2
    union = _width(noise, longest**2, 1 - 1 / draws, draws, miss / (draws - 1))
    if noise.kind == "laplace" or (added := _added(noise.scale, draws)) is None:
        return union
    deviations = math.sqrt(2 * math.log(2 / _allowed(miss)))
    return min(union, longest * (_DEVIATIONS * added + math.hypot(noise.scale, added) * deviations) * _UP)


def _width(noise: Noise, squares: float, largest: float, draws: int, miss: float) -> float:
    if squares <= 0:
        return 0.0
    if noise.kind == "gaussian":
        return math.sqrt(squares) * _gaussian(noise.scale, draws, miss)
    terms = 2 ** (math.ceil(math.log2(squares / largest**2) * _GRAIN - 1e-9) / _GRAIN)
    return largest * _laplace(noise.scale, terms, miss)


@lru_cache(maxsize=4096)
def _gaussian(scale: float, draws: int, miss: float) -> float:
    """The bar of a sum whose squares are 1."""
    subgaussian = scale * math.sqrt(2 * math.log(2 / miss)) * _UP
    added = _added(scale, draws)
    if added is None:
        return subgaussian
    normal = -_NORMAL.inv_cdf(_allowed(miss) / 2)
    return min(subgaussian, (_DEVIATIONS * added + math.hypot(scale, added) * normal) * _UP)


def _added(scale: float, draws: int) -> float | None:
    """The σ with (1 + δ)^draws <= exp(_EXCESS); None where the scale is too small for any.

    With exp(-2π²τ²) = _EXCESS / (3 draws), which is below 1/3, δ <= 2 / (exp(2π²τ²) - 1) is at most _EXCESS / draws.
    """
    tau_squared = math.log(3 * draws / _EXCESS) / (2 * math.pi**2)
    rest = 1 / tau_squared - 1 / scale**2
    return 1 / math.sqrt(rest) if rest > 0 else None


def _allowed(miss: float) -> float:
    """The probability that normal draws may have where these have `miss`."""
    return miss * _NORMAL.cdf(_DEVIATIONS) * math.exp(-_EXCESS)


@lru_cache(maxsize=4096)
def _laplace(scale: float, terms: float, miss: float) -> float:
    """The bar of a sum whose largest weight is 1 and whose squares are `terms`; every t gives a valid one."""
    from scipy.optimize import minimize_scalar

    log_p = math.log(-math.expm1(-1 / scale))

    def bar(share: float) -> float:  # t = share / scale; see `noise_law.quantile_of_sum`
        log_m = 2 * log_p - math.log(math.expm1((share - 1) / scale) * math.expm1(-(share + 1) / scale))
        return (terms * log_m + math.log(2 / miss)) * scale / share

    found = minimize_scalar(lambda share: bar(float(share)), bounds=(1e-9, 1 - 1e-9), method="bounded")
    return float(found.fun) * _UP
