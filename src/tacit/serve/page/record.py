"""The other pages of a data set: its budget, its history, its plan and, for the owner, who asked what.

All of it is worked out from what was released, from public parameters and from the audit log, which holds no values.
Called by the routes; each function gives what a template names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.model.answer import Measured
from tacit.model.workload import Marginal
from tacit.serve.dataset import Dataset
from tacit.serve.page.answer import WIDTH, number
from tacit.serve.schema import QuotaLine
from tacit.session import Session
from tacit.show.chart import Gauge
from tacit.show.events import Event, events, single, spending
from tacit.show.pages import percent
from tacit.show.report import expectation, odds

PAGE = 50  # lines
_NEARLY_NOTHING = 1e-6  # of the budget: nothing that anybody could buy


@dataclass
class Kept:
    """What need not be worked out again: each data set's plan, and its gauge until more is spent."""

    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    gauges: dict[str, tuple[int, Gauge]] = field(default_factory=dict)

    def plan(self, dataset: Dataset) -> dict[str, Any]:
        """The mechanism and why, what to expect of it, and what is promised: from public parameters."""
        session = dataset.session
        if dataset.name not in self.plans:  # it takes a moment, and never changes
            self.plans[dataset.name] = expectation(session)
        size = f"{session.rows:,} rows, {len(session.domain)} attributes, {session.domain.size:,} cells"
        return {
            "about": f"{size}; {session.budget}.",
            "expected": self.plans[dataset.name],
            "session": session,
            "odds": odds(session),
        }

    def budget(self, dataset: Dataset, quota: QuotaLine | None) -> dict[str, Any]:
        """The one budget: what is left, what was bought, and a quota if the key has one."""
        session, gauge = dataset.session, self.gauge(dataset)
        total, spent = session.total.atoms, session.spent.atoms
        used = 0.0
        if quota is not None:
            used, most = (next(iter(part.values())) for part in (quota.used, quota.of))
            used = min(1.0, used / most)
        return {
            "left": 1 - min(1.0, spent / total),
            "finished": total - spent < _NEARLY_NOTHING * total,
            "whole": session.budget,
            "epsilon_spent": session.epsilon_spent,
            "gauge": gauge,
            "reserved": any(name == "reserved" for name, _ in gauge.parts),
            "quota": quota,
            "quota_used": used,
        }

    def gauge(self, dataset: Dataset) -> Gauge:
        session = dataset.session
        spent = session.spent.atoms
        known = self.gauges.get(dataset.name)
        if known is None or known[0] != spent:
            parts = [(name, float(cost)) for name, _, cost in spending(events(session), session)]
            whole = max(float(session.total), sum(size for _, size in parts))  # spent meanwhile
            known = spent, Gauge("", parts, whole, session.total.measure, width=WIDTH)
            self.gauges[dataset.name] = known
        return known[1]


def history(
    found: Sequence[Event], session: Session, who: Mapping[int, str] | None, before: int, *, free: bool
) -> dict[str, Any]:
    """What was bought, and if wanted what was told for nothing; newest first, in pages. `who` is for the owner."""
    newest = [
        event for event in reversed(found) if (free or not event.free) and (not before or event.receipt.entry < before)
    ]
    shown = newest[:PAGE]
    rows = [
        [
            str(event.receipt.entry),
            event.question,
            _told(event, session),
            f"{float(event.cost):.4g}" if event.cost.atoms else "free",
            percent(event.cost.atoms / session.total.atoms) if event.cost.atoms else "",
            event.receipt.seal[:12],
            *([] if who is None else [who.get(event.receipt.entry, "")]),
        ]
        for event in shown
    ]
    return {
        "head": ["entry", "question", "answer", "cost", "of the budget", "seal", *([] if who is None else ["who"])],
        "rows": rows,
        "measure": session.total.measure,
        "free": free,
        "free_ones": sum(event.free for event in found),
        "before": before,
        "older": shown[-1].receipt.entry if len(newest) > PAGE else None,
    }


def audit(records: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Who asked what, newest first. The log holds keys of questions, and no values."""
    return [
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


def _told(event: Event, session: Session) -> str:
    found = single(event, session)
    if found is not None:
        value, error = found
        return number(value) + ("" if error is None else f" ± {number(error)}")
    if isinstance(event.answer, Measured):
        what = "table" if isinstance(event.answer.question, Marginal) else "release"
        return f"a {what} of {event.answer.values.size:,} numbers"
    return ""
