"""Ranges in two attributes: against dense least squares, and through the true answers of records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from interval_dense import covariance, matrix

from tacit.errors import InvalidQuery
from tacit.model.attribute import integer
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.workload import Product, Tree, check, leaves
from tacit.release.noise_sum import half_widths
from tacit.release.ranges.rectangles import Rectangles, choose_product, least_squares, rectangle_variance
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth as strategy_truth

PAIR = (Tree("a", (3, 2), (1, 2)), Tree("b", (2, 4), (3, 2)))
SIZES = (5, 7)
DOMAIN = Domain({"a": integer(0, 4), "b": integer(0, 5, missing="unknown")})


def all_rectangles() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    low, end, chosen = [], [], []
    for s in range(SIZES[0]):
        for t in range(s + 1, SIZES[0] + 1):
            for u in range(SIZES[1]):
                for v in range(u + 1, SIZES[1] + 1):
                    cell = np.zeros(SIZES)
                    cell[s:t, u:v] = 1
                    low.append((s, u))
                    end.append((t, v))
                    chosen.append(cell.ravel())
    return list(np.array(low).T), list(np.array(end).T), np.array(chosen)


def test_least_squares_and_variances_are_those_of_the_dense_solver() -> None:
    a = np.kron(matrix(PAIR[0], SIZES[0]), matrix(PAIR[1], SIZES[1]))
    size, total = SIZES[0] * SIZES[1], 100.0
    values = np.random.default_rng(0).normal(size=len(a)) * 10
    free = np.linalg.svd(np.ones((1, size)))[2][1:].T
    start = np.full(size, total / size)
    inverse = np.linalg.inv(free.T @ a.T @ a @ free)
    expected = start + free @ inverse @ (a @ free).T @ (values - a @ start)
    found = least_squares(values, Product(*PAIR), SIZES, total)
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9)
    low, end, chosen = all_rectangles()
    dense = free @ inverse @ free.T
    np.testing.assert_allclose(
        rectangle_variance(Product(*PAIR), SIZES, low, end), np.einsum("ij,jk,ik->i", chosen, dense, chosen), atol=1e-9
    )
    # The control: without the public total the variance of everything is not 0.
    separate = np.kron(*(covariance(t, n, known_total=False) for t, n in zip(PAIR, SIZES, strict=True)))
    assert np.ones(size) @ separate @ np.ones(size) > 0.1


def test_without_noise_rectangles_are_true() -> None:
    chance = np.random.default_rng(1)
    cells = np.array(list(np.ndindex(DOMAIN.shape)))
    counts = chance.integers(1, 50, len(cells))
    records = Records(DOMAIN, [c.astype(np.uint8) for c in cells.T], counts)
    measured = Measured(
        key="k",
        question=Product(*PAIR),
        values=strategy_truth(Product(*PAIR), records),
        unit=1,
        noise=Noise("laplace", 3.0),
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(1, "s"),
    )
    found = Rectangles(measured, DOMAIN, records.rows)
    table = counts.reshape(DOMAIN.shape)
    first, last = (np.array([0, 1, 4]), np.array([0, 2, 5])), (np.array([4, 3, 4]), np.array([5, 4, 5]))
    answers = found.counts(first, last)
    expected = [table[0:5, 0:6].sum(), table[1:4, 2:5].sum(), table[4, 5]]
    np.testing.assert_allclose(answers.values, expected, atol=1e-6)
    low, end = [np.array([1]), np.array([2])], [np.array([4]), np.array([5])]
    bars = half_widths(measured.noise, rectangle_variance(Product(*PAIR), SIZES, low, end), 0.95)
    assert answers.errors[1] == np.floor(bars[0])  # whole rows
    for bad in ((-1, 0), (0, -1), (5, 0), (0, 6)):
        with pytest.raises(InvalidQuery):
            found.counts(bad, (bad[0], bad[1]))


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_the_chosen_product_can_be_asked_and_beats_flat_and_binary(measure: Measure) -> None:
    domain = Domain({"b": integer(0, 99), "a": integer(0, 299, missing="unknown")})
    found = choose_product("b", leaves(domain["b"]), "a", leaves(domain["a"]), measure)
    check(found, domain)
    sizes = (301, 100)
    ends = np.random.default_rng(0).integers(0, 101, (2, 2000))
    low = [np.minimum(*ends) * 3, np.minimum(*ends)]
    high = [np.maximum(*ends) * 3 + 1, np.maximum(*ends)]

    def error(product: Product) -> float:
        power = 1 if measure == "epsilon" else 2
        cost = float(sum(w**power for w in product.weights)) ** (2 / power)
        return float(cost * rectangle_variance(product, sizes, low, high).mean())

    mine = error(found)
    assert mine < error(Product(Tree("a", (301,), (1,)), Tree("b", (100,), (1,))))
    assert mine < error(Product(Tree("a", (2,) * 9, (1,) * 9), Tree("b", (2,) * 7, (1,) * 7)))


def test_for_few_rows_under_pure_epsilon_trees_are_nested() -> None:
    signals = (500.0, 1_500.0, 5_000.0, 1e9)
    fewest, fewer, few, many = (choose_product("a", 256, "b", 256, "epsilon", signal) for signal in signals)
    assert [one.nested for one in (fewest, fewer, few, many)] == [True, True, True, False]
    assert (few.first.branching, many.first.branching) == ((16, 4, 4), (16, 16))
    # Few rows: eight parts a side on top, whose noise is little, and small steps to what the rows hardly tell.
    assert fewest.first.branching == fewest.second.branching == fewer.first.branching == (8, 4, 4, 2)
    assert (fewest.weights, fewer.weights, few.weights) == ((8, 6, 2, 1), (4, 3, 2, 1), (1, 1, 1))
    assert not choose_product("a", 16, "b", 12, "epsilon", 10.0).nested  # so small a table is counted as it is
    thin = choose_product("a", 1000, "b", 30, "epsilon", 500.0)  # one long side: bars would be too wide
    assert (thin.nested, thin.weights) == (False, (12, 6, 5))
    assert choose_product("a", 256, "b", 256, "rho", 1.0) == choose_product("a", 256, "b", 256, "rho")
    for sizes in ((301, 100), (97, 61), (200, 64)):
        found = choose_product("a", sizes[0], "b", sizes[1], "epsilon", 500.0)
        assert found.nested
        check(found, Domain({name: integer(0, size - 1) for name, size in zip("ab", sizes, strict=True)}))


NESTED = [  # the last one's branching reaches beyond both sides
    (Product(Tree("a", (3, 2), (1, 2)), Tree("b", (2, 4), (3, 2)), nested=True), (6, 8)),
    (Product(Tree("a", (2, 2, 2), (3, 1, 2)), Tree("b", (2, 3, 2), (1, 1, 1)), nested=True), (8, 12)),
    (Product(Tree("a", (3, 2), (1, 2)), Tree("b", (2, 4), (3, 2)), nested=True), (5, 7)),
]


@pytest.mark.parametrize(("product", "sizes"), NESTED)
def test_a_nested_product_is_decoded_as_the_dense_solver_does(product: Product, sizes: tuple[int, int]) -> None:
    domain = Domain({name: integer(0, size - 1) for name, size in zip("ab", sizes, strict=True)})
    size, total = math.prod(sizes), 100.0
    a = np.array([product.nodes(cell.reshape(sizes)) for cell in np.eye(size, dtype=np.int64)]).T
    assert len(a) == product.size(domain)
    estimate = np.array([least_squares(column, product, sizes, 0.0).ravel() for column in np.eye(len(a))]).T
    # Unbiased, whatever the counts: what the answers to counts without noise decode to are the counts.
    counts = np.random.default_rng(1).integers(0, 9, sizes)
    np.testing.assert_allclose(least_squares(a @ counts.ravel(), product, sizes, counts.sum()), counts, atol=1e-9)
    low, end = (np.indices((9, 9, 9, 9)).reshape(2, 2, -1) for _ in range(2))
    low, end = [low[0, 0], low[0, 1]], [low[1, 0], low[1, 1]]
    inside = np.logical_and.reduce([(s < e) & (e <= one) for s, e, one in zip(low, end, sizes, strict=True)])
    low, end = [s[inside] for s in low], [e[inside] for e in end]
    chosen = np.zeros((inside.sum(), *sizes))
    for one, s, t, u, v in zip(chosen, low[0], end[0], low[1], end[1], strict=True):
        one[s:t, u:v] = 1
    true = ((chosen.reshape(-1, size) @ estimate) ** 2).sum(axis=1)
    claimed = rectangle_variance(product, sizes, low, end)
    assert (claimed >= true - 1e-9).all()
    free = np.linalg.svd(np.ones((1, size)))[2][1:].T
    inverse = np.linalg.inv(free.T @ a.T @ a @ free)
    values, start = np.random.default_rng(0).normal(size=len(a)) * 10, np.full(size, total / size)
    expected = start + free @ inverse @ (a @ free).T @ (values - a @ start)
    np.testing.assert_allclose(least_squares(values, product, sizes, total).ravel(), expected, atol=1e-9)
    if (math.prod(product.first.branching), math.prod(product.second.branching)) == sizes:
        np.testing.assert_allclose(claimed, true, atol=1e-9)
    else:
        assert claimed.mean() < 1.5 * true.mean()
