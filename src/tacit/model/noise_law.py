"""The public laws of the integer noise: probabilities, variances and half widths. Formulas only; drawing is elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import erfc, erfcinv

NoiseKind = Literal["laplace", "gaussian"]
MAX_SCALE = 2.0**60  # beyond this, draws would pile up at the limits of a 64-bit integer

_SUMMED = 4096.0  # up to this scale a discrete Gaussian is summed term by term; above it, bounded by the continuous one
_REACH = 10  # standard deviations summed; what lies beyond is bounded and added, and is below 1e-22


@dataclass(frozen=True, slots=True)
class Noise:
    """Integer noise: Pr[z] is proportional to exp(-|z|/scale) (laplace) or exp(-z²/(2 scale²)) (gaussian), z an integer.

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

    >>> float(pmf(Noise("laplace", 1.0), 0))  # tanh(1/2)
    0.46211715726000973
    """
    steps = np.abs(np.asarray(z, dtype=np.float64)) / noise.scale
    if noise.kind == "laplace":
        return np.asarray(math.tanh(0.5 / noise.scale) * np.exp(-steps), dtype=np.float64)
    with np.errstate(over="ignore"):  # the square of a huge ratio is infinite, and its probability 0
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
    miss = _miss(confidence)
    if noise.kind == "gaussian":
        if noise.scale > _SUMMED:
            return math.ceil(noise.scale * (math.sqrt(2) * float(erfcinv(miss)) + 1e-12))
        tails = _gaussian_tails(noise.scale)
        return int(np.searchsorted(-tails, -miss))  # tails fall, so their negatives rise
    b = noise.scale

    def tail(h: int) -> float:  # Pr[|Z| > h]
        return 2 * math.exp(-(h + 1) / b) / (1 + math.exp(-1 / b))

    return _smallest(lambda h: tail(h) <= miss, near=math.floor(b * max(0.0, math.log(2 / miss))))


@lru_cache(maxsize=4096)
def quantile_of_sum(noise: Noise, terms: int, confidence: float) -> int:
    """An integer h with Pr[|Z_1 + ... + Z_terms| <= h] >= confidence, for independent draws; exact for one term.

    Any draws added up may be a fixed subset, so this bounds the error of a sum of released cells.

    Laplace: the Chernoff bound 2 M(t)^terms exp(-t(h+1)), minimised over t, with the exact moment generating function
    M(t) = (1-q)² / ((1 - q e^t)(1 - q e^-t)), q = exp(-1/scale). Every t gives a valid bound.
    Gaussian: the smaller of two bounds. (a) The sum is subgaussian with variance proxy terms * scale² (Canonne, Kamath
    & Steinke 2020, corollary 17). (b) For scale >= 1/2 the probabilities of the sum and of one discrete Gaussian of
    scale sqrt(terms) * scale differ by a factor of at most exp(tau), tau = 5 sum_j exp(-2 pi² scale² j/(j+1)) over
    j = 1 .. terms-1 (Kairouz, Liu & Steinke 2021, theorem 9 applied one term at a time); tau is bounded from above.

    >>> quantile_of_sum(Noise("gaussian", 10.0), 4, 0.95)
    39
    """
    miss = _miss(confidence)
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
    q, p = math.exp(-1 / b), -math.expm1(-1 / b)

    def half_width(share: float) -> float:  # t = share / b, 0 < share < 1
        t = share / b
        # 1 - q e^t and 1 - q e^-t without cancellation; q e^t = exp((share - 1)/b)
        log_m = 2 * math.log(p) - math.log(-math.expm1((share - 1) / b)) - math.log(-math.expm1(-(share + 1) / b))
        return (terms * log_m + math.log(2 / miss)) / t

    if q == 0.0:  # the noise is 0 but for a chance below every float
        return 0
    best = minimize_scalar(half_width, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-10})
    return max(0, math.ceil(float(best.fun) * (1 + 1e-12)) - 1)


def _miss(confidence: float) -> float:
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
    beyond = float(erfc(reach / (scale * math.sqrt(2))))  # at least Pr[|Z| > reach], proposition 25 again
    return np.append((2 * np.cumsum(law) + beyond)[::-1], beyond)
