"""How soon `tacit ask` answers: the processor's seconds of a whole command, after a thousand answers and more.

    python -m benchmarks.bench_command [--runs 9]

50,000 made-up rows. A *repeat* is a question that was answered before; a *new* one is about other conditions. Most of
either goes into loading the program and the table. The first command compiles the program and is not counted, and
`PYTHONDONTWRITEBYTECODE`, which adds a third, is taken out of the environment. With 15 attributes, what the answers
start from takes longest; it is kept beside the ledger, and the last line is for a process that has to fit it again.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tacit
from tacit.config import read_config

ROWS, QUESTIONS = 50_000, 1_500
REPEAT = "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age < 50"
CONFIG = """[data]
source = "people.csv"
[budget]
epsilon = 1.0
delta = 1e-9
[session]
ledger = "people.tacit"
anchor = "anchor"
mechanism = "{mechanism}"
questions = 2000
start = true
[domain.sex]
kind = "category"
values = ["F", "M"]
[domain.age]
kind = "integer"
low = 0
high = 99
width = 5
[domain.smoker]
kind = "boolean"
[domain.region]
kind = "integer"
low = 0
high = 9
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args(arguments or []).runs
    print(f"  load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"  {'tacit ask, seconds of the processor':<40}{'median':>8}{'least':>8}")
    for mechanism in ("direct", "auto"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answered(folder, ROWS, mechanism)
            seconds(folder, REPEAT)
            new = [f"{REPEAT} AND region IN ({i}, {i + 1}, 9)" for i in range(8)]
            for words, asked in ("a repeat", [REPEAT] * runs), ("a new question", new):
                taken = [seconds(folder, question) for question in asked]
                print(f"  {mechanism + ', ' + words:<40}{statistics.median(taken):>8.3f}{min(taken):>8.3f}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wide(folder)
        asked = [f"SELECT COUNT(*) FROM data WHERE a{i} = 1 AND a{i + 1} < 2" for i in range(12)]
        for words, some in (("base kept", asked[:-3]), ("base deleted", asked[-3:])):
            taken = []
            for question in some:
                if words == "base deleted":
                    (folder / "wide.tacit.base").unlink()
                taken.append(seconds(folder, question))
            print(
                f"  {'15 attributes, new, ' + words:<40}{statistics.median(taken):>8.3f}{min(taken):>8.3f}", flush=True
            )


def wide(folder: Path) -> None:
    """A table of 15 attributes and 5 billion cells, whose session is started."""
    draw, sizes = random.Random(1), (2, 2, 3, 4, 5, 6, 8, 10, 2, 3, 4, 5, 2, 10, 20)
    lines = [",".join(f"a{i}" for i in range(len(sizes)))]
    for _ in range(ROWS):
        common = draw.random()
        lines.append(",".join(str(int(size * (common + draw.random()) / 2)) for size in sizes))
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    domain = "".join(f'[domain.a{i}]\nkind = "integer"\nlow = 0\nhigh = {n - 1}\n' for i, n in enumerate(sizes))
    text = CONFIG.format(mechanism="auto").replace("people.tacit", "wide.tacit")
    (folder / "tacit.toml").write_text(text.partition("[domain.sex]")[0] + domain)
    with read_config(folder / "tacit.toml").open() as session:
        session.start()


def answered(folder: Path, rows: int, mechanism: str) -> float:
    """A table with its configuration, of which over a thousand questions were answered; the answer to `REPEAT`."""
    draw = random.Random(3)
    lines = (
        f"{draw.choice('FM')},{draw.randrange(100)},{draw.choice(('true', 'false'))},{draw.randrange(10)}\n"
        for _ in range(rows)
    )
    (folder / "people.csv").write_text("sex,age,smoker,region\n" + "".join(lines))
    (folder / "tacit.toml").write_text(CONFIG.format(mechanism=mechanism))
    asked = []
    for _ in range(QUESTIONS):
        low, high = sorted((draw.randrange(20), draw.randrange(20)))
        regions = [draw.randrange(5), 5 + draw.randrange(5)]
        asked.append(tacit.count(age=(5 * low, 5 * high + 4), region=regions, sex=draw.choice("FM")))
    with read_config(folder / "tacit.toml").open() as session:
        return session.ask_many([*asked, REPEAT])[-1].value


def seconds(folder: Path, question: str) -> float:
    """Of the processor, in one whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tacit", "ask", "--json", question]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:])
