"""The median mechanism after a warm start: its answers, its votes, and nonlinear questions beside their alternatives.

    python -m benchmarks.bench_votes [--tables adult trillion wide] [--runs 3] [--questions 10000]

Counts: conjunctions of one to three attributes on Adult with 8 attributes; of three on twelve attributes of ten values,
each of which depends on the one before it (1e12 cells), and on all 14 of Adult (6e17). *mean* and *largest* are the
errors of a session's answers, as fractions of the rows, *auto* those of the default mechanism for the same questions,
*times* the larger of the two ratios; *fresh* is the mean error of fresh noise for so many questions, *votes* that of
the databases' median; *covered* is how often the truth lies in the middle 95 % of the votes. Nonlinear questions on
Adult: errors in rows, of the votes' median and of the same function of as many rows that `auto` makes up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress

import tacit
from benchmarks.accuracy.analysts import conjunctions
from benchmarks.accuracy.catalogue import tree
from benchmarks.accuracy.tables import MILD, SEED, Table, table
from benchmarks.bench_large import three_way, wide_domain, wide_rows
from tacit.exact.price import Sensitivity, noise_for, total
from tacit.load import open_source
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.trusted.cells import read_records

ASKED_VOTES = 2_000
SHARED_AMONG = (10, 100, 1_000, 10_000)


class Errors(NamedTuple):
    """Of answers, as fractions of the rows."""

    mean: float
    largest: float

    @classmethod
    def of(cls, answers: Sequence[tacit.Answer], truth: np.ndarray, rows: int) -> Errors:
        off = np.abs(np.array([answer.value for answer in answers]) - truth) / rows
        return cls(float(off.mean()), float(off.max()))


class Counts(NamedTuple):
    answers: Errors
    auto: Errors
    votes: float
    covered: float
    start: float
    drawing: float
    each: float
    hard: int


@contextmanager
def opened(one: Table, questions: int, **options: Any) -> Iterator[tacit.Session]:
    with (
        tempfile.TemporaryDirectory() as folder,
        tacit.open(
            data=one.data, domain=one.domain, budget=MILD, questions=questions, ledger=Path(folder) / "l.tacit",
            anchor=Path(folder) / "anchor", **options,
        ) as session,
    ):  # fmt: skip
        yield session


def wide() -> Table:
    rows = wide_rows()
    return Table("Adult, 14 attributes", rows, read_records(open_source(rows), wide_domain()))


def trillion() -> Table:
    return tree({f"x{place}": 10 for place in range(12)}, "1e12 cells")


def asked_in_parts(session: tacit.Session, queries: Sequence[Query]) -> list[tacit.Answer]:
    return [a for first in range(0, len(queries), 1_000) for a in session.ask_many(queries[first : first + 1_000])]


def counts(one: Table, queries: Sequence[Query]) -> Counts:
    truth = np.array([one.records.answer(query) for query in queries])
    with opened(one, len(queries), mechanism="median") as session:
        begin = time.perf_counter()
        session.start()
        started = time.perf_counter()
        session.votes(queries[0])
        drawn = time.perf_counter()
        answers = asked_in_parts(session, queries)
        asked = time.perf_counter()
        votes = np.array([session.votes(query) for query in queries[:ASKED_VOTES]])
        each = (time.perf_counter() - asked) / len(votes)
    some = truth[: len(votes)]
    low, middle, high = np.quantile(votes, [0.025, 0.5, 0.975], axis=1)
    covered = float(((some >= np.floor(low)) & (some <= np.ceil(high))).mean())
    hard = sum(answer.source == "measured" for answer in answers)
    off = float(np.abs(middle - some).mean()) / one.rows
    with opened(one, len(queries), mechanism="auto", start=True) as session:
        auto = Errors.of(asked_in_parts(session, queries), truth, one.rows)
    own = Errors.of(answers, truth, one.rows)
    return Counts(own, auto, off, covered, started - begin, drawn - started, 1e3 * each, hard)


def statistics(one: Table) -> list[tuple[str, Statistic]]:
    made = [tacit.stump(feature, predicts="income", value=1) for feature in ("age", "education", "hours")]
    made += [tacit.stump(feature, predicts="sex", value=1) for feature in ("age", "education", "hours")]
    made += [
        tacit.largest_mean(of, by=by, smallest=0.01)
        for of in ("age", "education", "hours")
        for by in ("marital", "workclass", ["race", "sex"])
    ]
    made += [tacit.quantile_distance("age", share, high=high) for share, high in ((0.25, 4), (0.5, 14), (0.75, 24))]
    made += [tacit.quantile_distance("hours", 0.9, low=60), tacit.quantile_distance("education", 0.5, low=12)]
    bound = [unbound.bind(one.domain) for unbound in made]
    return [(each.words(one.domain), each) for each in bound]


def nonlinear(one: Table, asked: Sequence[tuple[str, Statistic]]) -> np.ndarray:
    """Errors in rows [question, way]: of the votes, and of made-up rows."""
    with opened(one, 10_000, mechanism="median") as voting, opened(one, 10_000, mechanism="auto") as auto:
        voting.start()
        auto.start()
        made = auto.synthetic(one.rows)
        codes = dict(zip(one.domain.names, made.codes, strict=True))
        found = []
        for _, statistic in asked:
            truth = one.records.answer(statistic) / statistic.unit
            shape = [one.domain[name].size for name in statistic.scope]
            places = np.ravel_multi_index([codes[name] for name in statistic.scope], shape)
            counted = np.bincount(places, minlength=int(np.prod(shape))).reshape(1, *shape)
            plugged = float(statistic.evaluate(counted)[0]) / statistic.unit
            votes = voting.votes(statistic)
            low, high = np.quantile(votes, [0.025, 0.975])
            inside = np.floor(low) <= truth <= np.ceil(high)
            found.append((abs(float(np.median(votes)) - truth), abs(plugged - truth), (high - low) / 2, inside))
    return np.array(found, dtype=np.float64)


TABLES: dict[str, Callable[[], Table]] = {"adult": table, "trillion": trillion, "wide": wide}


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_votes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    print(f"{'':<21}{'questions':>10}{'mean':>9}{'largest':>9}{'auto':>9}{'largest':>9}{'times':>6}", end="")
    print(f"{'fresh':>9}{'votes':>9}{'covered':>9}{'hard':>6}{'start s':>9}{'draw s':>8}{'vote ms':>9}")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name in options.tables:
            one = TABLES[name]()
            questions = options.questions if name == "adult" else options.questions // 2
            law = noise_for(total(MILD).split(questions), Sensitivity(1, 1), 1)
            fresh = law.scale * np.sqrt(2 / np.pi) / one.rows
            task = progress.add_task(one.name, total=options.runs)
            for run in range(options.runs):
                rng = np.random.default_rng(SEED + run)
                make = conjunctions if name == "adult" else three_way
                found = counts(one, make(one.domain, questions, rng))
                own, auto = found.answers, found.auto
                times = max(own.mean / auto.mean, own.largest / auto.largest)
                print(
                    f"{one.name:<21}{questions:>10,}{own.mean:>9.5f}{own.largest:>9.5f}{auto.mean:>9.5f}"
                    f"{auto.largest:>9.5f}{times:>6.2f}{fresh:>9.5f}{found.votes:>9.5f}{found.covered:>9.1%}"
                    f"{found.hard:>6}{found.start:>9.1f}{found.drawing:>8.1f}{found.each:>9.1f}",
                    flush=True,
                )
                progress.advance(task)
        if "adult" in options.tables:
            _print_nonlinear(table(), options.runs, progress)


def _print_nonlinear(one: Table, runs: int, progress: Progress) -> None:
    asked = statistics(one)
    task = progress.add_task("nonlinear questions", total=runs)
    found = []
    for _ in range(runs):
        found.append(nonlinear(one, asked))
        progress.advance(task)
    means = np.mean(found, axis=0)
    print(f"\n{'error in rows, mean of the runs':<76}{'votes':>8}{'plug-in':>9}{'± votes':>9}{'covered':>9}")
    for (words, _), line in zip(asked, means, strict=True):
        print(f"{words[:75]:<76}{line[0]:>8.0f}{line[1]:>9.0f}{line[2]:>9.0f}{line[3]:>9.0%}")
    print(f"{'all':<76}{means[:, 0].mean():>8.0f}{means[:, 1].mean():>9.0f}{means[:, 2].mean():>9.0f}", end="")
    print(f"{means[:, 3].mean():>9.0%}")
    laws = {many: noise_for(total(MILD).split(many), Sensitivity(1, 1), 1).scale for many in SHARED_AMONG}
    said = ", ".join(f"{scale * np.sqrt(2 / np.pi):,.0f} for {many:,}" for many, scale in laws.items())
    print(f"fresh noise, if so many questions share the budget: {said}")


if __name__ == "__main__":
    main(sys.argv[1:])
