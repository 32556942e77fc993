"""PostgreSQL and Spark join several tables as DuckDB does. Real engines, local to this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "load"))
from test_star import CLINICS, JOINED, JOINS, PATIENTS, TABLES, cells, star

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
