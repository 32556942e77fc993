"""Ledgers and anchors in memory: for attacks that need a hundred thousand whole sessions, and no disk.

What stands in for `DurableFile` runs the same SQL in the same transactions, as savepoints within one that is undone at
the end of a session: so the next one finds empty tables, and statements that are prepared. Left out is what no
transcript depends on: files, syncs, locks between processes and forks, which `tests/crash` and `tests/trusted` attack
with real files.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tacit.store import anchor, log
from tacit.trusted import ledger

T = TypeVar("T")
Schema = tuple[str, ...]
_made: dict[str, tuple[Schema, sqlite3.Connection]] = {}
_spare: dict[Schema, list[sqlite3.Connection]] = {}  # by their tables, which are empty


def _empty(schema: Schema) -> sqlite3.Connection:
    """A database with these empty tables. One that a session before had is as good, and has its statements prepared."""
    if _spare.setdefault(schema, []):
        return _spare[schema].pop()
    db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=1_000)
    for table in schema:
        db.execute(table)
    db.execute("SAVEPOINT empty")
    return db


class MemoryPath(type(Path())):  # type: ignore[misc]
    """A name that exists from when a file in memory was made under it."""

    def exists(self, **_: Any) -> bool:
        return str(self) in _made


class MemoryFile:
    """One database in memory, for one thread, until `forget`."""

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.mutex = MemoryPath(path), str(path), threading.RLock()

    @staticmethod
    def create(path: Path, statements: Sequence[tuple[str, tuple[object, ...]]]) -> bool:
        name, schema = str(path), tuple(statement for statement, values in statements if not values)
        if name in _made:
            return False
        _made[name] = schema, _empty(schema)
        for statement, values in statements:
            if values:
                _made[name][1].execute(statement, values)
        return True

    def read(self, work: Callable[[Any], T]) -> T:
        return work(_made[self.name][1])

    def transact(self, work: Callable[[Any], T]) -> T:
        db = _made[self.name][1]
        db.execute("SAVEPOINT transacted")
        try:
            result = work(db)
        except BaseException:
            db.execute("ROLLBACK TO transacted")
            db.execute("RELEASE transacted")
            raise
        db.execute("RELEASE transacted")
        return result

    def turn(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def has_turn(self) -> bool:
        return False

    def check_room(self) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


@contextmanager
def in_memory() -> Iterator[None]:
    """While this lasts, ledgers and anchors are made in memory; then they are forgotten."""
    with (
        mock.patch.object(ledger, "Path", MemoryPath),
        mock.patch.object(log, "Path", MemoryPath),
        mock.patch.object(anchor, "Path", MemoryPath),
        mock.patch.object(log, "DurableFile", MemoryFile),
        mock.patch.object(anchor, "DurableFile", MemoryFile),
        mock.patch.object(anchor, "make_folder", return_value=None),
        mock.patch.object(log.os.path, "realpath", lambda path: path),  # nothing in memory has a second name
    ):
        try:
            yield
        finally:
            forget()


def forget() -> None:
    """All that was written: the databases are as empty as they were made."""
    for schema, db in _made.values():
        db.execute("ROLLBACK TO empty")
        _spare[schema].append(db)
    _made.clear()
