"""Questions are values: what is no question cannot be made, and what was made cannot change. Prices rest on that."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidBudget, InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.factor import (
    GRID,
    Factor,
    alone_in_digits,
    alone_in_rows,
    alone_in_runs,
    alone_in_steps,
    conditions_in_digits,
    irreducible,
    read_factor,
    reduced,
    write_weights,
    written,
)
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import MAX_ANSWERS, Convolution, Marginal, Product, Tree, check, marginal
from tacit.store.chain import canonical

SIZES = {"a": 6, "b": 5, "c": 4}
DOMAIN = Domain({name: integer(0, size - 1) for name, size in SIZES.items()} | {"sex": category(["F", "M"])})
EVERYONE = Query.constant(everyone=True)


def some(rng: np.random.Generator) -> Query:
    """A conjunction, a disjunction, weights, or a complement of one."""
    parts = []
    for name in rng.choice(list(SIZES), size=rng.integers(1, 4), replace=False):
        chosen = rng.choice(SIZES[name], size=rng.integers(1, SIZES[name]), replace=False)
        weighted = rng.random() < 0.2
        parts.append(
            Query.weighted(DOMAIN, [name], rng.random(SIZES[name]))
            if weighted
            else Query.among(DOMAIN, str(name), chosen)
        )
    query = Query.any(parts) if rng.random() < 0.3 else Query.all(parts)
    return ~query if rng.random() < 0.3 else query


def one(weights: Any, unit: Any = 1, scope: Any = ("sex",)) -> Query:
    return Query((Factor(scope, weights, unit),), complement=False)


# -- what cannot be made ----------------------------------------------------------------------------------------------

WRONG: dict[str, Callable[[], object]] = {
    "weight above 1": lambda: one(np.array([0, 2])),
    "weight above 1 on the grid": lambda: one(np.array([0, GRID + 1]), GRID),
    "weight below 0": lambda: one(np.array([-1, 1])),
    "fractions": lambda: one(np.array([0.0, 0.5])),
    "truth values": lambda: one(np.array([False, True])),
    "text": lambda: one(np.array(["0", "1"])),
    "nothing": lambda: one(np.array([], dtype=np.int64)),
    "another shape than its scope": lambda: one(np.array([[0, 1]])),
    "a masked weight above 1": lambda: one(np.ma.MaskedArray([0, 2**11], mask=[False, True])),
    "a grid of its own": lambda: one(np.array([0, 5]), 2 * GRID),
    "a grid that equals 1": lambda: one(np.array([0, 1]), True),
    "a grid of another type": lambda: one(np.array([0, 1]), np.int64(1)),
    "a grid of floats": lambda: one(np.array([0, 1]), 1.0),
    "scope as a list": lambda: one(np.array([0, 1]), 1, ["sex"]),
    "scope as a text": lambda: one(np.array([0, 1]), 1, "x"),
    "scope out of order": lambda: one(np.ones((5, 6), dtype=np.int64), 1, ("b", "a")),
    "scope twice": lambda: one(np.ones((6, 6), dtype=np.int64), 1, ("a", "a")),
    "nine attributes at once": lambda: one(np.ones((2,) * 9, dtype=np.int64), 1, tuple("abcdefghi")),
    "an attribute in two factors": lambda: Query((Factor(("a",), np.ones(6, int), 1),) * 2, complement=False),
    "no factor": lambda: Query(("sex",), complement=False),  # type: ignore[arg-type]
    "complement of another type": lambda: Query((), complement=np.bool_(True)),  # type: ignore[arg-type]
    "complement that equals 0": lambda: Query((), complement=0),  # type: ignore[arg-type]
    "a table of nothing": lambda: Marginal((), EVERYONE),
    "a table of one attribute twice": lambda: Marginal(("sex", "sex"), EVERYONE),
    "a table out of order": lambda: Marginal(("sex", "a"), EVERYONE),
    "a table's names as a list": lambda: Marginal(["a"], EVERYONE),  # type: ignore[arg-type]
    "a table of weighted rows": lambda: Marginal(("a",), Query.weighted(DOMAIN, ["sex"], [0.5, 1])),
    "a table of rows in text": lambda: Marginal(("a",), "sex = 'F'"),  # type: ignore[arg-type]
    "a statistic without a name": lambda: Statistic(None, ("a",)),  # type: ignore[arg-type]
    "a statistic of a list": lambda: Statistic("stump", ["a", "sex"]),  # type: ignore[arg-type]
    "a fraction as an argument": lambda: Statistic("stump", ("a", "sex"), (6.0, 1)),  # type: ignore[arg-type]
    "a truth value as an argument": lambda: Statistic("stump", ("a", "sex"), (6, True)),
    "an argument beyond 64 bits": lambda: Statistic("stump", ("a", "sex"), (6, 2**63)),
    "a tree without levels": lambda: Tree("a", (), ()),
    "a tree with a weight too many": lambda: Tree("a", (6,), (1, 1)),
    "a tree of weight 0": lambda: Tree("a", (6,), (0,)),
    "a tree of a huge weight": lambda: Tree("a", (6,), (2**16 + 1,)),
    "a tree of fractions": lambda: Tree("a", (6,), (1.0,)),  # type: ignore[arg-type]
    "a tree of truth values": lambda: Tree("a", (6,), (True,)),
    "a tree of 65 levels": lambda: Tree("a", (2,) * 65, (1,) * 65),
    "an exponent too large": lambda: Convolution("a", 61, cyclic=True),
    "an exponent below 0": lambda: Convolution("a", -1, cyclic=True),
    "an exponent in fractions": lambda: Convolution("a", 50.0, cyclic=True),  # type: ignore[arg-type]
    "a circle that equals 1": lambda: Convolution("a", 50, cyclic=1),  # type: ignore[arg-type]
    "a product out of order": lambda: Product(Tree("b", (5,), (1,)), Tree("a", (6,), (1,))),
    "a product of one attribute": lambda: Product(Tree("a", (6,), (1,)), Tree("a", (6,), (1,))),
    "a product with a convolution": lambda: Product(Tree("a", (6,), (1,)), Convolution("b", 5, False)),  # type: ignore[arg-type]
    "a nested product of trees of other depths": lambda: Product(
        Tree("a", (3, 2), (1, 1)), Tree("b", (5,), (1,)), nested=True
    ),
    "a nested product by a number": lambda: Product(Tree("a", (6,), (1,)), Tree("b", (5,), (1,)), nested=1),  # type: ignore[arg-type]
    "a product too heavy": lambda: Product(Tree("a", (6,), (2**9,)), Tree("b", (5,), (2**9,))),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_question_cannot_be_made(wrong: str) -> None:
    with pytest.raises(InvalidQuery):
        WRONG[wrong]()


@pytest.mark.parametrize("wrong", [("rho", True), ("rho", 1.0), ("rho", np.int64(1)), ("sigma", 1), (None, 1)])
def test_what_is_no_amount_cannot_be_made(wrong: Any) -> None:
    with pytest.raises(InvalidBudget):
        Loss(*wrong)


class Heavier(Query):
    """Could answer otherwise when it is looked at again."""


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM data",
        None,
        one(np.array([0, 1, 0])),
        one(np.array([0, 1]), 1, ("nobody",)),
        one(np.array([0, 1]), 1, ("SEX",)),
        Heavier((), complement=False),
        Marginal(("SEX",), EVERYONE),
        Marginal(("nobody",), EVERYONE),
        Marginal(("a",), one(np.array([0, 1, 0]))),
        Statistic("nobody knows it", ("a",)),
        Statistic("stump", ("a", "nobody"), (6, 1)),
        Tree("nobody", (6,), (1,)),
        Tree("sex", (2,), (1,)),  # has no order
        Tree("a", (5,), (1,)),  # one leaf is not reached
        Tree("a", (7,), (1,)),  # a tree for other leaves: the same one would have two keys
        Tree("a", (2, 6), (1, 1)),  # the top level would be the public root
        Tree("a", (6, 1), (1, 1)),
        Convolution("sex", 50, cyclic=True),
        Product(Tree("a", (6,), (1,)), Tree("b", (3,), (1,))),
    ],
    ids=repr,
)
def test_a_question_about_another_domain_is_refused(question: Any) -> None:
    with pytest.raises(InvalidQuery):
        check(question, DOMAIN)


def test_a_question_has_no_more_answers_than_can_be_drawn() -> None:
    wide = Domain({"x": integer(0, 2**12 - 1), "y": integer(0, 2**12 - 1)})
    with pytest.raises(InvalidQuery, match=f"{MAX_ANSWERS:,}"):
        check(marginal(wide, "x", "y"), wide)


# -- what cannot change -----------------------------------------------------------------------------------------------


def test_weights_are_nobodys_to_write() -> None:
    given = np.array([0, 1])
    query = one(given)
    given[:] = [1, 1]
    weights = query.factors[0].weights
    assert weights.tolist() == [0, 1]
    for write in (lambda: weights.__setitem__(0, 0), lambda: weights.setflags(write=True)):
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
            write()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda query: pickle.loads(pickle.dumps(query))])  # noqa: S301
def test_a_copy_is_the_same_question_and_as_frozen(again: Callable[[Query], Query]) -> None:
    rng = np.random.default_rng(4)
    for query in [some(rng) for _ in range(50)]:
        other = again(query)
        assert (other, other.key, other.complement) == (query, query.key, query.complement)
        assert not any(factor.weights.flags.writeable for factor in other.factors)


def test_a_factor_cannot_be_unpickled_wrong() -> None:
    factor = Factor(("sex",), np.array([0, 1]), 1)
    make, (scope, weights, unit) = factor.__reduce__()
    with pytest.raises(InvalidQuery):
        make(scope, 2 * weights, unit)  # type: ignore[arg-type,operator]


# -- one form for one question ----------------------------------------------------------------------------------------


def test_whoever_makes_a_query_gets_its_canonical_form() -> None:
    rng = np.random.default_rng(1)
    for query in [some(rng) for _ in range(300)]:
        made = Query(tuple(reversed(query.factors)), query.complement)
        assert (made.key, made.complement, made.scope) == (query.key, query.complement, query.scope)
        assert Query.from_dict(query.to_dict()).key == query.key
    everywhere = one(np.array([1, 1]))
    assert everywhere.is_everyone
    assert everywhere == EVERYONE


def test_the_everyday_way_comes_to_the_general_canonical_form(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = []
    for general in (False, True):
        if general:
            monkeypatch.setattr("tacit.model.query.everyday", lambda factor: False)
            monkeypatch.setattr("tacit.model.factor.everyday", lambda factor: False)
        rng = np.random.default_rng(2)
        made = [some(rng) for _ in range(400)]
        forms.append([(query.key, query.complement, query.scope) for query in made])
    assert forms[0] == forms[1]


def test_a_key_is_a_hash_of_the_json_of_the_canonical_form() -> None:
    # Ledgers hold these keys: they must never come out otherwise.
    rng, wide = np.random.default_rng(3), Domain({'é "': integer(0, 999), "b": integer(0, 299)})
    weighted = Query.weighted(wide, ['é "', "b"], rng.random((1000, 300)))
    conditions = Query.among(wide, "b", range(0, 300, 2)) & Query.among(wide, 'é "', range(10, 20))
    for query in [*(some(rng) for _ in range(50)), EVERYONE, weighted, ~conditions]:
        text = canonical(query.to_dict())
        assert query.key == hashlib.sha256(b"tacit query 2\x00" + text.encode()).hexdigest()
        assert (
            text
            == f'{{"complement":{json.dumps(query.complement)},"factors":[{",".join(map(written, query.factors))}]}}'
        )


def test_digits_may_stand_alone_where_the_condition_that_they_spell_may() -> None:
    for size in (1, 2, 5, 8, 9):
        for value in range(2 ** (8 * -(-size // 8))):
            digits = f"{value:0{2 * -(-size // 8)}x}"
            factor = read_factor({"scope": ["a"], "shape": [size], "unit": 1, "weights": digits})
            some_meet_it = 0 < int(factor.weights.sum()) < size
            one_spelling = write_weights(factor) == digits
            right = Query((factor,), False).factors[:1] == (factor,) if some_meet_it and one_spelling else None
            assert alone_in_digits(size, digits) is right
            few = conditions_in_digits(size)
            assert (few is not None and re.fullmatch(few, f'"{digits}"') is not None) == (right is not None)
    for digits in ("0", "0F", "0f0", "0f00", " 0", "0f "):  # of another length, or in another spelling
        assert alone_in_digits(8, digits) is None


@pytest.mark.parametrize("size", [255, 256, 257, 500])
def test_runs_may_stand_alone_where_the_condition_that_they_spell_may(size: int) -> None:
    rng, kinds = np.random.default_rng(4), set[tuple[type, bool]]()
    for edges in [0, 1, 2, 3, 4, 5, 7, 8, 9, 40, 200] * 8:
        cuts = np.sort(rng.choice(size - 1, edges, replace=False) + 1)
        weights = (np.searchsorted(cuts, np.arange(size), side="right") + rng.integers(2)) % 2
        factor = Factor(("a",), weights, 1)
        runs = np.diff(cuts, prepend=0, append=size).tolist()
        runs = [0, *runs] if weights[0] else runs
        digits = np.packbits(factor.weights).tobytes().hex()
        right = Query((factor,), False).factors[:1] == (factor,) if edges else None
        for form, found in ((digits, alone_in_digits(size, digits)), (runs, alone_in_runs(size, runs))):
            again = read_factor({"scope": ["a"], "shape": [size], "unit": 1, "weights": form})
            assert written(again) == written(factor)  # either form is read, one is written
            kinds.add((type(form), one_spelling := write_weights(factor) == form))
            assert found is (right if one_spelling else None)
        for wrong in ([*runs, 0], [0, 0, *runs], [1, *runs], [*runs[:-1], runs[-1] - 1], [-1, *runs, 1]):
            assert alone_in_runs(size, wrong) is None
    assert len(kinds) == (4 if size >= 256 else 2)


def may_stand_alone(factor: Factor) -> bool | None:
    """What is said of a factor in its one spelling, by the canonical form itself: None unless it is one of many."""
    alike = [(part.scope, part.unit, part.weights.tolist()) for part in irreducible(reduced(factor))]
    if alike != [(factor.scope, factor.unit, factor.weights.tolist())] or not factor.weights.any():
        return None
    alone = Query((factor,), False)
    return not alone.complement and [one.weights.tolist() for one in alone.factors] == [factor.weights.tolist()]


@pytest.mark.parametrize(
    ("rows", "size", "kinds"), [(1, 3, 1), (3, 1, 1), (2, 2, 3), (2, 3, 3), (3, 2, 3), (2, 5, 3), (3, 3, 3)]
)
def test_a_table_over_two_attributes_may_stand_alone_where_its_canonical_form_does(
    rows: int, size: int, kinds: int
) -> None:
    found = Counter[bool | None]()
    for bits in product((0, 1), repeat=rows * size):
        factor = Factor(("a", "b"), np.array(bits).reshape(rows, size), 1)
        digits = write_weights(factor)
        assert isinstance(digits, str)
        found[said := alone_in_rows(rows, size, digits)] += 1
        assert said is may_stand_alone(factor)
        for wrong in (digits.upper() + "G", digits[:-2], digits + "00", digits[:-1] + "f"):
            assert alone_in_rows(rows, size, wrong) is None
    assert len(found) == kinds


def test_the_complement_of_a_product_is_no_question_however_few_cells_it_has() -> None:
    few = 0
    for some, others in product(product((0, 1), repeat=4), repeat=2):
        factor = Factor(("a", "b"), 1 - np.outer(some, others), 1)
        digits = write_weights(factor)
        assert isinstance(digits, str)
        said = alone_in_rows(4, 4, digits)
        assert said is may_stand_alone(factor)
        few += said is False and int(factor.weights.sum()) < 8
    assert few == 16  # those of three values of one attribute and three of the other


def test_a_large_table_over_two_attributes_is_written_in_runs_where_few_of_its_cells_differ() -> None:
    ragged = np.random.default_rng(5).integers(0, 2, (20, 30))
    plain = (np.arange(600) > 313).reshape(20, 30).astype(int)  # two ties of two rows, in two runs
    for weights in (ragged, plain):
        factor = Factor(("a", "b"), weights, 1)
        digits, form = np.packbits(weights.astype(np.uint8)).tobytes().hex(), write_weights(factor)
        assert alone_in_rows(20, 30, digits) is (may_stand_alone(factor) if form == digits else None)
        assert (form == digits) == (weights is ragged)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_steps_may_stand_alone_where_their_canonical_form_does(size: int) -> None:
    found = Counter[bool | None]()
    for steps in product((0, 1, GRID // 2, GRID // 2 + 1, GRID - 1, GRID), repeat=size):
        found[said := alone_in_steps(size, steps)] += 1
        assert said is may_stand_alone(Factor(("a",), np.array(steps), GRID))
        assert alone_in_steps(size + 1, steps) is None
    assert len(found) == (3 if size > 1 else 1)
    for wrong in ([-1, *range(size)], [GRID + 1, *range(size)]):
        assert alone_in_steps(size + 1, wrong) is None


def test_a_root_has_no_more_children_than_it_needs() -> None:
    for branching in ((2, 3), (10**30, 3)):
        assert Tree.over("a", 6, branching, (1, 1)) == Tree("a", (2, 3), (1, 1))


def test_without_a_kernel_there_is_no_circle() -> None:
    assert Convolution("a", 0, cyclic=True) == Convolution("a", 0, cyclic=False)


# -- planted bugs -----------------------------------------------------------------------------------------------------


def test_planted_weights_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Factor, "__post_init__", lambda self: None)
    with pytest.raises(pytest.fail.Exception):
        test_what_is_no_question_cannot_be_made("weight above 1")


def test_planted_weights_not_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.model.factor.frozen", lambda weights, kind: weights)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_weights_are_nobodys_to_write()


@pytest.mark.parametrize(("unit", "kind"), [(GRID, np.int64), (GRID, np.uint32), (GRID, np.float32), (1, np.int16)])
def test_weights_that_are_read_as_other_numbers_are_refused(unit: int, kind: type) -> None:
    """numpy lets the dtype of an array be set, although nobody can write its bytes: four weights become two huge."""
    domain = Domain({"x": integer(0, 3)})
    query = Query((Factor(("x",), np.array([1, 0, 1, 1]), unit),), complement=False)
    check(query, domain)
    weights = query.factors[0].weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        weights.dtype = kind
        weights.shape = (weights.size,)
    for size in (2, 4, 8):
        with pytest.raises(InvalidQuery):
            check(query, Domain({"x": integer(0, size - 1)}))
