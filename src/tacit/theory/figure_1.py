"""Roth & Roughgarden 2010, figure 1: the median mechanism's basic implementation, for small domains. It runs.

Each question is compared, and each hard one answered, by the curator, who charges for it there and then: plain
composition, the paper's crude bound (10). So no claim of privacy rests on lemma 4.10 or on any constant, and the seed
of the thresholds is public: the paper's proof conditions on the thresholds, too. What is given up is theorem 4.8's
saving on easy questions, which begins with more than 360 m ln|X| questions (`PaperConstants.one_by_one`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import BudgetExhausted, ConfigError, InvalidQuery
from tacit.exact.price import Sensitivity, noise_for
from tacit.model.budget import Loss, Measure
from tacit.model.entry import FreeAnswer
from tacit.model.factor import GRID
from tacit.model.facts import ANSWER, Bar
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.request import Disagreement
from tacit.release.estimate import Estimate, of_stored
from tacit.release.public import Public
from tacit.release.rules.median_net import Databases, MedianNet
from tacit.theory.median_paper import PaperConstants, Phase, Thresholds, doubling_phases, easy_error

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

LENS_ERROR = 2.0**-11  # of r: the curator's lens shows a little more agreement than there is, for the sake of rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOne:
    """The constants of figure 1. They are free: they decide how accurate the mechanism is, never how private."""

    alpha: float  # the paper's epsilon, a fraction of n
    records: int  # m: of each database in the net
    epsilon_each: float  # the paper's alpha'
    thresholds: Thresholds
    hard_limit: int  # it halts when there are more hard answers than that
    tolerance: float | None = None  # how far from a hard answer a database may be; alpha/50 in the figure

    def __post_init__(self) -> None:
        if not (0 < self.alpha < math.inf and 0 < self.epsilon_each < math.inf and self.hard_limit >= 0):
            raise ConfigError("alpha and epsilon_each are positive, and hard_limit is at least 0.")

    @classmethod
    def of_paper(cls, constants: PaperConstants, *, rows: int) -> FigureOne:
        """The paper's constants; refused, with the number in the message, if there are fewer rows than (6) asks for."""
        given = f"alpha = {constants.alpha:g} on {constants.questions:,} questions at epsilon = {constants.epsilon:g}"
        needed = math.ceil(constants.rows_needed)
        if rows < needed:
            words = f"{needed:,}" if needed < 10**12 else f"{needed:.3g}"
            raise ConfigError(f"the paper's constants need {words} rows for {given}; the table has {rows:,}.")
        if constants.one_by_one > constants.epsilon:
            raise ConfigError(f"{given}: paid for one by one they cost epsilon = {constants.one_by_one:g}.")
        return cls(
            alpha=constants.alpha,
            records=constants.records,
            epsilon_each=constants.epsilon_each,
            thresholds=constants.thresholds(rows),
            hard_limit=constants.hard_limit,
        )

    @classmethod
    def of_phase(
        cls, phase: Phase, *, alpha: float, records: int, hard: int, rows: int, tolerance: float | None = None
    ) -> FigureOne:
        """Constants of one's own for a phase, or for a known number of questions: epsilon' is what its part pays for.

        All its comparisons at epsilon'/2 and its hard answers, one more than the limit, at epsilon'.
        """
        each = phase.epsilon / (phase.questions / 2 + min(phase.questions, hard + 1))
        gamma = 4 * math.log(max(2.0, 2 * phase.questions / phase.epsilon)) / (each * alpha * rows)
        return cls(
            alpha=alpha,
            records=records,
            epsilon_each=each,
            thresholds=Thresholds(gamma),
            hard_limit=hard,
            tolerance=tolerance,
        )

    def comparison_loss(self, measure: Measure) -> Loss:
        """epsilon'/2: what noise Lap(2/(alpha n epsilon')) on r costs, as r moves by less than 1/(alpha n).

        The paper charges epsilon' for it, by lemma 4.9's sensitivity, which is twice the true one.
        """
        return _loss(measure, self.epsilon_each / 2)

    def answer_loss(self, measure: Measure) -> Loss:
        """epsilon': what noise Lap(1/(n epsilon')) on f(D) costs."""
        return _loss(measure, self.epsilon_each)


@dataclass(frozen=True, slots=True)
class Known:
    """What is public so far: C, the number of hard answers that made it, and the ledger's entry it goes up to."""

    databases: Databases
    hard: int
    read_to: int


class MedianBasic:
    """Answers with the median of the databases that fit all hard answers, where most nearly agree with the data.

    What is left of the net is a fold over the ledger's answers, and a question's threshold follows from `seed` and the
    question, so a second process goes on where the first one stopped. With a zCDP budget the noise is Gaussian, of the
    same rho as figure 1's Laplace noise.
    """

    def __init__(
        self, public: Public, curator: Curator, figure: FigureOne, *, seed: int, confidence: float, since: int = 0
    ) -> None:
        """Hard answers from before the entry `since` of the ledger shape C, and do not count against the limit."""
        self._public, self._curator, self.figure, self._since = public, curator, figure, since
        self.seed, self._confidence = seed, confidence
        self._reach = figure.alpha * public.rows  # alpha as a count
        if self._reach < 1:
            raise ConfigError(f"alpha = {figure.alpha:g} is less than one of {public.rows:,} rows.")
        self._tolerance = figure.alpha / 50 if figure.tolerance is None else figure.tolerance
        measure = public.total.measure
        self._to_compare, self._to_answer = figure.comparison_loss(measure), figure.answer_loss(measure)
        self._known = Known(MedianNet.databases(public.domain, figure.records).initial(), 0, 0)

    @classmethod
    def of_paper(
        cls, public: Public, curator: Curator, *, alpha: float, questions: int, seed: int, confidence: float
    ) -> MedianBasic:
        """With the paper's constants for the whole (pure) budget; refused unless there are rows enough for them."""
        if public.total.measure != "epsilon":
            raise ConfigError("the paper's constants are for pure privacy: delta must be 0.")
        if public.rows_per_person > 1:
            raise ConfigError("the paper's constants are for neighbours that differ in one row, not in several.")
        try:
            constants = PaperConstants.of(alpha, float(public.total), questions, public.domain.size)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        figure = FigureOne.of_paper(constants, rows=public.rows)
        return cls(public, curator, figure, seed=seed, confidence=confidence)

    def ask(self, query: Query) -> Estimate:
        """Figure 1, step 2, for one question. Asked again, the stored answer is given, which is free."""
        if query.is_constant:
            raise InvalidQuery("the answer follows from the number of rows, which is public: nothing to ask.")
        core, rows = query.core, self._public.rows
        stored = self._public.find([core])[0]
        if stored is not None:
            return of_stored(stored, query, rows, self._confidence)
        databases = self._catch_up().databases
        self._check_not_over()
        values = databases.net.values(core, databases.kept)
        threshold = self.threshold(core)
        # r + noise < t is alpha n (1 - r) - alpha n noise > alpha n (1 - t), and the noise is symmetric. (On the
        # curator's grid a tie is hard, not easy as in the figure.)
        lens = Disagreement(values * rows, self._reach)
        compared = self._curator.compare(core, lens, self._reach * (1 - threshold), self._to_compare)
        if compared.passed:
            measured = self._curator.measure([core], self._to_answer)[0]
            estimate = of_stored(measured, query, rows, self._confidence, paid_now=True)
            facts = replace(estimate.facts, cost=estimate.facts.cost + compared.cost)
            return replace(estimate, facts=facts)
        median = round(databases.answer(core) * rows * core.unit)
        bar = Bar(self._half_width(core, threshold), ANSWER, self._confidence)
        told = self._public.tell([FreeAnswer(core, median, "", (bar,))])[0]
        estimate = of_stored(told, query, rows, self._confidence)
        return replace(estimate, facts=replace(estimate.facts, source="hypothesis", cost=compared.cost))

    def threshold(self, query: Query) -> float:
        """t, step (b), for this question: public randomness that everybody can draw again."""
        rng = np.random.Generator(np.random.PCG64([self.seed, int(query.core.key, 16)]))
        return self.figure.thresholds.value(self.figure.thresholds.place(rng.random()))

    @property
    def databases(self) -> Databases:
        """C: the databases that fit all hard answers so far."""
        return self._catch_up().databases

    @property
    def hard(self) -> int:
        """How many answers were hard so far; whatever else the ledger holds about single questions counts as well."""
        return self._catch_up().hard

    def _catch_up(self) -> Known:
        """Step (e), for what this or another process has bought since the last look."""
        for measured in self._public.released(after=self._known.read_to):
            databases, hard = self._known.databases, self._known.hard
            if isinstance(measured.question, Query):
                answer = int(measured.values[0]) / (measured.unit * self._public.rows)
                values = databases.net.values(measured.question, databases.kept)
                fits = np.abs(values - answer) <= self._tolerance
                databases = replace(databases, kept=databases.kept[fits])
                hard += measured.receipt.entry > self._since
            self._known = Known(databases, hard, measured.receipt.entry)  # at once: an interrupt leaves no half of it
        return self._known

    def _check_not_over(self) -> None:
        """Step (f); and an empty C, of which figure 1 says nothing, as lemma 4.7 keeps a database in it."""
        if self._known.hard > self.figure.hard_limit:
            raise BudgetExhausted(f"More than {self.figure.hard_limit:,} answers were hard, and so it has halted.")
        if not len(self._known.databases):
            raise BudgetExhausted(
                f"No database of {self.figure.records:,} records fits the hard answers, and so it has halted."
            )
        if not self._to_compare + self._to_answer <= self._public.left:  # whichever it will be: both must be paid for
            raise BudgetExhausted(f"A question needs {self._to_compare + self._to_answer}, and that is not left.")

    def _half_width(self, query: Query, threshold: float) -> int:
        """How far the median may be off, at the confidence given, in grid steps; at most n."""
        moves = Sensitivity(1, 1).times(self._public.rows_per_person)
        noise = quantile(noise_for(self._to_compare, moves, GRID), self._confidence)
        error = easy_error(alpha=self._reach, threshold=threshold, noise=noise / (GRID * self._reach) + LENS_ERROR)
        most = self._public.rows * query.unit
        return most if error >= self._public.rows else min(most, math.ceil(error * query.unit) + 1)


class MedianDoubling:
    """Figure 1 where nobody knows how many questions will come: phase j is run for first * 2^j of them.

    Roth & Roughgarden 2010, end of section 3. A phase has its part of epsilon (`doubling_phases`), constants of its
    own and a net of its own, in which the hard answers of earlier phases, which are public, count from the start. Which
    phase it is follows from the number of comparisons in the ledger, so a second process goes on in the same phase.
    Privacy does not rest on the split: every comparison and every answer is charged where it is made.
    """

    def __init__(
        self,
        public: Public,
        curator: Curator,
        figure: Callable[[Phase], FigureOne],
        *,
        first: int,
        most: int | None = None,
        seed: int,
        confidence: float,
    ) -> None:
        """`figure`: the constants of a phase. `most`: of all questions, if known; then all phases have equal parts."""
        if public.total.measure != "epsilon":
            raise ConfigError("phases share a pure epsilon: delta must be 0.")
        self._public, self._curator, self._figure = public, curator, figure
        self._first, self._most, self._seed, self._confidence = first, most, seed, confidence
        self._now: tuple[int, MedianBasic] | None = None

    @property
    def asked(self) -> int:
        """How many questions were compared so far."""
        return len(self._compared())

    @property
    def phase(self) -> int:
        """The phase of the next question, from 0."""
        return (self.asked // self._first + 1).bit_length() - 1

    def ask(self, query: Query) -> Estimate:
        """Figure 1, step 2, in the phase that it falls into. Asked again, the stored answer is given, which is free."""
        stored = None if query.is_constant else self._public.find([query.core])[0]
        if stored is not None:
            return of_stored(stored, query, self._public.rows, self._confidence)
        if self._most is not None and self.asked >= self._most:
            raise BudgetExhausted(f"It was to answer at most {self._most:,} questions, and it has.")
        return self.mechanism.ask(query)

    @property
    def mechanism(self) -> MedianBasic:
        """Figure 1 as it is run in this phase."""
        number = self.phase
        if self._now is None or self._now[0] != number:
            start, compared = self._first * (2**number - 1), self._compared()
            since = compared[start] - 1 if len(compared) > start else self._public.entries
            last = self._first * (2 ** (number + 1) - 1)
            phase = doubling_phases(
                questions=last if self._most is None else min(last, self._most),
                first=self._first,
                epsilon=float(self._public.total),
                delta=0.0,
                beta=1 - self._confidence,
                most=self._most,
            )[number]
            figure = self._figure(phase)
            basic = MedianBasic(
                self._public, self._curator, figure, seed=self._seed, confidence=self._confidence, since=since
            )
            self._now = number, basic
        return self._now[1]

    def _compared(self) -> list[int]:
        """The entries of all comparisons, in order."""
        return [receipt.entry for kind, _, _, receipt in self._public.account.since() if kind == "compared"]


def _loss(measure: Measure, epsilon: float) -> Loss:
    return Loss.of(measure, epsilon if measure == "epsilon" else epsilon**2 / 2)
