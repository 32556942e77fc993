"""The online construction with multiplicative weights: one hypothesis over all of X, taught by hard answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import Measured
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.dense import Dense
from tacit.release.multiplicative_weights import MultiplicativeWeights
from tacit.release.offline import learn
from tacit.release.online import Online, Terms
from tacit.trusted.curator import Curator, Distance, Lens

REFIT_SWEEPS = 3  # over all past answers, after each new one


class Weights:
    """A hypothesis over every cell of X, re-fitted to all past answers after each new one."""

    at_once = 2**14
    floor = 0.0
    note = ""

    def __init__(self, rule: MultiplicativeWeights, rows: int) -> None:
        self._rule, self._rows = rule, rows
        self.hypothesis: Dense = rule.initial()
        self._past: list[tuple[Query, float, float]] = []

    def learn(self, measured: Measured) -> None:
        question, rows = measured.question, self._rows * measured.unit
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
        if len(linear) < len(queries):
            raise InvalidQuery(
                'multiplicative weights answer linear questions only; mechanism="median" answers others.'
            )
        guesses = self.hypothesis.answer_many(linear) * self._rows
        return guesses, [Distance(float(guess)) for guess in guesses]

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        return self.hypothesis.draw(rows, rng)

    def error(self, shown: float) -> float:
        return shown  # the lens is the error itself


def iterative(curator: Curator, *, questions: int, hits: int, confidence: float, halt: bool = False) -> Online[Weights]:
    """The mechanism, from public parameters."""
    terms = Terms.of(curator.total, hits=hits, confidence=confidence)
    alpha = min(1.0, terms.threshold(questions) / curator.rows)
    rule = MultiplicativeWeights(curator.domain, alpha, tolerance=alpha / 2)
    return Online(curator, lambda: Weights(rule, curator.rows), terms, questions=questions, halt=halt)
