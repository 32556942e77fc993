"""Accuracy: every way on the same tables, the same questions and the same budgets, beside the best of its peers.

    python -m benchmarks.bench_accuracy [--tables adult flights ...] [--epsilon 0.1 1 3 pure] [--ways RP3 auto ...]
                                        [--runs N] [--quick] [--forecast] [--svg FILE]

One table is printed for each table of rows and budget: a row for each figure of each family of questions, a column for
each way, and how many times the best peer's error ours has. Errors of counts are in ten-thousandths of all rows, of
means and medians in ten-thousandths of the attribute's span; relative errors are shares of the group, over the 2-way
and 3-way cells. Neighbours replace one row; delta = 1e-9, and 0 for `pure`, which is epsilon = 1. Every way is opened
once for all questions, so fresh noise and sessions share their budget among all of them; drill-down comes last, and
asks what its answers make it ask. Tables that are not at hand are skipped, as are MST and AIM where `make peers` has
not installed them; `--quick` needs neither. MST and AIM run once, whatever the number of runs.

`--forecast` prints instead what is foretold of a warm start, by `tacit.plan` and once it is bought, beside what
happens: see `accuracy.forecasts`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.accuracy import ways
from benchmarks.accuracy.analysts import drill_down
from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.forecasts import HEADING, checked
from benchmarks.accuracy.questions import Family, Truth, families
from benchmarks.accuracy.scores import Scores, picture, printed
from benchmarks.accuracy.synthesis import NotFinished
from benchmarks.accuracy.tables import SEED, Table
from tacit.model.budget import Budget

DELTA = 1e-9
DRILLED = 2_000
BATCH = 1_000


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    chosen = [way for way in ways.WAYS if (way.name in options.ways if options.ways else way.default)]
    if options.quick:
        chosen = [way for way in chosen if way.name not in {"MST", "AIM"}]
    columns = TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn()
    for name in options.tables:
        try:
            table = TABLES[name]()
        except (FileNotFoundError, ImportError) as missing:
            print(f"{name}: skipped, as it is not here ({missing})")
            continue
        if options.forecast:
            print(f"\n{table.name}: {table.rows:,} rows, {len(table.domain)} attributes\n{HEADING}")
        for word in options.epsilon:
            budget = Budget(epsilon=1.0, delta=0.0) if word == "pure" else Budget(epsilon=float(word), delta=DELTA)
            if options.forecast:
                for line in checked(table, budget, options.runs):
                    print(line, flush=True)
                continue
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                scores = compare(table, budget, chosen, options.runs, 0.1 if options.quick else 1.0, progress)
            sizes = f"{table.rows:,} rows, {len(table.domain)} attributes, {table.domain.size:,} cells"
            print(f"\n{table.name}: {sizes}; {budget}; runs: {options.runs}\n{printed(scores)}", flush=True)
    if options.svg and not options.forecast:
        note = f"{table.name}; {budget}; points are means of the runs, bars their spread."
        picture("Errors of random boxes, by mechanism", scores, "boxes of 1 to 3", note).save(options.svg)


def compare(
    table: Table, budget: Budget, chosen: Sequence[ways.Way], runs: int, scale: float, progress: Progress
) -> list[Scores]:
    truth = Truth(table.records)
    asked = families(table.domain, table.rows, np.random.Generator(np.random.PCG64(SEED)), scale)
    found = []
    for way in chosen:
        if not (way.pure or budget.delta):
            continue
        task = progress.add_task(f"{table.name}, {budget}: {way.name}", total=runs)
        scores = Scores(way.name, way.ours, words=way.words)
        for _ in range(1 if way.slow else runs):
            try:
                measure(table, budget, way, asked, truth, int(scale * DRILLED), scores)
            except NotFinished as why:
                scores.note = str(why)
                break
            progress.advance(task)
        progress.remove_task(task)
        found.append(scores)
    return found


def measure(
    table: Table, budget: Budget, way: ways.Way, asked: list[Family], truth: Truth, drilled: int, scores: Scores
) -> None:
    """One run: the way is opened for all questions together."""
    queries = {id(family.queries): len(family.queries) for family in asked}  # means and medians share theirs
    start = time.perf_counter()
    with way.open(table, budget, sum(queries.values()) + drilled) as opened:
        answers: dict[int, np.ndarray] = {}
        for family in asked:
            if id(family.queries) not in answers:
                parts = range(0, len(family.queries), BATCH)
                told = [opened.answer(family.queries[first : first + BATCH]) for first in parts]
                answers[id(family.queries)] = np.concatenate(told)
        drill = drill_down(table.domain, table.rows, questions=drilled)(opened.answer)
    scores.seconds.append(time.perf_counter() - start)
    true_cells, told_cells = [], []
    for family in asked:
        true, told_answers = truth.answer(family.queries), answers[id(family.queries)]
        scores.add(family.name, np.abs(family.read(told_answers) - family.read(true)))
        if "cells" in family.name:
            true_cells.append(true)
            told_cells.append(told_answers)
    scores.add("drill-down", np.abs(drill.answers - truth.answer(drill.queries)) / table.rows)
    scores.add_relative(np.concatenate(true_cells), np.concatenate(told_cells))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_accuracy", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult"], choices=list(TABLES), help="tables of rows")
    parser.add_argument("--epsilon", nargs="+", default=["1"], help="numbers, or pure: epsilon = 1, delta = 0")
    parser.add_argument("--ways", nargs="+", choices=[way.name for way in ways.WAYS], help="all but the slow ones")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions, and neither MST nor AIM")
    parser.add_argument("--forecast", action="store_true", help="what is foretold beside what happens")
    parser.add_argument("--svg", help="where to draw a picture of the last table")
    return parser.parse_args([] if arguments is None else arguments)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
