"""Bands and intervals cover what they say, over many releases, and are not much wider than they need to be.

A coverage of at least 95% is rejected if so few releases were covered that a chance of 95% would give that with a
probability below 1e-9. Each test has a control that is narrower and must be rejected. The sampler that releases use
draws its bits from a seed here, so that every run finds the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.exact.price import noise_for
from tacit.model.attribute import integer
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.workload import leaves
from tacit.release.noise_sum import half_widths
from tacit.release.ranges.choice import About, choose
from tacit.release.ranges.distribution import Distribution
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import sensitivity as strategy_sensitivity
from tacit.trusted.sensitivity import truth as strategy_truth

SHARES = (0.1, 0.5, 0.9)
FEW = 300  # releases, of which half the width is seen to fail
CASES: list[tuple[Measure, About, bool]] = [
    ("epsilon", "intervals", False),
    ("epsilon", "thresholds", True),
    ("rho", "intervals", False),
    ("rho", "intervals", True),
    ("rho", "thresholds", False),
    ("rho", "thresholds", True),
]


@dataclass(frozen=True, eq=False)
class Runs:
    """What many releases of one table said."""

    truth: NDArray[np.float64]
    largest: NDArray[np.float64]  # error over all prefixes, of each run
    least_squares: NDArray[np.float64]  # the same before projection
    intervals: NDArray[np.float64]  # over all intervals
    half_width: float
    interval_half_width: float
    quantiles: NDArray[np.int64]  # run, share, (first, bin, last)
    ranks: NDArray[np.float64]  # run, share: the error of the rank by which a quantile is judged
    rank_bars: NDArray[np.float64]  # share: how far it may be off
    bars: NDArray[np.bool_]  # run, range: whether it was covered
    means: NDArray[np.float64]  # run, (error, error bar)


def right_quantile(truth: NDArray[np.float64], share: float) -> int:
    return int(np.argmax(truth[1:] >= share * truth[-1]))


def releases(exact: NDArray[np.int64], noise: Noise, number: int) -> NDArray[np.int64]:
    """So many noisy vectors, by the sampler itself, on the bits of a seed in place of the system's."""
    with mock.patch("os.urandom", np.random.Generator(np.random.PCG64(17)).bytes):
        first, second = (add_noise(np.tile(exact, number), noise) for _ in range(2))
    with mock.patch("os.urandom", np.random.Generator(np.random.PCG64(17)).bytes):
        again = add_noise(np.tile(exact, number), noise)
    assert (again == first).all()  # all its bits are these
    assert (second != first).any()
    return first.reshape(number, -1)


@cache
def runs(measure: Measure, about: About, missing: bool, number: int, bins: int = 128) -> Runs:
    domain = Domain({"x": integer(0, bins - 1, **({"missing": "unknown"} if missing else {}))})  # type: ignore[arg-type]
    chance = np.random.default_rng(17)
    shares = np.append(chance.dirichlet(np.full(bins, 5.0)), 0.1 if missing else 0.0)
    counts = chance.multinomial(20_000, shares / shares.sum())[: domain["x"].size].astype(np.int64)
    records = Records(domain, [np.arange(domain["x"].size, dtype=np.uint16)], counts)
    strategy = choose("x", leaves(domain["x"]), measure, about=about).strategy
    loss = Loss.of(measure, 0.1 if measure == "epsilon" else 0.002)
    noise = noise_for(loss, strategy_sensitivity(strategy, domain), 1)
    exact = strategy_truth(strategy, records)
    drawn = releases(exact, noise, number)
    truth = np.concatenate([[0], np.cumsum(counts[:bins])]).astype(np.float64)
    middle = float(np.arange(bins) @ counts[:bins]) / truth[-1]
    ends = np.sort(chance.integers(0, bins, (20, 2)), axis=1)
    inside = truth[ends[:, 1] + 1] - truth[ends[:, 0]]
    found: dict[str, list[object]] = {name: [] for name in ("most", "raw", "interval", "q", "rank", "bars", "mean")}
    for values in drawn:
        said = Distribution(
            Measured(
                key="k", question=strategy, values=values, unit=1, noise=noise, cost=loss, receipt=Receipt(1, "s")
            ),
            domain,
            records.rows,
        )
        error = said.prefixes - truth
        found["most"].append(np.abs(error).max())
        found["raw"].append(np.abs(said._raw[: bins + 1] - truth).max())
        found["interval"].append(np.ptp(error))
        found["q"].append([(q.first, q.bin, q.last) for q in map(said.quantile, SHARES)])
        at = [right_quantile(truth, share) for share in SHARES]
        found["rank"].append(
            [
                said._raw[t] - truth[t] - share * (said._raw[bins] - truth[-1])
                for t, share in zip(at, SHARES, strict=True)
            ]
        )
        bars = said.counts(ends[:, 0], ends[:, 1])
        found["bars"].append(np.abs(bars.values - inside) <= bars.errors)
        mean = said.mean()
        found["mean"].append((abs(mean.value - middle), mean.error))
    return Runs(
        truth,
        np.array(found["most"]),
        np.array(found["raw"]),
        np.array(found["interval"]),
        said.half_width,
        min(float(said.rows), math.floor(said._band.intervals + 1 + 1e-6)),
        np.array(found["q"]),
        np.array(found["rank"]),
        np.array([half_widths(noise, said._rank_variance(s)[t], 0.95) for t, s in zip(at, SHARES, strict=True)]),
        np.array(found["bars"]),
        np.array(found["mean"]),
    )


def rejected(covered: NDArray[np.bool_]) -> bool:
    return bool(binom.cdf(int(covered.sum()), covered.size, 0.95) < 1e-9)


def check(seen: Runs) -> None:
    assert not rejected(seen.largest <= seen.half_width)
    assert not rejected(seen.intervals <= seen.interval_half_width)
    # Not wider than needed: against the error before projection, which does not depend on the data.
    assert seen.half_width <= 1.5 * np.quantile(seen.least_squares, 0.95)
    for place, share in enumerate(SHARES):
        right = right_quantile(seen.truth, share)
        first, bins, last = seen.quantiles[:, place].T
        assert not rejected((first <= right) & (right <= last))
        assert seen.rank_bars[place] <= 1.5 * np.quantile(np.abs(seen.ranks[:, place]), 0.95)
        needed = np.quantile(bins, 0.975) - np.quantile(bins, 0.025) + 1
        assert np.mean(last - first + 1) <= 2 * needed + 1  # in bins: the outermost of all that are accepted
    for one in seen.bars.T:
        assert not rejected(one)
    assert not rejected(seen.means[:, 0] <= seen.means[:, 1])


@pytest.mark.parametrize(("measure", "about", "missing"), CASES)
def test_coverage(measure: Measure, about: About, missing: bool) -> None:
    seen = runs(measure, about, missing, FEW)
    check(seen)
    # The controls: half the width, and an interval of one bin, must be seen to fail.
    assert rejected(seen.least_squares <= seen.half_width / 2)
    assert rejected(seen.quantiles[:, 1, 1] == right_quantile(seen.truth, 0.5))
    assert rejected(seen.means[:, 0] <= seen.means[:, 1] / 3)


def test_a_quantile_at_a_cliff_is_covered_too() -> None:
    # All rows are in the first bin or in one near the end, and the quantile lies just after the first half: the worst
    # place. The control uses the same bars around the projected prefixes, where imprecise ones pull precise ones along.
    bins, rows, cliff = 512, 10_000, 509
    domain = Domain({"x": integer(0, bins - 1)})
    strategy, loss = choose("x", bins, "epsilon").strategy, Loss.of("epsilon", 0.1)
    noise = noise_for(loss, strategy_sensitivity(strategy, domain), 1)
    records = Records(domain, [np.array([0, cliff], dtype=np.uint16)], np.array([rows // 2, rows // 2]))
    exact, share = strategy_truth(strategy, records), 0.5 + 1e-9
    covered, projected = [], []
    for values in releases(exact, noise, 400):
        said = Distribution(
            Measured(
                key="k", question=strategy, values=values, unit=1, noise=noise, cost=loss, receipt=Receipt(1, "s")
            ),
            domain,
            rows,
        )
        found = said.quantile(share)
        covered.append(found.first <= cliff <= found.last)
        said._raw = said._prefixes
        wrong = said.quantile(share)
        projected.append(wrong.first <= cliff <= wrong.last)
    assert not rejected(np.array(covered))
    assert rejected(np.array(projected))


@pytest.mark.audit
@pytest.mark.parametrize(("measure", "about", "missing"), CASES)
@pytest.mark.parametrize("bins", [128, 1024])
def test_coverage_over_two_thousand_releases(
    measure: Measure, about: About, missing: bool, bins: int, size: float
) -> None:
    seen = runs(measure, about, missing, max(FEW, round(size * 2000)), bins)
    check(seen)
    finer = size >= 1  # the controls of a part of the audit are those of few releases
    assert rejected(seen.least_squares <= seen.half_width * (0.8 if finer else 0.5))
    assert rejected(seen.means[:, 0] <= seen.means[:, 1] / (2 if finer else 3))
