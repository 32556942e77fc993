"""A curator with a ledger of its own, and its public door: for tests that have no session around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.owner.opening import doors
from tacit.release.public import Public
from tacit.store import rows
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.store.log import Log
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records


def open_curator(folder: Path, data: Any, domain: Domain, budget: Budget, name: str = "l") -> Curator:
    """The curator of a table, or of records; the ledger of this name in `folder` is made, or opened again."""
    records = data if isinstance(data, Records) else read_records(open_source(data), domain)
    terms: dict[str, Any] = {"budget": budget, "total": total(budget), "binding": {}}
    anchor = Anchor(folder / f"{name}.anchors")
    return Curator(records, Ledger.open(folder / f"{name}.tacit", make="missing", anchor=anchor, **terms))


@contextmanager
def curating(folder: Path, data: Any, domain: Domain, budget: Budget, name: str = "l") -> Iterator[Curator]:
    """The same, whose ledger is closed at the end."""
    curator = open_curator(folder, data, domain, budget, name)
    yield curator
    curator._ledger.close()


def public_of(curator: Curator) -> Public:
    """The public door of a curator."""
    return doors(curator._records, curator._ledger)[0]


def open_intents(log: Log) -> list[Line]:
    """The intents without outcome, newest last."""
    return log._read(lambda db: rows.numbered(db, list(rows.open_by(db, 2**62))))[0]


def private_of(log: Log, seq: int) -> str | None:
    """The private state of an intent, as somebody with the file would read it; None while it is held."""
    value = log._file.read(lambda db: rows.kept(db, seq))
    return None if value is None or value.startswith("held ") else value
