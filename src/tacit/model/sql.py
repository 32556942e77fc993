"""SQL as a way of asking: SELECT COUNT(*) … WHERE … GROUP BY …, by an allow-list. The text never reaches an engine."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.expression import All, Among, Compare, Comparison, Expression, Not
from tacit.model.values import Value

MAX_LENGTH = 10_000
MAX_DEPTH = 40
_ALLOWED = "Ask SELECT COUNT(*) FROM data WHERE … or SELECT a, b, COUNT(*) FROM data WHERE … GROUP BY a, b."
_COMPARISONS: dict[type[exp.Expr], Comparison] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Select:
    """A parsed statement: the rows to count, and the attributes to group them by (none: one number)."""

    where: Expression
    group: tuple[str, ...]


def parse(text: str, domain: Domain) -> Select:
    """Read one statement about the declared attributes; refuse anything else with the place and a hint.

    >>> from tacit.model.attribute import category
    >>> parse("SELECT COUNT(*) FROM data WHERE sex = 'F'", Domain({"sex": category(["F", "M"])})).group
    ()
    """
    if len(text) > MAX_LENGTH:
        raise InvalidQuery(f"a statement has at most {MAX_LENGTH:,} characters; this one has {len(text):,}.")
    if _depth(text) > MAX_DEPTH:
        raise InvalidQuery(f"a statement nests at most {MAX_DEPTH} parentheses.")
    try:
        statements = sqlglot.parse(text, dialect="duckdb")
    except sqlglot.errors.ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise InvalidQuery(
            f"the statement cannot be read (line {place.get('line', 1)}, column {place.get('col', 1)}). {_ALLOWED}"
        ) from None
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise InvalidQuery(f"the statement cannot be read. {_ALLOWED}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise InvalidQuery(f"one SELECT statement is asked at a time. {_ALLOWED}")
    try:
        return _select(statements[0], domain)
    except RecursionError:
        raise InvalidQuery("the statement has too many conditions; list values with IN.") from None


def _select(select: exp.Select, domain: Domain) -> Select:
    for clause, given in select.args.items():
        if given and clause not in ("expressions", "from_", "where", "group"):
            raise InvalidQuery(f"{clause.strip('_').upper()} is not answered here. {_ALLOWED}")
    table = select.args.get("from_")
    if table is None or not isinstance(table.this, exp.Table) or table.this.sql().lower() != "data":
        raise InvalidQuery("there is one table, and it is called data: write FROM data.")
    columns, counts = [], 0
    for item in select.expressions:
        item = item.unalias()
        if isinstance(item, exp.Count) and isinstance(item.this, exp.Star):
            counts += 1
        elif isinstance(item, exp.Column):
            columns.append(_column(item, domain))
        else:
            raise InvalidQuery(f"{item.sql(dialect='duckdb')[:60]} is not answered here. {_ALLOWED}")
    group = [_column(item, domain) for item in (select.args["group"].expressions if select.args.get("group") else [])]
    if counts != 1 or set(columns) != set(group) or len(columns) != len(group):
        raise InvalidQuery(f"the statement has one COUNT(*), and each other column in GROUP BY too. {_ALLOWED}")
    where = select.args.get("where")
    return Select(_condition(where.this, domain) if where else All(()), tuple(columns))


def _condition(node: exp.Expr, domain: Domain) -> Expression:
    if isinstance(node, exp.Paren):
        return _condition(node.this, domain)
    if isinstance(node, exp.Not):
        return Not(_condition(node.this, domain))
    if isinstance(node, exp.And | exp.Or):
        # A long chain is a left-deep tree: flattened, so that a thousand conditions do not recurse.
        parts = tuple(_condition(part, domain) for part in node.flatten())
        return All(parts) if isinstance(node, exp.And) else Not(All(tuple(Not(part) for part in parts)))
    if isinstance(node, exp.Boolean):
        return All(()) if node.this else Not(All(()))
    if isinstance(node, exp.Column):
        name = _column(node, domain)
        if domain[name].kind != "boolean":
            raise InvalidQuery(f"{name} is not true or false; compare it with a value.")
        return Among(name, (True,))
    return _comparison(node, domain)


def _comparison(node: exp.Expr, domain: Domain) -> Expression:
    if isinstance(node, exp.EQ | exp.NEQ):
        name, value, _ = _sides(node, domain)
        equal = Among(name, (value,))
        return equal if isinstance(node, exp.EQ) else Not(equal)
    for kind, operator in _COMPARISONS.items():
        if isinstance(node, kind):
            name, value, mirrored = _sides(node, domain)
            return Compare(name, _MIRRORED[operator] if mirrored else operator, value)
    if isinstance(node, exp.Between):
        name = _column(node.this, domain)
        return All((Compare(name, ">=", _value(node.args["low"])), Compare(name, "<=", _value(node.args["high"]))))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return Among(_column(node.this, domain), tuple(_value(item) for item in node.expressions))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return Among(_column(node.this, domain), (None,))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        return Among(_column(node.this, domain), (bool(node.expression.this),))
    if node.find(exp.Select):
        raise InvalidQuery("sub-selects are not answered; declare a view in the data source.")
    raise InvalidQuery(
        f"{node.sql(dialect='duckdb')[:60]} is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, "
        "IN, IS NULL, AND, OR and NOT on the declared columns."
    )


def _sides(node: exp.Expr, domain: Domain) -> tuple[str, Value, bool]:
    """The column and the value of a comparison, and whether the value stands first."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        return _column(right, domain), _value(left), True
    return _column(left, domain), _value(right), False


def _column(node: exp.Expr, domain: Domain) -> str:
    if not isinstance(node, exp.Column) or node.args.get("table"):
        raise InvalidQuery(f"{node.sql(dialect='duckdb')[:60]} is not a declared column by its plain name.")
    meta = node.this.meta
    column = meta.get("col", 1) - (meta.get("end", 0) - meta.get("start", 0))
    return domain.resolve(node.name, where=f" (line {meta.get('line', 1)}, column {column})")


def _value(node: exp.Expr) -> Value:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        number = _value(node.this)
        assert isinstance(number, int | float)
        return -number
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE and node.this.is_string:
        return str(node.this.this)
    if not isinstance(node, exp.Literal):
        raise InvalidQuery(
            f"{node.sql(dialect='duckdb')[:60]} is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'."
        )
    text = str(node.this)
    if node.is_string:
        return text
    try:
        return int(text)
    except ValueError:
        return float(text)


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest
