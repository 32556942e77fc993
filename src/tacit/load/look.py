"""What an owner is told of the rows that he holds: exact and unpaid. For `tacit init` and `tacit check`.

Like everything in this package it sees rows; unlike the rest it tells values and numbers of them. What `look` saw the
owner makes public, by writing it into a domain; how the rows fit what is declared, `fits`, is not to be passed on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from tacit.errors import DataError
from tacit.load import Source, open_source, quietly
from tacit.load.columns import TableColumn, coded, match
from tacit.load.engines import DuckDB
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain

_TRIMMED = 0.005  # the share of the values at either end that may be outliers
_FAR = 0.5  # outliers are so far from the others, in the width of those
MAX_WHOLE = 2.0**52  # whole numbers beyond this are binned as any others
MAX_CATEGORIES = 50  # more different values than this look like names or identifiers
MOST_NAMED_VALUES = 5  # undeclared values that are named


@dataclass(frozen=True)
class Seen:
    """What a column was seen to hold: where nearly all of it lies, its values if they are few, how many are different.

    different: about how many values there are, as a share of the rows. 1 for an identifier.
    flags: numbers that are all 0 or 1.
    """

    low: Any
    high: Any
    whole: bool
    values: tuple[str, ...] | None
    has_missing: bool
    different: float = 0.0
    flags: bool = False


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


def look(data: object, table: str | None) -> Mapping[str, Seen]:
    """Bounds and values of every column, exact: for an owner who makes them public by writing them into a domain."""
    source = open_source(data, table)
    if not isinstance(source.engine, DuckDB):
        raise DataError("values are looked up in files and frames only; declare the domain of this source by hand.")
    engine = source.engine
    return quietly(lambda: {column.name: _look(engine, column) for column in engine.columns()}, engine.failure)


def fits(source: Source, domain: Domain) -> Iterator[tuple[str, Fit | DataError]]:
    """How the rows of each attribute's column fit it, or what keeps them from being read."""
    bare = {name: replace(attribute, other=None, missing=None, clamp=False) for name, attribute in domain.items()}
    try:
        found = match(source.columns(Domain(bare)), Domain(bare), None)
    except DataError:
        found = {}  # of some column: one by one they say of which
    for name, attribute in bare.items():
        try:
            alone = Domain({name: attribute})
            column = found.get(name) or match(source.columns(alone), alone, None)[name]
            yield name, _fit(source, name, attribute, column)
        except DataError as error:
            yield name, error


def rows_by_person(source: Source, person: str) -> dict[int, int]:
    """How many people have one row, two rows, and so on. Rows that name nobody are not counted."""
    wanted = person.lower()
    column = next(one for one in source.describe() if one.name.lower() == wanted)
    dialect, table, _ = source.names()
    name = exp.column(column.name, quoted=True)
    each = exp.select(_count("n")).from_(table).where(exp.Not(this=name.is_(exp.null()))).group_by(name.copy())
    asked = exp.select("n", _count("people")).from_(each.subquery("each")).group_by("n")
    ((rows, counts),) = source.run([asked.sql(dialect)])
    return dict(sorted(zip(rows.tolist(), counts.tolist(), strict=True)))


def _look(engine: DuckDB, column: TableColumn) -> Seen:
    name = exp.column(column.name, quoted=True)
    has_missing = exp.func("BOOL_OR", name.is_(exp.null()))
    many = exp.Div(this=exp.func("APPROX_COUNT_DISTINCT", name), expression=exp.func("COUNT", exp.Star()))
    different = min(1.0, float(engine.look(exp.select(many))[0] or 0.0))
    if column.type in ("text", "empty"):
        kept = exp.Trim(this=exp.cast(name, "TEXT"), expression=exp.Literal.string(" "), position="TRAILING")
        values = exp.func("LIST", exp.Distinct(expressions=[kept]))
        few = exp.func("APPROX_COUNT_DISTINCT", name)
        missing, number = engine.look(exp.select(has_missing, few))
        listed = sorted(v for v in engine.look(exp.select(values))[0] or [] if v) if number < 200 else []
        listed = [value for value in listed if value.isprintable()]  # no category lists others; they are its `other`
        found = tuple(listed) if 0 < len(listed) <= MAX_CATEGORIES else None
        return Seen(None, None, False, found, bool(missing), different)
    if column.type in ("number", "decimal"):
        value = exp.cast(name.copy(), "DOUBLE")
        inside = exp.Where(this=exp.func("ISFINITE", value))
        asked = [*_ends(value), exp.func("BOOL_AND", exp.EQ(this=exp.func("FLOOR", value), expression=value))]
        absent = exp.func("BOOL_OR", exp.or_(name.is_(exp.null()), exp.func("ISNAN", value)))
        *ends, is_whole, missing = engine.look(
            exp.select(*(exp.Filter(this=one, expression=inside) for one in asked), absent)
        )
        *_, least, most = ends
        # Few whole numbers have a bin each: none of them takes the room of the others.
        low, high = (least, most) if is_whole and most - least < MAX_CATEGORIES else _without_outliers(*ends)
        is_whole = bool(is_whole and max(abs(low), abs(high)) < MAX_WHOLE)
        flags = is_whole and least >= 0 and most <= 1
        return Seen(low, high, is_whole, None, bool(missing), different, flags)
    if column.type in ("date", "timestamp"):
        origin = dt.date(2000, 1, 1)
        since = exp.cast(exp.Literal.string(origin.isoformat()), "DATE")
        days = exp.paren(exp.Sub(this=exp.cast(name, "DATE"), expression=since))
        finite = exp.Where(this=exp.func("ISFINITE", name.copy()))
        every = (exp.Filter(this=one, expression=finite) for one in _ends(days))
        *ends, missing = engine.look(exp.select(*every, has_missing))
        # 9999-12-31 stands for no date in many tables: one such row would leave a bin to all others.
        low, high = (None if end is None else origin + dt.timedelta(days=end) for end in _without_outliers(*ends))
        return Seen(low, high, False, None, bool(missing))
    return Seen(None, None, False, None, bool(engine.look(exp.select(has_missing))[0]))


def _ends(value: exp.Expr) -> list[exp.Expr]:
    """Where nearly all values lie, and where all do.

    By the ends alone one outlier would make all other rows share a bin. What lies beyond is clamped.
    """
    nearly = [exp.func("QUANTILE_DISC", value, exp.Literal.number(share)) for share in (_TRIMMED, 1 - _TRIMMED)]
    return [*nearly, exp.func("MIN", value), exp.func("MAX", value)]


def _without_outliers(
    low: float | None, high: float | None, least: float | None, most: float | None
) -> tuple[Any, Any]:
    """The least and the most, each unless it lies far from where nearly all values are."""
    if low is None or high is None or least is None or most is None:
        return None, None
    far = _FAR * (high - low)
    return (low if least < low - far else least), (high if most > high + far else most)


def _fit(source: Source, name: str, bare: Attribute, column: TableColumn) -> Fit:
    dialect, table = source.engine.dialect, source.names()[1]
    value, code, _ = coded(name, bare, column, 0, dialect, listed=False)
    data = exp.select(exp.alias_(value, "v0")).from_(table).subquery("data")
    codes = exp.select(exp.alias_(exp.cast(code, "bigint"), "c")).from_(data).subquery("codes")
    grouped = exp.select("c", _count("n")).from_(codes).group_by("c")
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
        low, high = source.fetch(asked.sql("duckdb"))[0]
        return f"{low} to {high}" if low != high else f"{low}"
    asked = exp.select(exp.alias_(exp.cast(v, "text"), "v"), _count("n")).from_(data).where(outside).group_by("v")
    found = source.fetch(asked.order_by("n DESC", "v").limit(MOST_NAMED_VALUES + 1).sql("duckdb"))
    named = ", ".join(f"{value} in {rows:,}" for value, rows in found[:MOST_NAMED_VALUES])
    return named + (", …" if len(found) > MOST_NAMED_VALUES else "")


def _count(name: str) -> exp.Expr:
    return exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), name)
