"""The ways to answer that are compared, each opened on a table with a budget. For benchmarks and their tests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.fresh import Fresh, Law
from benchmarks.accuracy.noisy_tables import pairs_alone, released
from benchmarks.accuracy.tables import Table
from benchmarks.accuracy.textbook import TextbookWeights
from tacit.model.budget import Budget, Loss
from tacit.model.query import Query
from tacit.opening import doors, open_session
from tacit.release import warm_start as warm
from tacit.release.hypothesis.dense import Dense
from tacit.session import Session
from tacit.store.anchor import Anchor
from tacit.trusted.ledger import Ledger
from tacit.trusted.loss import total

HITS = 200  # hard answers of those that start knowing nothing


class Asked(Protocol):
    """Something that answers, in rows; `hard` is how many answers were bought, where that is a choice."""

    hard: int | None

    def ask(self, queries: Sequence[Query]) -> NDArray[np.float64]: ...


Open = Callable[[Table, Budget, int], AbstractContextManager[Asked]]


@dataclass(frozen=True)
class Way:
    """A mechanism: `open(table, budget, questions)` gives something to ask."""

    name: str
    open: Open
    runs: int = 3
    slow: bool = False
    tried: bool = False  # whether what it needs is found by trying


class _Sessions:
    """A session of Tacit's own, ledger and all."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.hard: int | None = 0

    def ask(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        answers = self._session.ask_many(list(queries))
        self.hard = (self.hard or 0) + sum(answer.source == "measured" for answer in answers)
        return np.array([answer.value for answer in answers], dtype=np.float64)


class _Hypothesis:
    """A distribution over X that has been published."""

    def __init__(self, hypothesis: Dense, rows: int) -> None:
        self._hypothesis, self._rows = hypothesis, rows
        self.hard: int | None = None

    def ask(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        return np.asarray(self._hypothesis.answer_many(list(queries)) * self._rows)


def session(**options: Any) -> Open:
    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
        with tempfile.TemporaryDirectory() as name:
            places: dict[str, Any] = {"ledger": Path(name) / "l.tacit", "anchor": Path(name) / "anchors.sqlite"}
            domain = table.domain
            with open_session(
                start=True, data=table.data, domain=domain, budget=budget, questions=questions, **places, **options
            ) as it:
                yield _Sessions(it)

    return opened


def warm_started(plan: warm.StartPlan) -> Open:
    """A warm start for the whole budget, and nothing after it."""

    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
        whole = total(budget)
        with tempfile.TemporaryDirectory() as name:
            anchor = Anchor(Path(name) / "anchors.sqlite")
            ledger = Ledger.open(
                Path(name) / "l.tacit", make="new", budget=budget, total=whole, binding={}, anchor=anchor
            )
            spend = Loss(whole.measure, whole.atoms)
            found = warm.warm_start(*doors(table.records, ledger), loss=spend, plan=plan)
            ledger.close()
        yield _Hypothesis(found.hypothesis, table.rows)

    return opened


def fresh(law: Law) -> Open:
    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
        yield Fresh(table.records, law, epsilon=budget.epsilon, delta=budget.delta, questions=questions)

    return opened


def textbook(hits: int) -> Open:
    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
        yield TextbookWeights(table.records, budget, questions=questions, hits=hits)

    return opened


def tables_of(attributes: int | None) -> Open:
    """All tables of so many attributes, or of all: the histogram."""

    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
        yield released(table.records, attributes or len(table.domain), budget)

    return opened


@contextmanager
def _pairs(table: Table, budget: Budget, questions: int) -> Iterator[Asked]:
    yield pairs_alone(table.records, budget)


AUTO = Way("Tacit, auto", session(mechanism="auto"), tried=True)
UNIFORM = Way("Tacit, uniform start", session(mechanism="iterative", warm=0.0, hits=HITS), runs=2, slow=True)
TEXTBOOK = Way("multiplicative weights, textbook", textbook(HITS), runs=2, slow=True)
MEDIAN = Way("median mechanism", session(mechanism="median", hits=HITS), runs=1, slow=True)
LAPLACE, GAUSSIAN = Way("fresh Laplace, OpenDP", fresh("laplace")), Way("fresh Gaussian, OpenDP", fresh("gaussian"))
HISTOGRAM = Way("noisy histogram", tables_of(None))
PAIRS, TRIPLES = Way("all 2-way tables", _pairs, tried=True), Way("all 3-way tables", tables_of(3))
FITTED = Way("all 2-way tables, fitted", warm_started("pairs"), tried=True)
ADAPTIVE = Way("adaptive warm start alone", warm_started("adaptive"))
WAYS = (LAPLACE, GAUSSIAN, HISTOGRAM, PAIRS, TRIPLES, TEXTBOOK, UNIFORM, MEDIAN, FITTED, ADAPTIVE, AUTO)
