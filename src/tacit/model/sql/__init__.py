"""SQL as a way of asking, by an allow-list: counts, fractions, sums, means, quantiles and statistics.

The text never reaches an engine: it is read into an `Ask` about the declared attributes.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from tacit.errors import InvalidQuery
from tacit.model.ask import Ask, Count, Derived, Select
from tacit.model.domain import Domain
from tacit.model.sql.calculation import ALLOWED
from tacit.model.sql.count import simple_count
from tacit.model.sql.idiom import BY_WORD, CALLED
from tacit.model.sql.parts import with_attributes
from tacit.model.sql.reading import Metering, Reading, Unmetered, place
from tacit.model.sql.statement import ask_of

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse", "parse_where", "plain_count"]

DIALECT = DuckDB()
MAX_LENGTH = 10_000
MAX_DEPTH = 40
MAX_SELECTS = 4  # statements inside each other or beside each other
MOST_INSIDE = 2  # parentheses that DISTINCT, ORDER BY and LIMIT stand in, beyond those of their statement


def _kinds(*names: str) -> frozenset[TokenType]:
    return frozenset(getattr(TokenType, name) for listed in names for name in listed.split())


# Every token a statement is made of, declared columns aside. Some of the parser's own grammar (arrays, structs, joins)
# takes it a time that doubles with every level, so what is not on the list never reaches it.
_TOKENS = _kinds(
    "SELECT FROM WHERE GROUP_BY AND OR NOT IN BETWEEN IS ISNULL NOTNULL NULL UNKNOWN TRUE FALSE ALIAS DATE VAR",
    "EQ NEQ LT LTE GT GTE DASH PLUS STAR DOT COMMA L_PAREN R_PAREN DCOLON SEMICOLON NUMBER STRING IDENTIFIER",
    "LIKE ILIKE ESCAPE HAVING WITH ORDER_BY ASC DESC LIMIT OFFSET FILTER CASE WHEN THEN ELSE END DISTINCT SLASH DIV",
)
_NUMBERS = _kinds("DOUBLE FLOAT")  # after ::, for fractions
_OPENING = _kinds("L_PAREN CASE")
_CLOSING = _kinds("R_PAREN END")
# Nested, these (and DATE) take the parser a time that doubles with every level. One level is for WITHIN GROUP.
_OUTER = _kinds("ORDER_BY LIMIT OFFSET DISTINCT")
# Words that a column or an alias may be called by, though they have a use of their own here.
_COLUMN_FIRST = _kinds("LIMIT OFFSET FILTER CASE WHEN THEN ELSE END ASC DESC ESCAPE DISTINCT")
_VIEW = "declare a view in the data source"
_HINTS = {**BY_WORD, **dict.fromkeys(("JOIN", "UNION", "EXCEPT", "INTERSECT", "LEFT", "RIGHT"), _VIEW)}


def parse(statement: str, domain: Domain, meter: Metering | None = None) -> Ask:
    """Read one statement about the declared attributes; refuse anything else with the place and a hint.

    meter: is told what reading it takes, and may refuse it.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"])})
    >>> parse("SELECT COUNT(*) FROM data WHERE sex = 'F'", domain).words(domain)
    'sex = F'
    """
    return _parse("", statement, domain, meter or Unmetered())


def plain_count(statement: str, domain: Domain) -> Count | None:
    """What a statement asks that is a plain count, which takes little to read; None for any other, also a wrong one."""
    try:
        tokens = DIALECT.tokenize(statement)
        _check_tokens(tokens, domain)
    except Exception:  # `parse` says what is wrong with it
        return None
    return simple_count(tokens, domain)


def parse_where(where: str, domain: Domain) -> Ask:
    """Read what follows WHERE, or a whole statement: the rows that it counts.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"])})
    >>> parse_where("sex = 'F'", domain) == parse("SELECT COUNT(*) FROM data WHERE sex = 'F'", domain)
    True
    """
    whole = where.lstrip()[:6].upper() == "SELECT"
    return _parse("" if whole else "SELECT COUNT(*) FROM data WHERE ", where, domain, Unmetered())


def _parse(before: str, statement: str, domain: Domain, meter: Metering) -> Ask:
    """Read `before` and the statement as one; places in errors are those in the statement."""
    if len(statement) > MAX_LENGTH:
        raise InvalidQuery(f"a statement has at most {MAX_LENGTH:,} characters; this one has {len(statement):,}.")
    try:
        tokens = [*(DIALECT.tokenize(before) if before else ()), *DIALECT.tokenize(statement)]
        _check_tokens(tokens, domain)
        if (plain := simple_count(tokens, domain)) is not None:
            return plain
        statements = DIALECT.parser().parse(tokens, statement)
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
        found = ask_of(with_attributes(asked[0], domain), Reading(domain, meter))
    except RecursionError:
        raise InvalidQuery("the statement has too many conditions; list values with IN.") from None
    if isinstance(found, Select | Derived):  # it has no other form that could be sent to a server
        return replace(found, text=before + statement)
    return found


def _check_tokens(tokens: list[Token], domain: Domain) -> None:
    """Refuse a token that is not on the list, and too much nesting; columns named like keywords become identifiers."""
    columns = {name.lower() for name in domain.names}
    depth, selects = 0, 0
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
        selects += kind == TokenType.SELECT
        if selects > MAX_SELECTS:
            raise InvalidQuery(f"a statement has at most {MAX_SELECTS} SELECTs{_at(token)}; {_VIEW}.")
        if kind == TokenType.DATE and call:
            raise InvalidQuery(f"a date is written DATE '2024-05-31'{_at(token)}.")
        if keyword and kind in _OUTER and depth > MOST_INSIDE + selects:
            raise InvalidQuery(f"{token.text} does not stand inside other parentheses{_at(token)}. {ALLOWED}")
        if keyword or (kind in _NUMBERS and before is not None and before.token_type == TokenType.DCOLON):
            continue
        if not alias and not column:
            word = token.text.upper().split()[0] if token.text.strip() else ""
            hint = CALLED.get(word, "") if call and word in CALLED else _HINTS.get(word, "")
            said = f"{token.text[:60]} is not answered here{_at(token)}"
            raise InvalidQuery(f"{said}: {hint}." if hint else f"{said}. {ALLOWED}")
        token.token_type = TokenType.IDENTIFIER  # as if quoted: a column or an alias called order or row


def _at(token: Token) -> str:
    return place(token.line, token.col, token.start, token.end)
