"""Database update algorithms (Roth, lecture 8: DUA): how public knowledge learns from one released answer.

Values here are fractions of n. A query's value on a distribution over X is its expected weight, a number in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.rules.median_net import MedianNet
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights


class Hypothesis(Protocol):
    """Public knowledge that can answer any query without the data."""

    def answer(self, query: Query) -> float:
        """The query's value as a fraction of n, in [0, 1]."""
        ...


@runtime_checkable
class StatisticHypothesis(Hypothesis, Protocol):
    """A hypothesis that answers statistics too. Its rule's `update` is then told their answers as well."""

    def answer_statistic(self, statistic: Statistic) -> float:
        """The statistic's value as a fraction of n, in [0, 1]."""
        ...


@runtime_checkable
class TableHypothesis(Hypothesis, Protocol):
    """A hypothesis that answers whole tables too."""

    @property
    def domain(self) -> Domain:
        """What it is about."""
        ...

    def answer_table(self, table: Marginal) -> NDArray[np.float64]:
        """The shares of n in all cells, in the order of the table's `queries`."""
        ...


H = TypeVar("H", bound=Hypothesis)


class UpdateRule(Protocol[H]):
    """A B(alpha)-database update algorithm (Roth, lecture 8, definition 2).

    If every update is made with a query on which hypothesis and data differ by at least alpha, and an answer within
    alpha of the data's, then there are at most `max_updates(alpha)` updates, whatever the data.
    """

    def initial(self) -> H:
        """The hypothesis before anything is known."""
        ...

    def update(self, hypothesis: H, query: Query, answer: float) -> H:
        """The next hypothesis. It may reuse the memory of the given one, which must not be used any more."""
        ...

    def max_updates(self, alpha: float) -> float:
        """B(alpha) of the seeds."""
        ...


@runtime_checkable
class TableRule(Protocol):
    """An update rule that can also learn a whole table at once; the others are told its cells one by one.

    Tables are asked of a `TableHypothesis` only.
    """

    def update_table(self, hypothesis: Any, names: Sequence[str], shares: NDArray[np.float64]) -> Any:
        """The next hypothesis. `shares` are those of all cells of these attributes, positive, and add up to 1."""
        ...


@dataclass(frozen=True)
class NamedRule:
    """How a rule is made from the domain, an alpha and n.

    for_every_alpha: one rule serves all of them, and is long to make.
    statistics: its hypotheses answer these too (`StatisticHypothesis`), which refusals of other rules say.
    """

    make: Callable[[Domain, float, int], UpdateRule[Any]]
    for_every_alpha: bool = False
    statistics: bool = False


# The rules that a user may name: `session.release(rule=...)`. One line each.
RULES = {
    "multiplicative_weights": NamedRule(lambda domain, a, _: MultiplicativeWeights(domain, a, tolerance=a / 2)),
    "textbook_weights": NamedRule(lambda domain, alpha, _: MultiplicativeWeights(domain, alpha, step="textbook")),
    "median": NamedRule(lambda domain, _, rows: MedianNet.usual(domain, rows), for_every_alpha=True, statistics=True),
}


def rule_of(rule: str | UpdateRule[Any], domain: Domain, rows: int) -> Callable[[float], UpdateRule[Any]]:
    """The rule of a name, or the one that is given, for updates on questions that are off by an alpha."""
    if not isinstance(rule, str):
        return lambda _: rule
    if rule not in RULES:
        raise InvalidQuery(f"rule is one of {', '.join(RULES)}, or an update rule, not {rule!r}.")
    row = RULES[rule]
    if row.for_every_alpha:
        made = row.make(domain, 1.0, rows)
        return lambda _: made
    return lru_cache(maxsize=None)(lambda alpha: row.make(domain, alpha, rows))
