"""Writes the notebooks of this folder: one for each section of docs/understand/seeds.md, with the page's first block.

python examples/seeds/make.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "understand" / "seeds.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")  # they lead nowhere from a notebook


def notebooks() -> dict[str, str]:
    """The text of every notebook, by the name of its file."""
    first, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    setup = BLOCK.search(first)
    assert setup is not None
    found = {}
    for section in sections:
        title, _, body = section.partition("\n")
        cells = [_cell("markdown", f"# {title}"), _cell("code", setup[1]), *_cells(body)]
        name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
        form = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        found[f"{name}.ipynb"] = json.dumps(form, indent=1, ensure_ascii=False) + "\n"
    return found


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
