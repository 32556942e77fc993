"""The rows of a ledger: how they are kept, whether they go on from what is known, and what an override carries.

Called by the ledger, with an open connection `db` in a transaction of its own; nothing here opens, locks or commits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.model.budget import Loss
from tacit.store.anchor import Anchor
from tacit.store.chain import Entry, Mark, canonical, chain_hash, check, digest, entry_of, mark, seal

FORMAT = "2"
PAGE = 500  # rows read at a time, so that no reader holds up a checkpoint for long
SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT, intent INTEGER, atoms INTEGER"
    " NOT NULL, spent INTEGER NOT NULL, time TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL)",  # long: last
    "CREATE UNIQUE INDEX answers ON entries (key) WHERE key IS NOT NULL",  # one answer per question, whoever races
    "CREATE INDEX settled ON entries (intent) WHERE intent IS NOT NULL",
    "CREATE INDEX intents ON entries (seq) WHERE kind = 'intent'",
    "CREATE INDEX overrides ON entries (seq) WHERE kind = 'override'",
    # What a mechanism must remember and nobody may learn, such as a noisy threshold: receipts are public, so it stays
    # outside the chain, and it goes when its intent is settled.
    "CREATE TABLE private (entry INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for table in ("meta", "entries")
        for verb in ("UPDATE", "DELETE")
    ),
)
UNSETTLED = "kind = 'intent' AND NOT EXISTS (SELECT 1 FROM entries AS o WHERE o.intent = entries.seq)"
_AT_ONCE, _ROW = 100, "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # rows of one INSERT: below 999 values, the least limit of SQLite
_COLUMNS = ", ".join(field.name for field in fields(Entry))


class History:
    """One ledger's entries, from its origin on.

    Guarantee: an entry is appended to a history only that holds the anchor's newest mark and follows from it.
    Formula: origin = SHA-256(terms); then as `chain.check`. Source: Haber & Stornetta 1991.
    """

    def __init__(self, path: Path, meta: Mapping[str, str], anchor: Anchor) -> None:
        self.path, self._anchor = path, anchor
        if meta.get("format") != FORMAT:
            raise LedgerError(f"{path.name} is not a ledger, or one of another version of this program.")
        try:
            self.id, self._first_anchor, self.secret = meta["id"], meta["anchor"], bytes.fromhex(meta["secret"])
            self.total = Loss(*json.loads(meta["total"]))
            self.terms = {name: meta[name] for name in ("budget", "total", "binding")}
            self.bound = dict(json.loads(meta["binding"]))
        except (KeyError, ValueError, TypeError):
            raise LedgerError(f"{path.name} is damaged.") from None
        self.origin = Mark(0, digest(dict(meta)), 0)

    def select(self, db: Any, condition: str, *values: object) -> list[Entry]:
        """Entries. Guarantee: as stored, or damaged. Formula: SELECT. Source: see the class."""
        return [entry_of(row) for row in db.execute(f"SELECT {_COLUMNS} FROM entries {condition}", values).fetchall()]

    def answers(self, db: Any, keys: list[str]) -> dict[str, Entry]:
        """The stored answers among `keys`. Guarantee: all of them. Formula: by key. Source: see the class."""
        found: dict[str, Entry] = {}
        for start in range(0, len(keys), PAGE):
            part = keys[start : start + PAGE]
            rows = self.select(db, f"WHERE key IN ({','.join('?' * len(part))})", *part)
            found |= {str(entry.key): entry for entry in rows}
        return found

    def head(self, db: Any) -> Mark:
        """The end. Guarantee: without reading bodies. Formula: the last row, or the origin. Source: see the class."""
        rows = db.execute("SELECT seq, hash, spent FROM entries ORDER BY seq DESC LIMIT 1").fetchall()
        return Mark(*rows[0]) if rows else self.origin

    def holds(self, db: Any, known: Mark) -> bool:
        """Whether `known` is a point of this history. Guarantee: by hash and total. Formula: the row. Source: class."""
        rows = db.execute("SELECT seq, hash, spent FROM entries WHERE seq = ?", (known.seq,)).fetchall()
        return known == self.origin or rows == [known]

    def append(
        self,
        db: Any,
        head: Mark,
        kind: str,
        *,
        atoms: int,
        spent: int,
        body: str,
        seq: int = 0,
        key: str | None = None,
        intent: int | None = None,
    ) -> Entry:
        """One more entry. Guarantee: sealed with all before it. Formula: `seal`, `write`. Source: see the class."""
        entry = seal(head, now(), kind, atoms=atoms, spent=spent, body=body, seq=seq, key=key, intent=intent)
        self.write(db, [entry])
        return entry

    def write(self, db: Any, entries: Sequence[Entry]) -> None:
        """Store entries that were sealed one after the other. Guarantee: all or none, within the caller's transaction.

        Formula: INSERT. Source: see the class.
        """
        for start in range(0, len(entries), _AT_ONCE):
            part = entries[start : start + _AT_ONCE]
            rows = [(e.seq, e.kind, e.key, e.intent, e.atoms, e.spent, e.time, e.hash, e.body) for e in part]
            values = [value for row in rows for value in row]
            db.execute(f"INSERT INTO entries VALUES {', '.join([_ROW] * len(part))}", values)

    def numbered(self, db: Any, numbers: Sequence[int]) -> list[Entry]:
        """The entries with these numbers. Guarantee: in order. Formula: by number. Source: see the class."""
        return self.select(db, f"WHERE seq IN ({','.join('?' * len(numbers))}) ORDER BY seq", *numbers)

    def settled(self, db: Any, after: int) -> list[int]:
        """The outcomes of intents after entry `after`, in order.

        Guarantee: all of them; free answers, of which there may be millions, are not looked at. Formula: the index of
        intents, which is read whole. Source: see the class.
        """
        query = "SELECT seq FROM entries INDEXED BY settled WHERE intent IS NOT NULL AND +seq > ?"
        return sorted(row[0] for row in db.execute(query, (after,)).fetchall())

    def derive(self, db: Any, known: Mark) -> Mark:
        """The end, derived again from a point that is trusted.

        Guarantee: nothing after `known` was put in that breaks the rules. Formula: `chain.check`. Source: class.
        """

        def reserved(seq: int) -> int | None:
            rows = db.execute(
                "SELECT atoms FROM entries AS i WHERE seq = ?1 AND seq <= ?2 AND kind = 'intent' AND NOT EXISTS"
                " (SELECT 1 FROM entries AS o WHERE o.intent = ?1 AND o.seq <= ?2)",
                (seq, known.seq),
            ).fetchall()
            return int(rows[0][0]) if rows else None

        return check(self.select(db, "WHERE seq > ? ORDER BY seq", known.seq), known, self.total.atoms, reserved)[0]

    def check_ends(self, db: Any) -> None:
        """Derive the first and the last link again. Guarantee: the terms are sealed. Formula: hashes. Source: class."""
        links = [(self.origin.hash, first) for first in self.select(db, "ORDER BY seq LIMIT 1")]
        last = self.select(db, "ORDER BY seq DESC LIMIT 2")
        links += [(before.hash, last[0]) for before in last[1:]]
        for previous, entry in links:
            if entry.hash != chain_hash(previous, entry):
                raise LedgerError(f"The ledger is damaged: entry {entry.seq} does not follow from the one before it.")

    # -- old copies ---------------------------------------------------------------------------------------------------

    def problem(self, db: Any) -> str | None:
        """Why this may not be the newest history of this ledger, or of the ledger that was here before.

        Guarantee: None only if the anchor is the one that this ledger was last used with, and its mark is in here.
        Formula: anchor ids equal ∧ (mark in chain ∨ an override names the mark). Source: see the class.
        """
        seen, newest = self._anchor.newest(self.id), self.head(db).seq
        if self._last_anchor(db) != self._anchor.id:
            return "The ledger was last used with another anchor than this one, so it may be an old copy."
        if seen is None and newest:
            return "The anchor does not know this ledger, so it may be an old copy."
        if not newest and self._lost_here():
            return lost_here(self.path)
        if seen is None or self.holds(db, seen) or any(c["anchor"] == list(seen) for c in self._overrides(db)):
            return None
        return (
            "This ledger is older than, or differs from, the newest one seen: "
            f"its last entry is {newest}, the anchor has seen {seen.seq}."
        )

    def trusted(self, db: Any) -> Mark:
        """The newest point that the anchor vouches for. Guarantee, formula: its mark, or the origin. Source: class."""
        seen = self._anchor.newest(self.id)
        return seen if seen is not None and self.holds(db, seen) else self.origin

    def override(self, db: Any, head: Mark, reason: str) -> Mark:
        """Go on in spite of a problem: the owner's decision, and the new end.

        Guarantee: everything that the anchor saw spent stays spent, and nothing is counted less than in `head`. With
            an anchor that knows nothing, what was lost cannot be known, and the entry says so.
        Formula: max(ledger, anchor) where the ledger can only be a shortened copy of what the anchor saw: it has no
            override and never had another anchor. Else their sum: they may be two continuations of one copy. A ledger
            made in the place of another also carries what that one had spent.
        Source: see the class.
        """
        seen, before = self._anchor.newest(self.id), list(self._overrides(db))
        carried, replaces = head.spent, None if head.seq else self._lost_here()
        if seen is not None:
            shortened = not before and self._first_anchor == self._anchor.id
            carried = max(carried, seen.spent) if shortened else carried + seen.spent
        if replaces is not None:
            carried += (self._anchor.newest(replaces) or head).spent
        body = {"reason": reason, "anchor": seen, "anchor_id": self._anchor.id, "replaces": replaces}
        body["lost"] = "counted as spent" if seen or replaces else "unknown"
        # The sequence jumps past the lost entries, so that the anchor still only ever moves forward.
        seq = max(head.seq, seen.seq if seen else 0) + 1
        atoms = carried - head.spent
        db.execute("DELETE FROM private")  # what is open in an old copy may have been shut since
        return mark(self.append(db, head, "override", atoms=atoms, spent=carried, body=canonical(body), seq=seq))

    def _overrides(self, db: Any) -> list[dict[str, Any]]:
        claims = []
        for entry in self.select(db, "WHERE kind = 'override' ORDER BY seq"):
            try:
                claim = json.loads(entry.body)
                claims.append({name: claim[name] for name in ("anchor", "anchor_id")})
            except (ValueError, TypeError, KeyError):
                raise LedgerError(f"The ledger is damaged: entry {entry.seq} is not one that was written.") from None
        return claims

    def _last_anchor(self, db: Any) -> str:
        overrides = self._overrides(db)
        return str(overrides[-1]["anchor_id"]) if overrides else self._first_anchor

    def _lost_here(self) -> str | None:
        other = lost_at(self._anchor, self.path)
        return other if other != self.id else None


def now() -> str:
    """The time that an entry carries.

    Guarantee: too coarse to tell how long anything took. Formula: the clock, in whole seconds. Source: the system.
    """
    return datetime.now(UTC).replace(microsecond=0).isoformat(timespec="milliseconds")


def lost_at(anchor: Anchor, path: Path) -> str | None:
    """The id of a ledger that was at `path` and has answered.

    Guarantee: as `Anchor.at`. Formula: its mark is past the origin. Source: see `Anchor`.
    """
    other = anchor.at(path)
    known = None if other is None else anchor.newest(other)
    return other if known is not None and known.seq else None


def lost_here(path: Path) -> str:
    """The sentence about it. Guarantee: public. Formula: none. Source: this module."""
    return (
        f"The anchor remembers another ledger at {path.name} that has answered questions and is gone; "
        "for other data, choose another name."
    )
