"""What was bought before, one line for each purchase: what `history` gives. Public words."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.model.budget import Loss
from tacit.model.facts import Receipt


@dataclass(frozen=True)
class Past:
    """One line of the history: a question in words, what it cost, also in per cent of the budget, and its receipt.

    `kind` is "measured" (an answer), "choice" (one of several candidates), "compared" (whether a guess is far off),
    "discovered" (values or bins, before the domain was declared) or "gate" (a hard question found).
    """

    question: str
    cost: Loss
    receipt: Receipt
    kind: str
    percent: float


class History(list[Past]):
    """Everything bought so far, oldest first."""

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        rows = [[str(one.receipt.entry), one.question, f"{one.percent:.3g} %"] for one in self]
        return notebook(head=["entry", "bought", "of the budget"], rows=rows, notes=[])
