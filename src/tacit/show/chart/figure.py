"""A chart: marks on two axes, laid out so that no words overlap. Anybody may call it; see `tacit.show.chart`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from tacit.show.chart.axes import Labels, across, upright
from tacit.show.chart.legend import Entry, Series, colours, direct, entries, legend, series
from tacit.show.chart.marks import Band, Bars, Heat, Line, Mark, Numbers, Points, Rule, Steps, Ticks
from tacit.show.chart.paint import Drawing, Picture, p, paint, text
from tacit.show.chart.scale import Axis, Scale, fit
from tacit.show.chart.shapes import Plane, band, bar_numbers, bars, heat, line, points, rule, ticks
from tacit.show.chart.text import number, width, wrap
from tacit.show.chart.words import describe

EDGE = 14  # pixels of paper around everything
TITLE, LINE = 15, 19  # size of a title's letters, and its lines
LANE = 16  # pixels for the strokes of one `Ticks`
LEAST = 60  # pixels that the marks get, whatever the words need


@dataclass(frozen=True, eq=False)
class Chart(Picture):
    """Marks on two axes. Marks of one name are one series: one colour, one entry in the legend.

    `note` is a line of small print below; `empty` is said instead of a picture when there is nothing to draw.
    """

    title: str
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    marks: Sequence[Mark] = ()
    width: int = 640
    height: int | None = None
    note: str = ""
    empty: str = "There is nothing to show yet."

    def __post_init__(self) -> None:
        if not 200 <= self.width <= 4000 or not (self.height is None or 80 <= self.height <= 4000):
            raise ValueError("A chart is 200 to 4000 pixels wide and 80 to 4000 high.")
        object.__setattr__(self, "marks", tuple(self.marks))
        for mark in self.marks:
            _check(mark, self.x, self.y)
        if not self.is_empty:
            self.scales()

    @property
    def is_empty(self) -> bool:
        return not any(_has_data(mark) for mark in self.marks)

    def scales(self) -> tuple[Scale, Scale]:
        """Both axes, open ends fitted to the data. A grid uses this to give its charts the same ones."""
        barred = any(isinstance(mark, Bars) for mark in self.marks)
        lying = self.y.categories is not None
        spread = 0.03 if any(isinstance(mark, Points) for mark in self.marks) else 0.0
        along, down = _numbers(self.marks, self.x, "x"), _numbers(self.marks, self.y, "y")
        x = fit(self.x, along, zero=barred and lying, nice=barred and lying, margin=spread)
        return x, fit(self.y, down, zero=barred and not lying, nice=True)

    def drawing(self) -> Drawing:
        head, top = heading(self.title, self.width)
        if self.is_empty:
            return _nothing(self, head, top)
        x, y = self.scales()
        roles = colours(self.marks)
        listed = entries(self.marks, roles)
        ends = direct(self.marks, x, y, self.width, self.height or 320)
        if not ends:
            key, high = legend(listed, self.marks, self.width - 2 * EDGE, EDGE, top)
            head, top = head + key, top + high
        if self.y.label:
            head += text(EDGE, top + 13, self.y.label, most=self.width - 2 * EDGE)
            top += 20
        top += 8
        return self._lay(head, top, x, y, roles, listed if ends else [])

    def _lay(self, head: str, top: float, x: Scale, y: Scale, roles: dict[Series, str], ended: list[Entry]) -> Drawing:
        lanes = [mark for mark in self.marks if isinstance(mark, Ticks)]
        notes = wrap(self.note, self.width - 2 * EDGE, 11, 3)
        below = 16 * len(notes) + (6 if notes else 0) + EDGE + (20 if self.x.label else 0) + LANE * len(lanes)
        tall = _tall(self, top + below + 20)
        side = upright(y, tall, 0.42 * self.width, [lane.name for lane in lanes])
        left = EDGE + side.room + 8
        right = self.width - EDGE - max([width(e.name) + 10 for e in ended] + [_beside(self, x)])
        right = max(right, left + LEAST)
        feet = across(x, right - left)
        right -= max(0.0, feet.over - EDGE)
        feet = across(x, right - left)
        left = max(left, EDGE + feet.before)
        if self.height is not None:
            tall = max(LEAST, self.height - top - below - feet.room - 8)
        bottom = top + tall
        flipped = self.y.categories is not None
        plane = Plane(
            _put(x, left, right),
            _put(y, top, bottom) if flipped else _put(y, bottom, top),
            grain=max(1.0, sum(isinstance(mark, Line | Steps | Band) for mark in self.marks) / 4),
        )
        body = head + _grid(plane, side, feet, shaded=any(isinstance(mark, Heat) for mark in self.marks))
        body += _clipped(plane, "".join(self._drawn(plane, roles))) + self._words(plane, roles, ended)
        down = bottom + 8
        for lane in lanes:
            body += ticks(lane, plane, roles[series(lane)], down)
            body += text(left - 8, down + 9, lane.name, size=11, anchor="end", most=left - 8 - EDGE)
            down += LANE
        body += feet.below(plane.x, down)
        down += feet.room
        if self.x.label:
            middle = (left + right) / 2
            most = 2 * (min(middle, self.width - middle) - EDGE)
            body += text(middle, down + 14, self.x.label, anchor="middle", most=most)
            down += 20
        down += 6 if notes else 0
        for words in notes:
            body += text(EDGE, down + 12, words, size=11)
            down += 16
        return Drawing(self.width, down + EDGE, body, describe(self.x, self.y, self.marks, self.note))

    def _drawn(self, plane: Plane, roles: dict[Series, str]) -> list[str]:
        """Areas first, then bars and rules, then lines, then points."""
        barred = [mark for mark in self.marks if isinstance(mark, Bars)]
        order = (Heat, Band, Bars, Rule, Line, Steps, Points)
        out = []
        for mark in sorted(self.marks, key=lambda m: order.index(type(m)) if type(m) in order else 0):
            if isinstance(mark, Heat) and np.size(mark.values):
                out.append(heat(mark, plane))
            elif isinstance(mark, Rule):
                out.append(rule(mark, plane))
            elif not _has_data(mark):
                continue
            elif isinstance(mark, Band):
                out.append(band(mark, plane, roles[series(mark)]))
            elif isinstance(mark, Bars):
                out.append(bars(mark, plane, roles[series(mark)], barred.index(mark), len(barred)))
            elif isinstance(mark, Line | Steps):
                out.append(line(mark, plane, roles[series(mark)]))
            elif isinstance(mark, Points):
                out.append(points(mark, plane, roles[series(mark)]))
        return out

    def _words(self, plane: Plane, roles: dict[Series, str], ended: list[Entry]) -> str:
        out = ""
        for mark in self.marks:
            if isinstance(mark, Bars) and _beside(self, plane.x):
                out += bar_numbers(mark, plane)
            if isinstance(mark, Line | Steps) and any(e.name == mark.name for e in ended):
                last = plane.y.place(float(np.asarray(mark.y)[-1]))
                out += text(plane.x.end + 8, last + 4, mark.name, role=roles[series(mark)], bold=True)
        return out


def _check(mark: Mark, x: Axis, y: Axis) -> None:
    if isinstance(mark, Bars):
        named = [axis.categories for axis in (x, y) if axis.categories is not None]
        if len(named) != 1 or len(named[0]) != np.size(mark.values):
            raise ValueError("Bars need categories on one axis, and as many values as there are categories.")
    if isinstance(mark, Heat) and np.size(mark.values):
        if x.categories is None or y.categories is None:
            raise ValueError("A table of shades needs categories on both axes.")
        if np.shape(mark.values) != (len(y.categories), len(x.categories)):
            raise ValueError("A table of shades needs one row for each category of y, one column for each of x.")


def _reach(mark: Mark, side: str) -> tuple[ArrayLike, list[ArrayLike]]:
    """What the axis of this side, x or y, must reach: numbers, and the ends of whiskers and bands."""
    if isinstance(mark, Heat):
        return np.ravel(mark.values), []
    if isinstance(mark, Rule):
        place = mark.x if side == "x" else mark.y
        return [] if place is None else [place], []
    if isinstance(mark, Bars):  # the axis of categories ignores them
        return mark.values, _ends(mark)
    if side == "x":
        return mark.x, _ends(mark) if isinstance(mark, Points) and mark.across else []
    if isinstance(mark, Band):
        return [], [mark.low, mark.high]
    if isinstance(mark, Ticks):
        return [], []
    return mark.y, _ends(mark) if isinstance(mark, Points) and not mark.across else []


def _ends(mark: Bars | Points) -> list[ArrayLike]:
    return [end for end in (mark.low, mark.high) if end is not None]


def _numbers(marks: Sequence[Mark], axis: Axis, side: str) -> list[Numbers]:
    found = []
    for mark in marks:
        values, ends = _reach(mark, side)
        found.append(np.asarray(values, dtype=np.float64))
        for end in ends:
            here = np.asarray(end, dtype=np.float64)
            found.append(here[here > 0] if axis.log else here)  # a whisker to 0 or below leaves the picture
    return found


def _has_data(mark: Mark) -> bool:
    return not isinstance(mark, Rule) and np.size(_reach(mark, "x")[0]) > 0


def heading(title: str, wide: float) -> tuple[str, float]:
    lines = wrap(title, wide - 2 * EDGE, TITLE, 2)
    words = "".join(
        text(EDGE, EDGE + 13 + LINE * i, one, role="ink", size=TITLE, bold=True) for i, one in enumerate(lines)
    )
    return words, EDGE + LINE * len(lines) + (4 if lines else 0)


def _nothing(chart: Chart, head: str, top: float) -> Drawing:
    lines = wrap(chart.empty, chart.width - 4 * EDGE, 13, 3)
    body = head + "".join(
        text(chart.width / 2, top + 34 + 18 * i, one, size=13, anchor="middle") for i, one in enumerate(lines)
    )
    return Drawing(chart.width, chart.height or top + 60 + 18 * len(lines), body, chart.empty)


def _tall(chart: Chart, around: float) -> float:
    """Pixels for the marks, before labels below are known."""
    if chart.height is not None:
        return max(LEAST, chart.height - around)
    if chart.y.categories is None:
        return 230
    series = max(1, sum(isinstance(mark, Bars) for mark in chart.marks))
    rows = len(chart.y.categories)
    each = 24 + 10 * (series - 1)
    return max(LEAST, min(rows * each, max(30 * each, min(640, rows * 14))))


def _beside(chart: Chart, x: Scale) -> float:
    """Room at the right for the numbers of lying bars; none if they are not printed."""
    barred = [mark for mark in chart.marks if isinstance(mark, Bars)]
    if chart.y.categories is None or len(barred) != 1 or len(chart.y.categories) > 40:
        return 0
    return max(width(number(v), 11) for v in np.asarray(barred[0].values).tolist()) + 8


def _put(scale: Scale, start: float, end: float) -> Scale:
    return Scale(scale.axis, scale.low, scale.high, scale.whole, start, end)


def _grid(plane: Plane, side: Labels, feet: Labels, *, shaded: bool) -> str:
    look = paint(stroke="grid")
    x, y = plane.x, plane.y
    lines = "" if shaded or y.axis.categories is not None else _strokes("H", y.at(np.array(side.places)), x)
    if not shaded and x.axis.categories is None:
        lines += _strokes("V", x.at(np.array(feet.places)), y)
    found = f'<path d="{lines}" {look} shape-rendering="crispEdges"/>' if lines else ""
    if not shaded:  # the line on which everything stands
        if plane.lying:
            base = f"M{p(x.place(x.base))} {p(y.start)}V{p(y.end)}"
        else:
            base = f"M{p(x.start)} {p(y.place(y.base))}H{p(x.end)}"
        found += f'<path d="{base}" {paint(stroke="soft")} shape-rendering="crispEdges"/>'
    return found + side.beside(y, x.start - 8)


def _strokes(letter: str, places: Numbers, other: Scale) -> str:
    start, end = p(other.start), p(other.end)
    return "".join(f"M{start} {p(v)}H{end}" if letter == "H" else f"M{p(v)} {start}V{end}" for v in places.tolist())


def _clipped(plane: Plane, marks: str) -> str:
    """An inner picture cuts off what leaves the axes, and needs no name; marks may overlap the edge a bit."""
    left, top = plane.x.start - 6, min(plane.y.start, plane.y.end) - 6
    wide, high = plane.x.length + 12, plane.y.length + 12
    box = f"{p(left)} {p(top)} {p(wide)} {p(high)}"
    place = f'x="{p(left)}" y="{p(top)}" width="{p(wide)}" height="{p(high)}"'
    return f'<svg {place} viewBox="{box}" overflow="hidden">{marks}</svg>'
