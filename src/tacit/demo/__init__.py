"""The demonstration: a real public table, a handful of questions, private answers beside the truth."""

from __future__ import annotations

import json
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tacit.model.answer import Answer, Table
from tacit.model.attribute import boolean, category, integer, numeric
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.opening import open_session
from tacit.session import Session

if TYPE_CHECKING:
    from rich.console import Console

ROWS = 20_190
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


def view(path: Path) -> str:
    """The demonstration table as a query over its file."""
    return _VIEW.format(path=str(path).replace("'", "''"))


def open_demo(folder: Path, *, questions: int = 100) -> Session:
    """A session on the demonstration table, with its ledger and anchor in `folder`."""
    with as_file(files("tacit.demo") / "randhie.csv.gz") as path:
        return open_session(
            data=view(path),
            domain=DOMAIN,
            budget=BUDGET,
            ledger=folder / "demo.tacit",
            anchor=folder / "anchors.sqlite",
            questions=questions,
        )


def run(console: Console | None, *, as_json: bool) -> None:
    """Ask the questions and show the answers beside the truth."""
    with tempfile.TemporaryDirectory() as folder, open_demo(Path(folder)) as session:
        asked = [session.ask(question) for question in QUESTIONS]
        answers = [answer for answer in asked if isinstance(answer, Answer | Table)]  # what these questions give
        if as_json or console is None:
            left = {session.left.measure: float(session.left)}
            print(json.dumps({"answers": [answer.to_dict() for answer in answers], "left": left}, ensure_ascii=False))
        else:
            _show(console, session, answers, _truths())


def _truths() -> list[int | None]:
    """The exact answers. The table is public; nothing else in Tacit may do this."""
    with as_file(files("tacit.demo") / "randhie.csv.gz") as path, duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW data AS {view(path)}")
        rows = [connection.execute(question).fetchall() for question in QUESTIONS]
    return [int(row[0][0]) if len(row) == 1 else None for row in rows]


def _show(console: Console, session: Session, answers: list[Answer | Table], truths: list[int | None]) -> None:
    from rich.table import Table as Grid

    console.print(
        f"\n[bold]The RAND Health Insurance Experiment[/]: {session.rows:,} rows, {session.domain.size:,} cells. A "
        f"row is one person in one year; the privacy unit is a row.\nOne budget for everything: {session.budget}. "
        f"Mechanism: {session.choice.mechanism} ({session.choice.reason.rstrip('.')}).\n",
        highlight=False,
    )
    grid = Grid("question", title="Private answers", title_style="bold", expand=False)
    for heading in ("answer", "± (95%)", "truth*", "source", "cost"):
        grid.add_column(heading, justify="left" if heading == "source" else "right", no_wrap=True)
    for question, answer, truth in zip(QUESTIONS, answers, truths, strict=True):
        asked = question.removeprefix("SELECT ").removeprefix("COUNT(*) FROM data WHERE ")
        cost = f"{float(answer.cost):.2g}" if answer.cost.atoms else "free"
        if isinstance(answer, Answer):
            row = (f"{answer.value:,.0f}", f"{answer.error:,.0f}", f"{truth:,}", answer.source, cost)
            grid.add_row(asked, *row)
        else:
            grid.add_row(asked, "", f"{answer.error:,.0f}", "", answer.source, cost)
            for labels, value in answer.rows():
                grid.add_row("  " + ", ".join(labels), f"{value:,.0f}", "", "", "", "")
    console.print(grid)
    console.print(
        "* this table is public, so the truth can be shown here; Tacit itself never shows it.\n"
        f"Spent [bold]{session.spent.atoms / session.total.atoms:.0%}[/] of the budget ({session.spent}); "
        f"left [bold]{session.left.atoms / session.total.atoms:.0%}[/] ({session.left}).\n"
        "Ask the same again, or anything the answers already determine, and it is free.\n",
        highlight=False,
    )
