"""A statement whose rows are worked out from released ones: expressions, a choice of rows, an order. Public words.

Its source is the inner part of the statement, or another statement. Nothing but the inner parts is ever released, so
everything here is free once they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from tacit.errors import InvalidQuery
from tacit.model.aggregate import check_choices, check_texts
from tacit.model.calculation import (
    OPERATIONS,
    Belongs,
    Case,
    Constant,
    Elsewhere,
    End,
    Ending,
    Extent,
    Given,
    Operation,
    Outer,
    ValueKind,
    kind,
    kinds_of,
    never,
    words,
)
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.select import GroupBy, Select

FoldKind = Literal["count", "sum", "avg", "min", "max"]


@dataclass(frozen=True)
class DerivedColumn:
    """One column: its title, and what it is worked out by."""

    title: str
    node: Outer
    named: bool = False  # the title was given with AS

    def __post_init__(self) -> None:
        check_texts((self.title,), "the titles of columns")
        check_choices(self.named)


@dataclass(frozen=True)
class Sort:
    """Rows are sorted by an expression; NULLs come last."""

    node: Outer
    descending: bool

    def __post_init__(self) -> None:
        check_choices(self.descending)


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
    elsewhere: tuple[AnyRows, ...] = ()

    def __post_init__(self) -> None:
        over = Vocabulary.these(self.source, self.elsewhere)
        check_texts((self.said,), "the words of a statement")
        if not isinstance(self.by, tuple) or not isinstance(self.folds, tuple) or not (self.by or self.folds):
            raise InvalidQuery("rows are put together by columns, by folds, or by both.")
        for column in self.by:
            over.check(Given(column), "text")
        for fold in self.folds:
            if not isinstance(fold, Fold) or fold.kind not in get_args(FoldKind):
                raise InvalidQuery(f"rows are put together by {', '.join(get_args(FoldKind))}, not by {fold!r}.")
            if fold.node is not None:
                over.check(fold.node, "number")
            elif fold.kind != "count":
                raise InvalidQuery(f"the {fold.kind} of rows is that of an expression.")
            if fold.where is not None:
                over.check(fold.where, "truth")
        if self.where is not None:
            over.check(self.where, "truth")
        Extent.over([one for fold in self.folds for one in (fold.node, fold.where) if one is not None])

    @property
    def kinds(self) -> list[ValueKind]:
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

    source: AnyRows
    shown: tuple[DerivedColumn, ...]
    where: Outer | None = None
    sort: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    elsewhere: tuple[AnyRows, ...] = ()
    notes: tuple[str, ...] = ()
    # Of the statement, where it was read from one.
    text: str = field(default="", kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        over = Vocabulary.these(self.source, self.elsewhere)
        check_texts((*self.notes, self.text), "the notes and the text of a statement")
        if not isinstance(self.shown, tuple) or not all(isinstance(one, DerivedColumn) for one in self.shown):
            raise InvalidQuery("a statement shows columns that are made with DerivedColumn.")
        for one in self.shown:
            over.check(one.node, "number", "text")
        if self.where is not None:
            over.check(self.where, "truth")
        for sort in self.sort:
            if not isinstance(sort, Sort):
                raise InvalidQuery(f"rows are sorted by what is made with Sort, not by {type(sort).__name__}.")
            over.check(sort.node, "number", "text")
        over_all = [one.node for one in self.shown] + [one.node for one in self.sort]
        Extent.over(over_all if self.where is None else [*over_all, self.where])
        for number in (self.offset, 0 if self.limit is None else self.limit):
            if type(number) is not int or number < 0:
                raise InvalidQuery(f"a limit and an offset are whole numbers from 0 on, not {number!r}.")

    @property
    def kinds(self) -> list[ValueKind]:
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


AnyRows = Select | Folded | Derived  # a statement by its rows


@dataclass(frozen=True)
class Vocabulary:
    """What an expression may speak of: columns of these kinds, grouped attributes, and so many other statements."""

    columns: list[ValueKind]
    groups: Collection[str]
    elsewhere: int
    # What was checked, with its kind, by its identity: sorts and columns share their expressions. All of it is kept, so
    # that no other expression comes to have that identity.
    _known: dict[int, tuple[Outer, ValueKind]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def these(cls, source: AnyRows, elsewhere: tuple[AnyRows, ...]) -> Vocabulary:
        """The rows of a statement, with the values of others beside them, all of one domain."""
        statements = (source, *elsewhere)
        if not all(isinstance(one, AnyRows) for one in statements):
            raise InvalidQuery("rows are worked out from those of statements.")
        selects = [select for one in statements for select in one.selects]
        if any(select.domain != selects[0].domain for select in selects):
            raise InvalidQuery("a statement is worked out from others of the same domain.")
        groups = _groups(source)
        for one in elsewhere:
            if one.kinds[-1:] != ["number"] or not _groups(one) <= groups:
                raise InvalidQuery("another statement has one number for all rows, or one for each group.")
        return cls(source.kinds, groups, len(elsewhere))

    def check(self, node: Outer, *kinds: ValueKind) -> None:
        """Refuse what is no expression over these, or gives nothing of these kinds. NULL is of every kind."""
        if self._kind(node) not in kinds and node != Constant(None):
            raise InvalidQuery(f"an expression that gives a {kinds[0]} stands here, not {node!r}.")

    def _kind(self, node: Outer) -> ValueKind:
        if id(node) not in self._known:
            self._known[id(node)] = node, self._checked(node)
        return self._known[id(node)][1]

    def _checked(self, node: Outer) -> ValueKind:
        known = False
        match node:
            case Constant(value):
                known = isinstance(value, str | int | float | None) and not isinstance(value, bool)
            case Given(int() as index):
                known = 0 <= index < len(self.columns)
            case Elsewhere(int() as index):
                known = 0 <= index < self.elsewhere
            case Belongs(Query() as meets, Query() as fails):
                known = {*meets.scope, *fails.scope} <= set(self.groups)
            case End(what, of):
                known = what in get_args(Ending) and (of is not None or what == "confidence")
                if of is not None:
                    self.check(of, "number")
            case Case(tuple() as branches, otherwise):
                known = all(isinstance(branch, tuple) and len(branch) == 2 for branch in branches)
                if known:
                    return self._of_case(branches, otherwise)
            case Operation(str() as name, tuple() as of, int()) if name in OPERATIONS:
                form, takes = OPERATIONS[name][:2]
                known = len(of) == form.count("{}") if "{}" in form else bool(of)
                for one in of:
                    self.check(one, takes)
        if not known:
            raise InvalidQuery(f"{node!r} is no expression over {len(self.columns)} columns.")
        return kind(node, self.columns)

    def _of_case(self, branches: Sequence[tuple[Outer, Outer]], otherwise: Outer) -> ValueKind:
        values = [*(value for _, value in branches), otherwise]
        given: ValueKind = "text" if "text" in map(self._kind, values) else "number"
        for value in values:
            self.check(value, given)
        for condition, _ in branches:
            self.check(condition, "truth")
        return given


def _groups(source: AnyRows) -> set[str]:
    """The attributes whose values the rows of a statement are told apart by."""
    if isinstance(source, Select):
        return {group.name for group in source.groups}
    if isinstance(source, Derived):
        return _groups(source.source)
    return _groups(source.source) & {name for column in source.by if (name := attribute_of(source.source, column))}


def _needed(sources: Iterable[AnyRows], domain: Domain) -> tuple[Select, ...]:
    return tuple(select for source in sources for select in source.needed(domain))


def identity(select: Select) -> Derived:
    """A statement that shows the released rows as they are."""
    shown = (DerivedColumn(title, Given(i)) for i, title in enumerate(select.titles))
    return Derived(select, tuple(shown), notes=select.notes)


def group_at(source: AnyRows, column: int) -> GroupBy | None:
    """The group whose labels a column has, if it has such."""
    if isinstance(source, Select):
        return source.groups[column] if column < len(source.groups) else None
    if isinstance(source, Folded):
        return group_at(source.source, source.by[column]) if column < len(source.by) else None
    node = source.shown[column].node
    return group_at(source.source, node.index) if isinstance(node, Given) else None


def attribute_of(source: AnyRows, column: int) -> str | None:
    """The attribute whose labels a column has, if it has such."""
    group = group_at(source, column)
    return None if group is None else group.name
