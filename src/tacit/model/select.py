"""The inner part of a statement: groups, and values for each of them. All that is released of it. Public words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field

from tacit.errors import InvalidQuery
from tacit.model.aggregate import EVERYONE, Aggregate, Count
from tacit.model.bands import Bands
from tacit.model.calculation import Kind, kinds_of
from tacit.model.curve import Quantile
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.workload import Marginal, marginal


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
    """An attribute to group by: in its declared values or, with bands, in groups of these."""

    name: str
    title: str
    bands: Bands | None = None

    @property
    def said(self) -> str:
        return self.name if self.bands is None else self.bands.said

    @property
    def each_value(self) -> bool:
        """Whether the groups are the declared values, whatever their labels."""
        return self.bands is None or self.bands.one_by_one

    def parts(self, domain: Domain) -> Sequence[Sequence[int]]:
        """The indices of the attribute's values that each group takes together."""
        if self.bands is None:
            return [range(i, i + 1) for i in range(domain[self.name].size)]
        return self.bands.parts

    def labels(self, domain: Domain) -> tuple[str, ...]:
        attribute = domain[self.name]
        return tuple(map(attribute.label, range(attribute.size))) if self.bands is None else self.bands.labels


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
        declared = all(group.title == group.name and group.bands is None for group in self.groups)
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
        by = ", ".join(group.said for group in self.groups)
        counts = len(self.columns) == 1 and isinstance(self.columns[0].value, Count)
        if not self.columns:
            text = f"the declared values of {by}"
        elif counts and self.groups:
            names = tuple(group.name for group in self.groups)
            text = describe(marginal(domain, *names, where=self.columns[0].value.where), domain)
            if any(group.bands is not None for group in self.groups):
                text = text.replace(", ".join(sorted(names)), by)
        else:
            text = "; ".join(column.value.words(domain) for column in self.columns) + (f", by {by}" if by else "")
        return text
