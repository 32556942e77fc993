"""The offline iterative construction (Roth, lecture 8, algorithm 1): find what is wrong, measure it, learn it.

`release_workload` does all of it for a list of questions or tables: `plan` says how many rounds, for what and up to
which alpha; `construct` runs them; `announce` tells what it has proved to whoever asks later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExhausted, InvalidQuery
from tacit.exact.price import choice_scale, gate_scales
from tacit.model.aggregate import check_share
from tacit.model.budget import Loss, percent_of
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer, Measured
from tacit.model.factor import GRID
from tacit.model.facts import About, Bar
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.request import Candidate
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, key
from tacit.release.estimate import Estimate
from tacit.release.public import Public
from tacit.release.purchases import split
from tacit.release.recall import Recall, buyer, expected_noise
from tacit.release.rules import (
    RULES,
    H,
    Hypothesis,
    StatisticHypothesis,
    TableHypothesis,
    TableRule,
    UpdateRule,
    rule_of,
)

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Distinguisher = Literal["exponential", "sparse"]
_LEAST = 0.5  # rows: a noisy cell below this is taken for this much, so that no cell is ruled out for good
_DEARER = {"rho": 1.0, "gdp": math.pi / 2}  # what a gate of epsilon costs, over epsilon²/2
MAX_ROUNDS = 10_000


@dataclass(frozen=True)
class Round:
    """One round: the candidate that was found, and how far off its noisy answer was, as a fraction of n."""

    candidate: int
    gap: float


@dataclass
class Constructed(Generic[H]):
    """What an offline construction learned. `accurate` if it stopped because nothing was found to be wrong any more.

    alpha, rounds: what it was run with: the fraction of n to stop at, and the most rounds.
    within: every question is off by at most this many rows then, at the session's confidence, for all of them at once;
        None where that is not proved: it did not stop by itself, or learned whole tables.
    note: what has to be said beside it.
    """

    hypothesis: H
    steps: list[Round] = field(default_factory=list)
    accurate: bool = False
    alpha: float = 0.0
    rounds: int = 0
    within: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Effort:
    """What a construction may do: how many rounds, for how much in all, and the alpha it stops at."""

    rounds: int
    loss: Loss
    alpha: float


def release_workload(
    public: Public,
    curator: Curator | None,
    workload: Sequence[Candidate],
    known: Callable[..., Any],
    confidence: float,
    *,
    effort: tuple[float | None, float | None, int | None],
    distinguisher: Distinguisher,
    rule: str | UpdateRule[Any],
) -> Constructed[Any]:
    """Learn a workload that is announced in advance, and tell its answers. For `Session.release`.

    known: gives the answers that questions have already, which stay.
    effort: alpha, the share of the budget, and rounds; what is None is as the theorem has it.
    """
    alpha, share, rounds = effort
    if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS):
        raise InvalidQuery(f"rounds is a whole number from 1 to {MAX_ROUNDS:,}, not {rounds!r}.")
    if alpha is not None and (not isinstance(alpha, float) or not 0 < alpha <= 1):
        raise InvalidQuery(f"alpha is a fraction of the rows, above 0 and at most 1, not {alpha!r}.")
    check_share(share)
    loss = None if share is None else Loss(public.total.measure, int(public.total.atoms * share))
    constant = [one for one in workload if isinstance(one, Query) and one.is_constant]
    # A question and the one for all other rows are one candidate: what is proved of it is what is told.
    cores = [one if isinstance(one, Marginal) else one.core for one in workload]
    candidates = list({key(one): one for one in cores if not (isinstance(one, Query) and one.is_constant)}.values())
    if not candidates:
        raise InvalidQuery("every question of the workload follows from the number of rows, which is public.")
    of_alpha = rule_of(rule, public.domain, public.rows)
    with public.honest():
        planned = plan(
            public,
            lambda alpha: of_alpha(alpha).max_updates(alpha),
            len(candidates),
            # The sparse distinguisher finds what is wrong, not what is worst, and comes back more often.
            measured=len(candidates) * (3 if distinguisher == "sparse" else 1),
            confidence=split(confidence).others,
            rounds=rounds,
            loss=loss,
            alpha=alpha,
        )
        built = construct(
            public,
            curator,
            candidates,
            of_alpha(planned.alpha),
            rounds=planned.rounds,
            loss=planned.loss,
            alpha=planned.alpha,
            distinguisher=distinguisher,
            confidence=confidence,
        )
        with public.turn():
            announce(public, built, candidates, known, confidence)
    built.note = _left_out(constant, public.domain)
    return built


def plan(
    public: Public,
    max_updates: Callable[[float], float],
    candidates: int,
    *,
    measured: int,
    confidence: float,
    rounds: int | None = None,
    loss: Loss | None = None,
    alpha: float | None = None,
) -> Effort:
    """Whatever of the three is not given, as the theorem has it (Roth, lecture 8, theorems 4 to 7, with 8 and 8).

    Rounds are B(alpha/2); but not more than `measured`, since what was measured once is known. alpha is the least at
    which a run that stops by itself is right about all candidates, except with probability 1 - confidence. The loss is
    what that takes.
    """
    beta, n = 1 - confidence, public.rows / public.rows_per_person
    if alpha is None and loss is None:
        raise InvalidQuery("say how accurate it shall be (alpha), or how much of the budget it may spend (share).")

    def most(alpha: float) -> int:
        return rounds or max(1, math.floor(min(measured, MAX_ROUNDS, max_updates(alpha / 2))))

    def demand(rounds: int) -> float:
        """n times alpha times the epsilon of a step: 8 F, which is more than the noise's part."""
        return 16 * math.log(2 * candidates * rounds / beta)

    def reached(rounds: int, loss: Loss) -> float:
        # In rho, steps of rho/(2 rounds) are as good as this epsilon in the theorem: a Gaussian answer has its scale.
        pure = loss.measure == "epsilon"
        each = float(loss) / (2 * rounds) if pure else math.sqrt(float(loss) / rounds / _DEARER[loss.measure])
        return demand(rounds) / (each * n)

    if alpha is None:
        assert loss is not None
        low, high = 1e-9, 1.0  # of those alphas that the theorem promises: it asks for less, the larger they are
        while high / low > 1.0001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if reached(most(middle), loss) <= middle else (middle, high)
        chosen = most(high)
        alpha = min(1.0, reached(chosen, loss))
    else:
        chosen = most(alpha)
    if loss is None:
        each = demand(chosen) / (alpha * n)
        measure = public.total.measure
        amount = 2 * chosen * each if measure == "epsilon" else chosen * each**2 * _DEARER[measure]
        loss = Loss.of(measure, amount)
        if not loss <= public.left:
            needs, left = percent_of(loss, public.whole), percent_of(public.left, public.whole)
            raise BudgetExhausted(
                f"To promise alpha = {alpha:g} takes {needs} of the budget, and {left} is left. Name a share, and it "
                "goes as far as that gets."
            )
    return Effort(chosen, loss, alpha)


def construct(
    public: Public,
    curator: Curator | None,
    candidates: Sequence[Candidate],
    rule: UpdateRule[H],
    *,
    rounds: int,
    loss: Loss,
    alpha: float,
    distinguisher: Distinguisher = "exponential",
    confidence: float = 0.95,
) -> Constructed[H]:
    """Run the construction on questions, or on whole tables, for at most `rounds` rounds and `loss` in all.

    In each round a distinguisher finds a candidate on which hypothesis and data differ, for half of its price, and the
    other half measures it; then the hypothesis learns the answer. "exponential" finds the worst candidate, by
    `Curator.select_worst`, so when its noisy answer is within 3 alpha/4 of the hypothesis, nothing else is far off and
    that is the result. "sparse" (lecture 12, SparseDistinguish; no tables) finds the first that passes a gate
    at alpha/2, which need not be the worst; when none passes, that is the result.

    Statistics and whole tables are candidates where the rule's hypothesis answers them: see `rules`.

    A candidate that was bought before is read back as it was bought. Where its noise is too wide for alpha, the
    construction ends without calling itself accurate.

    Everything that is drawn is kept under the question asked for it, so that running the same construction again costs
    nothing and gives the same result: that is how it is replayed.
    """
    if rounds < 1 or not 0 < alpha <= 1 or not candidates:
        raise InvalidQuery("a construction has candidates, at least one round, and an alpha above 0 and at most 1.")
    tables = any(isinstance(candidate, Marginal) for candidate in candidates)
    if distinguisher == "sparse" and tables:
        raise InvalidQuery("the sparse distinguisher goes through questions, not tables.")
    if distinguisher not in ("exponential", "sparse"):
        raise InvalidQuery(f"the distinguisher is 'exponential' or 'sparse', not {distinguisher!r}.")
    each = loss.split(2 * rounds)
    for candidate in candidates:
        expected_noise(public, candidate, each)  # refuses, before anything is paid, what cannot be measured for that
    built = Constructed(rule.initial(), alpha=alpha, rounds=rounds)
    proof = Proof(public, len(candidates), rounds, each, confidence)
    for _ in range(rounds):
        guesses = [guess(built.hypothesis, candidate) * public.rows for candidate in candidates]
        found = _distinguish(public, buyer(public, curator), candidates, guesses, each, alpha, distinguisher)
        if found is None:
            built.accurate = True
            built.within = proof.nothing_passed(alpha)
            break
        measured = buyer(public, curator).measure([candidates[found]], each)[0]
        answer = measured.values / measured.unit
        gap = float(np.abs(answer - guesses[found]).max()) / public.rows
        built.steps.append(Round(found, gap))
        sharp = quantile(measured.noise, 0.99) / measured.unit <= alpha / 8 * public.rows
        if distinguisher == "exponential" and gap < 0.75 * alpha:
            built.accurate = sharp
            built.within = None if tables or not sharp else proof.worst_is(gap, measured)
            break
        if any(step.candidate == found for step in built.steps[:-1]) and not sharp:
            break  # bought before with more noise than this needs; buying it again would be another answer to it
        built.hypothesis = learn(built.hypothesis, rule, measured, public.rows)
    return built


@dataclass(frozen=True)
class Proof:
    """How far all answers are off, in rows, when a construction stops by itself: what may go wrong over all rounds.

    A part of what may go wrong is left to bars that are read off releases: see `purchases.split`. The list is taken to
    be chosen without regard to the noise of what was bought before: whoever knows which earlier answer is far off,
    because they bought it twice, could choose a list around it.
    """

    public: Public
    candidates: int
    rounds: int
    each: Loss
    confidence: float

    @property
    def miss(self) -> float:
        return 1 - split(self.confidence).others

    def worst_is(self, gap: float, measured: Measured) -> float:
        """After the exponential mechanism, whose choice has this noisy gap.

        All rounds at once: with probability 1 - miss/2 every choice is within scale * ln(2 |C| rounds/miss) of the
        worst (the tail of the exponential mechanism, which permute-and-flip does not exceed), and with 1 - miss/2 every
        noise is within its quantile. Any of |C| answers may have been bought before and be read back, so the union is
        over these as well.
        """
        draws = self.rounds + self.candidates
        noise = quantile(measured.noise, 1 - self.miss / (2 * draws)) / measured.unit
        scale = choice_scale(self.each, self.public.rows_per_person * GRID) / GRID
        choice = scale * math.log(2 * self.candidates * self.rounds / self.miss)
        return gap * self.public.rows + noise + choice + 1  # guesses are rounded to the grid

    def nothing_passed(self, alpha: float) -> float:
        """After a gate at alpha/2 that nothing has passed: only the threshold's noise can have hidden an error.

        It is above s1 ln(rounds/miss) in one of all rounds with probability `miss`; both noises are less their means.
        """
        first, second = (s / GRID for s in gate_scales(self.each, self.public.rows_per_person * GRID))
        return alpha / 2 * self.public.rows + second + first * (math.log(self.rounds / self.miss) - 1) + 1


def announce(
    public: Public,
    built: Constructed[Any],
    candidates: Sequence[Candidate],
    known: Callable[[Sequence[Query | Statistic]], list[Estimate | None]],
    confidence: float,
) -> None:
    """Tell every question of the list that has no answer yet, with the bar that was proved. Told answers stay.

    The list is the very one of the construction, cores of questions: a bar is proved for the guesses at these alone.
    """
    if built.within is None:
        return
    asked = [one for one in candidates if isinstance(one, Query | Statistic)]
    about = About("release", len(asked))
    new = [one for one, answer in zip(asked, known(asked), strict=True) if answer is None]
    said = [
        FreeAnswer(
            one,
            round(float(guess(built.hypothesis, one)[0]) * public.rows * one.unit),
            "",
            (Bar(math.ceil(built.within * one.unit), about, confidence),),
        )
        for one in new
    ]
    if said:
        public.tell(said)


def guess(hypothesis: Hypothesis, candidate: Candidate) -> NDArray[np.float64]:
    """The hypothesis' answers to a candidate, as fractions of n: one, or one for each cell of a table."""
    if isinstance(candidate, Statistic):
        if not isinstance(hypothesis, StatisticHypothesis):
            others = " or ".join(f'rule="{name}"' for name, row in RULES.items() if row.statistics)
            raise InvalidQuery(f"this rule learns linear questions only; {others} learns statistics too.")
        return np.array([hypothesis.answer_statistic(candidate)])
    if isinstance(candidate, Query):
        return np.array([hypothesis.answer(candidate)])
    if not isinstance(hypothesis, TableHypothesis):
        raise InvalidQuery("whole tables are for rules whose hypothesis lists all cells; this one takes questions.")
    return hypothesis.answer_table(candidate)


def learn(hypothesis: H, rule: UpdateRule[H], measured: Measured, rows: int) -> H:
    """The next hypothesis: a question by the update rule, a whole table cell by cell, or at once if the rule can."""
    question = measured.question
    if isinstance(question, Query | Statistic):
        answer = float(measured.values[0]) / (rows * measured.unit)
        return rule.update(hypothesis, question, min(max(answer, 0.0), 1.0))  # type: ignore[arg-type]
    assert isinstance(question, Marginal)
    assert isinstance(hypothesis, TableHypothesis)  # it was asked for its guess at the table
    shares = np.maximum(measured.values, _LEAST) / rows
    if isinstance(rule, TableRule) and question.where.is_everyone:
        found: H = rule.update_table(hypothesis, question.names, shares / shares.sum())
        return found
    for query, share in zip(question.queries(hypothesis.domain), shares, strict=True):
        if not query.is_constant:
            hypothesis = rule.update(hypothesis, query, min(float(share), 1.0))
    return hypothesis


def _distinguish(
    public: Public,
    curator: Curator | Recall,
    candidates: Sequence[Candidate],
    guesses: Sequence[NDArray[np.float64]],
    loss: Loss,
    alpha: float,
    distinguisher: Distinguisher,
) -> int | None:
    if distinguisher == "exponential":
        return curator.select_worst(candidates, guesses, loss).index
    singles = [candidate for candidate in candidates if not isinstance(candidate, Marginal)]
    return curator.first_far(singles, [float(g[0]) for g in guesses], alpha / 2 * public.rows, loss).index


def _left_out(constant: Sequence[Query], domain: Domain) -> str:
    """What is said of questions that nothing has to be learned for."""
    if not constant:
        return ""
    words = ", ".join(describe(one, domain) for one in constant[:3])
    more = f" and {len(constant) - 3:,} more" if len(constant) > 3 else ""
    return f"left out, as the number of rows tells it: {words}{more}"
