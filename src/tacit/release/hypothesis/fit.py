"""The distribution of most entropy that fits all released answers as well as their noise asks for. Post-processing.

`fit` minimises over distributions P on X

    sum over noisy numbers y of (n q(P) - y)² / (2 variance)  +  pull * n * KL(P || start),

where `start` makes the attributes independent, each as it was measured. By Sanov's theorem the second term with
pull = 1 is minus the log-probability that n draws from `start` look like P, so that P is the most probable table given
the answers. Real attributes depend on each other, which is what a pull below 1 says; without any pull the fit would
learn the noise. The default pull is found by the evidence of the answers themselves (MacKay 1992, Bayesian
interpolation): where noise and pull are both of the right size, twice the minimum is as large as the number of noisy
numbers. That number grows with the pull at the rate 2 n KL, so it is met once.

The minimum is found on the dual, by exact steps: see `terms`. Tables that share attributes disagree about them, and
settling that table by table is slow, so that each sweep first lets all tables with some attributes in common agree on
these in one exact step of its own. Tables are gathered in clusters whose common table is small: a sweep goes through
all of X twice for each cluster, and works on the small tables otherwise. The result is a function of its arguments, to
the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.release.hypothesis.dense import MAX_CELLS, Array, Dense
from tacit.release.hypothesis.terms import DEEPEST, Term, omega, solve_normaliser, terms_of

SWEEPS = 40
CLOSE = 0.05  # standard deviations of the noise that the fit may still move
PULLS = (1e-3, 1.0)  # where the evidence looks for a pull
_FIRST_PULL = 0.01
_FAR = 10  # standard deviations: answers that agree are not farther off
_SETTLED = 0.02  # relative change of the pull
_CLUSTER = 2**16  # cells of the table that some tables have in common
_COARSE_ROUNDS = 8  # between a tree's coarse levels and the tables of its attribute, in each sweep
_LEAST = 0.5  # rows: no value of an attribute is ruled out before the start
_FLOOR = 1e-250  # of a cell's share
_TINY = 1e-300

Progress = Callable[[int, int], None]
Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit, and what is needed to go on from it when more is known."""

    hypothesis: Dense
    pull: float
    misfit: float  # squared residuals in units of the noise's variance, per noisy number
    sweeps: int
    moving: float  # standard deviations by which the last sweep found an answer misfitted
    tilts: Mapping[str, Array]

    @property
    def settled(self) -> bool:
        """Whether it fits: residuals of the size of their noise, and nothing moving any more to speak of."""
        return self.misfit <= 4 and self.moving <= 5


def fit(
    domain: Domain,
    measured: Iterable[Measured],
    rows: int,
    *,
    pull: float | None = None,
    before: Fitted | None = None,
    sweeps: int = SWEEPS,
    close: float = CLOSE,
    progress: Progress | None = None,
) -> Fitted:
    """Fit released answers: whole tables, trees, single questions, prefixes, intervals and lists, each with its noise.

    By default `pull` is found from the answers. `before` is an earlier fit of some of the answers: the new one starts
    there and is soon done. `progress` is told how many sweeps are done, and of how many at most.
    """
    if domain.size > MAX_CELLS:
        raise InvalidDomain(f"the domain has {domain.size:,} cells; a fit goes through at most {MAX_CELLS:,} of them.")
    check_pull(pull)
    if rows < 1 or sweeps < 1 or not close > 0:
        raise InvalidQuery("a fit has rows, at least one sweep, and a distance above 0 at which it stops.")
    order = sorted(range(len(domain)), key=lambda axis: (domain.shape[axis], axis))  # long axes last: numpy likes that
    terms = terms_of(measured, domain, rows, order)
    shape = tuple(domain.shape[axis] for axis in order)
    old = {} if before is None else dict(before.tilts)
    ascent = _Ascent(shape, terms, rows, old)
    least = _least_pull(terms, rows)
    chosen = pull if pull is not None else max(least, _FIRST_PULL if before is None else before.pull)
    settled, moving, done = pull is not None, math.inf, 0
    for done in range(1, sweeps + 1):
        moving = ascent.sweep(chosen)
        if progress is not None:
            progress(done, sweeps)
        if not terms or (settled and moving <= close):
            break
        if pull is None and (done % 2 == 0 or moving <= close):
            better = max(least, ascent.evidence(chosen))
            settled = abs(math.log(better / chosen)) <= _SETTLED
            chosen = chosen if settled else better
            if settled and moving <= close:
                break
    if progress is not None and done < sweeps:
        progress(sweeps, sweeps)
    back = np.argsort(order)
    numbers = sum(term.shares.size for term in terms)
    return Fitted(
        hypothesis=Dense(domain, ascent.cells.transpose(back)),
        pull=chosen,
        misfit=ascent.misfit() / max(1, numbers),
        sweeps=done,
        moving=moving,
        tilts={term.key: tilts for term, tilts in zip(terms, ascent.tilts, strict=True)},
    )


def _least_pull(terms: Sequence[Term], rows: int) -> float:
    """A pull below which noise alone would ask for tilts beyond their limit.

    Tables that share attributes disagree about them by their noise, which no distribution fits: a residual of z
    standard deviations, each of s rows, has the tilt z/(pull s).
    """
    sure = min((math.sqrt(term.variance) * rows for term in terms), default=math.inf)
    return max(PULLS[0], min(PULLS[1], _FAR / (DEEPEST * sure)))


def check_pull(pull: float | None) -> None:
    if pull is not None and not 1e-6 <= pull <= 1e6:
        raise InvalidQuery(f"a pull is a number from 1e-6 to 1e6, not {pull}.")


class _Ascent:
    """The distribution start * exp(sum of tilts) / normaliser, and exact steps on the tilts."""

    def __init__(self, shape: tuple[int, ...], terms: Sequence[Term], rows: int, old: Mapping[str, Array]) -> None:
        self.shape, self.terms, self.rows = shape, terms, rows
        self.tilts = [old.get(term.key, np.zeros(term.shares.shape)) for term in terms]
        self.clusters = _clusters([term.axes for term in terms], shape)
        self.pools = _pools([term.axes for term in terms if term.whole])
        self._rebuild()

    def sweep(self, pull: float) -> float:
        """Every step once. How far the worst answer was from where its tilt puts it, in standard deviations."""
        worst = 0.0
        for axes, members in self.clusters:
            before = _sum(self.cells, range(len(self.shape)), axes)
            now = before.copy()
            for common in self.pools:
                if set(common) <= set(axes):
                    self._agree(now, axes, common, pull)
                    coarse = [i for i, term in enumerate(self.terms) if term.groups is not None and term.axes == common]
                    for _ in range(_COARSE_ROUNDS if coarse else 0):  # levels of a tree pull against their own leaves
                        for i in coarse:
                            self._step(now, axes, i, pull)
                        self._agree(now, axes, common, pull)
            for i in members:
                worst = max(worst, self._step(now, axes, i, pull))
            self.cells *= _spread(now / np.maximum(before, _TINY), axes, range(len(self.shape)))
            np.maximum(self.cells, _FLOOR, out=self.cells)  # so that no cell is stuck at 0
            self._normalise()
        return worst

    def _step(self, now: Array, axes: Axes, i: int, pull: float) -> float:
        """The exact step of one term, in place; how far off it was, in standard deviations."""
        term, softness = self.terms[i], self._softness(self.terms[i], pull)
        table = _sum(now, axes, term.axes)
        gap = np.abs(term.values(table) - (term.shares - softness * self.tilts[i])).max()
        self.tilts[i], change, normaliser = term.step(table, self.tilts[i], softness)
        now *= _spread(np.exp(change - normaliser), term.axes, axes)
        self.normaliser += normaliser
        return float(gap) / math.sqrt(term.variance)

    def evidence(self, pull: float) -> float:
        """A better pull: a step of Newton's iteration, on logarithms, towards 2 * objective = number of answers."""
        tables = self._tables()
        misfit = self.misfit(tables)
        # KL(P || start) = E_P of the summed tilts, less the logarithm of the normaliser
        terms = zip(self.terms, self.tilts, tables, strict=True)
        linear = sum(float((tilts * term.values(table)).sum()) for term, tilts, table in terms)
        prior = 2 * pull * self.rows * max(linear - self.normaliser, 0.0)
        numbers = sum(term.shares.size for term in self.terms)
        step = math.log(numbers / max(misfit + prior, _TINY)) * (misfit + prior) / max(prior, _TINY)
        return min(PULLS[1], max(PULLS[0], pull * math.exp(min(2.0, max(-2.0, step)))))

    def misfit(self, tables: Sequence[Array] | None = None) -> float:
        tables = self._tables() if tables is None else tables
        terms = zip(self.terms, tables, strict=True)
        return float(sum(((term.values(table) - term.shares) ** 2).sum() / term.variance for term, table in terms))

    def _agree(self, now: Array, axes: Axes, common: Axes, pull: float) -> None:
        """The exact step in which all tables that hold `common` add a tilt of these attributes alone to their own.

        Each then says `share` of them with a spread of its own, s² times its cells to one of theirs; what they say
        together is one table, fitted by the same closed form.
        """
        table = _sum(now, axes, common)
        parts = []
        linear, weight = np.zeros(table.shape), 0.0
        for i, term in enumerate(self.terms):
            if term.whole and set(common) <= set(term.axes):
                softness = self._softness(term, pull)
                said = _sum(term.shares - softness * self.tilts[i], term.axes, common)
                spread = softness * term.shares.size / table.size
                parts.append((i, said, spread))
                linear, weight = linear + said / spread, weight + 1 / spread
        base = np.log(np.maximum(table, _TINY)) + math.log(weight) + linear
        normaliser = solve_normaliser(base, 1 / weight)
        share = omega(base - normaliser) / weight
        moved = [
            self.tilts[i] + _spread((said - share) / spread, common, self.terms[i].axes) for i, said, spread in parts
        ]
        if any(np.abs(tilts).max() > 2 * DEEPEST for tilts in moved):
            return  # answers far beyond their noise: the tables' own steps, which are bounded, settle it
        for (i, _, _), tilts in zip(parts, moved, strict=True):
            self.tilts[i] = tilts
        now *= _spread(np.exp(linear - weight * share - normaliser), common, axes)
        self.normaliser += normaliser

    def _softness(self, term: Term, pull: float) -> float:
        """s² of the dual, where the objective is divided by pull * n."""
        return pull * self.rows * term.variance

    def _tables(self) -> list[Array]:
        tables: dict[int, Array] = {}
        for axes, members in self.clusters:
            now = _sum(self.cells, range(len(self.shape)), axes)
            tables |= {i: _sum(now, axes, self.terms[i].axes) for i in members}
        return [tables[i] for i in range(len(self.terms))]

    def _rebuild(self) -> None:
        """The cells from the start and the tilts: cluster by cluster, so that X is gone through once for each."""
        self.cells = np.ones(self.shape)
        for axis, share in enumerate(self._start()):
            self.cells *= _spread(share, (axis,), range(len(self.shape)))
        self.normaliser = 0.0
        for axes, members in self.clusters:
            tilts = np.zeros([self.shape[axis] for axis in axes])
            for i in members:
                term = self.terms[i]
                tilts += _spread(term.by_cell(self.tilts[i]), term.axes, axes)
            highest = float(tilts.max(initial=0.0))
            self.cells *= _spread(np.exp(tilts - highest), axes, range(len(self.shape)))
            np.maximum(self.cells, _FLOOR, out=self.cells)
            self.normaliser += highest
            self._normalise()

    def _start(self) -> list[Array]:
        """Each attribute as the surest table that holds it says, and uniform where none does."""
        shares = []
        for axis, size in enumerate(self.shape):
            holding = [term for term in self.terms if term.whole and axis in term.axes]
            share = np.full(size, 1 / size)
            if holding:
                surest = min(holding, key=lambda term: term.variance * term.shares.size)
                share = np.maximum(_sum(surest.shares, surest.axes, (axis,)), _LEAST / self.rows)
            shares.append(share / share.sum())
        return shares

    def _normalise(self) -> None:
        total = float(self.cells.sum())
        if abs(total - 1) > 1e-12:
            self.cells /= total
            self.normaliser += math.log(total)


def _clusters(scopes: Sequence[Axes], shape: tuple[int, ...]) -> list[tuple[Axes, list[int]]]:
    """Every term in one cluster of axes; clusters grow by the cheapest axes that take in another term."""

    def cells(axes: Iterable[int]) -> int:
        return math.prod(shape[axis] for axis in axes)

    waiting = sorted(range(len(scopes)), key=lambda i: (-cells(scopes[i]), i))
    clusters = []
    while waiting:
        union = set(scopes[waiting[0]])
        while True:
            outside = {scopes[i] for i in waiting if not set(scopes[i]) <= union}
            wider = [(cells(union | set(scope)), scope) for scope in outside]
            fitting = [one for one in wider if one[0] <= _CLUSTER]
            if not fitting:
                break
            union |= set(min(fitting)[1])
        members = [i for i in waiting if set(scopes[i]) <= union]
        waiting = [i for i in waiting if not set(scopes[i]) <= union]
        clusters.append((tuple(sorted(union)), members))
    return clusters


def _pools(scopes: Sequence[Axes]) -> list[Axes]:
    """What two tables have in common, the fewest attributes first."""
    common = {tuple(sorted(set(a) & set(b))) for a, b in combinations(scopes, 2)}
    return sorted(common - {()}, key=lambda axes: (len(axes), axes))


def _sum(array: Array, axes: Sequence[int], kept: Sequence[int]) -> Array:
    """A table over `axes`, summed over those that are not kept."""
    return np.asarray(array.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in kept)))


def _spread(table: Array, axes: Axes, over: Sequence[int]) -> Array:
    """A table with an axis of length 1 for each that it does not have."""
    sizes = dict(zip(axes, table.shape, strict=True))
    return table.reshape([sizes.get(axis, 1) for axis in over])
