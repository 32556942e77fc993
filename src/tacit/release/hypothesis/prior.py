"""A public table that a fit is drawn to, as far as the noisy tables bear it out. Post-processing.

Last year's release, or a public survey, says of every interaction z where the fit would expect f without it (attributes
independent, each as it was measured) and where y was measured, with noise of known variance v. The truth is taken to be
f + weight (z - f), and a normal rest of energy e (a sum of squared shares over the interaction's reach, as in `fit`).
So |y - f - weight (z - f)|² is v + e times a chi-square number, and that likelihood says how large the rests are, which
are log-normal around a common middle, and what weight from 0 to 1 makes the measured tables most probable. Both are
averaged over what they may be (empirical Bayes: Efron & Morris 1973). A prior that misleads makes its rests larger than
those of none, and gets no weight; one that is right gets almost all, and pulls as hard as two samples of one population
are alike: no rest is smaller than 1/n + 1/m, with m rows of the prior.

Where cells are listed, the fit starts from a mixture of the prior's rows, raked to the single attributes (Deming &
Stephan 1940), and of independent attributes, by that weight; the pull of a pair is that of its rest. Elsewhere the
prior's pairs are numbers like the noisy ones, with the variance of their rests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct, to_builtins
from numpy.typing import NDArray

from tacit.errors import ConfigError
from tacit.model.domain import MAX_ATTRIBUTES, Domain
from tacit.release.hypothesis.cell_weights import Array
from tacit.release.hypothesis.terms import Axes, Interaction, centred
from tacit.store.chain import digest

MOST_PRIOR_CELLS = 2**18  # different rows of a prior: of more, some are taken, equally far apart
MOST_PRIOR_ROWS = 2**42
LEAST = 0.5  # rows: no value of an attribute is ruled out before the start
_MOST_WEIGHT = 0.98  # so that no cell is ruled out
_WEIGHTS = 21  # that are looked at
_RAKED = 30  # sweeps
_REST = np.linspace(-3, 3, 25)  # logarithms of a rest over the middle of all, and at once their deviations
_STEP = 0.5  # between the logarithms of middles that are looked at

PriorCodes = NDArray[np.intp]
PriorCount = Annotated[int, Meta(ge=0, lt=MOST_PRIOR_ROWS)]
Column = Annotated[list[PriorCount], Meta(max_length=MOST_PRIOR_CELLS)]


class Prior(Struct, frozen=True, forbid_unknown_fields=True, eq=True):
    """Different rows of a public table, and how many there are of each: a column of codes for each attribute."""

    attributes: Annotated[list[str], Meta(min_length=1, max_length=MAX_ATTRIBUTES)]
    codes: Annotated[list[Column], Meta(max_length=MAX_ATTRIBUTES)]
    counts: Annotated[Column, Meta(min_length=1)]

    @classmethod
    def of(cls, attributes: Sequence[str], codes: Sequence[NDArray[np.integer]], counts: NDArray[np.int64]) -> Prior:
        """In one order, whatever order the rows are given in; of too many, those at equal distances in it."""
        order = np.lexsort([np.asarray(column) for column in reversed(codes)])
        ends, kept = np.cumsum(counts[order]), counts[order]
        if len(order) > MOST_PRIOR_CELLS:
            places = (np.arange(MOST_PRIOR_CELLS) * 2 + 1) * int(ends[-1]) // (2 * MOST_PRIOR_CELLS)
            chosen, kept = np.unique(np.searchsorted(ends, places, side="right"), return_counts=True)
            order = order[chosen]
        return cls(list(attributes), [column[order].tolist() for column in codes], kept.tolist())

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def counts_on(self, domain: Domain) -> int:
        """The rows that a forecast may count on: none where the prior lacks an attribute."""
        return self.rows if set(self.attributes) == set(domain.names) else 0

    @property
    def digest(self) -> str:
        return digest(to_builtins(self))

    def check(self, domain: Domain) -> None:
        """Refuse what is no table over attributes of this domain."""
        names = self.attributes
        if len(set(names)) < len(names) or not set(names) <= set(domain.names) or len(self.codes) != len(names):
            raise ConfigError("a prior has one column of codes for each of its attributes, which the domain has too.")
        if min(self.counts) < 1 or any(len(column) != len(self.counts) for column in self.codes):
            raise ConfigError("a prior has a code of each attribute for each of its counts, which are above 0.")
        if any(max(column) >= domain[name].size for name, column in zip(names, self.codes, strict=True)):
            raise ConfigError("a prior has a code that is none of its attribute's.")
        if self.rows >= MOST_PRIOR_ROWS:
            raise ConfigError(f"a prior has fewer than {MOST_PRIOR_ROWS:,} rows.")


@dataclass(frozen=True, eq=False)
class Drawn:
    """What a prior and noisy interactions expect together, before a fit; axes are those of the fit.

    interactions: those that were measured, the single attributes' together with the prior's.
    ones: the law of every attribute.
    weight: of the prior's dependences, the rest is for independence. rests: the energies of measured pairs beyond that.
    """

    shape: tuple[int, ...]
    interactions: Mapping[Axes, Interaction]
    ones: Sequence[Array]
    rows: RakedRows
    weight: float
    rests: Mapping[Axes, float]

    @classmethod
    def of(
        cls, prior: Prior, domain: Domain, order: Sequence[int], interactions: Mapping[Axes, Interaction], rows: int
    ) -> Drawn:
        """`order` lists the domain's axes in the order of the fit."""
        names, known, least = [domain.names[axis] for axis in order], dict(interactions), 1 / rows + 1 / prior.rows
        shape = domain.shape_of(names)
        codes = {names.index(name): np.array(some) for name, some in zip(prior.attributes, prior.codes, strict=True)}
        codes = {axis: codes[axis] for axis in sorted(codes)}
        counts = np.array(prior.counts, dtype=np.float64)
        said = {axis: _law(_count(some, counts, shape[axis]) + LEAST) for axis, some in codes.items()}
        singles = [axis for axis in said if (axis,) in known]
        alone = [_Seen.of(known[axis,], centred(said[axis])) for axis in singles]
        for axis, rest in zip(singles, _rests(alone, 1.0, least), strict=True):
            said[axis], known[axis,] = _together(known[axis,], said[axis], rest)
        measured = {axis: one.shares + 1 / one.shares.size for (axis, *more), one in known.items() if not more}
        uniform = {axis: np.full(size, 1 / size) for axis, size in enumerate(shape)}
        ones = [_law(np.maximum(one, LEAST / rows)) for one in (uniform | measured | said).values()]
        raked = RakedRows.of(codes, counts, ones)
        pairs = {pair: known[pair] for pair in combinations(codes, 2) if pair in known}
        seen = [_Seen.of(one, raked.interaction(pair, shape), _apart(ones, pair)) for pair, one in pairs.items()]
        # Where no pair was measured, the single attributes tell whether the prior is of this population.
        weight = _weight(seen or alone, least, prior.rows)
        return cls(shape, known, ones, raked, weight, dict(zip(pairs, _rests(seen, weight, least), strict=True)))

    def cells(self) -> Array:
        """The distribution that a fit over all cells starts from."""
        inside, others = np.ones([1] * len(self.shape)), np.ones([1] * len(self.shape))
        for axis, one in enumerate(self.ones):
            spread = one.reshape([-1 if other == axis else 1 for other in range(len(self.shape))])
            if axis in self.rows.codes:
                inside = inside * spread
            else:
                others = others * spread
        inside *= 1 - self.weight
        inside += self.weight * self.rows.cells(self.shape)
        return np.asarray(inside * others)

    def with_pairs(self) -> dict[Axes, Interaction]:
        """The interactions, every pair's together with the prior's: for a fit that knows no start but independence."""
        found, typical = dict(self.interactions), max(self.rests.values(), default=0.0)
        for pair in combinations(self.rows.codes, 2):
            apart = _apart(self.ones, pair)
            shares = apart + self.weight * (self.rows.interaction(pair, self.shape) - apart)
            drawn = Interaction(pair, shares, 1.0)
            spread = self.rests.get(pair, typical) * drawn.reach / drawn.freedom
            if pair in found:
                sure, prior_sure = 1 / found[pair].variance, 1 / spread
                shares = (found[pair].shares * sure + shares * prior_sure) / (sure + prior_sure)
                found[pair] = replace(found[pair], shares=shares, variance=1 / (sure + prior_sure))
            elif self.rests and all((axis,) in found for axis in pair):
                found[pair] = replace(drawn, variance=spread)
        return found


@dataclass(frozen=True, eq=False)
class RakedRows:
    """The prior's rows: their codes, by axis, and weights that agree with the law of each attribute."""

    codes: Mapping[int, PriorCodes]
    weights: Array

    @classmethod
    def of(cls, codes: Mapping[int, PriorCodes], counts: Array, ones: Sequence[Array]) -> RakedRows:
        weights = counts / counts.sum()
        for _ in range(_RAKED):
            for axis, some in codes.items():
                now = _count(some, weights, ones[axis].size)
                weights = weights * (ones[axis] / np.where(now > 0, now, 1.0))[some]
            weights = weights / weights.sum()
        return cls(codes, weights)

    def interaction(self, pair: Axes, shape: Sequence[int]) -> Array:
        """The interaction of two of the prior's attributes."""
        sizes = [shape[axis] for axis in pair]
        flat = self.codes[pair[0]] * sizes[1] + self.codes[pair[1]]
        return centred(_count(flat, self.weights, math.prod(sizes)).reshape(sizes))

    def cells(self, shape: Sequence[int]) -> Array:
        """All of them, with an axis of length 1 for each that the prior does not have."""
        sizes = [size if axis in self.codes else 1 for axis, size in enumerate(shape)]
        flat = np.zeros(len(self.weights), dtype=np.intp)
        for axis, some in self.codes.items():
            flat = flat * sizes[axis] + some
        return _count(flat, self.weights, math.prod(sizes)).reshape(sizes)


class _Seen(NamedTuple):
    """How far a noisy interaction y is from what is expected f, and from a prior's z, in energies.

    own: |y - f|². both: <y - f, z - f>. other: |z - f|². noise: what noise has of the first on average.
    """

    own: float
    both: float
    other: float
    noise: float
    freedom: int

    @classmethod
    def of(cls, one: Interaction, said: Array, expected: Array | float = 0.0) -> _Seen:
        own, other = one.shares - expected, said - expected
        squares = [float((a * b).sum()) / one.reach for a, b in ((own, own), (own, other), (other, other))]
        return cls(squares[0], squares[1], squares[2], one.freedom * one.variance / one.reach, one.freedom)


class Awaited(NamedTuple):
    """An interaction before it is measured, in energies: its noise, how strong it may be, and its freedom."""

    noise: float
    strength: float
    freedom: int


def awaited(
    ones: Sequence[Awaited], pairs: Sequence[Awaited], least: float, rows: int
) -> tuple[float, list[float], list[float]]:
    """For a forecast: the weight of a prior of that many rows and of the same population, and the rests of both lists.

    What would be made of noisy interactions that are just as far from the prior's as is to be expected.
    """
    single, double = (
        [_Seen(one.noise + one.strength, one.strength, one.strength + least, one.noise, one.freedom) for one in some]
        for some in (ones, pairs)
    )
    weight = _weight(double or single, least, rows)
    return weight, _rests(single, 1.0, least), _rests(double, weight, least)


def _evidence(seen: Sequence[_Seen], weight: float, least: float) -> tuple[float, Array]:
    """The logarithm of the likelihood of some interactions, up to a constant, and the rests to expect of them."""
    own, both, other, noise, freedom = np.array(seen, dtype=np.float64).T[:, :, None]
    apart = np.maximum(own - 2 * weight * both + weight**2 * other, 0.0)
    highest = max(least, float(own.max()), float(other.max()))
    logs, means = [], []
    for middle in np.exp(np.arange(math.log(least), math.log(4 * highest), _STEP)):
        rests = np.maximum(middle * np.exp(_REST), least)
        spread = noise + rests
        each = -freedom / 2 * (np.log(spread) + apart / spread) - _REST**2 / 2
        most = each.max(axis=1, keepdims=True)
        chances = np.exp(each - most)
        logs.append(float((most[:, 0] + np.log(chances.sum(axis=1))).sum()))
        means.append((chances * rests).sum(axis=1) / chances.sum(axis=1))
    chances = np.exp(np.array(logs) - max(logs))
    return max(logs) + math.log(float(chances.sum())), chances @ np.array(means) / chances.sum()


def _rests(seen: Sequence[_Seen], weight: float, least: float) -> list[float]:
    return [float(rest) for rest in _evidence(seen, weight, least)[1]] if seen else []


def _weight(seen: Sequence[_Seen], least: float, rows: int) -> float:
    """The weight of a prior of that many rows, averaged by how probable each makes what was measured.

    None is larger than the part of the prior's own dependences that is more than chance: 1/rows in each interaction.
    """
    others = sum(one.other for one in seen)
    most = _MOST_WEIGHT * (1 - min(1.0, len(seen) / (rows * others))) if others else 0.0
    if not most:
        return 0.0
    weights = most * np.linspace(0, 1, _WEIGHTS)
    logs = np.array([_evidence(seen, float(weight), least)[0] for weight in weights])
    chances = np.exp(logs - logs.max())
    return float(chances @ weights / chances.sum())


def _together(one: Interaction, said: Array, rest: float) -> tuple[Array, Interaction]:
    """The law of one attribute by its noisy shares and the prior's, each by its precision.

    The prior is surer of rare values, where samples differ less; but not much, as it may be of another population.
    """
    sure, prior_sure = 1 / one.variance, 2 / (rest * (said + 1 / said.size))
    law = _law(np.maximum(((one.shares + 1 / said.size) * sure + said * prior_sure) / (sure + prior_sure), 0.0))
    precision = sure + one.freedom / (rest * one.reach)
    return law, replace(one, shares=centred(law), variance=1 / precision)


def _apart(ones: Sequence[Array], pair: Axes) -> Array:
    """The interaction of two attributes that are independent."""
    first, second = (ones[axis] for axis in pair)
    return centred(np.multiply.outer(first, second))


def _count(places: PriorCodes, weights: Array, size: int) -> Array:
    return np.asarray(np.bincount(places, weights=weights, minlength=size))


def _law(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())
