"""Long tails and long conjunctions: errors, bars and how often these hold, beside a fit of what was measured as it is.

    python -m benchmarks.bench_tails [--runs 3] [--epsilon 1]

Tables have one ordered attribute x of a known shape, a dependent one of four values and some of two. A session starts
as `auto` plans it. *plain* is the same with the noisy counts of x fitted as they were measured, in the same run: what a
fit makes of empty bins then is in decision 0065. Errors and bars are in rows, *held* is a share of the questions. Then,
of conjunctions of more conditions than are certified, the bar that is shown over that of a gate (decision 0066).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from tacit.release.hypothesis import fit, mixture_problem
from tacit.release.online import Online
from tacit.session import Session

DELTA, RANGES, SEED = 1e-9, 300, 20261117
Ints = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Ints]


def _exponential(bins: int, scale: float) -> Draw:
    return lambda rng, rows: np.minimum(rng.exponential(scale, rows).astype(np.int64), bins - 1)


def _rounded(rng: np.random.Generator, rows: int) -> Ints:
    values = np.clip(rng.normal(50, 18, rows), 0, 99).astype(np.int64)
    return np.where(rng.random(rows) < 0.6, values // 10 * 10, values)


def _clumps(rng: np.random.Generator, rows: int) -> Ints:
    first = rng.random(rows) < 0.5
    return np.clip(np.where(first, rng.normal(25, 3, rows), rng.normal(70, 5, rows)), 0, 99).astype(np.int64)


# By name: rows, bins of x, attributes of two values, and how x is drawn.
SHAPES: dict[str, tuple[int, int, int, Draw]] = {
    "exponential, 300 bins": (2_500, 300, 3, _exponential(300, 40)),
    "exponential, 100 bins": (5_000, 100, 6, _exponential(100, 10)),
    "exponential, 60 bins": (5_000, 60, 3, _exponential(60, 6)),
    "two clumps, 100 bins": (10_000, 100, 3, _clumps),
    "rounded, 100 bins": (20_000, 100, 3, _rounded),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args(arguments)
    print(f"{'':<24}{'':<10}{'error':>8}{'plain':>8}{'ratio':>7}{'bar':>8}{'plain':>8}{'held':>7}{'plain':>7}")
    for name in options.shapes:
        rows = SHAPES[name][0]
        found = {plain: _runs(name, options.runs, options.epsilon, plain=plain) for plain in (False, True)}
        for kind in found[False]:
            (error, bar, held), (error_0, bar_0, held_0) = found[False][kind], found[True][kind]
            print(
                f"{name if kind == 'tails of x' else f'  {rows:,} rows':<24}{kind:<10}{error:>8.1f}{error_0:>8.1f}"
                f"{error / error_0:>7.2f}{bar:>8.0f}{bar_0:>8.0f}{held:>7.2f}{held_0:>7.2f}",
                flush=True,
            )
    print("\nconditions      bar    gate   ratio    held    paid")
    for many, (bar, gate, held, paid) in _long(options.epsilon).items():
        print(f"{many:>10}{bar:>9.0f}{gate:>8.0f}{bar / gate:>8.2f}{held:>8.2f}{paid:>8}")


def _runs(name: str, runs: int, epsilon: float, *, plain: bool) -> dict[str, tuple[float, float, float]]:
    found = dict[str, list[tuple[float, float, float]]]()
    for run in range(runs):
        with _as_measured() if plain else tempfile.TemporaryDirectory():
            for kind, one in _one(name, run, epsilon).items():
                found.setdefault(kind, []).append(one)
    return {kind: tuple(np.mean(ones, axis=0)) for kind, ones in found.items()}


@contextmanager
def _as_measured() -> Iterator[None]:
    """Fits that take single attributes as they were measured."""

    def unchanged(interactions: Any, terms: Any, *_: object) -> tuple[Any, Any]:
        return dict(interactions), list(terms)

    with (
        patch.object(fit, "with_likely_singles", unchanged),
        patch.object(mixture_problem, "with_likely_singles", unchanged),
    ):
        yield


def _one(name: str, run: int, epsilon: float) -> dict[str, tuple[float, float, float]]:
    rows, bins, others, draw = SHAPES[name]
    rng = np.random.default_rng([SEED, run])
    x = draw(rng, rows)
    d = np.clip(x / bins * 3 + rng.normal(0, 0.7, rows), 0, 3.99).astype(np.int64)
    table = pd.DataFrame({"x": x, "d": d, **{f"k{i}": rng.random(rows) < 0.5 for i in range(others)}})
    flags = {f"k{i}": tacit.boolean() for i in range(others)}
    domain = tacit.Domain({"x": tacit.integer(0, bins - 1), "d": tacit.integer(0, 3), **flags})
    ends = np.sort(rng.integers(0, bins, (RANGES, 2)), axis=1).tolist()
    with _started(table, domain, epsilon) as session:
        return {
            "tails of x": _held(session, table, [{"x": (low, bins - 1)} for low, _ in ends]),
            "ranges": _held(session, table, [{"x": (low, high)} for low, high in ends]),
            "and d": _held(session, table, [{"x": (low, high), "d": low % 4} for low, high in ends]),
        }


@contextmanager
def _started(table: pd.DataFrame, domain: tacit.Domain, epsilon: float) -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as folder:
        files = {"ledger": Path(folder) / "l.tacit", "anchor": Path(folder) / "a.sqlite"}
        budget = tacit.Budget(epsilon=epsilon, delta=DELTA)
        with tacit.open(data=table, domain=domain, budget=budget, **files) as session:
            session.start()
            yield session


def _held(session: Session, table: pd.DataFrame, asked: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """The mean error and bar of counts, and the share of them whose bar holds."""
    answers = session.ask_many([tacit.count(**where) for where in asked])
    errors = np.array([abs(one.value - _truth(table, where)) for one, where in zip(answers, asked, strict=True)])
    bars = np.array([np.inf if one.error is None else one.error for one in answers])
    return float(errors.mean()), float(bars.mean()), float((errors <= bars).mean())


def _truth(table: pd.DataFrame, where: dict[str, Any]) -> int:
    met = np.ones(len(table), dtype=np.bool_)
    for name, one in where.items():
        column = table[name].to_numpy()
        met &= (column >= one[0]) & (column <= one[1]) if isinstance(one, tuple) else column == one
    return int(met.sum())


def _long(epsilon: float, rows: int = 20_000) -> dict[int, tuple[float, float, float, int]]:
    """Conjunctions of five conditions and more: the bar, a gate's, how many hold, and how many were paid for."""
    rng, letters = np.random.default_rng([SEED, 99]), list("abcd")
    table = pd.DataFrame({f"c{i}": rng.choice(letters, rows, p=[0.4, 0.3, 0.2, 0.1]) for i in range(6)})
    table["age"] = np.clip(rng.normal(50, 18, rows), 0, 99).astype(np.int64)
    groups = {f"c{i}": tacit.category(letters) for i in range(6)}
    found = dict[int, tuple[float, float, float, int]]()
    with _started(table, tacit.Domain({**groups, "age": tacit.integer(0, 99, width=5)}), epsilon) as session:
        mechanism = session._mechanism
        assert isinstance(mechanism, Online)
        gate = mechanism.terms.shown_alone(mechanism.terms.threshold(mechanism._questions))
        for many in (5, 6, 7):
            asked = list[dict[str, Any]]()
            for _ in range(40):
                low, high = np.sort(rng.integers(0, 20, 2)).tolist()
                names = rng.choice(list(groups), many - 1, replace=False).tolist()
                asked.append({"age": (5 * low, 5 * high + 4), **{name: str(rng.choice(letters)) for name in names}})
            before = session.spent.atoms
            _, bar, held = _held(session, table, asked)
            found[many] = bar, gate, held, int(session.spent.atoms > before)
    return found


if __name__ == "__main__":
    main()
