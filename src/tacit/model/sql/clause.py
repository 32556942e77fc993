"""The clauses of a statement: items of its select list, a view in FROM, and HAVING, ORDER BY, LIMIT and OFFSET.

For `sql.statement` alone. A view is some rows of data as they are, under a name. Rows are never shown, so a statement
over a view is one over data with more conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.calculation import Outer
from tacit.model.derivation import DerivedColumn, Sort
from tacit.model.sql.calculation import Scope, truth, value
from tacit.model.sql.group import position
from tacit.model.sql.reading import Reading, only, plain_value, text

# -- items of a select list -------------------------------------------------------------------------------------------


def title(item: exp.Expr) -> str:
    return item.alias if isinstance(item, exp.Alias) else text(item.unalias()) or "value"


def asks(item: exp.Expr) -> bool:
    """Whether something of a select list is more than a column, or a value that was written."""
    return item.find(exp.AggFunc, exp.Anonymous, exp.Subquery, exp.WithinGroup) is not None


def aggregates(item: exp.Expr) -> bool:
    """Whether something of a select list puts rows together; what a sub-select does is its own."""
    found = item.find_all(exp.AggFunc)
    return any(node.parent_select is item.parent_select for node in found)


# -- a view in FROM ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Some rows of data, as they are: `SELECT * FROM data WHERE …`, for a statement that is about these.

    conditions: what they meet. columns: what they are shown with, in lower case; None for all.
    """

    conditions: tuple[exp.Expr, ...] = ()
    columns: frozenset[str] | None = None


def narrow(select: exp.Select, view: View) -> None:
    """Let a statement over a view be one over data, with the conditions of the view beside its own."""
    if view.columns is not None:
        named = {item.alias.lower() for item in select.expressions if item.alias}
        for node in select.find_all(exp.Column):
            if node.parent_select is select and node.name.lower() not in view.columns | named:
                raise InvalidQuery(f"{node.name} is not among the columns of what stands in FROM.")
    for condition in view.conditions:
        select.where(condition.copy(), copy=False)


def unqualified(select: exp.Select, names: set[str]) -> None:
    """Columns by their plain names: data.age is age. Sub-selects have names of their own, and were read before."""
    for node in select.find_all(exp.Column):
        qualified = node.args.get("table") and not node.args.get("db")
        if qualified and node.text("table").lower() in names and node.parent_select is select:
            node.set("table", None)


# -- the end ----------------------------------------------------------------------------------------------------------


class Read(Scope, Protocol):
    """A scope that keeps what is wrong with the statement."""

    read: Reading


@dataclass
class Ending:
    """HAVING, ORDER BY, LIMIT and OFFSET."""

    having: Outer | None = None
    sort: list[Sort] = field(default_factory=list)
    limit: int | None = None
    offset: int = 0


def ending_of(select: exp.Select, scope: Read, shown: list[DerivedColumn]) -> Ending:
    read, found = scope.read, Ending()
    if not any(select.args.get(clause) for clause in ("having", "order", "limit", "offset")):
        return found
    having = select.args.get("having")
    with read.attempt(having):
        found.having = truth(having.this, scope) if having else None
    for node in (select.args.get("order") or exp.Order()).expressions:
        with read.attempt(node):
            key, down = (node.this, bool(node.args.get("desc"))) if isinstance(node, exp.Ordered) else (node, False)
            at = position(key, len(select.expressions))
            at = _by_function(key, select, read) if at is None else at
            found.sort.append(Sort(value(key, scope) if at is None else shown[at].node, down))
    with read.attempt():
        found.limit = _whole(select.args.get("limit"), "LIMIT")
    with read.attempt():
        found.offset = _whole(select.args.get("offset"), "OFFSET") or 0
    return found


def _by_function(key: exp.Expr, select: exp.Select, read: Reading) -> int | None:
    """The column without an alias that a function gives, by the function's name: PostgreSQL calls COUNT(*) count."""
    if not isinstance(key, exp.Column) or key.args.get("table"):
        return None
    name = key.name.lower()
    if name in map(str.lower, (*read.domain, *(item.alias for item in select.expressions))):
        return None
    items = enumerate(select.expressions)
    found = [at for at, item in items if isinstance(item, exp.AggFunc) and item.sql_name().lower() == name]
    if len(found) > 1:
        raise InvalidQuery(f"ORDER BY {name} could be any of {len(found)} columns; give one a name with AS.")
    return found[0] if found else None


def _whole(node: exp.Expr | None, word: str) -> int | None:
    if node is None:
        return None
    number = plain_value(node.expression) if only(node, "expression") else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**53:
        raise InvalidQuery(f"{word} takes a whole number from 0.")
    return number
