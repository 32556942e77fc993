"""What clients ask about tables and columns: an engine in memory with public metadata alone. Called by `listener`.

It opens no file and loads no extension, its configuration is locked, and the data are not in it: whatever is asked,
what can be learned is what the owner declared. A look takes a bounded time, and gives a bounded number of rows.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from weakref import WeakValueDictionary

import duckdb
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres

from tacit.model.attribute import Attribute
from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.command import DEFAULTS
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.source import SentStatement
from tacit.serve.postgres.sqlstate import NO_COLUMN, SYNTAX, TOO_LARGE, UNSUPPORTED, WireError
from tacit.serve.postgres.translation import Caller, CatalogueNames, parameter_types, parsed, translated
from tacit.serve.postgres.types import (
    ARRAY_OF,
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    WIRE_TYPES,
    WireValue,
    declared_type,
    group_type,
    size_of,
)
from tacit.serve.served_data import MAX_LABELS, ServedData

MAX_CATALOGUE_ROWS = 100_000
_TOGETHER = 500  # rows that are put in at once
MAX_LOOKS = 4  # looks at once
_SETTINGS = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
    "memory_limit": "256MB",
    "threads": "1",
}
_SHOWN = {
    "VARCHAR": TEXT, "BIGINT": INT8, "INTEGER": INT4, "SMALLINT": INT2, "TINYINT": INT2, "UINTEGER": OID,
    "BOOLEAN": BOOL, "DOUBLE": FLOAT8, "FLOAT": FLOAT4, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "HUGEINT": NUMERIC,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ, "UBIGINT": NUMERIC,
}  # fmt: skip
# The functions that read and write a type, by which clients know what its binary values are: int8recv, date_recv.
_FUNCTIONS = {"input": "in", "output": "out", "receive": "recv", "send": "send"}
_WITH_DASH = ("json", "date", "time", "timestamp", "timestamptz", "numeric")
DATABASE = "tacit"  # the one that has every data set
_SPACES = {"pg": 11, "information": 13_000, "tacit": 13_001}  # the numbers of their own schemas: see `tables.sql`
_SYSTEM = {"pg_class": 1259, "pg_type": 1247, "pg_namespace": 2615, "pg_database": 1262, "pg_proc": 1255}
_FIRST_SYSTEM, _FIRST_TABLE = 12_000, 20_000
Filled = Iterator[tuple[str, dict[str, Any]]]  # a table's name, and a row of it


@dataclass(frozen=True, eq=False)
class Lookup:
    """A look into the catalogues that was read: its tree, its columns, and the types of its parameters."""

    tree: exp.Expr
    fields: tuple[Field, ...]
    parameters: tuple[int, ...]

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        pairs = zip((*given, *(0,) * len(self.parameters)), self.parameters, strict=False)
        return tuple(known if type in (0, UNKNOWN) else type for type, known in pairs)


class Catalogue:
    """The catalogues of one server."""

    def __init__(self, datasets: Mapping[str, ServedData], *, seconds: float) -> None:
        self._datasets, self._seconds = datasets, seconds
        self._making, self._made = threading.Lock(), False
        self._room = asyncio.Semaphore(MAX_LOOKS)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # by key: one look of each at once

    def _make(self) -> None:
        """Make the engine when somebody looks first: many clients never do."""
        with self._making:
            if self._made:
                return
            self._engine = duckdb.connect(":memory:", config=dict(_SETTINGS))
            here = files(__package__)
            for file in ("tables.sql", "functions.sql"):
                self._engine.execute(here.joinpath(file).read_text())
            tables = self._engine.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
            _fill(self._engine, metadata(self._datasets, tables))
            # From here on nothing can be changed: not what it may open, and not this.
            self._engine.execute("SET lock_configuration = true")
            functions = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE schema_name = 'pg'"
            self._known = CatalogueNames(
                {schema: {name for owner, name in tables if owner == schema} for schema, _ in tables},
                {name for (name,) in self._engine.execute(functions).fetchall()},
                sorted(self._datasets),
            )
            self._made = True

    @asynccontextmanager
    async def turn(self, key: int) -> AsyncIterator[None]:
        """A key's turn to look: others of the same key wait, and a few keys look at once."""
        async with self._turns.setdefault(key, asyncio.Lock()), self._room:
            yield

    def lookup(self, statement: SentStatement, caller: Caller) -> Lookup:
        """Read a statement. What it is about that is not there is refused. In a thread, in the key's turn."""
        self._make()
        try:
            tree = parsed(statement.text)
            types = parameter_types(tree)
            made = translated(tree, [None] * len(types), caller, self._known)
        except WireError as error:
            error.at = None if error.at is None else statement.start + error.at
            raise
        fields = tuple(
            Field(name, _type(kind), size_of(_type(kind))) for name, kind, *_ in self._run(f"DESCRIBE {made}")
        )
        return Lookup(tree, fields, types)

    def rows(self, lookup: Lookup, values: Sequence[WireValue], caller: Caller) -> list[Row]:
        """The rows of a look. In a thread, in the key's turn."""
        return self._run(translated(lookup.tree, values, caller, self._known))

    def _run(self, text: str) -> list[Row]:
        """All rows of a statement, in the time that one has."""
        with self._engine.cursor() as cursor:
            limit = threading.Timer(self._seconds, cursor.interrupt)
            limit.daemon = True
            limit.start()
            try:
                found: list[Row] = cursor.execute(text).fetchmany(MAX_CATALOGUE_ROWS + 1)
            except duckdb.InterruptException:
                words = f"a look into the catalogues takes at most {self._seconds:g} seconds."
                raise WireError(TOO_LARGE, words) from None
            except duckdb.Error as error:
                raise _refused(error) from None
            finally:
                limit.cancel()
        if len(found) > MAX_CATALOGUE_ROWS:
            raise WireError(TOO_LARGE, f"a look into the catalogues gives at most {MAX_CATALOGUE_ROWS:,} rows.")
        return found

    def close(self) -> None:
        with self._making:
            if self._made:
                self._engine.close()


def _refused(error: duckdb.Error) -> WireError:
    """The catalogues hold nothing but what is public, so the engine's own words may be shown: their first line."""
    words = str(error).partition("\n")[0][:300]
    if isinstance(error, duckdb.ParserException):
        return WireError(SYNTAX, words)
    missing = isinstance(error, duckdb.BinderException) and "column" in words
    return WireError(NO_COLUMN if missing else UNSUPPORTED, words)


def _type(kind: str) -> int:
    if kind.endswith("[]"):
        return ARRAY_OF.get(_SHOWN.get(kind[:-2], TEXT), ARRAY_OF[TEXT])
    return NUMERIC if kind.startswith("DECIMAL") else _SHOWN.get(kind, TEXT)


def _fill(engine: duckdb.DuckDBPyConnection, filled: Filled) -> None:
    """Put rows into their tables, many of one table at once."""
    kept: dict[tuple[str, tuple[str, ...]], list[object]] = {}
    for table, row in filled:
        kept.setdefault((table, tuple(row)), []).extend(row.values())
    for (table, names), values in kept.items():
        columns, marks = ", ".join(f'"{name}"' for name in names), f"({', '.join('?' * len(names))})"
        for start in range(0, len(values), len(names) * _TOGETHER):
            some = values[start : start + len(names) * _TOGETHER]
            lines = ", ".join([marks] * (len(some) // len(names)))
            engine.execute(f"INSERT INTO {table} ({columns}) VALUES {lines}", some)


# -- what they hold: all of it is public, the declared domain and the number of rows ----------------------------------


def metadata(datasets: Mapping[str, ServedData], system: Iterable[tuple[str, str]]) -> Filled:
    """Every row that differs from server to server; `tables.sql` has the rest, and what rows say by default.

    system: the catalogues' own tables, by schema and name: clients ask for their numbers.
    """
    for i, name in enumerate([DATABASE, *sorted(datasets)]):
        yield "pg.pg_database", {"oid": 5 + i, "datname": name}
    for name, value in DEFAULTS.items():
        yield "pg.pg_settings", {"name": name, "setting": value}
    for word in sorted(Postgres.Tokenizer.KEYWORDS):
        if word.isalpha():
            yield "pg.pg_get_keywords", {"word": word.lower()}
    yield from _types()
    for i, (schema, name) in enumerate(sorted(system)):
        known = {"oid": _SYSTEM.get(name, _FIRST_SYSTEM + i), "relname": name, "relnamespace": _SPACES[schema]}
        yield "pg.pg_class", known | {"relkind": "v" if schema == "information" else "r"}
    for i, (name, dataset) in enumerate(sorted(datasets.items())):
        yield from _dataset(_FIRST_TABLE + i, name, dataset)


def _types() -> Filled:
    for number, fact in WIRE_TYPES.items():
        array, preferred = ARRAY_OF.get(number, 0), number in (TEXT, FLOAT8, BOOL)
        known = {"typtype": "p" if number == UNKNOWN else "b", "typispreferred": preferred}
        known |= {"typbyval": 0 < fact.size <= 8}
        own = {"typname": fact.name, "typlen": fact.size, "typcategory": fact.category, "typarray": array}
        name = f"{fact.name}_" if fact.name in _WITH_DASH else fact.name
        functions = {f"typ{what}": name + called for what, called in _FUNCTIONS.items()}
        yield "pg.pg_type", {"oid": number, **own, **functions, **known}
        yield "pg.type_words", {"oid": number, "words": fact.sql}
        if array:
            own = {"typname": f"_{fact.name}", "typlen": -1, "typcategory": "A", "typelem": number}
            functions = {f"typ{what}": f"array_{called}" for what, called in _FUNCTIONS.items()}
            yield "pg.pg_type", {"oid": array, **own, **functions, **known}
            yield "pg.type_words", {"oid": array, "words": f"{fact.sql}[]"}


def _dataset(number: int, name: str, dataset: ServedData) -> Filled:
    session = dataset.session
    sizes = {"reltuples": float(session.rows), "relnatts": len(session.domain)}
    yield "pg.pg_class", {"oid": number, "relname": name, **sizes}
    about = f"{session.rows:,} rows. Questions about it are answered with noise: every value has an error bar."
    yield "pg.pg_description", {"objoid": number, "description": about}
    yield "pg.pg_tables", {"tablename": name}
    yield "pg.pg_stat_user_tables", {"relid": number, "relname": name}
    yield "information.tables", {"table_name": name}
    facts = {"mechanism": session.choice.mechanism, "confidence": session.confidence}
    yield "tacit.datasets", {"table_name": name, "rows": session.rows, **facts}
    for position, (column, attribute) in enumerate(session.domain.items(), 1):
        yield "pg.pg_description", {"objoid": number, "objsubid": position, "description": comment(attribute)}
        yield from _column(number, position, name, column, attribute)
        for i in range(min(attribute.size, MAX_LABELS)):
            value = {"table_name": name, "column_name": column, "position": i + 1, "value": attribute.label(i)}
            extra = {"is_other": i == attribute.other_index, "is_missing": i == attribute.missing_index}
            yield "tacit.values", value | extra


def _column(number: int, position: int, table: str, name: str, attribute: Attribute) -> Filled:
    type, nullable = declared_type(attribute), attribute.missing is not None
    known = {"attrelid": number, "attname": name, "attnum": position, "attnotnull": not nullable}
    yield "pg.pg_attribute", {**known, "atttypid": type, "attlen": size_of(type)}
    column = {"table_name": table, "column_name": name, "ordinal_position": position}
    kind = {"data_type": WIRE_TYPES[type].sql, "udt_name": WIRE_TYPES[type].name}
    yield "information.columns", {**column, **kind, "is_nullable": "YES" if nullable else "NO"}


def comment(attribute: Attribute) -> str:
    """The values that a column may take, in a few words."""
    words = f"takes {attribute.takes}"
    if group_type(attribute) == TEXT and attribute.ordered:
        words += f", in {attribute.bins:,} bins"
    words += "" if attribute.other is None else f"; anything else is {attribute.other!r}"
    return words + ("" if attribute.missing is None else "; missing is NULL")
