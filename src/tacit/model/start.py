"""What a session starts from, in words and figures: what `base` and `start` give. Public words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.model.budget import Loss, percent_of


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
    expects: which errors to expect of answers after it.
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
        words = f"{self.what[0].upper()}{self.what[1:]}, {'bought' if self.bought else 'once'}{price}."
        for said, errors in (("Errors to expect", self.expects), ("Certified, at most", self.certified)):
            if errors:
                words += f" {said}: {'; '.join(f'± {one.error:,.0f} rows: {one.about}' for one in errors)}."
        return words
