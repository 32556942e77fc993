"""Asks the session's mechanism for the parts of a composed value, and puts them together. Called by the session.

Post-processing only: what is asked is asked through the session, and what comes back is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import Answer, Table
from tacit.model.budget import Loss
from tacit.model.distribution_answer import QuantileAnswer
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise, quantile_of_sum, variance
from tacit.model.query import Query
from tacit.model.statement import words
from tacit.model.workload import Marginal, marginal
from tacit.release.composed import FEW, MAX_SEPARATE, Column, Composed, Facts, Plan, sure
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.trusted.curator import Curator

Floats = NDArray[np.float64]


class Composer:
    """Asks the session's mechanism for parts, and puts them together."""

    def __init__(
        self,
        curator: Curator,
        confidence: float,
        ask_many: Callable[[Sequence[Query]], list[Answer]],
        table: Callable[[Sequence[str], Query], Table],
        *,
        fresh: bool,
    ) -> None:
        self._curator, self._confidence, self._ask_many, self._table = curator, confidence, ask_many, table
        self._fresh = fresh  # every new question has noise of its own, and a price

    @property
    def domain(self) -> Domain:
        return self._curator.domain

    def questions(self, columns: Sequence[Column]) -> list[Query | Marginal]:
        """All that these columns would ask."""
        asked = [column.questions(self.domain, fresh=self._fresh) for column in columns]
        return [one for part in asked for one in ([part] if isinstance(part, Marginal) else part)]

    def answer(self, plan: Plan) -> Composed:
        """The values of a plan. Its separate questions share one batch."""
        asked = [column.questions(self.domain, fresh=self._fresh) for column in plan.columns]
        queries = [query for part in asked if not isinstance(part, Marginal) for query in part]
        answers = iter(self._ask_many(queries) if queries else [])
        parts: list[Composed] = []
        for column, part in zip(plan.columns, asked, strict=True):
            if isinstance(part, Marginal):
                parts.append(self._from_table(column, part))
            else:
                mine = [next(answers) for _ in part]
                values, errors = [float(a.value) for a in mine], [a.error for a in mine]
                parts.append(Composed(values, errors, self._confidence, Facts.of(mine)))
        return plan.put_together(parts, self._confidence, Loss(self._curator.total.measure, 0))

    def quantile_questions(self, name: str, where: Query) -> list[Query | Marginal]:
        """What a quantile under a condition asks: the table of the attribute, or its cumulative counts."""
        attribute, name = self.domain[name], self.domain.resolve(name)
        if not attribute.ordered:
            raise InvalidQuery(f"{name} has no order, so it has no quantiles.")
        table = marginal(self.domain, name, where=where)
        if self._fresh and attribute.bins >= FEW:
            return [table]
        if attribute.bins > MAX_SEPARATE:
            raise InvalidQuery(
                f"{name} has {attribute.bins:,} bins; {MAX_SEPARATE:,} go, for a quantile under a condition."
            )
        return [Query.all([where, Query.among(self.domain, name, range(t + 1))]) for t in range(attribute.bins)]

    def quantile_answer(self, name: str, share: float, where: Query) -> QuantileAnswer:
        """A quantile among the rows of a condition."""
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise InvalidQuery(f"a quantile is a share above 0 and below 1, not {share!r}.")
        name, label = self.domain.resolve(name), self.domain[name].label
        found, first, last, confidence, about = self.quantile(name, share, where)
        return QuantileAnswer(
            words("quantile", where, self.domain, name, share),
            share,
            label(found),
            label(first),
            label(last),
            confidence,
            about.source,
            about.cost,
            about.receipt,
            about.note,
        )

    def quantile(self, name: str, share: float, where: Query) -> tuple[int, int, int, float, Facts]:
        """The bin that holds a quantile, the first and the last that could, at which confidence, and the facts.

        The bin that truly holds it stays in the interval if two bars hold: that of the rank before it and that of the
        rank at its end. A rank is F(t) - share * F(end). From one table the ranks' noise is symmetric and each bar is
        wrong on the side that matters with probability (1-c)/2: so the interval holds at c. From separate answers it
        holds at 1 - 3(1-c): two cumulative counts and the total.
        """
        asked = self.quantile_questions(name, where)
        bins = self.domain[name].bins
        if isinstance(asked[0], Marginal):
            table = self._table([name], where)
            counts = np.concatenate([[0.0], np.cumsum(table.values[:bins])])
            noise, draws = self._law(table, asked[0])
            t = np.arange(bins + 1)
            terms = draws * (t * (1 - share) ** 2 + (bins - t) * share**2)
            bars = _bars(noise, terms, self._confidence)
            confidence, facts = self._confidence, Facts.of([table])
        else:
            answers = self._ask_many([query for query in asked if isinstance(query, Query)])
            counts = np.array([0.0, *(answer.value for answer in answers)])
            errors = [math.inf if answer.error is None else answer.error for answer in answers]
            bars = np.array([0.0, *errors]) + share * errors[-1]
            confidence, facts = sure(3, self._confidence), Facts.of(answers)
        rank = counts - share * counts[-1]
        found = min(int(np.argmax(rank[1:] >= 0)), bins - 1) if (rank[1:] >= 0).any() else bins - 1
        low, high = rank - bars, rank + bars
        low[0] = min(low[0], -math.ulp(0.0))  # before the first bin nobody has come, for certain
        could = np.append(np.flatnonzero((low[:-1] < 0) & (high[1:] >= 0)), found)
        return found, int(could.min()), int(could.max()), confidence, facts

    def _from_table(self, column: Column, asked: Marginal) -> Composed:
        names = [group.name for group in column.groups]
        beyond = bool(column.name) and column.name not in names
        table = self._table([*names, column.name] if beyond else names, asked.where)
        facts = Facts.of([table])
        if column.is_plain:
            return Composed(table.values.ravel().tolist(), [table.error] * table.values.size, self._confidence, facts)
        cells, terms = table.values.astype(np.float64), 1.0
        weights = np.asarray(column.weights, dtype=np.float64)
        if beyond:
            cells, terms = cells @ weights, float(weights @ weights)
        elif column.name:
            shape = [-1 if name == column.name else 1 for name in names]
            cells = cells * weights.reshape(shape)
        for axis, group in enumerate(column.groups):
            parts = group.parts(self.domain)
            cells = np.add.reduceat(cells, [part.start for part in parts], axis=axis)
            terms *= max(map(len, parts))
        noise, draws = self._law(table, asked)
        error = float(_bars(noise, np.array([draws * terms]), self._confidence)[0])
        return Composed(cells.ravel().tolist(), [error] * cells.size, self._confidence, facts)

    def _law(self, table: Table, asked: Marginal) -> tuple[Noise, int]:
        """The noise of the release that a table was read off, and how many draws of it are in each cell."""
        assert table.receipt is not None
        measured = next(iter(self._curator.released(after=table.receipt.entry - 1)))
        if measured.question == asked:
            return measured.noise, 1
        wider = NoisyTable(measured, self.domain, self._curator.rows, self._confidence)
        return measured.noise, round(wider.variance(asked) / variance(measured.noise))


def _bars(noise: Noise, terms: Floats, confidence: float) -> Floats:
    """Bars for sums of noise with weights in [-1, 1] whose squares add up to at most `terms`.

    A draw's log moment generating function divided by the square of its argument rises, because all its even cumulants
    are positive (discrete Laplace: a difference of geometrics) or it is subgaussian (discrete Gaussian). So weights
    count by their squares, and whole draws stand for them in `quantile_of_sum`.
    """
    whole = np.maximum(1, np.ceil(terms - 1e-9)).astype(np.int64)
    if whole.size > 64:  # to the next quarter of an octave: a few bounds serve all
        whole = np.ceil(2 ** (np.ceil(np.log2(whole) * 4) / 4)).astype(np.int64)
    # One term asks for two: of a single draw only the plain quantile is known, and a weighted one is not whole.
    known = {k: quantile_of_sum(noise, max(2, k), confidence, weighted=True) for k in set(whole.tolist())}
    return np.array([float(known[k]) for k in whole.tolist()])
