"""The inner part of a statement: groups, and values for each of them. All that is released of it. Public words."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import InitVar, dataclass, field
from fractions import Fraction as Exact
from itertools import pairwise

from tacit.errors import InvalidQuery
from tacit.model.aggregate import EVERYONE, Aggregate, Count
from tacit.model.attribute import Attribute
from tacit.model.calculation import Kind, kinds_of
from tacit.model.curve import Quantile
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.values import Integers, Listed, Reals
from tacit.model.workload import Marginal, marginal

_WIDTHS_NAMED = 5  # widths that a refusal suggests


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
class GroupBy:
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
class Column:
    """One value of a statement: what it is, and its title."""

    value: Aggregate | Quantile
    title: str
    named: bool = False  # the title was given with AS


@dataclass(frozen=True)
class Select:
    """Values for each group, or for all rows. With no columns it lists the declared values."""

    domain: InitVar[Domain]
    columns: tuple[Column, ...]
    groups: tuple[GroupBy, ...] = ()
    notes: tuple[str, ...] = ()
    crosstab: Crosstab | None = field(init=False, compare=False, repr=False)  # what it is, if it is only a table
    text: str = field(default="", init=False, compare=False, repr=False)  # of the statement, where it was read from one

    def __post_init__(self, domain: Domain) -> None:
        alone = len(self.columns) == 1 and not self.groups
        for column in self.columns:
            if isinstance(column.value, Quantile):
                if not alone:
                    column.value.check_number(domain)
                if column.value.name in (group.name for group in self.groups):
                    raise InvalidQuery(
                        f"a quantile of {column.value.name} is not grouped by {column.value.name} itself."
                    )
            elif self.groups and not column.value.formula.parts:
                raise InvalidQuery(column.value.formula.constant)
        object.__setattr__(self, "crosstab", self._crosstab(domain) if self.groups else None)

    def _crosstab(self, domain: Domain) -> Crosstab | None:
        plain = len(self.columns) == 1 and isinstance(self.columns[0].value, Count) and not self.columns[0].named
        # A title that was given is kept, which a table has no place for.
        declared = all(group.title == group.name and group.width is None for group in self.groups)
        if not plain or not declared:
            return None
        return Crosstab(domain, tuple(group.name for group in self.groups), self.columns[0].value.where)

    @property
    def kinds(self) -> list[Kind]:
        """What each column of its rows is: labels, then numbers."""
        return kinds_of(len(self.groups), len(self.columns))

    @property
    def titles(self) -> list[str]:
        return [group.title for group in self.groups] + [column.title for column in self.columns]

    @property
    def selects(self) -> tuple[Select, ...]:
        return (self,)

    @property
    def grouped(self) -> bool:
        return bool(self.groups)

    def most_rows(self, domain: Domain) -> int:
        """How many rows it has: one for each group."""
        return math.prod(len(group.parts(domain)) for group in self.groups)

    def needed(self, domain: Domain) -> tuple[Select, ...]:
        """What is released for it."""
        return (self,)

    def each(self, domain: Domain) -> list[str]:
        """Each column of its rows in words."""
        return [group.title for group in self.groups] + [column.value.words(domain) for column in self.columns]

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
        return text


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
