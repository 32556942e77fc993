"""How wide the error bar of a weighted sum of integer noise must be. Public; nothing is drawn, anybody may call it.

Noise is whole numbers, so the quantile of a continuous law is too narrow where it is a few steps wide. What holds is
shown in four steps, for independent draws Z with weights a, U uniform on (-1/2, 1/2), and E = Σ a Z:

1. *A lemma* (Birnbaum 1948). X is more peaked than Y if |X| is stochastically smaller. In a sum of independent terms
   with symmetric unimodal laws, a term that is replaced by a less peaked one leaves the sum less peaked: the chance
   that the others and a number t are within h of 0 only falls with |t|. Such sums are symmetric and unimodal (Wintner).
2. *One draw.* Z + U is more peaked than Y. Laplace: Y is a continuous draw of scale 1 / (2 tanh(1/(2s))). For |Z + U|
   is larger than a whole m with probability exp(-m/s), than m + t with that times 1 - 2 t tanh(1/(2s)) where |t| is at
   most 1/2, and 1 - y <= exp(-y). Gaussian: Y is N(0, s² + 1/4). At m + 1/2 it holds because Pr[Z = z], over the chance
   that Y rounds to z, falls with |z|. In between `tests/release/test_noise_sum.py` computes both sides, for scales
   from 1/20 to 200; 0.2 would do in place of 1/4, and 1/6 for large scales, where only slopes of the density f count:
   between two such points the chance of being beyond is at most |f'|/8 above that of Y, and at them |f'|/6 below it. U
   is more peaked than N(0, 1/(2π)), and than a Laplace draw of scale 1/2, because their densities are at most 1, which
   is its own.
3. *Smoothing.* Let draws of equal weight c be added up first: a sum of them is symmetric and unimodal, as their laws
   are log-concave. Let W = Σ c U, one U for each different weight. If |E| > b, then |E + W| > b - w unless W points
   back by more than w. With C = Σ c² and w = k √(C/(2π)) that has a probability of at most 1 - Φ(k), whatever E is. So
   Pr[|E| > b] <= Pr[|E + W| > b - w] / Φ(k).
4. *Comparison.* E + W is symmetric and unimodal, so it is more peaked than E + W + Σ a U, and that, by the lemma, than
   W + Σ a Y. Where every draw has a U of its own, W is Σ a U itself, and E + W is more peaked than Σ a Y. Draws may
   differ in their scales.

What is left is a sum of continuous draws (`continuous`). For little noise two more bounds hold: Chebyshev's, and
that discrete Gaussian noise is subgaussian with its scale (Canonne, Kamath & Steinke 2020). The smallest of all counts.

Sums of Laplace draws, of whose weights the largest is known too, have two more bounds. The first is Chernoff's. The
second: a discrete Laplace draw and an independent, symmetric D in (-1, 1) add up to a continuous Laplace draw, because
an exponential one has a geometric whole part and an independent rest. That is a normal draw with the random variance
2 s² V, V exponential. So with Q = Σ c² V a sum is beyond h with probability E g(Q), g(v) = erfc(h / (2 s √v)). g is
convex up to v0 = (h/s)²/6, and then it is below its tangent at v0; let G be the convex function that goes on along
that. E G(Q) only grows when squares are moved from small weights to large ones (Q grows in convex order), so it is
largest for m equal weights, if none of the c² was above 1/m of their sum. Then Q is a gamma variable, and E G(Q) a sum
over a fine grid, each step of it taken at its upper end. D is allowed for like U, by Hoeffding's inequality.

All prefixes of a sum of Gaussian draws at once: add to each draw a little normal noise, of variance σ². What comes out
has a density of at most 1 + δ times that of N(0, s² + σ²). Proof: completing the square, it is that density times
Σ_z exp(-(z - μ)²/(2τ²)) / (τ √(2π)) over the integers z, with 1/τ² = 1/s² + 1/σ² and some μ, divided by the same sum
for s and μ = 0. By Poisson's formula the first is at most 1 + 2 Σ_k exp(-2π²τ²k²) over k >= 1, the second at least 1.
So what has the probability p for m normal draws has at most (1 + δ)^m p for these. The bar allows for three deviations
of the noise that was added, which it takes back with probability 1 - Φ(3) only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.noise_law import Noise, NoiseKind, laplace_chernoff, missed, quantile_of_sum, variance

Floats = NDArray[np.float64]

_NORMAL = NormalDist()
_BACK = tuple(step / 2 for step in range(11))  # k of step 3, of which the best counts: more noise affords a larger one
_UNIFORM = 1 / math.sqrt(2 * math.pi)  # the deviation of a normal draw that U is more peaked than
_WIDER = 1 / 4  # what a Gaussian draw's variance is more in step 2
_DEVIATIONS = 3.0  # of the noise that is added to prefixes, that a bar allows for
_EXCESS = 1e-3  # (1 + δ)^m is at most e to this
_UP = 1 + 1e-12  # covers rounding
_SLIM = 1e-3  # how likely the parts D take back more than `_TAKEN` from a sum whose squares are 1 (Hoeffding)
_TAKEN = math.sqrt(-math.log(_SLIM))
_PARTS = 1000  # of the grid
_GRAIN = 16  # steps to an octave, to which weights of Laplace noise are rounded up: few bounds serve all
_EACH, _LEAST = 64, 1e-9  # from so many sums of Laplace draws on, quarters of an octave serve all; the least of squares


def half_widths(noise: Noise, squares: ArrayLike, confidence: float, distinct: float = math.inf) -> Floats:
    """An h with Pr[|Σ a Z| <= h] >= confidence, for each of many sums of independent draws Z of integer noise.

    squares: at least Σ a² of each sum. distinct: at least the sum of c² over the *different* weights c that each has;
    draws with equal weights make one lattice, so that the bar of a long sum is hardly wider than that of a normal law.
    """
    spread = np.asarray(squares, dtype=np.float64)
    found = np.sqrt(spread) * _of_one(noise, missed(confidence))
    if math.isinf(distinct):
        return np.asarray(found)
    back, deviations = _pairs(noise.kind, missed(confidence))
    w_too = distinct * (1 / 2 if noise.kind == "laplace" else _UNIFORM**2)  # the variance of what W is compared with
    law = np.sqrt(spread * wider(noise) ** 2 + w_too)
    for way, many in zip(back.tolist(), deviations.tolist(), strict=True):
        found = np.minimum(found, way * math.sqrt(distinct) + many * law)
    return np.asarray(found)


def weighted_widths(noise: Noise, squares: ArrayLike, confidence: float) -> Floats:
    """Bars for sums of noise with weights in [-1, 1] whose squares add up to at most this, each by itself.

    As `half_widths`, but what it says of Laplace noise is proved for every confidence.
    """
    spread = np.asarray(squares, dtype=np.float64)
    if noise.kind == "gaussian":
        return half_widths(noise, spread, confidence)
    up = np.maximum(spread, _LEAST)
    if up.size > _EACH:
        up = 2 ** (np.ceil(np.log2(up) * 4) / 4)
    known = {many: width_of_sum(Draws(noise, many), confidence) for many in set(up.ravel().tolist())}
    return np.array([known[many] for many in up.ravel().tolist()]).reshape(spread.shape)


def continuous(kind: NoiseKind, confidence: float) -> float:
    """How many standard deviations a weighted sum of *continuous* draws stays within, with at least this probability.

    A sum of Laplace draws has heavier tails than a normal one, but no heavier than one draw's by itself, so the wider
    of the two is taken: at 95% it is 2.12 instead of 1.96. From 95% on that follows from a bound that
    `tests/release/test_noise_sum.py` evaluates; below, it is checked by simulation, not proved.
    """
    return _continuous(kind, missed(confidence))


def wider(noise: Noise) -> float:
    """The standard deviation of the continuous draw that a draw of integer noise and U are compared with: step 2."""
    if noise.kind == "laplace":
        return 1 / (math.sqrt(2) * math.tanh(1 / (2 * noise.scale)))
    return math.sqrt(noise.scale**2 + _WIDER)


def smoothed(noise: Noise, confidence: float) -> tuple[float, float]:
    """Step 3 with the best k: the w for weights whose squares add up to 1, and the confidence that E + W then needs."""
    miss = missed(confidence)
    back, deviations = _pairs(noise.kind, miss)
    best = int(np.argmin(back + deviations * wider(noise)))
    return float(back[best]), 1 - miss * _NORMAL.cdf(_BACK[best])


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
    return _width(drawn.noise, drawn.squares, drawn.largest, 1 - confidence)


def width_of_all(parts: Sequence[Draws], confidence: float) -> float:
    """The half width for a sum of several sums of draws, all independent, whose noise may differ in scale.

    Laplace: every draw counts as one of the largest scale, whose moment generating function, and whose mixture of
    normal draws, only grow with it. Of both kinds at once, each kind has half of what may go wrong.
    """
    kinds = sorted({part.noise.kind for part in parts})
    if len(kinds) > 1:
        half = 1 - (1 - confidence) / 2
        return sum(width_of_all([part for part in parts if part.noise.kind == kind], half) for kind in kinds)
    noises = {part.noise for part in parts}
    draws, squares = sum(part.draws for part in parts), sum(part.squares for part in parts)
    if len(noises) == 1 and all(part.largest == 1 and part.squares == part.draws for part in parts):
        return quantile_of_sum(noises.pop(), draws, confidence)
    if kinds == ["gaussian"]:
        return _of_scales([part.noise.scale for part in parts], [part.squares for part in parts], missed(confidence))
    scale, largest = max(part.noise.scale for part in parts), max(part.largest for part in parts)
    return width_of_sum(Draws(Noise("laplace", scale), squares, largest, draws), confidence)


def width_of_bridge(noise: Noise, draws: int, confidence: float) -> float:
    """An h with Pr[max over k of |S_k - (k/m) S_m| <= h] >= confidence, S_k the sum of the first k of m >= 2 draws.

    Each one is a sum with squares k(m - k)/m, which the union bound serves. For normal draws these are values of a
    Brownian bridge, whose largest is above y √m deviations with probability 2 exp(-2y²) at most (Kolmogorov).
    """
    miss, half = 1 - confidence, draws // 2
    union = max(
        _width(noise, k * (draws - k) / draws, 1 - k / draws, miss / (draws - 1))
        for k in (range(1, half + 1) if noise.kind == "laplace" else (half,))  # Gaussian: by their squares alone
    )
    if noise.kind == "laplace" or (added := _added(noise.scale, draws)) is None:
        return union
    longest = math.sqrt(draws) / 2
    allowed = miss * _NORMAL.cdf(_DEVIATIONS) * math.exp(-_EXCESS)  # the probability that normal draws may have
    deviations = math.sqrt(2 * math.log(2 / allowed))
    return min(union, longest * (_DEVIATIONS * added + math.hypot(noise.scale, added) * deviations) * _UP)


def _added(scale: float, draws: int) -> float | None:
    """The σ with (1 + δ)^draws <= exp(_EXCESS); None where the scale is too small for any.

    With exp(-2π²τ²) = _EXCESS / (3 draws), which is below 1/3, δ <= 2 / (exp(2π²τ²) - 1) is at most _EXCESS / draws.
    """
    tau_squared = math.log(3 * draws / _EXCESS) / (2 * math.pi**2)
    rest = 1 / tau_squared - 1 / scale**2
    return 1 / math.sqrt(rest) if rest > 0 else None


def _width(noise: Noise, squares: float, largest: float, miss: float) -> float:
    if squares <= 0:
        return 0.0
    if noise.kind == "gaussian":
        return math.sqrt(squares) * _of_one(noise, miss)
    terms = squares / largest**2
    up = 2 ** (math.ceil(math.log2(terms) * _GRAIN - 1e-9) / _GRAIN)
    chernoff = largest * _laplace(noise.scale, up, miss)
    equal = _few(max(1, math.floor(terms + 1e-9)))
    return min(chernoff, math.sqrt(squares) * (_TAKEN + noise.scale * _mixture(equal, miss * (1 - _SLIM))))


@lru_cache(maxsize=4096)
def _of_one(noise: Noise, miss: float) -> float:
    """The bar of a sum whose squares are 1, where every draw has a U of its own."""
    if noise.kind == "gaussian":
        return _of_scales([noise.scale], [1.0], miss)
    back, deviations = _pairs(noise.kind, miss)
    return min(float((back + deviations * wider(noise)).min()), math.sqrt(variance(noise) / miss))


def _of_scales(scales: Sequence[float], squares: Sequence[float], miss: float) -> float:
    """The bar of a sum of Gaussian draws of several scales, by the squares of the weights of each scale."""
    back, deviations = _pairs("gaussian", miss)
    spread = math.fsum(square * scale**2 for scale, square in zip(scales, squares, strict=True))
    all_squares = math.fsum(squares)
    compared = back * math.sqrt(all_squares) + deviations * math.sqrt(spread + _WIDER * all_squares)
    true = math.fsum(square * variance(Noise("gaussian", s)) for s, square in zip(scales, squares, strict=True))
    subgaussian = math.sqrt(2 * spread * math.log(2 / miss))
    # Rounding is less than what step 2 has to spare, 1/4 where 0.2 would do, and than the strictness of the others.
    return min(float(compared.min()), math.sqrt(true / miss), subgaussian)


@lru_cache(maxsize=256)
def _pairs(kind: NoiseKind, miss: float) -> tuple[Floats, Floats]:
    """For each k the way back w, where C is 1, and how many deviations a continuous law needs with miss * Φ(k)."""
    deviations = [_continuous(kind, miss * _NORMAL.cdf(k)) for k in _BACK]
    return np.array(_BACK) * _UNIFORM, np.array(deviations)


def _continuous(kind: NoiseKind, miss: float) -> float:
    normal = -_NORMAL.inv_cdf(miss / 2)
    return normal if kind == "gaussian" else max(normal, -math.log(miss) / math.sqrt(2))


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
