"""What a statement asks, as plain records: aggregates over conditions, groups, and the order of the rows. Public words.

Made by `model.sql`, answered by the session through `release.statements`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.describe import describe
from tacit.model.domain import Domain
from tacit.model.expression import Expression
from tacit.model.query import Query
from tacit.model.values import Integers, Listed, Reals
from tacit.model.workload import marginal

Kind = Literal["count", "fraction", "sum", "mean", "quantile"]
_WIDTHS_NAMED = 5


@dataclass(frozen=True)
class Aggregate:
    """One number for each group. `where` holds all its conditions, those of WHERE and FILTER together.

    A fraction is taken among the rows of `given`; a sum, a mean and a quantile are of the attribute `name`.
    """

    kind: Kind
    where: Expression
    title: str
    given: Expression | None = None
    name: str = ""
    share: float = 0.5
    scale: float = 1.0
    named: bool = False  # the title was given with AS


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
class Select:
    """A parsed statement. With no aggregates it lists the declared values: SELECT DISTINCT."""

    aggregates: tuple[Aggregate, ...]
    groups: tuple[Group, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    notes: tuple[str, ...] = ()

    @property
    def group(self) -> tuple[str, ...]:
        """The attributes it groups by."""
        return tuple(group.name for group in self.groups)

    @property
    def where(self) -> Expression:
        """The rows that a plain count or table is about; another statement is refused, lest it be taken for one."""
        if len(self.aggregates) != 1 or self.aggregates[0].kind != "count":
            raise InvalidQuery("a statement that asks for more than a count is asked by itself, with ask.")
        return self.aggregates[0].where

    @property
    def is_count(self) -> bool:
        """Whether it asks for one plain count."""
        return len(self.aggregates) == 1 and self.aggregates[0].kind == "count" and not self.groups


def phrase(aggregate: Aggregate, domain: Domain) -> str:
    """An aggregate in words."""
    given = None if aggregate.given is None else aggregate.given.bind(domain)
    return words(aggregate.kind, aggregate.where.bind(domain), domain, aggregate.name, aggregate.share, given)


def words(
    kind: Kind, where: Query, domain: Domain, name: str = "", share: float = 0.5, given: Query | None = None
) -> str:
    """A question of this kind in words, whichever way it was asked."""
    about = describe(where, domain)
    if kind == "count":
        return about
    if kind == "fraction":
        return f"the fraction of rows with {about}" + (
            "" if given is None or given.is_everyone else f", among {describe(given, domain)}"
        )
    what = {"sum": "the sum", "mean": "the mean", "quantile": f"the {100 * share:.10g}% quantile"}[kind]
    return f"{what} of {name}" + ("" if where.is_everyone else f" where {about}")


def summary(select: Select, domain: Domain) -> str:
    """A whole statement in words."""
    by = ", ".join(g.name if g.width is None else f"{g.name} by {g.width:g}" for g in select.groups)
    if not select.aggregates:
        text = f"the declared values of {by}"
    elif [a.kind for a in select.aggregates] == ["count"] and select.groups:
        where = select.aggregates[0].where.bind(domain)
        text = describe(marginal(domain, *select.group, where=where), domain)
        text = (
            text if all(g.width is None for g in select.groups) else text.replace(", ".join(sorted(select.group)), by)
        )
    else:
        text = "; ".join(phrase(a, domain) for a in select.aggregates) + (f", by {by}" if by else "")
    for order in select.order:
        title = select.groups[order.index].title if order.by == "group" else select.aggregates[order.index].title
        text += f", by {title} {'downwards' if order.descending else 'upwards'}"
    if select.limit is not None or select.offset:
        first = select.offset + 1
        text += f", rows from {first}" if select.limit is None else f", rows {first} to {select.offset + select.limit}"
    return "; ".join([text, *select.notes])


def coarse_cuts(attribute: Attribute, width: float) -> list[int] | None:
    """The bins at which those of a wider grid start, which has its edges at the multiples of `width`; None: it cuts."""
    assert not isinstance(attribute.values, Listed)
    step, starts = Fraction(str(width)), attribute.values.starts  # as it was written: three times 0.1 is 0.3
    first, last = math.floor(_exact(starts[0]) / step) + 1, math.ceil(_exact(attribute.values.end) / step) - 1
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


def _exact(point: float) -> Fraction:
    return Fraction(str(point))


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
