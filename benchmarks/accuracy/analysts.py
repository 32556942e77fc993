"""Who asks: programs that put questions to any way of answering, and look at nothing but its answers.

The same program asks every mechanism; where it reacts to answers, the questions differ as the answers do. For
benchmarks and their tests.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.model.query import Query

BATCH = 1_000
Ask = Callable[[Sequence[Query]], NDArray[np.float64]]  # counts, in rows
Cell = tuple[tuple[int, int], ...]  # (attribute, value) pairs, the attributes in the domain's order


@dataclass(frozen=True)
class Asked:
    """What was asked, in its order, and what was answered, in rows."""

    queries: list[Query]
    answers: NDArray[np.float64]


Analyst = Callable[[Ask], Asked]


def conjunctions(domain: Domain, count: int, rng: np.random.Generator) -> list[Query]:
    """Conditions on one to three attributes, each met by a random set of values, neither none of them nor all."""
    made = []
    for _ in range(count):
        names = [domain.names[i] for i in rng.choice(len(domain), size=rng.integers(1, 4), replace=False)]
        sizes = [domain[name].size for name in names]
        values = [rng.choice(size, size=rng.integers(1, size), replace=False) for size in sizes]
        parts = [Query.among(domain, name, chosen) for name, chosen in zip(names, values, strict=True)]
        made.append(Query.all(parts))
    return made


def stream(queries: Sequence[Query], advance: Callable[[int], None] = lambda _: None) -> Analyst:
    """Asks a list from its first to its last question, whatever the answers."""

    def analyst(ask: Ask) -> Asked:
        answers = []
        for first in range(0, len(queries), BATCH):
            batch = queries[first : first + BATCH]
            answers.append(ask(batch))
            advance(len(batch))
        return Asked(list(queries), np.concatenate(answers))

    return analyst


def drill_down(
    domain: Domain, rows: int, *, questions: int, deepest: int = 3, advance: Callable[[int], None] = lambda _: None
) -> Analyst:
    """Goes where the answers surprise: counts of single values first, then ever finer within the largest surprise.

    The surprise of a cell is how far its answer is from what independence foretells: the answer for the cell that it
    refines, times the share of the value that was added, both as answered before. The most surprising cell that is not
    yet refined is refined by the next attribute that it does not mention, one attribute at a time, all values of it.
    """
    sizes = domain.shape

    def analyst(ask: Ask) -> Asked:
        known: dict[Cell, float] = {}
        queries: list[Query] = []
        waiting: list[tuple[float, int, Cell, tuple[int, ...]]] = []
        order = count()  # of two equal surprises the older comes first

        def put(parent: Cell, attribute: int) -> None:
            cells = [tuple(sorted((*parent, (attribute, value)))) for value in range(sizes[attribute])]
            new = [cell for cell in cells if cell not in known][: questions - len(queries)]
            if not new:
                return
            asked = [query_of(domain, cell) for cell in new]
            for cell, answer in zip(new, ask(asked), strict=True):
                known[cell] = float(answer)
                value = next(pair for pair in cell if pair[0] == attribute)
                foretold = known[parent] * known[value,] / rows if parent else rows / sizes[attribute]
                others = tuple(other for other in range(len(sizes)) if other not in {place for place, _ in cell})
                if len(cell) < deepest and others:
                    heapq.heappush(waiting, (-abs(known[cell] - foretold), next(order), cell, others))
            queries.extend(asked)
            advance(len(asked))

        for attribute in range(len(sizes)):
            put((), attribute)
        while waiting and len(queries) < questions:
            surprise, place, cell, others = heapq.heappop(waiting)
            put(cell, others[0])
            if others[1:]:  # the next attribute waits at the same surprise: after every larger one
                heapq.heappush(waiting, (surprise, place, cell, others[1:]))
        answers = np.array([known[cell] for cell in known])
        return Asked(queries, answers)

    return analyst


def query_of(domain: Domain, cell: Cell) -> Query:
    """Rows with exactly these values."""
    return Query.all([Query.among(domain, domain.names[attribute], [value]) for attribute, value in cell])
