"""Whether one more charge fits into the budget, and what was spent in words an owner knows. Called by the ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.model.budget import Budget, Loss
from tacit.trusted.loss import epsilon_from


@dataclass(frozen=True, slots=True)
class Filter:
    """A privacy filter: charges are admitted while their plain sum stays within `total`.

    The questions, their mechanisms and their prices may depend on everything released before; only `total` is fixed.

    Guarantee: all releases together are total-DP (pure epsilon) or total-zCDP (rho), however adaptively chosen.
    Formula: spent + request <= total, in whole atoms.
    Source: Rogers, Roth, Ullman & Vadhan 2016 (pure); Feldman & Zrnic 2021, Whitehouse et al. 2023 (zCDP).
    """

    total: Loss

    def admits(self, spent: Loss, request: Loss) -> bool:
        """Whether `request` may be charged after `spent`. Another measure than the total's is an error, not a no.

        Guarantee: a sequence of admitted requests never sums to more than `total`.
        Formula: spent + request <= total.
        Source: the class.
        """
        if spent.atoms < 0 or request.atoms < 0:
            raise ValueError("a charge cannot be negative: nothing gives budget back")
        return spent + request <= self.total


def epsilon_spent(spent: Loss, budget: Budget) -> float:
    """The epsilon that the amount spent so far amounts to, at the budget's delta. For display.

    Guarantee: what was released so far is (epsilon_spent, budget.delta)-DP.
    Formula: epsilon itself, to the nearest float, or loss.epsilon_from(rho, delta), rounded up.
    Source: Canonne, Kamath & Steinke 2020, corollary 13.
    """
    if spent.measure != budget.measure:
        raise ValueError(f"a budget counted in {budget.measure} has no spending in {spent.measure}")
    if spent.atoms == 0:
        return 0.0
    if spent.measure == "epsilon":
        return float(spent)
    return epsilon_from(math.nextafter(float(spent), math.inf), budget.delta)
