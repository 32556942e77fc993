"""DatabaseSample, and the claims of Roth & Roughgarden 2010, lemmas 5.6 and 5.7, about what it gives.

Bounds hold with probability 1 - 1e-9 or more over the seeds, by Chebyshev's, Hoeffding's or the union bound; the seeds
are fixed. Every claim has a control that it must reject.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta, binom

from tacit.errors import InvalidDomain
from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers.fractions import Fractions
from tacit.theory.median_efficient import database_sample, population

DOMAIN = Domain({"a": integer(0, 9), "b": integer(0, 9), "c": integer(0, 9)})
SIX = 6.5  # standard deviations that a mean of many draws stays within, but for 1e-10


def ks(values: NDArray[np.float64], law: object) -> float:
    ordered = np.sort(values)
    return float(np.abs(law.cdf(ordered) - (np.arange(len(ordered)) + 0.5) / len(ordered)).max())  # type: ignore[attr-defined]


def median(ensemble: Fractions, query: Query) -> float:
    """What the ensemble answers: the lower median of its values."""
    return float(np.sort(ensemble.values(query))[(len(ensemble) - 1) // 2])


def repetitions(records: NDArray[np.int64]) -> int:
    """How many pairs of rows are equal."""
    _, counts = np.unique(records, axis=0, return_counts=True)
    return int((counts * (counts - 1) // 2).sum())


def test_a_mass_of_the_population_is_beta() -> None:
    cells = 50
    firsts = np.array([population(cells, seed)[0] for seed in range(20_000)])
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * len(firsts)))
    assert ks(firsts, beta(1, cells - 1)) < limit
    assert ks(firsts, beta(1.2, 1.2 * (cells - 1))) > limit, "the control"


def test_the_urn_is_the_population_s_law() -> None:
    """Three rows over two cells: all equal with probability E[F^3 + (1-F)^3] = 1/2, against 1/4 for uniform rows."""
    coin = Domain({"side": integer(0, 1)})
    runs = 20_000
    same = sum(len(set(database_sample(coin, 3, seed).ravel().tolist())) == 1 for seed in range(runs))
    assert binom.ppf(1e-10, runs, 0.5) <= same <= binom.isf(1e-10, runs, 0.5)
    assert not binom.ppf(1e-10, runs, 0.25) <= same <= binom.isf(1e-10, runs, 0.25)


@pytest.mark.parametrize(("rows", "runs"), [(30, 3_000), (200, 800)])
def test_repeated_records(rows: int, runs: int) -> None:
    """C(n, 2) 2 / (|X| + 1) for DatabaseSample, twice as many as for uniform databases: each rejects the other's."""
    pairs = math.comb(rows, 2)
    expected = {"sampled": pairs * 2 / (DOMAIN.size + 1), "uniform": pairs / DOMAIN.size}
    rng = np.random.default_rng(1)
    found = {
        "sampled": np.array([repetitions(database_sample(DOMAIN, rows, seed)) for seed in range(runs)]),
        "uniform": np.array([repetitions(rng.integers(10, size=(rows, 3))) for _ in range(runs)]),
    }
    for law, mean in expected.items():
        for drawn, counts in found.items():
            error = abs(counts.mean() - mean) / (counts.std() / math.sqrt(runs))
            assert (error < SIX) == (law == drawn), (law, drawn, error)


def test_small_databases_are_almost_uniform() -> None:
    """Lemma 5.7: 30 rows of 10^12 cells repeat with probability at most n^2 / |X|, so they are uniform rows."""
    large = Domain({f"digit {i}": integer(0, 9) for i in range(12)})
    assert sum(repetitions(database_sample(large, 30, seed)) for seed in range(100)) == 0
    digits = np.concatenate([database_sample(large, 30, seed).ravel() for seed in range(100)])
    counts = np.bincount(digits, minlength=10)
    assert (binom.ppf(1e-11, len(digits), 0.1) <= counts).all()
    assert (counts <= binom.isf(1e-11, len(digits), 0.1)).all()


def random_queries(rng: np.random.Generator, number: int) -> list[Query]:
    return [
        Query.all(Query.among(DOMAIN, name, rng.permutation(10)[:7].tolist()) for name in DOMAIN.names)
        for _ in range(number)
    ]


def value(query: Query, records: NDArray[np.int64]) -> float:
    weights = query.table(DOMAIN.names, DOMAIN.shape)
    return float(weights[tuple(records.T)].mean() / query.unit)


def test_the_median_of_samples_serves_almost_all_databases() -> None:
    """With nothing released, medians answer 30 queries about a typical database within alpha; not about an odd one.

    A query of weight s has Beta(s|X|, (1-s)|X|) value on a random population, deviation at most 1 / 2 sqrt(|X|), and
    the n rows add as much as 1 / 2 sqrt(n); alpha is seven deviations of both.
    """
    rows = 20_000
    alpha = 7 * 0.5 * (1 / math.sqrt(DOMAIN.size) + 1 / math.sqrt(rows))
    ensemble = Fractions.start(DOMAIN, 200, seed=2)
    queries = random_queries(np.random.default_rng(3), 30)
    typical = database_sample(DOMAIN, rows, seed=4)
    errors = [abs(median(ensemble, query) - value(query, typical)) for query in queries]
    assert max(errors) < alpha
    odd = np.zeros((rows, 3), dtype=np.int64)
    assert max(abs(median(ensemble, query) - value(query, odd)) for query in queries) > 2 * alpha
    # One answer about the odd database is all it takes to come nearer to it.
    told = ensemble.restrict(queries[0], value(queries[0], odd), 0.02)
    assert abs(median(told, queries[0]) - value(queries[0], odd)) <= 0.02


def test_rows_are_counted() -> None:
    assert database_sample(DOMAIN, 0, seed=1).shape == (0, 3)
    assert (database_sample(DOMAIN, 9, seed=1) == database_sample(DOMAIN, 9, seed=1)).all()
    with pytest.raises(InvalidDomain):
        database_sample(DOMAIN, -1, seed=1)
