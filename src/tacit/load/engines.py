"""The engines that hold rows: a DuckDB inside this process, a PostgreSQL server, a Spark cluster.

DuckDB reads files, frames and Arrow; the other two do the grouping where the rows are. `look`, through DuckDB, is the
one unpaid look at the values, for an owner who makes them public.
"""

from __future__ import annotations

import datetime as dt
import glob
import hashlib
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
from sqlglot import exp

from tacit.errors import DataError
from tacit.load import Check, Joined, Numbers, Progress, named, open_source, quietly
from tacit.load.columns import Dialect, TableColumn, csv_type, match, table_column
from tacit.model.domain import Domain

T = TypeVar("T")

TRIMMED = 0.005  # the share of the values at either end that may be outliers
FAR = 0.5  # outliers are so far from the others, in the width of those
MAX_WHOLE = 2.0**52  # whole numbers beyond this are binned as any others
MAX_LISTED = 50  # more different values than this look like names or identifiers
MEMORY = "700MB"  # of DuckDB where it works on an encoded copy: with ours, below 1 GB
DIRECT_BITS = 20  # of the codes that rows are counted by, up to which DuckDB indexes an array and hashes nothing
_LOOK_EVERY = 0.1  # seconds: how often the engine is asked how far it has come
_NAME = "tacit_source"
_MARK = "_tacit"  # Spark takes files that begin so for none of the table's
_UNREACHED = "the PostgreSQL server could not be reached: check the address, the user and the password."
_KINDS = "SELECT oid, format_type(oid, NULL), typcategory FROM pg_type WHERE oid = ANY(%s)"


class DuckDB:
    """A relation. `relate` makes it, given a connection and the types of a CSV file's columns.

    `ours` is whether the connection is, so that its settings may be changed and its work interrupted. `header` gives
    the names of a CSV file's columns: what their rows look like is not guessed then, only to be read again as declared.
    """

    dialect: Dialect = "duckdb"
    joins: Sequence[Joined] = ()
    table = exp.table_(_NAME, quoted=True)

    def __init__(
        self,
        shown: str,
        relate: Callable[[Any, dict[str, str]], Any],
        form: str = "",
        *,
        ours: bool = True,
        header: Callable[[Any], list[str]] | None = None,
    ) -> None:
        self.failure = f"{shown} could not be read{' as ' * bool(form)}{form}."
        self._shown, self._relate, self._header, self.ours = shown, relate, header, ours
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

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        return list(self._relation.query(_NAME, statement).fetchall())

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        def first() -> Numbers:
            return self._fetch(statements[0])

        try:
            found = self._watched(first, progress) if progress and self.ours else first()
            return [found, *map(self._fetch, statements[1:])]
        except duckdb.Error:
            for name, kind in self._types.items():
                if self._reads(name, "VARCHAR") and not self._reads(name, kind):
                    wanted = "a date like 2024-05-31" if kind == "TIMESTAMP" else "a number"
                    raise DataError(f"column {name} of {self._shown} holds something that is not {wanted}.") from None
            raise

    def _fetch(self, sql: str) -> Numbers:
        return [np.asarray(column) for column in self._relation.query(_NAME, sql).fetchnumpy().values()]

    def _watched(self, work: Callable[[], T], progress: Progress) -> T:
        """Work in a thread of its own, while this one says how far it has come."""
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
        sql = exp.select(exp.Count(this=exp.column(name, quoted=True))).from_(_NAME).sql("duckdb")
        try:
            self._relate(self._connection, {name: kind}).query(_NAME, sql).fetchall()
        except duckdb.Error:
            return False
        return True

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        with new_file(place) as made:
            if self.ours:
                self._limit(place)
            told = ", ".join(("FORMAT parquet", f"KV_METADATA {{tacit: '{about}'}}", "USE_TMP_FILE false"))
            sql = f"COPY ({select}) TO {exp.Literal.string(made).sql('duckdb')} ({told})"

            def write() -> None:
                self._relation.query(_NAME, sql)

            if progress and self.ours:
                self._watched(write, progress)
            else:
                write()
            check(self.kept(made))

    def kept(self, place: str) -> DuckDB:
        made = DuckDB(Path(place).name, lambda connection, _: connection.read_parquet(place), "Parquet")
        made._limit(place)
        return made

    def made_for(self, place: str) -> str | None:
        if not os.path.exists(place):
            return None
        named = exp.Literal.string(place).sql("duckdb")
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT value FROM parquet_kv_metadata({named}) WHERE key = 'tacit'").fetchall()
        return str(found[0][0].decode()) if found else ""

    def state(self, place: str) -> str:
        found = os.stat(place)
        return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"

    def drop(self, place: str) -> None:
        Path(place).unlink(missing_ok=True)
        for left in Path(place).parent.glob(f"{glob.escape(Path(place).name)}.*.new"):  # of a run that was cut short
            left.unlink()

    def _limit(self, place: str) -> None:
        """Beyond so much memory DuckDB writes what it works with to a folder beside `place`, which only we may enter.

        The folder goes with the engine, or at the end of the process. The order of rows means nothing here.
        """
        if self._spilled is not None:
            return
        self._spilled = tempfile.mkdtemp(prefix=f"{Path(place).name}.spill.", dir=Path(place).parent)
        weakref.finalize(self, shutil.rmtree, self._spilled, ignore_errors=True)
        spilled = exp.Literal.string(self._spilled).sql("duckdb")
        self._connection.execute(f"SET memory_limit = '{MEMORY}'")
        self._connection.execute(f"SET temp_directory = {spilled}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(f"SET perfect_ht_threshold = {DIRECT_BITS}")


@contextmanager
def new_file(place: str) -> Iterator[str]:
    """A file that only its owner reads, and that comes to its place when all that is done with it here is done."""
    made = f"{place}.{uuid.uuid4().hex}.new"
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield made
        os.replace(made, place)
    finally:
        Path(made).unlink(missing_ok=True)


def is_database(path: str) -> bool:
    """Whether the file is a DuckDB database."""
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK"


def csv_header(connection: Any, path: str, sep: str | None = None) -> list[str]:
    """The names of a CSV file's columns, as `read_csv` finds them."""
    tabs = "" if sep is None else ", sep = $sep"
    given = {"path": path} if sep is None else {"path": path, "sep": sep}
    sql = f"FROM read_csv($path, header = true, all_varchar = true{tabs}) LIMIT 0"
    return [name for name, *_ in connection.execute(sql, given).description]


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


class Postgres:
    """A table or view of a PostgreSQL server, by its address and name."""

    dialect: Dialect = "postgres"
    joins: Sequence[Joined] = ()

    def __init__(self, url: str, table: exp.Table, shown: str) -> None:
        self.table = table
        self.failure = f"the PostgreSQL table {shown} could not be read: check its name and your rights."
        self.url = url

    def stated(self, sql: str) -> str:
        """A statement as it is sent."""
        return sql

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

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        def counted(connection: Any) -> list[Numbers]:
            self.checked(connection)
            return [copied(connection, self.stated(sql)) for sql in statements]

        return self._ask(counted)

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        def fetched(connection: Any) -> list[tuple[Any, ...]]:
            self.checked(connection)
            return list(connection.execute(self.stated(statement)).fetchall())

        return self._ask(fetched)

    def _ask(self, work: Callable[[Any], T], *, only_read: bool = True) -> T:
        import psycopg

        with quietly(lambda: psycopg.connect(self.url), _UNREACHED) as connection:
            # Repeatable: all statements see one state of a table that others write to.
            connection.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ {'READ ONLY' * only_read}")
            connection.execute("SET LOCAL standard_conforming_strings = on")  # a backslash in a value is a backslash
            return work(connection)

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        def write(connection: Any) -> None:
            name = named(place, "postgres")
            self.checked(connection)
            connection.execute(f"CREATE TABLE {name.sql('postgres')} AS {self.stated(select)}")
            check(_Unfinished(connection, name, place))  # nobody else sees the table before this transaction ends
            connection.execute(f"COMMENT ON TABLE {name.sql('postgres')} IS 'tacit {about}'")

        self._ask(write, only_read=False)

    def kept(self, place: str) -> Postgres:
        return Postgres(self.url, named(place, "postgres"), place)

    def made_for(self, place: str) -> str | None:
        there, comment = self._found(place)
        if there is None:
            return None
        return comment.removeprefix("tacit ") if comment and comment.startswith("tacit ") else ""

    def state(self, place: str) -> str:
        return str(self._found(place))

    def _found(self, place: str) -> tuple[int | None, str | None]:
        """The number that no other table of the server has, and the comment."""
        name = named(place, "postgres").sql("postgres")
        sql = "SELECT CAST(to_regclass(%s) AS oid), obj_description(to_regclass(%s), 'pg_class')"
        found: tuple[int | None, str | None] = self._ask(
            lambda connection: connection.execute(sql, (name, name)).fetchone()
        )
        return found

    def drop(self, place: str) -> None:
        name = named(place, "postgres").sql("postgres")
        self._ask(lambda connection: connection.execute(f"DROP TABLE IF EXISTS {name}"), only_read=False)


class _Unfinished(Postgres):
    """A table as the transaction sees it that makes it."""

    def __init__(self, connection: Any, table: exp.Table, shown: str) -> None:
        super().__init__("", table, shown)
        self._connection = connection

    def _ask(self, work: Callable[[Any], T], *, only_read: bool = True) -> T:
        return work(self._connection)


def copied(connection: Any, sql: str) -> Numbers:
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
    joins: Sequence[Joined] = ()
    failure = "the Spark DataFrame could not be read."

    def __init__(self, frame: Any) -> None:
        self.table = exp.table_(f"tacit_{uuid.uuid4().hex}", quoted=True)
        self.frame = frame

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        return tuple(table_column(name, kind) for name, kind in self.types())

    def types(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
        zoned = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
        fields = self.frame.schema.fields
        return [(field.name, zoned.get(kind := field.dataType.simpleString(), kind)) for field in fields]

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        found = self._named(lambda session: [session.sql(sql).toArrow() for sql in statements])
        return [[column.to_numpy().astype(np.int64) for column in table.columns] for table in found]

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        return self._named(lambda session: [tuple(row) for row in session.sql(statement).collect()])

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        self._named(lambda session: session.sql(select).write.mode("error").parquet(place))
        try:
            check(self.kept(place))
            # Last, in a file that is no part of the table: not every place that Spark writes to can rename a folder.
            files, mark = self._files(f"{place}/{_MARK}")
            written = files.create(mark, False)
            written.write(about.encode())
            written.close()
        except BaseException:
            self.drop(place)
            raise

    def kept(self, place: str) -> Spark:
        return Spark(self.frame.sparkSession.read.parquet(place))

    def made_for(self, place: str) -> str | None:
        files, folder = self._files(place)
        if not files.exists(folder):
            return None
        files, mark = self._files(f"{place}/{_MARK}")
        if not files.exists(mark):  # a run that was cut short, or nothing of ours
            return ""
        opened = files.open(mark)
        try:
            return str(self.frame.sparkSession._jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))
        finally:
            opened.close()

    def state(self, place: str) -> str:
        files, mark = self._files(f"{place}/{_MARK}")
        return f"{self.made_for(place)} {files.getFileStatus(mark).getModificationTime()}"

    def drop(self, place: str) -> None:
        files, folder = self._files(place)
        files.delete(folder, True)

    def _files(self, place: str) -> tuple[Any, Any]:
        """The file system that a place is in, and the place."""
        found = self.frame.sparkSession._jvm.org.apache.hadoop.fs.Path(place)
        return found.getFileSystem(self.frame.sparkSession._jsc.hadoopConfiguration()), found

    def _named(self, work: Callable[[Any], T]) -> T:
        session = self.frame.sparkSession
        self.frame.createOrReplaceTempView(self.table.name)
        try:
            return work(session)
        finally:
            session.catalog.dropTempView(self.table.name)


@dataclass(frozen=True)
class Seen:
    """What a column was seen to hold: where nearly all of it lies, its values if they are few, how many are different.

    different: about how many values there are, as a share of the rows. 1 for an identifier.
    """

    low: Any
    high: Any
    whole: bool
    values: tuple[str, ...] | None
    has_missing: bool
    different: float = 0.0


def look(data: object, table: str | None) -> Mapping[str, Seen]:
    """Bounds and values of every column, exact: for an owner who makes them public by writing them into a domain."""
    source = open_source(data, table)
    if not isinstance(source.engine, DuckDB):
        raise DataError("values are looked up in files and frames only; declare the domain of this source by hand.")
    engine = source.engine
    return quietly(lambda: {column.name: _look(engine, column) for column in engine.columns()}, engine.failure)


def _look(engine: DuckDB, column: TableColumn) -> Seen:
    name = exp.column(column.name, quoted=True)
    has_missing = exp.func("BOOL_OR", name.is_(exp.null()))
    many = exp.Div(this=exp.func("APPROX_COUNT_DISTINCT", name), expression=exp.func("COUNT", exp.Star()))
    different = min(1.0, float(engine.look(exp.select(many))[0] or 0.0))
    if column.type in ("text", "empty"):
        kept = exp.Trim(this=exp.cast(name, "TEXT"), expression=exp.Literal.string(" "), position="TRAILING")
        values = exp.func("LIST", exp.Distinct(expressions=[kept]))
        few = exp.func("APPROX_COUNT_DISTINCT", name)
        missing, number = engine.look(exp.select(has_missing, few))
        listed = sorted(v for v in engine.look(exp.select(values))[0] or [] if v) if number < 200 else []
        listed = [value for value in listed if value.isprintable()]  # no category lists others; they are its `other`
        found = tuple(listed) if 0 < len(listed) <= MAX_LISTED else None
        return Seen(None, None, False, found, bool(missing), different)
    if column.type in ("number", "decimal"):
        value = exp.cast(name.copy(), "DOUBLE")
        inside = exp.Where(this=exp.func("ISFINITE", value))
        # Not the ends themselves: one outlier would make all other rows share a bin. What lies beyond is clamped.
        low_share, high_share = (exp.Literal.number(share) for share in (TRIMMED, 1 - TRIMMED))
        asked = [
            exp.func("QUANTILE_DISC", value, low_share),
            exp.func("QUANTILE_DISC", value, high_share),
            exp.func("MIN", value),
            exp.func("MAX", value),
            exp.func("BOOL_AND", exp.EQ(this=exp.func("FLOOR", value), expression=value)),
        ]
        absent = exp.func("BOOL_OR", exp.or_(name.is_(exp.null()), exp.func("ISNAN", value)))
        *ends, is_whole, missing = engine.look(
            exp.select(*(exp.Filter(this=one, expression=inside) for one in asked), absent)
        )
        low, high = _without_outliers(*ends)
        is_whole = is_whole and max(abs(low), abs(high)) < MAX_WHOLE
        return Seen(low, high, bool(is_whole), None, bool(missing), different)
    if column.type in ("date", "timestamp"):
        origin = dt.date(2000, 1, 1)
        since = exp.cast(exp.Literal.string(origin.isoformat()), "DATE")
        days = exp.paren(exp.Sub(this=exp.cast(name, "DATE"), expression=since))
        finite = exp.Where(this=exp.func("ISFINITE", name.copy()))
        shares = [exp.func("QUANTILE_DISC", days, exp.Literal.number(share)) for share in (TRIMMED, 1 - TRIMMED)]
        every = (
            exp.Filter(this=one, expression=finite) for one in (*shares, exp.func("MIN", days), exp.func("MAX", days))
        )
        *ends, missing = engine.look(exp.select(*every, has_missing))
        # 9999-12-31 stands for no date in many tables: one such row would leave a bin to all others.
        low, high = (None if end is None else origin + dt.timedelta(days=end) for end in _without_outliers(*ends))
        return Seen(low, high, False, None, bool(missing))
    return Seen(None, None, False, None, bool(engine.look(exp.select(has_missing))[0]))


def _without_outliers(
    low: float | None, high: float | None, least: float | None, most: float | None
) -> tuple[Any, Any]:
    """The least and the most, each unless it lies far from where nearly all values are."""
    if low is None or high is None or least is None or most is None:
        return None, None
    far = FAR * (high - low)
    return (low if least < low - far else least), (high if most > high + far else most)
