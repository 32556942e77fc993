"""A planted bug: a small change of one source file, the promise that it breaks, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`find` stands in src/tacit/`file` exactly once, and is replaced. `tests` are of the ordinary suite."""

    name: str
    promise: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]


def plant(name: str, promise: str, file: str, find: str, replace: str, *tests: str) -> Mutant:
    """A planted bug; tests are named as pytest does, below `tests/`."""
    return Mutant(name, promise, file, find, replace, tuple(f"tests/{test}" for test in tests))
