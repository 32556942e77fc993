"""Expressions over released values: arithmetic, functions, CASE, HAVING. Called by `sql.statement` alone."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.calculation import Case, Constant, End, Ending, Operation, Outer, ValueKind, kind
from tacit.model.sql.idiom import instead_of
from tacit.model.sql.reading import COMPARISONS, WrittenCase, choice, finite, only, plain_value, text, uncast
from tacit.model.sql.statistic import FUNCTIONS

MAX_POWER = 8
_LIKENESS = 0.75  # of a name that was probably misspelled: AVGE is AVG, and GEOMEAN is not LARGEST_MEAN
ALLOWED = "Ask SELECT COUNT(*) FROM data WHERE … or SELECT a, b, COUNT(*) FROM data WHERE … GROUP BY a, b."
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Neg: "negative", exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Sqrt: "sqrt", exp.Ln: "ln",
    exp.Exp: "exp",
}  # fmt: skip
_SEVERAL: dict[type[exp.Expr], str] = {exp.Least: "least", exp.Greatest: "greatest", exp.Coalesce: "coalesce"}
_TRUTHS: tuple[type[exp.Expr], ...] = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.Between, exp.In, exp.Is, exp.Boolean, *COMPARISONS,
)  # fmt: skip
ENDS: dict[str, Ending] = {"ERROR": "error", "LOW": "low", "HIGH": "high", "CONFIDENCE": "confidence"}
_OVER = (
    "over released values there are + - * /, ABS, ROUND, FLOOR, CEIL, SQRT, LN, EXP, POWER, LEAST, GREATEST, COALESCE, "
    "NULLIF, CASE, comparisons, AND, OR, NOT, and ERROR, LOW, HIGH, CONFIDENCE"
)
_NAMES = [
    "count", "sum", "avg", "median", "quantile_cont", "percentile_cont", "count_if",
    *map(str.lower, FUNCTIONS), *map(str.lower, ENDS),
]  # fmt: skip


class Scope(Protocol):
    """What the names and aggregates of an expression stand for."""

    @property
    def kinds(self) -> Sequence[ValueKind]:
        """The kinds of the columns that expressions are over."""

    def given(self, node: exp.Expr) -> Outer | None:
        """What a column, an aggregate or a sub-select stands for; None for anything else."""

    def belongs(self, node: exp.Expr) -> Outer | None:
        """A condition on groups alone; None if it is about something else too."""


def value(node: exp.Expr, scope: Scope) -> Outer:
    """An expression of the select list or of ORDER BY: a number, or a text."""
    if isinstance(uncast(node), _TRUTHS):
        met = truth(node, scope)
        return Case(((met, Constant("true")), (Operation("not", (met,)), Constant("false"))), Constant(None))
    return _of_kind(node, scope)


def truth(node: exp.Expr, scope: Scope) -> Outer:
    """A condition on released values and groups."""
    node = uncast(node)
    group = scope.belongs(node)
    if group is not None:
        return group
    if isinstance(node, exp.And | exp.Or):
        parts = tuple(truth(part, scope) for part in node.flatten())
        return Operation("and" if isinstance(node, exp.And) else "or", parts)
    if isinstance(node, exp.Not):
        return Operation("not", (truth(node.this, scope),))
    if isinstance(node, exp.Boolean):
        return Operation("=", (Constant(1), Constant(1 if node.this else 0)))
    if type(node) in COMPARISONS:
        return Operation(COMPARISONS[type(node)], (_number(node.this, scope), _number(node.expression, scope)))
    if isinstance(node, exp.EQ | exp.NEQ):
        same = _same(_of_kind(node.this, scope), _of_kind(node.expression, scope), scope)
        return same if isinstance(node, exp.EQ) else Operation("not", (same,))
    if isinstance(node, exp.Between) and only(node, "this", "low", "high"):
        this, low, high = (_number(node.args[part], scope) for part in ("this", "low", "high"))
        return Operation("and", (Operation("<=", (low, this)), Operation("<=", (this, high))))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        this = _of_kind(node.this, scope)
        return Operation("or", tuple(_same(this, _of_kind(one, scope), scope) for one in node.expressions))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return Operation("is null", (_number(node.this, scope),))
    raise InvalidQuery(f"{text(node)} is no condition on released values; {_OVER}.")


def _same(a: Outer, b: Outer, scope: Scope) -> Operation:
    kinds = {kind(a, scope.kinds), kind(b, scope.kinds)}
    if len(kinds) > 1:
        raise InvalidQuery("a text is compared with a text, and a number with a number.")
    return Operation("same text" if kinds == {"text"} else "=", (a, b))


def _number(node: exp.Expr, scope: Scope) -> Outer:
    found = _of_kind(node, scope)
    if kind(found, scope.kinds) != "number":
        raise InvalidQuery(f"{text(node)} is a text, where a number is needed.")
    return found


def _of_kind(node: exp.Expr, scope: Scope) -> Outer:
    """A number or a text, whichever it is."""
    node = uncast(node)
    given = scope.given(node)
    if given is not None:
        return given
    if isinstance(node, exp.Null):
        return Constant(None)
    if isinstance(node, exp.Literal):
        found = plain_value(node)
        return Constant(found if isinstance(found, str) else finite(found))
    if type(node) in _ARITHMETIC:
        return Operation(_ARITHMETIC[type(node)], (_number(node.this, scope), _number(node.expression, scope)))
    if type(node) in _FUNCTIONS and only(node, "this"):
        return Operation(_FUNCTIONS[type(node)], (_number(node.this, scope),))
    if type(node) in _SEVERAL and only(node, "this", "expressions", "ignore_nulls"):
        return Operation(_SEVERAL[type(node)], tuple(_number(one, scope) for one in (node.this, *node.expressions)))
    if isinstance(node, exp.Nullif):
        return Operation("nullif", (_number(node.this, scope), _number(node.expression, scope)))
    if isinstance(node, exp.Round) and only(node, "this", "decimals"):
        digits = node.args.get("decimals")
        return Operation("round", (_number(node.this, scope),), _whole(digits, 0, 15, "ROUND takes digits"))
    if isinstance(node, exp.Pow):
        found = _whole(node.expression, 1, MAX_POWER, "POWER takes a whole power")
        return Operation("power", (_number(node.this, scope),), found)
    written = choice(node)
    if written is not None:
        return _case(node, written, scope)
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in ENDS and only(node, "this", "expressions"):
        return _end(ENDS[str(node.this).upper()], node, scope)
    if instead := instead_of(node):
        raise InvalidQuery(instead)
    if isinstance(node, exp.AggFunc | exp.Star | exp.Anonymous):
        raise InvalidQuery(f"{text(node)} is not answered here.{_near(node)} {ALLOWED}")
    raise InvalidQuery(f"{text(node)} is not answered here; {_OVER}.")


def _near(node: exp.Expr) -> str:
    """The function that was probably meant."""
    unknown = isinstance(node, exp.Anonymous) and node.name.lower() not in _NAMES
    near = difflib.get_close_matches(node.name.lower(), _NAMES, n=1, cutoff=_LIKENESS) if unknown else []
    return f" Did you mean {near[0].upper()}?" if near else ""


def _end(what: Ending, node: exp.Anonymous, scope: Scope) -> End:
    given = node.expressions
    if len(given) != 1 and not (what == "confidence" and not given):
        raise InvalidQuery(f"{what.upper()} takes one value, like {what.upper()}(COUNT(*)).")
    return End(what, _number(given[0], scope) if given else None)


def _case(node: exp.Expr, written: WrittenCase, scope: Scope) -> Case:
    found = tuple((truth(met, scope), _of_kind(then, scope)) for met, then in written.branches)
    default = written.otherwise
    otherwise = Constant(None) if default is None else _of_kind(default, scope)
    given = [one for one in (*(value for _, value in found), otherwise) if one != Constant(None)]
    if len({kind(one, scope.kinds) for one in given}) > 1:
        raise InvalidQuery(f"{text(node)} gives texts and numbers; a column has one of them.")
    return Case(found, otherwise)


def _whole(node: exp.Expr | None, least: int, most: int, words: str) -> int:
    found = 0 if node is None else plain_value(node)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise InvalidQuery(f"{words}: a whole number from {least} to {most}.")
    return found
