"""Multiplicative weights: the update rule whose hypothesis is a distribution over X (Roth, lecture 12).

Write D for the data as a distribution, H for the hypothesis, q(D) and q(H) for a query's values. Both steps replace H
by H'(x) proportional to H(x) exp(tilt * q(x)) for some tilt. What a tilt is worth is measured by the relative entropy
KL(D || H): it starts at most at ln|X|, never falls below 0, and one tilt lowers it by exactly

    drop(tilt) = tilt * (q(D) - q(H)) - ln E_H exp(tilt * (q - q(H))),

which is at least tilt * (q(D) - q(H)) - tilt²/8 (Hoeffding). If every update lowers it by at least some d, there are at
most ln|X| / d updates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import MAX_TILT, Array, Dense, listed

_EDGE = 1e-6  # answers are kept this far from 0 and 1, so that an answer of 0 rules out no cell
_ROUNDS = 200  # of Newton's iteration, each at least as good as a bisection
_CLOSE = 1e-13  # where it stops


class MultiplicativeWeights:
    """An update rule over `Dense` hypotheses, made for updates on queries where H and D differ by at least `alpha`.

    `step="textbook"` (Hardt & Rothblum 2010, Gupta, Roth & Ullman 2011): eta = alpha/2; where the answer is below the
    hypothesis, q is penalised by exp(-eta * q), where it is above, 1 - q is. An answer within alpha of q(D), where q(H)
    is at least alpha away, lies on the same side of q(H) as q(D), so the tilt of size eta has the right sign. Since
    exp(-z) <= 1 - z + z² for z >= 0, drop >= eta * alpha - eta² = alpha²/4, so B(alpha) = 4 ln|X| / alpha². (Hoeffding
    even gives 15/32 alpha².)

    `step="exact"`: the tilt for which the hypothesis agrees with the answer a, that is, the information projection of H
    on {q = a}. If a lies between q(H) and q(D), then a tilt of at least 4 |a - q(H)| is needed (a tilt moves q(H) at
    rate Var q <= 1/4) and drop >= 2 (e² - (e - x)²) for e = |q(D) - q(H)| and x = |a - q(H)|: 2 alpha² at least for a
    true answer. If a lies beyond q(D), nothing can be said: q(D) = 0.05 answered with 0 rules out cells that D has, and
    the relative entropy rises without limit. So the step is guarded by what is known for sure: answers are within
    `tolerance` of q(D), hence e >= e0 = max(alpha, x - tolerance), and drop >= |tilt| e0 - ln E_H exp(...), a number
    that H alone determines. The projection is made if that number is at least alpha²/2. Otherwise the target is
    q(H) ± e0, which is not beyond q(D), so that drop >= 2 e0² >= 2 alpha². Hence B(alpha) = 2 ln|X| / alpha², for any
    answers within `tolerance` of the data's. Answers nearer to q(H) than alpha - tolerance break that promise; they are
    projected on, without a bound. With tolerance <= alpha/2 the guard never goes beyond the answer, and seldom acts.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> rule = MultiplicativeWeights(domain, alpha=0.1, tolerance=0.01)
    >>> red = Query.among(domain, "hair", [0])
    >>> round(rule.update(rule.initial(), red, 0.05).answer(red), 6)
    0.05
    """

    def __init__(
        self,
        domain: Domain,
        alpha: float,
        *,
        step: Literal["exact", "textbook"] = "exact",
        tolerance: float | None = None,
    ) -> None:
        """`tolerance` is how far answers may be from the data's; alpha by default, as in the lectures."""
        if not 0 < alpha <= 1:
            raise ValueError(f"alpha is a fraction above 0 and at most 1, not {alpha}.")
        if tolerance is not None and not 0 <= tolerance <= alpha:
            raise ValueError(f"the tolerance is between 0 and alpha = {alpha}, not {tolerance}.")
        if step not in ("exact", "textbook"):
            raise ValueError(f"the step is 'exact' or 'textbook', not {step!r}.")
        self.domain, self.alpha, self.step = domain, alpha, step
        self.tolerance = alpha if tolerance is None else tolerance
        self._edge = min(_EDGE, alpha / 100)

    def initial(self) -> Dense:
        """The uniform distribution; on a graphics card, where there is one and X is large."""
        return listed(self.domain)

    def update(self, hypothesis: Dense, query: Query, answer: float) -> Dense:
        """The same object, tilted towards the answer."""
        core = query.core
        answer = min(1.0, max(0.0, 1 - answer if query.complement else answer))
        values, chances = hypothesis.profile(core)
        guess = float(values @ chances)
        if answer != guess:
            choose = self._textbook_tilt if self.step == "textbook" else self._exact_tilt
            hypothesis.scale(core, choose(values, chances, guess, answer))
        return hypothesis

    def update_table(self, hypothesis: Dense, names: Sequence[str], shares: Array) -> Dense:
        """The same object, with these shares in every cell of a table: the information projection on that table."""
        now = np.maximum(hypothesis.marginal(names).ravel(), 1e-300)
        tilts = np.log(shares) - np.log(now)
        span = float(tilts.max() - tilts.min())
        # exp(span * weight) is the wanted factor, up to one that normalising takes away.
        times = math.ceil(span / MAX_TILT)
        shape = hypothesis.domain.shape_of(names)
        for _ in range(times):
            weights = ((tilts - tilts.min()) / span).reshape(shape)
            hypothesis.scale(Query.weighted(hypothesis.domain, names, weights), span / times)
        return hypothesis

    def refit(self, hypothesis: Dense, past: Sequence[tuple[Query, float, float]], *, sweeps: int = 1) -> Dense:
        """The same object, after fitting past answers (query, answer, tolerance) again that later updates spoilt.

        Each answer that is violated by more than its tolerance is projected on the nearest value that is not, in turn;
        at most `sweeps` times through all of them, or until none is violated. Where the data's value is within the
        tolerance, that value lies between the hypothesis' and the data's, so no projection raises KL(D || H):
        `max_updates` holds with or without it.
        """
        for _ in range(sweeps):
            guesses = hypothesis.answer_many([query for query, _, _ in past])
            spoilt = [one for one, guess in zip(past, guesses, strict=True) if _nearest(guess, *one[1:]) != guess]
            if not spoilt:
                break
            for query, answer, tolerance in spoilt:
                core = query.core
                values, chances = hypothesis.profile(core)
                guess = float(values @ chances)
                target = _nearest(guess, 1 - answer if query.complement else answer, tolerance)
                if target != guess:
                    hypothesis.scale(core, self._tilt_to(values, chances, target))
        return hypothesis

    def max_updates(self, alpha: float) -> float:
        """B(alpha) of the lectures, for answers within `tolerance`; infinite for errors too small for the step."""
        start = math.log(self.domain.size)
        if self.step == "exact":
            return 2 * start / self.alpha**2 if alpha >= self.alpha else math.inf
        eta = self.alpha / 2
        return start / (eta * (alpha - eta)) if alpha > eta else math.inf

    def _textbook_tilt(self, values: Array, chances: Array, guess: float, answer: float) -> float:
        return math.copysign(self.alpha / 2, answer - guess)

    def _exact_tilt(self, values: Array, chances: Array, guess: float, answer: float) -> float:
        moved = abs(answer - guess)
        tilt = self._tilt_to(values, chances, answer)
        certain = max(self.alpha, moved - self.tolerance)  # how far the data's value is from the guess, at least
        drop = abs(tilt) * certain - math.log(float(chances @ np.exp(tilt * (values - guess))))
        if drop >= self.alpha**2 / 2 or moved < self.alpha - self.tolerance:
            return tilt
        return self._tilt_to(values, chances, guess + math.copysign(certain, answer - guess))

    def _tilt_to(self, values: Array, chances: Array, target: float) -> float:
        """The tilt after which the expected value is the target, or as near to it as the edges allow."""
        limit = MAX_TILT / float(values.max())
        values, chances = values[chances > 0], chances[chances > 0]
        low, high = float(values.min()), float(values.max())
        edge = self._edge * (high - low)
        guess = float(values @ chances)
        target = min(target, max(guess, high - edge)) if target > guess else max(target, min(guess, low + edge))
        if target == guess:
            return 0.0
        if len(values) == 2 and (low, high) == (0, 1):
            inside, outside = float(chances[values == 1][0]), float(chances[values == 0][0])
            return min(limit, max(-limit, math.log(target / (1 - target)) - math.log(inside / outside)))
        return _newton(values, chances, target, limit)


def _newton(values: Array, chances: Array, target: float, limit: float) -> float:
    """The tilt in [-limit, limit] at which the tilted mean, which increases in it, meets the target."""
    below, above, tilt = -limit, limit, 0.0
    for _ in range(_ROUNDS):
        exponents = tilt * values
        tilted = chances * np.exp(exponents - exponents.max())
        tilted /= tilted.sum()
        mean = float(tilted @ values)
        if abs(mean - target) <= _CLOSE:
            break
        below, above = (tilt, above) if mean < target else (below, tilt)
        variance = float(tilted @ (values - mean) ** 2)
        step = tilt + (target - mean) / variance if variance > 0 else math.nan
        tilt = step if below < step < above else (below + above) / 2
    return tilt


def _nearest(guess: float, answer: float, tolerance: float) -> float:
    """The value nearest to the guess among those within the tolerance of the answer."""
    return min(answer + tolerance, max(answer - tolerance, guess))
