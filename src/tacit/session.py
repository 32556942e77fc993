"""What the owner opens and the analyst talks to: one table, one domain, one budget, any number of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from tacit.errors import ConfigError, InvalidQuery, TacitError
from tacit.model import sql
from tacit.model.answer import Answer, Receipt, Table
from tacit.model.budget import Budget, Loss
from tacit.model.describe import describe
from tacit.model.domain import Domain
from tacit.model.expression import Expression
from tacit.model.query import Query
from tacit.model.workload import Marginal, marginal
from tacit.release.dense import Dense
from tacit.release.direct import Direct
from tacit.release.estimate import Estimate, Mechanism
from tacit.release.histogram import Histogram
from tacit.release.iterative import iterative
from tacit.release.multiplicative_weights import MultiplicativeWeights
from tacit.release.offline import Candidate, Constructed, Distinguisher, construct
from tacit.trusted.accountant import epsilon_spent
from tacit.trusted.anchor import Anchor
from tacit.trusted.curator import MAX_ANSWERS, Curator, own
from tacit.trusted.ledger import Binding, Ledger
from tacit.trusted.loss import total
from tacit.trusted.records import Records

MECHANISMS = ("auto", "direct", "histogram", "iterative")
MAX_BATCH = 10_000


@dataclass(frozen=True)
class Choice:
    """The mechanism of a session, and why: from public parameters alone."""

    mechanism: str
    reason: str


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
    def history(self) -> list[Past]:
        """Everything bought so far, oldest first."""
        words = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "gate": "a hard question found"}
        return [
            Past(words[kind] + describe(question, self.domain) if question else words["gate"], cost, receipt)
            for kind, question, cost, receipt in self._curator.purchases()
        ]

    def ask(self, question: str | Expression | Query) -> Answer | Table:
        """Answer one question: SQL, or `tacit.count(...)`. A GROUP BY gives a table.

        >>> session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
        """
        names, query = self._read(question)
        return self._table(names, query) if names else self.ask_many([query])[0]

    def ask_many(self, questions: Sequence[str | Expression | Query]) -> list[Answer]:
        """Answer a batch of questions (no GROUP BY). All are checked before any is asked, and they share commits."""
        if isinstance(questions, str | Expression | Query) or not isinstance(questions, Sequence):
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
        condition = Query.constant(everyone=True) if where is None else self._bind(where)
        return self._table(names, condition)

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
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise InvalidQuery(f"share is a fraction of the budget, above 0 and at most 1, not {share!r}.")
        if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= 10_000:
            raise InvalidQuery(f"rounds is a whole number from 1 to 10,000, not {rounds!r}.")
        if not isinstance(alpha, float) or not 0 < alpha <= 1:
            raise InvalidQuery(f"alpha is a fraction of the rows, above 0 and at most 1, not {alpha!r}.")
        candidates: list[Candidate] = [
            marginal(self.domain, *item) if isinstance(item, list | tuple) else self._bind(item)  # type: ignore[arg-type]
            for item in workload
        ]
        loss = Loss(self.total.measure, int(self.total.atoms * share))
        rule = MultiplicativeWeights(self.domain, alpha, tolerance=alpha / 2)
        with self._honest():
            return construct(
                self._curator, candidates, rule, rounds=rounds, loss=loss, alpha=alpha, distinguisher=distinguisher
            )

    def cost_at_most(self, question: str | Expression | Query) -> Loss:
        """The most that a question could cost if it were asked now. Spends nothing."""
        names, query = self._read(question)
        asked: Query | Marginal = marginal(self.domain, *names, where=query) if names else query.core
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

    @property
    def _free(self) -> Loss:
        return Loss(self.total.measure, 0)

    def _read(self, question: str | Expression | Query) -> tuple[tuple[str, ...], Query]:
        """The attributes a question groups by, and the rows it is about."""
        if isinstance(question, str):
            select = sql.parse(question, self.domain)
            return select.group, select.where.bind(self.domain)
        if isinstance(question, Expression):
            return (), question.bind(self.domain)
        if not isinstance(question, Query):
            raise InvalidQuery(f"a question is SQL text or made with tacit.count, not {type(question).__name__}.")
        copy = own(question, self.domain)
        assert isinstance(copy, Query)
        return (), copy

    def _bind(self, question: str | Expression | Query) -> Query:
        names, query = self._read(question)
        if names:
            raise InvalidQuery("a GROUP BY is asked by itself, with ask or table.")
        return query

    def _answer(self, query: Query, estimate: Estimate | None) -> Answer:
        text = describe(query, self.domain)
        if estimate is None:  # a constant: every row has the same weight
            value = _count(query.table((), ()).item() * self.rows, query.unit)
            return Answer(text, value, 0, self.confidence, "public", self._free, None)
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


def open_session(
    *,
    data: Any,
    domain: Domain | str | Path,
    budget: Budget,
    ledger: str | Path,
    table: str | None = None,
    mechanism: str = "auto",
    questions: int = 100,
    hits: int = 200,
    halt: bool = False,
    confidence: float = 0.95,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
) -> Session:
    """Open a table for private questions. The ledger is made on the first call and continued ever after.

    data: a CSV, Parquet or DuckDB file, a SELECT over files, a DataFrame, an Arrow table, a DuckDB relation, a Spark
        DataFrame or a postgresql:// URL (with `table`).
    domain: what may be asked about: a `Domain`, or the path of its TOML form.
    budget: the one (epsilon, delta) that all answers together stay within.
    ledger: the SQLite file that records every charge and answer. The owner's secret, like the data.
    mechanism: "direct" (fresh noise for every new question), "histogram" (one noisy histogram of the whole domain, for
        small domains), "iterative" (free answers from a hypothesis, which learns from the questions it gets wrong), or
        "auto", which chooses between the first two from the public sizes.
    questions: how many new questions the budget is shared among ("direct"), or are expected ("iterative").
    hits: how many hard answers the budget is shared among, for "iterative".
    halt: for "iterative", refuse after the last hard answer instead of going on without a guarantee.
    anchor: where the newest state of the ledger is remembered, so that restoring an old copy is noticed.
    accept_rollback: the owner's reason to go on with an older copy; recorded in the ledger.
    """
    if not isinstance(domain, Domain):
        domain = Domain.from_toml(_read_text(Path(domain)))
    if not isinstance(budget, Budget):
        raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
    for name, given in (("questions", questions), ("hits", hits)):
        if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= 10**9:
            raise ConfigError(f"{name} is a whole number from 1 to 1,000,000,000, not {given!r}.")
    if not isinstance(confidence, float) or not 0.5 <= confidence <= 1 - 1e-9:
        raise ConfigError(f"confidence is a number from 0.5 to 0.999999999, not {confidence!r}.")
    choice = choose(mechanism, domain, budget, questions)
    records = Records.load(data, domain, table)
    binding: Binding = {
        "domain": domain.key,
        "data": records.fingerprint,
        "mechanism": choice.mechanism,
        "questions": "any number" if choice.mechanism == "histogram" else str(questions),
        "hits": str(hits) if choice.mechanism == "iterative" else "none",
        # free answers are kept with their error bars, so these must go on meaning the same
        "confidence": str(confidence) if choice.mechanism == "iterative" else "any",
    }
    book = _open_ledger(
        Path(ledger), budget, binding, Anchor(None if anchor is None else Path(anchor)), accept_rollback
    )
    curator = Curator(records, book)
    made: Mechanism
    if choice.mechanism == "direct":
        made = Direct(curator, questions=questions, confidence=confidence)
    elif choice.mechanism == "iterative":
        made = iterative(curator, questions=questions, hits=hits, confidence=confidence, halt=halt)
    else:
        made = Histogram(curator, confidence=confidence)
    return Session(curator, book, budget, choice, made, confidence)


def choose(mechanism: str, domain: Domain, budget: Budget, questions: int) -> Choice:
    """The mechanism for these public parameters.

    A query over half of the domain has variance |X|/2 times a cell's in a noisy histogram, and a fresh answer out of k
    has k² (pure) or k (zCDP) times the variance that the whole budget would buy for one. So the histogram is better up
    to |X| = k²/2 cells under pure privacy (8/epsilon² each, against 2 k²/epsilon²) and |X| = k under zCDP (1/rho each,
    against k/(2 rho)).
    """
    if mechanism not in MECHANISMS:
        raise ConfigError(f"mechanism is one of {', '.join(MECHANISMS)}, not {mechanism!r}.")
    limit = min(MAX_ANSWERS, questions * questions // 2 if budget.delta == 0 else questions)
    if mechanism == "histogram" and domain.size > MAX_ANSWERS:
        raise ConfigError(f"a histogram takes at most {MAX_ANSWERS:,} cells; the domain has {domain.size:,}.")
    if mechanism != "auto":
        return Choice(mechanism, "asked for")
    best = "histogram" if domain.size <= limit else "direct"
    side = "at most" if best == "histogram" else "more than"
    return Choice(best, f"{domain.size:,} cells are {side} the {limit:,} up to which one histogram is better")


def _open_ledger(path: Path, budget: Budget, binding: Binding, anchor: Anchor, accept_rollback: str | None) -> Ledger:
    return Ledger.open_or_create(
        path, budget=budget, total=total(budget), binding=binding, anchor=anchor, accept_rollback=accept_rollback
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path.name} cannot be read as a text file.") from None
