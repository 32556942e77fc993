"""Statistics against enumeration: all small databases, all neighbours, and each value worked out in another way."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from tacit.exact.charges import choice_terms
from tacit.exact.price import choice_price
from tacit.model import statistic_library as library
from tacit.model.budget import Loss
from tacit.model.factor import GRID
from tacit.model.request import WorstOf
from tacit.model.statistic import Statistic
from tacit.model.statistic_check import refute
from tacit.model.statistic_library import LIBRARY, Definition

Function = Callable[..., NDArray[np.int64]]
Case = tuple[str, tuple[int, ...], tuple[Any, ...], int]  # name, shape, arguments, most rows

BLOOD = "1111" + "0101" + "0011" + "0001"  # O, A, B, AB: what each may give to
CROSSED = "110" + "011" + "000"
CASES: list[Case] = [
    ("stump", (3, 2), (3, 1), 5),
    ("stump", (4, 2), (3, 1), 4),  # the last bin has no place in the order
    ("stump", (3, 3), (3, 0), 4),
    ("stump", (3, 2), (1, 1), 5),
    ("exceptions", (2, 2), (2, 2), 6),
    ("exceptions", (3, 2), (3, 2), 5),
    ("exceptions", (3, 3), (2, 2), 4),  # the last value of either follows no rule
    ("largest_mean", (2, 2), (1, 2, 0, GRID), 9),
    ("largest_mean", (2, 2), (1, 3, 0, GRID), 9),
    ("largest_mean", (3, 2), (2, 5, 0, GRID // 3, GRID), 6),
    ("largest_mean", (3, 2), (1, 1, GRID // 7, GRID // 3, 3 * GRID // 4), 5),
    ("largest_mean", (3, 2), (1, 2, 0, GRID), 6),  # rows of the last value are in no group
    ("largest_mean", (2, 2, 2), (1, 2, 1, GRID), 5),
    ("largest_mean", (2, 3), (1, 100, 5, GRID), 6),
    ("matching", (2, 3), ("10", "01", "100010001"), 5),
    ("matching", (2, 3), ("10", "01", CROSSED), 5),
    ("matching", (3, 2), ("110", "001", "1101"), 5),
    ("matching", (3, 2), ("010", "100", "1101"), 5),  # rows on neither side
    ("matching", (2, 4), ("10", "01", BLOOD), 4),
    ("quantile_distance", (5,), (1, 2, 1, 3), 7),
    ("quantile_distance", (5,), (1, 2, 0, 2), 7),
    ("quantile_distance", (5,), (9, 10, 3, 4), 7),
    ("quantile_distance", (4,), (1, 1, 0, 3), 7),  # the last value has no place in the order
    ("quantile_distance", (4,), (1, 1000, 2, 4), 7),
]
TIGHT = [case for case in CASES if case[0] != "largest_mean"]


@cache
def databases(shape: tuple[int, ...], rows: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """All databases of so many rows, and the pairs of which one is the other with one row replaced."""
    cells = math.prod(shape)
    counts = [tuple(np.bincount(d, minlength=cells)) for d in combinations_with_replacement(range(cells), rows)]
    place = {one: i for i, one in enumerate(counts)}
    pairs = set()
    for one, i in place.items():
        for old, new in product(range(cells), repeat=2):
            if one[old] and old != new:
                other = np.array(one)
                other[old] -= 1
                other[new] += 1
                pairs.add((i, place[tuple(other)]))
    return np.array(counts).reshape(-1, *shape), np.array(sorted(pairs), dtype=np.intp).reshape(-1, 2)


def worst(function: Function, unit: int, case: Case) -> tuple[Fraction, bool]:
    """The largest move between neighbours, in counts, and whether all values are between 0 and the size."""
    _, shape, arguments, most = case
    largest, inside = Fraction(0), True
    for rows in range(1, most + 1):
        tables, pairs = databases(shape, rows)
        values = function(tables, *arguments)
        assert values.dtype == np.int64
        assert values.shape == (len(tables),)
        inside &= bool(((values >= 0) & (values <= rows * unit)).all())
        moves = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]])
        largest = max(largest, Fraction(int(moves.max(initial=0)), unit))
    return largest, inside


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_neighbour_is_further_away_than_one_count(case: Case) -> None:
    found = LIBRARY[case[0]]
    move, inside = worst(found.function, found.unit, case)
    assert inside
    assert 0 < move <= 1


@pytest.mark.parametrize("case", TIGHT, ids=str)
def test_some_neighbour_is_one_count_away(case: Case) -> None:
    # A price of less than 1 would not do, and the statistic is not a constant.
    found = LIBRARY[case[0]]
    assert worst(found.function, found.unit, case)[0] == 1


def test_every_case_passes_the_owners_check_too() -> None:
    for name, shape, arguments, _ in CASES:
        assert refute(LIBRARY[name], shape, arguments) is None


# The same values, worked out otherwise.


def rows_of(table: NDArray[np.int64]) -> list[tuple[int, ...]]:
    return [tuple(map(int, cell)) for cell in np.argwhere(table) for _ in range(table[tuple(cell)])]


def stump_by_trying(table: NDArray[np.int64], bins: int, label: int) -> int:
    extras = range(bins, table.shape[0])
    classifiers = [
        {x: (x < threshold) == below for x in range(bins)} | dict(zip(extras, guesses, strict=True))
        for threshold in range(bins + 1)
        for below in (True, False)
        for guesses in product([True, False], repeat=len(extras))
    ]
    return min(sum(classifier[x] != (y == label) for x, y in rows_of(table)) for classifier in classifiers)


def exceptions_by_trying(table: NDArray[np.int64], first: int, second: int) -> int:
    rows = [(x, y) for x, y in rows_of(table) if x < first and y < second]
    return min(sum(rule[x] != y for x, y in rows) for rule in product(range(second), repeat=first))


def largest_mean_by_groups(table: NDArray[np.int64], numerator: int, denominator: int, *values: int) -> int:
    rows = rows_of(table)
    smallest = math.ceil(Fraction(numerator * len(rows), denominator))
    groups: dict[tuple[int, ...], list[int]] = {}
    for value, *group in rows:
        if value < len(values):
            groups.setdefault(tuple(group), []).append(values[value])
    filled = [(sum(held), max(len(held), smallest)) for held in groups.values()]
    return max((math.floor(Fraction(smallest * total, size)) for total, size in filled), default=0)


def matching_by_paths(table: NDArray[np.int64], left: str, right: str, relation: str) -> int:
    rows, types = rows_of(table), table.shape[1]
    givers = [t for side, t in rows if left[side] == "1"]
    takers = [t for side, t in rows if right[side] == "1"]
    if not givers or not takers:
        return 0
    fits = np.array([[relation[a * types + b] == "1" for b in takers] for a in givers])
    return int((maximum_bipartite_matching(csr_array(fits), perm_type="column") >= 0).sum())


def quantile_distance_by_search(
    table: NDArray[np.int64], numerator: int, denominator: int, first: int, end: int
) -> int:
    size = int(table.sum())
    rank = math.ceil(Fraction(numerator * size, denominator))
    others, _ = databases(table.shape, size)
    there = [other for other in others if first <= sorted(x for (x,) in rows_of(other))[rank - 1] < end]
    return min(int(np.abs(table - other).sum()) // 2 for other in there)


REFERENCES = {
    "stump": stump_by_trying,
    "exceptions": exceptions_by_trying,
    "largest_mean": largest_mean_by_groups,
    "matching": matching_by_paths,
    "quantile_distance": quantile_distance_by_search,
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_value_is_what_its_definition_says(case: Case) -> None:
    name, shape, arguments, most = case
    for rows in (1, 2, 3, min(most, 4)):
        tables, _ = databases(shape, rows)
        tables = tables[:: max(1, len(tables) // 150)]
        values = LIBRARY[name].function(tables, *arguments)
        assert values.tolist() == [REFERENCES[name](table, *arguments) for table in tables]


def test_large_relations_are_cut_in_parts_and_on_their_smaller_side() -> None:
    # 40 types: 13 left ones that fit three right classes, equality among the rest. 2^13 cuts would be refused.
    chance = np.random.Generator(np.random.PCG64(5))
    fits = np.eye(40, dtype=int)
    fits[:13, :13] = 0
    fits[:13, 0] = chance.integers(0, 2, 13)
    fits[:13, 1:3] = chance.integers(0, 2, 13)[:, None]
    fits[:13, 3] = 1
    relation = "".join(map(str, fits.ravel()))
    tables = chance.poisson(0.7, (30, 2, 40))
    values = library.matching(tables, "10", "01", relation)
    assert values.tolist() == [matching_by_paths(table, "10", "01", relation) for table in tables]


def test_sizes_beyond_64_bits_are_exact() -> None:
    chance = np.random.Generator(np.random.PCG64(6))
    for scale in (2**19, 2**22, 2**38):
        for _ in range(20):
            table = chance.integers(0, scale, (1, 3, 2))
            numerator, denominator = 3, 7
            values = (0, GRID // 3, GRID)
            smallest = math.ceil(Fraction(int(table.sum()) * numerator, denominator))
            expected = 0
            for group in range(2):
                total = sum(int(k) * v for k, v in zip(table[0, :, group], values, strict=True))
                expected = max(expected, smallest * total // max(int(table[0, :, group].sum()), smallest))
            assert library.largest_mean(table, numerator, denominator, *values).tolist() == [expected]


# Planted mistakes: the enumeration must refuse them, and so must the owner's check.


def mean_with_a_floor_too_low(tables: NDArray[np.int64], numerator: int, denominator: int, *values: int) -> Any:
    rows, sums, smallest = parts_of_mean(tables, numerator, denominator, values)
    return (smallest * sums // np.maximum(np.maximum(rows, smallest - 1), 1)).max(axis=1)


def mean_without_a_floor(tables: NDArray[np.int64], numerator: int, denominator: int, *values: int) -> Any:
    rows, sums, smallest = parts_of_mean(tables, numerator, denominator, values)
    return (smallest * sums // np.maximum(rows, 1)).max(axis=1)


def mean_of_large_groups_only(tables: NDArray[np.int64], numerator: int, denominator: int, *values: int) -> Any:
    rows, sums, smallest = parts_of_mean(tables, numerator, denominator, values)
    return np.where(rows >= smallest, smallest * sums // np.maximum(rows, 1), 0).max(axis=1)


def mean_times_the_size(tables: NDArray[np.int64], numerator: int, denominator: int, *values: int) -> Any:
    rows, sums, smallest = parts_of_mean(tables, numerator, denominator, values)
    size = tables.reshape(len(tables), -1).sum(axis=1)[:, None]
    return (size * sums // np.maximum(rows, smallest)).max(axis=1)


def parts_of_mean(tables: NDArray[np.int64], numerator: int, denominator: int, values: tuple[int, ...]) -> Any:
    listed = tables.reshape(len(tables), tables.shape[1], -1)[:, : len(values)]
    smallest = -(-tables.reshape(len(tables), -1).sum(axis=1) * numerator // denominator)
    return listed.sum(axis=1), (listed * np.array(values)[None, :, None]).sum(axis=1), smallest[:, None]


def stump_at_the_mean(tables: NDArray[np.int64], bins: int, label: int) -> Any:
    counts = tables.sum(axis=2)
    mean = (counts * np.arange(tables.shape[1])).sum(axis=1) // counts.sum(axis=1)
    above = np.arange(tables.shape[1])[None, :] > mean[:, None]
    positive = tables[:, :, label]
    return np.where(above, counts - positive, positive).sum(axis=1)


def both_ways(tables: NDArray[np.int64], first: int, second: int) -> Any:
    there, back = library.exceptions(tables, first, second), library.exceptions(tables.swapaxes(1, 2), second, first)
    return there + back


def matched_rows(tables: NDArray[np.int64], left: str, right: str, relation: str) -> Any:
    return 2 * library.matching(tables, left, right, relation)


def the_quantile_itself(tables: NDArray[np.int64], numerator: int, denominator: int, first: int, end: int) -> Any:
    sizes = tables.sum(axis=1)
    rank = -(-sizes * numerator // denominator)
    return (tables.cumsum(axis=1) < rank[:, None]).sum(axis=1) * sizes // tables.shape[1]


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (mean_with_a_floor_too_low, "largest_mean"),
        (mean_without_a_floor, "largest_mean"),
        (mean_of_large_groups_only, "largest_mean"),
        (mean_times_the_size, "largest_mean"),
        (stump_at_the_mean, "stump"),
        (both_ways, "exceptions"),
        (matched_rows, "matching"),
        (the_quantile_itself, "quantile_distance"),
    ],
)
def test_planted_mistakes_are_caught(mutant: Function, name: str) -> None:
    unit, cases = LIBRARY[name].unit, [case for case in CASES if case[0] == name]
    caught = [case for case in cases if worst(mutant, unit, case)[0] > 1]
    assert caught, "the enumeration accepts a statistic that moves too far"
    assert all(worst(LIBRARY[name].function, unit, case)[0] <= 1 for case in caught)  # it is the mistake it catches
    wrong = Definition(unit, mutant, LIBRARY[name].check, LIBRARY[name].words)
    assert any("moves it by" in (refute(wrong, shape, arguments) or "") for _, shape, arguments, _ in caught)


def test_a_floor_of_something_that_moves_by_a_whole_number_moves_by_no_more() -> None:
    # Why rounding down to the grid is safe, and why it would not be if the bound were not whole.
    steps = [Fraction(i, 12) for i in range(61)]
    for whole in (1, 2):
        assert max(abs(math.floor(x) - math.floor(y)) for x in steps for y in steps if abs(x - y) <= whole) == whole
    half = Fraction(1, 2)
    assert max(abs(math.floor(x) - math.floor(y)) for x, y in combinations(steps, 2) if abs(x - y) <= half) > half


def choice_moves(function: Function, unit: int, case: Case) -> int:
    """The most that |f(D) - guess|, a statistic's score in a choice, moves between neighbours, in fine steps."""
    _, shape, arguments, most = case
    largest = 0
    for rows in range(1, most + 1):
        tables, pairs = databases(shape, rows)
        values = function(tables, *arguments) * (GRID // unit)
        for guess in (0, GRID // 3, rows * GRID // 2, rows * GRID):
            scores = np.abs(values - guess)
            if len(pairs):
                largest = max(largest, int(np.abs(scores[pairs[:, 0]] - scores[pairs[:, 1]]).max()))
    return largest


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_statistic_is_a_candidate_at_the_price_of_a_query(case: Case) -> None:
    # What `choice_terms` charges is for scores that move by one count; a choice of scores that move by d costs
    # `choice_price(scale, d)`, exactly as tests/exact/test_selection.py enumerates.
    definition = LIBRARY[case[0]]
    moved = choice_moves(definition.function, definition.unit, case)
    assert 0 < moved <= GRID
    loss = Loss.of("epsilon", 0.7)
    name, arguments = case[0], case[2]
    asked = Statistic(name, tuple(f"a{i}" for i in range(len(case[1]))), arguments)
    worst_of = WorstOf((asked,), (np.zeros(1, dtype=np.int64),))
    terms, scale = choice_terms(worst_of, loss, 1)
    assert choice_price(scale, moved, "epsilon") <= terms.cost <= loss


def test_a_choice_by_matched_rows_instead_of_pairs_is_refuted() -> None:
    # A planted bug: the number of matched rows moves by 2, and a choice by it would cost twice what is charged.
    case = next(case for case in CASES if case[0] == "matching")
    assert choice_moves(lambda tables, *given: 2 * library.matching(tables, *given), 1, case) == 2 * GRID
