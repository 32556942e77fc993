"""A client's text in pieces: its statements, their words, and changes to them that keep the places of errors. Pure.

Words are those of the tokenizer that questions are read with, so both agree on where a text or a comment ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from sqlglot import Token, TokenType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError

from tacit.serve.postgres.sqlstate import SYNTAX, WireError

MAX_SENT_TEXT = 100_000  # characters of what a client sends at once
MAX_SENT_STATEMENTS = 100  # in one text
_DIALECT = DuckDB()
_QUOTED = (
    TokenType.STRING,
    TokenType.HEREDOC_STRING,
    TokenType.RAW_STRING,
    TokenType.BYTE_STRING,
    TokenType.IDENTIFIER,
)


class _Tokenizer(DuckDB.Tokenizer):
    """The tokenizer of questions, for which EXPLAIN and its like do not swallow what follows."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True)
class SentStatement:
    """One statement: its text, its words, and where it starts in what the client sent."""

    text: str
    tokens: tuple[Token, ...] = field(compare=False)
    start: int = 0

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words in capitals; what stands in quotes is "", for it is no word of SQL."""
        return tuple(map(_word, self.tokens))

    @property
    def first(self) -> str:
        """The first of them."""
        return _word(self.tokens[0])

    def part(self, first: int, last: int) -> SentStatement:
        """The statement between two of its words, the last one excluded."""
        tokens = self.tokens[first:last]
        if not tokens:
            return SentStatement("", (), self.start)
        start, end = tokens[0].start, tokens[-1].end + 1
        return SentStatement(self.text[start:end], tokens_of(self.text[start:end]), self.start + start)


def _word(token: Token) -> str:
    return "" if token.token_type in _QUOTED else token.text.upper()


def name_of(token: Token) -> str:
    """The name that a token stands for: in small letters, unless it is quoted."""
    return token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()


def tokens_of(text: str) -> tuple[Token, ...]:
    try:
        return tuple(_Tokenizer(dialect=_DIALECT).tokenize(text))
    except (TokenError, ValueError, RecursionError):
        raise WireError(
            SYNTAX, "the statement ends inside a quote or a comment, or has a character that is no word."
        ) from None


def split(text: str) -> list[SentStatement]:
    """The statements of a text, without their semicolons; none of them is empty."""
    if len(text) > MAX_SENT_TEXT:
        raise WireError(SYNTAX, f"a text has at most {MAX_SENT_TEXT:,} characters; this one has {len(text):,}.")
    tokens = tokens_of(text)
    ends = [i for i, token in enumerate(tokens) if token.token_type == TokenType.SEMICOLON]
    if not ends or ends == [len(tokens) - 1]:  # one statement, which keeps the client's own text
        return [SentStatement(text, tokens[:-1] if ends else tokens)] if len(tokens) > len(ends) else []
    found = []
    for first, last in zip([0, *(end + 1 for end in ends)], [*ends, len(tokens)], strict=True):
        if first < last:
            found.append(SentStatement(text, tokens).part(first, last))
    if len(found) > MAX_SENT_STATEMENTS:
        raise WireError(SYNTAX, f"a text has at most {MAX_SENT_STATEMENTS} statements; this one has {len(found)}.")
    return found


@dataclass(frozen=True)
class Edited:
    """A text with some of its pieces replaced, and where each place of it was before."""

    text: str
    _ends: Sequence[tuple[int, int]] = ()  # where each replacement ends, in the new text and in the old one

    @classmethod
    def of(cls, text: str, edits: Sequence[tuple[int, int, str]]) -> Edited:
        """`edits` are (start, end, replacement), in order; they do not overlap."""
        if not edits:
            return cls(text)
        pieces, ends, at, length = list[str](), list[tuple[int, int]](), 0, 0
        for start, end, new in edits:
            pieces += (text[at:start], new)
            length += start - at + len(new)
            at = end
            ends.append((length, end))
        return cls("".join((*pieces, text[at:])), ends)

    def before(self, place: int) -> int:
        """Where a place of the new text was in the old one."""
        index = bisect_right(self._ends, (place, 1 << 62)) - 1
        if index < 0:
            return place
        new, old = self._ends[index]
        return old + place - new

    def place(self, line: int, column: int) -> int:
        """The place in the old text of a line and a column of the new one, both counted from 1."""
        lines = self.text.split("\n")
        start = sum(len(one) + 1 for one in lines[: line - 1])
        return self.before(min(start + column - 1, len(self.text)))
