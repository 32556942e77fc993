"""What a ledger is made for and belongs to: budget, total, domain, data, anchor. Written once. Called by the ledger."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, TacitError
from tacit.model.budget import Budget, Loss
from tacit.store.anchor import Anchor
from tacit.store.chain import canonical
from tacit.store.file import DurableFile
from tacit.trusted.history import FORMAT, SCHEMA, History, lost_at, lost_here

# What a ledger belongs to. A value may be made from the ledger's own secret, so that a fingerprint of the data says
# nothing to somebody who does not hold the ledger: receipts, which are hashes over all of this, are public.
Binding = Mapping[str, str | Callable[[bytes], str]]
IDENTITY = ("domain", "data", "person", "rows_per_person")  # whose ledger it is; the rest of a binding are settings


def make(
    path: Path, budget: Budget, total: Loss, binding: Binding, anchor: Anchor, accept_rollback: str | None
) -> bool:
    """Make the file of a new ledger; False if something is there already.

    Guarantee: as `DurableFile.create`; refused where the anchor remembers another ledger, unless the owner accepts.
    Formula: the terms, sealed by the origin of the chain. Source: see `History`.
    """
    if total.atoms >= 2**62:  # an override may carry twice the total, and SQLite counts to 2^63
        raise LedgerError("The budget is too large to be counted.")
    if Path(f"{path}-wal").exists() and not path.exists():  # SQLite would play it into the new file
        raise LedgerError(f"{path.name} is gone, but its log {path.name}-wal is still there: restore or remove both.")
    if not accept_rollback and lost_at(anchor, path):
        raise refusal(lost_here(path))
    secret = secrets.token_bytes(32)
    meta = {"format": FORMAT, "id": secrets.token_hex(16), "secret": secret.hex(), "anchor": anchor.id}
    meta |= _terms(budget, total, binding, secret)
    rows: list[tuple[str, tuple[object, ...]]] = [(statement, ()) for statement in SCHEMA]
    rows += [("INSERT INTO meta VALUES (?, ?)", item) for item in meta.items()]
    try:
        return DurableFile.create(path, rows)
    except (OSError, sqlite3.Error):
        raise LedgerError(f"{path.name} cannot be created there.") from None


def read(db: Any) -> dict[str, str]:
    """What was written when the ledger was made; nothing if this is no ledger.

    Guarantee: as stored. Formula: the table `meta`. Source: see `make`.
    """
    tables = db.execute("SELECT name FROM sqlite_master WHERE name IN ('meta', 'entries')").fetchall()
    return dict(db.execute("SELECT key, value FROM meta").fetchall() if len(tables) == 2 else ())


@dataclass(frozen=True)
class MadeWith:
    """What everybody may know about a ledger's terms: its budget, and the settings that were chosen with it."""

    budget: Budget
    settings: Mapping[str, str]


def made_with(path: Path, anchor: Anchor) -> MadeWith | None:
    """The public terms of a ledger before it is opened; None where there is none."""
    if not path.exists():
        return None
    file = DurableFile(path)
    try:
        history = History(file.path, file.read(read), anchor)
    finally:
        file.close()
    try:
        epsilon, delta = json.loads(history.terms["budget"])
        budget = Budget(epsilon=epsilon, delta=delta)
    except (TacitError, ValueError, TypeError):
        raise LedgerError(f"{path.name} is damaged.") from None
    return MadeWith(budget, {name: value for name, value in history.bound.items() if name not in IDENTITY})


def check(history: History, budget: Budget, total: Loss, binding: Binding) -> None:
    """Refuse a ledger that was made with other terms.

    Guarantee: names what differs, never a value. Formula: equal canonical JSON. Source: see `make`.
    """
    given = _terms(budget, total, binding, history.secret)
    ours, theirs = history.bound, json.loads(given["binding"])
    names = [name for name in ("budget", "total") if history.terms[name] != given[name]]
    names += sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if names:
        raise LedgerError(
            f"The ledger {history.path.name} was made with other terms: {' and '.join(names)}. Open it with what "
            "it was made with: the loss of another ledger for the same people would add to this one's."
        )


def refusal(problem: str) -> LedgerError:
    """A problem that the owner may accept. Guarantee: says how. Formula: none. Source: `Ledger.open`."""
    return LedgerError(
        f"{problem} If the loss is real, `tacit.open(..., accept_rollback=REASON)`, or `--accept-rollback REASON` on "
        "the command line, goes on and records it."
    )


def _terms(budget: Budget, total: Loss, binding: Binding, secret: bytes) -> dict[str, str]:
    made = {name: value if isinstance(value, str) else value(secret) for name, value in binding.items()}
    return {
        "budget": canonical([budget.epsilon, budget.delta]),
        "total": canonical([total.measure, total.atoms]),
        "binding": canonical(made),
    }
