"""Quantiles as numbers in statements: by group, beside other values, and in what is worked out from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
import tacit.trusted.curator as curator_module
from tacit.model.noise_law import quantile
from tacit.model.table import Listing
from tacit.session import Session

N = 30_000
DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"]),
        "region": tacit.category(["north", "east", "islands"]),
        "age": tacit.integer(0, 99, width=5),
        "pay": tacit.numeric([0, 10, 20, 40, 80], missing="unknown"),
    }
)
MECHANISMS = ["direct", "histogram", "iterative"]
BY_SEX = "SELECT sex, MEDIAN(age) AS m FROM data GROUP BY sex"


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], N)
    return pd.DataFrame(
        {
            "sex": sex,
            "region": rng.choice(["north", "east", "islands"], N, p=[0.6, 0.3995, 0.0005]),
            "age": np.clip(rng.normal(np.where(sex == "F", 52, 37), 12, N), 0, 99).astype(int),
            "pay": np.where(rng.random(N) < 0.1, np.nan, rng.gamma(2.0, 10.0, N).clip(0, 79)),
        }
    )


def opened(folder: Path, mechanism: str = "direct", epsilon: float = 1.0, **more: Any) -> Session:
    folder.mkdir(exist_ok=True)
    places = {"ledger": folder / "l.tacit", "anchor": folder / "a.sqlite"}
    settings = {"warm": 0.7, "certify": 0.2} if mechanism == "iterative" else {}
    budget = tacit.Budget(epsilon=epsilon, delta=1e-9)
    return tacit.open(
        data=people(), domain=DOMAIN, budget=budget, mechanism=mechanism, start=True, **places, **settings, **more
    )


def listed(session: Session, sql: str) -> Listing:
    found = session.ask(sql)
    assert isinstance(found, Listing)
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_group_has_the_middle_of_the_bin_that_its_own_quantile_has(tmp_path: Path, mechanism: str) -> None:
    with opened(tmp_path, mechanism) as session:
        for row in listed(session, BY_SEX).listed:
            own = session.quantile("age", 0.5, where=f"sex = '{row.labels[0]}'")
            low, high = (int(end) for end in own.value.split("–"))
            assert row.values == ((low + high) / 2,)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("column", "share"), [("age", 0.5), ("age", 0.9), ("pay", 0.5)])
def test_the_truth_is_within_the_bars(tmp_path: Path, mechanism: str, column: str, share: float) -> None:
    rows = people()
    with opened(tmp_path, mechanism, epsilon=3.0) as session:
        found = listed(session, f"SELECT sex, region, QUANTILE_CONT({column}, {share}) FROM data GROUP BY sex, region")
    known = 0
    for row in found.listed:
        sex, region = row.labels
        true = rows[(rows.sex == sex) & (rows.region == region)][column].quantile(share, interpolation="lower")
        (value,), (error,) = row.values, row.errors
        if error is not None:
            known += 1
            assert abs(value - true) <= error
    assert known >= 4  # all but the islands, of which there are fifteen rows


def test_fresh_noise_buys_one_table_for_all_groups(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        price = session.dry_run("SELECT sex, age, COUNT(*) FROM data GROUP BY sex, age").cost_at_most
        assert session.dry_run(BY_SEX).cost_at_most == price
        assert listed(session, BY_SEX).cost == price
        assert not session.table("sex", "age").cost.atoms  # it is that table
        assert not listed(session, "SELECT sex, QUANTILE_CONT(age, 0.9) FROM data GROUP BY sex").cost.atoms


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_among_no_rows_there_is_no_quantile(tmp_path: Path, mechanism: str) -> None:
    with opened(tmp_path, mechanism) as session:
        women, men = listed(session, "SELECT sex, MEDIAN(age) FROM data WHERE sex = 'F' GROUP BY sex").listed
        assert women.errors[0] is not None
        assert math.isnan(men.values[0])  # NULL, as in SQL
        assert men.errors == (0,)  # for certain
        few = listed(session, "SELECT region, MEDIAN(age) FROM data WHERE sex = 'F' GROUP BY region").listed
        assert [row.errors[0] is None for row in few] == [False, False, True]  # nobody knows whether there is one


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wider_groups_and_what_is_worked_out(tmp_path: Path, mechanism: str) -> None:
    rows = people()
    with opened(tmp_path, mechanism, epsilon=3.0) as session:
        wide = listed(session, "SELECT FLOOR(age / 50) * 50 AS half, MEDIAN(pay) FROM data GROUP BY half")
        for row, low in zip(wide.listed, (0, 50), strict=True):
            true = rows[rows.age.between(low, low + 49)].pay.median()
            assert row.errors[0] is not None
            assert abs(row.values[0] - true) <= row.errors[0]
        first = listed(session, f"{BY_SEX} ORDER BY m DESC LIMIT 1")
        assert [row.labels for row in first.listed] == [("F",)]
        apart = session.ask(
            "SELECT MEDIAN(age) FILTER (WHERE sex = 'F') - MEDIAN(age) FILTER (WHERE sex = 'M') FROM data"
        )
        women, men = (row.values[0] for row in listed(session, BY_SEX).listed)
        assert apart.value == women - men
        assert apart.confidence < 0.95  # two intervals have to hold
        both = listed(session, "SELECT AVG(age), MEDIAN(age) FROM data")
        assert len(both.listed) == 1
        assert abs(both.listed[0].values[0] - rows.age.mean()) < 3


def test_all_rows_of_what_is_put_together_have_to_hold(tmp_path: Path) -> None:
    with opened(tmp_path, epsilon=3.0) as session:
        spread = session.ask(f"SELECT MAX(m) - MIN(m) FROM ({BY_SEX})")
        assert spread.confidence == pytest.approx(0.9)
        women, men = (row.values[0] for row in listed(session, BY_SEX).listed)
        assert spread.value == abs(women - men)


def test_rows_that_are_chosen_by_a_quantile_are_counted_by_its_bars(tmp_path: Path) -> None:
    """Of all rows at once nothing is known, so bars of each row are what is left."""
    with opened(tmp_path, epsilon=3.0) as session:
        both = session.ask(f"SELECT COUNT(*) FROM ({BY_SEX}) WHERE m > 20")
        assert (both.value, both.error, both.confidence) == (2, 0, pytest.approx(0.9))
        rows = session.ask(
            "SELECT SUM(n) FROM (SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM data GROUP BY sex) WHERE m > 20"
        )
        assert rows.error is not None
        assert rows.error < 500
        # The median of all rows is one row: it is known at once with the counts of all groups.
        large = session.ask(
            "SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM data GROUP BY region) "
            "WHERE n > (SELECT MEDIAN(age) FROM data)"
        )
        assert large.error is not None
        assert large.error < 500
        assert large.confidence == pytest.approx(0.9)


def test_what_is_published_says_the_same(tmp_path: Path) -> None:
    statement = "SELECT sex, COUNT(*), MEDIAN(age) FROM data GROUP BY sex"
    with opened(tmp_path) as session:
        told = listed(session, statement)
        tacit.publish(session, tmp_path / "p.jsonl")
    again = listed(tacit.read(tmp_path / "p.jsonl"), statement)
    assert again.listed == told.listed


def test_too_many_bins_at_once_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    domain = tacit.Domain(
        {"age": tacit.integer(0, 99), "place": tacit.integer(0, 99), "sex": tacit.category(["F", "M"])}
    )
    rows = pd.DataFrame({"age": np.arange(1_000) % 100, "place": np.arange(1_000) // 10, "sex": ["F", "M"] * 500})
    budget, files = tacit.Budget(epsilon=1.0, delta=1e-9), {"ledger": tmp_path / "l", "anchor": tmp_path / "a"}
    with tacit.open(data=rows, domain=domain, budget=budget, mechanism="iterative", start=True, **files) as session:
        with pytest.raises(
            tacit.TacitError, match=r"a quantile for each of 100 groups of 100 bins is too much at once"
        ):
            session.ask("SELECT place, MEDIAN(age) FROM data GROUP BY place")
        assert not session.spent.atoms


def test_a_statement_of_something_exact_and_a_release_is_not_exact(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = listed(session, "SELECT COUNT(*), AVG(age), MEDIAN(age) FROM data")
    assert found.bars[0].about.words != "exact"


def test_both_cells_of_a_table_of_two_have_one_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is n less the second, so the median by such a table strays as far as a whole draw does, not by halves.

    With the widest draw that 95 % of all stay within, a truth on the edge is still within the bar.
    """
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values + quantile(noise, 0.95))
    rows = pd.DataFrame({"x": [0] * 500 + [1] * 500, "g": ["a"] * 1000})
    domain = tacit.Domain({"x": tacit.integer(0, 1), "g": tacit.category(["a"])})
    budget, places = tacit.Budget(epsilon=1.0, delta=1e-9), {"ledger": tmp_path / "l", "anchor": tmp_path / "a"}
    with tacit.open(data=rows, domain=domain, budget=budget, mechanism="direct", questions=20, **places) as session:
        (row,) = listed(session, "SELECT g, MEDIAN(x) FROM data GROUP BY g").listed
    assert row.values == (1,)  # the truth is 0
    assert row.errors[0] is not None
    assert row.errors[0] >= 1
