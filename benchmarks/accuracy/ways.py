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
from benchmarks.accuracy.noisy_tables import independent, pairs_alone, released
from benchmarks.accuracy.residual_planner import ResidualPlanner
from benchmarks.accuracy.synthesis import synthesise
from benchmarks.accuracy.tables import Table
from benchmarks.accuracy.textbook import TextbookWeights
from tacit.exact.price import total
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.owner.opening import doors, open_session
from tacit.release import warm_start as warm
from tacit.release.hypothesis.cell_weights import Dense
from tacit.session import Session
from tacit.store.anchor import Anchor
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

ALL = 256  # attributes: the most that a domain has
HITS = 200  # hard answers of those that start knowing nothing


class Answers(Protocol):
    """Something that answers, in rows; `hard` is how many answers were bought, where that is a choice."""

    hard: int | None

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]: ...


Open = Callable[[Table, Budget, int], AbstractContextManager[Answers]]


@dataclass(frozen=True)
class Way:
    """A mechanism: `open(table, budget, questions)` gives something to ask."""

    name: str
    open: Open
    ours: bool = False
    pure: bool = True  # whether it can be had at delta = 0
    default: bool = True  # whether it is asked unless named
    slow: bool = False  # takes minutes: one run is enough
    words: str = ""  # its name in pictures


class _Sessions:
    """A session of Tacit's own, ledger and all."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.hard: int | None = 0

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        answers = self._session.ask_many(list(queries))
        self.hard = (self.hard or 0) + sum(answer.source == "measured" for answer in answers)
        return np.array([answer.value for answer in answers], dtype=np.float64)


class _Hypothesis:
    """A distribution over X that has been published."""

    def __init__(self, hypothesis: Dense, rows: int) -> None:
        self._hypothesis, self._rows = hypothesis, rows
        self.hard: int | None = None

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        return np.asarray(self._hypothesis.answer_many(list(queries)) * self._rows)


def session(**options: Any) -> Open:
    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Answers]:
        with tempfile.TemporaryDirectory() as name:
            places: dict[str, Any] = {"ledger": Path(name) / "l.tacit", "anchor": Path(name) / "anchors.sqlite"}
            domain = table.domain
            with open_session(
                start=True, data=table.data, domain=domain, budget=budget, questions=questions, **places, **options
            ) as it:
                yield _Sessions(it)

    return opened


def warm_started() -> Open:
    """A warm start for the whole budget, and nothing after it."""

    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Answers]:
        whole = total(budget)
        with tempfile.TemporaryDirectory() as name:
            anchor = Anchor(Path(name) / "anchors.sqlite")
            ledger = Ledger.open(
                Path(name) / "l.tacit", make="new", budget=budget, total=whole, binding={}, anchor=anchor
            )
            spend = Loss(whole.measure, whole.atoms)
            found = warm.warm_start(*doors(table.records, ledger), loss=spend)
            ledger.close()
        yield _Hypothesis(found.hypothesis, table.rows)

    return opened


def release(function: Callable[[Domain, Records, Budget, int], Answers]) -> Open:
    """One release that answers everything: a function of the domain, the records, the budget and the public rows."""

    @contextmanager
    def opened(table: Table, budget: Budget, questions: int) -> Iterator[Answers]:
        yield function(table.domain, table.records, budget, table.rows)

    return opened


@contextmanager
def _fresh(table: Table, budget: Budget, questions: int) -> Iterator[Answers]:
    law: Law = "gaussian" if budget.delta else "laplace"
    yield Fresh(table.records, law, epsilon=budget.epsilon, delta=budget.delta, questions=questions)


@contextmanager
def _textbook(table: Table, budget: Budget, questions: int) -> Iterator[Answers]:
    yield TextbookWeights(table.records, budget, questions=questions, hits=HITS)


def tables_of(attributes: int) -> Open:
    return release(lambda domain, records, budget, rows: released(records, min(attributes, len(domain)), budget))


def planner(order: int, cut: bool) -> Open:
    return release(lambda domain, records, budget, rows: ResidualPlanner(records, budget, order=order, cut=cut))


def synthesis(method: str) -> Open:
    return release(lambda domain, records, budget, rows: synthesise(records, budget, method).answers)


AUTO = Way("auto", session(mechanism="auto"), ours=True, words="Tacit")
FRESH = Way("fresh", _fresh, words="fresh noise")
TEXTBOOK = Way("textbook", _textbook, default=False, words="multiplicative weights, as in lecture 12")
MEDIAN = Way("median", session(mechanism="median"), ours=True, default=False)
SINGLES = Way(
    "1-way",
    release(lambda domain, records, budget, rows: independent(records, budget)),
    words="tables of 1 attribute",
)
PAIRS = Way(
    "2-way",
    release(lambda domain, records, budget, rows: pairs_alone(records, budget)),
    words="tables of 2 attributes",
)
TRIPLES = Way("3-way", tables_of(3), words="tables of 3 attributes")
WAYS = (
    FRESH,
    SINGLES,
    PAIRS,
    TRIPLES,
    Way("histogram", tables_of(ALL), default=False),
    Way("RP2", planner(2, cut=False), pure=False, words="ResidualPlanner of order 2"),
    Way("RP2+", planner(2, cut=True), pure=False, words="ResidualPlanner of order 2, no negative cells"),
    Way("RP3", planner(3, cut=False), pure=False, words="ResidualPlanner of order 3"),
    Way("RP3+", planner(3, cut=True), pure=False, words="ResidualPlanner of order 3, no negative cells"),
    Way("MST", synthesis("MST"), pure=False, slow=True),
    Way("AIM", synthesis("AIM"), pure=False, slow=True),
    TEXTBOOK,
    Way("uniform", session(mechanism="iterative", warm=0.0, hits=HITS), ours=True, default=False),
    Way("median, nothing known", session(mechanism="median", warm=0, hits=HITS), default=False, slow=True),
    MEDIAN,
    Way("start", warm_started(), ours=True, default=False),
    AUTO,
)
