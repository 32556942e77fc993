"""SQL statements as they are typed or read from a file, and where each begins, so that a refusal names its place."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tacit.errors import ConfigError, InvalidQuery, TacitError

MAX_FILE_STATEMENTS = 10_000
MAX_FILE_BYTES = 16 * 2**20  # bytes of a file of questions
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_ROWS = "SELECT COUNT(*) FROM data WHERE "  # makes a statement of a condition


@dataclass(frozen=True)
class Statement:
    """One statement, and where it begins in `file`; one that was typed begins at line 1 of no file."""

    text: str
    file: str = ""
    line: int = 1
    column: int = 1

    def placed(self, sentence: str) -> str:
        """A refusal of this statement, with its places counted from the beginning of the file.

        >>> Statement("SELECT agee", "week.sql", line=5, column=3).placed("unknown column 'agee' (line 1, column 8)")
        "week.sql, line 5: unknown column 'agee' (line 5, column 10)"
        """

        def place(found: re.Match[str]) -> str:
            line, column = int(found[1]), int(found[2])
            return f"(line {line + self.line - 1}, column {column + (self.column - 1 if line == 1 else 0)})"

        file = f"{self.file}, line {self.line}: " if self.file else ""
        return file + _PLACE.sub(place, sentence)


@contextmanager
def placed(statement: Statement | None) -> Iterator[str | None]:
    """The text of a statement; a refusal of it says where it stands."""
    try:
        yield None if statement is None else statement.text
    except TacitError as error:
        if statement is not None:
            error.sentence = statement.placed(error.sentence)
        raise


def condition_of(where: str | None) -> Statement | None:
    """The statement that counts the rows of a condition, which begins where the condition does."""
    if where is None:
        return None
    if not where.strip():
        raise click.UsageError("--where has no condition.")
    return Statement(_ROWS + where, column=1 - len(_ROWS))


def read_statements(path: str) -> list[Statement]:
    """The statements of a file; "-" is standard input."""
    shown = "standard input" if path == "-" else Path(path).name or path
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{shown} cannot be read as a text file.") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{shown} is larger than {MAX_FILE_BYTES // 2**20} MiB; ask its questions in parts.")
    return split(text, shown)


def split(text: str, file: str = "") -> list[Statement]:
    """Cut at the semicolons that are not part of a string, a name or a comment.

    >>> [one.text for one in split("SELECT 1 WHERE a = ';'; -- the next; one\\nSELECT 2;;")]
    ["SELECT 1 WHERE a = ';'", 'SELECT 2']
    """
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    try:
        tokens = DuckDB().tokenize(text)
    except SqlglotError:
        where = f"{file or 'the text'} cannot be read"
        raise InvalidQuery(f"{where}: a quotation mark or a comment is opened and never closed.") from None
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1] += [token.start, token.end + 1]
    ends = [(part[0], part[-1]) for part in parts if part]
    if not ends:
        raise InvalidQuery(f"{file or 'the text'} has no statement.")
    if len(ends) > MAX_FILE_STATEMENTS:
        raise InvalidQuery(f"{file or 'the text'} has {len(ends):,} statements; {MAX_FILE_STATEMENTS:,} at most.")
    starts = [0, *(found.end() for found in re.finditer("\n", text))]  # of the lines
    made = []
    for start, end in ends:
        line = bisect_right(starts, start)
        made.append(Statement(text[start:end], file, line, start - starts[line - 1] + 1))
    return made
