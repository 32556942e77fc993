"""How opening, asking and reading grow with a ledger.

    python -m benchmarks.bench_ledger [--entries 1000 10000 100000]

A session that answers each question with fresh noise (`direct`) is asked as many counts as there are entries, in
batches of 1,000. Then, each in a process of its own: opening it, the first new question after that, deriving the whole
ledger again, and reading what it published, beside the time that Python's json takes for the lines of the same file.
These counts are of ranges, of which many share a condition. *sets* is the same for a file of as many counts of random
sets of values of three attributes, hardly two of which are alike, and *told* for one of tables that a session which
learns has told, a line for each of their counts. Times are of the processor, the best of three; *clock* is the first
reading of such a file by the clock, in a new process, with all that it has still to import.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit
from tacit.model.query import Query
from tacit.session import Session

ROUNDS, BATCH = 3, 1_000
FILES = "people.jsonl", "sets.jsonl", "told.jsonl"
CITIES, AGES = 500, 500  # (cities + 1) choose 2 times ages: enough questions
DOMAIN = tacit.Domain({"city": tacit.integer(0, CITIES - 1), "age": tacit.integer(0, AGES - 1)})
SIZES = {"a": 20, "b": 30, "c": 12}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}")
    file = f"{'json s':>9}{'clock s':>9}"
    print(
        f"{'entries':>9}{'open s':>9}{'first s':>9}{'verify s':>10}{'read s':>9}{file}{'sets s':>9}{file}"
        f"{'told s':>9}{file}{'ledger MB':>11}"
    )
    for entries in options.entries:
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            _apart(made, here, entries)
            _apart(made_of_sets, here, entries)
            _apart(made_by_telling, here, entries)
            taken = [_apart(step, here, entries) for step in (opening, first, verifying)]
            taken += [
                _apart(step, here / name, entries) for name in FILES for step in (reading, plainly, first_reading)
            ]
            size = (here / "people.tacit").stat().st_size / 1e6
        form = ("9.2f", "9.3f", "10.2f", *("9.2f",) * 9)
        figures = "".join(f"{one:>{width}}" for one, width in zip(taken, form, strict=True))
        print(f"{entries:>9,}{figures}{size:>11.1f}", flush=True)


def opened(here: Path, entries: int) -> Session:
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"city": rng.integers(0, CITIES, 10_000), "age": rng.integers(0, AGES, 10_000)})
    files = {"ledger": here / "people.tacit", "anchor": here / "anchors.sqlite"}
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    questions = entries + 100
    return tacit.open(data=people, domain=DOMAIN, budget=budget, mechanism="direct", questions=questions, **files)


def question(number: int) -> Query:
    city, age = divmod(number, AGES)
    return tacit.count(city=(city % CITIES, CITIES - 1), age=(0, age))


def made(here: Path, entries: int) -> float:
    with opened(here, entries) as session:
        for start in range(0, entries, BATCH):
            session.ask_many([question(number) for number in range(start, min(start + BATCH, entries))])
        tacit.publish(session, here / FILES[0])
    return 0.0


def made_of_sets(here: Path, entries: int) -> float:
    rng = np.random.default_rng(2)
    terms = _three_attributes(here / "sets.tacit")

    def some(name: str) -> Query:
        many = rng.integers(1, SIZES[name])
        return Query.among(terms["domain"], name, rng.choice(SIZES[name], many, replace=False))

    with tacit.open(mechanism="direct", questions=entries + 100, **terms) as session:
        for start in range(0, entries, BATCH):
            many = min(BATCH, entries - start)
            session.ask_many([Query.all(map(some, SIZES)) for _ in range(many)])
        tacit.publish(session, here / FILES[1])
    return 0.0


def made_by_telling(here: Path, entries: int) -> float:
    """Without a certificate, since what is certified leaves no line."""
    rng = np.random.default_rng(3)
    terms = _three_attributes(here / "told.tacit")
    with tacit.open(mechanism="iterative", warm=0.7, certify=0, questions=2 * entries, **terms) as session:
        session.start()
        while session.entries < entries:
            by, other = rng.choice(list(SIZES), 2, replace=False)
            values = rng.choice(SIZES[other], rng.integers(1, SIZES[other]), replace=False)
            chosen = ", ".join(map(str, values))
            session.ask(f"SELECT {by}, COUNT(*) FROM data WHERE {other} IN ({chosen}) GROUP BY {by}")
        tacit.publish(session, here / FILES[2])
    return 0.0


def _three_attributes(ledger: Path) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "data": pd.DataFrame({name: rng.integers(0, size, 10_000) for name, size in SIZES.items()}),
        "domain": tacit.Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()}),
        "budget": tacit.Budget(epsilon=1.0, delta=1e-9),
        "ledger": ledger,
        "anchor": ledger.parent / "anchors.sqlite",
    }


def opening(here: Path, entries: int) -> float:
    return _best(lambda: opened(here, entries).close())


def first(here: Path, entries: int) -> float:
    """The first question after opening, which nobody asked before."""
    taken = []
    for number in range(ROUNDS):
        with opened(here, entries) as session:
            start = time.process_time()
            session.ask(question(entries + number))
            taken.append(time.process_time() - start)
    return min(taken)


def verifying(here: Path, entries: int) -> float:
    with opened(here, entries) as session:
        return _best(session._ledger.log.verify)


def reading(file: Path, entries: int) -> float:
    return _best(lambda: tacit.read(file))


def first_reading(file: Path, entries: int) -> float:
    start = time.perf_counter()
    tacit.read(file)
    return time.perf_counter() - start


def plainly(file: Path, entries: int) -> float:
    return _best(lambda: [json.loads(line) for line in file.open()])


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def _apart(work: Callable[[Path, int], float], here: Path, entries: int) -> float:
    """In a process of its own, so that nothing that one step keeps helps another."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, (here, entries))


if __name__ == "__main__":
    main()
