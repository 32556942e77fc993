"""A session's ledger as steps, one for each thing bought or told. For the report; from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.model.answer import Measured, Receipt, Told
from tacit.model.budget import Loss
from tacit.model.describe import describe
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Convolution, Product, Tree
from tacit.model.workload import Intervals, Marginal, Prefixes
from tacit.session import Session

KINDS = {
    "table": "tables",
    "range": "ranges",
    "count": "single counts",
    "statistic": "statistics",
    "gate": "hard questions found",
    "choice": "choices and comparisons",
    "told": "free answers",
}
_WITHOUT_ANSWER = {"gate": "gate", "choice": "choice", "compared": "choice"}


@dataclass(frozen=True, eq=False)
class Step:
    """One entry that was bought or told; `answer` is None for a gate, a choice or a comparison."""

    receipt: Receipt
    kind: str
    question: str
    cost: Loss
    answer: Measured | Told | None

    @property
    def free(self) -> bool:
        return self.kind == "told"


def steps(session: Session) -> list[Step]:
    """In the order of the ledger."""
    answers = {answer.receipt.entry: answer for answer in session.answers()}
    found = []
    for past in session.history:
        answer = answers.pop(past.receipt.entry, None)
        kind = _kind(answer) if isinstance(answer, Measured) else _WITHOUT_ANSWER[past.kind]
        found.append(Step(past.receipt, kind, past.question, past.cost, answer))
    for answer in answers.values():
        nothing = Loss(session.total.measure, 0)
        words = describe(answer.question, session.domain)
        found.append(Step(answer.receipt, "told", words, nothing, answer))
    return sorted(found, key=lambda step: step.receipt.entry)


def bought_by_kind(found: Sequence[Step], session: Session) -> list[tuple[str, int, Loss]]:
    """What was paid for each kind: its name, how many, the cost; then what is reserved without an outcome."""
    lines = []
    for kind, name in KINDS.items():
        own = [step.cost.atoms for step in found if step.kind == kind]
        if own and kind != "told":
            lines.append((name, len(own), Loss(session.total.measure, sum(own))))
    rest = session.spent.atoms - sum(cost.atoms for _, _, cost in lines)
    if rest > 0:
        lines.append(("reserved", 0, Loss(session.total.measure, rest)))
    return lines


def single(step: Step, session: Session) -> tuple[float, float | None] | None:
    """The value of an answer that has just one, and its error; in counts."""
    answer = step.answer
    if isinstance(answer, Told):
        unit = answer.question.unit
        return answer.value / unit, None if answer.half_width is None else answer.half_width / unit
    if isinstance(answer, Measured) and isinstance(answer.question, Query | Statistic):
        return int(answer.values[0]) / answer.unit, quantile(answer.noise, session.confidence) / answer.unit
    return None


def _kind(answer: Measured) -> str:
    if isinstance(answer.question, Marginal):
        return "table"
    if isinstance(answer.question, Tree | Convolution | Product | Prefixes | Intervals):
        return "range"
    return "statistic" if isinstance(answer.question, Statistic) else "count"
