"""Wide Gaussian noise: which draws come from it, where its bits come from, its rounds and limits, and its statistics.

That its law is exact is shown in exact/. The statistics are for what only large scales can get wrong.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf
from scipy.stats import binom

from support import PATIENCE
from tacit.exact import rejection
from tacit.exact import table as noise_table
from tacit.exact.rejection import draw_gaussian, suits
from tacit.model.noise_law import Noise, quantile
from tacit.trusted import noise
from tacit.trusted.noise import add_noise

SCALES = (1024.0, 2.0**16 + 0.3, 1e7, 2.0**30, 2.0**40)
LONG = 5000
TOP, BOTTOM = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def refuse(*args: object, **kwargs: object) -> None:
    raise AssertionError("not to be used here")


@pytest.mark.parametrize("scale", SCALES)
def test_long_wide_gaussian_vectors_come_from_here_and_short_ones_do_not(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(noise.opendp, "sampler", refuse)
        patch.setattr(noise_table, "draw_noise", refuse)
        add_noise(np.zeros(LONG, dtype=np.int64), Noise("gaussian", scale))
    monkeypatch.setattr(rejection, "draw_gaussian", refuse)
    add_noise(np.zeros(1, dtype=np.int64), Noise("gaussian", scale))
    add_noise(np.zeros(LONG, dtype=np.int64), Noise("laplace", scale))


def test_other_noise_is_left_to_the_other_samplers() -> None:
    assert suits(Noise("gaussian", 2.0**10), 160)
    assert suits(Noise("gaussian", 2.0**40), 160)
    assert not suits(Noise("gaussian", 2.0**10), 159)  # a table of 1,280 entries costs as much as 160 draws elsewhere
    assert not suits(Noise("gaussian", 1023.9), 10**6)
    assert not suits(Noise("gaussian", np.nextafter(2.0**40, 2.0**41)), 10**6)
    assert not suits(Noise("laplace", 2.0**20), 10**6)


def test_the_route_is_a_matter_of_size_and_scale_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches a route, and so a duration, chosen by looking at the values.
    seen: list[tuple[Noise, int]] = []
    monkeypatch.setattr(rejection, "suits", lambda noise, size: bool(seen.append((noise, size))))
    for value in (0, 1, -5, TOP, BOTTOM):
        add_noise(np.full(3, value, dtype=np.int64), Noise("gaussian", 1e5))
    assert seen == [(Noise("gaussian", 1e5), 3)] * 5


@pytest.mark.parametrize("scale", SCALES)
def test_the_tables_are_small(scale: float) -> None:
    draw_gaussian(scale, 1)
    cells = rejection.Cells(rejection.Fraction(scale), int(np.log2(scale)) - 6)
    assert len(noise_table._table(cells.law(), 64)[0]) <= rejection._ENTRIES


def test_the_shape_is_kept_and_the_values_are_left_alone() -> None:
    values = np.arange(6000, dtype=np.int64).reshape(60, 100).T[::-1, ::2]
    before = values.copy()
    noisy = add_noise(values, Noise("gaussian", 1e5))
    assert noisy.shape == values.shape
    assert np.count_nonzero(noisy != values) > 2900
    assert (values == before).all()


def test_sums_stop_at_the_limits_of_64_bits() -> None:
    noisy = add_noise(np.array([TOP, BOTTOM] * LONG, dtype=np.int64), Noise("gaussian", 2.0**40))
    assert (noisy[::2] > TOP - 2**46).all()
    assert (noisy[1::2] < BOTTOM + 2**46).all()
    assert TOP in noisy
    assert BOTTOM in noisy


@pytest.mark.parametrize("scale", SCALES)
def test_a_draw_beyond_64_bits_is_no_draw(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its chance is below exp(-2^40). Wrapped around it would be a number that the law does not allow.
    cells = rejection.Cells(rejection.Fraction(scale), int(np.log2(scale)) - 6)
    largest = (1 << 61 - cells.shift) - 1
    monkeypatch.setattr(rejection, "draw", lambda law, count, words, width: np.full(count, largest, dtype=np.int64))
    top = rejection.propose(cells, 3, lambda count: np.full(count, 2**64 - 2, dtype=np.uint64))
    assert top.tolist() in ([], [2**61 - 1] * 3)
    monkeypatch.setattr(rejection, "draw", lambda law, count, words, width: np.full(count, largest + 1, dtype=np.int64))
    with pytest.raises(OverflowError):
        rejection.propose(cells, 3)


# Rounds


@pytest.mark.parametrize("size", [0, 1, 7, rejection._CHUNK - 1, rejection._CHUNK, 2 * rejection._CHUNK + 3])
def test_rounds_fill_every_entry_in_order(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches entries that no round fills, and draws lost, repeated or sorted between rounds.
    given, asked = 0, []

    def half(cells: object, count: int) -> NDArray[np.int64]:
        nonlocal given
        asked.append(count)
        kept = np.arange(given, given + count // 2 + (len(asked) % 3 == 0) * (count % 2), dtype=np.int64)
        given += kept.size
        return kept

    monkeypatch.setattr(rejection, "propose", half)
    assert draw_gaussian(1e5, size).tolist() == list(range(size))
    assert max(asked, default=0) <= rejection._CHUNK


# Where the bits come from


def counting(real: Callable[[int], bytes], asked: list[int]) -> Callable[[int], bytes]:
    def urandom(count: int) -> bytes:
        asked.append(count)
        return real(count)

    return urandom


@pytest.mark.parametrize("scale", SCALES)
def test_every_proposal_has_two_fresh_words_from_the_system(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches bits used twice, and bits from anywhere else: a chunk takes 16 bytes a proposal, a further word 8.
    asked: list[int] = []
    monkeypatch.setattr(os, "urandom", counting(os.urandom, asked))
    size = rejection._CHUNK + 7
    draw_gaussian(scale, size)
    rounds = [count for count in asked if count != 8]
    assert rounds[::2] == rounds[1::2]  # cells, then signs, offsets and coins
    assert rounds[:2] == [8 * rejection._CHUNK] * 2
    assert 16 * size <= sum(asked) <= 16 * size * 1.02  # refused: at most 0.7 % of them, on average


def test_the_systems_bits_alone_make_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(count: int) -> bytes:
        return generator.bytes(count)

    monkeypatch.setattr(os, "urandom", repeated)
    drawn = []
    for _ in range(2):
        generator = np.random.Generator(np.random.PCG64(7))
        drawn.append(draw_gaussian(1e6, LONG))
    assert (drawn[0] == drawn[1]).all()
    monkeypatch.undo()
    assert (draw_gaussian(1e6, LONG) != drawn[0]).any()


def test_seeds_do_not_repeat_wide_noise() -> None:
    drawn = set()
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        drawn.add(add_noise(np.zeros(LONG, dtype=np.int64), Noise("gaussian", 1e6)).tobytes())
    assert len(drawn) == 3


FORKED = """
import hashlib, os, sys, numpy as np
from tacit.model.noise_law import Noise
from tacit.trusted.noise import add_noise
def draw():
    return hashlib.sha256(add_noise(np.zeros(5000, dtype=np.int64), Noise("gaussian", 1e6)).tobytes()).hexdigest()
draw()  # the table is there before the fork
for _ in range(3):
    if os.fork() == 0:
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw(), flush=True)
sys.exit("opendp" in sys.modules)
"""


def test_forked_processes_draw_different_noise_and_import_no_other_sampler() -> None:
    out = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert len(set(out.split())) == 4


# Statistics, at scales that no enumeration reaches


FALSE_ALARM = 1e-9  # of the tests below together, by a union bound over their regions
WIDE = (2.0**11, 1e5, 1e7, 2.0**30, 2.0**40 - 0.5)
BINS, LOW_BITS = 24, 256
EACH = FALSE_ALARM / len(WIDE) / (BINS + LOW_BITS + 3)
DRAWS = 2_500_000


def region(chance: NDArray[np.float64] | float, draws: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.asarray(binom.ppf(EACH / 2, draws, chance)), np.asarray(binom.isf(EACH / 2, draws, chance))


def inside(counts: NDArray[np.int64] | int, chance: NDArray[np.float64] | float, draws: int) -> bool:
    low, high = region(chance, draws)
    return bool(np.all((low <= counts) & (counts <= high)))


def within(scale: float, ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pr[|Z| <= h]: the midpoint rule, which misses by less than 1/(24 scale²), below 1e-7 here."""
    return np.asarray(erf((ends + 0.5) / (scale * np.sqrt(2))))


def follows(values: NDArray[np.int64], scale: float, truth: float) -> bool:
    """Whether the numbers with |z| <= h, each binomial, lie in their regions, for the quantiles h of `truth`."""
    ends = np.array([quantile(Noise("gaussian", truth), c) for c in np.linspace(0.05, 0.95, BINS)], dtype=np.int64)
    counts = np.cumsum(np.bincount(np.searchsorted(ends, np.abs(values)), minlength=BINS + 1))[:-1]
    return inside(counts, within(scale, ends), len(values))


def fair(values: NDArray[np.int64]) -> bool:
    """Signs, and whether neighbours' signs agree: fair coins, except for 0."""
    signs = np.sign(values[values != 0])
    agree = int(np.count_nonzero(signs[1:] == signs[:-1]))
    return inside(int(np.count_nonzero(signs > 0)), 0.5, len(signs)) and inside(agree, 0.5, len(signs) - 1)


def level(values: NDArray[np.int64]) -> bool:
    """The last 8 bits are uniform, but for a factor of 1 ± exp(-2 pi² (scale/256)²)."""
    return inside(np.bincount(values & LOW_BITS - 1, minlength=LOW_BITS), 1 / LOW_BITS, len(values))


@pytest.mark.parametrize("scale", WIDE)
def test_wide_draws_follow_the_law_and_one_percent_of_the_scale_shows(scale: float) -> None:
    values = draw_gaussian(scale, DRAWS)
    assert follows(values, scale, scale)
    assert fair(values)
    assert level(values)
    size = np.abs(values) - np.abs(values).mean()  # magnitudes do not follow each other, in or across rounds
    assert abs(float((size[:-1] * size[1:]).mean() / size.var())) < 8 / np.sqrt(DRAWS)
    ends = np.array([quantile(Noise("gaussian", scale), c) for c in np.linspace(0.05, 0.95, BINS)], dtype=np.int64)
    for factor in (0.99, 1.01):
        low, high = region(within(scale * factor, ends), DRAWS)
        lucky = binom.cdf(high, DRAWS, within(scale, ends)) - binom.cdf(low - 1, DRAWS, within(scale, ends))
        assert np.min(lucky) < 1e-9
        assert not follows(values, scale * factor, scale)


def test_wrong_samplers_are_rejected() -> None:
    scale = 1e7
    values = draw_gaussian(scale, DRAWS)
    assert not fair(np.abs(values))
    assert not fair(np.sort(values))
    assert not level(values & -2)
    assert not level(values & -256)
    spread = noise_table.draw_noise(Noise("laplace", scale / np.sqrt(2)), DRAWS)  # the same variance
    assert not follows(spread, scale, scale)
