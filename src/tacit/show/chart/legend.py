"""Which colour is whose: the palette, the legend, and names at the ends of lines. For the chart package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.show.chart.marks import Band, Bars, Heat, Line, Mark, Points, Rule, Steps, Ticks
from tacit.show.chart.paint import SERIES, p, paint, rectangles, text
from tacit.show.chart.scale import Scale
from tacit.show.chart.shapes import shade, shape
from tacit.show.chart.text import clip, number, width

ROW = 20  # pixels
SAMPLE = 22  # pixels of a colour's sample, and the space after it
LONGEST = 240
NEAREST = 15  # pixels between the names of two lines

Series = str | int


@dataclass(frozen=True)
class Entry:
    """One series: its name, and the marks that bear it."""

    name: str
    role: str
    marks: tuple[Mark, ...]


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
        if isinstance(own, int):
            found[own] = str(own % SERIES)
        else:
            found[own] = str(given % SERIES)
            given += 1
    return found


def entries(marks: Sequence[Mark], roles: dict[Series, str]) -> list[Entry]:
    """One for each name in the picture. Rules, shades and lanes bear theirs where they are."""
    found: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        if mark.name and not isinstance(mark, Rule | Heat | Ticks):
            found.setdefault((mark.name, roles[series(mark)]), []).append(mark)
    return [Entry(name, role, tuple(own)) for (name, role), own in found.items()]


def direct(marks: Sequence[Mark], x: Scale, y: Scale, wide: float, high: float) -> bool:
    """Whether names can stand at the ends of their lines: they all end at the right, and well apart."""
    named = [mark for mark in marks if mark.name and not isinstance(mark, Band | Rule | Ticks)]
    lines = [mark for mark in named if isinstance(mark, Line | Steps) and np.size(mark.x)]
    if not lines or len(lines) < len(named) or len(lines) > 6 or len({mark.name for mark in lines}) < len(lines):
        return False
    if any(mark.name not in {one.name for one in lines} for mark in marks if isinstance(mark, Band) and mark.name):
        return False
    if max(width(mark.name) for mark in lines) > 0.28 * wide:
        return False
    lasts = sorted(y.place(float(np.asarray(mark.y)[-1])) for mark in lines)
    far = all(x.place(float(np.asarray(mark.x)[-1])) > 0.97 for mark in lines)
    apart = min(np.diff(lasts), default=1.0) * 0.6 * high >= NEAREST
    return bool(far and apart and lasts[0] >= 0 and lasts[-1] <= 1)


def legend(listed: list[Entry], marks: Sequence[Mark], wide: float, left: float, top: float) -> tuple[str, float]:
    """Samples and names in rows, and the height they take."""
    out, x, y = "", left, top + 4
    for entry in listed:
        name = clip(entry.name, min(LONGEST, wide - SAMPLE))
        needed = SAMPLE + width(name)
        if x > left and x + needed > left + wide:
            x, y = left, y + ROW
        out += _sample(entry, x, y + 7) + text(x + SAMPLE, y + 11, entry.name, most=min(LONGEST, wide - SAMPLE))
        x += needed + 16
    found = [mark for mark in marks if isinstance(mark, Heat) and np.size(mark.values)]
    if found:
        if out:
            x, y = left, y + ROW
        out += _ramp(found[0], left, y)
    return out, (y + ROW - top if out else 0.0)


def _sample(entry: Entry, x: float, y: float) -> str:
    out = ""
    for mark in entry.marks:
        if isinstance(mark, Band):
            out += f'<path d="{rectangles([(x, y - 5, 16, 10)])}" {paint(fill=entry.role, opacity=0.18)}/>'
        elif isinstance(mark, Bars):
            out += f'<path d="{rectangles([(x + 2, y - 6, 12, 12)])}" {paint(fill=entry.role, opacity=0.88)}/>'
        elif isinstance(mark, Line | Steps):
            out += f'<path d="M{p(x)} {p(y)}h16" {paint(stroke=entry.role, width=2, dashed=mark.dashed)}/>'
        elif isinstance(mark, Points):
            out += f'<path d="{shape(mark.shape, x + 8, y)}" {paint(fill=entry.role)}/>'
    return out


def _ramp(mark: Heat, left: float, y: float) -> str:
    values = np.asarray(mark.values, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    start = f"{mark.name}: {number(low)}" if mark.name else number(low)
    x = left + width(clip(start, LONGEST)) + 8
    steps = shade(np.linspace(low, high, 12), low, high).tolist()
    boxes = "".join(
        f'<rect x="{p(x + 8 * i)}" y="{p(y + 2)}" width="8" height="10" fill-opacity="{s:.2f}"/>'
        for i, s in enumerate(steps)
    )
    return (
        text(left, y + 11, start, most=LONGEST)
        + f'<g {paint(fill="heat")} shape-rendering="crispEdges">{boxes}</g>'
        + text(x + 8 * 12 + 8, y + 11, number(high))
    )
