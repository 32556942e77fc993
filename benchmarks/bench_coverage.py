"""Do the error bars hold? Every mechanism in many sessions, each with new noise; run by `make bench` and the tests.

    python -m benchmarks.bench_coverage

Small made-up tables, confidence 0.9 so that failures can be seen. What is counted are independent: an answer with noise
of its own, or a whole session where the bar promises all of its free answers, or all steps of a curve, at once. `width`
says how cautious the bars are: the bar over the 90% quantile of the error (for a session, of its largest error). A bar
of width 1 is as narrow as its promise allows.

An easy answer's bar follows from the gate alone, and most guesses are far better. So two cases have an analyst who
knows the data and asks for trouble: always the question whose guess is wrong by just more than the bar.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

import tacit
from tacit.load import open_source
from tacit.model.entry import Measured, Told
from tacit.model.facts import FREE as ALL_AT_ONCE
from tacit.model.query import Query
from tacit.release.iterative import Weights
from tacit.release.online import Online
from tacit.session import Session
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

CONFIDENCE = 0.9
SESSIONS = 200
ROWS, VALUES = 8_000, 256
# Questions of a session. All answers of a histogram share its noise: one of them for each session.
ASKED = {"direct": 20, "histogram": 1, "iterative": 60, "median": 60}
TROUBLE = 30  # questions of the analyst who knows the data
MEMORY = Path("/dev/shm")  # the ledgers of these sessions need not survive anything
SIZES = {"a": 16, "b": 4, "c": 3, "d": 2}
DOMAIN = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
LINE = tacit.Domain({"x": tacit.integer(0, VALUES - 1)})

EACH, FREE, HARD = "each answer", "all free answers of a session", "the first hard answer"
BAND, INTERVAL, RANGE, MEAN = "cdf: all steps at once", "quantile: each interval", "range: each", "mean: each"


@dataclass(frozen=True)
class Case:
    """A mechanism with its settings on one of the tables, and who asks."""

    name: str
    mechanism: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    delta: float = 1e-9
    table: str = "pairs"  # "pairs": pairs of attributes tell all; "triples": a parity of three, which no pair shows
    asks: str = "boxes"  # or "trouble", or "curves"
    sessions: int = SESSIONS


@dataclass(frozen=True, eq=False)
class Coverage:
    """How a promise was kept: the errors of independent trials as multiples of their bars."""

    errors: NDArray[np.float64]

    @property
    def trials(self) -> int:
        return len(self.errors)

    @property
    def failures(self) -> int:
        return int((self.errors > 1).sum())

    @property
    def width(self) -> float:
        """The bar over the error that it covers."""
        error = float(np.quantile(self.errors, CONFIDENCE))
        return 1 / error if error else math.inf

    def shrunk(self, factor: float) -> Coverage:
        """The same errors, had the bars been so many times narrower."""
        return Coverage(self.errors * factor)

    def holds(self, false_alarm: float) -> bool:
        """Whether so many failures are likelier than `false_alarm` when each has the chance that is stated."""
        return bool(binom.sf(self.failures - 1, self.trials, 1 - CONFIDENCE) > false_alarm)


ONLINE = {"questions": 500, "hits": 5}
CASES = (
    Case("direct, Gaussian", "direct", {"questions": 20}),
    Case("direct, Laplace", "direct", {"questions": 20}, delta=0.0),
    Case("histogram, Gaussian", "histogram"),
    Case("histogram, Laplace", "histogram", delta=0.0),
    Case("warm start, the gate stands", "iterative", ONLINE | {"warm": 0.8}),
    Case("warm start, hard answers", "iterative", ONLINE | {"hits": 8, "warm": 0.3}, table="triples"),
    Case("warm start, trouble", "iterative", ONLINE | {"warm": 0.3}, table="triples", asks="trouble"),
    Case("uniform start", "iterative", ONLINE | {"hits": 10}),
    Case("uniform start, trouble", "iterative", ONLINE, asks="trouble"),
    Case("uniform start, trouble, pure", "iterative", ONLINE | {"hits": 3}, delta=0.0, asks="trouble"),
    Case("median, 30 databases of 100", "median", ONLINE | {"hits": 10, "databases": 30, "records": 100}, sessions=60),
    Case("curves, Gaussian", "direct", asks="curves"),
    Case("curves, Laplace", "direct", delta=0.0, asks="curves"),
)


def main() -> None:
    head = f"{'trials':>7}{'failures':>10}{'failed':>8}{'stated':>8}{'width':>7}{'hard':>6}"
    print(f"  {'mechanism':<30}{'what the bar promises':<31}{head}")
    good = True
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for one in CASES:
            played = list(pool.map(play, repeat(one), range(one.sessions), chunksize=5))
            hard = np.mean([len(seen.get(HARD, ())) for seen in played])
            for promise, covered in coverage(played).items():
                good &= covered.holds(1e-6)
                width = f"{covered.width:.1f}" if covered.width < math.inf else "-"  # most sessions have no free answer
                print(
                    f"  {one.name:<30}{promise:<31}{covered.trials:>7,}{covered.failures:>10,}"
                    f"{covered.failures / covered.trials:>8.1%}{1 - CONFIDENCE:>8.0%}{width:>7}"
                    + (f"{hard:>6.1f}" if promise == FREE else ""),
                    flush=True,
                )
    print(f"  failed at most as often as stated, up to chance (1e-6): {'ok' if good else 'BROKEN'}")


Seen = dict[str, list[float]]  # for each promise the errors over their bars, in the order of the answers


def coverage(played: list[Seen]) -> dict[str, Coverage]:
    """Sessions put together. Of hard answers the first one: that there is one is settled before its noise is drawn."""
    found: dict[str, list[float]] = {}
    for seen in played:
        for promise, errors in seen.items():
            found.setdefault(promise, []).extend(errors[:1] if promise == HARD else errors)
    return {promise: Coverage(np.array(errors)) for promise, errors in found.items() if errors}


def play(one: Case, seed: int, confidence: float = CONFIDENCE) -> Seen:
    """One session with a ledger of its own. The seed is for its questions; the noise is new every time."""
    curves = one.asks == "curves"
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
        tacit.open(
            start=True,
            data=curve() if curves else table(one.table),
            domain=LINE if curves else DOMAIN,
            budget=tacit.Budget(epsilon=1.0, delta=one.delta),
            ledger=Path(name) / "l.tacit",
            anchor=Path(name) / "anchors.sqlite",
            mechanism=one.mechanism,
            confidence=confidence,
            **one.settings,
        ) as session,
    ):
        if curves:
            return _curves(session, seed)
        if one.asks == "trouble":
            return _trouble(session, one)
        queries = boxes(ASKED[one.mechanism], seed)
        answers = session.ask_many(queries)
        return _sort(session, queries, answers, _truth(queries, one.table))


# --- the analysts -----------------------------------------------------------------------------------------------------


def _trouble(session: Session, one: Case) -> Seen:
    """Asks for the guess that is wrong by the least above the bar; where all are within it, for the worst."""
    pool, weights, truth = _pool(one.table)
    mechanism, waiting = session._mechanism, np.ones(len(pool), dtype=bool)
    assert isinstance(mechanism, Online)
    bar = mechanism.terms.shown(mechanism.terms.threshold(one.settings["questions"]))
    mechanism._catch_up()  # buys the warm start
    asked: list[int] = []
    answers: list[tacit.Answer] = []
    for _ in range(TROUBLE):
        assert isinstance(mechanism.knowledge, Weights)
        guesses = weights @ mechanism.knowledge.hypothesis.marginal(DOMAIN.names).ravel() * ROWS
        errors = np.where(waiting, np.abs(guesses - truth), -1.0)
        above = np.flatnonzero(errors > bar + 1)
        asked.append(int(above[errors[above].argmin()] if above.size else errors.argmax()))
        waiting[asked[-1]] = False
        answers += session.ask_many([pool[asked[-1]]])
        if answers[-1].error is None:  # no hard answers are left, and no promise
            break
    return _sort(session, [pool[at] for at in asked], answers, truth[asked])


def _curves(session: Session, seed: int) -> Seen:
    """A curve and what follows from it, about places that differ from session to session."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(curve()["x"], minlength=VALUES)
    below = counts.cumsum()
    cdf = session.cdf("x", share=0.02)
    share = float(rng.uniform(0.05, 0.95))
    place, right = session.quantile("x", share), int(np.argmax(below >= share * ROWS))
    low, value, high = int(place.low), int(place.value), int(place.high)
    side = (high if right > value else low) - value
    first = int(rng.integers(VALUES // 2))
    last = first + int(rng.integers(VALUES // 2 - 1))
    between, mean = session.range("x", first, last), session.mean("x")
    assert between.error is not None
    assert mean.error is not None
    return {
        BAND: [float(np.abs(cdf.values - below).max()) / cdf.error],
        INTERVAL: [abs(right - value) / max(abs(side), 0.5)],  # nothing beyond its own bin: half of one
        RANGE: [abs(between.value - counts[first : last + 1].sum()) / max(between.error, 1e-9)],  # the bar is cut at 0
        MEAN: [abs(mean.value - float(counts @ np.arange(VALUES)) / ROWS) / mean.error],
    }


def _sort(session: Session, queries: list[Query], answers: list[tacit.Answer], truth: NDArray[np.float64]) -> Seen:
    """The errors over their bars, by what is promised about them; no bar, no promise."""
    ratios = [
        (abs(answer.value - exact) / answer.bars[-1].width, _passed(session._public.find([query.core])[0]))
        for query, answer, exact in zip(queries, answers, truth, strict=True)
        if answer.bars
    ]
    if not isinstance(session._mechanism, Online):
        return {EACH: [ratio for ratio, _ in ratios]}
    free, hard = [r for r, told in ratios if told], [r for r, told in ratios if not told]
    return {FREE: [max(free, default=0.0)], HARD: hard}


def _passed(stored: Measured | Told | None) -> bool:
    """Whether a gate let it pass: an answer that a bought table gave has a bar of its own, like a measured one."""
    return isinstance(stored, Told) and any(bar.about == ALL_AT_ONCE for bar in stored.bars)


# --- the tables and the questions -------------------------------------------------------------------------------------


@cache
def table(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    a = rng.binomial(15, np.where(rng.random(ROWS) < 0.6, 0.2, 0.75))
    if kind == "triples":
        b, c = rng.integers(0, 4, ROWS), rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])
        d = (b + (c > 0)) % 2
    else:
        b = np.where(rng.random(ROWS) < 0.7, a // 4, rng.integers(0, 4, ROWS))
        c = np.where(rng.random(ROWS) < 0.6, b % 3, 0)
        d = (rng.random(ROWS) < 0.2 + 0.3 * c).astype(int)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


@cache
def curve() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    x = np.where(rng.random(ROWS) < 0.5, rng.normal(80, 30, ROWS), rng.uniform(0, VALUES, ROWS))
    return pd.DataFrame({"x": np.clip(x, 0, VALUES - 1).astype(int)})


def boxes(count: int, seed: int) -> list[Query]:
    """Different conditions on one to three attributes."""
    rng = np.random.default_rng(seed)
    made: dict[Query, None] = {}
    while len(made) < count:
        names = rng.choice(list(SIZES), rng.integers(1, 4), replace=False)
        chosen = [rng.choice(SIZES[name], rng.integers(1, SIZES[name]), replace=False) for name in names]
        parts = [Query.among(DOMAIN, name, codes) for name, codes in zip(names, chosen, strict=True)]
        made[Query.all(parts).core] = None
    return list(made)


def _truth(queries: list[Query], kind: str) -> NDArray[np.float64]:
    return np.array([_records(kind).answer(query) / query.unit for query in queries])


@cache
def _records(kind: str) -> Records:
    return read_records(open_source(table(kind), None), DOMAIN)


@cache
def _pool(kind: str) -> tuple[list[Query], NDArray[np.float64], NDArray[np.float64]]:
    """What the analyst who knows the data chooses from: the questions, as a matrix too, and their true answers."""
    queries = boxes(400, 0)
    weights = np.array([query.table(DOMAIN.names, DOMAIN.shape).ravel() for query in queries], dtype=np.float64)
    return queries, weights, _truth(queries, kind)


if __name__ == "__main__":
    main()
