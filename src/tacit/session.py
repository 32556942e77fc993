"""What the owner opens and the analyst talks to: one table, one domain, one budget, any number of questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import numpy as np

from tacit.errors import InvalidQuery, TacitError
from tacit.model import sql
from tacit.model.answer import Answer, Receipt, Table
from tacit.model.budget import Budget, Loss
from tacit.model.describe import describe
from tacit.model.distribution_answer import CdfAnswer, QuantileAnswer
from tacit.model.domain import Domain
from tacit.model.expression import Expression, count
from tacit.model.query import Query
from tacit.model.statistic import Statistic, Unbound
from tacit.model.values import Value
from tacit.model.workload import Marginal, marginal
from tacit.release.dense import Dense
from tacit.release.estimate import Estimate, Mechanism
from tacit.release.histogram import Histogram
from tacit.release.multiplicative_weights import MultiplicativeWeights
from tacit.release.offline import Candidate, Constructed, Distinguisher, construct
from tacit.release.online import Knowledge, Online
from tacit.release.ranges import Ranges
from tacit.release.synthetic import Synthetic
from tacit.trusted.accountant import epsilon_spent
from tacit.trusted.curator import MAX_ANSWERS, Curator, own
from tacit.trusted.ledger import Ledger

Asked = str | Expression | Query | Unbound | Statistic
MAX_BATCH = 10_000
RANGE_SHARE = 0.1  # of the budget, for all ranges of one attribute
MAX_SYNTHETIC = 10_000_000


@dataclass(frozen=True)
class Choice:
    """The mechanism of a session with its settings, and why: from public parameters alone."""

    mechanism: str
    reason: str
    questions: int
    hits: int = 200
    warm: float = 0.0


@dataclass(frozen=True)
class Past:
    """One line of the history: a question in words, what it cost, and its receipt."""

    question: str
    cost: Loss
    receipt: Receipt


class Session:
    """Answers questions about one table under one budget. Made by `tacit.open`; closes with `close()` or `with`."""

    def __init__(
        self, curator: Curator, ledger: Ledger, budget: Budget, choice: Choice, mechanism: Mechanism, confidence: float
    ) -> None:
        self._curator, self._ledger, self._mechanism = curator, ledger, mechanism
        self._budget, self._choice, self._confidence = budget, choice, confidence
        self._ranges = Ranges(curator, confidence, mechanism.flat if isinstance(mechanism, Histogram) else None)

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def choice(self) -> Choice:
        """The mechanism, and why."""
        return self._choice

    @property
    def confidence(self) -> float:
        """Of the error bars."""
        return self._confidence

    @property
    def domain(self) -> Domain:
        return self._curator.domain

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self._curator.rows

    @property
    def total(self) -> Loss:
        return self._curator.total

    @property
    def spent(self) -> Loss:
        """What is spent for good. The same amount as an epsilon: `epsilon_spent`."""
        return self._curator.spent

    @property
    def left(self) -> Loss:
        return self._curator.left

    @property
    def epsilon_spent(self) -> float:
        """The epsilon that everything released so far amounts to, at the budget's delta."""
        return epsilon_spent(self.spent, self.budget)

    @property
    def knowledge(self) -> Knowledge | None:
        """What is public so far, in the mechanisms that learn: the hypothesis, or the databases that vote."""
        return self._mechanism.knowledge if isinstance(self._mechanism, Online) else None

    @property
    def history(self) -> list[Past]:
        """Everything bought so far, oldest first."""
        words = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "gate": "a hard question found"}
        return [
            Past(words[kind] + describe(question, self.domain) if question else words["gate"], cost, receipt)
            for kind, question, cost, receipt in self._curator.purchases()
        ]

    def ask(self, question: Asked) -> Answer | Table:
        """Answer one question: SQL, `tacit.count(...)`, or a statistic. A GROUP BY gives a table.

        >>> session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
        """
        names, query = self._read(question)
        if names and isinstance(query, Query):
            return self._table(names, query)
        return self.ask_many([query])[0]

    def ask_many(self, questions: Sequence[Asked]) -> list[Answer]:
        """Answer a batch of questions (no GROUP BY). All are checked before any is asked, and they share commits."""
        if isinstance(questions, str | Expression | Query | Unbound) or not isinstance(questions, Sequence):
            raise InvalidQuery("ask_many takes a list of questions.")
        if not 1 <= len(questions) <= MAX_BATCH:
            raise InvalidQuery(f"a batch has 1 to {MAX_BATCH:,} questions; this one has {len(questions):,}.")
        queries = [self._bind(question) for question in questions]
        asked = list({query: None for query in queries if not query.is_constant})
        with self._honest(), self._curator.turn():
            before = dict(zip(asked, self._curator.find([query.core for query in asked]), strict=True))
            new = [query for query, measured in before.items() if measured is None]
            estimates = dict(zip(new, self._mechanism.estimate(new), strict=True)) if new else {}
        for query, measured in before.items():
            if measured is not None:
                estimates[query] = self._mechanism.recall(query, measured)
        answers = []
        for query in queries:
            answers.append(self._answer(query, estimates.get(query)))
            if query in estimates:  # the same question again in this batch
                estimates[query] = replace(estimates[query], source="repeat", cost=self._free)
        return answers

    def table(self, *names: str, where: str | Expression | Query | None = None) -> Table:
        """The counts of all combinations of these attributes' values: a marginal, or GROUP BY table."""
        return self._table(names, Query.constant(everyone=True) if where is None else self._linear(where))

    def cdf(self, name: str, *, share: float = RANGE_SHARE) -> CdfAnswer:
        """The cumulative counts of an ordered attribute, with a band that holds for all of them at once.

        The first question about the ranges of an attribute buys one release for `share` of the whole budget. Everything
        about them is free from then on, whatever share is named: `cdf`, `quantile`, `range`, `histogram` and `mean`.
        """
        with self._honest():
            return self._ranges.cdf(name, self._part(share))

    def quantile(self, name: str, quantile: float, *, share: float = RANGE_SHARE) -> QuantileAnswer:
        """The bin that holds a quantile, 0.5 for the median, with its confidence interval. Bought like `cdf`."""
        with self._honest():
            return self._ranges.quantile(name, quantile, self._part(share))

    def range(self, name: str, low: Value, high: Value, *, share: float = RANGE_SHARE) -> Answer:
        """How many rows lie between two ends of whole bins, both included for whole numbers. Bought like `cdf`."""
        return self.rectangle({name: (low, high)}, share=share)

    def rectangle(self, ends: Mapping[str, tuple[Value, Value]], *, share: float = RANGE_SHARE) -> Answer:
        """The same for a range in two attributes at once: {"age": (20, 39), "income": (0, 50_000)}.

        The first question about a pair buys one release for all rectangles of the two.
        """
        if not isinstance(ends, Mapping) or not 1 <= len(ends) <= 2 or not all(isinstance(n, str) for n in ends):
            raise InvalidQuery('a rectangle has two ends for each of one or two attributes, like {"age": (20, 39)}.')
        query = count(**ends).bind(self.domain)
        if query.is_constant:
            what = "all there is, so its count follows from the number of rows" if query.is_everyone else "empty"
            raise InvalidQuery(f"the range is {what}.")
        with self._honest():
            return self._ranges.range(query, self._part(share))

    def histogram(self, name: str, *, width: float | None = None, share: float = RANGE_SHARE) -> Table:
        """The counts of an ordered attribute's bins, or of wider ones; they add up. Bought like `cdf`."""
        with self._honest():
            return self._ranges.histogram(name, width, self._part(share))

    def mean(self, name: str, *, share: float = RANGE_SHARE) -> Answer:
        """The mean of an ordered attribute's values that lie in bins. Bought like `cdf`."""
        with self._honest():
            return self._ranges.mean(name, self._part(share))

    def synthetic(self, rows: int, *, seed: int = 0) -> Synthetic:
        """Made-up rows that look like what has been published so far. Costs nothing; the same seed, the same rows."""
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MAX_SYNTHETIC:
            raise InvalidQuery(f"rows is a whole number from 1 to {MAX_SYNTHETIC:,}, not {rows!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise InvalidQuery(f"seed is a whole number from 0, not {seed!r}.")
        with self._curator.turn():
            codes = self._mechanism.draw(rows, np.random.Generator(np.random.PCG64(seed)))
        return Synthetic.of(self.domain, codes)

    def release(
        self,
        workload: Sequence[str | Expression | Query | Sequence[str]],
        *,
        rounds: int,
        share: float,
        alpha: float = 0.01,
        distinguisher: Distinguisher = "exponential",
    ) -> Constructed[Dense]:
        """Learn a hypothesis that answers a whole workload, announced in advance: the offline construction.

        workload: questions, or tables as lists of attribute names: `[["age", "sex"], ["age", "income"]]`.
        rounds: how many candidates may be measured, at most.
        share: of the whole budget, that this may spend.
        alpha: stop when the worst candidate found is within 3/4 of this fraction of the rows.

        Asked again with the same words, the same hypothesis is rebuilt from the ledger for nothing.
        """
        if isinstance(workload, str | Expression | Query) or not isinstance(workload, Sequence) or not workload:
            raise InvalidQuery("a workload is a list of questions, or of tables given as lists of attribute names.")
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= 10_000:
            raise InvalidQuery(f"rounds is a whole number from 1 to 10,000, not {rounds!r}.")
        if not isinstance(alpha, float) or not 0 < alpha <= 1:
            raise InvalidQuery(f"alpha is a fraction of the rows, above 0 and at most 1, not {alpha!r}.")
        candidates: list[Candidate] = [
            marginal(self.domain, *item) if isinstance(item, list | tuple) else self._linear(item)  # type: ignore[arg-type]
            for item in workload
        ]
        loss = self._part(share)
        rule = MultiplicativeWeights(self.domain, alpha, tolerance=alpha / 2)
        with self._honest():
            return construct(
                self._curator, candidates, rule, rounds=rounds, loss=loss, alpha=alpha, distinguisher=distinguisher
            )

    def cost_at_most(self, question: Asked) -> Loss:
        """The most that a question could cost if it were asked now. Spends nothing."""
        names, query = self._read(question)
        asked: Query | Statistic | Marginal = query.core
        if names and isinstance(query, Query):
            asked = marginal(self.domain, *names, where=query)
        if not names and (query.is_constant or self._curator.find([asked])[0] is not None):
            return self._free
        if isinstance(asked, Marginal) and asked.size(self.domain) == 1:
            return self.cost_at_most(query)
        return self._mechanism.most(asked)

    def close(self) -> None:
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        sizes = f"{self.rows:,} rows, {self.domain.size:,} cells"
        return f"Session({sizes}, {self.choice.mechanism}; {self.left} left of {self.total})"

    @contextmanager
    def _honest(self) -> Iterator[None]:
        """An error says that nothing was spent only if nothing was, also when it comes in the middle of many steps."""
        before = self.spent
        try:
            yield
        except TacitError as error:
            try:
                moved = self.spent != before
            except TacitError:  # the ledger cannot be read any more
                moved = True
            if error.nothing_spent and moved:
                error.nothing_spent = False
                error.sentence += " What was paid for before that stays spent."
            raise

    def _part(self, share: float) -> Loss:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidQuery(f"share is a fraction of the budget, above 0 and at most 1, not {share!r}.")
        return Loss(self.total.measure, int(self.total.atoms * share))

    @property
    def _free(self) -> Loss:
        return Loss(self.total.measure, 0)

    def _read(self, question: Asked) -> tuple[tuple[str, ...], Query | Statistic]:
        """The attributes a question groups by, and the rows it is about; or a statistic."""
        if isinstance(question, str):
            select = sql.parse(question, self.domain)
            return select.group, select.where.bind(self.domain)
        if isinstance(question, Expression | Unbound):
            question = question.bind(self.domain)
        if not isinstance(question, Query | Statistic):
            raise InvalidQuery(f"a question is SQL text or made with tacit.count, not {type(question).__name__}.")
        copy = own(question, self.domain)
        assert isinstance(copy, Query | Statistic)
        return (), copy

    def _bind(self, question: Asked) -> Query | Statistic:
        names, query = self._read(question)
        if names:
            raise InvalidQuery("a GROUP BY is asked by itself, with ask or table.")
        return query

    def _linear(self, question: Asked) -> Query:
        query = self._bind(question)
        if not isinstance(query, Query):
            raise InvalidQuery("rows are chosen by conditions, and constructions learn from counts: not by statistics.")
        return query

    def _answer(self, query: Query | Statistic, estimate: Estimate | None) -> Answer:
        text = describe(query, self.domain)
        if estimate is None and isinstance(query, Query):  # a constant: every row has the same weight
            value = _count(query.table((), ()).item() * self.rows, query.unit)
            return Answer(text, value, 0, self.confidence, "public", self._free, None)
        assert estimate is not None
        value = _count(estimate.value, query.unit)
        error = None if estimate.half_width is None else _count(estimate.half_width, query.unit)
        source, cost = estimate.source, estimate.cost
        return Answer(text, value, error, self.confidence, source, cost, estimate.receipt, estimate.note)

    def _table(self, names: Sequence[str], where: Query) -> Table:
        names = tuple(self.domain.resolve(name) for name in names)
        question = marginal(self.domain, *names, where=where)
        labels = tuple(tuple(self.domain[n].label(i) for i in range(self.domain[n].size)) for n in names)
        if question.size(self.domain) == 1:  # one cell: the same question as its condition
            one = self.ask_many([where])[0]
            cell = np.full((1,) * len(names), float(one.value))
            about = describe(question, self.domain)
            told = (one.error, one.confidence, one.source, one.cost, one.receipt, one.note)
            return Table(about, names, labels, cell, *told)
        if question.size(self.domain) > MAX_ANSWERS:
            raise InvalidQuery(
                f"the table would have {question.size(self.domain):,} cells; the most is {MAX_ANSWERS:,}."
            )
        with self._honest(), self._curator.turn():
            estimate = self._mechanism.table(question)
        values = estimate.values.transpose([question.names.index(name) for name in names])
        return Table(
            question=describe(question, self.domain),
            names=names,
            labels=labels,
            values=np.ascontiguousarray(values),
            error=None if estimate.half_width is None else float(estimate.half_width),
            confidence=self.confidence,
            source=estimate.source,
            cost=estimate.cost,
            receipt=estimate.receipt,
            note=estimate.note,
        )


def _count(steps: int, unit: int) -> float:
    return steps if unit == 1 else steps / unit
