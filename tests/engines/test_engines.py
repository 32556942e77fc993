"""PostgreSQL and Spark put the awkward rows into the very cells DuckDB does. Real engines, local to this machine."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "load"))
sys.path.insert(0, str(Path(__file__).parents[1] / "trusted"))
from test_bins import AWKWARD, ROWS, awkward, awkward_sql, cells, check_awkward
from test_person import IDS, kept, loaded, rows_of

from tacit.errors import DataError
from tacit.load import open_source
from tacit.model.attribute import category, date, integer
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records, read_tally

SECRET = "s3cret-4711"


def execute(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        for sql in statements:
            connection.execute(sql)


VALUES = (("p", "a"), ("p", "a "), ("p", "A"), ("q", None), ("q", "it's"), ("q", ""), (None, "z"))
LISTED = {"a": 2, "A": 1, None: 1, "it's": 1}  # of people with up to 9 rows each: who has no name is left out


def check_values(data: Any, table: str | None = None) -> None:
    """The values of a column, whatever they are, with and without people."""
    source, text = open_source(data, table), Domain({"v": category(["?"])})
    for most in (9, 2):
        found = read_tally(source, text, person="who", rows_per_person=most)
        counts = dict(zip(found.values, found.counts.tolist(), strict=True))
        if most == 9:
            assert counts == LISTED
        assert sum(counts.values()) <= 2 * most
    whole = read_tally(source, Domain({"n": category([0])}))
    assert dict(zip(whole.values, whole.counts.tolist(), strict=True)) == {3: 4, -1: 3}


@pytest.mark.postgres
class TestPostgres:
    def test_values_are_found(self, postgres: str) -> None:
        spelled = ", ".join(
            "(" + ", ".join("NULL" if x is None else "'" + x.replace("'", "''") + "'" for x in row) + f", {n})"
            for row, n in zip(VALUES, (3, 3, 3, 3, -1, -1, -1), strict=True)
        )
        execute(postgres, "CREATE TABLE found (who TEXT, v TEXT, n BIGINT)", f"INSERT INTO found VALUES {spelled}")
        check_values(postgres, "found")

    def test_awkward_rows(self, postgres: str) -> None:
        execute(postgres, *awkward_sql("awkward", double="DOUBLE PRECISION"))
        check_awkward(postgres, "awkward")

    def test_text_compares_byte_by_byte_whatever_the_collation(self, postgres: str) -> None:
        # Catches '=' under a collation that takes upper for lower case; enums are text too.
        execute(
            postgres,
            "CREATE COLLATION sloppy (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            "CREATE TYPE answer AS ENUM ('yes', 'no')",
            'CREATE TABLE "Mixed Case" '
            '(sex TEXT COLLATE sloppy, said answer, "Age" REAL, many VARCHAR(9) COLLATE sloppy)',
            """INSERT INTO "Mixed Case" VALUES ('f', 'yes', 24.9, 'V1'), ('F', 'no', 25, 'v1')""",
        )
        many = category([f"v{i}" for i in range(40)], other="other")
        domain = Domain(
            {"sex": category(["F"], other="other"), "said": category(["no", "yes"]), "age": integer(0, 49, width=25)}
            | {"many": many}
        )
        records = read_records(open_source(postgres, '"Mixed Case"'), domain)
        assert cells(records) == {(1, 1, 0, 40): 1, (0, 0, 1, 1): 1}

    def test_several_words_and_a_view_in_a_schema(self, postgres: str) -> None:
        execute(
            postgres,
            "CREATE SCHEMA archive",
            "CREATE VIEW archive.wide AS SELECT "
            + ", ".join(f"(i * {k + 1}) % 1000 AS c{k}" for k in range(8))
            + " FROM generate_series(0, 4999) AS i",
        )
        domain = Domain({f"c{k}": integer(0, 999) for k in range(8)})
        records = read_records(open_source(postgres, "archive.wide"), domain)
        assert records.rows == 5000
        assert cells(records) == {tuple(i * (k + 1) % 1000 for k in range(8)): 5 for i in range(1000)}

    @pytest.mark.parametrize("kind", IDS)
    def test_the_same_rows_of_each_person(self, postgres: str, kind: str) -> None:
        import psycopg

        column = {"text": "TEXT COLLATE anycase", "whole": "BIGINT", "real": "DOUBLE PRECISION"}[kind]
        rows = rows_of(IDS[kind][0])
        execute(
            postgres,
            "CREATE COLLATION IF NOT EXISTS anycase "
            "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            f"CREATE TABLE visits_{kind} (id {column}, age INTEGER, sex TEXT)",
        )
        with psycopg.connect(postgres) as connection:
            connection.cursor().executemany(f"INSERT INTO visits_{kind} VALUES (%s, %s, %s)", rows)
        for each in (1, 3):
            assert loaded(postgres, each, f"visits_{kind}") == kept(rows, each)

    def test_both_statements_see_one_state_of_the_table(self, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
        execute(postgres, "CREATE TABLE growing AS SELECT 1 AS age")
        from tacit.load import engines as engine

        copied = engine.copied

        def then_grow(connection: Any, sql: str) -> Any:
            found = copied(connection, sql)
            execute(postgres, "INSERT INTO growing VALUES (2)")
            return found

        monkeypatch.setattr(engine, "copied", then_grow)
        domain = Domain({"age": integer(0, 99)})
        assert read_records(open_source(postgres, "growing"), domain).rows == 1
        assert read_records(open_source(postgres, "growing"), domain).rows == 3

    def test_errors_say_nothing_private(self, postgres: str) -> None:
        execute(
            postgres,
            "CREATE TABLE secretive AS SELECT 1 AS age, now() AS seen",
            f"CREATE VIEW failing AS SELECT CAST(word AS INTEGER) AS age FROM (VALUES ('{SECRET}')) AS t(word)",
        )
        domain = Domain({"age": integer(0, 99)})
        day = Domain({"seen": date("2020-01-01", "2020-12-31")})
        for url, table, asked, says in [
            (postgres, "failing", domain, "could not be read"),
            (postgres, "nowhere", domain, "nowhere could not be read: check its name"),
            (postgres, "nowhere; DROP TABLE secretive", domain, "could not be read: check its name"),
            (postgres, "generate_series(1, 9)", domain, "does not name a table"),
            (postgres, "user", domain, "user could not be read: check its name"),
            (postgres, "secretive", day, "time zone and is declared date"),
            (postgres, "secretive", Domain({"agee": integer(0, 99)}), "no column agee; its columns are age, seen."),
            (f"postgresql://tacit:{SECRET}@localhost:1/x", "t", domain, "could not be reached"),
        ]:
            with pytest.raises(DataError) as error:
                read_records(open_source(url, table), asked)
            assert says in str(error.value)
            assert SECRET not in str(error.value)
            assert error.value.__cause__ is None
            assert error.value.__context__ is None
        assert read_records(open_source(postgres, "secretive"), domain).rows == 1


def spark_value(value: Any, kind: str) -> Any:
    """Spark knows no infinite dates: the ends of its calendar lie outside just as well."""
    if value is None or kind not in ("DATE", "TIMESTAMP"):
        return value
    value = {"infinity": "9999-12-31", "-infinity": "0001-01-01"}.get(value, value)
    return dt.date.fromisoformat(value) if kind == "DATE" else dt.datetime.fromisoformat(value)


@pytest.mark.spark
class TestSpark:
    def test_values_are_found(self, spark: Any) -> None:
        rows = [(*row, n) for row, n in zip(VALUES, (3, 3, 3, 3, -1, -1, -1), strict=True)]
        check_values(spark.createDataFrame(rows, "who STRING, v STRING, n BIGINT"))

    def test_awkward_rows(self, spark: Any) -> None:
        from pyspark.sql import types as t

        kinds = {
            "BIGINT": t.LongType(), "DOUBLE": t.DoubleType(), "TEXT": t.StringType(), "CHAR(8)": t.StringType(),
            "BOOLEAN": t.BooleanType(), "DATE": t.DateType(), "TIMESTAMP": t.TimestampNTZType(),
            "DECIMAL(38,18)": t.DecimalType(38, 18), "DECIMAL(18,2)": t.DecimalType(18, 2),
        }  # fmt: skip
        schema = t.StructType([t.StructField(name, kinds[kind]) for name, (kind, _, _) in AWKWARD.items()])
        rows = [
            tuple(spark_value(awkward(name, i)[0], kind) for name, (kind, _, _) in AWKWARD.items()) for i in range(ROWS)
        ]
        check_awkward(spark.createDataFrame(rows, schema).coalesce(1))

    def test_text_compares_byte_by_byte_whatever_the_collation(self, spark: Any) -> None:
        frame = spark.sql(
            "SELECT x COLLATE UTF8_LCASE AS Sex, x COLLATE UTF8_LCASE AS many FROM VALUES ('f'), ('F') AS t(x)"
        )
        many = category(["F", *(f"v{i}" for i in range(40))], other="other")
        records = read_records(open_source(frame), Domain({"sex": category(["F"], other="other"), "many": many}))
        assert cells(records) == {(1, 41): 1, (0, 0): 1}

    def test_several_words(self, spark: Any) -> None:
        frame = spark.range(5000).selectExpr(*(f"(id * {k + 1}) % 1000 AS c{k}" for k in range(8)))
        records = read_records(open_source(frame), Domain({f"c{k}": integer(0, 999) for k in range(8)}))
        assert cells(records) == {tuple(i * (k + 1) % 1000 for k in range(8)): 5 for i in range(1000)}

    @pytest.mark.parametrize("kind", IDS)
    def test_the_same_rows_of_each_person(self, spark: Any, kind: str) -> None:
        column = {"text": "STRING", "whole": "BIGINT", "real": "DOUBLE"}[kind]
        rows = rows_of(IDS[kind][0])
        frame = spark.createDataFrame(rows, f"id {column}, age INT, sex STRING").repartition(3)
        if kind == "text":
            frame = frame.selectExpr("id COLLATE UTF8_LCASE AS id", "age", "sex")
        for each in (1, 3):
            assert loaded(frame, each) == kept(rows, each)

    def test_errors_say_nothing_private(self, spark: Any) -> None:
        frame = spark.sql(
            f"SELECT CAST(word AS INT) AS age, current_timestamp() AS seen FROM VALUES ('{SECRET}') AS t(word)"
        )
        for domain, says in [
            (Domain({"age": integer(0, 99)}), "the Spark DataFrame could not be read."),
            (Domain({"seen": date("2020-01-01", "2020-12-31")}), "time zone and is declared date"),
            (Domain({"name": integer(0, 9)}), "no column name; its columns are age, seen."),
        ]:
            with pytest.raises(DataError) as error:
                read_records(open_source(frame), domain)
            assert says in str(error.value)
            assert SECRET not in str(error.value)
            assert error.value.__cause__ is None
            assert error.value.__context__ is None
        assert not spark.catalog.listTables()
