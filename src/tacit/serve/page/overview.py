"""The columns of a data set as the page lists them: what each takes, and a small picture of what is known of it.

Only what is known already is drawn: it was bought before, so looking at it is free.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from tacit.model.ask import Crosstab
from tacit.model.describe import values_of
from tacit.model.table import Table
from tacit.serve.page.form import Built
from tacit.serve.page.link import fields_of, of_column
from tacit.serve.refusal import Refusal
from tacit.serve.served import ServedData

WIDE, TALL = 120, 26  # units of a small picture
MOST_BARS = 40
MOST_CELLS = 2_000  # values of a column that is looked up for a small picture


@dataclass(frozen=True)
class ListedColumn:
    """One line of the list."""

    name: str
    kind: str
    takes: str
    about: str
    link: str
    path: str  # of the small picture; empty where nothing is known
    grey: bool  # it says nothing
    chosen: bool


async def known_tables(dataset: ServedData) -> dict[str, Table]:
    """The table of each column that has one already. A table that is known stays as it is, so it is kept."""
    seen, tables = dataset.shown.get("columns", (-1, {}))
    if seen != dataset.session.entries:
        with suppress(Refusal):  # a writer that is too busy leaves the pictures as they were
            tables = await asyncio.wrap_future(dataset.writer.do(lambda: _look(dataset)))
    found: dict[str, Table] = tables
    return found


def _look(dataset: ServedData) -> dict[str, Table]:
    session = dataset.session
    entries = session.entries
    tables = dict[str, Table](dataset.shown.get("columns", (-1, {}))[1])
    for name, attribute in session.domain.items():
        if name not in tables and 1 < attribute.size <= MOST_CELLS:
            found = dataset.known(Crosstab(session.domain, (name,)))
            if isinstance(found, Table):
                tables[name] = found
    dataset.shown["columns"] = entries, tables
    return tables


def listed(dataset: ServedData, built: Built, tables: dict[str, Table]) -> list[ListedColumn]:
    """Every column in its declared order; their links keep the conditions that are chosen now."""
    domain = dataset.session.domain
    return [
        ListedColumn(
            name,
            attribute.kind,
            values_of(attribute),
            dataset.columns.get(name, ""),
            urlencode(list(fields_of(of_column(built, name), domain))),
            small(tables[name]) if name in tables else "",
            name in tables and tables[name].says == "nothing",
            name in built.by or name == built.of,
        )
        for name, attribute in domain.items()
    ]


def small(table: Table) -> str:
    """The bars of a table as one path, neighbours together where they are many."""
    values = np.maximum(table.values.ravel(), 0)
    if values.size > MOST_BARS:
        values = np.array([part.sum() for part in np.array_split(values, MOST_BARS)])
    most = float(values.max()) or 1.0
    band = WIDE / values.size
    gap = min(1.5, band / 4)
    tops = (TALL - np.maximum(values / most * TALL, 0.6)).tolist()
    return "".join(f"M{i * band:.1f} {TALL}V{top:.1f}h{band - gap:.1f}V{TALL}z" for i, top in enumerate(tops))
