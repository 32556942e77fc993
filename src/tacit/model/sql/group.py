"""What a statement groups by: declared columns, or wider bins of them. Called by `sql.statement` and `sql.clause`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import GroupBy
from tacit.model.attribute import Attribute
from tacit.model.bands import Bands
from tacit.model.calculation import Belongs
from tacit.model.description import describe
from tacit.model.query import Query
from tacit.model.sql.band import check_cells
from tacit.model.sql.calculation import ALLOWED
from tacit.model.sql.condition import condition, grouping
from tacit.model.sql.idiom import instead_of
from tacit.model.sql.reading import Reading, choice, column, only, plain_value, text


def groups_of(select: exp.Select, read: Reading) -> list[GroupBy]:
    """The groups of a statement: those of the select list, and those of GROUP BY alone. Each is held against both."""
    items = [(item, group) for item in select.expressions if (group := _safe_group(item, read)) is not None]
    if select.args.get("distinct"):
        return [group for _, group in items]
    grouping = select.args.get("group")
    if grouping is None:
        return []  # an item that could be a group is refused where it is read
    if not only(grouping, "expressions"):  # ROLLUP, CUBE, ALL and their kind
        raise InvalidQuery(f"{text(grouping)} is not answered here. {ALLOWED}")
    found = list[GroupBy]()
    for node in grouping.expressions:
        with read.attempt(node):
            found.append(_grouped(node, select, read))
    keys = [group.by for group in found]
    listed = [group for _, group in items if group.by in keys]
    if len({group.name for group in found}) < len(found) or len({group.name for group in listed}) < len(listed):
        raise InvalidQuery("a table groups by each of its columns once.")
    return listed + [group for group in found if group.by not in [one.by for one in listed]]


def _safe_group(item: exp.Expr, read: Reading) -> GroupBy | None:
    """The group that an item of the select list is; what is wrong with it is said when the item is read."""
    trial = Reading(read.domain, read.meter, matched=read.matched, grouped=read.grouped, declared=read.declared)
    try:
        found = group_of(item.unalias(), item.alias if isinstance(item, exp.Alias) else "", trial)
    except InvalidQuery:
        return None
    return None if trial.mistakes else found


def group_among(node: exp.Expr, groups: Sequence[GroupBy], read: Reading) -> GroupBy | None:
    """The group that an expression of the select list is.

    A CASE or a COALESCE may be about released values as well, so it is a group only where that is grouped by.
    """
    if choice(node) is None and not isinstance(node, exp.Coalesce):
        return group_of(node, "", read)
    found = _safe_group(node, read) if groups else None
    return found if found is not None and found.by in [group.by for group in groups] else None


def _grouped(node: exp.Expr, select: exp.Select, read: Reading) -> GroupBy:
    """An item of GROUP BY, which may be a position or an alias too."""
    at = position(node, len(select.expressions))
    if at is not None:
        node = select.expressions[at].unalias()
        group = group_of(node, select.expressions[at].alias, read)
    else:
        alias = node.name.lower() if isinstance(node, exp.Column) and not node.args.get("table") else ""
        alias = "" if alias in map(str.lower, read.domain) else alias
        items = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}
        node = items.get(alias, node)
        group = group_of(node, alias if alias in items else "", read)
    if group is None:
        raise InvalidQuery(instead_of(node) or f"{text(node)} is nothing to group by. {ALLOWED}")
    return group


def group_of(node: exp.Expr, alias: str, read: Reading) -> GroupBy | None:
    """A column to group by, or groups of its values: FLOOR(age / 10) * 10, YEAR(d), a CASE."""
    if isinstance(node, exp.Column):
        name = column(node, read)
        return GroupBy(name, alias or name)
    found = grouping(node, read)
    if found is None or found.bands is None:
        return found
    if node not in read.declared:
        read.declared[node] = _as_declared(found.bands, read.domain[found.name])
    if read.declared[node]:
        return GroupBy(found.name, alias or found.name)
    return GroupBy(found.name, alias or found.title, found.bands)


def _as_declared(bands: Bands, attribute: Attribute) -> bool:
    """Whether groups are the declared values under their own labels; no label is made where they are not."""
    if not bands.one_by_one or bands.null != attribute.missing or len(bands.labels) != attribute.size:
        return False
    return all(attribute.label(i) == label for i, label in enumerate(bands.labels))


def check_size(groups: list[GroupBy] | tuple[GroupBy, ...], read: Reading) -> None:
    check_cells(math.prod(read.domain[group.name].size for group in groups))


def position(node: exp.Expr, columns: int) -> int | None:
    """The column of the statement that a number in GROUP BY or ORDER BY stands for."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    found = plain_value(node)
    if not isinstance(found, int) or not 1 <= found <= columns:
        raise InvalidQuery(f"there is no column {text(node)}; the statement has {columns}.")
    return found - 1


def belongs(node: exp.Expr, titled: Mapping[str, GroupBy], groups: Iterable[GroupBy], read: Reading) -> Belongs | None:
    """A condition on groups alone, by the names that they go by; None if it is about more."""
    declared = {name.lower() for name in read.domain}
    own = {title: group for title, group in titled.items() if group.bands is not None and title not in declared}
    names = {title: group.name for title, group in titled.items() if group.bands is None or title == group.name.lower()}
    columns = list(node.find_all(exp.Column))
    if not columns or node.find(exp.AggFunc, exp.Anonymous, exp.Subquery):
        return None
    if any(one.args.get("table") or one.name.lower() not in names.keys() | own.keys() for one in columns):
        return None
    renamed = node.copy()
    for one in renamed.find_all(exp.Column):
        if one.name.lower() not in own:
            one.this.set("this", names[one.name.lower()])
    found = condition(renamed, replace(read, groups=own))
    meets, fails = (found.truth(read.domain, wanted) for wanted in (True, False))
    for group in groups:
        if any(not _whole_groups(query, group, read) for query in (meets, fails)):
            raise InvalidQuery(f"{text(node)} cuts the groups of {group.name}; choose rows with WHERE.")
    return Belongs(meets, fails, describe(meets, read.domain))


def _whole_groups(query: Query, group: GroupBy, read: Reading) -> bool:
    if group.bands is None or group.name not in query.scope:
        return True
    names = [group.name, *(name for name in query.scope if name != group.name)]
    table = query.table(names, read.domain.shape_of(names))
    return all((table[list(part)] == table[part[0]]).all() for part in group.bands.parts)
