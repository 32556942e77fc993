"""Which tokens a statement may be made of, checked before the parser sees any. Called by `model.sql` alone.

Some of the parser's own grammar (arrays, structs, joins) takes it a time that doubles with every level, so what is not
on the list never reaches it.
"""

from __future__ import annotations

from sqlglot import Token, TokenType

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain

MAX_DEPTH = 40
ALLOWED = "Ask SELECT COUNT(*) FROM data WHERE … or SELECT a, b, COUNT(*) FROM data WHERE … GROUP BY a, b."
# Every token a statement is made of, declared columns aside.
_TOKENS = frozenset(
    getattr(TokenType, name)
    for words in (
        "SELECT FROM WHERE GROUP_BY AND OR NOT IN BETWEEN IS ISNULL NOTNULL NULL UNKNOWN TRUE FALSE ALIAS DATE VAR",
        "EQ NEQ LT LTE GT GTE DASH PLUS STAR DOT COMMA L_PAREN R_PAREN DCOLON SEMICOLON NUMBER STRING IDENTIFIER",
        "LIKE ILIKE ESCAPE ORDER_BY ASC DESC LIMIT OFFSET FILTER CASE WHEN THEN ELSE END DISTINCT SLASH DIV",
    )
    for name in words.split()
)
_NUMBERS = frozenset({TokenType.DOUBLE, TokenType.FLOAT})  # after ::, for fractions
_OPENING = frozenset({TokenType.L_PAREN, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.END})
# Nested, these (and DATE) take the parser a time that doubles with every level. One level is for WITHIN GROUP.
_OUTER = frozenset({TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.DISTINCT})
# Words that a column or an alias may be called by, though they have a use of their own here.
_COLUMN_FIRST = frozenset(
    getattr(TokenType, name)
    for words in ("LIMIT OFFSET FILTER CASE WHEN THEN ELSE END ASC DESC ESCAPE DISTINCT",)
    for name in words.split()
)
_VIEW = "declare a view in the data source"
_HINTS = {
    "HAVING": "it would choose groups by their noisy counts; choose from the released table, which is free",
    "JOIN": _VIEW,
    "WITH": _VIEW,
    "UNION": _VIEW,
    "EXCEPT": _VIEW,
    "INTERSECT": _VIEW,
    "OVER": "windows are not; a GROUP BY gives a table",
    "QUALIFY": "windows are not; a GROUP BY gives a table",
}


def check(tokens: list[Token], domain: Domain) -> None:
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


def place(line: int, col: int, start: int, end: int) -> str:
    """Where a word begins; the parser says where it ends."""
    return f" (line {line}, column {col - (end - start)})"
