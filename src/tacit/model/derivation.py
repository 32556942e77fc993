"""A statement whose rows are worked out from released ones: expressions, a choice of rows, an order. Public words.

Its source is the inner part of the statement, or another statement. Nothing but the inner parts is ever released, so
everything here is free once they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tacit.model.calculation import Given, Kind, Outer, kind, kinds_of, never, words
from tacit.model.domain import Domain
from tacit.model.select import GroupBy, Select

FoldKind = Literal["count", "sum", "avg", "min", "max"]


@dataclass(frozen=True)
class DerivedColumn:
    """One column: its title, and what it is worked out by."""

    title: str
    node: Outer
    named: bool = False  # the title was given with AS


@dataclass(frozen=True)
class Sort:
    """Rows are sorted by an expression; NULLs come last."""

    node: Outer
    descending: bool


@dataclass(frozen=True)
class Fold:
    """One number from several rows: how many there are, or the sum, mean, least or largest of an expression.

    With `where`, of those rows only.
    """

    kind: FoldKind
    node: Outer | None
    where: Outer | None = None


@dataclass(frozen=True)
class Folded:
    """The rows of a statement put together, by some of its columns of labels or all into one."""

    source: Select | Derived
    by: tuple[int, ...]
    folds: tuple[Fold, ...]
    where: Outer | None = None
    said: str = ""  # in words, where these are better than those of its parts
    elsewhere: tuple[Select | Folded | Derived, ...] = ()

    @property
    def kinds(self) -> list[Kind]:
        return kinds_of(len(self.by), len(self.folds))

    @property
    def titles(self) -> list[str]:
        return [self.source.titles[i] for i in self.by] + [fold.kind for fold in self.folds]

    @property
    def selects(self) -> tuple[Select, ...]:
        return (*self.source.selects, *(select for other in self.elsewhere for select in other.selects))

    @property
    def grouped(self) -> bool:
        return bool(self.by)

    def most_rows(self, domain: Domain) -> int:
        """How many rows it has at most. Without labels it always has one."""
        if not self.by:
            return 1
        return 0 if self.where is not None and never(self.where) else self.source.most_rows(domain)

    def needed(self, domain: Domain) -> tuple[Select, ...]:
        """All that is released for it. Values put together from no rows are known."""
        return _needed((self.source, *self.elsewhere), domain) if self.source.most_rows(domain) else ()

    def each(self, domain: Domain) -> list[str]:
        inner, others = self.source.each(domain), [other.summary(domain) for other in self.elsewhere]
        said = list[str]()
        # What is put together: a number of each group.
        titles = zip(self.source.titles, self.source.kinds, strict=True)
        labels = [title for i, (title, kind) in enumerate(titles) if kind == "text" and i not in self.by]
        each = f" of each {', '.join(labels)}" if labels else ""
        for fold in self.folds:
            what = "rows" if fold.node is None else words(fold.node, inner, others) + each
            where = "" if fold.where is None else f" where {words(fold.where, inner, others)}"
            said.append(f"{fold.kind} of {what}{where}")
        return [inner[i] for i in self.by] + said

    def summary(self, domain: Domain) -> str:
        if self.said:
            return self.said
        return f"{'; '.join(self.each(domain)[len(self.by) :])} in {self.source.summary(domain)}{self.chosen(domain)}"

    def chosen(self, domain: Domain) -> str:
        """Which rows it is of, in words."""
        others = [other.summary(domain) for other in self.elsewhere]
        return "" if self.where is None else f" where {words(self.where, self.source.each(domain), others)}"


@dataclass(frozen=True)
class Derived:
    """Rows worked out from those of its source. `elsewhere` are statements of one value that it uses too."""

    source: Select | Folded | Derived
    shown: tuple[DerivedColumn, ...]
    where: Outer | None = None
    sort: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    elsewhere: tuple[Select | Folded | Derived, ...] = ()
    notes: tuple[str, ...] = ()
    text: str = field(default="", init=False, compare=False, repr=False)  # of the statement, where it was read from one

    @property
    def kinds(self) -> list[Kind]:
        return [kind(one.node, self.source.kinds) for one in self.shown]

    @property
    def titles(self) -> list[str]:
        return [one.title for one in self.shown]

    @property
    def selects(self) -> tuple[Select, ...]:
        """All that it is made from, whether it must be released or not."""
        return (*self.source.selects, *(select for other in self.elsewhere for select in other.selects))

    @property
    def grouped(self) -> bool:
        """Whether it may have several rows, or none."""
        return self.source.grouped or self.where is not None or self.limit is not None or self.offset > 0

    def most_rows(self, domain: Domain) -> int:
        """How many rows it has at most: none by LIMIT 0, by an OFFSET behind the last, or if none meets a condition."""
        if self.where is not None and never(self.where):
            return 0
        rows = max(0, self.source.most_rows(domain) - self.offset)
        return rows if self.limit is None else min(rows, self.limit)

    def needed(self, domain: Domain) -> tuple[Select, ...]:
        """All that is released for it. Where it has no rows, nothing is."""
        return _needed((self.source, *self.elsewhere), domain) if self.most_rows(domain) else ()

    def each(self, domain: Domain) -> list[str]:
        inner = self.source.each(domain)
        others = [other.summary(domain) for other in self.elsewhere]
        return [words(one.node, inner, others) for one in self.shown]

    def words(self, domain: Domain) -> str:
        return "; ".join([self.summary(domain), *self.notes])

    def summary(self, domain: Domain) -> str:
        """The statement in words, without the notes on how it was read."""
        inner = self.source.each(domain)
        others = [other.summary(domain) for other in self.elsewhere]
        given = [one.node for one in self.shown]
        every = {Given(i) for i in range(len(self.source.kinds))}
        if set(given) == every and len(given) == len(every) and not isinstance(self.source, Folded):
            text = self.source.summary(domain)
        else:
            plain = [isinstance(node, Given) and self.source.kinds[node.index] == "text" for node in given]
            labels = [one.title for one, label in zip(self.shown, plain, strict=True) if label]
            if isinstance(self.source, Select):  # rows are there for groups that are not shown too
                labels += [group.said for i, group in enumerate(self.source.groups) if Given(i) not in given]
            values = [said for said, label in zip(self.each(domain), plain, strict=True) if not label]
            text = "; ".join(values or labels) + (f", by {', '.join(labels)}" if labels and values else "")
        if isinstance(self.source, Folded) and self.source.where is not None:
            text += f", of rows{self.source.chosen(domain)}"
        if self.where is not None:
            text += f", where {words(self.where, inner, others)}"
        titles = {one.node: one.title for one in self.shown}
        for sort in self.sort:
            by = titles.get(sort.node) or words(sort.node, inner, others)
            text += f", by {by} {'downwards' if sort.descending else 'upwards'}"
        if self.limit == 0:
            text += ", no rows"
        elif self.limit is not None or self.offset:
            first = self.offset + 1
            text += f", rows from {first}" if self.limit is None else f", rows {first} to {self.offset + self.limit}"
        return text


def _needed(sources: Iterable[Select | Folded | Derived], domain: Domain) -> tuple[Select, ...]:
    return tuple(select for source in sources for select in source.needed(domain))


def identity(select: Select) -> Derived:
    """A statement that shows the released rows as they are."""
    shown = (DerivedColumn(title, Given(i)) for i, title in enumerate(select.titles))
    return Derived(select, tuple(shown), notes=select.notes)


def group_at(source: Select | Folded | Derived, column: int) -> GroupBy | None:
    """The group whose labels a column has, if it has such."""
    if isinstance(source, Select):
        return source.groups[column] if column < len(source.groups) else None
    if isinstance(source, Folded):
        return group_at(source.source, source.by[column]) if column < len(source.by) else None
    node = source.shown[column].node
    return group_at(source.source, node.index) if isinstance(node, Given) else None


def attribute_of(source: Select | Folded | Derived, column: int) -> str | None:
    """The attribute whose labels a column has, if it has such."""
    group = group_at(source, column)
    return None if group is None else group.name
