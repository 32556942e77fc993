"""The median mechanism as people can use it (Roth & Roughgarden 2010): public databases vote on every question.

Known so far is a set of databases that agree with all past hard answers; a sample of it stands for the whole set. A
question is easy if most of the sampled databases nearly agree with the truth, and then their median is the answer.
Otherwise it is bought, and the databases that disagree with the answer go. They have m records each (section 3;
`samplers.databases`), or are fractional (section 5; `samplers.fractions`).

The paper's constants are proof devices. Here the number of records of a database, the slab width, the number of hard
answers and the thresholds are free. Privacy rests on the gate and the bought answers alone, whatever the databases are;
and so does the error bar, because gate and median look at the same sampled databases. See docs/understand/privacy.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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
STIR_SWEEPS = 10


class Voters:
    """Databases that agree with all past hard answers up to their noise: public knowledge for the online loop."""

    def __init__(self, domain: Domain, rows: int, shown: float, settings: MedianSettings) -> None:
        """`shown`: what the lens of an easy question may show beyond the floor."""
        self._rows, self._settings = rows, settings
        self._settled = self.votes = self._start(domain)
        self._learned_at, self._stirred = 0, 0
        self._left_out = 0  # answers that would have cut X into too many atoms
        self.floor = rows * self.votes.floor
        self.reach = max(1.0, min(REACH * (shown + self.floor), 2.0**31))

    def _start(self, domain: Domain) -> Ensemble | Fractions:
        samplers.check()
        from tacit.release.samplers.databases import Ensemble
        from tacit.release.samplers.fractions import Fractions

        number, seed = self._settings.databases, self._seed("start")
        if self._settings.sampler == "fractions":
            return Fractions.start(domain, number, seed)
        return Ensemble.start(domain, databases=number, records=self._settings.records, seed=seed)

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        self.votes.check(queries)

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        for one in measured:
            if isinstance(one.question, Query | Statistic):  # a cell of a table is a question like any other
                self._restrict(one, one.question)
        stirred = (entries - self._learned_at) // STIR_EVERY
        if stirred != self._stirred:  # always from the settled ones, so that a restart need not repeat every stirring
            self.votes = self._settled.stir(seed=self._seed("stir", self._learned_at, stirred), sweeps=STIR_SWEEPS)
            self._stirred = stirred

    def _restrict(self, measured: Measured, question: Query | Statistic) -> None:
        rows = self._rows * measured.unit
        centre = min(max(int(measured.values[0]) / rows, 0.0), 1.0)
        # This width holds for all answers together, 19 times in 20.
        width = max(quantile(measured.noise, 1 - 0.05 / self._settings.hits) / rows, self._settled.least_width)
        seed = self._seed("learn", measured.receipt.entry)
        try:
            self._settled = self.votes = self._settled.restrict(question, centre, width, seed=seed)
        except InvalidQuery:  # it would cut X into too many atoms; paid for and answered all the same
            self.votes = self._settled
            self._left_out += 1
        self._learned_at, self._stirred = measured.receipt.entry, 0

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        return query  # databases are told about single answers only

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses:
        values = np.stack([self.votes.values(query) for query in queries]) * self._rows
        middle = (values.shape[1] - 1) // 2  # the lower median, as in Roth's lecture 8
        lenses = [Disagreement(row, self.reach) for row in values]
        medians = np.partition(values, middle, axis=1)[:, middle]
        note = f"{self._left_out:,} past answers could not be learned: they cut the domain into too many parts"
        return Guesses(medians, lenses, self.floor, note if self._left_out else self.votes.note)

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
