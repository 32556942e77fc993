"""The parts that answers are made of: fetched from what is known or through the mechanism, or only priced.

Called by the session. Whatever comes back is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss, percent
from tacit.model.entry import Measured, Told
from tacit.model.facts import EXACT, Facts
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Product, Strategy, leaves
from tacit.model.workload import Marginal, marginal
from tacit.release.dial import Dial, Wanted
from tacit.release.estimate import Answerer, Estimate, TableEstimate, repeated
from tacit.release.public import Public, buyer
from tacit.release.ranges.choice import choose
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import Rectangles, choose_product

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Flat = Callable[[str], tuple[Measured, Loss]]  # an attribute's leaves from a histogram that answers everything
MAX_LOOKED_UP = 10_000  # cells of a table that are looked up one by one, where each is a question of its own


@dataclass(frozen=True)
class RangesOf:
    """The release of all ranges of one ordered attribute, or of two, for a share of the budget."""

    names: tuple[str, ...]
    share: float

    def loss(self, total: Loss) -> Loss:
        return Loss(total.measure, int(total.atoms * self.share))


@dataclass(frozen=True, eq=False)
class Released:
    """What one release says about all ranges, the facts about it, and why it was measured this way."""

    ranges: Distribution | Rectangles
    facts: Facts
    why: str = ""


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

    def __init__(self, public: Public, curator: Curator | None, mechanism: Answerer, confidence: float) -> None:
        self._public, self._mechanism, self._confidence = public, mechanism, confidence
        self._ranges = Ranges(public, curator, confidence, mechanism.flat)
        self._dial = Dial(public, curator, confidence)

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
        settled = self.settled(asked)
        found |= {query: one for query, one in zip(asked, settled, strict=True) if one is not None}
        asked = [query for query, one in zip(asked, settled, strict=True) if one is None]
        if len(found) == len(wanted):
            return found
        with self._public.turn():
            if asked:
                found |= self._asked(asked)
            for need in wanted:
                if isinstance(need, Marginal):
                    found[need] = self._mechanism.table(need)
                elif isinstance(need, RangesOf):
                    found[need] = self._ranges.release(need.names, need.loss(self._public.total))
        return found

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        """For each query the answer that nothing can change any more, if it has one: from what is public alone."""
        return self._dial.beside(queries, self._mechanism.settled(queries))

    def _asked(self, queries: list[Query | Statistic]) -> dict[Need, Part]:
        stored = self._public.find([query.core for query in queries])
        new = [query for query, before in zip(queries, stored, strict=True) if before is None]
        found: dict[Need, Part] = dict(zip(new, self._mechanism.estimate(new), strict=True)) if new else {}
        again = [query for query, before in zip(queries, stored, strict=True) if before is not None]
        later = dict(zip(again, self._public.sharpest([query.core for query in again]), strict=True)) if again else {}
        for query, before in zip(queries, stored, strict=True):
            if before is not None:
                found[query] = self._dial.noted(query, self._mechanism.recall(query, before), later[query])
        return found

    def within(self, one: Wanted) -> Estimate:
        """An answer as sharp as wanted: the one that is known if that is, else a fresh one, which is kept beside it."""
        with self._public.turn():
            return self._sharp_enough(one) or self._dial.buy(one)

    def price_within(self, one: Wanted) -> DryRun:
        """What that would cost. Looks at the ledger and at public parameters, never at data."""
        left, total = self._public.left, self._public.total
        if self._sharp_enough(one) is not None:
            return DryRun(True, Loss(left.measure, 0), "it is known as well as that")
        price = self._dial.price(one)
        if price <= left:
            return DryRun(False, price, f"bought fresh, for {percent(price, total)} of the budget")
        best = self._dial.narrowest(one)
        buys = "nothing" if best is None else f"± {best:,.4g} at best"
        return DryRun(
            False, price, f"it costs more than is left, {percent(left, total)}, which buys {buys}: it is refused"
        )

    def _sharp_enough(self, one: Wanted) -> Estimate | None:
        if self.price([one.query]).known:
            plain = self.fetch([one.query])[one.query]
            if isinstance(plain, Estimate) and self._dial.enough(plain, one):
                return plain
        return None if one.query.is_constant else self._dial.known(one)

    def _constant(self, query: Query) -> Estimate:
        """Every row has the same weight, and the number of rows is public."""
        free = Loss(self._public.total.measure, 0)
        value = int(query.table((), ()).item()) * self._public.rows
        return Estimate(value, Facts("public", free, self._confidence).within(0, EXACT))

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

    def wants_base(self, needs: Iterable[Need]) -> bool:
        """Whether one of these is neither known nor public, and is no release of ranges, which is bought by itself."""
        about = [need for need in dict.fromkeys(needs) if self._ranges.from_histogram or not isinstance(need, RangesOf)]
        return any(cost is not None for cost in self._costs(about))

    def _costs(self, needs: Sequence[Need]) -> list[Loss | None]:
        """The most that each could cost; None if it was answered before, or follows from what is public."""
        asked = [need for need in needs if isinstance(need, Query | Statistic) and not need.is_constant]
        settled = {need for need, one in zip(asked, self._mechanism.settled(asked), strict=True) if one is not None}
        cores = [need.core for need in asked if need not in settled]
        stored = dict(zip(cores, self._public.find(cores), strict=True)) if cores else {}
        return [None if need in settled else self._cost(need, stored) for need in needs]

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


class Ranges:
    """The releases of ranges of one session. What was bought once is read back from then on."""

    def __init__(self, public: Public, curator: Curator | None, confidence: float, flat: Flat | None) -> None:
        self._public, self._curator, self._confidence, self._flat = public, curator, confidence, flat
        self._known: dict[tuple[str, ...], Released] = {}

    @property
    def from_histogram(self) -> bool:
        """Whether everything about ranges is read off a histogram that answers all questions."""
        return self._flat is not None

    def strategy(self, names: tuple[str, ...]) -> Strategy:
        """What would be bought for one attribute or two, from public parameters alone."""
        domain, measure = self._public.domain, self._public.total.measure
        sizes = {name: leaves(domain[name]) for name in names}
        if min(sizes.values()) < 2:
            raise InvalidQuery("an attribute with a single bin has no ranges.")
        if len(sizes) == 1:
            return choose(*next(iter(sizes.items())), measure).strategy
        (first, m), (second, n) = sorted(sizes.items())
        return choose_product(first, m, second, n, measure)

    def release(self, names: tuple[str, ...], loss: Loss) -> Released:
        """All ranges of one attribute, or of two, for at most `loss` if they are not known yet."""
        names = tuple(sorted(names))
        if names not in self._known:
            found = self._measured(names, loss)
            self._known[names] = replace(found, facts=repeated(found.facts))
            if found.facts.cost.atoms:
                return found
        return self._known[names]

    def _measured(self, names: tuple[str, ...], loss: Loss) -> Released:
        strategy, public = self.strategy(names), self._public
        if self._flat is not None and len(names) == 1:
            measured, cost = self._flat(names[0])
            why = ""
        else:
            measured, cost = self._buy(strategy, loss)
            why = "" if len(names) > 1 else choose(names[0], leaves(public.domain[names[0]]), loss.measure).why
        facts = Facts("measured", cost, self._confidence, measured.receipt)
        kind = Rectangles if isinstance(strategy, Product) else Distribution
        return Released(kind(measured, public.domain, public.rows, self._confidence), facts, why)

    def _buy(self, strategy: Strategy, loss: Loss) -> tuple[Measured, Loss]:
        """The release, and what it cost now: nothing if it was bought before, here or elsewhere."""
        with self._public.turn():
            known = self._public.find([strategy])[0]
            if isinstance(known, Measured):
                return known, Loss(loss.measure, 0)
            measured = buyer(self._public, self._curator).measure([strategy], loss)[0]
        return measured, measured.cost
