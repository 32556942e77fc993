"""Integer noise by exact inversion, for long vectors. Called by `trusted.noise` only.

A number U, uniform on [0, 1), is known by its first bits only. The cumulative probabilities F(0), F(1), … of the law
are enclosed between integers over the same power of two, rounded outwards. If everything that U may still become lies
between two neighbours of F by these bounds, the draw is decided; if not, U gets more bits and F more precision. So the
law is the exact one, although nearly every draw is one search in a table of 64-bit words. (Knuth & Yao 1976 for bits
read as needed; Devroye 1986, chapter II.2 and III.2, for inversion.)

How long a draw takes depends on the law, on the size asked for and, a little, on the random bits: a search takes about
as many steps for every outcome. The values that the noise is for never come here.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.model.noise_law import Noise

DrawWords = Callable[[int], NDArray[np.uint64]]  # as many fresh words as asked for

_WIDTH = 64
_GUARD = 64  # bits of the weights beyond those of F; with fewer than 10 the sums would never end
_CHUNK = 1 << 15  # draws at a time, so that the words stay in the processor's cache
_DIGIT = 8  # bits to a digit of a wide geometric draw
_LARGEST = 1 << 17  # entries of a table: 2 MB
_WIDEST = 2.0**40  # of the scales; a draw beyond 64 bits then has a chance below exp(-2**22)


@dataclass(frozen=True, slots=True)
class Law:
    """The law of an index k = 0, 1, …: Pr[k] ∝ exp(-(k first + k(k-1)/2 then)), k < end.

    With then = 0 it is geometric; with then = 2 first it is the right half of a discrete Gaussian. If `folded`, 0
    weighs half: k is then the magnitude of a symmetric draw, and 0 is the one magnitude without two signs.
    """

    first: Fraction
    then: Fraction = Fraction(0)
    end: int | None = None
    folded: bool = False


Cuts = tuple[list[int], list[int]]


def enclose(law: Law, bits: int) -> Cuts:
    """Whole numbers `upper` and `lower` around the cumulative probabilities F(k) of a law.

    Guarantee: lower[k] <= 2**bits F(k) for every k listed; 2**bits F(k) <= upper[k], which lists those below 2**bits.
        There is one more lower than upper, so an index from a search in `upper` is an index into `lower`.
    Formula: weights by w(k+1) = w(k) r(k), r(k+1) = r(k) exp(-then), in whole numbers rounded outwards. The ratios r
        never grow, so what is left out after k is at most w(k+1) / (1 - r(k+1)).
    Source: interval arithmetic (Moore 1966); the tail is a geometric series.
    """
    unit = bits + _GUARD
    one = 1 << unit
    (r_low, r_high), (h_low, h_high) = enclose_exp(law.first, unit), enclose_exp(law.then, unit)
    if law.end is None and r_high >= one:
        raise ArithmeticError(f"{law} is too wide for {bits} bits")  # its weights would never seem to fall
    w_low = w_high = one
    sum_low = sum_high = one >> 1 if law.folded else one
    sums_low, sums_high = [sum_low], [sum_high]
    end = law.end or math.inf
    while len(sums_low) < end:
        w_low, w_high = w_low * r_low >> unit, -(-w_high * r_high >> unit)
        r_low, r_high = r_low * h_low >> unit, -(-r_high * h_high >> unit)
        if not w_high >> _GUARD // 2:  # what is left is far below the last bit of F
            break
        sum_low, sum_high = sum_low + w_low, sum_high + w_high
        sums_low.append(sum_low)
        sums_high.append(sum_high)
    whole = len(sums_low) == end
    rest = 0 if whole else -(-(w_high << unit) // (one - r_high))
    # Multiplying by a rounded reciprocal is a division rounded outwards, and faster.
    to_low, to_high = (one << unit) // (sum_high + rest), -(-(one << unit) // sum_low)
    down = 2 * unit - bits
    upper = [-(-s * to_high >> down) for s in sums_high]
    lower = [s * to_low >> down for s in sums_low]
    if whole:
        lower[-1] = 1 << bits  # the last of finitely many has F = 1, exactly
    count = next((k for k, bound in enumerate(upper) if bound >= 1 << bits), len(upper))
    return upper[:count], [*lower, 0][: count + 1]  # 0 decides nothing


def enclose_exp(x: Fraction, unit: int) -> tuple[int, int]:
    """Whole numbers around 2**unit exp(-x), x >= 0, that differ by little: the exponential series, halved arguments."""
    if x == 0:
        return 1 << unit, 1 << unit
    if x > unit:
        return 0, 1  # exp(-unit) < 2**-unit
    halvings = int(x).bit_length() + 1
    fine = unit + halvings + 32
    y = x / (1 << halvings)  # at most 1/2
    y_low = (y.numerator << fine) // y.denominator
    y_high = -(-(y.numerator << fine) // y.denominator)
    low = high = term_low = term_high = 1 << fine
    i = 0
    while term_high > 1:
        i += 1
        term_low, term_high = term_low * y_low // (i << fine), -(-term_high * y_high // (i << fine))
        low, high = low + term_low, high + term_high
    high += 1  # the last term was at most 1, and y <= 1/2: all later ones together are no more than that
    low, high = (1 << 2 * fine) // high, -(-(1 << 2 * fine) // low)
    for _ in range(halvings):
        low, high = low * low >> fine, -(-high * high >> fine)
    return low >> fine - unit, -(-high >> fine - unit)


def system_words(count: int) -> NDArray[np.uint64]:
    """Fresh 64-bit words.

    Guarantee: every word comes from the operating system's generator, which is taken for uniform and independent. No
        state is kept here that a fork could copy or a seed repeat.
    Formula: os.urandom. Source: getrandom(2).
    """
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def draw(law: Law, size: int, words: DrawWords = system_words, width: int = _WIDTH) -> NDArray[np.int64]:
    """`size` independent draws of an index.

    Guarantee: exactly the law, if `words` are independent and uniform over the numbers of `width` bits.
    Formula: k with F(k-1) <= U < F(k), when upper[k-1] <= u and u + 1 <= lower[k] for the bits u of U read so far.
    Source: see the module.
    """
    upper, lower = _table(law, width)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        u = words(min(_CHUNK, size - start))
        k = np.searchsorted(upper, u, side="right")
        drawn[start : start + len(u)] = k
        for i in np.flatnonzero(u >= lower[k]):
            drawn[start + i] = _decide(law, int(u[i]), words, width)
    return drawn


def _decide(law: Law, u: int, words: DrawWords, width: int) -> int:
    """The index for a U whose first word says too little: more words, until it is decided."""
    bits = width
    while True:
        u, bits = u << width | int(words(1)[0]), bits + width
        upper, lower = _finer(law, bits)
        k = bisect_right(upper, u)
        if u < lower[k]:
            return k


@lru_cache(maxsize=32)  # at most 64 MB
def _table(law: Law, bits: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    upper, lower = enclose(law, bits)
    top = 2**64 - 1  # 2**64 itself does not fit; a bound that is lower still holds
    return np.array(upper, dtype=np.uint64), np.array([min(bound, top) for bound in lower], dtype=np.uint64)


@lru_cache(maxsize=4)  # needed less than once in 2**46 draws
def _finer(law: Law, bits: int) -> Cuts:
    return enclose(law, bits)


def suits(noise: Noise, size: int) -> bool:
    """Whether `size` draws are faster from tables, even if these must be made first.

    Only public numbers decide. A draw elsewhere costs at least as much as eight entries (benchmarks/bench_noise.py).
    """
    if noise.scale > _WIDEST:
        return False
    laplace = noise.kind == "laplace"
    entries = (len(_digits(noise.scale)) + 1) << _DIGIT if laplace else math.ceil(10 * noise.scale) + 10
    return entries <= min(_LARGEST, 8 * size)


def draw_noise(noise: Noise, size: int) -> NDArray[np.int64]:
    """`size` independent draws of `noise`.

    Guarantee: exactly the law of `noise`.
    Formula: gaussian: a magnitude, and a fair sign. laplace: a geometric g, which stands for g or for -1 - g; as
        Pr[-1 - g] = exp(-1/scale) Pr[g] for every g, the choice is independent of g, with odds 1 to exp(-1/scale).
    Source: the laws' definitions.
    """
    scale = Fraction(noise.scale)
    if noise.kind == "laplace":
        return draw_one_sided(noise.scale, size) ^ -draw(Law(1 / scale, end=2), size)  # g ^ -1 = -1 - g
    magnitude = draw(Law(1 / (2 * scale**2), 1 / scale**2, folded=True), size)
    signs = np.unpackbits(np.frombuffer(os.urandom(-(-size // 8)), dtype=np.uint8), count=size)
    return np.where(signs, -magnitude, magnitude)


def draw_one_sided(scale: float, size: int) -> NDArray[np.int64]:
    """`size` independent draws of one-sided exponential noise over 0, 1, 2, …

    Guarantee: exactly the law Pr[z] ∝ exp(-z/scale).
    Formula: for z = u + t v, 0 <= u < t: exp(-z/scale) = exp(-u/scale) exp(-v/(scale/t)). So the digits of z in any
        base t are independent, and each needs a table of t entries only.
    Source: Canonne, Kamath & Steinke 2020, algorithm 2, splits z in the same way.
    """
    drawn = np.zeros(size, dtype=np.int64)
    for place, law in enumerate(_digits(scale)):
        digit = draw(law, size)
        if digit.max(initial=0) >> 62 - _DIGIT * place:  # see _WIDEST; better no answer than one that wraps around
            raise OverflowError("a draw of noise beyond 64 bits")
        drawn += digit << _DIGIT * place
    return drawn


@lru_cache(maxsize=256)
def _digits(scale: float) -> tuple[Law, ...]:
    """The laws of a geometric draw's digits, the lowest first; the highest has no end, and a scale of at most 8."""
    rest, laws = Fraction(scale), []
    while rest > 8:
        laws.append(Law(1 / rest, end=1 << _DIGIT))
        rest /= 1 << _DIGIT
    return (*laws, Law(1 / rest))
