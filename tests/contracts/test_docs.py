"""The documentation is executed: every Python block of every page runs, in order, in a folder of its own."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from support import PATIENCE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
PATH = re.compile(r"`((?:src|tests|docs|benchmarks|trusted|model|release|theory)/[\w./-]+?)`")


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    code = "\n".join(BLOCK.findall(page.read_text()))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_points_to_is_there(page: Path) -> None:
    text = page.read_text()
    missing = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    for named in PATH.findall(text):
        if not (ROOT / named).exists() and not (ROOT / "src/tacit" / named).exists():
            missing.append(named)
    assert not missing


def test_make_targets_named_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z]+)", page.read_text())}
    assert {"demo", "test"} <= named <= targets


def test_the_reference_is_what_the_docstrings_say() -> None:
    page = runpy.run_path(str(ROOT / "docs/reference/api.py"))["page"]
    assert (ROOT / "docs/reference/api.md").read_text() == page(), "run: .venv/bin/python docs/reference/api.py"


def test_drawn_pictures_are_what_their_program_draws() -> None:
    """Those without noise in them."""
    drawn = runpy.run_path(str(ROOT / "docs/pictures/draw.py"))
    for name in ("Tree", "Triangle"):
        assert (ROOT / f"docs/pictures/{name.lower()}.svg").read_text() == drawn[name]().svg()


def test_doctests_of_the_package() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--doctest-modules",
        "src/tacit",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
