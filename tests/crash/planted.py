"""Planted bugs: ledgers that break a promise, which the crash tests must notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from unittest import mock

from tacit.trusted import durable
from tacit.trusted.chain import Entry, Mark
from tacit.trusted.ledger import Ledger, Outcome, Reservation


class ReleasesBeforeCommit(Ledger):
    """Shows an answer first and stores it with the next one."""

    _late: tuple[Reservation | None, Sequence[Outcome]] | None = None

    def settle(self, reservation: Reservation | None, outcomes: Sequence[Outcome]) -> list[Entry]:
        if self._late is not None:
            super().settle(*self._late)
        self._late = reservation, outcomes
        return [Entry(0, "outcome", o.key, None, o.atoms, 0, o.body, "", "") for o in outcomes]


class RefundsAtOpen(Ledger):
    """Gives back what was reserved by a process that died."""

    @classmethod
    def open(cls, *args: Any, **terms: Any) -> Self:
        self = super().open(*args, **terms)
        settled = {entry.intent for entry in self.entries(kind="outcome")}
        unanswered = sum(entry.atoms for entry in self.entries(kind="intent") if entry.seq not in settled)
        if unanswered:
            with self._file.transaction() as db:
                head = self._head()
                self._append(db, head, "override", atoms=0, spent=head.spent - unanswered, body='{"anchor":null}')
        return self


class AnchorsBeforeCommit(Ledger):
    """Tells the anchor of an answer that is not stored yet."""

    def _append(self, db: Any, head: Mark, kind: str, **values: Any) -> Entry:
        entry = super()._append(db, head, kind, **values)
        if kind == "outcome":
            self._anchor.advance(self.id, Mark(entry.seq, entry.hash, entry.spent))
        return entry


@contextmanager
def planted(bug: str) -> Iterator[type[Ledger]]:
    """The ledger class that has `bug`, with whatever else must be broken for as long as the block runs."""
    pragmas = [p.replace("synchronous=FULL", "synchronous=NORMAL") for p in durable._PRAGMAS]
    match bug:
        case "release before commit":
            yield ReleasesBeforeCommit
        case "synchronous=NORMAL":
            with mock.patch.object(durable, "_PRAGMAS", pragmas):
                yield Ledger
        case "unanswered intents refunded":
            yield RefundsAtOpen
        case "anchor before commit":
            yield AnchorsBeforeCommit
        case "recovered commits not synced":
            with mock.patch.object(durable, "_RECOVER", "SELECT 1"):
                yield Ledger
        case _:
            raise ValueError(bug)
