"""Almost all databases (Roth & Roughgarden 2010, section 5): on which the efficient mechanism is useful, as X grows.

    python -m benchmarks.bench_almost_all [--databases 12] [--questions 200] [--cells 16 64 ...]

Databases come from DatabaseSample. The mechanism has fractional databases that start from nothing (`warm=0`,
`sampler="fractions"`), and is asked random predicates: each value is in with probability 1/2. A database counts as
served if every answer is within alpha. Corollary 5.8 says that almost all are, with as many hard answers as lemma 5.4
asks for; here they are few, as a budget asks for. Draws docs/pictures/almost_all.svg.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import Progress

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.show.chart import Axis, Chart, Polyline
from tacit.show.chart.marks import Mark
from tacit.theory.median_efficient import database_sample

ROWS, ALPHA, SAMPLES = 20_000, 0.05, 100
BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
CELLS = (16, 64, 256, 1_024, 4_096, 16_384)
HITS = (15, 60)
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "almost_all.svg"


class Run(NamedTuple):
    """One database: the largest error, how many answers were bought, and after how many questions the last was."""

    largest: float
    hard: int
    last: int
    seconds: float


def play(
    cells: int,
    hits: int,
    questions: int,
    seed: int,
    *,
    drawn: str = "DatabaseSample",
    rows: int = ROWS,
    budget: tacit.Budget = BUDGET,
) -> Run:
    """The mechanism on one database, which is drawn by DatabaseSample or uniformly."""
    domain = Domain({"x": tacit.integer(0, cells - 1)})
    rng = np.random.default_rng(seed)
    values = database_sample(domain, rows, seed)[:, 0] if drawn == "DatabaseSample" else rng.integers(cells, size=rows)
    asked = [np.flatnonzero(rng.random(cells) < 0.5) for _ in range(questions)]
    counts = np.bincount(values, minlength=cells)
    with (
        tempfile.TemporaryDirectory() as folder,
        tacit.open(
            data=pd.DataFrame({"x": values}), domain=domain, budget=budget, ledger=Path(folder) / "l.tacit",
            anchor=Path(folder) / "anchor", mechanism="median", warm=0, sampler="fractions", databases=SAMPLES,
            hits=hits, questions=questions, seed=seed,
        ) as session,
    ):  # fmt: skip
        start = time.process_time()
        answers = [session.ask_many([Query.among(domain, "x", some)])[0] for some in asked]
        seconds = time.process_time() - start
    errors = [abs(answer.value - counts[some].sum()) / rows for answer, some in zip(answers, asked, strict=True)]
    bought = [place for place, answer in enumerate(answers) if answer.source == "measured"]
    return Run(max(errors), len(bought), bought[-1] + 1 if bought else 0, seconds / questions)


def picture(served: Mapping[tuple[int, int], float]) -> Chart:
    """The share of databases that are served, by the number of cells: a line for each number of hard answers."""
    marks = list[Mark]()
    for hits in sorted({hits for hits, _ in served}):
        cells = sorted(cells for hard, cells in served if hard == hits)
        marks.append(Polyline(cells, [served[hits, some] for some in cells], name=f"{hits} hard answers"))
    return Chart(
        "Almost all databases: on how many every answer is within alpha",
        x=Axis("cells of the domain", log=True),
        y=Axis("databases that are served", low=0.0, high=1.05, percent=True),
        marks=marks,
        note=f"Databases of {ROWS:,} rows from DatabaseSample; alpha = {ALPHA}; {BUDGET}.",
    )


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_almost_all", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--databases", type=int, default=12)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--cells", type=int, nargs="+", default=CELLS)
    options = parser.parse_args(arguments)
    print(f"{ROWS:,} rows, {BUDGET}, {options.questions} random predicates, alpha = {ALPHA}; of {options.databases}")
    print(f"{'hits':>5}{'cells':>9}{'spread':>9}{'within alpha':>14}{'largest':>9}{'hard':>6}{'the last':>9}{'ms':>8}")
    shares: dict[tuple[int, int], float] = {}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for hits in HITS:
            for cells in options.cells:
                task = progress.add_task(f"{hits} hard answers, {cells:,} cells", total=options.databases)
                runs = []
                for seed in range(options.databases):
                    runs.append(play(cells, hits, options.questions, seed))
                    progress.advance(task)
                progress.remove_task(task)
                served = shares[hits, cells] = float(np.mean([run.largest <= ALPHA for run in runs]))
                figures = [np.mean([getattr(run, name) for run in runs]) for name in ("largest", "hard", "last")]
                print(
                    f"{hits:>5}{cells:>9,}{0.5 / np.sqrt(cells):>9.3f}{served:>14.0%}"
                    f"{figures[0]:>9.4f}{figures[1]:>6.1f}{figures[2]:>9.0f}"
                    f"{1e3 * np.mean([run.seconds for run in runs]):>8.1f}",
                    flush=True,
                )
    picture(shares).save(PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
