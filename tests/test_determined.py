"""What is the same whichever rows meet a condition: nothing is bought for it, and nothing is told of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.model.answer import Answer, QuantileAnswer
from tacit.model.formula import IF_ANY
from tacit.session import Session

DOMAIN = tacit.Domain(
    {
        "a": tacit.integer(0, 9),
        "age": tacit.integer(0, 99, width=10),
        "d": tacit.boolean(missing="unknown"),
        "sex": tacit.category(["F", "M"]),
    }
)
MECHANISMS = ["direct", "iterative", "histogram"]
# Statements, their values, and whether that is NULL where no row meets the condition.
DETERMINED = [
    ("SELECT AVG(a) FROM data WHERE a = 5", 5, True),
    ("SELECT AVG(d) FROM data WHERE d", 1, True),
    ("SELECT AVG(d) FROM data WHERE NOT d", 0, True),
    ("SELECT COUNT(*) FILTER (WHERE a < 5) / COUNT(*) FROM data WHERE a < 3", 1, True),
    ("SELECT AVG(d) * 100 FROM data WHERE d AND sex = 'F'", 100, True),
    ("SELECT MEDIAN(a) + 1 FROM data WHERE a = 5", 6, True),
    ("SELECT STDDEV_POP(a) FROM data WHERE a = 5", 0, True),
    ("SELECT COUNT(*) * 0 FROM data WHERE a = 5", 0, False),
    ("SELECT 0 * COUNT(*) FROM data WHERE sex = 'F'", 0, False),
    ("SELECT SUM(a) * 0 FROM data WHERE sex = 'F'", 0, False),
    ("SELECT COUNT(*) * 0 + 3 FROM data WHERE a = 9", 3, False),
]


def opened(folder: Path, mechanism: str = "direct", **rows: Any) -> Session:
    """All rows are the same, so that most conditions are met by all of them or by none."""
    given = pd.DataFrame({"a": [5] * 400, "age": 44, "d": True, "sex": "F"}).assign(**rows)
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    return tacit.open(data=given, domain=DOMAIN, budget=budget, ledger=folder / "l.tacit", mechanism=mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("sql", "value", "may_be_null"), DETERMINED)
def test_what_is_determined_is_exact_and_free(
    tmp_path: Path, mechanism: str, sql: str, value: float, may_be_null: bool
) -> None:
    with opened(tmp_path, mechanism) as session:
        price = session.dry_run(sql)
        assert (price.known, price.cost_at_most.atoms) == (True, 0)
        found = session.ask(sql)
        assert isinstance(found, Answer)
        assert (found.value, found.error, found.cost.atoms) == (value, 0, 0)
        assert found.bars[0].about.words == "exact"
        assert (IF_ANY in found.note) == may_be_null
        assert not session.status().spent.atoms


def test_a_quantile_in_the_only_bin_that_the_condition_leaves_is_determined(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = session.ask("SELECT MEDIAN(a) FROM data WHERE a = 5")
        assert isinstance(found, QuantileAnswer)
        assert (found.value, found.low, found.high, found.says) == ("5", "5", "5", "sharp")
        assert str(found) == f"5 (exact, public, free) · {IF_ANY}"
        # As a number it is somewhere in its bin.
        wide = session.ask("SELECT MEDIAN(age) + 1 FROM data WHERE age BETWEEN 40 AND 49")
        assert isinstance(wide, Answer)
        assert (wide.value, wide.error) == (45.5, 4.5)
        assert not session.status().spent.atoms


def test_it_is_the_same_where_no_row_meets_the_condition(tmp_path: Path) -> None:
    """Whether there is one is a secret: what is told for nothing must not depend on it."""
    statements = [*(sql for sql, _, _ in DETERMINED), "SELECT MEDIAN(a) FROM data WHERE a = 5"]
    said = []
    for name, rows in (("some", {}), ("none", {"a": 7, "d": None, "sex": "M"})):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name, **rows) as session:
            said.append([session.ask(sql).to_dict() for sql in statements])
    assert said[0] == said[1]


def test_groups_that_may_be_empty_are_bought_like_any_others(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = session.ask("SELECT sex, AVG(d) FROM data WHERE d GROUP BY sex")
        assert found.cost.atoms
        assert session.dry_run("SELECT AVG(a) * 0 FROM data WHERE sex = 'F'").cost_at_most.atoms
