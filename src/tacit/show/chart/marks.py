"""What can be drawn in a chart: plain frozen data, checked when made. Anybody may call it; see `tacit.show.chart`.

There are seven kinds, enough for every answer. No more are meant to come: this is no drawing library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Shape = Literal["circle", "triangle", "diamond"]
LARGEST, SMALLEST = 1e100, 1e-100  # so that differences and ratios of two numbers are finite


def numbers(given: ArrayLike, what: str, dimensions: int = 1) -> Numbers:
    """The same numbers as a new array that nobody can change."""
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{what} must be numbers.") from problem
    if found.size == 0:
        found = found.reshape((0,) * dimensions)
    if found.ndim != dimensions:
        raise ValueError(f"{what} must have {dimensions} dimension(s), not {found.ndim}.")
    outside = ~(np.abs(found.ravel()) <= LARGEST)  # NaN is outside too
    if outside.any():
        place = int(np.flatnonzero(outside)[0])
        raise ValueError(f"{what} must be finite numbers of at most {LARGEST:g}; number {place} is not.")
    found[np.abs(found) < SMALLEST] = 0.0
    found.setflags(write=False)
    return found


@dataclass(frozen=True, eq=False)
class Polyline:
    """Straight lines through points, x in order. `colour` is a place in the palette; by default each name has one.

    With `steps`, y holds from its x to the next one, as in a distribution function.
    """

    x: ArrayLike
    y: ArrayLike
    name: str = ""
    colour: int | None = None
    dashed: bool = False
    steps: bool = False

    def __post_init__(self) -> None:
        _take(self, "x", "y", ordered=True)


@dataclass(frozen=True, eq=False)
class Area:
    """The area between two curves. Give it its line's name, and it takes that line's colour."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    name: str = ""
    colour: int | None = None

    def __post_init__(self) -> None:
        _take(self, "x", "low", "high", ordered=True)
        _check_ends(np.asarray(self.low), np.asarray(self.high))


@dataclass(frozen=True, eq=False)
class Bars:
    """One bar for each category, upright or lying as they do, with whiskers from low to high."""

    values: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    name: str = ""
    colour: int | None = None

    def __post_init__(self) -> None:
        _take(self, "values")
        _take_ends(self, np.asarray(self.values))


@dataclass(frozen=True, eq=False)
class Points:
    """Marks at points, in any order, with whiskers from low to high; along x if `across`."""

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    name: str = ""
    colour: int | None = None
    shape: Shape = "circle"
    across: bool = False

    def __post_init__(self) -> None:
        _take(self, "x", "y")
        _take_ends(self, np.asarray(self.x if self.across else self.y))


@dataclass(frozen=True, eq=False)
class Ticks:
    """Moments on the x axis, as strokes in a lane of their own below the chart: which questions were hard, say."""

    x: ArrayLike
    name: str = ""
    colour: int | None = None

    def __post_init__(self) -> None:
        _take(self, "x")


@dataclass(frozen=True, eq=False)
class Rule:
    """One straight line across the chart, at an x or at a y, with its name beside it."""

    x: float | None = None
    y: float | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if (self.x is None) == (self.y is None):
            raise ValueError("A rule stands at an x or lies at a y: give one of them.")
        numbers([at for at in (self.x, self.y) if at is not None], "the place of a rule")


@dataclass(frozen=True, eq=False)
class Heat:
    """A table as shades: one row of `values` for each category of y, one column for each of x.

    With the half width `error` of their bars, cells whose bar reaches 0 are hatched: there may be nothing in them.
    """

    values: ArrayLike
    name: str = ""
    error: float | None = None

    def __post_init__(self) -> None:
        _keep(self, values=numbers(self.values, "values", 2))
        numbers([] if self.error is None else [self.error], "the error")

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """The cells whose bar reaches 0."""
        found: NDArray[np.bool_] = np.asarray(self.values) <= (self.error or -np.inf)
        return found


Mark = Polyline | Area | Bars | Points | Ticks | Rule | Heat


def _keep(mark: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(mark, name, value)  # the one moment at which a frozen mark is still being made


def _take(mark: object, *fields: str, ordered: bool = False) -> None:
    """Fields as numbers, equally many; the first of them `ordered` if they make a line."""
    found = {field: numbers(getattr(mark, field), field) for field in fields}
    if len({values.size for values in found.values()}) > 1:
        raise ValueError(f"{' and '.join(fields)} must be equally many.")
    if ordered and np.any(np.diff(found[fields[0]]) < 0):
        raise ValueError("x must not decrease along a line; sort the points first.")
    _keep(mark, **found)


def _take_ends(mark: Bars | Points, middle: Numbers) -> None:
    """The ends of whiskers; one that is not given is where the mark is."""
    if mark.low is None and mark.high is None:
        return
    low, high = (middle if end is None else numbers(end, "an end") for end in (mark.low, mark.high))
    if not low.shape == high.shape == middle.shape:
        raise ValueError("low and high must be as many as the values.")
    _check_ends(low, high)
    _keep(mark, low=low, high=high)


def _check_ends(low: Numbers, high: Numbers) -> None:
    if np.any(low > high):
        raise ValueError("low must not be above high.")
