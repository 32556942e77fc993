"""Items of a select list: what they are called, and whether they ask for anything. For `sql.statement` alone."""

from __future__ import annotations

from sqlglot import exp

from tacit.model.sql.reading import text


def title(item: exp.Expr) -> str:
    return item.alias if isinstance(item, exp.Alias) else text(item.unalias()) or "value"


def asks(item: exp.Expr) -> bool:
    """Whether something of a select list is more than a column, or a value that was written."""
    return item.find(exp.AggFunc, exp.Anonymous, exp.Subquery, exp.WithinGroup) is not None


def aggregates(item: exp.Expr) -> bool:
    """Whether something of a select list puts rows together; what a sub-select does is its own."""
    found = item.find_all(exp.AggFunc)
    return any(node.parent_select is item.parent_select for node in found)
