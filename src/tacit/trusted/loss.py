"""The whole budget as one amount, and whether one more charge fits into it. Exact; called by the ledger's rules.

What a single release costs is worked out in `exact/price.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.errors import InvalidBudget
from tacit.exact.bounds import rho_from
from tacit.exact.gaussian import half_from
from tacit.model.budget import ATOMS, Budget, Loss, Measure

MOST_PER_PERSON = 10_000  # rows of one person that neighbours may differ in


def total(budget: Budget, measure: Measure | None = None) -> Loss:
    """The whole budget as an amount that charges are summed against; in `budget.measure` by default.

    Guarantee: mechanisms whose losses in this measure sum to at most this are together (epsilon, delta)-DP.
    Formula: epsilon itself, or the exact curve of the Gaussian for gdp, zCDP's for rho; rounded down to whole atoms.
    Source: see `exact.gaussian.within` and `exact.bounds.delta_from`.
    """
    measure = budget.counted_in(measure)
    if measure == "epsilon":
        exact = Fraction(repr(budget.epsilon))  # the decimal the owner wrote
    else:
        exact = Fraction((half_from if measure == "gdp" else rho_from)(budget.epsilon, budget.delta))
    atoms = math.floor(exact * ATOMS)
    if atoms == 0:
        raise InvalidBudget(f"{budget} is less than the smallest amount that is counted, {measure} = 1e-12.")
    return Loss(measure, atoms)


def admits(spent: int, request: int, total: int) -> bool:
    """A privacy filter: whether one more charge may follow what was spent, all in atoms of one measure.

    Guarantee: all releases together are epsilon-DP, rho-zCDP or mu-GDP, of total or mu²/2 = total. The questions, their
        mechanisms and their prices may depend on everything released before; only `total` is fixed.
    Formula: spent + request <= total.
    Source: docs/understand/privacy.md, step 4 and "The filter".
    """
    if spent < 0 or request < 0:
        raise ValueError("a charge cannot be negative: nothing gives budget back")
    return spent + request <= total
