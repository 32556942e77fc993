"""Trusted words: privacy rests on this file.

Where an answer comes from: one record that every answer and every estimate carries. Public words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tacit.model.budget import Loss

Source = Literal["measured", "hypothesis", "repeat", "public"]
NEWEST_FIRST: tuple[Source, ...] = ("measured", "hypothesis", "repeat", "public")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where in the ledger an answer stands: the entry's number and the hash that seals it and all before it."""

    entry: int
    seal: str

    def __str__(self) -> str:
        return f"#{self.entry} {self.seal[:12]}"


# What a bar can be about. Bars of several kinds are joined by "and".
NOISE = "this noise"  # of a fresh measurement, or read off one release by its own law
ANSWER = "this answer"  # a gate's, by itself
FREE = "all free answers at once"  # a gate's, over the session
EXACT = "exact"  # it follows from what is public
LIKE = "questions like this one"


def share_of(share: float, questions: int) -> str:
    """What a certified share is about."""
    return f"{100 * share:.10g}% of {questions:,} {LIKE}"


def all_of(questions: int) -> str:
    """What a certified largest error is about."""
    return f"all {questions:,} questions of this kind at once"


@dataclass(frozen=True, slots=True)
class Bar:
    """A half width that is proved at its confidence, and what it is about. In the unit of what carries it."""

    width: float
    about: str
    confidence: float


def widest(parts: Sequence[Sequence[Bar]]) -> tuple[Bar, ...]:
    """Bars that hold for each of several parts: the widest of those shown, then of the others; none if a part has none.

    A part that has fewer bars stands in with its last one.
    """
    if not all(parts):
        return ()
    kinds = [[part[min(i, len(part) - 1)] for part in parts] for i in range(max(map(len, parts), default=0))]
    sure = [min(bar.confidence for bar in kind) for kind in kinds]
    return tuple(Bar(max(b.width for b in kind), about(kind, s), s) for kind, s in zip(kinds, sure, strict=True))


_AND = " and "


def about(bars: Iterable[Bar], confidence: float) -> str:
    """What a bar of this confidence is about that was put together of these.

    A share of many questions that the bar is less sure of than that loses its figures.
    """
    noisy = [bar for bar in bars if bar.about != EXACT]
    said = (LIKE if bar.about.endswith(LIKE) and bar.confidence != confidence else bar.about for bar in noisy)
    # Some were put together themselves. Each thing is said once, in an order that does not depend on how they came.
    things = {one for words in said for one in words.split(_AND)}
    if any(one.endswith(LIKE) and one != LIKE for one in things):
        things.discard(LIKE)  # it is said with its figures
    return _AND.join(sorted(things)) or EXACT


@dataclass(frozen=True, slots=True)
class Facts:
    """How sure an answer is, where it comes from, what it cost now, and its receipt.

    `source` is "measured" (bought now), "repeat" (answered before), "hypothesis" (worked out from published answers) or
    "public" (follows from the number of rows and the declared domain). `bars` are all that is proved about its error:
    the first is shown, and is the narrowest. `confidence` is the one that was asked for. `total` is the whole budget,
    where something was paid: people read prices as parts of it.
    """

    source: Source
    cost: Loss
    confidence: float
    receipt: Receipt | None = None
    note: str = ""
    bars: tuple[Bar, ...] = ()
    total: Loss | None = None

    @classmethod
    def of(cls, parts: Sequence[Facts], confidence: float) -> Facts:
        """The facts of a value made of several: the newest source, all the cost, and the latest receipt.

        A receipt seals all entries before it, so the latest one covers every part.
        """
        source = min((part.source for part in parts), key=NEWEST_FIRST.index)
        cost = Loss(parts[0].cost.measure, sum(part.cost.atoms for part in parts))
        receipts = [part.receipt for part in parts if part.receipt is not None]
        latest = max(receipts, key=lambda receipt: receipt.entry, default=None)
        return cls(source, cost, confidence, latest, joined(part.note for part in parts))

    @property
    def width(self) -> float | None:
        """The half width of the bar that is shown; None where nothing is proved."""
        return self.bars[0].width if self.bars else None

    @property
    def percent(self) -> float | None:
        """The cost, in per cent of the budget; None where nobody said how much that is."""
        if not self.cost.atoms:
            return 0.0
        return None if self.total is None else 100 * self.cost.atoms / self.total.atoms

    def within(self, width: float | None, about: str = NOISE) -> Facts:
        """These facts with this bar and no other."""
        return replace(self, bars=() if width is None else (Bar(width, about, self.confidence),))

    def to_dict(self) -> dict[str, Any]:
        """The facts as a dict for JSON."""
        receipt = {} if self.receipt is None else {"entry": self.receipt.entry, "seal": self.receipt.seal}
        shown = self.bars[0].confidence if self.bars else self.confidence
        return {
            "confidence": shown,
            **({} if shown == self.confidence else {"asked_confidence": self.confidence}),
            "bars": [{"width": bar.width, "about": bar.about, "confidence": bar.confidence} for bar in self.bars],
            "source": self.source,
            "cost": self.cost.to_dict(),
            **({} if (percent := self.percent) is None else {"percent": percent}),
            **({} if self.total is None else {"total": self.total.to_dict()}),
            **receipt,
            **({"note": self.note} if self.note else {}),
        }


def joined(notes: Iterable[str]) -> str:
    """Several notes as one, in which nothing is said twice."""
    return "; ".join(dict.fromkeys(one for note in notes if note for one in note.split("; ")))
