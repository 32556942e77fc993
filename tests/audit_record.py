"""What `make audit` finds, kept for its report: one JSON file for each row, in `build/audit/SECTION`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

# Seconds of a processor that the whole of each attack takes, about.
COSTS = {"adversaries": 2_600, "reconstruction": 900, "crashes": 900, "requests": 1_800}
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "audit"


def record(section: str, name: str, **found: Any) -> None:
    """Keep a row of the report, in the place of an earlier one of this name."""
    folder = FOLDER / section
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")
    file.write_text(json.dumps({"name": name, **found}))


def recorded(section: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """The rows of a section, by name."""
    return [json.loads(file.read_text()) for file in sorted(((folder or FOLDER) / section).glob("*.json"))]


def commit() -> str:
    """The commit of this checkout, with `-dirty` behind it if files were changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def budget(size: float) -> str:
    """What a run is going to take, from what a unit of each attack took on two quiet cores."""
    seconds = size * sum(COSTS.values())
    parts = ", ".join(f"{name} {size * cost / 60:.0f} min" for name, cost in COSTS.items())
    return (
        f"audit of size {size:g}: {parts} of one core each; about {seconds / 2 / 3600:.1f} hours on two, and the rest"
    )
