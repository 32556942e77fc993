"""ResidualPlanner (Xiao, He, Zhang & Kifer, NeurIPS 2023): all tables of up to so many attributes from one release.

The residual of a scope A is the table of A with the mean taken out along each attribute; the table of B is the sum of
the residuals of its subsets A, each spread evenly over the attributes of B that A lacks. Residuals of different scopes
are orthogonal, so each has noise of its own, white within its own space. The paper's neighbours add or remove a row:
that costs p_A / sigma_A^2, where p_A is the product of 1 - 1/size. Ours replace one: what two cells cost depends only
on which attributes they differ in, and the dearest such set is found by trying all of them. The number of rows is
public. One Gaussian release of everything is paid for by its exact curve. For benchmarks and their tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from benchmarks.accuracy.noisy_tables import Scope, answered, contracted, shape
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.records import Records

MOST_TRIED = 2**22  # sets of attributes times scopes that are priced together


class ResidualPlanner:
    """Answers from noisy residuals: as they are, or `cut`, from the nearest tables without negative cells.

    Questions about more attributes than were planned for are answered as if the residuals beyond were 0.
    """

    hard: int | None = None

    def __init__(self, records: Records, budget: Budget, *, order: int, cut: bool = False) -> None:
        self.domain, self.rows, self._order, self._cut = records.domain, records.rows, order, cut
        deviations = planned(self.domain, order, budget)
        rng = np.random.default_rng()
        self._residuals: dict[Scope, NDArray[np.float64]] = {(): np.array(float(self.rows))}
        for scope, deviation in deviations.items():
            noise = rng.normal(0, deviation, shape(self.domain, scope))
            self._residuals[scope] = centred(records.table(scope) + noise)
        self._tables: dict[Scope, NDArray[np.float64]] = {}

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        return answered(queries, self.rows, self._of_scope)

    def table(self, scope: Scope) -> NDArray[np.float64]:
        sizes = shape(self.domain, scope)
        found = np.zeros(sizes)
        for part in _subsets(scope, self._order):
            spread = [size if name in part else 1 for name, size in zip(scope, sizes, strict=True)]
            found += self._residuals[part].reshape(spread) * (math.prod(spread) / math.prod(sizes))
        return found

    def _of_scope(self, scope: Scope, masks: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        if self._cut and len(scope) <= self._order:
            if scope not in self._tables:
                self._tables[scope] = positive(self.table(scope), self.rows)
            return contracted(self._tables[scope], masks)
        shares = {name: mask.mean(axis=1) for name, mask in zip(scope, masks, strict=True)}
        found = np.zeros(len(masks[0]))
        for part in _subsets(scope, self._order):
            rest = np.prod([shares[name] for name in scope if name not in part], axis=0)
            chosen = [mask for name, mask in zip(scope, masks, strict=True) if name in part]
            found += rest * (contracted(self._residuals[part], chosen) if part else self.rows)
        return np.maximum(found, 0) if self._cut else found


def planned(domain: Domain, order: int, budget: Budget) -> dict[Scope, float]:
    """The deviation of each residual's noise: the least sum of the variances of all cells of all tables."""
    scopes = [tuple(sorted(one)) for k in range(1, order + 1) for one in combinations(domain.names, k)]
    prices = {scope: math.prod(1 - 1 / domain.sizes[name] for name in scope) for scope in scopes}
    weights = dict.fromkeys(scopes, 0.0)
    for scope in scopes:
        for part in _subsets(scope, order)[1:]:
            others = math.prod(domain.sizes[name] for name in scope if name not in part)
            weights[part] += math.prod(shape(domain, scope)) * prices[part] / others**2
    variances = {scope: math.sqrt(prices[scope] / weights[scope]) for scope in scopes}
    scale = squared_sensitivity(domain, variances) / gaussian_shift(budget) ** 2
    return {scope: math.sqrt(variance * scale) for scope, variance in variances.items()}


def squared_sensitivity(domain: Domain, variances: dict[Scope, float]) -> float:
    """The largest squared distance, in units of the noise, between the residuals of two tables that differ in a row.

    Two cells differ in a set D of attributes. The residuals of A of their two rows are at a squared distance of
    2 (prod over A of (1 - 1/size) - prod over A and D of (-1/size) prod over A less D of (1 - 1/size)).
    """
    names = domain.names
    sets = (np.arange(1, 2 ** len(names))[:, None] >> np.arange(len(names))) & 1 > 0
    inverse = np.array([1 / size for size in domain.shape])
    largest = 0.0
    at_once = max(1, MOST_TRIED // len(variances))
    for first in range(0, len(sets), at_once):
        factors = np.where(sets[first : first + at_once], -inverse, 1 - inverse)
        total = np.zeros(len(factors))
        for scope, variance in variances.items():
            places = [names.index(name) for name in scope]
            total += 2 * (math.prod(1 - inverse[places]) - factors[:, places].prod(axis=1)) / variance
        largest = max(largest, float(total.max()))
    return largest


def gaussian_shift(budget: Budget) -> float:
    """The largest m for which a Gaussian vector moved by m deviations is (epsilon, delta)-DP: Balle & Wang 2018."""
    epsilon, low, high = budget.epsilon, 1e-4, 100.0
    for _ in range(200):
        m = math.sqrt(low * high)
        delta = float(ndtr(m / 2 - epsilon / m)) - math.exp(epsilon + float(log_ndtr(-m / 2 - epsilon / m)))
        low, high = (low, m) if delta > budget.delta else (m, high)
    return low


def positive(table: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest table of this total that has no negative cell: what is too much is taken from all cells alike."""
    falling = np.sort(table.ravel())[::-1]
    excess = (falling.cumsum() - total) / np.arange(1, falling.size + 1)
    return np.maximum(table - excess[np.flatnonzero(falling > excess)[-1]], 0)


def centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _subsets(scope: Scope, order: int) -> list[Scope]:
    return [part for size in range(min(order, len(scope)) + 1) for part in combinations(scope, size)]
