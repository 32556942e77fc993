"""An answer as a reader sees it: the figure, its interval, whether it was free and why, and a picture. Pure.

Made of what was released, and nothing else. The templates put it on the page.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import ceil, floor
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import ANY, Answer, Limits, QuantileAnswer, bar_line, sure_words
from tacit.model.ask import Ask, Count, Crosstab, Quantile, Select, Sum
from tacit.model.attribute import Attribute
from tacit.model.block import column_of_blocks
from tacit.model.budget import Loss, percent_of
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.status import DryRun
from tacit.model.table import Answers, CdfAnswer, Listing, Table
from tacit.questions import Questions
from tacit.serve.page.form import Built
from tacit.serve.page.link import drilled, fields_of, over_time
from tacit.serve.schema import Json
from tacit.show.chart import Axis, Chart, Heat, Points, Rule
from tacit.show.chart.axes import round_number
from tacit.show.chart.paint import GREY

PANEL_WIDTH = 780  # pixels of a picture
NARROW = 560  # of one that has a single line
MOST_PAGE_ROWS = 500  # of a table, in numbers
MOST_DRAWN = 200  # categories along one side
MOST_POINTS = 2_000  # blocks along a line
MOST_BARRED = 40  # rows of a table that have their bars beside them; more are drawn in one picture
Floats = NDArray[np.float64]
WHY = {
    "measured": "Measured, with fresh noise.",
    "repeat": "The same question was answered before, and gets the same answer for ever.",
    "hypothesis": "Worked out from what was published before.",
    "public": "It follows from what is declared and from the number of rows, which is public.",
}


@dataclass(frozen=True)
class BarRow:
    """A bar and its whisker beside a number, from 0 to 100 of the room there is; `grey` where it says nothing."""

    start: float
    wide: float
    low: float
    high: float
    grey: bool
    whisker: bool = True  # it has an error bar, which may be cut down to a point


def panel(ask: Ask, answer: Answers, session: Questions, built: Built | None = None) -> dict[str, Any]:
    """The whole answer to a question. `figure` and `error` are there where it is one value.

    built: what was clicked, or would have to be: each row of a table then leads to the rows behind it.
    """
    free = not answer.cost.atoms
    attribute = session.domain[ask.name] if isinstance(ask, Quantile) else None
    answer, places = _possible(ask, answer, session.domain)
    numbers = _numbers(answer)
    if numbers is not None and built is not None and built.what == "table":
        cells = islice(product(*places), MOST_PAGE_ROWS)
        links = [list(fields_of(drilled(built, built.by, cell, session.domain), session.domain)) for cell in cells]
        numbers["links"] = [urlencode(one) for one in links]
    blocks = column_of_blocks(session.domain)
    later = None if built is None or blocks is None else over_time(built, blocks)
    return {
        "question": answer.question,
        "of_blocks": blocks is not None,
        "over_time": "" if later is None else urlencode(list(fields_of(later, session.domain))),
        "along": isinstance(answer, Table) and answer.along is not None,
        "figure": _figure(answer),
        "error": number(answer.error) if isinstance(answer, Answer) and answer.error is not None else "",
        "says": answer.says,
        "said": _said(answer),
        "bars": [bar_line(bar) for bar in answer.bars[1:]],
        "chart": None if numbers and numbers["bars"] else drawing(answer, attribute),
        "pictured": drawing(answer, attribute) is not None,
        "free": free,
        "paid": "" if free else f"{percent_of(answer.cost, session.total)} of the budget",
        "why": WHY[answer.source] if free else f"{WHY[answer.source]} From now on it is free, for everybody.",
        "receipt": answer.receipt,
        "note": answer.note,
        "numbers": numbers,
    }


def _possible(ask: Ask, answer: Answers, domain: Domain) -> tuple[Answers, list[Sequence[int]]]:
    """A table without the values that its own condition rules out, and the places of those that stay."""
    if isinstance(ask, Select) and ask.crosstab is not None:
        ask = ask.crosstab
    if not isinstance(ask, Crosstab) or not isinstance(answer, Table):
        return answer, []
    places: list[Sequence[int]] = []
    for name in answer.names:
        every = range(domain[name].size)
        kept = [i for i in every if not (ask.where & Query.among(domain, name, [i])).is_constant]
        places.append(every if ask.where.is_everyone or len(every) > MOST_PAGE_ROWS else kept or every)
    labels = tuple(tuple(mine[i] for i in kept) for mine, kept in zip(answer.labels, places, strict=True))
    at = np.ix_(*places)
    own = None if answer.own is None else answer.own[at]
    return replace(answer, labels=labels, values=answer.values[at], own=own), places


def price_words(found: DryRun, left: Loss, total: Loss, *, may_spend: bool) -> str:
    """The price in a sentence or two."""
    most = found.cost_at_most
    if found.known:
        return f"Known already and free: {found.why}."
    if not may_spend:
        return "Not known yet: your key reads what is known, and somebody else has to ask this first."
    if not most.atoms:
        return f"Free: {found.why}."
    words = f"At most {percent_of(most, total)} of the budget: {found.why}."
    return words if most <= left else f"{words} That is more than is left."


def sharper(ask: Ask, answer: Answers) -> list[float]:
    """Half widths that the page offers to buy: round ones, about a half and a fifth of the bar that is shown."""
    if not isinstance(ask, Count | Sum) or not isinstance(answer, Answer) or not answer.error:
        return []
    return [width for part in (2, 5) if (width := round_number(answer.error / part, up=False)) >= 1]


def ways(
    given: str | Json, dataset: str, base: str, within: float | None = None, *, published: bool = True
) -> dict[str, str]:
    """The same answer elsewhere: the name of each way, and its text to copy.

    Python and the command line use the published file, which the page offers: what has just been answered is in it, so
    neither data nor budget are needed. A series has one for each block, and is asked here.
    """
    file = f"{dataset}.tacit.jsonl"
    name = "" if isinstance(given, str) else str(given["cdf"])
    more = "" if within is None else f", within={within:g}"
    call = f"ask({given!r}{more})" if isinstance(given, str) else f"cdf({name!r})"
    option = "" if within is None else f"--within {within:g} "
    words = ["ask", option + _argument(given)] if isinstance(given, str) else ["cdf", _argument(name)]
    asked = {"question": given} if within is None else {"question": given, "within": within}
    body = shlex.quote(json.dumps(asked, ensure_ascii=False))
    opened = f'tacit.read("{file}")' if published else f'tacit.connect("{base}", data="{dataset}")'
    option = f"--published {file}" if published else f"--server {base} --data {dataset}"
    return ({"SQL": given} if isinstance(given, str) else {}) | {
        "Python": f"import tacit\n\nknown = {opened}\nprint(known.{call})\n",
        "Command line": f"tacit {words[0]} {option} {words[1]}\n",
        "curl": 'curl -H "Authorization: Bearer $TACIT_KEY" -H "Content-Type: application/json" \\\n'
        f"  -d {body} \\\n  {base}/v1/{dataset}/ask\n",
    }


def number(value: float) -> str:
    """A value with the digits that it has: counts are whole, means and fractions are not.

    >>> number(12345.0), number(44.753), number(0.01234567)
    ('12,345', '44.75', '0.01235')
    """
    if float(value).is_integer() or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _figure(answer: Answers) -> str:
    if isinstance(answer, QuantileAnswer):
        return answer.value
    return number(answer.value) if isinstance(answer, Answer) else ""


def _said(answer: Answers) -> str:
    """How sure the answer is, in a sentence."""
    sure = sure_words(answer)
    if isinstance(answer, QuantileAnswer):
        return f"It lies from {answer.low} to {answer.high} ({sure})."
    if isinstance(answer, Listing) and not answer.listed:
        return "There are no rows."
    if isinstance(answer, Listing) and not answer.titles:
        return "These are the declared values, whether a row has them or not."
    if isinstance(answer, Listing):
        return _said_of_rows(answer)
    if not isinstance(answer, Answer):
        if answer.error is None:
            return "Nothing is promised about these."
        each = "All of the curve" if isinstance(answer, CdfAnswer) else "Each value by itself"
        at_most = "at most " if isinstance(answer, Table) and answer.own is not None else ""
        return f"{each} is within {at_most}± {number(answer.error)} of the truth ({sure})."
    if answer.interval is None:
        return "Nothing is promised about it."
    low, high = answer.interval
    if answer.beyond:
        middles = (
            f"With each value at the middle of its bin, it lies between {number(low)} and {number(high)} ({sure})."
        )
        return f"{middles} The values themselves may move it by up to {number(answer.beyond)} more."
    return f"The truth lies between {number(low)} and {number(high)} ({sure})." if answer.error else "It is exact."


def _said_of_rows(listing: Listing) -> str:
    """How sure the rows of a statement are. Their columns have units of their own, and bars of their own."""
    sure, (without, every) = sure_words(listing), listing.unbarred()
    if without and without == every:
        return "Nothing is promised about these."
    if without:
        return f"Each value that has a bar is by itself within it of the truth ({sure})."
    widest = [f"± {number(error)}" + (f" for {title}" if title else "") for title, error in listing.widest()]
    within = f"at most {', '.join(widest)}" if widest else "its bar"
    return f"Each value by itself is within {within} of the truth ({sure})."


def drawing(answer: Answers, attribute: Attribute | None) -> Chart | None:
    """The picture of an answer, where it has one."""
    chart: Chart | None = None
    if isinstance(answer, Answer) and answer.error:
        chart = interval(answer)
    elif isinstance(answer, QuantileAnswer) and attribute is not None:
        chart = quantile(answer, attribute)
    elif isinstance(answer, Table) and len(answer.names) <= 2 and _fits(answer):
        chart = replace(answer.chart(), note="", width=PANEL_WIDTH)
    elif isinstance(answer, CdfAnswer):
        curve = answer.chart()  # the band in the colour of its curve
        one = GREY if answer.says == "nothing" else 0
        chart = replace(curve, marks=[m if isinstance(m, Rule | Heat) else replace(m, colour=one) for m in curve.marks])
        chart = replace(chart, width=PANEL_WIDTH)
    elif isinstance(answer, Listing) and answer.names and len(answer.titles) == 1:
        known = any(row.values[0] == row.values[0] for row in answer.listed)  # NULL is NaN
        chart = (
            replace(answer.chart(), note="", width=PANEL_WIDTH) if known and len(answer.listed) <= MOST_DRAWN else None
        )
    # The page has the title already.
    return None if chart is None else replace(chart, title="")


def _fits(table: Table) -> bool:
    """Whether there is room for all values of each attribute; along blocks they are points of a line."""
    sizes = zip(table.names, table.values.shape, strict=True)
    return all(size <= (MOST_POINTS if name == table.along else MOST_DRAWN) for name, size in sizes)


def interval(answer: Answer) -> Chart:
    """A value and its error bar on a line, cut to what the value can be."""
    value, error = answer.value, answer.error or 0
    low, high = answer.interval or (value, value)
    colour = GREY if answer.says == "nothing" else None
    point = Points([value], [0], low=[min(low, value)], high=[max(high, value)], across=True, colour=colour)
    # From 0 where the bar is wide enough to be seen there; else the picture is about the bar alone.
    start = 0.0 if value > 0 and low >= 0 and error >= 0.02 * value else None
    return Chart("", x=Axis(low=start), y=Axis(categories=[""]), marks=[point], width=NARROW, height=96)


def quantile(answer: QuantileAnswer, attribute: Attribute) -> Chart | None:
    """The bin of a quantile among its neighbours, and the bins that it could be."""
    if attribute.bins > MOST_DRAWN:
        return None
    labels = [attribute.label(i) for i in range(attribute.bins)]
    if not {answer.value, answer.low, answer.high} <= set(labels):
        return None
    low, at, high = (labels.index(label) for label in (answer.low, answer.value, answer.high))
    point = Points([at], [0], low=[low], high=[high], across=True)
    return Chart("", x=Axis(categories=labels), y=Axis(categories=[""]), marks=[point], width=NARROW, height=120)


def _numbers(answer: Answers) -> dict[str, Any] | None:
    """A table of text: its first rows, how `many` there are, which columns hold numbers, and bars beside a few."""
    rows: Iterator[Sequence[str]]
    bars: list[BarRow] | None = None
    if isinstance(answer, Table):
        rows = ([*labels, number(value)] for labels, value in answer.rows())
        head, many, labels = [*answer.names, "rows"], answer.values.size, len(answer.names)
        if labels == 1 and many <= MOST_BARRED and answer.along is None:  # what goes on in time is a line
            grey = [answer.says == "nothing"] * many
            errors = np.zeros(many) if answer.error is None else answer.errors
            bars = _barred(answer.values, errors, answer.limits, grey)
    elif isinstance(answer, CdfAnswer):
        lines = zip(answer.labels, answer.values, *answer.band, strict=True)
        rows = ([label, f"{v:,.0f}", f"{floor(low):,}", f"{ceil(high):,}"] for label, v, low, high in lines)
        head, many, labels = [answer.name, "rows up to its end", "at least", "at most"], len(answer.labels), 1
    elif isinstance(answer, Listing):
        rows = iter(answer.cells(MOST_PAGE_ROWS))
        head, many, labels = [*answer.names, *answer.titles], len(answer.listed), len(answer.names)
        if labels and len(answer.titles) == 1 and many <= MOST_BARRED:
            errors = np.array([row.errors[0] or 0.0 for row in answer.listed])
            grey = [answer.words(row)[0] == "nothing" for row in answer.listed]
            plain = np.nan_to_num([row.values[0] for row in answer.listed])  # NULL, which is NaN, has no bar
            bars = _barred(plain, errors, answer.limits[0] if errors.any() else ANY, grey)
            values, halves = (
                aligned([getattr(row, part)[0] for row in answer.listed]) for part in ("values", "errors")
            )
            rows = ([*row.labels, *cells] for row, *cells in zip(answer.listed, values, halves, strict=True))
            head.append("±")
    else:
        return None
    shown = list(islice(rows, MOST_PAGE_ROWS))
    caption = answer.question + (f" (the first {len(shown):,} of {many:,} rows)" if many > len(shown) else "")
    right = range(labels, len(head))
    return {"caption": caption, "head": head, "rows": shown, "many": many, "right": right, "bars": bars, "links": None}


def aligned(values: Sequence[float | None]) -> list[str]:
    """Values of one column, with as many decimals each; empty where there is none.

    >>> aligned([2.617, 12.5, None]), aligned([12345.0, 7.0]), aligned([0.01234, 0.5])
    (['2.62', '12.50', ''], ['12,345', '7'], ['0.0123', '0.5000'])
    """
    known = [abs(value) for value in values if value is not None and value == value]
    most = max(known, default=0.0)
    whole = all(float(value).is_integer() for value in known) or most >= 1000
    decimals = 0 if whole else 1 if most >= 100 else 2 if most >= 1 else 4
    empty = (value is None or value != value for value in values)  # NULL is NaN
    return ["" if no else f"{value:,.{decimals}f}".replace("-", "−") for value, no in zip(values, empty, strict=True)]


def _barred(values: Floats, errors: Floats, limits: Limits, grey: Sequence[bool]) -> list[BarRow]:
    """Bars and whiskers, both cut to what the values can be: noise may take a number below that."""
    low, drawn, high = (np.clip(values + side * errors, *limits) for side in (-1, 0, 1))
    least, most = min(0.0, float(low.min(initial=0))), float(high.max(initial=0))
    room = 100 / ((most - least) or 1.0)
    base = abs(least) * room
    places = (((part - least) * room).tolist() for part in (drawn, low, high))
    rows = zip(*places, grey, (errors > 0).tolist(), strict=True)
    return [BarRow(min(base, v), abs(v - base), a, b, one, bar) for v, a, b, one, bar in rows]


def _argument(text: str) -> str:
    """One argument; what begins with a dash is not an option."""
    return ("-- " if text.startswith("-") else "") + shlex.quote(text)
