"""Nonlinear questions as people write them: the library's statistics, with names and values, not yet tied to a domain.

Each gives an `Unbound` statistic. Its `bind` finds the attributes and values in a domain, and refuses what has no
meaning there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.query import GRID
from tacit.model.statistic import MAX_TEXT, Statistic, Unbound
from tacit.model.values import Value


def stump(feature: str, *, predicts: str, value: Value | None = None) -> Unbound:
    """How many rows the best threshold on an ordered attribute misclassifies: `stump("age", predicts="ill")`.

    predicts: the attribute that is guessed; if it has more than two values, `value` against all others.
    The share of errors is the answer / n. Rows whose feature is other or missing get the best guess for each of these.
    """

    def make(domain: Domain) -> Statistic:
        labels = domain[predicts]
        if value is None and labels.size != 2:
            raise InvalidQuery(f"{predicts} has {labels.size} values; say which one is told from the others: value=….")
        label = 1 if value is None else labels.find(predicts, value)
        label = 1 if labels.size == 2 else label  # either tells the same rows apart
        return Statistic("stump", _scope(domain, feature, predicts), (domain[feature].bins, label))

    return Unbound("stump", make)


def largest_mean(of: str, *, by: str | Sequence[str], smallest: float) -> Unbound:
    """The largest mean of an attribute over groups: `largest_mean("pay", by="region", smallest=0.05)`.

    Values are the bins' middles, scaled so that the declared range is [0, 1]. `smallest` is the share of all rows from
    which on a group counts fully; with c = ceil(smallest · n), a group of fewer than c rows is filled up with zeros.
    The answer is c times the largest mean: divide it by c. Rows whose value is other or missing are left out.
    """
    groups = [by] if isinstance(by, str) else list(by) if isinstance(by, list | tuple) else []

    def make(domain: Domain) -> Statistic:
        share = _fraction(smallest, "smallest")
        names = sorted(domain.resolve(name) for name in groups)
        if not names:
            raise InvalidQuery("a largest mean is over groups: by='region'.")
        values = _middles(domain.resolve(of), domain[of])
        scope = _scope(domain, of, *names)
        return Statistic("largest_mean", scope, (share.numerator, share.denominator, *values))

    return Unbound("largest_mean", make)


def matching(
    side: str,
    left: Value | Sequence[Value],
    right: Value | Sequence[Value],
    *,
    on: str,
    compatible: Mapping[Any, Sequence[Value]] | None = None,
) -> Unbound:
    """The pairs in a largest matching: `matching("role", "donor", "patient", on="blood", compatible={"O": ["A"]})`.

    side: the attribute that says which side a row is on; `left` and `right` are one or several of its values.
    on: the attribute that decides what fits; `compatible` lists for each left value the right values that do. Without
        it equal values fit, other and missing ones none. The answer counts pairs, so that it is at most n/2.
    """

    def make(domain: Domain) -> Statistic:
        sides, types = domain[side], domain[on]
        marks = []
        for chosen in (left, right):
            listed: list[Any] = list(chosen) if isinstance(chosen, list | tuple | set | frozenset) else [chosen]
            marks.append(_marked(sides.size, [sides.find(side, value) for value in listed]))
        if types.size**2 > MAX_TEXT:
            raise InvalidQuery(f"rows are matched on an attribute of at most {math.isqrt(MAX_TEXT)} values.")
        if compatible is None:
            pairs = [(i, i) for i in range(types.bins)]
        else:
            pairs = [(types.find(on, a), types.find(on, b)) for a, b in _pairs(compatible)]
        relation = _marked(types.size**2, [i * types.size + j for i, j in pairs])
        return Statistic("matching", _scope(domain, side, on), (*marks, relation))

    return Unbound("matching", make)


def quantile_distance(
    attribute: str, quantile: float, *, low: Value | None = None, high: Value | None = None
) -> Unbound:
    """How many rows must be replaced for a quantile to lie in a range: `quantile_distance("age", 0.5, high=39)`.

    The range is of whole bins, both ends included; for numeric attributes the upper end excluded, as their bins are. An
    answer of 0 says that the quantile is there. Rows whose value is other or missing come after all others.
    """

    def make(domain: Domain) -> Statistic:
        name, axis = domain.resolve(attribute), domain[attribute]
        if not axis.ordered:
            raise InvalidQuery(f"{name} has no order, so it has no quantiles.")
        if low is None and high is None:
            raise InvalidQuery("a quantile is compared with a range: give low, high or both.")
        first = 0 if low is None else axis.below(name, low)
        end = axis.bins if high is None else axis.below(name, high, included=axis.kind != "numeric")
        share = _fraction(quantile, "the quantile")
        return Statistic("quantile_distance", (name,), (share.numerator, share.denominator, first, end))

    return Unbound("quantile_distance", make)


def _scope(domain: Domain, *names: str) -> tuple[str, ...]:
    found = tuple(domain.resolve(name) for name in names)
    if len(set(found)) < len(found):
        raise InvalidQuery("a statistic names each of its attributes once.")
    return found


def _fraction(given: float, what: str) -> Fraction:
    """A share as the exact decimal that was written, or the nearest fraction of at most 2^20 parts."""
    if isinstance(given, bool) or not isinstance(given, int | float | Fraction) or not 0 < given <= 1:
        raise InvalidQuery(f"{what} is a fraction above 0 and at most 1, not {given!r}.")
    found = Fraction(str(given)).limit_denominator(GRID)
    if not found:
        raise InvalidQuery(f"{what} is at least 1/{GRID:,}.")
    return found


def _middles(name: str, attribute: Attribute) -> tuple[int, ...]:
    """Where the middle of each bin lies in the declared range, in grid steps: exact fractions, rounded once."""
    if attribute.kind == "boolean":
        return 0, GRID
    if not attribute.ordered:
        raise InvalidQuery(f"{name} has no order, so it has no mean.")
    last = 1 if attribute.kind != "numeric" else 0  # the bin of 10 and 11 ends at 12; its middle is 10.5
    low, high = Fraction(attribute.edge(0)), Fraction(attribute.edge(attribute.bins)) - last
    if low == high:
        raise InvalidQuery(f"{name} has one value only, so its mean says nothing.")
    middles = (
        (Fraction(attribute.edge(i)) + Fraction(attribute.edge(i + 1)) - last) / 2 for i in range(attribute.bins)
    )
    return tuple(round((middle - low) / (high - low) * GRID) for middle in middles)


def _pairs(compatible: Mapping[Any, Sequence[Value]]) -> list[tuple[Any, Any]]:
    if not isinstance(compatible, Mapping) or not all(isinstance(b, list | tuple | set) for b in compatible.values()):
        raise InvalidQuery("compatible lists for each left value the right values that fit: {'O': ['O', 'A']}.")
    return [(a, b) for a, listed in compatible.items() for b in listed]


def _marked(size: int, chosen: Sequence[int]) -> str:
    marks = np.zeros(size, dtype=np.uint8)
    marks[list(chosen)] = 1
    return "".join(map(str, marks.tolist()))
