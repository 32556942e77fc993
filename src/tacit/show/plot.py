"""An answer's columns, drawn by matplotlib or Altair, whichever is there. It knows only names and numbers."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from tacit.errors import ConfigError, InvalidQuery
from tacit.show.frames import Frame

MOST_LETTERS = 60  # of the labels below a plot of the usual width; more of them stand upright
INCHES_A_LABEL = 0.17
_NOT_VALUES = ("error", "below", "low", "high")


class PlotData(NamedTuple):
    """What is drawn: a label for each value, how far below and above it its bar reaches, and what the values are."""

    labels: list[str]
    values: list[float]
    below: list[float]
    above: list[float]
    name: str


def plot(frame: Frame, title: str, *, ax: Any = None) -> Any:
    """Values as bars with whiskers. `ax`: matplotlib's axes to draw into; new ones are as wide as the labels need."""
    if ax is None and find_spec("matplotlib") is None:
        if find_spec("altair") is None:
            raise ConfigError("plot() needs matplotlib or altair: pip install matplotlib. chart() draws without them.")
        return _altair(drawn(frame), title)
    data = drawn(frame)
    places = list(range(len(data.values)))
    crowded = sum(map(len, data.labels)) > MOST_LETTERS
    if ax is None:
        size = (max(6.4, INCHES_A_LABEL * len(places)) if crowded else 6.4, 4.8)
        ax = import_module("matplotlib.pyplot").subplots(figsize=size, layout="constrained")[1]
    ax.bar(places, data.values, yerr=[data.below, data.above], capsize=3)
    ax.set_xticks(places, data.labels, rotation=90 if crowded else 0)
    ax.set_title(title)
    ax.set_ylabel(data.name)
    return ax


def drawn(frame: Frame) -> PlotData:
    """The labels, values and bars among the columns of an answer."""
    columns = {column.name: column for column in frame.columns}
    plain = {name: column.stored()[0].tolist() for name, column in columns.items()}
    words = ["question"] if "question" in columns else [name for name, one in columns.items() if one.kind == "text"]
    numbers = [name for name, one in columns.items() if one.kind in ("real", "whole") and name not in _NOT_VALUES]
    banded = {"low", "high"} <= {name for name, one in columns.items() if one.kind == "real"}
    if not numbers or not (banded or {"error", f"{numbers[0]} error"} & set(plain)):
        raise InvalidQuery("this kind of answer has no numbers to draw.")
    value, rows = numbers[0], list(zip(*(plain[name] for name in words), strict=True))
    values = [float(one) for one in plain[value]]
    labels = [", ".join(map(str, row)) for row in rows]
    if banded:
        below = [v - low for v, low in zip(values, plain["low"], strict=True)]
        above = [high - v for v, high in zip(values, plain["high"], strict=True)]
    else:
        name = "error" if "error" in plain else f"{value} error"
        below = above = [0.0 if one is None or one != one else float(one) for one in plain[name]]
    return PlotData(labels, values, below, above, "" if value == "value" else value)


def _altair(data: PlotData, title: str) -> Any:
    altair = import_module("altair")
    rows = [
        {"label": label, "value": value, "low": value - below, "high": value + above}
        for label, value, below, above in zip(*data[:4], strict=True)
    ]
    base = altair.Chart(altair.Data(values=rows), title=title).encode(x=altair.X("label:N", sort=None))
    bars = base.mark_bar().encode(y=altair.Y("value:Q", title=data.name))
    return bars + base.mark_rule().encode(y="low:Q", y2="high:Q")
