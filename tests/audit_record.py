"""What `make audit` finds, kept for its report: one JSON file for each row, in `build/audit/SECTION`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "build" / "audit"


def record(section: str, name: str, **found: Any) -> None:
    """Keep a row of the report, in the place of an earlier one of this name."""
    folder = FOLDER / section
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")
    file.write_text(json.dumps({"name": name, **found}))


def recorded(section: str) -> list[dict[str, Any]]:
    """The rows of a section, by name."""
    return [json.loads(file.read_text()) for file in sorted((FOLDER / section).glob("*.json"))]
