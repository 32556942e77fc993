"""How the rows fit what is declared, tallied for their owner: exact, unpaid, not to be passed on. For `tacit check`.

Like everything in this package it sees rows; unlike the rest it tells numbers of them, to whoever holds them anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from tacit.errors import DataError
from tacit.load import Source
from tacit.load.columns import TableColumn, coded, match
from tacit.load.engines import DuckDB
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain

MOST_VALUES = 5  # undeclared values that are named


@dataclass(frozen=True)
class Fit:
    """How the rows of one column fit its attribute.

    outside, missing: rows whose value is not declared, and rows without one, whatever becomes of them.
    used: how many of the declared values or bins have a row.
    examples: the most frequent undeclared values in words, or their range, where the engine tells them.
    """

    rows: int
    outside: int
    missing: int
    used: int
    examples: str


def fits(source: Source, domain: Domain) -> Iterator[tuple[str, Fit | DataError]]:
    """How the rows of each attribute's column fit it, or what keeps them from being read."""
    bare = {name: replace(attribute, other=None, missing=None, clamp=False) for name, attribute in domain.items()}
    try:
        found = match(source.engine.columns(Domain(bare)), Domain(bare), None)
    except DataError:
        found = {}  # of some column: one by one they say of which
    for name, attribute in bare.items():
        try:
            alone = Domain({name: attribute})
            column = found.get(name) or match(source.engine.columns(alone), alone, None)[name]
            yield name, _fit(source, name, attribute, column)
        except DataError as error:
            yield name, error


def _fit(source: Source, name: str, bare: Attribute, column: TableColumn) -> Fit:
    dialect, table = source.engine.dialect, source.names()[1]
    value, code, _ = coded(name, bare, column, 0, dialect, listed=False)
    data = exp.select(exp.alias_(value, "v0")).from_(table).subquery("data")
    codes = exp.select(exp.alias_(exp.cast(code, "bigint"), "c")).from_(data).subquery("codes")
    grouped = (
        exp.select("c", exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "n")).from_(codes).group_by("c")
    )
    ((found, counts),) = source.run([grouped.sql(dialect)])
    tally = dict(zip(found.tolist(), counts.tolist(), strict=True))
    outside = tally.pop(bare.size, 0)
    missing = tally.pop(bare.size + 1, 0)
    examples = _examples(source, value, code, bare) if outside and isinstance(source.engine, DuckDB) else ""
    return Fit(sum(tally.values()) + outside + missing, outside, missing, len(tally), examples)


def _examples(source: Source, value: exp.Expr, code: exp.Expr, bare: Attribute) -> str:
    """The most frequent values whose code says that they are not declared; of an ordered attribute, their range."""
    assert isinstance(source.engine, DuckDB)
    data = exp.select(exp.alias_(value.copy(), "v0")).from_(source.names()[1]).subquery("data")
    outside = exp.EQ(this=code.copy(), expression=exp.Literal.number(bare.size))
    v = exp.column("v0", table="data")
    if bare.ordered:
        asked = exp.select(exp.func("MIN", v), exp.func("MAX", v.copy())).from_(data).where(outside)
        low, high = source.engine.fetch(asked.sql("duckdb"))[0]
        return f"{low} to {high}" if low != high else f"{low}"
    asked = exp.select(exp.alias_(exp.cast(v, "text"), "v"), _count("n")).from_(data).where(outside).group_by("v")
    found = source.engine.fetch(asked.order_by("n DESC", "v").limit(MOST_VALUES + 1).sql("duckdb"))
    named = ", ".join(f"{value} in {rows:,}" for value, rows in found[:MOST_VALUES])
    return named + (", …" if len(found) > MOST_VALUES else "")


def rows_by_person(source: Source, person: str) -> dict[int, int]:
    """How many people have one row, two rows, and so on. Rows that name nobody are not counted."""
    wanted = person.lower()
    column = next(one for one in source.describe() if one.name.lower() == wanted)
    dialect, table, _ = source.names()
    name = exp.column(column.name, quoted=True)
    number = exp.alias_(exp.Count(this=exp.Star()), "n")
    each = exp.select(number).from_(table).where(exp.Not(this=name.is_(exp.null()))).group_by(name.copy())
    people = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "people")
    asked = (
        exp.select(exp.alias_(exp.cast(exp.column("n"), "bigint"), "n"), people)
        .from_(each.subquery("each"))
        .group_by("n")
    )
    ((rows, counts),) = source.run([asked.sql(dialect)])
    return dict(sorted(zip(rows.tolist(), counts.tolist(), strict=True)))


def _count(name: str) -> exp.Expr:
    return exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), name)
