"""Everything that was bought of a table, in words, with what it cost. For `Session.history`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from tacit.model.budget import Loss
from tacit.model.describe import describe
from tacit.model.facts import Receipt
from tacit.model.workload import Question
from tacit.release.public import Public, Purchased

_WORDS = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "discovered": "discovered: "}


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


def history(public: Public, after: int = 0, most: int | None = None) -> History:
    """Oldest first: all, or at most so many after an entry. No more than that is read."""
    bought = public.purchases(after) if most is None else islice(public.purchases(after, most), most)
    return History(past(one, public) for one in bought)


def past(one: Purchased, public: Public) -> Past:
    """A purchase as a line of the history."""
    words = _words(one.kind, one.about, public)
    return Past(words, one.cost, one.receipt, one.kind, one.cost.atoms / (public.whole.atoms / 100))


def _words(kind: str, about: Question | str | None, public: Public) -> str:
    if about is None:
        return "a hard question found"
    return _WORDS.get(kind, "") + (about if isinstance(about, str) else describe(about, public.domain))
