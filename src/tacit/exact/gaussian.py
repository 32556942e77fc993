"""The exact privacy curve of the Gaussian mechanism, in decimals of as many digits as it takes.

Called by `trusted`, and by whoever shows what was spent. "half" is half the square of mu, the distance of two normal
laws of variance 1: what the losses of a Gaussian account add up in.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

ATOMS = 10**12  # in one unit: what losses are counted in
_GUARD = 40  # digits beyond those of delta
_STEPS = 100  # of Newton; about ten are taken
_MARGIN = Decimal("1e-20")  # of delta; the errors below are smaller than 1e-30 of it
_SHORT = Context(prec=40)


def within(half: Fraction, epsilon: float, delta: float) -> bool:
    """Whether every mu-GDP mechanism, mu² = 2 half, is (epsilon, delta)-DP.

    Guarantee: never true if it is not so; false in error only if delta is met to within 1e-20 of itself. A float means
        the decimal that it prints as.
    Formula: Pr[N >= epsilon/mu - mu/2] - e^epsilon Pr[N >= epsilon/mu + mu/2] <= delta.
    Source: Balle & Wang 2018, theorem 8; Dong, Roth & Su 2022, corollary 2.13.
    """
    limit = Decimal(repr(delta))
    return half <= 0 or _curve(half, Decimal(repr(epsilon)), limit)[0] <= limit * (1 - _MARGIN)


@lru_cache(maxsize=1024)
def half_from(epsilon: float, delta: float) -> Fraction:
    """The largest half, in whole atoms, that is within (epsilon, delta).

    Guarantee: `within` holds for it. At least 0, for which it holds always.
    Formula: Newton's steps on log delta, whose derivative is the normal density; then down until `within` agrees.
    """
    goal, exact = Decimal(repr(delta)), Decimal(repr(epsilon))
    log = -math.log(delta)
    half = Fraction((epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2)  # zCDP's, which is smaller
    for _ in range(_STEPS):
        found, slope = _curve(half, exact, goal)
        if found <= 0:
            half *= 2
            continue
        step = Fraction(_SHORT.divide(_SHORT.multiply(found, _SHORT.ln(_SHORT.divide(goal, found))), slope))
        half = max(half / 2, half + step)
        if abs(step) < half / 4 and abs(step) * ATOMS < Fraction(1, 4):
            break
    most = math.floor(half * ATOMS) + 1
    while not within(Fraction(most, ATOMS), epsilon, delta):
        most -= 1
    return Fraction(most, ATOMS)


def _curve(half: Fraction, epsilon: Decimal, delta: Decimal) -> tuple[Decimal, Decimal]:
    """The delta of a half above 0 at epsilon, and how fast it grows with half; right to 1e-30 of `delta`.

    The tails come from 1/2 by subtraction, right to 10^(2 - digits) times the number of terms, and the second one is
    multiplied by e^epsilon: as many digits more are carried.
    """
    digits = _GUARD + math.ceil(-delta.log10()) + math.ceil(float(epsilon) / math.log(10))
    with_ = Context(prec=digits, Emin=-(10**9), Emax=10**9)
    mu = with_.sqrt(with_.divide(Decimal(2 * half.numerator), Decimal(half.denominator)))
    far, middle = with_.divide(epsilon, mu), with_.divide(mu, Decimal(2))
    low, high = with_.subtract(far, middle), with_.add(far, middle)
    found = with_.subtract(_tail(low, with_), with_.multiply(with_.exp(epsilon), _tail(high, with_)))
    return found, _SHORT.divide(_density(low, with_), mu)


def _tail(x: Decimal, with_: Context) -> Decimal:
    """Pr[N >= x] = 1/2 - density(x) (x + x³/3 + x⁵/15 + x⁷/105 + …): for x > 0 no term of the series is negative.

    Cut where a term is below 10^-digits of the sum, and less than half of the one before: what follows is smaller.
    """
    square, odd = with_.multiply(x, x), 1
    term = added = x.copy_abs()  # `abs` would round to the digits of another context
    tiny = Decimal(10) ** -with_.prec
    while term and (odd < 2 * square or term > with_.multiply(tiny, added)):
        odd += 2
        term = with_.divide(with_.multiply(term, square), Decimal(odd))
        added = with_.add(added, term)
    part = with_.multiply(_density(x, with_), added)
    return with_.subtract(Decimal("0.5"), part if x > 0 else part.copy_negate())


def _density(x: Decimal, with_: Context) -> Decimal:
    power = with_.exp(with_.divide(with_.multiply(x, x), Decimal(-2)))
    more = with_.prec + 10
    return with_.divide(power, with_.sqrt(with_.scaleb(Decimal(_two_pi(more)), -more)))


@lru_cache(maxsize=64)
def _two_pi(digits: int) -> int:
    """2 pi to `digits` digits but the last few, by Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""

    def atan(inverse: int) -> int:
        power: int = 10**digits // inverse
        total = power
        sign, odd = -1, 3
        while power:
            power //= inverse * inverse
            total += sign * (power // odd)
            sign, odd = -sign, odd + 2
        return total

    return 32 * atan(5) - 8 * atan(239)
