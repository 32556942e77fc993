"""A session's past as events, one for each thing bought or told. For the report and the server; from public facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.model.answer import Answer
from tacit.model.budget import Loss
from tacit.model.describe import describe
from tacit.model.entry import Measured, Told
from tacit.model.facts import Receipt
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.answering import one_answer
from tacit.release.estimate import of_stored
from tacit.session import Session

# What is bought, by kind, in the order in which a budget is shown.
BOUGHT = {
    "table": "tables",
    "range": "ranges",
    "count": "single counts",
    "statistic": "statistics",
    "gate": "hard questions found",
    "choice": "choices and comparisons",
}
_WITHOUT_ANSWER = {"gate": "gate", "choice": "choice", "compared": "choice"}


@dataclass(frozen=True, eq=False)
class Event:
    """One entry of the ledger: something bought, of a kind in `BOUGHT`, or "told" for nothing.

    `answer` is None for a gate, a choice or a comparison.
    """

    receipt: Receipt
    kind: str
    question: str
    cost: Loss
    answer: Measured | Told | None

    @property
    def free(self) -> bool:
        return self.kind == "told"


def events(session: Session) -> list[Event]:
    """In the order of the ledger."""
    answers = {answer.receipt.entry: answer for answer in session.answers()}
    found = []
    for past in session.history:
        answer = answers.pop(past.receipt.entry, None)
        kind = _kind(answer) if isinstance(answer, Measured) else _WITHOUT_ANSWER[past.kind]
        found.append(Event(past.receipt, kind, past.question, past.cost, answer))
    free = Loss(session.total.measure, 0)
    for answer in answers.values():
        found.append(Event(answer.receipt, "told", describe(answer.question, session.domain), free, answer))
    return sorted(found, key=lambda event: event.receipt.entry)


def spending(found: Sequence[Event], session: Session) -> list[tuple[str, int, Loss]]:
    """What was paid for each kind: its name, how many, the cost; then what is reserved without an outcome."""
    lines = []
    for kind, name in BOUGHT.items():
        own = [event.cost.atoms for event in found if event.kind == kind]
        if own:
            lines.append((name, len(own), Loss(session.total.measure, sum(own))))
    rest = session.spent.atoms - sum(cost.atoms for _, _, cost in lines)
    if rest > 0:
        lines.append(("reserved", 0, Loss(session.total.measure, rest)))
    return lines


def single(event: Event, session: Session) -> Answer | None:
    """The answer of an event that has just one value."""
    stored = event.answer
    if stored is None or not isinstance(question := stored.question, Query | Statistic):
        return None
    estimate = of_stored(stored, question, session.rows, session.confidence)
    return one_answer(event.question, question, estimate, session.rows)


def _kind(answer: Measured) -> str:
    match answer.question:
        case Marginal():
            return "table"
        case Query():
            return "count"
        case Statistic():
            return "statistic"
        case _:
            return "range"
