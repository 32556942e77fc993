"""What may be done inside one transaction of a log: lines are added, and private state is kept and taken."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import LedgerError
from tacit.store import rows
from tacit.store.chain import Draft, Line, Mark, State, Unsound, mark, seal

HELD = "held "  # begins what stands in the place of private state that was taken


@dataclass(frozen=True, slots=True)
class Held:
    """Private state taken out of the file: whose it is, the token left in its place, and what it is."""

    seq: int
    token: str
    value: str


@dataclass
class Transaction:
    """What may be done inside one transaction of a log."""

    db: Any
    at: Mark
    state: State
    new: list[Line] = field(default_factory=list)

    def append(self, draft: Draft, state: State, *, time: str) -> Line:
        """One more line, after which the state is this one, by the step.

        The caller has asked the step, and refuses in its own words what may not follow. A reader asks it again.
        """
        line = seal(self.at, draft, state.spent, time)
        self.at, self.state = mark(line), state
        self.new.append(line)
        return line

    def keyed(self, keys: Sequence[str]) -> dict[str, Line]:
        return rows.keyed(self.db, keys)

    def newest(self, kind: str) -> Line | None:
        """The last line of a kind."""
        found = rows.select(self.db, "WHERE kind = ? ORDER BY seq DESC LIMIT 1", kind)
        return found[0] if found else None

    def time_of(self, seq: int) -> str:
        """When a line was written."""
        found = rows.numbered(self.db, [seq])
        if not found:
            raise Unsound(f"there is no line {seq}")
        return found[0].time

    def keep(self, seq: int, value: str) -> None:
        """Keep private state beside an intent, outside everything that is hashed or shown."""
        rows.keep(self.db, seq, value)

    def forget(self, seq: int) -> None:
        rows.forget(self.db, [seq])

    def take(self, seq: int) -> Held | None:
        """Take private state out of the file, unless another has it; a token stands in its place."""
        value = rows.kept(self.db, seq) if seq in self.state.open else None
        if value is None or value.startswith(HELD):
            return None
        held = Held(seq, HELD + secrets.token_hex(16), value)
        rows.keep(self.db, seq, held.token)
        return held

    def put_back(self, held: Held) -> None:
        """Put back what was taken, once, while its token stands there."""
        ours = held.token.startswith(HELD) and held.seq in self.state.open
        if not ours or not rows.swap(self.db, held.seq, held.token, held.value):
            raise LedgerError("What was taken is not held any more, so it is not put back.")
