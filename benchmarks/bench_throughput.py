"""Throughput: easy questions per second in one session, ledger and all, against numpy on the very same array.

    python -m benchmarks.bench_throughput [--quick] [--million]

The table is that of `bench_accuracy`: Adult where it lies beside the repository, made-up rows of the same shape
otherwise. The questions are random conjunctions of one to three attributes, none asked before. numpy answers the same
questions from the same hypothesis, with no ledger, no gate and no error bars: in a plain loop over the cells, and in a
loop over marginals that it has already. `--million` asks 10^6 questions in batches of 10,000.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.tables import MILD, SEED, Table, table
from tacit.model.answer import Answer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.owner.opening import open_session
from tacit.release.iterative import Weights
from tacit.session import Session

BATCH, BATCHES = 10_000, 3
SINGLE, SAMPLED = 100, 100  # questions asked one by one; questions that numpy answers from the cells
THREADS = 4
MILLION, REPORTED = 10**6, 100_000
Array = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    of = table()
    if options.million:
        million(of, MILLION // 10 if options.quick else MILLION)
        return
    batch = 1_000 if options.quick else BATCH
    fresh = Fresh(of.domain)
    with opened(of, MILLION) as session:
        session.ask_many(fresh.take(SINGLE))  # pays for the start
        batches = [timed(session, fresh.take(batch)) for _ in range(BATCHES)]
        queries, wall, busy, answers = min(batches, key=lambda one: one[1])
        single = [timed(session, [query])[1] for query in fresh.take(SINGLE)]
        together = threads(session, fresh, batch)
        assert isinstance(session.knowledge, Weights)
        cells = session.knowledge.hypothesis.marginal(of.domain.names)
    slow, slow_values = loop(lambda query: from_cells(query, cells, of.domain), queries[:SAMPLED])
    marginals = all_marginals(queries, cells, of.domain)
    quick, quick_values = loop(lambda query: from_marginal(query, marginals), queries)
    for some in (slow_values, quick_values):  # the same questions of the same array, or the ratio would mean nothing
        assert np.abs(some * of.rows - [answer.value for answer in answers[: len(some)]]).max() < 1
    print(f"{of.name}, {of.rows:,} rows, {of.domain.size:,} cells; load average {os.getloadavg()[0]:.1f}")
    print(f"{'easy conjunctions, never asked before':<46}{'µs each':>10}{'ratio':>8}")
    each = wall / batch
    rows = [
        (f"session, best of {BATCHES} batches of {batch:,}: {wall:.2f} s", each),
        (f"  of which the processor was busy: {busy:.2f} s", busy / batch),
        (f"session, {THREADS} threads with a {THREADS}th of that each", together),
        ("session, one by one (median)", float(np.median(single))),
        ("numpy, a loop over marginals made before", quick),
        (f"numpy, a loop over the cells ({len(slow_values)} of them)", slow),
    ]
    for words, seconds in rows:
        print(f"{words:<46}{seconds * 1e6:>10,.0f}{seconds / each:>8.2f}")


def million(of: Table, count: int) -> None:
    """Many questions in one session: seconds, errors of the first and the last of them, and memory."""
    rng = np.random.default_rng(SEED)
    errors, seconds, hard, file = np.empty(count), np.empty(count // BATCH), 0, 0.0
    with opened(of, count) as session:
        for number in range(len(seconds)):
            queries = conjunctions(of.domain, BATCH, rng)
            _, seconds[number], _, answers = timed(session, queries)
            truth = np.array([of.records.answer(query) for query in queries])
            errors[number * BATCH : (number + 1) * BATCH] = [answer.value for answer in answers] - truth
            hard += sum(answer.source == "measured" for answer in answers)
            show = number % 10 == 9
            if show:
                print(f"{(number + 1) * BATCH:>9,} questions, {seconds[: number + 1].sum():7.1f} s", file=sys.stderr)
        file = session._ledger.path.stat().st_size / 1e6
    off, part = np.abs(errors) / of.rows, min(REPORTED, count // 2)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{of.name}, {of.rows:,} rows, {of.domain.size:,} cells; load average {os.getloadavg()[0]:.1f}")
    print(
        f"{count:,} conjunctions in batches of {BATCH:,}: {seconds.sum():.0f} s, {count / seconds.sum():,.0f} a second;"
    )
    print(f"{hard} hard; {memory:.1f} GB of memory at most; a ledger of {file:,.0f} MB")
    print(f"{'':<16}{'mean error':>12}{'largest':>10}{'a second':>12}")
    for words, some, batches in (
        (f"first {part:,}", slice(0, part), slice(0, part // BATCH)),
        (f"last {part:,}", slice(-part, None), slice(-(part // BATCH), None)),
    ):
        pace = part / seconds[batches].sum()
        print(f"{words:<16}{off[some].mean():>12.4f}{off[some].max():>10.4f}{pace:>12,.0f}")


class Fresh:
    """Random conjunctions of which no two are one question."""

    def __init__(self, domain: Domain) -> None:
        self._domain, self._rng, self._seen = domain, np.random.default_rng(SEED), set[str]()

    def take(self, count: int) -> list[Query]:
        taken: list[Query] = []
        while len(taken) < count:
            for query in conjunctions(self._domain, count - len(taken), self._rng):
                if query.core.key not in self._seen:
                    self._seen.add(query.core.key)
                    taken.append(query)
        return taken


@contextmanager
def opened(of: Table, questions: int) -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as folder:
        files = {"ledger": Path(folder) / "throughput.tacit", "anchor": Path(folder) / "anchors.sqlite"}
        options = {"mechanism": "iterative", "warm": 0.8, "hits": 10, "questions": questions}
        with open_session(start=True, data=of.data, domain=of.domain, budget=MILD, **files, **options) as session:  # type: ignore[arg-type]
            yield session


def timed(session: Session, queries: list[Query]) -> tuple[list[Query], float, float, list[Answer]]:
    """The questions, seconds by the clock and of the processor, and the answers."""
    wall, busy = time.perf_counter(), time.process_time()
    answers = session.ask_many(queries)
    return queries, time.perf_counter() - wall, time.process_time() - busy, answers


def threads(session: Session, fresh: Fresh, batch: int) -> float:
    """Seconds per question where several threads ask at once."""
    parts = [fresh.take(batch // THREADS) for _ in range(THREADS)]
    workers = [threading.Thread(target=session.ask_many, args=(part,)) for part in parts]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return (time.perf_counter() - start) / sum(map(len, parts))


def loop(answer: Callable[[Query], float], queries: Sequence[Query]) -> tuple[float, Array]:
    """Seconds per question, and the answers."""
    start = time.perf_counter()
    values = [answer(query) for query in queries]
    return (time.perf_counter() - start) / len(queries), np.array(values)


def from_cells(query: Query, cells: Array, domain: Domain) -> float:
    chosen = {factor.scope[0]: np.flatnonzero(factor.weights) for factor in query.factors}
    places = [chosen.get(name, np.arange(size)) for name, size in zip(domain.names, domain.shape, strict=True)]
    value = float(cells[np.ix_(*places)].sum())
    return 1 - value if query.complement else value


def all_marginals(queries: Sequence[Query], cells: Array, domain: Domain) -> dict[tuple[str, ...], Array]:
    made: dict[tuple[str, ...], Array] = {}
    for scope in {query.scope for query in queries}:
        kept = [name for name in domain.names if name in scope]
        sums = cells.sum(axis=tuple(axis for axis, name in enumerate(domain.names) if name not in scope))
        made[scope] = sums.transpose([kept.index(name) for name in scope])
    return made


def from_marginal(query: Query, marginals: dict[tuple[str, ...], Array]) -> float:
    value = float(marginals[query.scope][np.ix_(*(np.flatnonzero(factor.weights) for factor in query.factors))].sum())
    return 1 - value if query.complement else value


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_throughput", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--million", action="store_true", help="10^6 questions in one session: some minutes")
    return parser.parse_args([] if arguments is None else arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
