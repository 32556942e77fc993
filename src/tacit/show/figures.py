"""Answers as pictures: what their method `chart` draws. For the answers; it reads what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.show.chart import Area, Axis, Bars, Chart, Heat, Polyline, Rule
from tacit.show.chart.paint import GREY

if TYPE_CHECKING:
    from tacit.model.answer import Limits
    from tacit.model.table import CdfAnswer, Listing, Table

    Floats = NDArray[np.float64]


def table_figure(table: Table) -> Chart:
    """Bars for one attribute, a heat map for two."""
    if len(table.names) > 2:
        raise InvalidQuery(f"a table of {len(table.names)} attributes has no picture; one or two have.")
    axes = [Axis(name, categories=labels) for name, labels in zip(table.names, table.labels, strict=True)]
    if len(axes) == 1:
        bars = whiskered(table.values, table.error, table.limits, grey=table.says == "nothing")
        return Chart(table.question, x=axes[0], y=Axis("rows"), marks=[bars], note=table.caption)
    heat = Heat(table.values, name="rows")
    return Chart(table.question, x=axes[1], y=axes[0], marks=[heat], note=table.caption)


def listing_figure(listing: Listing) -> Chart:
    """Bars of one value, in the order of the rows."""
    if len(listing.titles) != 1 or not listing.names or not listing.listed:
        raise InvalidQuery("a picture shows one value for each group.")
    x = Axis(", ".join(listing.names), categories=[" · ".join(row.labels) for row in listing.listed])
    values = np.array([row.values[0] for row in listing.listed])
    errors = [row.errors[0] for row in listing.listed]
    known = None if None in errors else np.array(errors, dtype=np.float64)
    bars = whiskered(values, known, listing.limits[0], grey=listing.says == "nothing")
    return Chart(listing.question, x=x, y=Axis(listing.titles[0]), marks=[bars], note=listing.caption)


def whiskered(values: Floats, error: Floats | float | None, limits: Limits, *, grey: bool) -> Bars:
    """Bars with whiskers that end where a value can be at all; grey where they say nothing."""
    colour = GREY if grey else None
    if error is None:
        return Bars(values, colour=colour)
    low, high = (np.clip(values + side * error, *limits) for side in (-1, 1))
    return Bars(values, low=np.minimum(low, values), high=np.maximum(high, values), colour=colour)


def curve_figure(cdf: CdfAnswer) -> Chart:
    """Cumulative shares with the band around them."""
    if cdf.dated:  # a date is a label, not a number
        x, y, axis = np.arange(len(cdf.labels)), cdf.shares, Axis(cdf.name, categories=cdf.labels)
    else:
        x, y, axis = np.append(cdf.start, cdf.ends), np.append(0.0, cdf.shares), Axis(cdf.name)
    error, sure = cdf.error / cdf.rows, f"{100 * cdf.confidence:.10g} %"
    colour = GREY if cdf.says == "nothing" else None
    return Chart(
        cdf.question,
        x=axis,
        y=Axis("share of rows below", percent=True, low=0, high=1),
        marks=[
            Area(x, np.clip(y - error, 0, 1), np.clip(y + error, 0, 1), name=f"{sure}, all at once", colour=colour),
            Polyline(x, y, name="rows below", colour=colour),
            Rule(y=0.5, name="half"),
        ],
    )
