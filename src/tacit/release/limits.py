"""What may be spent, as the lines of a ledger or of a published file say it. Called by `Public`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tacit.model.budget import Loss
from tacit.model.entry import Carried, Closed, Extended, decode
from tacit.model.facts import Receipt
from tacit.model.status import Extension
from tacit.store.chain import Line


class Spendable(NamedTuple):
    """The whole budget, and what has made it so.

    extensions: the decisions to raise it, in order.
    continues, carried: what another ledger had spent that this one goes on from, and the atoms that this charged here.
    closing: the entry and the line with which another ledger took over what was left.
    """

    whole: Loss
    extensions: tuple[Extension, ...] = ()
    continues: Carried | None = None
    carried: int = 0
    closing: tuple[Closed, Line] | None = None

    def after(self, line: Line) -> Spendable:
        """The limits after one more line that says what may be spent."""
        match entry := decode(line.kind, line.body):
            case Extended(budget):
                whole = self.whole + Loss(self.whole.measure, line.atoms)
                one = Extension(budget, whole, line.time, Receipt(line.seq, line.hash))
                return self._replace(whole=whole, extensions=(*self.extensions, one))
            case Carried():
                return self._replace(continues=entry, carried=line.atoms)
            case Closed():
                return self._replace(closing=(entry, line))
            case _:
                return self


def limits_of(total: Loss, lines: Iterable[Line]) -> Spendable:
    """What may be spent of a ledger that was made with `total`, after these lines, by a fold over them."""
    limits = Spendable(total)
    for line in lines:
        limits = limits.after(line)
    return limits
