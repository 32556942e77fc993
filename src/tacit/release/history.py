"""Everything that was bought of a table, in words, with what it cost. For `Session.history`."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.model.budget import Loss
from tacit.model.describe import describe
from tacit.model.facts import Receipt
from tacit.release.public import Public

_WORDS = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "gate": "a hard question found"}


@dataclass(frozen=True)
class Past:
    """One line of the history: a question in words, what it cost, also in per cent of the budget, and its receipt.

    `kind` is "measured" (an answer), "choice" (one of several candidates), "compared" (whether a guess is far off) or
    "gate" (a hard question found).
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


def history(public: Public) -> History:
    """Oldest first."""
    return History(
        Past(
            question=_WORDS[kind] + describe(question, public.domain) if question else _WORDS["gate"],
            cost=cost,
            receipt=receipt,
            kind=kind,
            percent=cost.atoms / (public.total.atoms / 100),
        )
        for kind, question, cost, receipt in public.purchases()
    )
