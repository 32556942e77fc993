"""Published files as somebody writes them who knows how hashes are made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tacit.store.chain import Draft, Mark, seal


def resealed(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write these lines, each sealed anew, and the digest of all in the place of the last."""
    head = Mark(0, lines[0]["origin"], 0)
    for line in lines[1:-1]:
        draft = Draft(line["kind"], line["atoms"], line["body"], line["key"], line["intent"])
        made = seal(head, draft, line["spent"], line["time"], seq=line["seq"])
        line["hash"], head = made.hash, Mark(made.seq, made.hash, made.spent)
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines[:-1])
    path.write_text(text + f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n')
