"""Do the error bars hold? Every kind of bar in many sessions, each with new noise; run by `make bench` and the tests.

    python -m benchmarks.bench_coverage [--sessions 500] [--only words]

Small made-up tables, confidence 0.9 so that failures can be seen; what is put together of k noisy answers states
1 - k/10. Trials are independent: an answer with noise of its own, or one answer of a session, or the worst of those
that a bar promises all at once. `width` says how cautious the bars are: the bar over the error that as many trials stay
within as is stated. A bar of width 1 is as narrow as its promise allows. `by chance` is the chance of so few that are
covered, if each is with the stated probability: a bar is narrower than stated where that is below 1 in 10,000.

Analysts who adapt: one who asks for the largest surprise among the published answers, and one who knows the data and
asks for trouble: always the question whose guess is wrong by just more than the gate's bar.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

import tacit
from benchmarks.coverage import analysts
from benchmarks.coverage.analysts import CONFIDENCE, Analyst, Promise, Seen
from benchmarks.coverage.tables import table

SESSIONS = 500
BY_CHANCE = 1e-4
MEMORY = Path("/dev/shm")  # the ledgers of these sessions need not survive anything


@dataclass(frozen=True)
class Case:
    """A mechanism with its settings on one of the tables, and who asks."""

    name: str
    mechanism: str
    asks: Analyst
    settings: Mapping[str, Any] = field(default_factory=dict)
    delta: float = 1e-9
    table: str = "pairs"


@dataclass(frozen=True, eq=False)
class Coverage:
    """How a promise was kept: the errors of independent trials as multiples of their bars."""

    errors: NDArray[np.float64]
    stated: float = CONFIDENCE

    @property
    def trials(self) -> int:
        return len(self.errors)

    @property
    def failures(self) -> int:
        return int((self.errors > 1).sum())

    @property
    def width(self) -> float:
        """The bar over the error that it covers."""
        error = float(np.quantile(self.errors, self.stated))
        return 1 / error if error else math.inf

    @property
    def chance(self) -> float:
        """Of so many failures or more when each has the chance that is stated."""
        return float(binom.sf(self.failures - 1, self.trials, 1 - self.stated))

    def shrunk(self, factor: float) -> Coverage:
        """The same errors, had the bars been so many times narrower."""
        return Coverage(self.errors * factor, self.stated)

    def holds(self, false_alarm: float) -> bool:
        """Whether so many failures are likelier than `false_alarm`."""
        return self.chance > false_alarm


FRESH, GATES = {"questions": 100}, {"questions": 500, "hits": 5}
VOTES = {"warm": 0, "questions": 100, "hits": 2, "databases": 12, "records": 40}
SURE = {"warm": 0.8, "certify": 0.15, "hits": 3}
CASES = (
    Case("direct, Gaussian", "direct", analysts.fresh, FRESH),
    Case("direct, Laplace", "direct", analysts.fresh, FRESH, delta=0.0),
    Case("direct, hunter", "direct", analysts.hunter, FRESH),
    Case("direct, hunter, Laplace", "direct", analysts.hunter, FRESH, delta=0.0),
    Case("histogram, Gaussian", "histogram", analysts.readings),
    Case("histogram, Laplace", "histogram", analysts.readings, delta=0.0),
    Case("all ranges, Gaussian", "histogram", analysts.curves, table="line"),
    Case("all ranges, Laplace", "histogram", analysts.curves, delta=0.0, table="line"),
    Case("curves, Gaussian", "direct", analysts.released, table="line"),
    Case("curves, Laplace", "direct", analysts.released, delta=0.0, table="line"),
    Case("rectangles, Gaussian", "direct", analysts.rectangles, table="plane"),
    Case("rectangles, Laplace", "direct", analysts.rectangles, delta=0.0, table="plane"),
    Case("warm start, the gate stands", "iterative", analysts.passing, GATES | {"warm": 0.8}),
    Case("warm start, hard answers", "iterative", analysts.passing, GATES | {"hits": 8, "warm": 0.3}, table="triples"),
    Case("warm start, trouble", "iterative", analysts.trouble, GATES | {"warm": 0.3}, table="triples"),
    Case("uniform start", "iterative", analysts.passing, GATES | {"hits": 10}),
    Case("uniform start, trouble", "iterative", analysts.trouble, GATES),
    Case("uniform start, trouble, pure", "iterative", analysts.trouble, GATES | {"hits": 3}, delta=0.0),
    Case("uniform start, one question", "iterative", analysts.first, GATES),
    Case("median, 12 databases of 40", "median", analysts.counting, VOTES),
    Case("median, trouble", "median", analysts.trouble, VOTES),
    Case("median, one question", "median", analysts.first, VOTES),
    Case("certified, Gaussian", "iterative", analysts.certified, SURE, table="mixed"),
    Case("certified, Laplace", "iterative", analysts.certified, SURE, delta=0.0, table="mixed"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=SESSIONS, help=f"of each case; {SESSIONS} unless given")
    parser.add_argument("--only", default="", help="cases whose names begin with this")
    options = parser.parse_args(arguments or [])
    head = f"{'trials':>8}{'covered':>9}{'stated':>8}{'by chance':>11}{'width':>7}"
    print(f"  {'mechanism, who asks':<30}{'what the bar is about':<36}{head}")
    narrow = 0
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for one in (case for case in CASES if case.name.startswith(options.only)):
            played = list(pool.map(play, repeat(one), range(options.sessions), chunksize=5))
            for promise, covered in coverage(played).items():
                width = f"{covered.width:.1f}" if covered.width < math.inf else "-"
                verdict = "" if promise.meant else "  not promised"
                if promise.meant and not covered.holds(BY_CHANCE):
                    narrow, verdict = narrow + 1, "  NARROWER"
                print(
                    f"  {one.name:<30}{promise.words:<36}{covered.trials:>8,}"
                    f"{1 - covered.failures / covered.trials:>9.1%}{promise.stated:>8.0%}{covered.chance:>11.2g}"
                    f"{width:>7}{verdict}",
                    flush=True,
                )
    print(f"  {options.sessions} sessions a row; bars narrower than stated, beyond chance ({BY_CHANCE:g}): {narrow}")


def coverage(played: Sequence[Seen]) -> dict[Promise, Coverage]:
    """Sessions put together."""
    found: dict[Promise, list[float]] = {}
    for seen in played:
        for promise, errors in seen.items():
            found.setdefault(promise, []).extend(errors)
    return {promise: Coverage(np.array(errors), promise.stated) for promise, errors in found.items() if errors}


def play(one: Case, seed: int, confidence: float = CONFIDENCE) -> Seen:
    """One session with a ledger of its own. The seed is for its questions; the noise is new every time."""
    about, seen = table(one.table), Seen(confidence)
    with (
        mock.patch("tacit.owner.rows.read_records", return_value=about.records),  # once is enough
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
        tacit.open(
            start=True,
            data=about.data,
            domain=about.domain,
            budget=tacit.Budget(epsilon=1.0, delta=one.delta),
            ledger=Path(name) / "l.tacit",
            anchor=Path(name) / "anchors.sqlite",
            mechanism=one.mechanism,
            confidence=confidence,
            **one.settings,
        ) as session,
    ):
        one.asks(session, about, seed, seen)
        return seen


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
