"""How fast the median mechanism's databases are sampled: `python -m benchmarks.bench_median_sampler`.

Tables are drawn from a mixture of eight classes; conjunctions that the databases get wrong become slabs, one after the
other, as in the mechanism. Then:

- restrict: one more answer, with the repair, 20 sweeps and the diagnostics;
- values: one conjunction of three attributes on all databases;
- effective samples a second, of a probe's value while stirring: N databases for every integrated autocorrelation time.
  With rho the correlation, over databases, of values LAG sweeps apart, that time is LAG (1 + rho) / (1 - rho) sweeps,
  which is on the safe side of the usual estimate from every sweep. The median probe's, and the worst one's.

Seconds are processor seconds, of all threads together: what a busy machine does not change. The sweeps are
shared out to all processors. Last come the answers of a whole session, by the clock.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.model.attribute import category
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.owner.opening import open_session
from tacit.release.samplers.databases import Ensemble
from tacit.release.samplers.diagnostics import probes

DATABASES, RECORDS, ROWS, LAG, ROUNDS = 200, 1_000, 20_000, 10, 4


@dataclass(frozen=True)
class Case:
    attributes: int
    slabs: int
    width: float

    @property
    def domain(self) -> Domain:
        values = [f"v{v}" for v in range(10)]
        return Domain({f"a{i:02}": category(values) for i in range(self.attributes)})


CASES = (Case(6, 50, 0.005), Case(12, 100, 0.005))


def table(domain: Domain, rows: int) -> Ensemble:
    """One large database from a mixture of eight classes: the truth."""
    generator = np.random.Generator(np.random.PCG64(1))
    classes = generator.integers(8, size=rows)
    columns = []
    for size in domain.shape:
        cumulative = generator.dirichlet(np.full(size, 0.5), size=8).cumsum(axis=1)
        columns.append((generator.random(rows)[:, None] > cumulative[classes]).sum(axis=1).clip(max=size - 1))
    return Ensemble(domain, np.array(columns, dtype=np.uint8)[None])


def conjunctions(domain: Domain) -> Iterator[Query]:
    generator = np.random.Generator(np.random.PCG64(2))
    while True:
        names = generator.permutation(domain.names)[: generator.integers(1, 4)]
        yield Query.all(Query.among(domain, name, [int(generator.integers(domain[name].size))]) for name in names)


def broad_conjunctions(domain: Domain) -> Iterator[Query]:
    generator = np.random.Generator(np.random.PCG64(3))
    while True:
        names = generator.permutation(domain.names)[: generator.integers(1, 4)]
        yield Query.all(Query.among(domain, name, generator.permutation(10)[:5]) for name in names)


def taught(case: Case) -> tuple[Ensemble, Ensemble, Iterator[Query]]:
    """Databases within `slabs` answers to hard questions, the truth, and questions to go on with."""
    truth = table(case.domain, ROWS)
    ensemble = Ensemble.start(case.domain, databases=DATABASES, records=RECORDS, seed=1)
    questions = conjunctions(case.domain)
    while len(ensemble.slabs) < case.slabs:
        ensemble = _learn(ensemble, truth, questions, case.width)
    return ensemble, truth, questions


def _learn(ensemble: Ensemble, truth: Ensemble, questions: Iterator[Query], width: float) -> Ensemble:
    """Asks until a question is hard, and restricts the databases to its answer."""
    for query in questions:
        answer = float(truth.values(query)[0])
        if np.exp(-np.abs(ensemble.values(query) - answer) / (2 * width)).mean() < 0.5:
            return ensemble.restrict(query.core, 1 - answer if query.complement else answer, width, seed=2)
    raise AssertionError


def seconds(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def effective(ensemble: Ensemble) -> tuple[NDArray[np.float64], float]:
    """Effective samples a second of each probe, and the seconds of a sweep."""
    asked = probes(ensemble.domain, sorted({name for slab in ensemble.slabs for name in slab.query.scope}))
    values, spent = [ensemble.values_many(asked)], 0.0
    for seed in range(ROUNDS):
        begin = time.process_time()
        ensemble = ensemble.stir(seed=seed, sweeps=LAG)
        spent += time.process_time() - begin
        values.append(ensemble.values_many(asked))
    a, b = np.array(values[:-1]), np.array(values[1:])
    a, b = a - a.mean(axis=2, keepdims=True), b - b.mean(axis=2, keepdims=True)
    rho = (a * b).sum(axis=(0, 2)) / np.sqrt((a**2).sum(axis=(0, 2)) * (b**2).sum(axis=(0, 2)))
    rho = rho.clip(0, 0.999)
    sweep = spent / ROUNDS / LAG
    return len(ensemble) / (LAG * (1 + rho) / (1 - rho) * sweep), sweep


def databases() -> None:
    """The rows of the sampler of databases."""
    print(f"{DATABASES} databases of {RECORDS:,} records; {len(os.sched_getaffinity(0))} processors")
    print("   |X| slabs  restrict   values    sweep  effective/s  worst  infeasible  mixed")
    for case in CASES:
        ensemble, truth, questions = taught(case)
        query = next(query for query in questions if len(query.scope) == 3)
        learn = seconds(lambda: _learn(ensemble, truth, questions, case.width))  # noqa: B023
        look = min(seconds(lambda: ensemble.values(query)) for _ in range(50))  # noqa: B023
        rates, sweep = effective(ensemble)
        found = ensemble.diagnostics
        assert found is not None
        size = f"10^{case.attributes}"
        print(
            f"{size:>6} {case.slabs:>5} {learn:>7.2f} s "
            f"{look * 1e3:>5.2f} ms {sweep * 1e3:>5.1f} ms "
            f"{np.median(rates):>12.0f} {rates.min():>6.0f} {found.infeasible:>11} {found.mixed!s:>6}",
            flush=True,
        )


def answers(case: Case, hard_before: int) -> None:
    """Answers of a session, ledger and all, as an analyst waits for them."""
    truth = table(case.domain, 10 * ROWS)
    names = case.domain.names
    rows = pa.table({name: np.array([f"v{v}" for v in range(10)])[truth.column(name)[0]] for name in names})
    taken: dict[str, list[float]] = {"hypothesis": [], "measured": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        open_session(
            data=rows,
            domain=case.domain,
            budget=Budget(epsilon=20.0, delta=1e-9),
            ledger=Path(folder) / "l.tacit",
            anchor=Path(folder) / "a.sqlite",
            mechanism="median",
            warm=0,
            questions=10_000,
            hits=4 * hard_before,
            databases=DATABASES,
            records=RECORDS,
        ) as session,
    ):
        for query in broad_conjunctions(case.domain):
            begin = time.perf_counter()
            answer = session.ask_many([query])[0]
            if answer.source in taken:
                taken[answer.source].append(time.perf_counter() - begin)
            if len(taken["measured"]) >= hard_before + 10 or len(taken["hypothesis"]) > 5_000:
                break
    easy, hard = (np.array(taken[source][-50 if source == "hypothesis" else -10 :]) for source in taken)
    print(
        f"a session on 10^{case.attributes} cells after {len(taken['measured'])} hard answers, one question at a time, "
        f"by the clock:\n  easy answer {np.median(easy) * 1e3:.1f} ms (worst {easy.max() * 1e3:.1f}), "
        f"hard answer {np.median(hard):.2f} s (worst {hard.max():.2f})"
    )


def main() -> None:
    databases()
    answers(CASES[0], 50)


if __name__ == "__main__":
    main()
