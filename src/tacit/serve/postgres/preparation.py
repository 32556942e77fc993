"""Statements that give a name to another, or use it: PREPARE and EXECUTE, DECLARE, FETCH and MOVE of cursors. Pure.

They do by words what the protocol does by messages (Parse, Bind, Execute), with the same names and the same limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from tacit.serve.postgres.source import SentStatement, name_of
from tacit.serve.postgres.sqlstate import SYNTAX, UNSUPPORTED, WireError
from tacit.serve.postgres.types import NAMED

ALL = -1  # rows: all that are left
_BACKWARDS = ("PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD")
_PLAIN = {"TRUE": "true", "FALSE": "false", "NULL": None}


@dataclass(frozen=True)
class Preparation:
    """PREPARE name (types) AS …, or DECLARE name CURSOR FOR …: `inner` is the statement that is named."""

    name: str
    inner: SentStatement
    types: tuple[int, ...] = ()
    cursor: bool = False
    holds: bool = False  # a cursor that outlives its transaction


@dataclass(frozen=True)
class Execution:
    """EXECUTE name (values): the values as text, None for NULL."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Fetching:
    """FETCH or MOVE: how many rows of which cursor."""

    name: str
    most: int
    moves: bool = False


def preparation(statement: SentStatement) -> Preparation:
    return _declare(statement) if statement.begins("DECLARE") else _prepare(statement)


def _prepare(statement: SentStatement) -> Preparation:
    words, tokens, types, at = statement.words, statement.tokens, list[int](), 2
    if words[1:2] == ("TRANSACTION",):
        raise WireError(UNSUPPORTED, "Transactions mean nothing here, so none is prepared.", at=statement.start)
    if words[2:3] == ("(",):
        close = _index(words, ")", 3)
        types = [_type(part) for part in _parts(tokens[3:close])]
        at = close + 1
    if len(tokens) < 4 or words[at : at + 1] != ("AS",):
        raise _wrong(statement, "PREPARE name AS SELECT …")
    return Preparation(name_of(tokens[1]), statement.part(at + 1, len(tokens)), tuple(types))


def _declare(statement: SentStatement) -> Preparation:
    """Options that say how a cursor behaves while rows are changed say nothing here: an answer does not change."""
    words = statement.words
    cursor, start = _index(words, "CURSOR", 2), _index(words, "FOR", 2)
    options, hold = set(words[2:cursor]), words[cursor + 1 : start]
    if len(words) < 5 or start == len(words) or not options <= {"ASENSITIVE", "INSENSITIVE", "NO", "SCROLL", "BINARY"}:
        raise _wrong(statement, "DECLARE name CURSOR FOR SELECT …")
    if "BINARY" in options or options == {"SCROLL"}:
        raise WireError(UNSUPPORTED, "cursors go forward only, and give text unless the client asks for binary values.")
    if hold not in ((), ("WITH", "HOLD"), ("WITHOUT", "HOLD")):
        raise _wrong(statement, "DECLARE name CURSOR WITH HOLD FOR SELECT …")
    inner = statement.part(start + 1, len(statement.tokens))
    return Preparation(name_of(statement.tokens[1]), inner, cursor=True, holds=hold == ("WITH", "HOLD"))


def execution(statement: SentStatement) -> Execution:
    words, tokens = statement.words, statement.tokens
    if len(tokens) < 2 or (len(tokens) > 2 and (words[2], words[-1]) != ("(", ")")):
        raise _wrong(statement, "EXECUTE name (1, 'two')")
    return Execution(name_of(tokens[1]), tuple(_value(part, statement) for part in _parts(tokens[3:-1])))


def fetching(statement: SentStatement) -> Fetching:
    """FETCH [NEXT | FORWARD] [n | ALL] [FROM | IN] name."""
    words, tokens = list(statement.words), statement.tokens
    at, most = 1, 1
    if words[at : at + 1] and words[at] in _BACKWARDS:
        raise WireError(UNSUPPORTED, "cursors go forward only: FETCH FORWARD n FROM name.", at=statement.start)
    plain = words[at : at + 1] in (["NEXT"], ["FORWARD"]) and len(tokens) > at + 1
    counted = words[at] != "NEXT" if plain else True
    at += plain
    if counted and len(tokens) > at + 1 and (words[at] == "ALL" or tokens[at].token_type == TokenType.NUMBER):
        most = ALL if words[at] == "ALL" else int(tokens[at].text) if re.fullmatch("[0-9]{1,9}", words[at]) else ALL - 1
        at += 1
    at += words[at : at + 1] in (["FROM"], ["IN"])
    if at != len(tokens) - 1 or most < ALL:
        raise _wrong(statement, f"{words[0]} FORWARD 100 FROM name")
    return Fetching(name_of(tokens[at]), most, moves=words[0] == "MOVE")


def _index(words: Sequence[str], word: str, start: int) -> int:
    """Where a word stands first; the end where it does not."""
    return next((i for i in range(start, len(words)) if words[i] == word), len(words))


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between commas."""
    parts = [list[Token]()]
    for token in tokens:
        if token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if tokens else []


def _type(tokens: Sequence[Token]) -> int:
    return NAMED.get(" ".join(token.text.lower() for token in tokens), 0)


def _value(tokens: Sequence[Token], statement: SentStatement) -> str | None:
    """A plain value as text. A cast beside it, as in DATE '2024-05-31', says what its parameter's type says already."""
    cast = next((i for i, token in enumerate(tokens) if token.token_type == TokenType.DCOLON), len(tokens))
    given = list(tokens[:cast])
    if len(given) == 2 and given[0].text.lower() in NAMED and given[1].token_type == TokenType.STRING:
        given = given[1:]
    words = [token.text.upper() for token in given]
    if len(given) == 1 and given[0].token_type == TokenType.STRING:
        return given[0].text
    if len(given) == 1 and words[0] in _PLAIN:
        return _PLAIN[words[0]]
    if given and len(given) <= 2 and given[-1].token_type == TokenType.NUMBER and words[:-1] in ([], ["-"], ["+"]):
        return "".join(words).removeprefix("+")
    raise WireError(
        UNSUPPORTED, "EXECUTE takes plain values: numbers, texts, TRUE, FALSE and NULL.", at=statement.start
    )


def _wrong(statement: SentStatement, form: str) -> WireError:
    return WireError(SYNTAX, f"{statement.words[0]} is written {form}.", at=statement.start)
