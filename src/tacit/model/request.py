"""Trusted words: requests for a choice or a comparison, and what is said about them. They cannot be made wrong.

All of it is public: `trusted.sensitivity` says what a request costs and under which key its outcome is kept, so that
whoever has the ledger's lines, or a published file, finds what was chosen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidBudget, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.certificate import Certificate
from tacit.model.domain import Domain
from tacit.model.entry import Comparison, Selection, decode
from tacit.model.facts import Receipt
from tacit.model.lens import MOST, Distance, Lens, count
from tacit.model.query import GRID, Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, Question, check, key
from tacit.store.chain import Line, digest


class Declared(NamedTuple):
    """What is public about a table before anything is asked. The number of rows is public by convention."""

    domain: Domain
    rows: int
    rows_per_person: int  # how many rows of one person are protected together
    total: Loss

    def check(self, loss: Loss, questions: Sequence[Question]) -> None:
        """Refuse what is no amount of this budget's, and what is no question about this domain."""
        if type(loss) is not Loss or loss.measure != self.total.measure:
            raise InvalidBudget(f"a loss is an amount of {self.total.measure}, which this budget is counted in.")
        for question in questions:
            check(question, self.domain)
            if isinstance(question, Certificate) and not question.exact(self.rows):
                raise InvalidQuery("a certificate is made of a list, for fewer than 2^31 rows (2^21 of sums).")


@dataclass(frozen=True, eq=False)
class WorstOf:
    """Whose true answers are farthest from a public guess? Guesses and penalties are in steps of the fine grid."""

    candidates: tuple[Query | Marginal, ...]
    guesses: tuple[NDArray[np.int64], ...]
    penalties: tuple[int, ...]

    @classmethod
    def of(
        cls,
        declared: Declared,
        candidates: Sequence[Query | Marginal],
        guesses: Sequence[ArrayLike],
        penalties: Sequence[float] | None,
    ) -> WorstOf:
        """From guesses and penalties in counts."""
        # What is checked is what is kept: the caller's lists may change meanwhile.
        candidates, guesses = tuple(candidates), tuple(guesses)
        if not all(isinstance(candidate, Query | Marginal) for candidate in candidates):
            raise InvalidQuery("candidates are queries or tables.")
        given = [0.0] * len(candidates) if penalties is None else [count(one, "a penalty") for one in penalties]
        if not candidates or not len(candidates) == len(guesses) == len(given):
            raise InvalidQuery("every candidate has one guess, and one penalty if there are any.")
        for candidate in candidates:
            check(candidate, declared.domain)
        rounded = tuple(_guess(declared, guess, one) for guess, one in zip(guesses, candidates, strict=True))
        return cls(candidates, rounded, tuple(round(one * GRID) for one in given))

    @property
    def form(self) -> list[list[object]]:
        """Equal only for the same request."""
        parts = zip(self.candidates, self.guesses, self.penalties, strict=True)
        return [[key(candidate), digest(guess.tolist()), penalty] for candidate, guess, penalty in parts]


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Which of these values is the first that passes a public threshold (in counts), seen through its lens?"""

    queries: tuple[Query | Statistic, ...]
    lenses: tuple[Lens, ...]
    threshold: float

    @classmethod
    def of(
        cls, declared: Declared, queries: Sequence[Query | Statistic], lenses: Sequence[Lens], threshold: float
    ) -> Comparisons:
        queries, lenses = tuple(queries), tuple(lenses)  # what is checked is what is kept
        if not queries or len(queries) != len(lenses):
            raise InvalidQuery("there is at least one question, and every question has one lens.")
        for query, lens in zip(queries, lenses, strict=True):
            check(query, declared.domain)
            if not isinstance(query, Query | Statistic) or not isinstance(lens, Lens):
                raise InvalidQuery("single values are compared, not tables, through a distance or a disagreement.")
        return cls(queries, lenses, count(threshold, "a threshold"))


def far(declared: Declared, queries: Sequence[Query], guesses: Sequence[float], threshold: float) -> Comparisons:
    """Which query is the first whose answer is far from a public guess?"""
    return Comparisons.of(declared, queries, [Distance(guess) for guess in guesses], threshold)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which candidate was chosen, if any."""

    index: int | None
    cost: Loss
    receipt: Receipt

    @classmethod
    def of(cls, line: Line, cost: Loss) -> Chosen:
        found = decode(line.kind, line.body)
        assert isinstance(found, Selection)
        return cls(found.index, cost, Receipt(line.seq, line.hash))


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether a value passed a public threshold."""

    passed: bool
    cost: Loss
    receipt: Receipt

    @classmethod
    def of(cls, line: Line, cost: Loss) -> Compared:
        found = decode(line.kind, line.body)
        assert isinstance(found, Comparison)
        return cls(found.passed, cost, Receipt(line.seq, line.hash))


def _guess(declared: Declared, guess: ArrayLike, candidate: Query | Marginal) -> NDArray[np.int64]:
    """A public guess of a candidate's answers, rounded to the grid: one number, or one for each cell of a table.

    Guesses lie between 0 and n, and what they sum to is bounded, so that no score overflows 64 bits.
    """
    check(candidate, declared.domain)
    size = candidate.size(declared.domain) if isinstance(candidate, Marginal) else 1
    try:
        values = np.array(guess, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InvalidQuery(f"a guess has {size:,} finite counts.")
    values = np.clip(values, 0, declared.rows)
    if declared.rows + values.sum() >= MOST:
        raise InvalidQuery("the guesses of a table's cells add up to far more than there are rows.")
    return np.rint(values * GRID).astype(np.int64)
