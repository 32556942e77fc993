"""A public prior: errors of a warm start on one half of a table, with and without tables that it is drawn to.

    python -m benchmarks.bench_prior [RUNS]

A start buys its release with the whole budget. What it is drawn to: nothing; the other half of the table; a published
file of the other half (a start for epsilon = 1); two per cent of the table; and a half that misleads, because the
values of every attribute have changed places. All of them fit the same releases.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.tables import SEED, codes
from tacit.exact.price import total
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.owner.opening import doors
from tacit.release.hypothesis.prior import Prior
from tacit.release.public import Public
from tacit.release.warm_start import fit_all, warm_start
from tacit.store.anchor import Anchor
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

QUESTIONS, EPSILON, DELTA = 5_000, (0.1, 0.3, 1.0), 1e-9
Columns = list[NDArray[np.integer]]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name in ("adult", "adult14"):
        try:
            table = TABLES[name]()
        except FileNotFoundError as missing:
            print(f"{name}: skipped, as it is not here ({missing})")
            continue
        compare(table.domain, list(codes(table.records).values()), runs, table.name)


def compare(domain: Domain, columns: Columns, runs: int, name: str) -> None:
    rng = np.random.Generator(np.random.PCG64(SEED))
    order = rng.permutation(len(columns[0]))
    mine, theirs = ([column[some] for column in columns] for some in np.array_split(order, 2))
    records = counted(domain, mine)
    queries = conjunctions(domain, QUESTIONS, np.random.default_rng(SEED))
    truth = np.array([records.answer(query) for query in queries]) / records.rows
    with started(counted(domain, theirs), Budget(epsilon=1.0, delta=DELTA)) as (public, curator):
        released = warm_start(public, curator, loss=public.total).hypothesis.draw(len(theirs[0]), rng)
    priors = {
        "no prior": None,
        "the other half": prior(domain, theirs),
        "the other half, published": prior(domain, released),
        "2 % of the table": prior(
            domain, [column[rng.permutation(len(order))[: len(order) // 50]] for column in columns]
        ),
        "misleading": prior(domain, [rng.permutation(domain[n].size)[c] for n, c in zip(domain, theirs, strict=True)]),
    }
    print(f"{name}: {records.rows:,} rows of {len(order):,}; {QUESTIONS:,} conjunctions of 1 to 3 of {len(domain)}")
    print(f"attributes; mean errors in ten-thousandths of n, of {runs} runs, with their spread.")
    print(f"{'drawn to':<28}" + "".join(f"{f'epsilon {epsilon:g}':>17}" for epsilon in EPSILON))
    errors = {key: [[] for _ in EPSILON] for key in priors}
    for place, epsilon in enumerate(EPSILON):
        for _ in range(runs):
            with started(records, Budget(epsilon=epsilon, delta=DELTA)) as (public, curator):
                measured = warm_start(public, curator, loss=public.total).measured
            for key, one in priors.items():
                found = fit_all(domain, measured, records.rows, prior=one).hypothesis.answer_many(queries)
                errors[key][place].append(1e4 * float(np.abs(found - truth).mean()))
    for key, by_epsilon in errors.items():
        cells = "".join(f"{f'{np.mean(some):.1f} ({np.std(some):.1f})':>17}" for some in by_epsilon)
        print(f"{key:<28}{cells}", flush=True)


def counted(domain: Domain, columns: Columns) -> Records:
    cells, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    return Records(domain, list(cells.astype(np.uint8)), counts)


def prior(domain: Domain, columns: Columns) -> Prior:
    cells, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    return Prior.of(domain.names, list(cells), counts)


@contextmanager
def started(records: Records, budget: Budget, beside: float = 0.0) -> Iterator[tuple[Public, Curator]]:
    """A ledger that can pay for the budget, and for a part of it more."""
    whole = Loss(total(budget).measure, int(total(budget).atoms * (1 + beside)))
    with tempfile.TemporaryDirectory() as name:
        anchor = Anchor(Path(name) / "anchors.sqlite")
        terms = {"budget": budget, "total": whole, "binding": {}, "anchor": anchor}
        with Ledger.open(Path(name) / "l.tacit", make="new", **terms) as ledger:
            yield doors(records, ledger)


if __name__ == "__main__":
    main()
