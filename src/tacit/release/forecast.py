"""What errors to expect from each mechanism, from public parameters alone. No data, no randomness; for `plan`.

The questions are conjunctions: conditions on one, two or three attributes, equally often, each met by about half of an
attribute's values. Errors are in rows. What is exact, what is promised and what was fitted to runs is said at each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from tacit.errors import TacitError
from tacit.exact.price import Sensitivity, noise_for, total
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise, pmf, quantile, quantile_of_sum, variance
from tacit.model.workload import MAX_ANSWERS, Convolution, Marginal, Strategy, Tree
from tacit.release.allocation import allocation
from tacit.release.base import SHARES, of_the_base
from tacit.release.classes import BOXES, SAMPLE, Miss
from tacit.release.histogram import everything
from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS
from tacit.release.hypothesis.mixture import MAX_MIXED_VALUES
from tacit.release.noise_sum import half_widths
from tacit.release.ranges.band import band
from tacit.release.ranges.choice import intervals_of
from tacit.release.ranges.decoder import Decoder
from tacit.trusted.sensitivity import noise_of

ONE_COUNT, PARTITION = Sensitivity(1, 1), Sensitivity(2, 2)
CERTIFY = (0.1, 0.13, 0.165, 0.2, 0.25)  # shares of the budget that a certificate may get
MEAN_COUNTS = 0.3  # the power of the mean error beside the bar: a larger certificate makes the answers worse
REST, HITS = 0.05, 3  # what is left beside the base and its certificate, and for how many hard answers
MOST_QUESTIONS = 10**9

# The mean error over the root of the mean squared one, and how the largest of k grows with log k: fitted to runs of the
# warm start on five tables at five budgets. `bench_accuracy --forecast` checks them on others.
_MEAN, _TAIL = 0.7, (0.55, 0.62)
# The largest error of a number of questions is what 95 % of all stay within, a certified share, and a certified class.
_LIKE_MOST, _LIKE_A_SHARE, _LIKE_A_CLASS = 8, 12, 1e4
_BLIND = 0.25  # of the rows: the mean error of a hypothesis that knows nothing, about
_REACH, _STEPS = 45, 1000.0  # scales that a sum over a law goes through, and steps to a scale at most


@dataclass(frozen=True)
class Outlook:
    """What one mechanism does with a budget. Errors in rows; `promised` and `worst_case` hold with the confidence.

    mean, largest: expected, of one question and of the worst of all of them.
    bar: the half width that one answer will be shown with: by the law of the noise, or, expected, by the certificate.
    promised: no answer is farther off, by the law of the noise; of a certificate, the expected one for all at once.
    worst_case: what the theorem promises to any table and any questions.
    """

    mean: float
    largest: float
    bar: float
    promised: float
    worst_case: float | None = None
    warm: float | None = None
    certify: float | None = None
    hits: int | None = None


@dataclass(frozen=True)
class Sizes:
    """What is public about a table and a session before it is opened."""

    domain: Domain
    rows: int
    measure: Measure
    confidence: float
    rows_per_person: int = 1
    prior_rows: int = 0


def direct(budget: Budget, *, questions: int, confidence: float, rows_per_person: int = 1) -> Outlook:
    """Fresh noise for each question: its law is known, so that all three figures are exact."""
    noise = noise_for(total(budget).split(questions), ONE_COUNT.times(rows_per_person), unit=1)
    sure = min(confidence ** (1 / questions), 1 - 1e-15)  # independent noise: all are within with the k-th power
    bars = float(quantile(noise, confidence)), float(quantile(noise, sure))
    return Outlook(mean_size([noise]), expected_largest([noise], questions), *bars)


def histogram(sizes: Sizes, budget: Budget, questions: int) -> Outlook:
    """One noisy histogram. A conjunction of j attributes adds up about |X|/2^j cells, and none more than half of X.

    `bar` is the mean of theirs, `promised` by a union over the questions, each of half the cells. For the expected
    figures sums are taken for normal, and no more of them for independent than there are cells, which share it.
    """
    domain, confidence = sizes.domain, sizes.confidence
    noise = noise_for(total(budget), PARTITION.times(sizes.rows_per_person), unit=1)
    added = [max(1, domain.size // 2**attributes) for attributes in range(1, min(3, len(domain)) + 1)]
    laws = [noise if k == 1 else Noise("gaussian", math.sqrt(k * variance(noise))) for k in added]
    bar = sum(quantile_of_sum(noise, k, confidence) for k in added) / len(added)
    half = max(1, domain.size // 2)
    promised = quantile_of_sum(noise, half, min(1 - (1 - confidence) / questions, 1 - 1e-15))
    return Outlook(mean_size(laws), expected_largest(laws, min(questions, domain.size)), bar, float(promised))


def ranges(sizes: Sizes, strategy: Strategy, budget: Budget, questions: int) -> Outlook:
    """The release of all ranges of one attribute: the law of its noise, over ranges as likely as each other."""
    assert isinstance(strategy, Tree | Convolution)
    domain, confidence = sizes.domain, sizes.confidence
    noise, decoder = noise_of(strategy, domain, total(budget), sizes.rows_per_person), Decoder(strategy, domain.size)
    spread = float(decoder.interval_variance(*intervals_of(domain.size)).mean())
    law, at_once = Noise("gaussian", math.sqrt(variance(noise) * spread)), band(decoder, noise, confidence).intervals
    bar = float(half_widths(noise, spread, confidence, decoder.distinct))
    return Outlook(mean_size([law]), expected_largest([law], min(questions, domain.size)), bar, at_once)


@dataclass(frozen=True)
class WarmStarted:
    """The online construction after a warm start.

    Expected figures follow from how strong interactions are on tables at large (`allocation`), not from this one: they
    are no promise. The certificate is one, and the gate is there for what the start did not learn.
    """

    domain: Domain
    rows: int
    measure: Measure
    rows_per_person: int = 1
    prior_rows: int = 0  # of a public table of the same population, which the start is drawn to

    def mean(self, loss: Loss) -> float:
        """The expected error of a conjunction after a warm start for this loss."""
        return _MEAN * self._error(loss)

    def most(self, loss: Loss) -> float:
        """The expected error that 95 % of all conjunctions stay within."""
        return self.largest(loss, _LIKE_MOST)

    def largest(self, loss: Loss, questions: float) -> float:
        """The expected largest error of that many conjunctions."""
        return self._error(loss) * (_TAIL[0] + _TAIL[1] * math.log(max(1.0, questions)))

    def outlook(self, budget: Budget, *, questions: int, confidence: float) -> Outlook:
        """The split of the budget between tables and a certificate that makes the bar of an answer small.

        `REST` is left for questions outside the certified class, which the gate answers, and for single answers that
        have to be sharper.
        """
        whole, found = total(budget), list[Outlook]()
        for certify in CERTIFY:
            warm = round(1 - REST - certify, 4)
            start = Loss(whole.measure, int(whole.atoms * warm))
            bar, at_once = self.bars(start, Loss(whole.measure, int(whole.atoms * certify)), confidence)
            mean, worst = self.mean(start), self.largest(start, min(questions, _LIKE_A_CLASS))
            found.append(Outlook(mean, worst, bar, at_once, warm=warm, certify=certify, hits=HITS))
        best = min(found, key=lambda one: one.bar * one.mean**MEAN_COUNTS)
        # a hypothesis is a distribution: however noisy its tables, it is not off by more than all rows
        return replace(best, mean=min(best.mean, _BLIND * self.rows), largest=min(best.largest, float(self.rows)))

    def bars(self, start: Loss, certify: Loss, confidence: float) -> tuple[float, float]:
        """The bars to expect of a certificate for this loss, after tables for that: of one answer, and of all at once.

        A bar is what a share of all errors stays within, or the largest, and the certificate's own noise on top.
        """
        people = ONE_COUNT.times(self.rows_per_person)
        share, largest = (
            quantile(noise_for(Loss(certify.measure, int(certify.atoms * part)), people, unit=1), 1 - 2 * miss)
            for part, miss in (
                (SHARES[SAMPLE], Miss.of(of_the_base(confidence)).noise),
                (SHARES[BOXES], 1 - confidence),
            )
        )
        return self.largest(start, _LIKE_A_SHARE) + share, self.largest(start, _LIKE_A_CLASS) + largest

    def _error(self, loss: Loss) -> float:
        """The root of the mean squared error."""
        people = self.rows_per_person if loss.measure == "epsilon" else self.rows_per_person**2
        planned = allocation(self.domain, self.rows)
        return min(planned.expected(loss.measure, float(loss) / people, self.prior_rows), float(self.rows))


def worst_case(
    domain: Domain, rows: int, budget: Budget, *, questions: int, confidence: float, rows_per_person: int = 1
) -> float | None:
    """What theorem 7 of Roth's lecture 12 promises, with multiplicative weights from a uniform start; in rows.

    A warm start can only help, but no theorem says by how much. None where the composition is not proved. With m rows
    a person all noise is m times as wide, so the fraction is that of a table of n/m rows, one for each person.

    Solved by hand: alpha/3 = noise B(alpha/3), or noise sqrt(8 log(1/delta) B(alpha/3)), with B(a) = 4 log|X|/a^2 and
    at least 1. `theory.lecture_12` solves it for any update rule, and says where the constants come from.
    """
    if domain.size < 2 or (budget.delta and budget.epsilon > 8 * math.log(1 / budget.delta)):
        return None
    log_cells = math.log(domain.size)
    noise = 7 * math.log(3 * questions / (1 - confidence)) * rows_per_person / (budget.epsilon * rows)
    if budget.delta == 0:
        return 3 * rows * max(math.cbrt(4 * log_cells * noise), noise)
    noise *= math.sqrt(8 * math.log(1 / budget.delta))
    return 3 * rows * max(math.sqrt(2 * math.sqrt(log_cells) * noise), noise)


Look = Callable[[Budget, int], Outlook]  # what a mechanism does with a budget and a number of questions


def of_direct(sizes: Sizes) -> Look:
    sure, people = sizes.confidence, sizes.rows_per_person
    return lambda budget, questions: direct(budget, questions=questions, confidence=sure, rows_per_person=people)


def of_histogram(sizes: Sizes) -> Look | str:
    if sizes.domain.size > MAX_ANSWERS:
        return f"only for domains of at most {MAX_ANSWERS:,} cells"
    bought = everything(sizes.domain, sizes.measure)
    return partial(histogram, sizes) if isinstance(bought, Marginal) else partial(ranges, sizes, bought)


def of_warm_start(sizes: Sizes) -> Look | str:
    domain, rows, sure, people = sizes.domain, sizes.rows, sizes.confidence, sizes.rows_per_person
    if len(domain) < 2:
        return "needs two attributes or more, to buy tables of pairs"
    if domain.size > MAX_LISTED_CELLS and sum(domain.shape) > MAX_MIXED_VALUES:
        return (
            f"takes at most {MAX_MIXED_VALUES:,} values of all attributes together on so large a domain; "
            "mechanism = median, not planned here, takes more"
        )
    start = WarmStarted(domain, rows, sizes.measure, people, sizes.prior_rows)

    def look(budget: Budget, questions: int) -> Outlook:
        theorem = worst_case(domain, rows, budget, questions=questions, confidence=sure, rows_per_person=people)
        return replace(start.outlook(budget, questions=questions, confidence=sure), worst_case=theorem)

    return look


def mean_size(laws: Sequence[Noise]) -> float:
    """E|Z| where Z has each of the laws equally often; exact but for the grid of a wide one."""
    return sum(expected_largest([law], 1) for law in laws) / len(laws)


def expected_largest(laws: Sequence[Noise], questions: int) -> float:
    """E max |Z_i| over independent draws, in equal parts of each law: the sum of Pr[max > h] over h = 0, 1, ...

    Where the widest law is wider than 1,000 steps, all are shrunk to that first, and the result stretched.
    """
    widest = max(law.scale for law in laws)
    stretch = max(1.0, widest / _STEPS)
    share = questions / len(laws)
    logs = sum(share * _log_within(law.kind, law.scale / stretch, widest / stretch) for law in laws)
    return stretch * float(-np.expm1(logs).sum())


@lru_cache(maxsize=64)
def _log_within(kind: str, scale: float, widest: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """log Pr[|Z| <= h] for h = 0, 1, ..., as far as the widest law reaches."""
    law = pmf(
        Noise("laplace" if kind == "laplace" else "gaussian", scale), np.arange(1, math.ceil(_REACH * widest) + 2)
    )
    above = 2 * np.cumsum(law[::-1])[::-1]  # from the far end, where the terms are smallest
    return np.log1p(-np.minimum(above, 1 - 1e-15))


def least_epsilon(error: Callable[[Budget], float], wanted: float, delta: float) -> float | None:
    """The least epsilon, to a thousandth, at which a falling error is at most what is wanted; None if there is none."""

    def holds(log: float) -> bool:
        try:
            return error(Budget(epsilon=math.exp(log), delta=delta)) <= wanted
        except TacitError:  # too little for anything
            return False

    low, high = math.log(1e-6), math.log(999)
    if not holds(high):
        return None
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return math.exp(high)
