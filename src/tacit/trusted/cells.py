"""From a table to its cells: the statement that counts the rows, and the checks of it and of what comes back.

The engine that holds the table bins and counts. `load/` knows the engines, and is not trusted. What is promised here:

    Every row is counted in one cell, and nothing but the row's own values decides which. With a person, at most m rows
    of each person are counted, and nothing but that person's rows decides which. So where one row is replaced, or the
    rows of one person are and as many are counted as before, at most one counted row, or m of them, is replaced.

All prices rest on that. It holds whatever bins `load/` chooses, because `load/` gives only scalar expressions:
`_row_wise` takes those that are made of one column and of deterministic functions, and everything around them is
written here. What comes back must be distinct declared cells with positive counts, of files as they were, and add up
to what a second statement counts without bins and lists. So a mistake in `load/` costs accuracy, or refuses the load.

What is not promised. Sums notice rows that are lost or counted twice, not an engine that moves one to another cell. The
checks are against mistakes, not malice. `load/` sees rows: what it prints or raises is its own duty (`load.quietly`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from tacit.errors import DataError
from tacit.exact.price import check_person
from tacit.model.domain import Domain, Slot
from tacit.model.engine import Coded, Countable, Loadable, Progress, Run
from tacit.model.values import as_listed
from tacit.trusted.records import MAX_ROWS, Codes, Counts, Records

MAX_HELD_CELLS = 2**27  # distinct cells held in memory

Spell = Callable[[exp.Expr | str], str]
# What codes may be made of: nothing that looks at another row, at the clock or at chance.
_FUNCTIONS = (exp.Case, exp.Cast, exp.Coalesce, exp.Collate, exp.Concat, exp.Extract, exp.Floor, exp.If, exp.Trim)
_OPERATORS = (exp.Add, exp.Div, exp.EQ, exp.GTE, exp.Is, exp.LT, exp.LTE, exp.Mul, exp.Neg, exp.Not, exp.Paren, exp.Sub)
_ATOMS = (exp.Column, exp.DataType, exp.Identifier, exp.Literal, exp.Null, exp.Var)
_SCALAR = frozenset((*_FUNCTIONS, *_OPERATORS, *_ATOMS))
_TYPES = frozenset(exp.DataType.build(kind).this for kind in ("bigint", "double", "text", "date"))
_WORDS = frozenset(("YEAR", "MONTH", "HOUR", "ISODOW", "DOW_ISO", "C", "UTF8_BINARY"))
_OURS = re.compile("data|code|[vt][0-9]+")

_OTHER_ROWS = (
    "the rows that were counted are not those of the table: it changed while it was read, or its engine takes some "
    "values for others. Try again, or cast its columns to plain types in a view or a query."
)


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """How many rows have each value of a column. Private, like records: it never leaves trusted/."""

    name: str
    values: tuple[str | int | None, ...]
    counts: Counts
    rows_per_person: int


def read_records(
    source: Loadable,
    domain: Domain,
    *,
    person: str | None = None,
    rows_per_person: int = 1,
    progress: Progress | None = None,
) -> Records:
    """The cells of a table. `person` names the column that says whose row it is; `progress` is for who waits.

    Guarantee: at most one counted row differs between neighbours, or `rows_per_person`, as this file's head says it.
        A refusal names no value of the table and no count.
    """
    check_person(person, rows_per_person)
    return Records(domain, *read_cells(source, domain, person, rows_per_person, progress), rows_per_person)


def read_cells(
    source: Loadable,
    domain: Domain,
    person: str | None = None,
    rows_per_person: int = 1,
    progress: Progress | None = None,
) -> tuple[list[Codes], Counts]:
    """The codes of the cells, and how many rows each has. For `read_records`; by itself only of public tables."""
    version = source.version()
    (*words, counts), ((total,),) = source.run(_statements(source, domain, person, rows_per_person), progress)
    if len(counts) == 0:
        raise DataError("the table has no rows." if person is None else "the table has no rows that name a person.")
    if len(counts) > MAX_HELD_CELLS:
        finest = sorted(domain, key=lambda name: -domain[name].size)[:3]
        sizes = ", ".join(f"{name} ({domain[name].size:,})" for name in finest)
        raise DataError(
            f"the rows fall into more than {MAX_HELD_CELLS:,} distinct cells: "
            f"declare coarser bins or fewer attributes. The finest have the most values: {sizes}."
        )
    if int(counts.max()) >= MAX_ROWS or int(counts.sum()) >= MAX_ROWS:
        raise DataError(f"the table has {MAX_ROWS:,} rows or more; sum it up before it is loaded.")
    whole = int(counts.min()) >= 1 and int(counts.sum()) == int(total) and _distinct(domain, words, counts)
    if not whole or source.version() != version:  # where as many rows came as went, no count tells
        raise DataError(_OTHER_ROWS)
    codes = [_decode(words[slot.word], slot, size) for slot, size in zip(domain.slots, domain.shape, strict=True)]
    domain.check_declared(codes)
    return codes, counts


def encode(
    source: Loadable,
    copy: Countable,
    domain: Domain,
    *,
    person: str | None = None,
    rows_per_person: int = 1,
    progress: Progress | None = None,
) -> None:
    """Write the codes of the rows that count, once: all that is counted later is counted there.

    Guarantee: as for `read_records`, of the very same rows: one row of declared codes for each, and nothing else of it.
        Only what was checked becomes a copy, and `Counted.fingerprint` checks it again where a ledger is bound to it.
    """
    check_person(person, rows_per_person)
    version = source.version()
    kept, _, control = _selected(source, domain, person, rows_per_person)

    def check(found: Sequence[Counts], run: Run) -> None:
        (((total,),),) = run([control])
        if any(int(counts.sum()) != int(total) for counts in found) or source.version() != version:
            raise DataError(_OTHER_ROWS)
        domain.check_declared(map(np.flatnonzero, found))

    copy.write(kept, check, progress)


def read_tally(source: Loadable, domain: Domain, person: str | None = None, rows_per_person: int = 1) -> Tally:
    """The values that the column of a domain of one category has, whatever is declared of it, and how many rows each.

    Guarantee: as for `read_records`: every row is counted under its own value, and at most `rows_per_person` of each
        person are counted. Values that cannot be listed in a category are left out, by what they are alone.
    """
    check_person(person, rows_per_person)
    (name,) = domain
    version = source.version()
    counted, control = _statements(source, domain, person, rows_per_person, values_themselves=True)
    found = source.fetch(f"SELECT w0, n, ({control}) AS total FROM ({counted}) AS counted")
    if not found:
        raise DataError("the table has no rows." if person is None else "the table has no rows that name a person.")
    whole = len({value for value, *_ in found}) == len(found) and sum(n for _, n, _ in found) == found[0][2]
    if not whole or source.version() != version:
        raise DataError(_OTHER_ROWS)
    named = {as_listed(value): n for value, n, _ in found if value is None or as_listed(value) is not None}
    return Tally(name, tuple(named), np.array(list(named.values()), dtype=np.int64), rows_per_person)


def _selected(
    source: Loadable, domain: Domain, person: str | None, rows_per_person: int, *, values_themselves: bool = False
) -> tuple[str, list[str], str]:
    """The rows that count, as words; their names; and the statement that counts the same rows without bins and lists.

    With `values_themselves` a row is the value of the only attribute, in the place of its code.
    """
    dialect, table, byte_order = source.names()
    coded, whose = source.coded(domain, person)

    def spell(expression: exp.Expr | str) -> str:
        return exp.maybe_parse(expression).sql(dialect=dialect)

    for part in (*table.parts, byte_order):
        _row_wise("the table", part, ())
    rows = ".".join(map(spell, table.parts))
    values, words, lists = _parts(domain, coded, spell)
    if values_themselves:
        words, lists = ["v0 AS w0"], ""
    names = [f"w{w}" for w in range(len(words))]
    if person is None:
        kept = f"SELECT {', '.join(words)} FROM (SELECT {', '.join(values)} FROM {rows}) AS data{lists}"
        control = f"SELECT COUNT(*) AS n FROM {rows}"
    else:
        if whose is None or whose[0].lower() != person.lower():
            raise _mistake("the person")
        p, known, stirred = _identity(*whose, spell(byte_order), spell)
        data = f"SELECT {', '.join(values)}, {p} AS p FROM {rows}"
        named = f"SELECT {', '.join(words)}, p, {stirred} AS h FROM ({data}) AS data{lists} WHERE {known}"
        kept = bounded(named, names, rows_per_person, spell(byte_order), spell)
        # Counted by another way than `bounded` goes: of each person all rows, or m if there are more.
        each = f"SELECT COUNT(*) AS n FROM (SELECT {p} AS p FROM {rows}) AS data WHERE {known} GROUP BY p"
        most = f"CASE WHEN n > {rows_per_person} THEN {rows_per_person} ELSE n END"
        control = f"SELECT CAST(COALESCE(SUM({most}), 0) AS BIGINT) AS n FROM ({each}) AS people"
    return kept, names, control


def _statements(*given: Any, **more: Any) -> tuple[str, str]:
    """The statement that counts the rows of `_selected` by cell, and the control of it."""
    kept, names, control = _selected(*given, **more)
    by = ", ".join(names)
    return f"SELECT {by}, COUNT(*) AS n FROM ({kept}) AS kept GROUP BY {by} LIMIT {MAX_HELD_CELLS + 1}", control


def bounded(named: str, words: Sequence[str], rows_per_person: int, byte_order: str, spell: Spell) -> str:
    """SELECT the words FROM at most `rows_per_person` of each person's rows.

    Guarantee: which rows of a person are kept is a function of that person's own rows. So changing the rows of one
        person, however many they are, replaces at most `rows_per_person` kept ones. The same rows on every engine.
    Formula: the first by 12 digits of MD5(id : word 0 : word 1 …), then by the words; rows that tie lie in one cell.
    Source: truncation, as in Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson 2020, by a fixed order. The
        digest is no secret and guards nothing; it only keeps the sample from favouring low codes.
    """
    key = " || ':' || ".join(["h", *(f"CAST({word} AS TEXT)" for word in words)])
    # Twelve digits stir as well as all of them, and DuckDB sorts them in place: a third less memory.
    order = f"{spell(f'SUBSTRING(MD5({key}), 1, 12)')} COLLATE {byte_order}"
    names = ", ".join(words)
    place = f"ROW_NUMBER() OVER (PARTITION BY p ORDER BY {order}, {names})"
    placed = f"SELECT {names}, {place} AS place FROM ({named}) AS named"
    return f"SELECT {names} FROM ({placed}) AS placed WHERE place <= {rows_per_person}"


def _identity(column: str, is_text: bool, byte_order: str, spell: Spell) -> tuple[str, str, str]:
    """Whose row it is, `p`; whether p names anybody; and p as text that is the same on every engine.

    NULL, NaN and blank text name nobody. Whoever such a row belongs to, leaving it out keeps the bound.
    """
    name = exp.to_identifier(column, quoted=True)
    if is_text:
        # Byte by byte, blanks at the end aside. Ids that an engine takes for the same are one person: fewer rows count.
        p = spell(f"TRIM(TRAILING ' ' FROM CAST({name.sql()} AS TEXT))") + f" COLLATE {byte_order}"
        return p, "p <> ''", "p"
    # A number as it is, since a DOUBLE would take large ids for the same. Its text need not be exact: it only stirs.
    inside = f"CAST(p AS DOUBLE) > CAST('{-(2.0**62)}' AS DOUBLE) AND CAST(p AS DOUBLE) < CAST('{2.0**62}' AS DOUBLE)"
    whole = f"CASE WHEN {inside} THEN CAST(FLOOR(CAST(p AS DOUBLE)) AS BIGINT) ELSE CAST(0 AS BIGINT) END"
    return spell(name), spell("CAST(p AS DOUBLE) <= CAST('Infinity' AS DOUBLE)"), spell(f"CAST({whole} AS TEXT)")


def _parts(domain: Domain, coded: Sequence[Coded], spell: Spell) -> tuple[list[str], list[str], str]:
    """Each attribute's value, the words that hold the codes (Σ code · 2^shift), and the joins to lists."""
    values, lists = [], []
    words = [""] * (domain.slots[-1].word + 1)
    for i, (name, slot, (value, code, listed)) in enumerate(zip(domain, domain.slots, coded, strict=True)):
        _row_wise(name, value, [("", (domain[name].of or name).lower())])
        _row_wise(name, code, [("data", f"v{i}"), (f"t{i}", "code")])
        for entry in listed:
            _row_wise(name, entry, ())
        if len(set(listed)) < len(listed):  # a row that meets two entries would be counted twice
            raise _mistake(name)
        values.append(f"{spell(value)} AS v{i}")
        words[slot.word] += f"{' + ' * bool(words[slot.word])}CAST({spell(code)} AS BIGINT) * {2**slot.shift}"
        if listed:
            pairs = ", ".join(f"({spell(entry)}, {place})" for place, entry in enumerate(listed))
            lists.append(f" LEFT JOIN (VALUES {pairs}) AS t{i}(value, code) ON data.v{i} = t{i}.value")
    # NULL is no cell: -1, which is none either, is the same on every engine.
    return values, [f"COALESCE({word}, -1) AS w{w}" for w, word in enumerate(words)], "".join(lists)


def _row_wise(what: str, expression: exp.Expr, columns: Collection[tuple[str, str]]) -> None:
    """Refuse what is not a deterministic function of these columns of one row."""
    for node in expression.walk():
        known = type(node) in _SCALAR
        if isinstance(node, exp.Column):
            known = known and len(node.parts) <= 2 and (node.table, node.name.lower()) in columns
        elif isinstance(node, exp.DataType):
            known = known and node.this in _TYPES
        elif isinstance(node, exp.Identifier):
            known = node.quoted or _OURS.fullmatch(node.name) is not None
        elif isinstance(node, exp.Literal):
            known = node.is_string or node.name.isdecimal()
        elif isinstance(node, exp.Var):
            known = node.name in _WORDS
        if not known:
            raise _mistake(what)


def _mistake(what: str) -> DataError:
    return DataError(f"{what} would be read from more than one row at a time: a mistake in Tacit, please report it.")


def _distinct(domain: Domain, words: Sequence[Counts], counts: Counts) -> bool:
    """Whether every count has its words, without a bit beyond the codes', and no two cells are the same."""
    used = {slot.word: slot.shift + slot.bits for slot in domain.slots}  # the last slot of a word is the highest
    if len(words) != len(used) or any(word.shape != counts.shape for word in words):
        return False
    if any((word >> used[w]).any() for w, word in enumerate(words)):
        return False
    if len(words) == 1:
        ordered = [np.sort(words[0])]  # several times faster than by an order
    else:
        order = np.lexsort(words)
        ordered = [word[order] for word in words]
    return bool(np.logical_or.reduce([word[1:] != word[:-1] for word in ordered]).all())


def _decode(word: Counts, slot: Slot, size: int) -> Codes:
    # Wide enough for the two reserved codes as well.
    dtype = next(t for t in (np.uint8, np.uint16, np.uint32) if size + 1 <= np.iinfo(t).max)
    return np.asarray((word >> slot.shift) & (2**slot.bits - 1), dtype)
