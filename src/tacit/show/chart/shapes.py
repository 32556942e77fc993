"""Each kind of mark as SVG, once the scales are known. For the chart package."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.show.chart.marks import Band, Bars, Heat, Line, Numbers, Points, Rule, Shape, Steps, Ticks
from tacit.show.chart.paint import p, paint, path, rectangles, text, thin
from tacit.show.chart.scale import Scale
from tacit.show.chart.text import clip, escape, number, width

MOST_POINTS = 3000  # more are thinned: a picture has no room for them, and a file should stay small
MOST_CELLS = 5000
MOST_TITLED = 500  # cells that say their number when pointed at
Places = NDArray[np.intp]
TURN_WHITE = 0.62  # shade from which words on it take the paper's colour


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


def line(mark: Line | Steps, plane: Plane, role: str) -> str:
    x, y = np.asarray(mark.x, dtype=np.float64), np.asarray(mark.y, dtype=np.float64)
    if isinstance(mark, Steps):
        x, (y,) = _stairs(x, [y], plane.x)
    x, y = thin(plane.x.at(x), plane.y.at(y), plane.grain)
    look = paint(stroke=role, width=2, dashed=mark.dashed)
    return f'<path d="{path(x, y)}" {look} stroke-linejoin="round" stroke-linecap="round"/>'


def band(mark: Band, plane: Plane, role: str) -> str:
    x, low, high = (np.asarray(v, dtype=np.float64) for v in (mark.x, mark.low, mark.high))
    if mark.steps:
        x, (low, high) = _stairs(x, [low, high], plane.x)
    across = plane.x.at(x)
    over, upper = thin(across, plane.y.at(high), plane.grain)
    under, lower = thin(across, plane.y.at(low), plane.grain)
    outline = path(np.concatenate([over, under[::-1]]), np.concatenate([upper, lower[::-1]]))
    return f'<path d="{outline}z" {paint(fill=role, opacity=0.18)}/>'


def bars(mark: Bars, plane: Plane, role: str, place: int, of: int) -> str:
    """The bars of one series, beside those of the `of - 1` others."""
    along, up = (plane.y, plane.x) if plane.lying else (plane.x, plane.y)
    names = along.axis.categories or ()
    values = np.asarray(mark.values, dtype=np.float64)
    room = min(0.76 * along.band, (26 if plane.lying else 56) * of) / of
    middle = along.at(np.arange(values.size, dtype=np.float64)) + (place - (of - 1) / 2) * room
    base, tip = up.place(up.base), up.at(values)
    shown = _tallest(middle, np.abs(tip - base))
    thick = max(0.5, 0.92 * room if of > 1 else room)
    out = []
    for i in shown:
        box = _box(plane.lying, middle[i] - thick / 2, thick, base, tip[i])
        said = f"{names[i]}: {number(values[i])}" + _give_or_take(mark, i)
        out.append(f"<rect {box}><title>{escape(clip(said, 2000))}</title></rect>")
    found = f"<g {paint(fill=role, opacity=0.88)}>{''.join(out)}</g>"
    if mark.low is not None and mark.high is not None and room >= 3:
        low, high = up.at(np.asarray(mark.low)[shown]), up.at(np.asarray(mark.high)[shown])
        found += _whiskers(middle[shown], low, high, min(4.0, thick / 3), "ink", lying=plane.lying)
    return found


def bar_numbers(mark: Bars, plane: Plane) -> str:
    """The value of each lying bar, beside its end."""
    values = np.asarray(mark.values, dtype=np.float64)
    ends = np.maximum(values, plane.x.base) if mark.high is None else np.asarray(mark.high)
    across = np.clip(plane.x.at(np.maximum(ends, plane.x.base)), plane.x.start, plane.x.end)
    down = plane.y.at(np.arange(values.size, dtype=np.float64))
    return "".join(
        text(a + 6, d + 4, number(v), size=11)
        for a, d, v in zip(across.tolist(), down.tolist(), values.tolist(), strict=True)
    )


def points(mark: Points, plane: Plane, role: str) -> str:
    x, y = plane.x.at(np.asarray(mark.x)), plane.y.at(np.asarray(mark.y))
    shown = _spread(x, y)
    size = 4.0 if shown.size <= 150 else 2.5 if shown.size <= 1000 else 1.8
    found = ""
    if mark.low is not None and mark.high is not None:
        along, at = (plane.x, y) if mark.across else (plane.y, x)
        low, high = along.at(np.asarray(mark.low)[shown]), along.at(np.asarray(mark.high)[shown])
        found = _whiskers(at[shown], low, high, 3.0 if shown.size <= 150 else 0.0, role, lying=mark.across)
    if shown.size > 1000 and mark.shape == "circle":  # strokes of no length with round ends: dots in a few letters each
        dots = "".join(f"M{p(a)} {p(b)}h.01" for a, b in zip(x[shown].tolist(), y[shown].tolist(), strict=True))
        return f'{found}<path d="{dots}" {paint(stroke=role, width=2 * size, opacity=0.7)} stroke-linecap="round"/>'
    outlines = "".join(shape(mark.shape, a, b, size) for a, b in zip(x[shown].tolist(), y[shown].tolist(), strict=True))
    look = paint(fill=role, stroke="paper", width=0.8) if shown.size <= 1000 else paint(fill=role, opacity=0.7)
    return f'{found}<path d="{outlines}" {look}/>'


def shape(kind: Shape, x: float, y: float, r: float = 4.0) -> str:
    if kind == "circle":
        return f"M{p(x - r)} {p(y)}a{p(r)} {p(r)} 0 1 0 {p(2 * r)} 0a{p(r)} {p(r)} 0 1 0 {p(-2 * r)} 0z"
    if kind == "triangle":
        return f"M{p(x)} {p(y - 1.3 * r)}l{p(1.2 * r)} {p(2.1 * r)}h{p(-2.4 * r)}z"
    if kind == "diamond":
        s = p(1.3 * r)
        return f"M{p(x)} {p(y - 1.3 * r)}l{s} {s}l-{s} {s}l-{s} -{s}z"
    return rectangles([(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r)])


def ticks(mark: Ticks, plane: Plane, role: str, top: float) -> str:
    """Strokes in a lane whose upper edge is at `top`; several on one pixel are one."""
    x = np.unique(np.round(plane.x.at(np.asarray(mark.x)), 0 if np.size(mark.x) > 1000 else 1))
    strokes = "".join(f"M{p(a)} {p(top)}v10" for a in x.tolist())
    return f'<path d="{strokes}" {paint(stroke=role, width=1.5 if x.size < 200 else 1)}/>'


def rule(mark: Rule, plane: Plane) -> str:
    look = paint(stroke="soft", width=1.2, dashed=True)
    if mark.x is not None:
        x = plane.x.place(mark.x)
        right = x < (plane.x.start + plane.x.end) / 2
        most = abs((plane.x.end if right else plane.x.start) - x) - 8
        words = text(
            x + (5 if right else -5),
            plane.y.end + 11,
            mark.name,
            size=11,
            anchor="start" if right else "end",
            most=most,
        )
        return f'<path d="M{p(x)} {p(plane.y.start)}V{p(plane.y.end)}" {look}/>' + (words if mark.name else "")
    y = plane.y.place(mark.y or 0.0)
    under = y - min(plane.y.start, plane.y.end) < 18
    words = text(plane.x.end - 2, y + (13 if under else -5), mark.name, size=11, anchor="end", most=plane.x.length - 8)
    return f'<path d="M{p(plane.x.start)} {p(y)}H{p(plane.x.end)}" {look}/>' + (words if mark.name else "")


def heat(mark: Heat, plane: Plane) -> str:
    """Shades of one colour over the paper, so that few is near the paper in light and in dark."""
    values, tall, wide = _blocks(np.asarray(mark.values, dtype=np.float64), plane.y.length / 2, plane.x.length / 2)
    x, y = np.rint(plane.x.at(wide - 0.5)).tolist(), np.rint(plane.y.at(tall - 0.5)).tolist()  # no seams: whole pixels
    shades = shade(values, float(values.min()), float(values.max()))
    if np.size(mark.values) > min(MOST_TITLED, values.size):  # one path for each of forty shades
        level = np.rint(shades * 40)
        out = []
        for one in np.unique(level).tolist():
            cells = np.argwhere(level == one).tolist()
            boxes = rectangles((x[j], y[i], x[j + 1] - x[j], y[i + 1] - y[i]) for i, j in cells)
            out.append(f'<path d="{boxes}" fill-opacity="{one / 40:.2f}"/>')
        return f'<g {paint(fill="heat")} shape-rendering="crispEdges">{"".join(out)}</g>'
    labels = [[number(v) for v in row] for row in values.tolist()]
    w, h = plane.x.band, plane.y.band
    printed = h >= 15 and max(width(word, 11) for row in labels for word in row) + 8 <= w
    gap = 1 if min(w, h) > 8 else 0
    boxes, words = "", ""
    for i, row in enumerate(plane.y.axis.categories or ()):
        for j, column in enumerate(plane.x.axis.categories or ()):
            said = escape(clip(f"{row}, {column}: {labels[i][j]}", 1000))
            box = f'x="{p(x[j])}" y="{p(y[i])}" width="{p(x[j + 1] - x[j] - gap)}" height="{p(y[i + 1] - y[i] - gap)}"'
            boxes += f'<rect {box} fill-opacity="{shades[i, j]:.2f}"><title>{said}</title></rect>'
            role = "paper" if shades[i, j] > TURN_WHITE else "ink"
            middle, down = (x[j] + x[j + 1]) / 2, (y[i] + y[i + 1]) / 2 + 4
            words += text(middle, down, labels[i][j], role=role, size=11, anchor="middle") if printed else ""
    return f"<g {paint(fill='heat')}>{boxes}</g>{words}"


def shade(values: Numbers, low: float, high: float) -> Numbers:
    """From almost paper to full colour."""
    if high <= low:
        return np.full(values.shape, 0.4)
    found: Numbers = 0.05 + 0.95 * (values - low) / (high - low)
    return found


def _stairs(x: Numbers, levels: list[Numbers], scale: Scale) -> tuple[Numbers, list[Numbers]]:
    """The corners. A level ends where the next one starts; on categories each covers its own."""
    if scale.axis.categories is not None:
        return np.repeat(x, 2) + np.tile([-0.5, 0.5], x.size), [np.repeat(level, 2) for level in levels]
    return np.repeat(x, 2)[1:], [np.repeat(level, 2)[:-1] for level in levels]


def _whiskers(at: Numbers, low: Numbers, high: Numbers, foot: float, role: str, *, lying: bool = False) -> str:
    out = []
    for a, b, c in zip(at.tolist(), low.tolist(), high.tolist(), strict=True):
        if lying:
            feet = f"M{p(b)} {p(a - foot)}v{p(2 * foot)}M{p(c)} {p(a - foot)}v{p(2 * foot)}" if foot else ""
            out.append(f"M{p(b)} {p(a)}H{p(c)}{feet}")
        else:
            feet = f"M{p(a - foot)} {p(b)}h{p(2 * foot)}M{p(a - foot)} {p(c)}h{p(2 * foot)}" if foot else ""
            out.append(f"M{p(a)} {p(b)}V{p(c)}{feet}")
    return f'<path d="{"".join(out)}" {paint(stroke=role, width=1.3)}/>'


def _give_or_take(mark: Bars, i: int) -> str:
    if mark.low is None or mark.high is None:
        return ""
    return f" (from {number(float(np.asarray(mark.low)[i]))} to {number(float(np.asarray(mark.high)[i]))})"


def _box(lying: bool, side: float, thick: float, base: float, tip: float) -> str:
    near, far = min(base, tip), abs(tip - base)
    if lying:
        return f'x="{p(near)}" y="{p(side)}" width="{p(far)}" height="{p(thick)}"'
    return f'x="{p(side)}" y="{p(near)}" width="{p(thick)}" height="{p(far)}"'


def _tallest(middle: Numbers, height: Numbers) -> Places:
    """All bars; of those that share a pixel, the tallest."""
    if middle.size <= 500:
        return np.arange(middle.size)
    pixel = np.floor(middle)
    order = np.lexsort((height, pixel))
    last: Places = order[np.flatnonzero(np.diff(pixel[order], append=np.inf))]
    return last


def _spread(x: Numbers, y: Numbers) -> Places:
    """All points; where there are too many, the first in each square of pixels, and the extremes of each column."""
    kept: Places = np.arange(x.size)
    side = 1.0
    while kept.size > MOST_POINTS:
        columns, rows = np.floor(x / side).astype(np.int64), np.floor(y / side).astype(np.int64)
        kept = np.unique(columns * (1 << 20) + rows, return_index=True)[1]
        side *= 1.3
    if kept.size < x.size:
        column = np.floor(x / 4)
        order = np.lexsort((y, column))
        edge = np.flatnonzero(np.diff(column[order], prepend=-np.inf))
        kept = np.unique(np.concatenate([kept, order[edge], order[np.append(edge[1:], x.size) - 1]]))
    return kept


def _blocks(values: Numbers, most_rows: float, most_columns: float) -> tuple[Numbers, Numbers, Numbers]:
    """Neighbouring cells averaged until they can be seen and are not too many, with the edges of rows and columns."""
    rows, columns = values.shape
    down, across = max(1, math.ceil(rows / most_rows)), max(1, math.ceil(columns / most_columns))
    while -(-rows // down) * -(-columns // across) > MOST_CELLS:
        if rows / down >= columns / across:
            down += 1
        else:
            across += 1
    tall, wide = np.append(np.arange(0, rows, down), rows), np.append(np.arange(0, columns, across), columns)
    if down * across > 1:
        sums = np.add.reduceat(np.add.reduceat(values, tall[:-1], axis=0), wide[:-1], axis=1)
        values = sums / np.outer(np.diff(tall), np.diff(wide))
    return values, tall.astype(np.float64), wide.astype(np.float64)
