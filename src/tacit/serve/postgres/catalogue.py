"""What clients ask about tables and columns: an engine in memory with public metadata alone. Called by `listener`.

It opens no file and loads no extension, its configuration is locked, and the data are not in it: whatever is asked,
what can be learned is what the owner declared. A look takes a bounded time, and gives a bounded number of rows.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from weakref import WeakValueDictionary

import duckdb
from sqlglot import exp

from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.metadata import metadata
from tacit.serve.postgres.source import Statement
from tacit.serve.postgres.sqlstate import NO_COLUMN, SYNTAX, TOO_LARGE, UNSUPPORTED, WireError
from tacit.serve.postgres.translation import Caller, Known, parameter_types, parsed, translated
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
    Value,
    size_of,
)
from tacit.serve.served import ServedData

MAX_ROWS = 100_000
TOGETHER = 500  # rows that are put in at once
MAX_TOGETHER = 4  # looks at once
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
        self._room = asyncio.Semaphore(MAX_TOGETHER)
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
            self._known = Known(
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

    def lookup(self, statement: Statement, caller: Caller) -> Lookup:
        """Read a statement. What it is about that is not there is refused. In a thread, in the key's turn."""
        self._make()
        tree = parsed(statement.text)
        types = parameter_types(tree)
        made = translated(tree, [None] * len(types), caller, self._known)
        fields = tuple(
            Field(name, _type(kind), size_of(_type(kind))) for name, kind, *_ in self._run(f"DESCRIBE {made}")
        )
        return Lookup(tree, fields, types)

    def rows(self, lookup: Lookup, values: Sequence[Value], caller: Caller) -> list[Row]:
        """The rows of a look. In a thread, in the key's turn."""
        return self._run(translated(lookup.tree, values, caller, self._known))

    def _run(self, text: str) -> list[Row]:
        """All rows of a statement, in the time that one has."""
        with self._engine.cursor() as cursor:
            limit = threading.Timer(self._seconds, cursor.interrupt)
            limit.daemon = True
            limit.start()
            try:
                found: list[Row] = cursor.execute(text).fetchmany(MAX_ROWS + 1)
            except duckdb.InterruptException:
                words = f"a look into the catalogues takes at most {self._seconds:g} seconds."
                raise WireError(TOO_LARGE, words) from None
            except duckdb.Error as error:
                raise _refused(error) from None
            finally:
                limit.cancel()
        if len(found) > MAX_ROWS:
            raise WireError(TOO_LARGE, f"a look into the catalogues gives at most {MAX_ROWS:,} rows.")
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


def _fill(engine: duckdb.DuckDBPyConnection, filled: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Put rows into their tables, many of one table at once."""
    kept: dict[tuple[str, tuple[str, ...]], list[object]] = {}
    for table, row in filled:
        kept.setdefault((table, tuple(row)), []).extend(row.values())
    for (table, names), values in kept.items():
        columns, marks = ", ".join(f'"{name}"' for name in names), f"({', '.join('?' * len(names))})"
        for start in range(0, len(values), len(names) * TOGETHER):
            some = values[start : start + len(names) * TOGETHER]
            lines = ", ".join([marks] * (len(some) // len(names)))
            engine.execute(f"INSERT INTO {table} ({columns}) VALUES {lines}", some)
