"""Trusted words: privacy rests on this file.

The attributes an owner can declare, and how a question's values are found in them.

An attribute has `bins` regular bins, numbered from 0. A declared `other` value (for what lies outside the bins) and a
declared `missing` value (for NULL and NaN) come after them, in this order. What is neither declared nor clamped refuses
the load.

An attribute is read from the column of its own name, or is a `part` of another column `of` dates or times: the hour of
the day, the day of the week, the month of the year.
"""

from __future__ import annotations

import datetime as dt
import difflib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.values import Bins, Days, Integers, Listed, Point, Reals, Unit, Value

MAX_BINS = 2**24
TimePart = Literal["hour", "weekday", "month"]
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Attribute:
    """One declared column: its values or bins, and where values outside them and missing ones go."""

    values: Listed | Bins
    other: str | None = None
    missing: str | None = None
    clamp: bool = False
    of: str | None = None
    part: TimePart | None = None

    def __post_init__(self) -> None:
        if self.part is not None and (not isinstance(self.of, str) or not self.of.strip() or not self.of.isprintable()):
            raise InvalidDomain(f"of is the name of the column whose {self.part} it is, not {self.of!r}.")
        if not 1 <= self.bins <= MAX_BINS:
            raise InvalidDomain(f"an attribute has 1 to {MAX_BINS:,} bins; this one would have {self.bins:,}.")
        for word, label in (("other", self.other), ("missing", self.missing)):
            if label is None:
                continue
            if not isinstance(label, str) or not label[:1].isalpha() or not label.isprintable() or label[-1] == " ":
                raise InvalidDomain(f"{word} is a label that begins with a letter, not {label!r}.")
            if isinstance(self.values, Listed) and self.values.locate(label) is not None:
                raise InvalidDomain(f"{word} = {label!r} is one of the listed values too.")
        if self.other is not None and self.other == self.missing:
            raise InvalidDomain(f"other and missing are both called {self.other!r}; give them different labels.")
        if not isinstance(self.clamp, bool):
            raise InvalidDomain(f"clamp is true or false, not {self.clamp!r}.")
        if self.clamp and (self.other is not None or not self.ordered):
            raise InvalidDomain("clamp is for ordered attributes that have no 'other' value.")

    @property
    def kind(self) -> str:
        return self.values.kind

    @cached_property
    def ordered(self) -> bool:
        return not isinstance(self.values, Listed)

    @cached_property
    def bins(self) -> int:
        """How many regular bins there are."""
        return self.values.bins if isinstance(self.values, Listed) else len(self.values.starts)

    @cached_property
    def extras(self) -> tuple[str, ...]:
        return tuple(label for label in (self.other, self.missing) if label is not None)

    @cached_property
    def size(self) -> int:
        """How many values the attribute takes in all, `other` and `missing` included."""
        return self.bins + len(self.extras)

    @property
    def other_index(self) -> int | None:
        return None if self.other is None else self.bins

    @property
    def missing_index(self) -> int | None:
        return None if self.missing is None else self.size - 1

    def edge(self, index: int) -> Point:
        """Where bin `index` starts; for index = bins, where the last one ends (excluded)."""
        assert not isinstance(self.values, Listed)
        return self.values.end if index == self.bins else self.values.starts[index]

    def label(self, index: int) -> str:
        """What a value is called in tables."""
        if index >= self.bins:
            return self.extras[index - self.bins]
        if isinstance(self.values, Listed):
            return self.values.label(index)
        starts = self.values.starts
        return self.values.label(starts[index], self.values.end if index + 1 == self.bins else starts[index + 1])

    def typical(self, index: int) -> Value | None:
        """A value that stands for a bin in synthetic rows: one that would be counted there; None for missing."""
        if index >= self.bins:
            return None if index == self.missing_index else self.other
        if isinstance(self.values, Listed):
            return self.values.values[index]
        middle = (self.edge(index) + self.edge(index + 1)) / 2
        if isinstance(self.values, Days):
            return dt.date.fromordinal(int(middle))
        return int(middle) if self.values.whole else middle

    def locate(self, name: str, value: Value) -> int:
        """The index of the value or bin that holds `value`; refuses one outside the declared domain."""
        if isinstance(value, str) and value in self.extras:
            return self.bins + self.extras.index(value)
        if isinstance(self.values, Listed):
            index = self.values.locate(value)
            if index is None:
                meant = self._meant(value)
                hint = f"it takes {self.takes}." if meant is None else f"did you mean {meant!r}?"
                raise InvalidQuery(f"{name} has no value {_shown(value)}; {hint}", meant)
            return index
        if isinstance(self.values, Days) and isinstance(value, str):
            value = self.values.first_day(value)
        point = self.point(name, value)
        if not self.edge(0) <= point < self.edge(self.bins):
            raise InvalidQuery(f"{name} takes {self.takes}, the question asks {self.values.show(point)}.")
        return bisect_right(self.values.starts, point) - 1

    def find(self, name: str, value: Value) -> int:
        """The index of exactly this value. Refuses one that is not declared or that shares its bin with others."""
        index = self.locate(name, value)
        if isinstance(self.values, Listed) or index >= self.bins or value == self.label(index):
            return index
        if not self.values.whole or self.edge(index + 1) - self.edge(index) > 1:
            raise InvalidQuery(f"{name} = {value} lies in the bin {self.label(index)}; ask for whole bins.")
        return index

    def below(self, name: str, value: Value, *, included: bool = False) -> int:
        """How many bins hold the values `< value` (`<= value` if included). Refuses to cut a bin or leave the range."""
        return self.cut(name, self.point(name, value), included=included)

    def cut(self, name: str, point: Point, *, included: bool = False) -> int:
        """The cut at a value that was read as a point of the axis already."""
        assert not isinstance(self.values, Listed)
        # Between numbers there is no next one. What is refused names edges that can be asked, so an edge comes last.
        half_open = included and not self.values.whole
        included = included and not half_open
        starts, end = self.values.starts, self.values.end
        if not starts[0] <= point + included <= end:
            raise InvalidQuery(f"{name} takes {self.takes}, the question asks {self.values.show(point)}.")
        point += included
        index = bisect_right(starts, point) - 1
        if point not in (starts[index], end):
            near = [self.edge(i) for i in (index, index + 1)]
            if included:  # in the words of the question: the last value that is in, not the first that is out
                ends = " and ".join(self.values.show(edge - 1) for edge in near if edge > starts[0])
                shown = self.values.show(point - 1)
                raise InvalidQuery(f"{name} cannot be cut after {shown}: the nearest bins end with {ends}.")
            edges = " and ".join(self.values.show(edge) for edge in near)
            raise InvalidQuery(f"{name} cannot be cut at {self.values.show(point)}: the nearest bin edges are {edges}.")
        if half_open:
            shown = self.values.show(point)
            raise InvalidQuery(
                f"the bins of {name} are half-open, so a bin may start but never end with {shown}: "
                f"ask {name} < {shown} or {name} >= {shown}."
            )
        return self.bins if point == end else index

    @property
    def takes(self) -> str:
        """The declared values in a few words, for messages."""
        if isinstance(self.values, Listed):
            return ", ".join(self.label(i) for i in range(min(self.size, 8))) + (", …" if self.size > 8 else "")
        last = (
            self.values.show(self.values.end - 1) if self.values.whole else f"below {self.values.show(self.values.end)}"
        )
        return f"{self.values.show(self.edge(0))} to {last}"

    def undeclared(self, name: str, *, missing: bool) -> str:
        """What to declare where rows have no value, or one outside: the words of a refusal."""
        if missing:
            return f'{name} has missing values and declares no label for them: add missing = "unknown" to it'
        remedy = 'other = "other"' + (" or clamp = true" if self.ordered else "")
        return f"{name} has values outside what is declared ({self.takes}): add {remedy} to it, or declare more"

    def point(self, name: str, value: Value) -> Point:
        """Where a value lies on an ordered attribute's axis."""
        assert not isinstance(self.values, Listed)
        point = None if isinstance(value, bool) else self.values.read(value)
        if point is None or not abs(point) < 1e300:
            wants = {"integer": "whole numbers", "numeric": "numbers", "date": "dates like 2024-05-31"}[self.kind]
            raise InvalidQuery(f"{name} takes {wants}, the question asks {_shown(value)}.")
        return point

    def _meant(self, value: Value) -> str | None:
        listed = [self.label(index) for index in range(min(self.size, 1000))]
        near = difflib.get_close_matches(value, listed, n=1) if isinstance(value, str) and len(value) < 100 else []
        return near[0] if near else None


def _shown(value: object) -> str:
    """A value as a message repeats it: cut short, and a number of thousands of digits is not written out at all."""
    return "a huge number" if isinstance(value, int) and abs(value) >= 2**200 else repr(value)[:60]


def category(
    values: Sequence[str] | Sequence[int], *, other: str | None = None, missing: str | None = None
) -> Attribute:
    """An attribute with listed values.

    >>> category(["F", "M"], missing="unknown").size
    3
    """
    if not isinstance(values, list | tuple | range):
        raise InvalidDomain(f"a category lists its values, like ['F', 'M'], not {values!r}.")
    return Attribute(Listed(tuple(values)), other, missing)


def boolean(*, other: str | None = None, missing: str | None = None) -> Attribute:
    """An attribute that is true or false."""
    return Attribute(Listed((False, True)), other, missing)


def integer(
    low: int, high: int, *, width: int = 1, clamp: bool = False, other: str | None = None, missing: str | None = None
) -> Attribute:
    """Whole numbers from low to high, both included, in bins of `width`; `clamp` moves what lies outside to the ends.

    >>> [integer(15, 29, width=5).label(i) for i in range(3)]
    ['15–19', '20–24', '25–29']
    """
    return Attribute(Integers(low, high, width), other, missing, clamp)


def numeric(
    edges: Sequence[float], *, clamp: bool = False, other: str | None = None, missing: str | None = None
) -> Attribute:
    """Real numbers in half-open bins between the given edges.

    >>> numeric([0, 10_000, 25_000]).label(1)
    '[10000, 25000)'
    """
    if not isinstance(edges, list | tuple | range):
        raise InvalidDomain(f"a numeric attribute lists its edges, like [0, 10, 20], not {edges!r}.")
    # As floats, and -0.0 as 0.0: edges that are equal numbers make equal attributes.
    floats = (e + 0.0 if type(e) in (int, float) and abs(e) < 1e300 else e for e in edges)
    return Attribute(Reals(tuple(floats)), other, missing, clamp)


def date(
    low: dt.date | str,
    high: dt.date | str,
    *,
    by: Unit = "day",
    clamp: bool = False,
    other: str | None = None,
    missing: str | None = None,
) -> Attribute:
    """Days from low to high, both included, in bins of a day, a month or a year.

    >>> date("2020-01-01", "2024-12-31", by="month").size
    60
    """
    try:
        first, last = (dt.date.fromisoformat(day) if isinstance(day, str) else day for day in (low, high))
    except ValueError:
        raise InvalidDomain(f"a date is written like 2024-05-31, not {low!r} or {high!r}.") from None
    return Attribute(Days(first, last, by), other, missing, clamp)


def hour(of: str, *, width: int = 1, missing: str | None = None) -> Attribute:
    """The hour of the day, 0 to 23, of the timestamps in the column `of`.

    >>> hour("departed", width=6).label(1)
    '6–11'
    """
    return Attribute(Integers(0, 23, width), missing=missing, of=of, part="hour")


def weekday(of: str, *, missing: str | None = None) -> Attribute:
    """The day of the week, Monday to Sunday, of the dates or timestamps in the column `of`."""
    return Attribute(Listed(WEEKDAYS), missing=missing, of=of, part="weekday")


def month(of: str, *, missing: str | None = None) -> Attribute:
    """The month of the year, 1 to 12, of the dates or timestamps in the column `of`."""
    return Attribute(Integers(1, 12, 1), missing=missing, of=of, part="month")
