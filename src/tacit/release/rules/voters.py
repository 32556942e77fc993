"""The two kinds of public databases that vote in the median mechanism: of m records each, or fractional. Called by it.

Both are samples of what agrees with the released answers, made from public seeds alone (Roth & Roughgarden 2010,
section 3 and section 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.release import samplers

if TYPE_CHECKING:  # the samplers bring numba and scipy along: half a second, and only where there is voting
    from tacit.release.samplers.databases import Ensemble
    from tacit.release.samplers.fractions import Fractions

SLAB_RECORDS = 5  # a slab is at least this many records wide to either side, or the walk between databases is stuck
STIR_SWEEPS = 10
Values = NDArray[np.float64]


class Votes(Protocol):
    """A sample of databases. Its methods return a new one and leave the old one as it was."""

    @property
    def floor(self) -> float:
        """How far databases are apart, on average, on a question about which all is known; as a fraction."""
        ...

    @property
    def note(self) -> str:
        """What is wrong with the sample, if anything."""
        ...

    def check(self, questions: Sequence[Query | Statistic]) -> None:
        """Refuse what these databases cannot answer."""
        ...

    def values(self, question: Query | Statistic) -> Values:
        """The question's value on each database, as a fraction."""
        ...

    def restrict(self, question: Query | Statistic, centre: float, width: float, *, seed: int) -> Self: ...

    def stir(self, *, seed: int) -> Self: ...

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]: ...

    def arrays(self) -> list[NDArray[Any]]:
        """All that the databases hold, in numbers whose bits can be compared."""
        ...


@dataclass(frozen=True, eq=False)
class DatabaseVotes:
    """Databases of m records, for any question and a domain of any size."""

    ensemble: Ensemble

    @classmethod
    def start(cls, domain: Domain, databases: int, records: int, seed: int) -> DatabaseVotes:
        samplers.check()
        from tacit.release.samplers.databases import start

        return cls(start(domain, databases=databases, records=records, seed=seed))

    @property
    def floor(self) -> float:
        # m records cannot follow a value p closer than sqrt(p(1-p)/m); on average they are 0.8 of that away.
        return 0.4 / math.sqrt(self.ensemble.records)

    @property
    def note(self) -> str:
        found = self.ensemble.diagnostics
        if found is None or found.mixed:
            return ""
        if found.infeasible:
            return f"{found.infeasible:,} of {found.databases:,} databases disagree with past answers"
        return "the databases have not mixed well, so more questions than needed may be hard"

    def check(self, questions: Sequence[Query | Statistic]) -> None:
        for question in questions:
            if isinstance(question, Statistic):
                self.values(question)  # a table that is too large for so many databases is refused

    def values(self, question: Query | Statistic) -> Values:
        return _values_of(question)(self.ensemble)

    def restrict(self, question: Query | Statistic, centre: float, width: float, *, seed: int) -> DatabaseVotes:
        from tacit.release.samplers.databases import restrict

        what = question if isinstance(question, Query) else _values_of(question)
        width = max(width, SLAB_RECORDS / self.ensemble.records)
        return DatabaseVotes(restrict(self.ensemble, what, centre, width, seed=seed))

    def stir(self, *, seed: int) -> DatabaseVotes:
        from tacit.release.samplers.databases import stir

        return DatabaseVotes(stir(self.ensemble, seed=seed, sweeps=STIR_SWEEPS))

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        chosen = rng.integers(len(self.ensemble) * self.ensemble.records, size=rows)
        columns = (self.ensemble.column(name).reshape(-1) for name in self.ensemble.domain.names)
        return [column[chosen].astype(np.intp) for column in columns]

    def arrays(self) -> list[NDArray[Any]]:
        return [self.ensemble.codes.astype("<u4")]


@dataclass(frozen=True, eq=False)
class FractionVotes:
    """Fractional databases: samples of a polytope of distributions, for linear questions that cut X into few atoms."""

    fractions: Fractions
    left_out: int = 0  # answers that would have cut X into too many atoms
    floor = 0.0

    @classmethod
    def start(cls, domain: Domain, databases: int, seed: int) -> FractionVotes:
        samplers.check()
        from tacit.release.samplers.fractions import Fractions

        return cls(Fractions.start(domain, databases, seed))

    @property
    def note(self) -> str:
        apart = float((self.fractions.slabs.violation(self.fractions.samples.values) > 1e-9).mean())
        if self.left_out:
            return f"{self.left_out:,} past answers could not be learned: they cut the domain into too many parts"
        return f"{apart:.0%} of the databases disagree with past answers" if apart else ""

    def check(self, questions: Sequence[Query | Statistic]) -> None:
        if not all(isinstance(question, Query) for question in questions):
            raise InvalidQuery('fractional databases answer linear questions only; sampler="databases" answers others.')

    def values(self, question: Query | Statistic) -> Values:
        assert isinstance(question, Query)
        return self.fractions.values(question)

    def restrict(self, question: Query | Statistic, centre: float, width: float, *, seed: int) -> FractionVotes:
        if not isinstance(question, Query):
            return self
        try:
            return replace(self, fractions=self.fractions.restrict(question, centre, width, seed=seed))
        except InvalidQuery:  # paid for and answered all the same
            return replace(self, left_out=self.left_out + 1)

    def stir(self, *, seed: int) -> FractionVotes:
        return replace(self, fractions=self.fractions.stir(STIR_SWEEPS, seed))

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        raise InvalidQuery('fractional databases have no rows; sampler="databases" has.')

    def arrays(self) -> list[NDArray[Any]]:
        return [self.fractions.samples.masses.astype("<f8")]


def _values_of(question: Query | Statistic) -> Callable[[Ensemble], Values]:
    def evaluate(ensemble: Ensemble) -> Values:
        if isinstance(question, Query):
            return ensemble.values(question)
        steps = question.evaluate(ensemble.tables(question.scope))
        values: Values = steps / (ensemble.records * float(question.unit))
        return values

    return evaluate
