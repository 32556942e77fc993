"""`read`: a session that has what everybody may know, from the lines of a file, and no curator."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tacit.model.request import Declared
from tacit.public import file
from tacit.public.check import check
from tacit.public.file import Contents
from tacit.release.public import Public
from tacit.session import Session
from tacit.store.chain import Line, Mark, mark


def read(path: str | Path) -> Session:
    """A session that answers from a published file alone, free for ever, with the hypothesis that was published.

    What was answered before is answered the same: value, error bar and receipt. What follows from it is worked out as
    where the data are. Answers of a hypothesis that a gate would have to check have no error bar here, and say so.
    What would have to be bought is refused with `NeedsData`.

    >>> tacit.read("survey.tacit.jsonl").ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
    """
    found = file.load(Path(path))
    check(Path(path), found)
    return opened(found)


def opened(found: Contents) -> Session:
    """A session over lines that were checked. Whatever would have to be bought is refused: there is no curator."""
    header = found.header
    declared = Declared(found.domain, header.rows, header.rows_per_person, header.total)
    public = Public(Transcript(header.origin, found.lines), declared)
    mechanism = found.choice.build(public, None, header.confidence)
    return Session(public, None, None, header.budget, found.choice, mechanism, header.confidence, start=True)


class Transcript:
    """What a ledger's log has for reading, from the lines of a file."""

    def __init__(self, origin: str, lines: Sequence[Line]) -> None:
        self._origin, self._lines = origin, list(lines)
        self._keyed = {line.key: line for line in lines if line.key is not None}
        self._settled = [line for line in lines if line.intent is not None]
        settled = {line.intent for line in lines}
        self._open = [line for line in lines if line.kind == "intent" and line.seq not in settled]
        self._turn = threading.RLock()  # threads of one process take turns, as they do at a ledger

    def head(self) -> Mark:
        return mark(self._lines[-1]) if self._lines else Mark(0, self._origin, 0)

    def keyed(self, keys: Sequence[str]) -> dict[str, Line]:
        return {key: self._keyed[key] for key in keys if key in self._keyed}

    def lines(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
        return (line for line in self._lines if line.seq > after and (not kinds or line.kind in kinds))

    def settled(self, after: int = 0) -> Iterator[Line]:
        return (line for line in self._settled if line.seq > after)

    def since(self, after: int) -> tuple[Mark, Iterator[Line]]:
        return self.head(), self.settled(after)

    def kept_intents(self) -> list[Line]:
        """As far as is known: a gate that was lost with its noise looks like one that is open."""
        return list(self._open)

    def snapshot(self) -> tuple[str, list[Line]]:
        return self._origin, list(self._lines)

    def turn(self) -> AbstractContextManager[Any]:
        return self._turn
