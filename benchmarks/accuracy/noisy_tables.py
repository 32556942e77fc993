"""Tables released once, with Gaussian noise, that questions are then answered from. For benchmarks and their tests.

A question about a scope S is the sum of some cells of the table of S, or n less the sum of the others, whichever are
fewer. Tables of more attributes are added up to S, and those that say the same are averaged by their variances: cells
of a table T add up |T|/|S| to a cell, so that T counts in proportion to 1/|T|.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.tables import PARTITION
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.loss import noise_for, total
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records

Scope = tuple[str, ...]  # sorted names
DRAW = 2**18  # numbers drawn at a time


@dataclass
class Released:
    """Answers from tables, made when they are first needed and kept."""

    domain: Domain
    rows: int
    make: Callable[[Scope], NDArray[np.float64]]
    hard: int | None = None
    _kept: dict[Scope, NDArray[np.float64]] = field(default_factory=dict)

    def ask(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        return np.array([self._answer(query) for query in queries])

    def _answer(self, query: Query) -> float:
        scope = query.scope
        if scope not in self._kept:
            self._kept[scope] = self.make(scope)
        chosen = query.table(scope, self._kept[scope].shape)
        if 2 * chosen.sum() > chosen.size:
            return self.rows - float(((1 - chosen) * self._kept[scope]).sum())
        return float((chosen * self._kept[scope]).sum())


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
    return Released(domain, records.rows, lambda scope: averaged(domain, tables, scope))


def pairs_alone(records: Records, budget: Budget) -> Released:
    """All tables of pairs; three attributes as if two were independent given the third, the mean of three ways."""
    domain = records.domain
    tables = noisy(records, every(domain, 2), budget)

    def make(scope: Scope) -> NDArray[np.float64]:
        if len(scope) <= 2:
            return averaged(domain, tables, scope)
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


def cell_variance(domain: Domain, scopes: Sequence[Scope], scope: Scope) -> float:
    """The variance of a cell of `averaged`, for a rho of 1 in all: |scopes| tables of squared sensitivity 2."""
    return len(scopes) / sum(size(domain, scope) / size(domain, one) for one in scopes if set(scope) <= set(one))


def question_variances(domain: Domain, scopes: Sequence[Scope], queries: Sequence[Query]) -> NDArray[np.float64]:
    """Of the answers to questions, for a rho of 1 in all; the noise is additive, so they hold for any table."""
    cells: dict[Scope, float] = {}
    found = []
    for query in queries:
        scope = query.scope
        if scope not in cells:
            cells[scope] = cell_variance(domain, scopes, scope)
        chosen = int(query.table(scope, shape(domain, scope)).sum())
        found.append(min(chosen, size(domain, scope) - chosen) * cells[scope])
    return np.array(found)


def equality_variances(domain: Domain, scopes: Sequence[Scope], deepest: int = 3) -> NDArray[np.float64]:
    """The same for every cell of every table of up to so many attributes: all that a drill-down can ask."""
    found = []
    for attributes in range(1, deepest + 1):
        for scope in every(domain, attributes):
            found.append(np.full(size(domain, scope), cell_variance(domain, scopes, scope)))
    return np.concatenate(found)
