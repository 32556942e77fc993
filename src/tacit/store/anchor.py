"""Which log a file is, and whether it may be an old copy: an anchor outside it keeps the newest state of every log.

An `Anchor` is made by whoever opens a log; all else is called by the log alone, in a transaction of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.store import rows
from tacit.store.chain import Draft, Mark, Override, canonical, digest
from tacit.store.file import DurableFile, make_folder

_FORMAT = "5"

# What a log belongs to, by name. A value may be made from the log's own secret, so that a fingerprint of the data says
# nothing to somebody who does not hold the log: hashes over all of this are public.
Binding = Mapping[str, str | Callable[[bytes], str]]
_SCHEMA = (
    "CREATE TABLE anchor (id TEXT NOT NULL)",
    "CREATE TABLE anchors (ledger TEXT PRIMARY KEY, seq INTEGER, hash TEXT, spent INTEGER, path TEXT)",
)
# Every mark that ever stood here, so that a copy can be told where it left the history that went on elsewhere.
_MARKS = (
    "CREATE TABLE IF NOT EXISTS marks (ledger TEXT, seq INTEGER, hash TEXT, PRIMARY KEY (ledger, seq)) WITHOUT ROWID"
)


class OtherTerms(LedgerError):
    """A log was made with other terms than those it is opened with, which are named."""

    def __init__(self, sentence: str, names: Sequence[str]) -> None:
        super().__init__(sentence)
        self.names = frozenset(names)


class Anchor:
    """The newest mark known of each ledger, and where that ledger was last.

    Guarantee: of two histories that go on from one mark, one is ever known here. So a ledger restored from an older
        copy, and a copy that is used beside the original, are noticed before they look at anything, as long as this
        file is not also restored together with them; that cannot be noticed, but by who was told of a newer mark.
        Another anchor in its place is noticed by its id.
    Formula: one row per ledger id, moved by compare and swap, forward only; durable before the data are looked at, and
        again before an answer is shown.
    Source: trusted monotonic counters, as in "Memoir" (Parno et al. 2011); here the counter is a file elsewhere.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = DurableFile(default_path() if path is None else Path(path))
        self.path = self._file.path

    @cached_property
    def id(self) -> str:
        """Which anchor this is: 128 random bits, others in every new file."""
        return self._found()  # once known, a missing file means that it was taken away

    @property
    def is_there(self) -> bool:
        """Whether there is a file, or was one when it was last used here."""
        return "id" in self.__dict__ or self.path.exists()

    def newest(self, ledger: str) -> Mark | None:
        """What is known of a ledger: never older than any mark whose `advance` has returned."""
        return self._ready.read(lambda db: _mark(db, ledger))

    def at(self, path: Path) -> str | None:
        """The ledger that was opened at `path` with this anchor, and since then neither elsewhere nor another there."""
        rows = self._ready.read(
            lambda db: db.execute("SELECT ledger FROM anchors WHERE path = ?", (str(path),)).fetchall()
        )
        return str(rows[0][0]) if rows else None

    def advance(self, ledger: str, mark: Mark, replaces: Mark | None, path: Path | None = None) -> Mark | None:
        """Put `mark` in the place of `replaces`, and note where the ledger is. Returns the mark that stands there now.

        If that is another one, somebody else came first and nothing was written: whether it is one of the caller's own
        history is the caller's to find out, before it tries again.

        Guarantee: compare and swap, durable when it returns, and never backwards.
        """

        def work(db: Any) -> Mark | None:
            seen = _mark(db, ledger)
            if seen != replaces or (seen is not None and seen != mark and seen.seq >= mark.seq):
                return seen
            db.execute(
                "INSERT INTO anchors VALUES (?, ?, ?, ?, NULL) ON CONFLICT (ledger) DO UPDATE SET seq = excluded.seq, "
                "hash = excluded.hash, spent = excluded.spent",
                (ledger, *mark),
            )
            db.execute("INSERT OR IGNORE INTO marks VALUES (?, ?, ?)", (ledger, mark.seq, mark.hash))
            if path is not None:
                db.execute("UPDATE anchors SET path = NULL WHERE path = ?", (str(path),))
                db.execute("UPDATE anchors SET path = ? WHERE ledger = ?", (str(path), ledger))
            return mark

        return self._ready.transact(work)

    def marks(self, ledger: str) -> dict[int, str]:
        """The hash of every mark of a ledger that ever stood here, by its number."""
        query = "SELECT seq, hash FROM marks WHERE ledger = ?"
        return self._ready.read(lambda db: dict(db.execute(query, (ledger,)).fetchall()))

    def check_room(self) -> None:
        """Refuse while the disk is nearly full."""
        self._ready.check_room()

    def close(self) -> None:
        """Let go of the file until it is used again."""
        self._file.release()

    @cached_property
    def _ready(self) -> DurableFile:
        """The file, which is made when it is first asked for."""
        assert self.id
        return self._file

    def _found(self) -> str:
        try:
            make_folder(self.path.parent)
            if not self.path.exists():
                row = ("INSERT INTO anchor VALUES (?)", (secrets.token_hex(16),))
                DurableFile.create(self.path, [*((table, ()) for table in (*_SCHEMA, _MARKS)), row])
        except (OSError, sqlite3.Error):
            raise LedgerError(
                "The anchor, which remembers the newest state of each ledger, cannot be written; "
                "set TACIT_STATE to a folder that can."
            ) from None
        found = self._file.read(lambda db: db.execute("SELECT id FROM anchor").fetchall())
        if len(found) != 1:
            raise LedgerError(f"{self.path.name} is damaged.")
        tables = "SELECT 1 FROM sqlite_master WHERE name = 'marks'"
        if not self._file.read(lambda db: db.execute(tables).fetchall()):  # made by an earlier version
            self._file.transact(lambda db: db.execute(_MARKS))
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


@dataclass(frozen=True)
class Identity:
    """What was written when the log was made, and the point that its chain starts from: a hash of all of it."""

    path: Path
    id: str
    anchor: str  # the anchor that it was made with
    secret: bytes
    terms: dict[str, str]
    origin: Mark

    @classmethod
    def read(cls, file: DurableFile) -> Identity:
        meta, later = file.read(lambda db: (meta := rows.meta(db), rows.later(db) if meta else None))
        return cls.of(file.path, meta, later)

    @classmethod
    def of(cls, path: Path, meta: Mapping[str, str], later: str | None = None) -> Identity:
        if meta.get("format") != _FORMAT:
            raise LedgerError(f"{path.name} is not a ledger, or one of another version of this program.")
        try:
            terms, secret = dict(json.loads(meta["terms"])), bytes.fromhex(meta["secret"])
            terms |= json.loads(later or "{}")
            return cls(path, meta["id"], meta["anchor"], secret, terms, Mark(0, digest(dict(meta)), 0))
        except (KeyError, ValueError, TypeError):
            raise LedgerError(f"{path.name} is damaged.") from None

    def spelled(self, terms: Binding) -> dict[str, str]:
        """Terms as they are kept: what is made from the log's secret is made."""
        return _spelled(terms, self.secret)

    def check_terms(self, terms: Binding) -> None:
        """Refuse a log that was made with other terms. What differs is named, its values are not."""
        given = self.spelled(terms)
        names = [name for name in sorted({**given, **self.terms}) if given.get(name) != self.terms.get(name)]
        if names:
            raise OtherTerms(
                f"The ledger {self.path.name} was made with other terms: {' and '.join(names)}. Open it with what "
                "it was made with, or name a new ledger that continues it (`continues`): the loss of one that does not "
                "would add to this one's, for the same people.",
                names,
            )

    def problem(self, db: Any, head: Mark | None, anchor: Anchor, told: int = -1) -> str | None:
        """Why what ends at `head` may not be the newest history of this log, or of the log that was here before.

        `told`: the number of the newest mark that the anchor is known to have had.

        Guarantee: None only if the anchor is the one that this log was last used with, and its mark, if it has one, is
            in here.
        Formula: anchor ids equal, and (mark in chain, or an override names the mark).
        Source: `Anchor`.
        """
        if not anchor.is_there:  # the ledger was made with one, and a new one would know nothing
            return (
                f"There is no anchor at {anchor.path}, which remembers the newest state of the ledger, so this may be "
                "an old copy. If the anchor is elsewhere, name that place (`anchor`, or TACIT_STATE)."
            )
        seen, overrides = anchor.newest(self.id), _overrides(db)
        if (overrides[-1].anchor_id if overrides else self.anchor) != anchor.id:
            return "The ledger was last used with another anchor than this one, so it may be an old copy."
        if seen is None and head is not None:
            return "The anchor does not know this ledger, so it may be an old copy."
        if head is None and self._replaced(anchor):
            return _lost_here(self.path)
        if (seen.seq if seen else -1) < told:
            return "The anchor is an older copy of itself: it does not know what it was told before."
        if seen is None or self.knows(db, seen):
            return None
        # Not how far it goes itself: what a copy has stored and the anchor has not seen may tell what a gate said.
        return (
            "This ledger is older than, or differs from, the newest one seen: "
            f"entry {seen.seq}, which the anchor has seen, is not in it."
        )

    def knows(self, db: Any, seen: Mark) -> bool:
        """Whether a mark is part of this history, or one that an override in it names and counts."""
        ours = rows.told(db, seen.seq, self.origin) == seen
        return ours or any(override.anchor == seen for override in _overrides(db))

    def override(self, db: Any, anchor: Anchor, head: Mark, reason: str) -> tuple[int, Draft]:
        """The line with which the owner goes on in spite of a problem, and its number.

        Guarantee: everything that the anchor saw spent stays spent, and so does everything in `head`: both may have
            been shown. What is certainly the same in both counts once. With an anchor that knows nothing, what was lost
            cannot be known, and the line says so.
        Formula: log + anchor - what was spent by the last mark of the anchor's that is in the log, and never less than
            the log. A log made in the place of another also carries what that one had spent.
        """
        seen, replaces = anchor.newest(self.id), None if head.seq else self._replaced(anchor)
        carried = head.spent
        if seen is not None:
            carried = max(carried, carried + seen.spent - self._shared(db, anchor))
        if replaces is not None:
            carried += (anchor.newest(replaces) or head).spent
        lost = "counted as spent" if seen or replaces else "unknown"
        decision = Override(reason, seen, anchor.id, replaces, lost)
        # The numbers jump past the lost lines, so that the anchor still only ever moves forward.
        number = max(head.seq, seen.seq if seen else 0) + 1
        return number, Draft("override", carried - head.spent, decision.body())

    def _shared(self, db: Any, anchor: Anchor) -> int:
        """What was spent when this history and the one that the anchor saw were surely still one; 0 where none was."""
        marks = anchor.marks(self.id)
        last = next((mark for mark in rows.all_told(db) if marks.get(mark.seq) == mark.hash), None)
        if last is None:
            return 0
        # A reservation that was open by then may have been settled in both, each time by another answer. One that has
        # no outcome here was not: no answer of this history is charged to it, and after an override none can be.
        return last.spent - sum(atoms for seq, atoms in rows.open_by(db, last.seq).items() if rows.ends(db, seq))

    def _replaced(self, anchor: Anchor) -> str | None:
        other = lost_at(anchor, self.path)
        return other if other != self.id else None


def make_log(path: Path, terms: Binding, anchor: Anchor, *, accept_rollback: bool) -> bool:
    """Make the file of a new log; False if something is there already.

    Guarantee: whole or not at all, with mode 0600, and never in the place of another file. Where the anchor remembers a
        log at `path` that has lines and is gone, it is refused unless the owner accepts that.
    """
    if Path(f"{path}-wal").exists() and not path.exists():  # SQLite would play it into the new file
        raise LedgerError(f"{path.name} is gone, but its log {path.name}-wal is still there: restore or remove both.")
    if not accept_rollback and lost_at(anchor, path):
        raise refusal(_lost_here(path))
    secret = secrets.token_bytes(32)
    meta = {"format": _FORMAT, "id": secrets.token_hex(16), "secret": secret.hex(), "anchor": anchor.id}
    meta["terms"] = canonical(_spelled(terms, secret))
    statements: list[tuple[str, tuple[object, ...]]] = [(statement, ()) for statement in rows.SCHEMA]
    statements += [("INSERT INTO meta VALUES (?, ?)", item) for item in meta.items()]
    try:
        return DurableFile.create(path, statements)
    except (OSError, sqlite3.Error):
        raise LedgerError(f"{path.name} cannot be created there.") from None


def refusal(why: str) -> LedgerError:
    """A problem that the owner may accept, and how."""
    return LedgerError(
        f"{why} If the loss is real, `tacit.open(..., accept_rollback=REASON)`, or `--accept-rollback REASON` on "
        "the command line, goes on and records it."
    )


def _overrides(db: Any) -> list[Override]:
    found = []
    for line in rows.select(db, "WHERE kind = 'override' ORDER BY seq"):
        try:
            found.append(Override.of(line.body))
        except (ValueError, TypeError, KeyError):
            raise LedgerError(f"The ledger is damaged: entry {line.seq} is not one that was written.") from None
    return found


def lost_at(anchor: Anchor, path: Path) -> str | None:
    """The id of a log that was at `path` and has lines."""
    other = anchor.at(path)
    known = None if other is None else anchor.newest(other)
    return other if known is not None and known.seq else None


def _lost_here(path: Path) -> str:
    return (
        f"The anchor remembers another ledger at {path.name} that has answered questions and is gone; "
        "for other data, choose another name."
    )


def _spelled(terms: Binding, secret: bytes) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value(secret) for name, value in terms.items()}
