"""Trusted with budgets: an owner raises that of a ledger by a decision, a line of its own. It touches no row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import ConfigError, InvalidBudget, LedgerError
from tacit.exact.price import extension
from tacit.model.budget import Budget, Loss
from tacit.model.entry import Extended, decode, encode
from tacit.model.facts import Receipt
from tacit.model.status import Extension
from tacit.store.chain import Draft, Unsound

if TYPE_CHECKING:
    from tacit.store.transaction import Transaction
    from tacit.trusted.ledger import Ledger

PART_OF = "part_of"  # the term of a block's ledger: the hash that the manifest of its series starts from
_MOST = 2**62  # atoms: SQLite counts to 2^63, and an override may carry twice the total


def extend(ledger: Ledger, first: Budget, budget: Budget, *, series: str | None = None) -> Extension:
    """Raise the budget of an open ledger, which was made with `first`, to `budget`.

    series: where the manifest starts that has this decision, if the ledger is one of a series.

    Guarantee: of several who raise it at once, each adds to what stands when its turn comes, and a budget that is not
        more than that is refused. Nothing is added where an accepted rollback may have lost the line that closed it.
        Durable, and known to the anchor, when it returns. The budget of a block is raised by its series alone.
    Formula: `exact.price.extension`, by the total and the budget that stand in the same transaction.
    """
    if not isinstance(budget, Budget):
        raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=2.0, delta=1e-9).")

    if ledger.log.identity.terms.get(PART_OF) != series:
        raise in_series(ledger.log.path)

    def work(transaction: Transaction) -> Extension:
        if transaction.newest("override") is not None:
            raise went_back(ledger.log.path)
        state, line = transaction.state, transaction.newest("extended")
        last = None if line is None else decode(line.kind, line.body)
        before = last.budget if isinstance(last, Extended) else first
        whole = Loss(ledger.total.measure, ledger.total.atoms + state.raised)
        more = extension(whole, before, budget, aside=ledger.aside)
        if whole.atoms + more.atoms >= _MOST:
            raise InvalidBudget("The budget is too large to be counted.")
        kind, body = encode(Extended(budget))
        draft = Draft(kind, more.atoms, body)
        try:
            state = ledger.log.step(state, transaction.at.seq + 1, draft)
        except Unsound:
            raise LedgerError("Another ledger continues this one: raise the budget of that one.") from None
        new = transaction.append(draft, state, time=ledger.log.time())
        return Extension(budget, whole + more, new.time, Receipt(new.seq, new.hash))

    ledger.log.check_room()
    with ledger.log.turn():
        return ledger.log.write(work)


def went_back(path: Path) -> LedgerError:
    """The refusal of a ledger whose owner went on with an older copy: it has an override.

    An override carries what the anchor saw spent, and no decision. Among the lines that were lost may be the one that
    left this ledger's rest to another ledger, which has spent it since: what is added here would add to that.
    """
    return LedgerError(
        f"{path.name} went on from an older copy, and which decisions were lost with the newer one is not known: "
        "another ledger may have taken over what was left. So its budget is not raised, and no ledger continues it; "
        "it answers within what it has."
    )


def in_series(path: Path) -> LedgerError:
    """The refusal of a block's ledger, whose budget the series has promised to each block alike."""
    return LedgerError(
        f"{path.name} is the ledger of a block, and the series promises the same budget for each block: it is not "
        "raised by itself, and no ledger continues it. `tacit extend`, or series.extend, raises that of all blocks; "
        "other terms are those of a new series."
    )
