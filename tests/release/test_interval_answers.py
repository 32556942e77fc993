"""What one release says: all answers agree with each other, and with the data where there is no noise."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curators import open_curator, public_of
from support import calls
from tacit.errors import InvalidQuery
from tacit.model.attribute import integer, numeric
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.workload import Convolution, Strategy, Tree, leaves, marginal
from tacit.release.noise_sum import half_widths
from tacit.release.ranges.choice import choose
from tacit.release.ranges.distribution import Distribution
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth as strategy_truth

BINS = 40
DOMAIN = Domain({"age": integer(10, 10 + 2 * BINS - 1, width=2, missing="unknown"), "pay": integer(0, BINS - 1)})
STRATEGIES: list[Tree | Convolution] = [
    Tree("pay", (5, 8), (2, 3)),
    Convolution("pay", 50, cyclic=True),
    Convolution("pay", 48, cyclic=False),
    Tree("age", (3, 4, 4), (1, 1, 1)),
    Convolution("age", 50, cyclic=True),
    Convolution("age", 48, cyclic=False),
]


def cells(rows: int = 5000) -> tuple[Records, np.ndarray, np.ndarray]:
    """Records over both attributes, and the true counts of each, the missing ages last."""
    chance = np.random.default_rng(11)
    age = np.minimum(chance.poisson(12, rows), BINS)  # BINS: missing
    age[:100] = BINS
    pay = np.minimum(chance.geometric(0.1, rows), BINS - 1)
    found, counts = np.unique(np.stack([age, pay]), axis=1, return_counts=True)
    records = Records(DOMAIN, [found[0].astype(np.uint8), found[1].astype(np.uint8)], counts.astype(np.int64))
    return records, np.bincount(age, minlength=BINS + 1), np.bincount(pay, minlength=BINS)


RECORDS, AGES, PAYS = cells()


def release(strategy: Strategy, *, scale: float, seed: int = 0) -> Measured:
    """A measurement with simulated noise of this scale (1e-9 of a step: none)."""
    kind = "laplace" if isinstance(strategy, Tree) else "gaussian"
    truth = strategy_truth(strategy, RECORDS)
    chance = np.random.default_rng(seed)
    drawn = chance.laplace(size=truth.size) if kind == "laplace" else chance.normal(size=truth.size)
    values = truth + np.rint(scale * drawn).astype(np.int64)
    noise = Noise("laplace" if kind == "laplace" else "gaussian", scale)
    return Measured(
        key="k",
        question=strategy,
        values=values,
        unit=1,
        noise=noise,
        cost=Loss.of("rho", 0.1),
        receipt=Receipt(1, "s"),
    )


def noisy(strategy: Tree | Convolution, seed: int = 0) -> Distribution:
    scale = 30.0 if isinstance(strategy, Tree) else 30.0 * 2**16
    return Distribution(release(strategy, scale=scale, seed=seed), DOMAIN, RECORDS.rows)


def true_counts(strategy: Tree | Convolution) -> np.ndarray:
    return (AGES if strategy.name == "age" else PAYS)[:BINS]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_noise_all_answers_are_true(strategy: Tree | Convolution) -> None:
    found = Distribution(release(strategy, scale=1e-6), DOMAIN, RECORDS.rows)
    counts = true_counts(strategy)
    prefixes = np.concatenate([[0], np.cumsum(counts)])
    np.testing.assert_allclose(found.prefixes, prefixes, atol=1e-9)
    np.testing.assert_allclose(found.histogram(range(BINS + 1)).values, counts, atol=1e-9)
    np.testing.assert_allclose(found.cdf().values, prefixes[1:], atol=1e-9)
    first, last = np.triu_indices(BINS)
    np.testing.assert_allclose(found.counts(first, last).values, prefixes[last + 1] - prefixes[first], atol=1e-9)
    for share in (0.01, 0.25, 0.5, 0.75, 0.99):
        quantile = found.quantile(share)
        expected = int(np.argmax(prefixes[1:] >= share * prefixes[-1]))
        assert (quantile.first, quantile.bin, quantile.last) == (expected, expected, expected)
    middles = np.arange(BINS) * 2 + 10.5 if strategy.name == "age" else np.arange(BINS)
    mean = found.mean()
    assert mean.value == pytest.approx(middles @ counts / counts.sum())
    assert mean.rounding == (0.5 if strategy.name == "age" else 0.0)
    assert mean.error < 1e-3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_answers_agree_with_each_other(strategy: Tree | Convolution) -> None:
    found = noisy(strategy)
    prefixes = found.prefixes
    assert prefixes[0] == 0
    assert (np.diff(prefixes) >= 0).all()
    assert prefixes[-1] <= RECORDS.rows
    if strategy.name == "pay":
        assert prefixes[-1] == RECORDS.rows
    fine, coarse = found.histogram(range(BINS + 1)), found.histogram([0, 7, 20, BINS])
    assert coarse.values.tolist() == [fine.values[a:b].sum() for a, b in ((0, 7), (7, 20), (20, BINS))]
    assert fine.values.sum() == prefixes[-1]
    assert found.counts(3, 9).values == fine.values[3:10].sum()
    assert found.cdf().values.tolist() == prefixes[1:].tolist()
    median = found.quantile(0.5)
    assert prefixes[median.bin] < prefixes[-1] / 2 <= prefixes[median.bin + 1]
    assert median.first <= median.bin <= median.last
    assert found.mean().value == pytest.approx(
        float(np.diff(prefixes) @ (np.arange(BINS) * 2 + 10.5 if strategy.name == "age" else np.arange(BINS)))
        / prefixes[-1]
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_release_gives_the_same_answers(strategy: Tree | Convolution) -> None:
    one, two = noisy(strategy), noisy(strategy)
    assert one.prefixes.tobytes() == two.prefixes.tobytes()
    assert one.half_width == two.half_width
    assert one.quantile(0.3) == two.quantile(0.3)
    assert one.mean() == two.mean()


def test_the_band_is_wider_than_single_bars_and_narrower_than_n() -> None:
    for strategy in STRATEGIES:
        found = noisy(strategy)
        bars = found.counts(np.zeros(BINS - 1, dtype=int), np.arange(BINS - 1)).errors
        assert np.median(bars) < found.half_width < found._band.intervals < RECORDS.rows


def test_bad_ranges_are_refused_and_said_to_cost_nothing() -> None:
    found = noisy(STRATEGIES[0])
    for first, last in ((-1, 3), (0, BINS), (5, 3)):
        with pytest.raises(InvalidQuery):
            found.counts(first, last)
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidQuery):
            found.quantile(share)
    for cuts in ([0], [0, 0, 3], [3, 1], [0, BINS + 1]):
        with pytest.raises(InvalidQuery):
            found.histogram(cuts)
    assert found.counts([], []).values.size == 0


def test_other_measurements_are_refused() -> None:
    measured = release(STRATEGIES[0], scale=1.0)
    wrong = Measured(
        key="k",
        question=marginal(DOMAIN, "pay"),
        values=measured.values,
        unit=1,
        noise=measured.noise,
        cost=measured.cost,
        receipt=measured.receipt,
    )
    with pytest.raises(TypeError):
        Distribution(wrong, DOMAIN, RECORDS.rows)


def test_real_numbers_are_rounded_by_half_the_widest_bin() -> None:
    domain = Domain({"x": numeric([0, 1, 4, 10])})
    strategy = Tree("x", (3,), (1,))
    measured = Measured(
        key="k",
        question=strategy,
        values=np.array([10, 20, 10]),
        unit=1,
        noise=Noise("laplace", 0.01),
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(1, "s"),
    )
    mean = Distribution(measured, domain, 40).mean()
    assert mean.value == pytest.approx((10 * 0.5 + 20 * 2.5 + 10 * 7) / 40)
    assert mean.rounding == 3.0


def test_ranges_of_a_million_bins_are_answered_all_at_once() -> None:
    domain = Domain({"x": integer(0, 2**20 - 1)})
    for measure in ("epsilon", "rho"):
        strategy = choose("x", 2**20, measure).strategy
        values = np.random.default_rng(0).integers(0, 100, strategy.size(domain))
        noise = Noise("laplace" if measure == "epsilon" else "gaussian", 10.0)
        found = Distribution(
            Measured(
                key="k",
                question=strategy,
                values=values,
                unit=1,
                noise=noise,
                cost=Loss.of(measure, 0.1),
                receipt=Receipt(1, "s"),
            ),
            domain,
            99,
        )
        ends = np.sort(np.random.default_rng(1).integers(0, 2**20, (20_000, 2)), axis=1)
        assert calls(found.counts, ends[:, 0], ends[:, 1]) < 1_000  # for 20,000 of them


@pytest.mark.real_noise
@pytest.mark.parametrize("budget", [Budget(epsilon=1.0, delta=0.0), Budget(epsilon=1.0, delta=1e-9)])
@pytest.mark.parametrize("name", ["age", "pay"])
def test_a_release_through_the_curator_is_paid_once_and_read_back(tmp_path: Path, budget: Budget, name: str) -> None:
    ages = [10 + 2 * i for i in range(BINS)] * 50 + [None] * 100
    table = pa.table({"age": ages, "pay": [i % BINS for i in range(len(ages))]})
    curator = open_curator(tmp_path, table, DOMAIN, budget)
    choice = choose(name, leaves(DOMAIN[name]), budget.measure)
    measured = curator.measure([choice.strategy], public_of(curator).total)[0]
    assert public_of(curator).left.atoms < 10
    again = curator.measure([choice.strategy], Loss.of(budget.measure, 0.5))[0]
    assert again.values.tolist() == measured.values.tolist()
    stored = next(iter(public_of(curator).released()))
    one, two = (Distribution(m, DOMAIN, public_of(curator).rows) for m in (measured, stored))
    assert one.prefixes.tobytes() == two.prefixes.tobytes()
    truth = np.concatenate([[0], np.cumsum([50] * BINS if name == "age" else np.bincount(np.arange(2100) % BINS))])
    band = Distribution(measured, DOMAIN, public_of(curator).rows, confidence=1 - 1e-10).half_width
    assert np.abs(one.prefixes - truth).max() <= band < 2100  # false alarm: 1e-10
    curator._ledger.close()


def weighed(distribution: Distribution, query: Query, confidence: float) -> tuple[int, int, float]:
    """The value of a question, how far it can be off, and its bar: leaf by leaf, by the formulas in the docstrings."""
    weights = query.table((distribution.name,), (distribution.attribute.size,))[: distribution.decoder.leaves]
    value = int(weights @ np.diff(distribution.whole).astype(np.int64))
    inside = weights / query.unit
    for side in (inside, 1 - inside):
        ends = np.flatnonzero(side)
        if (side[ends] == 1).all() and ends.size and ends[-1] - ends[0] + 1 == ends.size:
            spread = float(distribution.decoder.interval_variance(int(ends[0]), int(ends[-1]) + 1))
            distinct = distribution.decoder.distinct
            break
    else:
        spread, distinct = float(distribution.decoder.functional_variance(inside)), None
    given = () if distinct is None else (distinct,)
    bar = query.unit * float(half_widths(distribution.noise, np.float64(spread), confidence, *given))
    raw, most = float(weights @ np.diff(distribution._raw)), float(distribution.rows * query.unit)
    low, high = max(0.0, raw - bar), min(most, raw + bar)
    return value, max(1, math.floor(max(high - value, value - low) + query.unit * 1e-6)), bar


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_read_off_runs_of_leaves_is_what_is_added_up_leaf_by_leaf(strategy: Tree | Convolution) -> None:
    distribution, chance = noisy(strategy), np.random.default_rng(23)
    size, name = distribution.attribute.size, strategy.name
    sets = [range(3, 9), range(BINS), range(5), range(30, size), [0, 7], [*range(5), *range(9, size)], range(12, 13)]
    asked = [Query.among(DOMAIN, name, some) for some in sets]
    asked += [Query.weighted(DOMAIN, [name], np.round(chance.random(size), digits)) for digits in (0, 1, 5)]
    asked += [Query.weighted(DOMAIN, [name], np.repeat(chance.random(BINS // 8), 8)[:size])] if size == BINS else []
    asked += [~query for query in asked]
    told = [query for query in asked if not query.is_constant and distribution.covers(query)]
    assert len(told) >= 12
    for query in told:
        value, reach, bar = weighed(distribution, query, 0.95)
        assert distribution.value(query) == value
        assert distribution.reach(query, value, 0.95) == reach
        assert distribution.law(query, 0.95) == pytest.approx(bar, rel=1e-9)
    rest = [query for query in asked if not query.is_constant and query not in told]
    for query in rest:  # what is missing weighs otherwise than what is behind the last bin
        beyond = query.table((name,), (size,))[BINS:]
        assert len(set(beyond.tolist())) > 1
