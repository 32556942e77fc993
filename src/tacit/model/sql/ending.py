"""The end of a statement: HAVING, ORDER BY, LIMIT and OFFSET. For `sql.statement` alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.calculation import Outer
from tacit.model.derivation import DerivedColumn, Sort
from tacit.model.sql.calculation import Scope, truth, value
from tacit.model.sql.group import position
from tacit.model.sql.reading import Reading, only, plain_value


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
