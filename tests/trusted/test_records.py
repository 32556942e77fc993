"""True answers are exact integers: equal to a sum over the rows in plain Python, and to the last grid step."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidQuery
from tacit.load import open_source
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.trusted import records as module
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

SHAPE = (3, 300, 7, 2)  # the second needs codes of two bytes
DOMAIN = Domain({"z": integer(0, 2), "wide": integer(0, 299), "a": integer(0, 6), "sex": category(["F", "M"])})


def make(cells: Sequence[Sequence[int]], counts: Sequence[int], domain: Domain = DOMAIN) -> Records:
    columns = np.array(cells).reshape(len(counts), len(domain)).T
    codes = [c.astype(np.uint8 if size < 255 else np.uint16) for c, size in zip(columns, domain.shape, strict=True)]
    return Records(domain, codes, np.array(counts, dtype=np.int64))


CELLS = st.lists(st.tuples(*(st.integers(0, size - 1) for size in SHAPE)), min_size=1, max_size=20, unique=True)


@st.composite
def queries(draw: st.DrawFn) -> Query:
    parts = []
    for name in draw(st.lists(st.sampled_from(DOMAIN.names), unique=True, max_size=4)):
        size = DOMAIN[name].size
        if draw(st.booleans()):
            parts.append(Query.among(DOMAIN, name, draw(st.sets(st.integers(0, size - 1), max_size=5))))
        elif draw(st.booleans()):  # a range
            first = draw(st.integers(0, size - 1))
            parts.append(Query.among(DOMAIN, name, range(first, draw(st.integers(first, size)))))
        else:
            seed = draw(st.integers(0, 9))
            parts.append(Query.weighted(DOMAIN, [name], np.random.default_rng(seed).random(size)))
    if draw(st.booleans()):  # a table over two attributes that is no product
        parts.append(Query.weighted(DOMAIN, ["sex", "a"], np.eye(2, 7)))
    query = Query.all(parts)
    return ~query if draw(st.booleans()) else query


def weight(query: Query, cell: Sequence[int]) -> int:
    """The weight of one cell by its definition, in Python integers."""
    place = dict(zip(DOMAIN.names, cell, strict=True))
    total, unit = 1, 1
    for factor in query.factors:
        value = int(factor.weights[tuple(place[name] for name in factor.scope)])
        total *= value
        if unit > 1 and factor.unit > 1:
            total = (total + 2**19) // 2**20
        unit = max(unit, factor.unit)
    return query.unit - total if query.complement else total


@settings(max_examples=300)
@given(CELLS, queries(), st.data())
def test_an_answer_is_the_sum_over_the_cells(cells: list[tuple[int, ...]], query: Query, data: st.DataObject) -> None:
    # Catches: a wrong run of values, wrap-around below it, a lost complement, another rounding or order of factors.
    counts = data.draw(st.lists(st.integers(1, 10**6), min_size=len(cells), max_size=len(cells)))
    expected = sum(n * weight(query, cell) for cell, n in zip(cells, counts, strict=True))
    assert make(cells, counts).answer(query) == expected


@settings(max_examples=100)
@given(CELLS, queries().filter(lambda query: query.unit == 1), st.permutations(DOMAIN.names), st.integers(1, 4))
def test_a_table_holds_every_count(cells: list[tuple[int, ...]], where: Query, order: list[str], how_many: int) -> None:
    names = order[:how_many]
    records = make(cells, range(1, len(cells) + 1))
    for chosen in (None, where):
        expected = np.zeros([DOMAIN[name].size for name in names], dtype=np.int64)
        for n, cell in enumerate(cells, start=1):
            place = dict(zip(DOMAIN.names, cell, strict=True))
            expected[tuple(place[name] for name in names)] += n * (1 if chosen is None else weight(chosen, cell))
        found = records.table(names, chosen)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_every_run_of_values_on_codes_of_one_and_two_bytes() -> None:
    # Catches an off-by-one at the ends of a run, all ends tried.
    for size, dtype in ((7, np.uint8), (7, np.uint16), (255, np.uint8), (256, np.uint16)):
        codes = np.arange(size).astype(dtype)
        for first in range(0, size, max(1, size // 7)):
            for end in [*range(first, size, max(1, size // 7)), size]:
                weights = np.zeros(size, dtype=np.uint8)
                weights[first:end] = 1
                np.testing.assert_array_equal(module._meets(codes, weights), weights.astype(bool))


def test_constants_follow_from_the_number_of_rows() -> None:
    records = make([(0, 0, 0, 0), (1, 1, 1, 1)], [3, 4])
    assert records.answer(Query.constant(everyone=True)) == records.rows == 7
    assert records.answer(Query.constant(everyone=False)) == 0
    assert records.answer(Query.weighted(DOMAIN, ["a"], np.full(7, 0.5))) == 7 * GRID // 2


def test_a_sum_near_the_limit_does_not_overflow() -> None:
    records = make([(0, 0, 0, 0), (1, 1, 1, 1)], [module.MAX_ROWS // 2 - 1] * 2)
    almost = Query.weighted(DOMAIN, ["a"], np.full(7, 1 - 1 / GRID) * (np.arange(7) < 2))
    assert records.answer(almost) == records.rows * (GRID - 1)
    assert records.table(["sex"]).tolist() == [module.MAX_ROWS // 2 - 1] * 2


def test_a_table_that_is_too_large_or_weighted_is_refused() -> None:
    domain = Domain({"a": integer(0, 9999), "b": integer(0, 9999)})
    records = make([(1, 2)], [1], domain)
    with pytest.raises(InvalidQuery, match="100,000,000 cells is too large"):
        records.table(["a", "b"])
    with pytest.raises(InvalidQuery, match="by conditions"):
        make([(0, 0, 0, 0)], [1]).table(["a"], Query.weighted(DOMAIN, ["sex"], [0.1, 0.2]))


def test_a_domain_far_beyond_memory() -> None:
    # Catches a word that overflows or is decoded from the wrong bits: |X| is 10^30, over two words.
    domain = Domain({f"c{i}": integer(0, 999) for i in range(10)})
    rows = [[(i * (k + 1)) % 1000 for k in range(10)] for i in (1, 1, 998, 999)]
    table = pa.table({f"c{k}": [row[k] for row in rows] for k in range(10)})
    records = read_records(open_source(table), domain)
    assert records.rows == 4
    assert len(records._counts) == 3  # distinct cells that hold a row
    for k in range(10):
        assert records.table([f"c{k}"])[(k + 1) % 1000] == 2
        assert records.answer(Query.among(domain, f"c{k}", [rows[3][k]])) >= 1


@settings(max_examples=50)
@given(CELLS, st.randoms(use_true_random=False))
def test_a_fingerprint_does_not_depend_on_order_and_on_all_else_it_does(
    cells: list[tuple[int, ...]], random: Any
) -> None:
    counts = list(range(1, len(cells) + 1))
    known = make(cells, counts).fingerprint(b"key")
    order = random.sample(range(len(cells)), len(cells))
    assert make([cells[i] for i in order], [counts[i] for i in order]).fingerprint(b"key") == known
    changed = [(*cells[0][:3], 1 - cells[0][3]), *cells[1:]]
    renamed = Domain({name + "2": attribute for name, attribute in DOMAIN.items()})
    others = [
        make(cells, counts).fingerprint(b"other key"),
        make(cells, [counts[0] + 1, *counts[1:]]).fingerprint(b"key"),
        make(changed, counts).fingerprint(b"key"),
        make(cells, counts, renamed).fingerprint(b"key"),
    ]
    assert known not in others
    assert len(known) == 64


def test_nothing_private_in_what_is_shown() -> None:
    # Catches a repr that tells the number of distinct cells, and records that leave by pickling.
    few, many = make([(0, 0, 0, 0)], [20]), make([(0, i, 0, 0) for i in range(20)], [1] * 20)
    assert repr(few) == repr(many) == f"Records(20 rows, {DOMAIN!r})"
    assert str(few) == repr(few)
    with pytest.raises(TypeError):
        pickle.dumps(few)
