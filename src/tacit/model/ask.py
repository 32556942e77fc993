"""What is asked, whichever way: one record that SQL, Python, JSON and the page's form are read into. Public words.

Every kind of question is a frozen class, bound to the domain when it is made: names are resolved, conditions are
queries, and what can be refused without data is refused. A session answers and prices these records and nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from fractions import Fraction as Exact
from itertools import pairwise
from typing import Literal

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.aggregate import (
    EVERYONE,
    RANGE_SHARE,
    Aggregate,
    Count,
    Fraction,
    Mean,
    Sum,
    Variance,
    check_share,
    mean,
)
from tacit.model.attribute import Attribute
from tacit.model.describe import describe
from tacit.model.domain import Domain
from tacit.model.expression import count
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.values import Days, Integers, Listed, Reals, Value
from tacit.model.workload import Marginal, marginal

__all__ = [
    "EVERYONE", "RANGE_SHARE", "Aggregate", "Ask", "Cdf", "Column", "Count", "Crosstab", "Fraction", "Group",
    "Histogram", "Mean", "Order", "Quantile", "Range", "Select", "Stat", "Sum", "Variance", "mean",
]  # fmt: skip

_WIDTHS_NAMED = 5  # widths that a refusal suggests


@dataclass(frozen=True)
class Stat:
    """A statistic: one number that is no sum over rows, with a proved sensitivity."""

    statistic: Statistic

    def words(self, domain: Domain) -> str:
        return describe(self.statistic, domain)


@dataclass(frozen=True)
class Crosstab:
    """The counts of all combinations of some attributes' values, among the rows of a condition."""

    domain: InitVar[Domain]
    names: tuple[str, ...]
    where: Query = EVERYONE
    table: Marginal = field(init=False, compare=False, repr=False)

    def __post_init__(self, domain: Domain) -> None:
        object.__setattr__(self, "names", tuple(domain.resolve(name) for name in self.names))
        object.__setattr__(self, "table", marginal(domain, *self.names, where=self.where))

    def words(self, domain: Domain) -> str:
        return describe(self.table, domain)


@dataclass(frozen=True)
class Quantile:
    """The bin of an ordered attribute that holds a quantile, 0.5 for the median, among the rows of a condition.

    Among all rows it is bought like `Cdf`.
    """

    domain: InitVar[Domain]
    name: str
    q: float
    where: Query = EVERYONE
    share: float | None = None
    from_ranges: bool = field(init=False)

    def __post_init__(self, domain: Domain) -> None:
        object.__setattr__(self, "from_ranges", self.where.is_everyone)
        if isinstance(self.q, bool) or not isinstance(self.q, int | float) or not 0 < self.q < 1:
            raise InvalidQuery(f"a quantile is a share above 0 and below 1, not {self.q!r}.")
        object.__setattr__(self, "name", domain.resolve(self.name))
        _check_share(self.share)
        if self.where.unit > 1:
            raise InvalidQuery("rows are chosen by conditions, not by weights.")
        if not self.from_ranges and not domain[self.name].ordered:
            raise InvalidQuery(f"{self.name} has no order, so it has no quantiles.")
        _check_ordered(domain, self.name)
        marginal(domain, self.name, where=self.where)  # refuses a condition that no row meets

    def words(self, domain: Domain) -> str:
        among = "" if self.where.is_everyone else f" where {describe(self.where, domain)}"
        return f"the {100 * self.q:.10g}% quantile of {self.name}{among}"


@dataclass(frozen=True)
class Cdf:
    """The cumulative counts of an ordered attribute, from what is bought already.

    Where nothing tells them, or a `share` of the budget is named, they are read off a release of all its ranges. With a
    `strategy` they are read off the release of that name, for the usual share if none is named.
    """

    domain: InitVar[Domain]
    name: str
    share: float | None = None
    strategy: str | None = None

    def __post_init__(self, domain: Domain) -> None:
        object.__setattr__(self, "name", _check_ordered(domain, self.name))
        _check_share(self.share)
        if self.strategy is not None and self.share is None:
            object.__setattr__(self, "share", RANGE_SHARE)

    def words(self, domain: Domain) -> str:
        return f"cumulative counts of {self.name}"


@dataclass(frozen=True)
class Histogram:
    """The counts of an ordered attribute's bins, or of wider ones; they add up. Bought like `Cdf`."""

    domain: InitVar[Domain]
    name: str
    width: float | None = None
    share: float | None = None
    cuts: tuple[int, ...] = field(init=False)

    def __post_init__(self, domain: Domain) -> None:
        object.__setattr__(self, "name", _check_ordered(domain, self.name))
        _check_share(self.share)
        attribute = domain[self.name]
        every = tuple(range(attribute.bins + 1))
        object.__setattr__(self, "cuts", every if self.width is None else _cuts(attribute, self.name, self.width))

    def words(self, domain: Domain) -> str:
        return f"rows by {self.name}"


@dataclass(frozen=True)
class Range:
    """How many rows lie in neighbouring bins of one ordered attribute, or of each of two. Bought like `Cdf`.

    A side that is everything is none, so what is bought goes by the query's scope and not by the words.
    """

    domain: InitVar[Domain]
    query: Query
    share: float | None = None
    sides: tuple[tuple[int, int], ...] = field(init=False)  # the first and the last bin in each attribute

    def __post_init__(self, domain: Domain) -> None:
        _check_share(self.share)
        if self.query.is_constant:
            everyone = self.query.is_everyone
            what = "all there is, so its count follows from the number of rows" if everyone else "empty"
            raise InvalidQuery(f"the range is {what}.")
        sides = tuple(_side(self.query, _check_ordered(domain, name), domain[name]) for name in self.query.scope)
        if len(sides) > 2:
            raise InvalidQuery("a range is about one ordered attribute, or two.")
        object.__setattr__(self, "sides", sides)

    @classmethod
    def between(cls, domain: Domain, ends: Mapping[str, tuple[Value, Value]], share: float | None = None) -> Range:
        """The range between two ends of whole bins for each of one or two attributes."""
        if not isinstance(ends, Mapping) or not 1 <= len(ends) <= 2 or not all(isinstance(n, str) for n in ends):
            raise InvalidQuery('a rectangle has two ends for each of one or two attributes, like {"age": (20, 39)}.')
        return cls(domain, count(**ends).bind(domain), share)

    def words(self, domain: Domain) -> str:
        return describe(self.query, domain)


@dataclass(frozen=True)
class Group:
    """An attribute to group by, in its declared bins or, with a width, in wider ones that start at its multiples."""

    name: str
    title: str
    width: float | None = None

    def parts(self, domain: Domain) -> list[range]:
        """The indices of the attribute's values that each group takes together; other and missing stay alone."""
        attribute = domain[self.name]
        if self.width is None:
            return [range(i, i + 1) for i in range(attribute.size)]
        cuts = coarse_cuts(attribute, self.width)
        if cuts is None:
            fit = fitting_widths(attribute)
            which = f"the widths that fit are {', '.join(f'{w:g}' for w in fit)}" if fit else "no width fits"
            raise InvalidQuery(
                f"{self.name} cannot be grouped by {self.width:g}: bins that start at its multiples would cut the "
                f"declared ones; {which}."
            )
        ends = [*cuts[1:], attribute.bins]
        return [range(a, b) for a, b in zip(cuts, ends, strict=True)] + [
            range(i, i + 1) for i in range(attribute.bins, attribute.size)
        ]

    def labels(self, domain: Domain) -> tuple[str, ...]:
        attribute = domain[self.name]
        return tuple(
            attribute.label(part.start)
            if len(part) == 1 or isinstance(attribute.values, Listed)
            else attribute.values.label(attribute.edge(part.start), attribute.edge(part.stop))
            for part in self.parts(domain)
        )


@dataclass(frozen=True)
class Order:
    """Sort by one group or one value of the released table."""

    by: Literal["group", "value"]
    index: int
    descending: bool


@dataclass(frozen=True)
class Column:
    """One value of a statement: what it is, its title, and a factor (100 for a percentage)."""

    value: Aggregate | Quantile
    title: str
    scale: float = 1.0
    named: bool = False  # the title was given with AS


@dataclass(frozen=True)
class Select:
    """A statement with groups, several values, an order or a limit. With no columns it lists the declared values."""

    domain: InitVar[Domain]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    notes: tuple[str, ...] = ()
    crosstab: Crosstab | None = field(init=False, compare=False, repr=False)  # what it is, if it is only a table

    def __post_init__(self, domain: Domain) -> None:
        alone = len(self.columns) == 1 and not self.groups
        for column in self.columns:
            if isinstance(column.value, Quantile) and not alone:
                raise InvalidQuery("a quantile is asked by itself, without GROUP BY; choose a group with WHERE.")
            if self.groups and not isinstance(column.value, Quantile) and not column.value.formula.parts:
                raise InvalidQuery(column.value.formula.constant)
        object.__setattr__(self, "crosstab", self._crosstab(domain))

    def _crosstab(self, domain: Domain) -> Crosstab | None:
        plain = len(self.columns) == 1 and isinstance(self.columns[0].value, Count) and not self.columns[0].named
        declared = all(group.title == group.name and group.width is None for group in self.groups)
        if not plain or not self.groups or not declared or self.order or self.offset or self.limit is not None:
            return None
        return Crosstab(domain, tuple(group.name for group in self.groups), self.columns[0].value.where)

    def words(self, domain: Domain) -> str:
        return "; ".join([self.summary(domain), *self.notes])

    def summary(self, domain: Domain) -> str:
        """The statement in words, without the notes on how it was read."""
        by = ", ".join(g.name if g.width is None else f"{g.name} by {g.width:g}" for g in self.groups)
        counts = len(self.columns) == 1 and isinstance(self.columns[0].value, Count)
        if not self.columns:
            text = f"the declared values of {by}"
        elif counts and self.groups:
            names = tuple(group.name for group in self.groups)
            text = describe(marginal(domain, *names, where=self.columns[0].value.where), domain)
            if any(group.width is not None for group in self.groups):
                text = text.replace(", ".join(sorted(names)), by)
        else:
            text = "; ".join(column.value.words(domain) for column in self.columns) + (f", by {by}" if by else "")
        for order in self.order:
            title = self.groups[order.index].title if order.by == "group" else self.columns[order.index].title
            text += f", by {title} {'downwards' if order.descending else 'upwards'}"
        if self.limit is not None or self.offset:
            first = self.offset + 1
            text += f", rows from {first}" if self.limit is None else f", rows {first} to {self.offset + self.limit}"
        return text


Ask = Aggregate | Stat | Crosstab | Quantile | Cdf | Histogram | Range | Select


def _check_share(share: float | None) -> None:
    if share is not None:
        check_share(share)


def _check_ordered(domain: Domain, name: str) -> str:
    """The attribute's declared name; refuses one whose values have no order, or only one bin."""
    name, attribute = domain.resolve(name), domain[name]
    if not attribute.ordered:
        raise InvalidQuery(f"{name} has no order, so it has no ranges.")
    return name


def _side(query: Query, name: str, attribute: Attribute) -> tuple[int, int]:
    """The first and the last bin that a condition selects, which must be neighbours."""
    factors = [factor for factor in query.factors if factor.scope == (name,)]
    if len(factors) != 1 or factors[0].unit > 1 or (query.complement and len(query.factors) > 1):
        raise InvalidQuery(f"a range of {name} selects whole bins between two ends.")
    # A range of more than half of the values is kept as the complement of the others.
    chosen = np.flatnonzero(1 - factors[0].weights.astype(np.int8) if query.complement else factors[0].weights)
    if chosen[-1] - chosen[0] + 1 != len(chosen) or chosen[-1] >= attribute.bins:
        raise InvalidQuery(f"a range of {name} selects whole bins between two ends.")
    return int(chosen[0]), int(chosen[-1])


def _cuts(attribute: Attribute, name: str, width: float) -> tuple[int, ...]:
    """The bin edges at every multiple of `width` from the first edge on, and the last one."""
    if isinstance(attribute.values, Days):
        raise InvalidQuery(f"{name} has dates: their bins are {attribute.values.by}s, and a width is a number.")
    if isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < math.inf:
        raise InvalidQuery(f"a width is a number above 0, not {width!r}.")
    low, high = attribute.edge(0), attribute.edge(attribute.bins)
    steps = (high - low) / width - 1e-9
    if steps > attribute.bins:  # also where it is infinite, which has no ceiling
        raise InvalidQuery(f"bins of {width:g} are finer than those that {name} is declared with.")
    return (*(attribute.below(name, low + i * width) for i in range(max(1, math.ceil(steps)))), attribute.bins)


def coarse_cuts(attribute: Attribute, width: float) -> list[int] | None:
    """The bins at which those of a wider grid start, which has its edges at the multiples of `width`; None: it cuts."""
    assert not isinstance(attribute.values, Listed)
    step, starts = Exact(str(width)), attribute.values.starts  # as it was written: three times 0.1 is 0.3
    first = math.floor(Exact(str(starts[0])) / step) + 1
    last = math.ceil(Exact(str(attribute.values.end)) / step) - 1
    if last - first >= attribute.bins:  # more cuts than bins: one of them is no edge
        return None
    cuts = [0]
    for k in range(first, last + 1):
        point = float(k * step)
        at = bisect_left(starts, point)
        if at == len(starts) or starts[at] != point:
            return None
        cuts.append(at)
    return cuts


def fitting_widths(attribute: Attribute) -> list[float]:
    """A few widths for which every wider bin is a union of declared ones, the narrowest first."""
    values = attribute.values
    tried: list[float] = []
    if isinstance(values, Integers):
        tried = [values.width * k for k in range(1, min(attribute.bins, 1000) + 1)]
    elif isinstance(values, Reals):
        edges = values.edges[:1000]
        tried = sorted({abs(float(e)) for e in edges if e} | {float(b - a) for a, b in pairwise(edges)})
    found: list[float] = []
    for width in tried:
        cuts = coarse_cuts(attribute, width)
        if cuts is not None and len(cuts) > 1:
            found.append(width)
        if len(found) == _WIDTHS_NAMED:
            break
    return found
