"""`tacit bench`: the mechanisms measured on this machine, on a table made up from a public seed."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.options import json_option
from tacit.cli.show import print_grid, show, waiting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from tacit.model.budget import Budget
    from tacit.model.domain import Domain
    from tacit.model.expression import Expression

DELTA = 1e-9
MOST_HISTOGRAM = 200_000  # cells: drawing more noise would take most of the minute


@click.command()
@click.option("--rows", type=click.IntRange(100, 1_000_000), default=50_000, show_default=True, metavar="N")
@click.option("--columns", type=click.IntRange(2, 8), default=5, show_default=True, metavar="D")
@click.option("--values", type=click.IntRange(2, 20), default=6, show_default=True, help="In each column.", metavar="V")
@click.option("--questions", type=click.IntRange(10, 10_000), default=1_000, show_default=True, metavar="K")
@click.option("--epsilon", type=float, default=1.0, show_default=True, metavar="E")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Decides the made table.")
@click.option("--median", is_flag=True, help="Also measure the median mechanism: a minute more.")
@json_option
def bench(
    rows: int, columns: int, values: int, questions: int, epsilon: float, seed: int, median: bool, as_json: bool
) -> None:
    """Measure the mechanisms on this machine, on a made table.

    The table has N rows and D columns of V values. Each mechanism answers the same K random conditions on up to three
    columns under one budget. Ratios are against independent noise for every question, in the same run; below 1 is
    better. With the default sizes it takes less than a minute.

    \b
    Examples:
      tacit bench --rows 2000 --columns 3 --questions 100
      tacit bench --rows 2000 --columns 3 --questions 100 --epsilon 0.5 --json
    """
    import numpy as np

    from tacit.model.attribute import category
    from tacit.model.budget import Budget
    from tacit.model.domain import Domain

    with waiting("Measuring"):
        budget = Budget(epsilon=epsilon, delta=DELTA)
        draw = np.random.Generator(np.random.PCG64(seed))
        table = _table(draw, rows, columns, values)
        domain = Domain({f"c{i}": category(list(range(values))) for i in range(columns)})
        asked = [_question(draw, list(domain), values, table) for _ in range(questions)]
        runs = _measure(table, domain, budget, asked, median)
    facts = {"rows": rows, "cells": domain.size, "questions": questions, "epsilon": epsilon, "seed": seed}
    sizes = f"{rows:,} rows, {domain.size:,} cells, {questions:,} questions, epsilon = {epsilon:g}, delta = {DELTA:g}"
    show({**facts, "measured": [asdict(run) for run in runs]}, as_json, partial(_print_bench, sizes, runs))


@dataclass(frozen=True)
class Run:
    """One mechanism: seconds to open, for the first answer and for all of them; errors as fractions of the rows."""

    mechanism: str
    open_seconds: float
    first_seconds: float
    all_seconds: float
    mean_error: float
    largest_error: float
    mean_ratio: float
    largest_ratio: float


def _table(draw: np.random.Generator, rows: int, columns: int, values: int) -> NDArray[np.int64]:
    """Correlated columns: a hidden class of each row tilts every column, as in tables of people."""
    import numpy as np

    hidden = draw.integers(0, 3, rows)
    shares = draw.dirichlet(np.full(values, 0.7), (columns, 3))
    made = np.empty((columns, rows), np.int64)
    for column in range(columns):
        ends = shares[column].cumsum(axis=1)[hidden]
        made[column] = np.minimum((draw.random(rows)[:, None] > ends).sum(axis=1), values - 1)
    return made


def _question(
    draw: np.random.Generator, names: list[str], values: int, table: NDArray[np.int64]
) -> tuple[Expression, int]:
    """A condition on one to three columns, and how many rows of the made table meet it."""
    import numpy as np

    from tacit.model.expression import count

    chosen = draw.choice(len(names), size=int(draw.integers(1, min(3, len(names)) + 1)), replace=False)
    truth = np.ones(table.shape[1], bool)
    wanted: dict[str, list[int]] = {}
    for column in chosen.tolist():
        listed = draw.choice(values, size=int(draw.integers(1, values)), replace=False).tolist()
        wanted[names[column]] = listed
        truth &= np.isin(table[column], listed)
    return count(**wanted), int(truth.sum())


def _measure(
    table: NDArray[np.int64], domain: Domain, budget: Budget, asked: list[tuple[Expression, int]], median: bool
) -> list[Run]:
    """Open the table with each mechanism, each with a budget of its own, and ask the same questions."""
    import tempfile

    from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS

    runs = {"independent noise": "direct", "auto": "auto"}
    if domain.size <= MOST_HISTOGRAM:
        runs["noisy histogram"] = "histogram"
    if domain.size <= MAX_LISTED_CELLS:
        runs["iterative, uniform start"] = "iterative"
    if median:
        runs["median"] = "median"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "made.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(domain)
            writer.writerows(table.T.tolist())
        run = partial(_run, folder, domain, budget)
        run("warming up", "direct", asked[:2], None)  # so that imports are not counted
        found: list[Run] = []
        for label, mechanism in runs.items():
            found.append(run(label, mechanism, asked, found[0] if found else None))
    return found


def _run(
    folder: Path,
    domain: Domain,
    budget: Budget,
    name: str,
    mechanism: str,
    asked: list[tuple[Expression, int]],
    base: Run | None,
) -> Run:
    from tacit.owner.opening import open_session

    start = time.perf_counter()
    with open_session(
        data=str(folder / "made.csv"),
        domain=domain,
        budget=budget,
        ledger=folder / f"{name}.tacit",
        anchor=folder / "anchors.sqlite",
        questions=len(asked),
        mechanism=mechanism,
        start=True,
    ) as session:
        opened = time.perf_counter()
        answers = session.ask_many([asked[0][0]])
        answered = time.perf_counter()
        answers += session.ask_many([question for question, _ in asked[1:]])
        done = time.perf_counter()
        rows = session.rows
        name += f": {session.choice.mechanism}" if name == "auto" else ""
    errors = [abs(float(answer.value) - truth) / rows for answer, (_, truth) in zip(answers, asked, strict=True)]
    mean, largest = sum(errors) / len(errors), max(errors)
    return Run(
        mechanism=name,
        open_seconds=opened - start,
        first_seconds=answered - opened,
        all_seconds=done - opened,
        mean_error=mean,
        largest_error=largest,
        mean_ratio=mean / base.mean_error if base and base.mean_error else 1.0,
        largest_ratio=largest / base.largest_error if base and base.largest_error else 1.0,
    )


def _print_bench(sizes: str, runs: Sequence[Run], to: Console) -> None:
    to.print(f"[bold]A made table[/]: {sizes}")
    headings = ("open (s)", "first answer (s)", "all (s)", "mean error", "largest error", "mean ×", "largest ×")
    rows = []
    for one in runs:
        seconds = (one.open_seconds, one.first_seconds, one.all_seconds)
        errors = (one.mean_error, one.largest_error, one.mean_ratio, one.largest_ratio)
        rows.append((one.mechanism, *(f"{s:.2f}" for s in seconds), *(f"{e:.2g}" for e in errors)))
    print_grid(to, ("mechanism",), headings, rows)
    to.print("Errors are fractions of the rows; × is against independent noise in this run.", style="dim")
