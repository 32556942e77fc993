"""Trusted words: privacy rests on this file.

What an attribute's values can be: listed one by one, or half-open bins of something ordered.

The three ordered kinds look the same from outside: `starts` (where each bin starts), `end` (where the last one ends,
excluded), `read` (a user's value as a point of the axis), `show`, and `whole` (each point has a next one).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from tacit.errors import InvalidDomain

Unit = Literal["day", "month", "year"]
Value = str | int | float | bool | dt.date
MAX_LABEL = 128  # characters of a value that is discovered
Point = int | float  # a place on an ordered attribute's axis; for dates the day's ordinal


@dataclass(frozen=True)
class Listed:
    """Values named one by one: all text, all whole numbers, or (False, True)."""

    values: tuple[str, ...] | tuple[int, ...]

    def __post_init__(self) -> None:
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}) and not (kinds == {bool} and self.values == (False, True)):
            raise InvalidDomain("a category lists at least one value, all text or all whole numbers.")
        if len(set(self.values)) < len(self.values):
            raise InvalidDomain("a value of a category is listed twice.")
        for value in self.values:
            if isinstance(value, str) and (value.endswith(" ") or not value.isprintable()):
                raise InvalidDomain(f"{value!r} cannot be listed: a value is printable text without blanks at its end.")
            if isinstance(value, int) and abs(value) >= 2**53:
                raise InvalidDomain("the whole numbers of a category lie within ±2**53.")

    @cached_property
    def kind(self) -> str:
        return "boolean" if isinstance(self.values[0], bool) else "category"

    @property
    def bins(self) -> int:
        return len(self.values)

    @cached_property
    def _index(self) -> dict[str | int, int]:
        return dict(zip(self.values, range(self.bins), strict=True))

    def label(self, index: int) -> str:
        return str(self.values[index]).lower() if self.kind == "boolean" else str(self.values[index])

    def locate(self, value: Value) -> int | None:
        if not isinstance(value, str | int) or (isinstance(value, bool) and self.kind != "boolean"):
            return None
        if isinstance(value, str) and self.kind == "boolean":
            return {"false": 0, "true": 1}.get(value.lower())
        return self._index.get(value)


@dataclass(frozen=True)
class Integers:
    """Whole numbers from `low` to `high`, both included, in bins of `width`."""

    low: int
    high: int
    width: int
    kind = "integer"
    whole = True

    def __post_init__(self) -> None:
        given = (self.low, self.high, self.width)
        if any(type(v) is not int for v in given) or self.width < 1 or not -(2**52) < self.low <= self.high < 2**52:
            raise InvalidDomain(
                "an integer attribute has whole numbers low <= high within ±2**52 and a width of at least 1, "
                f"not {self.low!r}, {self.high!r} and {self.width!r}."
            )

    @cached_property
    def starts(self) -> Sequence[Point]:
        return range(self.low, self.high + 1, self.width)

    @cached_property
    def end(self) -> int:
        return self.high + 1

    def read(self, value: Value) -> Point | None:
        return value if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else None

    def show(self, point: Point) -> str:
        return str(int(point))

    def label(self, first: Point, end: Point) -> str:
        last = int(end) - 1
        return str(first) if first == last else f"{first}{'–' if first >= 0 else ' to '}{last}"


@dataclass(frozen=True)
class Reals:
    """Real numbers in half-open bins [edge, next edge)."""

    edges: tuple[Point, ...]
    kind = "numeric"
    whole = False

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not all(type(e) in (int, float) and abs(e) < 1e300 for e in self.edges):
            raise InvalidDomain("a numeric attribute has at least two edges, each a finite number.")
        if any(a >= b for a, b in pairwise(self.edges)):
            raise InvalidDomain("the edges of a numeric attribute go up, each larger than the one before.")

    @cached_property
    def starts(self) -> Sequence[Point]:
        return self.edges[:-1]

    @cached_property
    def end(self) -> Point:
        return self.edges[-1]

    def read(self, value: Value) -> Point | None:
        return value if isinstance(value, int | float) else None

    def show(self, point: Point) -> str:
        return repr(float(point)).removesuffix(".0")  # the shortest decimal that is this number

    def label(self, first: Point, end: Point) -> str:
        return f"[{self.show(first)}, {self.show(end)})"


@dataclass(frozen=True)
class Days:
    """Days from `low` to `high`, both included, in bins of a day, a month or a year."""

    low: dt.date
    high: dt.date
    by: Unit
    kind = "date"
    whole = True

    def __post_init__(self) -> None:
        if type(self.low) is not dt.date or type(self.high) is not dt.date or not self.low <= self.high < dt.date.max:
            raise InvalidDomain("a date attribute runs from a first to a last day, like 2020-01-01 to 2024-12-31.")
        if self.by not in ("day", "month", "year"):
            raise InvalidDomain(f"dates are binned by day, month or year, not {self.by!r}.")
        if any(self._start(self.unit(day)) != day for day in (self.low, self.high + dt.timedelta(days=1))):
            raise InvalidDomain(f"a date attribute by {self.by} starts and ends with a whole {self.by}.")

    def unit(self, day: dt.date) -> int:
        """Which day, month or year `day` lies in, counted from a fixed origin."""
        return {"day": day.toordinal(), "month": 12 * day.year + day.month - 1, "year": day.year}[self.by]

    def _start(self, unit: int) -> dt.date:
        if self.by == "day":
            return dt.date.fromordinal(unit)
        return dt.date(unit, 1, 1) if self.by == "year" else dt.date(unit // 12, unit % 12 + 1, 1)

    @cached_property
    def starts(self) -> Sequence[Point]:
        if self.by == "day":
            return range(self.low.toordinal(), self.high.toordinal() + 1)
        units = range(self.unit(self.low), self.unit(self.high) + 1)
        return tuple(self._start(unit).toordinal() for unit in units)

    @cached_property
    def end(self) -> int:
        return self.high.toordinal() + 1

    def first_day(self, text: str) -> str:
        """The first day of the month or the year that is called so in tables; any other text as it is."""
        length, rest = {"day": (10, ""), "month": (7, "-01"), "year": (4, "-01-01")}[self.by]
        return text + rest if len(text) == length else text

    def read(self, value: Value) -> Point | None:
        if isinstance(value, str):
            try:
                value = dt.date.fromisoformat(value)
            except ValueError:
                return None
        return value.toordinal() if type(value) is dt.date else None

    def show(self, point: Point) -> str:
        return dt.date.fromordinal(int(point)).isoformat()

    def label(self, first: Point, end: Point) -> str:
        return self.show(first)[: {"day": 10, "month": 7, "year": 4}[self.by]]


Bins = Integers | Reals | Days


def as_listed(value: object) -> str | int | None:
    """A value as a category would list it; None for one that none can."""
    if isinstance(value, str):
        return value if value and len(value) <= MAX_LABEL and value.isprintable() and value[-1] != " " else None
    return int(value) if isinstance(value, int | float) and abs(value) < 2**53 and value == int(value) else None
