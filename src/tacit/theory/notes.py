"""Lecture notes on nonlinear queries (author unknown): lecture 8's construction for any query of sensitivity 1/n.

Their proof gives the constants that `lecture_8.PROVED` has. What is theirs alone is the trivial net: the set of all
databases of n rows, which is a net for whatever is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.theory.lecture_8 import (
    PROVED,
    Slack,
    Task,
    check,
    check_epsilon,
    net_updates,
    offline,
    where_it_falls_to,
)


@dataclass(frozen=True, slots=True)
class TrivialNet:
    """The offline construction for any 1/n-sensitive queries, from all databases of n rows: B = n log2|X| (the notes).

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
