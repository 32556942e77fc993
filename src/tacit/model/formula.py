"""What aggregates are made of: weighted counts, how a value is put together from them, and numbers for bins.

Public words and arithmetic, for `aggregate` and whoever puts values together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.factor import GRID, MAX_TABLE
from tacit.model.facts import joined
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.values import Days, Listed, Point

Floats = NDArray[np.float64]
IF_ANY = "if a row meets the condition, which is not told"  # of what is the same whichever rows do
IF_TWO = "if two rows meet the condition, which is not told"


class Figure(NamedTuple):
    """A value, and how far off it can be; None where nothing is guaranteed."""

    value: float
    error: float | None


@dataclass(frozen=True)
class Weighed:
    """The sum, over the rows of a condition, of a weight in [0, 1] that one attribute gives; without one, a count.

    With `also`, two attributes give it together, the second one's values fastest.
    """

    where: Query
    name: str = ""
    weights: tuple[float, ...] = ()
    also: str = ""

    def query(self, domain: Domain, inside: Sequence[Query] = ()) -> Query:
        """The question that has this sum for an answer, among the rows that also lie `inside`."""
        names = [name for name in (self.name, self.also) if name]
        given = np.reshape(self.weights, domain.shape_of(names)) if names else None
        weighed = [] if given is None else [Query.weighted(domain, names, given)]
        return Query.all([self.where, *inside, *weighed]) if inside or weighed else self.where

    @property
    def rounding(self) -> float:
        """How far a weight is from the grid that questions live on, at most."""
        w = np.asarray(self.weights, dtype=np.float64)
        return float(np.abs(np.rint(w * GRID) / GRID - w).max(initial=0.0))


@dataclass(frozen=True)
class Formula:
    """The weighted counts that a value is made of, and how it is put together from them and the number of rows.

    Without parts the value follows from the condition alone; `constant` says why, to whom asks it of each group.
    """

    parts: tuple[Weighed, ...]
    put_together: Callable[[Sequence[Figure], int], Figure]
    note: str = ""
    doubt: str = ""  # what is said where nothing is guaranteed
    constant: str = ""
    limits: Callable[[int], tuple[float, float]] = lambda _: (-math.inf, math.inf)  # of the value, for a number of rows
    beyond: Callable[[int], float] = lambda _: 0.0  # how far bins move it at most, which its bar leaves out


@dataclass(frozen=True, eq=False)
class Middles:
    """The number that stands for each bin of an attribute, NaN where a condition allows no row."""

    domain: Domain
    name: str
    where: Query
    values: Floats
    rounding: float

    @classmethod
    def of(cls, domain: Domain, name: str, where: Query) -> Middles:
        """The middles of an attribute's bins; refuses attributes that have no numbers."""
        check_unweighted(where)
        attribute = domain[name]
        if attribute.size > MAX_TABLE:
            raise InvalidQuery(f"{name} has {attribute.size:,} values; at most {MAX_TABLE:,} can be weighed.")
        values, rounding = _middles(name, attribute)
        allowed = possible(where, [name], [attribute.size])[: attribute.bins]
        return cls(domain, name, where, np.where(allowed, values, np.nan), rounding)

    @property
    def inside(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)

    @property
    def low(self) -> float:
        if not self.inside.any():
            raise InvalidQuery(f"no row that meets the condition has a value of {self.name}, so there is no mean.")
        return float(np.nanmin(self.values))

    @property
    def span(self) -> float:
        low = self.low  # which refuses where there is no value at all
        return float(np.nanmax(self.values)) - low

    @property
    def places(self) -> Floats:
        """Where each value lies between the least and the largest, from 0 to 1; 0 for those that no row has."""
        return np.where(self.inside, (self.values - self.low) / self.span, 0.0)

    def alike(self, value: float, said: str, enough: str) -> Formula:
        """The value of what follows from all rows having the same one, if there are enough of them."""
        same = f"every row that meets the condition has the same {self.name}, {self.low:g}."
        return Formula((), lambda _, __: Figure(value, 0.0), joined((said, enough)), constant=same)

    def weighed(self, weights: NDArray[np.generic]) -> Weighed:
        """The sum of these weights, one for each bin; rows outside the bins weigh nothing."""
        padded = np.zeros(self.domain[self.name].size)
        padded[: len(weights)] = np.minimum(weights.astype(np.float64), 1.0)
        return Weighed(self.where, self.name, tuple(padded.tolist()))

    def known(self, other: Middles) -> Middles:
        """These middles among the rows where another attribute has a value too."""
        if self.domain[other.name].bins == self.domain[other.name].size:
            return self
        bins = Query.among(self.domain, other.name, range(self.domain[other.name].bins))
        return replace(self, where=Query.all([self.where, bins]))

    def weighed_with(self, other: Middles) -> Weighed:
        """The sum of ((2p - 1)(2q - 1) + 1)/2 for the places p and q of two attributes; of known values alone."""
        mine, theirs = (np.where(one.inside, 2 * one.places - 1, 0.0) for one in (self, other))
        inside = np.outer(self.inside, other.inside)
        weights = np.zeros([self.domain[one.name].size for one in (self, other)])
        weights[: len(mine), : len(theirs)] = np.where(inside, (np.outer(mine, theirs) + 1) / 2, 0.0)
        return Weighed(self.where, self.name, tuple(np.clip(weights, 0.0, 1.0).ravel().tolist()), other.name)

    def note(
        self, words: str = "a value is taken for the middle of its bin, off by at most {0:g} beyond the error bar"
    ) -> str:
        """What has to be said of values that stand for their bins."""
        other = self.domain[self.name].other
        left_out = "" if other is None else f"rows whose {self.name} is {other} are left out"
        return joined((words.format(self.rounding) if self.rounding else "", left_out))


def ratio(top: Figure, bottom: Figure) -> Figure:
    """A part by its whole, cut to [0, 1], and how far off it can be where both bars hold.

    The extremes of t/b over the two intervals are at their ends, since b stays above 0; where it may not, the truth may
    have no value at all, and nothing is promised. Where no part of its whole is within both bars, the bar is that of
    the nearest one that is: an error of 0 would say that it is certain.
    """
    value = min(max(top.value / max(bottom.value, 1.0), 0.0), 1.0)
    if top.error is None or bottom.error is None or bottom.value - bottom.error <= 0:
        return Figure(value, None)
    has, off = top.value, top.error
    if has + off <= 0:
        has = 0.0
    elif has - off >= bottom.value + bottom.error:
        has = bottom.value
    high = min(1.0, (has + off) / (bottom.value - bottom.error))
    low = max(0.0, has - off) / (bottom.value + bottom.error)
    return Figure(value, max(high - value, value - low, 0.0))


def share(part: Figure, rest: Figure) -> Figure:
    """A part by the sum of it and the rest, cut to [0, 1], and how far off it can be where both bars hold.

    It rises with the part and falls with the rest, so its extremes are at the ends of their intervals. Where both may
    be 0 the truth may have no value at all, and nothing is promised. Two bars of the same width make the quotient's
    as wide as one of them by the whole; the bar of a `ratio` has the part's and, times the quotient, the whole's. One
    that lies below 0 with all of its bar counts as 0 with that bar: an error of 0 would say that it is certain.
    """
    has, lacks = max(part.value, 0.0), max(rest.value, 0.0)
    value = has / (has + lacks) if has + lacks > 0 else 0.5
    if part.error is None or rest.error is None or max(part.value - part.error, rest.value - rest.error) <= 0:
        return Figure(value, None)
    low, high = max(0.0, part.value - part.error), _above(part.value, part.error)
    fewest, most = max(0.0, rest.value - rest.error), _above(rest.value, rest.error)
    low, high = low / (low + most) if low else 0.0, high / (high + fewest) if high else 0.0
    return Figure(value, max(high - value, value - low, 0.0))


def _above(value: float, error: float) -> float:
    """The upper end of a bar, of a count that is not below 0."""
    return value + error if value + error > 0 else error


def check_unweighted(where: Query) -> None:
    if where.unit > 1:
        raise InvalidQuery("rows are chosen by conditions, not by weights.")


def middles_of(attribute: Attribute) -> tuple[Floats, float, float]:
    """The middle of each bin of an ordered attribute, how far a value can be from it, and how wide all bins are."""
    lows, middles, highs = bounds_of(attribute)
    return middles, float((highs - lows).max() / 2), float(attribute.edge(attribute.bins) - attribute.edge(0))


def starts_of(starts: Sequence[Point]) -> Floats:
    """Starts of bins as floats. Those of whole numbers are a range, of which no list is made."""
    if isinstance(starts, range):
        return np.arange(starts.start, starts.stop, starts.step, dtype=np.int64).astype(np.float64)
    return np.array(starts, dtype=np.float64)


def edges_of(attribute: Attribute) -> Floats:
    """Where each bin of an ordered attribute starts, and where the last one ends."""
    assert not isinstance(attribute.values, Listed)
    return np.append(starts_of(attribute.values.starts), float(attribute.values.end))


def bounds_of(attribute: Attribute) -> tuple[Floats, Floats, Floats]:
    """The least value of each bin of an ordered attribute, its middle, and its largest value, or where it ends."""
    assert not isinstance(attribute.values, Listed)
    edges = edges_of(attribute)
    lows, highs = edges[:-1], edges[1:] - attribute.values.whole
    return lows, (lows + highs) / 2, highs


def _middles(name: str, attribute: Attribute) -> tuple[Floats, float]:
    if isinstance(attribute.values, Listed):
        if isinstance(attribute.values.values[0], str):
            raise InvalidQuery(f"{name} is not a number, so it has no sum and no mean.")
        return np.array([float(value) for value in attribute.values.values]), 0.0
    if isinstance(attribute.values, Days):
        raise InvalidQuery(f"{name} has dates, which have a median but no sum and no mean.")
    return middles_of(attribute)[:2]
