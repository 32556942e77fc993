"""The median mechanism as people can use it (Roth & Roughgarden 2010): public databases vote on every question.

Known so far is a set of databases that agree with all past hard answers; a sample of it stands for the whole set. A
question is easy if most of the sampled databases nearly agree with the truth, and then their median is the answer.
Otherwise it is bought, and the databases that disagree with the answer go. They have m records each (section 3;
`samplers.databases`), or are fractional (section 5; `samplers.fractions`). Those start from nothing, as in the paper.
After a warm start they are draws of what its release leaves open (`samplers.plausible`).

The paper's constants are proof devices. Here the number of records of a database, the slab width, the number of hard
answers and the thresholds are free. Privacy rests on the gate and the bought answers alone, whatever the databases are;
and so does the error bar, because gate and median look at the same sampled databases. See docs/understand/privacy.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

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
from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS
from tacit.release.hypothesis.fit import StepProgress
from tacit.release.hypothesis.mixture import MAX_MIXED_VALUES
from tacit.release.knowledge import Guesses
from tacit.release.online import Online
from tacit.release.online_terms import Terms
from tacit.release.public import Public
from tacit.release.settings import MedianSettings
from tacit.release.warm_start import WarmStart

if TYPE_CHECKING:  # the samplers bring numba and scipy along: half a second, and only where there is voting
    from tacit.release.samplers.databases import Ensemble
    from tacit.release.samplers.fractions import Fractions
    from tacit.release.samplers.weighted_records import Weighted
    from tacit.trusted.curator import Curator

    Votes: TypeAlias = Ensemble | Fractions | Weighted

REACH = 8.0  # of the lens, in units of what it may show for an easy question
_AT_ONCE = 256  # questions: each has a value in every database
STIR_EVERY = 1024  # ledger entries: adaptive questions could come to know one fixed sample too well
STIR_SWEEPS = 10
_USUAL: Mapping[str, Any] = {"warm": 0.7, "certify": 0.1, "hits": 5, "databases": 100, "records": 50_000}


class Voters:
    """Databases that agree with all past hard answers up to their noise: public knowledge for the online loop.

    They start from nothing, or are drawn to be plausible after a warm start. That takes seconds, and a certified base
    answers most questions without them: so they are drawn, and told what was bought, when they are first needed.
    """

    def __init__(
        self, domain: Domain, rows: int, shown: float, settings: MedianSettings, progress: StepProgress | None = None
    ) -> None:
        """`shown`: what the lens of an easy question may show beyond the floor."""
        samplers.check()
        self._domain, self._rows, self._shown, self._settings = domain, rows, shown, settings
        self._progress, self._found = progress, cast(WarmStart | None, None)
        self._settled: Votes | None = None  # what they are after the last hard answer
        self._stirred_votes: Votes | None = None
        self._waiting: list[Measured] = []  # to be learned
        self._entries, self._learned_at, self._stirred = 0, 0, 0
        self._left_out = 0  # answers that could not be learned
        self._floor = 0.0
        self.note = ""

    def start_from(self, found: WarmStart, *, tables: bool) -> None:
        self._found = found
        if not found.fitted.settled:
            self.note = "the warm start fits its own tables badly: rely on the error bars"

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        for query in queries:
            if isinstance(query, Statistic):
                if self._settings.sampler == "fractions":
                    raise InvalidQuery(
                        'fractional databases answer linear questions only; sampler="databases" answers others.'
                    )
                cells = self._domain.size_of(query.scope)
                samplers.check_tables(cells, self._settings.databases)

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        # A cell of a table is a question like any other, and asked like one.
        self._waiting += [one for one in measured if isinstance(one.question, Query | Statistic)]
        self._entries = entries

    @property
    def votes(self) -> Votes:
        """The databases, after all that was learned."""
        if self._settled is None:
            started = self._start()
            self._floor, self._settled = self._rows * started.floor, started
        settled = self._settled
        while self._waiting:
            settled = self._restricted(settled, self._waiting[0])
            self._settled, self._waiting, self._stirred_votes = settled, self._waiting[1:], None
        stirred = (self._entries - self._learned_at) // STIR_EVERY
        if self._stirred_votes is None or stirred != self._stirred:
            # Always from the settled ones, so that a restart need not repeat every stirring.
            seed = self._seed("stir", self._learned_at, stirred)
            self._stirred_votes = settled.stir(seed=seed, sweeps=STIR_SWEEPS) if stirred else settled
            self._stirred = stirred
        return self._stirred_votes

    @property
    def floor(self) -> float:
        """What a lens shows, in rows, where the databases are as good as they were at the start, or can be.

        It stays what it was at the start, whatever is learned: so it is the same after a restart.
        """
        if self._settled is None:
            _ = self.votes  # it is found when they are drawn
        return self._floor

    @property
    def reach(self) -> float:
        return max(1.0, min(REACH * (self._shown + self.floor), 2.0**31))

    def _start(self) -> Votes:
        from tacit.release.samplers.databases import Ensemble
        from tacit.release.samplers.fractions import Fractions
        from tacit.release.samplers.plausible_databases import plausible

        settings, seed = self._settings, self._seed("start")
        number, records = settings.databases, settings.records
        if self._found is not None:
            return plausible(
                self._found,
                self._domain,
                self._rows,
                databases=number,
                records=records,
                seed=seed,
                progress=self._progress,
            )
        if settings.sampler == "fractions":
            return Fractions.start(self._domain, number, seed)
        # Where there was too little left for the warm start, databases as large as for it would hardly move.
        few = min(records, MedianSettings().records) if settings.warm else records
        return Ensemble.start(self._domain, databases=number, records=few, seed=seed)

    def _restricted(self, settled: Votes, measured: Measured) -> Votes:
        question, rows = measured.question, self._rows * measured.unit
        assert isinstance(question, Query | Statistic)
        centre = min(max(int(measured.values[0]) / rows, 0.0), 1.0)
        # This width holds for all answers together, 19 times in 20.
        width = max(quantile(measured.noise, 1 - 0.05 / self._settings.hits) / rows, settled.least_width)
        self._learned_at, self._stirred = measured.receipt.entry, 0
        try:
            return settled.restrict(question, centre, width, seed=self._seed("learn", measured.receipt.entry))
        except InvalidQuery:  # it has too many atoms or cells; paid for and answered all the same
            self._left_out += 1
            return settled

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        return query  # databases are told about single answers only

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses:
        values = np.stack([self.votes.values(query) for query in queries]) * self._rows
        middle = (values.shape[1] - 1) // 2  # the lower median, as in Roth's lecture 8
        lenses = [Disagreement(row, self.reach) for row in values]
        medians = np.partition(values, middle, axis=1)[:, middle]
        left_out = f"{self._left_out:,} past answers could not be learned: they cut the domain into too many parts"
        notes = left_out if self._left_out else self.votes.note, self.note
        return Guesses(medians, lenses, self.floor, "; ".join(filter(None, notes)))

    def arrays(self) -> Iterable[NDArray[Any]]:
        return self.votes.arrays()

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Synthetic rows: records of the databases, drawn at random."""
        return self.votes.draw(rows, rng)

    def voted(self, question: Query | Statistic) -> NDArray[np.float64]:
        """What each database answers, in rows, in ascending order."""
        return np.sort(self.votes.values(question)) * self._rows

    def _seed(self, *words: str | int) -> int:
        digest = hashlib.sha256(repr((self._settings.seed, *words)).encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1


def usual(named: Mapping[str, Any], domain: Domain) -> dict[str, Any]:
    """The settings of a new session that names these: a warm start, unless it wants none or none can be made.

    A ledger that keeps no `warm` was made without one.
    """
    wide = domain.size > MAX_LISTED_CELLS and sum(domain.shape) > MAX_MIXED_VALUES
    if named.get("warm") == 0 or named.get("sampler") == "fractions" or domain.size == 1 or wide:
        return dict(named)
    found = dict(_USUAL)
    if "warm" in named:  # an owner who names a split divides the budget
        del found["certify"]
    return {**found, **named}


def median(
    public: Public,
    curator: Curator | None,
    settings: MedianSettings,
    confidence: float,
    progress: StepProgress | None = None,
) -> Online[Voters]:
    """The mechanism: see `Online`."""

    def know(terms: Terms) -> Voters:
        shown = terms.shown(terms.threshold(settings.questions))
        return Voters(public.domain, public.rows, shown, settings, progress)

    return Online(public, curator, know, settings, confidence, progress, at_once=_AT_ONCE)
