"""Loading, against enumeration: of all small tables, neighbours load into cells that differ in one row, or in m.

The head of `trusted/cells.py` promises it for every bin that `load/` could choose, so wrong bins are tried as well.
Where a check is taken away, a mistake that it refuses must break the promise: that the checks are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import duckdb
import pytest
from sqlglot import exp, parse_one

from tacit.errors import DataError
from tacit.load import Source, open_source
from tacit.load.columns import Coded
from tacit.model.attribute import Attribute, category, integer
from tacit.model.domain import Domain
from tacit.trusted import cells
from tacit.trusted.cells import read_records

Table = tuple[tuple[Any, ...], ...]  # rows, sorted by `repr`
Cells = Counter[tuple[int, ...]]

NUMBERS = (None, float("nan"), -1.0, 0.0, 1.5, 2.5, 9.0)
TEXTS = (None, "", "v0", "v1 ", "else")
MANY = [f"v{i}" for i in range(30)]  # long enough to be looked up in a list
POLICIES: dict[str, tuple[Attribute, str, Sequence[Any]]] = {
    "refuse": (integer(0, 3, width=2), "DOUBLE", NUMBERS),
    "clamp": (integer(0, 3, width=2, clamp=True), "DOUBLE", NUMBERS),
    "other": (integer(0, 3, width=2, other="other"), "DOUBLE", NUMBERS),
    "missing": (integer(0, 3, width=2, missing="unknown"), "DOUBLE", NUMBERS),
    "clamp, missing": (integer(0, 3, width=2, clamp=True, missing="unknown"), "DOUBLE", NUMBERS),
    "other, missing": (integer(0, 3, width=2, other="other", missing="unknown"), "DOUBLE", NUMBERS),
    "compared text": (category(["v0", "v1"], other="other", missing="unknown"), "TEXT", TEXTS),
    "listed text": (category(MANY, other="other", missing="unknown"), "TEXT", TEXTS),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def literal(value: Any, kind: str) -> str:
    return "NULL" if value is None else f"CAST('{value}' AS {kind})"


def held(engine: Any, columns: Sequence[str], rows: Table) -> Any:
    """A relation of these rows. A column is given as its name and type."""
    names, types = zip(*(column.split() for column in columns), strict=True)
    lines = ", ".join("(" + ", ".join(map(literal, row, types)) + ")" for row in rows)
    return engine.sql(f"SELECT * FROM (VALUES {lines}) AS t({', '.join(names)})")


def loaded(source: Any, domain: Domain, **person: Any) -> Cells | None:
    """The cells of a table; None if it is refused."""
    try:
        records = read_records(source, domain, **person)
    except DataError:
        return None
    codes = zip(*(codes.tolist() for codes in records._codes.values()), strict=True)
    return Counter(dict(zip(codes, records._counts.tolist(), strict=True)))


def moved(first: Cells, second: Cells) -> int:
    """How many rows must be replaced to make one of the other; at least as many as the numbers of rows differ by."""
    return max((first - second).total(), (second - first).total())


def all_tables(kinds: Sequence[tuple[Any, ...]], rows: int) -> list[Table]:
    return list(combinations_with_replacement(sorted(kinds, key=repr), rows))


def replaced(table: Table, kinds: Sequence[tuple[Any, ...]]) -> Iterator[Table]:
    """All tables that are this one with a row replaced."""
    for i, row in product(range(len(table)), kinds):
        yield tuple(sorted((*table[:i], row, *table[i + 1 :]), key=repr))


def farthest(found: dict[str, Cells | None], kinds: Sequence[tuple[Any, ...]], tables: Sequence[Table]) -> int:
    """The most rows that two neighbours' cells differ in, among those that were loaded."""
    most = 0
    for table in tables:
        for other in replaced(table, kinds):
            ours, theirs = found[repr(table)], found[repr(other)]
            if ours is not None and theirs is not None:
                most = max(most, moved(ours, theirs))
    return most


Found = dict[str, Cells | None]


def try_all(
    engine: Any, attribute: Attribute, kind: str, raw: Sequence[Any], rows: int, source: Callable[[Any], Any]
) -> tuple[int, Found]:
    """The most rows that neighbours' cells differ in, and the cells of all tables."""
    kinds = [(value,) for value in raw]
    tables = all_tables(kinds, rows)
    found = {repr(t): loaded(source(held(engine, [f"x {kind}"], t)), Domain({"x": attribute})) for t in tables}
    return farthest(found, kinds, tables), found


@pytest.mark.parametrize("policy", POLICIES)
def test_one_replaced_row_replaces_one_counted_row(engine: Any, policy: str) -> None:
    most, found = try_all(engine, *POLICIES[policy], 2, open_source)
    assert most == 1
    loads = [cells for cells in found.values() if cells is not None]
    assert all(cells.total() == 2 for cells in loads)
    assert (len(loads) == len(found)) == (policy not in ("refuse", "clamp", "other", "missing"))


class Wrong:
    """A source that codes its one attribute by a mistaken expression."""

    def __init__(self, code: str, *listed: str) -> None:
        self.code, self.listed = parse_one(code, dialect="duckdb"), tuple(exp.Literal.string(x) for x in listed)

    def __call__(self, data: Any) -> Any:
        source, ours = open_source(data), self

        class Mistaken:
            names, run, version = source.names, source.run, source.version

            def coded(self, domain: Domain, person: str | None) -> Any:
                ((value, _, _),), whose = Source.coded(source, domain, person)
                return [Coded(value, ours.code, ours.listed)], whose

        return Mistaken()


FOUR = integer(0, 3), "DOUBLE", (0.0, 1.0, 3.0)


@pytest.mark.parametrize("code", ["0", "CASE WHEN data.v0 < 1 THEN 1 ELSE 3 END", "CASE WHEN data.v0 = 3 THEN 0 END"])
def test_wrong_bins_keep_the_promise(engine: Any, code: str) -> None:
    most, found = try_all(engine, *FOUR, 2, Wrong(code))
    assert any(cells is not None for cells in found.values())
    assert most <= 1


# Mistakes that a check refuses. Without it, one replaced row moves more than one counted row.
BREAKING: dict[str, tuple[str, Wrong]] = {
    "a rank": ("_row_wise", Wrong("CASE WHEN RANK() OVER (ORDER BY data.v0) > 1 THEN 1 ELSE 0 END")),
    "the whole table": ("_row_wise", Wrong("CASE WHEN SUM(data.v0) OVER () > 3 THEN 1 ELSE 0 END")),
    "a subquery": ("_row_wise", Wrong('CASE WHEN (SELECT MAX(x) FROM "tacit_source") > 1 THEN 1 ELSE 0 END')),
    "a list with repetitions": ("the control", Wrong("COALESCE(t0.code, 3)", "0", "00")),
}


@pytest.mark.parametrize("mistake", BREAKING)
def test_without_its_check_a_mistake_breaks_the_promise(
    engine: Any, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, wrong = BREAKING[mistake]
    most, found = try_all(engine, *FOUR, 3, wrong)
    assert most <= 1
    if check == "_row_wise":
        assert set(found.values()) == {None}
        monkeypatch.setattr(cells, "_row_wise", lambda *_: None)
    else:  # only tables with a row that meets two entries of the list are refused
        assert None in found.values()
        monkeypatch.setattr(cells, "_statements", uncontrolled)
    most, _ = try_all(engine, *FOUR, 3, wrong)
    assert most > 1


STATEMENTS = cells._statements


def uncontrolled(*given: Any) -> tuple[str, str]:
    """The control counts what was counted: no control at all."""
    counting, _ = STATEMENTS(*given)
    return counting, f"SELECT CAST(SUM(n) AS BIGINT) AS n FROM ({counting}) AS counted"


EACH = 2
PEOPLE = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (None, 0)]  # id, x
OF_PEOPLE = Domain({"x": integer(0, 2)})


def people(engine: Any) -> dict[Table, Cells | None]:
    tables = [table for rows in range(1, 4) for table in all_tables(PEOPLE, rows)]
    person: dict[str, Any] = {"person": "id", "rows_per_person": EACH}
    return {t: loaded(open_source(held(engine, ["id BIGINT", "x BIGINT"], t)), OF_PEOPLE, **person) for t in tables}


def apart(table: Table, person: int | None) -> tuple[Table, Table]:
    """The rows of a person, and all the others."""
    return tuple(r for r in table if r[0] == person), tuple(r for r in table if r[0] != person)


def farthest_people(found: dict[Table, Cells | None]) -> tuple[int, int]:
    """The most rows that cells differ in where one person's rows do, and how many such pairs there are."""
    most = pairs = 0
    for person in (1, 2):
        others: dict[Table, list[Cells]] = {}
        for table, cells_of in found.items():
            # A table without a row that names a person is refused, and counts none.
            others.setdefault(apart(table, person)[1], []).append(Counter() if cells_of is None else cells_of)
        for alike in others.values():
            for first, second in product(alike, repeat=2):
                most, pairs = max(most, moved(first, second)), pairs + 1
    return most, pairs


def test_the_rows_of_one_person_replace_no_more_counted_rows_than_declared(engine: Any) -> None:
    found = people(engine)
    most, pairs = farthest_people(found)
    assert most == EACH
    assert pairs > 100
    for table, cells_of in found.items():
        expected = sum(min(EACH, len(apart(table, person)[0])) for person in (1, 2))
        assert (0 if cells_of is None else cells_of.total()) == expected


def test_an_identity_that_tells_a_person_s_rows_apart_is_caught(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = cells._identity

    def by_value(column: str, *more: Any) -> tuple[str, str, str]:
        _, known, stirred = identity(column, *more)
        return '"id" + 10 * "x"', known, stirred

    monkeypatch.setattr(cells, "_identity", by_value)
    assert farthest_people(people(engine))[0] > EACH
