"""One SQLite file that survives crashes and power cuts: how the ledger and the anchor touch the disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError

_PATIENCE = 60  # seconds to wait for another process's transaction
_PRAGMAS = (
    f"PRAGMA busy_timeout={_PATIENCE * 1000}",
    "PRAGMA synchronous=FULL",  # NORMAL does not sync the write-ahead log at commit: a power cut takes answers back
    "PRAGMA fullfsync=ON",  # macOS: a plain fsync does not reach the disk
    # No automatic checkpoints: those are passive, and a passive checkpoint that races a writer can lose commits in
    # SQLite before 3.51.3 ("WAL-reset bug"). FULL ones hold the write lock, so we run them ourselves.
    "PRAGMA wal_autocheckpoint=0",
)
_CHECKPOINT, _CHECKPOINT_EVERY = "PRAGMA wal_checkpoint(FULL)", 256  # commits
# A process killed between its last write and its sync leaves a commit that we can read but that a power cut could still
# undo. A checkpoint when opening syncs it before anybody is told of it.
_RECOVER = _CHECKPOINT
_inherited: list[Any] = []  # connections of a parent process: never used, and never closed, by the child

_FAULTS = {  # SQLite's error name begins with: what an owner can do about it
    "SQLITE_BUSY": f"was held by another process for more than {_PATIENCE} seconds",
    "SQLITE_NOTADB": "is not a file of this program",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_READONLY": "cannot be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_PERM": "cannot be opened",
    "SQLITE_IOERR": "could not be read or written: the disk reported an error",
}


def _connect(path: Path) -> Any:
    """Tests of power cuts replace this; anything with `execute`, `fetchone` and `fetchall` will do."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class DurableFile:
    """One SQLite file: for several threads, several processes and forked children.

    Guarantee: a transaction that returned survives a crash and a power cut; a file replaced under us is refused.
    Formula: begin immediate, work, commit = write-ahead log synced; one connection per process, one thread at a time.
    Source: sqlite.org/wal.html, sqlite.org/howtocorrupt.html (forks, replaced files, the WAL-reset bug).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.RLock()
        self._turn, self._turns = threading.RLock(), 0
        self._connection: Any = None
        self._pid = os.getpid()
        self._identity: object = None
        self._commits = 0

    @staticmethod
    def create(path: Path, statements: list[tuple[str, tuple[object, ...]]]) -> bool:
        """Make the file; False if something is there already.

        Guarantee: whole or not at all, and mode 0600. Formula: build beside, sync, link. Source: link(2).
        """
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        os.close(handle)
        try:
            with contextlib.closing(sqlite3.connect(name, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                for statement, values in statements:
                    db.execute(statement, values)
            _sync(Path(name))
            os.link(name, path)  # unlike a rename, refuses to replace what is there
            _sync(path.parent)
        except FileExistsError:
            return False
        finally:
            os.unlink(name)
        return True

    @contextlib.contextmanager
    def use(self) -> Iterator[Any]:
        """The connection, for reading.

        Guarantee: this process's own, to the file of before. Formula: same pid, same inodes. Source: see the class.
        """
        self._notice_fork()
        with self._mutex:
            try:
                if self._connection is None:
                    self._open()
                elif self._identity != _identity(self.path):
                    raise LedgerError(f"{self.path.name} was replaced or removed while in use.")
                yield self._connection
            except sqlite3.Error as error:
                name = getattr(error, "sqlite_errorname", "")
                fault = next((text for start, text in _FAULTS.items() if name.startswith(start)), "cannot be used")
                raise LedgerError(f"{self.path.name} {fault}.") from None
            except OSError:
                raise LedgerError(f"{self.path.name} cannot be read or written.") from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """The connection, for writing.

        Guarantee: durable when the block has ended, undone when it raises. Formula: begin immediate, commit or roll
        back. Source: see the class.
        """
        with self.use() as db:
            if self._commits % _CHECKPOINT_EVERY == _CHECKPOINT_EVERY - 1:
                db.execute(_CHECKPOINT).fetchall()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):  # the connection may have rolled back by itself
                    db.execute("ROLLBACK")
                raise
            self._commits += 1

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn; those who do not ask for turns may still read and write.

        Guarantee: one holder among all threads and processes. Formula: a thread lock, then a lock on PATH.lock.
        Source: flock(2).
        """
        self._notice_fork()
        with self._turn, contextlib.ExitStack() as stack:
            if self._turns == 0:
                try:
                    handle = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                    stack.callback(os.close, handle)
                    fcntl.flock(handle, fcntl.LOCK_EX)
                except OSError:
                    raise LedgerError(f"{self.path.name}.lock cannot be locked.") from None
            self._turns += 1
            holder = os.getpid()
            try:
                yield
            finally:
                if holder == os.getpid():  # a child forked meanwhile shares our handle, and must not unlock it
                    self._turns -= 1
                    if self._turns == 0:
                        fcntl.flock(handle, fcntl.LOCK_UN)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            _inherited.append(self._connection)
            self._mutex, self._turn, self._turns = threading.RLock(), threading.RLock(), 0
            self._connection, self._pid = None, os.getpid()

    def _open(self) -> None:
        os.stat(self.path)  # connecting would make a missing file
        db = _connect(self.path)
        try:
            for pragma in _PRAGMAS:
                db.execute(pragma).fetchall()
            if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                raise LedgerError(f"{self.path.name} is not a file of this program.")
            db.execute(_RECOVER).fetchall()
        except BaseException:
            db.close()
            raise
        self._connection, self._identity = db, _identity(self.path)

    def close(self) -> None:
        """Let go of the file. Guarantee: nothing is pending. Formula: close. Source: see the class."""
        if self._connection is not None and self._pid == os.getpid():
            with self._mutex:
                self._connection.close()
                self._connection = None


def _identity(path: Path) -> object:
    """Which files these are, whatever they are called: SQLite keeps the log while anybody is connected."""
    return [(status.st_dev, status.st_ino) for status in (os.stat(path), os.stat(f"{path}-wal"))]


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
