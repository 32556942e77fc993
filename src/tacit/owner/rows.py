"""Trusted with counts: where the rows are, their cells in memory, or a copy that the engine counts.

Only public things decide: what the owner says, what the ledger was made with, how many cells there are; and how many
rows, where a row is protected. Where a person is, only the number of rows that are kept is public.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError, DataError, LedgerError
from tacit.load import Progress, Source, address, is_address, open_source
from tacit.load.copies import Copy
from tacit.model.domain import Domain
from tacit.shelf import Shelf
from tacit.trusted.cells import encode, read_records
from tacit.trusted.copy import AnyRecords, Counted

WAYS = ("auto", "memory", "engine")
_MANY = 2**25  # rows, and cells of the domain, from which on an engine holds them by itself


@dataclass(eq=False)
class Rows:
    """The rows of a table: where they are, whose they are, and where a copy of them is kept.

    held: "memory", "engine", or "auto".
    copy: where the encoded copy is kept; beside the ledger if that is not said, or for PostgreSQL in a table.
    """

    data: Any
    domain: Domain
    ledger: Path
    table: str | None = None
    person: str | None = None
    rows_per_person: int = 1
    held: str = "auto"
    copy: str | None = None
    _copy: Copy | None = field(default=None, init=False, repr=False)  # which `read` opened
    _made: bool = field(default=False, init=False, repr=False)  # and whether it made it

    def __post_init__(self) -> None:
        if self.held not in WAYS:
            raise ConfigError(f"held is one of {', '.join(WAYS)}, not {self.held!r}.")
        if self.copy is not None and self.held == "memory":
            raise ConfigError('a copy is for held = "engine".')

    def read(self, made_with: str | None = None, loading: Progress | None = None) -> AnyRecords:
        """The records, in the way that the ledger was made with where there is one. A missing copy is made."""
        source = open_source(self.data, self.table)
        if self._way(source, made_with) == "memory":
            return read_records(source, self.domain, **self._whose, progress=loading)
        copy = self._copy = self.copy_in(source)
        self._made = not copy.exists
        if self._made:
            self.encode(source, loading)
        elif made_with is None and copy.is_older:
            raise DataError(
                f"the table was written to since {copy.place} was made of it, and a new ledger would be about the rows "
                "of then: delete the copy with `tacit forget`, in Python with tacit.forget, or name another place."
            )
        copy.progress = loading
        return Counted(copy, self.domain, self.rows_per_person)

    def fingerprint(self, records: AnyRecords, secret: bytes) -> str:
        """By which a ledger of this secret knows the records again.

        That of a copy is read from beside the ledger, where nothing was done to the copy since it was worked out.
        """
        state = self.copy_in(open_source(self.data, self.table)).state if records.counted else None
        if state is None:
            return records.fingerprint(secret)
        shelf = Shelf(self.ledger, secret)
        known = shelf.get("opened", state)
        if known is None:
            known = records.fingerprint(secret).encode()
            shelf.put("opened", state, known)
        return known.decode()

    def withdraw(self) -> str | None:
        """Delete the copy that was read, whose rows were refused, if `read` made it: it would be read ever after.

        The place of a copy that stays: one that was there before, that cannot be deleted or has been replaced. Else
        None.
        """
        if self._copy is not None and self._made:
            with suppress(DataError):
                self._copy.check()
                self._copy.delete(left_over=False)
                return None
        return None if self._copy is None else self._copy.place

    def encode(self, source: Source, loading: Progress | None = None) -> Copy:
        """Write the copy, which is not there yet."""
        copy = self.copy_in(source)
        encode(source, copy, self.domain, **self._whose, progress=loading)
        return copy

    def forget(self) -> tuple[str, bool]:
        """Delete the copy, and what runs that were cut short have left: where it was, and whether it was there."""
        copy = self.copy_in(open_source(self.data, self.table))
        found = copy.made_for
        if found == "":
            raise ConfigError(f"{copy.place} is no copy that Tacit has made, and stays: delete it by hand.")
        copy.delete()
        return copy.place, found is not None

    @property
    def place(self) -> str | None:
        """Where the copy is that a new ledger would be about; None where the rows would be loaded."""
        source = open_source(self.data, self.table)
        return self.copy_in(source).place if self._way(source, None) == "engine" else None

    @property
    def copied(self) -> bool:
        """Whether that copy is there."""
        source = open_source(self.data, self.table)
        return self._way(source, None) == "engine" and self.copy_in(source).exists

    def copy_in(self, source: Source) -> Copy:
        """The copy of the table in `source`, whether it is there or not."""
        ledger = str(self.ledger.absolute())
        of = address(self.data, self.table) or f"what {ledger} is about"  # a frame has no name
        copy = Copy(
            source=source,
            place="",
            domain=self.domain,
            person=self.person,
            rows_per_person=self.rows_per_person,
            of=of,
            state_of=self._file_state(),
        )
        if self.copy is not None:
            copy.place = self.copy
        elif source.names()[0] == "postgres":
            copy.place = f"tacit_codes_{hashlib.sha256(f'{copy.about} {ledger}'.encode()).hexdigest()[:16]}"
        else:
            copy.place = ledger + ".codes"
        return copy

    def _file_state(self) -> str:
        """Another one after a file is written to; nothing of what is no single file."""
        if not isinstance(self.data, str | Path) or not os.path.isfile(self.data):
            return ""
        found = os.stat(self.data)
        return f"{found.st_size} {found.st_mtime_ns}"

    @property
    def _whose(self) -> dict[str, Any]:
        return {"person": self.person, "rows_per_person": self.rows_per_person}

    def _way(self, source: Source, made_with: str | None) -> str:
        if made_with is not None:
            if self.held not in ("auto", made_with):
                raise LedgerError(
                    f"The ledger {self.ledger.name} was made with held = {made_with}, not {self.held}, and knows its "
                    "data again that way."
                )
            return made_with
        if self.held != "auto":
            return self.held
        # A copy is a file of ours, beside the ledger. Tables in somebody's server are made only where they are wanted.
        ours = isinstance(self.data, str | Path) and not is_address(str(self.data))
        if self.copy is not None or (ours and self.copy_in(source).exists):  # who makes a copy wants it to be used
            return "engine"
        # The way is seen by what it refuses. With people it must not tell how many rows there are beyond those that are
        # kept: one person may have any number of them.
        if self.person is not None:
            return "memory"
        return "engine" if ours and self.domain.size > _MANY and source.rows() > _MANY else "memory"
