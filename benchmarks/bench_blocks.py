"""Blocks: a year of months, each with the whole budget, against one ledger at the end, fresh noise, and no prior.

    python -m benchmarks.bench_blocks [year | flights | groups | plan | growth | turbo] [BLOCKS]

*year*: five attributes of Adult's rows, in random order, cut into twelve months. The same 200 conjunctions of one to
three attributes are asked of every month, quarter and the year; errors are mean absolute errors in rows. Everything
protects a row at epsilon = 1, delta = 1e-9. Groups are planned for windows of 1, 3 and 12 of 12 blocks. "One ledger
at the end" has the month as one more attribute. Fresh noise buys 200 answers of every month (Gaussian, the whole budget
of the month); its mean error is worked out, not drawn.

*flights*: the same with the twelve real months of the flights from New York in 2013.

*groups*: 12 and 120 blocks (or BLOCKS) of 2,000 rows with a noisy histogram of 64 cells each, with and without groups:
50 conjunctions about every block, quarter and year (of 12), and about all blocks.

*plan*: which groups are planned for how many blocks, and what is expected of them.

*growth*: 12, 120 and 1,200 blocks (or BLOCKS) of 2,000 rows, each with a noisy histogram of 64 cells: processor time
and memory of opening, of the first answer over all blocks, of another one, and of the same again.

*turbo*: Turbo's streaming setting on its Covid blocks: see `streaming`.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from benchmarks import bench_turbo
from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.tables import SEED, codes
from tacit.blocks.series import Series
from tacit.exact.price import total
from tacit.model.ask import Count
from tacit.model.query import Query
from tacit.release.groups import expected_error, planned

BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
MONTHS, QUESTIONS = 12, 200
ATTRIBUTES = ("age", "education", "sex", "hours", "income")
SETTINGS = {"mechanism": "iterative", "warm": 0.7, "certify": 0.2, "hits": 5}
WINDOWS = {"month": 1, "quarter": 3, "year": 12}
NAMES = [f"{number + 1:02d}" for number in range(MONTHS)]
OF_FLIGHTS = ("hour", "carrier", "origin", "distance", "dep_delay")
SMALL = tacit.Domain({"a": tacit.integer(0, 7), "b": tacit.integer(0, 7)})
CUBE = tacit.Domain({name: tacit.integer(0, 3) for name in "abc"})
Floats = NDArray[np.float64]
Found = dict[str, tuple[float, float, float]]


def main() -> None:
    which = sys.argv[1] if len(sys.argv) > 1 else "all"
    parts = {"year": year, "flights": flights, "groups": groups, "plan": plans, "growth": growth, "turbo": streaming}
    for name, run in parts.items():
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
    domain = table.domain.project(ATTRIBUTES)
    rows = frame_of(domain, codes(table.records))
    rows = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)
    label = np.array(NAMES)[np.arange(len(rows)) * MONTHS // len(rows)]
    compared("year", domain, rows, label)


def flights() -> None:
    try:
        table = TABLES["flights"]()
    except (FileNotFoundError, ImportError) as missing:
        print(f"flights: skipped, as they are not here ({missing})")
        return
    domain, columns = table.domain.project(OF_FLIGHTS), codes(table.records)
    compared("flights", domain, frame_of(domain, columns), np.array(NAMES)[columns["month"]])


def frame_of(domain: tacit.Domain, columns: Mapping[str, NDArray[np.integer]]) -> pd.DataFrame:
    values = {name: [domain[name].typical(place) for place in range(domain[name].size)] for name in domain}
    return pd.DataFrame({name: np.array(values[name], dtype=object)[columns[name]] for name in domain})


def compared(name: str, domain: tacit.Domain, rows: pd.DataFrame, label: NDArray[np.str_]) -> None:
    queries = conjunctions(domain, QUESTIONS, np.random.default_rng(SEED))
    truth = {month: truths(domain, rows[label == month], queries) for month in NAMES}
    print(f"{name}: {len(rows):,} rows in {MONTHS} months, {QUESTIONS:,} conjunctions of 1 to 3 of {len(domain)}")
    print("attributes; mean absolute errors in rows, the mean half width of bars, and the share that they hold.")
    print(f"{'':<38}" + "".join(f"{window:>26}" for window in WINDOWS))
    grouped = {"expected": MONTHS, "windows": list(WINDOWS.values())}
    for words, found in {
        "blocks, each drawn to the last": partial(blockwise, prior=True),
        "blocks without prior": partial(blockwise, prior=False),
        "with groups, each drawn to the last": partial(blockwise, prior=True, **grouped),
        "with groups, without prior": partial(blockwise, prior=False, **grouped),
        "one ledger at the end": at_the_end,
        "fresh noise": lambda *_: fresh_noise(),
    }.items():
        shown(words, found(rows, label, domain, queries, truth))


def shown(words: str, found: Found) -> None:
    cells = (f"{e:9.1f} ± {b:7.1f} {h:6.1%}" for e, b, h in found.values())
    print(f"{words:<38}" + "".join(f"{cell:>26}" for cell in cells), flush=True)


def truths(domain: tacit.Domain, rows: pd.DataFrame, queries: Sequence[Query]) -> Floats:
    from tacit.load import open_source
    from tacit.trusted.cells import read_records

    records = read_records(open_source(rows), domain)
    return np.array([records.answer(query) / query.unit for query in queries])


def windows(months: Sequence[str], length: int) -> Iterator[list[str]]:
    return (list(months[at : at + length]) for at in range(0, len(months), length))


def scored(
    ask: Callable[[Sequence[str]], list[tacit.Answer]],
    truth: dict[str, Floats],
    lengths: Mapping[str, int] = WINDOWS,
) -> Found:
    """The mean error of windows of every length, the mean half width of their bars, and how often these hold."""
    found: Found = {}
    for name, length in lengths.items():
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
    **terms: object,
) -> Found:
    with series(domain, **{**SETTINGS, **terms}) as months:
        for month in truth:
            months.append(rows[label == month], month, start=True)
        if months.plan:
            print(f"  {months.plan}")
        return scored(partial(of_window, months, queries), truth)


def of_window(months: Series, queries: Sequence[Query], window: Sequence[str]) -> list[tacit.Answer]:
    chosen = Query.among(months.domain, "block", [months.blocks.index(month) for month in window])
    return [answer for one in queries for answer in months.answer_many([Count(one & chosen)])]  # type: ignore[misc]


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
def series(domain: tacit.Domain, **settings: object) -> Iterator[Series]:
    with tempfile.TemporaryDirectory() as name:
        given = {"ledger": Path(name) / "s.tacit", "anchor": Path(name) / "anchors.sqlite", **settings}
        with tacit.series(domain=domain, budget=BUDGET, **given) as made:  # type: ignore[arg-type]
            yield made


# -- groups of blocks -------------------------------------------------------------------------------------------------


def groups() -> None:
    """The crossover by measurement: the same questions of the same blocks, alone and with groups as planned."""
    for blocks in [int(sys.argv[2])] if len(sys.argv) > 2 else [12, 120]:
        lengths = {"block": 1, "quarter": 3, "year": 12, "all": blocks}
        lengths = {name: length for name, length in lengths.items() if length <= blocks and blocks % length == 0}
        labels, tables = [f"{number:05d}" for number in range(blocks)], list(small_blocks(blocks, CUBE))
        queries = conjunctions(CUBE, QUESTIONS // 4, np.random.default_rng(SEED))
        truth = {label: truths(CUBE, rows, queries) for label, rows in zip(labels, tables, strict=True)}
        print(f"groups: {blocks:,} blocks of 2,000 rows; mean absolute errors in rows, bars, the share that they hold")
        print(f"{'':<38}" + "".join(f"{window:>26}" for window in lengths))
        for words, terms in {
            "blocks alone": {},
            "planned for all lengths": {"expected": blocks},
            "planned for these windows": {"expected": blocks, "windows": sorted(set(lengths.values()))},
        }.items():
            with series(CUBE, mechanism="histogram", **terms) as made:
                for label, rows in zip(labels, tables, strict=True):
                    made.append(rows, label, start=True)
                if made.plan:
                    print(f"  {made.plan}")
                shown(words, scored(partial(of_window, made, queries), truth, lengths))


def plans() -> None:
    """What is planned, from public sizes alone: noise alone, and a fit of five attributes in blocks of 4,000 rows."""
    sizes = {"age": 17, "education": 16, "sex": 2, "hours": 10, "income": 2}  # Adult's, in bins
    domain = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in sizes.items()})
    errors = {
        "Gaussian noise": expected_error(SMALL, 4_000, total(BUDGET), 0.0),
        "pure epsilon": expected_error(SMALL, 4_000, total(tacit.Budget(epsilon=1.0)), 0.0),
        "a fit": expected_error(domain, 4_000, total(BUDGET), 0.7),
    }
    print("plan: for windows of all lengths, wherever they begin")
    for name, error in errors.items():
        for blocks in (6, 12, 24, 36, 60, 120, 365, 1_200, 5_000):
            print(f"{name:<16}{blocks:>7,} blocks: {planned(blocks, error).why}", flush=True)


# -- growth -----------------------------------------------------------------------------------------------------------

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
            made = histograms(given)
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


def histograms(given: dict[str, Path]) -> Series:
    return tacit.series(domain=SMALL, budget=BUDGET, mechanism="histogram", **given)  # type: ignore[arg-type]


def small_blocks(blocks: int, domain: tacit.Domain) -> Iterator[pd.DataFrame]:
    rng = np.random.default_rng(0)
    for _ in range(blocks):
        yield pd.DataFrame({name: rng.integers(0, domain[name].size, 2_000) for name in domain})


def fill(made: Series, blocks: int) -> None:
    for number, rows in enumerate(small_blocks(blocks, SMALL)):
        made.append(rows, f"{number:05d}", start=True)


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def memory() -> float:
    """Resident megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


# -- Turbo's streaming setting ----------------------------------------------------------------------------------------

ARRIVALS, ASKED = 50, 20_000  # blocks, and questions in all


def streaming() -> None:
    """Blocks arrive one by one; questions are about the latest of them, within 5 % of their rows but for 1 in 1,000.

    The setting is that of the third use of Turbo (Kostopoulou et al., SOSP 2023), on its Covid blocks: after each block
    as many questions, each about the latest w blocks, w uniform among those that there are. Turbo's tree cache has
    PMW-Bypass in every node of a binary tree over time: a window is cut into the fewest nodes, each answers its part
    within alpha of its rows, and what a node spends is spent of every block in it. Tacit has one noisy histogram of
    each block, bought when it arrives, that promises alpha for every predicate of the block at once; a window's error
    is at most the sum of theirs. Both are pure epsilon of replaced rows; Turbo's noise is a simulation.
    """
    if not bench_turbo.BLOCKS.exists():
        print("turbo: skipped, as ../shared/data/turbo/covid_blocks.npy is not there.")
        return
    blocks = np.load(bench_turbo.BLOCKS)[:ARRIVALS]
    rng = np.random.Generator(np.random.PCG64(SEED))
    pool = bench_turbo.Pool.of(blocks[0])
    sizes, prefix = blocks.sum(axis=1), np.concatenate([np.zeros((1, blocks.shape[1])), np.cumsum(blocks, axis=0)])
    tree = dict[tuple[int, int], bench_turbo.Bypass]()
    errors, ours = list[float](), list[float]()
    each = max(
        bench_turbo.least_epsilon(partial(bench_turbo.miss_of_every_predicate, blocks.shape[1], int(size)))
        for size in np.unique(sizes)
    )
    noise = np.cumsum(
        rng.laplace(scale=2 / each, size=blocks.shape), axis=0
    )  # of the histograms; a row moves two cells
    noise = np.concatenate([np.zeros((1, blocks.shape[1])), noise])
    checked = [at for at in (1, 5, 10, 20, 30, 40, len(blocks)) if at <= len(blocks)]
    print(
        f"turbo: {len(blocks)} blocks of {sizes.min():,} to {sizes.max():,} rows; {ASKED:,} questions over their time"
    )
    print(f"{'blocks so far':>14}{'tree: most spent':>18}{'mean spent':>12}{'histograms':>12}{'ratio of most':>15}")
    for now in range(1, len(blocks) + 1):
        for question in rng.integers(len(pool.cells), size=ASKED // len(blocks)).tolist():
            first, cells, found = now - int(rng.integers(1, now + 1)), pool.cells[question], 0.0
            window = nodes(first, now)
            for low, high in window:
                rows, true = sizes[low:high].sum(), float((prefix[high] - prefix[low])[cells].sum())
                if (low, high) not in tree:
                    beta = bench_turbo.BETA / max(1, 2 * math.ceil(math.log2(len(blocks))))  # for the parts of a window
                    tree[low, high] = bench_turbo.Bypass(int(rows), rng, beta)
                found += rows * tree[low, high].ask(question, cells, true / rows)
            whole = (prefix[now] - prefix[first])[cells].sum()
            errors.append(abs(found - whole) / sizes[first:now].sum())
            ours.append(abs((noise[now] - noise[first])[cells].sum()) / sizes[first:now].sum())
        spent = [sum(node.spent for (low, high), node in tree.items() if low <= at < high) for at in range(now)]
        if now in checked:
            print(f"{now:>14}{max(spent):18.4f}{np.mean(spent):12.4f}{each:12.4f}{max(spent) / each:15.2f}", flush=True)
    for name, some in {"the tree": errors, "the histograms": ours}.items():
        print(f"  errors of {name}: {max(some):.4f} of a window's rows at most, {np.mean(some):.5f} in the mean")


def nodes(first: int, end: int) -> list[tuple[int, int]]:
    """The fewest nodes of a binary tree over time that make up the blocks first <= i < end."""
    found = list[tuple[int, int]]()
    while first < end:
        size = first & -first or 1 << (end - first).bit_length()
        while size > end - first:
            size //= 2
        found.append((first, first + size))
        first += size
    return found


if __name__ == "__main__":
    main()
