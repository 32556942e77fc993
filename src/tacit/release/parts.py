"""The parts that answers are made of: fetched from what is known or through the mechanism, or only priced.

Called by the session. Whatever comes back is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.model.answer import Measured, Told
from tacit.model.budget import Loss
from tacit.model.facts import Facts
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, marginal
from tacit.release.estimate import Estimate, Mechanism, TableEstimate
from tacit.release.public import Public
from tacit.release.ranges import Ranges, Released

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

MAX_LOOKED_UP = 10_000  # cells of a table that are looked up one by one, where each is a question of its own


@dataclass(frozen=True)
class RangesOf:
    """The release of all ranges of one ordered attribute, or of two, for a share of the budget."""

    names: tuple[str, ...]
    share: float

    def loss(self, total: Loss) -> Loss:
        return Loss(total.measure, int(total.atoms * self.share))


Need = Query | Statistic | Marginal | RangesOf
Part = Estimate | TableEstimate | Released


@dataclass(frozen=True)
class DryRun:
    """What would happen if a question were asked now: whether its answer is known already, and the most it can cost."""

    known: bool
    cost_at_most: Loss
    why: str


class Parts:
    """Fetches and prices parts for one session."""

    def __init__(self, public: Public, curator: Curator | None, mechanism: Mechanism, confidence: float) -> None:
        self._public, self._mechanism, self._confidence = public, mechanism, confidence
        self._ranges = Ranges(public, curator, confidence, mechanism.flat)

    def fetch(self, needs: Iterable[Need]) -> dict[Need, Part]:
        """The answer to each need. New questions share one batch, and one turn at the ledger."""
        wanted = list(dict.fromkeys(needs))
        found = dict[Need, Part]()
        asked = list[Query | Statistic]()
        for need in wanted:
            if isinstance(need, Query) and need.is_constant:
                found[need] = self._constant(need)
            elif isinstance(need, Query | Statistic):
                asked.append(need)
        with self._public.turn():
            if asked:
                found |= self._asked(asked)
            for need in wanted:
                if isinstance(need, Marginal):
                    found[need] = self._mechanism.table(need)
                elif isinstance(need, RangesOf):
                    found[need] = self._ranges.release(need.names, need.loss(self._public.total))
        return found

    def _asked(self, queries: list[Query | Statistic]) -> dict[Need, Part]:
        stored = self._public.find([query.core for query in queries])
        new = [query for query, before in zip(queries, stored, strict=True) if before is None]
        found: dict[Need, Part] = dict(zip(new, self._mechanism.estimate(new), strict=True)) if new else {}
        for query, before in zip(queries, stored, strict=True):
            if before is not None:
                found[query] = self._mechanism.recall(query, before)
        return found

    def _constant(self, query: Query) -> Estimate:
        """Every row has the same weight, and the number of rows is public."""
        free = Loss(self._public.total.measure, 0)
        value = int(query.table((), ()).item()) * self._public.rows
        return Estimate(value, 0, Facts("public", free, self._confidence))

    def price(self, needs: Iterable[Need]) -> DryRun:
        """What fetching these would cost at most. Looks at the ledger and at public parameters, never at data."""
        wanted = list(dict.fromkeys(needs))
        mechanism, left = self._mechanism, self._public.left
        free = Loss(left.measure, 0)
        costs = self._costs(wanted)
        if all(cost is None for cost in costs):
            declared = all(isinstance(need, Query) and need.is_constant for need in wanted)
            return DryRun(True, free, "it follows from what is declared" if declared else "it is answered already")
        atoms = sum(cost.atoms for cost in costs if cost is not None)
        known = not atoms  # before it is cut to what is left: where that is nothing, nothing can be bought
        if len(costs) > 1:
            atoms = min(atoms, left.atoms + mechanism.set_aside.atoms)  # more than is left is never spent
        if mechanism.learns and not any(isinstance(need, RangesOf) for need in wanted):
            if known:
                return DryRun(False, free, "all hard answers are used: it is free, and nothing is guaranteed")
            return DryRun(False, Loss(free.measure, atoms), "free if what is public answers it well, else bought")
        if known:
            return DryRun(True, free, "a release that was bought before tells it")
        new = sum(cost is not None for cost in costs)
        why = f"{new} new question{'s' * (new > 1)} to buy"
        if not left.atoms:
            why += ", and the budget is used up: it is refused"
        return DryRun(False, Loss(free.measure, atoms), why)

    def _costs(self, needs: Sequence[Need]) -> list[Loss | None]:
        """The most that each could cost; None if it was answered before, or follows from what is public."""
        asked = [need.core for need in needs if isinstance(need, Query | Statistic) and not need.is_constant]
        stored = dict(zip(asked, self._public.find(asked), strict=True)) if asked else {}
        return [self._cost(need, stored) for need in needs]

    def _cost(self, need: Need, stored: dict[Query | Statistic, Measured | Told | None]) -> Loss | None:
        public, mechanism = self._public, self._mechanism
        if isinstance(need, RangesOf):
            strategy = self._ranges.strategy(need.names)
            if len(need.names) == 1 and self._ranges.from_histogram:
                return mechanism.most(marginal(public.domain, need.names[0]))
            return need.loss(public.total) if public.find([strategy])[0] is None else None
        if isinstance(need, Query | Statistic):
            known = need.is_constant or stored[need.core] is not None
            return None if known else mechanism.most(need.core)
        if mechanism.learns and need.size(public.domain) <= MAX_LOOKED_UP:
            cells = [cell.core for cell in need.queries(public.domain) if not cell.is_constant]
            found = public.find(cells) if cells else []
            return mechanism.most(need) if any(one is None for one in found) else None
        return mechanism.most(need)
