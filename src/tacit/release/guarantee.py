"""What the theorems promise before anything is run: numbers from numbers. No data, no randomness; anybody may call it.

Errors alpha are fractions of n. Logs are natural, as in the seeds, except where sets are halved (base 2, and said so).
Real n and real B keep the inverses exact: round n up and rounds down. Almost every bound is about n * epsilon alone, so
one falling function of alpha, `Bound.demand`, gives all three inverses; alpha is on both sides, as B depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MaxUpdates = Callable[[float], float]  # B(alpha), T(alpha) of the notes: positive, not increasing; infinite: no promise

_POSITIVE = ("n", "epsilon", "alpha", "log2_net")
_AT_LEAST = {"queries": 1, "comparisons": 1, "cells": 2, "steps": 1, "hits": 1, "questions": 1, "first": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """|C| queries (or questions asked), all within alpha except with probability beta. delta = 0 is pure privacy."""

    queries: float
    beta: float
    delta: float

    def __post_init__(self) -> None:
        _check(queries=self.queries, beta=self.beta, delta=self.delta)


@dataclass(frozen=True, slots=True)
class Slack:
    """The two constants in the offline construction's condition on alpha. It then errs by at most `reached` * alpha.

    A run that stops early has |v - f(D')| < 3/4 alpha, noise at most alpha/noise, and a choice that is at most
    alpha/distinguisher from the worst query: together (3/4 + 1/noise + 1/distinguisher) alpha. A run that does not stop
    needs noise >= 4, and ends below alpha/2, or one more update would be possible.
    """

    noise: float
    distinguisher: float

    @property
    def reached(self) -> float:
        return 3 / 4 + 1 / self.noise + 1 / self.distinguisher


PROVED = Slack(8, 8)
"""Lecture notes on nonlinear queries: alpha >= max(8 log(2B/beta)/(epsilon0 n), 8 F(epsilon0)). Reaches alpha."""
LECTURE_8 = Slack(4, 2)
"""Roth, lecture 8, theorem 4, as stated: max(4 log(2B/beta)/(epsilon0 n), 2 F(epsilon0)). With its stop at 3/4 alpha
this gives 3/2 alpha, not alpha. The notes prove 8 and 8, yet go on with the constants that follow from 4 and 2."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """One hit's worth of sparse vector at epsilon1. All its noise is within factor log(events k/beta)/(epsilon1 n).

    k counts comparisons, `comparisons` to a question; `gate_share` is the part of epsilon1 that pays for comparing.
    """

    factor: float
    events: int
    comparisons: int
    gate_share: float

    def noise(self, setting: Setting) -> float:
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
class Bound:
    """A theorem "error at most alpha if n * epsilon >= demand(alpha)", solved in all directions."""

    demand: Callable[[float], float]
    delta: float

    def alpha_reached(self, *, n: float, epsilon: float) -> float:
        """The smallest alpha promised, by bisection to the last bits. Above 1 it is returned all the same."""
        _check(n=n)
        _check_epsilon(epsilon, self.delta)
        return _where_it_falls_to(self.demand, n * epsilon, start=1.0)

    def n_needed(self, *, alpha: float, epsilon: float) -> float:
        _check(alpha=alpha)
        _check_epsilon(epsilon, self.delta)
        return self.demand(alpha) / epsilon

    def epsilon_needed(self, *, alpha: float, n: float) -> float:
        _check(alpha=alpha, n=n)
        epsilon = self.demand(alpha) / n
        _check_epsilon(epsilon, self.delta)
        return epsilon


@dataclass(frozen=True, slots=True)
class OfflinePlan:
    """The numbers of algorithm 1 of lecture 8. `epsilon0` pays for one choice, and again for one answer."""

    rounds: int
    epsilon0: float
    gamma: float
    stop_at: float
    alpha: float


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


@dataclass(frozen=True, slots=True)
class Phase:
    """One guess at the number of questions, and its part of the budget."""

    questions: int
    epsilon: float
    delta: float
    beta: float


def says_nothing(alpha: float) -> bool:
    """Whether the promise is empty: replacing all n rows moves a 1/n-sensitive query by 1, so no error exceeds 1."""
    return alpha >= 1


def step_epsilon(*, epsilon: float, delta: float, steps: float) -> float:
    """What each of so many adaptive steps may cost: epsilon/steps, or epsilon/sqrt(8 steps log(1/delta)).

    With steps = 2B: epsilon/(2B) and epsilon/(4 sqrt(B log(1/delta))), as lecture 8 and the notes both have it. The
    second holds for epsilon <= 8 log(1/delta), which the seeds leave out: in zCDP the steps cost rho = epsilon^2/(16
    log(1/delta)), and rho + 2 sqrt(rho log(1/delta)) <= epsilon just then (Bun & Steinke 2016).
    """
    _check(steps=steps)
    _check_epsilon(epsilon, delta)
    return epsilon / _steps_factor(steps, delta)


def exponential_distinguisher(*, n: float, epsilon: float, queries: float, gamma: float) -> float:
    """F(epsilon) = 2/(n epsilon) log(|C|/gamma) (Roth, lecture 8, theorem 5): this far from the worst query at most."""
    _check(n=n, epsilon=epsilon, queries=queries, gamma=gamma)
    return 2 / (n * epsilon) * math.log(queries / gamma)


def sparse_distinguisher(*, n: float, epsilon: float, queries: float, gamma: float) -> float:
    """F(epsilon) = 4 (log|C| + log(2/gamma))/(epsilon n) (Roth, lecture 12, theorem 5), in the sense of definition 4.

    If some query is off by 3F, one that is off by F is found. That is weaker than lecture 8's "within F of the worst":
    it does not fit theorem 4. It fits a loop of B(F) rounds that stops when nothing is found, and is then right to 3F.
    (The seed's Q_i = |Q(.) - Q(D)| is 0 on D; |Q(.) - Q(D')| is meant.)
    """
    _check(gamma=gamma)
    return sparse_accuracy(n=n, epsilon=epsilon, delta=0, hits=1, comparisons=queries, beta=gamma)


def sparse_accuracy(*, n: float, epsilon: float, delta: float, hits: float, comparisons: float, beta: float) -> float:
    """alpha = 4c (log k + log(2/beta))/(epsilon n) for c hits in k comparisons (Roth, lecture 12, theorem 2).

    With delta: sqrt(128 c log(1/delta)) (log k + log(2/beta))/(epsilon n), from `step_epsilon`; the constant is ours.
    The proof needs at most c hits. The condition L(T) <= c asks for more, and more than theorem 7 has: the online
    construction bounds its hits, not the queries between T - alpha and T + alpha.
    """
    _check(n=n, comparisons=comparisons, beta=beta, hits=hits)
    return 4 * math.log(2 * comparisons / beta) / (step_epsilon(epsilon=epsilon, delta=delta, steps=hits) * n)


def net_updates(log2_net: float) -> MaxUpdates:
    """B = log2 |net|, whatever alpha (Roth, lecture 8, theorem 9): each update at least halves the set.

    Two strictnesses matter. Removing ties with the median (lecture 8) halves; the notes' strict version may remove
    nothing. Removing ties spares the net's element near D only if its error is strictly below alpha.
    """
    _check(log2_net=log2_net)
    return lambda _alpha: log2_net


def sampled_net_rows(*, alpha: float, queries: float) -> int:
    """Databases of so many rows have errors strictly below alpha: the first m with 2|C| exp(-2 m alpha^2) < 1. Ours."""
    _check(alpha=alpha, queries=queries)
    return math.floor(math.log(2 * queries) / (2 * alpha**2)) + 1


def sampled_net_updates(*, cells: float, queries: float) -> MaxUpdates:
    """B(alpha) = m log2|X| with m = `sampled_net_rows`: theorem 9 for linear queries, rounding included. Ours."""
    _check(cells=cells, queries=queries)
    return lambda alpha: sampled_net_rows(alpha=alpha, queries=queries) * math.log2(cells)


def median_updates(*, cells: float, queries: float) -> MaxUpdates:
    """B(alpha) = log|X| log|C|/alpha^2 (Roth, lecture 8, theorem 10), both logs natural.

    The seed does not say which logs. Halving wants log2|X|, but Hoeffding only log(2|C|)/(2 alpha^2) rows, so natural
    logs suffice from |C| = 7 on, up to rounding the rows; `sampled_net_updates` is exact. |C| = 1 would give 0.
    """
    _check(cells=cells, queries=queries)
    if queries < 2:
        raise ValueError(f"queries is {queries!r}; theorem 10 of lecture 8 needs at least 2, as log(1) = 0.")
    return lambda alpha: math.log(cells) * math.log(queries) / alpha**2


def weights_updates(*, cells: float) -> MaxUpdates:
    """B(alpha) = 4 log|X|/alpha^2: multiplicative weights for linear queries (Roth, lecture 12), natural log.

    Checked: with step alpha/2 the relative entropy, at first at most log|X|, falls by alpha^2/4 or more an update. By
    Hoeffding's lemma it falls by s alpha - s^2/8 with step s: step 4 alpha gives log|X|/(2 alpha^2), 8 times fewer.
    """
    _check(cells=cells)
    return lambda alpha: 4 * math.log(cells) / alpha**2


def offline(max_updates: MaxUpdates, setting: Setting, *, slack: Slack = PROVED) -> Bound:
    """The offline construction with the exponential mechanism and any update rule (Roth, lecture 8, theorems 4 to 7).

    alpha >= max(noise log(2B/beta)/(epsilon0 n), distinguisher F(epsilon0)), B = B(alpha/2), gamma = beta/(2B). As F's
    part is the larger: n epsilon = 32 B log(|C|/gamma)/alpha, or 64 sqrt(B log(1/delta)) log(|C|/gamma)/alpha; with
    LECTURE_8, theorem 7's 8 and 16. B below 1 counts as 1.
    """

    def demand(alpha: float) -> float:
        rounds = _rounds(max_updates, alpha / 2)
        noise = slack.noise * math.log(2 * rounds / setting.beta)
        choice = slack.distinguisher * 2 * math.log(setting.queries * 2 * rounds / setting.beta)
        return max(noise, choice) * _steps_factor(2 * rounds, setting.delta) / alpha

    return Bound(demand, setting.delta)


def offline_plan(
    max_updates: MaxUpdates, setting: Setting, *, n: float, epsilon: float, slack: Slack = PROVED
) -> OfflinePlan:
    """The offline construction's parameters at the smallest alpha that its theorem promises (Roth, lecture 8)."""
    alpha = offline(max_updates, setting, slack=slack).alpha_reached(n=n, epsilon=epsilon)
    rounds = _rounds(max_updates, alpha / 2)
    epsilon0 = step_epsilon(epsilon=epsilon, delta=setting.delta, steps=2 * rounds)
    return OfflinePlan(math.floor(rounds), epsilon0, setting.beta / (2 * rounds), 3 * alpha / 4, alpha)


def median_offline_alpha(
    *, n: float, epsilon: float, delta: float, cells: float, queries: float, gamma: float, slack: Slack = PROVED
) -> float:
    """Roth, lecture 8, theorem 11: a power law while gamma is held fixed. With L = log|X| log|C|,

    (128 L log(|C|/gamma)/(n epsilon))^(1/3), or (128 sqrt(L log(1/delta)) log(|C|/gamma)/(n epsilon))^(1/2); 32 for 128
    with LECTURE_8, as stated. `offline(median_updates(...))` also solves gamma = beta/(2 B(alpha/2)).
    """
    _check(n=n, gamma=gamma)
    _check_epsilon(epsilon, delta)
    size = median_updates(cells=cells, queries=queries)(1.0)
    power = 16 * slack.distinguisher * math.log(queries / gamma) / (n * epsilon)
    return math.cbrt(power * size) if delta == 0 else math.sqrt(power * math.sqrt(size * math.log(1 / delta)))


@dataclass(frozen=True, slots=True)
class TrivialNet:
    """The offline construction for any 1/n-sensitive queries, from all databases of n rows: B = n log2|X| (the notes).

    alpha = 64 sqrt(log2|X| log(1/delta)) log(2|C| n log2|X|/beta)/(sqrt(n) epsilon); 16 with LECTURE_8, as stated. With
    delta = 0 the n cancels, and alpha = 32 log2|X| log(2|C| n log2|X|/beta)/epsilon grows with n: no bound at all.
    """

    setting: Setting
    cells: float
    slack: Slack = PROVED

    def alpha_reached(self, *, n: float, epsilon: float) -> float:
        _check_epsilon(epsilon, self.setting.delta)
        return self._demand_at_one(n) / (n * epsilon)

    def epsilon_needed(self, *, alpha: float, n: float) -> float:
        _check(alpha=alpha)
        epsilon = self._demand_at_one(n) / (n * alpha)
        _check_epsilon(epsilon, self.setting.delta)
        return epsilon

    def n_needed(self, *, alpha: float, epsilon: float) -> float:
        """By bisection, as n is in the log as well. At least 4: from there on alpha falls with n."""
        _check(alpha=alpha)
        if self.setting.delta == 0:
            raise ValueError("delta is 0; with pure privacy the trivial net's bound grows with n, and no n is enough.")
        if self.alpha_reached(n=4, epsilon=epsilon) <= alpha:
            return 4.0
        return _where_it_falls_to(lambda n: self.alpha_reached(n=n, epsilon=epsilon), alpha, start=4.0)

    def _demand_at_one(self, n: float) -> float:
        _check(n=n, cells=self.cells)
        return offline(net_updates(n * math.log2(self.cells)), self.setting, slack=self.slack).demand(1.0)


def online(max_updates: MaxUpdates, setting: Setting, *, sparse: SparseVector = FRESH_NOISE) -> Bound:
    """The online construction with any update rule (Roth, lecture 12, theorem 7). The alpha here is the seed's 3 alpha.

    With LECTURE_12, as stated: a = 4 B(a) (log(2|C|) + log(2/beta))/(epsilon n), and all answers are within 3a. With
    FRESH_NOISE: a = 7 B(a) log(3|C|/beta)/(epsilon n). With delta, sqrt(8 B(a) log(1/delta)) for B(a). The seed's
    union over |C| queries is right if each is compared once; otherwise `queries` must be the number of questions asked.
    """

    def demand(alpha: float) -> float:
        return sparse.noise(setting) * _steps_factor(_rounds(max_updates, alpha / 3), setting.delta) / (alpha / 3)

    return Bound(demand, setting.delta)


def online_plan(
    max_updates: MaxUpdates, setting: Setting, *, n: float, epsilon: float, sparse: SparseVector = FRESH_NOISE
) -> OnlinePlan:
    """The online construction's parameters at the smallest alpha that theorem 7 promises (Roth, lecture 12).

    c = B(alpha) and T = 2 alpha, which is 8c (log(2|C|) + log(2/beta))/(epsilon n) with LECTURE_12 and delta = 0.
    """
    alpha = online(max_updates, setting, sparse=sparse).alpha_reached(n=n, epsilon=epsilon)
    hits = _rounds(max_updates, alpha / 3)
    one_hit = step_epsilon(epsilon=epsilon, delta=setting.delta, steps=hits)
    gate, answer = sparse.gate_share * one_hit, (1 - sparse.gate_share) * one_hit
    return OnlinePlan(math.floor(hits), 2 * alpha / 3, alpha / 3, gate, answer, alpha)


def weights_online_alpha(
    setting: Setting, *, n: float, epsilon: float, cells: float, sparse: SparseVector = FRESH_NOISE
) -> float:
    """Roth, lecture 12, theorems 8 (delta = 0) and 9, which have O(.); the constants are ours, from theorem 7.

    With LECTURE_12 and l = log(4|C|/beta)/(epsilon n): 3 (16 log|X| l)^(1/3), and 3 (512 log|X| log(1/delta))^(1/4)
    l^(1/2). FRESH_NOISE has 28, 1568 and log(3|C|/beta). The same as `online(weights_updates(...))` where B >= 1.
    """
    _check(n=n, cells=cells)
    _check_epsilon(epsilon, setting.delta)
    noise = sparse.noise(setting) / (epsilon * n)
    if setting.delta == 0:
        return 3 * math.cbrt(4 * math.log(cells) * noise)
    return 3 * math.sqrt(math.sqrt(32 * math.log(cells) * math.log(1 / setting.delta)) * noise)


def doubling_phases(
    *, questions: int, first: int, epsilon: float, delta: float, beta: float, most: int | None = None
) -> tuple[Phase, ...]:
    """The phases that `questions` questions go through if phase j = 0, 1, ... is run for first * 2^j questions.

    Roth & Roughgarden 2010, end of section 3: "successively doubling guesses of k", at O(log k) times the privacy cost.
    They give no split; ours are these. If at most `most` questions will come, in J phases, each gets 1/J of epsilon,
    delta and beta: their O(log k). With no such limit phase j gets 1/((j+1)(j+2)), which adds up to 1 for ever, so the
    factor is O(log^2 k): no split of a fixed budget is O(log k) for all k, as the sum of 1/j diverges.
    """
    _check(questions=questions, first=first, epsilon=epsilon, delta=delta, beta=beta)
    if most is not None and questions > most:
        raise ValueError(f"questions is {questions!r}; it must be at most `most`, which is {most!r}.")
    phases = (-(-questions // first)).bit_length()  # the first J with first * (2^J - 1) >= questions
    planned = None if most is None else (-(-most // first)).bit_length()
    shares = [1 / planned if planned else 1 / ((j + 1) * (j + 2)) for j in range(phases)]
    return tuple(Phase(first * 2**j, epsilon * s, delta * s, beta * s) for j, s in enumerate(shares))


def _steps_factor(steps: float, delta: float) -> float:
    return steps if delta == 0 else math.sqrt(8 * steps * math.log(1 / delta))


def _rounds(max_updates: MaxUpdates, alpha: float) -> float:
    rounds = max_updates(alpha)
    if not rounds > 0:
        raise ValueError(f"max_updates({alpha!r}) is {rounds!r}; it must be a positive number.")
    return max(1.0, rounds)


def _where_it_falls_to(falling: Callable[[float], float], target: float, *, start: float) -> float:
    """The smallest x with falling(x) <= target, by doubling or halving from start and then bisecting the logarithm."""
    low = high = start
    while falling(high) > target:
        high *= 2
    while falling(low) <= target:
        low /= 2
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high:
        low, high = (low, middle) if falling(middle) <= target else (middle, high)
    return high


def _check_epsilon(epsilon: float, delta: float) -> None:
    _check(epsilon=epsilon, delta=delta)
    if delta > 0 and epsilon > (limit := 8 * math.log(1 / delta)):
        raise ValueError(f"epsilon is {epsilon:g}; composition with delta = {delta:g} is proved up to {limit:g}.")


def _check(**given: float) -> None:
    for name, value in given.items():
        if name in _POSITIVE:
            good, must = 0 < value < math.inf, "a positive number"
        elif name in _AT_LEAST:
            good, must = _AT_LEAST[name] <= value < math.inf, f"a number of at least {_AT_LEAST[name]}"
        elif name == "delta":
            good, must = 0 <= value < 1, "0 (pure privacy) or a number below 1"
        else:
            good, must = 0 < value < 1, "between 0 and 1, both excluded"
        if not good:
            raise ValueError(f"{name} is {value!r}; it must be {must}.")
