"""The filter: plain sums against one total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.exact.bounds import delta_from
from tacit.exact.gaussian import within
from tacit.exact.price import admits, total
from tacit.model.budget import Budget, Loss, Measure
from tacit.release.epsilon import epsilon_spent

requests = st.lists(st.integers(0, 10**13), max_size=30)


@given(limit=st.integers(0, 10**13), asked=requests)
def test_admitted_requests_never_sum_to_more_than_the_total(limit: int, asked: list[int]) -> None:
    # Catches `request <= total` (the sum forgotten) and any rounding in the comparison.
    spent = 0
    for atoms in asked:
        fits = spent + atoms <= limit
        assert admits(spent, atoms, limit) == fits
        if fits:
            spent += atoms
    assert spent <= limit


def test_the_last_atom_can_be_spent_and_no_more() -> None:
    # Catches < for <=, and floats: 0.1 + 0.2 fits into 0.3 exactly.
    tenth, fifth, limit = (Loss.of("epsilon", amount).atoms for amount in (0.1, 0.2, 0.3))
    assert admits(tenth, fifth, limit)
    assert not admits(tenth, fifth + 1, limit)


def test_what_is_not_a_charge_is_an_error() -> None:
    # Catches a negative request, which would refill the budget. (`Ledger.reserve` refuses another measure.)
    for spent, request in [(0, -1), (-1, 0)]:
        with pytest.raises(ValueError, match="negative"):
            admits(spent, request, 10)


def test_epsilon_spent_is_what_the_budget_promised() -> None:
    pure = Budget(epsilon=2.0, delta=0)
    assert epsilon_spent(Loss.of("epsilon", 0.7), pure) == 0.7
    approximate = Budget(epsilon=1.0, delta=1e-9)
    measures: tuple[Measure, ...] = ("rho", "gdp")
    for measure in measures:
        whole = total(approximate, measure)
        assert epsilon_spent(whole, approximate) == pytest.approx(1.0, rel=1e-9)
        assert epsilon_spent(whole, approximate) <= 1 + 1e-12
        half = epsilon_spent(whole.split(2), approximate)
        assert 0.5 < half < 0.75  # half of rho is about 1/sqrt(2) of epsilon: catches a linear display
        if measure == "rho":
            assert delta_from(float(whole.split(2)), half) <= 1e-9
        else:
            assert within(whole.split(2).exact, half, 1e-9)
            assert not within(whole.split(2).exact, half * (1 - 1e-9), 1e-9)
        assert epsilon_spent(Loss(measure, 0), approximate) == 0
    for spent, budget in ((Loss("epsilon", 1), approximate), (Loss("rho", 1), pure)):
        with pytest.raises(ValueError, match="no spending"):
            epsilon_spent(spent, budget)
