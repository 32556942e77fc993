"""Runs of a suite in a row: what pytest says at its end is read as it stands there. No suite is run here."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.again import ROOT, SUITES, Outcome, line, read, surroundings

PASSED = """
........................................................................ [ 91%]
.........................................                                [100%]
============================ slowest 600 durations =============================
1888.83s call     tests/model/test_sql_engine.py::test_a_hundred_thousand
0.50s call     tests/mutants/test_mutants.py::test_it_is_caught[residuals-priced-one-by-one]

(149 durations < 0.5s hidden.)
"""
FAILED = """
3 passed in 1.00s
E       AssertionError: in 5 of 7 cases: 1 failed in 2 s
=========================== short test summary info ============================
SKIPPED [1] tests/serve/test_wire_clients.py:136: Java's driver is not installed
FAILED tests/test_a.py::test_one[a b - c] - AssertionError: assert 1 == 2
FAILED tests/test_a.py::TestTwo::test_two
ERROR tests/test_b.py::test_three[[1]] - RuntimeError: [2]
ERROR tests/test_c.py
"""
NAMES = (
    "tests/test_a.py::test_one[a b - c]",
    "tests/test_a.py::TestTwo::test_two",
    "tests/test_b.py::test_three[[1]]",
    "tests/test_c.py",
)


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ("473 passed in 2969.91s (0:49:29)", Outcome(473)),
        ("=== 7994 passed, 31 skipped, 322 deselected in 613.10s (0:10:13) ===", Outcome(7994, 31)),
        ("20 passed, 8000 deselected, 2 xfailed, 3 warnings in 5.02s", Outcome(20)),
        ("==== 1 skipped in 0.10s ====", Outcome(0, 1)),
        ("==== no tests ran in 0.01s ====", Outcome()),
    ],
)
def test_the_last_line_is_read(last: str, outcome: Outcome) -> None:
    assert read(PASSED + last + "\n") == outcome
    assert outcome.good == (outcome.passed > 0)  # a run without tests shows nothing


def test_failures_and_errors_are_counted_and_named() -> None:
    assert read(FAILED + "2 failed, 3 passed, 1 skipped, 2 errors in 9.99s\n") == Outcome(3, 1, 4, NAMES)
    assert not read(FAILED + "2 failed, 3 passed, 1 skipped, 2 errors in 9.99s\n").good


def test_a_run_that_does_not_end_is_none_that_passed() -> None:
    """Also where a test has printed the last line of another run."""
    for said in ("", PASSED, "3 passed in 1.00s\nKilled\n", "!!! KeyboardInterrupt !!!\n"):
        assert read(said) == Outcome(ended=False)
        assert not read(said).good
    assert read(FAILED) == Outcome(names=NAMES, ended=False)


def test_a_line_of_the_table_says_all_of_it() -> None:
    assert line("test", "0abc", Outcome(7994, 31), 613.1) == "| test | 0abc | 7,994 | 31 | 0 | 10:13 | none |\n"
    bad = line("crash", "0abc", Outcome(19, 0, 1, ("a.py::b",)), 59.0)
    assert bad == "| crash | 0abc | 19 | 0 | 1 | 0:59 | `a.py::b` |\n"
    assert "it did not end" in line("audit --size 0.01", "0abc", Outcome(ended=False), 1.0)


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_run_is_what_make_runs(suite: str) -> None:
    words = [f'"{word}"' if " " in word else word for word in SUITES[suite]]
    recipe = (ROOT / "Makefile").read_text().split(f"\n{suite}: ")[-1].split("\n\n")[0]
    assert f"-m pytest {' '.join(words)}" in recipe
    given = {"TACIT_STATE": "/a", "PYTEST_ADDOPTS": "-x", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/b", "TMPDIR": "/c"}
    made = surroundings(suite, Path("/clone"), given)
    assert made.keys() & given.keys() == {"HOME", "TMPDIR"}
    assert ("TACIT_REQUIRE_ENGINES=1" in recipe) == ("TACIT_REQUIRE_ENGINES" in made)
    assert made["PYTHONPATH"].startswith("/clone/src")
    if suite == "crash":
        assert made["TMPDIR"] == "/c"  # kills are against the disk
