"""One release for all ranges of an ordered attribute, or of a pair of them, bought once. Called by `release.parts`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.errors import InvalidQuery
from tacit.model.answer import Measured
from tacit.model.budget import Loss
from tacit.model.facts import Facts
from tacit.model.strategy import Product, Strategy, leaves
from tacit.release.estimate import repeated
from tacit.release.intervals.answers import Distribution
from tacit.release.intervals.choice import choose
from tacit.release.intervals.rectangles import Rectangles, choose_product
from tacit.release.public import Public, with_data

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Flat = Callable[[str], tuple[Measured, Loss]]  # an attribute's leaves from a histogram that answers everything


@dataclass(frozen=True, eq=False)
class Released:
    """What one release says about all ranges, the facts about it, and why it was measured this way."""

    ranges: Distribution | Rectangles
    facts: Facts
    why: str = ""


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
            measured = with_data(self._curator).measure([strategy], loss)[0]
        return measured, measured.cost
