"""Rows of data as they are, under a name: what `SELECT * FROM data WHERE …` is inside another statement.

Called by `statement` alone. Rows are never shown, so a statement over a view is one over data with more conditions.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tacit.errors import InvalidQuery


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
