"""What a session says of itself: how its budget stands, what was bought, its start, a dry run. Public words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.model.budget import Budget, Loss, percent_of, percent_words
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


def rows_in_words(rows: int, rows_per_person: int) -> str:
    """How many rows are asked about, and how many of them a person has at most: where it is several, others are not."""
    some = "" if rows_per_person == 1 else f" (at most {rows_per_person:,} of a person; others are left out)"
    return f"{rows:,} rows{some}"


@dataclass(frozen=True)
class Status:
    """The one budget of a table: fixed, spent and left; what it is spent on, and how.

    blocks, groups: of a series, and groups of its blocks that have ledgers too. Its figures are of one block: the
        budget of each, and what the one has spent that spent most, with the groups that it is in.

    extensions: the owner's decisions to raise the budget, in order.
    continues, continued_by: where the chains of the ledgers start that this one goes on from, and that goes on from it.
    quota: of the asker's key at a server; None where everything that is left may be spent.
    rows_per_person: how many rows of a person are counted at most; others are left out.
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
    rows_per_person: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        quota = {} if self.quota is None else {"of": self.quota.of.to_dict(), "used": self.quota.used.to_dict()}
        return {
            "rows": self.rows,
            **({} if self.rows_per_person == 1 else {"rows_per_person": self.rows_per_person}),
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
        rows = rows_in_words(self.rows, self.rows_per_person)
        said = f"{rows}, {self.cells:,} cells, {self.mechanism}; {self.budget}"
        own = "" if self.quota is None else f"; of your quota, {percent_of(self.quota.used, self.quota.of)}"
        return f"{said}; {percent_of(self.spent, self.total)} of it is spent{own}"

    def _repr_html_(self) -> str:
        from tacit.show.chart import Gauge

        return Gauge(str(self), [("spent", 100 * self.spent.atoms / self.total.atoms)], 100, "% of the budget").svg()


@dataclass(frozen=True)
class Past:
    """One line of the history: a question in words, what it cost, also in per cent of the budget, and its receipt.

    `kind` is "measured" (an answer), "choice" (one of several candidates), "compared" (whether a guess is far off),
    "discovered" (values or bins, before the domain was declared) or "gate" (a hard question found).
    """

    question: str
    cost: Loss
    receipt: Receipt
    kind: str
    percent: float


class History(list[Past]):
    """Everything bought so far, oldest first."""

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        rows = [[str(one.receipt.entry), one.question, percent_words(one.percent)] for one in self]
        return notebook(head=["entry", "bought", "of the budget"], rows=rows, notes=[])


@dataclass(frozen=True)
class Expected:
    """An error to expect, in rows, and what it is about."""

    error: float
    about: str


@dataclass(frozen=True)
class Started:
    """The base of a session: what its answers start from. `cost` is its price, or what was paid for it just now.

    what: what it is made of, in words; empty where the mechanism has no base.
    bought: whether it is there already. Where it is not, and costs nothing, too little is left for it.
    expects: which errors to expect of answers after it: from sizes, and once it is certified, from what it released.
    certified: once it is bought, the widest bars that were certified of it.
    """

    what: str
    cost: Loss
    total: Loss
    bought: bool
    expects: tuple[Expected, ...] = ()
    certified: tuple[Expected, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The start as a dict for JSON."""
        return {
            "what": self.what,
            "bought": self.bought,
            "percent": 100 * self.cost.atoms / self.total.atoms,
            "cost": self.cost.to_dict(),
            "total": self.total.to_dict(),
            "expects": [{"error": one.error, "about": one.about} for one in self.expects],
            "certified": [{"error": one.error, "about": one.about} for one in self.certified],
        }

    def __str__(self) -> str:
        if not self.what:
            return "There is nothing to buy before the first question."
        if not self.bought and not self.cost.atoms:
            return f"Too little of the budget is left for what a session starts from: {self.what}."
        price = f" for {percent_of(self.cost, self.total)} of the budget" if self.cost.atoms else ""
        when = "once" if not self.bought else "bought" if price else "bought already"
        words = f"{self.what[0].upper()}{self.what[1:]}, {when}{price}."
        for said, errors in (("Errors to expect", self.expects), ("Certified, at most", self.certified)):
            if errors:
                words += f" {said}: {'; '.join(f'± {one.error:,.0f} rows: {one.about}' for one in errors)}."
        return words


@dataclass(frozen=True)
class DryRun:
    """What would happen if a question were asked now: whether its answer is known already, and the most it can cost.

    left: of a question about blocks, the least that is left of any of them.
    """

    known: bool
    cost_at_most: Loss
    why: str
    total: Loss | None = None
    left: Loss | None = None

    @property
    def percent(self) -> float | None:
        """The cost, in per cent of the budget."""
        return None if self.total is None else 100 * self.cost_at_most.atoms / self.total.atoms

    @property
    def price(self) -> str:
        """The cost in words."""
        if not self.cost_at_most.atoms:
            return f"free{', and known' * self.known}"
        whole = self.total
        most = str(self.cost_at_most) if whole is None else f"{percent_of(self.cost_at_most, whole)} of the budget"
        return f"at most {most}"

    def __str__(self) -> str:
        return f"{self.price}: {self.why}"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        return notebook(question="what it would cost", value=self.price, bar="", small=self.why)
