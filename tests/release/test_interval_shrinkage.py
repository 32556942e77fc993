"""Counts that are likelier than least squares ones: what they keep, what they gain, and what bounds their errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, Product, Tree
from tacit.release.ranges import shrinkage
from tacit.release.ranges.decoder import Decoder
from tacit.release.ranges.rectangles import choose_product, least_squares, likely, sums_of
from tacit.release.ranges.shrinkage import box, corridor, depths, shared

LEAVES = 60
DECODERS = [
    Decoder(Tree("x", (4, 4, 4), (1, 1, 1)), LEAVES),
    Decoder(Tree("x", (5, 12), (2, 3)), LEAVES),
    Decoder(Convolution("x", 50, cyclic=True), LEAVES),
    Decoder(Convolution("x", 48, cyclic=False), LEAVES),
]
SHAPES = {
    "even": np.full(LEAVES, 50.0),
    "empty but for one": np.where(np.arange(LEAVES) == 17, 3000.0, 0.0),
    "a step": np.where(np.arange(LEAVES) < 20, 100.0, 25.0),
    "a slope": np.arange(LEAVES) * 1.5,
}


def raw(decoder: Decoder, counts: np.ndarray, scale: float, seed: int) -> tuple[np.ndarray, float]:
    """Least squares prefixes, and the variance of the noise on the answers: `scale` times that of a plain table."""
    unit = 2.0**16 if isinstance(decoder.strategy, Convolution) else 1.0
    noise = np.random.default_rng(seed).normal(size=decoder.answers) * scale * unit
    truth = np.concatenate([[0.0], np.cumsum(counts)])
    return truth + decoder.prefixes(noise, 0.0), (scale * unit) ** 2


@pytest.mark.parametrize("decoder", DECODERS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 3.0, 100.0]), st.sampled_from(sorted(SHAPES)))
def test_shown_prefixes_rise_from_0_to_n_and_no_error_grows(
    decoder: Decoder, seed: int, scale: float, shape: str
) -> None:
    counts = SHAPES[shape]
    truth = np.concatenate([[0.0], np.cumsum(counts)])
    least, variance = raw(decoder, counts, scale, seed)
    found = decoder.likely(least, variance)
    assert found[0] == 0
    assert found[-1] == pytest.approx(counts.sum())
    assert (np.diff(found) >= -1e-9).all()
    # The theorem that the band rests on: neither of the largest errors grows.
    assert np.abs(found - truth).max() <= np.abs(least - truth).max() + 1e-6
    assert np.ptp(found - truth) <= np.ptp(least - truth) + 1e-6


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("shape", ["even", "a step", "a slope"])
def test_with_little_noise_least_squares_stays(decoder: Decoder, shape: str) -> None:
    least, variance = raw(decoder, SHAPES[shape], 1e-3, seed=2)
    np.testing.assert_allclose(decoder.likely(least, variance), least, atol=0.05)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize(("shape", "scale"), [("even", 300.0), ("empty but for one", 20.0), ("a step", 300.0)])
def test_even_and_empty_stretches_are_recognised(decoder: Decoder, shape: str, scale: float) -> None:
    """Over twenty draws of noise, with fixed seeds, the mean squared error of ranges falls below two thirds.

    Noise is so large that least squares prefixes do not rise: where they do, they stay as they are.
    """
    truth = np.concatenate([[0.0], np.cumsum(SHAPES[shape])])
    before = after = 0.0
    for seed in range(20):
        least, variance = raw(decoder, SHAPES[shape], scale, seed)
        before += np.var(least - truth)
        after += np.var(decoder.likely(least, variance) - truth)
    assert after < 2 / 3 * before


@pytest.mark.parametrize(
    "product",
    [
        choose_product("x", 16, "y", 12, "rho"),
        Product(Tree("x", (4, 5), (1, 1)), Tree("y", (3, 4), (1, 1)), nested=True),
    ],
)
def test_rectangles_are_shared_likewise(product: Product) -> None:
    sizes, domain = (16, 12), Domain({"x": integer(0, 15), "y": integer(0, 11)})
    counts = np.zeros(sizes)
    counts[3:6, 2:9] = 40.0
    before = after = 0.0
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=product.size(domain)) * 200.0
        least = counts + least_squares(noise, product, sizes, 0.0)
        found = likely(sums_of(least), product, sizes, 200.0**2, counts.sum())
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(counts.sum())
        before += np.var(sums_of(least - counts))
        after += np.var(sums_of(found - counts))
    assert after < before / 2
    np.testing.assert_allclose(
        likely(sums_of(counts + 1), product, sizes, 1e-6, (counts + 1).sum()), counts + 1, atol=1e-3
    )


@pytest.mark.parametrize(
    ("product", "most"),
    [
        (choose_product("x", 64, "y", 64, "epsilon", 500.0), 0.92),
        (Product(Tree("x", (8, 8), (1, 1)), Tree("y", (8, 8), (1, 1))), 0.75),
    ],
)
def test_strips_that_are_shared_alike_are_recognised(product: Product, most: float) -> None:
    """Over eight draws of noise, with fixed seeds: where attributes have nothing to do with each other rectangles err
    less than by boxes alone; and where every other row is another's mirror image, hardly more."""
    sizes, domain = (64, 64), Domain({"x": integer(0, 63), "y": integer(0, 63)})
    alike = np.zeros(sizes)
    alike[:, [5, 6, 23, 24, 25, 50]] = 2000 / 384
    mirrored = alike.copy()
    mirrored[::2] = mirrored[::2, ::-1]
    ends = np.sort(np.random.default_rng(3).integers(0, 65, (2, 500, 2)), axis=-1)
    for counts, at_most in ((alike, most), (mirrored, 1.03)):
        errors = np.zeros(2)
        for seed in range(8):
            noise = np.random.default_rng(seed).laplace(size=product.size(domain)) * 6.0
            sums = sums_of(counts + least_squares(noise, product, sizes, 0.0))
            for place, usual in enumerate((0.0, shrinkage.ALIKE_USUAL)):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(shrinkage, "ALIKE_USUAL", usual)
                    found = likely(sums, product, sizes, 72.0, 2000.0)
                errors[place] += np.abs(box(sums_of(found - counts), list(ends[..., 0]), list(ends[..., 1]))).mean()
        assert errors[1] < at_most * errors[0]


@pytest.mark.parametrize("sizes", [(5, 9), (16, 16), (7, 30)])
def test_a_strip_is_what_is_cut_at_one_place_of_one_axis(sizes: tuple[int, int]) -> None:
    for cuts in depths(sizes, [(4, 1), (3, 1)], axis=1):
        where = []
        for one in zip(
            zip(*cuts.low, strict=True), zip(*cuts.first_end, strict=True), zip(*cuts.end, strict=True), strict=True
        ):
            axis = next(k for k in (0, 1) if one[1][k] < one[2][k])
            where.append((axis, *(corner[axis] for corner in one)))
        same = cuts.strips[:, None] == cuts.strips
        assert (same == np.array([[one == other for other in where] for one in where])).all()


def test_what_a_strip_says_of_a_box_leaves_its_own_noise_out() -> None:
    *_, cuts = itertools.islice(depths((16, 16), [(4, 1), (4, 1)]), 5)
    chance = np.random.default_rng(1)
    whole, seen = chance.uniform(10, 50, 16), chance.uniform(0, 50, 16)
    usual = np.insert(shrinkage._USUAL, len(shrinkage.SPREADS), 0.1)
    told = shrinkage._alike(whole, seen, np.full(16, 9.0), cuts, usual)
    seen[3] += 20
    moved = np.abs(shrinkage._alike(whole, seen, np.full(16, 9.0), cuts, usual) - told) > 1e-9
    assert not moved[3]
    assert (moved == ((cuts.strips == cuts.strips[3]) & (np.arange(16) != 3))).all()


@pytest.mark.parametrize("sizes", [(1,), (2,), (7,), (60,), (5, 1), (5, 9), (16, 16)])
@pytest.mark.parametrize("spans", [(), (1,), (4, 1), (12, 4, 1)])
def test_cuts_end_in_single_bins_and_keep_to_runs(sizes: tuple[int, ...], spans: tuple[int, ...]) -> None:
    boxes = {tuple((0, size) for size in sizes)}
    for cuts in depths(sizes, [spans] * len(sizes), axis=len(sizes) - 1):
        corners = zip(*cuts.low, *cuts.first_end, *cuts.second_low, *cuts.end, strict=True)
        axes = len(sizes)
        for one in corners:
            low, middle, second, end = (one[axes * k : axes * (k + 1)] for k in range(4))
            boxes.remove(tuple(zip(low, end, strict=True)))
            boxes |= {tuple(zip(low, middle, strict=True)), tuple(zip(second, end, strict=True))}
            axis = next(k for k in range(axes) if middle[k] < end[k])
            assert low[axis] < middle[axis] == second[axis] < end[axis]
            run = max((span for span in spans if span < end[axis] - low[axis]), default=1)
            assert (middle[axis] - low[axis]) % run == 0
    assert all(end == low + 1 for box in boxes for low, end in box)
    assert len(boxes) == np.prod(sizes)


def test_what_a_cut_knows_of_its_half_is_the_conditional_law() -> None:
    """Against the covariance of all prefixes, worked out in full: a half given its box, and nothing else."""
    decoder = DECODERS[1]
    matrix = decoder.prefixes(np.eye(decoder.answers), 0.0)
    covariance = matrix.T @ matrix
    for cuts in depths((LEAVES,), [(12, 1)]):
        for low, middle, end in zip(cuts.low[0], cuts.first_end[0], cuts.end[0], strict=True):
            half, box = np.zeros(LEAVES + 1), np.zeros(LEAVES + 1)
            half[middle] += 1
            half[low] -= 1
            box[end] += 1
            box[low] -= 1
            left, both = decoder.interval_variance(low, middle), decoder.interval_variance(low, end)
            right = decoder.interval_variance(middle, end)
            assert float(left + both - right) / 2 == pytest.approx(half @ covariance @ box, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_the_corridor_lets_no_error_grow_whatever_is_put_into_it(seed: int) -> None:
    chance = np.random.default_rng(seed)
    truth = np.concatenate([[0], np.cumsum(chance.poisson(chance.choice([0.1, 1, 20]), 30))]).astype(float)
    wrong = np.concatenate([[0], chance.normal(size=29) * 10, [0]])
    anything = np.sort(chance.uniform(0, truth[-1], 31))
    error = corridor(anything, truth + wrong) - truth
    assert error.max() <= wrong.max() + 1e-9
    assert error.min() >= wrong.min() - 1e-9
    assert (np.diff(corridor(anything, truth + wrong)) >= 0).all()


def test_a_variance_that_is_too_small_shows() -> None:
    """A planted bug: told of a hundredth of the noise, nothing is recognised, and least squares is hardly improved."""
    truth = np.concatenate([[0.0], np.cumsum(SHAPES["even"])])
    decoder, errors = DECODERS[0], []
    for told in (1.0, 0.01):
        pairs = [raw(decoder, SHAPES["even"], 300.0, seed) for seed in range(20)]
        errors.append(sum(np.var(decoder.likely(least, told * variance) - truth) for least, variance in pairs))
    assert errors[1] > 1.5 * errors[0]


def test_even_halves_are_even_up_to_chance_only() -> None:
    """Where noise is far below what chance makes of even halves, differences of that size are kept."""
    decoder = DECODERS[0]
    counts = np.random.default_rng(5).multinomial(60_000, np.full(LEAVES, 1 / LEAVES)).astype(float)
    least, variance = raw(decoder, counts, 2.0, seed=1)
    found = shared(least, decoder._of_boxes, [(16, 4, 1)], noise=variance)
    np.testing.assert_allclose(np.cumsum(found), least[1:], atol=2.0)
