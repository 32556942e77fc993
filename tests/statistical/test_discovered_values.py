"""What a look tells has the law that `tests/exact/test_discovery_pmf.py` rests on: told or not, and the counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.exact.price import threshold_of, values_noise
from tacit.model.budget import Loss
from tacit.model.entry import Found
from tacit.model.noise_law import Noise, pmf
from tacit.trusted.cells import Tally
from tacit.trusted.discovery import _values

LOSS, ASIDE = Loss("gdp", 20_000_000_000), 1e-6
VALUES, LOOKS, ALARM = 400, 60, 1e-9
NOISE = values_noise(LOSS, 2)
THRESHOLD = threshold_of(NOISE, 2, ASIDE, intent=3, among=2)
OFF = math.sqrt(math.log(2 / ALARM) / (2 * VALUES * LOOKS))  # Hoeffding: a false alarm once in 10^9 runs


def looks(count: int) -> list[Found]:
    tally = Tally("v", tuple(f"v{i}" for i in range(VALUES)), np.full(VALUES, count, dtype=np.int64), 2)
    found = [_values(tally, LOSS, ASIDE).draw(3, 2) for _ in range(LOOKS)]
    return [one for one in found if isinstance(one, Found)]


def passing(noise: Noise, count: int, least: int = THRESHOLD) -> float:
    return float(pmf(noise, np.arange(least - count, least - count + math.ceil(20 * noise.scale))).sum())


@pytest.mark.parametrize("below", [-1.0, 0.0, 1.0])  # in standard deviations, below the threshold
def test_values_are_told_as_often_as_they_should_be(below: float) -> None:
    count = THRESHOLD - round(below * NOISE.scale)
    told = sum(len(one.values) for one in looks(count)) / (VALUES * LOOKS)
    assert abs(told - passing(NOISE, count)) <= OFF
    if below:  # the controls: half a deviation beside, or with other noise, it would be noticed
        assert abs(told - passing(NOISE, count, THRESHOLD - round(NOISE.scale / 2))) > OFF
        assert abs(told - passing(Noise("gaussian", NOISE.scale * 1.25), count)) > OFF
        assert abs(told - passing(Noise("gaussian", NOISE.scale * 0.8), count)) > OFF


def test_what_is_told_is_the_noisy_count_that_passed() -> None:
    found = looks(THRESHOLD)
    counts = np.array([count for one in found for count in one.counts])
    assert counts.min() >= THRESHOLD
    higher = THRESHOLD + round(NOISE.scale)
    share = (counts >= higher).sum() / (VALUES * LOOKS)
    assert abs(share - passing(NOISE, THRESHOLD, higher)) <= OFF
    assert all(list(one.counts) == sorted(one.counts, reverse=True) for one in found)
