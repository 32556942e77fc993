"""The one SQL statement that turns a table into cells: every engine runs it. Pure; called by records and sources.

Each declared attribute becomes a small code: its bin, then `other`, then `missing`, and two reserved codes for rows
that fall nowhere declared. Codes are packed side by side into as few BIGINT words as hold them, and rows are counted by
word. What must hold on every engine alike:

- numbers are compared as DOUBLE; NULL and NaN are missing; NaN is larger than Infinity everywhere, so what is not `<=`
  Infinity is missing, without a test of its own; infinite numbers and dates lie outside;
- text is compared byte by byte, blanks at its end aside (CHAR(n) pads with them);
- ranges are checked before anything is rounded or cast, so no value overflows.

Where the owner says whose row is whose, a bounded number of each person's rows is counted: see `bounded`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from sqlglot import exp

from tacit.errors import DataError
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.values import Bins, Days, Integers, Listed, Reals

Dialect = Literal["duckdb", "postgres", "spark"]
ColumnType = Literal["number", "decimal", "text", "boolean", "date", "timestamp", "zoned", "empty", "other"]

WORD_BITS = 62
MAX_CELLS = 2**27  # distinct cells held in memory
MAX_CHAIN = 24  # a longer list of values is looked up in a joined table; below it a chain of comparisons is faster
MAX_LISTED = 2**14  # values of one category: what Spark parses with the memory it has by default
MAX_EDGES = 2**11  # likewise; edges that are whole and evenly spaced are computed and have no such limit
SOURCE = "tacit_source"  # stands for the table until `render` puts the engine's own name there

_BYTE_ORDER: dict[Dialect, exp.Expr] = {
    "duckdb": exp.var("C"),
    "postgres": exp.to_identifier("C", quoted=True),
    "spark": exp.var("UTF8_BINARY"),
}
_HOLDS: dict[ColumnType, str] = {
    "number": "numbers",
    "decimal": "decimal numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "zoned": "timestamps with a time zone",
    "other": "a type without bins",
}
_TAKES: dict[str, tuple[ColumnType, ...]] = {
    "text": ("text",),
    "whole numbers": ("number", "decimal"),
    "boolean": ("boolean", "number", "decimal"),
    "integer": ("number", "decimal"),
    "numeric": ("number", "decimal"),
    "date": ("date", "timestamp"),
}


class Column(NamedTuple):
    """A column of the table: its own spelling and roughly what it holds."""

    name: str
    type: ColumnType


class Person(NamedTuple):
    """The column that says whose row it is, and how many rows of one person are counted at most."""

    column: Column
    rows: int


class Slot(NamedTuple):
    """Where an attribute's code lies: in which word, above how many bits, and how wide."""

    word: int
    shift: int
    bits: int


def slots(domain: Domain) -> tuple[Slot, ...]:
    """The place of each attribute's code in the packed words, in the domain's order.

    Guarantee: codes 0..size+1 of every attribute fit, and no two attributes share a bit.
    Formula: powers of two as radices, so that decoding is shifts and masks; a word holds 62 bits.
    Source: positional notation.
    """
    found: list[Slot] = []
    word = shift = 0
    for size in domain.shape:
        bits = (size + 1).bit_length()
        if shift + bits > WORD_BITS:
            word, shift = word + 1, 0
        found.append(Slot(word, shift, bits))
        shift += bits
    return tuple(found)


def build(domain: Domain, columns: Mapping[str, Column], person: Person | None = None) -> exp.Select:
    """SELECT word 0, word 1, …, COUNT(*) FROM the table GROUP BY the words.

    Guarantee: every row is counted once, in the cell its values lie in or under a reserved code; only codes leave. With
        a person, every row that `bounded` keeps.
    Formula: word = Σ code · 2^shift; code = bin | other | missing | size (outside) | size + 1 (missing, undeclared).
    Source: docs/ARCHITECTURE.md, "From a table to cells".
    """
    words: dict[int, exp.Expr] = {}
    inner, joins = exp.select(), []
    for i, ((name, attribute), slot) in enumerate(zip(domain.items(), slots(domain), strict=True)):
        column = columns[name]
        _check(name, attribute, column.type)
        inner = inner.select(exp.alias_(_value(attribute, column), f"v{i}"), copy=False)
        lookup = isinstance(attribute.values, Listed) and attribute.bins > MAX_CHAIN and column.type != "empty"
        if lookup:
            joins.append(_lookup(attribute, i))
        code: exp.Expr = exp.cast(_code(attribute, column.type, i, lookup), "bigint", copy=False)
        if slot.shift:
            code = exp.Mul(this=code, expression=exp.cast(_number(2**slot.shift), "bigint"))
        words[slot.word] = exp.Add(this=words[slot.word], expression=code) if slot.word in words else code
    if person is not None:
        inner = inner.select(exp.alias_(_identity(person.column), "p"), copy=False)
    query = exp.select(*(exp.alias_(word, f"w{w}", copy=False) for w, word in words.items()), copy=False)
    query = query.from_(inner.from_(exp.to_table(SOURCE)).subquery("data"), copy=False)
    for values, condition in joins:
        query = query.join(values, on=condition, join_type="left", copy=False)
    if person is not None:
        query = bounded(query, [f"w{w}" for w in words], person)
    query = query.select(exp.alias_(exp.Count(this=exp.Star()), "n"), copy=False)
    return query.group_by(*(_number(w + 1) for w in words), copy=False).limit(MAX_CELLS + 1, copy=False)


def bounded(coded: exp.Select, words: Sequence[str], person: Person) -> exp.Select:
    """SELECT the words FROM at most `person.rows` of each person's coded rows; rows that name nobody are left out.

    Guarantee: which rows of a person are kept is a function of that person's own rows, so that changing the rows of one
        person, however many they are, replaces at most `person.rows` kept ones. The same rows on every engine.
    Formula: the first by 12 digits of MD5(id : word 0 : word 1 …), then by the words; rows that tie lie in the same
        cell. NULL, NaN and blank text name nobody: whoever such a row belongs to, leaving it out keeps the bound.
    Source: truncation, as in Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson 2020, by a fixed order. The
        digest is no secret and guards nothing; it only keeps the sample from favouring low codes.
    """

    def p() -> exp.Expr:
        return exp.column("p", table="data")

    number = person.column.type != "text"
    if number:
        known: exp.Expr = exp.LTE(this=exp.cast(p(), "double"), expression=_double("Infinity"))
    else:
        known = exp.NEQ(this=p(), expression=exp.Literal.string(""))
    coded = coded.select(exp.alias_(p(), "p"), exp.alias_(_spelled(p) if number else p(), "h"), copy=False)
    key: exp.Expr = exp.column("h")
    for word in words:
        text = exp.cast(exp.column(word), "text")
        key = exp.DPipe(this=exp.DPipe(this=key, expression=exp.Literal.string(":")), expression=text)
    # Twelve digits stir as well as all of them, and DuckDB sorts them in place: a third less memory.
    digits = exp.Substring(this=exp.MD5(this=key), start=_number(1), length=_number(12))
    digest = exp.Collate(this=digits, expression=_BYTE_ORDER["duckdb"].copy())
    order = exp.Order(expressions=[exp.Ordered(this=one) for one in (digest, *map(exp.column, words))])
    place = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("p")], order=order)
    placed = exp.select(*words, exp.alias_(place, "place")).from_(coded.where(known, copy=False).subquery("coded"))
    first = exp.LTE(this=exp.column("place"), expression=_number(person.rows))
    return exp.select(*words).from_(placed.subquery("placed")).where(first)


def render(select: exp.Select, dialect: Dialect, table: exp.Expr) -> str:
    """The statement in an engine's own spelling.

    Guarantee: the dialects differ in spelling only: quotes, type names, the name of byte order, the name of the table.
    Formula: sqlglot's generator, after the two names were put in.
    Source: sqlglot.
    """

    def spell(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Collate):
            node.set("expression", _BYTE_ORDER[dialect].copy())
        elif isinstance(node, exp.Table) and node.name == SOURCE:
            return table.copy()
        elif dialect == "spark" and isinstance(node, exp.Literal) and "${" in node.name:
            # Spark puts settings in for ${…} before it parses, inside of text too.
            return exp.Concat(expressions=[exp.Literal.string(part) for part in _halves(node.name)])
        return node

    return select.transform(spell).sql(dialect=dialect)


def _halves(text: str) -> list[str]:
    parts = text.split("${")
    return [("{" * (i > 0)) + part + ("$" * (i < len(parts) - 1)) for i, part in enumerate(parts)]


def _check(name: str, attribute: Attribute, held: ColumnType) -> None:
    declared, values = attribute.kind, attribute.values
    if isinstance(values, Listed) and declared == "category":
        declared = "text" if isinstance(values.values[0], str) else "whole numbers"
    if held != "empty" and held not in _TAKES[declared]:
        as_declared = f"a category of {declared}" if attribute.kind == "category" else attribute.kind
        remedy = "to the local day or time" if held == "zoned" else "to what is declared"
        raise DataError(
            f"column {name} holds {_HOLDS[held]} and is declared {as_declared}: cast it {remedy} in a view or a query."
        )
    if isinstance(values, Listed) and attribute.bins > MAX_LISTED:
        raise DataError(
            f"{name} lists {attribute.bins:,} values; at most {MAX_LISTED:,} can be told apart: group them."
        )
    if isinstance(_evenly(values), Reals) and attribute.bins > MAX_EDGES:
        raise DataError(
            f"{name} has {attribute.bins:,} bins; more than {MAX_EDGES:,} need edges that are whole and evenly spaced."
        )


def _text(this: exp.Expr) -> exp.Expr:
    trimmed = exp.Trim(this=exp.cast(this, "text"), expression=exp.Literal.string(" "), position="TRAILING")
    return exp.Collate(this=trimmed, expression=_BYTE_ORDER["duckdb"].copy())


def _identity(column: Column) -> exp.Expr:
    """Whose row it is: text as everywhere here, a number as it is, since a DOUBLE would take large ids for the same."""
    if column.type not in ("text", "number", "decimal"):
        raise DataError(
            f"column {column.name} holds {_HOLDS.get(column.type, 'nothing')}; people are told apart by text or by "
            "numbers: cast it in a view or a query."
        )
    this: exp.Expr = exp.column(exp.to_identifier(column.name, quoted=True))
    return _text(this) if column.type == "text" else this


def _spelled(p: Callable[[], exp.Expr]) -> exp.Expr:
    """A number as text that is the same on every engine. It need not be exact: it only stirs the order of rows."""
    whole = exp.cast(exp.Floor(this=exp.cast(p(), "double")), "bigint")
    inside = exp.and_(
        exp.GT(this=exp.cast(p(), "double"), expression=_double(-(2.0**62))),
        exp.LT(this=exp.cast(p(), "double"), expression=_double(2.0**62)),
    )
    return exp.cast(_case([(inside, whole)], exp.cast(_number(0), "bigint")), "text")


def _value(attribute: Attribute, column: Column) -> exp.Expr:
    """The column as what it is compared as; done once a row, below the comparisons."""
    this: exp.Expr = exp.column(exp.to_identifier(column.name, quoted=True))
    if column.type == "text":
        return _text(this)
    if column.type in ("number", "decimal"):
        # A decimal may have more digits than a DOUBLE: 24.99999999999999999 is rounded down before it could become 25.
        floor = column.type == "decimal" and isinstance(_evenly(attribute.values), Integers)
        return exp.cast(exp.Floor(this=this) if floor else this, "double")
    return exp.cast(this, "date") if column.type in ("date", "timestamp") else this


def _code(attribute: Attribute, held: ColumnType, i: int, lookup: bool) -> exp.Expr:
    values, size = _evenly(attribute.values), attribute.size
    missing = size + 1 if attribute.missing_index is None else attribute.missing_index
    outside = size if attribute.other_index is None else attribute.other_index
    below, above = (0, attribute.bins - 1) if attribute.clamp else (outside, outside)

    def v() -> exp.Expr:
        return exp.column(f"v{i}", table="data")

    if held == "empty":
        return _number(missing)
    if held == "boolean":
        return _case([(v(), _number(1)), (exp.Not(this=v()), _number(0))], _number(missing))
    if isinstance(values, Listed):
        known = exp.Not(this=exp.Is(this=v(), expression=exp.Null()))
        nowhere = (known if held == "text" else exp.LTE(this=v(), expression=_double("Infinity")), _number(outside))
        if lookup:
            unlisted = _case([nowhere], _number(missing))
            return exp.Coalesce(this=exp.column("code", table=f"t{i}"), expressions=[unlisted])
        written = [exp.Literal.string(x) if isinstance(x, str) else _double(x) for x in values.values]
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


def _lookup(attribute: Attribute, i: int) -> tuple[exp.Expr, exp.Expr]:
    """A table of the listed values and their codes, and when a row meets it."""
    assert isinstance(attribute.values, Listed)
    values = [exp.Literal.string(x) if isinstance(x, str) else _number(x) for x in attribute.values.values]
    rows = [exp.Tuple(expressions=[value, _number(code)]) for code, value in enumerate(values)]
    name = exp.TableAlias(this=exp.to_identifier(f"t{i}"), columns=[exp.to_identifier(c) for c in ("value", "code")])
    return exp.Values(expressions=rows, alias=name), exp.EQ(
        this=exp.column(f"v{i}", table="data"), expression=exp.column("value", table=f"t{i}")
    )


def _case(branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=result) for condition, result in branches], default=default)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _double(value: float | str) -> exp.Expr:
    # From text: a bare 0.1 is a decimal, and a bare 1e300 no number at all, on some engines.
    return exp.cast(exp.Literal.string(value if isinstance(value, str) else repr(float(value))), "double")


def _day(day: dt.date, after: int = 0) -> exp.Expr:
    return exp.cast(exp.Literal.string((day + dt.timedelta(days=after)).isoformat()), "date")
