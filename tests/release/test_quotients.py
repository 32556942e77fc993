"""The parts of means and fractions: what they have and its rest, or what they have and their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.aggregate import Aggregate, Count, Fraction, Mean
from tacit.model.ask import GroupBy
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.release.evidence import Setting, formula_of

DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 9),
        "pay": tacit.integer(0, 3, missing="unknown"),
        "sex": tacit.category(["F", "M"]),
        "job": tacit.category(["a", "b", "c"]),
    }
)
SETTING = Setting(DOMAIN, 1000, 0.95, Loss("rho", 0), False, lambda *_: False, certifies=True)
WOMEN = Query.among(DOMAIN, "sex", [0])
YOUNG, MIDDLE = Query.among(DOMAIN, "age", range(3)), Query.among(DOMAIN, "age", range(3, 6))
BY_JOB = (GroupBy("job", "job"),)


def by_rest(ask: Aggregate, groups: tuple[GroupBy, ...] = (), setting: Setting = SETTING) -> bool:
    formula = formula_of(ask, groups, setting)
    return formula is getattr(ask, "by_rest", None)


@pytest.mark.parametrize(
    ("ask", "alone", "grouped"),
    [
        (Mean(DOMAIN, "age"), False, True),  # how many rows there are is public, but not in a group
        (Mean(DOMAIN, "age", WOMEN), True, True),
        (Mean(DOMAIN, "pay"), True, True),  # who has no pay does not count
        (Fraction(WOMEN), False, True),
        (Fraction(YOUNG, WOMEN), True, True),
        (Fraction(MIDDLE, WOMEN), False, False),  # the rest is two ranges
        (Fraction(MIDDLE, YOUNG | MIDDLE), False, False),  # two conditions on the same attribute
        (Fraction(Query.among(DOMAIN, "job", [0]), WOMEN), True, False),  # by the group's own attribute it is another
        (Fraction(WOMEN, YOUNG | Query.among(DOMAIN, "age", [5, 7])), True, True),  # whatever the other conditions are
        (Fraction(YOUNG & WOMEN, Query.among(DOMAIN, "job", [0])), False, False),  # the rest is no conjunction
        (Count(WOMEN), False, False),
    ],
    ids=lambda one: one.words(DOMAIN) if not isinstance(one, bool) else "",
)
def test_quotients_are_by_their_rest_where_that_is_certified(ask: Aggregate, alone: bool, grouped: bool) -> None:
    assert by_rest(ask) == alone
    assert by_rest(ask, BY_JOB) == grouped
    bought = replace(SETTING, certifies=False)
    assert not by_rest(ask, (), bought)
    assert not by_rest(ask, BY_JOB, bought)


def test_a_part_and_its_rest_are_all_rows_of_a_fraction() -> None:
    for where, given in ((YOUNG, WOMEN), (WOMEN, Query.constant(everyone=True)), (MIDDLE, WOMEN)):
        made = Fraction(where, given)
        assert made.by_rest is not None
        part, rest = (one.query(DOMAIN) for one in made.by_rest.parts)
        assert (part & rest).is_constant  # nobody is in both
        assert (part | rest).key == given.key


ROWS = 4_000
# The noise of such a budget is 0 in all cells, but for a chance below 1e-30 (a deviation of 0.08): what is left is
# arithmetic.
PLENTY = tacit.Budget(epsilon=1000.0, delta=1e-9)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    values = {"age": range(10), "pay": range(4), "sex": ["F", "M"], "job": ["a", "b", "c"]}
    return pd.DataFrame({name: rng.choice(list(some), ROWS) for name, some in values.items()})


def test_quotients_are_the_same_by_group_and_under_a_condition_and_those_of_the_rows(tmp_path: Path) -> None:
    rows = table()
    with tacit.open(
        data=rows, domain=DOMAIN, budget=PLENTY, ledger=tmp_path / "l", mechanism="histogram", start=True
    ) as session:
        told = session.ask("SELECT job, AVG(age), COUNT(*) FILTER (WHERE age < 3) / COUNT(*) FROM data GROUP BY job")
        for job, mean, off, share, beside in told.to_pandas().itertuples(index=False):
            some = rows[rows["job"] == job]
            assert mean == pytest.approx(some["age"].mean(), abs=1e-5)  # weights are rounded to a grid
            assert share == pytest.approx((some["age"] < 3).mean())
            one = session.ask(f"SELECT AVG(age) FROM data WHERE job = '{job}'")
            other = session.fraction(tacit.count(age=(0, 2)), given=tacit.count(job=job))
            assert (one.value, one.error) == (mean, off)  # type: ignore[union-attr]
            assert (other.value, other.error) == (share, beside)


# A share of the women in a group, and in the rows of its condition.
GROUPED = [
    ("WHERE age IN (1, 3, 7) GROUP BY age", 3, "age = 3"),
    ("GROUP BY CASE WHEN age IN (1, 3) THEN 'x' ELSE 'y' END", 0, "age IN (1, 3)"),
    ("WHERE job = 'a' OR pay = 1 GROUP BY job", 0, "job = 'a'"),
]


@pytest.mark.parametrize("mechanism", ["iterative", "histogram"])
def test_a_fraction_is_the_same_whatever_conditions_its_group_comes_with(tmp_path: Path, mechanism: str) -> None:
    certified: dict[str, Any] = {"warm": 0.6, "certify": 0.2} if mechanism == "iterative" else {}
    asked = "COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*)"
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    with tacit.open(
        data=table(), domain=DOMAIN, budget=budget, ledger=tmp_path / "l", mechanism=mechanism, start=True, **certified
    ) as session:
        for groups, row, condition in GROUPED:
            by = groups.partition("GROUP BY ")[2]
            listed = session.ask(f"SELECT {by} AS g, {asked} FROM data {groups}").to_pandas().iloc[row]
            one = session.ask(f"SELECT {asked} FROM data WHERE {condition}")
            assert listed.iloc[1:].tolist() == [one.value, one.error], groups  # type: ignore[union-attr]


@pytest.mark.parametrize("mechanism", ["iterative", "histogram"])
def test_a_mean_is_the_same_in_a_series_and_in_its_block(tmp_path: Path, mechanism: str) -> None:
    certified: dict[str, Any] = {"warm": 0.6, "certify": 0.2} if mechanism == "iterative" else {}
    with tacit.series(
        ledger=tmp_path / "months.tacit",
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        mechanism=mechanism,
        **certified,
    ) as series:
        series.append(table(), "1")
        series.start()
        whole = series.ask("SELECT AVG(age) FROM data WHERE block = '1' AND job = 'a'")
        alone = series.block("1").ask("SELECT AVG(age) FROM data WHERE job = 'a'")
        assert whole.value == alone.value  # type: ignore[union-attr]
