"""What a promise costs: the least epsilon for answers within alpha but for a chance of beta, and how many there can be.

By the law of the noise where answers are noise of a known law, by the gate's own promise where there is one, and by
trying where there is neither. Errors in rows. For benchmarks and their tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

import tacit
from tacit.errors import TacitError
from tacit.exact.bounds import rho_from
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.release.epsilon import epsilon_from
from tacit.release.online import Terms
from tacit.trusted.loss import total

ALPHA, BETA, DELTA = 0.05, 0.001, 1e-9
Miss = Callable[[float], float]  # from an amount of budget to the chance that any answer misses


def laplace_epsilon(questions: int, within: float, beta: float) -> float:
    """Fresh discrete Laplace noise of scale k/epsilon, pure composition: all k are within with 1 - beta. Exact."""
    return least(lambda epsilon: _any_of(_laplace_miss(questions / epsilon, within), questions), beta)


def gaussian_epsilon(questions: int, within: float, beta: float, delta: float = DELTA) -> float:
    """Fresh Gaussian noise of variance k/(2 rho), zCDP: all k are within with 1 - beta."""
    rho = least(lambda rho: _any_of(_normal_miss(within, questions / (2 * rho)), questions), beta)
    return epsilon_from(rho, delta)


def laplace_questions(epsilon: float, within: float, beta: float) -> int:
    """How many questions the budget answers with that promise."""
    return _most(lambda k: _any_of(_laplace_miss(k / epsilon, within), k) <= beta)


def gaussian_questions(epsilon: float, within: float, beta: float, delta: float = DELTA) -> int:
    rho = rho_from(epsilon, delta)
    return _most(lambda k: _any_of(_normal_miss(within, k / (2 * rho)), k) <= beta)


def sums_epsilon(variances: NDArray[np.float64], within: float, beta: float, delta: float = DELTA) -> float:
    """Sums of noisy cells that share their noise: a union. The variances are for rho = 1; sums are taken for normal."""
    rho = least(lambda rho: float(_normal_miss(within, variances / rho).sum()), beta)
    return epsilon_from(rho, delta)


def sums_questions(
    variances: NDArray[np.float64], epsilon: float, within: float, beta: float, delta: float = DELTA
) -> int:
    """How many of these questions, in their order, are within together: by the same union."""
    misses = np.cumsum(_normal_miss(within, variances / rho_from(epsilon, delta)))
    return int(np.searchsorted(misses, beta, side="right"))


def gate_epsilon(hits: int, questions: int, within: float, beta: float, delta: float = DELTA) -> float | None:
    """An online construction from a uniform start: its gate's promise, while hard answers are left."""

    def shown(epsilon: float) -> float:
        terms = Terms.of(total(Budget(epsilon=epsilon, delta=delta)), hits=hits, confidence=1 - beta)
        return terms.shown(terms.threshold(questions))

    return _least_promised(shown, within)


def planned_epsilon(
    domain: Domain, rows: int, questions: int, within: float, beta: float, delta: float = DELTA
) -> float | None:
    """What `tacit.plan` chooses: its promise, while hard answers are left if it has any."""

    def promised(epsilon: float) -> float:
        made = tacit.plan(
            rows=rows,
            domain=domain,
            budget=Budget(epsilon=epsilon, delta=delta),
            questions=questions,
            confidence=1 - beta,
        )
        return math.inf if made.expected.promised is None else made.expected.promised * rows

    return _least_promised(promised, within)


def tried_epsilon(largest: Callable[[float], float], within: float, *, low: float, high: float, steps: int) -> float:
    """The least epsilon of a bisection at which a run's largest error was within; above `high` it is infinite."""
    if largest(high) > within:
        return math.inf
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if largest(middle) <= within else (middle, high)
    return high


def least(miss: Miss, beta: float) -> float:
    """The least amount, to one part in 10^6, at which a falling chance is at most beta."""
    low, high = 1e-9, 1e9
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if miss(middle) <= beta else (middle, high)
    return high


def _least_promised(promise: Callable[[float], float], within: float) -> float | None:
    def holds(epsilon: float) -> bool:
        try:
            return promise(epsilon) <= within
        except TacitError:  # too little for anything
            return False

    low, high = 1e-3, 900.0
    if not holds(high):
        return None
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _laplace_miss(scale: float, within: float) -> float:
    steps = math.floor(within) + 1
    return 2 * math.exp(-steps / scale) / (1 + math.exp(-1 / scale))


def _normal_miss(within: float, variance: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.asarray(erfc(within / np.sqrt(2 * np.asarray(variance))))


def _any_of(miss: NDArray[np.float64] | float, questions: float) -> float:
    return -math.expm1(questions * math.log1p(-min(float(miss), 1 - 1e-15)))


def _most(holds: Callable[[int], bool]) -> int:
    if not holds(1):
        return 0
    low, high = 1, 2
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
