"""docs/do/start.md is followed to the letter, in an empty folder: every command of the page, in its order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from people import tacit
from support import PATIENCE

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "do" / "start.md").read_text()
BLOCK = re.compile(r"^```(console|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TACIT = ".venv/bin/tacit "
EDITING = "$EDITOR tacit.toml"  # the reader's part: the file shown below it is what it ends with


def commands() -> list[str]:
    """The page's commands; the file that the reader ends up with stands for the editor."""
    blocks = BLOCK.findall(PAGE)
    assert sum(kind == "toml" for kind, _ in blocks) == 1
    return [line[2:] for kind, text in blocks if kind == "console" for line in text.splitlines()]


def test_every_line_of_a_console_block_is_a_command() -> None:
    """The page shows no output: it would have other noise each time."""
    assert all(
        line.startswith("$ ") for kind, text in BLOCK.findall(PAGE) if kind == "console" for line in text.splitlines()
    )
    assert sum("tacit " in command for command in commands()) >= 15


def test_the_page_leads_to_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    monkeypatch.chdir(tmp_path)
    for name in ("TACIT_CONFIG", "NO_COLOR", "FORCE_COLOR"):  # no habits of the machine that runs this
        monkeypatch.delenv(name, raising=False)
    shown = {command: follow(command) for command in commands() if not command.startswith("git clone ")}
    first_screen = shown[f"{TACIT}demo"]
    assert "the worst question there is" in first_screen
    assert not re.search(r"\b(rho|hypothesis|cells?|gate|delta)\b", first_screen)
    assert max(map(len, first_screen.splitlines())) <= 90
    asked = [text for command, text in shown.items() if " ask " in command and "--dry-run" not in command]
    first, again, published = (text.splitlines()[1].split()[0] for text in asked)
    assert first == again == published  # the same question, the same answer
    assert "free" in asked[1]
    for made in ("ages.svg", "report.html", "people-public.tacit", "synthetic.csv", "peeked.toml"):
        assert (tmp_path / made).stat().st_size > 100


def follow(command: str) -> str:
    """Do what the page says, and return what is shown."""
    if command.startswith("make "):  # needs a network; the target is there
        done = subprocess.run(["make", "-n", command.split()[1]], cwd=ROOT, capture_output=True, text=True)
    elif command == EDITING:
        (configuration,) = (text for kind, text in BLOCK.findall(PAGE) if kind == "toml")
        Path("tacit.toml").write_text(configuration)
        return ""
    elif command.startswith(TACIT) and command != f"{TACIT}demo":  # in this process: fourteen starts take long
        inside = tacit(*shlex.split(command.removeprefix(TACIT)))
        assert inside.exit_code == 0, f"{command}\n{inside.output}"
        return inside.stdout
    else:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
