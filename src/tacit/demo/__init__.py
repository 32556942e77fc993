"""The demonstration: a real public table, and how a session on it is opened. `contest` asks it."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import duckdb

from tacit.config import AboutSection, Config
from tacit.model.attribute import boolean, category, integer, numeric
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.session import Session

FILE = files("tacit.demo") / "randhie.csv.gz"
BUDGET = Budget(epsilon=1.0, delta=1e-9)
PICTURED = "SELECT visits, COUNT(*) FROM data WHERE health = 'excellent' GROUP BY visits"  # what the page opens on

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

ABOUT = AboutSection(
    title="Visits to the doctor",
    text="What families on different insurance plans did with them: visits in a year, health and what they paid.",
    row="one person in one year",
    source="RAND Health Insurance Experiment, 1974–1982, as in Cameron & Trivedi 2005",
    licence="public domain",
)
COLUMNS = {
    "visits": "Visits to a doctor in the year, outside hospitals",
    "health": "How people rate their own health",
    "limited": "Has a physical limitation",
    "diseases": "Index of chronic diseases",
    "coinsurance": "Per cent of a bill that the family pays",
    "deductible": "The plan has a deductible for each person",
}

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
    ledger = folder / f"{options.get('mechanism', 'demo')}.tacit"
    return Config(
        data=view(path),
        table=None,
        domain=DOMAIN,
        budget=BUDGET,
        ledger=ledger,
        options=options,
        about=ABOUT,
        columns=COLUMNS,
    )


def open_demo(folder: Path, **options: Any) -> Session:
    """A session on the demonstration table, with its ledger and anchor in `folder`."""
    with as_file(FILE) as path:
        return config(path, folder, **options).open()
