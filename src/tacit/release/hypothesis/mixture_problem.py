"""What released answers ask of a mixture of products: how far it is off, and the slope of that. Post-processing.

Called by `fit_mixture`, which says what is minimised. All tables of one or two attributes are blocks of one matrix, sum
over k of w_k p_k p_k', with the laws of all attributes side by side in p_k: one product of matrices gives all of them,
another the gradient. Tables of three and more cost a product each, so a step looks at some of them, which take turns
and stand for all. What releases of tables say is taken apart into interactions, as in `terms`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.query import Query
from tacit.model.workload import Tree
from tacit.release.hypothesis.arrays import MEMORY, Device
from tacit.release.hypothesis.cell_weights import Array
from tacit.release.hypothesis.prior import LEAST, Drawn, Prior
from tacit.release.hypothesis.single import with_likely_singles
from tacit.release.hypothesis.terms import (
    Axes,
    Interaction,
    centred,
    interactions_of,
    singles,
    spread_of,
    terms_of,
)

PULL, _LEAST_PULL = 32.0, 100.0  # times the noise's energy to the power of -1/4; and where no pair was measured
_AT_A_TIME, _CELLS_AT_A_TIME = 12, 2**15  # tables of three and more in a step, and about how many cells they have
AnyArray = Any  # an array of its device: single while looking for the minimum, double in the end


class _Table(NamedTuple):
    """The noisy interaction of three attributes or more, each of its numbers with the precision `sure`."""

    blocks: list[slice]
    shares: AnyArray
    sure: float


class _Level(NamedTuple):
    """Noisy shares of groups of an attribute's values: a level of a tree."""

    block: slice
    groups: Any
    shares: AnyArray
    sure: float


class _Factor(NamedTuple):
    """Weights over the values of some attributes."""

    blocks: list[slice]
    weights: AnyArray


class _Question(NamedTuple):
    """The noisy share of a product of factors."""

    factors: list[_Factor]
    share: float
    sure: float


class Problem:
    """The answers as one matrix of shares and precisions for all pairs, and what else there is one by one."""

    def __init__(
        self,
        domain: Domain,
        measured: Sequence[Measured],
        rows: int,
        *,
        pull: float | None = None,
        device: Device = MEMORY,
        prior: Prior | None = None,
    ) -> None:
        """`pull`: by default it follows from the noise."""
        ends = np.concatenate([[0], np.cumsum(domain.shape)])
        self.blocks = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self.width, self.rows, self.names, self.device = int(ends[-1]), rows, domain.names, device
        # Single attributes stand on the diagonal, where a pair of an attribute with itself would.
        shares, pairs = np.zeros((2, self.width, self.width))
        own, ones = self._uniform(), np.zeros(self.width)
        self.tables: list[_Table] = []
        self.levels: list[_Level] = []
        self.questions: list[_Question] = []
        self.numbers, self.apart = 0, 0.0
        everything = range(len(domain))
        interactions = interactions_of(measured, domain, rows, everything)
        self.pull = _pull(interactions) if pull is None else pull  # by what was measured: a prior has no noise
        levels = terms_of([one for one in measured if isinstance(one.question, Tree)], domain, rows, everything)
        if prior is not None:
            interactions = Drawn.of(prior, domain, everything, interactions, rows).with_pairs()
        else:
            interactions, levels = with_likely_singles(interactions, levels, domain, everything, rows)
        for axes, known in interactions.items():
            blocks, sure = [self.blocks[axis] for axis in axes], 1 / known.variance
            if len(blocks) > 2:
                # The attribute of most values last: what is put together of the others is smallest then.
                order = np.argsort(known.shares.shape, kind="stable").tolist()
                held = device.hold(known.shares.transpose(order), "float32")
                self.tables.append(_Table([blocks[place] for place in order], held, sure))
            elif len(blocks) == 2:
                first, second = blocks
                shares[first, second], shares[second, first] = known.shares, known.shares.T
                pairs[first, second] = pairs[second, first] = sure
            else:
                own[blocks[0]] += known.shares
                ones[blocks[0]] = sure
            self.numbers += known.freedom * known.releases
            self.apart += known.apart
        for term in levels:
            assert term.groups is not None
            block, groups, counted = self.blocks[term.axes[0]], device.hold(term.groups), device.hold(term.shares)
            self.levels.append(_Level(block, groups, counted, 1 / term.variance))
            self.numbers += term.shares.size
        for one in measured:
            sure = 1 / spread_of(one.noise, one.unit, rows)
            self.questions += [self._question(query, share, sure) for _, query, share in singles(one, domain, rows)]
        self.numbers += len(self.questions)
        self.start = np.log(self._independent(own))
        self._flat = device.hold(self._uniform(), "float32")
        self._shares, self._pairs = device.hold(shares, "float32"), device.hold(pairs, "float32")
        self._own, self._ones = device.hold(own, "float32"), device.hold(ones, "float32")
        self._start = device.hold(self.start, "float32")

    def turns(self, rng: np.random.Generator) -> Iterator[list[_Table]]:
        """The tables of three and more that each step looks at: all of them once, and then again in another order."""
        many = len(self.tables)
        cells = sum(math.prod(table.shares.shape) for table in self.tables)
        some = min(many, _AT_A_TIME, max(1, _CELLS_AT_A_TIME * many // max(1, cells)))
        order: list[int] = []
        while True:
            if len(order) < some:
                order += rng.permutation(many).tolist() if some < many else range(many)
            yield [self.tables[place] for place in order[:some]]
            del order[:some]

    def slopes(self, logits: AnyArray, log_weights: AnyArray, tables: Sequence[_Table]) -> tuple[AnyArray, AnyArray]:
        """The gradient, by the logarithms, of half the misfit plus the pull. These tables stand for all."""
        xp = self.device.xp
        laws = softmax(xp, logits, self.blocks)
        weights = softmax(xp, log_weights[None], [slice(0, len(log_weights))])[0]
        gap, ones = self._gaps(laws, weights)
        self._push_levels(weights @ laws, ones)
        pushed = laws @ gap
        by_weight = (pushed * laws).sum(axis=1) / 2 + laws @ ones
        by_law = pushed + ones
        for table in tables:
            self._push_table(table, len(self.tables) / len(tables), laws, weights, by_law, by_weight)
        for question in self.questions:
            self._push_question(question, laws, weights, by_law, by_weight)
        if self.pull:
            surprise = xp.log(laws.clip(1e-30)) - self._start
            by_law += self.pull * surprise
            by_weight += self.pull * (laws * surprise).sum(axis=1)
        slope = xp.empty_like(laws)
        for block in self.blocks:
            own = laws[:, block] * by_law[:, block]
            slope[:, block] = weights[:, None] * (own - laws[:, block] * own.sum(axis=1, keepdims=True))
        return slope, weights * (by_weight - (weights * by_weight).sum())

    def misfit(self, laws: AnyArray, weights: AnyArray) -> float:
        """The squared residuals, each divided by its variance."""
        gap, ones = self._gaps(laws, weights)
        total = (gap * gap / self._pairs.clip(1e-30)).sum() / 2 + (ones * ones / self._ones.clip(1e-30)).sum()
        for table in self.tables:
            total += table.sure * ((centred(_joint(table.blocks, laws, weights)) - table.shares) ** 2).sum()
        for level in self.levels:
            sums = self.device.xp.bincount(level.groups, weights=(weights @ laws)[level.block])
            total += level.sure * ((sums - level.shares) ** 2).sum()
        for question in self.questions:
            means = weights
            for factor in question.factors:
                means = means * self._means(factor, laws)[0]
            total += question.sure * (means.sum() - question.share) ** 2
        return float(total) + self.apart

    def _gaps(self, laws: AnyArray, weights: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Residuals of the interactions of all pairs, and of single values, times their precision."""
        # Every law sums to 1, so that its mean is that of the uniform one: less that, products are interactions.
        apart = laws - self._like(self._flat, laws)
        pairs = (apart * weights[:, None]).T @ apart
        return (pairs - self._shares) * self._pairs, (weights @ laws - self._own) * self._ones

    def _push_levels(self, marginals: AnyArray, ones: AnyArray) -> None:
        for level in self.levels:
            sums = self.device.xp.bincount(level.groups, weights=marginals[level.block])
            ones[level.block] += self._like(((sums - level.shares) * level.sure)[level.groups], ones)

    def _push_table(
        self, table: _Table, often: float, laws: AnyArray, weights: AnyArray, by_law: AnyArray, by_weight: AnyArray
    ) -> None:
        """What one table adds to the gradient, `often` times over.

        The products of all its attributes but the last are put together once: with the table's gap they give the slope
        by the last law, and the gap with the last law gives the slope by all of them together.
        """
        *firsts, last = [laws[:, block] for block in table.blocks]
        products = _khatri_rao(firsts)
        joint = ((products * weights[:, None]).T @ last).reshape(table.shares.shape)
        gap = self._like((centred(joint) - table.shares) * (often * table.sure), laws)
        pushed = products @ gap.reshape(products.shape[1], -1)
        by_law[:, table.blocks[-1]] += pushed
        by_weight += (pushed * last).sum(axis=1)
        rest = (last @ gap.reshape(products.shape[1], -1).T).reshape(len(laws), *table.shares.shape[:-1])
        for which, block in enumerate(table.blocks[:-1]):
            slope = rest
            for axis in range(len(firsts) - 1, -1, -1):
                if axis != which:
                    law = firsts[axis].reshape(len(laws), *[-1 if i == axis else 1 for i in range(slope.ndim - 1)])
                    slope = (slope * law).sum(axis=axis + 1, keepdims=True)
            by_law[:, block] += slope.reshape(len(laws), -1)

    def _push_question(
        self, question: _Question, laws: AnyArray, weights: AnyArray, by_law: AnyArray, by_weight: AnyArray
    ) -> None:
        found = [self._means(factor, laws) for factor in question.factors]
        means = _product([mean for mean, _ in found])
        xp = self.device.xp
        off = xp.asarray((weights * means).sum(), dtype=xp.float64) - question.share
        gap = self._like(question.sure * off, laws)
        by_weight += gap * means
        for i, (_, slopes) in enumerate(found):
            others = [mean for j, (mean, _) in enumerate(found) if j != i]
            rest = _product(others) if others else xp.ones_like(means, dtype=xp.float64)
            for block, slope in slopes:
                by_law[:, block] += gap * rest[:, None] * slope

    def _means(self, factor: _Factor, laws: AnyArray) -> tuple[AnyArray, list[tuple[slice, AnyArray]]]:
        """A factor's mean in each component, and its slope by each of the laws that it depends on."""
        xp, weights = self.device.xp, self._like(factor.weights, laws)
        slopes = []
        for which, block in enumerate(factor.blocks):
            others = [laws[:, other] for i, other in enumerate(factor.blocks) if i != which]
            rest = xp.moveaxis(weights, which, 0).reshape(weights.shape[which], -1)
            slope = _khatri_rao(others) @ rest.T if others else xp.broadcast_to(rest[:, 0], (len(laws), len(rest)))
            slopes.append((block, slope))
        first, slope = slopes[0]
        return (laws[:, first] * slope).sum(axis=1), slopes

    def _like(self, array: AnyArray, other: AnyArray) -> AnyArray:
        """The array in the precision of another."""
        return self.device.xp.asarray(array, dtype=other.dtype)

    def _question(self, query: Query, share: float, sure: float) -> _Question:
        factors = [
            _Factor(
                [self.blocks[self.names.index(name)] for name in factor.scope],
                self.device.hold(factor.weights / factor.unit),
            )
            for factor in query.factors
        ]
        return _Question(factors, 1 - share if query.complement else share, sure)

    def _uniform(self) -> Array:
        return np.concatenate(
            [np.full(block.stop - block.start, 1 / (block.stop - block.start)) for block in self.blocks]
        )

    def _independent(self, own: Array) -> Array:
        """Each attribute as it was measured; uniform where it was not."""
        start = np.maximum(own, LEAST / self.rows)
        for block in self.blocks:
            start[block] /= start[block].sum()
        return start


def _pull(interactions: Mapping[Axes, Interaction]) -> float:
    """By the geometric mean of the energies that noise has in the pairs."""
    pairs = [one for axes, one in interactions.items() if len(axes) == 2]
    if not pairs:
        return _LEAST_PULL
    logs = [math.log(one.freedom * one.variance / one.reach) for one in pairs]
    return float(PULL * math.exp(-sum(logs) / len(logs) / 4))


def softmax(xp: Any, logits: AnyArray, blocks: Sequence[slice]) -> AnyArray:
    """The laws with these logarithms, block by block."""
    laws = xp.empty_like(logits)
    for block in blocks:
        own = xp.exp(logits[:, block] - xp.amax(logits[:, block], axis=1, keepdims=True))
        laws[:, block] = own / own.sum(axis=1, keepdims=True)
    return laws


def _product(parts: Sequence[AnyArray]) -> AnyArray:
    product = parts[0]
    for part in parts[1:]:
        product = product * part
    return product


def _khatri_rao(laws: Sequence[AnyArray]) -> AnyArray:
    """For each component, the products of all values of several attributes, the last fastest."""
    rows = laws[0]
    for law in laws[1:]:
        rows = (rows[:, :, None] * law[:, None, :]).reshape(len(rows), -1)
    return rows


def _joint(blocks: Sequence[slice], laws: AnyArray, weights: AnyArray) -> AnyArray:
    """The mixture's table over some attributes."""
    flat = (_khatri_rao([laws[:, block] for block in blocks[:-1]]) * weights[:, None]).T @ laws[:, blocks[-1]]
    return flat.reshape([block.stop - block.start for block in blocks])
