"""Online multiplicative weights as in the lectures: uniform start, one step for each hard answer, nothing re-fitted.

Algorithm 1 of Roth's lecture 12 with the textbook's step. It shares the gate's noise and prices with Tacit, but draws
them without a ledger: a simulation of what it would answer, for benchmarks and their tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.tables import ONE_COUNT
from tacit.exact.price import noise_for, total
from tacit.model.budget import Budget
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.request import Comparisons, Distance
from tacit.release.online_terms import Terms
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights
from tacit.trusted.gate import first_passing
from tacit.trusted.noise import add_noise, draw_geometric
from tacit.trusted.records import Records

FEW, MANY = 16, 1024  # questions that are guessed together: an update makes the guesses behind it void


class TextbookWeights:
    """Easy questions are answered by the hypothesis; a hard one is bought, and the hypothesis takes one step."""

    def __init__(self, records: Records, budget: Budget, *, questions: int, hits: int) -> None:
        self._records, self._left = records, hits
        self.hard: int | None = 0
        whole = total(budget, "rho" if budget.delta else "epsilon")  # nearly all of it goes to gates
        terms = Terms.of(whole, hits=hits, confidence=0.95)
        self._threshold = terms.threshold(questions)
        self._scales = terms.threshold_scale * GRID, terms.comparison_scale * GRID
        self._noise = noise_for(terms.answer_loss, ONE_COUNT, unit=1)
        alpha = min(1.0, self._threshold / records.rows)
        self._rule = MultiplicativeWeights(records.domain, alpha, step="textbook")
        self._hypothesis = self._rule.initial()
        self._told: dict[Query, float] = {}
        self._gate: int | None = None  # the noise of the threshold of the gate that is open

    def answer(self, queries: Sequence[Query]) -> NDArray[np.float64]:
        waiting = [query for query in dict.fromkeys(one.core for one in queries) if query not in self._told]
        at_once = FEW
        while waiting:
            done = self._answer_some(waiting[:at_once])
            at_once = min(MANY, 2 * at_once) if done == at_once else FEW
            waiting = waiting[done:]
        rows = self._records.rows
        found = [(query, self._told[query.core]) for query in queries]
        return np.array([rows - value if query.complement else value for query, value in found])

    def _answer_some(self, queries: Sequence[Query]) -> int:
        """Answers up to the first hard question, and that; how many they are."""
        rows = self._records.rows
        guesses = self._hypothesis.answer_many(queries) * rows
        found = self._first_hard(queries, guesses)
        easy = len(queries) if found is None else found
        self._told |= dict(zip(queries[:easy], guesses[:easy].tolist(), strict=True))
        if found is None:
            return easy
        hard = queries[found]
        answer = int(add_noise(np.array([self._records.answer(hard)]), self._noise)[0])
        self._told[hard] = float(answer)
        self._rule.update(self._hypothesis, hard, min(max(answer / rows, 0.0), 1.0))
        self.hard, self._left, self._gate = (self.hard or 0) + 1, self._left - 1, None
        return easy + 1

    def _first_hard(self, queries: Sequence[Query], guesses: NDArray[np.float64]) -> int | None:
        if self._gate is None:
            if not self._left:
                return None  # the hypothesis goes on answering, without a promise
            self._gate = int(draw_geometric(self._scales[0], 1)[0])
        lenses = tuple(Distance(float(guess)) for guess in guesses)
        asked = Comparisons(tuple(queries), lenses, self._threshold)
        return first_passing(self._records, asked, self._scales, self._gate)
