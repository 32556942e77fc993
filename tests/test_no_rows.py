"""Statements without rows, which reporting tools send to learn the columns: nothing is bought for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.answer import Answer
from tacit.model.table import Listing
from tacit.serve.postgres.answer import notice
from tacit.session import Session

COUNTS = "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM data GROUP BY sex"
EMPTY = [
    f"{COUNTS} LIMIT 0",
    f"{COUNTS} HAVING FALSE",
    f"{COUNTS} HAVING n > 5 AND 1 = 0",
    f"SELECT * FROM ({COUNTS}) t LIMIT 0",
    f"SELECT * FROM ({COUNTS}) t WHERE 1 = 0",
    f"SELECT * FROM ({COUNTS} LIMIT 0) t ORDER BY n",
    f"SELECT sex, SUM(n) AS n, MAX(m) AS m FROM ({COUNTS} LIMIT 0) t GROUP BY sex",
    f"{COUNTS} OFFSET 2",
    f"{COUNTS} ORDER BY n LIMIT 5 OFFSET 1000",
    f"SELECT * FROM ({COUNTS} LIMIT 1) t OFFSET 1",
]
NONE = [f"{COUNTS} LIMIT 0", f"{COUNTS} HAVING FALSE", f"{COUNTS} OFFSET 2"]
DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)})


def opened(folder: Path, mechanism: str) -> Session:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"sex": rng.choice(["F", "M"], 500), "age": rng.integers(0, 100, 500)})
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    return tacit.open(data=rows, domain=DOMAIN, budget=budget, ledger=folder / "l.tacit", mechanism=mechanism)


@pytest.mark.parametrize("mechanism", ["direct", "iterative", "histogram"])
@pytest.mark.parametrize("sql", EMPTY)
def test_columns_without_rows_are_free(tmp_path: Path, mechanism: str, sql: str) -> None:
    with opened(tmp_path, mechanism) as session:
        price = session.dry_run(sql)
        assert price.known
        assert not price.cost_at_most.atoms
        found = session.ask(sql)
        assert isinstance(found, Listing)
        assert (found.names, found.titles, found.listed) == (("sex",), ("n", "m"), ())
        assert not found.cost.atoms
        assert not session.status().spent.atoms
        assert found.caption == "no rows (public, free)"
        assert notice(found) == "No rows (public, free)"
        assert found.error is None
        assert found.says == "nothing"
        assert list(found.to_pandas().columns) == ["sex", "n", "n error", "m", "m error"]


@pytest.mark.parametrize("mechanism", ["direct", "iterative", "histogram"])
@pytest.mark.parametrize("inner", NONE)
def test_what_is_put_together_from_no_rows_is_known(tmp_path: Path, mechanism: str, inner: str) -> None:
    with opened(tmp_path, mechanism) as session:
        for what, value in (("COUNT(*)", 0), ("COUNT(*) + 7", 7), ("SUM(n)", None), ("AVG(m) + 1", None)):
            sql = f"SELECT {what} FROM ({inner}) t"
            assert not session.dry_run(sql).cost_at_most.atoms
            found = session.ask(sql)
            assert isinstance(found, Answer)
            assert (found.error, found.cost.atoms) == (0, 0)
            assert found.value == value or (value is None and np.isnan(found.value))
            shown = "no value" if value is None else f"{value} ± 0"
            assert str(found) == f"{shown} (exact, public, free)"
        assert not session.status().spent.atoms


CERTAIN = {
    "SUM(n)": None,
    "MAX(m) + COUNT(*)": None,
    "ROUND(AVG(n), 1)": None,
    "NULLIF(COUNT(*), 0)": None,
    "1 / COUNT(*)": None,
    "CASE WHEN COUNT(*) > 0 THEN 1 END": None,
    "SUM(n) + (SELECT COUNT(*) FROM data)": None,
    "COUNT(*)": 0,
    "COALESCE(SUM(n), 7)": 7,
    "COALESCE(MAX(n), AVG(m), COUNT(*)) + 2": 2,
    "CASE WHEN SUM(n) IS NULL THEN 3 ELSE 4 END": 3,
    "CASE WHEN SUM(n) > 5 THEN 3 ELSE 4 END": 4,
    "LEAST(SUM(n), 9)": 9,
    "GREATEST(9, SUM(n))": 9,
}


def test_what_is_certain_has_an_error_of_0_and_no_value_has_no_interval(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        for what, value in CERTAIN.items():
            found = session.ask(f"SELECT {what} FROM ({COUNTS} LIMIT 0) t")
            assert isinstance(found, Answer)
            said = found.to_dict()
            assert (said["value"], said["error"]) == (value, 0), what
            assert said["interval"] == (None if value is None else [value, value])
            assert found.bars[0].about.words == "exact"
        whole = f"SELECT {', '.join(CERTAIN)} FROM ({COUNTS} LIMIT 0) t"
        (row,) = session.ask(whole).listed  # type: ignore[union-attr]
        assert [None if np.isnan(one) else one for one in row.values] == list(CERTAIN.values())
        assert row.errors == (0,) * len(CERTAIN)
        again = session.ask(
            f"SELECT SUM(x), MAX(x), COALESCE(AVG(x), 1) FROM (SELECT SUM(n) AS x FROM ({COUNTS} LIMIT 0) t) u"
        )
        assert again.listed[0].errors == (0, 0, 0)  # type: ignore[union-attr]
        truth = session.ask(f"SELECT SUM(n) IS NULL FROM ({COUNTS} LIMIT 0) t")
        assert "could be others" not in truth.note
        assert not session.status().spent.atoms


def test_groups_that_the_condition_rules_out_are_passed_over_where_they_are_put_together(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        women = "(SELECT sex, AVG(age) AS m FROM data WHERE sex = 'F' GROUP BY sex) t"
        inner, *_ = session.ask(f"SELECT * FROM {women}").listed  # type: ignore[union-attr]
        (row,) = session.ask(f"SELECT SUM(m), MAX(m), AVG(m), COALESCE(SUM(m), 0) FROM {women}").listed  # type: ignore[union-attr]
        assert row.values == inner.values * 4
        assert row.errors == pytest.approx(inner.errors * 4)
        (others,) = session.ask(f"SELECT SUM(m), COALESCE(MAX(m), 7) FROM {women} WHERE sex = 'M'").listed  # type: ignore[union-attr]
        assert others.errors == (0, 0)
        assert others.values[1] == 7


def test_rows_up_to_the_offset_are_there(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        found = session.ask(f"{COUNTS} OFFSET 1")
        assert isinstance(found, Listing)
        assert [row.labels for row in found.listed] == [("M",)]
        assert found.cost.atoms


def test_no_rows_by_a_noisy_choice_are_not_known(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        found = session.ask("SELECT SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING n > 1e9) t")
        assert isinstance(found, Answer)
        assert np.isnan(found.value)
        assert found.error is None
        assert found.cost.atoms


def test_rows_that_no_value_was_high_enough_for_are_paid_and_promise_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        found = session.ask("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING n > 1000000000")
        assert isinstance(found, Listing)
        assert found.cost.atoms
        assert found.caption.startswith("no rows (measured, ")
        assert "±" not in str(found)


def test_what_is_refused_with_rows_is_refused_without(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session, pytest.raises(tacit.InvalidQuery, match="no row can meet"):
        session.ask("SELECT sex, COUNT(*) FROM data WHERE FALSE GROUP BY sex LIMIT 0")


def test_a_series_gives_columns_for_nothing_too(tmp_path: Path) -> None:
    rows = pd.DataFrame({"sex": ["F", "M"] * 50, "age": list(range(100))})
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    with tacit.series(ledger=tmp_path / "s.tacit", domain=DOMAIN, budget=budget, mechanism="direct") as series:
        series.append(rows, label="2026-01")
        found = series.ask("SELECT block, COUNT(*) AS n FROM data GROUP BY block LIMIT 0")
        assert isinstance(found, Listing)
        assert found.caption == "no rows (public, free)"
