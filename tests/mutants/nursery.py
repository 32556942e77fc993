"""Where the runs on a copy begin: a program that has what all of them need from other projects, and forks for each.

It reads a line of JSON for each run: pytest's arguments, a folder, an environment and the file for what is printed. It
answers with the number of the process, and with another line when that has ended. Most of a run was the import of
pytest, numpy and scipy. Nothing of Tacit is imported here, and nothing that starts a thread, which a fork would lose.
"""

from __future__ import annotations

import json
import os
import sys

import hypothesis
import msgspec
import numpy
import pytest
import rich.console
import scipy.optimize
import scipy.stats
import sqlglot

LOADED = hypothesis, msgspec, numpy, rich.console, scipy.optimize, scipy.stats, sqlglot


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(*json.loads(line))
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


def run(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    """`python -m pytest` with these arguments, in this process, which ends with it."""
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
    main()
