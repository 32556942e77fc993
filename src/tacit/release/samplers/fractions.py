"""Many fractional databases that agree with the released answers, as a hypothesis. Called by the median mechanism.

Roth & Roughgarden 2010, section 5: samples of the polytope C_i answer a query by their values' median. Everything here
is a function of released answers and recorded seeds, so it can be replayed and costs no privacy, whatever it does.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers.atoms import Atoms, atoms
from tacit.release.samplers.centre import centre
from tacit.release.samplers.diagnostics import PROBES, median_error, probes
from tacit.release.samplers.pairs import pair_step
from tacit.release.samplers.polytope import MAX_MASSES, Samples, Slabs, dirichlet, repair, settled

Array = NDArray[np.float64]

LARGE = 50_000  # cells from which chains start afresh around the centre: pair moves alone would be too slow
SWEEPS = 20
ROUNDING = 1e-9  # how far beyond a slab still counts as inside it


class FractionDiagnostics(NamedTuple):
    """What tells whether the samples can be trusted. Published figures are functions of public things alone.

    `drift` and `renewed` compare the middle and the end of the last stirring over public probe queries. Drift is the
    root mean square change of their means, in standard errors: about 1 or less for chains that have mixed, but also for
    chains that stand still. So `renewed` says how far the samples moved: one less the correlation of their values.
    """

    atoms: int
    slabs: int
    infeasible: float  # the share of samples outside a slab
    violation: float  # how far the worst of them is
    drift: float
    renewed: float
    median_error: float  # the largest standard error of a probe's median


@dataclass(frozen=True, eq=False)
class Fractions:
    """Samples of the distributions over X that agree with the answers, held as masses of atoms.

    Its methods return a new ensemble and leave the old one as it was.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> woman = Query.among(domain, "sex", [0])
    >>> ensemble = Fractions.start(domain, samples=500, seed=1).restrict(woman, 0.8, 0.01)
    >>> bool(abs(ensemble.values(woman) - 0.8).max() <= 0.01), ensemble.diagnostics().infeasible
    (True, 0.0)
    """

    domain: Domain
    seed: int
    atoms: Atoms
    slabs: Slabs
    samples: Samples
    halfway: Samples
    turn: int = 0  # how often it was stirred: every turn has random numbers of its own

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

    def values(self, query: Query) -> Array:
        """The query's value on each sample. The same ensemble gives the same query the same values."""
        if query.is_constant:
            return np.full(len(self), query.table((), ()).item() / query.unit)
        finer, parent = self.atoms.split(query.core)
        values = self._values(self.samples.masses, finer, parent, query)
        return 1 - values if query.complement else values

    def answer(self, query: Query) -> float:
        """The (lower) median of the samples' values."""
        middle = (len(self) - 1) // 2
        return float(np.partition(self.values(query), middle)[middle])

    def restrict(
        self, query: Query, centre: float, width: float, seed: int | None = None, sweeps: int = SWEEPS
    ) -> Fractions:
        """Only the distributions on which the query is within `width` of `centre`; the samples are moved there.

        Within an atom that the query splits, the parts have a Beta law, which is drawn exactly; so before they are
        moved, the finer samples have the law of the coarser polytope. On large domains they are drawn afresh
        around the analytic centre instead.
        """
        if query.is_constant:
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
        return moved.stir(sweeps, seed)

    def stir(self, sweeps: int = SWEEPS, seed: int | None = None) -> Fractions:
        """Moves all samples on, by this many sweeps of pair moves."""
        rng = _rng(self.seed if seed is None else seed, self.turn + 1, 1)
        halfway = pair_step(rng, self.slabs, self.samples, sweeps // 2)
        samples = pair_step(rng, self.slabs, halfway, sweeps - sweeps // 2)
        return replace(self, samples=samples, halfway=halfway, turn=self.turn + 1)

    def diagnostics(self, number: int = PROBES) -> FractionDiagnostics:
        """Feasibility of all samples, and drift and precision over this many of the probes."""
        violation = self.slabs.violation(self.samples.values)
        changes, moves, errors = [], [], []
        for query in probes(self.domain, ())[:number]:
            finer, parent = self.atoms.split(query.core)
            before = self._values(self.halfway.masses, finer, parent, query, 1)
            after = self._values(self.samples.masses, finer, parent, query)
            both = np.cov(before, after) if len(self) > 1 else np.zeros((2, 2))
            if both[0, 0] > 0 and both[1, 1] > 0:
                changes.append((after.mean() - before.mean()) / np.sqrt(np.trace(both) / len(self)))
                moves.append(1 - both[0, 1] / np.sqrt(both[0, 0] * both[1, 1]))
            errors.append(median_error(after))
        return FractionDiagnostics(
            atoms=len(self.atoms),
            slabs=len(self.slabs.low),
            infeasible=float((violation > ROUNDING).mean()),
            violation=float(violation.max()),
            drift=float(np.sqrt(np.mean(np.square(changes)))) if changes else 0.0,
            renewed=float(np.mean(moves)) if moves else 0.0,
            median_error=max(errors, default=0.0),
        )

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
