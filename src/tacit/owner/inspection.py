"""Whether a whole ledger is as it was written, and the newest that its anchor has seen. For its owner, without data."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, TacitError
from tacit.model.budget import Budget, Loss, percent_of, raised
from tacit.model.entry import decode, spells
from tacit.owner.terms import MadeWith
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.store.log import Log

_MAGIC = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Inspected:
    """What was derived again from a ledger. `open` are reservations without an answer, which count as spent."""

    entries: int
    measured: int
    told: int
    gates: int
    overrides: int
    open: int
    extensions: int
    budget: Budget
    spent: Loss
    total: Loss
    seal: str

    def to_dict(self) -> dict[str, Any]:
        """What was found as a dict for JSON."""
        return asdict(self) | {"spent": self.spent.to_dict(), "total": self.total.to_dict()}

    def __str__(self) -> str:
        entries = _several(self.entries, "entry follows", "entries follow")
        gates, waiting = _several(self.gates, "gate", "gates"), _several(self.open, "reservation", "reservations")
        return (
            f"{entries} from one another: {self.measured:,} measured, {self.told:,} told for nothing, {gates} shut, "
            f"{waiting} without an answer, {_several(self.overrides, 'rollback', 'rollbacks')} accepted.\n"
            f"{percent_of(self.spent, self.total)} of the budget is spent: {self.budget}{raised(self.extensions)}. "
            f"The anchor has seen no newer state.\nseal {self.seal[:16]}…"
        )


def _several(many: int, one: str, more: str) -> str:
    return f"{many:,} {one if many == 1 else more}"


def is_ledger(path: Path) -> bool:
    """Whether a file may be a ledger, and not something that was published."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def inspect(path: Path, anchor: Path | None = None) -> Inspected:
    """Derive every hash, running total and body of a ledger again, and ask its anchor. No entry is written.

    Raises, naming the first entry that is wrong, or what the anchor knows better.
    """
    remembered, seen, last = Anchor(anchor), Counter[str](), ""

    def note(line: Line) -> None:
        nonlocal last
        seen[line.kind] += 1
        last = line.hash
        try:
            whole = spells(decode(line.kind, line.body), line.kind, line.body)
        except (TacitError, LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            whole = False
        if not whole:
            raise LedgerError(f"{path.name} is damaged: entry {line.seq} is not one that this program wrote.")

    made = MadeWith.of(path)
    if made is None:
        raise LedgerError(f"There is no ledger {path.name}.")
    with closing(Log(path, remembered, made.rules)) as log:
        state = log.inspect(note)
        entries = sum(seen.values())
        why = (
            log.problem()
            if remembered.path.exists()
            else f"There is no anchor at {remembered.path}; `--anchor` names another place."
        )
        origin = log.identity.origin.hash
        if why is None and entries:
            log.remember()
    if why is not None:
        # Not how many: what a copy has stored and the anchor has not seen may tell what a gate said.
        raise LedgerError(f"{path.name} holds in itself: its entries follow from one another. But: {why}")
    kinds = seen["measured"], seen["told"], seen["shut"], seen["override"]
    spent = Loss(made.total.measure, state.spent)
    return Inspected(entries, *kinds, len(state.open), seen["extended"], made.now, spent, made.whole, last or origin)
