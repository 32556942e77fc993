"""Where the rows are: DuckDB (files, frames, Arrow), PostgreSQL or Spark. Called by records and by `tacit init`.

A source knows its columns and runs the one statement. Only grouped cells leave the engine, and nothing of what an
engine says when it fails is repeated, not even as the cause of an error: engines print the values they stumble over.
"""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.errors import DataError
from tacit.model.domain import Domain
from tacit.model.values import Listed
from tacit.trusted.statement import SOURCE, Column, ColumnType, Dialect, render

T = TypeVar("T")
Cells = tuple[list[NDArray[np.int64]], NDArray[np.int64]]
Progress = Callable[[float], None]

_LOOK_EVERY = 0.1  # seconds: how often the engine is asked how far it has come
_CSV = re.compile(r"\.(csv|tsv|txt)(\.(gz|zst))?$", re.IGNORECASE)
_PARQUET = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
_QUERY = re.compile(r"\s*(SELECT|WITH|FROM)\s", re.IGNORECASE)
_ACCEPTED = (
    "a CSV or Parquet file, a DuckDB file or postgresql:// address with a table name, a query for DuckDB, "
    "a DuckDB relation, a pandas, polars or Spark DataFrame, or an Arrow table"
)
_NUMBERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE REAL INT"
_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(_NUMBERS.split(), "number"),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), "decimal"),
    **dict.fromkeys(("VARCHAR", "ENUM", "STRING", "CHAR", "TEXT"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_NTZ"), "timestamp"),
    **dict.fromkeys(('"NULL"', "NULL", "VOID"), "empty"),
    "TIMESTAMP WITH TIME ZONE": "zoned",
    "UUID": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
}


@runtime_checkable
class Source(Protocol):
    """A table in some engine."""

    def describe(self) -> tuple[Column, ...]:
        """Every column's name and coarse type."""

    def types(self, domain: Domain, person: str | None = None) -> Mapping[str, Column]:
        """The column of each declared attribute, and of the person; refuses names that the table does not have."""

    def run(self, select: exp.Select, progress: Progress | None = None) -> Cells:
        """The statement's words and counts. `progress` is told the share that is done, where the engine knows it."""


def is_address(text: str) -> bool:
    """Whether the text is the address of a server rather than a path. No data involved."""
    return re.match(r"postgres(ql)?://", text) is not None


def is_query(text: str) -> bool:
    """Whether the text is a query for DuckDB rather than a path. No data involved."""
    return _QUERY.match(text) is not None


def open_source(data: object, table: str | None = None) -> Source:
    """The engine and table that `data` stands for; no row is read yet.

    Guarantee: an error names what was given and what is accepted, never a value of the data.
    Formula: by type; text is an address, a query or a path, in this order.
    Source: docs/ARCHITECTURE.md, "From a table to cells".
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str) and is_address(data):
        if not table:
            raise DataError('a PostgreSQL address needs a table name too: table="people".')
        return Postgres(data, table)
    if type(data).__module__.startswith("pyspark.sql"):
        return Spark(data)
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        if isinstance(text, str) and "\0" not in text:
            return _query(text) if isinstance(data, str) and is_query(text) else _path(text, table)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return DuckDB("the relation", lambda *_: data, ours=False)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return DuckDB("the DataFrame", lambda connection, _: connection.from_df(data))
    if hasattr(data, "__arrow_c_stream__"):
        _needs("pyarrow", "arrow")
        return DuckDB(f"the {type(data).__name__}", lambda connection, _: connection.from_arrow(data))
    raise DataError(f"data of type {type(data).__name__} is not accepted; give {_ACCEPTED}.")


def _query(text: str) -> Source:
    return DuckDB("the query", lambda connection, _: connection.sql(text))


def _path(text: str, table: str | None) -> Source:
    shown = Path(text).name
    if "://" in text:
        raise DataError(f"{shown} is not a local file; give {_ACCEPTED}.")
    several = any(mark in text for mark in "*?[") and not os.path.exists(text)
    if not several and not os.path.exists(text):
        raise DataError(f"there is no file {text}.")
    if os.path.isdir(text):
        files = os.path.join(text, "**", "*.parquet")
        return DuckDB(shown, lambda connection, _: connection.read_parquet(files), "Parquet")
    if not several and _quietly(lambda: _is_duckdb(text), f"{shown} could not be read."):
        if not table:
            raise DataError(f'{shown} is a DuckDB database: say which table of it, like table="people".')
        return DuckDB(f"table {table} of {shown}", lambda connection, _: _attached(connection, text, table))
    if table:
        raise DataError(f"{shown} is not a database, so it has no table {table}.")
    if _PARQUET.search(text):
        return DuckDB(shown, lambda connection, _: connection.read_parquet(text), "Parquet")
    if _CSV.search(text):
        tabs = {"sep": "\t"} if ".tsv" in text.lower() else {}
        return DuckDB(
            shown, lambda connection, dtype: connection.read_csv(text, header=True, dtype=dtype or None, **tabs), "CSV"
        )
    raise DataError(f"{shown} is not a kind of file that Tacit reads; give {_ACCEPTED}.")


class DuckDB:
    """A relation of an embedded DuckDB. `relate` makes it, given a connection and the types of a CSV file's columns."""

    def __init__(
        self, shown: str, relate: Callable[[Any, dict[str, str]], Any], form: str = "", *, ours: bool = True
    ) -> None:
        self._shown, self._relate, self._form, self._ours = shown, relate, form, ours
        self._failure = f"{shown} could not be read{' as ' * bool(form)}{form}."
        self._dtype: dict[str, str] = {}
        self._connection = _connect()
        self._relation = _quietly(lambda: relate(self._connection, {}), self._failure)

    def describe(self) -> tuple[Column, ...]:
        def columns() -> tuple[Column, ...]:
            names, types = self._relation.columns, self._relation.types
            return tuple(Column(name, _coarse(str(kind))) for name, kind in zip(names, types, strict=True))

        return _quietly(columns, self._failure)

    def types(self, domain: Domain, person: str | None = None) -> Mapping[str, Column]:
        found = _match(self.describe(), domain, person)
        if self._form == "CSV":  # what a column holds is declared, not guessed from its first private rows
            self._dtype = {column.name: kind for name, column in found.items() if (kind := _csv_type(domain, name))}
            self._relation = _quietly(lambda: self._relate(self._connection, self._dtype), self._failure)
            found = _match(self.describe(), domain, person)
        return found

    def look(self, select: exp.Select) -> tuple[Any, ...]:
        """The first row of any statement over the table: the owner's own look, see peek."""
        sql = select.from_(SOURCE).sql(dialect="duckdb")
        return tuple(_quietly(lambda: self._relation.query(SOURCE, sql).fetchall()[0], self._failure))

    def run(self, select: exp.Select, progress: Progress | None = None) -> Cells:
        sql = render(select, "duckdb", exp.to_table(SOURCE))

        def cells() -> Any:
            return self._relation.query(SOURCE, sql).fetchnumpy()

        try:
            result = _quietly(
                lambda: self._watched(cells, progress) if progress and self._ours else cells(), self._failure
            )
        except DataError as error:
            failure = error
        else:
            *words, counts = result.values()
            return words, counts
        for name, kind in self._dtype.items():
            if self._reads(name, "VARCHAR") and not self._reads(name, kind):
                wanted = "a date like 2024-05-31" if kind == "TIMESTAMP" else "a number"
                raise DataError(f"column {name} of {self._shown} holds something that is not {wanted}.")
        raise failure

    def _watched(self, work: Callable[[], T], progress: Progress) -> T:
        """Work in a thread of its own, while this one says how far it has come: on a connection of ours, not others."""
        self._connection.execute("SET enable_progress_bar = true")
        self._connection.execute("SET enable_progress_bar_print = false")
        with ThreadPoolExecutor(max_workers=1) as pool:
            found = pool.submit(work)
            try:
                shown = 0.0
                while not wait([found], timeout=_LOOK_EVERY).done:
                    share = self._connection.query_progress() / 100  # negative where it is not known
                    if share > shown:
                        shown = min(1.0, share)
                        progress(shown)
            except BaseException:  # an interrupt, or a bar that fails: the engine is not left working alone
                self._connection.interrupt()
                raise
        return found.result()

    def _reads(self, name: str, kind: str) -> bool:
        sql = exp.select(exp.Count(this=exp.column(name, quoted=True))).from_(SOURCE).sql("duckdb")
        try:
            self._relate(self._connection, {name: kind}).query(SOURCE, sql).fetchall()
        except duckdb.Error:
            return False
        return True


class Postgres:
    """A table or view of a PostgreSQL server, which does the grouping."""

    def __init__(self, url: str, table: str) -> None:
        _needs("psycopg", "postgres")
        self._url, self._shown = url, table
        self._table = _named(table, "postgres")

    def describe(self) -> tuple[Column, ...]:
        def columns(connection: Any) -> tuple[Column, ...]:
            query = exp.select("*").from_(self._table).limit(0).sql(dialect="postgres")
            described = connection.execute(query).description
            kinds = "SELECT oid, format_type(oid, NULL), typcategory FROM pg_type WHERE oid = ANY(%s)"
            rows = connection.execute(kinds, ([column.type_code for column in described],)).fetchall()
            types = {oid: "text" if category in ("S", "E") else _coarse(name) for oid, name, category in rows}
            return tuple(Column(column.name, types[column.type_code]) for column in described)

        return self._ask(columns)

    def types(self, domain: Domain, person: str | None = None) -> Mapping[str, Column]:
        return _match(self.describe(), domain, person)

    def run(self, select: exp.Select, progress: Progress | None = None) -> Cells:
        sql = render(select, "postgres", self._table)
        width = len(select.selects)

        def cells(connection: Any) -> Cells:
            received = bytearray()
            with connection.cursor().copy(f"COPY ({sql}) TO STDOUT (FORMAT BINARY)") as rows:
                for row in rows:
                    received += row
            # PostgreSQL's binary COPY: 19 bytes of header, then each row as a field count and, for each field, its
            # length and its big-endian number; 2 bytes close the stream.
            fields: list[Any] = [("fields", ">i2")]
            for i in range(width):
                fields += [(f"length{i}", ">i4"), (f"number{i}", ">i8")]
            dtype = np.dtype(fields)
            rows_read = np.frombuffer(received, dtype, (len(received) - 21) // dtype.itemsize, offset=19)
            *words, counts = (rows_read[f"number{i}"].astype(np.int64) for i in range(width))
            return words, counts

        return self._ask(cells)

    def _ask(self, work: Callable[[Any], T]) -> T:
        import psycopg

        failure = "the PostgreSQL server could not be reached: check the address, the user and the password."
        connection = _quietly(lambda: psycopg.connect(self._url), failure)

        def ask() -> T:
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute("SET LOCAL standard_conforming_strings = on")  # a backslash in a value is a backslash
            return work(connection)

        try:
            return _quietly(
                ask, f"the PostgreSQL table {self._shown} could not be read: check its name and your rights."
            )
        finally:
            connection.close()


class Spark:
    """A Spark DataFrame; the cluster does the grouping."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._failure = "the Spark DataFrame could not be read."

    def describe(self) -> tuple[Column, ...]:
        def columns() -> tuple[Column, ...]:
            # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
            types = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
            return tuple(
                Column(field.name, _coarse(types.get(kind := field.dataType.simpleString(), kind)))
                for field in self._frame.schema.fields
            )

        return _quietly(columns, self._failure)

    def types(self, domain: Domain, person: str | None = None) -> Mapping[str, Column]:
        return _match(self.describe(), domain, person)

    def run(self, select: exp.Select, progress: Progress | None = None) -> Cells:
        view = f"tacit_{uuid.uuid4().hex}"
        sql = render(select, "spark", exp.to_table(view))

        def cells() -> Cells:
            session = self._frame.sparkSession
            self._frame.createOrReplaceTempView(view)
            try:
                table = session.sql(sql).toArrow()
            finally:
                session.catalog.dropTempView(view)
            *words, counts = (column.to_numpy().astype(np.int64) for column in table.columns)
            return words, counts

        return _quietly(cells, self._failure)


def _quietly(work: Callable[[], T], failure: str) -> T:
    try:
        return work()
    except DataError:
        raise
    except Exception:
        pass
    # Raised out here, where no exception is being handled: the engine's message is not even attached as context.
    raise DataError(failure)


def _needs(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise DataError(f"this kind of data needs {module}: pip install 'tacit[{extra}]'.")


def _connect() -> Any:
    settings = ("autoinstall_known_extensions", "autoload_known_extensions", "python_enable_replacements")
    connection = duckdb.connect(config=dict.fromkeys(settings, False))
    connection.execute("SET enable_progress_bar = false")
    return connection


def _is_duckdb(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK"


def _attached(connection: Any, path: str, table: str) -> Any:
    connection.execute(f"ATTACH {exp.Literal.string(path).sql('duckdb')} AS attached (READ_ONLY)")
    named = _named(table, "duckdb")
    named.set("catalog" if named.args.get("db") else "db", exp.to_identifier("attached"))
    return connection.sql(exp.select("*").from_(named).sql("duckdb"))


def _named(table: str, dialect: Dialect) -> exp.Table:
    """A table's name, every part of it quoted: PostgreSQL takes a bare `user` for a function."""
    failure = f'{table!r} does not name a table; write it like people or archive."People 2024".'
    named = _quietly(lambda: exp.to_table(table, dialect=dialect), failure)
    for part in named.parts:
        if not isinstance(part, exp.Identifier):
            raise DataError(failure)
        if dialect == "postgres" and not part.quoted:
            part.set("this", part.name.lower())
        part.set("quoted", True)
    return named


def _coarse(kind: str) -> ColumnType:
    name = kind.upper()
    if name in _TYPES or name.endswith("]"):  # a list of numbers is not a number
        return _TYPES.get(name, "other")
    return _TYPES.get(re.split(r"[( ]", name)[0], "other")


def _csv_type(domain: Domain, name: str) -> str | None:
    if name not in domain:
        return "VARCHAR"  # the person: any text will do
    values = domain[name].values
    if isinstance(values, Listed):
        return {"category": "VARCHAR" if isinstance(values.values[0], str) else "DOUBLE"}.get(values.kind)
    return "TIMESTAMP" if values.kind == "date" else "DOUBLE"


def _match(columns: Iterable[Column], domain: Domain, person: str | None) -> dict[str, Column]:
    exact = {column.name: column for column in columns}
    found: dict[str, Column] = {}
    for name in (*domain, *([] if person is None else [person])):
        # DuckDB calls the second of two columns that differ in case only AGE_1, so that is a likeness too.
        alike = [c for c in exact.values() if name.lower() in (c.name.lower(), re.sub(r"_\d+$", "", c.name.lower()))]
        near = [exact[name]] if name in exact else alike
        if len(near) != 1 or name.lower() != near[0].name.lower():
            has = ", ".join(list(exact)[:20]) + ", …" * (len(exact) > 20)
            lacks = "several columns like" if len(near) > 1 else "no column"
            raise DataError(f"the table has {lacks} {name}; its columns are {has}.")
        found[name] = near[0]
    return found
