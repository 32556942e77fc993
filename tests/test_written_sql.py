"""SQL as people and reporting tools write it is the same question as its plain form: one answer, paid for once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import once
from tacit.session import Session

N = 3_000
RNG = np.random.default_rng(3)
ROWS = pd.DataFrame(
    {
        "age": RNG.integers(0, 80, N),
        "sex": RNG.choice(["F", "M"], N),
        "pay": np.where(RNG.random(N) < 0.1, None, RNG.integers(0, 40, N)),
    }
)
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 79, width=10),
        "sex": tacit.category(["F", "M"]),
        "pay": tacit.integer(0, 39, width=10, missing="unknown"),
    }
)
SOURCE = once(ROWS)
MECHANISMS = ["direct", "histogram", "iterative"]


def start(folder: Path, mechanism: str) -> Session:
    return tacit.open(
        data=SOURCE,
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=30.0, delta=1e-9),
        ledger=folder / "people.tacit",
        mechanism=mechanism,
        questions=100,
        start=True,
    )


def told(answer: Any) -> dict[str, Any]:
    """All that an answer says, apart from what it cost this time."""
    return {k: v for k, v in answer.to_dict().items() if k not in ("source", "cost", "percent", "total", "listed")}


def check_same(session: Session, written: str, plain: str) -> None:
    """Ask a statement as it is written, at the price that was foretold, and then in its plain form, for nothing."""
    before, foreseen = session.spent.atoms, session.dry_run(written)
    answer = session.ask(written)
    assert session.spent.atoms - before <= foreseen.cost_at_most.atoms, written
    assert not foreseen.known or session.spent.atoms == before
    spent = session.spent
    assert told(session.ask(plain)) == told(answer), written
    assert session.spent == spent, written
    assert session.dry_run(written).cost_at_most.atoms == 0


AGGREGATES = [
    ("SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END)", "SUM(age) FILTER (WHERE sex = 'F')"),
    ("SUM(CASE WHEN sex = 'M' THEN age END)", "SUM(age) FILTER (WHERE sex = 'M')"),
    ("SUM(IF(age < 30, pay, 0))", "SUM(pay) FILTER (WHERE age < 30)"),
    ("AVG(CASE sex WHEN 'F' THEN pay END)", "AVG(pay) FILTER (WHERE sex = 'F')"),
    ("COUNT(CASE WHEN age < 50 THEN pay END)", "COUNT(pay) FILTER (WHERE age < 50)"),
    ("COUNT(CASE WHEN age >= 60 THEN 'old' END)", "COUNT(*) FILTER (WHERE age >= 60)"),
    ("SUM(CASE WHEN age < 20 THEN 2.5 ELSE 0 END)", "2.5 * COUNT(*) FILTER (WHERE age < 20)"),
    ("AVG(CASE WHEN age < 40 THEN 100 ELSE 0 END)", "100 * COUNT(*) FILTER (WHERE age < 40) / COUNT(*)"),
    ("AVG(CASE WHEN sex = 'F' THEN age ELSE 0 END)", "SUM(age) FILTER (WHERE sex = 'F') / COUNT(*)"),
    ("STDDEV(CASE WHEN age < 40 THEN pay END)", "STDDEV(pay) FILTER (WHERE age < 40)"),
    ("MEDIAN(CASE WHEN sex = 'F' THEN age END)", "MEDIAN(age) FILTER (WHERE sex = 'F')"),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_aggregate_of_a_case_is_one_of_some_rows(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for written, plain in AGGREGATES:
            check_same(session, f"SELECT {written} AS v FROM data", f"SELECT {plain} AS v FROM data")
            tables = (f"SELECT sex, {value} AS v FROM data GROUP BY sex" for value in (written, plain))
            check_same(session, *tables)
        check_same(
            session,
            "SELECT COUNT(DISTINCT CASE WHEN sex = 'F' THEN age END) AS v FROM data",
            "SELECT COUNT(DISTINCT age) AS v FROM data WHERE sex = 'F'",
        )
