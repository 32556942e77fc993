"""Who may ask: keys that the owner makes, kept as hashes in one small SQLite file. Called by the server and the CLI.

Beside its hash a key has a SCRAM verifier, for logins over PostgreSQL's protocol. A key that was made before there were
verifiers gets one when a server sees it next, over HTTP.

The same file counts what each name has used of its quota, and holds the questions that a name has saved. Quotas are
fairness between analysts and nothing else: the budget is one for all, and the ledger alone guards it.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tacit.errors import ConfigError
from tacit.serve.key import DEFAULT_QUOTA, PREFIX, ROLES, Key, Role, digest
from tacit.serve.scram import Verifier
from tacit.store.file import is_read_only

if TYPE_CHECKING:
    from tacit.serve.refusal import Seldom

MAX_KEYS = 10_000
_NAME = re.compile(r"[\w][\w .@-]{0,63}", re.ASCII)
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE, quota REAL, created TEXT NOT NULL, revoked TEXT, verifier TEXT,
    of_left INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX IF NOT EXISTS in_use ON keys (name) WHERE revoked IS NULL;
CREATE TABLE IF NOT EXISTS used (dataset TEXT, name TEXT, atoms INTEGER NOT NULL, PRIMARY KEY (dataset, name));
CREATE TABLE IF NOT EXISTS granted (dataset TEXT, name TEXT, atoms INTEGER NOT NULL, PRIMARY KEY (dataset, name));
COMMIT;
"""
_SAVED = """
CREATE TABLE IF NOT EXISTS saved (dataset TEXT, name TEXT, title TEXT, question TEXT NOT NULL,
    PRIMARY KEY (dataset, name, title))
"""
_READ_ONLY = "cannot be written: it is on a file system that is mounted read-only"
MAX_SAVED = 100  # questions of one name about one data set
T = TypeVar("T")


def make_key(path: str | Path, name: str, role: Role, quota: float | None = None) -> str:
    """Make a key and return it: the only time that it is seen, for the file keeps its SHA-256 and a SCRAM verifier.

    path: the file of keys, made on the first call with mode 0600.
    name: whose it is, once among the keys in use. role: "owner", "analyst" or "reader".
    quota: the share of each budget that this name may spend, above 0 and at most 1; for fairness only. An analyst's is
        by default a quarter of what is left of the budget when the name first asks, so that no single request takes all
        there is; 1 is no limit but the budget. An owner has none by default.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            "a key's name has 1 to 64 letters, digits, blanks or any of . _ @ -, and begins with no blank."
        )
    if role not in ROLES:
        raise ConfigError(f"a role is one of {', '.join(ROLES)}, not {role!r}.")
    if quota is not None and (isinstance(quota, bool) or not isinstance(quota, int | float) or not 0 < quota <= 1):
        raise ConfigError(f"a quota is a share of the budget, above 0 and at most 1, not {quota!r}.")
    if quota is not None and role == "reader":
        raise ConfigError("a reader spends nothing, so a quota has no meaning for one.")
    key = PREFIX + secrets.token_urlsafe(32)
    with _opened(Path(path), make=True) as db:
        if db.execute("SELECT count(*) FROM keys").fetchone()[0] >= MAX_KEYS:
            raise ConfigError(f"the file holds {MAX_KEYS:,} keys, which is the most.")
        if db.execute("SELECT 1 FROM keys WHERE name = ? AND revoked IS NULL", (name,)).fetchone():
            raise ConfigError(f"{name} has a key already; revoke it first, or choose another name.")
        of_left = quota is None and role == "analyst"
        share = DEFAULT_QUOTA if of_left else None if quota is None else float(quota)
        row = (name, role, digest(key), share, of_left, _now(), str(Verifier.of(key)))
        fields = "name, role, hash, quota, of_left, created, verifier"
        db.execute(f"INSERT INTO keys ({fields}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return key


def list_keys(path: str | Path) -> list[Key]:
    """Every key that was ever made, oldest first, without the secrets."""
    with _opened(Path(path)) as db:
        return [kept.key for kept in _read(db)]


def revoke_key(path: str | Path, name: str) -> Key:
    """Take a key back. A running server refuses it from its next request on."""
    with _opened(Path(path)) as db:
        found = [kept.key for kept in _read(db) if kept.key.name == name and kept.key.revoked is None]
        if not found:
            raise ConfigError(f"no key in use is called {name!r}.")
        db.execute("UPDATE keys SET revoked = ? WHERE id = ?", (_now(), found[0].id))
        return next(kept.key for kept in _read(db) if kept.key.id == found[0].id)


class _Kept(NamedTuple):
    """A key as it is kept: the hash of its secret, and the verifier, if it has one yet."""

    key: Key
    hash: bytes
    verifier: str | None


class KeyRing:
    """The file of keys as the server holds it: one connection, read again when somebody has changed the file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._keys: list[_Kept] = []
        self._due: Seldom | None = None
        self._open()

    def find(self, secret: str) -> Key | None:
        """The key in use that this secret belongs to. Takes the same time whichever it is, or none."""
        asked = digest(secret)
        found = None
        for kept in self._current():
            if hmac.compare_digest(asked, kept.hash) and kept.key.revoked is None:
                found = kept
        if found is None:
            return None
        if found.verifier is None:
            self._verify_from_now(found.key, Verifier.of(secret))
        return found.key

    def named(self, name: str) -> tuple[Key, Verifier] | None:
        """The key in use of this name, and what checks its secret; None if there is none, or it has no verifier yet."""
        for kept in self._current():
            if kept.key.name == name and kept.key.revoked is None and kept.verifier is not None:
                verifier = Verifier.read(kept.verifier)
                return None if verifier is None else (kept.key, verifier)
        return None

    def get(self, id: int) -> Key | None:
        """The key in use with this number: what a browser's session stands for."""
        return next((kept.key for kept in self._current() if kept.key.id == id and kept.key.revoked is None), None)

    def all(self) -> list[Key]:
        return [kept.key for kept in self._current()]

    def used(self, dataset: str, name: str) -> int:
        """What a name has spent of a data set's budget, in atoms, as far as this file knows."""
        query = "SELECT atoms FROM used WHERE dataset = ? AND name = ?"
        row = self._do(lambda db: db.execute(query, (dataset, name)).fetchone())
        return int(row[0]) if row else 0

    def use(self, dataset: str, name: str, atoms: int) -> None:
        """Count what a name has spent. The ledger has it already, without the name."""
        statement = (
            "INSERT INTO used VALUES (?, ?, ?) ON CONFLICT (dataset, name) DO UPDATE SET atoms = atoms + excluded.atoms"
        )
        self._do(lambda db: db.execute(statement, (dataset, name, atoms)))

    def granted(self, dataset: str, name: str, atoms: int) -> int:
        """What a name may spend of a data set's budget, in atoms: what it was granted first, now if never before."""
        statement = "INSERT INTO granted VALUES (?, ?, ?) ON CONFLICT (dataset, name) DO NOTHING"
        query = "SELECT atoms FROM granted WHERE dataset = ? AND name = ?"

        def work(db: sqlite3.Connection) -> int:
            found = db.execute(query, (dataset, name)).fetchone()
            if found is None:
                db.execute(statement, (dataset, name, atoms))
                found = db.execute(query, (dataset, name)).fetchone()
            return int(found[0])

        return self._do(work)

    def saved(self, dataset: str, name: str) -> list[tuple[str, str]]:
        """The questions that a name keeps, each with its title, in the order of these."""
        query = "SELECT title, question FROM saved WHERE dataset = ? AND name = ? ORDER BY title"
        return [(str(t), str(q)) for t, q in self._do(lambda db: db.execute(query, (dataset, name)).fetchall())]

    def save(self, dataset: str, name: str, title: str, question: str | None) -> bool:
        """Keep a question under a title, or with None take it away; False where there are too many."""
        mine = (dataset, name, title)

        def work(db: sqlite3.Connection) -> bool:
            if question is None:
                db.execute("DELETE FROM saved WHERE dataset = ? AND name = ? AND title = ?", mine)
                return True
            others = "SELECT count(*) FROM saved WHERE dataset = ? AND name = ? AND title <> ?"
            if db.execute(others, mine).fetchone()[0] >= MAX_SAVED:
                return False
            db.execute("INSERT OR REPLACE INTO saved VALUES (?, ?, ?, ?)", (*mine, question))
            return True

        return self._do(work)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _open(self) -> None:
        self._db, self._file, self._version = _connect(self.path, make=False), _identity(self.path), -1
        self._db.execute("PRAGMA synchronous=NORMAL")  # all that is written here is who used how much, for fairness
        if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'saved'").fetchone():
            self._db.execute(_SAVED)

    def _verify_from_now(self, key: Key, verifier: Verifier) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE keys SET verifier = ? WHERE id = ? AND verifier IS NULL", (str(verifier), key.id))
            self._version = -1  # what this connection writes changes no version that it sees

        self._do(work)

    def _current(self) -> list[_Kept]:
        def work(db: sqlite3.Connection) -> list[_Kept]:
            version = db.execute("PRAGMA data_version").fetchone()[0]
            if version != self._version:
                self._keys, self._version = _read(db), version
            return self._keys

        return self._do(work)

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                if _identity(self.path) != self._file:  # another file has taken its place: the keys in it count
                    self._db.close()
                    self._open()
                return work(self._db)
            except (sqlite3.Error, OSError, ConfigError):
                from tacit.serve.refusal import Refusal, Seldom  # keys are made without a server, too

                self._due = self._due or Seldom()
                self._due.error("keys", "the file of keys %s is gone, cannot be read, or is none", self.path)
                words = "The keys cannot be read now; the server's log tells the owner why."
                raise Refusal(503, "keys", words, retry_after=30) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(db: sqlite3.Connection) -> list[_Kept]:
    fields = "id, name, role, quota, created, revoked, of_left, hash, verifier"
    rows = db.execute(f"SELECT {fields} FROM keys ORDER BY id").fetchall()
    return [
        _Kept(Key(id, name, role, quota, created, revoked, bool(of_left)), hash, verifier)
        for id, name, role, quota, created, revoked, of_left, hash, verifier in rows
    ]


def _with_newer_columns(db: sqlite3.Connection) -> None:
    """Files of earlier versions get what they lack. Their keys stay what they were: a quota is then of the budget."""
    newer = {"verifier": "TEXT", "of_left": "INTEGER NOT NULL DEFAULT 0"}
    columns = "SELECT name FROM pragma_table_info('keys')"
    if newer.keys() <= {name for (name,) in db.execute(columns)}:
        return
    db.execute("BEGIN IMMEDIATE")
    for name in newer.keys() - {name for (name,) in db.execute(columns)}:  # nobody else was faster
        db.execute(f"ALTER TABLE keys ADD COLUMN {name} {newer[name]}")
    db.execute("COMMIT")
    db.executescript(_TABLES)


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _connect(path: Path, *, make: bool) -> sqlite3.Connection:
    try:
        if make:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        status = os.stat(path)
        if status.st_mode & 0o077:
            raise ConfigError(f"{path.name} can be read by others than its owner: chmod 600 it.")
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            if make:
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(_TABLES)
            elif not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'used'").fetchone():
                raise ConfigError(f"{path.name} is not a file of keys.")
            _with_newer_columns(db)
        except BaseException:
            db.close()
            raise
        return db
    except FileNotFoundError:
        raise ConfigError(
            f"there is no file of keys {path.name}; make the first key: `tacit token make NAME --role owner`."
        ) from None
    except OSError as error:
        why = _READ_ONLY if is_read_only(path, error) else "cannot be opened as a file of keys"
        raise ConfigError(f"{path.name} {why}.") from None
    except sqlite3.Error as error:
        why = "is not a file of keys"
        if is_read_only(path, error):
            why = _READ_ONLY
        elif getattr(error, "sqlite_errorname", "").startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_IOERR")):
            why = "cannot be written where it is; a server counts in it who has spent how much"
        raise ConfigError(f"{path.name} {why}.") from None


@contextmanager
def _opened(path: Path, *, make: bool = False) -> Iterator[sqlite3.Connection]:
    """The file in one transaction: all of it or nothing."""
    db = _connect(path, make=make)
    try:
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except sqlite3.Error as error:
        why = _READ_ONLY if is_read_only(path, error) else "cannot be used as a file of keys"
        raise ConfigError(f"{path.name} {why}.") from None
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.close()
