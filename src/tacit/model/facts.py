"""Trusted words: privacy rests on this file.

Where an answer comes from: one record that every answer and every estimate carries. Public words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
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


AboutKind = Literal["noise", "answer", "free", "exact", "share", "like", "all", "release", "rows", "several", "other"]
_WORDS: dict[AboutKind, str] = {
    "noise": "this noise",  # of a fresh measurement, or read off one release by its own law
    "answer": "this answer",  # a gate's, by itself
    "free": "all free answers at once",  # a gate's, over the session
    "exact": "exact",  # it follows from what is public
    "share": "{0.percent:.10g}% of {0.questions:,} questions like this one",  # a certified share
    "like": "questions like this one",  # a certified share, where a bar is less sure than its figures say
    "all": "all {0.questions:,} questions of this kind at once",  # a certified largest error
    "release": "all {0.questions:,} questions of one release at once",
    "rows": "all rows that went into it at once",  # what a statement makes of groups
    "other": "{0.said}",
}
_AND = " and "
_END = "; "  # between notes, which stay one text


@dataclass(frozen=True, slots=True)
class About:
    """What a bar is about. `kind` says what is promised, and `words` say it to people.

    A share, a largest error and a release are of so many `questions`; a share is so many `percent` of them. A bar about
    several things has them as its `parts`. Where a file says what this version does not, `said` has the file's words.
    """

    kind: AboutKind
    questions: int = 0
    percent: float = 0.0
    said: str = ""
    parts: frozenset[About] = frozenset()
    words: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """The words have one spelling, which stands in answers, ledgers and published files: `about_of` reads it."""
        several = _AND.join(sorted(one.words for one in self.parts))
        object.__setattr__(self, "words", several or _WORDS[self.kind].format(self))

    @property
    def things(self) -> frozenset[About]:
        """Each thing that it is about."""
        return self.parts or frozenset([self])

    @property
    def at_once(self) -> bool:
        """Whether everything that it is about is one event for many answers, so that the bar holds for all of them."""
        return all(one.kind in ("free", "all", "release", "rows") for one in self.things)

    def __str__(self) -> str:
        return self.words

    def __repr__(self) -> str:
        return f"about_of({self.words!r})"


@lru_cache(maxsize=256)
def about_of(said: str) -> About:
    """What a bar of a file, or of a server, is about. What `About` would not say so is carried as it stands."""
    found = _together(map(_thing, said.split(_AND)))
    return found if found.words == said else About("other", said=said)


def _thing(said: str) -> About:
    kind, numbers = _KINDS.get(_shape(said)), [one for one in said.split(" ") if one[:1].isdigit()]
    percent, questions = ["0", "0", *numbers][-2:]
    try:
        if kind is not None:
            return About(kind, int(questions.replace(",", "")), float(percent.rstrip("%")))
    except ValueError:
        pass  # it only begins with a digit
    return About("other", said=said)


def _shape(said: str) -> str:
    return " ".join("#" if one[:1].isdigit() else one for one in said.split(" "))


@lru_cache(maxsize=256)
def share_of(share: float, questions: int) -> About:
    """What a certified share is about."""
    return About("share", questions, float(f"{100 * share:.10g}"))


@lru_cache(maxsize=256)
def all_of(questions: int) -> About:
    """What a certified largest error is about."""
    return About("all", questions)


def _together(abouts: Iterable[About]) -> About:
    """What several bars are about together, each thing once: where all are exact, it is exact."""
    things = {thing for one in abouts for thing in one.things} - {EXACT}
    if any(one.kind == "share" for one in things):
        things.discard(_LIKE)  # it is said with its figures
    return About("several", parts=frozenset(things)) if len(things) > 1 else next(iter(things), EXACT)


NOISE, ANSWER, FREE, EXACT, ROWS = About("noise"), About("answer"), About("free"), About("exact"), About("rows")
_LIKE = About("like")
_KINDS = {_shape(About(kind, 1, 1.0).words): kind for kind in _WORDS if kind not in ("several", "other")}


@dataclass(frozen=True, slots=True)
class Bar:
    """A half width that is proved at its confidence, and what it is about. In the unit of what carries it."""

    width: float
    about: About
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


def about(bars: Iterable[Bar], confidence: float) -> About:
    """What a bar of this confidence is about that was put together of these.

    A share of many questions that the bar is less sure of than that loses its figures.
    """
    return _together(
        _LIKE if one.kind == "share" and bar.confidence != confidence else one
        for bar in bars
        for one in bar.about.things
    )


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

    def within(self, width: float | None, about: About = NOISE) -> Facts:
        """These facts with this bar and no other."""
        return replace(self, bars=() if width is None else (Bar(width, about, self.confidence),))

    def to_dict(self) -> dict[str, Any]:
        """The facts as a dict for JSON."""
        receipt = {} if self.receipt is None else {"entry": self.receipt.entry, "seal": self.receipt.seal}
        shown = self.bars[0].confidence if self.bars else self.confidence
        return {
            "confidence": shown,
            **({} if shown == self.confidence else {"asked_confidence": self.confidence}),
            "bars": [{"width": bar.width, "about": bar.about.words, "confidence": bar.confidence} for bar in self.bars],
            "source": self.source,
            "cost": self.cost.to_dict(),
            **({} if (percent := self.percent) is None else {"percent": percent}),
            **({} if self.total is None else {"total": self.total.to_dict()}),
            **receipt,
            **({"note": self.note} if self.note else {}),
        }


def joined(notes: Iterable[str]) -> str:
    """Several notes as one, in which nothing is said twice."""
    return _END.join(dict.fromkeys(one for note in notes if note for one in note.split(_END)))


def without(note: str, said: str) -> str:
    """A note without one of those of which it was joined."""
    return _END.join(one for one in note.split(_END) if one != said)
