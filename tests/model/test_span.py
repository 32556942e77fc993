"""The intervals of expressions over released values hold the truth, whatever the parts are within their bars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from operator import add, mul, sub, truediv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.model.calculation import (
    NO_LIMITS,
    OPERATIONS,
    Case,
    Constant,
    End,
    Given,
    Operation,
    Outer,
    Relation,
    evaluate,
)
from tacit.model.span import Spans, Texts, Verdicts, around, chosen, first_known

COLUMNS, ROWS = 3, 4
NUMBER = st.integers(-1000, 1000).map(float) | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 0.5, -0.5, 1e-9])
BAR = st.integers(0, 200).map(float) | st.floats(0, 1e4) | st.just(0.0)
NUMBERS = st.lists(NUMBER, min_size=ROWS, max_size=ROWS)
BARS = st.lists(BAR, min_size=ROWS, max_size=ROWS)
PLACES = st.lists(st.floats(-1, 1) | st.sampled_from([-1.0, 1.0]), min_size=ROWS, max_size=ROWS)  # within a bar
LEAF = st.integers(0, COLUMNS - 1).map(Given) | NUMBER.map(Constant)
PLAIN = {"+": add, "-": sub, "*": mul, "/": truediv}  # those that rational numbers have exactly


def operations(numbers: st.SearchStrategy[Outer]) -> st.SearchStrategy[Outer]:
    two = ["+", "-", "*", "/", "least", "greatest", "coalesce", "nullif"]
    one = ["negative", "abs", "floor", "ceil", "sqrt", "ln"]
    truth = st.builds(
        lambda name, a, b: Operation(name, (a, b)), st.sampled_from(["<", "<=", ">", ">=", "="]), numbers, numbers
    )
    joined = st.builds(lambda name, a, b: Operation(name, (a, b)), st.sampled_from(["and", "or"]), truth, truth)
    condition = truth | joined | truth.map(lambda a: Operation("not", (a,)))
    return st.one_of(
        st.builds(lambda name, a, b: Operation(name, (a, b)), st.sampled_from(two), numbers, numbers),
        st.builds(lambda name, a: Operation(name, (a,)), st.sampled_from(one), numbers),
        st.builds(
            lambda name, a, d: Operation(name, (a,), d), st.sampled_from(["round", "power"]), numbers, st.integers(1, 4)
        ),
        st.builds(lambda c, a, b: Case(((c, a),), b), condition, numbers, numbers),
    )


EXPRESSION = st.recursive(LEAF | st.just(Constant(None)), operations, max_leaves=8)
ARITHMETIC = st.recursive(
    LEAF,
    lambda of: st.builds(lambda name, a, b: Operation(name, (a, b)), st.sampled_from(list(PLAIN)), of, of),
    max_leaves=8,
)


def relation(columns: list[Spans]) -> Relation:
    return Relation(ROWS, tuple(columns), ({},) * COLUMNS, {}, (NO_LIMITS,) * COLUMNS)


@st.composite
def released(draw: st.DrawFn) -> tuple[list[Spans], list[np.ndarray]]:
    """Columns as they are released, and a truth within their bars."""
    columns, truths = [], []
    for _ in range(COLUMNS):
        value = np.array(draw(NUMBERS))
        bar = np.array(draw(BARS))
        at = np.array(draw(PLACES))
        columns.append(around(value, bar, *NO_LIMITS))
        truths.append(np.clip(value + at * bar, columns[-1].low, columns[-1].high))
    return columns, truths


@settings(max_examples=400, deadline=None)
@given(EXPRESSION, released())
def test_an_interval_holds_the_truth(node: Outer, both: tuple[list[Spans], list[np.ndarray]]) -> None:
    columns, truths = both
    made = evaluate(node, relation(columns))
    truth = evaluate(node, relation([Spans.known(one) for one in truths]))
    assert isinstance(made, Spans)
    assert isinstance(truth, Spans)
    known = made.bounded
    assert not np.isnan(truth.value[known]).any()  # what has an interval exists
    assert (made.low[known] <= truth.value[known]).all()
    assert (truth.value[known] <= made.high[known]).all()
    assert np.isnan([made.value[made.gone], truth.value[made.gone]]).all()  # NULL for certain
    error = made.error
    assert not error[made.gone].any()
    near = np.isfinite(error) & ~made.gone
    assert (np.abs(made.value - truth.value)[near] <= np.nextafter(error[near], np.inf)).all()


def exactly(node: Outer, truths: list[Fraction]) -> Fraction:
    if isinstance(node, Constant):
        assert isinstance(node.value, float)
        return Fraction(node.value)
    if isinstance(node, Given):
        return truths[node.index]
    assert isinstance(node, Operation)
    operator: Callable[[Fraction, Fraction], Fraction] = PLAIN[node.name]
    return operator(*(exactly(one, truths) for one in node.of))


@settings(max_examples=200, deadline=None)
@given(ARITHMETIC, released())
def test_an_interval_holds_the_truth_of_real_numbers(node: Outer, both: tuple[list[Spans], list[np.ndarray]]) -> None:
    # Not only what a machine makes of the truth: ends are rounded outwards.
    columns, truths = both
    made = evaluate(node, relation(columns))
    assert isinstance(made, Spans)
    for row in np.flatnonzero(made.bounded):
        truth = exactly(node, [Fraction(float(one[row])) for one in truths])
        assert Fraction(float(made.low[row])) <= truth <= Fraction(float(made.high[row]))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["<", "<=", ">", ">=", "=", "is null"]), EXPRESSION, EXPRESSION, released())
def test_a_verdict_may_be_the_truths(
    name: str, left: Outer, right: Outer, both: tuple[list[Spans], list[np.ndarray]]
) -> None:
    columns, truths = both
    node: Outer = Operation(name, (left,) if name == "is null" else (left, right))
    for asked in (node, Operation("not", (node,)), Operation("and", (node, node)), Operation("or", (node, node))):
        made = evaluate(asked, relation(columns))
        truth = evaluate(asked, relation([Spans.known(one) for one in truths]))
        assert isinstance(made, Verdicts)
        assert isinstance(truth, Verdicts)
        allowed = np.where(truth.value == 1, made.true, np.where(truth.value == 0, made.false, made.null))
        assert allowed.all()


def test_the_test_would_notice() -> None:
    # A bar that is left out, or a quotient by what may be 0, must not pass for one that holds.
    given_ = relation([around(np.array([10.0] * ROWS), np.array([5.0] * ROWS), *NO_LIMITS)] * COLUMNS)
    ratio = evaluate(Operation("/", (Constant(1.0), Operation("-", (Given(0), Constant(8.0))))), given_)
    assert isinstance(ratio, Spans)
    assert not ratio.bounded.any()
    assert ratio.value.tolist() == [0.5] * ROWS
    double = evaluate(Operation("+", (Given(0), Given(1))), given_)
    assert isinstance(double, Spans)
    assert (double.low[0], double.high[0], double.error[0]) == (10, 30, 10)


def test_the_ends_of_a_bar_are_numbers() -> None:
    column = around(np.array([4.0, -3.0, 98.0, 0.0]), np.array([10.0, 10.0, 10.0, np.inf]), 0, 100)
    given_ = replace(
        relation([column] * COLUMNS),
        risks=({"a": 0.05}, {"b": 0.05}, {"c": 1.0}),
        errors={0: np.array([10.0, 10.0, 10.0, np.inf])},
        confidence=0.9,
    )

    def told(what: str, of: Outer | None) -> list[float]:
        found = evaluate(End(what, of), given_)  # type: ignore[arg-type]
        assert isinstance(found, Spans)
        return [None if value != value else value for value in found.value.tolist()]  # type: ignore[misc]

    assert told("error", Given(0)) == [10, 10, 10, None]
    assert told("low", Given(0)) == [0, 0, 88, None]
    assert told("high", Given(0)) == [14, 7, 100, None]
    assert told("confidence", Given(0)) == [0.95] * 4
    assert told("confidence", Operation("+", (Given(0), Given(1)))) == [0.9] * 4
    assert told("confidence", Operation("+", (Given(0), Given(0)))) == [0.95] * 4
    assert told("confidence", None) == [0.9] * 4
    assert told("low", Given(2)) == [None] * 4  # its bar is not promised


def test_case_takes_the_branch_of_the_truth_or_both() -> None:
    column = around(np.array([10.0, 10.0, 10.0, 10.0]), np.array([1.0, 5.0, 0.0, np.inf]), *NO_LIMITS)
    given_ = relation([column] * COLUMNS)
    many = Operation(">", (Given(0), Constant(7.0)))
    numbers = evaluate(Case(((many, Constant(1.0)),), Constant(0.0)), given_)
    assert isinstance(numbers, Spans)
    assert numbers.value.tolist() == [1, 1, 1, 1]
    assert numbers.low.tolist() == [1, 0, 1, 0]
    texts = evaluate(Case(((many, Constant("many")),), Constant("few")), given_)
    assert isinstance(texts, Texts)
    assert texts.text.tolist() == ["many"] * 4
    assert texts.unsure.tolist() == [False, True, False, True]


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_takes_null(name: str) -> None:
    if OPERATIONS[name][1] != "number":
        return
    of = (Constant(None),) * max(1, OPERATIONS[name][0].count("{}"))
    found = evaluate(Operation(name, of, 1), relation([Spans.none(ROWS)] * COLUMNS))
    assert np.isnan(found.value).all() if isinstance(found, Spans) else set(found.value) <= {-1, 1}


def test_where_the_truth_is_null_no_number_is_shown_as_it() -> None:
    """A released count below 0 chose the 5, which nothing can choose: it was shown as 5 ± 0."""
    no = np.array([False])
    below = Verdicts(np.array([1]), no, ~no, no)
    found = chosen(below, Spans.known(np.array([5.0])), Spans.none(1))
    assert found.gone[0]
    assert np.isnan(found.value[0])
    known = first_known(found, Spans.none(1))
    assert np.isnan(known.value[0])


def test_a_value_too_large_for_a_number_is_null_and_nothing_is_known_of_it() -> None:
    """It was infinite, which JSON cannot say: the question was paid, and no answer came."""
    given_ = relation([around(np.array([800.0] * ROWS), np.array([1.0] * ROWS), *NO_LIMITS)] * COLUMNS)
    large = Operation("exp", (Given(0),))
    below = Operation("-", (Operation("exp", (Constant(1.0),)), large))
    for node in (large, below, Operation("*", (large, Constant(0.0))), Operation("power", (large,), 2)):
        found = evaluate(node, given_)
        assert isinstance(found, Spans)
        assert np.isnan(found.value).all()
        assert not found.bounded.any()
        assert not found.gone.any()  # the truth is a number
    # A value that is a number, with ends that are none, has no bar.
    nearly = evaluate(Operation("exp", (Operation("-", (Given(0), Constant(91.0))),)), given_)
    assert isinstance(nearly, Spans)
    assert np.isfinite(nearly.value).all()
    assert np.isinf(nearly.error).all()
