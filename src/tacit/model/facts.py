"""Trusted words: privacy rests on this file.

Where an answer comes from: one record that every answer and every estimate carries. Public words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tacit.model.budget import Loss

Source = Literal["measured", "hypothesis", "repeat", "public"]
_NEWEST_FIRST: tuple[Source, ...] = ("measured", "hypothesis", "repeat", "public")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where in the ledger an answer stands: the entry's number and the hash that seals it and all before it."""

    entry: int
    seal: str

    def __str__(self) -> str:
        return f"#{self.entry} {self.seal[:12]}"


@dataclass(frozen=True, slots=True)
class Facts:
    """How sure an answer is, where it comes from, what it cost now, and its receipt.

    `source` is "measured" (bought now), "repeat" (answered before), "hypothesis" (worked out from published answers) or
    "public" (follows from the number of rows and the declared domain). `alone` is the error of this answer by itself
    where that is not the error shown, `likely` a standard deviation that nobody promises; both in the error's unit.
    """

    source: Source
    cost: Loss
    confidence: float
    receipt: Receipt | None = None
    note: str = ""
    alone: float | None = None
    likely: float | None = None

    @classmethod
    def of(cls, parts: Sequence[Facts], confidence: float) -> Facts:
        """The facts of a value made of several: the newest source, all the cost, and the latest receipt.

        A receipt seals all entries before it, so the latest one covers every part.
        """
        source = min((part.source for part in parts), key=_NEWEST_FIRST.index)
        cost = Loss(parts[0].cost.measure, sum(part.cost.atoms for part in parts))
        receipts = [part.receipt for part in parts if part.receipt is not None]
        latest = max(receipts, key=lambda receipt: receipt.entry, default=None)
        return cls(source, cost, confidence, latest, joined(part.note for part in parts))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        receipt = {} if self.receipt is None else {"entry": self.receipt.entry, "seal": self.receipt.seal}
        return {
            "confidence": self.confidence,
            "source": self.source,
            "cost": {self.cost.measure: float(self.cost)},
            **receipt,
            **({"note": self.note} if self.note else {}),
        }


def joined(notes: Iterable[str]) -> str:
    """Several notes as one, in which nothing is said twice."""
    return "; ".join(dict.fromkeys(one for note in notes if note for one in note.split("; ")))
