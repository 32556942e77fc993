"""Planted bugs: ledgers that break a promise, which the crash tests must notice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from unittest import mock

from crash_workload import ANCHOR, LEDGER

from curators import open_intents
from tacit.store import file as durable
from tacit.store import rows
from tacit.store.chain import Line, Mark
from tacit.store.log import Log
from tacit.trusted.ledger import Ledger, Outcome


class ReleasesBeforeCommit(Ledger):
    """Shows an answer first and stores it with the next one."""

    _late: tuple[int | None, Sequence[Outcome]] | None = None

    def settle(self, reservation: int | None, outcomes: Sequence[Outcome]) -> list[Line]:
        late, self._late = self._late, (reservation, outcomes)
        if late is not None:
            super().settle(*late)
        return [Line(0, o.kind, o.key, None, o.atoms, 0, o.body, "", "") for o in outcomes]


class RefundsAtOpen(Ledger):
    """Gives back what was reserved by a process that died."""

    @classmethod
    def open(cls, *args: Any, **terms: Any) -> Self:
        self = super().open(*args, **terms)
        for intent in open_intents(self.log):
            self.settle(intent.seq, [Outcome(f"refund of {intent.seq}", 0, "told", "{}")])
        return self


class AnchorsBeforeCommit(Ledger):
    """Tells the anchor of an answer that is not stored yet."""

    def settle(self, reservation: int | None, outcomes: Sequence[Outcome]) -> list[Line]:
        insert = rows.insert

        def early(db: Any, lines: Sequence[Line]) -> Mark:
            told = insert(db, lines)
            if lines[-1].key == outcomes[-1].key:
                anchor, about = self.log._anchor, self.log.identity
                anchor.advance(about.id, told, anchor.newest(about.id))
            return told

        with mock.patch.object(rows, "insert", early):
            return super().settle(reservation, outcomes)


class NeverTellsTheAnchor(Ledger):
    """Shows answers of which the anchor does not know."""

    def settle(self, reservation: int | None, outcomes: Sequence[Outcome]) -> list[Line]:
        with mock.patch.object(Log, "_tell_anchor", return_value=None):
            return super().settle(reservation, outcomes)


class ShowsWithoutTelling(Ledger):
    """Shows what another process stored, without telling the anchor for it."""

    def find_many(self, keys: Iterable[str]) -> dict[str, Line]:
        with mock.patch.object(self.log, "_tell_anchor", return_value=None):
            return super().find_many(keys)


def _weakly_synced(name: str) -> Any:
    """A file that does not sync its commits."""
    whole = durable.DurableFile._open

    def weak(file: durable.DurableFile) -> Any:
        pragmas = [p.replace("synchronous=FULL", "synchronous=NORMAL") for p in durable._PRAGMAS]
        with mock.patch.object(durable, "_PRAGMAS", pragmas if file.path.name == name else durable._PRAGMAS):
            return whole(file)

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
