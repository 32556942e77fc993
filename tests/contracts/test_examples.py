"""The examples run, as a reader would run them, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support import PATIENCE

ROOT = Path(__file__).parents[2]
# The program that makes the notebooks writes them into the checkout: `test_notebooks` holds them against their pages.
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.stem != "notebooks"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_clears_up_after_itself(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not list(tmp_path.iterdir())
    assert f"python examples/{example.name}" in example.read_text()  # it says how it is run


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3
