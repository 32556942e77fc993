"""One class name means one thing: names that two modules define are listed here, and the list only becomes shorter."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import tacit

# A message of PostgreSQL's protocol has the protocol's name; a theorem's word and a server's may be one. The others are
# to be renamed as somebody passes by.
TWICE = {
    "Block",
    "Bound",
    "Centre",
    "Closed",
    "Connection",
    "Drawn",
    "Expected",
    "Group",
    "Joined",
    "Known",
    "Lines",
    "Mechanism",
    "Place",
    "Query",
    "Settings",
    "Shown",
    "Statement",
    "Tally",
}


def test_no_class_has_the_name_of_another() -> None:
    seen = Counter[str]()
    for path in Path(tacit.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        seen.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, times in seen.items() if times > 1 and not name.startswith("_")} == TWICE
