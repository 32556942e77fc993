"""Questions as people write them, with names and values, not yet tied to a domain: conditions, and the statistics.

`bind` finds the attributes and values in a domain, and refuses what has no meaning there.

NULL follows SQL: a comparison with a missing value is neither true nor false, so `age < 30` and `NOT age < 30` both
leave out the rows whose age is missing. `IS NULL`, and the missing value's declared label, are ordinary conditions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.block import Labels
from tacit.model.domain import Domain
from tacit.model.factor import GRID, Factor
from tacit.model.query import Query, plain_product
from tacit.model.statistic import MAX_ARGUMENT_TEXT, Statistic, Unbound
from tacit.model.values import Listed, Value

Comparison = Literal["<", "<=", ">", ">="]


class Expression(ABC):
    """A condition on a row. Combine with &, | and ~; `bind` ties it to a domain."""

    def __and__(self, other: Expression) -> Expression:
        return All((self, other))

    def __or__(self, other: Expression) -> Expression:
        return Not(All((Not(self), Not(other))))

    def __invert__(self) -> Expression:
        return Not(self)

    def __bool__(self) -> bool:
        raise InvalidQuery("conditions are combined with &, | and ~; Python's and, or and not do not work on them.")

    def bind(self, domain: Domain) -> Query:
        """The query that counts the rows for which this is true."""
        try:
            return self.truth(domain, True)
        except RecursionError:
            raise InvalidQuery("the condition is nested too deeply.") from None

    @abstractmethod
    def truth(self, domain: Domain, wanted: bool) -> Query:
        """The rows for which this is true (wanted) or false; rows for which it is neither are in no case counted."""

    def factors(self, domain: Domain) -> tuple[Factor, ...]:
        """Weights whose product says where this is true, for a conjunction: that alone has to be canonical."""
        return plain_product(self.truth(domain, True))


@dataclass(frozen=True)
class All(Expression):
    """Every part holds; with no parts, everyone."""

    parts: tuple[Expression, ...]

    def truth(self, domain: Domain, wanted: bool) -> Query:
        if wanted:
            return Query.product((factor for part in self.parts for factor in part.factors(domain)), complement=False)
        return Query.any(part.truth(domain, False) for part in self.parts)


@dataclass(frozen=True)
class Not(Expression):
    """The part is false."""

    part: Expression

    def truth(self, domain: Domain, wanted: bool) -> Query:
        return self.part.truth(domain, not wanted)


@dataclass(frozen=True)
class OfOne(Expression):
    """A condition on one attribute: which of its values meet it."""

    name: str

    @abstractmethod
    def indices(self, attribute: Attribute, wanted: bool) -> Iterable[int]:
        """The values for which this is true (wanted) or false."""

    def truth(self, domain: Domain, wanted: bool) -> Query:
        return Query.among(domain, self.name, self.indices(domain[self.name], wanted))

    def factors(self, domain: Domain) -> tuple[Factor, ...]:
        name, attribute = domain.named(self.name)
        return (Factor.among(name, attribute.size, self.indices(attribute, True)),)


@dataclass(frozen=True)
class Among(OfOne):
    """The attribute has one of these values; None stands for the missing value."""

    values: tuple[Value | None, ...]

    def indices(self, attribute: Attribute, wanted: bool) -> Iterable[int]:
        listed = {attribute.find(self.name, value) for value in self.values if value is not None}
        if None in self.values and attribute.missing_index is not None:  # where none is declared, no row is missing
            listed.add(attribute.missing_index)
        if not wanted:  # a missing value is not equal to anything, nor different from it
            listed = set(range(attribute.size)) - listed - {attribute.missing_index}
        return listed


@dataclass(frozen=True)
class Compare(OfOne):
    """The attribute is below or above a value, which must be an edge of its bins.

    A row whose value is missing, or only known to lie outside the bins, is neither.
    """

    operator: Comparison
    value: Value

    def indices(self, attribute: Attribute, wanted: bool) -> Iterable[int]:
        if isinstance(attribute.values, Labels):  # which is never missing
            found = attribute.values.compared(self.name, self.operator, self.value)
            return found if wanted else set(range(attribute.size)) - set(found)
        if not attribute.ordered:
            raise _no_order(self.name, self.operator, self.value)
        cut = attribute.below(self.name, self.value, included=self.operator in ("<=", ">"))
        return range(cut) if self.operator.startswith("<") == wanted else range(cut, attribute.bins)


def _no_order(name: str, operator: Comparison, value: Value) -> InvalidQuery:
    return InvalidQuery(f"{name} has no order, so {name} {operator} {value!r} has no meaning.")


@dataclass(frozen=True, eq=False)
class Weigh(Expression):
    """Every row counts with a weight from 0 to 1 that depends on its values of a few attributes."""

    names: tuple[str, ...]
    weights: Any

    def truth(self, domain: Domain, wanted: bool) -> Query:
        query = Query.weighted(domain, self.names, self.weights)
        return query if wanted else ~query


def count(*conditions: Expression, **where: Any) -> Expression:
    """The rows for which all conditions hold: `count(sex="F", age=(20, 39), region=["north", "east"])`.

    A value asks for equality, a list for any of its values, a pair for a range (both ends included; for numeric
    attributes the upper end excluded), None for the missing value.
    """
    for condition in conditions:
        if not isinstance(condition, Expression):
            raise InvalidQuery(f"a condition is written like count(sex='F'), not {type(condition).__name__}.")
    return All((*conditions, *(_condition(name, value) for name, value in where.items())))


def weigh(*names: str, weights: Any) -> Expression:
    """Every row counts with the weight listed for its values: `weigh("age", weights=[0, 0.25, 1])`."""
    return Weigh(names, weights)


def _condition(name: str, value: Any) -> Expression:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InvalidQuery(f"{name}: a range is a pair (low, high); list several values in [ ].")
        return Between(name, _plain(value[0]), _plain(value[1]))
    if isinstance(value, list | set | frozenset | range | np.ndarray):
        return Among(name, tuple(_plain(v) for v in value))
    return Among(name, (_plain(value),))


@dataclass(frozen=True)
class Between(OfOne):
    """A range of whole bins, from `low` on. `upper` says whether `high` itself is in it.

    By default it is; for numeric attributes it is not, as their bins are half-open.
    """

    low: Value
    high: Value
    upper: Comparison | None = None

    def indices(self, attribute: Attribute, wanted: bool) -> Iterable[int]:
        values, bins = attribute.values, attribute.bins
        upper: Comparison = self.upper or ("<" if attribute.kind == "numeric" else "<=")
        if isinstance(values, Labels):
            ends = (values.compared(self.name, *end) for end in ((">=", self.low), (upper, self.high)))
            inside = set.intersection(*map(set, ends))
            return inside if wanted else set(range(bins)) - inside
        if isinstance(values, Listed):
            raise _no_order(self.name, ">=", self.low)
        low, high = attribute.point(self.name, self.low), attribute.point(self.name, self.high)
        if low > high:  # whoever swaps the ends hears so, before any end cuts a bin
            raise InvalidQuery(
                f"a range of {self.name} goes from the lower end to the higher, not from {values.show(low)} to "
                f"{values.show(high)}."
            )
        first, end = attribute.cut(self.name, low), attribute.cut(self.name, high, included=upper == "<=")
        if self.upper is None and first >= end:
            raise InvalidQuery(
                f"{self.name}=({self.low!r}, {self.high!r}) is a range of no values; it is low up to high, high itself "
                "left out."
            )
        return range(first, end) if wanted else [*range(first), *range(end, bins)]


def _plain(value: Any) -> Any:
    """A Python value for a numpy scalar; anything that is no value at all is refused here rather than deep inside."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, Value):
        raise InvalidQuery(
            f"a condition is a value, a list of values or a pair (low, high), not {type(value).__name__}."
        )
    return value


def stump(feature: str, *, predicts: str, value: Value | None = None) -> Unbound:
    """How many rows the best threshold on an ordered attribute misclassifies: `stump("age", predicts="ill")`.

    predicts: the attribute that is guessed; if it has more than two values, `value` against all others.
    The share of errors is the answer / n. Rows whose feature is other or missing get the best guess for each of these.
    """

    def make(domain: Domain) -> Statistic:
        labels = domain[predicts]
        if not domain[feature].ordered:
            raise InvalidQuery(f"{feature} has no order, so it has no thresholds: the ordered attribute comes first.")
        if value is None and labels.size != 2:
            raise InvalidQuery(
                f"{predicts} has {labels.size} values; give the one that is told from the others as value."
            )
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
        if types.size**2 > MAX_ARGUMENT_TEXT:
            raise InvalidQuery(f"rows are matched on an attribute of at most {math.isqrt(MAX_ARGUMENT_TEXT)} values.")
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
