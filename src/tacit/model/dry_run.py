"""What a dry run says about a question. Public words."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.model.budget import Loss, percent_of


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

    def __str__(self) -> str:
        if not self.cost_at_most.atoms:
            return f"free{', and known' * self.known}: {self.why}"
        whole = self.total
        most = str(self.cost_at_most) if whole is None else f"{percent_of(self.cost_at_most, whole)} of the budget"
        return f"at most {most}: {self.why}"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        price, _, why = str(self).partition(": ")
        return notebook(question="what it would cost", value=price, bar="", small=why)
