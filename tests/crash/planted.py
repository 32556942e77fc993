"""Planted bugs: ledgers that break a promise, which the crash tests must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from unittest import mock

from crash_workload import ANCHOR, LEDGER

from tacit.store import file as durable
from tacit.store.chain import Entry, mark
from tacit.trusted.history import History
from tacit.trusted.ledger import Ledger, Outcome, Reservation


class ReleasesBeforeCommit(Ledger):
    """Shows an answer first and stores it with the next one."""

    _late: tuple[Reservation | None, Sequence[Outcome]] | None = None

    def settle(self, reservation: Reservation | None, outcomes: Sequence[Outcome]) -> list[Entry]:
        late, self._late = self._late, (reservation, outcomes)
        if late is not None:
            super().settle(*late)
        return [Entry(0, "outcome", o.key, None, o.atoms, 0, o.body, "", "") for o in outcomes]


class RefundsAtOpen(Ledger):
    """Gives back what was reserved by a process that died."""

    @classmethod
    def open(cls, *args: Any, **terms: Any) -> Self:
        self = super().open(*args, **terms)
        for intent in self.open_intents():
            self.settle(Reservation(intent.seq, intent.atoms), [Outcome(f"refund of {intent.seq}", 0, "{}")])
        return self


class AnchorsBeforeCommit(Ledger):
    """Tells the anchor of an answer that is not stored yet."""

    def settle(self, reservation: Reservation | None, outcomes: Sequence[Outcome]) -> list[Entry]:
        write = History.write

        def early(history: History, db: Any, entries: Sequence[Entry]) -> None:
            write(history, db, entries)
            if entries[-1].key == outcomes[-1].key:
                self._anchor.advance(self.id, mark(entries[-1]))

        with mock.patch.object(History, "write", early):
            return super().settle(reservation, outcomes)


class NeverTellsTheAnchor(Ledger):
    """Shows answers of which the anchor does not know."""

    def settle(self, reservation: Reservation | None, outcomes: Sequence[Outcome]) -> list[Entry]:
        with mock.patch.object(Ledger, "_tell_anchor", return_value=None):
            return super().settle(reservation, outcomes)


class ShowsWithoutTelling(Ledger):
    """Shows what another process stored, without telling the anchor for it."""

    def _show(self, select: Callable[[Any], list[Entry]]) -> list[Entry]:
        return self._file.read(select)


def _weakly_synced(name: str) -> Any:
    """A file that does not sync its commits."""
    whole = durable.DurableFile._open

    def weak(file: durable.DurableFile) -> None:
        pragmas = [p.replace("synchronous=FULL", "synchronous=NORMAL") for p in durable._PRAGMAS]
        with mock.patch.object(durable, "_PRAGMAS", pragmas if file.path.name == name else durable._PRAGMAS):
            whole(file)

    return mock.patch.object(durable.DurableFile, "_open", weak)


@contextmanager
def planted(bug: str) -> Iterator[type[Ledger]]:
    """The ledger class that has `bug`, with whatever else must be broken for as long as the block runs."""
    match bug:
        case "release before commit":
            yield ReleasesBeforeCommit
        case "synchronous=NORMAL":
            with _weakly_synced(LEDGER):
                yield Ledger
        case "synchronous=NORMAL for the anchor":
            with _weakly_synced(Path(ANCHOR).name):
                yield Ledger
        case "unanswered intents refunded":
            yield RefundsAtOpen
        case "anchor before commit":
            yield AnchorsBeforeCommit
        case "answers not told to the anchor":
            yield NeverTellsTheAnchor
        case "others' answers not told to the anchor":
            yield ShowsWithoutTelling
        case "recovered commits not synced":
            with mock.patch.object(durable, "_RECOVER", "SELECT 0"):
                yield Ledger
        case "new files not synced":
            with mock.patch.object(durable, "_sync", return_value=None):
                yield Ledger
        case _:
            raise ValueError(bug)
