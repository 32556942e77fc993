"""Public databases that share their records and differ in how much each record counts. Called by the median mechanism.

N databases are N lines of weights over the same M records. Each is a distribution over X, as the fractional databases
of Roth & Roughgarden's section 5 are, and so answers any question; nothing lists X. `plausible_databases` draws them
from a warm start. A hard answer moves every database towards it, and inside its slab: the weights of the records that
the question is about are scaled, as multiplicative weights do it, which changes nothing else more than it must.

All of it is post-processing: a pure function of released answers and recorded seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.release.samplers import check_tables
from tacit.release.samplers.compilation import compiled, shared_out
from tacit.release.samplers.diagnostics import probes

SIZE = 2**24  # records of a database, as a statistic sees it: so fine that rounding does not matter
_ROUNDS = 10  # over all past answers after a new one, at most
_CLOSE = 0.1  # widths from where a past answer puts it: a database is moved back from farther away
_ROUNDING = 1e-7
_LISTED = 2**12  # cells of tables that are kept: questions with more values are answered from the records
_KEPT = 2**25  # numbers in such tables
_RARE = 64  # records that a question is about, at least, when its answer is learned
_ADDED = 1e-6  # what records that are added for it weigh together
_TRIED = 1024  # cells of a statistic's table that are tried one by one
_STEPS = 24  # towards a statistic's answer, at most
_STEP_SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
_LEAST = 1e-12  # of a share that is divided by

Array = NDArray[np.float64]
SmallPlaces = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PastAnswer:
    """A past answer: every database has a value of its own for this question, within `width` of `centre`."""

    question: Query | Statistic
    centre: float
    width: float
    targets: Array


@dataclass(frozen=True, eq=False)
class Weighted:
    """Databases as weights [N, M] over records with these codes [A, M]. A line of weights adds up to 1.

    Its methods return new databases and leave the old ones as they were.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> codes = np.array([[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]])
    >>> women = Query.among(domain, "sex", [0])
    >>> after = Weighted(domain, codes, np.full((10, 5), 0.2)).restrict(women, 0.8, 0.03, seed=1)
    >>> bool((abs(after.values(women) - 0.8) <= 0.031).all()), after.outside
    (True, 0)
    """

    domain: Domain
    codes: NDArray[np.integer[Any]]
    weights: Array
    held: tuple[PastAnswer, ...] = field(default=(), repr=False)
    outside: int = 0  # databases that are outside the slab of a past answer
    least_width: ClassVar[float] = 0.0

    _kept: dict[tuple[str, ...], Array] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def floor(self) -> float:
        """How far databases are from a truth that is like one of them, on average over public probes; as a fraction."""
        values = [self.values(query) for query in probes(self.domain, ())]
        apart = [np.abs(one - np.median(one)).mean() for one in values]
        return math.sqrt(2) * float(np.mean(apart)) if apart else 0.0

    @property
    def note(self) -> str:
        """What is wrong with the databases, if anything."""
        return f"{self.outside:,} of {len(self):,} databases disagree with past answers" if self.outside else ""

    def values(self, question: Query | Statistic) -> Array:
        """The answer of each database, as a fraction. The way to it depends on the question alone."""
        if isinstance(question, Statistic):
            return _evaluated(question, self.tables(question.scope))
        core, cells = question.core, self.domain.size_of(question.scope)
        if core.is_constant:
            values = np.full(len(self), int(core.table((), ())) / core.unit)
        elif cells <= _LISTED:
            weights = core.table(core.scope, self.domain.shape_of(core.scope)).ravel() / core.unit
            values = (self.tables(core.scope).reshape(len(self), -1) * weights).sum(axis=1)
        else:
            inside = self._inside(core)
            some = np.flatnonzero(inside)
            values = np.zeros(len(self))
            shared_out(len(self), lambda *part: _weigh(self.weights, some, inside[some], values, *part))
        return np.asarray(np.clip(1 - values if question.complement else values, 0.0, 1.0))

    def tables(self, names: Sequence[str]) -> Array:
        """The distribution of these attributes in each database [N, *shape]."""
        scope = tuple(self.domain.resolve(name) for name in names)
        if scope in self._kept:
            return self._kept[scope]
        found = self._table(scope)
        if self.domain.size_of(scope) <= _LISTED:
            while self._kept and sum(one.size for one in self._kept.values()) + found.size > _KEPT:
                self._kept.pop(next(iter(self._kept)))  # the oldest
            self._kept[scope] = found
        return found

    def restrict(self, question: Query | Statistic, centre: float, width: float, *, seed: int) -> Weighted:
        """Within one more answer: |question - centre| <= width, which is about three deviations of its noise.

        A database goes as far towards the answer, with noise of its own, as the answer is surer than all of them
        together were: their mean squared distance from it less the noise's, over the former (empirical Bayes).
        """
        if not (math.isfinite(centre) and width >= 0 and math.isfinite(width)):
            raise InvalidQuery(f"a centre is a number and a width at least 0, not {centre} and {width}.")
        if question.is_constant:
            return self
        rng = np.random.Generator(np.random.PCG64(seed))
        made = self._wider(question.core, rng) if isinstance(question, Query) else self
        values, noise = made.values(question), width / 3
        apart = float(((values - centre) ** 2).mean())
        gain = max(0.0, 1 - noise**2 / apart) if apart else 0.0
        towards = values + gain * (centre + noise * rng.standard_normal(len(made)) - values)
        targets = np.clip(towards, max(centre - width, 0.0), min(centre + width, 1.0))
        made = replace(made, held=(*self.held, PastAnswer(question, centre, width, targets)))
        for _ in range(_ROUNDS):  # one answer after the other, the newest first, as in iterative fitting
            before = made
            for one in reversed(made.held):
                if (np.abs(made.values(one.question) - one.targets) > max(_CLOSE * one.width, _ROUNDING)).any():
                    made = made._moved(one.question, one.targets)
            if made is before:
                break
        apart_now = [np.abs(made.values(one.question) - one.centre) / max(one.width, _ROUNDING) for one in made.held]
        return replace(made, outside=int((np.array(apart_now) > 1 + _CLOSE).any(axis=0).sum()))

    def stir(self, *, seed: int, sweeps: int = 0) -> Weighted:
        """Themselves: they are draws already, and there is no chain to move on."""
        return self

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Synthetic rows: records of the databases, drawn by their weights."""
        ends = np.cumsum(self.weights.mean(axis=0))
        chosen = np.searchsorted(ends, rng.random(rows) * ends[-1], side="right")
        return [column[np.minimum(chosen, len(column) - 1)].astype(np.intp) for column in self.codes]

    def arrays(self) -> list[NDArray[Any]]:
        """All that the databases hold, in numbers whose bits can be compared."""
        return [self.codes.astype("<u4"), self.weights.astype("<f8")]

    def _table(self, scope: tuple[str, ...]) -> Array:
        cells = self.domain.size_of(scope)
        check_tables(cells, len(self))
        found = np.zeros((len(self), cells))
        where = places(self.domain, self.codes, scope)
        shared_out(len(self), lambda *part: tabulate(self.weights, where, found, *part))
        return found.reshape(len(self), *self.domain.shape_of(scope))

    def _inside(self, query: Query) -> Array:
        """The weight that a query without complement gives each record, from 0 to 1."""
        found = np.ones(self.codes.shape[1])
        for factor in query.factors:
            axes = [self.domain.names.index(name) for name in factor.scope]
            found *= factor.weights[tuple(self.codes[axis] for axis in axes)] / factor.unit
        return found

    def _moved(self, question: Query | Statistic, targets: Array) -> Weighted:
        """The databases with these values of a question, as far as their records can have them."""
        if isinstance(question, Statistic):
            factors = self._steered(question, targets)
            weights = self.weights * factors[:, places(self.domain, self.codes, question.scope)]
        else:
            inside, weights = self._inside(question.core), self.weights.copy()
            wanted = 1 - targets if question.complement else targets
            shared_out(len(self), lambda *part: _tilt(weights, inside, wanted, *part))
        return replace(self, weights=weights / weights.sum(axis=1, keepdims=True))

    def _wider(self, query: Query, rng: np.random.Generator) -> Weighted:
        """These records and a few more that a question is about, or is not about, where hardly any are."""
        made = self
        for within in (True, False):
            inside = made._inside(query)
            if ((inside > 0) if within else (inside < 1)).sum() >= _RARE:
                continue
            ends = np.cumsum(made.weights.mean(axis=0))
            copied = np.minimum(np.searchsorted(ends, rng.random(_RARE) * ends[-1]), len(ends) - 1)
            codes = made.codes[:, copied].copy()
            for factor in query.factors if within else query.factors[:1]:
                some = np.flatnonzero(factor.weights > 0 if within else factor.weights < factor.unit)
                drawn = np.unravel_index(rng.choice(some, _RARE), factor.weights.shape) if len(some) else ()
                for name, column in zip(factor.scope, drawn, strict=False):
                    codes[self.domain.names.index(name)] = column
            more = np.full((len(made), _RARE), _ADDED / _RARE)
            weights = np.concatenate([made.weights * (1 - _ADDED), more], axis=1)
            made = replace(made, codes=np.concatenate([made.codes, codes], axis=1), weights=weights)
        return made

    def _steered(self, statistic: Statistic, targets: Array) -> Array:
        """What the cells of a statistic's table are scaled by so that it has these values: steps along its slopes."""
        before = self.tables(statistic.scope).reshape(len(self), -1)
        if before.shape[1] > _TRIED:
            raise InvalidQuery(f"a statistic of {before.shape[1]:,} cells is not learned.")
        shape, now = (-1, *self.domain.shape_of(statistic.scope)), before.copy()
        close = max(_ROUNDING, 1e-3 * float(np.abs(targets).max(initial=0.0)))
        for step in range(_STEPS):
            gaps = targets - _evaluated(statistic, now.reshape(shape))
            off = np.flatnonzero(np.abs(gaps) > close)
            if not len(off):
                break
            slopes = _slopes(statistic, now[off[step % len(off)]].reshape(shape[1:])).ravel()
            steepest = float(np.abs(slopes).max())
            if not steepest:
                continue
            best, least = now[off], np.abs(gaps[off])
            for size in _STEP_SIZES:
                tried = now[off] * np.exp(np.sign(gaps[off])[:, None] * (size / steepest) * slopes)
                tried /= tried.sum(axis=1, keepdims=True)
                apart = np.abs(targets[off] - _evaluated(statistic, tried.reshape(shape)))
                best = np.where((apart < least)[:, None], tried, best)
                least = np.minimum(apart, least)
            now[off] = best
        return np.asarray(now / np.maximum(before, _LEAST))


def places(domain: Domain, codes: NDArray[np.integer[Any]], names: Sequence[str]) -> SmallPlaces:
    """The cell of every record in the table of these attributes."""
    found = np.zeros(codes.shape[1], dtype=np.int32)
    for name in names:
        found = found * np.int32(domain[name].size) + codes[domain.names.index(name)].astype(np.int32)
    return found


def _evaluated(statistic: Statistic, tables: Array) -> Array:
    counts = np.rint(tables * SIZE).astype(np.int64)
    sizes = counts.reshape(len(counts), -1).sum(axis=1)
    return np.asarray(statistic.evaluate(counts) / (sizes * float(statistic.unit)))


def _slopes(statistic: Statistic, table: Array) -> Array:
    """By how much a statistic moves if a cell has 1/256 of all records more."""
    cells = table.size
    more = np.tile(table, (cells, *[1] * table.ndim)).reshape(cells, cells)
    more[np.arange(cells), np.arange(cells)] += 1 / 256
    moved = _evaluated(statistic, more.reshape(cells, *table.shape))
    return np.asarray((moved - _evaluated(statistic, table[None])[0]) * (257 / 256)).reshape(table.shape)


@compiled
def tabulate(weights: Array, where: SmallPlaces, found: Array, begin: int, end: int) -> None:
    """Adds up what every cell weighs in the databases from `begin` to `end`."""
    for i in range(begin, end):
        for j in range(len(where)):
            found[i, where[j]] += weights[i, j]


@compiled
def rake(weights: Array, where: SmallPlaces, targets: Array, most: float, begin: int, end: int) -> None:
    """Scales the records of every cell so that it weighs what it should; by `most` at most. In place."""
    cells = targets.shape[1]
    now, factors = np.zeros(cells), np.ones(cells)
    for i in range(begin, end):
        now[:] = 0.0
        for j in range(len(where)):
            now[where[j]] += weights[i, j]
        for cell in range(cells):
            factors[cell] = min(most, max(1 / most, targets[i, cell] / now[cell])) if now[cell] > 0 else 1.0
        total = 0.0
        for j in range(len(where)):
            weights[i, j] *= factors[where[j]]
            total += weights[i, j]
        for j in range(len(where)):
            weights[i, j] /= total


@compiled
def _weigh(weights: Array, some: NDArray[np.intp], inside: Array, found: Array, begin: int, end: int) -> None:
    for i in range(begin, end):
        total = 0.0
        for k in range(len(some)):
            total += weights[i, some[k]] * inside[k]
        found[i] = total


@compiled
def _tilt(weights: Array, inside: Array, targets: Array, begin: int, end: int) -> None:
    """Scales records by how much a question is about them, until its value is the target. In place.

    A record with weight q from 0 to 1 is scaled by q a + (1 - q) b with a = t/v and b = (1 - t)/(1 - v), for a value v.
    Where q is 0 or 1 that gives the value t at once; else it goes var(q)/(v (1 - v)) of the way, so t is taken so much
    farther, within limits, and a few rounds are made.
    """
    for i in range(begin, end):
        for _ in range(20):
            value = square = total = 0.0
            for j in range(len(inside)):
                total += weights[i, j]
                value += weights[i, j] * inside[j]
                square += weights[i, j] * inside[j] * inside[j]
            value, square = value / total, square / total
            if not 0 < value < 1 or abs(value - targets[i]) < 1e-10:
                break
            share = max((square - value * value) / (value * (1 - value)), 0.05)
            towards = value + (targets[i] - value) / share
            if share < 1 - 1e-9:
                towards = min(max(towards, value / 4), 1 - (1 - value) / 4)
            towards = min(max(towards, 1e-9), 1 - 1e-9)
            more, less = towards / value, (1 - towards) / (1 - value)
            for j in range(len(inside)):
                weights[i, j] *= (inside[j] * more + (1 - inside[j]) * less) / total
