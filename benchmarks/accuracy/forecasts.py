"""What `tacit.plan` foretells of a warm start, beside what happens. For `bench_accuracy --forecast` and its tests.

Errors are those of 3,000 conjunctions of one to three attributes, each met by a random set of values, which is what a
forecast is about, in ten-thousandths of n, after a start with the whole budget: their mean, what 95 % of them stay
within, and the largest. A ratio is what was foretold over what happened; one outside 1/1.5 to 1.5 has a mark. `direct
up to` is the number of questions for which fresh noise is as good as the start in the mean, foretold and as it is.

A second line is a start on one half of the rows with the other half as its public prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.tables import SEED, Table, codes
from benchmarks.bench_prior import counted, prior, started
from tacit.exact.price import total
from tacit.model.budget import Budget
from tacit.model.query import Query
from tacit.release.forecast import WarmStarted, direct
from tacit.release.hypothesis.prior import Prior
from tacit.release.warm_start import fit_all, warm_start
from tacit.trusted.records import Records

QUESTIONS = 3_000
WITHIN = 1.5
FIGURES = "mean", "95 %", "largest"
HEADING = (
    f"{'epsilon':>8}  {'prior':>5}"
    + "".join(f" | {figure:>8} {'foretold':>9} {'ratio':>6}" for figure in FIGURES)
    + f" | {'direct up to':>12} {'foretold':>9}"
)

Figures = NDArray[np.float64]


def checked(table: Table, budget: Budget, runs: int) -> Iterator[str]:
    """A line without a prior, and one with the other half of the rows as one."""
    queries = conjunctions(table.domain, QUESTIONS, np.random.default_rng(SEED))
    columns = list(codes(table.records).values())
    order = np.random.default_rng(SEED).permutation(table.rows)
    mine, theirs = ([column[some] for column in columns] for some in np.array_split(order, 2))
    halves = counted(table.domain, mine), prior(table.domain, theirs)
    for records, known in ((table.records, None), halves):
        seen = np.mean([met(records, queries, budget, known) for _ in range(runs)], axis=0)
        yield _line(budget, known is not None, seen, foretold(records, budget, known), records.rows)


def foretold(records: Records, budget: Budget, known: Prior | None = None) -> Figures:
    """The mean, what 95 % stay within, and the largest, as fractions of n."""
    rows = 0 if known is None else known.counts_on(records.domain)
    start, loss = WarmStarted(records.domain, records.rows, budget.measure, prior_rows=rows), total(budget)
    return np.array([start.mean(loss), start.most(loss), start.largest(loss, QUESTIONS)]) / records.rows


def met(records: Records, queries: list[Query], budget: Budget, known: Prior | None = None) -> Figures:
    """The same of one start."""
    with started(records, budget) as (public, curator):
        made = warm_start(public, curator, loss=public.total)
    fitted = made.fitted if known is None else fit_all(records.domain, made.measured, records.rows, prior=known)
    truth = np.array([records.answer(query) for query in queries]) / records.rows
    errors = np.abs(fitted.hypothesis.answer_many(queries) - truth)
    return np.array([errors.mean(), np.quantile(errors, 0.95), errors.max()])


def breaks_even(budget: Budget, rows: float) -> int:
    """For how many questions fresh noise has this mean error, in rows."""
    low, high = 1, 2
    while high < 1e9 and direct(budget, questions=high, confidence=0.95).mean < rows:
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        less = direct(budget, questions=middle, confidence=0.95).mean < rows
        low, high = (middle, high) if less else (low, middle)
    return low


def _line(budget: Budget, known: bool, seen: Figures, said: Figures, rows: int) -> str:
    parts = [
        f" | {1e4 * a:>8.3g} {1e4 * b:>9.3g} {b / a:>5.2f}{' ' if abs(math.log(b / a)) <= math.log(WITHIN) else '*'}"
        for a, b in zip(seen, said, strict=True)
    ]
    word = f"{budget.epsilon:g}" if budget.delta else "pure"
    counts = [f"{breaks_even(budget, rows * float(mean)):,}" for mean in (seen[0], said[0])]
    return f"{word:>8}  {'half' if known else 'none':>5}{''.join(parts)} | {counts[0]:>12} {counts[1]:>9}"
