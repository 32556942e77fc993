"""What a statement groups by: declared columns, or wider bins of them. Called by `sql.statement` and `sql.ending`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import GroupBy
from tacit.model.calculation import Belongs
from tacit.model.description import describe
from tacit.model.query import Query
from tacit.model.sql.calculation import ALLOWED
from tacit.model.sql.condition import condition
from tacit.model.sql.reading import Reading, column, only, plain_value, stripped, text

MAX_CELLS = 2**20  # of a result


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
    titles = {group.title.lower(): group for _, group in items}
    found = list[GroupBy]()
    for node in grouping.expressions:
        with read.attempt(node):
            found.append(_grouped(node, select, titles, read))
    keys = [(group.name, group.width) for group in found]
    listed = [group for _, group in items if (group.name, group.width) in keys]
    if len({group.name for group in found}) < len(found) or len({group.name for group in listed}) < len(listed):
        raise InvalidQuery("a table groups by each of its columns once.")
    return listed + [g for g in found if (g.name, g.width) not in [(one.name, one.width) for one in listed]]


def _safe_group(item: exp.Expr, read: Reading) -> GroupBy | None:
    """The group that an item of the select list is; what is wrong with it is said when the item is read."""
    try:
        return group_of(item.unalias(), item.alias if isinstance(item, exp.Alias) else "", read)
    except InvalidQuery:
        return None


def _grouped(node: exp.Expr, select: exp.Select, titles: Mapping[str, GroupBy], read: Reading) -> GroupBy:
    """An item of GROUP BY, which may be a position or an alias too."""
    at = position(node, len(select.expressions))
    if at is not None:
        node = select.expressions[at].unalias()
        group = group_of(node, select.expressions[at].alias, read)
    else:
        alias = node.name.lower() if isinstance(node, exp.Column) and not node.args.get("table") else ""
        alias = "" if alias in map(str.lower, read.domain) else alias
        items = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}
        node = node if alias in titles else items.get(alias, node)
        group = titles.get(alias) or group_of(node, "", read)
    if group is None and isinstance(stripped(node), exp.Case | exp.If):
        raise InvalidQuery(
            f"{text(node)} is nothing to group by: groups are declared columns, or wider bins of them. Ask for a value "
            "of each side, like COUNT(*) FILTER (WHERE …), or group by the column itself."
        )
    if group is None:
        raise InvalidQuery(f"{text(node)} is nothing to group by. {ALLOWED}")
    return group


def group_of(node: exp.Expr, alias: str, read: Reading) -> GroupBy | None:
    """A column to group by, or bins of it: FLOOR(age / 10) * 10, age / 10 * 10, age // 10 * 10."""
    if isinstance(node, exp.Column):
        name = column(node, read)
        return GroupBy(name, alias or name)
    product = stripped(node)
    if not isinstance(product, exp.Mul):
        return None
    inner, factor = stripped(product.this), product.expression
    if isinstance(factor, exp.Floor | exp.Div | exp.IntDiv):
        inner, factor = factor, product.this
    floor = isinstance(inner, exp.Floor) and only(inner, "this")
    quotient = stripped(inner.this) if floor else inner
    if not isinstance(quotient, exp.Div | exp.IntDiv) or not isinstance(stripped(quotient.this), exp.Column):
        return None
    name = column(stripped(quotient.this), read)
    width, again = plain_value(stripped(quotient.expression)), plain_value(stripped(factor))
    attribute = read.domain[name]
    if attribute.kind not in ("integer", "numeric"):
        raise InvalidQuery(f"{name} is not a number, so it has no bins to widen; group by {name} itself.")
    if not isinstance(width, int | float) or not 0 < width < 1e300 or width != again:
        raise InvalidQuery(f"bins are written FLOOR({name} / 10) * 10, with the same number twice.")
    if not floor and (attribute.kind == "numeric" or attribute.edge(0) < 0):
        raise InvalidQuery(f"write FLOOR({name} / {width}) * {width}: without FLOOR engines do not agree on it.")
    return GroupBy(name, alias or name, width)


def check_size(groups: list[GroupBy] | tuple[GroupBy, ...], read: Reading) -> None:
    cells = math.prod(read.domain[group.name].size for group in groups)
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the result would have up to {cells:,} rows; the most is {MAX_CELLS:,}.")
    for group in groups:
        group.parts(read.domain) if group.width is not None else None  # refuses a width that cuts bins


def position(node: exp.Expr, columns: int) -> int | None:
    """The column of the statement that a number in GROUP BY or ORDER BY stands for."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    found = plain_value(node)
    if not isinstance(found, int) or not 1 <= found <= columns:
        raise InvalidQuery(f"there is no column {text(node)}; the statement has {columns}.")
    return found - 1


def belongs(node: exp.Expr, names: Mapping[str, str], groups: list[GroupBy], read: Reading) -> Belongs | None:
    """A condition on the attributes of groups alone, by the names that they go by; None if it is about more."""
    columns = list(node.find_all(exp.Column))
    if not columns or node.find(exp.AggFunc, exp.Anonymous, exp.Subquery):
        return None
    if any(one.args.get("table") or one.name.lower() not in names for one in columns):
        return None
    renamed = node.copy()
    for one in renamed.find_all(exp.Column):
        one.this.set("this", names[one.name.lower()])
    found = condition(renamed, read)
    meets, fails = (found.truth(read.domain, wanted) for wanted in (True, False))
    widths = [group for group in groups if group.width is not None]
    for group in widths:
        for query in (meets, fails):
            if not _whole_groups(query, group, read):
                raise InvalidQuery(f"{text(node)} cuts the groups of {group.name}; choose rows with WHERE.")
    return Belongs(meets, fails, describe(meets, read.domain))


def _whole_groups(query: Query, group: GroupBy, read: Reading) -> bool:
    if group.name not in query.scope:
        return True
    names = [group.name, *(name for name in query.scope if name != group.name)]
    table = query.table(names, read.domain.shape_of(names))
    return all((table[part.start : part.stop] == table[part.start]).all() for part in group.parts(read.domain))
