"""Where the runs on a copy begin: a process that has what all of them need from other projects, and forks for each.

Most of a run was the import of pytest, numpy and scipy. Nothing of Tacit is imported here, and nothing that starts a
thread, which a fork would lose.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path


class Hang(Exception):
    """A run that did not end in time, and was ended."""


def run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], said: Path, patience: float) -> None:
    """`python -m pytest` with these arguments, in a folder and an environment; what it prints goes into a file."""
    nursery = _nursery()
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(json.dumps([list(arguments), str(folder), dict(environment), str(said)]).encode() + b"\n")
    child = int(nursery.stdout.readline())
    in_time = select.select([nursery.stdout], [], [], patience)[0]
    if not in_time:
        os.kill(child, signal.SIGKILL)
    nursery.stdout.readline()
    if not in_time:
        raise Hang


@cache
def _nursery() -> subprocess.Popen[bytes]:
    """One for each process that tries planted bugs. It ends when nobody can ask it any more."""
    environment, pipe = os.environ | {"OPENBLAS_NUM_THREADS": "1"}, subprocess.PIPE
    # Nothing is buffered: `select` sees what the pipe holds, and not what was read of it already.
    return subprocess.Popen([sys.executable, __file__], env=environment, stdin=pipe, stdout=pipe, bufsize=0)


def _serve() -> None:
    import hypothesis
    import msgspec
    import numpy
    import pytest
    import rich.console
    import scipy.optimize
    import scipy.stats
    import sqlglot

    assert all((hypothesis, msgspec, numpy, pytest, rich.console, scipy.optimize, scipy.stats, sqlglot))
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(*json.loads(line))
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


def _run(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    import pytest

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # The copy's own modules come first, in this process and in those that it starts.
    sys.path[:1] = environment["PYTHONPATH"].split(os.pathsep)
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(nothing, 0)
    for standard in (1, 2):
        os.dup2(output, standard)
    assert "tacit" not in sys.modules
    code = pytest.main(arguments)
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
