"""Answers as pictures: what their method `chart` draws. For the answers; it reads what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InvalidQuery
from tacit.show.chart import Area, Axis, Bars, Chart, Heat, Line, Rule

if TYPE_CHECKING:
    from tacit.model.answer import Table
    from tacit.model.distribution_answer import CdfAnswer
    from tacit.model.listing import Listing


def table_figure(table: Table) -> Chart:
    """Bars for one attribute, a heat map for two."""
    if len(table.names) > 2:
        raise InvalidQuery(f"a table of {len(table.names)} attributes has no picture; one or two have.")
    axes = [Axis(name, categories=labels) for name, labels in zip(table.names, table.labels, strict=True)]
    if len(axes) == 1:
        bars = Bars(table.values, error=table.error)
        return Chart(table.question, x=axes[0], y=Axis("rows"), marks=[bars], note=table.caption)
    heat = Heat(table.values, name="rows")
    return Chart(table.question, x=axes[1], y=axes[0], marks=[heat], note=table.caption)


def listing_figure(listing: Listing) -> Chart:
    """Bars of one value, in the order of the rows."""
    if len(listing.titles) != 1 or not listing.names or not listing.listed:
        raise InvalidQuery("a picture shows one value for each group.")
    x = Axis(", ".join(listing.names), categories=[" · ".join(row.labels) for row in listing.listed])
    bars = Bars([row.values[0] for row in listing.listed], error=listing.error)
    return Chart(listing.question, x=x, y=Axis(listing.titles[0]), marks=[bars], note=listing.caption)


def curve_figure(cdf: CdfAnswer) -> Chart:
    """Cumulative shares with the band around them."""
    if cdf.dated:  # a date is a label, not a number
        x, y, axis = np.arange(len(cdf.labels)), cdf.shares, Axis(cdf.name, categories=cdf.labels)
    else:
        x, y, axis = np.append(cdf.start, cdf.ends), np.append(0.0, cdf.shares), Axis(cdf.name)
    error, sure = cdf.error / cdf.rows, f"{100 * cdf.confidence:.10g} %"
    return Chart(
        cdf.question,
        x=axis,
        y=Axis("share of rows below", percent=True, low=0, high=1),
        marks=[
            Area(x, np.clip(y - error, 0, 1), np.clip(y + error, 0, 1), name=f"{sure}, all at once"),
            Line(x, y, name="rows below"),
            Rule(y=0.5, name="half"),
        ],
    )
