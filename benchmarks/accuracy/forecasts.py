"""What is foretold of a warm start, before it and after it, beside what happens. For `bench_accuracy --forecast`.

Errors are those of 3,000 conjunctions of one to three attributes, each met by a random set of values, which is what a
plan is about, in ten-thousandths of n, after a start with the whole budget: their mean, what 95 % of them stay within,
and the largest. `plan` is what `tacit.plan` foretells of them from public sizes.

`listed` are the same errors of questions like those that are certified, and `start` is what is foretold of them once
the start is bought, from what it and its certificate have released: `tacit.release.prospect`. These have ranges of
attributes with an order, and up to four attributes where these are few. The certificate costs 27 % of what the start
does, on top of it, which is about what plans give it.

A ratio is what was foretold over what happened; one outside 1/1.5 to 1.5 has a mark. `direct up to` is the number of
questions for which fresh noise is as good as the start in the mean, foretold by the plan and as it is.

A second line is a start on one half of the rows with the other half as its public prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.tables import SEED, Table, codes
from benchmarks.bench_prior import counted, prior, started
from tacit.exact.price import total
from tacit.model.budget import Budget, Loss
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.release.base import certify
from tacit.release.classes import sample
from tacit.release.forecast import WarmStarted, direct
from tacit.release.hypothesis.prior import Prior
from tacit.release.prospect import Errors
from tacit.release.warm_start import fit_all, warm_start
from tacit.trusted.records import Records

QUESTIONS = 3_000
WITHIN = 1.5
CERTIFY = 0.27  # of what a start costs
FIGURES = "mean", "95 %", "largest"
HEADING = (
    f"{'epsilon':>8}  {'prior':>5}"
    + "".join(f" | {figure:>8} {'plan':>7} {'ratio':>6} {'listed':>7} {'start':>7} {'ratio':>6}" for figure in FIGURES)
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
        seen, listed, after = np.mean([met(records, queries, budget, known) for _ in range(runs)], axis=0)
        said = foretold(records, budget, known)
        yield _line(budget, known is not None, (seen, said, listed, after), records.rows)


def foretold(records: Records, budget: Budget, known: Prior | None = None) -> Figures:
    """The mean, what 95 % stay within, and the largest, as fractions of n."""
    rows = 0 if known is None else known.counts_on(records.domain)
    start, loss = WarmStarted(records.domain, records.rows, budget.measure, prior_rows=rows), total(budget)
    return np.array([start.mean(loss), start.most(loss), start.largest(loss, QUESTIONS)]) / records.rows


def met(records: Records, queries: list[Query], budget: Budget, known: Prior | None = None) -> Figures:
    """The same of one start, of questions like those that are certified, and as it is foretold of these."""
    domain, rows, loss = records.domain, records.rows, total(budget)
    with started(records, budget, beside=CERTIFY) as (public, curator):
        start = warm_start(public, curator, loss=loss)
        if known is not None:
            start = replace(start, fitted=fit_all(domain, start.measured, rows, prior=known), prior=known)
        base = certify(public, curator, start, Loss(loss.measure, int(loss.atoms * CERTIFY)), 0.95)
    assert base is not None
    assert base.prospect is not None
    after = base.prospect.expects(QUESTIONS, base.share.seen, None if base.largest is None else base.largest.seen)
    errors = np.abs(start.hypothesis.answer_many(queries) * rows - [records.answer(query) for query in queries])
    seen = [errors.mean(), np.quantile(errors, 0.95), errors.max()]
    columns = codes(records)
    gaps = []
    for one in sample(domain, start.hypothesis, rows, base.share.certificate.attributes):
        table = np.zeros(one.guess.shape, dtype=np.int64)
        np.add.at(table, tuple(columns[name] for name in one.names), GRID)
        gaps.append(np.abs(one.sums(table) - one.sums(one.guess)) / GRID)
    listed = Errors.of(np.concatenate(gaps))
    return np.array([seen, [listed.mean, listed.most, listed.largest_of(QUESTIONS)], after]) / rows


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


def _line(budget: Budget, known: bool, figures: tuple[Figures, ...], rows: int) -> str:
    parts = [
        f" | {1e4 * a:>8.3g} {1e4 * b:>7.3g} {_ratio(b / a)} {1e4 * c:>7.3g} {1e4 * d:>7.3g} {_ratio(d / c)}"
        for a, b, c, d in zip(*figures, strict=True)
    ]
    word = f"{budget.epsilon:g}" if budget.delta else "pure"
    counts = [f"{breaks_even(budget, rows * float(figures[i][0])):,}" for i in (0, 1)]
    return f"{word:>8}  {'half' if known else 'none':>5}{''.join(parts)} | {counts[0]:>12} {counts[1]:>9}"


def _ratio(ratio: float) -> str:
    return f"{ratio:>5.2f}{' ' if abs(math.log(ratio)) <= math.log(WITHIN) else '*'}"
