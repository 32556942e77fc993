"""The entries of a ledger and how each follows from the one before. Pure: no files, no clock. Called by the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

from tacit.errors import LedgerError
from tacit.model.budget import Loss


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
    return digest([previous, *astuple(entry)[:-1]])


def digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: object) -> str:
    """JSON with one spelling for each value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def check(entries: Iterable[Entry], origin: Mark, total: Loss) -> int:
    """Derive a whole history again from its origin; the number of entries.

    Guarantee: raises, naming the first bad entry, if anything was changed, removed or put in before the last entry.
    Formula: hash = SHA-256(previous hash, entry); an intent adds what it reserves, while within `total`; its outcomes
        stand together, put back what was reserved and add what each is charged, never more; an override only adds.
    Source: Haber & Stornetta 1991.
    """
    at, waiting, settling, charged, count = origin, dict[int, int](), None, 0, 0
    for entry in entries:
        spent, follows = at.spent + entry.atoms, entry.seq == at.seq + 1
        if entry.kind == "intent":
            waiting[entry.seq] = entry.atoms
            follows &= spent <= total.atoms or entry.atoms == 0
        elif entry.kind == "outcome" and entry.intent is None:
            follows &= entry.atoms == 0
        elif entry.kind == "outcome":
            if entry.intent in waiting:
                settling, charged = entry.intent, -waiting.pop(entry.intent)
                spent += charged
            charged += entry.atoms
            follows &= entry.intent == settling and charged <= 0
        else:
            follows = entry.kind == "override" and entry.seq > at.seq
        settling = entry.intent
        honest = entry.atoms >= 0 and entry.spent == spent and entry.hash == chain_hash(at.hash, entry)
        if not (follows and honest):
            raise LedgerError(f"The ledger is damaged: entry {entry.seq} does not follow from those before it.")
        at, count = mark(entry), count + 1
    return count
