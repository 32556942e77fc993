"""The newest state of every ledger, kept outside it, so that an old copy is noticed. Called by the ledger only."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tacit.errors import LedgerError
from tacit.trusted.chain import Mark
from tacit.trusted.durable import DurableFile


class Anchor:
    """The newest mark known of each ledger.

    Guarantee: a ledger restored from an older copy is noticed when opened or used, as long as this file is not also
        restored or deleted together with it; that cannot be noticed.
    Formula: one row per ledger id, moved forward only, durable before an answer is shown.
    Source: trusted monotonic counters, as in "Memoir" (Parno et al. 2011); here the counter is a file elsewhere.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self._file = DurableFile(self.path)
        self._seen = False  # after that, a missing file means that it was taken away

    def newest(self, ledger_id: str) -> Mark | None:
        """What is known of a ledger.

        Guarantee: never older than any mark whose `advance` has returned. Formula: the row of `ledger_id`.
        Source: see the class.
        """
        self._ready()
        with self._file.use() as db:
            row = db.execute("SELECT seq, hash, spent FROM anchors WHERE ledger = ?", (ledger_id,)).fetchone()
        return None if row is None else Mark(*row)

    def advance(self, ledger_id: str, mark: Mark) -> None:
        """Move forward to `mark`; a mark that is not newer changes nothing.

        Guarantee: durable when it returns, and never backwards. Formula: seq := max(seq, mark.seq).
        Source: see the class.
        """
        self._ready()
        with self._file.transaction() as db:
            db.execute(
                "INSERT INTO anchors VALUES (?, ?, ?, ?) ON CONFLICT (ledger) DO UPDATE SET seq = excluded.seq, "
                "hash = excluded.hash, spent = excluded.spent WHERE excluded.seq > seq",
                (ledger_id, *mark),
            )

    def close(self) -> None:
        """Let go of the file. Guarantee: nothing is pending. Formula: close. Source: see the class."""
        self._file.close()

    def _ready(self) -> None:
        if self._seen:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.path.exists():
                table = "CREATE TABLE anchors (ledger TEXT PRIMARY KEY, seq INTEGER, hash TEXT, spent INTEGER)"
                DurableFile.create(self.path, [(table, ())])
        except (OSError, sqlite3.Error):
            raise LedgerError(
                "The anchor, which remembers the newest state of each ledger, cannot be written; "
                "set TACIT_STATE to a folder that can."
            ) from None
        self._seen = True


def default_path() -> Path:
    """Where the anchor lives unless told otherwise.

    Guarantee: not beside the ledger, so that restoring one leaves the other. Formula: $TACIT_STATE, else
    $XDG_STATE_HOME/tacit, else ~/.local/state/tacit. Source: XDG Base Directory Specification 0.8.
    """
    if folder := os.environ.get("TACIT_STATE"):
        return Path(folder) / "anchors.sqlite"
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "tacit" / "anchors.sqlite"
