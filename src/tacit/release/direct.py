"""Independent noise for every new question: the baseline that everything else must beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ConfigError, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.entry import Measured, Told
from tacit.model.facts import Facts
from tacit.model.noise_law import quantile, variance
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate, of_stored, repeated
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.release.public import Public, buyer, expected_noise

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


class Direct:
    """The budget is cut into equal parts, one for each new question. What released tables determine well is free.

    "Well" means with at most five times the variance of a fresh measurement, which every single cell of a table has.
    The first such table in the ledger's order gives the answer, so it is the same whenever the question is asked.
    """

    fresh, learns, flat = True, False, None

    def __init__(self, public: Public, curator: Curator | None, *, questions: int, confidence: float) -> None:
        self._public, self._curator = public, curator
        self._confidence = confidence
        self._price = public.total.split(questions)
        if self._price.atoms == 0:
            raise ConfigError(f"{questions:,} questions are too many for a budget of {public.total}.")
        self._tables: list[NoisyTable] = []
        self._read_to = 0

    def estimate(self, queries: Sequence[Query | Statistic]) -> list[Estimate]:
        self._catch_up()
        known = {query: self._determined(query) for query in queries}
        cores = list({query.core: None for query, estimate in known.items() if estimate is None})
        measured = buyer(self._public, self._curator).measure(cores, self._price) if cores else []
        bought = dict(zip(cores, measured, strict=True))
        unpaid = set(cores)  # a query and its complement are paid once
        estimates = []
        for query, estimate in known.items():
            if estimate is None:
                paid_now = query.core in unpaid
                unpaid.discard(query.core)
                stored = bought[query.core]
                estimate = of_stored(stored, query, self._public.rows, self._confidence, paid_now=paid_now)
            estimates.append(estimate)
        return estimates

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        return [None] * len(queries)

    def table(self, marginal: Marginal) -> TableEstimate:
        self._catch_up()
        before = self._public.find([marginal])[0]
        table = self._first_that_tells(marginal)
        if table and (before is None or table.entry < before.receipt.entry):
            return table.table(marginal)
        measured = before
        if not isinstance(measured, Measured):
            measured = buyer(self._public, self._curator).measure([marginal], self._price)[0]
        shape = tuple(self._public.domain[name].size for name in marginal.names)
        facts = Facts("measured", measured.cost, self._confidence, measured.receipt)
        told = (facts if before is None else repeated(facts)).within(quantile(measured.noise, self._confidence))
        return TableEstimate(measured.values.reshape(shape), told, measured.noise)

    def ahead(self) -> Loss:
        return Loss(self._price.measure, 0)  # every question is bought by itself

    def bought(self) -> bool:
        return False

    def begin(self) -> Loss:
        return Loss(self._price.measure, 0)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        raise InvalidQuery('fresh answers leave nothing to draw rows from; mechanism="iterative" or "median" does.')

    def arrays(self) -> tuple[()]:
        return ()  # the released answers are all there is

    def recall(self, query: Query | Statistic, stored: Measured | Told) -> Estimate:
        """What told it first: a release may have measured what a table had told before."""
        self._catch_up()
        table = self._first_that_tells(query)
        if isinstance(query, Query) and table and table.entry < stored.receipt.entry:
            found = table.estimate(query)
            return replace(found, facts=repeated(found.facts))
        return of_stored(stored, query, self._public.rows, self._confidence)

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        self._catch_up()
        known = self._public.find([question])[0] is not None or self._first_that_tells(question) is not None
        return Loss(self._price.measure, 0) if known else self._price

    @property
    def set_aside(self) -> Loss:
        return Loss(self._price.measure, 0)

    def _determined(self, query: Query | Statistic) -> Estimate | None:
        table = self._first_that_tells(query)
        return table.estimate(query) if table and isinstance(query, Query) else None

    def _first_that_tells(self, question: Query | Statistic | Marginal) -> NoisyTable | None:
        if isinstance(question, Statistic):
            return None  # how far the noise of a table moves a nonlinear function of it is not known
        steps = question.unit if isinstance(question, Query) else 1
        fresh = variance(expected_noise(self._public, question, self._price)) / steps**2
        return next((t for t in self._tables if t.covers(question) and t.variance(question) <= 5 * fresh), None)

    def _catch_up(self) -> None:
        """Fold in what this or another process has released since the last look."""
        for measured in self._public.released(after=self._read_to):
            if isinstance(measured.question, Marginal) and measured.question.where.is_everyone:
                self._tables.append(NoisyTable(measured, self._public.domain, self._public.rows, self._confidence))
            self._read_to = measured.receipt.entry
