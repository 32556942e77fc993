"""Several statements in one text: where each begins, so that a refusal names the line. Called by the command line."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import ConfigError, InvalidQuery

MAX_STATEMENTS = 10_000
MAX_TEXT = 16 * 2**20  # bytes of a file of questions
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")


@dataclass(frozen=True)
class Statement:
    """One statement, and where it begins in `file`; a statement of its own begins at line 1 of no file."""

    text: str
    file: str = ""
    line: int = 1
    column: int = 1

    def placed(self, sentence: str) -> str:
        """A refusal of this statement, with its places counted from the beginning of the file."""
        if not self.file:
            return sentence
        return f"{self.file}, line {self.line}: {moved(sentence, self.line - 1, self.column - 1)}"


def moved(sentence: str, lines: int, columns: int) -> str:
    """The same sentence about a text that begins `lines` further down, its first line `columns` further right.

    >>> moved("unknown column 'agee' (line 1, column 7)", 4, 2)
    "unknown column 'agee' (line 5, column 9)"
    """

    def place(found: re.Match[str]) -> str:
        line, column = int(found[1]), int(found[2])
        return f"(line {line + lines}, column {column + (columns if line == 1 else 0)})"

    return _PLACE.sub(place, sentence)


def read_statements(path: str) -> list[Statement]:
    """The statements of a file; "-" is standard input."""
    shown = "standard input" if path == "-" else Path(path).name or path
    try:
        if path == "-":
            import sys

            raw = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_TEXT + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{shown} cannot be read as a text file.") from None
    if len(raw) > MAX_TEXT:
        raise ConfigError(f"{shown} is larger than {MAX_TEXT // 2**20} MiB; ask its questions in parts.")
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
    if len(ends) > MAX_STATEMENTS:
        raise InvalidQuery(f"{file or 'the text'} has {len(ends):,} statements; the most is {MAX_STATEMENTS:,}.")
    starts = [0, *(found.end() for found in re.finditer("\n", text))]  # of the lines
    made = []
    for start, end in ends:
        line = bisect_right(starts, start)
        made.append(Statement(text[start:end], file, line, start - starts[line - 1] + 1))
    return made
