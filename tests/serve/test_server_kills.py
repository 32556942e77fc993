"""kill -9 of a server under load: no answer that a client saw is lost or changes, and the budget never grows.

`make crash` kills 200 servers; TACIT_SERVER_KILLS says another number.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from killing import Witness, kill_servers

from support import Stopwatch

KILLS = int(os.environ.get("TACIT_SERVER_KILLS", "200"))
crash = pytest.mark.crash


def tell(seen: Witness, watch: Stopwatch) -> None:
    print(
        f"\n{seen.kills} kills of a server, {len(seen.shown)} answers shown, {seen.refused} refused, {watch}: ", end=""
    )
    print(f"{len(seen.violations)} promises broken")


@pytest.mark.parametrize(
    ("mechanism", "kills"),
    [
        ("direct", 2),
        pytest.param("direct", KILLS // 2, marks=crash),
        pytest.param("iterative", KILLS - KILLS // 2 - KILLS // 4, marks=crash),
    ],
)
def test_kill_9_takes_nothing_back(tmp_path: Path, mechanism: str, kills: int) -> None:
    watch = Stopwatch()
    seen = kill_servers(tmp_path, kills=kills, seed=1, mechanism=mechanism, questions=100_000, shown_least=kills + 1)
    tell(seen, watch)
    assert seen.violations == []
    assert len(seen.shown) > kills  # the test did something
    assert seen.refused == 0


@crash
def test_kill_9_at_the_end_of_the_budget(tmp_path: Path) -> None:
    kills, watch = KILLS // 4, Stopwatch()
    seen = kill_servers(
        tmp_path, kills=kills, seed=2, mechanism="direct", questions=10 * kills, refused_least=kills + 1
    )
    tell(seen, watch)
    assert seen.violations == []
    assert seen.refused > kills


@crash
@pytest.mark.parametrize(
    ("bug", "promise"),
    [
        ("answer before commit", "two answers|seen and is lost|seen and is another"),
        ("refund at start", "the budget grew"),
        ("forgets", "two answers|seen and is lost|seen and is another"),
    ],
)
def test_a_planted_bug_is_noticed(tmp_path: Path, bug: str, promise: str) -> None:
    """By the first few kills; a thousand, so that no chance decides."""
    seen = kill_servers(tmp_path, kills=1_000, seed=3, mechanism="direct", questions=100_000, bug=bug, enough=1)
    assert re.search(promise, " ".join(seen.violations[:1])), seen.violations
