"""Parts of an entry's body, for those who read many and need little of each. Public words, beside the codec in `entry`.

What an entry is, `entry.decode` says, and nothing else. Here are the names under which `entry.encode` writes what is
needed where no entry is made: to count or to judge it by its text, or to see what a purchase was about.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

# -- answers, whole but for their weights: whoever reads them takes nothing else ---------------------------------------


class WrittenNoise(Struct, forbid_unknown_fields=True, gc=False):
    """Noise as it is written."""

    kind: str
    scale: float


class WrittenQuery(Struct, forbid_unknown_fields=True, gc=False):
    """A query as it is written, without its weights."""

    complement: bool
    factors: tuple[()]
    kind: Literal["query"]


class WrittenWhere(Struct, forbid_unknown_fields=True, gc=False):
    """The condition of a table as it is written, without its weights."""

    complement: bool
    factors: tuple[()]


class WrittenTable(Struct, forbid_unknown_fields=True, gc=False):
    """A table under a condition as it is written, without the condition's weights."""

    kind: Literal["marginal"]
    names: list[str]
    where: WrittenWhere


class MeasuredQuery(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of an answer to a query that was bought."""

    noise: WrittenNoise
    question: WrittenQuery
    unit: Literal[1]
    values: tuple[int]


class MeasuredTable(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of a table that was bought, but for all its numbers after the first."""

    noise: WrittenNoise
    question: WrittenTable
    unit: Literal[1]
    values: tuple[int]


class ToldQuery(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of an answer to a query that was told for nothing."""

    bars: list[tuple[int, str, float]]
    note: str
    question: WrittenQuery
    told: int


class SaidIntent(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of an intent in words."""

    purpose: str


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
