"""What the owner opens and the analyst talks to: one table, one domain, one budget, any number of questions."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from tacit.errors import InvalidQuery, TacitError
from tacit.model import sql
from tacit.model.answer import Answer, Measured, Receipt, Table, Told
from tacit.model.budget import Budget, Loss
from tacit.model.describe import describe, describe_many
from tacit.model.distribution_answer import CdfAnswer, QuantileAnswer
from tacit.model.domain import Domain
from tacit.model.expression import Expression, count
from tacit.model.listing import Listing
from tacit.model.query import Query
from tacit.model.statement import words
from tacit.model.statistic import Statistic, Unbound
from tacit.model.values import Value
from tacit.model.workload import marginal
from tacit.release import composed, statements
from tacit.release.composer import Composer
from tacit.release.direct import Direct
from tacit.release.estimate import Estimate, Mechanism
from tacit.release.histogram import Histogram
from tacit.release.hypothesis.dense import Dense
from tacit.release.offline import Candidate, Constructed, Distinguisher, construct
from tacit.release.online import Knowledge, Online
from tacit.release.ranges import Ranges
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights
from tacit.release.statements import DryRun as DryRun  # what `dry_run` gives: for those who import it from here
from tacit.release.statements import Method as Method
from tacit.release.synthetic import Synthetic
from tacit.trusted.accountant import epsilon_spent
from tacit.trusted.curator import MAX_ANSWERS, Curator, own
from tacit.trusted.ledger import Entry, Ledger

if TYPE_CHECKING:
    from tacit.release.median import Sampling

Asked = str | Expression | Query | Unbound | Statistic
Where = str | Expression | Query | None
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
    halt: bool = False
    sampling: Sampling | None = None


@dataclass(frozen=True)
class Past:
    """One line of the history: a question in words, what it cost, its receipt, and what was bought.

    `kind` is "measured" (an answer), "choice" (one of several candidates), "compared" (whether a guess is far off) or
    "gate" (a hard question found).
    """

    question: str
    cost: Loss
    receipt: Receipt
    kind: str


class Session:
    """Answers questions about one table under one budget. Made by `tacit.open`; closes with `close()` or `with`."""

    def __init__(
        self, curator: Curator, ledger: Ledger, budget: Budget, choice: Choice, mechanism: Mechanism, confidence: float
    ) -> None:
        self._curator, self._ledger, self._mechanism = curator, ledger, mechanism
        self._budget, self._choice, self._confidence = budget, choice, confidence
        self._ranges = Ranges(curator, confidence, mechanism.flat if isinstance(mechanism, Histogram) else None)
        fresh = isinstance(mechanism, Direct)
        self._composer = Composer(curator, confidence, self.ask_many, self._table, fresh=fresh)

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
    def rows_per_person(self) -> int:
        """How many rows of one person are protected together: 1 unless the owner declared more."""
        return self._curator.rows_per_person

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
            Past(words[kind] + describe(question, self.domain) if question else words["gate"], cost, receipt, kind)
            for kind, question, cost, receipt in self._curator.purchases()
        ]

    def answers(self) -> Iterator[Measured | Told]:
        """Every answer in the ledger, oldest first: noisy ones that were bought, and those told for nothing."""
        return self._curator.answers()

    @property
    def entries(self) -> int:
        """The number of the ledger's newest entry."""
        return self._curator.entries

    def bought(self, after: int) -> list[tuple[str | None, int]]:
        """The keys and costs, in atoms, of what was bought since entry `after`, in order."""
        return [(entry.key, entry.atoms) for entry in self._ledger.bought(after)]

    def transcript(self) -> tuple[str, list[Entry]]:
        """Everything released so far, sealed: the hash that the ledger's chain starts from, and its entries."""
        with self._curator.turn():  # no question is half way between its charge and its answer
            return self._ledger.snapshot()

    def ask(self, question: Asked) -> Answer | Table | QuantileAnswer | Listing:
        """Answer one question: SQL, `tacit.count(...)`, or a statistic. A GROUP BY gives a table.

        A statement gives what the method of the same name does: `fraction`, `sum`, `mean`, `quantile`, `table`. Several
        values, an order or a limit give a `Listing`.

        >>> session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
        """
        if isinstance(question, str):
            with self._honest():
                return statements.answer(sql.parse(question, self.domain), self, self._composer)
        return self.ask_many([self._bind(question)])[0]

    def ask_many(self, questions: Sequence[Asked]) -> list[Answer]:
        """Answer a batch of questions (no GROUP BY). All are checked before any is asked, and they share commits."""
        if isinstance(questions, str | Expression | Query | Unbound) or not isinstance(questions, Sequence):
            raise InvalidQuery("ask_many takes a list of questions.")
        if not 1 <= len(questions) <= MAX_BATCH:
            raise InvalidQuery(f"a batch has 1 to {MAX_BATCH:,} questions; this one has {len(questions):,}.")
        with _no_collection():
            return self._ask_many(questions)

    def _ask_many(self, questions: Sequence[Asked]) -> list[Answer]:
        queries = [self._bind(question) for question in questions]
        asked = list({query: None for query in queries if not query.is_constant})
        with self._honest(), self._curator.turn():
            before = dict(zip(asked, self._curator.find([query.core for query in asked]), strict=True))
            new = [query for query, measured in before.items() if measured is None]
            estimates = dict(zip(new, self._mechanism.estimate(new), strict=True)) if new else {}
        for query, measured in before.items():
            if measured is not None:
                estimates[query] = self._mechanism.recall(query, measured)
        answers, texts = [], describe_many(queries, self.domain)
        given: set[Query | Statistic] = set()
        for text, query in zip(texts, queries, strict=True):
            estimate = estimates.get(query)
            if estimate is not None and query in given:  # the same question again in this batch
                estimate = replace(estimate, source="repeat", cost=self._free)
            given.add(query)
            answers.append(self._answer(text, query, estimate))
        return answers

    def table(self, *names: str, where: Where = None) -> Table:
        """The counts of all combinations of these attributes' values: a marginal, or GROUP BY table."""
        return self._table(names, Query.constant(everyone=True) if where is None else self._linear(where))

    def cdf(self, name: str, *, share: float = RANGE_SHARE) -> CdfAnswer:
        """The cumulative counts of an ordered attribute, with a band that holds for all of them at once.

        The first question about the ranges of an attribute buys one release for `share` of the whole budget. Everything
        about them is free from then on, whatever share is named: `cdf`, `quantile`, `range`, `histogram` and `mean`.
        """
        with self._honest():
            return self._ranges.cdf(name, self._part(share))

    def quantile(
        self, name: str, quantile: float, where: Where = None, *, share: float = RANGE_SHARE
    ) -> QuantileAnswer:
        """The bin that holds a quantile, 0.5 for the median, with its confidence interval. Bought like `cdf`.

        Among the rows of `where` it comes from their table of the attribute, which is asked like any other question.
        """
        chosen = self._rows_of(where)
        with self._honest():
            if statements.from_ranges("quantile", name, chosen, self.domain):
                return self._ranges.quantile(name, quantile, self._part(share))
            return self._composer.quantile_answer(name, quantile, chosen)

    def fraction(self, where: Where, given: Where = None) -> Answer:
        """The share of all rows, or of those that meet `given`, that meet `where`."""
        among = self._rows_of(given)
        some = Query.all([self._rows_of(where), among])
        return self._compose(words("fraction", some, self.domain, given=among), composed.fraction(some, among))

    def sum(self, name: str, where: Where = None) -> Answer:
        """The sum of a numeric attribute; a value counts as the middle of its bin."""
        chosen, name = self._rows_of(where), self.domain.resolve(name)
        plan = composed.total(self.domain, self.rows, name, chosen)
        return self._compose(words("sum", chosen, self.domain, name), plan)

    def range(self, name: str, low: Value, high: Value, *, share: float = RANGE_SHARE) -> Answer:
        """How many rows lie between two ends of whole bins, both included for whole numbers. Bought like `cdf`."""
        return self.rectangle({name: (low, high)}, share=share)

    def rectangle(self, ends: Mapping[str, tuple[Value, Value]], *, share: float = RANGE_SHARE) -> Answer:
        """The same for a range in two attributes at once: {"age": (20, 39), "income": (0, 50_000)}.

        The first question about a pair buys one release for all rectangles of the two.
        """
        query = self._range_of(ends)
        with self._honest():
            return self._ranges.range(query, self._part(share))

    def histogram(self, name: str, *, width: float | None = None, share: float = RANGE_SHARE) -> Table:
        """The counts of an ordered attribute's bins, or of wider ones; they add up. Bought like `cdf`."""
        with self._honest():
            return self._ranges.histogram(name, width, self._part(share))

    def mean(self, name: str, where: Where = None, *, share: float = RANGE_SHARE) -> Answer:
        """The mean of a numeric attribute's values that lie in bins. Bought like `cdf`.

        Among the rows of `where` it is the ratio of two questions, which are asked like any others.
        """
        chosen, name = self._rows_of(where), self.domain.resolve(name)
        if self.domain[name].kind == "boolean":
            return self.fraction(*statements.whether(self.domain, name, chosen))
        if not statements.from_ranges("mean", name, chosen, self.domain):
            return self._compose(words("mean", chosen, self.domain, name), composed.mean(self.domain, name, chosen))
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
            released = list(self._curator.released())
        return Synthetic.of(self.domain, codes, self.rows, released)

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
        return self.dry_run(question).cost_at_most

    def dry_run(self, question: Asked) -> DryRun:
        """Whether a question's answer is known already, the most it could cost now, and why. Spends nothing."""
        if isinstance(question, str):
            needs = statements.needs(sql.parse(question, self.domain), self, self._composer)
        else:
            needs = [self._bind(question)]
        return self._foreseen(needs, RANGE_SHARE)

    def foresee(
        self, method: Method, *names: str, where: Where = None, given: Where = None, share: float = RANGE_SHARE
    ) -> DryRun:
        """`dry_run` for one of the methods, by its name and with what it takes. Spends nothing.

        >>> session.foresee("quantile", "age", where="sex = 'F'")   # doctest: +SKIP
        """
        chosen = self._linear(where) if method == "table" and where is not None else self._rows_of(where)
        needs = statements.needs_of(method, names, chosen, self._rows_of(given), self, self._composer)
        return self._foreseen(needs, share)

    def foresee_rectangle(self, ends: Mapping[str, tuple[Value, Value]], *, share: float = RANGE_SHARE) -> DryRun:
        """`dry_run` for `rectangle` and `range`. Spends nothing."""
        query = self._range_of(ends)
        self._ranges.sides(query)
        names = query.scope
        return self._foreseen([names[0] if len(names) == 1 else (names[0], names[1])], share)

    def free(self) -> AbstractContextManager[None]:
        """While this lasts, what this thread asks is answered if it is known, and else refused with `WouldSpend`.

        Whatever a dry run says: the ledger takes nothing from this thread, so nothing can be spent.
        """
        return self._ledger.read_only()

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

    def _repr_html_(self) -> str:
        from tacit.show.chart import Gauge

        unit = self.total.measure
        return Gauge(repr(self), [("spent", float(self.spent))], float(self.total), unit).svg()

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

    def _foreseen(self, needs: Sequence[statements.Need], share: float) -> DryRun:
        return statements.dry_run(needs, self._curator, self._mechanism, self._ranges, self._part(share))

    def _range_of(self, ends: Mapping[str, tuple[Value, Value]]) -> Query:
        if not isinstance(ends, Mapping) or not 1 <= len(ends) <= 2 or not all(isinstance(n, str) for n in ends):
            raise InvalidQuery('a rectangle has two ends for each of one or two attributes, like {"age": (20, 39)}.')
        query = count(**ends).bind(self.domain)
        if query.is_constant:
            what = "all there is, so its count follows from the number of rows" if query.is_everyone else "empty"
            raise InvalidQuery(f"the range is {what}.")
        return query

    @property
    def _free(self) -> Loss:
        return Loss(self.total.measure, 0)

    def _bind(self, question: Asked) -> Query | Statistic:
        """A question that has one number for an answer: a count or a statistic."""
        if isinstance(question, str):
            select = sql.parse(question, self.domain)
            if not select.is_count:
                raise InvalidQuery("a GROUP BY, and whatever is not a plain count, is asked by itself, with ask.")
            if select.notes:
                raise InvalidQuery("ROUND is asked by itself, with ask, whose answer says what was rounded.")
            return select.where.bind(self.domain)
        if isinstance(question, Expression | Unbound):
            question = question.bind(self.domain)
        if not isinstance(question, Query | Statistic):
            raise InvalidQuery(f"a question is SQL text or made with tacit.count, not {type(question).__name__}.")
        copy = own(question, self.domain)
        assert isinstance(copy, Query | Statistic)
        return copy

    def _linear(self, question: Asked) -> Query:
        query = self._bind(question)
        if not isinstance(query, Query):
            raise InvalidQuery("rows are chosen by conditions, and constructions learn from counts: not by statistics.")
        return query

    def _rows_of(self, where: Where) -> Query:
        """The rows that a condition chooses; all of them without one."""
        query = Query.constant(everyone=True) if where is None else self._linear(where)
        if query.unit > 1:
            raise InvalidQuery("rows are chosen by conditions, not by weights.")
        return query

    def _compose(self, text: str, plan: composed.Plan) -> Answer:
        with self._honest():
            found = self._composer.answer(plan)
        about = found.facts
        told = (found.confidence, about.source, about.cost, about.receipt, about.note)
        return Answer(text, found.values[0], found.errors[0], *told)

    def _answer(self, text: str, query: Query | Statistic, estimate: Estimate | None) -> Answer:
        if estimate is None and isinstance(query, Query):  # a constant: every row has the same weight
            value = _count(query.table((), ()).item() * self.rows, query.unit)
            return Answer(text, value, 0, self.confidence, "public", self._free, None)
        assert estimate is not None
        value = _count(estimate.value, query.unit)
        error = None if estimate.half_width is None else _count(estimate.half_width, query.unit)
        source, cost = estimate.source, estimate.cost
        more = (None if figure is None else _count(figure, query.unit) for figure in (estimate.alone, estimate.likely))
        return Answer(text, value, error, self.confidence, source, cost, estimate.receipt, estimate.note, *more)

    def _table(self, names: Sequence[str], where: Query) -> Table:
        names = tuple(self.domain.resolve(name) for name in names)
        question = marginal(self.domain, *names, where=where)
        labels = tuple(tuple(self.domain[n].label(i) for i in range(self.domain[n].size)) for n in names)
        if question.size(self.domain) == 1:  # one cell: the same question as its condition
            one = self.ask_many([where])[0]
            cell = np.full((1,) * len(names), float(one.value))
            about = describe(question, self.domain)
            told = (one.error, one.confidence, one.source, one.cost, one.receipt, one.note)
            return Table(about, names, labels, cell, *told, one.error_alone, one.likely_error)
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
            error_alone=None if estimate.alone is None else float(estimate.alone),
            likely_error=None if estimate.likely is None else float(estimate.likely),
        )


@contextmanager
def _no_collection() -> Iterator[None]:
    """A batch makes many small objects and no cycles: looking for some would be a third of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _count(steps: int, unit: int) -> float:
    return steps if unit == 1 else steps / unit
