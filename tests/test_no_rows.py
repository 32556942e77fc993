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
