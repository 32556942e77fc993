"""Plant one bug in a copy of the tree, run the tests that must catch it, and note what came of it."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutant import Mutant

from audit_record import record
from support import PATIENCE, Stopwatch

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")  # all that the named tests read


@dataclass(frozen=True)
class Verdict:
    """What running some tests came to: how many passed, and which did not, if one did not."""

    passed: int
    failed: str | None = None  # the first test that failed by an assertion, or the last that failed otherwise
    error: str | None = None  # and by which exception
    asserted: bool = False  # whether it was an assertion of the test's own, and no accident such as a failed import
    said: str = ""  # the end of what pytest printed
    taken: str = ""

    @property
    def caught(self) -> bool:
        return self.failed is not None and self.asserted


def planted(mutant: Mutant, source: str) -> str:
    """The source with the bug in it. A text that stands there twice, or no more, is an error and no bug."""
    places = source.count(mutant.find)
    assert places == 1, (
        f"the planted bug {mutant.name!r} no longer fits: its text stands {places} times in src/tacit/{mutant.file}, "
        "and must stand there once. Write it anew in tests/mutants, or take it out and say why.\n" + mutant.find
    )
    return source.replace(mutant.find, mutant.replace)


def trial(tests: Sequence[str], mutant: Mutant | None = None) -> Verdict:
    """Run some tests on a copy of the tree, with a planted bug or without one, until one fails by an assertion."""
    copy = _copy() / "tree"
    if mutant is None:
        return _run(tests, copy)
    file = copy / "src" / "tacit" / mutant.file
    source = file.read_text()
    try:
        _replace(file, planted(mutant, source))
        return _run(tests, copy)
    finally:
        _replace(file, source)


@cache
def _copy() -> Path:
    """A folder with a copy of the tree, made once by each process: what is compiled in it serves all trials."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-mutants-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "tree").mkdir()
    for name in COPIED:
        whole, to = ROOT / name, folder / "tree" / name
        if whole.is_dir():
            shutil.copytree(whole, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(whole, to)
    return folder


def _replace(file: Path, source: str) -> None:
    """Another source, and nothing compiled of the one before: Python would tell them apart by the second only."""
    file.write_text(source)
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()


def _run(tests: Sequence[str], copy: Path) -> Verdict:
    told = copy.parent / "verdict.json"
    told.unlink(missing_ok=True)
    arguments = ["-q", "--tb=short", "--maxfail=9", f"--basetemp={copy.parent / 'tmp'}", "-p", "no:cacheprovider"]
    arguments += ["-p", "no:xdist", "-p", "verdict", "-m", ORDINARY, *tests]
    ours = ("PYTEST_", "TACIT_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (copy / "src", copy, copy / "tests" / "mutants")))
    environment["TACIT_VERDICT"] = str(told)
    watch, output = Stopwatch(), copy.parent / "said"
    ended = _forked(arguments, copy, environment, output)
    said = output.read_text(errors="replace") if ended else "the tests hang"
    taken = str(watch)
    if not told.exists():
        return Verdict(0, said=said[-3000:], taken=taken)
    found: dict[str, Any] = json.loads(told.read_text())
    assert Path(found["tacit"]).is_relative_to(copy), f"the tests ran on {found['tacit']}, not on the copy"
    return Verdict(**found["verdict"], said=said[-3000:], taken=taken)


def _forked(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], said: Path) -> bool:
    """Run `python -m pytest` in a folder and an environment. Whether it ended by itself: one that hangs is ended."""
    nursery = _nursery()
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(json.dumps([arguments, str(folder), environment, str(said)]).encode() + b"\n")
    child = int(nursery.stdout.readline())
    ended = bool(select.select([nursery.stdout], [], [], PATIENCE)[0])
    if not ended:
        os.kill(child, signal.SIGKILL)
    nursery.stdout.readline()
    return ended


@cache
def _nursery() -> subprocess.Popen[bytes]:
    """One for each process that tries planted bugs. It ends when nobody can ask it any more."""
    program, pipe = Path(__file__).with_name("nursery.py"), subprocess.PIPE
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    # Nothing is buffered: `select` sees what the pipe holds, and not what was read of it already.
    return subprocess.Popen([sys.executable, program], env=environment, stdin=pipe, stdout=pipe, bufsize=0)


# What `make test` runs: a bug must be caught there, not only by what runs for hours.
ORDINARY = "not audit and not crash and not spark and not browser"


def note(mutant: Mutant, verdict: Verdict) -> None:
    """Put a result into the report of the audit."""
    found = {name: value for name, value in asdict(verdict).items() if name != "said"}
    about = {"promise": mutant.promise, "file": mutant.file, "tests": mutant.tests, "caught": verdict.caught}
    record("mutants", mutant.name, **about, **found)
