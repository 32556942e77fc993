"""The tables of a log and what is asked of them, with an open connection `db`. Nothing here opens, locks or commits."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from tacit.errors import LedgerError
from tacit.store.chain import LIMITS, Line, Mark, canonical, chain_hash, damaged, digest, line_of

PAGE = 500  # rows read at a time, so that no reader holds up a checkpoint for long
# Random bits beside the last line of each transaction. Two copies of a log may write the very same line at the same
# second; what they tell the anchor differs by these. Lines are published and the same everywhere: so they stay outside.
SALTS = "CREATE TABLE IF NOT EXISTS salts (seq INTEGER PRIMARY KEY, salt TEXT NOT NULL)"
# The lines that settle an intent, in order: what was bought, among millions that were told for nothing.
OUTCOMES = "CREATE INDEX IF NOT EXISTS outcomes ON entries (seq) WHERE intent IS NOT NULL"
# The lines that say what may be spent: few, and asked for often.
_LIMITS = f"kind IN {LIMITS}"
LIMIT_LINES = f"CREATE INDEX IF NOT EXISTS limits ON entries (seq) WHERE {_LIMITS}"
SCHEMA = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT, intent INTEGER, atoms INTEGER"
    " NOT NULL, spent INTEGER NOT NULL, time TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL)",  # long: last
    "CREATE UNIQUE INDEX answers ON entries (key) WHERE key IS NOT NULL",  # one answer per question, whoever races
    "CREATE INDEX settled ON entries (intent) WHERE intent IS NOT NULL",
    "CREATE INDEX intents ON entries (seq) WHERE kind = 'intent'",
    "CREATE INDEX overrides ON entries (seq) WHERE kind = 'override'",
    # What an open intent must remember and nobody may learn. Lines are public, so it stays outside the chain, and it
    # goes when its intent is settled.
    "CREATE TABLE private (entry INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    SALTS,
    OUTCOMES,
    LIMIT_LINES,
    *(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for table in ("meta", "entries")
        for verb in ("UPDATE", "DELETE")
    ),
)
_AT_ONCE, _ROW = 100, "(?, ?, ?, ?, ?, ?, ?, ?, ?)"  # rows of one INSERT: below 999 values, the least limit of SQLite
_COLUMNS = ", ".join(Line.__struct_fields__)
_PREVIOUS = "(SELECT p.hash FROM entries AS p WHERE p.seq < entries.seq ORDER BY p.seq DESC LIMIT 1)"


def meta(db: Any) -> dict[str, str]:
    """What was written when the log was made; nothing if this is no log."""
    tables = db.execute("SELECT name FROM sqlite_master WHERE name IN ('meta', 'entries')").fetchall()
    return dict(db.execute("SELECT key, value FROM meta").fetchall() if len(tables) == 2 else ())


# Terms that a log was bound to after it was made, once. Their hash is in a line of the chain.
_LATER = "CREATE TABLE later (terms TEXT NOT NULL)"


def later(db: Any) -> str | None:
    """The later terms, as they were spelled; refuses those that the chain does not seal."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchall():
        return None
    spelled, lines = db.execute("SELECT terms FROM later").fetchall(), select(db, "WHERE kind = 'terms'")
    if len(spelled) != 1 or [line.body for line in lines] != [sealed_terms(spelled[0][0])]:
        raise LedgerError("The ledger is damaged: its later terms are not those that were written.")
    return str(spelled[0][0])


def keep_later(db: Any, spelled: str) -> None:
    db.execute(_LATER)
    db.execute("INSERT INTO later VALUES (?)", (spelled,))


def sealed_terms(spelled: str) -> str:
    """The body of the line that seals them."""
    return canonical({"terms": digest(spelled)})


def select(db: Any, condition: str, *values: object) -> list[Line]:
    """Lines, each of which is as it was sealed.

    Guarantee: a line that was changed since, by a bit or by more, is refused and not returned, unless its hash was
        worked out anew as well: then the line after it, or the anchor, has another one.
    Formula: its hash is that of itself and of the hash before it, as they stand in the file.
    """
    found = db.execute(f"SELECT {_PREVIOUS}, {_COLUMNS} FROM entries {condition}", values).fetchall()
    lines = [line_of(row[1:]) for row in found]
    for (previous, *_), line in zip(found, lines, strict=True):
        before = digest(meta(db)) if previous is None else previous  # the first line seals the terms
        if chain_hash(before, line) != line.hash:
            raise damaged(line)
    return lines


def unchecked(db: Any, after: int, most: int = -1) -> list[Line]:
    """The lines after a number, in order, for who derives the chain again."""
    query = f"SELECT {_COLUMNS} FROM entries WHERE seq > ? ORDER BY seq LIMIT ?"
    return list(map(line_of, db.execute(query, (after, most)).fetchall()))


def keyed(db: Any, keys: Sequence[str]) -> dict[str, Line]:
    """The lines that have one of these keys."""
    found: dict[str, Line] = {}
    for start in range(0, len(keys), PAGE):
        part = keys[start : start + PAGE]
        lines = select(db, f"WHERE key IN ({','.join('?' * len(part))})", *part)
        found |= {str(line.key): line for line in lines}
    return found


def numbered(db: Any, numbers: Sequence[int]) -> list[Line]:
    """The lines with these numbers, in order."""
    return select(db, f"WHERE seq IN ({','.join('?' * len(numbers))}) ORDER BY seq", *numbers)


def page(db: Any, after: int, kinds: Sequence[str] = ()) -> list[Line]:
    """The next lines after a number, of these kinds or of all."""
    among = f"AND kind IN ({','.join('?' * len(kinds))})" if kinds else ""
    return select(db, f"WHERE seq > ? {among} ORDER BY seq LIMIT {PAGE}", after, *kinds)


def settled(db: Any, after: int, most: int = PAGE) -> list[Line]:
    """The next lines after `after` that settle an intent, in order. No other line is read."""
    return select(db, "INDEXED BY outcomes WHERE intent IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?", after, most)


def newest(db: Any, before: int, most: int, *, told: bool) -> list[Line]:
    """The last lines before a number, newest first, that settle an intent, or also were told for nothing."""
    among = (
        f"WHERE kind NOT IN ('intent', 'override', 'terms') AND NOT {_LIMITS}"
        if told
        else "INDEXED BY outcomes WHERE intent IS NOT NULL"
    )
    return select(db, f"{among} AND seq < ? ORDER BY seq DESC LIMIT ?", before, most)


def unpaid_count(db: Any) -> int:
    """How many lines neither are an intent, nor settle one, nor are an override, nor say what may be spent."""
    kinds = ("kind = 'intent'", "intent IS NOT NULL", "kind = 'override'", _LIMITS)
    parts = ("", *(f"WHERE {kind}" for kind in kinds))
    found = [db.execute(f"SELECT count(*) FROM entries {part}").fetchall()[0][0] for part in parts]
    return int(found[0] - sum(found[1:]))


def open_by(db: Any, seq: int) -> dict[int, int]:
    """The intents without outcome by the time of line `seq`, and the atoms that each set aside.

    An override ends those before it: what they set aside stays spent.
    """
    query = (
        "SELECT i.seq, i.atoms FROM entries AS i WHERE i.kind = 'intent' AND i.seq <= :seq AND i.seq >"
        " (SELECT coalesce(max(v.seq), 0) FROM entries AS v WHERE v.kind = 'override' AND v.seq <= :seq)"
        " AND NOT EXISTS (SELECT 1 FROM entries AS o WHERE o.intent = i.seq AND o.seq <= :seq)"
    )
    return dict(db.execute(query, {"seq": seq}).fetchall())


def limits_by(db: Any, seq: int) -> tuple[int, bool]:
    """The atoms that were added to what may be spent, by the time of line `seq`, and whether the log was closed."""
    found = [line for line in limits(db) if line.seq <= seq]
    return sum(line.atoms for line in found if line.kind == "extended"), any(line.kind == "closed" for line in found)


def limits(db: Any) -> list[Line]:
    """The lines that say what may be spent, in order."""
    return select(db, f"WHERE {_LIMITS} ORDER BY seq")


def ends(db: Any, seq: int) -> bool:
    """Whether intent `seq` has an outcome."""
    return bool(db.execute("SELECT 1 FROM entries WHERE intent = ? LIMIT 1", (seq,)).fetchall())


def keeping(db: Any, held: str) -> list[Line]:
    """The intents without outcome that private state lies beside, but for state that begins with `held`, in order."""
    return select(
        db,
        "WHERE seq IN (SELECT entry FROM private WHERE substr(value, 1, ?) <> ?) "
        "AND NOT EXISTS (SELECT 1 FROM entries AS o WHERE o.intent = entries.seq) ORDER BY seq",
        len(held),
        held,
    )


def head(db: Any) -> Mark | None:
    """The end of the history, without its body; None before the first line."""
    rows = db.execute("SELECT seq, hash, spent FROM entries ORDER BY seq DESC LIMIT 1").fetchall()
    return Mark(*rows[0]) if rows else None


def point(db: Any, seq: int) -> Mark | None:
    """The point of the history right after line `seq`."""
    rows = db.execute("SELECT seq, hash, spent FROM entries WHERE seq = ?", (seq,)).fetchall()
    return Mark(*rows[0]) if rows else None


def told(db: Any, seq: int, origin: Mark) -> Mark | None:
    """What an anchor is told of the history that starts at `origin` and ends, for now, with line `seq`."""
    found = db.execute(f"{_TOLD} WHERE e.seq = ?", (seq,)).fetchall()
    return _told(*found[0]) if found else origin if seq == 0 else None


def all_told(db: Any) -> Iterator[Mark]:
    """What an anchor is told of every line, the newest first."""
    return (_told(*row) for row in db.execute(f"{_TOLD} ORDER BY e.seq DESC").fetchall())


_TOLD = "SELECT e.seq, e.hash, e.spent, s.salt FROM entries AS e LEFT JOIN salts AS s ON s.seq = e.seq"


@lru_cache(maxsize=64)  # each transaction asks for the newest line's, which the one before had written
def _told(seq: int, hash: str, spent: int, salt: str | None) -> Mark:
    return Mark(seq, hash if salt is None else digest([hash, salt]), spent)  # lines of an earlier version have no salt


def holds(db: Any, known: Mark, origin: Mark) -> bool:
    """Whether this is a point of the history that starts at `origin`, by its hash and its running total."""
    if not known.seq:
        return known == origin
    return bool(db.execute("SELECT 1 FROM entries WHERE seq = ? AND hash = ? AND spent = ?", known).fetchall())


def insert(db: Any, lines: Sequence[Line]) -> Mark:
    """Add the lines of one transaction, of which there is at least one: what an anchor is told of them."""
    for start in range(0, len(lines), _AT_ONCE):
        part = lines[start : start + _AT_ONCE]
        rows = [(e.seq, e.kind, e.key, e.intent, e.atoms, e.spent, e.time, e.hash, e.body) for e in part]
        values = [value for row in rows for value in row]
        db.execute(f"INSERT INTO entries VALUES {', '.join([_ROW] * len(part))}", values)
    last, salt = lines[-1], secrets.token_hex(16)
    db.execute("INSERT INTO salts VALUES (?, ?)", (last.seq, salt))
    return _told(last.seq, last.hash, last.spent, salt)


def kept(db: Any, seq: int) -> str | None:
    """What stands beside intent `seq`."""
    rows = db.execute("SELECT value FROM private WHERE entry = ?", (seq,)).fetchall()
    return str(rows[0][0]) if rows else None


def keep(db: Any, seq: int, value: str) -> None:
    db.execute("INSERT OR REPLACE INTO private VALUES (?, ?)", (seq, value))


def swap(db: Any, seq: int, before: str, after: str) -> bool:
    """Put something else in the place of what stands beside an intent, if it is what is named; whether it was."""
    swapped = "UPDATE private SET value = ? WHERE entry = ? AND value = ? RETURNING entry"
    return bool(db.execute(swapped, (after, seq, before)).fetchall())


def forget(db: Any, seqs: Iterable[int] | None = None) -> None:
    """Take away what stands beside some intents, or beside all."""
    if seqs is None:
        db.execute("DELETE FROM private")
        return
    for seq in seqs:
        db.execute("DELETE FROM private WHERE entry = ?", (seq,))
