"""CASE and IF of a statement, which are one thing. For the other modules of `sql` alone."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from tacit.model.sql.reading import only, stripped


class WrittenCase(NamedTuple):
    """Conditions and what each of them gives: the first that is met. `otherwise` is None where that is NULL."""

    branches: list[tuple[exp.Expr, exp.Expr]]
    otherwise: exp.Expr | None


def choice(node: exp.Expr) -> WrittenCase | None:
    """What CASE WHEN c THEN a ELSE b END, CASE x WHEN 1 THEN a ELSE b END or IF(c, a, b) says; None for other nodes."""
    node = stripped(node)
    if isinstance(node, exp.If) and only(node, "this", "true", "false"):
        return WrittenCase([(node.this, node.args["true"])], _known(node.args.get("false")))
    if not isinstance(node, exp.Case) or not only(node, "this", "ifs", "default"):
        return None
    subject = node.args.get("this")
    branches = [
        (one.this if subject is None else exp.EQ(this=subject.copy(), expression=one.this.copy()), one.args["true"])
        for one in node.args.get("ifs") or ()
    ]
    return WrittenCase(branches, _known(node.args.get("default")))


def _known(node: exp.Expr | None) -> exp.Expr | None:
    return None if isinstance(node, exp.Null) else node
