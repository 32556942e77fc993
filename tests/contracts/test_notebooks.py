"""The notebooks are what the page of the seeds says, and their code runs as it stands, without a notebook server."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

from support import PATIENCE

FOLDER = Path(__file__).parents[2] / "examples" / "seeds"
RUN = """
import json, sys
for path in sys.argv[1:]:
    cells = json.load(open(path, encoding="utf-8"))["cells"]
    exec("\\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), {"__name__": "notebook"})
    print(path)
"""


def test_the_notebooks_are_made_from_the_page() -> None:
    made = runpy.run_path(str(FOLDER / "make.py"))["notebooks"]()
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.ipynb")} == made
    assert len(made) >= 6
    for text in made.values():
        assert {cell["cell_type"] for cell in json.loads(text)["cells"]} == {"markdown", "code"}


def test_every_notebook_runs_by_itself(tmp_path: Path) -> None:
    paths = sorted(map(str, FOLDER.glob("*.ipynb")))
    command = [sys.executable, "-c", RUN, *paths]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line in paths] == paths
