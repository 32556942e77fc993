"""The consistent set of the median mechanism, sampled: N databases of m records within the past answers' slabs.

Called by the median mechanism. All of it is post-processing: a pure function of released answers and recorded seeds.

Roth & Roughgarden 2010, section 3: C_i is the set of databases of m records that agree with all past hard answers, up
to a width. Here a database is a sequence of records, and N Markov chains sample the uniform law on C_i. Nothing lists
X, or touches |X|. `start` draws C_0, `restrict` adds an answer and moves the databases that are there already (a hard
question is one that they nearly all miss, so weighting them anew would keep none), `stir` moves them further.

Two kinds of constraint. Every single move respects the slab of a query, 0/1 or weighted. The slab of any other
statistic is respected by short runs of moves: a run is proposed as a whole and undone, in each chain, if it leads that
chain further out. This is exact: the run is a reversible kernel for the uniform law within the queries' slabs (see
`moves`), so it is a symmetric proposal there, and the ratio of the targets is the indicator that all statistics are
within their slabs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor, multiply
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.release.samplers import check_tables
from tacit.release.samplers.diagnostics import NOT_MIXED, Diagnostics, diagnose, probes
from tacit.release.samplers.moves import COLD, CYCLE, WARM, advance, chains, redraw, violation
from tacit.release.samplers.slabs import Chains, Codes, Program, Slab, program, slab

FloatValues = NDArray[np.float64]
SLAB_RECORDS = 5  # to either side, the least width of a slab
_SWEEPS = 20  # after all databases are inside their slabs: N * m moves each
_ROUNDS = 60  # of repair, at most
_COLD_ROUNDS = 2  # before every other round is warm
_PATIENCE = 6  # rounds without any progress, after which the slabs are held to contradict each other
_RUN_STEPS = 8 * len(CYCLE)  # moves that are accepted or undone together, at most
_APPROACH = 6000  # trials that may bring databases inside the slabs of statistics
_TRIALS = 1500  # of the sweeps within these, in one call: each evaluates all databases
_MOST_RUNS = 6  # comparisons of whole columns are vectorised, look-ups are not


@dataclass(frozen=True)
class StatisticSlab:
    """Any statistic within `width` of `centre`: `evaluate` gives each database of an ensemble one value.

    It must be public, and a function of the records alone.
    """

    evaluate: Callable[[Ensemble], FloatValues]
    centre: float
    width: float


@dataclass(frozen=True, eq=False)
class Ensemble:
    """N databases of m records, as codes [N, A, m], and what they are restricted to.

    Its methods return a new ensemble and leave the old one as it was.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> women = Query.among(domain, "sex", [0])
    >>> after = Ensemble.start(domain, databases=50, records=100, seed=1).restrict(women, 0.8, 0.02, seed=2)
    >>> bool((after.values(women) >= 0.78).all()), after.diagnostics.infeasible
    (True, 0)
    """

    domain: Domain
    codes: Codes
    slabs: tuple[Slab, ...] = ()
    statistics: tuple[StatisticSlab, ...] = ()
    diagnostics: Diagnostics | None = None

    @classmethod
    def start(cls, domain: Domain, *, databases: int, records: int, seed: int) -> Ensemble:
        """C_0: databases of independent uniform records, which need no Markov chain."""
        if databases < 1 or records < 1:
            raise InvalidQuery(f"an ensemble has at least 1 database of 1 record, not {databases} of {records}.")
        shape = (databases, len(domain), records)
        codes = np.zeros(shape, dtype=np.min_scalar_type(max(domain.shape) - 1))
        _redraw(codes, domain, range(len(domain)), _key(seed, "start"))
        return cls(domain, _frozen(codes))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def records(self) -> int:
        """m, the records of each database."""
        return int(self.codes.shape[2])

    def column(self, name: str) -> Codes:
        """The codes of one attribute [N, m]."""
        return self.codes[:, self.domain.names.index(self.domain.resolve(name)), :]

    @property
    def floor(self) -> float:
        """How far databases are apart, on average, on a question about which all is known; as a fraction.

        m records cannot follow a value p closer than sqrt(p(1-p)/m); on average they are 0.8 of that away.
        """
        return 0.4 / math.sqrt(self.records)

    @property
    def least_width(self) -> float:
        """In a narrower slab the walk between databases would be stuck."""
        return SLAB_RECORDS / self.records

    @property
    def note(self) -> str:
        """What is wrong with the databases, if anything."""
        found = self.diagnostics
        if found is None or found.mixed:
            return ""
        if found.infeasible:
            return f"{found.infeasible:,} of {found.databases:,} databases disagree with past answers"
        return NOT_MIXED

    def values(self, question: Query | Statistic) -> FloatValues:
        """The answer of each database, as a fraction: exact grid steps, divided once."""
        if isinstance(question, Query):
            steps = _counts(self.codes, self.domain, question)
        else:
            steps = question.evaluate(self.tables(question.scope))
        return steps / float(self.records * question.unit)

    def values_many(self, queries: Sequence[Query]) -> FloatValues:
        """The values of several queries [k, N]."""
        return np.array([self.values(query) for query in queries]).reshape(len(queries), len(self))

    def tables(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Contingency tables [N, *shape]: how many records of each database have each combination of values."""
        names = [self.domain.resolve(name) for name in names]
        shape = self.domain.shape_of(names)
        cells, number = math.prod(shape), len(self)
        check_tables(cells, number)
        index = _cells(self.codes, self.domain, names) + np.arange(number)[:, None] * cells
        return np.bincount(index.ravel(), minlength=number * cells).reshape(number, *shape)

    def restrict(
        self,
        what: Query | Statistic | Callable[[Ensemble], FloatValues],
        centre: float,
        width: float,
        *,
        seed: int,
        sweeps: int = _SWEEPS,
    ) -> Ensemble:
        """Within one more answer: |what - centre| <= width. Moved until inside, and then `sweeps` sweeps more.

        If some databases cannot be brought inside, they keep the state of least violation and the diagnostics say so:
        that depends on released answers and seeds only, like all else here.
        """
        if not (math.isfinite(centre) and width >= 0 and math.isfinite(width)):
            raise InvalidQuery(f"a centre is a number and a width at least 0, not {centre} and {width}.")
        if isinstance(what, Query):
            if not what.fits(self.domain):
                raise InvalidQuery("the question was made for another domain.")
            within = replace(self, slabs=(*self.slabs, slab(what, centre, width, self.records)))
        else:
            evaluate = _values_of(what) if isinstance(what, Statistic) else what
            within = replace(self, statistics=(*self.statistics, StatisticSlab(evaluate, centre, width)))
        return within.stir(seed=seed, sweeps=sweeps)

    def stir(self, *, seed: int, sweeps: int = _SWEEPS) -> Ensemble:
        """More sweeps without a new answer."""
        made = program(self.domain, self.slabs, self.domain.names if self.statistics else ())
        free = sorted(set(range(len(self.domain))) - set(made.moving.tolist()))
        codes = self.codes.copy()
        _redraw(codes, self.domain, free, _key(seed, "free"))  # under no constraint: drawn anew, exactly
        state = chains(codes, made)
        moves = _Moves(self, state, made, _key(seed, "moves"))
        if self.slabs:
            _repair(state, made, _key(seed, "repair"))
        if self.statistics:
            moves.approach()
        asked = probes(self.domain, [self.domain.names[a] for a in made.moving])
        moves.sweep(sweeps // 2)
        halfway = moves.now().values_many(asked)
        moves.sweep(sweeps - sweeps // 2)
        outside = (violation(state, made) > 0) | (moves.penalty() > 0)
        moved = replace(self, codes=_frozen(codes))
        found = diagnose(halfway, moved.values_many(asked), int(outside.sum()))
        return replace(moved, diagnostics=found)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Synthetic rows: records of the databases, drawn at random."""
        chosen = rng.integers(len(self) * self.records, size=rows)
        return [self.column(name).reshape(-1)[chosen].astype(np.intp) for name in self.domain.names]

    def arrays(self) -> list[NDArray[Any]]:
        """All that the databases hold, in numbers whose bits can be compared."""
        return [self.codes.astype("<u4")]


def _values_of(statistic: Statistic) -> Callable[[Ensemble], FloatValues]:
    return lambda ensemble: ensemble.values(statistic)


def _repair(state: Chains, program: Program, key: int) -> None:
    """Moves the databases outside their slabs, in place, until all are inside or the rounds are over.

    Nothing is claimed of the law of a database while it is outside: the exact moves that follow forget it. This is the
    stiff limit of an annealed penalty, in which one record's violation outweighs any ln(|out|/|in|). A round is a cold
    or warm step for every four records, and then a quarter of a sweep of exact moves, which never make any slab worse.
    A database that stays outside keeps the least violation that it had.
    """
    records = state.codes.shape[2]
    towards, plain = max(16, records // 4), len(CYCLE) * -(-records // (4 * len(CYCLE)))
    outside = np.flatnonzero(violation(state, program))
    best, least = state.take(outside), violation(state, program)[outside]
    progress = 0
    for done in range(_ROUNDS):
        rows = np.flatnonzero(violation(state, program))
        if not len(rows):
            return
        if done - progress >= _PATIENCE:
            break
        part = state.take(rows)
        keys = [(key + 2 * done + k) % 2**64 for k in range(2)]
        kind = WARM if done >= _COLD_ROUNDS and done % 2 == 1 else COLD
        # One word of each step is not used. It has its place all the same: another would draw other databases.
        advance(part, program, keys[0], 0, towards, (kind,), program.stride + 1)
        advance(part, program, keys[1], 0, plain)
        state.put(rows, part)
        now = violation(state, program)[outside]
        better = np.flatnonzero(now < least)
        best.put(better, state.take(outside[better]))
        least[better] = now[better]
        progress = done + 1 if len(better) else progress
    state.put(outside, best)


@dataclass
class _Moves:
    """A run of exact moves on one working state."""

    ensemble: Ensemble
    state: Chains
    program: Program
    key: int
    steps: int = 0
    length: int = _RUN_STEPS  # of a run of moves

    def now(self) -> Ensemble:
        return replace(self.ensemble, codes=self.state.codes)

    def penalty(self) -> FloatValues:
        """By how much each database misses the slabs of statistics, in widths."""
        total = np.zeros(len(self.ensemble))
        for one in self.ensemble.statistics:
            found = np.asarray(one.evaluate(self.now()), dtype=np.float64)
            if found.shape != total.shape or not np.isfinite(found).all():
                raise InvalidQuery("a statistic gives each database one finite number.")
            total += np.maximum(np.abs(found - one.centre) - one.width, 0) / max(one.width, 1e-9)
        return total

    def sweep(self, number: int) -> None:
        """So many sweeps of m steps, in whole palindromes."""
        if not len(self.program.moving):
            return
        wanted = len(CYCLE) * -(-number * self.ensemble.records // len(CYCLE))
        if not self.ensemble.statistics:
            self._run(wanted)
            return
        before = self.penalty()
        for _ in range(min(-(-wanted // self.length), _TRIALS * number // _SWEEPS)):
            before = self._try(before)

    def approach(self) -> None:
        """Bring all databases inside the slabs of statistics, then fix the length of runs.

        Most moves of a long run lead away from a rare value, so runs are halved while few of them help, down to a
        single move. What follows must be exact, so from then on the length is fixed, a whole number of palindromes, and
        the longest of which at least a quarter is kept (or the shortest).
        """
        before, trials, useless = self.penalty(), 0, 0
        while len(self.program.moving) and before.any() and trials < _APPROACH and useless < 400:
            after, trials = self._try(before), trials + 1
            helped = float((after < before).sum() / (before > 0).sum())
            useless = 0 if helped else useless + 1
            if helped < 0.1 and self.length > 1:
                self.length //= 2
            before = after
        self.steps = len(CYCLE) * -(-self.steps // len(CYCLE))
        for self.length in (_RUN_STEPS, _RUN_STEPS // 2, _RUN_STEPS // 4, len(CYCLE)):
            codes = self.state.codes.copy()
            before = self._try(before)
            if (self.state.codes != codes).any(axis=(1, 2)).mean() >= 0.25:
                break

    def _try(self, before: FloatValues) -> FloatValues:
        """One run of moves in every database, undone where it makes the penalty larger; the new penalties."""
        kept = self.state.take(np.arange(len(self.ensemble)))
        self._run(self.length)
        after = self.penalty()
        worse = np.flatnonzero(after > before)
        self.state.put(worse, kept.take(worse))
        return np.minimum(before, after)

    def _run(self, steps: int) -> None:
        advance(self.state, self.program, self.key, self.steps, steps)
        self.steps += steps


def _redraw(codes: Codes, domain: Domain, attributes: Sequence[int], key: int) -> None:
    for a in attributes:
        redraw(codes, a, domain.shape[a], np.uint64(key))


def _key(seed: int, purpose: str) -> int:
    """A 64-bit key for one purpose of a recorded seed."""
    return int(np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1, np.uint64)[0])


def _frozen(codes: Codes) -> Codes:
    codes.setflags(write=False)
    return codes


# -- what queries say of many small databases at once: look-ups, never a listing of X ---------------------------------


def _counts(codes: Codes, domain: Domain, query: Query) -> NDArray[np.int64]:
    """The query's sum over each database's records, in its grid steps: exact integers [N]."""
    if not query.fits(domain):
        raise InvalidQuery("the question was made for another domain.")
    number, _, records = codes.shape
    if query.unit == 1:
        inside = np.ones((number, records), dtype=bool)
        for k, factor in enumerate(query.factors):
            part = _allowed(codes, domain, factor)
            inside = part if k == 0 else np.logical_and(inside, part, out=inside)
        total = np.count_nonzero(inside, axis=1).astype(np.int64)
    else:
        weights, unit = np.ones((number, records), dtype=np.int64), 1
        for factor in query.factors:
            found = factor.weights.ravel()[_cells(codes, domain, factor.scope)]
            weights, unit = multiply(weights, unit, found, factor.unit)
        total = weights.sum(axis=1)
    return np.asarray(records * query.unit - total if query.complement else total)


def _allowed(codes: Codes, domain: Domain, factor: Factor) -> NDArray[np.bool_]:
    """Which records a 0/1 factor allows [N, m]."""
    flags = factor.weights.ravel() > 0
    if len(factor.scope) > 1:
        return np.asarray(flags[_cells(codes, domain, factor.scope)])
    column = codes[:, domain.names.index(factor.scope[0]), :]
    few = flags if np.count_nonzero(flags[1:] & ~flags[:-1]) <= _MOST_RUNS else None
    if few is None:
        return np.asarray(np.take(flags, column))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    result = np.zeros(column.shape, dtype=bool)
    for k, (first, after) in enumerate(edges.reshape(-1, 2)):
        if after - first == 1:
            run = column == column.dtype.type(first)
        else:  # unsigned: a value below `first` wraps to a large one
            run = column - column.dtype.type(first) < column.dtype.type(after - first)
        result = run if k == 0 else np.logical_or(result, run, out=result)
    return result


def _cells(codes: Codes, domain: Domain, names: Sequence[str]) -> NDArray[np.int64]:
    """Each record's cell among the combinations of these attributes, as a flat index [N, m]."""
    index = np.zeros((codes.shape[0], codes.shape[2]), dtype=np.int64)
    for name in names:
        index *= domain[name].size
        index += codes[:, domain.names.index(name), :]
    return index
