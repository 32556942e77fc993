"""The online construction with multiplicative weights: one hypothesis over all of X, taught by hard answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.entry import Measured
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.request import Distance
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, marginal
from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS, Dense
from tacit.release.hypothesis.fit import StepProgress
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.hypothesis.noisy_table import half_width_within
from tacit.release.knowledge import Guesses
from tacit.release.offline import learn
from tacit.release.online import Online
from tacit.release.online_terms import Terms
from tacit.release.public import Public
from tacit.release.recall import expected_noise
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights
from tacit.release.settings import IterativeSettings
from tacit.release.warm_start import AnyFit, WarmStart, fit_all, fit_name, kept_fit, mean_size

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

_AT_ONCE = 2**14  # questions
REFIT_SWEEPS = 3  # over all past answers, after each new one
TABLE_SWEEPS = 6  # of the fit after a new table
MAX_AROUND = 2**16  # cells of a table that is bought around a hard question
MAX_FITTED = 2**24  # cells of a domain that is fitted again after each such table: a few seconds each time


class Weights:
    """A hypothesis, re-fitted to all past answers after each new one: over every cell of X, if they can be listed.

    Of larger domains it is a mixture of products, which never lists them, and every answer is learned by fitting.
    It starts uniform, or from the tables of a `TableStart`. A hard question buys the whole table of its attributes
    where that answers it as well as is promised: see `purchase`.
    """

    def __init__(self, public: Public, rule: MultiplicativeWeights, terms: Terms) -> None:
        self._public, self._rule, self._terms = public, rule, terms
        domain, self._rows = public.domain, public.rows
        self.hypothesis: Dense | Mixture = (
            rule.initial() if domain.size <= MAX_LISTED_CELLS else Mixture.uniform(domain)
        )
        self.note = ""
        self._frozen: Dense | Mixture | None = None
        self._tables = True
        self._started_from: set[str] = set()  # keys of what the warm start has fitted already
        self._past: list[tuple[Query, float, float]] = []
        self._fitted: AnyFit | None = None  # the last fit of everything measured, and what that was
        self._measured: list[Measured] = []

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        if not all(isinstance(query, Query) for query in queries):
            raise InvalidQuery(
                'multiplicative weights answer linear questions only; mechanism="median" answers others.'
            )

    def start_from(self, found: WarmStart, *, tables: bool) -> None:
        """Go on from a warm start, before anything is learned. It may be certified, and must stay as it is.

        Without `tables` a hard question is bought by itself: beside a base, little is left to learn whole tables with.
        """
        self._tables = tables
        self.hypothesis, self._fitted = found.hypothesis, found.fitted
        self._frozen = found.hypothesis
        self._started_from = {one.key for one in found.measured}
        if not found.fitted.settled:
            self.note = "the warm start fits its own tables badly: rely on the error bars"

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        if not isinstance(self.hypothesis, Mixture):
            for one in measured:
                self._learn(one)
            return
        known, new = len(self._measured), list(filter(self._teaches, measured))
        if all(one.key in self._started_from for one in new):
            self._measured += new
            return
        name = fit_name([*self._measured, *new], self._public.prior, mixture=True)

        def one_by_one() -> AnyFit:
            for one in new:
                self._learn(one)
            assert self._fitted is not None
            return self._fitted

        # Every answer is one fit more: whoever has made them all keeps the last.
        self._fitted = kept_fit(self._public, "learned", name, one_by_one)
        self.hypothesis = self._fitted.hypothesis
        self._measured = [*self._measured[:known], *new]

    def _teaches(self, measured: Measured) -> bool:
        return measured.key in self._started_from or isinstance(measured.question, Query | Marginal)

    def _learn(self, measured: Measured) -> None:
        """A single answer tilts the hypothesis; a table is fitted together with everything measured before it."""
        question, rows = measured.question, self._rows * measured.unit
        if not self._teaches(measured):
            return
        self._measured.append(measured)
        if measured.key in self._started_from:
            return
        hypothesis = self.hypothesis
        if hypothesis is self._frozen and isinstance(hypothesis, Dense):
            hypothesis = hypothesis.copy()
        if isinstance(hypothesis, Mixture) or (isinstance(question, Marginal) and question.where.is_everyone):
            self._fitted = fit_all(
                self._public.domain,
                self._measured,
                self._rows,
                prior=self._public.prior,
                before=self._fitted,
                sweeps=TABLE_SWEEPS,
            )
            self.hypothesis = self._fitted.hypothesis
            return
        if isinstance(question, Query):
            answer = min(max(int(measured.values[0]) / rows, 0.0), 1.0)
            self._past.append((question, answer, math.sqrt(variance(measured.noise)) / rows))
        hypothesis = learn(hypothesis, self._rule, measured, self._rows)
        self.hypothesis = self._rule.refit(hypothesis, self._past, sweeps=REFIT_SWEEPS)

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        """The whole table of the question's attributes, where it still answers the question as well as is promised.

        The table costs as much and has sqrt(2) times the noise in each cell (twice, in pure epsilon): neighbours move
        two cells of it. It teaches all its cells. So it is bought where the question's bar from it is within what the
        gate promises of easy answers, and where the noise in all cells adds up to fewer rows than there are, so that it
        says something about each. All of that is public. A table that was bought before has said what it can.
        """
        domain, terms = self._public.domain, self._terms
        if not isinstance(query, Query) or query.is_constant or not self._tables:
            return query
        around = marginal(domain, *query.scope)
        size = around.size(domain)
        slow = MAX_FITTED < domain.size <= MAX_LISTED_CELLS
        if size > MAX_AROUND or slow or self._public.find([around])[0] is not None:
            return query
        noise = expected_noise(self._public, around, terms.answer_loss)
        bar = half_width_within(query, domain, noise, terms.confidence) / query.unit
        promised = terms.shown(self._rule.alpha * self._rows)
        return around if bar <= promised and size * mean_size(noise) <= self._rows else query

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses:
        linear = [query for query in queries if isinstance(query, Query)]
        values = self.hypothesis.answer_many(linear) * self._rows
        lenses = [Distance(float(value)) for value in values]
        return Guesses(values, lenses, note=self.note)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        return self.hypothesis.draw(rows, rng)

    def arrays(self) -> Iterable[NDArray[Any]]:
        return self.hypothesis.arrays()


def iterative(
    public: Public,
    curator: Curator | None,
    settings: IterativeSettings,
    confidence: float,
    progress: StepProgress | None = None,
) -> Online[Weights]:
    """The mechanism: see `Online`."""

    def know(terms: Terms) -> Weights:
        alpha = min(1.0, terms.threshold(settings.questions) / public.rows)
        return Weights(public, MultiplicativeWeights(public.domain, alpha, tolerance=alpha / 2), terms)

    return Online(public, curator, know, settings, confidence, progress, at_once=_AT_ONCE)
