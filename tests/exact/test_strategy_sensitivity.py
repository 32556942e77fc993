"""Strategies against enumeration: their matrices by definition, all pairs of leaves a row can move between."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact import bounds
from tacit.exact.bounds import convolve
from tacit.exact.price import Sensitivity
from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, Product, Strategy, Tree, kernel, leaves
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import sensitivity as strategy_sensitivity
from tacit.trusted.sensitivity import truth as strategy_truth

Rule = Callable[[Strategy, Domain], Sensitivity]
Ints = NDArray[np.int64]


def domain(*bins: int, missing: bool = False) -> Domain:
    extra = {"missing": "unknown"} if missing else {}
    return Domain({name: integer(0, size - 1, **extra) for name, size in zip("ab", bins, strict=False)})  # type: ignore[arg-type]


def matrix(strategy: Strategy, over: Domain) -> Ints:
    """One row for each answer, one column for each leaf (for each pair of leaves), entry by entry from the words."""
    if isinstance(strategy, Product) and strategy.nested:
        return np.concatenate(
            [np.kron(*pair) for pair in zip(*(by_level(side, over) for side in sides(strategy)), strict=True)]
        )
    if isinstance(strategy, Product):
        return np.kron(matrix(strategy.first, over), matrix(strategy.second, over))
    size = leaves(over[strategy.name])
    if isinstance(strategy, Tree):
        rows = []
        for level, weight in enumerate(strategy.weights):
            span = 1
            for factor in strategy.branching[level + 1 :]:
                span *= factor
            rows += [[weight * (start <= i < start + span) for i in range(size)] for start in range(0, size, span)]
        return np.array(rows, dtype=np.int64)
    g = kernel(size, strategy.exponent)
    entries = [[int(g[(i - j) % size]) if strategy.cyclic or i >= j else 0 for j in range(size)] for i in range(size)]
    return np.array(entries, dtype=np.int64)


def sides(strategy: Product) -> tuple[Tree, Tree]:
    return strategy.first, strategy.second


def by_level(tree: Tree, over: Domain) -> list[Ints]:
    ends = np.cumsum(tree.widths(leaves(over[tree.name])))[:-1]
    return np.split(matrix(tree, over), ends)


def worst(strategy: Strategy, over: Domain) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between two columns: a replaced row moves from one to the other."""
    columns = matrix(strategy, over).T
    moved = np.abs(columns[:, None, :] - columns[None, :, :])
    return int(moved.sum(axis=2).max()), int((moved**2).sum(axis=2).max())


def all_trees(name: str, over: Domain) -> list[Tree]:
    size = leaves(over[name])
    found = []
    for depth in (1, 2, 3):
        for branching in product(range(2, 6), repeat=depth):
            if np.prod(branching[1:], dtype=int) < size <= np.prod(branching):
                found += [Tree(name, branching, (1,) * depth), Tree(name, branching, (3, 1, 2)[:depth])]
    return found


DOMAINS = [domain(size, missing=missing) for size in range(2, 12) for missing in (False, True)]
TREES = [(tree, over) for over in DOMAINS for tree in all_trees("a", over)]
CONVOLUTIONS = [
    (Convolution("a", exponent, cyclic), over)
    for over in DOMAINS
    for exponent in (0, 7, 36, 50, 60)
    for cyclic in (True, False)
]
PRODUCTS = [
    (Product(first, second), over)
    for over in (domain(4, 3), domain(3, 3, missing=True), domain(2, 5))
    for first in all_trees("a", over)[:6]
    for second in all_trees("b", over)[:6]
]


PRODUCTS += [
    (Product(first, second, nested=True), over)
    for over in (domain(4, 3), domain(3, 3, missing=True), domain(5, 7))
    for first in all_trees("a", over)[:9]
    for second in all_trees("b", over)[:9]
    if len(first.branching) == len(second.branching)
]


def holds(rule: Rule, strategy: Strategy, over: Domain) -> bool:
    claimed, (l1, l2_squared) = rule(strategy, over), worst(strategy, over)
    return l1 <= claimed.l1 and l2_squared <= claimed.l2_squared


def test_trees_and_products_are_tight() -> None:
    assert len(TREES) > 100
    assert len(PRODUCTS) > 50
    assert any(len(strategy.first.branching) > 1 for strategy, _ in PRODUCTS if strategy.nested)
    for strategy, over in [*TREES, *PRODUCTS]:
        claimed = strategy_sensitivity(strategy, over)
        assert (claimed.l1, claimed.l2_squared) == worst(strategy, over), strategy


def test_convolutions_are_exact_in_l2_and_never_too_small_in_l1() -> None:
    for strategy, over in CONVOLUTIONS:
        claimed, (l1, l2_squared) = strategy_sensitivity(strategy, over), worst(strategy, over)
        assert claimed.l2_squared == l2_squared, strategy
        assert l1 <= claimed.l1 <= 2 * matrix(strategy, over)[:, 0].sum()


@pytest.mark.parametrize("size", [33, 100, 257, 1000, 4096])
@pytest.mark.parametrize("exponent", [44, 50, 60])
def test_long_convolutions_are_exact_too(size: int, exponent: int) -> None:
    # By definition, in 64-bit integers: the distance of the first column to every other one. The first is the worst on
    # a circle by symmetry; in a row that is what the small cases above confirm.
    g, over = kernel(size, exponent), domain(size)
    row = [int(((g - np.concatenate([np.zeros(j, dtype=np.int64), g[: size - j]])) ** 2).sum()) for j in range(size)]
    circle = [int(((g - np.roll(g, j)) ** 2).sum()) for j in range(size)]
    assert strategy_sensitivity(Convolution("a", exponent, cyclic=False), over).l2_squared == max(row)
    assert strategy_sensitivity(Convolution("a", exponent, cyclic=True), over).l2_squared == max(circle)


def test_one_leaf_has_nothing_to_say() -> None:
    over = domain(1, 1)
    for strategy in (
        Tree("a", (2,), (1,)),
        Convolution("a", 50, cyclic=True),
        Product(Tree("a", (2,), (1,)), Tree("b", (2,), (1,))),
    ):
        assert strategy_sensitivity(strategy, over) == Sensitivity(0, 0)


def test_one_leaf_on_one_side_still_leaves_the_other() -> None:
    over = domain(1, 4)
    strategy = Product(Tree("a", (2,), (1,)), Tree("b", (2, 2), (1, 3)))
    assert worst(strategy, over) == (8, 20)
    assert strategy_sensitivity(strategy, over) == Sensitivity(8, 20)


def half_a_tree(strategy: Strategy, over: Domain) -> Sensitivity:
    """As if a row only left its nodes."""
    found = strategy_sensitivity(strategy, over)
    return Sensitivity(found.l1 // 2, found.l2_squared // 2)


def unweighted(strategy: Strategy, over: Domain) -> Sensitivity:
    assert isinstance(strategy, Tree)
    return strategy_sensitivity(Tree(strategy.name, strategy.branching, (1,) * len(strategy.weights)), over)


def squares_of_sums(strategy: Strategy, over: Domain) -> Sensitivity:
    """Weights added before they are squared: right in L1, and in L2 only by luck."""
    found = strategy_sensitivity(strategy, over)
    return Sensitivity(found.l1, min(found.l2_squared, found.l1))


def without_the_second_tree(strategy: Strategy, over: Domain) -> Sensitivity:
    assert isinstance(strategy, Product)
    return strategy_sensitivity(strategy.first, over)


def largest_level_alone(strategy: Strategy, over: Domain) -> Sensitivity:
    """As if a row lay in a node of one level only."""
    assert isinstance(strategy, Product)
    most = max(strategy.weights)
    return Sensitivity(2 * most, 2 * most * most)


def one_column(strategy: Strategy, over: Domain) -> Sensitivity:
    """As if a row were added, not replaced."""
    assert isinstance(strategy, Convolution)
    g = kernel(leaves(over["a"]), strategy.exponent)
    return Sensitivity(int(2 * g.sum()), int((g * g).sum()))


def next_column(strategy: Strategy, over: Domain) -> Sensitivity:
    """As if values only moved to a neighbouring leaf."""
    assert isinstance(strategy, Convolution)
    columns = matrix(strategy, over).T
    return Sensitivity(int(2 * columns.sum()), int(((columns[0] - columns[1]) ** 2).sum()))


def circle_as_row(strategy: Strategy, over: Domain) -> Sensitivity:
    assert isinstance(strategy, Convolution)
    return strategy_sensitivity(Convolution("a", strategy.exponent, not strategy.cyclic), over)


def without_extras(strategy: Strategy, over: Domain) -> Sensitivity:
    assert isinstance(strategy, Convolution)
    return strategy_sensitivity(strategy, domain(over["a"].bins))


@pytest.mark.parametrize(
    ("mutant", "asked"),
    [
        (half_a_tree, TREES),
        (unweighted, TREES),
        (squares_of_sums, TREES),
        (half_a_tree, PRODUCTS),
        (without_the_second_tree, PRODUCTS),
        (largest_level_alone, PRODUCTS),
        (one_column, CONVOLUTIONS),
        (next_column, CONVOLUTIONS),
        (circle_as_row, CONVOLUTIONS),
        (without_extras, CONVOLUTIONS),
    ],
)
def test_planted_mistakes_are_caught(mutant: Rule, asked: list[tuple[Strategy, Domain]]) -> None:
    assert not all(holds(mutant, strategy, over) for strategy, over in asked)
    assert all(holds(strategy_sensitivity, strategy, over) for strategy, over in asked)


def records(over: Domain, cells: Ints, counts: Ints) -> Records:
    return Records(over, [column.astype(np.uint16) for column in cells.T], counts)


@pytest.mark.parametrize(("strategy", "over"), [*TREES[::9], *CONVOLUTIONS[::7], *PRODUCTS[::11]])
def test_the_truth_is_the_matrix_times_the_leaves(strategy: Strategy, over: Domain) -> None:
    chance = np.random.default_rng(3)
    cells = np.array(list(np.ndindex(over.shape)))
    counts = chance.integers(0, 1000, len(cells))
    table = counts.reshape(over.shape)
    for axis, name in enumerate(over.names):
        bins = over[name].bins
        parts = np.split(table, [bins], axis=axis)
        table = (
            np.concatenate([parts[0], parts[1].sum(axis=axis, keepdims=True)], axis=axis)
            if over[name].extras
            else table
        )
    if not isinstance(strategy, Product) and len(over) > 1:
        table = table.sum(axis=1)
    found = strategy_truth(strategy, records(over, cells, counts))
    assert found.dtype == np.int64
    assert found.tolist() == (matrix(strategy, over) @ table.ravel()).tolist()


@pytest.mark.parametrize("rows", [10, 10**6, 10**9, 2**42 - 1])
@pytest.mark.parametrize("size", [5, 64, 300])
def test_convolutions_are_exact_for_any_number_of_rows(rows: int, size: int) -> None:
    chance = np.random.default_rng(size)
    counts = chance.multinomial(rows, chance.dirichlet(np.full(size, 0.1))).astype(np.int64)
    g = kernel(size, 50)
    expected = [
        sum(int(counts[j]) * int(g[i - j]) for j in range(size) if 0 <= i - j < size) for i in range(2 * size - 1)
    ]
    assert convolve(counts, g, most=rows).tolist() == expected


def test_a_long_convolution_is_exact() -> None:
    # 2^17 leaves, every 1000th answer against a plain integer sum.
    size, rows = 2**17, 10**12
    chance = np.random.default_rng(1)
    counts = chance.multinomial(rows, np.full(size, 1 / size)).astype(np.int64)
    counts[7] += 2**40
    g, rows = kernel(size, 50), rows + 2**40
    at = range(0, size, 4099)
    expected = [int(np.dot(counts[: i + 1], g[i::-1])) for i in at]
    assert convolve(counts, g, most=rows)[list(at)].tolist() == expected
    with pytest.raises(ArithmeticError):  # the control: floats without digits
        bounds._rounded(counts, g, 2**18)


def test_what_could_not_be_exact_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        convolve(np.ones(4, dtype=np.int64), np.full(4, 2**40), most=4)
    with pytest.raises(ValueError, match="too long"):
        convolve(np.ones(2**12, dtype=np.int64), np.full(4, 2**35), most=2**42)


@pytest.mark.parametrize("wrong", ["one more", "a prime more", "below zero"])
def test_a_transform_that_errs_is_noticed(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """Whatever numpy does: a sum that is off by one, or by a multiple of the modulus, is refused."""
    inverse, off = np.fft.irfft, {"one more": 1.0, "a prime more": 2.0**31 - 1, "below zero": -1e6}[wrong]

    def errs(*args: Any) -> Any:
        found = inverse(*args)
        found[3] += off
        return found

    counts, factor = np.arange(50, dtype=np.int64), np.arange(20, dtype=np.int64)
    assert convolve(counts, factor, most=10**4).tolist() == np.convolve(counts, factor).tolist()
    monkeypatch.setattr(np.fft, "irfft", errs)
    with pytest.raises(ArithmeticError):
        convolve(counts, factor, most=10**4)
