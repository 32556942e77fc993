"""The prompt of `tacit ask`: a statement, an answer, until Ctrl-D. History and completion come from readline."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.options import starting
from tacit.cli.show import as_text, escape, print_answer, print_dry_run
from tacit.cli.statements import split
from tacit.errors import TacitError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.cli.options import Opened
    from tacit.model.domain import Domain

PROMPT, MORE = "tacit> ", "  ...> "
MODES = ("table", "csv", "json", "markdown")
HELP = """\
SELECT COUNT(*) FROM data WHERE …;     a question, over several lines if you like, up to ; or an empty line
\\c QUESTION    what it could cost, without asking it
\\d             the columns that may be asked about, with their values; \\d WORD: those that have the word in their name
\\b             the budget
.mode MODE     how answers are shown: table, csv, json or markdown
\\timing        say how long each answer took, or no longer
\\h             this help (so does help)
\\q             leave (so do exit, quit and Ctrl-D); Ctrl-C drops what was begun
These commands are also taken in the middle of a question.
Tab completes words, columns and values; the arrow keys bring back earlier lines."""
_KEYWORDS = (
    "SELECT", "COUNT(*)", "SUM(", "AVG(", "MEDIAN(", "FROM", "data", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "AND",
    "OR", "NOT", "IN", "BETWEEN", "IS NULL", "TRUE", "FALSE", "DATE",
)  # fmt: skip
LEAVE = ("\\q", "exit", "quit", ".quit", ".exit")
COMMANDS = ("\\b", "\\c", "\\d", "\\h", "\\q", "\\timing")
MOST_OFFERED_VALUES, MOST_REMEMBERED_LINES = 100, 1000  # offered for one column; remembered
_WORD = re.compile(r"'[^']*$|[^\s'\"(),=<>]*$")
_COLUMN_BEFORE = re.compile(
    r"([\w.]+|\"[^\"]+\")\s*(?:=|<>|!=|<=|>=|<|>|\bIN\s*\((?:[^()]*,)?|\bBETWEEN)\s*$", re.IGNORECASE
)


@dataclass
class Manner:
    """How answers are shown at this prompt."""

    mode: str = "table"
    timing: bool = False


def talk(session: Opened, to: Console, read: Callable[[str], str] | None = None) -> None:
    """Read questions and print answers until the end of input. Errors do not end it."""
    from tacit.model.status import rows_in_words

    lines = read or completing(session.domain)
    rows = rows_in_words(session.rows, session.rows_per_person)
    to.print(f"{rows}, {len(session.domain)} columns. \\h for help, Ctrl-D to leave.", style="dim")
    manner, begun = Manner(), list[str]()
    while True:
        try:
            line = lines(MORE if begun else PROMPT).strip()
        except KeyboardInterrupt:  # drops what was begun, as in a shell
            begun.clear()
            to.print()
            continue
        except EOFError:
            to.print()
            return
        inside_text = _is_inside_text(begun)
        if not inside_text and line.rstrip("; ").lower() in LEAVE:
            return
        if not inside_text and line.rstrip("; ").lower() == "help":
            line = "\\h"
        try:
            # In the middle of a question a line may begin with a point, and with no backslash but in a text.
            if line.startswith("\\" if begun else ("\\", ".")) and not inside_text:
                _obey(line, session, manner, to)
                continue
            begun += [line] if line else []
            if begun and (not line or _is_whole(begun)):
                text = "\n".join(begun)
                begun.clear()
                for statement in split(text):
                    _answer(statement.text, session, manner, to)
        except TacitError as error:
            to.print(f"[red]tacit:[/] {escape(str(error))}")


def _is_whole(lines: list[str]) -> bool:
    """Whether the last line ends a statement: with a semicolon that is not part of a text."""
    return lines[-1].endswith(";") and not _is_inside_text(lines)


def _is_inside_text(lines: list[str]) -> bool:
    """Whether what comes next belongs to a text that was begun: its quote is still open."""
    return sum(line.count("'") for line in lines) % 2 == 1


def _answer(question: str, session: Opened, manner: Manner, to: Console) -> None:
    begun = time.perf_counter()
    answer = starting(session, "answer", lambda: session.ask(question))
    took = time.perf_counter() - begun
    if manner.mode == "table":
        print_answer(answer, session.rows, to)
    else:
        to.print(as_text(answer, manner.mode), markup=False, end="")
    if manner.timing:
        to.print(f"{1000 * took:,.0f} ms", style="dim")


def _obey(line: str, session: Opened, manner: Manner, to: Console) -> None:
    command, _, rest = line.partition(" ")
    if command == "\\c" and rest.strip():
        question = rest.strip().rstrip("; ")
        print_dry_run(question, session.dry_run(question), to)
    elif command == "\\d":
        from tacit.model.description import values_of

        part = rest.strip().lower()
        found = {name: attribute for name, attribute in session.domain.items() if part in name.lower()}
        for name, attribute in found.items():
            to.print(f"[bold]{escape(name)}[/] {attribute.kind}: {escape(values_of(attribute))}")
        if not found:
            to.print(f"No column is called like {escape(part)}.")
    elif command == "\\b":
        from tacit.model.budget import percent_of

        to.print(f"{session.budget}; {percent_of(session.spent, session.total)} of it is spent")
    elif command == ".mode" and rest.strip() in MODES:
        manner.mode = rest.strip()
    elif command == ".mode":
        to.print(f"The modes are {', '.join(MODES)}; this is {manner.mode}.")
    elif command == "\\timing":
        manner.timing = not manner.timing
        to.print(f"Timing is {'on' if manner.timing else 'off'}.")
    elif command == "\\h":
        to.print(HELP, markup=False)
    else:
        to.print(f"{command} is not a command here.\n{HELP}", markup=False)


def complete(line: str, domain: Domain) -> list[str]:
    """What the last word of a line may become: a value after a comparison, else a column or a keyword.

    >>> from tacit import Domain, category
    >>> complete("SELECT COUNT(*) FROM data WHERE sex = 'F", Domain({"sex": category(["F", "M"])}))
    ["'F'"]
    """
    from tacit.model.sql import spelling

    found = _WORD.search(line)
    word = found[0] if found else ""
    if line.startswith("\\") and " " not in line:
        return [command for command in COMMANDS if command.startswith(line)]
    column = _COLUMN_BEFORE.search(line[: len(line) - len(word)])
    if column is not None:
        name = next((n for n in domain if n.lower() == column[1].strip('"').lower()), None)
        if name is not None:
            return [value for value in _values(domain, name) if value.lower().startswith(word.lower())]
    options = (*map(spelling.column, domain), *_KEYWORDS)
    return [option for option in options if word and option.strip('"').lower().startswith(word.lower())]


def _values(domain: Domain, name: str) -> list[str]:
    """The values of a column as SQL has them; of bins, where they begin."""
    from tacit.model.sql.spelling import ends, literal

    attribute = domain[name]
    if attribute.ordered:
        return [low for low, _ in ends(attribute, MOST_OFFERED_VALUES)]
    if attribute.kind == "boolean":
        return ["TRUE", "FALSE"]
    places = (*range(min(attribute.bins, MOST_OFFERED_VALUES)), *range(attribute.bins, attribute.size))
    return [literal(attribute, place) for place in places]


def completing(domain: Domain) -> Callable[[str], str]:
    """Lines from the terminal, with history and completion where this Python has readline."""
    try:
        import readline
    except ImportError:
        return input
    remembered = history_path()
    offered: list[str] = []

    def offer(word: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            offered[:] = complete(line, domain)
        return offered[state] if state < len(offered) else None

    readline.set_completer(offer)
    readline.set_completer_delims(" \t\n(),=<>")
    readline.parse_and_bind("tab: complete")
    try:
        remembered.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(remembered, os.O_CREAT | os.O_RDWR, 0o600))
        remembered.chmod(0o600)  # also one that was made with other rights
        readline.read_history_file(remembered)
    except OSError:
        return input

    def line(prompt: str) -> str:
        given = input(prompt)
        readline.set_history_length(MOST_REMEMBERED_LINES)
        before = os.umask(0o077)
        try:
            readline.write_history_file(remembered)
        except OSError:
            pass  # a history that cannot be written is only an inconvenience
        finally:
            os.umask(before)
        return given

    return line


def history_path() -> Path:
    """Where the lines typed at the prompt are remembered: the user's state folder, beside the anchor."""
    from tacit.store.anchor import default_path

    return default_path().with_name("prompt-history")
