"""The warm start: seconds, memory and errors of random conjunctions, against what the same budget buys otherwise.

    python -m benchmarks.bench_warm_start [SEEDS]

The table and the questions are those of `bench_accuracy`. A start buys its release from a real curator with the whole
budget, epsilon = 1 and delta = 1e-9, or half of it, on a ledger of its own. Beside it, at the same budget: fresh
Gaussian noise for each question, and all tables of three attributes with Gaussian noise, each question answered from
its own.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy import ways
from benchmarks.accuracy.analysts import conjunctions, stream
from benchmarks.accuracy.tables import MILD, ONE_COUNT, PARTITION, SEED, Table, table
from tacit.exact.price import noise_for, total
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.owner.opening import doors
from tacit.release.warm_start import warm_start
from tacit.store.anchor import Anchor
from tacit.trusted.ledger import Ledger
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records

QUESTIONS = 20_000
MEAN, LARGEST, SECONDS, GIGABYTES = 0.0016, 0.014, 60.0, 2.0  # what the default path and its warm start must keep to


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    of = table()
    name, records, domain = of.name, of.records, of.domain
    queries = conjunctions(domain, QUESTIONS, np.random.default_rng(SEED))
    truth = np.array([records.answer(query) for query in queries])
    print(f"warm start: {name}, {records.rows:,} rows, {domain.size:,} cells, {QUESTIONS:,} conjunctions of 1 to 3 of")
    print(f"{len(domain)} attributes; {MILD}, all of it spent on the tables. Errors are fractions of n.")
    print(f"{'mechanism':<34}{'mean':>9}{'99 %':>9}{'max':>9}{'tables':>8}{'spent':>7}{'seconds':>9}")
    independent(records, truth)
    three_way(records, queries, truth)
    slowest = max(warm(records, queries, truth, share) for share in [1.0] * seeds + [0.5])
    sessions = [default(of, queries, truth) for _ in range(seeds)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  At most {memory:.2f} GB of memory, with the data, the questions and their answers in it.")
    mean, largest = (max(column) for column in zip(*sessions, strict=True))
    kept = mean <= MEAN and largest <= LARGEST and slowest <= SECONDS and memory < GIGABYTES
    print(f"  auto: mean {mean:.5f} (limit {MEAN}), max {largest:.5f} (limit {LARGEST}); warm start {slowest:.1f} s")
    print(f"  (limit {SECONDS:.0f}), {memory:.2f} GB (limit {GIGABYTES:.0f}): {'ok' if kept else 'MISSED'}")


def warm(records: Records, queries: Sequence[Query], truth: NDArray[np.int64], share: float) -> float:
    budget = total(MILD)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger.open(
            folder / "l.tacit",
            make="new",
            budget=MILD,
            total=budget,
            binding={},
            anchor=Anchor(folder / "anchors.sqlite"),
        )
        start = time.perf_counter()
        loss = Loss(budget.measure, int(budget.atoms * share))
        built = warm_start(*doors(records, ledger), loss=loss)
        seconds = time.perf_counter() - start
        spent = ledger.spent.atoms / budget.atoms
        ledger.close()
    errors = np.abs(built.hypothesis.answer_many(queries) - truth / records.rows)
    scopes = sum(len(one.question.scopes) for one in built.measured if isinstance(one.question, Residuals))
    show(f"warm start, {share:.0%} of the budget", errors, f"{scopes:>8}{spent:>7.0%}{seconds:>9.1f}")
    return seconds


def default(of: Table, queries: Sequence[Query], truth: NDArray[np.int64]) -> tuple[float, float]:
    """A session with the default mechanism, ledger and all: its mean and its largest error."""
    start = time.perf_counter()
    with ways.AUTO.open(of, MILD, len(queries)) as session:
        errors = np.abs(stream(queries)(session.answer).answers - truth) / of.rows
    text = f"{'':>8}{'':>7}{time.perf_counter() - start:>9.1f}   {session.hard} hard"
    show("a session, mechanism = auto", errors, text)
    return float(errors.mean()), float(errors.max())


def independent(records: Records, truth: NDArray[np.int64]) -> None:
    noise = noise_for(total(MILD).split(QUESTIONS), ONE_COUNT, unit=1)
    show("fresh Gaussian noise", np.abs(add_noise(np.zeros(len(truth), dtype=np.int64), noise)) / records.rows)


def three_way(records: Records, queries: Sequence[Query], truth: NDArray[np.int64]) -> None:
    """A question about fewer attributes is answered from the smallest table that holds them."""
    start = time.perf_counter()
    domain: Domain = records.domain
    scopes = [tuple(sorted(names)) for names in combinations(domain.names, min(3, len(domain)))]
    noise = noise_for(total(MILD).split(len(scopes)), PARTITION, unit=1)
    tables = {scope: add_noise(records.table(scope).ravel(), noise) for scope in scopes}
    sizes = {scope: math.prod(domain[name].size for name in scope) for scope in scopes}
    found = []
    for query in queries:
        scope = min((s for s in scopes if set(query.scope) <= set(s)), key=lambda s: sizes[s])
        shape = tuple(domain[name].size for name in scope)
        found.append(int((query.table(scope, shape).ravel() * tables[scope]).sum()))
    seconds = time.perf_counter() - start
    text = f"{len(scopes):>8}{1:>7.0%}{seconds:>9.1f}"
    show("all 3-way tables, Gaussian noise", np.abs(np.array(found) - truth) / records.rows, text)


def show(mechanism: str, errors: NDArray[np.float64], text: str = "") -> None:
    shares = errors.mean(), np.quantile(errors, 0.99), errors.max()
    print(f"{mechanism:<34}" + "".join(f"{share:9.5f}" for share in shares) + text, flush=True)


if __name__ == "__main__":
    main()
