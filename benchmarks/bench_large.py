"""Domains too large to list: accuracy on all 14 attributes of Adult, and what load, start and answers cost as X grows.

    python -m benchmarks.bench_large            accuracy, beside 8 listed attributes and fresh noise in the same run
    python -m benchmarks.bench_large --costs    costs against rows, cells and questions; draws docs/pictures/costs.svg
    python -m benchmarks.bench_large --aim      beside AIM, told which tables are asked about (`make peers`)

Made-up rows of the same shape are used where the file is missing.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit
from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.noisy_tables import Scope, every
from benchmarks.accuracy.synthesis import LIMIT, NotFinished, synthesise
from benchmarks.accuracy.tables import ADULT, ALL, MILD, SEED, adult_codes
from benchmarks.accuracy.tables import table as listed_table
from tacit.exact.price import Sensitivity, noise_for, total
from tacit.load import open_source
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.online import Online
from tacit.show.chart import Axis, Chart, Grid, Polyline
from tacit.trusted.cells import read_records
from tacit.trusted.noise import add_noise

QUESTIONS = 5_000
SEEDS = 3
BATCH = 500  # the time of an easy answer is that in a middling batch: some hold a hard one
WORKLOAD = 32  # three-way tables that AIM is told of in advance
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "costs.svg"


def wide_domain(attributes: int = 14) -> Domain:
    """Adult's attributes with the sizes that come with the file, the first so many."""
    names = list(ALL)[:attributes]
    return Domain({_plain(name): tacit.integer(0, ALL[name] - 1) for name in names})


def wide_rows(rows: int | None = None) -> pd.DataFrame:
    """Adult, repeated or cut to so many rows; else latent classes of the same shape."""
    if ADULT.exists():
        columns = {_plain(name): codes for name, codes in adult_codes().items()}
    else:
        rng = np.random.default_rng(SEED)
        kind = rng.integers(0, 6, 48_842)
        columns = {
            _plain(name): np.minimum(rng.geometric(0.05 + 0.1 * kind) - 1, size - 1) for name, size in ALL.items()
        }
    frame = pd.DataFrame(columns)
    return frame if rows is None else frame.iloc[np.arange(rows) % len(frame)].reset_index(drop=True)


def _plain(name: str) -> str:
    return name.replace("-", "_").replace(">", "_")


def three_way(
    domain: Domain, count: int, rng: np.random.Generator, scopes: Collection[Scope] | None = None
) -> list[Query]:
    """Conjunctions of three attributes, any or those of some scopes, each met by a random set of values."""
    wanted = set(every(domain, 3) if scopes is None else scopes)
    found: list[Query] = []
    while len(found) < count:
        found += [query for query in conjunctions(domain, count, rng) if query.scope in wanted]
    return found[:count]


def session(
    data: Any, domain: Domain, queries: Sequence[Query], **options: Any
) -> tuple[list[float], dict[str, float]]:
    """The default path, unless told otherwise: the answers, and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        opened = tacit.open(
            data=data, domain=domain, budget=MILD, questions=len(queries), **options, start=True,
            ledger=Path(folder) / "l.tacit", anchor=Path(folder) / "anchor",
        )  # fmt: skip
        with opened as one:
            loaded = time.perf_counter()
            answers = [answer.value for answer in one.ask_many(queries[:1])]
            started = time.perf_counter()
            rest, times = list[tacit.Answer](), list[float]()
            for first in range(1, len(queries), BATCH):
                before = time.perf_counter()
                rest += one.ask_many(batch := queries[first : first + BATCH])
                times.append((time.perf_counter() - before) / len(batch))
            done = time.perf_counter()
            hard = sum(answer.source == "measured" for answer in rest)
            facts = {"buying": _seconds_to_buy(one, queries[-1])} if options else {}
            return [*answers, *(answer.value for answer in rest)], {
                "open": loaded - start, "start": started - loaded, "asking": done - started, "hard": hard,
                "each": 1000 * float(np.median(times)) if times else 0.0,
                "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, **facts,
            }  # fmt: skip


def _seconds_to_buy(one: tacit.Session, query: Query) -> float:
    """What follows a hit of the gate: the question, or the table around it, is bought and learned."""
    online = one._mechanism
    assert isinstance(online, Online)
    start = time.perf_counter()
    with one._public.turn():
        online._buy(query.core)
        online._catch_up(buy=True)
    return time.perf_counter() - start


def accuracy() -> None:
    wide, narrow = wide_rows(), listed_table()
    cases: list[tuple[str, Any, Domain]] = [
        ("14 attributes, auto", wide, wide_domain()),
        ("8 attributes, auto", narrow.data, narrow.domain),
    ]
    print(f"{QUESTIONS:,} conjunctions of three attributes, {MILD}; fractions of n, of {SEEDS} sessions")
    print(f"{'':<24}{'cells':>9}{'mean':>20}{'p99':>20}{'max':>20}{'hard':>6}{'start s':>9}{'asking s':>9}{'GB':>6}")
    for name, data, domain in cases:
        records = read_records(open_source(data), domain)
        found, facts = [], dict[str, float]()
        for seed in range(SEEDS):
            queries = three_way(domain, QUESTIONS, np.random.default_rng(SEED + seed))
            answers, facts = session(data, domain, queries)
            truth = np.array([records.answer(query) for query in queries])
            errors = np.abs(np.array(answers) - truth) / records.rows
            found.append((errors.mean(), np.quantile(errors, 0.99), errors.max()))
        spread = "".join(
            f"{low:>10.5f}–{high:.5f} " for low, high in zip(np.min(found, 0), np.max(found, 0), strict=True)
        )
        costs = f"{facts['hard']:>6.0f}{facts['start']:>9.1f}{facts['asking']:>9.1f}{facts['gigabytes']:>6.2f}"
        print(f"{name:<24}{domain.size:>9.1e}{spread}{costs}", flush=True)
    noise = noise_for(total(MILD).split(QUESTIONS), Sensitivity(1, 1), 1)
    errors = np.abs(add_noise(np.zeros(QUESTIONS, dtype=np.int64), noise)) / len(wide)
    fresh = "".join(f"{figure:>14.5f}      " for figure in (errors.mean(), np.quantile(errors, 0.99), errors.max()))
    print(f"{'fresh Gaussian noise':<24}{'any':>9}{fresh}")


def aim(limit: float) -> None:
    """Questions about a few tables only: AIM is told which, Tacit is not."""
    frame, domain = wide_rows(), wide_domain()
    records = read_records(open_source(frame), domain)
    rng = np.random.default_rng(SEED)
    scopes = every(domain, 3)
    workload = [scopes[place] for place in sorted(rng.choice(len(scopes), WORKLOAD, replace=False))]
    queries = three_way(domain, QUESTIONS, rng, workload)
    truth = np.array([records.answer(query) for query in queries])

    def show(name: str, answers: Any, seconds: float, gigabytes: float) -> None:
        errors = np.abs(np.asarray(answers) - truth) / records.rows
        print(f"{name:<24}{errors.mean():>9.5f}{errors.max():>9.5f}{seconds:>9.1f}{gigabytes:>6.2f}", flush=True)

    print(f"{QUESTIONS:,} conjunctions about {WORKLOAD} triples of attributes, {MILD}; fractions of n, one run")
    print(f"{'':<24}{'mean':>9}{'max':>9}{'seconds':>9}{'GB':>6}")
    answers, facts = session(frame, domain, queries)
    show("Tacit, auto", answers, facts["open"] + facts["start"] + facts["asking"], facts["gigabytes"])
    try:
        run = synthesise(records, MILD, "AIM", workload=workload, limit=limit)
        show("AIM", run.answers.answer(queries), run.seconds, run.gigabytes)
    except NotFinished as why:
        print(f"{'AIM':<24}{why}")


def one_cost(attributes: int, rows: int, questions: int) -> None:
    """In a process of its own, so that its memory is its own."""
    domain = wide_domain(attributes)
    queries = conjunctions(domain, questions + 1, np.random.default_rng(SEED))
    _, facts = session(wide_rows(rows), domain, queries, mechanism="iterative", warm=0.8, hits=50)
    print(json.dumps(facts | {"cells": domain.size, "rows": rows, "questions": questions}))


def pictured(along: str, found: Sequence[dict[str, Any]]) -> list[Chart]:
    """Times in one chart and memory in another: each axis has one unit."""
    x = [float(one[along]) for one in found]
    times = {
        "open": [one["open"] for one in found],
        "warm start": [one["start"] for one in found],
        "hard answer": [one["buying"] for one in found],
        "easy answer": [one["each"] / 1000 for one in found],
    }
    lines = [Polyline(x, y, name=name) for name, y in times.items()]
    memory = [Polyline(x, [one["gigabytes"] for one in found], name="memory")]
    return [
        Chart(f"time, by {along}", x=Axis(along, log=True), y=Axis("seconds", log=True), marks=lines, width=460),
        Chart(f"memory, by {along}", x=Axis(along, log=True), y=Axis("gigabytes", low=0), marks=memory, width=460),
    ]


def costs() -> None:
    plans = {
        "cells": [(attributes, 48_842, 2_000) for attributes in (3, 4, 5, 6, 7, 9, 11, 14)],
        "rows": [(14, rows, 2_000) for rows in (1_000, 10_000, 100_000, 1_000_000)],
        "questions": [(14, 48_842, questions) for questions in (10, 100, 1_000, 9_999)],
    }
    charts = []
    print(f"{'cells':>10}{'rows':>10}{'questions':>10}{'open s':>9}{'start s':>9}{'easy ms':>9}{'hard s':>8}{'GB':>7}")
    for along, plan in plans.items():
        found = []
        for attributes, rows, questions in plan:
            command = [
                sys.executable,
                "-m",
                "benchmarks.bench_large",
                "--one",
                *map(str, (attributes, rows, questions)),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
            one = json.loads(done.stdout.splitlines()[-1])
            found.append(one)
            print(
                f"{one['cells']:>10.1e}{one['rows']:>10,}{one['questions']:>10,}{one['open']:>9.2f}{one['start']:>9.2f}"
                f"{one['each']:>9.3f}{one['buying']:>8.2f}{one['gigabytes']:>7.2f}",
                flush=True,
            )
        charts += pictured(along, found)
    Grid("What a session costs, 2 cores", charts, columns=2).save(PICTURE)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_large", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--costs", action="store_true", help="what load, start and answers cost")
    parser.add_argument("--aim", action="store_true", help="beside AIM, as `make peers` installs it")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for AIM")
    options = parser.parse_args(arguments)
    if options.one:
        one_cost(*options.one)
    elif options.costs:
        costs()
    elif options.aim:
        aim(options.limit)
    else:
        accuracy()


if __name__ == "__main__":
    main(sys.argv[1:])
