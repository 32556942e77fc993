"""The adversaries: each knows two neighbouring tables, talks to a session, and says which of the two it talked to.

All of a session is real: the mechanism, the curator, its samplers, the ledger's rules and lines. For speed, three
things are not: tables are handed over as counted cells instead of being read, the mechanism's settings are worked out
once, and the ledger's and the anchor's databases are in memory (`memory_store.py`). Two adversaries ask the curator
itself, since a session chooses its guesses by itself: what they ask is what a release algorithm may ask.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from bounds import WRONG, Transcript, least_epsilon

import tacit
from memory_store import forget, in_memory
from tacit.exact.price import Sensitivity, total
from tacit.model.budget import Budget, Loss
from tacit.model.certificate import Certificate, Conjunctions
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.request import Distance
from tacit.model.workload import Marginal, Question, Tree
from tacit.owner.binding import choose
from tacit.owner.opening import doors
from tacit.release.epsilon import epsilon_spent
from tacit.release.mechanisms import Choice
from tacit.session import Session
from tacit.store.anchor import Anchor
from tacit.trusted import curator, gate, sensitivity
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

# The delta of bounds on sessions whose laws have one. Such a law has an epsilon for every delta; at 0.1 an event that
# tells two tables apart is likely enough to be counted.
DELTA = 0.1
PURE, APPROXIMATE = Budget(epsilon=1.0), Budget(epsilon=4.0, delta=1e-6)
Counts = tuple[int, ...]


class Tables(NamedTuple):
    """Two neighbours over a domain of one attribute: how often each of its values occurs."""

    domain: Domain
    first: Counts
    second: Counts
    rows_per_person: int = 1

    def records(self, counts: Counts) -> Records:
        codes = [np.arange(len(counts), dtype=np.uint8)]
        return Records(self.domain, codes, np.array(counts), self.rows_per_person)

    @property
    def both(self) -> tuple[Records, Records]:
        return self.records(self.first), self.records(self.second)


@dataclass(frozen=True)
class Adversary:
    """What it does with a session, and a bug that it must notice.

    attack: what it sees of a session.
    bug: what is planted, in words and in place.
    least: so many transcripts of each table show the bug, with room to spare.
    """

    name: str
    tables: Tables
    attack: Callable[[Session, Tables], Transcript]
    bug: str
    plant: Callable[[], AbstractContextManager[object]]
    mechanism: str = "direct"
    settings: dict[str, Any] = field(default_factory=lambda: {"questions": 2})
    budget: Budget = PURE
    least: int = 400


@dataclass(frozen=True)
class Found:
    """What an attack proved: so much epsilon at least, where so much was paid."""

    bound: float
    price: float
    delta: float
    transcripts: int


def run(adversary: Adversary, sessions: int, wrong: float = WRONG) -> Found:
    """The adversary against so many sessions on each of its tables. `wrong`: how likely its bound is too high."""
    measure = _choice(adversary).measure(adversary.budget)
    whole, seen, spent = total(adversary.budget, measure), [list[Transcript](), list[Transcript]()], set[Loss]()
    with in_memory(), _frozen():
        for side, records in zip(seen, adversary.tables.both, strict=True):
            for _ in range(sessions):
                session = _opened(adversary, records, whole)
                side.append(adversary.attack(session, adversary.tables))
                spent.add(session.spent)
                forget()
    delta = 0.0 if measure == "epsilon" else DELTA
    # What every session spends is its price. Where it depends on what was found, the whole budget is.
    paid = max(spent, key=lambda one: one.atoms) if len(spent) == 1 else whole
    price = epsilon_spent(paid, Budget(epsilon=1.0, delta=delta))
    return Found(least_epsilon(*seen, delta, wrong), price, delta, 2 * sessions)


def run_control(adversary: Adversary, sessions: int, wrong: float = WRONG) -> Found:
    """The same while its bug is planted."""
    with adversary.plant():
        return run(adversary, sessions, wrong)


@contextmanager
def _frozen() -> Iterator[None]:
    """What is there already is not looked through for garbage of every few sessions: a third of a session's time."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@cache
def _settled(
    mechanism: str, domain: Domain, budget: Budget, rows: int, settings: tuple[tuple[str, Any], ...]
) -> Choice:
    return choose(mechanism, domain, budget, rows, dict(settings))


def _choice(adversary: Adversary) -> Choice:
    rows, settings = sum(adversary.tables.first), tuple(adversary.settings.items())
    return _settled(adversary.mechanism, adversary.tables.domain, adversary.budget, rows, settings)


def _opened(adversary: Adversary, records: Records, whole: Loss) -> Session:
    """The last lines of `tacit.open`, after the table is read and its mechanism is chosen."""
    choice, budget = _choice(adversary), adversary.budget
    binding = {"domain": adversary.tables.domain.key, "data": records.fingerprint}
    anchor = Anchor(None)
    ledger = Ledger.open("ledger", make="new", budget=budget, total=whole, binding=binding, anchor=anchor)
    public, buyer = doors(records, ledger)
    return Session(public, buyer, ledger, budget, choice, choice.build(public, buyer, 0.95, None), 0.95, start=True)


# -- what they do ------------------------------------------------------------------------------------------------------


def likelihood(measured: Measured, question: Question, tables: Tables) -> float:
    """log Pr[values | second] / Pr[values | first], by the law that is published with the values."""
    first, second = _truths(measured.key, question, tables)
    if measured.noise.kind == "laplace":
        apart = np.abs(measured.values - first) - np.abs(measured.values - second)
        return float(apart.sum()) / measured.noise.scale
    apart = (second - first) * (2 * measured.values - first - second)
    return float(apart.sum()) / (2 * measured.noise.scale**2)


_known: dict[tuple[str, Tables], tuple[Any, Any]] = {}


def _truths(key: str, question: Question, tables: Tables) -> tuple[Any, Any]:
    if (key, tables) not in _known:
        first, second = (sensitivity.truth(question, records) for records in tables.both)
        _known[key, tables] = first, second
    return _known[key, tables]


def all_measured(session: Session, tables: Tables) -> float:
    return sum(likelihood(one, one.question, tables) for one in session.answers() if isinstance(one, Measured))


def asks_both(session: Session, tables: Tables) -> Transcript:
    """The count that a replaced row leaves, and the one that it enters; and what is between them."""
    left, entered = (session.ask(tacit.count(a=value)).value for value in (0, 1))
    return Transcript(round(entered - left), all_measured(session, tables))


def asks_one(session: Session, tables: Tables) -> Transcript:
    session.ask(tacit.count(a=1))
    return Transcript("", all_measured(session, tables))


def starts(session: Session, tables: Tables) -> Transcript:
    """Only what the session buys before the first question."""
    session.start()
    return Transcript("", all_measured(session, tables))


def asks_the_gate(session: Session, tables: Tables) -> Transcript:
    """Chosen guesses of 0: a gate shows counts. First some that a row leaves, then the one that it enters."""
    queries = [Query.among(tables.domain, "a", [value]) for value in (0, 0, 0, 1)]
    assert session._curator is not None
    opened = session._curator.open_gate(10.0, session.total)
    found = opened.first_above(queries, [Distance(0.0)] * len(queries))
    return Transcript(None if found is None else found[0])


def asks_for_a_certificate(session: Session, tables: Tables) -> Transcript:
    """A chosen guess of 0: errors are counts. A row leaves the cell with the least and enters that with the largest."""
    size = len(tables.first)
    cells = Conjunctions(("a",), np.zeros(size, dtype=np.int64), (np.eye(size, dtype=np.uint8),), False)
    asked = Certificate("guess of 0", "cells", 1, size, (1, size), (), (cells,))
    assert session._curator is not None
    (measured,) = session._curator.measure([asked], session.total)
    return Transcript("", likelihood(measured, asked, tables))


def announces(session: Session, tables: Tables) -> Transcript:
    """A workload of two questions, one round: the choice of the worse, and its answer."""
    built = session.release([tacit.count(a=value) for value in (0, 1)], alpha=0.01, share=1.0, rounds=1)
    return Transcript(built.steps[0].candidate, all_measured(session, tables))


def asks_online(session: Session, tables: Tables) -> Transcript:
    """Questions whose guesses are public, until one is hard: which one that is, and its answer."""
    sources = (session.ask(tacit.count(a=value)).source for value in (0, 1))
    hard = next((place for place, source in enumerate(sources) if source != "hypothesis"), None)
    return Transcript(hard, all_measured(session, tables))


# -- what is planted ---------------------------------------------------------------------------------------------------


def reused_noise() -> AbstractContextManager[object]:
    """One draw for all that is measured."""
    drawn: dict[tuple[Noise, int], Any] = {}
    before, session = curator.add_noise, Ledger.open.__func__  # type: ignore[attr-defined]

    def reused(values: Any, noise: Noise) -> Any:
        known = drawn.setdefault((noise, values.size), before(np.zeros_like(values), noise))
        return values + known

    def opened(cls: type[Ledger], *given: Any, **named: Any) -> Ledger:
        drawn.clear()  # in every session another
        found: Ledger = session(cls, *given, **named)
        return found

    return _both(
        mock.patch.object(curator, "add_noise", reused), mock.patch.object(Ledger, "open", classmethod(opened))
    )


def narrower(factor: float) -> Callable[[], AbstractContextManager[object]]:
    """Noise of a smaller scale than is paid for."""

    def planted() -> AbstractContextManager[object]:
        before = curator.add_noise
        return mock.patch.object(
            curator, "add_noise", lambda values, noise: before(values, Noise(noise.kind, noise.scale / factor))
        )

    return planted


def moves(kind: type[Question], wrong: Sensitivity) -> Callable[[], AbstractContextManager[object]]:
    """A wrong bound on how far the answers to such a question move."""

    def planted() -> AbstractContextManager[object]:
        before = sensitivity.sensitivity

        def moved(asked: Question, domain: Domain) -> Sensitivity:
            return wrong if isinstance(asked, kind) else before(asked, domain)

        return mock.patch.object(sensitivity, "sensitivity", moved)

    return planted


def reused_comparisons() -> AbstractContextManager[object]:
    """One draw for all comparisons of a gate, on which no finite epsilon holds."""
    before = gate.draw_geometric
    return mock.patch.object(gate, "draw_geometric", lambda scale, size: np.repeat(before(scale, 1), size))


def exact_comparisons() -> AbstractContextManager[object]:
    """No noise in a gate."""
    return mock.patch.object(gate, "draw_geometric", lambda scale, size: np.full(size, round(scale)))


def exact_choice() -> AbstractContextManager[object]:
    return mock.patch.object(curator, "noisy_max", lambda scores, scale, measure: int(np.argmax(scores)))


def one_row() -> AbstractContextManager[object]:
    """The rows of a person taken for one."""
    return mock.patch.object(Sensitivity, "times", lambda self, rows: self)


@contextmanager
def _both(*given: AbstractContextManager[object]) -> Iterator[None]:
    first, second = given
    with first, second:
        yield


# -- who there is ------------------------------------------------------------------------------------------------------

THREE = Domain({"a": tacit.integer(0, 2)})
MANY = Domain({"a": tacit.integer(0, 255)})
MOVED = Tables(THREE, (7, 7, 6), (6, 8, 6))

ADVERSARIES = (
    Adversary("direct", MOVED, asks_both, "one draw of noise for all answers", reused_noise),
    Adversary(
        "direct, delta > 0", MOVED, asks_both, "half of the noise", narrower(2),
        budget=APPROXIMATE, least=3_000,
    ),
    Adversary(
        "people with 3 rows", Tables(THREE, (7, 7, 6), (4, 10, 6), 3), asks_one,
        "a person's rows taken for one", one_row, settings={"questions": 1}, least=2_000,
    ),
    Adversary(
        "histogram", MOVED, starts, "a table moves by 1", moves(Marginal, Sensitivity(1, 1)),
        "histogram", {}, least=3_000,
    ),
    Adversary(
        "ranges", Tables(MANY, (*(1,) * 255, 0), (0, *(1,) * 255)), starts,
        "the weights of its levels are forgotten", moves(Tree, Sensitivity(4, 4)), "histogram", {}, least=1_000,
    ),
    Adversary(
        "gate", Tables(THREE, (9, 11, 0), (10, 10, 0)), asks_the_gate,
        "one draw for all comparisons", reused_comparisons, least=3_000,
    ),
    Adversary(
        "certificate", Tables(THREE, (3, 9, 8), (2, 10, 8)), asks_for_a_certificate, "two figures priced as one",
        moves(Certificate, Sensitivity(1, 1)), least=3_000,
    ),
    Adversary("choice", Tables(THREE, (10, 9, 1), (9, 10, 1)), announces, "the worst is chosen exactly", exact_choice),
    Adversary(
        "warm start", MOVED, starts, "residuals move by a quarter", narrower(4),
        "iterative", {"warm": 0.95, "hits": 1}, APPROXIMATE,
    ),
    Adversary(
        "online", Tables(THREE, (10, 5, 5), (9, 6, 5)), asks_online, "no noise in the gate", exact_comparisons,
        "iterative", {"hits": 1, "questions": 2},
    ),
    Adversary(
        "median", Tables(THREE, (13, 3, 4), (12, 4, 4)), asks_online, "no noise in the gate", exact_comparisons,
        "median", {"warm": 0, "hits": 1, "databases": 20, "records": 20, "questions": 2},
    ),
)  # fmt: skip
