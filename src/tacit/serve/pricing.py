"""What a question would cost, and what a request that failed half way did cost. Called in the writer's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from tacit.errors import TacitError
from tacit.model.answer import Answer
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.serve.question import Question
from tacit.session import DryRun, Session

T = TypeVar("T")
Counted = Query | Statistic


class Bought(Protocol):
    """The part of a session that tells what was paid for."""

    @property
    def entries(self) -> int: ...
    def bought(self, after: int) -> list[tuple[str | None, int]]: ...


class Cut(Exception):
    """A request that was refused with `error` after `atoms` of the budget had been paid for a part of it."""

    def __init__(self, error: TacitError, atoms: int) -> None:
        super().__init__(error.sentence)
        self.error, self.atoms = error, atoms


def price(session: Session, question: Question) -> DryRun:
    """The price now. `known` means for certain, without the data and for ever: nothing later makes it unknown."""
    with session.free():
        return session.price(question.ask)


def accounted(session: Bought, work: Callable[[], T]) -> T:
    """Do it; where it fails after something was paid for, `Cut` says how much that was.

    What another process buys from the same ledger meanwhile is taken for a part of it.
    """
    head = session.entries
    try:
        return work()
    except TacitError as error:
        atoms = sum(atoms for _, atoms in _since(session, head, error))
        if not atoms:
            raise
        raise Cut(error, atoms) from None


def charges(session: Bought, head: int, error: TacitError, queries: Iterable[Counted]) -> dict[str, int]:
    """What each of the queries had cost, by the key of its core, before a batch of them failed with `error`.

    What belongs to no query of its own comes before the answer that it was bought for: a start, and the gate that
    found a hard question.
    """
    paid: dict[str, int] = {}
    keys, waiting = {query.core.key for query in queries}, 0
    for key, atoms in _since(session, head, error):
        waiting += atoms
        if key in keys and waiting:
            paid[key], waiting = waiting, 0
    return paid


def claimed(queries: Sequence[Counted], answers: Sequence[Answer], paid: dict[str, int]) -> list[Answer]:
    """Answers that a batch which failed had bought, as what they are: paid for. Each charge is claimed once."""
    shown = []
    for query, answer in zip(queries, answers, strict=True):
        atoms = paid.pop(query.core.key, 0)
        cost = Loss(answer.cost.measure, answer.cost.atoms + atoms)
        bought = replace(answer, facts=replace(answer.facts, source="measured", cost=cost))
        shown.append(bought if atoms else answer)
    return shown


def _since(session: Bought, head: int, error: TacitError) -> list[tuple[str | None, int]]:
    if error.nothing_spent:
        return []
    try:
        return session.bought(head)
    except TacitError:  # the ledger cannot be read any more: what it holds is charged, and nobody is named for it
        return []
