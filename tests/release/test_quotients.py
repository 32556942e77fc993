"""The parts of means and fractions: what they have and its rest, or what they have and their rows."""

from __future__ import annotations

from collections.abc import Iterator
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
from tacit.release.evidence import Setting
from tacit.release.quotients import formulas_of
from tacit.session import Session

DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 9),
        "pay": tacit.integer(0, 3, missing="unknown"),
        "sex": tacit.category(["F", "M"]),
        "job": tacit.category(["a", "b", "c"]),
    }
)
SETTING = Setting(DOMAIN, 1000, 0.95, Loss("rho", 0), False, lambda *_: False, certifies=lambda _: True)
WOMEN = Query.among(DOMAIN, "sex", [0])
YOUNG, MIDDLE = Query.among(DOMAIN, "age", range(3)), Query.among(DOMAIN, "age", range(3, 6))
BY_JOB = (GroupBy("job", "job"),)


def by_rest(ask: Aggregate, groups: tuple[GroupBy, ...] = (), setting: Setting = SETTING) -> bool:
    (formula,) = formulas_of(ask, groups, setting)
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
    bought = replace(SETTING, certifies=lambda _: False)
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


KINDS = list("uvwxyz")
WIDE = tacit.Domain(
    {"age": tacit.integer(0, 19), "pay": tacit.integer(0, 19), **{name: tacit.category(KINDS) for name in "pqrst"}}
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """So many values that not all boxes of four attributes are certified, and nothing that ties two of them."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({name: rng.choice(WIDE[name].size, ROWS) for name in ("age", "pay")})
    rows = rows.assign(**{name: rng.choice(KINDS, ROWS) for name in "pqrst"})
    certified: dict[str, Any] = {"mechanism": "iterative", "warm": 0.6, "certify": 0.15, "hits": 10}
    budget, folder = tacit.Budget(epsilon=2.0, delta=1e-9), tmp_path_factory.mktemp("wide")
    with tacit.open(data=rows, domain=WIDE, budget=budget, ledger=folder / "l", **certified) as session:
        session.start()
        yield session


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT AVG(age) FROM data WHERE p IN ('u', 'v', 'w') AND q IN ('u', 'v', 'w') AND pay < 10",
        "SELECT AVG(age) FROM data WHERE p = 'u' OR q = 'v'",
        "SELECT AVG(IF(age < 10, 1, 0)) FROM data WHERE p <> 'u' AND q <> 'u' AND r <> 'u' AND s <> 'u'",
    ],
)
def test_a_quotient_that_is_not_certified_costs_one_question_at_most(wide: Session, asked: str) -> None:
    """What its rows have may have to be bought; how many they are is certified."""
    one = wide.dry_run("SELECT COUNT(*) FROM data WHERE age IN (1, 4, 7, 10, 13)").cost_at_most
    assert one.atoms > 0
    assert wide.dry_run(asked).cost_at_most == one


# A value of some groups is certified, and of others not, or told by one condition in some groups alone.
MIXED = [
    ("AVG(age)", "(p = 'u' OR q = 'v') AND pay < 10"),
    ("AVG(age)", "p = 'u' OR q = 'v' OR r = 'w'"),
    ("COUNT(*) FILTER (WHERE pay < 10 OR p = 'u') / COUNT(*)", "age < 5"),
    ("COUNT(*) FILTER (WHERE pay < 10 AND p = 'u') / COUNT(*)", "age < 5"),
    ("COUNT(*) FILTER (WHERE pay < 10) / COUNT(*)", "p = 'u' OR (q = 'v' AND r = 'w')"),
]


@pytest.mark.parametrize("where", [where for _, where in MIXED])
@pytest.mark.parametrize("value", dict.fromkeys(value for value, _ in MIXED))
def test_a_quotient_in_a_group_is_that_of_the_group_s_condition(wide: Session, value: str, where: str) -> None:
    listed = wide.ask(f"SELECT p, {value} FROM data WHERE {where} GROUP BY p").to_pandas()
    for p, found, off in listed.itertuples(index=False):
        one = wide.ask(f"SELECT {value} FROM data WHERE ({where}) AND p = '{p}'")
        assert isinstance(one, tacit.Answer)
        if one.error != 0:  # what is certain of the rows of a condition is noisy in a table of groups
            assert found == one.value
            error = np.inf if one.error is None else one.error
            # Counts of groups are a table, which may have one bar for all of them.
            assert (
                np.nan_to_num(off, nan=np.inf) >= error if "COUNT" in value else np.nan_to_num(off, nan=np.inf) == error
            )


@pytest.mark.parametrize("value", ["AVG(smoker)", "AVG(age)", "COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*)"])
def test_the_number_of_a_block_s_rows_is_public_so_quotients_of_them_have_one_noisy_part(
    tmp_path: Path, value: str
) -> None:
    domain = tacit.Domain({"age": DOMAIN["age"], "sex": DOMAIN["sex"], "smoker": tacit.boolean()})
    rows = table().assign(smoker=lambda rows: rows["age"] < 4)[["age", "sex", "smoker"]]
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    with tacit.series(ledger=tmp_path / "s.tacit", domain=domain, budget=budget, mechanism="histogram") as series:
        series.append(rows[:1500], "a")
        series.append(rows[1500:], "b")
        series.start()
        alone = series.block("a").ask(f"SELECT {value} FROM data")
        inside = series.ask(f"SELECT {value} FROM data WHERE block = 'a'")
        listed = series.ask(f"SELECT block, {value} FROM data GROUP BY block")
        assert isinstance(alone, tacit.Answer)
        assert isinstance(inside, tacit.Answer)
        if value != "AVG(age)":  # which a block by itself reads off the ranges of age
            assert (inside.value, inside.error) == (alone.value, alone.error)
        assert [one.confidence for one in (alone, inside, listed)] == [0.95] * 3
        assert listed.to_pandas().iloc[0, 1:].tolist() == [inside.value, inside.error]
