"""The notebooks are what pages of the docs say, and their code runs as it stands, without a notebook server."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

from contracts.test_docs import BLOCK, EXECUTED
from support import PATIENCE

FOLDER = Path(__file__).parents[2] / "examples"
DOCS = FOLDER.parent / "docs"
RUN = """
import json, sys
for path in sys.argv[1:]:
    cells = json.load(open(path, encoding="utf-8"))["cells"]
    exec("\\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), {"__name__": "notebook"})
    print(path)
"""


def code_of(notebook: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]


def test_the_notebooks_are_made_from_the_pages() -> None:
    made = runpy.run_path(str(FOLDER / "notebooks.py"))["notebooks"]()
    kept = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.ipynb")}
    assert kept == made
    assert len(made) >= 9
    for text in made.values():
        assert {cell["cell_type"] for cell in json.loads(text)["cells"]} == {"markdown", "code"}


def test_notebooks_of_whole_pages_run_what_the_pages_run() -> None:
    """The blocks of these pages are executed, in order, by the tests of the docs."""
    pages = runpy.run_path(str(FOLDER / "notebooks.py"))["PAGES"]
    assert set(pages) == {"first_hour", "choosing_a_budget", "serving"}
    for name, page in pages.items():
        assert f"docs/{page}" in EXECUTED
        blocks = [block.strip() for block in BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))]
        assert code_of((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")) == blocks


def test_every_notebook_of_the_seeds_runs_by_itself(tmp_path: Path) -> None:
    paths = sorted(map(str, (FOLDER / "seeds").glob("*.ipynb")))
    command = [sys.executable, "-c", RUN, *paths]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line in paths] == paths
