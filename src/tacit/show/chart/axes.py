"""Axes: from values to pixels, where the ticks are, and as many labels as fit. `Axis` is for everybody.

The rest is for the chart package.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.show.chart.marks import Numbers, numbers
from tacit.show.chart.paint import SMALL, clean, clip, ladder, number, power, text, width

APART = 10  # pixels between two labels
LINE = 16  # pixels of a row of labels below the x axis
ROW_APART, SLANTED_APART = 14, 15  # pixels from one label to the next beside the y axis, and where they are slanted
SLANT = -40  # degrees, of long names below upright bars
_LONGEST = 150  # pixels of a slanted name
SLANTED_FROM = 90  # pixels: wider labels are slanted, even if some could be skipped
TICKS = 6  # at most about this many decide where an axis ends
ALMOST = 1e-9  # of a step or a value: rounding must not cost a tick
FITTED = 0.6  # of a step: if more would stay empty, an axis does not go on to the next tick,
LITTLE = 0.04  # but this part of its length beyond the data
_ROUND = (1, 2, 5, 10)
_EVERY: tuple[int, ...] = tuple(m * 10**e for e in range(12) for m in (1, 2, 5))


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
    """An axis laid on the pixels from `start` to `end`; `whole` if all its values are whole numbers."""

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
        """At most about `most` places and their labels."""
        if self.axis.categories is not None:
            return [float(i) for i in range(len(self.axis.categories))], list(self.axis.categories)
        if self.axis.log:
            places = _log_ticks(self.low, self.high, most)
            if len(places) >= 3 or self.high >= 10 * self.low:  # else the scale is as good as linear
                return places, _log_labels(places, self.axis.percent)
        step = _step(self.low, self.high, most, whole=self.whole and not self.axis.percent)
        first, last = math.ceil(self.low / step - ALMOST), math.floor(self.high / step + ALMOST)
        places = [float(f"{k * step:.12g}") for k in range(first, last + 1)]
        return places, ladder(places, step, percent=self.axis.percent)


@dataclass(frozen=True)
class AxisLabels:
    """Places and words, the pixels they need beside or below the axis, and how far they reach past its two ends."""

    places: list[float]
    words: list[str]
    room: float
    turned: bool = False
    before: float = 0.0
    over: float = 0.0
    most: float = math.inf

    def beside(self, scale: Scale, x: float) -> str:
        found = zip(self.places, self.words, strict=True)
        return "".join(text(x, scale.place(v) + 4, word, anchor="end", most=self.most) for v, word in found)

    def below(self, scale: Scale, y: float) -> str:
        found = zip(self.places, self.words, strict=True)
        if self.turned:
            look = [text(scale.place(v) + 4, y + 8, word, anchor="end", most=_LONGEST, turn=SLANT) for v, word in found]
        else:
            look = [text(scale.place(v), y + 10, word, anchor="middle", most=self.most) for v, word in found]
        return "".join(look)


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


def upright(scale: Scale, tall: float, most: float, lanes: list[str]) -> AxisLabels:
    """Beside the y axis, and the names of the lanes below it."""
    if scale.axis.categories is not None:
        places, words = scale.ticks(0)
        every = _every(tall / len(words), ROW_APART)
        places, words = places[::every], words[::every]
    else:
        places, words = scale.ticks(max(4, min(8, int(tall / 36))))
    rooms = [width(clip(word, most)) for word in words] + [width(clip(lane, most), SMALL) for lane in lanes]
    return AxisLabels(places, words, min(max(rooms, default=0.0), most), most=most)


def across(scale: Scale, wide: float) -> AxisLabels:
    """Below the x axis."""
    if scale.axis.categories is not None:
        return _categories(scale, wide)
    for most in range(max(2, min(10, int(wide / 50))), 0, -1):
        places, words = scale.ticks(most)
        at = [(scale.place(v) - scale.start) / (scale.end - scale.start) * wide for v in places]
        widths = [width(word) for word in words]
        gaps = [b - a - (u + v) / 2 for a, b, u, v in zip(at, at[1:], widths, widths[1:], strict=False)]
        if min(gaps, default=APART) >= APART:
            break
    if not places:
        return AxisLabels([], [], LINE)
    return AxisLabels(places, words, LINE, before=widths[0] / 2 - at[0], over=widths[-1] / 2 - (wide - at[-1]))


def _categories(scale: Scale, wide: float) -> AxisLabels:
    """All of them if they fit. Else ranges of numbers, which are in order, are skipped, and other names are slanted."""
    places, words = scale.ticks(0)
    band = wide / len(words)
    widest = max(width(clean(word)) for word in words)
    if widest + APART <= band:
        return AxisLabels(places, words, LINE)
    numbered = all(clean(word)[:1].isdigit() or clean(word)[:1] in "<>≤≥−-[(" for word in words)
    if numbered and widest <= SLANTED_FROM:
        every = _every(band, widest + APART)
        return AxisLabels(places[::every], words[::every], LINE)
    every = _every(band, SLANTED_APART)
    places, words = places[::every], words[::every]
    long = [width(clip(word, _LONGEST)) for word in words]
    along, down = math.cos(math.radians(SLANT)), math.sin(math.radians(-SLANT))
    before = max(one * along - (v + 0.5) * band for v, one in zip(places, long, strict=True))
    return AxisLabels(places, words, 14 + max(long) * down, turned=True, before=before)


def _every(band: float, needed: float) -> int:
    """Label each first, second, fifth, tenth, …: the first of these that leaves enough pixels."""
    return next(every for every in _EVERY if every * band >= needed)


def _fit_linear(axis: Axis, low: float, high: float, *, whole: bool, nice: bool, margin: float) -> tuple[float, float]:
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # all the same
        room = abs(low) / 10 or 1.0
        room = max(1.0, room) if whole else room
        low, high = low - (room if low else 0.0) * (axis.low is None), high + room * (axis.high is None or low >= high)
    if not nice:
        room = margin * (high - low)
        return _open(axis, low, high, low - room, high + room)
    step = _step(low, high, TICKS, whole=whole and not axis.percent)
    under, over = math.floor(low / step + ALMOST) * step, math.ceil(high / step - ALMOST) * step
    little = LITTLE * (high - low)
    under = under if low - under < FITTED * step else low - little
    over = over if over - high < FITTED * step else high + little
    return _open(axis, low, high, under, over)


def _fit_log(axis: Axis, low: float, high: float, *, nice: bool, margin: float) -> tuple[float, float]:
    if high <= low * (1 + ALMOST):
        low, high = _open(axis, low, high, low / 2, high * 2)
        high = max(high, low * 2)
    if nice:
        return _open(axis, low, high, round_number(low, up=False), round_number(high, up=True))
    room = 10 ** (margin * (math.log10(high) - math.log10(low)))
    return _open(axis, low, high, low / room, high * room)


def _open(axis: Axis, low: float, high: float, new_low: float, new_high: float) -> tuple[float, float]:
    """The new ends, unless the axis has its own."""
    return (low if axis.low is not None else new_low), (high if axis.high is not None else new_high)


def _step(low: float, high: float, most: int, *, whole: bool) -> float:
    """1, 2 or 5 times a power of ten, so that there are at most that many steps."""
    step = round_number((high - low) / max(1, most), up=True)
    return max(1.0, step) if whole else step


def round_number(value: float, *, up: bool) -> float:
    """The next 1, 2 or 5 times a power of ten. For everybody.

    >>> round_number(46.0, up=False), round_number(46.0, up=True)
    (20.0, 50.0)
    """
    ten = 10.0 ** math.floor(math.log10(value) + 1e-12)
    if up:
        return next(m * ten for m in _ROUND if m * ten >= value * (1 - ALMOST))
    return max(m * ten for m in _ROUND if m * ten <= value * (1 + ALMOST))


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low) + ALMOST), math.ceil(math.log10(high) - ALMOST)
    for digits in ((1, 2, 5), (1,)):
        found = [float(f"{d}e{e}") for e in range(first, last + 1) for d in digits]
        found = [v for v in found if low * (1 - ALMOST) <= v <= high * (1 + ALMOST)]
        if len(found) <= most:
            return found
    every = math.ceil(len(found) / max(1, most))
    return [v for v in found if round(math.log10(v)) % every == 0]


def _log_labels(places: list[float], percent: bool) -> list[str]:
    if percent:
        return [f"{100 * v:.12g}%" for v in places]
    plain = places[0] >= 1e-3 and places[-1] < 1e9
    return [number(v) if plain else power(v) for v in places]
