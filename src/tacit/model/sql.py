"""SQL as a way of asking: SELECT COUNT(*) … WHERE … GROUP BY …, by an allow-list. The text never reaches an engine."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.expression import All, Among, Compare, Comparison, Expression, Not
from tacit.model.values import Value

MAX_LENGTH = 10_000
MAX_DEPTH = 40
_ALLOWED = "Ask SELECT COUNT(*) FROM data WHERE … or SELECT a, b, COUNT(*) FROM data WHERE … GROUP BY a, b."
_COMPARISONS: dict[type[exp.Expr], Comparison] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_MIRRORED: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Every token a statement is made of, declared columns aside. The parser never sees another one: some of its own grammar
# (arrays, structs, joins) takes it a time that doubles with every level.
_TOKENS = frozenset(
    getattr(TokenType, name)
    for words in (
        "SELECT FROM WHERE GROUP_BY AND OR NOT IN BETWEEN IS ISNULL NOTNULL NULL UNKNOWN TRUE FALSE ALIAS DATE VAR",
        "EQ NEQ LT LTE GT GTE DASH PLUS STAR DOT COMMA L_PAREN R_PAREN DCOLON SEMICOLON NUMBER STRING IDENTIFIER",
    )
    for name in words.split()
)


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
    try:
        tokens = DuckDB().tokenize(text)
        _check(tokens, domain)
        statements = DuckDB().parser().parse(tokens, text)
    except InvalidQuery:
        raise
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise InvalidQuery(
            f"the statement cannot be read (line {place.get('line', 1)}, column {place.get('col', 1)}). {_ALLOWED}"
        ) from None
    except Exception:  # text on which the parser itself fails, with whatever error, is a statement that cannot be read
        raise InvalidQuery(f"the statement cannot be read. {_ALLOWED}") from None
    asked = [node for node in statements if node is not None and not isinstance(node, exp.Semicolon)]
    if len(asked) != 1 or not isinstance(asked[0], exp.Select):
        raise InvalidQuery(f"one SELECT statement is asked at a time. {_ALLOWED}")
    try:
        return _select(asked[0], domain)
    except RecursionError:
        raise InvalidQuery("the statement has too many conditions; list values with IN.") from None


def _select(select: exp.Select, domain: Domain) -> Select:
    for clause, given in select.args.items():
        if given and clause not in ("expressions", "from_", "where", "group"):
            raise InvalidQuery(f"{clause.strip('_').upper()} is not answered here. {_ALLOWED}")
    table = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(table, exp.Table) or not _only(table, "this") or table.name.lower() != "data":
        raise InvalidQuery("there is one table, and it is called data: write FROM data.")
    columns, counts = [], 0
    for item in select.expressions:
        item = item.unalias()
        if isinstance(item, exp.Count) and _text(item) == "COUNT(*)":
            counts += 1
        elif isinstance(item, exp.Column):
            columns.append(_column(item, domain))
        else:
            raise InvalidQuery(f"{_text(item)} is not answered here. {_ALLOWED}")
    grouping = select.args.get("group") or exp.Group()
    if not _only(grouping, "expressions"):  # ROLLUP, CUBE, ALL and their kind
        raise InvalidQuery(f"{_text(grouping)} is not answered here. {_ALLOWED}")
    group = [_column(item, domain) for item in grouping.expressions]
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
    if isinstance(node, exp.Between) and _only(node, "this", "low", "high"):
        name = _column(node.this, domain)
        return All((Compare(name, ">=", _value(node.args["low"])), Compare(name, "<=", _value(node.args["high"]))))
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return Among(_column(node.this, domain), tuple(_value(item) for item in node.expressions))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return Among(_column(node.this, domain), (None,))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        name = _column(node.this, domain)  # IS TRUE is false, not unknown, where the value is missing
        return All((Among(name, (bool(node.expression.this),)), Not(Among(name, (None,)))))
    raise InvalidQuery(
        f"{_text(node)} is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, "
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
        raise InvalidQuery(f"{_text(node)} is not a declared column by its plain name.")
    meta = node.this.meta
    return domain.resolve(node.name, where=_place(*(meta.get(word, 1) for word in ("line", "col", "start", "end"))))


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
        raise InvalidQuery(f"{_text(node)} is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.")
    text = str(node.this)
    if node.is_string:
        return text
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InvalidQuery(f"{text[:60]} is not a number that can be read.")


def _text(node: exp.Expr) -> str:
    """A piece of the statement for a message."""
    try:
        return node.sql(dialect="duckdb", comments=False).strip()[:60]
    except Exception:  # what can be read cannot always be written: DATE()
        return "this expression"


def _only(node: exp.Expr, *allowed: str) -> bool:
    """Whether a node says nothing beyond these of its arguments."""
    return all(name in allowed for name, given in node.args.items() if given)


def _check(tokens: list[Token], domain: Domain) -> None:
    columns = {name.lower() for name in domain}
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth > MAX_DEPTH:
            raise InvalidQuery(f"a statement nests at most {MAX_DEPTH} parentheses.")
        place = _place(token.line, token.col, token.start, token.end)
        if token.token_type == TokenType.SELECT and depth > 0:
            raise InvalidQuery(f"sub-selects are not answered{place}; declare a view in the data source.")
        alias = before is not None and before.token_type == TokenType.ALIAS
        call = after is not None and after.token_type == TokenType.L_PAREN
        column = token.text.lower() in columns and not call
        if token.token_type in _TOKENS:
            continue
        if not alias and not column:
            raise InvalidQuery(f"{token.text[:60]} is not answered here{place}. {_ALLOWED}")
        token.token_type = TokenType.IDENTIFIER  # as if quoted: a column or an alias called order or row


def _place(line: int, col: int, start: int, end: int) -> str:
    """Where a word begins; the parser says where it ends."""
    return f" (line {line}, column {col - (end - start)})"
