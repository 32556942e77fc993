"""PostgreSQL and Spark join several tables as DuckDB does. Real engines, local to this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "load"))
from test_star import BIG, CLINICS, INEXACT, JOINED, JOINS, KEYED, PATIENTS, TABLES, TWO_KINDS, UUIDS, cells, star

import tacit
from tacit.errors import DataError
from tacit.load import open_source
from tacit.load.star import Join, Star

NAMES = ("visits", "patients", "clinics", "regions")
SHARED = "clinics: several of its rows have the same clinic"


@pytest.mark.postgres
class TestPostgres:
    def of(self, url: str, schema: str, *more: str) -> Star:
        """The tables of the star in a schema of their own."""
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            for name, table in zip(NAMES, TABLES, strict=True):
                kinds = ["BIGINT" if kind.kind == "i" else "TEXT" for kind in table.dtypes]
                columns = ", ".join(f"{column} {kind}" for column, kind in zip(table, kinds, strict=True))
                connection.execute(f"CREATE TABLE {schema}.{name} ({columns})")
                spots = ", ".join(["%s"] * len(table.columns))
                for row in table.itertuples(index=False):
                    values = [None if value != value else value for value in row]
                    connection.execute(f"INSERT INTO {schema}.{name} VALUES ({spots})", values)
            for statement in more:
                connection.execute(statement)
        joins = [Join(**{**join, "table": f"{schema}.{join['name']}"}) for join in JOINS]  # type: ignore[arg-type]
        return Star(url, joins, f"{schema}.visits")

    def test_they_are_joined_as_duckdb_does(self, postgres: str) -> None:
        data = self.of(postgres, "plain")
        assert cells(data) == JOINED
        assert open_source(data).rows() == 7
        names = [column.name for column in open_source(data).describe()]
        assert names == ["patient", "clinic", "cost", "sex", "patients_cost", "region", "size"]

    def test_a_key_that_two_rows_share_is_refused(self, postgres: str) -> None:
        data = self.of(postgres, "twice", "INSERT INTO twice.clinics VALUES (3, 'n')")
        with pytest.raises(DataError, match=SHARED):
            cells(data)
        with pytest.raises(DataError, match="patients holds people"):
            cells(data, person=None, rows_per_person=1)

    def test_a_column_whose_name_differs_in_case_is_another_person(self, postgres: str) -> None:
        import psycopg

        with psycopg.connect(postgres) as connection:
            connection.execute("DROP TABLE IF EXISTS cased_fact, cased_people")
            connection.execute("""CREATE TABLE cased_fact AS SELECT 1 AS id, 2 AS "ID" """)
            connection.execute("CREATE TABLE cased_people AS SELECT 2 AS key, 'F' AS sex")
        domain = tacit.Domain({"sex": tacit.category(["F", "M"], missing="none")})
        for on, person in (("ID", "id"), ("id", "ID")):
            joins = [Join(name="people", table="cased_people", on=on, to="key", holds="person")]
            with pytest.raises(DataError, match="people holds people"):
                cells(Star(postgres, joins, "cased_fact"), domain, person=person, rows_per_person=1)
            assert sum(cells(Star(postgres, joins, "cased_fact"), domain, person=on, rows_per_person=1).values()) == 1

    def keyed(self, url: str, on: str, value: Any, key: str, *keys: Any) -> Any:
        """What is counted of one row, and of two keys that it may meet."""
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE IF EXISTS keyed_fact, keyed_keys")
            connection.execute(f"CREATE TABLE keyed_fact (v TEXT, key {on})")
            connection.execute(f"INSERT INTO keyed_fact VALUES ('x', '{value}')")
            connection.execute(f"CREATE TABLE keyed_keys (key {key}, kind TEXT)")
            for one, kind in zip(keys, "xy", strict=True):
                connection.execute(f"INSERT INTO keyed_keys VALUES ('{one}', '{kind}')")
        joins = [Join(name="keys", table="keyed_keys", on="key", holds="public")]
        return cells(Star(url, joins, "keyed_fact"), KEYED, person=None)

    def test_keys_whose_types_are_compared_inexactly_are_refused(self, postgres: str) -> None:
        pairs: list[tuple[Any, ...]] = [
            ("FLOAT8", BIG, "BIGINT", BIG, BIG + 1, INEXACT),
            ("BIGINT", BIG, "FLOAT8", BIG, 1, INEXACT),
            ("REAL", 2**24, "INTEGER", 2**24, 2**24 + 1, INEXACT),
            ("NUMERIC", 1, "INTEGER", 1, 2, INEXACT),
            ("DATE", "2020-01-01", "TIMESTAMP", "2020-01-01", "2020-01-02", TWO_KINDS),
            ("INTEGER", 1, "TEXT", "1", "01", TWO_KINDS),
            ("UUID", UUIDS[0], "TEXT", *UUIDS, TWO_KINDS),
        ]
        for *given, said in pairs:
            with pytest.raises(DataError, match=said):
                self.keyed(postgres, *given)

    def test_keys_of_one_kind_are_told_apart_exactly(self, postgres: str) -> None:
        import psycopg

        with psycopg.connect(postgres) as connection:
            icu = connection.execute("SELECT 1 FROM pg_collation WHERE collprovider = 'i' LIMIT 1").fetchone()
            if icu:  # in which a and A are equal
                made = "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
                connection.execute(f"CREATE COLLATION IF NOT EXISTS anycase {made}")
        pairs: list[tuple[Any, ...]] = [
            ("SMALLINT", 1, "BIGINT", 1, 2),
            ("DATE", "2020-01-01", "DATE", "2020-01-01", "2020-01-02"),
            ("UUID", UUIDS[0], "UUID", UUIDS[0], UUIDS[0][:-1] + "2"),
            ("BOOLEAN", True, "BOOLEAN", True, False),
            ("TEXT", "a", "TEXT", "a", "a "),
            ("CHAR(3)", "a", "TEXT", "a", "a "),
        ]
        if icu:
            pairs += [("TEXT COLLATE anycase", "a", "TEXT COLLATE anycase", "a", "A")]
        for given in pairs:
            assert self.keyed(postgres, *given) == {("x", "x"): 1}, given
        for on, key in (("TEXT", "CHAR(3)"), ("CHAR(3)", "CHAR(5)")):  # whose blanks at the end are none
            with pytest.raises(DataError, match="several of its rows have the same key"):
                self.keyed(postgres, on, "a", key, "a", "a ")

    def test_other_servers_and_files_are_refused(self, postgres: str) -> None:
        joins = [Join(name="clinics", source=CLINICS, on="clinic", holds="public")]
        with pytest.raises(DataError, match="within one engine"):
            open_source(Star(postgres, joins, "visits"))


@pytest.mark.spark
def test_spark_joins_as_duckdb_does(spark: Any) -> None:
    def frames(*tables: Any) -> list[Any]:
        return [spark.createDataFrame(table.astype(object).where(table.notna(), None)) for table in tables]

    assert cells(star(frames(*TABLES))) == JOINED
    twice = [TABLES[0], PATIENTS, CLINICS.loc[[0, 1, 2, 2]], TABLES[3]]
    with pytest.raises(DataError, match=SHARED):
        cells(star(frames(*twice)))


@pytest.mark.spark
def test_spark_tells_keys_apart_exactly(spark: Any) -> None:
    def keyed(on: str, value: Any, key: str, *keys: Any) -> Any:
        fact = spark.sql(f"SELECT 'x' AS v, CAST('{value}' AS {on}) AS key")
        rows = [f"SELECT CAST('{one}' AS {key}) AS key, '{kind}' AS kind" for one, kind in zip(keys, "xy", strict=True)]
        joins = [Join(name="keys", source=spark.sql(" UNION ALL ".join(rows)), on="key", holds="public")]
        return cells(Star(fact, joins), KEYED, person=None)

    refused: list[tuple[Any, ...]] = [
        ("INT", 1, "STRING", "1", "01", TWO_KINDS),
        ("DATE", "2020-01-01", "STRING", "2020-01-01", "2020-1-1", TWO_KINDS),
        ("DATE", "2020-01-01", "TIMESTAMP", "2020-01-01", "2020-01-02", TWO_KINDS),
        ("DOUBLE", BIG, "BIGINT", BIG, BIG + 1, INEXACT),
        ("DECIMAL(18, 0)", 1, "DECIMAL(18, 1)", 1, 2, INEXACT),
    ]
    for *given, said in refused:
        with pytest.raises(DataError, match=said):
            keyed(*given)
    told: list[tuple[Any, ...]] = [
        ("INT", 1, "BIGINT", 1, 2),
        ("DATE", "2020-01-01", "DATE", "2020-01-01", "2020-01-02"),
        ("STRING", "a", "STRING", "a", "A"),
        ("STRING COLLATE UTF8_LCASE", "a", "STRING COLLATE UTF8_LCASE", "a", "A"),
        ("STRING COLLATE UTF8_LCASE", "a", "STRING", "a", "A"),
    ]
    for given in told:
        assert keyed(*given) == {("x", "x"): 1}, given
