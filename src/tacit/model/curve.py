"""Questions about an attribute's values in order: quantiles, cumulative counts, histograms, ranges. Public words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.aggregate import EVERYONE, RANGE_SHARE, check_domain, check_rows, check_share, rows_where
from tacit.model.attribute import Attribute
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.expression import count
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.values import Days, Value
from tacit.model.workload import marginal


@dataclass(frozen=True)
class Quantile:
    """The bin of an ordered attribute that holds a quantile, 0.5 for the median, among the rows of a condition.

    Among all rows it is bought like `Cdf`. In a statement, by group, beside other values or in arithmetic, it is a
    number: the middle of its bin.
    """

    domain: Domain = field(compare=False, repr=False)
    name: str
    q: float
    where: Query = EVERYONE
    share: float | None = None
    from_ranges: bool = field(init=False)

    def __post_init__(self) -> None:
        domain = self.domain
        check_rows(self.where, domain)
        object.__setattr__(self, "from_ranges", self.where.is_everyone)
        if isinstance(self.q, bool) or not isinstance(self.q, int | float) or not 0 < self.q < 1:
            raise InvalidQuery(f"a quantile is a share above 0 and below 1, not {self.q!r}.")
        object.__setattr__(self, "name", domain.resolve(self.name))
        check_share(self.share)
        if self.where.unit > 1:
            raise InvalidQuery("rows are chosen by conditions, not by weights.")
        if not self.from_ranges and not domain[self.name].ordered:
            raise InvalidQuery(f"{self.name} has no order, so it has no quantiles.")
        _check_ordered(domain, self.name)
        marginal(domain, self.name, where=self.where)  # refuses a condition that no row meets
        if not possible(self.where, [self.name], [domain[self.name].size])[: domain[self.name].bins].any():
            raise InvalidQuery(f"no row that meets the condition has a value of {self.name}, so it has no quantiles.")

    def check_number(self, domain: Domain) -> None:
        """Refuse dates, whose bins have no number in their middle."""
        if isinstance(domain[self.name].values, Days):
            raise InvalidQuery(f"{self.name} has dates: their quantile is no number, so it is asked by itself.")

    def words(self, domain: Domain) -> str:
        return f"the {100 * self.q:.10g}% quantile of {self.name}{rows_where(self.where, domain)}"


@dataclass(frozen=True)
class Cdf:
    """The cumulative counts of an ordered attribute, from what is bought already.

    Where nothing tells them, or a `share` of the budget is named, they are read off a release of all its ranges. With a
    `strategy` they are read off the release of that name, for the usual share if none is named.
    """

    domain: Domain = field(compare=False, repr=False)
    name: str
    share: float | None = None
    strategy: str | None = None

    def __post_init__(self) -> None:
        domain = self.domain
        object.__setattr__(self, "name", _check_ordered(domain, self.name))
        check_share(self.share)
        if self.strategy is not None and not isinstance(self.strategy, str):
            raise InvalidQuery(f"a strategy is called by its name, not {self.strategy!r}.")
        if self.strategy is not None and self.share is None:
            object.__setattr__(self, "share", RANGE_SHARE)

    def words(self, domain: Domain) -> str:
        return f"cumulative counts of {self.name}"


@dataclass(frozen=True)
class Histogram:
    """The counts of an ordered attribute's bins, or of wider ones; they add up. Bought like `Cdf`."""

    domain: Domain = field(compare=False, repr=False)
    name: str
    width: float | None = None
    share: float | None = None
    cuts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        domain = self.domain
        object.__setattr__(self, "name", _check_ordered(domain, self.name))
        check_share(self.share)
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

    domain: Domain = field(compare=False, repr=False)
    query: Query
    share: float | None = None
    sides: tuple[tuple[int, int], ...] = field(init=False)  # the first and the last bin in each attribute

    def __post_init__(self) -> None:
        domain = self.domain
        check_rows(self.query, domain)
        check_share(self.share)
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


def _check_ordered(domain: Domain, name: str) -> str:
    """The attribute's declared name; refuses one whose values have no order."""
    check_domain(domain)
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
