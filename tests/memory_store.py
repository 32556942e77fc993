"""Ledgers and anchors in memory: for attacks that need a hundred thousand whole sessions, and no disk.

What stands in for `DurableFile` runs the same SQL in the same transactions. Left out is what no transcript depends on:
files, syncs, locks between processes and forks, which `tests/crash` and `tests/trusted` attack with real files.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tacit.store import anchor, log
from tacit.trusted import ledger

T = TypeVar("T")
_made: dict[Path, sqlite3.Connection] = {}


@cache
def _empty(tables: tuple[str, ...]) -> bytes:
    """A database with these tables: half of a session's time, were they made each time."""
    with closing(sqlite3.connect(":memory:")) as db:
        for table in tables:
            db.execute(table)
        return db.serialize()


class MemoryPath(type(Path())):  # type: ignore[misc]
    """A name that exists from when a file in memory was made under it."""

    def exists(self, **_: Any) -> bool:
        return self in _made


class MemoryFile:
    """One database in memory, for one thread, until `forget`."""

    def __init__(self, path: Path) -> None:
        self.path, self.mutex = MemoryPath(path), threading.RLock()

    @staticmethod
    def create(path: Path, statements: Sequence[tuple[str, tuple[object, ...]]]) -> bool:
        tables = tuple(statement for statement, values in statements if not values)
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.deserialize(_empty(tables))
        for statement, values in statements:
            if values:
                db.execute(statement, values)
        return _made.setdefault(MemoryPath(path), db) is db

    def read(self, work: Callable[[Any], T]) -> T:
        return work(_made[self.path])

    def transact(self, work: Callable[[Any], T]) -> T:
        db = _made[self.path]
        db.execute("BEGIN IMMEDIATE")
        try:
            result = work(db)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
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
    """While this lasts, ledgers and anchors are made in memory."""
    with (
        mock.patch.object(ledger, "Path", MemoryPath),
        mock.patch.object(log, "Path", MemoryPath),
        mock.patch.object(anchor, "Path", MemoryPath),
        mock.patch.object(log, "DurableFile", MemoryFile),
        mock.patch.object(anchor, "DurableFile", MemoryFile),
        mock.patch.object(anchor, "make_folder", return_value=None),
        mock.patch.object(log.os.path, "realpath", lambda path: path),  # nothing in memory has a second name
    ):
        yield


def forget() -> None:
    """All that was made."""
    for db in _made.values():
        db.close()
    _made.clear()
