"""Writes the notebooks: what pages of the docs say and run, with what they print left for you to see.

python examples/notebooks.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGES = {"first_hour": "do/story.md", "choosing_a_budget": "do/epsilon.md", "serving": "do/server.md"}
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]+)\]\([^)]+\)")  # they lead nowhere from a notebook


def notebooks() -> dict[str, str]:
    """The text of every notebook, by its path here: one for each of these pages, and one for each of the seeds."""
    found = {f"{name}.ipynb": _notebook(_cells(_text(page))) for name, page in PAGES.items()}
    first, *sections = re.split(r"^## ", _text("understand/seeds.md"), flags=re.MULTILINE)
    setup = BLOCK.search(first)
    assert setup is not None
    for section in sections:
        title, _, body = section.partition("\n")
        name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
        cells = [_cell("markdown", f"# {title}"), _cell("code", setup[1]), *_cells(body)]
        found[f"seeds/{name}.ipynb"] = _notebook(cells)
    return found


def _text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def _notebook(cells: Iterable[dict[str, Any]]) -> str:
    form = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(form, indent=1, ensure_ascii=False) + "\n"


def _cells(body: str) -> Iterator[dict[str, Any]]:
    """Prose and code in turn, as they stand on the page."""
    for place, text in enumerate(BLOCK.split(body)):
        if text.strip():
            yield _cell("code" if place % 2 else "markdown", text if place % 2 else LINK.sub(r"\1", text))


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}


if __name__ == "__main__":
    for name, text in notebooks().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(name)
