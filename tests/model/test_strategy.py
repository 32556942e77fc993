"""Strategies: their shapes, their forms, and what is refused as one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.workload import (
    MAX_WEIGHT,
    Convolution,
    Product,
    Strategy,
    Tree,
    check,
    from_dict,
    kernel,
    key,
    leaves,
    marginal,
    to_dict,
)

DOMAIN = Domain(
    {
        "age": integer(0, 9),
        "pay": integer(0, 6, missing="unknown", other="else"),
        "sex": category(["F", "M"]),
        "one": integer(0, 0),
    }
)
AGE, PAY = Tree("age", (2, 2, 3), (1, 2, 3)), Tree("pay", (4, 2), (1, 1))
GOOD: list[Strategy] = [
    AGE,
    PAY,
    Tree("age", (10,), (1,)),
    Tree("age", (2, 9), (1, 1)),
    Convolution("age", 50, cyclic=True),
    Convolution("age", 50, cyclic=False),
    Convolution("pay", 1, cyclic=True),
    Product(AGE, PAY),
    Product(Tree("age", (3, 4), (1, 3)), PAY, nested=True),
]


def test_a_tree_has_one_node_for_every_run_of_leaves() -> None:
    assert AGE.spans() == (6, 3, 1)
    assert AGE.widths(10) == (2, 4, 10)
    assert AGE.size(DOMAIN) == 16
    assert PAY.size(DOMAIN) == 4 + 8  # 7 bins, and one leaf for the missing and other values
    assert Product(AGE, PAY).size(DOMAIN) == 16 * 12
    assert Product(Tree("age", (3, 4), (1, 3)), PAY, nested=True).size(DOMAIN) == 3 * 4 + 10 * 8
    assert Convolution("pay", 50, cyclic=True).size(DOMAIN) == 8


def test_leaves_are_bins_and_one_more_for_the_rest() -> None:
    assert [leaves(DOMAIN[name]) for name in ("age", "pay", "one")] == [10, 8, 1]


@pytest.mark.parametrize("exponent", [0, 1, 30, 50, 60])
def test_the_kernel_is_the_rounded_power_series(exponent: int) -> None:
    exact, found = Fraction(2**16), []
    for k in range(300):
        found.append(round(exact))
        exact *= Fraction(100 * k + exponent, 100 * (k + 1))
    assert np.abs(kernel(300, exponent) - np.array(found)).max() <= (0 if exponent in (0, 50) else 1)


def test_the_kernel_cannot_be_changed_by_those_who_read_it() -> None:
    poisoned = kernel(8, 50)
    poisoned[:] = (
        2**36
    )  # a cached array, even one that is marked as read-only, could be changed after the price is known
    assert kernel(8, 50)[:4].tolist() == [65536, 32768, 24576, 20480]
    assert not np.shares_memory(kernel(8, 50), kernel(8, 50))


def test_products_stay_within_64_bits() -> None:
    wide = Tree("age", (2, 2), (1, MAX_WEIGHT)), Tree("income", (2, 2), (1, 2))
    pair = sorted(wide, key=lambda tree: tree.name)
    with pytest.raises(InvalidQuery, match="multiplied"):
        Product(*pair)


@pytest.mark.parametrize("strategy", GOOD)
def test_good_strategies_fit_and_come_back_from_their_form(strategy: Strategy) -> None:
    check(strategy, DOMAIN)
    assert from_dict(to_dict(strategy)) == strategy


def test_different_strategies_have_different_keys() -> None:
    questions = [*GOOD, Tree("age", (2, 2, 3), (1, 2, 4)), Convolution("age", 49, cyclic=True), marginal(DOMAIN, "age")]
    assert len({key(question) for question in questions}) == len(questions)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="no kind of question"):
        from_dict({"kind": "forest"})
    with pytest.raises(InvalidQuery, match="no kind of question"):
        from_dict({"kind": "product", "first": to_dict(AGE), "second": to_dict(GOOD[4])})
