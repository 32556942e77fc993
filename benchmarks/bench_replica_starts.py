"""How long until a server of a published file answers: without a folder for its state, and with one, twice.

    python -m benchmarks.bench_replica_starts [--attributes 12] [--values 50] [--questions 100]

A session on a made table of so many attributes is started, told some counts, and publishes what it has released. Then a
process serves the file, until it has answered one count: once without `state`, once with an empty folder, and once with
what that has kept. Seconds of the processor and by the clock, with what Python has to import.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import tacit
from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Client

ROWS, SEED = 50_000, 1
ATTRIBUTES, VALUES = 12, 50  # as in docs/understand/scale.md
STATE = "TACIT_BENCH_STATE"
PROGRAM = f"""
import os, sys
from tacit.serve import serve_published
state = os.environ.get("{STATE}")
serve_published({{"people": sys.argv[1]}}, port=0, state=state, ready=lambda address: print(address, flush=True))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attributes", type=int, default=ATTRIBUTES)
    parser.add_argument("--values", type=int, default=VALUES)
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        path = published(Path(made), [options.values] * options.attributes, options.questions)
        size = path.stat().st_size / 1e3
        print(
            f"load average {os.getloadavg()[0]:.1f}; a file of {size:,.0f} KB, {options.attributes} attributes of "
            f"{options.values} values"
        )
        print(f"{'until it has answered':<38}{'processor s':>13}{'clock s':>9}")
        answers = set[bytes]()
        for words, state in (("without a folder", ""), ("with an empty one", made), ("with what that has kept", made)):
            used, took, said = until_it_answers(path, state and f"{state}/state")
            answers.add(said)
            print(f"{words:<38}{used:>13.1f}{took:>9.1f}", flush=True)
        assert len(answers) == 1  # all say the same bytes


def published(folder: Path, sizes: Sequence[int], questions: int) -> Path:
    """What was released of rows whose attributes lean on one another, as a file."""
    rng = np.random.default_rng(SEED)
    group = rng.integers(4, size=ROWS)
    frame = pd.DataFrame({
        f"x{i}": np.minimum(size - 1, (rng.beta(1 + group, 2) * size).astype(int)) for i, size in enumerate(sizes)
    })  # fmt: skip
    domain = {f"x{i}": tacit.integer(0, size - 1) for i, size in enumerate(sizes)}
    budget, path = tacit.Budget(epsilon=1.0, delta=1e-9), folder / "people.json"
    with tacit.open(
        data=frame,
        domain=domain,
        budget=budget,
        ledger=folder / "people.tacit",
        anchor=folder / "anchor",
        mechanism="iterative",
        warm=0.7,
        certify=0.2,
        start=True,
    ) as session:
        for _ in range(questions):
            one, other = rng.choice(len(sizes), 2, replace=False)
            values = ", ".join(map(str, rng.choice(sizes[one], max(1, sizes[one] // 2), replace=False)))
            low = rng.integers(sizes[other])
            session.ask(f"SELECT COUNT(*) FROM data WHERE x{one} IN ({values}) AND x{other} >= {low}")
        tacit.publish(session, path)
    return path


def until_it_answers(path: Path, state: str) -> tuple[float, float, bytes]:
    """Seconds of the processor, and by the clock, until a new process has answered; and what it said."""
    os.environ.pop(STATE, None)
    if state:
        os.environ[STATE] = state
    start = time.perf_counter()
    with Server(path, PROGRAM) as server:
        said = asyncio.run(first(server.address))
        return server.busy, time.perf_counter() - start, said


async def first(address: str) -> bytes:
    client = Client(address, "none")
    body = b'{"question": "SELECT COUNT(*) FROM data WHERE x0 = 1 AND x1 = 1"}'
    response = await client.call("POST", "/v1/people/ask", body)
    assert response.status == 200, response.body
    await client.close()
    return bytes(response.body)


if __name__ == "__main__":
    main()
