"""Roth & Roughgarden 2010, "Interactive Privacy via the Median Mechanism", sections 3 and 4: what they promise.

Numbers from numbers, no data. Figure 1 itself is in `figure_1`, section 5 in `median_efficient`.

The paper calls privacy alpha and accuracy epsilon; here accuracy is alpha and privacy epsilon, as everywhere in Tacit.
Where the paper has Omega(.), the constants are ours: union bounds over Laplace tails, and Chernoff bounds in the form
that holds for adaptive questions (Freedman). k is the number of questions, and M stands for m ln|X|.

Steps of the paper that do not hold as written. All are repaired here, and what is claimed stays but for the last one:

- (1) gives too few records for proposition 4.6's alpha/400 unless ln(1/alpha) > ln(2k)/(2 ln k), so for no alpha above
  0.61. Lemma 4.7 uses alpha/100 only, for which ln(1/alpha) > ln(2k)/(32 ln k) is enough. `net_has_a_witness` tells.
- Lemma 4.7: a database that stays is within alpha/50 of the answer, so within 3 alpha/100 of the data, not alpha/50.
  The step is 0.94 exp(-3/100) = 0.9122 > 91/100, which is still a contradiction.
- Lemma 4.9 uses e^x <= 1 + 2x, for alpha n >= 1; beyond that 2/(alpha n) > 1 bounds r all the same. The exact
  sensitivity is less than half of it: `agreement_sensitivity`.
- Lemma 4.10: Pr[t in T without its smallest] >= Pr[t in T]/2 is false for a law that is cut off: it is always less than
  half, and 1/3 at worst. So E[Z] >= E[Y]/6, not /4. And if 3/(20 gamma) is not whole, the largest threshold, not 9/10,
  divides its cases. What it says remains: 6 * 20 < 159. Its exp(-Omega(M^2)) is exp(-Omega(M ln M)).
- Figure 1 halts after *more than* 20 M hard answers: 20 M + 1 are possible, and theorem 4.8 has room for one more.
- Theorem 4.2's delta exceeds 1 at (6) unless 2k/epsilon is above about 102: `failure`, and `rows_for` for a given one.
- Lemma 5.4 allows 40 M hard answers where figure 1 halts at 20 M: `median_efficient.Efficient.privacy_at_forty`.
- Lemma 5.6's proof forgets that a point of C_0 may have less than m mass, while samples come from it scaled up to m. We
  need one more term, which is small for large |X| only: `median_efficient.Efficient.log_bad_samples`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit.theory.lecture_8 import Bound, check, sampled_net_rows

LOWEST, HIGHEST = 3 / 4, 9 / 10  # the range of the thresholds
SHRINKS = math.log(50 / 47)  # lemma 4.7: a hard answer leaves at most 94/100 of the databases
HARD, BAD = 20, 160  # multiples of M: hard answers, and easy ones whose threshold is not good
_NEAREST = 1 / 100  # how near a noisy r must be to r


def agreement(truth: float, values: ArrayLike, alpha: float) -> float:
    """r, equation (4): the mean of exp(-|f(D) - f(S)|/alpha) over the databases S, given their values f(S)."""
    return float(np.exp(-np.abs(np.asarray(values, dtype=np.float64) - truth) / alpha).mean())


def agreement_sensitivity(*, alpha: float, n: float) -> float:
    """How far r moves between neighbours, exactly: 1 - exp(-1/(alpha n)). Lemma 4.9 has 2/(alpha n).

    |f(D) - f(S)|/alpha is at least 0 and moves by at most h = 1/(alpha n); where u is at least 0 and moves by h, e^-u
    moves by e^-u (1 - e^-h) <= 1 - e^-h <= h. If all of C answers as D does, r falls from 1 to e^-h: no less will do.
    """
    return -math.expm1(-1 / (alpha * n))


def easy_error(*, alpha: float, threshold: float, noise: float) -> float:
    """How far the median can be from f(D) if r + noise reached the threshold; infinite if nothing follows. Ours.

    If the median is off by a, half of C is off by a or more, so r <= (1 + exp(-a/alpha))/2. Lemma 4.5 is the case of a
    threshold of 3/4 and noise of 1/100, where this is 0.734 alpha; it stays below alpha for noise up to 0.066.
    """
    most = 2 * (threshold - noise) - 1
    return math.inf if most <= 0 else max(0.0, -alpha * math.log(most))


def sample_records(*, alpha: float, questions: float, beta: float) -> float:
    """Proposition 4.6: a sample of (ln k + ln(2/beta))/(2 alpha^2) records errs by at most alpha, except with beta."""
    return (math.log(questions) + math.log(2 / beta)) / (2 * alpha**2)


def alpha_reached(*, n: float, epsilon: float, questions: int, cells: float) -> float:
    """Footnote 8: equation (6) solved for alpha, by bisection. 1 if n is enough for no alpha."""

    def demand(alpha: float) -> float:
        return 0.0 if alpha >= 1 else epsilon * PaperConstants.of(alpha, epsilon, questions, cells).rows_needed

    return Bound(demand, 0.0).alpha_reached(n=n, epsilon=epsilon)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Figure 1, step (b): 3/4 + j gamma for j = 0 ... J = floor(3/(20 gamma)), with probability 2^-j/(2 - 2^-J).

    If gamma > 3/20, only 3/4 is left, and nothing is random. Accuracy does not mind (lemmas 4.5 and 4.7 hold for every
    threshold from 3/4 to 9/10), nor does a privacy that pays for each comparison; lemma 4.10 says nothing then.
    """

    gamma: float

    def __post_init__(self) -> None:
        if not 0 < self.gamma < math.inf:
            raise ValueError(f"gamma is {self.gamma!r}; it must be a positive number.")

    @property
    def last(self) -> int:
        """J; there are J + 1 thresholds. A quotient a rounding error below a whole number counts as whole."""
        return math.floor((HIGHEST - LOWEST) / self.gamma * (1 + 1e-12))

    def value(self, j: int) -> float:
        return min(LOWEST + j * self.gamma, HIGHEST)

    def probability(self, j: int) -> float:
        return 2.0**-j / (2 - 2.0**-self.last)

    def place(self, uniform: float) -> int:
        """The j at which the distribution function first exceeds a number from [0, 1)."""
        # 1 - F(j) = (2^-j - 2^-J)/(2 - 2^-J), so j is the first one with 2^-j < (1 - u)(2 - 2^-J) + 2^-J
        end = 2.0**-self.last
        return min(self.last, math.floor(-math.log2((1 - uniform) * (2 - end) + end)) + 1)


@dataclass(frozen=True, slots=True)
class PaperConstants:
    """The constants of the median mechanism, from alpha, epsilon, k and |X|. `of` makes them."""

    alpha: float
    epsilon: float
    questions: int
    cells: float
    records: int
    """m, equation (1), rounded up: 160000 ln k ln(1/alpha)/alpha^2."""

    @classmethod
    def of(cls, alpha: float, epsilon: float, questions: int, cells: float) -> PaperConstants:
        """k = 1 would give m = 0; epsilon >= 2k would give ln(2k/epsilon) <= 0, and theorem 4.8 needs epsilon <= 2k."""
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is {alpha!r}; it must be between 0 and 1, both excluded.")
        if not (questions >= 2 and 2 <= cells < math.inf):
            raise ValueError(f"questions and cells are {questions!r} and {cells!r}; both must be at least 2.")
        if not 0 < epsilon < 2 * questions:
            raise ValueError(f"epsilon is {epsilon!r}; it must be between 0 and 2k, both excluded.")
        m = 160_000 * math.log(questions) * math.log(1 / alpha) / alpha**2
        return cls(alpha, epsilon, questions, cells, math.ceil(m))

    @property
    def log_net(self) -> float:
        """M = m ln|X|, which is at least the logarithm of the number of databases in C_0."""
        return self.records * math.log(self.cells)

    @property
    def epsilon_each(self) -> float:
        """epsilon' (the paper's alpha'), equation (2): epsilon/(720 m ln|X|)."""
        return self.epsilon / (720 * self.log_net)

    @property
    def rows_needed(self) -> float:
        """Equation (6): 30 ln(2k/epsilon) log2 k/(epsilon' alpha)."""
        return 30 * self._log * math.log2(self.questions) / (self.epsilon_each * self.alpha)

    @property
    def hard_limit(self) -> int:
        """Step (f): the mechanism halts when there are more than 20 M hard answers. The lemma's log is natural."""
        return math.floor(HARD * self.log_net)

    @property
    def net_has_a_witness(self) -> bool:
        """Whether some database of m records is within alpha/100 of any D on all questions, as lemma 4.7 needs.

        By sampling (proposition 4.6), or by rounding D to m records, which moves any predicate by |X|/(4m) at most.
        """
        sampled = self.records >= sampled_net_rows(alpha=self.alpha / 100, queries=self.questions)
        return sampled or self.cells / (4 * self.records) <= self.alpha / 100

    @property
    def hard_answers(self) -> float:
        """Lemma 4.7: at most m ln|X|/ln(50/47), below 16.2 M, as C shrinks to 94/100 and keeps the witness."""
        return self.log_net / SHRINKS

    def gamma(self, n: float) -> float:
        """Equation (3): 4 ln(2k/epsilon)/(epsilon' alpha n). At (6) it is 2/(15 log2 k), below 3/20."""
        return 4 * self._log / (self.epsilon_each * self.alpha * n)

    def thresholds(self, n: float) -> Thresholds:
        return Thresholds(self.gamma(n))

    def noisy_agreement(self, n: float) -> float:
        """Lemma 4.3: some noisy r is off by more than 1/100 with probability at most k exp(-alpha n epsilon'/200)."""
        return self.questions * math.exp(-_NEAREST * self.alpha * n * self.epsilon_each / 2)

    def noisy_answers(self, n: float) -> float:
        """Lemma 4.4: some hard answer is off by more than alpha/100; as above, with 100, for hard answers only."""
        hard = min(self.questions, self.hard_limit + 1)
        return hard * math.exp(-_NEAREST * self.alpha * n * self.epsilon_each)

    def failure(self, n: float) -> float:
        """Theorem 4.2: not all answers are within alpha with probability at most this. Above 1 it says nothing."""
        return self.noisy_agreement(n) + self.noisy_answers(n)

    def rows_for(self, beta: float) -> float:
        """Rows for (6) and a failure of at most beta: 200 ln(2k/beta)/(alpha epsilon'). Ours."""
        return max(self.rows_needed, 200 * math.log(2 * self.questions / beta) / (self.alpha * self.epsilon_each))

    @property
    def log_tau(self) -> float:
        """Lemma 4.10: the logarithm of a bound on Pr[more than 180 M thresholds are not good], for n as in (6).

        Three parts. Above the largest threshold: k draws of chance at most 1/k, more than M. Below it the chances q of
        being hard add up to 24.5 M or more although at most 20 M + 1 come; or else those of not being good add up to
        less than 6 * 24.5 M, and still 159 M come.
        """
        m, hard, sum_q = self.log_net, self.hard_limit + 1, 24.5 * self.log_net
        if m <= 1 or sum_q <= hard:
            return 0.0
        above = m * math.log(m) - m + 1
        unlucky = sum_q - hard - hard * math.log(sum_q / hard)
        bad = (BAD - 1) * m
        surprised = bad * math.log(bad / (6 * sum_q)) - bad + 6 * sum_q
        return min(0.0, float(np.logaddexp.reduce([-above, -unlucky, -surprised])))

    @property
    def privacy(self) -> float:
        """Theorem 4.8's sum: 2 epsilon' for 180 M questions and epsilon/2 for all the others: epsilon, with tau."""
        return 2 * self.epsilon_each * (HARD + BAD) * self.log_net + self.epsilon / 2

    @property
    def one_by_one(self) -> float:
        """All k comparisons and the hard answers paid for singly: pure epsilon, whatever lemma 4.10 says. Ours.

        The comparison's noise Lap(2/(alpha n epsilon')) costs epsilon'/2 by the exact sensitivity, an answer epsilon'.
        The crude bound (10), 2 epsilon' for each question, is within epsilon for k <= 360 M; this one for 1400 M - 2.
        """
        return (self.questions / 2 + min(self.questions, self.hard_limit + 1)) * self.epsilon_each

    @property
    def _log(self) -> float:
        return math.log(2 * self.questions / self.epsilon)


@dataclass(frozen=True, slots=True)
class Phase:
    """One guess at the number of questions, and its part of the budget."""

    questions: int
    epsilon: float
    delta: float
    beta: float


def doubling_phases(
    *, questions: int, first: int, epsilon: float, delta: float, beta: float, most: int | None = None
) -> tuple[Phase, ...]:
    """The phases that `questions` questions go through if phase j = 0, 1, ... is run for first * 2^j questions.

    Roth & Roughgarden 2010, end of section 3: "successively doubling guesses of k", at O(log k) times the privacy cost.
    They give no split; ours are these. If at most `most` questions will come, in J phases, each gets 1/J of epsilon,
    delta and beta: their O(log k). With no such limit phase j gets 1/((j+1)(j+2)), which adds up to 1 for ever, so the
    factor is O(log^2 k): no split of a fixed budget is O(log k) for all k, as the sum of 1/j diverges.
    """
    check(questions=questions, first=first, epsilon=epsilon, delta=delta, beta=beta)
    if most is not None and questions > most:
        raise ValueError(f"questions is {questions!r}; it must be at most `most`, which is {most!r}.")
    phases = (-(-questions // first)).bit_length()  # the first J with first * (2^J - 1) >= questions
    planned = None if most is None else (-(-most // first)).bit_length()
    shares = [1 / planned if planned else 1 / ((j + 1) * (j + 2)) for j in range(phases)]
    return tuple(Phase(first * 2**j, epsilon * s, delta * s, beta * s) for j, s in enumerate(shares))
