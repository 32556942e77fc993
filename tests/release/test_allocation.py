"""How a release divides its budget among the interactions of attributes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import tacit
from tacit.release.allocation import allocation

DOMAINS = [
    tacit.Domain({"a": tacit.integer(0, 5), "b": tacit.integer(0, 2), "c": tacit.boolean(), "d": tacit.integer(0, 3)}),
    tacit.Domain({name: tacit.integer(0, size - 1) for name, size in zip("abcde", (20, 12, 2, 7, 3), strict=True)}),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=["small", "larger"])
@pytest.mark.parametrize("amount", [1e-3, 0.02, 0.3, 4.0])
def test_no_exchange_between_interactions_takes_off_more(domain: tacit.Domain, amount: float) -> None:
    """A hundredth of what one kind of interactions gets takes off less of the error where another gets it."""
    plan = allocation(domain, 30_000)
    least, by_kind = plan.precisions(amount), np.zeros(len(plan._kinds))
    by_kind[plan._kind] = least
    prices = plan._reaches * np.bincount(plan._kind)
    best = plan.error(least)
    assert np.count_nonzero(by_kind) > 1
    for giver, taker in permutations(np.flatnonzero(by_kind), 2):
        moved = by_kind.copy()
        moved[giver] *= 0.99
        moved[taker] += by_kind[giver] / 100 * prices[giver] / prices[taker]
        assert plan.error(moved[plan._kind]) >= best * (1 - 1e-6)
