"""What was spent, as an epsilon: for people to read. Charges are counted, and refused, in the budget's own measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from tacit.exact.bounds import delta_from
from tacit.exact.gaussian import within
from tacit.model.budget import Budget, Loss


def epsilon_spent(spent: Loss, budget: Budget) -> float:
    """The epsilon that the amount spent so far amounts to, at the budget's delta.

    Guarantee: mechanisms whose losses add up to `spent` are together (epsilon, budget.delta)-DP, epsilon being the
        decimal that the returned float prints as.
    Formula: epsilon itself, or the least at which the delta of what was spent, by the exact curve of the Gaussian for
        gdp and by zCDP's for rho, is at most the budget's; rounded up.
    Source: `exact.gaussian.within`; `exact.bounds.delta_from`.
    """
    if (spent.measure == "epsilon") != (budget.delta == 0):
        raise ValueError(f"{budget} has no spending in {spent.measure}")
    if spent.atoms == 0:
        return 0.0
    if spent.measure == "epsilon":
        return float(spent)
    if spent.measure == "gdp":
        return epsilon_of_half(spent.exact, budget.delta)
    return epsilon_from(math.nextafter(float(spent), math.inf), budget.delta)


@lru_cache(maxsize=1024)
def epsilon_of_half(half: Fraction, delta: float) -> float:
    """The smallest epsilon, to float precision and rounded up, that mu-GDP with mu² = 2 half implies at this delta."""
    return _least(lambda epsilon: within(half, epsilon, delta), _classic(float(half), delta))


def epsilon_from(rho: float, delta: float) -> float:
    """The smallest epsilon, to float precision and rounded up, that rho-zCDP implies at this delta.

    Guarantee: delta_from(rho, epsilon) <= delta.
    Source: Canonne, Kamath & Steinke 2020, corollary 13, as `rho_from`.
    """
    return _least(lambda epsilon: delta_from(rho, epsilon) <= delta, _classic(rho, delta))


def _classic(rho: float, delta: float) -> float:
    return (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-9)


def _least(holds: Callable[[float], bool], high: float) -> float:
    """The smallest epsilon for which something holds, which does for `high` and for all that is larger."""
    if holds(0.0):
        return 0.0
    low = 0.0
    while low < (middle := (low + high) / 2) < high and high - low > 1e-15 * high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
