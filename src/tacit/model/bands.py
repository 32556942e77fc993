"""Groups of an attribute's values that a statement groups by, such as wider bins. Public words and arithmetic."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction as Exact
from itertools import chain, pairwise
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.formula import starts_of
from tacit.model.values import Days, Integers, Listed, Point, Reals, Value

_WIDTHS_NAMED = 5  # widths that a refusal suggests
_MOST_SAID = 80  # characters of labels, in words
_TRIED = 64  # multiples of a width that are looked for before all of them are
_WHOLE = 2**53  # below it a float holds every whole number
Period = Literal["day", "week", "month", "quarter", "year"]
# What declared days, months and years can be put together to, and how many days such a period has at most.
FITTING: dict[str, tuple[Period, ...]] = {
    "day": ("day", "week", "month", "quarter", "year"),
    "month": ("month", "quarter", "year"),
    "year": ("year",),
}
_LONGEST: dict[Period, int] = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}


@dataclass(frozen=True)
class Bands:
    """The values of an attribute in groups with labels of their own: each value is in one group, and none is empty.

    said: what it is, in words. parts: the indices of each group's values. values: what each group is compared by; None
    where a comparison is neither true nor false. end: the value that a further group would have, where the groups lie
    one after the other; None where they have no order. null: the label of the group that is NULL. whole: whether the
    declared range begins and ends with a group, so that no value outside it belongs to one of them.
    """

    said: str
    parts: tuple[Sequence[int], ...]
    labels: tuple[str, ...]
    values: tuple[Value | None, ...]
    end: Value | None = None
    null: str | None = None
    whole: bool = True

    def __post_init__(self) -> None:
        several = (self.parts, self.labels, self.values)
        if not all(type(one) is tuple for one in several) or len({len(one) for one in several}) != 1:
            raise InvalidQuery("groups of values are tuples of parts, labels and values, one of each for every group.")
        if not isinstance(self.said, str) or not all(isinstance(label, str) for label in self.labels):
            raise InvalidQuery("groups of values are called by texts.")

    def check(self, size: int) -> None:
        """Refuse parts that do not hold each of so many values once."""
        try:
            wide = [np.arange(part.start, part.stop) for part in self.parts if _is_wide(part)]
            rest = chain.from_iterable(part for part in self.parts if not _is_wide(part))
            indices = np.concatenate([*wide, np.fromiter(rest, dtype=np.int64)])
            whole = all(map(len, self.parts)) and np.array_equal(np.sort(indices), np.arange(size))
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole:
            raise InvalidQuery(f"groups of {size:,} values hold each of them once, by its index, and none is empty.")

    @property
    def one_by_one(self) -> bool:
        """Whether each declared value is a group, in their order: only labels differ."""
        return all(len(part) == 1 and part[0] == i for i, part in enumerate(self.parts))


def _is_wide(part: Sequence[int]) -> TypeGuard[range]:
    """Whether a part is a run of so many values that it is listed quicker at once than one by one."""
    return type(part) is range and part.step == 1 and len(part) > 64


def gathered(put_together: np.ufunc, cells: NDArray[Any], parts: Sequence[Sequence[int]], axis: int) -> NDArray[Any]:
    """Cells put together along an axis, one for each part."""
    order = np.fromiter(chain.from_iterable(parts), dtype=np.int64)
    sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    return put_together.reduceat(cells.take(order, axis), np.cumsum(sizes) - sizes, axis=axis)


def in_a_row(
    said: str,
    attribute: Attribute,
    cuts: Sequence[int],
    values: Sequence[Value],
    names: Sequence[str] = (),
    *,
    whole: bool,
) -> Bands:
    """Groups of bins, each from one cut to the next, and the value of one more. Other and missing values stay alone.

    Without names, groups are called as wider bins are.
    """
    assert not isinstance(attribute.values, Listed)
    ends = [*cuts[1:], attribute.bins]
    parts = [range(a, b) for a, b in zip(cuts, ends, strict=True)]
    labels = names or [
        attribute.label(a) if b == a + 1 else attribute.values.label(attribute.edge(a), attribute.edge(b))
        for a, b in zip(cuts, ends, strict=True)
    ]
    alone = [range(i, i + 1) for i in range(attribute.bins, attribute.size)]
    return Bands(
        said,
        (*parts, *alone),
        (*labels, *attribute.extras),
        (*values[:-1], *(None for _ in alone)),
        values[-1],
        attribute.missing,
        whole,
    )


def by_label(name: str, labelled: Mapping[str | int | float | None, Sequence[int]]) -> Bands:
    """Values by the labels that they are given, in their order; None is NULL, which comes last."""
    some = {label: tuple(part) for label, part in labelled.items() if len(part)}
    known = [label for label in some if label is not None]
    null = ("",) if None in some else ()
    names = (*map(str, known), *null)
    said = ", ".join(name or "–" for name in names)
    said = said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}…"
    parts = (*(some[label] for label in known), *(some[None] for _ in null))
    return Bands(f"{name} ({said})", parts, names, (*known, *(None for _ in null)), null=null[0] if null else None)


def by_width(
    name: str, attribute: Attribute, width: float, announced: Callable[[int], None] = lambda number: None
) -> Bands:
    """Wider bins, which start at the multiples of a width. How many there are is announced before they are made."""
    cuts = _coarse_cuts(attribute, width)
    if cuts is None:
        fit = _fitting_widths(attribute)
        which = f"the widths that fit are {', '.join(f'{w:g}' for w in fit)}" if fit else "no width fits"
        raise InvalidQuery(
            f"{name} cannot be grouped by {width:g}: bins that start at its multiples would cut the declared ones; "
            f"{which}."
        )
    announced(len(cuts))
    step = Exact(str(width))
    first = math.floor(Exact(str(attribute.edge(0))) / step)
    last, over, under = first + len(cuts), step.numerator, step.denominator
    # A quotient of whole numbers is rounded correctly, and made in a tenth of the time of a fraction.
    values: list[Value] = [k * over if isinstance(width, int) else k * over / under for k in range(first, last + 1)]
    ends = Exact(str(attribute.edge(0))), Exact(str(attribute.edge(attribute.bins)))
    whole = (step * first, step * last) == ends
    return in_a_row(f"{name} by {width:g}", attribute, cuts, values, whole=whole)


def by_period(name: str, attribute: Attribute, period: Period, *, numbered: bool = False) -> Bands:
    """Weeks, months, quarters or years of a date whose bins fit into them: by their first day, or by their number."""
    days = attribute.values
    assert isinstance(days, Days)
    assert period in FITTING[days.by]
    begins = [_first_day(days.low, period)]
    while begins[-1] <= days.high:
        begins.append(_next(begins[-1], period))
    cuts = [bisect_left(days.starts, day.toordinal()) for day in begins[:-1]]
    values = [day.year for day in begins] if numbered else begins
    names = [] if period == days.by else [str(value) for value in values[:-1]]
    return in_a_row(f"{name} by {period}", attribute, cuts, values, names, whole=not cuts_period(days, period))


def as_texts(bands: Bands, letters: int) -> Bands:
    """Periods by the first letters of their first day: 2024-05. Such texts are in the order of their days."""
    texts = [None if value is None else str(value)[:letters] for value in bands.values]
    labels = tuple(label if text is None else text for label, text in zip(bands.labels, texts, strict=True))
    return replace(bands, labels=labels, values=tuple(texts), end=str(bands.end)[:letters])


def cuts_period(days: Days, period: Period) -> bool:
    """Whether the declared range begins or ends within such a period."""
    after = days.high + dt.timedelta(days=1)
    return any(_first_day(day, period) != day for day in (days.low, after))


def _first_day(day: dt.date, period: Period) -> dt.date:
    if period in ("day", "week"):
        return day - dt.timedelta(days=day.weekday() if period == "week" else 0)
    month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1}.get(period, 1)
    return day.replace(month=month, day=1)


def _next(begin: dt.date, period: Period) -> dt.date:
    try:
        return _first_day(begin + dt.timedelta(days=_LONGEST[period]), period)
    except OverflowError:  # beyond the last day that there is
        return dt.date.max


def _coarse_cuts(attribute: Attribute, width: float) -> list[int] | None:
    """The bins at which those of a wider grid start, which has its edges at the multiples of `width`; None: it cuts."""
    assert not isinstance(attribute.values, Listed)
    step, starts = Exact(str(width)), attribute.values.starts  # as it was written: three times 0.1 is 0.3
    first = math.floor(Exact(str(starts[0])) / step) + 1
    last = math.ceil(Exact(str(attribute.values.end)) / step) - 1
    if last - first >= attribute.bins:  # more cuts than bins: one of them is no edge
        return None
    # A few first: most widths that do not fit are found out by them.
    head = min(last, first + _TRIED)
    if _edges_at(starts, step, first, head) is None:
        return None
    found = _edges_at(starts, step, first, last)
    return None if found is None else [0, *found.tolist()]


def _edges_at(starts: Sequence[Point], step: Exact, first: int, last: int) -> NDArray[np.int64] | None:
    """Which bins start at these multiples of a step; None if one of the multiples is no bin's start."""
    over, under = step.numerator, step.denominator
    if max(abs(first), abs(last), 1) * over < _WHOLE and under < _WHOLE:  # exact, so that quotients are rounded once
        points = np.arange(first, last + 1) * over / under
    else:
        points = np.array([float(k * step) for k in range(first, last + 1)])
    known = starts_of(starts)
    at = np.searchsorted(known, points)
    return at if bool((at < len(known)).all() and (known[at] == points).all()) else None


def _fitting_widths(attribute: Attribute) -> list[float]:
    """A few widths for which every wider bin is a union of declared ones, the narrowest first."""
    values = attribute.values
    tried: list[float] = []
    if isinstance(values, Integers):
        tried = [values.width * k for k in range(1, min(attribute.bins, 1000) + 1)]
    elif isinstance(values, Reals):
        edges = values.edges[:1000]
        tried = sorted({abs(float(e)) for e in edges if e} | {float(b - a) for a, b in pairwise(edges)})
    found: list[float] = []
    for width in tried:
        cuts = _coarse_cuts(attribute, width)
        if cuts is not None and len(cuts) > 1:
            found.append(width)
        if len(found) == _WIDTHS_NAMED:
            break
    return found
