"""The inner part of a statement: groups, and values for each of them. All that is released of it. Public words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tacit.errors import InvalidQuery
from tacit.model.aggregate import EVERYONE, Aggregate, Count, Fraction, check_domain, check_rows, check_texts
from tacit.model.bands import Bands
from tacit.model.calculation import ValueKind, kinds_of
from tacit.model.curve import Cdf, Histogram, Quantile, Range
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.formula import Formula
from tacit.model.query import Query
from tacit.model.workload import Marginal, marginal


@dataclass(frozen=True)
class Crosstab:
    """The counts of all combinations of some attributes' values, among the rows of a condition."""

    domain: Domain = field(compare=False, repr=False)
    names: tuple[str, ...]
    where: Query = EVERYONE
    table: Marginal = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_rows(self.where, self.domain)
        check_texts(self.names, "the attributes of a table")
        object.__setattr__(self, "names", tuple(self.domain.resolve(name) for name in self.names))
        object.__setattr__(self, "table", marginal(self.domain, *self.names, where=self.where))

    def words(self, domain: Domain) -> str:
        return describe(self.table, domain)


@dataclass(frozen=True)
class GroupBy:
    """An attribute to group by: in its declared values or, with bands, in groups of these."""

    name: str
    title: str
    bands: Bands | None = None

    def __post_init__(self) -> None:
        texts = isinstance(self.name, str) and isinstance(self.title, str)
        if not texts or not isinstance(self.bands, Bands | None):
            raise InvalidQuery("rows are grouped by an attribute's name, with a title, and bands where there are any.")

    @property
    def by(self) -> tuple[str, Bands | None]:
        """What it groups by, whatever its title."""
        return self.name, self.bands

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

    def number(self, domain: Domain) -> int:
        """How many groups there are."""
        return domain[self.name].size if self.bands is None else len(self.bands.parts)

    def labels(self, domain: Domain) -> tuple[str, ...]:
        attribute = domain[self.name]
        return tuple(map(attribute.label, range(attribute.size))) if self.bands is None else self.bands.labels


@dataclass(frozen=True)
class Column:
    """One value of a statement: what it is, and its title."""

    value: Aggregate | Quantile
    title: str
    named: bool = False  # the title was given with AS

    def __post_init__(self) -> None:
        # An aggregate is whatever has a formula: no other list of them is kept.
        if not isinstance(self.value, Quantile) and not isinstance(getattr(self.value, "formula", None), Formula):
            raise InvalidQuery(f"a column is an aggregate or a quantile, not {type(self.value).__name__}.")
        if not isinstance(self.title, str) or not isinstance(self.named, bool):
            raise InvalidQuery("a column has a title, and was named or not.")


@dataclass(frozen=True)
class Select:
    """Values for each group, or for all rows. With no columns it lists the declared values."""

    domain: Domain = field(compare=False, repr=False)
    columns: tuple[Column, ...]
    groups: tuple[GroupBy, ...] = ()
    notes: tuple[str, ...] = ()
    crosstab: Crosstab | None = field(init=False, compare=False, repr=False)  # what it is, if it is only a table
    # Of the statement, where it was read from one.
    text: str = field(default="", kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        domain = self.domain
        self._check_parts(domain)
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

    def _check_parts(self, domain: Domain) -> None:
        check_domain(domain)
        check_texts((*self.notes, self.text), "the notes and the text of a statement")
        if not isinstance(self.columns, tuple) or not isinstance(self.groups, tuple):
            raise InvalidQuery("the columns and the groups of a statement are tuples.")
        for column in self.columns:
            if not isinstance(column, Column):
                raise InvalidQuery(f"a statement's columns are made with Column, not {type(column).__name__}.")
            check_made_for(column.value, domain)
        for group in self.groups:
            if not isinstance(group, GroupBy):
                raise InvalidQuery(f"a statement's groups are made with GroupBy, not {type(group).__name__}.")
            if group.name not in domain:
                raise InvalidQuery(f"rows are grouped by one of {', '.join(domain)}, not by {group.name!r}.")
            if group.bands is not None:
                group.bands.check(domain[group.name].size)

    def _crosstab(self, domain: Domain) -> Crosstab | None:
        plain = len(self.columns) == 1 and isinstance(self.columns[0].value, Count) and not self.columns[0].named
        # A title that was given is kept, which a table has no place for.
        declared = all(group.title == group.name and group.bands is None for group in self.groups)
        if not plain or not declared:
            return None
        return Crosstab(domain, tuple(group.name for group in self.groups), self.columns[0].value.where)

    @property
    def kinds(self) -> list[ValueKind]:
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
        return math.prod(group.number(domain) for group in self.groups)

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


def check_made_for(ask: Aggregate | Crosstab | Quantile | Cdf | Histogram | Range | Select, domain: Domain) -> None:
    """Refuse what is no question, or one that was made for another domain."""
    match ask:
        case Count():
            if not ask.query.fits(domain):
                check_rows(ask.query, domain)
        case Fraction():
            check_rows(ask.where, domain)
            check_rows(ask.given, domain)
        case _:  # all others are made from their domain, and keep it
            made_for = getattr(ask, "domain", None)
            if not isinstance(made_for, Domain):
                raise InvalidQuery(f"a question is one of tacit.model.ask, not {type(ask).__name__}.")
            if made_for != domain:
                raise InvalidQuery(f"the question was made for another domain than that of {', '.join(domain)}.")
