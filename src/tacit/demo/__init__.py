"""The demonstration: a real public table, a handful of questions, and the truth about them."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import duckdb

from tacit.config import Config
from tacit.model.attribute import boolean, category, integer, numeric
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.session import Session

FILE = files("tacit.demo") / "randhie.csv.gz"
BUDGET = Budget(epsilon=1.0, delta=1e-9)

DOMAIN = Domain(
    {
        "visits": integer(0, 20, clamp=True),
        "health": category(["excellent", "good", "fair", "poor"]),
        "limited": boolean(),
        "diseases": numeric([0, 5, 10, 15, 20, 30, 60]),
        "coinsurance": category([0, 25, 50, 95, 100]),
        "deductible": boolean(),
    }
)

# The table's own columns are logarithms and dummies; this view gives them back their meaning.
_VIEW = """
SELECT mdvis AS visits,
       CASE WHEN hlthp = 1 THEN 'poor' WHEN hlthf = 1 THEN 'fair' WHEN hlthg = 1 THEN 'good' ELSE 'excellent' END
         AS health,
       physlm >= 0.5 AS limited,
       disea AS diseases,
       CAST(ROUND(EXP(lncoins) - 1) AS INTEGER) AS coinsurance,
       idp = 1 AS deductible
FROM read_csv('{path}')
"""

QUESTIONS = [
    "SELECT COUNT(*) FROM data WHERE health = 'poor'",
    "SELECT COUNT(*) FROM data WHERE visits = 0",
    "SELECT COUNT(*) FROM data WHERE visits >= 1",
    "SELECT COUNT(*) FROM data WHERE limited AND diseases >= 20",
    "SELECT COUNT(*) FROM data WHERE coinsurance = 0 AND visits BETWEEN 5 AND 20",
    "SELECT COUNT(*) FROM data WHERE NOT (visits > 0)",
    "SELECT health, COUNT(*) FROM data GROUP BY health",
    "SELECT COUNT(*) FROM data WHERE health IN ('fair', 'poor')",
]


def demo_data() -> Any:
    """The demonstration table as a data frame. It is public."""
    with as_file(FILE) as path:
        return duckdb.sql(view(path)).df()


def view(path: Path) -> str:
    """The demonstration table as a query over its file."""
    return _VIEW.format(path=str(path).replace("'", "''"))


def config(path: Path, folder: Path, **options: Any) -> Config:
    """How the demonstration's file is opened, with its ledger and anchor in `folder`."""
    options = {"anchor": folder / "anchors.sqlite", **options}
    return Config(view(path), None, DOMAIN, BUDGET, folder / "demo.tacit", options)


def open_demo(folder: Path, *, questions: int = 10_000) -> Session:
    """A session on the demonstration table, with its ledger and anchor in `folder`."""
    with as_file(FILE) as path:
        return config(path, folder, questions=questions).open()


def truths() -> list[int | None]:
    """The exact answers. The table is public; nothing else in Tacit may do this."""
    with as_file(FILE) as path, duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW data AS {view(path)}")
        rows = [connection.execute(question).fetchall() for question in QUESTIONS]
    return [int(row[0][0]) if len(row) == 1 else None for row in rows]
