"""Reading bounds and values from the rows, for an owner who declares them public: the only unpaid look at the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tacit.errors import DataError
from tacit.load.columns import TableColumn
from tacit.load.duckdb import DuckDB
from tacit.load.source import open_source, quietly

MAX_LISTED = 50  # more different values than this look like names or identifiers


@dataclass(frozen=True)
class Seen:
    """What a column was seen to hold."""

    low: Any
    high: Any
    whole: bool
    values: tuple[str, ...] | None
    has_missing: bool


def look(data: object, table: str | None) -> Mapping[str, Seen]:
    """Bounds and values of every column, exact. The owner makes them public by writing them into a domain."""
    source = open_source(data, table)
    if not isinstance(source.engine, DuckDB):
        raise DataError("values are looked up in files and frames only; declare the domain of this source by hand.")
    engine = source.engine
    return quietly(lambda: {column.name: _look(engine, column) for column in engine.columns()}, engine.failure)


def _look(engine: DuckDB, column: TableColumn) -> Seen:
    name = exp.column(column.name, quoted=True)
    has_missing = exp.func("BOOL_OR", name.is_(exp.null()))
    if column.type in ("text", "empty"):
        kept = exp.Trim(this=exp.cast(name, "TEXT"), expression=exp.Literal.string(" "), position="TRAILING")
        values = exp.func("LIST", exp.Distinct(expressions=[kept]))
        few = exp.func("APPROX_COUNT_DISTINCT", name)
        missing, number = engine.look(exp.select(has_missing, few))
        listed = sorted(value for value in engine.look(exp.select(values))[0] or [] if value) if number < 200 else []
        return Seen(None, None, False, tuple(listed) if 0 < len(listed) <= MAX_LISTED else None, bool(missing))
    if column.type in ("number", "decimal"):
        finite = exp.column(column.name, quoted=True)
        value = exp.cast(finite, "DOUBLE")
        inside = exp.func("ISFINITE", value)
        bounds = [exp.Filter(this=exp.func(f, value), expression=exp.Where(this=inside)) for f in ("MIN", "MAX")]
        whole = exp.Filter(
            this=exp.func("BOOL_AND", exp.EQ(this=exp.func("FLOOR", value), expression=value)),
            expression=exp.Where(this=inside),
        )
        absent = exp.func("BOOL_OR", exp.or_(name.is_(exp.null()), exp.func("ISNAN", value)))
        low, high, is_whole, missing = engine.look(exp.select(*bounds, whole, absent))
        return Seen(low, high, bool(is_whole), None, bool(missing))
    if column.type in ("date", "timestamp"):
        day = exp.cast(name, "DATE")
        low, high, missing = engine.look(exp.select(exp.func("MIN", day), exp.func("MAX", day), has_missing))
        return Seen(low, high, False, None, bool(missing))
    return Seen(None, None, False, None, bool(engine.look(exp.select(has_missing))[0]))
