"""Tables released once, with plain noise, that questions are then answered from. For benchmarks and their tests.

A question about a scope S is the sum of some cells of the table of S, or n less the sum of the others, whichever are
fewer. Tables of more attributes are added up to S, and those that say the same are averaged by their variances: cells
of a table T add up |T|/|S| to a cell, so that T counts in proportion to 1/|T|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.tables import PARTITION
from tacit.exact.price import noise_for, total
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records

Scope = tuple[str, ...]  # sorted names
DRAW = 2**18  # numbers drawn at a time
KEPT = 2**17  # cells of a table that is kept for later questions
AT_ONCE = 256  # boxes that are summed together


@dataclass
class Released:
    """Answers from tables, made when they are first needed and kept; NaN where a scope's table cannot be made."""

    domain: Domain
    rows: int
    make: Callable[[Scope], NDArray[np.float64] | None]
    hard: int | None = None
    _kept: dict[Scope, NDArray[np.float64] | None] = field(default_factory=dict)

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        return answered(queries, self.rows, self._of_scope)

    def _of_scope(self, scope: Scope, masks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        table = self._kept[scope] if scope in self._kept else self.make(scope)
        if table is None or table.size <= KEPT:
            self._kept[scope] = table
        if table is None:
            return np.full(len(masks[0]), np.nan)
        found = contracted(table, masks)
        many = 2 * np.prod([mask.sum(axis=1) for mask in masks], axis=0) > table.size
        return np.where(many, self.rows - (table.sum() - found), found)


def answered(
    queries: Sequence[Query], rows: int, of_scope: Callable[[Scope, list[NDArray[np.float64]]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Questions that are boxes, a few hundred of one scope at a time: their conditions are one mask an attribute."""
    found = np.empty(len(queries))
    places: dict[Scope, list[int]] = {}
    for place, query in enumerate(queries):
        places.setdefault(query.scope, []).append(place)
    for scope, all_of_scope in places.items():
        for first in range(0, len(all_of_scope), AT_ONCE):
            some = all_of_scope[first : first + AT_ONCE]
            weights = [{one.scope: one.weights for one in queries[place].factors} for place in some]
            masks = [np.array([one[name,] for one in weights], dtype=np.float64) for name in scope]
            found[some] = of_scope(scope, masks) if scope else rows
    complement = np.array([query.complement for query in queries], dtype=bool)
    return np.where(complement, rows - found, found)


def contracted(table: NDArray[np.float64], masks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sums of a table over boxes, whose conditions are the rows of the masks."""
    found = np.tensordot(masks[0], table, axes=(1, 0))
    for mask in masks[1:]:
        found = np.einsum("qv,qv...->q...", mask, found)
    return np.asarray(found)


def shape(domain: Domain, scope: Scope) -> tuple[int, ...]:
    return tuple(domain[name].size for name in scope)


def size(domain: Domain, scope: Scope) -> int:
    return math.prod(shape(domain, scope))


def every(domain: Domain, attributes: int) -> list[Scope]:
    """The scopes of all tables of so many attributes."""
    return [tuple(sorted(names)) for names in combinations(domain.names, min(attributes, len(domain)))]


def noisy(records: Records, scopes: Sequence[Scope], budget: Budget) -> dict[Scope, NDArray[np.float64]]:
    """These tables, each for an equal part of the budget."""
    noise = noise_for(total(budget).split(len(scopes)), PARTITION, unit=1)
    found = {}
    for scope in scopes:
        cells = records.table(scope).ravel()
        parts = [add_noise(part, noise) for part in np.split(cells, range(DRAW, cells.size, DRAW))]
        found[scope] = np.concatenate(parts).astype(np.float64).reshape(shape(records.domain, scope))
    return found


def released(records: Records, attributes: int, budget: Budget) -> Released:
    """All tables of so many attributes; the whole histogram, if that is all of them."""
    domain = records.domain
    tables = noisy(records, every(domain, attributes), budget)

    def make(scope: Scope) -> NDArray[np.float64] | None:
        return averaged(domain, tables, scope) if len(scope) <= attributes else None

    return Released(domain, records.rows, make)


def independent(records: Records, budget: Budget) -> Released:
    """All single attributes, and everything else as if they were independent."""
    domain, rows = records.domain, records.rows
    tables = noisy(records, every(domain, 1), budget)
    shares = {name: _given(table, 0) for (name,), table in tables.items()}

    def make(scope: Scope) -> NDArray[np.float64]:
        return np.asarray(rows * reduce(np.multiply.outer, (shares[name] for name in scope)))

    return Released(domain, rows, make)


def pairs_alone(records: Records, budget: Budget) -> Released:
    """All tables of pairs; three attributes as if two were independent given the third, the mean of three ways."""
    domain = records.domain
    tables = noisy(records, every(domain, 2), budget)

    def make(scope: Scope) -> NDArray[np.float64] | None:
        if len(scope) <= 2:
            return averaged(domain, tables, scope)
        if len(scope) > 3:
            return None
        first, second, third = scope
        ab, ac, bc = (tables[pair] for pair in ((first, second), (first, third), (second, third)))
        ways = (
            ab[:, :, None] * _given(ac, 1)[:, None, :],  # c given a
            ab[:, :, None] * _given(bc, 1)[None, :, :],  # c given b
            ac[:, None, :] * _given(bc, 0)[None, :, :],  # b given c
        )
        return np.asarray(sum(ways) / 3)

    return Released(domain, records.rows, make)


def _given(pair: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Shares along an axis: what a noisy table says about one attribute where the other is known."""
    positive = np.maximum(pair, 0.0) + 1e-9
    return np.asarray(positive / positive.sum(axis=axis, keepdims=True))


def averaged(domain: Domain, tables: dict[Scope, NDArray[np.float64]], scope: Scope) -> NDArray[np.float64]:
    """The table of a scope from all that hold it."""
    whole, weights = np.zeros(shape(domain, scope)), 0.0
    for names, values in tables.items():
        if not set(scope) <= set(names):
            continue
        others = tuple(axis for axis, name in enumerate(names) if name not in scope)
        weight = 1 / values.size
        whole += weight * values.sum(axis=others)
        weights += weight
    return whole / weights
