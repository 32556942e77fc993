"""Quotients of weighted counts and their bars, against every truth that the bars allow."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Covariance, Mean, Variance
from tacit.model.attribute import category, integer, numeric
from tacit.model.domain import Domain
from tacit.model.formula import Figure, ratio, share
from tacit.model.query import Query

VALUES = st.floats(-50, 1e4, allow_nan=False)
WIDTHS = st.floats(0, 2e3, allow_nan=False)
NONE_OR_WIDE = st.one_of(st.just(0.0), st.floats(0.5, 2e3))
PLACES = st.floats(0, 1)


@given(VALUES, WIDTHS, PLACES, VALUES, WIDTHS, PLACES)
def test_no_truth_within_both_bars_is_farther_off_than_a_share_says(
    has: float, wide: float, at: float, lacks: float, wider: float, place: float
) -> None:
    found = share(Figure(has, wide), Figure(lacks, wider))
    assert 0 <= found.value <= 1
    # Counts are not below 0, so no truth is.
    part, rest = (max(0.0, low + (2 * t - 1) * w) for low, t, w in ((has, at, wide), (lacks, place, wider)))
    if found.error is None:
        assert max(has - wide, lacks - wider) <= 0  # there may be no row at all
    elif part + rest > 0:
        assert abs(part / (part + rest) - found.value) <= found.error + 1e-9
    else:
        # Whoever promises a value knows of a row: the truth is no such pair, but where it was cut at 0.
        assert min(has + (2 * at - 1) * wide, lacks + (2 * place - 1) * wider) < 0


def test_the_bar_of_a_share_is_that_of_one_part_by_the_whole() -> None:
    found = share(Figure(300.0, 20.0), Figure(700.0, 20.0))
    assert found.value == pytest.approx(0.3)
    assert found.error == pytest.approx(20 / 1000)
    whole = ratio(Figure(300.0, 20.0), Figure(1000.0, 20.0))
    assert whole.value == pytest.approx(0.3)
    assert whole.error == pytest.approx(320 / 980 - 0.3)  # 1.3 times as wide, and a little more
    assert share(Figure(700.0, 20.0), Figure(300.0, 20.0)).error == pytest.approx(20 / 1000)


def test_nothing_is_promised_of_a_share_of_nobody() -> None:
    assert share(Figure(3.0, 5.0), Figure(4.0, 5.0)).error is None
    assert share(Figure(3.0, None), Figure(400.0, 5.0)).error is None
    assert share(Figure(0.0, 5.0), Figure(400.0, 5.0)) == Figure(0.0, pytest.approx(5 / 400))
    assert share(Figure(0.0, 0.0), Figure(0.0, 0.0)) == Figure(0.5, None)


@given(st.integers(-50, 10_000), NONE_OR_WIDE, st.integers(-50, 10_000), NONE_OR_WIDE)
def test_only_what_is_certain_has_an_error_of_0(has: float, wide: float, other: float, wider: float) -> None:
    for quotient in (share, ratio):
        found = quotient(Figure(has, wide), Figure(other, wider))
        if found.error == 0:
            assert wide == 0 or (wider == 0 and quotient is share and other <= 0)  # a rest of nobody leaves all
            assert wider == 0 or found.value in (0.0, 1.0)


def test_a_quotient_outside_of_0_and_1_with_all_of_its_bar_has_that_bar() -> None:
    assert share(Figure(-8.0, 5.0), Figure(400.0, 5.0)) == Figure(0.0, pytest.approx(5 / 400))
    assert share(Figure(400.0, 5.0), Figure(-8.0, 5.0)) == Figure(1.0, pytest.approx(5 / 400))
    assert ratio(Figure(-8.0, 5.0), Figure(400.0, 5.0)) == Figure(0.0, pytest.approx(5 / 395))
    assert ratio(Figure(420.0, 5.0), Figure(400.0, 5.0)) == Figure(1.0, pytest.approx(1 - 395 / 405))
    assert (
        ratio(Figure(0.0, 0.0), Figure(400.0, 5.0)) == share(Figure(0.0, 0.0), Figure(400.0, 5.0)) == Figure(0.0, 0.0)
    )


def test_a_mean_by_its_rest_is_of_what_rows_have_and_of_what_they_lack() -> None:
    domain = Domain({"age": integer(0, 9, missing="unknown"), "sex": category(["F", "M"])})
    for mean in (Mean(domain, "age"), Mean(domain, "age", Query.among(domain, "sex", [0]))):
        has, lacks = (part.weights for part in mean.by_rest.parts)
        known = [one + other for one, other in zip(has, lacks, strict=True)]
        assert known == [pytest.approx(1.0)] * 10 + [0.0]  # who has no age is in neither
        assert mean.formula.parts[0].weights == has
        assert mean.formula.parts[1].weights == tuple(known)


@pytest.mark.parametrize("edge", [1e154, 1e160, 1e200])
def test_spreads_of_values_whose_squares_no_number_holds_are_refused(edge: float) -> None:
    wide = numeric([-edge, 0, edge])
    domain = Domain({"b": wide, "c": wide, "small": numeric([0, 1, 2])})
    for spread in (Variance(domain, "small"), Covariance(domain, ("b", "c"), correlation=True)):
        assert spread.formula.parts
    if edge > 1e154:  # bins stand for their middles, which are half as far apart
        for sample, root in product([False, True], repeat=2):
            with pytest.raises(InvalidQuery, match="no number holds"):
                Variance(domain, "b", sample=sample, root=root)
            with pytest.raises(InvalidQuery, match="no number holds"):
                Covariance(domain, ("b", "c"), sample=sample)
    else:
        assert Variance(domain, "b").formula.parts
