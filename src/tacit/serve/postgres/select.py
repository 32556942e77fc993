"""A SELECT about a data set: which one, its parameters, and what it asks. Pure.

The question is read by the same code as over HTTP. Before that, and nothing more, the table's name becomes `data`, with
its own name as an alias, and parameters become the values that were given for them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError

from tacit.errors import InvalidQuery
from tacit.model.ask import Ask, Derived, Select
from tacit.model.domain import Domain
from tacit.model.values import Days, Listed
from tacit.serve.postgres.answer import ResultColumn, places_of
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.source import Edited, SentStatement, name_of
from tacit.serve.postgres.sqlstate import BAD_QUESTION, SYNTAX, WireError
from tacit.serve.postgres.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT8,
    NAMED,
    NUMERIC,
    TEXT,
    UNKNOWN,
    WireValue,
    declared_type,
    literal,
    size_of,
)
from tacit.serve.question import Question, read, read_at_once
from tacit.serve.refusal import Refusal
from tacit.serve.served_data import ServedData
from tacit.serve.work import Meter

MAX_PARAMETERS = 1_000
STEPS_A_TOKEN, LEAST_STEPS = 60, 3_000  # how often the parser may look at a word, going back and forth
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
# What stands between a column and the parameters that it is compared with: age BETWEEN $1 AND $2, sex IN ($1, $2).
_BETWEEN = {"=", "<>", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "BETWEEN", "AND", "IN", "NOT", "(", ",", "+", "-"}
_ENDS = ("<=", ">", "AND")  # the value before these belongs to what is chosen, so it ends a bin


Read = Callable[[str, Domain], Question]


class TakesLong(Exception):
    """A statement is not read at once."""


def at_once(text: str, domain: Domain) -> Question:
    """Read a question on the event loop, or say that it is none for it: see `read_at_once`."""
    found = read_at_once(text, domain)
    if found is None:
        raise TakesLong
    return found


def metered(meter: Meter) -> Read:
    """The same in a thread, with the work counted."""
    return lambda text, domain: read(text, domain, None, meter)


@dataclass(frozen=True, eq=False)
class SelectAsked:
    """A statement with values for its parameters: the question, and its columns."""

    question: Question
    fields: tuple[Field, ...]
    places: tuple[ResultColumn, ...]


@dataclass(frozen=True, eq=False)
class TableSelect:
    """A statement about a data set. `edits` make it one about `data`; without parameters it may be `asked` already.

    columns: what it lists, or why it cannot be asked, whatever the values of its parameters.
    """

    dataset: ServedData
    statement: SentStatement
    edits: tuple[tuple[int, int, str], ...]
    parameters: tuple[Parameter, ...]
    columns: tuple[Field, ...] | WireError | Refusal
    asked: SelectAsked | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns, which do not depend on the values of parameters."""
        if isinstance(self.columns, Exception):
            raise self.columns.with_traceback(None)
        return self.columns

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        """The types of the parameters: as given, else of what they are compared with, else text."""
        count = max((parameter.number for parameter in self.parameters), default=0)
        found = [TEXT] * max(count, len(given))
        for parameter in self.parameters:
            found[parameter.number - 1] = parameter.type or found[parameter.number - 1]
        for i, type in enumerate(given):
            if type not in (0, UNKNOWN):
                found[i] = type
        return tuple(found)

    def bound(self, values: Sequence[WireValue], read: Read = read) -> SelectAsked:
        """What it asks with these values; refused with its place in the client's text."""
        if self.asked is not None:
            return self.asked
        given = [(one.start, one.end, literal(values[one.number - 1])) for one in self.parameters]
        return _read(self.statement, [*self.edits, *given], self.dataset, read)


def table_select(
    statement: SentStatement, find: Callable[[str], ServedData | None], read: Read = read
) -> TableSelect | None:
    """Read a SELECT about a data set, which `find` finds by a table's name; None if it is about none."""
    sources = _sources(statement, find)
    datasets = {source.dataset.name: source.dataset for source in sources}
    if not datasets:
        return None
    if len(datasets) > 1:
        words = f"a statement is about one data set, not {' and '.join(sorted(datasets))}."
        raise WireError(BAD_QUESTION, words)
    (dataset,) = datasets.values()
    edits = tuple(sorted(edit for source in sources for edit in source.edits))
    domain = dataset.session.domain
    parameters = _parameters(statement, domain)
    if parameters:  # a value that could stand for each tells the columns
        given = [(one.start, one.end, _sample(one, domain)) for one in parameters]
        columns: tuple[Field, ...] | WireError | Refusal
        try:
            columns = _read(statement, [*edits, *given], dataset, read).fields
        except (WireError, Refusal) as error:
            columns = error
        return TableSelect(dataset, statement, edits, parameters, columns)
    asked = _read(statement, edits, dataset, read)
    # What is heavy is read again when it is asked: a client may prepare hundreds of statements. So is what is about a
    # series, which may have another block by then.
    kept = asked if asked.question.light and not dataset.grows else None
    return TableSelect(dataset, statement, edits, parameters, asked.fields, kept)


def _read(
    statement: SentStatement, edits: Sequence[tuple[int, int, str]], dataset: ServedData, read: Read
) -> SelectAsked:
    edited, domain = Edited.of(statement.text, sorted(edits)), dataset.session.domain
    try:
        question = read(edited.text, domain)
    except InvalidQuery as error:
        raise _refused(error, edited, statement) from None
    places = places_of(question.ask, domain)
    names = _names(statement, question.ask, len(places))
    fields = (Field(name, place.type, size_of(place.type)) for name, place in zip(names, places, strict=True))
    return SelectAsked(question, tuple(fields), places)


def _refused(error: InvalidQuery, edited: Edited, statement: SentStatement) -> WireError:
    """The refusal with the places that it names in the client's own text; else with the one that it knows."""
    found: list[int] = []

    def shown(match: re.Match[str]) -> str:
        at = edited.place(int(match[1]), int(match[2]))
        found.append(at)
        before = statement.text[:at]
        return f"(line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))})"

    words = _PLACE.sub(shown, error.sentence)
    if not found and error.at is not None:
        found.append(edited.before(error.at))
    return WireError(SYNTAX, words, at=statement.start + found[0]) if found else WireError(BAD_QUESTION, words)


# -- tables -----------------------------------------------------------------------------------------------------------


class _Source(NamedTuple):
    """A table after FROM, and what makes it `data`."""

    dataset: ServedData
    edits: list[tuple[int, int, str]]


def _sources(statement: SentStatement, find: Callable[[str], ServedData | None]) -> list[_Source]:
    tokens = statement.tokens
    named = {name_of(tokens[i]) for i in range(len(tokens) - 2) if _names_statement(tokens, i)}
    found, selects = list[_Source](), [False]  # whether there is a SELECT in each of the open parentheses
    for at, token in enumerate(tokens):
        if token.token_type in _OPEN:
            selects.append(False)
        elif token.token_type in _CLOSE and len(selects) > 1:
            selects.pop()
        elif token.token_type == TokenType.SELECT:
            selects[-1] = True
        elif token.token_type == TokenType.FROM and selects[-1]:  # not that of EXTRACT(hour FROM t)
            source = _source(statement, at + 1, named, find)
            found += [] if source is None else [source]
    return found


def _names_statement(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word gives a name to a statement: WITH t AS (SELECT …)."""
    return (
        tokens[at].token_type in _NAMES
        and tokens[at + 1].token_type == TokenType.ALIAS
        and tokens[at + 2].token_type == TokenType.L_PAREN
    )


def _source(
    statement: SentStatement, first: int, named: set[str], find: Callable[[str], ServedData | None]
) -> _Source | None:
    tokens = statement.tokens
    parts, at = list[str](), first
    while at < len(tokens) and (tokens[at].token_type in _NAMES or tokens[at].text.isidentifier()):
        parts.append(name_of(tokens[at]))
        at += 1
        if at == len(tokens) or tokens[at].token_type != TokenType.DOT:
            break
        at += 1
    if not parts or len(parts) > 2 or (len(parts) == 2 and parts[0] != "public") or parts == [*named & set(parts)]:
        return None
    name = parts[-1]
    dataset = find(name)
    if dataset is None:
        return None
    called = at < len(tokens) and tokens[at].token_type in (TokenType.ALIAS, *_NAMES)
    text = "data" if called or name == "data" else f'data AS "{name}"'
    start, end = tokens[first].start, tokens[at - 1].end + 1
    edits = [] if statement.text[start:end].lower() == text else [(start, end, text)]
    return _Source(dataset, edits + _without_schema(tokens, first, name))


def _without_schema(tokens: Sequence[Token], source: int, name: str) -> list[tuple[int, int, str]]:
    """public.people.sex is people.sex."""
    return [
        (tokens[i].start, tokens[i + 1].end + 1, "")
        for i in range(len(tokens) - 4)
        if i != source
        and [name_of(tokens[i]), name_of(tokens[i + 2])] == ["public", name]
        and tokens[i + 1].token_type == tokens[i + 3].token_type == TokenType.DOT
    ]


# -- parameters -------------------------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """A parameter in the text: where it stands with a cast that follows it, and what it is compared with, if known."""

    number: int
    start: int
    end: int
    type: int
    column: str | None
    before: str  # the word before it


def _parameters(statement: SentStatement, domain: Domain) -> tuple[Parameter, ...]:
    """Where $1, $2, … stand in a statement, and the types that they have."""
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


def _sample(parameter: Parameter, domain: Domain) -> str:
    """A value that could stand for a parameter, as it is written: to learn which columns a statement has."""
    plain: dict[int, WireValue] = {TEXT: "", BOOL: True, DATE: dt.date(2000, 1, 1), INT8: 1, FLOAT8: 1, NUMERIC: 1}
    if parameter.column is None:
        return literal(plain.get(parameter.type, 1))
    attribute = domain[parameter.column]
    values = attribute.values
    if isinstance(values, Listed):
        return literal(values.values[0])
    first = 0 if parameter.before == "BETWEEN" else 1
    point = attribute.edge(min(first, attribute.bins)) - (1 if values.whole and parameter.before in _ENDS else 0)
    return literal(dt.date.fromordinal(int(point)) if isinstance(values, Days) else point)


# -- names of columns -------------------------------------------------------------------------------------------------


class Bounded:
    """Beside one of sqlglot's parsers: it gives up where a text makes it go back and forth too often."""

    _tokens: list[Token]
    steps = 0

    def _advance(self, times: int = 1) -> None:
        self.steps += 1
        if self.steps > LEAST_STEPS + STEPS_A_TOKEN * len(self._tokens):
            raise ParseError("too many steps")
        super()._advance(times)  # type: ignore[misc]  # the parser's


class _SelectParser(Bounded, DuckDB.Parser):  # type: ignore[misc, valid-type]  # made by a metaclass
    pass


def _names(statement: SentStatement, ask: Ask, count: int) -> Sequence[str]:
    """The names of a statement's columns, as PostgreSQL gives them. The statement was read already."""
    depth = 0
    for token in statement.tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.FROM:
            listed = _listed(statement.text[: token.start])
            if listed is not None and len(listed) == count:
                return listed
            break
    titles = ask.titles if isinstance(ask, Select | Derived) else []
    return titles if len(titles) == count else [f"column{i + 1}" for i in range(count)]


@lru_cache(maxsize=1_000)  # what stands before FROM is the same in many statements
def _listed(before: str) -> tuple[str, ...] | None:
    """The names of what a SELECT lists before its FROM; None where * stands there."""
    text = f"{before} FROM data"
    try:
        parsed = [one for one in _SelectParser(dialect=DuckDB()).parse(list(DuckDB().tokenize(text)), text) if one]
    except (ParseError, TokenError, RecursionError):
        return None
    items = parsed[0].expressions if len(parsed) == 1 and isinstance(parsed[0], exp.Select) else []
    if any(isinstance(item.unalias(), exp.Star) for item in items):
        return None
    return tuple(item.alias or title(item) for item in items)


def title(node: exp.Expr) -> str:
    """The name of a column without an alias: that of a column, of a function, or none."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Collate | exp.Filter | exp.Window | exp.WithinGroup):
        node = node.this
    match node:
        case exp.Dot():
            return title(node.expression)
        case exp.Column() | exp.Identifier():
            return str(node.name)
        case exp.Subquery() if isinstance(node.this, exp.Select) and node.this.expressions:
            return node.this.expressions[0].alias or title(node.this.expressions[0])
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.Case() | exp.Array() | exp.Coalesce() | exp.Exists():
            return str(node.key)
        case exp.CurrentVersion():
            return "version"
        case exp.Func() if not isinstance(node, exp.Binary | exp.Connector):
            return node.sql_name().lower()
    return "?column?"
