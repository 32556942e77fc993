"""Questions in Python and SQL, over two verbs: whatever can answer and price an `Ask` is asked in these ways."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from tacit.errors import InvalidQuery
from tacit.model.answer import Answer, QuantileAnswer
from tacit.model.ask import (
    EVERYONE,
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Fraction,
    Histogram,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
    mean,
)
from tacit.model.budget import Budget, Loss
from tacit.model.clamped import clamped_ends
from tacit.model.domain import Domain
from tacit.model.expression import Expression
from tacit.model.query import Query
from tacit.model.statistic import Statistic, Unbound
from tacit.model.status import DryRun, Extension, Status
from tacit.model.table import Answers, CdfAnswer, Table
from tacit.model.values import Value
from tacit.model.workload import check

Askable = str | Expression | Query | Unbound | Statistic | Ask
Narrowed = str | Expression | Query | None
MAX_COMMIT = 10_000  # questions that share a commit
NOT_PLAIN = "a GROUP BY, and whatever is not a plain count, is asked by itself, with ask."


class Questions(ABC):
    """Everything that can be asked, each in its own method. Made of `answer` and `price` alone."""

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows, which is public."""

    @property
    @abstractmethod
    def confidence(self) -> float:
        """The confidence of the error bars."""

    @abstractmethod
    def status(self) -> Status:
        """How the budget stands, and how it is spent."""

    @property
    def budget(self) -> Budget:
        """The budget as it is now: what the ledger was made with, or what the owner last raised it to."""
        return self.status().budget

    @property
    def total(self) -> Loss:
        """What the budget amounts to, as it is now."""
        return self.status().total

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The owner's decisions to raise the budget, in order."""
        return self.status().extensions

    @property
    def spent(self) -> Loss:
        """What is spent for good, by everybody. The same amount as an epsilon: `epsilon_spent`."""
        return self.status().spent

    @property
    def left(self) -> Loss:
        return self.status().left

    @property
    def epsilon_spent(self) -> float:
        """The epsilon that everything released so far amounts to, at the budget's delta."""
        return self.status().epsilon_spent

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    @abstractmethod
    def answer(self, ask: Ask, *, within: float | None = None) -> Answers:
        """Answer a question, whichever way it was put together: see `tacit.model.ask`. `within`: as in `ask`."""

    @abstractmethod
    def answer_many(self, asks: Sequence[Ask]) -> list[Answers]:
        """Answer several questions. All are checked before any is asked, and what they ask shares commits."""

    @abstractmethod
    def price(self, ask: Ask, *, within: float | None = None) -> DryRun:
        """Whether a question's answer is known already, the most it could cost now, and why. Spends nothing."""

    def question(self, question: Askable) -> Ask:
        """The question that SQL text or an expression asks; everything that can be refused without data is refused."""
        if isinstance(question, str):
            from tacit.model import sql

            return sql.parse(question, self.domain)
        notes: tuple[str, ...] = ()
        if isinstance(question, Expression | Unbound):
            condition, question = question, question.bind(self.domain)
            notes = clamped_ends(condition, self.domain) if isinstance(condition, Expression) else ()
        if isinstance(question, Query | Statistic):
            check(question, self.domain)
            return Count(question, notes) if isinstance(question, Query) else Stat(question)
        if isinstance(question, Ask):
            return question
        raise InvalidQuery(f"a question is SQL text or made with tacit.count, not {type(question).__name__}.")

    def ask(self, question: Askable, *, within: float | None = None) -> Answers:
        """Answer one question: SQL, `tacit.count(...)`, or a statistic. A GROUP BY gives a table.

        A statement gives what the method of the same name does: `fraction`, `sum`, `mean`, `variance`, `quantile`,
        `table`. Several values, an order or a limit give a `Listing`.

        within: for a count, a sum, or a fraction or mean of all rows: the half width that the answer shall have at
            most, in its own unit, at the session's confidence. If it is not known as well as that, it is bought by
            itself, fresh; `dry_run` says the price. An answer that was given before stays what plain questions get,
            with a note that a sharper one was bought.

        >>> session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
        """
        return self.answer(self.question(question), within=within)

    def ask_many(self, questions: Sequence[Askable]) -> list[Answer]:
        """Answer a batch of questions (no GROUP BY). All are checked before any is asked, and they share commits.

        More than 10,000 are answered in parts of that many, one part after the other.
        """
        asks = [self._plain(question) for question in batch_of(questions)]
        parts = (asks[start : start + MAX_COMMIT] for start in range(0, len(asks), MAX_COMMIT))
        return [number_of(answer) for part in parts for answer in self.answer_many(part)]

    def dry_run(self, question: Askable, *, within: float | None = None) -> DryRun:
        """Whether a question's answer is known already, the most it could cost now, and why. Spends nothing."""
        return self.price(self.question(question), within=within)

    def cost_at_most(self, question: Askable) -> Loss:
        """The most that a question could cost if it were asked now. Spends nothing."""
        return self.dry_run(question).cost_at_most

    def table(self, *names: str, where: Narrowed = None) -> Table:
        """The counts of all combinations of these attributes' values: a marginal, or GROUP BY table."""
        return _table(self.answer(Crosstab(self.domain, names, self._rows(where))))

    def fraction(self, where: Narrowed, given: Narrowed = None) -> Answer:
        """The share of all rows, or of those that meet `given`, that meet `where`."""
        return number_of(self.answer(Fraction(self._rows(where), self._rows(given))))

    def sum(self, name: str, where: Narrowed = None) -> Answer:
        """The sum of a numeric attribute; a value counts as the middle of its bin."""
        return number_of(self.answer(Sum(self.domain, name, self._rows(where))))

    def mean(self, name: str, where: Narrowed = None, *, share: float | None = None) -> Answer:
        """The mean of a numeric attribute's values that lie in bins. Bought like `cdf`.

        Among the rows of `where` it is the ratio of two questions, which are asked like any others.
        """
        return number_of(self.answer(mean(self.domain, name, self._rows(where), share)))

    def variance(self, name: str, where: Narrowed = None, *, sample: bool = True) -> Answer:
        """The variance of a numeric attribute: of a sample, divided by n - 1, or of the population."""
        return number_of(self.answer(Variance(self.domain, name, self._rows(where), sample)))

    def stddev(self, name: str, where: Narrowed = None, *, sample: bool = True) -> Answer:
        """The standard deviation of a numeric attribute: the root of `variance`."""
        return number_of(self.answer(Variance(self.domain, name, self._rows(where), sample, root=True)))

    def covariance(self, name: str, other: str, where: Narrowed = None, *, sample: bool = True) -> Answer:
        """The covariance of two numeric attributes, of the rows where both have a value."""
        return number_of(self.answer(Covariance(self.domain, (name, other), self._rows(where), sample)))

    def correlation(self, name: str, other: str, where: Narrowed = None) -> Answer:
        """The correlation of two numeric attributes, from -1 to 1, of the rows where both have a value."""
        asked = Covariance(self.domain, (name, other), self._rows(where), sample=False, correlation=True)
        return number_of(self.answer(asked))

    def quantile(
        self, name: str, quantile: float, where: Narrowed = None, *, share: float | None = None
    ) -> QuantileAnswer:
        """The bin that holds a quantile, 0.5 for the median, with its confidence interval. Bought like `cdf`.

        Among the rows of `where` it comes from their table of the attribute, which is asked like any other question.
        """
        found = self.answer(Quantile(self.domain, name, quantile, self._rows(where), share))
        assert isinstance(found, QuantileAnswer)
        return found

    def cdf(self, name: str, *, share: float | None = None, strategy: str | None = None) -> CdfAnswer:
        """The cumulative counts of an ordered attribute, with a band that holds for all of them at once.

        It is answered from what is already bought. Where nothing tells it, or a `share` of the budget is named, one
        release of all ranges of the attribute is bought, and everything about them is free from then on, whatever share
        is named: `cdf`, `quantile`, `range`, `histogram` and `mean`. Without a share, what was told first stays.

        strategy: what the release measures, instead of what is best: "cells", "binary tree", "4-ary tree", "16-ary
            tree", "two levels", "square root" or "circle": the ladder that docs/understand/seeds.md climbs.
        """
        found = self.answer(Cdf(self.domain, name, share, strategy))
        assert isinstance(found, CdfAnswer)
        return found

    def range(self, name: str, low: Value, high: Value, *, share: float | None = None) -> Answer:
        """How many rows lie between two ends of whole bins, both included for whole numbers. Bought like `cdf`."""
        return self.rectangle({name: (low, high)}, share=share)

    def rectangle(self, ends: Mapping[str, tuple[Value, Value]], *, share: float | None = None) -> Answer:
        """How many rows lie in a range of two attributes at once: {"age": (20, 39), "income": (0, 50_000)}.

        Where a release of all rectangles of the two is bought, it answers every other one too.
        """
        return number_of(self.answer(Range.between(self.domain, ends, share)))

    def histogram(self, name: str, *, width: float | None = None, share: float | None = None) -> Table:
        """The counts of an ordered attribute's bins, or of wider ones; they add up. Bought like `cdf`."""
        return _table(self.answer(Histogram(self.domain, name, width, share)))

    def _plain(self, question: Askable) -> Count | Stat:
        """A question that has one number for an answer: a count or a statistic."""
        ask = self.question(question)
        if isinstance(ask, Count | Stat):
            return ask
        if isinstance(ask, Select) and ask.notes and not ask.groups and isinstance(ask.columns[0].value, Count):
            raise InvalidQuery("ROUND is asked by itself, with ask, whose answer says what was rounded.")
        raise InvalidQuery(NOT_PLAIN)

    def _rows(self, where: Narrowed) -> Query:
        """The query of a condition on rows: an expression, or SQL's words after WHERE. Everyone without one."""
        if where is None:
            return EVERYONE
        if isinstance(where, str):
            from tacit.model import sql

            ask = self._plain(sql.parse_where(where, self.domain))
        else:
            ask = self._plain(where)
        if not isinstance(ask, Count):
            raise InvalidQuery("rows are chosen by conditions, not by statistics.")
        return ask.query


def batch_of(questions: Sequence[Askable]) -> Sequence[Askable]:
    """The questions of a batch; refuses what is no batch."""
    if isinstance(questions, str | Expression | Query | Unbound) or not isinstance(questions, Sequence):
        raise InvalidQuery("ask_many takes a list of questions.")
    if not questions:
        raise InvalidQuery("a batch has at least one question.")
    return questions


def number_of(answer: Answers) -> Answer:
    assert isinstance(answer, Answer)
    return answer


def _table(answer: Answers) -> Table:
    assert isinstance(answer, Table)
    return answer
