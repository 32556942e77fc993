"""Numbers that are exact, or rounded the safe way: floats above a fraction, what a rho amounts to, convolutions.

Called by `trusted`, and by whoever shows what was spent.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_POINTS, _PRIMES = 8, (2**31 - 1, 2**31 - 19)
_PROVED = 2.0**40  # up to this product of norms a convolution by floats, rounded, is exact: see `convolve`


def float_above(exact: Fraction) -> float:
    """The smallest float that is at least `exact`."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def root_above(exact: Fraction) -> float:
    """The smallest float whose square, taken exactly, is at least `exact`."""
    root = math.sqrt(exact)
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    while Fraction(lower := math.nextafter(root, 0.0)) ** 2 >= exact:
        root = lower
    return root


def delta_from(rho: float, epsilon: float) -> float:
    """A delta such that every rho-zCDP mechanism is (epsilon, delta)-DP.

    Guarantee: the returned delta is never too small: any order gives a valid bound, and rounding is allowed for.
    Formula: inf over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a, at most 1.
    Source: Canonne, Kamath & Steinke 2020, corollary 13.
    """
    return min(1.0, math.nextafter(math.exp(_log_delta(rho, epsilon)), math.inf))


def rho_from(epsilon: float, delta: float) -> float:
    """The largest rho, to float precision and rounded down, whose zCDP implies (epsilon, delta)-DP.

    Guarantee: delta_from(rho, epsilon) <= delta.
    Formula: bisection on delta_from, which grows with rho, up from Bun & Steinke's (sqrt(epsilon+L) - sqrt(L))².
    Source: Canonne, Kamath & Steinke 2020, corollary 13; the start is Bun & Steinke 2016, prop. 1.3, L = log(1/delta).
    """
    log = -math.log(delta)
    low = high = (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2 * (1 - 1e-9)
    while delta_from(high, epsilon) <= delta:
        low, high = high, 2 * high
    while low < (middle := math.sqrt(low * high)) < high and high - low > 1e-15 * high:
        low, high = (middle, high) if delta_from(middle, epsilon) <= delta else (low, middle)
    return low


def _log_delta(rho: float, epsilon: float) -> float:
    """log of delta_from. With u = a - 1: u(1+u) rho - u epsilon - u log(1 + 1/u) - log(1+u), a convex function of u."""
    if rho <= 0:
        return -math.inf
    low, high = 1e-150, max(1.0, min(1e150, (epsilon + 1) / rho))  # at the upper end the derivative is positive
    while high > low * (1 + 1e-9):  # the optimum is flat: this error in u moves the value by 1e-18
        u = math.sqrt(low) * math.sqrt(high)
        falling = (2 * u + 1) * rho - epsilon < math.log1p(1 / u)
        low, high = (u, high) if falling else (low, u)
    terms = (high * rho * (1 + high), -high * epsilon, -high * math.log1p(1 / high), -math.log1p(high))
    # Each term is right to a few units in its last place; the margin exceeds what their sum can be off by.
    return math.fsum(terms) + 1e-15 * sum(map(abs, terms))


def passing_count(scale: float, values: int, move: int, delta: float) -> int:
    """The least count from which on noisy counts may be told of values that neighbours need not have in common.

    Guarantee: for discrete Gaussian noise Z, the chance that any of `values` counts of at most `move` comes so far with
        its noise is at most `delta`.
    Formula: the least whole T with values · Pr[N(0, scale²) >= T - move - 1] <= delta, as Pr[Z >= x] is at most
        Pr[N(0, scale²) >= x - 1]. `math.erfc` is right to a few units in its last place; the margin exceeds that.
    Source: Canonne, Kamath & Steinke 2020, proposition 25; a union bound.
    """
    if not 0 < delta < 1 or values < 1 or move < 1:
        raise ValueError(f"no threshold keeps {values} counts of {move} within delta = {delta}")

    def kept(t: int) -> bool:
        return values * math.erfc((t - move - 1) / (scale * math.sqrt(2))) / 2 * (1 + 1e-9) <= delta

    low, high = move, move + 2
    while not kept(high):
        low, high = high, move + 2 * (high - move)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def convolve(counts: Counts, factor: Counts, *, most: int) -> Counts:
    """The exact linear convolution of two non-negative integer vectors; `most` publicly bounds the first's norm.

    Guarantee: what is returned is exact, but for a chance of 2^-80 of not noticing that it is not, whatever the
        transform does. How it is worked out depends on sizes, the factor and `most`, never on single counts.
    Formula: floats, rounded, and then checked in whole numbers: see `_rounded`. For transforms of length 2^m the error
        of an entry should be below |x| |y| ((1+e)^(3m) (1+e sqrt 5)^(3m+1) (1+b)^(3m) - 1), e = 2^-53, |x| and |y| the
        Euclidean norms and b the error of the roots of unity: below 2^-44 |x| |y| for m <= 23 and b <= e, so below 1/16
        up to a product of 2^40. Counts whose norm could be larger are split into digits first.
    Source: Percival 2003, theorem 5.1, and Brent, Percival & Zimmermann 2007, for a plain transform of radix 2; which
        one numpy uses, no proof need know. Schwartz 1980 and Zippel 1979 for the check.
    """
    norm = math.sqrt(float(np.dot(factor.astype(np.float64), factor))) + 1
    if norm >= _PROVED:
        raise ValueError("the factor is too large for an exact convolution")
    length = 1 << max(0, counts.size + factor.size - 2).bit_length()
    if most * norm <= _PROVED:
        return _rounded(counts, factor, length)
    bits = math.floor(math.log2(_PROVED / norm / math.sqrt(counts.size)))
    if bits < 1:
        raise ValueError("the vectors are too long for an exact convolution")
    found = np.zeros(counts.size + factor.size - 1, dtype=np.int64)
    for shift in range(0, most.bit_length(), bits):
        found += _rounded((counts >> shift) & ((1 << bits) - 1), factor, length) << shift
    return found


def shift_distances(g: Counts, *, cyclic: bool) -> tuple[int, int]:
    """How far apart two columns of a convolution's matrix are at most: in L1, and in L2, squared.

    Columns are copies of the kernel g, one shifted by j against the other. Cyclic: |g|² + |g|² - 2 r_j, r_j the cyclic
    autocorrelation. Not cyclic: column i ends after size - i entries, and the squared distance of columns i < i + j is
    a sum of size - i squares that do not depend on i otherwise: so i = 0 is the worst, with |g|² + (sum of the first
    size - j squares of g) - 2 r_j, r_j the plain autocorrelation.
    """
    if g.size == 1:
        return 0, 0
    both_sides = convolve(g, g[::-1].copy(), most=math.isqrt(int(np.dot(g, g))) + 1)
    overlap = both_sides[g.size - 1 :]  # Σ g_i g_(i+j) for j = 0, 1, ...
    norm = int(overlap[0])
    if cyclic:
        distances = 2 * (norm - overlap[1:] - overlap[1:][::-1])
    else:
        distances = norm + np.cumsum(g * g)[:-1][::-1] - 2 * overlap[1:]
    return 2 * int(g.sum()), int(distances.max())


def _rounded(counts: Counts, factor: Counts, length: int) -> Counts:
    """The convolution of vectors whose norms multiply to at most 2^40, by floats; refused unless it is right.

    As polynomials, counts(z) factor(z) = found(z). Were an entry wrong, then by less than 2^42, as all are between 0
    and 2^41: so the difference is not the zero polynomial modulo both primes, whose product is above 2^61. Modulo one
    where it is not, of degree below 2^21, it has as many roots at most: a random z of 2^31 is one with a chance below
    2^-10, and eight of them with one below 2^-80.
    """
    spectra = np.fft.rfft(counts.astype(np.float64), length), np.fft.rfft(factor.astype(np.float64), length)
    product = np.fft.irfft(spectra[0] * spectra[1], length)
    found = np.rint(product[: counts.size + factor.size - 1]).astype(np.int64)
    right = int(found.min()) >= 0 and int(found.max()) <= 2 * _PROVED
    points = np.frombuffer(os.urandom(8 * _POINTS), dtype=np.uint64)
    if not right or any(_differ(counts, factor, found, int(z % p), p) for z in points for p in _PRIMES):
        raise ArithmeticError("a convolution by floats was not exact")
    return found


def _differ(counts: Counts, factor: Counts, found: Counts, z: int, prime: int) -> bool:
    """Whether counts(z) factor(z) and found(z) differ modulo a prime below 2^31: no product passes 2^62."""
    powers = np.ones(1, dtype=np.int64)
    while powers.size < found.size:
        powers = np.concatenate([powers, powers * pow(z, powers.size, prime) % prime])
    at = [int((values % prime * powers[: values.size] % prime).sum()) % prime for values in (counts, factor, found)]
    return at[0] * at[1] % prime != at[2]
