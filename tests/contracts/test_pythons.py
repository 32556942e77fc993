"""What later versions of Python refuse is in no file, whichever version runs the tests."""

from __future__ import annotations

import re
from pathlib import Path

import tacit

NUMBERED = re.compile(r"=\s*\?\d")


def test_no_statement_numbers_its_placeholders() -> None:
    """SQLite's `?1` is a name to Python: with a tuple of values 3.12 warns of it, and 3.14 raises."""
    assert NUMBERED.search("seq <= ?1")
    assert not NUMBERED.search("seq <= ? AND seq <= :seq")
    files = sorted(Path(tacit.__file__).parent.rglob("*.py"))
    assert not [path.name for path in files if NUMBERED.search(path.read_text(encoding="utf-8"))]
