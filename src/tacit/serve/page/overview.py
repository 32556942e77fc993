"""The columns of a data set as the page lists them: what each takes, and a small picture of what is known of it.

Only what is known already is drawn: it was bought before, so looking at it is free.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from tacit.errors import TacitError
from tacit.model import sql
from tacit.model.ask import Count, Crosstab
from tacit.model.attribute import Attribute
from tacit.model.block import column_of_blocks
from tacit.model.description import values_of
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.table import Table
from tacit.serve.page.form import Built, clicked
from tacit.serve.page.link import fields_of, of_column, without
from tacit.serve.question import Memory
from tacit.serve.refusal import Refusal
from tacit.serve.served_data import ServedData

_WIDE, _TALL = 120, 26  # units of a small picture
MOST_SMALL_BARS = 40
MOST_PICTURED_VALUES = 2_000  # values of a column that is looked up for a small picture
MOST_NARROWED = 4_000  # of all columns together, where rows are chosen
MOST_CHOICES = 50  # choices of rows whose pictures are kept


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
    pale: bool  # it is of all rows, though some are chosen


@dataclass(frozen=True)
class KnownTables:
    """The table of each column that has one already: of all rows and, where rows are chosen, of those."""

    whole: dict[str, Table]
    narrowed: dict[str, Table] | None = None

    @property
    def words(self) -> str:
        """Which rows the pictures are of, where that has to be said."""
        if self.narrowed is None:
            return ""
        if not self.narrowed:
            return "Pictures show all rows: of the chosen ones no table is known."
        pale = "; pale ones show all rows" if self.whole.keys() - self.narrowed.keys() else ""
        return f"Pictures show the chosen rows{pale}."


async def known_tables(dataset: ServedData, built: Built) -> KnownTables:
    """Tables that are known, which stay as they are, so they are kept."""
    whole: dict[str, Table]
    entries = dataset.session.entries
    seen, whole = dataset.shown.get("columns", (-1, {}))
    choice = urlencode(list(fields_of(Built(among=built.among, ends=built.ends), dataset.session.domain)))
    narrowed: dict[str, Table] | None = {} if built.narrowed else None
    with suppress(Refusal):  # a writer that is too busy leaves the pictures as they were
        if seen != entries:
            whole = await asyncio.wrap_future(dataset.writer.do(lambda: _look(dataset)))
        if built.narrowed:
            kept: Memory[tuple[int, str], dict[str, Table]]
            _, kept = dataset.shown.setdefault("choices", (None, Memory(MOST_CHOICES)))
            narrowed = kept.get((entries, choice))
            if narrowed is None:
                looked = await asyncio.wrap_future(dataset.writer.do(lambda: _narrowed(dataset, built)))
                kept.keep((entries, choice), looked)
                narrowed = looked
    return KnownTables(whole, narrowed)


def _narrowed(dataset: ServedData, built: Built) -> dict[str, Table]:
    """The table of each column among the rows that the conditions on the others choose, where it is known.

    Conditions that cannot be read choose nothing: the form says what is wrong with them.
    """
    domain, left, tables = dataset.session.domain, MOST_NARROWED, dict[str, Table]()
    with suppress(TacitError):
        everywhere = _chosen(built, domain)
        for name, attribute in domain.items():
            left -= attribute.size
            if attribute.size > 1 and left >= 0:
                where = _chosen(without(built, name), domain) if name in built.narrowed else everywhere
                found = dataset.known(Crosstab(domain, (name,), where))
                if isinstance(found, Table):
                    tables[name] = found
    return tables


def _chosen(built: Built, domain: Domain) -> Query:
    """The rows that conditions choose."""
    asked = sql.parse(str(clicked(Built(among=built.among, ends=built.ends), domain)), domain)
    return asked.query if isinstance(asked, Count) else Query.constant(everyone=True)


def _look(dataset: ServedData) -> dict[str, Table]:
    session = dataset.session
    entries = session.entries
    tables = dict[str, Table]() if dataset.grows else dict[str, Table](dataset.shown.get("columns", (-1, {}))[1])
    for name, attribute in session.domain.items():
        if name not in tables and 1 < attribute.size <= MOST_PICTURED_VALUES:
            found = dataset.known(Crosstab(session.domain, (name,)))
            if isinstance(found, Table):
                tables[name] = found
    dataset.shown["columns"] = entries, tables
    return tables


def listed(dataset: ServedData, built: Built, known: KnownTables) -> list[ListedColumn]:
    """Every column in its declared order; their links keep the conditions that are chosen now."""
    domain, narrowed = dataset.session.domain, known.narrowed or {}
    tables, blocks = known.whole | narrowed, column_of_blocks(domain)
    return [
        ListedColumn(
            name=name,
            kind=attribute.kind,
            takes=_ends(attribute) if name == blocks else values_of(attribute),
            about=dataset.columns.get(name, ""),
            link=urlencode(list(fields_of(of_column(built, name), domain))),
            path=small(tables[name]) if name in tables else "",
            grey=name in tables and tables[name].says == "nothing",
            chosen=name in built.by or name == built.of,
            pale=known.narrowed is not None and name not in narrowed,
        )
        for name, attribute in domain.items()
    ]


def _ends(blocks: Attribute) -> str:
    return f"{blocks.label(0)} to {blocks.label(blocks.size - 1)}"


def small(table: Table) -> str:
    """The bars of a table as one path, neighbours together where they are many."""
    values = np.maximum(table.values.ravel(), 0)
    if values.size > MOST_SMALL_BARS:
        values = np.array([part.sum() for part in np.array_split(values, MOST_SMALL_BARS)])
    most = float(values.max()) or 1.0
    band = _WIDE / values.size
    gap = min(1.5, band / 4)
    tops = (_TALL - np.maximum(values / most * _TALL, 0.6)).tolist()
    return "".join(f"M{i * band:.1f} {_TALL}V{top:.1f}h{band - gap:.1f}V{_TALL}z" for i, top in enumerate(tops))
