"""Queries: the canonical form is exact for predicates, and tables say what brute force over all cells says."""

from __future__ import annotations

import copy
import json
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support import calls
from tacit.errors import InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query

Cell = dict[str, int]


@dataclass
class Tree:
    """The same condition twice: built as a query, and as a plain Python function of a cell."""

    query: Query
    holds: Callable[[Cell], bool]


def domain_of(sizes: list[int]) -> Domain:
    return _domain_of(*sizes)


@cache  # the same one for all examples, so that what is drawn of it is made once
def _domain_of(*sizes: int) -> Domain:
    return Domain({name: integer(0, size - 1) for name, size in zip("dbca", sizes, strict=False)})


SIZES = st.lists(st.integers(2, 4), min_size=2, max_size=4)


@cache
def trees(domain: Domain) -> st.SearchStrategy[Tree]:
    def leaf(name: str, chosen: list[int]) -> Tree:
        return Tree(Query.among(domain, name, chosen), lambda cell: cell[name] in chosen)

    def constant(everyone: bool) -> Tree:
        return Tree(Query.constant(everyone=everyone), lambda _: everyone)

    def negated(part: Tree) -> Tree:
        return Tree(~part.query, lambda cell: not part.holds(cell))

    def both(a: Tree, b: Tree) -> Tree:
        return Tree(a.query & b.query, lambda cell: a.holds(cell) and b.holds(cell))

    def either(a: Tree, b: Tree) -> Tree:
        return Tree(a.query | b.query, lambda cell: a.holds(cell) or b.holds(cell))

    def all_of(parts: list[Tree]) -> Tree:
        return Tree(Query.all(p.query for p in parts), lambda cell: all(p.holds(cell) for p in parts))

    def any_of(parts: list[Tree]) -> Tree:
        return Tree(Query.any([p.query for p in parts]), lambda cell: any(p.holds(cell) for p in parts))

    def tabled(names: list[str], bits: int) -> Tree:
        shape = [domain[name].size for name in names]
        weights = np.array([bits >> i & 1 for i in range(math.prod(shape))]).reshape(shape)
        return Tree(
            Query.weighted(domain, names, weights), lambda cell: bool(weights[tuple(cell[name] for name in names)])
        )

    leaves = st.one_of(
        [st.lists(st.integers(0, domain[n].size - 1), max_size=4).map(lambda c, n=n: leaf(n, c)) for n in domain]
        + [
            st.booleans().map(constant),
            st.builds(tabled, st.lists(st.sampled_from(domain.names), max_size=2, unique=True), st.integers(0, 2**16)),
        ]
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(negated),
            st.builds(both, inner, inner),
            st.builds(either, inner, inner),
            st.lists(inner, max_size=3).map(all_of),
            st.lists(inner, max_size=3).map(any_of),
        ),
        max_leaves=7,
    )


def truth(tree: Tree, domain: Domain) -> NDArray[np.int64]:
    """Whether the condition holds, cell by cell, from the Python function alone."""
    values = [
        tree.holds(dict(zip(domain.names, cell, strict=True)))
        for cell in product(*(range(size) for size in domain.shape))
    ]
    return np.array(values, dtype=np.int64).reshape(domain.shape)


def dense(query: Query, domain: Domain) -> NDArray[np.int64]:
    return query.table(domain.names, domain.shape)


@settings(max_examples=250)
@given(st.data())
def test_tables_and_keys_against_brute_force(data: st.DataObject) -> None:
    domain = domain_of(data.draw(SIZES))
    a, b = data.draw(trees(domain)), data.draw(trees(domain))
    of_a, of_b = truth(a, domain), truth(b, domain)
    np.testing.assert_array_equal(dense(a.query, domain), of_a)
    np.testing.assert_array_equal(dense(b.query, domain), of_b)
    assert a.query.unit == 1
    # Canonical: equal keys if and only if the two conditions agree on every cell.
    assert (a.query.key == b.query.key) == (of_a == of_b).all()
    assert (a.query == b.query) == (of_a == of_b).all()
    # One bought answer serves a question and its complement, and no other.
    assert a.query.core.key == (~a.query).core.key
    shared = (of_a == of_b).all() or (of_a == 1 - of_b).all()
    assert (a.query.core.key == b.query.core.key) == shared
    assert a.query.is_constant == (of_a.min() == of_a.max())
    # The scope is exactly what the answer depends on.
    depends = [n for axis, n in enumerate(domain.names) if (of_a != of_a.take([0], axis)).any()]
    assert a.query.scope == tuple(sorted(depends))


@settings(max_examples=120)
@given(st.data())
def test_one_condition_in_many_spellings_has_one_key(data: st.DataObject) -> None:
    # Random pairs rarely agree, so here the same cells are put together in another way: one by one, in random order.
    domain = domain_of(data.draw(SIZES))
    tree = data.draw(trees(domain))
    cells = [tuple(int(i) for i in cell) for cell in np.argwhere(truth(tree, domain))]
    single = [
        Query.all(Query.among(domain, name, [i]) for name, i in zip(domain.names, cell, strict=True))
        for cell in data.draw(st.permutations(cells))
    ]
    rebuilt = Query.any(single)
    assert rebuilt.key == tree.query.key
    weighted = Query.weighted(domain, domain.names, truth(tree, domain))
    assert weighted.key == tree.query.key


@pytest.mark.parametrize("sizes", [[2, 2], [2, 3], [2, 2, 2]], ids=str)
def test_every_predicate_of_a_small_domain_has_one_key(sizes: list[int]) -> None:
    # All sets of cells, each in several spellings, and all boxes and their complements by way of their sides.
    domain = domain_of(sizes)
    cells = list(product(*(range(size) for size in sizes)))
    points = [Query.all(Query.among(domain, n, [i]) for n, i in zip(domain.names, cell, strict=True)) for cell in cells]
    subsets = [[[i for i in range(size) if bits >> i & 1] for bits in range(2**size)] for size in sizes]
    spelled: list[Query] = []
    for bits in range(2 ** len(cells)):
        inside = [point for i, point in enumerate(points) if bits >> i & 1]
        outside = [point for i, point in enumerate(points) if not bits >> i & 1]
        weights = np.array([bits >> i & 1 for i in range(len(cells))]).reshape(sizes)
        spelled += [Query.any(inside), ~Query.any(outside), Query.all(~point for point in outside)]
        spelled += [Query.weighted(domain, domain.names, weights)]
    for chosen in product(*subsets):
        sides = [Query.among(domain, name, some) for name, some in zip(domain.names, chosen, strict=True)]
        spelled += [Query.all(sides), Query.any(sides), ~Query.all(~side for side in sides), ~Query.any(sides)]
    tables = {dense(query, domain).tobytes() for query in spelled}
    assert len(tables) == 2 ** len(cells)
    assert len({query.key for query in spelled}) == len(tables)
    assert len({(dense(query, domain).tobytes(), query.key) for query in spelled}) == len(tables)
    assert len({query.core.key for query in spelled}) == len(tables) // 2


@settings(max_examples=100)
@given(st.data())
def test_json_round_trip(data: st.DataObject) -> None:
    domain = domain_of(data.draw(SIZES))
    query = data.draw(trees(domain)).query
    if data.draw(st.booleans()):
        names = data.draw(st.lists(st.sampled_from(domain.names), unique=True, max_size=3))
        count = math.prod(domain[name].size for name in names)
        weights = data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
        query &= Query.weighted(domain, names, np.reshape(weights, [domain[name].size for name in names]))
    again = Query.from_dict(json.loads(json.dumps(query.to_dict())))
    assert again.key == query.key
    assert again == query
    assert hash(again) == hash(query)
    assert (again.scope, again.unit, again.is_constant) == (query.scope, query.unit, query.is_constant)
    np.testing.assert_array_equal(dense(again, domain), dense(query, domain))


@settings(max_examples=100)
@given(st.data())
def test_weights_and_the_order_of_attributes(data: st.DataObject) -> None:
    domain = domain_of(data.draw(SIZES))
    names = list(data.draw(st.permutations(domain.names)))[: data.draw(st.integers(1, 3))]
    shape = [domain[name].size for name in names]
    count = math.prod(shape)
    weights = np.reshape(data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)), shape)
    query = Query.weighted(domain, names, weights)
    for cell in product(*(range(size) for size in domain.shape)):
        at = dict(zip(domain.names, cell, strict=True))
        expected = weights[tuple(at[name] for name in names)]
        assert abs(dense(query, domain)[cell] / query.unit - expected) <= 0.5 / GRID
        assert dense(~query, domain)[cell] == query.unit - dense(query, domain)[cell]
    turned = list(data.draw(st.permutations(range(len(names)))))
    same = Query.weighted(domain, [names[i].upper() for i in turned], weights.transpose(turned))
    assert same.key == query.key
    assert query.core.key == (~query).core.key
    assert (~~query).key == query.key


def test_products_of_weights() -> None:
    domain = domain_of([2, 2])
    half, fair = Query.weighted(domain, ["d"], [0.5, 1]), Query.weighted(domain, ["b"], [0.25, 0.5])
    np.testing.assert_array_equal(dense(half & fair, domain) * 8, GRID * np.array([[1, 2], [2, 4]]))
    np.testing.assert_array_equal(dense(half | fair, domain) * 8, GRID * np.array([[5, 6], [8, 8]]))
    three = Query.weighted(domain, ["b"], [3 / GRID, 1])
    assert dense(half & three, domain)[0, 0] == 2  # half of three steps is rounded to the nearest, ties up
    assert dense(Query.weighted(domain, ["d"], [0.49, 1]) & three, domain)[0, 0] == 1
    constant = Query.weighted(domain, ["d"], [0.25, 0.25])
    assert constant.is_constant
    np.testing.assert_array_equal(dense(constant, domain), np.full((2, 2), GRID // 4))
    np.testing.assert_array_equal(dense(constant & fair, domain) * 16, GRID * np.array([[1, 2], [1, 2]]))
    assert Query.weighted(domain, [], 1.0) == Query.constant(everyone=True)
    assert Query.weighted(domain, ["d"], [0, 1e-9]) == Query.constant(everyone=False)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.5, math.nan, 0], "lie between 0 and 1"),
        ([0.5, math.inf, 0], "lie between 0 and 1"),
        ([0.5, -1e-9, 0], "lie between 0 and 1"),
        ([0.5, 1.0000001, 0], "lie between 0 and 1"),
        ([0, 255, 0], "lie between 0 and 1"),
        ([0.5, 0.5], "have shape"),
        ([[0.5, 0.5, 0.5]], "have shape"),
        (0.5, "have shape"),
        ([], "have shape"),
        (["a", "b", "c"], "are numbers"),
        (["0.5", "1", "0"], "are numbers"),
        ([0.5, "1", 0], "are numbers"),
        ([0.5, None, 0], "are numbers"),
        ([[0.5], [0.5, 1], 0], "are numbers"),
        ([1j, 0, 0], "are numbers"),
        (np.array([1j, 0, 0]), "are numbers"),
        ([10**400, 0, 0], "are numbers"),
        (None, "are numbers"),
        ({"a": 1}, "are numbers"),
        (np.array(["2020-01-01"] * 3, dtype="M8[D]"), "are numbers"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bad_weights_are_refused(weights: Any, words: str) -> None:
    domain = domain_of([3, 2])
    with pytest.raises(InvalidQuery, match=words):
        Query.weighted(domain, ["d"], weights)


def test_attributes_are_weighted_once_and_declared() -> None:
    domain = domain_of([2, 2])
    with pytest.raises(InvalidQuery, match="weighted twice"):
        Query.weighted(domain, ["d", "D"], np.zeros((2, 2)))
    with pytest.raises(InvalidQuery, match="unknown column"):
        Query.weighted(domain, ["e"], [0, 1])


def test_a_conjunction_never_materialises_and_a_tie_of_nine_is_refused() -> None:
    wide = Domain({f"a{i:02}": integer(0, 49) for i in range(12)})  # 2.4e20 cells
    leaves = [Query.among(wide, name, range(25)) for name in wide]

    def work() -> None:
        query = Query.all(leaves)
        for leaf in reversed(leaves):
            query &= leaf
        assert (~~query).key == query.key == Query.all(reversed(leaves)).key
        assert query.core.key == (~query).core.key
        assert len(json.dumps(query.to_dict())) < 5_000
        with pytest.raises(
            InvalidQuery, match=r"ties \d+ attributes together \(a00, .*at most 8 attributes and 1,048,576"
        ):
            Query.any(leaves) & leaves[0]

    assert calls(work) < 50_000  # 5,583 today
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22
    assert Query.any(leaves).complement  # a plain disjunction is the complement of a conjunction: no table either
    nine = Domain({f"b{i}": category(["x", "y"]) for i in range(9)})
    ones = [Query.among(nine, name, [0]) for name in nine]
    with pytest.raises(InvalidQuery, match="ties 9 attributes together"):
        Query.any(ones) & ~ones[0]
    with pytest.raises(InvalidQuery, match="ties 9 attributes together"):
        Query.weighted(nine, nine.names, np.full([2] * 9, 0.5))
    assert (Query.any(ones[:8]) & ~ones[0]).scope == tuple(f"b{i}" for i in range(8))


def test_arrays_are_read_only() -> None:
    domain = domain_of([3, 2, 2])
    given_ = np.array([[0.0, 0.5], [0.5, 1.0], [0.0, 1.0]])
    predicate = (Query.among(domain, "d", [0]) | Query.among(domain, "b", [1])) & Query.among(domain, "c", [1])
    queries = [
        predicate,
        ~predicate,
        Query.weighted(domain, ["d", "b"], given_),
        Query.weighted(domain, ["b", "d"], given_.T),
        Query.from_dict(predicate.to_dict()),
        Query.from_dict(Query.weighted(domain, ["d", "b"], given_).to_dict()),
    ]
    for query in queries:
        for factor in query.factors:
            with pytest.raises(ValueError, match="read-only"):
                factor.weights[...] = 0
    before = queries[2].key, dense(queries[2], domain).copy()
    given_[...] = 0.25  # the caller's own array stays the caller's
    np.testing.assert_array_equal(dense(queries[2], domain), before[1])
    dense(predicate, domain)[...] = 9
    assert dense(predicate, domain).max() == 1


def test_keys_do_not_change_between_versions() -> None:
    # Ledgers hold keys: this one may change only together with the version in the hash.
    domain = Domain({"sex": category(["F", "M"]), "age": integer(0, 9)})
    query = Query.among(domain, "sex", [0]) & Query.among(domain, "age", [2, 3])
    assert query.key == "194116ee6e334c4ae68196ec2dc905f4ae1c4608adf9f78bc07a66efb12aaf6a"
    assert repr(query) == f"Query(age, sex; {query.key[:12]})"


def test_keys_are_pinned() -> None:
    # Ledgers remember keys for ever. Whoever changes the canonical form must change the version word in `Query.key` and
    # the ledger's format with it, or old answers are paid again.
    domain = Domain({"sex": category(["F", "M"]), "age": integer(0, 99, width=10)})
    woman, young = Query.among(domain, "sex", [0]), Query.among(domain, "age", [0, 1, 2])
    weighted = Query.weighted(domain, ["age"], [i / 10 for i in range(10)])
    keys = [query.key[:16] for query in (woman, woman & young, woman | young, weighted)]
    assert keys == ["741722105e4e60f0", "704674dab1d91db6", "33a369e3809dd5a1", "a59162218f476a1d"]


def test_a_range_of_a_wide_attribute_may_begin_anywhere() -> None:
    """One attribute is no tie, however many bins it has."""
    bins = 2**20 + 8
    domain = Domain({"x": integer(0, bins - 1)})
    above, below = (Query.among(domain, "x", some) for some in (range(5, bins), range(bins - 5)))
    both = above & below
    assert both.key == Query.among(domain, "x", range(5, bins - 5)).key


def test_what_is_written_of_any_query_is_read_as_the_same_query() -> None:
    """Weights that round to a constant, or to nothing, had no canonical form: what was bought could not be read."""
    domain = Domain({"a": integer(0, 3), "b": integer(0, 3), "c": integer(0, 2)})
    rng, step, kinds = np.random.default_rng(1), 2.0**-20, set[int]()

    def some() -> Query:
        name = str(rng.choice(list("abc")))
        size = domain.sizes[name]
        made = (
            np.full(size, rng.choice([0.5, 1 / 3, step, 3 * step, 1 - step])),
            rng.integers(0, 4, size) * step,
            1 - rng.integers(0, 4, size) * step,
            rng.integers(0, 2, size),
            rng.random(size),
        )
        return Query.weighted(domain, [name], made[rng.integers(5)])

    for _ in range(4_000):
        query = some()
        for _ in range(rng.integers(0, 4)):
            query = query & some() if rng.random() < 0.6 else query | some()
            query = ~query if rng.random() < 0.3 else query
        kinds.add(len(query.factors))
        again = Query.from_dict(json.loads(json.dumps(query.to_dict())))
        assert again.key == (~~query).key == copy.copy(query).key == query.key
    assert kinds == {0, 1, 2, 3}


def test_a_weight_for_all_rows_that_leaves_a_constant_is_one() -> None:
    domain = Domain({"a": integer(0, 3), "b": integer(0, 3)})
    half = Query.weighted(domain, ["b"], [0.5] * 4)
    steps = Query.weighted(domain, ["a"], [2.0**-20, *[2 * 2.0**-20] * 3])
    both = half & steps
    assert both.is_constant
    assert [(factor.unit, factor.weights.item()) for factor in both.factors] == [(GRID, 1)]
    nothing = Query.weighted(domain, ["a"], [2.0**-20] * 4) & Query.weighted(domain, ["b"], [2.0**-20] * 4)
    assert nothing.key == Query.constant(everyone=False).key


def test_a_lone_weight_has_one_orientation_on_every_machine() -> None:
    """Of two tables that sum to the same the one comes first whose numbers do, whatever the order of their bytes."""
    domain = Domain({"a": integer(0, 1)})
    for first in (300 / 2**20, 1 - 300 / 2**20):
        query = Query.weighted(domain, ["a"], [first, 1 - first])
        (factor,) = query.factors
        assert factor.weights.tolist() == [300, 2**20 - 300]
