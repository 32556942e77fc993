"""How many calls an easy question makes inside Tacit: in Python and over HTTP.

`python -m benchmarks.walk` prints them. Calls are counted, not timed. The noise is scripted, so that every run takes
the same way: nothing is hard by chance.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.walk import LAYERS, SESSION, Walk, in_python, over_http

import tacit.trusted.curator as curator_module
import tacit.trusted.gate as gate_module


@pytest.mark.parametrize(("way", "most"), [(in_python, 292), (over_http, 398)], ids=["python", "http"])
def test_an_easy_question_through_the_gate_walks_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any, most: int
) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)
    monkeypatch.setattr(gate_module, "draw_geometric", lambda scale, size: np.full(size, round(scale)))
    walk = Walk()
    way(tmp_path, walk, 0.0)
    calls = [call for root in walk.roots for _, _, call in root]
    names = [call.name for call in calls]
    assert "first_above" in names  # it went through the gate,
    assert "measure" not in names  # and was found easy
    # It is read once: in Python as any statement is, over HTTP as the plain count that it is.
    assert sum(call.file == "model/sql/__init__.py" and call.name in ("parse", "plain_count") for call in calls) == 1
    assert len(calls) <= most


def test_up_and_down_are_those_of_the_import_contract() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contract = next(one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    named = [name.strip().split(".")[1:] for layer in contract["layers"] for name in layer.split("|")]
    # Parts of `show` stand in several layers, and nothing calls the theory.
    assert tuple(room for room, *_ in named if room not in (*SESSION, "show", "theory")) == LAYERS
