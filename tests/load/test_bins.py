"""The statement puts every awkward row into the cell a person would put it in. The same rows go to every engine."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tacit.errors import DataError
from tacit.load import columns as bins
from tacit.load import open_source
from tacit.load.columns import TableColumn
from tacit.model.attribute import Attribute, boolean, category, date, hour, integer, month, numeric, weekday
from tacit.model.domain import Domain
from tacit.model.values import Days, Integers, Listed
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

NAN, INF = math.nan, math.inf
ULP_BELOW_25 = math.nextafter(25, 0)
WEIRD = "we\"ird 'na`me"
BOTH: dict[str, Any] = {"other": "other", "missing": "unknown"}
MANY = [f"value {i}" for i in range(35)] + ["O'Brien", "a\\b", "É", " lead", "${x}"]

# Column: its SQL type, its attribute, and pairs of a value and the code it must get, written by hand.
AWKWARD: dict[str, tuple[str, Attribute, list[tuple[Any, int]]]] = {
    "whole": (
        "BIGINT",
        integer(17, 90, width=5, **BOTH),  # 15 bins, other 15, missing 16
        [(17, 0), (21, 0), (22, 1), (90, 14), (91, 15), (16, 15), (None, 16), (2**62, 15), (-(2**62), 15),
         (2**53 + 1, 15)],
    ),
    "real": (
        "DOUBLE",
        integer(0, 99, width=25, **BOTH),  # 4 bins, other 4, missing 5
        [
            (0.0, 0), (-0.0, 0), (ULP_BELOW_25, 0), (25.0, 1), (99.99999999999999, 3), (100.0, 4), (-5e-324, 4),
            (NAN, 5), (None, 5), (INF, 4), (-INF, 4), (1e300, 4), (-1e300, 4), (2.0**63, 4), (74.5, 2),
        ],
    ),
    "far": (  # a subtraction of the low end before rounding down would lose the fraction
        "DOUBLE",
        integer(-(2**51), 2**51, width=2**50, missing="unknown", clamp=True),
        [(math.nextafter(0, -1), 1), (0.0, 2), (-0.0, 2), (2.0**51, 4), (INF, 4), (-INF, 0), (1e300, 4),
         (NAN, 5), (None, 5)],
    ),
    "fixed": (
        "DECIMAL(38,18)",
        integer(0, 99, width=25, **BOTH),
        [(Decimal("24.999999999999999999"), 0), (Decimal("25"), 1), (Decimal("99.999999999999999999"), 3),
         (Decimal("100"), 4), (Decimal("-0.000000000000000001"), 4), (None, 5)],
    ),
    "edges": (
        "DOUBLE",
        numeric([-1.5, 0, 0.1, 0.3, 1e-3 + 1, 1e15, 1e299], **BOTH),  # 6 bins, other 6, missing 7
        [
            (-1.5, 0), (math.nextafter(-1.5, -2), 6), (math.nextafter(0, -1), 0), (-0.0, 1), (0.0, 1), (0.1, 2),
            (math.nextafter(0.1, 0), 1), (0.1 + 0.2, 3), (0.3, 3), (1.001, 4), (math.nextafter(1.001, 0), 3), (1e15, 5),
            (1e299, 6), (math.nextafter(1e299, 0), 5), (INF, 6), (-INF, 6), (NAN, 7), (None, 7), (1.7e308, 6),
        ],
    ),
    "even": (  # whole, evenly spaced edges, which are computed instead of compared
        "DOUBLE",
        numeric([-20, -10, 0, 10.0, 20], **BOTH),  # 4 bins, other 4, missing 5
        [(-20.0, 0), (math.nextafter(-20, -30), 4), (math.nextafter(-10, -20), 0), (-10.0, 1), (-0.5, 1), (-0.0, 2),
         (math.nextafter(10, 0), 2), (10.0, 3), (math.nextafter(20, 0), 3), (20.0, 4),
         (INF, 4), (-INF, 4), (NAN, 5), (None, 5)],
    ),
    "clamped": (
        "DOUBLE",
        numeric([0, 1, 2], clamp=True, missing="unknown"),
        [(-INF, 0), (-0.0, 0), (1.0, 1), (2.0, 1), (INF, 1), (NAN, 2), (None, 2), (1e300, 1)],
    ),
    "price": ("DECIMAL(18,2)", numeric([0, 0.1, 0.29, 1], **BOTH), [(Decimal("0.10"), 1),
        (Decimal("0.29"), 2), (None, 4)]),
    WEIRD: (
        "TEXT",
        category(["O'Brien", 'a"b', "a\\b", " lead", "É", "", "%s", "${x}", "F"], **BOTH),  # other 9, missing 10
        [
            ("O'Brien", 0), ('a"b', 1), ("a\\b", 2), (" lead", 3), ("lead", 9), (" lead  ", 3), ("É", 4),
            ("E\u0301", 9),
            ("", 5), ("   ", 5), ("%s", 6), ("${x}", 7), ("F ", 8), ("f", 9), ("F\t", 9), ("F\u00a0", 9),
            (None, 10), ("NULL", 9),
        ],
    ),
    "padded": ("CHAR(8)", category(["ab", "abcdefgh"], **BOTH), [("ab      ", 0), ("abcdefgh", 1),
        ("abc     ", 2), (None, 3)]),
    "many": (
        "TEXT",
        category(MANY, **BOTH),  # 40 values: looked up in a joined table; other 40, missing 41
        [(value, code) for code, value in enumerate(MANY) if code >= 33]
        + [("value 34 ", 34), ("Value 34", 40), ("lead", 40), ("o'brien", 40), (None, 41), ("", 40)],
    ),
    "listed": ("DOUBLE", category([0, 1, -7], **BOTH), [(0.0, 0), (-0.0, 0), (1.0, 1), (-7.0, 2), (0.5, 3),
        (NAN, 4), (None, 4), (INF, 3)]),
    "many listed": (
        "DOUBLE",
        category(list(range(-20, 20)), **BOTH),
        [(-0.0, 20), (0.0, 20), (-20.0, 0), (19.0, 39), (19.000000000000004, 40), (20.0, 40), (NAN, 41),
         (-INF, 40), (None, 41)],
    ),
    "flag": ("BOOLEAN", boolean(missing="unknown"), [(True, 1), (False, 0), (None, 2)]),
    "flag number": ("DOUBLE", boolean(**BOTH), [(1.0, 1), (0.0, 0), (-0.0, 0), (2.0, 2), (NAN, 3), (None, 3),
        (INF, 2)]),
    "day": (
        "DATE",
        date("2023-12-30", "2024-03-01", **BOTH),  # 63 bins, other 63, missing 64
        [("2023-12-30", 0), ("2024-02-29", 61), ("2024-03-01", 62), ("2024-03-02", 63), ("2023-12-29", 63), (None, 64),
         ("infinity", 63), ("-infinity", 63), ("0001-01-01", 63), ("9999-12-31", 63)],
    ),
    "month": (
        "TIMESTAMP",
        date("2019-12-01", "2021-01-31", by="month", **BOTH),  # 14 bins, other 14, missing 15
        [("2019-12-01 00:00:00", 0), ("2019-11-30 23:59:59.999999", 14), ("2020-02-29 23:59:59.999999", 2),
         ("2021-01-31 23:59:59.999999", 13), ("2021-02-01 00:00:00", 14), (None, 15), ("infinity", 14),
         ("-infinity", 14)],
    ),
    "year": (
        "DATE",
        date("1900-01-01", "2024-12-31", by="year", clamp=True, missing="unknown"),
        [("1900-01-01", 0), ("1899-12-31", 0), ("1969-12-31", 69), ("2024-12-31", 124), ("2025-01-01", 124),
         (None, 125),
         ("infinity", 124), ("-infinity", 0)],
    ),
    "hour": (
        "TIMESTAMP",
        hour("hour", width=5, missing="unknown"),  # 0–4, …, 15–19, 20–23; missing 5
        [("2024-02-29 00:00:00", 0), ("2024-02-29 04:59:59.999999", 0), ("1969-12-31 05:00:00", 1),
         ("2024-03-01 20:00:00", 4), ("0001-01-01 23:59:59.999999", 4), (None, 5)],
    ),
    "weekday": (
        "DATE",
        weekday("weekday", missing="unknown"),
        [("2024-01-01", 0), ("1969-12-31", 2), ("2024-02-29", 3), ("2000-01-01", 5), ("2023-12-31", 6), (None, 7)],
    ),
    "month of the year": (
        "TIMESTAMP",
        month("month of the year", missing="unknown"),
        [("2024-01-01 00:00:00", 0), ("2024-02-29 23:59:59.999999", 1), ("1969-12-31 00:00:00", 11), (None, 12)],
    ),
    "early": ("TIMESTAMP", date("1969-12-30", "1970-01-02", **BOTH), [("1969-12-31 23:59:59.999999", 1),
        ("1970-01-01 00:00:00", 2)]),
}  # fmt: skip
DOMAIN = Domain({name: attribute for name, (_, attribute, _) in AWKWARD.items()})
ROWS = 2 * max(len(pairs) for _, _, pairs in AWKWARD.values()) + 1


def awkward(column: str, row: int) -> tuple[Any, int]:
    pairs = AWKWARD[column][2]
    return pairs[row % len(pairs)]


def awkward_sql(table: str, double: str = "DOUBLE") -> list[str]:
    """Statements that make the awkward table, for DuckDB or PostgreSQL."""

    def literal(value: Any, kind: str) -> str:
        text = {NAN: "NaN", INF: "Infinity", -INF: "-Infinity"}.get(
            value, value if isinstance(value, str) else repr(value)
        )
        text = "NaN" if value != value else str(value) if isinstance(value, Decimal) else text
        return "NULL" if value is None else "CAST('" + text.replace("'", "''") + f"' AS {kind})"

    types = {name: kind.replace("DOUBLE", double) for name, (kind, _, _) in AWKWARD.items()}
    columns = ", ".join('"' + name.replace('"', '""') + f'" {kind}' for name, kind in types.items())
    rows = (", ".join(literal(awkward(name, i)[0], kind) for name, kind in types.items()) for i in range(ROWS))
    return [f"CREATE TABLE {table} ({columns})", f"INSERT INTO {table} VALUES " + ", ".join(f"({row})" for row in rows)]


def cells(records: Records) -> Counter[tuple[int, ...]]:
    codes = zip(*(codes.tolist() for codes in records._codes.values()), strict=True)
    return Counter(dict(zip(codes, records._counts.tolist(), strict=True)))


def check_awkward(data: object, table: str | None = None) -> None:
    """Every column by itself, which names the column that is wrong, then all of them together."""
    for name in DOMAIN:
        expected = Counter(awkward(name, i)[1] for i in range(ROWS))
        found = cells(read_records(open_source(data, table), DOMAIN.project([name])))
        assert found == {(code,): n for code, n in expected.items()}, name
    assert cells(read_records(open_source(data, table), DOMAIN)) == Counter(
        tuple(awkward(name, i)[1] for name in DOMAIN) for i in range(ROWS)
    )


@pytest.fixture(scope="module")
def relation() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    for sql in awkward_sql("awkward"):
        connection.execute(sql)
    return connection.table("awkward")


def test_awkward_rows_land_where_a_person_puts_them(relation: duckdb.DuckDBPyRelation) -> None:
    check_awkward(relation)  # catches: wrong side of an edge, early rounding, overflow, trimming, quoting


def test_a_time_without_end_has_no_hour() -> None:
    times = duckdb.sql("SELECT CAST(t AS TIMESTAMP) AS t FROM (VALUES ('infinity'), ('2024-01-01 07:00:00')) AS v(t)")
    domain = Domain({"hour": hour("t", missing="unknown")})
    assert cells(read_records(open_source(times), domain)) == Counter({(24,): 1, (7,): 1})


def nan_is_a_number(value: float | str) -> exp.Expr:
    text = "NaN" if value == "Infinity" else str(value)
    return exp.cast(exp.Literal.string(text), "double")


def untrimmed(attribute: Attribute, column: TableColumn, dialect: bins.Dialect) -> exp.Expr:
    found = ORIGINAL_VALUE(attribute, column, dialect)
    return found.this.this if isinstance(found, exp.Collate) else found


def rounded_late(attribute: Attribute, column: TableColumn, dialect: bins.Dialect) -> exp.Expr:
    held = "number" if column.type == "decimal" else column.type
    return ORIGINAL_VALUE(attribute, TableColumn(column.name, held), dialect)


ORIGINAL_VALUE = bins._value


@pytest.mark.parametrize(
    ("place", "name", "bug"),
    [
        (bins, "_double", nan_is_a_number),
        (bins, "_value", untrimmed),
        (bins, "_value", rounded_late),
        (exp, "LT", exp.LTE),
        (exp, "Floor", exp.Paren),
    ],
    ids=[
        "NaN counted as outside",
        "blanks at the end count",
        "decimals rounded to DOUBLE",
        "edge in lower bin",
        "left to be rounded by the cast",
    ],
)
def test_the_awkward_rows_notice_a_planted_bug(
    relation: duckdb.DuckDBPyRelation, monkeypatch: pytest.MonkeyPatch, place: object, name: str, bug: object
) -> None:
    monkeypatch.setattr(place, name, bug)
    with pytest.raises(AssertionError):
        check_awkward(relation)


# An independent reference in plain Python, for random domains and rows.


def place(attribute: Attribute, value: Any) -> int:
    values = attribute.values
    missing = attribute.size + 1 if attribute.missing is None else attribute.size - 1
    outside = attribute.size if attribute.other is None else attribute.bins
    if value is None or value != value:
        return missing
    if isinstance(values, Listed):
        value = value.rstrip(" ") if isinstance(value, str) else value
        return values.values.index(value) if value in values.values else outside
    if isinstance(values, Days):
        value = value.toordinal()
    if isinstance(values, Integers) and math.isfinite(value):
        value = math.floor(value)
    if values.starts[0] <= value < values.end:
        return bisect_right(list(values.starts), value) - 1
    if attribute.clamp:
        return 0 if value < values.starts[0] else attribute.bins - 1
    return outside


LABELS = st.sampled_from([{}, {"other": "other"}, {"missing": "unknown"}, BOTH])
ENDS = st.sampled_from([{}, {"missing": "unknown"}, {"clamp": True}, {"clamp": True, "missing": "unknown"}, BOTH, BOTH])
DAYS = st.dates(dt.date(1890, 1, 1), dt.date(2100, 12, 31))


@st.composite
def columns(draw: st.DrawFn) -> tuple[Attribute, str, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["integer", "numeric", "text", "whole", "boolean", "date"]))
    if kind == "integer":
        low = draw(st.integers(-1000, 1000))
        attribute = integer(low, low + draw(st.integers(0, 400)), width=draw(st.integers(1, 60)), **draw(ENDS))
        whole = st.integers(low - 5, low + 405) | st.integers(-(2**63), 2**63 - 1)
        fractional = st.floats() | st.floats(low - 5, low + 405) | whole.map(float)
        return attribute, *draw(st.sampled_from([("BIGINT", whole), ("DOUBLE", fractional)]))
    if kind == "numeric":
        edges = sorted(draw(st.sets(st.floats(-1e6, 1e6) | st.integers(0, 3), min_size=2, max_size=40)))
        near = st.sampled_from(edges)
        around = near | near.map(lambda x: math.nextafter(x, -INF)) | near.map(lambda x: math.nextafter(x, INF))
        return numeric(edges, **draw(ENDS)), "DOUBLE", around | st.floats()
    if kind == "text":
        text = st.text("aAbB '\\\"éß{}%$", max_size=3)
        listed = draw(st.sets(text.map(lambda x: x.rstrip(" ")), min_size=1, max_size=40))
        return category(sorted(listed), **draw(LABELS)), "TEXT", text | st.sampled_from(sorted(listed))
    if kind == "whole":
        numbers = draw(st.sets(st.integers(-40, 40), min_size=1, max_size=40))
        return category(sorted(numbers), **draw(LABELS)), "DOUBLE", st.integers(-42, 42).map(float) | st.floats()
    if kind == "boolean":
        return boolean(**draw(LABELS)), "BOOLEAN", st.booleans()
    low, high = sorted((draw(DAYS), draw(DAYS)))
    by = draw(st.sampled_from(["day", "month", "year"]))
    if by != "day":
        low, high = low.replace(day=1), high.replace(day=31, month=12)
        low = low.replace(month=1) if by == "year" else low
    return date(low, high, by=by, **draw(ENDS)), "DATE", DAYS


ENGINE = duckdb.connect()  # one for all examples: to start it takes longer than to read the rows of one


@settings(max_examples=150)
@given(st.data())
def test_random_rows_land_where_the_reference_puts_them(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(columns(), min_size=1, max_size=4))
    rows = data.draw(st.lists(st.tuples(*(st.none() | values for _, _, values in drawn)), min_size=1, max_size=12))
    domain = Domain({f"c{i}": attribute for i, (attribute, _, _) in enumerate(drawn)})
    connection = ENGINE.cursor()
    connection.execute(
        "CREATE OR REPLACE TABLE t (" + ", ".join(f"c{i} {kind}" for i, (_, kind, _) in enumerate(drawn)) + ")"
    )
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(drawn))})", rows)
    expected = Counter(tuple(place(a, value) for (a, _, _), value in zip(drawn, row, strict=True)) for row in rows)
    if any(code >= a.size for cell in expected for code, (a, _, _) in zip(cell, drawn, strict=True)):
        with pytest.raises(DataError):
            read_records(open_source(connection.table("t")), domain)
    else:
        assert cells(read_records(open_source(connection.table("t")), domain)) == expected


@pytest.mark.parametrize(
    ("attribute", "held", "says"),
    [
        (integer(0, 9), "text", "column age holds text and is declared integer"),
        (category(["a"]), "number", "column age holds numbers and is declared a category of text"),
        (category([1]), "text", "column age holds text and is declared a category of whole numbers"),
        (
            date("2020-01-01", "2020-01-31"),
            "zoned",
            "timestamps with a time zone and is declared date: cast it to the local",
        ),
        (boolean(), "text", "declared boolean"),
        (numeric([0, 1]), "other", "a type without bins"),
    ],
)
def test_a_column_of_another_type_is_refused_with_a_hint(attribute: Attribute, held: Any, says: str) -> None:
    with pytest.raises(DataError, match="in a view or a query") as error:
        bins.coded("age", attribute, TableColumn("age", held), 0, "duckdb")
    assert says in str(error.value)


def test_more_values_or_edges_than_a_statement_can_hold_are_refused() -> None:
    for attribute, held, says in (
        (numeric([x / 2 for x in range(5000)]), "number", "whole and evenly spaced"),
        (category(range(2**14 + 1)), "number", "at most 16,384"),
    ):
        with pytest.raises(DataError, match=says):
            bins.coded("x", attribute, TableColumn("x", held), 0, "duckdb")
    even = bins.coded("x", numeric(range(0, 10**6, 10)), TableColumn("x", "number"), 0, "duckdb")
    assert len(even.code.sql()) < 1000  # computed, not written out
