"""What released answers say in a fit, and the exact steps that fit them one at a time. For the fits only.

A fit maximises over tilts theta, one for each noisy number y (a share of the rows, with spread s), the concave dual

    sum theta y - s²/2 sum theta² - ln E_start exp(sum theta q)

of: minimise KL(P || start) + sum (q(P) - y)² / (2 s²). At its maximum every residual says its own tilt: y - q(P) =
s² theta. Maximised over all the cells of one table together, that has a closed form, by Wright's omega function.

Whole tables are taken apart into *interactions*: the interaction of some attributes is what their table says beyond
the tables of fewer of them, its cells less their means along every axis. A table with independent noise in its cells
says each interaction within it, with noise that is independent of the others'; what several releases say about one is
put together by their precisions. So nothing is said twice, and every interaction has a strength of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import Marginal, Tree, leaves
from tacit.release.hypothesis.cell_weights import Array
from tacit.release.ranges.tree import node_counts

DEEPEST = 1000.0  # a tilt's limit, never met by answers that agree; lower ones stopped fits of little noise
LEAST_VARIANCE = 1 / 12  # counts are whole, so that no answer is taken for surer than that
LEAST_SHARE = 5e-5  # of the rows: finer differences are not worth a fit that never ends
_TINY = 1e-300
_ROUNDS = 100  # of Newton's iteration

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Interaction:
    """What is known of the interaction of some axes, which ascend: shares that sum to 0 along each of them.

    The noise is that of independent numbers of this variance, in shares squared, less its means along every axis.
    `apart` is how far the releases are from each other that it was put together of: squared, in their variances.
    """

    axes: Axes
    shares: Array
    variance: float
    releases: int = 1
    apart: float = 0.0

    @property
    def freedom(self) -> int:
        """How many numbers it is, as many as are free."""
        return math.prod(size - 1 for size in self.shares.shape)

    @property
    def reach(self) -> float:
        """How much of a table's own variance lies in it, at independence: the product of 1 - 1/size."""
        return float(math.prod(1 - 1 / size for size in self.shares.shape))


@dataclass(frozen=True, eq=False)
class Term:
    """Noisy shares of the rows: of groups of a table's cells, or a weighted mean of them.

    `axes` ascend. `weights` is for a mean of some weights over the table, `groups` has the number of each cell's group.
    The noise of each number has this variance, in shares squared.
    """

    key: str
    axes: Axes
    shares: Array
    variance: float
    weights: Array | None = None
    groups: NDArray[np.intp] | None = None

    def values(self, table: Array) -> Array:
        """What the term measures, of a distribution's table over its axes."""
        if self.groups is not None:
            sums = np.bincount(self.groups, weights=table.ravel(), minlength=self.shares.size)
            return np.asarray(sums, dtype=np.float64)
        assert self.weights is not None
        return np.asarray((table * self.weights).sum())

    def by_cell(self, tilts: Array) -> Array:
        """What tilts of the term's numbers add to the logarithm of every cell of its table."""
        if self.groups is not None:
            return np.asarray(tilts[self.groups])
        assert self.weights is not None
        return np.asarray(tilts * self.weights)

    def step(self, table: Array, tilts: Array, softness: float) -> tuple[Array, Array, float]:
        """The best tilts while all others stand still, the logarithms of the cells' factors, and of their normaliser.

        `softness` is s². A factor is exp(logarithm - normaliser).
        """
        if self.weights is None:
            best, normaliser = table_tilts(self.values(table), tilts, self.shares, softness)
            return best, self.by_cell(best - tilts), normaliser
        tilt = _query_tilt(table, self.weights, float(tilts), float(self.shares), softness)
        change = (tilt - float(tilts)) * self.weights
        return np.array(tilt), change, log_sum(np.log(np.maximum(table, _TINY)) + change)


def parts(table: Array) -> dict[tuple[int, ...], Array]:
    """A table as the sum of its interactions, by the places of their axes; () has the mean. Summed axes have length 1.

    >>> parts(np.array([[4.0, 2.0], [0.0, 2.0]]))[0, 1].tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    found: dict[tuple[int, ...], Array] = {(): table}
    for axis in range(table.ndim):
        split = dict[tuple[int, ...], Array]()
        for places, part in found.items():
            mean = part.mean(axis=axis, keepdims=True)
            split[places], split[(*places, axis)] = mean, part - mean
        found = split
    return found


def centred(table: Array) -> Array:
    """The interaction of all the axes of a table: its cells less their means along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def subsets(axes: Axes) -> list[Axes]:
    """All that are not empty, the fewest axes first."""
    return [some for size in range(1, len(axes) + 1) for some in combinations(axes, size)]


def interactions_of(
    measured: Iterable[Measured], domain: Domain, rows: int, order: Sequence[int]
) -> dict[Axes, Interaction]:
    """What releases of whole tables say of each interaction; `order` lists the domain's axes in the order of the fit.

    An interaction is kept only where all those within it are known.
    """
    said = dict[Axes, list[tuple[Array, float]]]()

    def add(axes: Axes, shares: Array, spread: float) -> None:
        said.setdefault(axes, []).append((centred(shares), spread))

    for one in measured:
        question, noise = one.question, max(variance(one.noise), LEAST_VARIANCE) / rows**2
        if isinstance(question, Residuals):
            for names, weight, values in _scopes(question, one.values, domain):
                axes, by_axis = _axes(names, domain, order)
                scale = weight * values.size
                add(axes, values.transpose(by_axis) / (scale * rows), noise / scale**2)
            continue
        table, names = _whole(one, domain)
        if table is None:
            continue
        axes, by_axis = _axes(names, domain, order)
        weight = question.weights[-1] if isinstance(question, Tree) else 1
        shares, spread = table.transpose(by_axis) / rows, noise / weight**2
        for some in subsets(axes):
            summed = shares.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in some))
            add(some, summed, spread * shares.size / summed.size)
    found = dict[Axes, Interaction]()
    for axes in sorted(said, key=lambda axes: (len(axes), axes)):
        if all(some in found for some in subsets(axes)[:-1]):
            found[axes] = _together(axes, said[axes], rows)
    return found


def _together(axes: Axes, said: Sequence[tuple[Array, float]], rows: int) -> Interaction:
    """What several releases say about one interaction, by their precisions."""
    precision = sum(1 / spread for _, spread in said)
    shares = np.asarray(sum(one / spread for one, spread in said) / precision)
    apart = sum(float(((one - shares) ** 2).sum()) / spread for one, spread in said)
    least = max(LEAST_VARIANCE / rows**2, LEAST_SHARE**2)
    return Interaction(axes, shares, max(1 / precision, least), len(said), apart)


def terms_of(measured: Iterable[Measured], domain: Domain, rows: int, order: Sequence[int]) -> list[Term]:
    """The terms of other linear questions: single ones, tables of some rows, and the coarse levels of trees.

    Answers to anything but linear questions say nothing about a distribution that a tilt could learn; they are left
    out.
    """
    terms: list[Term] = []
    for one in measured:
        if isinstance(one.question, Tree):
            terms += _coarse_levels(one, one.question, domain, rows, order)
            continue
        for i, query, share in singles(one, domain, rows):
            spread = spread_of(one.noise, one.unit, rows)
            terms.append(_single(f"{one.key}/{i}", query, share, spread, domain, order))
    return terms


def singles(one: Measured, domain: Domain, rows: int) -> Iterator[tuple[int, Query, float]]:
    """The single questions that a release answers, or the cells of a table of some rows: place, question and share."""
    question = one.question
    if isinstance(question, Query):
        queries = [question]
    elif isinstance(question, Marginal) and not question.where.is_everyone:
        queries = list(question.queries(domain))
    else:
        return
    for i, (query, value) in enumerate(zip(queries, one.values, strict=True)):
        if not query.fits(domain):
            raise InvalidQuery("an answer to be fitted was measured on another domain.")
        if not query.is_constant:
            yield i, query, float(value) / (one.unit * rows)


def spread_of(noise: Noise, unit: int, rows: int) -> float:
    """The variance of a noisy share whose count has `unit` steps; none is taken for surer than a fit can use."""
    return max(variance(noise) / (unit * rows) ** 2, LEAST_VARIANCE / rows**2, LEAST_SHARE**2)


def _scopes(question: Residuals, values: NDArray[np.int64], domain: Domain) -> list[tuple[tuple[str, ...], int, Array]]:
    """The attributes of each scope, its weight and its noisy answers."""
    shapes = [domain.shape_of(names) for names in question.scopes]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    cut = np.split(values.astype(np.float64), ends[:-1])
    return [
        (names, weight, part.reshape(shape))
        for names, weight, part, shape in zip(question.scopes, question.weights, cut, shapes, strict=True)
    ]


def _whole(one: Measured, domain: Domain) -> tuple[Array | None, tuple[str, ...]]:
    """The noisy counts of all cells of a table, where that is what was measured."""
    question = one.question
    if isinstance(question, Marginal) and question.where.is_everyone:
        return one.values.reshape(domain.shape_of(question.names)) / one.unit, question.names
    if isinstance(question, Tree) and leaves(domain[question.name]) == domain[question.name].size:
        return node_counts(one.values, question, domain[question.name].size)[-1], (question.name,)
    return None, ()


def _coarse_levels(one: Measured, tree: Tree, domain: Domain, rows: int, order: Sequence[int]) -> list[Term]:
    """Every level of a tree is a table of its own, coarser above: their noises are independent of each other."""
    size, axes = domain[tree.name].size, _axes((tree.name,), domain, order)[0]
    if leaves(domain[tree.name]) != size:
        return []  # several kinds of missing values share a leaf
    counts = zip(node_counts(one.values, tree, size), tree.spans(), tree.weights, strict=True)
    terms = []
    for level, (nodes, span, weight) in enumerate(counts):
        if span > 1:
            spread = spread_of(one.noise, weight, rows)
            terms.append(Term(f"{one.key}/{level}", axes, nodes / rows, spread, groups=np.arange(size) // span))
    return terms


def _single(key: str, query: Query, share: float, spread: float, domain: Domain, order: Sequence[int]) -> Term:
    axes, by_axis = _axes(query.scope, domain, order)
    table = query.table(query.scope, domain.shape_of(query.scope)) / query.unit
    return Term(key, axes, np.array(share), spread, np.ascontiguousarray(table.transpose(by_axis)))


def _axes(names: Sequence[str], domain: Domain, order: Sequence[int]) -> tuple[Axes, list[int]]:
    """Where the names stand in the fit, ascending, and how to transpose a table of them so."""
    places = [list(order).index(domain.names.index(name)) for name in names]
    by_axis = sorted(range(len(names)), key=lambda i: places[i])
    return tuple(places[i] for i in by_axis), by_axis


def interaction_step(
    table: Array, tilts: Mapping[Axes, Array], said: Array, axes: Axes, softness: Mapping[Axes, float]
) -> tuple[dict[Axes, Array], Array, float]:
    """Better tilts of all interactions within a table while all others stand still; the factors' logarithms likewise.

    `said` is the noisy table that they add up to. In the table's cells the dual's quadratic form has the eigenvalue
    s² of an interaction, times its cells to one of the table's. With the largest of these for all, the form only grows,
    and the maximum has the closed form of a table with independent noise: so a step never does worse, and is exact
    where all are equal (minorise and maximise).
    """
    sizes = dict(zip(axes, table.shape, strict=True))
    within = {some: tilts[some].reshape([sizes[i] if i in some else 1 for i in axes]) for some in subsets(axes)}
    bends = {some: softness[some] * part.size / table.size for some, part in within.items()}
    most = max(bends.values())
    before = np.zeros(table.shape)
    target = said.copy()
    for some, part in within.items():
        before += part
        if bends[some] < most:
            target += (most - bends[some]) * part
    best, normaliser = table_tilts(table, before, target, most)
    change = best - before
    moved = parts(change)
    found = {
        some: tilts[some] + moved[tuple(axes.index(i) for i in some)].reshape(tilts[some].shape) for some in within
    }
    return found, change, normaliser


def table_tilts(table: Array, tilts: Array, shares: Array, softness: float) -> tuple[Array, float]:
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
    """Wright's omega function: the w with w + ln w = value. Two of Fritsch's steps, of fourth order, from a near start.

    Written out, since scipy's takes longer to import than a short fit takes. Values below -700 count as -700.
    """
    within = np.maximum(values, -700.0)
    small = np.exp(np.minimum(within, 1.0))
    large = np.maximum(within, 1.0)
    found = np.where(within < 1.0, small / (1 + 0.63 * small), large - np.log(large))
    for _ in range(2):
        rest = within - found - np.log(found)
        step = rest / (1 + found)
        double = 2 * (1 + found) + 4 / 3 * rest
        found *= 1 + step * (double - step) / (double - 2 * step)
    return found


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
        tilted /= max(float(tilted.sum()), _TINY)
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
