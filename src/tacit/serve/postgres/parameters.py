"""The parameters of a statement about a data set, $1, $2, …: where they stand, and the types that they have. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import Token, TokenType

from tacit.model.domain import Domain
from tacit.model.values import Days, Listed
from tacit.serve.postgres.source import SentStatement
from tacit.serve.postgres.sqlstate import SYNTAX, WireError
from tacit.serve.postgres.types import BOOL, DATE, FLOAT8, INT8, NAMED, NUMERIC, TEXT, Value, declared_type, literal

MAX_PARAMETERS = 1_000
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
# What stands between a column and the parameters that it is compared with: age BETWEEN $1 AND $2, sex IN ($1, $2).
_BETWEEN = {"=", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "BETWEEN", "AND", "IN", "NOT", "(", ",", "+", "-"}
_ENDS = ("<=", ">", "AND")  # the value before these belongs to what is chosen, so it ends a bin


class Parameter(NamedTuple):
    """A parameter in the text: where it stands with a cast that follows it, and what it is compared with, if known."""

    number: int
    start: int
    end: int
    type: int
    column: str | None
    before: str  # the word before it


def parameters_of(statement: SentStatement, domain: Domain) -> tuple[Parameter, ...]:
    tokens = statement.tokens
    columns = {name.lower(): name for name in domain}
    found = []
    for at, token in enumerate(tokens[:-1]):
        number = tokens[at + 1]
        if token.token_type != TokenType.PARAMETER or number.token_type != TokenType.NUMBER:
            continue
        if not number.text.isdecimal() or not 1 <= int(number.text) <= MAX_PARAMETERS:
            raise WireError(SYNTAX, f"parameters are $1 to ${MAX_PARAMETERS}.")
        type, end = _cast(tokens, at + 2)
        column = _compared(tokens, at, columns)
        before = tokens[at - 1].text.upper() if at else ""
        known = declared_type(domain[column]) if column is not None else _usual(tokens, at, before)
        found.append(Parameter(int(number.text), token.start, end or number.end + 1, type or known, column, before))
    return tuple(found)


def _usual(tokens: Sequence[Token], at: int, before: str) -> int:
    """The type of a parameter that stands beside no column: how many rows, a number to compare values with, or text."""
    if before in ("LIMIT", "OFFSET"):
        return INT8
    compared = before in _BETWEEN - {"(", ",", "LIKE", "ILIKE"} or before in ("*", "/")
    return FLOAT8 if compared else 0


def _cast(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """The type of a cast that follows a parameter, $1::VARCHAR, and where it ends; 0 and 0 without one."""
    if at + 1 >= len(tokens) or tokens[at].token_type != TokenType.DCOLON:
        return 0, 0
    words, end = tokens[at + 1].text.lower(), at + 1
    if at + 2 < len(tokens) and f"{words} {tokens[at + 2].text.lower()}" in ("double precision", "character varying"):
        words, end = f"{words} {tokens[at + 2].text.lower()}", at + 2
    type = NAMED.get(words, 0)
    return (type, tokens[end].end + 1) if type else (0, 0)


def _compared(tokens: Sequence[Token], at: int, columns: dict[str, str]) -> str | None:
    """The column that a parameter is compared with: the nearest before it, or the one right after."""
    for i in range(at - 1, -1, -1):
        token = tokens[i]
        if token.token_type in _NAMES:
            return columns.get(token.text.lower())
        plain = token.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.PARAMETER, TokenType.DCOLON)
        if not plain and token.text.upper() not in _BETWEEN and token.text.lower() not in NAMED:
            break
    after = tokens[at + 2 : at + 4]
    if len(after) == 2 and after[0].text in _BETWEEN and after[1].token_type in _NAMES:
        return columns.get(after[1].text.lower())
    return None


def sample(parameter: Parameter, domain: Domain) -> str:
    """A value that could stand for a parameter, as it is written: to learn which columns a statement has."""
    plain: dict[int, Value] = {TEXT: "", BOOL: True, DATE: dt.date(2000, 1, 1), INT8: 1, FLOAT8: 1, NUMERIC: 1}
    if parameter.column is None:
        return literal(plain.get(parameter.type, 1))
    attribute = domain[parameter.column]
    values = attribute.values
    if isinstance(values, Listed):
        return literal(values.values[0])
    first = 0 if parameter.before == "BETWEEN" else 1
    point = attribute.edge(min(first, attribute.bins)) - (1 if values.whole and parameter.before in _ENDS else 0)
    return literal(dt.date.fromordinal(int(point)) if isinstance(values, Days) else point)
