"""What the tests of the ledger share: its terms, one question, and somebody with a shell."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tacit.model.budget import Budget, Loss
from tacit.store import rows
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, seal
from tacit.store.conditions import now
from tacit.trusted.ledger import Ledger, Outcome

PRICE = Loss("epsilon", 10)


def terms(folder: Path, answers: int = 100) -> dict[str, Any]:
    return {
        "budget": Budget(epsilon=1.0, delta=0.0),
        "total": Loss("epsilon", answers * PRICE.atoms),
        "binding": {"domain": "secret-domain-hash", "data": "secret-fingerprint"},
        "anchor": Anchor(folder / "state" / "anchors.sqlite"),
    }


def reopen(folder: Path, answers: int = 100, **more: Any) -> Ledger:
    return Ledger.open(folder / "people.tacit", **{**terms(folder, answers), **more})


def ask(ledger: Ledger, key: str, body: str = '{"value":1}', charge: int = PRICE.atoms) -> str:
    return ledger.settle(ledger.reserve(PRICE, purpose="count"), [Outcome(key, charge, "measured", body)])[0].body


def raw(folder: Path, *statements: str) -> None:
    """Somebody with an SQLite shell."""
    db = sqlite3.connect(folder / "people.tacit", isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def write(ledger: Ledger, kind: str, **values: Any) -> None:
    """A bug, or somebody who knows how to compute the hashes."""
    ledger.log._file.transact(lambda db: forge(db, ledger, kind, **values))


def forge(db: Any, ledger: Ledger, kind: str, spent: int, body: str = "{}", **values: Any) -> None:
    head = rows.head(db) or ledger.log.identity.origin
    rows.insert(db, [seal(head, Draft(kind, body=body, **values), spent, now())])


def backup(folder: Path, name: str) -> Path:
    """A consistent copy, as `sqlite3 .backup` makes it."""
    source, target = sqlite3.connect(folder / "people.tacit"), sqlite3.connect(folder / name)
    source.backup(target)
    source.close()
    target.close()
    return folder / name


def restore(folder: Path, copy: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (folder / f"people.tacit{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, folder / "new")
    os.replace(folder / "new", folder / "people.tacit")
