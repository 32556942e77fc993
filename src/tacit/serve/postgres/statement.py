"""What a statement of a client is: a question about a data set, its price, a look into the catalogues, or a command.

Some give a name to another statement, or use it: PREPARE and EXECUTE, DECLARE, FETCH and MOVE of cursors. They do by
words what the protocol does by messages (Parse, Bind, Execute), with the same names and the same limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.catalogue import Lookup
from tacit.serve.postgres.command import Command, command_of
from tacit.serve.postgres.messages import Field, measured
from tacit.serve.postgres.select import Read, SelectAsked, TableSelect
from tacit.serve.postgres.source import SentStatement, name_of
from tacit.serve.postgres.sqlstate import SYNTAX, UNSUPPORTED, WireError
from tacit.serve.postgres.types import NAMED, TEXT, WireValue, encoder
from tacit.serve.question import read

AskSelect = Callable[[SentStatement], TableSelect | Lookup]
QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "(", "FROM")
ALL = -1  # rows: all that are left
_BACKWARDS = ("PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD")
_PLAIN = {"TRUE": "true", "FALSE": "false", "NULL": None}
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)


@dataclass(frozen=True)
class Copies:
    """How COPY … TO STDOUT writes rows."""

    csv: bool = False
    binary: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"

    def lines(self, fields: Sequence[Field], rows: Iterable[Row]) -> Iterator[bytes]:
        """What is sent: the head if there is one, then a line for each row."""
        writers = [encoder(field.type, int(self.binary)) for field in fields]
        if self.binary:
            head = _SIGNATURE  # goes with what comes first, as in PostgreSQL: there are clients that rely on it
            for row in rows:
                values = [write(value) for write, value in zip(writers, row, strict=True)]
                yield head + len(values).to_bytes(2, "big") + b"".join(map(measured, values))
                head = b""
            yield head + b"\xff\xff"
            return
        if self.header:
            yield self._line([field.name for field in fields])
        for row in rows:
            values = [write(value) for write, value in zip(writers, row, strict=True)]
            yield self._line([None if value is None else value.decode() for value in values])

    def _line(self, values: Sequence[str | None]) -> bytes:
        return (self.delimiter.join(map(self._value, values)) + "\n").encode()

    def _value(self, value: str | None) -> str:
        if value is None:
            return self.null
        if not self.csv:
            for mark, shown in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
                value = value.replace(mark, shown)
            return value if self.delimiter == "\t" else value.replace(self.delimiter, f"\\{self.delimiter}")
        if value == self.null or any(mark in value for mark in (self.delimiter, '"', "\n", "\r")):
            return '"' + value.replace('"', '""') + '"'
        return value


@dataclass(frozen=True)
class NamedStatement:
    """PREPARE name (types) AS …, or DECLARE name CURSOR FOR …: `inner` is the statement that is named."""

    name: str
    inner: Prepared
    length: int  # of its text
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


@dataclass(frozen=True)
class Prepared:
    """A statement that was read. `copies` is set where its rows are copied out.

    explains: the price of a question is told, and the error to expect; nothing is asked.
    """

    asked: TableSelect | Lookup | Command | NamedStatement | Execution | Fetching
    tag: str = "SELECT"
    copies: Copies | None = None
    explains: bool = False

    @property
    def fields(self) -> tuple[Field, ...] | None:
        """The columns of its result; None where it has none, or has those of a statement that it names."""
        if isinstance(self.asked, NamedStatement | Execution | Fetching):
            return None
        return (Field("QUERY PLAN", TEXT),) if self.explains else self.asked.fields

    def bound(self, values: tuple[WireValue, ...], read: Read = read) -> BoundStatement:
        """The statement with values for its parameters."""
        asked = self.asked.bound(values, read) if isinstance(self.asked, TableSelect) else None
        return BoundStatement(self, values, asked, self.fields if asked is None or self.explains else asked.fields)

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        """The types of its parameters."""
        if isinstance(self.asked, NamedStatement):
            return self.asked.inner.types(given) if self.asked.cursor else ()
        return self.asked.types(given) if isinstance(self.asked, TableSelect | Lookup) else ()


EMPTY = Prepared(Command(""), "")  # the statement without words


@dataclass(frozen=True)
class BoundStatement:
    """A statement with values for its parameters: what it asks of a data set, if it does, and its columns."""

    prepared: Prepared
    values: tuple[WireValue, ...]
    asked: SelectAsked | None
    fields: tuple[Field, ...] | None


def prepare(statement: SentStatement, query: AskSelect) -> Prepared:
    """Read a statement; `query` reads what may be about a table."""
    word = statement.words[0]
    command = command_of(statement)
    if command is not None:
        return Prepared(command, command.tag)
    if word in QUERY:
        return Prepared(query(statement))
    if word in NESTED:
        return NESTED[word](statement, query)
    if word == "EXECUTE":
        return Prepared(_execution(statement))
    if word in ("FETCH", "MOVE"):
        return Prepared(_fetching(statement), word)
    raise WireError(
        SYNTAX, f"{statement.tokens[0].text[:60]} begins no statement that is answered here.", at=statement.start
    )


def _explain(statement: SentStatement, query: AskSelect) -> Prepared:
    at = 1
    if statement.words[1:2] == ("(",):
        at = statement.words.index(")") + 1 if ")" in statement.words else len(statement.words)
    while statement.words[at : at + 1] in (("ANALYZE",), ("VERBOSE",)):
        at += 1
    if "ANALYZE" in statement.words[:at]:
        raise WireError(UNSUPPORTED, "EXPLAIN ANALYZE would ask the question, and pay for it; EXPLAIN tells the price.")
    asked = query(statement.part(at, len(statement.tokens)))
    if not isinstance(asked, TableSelect):
        raise WireError(UNSUPPORTED, "EXPLAIN tells the price of a question about a data set; catalogues are free.")
    return Prepared(asked, "EXPLAIN", explains=True)


def _copy(statement: SentStatement, query: AskSelect) -> Prepared:
    words = statement.words
    usage = "COPY (SELECT …) TO STDOUT [WITH (FORMAT csv, HEADER)] is answered here; rows are never shown."
    depth, close = 0, 0
    for at, word in enumerate(words[1:], 1):
        depth += (word == "(") - (word == ")")
        if depth <= 0:
            close = at
            break
    if words[1:2] != ("(",) or words[close + 1 : close + 3] != ("TO", "STDOUT"):
        raise WireError(UNSUPPORTED, usage, at=statement.start)
    asked = query(statement.part(2, close))
    return Prepared(asked, "COPY", _copies(statement, close + 3, usage))


def _copies(statement: SentStatement, at: int, usage: str) -> Copies:
    """The options, in the old form (CSV HEADER) and in the new one ((FORMAT csv, HEADER true))."""
    tokens = [
        token for token in statement.tokens[at:] if token.text.upper() not in ("WITH", "(", ")", ",", "AS", "FORMAT")
    ]
    kind, header, delimiter, null = "text", False, None, None
    i = 0
    while i < len(tokens):
        word, value = tokens[i].text.upper(), tokens[i + 1].text if i + 1 < len(tokens) else ""
        i += 1
        if word in ("CSV", "TEXT", "BINARY"):
            kind = word.lower()
        elif word == "HEADER":
            header = value.lower() not in ("false", "off", "0")
            i += value.lower() in ("true", "on", "1", "false", "off", "0", "match")
        elif word == "DELIMITER" and re.fullmatch(r"[^\\\n\ra-z0-9\".]", value):
            delimiter, i = value, i + 1
        elif word == "NULL":
            null, i = value[:20], i + 1
        elif (word, value.upper().replace("-", "")) in (("ENCODING", "UTF8"), ("QUOTE", '"'), ("ESCAPE", '"')):
            i += 1
        else:
            raise WireError(UNSUPPORTED, f"{word[:60]} is no option of a COPY here. {usage}")
    csv = kind == "csv"
    return Copies(
        csv,
        kind == "binary",
        header,
        delimiter or ("," if csv else "\t"),
        ("" if csv else "\\N") if null is None else null,
    )


def _inner(statement: SentStatement, query: AskSelect) -> Prepared:
    """The statement that is given a name."""
    if not statement.words or statement.words[0] not in QUERY:
        raise WireError(UNSUPPORTED, "what is prepared, or has a cursor, is a SELECT.", at=statement.start)
    return Prepared(query(statement))


def _prepare(statement: SentStatement, query: AskSelect) -> Prepared:
    words, tokens, types, at = statement.words, statement.tokens, list[int](), 2
    if words[1:2] == ("TRANSACTION",):
        raise WireError(UNSUPPORTED, "Transactions mean nothing here, so none is prepared.", at=statement.start)
    if words[2:3] == ("(",):
        close = _index(words, ")", 3)
        types = [_type(part) for part in _parts(tokens[3:close])]
        at = close + 1
    if len(tokens) < 4 or words[at : at + 1] != ("AS",):
        raise _wrong(statement, "PREPARE name AS SELECT …")
    inner = statement.part(at + 1, len(tokens))
    named = NamedStatement(name_of(tokens[1]), _inner(inner, query), len(inner.text), tuple(types))
    return Prepared(named, "PREPARE")


def _declare(statement: SentStatement, query: AskSelect) -> Prepared:
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
    name, holds = name_of(statement.tokens[1]), hold == ("WITH", "HOLD")
    named = NamedStatement(name, _inner(inner, query), len(inner.text), cursor=True, holds=holds)
    return Prepared(named, "DECLARE CURSOR")


# What has a query inside, and what reads it.
NESTED = {"EXPLAIN": _explain, "COPY": _copy, "PREPARE": _prepare, "DECLARE": _declare}


def _execution(statement: SentStatement) -> Execution:
    words, tokens = statement.words, statement.tokens
    if len(tokens) < 2 or (len(tokens) > 2 and (words[2], words[-1]) != ("(", ")")):
        raise _wrong(statement, "EXECUTE name (1, 'two')")
    return Execution(name_of(tokens[1]), tuple(_value(part, statement) for part in _parts(tokens[3:-1])))


def _fetching(statement: SentStatement) -> Fetching:
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
