"""The distribution of most entropy that fits all released answers as well as their noise asks for. Post-processing.

`fit` minimises over distributions P on X

    sum over noisy numbers y of (n q(P) - y)² / (2 variance pull)  +  n * KL(P || start),

where `start` makes the attributes independent, each as it was measured, or is drawn to a public table (`prior`). By
Sanov's theorem the second term is minus the log-probability that n draws from `start` look like P, so that with
pull = 1 P is the most probable table given the answers. Real attributes depend on each other, which is what a pull
below 1 says; without any the fit would learn the noise. Each interaction (see `terms`) has a pull of its own, found
from what was released. How much farther it is from what those of fewer attributes foretell than its noise explains is
its energy e, a sum of squared shares, and the pull that expects just that is reach/(n e) (empirical Bayes: Efron &
Morris 1973). So pairs are fitted first, then triples on top of them; what drowns in noise is foretold by the rest, and
what stands out of it is fitted closely.

The minimum is found on the dual, by exact steps: see `terms`. Tables are gathered in clusters whose common table is
small: a sweep goes through all of X twice for each cluster, and works on the small tables otherwise. The result is a
function of its arguments, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.release.hypothesis.cell_weights import Array, Dense
from tacit.release.hypothesis.prior import LEAST, Drawn, Prior
from tacit.release.hypothesis.single import with_likely_singles
from tacit.release.hypothesis.terms import (
    Axes,
    Interaction,
    Term,
    centred,
    interaction_step,
    interactions_of,
    subsets,
    terms_of,
)

_SWEEPS = 15  # for each number of attributes
_CLOSE = 0.2  # standard deviations of the noise that the fit may still move
_LEAST_PULL = 2e-3  # below it noise alone asks for tilts beyond their limit
TERM_PULL = 1e-2  # of a single answer, or a level of a tree
_SPREAD = 2.0  # of the logarithms of energies
_DROWNED = 0.3  # deviations of the noise: the energy of an interaction that drowns in it, at least
_CLUSTERS = 2**16, 2**6  # cells of the table that some tables have in common, at most; or one for as many cells of X
_COARSE_ROUNDS = 8  # between a tree's coarse levels and the tables of its attribute, in each sweep
_FLOOR = 1e-250  # of a cell's share
_TINY = 1e-300

StepProgress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit, and what is needed to go on from it when more is known."""

    hypothesis: Dense
    pulls: Mapping[Axes, float]
    misfit: float  # squared residuals in units of the noise's variance, per noisy number
    sweeps: int
    moving: float  # standard deviations by which the last sweep found an answer misfitted
    tilts: Mapping[Axes, Array]
    term_tilts: Mapping[str, Array]

    @property
    def settled(self) -> bool:
        """Whether it fits: residuals of the size of their noise, and nothing moving any more to speak of."""
        return self.misfit <= 4 and self.moving <= 5


def fit(
    domain: Domain,
    measured: Iterable[Measured],
    rows: int,
    *,
    prior: Prior | None = None,
    pull: float | None = None,
    before: Fitted | None = None,
    sweeps: int = _SWEEPS,
    close: float = _CLOSE,
    progress: StepProgress | None = None,
) -> Fitted:
    """Fit released answers: whole tables, residuals, trees, single questions and lists, each with its noise.

    A fit goes through all cells, of which there are at most `MAX_LISTED_CELLS`. With a `prior` it starts from what that
    says. By default pulls are found from the answers. `before` is an earlier fit of some of the answers: the new one
    starts there and is soon done. `progress` is told how many sweeps are done, and of how many at most.
    """
    order = axis_order(domain)
    known = list(measured)
    interactions, terms = interactions_of(known, domain, rows, order), terms_of(known, domain, rows, order)
    shape = tuple(domain.shape[axis] for axis in order)
    drawn = None if prior is None else Drawn.of(prior, domain, order, interactions, rows)
    if drawn is not None:
        interactions = dict(drawn.interactions)
    released = interactions, terms
    if drawn is None:
        interactions, terms = with_likely_singles(interactions, terms, domain, order, rows)
    ascent = _Ascent(shape, interactions, terms, rows, before, drawn)
    if pull is not None:
        ascent.term_pull = pull
    elif before is not None:
        ascent.pulls |= before.pulls
    elif drawn is not None:
        ascent.pulls |= {pair: max(_LEAST_PULL, 1 / (rows * rest)) for pair, rest in drawn.rests.items()}
    stages = _stages(interactions, new=before is None and pull is None)
    done, moving = 0, math.inf
    for stage, axes in enumerate(stages):
        ascent.choose_pulls(axes, pull)
        ascent.active = [one for some in stages[: stage + 1] for one in some]
        ascent.clusters = _clusters([*ascent.active, *(term.axes for term in terms)], shape)
        for _ in range(sweeps):
            moving = ascent.sweep()
            done += 1
            if progress is not None:
                progress(done, sweeps * len(stages))
            if moving <= close:
                break
    if progress is not None:
        progress(sweeps * len(stages), sweeps * len(stages))
    numbers = sum(one.freedom * one.releases for one in released[0].values())
    numbers += sum(term.shares.size for term in released[1])
    return Fitted(
        hypothesis=Dense(domain, ascent.cells.transpose(np.argsort(order))),
        pulls=ascent.pulls,
        misfit=ascent.misfit(*released) / max(1, numbers),
        sweeps=done,
        moving=moving,
        tilts=ascent.tilts,
        term_tilts=ascent.term_tilts,
    )


def axis_order(domain: Domain) -> list[int]:
    """The domain's axes in the order that a fit has them: long ones last, as numpy likes it."""
    return sorted(range(len(domain)), key=lambda axis: (domain.shape[axis], axis))


def _stages(interactions: Iterable[Axes], *, new: bool) -> list[list[Axes]]:
    """What is fitted together: single attributes and pairs, then triples on top of them, and so on."""
    known = list(interactions)
    sizes = sorted({max(2, len(axes)) for axes in known}) if new else [0]
    if len(sizes) <= 1:
        return [known]
    return [[axes for axes in known if max(2, len(axes)) == size] for size in sizes]


class _Ascent:
    """The distribution start * exp(sum of tilts) / normaliser, and steps on the tilts."""

    def __init__(
        self,
        shape: tuple[int, ...],
        interactions: Mapping[Axes, Interaction],
        terms: Sequence[Term],
        rows: int,
        before: Fitted | None,
        drawn: Drawn | None,
    ) -> None:
        self.shape, self.interactions, self.terms, self.rows, self._drawn = shape, interactions, terms, rows, drawn
        self.tilts = {axes: np.zeros(one.shares.shape) for axes, one in interactions.items()}
        self.term_tilts = {term.key: np.zeros(term.shares.shape) for term in terms}
        if before is not None:
            self.tilts |= {axes: tilts for axes, tilts in before.tilts.items() if axes in interactions}
            self.term_tilts |= {key: tilts for key, tilts in before.term_tilts.items() if key in self.term_tilts}
        self.pulls: dict[Axes, float] = {}
        self.term_pull = TERM_PULL
        self.active: list[Axes] = []
        self.clusters: list[tuple[Axes, list[int]]] = []
        self._said = {axes: self._table(axes) for axes in interactions}
        self._rebuild()

    def choose_pulls(self, some: Sequence[Axes], given: float | None) -> None:
        """A pull for each interaction that has none, by how far it is from what the distribution foretells by now."""
        new = [self.interactions[axes] for axes in some if axes not in self.pulls]
        for one in new:
            self.pulls[one.axes] = _LEAST_PULL if given is None else given
        new = [one for one in new if given is None and len(one.axes) > 1]
        beyond = [float(((one.shares - centred(self._of(one.axes))) ** 2).sum()) / one.reach for one in new]
        noise = [one.freedom * one.variance / one.reach for one in new]
        for one, energy in zip(new, _energies(beyond, noise, [one.freedom for one in new]), strict=True):
            self.pulls[one.axes] = max(_LEAST_PULL, 1 / (self.rows * energy))

    def sweep(self) -> float:
        """Every step once. How far the worst answer was from where its tilt puts it, in standard deviations."""
        worst = 0.0
        everything = range(len(self.shape))
        for cluster, members in self.clusters:
            before = _sum(self.cells, everything, cluster)
            now = before.copy()
            inside = [self.active[i] for i in members if i < len(self.active)]
            terms = [self.terms[i - len(self.active)] for i in members if i >= len(self.active)]
            single = [axes for axes in self.active if len(axes) == 1 and set(axes) <= set(cluster)]
            for axes in dict.fromkeys([*single, *sorted(inside, key=lambda axes: (len(axes), axes))]):
                worst = max(worst, self._fit_interaction(now, cluster, axes))
            for term in terms:
                worst = max(worst, self._fit_term(now, cluster, term))
                for _ in range(_COARSE_ROUNDS if term.groups is not None else 0):
                    self._fit_interaction(now, cluster, term.axes)  # a level of a tree pulls against its own leaves
                    self._fit_term(now, cluster, term)
            self.cells *= _spread(now / np.maximum(before, _TINY), cluster, everything)
            np.maximum(self.cells, _FLOOR, out=self.cells)  # so that no cell is stuck at 0
            self.cells /= self.cells.sum()
        return worst

    def misfit(self, interactions: Mapping[Axes, Interaction], terms: Sequence[Term]) -> float:
        """Squared residuals of what was released, in units of the noise's variance."""
        found = 0.0
        for axes, one in interactions.items():
            found += float(((one.shares - centred(self._of(axes))) ** 2).sum()) / one.variance + one.apart
        for term in terms:
            found += float(((term.values(self._of(term.axes)) - term.shares) ** 2).sum()) / term.variance
        return found

    def _fit_interaction(self, now: Array, cluster: Axes, axes: Axes) -> float:
        """The step of a table's interactions, in place; how far off its own was, in standard deviations."""
        one, table = self.interactions[axes], _sum(now, cluster, axes)
        softness = {some: self._softness(some) for some in subsets(axes)}
        gap = np.abs(centred(table) - one.shares + softness[axes] * self.tilts[axes]).max()
        moved, change, normaliser = interaction_step(table, self.tilts, self._said[axes], axes, softness)
        self.tilts |= moved
        now *= _spread(np.exp(change - normaliser), axes, cluster)
        return float(gap) / math.sqrt(one.variance)

    def _fit_term(self, now: Array, cluster: Axes, term: Term) -> float:
        """The exact step of one term, in place; how far off it was, in standard deviations."""
        softness = self.term_pull * self.rows * term.variance
        table, tilts = _sum(now, cluster, term.axes), self.term_tilts[term.key]
        gap = np.abs(term.values(table) - (term.shares - softness * tilts)).max()
        self.term_tilts[term.key], change, normaliser = term.step(table, tilts, softness)
        now *= _spread(np.exp(change - normaliser), term.axes, cluster)
        return float(gap) / math.sqrt(term.variance)

    def _softness(self, axes: Axes) -> float:
        """s² of the dual, where the objective is divided by n."""
        return self.pulls[axes] * self.rows * self.interactions[axes].variance

    def _table(self, axes: Axes) -> Array:
        """The noisy table that the interactions within some axes add up to."""
        shape = [self.shape[axis] for axis in axes]
        table = np.full(shape, 1 / math.prod(shape))
        for some in subsets(axes):
            part = self.interactions[some].shares
            table += _spread(part, some, axes) * (part.size / table.size)
        return table

    def _of(self, axes: Axes) -> Array:
        return _sum(self.cells, range(len(self.shape)), axes)

    def _rebuild(self) -> None:
        """The cells from the start and the tilts: cluster by cluster, so that X is gone through once for each."""
        self.cells = self._start() if self._drawn is None else self._drawn.cells()
        everything = range(len(self.shape))
        tilted = [(axes, self.tilts[axes]) for axes in self.interactions if self.tilts[axes].any()]
        own = [(term, self.term_tilts[term.key]) for term in self.terms]
        tilted += [(term.axes, term.by_cell(tilts)) for term, tilts in own if tilts.any()]
        for cluster, members in _clusters([axes for axes, _ in tilted], self.shape):
            tilts = np.zeros([self.shape[axis] for axis in cluster])
            for i in members:
                tilts += _spread(tilted[i][1], tilted[i][0], cluster)
            self.cells *= _spread(np.exp(tilts - tilts.max(initial=0.0)), cluster, everything)
            np.maximum(self.cells, _FLOOR, out=self.cells)
            self.cells /= self.cells.sum()

    def _start(self) -> Array:
        """Independent attributes, each as it was measured, and uniform where it was not."""
        cells = np.ones(self.shape)
        for axis, size in enumerate(self.shape):
            share = np.full(size, 1 / size)
            if (axis,) in self.interactions:
                share = np.maximum(share + self.interactions[axis,].shares, LEAST / self.rows)
            cells *= _spread(share / share.sum(), (axis,), range(len(self.shape)))
        return cells


def _energies(beyond: Sequence[float], noise: Sequence[float], freedom: Sequence[int]) -> list[float]:
    """The energies to expect of interactions, from their squared distances and what noise has of these on average.

    A distance is energy and noise, nearly normal around their sum; energies are log-normal around a common middle.
    """
    if not beyond:
        return []
    seen, noises, free = (np.array(one, dtype=np.float64) for one in (beyond, noise, freedom))
    deviations = np.sqrt(2 / free) * noises
    common = math.exp(float(np.log(np.maximum(seen - noises, np.maximum(_DROWNED * deviations, _TINY))).mean()))
    grid = common * np.exp(_SPREAD * np.linspace(-4, 4, 65))
    spread = np.sqrt(2 / free)[:, None] * (noises[:, None] + grid)
    logs = (
        -(((seen - noises)[:, None] - grid) ** 2) / (2 * spread**2) - np.log(spread) - np.linspace(-4, 4, 65) ** 2 / 2
    )
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return [float(one) for one in (chances * grid).sum(axis=1) / chances.sum(axis=1)]


def _clusters(scopes: Sequence[Axes], shape: tuple[int, ...]) -> list[tuple[Axes, list[int]]]:
    """Every scope in one cluster of axes; clusters grow by the cheapest axes that take in another."""

    def cells(axes: Iterable[int]) -> int:
        return math.prod(shape[axis] for axis in axes)

    most = max(_CLUSTERS[0], cells(range(len(shape))) // _CLUSTERS[1])
    waiting = sorted(range(len(scopes)), key=lambda i: (-cells(scopes[i]), i))
    clusters = []
    while waiting:
        union = set(scopes[waiting[0]])
        while True:
            outside = {scopes[i] for i in waiting if not set(scopes[i]) <= union}
            wider = [(cells(union | set(scope)), scope) for scope in outside]
            fitting = [one for one in wider if one[0] <= most]
            if not fitting:
                break
            union |= set(min(fitting)[1])
        members = [i for i in waiting if set(scopes[i]) <= union]
        waiting = [i for i in waiting if not set(scopes[i]) <= union]
        clusters.append((tuple(sorted(union)), members))
    return clusters


def _sum(array: Array, axes: Sequence[int], kept: Sequence[int]) -> Array:
    """A table over `axes`, summed over those that are not kept."""
    return np.asarray(array.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in kept)))


def _spread(table: Array, axes: Axes, over: Sequence[int]) -> Array:
    """A table with an axis of length 1 for each that it does not have."""
    sizes = dict(zip(axes, table.shape, strict=True))
    return table.reshape([sizes.get(axis, 1) for axis in over])
