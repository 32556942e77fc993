"""Convolutions: prefixes and variances against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from interval_dense import PLANS, all_intervals, covariance, least_squares
from numpy.typing import NDArray

from support import calls
from tacit.model.workload import Convolution, kernel
from tacit.release.ranges.decoder import Decoder, _inverse

PAIRS = [(strategy, leaves) for strategy, leaves in PLANS if isinstance(strategy, Convolution)]


@pytest.mark.parametrize(("strategy", "leaves"), PAIRS)
def test_prefixes_are_least_squares_given_the_total(strategy: Convolution, leaves: int) -> None:
    values = np.random.default_rng(0).normal(size=(3, leaves)) * 1e5
    found = Decoder(strategy, leaves).prefixes(values, 50.0)
    for row, answers in zip(found, values, strict=True):
        expected = np.cumsum(least_squares(strategy, leaves, answers, 50.0))
        np.testing.assert_allclose(row, np.concatenate([[0], expected]), atol=1e-8)


@pytest.mark.parametrize(("strategy", "leaves"), PAIRS)
def test_variances_are_exact_or_a_little_too_large(strategy: Convolution, leaves: int) -> None:
    first, end, chosen = all_intervals(leaves)
    dense = covariance(strategy, leaves) * 2.0**32  # of kernels that start with 1
    exact = np.einsum("ij,jk,ik->i", chosen, dense, chosen)
    found = Decoder(strategy, leaves).interval_variance(first, end) * 2.0**32
    if strategy.cyclic:
        np.testing.assert_allclose(found, exact, atol=1e-9)
    else:
        assert (found > exact - 1e-9).all()
        np.testing.assert_allclose(found[first == 0], exact[first == 0], atol=1e-9)
        np.testing.assert_allclose(np.sqrt(found), np.sqrt(np.maximum(exact, 0)), rtol=0.1, atol=1e-4)
    weights = np.random.default_rng(1).normal(size=leaves)
    assert Decoder(strategy, leaves).functional_variance(weights) * 2.0**32 == pytest.approx(weights @ dense @ weights)


def test_on_a_circle_only_the_length_matters_and_the_rest_is_as_sure_as_the_part() -> None:
    strategy, leaves = Convolution("x", 50, cyclic=True), 30
    first, end, _ = all_intervals(leaves)
    found = Decoder(strategy, leaves).interval_variance(first, end)
    for length in range(leaves + 1):
        same = found[(end - first == length) | (end - first == leaves - length)]
        np.testing.assert_allclose(same, same[0], rtol=1e-9, atol=1e-20)


@pytest.mark.parametrize("size", [1, 2, 3, 31, 1000])
def test_the_inverse_series_is_one(size: int) -> None:
    g = kernel(size, 47).astype(np.float64)
    np.testing.assert_allclose(np.convolve(g, _inverse(g))[:size], np.eye(1, size)[0], atol=1e-9)


def test_one_leaf_is_n() -> None:
    for cyclic in (True, False):
        decoder = Decoder(Convolution("x", 50, cyclic), 1)
        assert decoder.prefixes(np.array([3.0]), 7.0).tolist() == [0, 7]
        assert decoder.interval_variance(0, 1) == 0
        assert decoder.functional_variance([2.0]) == 0


@pytest.mark.parametrize("cyclic", [True, False])
def test_a_million_leaves_are_precise_without_a_loop_over_them(cyclic: bool) -> None:
    strategy, leaves = Convolution("x", 50, cyclic), 2**20
    counts = np.zeros(leaves)
    counts[[0, 5, 1000, leaves - 1]] = 1, 20, 300, 7
    g = kernel(leaves, 50).astype(np.float64)
    length = 2 * leaves
    full = np.fft.irfft(np.fft.rfft(counts, length) * np.fft.rfft(g, length), length)
    answers = full[:leaves] + (full[leaves:] if cyclic else 0)
    found: list[NDArray[np.float64]] = []
    assert calls(lambda: found.append(Decoder(strategy, leaves).prefixes(answers, counts.sum()))) < 10_000
    assert np.abs(found[0][1:] - np.cumsum(counts)).max() < 1e-3
