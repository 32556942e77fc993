"""What a chart says besides its marks: colours and legend, names at the ends of lines, and all of it in words.

For the chart package.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.show.chart.axes import Axis, Scale
from tacit.show.chart.marks import Area, Bars, Heat, Mark, Points, Polyline, Rule, Ticks
from tacit.show.chart.paint import SERIES_COLOURS, clip, number, p, paint, rectangles, text, width
from tacit.show.chart.shapes import AREA, BAR, MOST_TITLED, hatch, shade, shape

_ROW = 20  # pixels of a row of the legend
_SAMPLE = 22  # pixels of a colour's sample, and the space after it
_BETWEEN = 16  # pixels between two names
_LONGEST = 240  # pixels of a name
_NEAREST = 15  # pixels between the names at the ends of two lines
MOST_ENDS = 6  # lines that are named at their ends
RAMP, STEP = 12, 8  # shades in the legend of a table, and the pixels of each
LISTED = 12  # bars that are read out one by one
_READ = 1440  # pixels of a name that is read out, 120 letters or so
MOST_READ_OUT = 20_000  # pixels of all that is read out

Series = str | int  # the name of a series, or the place in the palette that it asks for


def series(mark: Mark) -> Series:
    """What decides a mark's colour: the one it asks for, or else its name."""
    if isinstance(mark, Rule | Heat) or mark.colour is None:
        return mark.name
    return mark.colour


def colours(marks: Sequence[Mark]) -> dict[Series, str]:
    """The palette's place of each series, in the order of their first mark."""
    found: dict[Series, str] = {}
    given = 0
    for mark in marks:
        own = series(mark)
        if isinstance(mark, Rule | Heat) or own in found:
            continue
        found[own] = str((own if isinstance(own, int) else given) % SERIES_COLOURS)
        given += isinstance(own, str)
    return found


def named(marks: Sequence[Mark], roles: dict[Series, str]) -> dict[tuple[str, str], list[Mark]]:
    """The marks of each name and colour. Rules, shades and lanes bear their names where they are."""
    found: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        if mark.name and not isinstance(mark, Rule | Heat | Ticks):
            found.setdefault((mark.name, roles[series(mark)]), []).append(mark)
    return found


def direct(marks: Sequence[Mark], x: Scale, y: Scale, wide: float, high: float) -> bool:
    """Whether names can stand at the ends of their lines: they all end at the right, and well apart."""
    bearers = [mark for mark in marks if mark.name and not isinstance(mark, Area | Rule | Ticks)]
    lines = [mark for mark in bearers if isinstance(mark, Polyline) and np.size(mark.x)]
    names = {mark.name for mark in lines}
    if not lines or not len(names) == len(lines) == len(bearers) <= MOST_ENDS:
        return False
    if any(mark.name not in names for mark in marks if isinstance(mark, Area) and mark.name):
        return False
    if max(map(width, names)) > 0.28 * wide:
        return False
    lasts = sorted(y.place(float(np.asarray(mark.y)[-1])) for mark in lines)
    far = all(x.place(float(np.asarray(mark.x)[-1])) > 0.97 for mark in lines)
    apart = min(np.diff(lasts), default=1.0) * 0.6 * high >= _NEAREST
    return bool(far and apart and lasts[0] >= 0 and lasts[-1] <= 1)


def legend(marks: Sequence[Mark], roles: dict[Series, str], wide: float, left: float, top: float) -> tuple[str, float]:
    """Samples and names in rows, and the height they take."""
    out, x, y = "", left, top + 4
    most = min(_LONGEST, wide - _SAMPLE)
    for (name, role), own in named(marks, roles).items():
        needed = _SAMPLE + width(clip(name, most))
        if x > left and x + needed > left + wide:
            x, y = left, y + _ROW
        out += "".join(_sample(mark, role, x, y + 7) for mark in own)
        out += text(x + _SAMPLE, y + 11, name, most=most)
        x += needed + _BETWEEN
    shaded = [mark for mark in marks if isinstance(mark, Heat) and np.size(mark.values)]
    if shaded:
        y += _ROW if out else 0
        out += _ramp(shaded[0], left, y)
    return out, (y + _ROW - top if out else 0.0)


def describe(x: Axis, y: Axis, marks: Sequence[Mark], note: str) -> str:
    """The chart for readers who hear it: what stands on the axes, then each mark with its size and extremes."""
    named = [(side, axis) for side, axis in (("Across", x), ("Up", y)) if axis.label]
    axes = [f"{side} axis: {_short(axis.label)}{', logarithmic' if axis.log else ''}." for side, axis in named]
    return clip(" ".join([*axes, *(_words(mark, x, y) for mark in marks), note]), MOST_READ_OUT)


def _sample(mark: Mark, role: str, x: float, y: float) -> str:
    if isinstance(mark, Area):
        return f'<path d="{rectangles([(x, y - 5, 16, 10)])}" {paint(fill=role, opacity=AREA)}/>'
    if isinstance(mark, Bars):
        return f'<path d="{rectangles([(x + 2, y - 6, 12, 12)])}" {paint(fill=role, opacity=BAR)}/>'
    if isinstance(mark, Polyline):
        return f'<path d="M{p(x)} {p(y)}h16" {paint(stroke=role, width=2, dashed=mark.dashed)}/>'
    return f'<path d="{shape(mark.shape, x + 8, y)}" {paint(fill=role)}/>' if isinstance(mark, Points) else ""


def _ramp(mark: Heat, left: float, y: float) -> str:
    """The shades of a table, from its least number to its greatest."""
    low, high = float(np.min(mark.values)), float(np.max(mark.values))
    start = f"{mark.name}: {number(low)}" if mark.name else number(low)
    x = left + width(clip(start, _LONGEST)) + 8
    boxes = ""
    for i, one in enumerate(shade(np.linspace(low, high, RAMP), low, high).tolist()):
        box = f'x="{p(x + STEP * i)}" y="{p(y + 2)}" width="{STEP}" height="10"'
        boxes += f'<rect {box} fill-opacity="{one:.2f}"/>'
    shades = f'<g {paint(fill="heat")} shape-rendering="crispEdges">{boxes}</g>'
    end = f"{number(high)}{'' if mark.error is None else f', each ± {number(mark.error)}'}"
    found = text(left, y + 11, start, most=_LONGEST) + shades + text(x + STEP * RAMP + 8, y + 11, end)
    if mark.unsure.any() and np.size(mark.values) <= MOST_TITLED:
        x += STEP * RAMP + 8 + width(end) + _BETWEEN
        found += f'<path d="{hatch(x, y + 2, 16, 10)}" {paint(stroke="6", width=1)}/>'
        found += text(x + _SAMPLE, y + 11, "may be none")
    return found


def _words(mark: Mark, x: Axis, y: Axis) -> str:
    name = _short(mark.name)
    match mark:
        case Rule():
            at = f"x = {number(mark.x)}" if mark.x is not None else f"y = {number(mark.y or 0.0)}"
            return f"A rule at {at}{': ' + name if name else ''}."
        case Ticks():
            return f"{name or 'Strokes'}: {np.size(mark.x):,} along the axis."
        case Heat():
            return _heat_words(mark, x, y, name or "A table")
        case Bars():
            return _bars_words(mark, x.categories or y.categories or (), name or "Bars")
        case _ if np.size(mark.x) == 0:
            return f"{name or 'One series'}: no points."
        case Area():
            low, high = float(np.min(mark.low)), float(np.max(mark.high))
            return f"{name or 'A band'}: a band between {number(low)} and {number(high)}."
    values = np.asarray(mark.y)
    kind = "points" if isinstance(mark, Points) else "steps" if mark.steps else "line"
    said = f"{name or 'One series'}: {kind} with {values.size:,} points"
    if isinstance(mark, Polyline):
        said += f", from {number(values[0])} to {number(values[-1])}"
    return said + f", least {number(float(values.min()))}, greatest {number(float(values.max()))}."


def _bars_words(mark: Bars, names: Sequence[str], title: str) -> str:
    values = np.asarray(mark.values)
    each = [f"{_short(one)} {number(v)}" for one, v in zip(names, values.tolist(), strict=True)]
    if values.size <= LISTED:
        return f"{title}: {', '.join(each)}."
    least, most = (f"{number(values[i])} ({_short(names[i])})" for i in (int(values.argmin()), int(values.argmax())))
    return f"{title}: {values.size:,} bars, least {least}, greatest {most}."


def _heat_words(mark: Heat, x: Axis, y: Axis, title: str) -> str:
    values = np.asarray(mark.values)
    if not values.size or x.categories is None or y.categories is None:
        return f"{title}: empty."
    said = []
    for word, place in (("least", values.argmin()), ("greatest", values.argmax())):
        row, column = divmod(int(place), values.shape[1])
        cell = f"{_short(y.categories[row])}, {_short(x.categories[column])}"
        said.append(f"{word} {number(float(values.flat[place]))} ({cell})")
    small = " Cells too small to be seen are drawn as averages." if values.size > MOST_TITLED else ""
    if mark.error is not None:
        small = f" Each within {number(mark.error)}; {int(mark.unsure.sum()):,} may be none.{small}"
    return f"{title} of {values.shape[0]:,} by {values.shape[1]:,} cells: {', '.join(said)}.{small}"


def _short(name: str) -> str:
    return clip(name, _READ)
