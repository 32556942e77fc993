"""Axes: from values to pixels, and where the ticks are. For the chart package; `Axis` is for everybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.show.chart.marks import Numbers, numbers
from tacit.show.chart.text import ladder, number, power


@dataclass(frozen=True)
class Axis:
    """Numbers on a linear or logarithmic scale, or categories (then values are their places 0, 1, 2, …)."""

    label: str = ""
    log: bool = False
    categories: Sequence[str] | None = None
    low: float | None = None
    high: float | None = None
    percent: bool = False

    def __post_init__(self) -> None:
        ends = numbers([end for end in (self.low, self.high) if end is not None], "the ends of an axis")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("An axis's low end must be below its high end.")
        if self.log and np.any(ends <= 0):
            raise ValueError("A logarithmic axis takes only numbers above 0.")
        if self.categories is not None:
            if self.log or ends.size:
                raise ValueError("An axis of categories has no numbers: neither ends nor a logarithm.")
            object.__setattr__(self, "categories", tuple(map(str, self.categories)))


@dataclass(frozen=True)
class Scale:
    """An axis laid on the pixels from `start` to `end`."""

    axis: Axis
    low: float
    high: float
    whole: bool
    start: float = 0.0
    end: float = 1.0

    def at(self, values: Numbers) -> Numbers:
        if self.axis.log:
            with np.errstate(divide="ignore"):  # an end of a whisker may be at 0 or below: it leaves the picture
                logs = np.log10(np.maximum(values, self.low / 10))
            share = (logs - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (values - self.low) / (self.high - self.low)
        return self.start + np.clip(share, -1, 2) * (self.end - self.start)  # far outside is as good as outside

    def place(self, value: float) -> float:
        return float(self.at(np.array([value]))[0])

    @property
    def length(self) -> float:
        return abs(self.end - self.start)

    @property
    def band(self) -> float:
        """Pixels of one category."""
        return self.length / max(1, len(self.axis.categories or ()))

    @property
    def base(self) -> float:
        """Where bars stand."""
        return self.low if self.axis.log else min(max(0.0, self.low), self.high)

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """At most about so many places and their labels."""
        if self.axis.categories is not None:
            return [float(i) for i in range(len(self.axis.categories))], list(self.axis.categories)
        if self.axis.log:
            places = _log_ticks(self.low, self.high, most)
            if len(places) >= 3 or self.high >= 10 * self.low:  # else the scale is as good as linear
                return places, _log_labels(places, self.axis.percent)
        step = _step(self.low, self.high, most, whole=self.whole and not self.axis.percent)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        places = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
        return places, ladder(places, step, percent=self.axis.percent)


def fit(axis: Axis, data: Sequence[Numbers], *, zero: bool, nice: bool, margin: float = 0.0) -> Scale:
    """The scale on which all data are seen. `zero`: bars need their base; `nice`: open ends go on to the next tick."""
    if axis.categories is not None:
        return Scale(axis, -0.5, len(axis.categories) - 0.5, whole=True)
    found = np.concatenate([*data, np.empty(0)])
    if axis.log and axis.low is None and found.size and found.min() <= 0:
        raise ValueError("A logarithmic axis takes only numbers above 0; give it a low end to cut off the rest.")
    known = [end for end in (axis.low, axis.high) if end is not None] + ([0.0] if zero and not axis.log else [])
    found = np.concatenate([found, known]) if found.size or known else np.array([1.0])
    if axis.log:
        found = found[found > 0]
    low = float(found.min()) if axis.low is None else axis.low
    high = float(found.max()) if axis.high is None else axis.high
    whole = bool(np.all(found == np.rint(found)))
    if axis.log:
        low, high = _fit_log(axis, low, high, nice=nice, margin=margin)
    else:
        low, high = _fit_linear(axis, low, high, whole=whole, nice=nice, margin=margin)
    return Scale(axis, low, high, whole)


def _fit_linear(axis: Axis, low: float, high: float, *, whole: bool, nice: bool, margin: float) -> tuple[float, float]:
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # all the same
        room = abs(low) / 10 or 1.0
        room = max(1.0, room) if whole else room
        low, high = low - (room if low else 0.0) * (axis.low is None), high + room * (axis.high is None or low >= high)
    room = margin * (high - low)
    if nice:
        step = _step(low, high, 6, whole=whole and not axis.percent)
        under, over = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        little = 0.04 * (high - low)  # the next tick, unless that leaves most of a step empty
        under = under if low - under < 0.6 * step else low - little
        over = over if over - high < 0.6 * step else high + little
        low, high = _open(axis, low, high, under, over)
    else:
        low, high = _open(axis, low, high, low - room, high + room)
    return low, high


def _fit_log(axis: Axis, low: float, high: float, *, nice: bool, margin: float) -> tuple[float, float]:
    if high <= low * (1 + 1e-9):
        low, high = _open(axis, low, high, low / 2, high * 2)
        high = max(high, low * 2)
    if nice:
        return _open(axis, low, high, _round_125(low, up=False), _round_125(high, up=True))
    room = 10 ** (margin * (math.log10(high) - math.log10(low)))
    return _open(axis, low, high, low / room, high * room)


def _open(axis: Axis, low: float, high: float, new_low: float, new_high: float) -> tuple[float, float]:
    return (low if axis.low is not None else new_low), (high if axis.high is not None else new_high)


def _step(low: float, high: float, most: int, *, whole: bool) -> float:
    """1, 2 or 5 times a power of ten, so that there are at most so many steps."""
    raw = (high - low) / max(1, most)
    tenth = 10.0 ** math.floor(math.log10(raw))
    step = next(m * tenth for m in (1, 2, 5, 10) if raw <= m * tenth * (1 + 1e-9))
    return max(1.0, step) if whole else step


def _round_125(value: float, *, up: bool) -> float:
    ten = 10.0 ** math.floor(math.log10(value) + 1e-12)
    choices = [m * ten for m in (1.0, 2.0, 5.0, 10.0)]
    if up:
        return next(c for c in choices if c >= value * (1 - 1e-9))
    return max(c for c in choices if c <= value * (1 + 1e-9))


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    for digits in ((1, 2, 5), (1,)):
        found = [float(f"{d}e{e}") for e in range(first, last + 1) for d in digits]
        found = [v for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(found) <= most:
            return found
    every = math.ceil(len(found) / max(1, most))
    return [v for v in found if round(math.log10(v)) % every == 0]


def _log_labels(places: list[float], percent: bool) -> list[str]:
    if percent:
        return [f"{100 * v:.12g}%" for v in places]
    plain = places[0] >= 1e-3 and places[-1] < 1e9
    return [number(v) if plain else power(v) for v in places]
