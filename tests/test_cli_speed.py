"""What `tacit ask` does not do for a question that is known already. Its seconds: `benchmarks/bench_command.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.bench_command import REPEAT, answered

from support import PATIENCE

# For a repeat, no noise is drawn, nothing planned or forecast and, in JSON, nothing painted.
NOT_FOR_A_REPEAT = (
    "opendp", "numba", "pandas", "pyarrow", "polars", "sklearn", "scipy", "rich", "numpy.ma",
    "tacit.release.plan", "tacit.release.forecast", "tacit.release.offer", "tacit.release.median",
    "tacit.release.samplers", "tacit.release.synthetic", "tacit.show.chart", "tacit.show.report",
)  # fmt: skip
NOT_FOR_DIRECT = ("tacit.release.online", "tacit.release.iterative", "tacit.release.hypothesis.fit")
# Calls inside Tacit. Of the 1,500 answers before, each may take a dozen; making their questions again took 85,000.
MOST_CALLS = 20_000
PROGRAM = f"""
import sys
import tacit
from pathlib import Path
from tacit.cli import main
calls, here = 0, str(Path(tacit.__file__).parent)
def count(frame, event, argument):
    global calls
    calls += event == "call" and frame.f_code.co_filename.startswith(here)
sys.setprofile(count)
main(["ask", "--json", {REPEAT!r}], standalone_mode=False)
sys.setprofile(None)
print(calls, *[name for name in {NOT_FOR_A_REPEAT + NOT_FOR_DIRECT!r} if name in sys.modules])
"""


@pytest.mark.parametrize("mechanism", ["direct", "auto"])
def test_what_a_repeat_after_a_thousand_answers_does_not_do(tmp_path: Path, mechanism: str) -> None:
    first = answered(tmp_path, 500, mechanism)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    answer, counted = done.stdout.splitlines()
    assert json.loads(answer)["value"] == first
    assert json.loads(answer)["source"] == {"direct": "repeat", "auto": "hypothesis"}[mechanism]
    calls, *loaded = counted.split()
    assert int(calls) < MOST_CALLS
    assert set(loaded) <= (set() if mechanism == "direct" else set(NOT_FOR_DIRECT))
