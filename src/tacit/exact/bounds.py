"""Numbers that are rounded the safe way: floats above an exact one, and what a rho amounts to as epsilon and delta.

Called by `trusted.loss`, and by whoever shows what was spent.
"""

from __future__ import annotations

import math
from fractions import Fraction


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
