"""A chart: marks on two axes, laid out so that no words overlap; several in a grid; and a budget as one bar.

Anybody may call it; see `tacit.show.chart`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.show.chart.axes import Axis, AxisLabels, Scale, across, fit, upright
from tacit.show.chart.legend import Series, colours, describe, direct, legend, named, series
from tacit.show.chart.marks import Area, Bars, Heat, Mark, Numbers, Points, Polyline, Rule, Ticks, numbers
from tacit.show.chart.paint import (
    SERIES_COLOURS,
    SMALL,
    Drawing,
    Picture,
    box,
    clip,
    escape,
    number,
    p,
    paint,
    rectangles,
    text,
    width,
    wrap,
)
from tacit.show.chart.shapes import Plane, area, bar_numbers, bars, heat, line, points, rule, ticks

EDGE = 14  # pixels of paper around everything
GAP = 8  # pixels between the marks and the words around them
TITLE, TITLE_LINE = 15, 19  # size of a title's letters, and pixels of its lines
LABEL = 20  # pixels of the line with an axis's name
_BAR, SAID = 22, 18  # pixels of a gauge's bar, and of a line that says how much is taken
_SAMPLE, AFTER = 12, 18  # pixels of a colour's sample, and from its start to its name
_LONGEST = 200  # pixels of a part's name
NOTE = 16  # pixels of a line of small print
LANE = 16  # pixels for the strokes of one `Ticks`
_EMPTY, EMPTY_LINE = 13, 18  # size of the letters that say that there is nothing, and pixels of their lines
_TALL = 230  # pixels of an upright chart's marks
_ROW, TALLEST = 24, 720  # pixels of a category on the y axis, and of all of them at most
_LEAST = 60  # pixels that the marks get, whatever the words need
SIDE = 0.42  # of the width, for the words beside the y axis at most
OVERLAP = 6  # pixels by which a mark may leave the axes
MOST_NUMBERS = 40  # lying bars that have their number beside them
SPREAD = 0.03  # of the axis, between its ends and the outermost points
# How each mark is drawn, in the order of their layers: areas lie below bars and rules, these below lines.
_LAYERS: dict[type[Mark], Callable[..., str]] = {
    Heat: heat,
    Area: area,
    Bars: bars,
    Rule: rule,
    Polyline: line,
    Points: points,
}


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
        if sum(isinstance(mark, Bars) for mark in self.marks) > 1:
            raise ValueError("A chart has bars of one series.")
        for mark in self.marks:
            _check(mark, self.x, self.y)
        if not self.is_empty:
            self.scales()

    @property
    def is_empty(self) -> bool:
        return not any(_has_data(mark) for mark in self.marks)

    @property
    def bars(self) -> Bars | None:
        return next((mark for mark in self.marks if isinstance(mark, Bars)), None)

    def scales(self) -> tuple[Scale, Scale]:
        """Both axes, open ends fitted to the data. A grid uses this to give its charts the same ones."""
        lying = self.y.categories is not None
        barred = self.bars is not None
        margin = SPREAD if any(isinstance(mark, Points) for mark in self.marks) else 0.0
        along, down = _numbers(self.marks, self.x, "x"), _numbers(self.marks, self.y, "y")
        x = fit(self.x, along, zero=barred and lying, nice=barred and lying, margin=margin)
        return x, fit(self.y, down, zero=barred and not lying, nice=True)

    def drawing(self) -> Drawing:
        body, top = heading(self.title, self.width)
        if self.is_empty:
            lines = wrap(self.empty, self.width - 4 * EDGE, _EMPTY, 3)
            for i, one in enumerate(lines):
                body += text(self.width / 2, top + 34 + EMPTY_LINE * i, one, size=_EMPTY, anchor="middle")
            return Drawing(self.width, self.height or top + 60 + EMPTY_LINE * len(lines), body, self.empty)
        x, y = self.scales()
        roles = colours(self.marks)
        ends = direct(self.marks, x, y, self.width, self.height or 320)
        if not ends:
            key, high = legend(self.marks, roles, self.width - 2 * EDGE, EDGE, top)
            body, top = body + key, top + high
        if self.y.label:
            body += text(EDGE, top + 13, self.y.label, most=self.width - 2 * EDGE)
            top += LABEL
        ended = [name for name, _ in named(self.marks, roles)] if ends else []
        return self._lay(body, top + GAP, x, y, roles, ended)

    def _lay(self, body: str, top: float, x: Scale, y: Scale, roles: dict[Series, str], ended: list[str]) -> Drawing:
        """Everything below the heading. `ended` are the names that stand at the ends of their lines."""
        # First the room that words need: below, on the left, on the right, and under the ends of the x axis.
        lanes = [mark for mark in self.marks if isinstance(mark, Ticks)]
        notes = wrap(self.note, self.width - 2 * EDGE, SMALL, 3)
        below = NOTE * len(notes) + (6 if notes else 0) + EDGE + (LABEL if self.x.label else 0) + LANE * len(lanes)
        tall = _tall(self, top + below + 20)
        side = upright(y, tall, SIDE * self.width, [lane.name for lane in lanes])
        left = EDGE + side.room + GAP
        right = self.width - EDGE - max([width(name) + 10 for name in ended] + [_beside(self)])
        right = max(right, left + _LEAST)
        right -= max(0.0, across(x, right - left).over - EDGE)
        feet = across(x, right - left)
        left = max(left, EDGE + feet.before)
        if self.height is not None:
            tall = max(_LEAST, self.height - top - below - feet.room - GAP)
        bottom = top + tall
        # Then the marks. Categories on the y axis are read from top to bottom.
        start, end = (top, bottom) if self.y.categories is not None else (bottom, top)
        grain = max(1.0, sum(isinstance(mark, Polyline | Area) for mark in self.marks) / 4)
        plane = Plane(replace(x, start=left, end=right), replace(y, start=start, end=end), grain)
        body += _grid(plane, side, feet, shaded=any(isinstance(mark, Heat) for mark in self.marks))
        body += _clipped(plane, self._drawn(plane, roles)) + self._words(plane, roles, ended)
        # Then what stands below, line by line.
        down = bottom + GAP
        for lane in lanes:
            body += ticks(lane, plane, roles[series(lane)], down)
            body += text(left - GAP, down + 9, lane.name, size=SMALL, anchor="end", most=left - GAP - EDGE)
            down += LANE
        body += feet.below(plane.x, down)
        down += feet.room
        if self.x.label:
            middle = (left + right) / 2
            most = 2 * (min(middle, self.width - middle) - EDGE)
            body += text(middle, down + 14, self.x.label, anchor="middle", most=most)
            down += LABEL
        down += 6 if notes else 0
        for words in notes:
            body += text(EDGE, down + 12, words, size=SMALL)
            down += NOTE
        return Drawing(self.width, down + EDGE, body, describe(self.x, self.y, self.marks, self.note))

    def _drawn(self, plane: Plane, roles: dict[Series, str]) -> str:
        drawable = [mark for mark in self.marks if isinstance(mark, Rule) or _has_data(mark)]
        return "".join(
            draw(mark, plane, roles.get(series(mark), ""))
            for kind, draw in _LAYERS.items()
            for mark in drawable
            if isinstance(mark, kind)
        )

    def _words(self, plane: Plane, roles: dict[Series, str], ended: list[str]) -> str:
        out = ""
        for mark in self.marks:
            if isinstance(mark, Bars) and _beside(self):
                out += bar_numbers(mark, plane)
            if isinstance(mark, Polyline) and mark.name in ended:
                last = plane.y.place(float(np.asarray(mark.y)[-1]))
                out += text(plane.x.end + GAP, last + 4, mark.name, role=roles[series(mark)], bold=True)
        return out


def heading(title: str, wide: float) -> tuple[str, float]:
    """A title, and how far down it reaches."""
    lines = wrap(title, wide - 2 * EDGE, TITLE, 2)
    body = ""
    for i, one in enumerate(lines):
        body += text(EDGE, EDGE + 13 + TITLE_LINE * i, one, role="ink", size=TITLE, bold=True)
    return body, EDGE + TITLE_LINE * len(lines) + (4 if lines else 0)


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


def _has_data(mark: Mark) -> bool:
    return not isinstance(mark, Rule) and np.size(mark.values if isinstance(mark, Bars | Heat) else mark.x) > 0


def _numbers(marks: Sequence[Mark], axis: Axis, side: str) -> list[Numbers]:
    """What the axis of this side, x or y, must reach: the marks, and the ends of their whiskers and bands."""
    found = []
    for mark in marks:
        along = mark.values if isinstance(mark, Bars) else getattr(mark, side, None)
        if along is not None:
            found.append(np.atleast_1d(np.asarray(along, dtype=np.float64)))
        ends_here = isinstance(mark, Bars) or getattr(mark, "across", False) == (side == "x")
        for end in (getattr(mark, "low", None), getattr(mark, "high", None)):
            if end is not None and ends_here:
                reached = np.asarray(end)
                found.append(reached[reached > 0] if axis.log else reached)  # one to 0 or below leaves the picture
    return found


def _tall(chart: Chart, around: float) -> float:
    """Pixels for the marks, before labels below are known."""
    if chart.height is not None:
        return max(_LEAST, chart.height - around)
    if chart.y.categories is None:
        return _TALL
    return max(_LEAST, min(_ROW * len(chart.y.categories), TALLEST))


def _beside(chart: Chart) -> float:
    """Room at the right for the numbers of lying bars; none if they are not printed."""
    if chart.y.categories is None or chart.bars is None or len(chart.y.categories) > MOST_NUMBERS:
        return 0
    return max(width(number(v), SMALL) for v in np.asarray(chart.bars.values).tolist()) + GAP


def _grid(plane: Plane, side: AxisLabels, feet: AxisLabels, *, shaded: bool) -> str:
    """Lines at the ticks, the line on which everything stands, and the labels of the y axis."""
    x, y = plane.x, plane.y
    labels = side.beside(y, x.start - GAP)
    if shaded:
        return labels
    lines = ""
    if y.axis.categories is None:
        lines += "".join(f"M{p(x.start)} {p(v)}H{p(x.end)}" for v in map(y.place, side.places))
    if x.axis.categories is None:
        lines += "".join(f"M{p(v)} {p(y.start)}V{p(y.end)}" for v in map(x.place, feet.places))
    if plane.lying:
        base = f"M{p(x.place(x.base))} {p(y.start)}V{p(y.end)}"
    else:
        base = f"M{p(x.start)} {p(y.place(y.base))}H{p(x.end)}"
    strokes = [(lines, "grid"), (base, "soft")]
    crisp = 'shape-rendering="crispEdges"'
    return "".join(f'<path d="{d}" {paint(stroke=role)} {crisp}/>' for d, role in strokes if d) + labels


def _clipped(plane: Plane, marks: str) -> str:
    """An inner picture cuts off what leaves the axes, and needs no name."""
    left, top = plane.x.start - OVERLAP, min(plane.y.start, plane.y.end) - OVERLAP
    wide, high = plane.x.length + 2 * OVERLAP, plane.y.length + 2 * OVERLAP
    view = f'viewBox="{p(left)} {p(top)} {p(wide)} {p(high)}" overflow="hidden"'
    return f"<svg {box(left, top, wide, high)} {view}>{marks}</svg>"


@dataclass(frozen=True, eq=False)
class Grid(Picture):
    """Small multiples: charts in rows. With `same_y` they share the y axis, so that heights can be compared."""

    title: str
    charts: Sequence[Chart]
    columns: int = 2
    same_y: bool = False

    def __post_init__(self) -> None:
        if self.columns < 1 or not self.charts:
            raise ValueError("A grid needs a chart and a column.")
        object.__setattr__(self, "charts", tuple(self.charts))

    def drawing(self) -> Drawing:
        drawn = [chart.drawing() for chart in (_level(self.charts) if self.same_y else self.charts)]
        rows = [drawn[i : i + self.columns] for i in range(0, len(drawn), self.columns)]
        columns = [max(row[j].width for row in rows if j < len(row)) for j in range(len(rows[0]))]
        body, top = heading(self.title, sum(columns))
        for row in rows:
            for j, one in enumerate(row):
                body += f'<g transform="translate({p(sum(columns[:j]))} {p(top)})">{one.body}</g>'
            top += max(one.height for one in row)
        words = " ".join(f"{chart.title}: {one.words}" for chart, one in zip(self.charts, drawn, strict=True))
        return Drawing(sum(columns), top, body, words)


@dataclass(frozen=True, eq=False)
class Gauge(Picture):
    """How much of a whole is taken, and by what: one bar, with what is left in the colour of the grid."""

    title: str
    parts: Sequence[tuple[str, float]]
    total: float
    unit: str = ""
    width: int = 640

    def __post_init__(self) -> None:
        sizes = numbers([size for _, size in self.parts], "parts")
        numbers([self.total], "total")
        if self.total <= 0 or (sizes < 0).any():
            raise ValueError("A gauge's total must be above 0, and no part negative.")
        if sizes.sum() > self.total * (1 + 1e-9):
            raise ValueError("The parts of a gauge must not exceed its total.")
        if not 200 <= self.width <= 4000:
            raise ValueError("A gauge is 200 to 4000 pixels wide.")

    def drawing(self) -> Drawing:
        body, top = heading(self.title, self.width)
        long = self.width - 2 * EDGE
        taken = sum(size for _, size in self.parts)
        unit = f" {self.unit}" if self.unit else ""
        said = f"{number(taken)} of {number(self.total)}{unit} ({taken / self.total:.0%})"
        for one in wrap(said, long):
            body += text(EDGE, top + _SAMPLE, one)
            top += SAID
        top += 6
        body += f'<path d="{rectangles([(EDGE, top, long, _BAR)])}" {paint(fill="grid")}/>'
        x = float(EDGE)
        parts = [(name, size, str(i % SERIES_COLOURS)) for i, (name, size) in enumerate(self.parts)]
        for name, size, role in parts:
            wide = long * size / self.total
            gap = 1 if wide > 4 else 0
            words = escape(clip(f"{name}: {number(size)}{unit}", 2000))
            body += f"<rect {box(x, top, wide - gap, _BAR)} {paint(fill=role)}><title>{words}</title></rect>"
            x += wide
        rest = ("left", max(0.0, self.total - taken), "grid")
        key, top = _key([*parts, rest], long, top + 34)
        each = ", ".join(f"{clip(name, 1000)} {number(size)}" for name, size, _ in parts)
        words = f"{said}. {each}{'; ' if each else ''}left {number(rest[1])}."
        return Drawing(self.width, top + SAID + EDGE, body + key, words)


def _key(parts: Sequence[tuple[str, float, str]], long: float, top: float) -> tuple[str, float]:
    """Samples and names in rows, and where the last row is."""
    out, x = "", float(EDGE)
    for name, size, role in parts:
        label = f"{clip(name, _LONGEST)} {number(size)}"
        if x > EDGE and x + AFTER + width(label) > EDGE + long:
            x, top = float(EDGE), top + 20
        out += f'<path d="{rectangles([(x, top, _SAMPLE, _SAMPLE)])}" {paint(fill=role)}/>'
        out += text(x + AFTER, top + 10, f"{name} {number(size)}", most=min(long - AFTER, max(width(label), 40)))
        x += AFTER + width(label) + 16
    return out, top


def _level(charts: Sequence[Chart]) -> list[Chart]:
    """The same charts, with the widest range of all on every y axis of numbers; linear and logarithmic ones apart."""
    found = list(charts)
    for log in (False, True):
        own = [i for i, one in enumerate(charts) if not one.is_empty and not one.y.categories and one.y.log == log]
        scales = [charts[i].scales()[1] for i in own]
        for i in own:
            low, high = min(scale.low for scale in scales), max(scale.high for scale in scales)
            found[i] = replace(charts[i], y=replace(charts[i].y, low=low, high=high))
    return found
