"""Trusted with budgets: a ledger of other terms goes on from an earlier one, and what was spent carries over.

Two ledgers, two files, no transaction over both. So the order decides: the old one is closed first, with all that is
left of it and the name of the new one; then the new one is charged what the old one had spent, as its first line. Until
that line stands, nothing can be bought there. A crash in between leaves what was left to nobody but the new ledger,
which takes it over when it is opened again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tacit.errors import ConfigError, InvalidBudget, LedgerError
from tacit.exact.price import carried
from tacit.extension import in_series, went_back
from tacit.model.budget import Budget, Loss, Measure, percent_of
from tacit.model.entry import Carried, Closed, decode, encode
from tacit.owner.terms import MadeWith, made_with
from tacit.release.epsilon import epsilon_spent
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, Line
from tacit.store.log import Log
from tacit.store.transaction import Transaction
from tacit.trusted.ledger import Ledger


@dataclass(frozen=True)
class Before:
    """A ledger that another one continues: where it is, what it was made with, what it has spent."""

    path: Path
    made: MadeWith
    spent: Loss
    closed: bool

    @classmethod
    def of(cls, path: Path, anchor: Anchor) -> Before:
        """The ledger at `path`, if it is the newest that the anchor has seen. Nothing is written."""
        made = made_with(path)
        if made.part_of is not None:
            raise in_series(path)
        with closing(Log.open(path, None, anchor, made.rules)) as log:
            spent, limits = log.head().spent, log.limits()
            if any(log.lines(kinds=["override"])):
                raise went_back(path)
        # What went to a ledger that continues it was not spent in it.
        closings = [line.atoms for line in limits if line.kind == "closed"]
        return cls(path, made, Loss(made.total.measure, spent - sum(closings)), bool(closings))

    def check_unit(self, person: str | None, rows_per_person: int) -> None:
        """Refuse another unit of privacy: what was promised to a row was not promised to a person."""
        if (person, rows_per_person) != (self.made.person, self.made.rows_per_person):
            ours = (
                "a row" if self.made.person is None else f"{self.made.rows_per_person} rows of each {self.made.person}"
            )
            raise ConfigError(f"{self.path.name} protects {ours}, and so does a ledger that continues it.")

    def measure(self, budget: Budget, planned: Measure | None = None) -> Measure:
        """What a ledger that continues this one counts in: the same, but for a pure one that goes on with a delta."""
        old = self.made.total.measure
        if old != "epsilon" and budget.delta == 0:
            raise InvalidBudget(f"What was spent in {old} has no pure epsilon: a ledger that continues it has a delta.")
        return (planned or budget.measure) if old == "epsilon" else old

    def left_of(self, budget: Budget, whole: Loss) -> Budget:
        """A budget that is worth what is left of `whole`, to plan with."""
        left = whole.atoms - carried(self.spent, whole.measure).atoms
        if left <= 0:
            raise self._too_much(whole)
        return Budget(epsilon=max(1e-9, epsilon_spent(Loss(whole.measure, left), budget)), delta=budget.delta)

    def close_for(self, book: Ledger, anchor: Anchor, asked: datetime) -> tuple[Carried, int]:
        """Close this ledger in favour of a new one, if it is not yet: what that one begins with, and its charge there.

        Guarantee: one ledger ever takes over what was left, and nothing is bought here from then on. Refused, before
            anything is written, where what was spent leaves nothing of what the new ledger may spend, and after an
            accepted rollback, which may have lost the line that closed this ledger for another one.
        Formula: one transaction reads what is spent, checks it, and charges all that is left.
        """
        ours = closing(Log.open(self.path, None, anchor, self.made.rules))
        with ours as log, log.conditions.asked_at(asked), log.turn():
            line = log.write(lambda transaction: self._closed(transaction, log, book))
        spent = Loss(self.made.total.measure, line.spent - line.atoms)
        return Carried(self.made.origin, line.seq, line.hash, spent), carried(spent, book.total.measure).atoms

    def _closed(self, transaction: Transaction, log: Log, book: Ledger) -> Line:
        if transaction.newest("override") is not None:
            raise went_back(self.path)
        state, there = transaction.state, transaction.newest("closed")
        if there is not None:
            entry = decode(there.kind, there.body)
            if not isinstance(entry, Closed) or entry.by != book.log.origin:
                raise self.taken()
            return there
        if carried(Loss(self.made.total.measure, state.spent), book.total.measure).atoms >= book.total.atoms:
            raise self._too_much(book.total)
        kind, body = encode(Closed(book.log.origin))
        draft = Draft(kind, max(0, self.made.total.atoms + state.raised - state.spent), body)
        return transaction.append(draft, log.step(state, transaction.at.seq + 1, draft), time=log.time())

    def taken(self) -> LedgerError:
        """The refusal of a second ledger that would go on from this one."""
        return LedgerError(f"{self.path.name} is continued by another ledger already: go on with that one.")

    def _too_much(self, whole: Loss) -> InvalidBudget:
        share = percent_of(carried(self.spent, whole.measure), whole)
        return InvalidBudget(f"What {self.path.name} has spent is {share} of the new budget: nothing would be left.")


def take_over(book: Ledger, before: Before, anchor: Anchor, asked: datetime) -> None:
    """Let a new ledger begin with what the one before it had spent, unless it has begun.

    `asked` is when it was opened, before the table was read: how long that took is not published.

    Guarantee: nothing can be bought in a ledger that continues another before this is done (`rules.step`).
    """
    if book.log.head().seq:
        return
    entry, atoms = before.close_for(book, anchor, asked)
    kind, body = encode(entry)
    draft = Draft(kind, atoms, body)

    def work(transaction: Transaction) -> None:
        if not transaction.at.seq:  # another process may have come first
            state = book.log.step(transaction.state, 1, draft)
            transaction.append(draft, state, time=book.log.time())

    with book.log.conditions.asked_at(asked), book.log.turn():
        book.log.write(work)
