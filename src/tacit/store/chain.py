"""The entries of a ledger and how each follows from the one before. Pure: no files, no clock. Called by the ledger.

The chain shows accidents, old copies and clumsy changes. It does not stop somebody who can write the file and computes
the hashes: he may settle an open reservation for less, or write an end that the anchor has not seen. The file also
holds whatever secret a keyed hash would use, so a key would not stop him either. He cannot go back behind the anchor's
mark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.errors import LedgerError


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `spent` is the running total after it, in atoms."""

    seq: int
    kind: str
    key: str | None
    intent: int | None
    atoms: int
    spent: int
    body: str
    time: str
    hash: str


_spell = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_TYPES: tuple[type | tuple[type, ...], ...] = (int, str, (str, type(None)), (int, type(None)), int, int, str, str, str)


def entry_of(row: Sequence[object]) -> Entry:
    """An entry as it was stored.

    Guarantee: every field has its type, whatever the file holds. Formula: types as declared. Source: this module.
    """
    if not all(isinstance(value, wanted) for value, wanted in zip(row, _TYPES, strict=True)):
        raise LedgerError(f"The ledger is damaged: entry {row[0]} is not one that this program wrote.")
    return Entry(*row)  # type: ignore[arg-type]


class Mark(NamedTuple):
    """A point in a ledger's history: its newest entry, that entry's hash, and the atoms spent by then."""

    seq: int
    hash: str
    spent: int


def mark(entry: Entry) -> Mark:
    """The point right after an entry."""
    return Mark(entry.seq, entry.hash, entry.spent)


def chain_hash(previous: str, entry: Entry) -> str:
    """The hash that seals an entry and, through `previous`, all before it."""
    return _seal_of(
        previous, entry.seq, entry.kind, entry.key, entry.intent, entry.atoms, entry.spent, entry.body, entry.time
    )


def seal(
    head: Mark,
    time: str,
    kind: str,
    *,
    atoms: int,
    spent: int,
    body: str,
    seq: int = 0,
    key: str | None = None,
    intent: int | None = None,
) -> Entry:
    """The entry that follows `head`, or is numbered `seq`. Guarantee, formula, source: as `check` asks of it."""
    seq = seq or head.seq + 1
    seal_ = _seal_of(head.hash, seq, kind, key, intent, atoms, spent, body, time)
    return Entry(seq, kind, key, intent, atoms, spent, body, time, seal_)


def _seal_of(*sealed: object) -> str:
    return digest(list(sealed))


def digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: object) -> str:
    """JSON with one spelling for each value."""
    return _spell(value)


def check(
    entries: Iterable[Entry], at: Mark, total: int, reserved: Callable[[int], int | None] = lambda _: None
) -> tuple[Mark, int]:
    """Derive a history again from a point that is trusted; where it ends, and the number of entries.

    `reserved` tells the atoms of an intent at or before that point which had no outcome by then.

    Guarantee: raises, naming the first bad entry, if anything was changed, removed or put in before the last entry.
    Formula: hash = SHA-256(previous hash, entry); an intent adds what it reserves, while within `total`; its outcomes
        stand together, put back what was reserved and add what each is charged, never more; an override only adds.
    Source: Haber & Stornetta 1991.
    """
    waiting, done, settling, charged, count = dict[int, int](), set[int](), None, 0, 0
    for entry in entries:
        spent, follows = at.spent + entry.atoms, entry.seq == at.seq + 1
        if entry.kind == "intent":
            waiting[entry.seq] = entry.atoms
            follows &= spent <= total or entry.atoms == 0
        elif entry.kind == "outcome" and entry.intent is None:
            follows &= entry.atoms == 0
        elif entry.kind == "outcome" and entry.intent is not None:
            if entry.intent != settling:
                atoms = waiting.pop(entry.intent, None)
                if atoms is None and entry.intent not in done:
                    atoms = reserved(entry.intent)
                follows &= atoms is not None
                charged = -(atoms or 0)
                spent += charged
                done.add(entry.intent)
            charged += entry.atoms
            follows &= charged <= 0
        else:
            follows = entry.kind == "override" and entry.seq > at.seq
        settling = entry.intent
        honest = entry.atoms >= 0 and entry.spent == spent and entry.hash == chain_hash(at.hash, entry)
        if not (follows and honest):
            raise LedgerError(f"The ledger is damaged: entry {entry.seq} does not follow from those before it.")
        at, count = mark(entry), count + 1
    return at, count
