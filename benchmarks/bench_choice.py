"""What choosing by the data what a start measures could give, at best: little from epsilon 1 on.

    python -m benchmarks.bench_choice [--tables adult bank flights diamonds] [--epsilon 0.1 0.3 1 3] [--runs 0]

How precisely a start measures each interaction of attributes follows from public sizes alone. A mechanism that looks
first, as AIM does, can measure what is strong and leave out what is weak, and pays for its looks. Here an oracle knows
for nothing how strong every interaction is: what its table is beyond what the tables within it foretell. Printed is the
root of the mean squared error to expect of a question, in rows, by public sizes and by the oracle, and how many pairs
and triples each of them buys. With `--runs` both are bought and fitted, each for the whole budget, and the ratio of the
mean errors of boxes of up to three attributes and of cells of three is printed too.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.questions import Truth, boxes, cells
from benchmarks.accuracy.tables import SEED, Table
from benchmarks.accuracy.ways import warm_started
from tacit.exact.price import total
from tacit.model.budget import Budget
from tacit.release.allocation import Allocation, allocation
from tacit.release.hypothesis.terms import centred

DELTA, QUESTIONS = 1e-9, 1_500
_ROUNDS, _HALVINGS = 30, 200
_WEAKEST = 1e-9  # rows squared
_RESTED_ON = 0.02  # of the usual precision, for pairs that the oracle would leave out: triples and the fit rest on them
Floats = NDArray[np.float64]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_choice", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "bank", "flights", "diamonds"], choices=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--runs", type=int, default=0, help="of starts that are bought, besides the formula")
    options = parser.parse_args(arguments)
    print(
        f"{'':<28}{'sizes':>8}{'oracle':>8}{'ratio':>7}   bought by each, all   " + "boxes, cells" * (options.runs > 0)
    )
    for name in options.tables:
        table = TABLES[name]()
        plan = allocation(table.domain, table.rows)
        known = strengths(table, plan)
        for epsilon in options.epsilon:
            budget = Budget(epsilon=epsilon, delta=DELTA)
            usual = plan.precisions(float(total(budget)))
            best = oracle(plan, usual, known)
            orders = np.array([len(scope) for scope in plan.scopes])
            error, least = (expected(plan, one, known) for one in (usual, best))
            many = ", ".join(str(np.count_nonzero(one[orders > 1])) for one in (usual, best, orders))
            figures = f"{error:>8.1f}{least:>8.1f}{least / error:>7.2f}   {many:<20}"
            print(f"{table.name[:16]:<16} epsilon {epsilon:<4g}{figures}", end="" if options.runs else "\n")
            if options.runs:
                ratios = _bought(table, budget, plan, known, options.runs)
                print("  " + ", ".join(f"{ratio:.2f}" for ratio in ratios), flush=True)


def strengths(table: Table, plan: Allocation) -> Floats:
    """The variance of one number of each interaction, in rows squared, beyond what is foretold of it."""
    found = []
    for scope in plan.scopes:
        shape = [plan.sizes[name] for name in scope]
        counts = table.records.table(list(scope)).reshape(shape).astype(np.float64)
        beyond = centred(counts - _foretold(counts))
        found.append(float((beyond**2).sum()) / math.prod(size - 1 for size in shape) + _WEAKEST)
    return np.array(found)


def _foretold(counts: Floats) -> Floats:
    """The table of most entropy among those with the same sums along every axis (iterative proportional fitting)."""
    found = np.full(counts.shape, counts.sum() / counts.size)
    for _ in range(_ROUNDS if counts.ndim > 1 else 0):
        for axis in range(counts.ndim):
            known, now = counts.sum(axis=axis, keepdims=True), found.sum(axis=axis, keepdims=True)
            found = found * np.divide(known, now, out=np.zeros_like(now), where=now > 0)
    return found


def _costs(plan: Allocation) -> Floats:
    return np.array([math.prod(1 - 1 / plan.sizes[name] for name in scope) for scope in plan.scopes])


def _counts(plan: Allocation) -> Floats:
    return np.array([plan._count(scope) for scope in plan.scopes])


def expected(plan: Allocation, precisions: Floats, known: Floats) -> float:
    """The root of the mean squared error of a question; see `allocation`."""
    return math.sqrt(float((_counts(plan) * known / (1 + known * precisions)).sum()))


def oracle(plan: Allocation, usual: Floats, known: Floats) -> Floats:
    """The precisions of least error among those of the same price, by strengths that nobody has: water-filling."""
    costs, counts = _costs(plan), _counts(plan)
    spent, low, high = float((usual * costs).sum()), -100.0, 100.0
    best = usual
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        best = np.maximum(0, np.sqrt(counts / (math.exp(middle) * costs)) - 1 / known)
        low, high = (middle, high) if float((best * costs).sum()) > spent else (low, middle)
    return best


def _bought(table: Table, budget: Budget, plan: Allocation, known: Floats, runs: int) -> list[float]:
    """The oracle's mean errors over the usual ones: of boxes, and of cells."""
    rng, truth = np.random.Generator(np.random.PCG64(SEED)), Truth(table.records)
    asked = [boxes(table.domain, QUESTIONS, rng, (1, 2, 3)), cells(table.domain, 3, QUESTIONS, rng)]
    usual = Allocation.precisions

    def knowing(self: Allocation, rho: float) -> Floats:
        found = usual(self, rho)
        best = oracle(self, found, known)
        few = np.array([len(scope) <= 2 for scope in self.scopes])
        return np.where(few, np.maximum(best, _RESTED_ON * found), best)

    errors = np.zeros((2, len(asked)))
    for _ in range(runs):
        for way, precisions in enumerate((usual, knowing)):
            with (
                patch.object(Allocation, "precisions", precisions),
                warm_started()(table, budget, len(asked) * QUESTIONS) as opened,
            ):
                for place, queries in enumerate(asked):
                    errors[way, place] += np.abs(opened.answer(queries) - truth.answer(queries)).mean()
    return [float(ratio) for ratio in errors[1] / errors[0]]


if __name__ == "__main__":
    main(sys.argv[1:])
