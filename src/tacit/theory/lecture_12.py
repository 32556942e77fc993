"""Roth, lecture 12: sparse vector, and with it the online construction and private multiplicative weights.

Every theorem as a function: numbers from numbers, no data, no randomness. Where we cannot confirm the lecture's noise,
what is private is the default, and the lecture's stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.theory.lecture_8 import (
    Bound,
    MaxUpdates,
    Task,
    check,
    check_epsilon,
    rounds_of,
    step_epsilon,
    steps_factor,
)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """One hit's worth of sparse vector at epsilon1. All its noise is within factor log(events k/beta)/(epsilon1 n).

    k counts comparisons, `comparisons` to a question; `gate_share` is the part of epsilon1 that pays for comparing.
    """

    factor: float
    events: int
    comparisons: int
    gate_share: float

    def noise(self, setting: Task) -> float:
        return self.factor * math.log(self.events * self.comparisons * setting.queries / setting.beta)


LECTURE_12 = SparseVector(4, 2, 2, 1.0)
"""Roth, lecture 12, theorem 2: scale sigma = 2/(epsilon1 n) on threshold and comparison, two one-sided comparisons, and
the answer is the noisy value that was compared. We cannot confirm theorem 3 (privacy): with a new threshold for a hit
the usual argument charges 3/2 epsilon1 for comparing alone, and to release the value that was compared is not private
for any epsilon (Lyu, Su & Li 2017, on their algorithm 3)."""
FRESH_NOISE = SparseVector(7, 3, 1, 6 / 7)
"""What is private; the constant is ours. One comparison of |truth - guess| with noise Lap(4/(g n)), threshold noise
Lap(2/(g n)), g = 6/7 epsilon1, and a fresh answer with Lap(1/(a n)), a = 1/7 epsilon1. Of each kind there are at most k
draws, all within log(3k/beta) scales except with probability beta/3; and (4 + 2)/g = 1/a = 7/epsilon1. It covers
Tacit's gates, whose noise is one-sided, less its mean, with scales that add up to 5.85/(g n)."""
EQUAL_HALVES = SparseVector(12, 3, 1, 1 / 2)
"""The sparse distinguisher of `release/offline.py`, which pays as much for a gate as for an answer: (4 + 2)/g with
g = epsilon1/2. Every round goes through all queries again, so k counts queries times rounds. Its gate stands at half of
the alpha it is given, twice this bound's noise, and so it ends right to three quarters of that alpha."""


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """The numbers of algorithm 1 of lecture 12. All answers are within `alpha` = 3 `update_at`, theorem 7's 3 alpha.

    A hit pays gate_epsilon + answer_epsilon. After `hits` hits the hypothesis is right to within update_at, so further
    questions need no gate (the seed leaves this out: its Sparse has halted by then).
    """

    hits: int
    threshold: float
    update_at: float
    gate_epsilon: float
    answer_epsilon: float
    alpha: float


def sparse_distinguisher(*, n: float, epsilon: float, queries: float, gamma: float) -> float:
    """F(epsilon) = 4 (log|C| + log(2/gamma))/(epsilon n) (Roth, lecture 12, theorem 5), in the sense of definition 4.

    If some query is off by 3F, one that is off by F is found. That is weaker than lecture 8's "within F of the worst":
    it does not fit theorem 4. It fits a loop of B(F) rounds that stops when nothing is found, and is then right to 3F.
    (The seed's Q_i = |Q(.) - Q(D)| is 0 on D; |Q(.) - Q(D')| is meant.)
    """
    check(gamma=gamma)
    return sparse_accuracy(n=n, epsilon=epsilon, delta=0, hits=1, comparisons=queries, beta=gamma)


def sparse_accuracy(*, n: float, epsilon: float, delta: float, hits: float, comparisons: float, beta: float) -> float:
    """alpha = 4c (log k + log(2/beta))/(epsilon n) for c hits in k comparisons (Roth, lecture 12, theorem 2).

    With delta: sqrt(128 c log(1/delta)) (log k + log(2/beta))/(epsilon n), from `step_epsilon`; the constant is ours.
    The proof needs at most c hits. The condition L(T) <= c asks for more, and more than theorem 7 has: the online
    construction bounds its hits, not the queries between T - alpha and T + alpha.
    """
    check(n=n, comparisons=comparisons, beta=beta, hits=hits)
    return 4 * math.log(2 * comparisons / beta) / (step_epsilon(epsilon=epsilon, delta=delta, steps=hits) * n)


def weights_updates(*, cells: float) -> MaxUpdates:
    """B(alpha) = 4 log|X|/alpha^2: multiplicative weights for linear queries (Roth, lecture 12), natural log.

    Checked: with step alpha/2 the relative entropy, at first at most log|X|, falls by alpha^2/4 or more an update. By
    Hoeffding's lemma it falls by s alpha - s^2/8 with step s: step 4 alpha gives log|X|/(2 alpha^2), 8 times fewer.
    """
    check(cells=cells)
    return lambda alpha: 4 * math.log(cells) / alpha**2


def online(max_updates: MaxUpdates, setting: Task, *, sparse: SparseVector = FRESH_NOISE) -> Bound:
    """The online construction with any update rule (Roth, lecture 12, theorem 7). The alpha here is the seed's 3 alpha.

    With LECTURE_12, as stated: a = 4 B(a) (log(2|C|) + log(2/beta))/(epsilon n), and all answers are within 3a. With
    FRESH_NOISE: a = 7 B(a) log(3|C|/beta)/(epsilon n). With delta, sqrt(8 B(a) log(1/delta)) for B(a). The seed's
    union over |C| queries is right if each is compared once; otherwise `queries` must be the number of questions asked.
    """

    def demand(alpha: float) -> float:
        return sparse.noise(setting) * steps_factor(rounds_of(max_updates, alpha / 3), setting.delta) / (alpha / 3)

    return Bound(demand, setting.delta)


def online_plan(
    max_updates: MaxUpdates, setting: Task, *, n: float, epsilon: float, sparse: SparseVector = FRESH_NOISE
) -> OnlinePlan:
    """The online construction's parameters at the smallest alpha that theorem 7 promises (Roth, lecture 12).

    c = B(alpha) and T = 2 alpha, which is 8c (log(2|C|) + log(2/beta))/(epsilon n) with LECTURE_12 and delta = 0.
    """
    alpha = online(max_updates, setting, sparse=sparse).alpha_reached(n=n, epsilon=epsilon)
    hits = rounds_of(max_updates, alpha / 3)
    one_hit = step_epsilon(epsilon=epsilon, delta=setting.delta, steps=hits)
    gate, answer = sparse.gate_share * one_hit, (1 - sparse.gate_share) * one_hit
    return OnlinePlan(math.floor(hits), 2 * alpha / 3, alpha / 3, gate, answer, alpha)


def weights_online_alpha(
    setting: Task, *, n: float, epsilon: float, cells: float, sparse: SparseVector = FRESH_NOISE
) -> float:
    """Roth, lecture 12, theorems 8 (delta = 0) and 9, which have O(.); the constants are ours, from theorem 7.

    With LECTURE_12 and l = log(4|C|/beta)/(epsilon n): 3 (16 log|X| l)^(1/3), and 3 (512 log|X| log(1/delta))^(1/4)
    l^(1/2). FRESH_NOISE has 28, 1568 and log(3|C|/beta). The same as `online(weights_updates(...))` where B >= 1.
    """
    check(n=n, cells=cells)
    check_epsilon(epsilon, setting.delta)
    noise = sparse.noise(setting) / (epsilon * n)
    if setting.delta == 0:
        return 3 * math.cbrt(4 * math.log(cells) * noise)
    return 3 * math.sqrt(math.sqrt(32 * math.log(cells) * math.log(1 / setting.delta)) * noise)
