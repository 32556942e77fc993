"""Wherever the rows are, they give the same cells; whatever goes wrong, no private value is in the error."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sqlglot import exp

from tacit.errors import DataError
from tacit.load import Source, open_source
from tacit.load.columns import TableColumn
from tacit.load.engines import CsvFile, DuckDB
from tacit.model.attribute import boolean, category, date, integer, numeric
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

SECRET = "s3cret-4711"
DOMAIN = Domain(
    {
        "Age": integer(17, 90, width=5, missing="unknown"),
        "sex": category(["F", "M", "01"], other="other", missing="unknown"),
        "income": numeric([0, 10_000, 25_000], clamp=True, missing="unknown"),
        "married": boolean(missing="unknown"),
        "born": date("1950-01-01", "2009-12-31", by="year", missing="unknown"),
    }
)
ROWS: list[tuple[Any, ...]] = [
    (17, "F", -5.0, True, "1950-01-01"),
    (21, "M", 9999.99, False, "1999-12-31"),
    (22, "01", 10_000.0, None, "2000-02-29"),
    (None, None, None, None, None),
    (90, "F ", 1e12, True, "2009-12-31"),
    (90, "é'\"", 1e12, True, "2009-12-31"),
    (17, "F", -5.0, True, "1950-01-01"),
]
CELLS = {
    (0, 0, 0, 1, 0): 2,
    (0, 1, 0, 0, 49): 1,
    (1, 2, 1, 2, 50): 1,
    (15, 4, 2, 2, 60): 1,
    (14, 0, 1, 1, 59): 1,
    (14, 3, 1, 1, 59): 1,
}


def cells(records: Records) -> dict[tuple[int, ...], int]:
    codes = zip(*(codes.tolist() for codes in records._codes.values()), strict=True)
    return dict(zip(codes, records._counts.tolist(), strict=True))


def arrow() -> pa.Table:
    columns = list(zip(*ROWS, strict=True))
    born = [None if day is None else pd.Timestamp(day).date() for day in columns[4]]
    return pa.table({"age": columns[0], "sex": columns[1], "income": columns[2], "married": columns[3], "born": born})


def written(folder: Path) -> str:
    connection = duckdb.connect()
    connection.register("rows", arrow())
    path = str(folder / "it's people.csv")
    connection.execute("COPY (SELECT * FROM rows) TO '" + path.replace("'", "''") + "' (HEADER)")
    return path


def gzipped(folder: Path) -> str:
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(Path(written(folder)).read_bytes()))
    return str(path)


def tabs(folder: Path) -> Path:
    path = folder / "people.tsv"
    arrow().to_pandas().to_csv(path, sep="\t", index=False)
    return path


def parquet(folder: Path) -> str:
    pyarrow.parquet.write_table(arrow(), folder / "people.parquet")
    return str(folder / "people.parquet")


def parts(folder: Path) -> str:
    (folder / "parts" / "deep").mkdir(parents=True)
    pyarrow.parquet.write_table(arrow().slice(0, 3), folder / "parts" / "a.parquet")
    pyarrow.parquet.write_table(arrow().slice(3), folder / "parts" / "deep" / "b.parquet")
    return str(folder / "parts")


def pattern(folder: Path) -> str:
    for i in range(2):
        pyarrow.parquet.write_table(arrow().slice(4 * i, 4), folder / f"part{i}.parquet")
    return str(folder / "part*.parquet")


def database(folder: Path) -> str:
    path = folder / "people.db"
    with duckdb.connect(str(path)) as connection:
        rows = arrow()
        connection.register("rows", rows)
        connection.execute('CREATE SCHEMA old; CREATE TABLE old."My People" AS SELECT * FROM rows')
    return str(path)


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow().__arrow_c_stream__(requested_schema)


def categorical(folder: Path) -> pd.DataFrame:
    frame = arrow().to_pandas()
    return frame.assign(sex=frame.sex.astype("category"), born=pd.to_datetime(frame.born))


SOURCES: dict[str, Callable[[Path], object]] = {
    "csv": written,
    "csv.gz": gzipped,
    "tsv": tabs,
    "parquet": parquet,
    "a folder of parquet": parts,
    "a pattern": pattern,
    "query": lambda folder: f"SELECT * EXCLUDE (note), FROM (SELECT *, 1 AS note FROM '{parquet(folder)}')",
    "relation": lambda folder: duckdb.connect().read_parquet(parquet(folder)),
    "pandas": lambda folder: arrow().to_pandas(),
    "pandas categories and timestamps": categorical,
    "polars": lambda folder: pl.from_arrow(arrow()),
    "pyarrow": lambda folder: arrow(),
    "record batches": lambda folder: arrow().to_reader(),
    "arrow stream": lambda folder: Stream(),
    "source": lambda folder: open_source(arrow()),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_cells(name: str, tmp_path: Path) -> None:
    # Catches: '01' or 'F' guessed to be a number or a truth value, a column looked up by exact case, lost parts.
    assert cells(read_records(open_source(SOURCES[name](tmp_path)), DOMAIN)) == CELLS


def test_a_table_of_a_database_file(tmp_path: Path) -> None:
    path = database(tmp_path)
    assert cells(read_records(open_source(path, 'old."My People"'), DOMAIN)) == CELLS
    with duckdb.connect(path) as connection:  # it was opened read-only and let go
        assert connection.execute('SELECT COUNT(*) FROM old."My People"').fetchone() == (len(ROWS),)
    for table, says in ((None, "say which table"), ("nowhere", "table nowhere of people.db could not be read.")):
        with pytest.raises(DataError, match=says):
            read_records(open_source(path, table), DOMAIN)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_file_whose_name_is_a_pattern_stands_for_itself_alone(tmp_path: Path, ending: str) -> None:
    def written(name: str, *sexes: str) -> str:
        path, rows = str(tmp_path / f"{name}.{ending}"), ", ".join(f"('{sex}')" for sex in sexes)
        form = "(FORMAT csv, DELIMITER '\t')" if ending == "tsv" else ""
        duckdb.execute(f"COPY (SELECT * FROM (VALUES {rows}) AS t(sex)) TO '{path}' {form}")
        return path

    domain = Domain({"sex": category(["F", "M"])})
    written("people1", "M", "M", "M")
    assert read_records(open_source(written("people[1]", "F", "M")), domain).rows == 2
    assert read_records(open_source(str(tmp_path / f"people[12].{ending}")), domain).rows == 3  # there is no such file


def test_describe_tells_names_and_coarse_types(tmp_path: Path) -> None:
    frame = categorical(tmp_path).assign(
        zoned=pd.Timestamp("2020-01-01", tz="UTC"), none=None, list=[[1]] * len(ROWS), cents=pa.scalar(1).as_py()
    )
    source = open_source(frame)
    assert isinstance(source, Source)
    assert source.describe() == (
        TableColumn("age", "number", fractions=True),  # pandas has no whole numbers with gaps
        TableColumn("sex", "text"),
        TableColumn("income", "number", fractions=True),
        TableColumn("married", "boolean"),
        TableColumn("born", "timestamp"),
        TableColumn("zoned", "zoned"),
        TableColumn("none", "empty"),
        TableColumn("list", "other"),
        TableColumn("cents", "number"),
    )
    relation = duckdb.sql(
        "SELECT CAST(1 AS DECIMAL(9,2)) AS d, CAST('[' AS ENUM('[', 'x')) AS e, [1.5] AS l, TIME '1:00' AS t"
    )
    assert [column.type for column in open_source(relation).describe()] == ["decimal", "text", "other", "other"]


def test_a_column_without_any_value_is_missing_everywhere() -> None:
    frame = pd.DataFrame({"sex": [None, None]})
    assert cells(read_records(open_source(frame), Domain({"sex": category(["F"], missing="unknown")}))) == {(1,): 2}


def refused(data: object, domain: Domain = DOMAIN, table: str | None = None) -> str:
    """The sentence of the refusal, after a look for the secret in everything the error carries."""
    with pytest.raises(DataError) as caught:
        read_records(open_source(data, table), domain)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in str(error) + repr(error)
    return error.sentence


def file(folder: Path, name: str, text: str | bytes) -> str:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder / name)


AGE = Domain({"age": integer(0, 99)})


def test_a_file_that_cannot_be_read_is_named_and_nothing_in_it(tmp_path: Path) -> None:
    assert refused(file(tmp_path, "a.parquet", f"PAR1{SECRET}"), AGE) == "a.parquet could not be read as Parquet."
    assert refused(file(tmp_path, "a.csv", b"age,name\n1,\xff\xfe" + SECRET.encode() + b'"\n2,"x\n'), AGE).startswith(
        "a.csv could"
    )
    assert refused(file(tmp_path, "b.csv.gz", SECRET), AGE) == "b.csv.gz could not be read as CSV."
    assert refused(file(tmp_path, "a.xlsx", SECRET), AGE).startswith(
        "a.xlsx is not a kind of file that Tacit reads; give"
    )
    assert refused(str(tmp_path / "none.csv"), AGE) == f"there is no file {tmp_path / 'none.csv'}."
    assert refused(str(tmp_path / "none*.csv"), AGE) == "none*.csv could not be read as CSV."
    assert refused("https://example.org/a.csv", AGE).startswith("a.csv is not a local file")
    assert refused(f"SELECT CAST('{SECRET}' AS INT) AS age", AGE) == "the query could not be read."
    assert refused("SELECT age FRM x", AGE) == "the query could not be read."
    assert refused({"age": [1]}, AGE).startswith("data of type dict is not accepted; give a CSV")
    assert (
        refused(file(tmp_path, "c.csv", "age\n1\n"), AGE, "people")
        == "c.csv is not a database, so it has no table people."
    )
    assert refused("postgresql://localhost/x", AGE).startswith("a PostgreSQL address needs a table name")


def test_a_csv_value_of_another_kind_is_told_by_its_column(tmp_path: Path) -> None:
    rows = "".join(f"{i % 100},F,2020-01-01\n" for i in range(30_000))  # beyond what the engine looks at to guess types
    path = file(tmp_path, "a.csv", f"age,sex,day\n{rows}{SECRET},F,2020-01-01\n")
    assert refused(path, AGE) == "column age of a.csv holds something that is not a number."
    day = Domain({"day": date("2020-01-01", "2020-12-31")})
    path = file(tmp_path, "b.csv", f"age,sex,day\n{rows}1,F,{SECRET}\n")
    assert refused(path, day) == "column day of b.csv holds something that is not a date like 2024-05-31."
    path = file(tmp_path, "c.csv", "age,sex,day\n1,F,01/02/2020\n")  # January or February?
    assert refused(path, day) == "column day of c.csv holds something that is not a date like 2024-05-31."
    assert read_records(open_source(path), AGE).rows == 1


def test_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [SECRET], "when": [pd.Timestamp("2020-01-01", tz="UTC")]})
    assert (
        refused(frame, Domain({"name": category(["x"])})) == "the table has no column name; its columns are age, when."
    )
    assert refused(frame, AGE).startswith("column age holds text and is declared integer: cast it")
    assert "time zone" in refused(frame, Domain({"when": date("2020-01-01", "2020-12-31")}))
    two = pa.table({"Age": [1], "age": [2]})  # the engine renames the second; it must not be taken for the first
    assert refused(two, AGE).startswith("the table has several columns like age")
    assert cells(read_records(open_source(two), Domain({"Age": integer(0, 99)}))) == {(1,): 1}
    assert refused(pa.table({"age_1": [1]}), AGE) == "the table has no column age; its columns are age_1."


def test_rows_that_fall_nowhere_are_refused_without_a_value_or_a_count() -> None:
    frame = pd.DataFrame({"age": [4711.0, 5, None], "sex": [SECRET, "F", "F"]})
    domain = Domain({"age": integer(0, 99), "sex": category(["F"])})
    assert refused(frame, domain) == (
        'age has values outside what is declared (0 to 99): add other = "other" or clamp = true to it, '
        "or declare more; "
        'age has missing values and declares no label for them: add missing = "unknown" to it; '
        'sex has values outside what is declared (F): add other = "other" to it, or declare more.'
    )
    assert refused(frame.head(0), domain) == "the table has no rows."


def test_csv_and_parquet_need_neither_pandas_nor_pyarrow(tmp_path: Path) -> None:
    # Catches an import of an extra in the core.
    program = (
        "import sys; sys.modules['pandas'] = sys.modules['pyarrow'] = sys.modules['psycopg'] = None\n"
        "from tacit.model.domain import Domain; from tacit.model.attribute import integer\n"
        "from tacit.load import open_source; from tacit.trusted.cells import read_records\n"
        "domain = Domain({'age': integer(0, 99, missing='unknown')})\n"
        "for path in sys.argv[1:]: print(read_records(open_source(path), domain).rows)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, written(tmp_path), parquet(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["7", "7"]


class Stumbling:
    """An engine that says what it stumbled over, whatever it is asked."""

    dialect, table, failure = "duckdb", exp.table_("t", quoted=True), "the table could not be read."
    joins = ()

    def __init__(self, error: Exception) -> None:
        self.error = error

    def columns(self, *_: object) -> Any:
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise self.error  # noqa: B904

    run = columns


@pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyError(SECRET), DataError("a public sentence.")])
@pytest.mark.parametrize(
    "ask", [Source.describe, lambda source: source.coded(AGE, None), lambda source: source.run(["SELECT 1"])]
)
def test_the_door_lets_public_sentences_through_and_nothing_else(
    error: Exception, ask: Callable[[Source], Any]
) -> None:
    with pytest.raises(DataError) as caught:
        ask(Source(Stumbling(error)))  # type: ignore[arg-type]
    assert caught.value.sentence == ("a public sentence." if isinstance(error, DataError) else Stumbling.failure)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_query_sees_no_python_variable_and_fetches_no_extension() -> None:
    frame = pd.DataFrame({"age": [1]})
    assert len(frame) == 1
    assert refused("SELECT * FROM frame", AGE) == "the query could not be read."
    assert refused("SELECT * FROM 'https://example.org/a.parquet'", AGE) == "the query could not be read."


@pytest.mark.parametrize(
    "more", ["; COPY (SELECT 1) TO '{}'", "; ATTACH '{}'", "; SELECT 2", "; CREATE TABLE t (x INT); SELECT 1 AS age"]
)
def test_a_query_is_one_statement_that_only_reads(tmp_path: Path, more: str) -> None:
    written = tmp_path / "written"
    with pytest.raises(DataError, match="one SELECT statement"):
        read_records(open_source("SELECT 1 AS age" + more.format(written)), AGE)
    assert not written.exists()
    assert read_records(open_source("WITH a AS (SELECT 1 AS age) SELECT * FROM a;"), AGE).rows == 1
    assert read_records(open_source("FROM (SELECT 1 AS age)"), AGE).rows == 1


def test_a_csv_file_is_made_a_relation_once(tmp_path: Path) -> None:
    # Making one guesses what its first rows look like; a second one, as declared, took a tenth of a short command.
    path = tmp_path / "p.tsv"
    path.write_text("age\tname\n30\tone, two\n")
    source = open_source(str(path))
    assert isinstance(source.engine, DuckDB)
    made, relate = list[dict[str, str]](), source.engine._relate

    def noted(connection: Any, types: dict[str, str]) -> Any:
        made.append(types)
        return relate(connection, types)

    source.engine._relate = noted
    source.coded(Domain({"age": integer(0, 99)}), None)
    assert made == [{"age": "DOUBLE"}]


def test_how_a_csv_file_is_divided_is_guessed_once(tmp_path: Path) -> None:
    # Each guess took a thirtieth of a second of `tacit ask`, and there were four.
    (tmp_path / "a.csv").write_text("name;age\n'one; two';30\n'it''s';31\n" + "x;32\n" * 50)
    told, file = list[dict[str, Any]](), CsvFile(str(tmp_path / "a.csv"))

    class Noted:
        execute = staticmethod(duckdb.execute)

        def read_csv(self, path: str, **form: Any) -> Any:
            told.append(form)
            return duckdb.read_csv(path, **form)

    assert file.header(Noted()) == ["name", "age"]
    rows = file.relation(Noted(), {"age": "DOUBLE"}).fetchall()
    assert rows[:2] == [("one; two", 30.0), ("it's", 31.0)]
    assert told == [{"header": True, "dtype": {"age": "DOUBLE"}, "sep": ";", "quotechar": "'", "escapechar": "'"}]
    (tmp_path / "b.csv").write_text((tmp_path / "a.csv").read_text())
    several = CsvFile(str(tmp_path / "*.csv"))  # of several files nothing is told beforehand, and they are read
    assert several.header(Noted()) == ["name", "age"]
    assert len(several.relation(Noted(), {"age": "DOUBLE"}).fetchall()) == 104
