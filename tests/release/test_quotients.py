"""The parts of means and fractions: what they have and its rest, or what they have and their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
        (Fraction(MIDDLE, YOUNG | MIDDLE), True, True),  # and here it is one
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
    for where, given in ((YOUNG, WOMEN), (WOMEN, Query.constant(everyone=True)), (MIDDLE, YOUNG | MIDDLE)):
        made = Fraction(where, given)
        assert made.by_rest is not None
        part, rest = (one.query(DOMAIN) for one in made.by_rest.parts)
        assert (part & rest).is_constant  # nobody is in both
        assert (part | rest).key == given.key


def test_quotients_are_the_same_by_group_and_under_a_condition_and_those_of_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = {"age": range(10), "pay": range(4), "sex": ["F", "M"], "job": ["a", "b", "c"]}
    rows = pd.DataFrame({name: rng.choice(list(some), 4_000) for name, some in values.items()})
    # Noise with a deviation of 0.08 is 0 in all 300 cells, but for a chance below 1e-30: the rest is arithmetic.
    budget = tacit.Budget(epsilon=1000.0, delta=1e-9)
    with tacit.open(
        data=rows, domain=DOMAIN, budget=budget, ledger=tmp_path / "l", mechanism="histogram", start=True
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
