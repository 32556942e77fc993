"""One noisy histogram of the whole domain, bought with the whole budget: the best there is on small domains.

Of a single ordered attribute with many bins the release of all its ranges is bought instead: cells by themselves add up
to noisy ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExhausted, InvalidDomain, InvalidQuery, NotStarted
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import EXACT, Facts, widest
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import MAX_ANSWERS, Marginal, Strategy, histogram, leaves
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.release.public import Public
from tacit.release.purchases import Purchase
from tacit.release.ranges.choice import choose
from tacit.release.ranges.distribution import Distribution
from tacit.release.recall import buyer
from tacit.store.chain import Mark

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


STATISTIC_SHARE = 0.01  # of the budget: what a statistic costs, which no histogram answers
_MANY = 64  # bins of an attribute whose ranges are bought instead of its cells


def check(domain: Domain) -> None:
    """Refuse a domain with more cells than one release has."""
    if domain.size > MAX_ANSWERS:
        raise InvalidDomain(
            f"a histogram is for domains of at most {MAX_ANSWERS:,} cells; this one has {domain.size:,}."
        )


def everything(domain: Domain, measure: Measure) -> Marginal | Strategy:
    """What is bought: every cell, or what makes all ranges of one ordered attribute sure."""
    name = domain.names[0]
    attribute = domain[name]
    many = attribute.ordered and leaves(attribute) == attribute.size >= _MANY
    return choose(name, attribute.size, measure).strategy if many and len(domain) == 1 else histogram(domain)


class NoisyHistogram:
    """Everything is answered from one release, which the session's start buys. After that all questions are free."""

    fresh, learns, knows, everything = False, False, False, True
    starts_itself = False

    def __init__(self, public: Public, curator: Curator | None, *, confidence: float) -> None:
        check(public.domain)
        self._public, self._curator = public, curator
        self._confidence, self._nothing = confidence, Loss.nothing(public.total.measure)
        self._cells = everything(public.domain, public.total.measure)
        self._known: Purchase | None = None
        self._earlier: frozenset[str] | None = None  # keys of what was told before it

    def estimate(self, queries: Sequence[Query | Statistic], newest: Mark | None = None) -> list[Estimate]:
        linear = [query for query in queries if isinstance(query, Query)]  # statistics are bought by themselves
        bought, cost = self._bought(buy=self.starts_itself)
        estimates = [bought.estimate(query) for query in linear]
        if cost.atoms:  # the first question pays for all
            estimates[0] = replace(estimates[0], facts=replace(estimates[0].facts, source="measured", cost=cost))
        return estimates

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        """What the histogram says once it is bought, of all that nothing had told before it: no look at the ledger."""
        known = self._read()
        if known is None:
            return [None] * len(queries)
        if self._earlier is None:
            self._earlier = self._public.keys_before(known.entry)
        return [self._own(known, query) for query in queries]

    def _own(self, known: Purchase, query: Query | Statistic) -> Estimate | None:
        """What the histogram says of a question that only it tells."""
        if not isinstance(query, Query) or query.is_constant or query.core.key in (self._earlier or ()):
            return None
        if not query.fits(self._public.domain):  # which is refused by whoever asks for its parts
            return None
        return known.estimate(query)

    def table(self, asked: Marginal) -> TableEstimate:
        bought, cost = self._bought(buy=self.starts_itself)
        table = bought.release
        estimate = table.table(asked) if isinstance(table, NoisyTable) else self._binned(asked, bought)
        facts = replace(estimate.facts, source="measured", cost=cost)
        return replace(estimate, facts=facts) if cost.atoms else estimate

    def _binned(self, asked: Marginal, bought: Purchase) -> TableEstimate:
        """The bins of a single attribute, each as a question of its own."""
        domain = self._public.domain
        nobody = Estimate(0, Facts("public", self._nothing, self._confidence).within(0, EXACT))
        cells = list(asked.queries(domain))
        found = [nobody if cell.is_constant else bought.estimate(cell) for cell in cells]
        values = np.array([one.value for one in found], dtype=np.int64)
        facts = replace(bought.estimate(cells[0]).facts, bars=widest([one.facts.bars for one in found]))
        return TableEstimate(values.reshape(domain.shape_of(asked.names)), facts)

    def ahead(self) -> Loss:
        return self._nothing if self.bought() else self._public.left

    def certifies(self, query: Query) -> bool:
        return True  # whatever it is

    def bought(self) -> bool:
        return self._public.find([self._cells])[0] is not None

    def begin(self) -> Loss:
        if self._read() is None and not self._public.left.atoms:
            return self._nothing  # nothing can be bought
        return self._bought(buy=True)[1]

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        bought = self._read()
        if bought is None:
            raise InvalidQuery("nothing is published yet to make rows from: start the session.")
        table = bought.release
        if isinstance(table, Distribution):
            counts = np.diff(table.whole)
            return [rng.choice(counts.size, size=rows, p=counts / counts.sum()).astype(np.intp)]
        assert isinstance(table, NoisyTable)
        drawn = dict(zip(table.names, table.draw(rows, rng), strict=True))
        return [drawn[name] for name in self._public.domain.names]  # a table's names are sorted, a domain's are not

    def arrays(self) -> tuple[()]:
        return ()  # the released answers are all there is

    def by_itself(self, statistic: Statistic) -> Loss:
        """A share of the budget: while something is left of it, the histogram is not bought yet."""
        return Loss(self._public.total.measure, int(self._public.total.atoms * STATISTIC_SHARE))

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        if self.bought():
            return self._nothing
        left = self._public.left
        return left if left.atoms else self._public.whole  # it is never free: without anything left it is refused

    @property
    def checking(self) -> Loss:
        return self._nothing

    def refuses(self) -> None:
        """Nothing but the end of the budget, which prices tell."""

    def _read(self) -> Purchase | None:
        """The histogram, if it was bought: by whomever, and whenever."""
        if self._known is None and isinstance(bought := self._public.find([self._cells])[0], Measured):
            self._known = Purchase(bought, self._public.domain, self._public.rows, self._confidence)
        return self._known

    def _bought(self, *, buy: bool) -> tuple[Purchase, Loss]:
        """The histogram, which the session's start buys, and what was paid for it now. A question may not `buy` it."""
        known, cost = self._read(), self._nothing
        if known is None:
            if not self._public.left.atoms:  # as after an older copy of the ledger was accepted
                raise BudgetExhausted(
                    "What the answers start from has to be bought, and nothing of the budget is left."
                )
            if not buy and self._curator is not None:  # the budget was raised since the session was looked at
                raise NotStarted("What the answers start from was not bought: start the session.")
            bought = buyer(self._public, self._curator).measure([self._cells], self._public.left)[0]
            known, cost = Purchase(bought, self._public.domain, self._public.rows, self._confidence), bought.cost
            self._known = known
        return known, cost
