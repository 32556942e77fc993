"""Trusted with counts: the engines that hold rows, DuckDB in this process and PostgreSQL; Spark has its own file.

DuckDB reads files (CSV as `CsvFile` says), frames and Arrow; the other two do the grouping where the rows are.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import numpy as np
from sqlglot import exp

from tacit.errors import DataError
from tacit.load import WRITTEN, Check, NumberColumns, Progress, named, quietly
from tacit.load.columns import Dialect, TableColumn, csv_type, match, table_column
from tacit.load.files import files_of, state_of
from tacit.load.progress import one_by_one, watched
from tacit.model.domain import Domain
from tacit.whole_file import put

if TYPE_CHECKING:
    from tacit.load.star import Join

T = TypeVar("T")

ENGINE_MEMORY = "700MB"  # of DuckDB where it works on an encoded copy: with ours, below 1 GB
DIRECT_BITS = 20  # of the codes that rows are counted by, up to which DuckDB indexes an array and hashes nothing
_NAME = "tacit_source"
# What follows the name of a copy in those of our files and folders beside it: see `new_file` and `DuckDB._limit`.
_LEFT = re.compile(r"(\.[0-9a-f]{32}\.new)?(?P<spilled>\.spill\.[a-z0-9_]{8})?")
_UNREACHED = "the PostgreSQL server could not be reached: check the address, the user and the password."
# What PostgreSQL knows of a table without reading it. It is another one after rows were written to new pages, after all
# of them were deleted or written anew, and after columns or constraints came, went or changed places.
_STATE = """
    SELECT CAST(oid AS BIGINT), obj_description(oid, 'pg_class'),
        CAST(pg_relation_filenode(oid) AS BIGINT), pg_relation_size(oid),
        ARRAY(SELECT CAST(c.oid AS BIGINT) FROM pg_constraint c WHERE c.conrelid = t.oid ORDER BY c.oid),
        ARRAY(SELECT concat(attnum, attname) FROM pg_attribute WHERE attrelid = t.oid AND attnum > 0 ORDER BY attnum)
    FROM pg_class t WHERE oid = to_regclass(%s)
"""
# A constraint that refuses whatever anybody inserts or updates, and looks at no row that is there. It goes with the
# table, where a trigger would leave a function behind, and it binds the owner, whom a REVOKE does not.
UNWRITTEN = "an_encoded_copy_is_not_written_to"
_KINDS = "SELECT oid, format_type(oid, NULL), typcategory FROM pg_type WHERE oid = ANY(%s)"


class DuckDB:
    """A relation. `relate` makes it, given a connection and the types of a CSV file's columns.

    `ours` is whether the connection is, so that its settings may be changed and its work interrupted. `header` gives
    the names of a CSV file's columns: what their rows look like is not guessed then, only to be read again as declared.
    `read_from` are the names and patterns of the files that it is read from, where they are known.
    """

    dialect: Dialect = "duckdb"
    joins: Sequence[Join] = ()
    table = exp.table_(_NAME, quoted=True)

    def __init__(
        self,
        shown: str,
        relate: Callable[[Any, dict[str, str]], Any],
        form: str = "",
        *,
        ours: bool = True,
        header: Callable[[Any], list[str]] | None = None,
        read_from: Sequence[str] = (),
    ) -> None:
        self.failure = f"{shown} could not be read{' as ' * bool(form)}{form}."
        self._shown, self._relate, self._header, self.ours = shown, relate, header, ours
        self._read_from = read_from
        self._types: dict[str, str] = {}
        self._spilled: str | None = None

    @cached_property
    def _connection(self) -> Any:
        settings = ("autoinstall_known_extensions", "autoload_known_extensions", "python_enable_replacements")
        connection = duckdb.connect(config=dict.fromkeys(settings, False))
        connection.execute("SET enable_progress_bar = false")
        return connection

    @cached_property
    def _relation(self) -> Any:
        return self._relate(self._connection if self.ours else None, self._types)

    def version(self) -> str:
        found = files_of(self._read_from, self._connection) if self._read_from else []
        # A folder may have the name of a table, and the copy may be written into it.
        return "\n".join(f"{one} {state_of(one) if os.path.isfile(one) else ''}" for one in found)

    def related(self, connection: Any, types: dict[str, str]) -> Any:
        """The relation in another connection, for a join; a CSV file's columns as these types say."""
        return self._relate(connection, types)

    def header(self, connection: Any) -> list[str] | None:
        """The names of a CSV file's columns; None of anything else."""
        return None if self._header is None else self._header(connection)

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        if domain is not None and self._header is not None:
            named = [table_column(name, "VARCHAR") for name in self._header(self._connection)]
            matched = match(named, domain, person)
            self._types = {column.name: kind for name, column in matched.items() if (kind := csv_type(domain, name))}
            vars(self).pop("_relation", None)  # it is read as the types say
        names, types = self._relation.columns, self._relation.types
        return tuple(table_column(name, str(kind)) for name, kind in zip(names, types, strict=True))

    def look(self, select: exp.Select) -> tuple[Any, ...]:
        """The first row of any statement over the table: see `look`."""
        return tuple(self._relation.query(_NAME, select.from_(_NAME).sql(dialect="duckdb")).fetchall()[0])

    def checked(self) -> None:
        """Refuse what must not be counted."""

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        self.checked()
        return list(self._relation.query(_NAME, statement).fetchall())

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[NumberColumns]:
        self.checked()
        try:
            found = self._watched(lambda: self._fetch(statements[0]), progress)
            return [found, *map(self._fetch, statements[1:])]
        except duckdb.Error:
            self._check_types()
            raise

    def _check_types(self) -> None:
        """Name a column of a CSV file that holds something else than it is read as."""
        for name, kind in self._types.items():
            if self._reads(name, "VARCHAR") and not self._reads(name, kind):
                wanted = "a date like 2024-05-31" if kind == "TIMESTAMP" else "a number"
                raise DataError(f"column {name} of {self._shown} holds something that is not {wanted}.") from None

    def _fetch(self, sql: str) -> NumberColumns:
        return [np.asarray(column) for column in self._relation.query(_NAME, sql).fetchnumpy().values()]

    def _watched(self, work: Callable[[], T], progress: Progress | None) -> T:
        """Work, while DuckDB says how far it has come, where somebody wants to know and the connection is ours."""
        if progress is None or not self.ours:
            return work()
        self._connection.execute("SET enable_progress_bar = true")
        self._connection.execute("SET enable_progress_bar_print = false")
        # Negative where it is not known.
        return watched(work, lambda: self._connection.query_progress() / 100, self._connection.interrupt, progress)

    def _reads(self, name: str, kind: str) -> bool:
        sql = exp.select(exp.Count(this=exp.column(name, quoted=True))).from_(_NAME).sql("duckdb")
        try:
            self._relate(self._connection, {name: kind}).query(_NAME, sql).fetchall()
        except duckdb.Error:
            return False
        return True

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        self.checked()
        with new_file(place) as made:
            if self.ours:
                self._limit(place)
            told = ", ".join(("FORMAT parquet", f"KV_METADATA {{tacit: '{about}'}}", "USE_TMP_FILE false"))
            sql = f"COPY ({select}) TO {exp.Literal.string(made).sql('duckdb')} ({told})"
            try:
                self._watched(lambda: self._relation.query(_NAME, sql), progress)
            except (duckdb.OperationalError, duckdb.PermissionException):  # of room, memory or rights
                raise
            except duckdb.Error:
                self._check_types()
                raise DataError(self.failure) from None
            check(self.kept(made), self)

    def kept(self, place: str) -> DuckDB:
        file = glob.escape(place)  # to DuckDB every path is a pattern
        made = DuckDB(Path(place).name, lambda connection, _: connection.read_parquet(file), "Parquet")
        made._limit(place)
        return made

    def made_for(self, place: str) -> str | None:
        _check_link(place)
        if not os.path.exists(place):
            return None
        named = exp.Literal.string(glob.escape(place)).sql("duckdb")
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT value FROM parquet_kv_metadata({named}) WHERE key = 'tacit'").fetchall()
        return str(found[0][0].decode()) if found else ""

    def state(self, place: str) -> str:
        return state_of(place)

    def drop(self, place: str) -> None:
        if os.path.exists(place):
            os.unlink(os.path.realpath(place))  # a link to it stays

    def sweep(self, place: str) -> None:
        found = Path(os.path.realpath(place))
        for left in found.parent.glob(glob.escape(found.name) + ".*"):
            ours = _LEFT.fullmatch(left.name.removeprefix(found.name))
            if ours is None or left.is_symlink() or left.stat().st_uid != os.geteuid():
                continue
            if ours["spilled"] and left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif not ours["spilled"] and left.is_file():
                left.unlink(missing_ok=True)

    def _limit(self, place: str) -> None:
        """Beyond so much memory DuckDB writes what it works with to a folder beside `place`, which only we may enter.

        The folder goes with the engine, or at the end of the process. The order of rows means nothing here.
        """
        if self._spilled is not None:
            return
        folder, name = os.path.split(os.path.realpath(place))
        self._spilled = tempfile.mkdtemp(prefix=f"{name}.spill.", dir=folder)
        weakref.finalize(self, shutil.rmtree, self._spilled, ignore_errors=True)
        spilled = exp.Literal.string(self._spilled).sql("duckdb")
        self._connection.execute(f"SET memory_limit = '{ENGINE_MEMORY}'")
        self._connection.execute(f"SET temp_directory = {spilled}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")


class CsvFile:
    """A file, or several that a pattern names, as DuckDB reads it. `sep` divides its fields, where its name says so.

    How its fields are divided is guessed once, and not for every relation made of it.
    """

    def __init__(self, path: str, sep: str | None = None) -> None:
        self.path = path
        self._given = {} if sep is None else {"sep": sep}
        self._form = self._given

    def header(self, connection: Any) -> list[str]:
        """The names of the columns, as `relation` finds them."""
        said = {"path": self.path, **self._given}
        tabs = ", sep = $sep" * ("sep" in said)
        try:
            sniffed = connection.execute(f"FROM sniff_csv($path, header = true, all_varchar = true{tabs})", said)
            ((*values,),) = sniffed.fetchall()
            found = dict(zip([name for name, *_ in sniffed.description], values, strict=True))
        except duckdb.Error:  # of several files it tells nothing
            sql = f"FROM read_csv($path, header = true, all_varchar = true{tabs}) LIMIT 0"
            return [name for name, *_ in connection.execute(sql, said).description]
        parts = {"sep": "Delimiter", "quotechar": "Quote", "escapechar": "Escape"}
        self._form = {part: found[told].replace("(empty)", "") for part, told in parts.items()}
        return [column["name"] for column in found["Columns"]]

    def relation(self, connection: Any, types: dict[str, str]) -> Any:
        """The rows, with columns of these types and the others as they look. What `header` guessed is so."""
        form = self._form if types else self._given
        return connection.read_csv(self.path, header=True, dtype=types or None, **form)


def selected(connection: Any, text: str) -> Any:
    """What a query says, if it is one statement that only reads. DuckDB would run all that follows a semicolon, too."""
    statements = connection.extract_statements(text)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise DataError("a query is one SELECT statement, and nothing follows it.")
    return connection.sql(text)


def attached(connection: Any, path: str, table: exp.Table) -> Any:
    """A table of a database file, which is opened for reading only."""
    # Several tables of one file may be joined, or of several files.
    name = f"attached_{hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:16]}"
    connection.execute(f"ATTACH IF NOT EXISTS {exp.Literal.string(path).sql('duckdb')} AS {name} (READ_ONLY)")
    table = table.copy()
    table.set("catalog" if table.args.get("db") else "db", exp.to_identifier(name))
    return connection.sql(exp.select("*").from_(table).sql("duckdb"))


def is_database(path: str) -> bool:
    """Whether the file is a DuckDB database."""
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK"


@contextmanager
def new_file(place: str) -> Iterator[str]:
    """A file that only its owner reads, and that comes to its place when all that is done with it here is done.

    It is on the disk by then: a power cut leaves the whole file at its place, or none, or an empty one on a file system
    without links. What came to the place meanwhile stays.
    """
    if not os.path.basename(place):
        raise FileNotFoundError(place)
    _check_link(place)
    found = os.path.realpath(place)
    made = f"{found}.{uuid.uuid4().hex}.new"
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield made
        put(Path(made), Path(found), overwrite=False)
    except FileExistsError:
        raise DataError(
            f"{place} came to be while a copy was written for it, and stays: begin again, or name another place."
        ) from None
    finally:
        Path(made).unlink(missing_ok=True)


def _check_link(place: str) -> None:
    """Refuse a link to what is not there: what it leads to may be a copy, on a disk that is not mounted."""
    if os.path.islink(place) and not os.path.exists(place):
        raise DataError(
            f"{place} is a link to a file that is not there: bring that back, delete the link, or name another place."
        )


class Postgres:
    """A table or view of a PostgreSQL server, by its address and name."""

    dialect: Dialect = "postgres"
    joins: Sequence[Join] = ()

    def __init__(self, url: str, table: exp.Table, shown: str) -> None:
        self.table = table
        self.failure = f"the PostgreSQL table {shown} could not be read: check its name and your rights."
        self.url = url
        self._transaction: Any = None  # the one that all is asked in, where it is not asked in one of its own

    def stated(self, sql: str) -> str:
        """A statement as it is sent."""
        return sql

    def version(self) -> str:
        """None: one transaction reads one state, whatever others write meanwhile."""
        return ""

    def checked(self, connection: Any) -> None:
        """Refuse what must not be counted, in the transaction that counts."""

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        return tuple(table_column(name, kind) for name, kind in self.types())

    def types(self) -> list[tuple[str, str]]:
        """The names and types of the columns; all that is written as text is text."""

        def described(connection: Any) -> list[tuple[str, str]]:
            columns = connection.execute(
                self.stated(exp.select("*").from_(self.table).limit(0).sql("postgres"))
            ).description
            rows = connection.execute(_KINDS, ([column.type_code for column in columns],)).fetchall()
            types = {oid: "text" if category in ("S", "E") else name for oid, name, category in rows}
            return [(column.name, types[column.type_code]) for column in columns]

        return self._ask(described)

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[NumberColumns]:
        def counted(connection: Any) -> list[NumberColumns]:
            self.checked(connection)
            return one_by_one(lambda sql: copied(connection, self.stated(sql)), statements, progress)

        return self._ask(counted)

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        def fetched(connection: Any) -> list[tuple[Any, ...]]:
            self.checked(connection)
            return list(connection.execute(self.stated(statement)).fetchall())

        return self._ask(fetched)

    def _ask(self, work: Callable[[Any], T], *, only_read: bool = True) -> T:
        import psycopg

        if self._transaction is not None:
            return work(self._transaction)
        with quietly(lambda: psycopg.connect(self.url), _UNREACHED) as connection:
            # Repeatable: all statements see one state of a table that others write to.
            connection.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ {'READ ONLY' * only_read}")
            connection.execute("SET LOCAL standard_conforming_strings = on")  # a backslash in a value is a backslash
            return work(connection)

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        import psycopg

        def write(connection: Any) -> None:
            name = named(place, "postgres")
            self.checked(connection)
            try:
                connection.execute(f"CREATE TABLE {name.sql('postgres')} AS {self.stated(select)}")
            except psycopg.DataError:  # of the rows, which a view casts: room and rights are other errors
                raise DataError(self.failure) from None
            # Without statistics the planner sorts all rows for each of the GROUPING SETS: four times the work.
            connection.execute(f"ANALYZE {name.sql('postgres')}")
            if progress:
                progress(WRITTEN)
            # Nobody else sees the copy before this transaction ends; and what others write to the table meanwhile is
            # not seen here, so that what the copy is compared with are the rows that it was made of.
            check(self.kept(place).within(connection), self.within(connection))
            guard = f"ADD CONSTRAINT {UNWRITTEN} CHECK (false) NOT VALID"
            connection.execute(f"ALTER TABLE {name.sql('postgres')} {guard}")
            connection.execute(f"COMMENT ON TABLE {name.sql('postgres')} IS 'tacit {about}'")

        self._ask(write, only_read=False)
        if progress:
            progress(1.0)

    def within(self, transaction: Any) -> Postgres:
        """The same table, as a transaction sees it that has begun."""
        found = copy(self)
        found._transaction = transaction
        return found

    def kept(self, place: str) -> Postgres:
        table = named(place, "postgres")
        table.set("only", True)  # else the rows of whatever table inherits from it count, too
        return Postgres(self.url, table, place)

    def made_for(self, place: str) -> str | None:
        found = self._found(place)
        if found is None:
            return None
        comment = found[1]
        return comment.removeprefix("tacit ") if comment and comment.startswith("tacit ") else ""

    def state(self, place: str) -> str:
        return str(self._found(place))

    def _found(self, place: str) -> tuple[Any, ...] | None:
        """The number that no other table of the server has, the comment, and what else `_STATE` tells."""
        name = named(place, "postgres").sql("postgres")
        found: tuple[Any, ...] | None = self._ask(lambda connection: connection.execute(_STATE, (name,)).fetchone())
        return found

    def drop(self, place: str) -> None:
        name = named(place, "postgres").sql("postgres")
        self._ask(lambda connection: connection.execute(f"DROP TABLE IF EXISTS {name}"), only_read=False)

    def sweep(self, place: str) -> None:
        """A transaction that was cut short leaves nothing."""


def copied(connection: Any, sql: str) -> NumberColumns:
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
