"""Independent noise for every new question: the baseline that everything else must beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ConfigError, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.facts import Facts
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate, of_stored
from tacit.release.public import Public
from tacit.release.recall import buyer
from tacit.store.chain import Mark

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


class Direct:
    """The budget is cut into equal parts, one for each new question. What a release tells already is never bought."""

    fresh, learns, knows, everything = True, False, False, False
    starts_itself = False

    def __init__(self, public: Public, curator: Curator | None, *, questions: int, confidence: float) -> None:
        self._public, self._curator = public, curator
        self._confidence = confidence
        self._price = public.divided.split(questions)
        if self._price.atoms == 0:
            raise ConfigError(f"{questions:,} questions are too many for a budget of {public.total}.")

    def estimate(self, queries: Sequence[Query | Statistic], newest: Mark | None = None) -> list[Estimate]:
        cores = list(dict.fromkeys(query.core for query in queries))
        bought = dict(zip(cores, buyer(self._public, self._curator).measure(cores, self._price), strict=True))
        unpaid = set(cores)  # a query and its complement are paid once
        estimates = []
        for query in queries:
            paid_now = query.core in unpaid
            unpaid.discard(query.core)
            stored = bought[query.core]
            estimates.append(of_stored(stored, query, self._public.rows, self._confidence, paid_now=paid_now))
        return estimates

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        return [None] * len(queries)

    def certifies(self, query: Query) -> bool:
        return False

    def table(self, marginal: Marginal) -> TableEstimate:
        measured = buyer(self._public, self._curator).measure([marginal], self._price)[0]
        shape = self._public.domain.shape_of(marginal.names)
        facts = Facts("measured", measured.cost, self._confidence, measured.receipt)
        facts = facts.within(quantile(measured.noise, self._confidence))
        return TableEstimate(measured.values.reshape(shape), facts, measured.noise)

    def ahead(self) -> Loss:
        return Loss.nothing(self._price.measure)  # every question is bought by itself

    def bought(self) -> bool:
        return False

    def begin(self) -> Loss:
        return Loss.nothing(self._price.measure)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        raise InvalidQuery("nothing is published yet to make rows from: ask something first.")  # see `synthetic.draw`

    def arrays(self) -> tuple[()]:
        return ()  # the released answers are all there is

    def by_itself(self, statistic: Statistic) -> None:
        """Whatever is asked is bought by itself."""

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        return self._price

    @property
    def checking(self) -> Loss:
        return Loss.nothing(self._price.measure)

    def refuses(self) -> None:
        """Nothing but the end of the budget, which prices tell."""
