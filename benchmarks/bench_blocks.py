"""Blocks: a year of months, each with the whole budget, against one ledger at the end, fresh noise, and no prior.

    python -m benchmarks.bench_blocks [year | growth | turbo] [BLOCKS]

*year*: the rows of Adult in random order, cut into twelve months. The same 1,000 conjunctions of one to three
attributes are asked of every month, quarter and the year; errors are mean absolute errors in rows. Everything protects
a row at epsilon = 1, delta = 1e-9. "One ledger at the end" has the month as one more attribute. Fresh noise buys 1,000
answers of every month (Gaussian, the whole budget of the month); its mean error is worked out, not drawn.

*growth*: 12, 120 and 1,200 blocks (or BLOCKS) of 2,000 rows, each with a noisy histogram of 64 cells: processor time
and memory of opening, of the first answer over all blocks, of another one, and of the same again.

*turbo*: Turbo's streaming setting on its Covid blocks: see `streaming`.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.tables import SEED, codes
from tacit.blocks import Series
from tacit.exact.price import total
from tacit.model.ask import Count
from tacit.model.query import Query

BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
MONTHS, QUESTIONS = 12, 1_000
SETTINGS = {"mechanism": "iterative", "warm": 0.7, "certify": 0.2, "hits": 5}
WINDOWS = {"month": 1, "quarter": 3, "year": 12}
Floats = NDArray[np.float64]


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    for name, run in {"year": year, "growth": growth}.items():
        if which in (name, "all"):
            run()


# -- a year of months -------------------------------------------------------------------------------------------------


def year() -> None:
    try:
        table = TABLES["adult"]()
    except FileNotFoundError as missing:
        print(f"year: skipped, as Adult is not here ({missing})")
        return
    rng = np.random.Generator(np.random.PCG64(SEED))
    values = {
        name: np.array([table.domain[name].typical(c) for c in range(table.domain[name].size)]) for name in table.domain
    }
    frame = pd.DataFrame({name: values[name][places] for name, places in codes(table.records).items()})
    rows = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    months = [f"{number + 1:02d}" for number in range(MONTHS)]
    label = np.array(months)[np.arange(len(rows)) * MONTHS // len(rows)]
    queries = conjunctions(table.domain, QUESTIONS, np.random.default_rng(SEED))
    truth = {month: truths(table.domain, rows[label == month], queries) for month in months}
    errors = {
        "blocks, each drawn to the last": blockwise(rows, label, table.domain, queries, truth, prior=True),
        "blocks without prior": blockwise(rows, label, table.domain, queries, truth, prior=False),
        "one ledger at the end": at_the_end(rows, label, table.domain, queries, truth),
        "fresh noise": fresh_noise(),
    }
    print(f"year: {len(rows):,} rows in {MONTHS} months, {QUESTIONS:,} conjunctions of 1 to 3 of {len(table.domain)}")
    print("attributes; mean absolute errors in rows, the mean half width of bars, and the share that they hold.")
    print(f"{'':<34}" + "".join(f"{window:>26}" for window in WINDOWS))
    for name, found in errors.items():
        cells = (f"{e:9.1f} ± {b:7.1f} {h:6.1%}" if b else f"{e:9.1f}" + " " * 17 for e, b, h in found.values())
        print(f"{name:<34}" + "".join(f"{cell:>26}" for cell in cells), flush=True)


def truths(domain: tacit.Domain, rows: pd.DataFrame, queries: Sequence[Query]) -> Floats:
    from tacit.load import open_source
    from tacit.trusted.cells import read_records

    records = read_records(open_source(rows), domain)
    return np.array([records.answer(query) / query.unit for query in queries])


def windows(months: Sequence[str], length: int) -> Iterator[list[str]]:
    return (list(months[at : at + length]) for at in range(0, len(months), length))


Found = dict[str, tuple[float, float, float]]


def scored(ask: Callable[[Sequence[str]], list[tacit.Answer]], truth: dict[str, Floats]) -> Found:
    """The mean error of windows of every length, the mean half width of their bars, and how often these hold."""
    found: Found = {}
    for name, length in WINDOWS.items():
        errors, bars = list[Floats](), list[Floats]()
        for window in windows(list(truth), length):
            answers = ask(window)
            true = np.sum([truth[month] for month in window], axis=0)
            errors.append(np.abs(np.array([answer.value for answer in answers]) - true))
            bars.append(np.array([math.nan if one.error is None else one.error for one in answers]))
        off, bar = np.concatenate(errors), np.concatenate(bars)
        found[name] = float(off.mean()), float(np.nanmean(bar)), float((off <= bar)[~np.isnan(bar)].mean())
    return found


def blockwise(
    rows: pd.DataFrame,
    label: NDArray[np.str_],
    domain: tacit.Domain,
    queries: Sequence[Query],
    truth: dict[str, Floats],
    *,
    prior: bool,
) -> Found:
    with series(domain, prior=prior, **SETTINGS) as months:
        for month in truth:
            months.append(rows[label == month], month, start=True)

        def ask(window: Sequence[str]) -> list[tacit.Answer]:
            places = [months.blocks.index(month) for month in window]
            chosen = Query.among(months.domain, "block", places)
            return [answer for one in queries for answer in months.answer_many([Count(one & chosen)])]  # type: ignore[misc]

        return scored(ask, truth)


def at_the_end(
    rows: pd.DataFrame,
    label: NDArray[np.str_],
    domain: tacit.Domain,
    queries: Sequence[Query],
    truth: dict[str, Floats],
) -> Found:
    whole = tacit.Domain({**dict(domain.items()), "month": tacit.category(list(truth))})
    with (
        tempfile.TemporaryDirectory() as name,
        tacit.open(
            data=rows.assign(month=label),
            domain=whole,
            budget=BUDGET,
            ledger=Path(name) / "all.tacit",
            anchor=Path(name) / "anchors.sqlite",
            **SETTINGS,  # type: ignore[arg-type]
        ) as session,
    ):
        session.start()

        def ask(window: Sequence[str]) -> list[tacit.Answer]:
            chosen = Query.among(whole, "month", [list(truth).index(month) for month in window])
            return session.ask_many([one & chosen for one in queries])

        return scored(ask, truth)


def fresh_noise() -> Found:
    """Gaussian noise of its own for each of so many questions of a month: a window's is the sum of its months'."""
    each = total(BUDGET).atoms / 1e12 / QUESTIONS  # a count moves by one
    deviation = math.sqrt(1 / (2 * each))
    means = {name: deviation * math.sqrt(length * 2 / math.pi) for name, length in WINDOWS.items()}
    return {name: (mean, 1.96 * mean * math.sqrt(math.pi / 2), 0.95) for name, mean in means.items()}


@contextmanager
def series(domain: tacit.Domain, *, prior: bool = True, **settings: object) -> Iterator[Series]:
    with tempfile.TemporaryDirectory() as name:
        given = {"ledger": Path(name) / "s.tacit", "anchor": Path(name) / "anchors.sqlite", **settings}
        with tacit.series(domain=domain, budget=BUDGET, prior=prior, **given) as made:  # type: ignore[arg-type]
            yield made


# -- growth -----------------------------------------------------------------------------------------------------------

SMALL = tacit.Domain({"a": tacit.integer(0, 7), "b": tacit.integer(0, 7)})
ONE = "SELECT COUNT(*) FROM data WHERE a >= 5 AND b < 4"
OTHER = "SELECT COUNT(*) FROM data WHERE a >= 3 AND b < 2"
EACH = "SELECT block, COUNT(*) FROM data WHERE a < 6 GROUP BY block"


def growth() -> None:
    sizes = [int(sys.argv[2])] if len(sys.argv) > 2 else [12, 120, 1_200]
    print("growth: processor milliseconds, and megabytes of memory, of a series of blocks of 2,000 rows")
    words = ("append and start, each", "open", "first answer, a block", "another, a block", "again, a block")
    print(f"{'blocks':>8}" + "".join(f"{word:>26}" for word in (*words, "memory")))
    for blocks in sizes:
        with tempfile.TemporaryDirectory() as name:
            given = {"ledger": Path(name) / "s.tacit", "anchor": Path(name) / "anchors.sqlite"}
            made = partial_series(given)
            appended = spent(lambda made=made, blocks=blocks: fill(made, blocks)) / blocks
            made.close()
            before = memory()
            opened = list[Series]()
            opening = spent(lambda given=given, opened=opened: opened.append(tacit.series(**given)))  # type: ignore[arg-type]
            (again,) = opened
            first, other, same = (spent(lambda q=q, s=again: s.ask(q)) for q in (ONE, OTHER, ONE))
            each = spent(lambda s=again: s.ask(EACH))
            shown = (appended, opening, first / blocks, other / blocks, same / blocks)
            cells = "".join(f"{one:26.2f}" for one in (*shown, memory() - before))
            print(f"{blocks:>8,}{cells}   GROUP BY block: {each / blocks:.2f} a block", flush=True)
            again.close()


def partial_series(given: dict[str, Path]) -> Series:
    return tacit.series(domain=SMALL, budget=BUDGET, mechanism="histogram", **given)  # type: ignore[arg-type]


def fill(made: Series, blocks: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(blocks):
        cells = rng.integers(0, 8, (2, 2_000))
        made.append(pd.DataFrame({"a": cells[0], "b": cells[1]}), f"{number:05d}", start=True)


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def memory() -> float:
    """Resident megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


if __name__ == "__main__":
    main()
