"""How far a weighted sum of integer noise strays, for one sum and for all prefixes at once. Public; nothing is drawn.

Gaussian noise has two bounds, and the smaller one counts. First, it is subgaussian with its scale. Second, and sharper
where the scale is a few steps or more: add to each draw a little continuous Gaussian noise, of variance σ². What comes
out has a density of at most 1 + δ times that of N(0, s² + σ²). Proof: completing the square, it is that density times
Σ_z exp(-(z - μ)²/(2τ²)) / (τ √(2π)) over the integers z, with 1/τ² = 1/s² + 1/σ² and some μ, divided by the same sum
for s and μ = 0. By Poisson's formula the first is at most 1 + 2 Σ_k exp(-2π²τ²k²) over k >= 1, the second at least 1.
So what has the probability p for m normal draws has at most (1 + δ)^m p for these. A bar then allows for the noise that
was added: it takes back three of its own deviations or more with probability 1 - Φ(3) only, whatever the sum was.

Laplace noise has two bounds as well. The first is Chernoff's. The second: a discrete Laplace draw and an independent,
symmetric D in (-1, 1) add up to a continuous Laplace draw, because an exponential one has a geometric whole part and an
independent rest. That is a normal draw with the random variance 2 s² V, V exponential. So with Q = Σ c² V a sum is
beyond h with probability E g(Q), g(v) = erfc(h / (2 s √v)). g is convex up to v0 = (h/s)²/6, and then it is below its
tangent at v0; let G be the convex function that goes on along that. E G(Q) only grows when squares are moved from small
weights to large ones (Q grows in convex order), so it is largest for m equal weights, if none of the c² was above 1/m
of their sum. Then Q is a gamma variable, and E G(Q) a sum over a fine grid, each step of it taken at its upper end.
D is allowed for like the noise that is added to Gaussian draws, by Hoeffding's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from tacit.model.noise_law import Noise, laplace_chernoff, quantile_of_sum

_NORMAL = NormalDist()
_DEVIATIONS = 3.0  # of the added noise, that a bar allows for
_EXCESS = 1e-3  # (1 + δ)^m is at most e to this
_UP = 1 + 1e-12  # covers rounding
_SLIM = 1e-3  # how likely the parts D take back more than `_TAKEN` from a sum whose squares are 1 (Hoeffding)
_TAKEN = math.sqrt(-math.log(_SLIM))
_PARTS = 1000  # of the grid
_GRAIN = 16  # steps to an octave, to which weights of Laplace noise are rounded up: few bounds serve all


@dataclass(frozen=True, slots=True)
class Draws:
    """Independent draws of one noise, each with a weight c.

    squares, largest: at least Σ c² and at least every |c|. draws: at least as many as there are c other than 0.
    """

    noise: Noise
    squares: float = 1.0
    largest: float = 1.0
    draws: int = 1

    def times(self, factor: float) -> Draws:
        """The same draws with weights that many times as large."""
        return Draws(self.noise, self.squares * factor**2, self.largest * abs(factor), self.draws)


def width_of_sum(drawn: Draws, confidence: float) -> float:
    """An h with Pr[|Σ c Z| <= h] >= confidence for independent draws Z with weights c: an error bar.

    For Chernoff's bound: the logarithm of a Laplace draw's moment generating function is a power series in the square
    of its argument, with coefficients of 0 and more. So at c t it is at most (c/largest)² times what it is at
    largest * t, and the sum over all draws at most squares / largest² times that.
    """
    return _width(drawn.noise, drawn.squares, drawn.largest, drawn.draws, 1 - confidence)


def width_of_all(parts: Sequence[Draws], confidence: float) -> float:
    """The half width for a sum of several sums of draws, all independent, whose noise may differ in scale.

    Gaussian: a draw of a larger scale counts as one of the least scale s with a weight as many times as large. That is
    what a variance proxy says; and the σ that is added for s is enough for a larger scale, while the deviations that
    are taken back are those of smaller weights. Laplace: every draw counts as one of the largest scale, whose moment
    generating function, and whose mixture of normal draws, only grow with it. Of both kinds at once, each kind has half
    of what may go wrong.
    """
    kinds = sorted({part.noise.kind for part in parts})
    if len(kinds) > 1:
        half = 1 - (1 - confidence) / 2
        return sum(width_of_all([part for part in parts if part.noise.kind == kind], half) for kind in kinds)
    noises = {part.noise for part in parts}
    draws, squares = sum(part.draws for part in parts), sum(part.squares for part in parts)
    if len(noises) == 1 and all(part.largest == 1 and part.squares == part.draws for part in parts):
        return quantile_of_sum(noises.pop(), draws, confidence)
    scales = [part.noise.scale for part in parts]
    if kinds == ["laplace"]:
        largest = max(part.largest for part in parts)
        return width_of_sum(Draws(Noise("laplace", max(scales)), squares, largest, draws), confidence)
    least = min(scales)
    squares = sum(part.squares * (part.noise.scale / least) ** 2 for part in parts) * _UP
    return width_of_sum(Draws(Noise("gaussian", least), squares, math.sqrt(squares), draws), confidence)


def width_of_bridge(noise: Noise, draws: int, confidence: float) -> float:
    """An h with Pr[max over k of |S_k - (k/m) S_m| <= h] >= confidence, S_k the sum of the first k of m >= 2 draws.

    Each one is a sum with squares k(m - k)/m, which the union bound serves. For normal draws these are values of a
    Brownian bridge, whose largest is above y √m deviations with probability 2 exp(-2y²) at most (Kolmogorov).
    """
    miss, half = 1 - confidence, draws // 2
    union = max(
        _width(noise, k * (draws - k) / draws, 1 - k / draws, draws, miss / (draws - 1))
        for k in (range(1, half + 1) if noise.kind == "laplace" else (half,))  # Gaussian: by their squares alone
    )
    if noise.kind == "laplace" or (added := _added(noise.scale, draws)) is None:
        return union
    longest = math.sqrt(draws) / 2
    deviations = math.sqrt(2 * math.log(2 / _allowed(miss)))
    return min(union, longest * (_DEVIATIONS * added + math.hypot(noise.scale, added) * deviations) * _UP)


def _width(noise: Noise, squares: float, largest: float, draws: int, miss: float) -> float:
    if squares <= 0:
        return 0.0
    if noise.kind == "gaussian":
        return math.sqrt(squares) * _gaussian(noise.scale, draws, miss)
    terms = squares / largest**2
    up = 2 ** (math.ceil(math.log2(terms) * _GRAIN - 1e-9) / _GRAIN)
    chernoff = largest * _laplace(noise.scale, up, miss)
    equal = _few(max(1, math.floor(terms + 1e-9)))
    return min(chernoff, math.sqrt(squares) * (_TAKEN + noise.scale * _mixture(equal, miss * (1 - _SLIM))))


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
    """The bar of a sum whose largest weight is 1 and whose squares are `terms`."""
    return laplace_chernoff(scale, terms, miss, close=1e-5) * _UP


def _few(terms: int) -> int:
    """The next smaller number of equal weights of a list with two to an octave: few integrals serve all."""
    return terms if terms <= 8 else math.floor(2 ** (math.floor(math.log2(terms) * 2 + 1e-9) / 2))


@lru_cache(maxsize=4096)
def _mixture(equal: int, miss: float) -> float:
    """The h with E G(Q) <= miss for continuous Laplace draws of scale 1, and as many equal weights with squares 1."""
    from scipy.special import gammainc, gammaincc

    shares = np.linspace(0, 1, _PARTS + 1)[1:]
    ends = np.array([math.erfc(math.sqrt(1.5 / share)) for share in shares.tolist()])  # g at shares of v0, for any h
    slope = math.sqrt(1.5 / math.pi) * math.exp(-1.5)  # of g in v / v0, at v0

    def chance(h: float) -> float:
        turn = h * h / 6
        below = np.diff(gammainc(equal, equal * turn * np.append(0.0, shares)))
        beyond = float(gammaincc(equal, equal * turn))
        along = float(gammaincc(equal + 1, equal * turn)) / turn - beyond  # E of v / v0 - 1 beyond v0
        return float(ends @ below) + float(ends[-1]) * beyond + slope * along

    low, high = 0.0, 1.0
    while chance(high) > miss:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) <= miss else (middle, high)
    return high * (1 + 1e-9)
