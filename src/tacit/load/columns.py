"""The columns of a table: what they hold, which of them is which attribute, and which bin each value falls into.

A value's bin is one scalar SQL expression for each attribute, the same on every engine. The code of an attribute is its
bin, then `other`, then `missing`; `size` and `size + 1` are reserved for values that are outside or missing where the
domain provides for neither. What must hold on every engine alike:

- numbers are compared as DOUBLE; NULL and NaN are missing; NaN is larger than Infinity everywhere, so what is not `<=`
  Infinity is missing, without a test of its own; infinite numbers and dates lie outside;
- text is compared byte by byte, blanks at its end aside (CHAR(n) pads with them);
- ranges are checked before anything is rounded or cast, so no value overflows.

A mistake here puts rows into a wrong bin. It cannot do more: `trusted/cells.py` takes scalar expressions only.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from sqlglot import exp

from tacit.errors import DataError
from tacit.model.attribute import WEEKDAYS, Attribute, TimePart
from tacit.model.domain import Domain
from tacit.model.values import Bins, Days, Integers, Listed, Reals

Dialect = Literal["duckdb", "postgres", "spark"]
ColumnType = Literal["number", "decimal", "text", "boolean", "date", "timestamp", "zoned", "empty", "other"]

_HOLDS: dict[ColumnType, str] = {
    "number": "numbers",
    "decimal": "decimal numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "zoned": "timestamps with a time zone",
    "empty": "nothing",
    "other": "a type without bins",
}
_NUMBERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE REAL INT"
_FRACTIONS = frozenset(("FLOAT", "DOUBLE", "REAL"))
_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(_NUMBERS.split(), "number"),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), "decimal"),
    **dict.fromkeys(("VARCHAR", "ENUM", "STRING", "CHAR", "TEXT"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_NTZ"), "timestamp"),
    **dict.fromkeys(('"NULL"', "NULL", "VOID"), "empty"),
    "TIMESTAMP WITH TIME ZONE": "zoned",
    "UUID": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
}

MAX_CHAIN = 24  # a longer list of values is looked up in a joined table; below it a chain of comparisons is faster
MAX_CATEGORY_VALUES = 2**14  # values of one category: what Spark parses with the memory it has by default
MAX_EDGES = 2**11  # likewise; edges that are whole and evenly spaced are computed and have no such limit

BYTE_ORDER: dict[Dialect, exp.Expr] = {
    "duckdb": exp.var("C"),
    "postgres": exp.to_identifier("C", quoted=True),
    "spark": exp.var("UTF8_BINARY"),
}
WEEKDAY: dict[Dialect, str] = {"duckdb": "ISODOW", "postgres": "ISODOW", "spark": "DOW_ISO"}  # Monday is 1
_TAKES: dict[str, tuple[ColumnType, ...]] = {
    "text": ("text",),
    "whole numbers": ("number", "decimal"),
    "boolean": ("boolean", "number", "decimal"),
    "integer": ("number", "decimal"),
    "numeric": ("number", "decimal"),
    "date": ("date", "timestamp"),
}


class TableColumn(NamedTuple):
    """A column of the table: its own spelling, roughly what it holds, and whether its type has fractions."""

    name: str
    type: ColumnType
    fractions: bool = False


def table_column(name: str, kind: str) -> TableColumn:
    """A column of an engine's type."""
    held = coarse(kind)
    return TableColumn(name, held, held == "decimal" or re.split(r"[( ]", kind.upper())[0] in _FRACTIONS)


def coarse(kind: str) -> ColumnType:
    """What a column of an engine's type holds."""
    name = kind.upper()
    if name in _TYPES or name.endswith("]"):  # a list of numbers is not a number
        return _TYPES.get(name, "other")
    return _TYPES.get(re.split(r"[( ]", name)[0], "other")


def match(columns: Iterable[TableColumn], domain: Domain, person: str | None) -> dict[str, TableColumn]:
    """The column of each declared attribute, and of the person; refuses names that the table does not have."""
    exact = {column.name: column for column in columns}
    found: dict[str, TableColumn] = {}
    whose = [] if person is None else [person]
    for called, name in (*((one, domain[one].of or one) for one in domain), *zip(whose, whose, strict=True)):
        # DuckDB calls the second of two columns that differ in case only AGE_1, so that is a likeness too.
        alike = [c for c in exact.values() if name.lower() in (c.name.lower(), re.sub(r"_\d+$", "", c.name.lower()))]
        near = [exact[name]] if name in exact else alike
        if len(near) != 1 or name.lower() != near[0].name.lower():
            has = ", ".join(list(exact)[:20]) + ", …" * (len(exact) > 20)
            lacks = "several columns like" if len(near) > 1 else "no column"
            raise DataError(f"the table has {lacks} {name}; its columns are {has}.")
        found[called] = near[0]
    return found


def is_text(column: TableColumn) -> bool:
    """Whether a person's column holds text rather than numbers; refuses columns that hold neither."""
    if column.type not in ("text", "number", "decimal"):
        raise DataError(
            f"column {column.name} holds {_HOLDS[column.type]}; people are told apart by text or by numbers: cast it "
            "in a view or a query."
        )
    return column.type == "text"


def csv_type(domain: Domain, name: str) -> str | None:
    """What a column of a CSV file is read as: what is declared, not what its first private rows look like."""
    if name not in domain:
        return "VARCHAR"  # the person: any text will do
    values = domain[name].values
    if domain[name].part is not None:
        return "TIMESTAMP"
    if isinstance(values, Listed):
        return {"category": "VARCHAR" if isinstance(values.values[0], str) else "DOUBLE"}.get(values.kind)
    return "TIMESTAMP" if values.kind == "date" else "DOUBLE"


class Coded(NamedTuple):
    """How an attribute's column becomes its code."""

    value: exp.Expr  # the column as what it is compared as: `data.v0` for the first attribute, `data.v1` for the next
    code: exp.Expr  # a function of that value and, if it is looked up in a list, of its place there, `t0.code`
    listed: tuple[exp.Expr, ...]  # the list; empty where the value is compared instead


def coded(
    name: str, attribute: Attribute, column: TableColumn, place: int, dialect: Dialect, *, listed: bool = True
) -> Coded:
    """The code of the attribute that stands at `place` in the domain; refuses columns that do not hold such values.

    listed: whether a long list of values is looked up in a joined table, which is faster than comparing.
    """
    _check(name, attribute, column)
    values, held = attribute.values, column.type
    if attribute.part is not None and held != "empty":
        held = "text" if isinstance(values, Listed) else "number"
    looked_up = listed and isinstance(values, Listed) and attribute.bins > MAX_CHAIN and held != "empty"
    entries = values.values if looked_up and isinstance(values, Listed) else ()
    code = exp.cast(_code(attribute, held, place, looked_up, dialect), "bigint", copy=False)
    return Coded(_value(attribute, column, dialect), code, tuple(_listed(x, dialect) for x in entries))


def _check(name: str, attribute: Attribute, column: TableColumn) -> None:
    declared, values, held = attribute.kind, attribute.values, column.type
    if attribute.part is not None:
        if held not in ("empty", "timestamp", *(("date",) if attribute.part != "hour" else ())):
            raise DataError(
                f"{name} is the {attribute.part} of {column.name}, which holds {_HOLDS[held]}: cast it to a plain "
                "timestamp in a view or a query."
            )
        return
    if isinstance(values, Listed) and declared == "category":
        declared = "text" if isinstance(values.values[0], str) else "whole numbers"
    if held != "empty" and held not in _TAKES[declared]:
        as_declared = f"a category of {declared}" if attribute.kind == "category" else attribute.kind
        remedy = "to the local day or time" if held == "zoned" else "to what is declared"
        raise DataError(
            f"column {name} holds {_HOLDS[held]} and is declared {as_declared}: cast it {remedy} in a view or a query."
        )
    if isinstance(values, Listed) and attribute.bins > MAX_CATEGORY_VALUES:
        raise DataError(
            f"{name} lists {attribute.bins:,} values; at most {MAX_CATEGORY_VALUES:,} can be told apart: group them."
        )
    if isinstance(_evenly(values), Reals) and attribute.bins > MAX_EDGES:
        raise DataError(
            f"{name} has {attribute.bins:,} bins; more than {MAX_EDGES:,} need edges that are whole and evenly spaced."
        )


def _text(this: exp.Expr, dialect: Dialect) -> exp.Expr:
    trimmed = exp.Trim(this=exp.cast(this, "text"), expression=exp.Literal.string(" "), position="TRAILING")
    return exp.Collate(this=trimmed, expression=BYTE_ORDER[dialect].copy())


def _value(attribute: Attribute, column: TableColumn, dialect: Dialect) -> exp.Expr:
    """The column as what it is compared as; done once a row, below the comparisons."""
    this: exp.Expr = exp.column(exp.to_identifier(column.name, quoted=True))
    if attribute.part is not None:
        return this if column.type == "empty" else _part(attribute.part, this, dialect)
    if column.type == "text":
        return _text(this, dialect)
    if column.type in ("number", "decimal"):
        # A decimal may have more digits than a DOUBLE: 24.99999999999999999 is rounded down before it could become 25.
        floor = column.type == "decimal" and isinstance(_evenly(attribute.values), Integers)
        return exp.cast(exp.Floor(this=this) if floor else this, "double")
    return exp.cast(this, "date") if column.type in ("date", "timestamp") else this


def _part(part: TimePart, this: exp.Expr, dialect: Dialect) -> exp.Expr:
    """A part of a date or a time; days of the week by their names."""
    word = "HOUR" if part == "hour" else "MONTH" if part == "month" else WEEKDAY[dialect]
    number = exp.cast(exp.Extract(this=exp.var(word), expression=this), "double")
    if part != "weekday":
        return number
    branches: list[tuple[exp.Expr, exp.Expr]] = [
        (exp.EQ(this=number.copy(), expression=_double(place)), exp.Literal.string(day))
        for place, day in enumerate(WEEKDAYS, 1)
    ]
    return _case(branches, exp.Null())


def _code(attribute: Attribute, held: ColumnType, place: int, looked_up: bool, dialect: Dialect) -> exp.Expr:
    values, size = _evenly(attribute.values), attribute.size
    missing = size + 1 if attribute.missing_index is None else attribute.missing_index
    outside = size if attribute.other_index is None else attribute.other_index
    below, above = (0, attribute.bins - 1) if attribute.clamp else (outside, outside)

    def v() -> exp.Expr:
        return exp.column(f"v{place}", table="data")

    if held == "empty":
        return _number(missing)
    if held == "boolean":
        return _case([(v(), _number(1)), (exp.Not(this=v()), _number(0))], _number(missing))
    if isinstance(values, Listed):
        known = exp.Not(this=exp.Is(this=v(), expression=exp.Null()))
        nowhere = (known if held == "text" else exp.LTE(this=v(), expression=_double("Infinity")), _number(outside))
        if looked_up:
            unlisted = _case([nowhere], _number(missing))
            return exp.Coalesce(this=exp.column("code", table=f"t{place}"), expressions=[unlisted])
        written = [_string(x, dialect) if isinstance(x, str) else _double(x) for x in values.values]
        listed = [(exp.EQ(this=v(), expression=x), _number(code)) for code, x in enumerate(written)]
        return _case([*listed, nowhere], _number(missing))
    if isinstance(values, Days):
        first, end, top = _day(values.low), _day(values.high, after=1), None
        index = _day_index(values, v)
    elif isinstance(values, Integers):
        first, end, top = _double(values.low), _double(values.end), _double("Infinity")
        index = exp.Sub(this=exp.Floor(this=v()), expression=_double(values.low))
        if values.width > 1:  # exact: a quotient of whole numbers below 2**53 never rounds up to the next whole number
            index = exp.Floor(this=exp.Div(this=exp.paren(index), expression=_double(values.width)))
    else:
        first, end, top = _double(values.edges[0]), _double(values.edges[-1]), _double("Infinity")
        index = _tree(v, values.edges, 0, attribute.bins)
    inside = _case([(exp.GTE(this=v(), expression=first), exp.cast(index, "bigint", copy=False))], _number(below))
    # Dates have no NaN, and their infinity is the largest: only NULL is not above or below the end.
    beyond = exp.GTE(this=v(), expression=end.copy()) if top is None else exp.LTE(this=v(), expression=top)
    return _case([(exp.LT(this=v(), expression=end), inside), (beyond, _number(above))], _number(missing))


def _evenly(values: Listed | Bins) -> Listed | Bins:
    """Whole, evenly spaced edges as the integers they bound: a number and its floor lie in the same bin."""
    if isinstance(values, Reals) and all(float(e).is_integer() and abs(e) < 2**52 for e in values.edges):
        first, second, *_, last = (*map(int, values.edges), int(values.edges[-1]))
        if values.edges == tuple(range(first, last + 1, second - first)):
            return Integers(first, last - 1, second - first)
    return values


def _tree(v: Callable[[], exp.Expr], edges: Sequence[float], first: int, end: int) -> exp.Expr:
    """Which of the bins first..end-1 holds v, by halving: a comparison for each level."""
    if end - first == 1:
        return _number(first)
    middle = (first + end) // 2
    low, high = _tree(v, edges, first, middle), _tree(v, edges, middle, end)
    return _case([(exp.LT(this=v(), expression=_double(edges[middle])), low)], high)


def _day_index(days: Days, v: Callable[[], exp.Expr]) -> exp.Expr:
    if days.by == "day":
        return exp.Sub(this=v(), expression=_day(days.low))

    def part(name: str) -> exp.Expr:
        return exp.cast(exp.Extract(this=exp.var(name), expression=v()), "bigint")

    if days.by == "year":
        return exp.Sub(this=part("YEAR"), expression=_number(days.low.year))
    months = exp.Add(this=exp.Mul(this=part("YEAR"), expression=_number(12)), expression=part("MONTH"))
    return exp.Sub(this=months, expression=_number(12 * days.low.year + days.low.month))


def _case(branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=result) for condition, result in branches], default=default)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _listed(value: str | int, dialect: Dialect) -> exp.Expr:
    return _string(value, dialect) if isinstance(value, str) else _number(value)


def _string(text: str, dialect: Dialect) -> exp.Expr:
    first, *rest = text.split("${")
    if not rest or dialect != "spark":
        return exp.Literal.string(text)
    # Spark puts settings in for ${…} before it parses, inside of text too: the two characters must not meet.
    parts = [first + "$", *("{" + part + "$" for part in rest[:-1]), "{" + rest[-1]]
    return exp.Concat(expressions=[exp.Literal.string(part) for part in parts])


def _double(value: float | str) -> exp.Expr:
    # From text: a bare 0.1 is a decimal, and a bare 1e300 no number at all, on some engines.
    return exp.cast(exp.Literal.string(value if isinstance(value, str) else repr(float(value))), "double")


def _day(day: dt.date, after: int = 0) -> exp.Expr:
    return exp.cast(exp.Literal.string((day + dt.timedelta(days=after)).isoformat()), "date")
