"""Engines elsewhere that do the grouping: a PostgreSQL server, a Spark cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlglot import exp

from tacit.load import Numbers, Progress, quietly
from tacit.load.columns import Dialect, TableColumn, coarse
from tacit.model.domain import Domain

T = TypeVar("T")

_UNREACHED = "the PostgreSQL server could not be reached: check the address, the user and the password."
_KINDS = "SELECT oid, format_type(oid, NULL), typcategory FROM pg_type WHERE oid = ANY(%s)"


class Postgres:
    """A table or view of a PostgreSQL server, by its address and name."""

    dialect: Dialect = "postgres"

    def __init__(self, url: str, table: exp.Table, shown: str) -> None:
        self.table = table
        self.failure = f"the PostgreSQL table {shown} could not be read: check its name and your rights."
        self._url = url

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        def described(connection: Any) -> tuple[TableColumn, ...]:
            columns = connection.execute(exp.select("*").from_(self.table).limit(0).sql("postgres")).description
            rows = connection.execute(_KINDS, ([column.type_code for column in columns],)).fetchall()
            types = {oid: "text" if category in ("S", "E") else coarse(name) for oid, name, category in rows}
            return tuple(TableColumn(column.name, types[column.type_code]) for column in columns)

        return self._ask(described)

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        return self._ask(lambda connection: [_copied(connection, sql) for sql in statements])

    def _ask(self, work: Callable[[Any], T]) -> T:
        import psycopg

        with quietly(lambda: psycopg.connect(self._url), _UNREACHED) as connection:
            # Repeatable: all statements see one state of a table that others write to.
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute("SET LOCAL standard_conforming_strings = on")  # a backslash in a value is a backslash
            return work(connection)


def _copied(connection: Any, sql: str) -> Numbers:
    """The columns of a result whose fields are all BIGINT and never NULL.

    PostgreSQL's binary COPY has 19 bytes of header, then each row as a field count and, for each field, its length and
    its big-endian number; 2 bytes close the stream.
    """
    received = bytearray()
    with connection.cursor() as cursor, cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT BINARY)") as rows:
        width = cursor.pgresult.nfields
        for row in rows:
            received += row
    fields: list[Any] = [("fields", ">i2")]
    for i in range(width):
        fields += [(f"length{i}", ">i4"), (f"number{i}", ">i8")]
    dtype = np.dtype(fields)
    read = np.frombuffer(received, dtype, (len(received) - 21) // dtype.itemsize, offset=19)
    return [read[f"number{i}"].astype(np.int64) for i in range(width)]


class Spark:
    """A Spark DataFrame, under a name that lives as long as a statement runs."""

    dialect: Dialect = "spark"
    failure = "the Spark DataFrame could not be read."

    def __init__(self, frame: Any) -> None:
        self.table = exp.table_(f"tacit_{uuid.uuid4().hex}", quoted=True)
        self._frame = frame

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
        types = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
        return tuple(
            TableColumn(field.name, coarse(types.get(kind := field.dataType.simpleString(), kind)))
            for field in self._frame.schema.fields
        )

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        session = self._frame.sparkSession
        self._frame.createOrReplaceTempView(self.table.name)
        try:
            found = [session.sql(sql).toArrow() for sql in statements]
        finally:
            session.catalog.dropTempView(self.table.name)
        return [[column.to_numpy().astype(np.int64) for column in table.columns] for table in found]
