"""Roth, lecture 8: a private distinguisher and an update rule learn the answers to all queries, offline.

Every theorem as a function: numbers from numbers, no data, no randomness. Where the lecture's constants do not prove
what it says, ours are the default and the lecture's stand beside them. `lecture_12` builds on these words.

`PROVED` has the constants, and `TrivialNet` the net, of lecture notes on nonlinear queries (author unknown), which have
the same construction for any query of sensitivity 1/n.

Errors alpha are fractions of n. Logs are natural, except where sets are halved (base 2, and said so). Real n and real B
keep the inverses exact: round n up and rounds down. Almost every bound is about n * epsilon alone, so one falling
function of alpha, `Bound.demand`, gives all three inverses; alpha is on both sides, as B depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

MaxUpdates = Callable[[float], float]  # B(alpha), T(alpha) of the notes: positive, not increasing; infinite: no promise

_POSITIVE = ("n", "epsilon", "alpha", "log2_net")
_AT_LEAST = {"queries": 1, "comparisons": 1, "cells": 2, "steps": 1, "hits": 1, "questions": 1, "first": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """|C| queries (or questions asked), all within alpha except with probability beta. delta = 0 is pure privacy."""

    queries: float
    beta: float
    delta: float

    def __post_init__(self) -> None:
        check(queries=self.queries, beta=self.beta, delta=self.delta)


@dataclass(frozen=True, slots=True)
class Bound:
    """A theorem "error at most alpha if n * epsilon >= demand(alpha)", solved in all directions."""

    demand: Callable[[float], float]
    delta: float

    def alpha_reached(self, *, n: float, epsilon: float) -> float:
        """The smallest alpha promised, by bisection to the last bits. Above 1 it is returned all the same."""
        check(n=n)
        check_epsilon(epsilon, self.delta)
        return where_it_falls_to(self.demand, n * epsilon, start=1.0)

    def n_needed(self, *, alpha: float, epsilon: float) -> float:
        check(alpha=alpha)
        check_epsilon(epsilon, self.delta)
        return self.demand(alpha) / epsilon

    def epsilon_needed(self, *, alpha: float, n: float) -> float:
        check(alpha=alpha, n=n)
        epsilon = self.demand(alpha) / n
        check_epsilon(epsilon, self.delta)
        return epsilon


def step_epsilon(*, epsilon: float, delta: float, steps: float) -> float:
    """What each of a number of adaptive steps may cost: epsilon/steps, or epsilon/sqrt(8 steps log(1/delta)).

    With steps = 2B: epsilon/(2B) and epsilon/(4 sqrt(B log(1/delta))), as lecture 8 and the notes both have it. The
    second holds for epsilon <= 8 log(1/delta), which the seeds leave out: in zCDP the steps cost rho = epsilon^2/(16
    log(1/delta)), and rho + 2 sqrt(rho log(1/delta)) <= epsilon just then (Bun & Steinke 2016).
    """
    check(steps=steps)
    check_epsilon(epsilon, delta)
    return epsilon / steps_factor(steps, delta)


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
class OfflinePlan:
    """The numbers of algorithm 1 of lecture 8. `epsilon0` pays for one choice, and again for one answer."""

    rounds: int
    epsilon0: float
    gamma: float
    stop_at: float
    alpha: float


def exponential_distinguisher(*, n: float, epsilon: float, queries: float, gamma: float) -> float:
    """F(epsilon) = 2/(n epsilon) log(|C|/gamma) (Roth, lecture 8, theorem 5): this far from the worst query at most."""
    check(n=n, epsilon=epsilon, queries=queries, gamma=gamma)
    return 2 / (n * epsilon) * math.log(queries / gamma)


def net_updates(log2_net: float) -> MaxUpdates:
    """B = log2 |net|, whatever alpha (Roth, lecture 8, theorem 9): each update at least halves the set.

    Two strictnesses matter. Removing ties with the median (lecture 8) halves; the notes' strict version may remove
    nothing. Removing ties spares the net's element near D only if its error is strictly below alpha.
    """
    check(log2_net=log2_net)
    return lambda _alpha: log2_net


def sampled_net_rows(*, alpha: float, queries: float) -> int:
    """How many rows errors strictly below alpha need: the first m with 2|C| exp(-2 m alpha^2) < 1. Ours."""
    check(alpha=alpha, queries=queries)
    return math.floor(math.log(2 * queries) / (2 * alpha**2)) + 1


def sampled_net_updates(*, cells: float, queries: float) -> MaxUpdates:
    """B(alpha) = m log2|X| with m = `sampled_net_rows`: theorem 9 for linear queries, rounding included. Ours."""
    check(cells=cells, queries=queries)
    return lambda alpha: sampled_net_rows(alpha=alpha, queries=queries) * math.log2(cells)


def median_updates(*, cells: float, queries: float) -> MaxUpdates:
    """B(alpha) = log|X| log|C|/alpha^2 (Roth, lecture 8, theorem 10), both logs natural.

    The seed does not say which logs. Halving wants log2|X|, but Hoeffding only log(2|C|)/(2 alpha^2) rows, so natural
    logs suffice from |C| = 7 on, up to rounding the rows; `sampled_net_updates` is exact. |C| = 1 would give 0.
    """
    check(cells=cells, queries=queries)
    if queries < 2:
        raise ValueError(f"queries is {queries!r}; theorem 10 of lecture 8 needs at least 2, as log(1) = 0.")
    return lambda alpha: math.log(cells) * math.log(queries) / alpha**2


def offline(max_updates: MaxUpdates, setting: Task, *, slack: Slack = PROVED) -> Bound:
    """The offline construction with the exponential mechanism and any update rule (Roth, lecture 8, theorems 4 to 7).

    alpha >= max(noise log(2B/beta)/(epsilon0 n), distinguisher F(epsilon0)), B = B(alpha/2), gamma = beta/(2B). As F's
    part is the larger: n epsilon = 32 B log(|C|/gamma)/alpha, or 64 sqrt(B log(1/delta)) log(|C|/gamma)/alpha; with
    LECTURE_8, theorem 7's 8 and 16. B below 1 counts as 1.
    """

    def demand(alpha: float) -> float:
        rounds = rounds_of(max_updates, alpha / 2)
        noise = slack.noise * math.log(2 * rounds / setting.beta)
        choice = slack.distinguisher * 2 * math.log(setting.queries * 2 * rounds / setting.beta)
        return max(noise, choice) * steps_factor(2 * rounds, setting.delta) / alpha

    return Bound(demand, setting.delta)


def offline_plan(
    max_updates: MaxUpdates, setting: Task, *, n: float, epsilon: float, slack: Slack = PROVED
) -> OfflinePlan:
    """The offline construction's parameters at the smallest alpha that its theorem promises (Roth, lecture 8)."""
    alpha = offline(max_updates, setting, slack=slack).alpha_reached(n=n, epsilon=epsilon)
    rounds = rounds_of(max_updates, alpha / 2)
    epsilon0 = step_epsilon(epsilon=epsilon, delta=setting.delta, steps=2 * rounds)
    return OfflinePlan(math.floor(rounds), epsilon0, setting.beta / (2 * rounds), 3 * alpha / 4, alpha)


def median_offline_alpha(
    *, n: float, epsilon: float, delta: float, cells: float, queries: float, gamma: float, slack: Slack = PROVED
) -> float:
    """Roth, lecture 8, theorem 11: a power law while gamma is held fixed. With L = log|X| log|C|,

    (128 L log(|C|/gamma)/(n epsilon))^(1/3), or (128 sqrt(L log(1/delta)) log(|C|/gamma)/(n epsilon))^(1/2); 32 for 128
    with LECTURE_8, as stated. `offline(median_updates(...))` also solves gamma = beta/(2 B(alpha/2)).
    """
    check(n=n, gamma=gamma)
    check_epsilon(epsilon, delta)
    size = median_updates(cells=cells, queries=queries)(1.0)
    power = 16 * slack.distinguisher * math.log(queries / gamma) / (n * epsilon)
    return math.cbrt(power * size) if delta == 0 else math.sqrt(power * math.sqrt(size * math.log(1 / delta)))


@dataclass(frozen=True, slots=True)
class TrivialNet:
    """The notes' own net, all databases of n rows, which is one for any 1/n-sensitive queries: B = n log2|X|.

    alpha = 64 sqrt(log2|X| log(1/delta)) log(2|C| n log2|X|/beta)/(sqrt(n) epsilon); 16 with LECTURE_8, as stated. With
    delta = 0 the n cancels, and alpha = 32 log2|X| log(2|C| n log2|X|/beta)/epsilon grows with n: no bound at all.
    """

    setting: Task
    cells: float
    slack: Slack = PROVED

    def alpha_reached(self, *, n: float, epsilon: float) -> float:
        check_epsilon(epsilon, self.setting.delta)
        return self._demand_at_one(n) / (n * epsilon)

    def epsilon_needed(self, *, alpha: float, n: float) -> float:
        check(alpha=alpha)
        epsilon = self._demand_at_one(n) / (n * alpha)
        check_epsilon(epsilon, self.setting.delta)
        return epsilon

    def n_needed(self, *, alpha: float, epsilon: float) -> float:
        """By bisection, as n is in the log as well. At least 4: from there on alpha falls with n."""
        check(alpha=alpha)
        if self.setting.delta == 0:
            raise ValueError("delta is 0; with pure privacy the trivial net's bound grows with n, and no n is enough.")
        if self.alpha_reached(n=4, epsilon=epsilon) <= alpha:
            return 4.0
        return where_it_falls_to(lambda n: self.alpha_reached(n=n, epsilon=epsilon), alpha, start=4.0)

    def _demand_at_one(self, n: float) -> float:
        check(n=n, cells=self.cells)
        return offline(net_updates(n * math.log2(self.cells)), self.setting, slack=self.slack).demand(1.0)


def steps_factor(steps: float, delta: float) -> float:
    return steps if delta == 0 else math.sqrt(8 * steps * math.log(1 / delta))


def rounds_of(max_updates: MaxUpdates, alpha: float) -> float:
    rounds = max_updates(alpha)
    if not rounds > 0:
        raise ValueError(f"max_updates({alpha!r}) is {rounds!r}; it must be a positive number.")
    return max(1.0, rounds)


def where_it_falls_to(falling: Callable[[float], float], target: float, *, start: float) -> float:
    """The smallest x with falling(x) <= target, by doubling or halving from start and then bisecting the logarithm."""
    low = high = start
    while falling(high) > target:
        high *= 2
    while falling(low) <= target:
        low /= 2
    while low < (middle := math.sqrt(low) * math.sqrt(high)) < high:
        low, high = (low, middle) if falling(middle) <= target else (middle, high)
    return high


def check_epsilon(epsilon: float, delta: float) -> None:
    check(epsilon=epsilon, delta=delta)
    if delta > 0 and epsilon > (limit := 8 * math.log(1 / delta)):
        raise ValueError(f"epsilon is {epsilon:g}; composition with delta = {delta:g} is proved up to {limit:g}.")


def check(**given: float) -> None:
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
