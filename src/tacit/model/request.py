"""Trusted words: requests for a choice or a comparison, and what is said about them. They cannot be made wrong.

A comparison looks at a true count through a lens, a public function of it. Whatever a lens shows moves by at most one
count when the truth moves by one, so a noisy comparison of it has the price of a count.

All of it is public: `exact.charges` says what a request costs and under which key its outcome is kept, so that
whoever has the ledger's lines, or a published file, finds what was chosen before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidBudget, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.certificate import Certificate, Certificates
from tacit.model.counting import check_cells
from tacit.model.domain import Domain
from tacit.model.entry import Comparison, Selection, decode
from tacit.model.factor import GRID, frozen
from tacit.model.facts import Receipt
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, Question, check, key
from tacit.store.chain import Line, digest

MAX_LENS_DATABASES = 2**20  # behind one lens
MOST_COUNTED = 2.0**40  # counts: with GRID steps each, sums of three such numbers stay within 64 bits
_FAR = 2.0**32  # counts: the longest reach for which the rounding of floats is allowed for
_SHRINK = 1 - 2.0**-12  # see `look`


@dataclass(frozen=True, slots=True)
class Distance:
    """The lens |x - guess|, in counts: how far a public guess is from the truth."""

    guess: float

    def __post_init__(self) -> None:
        count(self.guess, "a guess")

    @property
    def words(self) -> list[object]:
        """Equal only for lenses that show the same."""
        return ["distance", round(self.guess * GRID)]


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How far many public databases are from the truth: reach · (1 - r), in counts, with r the median mechanism's score

        r(x) = mean over the databases of exp(-|x - value| / reach)        (Roth & Roughgarden 2010, equation 4)

    where reach is their epsilon times n. It is 0 where all agree with the truth, and at most reach.
    """

    values: ArrayLike  # what each database answers, in counts
    reach: float
    steps: NDArray[np.int64] = field(init=False, repr=False)  # the values, in steps of the fine grid

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 1 or not 1 <= values.size <= MAX_LENS_DATABASES or not (np.abs(values) < MOST_COUNTED).all():
            raise InvalidQuery(f"1 to {MAX_LENS_DATABASES:,} databases each answer with a count.")
        if type(self.reach) not in (int, float) or not 1 <= self.reach < _FAR:
            raise InvalidQuery(f"the reach of a lens is a count from 1 to {_FAR:,.0f}, not {self.reach!r}.")
        object.__setattr__(self, "steps", frozen(np.rint(values * GRID), np.int64))

    @property
    def words(self) -> list[object]:
        """Equal only for lenses that show the same."""
        return ["disagreement", float(self.reach) * GRID, self.steps.tolist()]


Lens = Distance | Disagreement


def count(value: float, what: str) -> float:
    """A number that can stand in a comparison without meeting the limits of 64 bits, or a refusal."""
    if type(value) not in (int, float) or not abs(value) < MOST_COUNTED:  # false for NaN
        raise InvalidQuery(f"{what} is a count, not {value!r}.")
    return float(value)


def look(lens: Lens, truth: int) -> int:
    """What a lens shows of a number; both in steps of the fine grid.

    Guarantee: where the truth moves by at most m GRID, m >= 1, so does this. u → reach (1 - exp(-|u|/reach)) has slopes
        between -1 and 1, and so has a mean of shifted copies of it. The computed mean is within 2^-46 of the real one
        (a few units in the last place of each term, and numpy's pairwise sum), so with reach < 2^32 counts the result
        is within 64 steps; shrinking it by 2^-12 takes 256 steps off the largest move for each GRID, which covers that
        twice, and the final rounding.
    Formula: |x - guess|; reach (1 - 2^-12) mean(1 - exp(-|x - value|/reach)).
    Source: Roth & Roughgarden 2010, equation 4; lemma 4.9 bounds its sensitivity, twice as high as it is.
    """
    if isinstance(lens, Distance):
        return abs(truth - round(lens.guess * GRID))
    reach = float(lens.reach) * GRID
    apart = np.abs(lens.steps - truth) / reach  # whole numbers below 2^63 until they are divided
    return round(float(-np.expm1(-apart).mean()) * (_SHRINK * reach))


class Declared(NamedTuple):
    """What is public about a table before anything is asked. The number of rows is public by convention."""

    domain: Domain
    rows: int
    rows_per_person: int  # how many rows of one person are protected together
    total: Loss
    counted: Callable[[], None] | None = None  # where rows stay in an engine: refuses a copy of them that was replaced

    def check_question(self, question: Question) -> None:
        """Refuse what is no question about this domain, and what would be made of too large a table."""
        check(question, self.domain)
        if self.counted is not None:
            check_cells(question, self.domain)

    def check_standing(self) -> None:
        """Refuse everything where the rows are no longer those that the prices are for."""
        if self.counted is not None:
            self.counted()

    def check(self, loss: Loss, questions: Sequence[Question]) -> None:
        """Refuse what is no amount of this budget's, and what is no question about this domain."""
        if type(loss) is not Loss or loss.measure != self.total.measure:
            raise InvalidBudget(f"a loss is an amount of {self.total.measure}, which this budget is counted in.")
        self.check_standing()
        for question in questions:
            self.check_question(question)
            if isinstance(question, Certificate | Certificates) and not question.exact(self.rows):
                raise InvalidQuery("a certificate is made of a list, for fewer than 2^42 rows.")
            if isinstance(question, Residuals) and not question.exact(self.domain, self.rows):
                raise InvalidQuery("the rows times a residual's weight and cells are beyond 2^62; choose less weight.")


Candidate = Query | Statistic | Marginal


@dataclass(frozen=True, eq=False)
class WorstOf:
    """Whose true answers are farthest from a public guess? Guesses are in steps of the fine grid."""

    candidates: tuple[Candidate, ...]
    guesses: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, declared: Declared, candidates: Sequence[Candidate], guesses: Sequence[ArrayLike]) -> WorstOf:
        """From guesses in counts."""
        # What is checked is what is kept: the caller's lists may change meanwhile.
        candidates, guesses = tuple(candidates), tuple(guesses)
        if not all(isinstance(candidate, Candidate) for candidate in candidates):
            raise InvalidQuery("candidates are queries, statistics or tables.")
        if not candidates or len(candidates) != len(guesses):
            raise InvalidQuery("there is at least one candidate, and every candidate has one guess.")
        for candidate in candidates:
            declared.check_question(candidate)
        rounded = tuple(_guess(declared, guess, one) for guess, one in zip(guesses, candidates, strict=True))
        return cls(candidates, rounded)

    @property
    def form(self) -> list[list[object]]:
        """Equal only for the same request."""
        # The 0 stands where a candidate once had a penalty: without it choices of older ledgers were not found again.
        parts = zip(self.candidates, self.guesses, strict=True)
        return [[key(candidate), digest(guess.tolist()), 0] for candidate, guess in parts]


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
        declared.check_standing()
        if not queries or len(queries) != len(lenses):
            raise InvalidQuery("there is at least one question, and every question has one lens.")
        for query, lens in zip(queries, lenses, strict=True):
            declared.check_question(query)
            if not isinstance(query, Query | Statistic) or not isinstance(lens, Lens):
                raise InvalidQuery("single values are compared, not tables, through a distance or a disagreement.")
        return cls(queries, lenses, count(threshold, "a threshold"))


def far(
    declared: Declared, queries: Sequence[Query | Statistic], guesses: Sequence[float], threshold: float
) -> Comparisons:
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


def _guess(declared: Declared, guess: ArrayLike, candidate: Candidate) -> NDArray[np.int64]:
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
    if declared.rows + values.sum() >= MOST_COUNTED:
        raise InvalidQuery("the guesses of a table's cells add up to far more than there are rows.")
    return np.rint(values * GRID).astype(np.int64)
