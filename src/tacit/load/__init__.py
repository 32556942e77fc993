"""Reading tables: where the rows are, and the one door to them. Called when a session opens, and by `tacit init`.

This package sees rows. Whatever an engine says when it fails stays inside, even as the cause of an error: engines print
the values they stumble over. Only columns' names and types, and columns of whole numbers that a statement counted, come
out. Of rows that are loaded it decides no privacy: `trusted/cells.py` builds the statement around its expressions and
checks them and what the engine counts. What is counted of a copy, and that a join adds no rows, rests on it.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.errors import DataError
from tacit.load.columns import BYTE_ORDER, Coded, Dialect, TableColumn, coded, is_text, match
from tacit.model.domain import Domain

if TYPE_CHECKING:
    from tacit.load.star import Join

T = TypeVar("T")
NumberColumns = list[NDArray[np.int64]]  # the columns of a statement's result
Progress = Callable[[float], None]
BEGUN = "begun"  # the word of a copy that is being written, or that a run which was cut short has left
WRITTEN = 0.5  # what is told of a copy that is written and not checked, by an engine that knows no more

_CSV = re.compile(r"\.(csv|tsv|txt)(\.(gz|zst))?$", re.IGNORECASE)
_PARQUET = re.compile(r"\.(parquet|pq)$", re.IGNORECASE)
_QUERY = re.compile(r"\s*(SELECT|WITH|FROM)\s", re.IGNORECASE)
_ACCEPTED = (
    "a CSV or Parquet file, a DuckDB file or postgresql:// address with a table name, a query for DuckDB, "
    "a DuckDB relation, a pandas, polars or Spark DataFrame, or an Arrow table"
)


class Engine(Protocol):
    """What one kind of engine does. It may fail with any exception; `Source` replaces all but a DataError."""

    dialect: Dialect
    table: exp.Table  # the table's name in statements
    failure: str  # a public sentence: it could not be read

    @property
    def joins(self) -> Sequence[Join]:
        """The tables that are joined to the one that is read."""

    def version(self) -> str:
        """Another one after the table was written to, as far as that is known without reading it: of files it is."""

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        """Every column's name and coarse type. Where an engine would guess a type, what is declared holds instead."""

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[NumberColumns]:
        """What each statement counts, from one state of the table."""

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement's result, whatever they hold."""

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        """Write the rows of a statement to a new place, with a word of what they are: whole, or not at all.

        `check` reads what was written, and the table itself: in the state that was written, where the engine has one
        of a table that others write to. It is kept only where that returns: until then `made_for` knows nothing of it,
        or that it is not finished.
        """

    def kept(self, place: str) -> Engine:
        """What was written to a place, to be read."""

    def made_for(self, place: str) -> str | None:
        """The word that was written with it: `BEGUN` before it is finished, and none at all where it is none of ours.

        None where nothing is there.
        """

    def state(self, place: str) -> str:
        """Another one where something else is there now: compared, and never read."""

    def drop(self, place: str) -> None:
        """Delete what was written to a place, if it is there."""

    def sweep(self, place: str) -> None:
        """Delete what runs that were cut short have left beside a place."""


Check = Callable[[Engine, Engine], None]  # of what was written, and of the table


@dataclass(frozen=True)
class Source:
    """A table in some engine: the only way to it."""

    engine: Engine

    def describe(self) -> tuple[TableColumn, ...]:
        """Every column's name and coarse type."""
        return quietly(self.engine.columns, self.engine.failure)

    def columns(self, domain: Domain, person: str | None = None) -> tuple[TableColumn, ...]:
        """The same, with the types that are declared where an engine would guess them."""
        return quietly(lambda: self.engine.columns(domain, person), self.engine.failure)

    def names(self) -> tuple[str, exp.Table, exp.Expr]:
        """The dialect to write statements in, and what the table and the order of bytes are called there."""
        return self.engine.dialect, self.engine.table.copy(), BYTE_ORDER[self.engine.dialect].copy()

    def version(self) -> str:
        """Another one after the table was written to, as far as that is known; nothing of what has no state."""
        return quietly(self.engine.version, self.engine.failure)

    def coded(self, domain: Domain, person: str | None) -> tuple[list[Coded], tuple[str, bool] | None]:
        """How each attribute is coded, and the person's column, with whether it holds text rather than numbers."""
        columns = self.columns(domain, person)
        for join in self.engine.joins:
            join.check_person(person, [column.name for column in columns])
        found = match(columns, domain, person)
        codes = [
            coded(name, attribute, found[name], place, self.engine.dialect)
            for place, (name, attribute) in enumerate(domain.items())
        ]
        return codes, None if person is None else (found[person].name, is_text(found[person]))

    def rows(self) -> int:
        """How many rows there are, which is public by convention."""
        counted = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(self.names()[1])
        (((rows,),),) = self.run([counted.sql(self.engine.dialect)])
        return int(rows)

    def run(self, statements: Sequence[str], progress: Progress | None = None) -> list[NumberColumns]:
        """What each statement counts. `progress` is told the share that is done, as finely as the engine knows it."""
        return quietly(lambda: self.engine.run(statements, progress), self.engine.failure)

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement's result: values too, for whoever keeps them to himself."""
        return quietly(lambda: self.engine.fetch(statement), self.engine.failure)


def quietly(work: Callable[[], T], failure: str) -> T:
    """The result of `work`, or a public sentence in the place of whatever went wrong."""
    try:
        return work()
    except DataError as error:
        failure = error.sentence
    except Exception:
        pass
    # Raised out here, where no exception is being handled: the engine's message is not even attached as context.
    raise DataError(failure)


def is_address(text: str) -> bool:
    """Whether the text is the address of a server rather than a path. No data involved."""
    return re.match(r"postgres(ql)?://", text) is not None


def is_query(text: str) -> bool:
    """Whether the text is a query for DuckDB rather than a path. No data involved."""
    return _QUERY.match(text) is not None


def address(data: object, table: str | None = None) -> str:
    """Which table it is, by the names that its owner uses, and without a password; nothing where it has no name."""
    from tacit.load.star import Star

    if isinstance(data, Star):
        parts = [address(data.fact, data.table)]
        for join in data.joins:
            joined = address(data.fact if join.source is None else join.source, join.table)
            parts.append(json.dumps([join.name, join.on, join.key, join.holds, joined]))
        return json.dumps(parts) if all(parts) else ""
    if isinstance(data, str) and is_address(data):
        _needs("psycopg", "postgres")
        from psycopg.conninfo import conninfo_to_dict

        told = quietly(lambda: conninfo_to_dict(data), "the PostgreSQL address could not be read.")
        kept = [str(told.get(name, "")) for name in ("host", "hostaddr", "port", "dbname", "user", "options")]
        return json.dumps([*kept, named(table or "", "postgres").sql("postgres")])
    if isinstance(data, str) and is_query(data):
        return json.dumps([os.getcwd(), data])  # its files are named from here
    return json.dumps([os.path.abspath(data), table]) if isinstance(data, str | os.PathLike) else ""


def open_source(data: object, table: str | None = None) -> Source:
    """The engine and table that `data` stands for; no row is read yet. Text is an address, a query or a path.

    Engines are imported when they are needed: a published file or a configuration is read without one.
    """
    if isinstance(data, Source):
        return data
    import duckdb

    from tacit.load.engines import DuckDB, Postgres, selected
    from tacit.load.files import patterns_of
    from tacit.load.star import Star

    if isinstance(data, Star):
        return data.open()
    if isinstance(data, str) and is_address(data):
        if not table:
            raise DataError('a PostgreSQL address needs a table name too: table="people".')
        _needs("psycopg", "postgres")
        return Source(Postgres(data, named(table, "postgres"), table))
    if type(data).__module__.startswith("pyspark.sql"):
        from tacit.load.spark import Spark

        return Source(Spark(data))
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        if isinstance(text, str) and "\0" not in text:
            if isinstance(data, str) and is_query(text):
                files = patterns_of(text)
                return Source(DuckDB("the query", lambda connection, _: selected(connection, text), read_from=files))
            return _path(text, table)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return Source(DuckDB("the relation", lambda *_: data, ours=False))
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return Source(DuckDB("the DataFrame", lambda connection, _: connection.from_df(data)))
    if hasattr(data, "__arrow_c_stream__"):
        _needs("pyarrow", "arrow")
        return Source(DuckDB(f"the {type(data).__name__}", lambda connection, _: connection.from_arrow(_kept(data))))
    raise DataError(f"data of type {type(data).__name__} is not accepted; give {_ACCEPTED}.")


def _path(text: str, table: str | None) -> Source:
    from tacit.load.engines import CsvFile, DuckDB, attached, is_database

    shown = Path(text).name
    if "://" in text:
        raise DataError(f"{shown} is not a local file; give {_ACCEPTED}.")
    several = any(mark in text for mark in "*?[") and not os.path.exists(text)
    if not several and not os.path.exists(text):
        raise DataError(f"there is no file {text}.")
    # To DuckDB every path is a pattern: what is there by this very name must not stand for others.
    files = text if several else glob.escape(text)
    if os.path.isdir(text):
        files = os.path.join(files, "**", "*.parquet")
        return Source(DuckDB(shown, lambda connection, _: connection.read_parquet(files), "Parquet", read_from=[files]))
    if not several and quietly(lambda: is_database(text), f"{shown} could not be read."):
        if not table:
            raise DataError(f'{shown} is a DuckDB database: say which table of it, like table="people".')
        of = named(table, "duckdb")
        log = f"{files}.wal"  # what was written last, and is not in the file yet
        said = f"table {table} of {shown}"
        return Source(DuckDB(said, lambda connection, _: attached(connection, text, of), read_from=[files, log]))
    if table:
        raise DataError(f"{shown} is not a database, so it has no table {table}.")
    if _PARQUET.search(text):
        return Source(DuckDB(shown, lambda connection, _: connection.read_parquet(files), "Parquet", read_from=[files]))
    if _CSV.search(text):
        file = CsvFile(files, "\t" if ".tsv" in text.lower() else None)
        return Source(DuckDB(shown, file.relation, "CSV", header=file.header, read_from=[files]))
    raise DataError(f"{shown} is not a kind of file that Tacit reads; give {_ACCEPTED}.")


def _kept(data: object) -> object:
    """Arrow data that can be read more than once: its rows are counted by two statements."""
    import pyarrow

    return data if hasattr(data, "__len__") else pyarrow.table(data)


def _needs(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise DataError(f"this kind of data needs {module}: pip install 'tacit-dp[{extra}]'.")


def named(table: str, dialect: Dialect) -> exp.Table:
    """A table's name, every part of it quoted: PostgreSQL takes a bare `user` for a function."""
    failure = f'{table!r} does not name a table; write it like people or archive."People 2024".'
    found = quietly(lambda: exp.to_table(table, dialect=dialect), failure)
    for part in found.parts:
        if not isinstance(part, exp.Identifier):
            raise DataError(failure)
        if dialect == "postgres" and not part.quoted:
            part.set("this", part.name.lower())
        part.set("quoted", True)
    return found
