"""Independent noise for every new question: the baseline that everything else must beat."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate, of_measured
from tacit.release.noisy_table import NoisyTable
from tacit.trusted.curator import Curator


class Direct:
    """The budget is cut into equal parts, one for each new question. What released tables determine well is free.

    "Well" means with an error bar at most twice as wide as a fresh measurement's, which every single cell of a table
    has. The first such table in the ledger's order gives the answer, so it is the same whenever the question is asked.
    """

    def __init__(self, curator: Curator, *, questions: int, confidence: float) -> None:
        self._curator = curator
        self._confidence = confidence
        self._price = curator.total.split(questions)
        if self._price.atoms == 0:
            raise InvalidQuery(f"{questions:,} questions are too many for a budget of {curator.total}.")
        self._tables: list[NoisyTable] = []
        self._read_to = 0

    def estimate(self, queries: Sequence[Query]) -> list[Estimate]:
        self._catch_up()
        known = {query: self._determined(query) for query in queries}
        cores = list({query.core: None for query, estimate in known.items() if estimate is None})
        bought = dict(zip(cores, self._curator.measure(cores, self._price), strict=True)) if cores else {}
        unpaid = set(cores)  # a query and its complement are paid once
        estimates = []
        for query, estimate in known.items():
            if estimate is None:
                paid_now = query.core in unpaid
                unpaid.discard(query.core)
                measured, rows = bought[query.core], self._curator.rows
                estimate = of_measured(measured, query, rows, self._confidence, paid_now=paid_now)
            estimates.append(estimate)
        return estimates

    def table(self, marginal: Marginal) -> TableEstimate:
        self._catch_up()
        fresh = self._fresh(marginal)
        for table in self._tables:
            if table.covers(marginal) and table.half_width(marginal) <= 2 * fresh:
                return table.table(marginal)
        measured = self._curator.measure([marginal], self._price)[0]
        shape = tuple(self._curator.domain[name].size for name in marginal.names)
        return TableEstimate(measured.values.reshape(shape), fresh, "measured", measured.cost, measured.receipt)

    def most(self) -> Loss:
        return self._price

    def _determined(self, query: Query) -> Estimate | None:
        fresh = self._fresh(query)
        for table in self._tables:
            if table.covers(query) and table.half_width(query) <= 2 * fresh + query.unit:  # a step for rounding
                return table.estimate(query)
        return None

    def _fresh(self, question: Query | Marginal) -> int:
        """The half width of a measurement bought now."""
        return quantile(self._curator.expected_noise(question, self._price), self._confidence)

    def _catch_up(self) -> None:
        """Fold in what this or another process has released since the last look."""
        for measured in self._curator.released(after=self._read_to):
            self._read_to = measured.receipt.entry
            if isinstance(measured.question, Marginal) and measured.question.where.is_everyone:
                curator = self._curator
                self._tables.append(NoisyTable(measured, curator.domain, curator.rows, self._confidence))
