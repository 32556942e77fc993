"""What a statement of a client is: a question about a data set, its price, a look into the catalogues, or a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.catalogue import Lookup
from tacit.serve.postgres.command import Command, command_of
from tacit.serve.postgres.messages import Field, measured
from tacit.serve.postgres.preparation import Execution, Fetching, Preparation, execution, fetching, preparation
from tacit.serve.postgres.select import SelectAsked, TableSelect
from tacit.serve.postgres.source import SentStatement
from tacit.serve.postgres.sqlstate import SYNTAX, UNSUPPORTED, WireError
from tacit.serve.postgres.types import TEXT, Value, encoder

Asked = Callable[[SentStatement], TableSelect | Lookup]
QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "(", "FROM")
NESTED = ("EXPLAIN", "COPY", "PREPARE", "DECLARE")  # have a query inside
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)


class Data(NamedTuple):
    """What is copied at once, and how many rows it is."""

    line: bytes
    rows: int


@dataclass(frozen=True)
class Copies:
    """How COPY … TO STDOUT writes rows."""

    csv: bool = False
    binary: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"

    def lines(self, fields: Sequence[Field], rows: Iterator[Row]) -> Iterator[Data]:
        writers = [encoder(field.type, int(self.binary)) for field in fields]
        if self.binary:
            head = _SIGNATURE  # goes with what comes first, as in PostgreSQL: there are clients that rely on it
            for row in rows:
                values = [write(value) for write, value in zip(writers, row, strict=True)]
                yield Data(head + len(values).to_bytes(2, "big") + b"".join(map(measured, values)), 1)
                head = b""
            yield Data(head + b"\xff\xff", 0)
            return
        if self.header:
            yield Data(self._line([field.name for field in fields]), 0)
        for row in rows:
            values = [write(value) for write, value in zip(writers, row, strict=True)]
            yield Data(self._line([None if value is None else value.decode() for value in values]), 1)

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
    """A statement that another one gives a name to."""

    named: Preparation
    inner: Prepared


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

    def bound(self, values: tuple[Value, ...]) -> BoundStatement:
        """The statement with values for its parameters."""
        asked = self.asked.bound(values) if isinstance(self.asked, TableSelect) else None
        return BoundStatement(self, values, asked, self.fields if asked is None or self.explains else asked.fields)

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        """The types of its parameters."""
        if isinstance(self.asked, NamedStatement):
            return self.asked.inner.types(given) if self.asked.named.cursor else ()
        return self.asked.types(given) if isinstance(self.asked, TableSelect | Lookup) else ()


EMPTY = Prepared(Command(""), "")  # the statement without words


@dataclass(frozen=True)
class BoundStatement:
    """A statement with values for its parameters: what it asks of a data set, if it does, and its columns."""

    prepared: Prepared
    values: tuple[Value, ...]
    asked: SelectAsked | None
    fields: tuple[Field, ...] | None


def prepare(statement: SentStatement, query: Asked) -> Prepared:
    """Read a statement; `query` reads what may be about a table."""
    word = statement.words[0]
    command = command_of(statement)
    if command is not None:
        return Prepared(command, command.tag)
    if word == "EXPLAIN":
        return _explain(statement, query)
    if word == "COPY":
        return _copy(statement, query)
    if word in QUERY:
        return Prepared(query(statement))
    if word in ("PREPARE", "DECLARE"):
        return _named(preparation(statement), query)
    if word == "EXECUTE":
        return Prepared(execution(statement))
    if word in ("FETCH", "MOVE"):
        return Prepared(fetching(statement), word)
    raise WireError(
        SYNTAX, f"{statement.tokens[0].text[:60]} begins no statement that is answered here.", at=statement.start
    )


def _named(named: Preparation, query: Asked) -> Prepared:
    if not named.inner.words or named.inner.words[0] not in QUERY:
        raise WireError(UNSUPPORTED, "what is prepared, or has a cursor, is a SELECT.", at=named.inner.start)
    tag = "DECLARE CURSOR" if named.cursor else "PREPARE"
    return Prepared(NamedStatement(named, Prepared(query(named.inner))), tag)


def _explain(statement: SentStatement, query: Asked) -> Prepared:
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


def _copy(statement: SentStatement, query: Asked) -> Prepared:
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
