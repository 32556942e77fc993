"""Trusted words: the laws of integer noise, their probabilities, variances and half widths. Nothing is drawn here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

NoiseKind = Literal["laplace", "gaussian"]
MAX_SCALE = 2.0**60  # beyond this, draws would pile up at the limits of a 64-bit integer

_SUMMED = 4096.0  # up to this scale a discrete Gaussian is summed term by term; above it, bounded by the continuous one
_MIXED = 4096  # up to that many terms, a sum of discrete Laplace draws is computed exactly
_REACH = 10  # standard deviations summed; what lies beyond is bounded and added, and is below 1e-22


@dataclass(frozen=True, slots=True)
class Noise:
    """Integer noise: Pr[z] ∝ exp(-|z|/scale) (laplace) or exp(-z²/(2 scale²)) (gaussian) over the integers z.

    `scale` is in steps of the integer grid on which the true value lives.

    >>> Noise("laplace", 2)
    Noise(kind='laplace', scale=2.0)
    """

    kind: NoiseKind
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in ("laplace", "gaussian"):
            raise ValueError(f"noise is laplace or gaussian, not {self.kind!r}")
        object.__setattr__(self, "scale", float(self.scale))
        if not 0 < self.scale <= MAX_SCALE:  # false for NaN too
            raise ValueError(f"a noise scale is above 0 and at most 2**60, not {self.scale!r}")


def pmf(noise: Noise, z: ArrayLike) -> NDArray[np.float64]:
    """Pr[Z = z] for each integer in `z`.

    >>> round(float(pmf(Noise("laplace", 1.0), 0)), 9)  # tanh(1/2)
    0.462117157
    """
    with np.errstate(over="ignore"):  # a huge ratio is infinite, and its probability 0
        steps = np.abs(np.asarray(z, dtype=np.float64)) / noise.scale
        if noise.kind == "laplace":
            return np.asarray(math.tanh(0.5 / noise.scale) * np.exp(-steps), dtype=np.float64)
        return np.asarray(np.exp(-0.5 * steps * steps) / _gaussian_sums(noise.scale)[0], dtype=np.float64)


def variance(noise: Noise) -> float:
    """The exact variance: a little below scale² for gaussian, a little below 2 scale² for laplace.

    >>> variance(Noise("gaussian", 100.0))
    10000.0
    """
    if noise.kind == "laplace":
        return 2 * math.exp(-1 / noise.scale) / math.expm1(-1 / noise.scale) ** 2
    total, second_moment = _gaussian_sums(noise.scale)
    return second_moment / total


@lru_cache(maxsize=4096)
def quantile(noise: Noise, confidence: float) -> int:
    """The smallest integer h with Pr[|Z| <= h] >= confidence.

    Exact, except for a gaussian of scale above 4096, where h is at most one step too wide: it then comes from
    Pr[Z >= m] <= Pr[N(0, scale²) >= m - 1] (Canonne, Kamath & Steinke 2020, proposition 25).

    >>> quantile(Noise("laplace", 10.0), 0.95)
    30
    """
    miss = missed(confidence)
    if noise.kind == "gaussian":
        if noise.scale > _SUMMED:
            from scipy.special import erfcinv  # scipy is imported where it is needed: most questions do without

            return math.ceil(noise.scale * (math.sqrt(2) * float(erfcinv(miss)) + 1e-12))
        tails = _gaussian_tails(noise.scale)
        return int(np.searchsorted(-tails, -miss))  # tails fall, so their negatives rise
    b = noise.scale

    def holds(h: int) -> bool:  # Pr[|Z| > h] <= miss; the last factor covers rounding
        return 2 * math.exp(-(h + 1) / b) / (1 + math.exp(-1 / b)) * (1 + 1e-14) <= miss

    return _smallest(holds, near=math.floor(b * max(0.0, math.log(2 / miss))))


@lru_cache(maxsize=4096)
def quantile_of_sum(noise: Noise, terms: int, confidence: float) -> int:
    """An integer h with Pr[|Z_1 + ... + Z_terms| <= h] >= confidence, for independent draws; exact for one term.

    Any draws added up may be a fixed subset, so this bounds the error of a sum of released cells.

    Laplace: exact up to 4096 terms, because the sum is the difference of two negative binomials and its positive part
    a mixture of negative binomials (`_laplace_mixture`). Beyond, the Chernoff bound 2 M(t)^terms exp(-t(h+1)) with the
    exact M(t) = (1-q)² / ((1 - q e^t)(1 - q e^-t)), q = exp(-1/scale), minimised over t; every t gives a valid bound.
    Gaussian: the smaller of two bounds. (a) The sum is subgaussian with variance proxy terms * scale² (Canonne, Kamath
    & Steinke 2020). (b) For scale >= 1/2 the probabilities of the sum and of one discrete Gaussian of
    scale sqrt(terms) * scale differ by a factor of at most exp(tau), tau = 5 sum_j exp(-2 pi² scale² j/(j+1)) over
    j = 1 .. terms-1 (Kairouz, Liu & Steinke 2021, convolution of discrete Gaussians); tau is bounded from above.

    >>> quantile_of_sum(Noise("gaussian", 10.0), 4, 0.95)
    39
    """
    miss = missed(confidence)
    if terms < 1:
        raise ValueError(f"a sum has at least one term, not {terms}")
    if terms == 1:
        return quantile(noise, confidence)
    if noise.kind == "laplace":
        return _laplace_sum(noise.scale, terms, miss)
    subgaussian = math.ceil(noise.scale * math.sqrt(2 * terms * math.log(2 / miss)) * (1 + 1e-12)) - 1
    wide = math.nextafter(noise.scale * math.sqrt(terms) * (1 + 1e-12), math.inf)
    if noise.scale < 0.5 or wide > MAX_SCALE:
        return subgaussian
    rate = (math.pi * noise.scale) ** 2
    tau = 5 * (math.exp(-rate) + (terms - 2) * math.exp(-rate * 4 / 3))  # j = 1, and j = 2 for every later j
    shrunk = 1 - miss * math.exp(-tau)
    return min(subgaussian, quantile(Noise("gaussian", wide), shrunk)) if shrunk < 1 else subgaussian


def _laplace_sum(b: float, terms: int, miss: float) -> int:
    p = -math.expm1(-1 / b)
    if p == 1.0:  # scale below 0.03: any draw but 0 has a chance below 1e-16
        p = math.nextafter(1.0, 0.0)
    chernoff = max(0, math.ceil(laplace_chernoff(b, terms, miss, close=1e-10) * (1 + 1e-12)) - 1)
    if terms > _MIXED:
        return chernoff
    from scipy.special import betaincc

    shape, weight = _laplace_mixture(p, terms)

    def holds(h: int) -> bool:  # Pr[S > h] is the mixture of Pr[NegativeBinomial(m, p) > h]; the factor covers rounding
        return 2 * float(weight @ betaincc(shape, h + 1.0, p)) * (1 + 1e-9) <= miss

    return _smallest(holds, near=chernoff)


def laplace_chernoff(b: float, terms: float, miss: float, *, close: float) -> float:
    """Chernoff's bar of a sum of Laplace draws, by the best share, up to `close`; `terms` may be a sum of squares."""
    from scipy.optimize import minimize_scalar

    log_p = math.log(-math.expm1(-1 / b))

    def half_width(share: float) -> float:  # t = share / b, 0 < share < 1; 1 - q e^t and 1 - q e^-t by expm1
        log_m = 2 * log_p - math.log(math.expm1((share - 1) / b) * math.expm1(-(share + 1) / b))
        return (terms * log_m + math.log(2 / miss)) * b / share

    best = minimize_scalar(
        lambda share: half_width(float(share)), bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": close}
    )
    return float(best.fun)


def _laplace_mixture(p: float, terms: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shapes m and weights with Pr[S = s] = sum of weight * Pr[NegativeBinomial(m, p) = s] for every s > 0.

    Partial fractions of the generating function p^2k / ((1-qz)(1-q/z))^k at z = 1/q: the weight of m = k - i is
    (1+q)^-k times the coefficient of v^i in ((1-pv)/(1-av))^k, a = 1/(1+q). That power series solves
    (1-pv)(1-av) F' = k(a-p) F, a three-term recurrence; run on ratios of neighbours, so that nothing overflows.
    """
    q = 1 - p
    a, d = 1 / (1 + q), q * q / (1 + q)  # d = a - p, without cancellation
    logs, ratio = np.zeros(terms), terms * d
    for n in range(1, terms):
        logs[n] = logs[n - 1] + math.log(ratio)
        ratio = ((a + p) * n + terms * d - a * p * (n - 1) / ratio) / (n + 1)
    weight = np.exp(logs - terms * math.log1p(q))
    kept = weight > 1e-30  # far below the smallest miss, 1e-16
    return np.arange(terms, 0, -1.0)[kept], weight[kept]


def missed(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is above 0 and below 1, not {confidence!r}")
    return 1 - confidence


def _smallest(holds: Callable[[int], bool], near: int) -> int:
    """The smallest h >= 0 at which a monotone condition holds, known to be at most about `near`."""
    low, high = 0, max(near, 1)
    while not holds(high):
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@lru_cache(maxsize=1024)
def _gaussian_sums(scale: float) -> tuple[float, float]:
    """The sums of w(z) and of z² w(z) over all integers z, w(z) = exp(-z²/(2 scale²))."""
    if scale > 10:  # by Poisson summation both differ from the integrals by a factor 1 + O(exp(-2 pi² scale²))
        total = scale * math.sqrt(2 * math.pi)
        return total, scale * scale * total
    z = np.arange(1, 402, dtype=np.float64)  # 40 standard deviations: what is left out is below every float
    with np.errstate(over="ignore"):
        weights = np.exp(-0.5 * (z / scale) * (z / scale))
    return float(1 + 2 * weights.sum()), float(2 * (z * z * weights).sum())


@lru_cache(maxsize=64)
def _gaussian_tails(scale: float) -> NDArray[np.float64]:
    """Pr[|Z| > h] for h = 0, 1, ..., summed from the far end, where the terms are smallest."""
    reach = math.ceil(_REACH * scale) + 2
    law = pmf(Noise("gaussian", scale), np.arange(reach, 0, -1))
    beyond = float(math.erfc(reach / (scale * math.sqrt(2))))  # at least Pr[|Z| > reach], proposition 25 again
    return np.append((2 * np.cumsum(law) + beyond)[::-1], beyond)
