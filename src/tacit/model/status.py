"""How a budget stands: what `status` gives, of a session and of a server. Public words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.model.budget import Budget, Loss, percent_of
from tacit.model.facts import Receipt


class Extension(NamedTuple):
    """The owner's decision to raise the budget: what it is from then on, what that amounts to, and where it stands."""

    budget: Budget
    total: Loss
    time: str
    receipt: Receipt

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        budget = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        return {"budget": budget, "time": self.time, "entry": self.receipt.entry, "seal": self.receipt.seal}


class Quota(NamedTuple):
    """What a key may spend of the budget, and has spent."""

    of: Loss
    used: Loss


class BlockStatus(NamedTuple):
    """One block of a series as its owner sees it."""

    label: str
    rows: int
    spent: Loss
    total: Loss
    started: bool

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        percent = 100 * self.spent.atoms / self.total.atoms
        return {"block": self.label, "rows": self.rows, "started": self.started, "percent_spent": percent}


@dataclass(frozen=True)
class Status:
    """The one budget of a table: fixed, spent and left; what it is spent on, and how.

    blocks, groups: of a series, and groups of its blocks that have ledgers too. Its figures are of one block: the
        budget of each, and what the one has spent that spent most, with the groups that it is in.

    extensions: the owner's decisions to raise the budget, in order.
    continues, continued_by: where the chains of the ledgers start that this one goes on from, and that goes on from it.
    quota: of the asker's key at a server; None where everything that is left may be spent.
    """

    rows: int
    cells: int
    budget: Budget
    mechanism: str
    reason: str
    total: Loss
    spent: Loss
    left: Loss
    epsilon_spent: float
    extensions: tuple[Extension, ...] = ()
    continues: str | None = None
    continued_by: str | None = None
    quota: Quota | None = None
    blocks: tuple[BlockStatus, ...] = ()
    groups: tuple[BlockStatus, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        quota = {} if self.quota is None else {"of": self.quota.of.to_dict(), "used": self.quota.used.to_dict()}
        return {
            "rows": self.rows,
            "cells": self.cells,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "mechanism": self.mechanism,
            "reason": self.reason,
            "extensions": [one.to_dict() for one in self.extensions],
            "continues": self.continues,
            "continued_by": self.continued_by,
            "total": self.total.to_dict(),
            "spent": self.spent.to_dict(),
            "left": self.left.to_dict(),
            "percent_spent": 100 * self.spent.atoms / self.total.atoms,
            "epsilon_spent": self.epsilon_spent,
            **({"quota": quota} if quota else {}),
            **({"blocks": [one.to_dict() for one in self.blocks]} if self.blocks else {}),
        }

    def __str__(self) -> str:
        said = f"{self.rows:,} rows, {self.cells:,} cells, {self.mechanism}; {self.budget}"
        own = "" if self.quota is None else f"; of your quota, {percent_of(self.quota.used, self.quota.of)}"
        return f"{said}; {percent_of(self.spent, self.total)} of it is spent{own}"

    def _repr_html_(self) -> str:
        from tacit.show.chart import Gauge

        return Gauge(str(self), [("spent", 100 * self.spent.atoms / self.total.atoms)], 100, "% of the budget").svg()
