"""Independent noise for every new question: the baseline that everything else must beat."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import InvalidQuery
from tacit.model.answer import Measured
from tacit.model.budget import Loss
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.noisy_table import NoisyTable
from tacit.trusted.curator import Curator


class Direct:
    """The budget is cut into equal parts, one for each new question. What released tables determine well is free.

    "Well" means with an error bar no wider than a fresh measurement's. The first such table in the ledger's order gives
    the answer, so a question has the same answer whenever it is asked.
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
        known = [self._determined(query) for query in queries]
        bought = iter(self._curator.measure([q for q, e in zip(queries, known, strict=True) if e is None], self._price))
        return [estimate or self._read(next(bought)) for estimate in known]

    def table(self, marginal: Marginal) -> TableEstimate:
        self._catch_up()
        fresh = quantile(self._curator.expected_noise(marginal, self._price), self._confidence)
        for table in self._tables:
            if table.covers(marginal) and table.half_width(marginal) <= fresh:
                return table.table(marginal)
        measured = self._curator.measure([marginal], self._price)[0]
        shape = tuple(self._curator.domain[name].size for name in marginal.names)
        return TableEstimate(measured.values.reshape(shape), fresh, "measured", measured.cost, measured.receipt)

    def most(self, questions: int) -> Loss:
        return Loss(self._price.measure, self._price.atoms * questions)

    def _determined(self, query: Query) -> Estimate | None:
        fresh = quantile(self._curator.expected_noise(query, self._price), self._confidence)
        for table in self._tables:
            if table.covers(query) and table.half_width(query) <= fresh:
                return table.estimate(query)
        return None

    def _read(self, measured: Measured) -> Estimate:
        half_width = quantile(measured.noise, self._confidence)
        return Estimate(int(measured.values[0]), half_width, "measured", measured.cost, measured.receipt)

    def _catch_up(self) -> None:
        """Fold in what this or another process has released since the last look."""
        for measured in self._curator.released(after=self._read_to):
            self._read_to = measured.receipt.entry
            if isinstance(measured.question, Marginal) and measured.question.where.is_constant:
                curator = self._curator
                self._tables.append(NoisyTable(measured, curator.domain, curator.rows, self._confidence))
