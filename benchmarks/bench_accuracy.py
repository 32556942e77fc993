"""Accuracy: the default path against its peers on the same table, the same questions and the same budget.

    python -m benchmarks.bench_accuracy [--quick] [--peers] [--only NAME] [--svg FILE]

The table is Adult where it has been put beside the repository (`../shared/data/adult/adult.csv`, as small integer
codes), with 8 attributes and 3.4 million cells; otherwise made-up rows of the same shape. Two analysts ask every
mechanism: one asks random conjunctions of one to three attributes, each condition met by a random set of values; the
other drills down, always into the largest surprise among the answers that it got. `--peers` adds OpenDP's AIM and MST,
which `make peers` installs. Seconds are those of the processor, with loading, asking and all.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.accuracy import needed, ways
from benchmarks.accuracy.analysts import Analyst, conjunctions, drill_down, stream
from benchmarks.accuracy.needed import ALPHA, BETA, DELTA
from benchmarks.accuracy.noisy_tables import equality_variances, every, question_variances
from benchmarks.accuracy.rows import HEADINGS, Row, picture
from benchmarks.accuracy.synthesis import LIMIT, PEERS, PYTHON, synthesise
from benchmarks.accuracy.tables import MILD, PURE, SEED, Table, table
from tacit.model.budget import Budget
from tacit.model.query import Query

QUESTIONS, DRILLED, MANY = 10_000, 5_000, 100_000
TRIED_RUNS, TRIED_STEPS = 3, 5  # of the bisection for what no formula tells
TRIED_LOW, TRIED_HIGH = 1 / 64, 2.0


class Bench:
    """One table, its questions with their true answers, and a progress bar."""

    def __init__(self, of: Table, questions: int, drilled: int, progress: Progress) -> None:
        self.table, self.questions, self.drilled, self.progress = of, questions, drilled, progress
        self._truth: dict[Query, int] = {}

    def truth(self, query: Query) -> int:
        if query not in self._truth:
            self._truth[query] = self.table.records.answer(query)
        return self._truth[query]

    def random(self, run: int, count: int | None = None) -> list[Query]:
        rng = np.random.Generator(np.random.PCG64([SEED, run]))
        return conjunctions(self.table.domain, count or self.questions, rng)

    def put(
        self, opened: ways.Open, budget: Budget, analyst: Analyst, k: int
    ) -> tuple[NDArray[np.float64], int | None, float]:
        """Errors, hard answers and processor seconds of one run."""
        start = time.process_time()
        with opened(self.table, budget, k) as way:
            asked = analyst(way.ask)
            seconds, hard = time.process_time() - start, way.hard
        return asked.errors(self.truth, self.table.rows), hard, seconds


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        sizes = (500, 500) if options.quick else (QUESTIONS, DRILLED)
        bench = Bench(table(), *sizes, progress)
        chosen = [way for way in ways.WAYS if options.only in way.name and not (options.quick and way.slow)]
        print(_title(bench), flush=True)
        tables = []
        for words, asker, formulas in (
            (f"random conjunctions: {bench.questions:,} questions", _random, _random_formulas),
            (f"drill-down: {bench.drilled:,} questions", _drill, _drill_formulas),
        ):
            print(f"\n{words}\n{HEADINGS}", flush=True)
            tables.append([_row(bench, way, asker, formulas, options.quick) for way in chosen])
        if options.peers:
            _peers(bench, tables, options.limit, options.python)
        if not options.quick and options.only in ways.AUTO.name:
            _many(bench)
    print(FOOTNOTES)
    if options.svg:
        note = f"{bench.table.name}; epsilon = 1, delta = 1e-9; points are means of the runs, bars their spread."
        title = f"Errors of {bench.questions:,} random conjunctions, by mechanism"
        picture(title, tables[0], note).save(options.svg)


Asker = Callable[[Bench, int], tuple[Analyst, int]]


def _random(bench: Bench, run: int) -> tuple[Analyst, int]:
    return stream(bench.random(run)), bench.questions


def _drill(bench: Bench, run: int) -> tuple[Analyst, int]:
    return drill_down(bench.table.domain, bench.table.rows, questions=bench.drilled), bench.drilled


def _row(
    bench: Bench, way: ways.Way, asker: Asker, formulas: Callable[[Bench, ways.Way, Row], None], quick: bool
) -> Row:
    row = Row(way.name)
    runs = 1 if quick else way.runs
    task = bench.progress.add_task(way.name, total=runs + 1)
    for run in range(runs):
        analyst, k = asker(bench, run)
        row.add(*bench.put(way.open, _budget(way), analyst, k))
        bench.progress.advance(task)
    formulas(bench, way, row)
    if way.tried and not quick:
        tried = _tried(bench, way, asker)
        words = f"{tried:.2g} tried" if tried <= TRIED_HIGH else f"> {TRIED_HIGH:.2g} tried"
        row.needed = f"{row.needed}; {words}".removeprefix("-; ")
    bench.progress.remove_task(task)
    print(row, flush=True)
    return row


def _budget(way: ways.Way) -> Budget:
    return PURE if way is ways.LAPLACE else MILD


def _random_formulas(bench: Bench, way: ways.Way, row: Row) -> None:
    scopes = _scopes(bench, way)
    _formulas(bench, way, row, bench.questions)
    if scopes is not None:
        _sums(bench, row, question_variances(bench.table.domain, scopes, bench.random(0)))


def _drill_formulas(bench: Bench, way: ways.Way, row: Row) -> None:
    """Released tables are asked by somebody who has seen them, so that the union is over all that can be asked."""
    scopes = _scopes(bench, way)
    _formulas(bench, way, row, bench.drilled)
    if scopes is not None:
        variances = equality_variances(bench.table.domain, scopes)
        _sums(bench, row, variances)
        row.within = "any" if row.within == f"{variances.size:,} (law)" else row.within


def _scopes(bench: Bench, way: ways.Way) -> list[tuple[str, ...]] | None:
    attributes = {ways.HISTOGRAM.name: len(bench.table.domain), ways.TRIPLES.name: 3}.get(way.name)
    return None if attributes is None else every(bench.table.domain, attributes)


def _sums(bench: Bench, row: Row, variances: NDArray[np.float64]) -> None:
    within = ALPHA * bench.table.rows
    row.needed = f"{needed.sums_epsilon(variances, within, BETA):.3g} law"
    row.within = f"{needed.sums_questions(variances, MILD.epsilon, within, BETA):,} (law)"


def _formulas(bench: Bench, way: ways.Way, row: Row, k: int) -> None:
    within, epsilon = ALPHA * bench.table.rows, MILD.epsilon
    promised: float | None = None
    if way is ways.LAPLACE:
        row.needed = f"{needed.laplace_epsilon(k, within, BETA):.3g} law"
        row.within = f"{needed.laplace_questions(epsilon, within, BETA):,} (law)"
    elif way is ways.GAUSSIAN:
        row.needed = f"{needed.gaussian_epsilon(k, within, BETA):.3g} law"
        row.within = f"{needed.gaussian_questions(epsilon, within, BETA):,} (law)"
    elif way is ways.UNIFORM:  # the textbook's steps are so small that its hard answers, and its promise, soon end
        promised = needed.gate_epsilon(ways.HITS, k, within, BETA)
    elif way is ways.AUTO:
        promised = needed.planned_epsilon(bench.table.domain, bench.table.rows, k, within, BETA)
    if way.slow and row.runs:
        row.needed = "> 1 seen" if row.first_miss is not None else "1 or less seen"
    if promised is not None:
        row.needed = f"{promised:.3g} promised" + (f"; {row.needed}" if way.slow else "")


def _tried(bench: Bench, way: ways.Way, asker: Asker) -> float:
    """By bisection: at an epsilon that is enough, all of a few runs stayed within alpha."""

    def largest(epsilon: float) -> float:
        worst = 0.0
        for run in range(TRIED_RUNS):
            analyst, k = asker(bench, run)
            errors, _, _ = bench.put(way.open, Budget(epsilon=epsilon, delta=DELTA), analyst, k)
            worst = max(worst, float(errors.max()))
            if worst > ALPHA:
                break
        return worst

    return needed.tried_epsilon(largest, ALPHA, low=TRIED_LOW, high=TRIED_HIGH, steps=TRIED_STEPS)


def _peers(bench: Bench, tables: list[list[Row]], limit: float, python: Path) -> None:
    print(f"\nOpenDP's AIM and MST, given all 3-way tables as their workload\n{HEADINGS}", flush=True)
    for peer in PEERS:
        task = bench.progress.add_task(peer.name, total=None)
        run = synthesise(bench.table, MILD, peer, limit=limit, python=python)
        bench.progress.remove_task(task)
        for asker, words, rows in ((_random, "", tables[0]), (_drill, ", drill-down", tables[1])):
            row = Row(peer.name + words)
            if run.answers is None:
                row.note = run.why
            else:
                analyst, _ = asker(bench, 0)
                errors = analyst(run.answers.ask).errors(bench.truth, bench.table.rows)
                row.add(errors, None, run.processor)
                row.note = f"{run.seconds:.0f} s, {run.gigabytes:.1f} GB"
            rows.append(row)
            print(row, flush=True)


def _many(bench: Bench) -> None:
    """Ours goes on: ten times as many questions on the same budget."""
    task = bench.progress.add_task(f"{MANY:,} questions", total=MANY)
    analyst = stream(bench.random(99, MANY), lambda done: bench.progress.advance(task, done))
    row = Row(f"Tacit, auto, {MANY:,} questions")
    row.add(*bench.put(ways.AUTO.open, MILD, analyst, MANY))
    print(f"\n{HEADINGS}\n{row}", flush=True)


def _title(bench: Bench) -> str:
    of = bench.table
    sizes = f"{of.name}, {of.rows:,} rows, {len(of.domain)} attributes, {of.domain.size:,} cells"
    return f"accuracy: {sizes}; epsilon = 1, delta = 1e-9 (Laplace: delta = 0); one row replaced"


FOOTNOTES = f"""
  Errors are fractions of n; least–largest of the runs. hard: answers that were bought, at most, by those that choose.
  epsilon needed: with delta = 1e-9 (Laplace: 0), for all questions within {ALPHA} but for a chance of {BETA}.
    law: by the law of the noise. promised: by the plan or the gate, while hard answers are left.
    tried: the least of a bisection at which all {TRIED_RUNS} runs were within, which shows no chance of {BETA}.
  answers within: how many at epsilon = 1: by the law, with that chance; or asked before one was seen farther off."""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_accuracy", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="500 questions, one run, the fast mechanisms only")
    parser.add_argument("--peers", action="store_true", help="OpenDP's AIM and MST too, as `make peers` installs them")
    parser.add_argument("--only", default="", help="mechanisms whose name holds this")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each run of AIM or MST")
    parser.add_argument("--python", type=Path, default=PYTHON, help="the interpreter that has opendp[mbi]")
    parser.add_argument("--svg", help="where to draw a picture")
    return parser.parse_args([] if arguments is None else arguments)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
