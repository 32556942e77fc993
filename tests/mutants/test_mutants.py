"""The catalogue of planted bugs: each still fits the source, and each is caught by a test that it names."""

from __future__ import annotations

import ast
import re
import select
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import campaign
import pytest
from campaign import ROOT, Verdict, note, planted, trial
from catalogue import MUTANTS
from mutant import Mutant
from operators import mutants

from support import PATIENCE, until

SLOW = {"audit", "crash", "spark", "browser"}


def _id(mutant: Mutant) -> str:
    """A name that `-k` takes."""
    return re.sub(r"\W+", "-", mutant.name)


@pytest.mark.parametrize("mutant", MUTANTS, ids=_id)
def test_it_still_fits_and_its_tests_exist(mutant: Mutant) -> None:
    source = (ROOT / "src" / "tacit" / mutant.file).read_text()
    changed = planted(mutant, source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), "a bug that changes no code is none"
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        functions = _tests(ROOT / path)
        assert name in functions, f"{mutant.name}: there is no test {test}; name the one that catches it now"
        assert not functions[name] & SLOW, f"{mutant.name}: {test} is not in the ordinary suite"


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len(MUTANTS) >= 40
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.find, mutant.replace) for mutant in MUTANTS}) == len(MUTANTS)


@cache
def _tests(path: Path) -> dict[str, set[str]]:
    """The tests of a file, and the marks that all cases of each have."""
    tree = ast.parse(path.read_text())
    of_all = {mark for node in tree.body if isinstance(node, ast.Assign) for mark in _marks(node.value)}
    return {
        node.name: of_all | {mark for decorator in node.decorator_list for mark in _marks(decorator)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def _marks(node: ast.expr) -> set[str]:
    """`pytest.mark.NAME`, called or not; what stands inside a call marks single cases only."""
    node = node.func if isinstance(node, ast.Call) else node
    return {node.attr} if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pytest.mark" else set()


def test_operators_are_swapped_one_at_a_time() -> None:
    source = "def f(a: int) -> int:\n    return max(a, 2) if not 0 < a <= 9 or a is None else a // 3 + len(f'{a + 1}')"
    right = _last(source)
    found = [_last(mutant.replace) for mutant in mutants("trusted/gate.py", source)]
    assert right not in found
    for changed in (
        right.replace("max", "min"),
        right.replace("0 < a", "0 <= a"),
        right.replace("a <= 9", "a < 9"),
        right.replace("a is None", "a is not None"),
        right.replace("//", "*"),
        right.replace("3 +", "4 +"),
    ):
        assert found.count(changed) == 1, changed
    assert not [line for line in found if "a + 2" in line], "texts are left alone"


def _last(source: str) -> str:
    return ast.unparse(ast.parse(source)).splitlines()[-1].strip()


def test_a_run_that_hangs_is_ended_and_the_next_one_has_its_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, passes, reached = tmp_path / "test_hangs.py", tmp_path / "test_passes.py", tmp_path / "reached"
    wait = f"    pathlib.Path({str(reached)!r}).touch()\n    threading.Event().wait()\n"
    hangs.write_text(f"import pathlib, threading\n\ndef test() -> None:\n{wait}")
    passes.write_text("def test() -> None: ...\n")

    def impatient(readable: list[Any], writable: list[Any], broken: list[Any], patience: float) -> Any:
        assert patience == PATIENCE
        until(reached.exists)
        return select.select(readable, writable, broken, 0)

    with monkeypatch.context() as patch:
        patch.setattr(campaign, "select", SimpleNamespace(select=impatient))
        verdict = trial([str(hangs)])
    assert (verdict.passed, verdict.failed, verdict.said) == (0, None, "the tests hang")
    assert not verdict.caught
    assert trial([str(passes)]).passed == 1


# The campaign: `make audit`.


@pytest.mark.audit
@pytest.mark.parametrize("mutant", MUTANTS, ids=_id)
def test_it_is_caught(mutant: Mutant) -> None:
    verdict = trial(mutant.tests, mutant)
    note(mutant, verdict)
    assert verdict.caught, _survived(mutant, verdict)


@pytest.mark.audit
def test_without_a_bug_all_of_their_tests_pass() -> None:
    verdict = trial(sorted({test for mutant in MUTANTS for test in mutant.tests}))
    assert verdict.failed is None, verdict.said
    assert verdict.passed >= len({test for mutant in MUTANTS for test in mutant.tests})


@pytest.mark.audit
def test_what_is_no_bug_and_what_does_not_run_count_as_survivors() -> None:
    mutant = MUTANTS[0]
    harmless = replace(mutant, replace=f"{mutant.find}  # the same")
    assert not trial(mutant.tests, harmless).caught
    broken = replace(mutant, replace="from nowhere import nothing; " + mutant.find)
    verdict = trial(mutant.tests, broken)
    assert not verdict.caught


def _survived(mutant: Mutant, verdict: Verdict) -> str:
    how = "nothing failed" if verdict.failed is None else f"{verdict.failed} failed by {verdict.error}, no assertion"
    return f"the planted bug {mutant.name!r} survived: {how}. {mutant.promise}\n{verdict.said}"
