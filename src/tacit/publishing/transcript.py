"""What mechanisms see where there are no data: the entries of a published file in the place of ledger and records.

Called by `publishing.knowledge`. Everything asked before is read back as it was; whatever would have to be bought is
refused. So a session and its mechanisms work on it unchanged, and answer with the same hypothesis.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from tacit.errors import NeedsData
from tacit.model.answer import Measured, Told
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import GateTerms, Intent, decode
from tacit.model.facts import Receipt
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import key
from tacit.store.chain import Line, Mark, mark
from tacit.trusted.curator import Curator, Gate, Lens
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

UNCHECKED = "not checked against the data"


@dataclass(frozen=True)
class Declared:
    """What is public about the records: all that is left of them here."""

    domain: Domain
    rows: int
    rows_per_person: int = 1


class Transcript:
    """The entries of a published file, with the questions that a ledger answers. Nothing can be added."""

    def __init__(self, origin: str, entries: Sequence[Line], total: Loss) -> None:
        self.total, self._origin, self._entries = total, origin, list(entries)
        self._answers = {entry.key: entry for entry in entries if entry.key is not None}
        self._turn = threading.RLock()  # threads of one process take turns, as they do at a ledger
        settled = {entry.intent for entry in entries}
        self._open = [entry for entry in entries if entry.kind == "intent" and entry.seq not in settled]

    @property
    def spent(self) -> Loss:
        return Loss(self.total.measure, self._entries[-1].spent if self._entries else 0)

    @property
    def left(self) -> Loss:
        return Loss(self.total.measure, max(0, self.total.atoms - self.spent.atoms))

    @property
    def log(self) -> Transcript:
        return self

    def head(self) -> Mark:
        return mark(self._entries[-1]) if self._entries else Mark(0, self._origin, 0)

    def find(self, key: str) -> Line | None:
        return self._answers.get(key)

    def find_many(self, keys: Iterable[str]) -> dict[str, Line]:
        return {key: self._answers[key] for key in keys if key in self._answers}

    def lines(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
        return (line for line in self._entries if line.seq > after and (not kinds or line.kind in kinds))

    def settled(self, after: int = 0) -> Iterator[Line]:
        return (line for line in self.lines(after) if line.intent is not None)

    def open_intents(self) -> list[Line]:
        return list(self._open)

    def snapshot(self) -> tuple[str, list[Line]]:
        return self._origin, list(self._entries)

    def turn(self) -> AbstractContextManager[Any]:
        return self._turn

    def reserve(self, *_: object, **__: object) -> NoReturn:
        raise NeedsData("This question has to be bought, which needs the data; here is only what was published.")

    settle = reserve  # what needs no reservation is told by `Reading` itself

    def read_only(self) -> AbstractContextManager[None]:
        return nullcontext()  # always is

    def close(self) -> None:
        pass


class Unchecked(Gate):
    """A gate that lets everything pass: without the data there is nobody to say that a guess is wrong."""

    def __init__(self) -> None:
        self._threshold, self._scales = 0.0, (0.0, 0.0)

    def first_above(self, queries: Sequence[Query | Statistic], lenses: Sequence[Lens]) -> None:
        return None


class Reading(Curator):
    """A curator that holds a transcript and no data. What it inherits only looks things up, or reserves first."""

    def __init__(self, declared: Declared, transcript: Transcript) -> None:
        super().__init__(cast(Records, declared), cast(Ledger, transcript))
        self._transcript = transcript
        self._measured = list(super().released())  # there will be no others, and mechanisms ask before every answer

    def released(self, after: int = 0) -> Iterator[Measured]:
        return (measured for measured in self._measured if measured.receipt.entry > after)

    def open_gate(self, threshold: float, loss: Loss, *, owner: str = "") -> Gate:
        return Unchecked()

    def resume_gate(self, *, owner: str = "") -> Gate | None:
        """As where the data are: a gate if one is open. One that was lost with a process cannot be told from it."""
        for entry in self._transcript.open_intents():
            intent = decode(entry.kind, entry.body)
            if isinstance(intent, Intent) and isinstance(intent.purpose, GateTerms) and intent.purpose.owner == owner:
                return Unchecked()
        return None

    def tell(
        self,
        answers: Sequence[tuple[Query | Statistic, int, int | None, str]],
        gate: Gate | None = None,
        figures: Sequence[tuple[int | None, int | None]] | None = None,
    ) -> list[Told | Measured]:
        """The same values without an error bar. Nothing is kept: the hypothesis cannot change, so neither can they.

        Their receipt is the newest entry's, which seals all that they were worked out from.
        """
        free, receipt = Loss(self.total.measure, 0), Receipt(*self._transcript.head()[:2])
        ours = "" if gate is None else UNCHECKED  # without a gate the guarantee had ended before, and the note says so
        return [
            Told(key(query), query, int(value), None, "; ".join(filter(None, (ours, note))), free, receipt)
            for query, value, _, note in answers
        ]
