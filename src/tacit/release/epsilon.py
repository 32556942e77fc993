"""What was spent, as an epsilon: for people to read. Charges are counted, and refused, in the budget's own measure."""

from __future__ import annotations

import math

from tacit.exact.bounds import delta_from
from tacit.model.budget import Budget, Loss


def epsilon_spent(spent: Loss, budget: Budget) -> float:
    """The epsilon that the amount spent so far amounts to, at the budget's delta.

    Guarantee: what was released so far is (epsilon_spent, budget.delta)-DP.
    Formula: epsilon itself, to the nearest float, or epsilon_from(rho, delta), rounded up.
    Source: Canonne, Kamath & Steinke 2020, corollary 13.
    """
    if spent.measure != budget.measure:
        raise ValueError(f"a budget counted in {budget.measure} has no spending in {spent.measure}")
    if spent.atoms == 0:
        return 0.0
    if spent.measure == "epsilon":
        return float(spent)
    return epsilon_from(math.nextafter(float(spent), math.inf), budget.delta)


def epsilon_from(rho: float, delta: float) -> float:
    """The smallest epsilon, to float precision and rounded up, that rho-zCDP implies at this delta.

    Guarantee: delta_from(rho, epsilon) <= delta.
    Formula: bisection on delta_from, which falls with epsilon, down from rho + 2 sqrt(rho log(1/delta)).
    Source: Canonne, Kamath & Steinke 2020, corollary 13, as `rho_from`.
    """
    if delta_from(rho, 0.0) <= delta:
        return 0.0
    low, high = 0.0, (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-9)
    while low < (middle := (low + high) / 2) < high and high - low > 1e-15 * high:
        low, high = (low, middle) if delta_from(rho, middle) <= delta else (middle, high)
    return high
