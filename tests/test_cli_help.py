"""The help is true: every example in it runs, on a made table, and the first screen loads nothing heavy."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from people import configuration, tacit
from support import PATIENCE
from tacit.model.budget import Budget, Loss
from tacit.owner.inspection import Inspected

COLUMNS = ["sex", "age", "smoker"]
QUESTIONS = """\
-- the questions of the week; one at a time
SELECT COUNT(*) FROM data WHERE sex = 'F';
SELECT smoker, COUNT(*) FROM data
WHERE age >= 20 GROUP BY smoker;
"""
SOUGHT = """
data.source = "people.csv"
budget = {epsilon = 1.0, delta = 1e-9}
session.ledger = "third.tacit"
[domain.sex]
kind = "category"
discover = true
[domain.smoker]
kind = "boolean"
"""
WORDS = [
    "init", "discover", "check", "try", "plan", "start", "extend", "append", "encode", "forget", "ask", "table", "cdf",
    "quantile", "status", "history", "publish", "synthesize", "report", "verify", "serve", "token", "demo", "bench",
    "completion",
]  # fmt: skip


def examples() -> list[str]:
    """Every line of every help text that begins with, or leads to, a command of ours."""
    found = []
    parts = ([], *([word] for word in WORDS), *(["token", word] for word in ("make", "list", "revoke")))
    for words in parts:
        if words == ["serve"]:  # its examples go on until Ctrl+C; tests of its own start it
            continue
        shown = tacit(*words, "--help")
        assert shown.exit_code == 0
        lines = re.findall(r"^ +(?:[A-Z][\w ]+: +)?(tacit .+)$", shown.stdout, re.MULTILINE)
        assert lines, f"tacit {words} --help has no example"
        found += lines
    # A server has to be there for some; tests of its own give them one.
    told = (line.strip() for line in found if "--server" not in line)
    return list(dict.fromkeys(line for line in told if line != "tacit serve"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in three forms, two configurations, questions, and what was published after a few of them."""
    folder = tmp_path_factory.mktemp("made")
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(("FM"[i % 2], 18 + i % 60, str(i % 5 == 0).lower()) for i in range(2000))
    visits = "\n".join(f"{i % 700},{i % 60}" for i in range(2000))
    (folder / "visits.csv").write_text(f"patient_id,days\n{visits}\n")
    with duckdb.connect(str(folder / "warehouse.duckdb")) as engine:
        engine.execute(f"CREATE TABLE people AS SELECT * FROM read_csv('{folder / 'people.csv'}')")
        engine.execute(f"COPY people TO '{folder / 'people.parquet'}' (FORMAT parquet)")
    (folder / "tacit.toml").write_text(configuration(*COLUMNS, ledger="people.tacit", questions=50))
    (folder / "people.toml").write_text(configuration(*COLUMNS, ledger="second.tacit", questions=50))
    (folder / "queries.sql").write_text(QUESTIONS)
    (folder / "months.toml").write_text(
        configuration(*COLUMNS, ledger="months.tacit", mechanism="direct").replace("[budget]", "[blocks]\n[budget]")
    )
    lines = (folder / "people.csv").read_text().splitlines()
    for at, month in enumerate(("december", "january", "february")):
        (folder / f"{month}.csv").write_text("\n".join([lines[0], *lines[at * 300 + 1 : at * 300 + 290 + at]]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_STATE", str(folder / "state"))
        patch.chdir(folder)
        assert tacit("ask", "SELECT COUNT(*) FROM data WHERE sex = 'F'").exit_code == 0
        assert tacit("append", "december.csv", "--label", "2025-12", "-c", "months.toml").exit_code == 0
        published = tacit("publish", "-o", "people-public.tacit")
        assert published.exit_code == 0, published.output
    return folder


@pytest.mark.parametrize("example", examples())
def test_every_example_of_the_help_runs(
    example: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "state"))
    name, *arguments = shlex.split(example, comments=True)
    assert name == "tacit"
    if arguments[0] == "init":  # which refuses to overwrite a configuration
        (tmp_path / "tacit.toml").unlink()
        (tmp_path / "people.toml").unlink()
    elif arguments[0] == "discover":  # before there is a ledger
        for name in ("tacit.toml", "people.toml"):
            (tmp_path / name).write_text(SOUGHT)
    elif arguments[:2] == ["token", "revoke"]:
        assert tacit("token", "make", arguments[2]).exit_code == 0
    elif arguments[:2] == ["token", "list"]:
        assert tacit("token", "make", "ada").exit_code == 0
    elif arguments[0] == "publish" and "--force" not in arguments:
        (tmp_path / "people-public.tacit").unlink()
    shown = tacit(*arguments)
    assert shown.exit_code == 0, f"{example}\n{shown.output}"


def test_an_example_that_is_wrong_would_be_noticed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: these are what a stale example looks like."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("TACIT_STATE", str(made / "state"))
    assert tacit("table", "sex", "agee").exit_code == 1
    assert tacit("plan", "--row", "48842x").exit_code == 2


def test_the_help_lists_the_commands_in_the_order_of_need() -> None:
    text = tacit("--help").stdout
    assert re.findall(r"^  ([a-z]+) {2,}\S", text[text.index("Commands:") :], re.MULTILINE) == WORDS
    assert "Exit codes: 0 answered, 1 refused" in text
    for line in text[text.index("Commands:") :].splitlines():
        assert not line.endswith("..."), line  # a summary that is cut short teaches nothing


HEAVY = ("numpy", "scipy", "duckdb", "sqlglot", "opendp", "numba", "pandas", "pyarrow", "polars", "sqlite3", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded(arguments) == set()


def test_what_is_loaded_would_be_noticed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    assert {"numpy", "rich"} <= loaded(["plan", "--rows", "2000"])


def loaded(arguments: list[str]) -> set[str]:
    """The heavy modules that a command brings in, in a process of its own."""
    code = (
        "import sys\nfrom tacit.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_what_verify_counts_is_in_the_right_number() -> None:
    budget, nothing = Budget(epsilon=1.0, delta=0.0), Loss("epsilon", 1)
    found = Inspected(2, 1, 0, 0, 1, 1, 0, budget, nothing, nothing, "0" * 64)
    assert "2 entries follow from one another" in str(found)
    assert "0 gates shut, 1 reservation without an answer, 1 rollback accepted." in str(found)
    assert "1 entry follows" in str(replace(found, entries=1))
