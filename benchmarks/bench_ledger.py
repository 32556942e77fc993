"""How opening, asking and reading grow with a ledger.

    python -m benchmarks.bench_ledger [--entries 1000 10000 100000] [--forms ranges sets told counts means tables ties]

A session that answers each question with fresh noise (`direct`) is asked as many counts of ranges as there are entries,
in batches of 1,000. Then, each in a process of its own: opening it, the first new question after that, and deriving the
whole ledger again.

Below that is a line for each form of a published file of as many entries: reading it, beside the time that Python's
json takes for its lines. *ranges* is of that session; many of its counts share a condition. *sets* has counts of random
sets of values of three attributes, hardly two of which are alike. *told* has the counts of tables that a session which
learns has told, a line for each. The others are asked one by one, so that every other line or so is an intent: *counts*
under three conditions, *means* and *tables* of 20 groups under two, and *ties*, counts of (A and B) or (C and D).

Times are of the processor, the best of three; *clock* is the first reading of such a file by the clock, in a new
process, with all that it has still to import.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit
from tacit.model.query import Query
from tacit.session import Session

ROUNDS, BATCH = 3, 1_000
CITIES, AGES = 500, 500  # (cities + 1) choose 2 times ages: enough questions
DOMAIN = tacit.Domain({"city": tacit.integer(0, CITIES - 1), "age": tacit.integer(0, AGES - 1)})
SIZES = {"a": 20, "b": 30, "c": 12, "d": 8}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS), metavar="FORM")
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}")
    for entries in options.entries:
        with tempfile.TemporaryDirectory() as folder:
            for form in options.forms:
                _apart(FORMS[form], Path(folder), entries)
                if form == "ranges":
                    _print_ledger(Path(folder), entries)
                if form == options.forms[0]:
                    print(f"{'form':>9}{'lines':>9}{'MB':>7}{'read s':>9}{'json s':>9}{'ratio':>7}{'clock s':>9}")
                file = Path(folder) / f"{form}.jsonl"
                read, plain, clock = (_apart(step, file, entries) for step in (reading, plainly, first_reading))
                lines, size = sum(1 for _ in file.open()), file.stat().st_size / 1e6
                print(
                    f"{form:>9}{lines:>9,}{size:>7.1f}{read:>9.2f}{plain:>9.2f}{read / plain:>7.2f}{clock:>9.2f}",
                    flush=True,
                )


def _print_ledger(here: Path, entries: int) -> None:
    taken = [_apart(step, here, entries) for step in (opening, first, verifying)]
    size = (here / "people.tacit").stat().st_size / 1e6
    print(f"{'entries':>9}{'open s':>9}{'first s':>9}{'verify s':>10}{'ledger MB':>11}")
    print(f"{entries:>9,}{taken[0]:>9.2f}{taken[1]:>9.3f}{taken[2]:>10.2f}{size:>11.1f}", flush=True)


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
        tacit.publish(session, here / "ranges.jsonl")
    return 0.0


def made_of_sets(here: Path, entries: int) -> float:
    rng = np.random.default_rng(2)
    terms = _few_values(here / "sets.tacit")

    def some(name: str) -> Query:
        return Query.among(terms["domain"], name, _values(rng, name))

    with tacit.open(mechanism="direct", questions=entries + 100, **terms) as session:
        for start in range(0, entries, BATCH):
            many = min(BATCH, entries - start)
            session.ask_many([Query.all(map(some, "abc")) for _ in range(many)])
        tacit.publish(session, here / "sets.jsonl")
    return 0.0


def made_by_telling(here: Path, entries: int) -> float:
    """Without a certificate, since what is certified leaves no line."""
    rng = np.random.default_rng(3)
    terms = _few_values(here / "told.tacit")
    with tacit.open(mechanism="iterative", warm=0.7, certify=0, questions=2 * entries, **terms) as session:
        session.start()
        while session.entries < entries:
            by, other = rng.choice(list("abc"), 2, replace=False)
            session.ask(f"SELECT {by}, COUNT(*) FROM data WHERE {_some(rng, other)} GROUP BY {by}")
        tacit.publish(session, here / "told.jsonl")
    return 0.0


def made_one_by_one(form: str, sentence: str, here: Path, entries: int) -> float:
    """A file of questions in this form; what stands for an attribute in braces is a random set of its values."""
    rng = np.random.default_rng(4)
    with tacit.open(mechanism="direct", questions=2 * entries, **_few_values(here / f"{form}.tacit")) as session:
        while session.entries < entries:
            session.ask(re.sub(r"\{(.)\}", lambda found: _some(rng, found[1]), sentence))
        tacit.publish(session, here / f"{form}.jsonl")
    return 0.0


FORMS: dict[str, Callable[[Path, int], float]] = {
    "ranges": made,
    "sets": made_of_sets,
    "told": made_by_telling,
} | {
    form: partial(made_one_by_one, form, f"SELECT {sentence}")
    for form, sentence in {
        "counts": "COUNT(*) FROM data WHERE {a} AND {b} AND {c}",
        "means": "AVG(a) FROM data WHERE {b} AND {c}",
        "tables": "a, COUNT(*) FROM data WHERE {b} AND {c} GROUP BY a",
        "ties": "COUNT(*) FROM data WHERE {a} AND {c} OR {b} AND {d}",
    }.items()
}


def _values(rng: np.random.Generator, name: str) -> list[int]:
    return sorted(rng.choice(SIZES[name], rng.integers(1, SIZES[name]), replace=False).tolist())


def _some(rng: np.random.Generator, name: str) -> str:
    return f"{name} IN ({', '.join(map(str, _values(rng, name)))})"


def _few_values(ledger: Path) -> dict[str, Any]:
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
