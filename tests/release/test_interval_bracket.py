"""Rectangles between others: corners, that bars are expected to be no wider, and that they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.model.attribute import integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.workload import Product, Tree
from tacit.release.noise_sum import continuous
from tacit.release.ranges.nested_product import rectangles
from tacit.release.ranges.rectangles import (
    PlaceList,
    Rectangles,
    brackets,
    choose_product,
    least_squares,
    rectangle_variance,
    sums_of,
)
from tacit.release.ranges.shrinkage import box

NESTED = Product(Tree("a", (3, 4, 3), (4, 2, 1)), Tree("b", (4, 2, 3), (1, 1, 1)), nested=True)
PAIRS = Product(Tree("a", (6, 6), (2, 1)), Tree("b", (5, 4), (1, 1)))
SIZES = (31, 20)  # neither is what the branching factors multiply to


def bars_of(product: Product, noise: float) -> tuple[PlaceList, PlaceList, object]:
    low, end = rectangles(SIZES)
    return low, end, lambda s, e: noise * np.sqrt(rectangle_variance(product, SIZES, s, e))


@pytest.mark.parametrize("product", [NESTED, PAIRS], ids=["nested", "pairs"])
def test_an_inner_rectangle_lies_within_and_an_outer_one_around(product: Product) -> None:
    low, end, bars = bars_of(product, 10.0)
    found = brackets(product, SIZES, low, end, bars, 500.0)  # type: ignore[arg-type]
    for axis, size in enumerate(SIZES):
        inner, outer = ([corner[axis] for corner in one] for one in (found.inner, found.outer))
        assert (outer[0] <= low[axis]).all()
        assert (outer[1] >= end[axis]).all()
        some = inner[0] < inner[1]  # an empty one lies anywhere
        assert (inner[0] >= low[axis])[some].all()
        assert (inner[1] <= end[axis])[some].all()
        assert (outer[0] >= 0).all()
        assert (outer[1] <= size).all()
    moved = np.logical_or.reduce([found.outer[0][k] < low[k] for k in (0, 1)])
    assert moved.mean() > 0.1 if product.nested else not moved.any()
    own = bars(low, end)  # type: ignore[operator]
    assert (found.half_width <= own + 1e-9).all()
    # With very many rows nothing is rounded, and bars are those of least squares.
    many = brackets(product, SIZES, low, end, bars, 1e9)  # type: ignore[arg-type]
    np.testing.assert_allclose(many.half_width, own, atol=1e-6)


def released(product: Product, sizes: tuple[int, int], counts: np.ndarray, scale: float, seed: int) -> Measured:
    domain = Domain({name: integer(0, size - 1) for name, size in zip("ab", sizes, strict=True)})
    noise = np.rint(np.random.default_rng(seed).laplace(0, scale, product.size(domain))).astype(np.int64)
    values = product.nodes(counts.astype(np.int64)) + noise
    return Measured(
        key="k",
        question=product,
        values=values,
        unit=1,
        noise=Noise("laplace", scale),
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(1, "s"),
    )


def test_for_few_rows_bars_hold_and_are_much_narrower_than_those_of_least_squares() -> None:
    sizes, rows = (64, 64), 1_000
    domain = Domain({name: integer(0, size - 1) for name, size in zip("ab", sizes, strict=True)})
    product = choose_product("a", 64, "b", 64, "epsilon", rows / 2)
    scale = 2.0 * sum(product.weights)
    x, y = np.indices(sizes)
    shape = np.exp(-((x - 20) ** 2 + (y - 30) ** 2) / 100) + 0.02
    low, end = rectangles(sizes)
    asked = [k for k in range(len(low[0])) if all(low[axis][k] < end[axis][k] for axis in (0, 1))]
    low, end = [side[asked] for side in low], [side[asked] for side in end]
    outside, too_narrow, widths = [], [], []
    for seed in range(20):
        counts = np.random.default_rng([1, seed]).multinomial(rows, (shape / shape.sum()).ravel()).reshape(sizes)
        measured = released(product, sizes, counts, scale, seed)
        found = Rectangles(measured, domain, rows)
        answers = found.counts((low[0], low[1]), (end[0] - 1, end[1] - 1))
        truth = box(sums_of(counts.astype(np.float64)), low, end)
        outside.append(np.abs(answers.values - truth) > answers.errors)
        # The control: an eighth of a bar does not hold.
        too_narrow.append(np.abs(answers.values - truth) > answers.errors / 8)
        widths.append(answers.errors)
    spread = rectangle_variance(product, sizes, low, end)
    plain = continuous("laplace", 0.95) * np.sqrt(variance(Noise("laplace", scale)) * spread)
    assert np.mean(outside) <= 0.05
    assert np.mean(too_narrow) > 0.05
    assert np.mean(widths) < 0.7 * plain.mean()
    # The law of one question is public: the same for every release, and what is to be expected of the bar.
    query = Query.all([Query.among(domain, "a", range(3, 30)), Query.among(domain, "b", range(5, 50))])
    laws = {Rectangles(released(product, sizes, counts, scale, s), domain, rows).law(query, 0.95) for s in (1, 2)}
    assert len(laws) == 1
    assert laws.pop() < rows


def test_the_edge_of_a_side_that_is_not_full_is_as_sure_as_its_node() -> None:
    """Nobody is beyond the last leaf: a node that reaches there is counted by its own answer, however small it is."""
    product, sizes = Product(Tree("a", (2, 8), (100, 1)), Tree("b", (2, 8), (1, 1)), nested=True), (9, 9)
    domain = Domain({name: integer(0, size - 1) for name, size in zip("ab", sizes, strict=True)})
    noise = np.random.default_rng(0).laplace(0, 100.0, (200, product.size(domain)))
    corner = np.array([least_squares(one, product, sizes, 0.0)[8, 8] for one in noise])
    claimed = rectangle_variance(product, sizes, [np.array(8), np.array(8)], [np.array(9), np.array(9)])
    assert math.sqrt(2 * 100.0**2 * float(claimed)) < 2.0
    assert corner.std() < 2.0
