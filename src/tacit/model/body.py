"""Parts of an entry's body, for those who read many and need little of each. Public words, beside the codec in `entry`.

What an entry is, `entry.decode` says, and nothing else. Here are the names under which `entry.encode` writes what is
needed where no entry is made: to count or to judge it by its text, or to see what a purchase was about.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# -- single counts, whole but for their conditions: whoever reads them takes nothing else -----------------------------


class WrittenNoise(Struct, forbid_unknown_fields=True, gc=False):
    """Noise as it is written."""

    kind: str
    scale: float


class WrittenQuestion(Struct, forbid_unknown_fields=True, gc=False):
    """A question as it is written, without its conditions."""

    complement: bool
    factors: tuple[()]
    kind: Literal["query"]


class MeasuredCount(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of a single count that was bought."""

    noise: WrittenNoise
    question: WrittenQuestion
    unit: Literal[1]
    values: tuple[int]


class ToldCount(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of a single count that was told for nothing."""

    bars: list[tuple[int, str, float]]
    note: str
    question: WrittenQuestion
    told: int


# -- how large a question is ------------------------------------------------------------------------------------------


class Factored(Struct):
    """The weights of a question that is announced: how many there are along each axis."""

    shape: list[int]


class Announced(Struct):
    """A question that is announced, as far as the work to make and to judge it depends on it."""

    factors: list[Factored] = []
    where: Announced | None = None
    scopes: list[list[str]] = []


class Announcement(Struct):
    """A body that may announce a question."""

    question: Announced | None = None
    measured: Announcement | None = None  # of what was discovered


# -- what a question is about -----------------------------------------------------------------------------------------


class ScopedFactor(Struct):
    """A factor by the attributes that it is about."""

    scope: list[str]


class ScopedQuestion(Struct):
    """A question by its kind, and by the attributes that its conditions are about."""

    kind: str
    factors: list[ScopedFactor] = []


class ScopedAnswer(Struct):
    """A body that says what was measured."""

    question: ScopedQuestion
