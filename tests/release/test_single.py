"""Single attributes before a fit: empty stretches are found empty, and what is known well stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.model.domain import Domain
from tacit.release.hypothesis.single import with_likely_singles
from tacit.release.hypothesis.terms import Interaction, Term

BINS, ROWS = 300, 2_500
ORDERED = tacit.Domain({"x": tacit.integer(0, BINS - 1)})
# Most rows lie in the first bins, and hardly any in the upper half.
TRUTH = np.exp(-np.arange(BINS) / 40)
TRUTH /= TRUTH.sum()


def leaves(noise: float, seed: int) -> Interaction:
    """The shares of all bins, with noise of this standard deviation, in rows."""
    rng = np.random.default_rng(seed)
    noisy = TRUTH + rng.normal(0, noise / ROWS, BINS)
    return Interaction((0,), noisy - noisy.mean(), (noise / ROWS) ** 2)


def level(span: int, noise: float, seed: int, key: str = "t/0") -> Term:
    rng, groups = np.random.default_rng(seed), np.arange(BINS) // span
    sums = np.bincount(groups, TRUTH)
    return Term(key, (0,), sums + rng.normal(0, noise / ROWS, sums.size), (noise / ROWS) ** 2, groups=groups)


def likely(one: Interaction, *levels: Term, domain: Domain = ORDERED) -> tuple[np.ndarray, list[Term]]:
    found, left = with_likely_singles({(0,): one}, levels, domain, [0], ROWS)
    assert abs(found[0,].shares.sum()) < 1e-9
    return found[0,].shares + 1 / BINS, left


def clipped(one: Interaction) -> np.ndarray:
    """What becomes of the shares where nothing is known of their order: a fit has none below 0."""
    shares = np.maximum(one.shares + 1 / BINS, 0)
    return shares / shares.sum()


def test_an_empty_tail_is_not_filled_with_noise() -> None:
    tail, worst = slice(150, None), []
    for seed in range(20):
        noisy = leaves(14.0, seed)
        shares, _ = likely(noisy)
        worst.append((clipped(noisy)[tail].sum() - TRUTH[tail].sum(), shares[tail].sum() - TRUTH[tail].sum()))
        assert shares.min() > -1e-12
    before, now = ROWS * np.mean(worst, axis=0)
    assert before > 300  # rows that are not there
    assert abs(now) < 60


def test_the_coarse_levels_of_a_tree_speak_too_and_once() -> None:
    errors = []
    for seed in range(20):
        noisy, coarse = leaves(14.0, seed), level(18, 6.0, 100 + seed)
        alone, _ = likely(noisy)
        both, left = likely(noisy, coarse)
        assert left == []  # it has been heard: the fit does not hear it again
        errors.append([np.abs(np.cumsum(one - TRUTH)).max() for one in (alone, both)])
    alone_is, both_are = np.mean(errors, axis=0)
    assert both_are < 0.7 * alone_is


def test_levels_that_do_not_nest_are_left_to_the_fit() -> None:
    fine, coarse, across = level(6, 6.0, 1, "a"), level(18, 6.0, 2, "b"), level(10, 6.0, 3, "c")
    _, left = likely(leaves(14.0, 0), coarse, across, fine)
    assert [term.key for term in left] == ["c"]


def test_what_is_known_well_stays() -> None:
    shares, _ = likely(leaves(0.5, 1), level(18, 0.5, 2))
    assert np.abs(shares - TRUTH).max() * ROWS < 3


@pytest.mark.parametrize(
    "domain",
    [tacit.Domain({"x": tacit.category([str(i) for i in range(BINS)])}), tacit.Domain({"x": tacit.integer(0, 6)})],
    ids=["without an order", "of few values"],
)
def test_others_are_as_they_were_measured(domain: Domain) -> None:
    size = domain["x"].size
    noisy = np.random.default_rng(1).normal(0, 0.1, size)
    one, term = Interaction((0,), noisy - noisy.mean(), 0.01), level(18, 6.0, 1)
    assert with_likely_singles({(0,): one}, [term], domain, [0], ROWS) == ({(0,): one}, [term])


@pytest.mark.parametrize(("size", "noise", "stay"), [(47, 3.0, True), (BINS, 30.0, True), (48, 3.0, False)])
def test_few_bins_and_much_noise_are_left_as_measured(size: int, noise: float, stay: bool) -> None:
    """Spikes in few bins would be flattened; in much noise, even and uneven look the same."""
    domain = tacit.Domain({"x": tacit.integer(0, size - 1)})
    noisy = np.random.default_rng(2).normal(0, noise / ROWS, size)
    one = Interaction((0,), noisy - noisy.mean(), (noise / ROWS) ** 2)
    found, _ = with_likely_singles({(0,): one}, [], domain, [0], ROWS)
    assert (found == {(0,): one}) == stay
