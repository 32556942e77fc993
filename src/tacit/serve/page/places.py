"""The other pages of a data set: its history, its plan and, for the owner, who asked what. Called by the routes.

All of it is worked out from what was released, from public parameters and from the audit log, which holds no values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.model.answer import Measured
from tacit.model.workload import Marginal
from tacit.reporting.page import escaped, grid, paragraph, percent
from tacit.reporting.sections import guarantees_section, plan_section
from tacit.reporting.steps import Step, single
from tacit.serve.dataset import Dataset
from tacit.serve.page.answer import number
from tacit.serve.page.layout import heading, unstyled
from tacit.session import Session

PAGE = 50  # lines


def history(
    found: Sequence[Step], session: Session, who: Mapping[int, str] | None, *, before: int, free: bool, here: str
) -> str:
    """What was bought, and if wanted what was told for nothing; newest first, in pages. `who` is for the owner."""
    newest = [
        step for step in reversed(found) if (free or not step.free) and (not before or step.receipt.entry < before)
    ]
    shown, more = newest[:PAGE], len(newest) > PAGE
    head = ["entry", "question", "answer", "cost", "of the budget", "seal", *([] if who is None else ["who"])]
    rows = [
        [
            str(step.receipt.entry),
            step.question,
            _told(step, session),
            f"{float(step.cost):.4g}" if step.cost.atoms else "free",
            percent(step.cost.atoms / session.total.atoms) if step.cost.atoms else "",
            step.receipt.seal[:12],
            *([] if who is None else [who.get(step.receipt.entry, "")]),
        ]
        for step in shown
    ]
    kept = "&amp;free=1" if free else ""
    many = sum(step.free for step in found)
    links = [f'<a href="{here}?free=1">Show {many:,} free answers too</a>'] if many and not free else []
    links += [f'<a href="{here}">Only what was bought</a>'] if free else []
    links += [f'<a href="{here}?before=0{kept}">Newest</a>'] if before else []
    links += [f'<a href="{here}?before={shown[-1].receipt.entry}{kept}" rel="next">Older</a>'] if more else []
    table = grid(f"Losses are in {session.total.measure}", head, rows, right=[0, 3, 4])
    return (
        heading(
            "History",
            "What was bought, newest first. Answers that were told for nothing, because those before already "
            "determined them, are kept too; repeats are free, and leave no trace.",
        )
        + (table or paragraph("Nothing was asked yet."))
        + (f'<nav aria-label="History" class="links"><p>{" ".join(links)}</p></nav>' if links else "")
    )


def plan(session: Session, expected: str) -> str:
    """The mechanism and why, what to expect of it (`expectations`), and what is promised: from public parameters."""
    about = f"{session.rows:,} rows, {len(session.domain)} attributes, {session.domain.size:,} cells; {session.budget}."
    return (
        heading("Plan", about)
        + f"<section><h2>How questions are answered</h2>{expected}</section>"
        + f"<section><h2>What is guaranteed</h2>{guarantees_section(session)}</section>"
    )


def expectations(session: Session) -> str:
    """What the planner says: it takes a moment, and never changes."""
    return unstyled(plan_section(session))


def audit(records: Sequence[Mapping[str, Any]], limit: int, here: str) -> str:
    """Who asked what, newest first. The log holds keys of questions, and no values."""
    head = ["time", "who", "role", "question", "outcome", "entry"]
    rows = [
        [
            str(record.get("time", "")).replace("T", " ")[:19],
            str(record.get("who", "")),
            str(record.get("role", "")),
            str(record.get("question", ""))[:16]
            or (f"{record['questions']:,} questions" if "questions" in record else ""),
            _outcome(record),
            str(record.get("entry", "")),
        ]
        for record in records
    ]
    more = f'<p class="links"><a href="{escaped(here)}?limit={limit * 4}">More</a></p>' if len(rows) == limit else ""
    return (
        heading("Audit log", "Who asked what, and when: for you, the owner. It holds no values. Times are in UTC.")
        + (grid(f"The newest {len(rows):,}", head, rows, right=[5]) or paragraph("Nobody has asked yet."))
        + more
    )


def askers(dataset: Dataset, most: int = 10_000) -> dict[int, str]:
    """Who asked for each entry, as far back as the audit log's newest lines go."""
    found: dict[int, str] = {}
    for record in dataset.audit.last(most):  # newest first: the first to ask has the last word
        if "entry" in record and "who" in record:
            found[int(record["entry"])] = str(record["who"])
    return found


def _outcome(record: Mapping[str, Any]) -> str:
    cost = record["cost"].items() if isinstance(record.get("cost"), Mapping) else ()
    paid = ", ".join(f"{name} = {float(amount):.6g}" for name, amount in cost)
    if "refused" in record:  # a part of it may have been paid for
        return f"refused: {record['refused']}" + (f", after {paid}" if paid else "")
    if paid:
        return paid
    return "free" if record.get("free") == 1 else f"{record.get('free', 0):,} free"


def _told(step: Step, session: Session) -> str:
    found = single(step, session)
    if found is not None:
        value, error = found
        return number(value) + ("" if error is None else f" ± {number(error)}")
    if isinstance(step.answer, Measured):
        what = "table" if isinstance(step.answer.question, Marginal) else "release"
        return f"a {what} of {step.answer.values.size:,} numbers"
    return ""
