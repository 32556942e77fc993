"""No test decides by the clock: how long something took is printed or charted, and never asserted.

A test that times itself fails on a busy machine and passes on a fast one. What must be quick is bounded by counting its
steps (`support.calls`, pages read, statements run), and timed in benchmarks/. Waiting for another thread or process
ends after `support.PATIENCE`, a hundred times what it takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLOCK = re.compile(
    r"\b(time\.time|(time\.)?(monotonic|perf_counter|process_time|thread_time)|resource\.getrusage|timeit\.\w+)(_ns)?\("
)
# Half a request is never answered: this wait always runs out, and whatever comes of it is judged alike.
SHORT_ON_PURPOSE = {("serve/fuzzing.py", "timeout=0.02")}
# Whose last argument is a number of seconds; with 0 they do not wait.
WAITS = ("wait", "wait_for", "join", "settimeout", "result", "timeout")


def verdicts(source: str) -> Iterator[str]:
    """What is asserted of a time, and waits of a length of their own."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    names = _times(nodes) if CLOCK.search(source) else set()
    for node in nodes:
        if isinstance(node, ast.Assert) and _is_time(node.test, names):
            yield ast.unparse(node.test)
        if isinstance(node, ast.keyword) and node.arg == "timeout" and isinstance(node.value, ast.Constant):
            yield f"timeout={node.value.value}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            last = node.args[-1] if node.args else None
            if isinstance(last, ast.Constant) and isinstance(last.value, int | float) and last.value:
                yield ast.unparse(node)


def _times(nodes: list[ast.AST]) -> set[str]:
    """The names of times: those given from the clock, from such names, or pair by pair from several values."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs += zip(target.elts, node.value.elts, strict=False)
                else:
                    pairs.append((target, node.value))
    names: set[str] = set()
    patient = {ast.unparse(target) for target, value in pairs if "PATIENCE" in ast.unparse(value)}
    for _ in range(3):
        names |= {target.id for target, value in pairs if isinstance(target, ast.Name) and _is_time(value, names)}
    return names | {f"until {name}" for name in patient}


def _is_time(node: ast.AST, names: set[str]) -> bool:
    """Whether a value is made of a time. What is measured against `PATIENCE` ends a test that hangs, no more."""
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    if "PATIENCE" in used or any(f"until {name}" in names for name in used):
        return False
    return bool(used & names) or CLOCK.search(ast.unparse(node)) is not None


def test_no_test_decides_by_the_clock() -> None:
    found = [
        (name, words)
        for path in sorted(TESTS.rglob("*.py"))
        for words in verdicts(path.read_text())
        if (name := path.relative_to(TESTS).as_posix(), words) not in SHORT_ON_PURPOSE
    ]
    assert not found, f"these assert a time: count steps instead, or wait for support.PATIENCE. {found}"


@pytest.mark.parametrize(
    "bad",
    [
        "start = time.perf_counter()\nwork()\nassert time.perf_counter() - start < 1",
        "start = time.process_time()\ntaken = time.process_time() - start\nassert taken < 2.0",
        "a, start = 1, monotonic()\nseconds = monotonic() - start\nassert not seconds > 2",
        "subprocess.run(command, timeout=60)",
        "thread.join(60)",
        "assert ready.wait(30)",
        "await asyncio.wait_for(scene(), 60)",
    ],
)
def test_a_test_that_times_itself_is_seen(bad: str) -> None:
    assert list(verdicts(bad))


def test_patience_and_printing_are_no_verdicts() -> None:
    good = "end = time.monotonic() + PATIENCE\nassert time.monotonic() < end\nrun(timeout=PATIENCE)\n"
    assert not list(verdicts(good + "taken = time.perf_counter()\nprint(taken)\nassert work(1)"))
