"""One SQLite file that survives crashes and power cuts: how the ledger and the anchor touch the disk.

Nothing here is a generator: an interrupt (Ctrl-C) between a generator's steps would leave it suspended, holding a lock
or an open transaction for as long as anybody keeps the exception.

A forked child must not inherit a connection: SQLite's own table of locks would come with it, and a parent that closes
deletes the log under the child. So nobody is connected while the process forks: each file is let go of, and opened
again at its next use.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import LedgerError

T = TypeVar("T")

_PATIENCE = 60.0  # seconds to wait for somebody else's transaction or turn
_ROOM = 16 * 2**20  # bytes: more than the log grows between two checkpoints of ordinary answers
_PRAGMAS = (
    "PRAGMA synchronous=FULL",  # NORMAL does not sync the write-ahead log at commit: a power cut takes answers back
    "PRAGMA fullfsync=ON",  # macOS: a plain fsync does not reach the disk
    # No automatic checkpoints: those are passive, and a passive checkpoint that races a writer can lose commits in
    # SQLite before 3.51.3 ("WAL-reset bug"). FULL ones hold the write lock, so we run them ourselves.
    "PRAGMA wal_autocheckpoint=0",
)
_CHECKPOINT, _CHECKPOINT_EVERY = "PRAGMA wal_checkpoint(FULL)", 256  # commits
_CHECKPOINT_PATIENCE = 0.1  # a checkpoint can wait for the next time; a reader left open would hold up everybody
# A process killed between its last write and its sync leaves a commit that we can read but that a power cut could still
# undo. A checkpoint when opening syncs it before anybody is told of it.
_RECOVER = _CHECKPOINT

_forking = threading.RLock()  # held while the process forks, and by those who must not be forked
_live = weakref.WeakSet["DurableFile"]()  # what is let go of before a fork
_held = threading.local()  # the mutexes that the forking thread has taken
_torn: dict[str, Any] = {}  # what the parent was writing: its connection is never used, and never closed, by the child

# What a file that is not as it was written may raise; SQLite's own words about it need not be UTF-8.
_FAILURES = (sqlite3.Error, OSError, OverflowError, UnicodeDecodeError)
_READ_ONLY = ": it is on a file system that is mounted read-only, and even looking writes a file beside it"
_FAULTS = {  # SQLite's error name begins with: what an owner can do about it
    "SQLITE_BUSY": "was held by another process for too long",
    "SQLITE_NOTADB": "is not a file of this program",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_FULL": "cannot grow: the disk is full",
    "SQLITE_READONLY": "cannot be written",
    "SQLITE_CANTOPEN": "cannot be opened",
    "SQLITE_PERM": "cannot be opened",
    "SQLITE_IOERR": "could not be read or written: the disk reported an error",
}


def _connect(path: Path) -> Any:
    """Tests of power cuts replace this; anything with `execute`, `fetchall` and `in_transaction` will do."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class DurableFile:
    """One SQLite file: for several threads, several processes and forked children.

    Guarantee: a transaction that returned survives a crash and a power cut; a file replaced under us is refused; an
        interrupt leaves no lock and no transaction behind.
    Formula: begin immediate, work, commit = write-ahead log synced; one connection per process, one thread at a time.
    Source: sqlite.org/wal.html, sqlite.org/howtocorrupt.html (forks, replaced files, links, the WAL-reset bug).
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))  # by any other name SQLite would look for another log
        self._wal = Path(f"{self.path}-wal")
        self.mutex = threading.RLock()
        self._connection: Any = None
        self._identity: list[tuple[int, int]] = []
        self._closed = False
        self._commits = 0
        self._turns = weakref.WeakSet[io.FileIO]()
        self._descriptors: set[tuple[int, int, int]] = set()  # ever used for turns: number, device, inode
        self._my_turn = threading.local()
        with _forking:
            _live.add(self)

    @staticmethod
    def create(path: Path, statements: list[tuple[str, tuple[object, ...]]]) -> bool:
        """Make the file, whole or not at all, with mode 0600; False if something is there already.

        It is built beside its place and synced; link(2), unlike a rename, never replaces what is there.
        """
        path = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
        os.close(handle)
        try:
            with _forking, contextlib.closing(_connect(Path(name))) as db:  # no fork meanwhile
                db.execute("PRAGMA journal_mode=WAL").fetchall()
                for statement, values in (("BEGIN", ()), *statements, ("COMMIT", ())):  # one sync, not one for each
                    db.execute(statement, values)
            _sync(Path(name))
            _link(name, path)
            _sync(path.parent)
        except FileExistsError:
            return False
        finally:
            with contextlib.suppress(FileNotFoundError):  # whoever opens the file meanwhile takes this name away
                os.unlink(name)
        return True

    def read(self, work: Callable[[Any], T]) -> T:
        """`work` with the connection, for reading. It sees what is committed, since no transaction of ours is open."""
        with self.mutex:
            try:
                result = work(self._connected())
            except _FAILURES as error:
                raise self._fault(error) from None
        return result

    def transact(self, work: Callable[[Any], T]) -> T:
        """`work` with the connection, for writing.

        Guarantee: durable when it returns, undone when `work` raises; where the disk fails in the commit itself, the
            error says that it may be either.
        """
        with self.mutex:
            committing, db = False, None
            try:
                # Refuses inside a transaction of this thread (a signal handler's call), before the rollback below.
                db = self._connected()
                if self._commits % _CHECKPOINT_EVERY == _CHECKPOINT_EVERY - 1:
                    _checkpoint(db, _CHECKPOINT)
                db.execute("BEGIN IMMEDIATE")
                result = work(db)
                committing = True
                db.execute("COMMIT")
                self._commits += 1
                return result
            except _FAILURES as error:
                raise self._fault(error, committing) from None
            finally:
                try:
                    if db is not None and db.in_transaction:
                        db.execute("ROLLBACK")
                except Exception:  # the connection rolled back by itself, or a signal handler closed it
                    pass

    def turn(self) -> AbstractContextManager[Any]:
        """Wait for one's turn, which this thread does not have; those who do not ask for turns may read and write.

        Guarantee: one holder among all threads and processes; refused after a minute, should the holder hang.
        Formula: a lock (flock(2)) on PATH.lock, which ends when the returned file is closed or forgotten.
        """
        file = None
        try:
            with self.mutex:  # no fork between opening and noting: a child's copy would keep the lock
                if self._closed:
                    raise LedgerError(f"{self.path.name} was closed.")
                file = io.FileIO(f"{self.path}.lock", "a", opener=lambda name, flags: os.open(name, flags, 0o600))
                self._turns.add(file)
                self._descriptors.add(_descriptor(file.fileno()))
            self._wait(file)
            self._my_turn.file = weakref.ref(file)
            # The file is its own context manager, in C: no interrupt can come between its lock and its `with`.
            return file
        except BaseException as error:
            if file is not None:
                file.close()
            if isinstance(error, OSError):
                raise LedgerError(f"{self.path.name}.lock cannot be locked{_why(self.path, error)}.") from None
            raise

    def has_turn(self) -> bool:
        """Whether it is this thread's turn."""
        mine = getattr(self._my_turn, "file", lambda: None)()
        return mine is not None and not mine.closed

    def _wait(self, file: io.FileIO) -> None:
        deadline, pause = time.monotonic() + _PATIENCE, 0.0005
        while True:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LedgerError(f"{self.path.name} was held by another process for too long.") from None
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def check_room(self) -> None:
        """Refuse if less than 16 MB are free, so that a full disk is met before a charge rather than after it."""
        try:
            disk = os.statvfs(self.path.parent)
        except OSError as error:
            raise self._fault(error) from None
        if disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < _ROOM:  # some file systems tell nothing: 0 blocks
            raise LedgerError(f"The disk that holds {self.path.name} is nearly full.")

    def release(self) -> None:
        """Let go of the file until its next use. It must then be the same file."""
        with self.mutex:
            db, self._connection = self._connection, None
            if db is not None:
                db.close()

    def close(self) -> None:
        """Let go of the file. Nothing is pending, and later use is refused."""
        with self.mutex:
            self._closed = True
            self.release()

    def before_fork(self) -> None:
        """Let go of the connection, unless the forking thread is writing: see the module."""
        if self._connection is not None and not self._connection.in_transaction:
            self.release()

    def after_fork(self) -> None:
        """Start anew in the child. A file that was being written is refused there: see the module."""
        # Our copies of the parent's turns would keep them locked when the parent ends them. A thread may have been in
        # the middle of closing one: the object counts as closed, and its descriptor is still open here.
        for turn in list(self._turns):
            turn.close()
        for number, *file in self._descriptors:
            with contextlib.suppress(OSError):
                if _descriptor(number) == (number, *file):
                    os.close(number)
        self._descriptors = set()
        if self._connection is not None:
            _torn[str(self.path)] = self._connection
            self._connection = None

    def _connected(self) -> Any:
        if self._closed:
            raise LedgerError(f"{self.path.name} was closed.")
        db = self._open() if self._connection is None else self._connection
        # Which files these are, whatever they are called: SQLite keeps the log while anybody is connected.
        found = [(status.st_dev, status.st_ino) for status in map(os.stat, (self.path, self._wal))]
        if self._connection is None:
            if self._identity and found[0] != self._identity[0]:
                db.close()
                raise LedgerError(f"{self.path.name} was replaced while it was let go of.")
            self._connection, self._identity = db, found
        elif self._identity != found:
            raise LedgerError(f"{self.path.name} was replaced or removed while in use.")
        elif db.in_transaction:
            raise LedgerError(f"{self.path.name} is in use further up in this same thread.")
        return db

    def _open(self) -> Any:
        if str(self.path) in _torn:
            raise LedgerError(f"{self.path.name} was being written when this process was forked; use a new process.")
        os.stat(self.path)  # connecting would make a missing file
        _check_names(self.path)
        db = _connect(self.path)
        try:
            for pragma in _PRAGMAS:
                db.execute(pragma).fetchall()
            if db.execute("PRAGMA journal_mode").fetchall()[0][0] != "wal":
                raise LedgerError(f"{self.path.name} is not a file of this program.")
            if not _checkpoint(db, _RECOVER):  # somebody is at it
                _sync(self._wal)
                _sync(self.path.parent)
        except BaseException:
            db.close()
            raise
        return db

    def _fault(self, error: Exception, committing: bool = False) -> LedgerError:
        name = getattr(error, "sqlite_errorname", "")
        fault = next((text for start, text in _FAULTS.items() if name.startswith(start)), "cannot be used")
        if isinstance(error, OSError):
            fault = "cannot be read or written"
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) or isinstance(error, OSError):
            fault = f"{fault}{_why(self.path, error)}"
        if isinstance(error, UnicodeDecodeError):
            fault = "is damaged"
        if not committing:
            return LedgerError(f"{self.path.name} {fault}.")
        # The commit may be on the disk although its sync failed, and would then count after a crash.
        unknown = LedgerError(f"{self.path.name} {fault}. What was being written may or may not count.")
        unknown.nothing_spent = False
        return unknown


def is_read_only(path: Path, error: Exception) -> bool:
    """Whether a file's system is mounted read-only: SQLite's own error is the same as for others."""
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return True
    with contextlib.suppress(OSError):
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    return False


def _why(path: Path, error: Exception) -> str:
    """What a refusal says of such a file system."""
    return _READ_ONLY if is_read_only(path, error) else ""


def _checkpoint(db: Any, pragma: str) -> bool:
    """Whether the log is now in the file, and both are synced."""
    try:
        db.execute(f"PRAGMA busy_timeout={int(min(_CHECKPOINT_PATIENCE, _PATIENCE) * 1000)}").fetchall()
        return bool(db.execute(pragma).fetchall()[0][0] == 0)
    finally:
        db.execute(f"PRAGMA busy_timeout={int(_PATIENCE * 1000)}").fetchall()


def _check_names(path: Path) -> None:
    """A file with two names has two logs, of which each user sees one."""
    if os.stat(path).st_nlink > 1:
        for name in path.parent.glob(f".{path.name}.*"):  # `create` was killed, or is just about to remove it
            with contextlib.suppress(FileNotFoundError):
                if name.samefile(path):
                    name.unlink()
    if os.stat(path).st_nlink > 1:
        raise LedgerError(f"{path.name} has another name as well (a hard link): remove one, or make a real copy.")


def _descriptor(number: int) -> tuple[int, int, int]:
    status = os.fstat(number)
    return number, status.st_dev, status.st_ino


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing.

    Whatever the umask, they are the owner's alone (mode 0700), and they survive a power cut: each is synced.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        _sync(path.parent)


def _link(name: str, path: Path) -> None:
    os.link(name, path)  # unlike a rename, refuses to replace what is there


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _before_fork() -> None:
    _forking.acquire()
    _held.mutexes, files, deadline = [], list(_live), time.monotonic() + _PATIENCE
    # All or none, because a ledger's user also waits for the anchor: taking them one by one could wait in a circle.
    while not all(_take(file) for file in files) and time.monotonic() < deadline:
        _give_back()
        time.sleep(0.001)
    if len(_held.mutexes) == len(files):
        for file in files:
            file.before_fork()


def _take(file: DurableFile) -> bool:
    taken = file.mutex.acquire(blocking=False)
    if taken:
        _held.mutexes.append(file.mutex)
    return taken


def _give_back() -> None:
    while _held.mutexes:
        _held.mutexes.pop().release()


def _in_parent() -> None:
    try:
        _give_back()
    finally:
        _forking.release()


def _in_child() -> None:
    global _forking
    _forking = threading.RLock()
    for file in list(_live):
        file.mutex = threading.RLock()
        file.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
