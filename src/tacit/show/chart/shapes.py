"""Each kind of mark as SVG, once the scales are known. For the chart package."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.show.chart.axes import Scale
from tacit.show.chart.marks import Area, Bars, Heat, Numbers, Points, Polyline, Rule, Shape, Ticks
from tacit.show.chart.paint import GREY, SMALL, box, clip, escape, number, p, paint, rectangles, text, width

# More are thinned: a picture has no room for them, and a file should stay small.
MOST_ON_LINE = 500  # points of a line, and bars
MOST_STROKES = 1000  # of a lane; more of them stand on whole pixels
MOST_TILES = 5000
MOST_TITLED = 500  # cells that say their number when pointed at
POINT, FOOT = 4.0, 3.0  # pixels: half of a point, and half of the foot of its whisker
SHADES = 40  # that cells without a number have
TURN_HATCH = 0.25  # shade from which strokes on it take the paper's colour
TURN_WHITE = 0.62  # shade from which words on it take the paper's colour
AREA, BAR = 0.18, 0.88  # how opaque they are
HATCH = 7  # pixels from one stroke of a hatched box to the next
FILLED = 0.76  # the part of its category that a bar takes,
THICKEST, THICKEST_LYING = 56, 26  # but no more pixels than these
LONGEST_TITLE = 2000  # pixels of the words that a bar says when pointed at
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Plane:
    """Both scales, and how many pixels make one column when many points are thinned."""

    x: Scale
    y: Scale
    grain: float = 1.0

    @property
    def lying(self) -> bool:
        """Whether bars lie: the categories are on the y axis."""
        return self.y.axis.categories is not None


def line(mark: Polyline, plane: Plane, role: str) -> str:
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    if mark.steps:
        x, y = np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]  # a level ends where the next one starts
    x, y = thin(plane.x.at(x), plane.y.at(y), plane.grain)
    look = paint(stroke=role, width=2, dashed=mark.dashed)
    return f'<path d="{_path(x, y)}" {look} stroke-linejoin="round" stroke-linecap="round"/>'


def area(mark: Area, plane: Plane, role: str) -> str:
    across = plane.x.at(np.asarray(mark.x))
    over, upper = thin(across, plane.y.at(np.asarray(mark.high)), plane.grain)
    under, lower = thin(across, plane.y.at(np.asarray(mark.low)), plane.grain)
    outline = _path(np.concatenate([over, under[::-1]]), np.concatenate([upper, lower[::-1]]))
    return f'<path d="{outline}z" {paint(fill=role, opacity=AREA)}/>'


def bars(mark: Bars, plane: Plane, role: str) -> str:
    along, up = (plane.y, plane.x) if plane.lying else (plane.x, plane.y)
    names = along.axis.categories or ()
    values = np.asarray(mark.values)
    room = min(FILLED * along.band, THICKEST_LYING if plane.lying else THICKEST)
    middle = along.at(np.arange(values.size, dtype=np.float64))
    base, tip = up.place(up.base), up.at(values)
    shown = _tallest(middle, np.abs(tip - base))
    thick = max(0.5, room)
    ends = None if mark.low is None or mark.high is None else (np.asarray(mark.low), np.asarray(mark.high))
    out = []
    for i in shown:
        side, near, long = middle[i] - thick / 2, min(base, tip[i]), abs(tip[i] - base)
        x, y, wide, high = (near, side, long, thick) if plane.lying else (side, near, thick, long)
        said = f"{names[i]}: {number(values[i])}"
        said += f" (from {number(ends[0][i])} to {number(ends[1][i])})" if ends else ""
        out.append(f"<rect {box(x, y, wide, high)}><title>{escape(clip(said, LONGEST_TITLE))}</title></rect>")
    found = f"<g {paint(fill=role, opacity=BAR)}>{''.join(out)}</g>"
    if role == str(GREY):  # what says nothing is hatched
        boxes = ((near, middle[i] - thick / 2, far) for i in shown for near, far in [sorted((base, float(tip[i])))])
        strokes = "".join(
            hatch(near, side, far - near, thick) if plane.lying else hatch(side, near, thick, far - near)
            for near, side, far in boxes
        )
        found += f'<path d="{strokes}" {paint(stroke="paper", width=2)}/>' if strokes else ""
    if ends and room >= 3:
        low, high = (up.at(end[shown]) for end in ends)
        found += _whiskers(middle[shown], low, high, min(4.0, thick / 3), "ink", lying=plane.lying)
    return found


def hatch(x: float, y: float, wide: float, high: float) -> str:
    """Slanted strokes that fill a box."""
    ends = np.arange(HATCH, wide + high, HATCH).tolist()
    return "".join(
        f"M{p(x + max(0.0, c - high))} {p(y + min(c, high))}L{p(x + min(c, wide))} {p(y + max(0.0, c - wide))}"
        for c in ends
    )


def bar_numbers(mark: Bars, plane: Plane) -> str:
    """The value of each lying bar, beside its end."""
    values = np.asarray(mark.values)
    ends = np.maximum(values if mark.high is None else np.asarray(mark.high), plane.x.base)
    across = np.clip(plane.x.at(ends), plane.x.start, plane.x.end)
    down = plane.y.at(np.arange(values.size, dtype=np.float64))
    placed = zip(_pairs(across, down), values.tolist(), strict=True)
    return "".join(text(a + 6, d + 4, number(v), size=SMALL) for (a, d), v in placed)


def points(mark: Points, plane: Plane, role: str) -> str:
    x, y = plane.x.at(np.asarray(mark.x)), plane.y.at(np.asarray(mark.y))
    found = ""
    if mark.low is not None and mark.high is not None:
        along, at = (plane.x, y) if mark.across else (plane.y, x)
        low, high = along.at(np.asarray(mark.low)), along.at(np.asarray(mark.high))
        found = _whiskers(at, low, high, FOOT, role, lying=mark.across)
    outlines = "".join(shape(mark.shape, a, b) for a, b in _pairs(x, y))
    return f'{found}<path d="{outlines}" {paint(fill=role, stroke="paper", width=0.8)}/>'


def shape(kind: Shape, x: float, y: float, r: float = POINT) -> str:
    """The outline of a point; all three look equally large."""
    if kind == "circle":
        return f"M{p(x - r)} {p(y)}a{p(r)} {p(r)} 0 1 0 {p(2 * r)} 0a{p(r)} {p(r)} 0 1 0 {p(-2 * r)} 0z"
    if kind == "triangle":
        return f"M{p(x)} {p(y - 1.3 * r)}l{p(1.2 * r)} {p(2.1 * r)}h{p(-2.4 * r)}z"
    s = p(1.3 * r)
    return f"M{p(x)} {p(y - 1.3 * r)}l{s} {s}l-{s} {s}l-{s} -{s}z"


def ticks(mark: Ticks, plane: Plane, role: str, top: float) -> str:
    """Strokes in a lane whose upper edge is at `top`; several on one pixel are one."""
    x = np.unique(np.round(plane.x.at(np.asarray(mark.x)), 0 if np.size(mark.x) > MOST_STROKES else 1))
    strokes = "".join(f"M{p(a)} {p(top)}v10" for a in x.tolist())
    return f'<path d="{strokes}" {paint(stroke=role, width=1.5 if x.size < 200 else 1)}/>'


def rule(mark: Rule, plane: Plane, _: str = "") -> str:
    """The line, and its name on the side where there is more room."""
    x, y = plane.x, plane.y
    if mark.x is not None:
        at = x.place(mark.x)
        right = at < (x.start + x.end) / 2
        room = abs((x.end if right else x.start) - at) - 8
        side, anchor = (5, "start") if right else (-5, "end")
        words = text(at + side, y.end + 11, mark.name, size=SMALL, anchor=anchor, most=room)
        stroke = f"M{p(at)} {p(y.start)}V{p(y.end)}"
    else:
        at = y.place(mark.y or 0.0)
        under = at - min(y.start, y.end) < 18
        words = text(x.end - 2, at + (13 if under else -5), mark.name, size=SMALL, anchor="end", most=x.length - 8)
        stroke = f"M{p(x.start)} {p(at)}H{p(x.end)}"
    return f'<path d="{stroke}" {paint(stroke="soft", width=1.2, dashed=True)}/>' + (words if mark.name else "")


def heat(mark: Heat, plane: Plane, _: str = "") -> str:
    """Shades of one colour over the paper, so that few is near the paper in light and in dark."""
    values, tall, wide = _blocks(np.asarray(mark.values), plane.y.length / 2, plane.x.length / 2)
    x, y = np.rint(plane.x.at(wide - 0.5)).tolist(), np.rint(plane.y.at(tall - 0.5)).tolist()  # no seams: whole pixels
    shades = shade(values, float(values.min()), float(values.max()))
    if np.size(mark.values) > min(MOST_TITLED, values.size):
        return _many_cells(shades, x, y)
    labels = [[number(v) for v in row] for row in values.tolist()]
    w, h = plane.x.band, plane.y.band
    printed = h >= 15 and max(width(word, SMALL) for row in labels for word in row) + 8 <= w
    gap = 1 if min(w, h) > 8 else 0
    boxes, words, bar = "", "", "" if mark.error is None else f" ± {number(mark.error)}"
    strokes = {"6": "", "paper": ""}  # on what is light, and on what is dark
    for i, row in enumerate(plane.y.axis.categories or ()):
        for j, column in enumerate(plane.x.axis.categories or ()):
            said = escape(clip(f"{row}, {column}: {labels[i][j]}{bar}", LONGEST_TITLE / 2))
            cell = x[j], y[i], x[j + 1] - x[j] - gap, y[i + 1] - y[i] - gap
            if mark.unsure[i, j]:
                strokes["paper" if shades[i, j] > TURN_HATCH else "6"] += hatch(*cell)
            boxes += f'<rect {box(*cell)} fill-opacity="{shades[i, j]:.2f}"><title>{said}</title></rect>'
            role = "paper" if shades[i, j] > TURN_WHITE else "ink"
            middle, down = (x[j] + x[j + 1]) / 2, (y[i] + y[i + 1]) / 2 + 4
            words += text(middle, down, labels[i][j], role=role, size=SMALL, anchor="middle") if printed else ""
    hatched = "".join(
        f'<path d="{d}" {paint(stroke=role, width=1, opacity=0.5)} pointer-events="none"/>'
        for role, d in strokes.items()
        if d
    )
    return f"<g {paint(fill='heat')}>{boxes}</g>{hatched}{words}"


def shade(values: Numbers, low: float, high: float) -> Numbers:
    """From almost paper to full colour."""
    if high <= low:
        return np.full(values.shape, 0.4)
    found: Numbers = 0.05 + 0.95 * (values - low) / (high - low)
    return found


def thin(x: Numbers, y: Numbers, grain: float) -> tuple[Numbers, Numbers]:
    """A line through fewer points that looks the same: first, lowest, highest and last of each column of pixels.

    Jugel, Jerzak, Hackenbroich & Markl 2014, "M4: a visualization-oriented time series data aggregation".
    """
    if x.size <= MOST_ON_LINE:
        return x, y
    column = np.floor(x / grain)
    starts = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
    ends = np.append(starts[1:], x.size) - 1
    by_height = np.lexsort((y, column))  # columns stay together, so their places are the same
    kept = np.unique(np.concatenate([starts, ends, by_height[starts], by_height[ends]]))
    return x[kept], y[kept]


def _many_cells(shades: Numbers, x: list[float], y: list[float]) -> str:
    """One path for each shade, without numbers."""
    level = np.rint(shades * SHADES)
    out = []
    for one in np.unique(level).tolist():
        cells = np.argwhere(level == one).tolist()
        boxes = rectangles((x[j], y[i], x[j + 1] - x[j], y[i + 1] - y[i]) for i, j in cells)
        out.append(f'<path d="{boxes}" fill-opacity="{one / SHADES:.2f}"/>')
    return f'<g {paint(fill="heat")} shape-rendering="crispEdges">{"".join(out)}</g>'


def _pairs(x: Numbers, y: Numbers) -> Iterator[tuple[float, float]]:
    return zip(x.tolist(), y.tolist(), strict=True)


def _path(x: Numbers, y: Numbers) -> str:
    """Straight lines through pixels."""
    return "M" + " ".join(f"{p(a)} {p(b)}" for a, b in _pairs(x, y))


def _whiskers(at: Numbers, low: Numbers, high: Numbers, foot: float, role: str, *, lying: bool) -> str:
    """Strokes from low to high, with a foot across both ends if there is room for one."""
    out = ""
    for a, (b, c) in zip(at.tolist(), _pairs(low, high), strict=True):
        out += f"M{p(b)} {p(a)}H{p(c)}" if lying else f"M{p(a)} {p(b)}V{p(c)}"
        for end in (b, c) if foot else ():
            out += f"M{p(end)} {p(a - foot)}v{p(2 * foot)}" if lying else f"M{p(a - foot)} {p(end)}h{p(2 * foot)}"
    return f'<path d="{out}" {paint(stroke=role, width=1.3)}/>'


def _tallest(middle: Numbers, height: Numbers) -> Places:
    """All bars; of those that share a pixel, the tallest."""
    if middle.size <= MOST_ON_LINE:
        return np.arange(middle.size)
    pixel = np.floor(middle)
    order = np.lexsort((height, pixel))
    last: Places = order[np.flatnonzero(np.diff(pixel[order], append=np.inf))]
    return last


def _blocks(values: Numbers, most_rows: float, most_columns: float) -> tuple[Numbers, Numbers, Numbers]:
    """Neighbouring cells averaged until they can be seen and are not too many, with the edges of rows and columns."""
    rows, columns = values.shape
    down, across = max(1, math.ceil(rows / most_rows)), max(1, math.ceil(columns / most_columns))
    while -(-rows // down) * -(-columns // across) > MOST_TILES:
        if rows / down >= columns / across:
            down += 1
        else:
            across += 1
    tall, wide = np.append(np.arange(0, rows, down), rows), np.append(np.arange(0, columns, across), columns)
    if down * across > 1:
        sums = np.add.reduceat(np.add.reduceat(values, tall[:-1], axis=0), wide[:-1], axis=1)
        values = sums / np.outer(np.diff(tall), np.diff(wide))
    return values, tall.astype(np.float64), wide.astype(np.float64)
