"""Accuracy: random conjunctions over a real table, online and by the median, against fresh noise and a histogram.

    python -m benchmarks.bench_accuracy

The table is Adult where it has been put beside the repository (`../shared/data/adult/adult.csv`, as small integer
codes), with 8 attributes and 3.4 million cells; otherwise the demonstration table. A question is a conjunction of
conditions on one to three attributes, each met by a random set of its values.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import tacit
from tacit import demo
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.opening import open_session
from tacit.session import MAX_BATCH
from tacit.trusted.loss import Sensitivity, noise_for, total
from tacit.trusted.noise import Noise, add_noise
from tacit.trusted.records import Records

MILD, PURE = Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=1.0, delta=0.0)
QUESTIONS = (1_000, 10_000, 100_000)
ONLINE: dict[str, dict[str, Any]] = {
    "online, warm start": {"mechanism": "iterative", "warm": 0.8, "hits": 10},
    "online, uniform start": {"mechanism": "iterative", "hits": 200},
    "median, 200 databases": {"mechanism": "median", "hits": 200},
}
SEED = 1
DRAW = 2**17  # numbers drawn between two steps of the progress bar
ONE_COUNT, PARTITION = Sensitivity(1, 1), Sensitivity(2, 2)

ADULT = Path(__file__).parents[1] / "../shared/data/adult/adult.csv"
ADULT_DOMAIN = Domain(
    {
        "age": tacit.integer(0, 84, width=5),
        "workclass": tacit.integer(0, 8),
        "education": tacit.integer(0, 15),
        "marital": tacit.integer(0, 6),
        "race": tacit.integer(0, 4),
        "sex": tacit.integer(0, 1),
        "hours": tacit.integer(0, 99, width=10),
        "income": tacit.integer(0, 1),
    }
)
ADULT_VIEW = """
    SELECT age, workclass, "education-num" AS education, "marital-status" AS marital, race, sex,
           "hours-per-week" AS hours, "income>50K" AS income
    FROM read_csv('{path}')
"""


@dataclass(frozen=True)
class Row:
    """One mechanism on one number of questions; errors as fractions of n."""

    mechanism: str
    questions: int
    errors: NDArray[np.float64]
    hard: int | None
    seconds: float

    def __str__(self) -> str:
        shares = (self.errors.max(), np.quantile(self.errors, 0.99), self.errors.mean())
        hard = "" if self.hard is None else f"{self.hard:,}"
        figures = "".join(f"{share:9.4f}" for share in shares)
        return f"{self.questions:>9,}  {self.mechanism:<26}{figures}{hard:>6}{self.seconds:>9.1f}"


def main() -> None:
    rows: list[Row] = []
    with _data() as (name, data, domain), _progress() as progress:
        records = Records.load(data, domain)
        everything = conjunctions(domain, max(QUESTIONS), np.random.default_rng(SEED))
        n = records.rows
        answers = np.array([records.answer(query) for query in progress.track(everything, description="true answers")])
        cells, drawing = noisy_histogram(records, progress)
        task = progress.add_task("mechanisms", total=len(ONLINE) * sum(QUESTIONS))
        for k in QUESTIONS:
            queries, truth = everything[:k], answers[:k]
            for words, options in ONLINE.items():
                rows.append(online(words, options, data, domain, queries, truth, partial(progress.advance, task)))
            for law, budget in (("Laplace, pure", PURE), ("Gaussian", MILD)):
                rows.append(direct(f"fresh {law}", budget, k, n))
            rows.append(histogram(records, cells, queries, truth, drawing))
    print(f"accuracy: {name}, {n:,} rows, {domain.size:,} cells; epsilon = 1, delta = 1e-9 (pure: delta = 0)")
    print(f"{'questions':>9}  {'mechanism':<26}{'max':>9}{'99 %':>9}{'mean':>9}{'hard':>6}{'seconds':>9}")
    for row in rows:
        print(row)
    print(
        "  Errors are fractions of n. hard: answers that were bought. The others' noise is drawn\n"
        "  in one vector, exactly as the budget buys it, without a ledger; the histogram's once, for all.",
    )


def conjunctions(domain: Domain, count: int, rng: np.random.Generator) -> list[Query]:
    """Conditions on one to three attributes, each met by a random set of values, neither none of them nor all."""
    made = []
    for _ in range(count):
        names = [domain.names[i] for i in rng.choice(len(domain), size=rng.integers(1, 4), replace=False)]
        sizes = [domain[name].size for name in names]
        values = [rng.choice(size, size=rng.integers(1, size), replace=False) for size in sizes]
        parts = [Query.among(domain, name, chosen) for name, chosen in zip(names, values, strict=True)]
        made.append(Query.all(parts))
    return made


def online(
    name: str,
    options: dict[str, Any],
    data: str,
    domain: Domain,
    queries: Sequence[Query],
    truth: NDArray[np.int64],
    advance: Callable[[int], None],
) -> Row:
    """The session itself, ledger included."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with open_session(
            data=data,
            domain=domain,
            budget=MILD,
            ledger=folder / "accuracy.tacit",
            anchor=folder / "anchors.sqlite",
            questions=len(queries),
            **options,
        ) as session:
            answers = []
            for first in range(0, len(queries), MAX_BATCH // 10):
                batch = queries[first : first + MAX_BATCH // 10]
                answers += session.ask_many(batch)
                advance(len(batch))
    seconds = time.perf_counter() - start
    hard = sum(answer.source == "measured" for answer in answers)
    errors = np.abs(np.array([answer.value for answer in answers]) - truth) / session.rows
    return Row(name, len(queries), errors, hard, seconds)


def direct(name: str, budget: Budget, k: int, n: int) -> Row:
    """Fresh noise for every question: the error is the noise."""
    start = time.perf_counter()
    noise = noise_for(total(budget).split(k), ONE_COUNT, unit=1)
    errors = np.abs(add_noise(np.zeros(k, dtype=np.int64), noise)) / n
    return Row(name, k, errors, None, time.perf_counter() - start)


def noisy_histogram(records: Records, progress: Progress) -> tuple[NDArray[np.int64], float]:
    """Every cell of the domain with noise, for the whole budget, and the seconds that it took."""
    start = time.perf_counter()
    noise: Noise = noise_for(total(MILD), PARTITION, unit=1)
    cells = records.table(records.domain.names).ravel()
    parts = np.split(cells, range(DRAW, cells.size, DRAW))
    drawn = [add_noise(part, noise) for part in progress.track(parts, description="histogram")]
    return np.concatenate(drawn).reshape(records.domain.shape), time.perf_counter() - start


def histogram(
    records: Records, cells: NDArray[np.int64], queries: Sequence[Query], truth: NDArray[np.int64], drawing: float
) -> Row:
    """Sums over the noisy cells, which are taken from the marginal of the question's attributes."""
    start = time.perf_counter()
    names = records.domain.names
    marginals: dict[tuple[str, ...], NDArray[np.int64]] = {}
    answers = []
    for query in queries:
        scope = query.scope
        if scope not in marginals:
            others = tuple(axis for axis, name in enumerate(names) if name not in scope)
            order = [name for name in names if name in scope]
            marginals[scope] = cells.sum(axis=others).transpose([order.index(name) for name in scope])
        marginal = marginals[scope]
        answers.append(int((marginal * query.table(scope, marginal.shape)).sum()))
    errors = np.abs(np.array(answers) - truth) / records.rows
    return Row("noisy histogram, Gaussian", len(queries), errors, None, time.perf_counter() - start + drawing)


@contextmanager
def _data() -> Iterator[tuple[str, str, Domain]]:
    """The name of the table, the query that reads it, and its domain."""
    if ADULT.exists():
        yield "Adult", ADULT_VIEW.format(path=str(ADULT.resolve()).replace("'", "''")), ADULT_DOMAIN
        return
    with as_file(files("tacit.demo") / "randhie.csv.gz") as path:
        yield "the demonstration table", demo.view(path), demo.DOMAIN


def _progress() -> Progress:
    columns = TextColumn("{task.description:<14}"), BarColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(stderr=True), transient=True)


if __name__ == "__main__":
    main()
