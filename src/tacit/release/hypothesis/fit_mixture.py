"""The mixture of products that fits all released answers as well as their noise asks for. Post-processing.

`fit_mixture` minimises over weights w and laws p of a mixture of K products

    sum over noisy numbers y of (q(P) - y)² / (2 variance)  +  pull * sum over k of w_k KL(p_k || start),

with shares and variances of shares, where `start` makes the attributes independent. The second term is at least
pull * KL(P || start), since relative entropy is convex: the prior of `fit`, from above. It holds components back that
only noise asks for. The limit K on their number does most of that by itself, so that the pull is weak, and the same for
few rows as for many: on Adult with 14 attributes 100 was best, of 5 to 10,000, for 2,000, 5,000 and 48,842 rows.

All tables of one or two attributes are blocks of one matrix, sum over k of w_k p_k p_k', with the laws of all
attributes side by side in p_k: one product of matrices gives all of them, another the gradient. The minimum is looked
for by Adam (Kingma & Ba 2015) on logarithms, from a start drawn with a public seed; it is a local one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import Measured
from tacit.model.domain import Domain
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.strategy import Tree
from tacit.model.workload import Marginal
from tacit.release.hypothesis.dense import Array
from tacit.release.hypothesis.dense_gpu import room
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.hypothesis.mixture_gpu import OnCard
from tacit.release.hypothesis.terms import LEAST_SHARE, LEAST_VARIANCE, terms_of

COMPONENTS, STEPS, AGAIN = 200, 400, 60  # of a first fit, and steps of one that goes on from an earlier one
PULL = 100.0
SETTLED = 1.5  # times the number of noisy numbers: a larger misfit is not the noise's
_FAST, _SLOW = 0.1, 0.03  # the size of a step on logarithms, in a first fit and when going on
_MEMORY = (0.9, 0.99)  # Adam's
_LEAST = 0.5  # rows: no value starts with less
_FOR_A_CARD = 10**8  # multiplications of a step: a graphics card, where there is one, is faster from here on
Single = NDArray[np.float32]
Floats = NDArray[Any]  # single while looking for the minimum, double in the end
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture, the sum of squared residuals in standard deviations, and how many noisy numbers it was fitted to."""

    hypothesis: Mixture
    misfit: float
    numbers: int
    logits: Single
    log_weights: Single

    @property
    def settled(self) -> bool:
        """Whether what is left is about as large as the noise."""
        return self.misfit <= SETTLED * self.numbers


def fit_mixture(
    domain: Domain,
    measured: Iterable[Measured],
    rows: int,
    *,
    components: int = COMPONENTS,
    seed: int = 0,
    pull: float = PULL,
    steps: int | None = None,
    before: FittedMixture | None = None,
    progress: Progress | None = None,
) -> FittedMixture:
    """Fit released answers to linear questions; others say nothing here. With `before`, go on from an earlier fit."""
    problem = Problem(domain, list(measured), rows, pull)
    if before is None:
        rng = np.random.Generator(np.random.PCG64(seed))
        noise = rng.standard_normal((components, problem.width))
        logits, log_weights = (problem.start + noise).astype(np.float32), np.zeros(components, dtype=np.float32)
    else:
        logits, log_weights = before.logits.copy(), before.log_weights.copy()
    count = (STEPS if before is None else AGAIN) if steps is None else steps
    fast = _FAST if before is None else _SLOW
    sizes = [fast * min(1.0, 2 * (1 - step / count) + 0.02) for step in range(1, count + 1)]

    def done(step: int) -> None:
        if progress is not None:
            progress(step, count)

    if problem.width**2 * len(log_weights) >= _FOR_A_CARD and room():
        logits, log_weights = OnCard(problem).descend((logits, log_weights), sizes, _MEMORY, done)
    else:
        adam = [_Adam(logits), _Adam(log_weights)]
        for step, size in enumerate(sizes, 1):
            for one, slope in zip(adam, problem.slopes(logits, log_weights), strict=True):
                one.move(slope, size, step)
            done(step)
    shares = _softmax(log_weights.astype(np.float64)[None], [slice(0, len(log_weights))])[0]
    laws = _softmax(logits.astype(np.float64), problem.blocks)
    hypothesis = Mixture(domain, shares, [laws[:, block] for block in problem.blocks])
    return FittedMixture(hypothesis, problem.misfit(laws, shares), problem.numbers, logits, log_weights)


class _Adam:
    def __init__(self, values: Single) -> None:
        self.values, self.mean, self.square = values, np.zeros_like(values), np.zeros_like(values)

    def move(self, slope: Single, size: float, step: int) -> None:
        first, second = _MEMORY
        self.mean += (1 - first) * (slope - self.mean)
        self.square += (1 - second) * (slope * slope - self.square)
        spread = np.sqrt(self.square / np.float32(1 - second**step)) + np.float32(1e-12)
        self.values -= np.float32(size / (1 - first**step)) * self.mean / spread


class Problem:
    """The answers as one matrix of shares and precisions for all pairs, and what else there is one by one."""

    def __init__(self, domain: Domain, measured: Sequence[Measured], rows: int, pull: float) -> None:
        ends = np.concatenate([[0], np.cumsum(domain.shape)])
        self.blocks = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.width, self.rows, self.pull, self.names = int(ends[-1]), rows, pull, domain.names
        shares, precision = np.zeros((self.width, self.width)), np.zeros((self.width, self.width))
        self.tables: list[tuple[list[slice], Array, float]] = []
        self.singles: list[tuple[list[tuple[list[slice], Array]], float, float]] = []
        self.groups: list[tuple[slice, NDArray[np.intp], Array, float]] = []
        whole = [one for one in measured if _is_table(one)]
        for term in terms_of(whole, domain, rows, range(len(domain))):
            blocks, sure = [self.blocks[axis] for axis in term.axes], 1 / term.variance
            if term.groups is not None:
                self.groups.append((blocks[0], term.groups, term.shares, sure))
            elif len(blocks) > 2:
                self.tables.append((blocks, term.shares, sure))
            elif len(blocks) == 2:
                _pool(shares, precision, (blocks[0], blocks[1]), term.shares, sure)
                _pool(shares, precision, (blocks[1], blocks[0]), term.shares.T, sure)
            else:
                places = np.arange(blocks[0].start, blocks[0].stop)
                _pool(shares, precision, (places, places), term.shares, sure)
        for one in measured:
            if not _is_table(one):
                self._add_queries(domain, one)
        self.shares, self.precision = shares.astype(np.float32), precision.astype(np.float32)
        ones = np.count_nonzero(np.diag(precision))
        pairs = (np.count_nonzero(precision) - ones) // 2  # each stands there twice
        others = [*(table for _, table, _ in self.tables), *(table for _, _, table, _ in self.groups)]
        self.numbers: int = int(ones) + int(pairs) + sum(table.size for table in others) + len(self.singles)
        self.start = np.log(self._independent(shares, precision))

    def slopes(self, logits: Single, log_weights: Single) -> tuple[Single, Single]:
        """The gradient, by the logarithms."""
        laws = _softmax(logits, self.blocks)
        weights = _softmax(log_weights[None], [slice(0, len(log_weights))])[0]
        gap = self._gaps(laws, weights)
        ones = np.diag(gap).copy()
        np.fill_diagonal(gap, 0)
        ones += self._push_groups(weights @ laws)
        pushed = laws @ gap
        by_weight = (pushed * laws).sum(axis=1) / 2 + laws @ ones
        by_law = pushed + ones
        for blocks, table, sure in self.tables:
            self._push_table(blocks, table, sure, laws, weights, by_law, by_weight)
        for factors, share, sure in self.singles:
            self._push_single(factors, share, sure, laws, weights, by_law, by_weight)
        if self.pull:
            surprise = np.log(np.maximum(laws, np.float32(1e-30))) - self.start.astype(np.float32)
            by_law += np.float32(self.pull) * surprise
            by_weight += np.float32(self.pull) * (laws * surprise).sum(axis=1)
        slope = np.empty_like(laws)
        for block in self.blocks:
            own = laws[:, block] * by_law[:, block]
            slope[:, block] = weights[:, None] * (own - laws[:, block] * own.sum(axis=1, keepdims=True))
        return slope, weights * (by_weight - np.float32((weights * by_weight).sum()))

    def misfit(self, laws: Array, weights: Array) -> float:
        gap = self._gaps(laws, weights)
        squares = gap * gap / np.maximum(self.precision, np.float32(1e-30))
        total = float((squares.sum() + np.trace(squares)) / 2)
        for blocks, table, sure in self.tables:
            total += sure * float(((_joint(blocks, laws, weights) - table) ** 2).sum())
        marginals = weights @ laws
        for block, groups, table, sure in self.groups:
            total += sure * float(((np.bincount(groups, weights=marginals[block]) - table) ** 2).sum())
        for factors, share, sure in self.singles:
            means = np.prod([_factor_means(*factor, laws)[0] for factor in factors], axis=0)
            total += sure * float((weights * means).sum() - share) ** 2
        return total

    def _gaps(self, laws: Floats, weights: Floats) -> Floats:
        """Residuals of all pairs, and on the diagonal of single values, times their precision."""
        tables = (laws * weights[:, None]).T @ laws
        np.fill_diagonal(tables, weights @ laws)
        return np.asarray((tables - self.shares) * self.precision)

    def _push_groups(self, marginals: Floats) -> Floats:
        slope = np.zeros_like(marginals)
        for block, groups, table, sure in self.groups:
            gap = (np.bincount(groups, weights=marginals[block]) - table) * sure
            slope[block] += gap[groups].astype(slope.dtype)
        return slope

    def _push_table(
        self,
        blocks: list[slice],
        table: Array,
        sure: float,
        laws: Single,
        weights: Single,
        by_law: Single,
        by_weight: Single,
    ) -> None:
        gap = ((_joint(blocks, laws, weights) - table) * sure).astype(np.float32)
        for which, block in enumerate(blocks):
            others = [laws[:, other] for i, other in enumerate(blocks) if i != which]
            rest = np.moveaxis(gap, which, 0).reshape(gap.shape[which], -1)
            pushed = _khatri_rao(others) @ rest.T
            by_law[:, block] += pushed
            if which == 0:
                by_weight += (pushed * laws[:, block]).sum(axis=1)

    def _push_single(
        self,
        factors: list[tuple[list[slice], Array]],
        share: float,
        sure: float,
        laws: Single,
        weights: Single,
        by_law: Single,
        by_weight: Single,
    ) -> None:
        found = [_factor_means(blocks, table, laws) for blocks, table in factors]
        means = np.prod([mean for mean, _ in found], axis=0)
        gap = np.float32(sure * (float((weights * means).sum()) - share))
        by_weight += gap * means
        for i, (_, slopes) in enumerate(found):
            others = np.prod([mean for j, (mean, _) in enumerate(found) if j != i], axis=0) * np.ones_like(means)
            for block, slope in slopes:
                by_law[:, block] += gap * others[:, None] * slope

    def _add_queries(self, domain: Domain, one: Measured) -> None:
        question, steps = one.question, one.unit * self.rows
        sure = 1 / max(variance(one.noise) / steps**2, LEAST_VARIANCE / self.rows**2, LEAST_SHARE**2)
        if isinstance(question, Query):
            queries = [question]
        elif isinstance(question, Marginal):
            queries = list(question.queries(domain))
        else:
            return
        for query, value in zip(queries, one.values, strict=True):
            if not query.fits(domain):
                raise InvalidQuery("an answer to be fitted was measured on another domain.")
            if query.is_constant:
                continue
            share = float(value) / steps
            factors = [
                ([self._block(name) for name in factor.scope], np.asarray(factor.weights) / factor.unit)
                for factor in query.factors
            ]
            self.singles.append((factors, 1 - share if query.complement else share, sure))

    def _block(self, name: str) -> slice:
        return self.blocks[self.names.index(name)]

    def _independent(self, shares: Array, precision: Array) -> Array:
        """Each attribute as the table of it alone says, or the surest pair; uniform where none does."""
        start = np.empty(self.width)
        for block in self.blocks:
            size = block.stop - block.start
            own = np.full(size, 1 / size)
            pairs = [other for other in self.blocks if other != block and precision[block.start, other.start]]
            if precision[block.start, block.start]:
                own = np.diag(shares)[block]
            elif pairs:
                sizes = [(other.stop - other.start) / precision[block.start, other.start] for other in pairs]
                own = shares[block, pairs[int(np.argmin(sizes))]].sum(axis=1)
            own = np.maximum(own, _LEAST / self.rows)
            start[block] = own / own.sum()
        return start


def _is_table(one: Measured) -> bool:
    question = one.question
    return isinstance(question, Tree) or (isinstance(question, Marginal) and question.where.is_everyone)


def _pool(shares: Array, precision: Array, place: Any, table: Array, sure: float) -> None:
    """Take in a table where another of the same attributes may stand: the mean of both, by precision."""
    before = precision[place]
    shares[place] = (shares[place] * before + table * sure) / (before + sure)
    precision[place] = before + sure


def _softmax(logits: Floats, blocks: Sequence[slice]) -> Floats:
    laws = np.empty_like(logits)
    for block in blocks:
        own = np.exp(logits[:, block] - logits[:, block].max(axis=1, keepdims=True))
        laws[:, block] = own / own.sum(axis=1, keepdims=True)
    return laws


def _khatri_rao(laws: Sequence[Floats]) -> Floats:
    """For each component, the products of all values of several attributes, the last fastest."""
    rows = laws[0]
    for law in laws[1:]:
        rows = (rows[:, :, None] * law[:, None, :]).reshape(len(rows), -1)
    return rows


def _joint(blocks: Sequence[slice], laws: Floats, weights: Floats) -> Floats:
    """The mixture's table over some attributes."""
    flat = (_khatri_rao([laws[:, block] for block in blocks[:-1]]) * weights[:, None]).T @ laws[:, blocks[-1]]
    return np.asarray(flat.reshape([block.stop - block.start for block in blocks]))


def _factor_means(blocks: list[slice], table: Array, laws: Floats) -> tuple[Floats, list[tuple[slice, Floats]]]:
    """A factor's mean in each component, and its slope by each of the laws that it depends on."""
    table = table.astype(laws.dtype)
    slopes = []
    for which, block in enumerate(blocks):
        others = [laws[:, other] for i, other in enumerate(blocks) if i != which]
        rest = np.moveaxis(table, which, 0).reshape(table.shape[which], -1)
        slope = _khatri_rao(others) @ rest.T if others else np.broadcast_to(rest[:, 0], (len(laws), len(rest)))
        slopes.append((block, slope))
    first, slope = slopes[0]
    return (laws[:, first] * slope).sum(axis=1), slopes
