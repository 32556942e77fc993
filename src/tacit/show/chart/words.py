"""A chart in words, for readers who hear it. For the chart package."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.show.chart.marks import Band, Bars, Heat, Line, Mark, Points, Rule, Steps, Ticks
from tacit.show.chart.scale import Axis
from tacit.show.chart.shapes import MOST_POINTS, MOST_TITLED
from tacit.show.chart.text import clip, number

LISTED = 12  # bars that are read out one by one
LONGEST = 120  # letters or so of one name


def describe(x: Axis, y: Axis, marks: Sequence[Mark], note: str) -> str:
    """What stands on the axes, then each mark with its size and extremes."""
    axes = [
        f"{side} axis: {_short(axis.label)}{_kind(axis)}." for side, axis in (("Across", x), ("Up", y)) if axis.label
    ]
    said = [_mark(mark, x, y) for mark in marks]
    return clip(" ".join([*axes, *said, note]), 20_000)


def _kind(axis: Axis) -> str:
    return ", logarithmic" if axis.log else ""


def _short(name: str) -> str:
    return clip(name, 12 * LONGEST)


def _mark(mark: Mark, x: Axis, y: Axis) -> str:
    name = _short(mark.name)
    if isinstance(mark, Rule):
        at = f"x = {number(mark.x)}" if mark.x is not None else f"y = {number(mark.y or 0.0)}"
        return f"A rule at {at}{': ' + name if name else ''}."
    if isinstance(mark, Ticks):
        return f"{name or 'Strokes'}: {np.size(mark.x):,} along the axis."
    if isinstance(mark, Heat):
        return _heat(mark, x, y, name)
    if isinstance(mark, Bars):
        return _bars(mark, x.categories or y.categories or (), name)
    if np.size(mark.x) == 0:
        return f"{name or 'One series'}: no points."
    if isinstance(mark, Band):
        low, high = float(np.min(np.asarray(mark.low))), float(np.max(np.asarray(mark.high)))
        return f"{name or 'A band'}: a band between {number(low)} and {number(high)}."
    kind = {Line: "line", Steps: "steps", Points: "points"}[type(mark)]
    values = np.asarray(mark.y, dtype=np.float64)
    ends = f", from {number(values[0])} to {number(values[-1])}" if not isinstance(mark, Points) else ""
    close = " Those too close together are drawn as one." if kind == "points" and values.size > MOST_POINTS else ""
    return (
        f"{name or 'One series'}: {kind} with {values.size:,} points{ends}, "
        f"least {number(float(values.min()))}, greatest {number(float(values.max()))}.{close}"
    )


def _bars(mark: Bars, names: Sequence[str], title: str) -> str:
    values = np.asarray(mark.values, dtype=np.float64)
    if values.size <= LISTED:
        each = [f"{_short(one)} {number(v)}" for one, v in zip(names, values.tolist(), strict=True)]
        return f"{title or 'Bars'}: {', '.join(each)}."
    least, most = int(values.argmin()), int(values.argmax())
    return (
        f"{title or 'Bars'}: {values.size:,} bars, least {number(float(values[least]))} ({_short(names[least])}), "
        f"greatest {number(float(values[most]))} ({_short(names[most])})."
    )


def _heat(mark: Heat, x: Axis, y: Axis, title: str) -> str:
    values = np.asarray(mark.values, dtype=np.float64)
    if not values.size or x.categories is None or y.categories is None:
        return f"{title or 'A table'}: empty."
    small = " Cells too small to be seen are drawn as averages." if values.size > MOST_TITLED else ""
    said = []
    for word, place in (("least", int(values.argmin())), ("greatest", int(values.argmax()))):
        row, column = divmod(place, values.shape[1])
        said.append(
            f"{word} {number(float(values.flat[place]))} ({_short(y.categories[row])}, {_short(x.categories[column])})"
        )
    return f"{title or 'A table'} of {values.shape[0]:,} by {values.shape[1]:,} cells: {', '.join(said)}.{small}"
