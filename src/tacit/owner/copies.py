"""The encoded copy of a table, made and deleted when its owner chooses. Called by owners and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError
from tacit.load import open_source
from tacit.load.copies import Copy
from tacit.model.domain import Domain
from tacit.owner.binding import bound_on_rows
from tacit.owner.opening import declared
from tacit.owner.rows import Rows


def encode(
    *,
    data: Any,
    domain: Domain | Mapping[str, Any] | str | Path,
    ledger: str | Path,
    table: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    copy: str | None = None,
    loading: Callable[[float], None] | None = None,
) -> str:
    """Write the encoded copy of a table, that `tacit.open` counts in with `held="engine"`. Gives its place.

    Opening a session writes it too, where it is missing. It is as secret as the data. Nothing is spent, and no ledger
    is made. A copy that is there already is refused.

    The arguments are those of `tacit.open`, and the copy is for a session that is opened with the same ones.

    >>> tacit.encode(data=frame, domain=domain, ledger="visits.tacit")   # doctest: +SKIP
    '/data/visits.tacit.codes'
    """
    rows = Rows(data, declared(domain), Path(ledger), table, person, bound_on_rows(person, rows_per_person), copy=copy)
    return write_copy(rows, loading).place


def write_copy(rows: Rows, loading: Callable[[float], None] | None = None) -> Copy:
    """The copy, made now; refused where one is there."""
    source = open_source(rows.data, rows.table)
    there = rows.copy_in(source)
    if there.exists:
        raise ConfigError(f"{there.place} is there already; `tacit forget`, or tacit.forget in Python, deletes it.")
    return rows.encode(source, loading)


def forget(
    *,
    data: Any,
    domain: Domain | Mapping[str, Any] | str | Path,
    ledger: str | Path,
    table: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    copy: str | None = None,
) -> bool:
    """Delete the encoded copy of a table, and what runs that were cut short have left. Says whether a copy was there.

    The arguments are those of `tacit.open`, or of `tacit.encode`. The table, the ledger and everything released stay. A
    session that needs the copy makes it again; its ledger takes it only if the table is still what it was. What is no
    copy of Tacit's is refused, and stays.

    >>> tacit.forget(data=frame, domain=domain, ledger="visits.tacit")   # doctest: +SKIP
    True
    """
    rows = Rows(data, declared(domain), Path(ledger), table, person, bound_on_rows(person, rows_per_person), copy=copy)
    return rows.forget()[1]
