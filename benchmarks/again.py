"""A suite of tests several times in a row, each time in a fresh clone of one commit: whether one fails by chance.

    python -m benchmarks.again --suite test|audit|crash|engines --times 10 [--size 0.01]

What is run is what `make` runs for that name, by this Python and what is installed beside it; the clone's own code is
what is tested. Each run is a line of a table, printed and appended to build/again/table.md, and can be pasted into
docs/log/benchmarks.md. What pytest said lies beside it. Files that are not committed are no part of it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "again"
TABLE = FOLDER / "table.md"
HEAD = "| suite | commit | passed | skipped | failed | took | which failed |\n|---|---|---|---|---|---|---|\n"
# What the Makefile gives to pytest.
SUITES = {
    "test": ("-n", "2", "--dist", "worksteal", "-m", "not audit and not crash and not spark"),
    "audit": ("-n", "2", "-m", "audit"),
    "crash": ("-m", "crash", "-s"),
    "engines": ("-m", "spark or postgres", "tests/engines"),
}
# The ordinary suite and the audit keep their files in memory where there is room, as in the Makefile.
IN_MEMORY, MEMORY, ROOM = ("test", "audit"), Path("/dev/shm"), 4 * 10**9
COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
LAST = re.compile(r"=*\s*(no tests ran|\d+ [a-z].*?) in [\d.]+s( \([\d:]+\))?\s*=*")
FAILED = re.compile(r"(?:FAILED|ERROR) (\S+?(?:::\w+)+(?:\[.*?\])?|\S+\.py)(?: - .*)?")


@dataclass(frozen=True)
class Outcome:
    """What pytest said at its end. A run that says nothing there was cut short, or hung."""

    passed: int = 0
    skipped: int = 0
    failed: int = 0  # and errors
    names: tuple[str, ...] = ()
    ended: bool = True

    @property
    def good(self) -> bool:
        return self.ended and self.passed > 0 and self.failed == 0 and not self.names


def read(said: str) -> Outcome:
    """An outcome, from pytest's last lines. Only the very last one counts: a test may print another's."""
    lines = said.strip().splitlines() or [""]
    end = LAST.fullmatch(lines[-1])
    names = dict.fromkeys(match[1] for line in lines if (match := FAILED.fullmatch(line)))
    if end is None:
        return Outcome(names=tuple(names), ended=False)
    counted = {"passed": 0, "skipped": 0, "failed": 0, "error": 0}
    for number, word in COUNTED.findall(end[1]):
        counted[word.removesuffix("s")] += int(number)
    return Outcome(counted["passed"], counted["skipped"], counted["failed"] + counted["error"], tuple(names))


def line(suite: str, commit: str, outcome: Outcome, seconds: float) -> str:
    """A run as a line of the table."""
    took = f"{seconds // 60:.0f}:{seconds % 60:02.0f}"
    which = ", ".join(f"`{name}`" for name in outcome.names) or ("none" if outcome.ended else "it did not end")
    return (
        f"| {suite} | {commit} | {outcome.passed:,} | {outcome.skipped:,} | {outcome.failed:,} | {took} | {which} |\n"
    )


def run(suite: str, commit: str, more: Sequence[str], log: Path) -> tuple[Outcome, float]:
    """One run, in a clone of its own, and how many seconds it took."""
    with tempfile.TemporaryDirectory(prefix="again-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(clone)], check=True)
        subprocess.run(["git", "checkout", "--quiet", commit], cwd=clone, check=True)
        environment = surroundings(suite, clone, os.environ)
        where = [sys.executable, "-c", "import tacit; print(tacit.__file__)"]
        found = subprocess.run(where, cwd=clone, env=environment, check=True, capture_output=True, text=True).stdout
        if not Path(found.strip()).is_relative_to(clone):
            raise RuntimeError(f"not the clone's own code would be tested, but {found.strip()}")
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *SUITES[suite], *more]
        with log.open("w") as file:
            code = subprocess.run(command, cwd=clone, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode
        seconds = time.perf_counter() - start
    outcome = read(log.read_text(errors="replace"))
    return replace(outcome, ended=outcome.ended and (code == 0 or not outcome.good)), seconds


def surroundings(suite: str, clone: Path, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a run."""
    made = {name: value for name, value in given.items() if not name.startswith(("PYTEST_", "TACIT_"))}
    made |= {"PYTHONPATH": f"{clone / 'src'}{os.pathsep}{clone}", "OPENBLAS_NUM_THREADS": "1"}
    # Hundreds of processes import the package: its byte code is kept in the clone, as `make` has it kept.
    made.pop("PYTHONDONTWRITEBYTECODE", None)
    if suite == "engines":
        made["TACIT_REQUIRE_ENGINES"] = "1"
    if suite in IN_MEMORY and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        made["TMPDIR"] = str(MEMORY)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", choices=SUITES, default="test")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--size", type=float, help="of an audit")
    options = parser.parse_args(arguments)
    more = [] if options.size is None else ["--size", f"{options.size:g}"]
    said = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(said, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not TABLE.exists():
        TABLE.write_text(HEAD)
    print(HEAD, end="", flush=True)
    name, good = " ".join([options.suite, *more]), 0
    for number in range(1, options.times + 1):
        outcome, seconds = run(options.suite, commit, more, FOLDER / f"{options.suite}-{commit}-{number}.log")
        good += outcome.good
        told = line(name, commit, outcome, seconds)
        print(told, end="", flush=True)
        with TABLE.open("a") as table:
            table.write(told)
    print(f"\n{good} of {options.times} runs in a row passed at commit {commit}; all lines: {TABLE.relative_to(ROOT)}")
    return 0 if good == options.times else 1


if __name__ == "__main__":
    sys.exit(main())
