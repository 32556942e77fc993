"""What is said of answers against what they are: certified bars over the errors they cover, and speed.

    python -m benchmarks.bench_bars [--quick] [--columns] [--means] [--ranges] [--speed]

`width` is the mean half width shown over a whole certified class of questions, over the true 95 % quantile of their
errors; `at once` the bar for all boxes at once over the largest error of them; 1 is as narrow as can be. `gate` is the
same figure of the bar that a gate gives, in the same run. With `--means`, the same of the means of each numeric
attribute in the groups by one other attribute and by two, in per cent of the attribute's span. With `--ranges`, bars
of random conjunctions whose conditions on ordered attributes are single ranges, and of others where they are two, as
`OR` and values that are missing make them; and how many of these need no gate. Tables that lie beside
the repository (`../shared/data`) are left out where they are not there.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from benchmarks.accuracy.tables import ADULT, SEED, made_up
from benchmarks.accuracy.tables import DOMAIN as ADULT_8
from benchmarks.bench_large import wide_domain, wide_rows
from tacit.demo import DOMAIN as DEMO
from tacit.demo import demo_data
from tacit.model.certificate import Certificate, Conjunctions
from tacit.model.factor import GRID
from tacit.model.formula import middles_of
from tacit.model.query import Query
from tacit.release.base import Base, CertifiedFigure
from tacit.release.classes import boxes, sample
from tacit.release.forecast import WarmStarted
from tacit.release.online import Online
from tacit.session import Session
from tacit.trusted.records import Records

EPSILONS = (0.3, 1.0, 3.0)
BANK = ADULT.parents[1] / "bank" / "bank.csv.gz"
RUNS, FEW_RUNS = 8, 3  # of which the figures are means; few on Adult, which takes longer
OF_COLUMNS, OF_QUESTIONS = (3, 4, 6, 8), (100, 1_000, 10_000, 100_000)
MILLION = 1_000_000


def categories(domain: tacit.Domain, names: Sequence[str]) -> tacit.Domain:
    """The same domain, in which the values of these attributes have no order."""
    plain = {name: tacit.category(list(range(domain[name].size))) for name in names}
    return tacit.Domain({name: plain.get(name, domain[name]) for name in domain.names})


def _adult() -> tuple[Any, tacit.Domain]:
    from benchmarks.accuracy.tables import table

    return table().data, categories(ADULT_8, ("workclass", "marital", "race", "sex", "income"))


def _bank() -> tuple[Any, tacit.Domain]:
    with gzip.open(BANK) as file:
        frame = pd.read_csv(file, sep=";")
    domain = tacit.Domain(
        {
            "age": tacit.integer(15, 99, width=5, clamp=True),
            "balance": tacit.integer(-1000, 9999, width=1000, clamp=True),
            "duration": tacit.integer(0, 1199, width=100, clamp=True),
            **{n: tacit.category(sorted(frame[n].unique())) for n in ("job", "marital", "education", "housing", "y")},
        }
    )
    return frame[list(domain.names)], domain


def _made_up() -> tuple[Any, tacit.Domain]:
    sizes = {"a": 24, "b": 12, "c": 8, "d": 6, "e": 4, "f": 3, "g": 2}
    domain = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in sizes.items()})
    return made_up(domain, 30_000, SEED), domain


def _patients() -> tuple[Any, tacit.Domain]:
    """8,000 of them; of some the age is not known."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    age = np.clip(rng.normal(55, 20, 8_000), 0, 99).astype(int)
    stay = np.minimum(30, rng.exponential(4 + 4 * (age > 70))).astype(int)
    cost = np.clip(500 + 400 * stay + rng.exponential(800, 8_000), 0, 10_999).astype(int)
    ward = rng.choice(list("abcdefgh"), 8_000, p=[0.2, 0.2, 0.15, 0.15, 0.1, 0.1, 0.05, 0.05])
    frame = pd.DataFrame({"age": age, "stay": stay, "ward": ward, "sex": rng.choice(["F", "M"], 8_000), "cost": cost})
    frame["age"] = frame["age"].mask(rng.random(8_000) < 0.03)
    domain = tacit.Domain(
        {
            "age": tacit.integer(0, 99, width=5, missing="unknown"),
            "stay": tacit.integer(0, 30),
            "ward": tacit.category(list("abcdefgh")),
            "sex": tacit.category(["F", "M"]),
            "cost": tacit.integer(0, 10_999, width=1_000),
        }
    )
    return frame, domain


TABLES: dict[str, Callable[[], tuple[Any, tacit.Domain]]] = {
    "demonstration": lambda: (demo_data(), DEMO),
    "Adult, 8 attributes": _adult,
    "Adult, 14 attributes": lambda: (wide_rows(), wide_domain()),
    "bank, 8 attributes": _bank,
    "made-up, 7 attributes": _made_up,
    "patients": _patients,
}


@dataclass(frozen=True)
class Row:
    """The errors of a certified class and of all boxes, and what is said of them; in rows."""

    questions: int
    likely: float  # the 95 % quantile of the class's errors
    width: float
    largest: float | None
    at_once: float | None
    gate: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the demonstration and the made-up table, at epsilon 1")
    parser.add_argument("--columns", action="store_true", help="the bar of one count by columns and questions, alone")
    parser.add_argument("--means", action="store_true", help="means of groups alone")
    parser.add_argument("--ranges", action="store_true", help="conditions of one range and of two alone")
    parser.add_argument("--speed", action="store_true", help="speed alone")
    options = parser.parse_args(arguments or [])
    if options.means:
        means(("demonstration",) if options.quick else ("demonstration", "made-up, 7 attributes", "bank, 8 attributes"))
        return
    if options.ranges:
        ranges(("patients", "demonstration"))
        return
    if not options.columns and not options.speed:
        widths(("demonstration", "made-up, 7 attributes"), (1.0,)) if options.quick else widths(tuple(TABLES), EPSILONS)
    if not options.quick and not options.speed:
        columns()
    if not options.quick and not options.columns:
        speed()


# -- widths -----------------------------------------------------------------------------------------------------------


def widths(tables: Sequence[str], epsilons: Sequence[float]) -> None:
    print(
        f"{'table':<24} {'eps':>4} {'questions':>10} {'95 % of errors':>14} {'bar':>7} {'width':>6} {'gate':>6}", end=""
    )
    print(f" {'largest':>8} {'at once':>8} {'width':>6} {'start':>7}")
    for name in tables:
        if (name.startswith("bank") and not BANK.exists()) or (name.startswith("Adult") and not ADULT.exists()):
            print(f"{name:<24} is not here")
            continue
        data, domain = TABLES[name]()
        for epsilon in epsilons:
            runs = FEW_RUNS if name.startswith("Adult") else RUNS
            row = averaged([measured(data, domain, epsilon) for _ in range(runs)])
            print(f"{name:<24} {epsilon:>4g} {row.questions:>10,.0f} {row.likely:>14,.0f} {row.width:>7,.0f}", end="")
            print(f" {row.width / row.likely:>6.2f} {row.gate / row.likely:>6.1f}", end="")
            if row.largest is not None and row.at_once is not None:
                print(f" {row.largest:>8,.0f} {row.at_once:>8,.0f} {row.at_once / row.largest:>6.2f}", end="")
            else:
                print(f" {'-':>8} {'-':>8} {'-':>6}", end="")
            print(f" {row.seconds:>6.1f}s", flush=True)


def averaged(rows: Sequence[Row]) -> Row:
    """The means over several starts, each with noise of its own."""
    columns = zip(*map(astuple, rows), strict=True)
    return Row(*(None if None in column else sum(column) / len(column) for column in columns))


def measured(data: Any, domain: tacit.Domain, epsilon: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with opened(data, domain, epsilon, Path(folder) / "bars.tacit") as session:
            session.start()
            seconds = time.perf_counter() - start
            base, records = parts_of(session)
            certificate = base.share.certificate
            of_class = errors(
                sample(domain, base.hypothesis, session.rows, certificate.attributes), certificate, records
            )
            shown = float(widths_of(base.share, of_class.guesses).mean())
            largest = at_once = None
            if base.largest is not None:
                listed, _ = boxes(domain, base.hypothesis, session.rows, base.largest.certificate.attributes)
                of_boxes = errors(listed, base.largest.certificate, records)
                largest = float(of_boxes.errors.max())
                at_once = float(widths_of(base.largest, of_boxes.guesses).max())
            gate = gate_bar(session)
    likely = float(np.quantile(of_class.errors, 0.95))
    return Row(certificate.questions, likely, shown, largest, at_once, gate, seconds)


def gate_bar(session: Session) -> float:
    """What a free answer was said to be within before there were certificates: by the gate, after a warm start."""
    mechanism = session._mechanism
    assert isinstance(mechanism, Online)
    return mechanism.terms.shown_alone(mechanism.terms.threshold(session.choice.settings.questions))


@dataclass(frozen=True)
class Errors:
    """Of every question of a list, in rows, and the guesses, in whole rows."""

    errors: NDArray[np.float64]
    guesses: NDArray[np.int64]


def errors(lists: Sequence[Conjunctions], certificate: Certificate, records: Records) -> Errors:
    guesses = np.concatenate([one.sums(one.guess) for one in lists]) / GRID
    true = np.concatenate([one.sums(records.table(one.names)) for one in lists])
    return Errors(np.abs(true - np.rint(guesses)), np.rint(guesses).astype(np.int64))


def widths_of(figure: CertifiedFigure, guesses: NDArray[np.int64]) -> NDArray[np.float64]:
    """The bars around guesses: as wide as one of that size, which few sizes decide."""
    sizes, places = np.unique(guesses, return_inverse=True)
    return np.array([figure.width(size) for size in sizes.tolist()], dtype=np.float64)[places]


def opened(data: Any, domain: tacit.Domain, epsilon: float, ledger: Path, **settings: Any) -> Session:
    """A session with the planner's split, whatever mechanism it would choose."""
    budget = tacit.Budget(epsilon=epsilon, delta=1e-9)
    rows = len(data) if isinstance(data, pd.DataFrame) else 48_842
    split = WarmStarted(domain, rows, budget.measure).outlook(budget, questions=10_000, confidence=0.95)
    chosen = {"mechanism": "iterative", "warm": split.warm, "certify": split.certify, "hits": split.hits}
    return tacit.open(data=data, domain=domain, budget=budget, ledger=ledger, start=True, **{**chosen, **settings})


def parts_of(session: Session) -> tuple[Base, Records]:
    mechanism, curator = session._mechanism, session._curator
    assert isinstance(mechanism, Online)
    assert curator is not None
    base = mechanism.base
    assert base is not None
    return base, curator._records


# -- means of groups ---------------------------------------------------------------------------------------------------

SIZES = ((100, 300), (300, 1_000), (1_000, 3_000), (3_000, 10**9))  # rows of a group


@dataclass(frozen=True)
class OfGroup:
    """A group's rows, and the error and the bar of its mean by the span of the attribute; 1 where it has no bar."""

    rows: int
    error: float
    bar: float


def means(tables: Sequence[str]) -> None:
    print(f"{'table':<24} {'rows of a group':>16} {'means':>7} {'95 % of errors':>15} {'bar':>7}", end="")
    print(f" {'over':>5} {'within':>7}")
    for name in tables:
        if name.startswith("bank") and not BANK.exists():
            print(f"{name:<24} is not here")
            continue
        data, domain = TABLES[name]()
        found = [one for _ in range(RUNS) for one in means_of_groups(data, domain)]
        for low, high in SIZES:
            some = [one for one in found if low <= one.rows < high]
            size = f"{low:,} to {high:,}" if high < 10**9 else f"{low:,} and more"
            likely, bar = (
                float(np.quantile([one.error for one in some], 0.95)),
                float(np.mean([one.bar for one in some])),
            )
            within = np.mean([one.error <= one.bar for one in some])
            print(
                f"{name:<24} {size:>16} {len(some):>7,} {likely:>15.2%} {bar:>7.2%} {bar / likely:>5.1f} {within:>7.1%}"
            )


def means_of_groups(data: Any, domain: tacit.Domain) -> Iterator[OfGroup]:
    with (
        tempfile.TemporaryDirectory() as folder,
        opened(data, domain, 1.0, Path(folder) / "means.tacit") as session,
    ):
        session.start()
        _, records = parts_of(session)
        for name in [name for name in domain.names if domain[name].ordered]:
            numbers = middles_of(domain[name])[0]
            others = [other for other in domain.names if other != name]
            for by in [*combinations(others, 1), *combinations(others, 2)]:
                told = session.ask(
                    f"SELECT {', '.join(by)}, AVG({name}) FROM data GROUP BY {', '.join(by)}"
                ).to_pandas()
                table = records.table((*by, name))[..., : domain[name].bins].reshape(-1, domain[name].bins)
                values, bars = (told.iloc[:, len(by) + i].to_numpy(float) for i in range(2))
                for cells, value, bar in zip(table, values, bars, strict=True):
                    if rows := int(cells.sum()):
                        off = abs(value - float(cells @ numbers) / rows) / np.ptp(numbers)
                        yield OfGroup(rows, off, 1.0 if np.isnan(bar) else bar / np.ptp(numbers))


# -- one range, and two ------------------------------------------------------------------------------------------------

OF_EACH = 600  # questions for each start


def ranges(tables: Sequence[str]) -> None:
    print(f"{'table':<24} {'ranges':>7} {'free':>6} {'95 % of errors':>15} {'bar':>7} {'within':>7}")
    for name in tables:
        data, domain = TABLES[name]()
        found = [one for _ in range(RUNS) for one in of_ranges(data, domain)]
        for many in (1, 2):
            bars = [(off, bar) for runs, off, bar in found if runs == many]
            shown = np.array([one for one in bars if one[1] is not None], dtype=np.float64)
            print(
                f"{name:<24} {many:>7} {len(shown) / len(bars):>6.0%} {np.quantile(shown[:, 0], 0.95):>15,.0f}"
                f" {shown[:, 1].mean():>7,.0f} {(shown[:, 0] <= shown[:, 1]).mean():>7.1%}"
            )


def of_ranges(data: Any, domain: tacit.Domain) -> Iterator[tuple[int, float, float | None]]:
    """Of random conjunctions of one to three conditions: their ranges, their error, and their bar without a gate."""
    rng = np.random.Generator(np.random.PCG64(SEED))

    def condition(name: str, many: int) -> Query:
        size = domain[name].size
        if not domain[name].ordered:
            return Query.among(domain, name, rng.choice(size, rng.integers(1, size), replace=False))
        ends = np.sort(rng.choice(size + 1, 2 * many if size > 2 else 2, replace=False)).reshape(-1, 2)
        return Query.among(domain, name, [value for first, last in ends for value in range(first, last)])

    with (
        tempfile.TemporaryDirectory() as folder,
        opened(data, domain, 1.0, Path(folder) / "ranges.tacit") as session,
    ):
        session.start()
        base, records = parts_of(session)
        for many in (1, 2):
            for _ in range(OF_EACH):
                names = rng.choice(domain.names, rng.integers(1, 4), replace=False)
                query = Query.all([condition(name, many) for name in names])
                found = None if query.is_constant else base.estimate(query)
                bar = None if found is None else min(bar.width for bar in found.facts.bars)
                yield many, 0.0 if found is None else abs(found.value - records.answer(query)), bar


# -- one count, by columns and questions ------------------------------------------------------------------------------


def columns() -> None:
    """The bar of the same count in sessions that differ in their columns and in the questions that are announced.

    The planner chooses the mechanism. The count has two conditions; other columns are added in the table's order.
    """
    print("\nthe bar of one count, epsilon 1: rows (mechanism), by columns and announced questions")
    counts = {"demonstration": ("visits", "limited"), "Adult, 8 attributes": ("education", "sex")}
    for name, asked in counts.items():
        if name.startswith("Adult") and not ADULT.exists():
            print(f"{name:<24} is not here")
            continue
        data, whole = TABLES[name]()
        order = [*asked, *(one for one in whole.names if one not in asked)]
        print(f"  {name:<22} {'columns':>7}" + "".join(f"{questions:>22,}" for questions in OF_QUESTIONS))
        for size in sorted({min(size, len(whole)) for size in OF_COLUMNS}):
            domain = tacit.Domain({one: whole[one] for one in whole.names if one in order[:size]})
            bars = [_bar(data, domain, asked, questions) for questions in OF_QUESTIONS]
            print(f"  {'':<22} {size:>7}" + "".join(f"{bar:>22}" for bar in bars), flush=True)


def _bar(data: Any, domain: tacit.Domain, asked: Sequence[str], questions: int) -> str:
    half = [Query.among(domain, name, range((domain[name].size + 1) // 2)) for name in asked]
    widths = list[float]()
    for _ in range(FEW_RUNS):
        with tempfile.TemporaryDirectory() as folder:
            budget, ledger = tacit.Budget(epsilon=1.0, delta=1e-9), Path(folder) / "bars.tacit"
            with tacit.open(
                data=data, domain=domain, budget=budget, ledger=ledger, start=True, questions=questions
            ) as session:
                answer = session.ask_many([Query.all(half)])[0]
                assert answer.error is not None
                widths.append(answer.error)
                chosen = session.choice.mechanism
    return f"± {np.mean(widths):,.0f} ({chosen})"


# -- speed ------------------------------------------------------------------------------------------------------------


def speed() -> None:
    """A certified answer, in a batch and one by one, beside one through the gate in the same run."""
    print("\nspeed, microseconds an answer (demonstration table)")
    rng = np.random.Generator(np.random.PCG64(SEED))
    many = [
        tacit.count(
            visits=(low, high), coinsurance=int(rng.choice([0, 25, 50, 95])), limited=bool(rng.integers(2))
        ).bind(DEMO)
        for low, high in (sorted(rng.integers(0, 21, size=2).tolist()) for _ in range(10_000))
    ]
    with tempfile.TemporaryDirectory() as folder:
        with opened(demo_data(), DEMO, 1.0, Path(folder) / "bars.tacit") as session:
            session.start()
            before = session.entries
            batch = min(_micro(lambda: session.ask_many(many), len(many)) for _ in range(3))  # the best of three
            single = _micro(
                lambda: [session.ask(tacit.count(visits=(2, 9), limited=True)) for _ in range(2_000)], 2_000
            )
            start = time.perf_counter()
            for _ in range(MILLION // len(many)):
                session.ask_many(many)
            million, grown = time.perf_counter() - start, session.entries - before
        with opened(demo_data(), DEMO, 1.0, Path(folder) / "gate.tacit", certify=0.0) as session:
            session.start()
            gate = _micro(lambda: [session.ask(one) for one in dict.fromkeys(many[:200])], 200)
    print(
        f"  in a batch {batch:.1f}, one by one {single:.1f}, through the gate {gate:,.1f} ({gate / single:.0f} times)"
    )
    print(f"  a million: {million:.1f} s; the ledger grew by {grown} entries", flush=True)


def _micro(work: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - start) / count


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
