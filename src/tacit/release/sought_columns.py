"""Columns whose values or bins nobody can list: what is sought of them, and the attributes that a look at them makes.

Post-processing: from what was released alone. `discovery.discover` pays for the look.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.errors import ConfigError, InvalidDomain
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.entry import Found
from tacit.model.values import Days, Integers, Reals
from tacit.release.ranges.distribution import Distribution
from tacit.show.chart.axes import round_number

BINS = {"integer": 40, "numeric": 10, "date": 0, "category": 0}  # about how many, where `discover = true`
_TRIMMED = 0.005  # of the rows at either end may lie outside: they are clamped
ABOVE_NOISE = 1 / 2  # of the band: little noise is left where there are no rows, so that less than all of it is enough
OTHERS = ("other", "another", "none of these", "not listed here")
_TAKES = {
    "category": {"other", "missing"},
    "integer": {"low", "high", "missing", "clamp"},
    "numeric": {"low", "high", "missing", "clamp"},
    "date": {"low", "high", "by", "missing", "clamp"},
}


@dataclass(frozen=True)
class Sought:
    """A column whose values or bins are discovered, and what its owner knows of it."""

    name: str
    kind: str
    bins: int
    given: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, table: Mapping[str, Any]) -> Sought:
        kind, wanted = table.get("kind"), table.get("discover")
        if kind not in _TAKES:
            raise ConfigError(f"[domain.{name}]: what is discovered has kind = one of {', '.join(_TAKES)}.")
        given = {k: v for k, v in table.items() if k not in ("kind", "discover")}
        if not given.keys() <= _TAKES[kind]:
            raise ConfigError(f"[domain.{name}]: beside discover it may have {', '.join(sorted(_TAKES[kind]))}.")
        if wanted is not True and (type(wanted) is not int or not 2 <= wanted <= 1000 or kind in ("category", "date")):
            raise ConfigError(f"[domain.{name}]: discover = true, or for numbers about how many bins, from 2 to 1000.")
        if ("low" in given) != ("high" in given):
            raise ConfigError(f"[domain.{name}]: low and high are given together: as wide as you like, or not at all.")
        found = cls(name, kind, BINS[kind] if wanted is True else wanted, given)
        if kind != "category":
            found.wide()  # refuses bounds that are none
        return found

    def wide(self) -> Domain:
        """The column alone, over a grid that is fine and wide: bins are put together from its cells."""
        low, high = self.given.get("low"), self.given.get("high")
        try:
            if self.kind == "date":
                first, last = low or dt.date(1900, 1, 1), high or dt.date(2099, 12, 31)
                if not isinstance(first, dt.date) or not isinstance(last, dt.date):
                    raise InvalidDomain("low and high are dates like 2024-05-31.")
                grid: Integers | Reals | Days = Days(first.replace(day=1), _month_end(last), "month")
            elif low is None or high is None:
                grid = Reals(tuple(_whole_grid() if self.kind == "integer" else _grid()))
            elif self.kind == "integer":
                width = max(1, round(round_number((high - low) / 4000, up=True))) if high - low > 4000 else 1
                grid = Integers(low, low + -(-(high - low + 1) // width) * width - 1, width)
            else:
                grid = Reals(_even(float(low), float(high)))
        except (InvalidDomain, TypeError, ValueError, OverflowError) as error:
            why = error.sentence if isinstance(error, InvalidDomain) else "low and high are numbers."
            raise ConfigError(f"[domain.{self.name}]: {why}") from None
        return Domain({self.name: Attribute(grid, missing=self.missing, clamp=True)})

    @property
    def missing(self) -> str:
        return str(self.given.get("missing", "unknown"))

    def from_values(self, found: Found) -> dict[str, Any] | None:
        """The attribute's table, with every value that was found; None where none was."""
        kept = [v for v in found.values if v is not None and v not in (self.given.get("other"), self.missing)]
        other = self.given.get("other") or next(word for word in OTHERS if word not in kept)
        if not kept:
            return None
        return {"kind": "category", "values": sorted(kept, key=_order), "other": other, "missing": self.missing}

    def ends(self, counts: Distribution) -> float:
        """The share of the rows that is left outside at either end: so many that an end is no noise."""
        return min(0.25, max(_TRIMMED, ABOVE_NOISE * counts.half_width / max(float(counts.prefixes[-1]), 1.0)))

    def _first_and_last(self, counts: Distribution) -> tuple[int, int]:
        """The cells of the grid that the bounds begin and end with."""
        ends = self.ends(counts)
        return counts.quantile(ends).bin, counts.quantile(1 - ends).bin

    def outside(self, counts: Distribution) -> str:
        """How many rows the bounds leave outside, about, in words."""
        prefixes, (first, last) = counts.prefixes, self._first_and_last(counts)
        inside = max(float(prefixes[-1]), 1.0)
        shares = float(prefixes[first]), float(prefixes[-1] - prefixes[last + 1]), counts.half_width
        below, above, sure = (f"{100 * min(max(share / inside, 0.0), 1.0):.2g} %" for share in shares)
        return f"about {below} of the rows with a value lie below these bounds and {above} above (each ± {sure}, 95 %)"

    def from_counts(self, counts: Distribution) -> dict[str, Any]:
        """The attribute's table, with bounds that nearly all rows lie within, and bins."""
        axis, prefixes = counts.attribute, counts.prefixes
        inside, (first, last) = max(float(prefixes[-1]), 1.0), self._first_and_last(counts)
        low, high = axis.edge(first), axis.edge(last + 1)
        more = {"clamp": True, "missing": self.missing}
        if self.kind == "integer":
            return {"kind": "integer", **_whole_bins(int(low), int(high) - 1, self.bins), **more}
        if self.kind == "date":
            by, days = self.given.get("by", "month"), (dt.date.fromordinal(int(d)) for d in (low, high - 1))
            start, end = days
            if by == "year":
                start, end = dt.date(start.year, 1, 1), dt.date(end.year, 12, 31)
            return {"kind": "date", "low": start, "high": end, "by": by, **more}
        places = [counts.quantile(j / self.bins).bin for j in range(1, self.bins)]
        edges = {low, high}
        for j, place in enumerate(places, 1):
            both = axis.edge(place), axis.edge(place + 1)
            if places.count(place) > 1:  # many rows have one value: it is a bin of its own
                edges |= set(both)
            else:
                edges.add(both[int(prefixes[place + 1] + prefixes[place] < 2 * inside * j / self.bins)])
        return {"kind": "numeric", "edges": [float(e) for e in sorted(edges) if low <= e <= high], **more}


def said(table: Mapping[str, Any]) -> str:
    """An attribute in a few words."""
    if table["kind"] == "category":
        return f"{len(table['values'])} values and {table['other']!r}"
    if table["kind"] == "numeric":
        return f"{len(table['edges']) - 1} bins from {table['edges'][0]:g} to {table['edges'][-1]:g}"
    return f"{table['low']} to {table['high']}"


# -- grids ---------------------------------------------------------------------------------------------------------


def _grid() -> list[float]:
    """Numbers of two digits from a thousandth to a hundred million, of both signs, and 0."""
    up = [float(f"{digits}e{power}") for power in range(-4, 7) for digits in range(10, 100)] + [1e8]
    return [-x for x in reversed(up)] + [0.0, *up]


def _whole_grid() -> list[float]:
    """Whole numbers up to 100, and those of two digits up to a hundred billion, of both signs."""
    up = [*range(1, 100), *(digits * 10**power for power in range(1, 10) for digits in range(10, 100)), 10**11]
    return [float(-x) for x in reversed(up)] + [0.0, *map(float, up)]


def _even(low: float, high: float) -> tuple[float, ...]:
    """About a thousand round edges between two numbers."""
    if not -1e300 < low < high < 1e300:
        raise InvalidDomain("low is below high.")
    step = round_number((high - low) / 1000, up=True)
    return tuple(float(f"{i * step:.12g}") for i in range(math.floor(low / step), math.ceil(high / step) + 1))


def _whole_bins(low: int, high: int, bins: int) -> dict[str, int]:
    width = max(1, round(round_number((high - low + 1) / bins, up=True))) if high - low + 1 > bins else 1
    low = math.floor(low / width) * width
    return {"low": low, "high": low + -(-(high - low + 1) // width) * width - 1, "width": width}


def _month_end(day: dt.date) -> dt.date:
    following = day.replace(day=28) + dt.timedelta(days=4)
    return following.replace(day=1) - dt.timedelta(days=1)


def _order(value: str | int) -> tuple[int, str]:
    """Numbers by size, words by the alphabet."""
    return (value, "") if isinstance(value, int) else (0, value)
