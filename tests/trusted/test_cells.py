"""What `load/` says is checked: statements that are not row by row, and counts that are not the table's, are refused.

Every refusal here is one check's: without that check the planted mistake would load. See also
`tests/exact/test_cells_sensitivity.py`, which takes the checks' promise at its word over all small tables.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from tacit.errors import DataError
from tacit.load import open_source
from tacit.model.attribute import boolean, category, integer
from tacit.model.domain import Domain
from tacit.trusted import cells
from tacit.trusted.cells import Coded, read_records
from tacit.trusted.records import MAX_ROWS

DOMAIN = Domain({"age": integer(0, 99, width=10), "sex": category(["F", "M"])})
TABLE = pa.table({"id": [1, 1, 1, 2], "age": [5, 15, 25, 25], "sex": ["F", "M", "M", "M"]})
Numbers = list[list[Any]]


@dataclass
class Planted:
    """A source with a mistake in what it says of columns, or in what it counts."""

    data: object = field(default_factory=lambda: TABLE)
    say: Callable[[list[Coded]], Sequence[Coded]] = list
    count: Callable[[Numbers], Numbers] = list
    whose: tuple[str, bool] | None = None
    table: exp.Table | None = None
    ran: bool = False

    def names(self) -> tuple[str, exp.Table, exp.Expr]:
        dialect, table, order = open_source(self.data).names()
        return dialect, self.table or table, order

    def version(self) -> str:
        return open_source(self.data).version()

    def coded(self, domain: Domain, person: str | None) -> tuple[Sequence[Coded], tuple[str, bool] | None]:
        coded, whose = open_source(self.data).coded(domain, person)
        return self.say([tuple(one) for one in coded]), self.whose or whose

    def run(self, statements: Sequence[str], progress: Any = None) -> Numbers:
        self.ran = True
        found = open_source(self.data).run(statements, progress)
        return self.count([[np.array(column) for column in columns] for columns in found])


def codes(text: str) -> Callable[[list[Coded]], Sequence[Coded]]:
    """The code of `age`, in DuckDB's words."""
    return lambda coded: [(coded[0][0], parse_one(text, dialect="duckdb"), coded[0][2]), *coded[1:]]


def values(text: str) -> Callable[[list[Coded]], Sequence[Coded]]:
    """The value of `age`, in DuckDB's words."""
    return lambda coded: [(parse_one(text, dialect="duckdb"), coded[0][1], coded[0][2]), *coded[1:]]


def listing(*entries: exp.Expr) -> Callable[[list[Coded]], Sequence[Coded]]:
    """A list that `age` is looked up in."""
    return lambda coded: [(coded[0][0], parse_one("COALESCE(t0.code, 0)"), entries), *coded[1:]]


def double(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "double")


def test_without_a_mistake_it_loads() -> None:
    # So that what is refused below is refused for its mistake.
    assert read_records(Planted(), DOMAIN).rows == 4
    assert read_records(Planted(say=codes("CAST(FLOOR(data.v0 / 10) AS BIGINT)")), DOMAIN).rows == 4
    assert read_records(Planted(say=listing(double("5"), double("25"))), DOMAIN).rows == 4
    assert read_records(Planted(), DOMAIN, person="id", rows_per_person=2).rows == 3


def test_no_code_beyond_an_attribute_is_taken_for_a_cell() -> None:
    """Whatever a dialect's expression comes to: the two reserved codes, all above them, and bits that no slot has.

    A code that spills into the next attribute's bits is one of that attribute: it costs accuracy, since what decides on
    a row's cell are that row's values still, and it is refused wherever the sum is none of its codes.
    """
    size = DOMAIN["age"].size
    assert read_records(Planted(say=codes(str(size - 1))), DOMAIN).rows == 4
    for code in (*range(size, 2 ** DOMAIN.slots[0].bits), 2**40):
        with pytest.raises(DataError):
            read_records(Planted(say=codes(str(code))), DOMAIN)


NOT_ROW_WISE = {
    "an aggregate": codes("SUM(data.v0)"),
    "a window": codes("ROW_NUMBER() OVER (ORDER BY data.v0)"),
    "a windowed count": codes("COUNT(*) OVER ()"),
    "a rank among the rows": codes("NTILE(3) OVER (ORDER BY data.v0)"),
    "a neighbouring row": codes("LAG(data.v0) OVER (ORDER BY data.v0)"),
    "chance": codes("FLOOR(RANDOM() * 2)"),
    "an id drawn at random": codes("UUID()"),
    "the clock": codes("EXTRACT(YEAR FROM NOW())"),
    "the day": codes("CASE WHEN CURRENT_DATE > CAST('2024-01-01' AS DATE) THEN 0 ELSE 1 END"),
    "a counter": codes("NEXTVAL('s')"),
    "a subquery": codes("(SELECT MAX(age) FROM tacit_source)"),
    "another table": codes("CASE WHEN EXISTS(SELECT 1 FROM secrets) THEN 0 ELSE 1 END"),
    "a membership": codes("CASE WHEN data.v0 IN (SELECT age FROM tacit_source) THEN 0 ELSE 1 END"),
    "a function nobody knows": codes("SURPRISE(data.v0)"),
    "another attribute's value": codes("data.v1"),
    "another attribute's list": codes("t1.code"),
    "a column of another table": codes("secrets.v0"),
    "a column of the table, above its values": codes("age"),
    "a deeper name": codes('"x"."data".v0'),
    "a type with a time zone": codes("CAST(CAST(data.v0 AS TIMESTAMPTZ) AS BIGINT)"),
    "a cast that forgives": codes("TRY_CAST(data.v0 AS BIGINT)"),
    "raw words": lambda coded: [(coded[0][0], exp.var("(SELECT 1)"), coded[0][2]), *coded[1:]],
    "a raw number": lambda coded: [(coded[0][0], exp.Literal.number("(SELECT 1)"), coded[0][2]), *coded[1:]],
    "a raw name": lambda coded: [(exp.column("age FROM secrets --"), coded[0][1], coded[0][2]), *coded[1:]],
    "the row's place in the table": values('"rowid"'),
    "another column": values('"id"'),
    "a column from elsewhere": values('secrets."age"'),
    "a value by aggregate": values('MAX("age") OVER ()'),
    "a list of two that are the same": listing(double("5"), double("5")),
    "a list that looks at rows": listing(parse_one("data.v0")),
    "a list from a table": listing(parse_one("(SELECT 1)")),
}  # fmt: skip


@pytest.mark.parametrize("mistake", NOT_ROW_WISE)
def test_what_is_not_row_by_row_is_refused_before_anything_runs(mistake: str) -> None:
    planted = Planted(say=NOT_ROW_WISE[mistake])
    with pytest.raises(DataError, match="age would be read from more than one row"):
        read_records(planted, DOMAIN)
    assert not planted.ran


@pytest.mark.parametrize(
    "table",
    [exp.to_table("secrets"), exp.Table(this=exp.Anonymous(this="read_csv", expressions=[exp.Literal.string("x")]))],
    ids=["not quoted", "a function"],
)
def test_a_table_is_a_quoted_name(table: exp.Table) -> None:
    with pytest.raises(DataError, match="the table would be read"):
        read_records(Planted(table=table), DOMAIN)


def test_nothing_but_the_name_of_a_table_is_used() -> None:
    two = open_source(TABLE).names()[1].as_("other")
    two.append("joins", exp.Join(this=exp.to_table("secrets")))
    assert read_records(Planted(table=two), DOMAIN).rows == 4


def test_a_person_is_told_by_the_column_that_the_owner_named() -> None:
    # Any other column might tell the rows of one person apart, so that more of them would be counted.
    for whose in (("age", False), ("rowid", False)):
        planted = Planted(whose=whose)
        with pytest.raises(DataError, match="the person would be read"):
            read_records(planted, DOMAIN, person="id", rows_per_person=2)
        assert not planted.ran


def test_attributes_are_as_many_as_declared() -> None:
    for say in (lambda coded: coded[:1], lambda coded: [*coded, coded[0]]):
        with pytest.raises(ValueError, match="zip"):
            read_records(Planted(say=say), DOMAIN)  # type: ignore[arg-type]


def counted(change: Callable[[list[Any]], list[Any]]) -> Callable[[Numbers], Numbers]:
    """A mistake in what is counted by cell; the control stays."""
    return lambda found: [change(found[0]), *found[1:]]


WRONG_COUNTS = {
    "one too many": counted(lambda found: [found[0], found[1] + (found[0] == found[0][0])]),
    "one too few": counted(lambda found: [found[0], found[1] - (found[1] == 2)]),
    "a cell lost": counted(lambda found: [found[0][1:], found[1][1:]]),
    "a cell twice": counted(lambda found: [np.repeat(found[0], 2), np.repeat(found[1], 2)]),
    "a cell in two parts": counted(
        lambda found: [np.append(found[0], found[0][found[1] == 2]), np.append(found[1] - (found[1] == 2), 1)]
    ),
    "a negative count that adds up": counted(lambda found: [np.append(found[0], [9, 8]), np.append(found[1], [-1, 1])]),
    "an empty cell": counted(lambda found: [np.append(found[0], 9), np.append(found[1], 0)]),
    "a bit beyond the codes": counted(lambda found: [found[0] | 1 << 40, found[1]]),
    "a negative word": counted(lambda found: [found[0] | -(2**63), found[1]]),
    "a word too many": counted(lambda found: [found[0], found[0], found[1]]),
    "fewer words than counts": counted(lambda found: [found[0][:-1], found[1]]),
    "another control": lambda found: [found[0], [found[1][0] - 1]],
}


@pytest.mark.parametrize("mistake", WRONG_COUNTS)
def test_counts_that_are_not_the_table_s_are_refused(mistake: str) -> None:
    with pytest.raises(DataError, match="not those of the table") as error:
        read_records(Planted(count=WRONG_COUNTS[mistake]), DOMAIN)
    assert not any(digit in str(error.value) for digit in "0123456789")


@pytest.mark.parametrize(
    ("code", "says"),
    [("10", "age has values outside"), ("11", "age has missing values"), ("12", "age has values outside"),
     ("15", "age has values outside"), ("NULL", "not those"), ("-1", "age has values outside"), ("1000", "not those")],
)  # fmt: skip
def test_a_code_that_is_not_declared_is_refused(code: str, says: str) -> None:
    # 10 and 11 are reserved; the others have no meaning, though some fit into the bits of an age.
    with pytest.raises(DataError, match=says):
        read_records(Planted(say=codes(f"CASE WHEN data.v0 >= 6 THEN {code} ELSE 0 END")), DOMAIN)


def test_no_code_at_all_is_a_number_that_is_no_cell() -> None:
    # What stands in the memory of a NULL is for each engine to choose.
    seen: Numbers = []
    with pytest.raises(DataError, match="not those of the table"):
        read_records(Planted(say=codes("NULL"), count=lambda found: seen.extend(found) or found), DOMAIN)
    assert seen[0][0].tolist() == [-1]


def test_a_list_whose_entries_are_the_same_to_the_engine_alone_is_refused() -> None:
    # Written differently, so that the statement looks right; a row of 5 meets both and is counted twice.
    planted = Planted(say=listing(double("5"), double("5.0")))
    with pytest.raises(DataError, match="not those of the table"):
        read_records(planted, DOMAIN)
    assert planted.ran


def test_more_rows_of_a_person_than_declared_are_refused() -> None:
    def unbounded(found: Numbers) -> Numbers:
        return [open_source(TABLE).run(cells._statements(open_source(TABLE), DOMAIN, None, 1))[0], found[1]]

    assert read_records(Planted(count=unbounded), DOMAIN, person="id", rows_per_person=3).rows == 4
    for rows_per_person in (1, 2):
        with pytest.raises(DataError, match="not those of the table"):
            read_records(Planted(count=unbounded), DOMAIN, person="id", rows_per_person=rows_per_person)


def test_a_bin_may_be_wrong_but_it_is_a_bin() -> None:
    # The mistake that is left to load/: rows in other cells than they should be. It costs accuracy.
    assert read_records(Planted(say=codes("3")), DOMAIN).table(["age"]).tolist() == [0, 0, 0, 4] + [0] * 6


def told(words: list[Any], counts: Any) -> Planted:
    """A source that says it counted whatever it is told to."""
    return Planted(count=lambda _: [[*words, counts], [np.array([int(counts.sum())])]])


def test_too_many_rows_or_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words, counts = [np.array([0, 1])], np.array([MAX_ROWS // 2, MAX_ROWS // 2])
    with pytest.raises(DataError, match="rows or more"):
        read_records(told(words, counts), DOMAIN)
    assert read_records(told(words, counts - 1), DOMAIN).rows == MAX_ROWS - 2
    monkeypatch.setattr(cells, "MAX_HELD_CELLS", 1)
    with pytest.raises(DataError, match="coarser bins or fewer attributes"):
        read_records(told(words, counts - 1), DOMAIN)


def test_cells_of_several_words_are_distinct_as_a_whole() -> None:
    # Two cells may share a word; that they share every word is noticed wherever they stand.
    domain = Domain({f"c{i}": integer(0, 2**20 - 1) for i in range(4)})
    second, counts = np.array([1, 2, 1]), np.array([1, 1, 1])
    for first, same in (([1, 1, 2], False), ([1, 1, 1], True)):
        planted = told([np.array(first), second], counts)
        planted.data = pa.table({name: [1] for name in domain})
        if same:
            with pytest.raises(DataError, match="not those of the table"):
                read_records(planted, domain)
        else:
            assert len(read_records(planted, domain)._counts) == 3


WEIRD = "we\"ird 'na`me"


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
@pytest.mark.parametrize("person", [None, WEIRD])
def test_the_statements_name_only_the_given_table(dialect: str, person: str | None) -> None:
    # Catches a name that is left over, and a column that is not quoted.
    class Elsewhere(Planted):
        def names(self) -> tuple[str, exp.Table, exp.Expr]:
            return dialect, exp.table_("people", db="archive", quoted=True), exp.var("C")

    domain = Domain({WEIRD: boolean(other="other")})
    counting, control = cells._statements(Elsewhere(pa.table({WEIRD: [1.0]})), domain, person, 1)
    for sql in (counting, control):
        tables = {table.sql() for table in parse_one(sql, dialect=dialect).find_all(exp.Table)}
        assert tables == {'"archive"."people"'}
    quoted = "`we\"ird 'na``me`" if dialect == "spark" else '"we""ird \'na`me"'
    assert quoted in counting
    assert (quoted in control) == (person is not None)


def test_importing_the_records_imports_no_engine() -> None:
    program = "import sys, tacit.trusted.records; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not loaded & {"duckdb", "sqlglot", "psycopg", "pyspark", "pyarrow", "pandas"}
    assert not any(name.startswith("tacit.load") for name in run.stdout.split())
