"""How much privacy loss transcripts prove: a lower bound on epsilon that is too high once in 2 * 10^10 times.

An event is chosen on the first transcripts of both tables, and counted on all others. Its chances on the two tables are
bounded by Clopper & Pearson 1934; so if the mechanism is (epsilon, delta)-DP, epsilon is at least
ln((low(p) - delta) / high(p')), and whoever claims less is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

WRONG = 5e-11  # the chance that a bound is above the truth, of which all adversaries together stay below 1e-9
CHOOSING = 1e-3  # the same while an event is chosen: it need not be right, and must not fall for rare ones
LEARNED = 1 / 5  # of the transcripts: those that the event is chosen on


@dataclass(frozen=True)
class Transcript:
    """What an adversary saw, as it weighs it.

    label: what came out of choices and gates, whose law it learns from the first transcripts.
    likelihood: log of how much likelier the noisy numbers are on the second table, by the law that is claimed of them.
    """

    label: Hashable
    likelihood: float = 0.0


def lower(hits: int, tries: int, wrong: float) -> float:
    """The least chance that so many hits do not rule out."""
    return 0.0 if hits == 0 else float(beta.ppf(wrong, hits, tries - hits + 1))


def upper(hits: int, tries: int, wrong: float) -> float:
    return 1.0 if hits == tries else float(beta.isf(wrong, hits + 1, tries - hits))


def epsilon_of(hits: int, others: int, tries: int, delta: float, wrong: float) -> float:
    """The least epsilon with which one table has so many hits and its neighbour so many others; 0 where any will do."""
    high, low = upper(others, tries, wrong / 2), lower(hits, tries, wrong / 2) - delta
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def least_epsilon(first: Sequence[Transcript], second: Sequence[Transcript], delta: float, wrong: float) -> float:
    """A lower bound on the epsilon (at this delta) of whatever made these transcripts of two neighbouring tables."""
    assert len(first) == len(second)
    learned = int(len(first) * LEARNED)
    labels = [Counter(one.label for one in side[:learned]) for side in (first, second)]
    # Half a transcript more of each, so that what was seen once weighs little; what was never seen weighs nothing.
    weight = {k: math.log((labels[1][k] + 0.5) / (labels[0][k] + 0.5)) for k in labels[0] | labels[1]}
    views: list[Callable[[Transcript], float]] = [
        lambda one: one.likelihood,
        lambda one: weight.get(one.label, 0.0),
        lambda one: one.likelihood + weight.get(one.label, 0.0),
    ]
    best = (-1.0, 0.0, (np.empty(0), np.empty(0)))
    for view in views:
        scores = [np.array([view(one) for one in side]) for side in (first, second)]
        # Either table may be the one that the event points to: the scores of that one are high.
        for towards, away in ((scores[1], scores[0]), (-scores[0], -scores[1])):
            known = towards[:learned], away[:learned]
            for at in np.unique(np.quantile(np.concatenate(known), np.linspace(0.002, 0.998, 250))):
                found = epsilon_of(*_hits(at, *known), learned, delta, CHOOSING)
                if found > best[0]:
                    best = (found, at, (towards[learned:], away[learned:]))
    _, threshold, (towards, away) = best
    return epsilon_of(*_hits(threshold, towards, away), len(towards), delta, wrong)


def _hits(threshold: float, *sides: NDArray[np.float64]) -> Iterator[int]:
    return (int(np.count_nonzero(side >= threshold)) for side in sides)
