"""Expressions over released values are gone through once each, and are no larger than somebody can wait for."""

from __future__ import annotations

from typing import Any

import pytest

import tacit
from tacit.errors import InvalidQuery
from tacit.model import calculation
from tacit.model.calculation import MOST_DEEP, MOST_PARTS, Case, Constant, Operation, Outer, Relation, evaluate
from tacit.model.derivation import Vocabulary
from tacit.model.span import Spans, Texts
from tacit.model.sql import parse

DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "region": tacit.category(["north", "south"])})
ONE_ROW = Relation(1, (), (), {}, ())
ALWAYS = Operation("=", (Constant(1), Constant(1)))


def doubling(times: int) -> str:
    names = ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(times))
    return f"SELECT COUNT(*) AS a0, {names} FROM data"


def test_an_expression_counts_what_its_names_stand_for() -> None:
    one = Operation("+", (Constant(1), Constant(1)))
    two = Operation("+", (one, one))
    assert (one.extent, two.extent, Operation("*", (two, two)).extent) == ((3, 2), (7, 3), (15, 4))
    whole = Case(((ALWAYS, Constant(1)),), Constant(None))
    assert whole.extent == (1 + 3 + 1 + 1, 3)


def test_aliases_that_double_each_other_are_refused_before_anything_goes_through_them() -> None:
    parse(doubling(10), DOMAIN)
    for times in (13, 40, 100):
        with pytest.raises(InvalidQuery, match=f"at most {MOST_PARTS:,} parts.*counts as all that it stands for"):
            parse(doubling(times), DOMAIN)


def test_columns_that_are_small_one_by_one_are_refused_where_there_are_many() -> None:
    more = ", ".join(f"a10 + {i} AS b{i}" for i in range(20))
    with pytest.raises(InvalidQuery, match="at most 10,000 parts"):
        parse(doubling(10).replace(" FROM", f", {more} FROM"), DOMAIN)


def test_what_is_too_deep_for_the_stack_is_refused_in_words() -> None:
    parse("SELECT COUNT(*)" + " + 1" * (MOST_DEEP - 10) + " FROM data", DOMAIN)
    with pytest.raises(InvalidQuery, match=f"{MOST_DEEP} of them one in the other"):
        parse("SELECT COUNT(*)" + " + 1" * MOST_DEEP + " FROM data", DOMAIN)


def test_each_branch_of_a_case_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in the other, each would otherwise double the work of the one inside."""
    node: Outer = Constant("deep")
    for _ in range(30):
        node = Case(((ALWAYS, node),), Constant(None))
    worked = list[Outer]()

    def counted(one: Outer, given: Relation) -> Any:
        worked.append(one)
        return evaluate(one, given)

    monkeypatch.setattr(calculation, "evaluate", counted)
    found = counted(node, ONE_ROW)
    assert isinstance(found, Texts)
    assert found.text.tolist() == ["deep"]
    assert len(worked) == 30 * 5 + 1  # itself, its condition of two parts, and NULL; and the text


def test_what_sorts_and_columns_share_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked, plain = list[Outer](), Vocabulary._checked

    def counted(self: Vocabulary, node: Outer) -> Any:
        checked.append(node)
        return plain(self, node)

    monkeypatch.setattr(Vocabulary, "_checked", counted)
    case = "CASE " + "WHEN COUNT(*) > 1 THEN 1 " * 50 + "END"
    parse(f"SELECT sex, {case} AS n FROM data GROUP BY sex ORDER BY 2" + ", 2" * 30, DOMAIN)
    parts = 50 * 4 + 2 + 2  # of the case, and of the columns
    assert len(checked) <= 2 * parts  # the statement is made once more with its text


@pytest.mark.parametrize(
    "node",
    [
        Case(((Operation("not", (ALWAYS,)), Constant(None)),), Constant("small")),
        Case(((Operation("not", (ALWAYS,)), Constant(None)), (ALWAYS, Constant("small"))), Constant(None)),
    ],
)
def test_null_may_come_before_a_text(node: Case) -> None:
    found = evaluate(node, ONE_ROW)
    assert isinstance(found, Texts)
    assert found.text.tolist() == ["small"]
    assert calculation.kind(node, ()) == "text"
    assert isinstance(evaluate(Case(((ALWAYS, Constant(None)),), Constant(2)), ONE_ROW), Spans)


@pytest.mark.parametrize("shown", ["", ", 1 AS one", ", CASE WHEN sex = 'F' THEN 'women' ELSE 'men' END AS who"])
def test_groups_of_groups_need_no_value(shown: str) -> None:
    inner = "SELECT sex, region, COUNT(*) AS n FROM data GROUP BY sex, region"
    parse(f"SELECT sex{shown} FROM ({inner}) GROUP BY sex", DOMAIN)
