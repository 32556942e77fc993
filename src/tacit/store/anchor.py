"""The newest state of every ledger, kept outside it, so that an old copy is noticed. Called by the ledger only."""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.store.chain import Mark
from tacit.store.file import DurableFile, make_folder

_SCHEMA = (
    "CREATE TABLE anchor (id TEXT NOT NULL)",
    "CREATE TABLE anchors (ledger TEXT PRIMARY KEY, seq INTEGER, hash TEXT, spent INTEGER, path TEXT)",
)


class Anchor:
    """The newest mark known of each ledger, and where that ledger was last.

    Guarantee: a ledger restored from an older copy is noticed when opened or used, as long as this file is not also
        restored together with it; that cannot be noticed. Another anchor in its place is noticed by its id.
    Formula: one row per ledger id, moved forward only, durable before an answer is shown.
    Source: trusted monotonic counters, as in "Memoir" (Parno et al. 2011); here the counter is a file elsewhere.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = DurableFile(default_path() if path is None else Path(path))
        self.path = self._file.path
        self._id: str | None = None  # once known, a missing file means that it was taken away

    @property
    def id(self) -> str:
        """Which anchor this is: 128 random bits, others in every new file."""
        if self._id is None:
            self._id = self._found()
        return self._id

    def newest(self, ledger: str) -> Mark | None:
        """What is known of a ledger: never older than any mark whose `advance` has returned."""
        return self._ready().read(lambda db: _mark(db, ledger))

    def at(self, path: Path) -> str | None:
        """The ledger that was opened at `path` with this anchor, and since then neither elsewhere nor another there."""
        rows = self._ready().read(
            lambda db: db.execute("SELECT ledger FROM anchors WHERE path = ?", (str(path),)).fetchall()
        )
        return str(rows[0][0]) if rows else None

    def advance(self, ledger: str, mark: Mark, path: Path | None = None) -> Mark:
        """Move forward to `mark`, and note where the ledger is. Returns the newest mark known, which may be another.

        Guarantee: durable when it returns, and never backwards.
        """

        def work(db: Any) -> Mark:
            db.execute(
                "INSERT INTO anchors VALUES (?, ?, ?, ?, NULL) ON CONFLICT (ledger) DO UPDATE SET seq = excluded.seq, "
                "hash = excluded.hash, spent = excluded.spent WHERE excluded.seq > seq",
                (ledger, *mark),
            )
            if path is not None:
                db.execute("UPDATE anchors SET path = NULL WHERE path = ?", (str(path),))
                db.execute("UPDATE anchors SET path = ? WHERE ledger = ?", (str(path), ledger))
            return _mark(db, ledger) or mark

        return self._ready().transact(work)

    def check_room(self) -> None:
        """Refuse while the disk is nearly full."""
        self._ready().check_room()

    def close(self) -> None:
        """Let go of the file until it is used again."""
        self._file.release()

    def _ready(self) -> DurableFile:
        """The file, which is made when it is first asked for."""
        if self._id is None:
            self._id = self._found()
        return self._file

    def _found(self) -> str:
        try:
            make_folder(self.path.parent)
            if not self.path.exists():
                row = ("INSERT INTO anchor VALUES (?)", (secrets.token_hex(16),))
                DurableFile.create(self.path, [*((table, ()) for table in _SCHEMA), row])
        except (OSError, sqlite3.Error):
            raise LedgerError(
                "The anchor, which remembers the newest state of each ledger, cannot be written; "
                "set TACIT_STATE to a folder that can."
            ) from None
        found = self._file.read(lambda db: db.execute("SELECT id FROM anchor").fetchall())
        if len(found) != 1:
            raise LedgerError(f"{self.path.name} is damaged.")
        return str(found[0][0])


def _mark(db: Any, ledger: str) -> Mark | None:
    rows = db.execute("SELECT seq, hash, spent FROM anchors WHERE ledger = ?", (ledger,)).fetchall()
    return Mark(*rows[0]) if rows else None


def default_path() -> Path:
    """Where the anchor lives by default: not beside the ledger, so that restoring one leaves the other.

    It is in $TACIT_STATE, else in $XDG_STATE_HOME/tacit, else in ~/.local/state/tacit.
    """
    if folder := os.environ.get("TACIT_STATE"):
        return Path(folder) / "anchors.sqlite"
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "tacit" / "anchors.sqlite"
