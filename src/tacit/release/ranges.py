"""Every range, CDF, quantile and mean of an ordered attribute from one release, bought once. Called by the session."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.answer import Answer, Measured, Receipt, Source, Table
from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.describe import describe
from tacit.model.distribution_answer import CdfAnswer, QuantileAnswer
from tacit.model.query import Query
from tacit.model.strategy import Product, Strategy, leaves
from tacit.model.values import Days
from tacit.release.intervals.answers import Distribution
from tacit.release.intervals.choice import choose
from tacit.release.intervals.rectangles import Rectangles, choose_product
from tacit.trusted.curator import Curator

Flat = Callable[[str], tuple[Measured, Loss]]  # an attribute's leaves from a histogram that answers everything


@dataclass(frozen=True)
class Circumstances:
    """Where an answer comes from, what it cost now, and why this strategy."""

    source: Source
    cost: Loss
    receipt: Receipt
    why: str


class Ranges:
    """One release for each ordered attribute, or pair of them, that is asked about. After that everything is free."""

    def __init__(self, curator: Curator, confidence: float, flat: Flat | None = None) -> None:
        self._curator, self._confidence, self._flat = curator, confidence, flat
        self._known: dict[str, tuple[Distribution, Circumstances]] = {}
        self._pairs: dict[tuple[str, str], tuple[Rectangles, Circumstances]] = {}

    @property
    def from_histogram(self) -> bool:
        """Whether everything about ranges is read off a histogram that answers all questions."""
        return self._flat is not None

    def cdf(self, name: str, loss: Loss) -> CdfAnswer:
        found, about = self._distribution(name, loss)
        cdf, attribute = found.cdf(), found.attribute
        return CdfAnswer(
            question=f"cumulative counts of {found.name}",
            name=found.name,
            labels=tuple(attribute.label(i) for i in range(attribute.bins)),
            start=float(attribute.edge(0)),
            ends=np.array([float(attribute.edge(i + 1)) for i in range(attribute.bins)]),
            values=cdf.values,
            error=cdf.half_width,
            rows=self._curator.rows,
            confidence=self._confidence,
            source=about.source,
            cost=about.cost,
            receipt=about.receipt,
            dated=isinstance(attribute.values, Days),
            why=about.why,
        )

    def quantile(self, name: str, share: float, loss: Loss) -> QuantileAnswer:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise InvalidQuery(f"a quantile is a share above 0 and below 1, not {share!r}.")
        found, about = self._distribution(name, loss)
        quantile, attribute = found.quantile(share), found.attribute
        return QuantileAnswer(
            question=f"the {100 * share:.10g}% quantile of {found.name}",
            share=share,
            value=attribute.label(quantile.bin),
            low=attribute.label(quantile.first),
            high=attribute.label(quantile.last),
            confidence=self._confidence,
            source=about.source,
            cost=about.cost,
            receipt=about.receipt,
        )

    def range(self, query: Query, loss: Loss) -> Answer:
        """The count of a condition that selects neighbouring bins of one ordered attribute, or of each of two."""
        sides = self.sides(query)
        if len(sides) == 1:
            found, about = self._distribution(query.scope[0], loss)
            counts = found.counts(*sides[0])
        else:
            rectangles, about = self._rectangles(query.scope[0], query.scope[1], loss)
            (a, b), (c, d) = sides
            counts = rectangles.counts((a, c), (b, d))
        return self._answer(describe(query, self._curator.domain), float(counts.values), float(counts.errors), about)

    def sides(self, query: Query) -> list[tuple[int, int]]:
        """The first and the last bin in each attribute that a range depends on: one, or two. Refuses all else.

        A side that is everything is none, so what is bought goes by the query's scope and not by the words.
        """
        sides = [_bins(query, name, self._attribute(name)) for name in query.scope]
        if not 1 <= len(sides) <= 2:
            raise InvalidQuery("a range is about one ordered attribute, or two.")
        return sides

    def histogram(self, name: str, width: int | float | None, loss: Loss) -> Table:
        cuts = None if width is None else _cuts(self._attribute(name), self._curator.domain.resolve(name), width)
        found, about = self._distribution(name, loss)
        counts, attribute = found.histogram(cuts), found.attribute
        at = list(range(attribute.bins + 1)) if cuts is None else cuts
        labels = [attribute.label(a) if b == a + 1 else _between(attribute, a, b) for a, b in pairwise(at)]
        return Table(
            f"rows by {found.name}",
            (found.name,),
            (tuple(labels),),
            counts.values,
            float(counts.errors.max()),
            self._confidence,
            about.source,
            about.cost,
            about.receipt,
        )

    def mean(self, name: str, loss: Loss) -> Answer:
        found, about = self._distribution(name, loss)
        mean = found.mean()
        note = (
            f"values taken for the middle of their bin; off by at most {mean.rounding:g} more" if mean.rounding else ""
        )
        return replace(self._answer(f"the mean of {found.name}", mean.value, mean.error, about), note=note)

    def strategy(self, *names: str) -> Strategy:
        """What would be bought, from public parameters alone."""
        domain, measure = self._curator.domain, self._curator.total.measure
        sizes = {domain.resolve(name): leaves(self._attribute(name)) for name in names}
        if min(sizes.values()) < 2:
            raise InvalidQuery("an attribute with a single bin has no ranges.")
        if len(sizes) == 1:
            return choose(*next(iter(sizes.items())), measure).strategy
        (first, m), (second, n) = sorted(sizes.items())
        return choose_product(first, m, second, n, measure)

    def _attribute(self, name: str) -> Attribute:
        attribute = self._curator.domain[name]
        if not attribute.ordered:
            raise InvalidQuery(f"{self._curator.domain.resolve(name)} has no order, so it has no ranges.")
        return attribute

    def _distribution(self, name: str, loss: Loss) -> tuple[Distribution, Circumstances]:
        strategy, name = self.strategy(name), self._curator.domain.resolve(name)
        if name not in self._known:
            measured, cost = self._buy(strategy, loss) if self._flat is None else self._flat(name)
            why = "" if self._flat else choose(name, leaves(self._attribute(name)), loss.measure).why
            found = Distribution(measured, self._curator.domain, self._curator.rows, self._confidence)
            self._known[name] = found, Circumstances("repeat", Loss(cost.measure, 0), measured.receipt, why)
            if cost.atoms:
                return found, replace(self._known[name][1], source="measured", cost=cost)
        return self._known[name]

    def _rectangles(self, first: str, second: str, loss: Loss) -> tuple[Rectangles, Circumstances]:
        strategy = self.strategy(first, second)
        assert isinstance(strategy, Product)
        pair = strategy.first.name, strategy.second.name
        if pair not in self._pairs:
            measured, cost = self._buy(strategy, loss)
            found = Rectangles(measured, self._curator.domain, self._curator.rows, self._confidence)
            self._pairs[pair] = found, Circumstances("repeat", Loss(cost.measure, 0), measured.receipt, "")
            if cost.atoms:
                return found, replace(self._pairs[pair][1], source="measured", cost=cost)
        return self._pairs[pair]

    def _buy(self, strategy: Strategy, loss: Loss) -> tuple[Measured, Loss]:
        """The release, and what it cost now: nothing if it was bought before, here or elsewhere."""
        with self._curator.turn():
            bought = self._curator.find([strategy])[0] is None
            measured = self._curator.measure([strategy], loss)[0]
        return measured, measured.cost if bought else Loss(loss.measure, 0)

    def _answer(self, question: str, value: float, error: float, about: Circumstances) -> Answer:
        return Answer(question, value, error, self._confidence, about.source, about.cost, about.receipt)


def _bins(query: Query, name: str, attribute: Attribute) -> tuple[int, int]:
    """The first and the last bin that a condition selects, which must be neighbours."""
    factors = [factor for factor in query.factors if factor.scope == (name,)]
    if len(factors) != 1 or factors[0].unit > 1 or (query.complement and len(query.factors) > 1):
        raise InvalidQuery(f"a range of {name} selects whole bins between two ends.")
    # A range of more than half of the values is kept as the complement of the others.
    chosen = np.flatnonzero(1 - factors[0].weights.astype(np.int8) if query.complement else factors[0].weights)
    if chosen[-1] - chosen[0] + 1 != len(chosen) or chosen[-1] >= attribute.bins:
        raise InvalidQuery(f"a range of {name} selects whole bins between two ends.")
    return int(chosen[0]), int(chosen[-1])


def _cuts(attribute: Attribute, name: str, width: int | float) -> list[int]:
    """The bin edges at every multiple of `width` from the first edge on, and the last one."""
    if isinstance(attribute.values, Days):
        raise InvalidQuery(f"{name} has dates: their bins are {attribute.values.by}s, and a width is a number.")
    if isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < math.inf:
        raise InvalidQuery(f"a width is a number above 0, not {width!r}.")
    low, high = attribute.edge(0), attribute.edge(attribute.bins)
    steps = (high - low) / width - 1e-9
    if steps > attribute.bins:  # also where it is infinite, which has no ceiling
        raise InvalidQuery(f"bins of {width:g} are finer than those that {name} is declared with.")
    return [attribute.below(name, low + i * width) for i in range(math.ceil(steps))] + [attribute.bins]


def _between(attribute: Attribute, first: int, end: int) -> str:
    assert not isinstance(attribute.values, str)
    return attribute.values.label(attribute.edge(first), attribute.edge(end))  # type: ignore[call-arg,arg-type]
