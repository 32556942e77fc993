"""One name means one thing, in all of the package: a class, and a public constant or type."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import tacit

TWICE = {"Query"}  # of Tacit, and the message of PostgreSQL's protocol, whose documentation calls it so
# `exact/` knows only the laws that it draws from, and may not import the budget, whose number this is.
SAID_TWICE = {"ATOMS"}
MADE_OF_TYPES = ("NDArray[", "Callable[", "dict[")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(Path(tacit.__file__).parent.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def given(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The public names that a module gives to values, and what each of them is."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, ast.unparse(node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], ast.unparse(node.value)
        else:
            continue
        for name in (one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
            if not name.id.startswith("_") and not value.startswith("TypeVar("):
                yield name.id, value


def test_no_class_has_the_name_of_another() -> None:
    seen = Counter[str]()
    for _, tree in modules():
        seen.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, times in seen.items() if times > 1} == TWICE


def test_no_public_constant_or_type_has_the_name_of_another() -> None:
    """What only its own module needs begins with an underscore. A type may be spelled out again, to the letter."""
    places, values = defaultdict[str, set[Path]](set), defaultdict[str, set[str]](set)
    for path, tree in modules():
        for name, value in given(tree):
            places[name].add(path)
            values[name].add(value)
    twice = {name for name, paths in places.items() if len(paths) > 1}
    types = {name for name in twice if len(values[name]) == 1 and min(values[name]).startswith(MADE_OF_TYPES)}
    assert twice - types == SAID_TWICE
