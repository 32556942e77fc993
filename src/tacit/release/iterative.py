"""The online construction with multiplicative weights: one hypothesis over all of X, taught by hard answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import Measured
from tacit.model.budget import Loss
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, marginal
from tacit.release.dense import Dense
from tacit.release.multiplicative_weights import MultiplicativeWeights
from tacit.release.offline import learn
from tacit.release.online import Online, Terms
from tacit.release.warm_start import warm_start
from tacit.trusted.curator import Curator, Distance, Lens

REFIT_SWEEPS = 3  # over all past answers, after each new one


class Weights:
    """A hypothesis over every cell of X, re-fitted to all past answers after each new one.

    It starts uniform, or, for the share `warm` of a budget, from noisy tables that the first question buys.
    """

    at_once = 2**14
    floor = 0.0

    def __init__(self, curator: Curator, rule: MultiplicativeWeights, warm: Loss) -> None:
        self._curator, self._rule, self._rows, self._warm = curator, rule, curator.rows, warm
        self.hypothesis: Dense = rule.initial()
        self.note = ""
        self._ready = warm.atoms == 0
        self._start = Loss(warm.measure, 0)
        self._started_from: set[tuple[str, ...]] = set()
        self._past: list[tuple[Query, float, float]] = []

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        if not all(isinstance(query, Query) for query in queries):
            raise InvalidQuery(
                'multiplicative weights answer linear questions only; mechanism="median" answers others.'
            )

    def ahead(self) -> Loss:
        bought = self._ready or self._bought
        return Loss(self._warm.measure, 0) if bought or not self._warm <= self._curator.left else self._warm

    def start(self) -> Loss:
        return self._start

    @property
    def _bought(self) -> bool:
        first = marginal(self._curator.domain, self._curator.domain.names[0])
        return self._curator.find([first])[0] is not None

    def prepare(self, *, buy: bool) -> Loss:
        nothing = Loss(self._warm.measure, 0)
        if self._ready:
            return nothing
        bought = self._bought
        if not bought and not buy:
            raise InvalidQuery("nothing is published yet to make rows from: ask a first question.")
        if not bought and not self._warm <= self._curator.left:
            self.note = "there was too little left for the warm start"
            self._ready = True
            return nothing
        before = self._curator.spent
        found = warm_start(self._curator, loss=self._warm)
        self.hypothesis, self._start = found.hypothesis, found.bought
        self._started_from = {step.names for step in found.steps}
        if not found.fitted.settled:
            self.note = "the warm start fits its own tables badly: rely on the error bars"
        self._ready = True
        return self._curator.spent - before

    def learn(self, measured: Measured) -> None:
        question, rows = measured.question, self._rows * measured.unit
        if isinstance(question, Marginal) and question.where.is_everyone and question.names in self._started_from:
            return
        if isinstance(question, Query):
            answer = min(max(int(measured.values[0]) / rows, 0.0), 1.0)
            self._past.append((question, answer, math.sqrt(variance(measured.noise)) / rows))
        if isinstance(question, Query | Marginal):
            self.hypothesis = learn(self.hypothesis, self._rule, measured, self._rows)
            self.hypothesis = self._rule.refit(self.hypothesis, self._past, sweeps=REFIT_SWEEPS)

    def come_to(self, entries: int) -> None:
        pass

    def guess(self, queries: Sequence[Query | Statistic]) -> tuple[NDArray[np.float64], Sequence[Lens]]:
        linear = [query for query in queries if isinstance(query, Query)]
        guesses = self.hypothesis.answer_many(linear) * self._rows
        return guesses, [Distance(float(guess)) for guess in guesses]

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        return self.hypothesis.draw(rows, rng)

    def error(self, shown: float) -> float:
        return shown  # the lens is the error itself


def iterative(
    curator: Curator, *, questions: int, hits: int, confidence: float, warm: float = 0.0, halt: bool = False
) -> Online[Weights]:
    """The mechanism, from public parameters; `warm` is the share of the budget that the warm start may spend."""
    total = curator.total
    start = Loss(total.measure, int(total.atoms * warm))
    terms = Terms.of(total - start, hits=hits, confidence=confidence)
    alpha = min(1.0, terms.threshold(questions) / curator.rows)
    rule = MultiplicativeWeights(curator.domain, alpha, tolerance=alpha / 2)
    return Online(curator, lambda: Weights(curator, rule, start), terms, questions=questions, halt=halt)
