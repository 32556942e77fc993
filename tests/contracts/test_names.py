"""One class name means one thing, in all of the package."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import tacit

TWICE = {"Query"}  # of Tacit, and the message of PostgreSQL's protocol, whose documentation calls it so


def test_no_class_has_the_name_of_another() -> None:
    seen = Counter[str]()
    for path in Path(tacit.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        seen.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, times in seen.items() if times > 1} == TWICE
