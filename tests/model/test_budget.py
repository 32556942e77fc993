"""Budgets and losses: exact atoms, sums that never drift, and every bad number refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidBudget
from tacit.model.budget import ATOMS, Budget, Loss


def test_a_tenth_ten_times_is_one() -> None:
    # Floats give 0.9999999999999999.
    spent = Loss("epsilon", 0)
    for _ in range(10):
        spent += Loss.of("epsilon", 0.1)
    assert spent == Loss.of("epsilon", 1.0)
    assert spent.exact == 1


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_sums_of_decimals_are_exact(millionths: list[int]) -> None:
    spent = Loss("rho", 0)
    for part in millionths:
        spent += Loss.of("rho", part / 10**6)
    assert spent.exact == Fraction(sum(millionths), 10**6)
    left = Loss.of("rho", 100.0) - spent
    assert left.exact + spent.exact == 100


@given(st.fractions(min_value=0, max_value=1000))
def test_a_charge_is_never_rounded_down(amount: Fraction) -> None:
    loss = Loss.of("epsilon", amount)
    assert amount <= loss.exact < amount + Fraction(1, ATOMS)


@pytest.mark.parametrize("amount", [1e-300, 5e-324, Fraction(1, 10**40)])
def test_no_charge_is_so_small_that_it_is_free(amount: Fraction | float) -> None:
    assert Loss.of("rho", amount).atoms == 1
    assert Loss.of("rho", 0).atoms == 0


@given(st.integers(0, 10**18), st.integers(1, 10**6))
def test_a_split_can_be_spent_that_often_and_no_atom_more(atoms: int, parts: int) -> None:
    whole = Loss("epsilon", atoms)
    part = whole.split(parts)
    assert Loss("epsilon", part.atoms * parts) <= whole
    assert not Loss("epsilon", (part.atoms + 1) * parts) <= whole


def test_losses_of_two_measures_do_not_mix() -> None:
    epsilon, rho = Loss.of("epsilon", 1.0), Loss.of("rho", 1.0)
    for combine in (lambda: epsilon + rho, lambda: epsilon - rho, lambda: epsilon <= rho):
        with pytest.raises(ValueError, match="cannot combine epsilon with rho"):
            combine()
    assert epsilon != rho


def test_losses_print_as_people_write_them() -> None:
    assert str(Loss.of("epsilon", 0.1)) == "epsilon = 0.1"
    assert str(Loss("rho", 0)) == "rho = 0"
    assert float(Loss.of("epsilon", 0.25)) == 0.25


BAD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
    "1",
    b"1",
    None,
    [1.0],
    1j,
    Decimal(1),
    Fraction(1, 2),
    -1,
    -1e-300,
    10**400,
    -(10**400),
    1e300,
]


@pytest.mark.parametrize("bad", [*BAD, 0, 0.0, 1e-10, 1001, 2**63], ids=repr)
def test_bad_epsilons_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidBudget, match=r"epsilon is a number from 1e-09 to 1000, not .+\. Nothing was spent\."):
        Budget(epsilon=bad, delta=0)


@pytest.mark.parametrize(("bad", "said"), [(math.nan, "nan"), (-(10**400), "-inf"), (10**400, "inf")])
def test_what_is_no_number_is_named(bad: float, said: str) -> None:
    with pytest.raises(InvalidBudget, match=f"not {said}. Nothing was spent"):
        Budget(epsilon=bad, delta=0)


@pytest.mark.parametrize("bad", [*BAD, 0.51, 1, 2], ids=repr)
def test_bad_deltas_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidBudget, match=r"delta is a number from 0 to 0\.5, not .+\. Nothing was spent\."):
        Budget(epsilon=1.0, delta=bad)


def test_a_delta_that_means_nothing_is_refused() -> None:
    with pytest.raises(InvalidBudget, match="delta is 0 or at least 1e-100, not 1e-200"):
        Budget(epsilon=1.0, delta=1e-200)
    assert Budget(epsilon=1.0, delta=1e-100).measure == "gdp"


def test_epsilon_has_no_default_and_delta_is_the_strictest() -> None:
    assert Budget(epsilon=1.0) == Budget(epsilon=1.0, delta=0.0)
    for given_ in ({"delta": 0.0}, {}):
        with pytest.raises(TypeError):
            Budget(**given_)  # type: ignore[arg-type]


def test_delta_zero_is_pure_and_anything_else_is_not() -> None:
    pure, approximate = Budget(epsilon=1, delta=0), Budget(epsilon=1, delta=1e-9)
    assert (pure.measure, approximate.measure) == ("epsilon", "gdp")
    assert (str(pure), str(approximate)) == ("epsilon = 1 (pure)", "epsilon = 1, delta = 1e-09")
    assert pure == Budget(epsilon=1.0, delta=0.0)
    assert isinstance(pure.epsilon, float)
    with pytest.raises(AttributeError):
        pure.epsilon = 5.0  # type: ignore[misc]
