"""SQL as a way of asking, by an allow-list: counts, fractions, sums, means, quantiles and statistics.

The text never reaches an engine: it is read into an `Ask` about the declared attributes.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import replace

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from tacit.errors import InvalidQuery
from tacit.model.ask import Ask, Column, Count, Group, Order, Select
from tacit.model.domain import Domain
from tacit.model.expression import All, Expression
from tacit.model.sql.aggregate import aggregate
from tacit.model.sql.condition import Reading, column, condition, only, place, plain_value, stripped, text
from tacit.model.sql.parts import with_attributes
from tacit.model.sql.statistic import FUNCTIONS, statistic

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse", "parse_where"]

MAX_LENGTH = 10_000
MAX_DEPTH = 40
MAX_VALUES = 20  # aggregates of one statement
MAX_CELLS = 2**20  # of a result
ALLOWED = "Ask SELECT COUNT(*) FROM data WHERE … or SELECT a, b, COUNT(*) FROM data WHERE … GROUP BY a, b."
_CLAUSES = ("expressions", "from_", "where", "group", "order", "limit", "offset", "distinct")


def _kinds(*names: str) -> frozenset[TokenType]:
    return frozenset(getattr(TokenType, name) for listed in names for name in listed.split())


# Every token a statement is made of, declared columns aside. Some of the parser's own grammar (arrays, structs, joins)
# takes it a time that doubles with every level, so what is not on the list never reaches it.
_TOKENS = _kinds(
    "SELECT FROM WHERE GROUP_BY AND OR NOT IN BETWEEN IS ISNULL NOTNULL NULL UNKNOWN TRUE FALSE ALIAS DATE VAR",
    "EQ NEQ LT LTE GT GTE DASH PLUS STAR DOT COMMA L_PAREN R_PAREN DCOLON SEMICOLON NUMBER STRING IDENTIFIER",
    "LIKE ILIKE ESCAPE ORDER_BY ASC DESC LIMIT OFFSET FILTER CASE WHEN THEN ELSE END DISTINCT SLASH DIV",
)
_NUMBERS = _kinds("DOUBLE FLOAT")  # after ::, for fractions
_OPENING = _kinds("L_PAREN CASE")
_CLOSING = _kinds("R_PAREN END")
# Nested, these (and DATE) take the parser a time that doubles with every level. One level is for WITHIN GROUP.
_OUTER = _kinds("ORDER_BY LIMIT OFFSET DISTINCT")
# Words that a column or an alias may be called by, though they have a use of their own here.
_COLUMN_FIRST = _kinds("LIMIT OFFSET FILTER CASE WHEN THEN ELSE END ASC DESC ESCAPE DISTINCT")
_VIEW = "declare a view in the data source"
_HINTS = {
    "HAVING": "it would choose groups by their noisy counts; choose from the released table, which is free",
    **dict.fromkeys(("JOIN", "WITH", "UNION", "EXCEPT", "INTERSECT"), _VIEW),
    **dict.fromkeys(("OVER", "QUALIFY"), "windows are not; a GROUP BY gives a table"),
}


def parse(statement: str, domain: Domain) -> Ask:
    """Read one statement about the declared attributes; refuse anything else with the place and a hint.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"])})
    >>> parse("SELECT COUNT(*) FROM data WHERE sex = 'F'", domain).words(domain)
    'sex = F'
    """
    return _parse("", statement, domain)


def parse_where(where: str, domain: Domain) -> Ask:
    """Read what follows WHERE, or a whole statement: the rows that it counts.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"])})
    >>> parse_where("sex = 'F'", domain) == parse("SELECT COUNT(*) FROM data WHERE sex = 'F'", domain)
    True
    """
    whole = where.lstrip()[:6].upper() == "SELECT"
    return _parse("" if whole else "SELECT COUNT(*) FROM data WHERE ", where, domain)


def _parse(before: str, statement: str, domain: Domain) -> Ask:
    """Read `before` and the statement as one; places in errors are those in the statement."""
    if len(statement) > MAX_LENGTH:
        raise InvalidQuery(f"a statement has at most {MAX_LENGTH:,} characters; this one has {len(statement):,}.")
    try:
        tokens = [*DuckDB().tokenize(before), *DuckDB().tokenize(statement)]
        _check_tokens(tokens, domain)
        statements = DuckDB().parser().parse(tokens, statement)
    except InvalidQuery:
        raise
    except ParseError as error:
        at = error.errors[0] if error.errors else {}
        raise InvalidQuery(
            f"the statement cannot be read (line {at.get('line', 1)}, column {at.get('col', 1)}). {ALLOWED}"
        ) from None
    except Exception:  # text on which the parser itself fails, with whatever error, is a statement that cannot be read
        raise InvalidQuery(f"the statement cannot be read. {ALLOWED}") from None
    asked = [node for node in statements if node is not None and not isinstance(node, exp.Semicolon)]
    if len(asked) != 1 or not isinstance(asked[0], exp.Select):
        raise InvalidQuery(f"one SELECT statement is asked at a time. {ALLOWED}")
    try:
        return _select(with_attributes(asked[0], domain), Reading(domain))
    except RecursionError:
        raise InvalidQuery("the statement has too many conditions; list values with IN.") from None


def _check_tokens(tokens: list[Token], domain: Domain) -> None:
    """Refuse a token that is not on the list, and too much nesting; columns named like keywords become identifiers."""
    columns = {name.lower() for name in domain}
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        kind = token.token_type
        alias = before is not None and before.token_type == TokenType.ALIAS
        call = after is not None and after.token_type == TokenType.L_PAREN
        column = token.text.lower() in columns and not call
        keyword = kind in _TOKENS and not (kind in _COLUMN_FIRST and (alias or column))
        if keyword:
            depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth > MAX_DEPTH:
            raise InvalidQuery(f"a statement nests at most {MAX_DEPTH} parentheses.")
        if kind == TokenType.SELECT and depth > 0:
            raise InvalidQuery(f"sub-selects are not answered{_at(token)}; {_VIEW}.")
        if kind == TokenType.DATE and call:
            raise InvalidQuery(f"a date is written DATE '2024-05-31'{_at(token)}.")
        if keyword and kind in _OUTER and depth > 1:
            raise InvalidQuery(f"{token.text} does not stand inside other parentheses{_at(token)}. {ALLOWED}")
        if keyword or (kind in _NUMBERS and before is not None and before.token_type == TokenType.DCOLON):
            continue
        if not alias and not column:
            hint = _HINTS.get(token.text.upper().split()[0] if token.text.strip() else "", "")
            said = f"{token.text[:60]} is not answered here{_at(token)}"
            raise InvalidQuery(f"{said}: {hint}." if hint else f"{said}. {ALLOWED}")
        token.token_type = TokenType.IDENTIFIER  # as if quoted: a column or an alias called order or row


def _at(token: Token) -> str:
    return place(token.line, token.col, token.start, token.end)


def _select(select: exp.Select, read: Reading) -> Ask:
    for clause, given in select.args.items():
        if given and clause not in _CLAUSES:
            raise InvalidQuery(f"{clause.strip('_').upper()} is not answered here. {ALLOWED}")
    table = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(table, exp.Table) or not only(table, "this") or table.name.lower() != "data":
        raise InvalidQuery("there is one table, and it is called data: write FROM data.")
    alone = [one for item in select.expressions if (one := statistic(item.unalias(), read)) is not None]
    if alone:
        if len(select.expressions) > 1 or any(select.args.get(clause) for clause in _CLAUSES[2:]):
            raise InvalidQuery("a statistic is asked by itself, about all rows: SELECT STUMP(age, ill) FROM data.")
        return alone[0]
    where = select.args.get("where")
    chosen = condition(where.this, read) if where else All(())
    groups, values, places = _columns(select, chosen, read)
    if select.args.get("distinct"):
        if values or where or select.args.get("group") or not only(select.args["distinct"]):
            raise InvalidQuery("SELECT DISTINCT a, b FROM data lists the declared values, and takes nothing else.")
    else:
        if not values:
            raise InvalidQuery(f"rows are never shown: the statement has an aggregate, like COUNT(*). {ALLOWED}")
        _check_groups(select, groups, places, read)
    if len(values) > MAX_VALUES:
        raise InvalidQuery(f"a statement has at most {MAX_VALUES} values; this one has {len(values)}.")
    if not groups and any(select.args.get(word) for word in ("order", "limit", "offset")):
        raise InvalidQuery("one row needs no ORDER BY, LIMIT or OFFSET; they are for a GROUP BY.")
    if len(values) == 1 and not groups and values[0].scale == 1 and not read.notes:
        return values[0].value  # what a method of the session asks
    plain = len(values) == 1 and isinstance(values[0].value, Count) and all(group.width is None for group in groups)
    cells = math.prod(read.domain[group.name].size for group in groups)
    if not plain and cells > MAX_CELLS:
        raise InvalidQuery(f"the result would have up to {cells:,} rows; the most is {MAX_CELLS:,}.")
    for group in groups:
        group.parts(read.domain) if group.width is not None else None  # refuses a width that cuts bins
    nodes = [node for node, (by, _) in zip(select.expressions, places, strict=True) if by == "value"]
    titled = (v if v.named else replace(v, title=text(node.unalias())) for v, node in zip(values, nodes, strict=True))
    found = Select(
        read.domain,
        tuple(titled),
        tuple(groups),
        _order(select, groups, values, places, read),
        _whole(select.args.get("limit"), "LIMIT"),
        _whole(select.args.get("offset"), "OFFSET") or 0,
        tuple(dict.fromkeys(read.notes)),
    )
    return found if found.notes else found.crosstab or found


Places = list[tuple[str, int]]  # what stands at each position of the select list: ("group", 0), ("value", 0), …


def _columns(select: exp.Select, where: Expression, read: Reading) -> tuple[list[Group], list[Column], Places]:
    groups: list[Group] = []
    values: list[Column] = []
    places: Places = []
    for item in select.expressions:
        node, alias = item.unalias(), item.alias if isinstance(item, exp.Alias) else ""
        group = _group(node, alias, read)
        if group is not None:
            places.append(("group", len(groups)))
            groups.append(group)
            continue
        value = aggregate(node, alias, where, read)
        if value is None:
            raise InvalidQuery(f"{text(node)} is not answered here.{_near(node)} {ALLOWED}")
        places.append(("value", len(values)))
        values.append(value)
    return groups, values, places


def _check_groups(select: exp.Select, groups: list[Group], places: Places, read: Reading) -> None:
    """Hold the columns of the select list against GROUP BY, which may name them by position or alias too."""
    grouping = select.args.get("group") or exp.Group()
    if not only(grouping, "expressions"):  # ROLLUP, CUBE, ALL and their kind
        raise InvalidQuery(f"{text(grouping)} is not answered here. {ALLOWED}")
    titles = {group.title.lower(): group for group in groups}
    found = []
    for node in grouping.expressions:
        position = _position(node, places)
        if position is not None and position[0] == "group":
            found.append(groups[position[1]])
            continue
        named = titles.get(node.name.lower()) if isinstance(node, exp.Column) and not node.args.get("table") else None
        group = named if named and node.name.lower() not in map(str.lower, read.domain) else _group(node, "", read)
        if group is None:
            column(node, read)  # refuses it
        else:
            found.append(group)
    listed = {(group.name, group.width) for group in groups}
    if listed != {(group.name, group.width) for group in found} or len(groups) != len(found):
        raise InvalidQuery(f"each column of the statement is in GROUP BY too, and the other way round. {ALLOWED}")
    if len({group.name for group in groups}) < len(groups):
        raise InvalidQuery("a table groups by each of its columns once.")


def _group(node: exp.Expr, alias: str, read: Reading) -> Group | None:
    """A column to group by, or bins of it: FLOOR(age / 10) * 10, age / 10 * 10, age // 10 * 10."""
    if isinstance(node, exp.Column):
        name = column(node, read)
        return Group(name, alias or name)
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
    return Group(name, alias or name, width)


def _order(
    select: exp.Select, groups: list[Group], values: list[Column], places: Places, read: Reading
) -> tuple[Order, ...]:
    found = []
    for node in (select.args.get("order") or exp.Order()).expressions:
        key, descending = (node.this, bool(node.args.get("desc"))) if isinstance(node, exp.Ordered) else (node, False)
        column_at = _position(key, places) or _titled(key, groups, values) or _same(key, select, places, read)
        if column_at is None:
            raise InvalidQuery(f"ORDER BY {text(key)} is none of the columns of the statement.")
        found.append(Order("group" if column_at[0] == "group" else "value", column_at[1], descending))
    return tuple(found)


def _position(node: exp.Expr, places: Places) -> tuple[str, int] | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    position = plain_value(node)
    if not isinstance(position, int) or not 1 <= position <= len(places):
        raise InvalidQuery(f"there is no column {text(node)}; the statement has {len(places)}.")
    return places[position - 1]


def _titled(node: exp.Expr, groups: list[Group], values: list[Column]) -> tuple[str, int] | None:
    """The column with this alias; an alias goes before a declared name, as in SQL."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        return None
    titles = [("value", i, value.title) for i, value in enumerate(values) if value.named]
    titles += [("group", i, group.title) for i, group in enumerate(groups)]
    titles += [("group", i, group.name) for i, group in enumerate(groups)]
    return next(((by, i) for by, i, title in titles if title.lower() == node.name.lower()), None)


def _same(node: exp.Expr, select: exp.Select, places: Places, read: Reading) -> tuple[str, int] | None:
    """The column that is written with the same words."""
    if isinstance(node, exp.Column):
        column(node, read)  # an unknown name is refused with a suggestion
    written = [text(item.unalias()).lower() for item in select.expressions]
    found = text(node).lower()
    return places[written.index(found)] if found in written else None


def _whole(node: exp.Expr | None, word: str) -> int | None:
    if node is None:
        return None
    number = plain_value(node.expression) if only(node, "expression") else None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**53:
        raise InvalidQuery(f"{word} takes a whole number from 0.")
    return number


def _near(node: exp.Expr) -> str:
    """The function that was probably meant."""
    known = [
        "count",
        "sum",
        "avg",
        "median",
        "quantile_cont",
        "percentile_cont",
        "count_if",
        *map(str.lower, FUNCTIONS),
    ]
    near = difflib.get_close_matches(node.name.lower(), known, n=1) if isinstance(node, exp.Anonymous) else []
    return f" Did you mean {near[0].upper()}?" if near else ""
