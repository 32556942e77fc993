"""One noisy histogram of the whole domain, bought with the whole budget: the best there is on small domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import MAX_ANSWERS, Marginal, histogram
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.release.public import Public, buyer

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


def check(domain: Domain) -> None:
    """Refuse a domain with more cells than one release has."""
    if domain.size > MAX_ANSWERS:
        raise InvalidDomain(
            f"a histogram is for domains of at most {MAX_ANSWERS:,} cells; this one has {domain.size:,}."
        )


class NoisyHistogram:
    """Everything is answered from one release, which the session's start buys. After that all questions are free."""

    fresh, learns, knows, everything = False, False, False, True

    def __init__(self, public: Public, curator: Curator | None, *, confidence: float) -> None:
        check(public.domain)
        self._public, self._curator = public, curator
        self._confidence = confidence
        self._cells = histogram(public.domain)
        self._known: NoisyTable | None = None

    def estimate(self, queries: Sequence[Query | Statistic]) -> list[Estimate]:
        linear = [query for query in queries if isinstance(query, Query)]
        if len(linear) < len(queries):
            raise InvalidQuery('a histogram answers counts; mechanism="median" or "direct" answers statistics too.')
        table, cost = self._bought()
        estimates = [table.estimate(query) for query in linear]
        if cost.atoms:  # the first question pays for all
            estimates[0] = replace(estimates[0], facts=replace(estimates[0].facts, source="measured", cost=cost))
        return estimates

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        return [None] * len(queries)

    def table(self, asked: Marginal) -> TableEstimate:
        table, cost = self._bought()
        estimate = table.table(asked)
        bought = replace(estimate.facts, source="measured", cost=cost)
        return replace(estimate, facts=bought) if cost.atoms else estimate

    def ahead(self) -> Loss:
        return Loss(self._public.total.measure, 0) if self.bought() else self._public.left

    def bought(self) -> bool:
        return self._public.find([self._cells])[0] is not None

    def begin(self) -> Loss:
        return self._bought()[1]

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        table = self._read()
        if table is None:
            raise InvalidQuery("nothing is published yet to make rows from: start the session.")
        drawn = dict(zip(table.names, table.draw(rows, rng), strict=True))
        return [drawn[name] for name in self._public.domain.names]  # a table's names are sorted, a domain's are not

    def arrays(self) -> tuple[()]:
        return ()  # the released answers are all there is

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        nothing, left = Loss(self._public.total.measure, 0), self._public.left
        if self._public.find([self._cells])[0]:
            return nothing
        return left if left.atoms else self._public.total  # it is never free: without anything left it is refused

    @property
    def set_aside(self) -> Loss:
        return Loss(self._public.total.measure, 0)

    def _read(self) -> NoisyTable | None:
        """The histogram, if it was bought: by whomever, and whenever."""
        if self._known is None and isinstance(bought := self._public.find([self._cells])[0], Measured):
            self._known = NoisyTable(bought, self._public.domain, self._public.rows, self._confidence)
        return self._known

    def _bought(self) -> tuple[NoisyTable, Loss]:
        """The histogram, which the session's start buys, and what was paid for it now."""
        table, cost = self._read(), Loss(self._public.total.measure, 0)
        if table is None:
            bought = buyer(self._public, self._curator).measure([self._cells], self._public.left)[0]
            table, cost = NoisyTable(bought, self._public.domain, self._public.rows, self._confidence), bought.cost
            self._known = table
        return table, cost
