"""Many fractional databases that agree with the released answers, as a hypothesis. Called by the median mechanism.

Roth & Roughgarden 2010, section 5: samples of the polytope C_i answer a query by their values' median. Everything here
is a function of released answers and recorded seeds, so it can be replayed and costs no privacy, whatever it does.

A sample holds the masses of atoms, the cells of X that no past query tells apart, which are counted without listing X.
A cell's pattern is a row of bits: one for each query, whether all its conditions hold, and a small number for each
weighted factor. An attribute (or a block of attributes that some table ties together) gives each of its values a
pattern with ones wherever it has no say; the pattern of a cell is the AND of its values' patterns. So blocks are taken
in one by one, and equal patterns are merged at once: 10^12 cells take a second if their patterns are few.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.release.samplers.diagnostics import MOST_MEMORY, NOT_MIXED, PROBES, Diagnostics, diagnose, memory, probes
from tacit.release.samplers.pairs import pair_step
from tacit.release.samplers.polytope import MAX_MASSES, Samples, Slabs, centre, dirichlet, repair, settled

LARGE = 50_000  # cells from which chains start afresh around the centre: pair moves alone would be too slow
_SWEEPS = 20  # at first; each further run is twice as long, until the samples have forgotten where they were
MOST_SWEEPS = 640
FORGOTTEN = 0.3  # over half of the last run, which is a quarter of all: 0.01 over all of them
_SETS = 40  # random sets of atoms, whose masses show what is forgotten
_ROUNDING = 1e-9  # how far beyond a slab still counts as inside it
MAX_ATOMS = 2**21
MAX_BLOCK = 2**24  # cells of attributes that tables tie together, which are listed
_MERGED = 2**22  # patterns that are compared at a time
Array = NDArray[np.float64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fractions:
    """Samples of the distributions over X that agree with the answers, held as masses of atoms.

    Its methods return a new ensemble and leave the old one as it was.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> woman = Query.among(domain, "sex", [0])
    >>> ensemble = Fractions.start(domain, samples=500, seed=1).restrict(woman, 0.8, 0.01)
    >>> bool(abs(ensemble.values(woman) - 0.8).max() <= 0.01), ensemble.diagnostics().infeasible
    (True, 0)
    """

    domain: Domain
    seed: int
    atoms: Atoms
    slabs: Slabs
    samples: Samples
    halfway: Samples
    turn: int = 0  # how often it was stirred: every turn has random numbers of its own
    memory: float = 0.0  # of where they were half of the last run before
    floor: ClassVar[float] = 0.0  # there is a distribution for every answer, however sharp
    least_width: ClassVar[float] = 0.0

    @classmethod
    def start(cls, domain: Domain, samples: int, seed: int) -> Fractions:
        """Independent uniform samples of all distributions over X."""
        if samples < 1:
            raise InvalidQuery(f"an ensemble has at least 1 sample, not {samples}.")
        whole = atoms(domain, [])
        slabs = Slabs.whole(whole.sizes)
        drawn = dirichlet(_rng(seed, 0), slabs, samples)
        return cls(domain, seed, whole, slabs, drawn, drawn)

    def __len__(self) -> int:
        return int(self.samples.masses.shape[1])

    @property
    def note(self) -> str:
        """What is wrong with the samples, if anything."""
        apart = float((self.slabs.violation(self.samples.values) > _ROUNDING).mean())
        if apart:
            return f"{apart:.0%} of the databases disagree with past answers"
        return NOT_MIXED if self.memory > MOST_MEMORY else ""

    def values(self, query: Query | Statistic) -> Array:
        """The query's value on each sample. The same ensemble gives the same query the same values."""
        assert isinstance(query, Query)
        if query.is_constant:
            return np.full(len(self), query.table((), ()).item() / query.unit)
        finer, parent = self.atoms.split(query.core)
        values = self._values(self.samples.masses, finer, parent, query)
        return 1 - values if query.complement else values

    def restrict(
        self, query: Query | Statistic, centre: float, width: float, seed: int | None = None, sweeps: int | None = None
    ) -> Fractions:
        """Only the distributions on which the query is within `width` of `centre`; the samples are moved there.

        Within an atom that the query splits, the parts have a Beta law, which is drawn exactly; so before they are
        moved, the finer samples have the law of the coarser polytope. On large domains they are drawn afresh
        around the analytic centre instead. Statistics teach them nothing.
        """
        if not isinstance(query, Query) or query.is_constant:
            return self
        core, middle = query.core, 1 - centre if query.complement else centre
        finer, parent = self.atoms.split(core)
        if len(finer) * len(self) > MAX_MASSES:
            raise InvalidQuery(
                f"the answers cut the domain into {len(finer):,} kinds of cells; {len(self):,} samples of that many "
                f"masses are more than the {MAX_MASSES:,} that fit."
            )
        low, high = self.slabs.low, self.slabs.high
        slabs = Slabs(finer.sizes, finer.weights[:, :-1], low, high).within(finer.newest, middle, width)
        rng = _rng(self.seed if seed is None else seed, self.turn + 1)
        masses = self.samples.masses[parent] * _shares(rng, finer.sizes, parent, len(self))
        moved = replace(self, atoms=finer, slabs=slabs, samples=_enter(rng, slabs, settled(slabs, masses)))
        # Around the centre they are independent draws already, and there is little to forget.
        return moved.stir(_SWEEPS if sweeps is None and slabs.sizes.sum() >= LARGE else sweeps, seed)

    def stir(self, sweeps: int | None = None, seed: int | None = None) -> Fractions:
        """Moves all samples on, by this many sweeps of pair moves; else by as many as they need to forget.

        How many these are grows as slabs become narrow: a step is no longer than the slabs are wide.
        """
        rng = _rng(self.seed if seed is None else seed, self.turn + 1, 1)
        samples, length, done = self.samples, _SWEEPS if sweeps is None else sweeps, 0
        while True:
            halfway = pair_step(rng, self.slabs, samples, length // 2)
            samples = pair_step(rng, self.slabs, halfway, length - length // 2)
            kept = self._memory(halfway, samples) if length else 0.0
            done += length
            if sweeps is not None or kept <= FORGOTTEN or done + 2 * length > MOST_SWEEPS:
                return replace(self, samples=samples, halfway=halfway, turn=self.turn + 1, memory=kept)
            length *= 2

    def _memory(self, before: Samples, after: Samples) -> float:
        """What the masses of random sets of atoms have to do with what they were: 0 once that is forgotten."""
        sets = (_rng(len(self.atoms)).random((_SETS, len(self.atoms))) < 0.5).astype(np.float64)
        return memory(sets @ before.masses, sets @ after.masses)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        raise InvalidQuery('fractional databases have no rows; sampler="databases" has.')

    def arrays(self) -> list[NDArray[Any]]:
        return [self.samples.masses.astype("<f8")]

    def diagnostics(self, number: int = PROBES) -> Diagnostics:
        """Feasibility of all samples, and drift, memory and precision over this many of the probes."""
        halfway, final = [], []
        for query in probes(self.domain, ())[:number]:
            finer, parent = self.atoms.split(query.core)
            halfway.append(self._values(self.halfway.masses, finer, parent, query, 1))
            final.append(self._values(self.samples.masses, finer, parent, query))
        outside = self.slabs.violation(self.samples.values) > _ROUNDING
        shape = (len(final), len(self))
        return diagnose(np.reshape(halfway, shape), np.reshape(final, shape), int(outside.sum()))

    def _values(self, masses: Array, finer: Atoms, parent: NDArray[np.intp], query: Query, extra: int = 0) -> Array:
        rng = _rng(self.seed, self.turn, int(query.core.key[:15], 16), extra)
        weights = finer.newest
        single = np.bincount(parent)[parent] == 1
        values: Array = weights[single] @ masses[parent[single]]
        if not single.all():
            some = parent[~single]
            shares = _shares(rng, finer.sizes[~single], some, masses.shape[1])
            values += weights[~single] @ (shares * masses[some])
        return values


def _enter(rng: np.random.Generator, slabs: Slabs, samples: Samples) -> Samples:
    """Chains in the slabs, as far as that can be done: around the centre on large domains, else from where they are."""
    if slabs.sizes.sum() >= LARGE:
        with suppress(InvalidQuery, np.linalg.LinAlgError):  # no common point: `infeasible` will say so
            samples = centre(slabs).draw(rng, samples.masses.shape[1])
    return repair(rng, slabs, samples)


def _shares(rng: np.random.Generator, sizes: Array, parent: NDArray[np.intp], chains: int) -> Array:
    """How the mass of an atom is shared out among its parts under the uniform law: Dirichlet with the parts' sizes."""
    starts = np.flatnonzero(np.concatenate([[True], parent[1:] != parent[:-1]]))
    drawn = rng.standard_gamma(sizes[:, None], size=(len(sizes), chains))
    group = np.cumsum(np.concatenate([[False], parent[1:] != parent[:-1]]))
    shares: Array = drawn / np.add.reduceat(drawn, starts, axis=0)[group]
    return shares


def _rng(*seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


# -- atoms -------------------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """Where a pattern keeps a query's conditions (no factor), or the level of one of its weighted factors."""

    word: int
    shift: int
    bits: int
    factor: Factor | None
    levels: Array


@dataclass(frozen=True, eq=False)
class Atoms:
    """The patterns that cells of the domain have under these queries, in ascending order, and how many have each."""

    domain: Domain
    queries: tuple[Query, ...]
    patterns: Words
    sizes: Array

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def weights(self) -> Array:
        """The weight that each query gives the cells of each atom: a row for each atom, a column for each query."""
        columns = [_weights(query, fields, self.patterns) for query, fields in _layout(self.queries)]
        return np.ascontiguousarray(np.column_stack(columns)) if columns else np.zeros((len(self), 0))

    @cached_property
    def newest(self) -> Array:
        """The weights of the last query alone."""
        *_, (query, fields) = _layout(self.queries)
        return _weights(query, fields, self.patterns)

    def split(self, query: Query) -> tuple[Atoms, NDArray[np.intp]]:
        """The atoms that one more query makes, and for each of them the atom it is a part of."""
        finer = atoms(self.domain, [*self.queries, query])
        *_, (_, fields) = _layout(finer.queries)
        patterns = finer.patterns.copy()
        for field in fields:
            patterns[:, field.word] &= ~_mask(field)
        changes = (patterns[1:] != patterns[:-1]).any(axis=1)
        return finer, np.concatenate([[0], np.cumsum(changes)])


def atoms(domain: Domain, queries: Sequence[Query]) -> Atoms:
    """The atoms of these queries. Refuses if they are too many, or if a block of tied attributes is too large.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> red_woman = Query.among(domain, "sex", [0]) & Query.among(domain, "hair", [0])
    >>> atoms(domain, [red_woman]).sizes.tolist(), atoms(domain, [red_woman]).weights.ravel().tolist()
    ([5.0, 1.0], [0.0, 1.0])
    """
    for query in queries:
        if not query.fits(domain):
            raise InvalidQuery("the question was made for another domain.")
    layout = list(_layout(queries))
    words = 1 + max((field.word for _, fields in layout for field in fields), default=0)
    everything = np.zeros(words, dtype=np.uint64)
    for _, fields in layout:
        for field in fields:
            everything[field.word] |= _mask(field)
    patterns, sizes = everything[None, :], np.ones(1)
    for block in sorted(_blocks(domain, queries), key=domain.size_of):
        if not any(set(block).intersection(factor.scope) for query in queries for factor in query.factors):
            sizes = sizes * domain.size_of(block)
        else:
            patterns, sizes = _merge(patterns, sizes, *_block_patterns(domain, block, layout, everything))
    return Atoms(domain, tuple(queries), patterns, sizes)


def _layout(queries: Sequence[Query]) -> Iterator[tuple[Query, list[_Field]]]:
    """From the highest bit of the first word down, so that one more query never moves the bits of the others."""
    word, free = 0, 64
    for query in queries:
        fields = []
        for factor in (None, *(factor for factor in query.factors if factor.unit > 1)):
            levels = np.ones(2) if factor is None else np.unique(factor.weights) / factor.unit
            bits = max(1, math.ceil(math.log2(len(levels))))
            if bits > free:
                word, free = word + 1, 64
            free -= bits
            fields.append(_Field(word, free, bits, factor, levels))
        yield query, fields


def _mask(field: _Field) -> np.uint64:
    return np.uint64(((1 << field.bits) - 1) << field.shift)


def _weights(query: Query, fields: Sequence[_Field], patterns: Words) -> Array:
    weights = np.ones(len(patterns))
    for field in fields:
        code = ((patterns[:, field.word] & _mask(field)) >> np.uint64(field.shift)).astype(np.intp)
        weights *= code if field.factor is None else field.levels[code]
    return 1 - weights if query.complement else weights


def _blocks(domain: Domain, queries: Sequence[Query]) -> list[tuple[str, ...]]:
    """The attributes, in groups such that no factor of a query reaches over two groups."""
    blocks = [{name} for name in domain.names]
    for query in queries:
        for factor in query.factors:
            met = [block for block in blocks if not block.isdisjoint(factor.scope)]
            if len(met) > 1:
                blocks = [block for block in blocks if block not in met] + [set().union(*met)]
    return [tuple(name for name in domain.names if name in block) for block in blocks]


def _block_patterns(
    domain: Domain, names: Sequence[str], layout: Sequence[tuple[Query, list[_Field]]], everything: Words
) -> tuple[Words, Array]:
    """The distinct patterns of a block's cells, and how many cells have each."""
    cells = domain.size_of(names)
    if cells > MAX_BLOCK:
        raise InvalidQuery(
            f"tables tie {', '.join(names)} together, {cells:,} cells; at most {MAX_BLOCK:,} can be listed."
        )
    shape = domain.shape_of(names)
    columns = [np.full(shape, word, dtype=np.uint64) for word in everything]
    for query, fields in layout:
        for factor in query.factors:
            if not set(factor.scope) <= set(names):
                continue
            field = next(f for f in fields if f.factor is (None if factor.unit == 1 else factor))
            codes = factor.weights if factor.unit == 1 else np.searchsorted(field.levels, factor.weights / factor.unit)
            spread = np.zeros([domain[name].size if name in factor.scope else 1 for name in names], dtype=np.uint64)
            order = np.argsort(np.argsort([names.index(name) for name in factor.scope]))
            spread += np.asarray(codes, dtype=np.uint64).transpose(np.argsort(order)).reshape(spread.shape)
            columns[field.word] &= (spread << np.uint64(field.shift)) | ~_mask(field)
    return _distinct(np.stack([column.ravel() for column in columns], axis=1), np.ones(cells))


def _merge(patterns: Words, sizes: Array, others: Words, counts: Array) -> tuple[Words, Array]:
    """The distinct ANDs of two sets of patterns, sizes multiplied."""
    rows = max(1, _MERGED // len(patterns))
    found, total = patterns[:0], sizes[:0]
    for start in range(0, len(others), rows):
        some = (patterns[:, None, :] & others[None, start : start + rows, :]).reshape(-1, patterns.shape[1])
        mass = np.outer(sizes, counts[start : start + rows]).ravel()
        found, total = _distinct(np.concatenate([found, some]), np.concatenate([total, mass]))
        if len(found) > MAX_ATOMS:
            raise InvalidQuery(f"the questions cut the domain into more than {MAX_ATOMS:,} kinds of cells.")
    return found, total


def _distinct(patterns: Words, sizes: Array) -> tuple[Words, Array]:
    order = np.lexsort(patterns.T[::-1])
    ordered = patterns[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    return np.ascontiguousarray(ordered[starts]), np.add.reduceat(sizes[order], starts)
