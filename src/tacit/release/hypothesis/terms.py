"""What one released answer says in a fit, and the exact step that fits it while all others stand still. For `fit` only.

A fit maximises over tilts theta, one for each noisy number y (a share of the rows, with spread s), the concave dual

    sum theta y - s²/2 sum theta² - ln E_start exp(sum theta q)

of: minimise KL(P || start) + sum (q(P) - y)² / (2 s²). At its maximum every residual says its own tilt: y - q(P) =
s² theta. Maximised over all the cells of one table together, that has a closed form, by Wright's omega function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.workload import Marginal, Tree, leaves
from tacit.release.hypothesis.dense import Array
from tacit.release.ranges.tree import node_counts

DEEPEST = 1000.0  # a tilt's limit, never met by answers that agree; lower ones stopped fits of little noise
LEAST_VARIANCE = 1 / 12  # counts are whole, so that no answer is taken for surer than that
LEAST_SHARE = 5e-5  # of the rows: finer differences are not worth a fit that never ends
_TINY = 1e-300
_ROUNDS = 100  # of Newton's iteration


@dataclass(frozen=True, eq=False)
class Term:
    """Noisy shares of the rows: of every cell of a table over some axes, of groups of its cells, or a weighted mean.

    `axes` ascend. `weights` is for a mean of some weights over the table, `groups` has the number of each cell's group;
    both None: every cell. The noise of each number has this variance, in shares squared.
    """

    key: str
    axes: tuple[int, ...]
    shares: Array
    variance: float
    weights: Array | None = None
    groups: NDArray[np.intp] | None = None

    @property
    def whole(self) -> bool:
        return self.weights is None and self.groups is None

    def values(self, table: Array) -> Array:
        """What the term measures, of a distribution's table over its axes."""
        if self.groups is not None:
            sums = np.bincount(self.groups, weights=table.ravel(), minlength=self.shares.size)
            return np.asarray(sums, dtype=np.float64)
        return table if self.weights is None else np.asarray((table * self.weights).sum())

    def by_cell(self, tilts: Array) -> Array:
        """What tilts of the term's numbers add to the logarithm of every cell of its table."""
        if self.groups is not None:
            return np.asarray(tilts[self.groups])
        return tilts if self.weights is None else tilts * self.weights

    def step(self, table: Array, tilts: Array, softness: float) -> tuple[Array, Array, float]:
        """The best tilts while all others stand still, the logarithms of the cells' factors, and of their normaliser.

        `softness` is s². A factor is exp(logarithm - normaliser).
        """
        if self.weights is None:
            best, normaliser = _table_tilts(self.values(table), tilts, self.shares, softness)
            return best, self.by_cell(best - tilts), normaliser
        tilt = _query_tilt(table, self.weights, float(tilts), float(self.shares), softness)
        change = (tilt - float(tilts)) * self.weights
        return np.array(tilt), change, log_sum(np.log(np.maximum(table, _TINY)) + change)


def terms_of(measured: Iterable[Measured], domain: Domain, rows: int, order: Sequence[int]) -> list[Term]:
    """The terms of released answers to linear questions; `order` lists the domain's axes in the order of the fit.

    Answers to anything but linear questions say nothing about a distribution that a tilt could learn; they are left
    out.
    """
    terms: list[Term] = []
    for one in measured:
        question, steps = one.question, one.unit * rows
        spread = max(variance(one.noise) / (one.unit * rows) ** 2, LEAST_VARIANCE / rows**2, LEAST_SHARE**2)
        if isinstance(question, Marginal) and question.where.is_everyone:
            names, shape = question.names, [domain[name].size for name in question.names]
            axes, by_axis = _axes(names, domain, order)
            table = (one.values / steps).reshape(shape).transpose(by_axis)
            terms.append(Term(one.key, axes, np.ascontiguousarray(table), spread))
            continue
        if isinstance(question, Tree):
            terms += _levels(one, question, domain, rows, order)
            continue
        if isinstance(question, Query):
            queries = [question]
        elif isinstance(question, Marginal):
            queries = list(question.queries(domain))
        else:
            continue
        for i, (query, value) in enumerate(zip(queries, one.values, strict=True)):
            if not query.fits(domain):
                raise InvalidQuery("an answer to be fitted was measured on another domain.")
            if not query.is_constant:
                terms.append(_single(f"{one.key}/{i}", query, float(value) / steps, spread, domain, order))
    return terms


def _levels(one: Measured, tree: Tree, domain: Domain, rows: int, order: Sequence[int]) -> list[Term]:
    """Every level of a tree is a table of its own, coarser above: their noises are independent of each other."""
    size, axes = domain[tree.name].size, _axes((tree.name,), domain, order)[0]
    if leaves(domain[tree.name]) != size:
        return []  # several kinds of missing values share a leaf
    counts = zip(node_counts(one.values, tree, size), tree.spans(), tree.weights, strict=True)
    terms = []
    for level, (nodes, span, weight) in enumerate(counts):
        spread = max(variance(one.noise) / (weight * rows) ** 2, LEAST_VARIANCE / rows**2, LEAST_SHARE**2)
        groups = None if span == 1 else np.arange(size) // span
        terms.append(Term(f"{one.key}/{level}", axes, nodes / rows, spread, groups=groups))
    return terms


def _single(key: str, query: Query, share: float, spread: float, domain: Domain, order: Sequence[int]) -> Term:
    axes, by_axis = _axes(query.scope, domain, order)
    table = query.table(query.scope, [domain[name].size for name in query.scope]) / query.unit
    return Term(key, axes, np.array(share), spread, np.ascontiguousarray(table.transpose(by_axis)))


def _axes(names: Sequence[str], domain: Domain, order: Sequence[int]) -> tuple[tuple[int, ...], list[int]]:
    """Where the names stand in the fit, ascending, and how to transpose a table of them so."""
    places = [list(order).index(domain.names.index(name)) for name in names]
    by_axis = sorted(range(len(names)), key=lambda i: places[i])
    return tuple(places[i] for i in by_axis), by_axis


def _table_tilts(table: Array, tilts: Array, shares: Array, softness: float) -> tuple[Array, float]:
    """Tilts theta with share' = exp(theta - normaliser) * (table without its tilts) and theta = (shares - share')/s².

    Eliminating theta: share'/s² = omega(ln(table/s²) - tilts + shares/s² - normaliser), and the shares sum to 1.
    """
    if not softness > 0:
        raise ValueError("the softness of a fit is above 0.")
    base = np.log(np.maximum(table, _TINY)) - math.log(softness) - tilts + shares / softness
    normaliser = solve_normaliser(base, softness)
    best = np.clip((shares - softness * omega(base - normaliser)) / softness, -DEEPEST, DEEPEST)
    return best, log_sum(np.log(np.maximum(table, _TINY)) + best - tilts)  # which is the normaliser, where none is cut


def omega(values: Array) -> Array:
    """Wright's omega function. scipy is imported here: a session that only repeats answers does without."""
    from scipy.special import wrightomega

    return np.asarray(wrightomega(values))


def solve_normaliser(base: Array, softness: float) -> float:
    """The z at which s² omega(base - z) sums to 1: a convex falling function, so that Newton's iteration cannot fail.

    From the right of the root its first step lands on the left; from the left it climbs to the root. `least` is on the
    left: there the highest cell alone has all.
    """
    least = float(base.max()) - 1 / softness + math.log(softness)
    z = max(0.0, least)
    for _ in range(_ROUNDS):
        found = omega(base - z)
        excess = softness * float(found.sum()) - 1
        slope = softness * float((found / (1 + found)).sum())
        step = max(z + excess / max(slope, _TINY), least) - z
        z += step
        if abs(step) <= 1e-13 * max(1.0, abs(z)):
            break
    return z


def log_sum(logs: Array) -> float:
    """The logarithm of a sum of numbers that are given by theirs."""
    highest = float(logs.max())
    return highest + math.log(float(np.exp(logs - highest).sum()))


def _query_tilt(table: Array, weights: Array, tilt: float, share: float, softness: float) -> float:
    """The tilt at which share - q(P) = s² tilt, by Newton's iteration within a bracket."""
    below, above, now = -DEEPEST, DEEPEST, min(DEEPEST, max(-DEEPEST, tilt))
    for _ in range(_ROUNDS):
        exponents = (now - tilt) * weights
        tilted = table * np.exp(exponents - exponents.max())
        tilted /= tilted.sum()
        mean = float((tilted * weights).sum())
        gap = share - mean - softness * now  # falls as the tilt grows
        below, above = (now, above) if gap > 0 else (below, now)
        slope = float((tilted * (weights - mean) ** 2).sum()) + softness
        step = now + gap / slope
        step = step if below < step < above else (below + above) / 2
        if abs(step - now) <= 1e-12 * max(1.0, abs(now)):
            break
        now = step
    return now
