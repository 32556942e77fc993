"""The prompt of `tacit ask`: lines in, answers out, and errors that do not end it."""

from __future__ import annotations

import io
import os
import pty
import select
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

import tacit
from people import configuration
from support import PATIENCE
from tacit.cli.prompt import COMMANDS, HELP, complete, history_path, talk

DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"], missing="unknown"),
        "age": tacit.integer(0, 99, width=10),
        "active": tacit.boolean(),
        "home town": tacit.category(["Aix", "L'Aquila"]),
        "joined": tacit.date("2020-01-01", "2021-12-31", by="year"),
    }
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tacit.Session]:
    (tmp_path / "people.csv").write_text("sex,age\n" + "".join(f"{'FM'[i % 2]},{i % 90}\n" for i in range(500)))
    (tmp_path / "tacit.toml").write_text(configuration("sex", "age", mechanism="direct", questions=5))
    domain = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)})
    with tacit.open(
        data=str(tmp_path / "people.csv"),
        domain=domain,
        budget=tacit.Budget(epsilon=5.0, delta=1e-9),
        ledger=tmp_path / "people.tacit",
        mechanism="direct",
        questions=5,
    ) as opened:
        yield opened


def spoken(session: tacit.Session, *lines: str | type[BaseException]) -> str:
    """What the prompt prints for these lines; an exception stands for a key."""
    given = iter([*lines, EOFError])

    def read(prompt: str) -> str:
        line = next(given)
        if isinstance(line, str):
            return line
        raise line

    out = io.StringIO()
    talk(session, Console(file=out, width=200), read)
    return out.getvalue()


def test_questions_errors_and_commands(session: tacit.Session) -> None:
    said = spoken(
        session,
        "SELECT COUNT(*) FROM data WHERE sex = 'F';",
        "SELECT COUNT(*) FROM data WHERE sexx = 'F'",
        "",  # sends it, as a semicolon does
        "SELECT nonsense",
        KeyboardInterrupt,  # drops what was begun
        "SELECT COUNT(*)",
        "  FROM data WHERE NOT sex = 'M';",
        "\\c SELECT COUNT(*) FROM data WHERE sex = 'F'",
        "\\c SELECT COUNT(*) FROM data WHERE age < 50",
        "\\d",
        "\\d A",
        "\\d town",
        "\\b",
        "\\h",
        "\\x",
    )
    assert "measured" in said
    assert "did you mean 'sex'?" in said
    assert "repeat, free" in said  # after the error
    assert "free, and known: it is answered already" in said
    assert "% of the budget" in said
    assert said.count("age integer: 0 to 99") == 2
    assert said.count("sex category: ") == 1
    assert "No column is called like town." in said
    assert "20 % of it is spent" in said
    assert said.count(HELP.splitlines()[0]) == 2
    assert "\\x is not a command here" in said
    assert len(session.history) == 1


def test_a_statement_goes_on_until_its_semicolon(session: tacit.Session) -> None:
    said = spoken(session, "SELECT COUNT(*) FROM data", "WHERE sex = ';' OR", "sex = 'F'; SELECT COUNT(*) FROM data;")
    assert "no value ';'" in said  # the semicolon in the text ended nothing
    both = spoken(session, "SELECT COUNT(*) FROM data WHERE sex = 'F';  SELECT COUNT(*) FROM data;")
    assert "of 500 rows" in both
    assert "500 ± 0" in both or "500 (" in both


def test_commands_in_the_middle_of_a_statement(session: tacit.Session) -> None:
    said = spoken(session, "SELECT COUNT(*) FROM data", "\\d sex", "help", "HELP;", "WHERE sex = 'F';")
    assert "sex category" in said
    assert said.count("this help") == 2
    assert "of 500 rows" in said  # the statement went on
    begun = "SELECT COUNT(*) FROM data"
    for word in ("\\q", "quit", "exit;", "EXIT"):
        assert "of 500 rows" not in spoken(session, begun, word, "WHERE sex = 'F';")
    # Within a text it is part of it.
    assert "no value" in spoken(session, "SELECT COUNT(*) FROM data WHERE sex = '", "\\q", "';")
    assert "this help" in spoken(session, "help")


def test_modes_and_timing(session: tacit.Session) -> None:
    table = "SELECT sex, COUNT(*) FROM data GROUP BY sex;"
    said = spoken(session, ".mode csv", table, ".mode markdown", table, ".mode json", table, ".mode xml")
    assert "sex,value,error\nF," in said
    assert "| sex | value | error |\n| --- | --- | --- |\n| F | " in said
    assert '"columns": ["sex", "value"]' in said
    assert "The modes are table, csv, json, markdown; this is json." in said
    timed = spoken(session, "\\timing", table, "\\timing", table)
    assert timed.count(" ms") == 1


def test_leaving(session: tacit.Session) -> None:
    for word in ("\\q", "quit", "exit"):
        assert "unknown" not in spoken(session, word, "never read")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("SEL", ["SELECT"]),
        ("SELECT COUNT(*) FROM data WHERE s", ["sex", "SELECT", "SUM("]),
        ("SELECT COUNT(*) FROM data WHERE sex = ", ["'F'", "'M'", "'unknown'"]),
        ("SELECT COUNT(*) FROM data WHERE sex = 'M", ["'M'"]),
        ("SELECT COUNT(*) FROM data WHERE SEX IN ('F', 'M", ["'M'"]),
        ("SELECT COUNT(*) FROM data WHERE age >= 3", ["30"]),
        ("SELECT COUNT(*) FROM data WHERE age BETWEEN 2", ["20"]),
        ("SELECT COUNT(*) FROM data WHERE active = ", ["TRUE", "FALSE"]),
        ('SELECT COUNT(*) FROM data WHERE "home town" = \'L', ["'L''Aquila'"]),
        ("SELECT COUNT(*) FROM data WHERE joined = '2021", ["'2021-01-01'"]),
        ("SELECT COUNT(*) FROM data WHERE hom", ['"home town"']),
        ("\\", list(COMMANDS)),
        ("\\d", ["\\d"]),
        ("", []),
        ("SELECT COUNT(*) FROM data WHERE nothing = 'q", []),
    ],
)
def test_completion(line: str, offered: list[str]) -> None:
    assert complete(line, DOMAIN) == offered


def test_what_is_completed_can_be_asked() -> None:
    odd = tacit.Domain({"select": tacit.boolean(), "c": tacit.category(["x"], other="it's")})
    assert complete("SELECT COUNT(*) FROM data WHERE sel", odd) == ['"select"', "SELECT"]
    assert complete("SELECT COUNT(*) FROM data WHERE c = '", odd) == ["'x'", "'it''s'"]


def test_on_a_terminal(session: tacit.Session, tmp_path: Path) -> None:
    """A real terminal: the prompt opens, Tab completes, Ctrl-C drops a line, and the history is the user's alone."""
    session.close()
    ours, theirs = pty.openpty()
    code = "import sys; from tacit.cli import main; main()"
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"}
    child = subprocess.Popen(
        [sys.executable, "-c", code, "ask"], cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=lambda: _own_terminal(theirs),
    )  # fmt: skip
    os.close(theirs)
    try:
        seen = _until(ours, b"tacit> ")
        os.write(ours, b"SELECT nonsense\x03")
        seen += _until(ours, b"tacit> ", again=b"\x03")
        os.write(ours, b"SELECT COUNT(*) FROM data WHERE sex = 'F\t;\n")
        seen += _until(ours, b"of 500 rows")
        os.write(ours, b"\\q\n")
        assert child.wait(PATIENCE) == 0
    finally:
        child.kill()
        os.close(ours)
    assert b"Traceback" not in seen
    kept = history_path()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "WHERE sex = 'F'" in kept.read_text()


def _own_terminal(descriptor: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def _until(descriptor: int, words: bytes, again: bytes = b"") -> bytes:
    """What is shown until these words are. `again` is typed once a second meanwhile.

    A Ctrl-C that comes before readline waits for keys is noticed at the next one.
    """
    seen, end = b"", time.monotonic() + PATIENCE
    while words not in seen:
        assert time.monotonic() < end, seen
        if select.select([descriptor], [], [], 1.0)[0]:
            seen += os.read(descriptor, 4096)
        elif again:
            os.write(descriptor, again)
    return seen
