"""What is asked of every way: families of questions, all of them boxes, and what an analyst reads from the answers.

A box meets a range of an ordered attribute, or a value or a set of values of another. For benchmarks and their tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.noisy_tables import Released, Scope
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.records import Records

BOXES, CELLS, WIDE, GROUPS = 5_000, 5_000, 1_000, 200  # questions of a family; groups whose mean is asked
MOST_LISTED = 2**18  # cells of a true table that is counted once, for all questions about it
Read = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class Family:
    """Questions of one kind. `read` makes figures of the answers; errors are the distances of two readings."""

    name: str
    queries: list[Query]
    read: Read


def families(domain: Domain, rows: int, rng: np.random.Generator, scale: float = 1.0) -> list[Family]:
    """All of them; `scale` makes them smaller."""

    def shares(answers: NDArray[np.float64]) -> NDArray[np.float64]:
        return answers / rows

    number = {one: max(10, int(scale * many)) for one, many in (("boxes", BOXES), ("cells", CELLS), ("wide", WIDE))}
    found = [
        Family("boxes of 1 to 3", boxes(domain, number["boxes"], rng, (1, 2, 3)), shares),
        Family("2-way cells", cells(domain, 2, number["cells"], rng), shares),
        Family("3-way cells", cells(domain, 3, number["cells"], rng), shares),
        Family("boxes of 4", boxes(domain, number["wide"], rng, (4,)), shares),
        Family("boxes of 5", boxes(domain, number["wide"], rng, (5,)), shares),
    ]
    asked = groups(domain, max(5, int(scale * GROUPS)), rng)
    if asked:
        queries = [query for group in asked for query in group]
        sizes = [len(group) for group in asked]
        found += [Family("means of groups", queries, _reader(sizes, _mean))]
        found += [Family("medians of groups", queries, _reader(sizes, _median))]
    return found


def boxes(domain: Domain, count: int, rng: np.random.Generator, attributes: Sequence[int]) -> list[Query]:
    made = []
    for _ in range(count):
        size = min(len(domain), int(rng.choice(attributes)))
        names = [domain.names[place] for place in rng.choice(len(domain), size=size, replace=False)]
        made.append(Query.all([Query.among(domain, name, _side(domain, name, rng)) for name in names]))
    return made


def _side(domain: Domain, name: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """A range, a value or a set of values: neither none nor all."""
    attribute = domain[name]
    if attribute.ordered and attribute.bins > 2:
        low, high = sorted(rng.choice(attribute.bins + 1, size=2, replace=False))
        if high - low < attribute.size:
            return np.arange(low, high)
    many = 1 if rng.random() < 0.5 else int(rng.integers(1, attribute.size))
    return rng.choice(attribute.size, size=many, replace=False)


def cells(domain: Domain, attributes: int, most: int, rng: np.random.Generator) -> list[Query]:
    """All cells of all tables of so many attributes, or so many of them at random, each as likely as any other."""
    scopes = list(combinations(domain.names, min(attributes, len(domain))))
    sizes = np.array([math.prod(domain.sizes[name] for name in scope) for scope in scopes])
    ends = sizes.cumsum()
    chosen = np.arange(ends[-1]) if ends[-1] <= most else np.sort(rng.choice(ends[-1], size=most, replace=False))
    made = []
    for scope_place, place in zip(np.searchsorted(ends, chosen, side="right"), chosen, strict=True):
        scope = scopes[scope_place]
        within = int(place - (ends[scope_place] - sizes[scope_place]))
        values = np.unravel_index(within, [domain.sizes[name] for name in scope])
        parts = [Query.among(domain, name, [int(value)]) for name, value in zip(scope, values, strict=True)]
        made.append(Query.all(parts))
    return made


def groups(domain: Domain, count: int, rng: np.random.Generator) -> list[list[Query]]:
    """Groups that have one value of one or two attributes, each with its counts of every value of an ordered one."""
    ordered = [name for name in domain.names if domain[name].ordered and domain[name].bins > 2]
    made = []
    for _ in range(count if ordered else 0):
        name = str(rng.choice(ordered))
        rest = [one for one in domain.names if one != name]
        others = rng.choice(rest, size=min(len(rest), rng.integers(1, 3)), replace=False)
        within = [Query.among(domain, other, [rng.integers(domain.sizes[other])]) for other in map(str, others)]
        made.append([Query.all([*within, Query.among(domain, name, [value])]) for value in range(domain[name].bins)])
    return made


def _reader(sizes: list[int], figure: Read) -> Read:
    """A figure of each group, as a share of the attribute's span; a group that seems empty has the middle."""
    ends = np.cumsum(sizes)

    def read(answers: NDArray[np.float64]) -> NDArray[np.float64]:
        found = []
        for first, last in zip(ends - sizes, ends, strict=True):
            counts = np.maximum(answers[first:last], 0)
            found.append(float(figure(counts / counts.sum())) / (last - first - 1) if counts.sum() > 0 else 0.5)
        return np.where(np.isnan(answers).any(), np.nan, np.array(found))

    return read


def _mean(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(shares @ np.arange(len(shares)))


def _median(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.searchsorted(shares.cumsum(), 0.5))


class Truth:
    """The true answers: from tables where these are small, one by one where they are not."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._tables = Released(records.domain, records.rows, self._table)

    def _table(self, scope: Scope) -> NDArray[np.float64] | None:
        small = math.prod(self._records.domain.sizes[name] for name in scope) <= MOST_LISTED
        return self._records.table(scope).astype(np.float64) if small else None

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        found = self._tables.answer(queries)
        for place in np.flatnonzero(np.isnan(found)):
            found[place] = self._records.answer(queries[place])
        return found
