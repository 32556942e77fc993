"""What answers look like: the pictures that their method `chart` draws, and one Jinja environment for every page.

For the answers, the report and the server. Everything that a template prints is escaped, but for our own pictures
(`drawn`), which escape their words themselves.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.show.chart import Area, Axis, Bars, Chart, Heat, Polyline, Rule
from tacit.show.chart.paint import GREY, Picture, clean

MOST_DRAWN_LINES = 6  # of one picture

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from tacit.model.answer import Limits
    from tacit.model.table import CdfAnswer, Listing, Table

    Floats = NDArray[np.float64]


@cache
def environment(package: str, *, styled: bool = True) -> Environment:
    """The templates in a package's folder `templates`, and after them those of this package (`pieces.html`).

    styled: pictures bring their own style sheet; pages that load it (`chart.paint.CSS`) need it only once.

    A name that a template misses is an error, never an empty place. Text loses what could disturb its neighbours; where
    line breaks matter, `{{ lines | e }}` only escapes it.
    """
    # Loaded here, since a program that shows no page should not wait for it.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("tacit.show")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_tidy,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"drawn": partial(drawn, styled=styled), "number": number, "percent": percent}
    return made


def drawn(picture: Picture, name: str = "", *, styled: bool = True) -> Markup:
    """A picture as SVG, called `name` if it has no title. Nothing else reaches a page without being escaped here."""
    from markupsafe import Markup

    if not isinstance(picture, Picture):
        raise TypeError("Only a picture is drawn.")
    return Markup(picture.svg(name=name, styled=styled))


def notebook(**parts: object) -> str:
    """An answer as a notebook shows it, from the parts that it has. `notebook.html` names them."""
    return environment("tacit.show").get_template("notebook.html").render(parts)


def number(value: float) -> str:
    """A figure as people read it: whole, or with as many digits as it takes to see it.

    >>> number(12345.0), number(0.5), number(0.000012345)
    ('12,345', '0.5', '1.23e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def percent(share: float) -> str:
    """
    >>> percent(0.5), percent(0.00012)
    ('50 %', '0.012 %')
    """
    return f"{100 * share:.3g} %"


def _tidy(value: Any) -> Any:
    """What a template prints, before it is escaped. Markup is finished already."""
    return value if hasattr(value, "__html__") else clean(str(value))


def table_figure(table: Table) -> Chart:
    """Bars for one attribute, a heat map for two; along blocks, a line with its band for each value of the other."""
    if len(table.names) > 2:
        raise InvalidQuery(f"a table of {len(table.names)} attributes has no picture; one or two have.")
    lines = table.values.size // max(1, len(table.labels[table.names.index(table.along)])) if table.along else 0
    if 1 <= lines <= MOST_DRAWN_LINES:
        return _lines(table)
    axes = [Axis(name, categories=labels) for name, labels in zip(table.names, table.labels, strict=True)]
    if len(axes) == 1:
        error = None if table.error is None else table.errors
        bars = whiskered(table.values, error, table.limits, grey=table.says == "nothing")
        return Chart(table.question, x=axes[0], y=Axis("rows"), marks=[bars], note=table.caption)
    heat = Heat(table.values, name="rows", error=table.error)
    return Chart(table.question, x=axes[1], y=axes[0], marks=[heat], note=table.caption)


def _lines(table: Table) -> Chart:
    """How counts go on from block to block. A band holds for each of its points by itself."""
    assert table.along is not None
    axis = table.names.index(table.along)
    values = np.moveaxis(table.values, axis, 0).reshape(len(table.labels[axis]), -1)
    others = table.labels[1 - axis] if len(table.names) == 2 else ("",)
    at, marks = np.arange(len(values)), list[Area | Polyline]()
    for place, name in enumerate(others):
        colour, y = GREY if table.says == "nothing" else place, values[:, place]
        if table.error:
            error = np.moveaxis(table.errors, axis, 0).reshape(values.shape)[:, place]
            low, high = (np.clip(y + side * error, *table.limits) for side in (-1, 1))
            marks.append(Area(at, np.minimum(low, y), np.maximum(high, y), name=name, colour=colour))
        marks.append(Polyline(at, y, name=name, colour=colour))
    x = Axis(table.along, categories=table.labels[axis])
    return Chart(table.question, x=x, y=Axis("rows", low=0), marks=marks, note=table.caption)


def listing_figure(listing: Listing) -> Chart:
    """Bars of one value, in the order of the rows; a row whose value is NULL has none."""
    listed = [row for row in listing.listed if len(listing.titles) == 1 and row.values[0] == row.values[0]]
    if not listing.names or not listed:
        raise InvalidQuery("a picture shows one value for each group.")
    x = Axis(", ".join(listing.names), categories=[" · ".join(row.labels) for row in listed])
    values = np.array([row.values[0] for row in listed])
    errors = [row.errors[0] for row in listed]
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
