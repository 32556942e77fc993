"""The commonest statement, read from its words: SELECT COUNT(*) FROM data WHERE one comparison AND another …

Called by `sql.parse` alone. Half of a server's work for a new statement was the tree of this one. It gives the very
condition that the tree gives, or nothing: whatever is longer, has another form, or is refused is read by way of the
tree, which also has the words of every refusal. `tests/model/test_sql_count.py` holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

from tacit.errors import InvalidQuery
from tacit.model.ask import Count
from tacit.model.clamped import clamped_ends
from tacit.model.domain import Domain
from tacit.model.expression import All, Among, Between, Compare, Comparison, Expression, Not
from tacit.model.values import Value

MOST_TOKENS = 300
_HEAD = (TokenType.SELECT, TokenType.VAR, TokenType.L_PAREN, TokenType.STAR, TokenType.R_PAREN)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_COMPARISONS: dict[TokenType, Comparison] = {
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}


class _Other(Exception):
    """The statement has another form."""


def simple_count(tokens: Sequence[Token], domain: Domain) -> Count | None:
    """What a plain count asks; None for any other statement."""
    if len(tokens) > MOST_TOKENS:
        return None
    try:
        rows = _WordStream(tokens).rows(domain)
        return Count(rows.bind(domain), clamped_ends(rows, domain))
    except (_Other, InvalidQuery, ValueError):  # Python reads no whole number of thousands of digits
        return None


class _WordStream:
    """The words of a statement, one after the other."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._at = tokens, 0

    def rows(self, domain: Domain) -> Expression:
        """The condition of the whole statement."""
        head = self._tokens[: len(_HEAD)]
        if tuple(token.token_type for token in head) != _HEAD or head[1].text.lower() != "count":
            raise _Other
        self._at = len(_HEAD)
        self._alias()
        self._expect(TokenType.FROM)
        if self._expect(TokenType.VAR).text.lower() != "data":
            raise _Other
        self._alias()
        parts = list[Expression]()
        if self._met(TokenType.WHERE):
            parts.append(self._comparison(domain))
            while self._met(TokenType.AND):
                parts.append(self._comparison(domain))
        self._met(TokenType.SEMICOLON)
        if self._at < len(self._tokens):
            raise _Other
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _comparison(self, domain: Domain) -> Expression:
        name = domain.resolve(self._expect(*_NAMES).text)
        sign = self._next().token_type
        if sign in _COMPARISONS:
            return Compare(name, _COMPARISONS[sign], self._value())
        if sign == TokenType.EQ:
            return Among(name, (self._value(),))
        if sign == TokenType.NEQ:
            return Not(Among(name, (self._value(),)))
        if sign == TokenType.IN:
            return Among(name, self._values())
        if sign == TokenType.BETWEEN:
            low = self._value()
            self._expect(TokenType.AND)
            return Between(name, low, self._value(), "<=")
        raise _Other

    def _values(self) -> tuple[Value, ...]:
        self._expect(TokenType.L_PAREN)
        found = [self._value()]
        while self._met(TokenType.COMMA):
            found.append(self._value())
        self._expect(TokenType.R_PAREN)
        return tuple(found)

    def _value(self) -> Value:
        negative = self._met(TokenType.DASH)
        token = self._next()
        if token.token_type == TokenType.NUMBER:
            number = _number(token.text)
            return -number if negative else number
        if negative or token.token_type not in (TokenType.STRING, TokenType.TRUE, TokenType.FALSE):
            raise _Other
        return token.text if token.token_type == TokenType.STRING else token.token_type == TokenType.TRUE

    def _alias(self) -> None:
        if self._met(TokenType.ALIAS):
            self._expect(*_NAMES)

    def _next(self) -> Token:
        if self._at == len(self._tokens):
            raise _Other
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, *kinds: TokenType) -> Token:
        if self._at == len(self._tokens) or self._tokens[self._at].token_type not in kinds:
            raise _Other
        self._at += 1
        return self._tokens[self._at - 1]

    def _met(self, kind: TokenType) -> bool:
        """Whether the next word is of this kind; then it is passed."""
        found = self._at < len(self._tokens) and self._tokens[self._at].token_type == kind
        self._at += found
        return found


def _number(text: str) -> int | float:
    if not text.isascii() or not text.replace(".", "", 1).isdigit():  # 1e5 and the like are read by way of the tree
        raise _Other
    return int(text) if text.isdigit() else float(text)
