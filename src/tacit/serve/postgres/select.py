"""A SELECT about a data set: which one, its columns by name and type, its parameters, and what it asks. Pure.

The question is read by the same code as over HTTP. Before that, and nothing more, the table's name becomes `data`,
names that stand before a column (people.sex) are taken away, and parameters become the values given for them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.sql.parts import with_attributes
from tacit.serve.dataset import Dataset
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.source import Edited, Statement
from tacit.serve.postgres.types import (
    FLOAT8,
    INT8,
    NAMED,
    TEXT,
    UNKNOWN,
    Value,
    declared_type,
    group_type,
    literal,
    size_of,
)
from tacit.serve.question import Question, read

SHORT = 500  # characters of a statement that is read at once: a thread would take longer to wake
STEPS_A_TOKEN, LEAST_STEPS = 60, 3_000  # how often the parser may look at a word, going back and forth
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
# What stands between a column and the parameters that it is compared with: age BETWEEN $1 AND $2, sex IN ($1, $2).
_BETWEEN = {"=", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "BETWEEN", "AND", "IN", "NOT", "(", ",", "+", "-"}


class Refused(Exception):
    """A statement that is refused: the sentence, and the place in what the client sent, counted from 0."""

    def __init__(self, error: InvalidQuery, at: int | None, sentence: str) -> None:
        super().__init__(sentence)
        self.error, self.at, self.sentence = error, at, sentence


class Place(NamedTuple):
    """What stands at one position of a select list: a group or a value, and which of them."""

    group: bool
    at: int


class Parameter(NamedTuple):
    """A parameter in the text: which one, where it stands with a cast that follows it, and the type if known."""

    number: int
    start: int
    end: int
    type: int


@dataclass(frozen=True)
class TableSelect:
    """A statement about a data set. `edits` make it one about `data`."""

    dataset: Dataset
    statement: Statement
    edits: tuple[tuple[int, int, str], ...]
    parameters: tuple[Parameter, ...]
    fields: tuple[Field, ...] = field(compare=False)
    places: tuple[Place, ...] = field(compare=False)
    question: Question | None = None  # of a statement without parameters

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        """The types of the parameters: as given, else of the columns that they are compared with, else text."""
        count = max((parameter.number for parameter in self.parameters), default=0)
        found = [TEXT] * max(count, len(given))
        for parameter in self.parameters:
            found[parameter.number - 1] = parameter.type or found[parameter.number - 1]
        for i, type in enumerate(given):
            if type not in (0, UNKNOWN):
                found[i] = type
        return tuple(found)

    def bound(self, values: Sequence[Value]) -> Question:
        """The question with these values for its parameters; refused with its place in the client's text."""
        if self.question is not None:
            return self.question
        given = [(one.start, one.end, literal(values[one.number - 1])) for one in self.parameters]
        edited = Edited.of(self.statement.text, sorted([*self.edits, *given]))
        try:
            return read(edited.text, self.dataset.session.domain)
        except InvalidQuery as error:
            raise refused(error, edited, self.statement) from None


def refused(error: InvalidQuery, edited: Edited, statement: Statement) -> Refused:
    """The refusal with the place that it names in the client's own text."""
    named = _PLACE.search(error.sentence)
    if named is None:
        return Refused(error, None, error.sentence)
    at = edited.place(int(named[1]), int(named[2]))
    before = statement.text[:at]
    shown = f"(line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))})"
    return Refused(error, statement.start + at, error.sentence.replace(named[0], shown, 1))


class Source(NamedTuple):
    """The table that a statement is about, between two of its tokens, and the names that may stand before columns."""

    name: str
    first: int
    last: int
    before_columns: frozenset[str]


def source_of(statement: Statement) -> Source | None:
    """What stands after the first FROM outside parentheses: a table, of the schema public if one is named."""
    depth = 0
    for at, token in enumerate(statement.tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.FROM:
            return _source(statement, at + 1)
    return None


def _source(statement: Statement, first: int) -> Source | None:
    tokens = statement.tokens
    parts, at = list[str](), first
    while at < len(tokens) and (tokens[at].token_type in _NAMES or tokens[at].text.isidentifier()):
        parts.append(_name(tokens[at]))
        at += 1
        if at == len(tokens) or tokens[at].token_type != TokenType.DOT:
            break
        at += 1
    if not parts or len(parts) > 2 or (len(parts) == 2 and parts[0] != "public"):
        return None
    names = {parts[-1]}
    alias = at + 1 if at < len(tokens) and tokens[at].token_type == TokenType.ALIAS else at
    if alias < len(tokens) and tokens[alias].token_type in _NAMES:
        names.add(_name(tokens[alias]))
        at = alias + 1
    return Source(parts[-1], first, at, frozenset(names))


def _name(token: Token) -> str:
    """The name that a token stands for: in small letters, unless it is quoted."""
    return token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()


def table_select(statement: Statement, dataset: Dataset, source: Source) -> TableSelect:
    """Read a SELECT about a data set as far as its parameters allow. Refuses what is no statement of columns."""
    domain = dataset.session.domain
    edits, parameters = tuple(_edits(statement, source)), tuple(_parameters(statement, domain))
    edited = Edited.of(statement.text, edits)
    try:
        question = None if parameters else read(edited.text, domain)
        fields, places = _columns(edited.text, domain)
    except InvalidQuery as error:
        raise refused(error, edited, statement) from None
    return TableSelect(dataset, statement, edits, parameters, fields, places, question)


def _edits(statement: Statement, source: Source) -> list[tuple[int, int, str]]:
    tokens = statement.tokens
    found = []
    at = 0
    while at < len(tokens):
        if at == source.first:
            start, end = tokens[at].start, tokens[source.last - 1].end + 1
            if statement.text[start:end].lower() != "data":
                found.append((start, end, "data"))
            at = source.last
            continue
        # people.sex and public.people.sex are sex; what stands before a dot and is no name of the table stays.
        last = _qualifier(tokens, at, source)
        if last is not None:
            found.append((tokens[at].start, tokens[last].end + 1, ""))
            at = last
        at += 1
    return found


def _qualifier(tokens: Sequence[Token], at: int, source: Source) -> int | None:
    """The dot that ends the names before a column which begin here."""

    def named(i: int, names: frozenset[str]) -> bool:
        return (
            i + 2 < len(tokens)
            and tokens[i].token_type in _NAMES
            and _name(tokens[i]) in names
            and tokens[i + 1].token_type == TokenType.DOT
        )

    if at and tokens[at - 1].token_type == TokenType.DOT:
        return None
    if named(at, frozenset({"public"})) and named(at + 2, source.before_columns):
        return at + 3
    return at + 1 if named(at, source.before_columns) else None


# -- columns ----------------------------------------------------------------------------------------------------------


class _Bounded(DuckDB.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
    """The parser, which gives up where a text makes it go back and forth too often."""

    steps = 0

    def _advance(self, times: int = 1) -> None:
        self.steps += 1
        if self.steps > LEAST_STEPS + STEPS_A_TOKEN * len(self._tokens):
            raise ParseError("too many steps")
        super()._advance(times)


def _columns(text: str, domain: Domain) -> tuple[tuple[Field, ...], tuple[Place, ...]]:
    """The columns of a statement by their names and types, and what each is."""
    try:
        parsed = [one for one in _Bounded(dialect=DuckDB()).parse(list(DuckDB().tokenize(text)), text) if one]
    except (ParseError, RecursionError, ValueError, AttributeError, TypeError, IndexError, KeyError):
        read(text, domain)  # refuses it in its own words
        raise InvalidQuery("the statement cannot be read.") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        read(text, domain)
        raise InvalidQuery("one SELECT statement is asked at a time.")
    fields, places = list[Field](), list[Place]()
    for item in with_attributes(parsed[0], domain).expressions:
        node = item.unalias()
        group = node.find(exp.AggFunc, exp.Anonymous) is None
        type = _group_type(node, domain) if group else _value_type(node, domain)
        fields.append(Field(item.alias or _title(node), type, size_of(type)))
        places.append(Place(group, sum(place.group == group for place in places)))
    return tuple(fields), tuple(places)


def _group_type(node: exp.Expr, domain: Domain) -> int:
    column = node if isinstance(node, exp.Column) else node.find(exp.Column)
    if column is None:
        return TEXT
    attribute = domain[domain.resolve(column.name)]
    return group_type(attribute) if column is node else TEXT


def _value_type(node: exp.Expr, domain: Domain) -> int:
    """A number, but the bin that holds a quantile has a name where it is wider than one value."""
    if node.find(exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc) is None:
        return FLOAT8
    column = node.find(exp.Column)
    return FLOAT8 if column is None else group_type(domain[domain.resolve(column.name)])


def _title(node: exp.Expr) -> str:
    """The name of a column without an alias, as PostgreSQL would call it."""
    while isinstance(node, exp.Filter | exp.Paren | exp.WithinGroup):
        node = node.this
    if isinstance(node, exp.Column | exp.Anonymous):
        return str(node.name) if isinstance(node, exp.Column) else str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else "?column?"


# -- parameters -------------------------------------------------------------------------------------------------------


def _parameters(statement: Statement, domain: Domain) -> list[Parameter]:
    tokens = statement.tokens
    columns = {name.lower(): name for name in domain}
    found = []
    for at, token in enumerate(tokens[:-1]):
        number = tokens[at + 1]
        if token.token_type != TokenType.PARAMETER or number.token_type != TokenType.NUMBER:
            continue
        if not number.text.isdecimal() or not 1 <= int(number.text) <= 1_000:
            raise Refused(InvalidQuery(""), statement.start + token.start, "parameters are $1 to $1000.")
        type, end = _cast(tokens, at + 2)
        known = _compared(tokens, at, columns)
        if not type and known is not None:
            type = declared_type(domain[known])
        if at and tokens[at - 1].token_type in (TokenType.LIMIT, TokenType.OFFSET):
            type = type or INT8
        found.append(Parameter(int(number.text), token.start, end or number.end + 1, type))
    return found


def _cast(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """The type of a cast that follows a parameter, $1::VARCHAR, and where it ends; 0 and 0 without one."""
    if at + 1 >= len(tokens) or tokens[at].token_type != TokenType.DCOLON:
        return 0, 0
    words = tokens[at + 1].text.lower()
    end = at + 1
    if at + 2 < len(tokens) and f"{words} {tokens[at + 2].text.lower()}" in ("double precision", "character varying"):
        words, end = f"{words} {tokens[at + 2].text.lower()}", at + 2
    type = NAMED.get(words, 0)
    return (type, tokens[end].end + 1) if type else (0, 0)


def _compared(tokens: Sequence[Token], at: int, columns: dict[str, str]) -> str | None:
    """The column that a parameter is compared with: the nearest before it, or the one right after."""
    i = at - 1
    while i >= 0:
        token = tokens[i]
        if token.token_type in _NAMES:
            return columns.get(token.text.lower())
        plain = token.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.PARAMETER, TokenType.DCOLON)
        if not plain and token.text.upper() not in _BETWEEN and token.text.lower() not in NAMED:
            break
        i -= 1
    after = tokens[at + 2 : at + 4]
    if len(after) == 2 and after[0].text in _BETWEEN and after[1].token_type in _NAMES:
        return columns.get(after[1].text.lower())
    return None
