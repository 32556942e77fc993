"""The median mechanism as people can use it (Roth & Roughgarden 2010): public databases vote on every question.

Known so far is a set of databases that agree with all past hard answers; a sample of it stands for the whole set. A
question is easy if most of the sampled databases nearly agree with the truth, and then their median is the answer.
Otherwise it is bought, and the databases that disagree with the answer go.

The paper's constants are proof devices. Here the number of records of a database, the slab width, the number of hard
answers and the thresholds are free. Privacy rests on the gate and the bought answers alone, whatever the databases are;
and so does the error bar, because gate and median look at the same sampled databases. See docs/understand/privacy.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.request import Disagreement
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release import samplers
from tacit.release.online import Guesses, Online, Terms
from tacit.release.public import Public
from tacit.release.settings import MedianSettings

if TYPE_CHECKING:  # the samplers bring numba and scipy along: half a second, and only where there is voting
    from tacit.release.samplers.databases import Ensemble
    from tacit.release.samplers.fractions import Fractions
    from tacit.trusted.curator import Curator

REACH = 8.0  # of the lens, in units of what it may show for an easy question
AT_ONCE = 256  # questions: each has a value in every database
STIR_EVERY = 1024  # ledger entries: adaptive questions could come to know one fixed sample too well
SLAB_RECORDS = 5  # a slab is at least this many records wide to either side, or the walk between databases is stuck
STIR_SWEEPS = 10
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DatabaseVotes:
    """Databases of m records, for any question and a domain of any size (Roth & Roughgarden 2010, section 3).

    The methods of either kind return a new sample, made from public seeds alone, and leave the old one as it was.
    """

    ensemble: Ensemble

    @classmethod
    def start(cls, domain: Domain, databases: int, records: int, seed: int) -> DatabaseVotes:
        samplers.check()
        from tacit.release.samplers.databases import start

        return cls(start(domain, databases=databases, records=records, seed=seed))

    @property
    def floor(self) -> float:
        """How far databases are apart, on average, on a question about which all is known; as a fraction."""
        # m records cannot follow a value p closer than sqrt(p(1-p)/m); on average they are 0.8 of that away.
        return 0.4 / math.sqrt(self.ensemble.records)

    @property
    def note(self) -> str:
        """What is wrong with the sample, if anything."""
        found = self.ensemble.diagnostics
        if found is None or found.mixed:
            return ""
        if found.infeasible:
            return f"{found.infeasible:,} of {found.databases:,} databases disagree with past answers"
        return "the databases have not mixed well, so more questions than needed may be hard"

    def check(self, questions: Sequence[Query | Statistic]) -> None:
        """Refuse what these databases cannot answer."""
        for question in questions:
            if isinstance(question, Statistic):
                self.values(question)  # a table that is too large for so many databases is refused

    def values(self, question: Query | Statistic) -> Values:
        """The question's value on each database, as a fraction."""
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
        """All that the databases hold, in numbers whose bits can be compared."""
        return [self.ensemble.codes.astype("<u4")]


@dataclass(frozen=True, eq=False)
class FractionVotes:
    """Fractional databases (section 5): samples of a polytope, for linear questions that cut X into few atoms."""

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


Votes = DatabaseVotes | FractionVotes
# Each sampler by its name: what it starts with for a domain, from the settings and a seed.
SAMPLERS: dict[str, Callable[[Domain, MedianSettings, int], Votes]] = {
    "databases": lambda domain, settings, seed: DatabaseVotes.start(domain, settings.databases, settings.records, seed),
    "fractions": lambda domain, settings, seed: FractionVotes.start(domain, settings.databases, seed),
}


class Voters:
    """Databases that agree with all past hard answers up to their noise: public knowledge for the online loop."""

    def __init__(self, domain: Domain, rows: int, shown: float, settings: MedianSettings) -> None:
        """`shown`: what the lens of an easy question may show beyond the floor."""
        self._rows, self._settings = rows, settings
        self._settled = self.votes = SAMPLERS[settings.sampler](domain, settings, self._seed("start"))
        self._learned_at, self._stirred = 0, 0
        self.floor = rows * self.votes.floor
        self.reach = max(1.0, min(REACH * (shown + self.floor), 2.0**31))

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        self.votes.check(queries)

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        for one in measured:
            if isinstance(one.question, Query | Statistic):  # a cell of a table is a question like any other
                self._restrict(one, one.question)
        stirred = (entries - self._learned_at) // STIR_EVERY
        if stirred != self._stirred:  # always from the settled ones, so that a restart need not repeat every stirring
            self.votes = self._settled.stir(seed=self._seed("stir", self._learned_at, stirred))
            self._stirred = stirred

    def _restrict(self, measured: Measured, question: Query | Statistic) -> None:
        rows = self._rows * measured.unit
        centre = min(max(int(measured.values[0]) / rows, 0.0), 1.0)
        # This width holds for all answers together, 19 times in 20.
        width = quantile(measured.noise, 1 - 0.05 / self._settings.hits) / rows
        seed = self._seed("learn", measured.receipt.entry)
        self._settled = self.votes = self._settled.restrict(question, centre, width, seed=seed)
        self._learned_at, self._stirred = measured.receipt.entry, 0

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        return query  # databases are told about single answers only

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses:
        values = np.stack([self.votes.values(query) for query in queries]) * self._rows
        middle = (values.shape[1] - 1) // 2  # the lower median, as in Roth's lecture 8
        lenses = [Disagreement(row, self.reach) for row in values]
        medians = np.partition(values, middle, axis=1)[:, middle]
        return Guesses(medians, lenses, self.floor, self.votes.note)

    def arrays(self) -> Iterable[NDArray[Any]]:
        return self.votes.arrays()

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Synthetic rows: records of the databases, drawn at random."""
        return self.votes.draw(rows, rng)

    def _seed(self, *words: str | int) -> int:
        digest = hashlib.sha256(repr((self._settings.seed, *words)).encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1


def median(public: Public, curator: Curator | None, settings: MedianSettings, confidence: float) -> Online[Voters]:
    """The mechanism, from public parameters."""
    terms = Terms.of(public.total, hits=settings.hits, confidence=confidence, rows_per_person=public.rows_per_person)

    def begin() -> tuple[Voters, None]:
        return Voters(public.domain, public.rows, terms.shown(terms.threshold(settings.questions)), settings), None

    return Online(public, curator, begin, terms, questions=settings.questions, halt=settings.halt, at_once=AT_ONCE)
