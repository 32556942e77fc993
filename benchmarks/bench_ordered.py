"""What noise made for ranges could give a release of interactions, at best: nothing that would pay for a new question.

    python -m benchmarks.bench_ordered [--tables adult bank flights diamonds] [--epsilon 1]

The numbers of an interaction have independent noise. A strategy for ranges (prefixes, trees, convolutions) would make
it dependent along an ordered attribute: surer in ranges, less sure in single values, for the same price. Printed is the
best that any strategy does, as the ratio of the noise's deviation in answers put together from the release: of the best
for ranges alone, and of the best for ranges and single values alike. No fit is made: it takes off noise of either kind.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.catalogue import TABLES
from benchmarks.accuracy.questions import boxes, cells
from benchmarks.accuracy.tables import SEED, Table
from tacit.exact.price import total
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.allocation import allocation

DELTA, ROUNDS, QUESTIONS = 1e-9, 500, 3_000
ALIKE = 0.5  # of the weight, for single values
PARTS = (None, 0.0, ALIKE)  # None: independent noise
Floats = NDArray[np.float64]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_ordered", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult", "bank", "flights", "diamonds"], choices=list(TABLES))
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args(arguments)
    print("noise over independent noise in ranges and in single values: best for ranges, and best for both")
    for size in (5, 8, 10, 17, 32, 100):
        alone = [_ratios(size, part) for part in (0.0, ALIKE)]
        print(f"{size:>5} values" + "".join(f"{ranges:>10.2f}{values:>8.2f}" for ranges, values in alone))
    for name in options.tables:
        table = TABLES[name]()
        ordered = [str(table.domain[one].size) for one in table.domain if table.domain[one].ordered]
        print(f"\n{table.name}: ordered attributes of {', '.join(ordered)} values; epsilon = {options.epsilon:g}")
        print(f"{'':<24}{'for ranges':>12}{'for both':>12}")
        for kind, ratios in _compared(table, options.epsilon).items():
            print(f"{kind:<24}" + "".join(f"{ratio:>12.3f}" for ratio in ratios), flush=True)


def _compared(table: Table, epsilon: float) -> dict[str, list[float]]:
    rng = np.random.Generator(np.random.PCG64(SEED))
    asked = {
        "boxes of 1 to 3": boxes(table.domain, QUESTIONS, rng, (1, 2, 3)),
        "2-way cells": cells(table.domain, 2, QUESTIONS, rng),
        "3-way cells": cells(table.domain, 3, QUESTIONS, rng),
    }
    plan = allocation(table.domain, table.rows)
    bought = plan.precisions(float(total(Budget(epsilon=epsilon, delta=DELTA))))
    precisions = {scope: one for scope, one in zip(plan.scopes, bought.tolist(), strict=True) if one > 0}
    found = {}
    for kind, queries in asked.items():
        plain, *others = ([_deviation(table.domain, query, precisions, part) for query in queries] for part in PARTS)
        found[kind] = [float(np.mean(other) / np.mean(plain)) for other in others]
    return found


def _deviation(domain: Domain, query: Query, precisions: dict[tuple[str, ...], float], part: float | None) -> float:
    """Of the noise in the answer: the interactions of the query's attributes, each with its part of the query."""
    means, spreads = {}, {}
    for factor in query.factors:
        (name,), weights = factor.scope, factor.weights / factor.unit
        attribute = domain[name]
        ordered = part is not None and attribute.ordered and attribute.bins > 2
        noise = best(attribute.size, attribute.bins, part or 0.0) if ordered else _centring(attribute.size)
        means[name], spreads[name] = float(weights.mean()) ** 2, float(weights @ noise @ weights)
    found = 0.0
    for size in range(1, len(means) + 1):
        for scope in combinations(sorted(means), size):
            if scope in precisions:
                rest = math.prod(mean for name, mean in means.items() if name not in scope)
                found += rest * math.prod(spreads[name] for name in scope) / precisions[scope]
    return math.sqrt(found)


@lru_cache
def best(size: int, bins: int, part: float) -> Floats:
    """The covariance of least error in ranges of the first `bins` values (and single ones, by `part`) at equal price.

    With W the mean of the questions' squares and M the precision, tr(W M^-1) is to be least while r' M r <= 1 for what
    a row adds, and for the difference of any two, both over what they are with independent noise. There
    M^-1 W M^-1 = D, a sum of r r' with weights; so M = D^-1/2 (D^1/2 W D^1/2)^1/2 D^-1/2, and the weights are a fixed
    point: what costs more than the rest gets more (as Denisov et al. 2022 find strategies).
    """
    basis = np.linalg.svd(_centring(size))[0][:, : size - 1]  # of all that sums to 0
    asked = basis.T @ _asked(size, bins, part) @ basis
    first, second = np.triu_indices(size, 1)
    rows = np.concatenate([basis / math.sqrt(1 - 1 / size), (basis[first] - basis[second]) / math.sqrt(2)])
    weights = np.full(len(rows), 1 / len(rows))
    for _ in range(ROUNDS):
        root = _root(rows.T @ (weights[:, None] * rows))
        inverse = np.linalg.inv(root)
        precision = inverse @ _root(root @ asked @ root) @ inverse
        prices = ((rows @ precision) * rows).sum(axis=1)
        weights *= prices / prices.max()
        weights /= weights.sum()
    covariance = basis @ np.linalg.inv(precision / prices.max()) @ basis.T
    plain, questions = _centring(size), _asked(size, bins, part)
    return covariance if (questions * covariance).sum() < (questions * plain).sum() else plain


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 1e-15))) @ vectors.T)


def _asked(size: int, bins: int, part: float) -> Floats:
    ranges = [[low <= at < high for at in range(size)] for low in range(bins) for high in range(low + 1, bins + 1)]
    squares = [_squares(np.array(some, dtype=np.float64)) for some in (ranges, np.eye(size))]
    return np.asarray((1 - part) * squares[0] + part * squares[1])


def _squares(questions: Floats) -> Floats:
    apart = questions - questions.mean(axis=1, keepdims=True)
    found = apart.T @ apart
    return np.asarray(found / np.trace(found))


def _centring(size: int) -> Floats:
    return np.eye(size) - 1 / size


def _ratios(size: int, part: float) -> tuple[float, float]:
    covariance = best(size, size, part)
    kinds = (_asked(size, size, one) for one in (0.0, 1.0))
    ranges, values = (math.sqrt(float((kind * covariance).sum() / np.trace(kind))) for kind in kinds)
    return ranges, values


if __name__ == "__main__":
    main(sys.argv[1:])
