"""No kind of question can be made of wrong parts, so that all a session has to ask is for which domain it was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest

import tacit
from tacit.errors import InvalidQuery
from tacit.model import ask, sql
from tacit.model.ask import (
    Cdf,
    Column,
    Count,
    Covariance,
    Crosstab,
    Derived,
    Fraction,
    GroupBy,
    Histogram,
    Mean,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
)
from tacit.model.bands import Bands
from tacit.model.calculation import Belongs, Case, Constant, Elsewhere, End, Given, Operation
from tacit.model.derivation import DerivedColumn, Fold, Folded, Sort, identity
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic

DOMAIN = Domain({"age": tacit.integer(0, 9), "pay": tacit.integer(0, 4), "sex": tacit.category(["F", "M"])})
OTHER = Domain({"age": tacit.integer(0, 19), "pay": tacit.integer(0, 4)})
SOME = Query.among(DOMAIN, "sex", [0])
WEIGHTS = Query.weighted(DOMAIN, ["sex"], [0.5, 1])
ROWS = Column(Count(SOME), "rows")
GROUPED = Select(DOMAIN, (ROWS,), (GroupBy("sex", "sex"),))
TWICE = Operation("+", (Given(1), Given(1)))


def bands(*parts: Any, labels: Any = ("a", "b"), values: Any = (0, 1)) -> Select:
    found = Bands("sex, in bands", parts, labels, values)
    return Select(DOMAIN, (ROWS,), (GroupBy("sex", "sex", found),))


def shown(node: Any, **more: Any) -> Derived:
    return Derived(GROUPED, (DerivedColumn("x", node),), **more)


def folded(*folds: Any, by: Any = (0,)) -> Folded:
    return Folded(GROUPED, by, folds)


# By the class of which nothing wrong can be made.
WRONG: dict[type, dict[str, Callable[[Any], object]]] = {
    Count: {
        "of text": lambda _: Count("sex = 'F'"),  # type: ignore[arg-type]
        "of an expression": lambda _: Count(tacit.count(sex="F")),  # type: ignore[arg-type]
        "of a statistic": lambda _: Count(Statistic("stump", ("age", "sex"), (4, 1))),  # type: ignore[arg-type]
    },
    Fraction: {
        "of text": lambda _: Fraction("sex = 'F'"),  # type: ignore[arg-type]
        "among text": lambda _: Fraction(SOME, "sex = 'F'"),  # type: ignore[arg-type]
        "of weights": lambda _: Fraction(WEIGHTS),
        "among nobody": lambda _: Fraction(SOME, Query.constant(everyone=False)),
    },
    Stat: {
        "of text": lambda _: Stat("stump"),  # type: ignore[arg-type]
        "of a query": lambda _: Stat(SOME),  # type: ignore[arg-type]
        "not bound": lambda _: Stat(tacit.stump("age", predicts="sex", value="F")),  # type: ignore[arg-type]
    },
    Sum: {"of rows in text": lambda no: Sum(DOMAIN, "age", no), "of a wrong name": lambda _: Sum(DOMAIN, "nope")},
    Mean: {
        "of a wrong name": lambda no: Mean(DOMAIN, no),
        "for a share above 1": lambda _: Mean(DOMAIN, "age", share=2.0),
    },
    Variance: {
        "of other rows": lambda _: Variance(DOMAIN, "age", Query.among(OTHER, "age", [12])),
        "of a sample in text": lambda no: Variance(DOMAIN, "age", sample=no),
        "with a root in text": lambda no: Variance(DOMAIN, "age", root=no),
    },
    Covariance: {
        "of one name": lambda _: Covariance(DOMAIN, ("age", "age")),
        "of a number": lambda _: Covariance(DOMAIN, 7),  # type: ignore[arg-type]
        "correlated in text": lambda no: Covariance(DOMAIN, ("age", "pay"), correlation=no),
    },
    Crosstab: {
        "of text": lambda no: Crosstab(DOMAIN, no),
        "of a number": lambda _: Crosstab(DOMAIN, 7),  # type: ignore[arg-type]
        "of a wrong name": lambda no: Crosstab(DOMAIN, (no,)),
        "of rows in text": lambda no: Crosstab(DOMAIN, ("age",), no),
    },
    Quantile: {
        "of a wrong name": lambda no: Quantile(DOMAIN, no, 0.5),
        "at 1": lambda _: Quantile(DOMAIN, "age", 1),
        "without an order": lambda _: Quantile(DOMAIN, "sex", 0.5),
    },
    Cdf: {
        "of a wrong name": lambda no: Cdf(DOMAIN, no),
        "by a number": lambda _: Cdf(DOMAIN, "age", strategy=7),  # type: ignore[arg-type]
    },
    Histogram: {
        "by no width": lambda no: Histogram(DOMAIN, "age", no),
        "without an order": lambda _: Histogram(DOMAIN, "sex"),
    },
    Range: {"of text": lambda no: Range(DOMAIN, no), "of everybody": lambda _: Range(DOMAIN, ask.EVERYONE)},
    Column: {
        "of a query": lambda _: Column(SOME, "rows"),  # type: ignore[arg-type]
        "of a statistic": lambda _: Column(Stat(Statistic("stump", ("age", "sex"), (4, 1))), "rows"),  # type: ignore[arg-type]
        "without a title": lambda _: Column(Count(SOME), None),  # type: ignore[arg-type]
    },
    GroupBy: {
        "a number": lambda _: GroupBy(7, "t"),  # type: ignore[arg-type]
        "without a title": lambda _: GroupBy("sex", None),  # type: ignore[arg-type]
        "in bands of text": lambda no: GroupBy("sex", "t", no),
    },
    Bands: {
        "too few labels": lambda _: bands((0,), (1,), labels=("a",)),
        "beyond the values": lambda _: bands((0,), (2,)),
        "not of all values": lambda _: bands((0,), labels=("a",), values=(0,)),
        "a value twice": lambda _: bands((0, 1), (1,)),
        "an empty one": lambda _: bands((0, 1), ()),
        "of text": lambda _: bands("a", "b"),
    },
    Select: {
        "of counts": lambda _: Select(DOMAIN, (Count(SOME),)),  # type: ignore[arg-type]
        "columns in a list": lambda _: Select(DOMAIN, [ROWS]),  # type: ignore[arg-type]
        "by names": lambda _: Select(DOMAIN, (ROWS,), ("sex",)),  # type: ignore[arg-type]
        "by a wrong name": lambda no: Select(DOMAIN, (ROWS,), (GroupBy(no, "t"),)),
        "of another domain": lambda _: Select(DOMAIN, (Column(Sum(OTHER, "pay"), "sum"),)),
        "of rows of another domain": lambda _: Select(OTHER, (ROWS,)),
        "with numbers for notes": lambda _: Select(DOMAIN, (ROWS,), notes=(7,)),  # type: ignore[arg-type]
    },
    Folded: {
        "by a number": lambda _: folded(Fold("count", None), by=(1,)),
        "by nothing that is there": lambda _: folded(Fold("count", None), by=(2,)),
        "by nothing, with no fold": lambda _: folded(by=()),
        "by another fold": lambda no: folded(Fold(no, Given(1))),
        "the sum of rows": lambda _: folded(Fold("sum", None)),
        "the sum of labels": lambda _: folded(Fold("sum", Given(0))),
        "where a number": lambda _: folded(Fold("count", None, Given(1))),
    },
    Derived: {
        "from text": lambda no: Derived(no, ()),
        "from a count": lambda _: Derived(Count(SOME), ()),  # type: ignore[arg-type]
        "columns in text": lambda no: Derived(GROUPED, (no,)),
        "from two domains": lambda _: shown(
            Elsewhere(0), elsewhere=(Select(OTHER, (Column(Sum(OTHER, "pay"), "sum"),)),)
        ),
        "beside more groups": lambda _: Derived(
            Select(DOMAIN, (ROWS,)), (DerivedColumn("x", Elsewhere(0)),), elsewhere=(GROUPED,)
        ),
        "a column that is not there": lambda _: shown(Given(2)),
        "the column before the first": lambda _: shown(Given(-1)),
        "another statement that is not there": lambda _: shown(Elsewhere(0)),
        "a condition in place of a value": lambda _: shown(Operation("<", (Given(1), Given(1)))),
        "an operation that is not there": lambda _: shown(Operation("magic", (Given(1),))),
        "an operation of too few": lambda _: shown(Operation("+", (Given(1),))),
        "an operation of labels": lambda _: shown(Operation("+", (Given(0), Given(1)))),
        "a truth value": lambda _: shown(Constant(True)),
        "a query": lambda _: shown(SOME),
        "an end of nothing": lambda _: shown(End("low", None)),
        "an end that is not there": lambda no: shown(End(no, Given(1))),
        "a case of a number": lambda _: shown(Case(((Given(1), Given(1)),), Constant(None))),
        "a case of both kinds": lambda _: shown(Case(((Belongs(SOME, ~SOME, "F"), Given(0)),), Given(1))),
        "groups that are not there": lambda _: shown(
            Given(1), where=Belongs(*(Query.among(DOMAIN, "pay", [i]) for i in (0, 1)), "")
        ),
        "sorted by a number": lambda _: shown(Given(1), sort=(1,)),
        "sorted by a truth": lambda _: shown(Given(1), sort=(Sort(Belongs(SOME, ~SOME, "F"), False),)),
        "where a number": lambda _: shown(Given(1), where=Given(1)),
        "a limit below 0": lambda _: shown(Given(1), limit=-1),
        "a limit in fractions": lambda _: shown(Given(1), limit=1.5),
        "an offset of nothing": lambda _: shown(Given(1), offset=None),
    },
}
CASES = [
    pytest.param(make, id=f"{kind.__name__} {what}") for kind, some in WRONG.items() for what, make in some.items()
]


def test_every_kind_of_question_is_here() -> None:
    assert {*get_args(ask.Ask), Column, GroupBy} <= set(WRONG)


@pytest.mark.parametrize("make", CASES)
def test_nothing_wrong_can_be_made(make: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidQuery, match="Nothing was spent"):
        make("nope")


@pytest.mark.parametrize("kind", [Sum, Mean, Variance, Cdf, Histogram])
def test_a_question_is_bound_to_a_domain(kind: Any) -> None:
    with pytest.raises(InvalidQuery, match="bound to a domain, not to str"):
        kind("data", "age")


def test_what_is_right_can_be_made() -> None:
    """So what is refused above is refused for what is wrong in it, and for nothing else."""
    assert bands((1,), (0,)).grouped
    assert folded(Fold("count", None, Belongs(SOME, ~SOME, "F")), Fold("sum", TWICE)).kinds == [
        "text",
        "number",
        "number",
    ]
    case = Case(((Operation("<", (Given(1), Constant(3))), TWICE),), Constant(None))
    for node in (TWICE, case, End("low", Given(1)), End("confidence", None), Constant("a")):
        assert shown(node, where=Belongs(SOME, ~SOME, "F"), sort=(Sort(node, True),), limit=0).titles == ["x"]
    assert shown(Elsewhere(0), elsewhere=(GROUPED,)) != identity(GROUPED)


def test_a_statement_keeps_its_text_and_is_equal_without() -> None:
    for statement in (
        "SELECT SUM(pay) FROM data",
        "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n LIMIT 1",
    ):
        read = sql.parse(statement, DOMAIN)
        assert isinstance(read, Sum | Derived)
    assert isinstance(read, Derived)
    assert read.text == statement
    assert read == sql.parse(statement.replace("  ", " ") + " ", DOMAIN)
