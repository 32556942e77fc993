"""Trusted with budgets: what the ledgers of a series may spend, as they were made, and as was decided since.

A decision to raise the budget is a line of the manifest first, and then of every ledger that the manifest lists, one
after the other. There is no transaction over all of them, so the order decides: a run that is cut short leaves ledgers
that may spend less than the series promises, and never one that may spend more. Whoever opens such a ledger finishes
it, and a ledger that is made later gets all decisions before it is listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tacit.blocks.terms import SeriesTerms
from tacit.errors import ConfigError, InvalidBudget, LedgerError
from tacit.exact.price import extension, total
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.entry import decisions
from tacit.owner.manifest import Manifest
from tacit.owner.manifest_entry import Block, GroupLedger
from tacit.owner.terms import raise_budget, went_back_before
from tacit.session import Session
from tacit.store.log import made_of

Listed = Block | GroupLedger


class BlockBudgets:
    """The budgets of a series, of each level of its ledgers."""

    def __init__(self, terms: SeriesTerms, manifest: Manifest, folder: Path, anchor: str | Path | None) -> None:
        self._terms, self._manifest, self._folder, self._anchor = terms, manifest, folder, anchor

    def decided(self) -> list[Budget]:
        """The budgets of the guarantee: the one that the series was made with, and what it was raised to, in order."""
        return [self._terms.budget, *(budget for budget, _ in self._manifest.said.raised)]

    @property
    def each(self) -> Budget:
        """The budget of one block as it is now, with what groups have of it."""
        return self._terms.of_block(self.decided()[-1])

    def promised(self, level: int) -> list[Budget]:
        """What ledgers of a level were promised, in order: a row is in one of each level, which share its budget."""
        levels = self._manifest.said.levels[0]
        return [self._terms.of_level(levels, level, budget) for budget in self.decided()]

    def whole(self, level: int, measure: Measure) -> Loss:
        """All that a ledger of a level may ever spend, as it is promised now."""
        return total(self.promised(level)[-1], measure)

    def of(self, ledger: str, level: int) -> Budget:
        """The budget that a ledger has by now. It may be behind what is promised."""
        promised = self.promised(level)
        return promised[min(len(self._lines(ledger)), len(promised) - 1)]

    def finish(self, ledger: str, level: int, at: datetime | None = None) -> None:
        """Write the decisions into a ledger that it has not got: each a line of its own, in their order.

        at: the time of these lines, where that of the request is known.

        Guarantee: a decision is written once, whoever else does the same; and none that the manifest does not have.
        """
        while missing := self._missing(ledger, level):
            try:
                raise_budget(self._folder / ledger, missing[0], self._anchor, self._manifest.origin, at)
            except InvalidBudget:
                if self._missing(ledger, level) == missing:  # else another process has just written it
                    raise

    def _missing(self, ledger: str, level: int) -> list[Budget]:
        """The decisions that a ledger has not got; refused where it has others than those of its series."""
        done, wanted = self._lines(ledger), self.promised(level)[1:]
        if done != wanted[: len(done)]:
            raise LedgerError(f"{ledger} was raised by itself, by other decisions than those of its series.")
        return wanted[len(done) :]

    def catch_up(self, ledger: str, level: int, at: datetime | None) -> None:
        """`finish`, before a question: where it cannot be written, the ledger has less, and answers within that."""
        if len(self.decided()) > 1:
            with suppress(LedgerError):
                self.finish(ledger, level, at)

    def check(self, one: Listed, session: Session) -> None:
        """Refuse a ledger whose budget was raised by itself: the series promises what its manifest says."""
        has = [session.made_with[0], *(one.budget for one in session.extensions)]
        if has != self.promised(one.level)[: len(has)]:
            raise LedgerError(
                f"The budget of the block {one.label} was raised by itself: the series promises "
                f"{self.promised(one.level)[-1]} for each, and cannot keep that. If the manifest is an older copy, "
                "bring the newer one back."
            )

    def extend(self, budget: Budget, ledgers: Iterable[Listed], measure: Measure) -> None:
        """Raise the budget of the series, for the ledgers that there are; within the manifest's turn.

        Guarantee: a budget that is not more, or that a ledger cannot have, is refused before the first line is written.
            From that line on, the ledgers that a row is in have together at most what the new budget is worth. Those
            that were reached have it. Asked for again after it was cut short, it writes what is missing.
        """
        if not isinstance(budget, Budget):
            raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=2.0, delta=1e-9).")
        every = list(ledgers)
        for one in every:
            if went_back_before(self._folder / one.ledger, self._anchor):
                raise LedgerError(
                    f"The ledger of the block {one.label} went on from an older copy, and which decisions were lost "
                    "with the newer one is not known. So the budget of the series is not raised: what was promised "
                    "before holds, and a new series promises what you like, beside this one."
                )
        behind = [one for one in every if self._missing(one.ledger, one.level)]
        if budget != self.decided()[-1] or not behind:
            levels = self._manifest.said.levels[0]
            for level in range(len(levels.sizes)):
                now = self.promised(level)[-1]
                extension(total(now, measure), now, self._terms.of_level(levels, level, budget))
            self._manifest.extend(budget)
        for one in every:
            self.finish(one.ledger, one.level)

    def _lines(self, ledger: str) -> list[Budget]:
        """The decisions that stand in a ledger."""
        found = made_of(self._folder / ledger)
        return [] if found is None else [budget for budget, _ in decisions(found[1])]
