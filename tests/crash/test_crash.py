"""No crash takes back an answer, a charge or the anchor; and these tests notice when one could."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_process import kill_processes
from planted import planted
from power_cut import cut_power


@pytest.fixture
def disk() -> Iterator[Path]:
    """In memory where possible: both crashes are simulated above the disk, and its real syncs take most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("kills", [10, pytest.param(240, marks=pytest.mark.crash)])
def test_kill_9(disk: Path, kills: int) -> None:
    start = time.perf_counter()
    report = kill_processes(disk, kills=kills, seed=1)
    print(f"\n{report.crashes} kills, {report.shown} answers shown, {time.perf_counter() - start:.1f} s: ", end="")
    print(f"{len(report.violations)} promises broken")
    assert report.shown > kills / 2  # the test did something
    assert report.violations == []


@pytest.mark.parametrize("cuts", [100, pytest.param(2500, marks=pytest.mark.crash)])
def test_power_cuts(disk: Path, cuts: int) -> None:
    start = time.perf_counter()
    report = cut_power(disk, cuts=cuts, seed=1)
    print(
        f"\n{report.crashes} power cuts, {report.shown} answers checked, {time.perf_counter() - start:.1f} s: ", end=""
    )
    print(f"{len(report.violations)} promises broken")
    assert report.shown > cuts
    assert report.violations == []


@pytest.mark.parametrize("bug", ["release before commit", "unanswered intents refunded", "anchor before commit"])
def test_kill_9_notices(disk: Path, bug: str) -> None:
    with planted(bug) as kind:
        assert kill_processes(disk, kills=100, seed=2, kind=kind, enough=1).violations


@pytest.mark.parametrize(
    "bug",
    [
        "release before commit",
        "synchronous=NORMAL",
        "unanswered intents refunded",
        "anchor before commit",
        "recovered commits not synced",
    ],
)
def test_power_cuts_notice(disk: Path, bug: str) -> None:
    with planted(bug) as kind:
        assert cut_power(disk, cuts=1000, seed=2, kind=kind, enough=1).violations
