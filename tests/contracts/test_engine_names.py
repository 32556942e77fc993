"""Engines print the values that they stumble over: nobody asks one but through `quietly`, and nobody outside load/."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tacit

SOURCE = Path(tacit.__file__).parent


def named(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Where the engine of a source is named."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "engine")


def bare(tree: ast.AST) -> list[str]:
    """What engines of sources are asked outside of any argument of `quietly`."""
    hushed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "quietly"
        for argument in node.args
        for inner in ast.walk(argument)
    }
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and id(node) not in hushed
        if isinstance(node.func.value, ast.Attribute) and node.func.value.attr == "engine"
    ]


def test_only_load_names_an_engine() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(named(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert {name.split("/")[0] for name in found} == {"load"}


def test_nobody_asks_an_engine_but_quietly() -> None:
    for path in (SOURCE / "load").rglob("*.py"):
        assert bare(ast.parse(path.read_text(encoding="utf-8"))) == [], path.name
    assert bare(ast.parse("found = source.engine.columns(domain)")) == ["source.engine.columns(domain)"]
    assert bare(ast.parse("quietly(lambda: source.engine.columns(domain), failure)")) == []
