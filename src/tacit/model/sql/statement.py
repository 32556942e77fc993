"""A whole statement: its inner part, which is released, and its outer part, which is worked out from that.

Called by `sql.parse` alone. The inner part is the groups and aggregates over FROM data; everything else, such as
arithmetic, HAVING, ORDER BY, LIMIT and statements over the rows of another one, is outer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Aggregate, Sum
from tacit.model.ask import Ask, Column, Count, Derived, GroupBy, Quantile, Select
from tacit.model.calculation import Constant, Elsewhere, Given, Operation, Outer, ValueKind, kind, kinds_of
from tacit.model.derivation import AnyRows, DerivedColumn, Fold, Folded, FoldKind, group_at
from tacit.model.domain import Domain
from tacit.model.expression import All, Expression
from tacit.model.query import Query
from tacit.model.sql.aggregate import aggregate, distinct_values, mean_with_zeros
from tacit.model.sql.calculation import ALLOWED, truth, value
from tacit.model.sql.clause import Ending, View, aggregates, asks, ending_of, narrow, title, unqualified
from tacit.model.sql.condition import checked
from tacit.model.sql.group import belongs, check_size, group_among, groups_of, position
from tacit.model.sql.reading import Reading, only, text
from tacit.model.sql.statistic import statistic

MAX_AGGREGATES = 20  # aggregates of one statement
_NO_ROWS = "rows are never shown: the statement has an aggregate, like COUNT(*)."
_CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct", "with_")
InnerRows = Select | Derived  # a statement by its rows
NamedRows = Mapping[str, InnerRows | View]  # statements by the names that WITH gives them
NamedSource = tuple[View | InnerRows | None, set[str]]  # what a statement is about, and the names that it goes by


def ask_of(select: exp.Select, read: Reading) -> Ask:
    """What a statement asks: a question of its own kind where it is no more than that."""
    alone = [one for item in select.expressions if (one := statistic(item.unalias(), read)) is not None]
    if alone:
        if len(select.expressions) > 1 or any(select.args.get(clause) for clause in _CLAUSES[2:]):
            raise InvalidQuery("a statistic is asked by itself, about all rows: SELECT STUMP(age, ill) FROM data.")
        return alone[0]
    found = rows_of(select, read, {})
    read.raise_mistakes()
    assert found is not None
    if not isinstance(found, Select):
        return found
    if len(found.columns) == 1 and not found.groups and not found.notes:
        return found.columns[0].value  # what a method of the session asks
    return found if found.notes else found.crosstab or found


def rows_of(select: exp.Select, read: Reading, tables: NamedRows, about: NamedSource | None = None) -> InnerRows | None:
    """A statement by its rows; None where mistakes were found, which `read` keeps. `about`: its source, where known."""
    for clause, given in select.args.items():
        if given and clause not in _CLAUSES:
            read.refuse(f"{clause.strip('_').upper()} is not answered here. {ALLOWED}")
    tables = dict(tables)
    for cte in select.args["with_"].expressions if select.args.get("with_") else ():
        if not isinstance(cte.this, exp.Select) or cte.alias_column_names or select.args["with_"].args.get("recursive"):
            raise InvalidQuery("WITH gives names to statements: WITH t AS (SELECT …) SELECT … FROM t.")
        made = _view_or_rows(cte.this, read, tables)
        if made is None:
            return None
        tables[cte.alias.lower()] = made
    source, names = about or _from(select, read, tables)
    unqualified(select, names)
    if source is None:
        return None
    if not isinstance(source, View):
        return _over_rows(select, source, read, tables)
    narrow(select, source)
    return _over_data(select, read, tables)


def _from(select: exp.Select, read: Reading, tables: NamedRows) -> NamedSource:
    """What a statement is about, and the names that it goes by."""
    table = select.args["from_"].this if select.args.get("from_") else None
    alone = table is None and only(select, "expressions", "with_") and not any(map(aggregates, select.expressions))
    if alone and any(item.find(exp.Subquery) for item in select.expressions):
        return View(), set()  # SELECT (SELECT …) + (SELECT …): one row, of numbers that the statements in it give
    if isinstance(table, exp.Subquery) and isinstance(table.this, exp.Select) and only(table, "this", "alias"):
        return _view_or_rows(table.this, read, tables), {table.alias.lower()}
    if isinstance(table, exp.Table) and only(table, "this", "alias"):
        name = table.name.lower()
        if name in tables or name == "data":
            return tables.get(name, View()), {name, table.alias.lower()}
    raise InvalidQuery("there is one table, and it is called data: write FROM data.")


def _view_or_rows(select: exp.Select, read: Reading, tables: NamedRows) -> View | InnerRows | None:
    """What a statement inside another one gives: rows of data as they are, where it is only a choice of some."""
    plain = all(clause in ("expressions", "from_", "where") for clause, given in select.args.items() if given)
    shown = [item for item in select.expressions if isinstance(item, exp.Star | exp.Column) and not item.args.get("db")]
    if not plain or len(shown) < len(select.expressions):
        return rows_of(select, read, tables)
    about = source, names = _from(select, read, tables)
    if not isinstance(source, View):
        return rows_of(select, read, tables, about)
    unqualified(select, names)
    narrow(select, source)
    where, known = select.args.get("where"), len(read.mistakes)
    with read.attempt(where):  # here, in case nothing is asked about it
        _ = checked(where.this, read) if where else None
    if len(read.mistakes) > known:
        return None
    columns = None if any(item.is_star for item in shown) else {item.name.lower() for item in shown}
    return View(() if where is None else (where.this,), source.columns if columns is None else frozenset(columns))


# -- over data --------------------------------------------------------------------------------------------------------


@dataclass
class Inner:
    """The inner part while a statement is read: what is released. It grows by every aggregate that is found."""

    read: Reading
    tables: NamedRows
    where: Expression
    groups: list[GroupBy]
    values: list[Aggregate | Quantile] = field(default_factory=list)
    elsewhere: list[AnyRows] = field(default_factory=list)
    named: dict[str, Outer] = field(default_factory=dict)  # by alias
    partial: bool = False  # some groups could not be read: that a column is none of them says nothing

    @property
    def kinds(self) -> list[ValueKind]:
        return kinds_of(len(self.groups), len(self.values))

    def given(self, node: exp.Expr) -> Outer | None:
        if isinstance(node, exp.Subquery):
            return _scalar(node, self.read, self.tables, self.elsewhere)
        if isinstance(node, exp.Column) and not node.args.get("table") and node.name.lower() in self.named:
            return self.named[node.name.lower()]
        group = group_among(node, self.groups, self.read)
        if group is not None:
            return self._label(group, node)
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            return _one_of(self.elsewhere, distinct_values(node.this, self.where, self.groups, self.read))
        quotient = mean_with_zeros(node, self.read)
        if quotient is not None:
            return value(quotient, self)
        found = aggregate(node, self.where, self.read)
        if found is None:
            return None
        asked, scale = found
        if scale == 0 and not self.groups and isinstance(asked, Count | Sum):  # they are never NULL: it is 0 anyhow
            asked = Count(Query.constant(everyone=False))
        if asked not in self.values:
            self.values.append(asked)
        one = Given(len(self.groups) + self.values.index(asked))
        return one if scale == 1 else Operation("*", (Constant(scale), one))

    def _label(self, group: GroupBy, node: exp.Expr) -> Given:
        for i, known in enumerate(self.groups):
            if known.by == group.by:
                return Given(i)
        if self.partial:
            raise InvalidQuery("")
        raise InvalidQuery(f"{text(node)} is not in GROUP BY, and a column stands there or in an aggregate. {ALLOWED}")

    def belongs(self, node: exp.Expr) -> Outer | None:
        titled = {name.lower(): known for known in self.groups for name in (known.title, known.name)}
        return belongs(node, titled, self.groups, self.read)


def _over_data(select: exp.Select, read: Reading, tables: NamedRows) -> InnerRows | None:
    where, distinct = select.args.get("where"), select.args.get("distinct")
    if not distinct and not select.args.get("group") and not any(map(asks, select.expressions)):
        raise InvalidQuery(f"{_NO_ROWS} {ALLOWED}")
    chosen: Expression = All(())
    with read.attempt(where):
        chosen = checked(where.this, read) if where else chosen
    known = len(read.mistakes)
    groups = groups_of(select, read)
    # Before any value is read: to know what each bin of an attribute stands for takes long where there are many.
    read = replace(read, cells=math.prod(group.number(read.domain) for group in groups))
    read.meter.table(read.cells, sum(read.domain.sizes[group.name] for group in groups))
    inner = Inner(read, tables, All(()) if known else chosen, groups)
    inner.partial = len(read.mistakes) > known
    shown = _shown(select, inner, read.domain)
    for i, one in enumerate(shown):
        if isinstance(one.node, Given) and one.node.index < len(groups) and not one.named:
            shown[i] = replace(one, title=groups[one.node.index].title)
    if distinct:
        plain = not where and not select.args.get("group") and only(distinct)
        if inner.values or inner.elsewhere or not plain or any(not isinstance(one.node, Given) for one in shown):
            raise InvalidQuery("SELECT DISTINCT a, b FROM data lists the declared values, and takes nothing else.")
    outer = ending_of(select, inner, shown)
    if not distinct and not inner.values and not inner.elsewhere and not _lists(select, inner, shown):
        read.refuse("" if read.mistakes else f"{_NO_ROWS} {ALLOWED}")
    if len(inner.values) > MAX_AGGREGATES:
        read.refuse(f"a statement has at most {MAX_AGGREGATES} values; this one has {len(inner.values)}.")
    if read.mistakes:
        return None
    plain_count = len(inner.values) == 1 and isinstance(inner.values[0], Count)
    if not plain_count or any(group.bands is not None for group in inner.groups):
        check_size(inner.groups, read)
    return _put_together(inner, shown, outer)


def _lists(select: exp.Select, inner: Inner, shown: list[DerivedColumn]) -> bool:
    """Whether SELECT a FROM data GROUP BY a lists declared values, as SELECT DISTINCT a does: tools fill filters so."""
    if any(select.args.get(clause) for clause in ("where", "having")):
        return False
    return [one.node for one in shown] == [Given(i) for i in range(len(inner.groups))]


def _put_together(inner: Inner, shown: list[DerivedColumn], ending: Ending) -> InnerRows:
    """The inner part and what is worked out from it; the inner part alone where nothing is."""
    domain, read = inner.read.domain, inner.read
    count = [one.node for one in shown] == [Given(0)] and not inner.groups and isinstance(inner.values[0], Count)
    # A count by itself has what was clamped in its own notes, so that it stays a count.
    own = count and ending == Ending() and not inner.elsewhere
    notes = tuple(dict.fromkeys(read.notes if own else [*read.notes, *read.clamped]))
    first = len(inner.groups)
    titles = {one.node: one.title for one in shown}
    named = {one.node for one in shown if one.named}
    nodes = [Given(first + i) for i in range(len(inner.values))]
    core = Select(
        domain,
        tuple(Column(a, titles.get(node, ""), node in named) for a, node in zip(inner.values, nodes, strict=True)),
        tuple(
            GroupBy(group.name, titles.get(Given(i), group.title), group.bands) for i, group in enumerate(inner.groups)
        ),
        notes,
    )
    whole = [one.node for one in shown] == [Given(i) for i in range(len(core.kinds))]
    if not core.grouped:  # there is one row
        ending.sort = []
        if ending.limit is not None and ending.limit > 0 and not ending.offset:
            ending.limit = None
    if whole and ending == Ending() and not inner.elsewhere:
        return core
    _check_numbers([core], domain)
    return Derived(
        core,
        tuple(shown),
        ending.having,
        tuple(ending.sort),
        ending.limit,
        ending.offset,
        tuple(inner.elsewhere),
        notes,
    )


# -- over the rows of another statement -------------------------------------------------------------------------------


@dataclass
class Over:
    """The rows of another statement while one over them is read, put together where it has aggregates."""

    read: Reading
    tables: NamedRows
    source: InnerRows
    by: tuple[int, ...] | None  # None: every row for itself
    folds: list[Fold] = field(default_factory=list)
    elsewhere: list[AnyRows] = field(default_factory=list)
    named: dict[str, Outer] = field(default_factory=dict)

    @property
    def kinds(self) -> list[ValueKind]:
        if self.by is None:
            return self.source.kinds
        return kinds_of(len(self.by), len(self.folds))

    def given(self, node: exp.Expr) -> Outer | None:
        if isinstance(node, exp.Subquery):
            return _scalar(node, self.read, self.tables, self.elsewhere)
        if isinstance(node, exp.Column):
            return self._column(node)
        if self.by is None:
            return None
        fold = self._fold(node)
        if fold is None:
            return None
        if fold not in self.folds:
            self.folds.append(fold)
        return Given(len(self.by) + self.folds.index(fold))

    def _column(self, node: exp.Column) -> Outer:
        if not node.args.get("table") and node.name.lower() in self.named:
            return self.named[node.name.lower()]
        at = self.position(node)
        if self.by is None:
            return Given(at)
        if at in self.by:
            return Given(self.by.index(at))
        raise InvalidQuery(f"{node.name} is a column of many rows: put it into GROUP BY or an aggregate.")

    def position(self, node: exp.Expr) -> int:
        titles = [one.lower() for one in self.source.titles]
        if not isinstance(node, exp.Column) or node.args.get("table") or node.name.lower() not in titles:
            known = ", ".join(self.source.titles)
            raise InvalidQuery(f"{text(node)} is none of the columns of the statement in FROM: {known}.")
        return titles.index(node.name.lower())

    def _fold(self, node: exp.Expr) -> Fold | None:
        each = Over(self.read, self.tables, self.source, None, elsewhere=self.elsewhere)
        if isinstance(node, exp.Filter) and isinstance(node.expression, exp.Where):
            inner = self._fold(node.this)
            return None if inner is None else Fold(inner.kind, inner.node, truth(node.expression.this, each))
        kinds: dict[type[exp.Expr], FoldKind] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return Fold("count", None)
        if type(node) not in kinds or not only(node, "this"):
            return None
        of = value(node.this, each)
        if kind(of, each.kinds) != "number":
            raise InvalidQuery(f"{text(node.this)} is a text, where a number is needed.")
        return Fold(kinds[type(node)], of)

    def belongs(self, node: exp.Expr) -> Outer | None:
        columns = range(len(self.source.kinds)) if self.by is None else self.by
        titled = {self.source.titles[i].lower(): known for i in columns if (known := group_at(self.source, i))}
        groups = [group for select in self.source.selects for group in select.groups]
        return belongs(node, titled, groups, self.read)


def _over_rows(select: exp.Select, source: InnerRows, read: Reading, tables: NamedRows) -> InnerRows | None:
    _check_numbers(source.selects, read.domain)
    if select.args.get("distinct"):
        raise InvalidQuery("DISTINCT is for SELECT DISTINCT a, b FROM data; the rows of a statement differ already.")
    each = Over(read, tables, source, None)
    where = select.args.get("where")
    grouping = select.args.get("group") or exp.Group()
    if not only(grouping, "expressions"):
        raise InvalidQuery(f"{text(grouping)} is not answered here. {ALLOWED}")
    chosen = None
    with read.attempt(where):
        chosen = truth(where.this, each) if where else None
    folded = bool(grouping.expressions) or any(aggregates(item) for item in select.expressions)
    scope = each
    if folded:
        by = list[int]()
        for node in grouping.expressions:
            with read.attempt(node):
                at = position(node, len(select.expressions))
                by.append(each.position(node if at is None else select.expressions[at].unalias()))
        if any(source.kinds[i] != "text" for i in by):
            raise InvalidQuery("rows are put together by their labels, not by their values.")
        scope = Over(read, tables, source, tuple(by), elsewhere=each.elsewhere)
    shown = _shown(select, scope, source.titles)
    ending = ending_of(select, scope, shown)
    if read.mistakes:
        return None
    having = ending.having
    over: AnyRows = source
    if folded:
        over = Folded(source, scope.by or (), tuple(scope.folds), chosen, elsewhere=tuple(scope.elsewhere))
    elif chosen is not None:
        having = chosen if having is None else Operation("and", (chosen, having))
    others = tuple(scope.elsewhere)
    return Derived(over, tuple(shown), having, tuple(ending.sort), ending.limit, ending.offset, others, source.notes)


# -- what both have ---------------------------------------------------------------------------------------------------


def _shown(select: exp.Select, scope: Inner | Over, columns: Iterable[str]) -> list[DerivedColumn]:
    """The columns of the select list. One with an alias that no column has is known by it to those that follow."""
    shown, taken = list[DerivedColumn](), set(map(str.lower, columns))
    for item in select.expressions:
        if isinstance(item, exp.Star) and isinstance(scope, Over) and scope.by is None:
            shown += [DerivedColumn(name, Given(i)) for i, name in enumerate(scope.source.titles)]
            continue
        node: Outer = Constant(None)  # stands for what is wrong
        with scope.read.attempt(item):
            node = value(item.unalias(), scope)
        shown.append(DerivedColumn(title(item), node, bool(item.alias)))
        if item.alias and item.alias.lower() not in taken:
            scope.named[item.alias.lower()] = node
    scope.named = {one.title.lower(): one.node for one in shown if one.named}
    return shown


def _scalar(node: exp.Subquery, read: Reading, tables: NamedRows, elsewhere: list[AnyRows]) -> Outer:
    """A sub-select in the place of a number: it has one row and one value."""
    if not isinstance(node.this, exp.Select) or not only(node, "this"):
        raise InvalidQuery(f"{text(node)} is not answered here; a sub-select in the place of a number has one value.")
    found = rows_of(node.this, read, tables)
    if found is None:
        read.raise_mistakes()
    assert found is not None
    if found.kinds != ["number"] or found.grouped:
        raise InvalidQuery("a sub-select in the place of a number has one row and one value.")
    _check_numbers(found.selects, read.domain)
    return _one_of(elsewhere, found)


def _check_numbers(selects: Iterable[Select], domain: Domain) -> None:
    """Refuse quantiles that something cannot be worked out from."""
    for column in (column for select in selects for column in select.columns):
        if isinstance(column.value, Quantile):
            column.value.check_number(domain)


def _one_of(elsewhere: list[AnyRows], found: AnyRows) -> Elsewhere:
    if found not in elsewhere:
        elsewhere.append(found)
    return Elsewhere(elsewhere.index(found))
