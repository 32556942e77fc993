"""Discovered values against enumeration: the exact law of what is told, over all small tables and all their neighbours.

`docs/understand/privacy.md`, "Discovery", claims for every t that Pr[S] <= e^t Pr'[S] + gamma_mu(t) + delta. Here both
laws are written down, number by number, and the best S is found. Each planted mistake must break the claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.exact.bounds import passing_count
from tacit.exact.price import threshold_of, values_noise, values_price
from tacit.load import open_source
from tacit.model.attribute import category
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise, pmf
from tacit.trusted.cells import read_tally

ASIDE = 0.08
LOSS = Loss("gdp", 500_000_000_000)  # mu = 1
SHIFTS = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
Counts = tuple[int, ...]


def gamma(mu: float, t: float) -> float:
    return float(ndtr(mu / 2 - t / mu) - math.exp(t) * ndtr(-mu / 2 - t / mu))


def told(count: int, noise: Noise, threshold: int, reach: int) -> NDArray[np.float64]:
    """The law of what is said of one value: nothing, which is also all that is said of one that no row has, or k."""
    law = np.zeros(reach - threshold + 2)
    if count == 0:
        law[0] = 1.0
    else:
        law[1:] = pmf(noise, np.arange(threshold, reach + 1) - count)
        law[0] = 1 - law[1:].sum()
    return law


def worst(first: Counts, second: Counts, noise: Noise, threshold: int, t: float) -> float:
    """The supremum over all sets S of Pr[S] - e^t Pr'[S]."""
    reach = max(*first, *second) + threshold + math.ceil(9 * noise.scale)
    laws = []
    for counts in (first, second):
        law = np.ones(1)
        for count in counts:
            law = np.multiply.outer(law, told(count, noise, threshold, reach)).ravel()
        laws.append(law)
    return float(np.maximum(laws[0] - math.exp(t) * laws[1], 0).sum())


def neighbours(values: int, rows: int, moved: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of tables, as counts of values, of which one becomes the other by moving so many rows at most."""
    tables = [
        tuple(np.bincount(chosen, minlength=values).tolist())
        for chosen in combinations_with_replacement(range(values), rows)
    ]
    for first, second in product(tables, tables):
        if 0 < sum(abs(a - b) for a, b in zip(first, second, strict=True)) <= 2 * moved:
            yield first, second


def excess(people: int, noise: Noise, threshold: int, delta: float, mu: float, values: int = 2) -> float:
    """By how much the claim is broken at worst: not at all, if it is below 0.

    The values have few rows, or nearly as many as are told: then it is the counts that tell neighbours apart.
    """
    return max(
        worst(tuple(n + more for n in first), tuple(n + more for n in second), noise, threshold, t)
        - max(gamma(mu, t), 0.0)
        - delta
        for first, second in neighbours(values, people + 1, people)
        for more in (0, threshold)
        for t in SHIFTS
    )


def paid(noise: Noise, people: int) -> float:
    return math.sqrt(2 * float(values_price(noise, people, "gdp")))


@pytest.mark.parametrize("people", [1, 2, 3])
def test_what_is_told_costs_no_more_than_it_is_charged(people: int) -> None:
    noise = values_noise(LOSS, people)
    threshold = threshold_of(noise, people, ASIDE, intent=1, among=1)
    assert excess(people, noise, threshold, ASIDE / 2, paid(noise, people)) <= 1e-12


def test_the_same_with_three_values() -> None:
    noise = values_noise(LOSS, 1)
    threshold = threshold_of(noise, 1, ASIDE, intent=1, among=1)
    assert excess(1, noise, threshold, ASIDE / 2, paid(noise, 1), values=3) <= 1e-12


def test_planted_a_threshold_for_values_that_nobody_has() -> None:
    """A person brings up to m rows of a value that nobody else has: the threshold is m above the noise, not at it."""
    noise = values_noise(Loss("gdp", 4 * LOSS.atoms), 3)
    right = threshold_of(noise, 3, ASIDE, intent=1, among=1)
    assert excess(3, noise, right, ASIDE / 2, paid(noise, 3)) <= 1e-12
    assert excess(3, noise, right - 3, ASIDE / 2, paid(noise, 3)) > 0.01


def test_planted_no_threshold() -> None:
    noise = values_noise(LOSS, 1)
    assert excess(1, noise, 1, ASIDE / 2, paid(noise, 1)) > 0.3


def test_planted_noise_for_one_row_where_a_person_has_three() -> None:
    noise = values_noise(LOSS, 1)
    threshold = passing_count(noise.scale, 3, 3, ASIDE / 2)
    assert excess(3, noise, threshold, ASIDE / 2, paid(noise, 1)) > 0.1


def test_planted_noise_for_a_count_where_a_row_leaves_one_value_for_another() -> None:
    noise = values_noise(LOSS, 1)
    lighter = Noise("gaussian", noise.scale / math.sqrt(2))
    assert excess(1, lighter, threshold_of(noise, 1, ASIDE, intent=1, among=1), ASIDE / 2, paid(noise, 1)) > 0.01


# -- delta -------------------------------------------------------------------------------------------------------------


def chance(noise: Noise, people: int, threshold: int, brought: Counts) -> float:
    """That any of the values is told that one person alone brings, so many rows each."""
    z = np.arange(threshold - people, threshold + math.ceil(40 * noise.scale))
    law = pmf(noise, z)
    tails = [float(law[z >= threshold - count].sum()) for count in brought]
    return 1 - math.prod(1 - tail for tail in tails)


def partitions(rows: int, most: int | None = None) -> Iterator[Counts]:
    """All ways to bring so many rows, in different values."""
    if rows == 0:
        yield ()
    for first in range(min(rows, most or rows), 0, -1):
        yield from ((first, *rest) for rest in partitions(rows - first, first))


@pytest.mark.parametrize("people", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0, 900.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_whatever_one_person_brings_is_told_with_a_chance_of_delta_at_most(
    people: int, scale: float, delta: float
) -> None:
    noise = Noise("gaussian", scale)
    threshold = passing_count(scale, people, people, delta)
    worst_of_all = max(chance(noise, people, threshold, brought) for brought in partitions(people))
    assert worst_of_all <= delta
    # And no threshold is larger than the union bound asks for: a few rows lower that would not hold.
    assert people * chance(noise, people, threshold - 3, (people,)) > delta


def test_the_deltas_of_all_looks_add_up_to_what_was_set_aside() -> None:
    """The exact chances, of all columns of all intents that a ledger could have, in whatever order."""
    noise, people = Noise("gaussian", 30.0), 2
    spent = 0.0
    for intent in range(1, 60):
        threshold = threshold_of(noise, people, ASIDE, intent, among=4)
        each = max(chance(noise, people, threshold, brought) for brought in partitions(people))
        spent += 4 * each
    assert spent <= ASIDE
    thresholds = [threshold_of(noise, people, ASIDE, intent, 1) for intent in (1, 2, 3, 10, 100, 900)]
    assert all(a < b for a, b in pairwise(thresholds))
    assert spent > ASIDE / 50  # and not for nothing


def test_planted_a_delta_that_is_not_shared() -> None:
    noise = Noise("gaussian", 30.0)
    wrong = threshold_of(noise, 1, ASIDE, intent=1, among=1)
    assert 12 * chance(noise, 1, wrong, (1,)) > ASIDE / 2


# -- what is tallied ---------------------------------------------------------------------------------------------------

VALUES = ("a", "b", "a ", "", None)


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        yield connection


def tally(engine: Any, rows: tuple[tuple[str | None, str | None], ...], most: int | None) -> dict[Any, int]:
    spelled = ", ".join(
        "(" + ", ".join("CAST(NULL AS TEXT)" if x is None else f"'{x}'" for x in row) + ")" for row in rows
    )
    relation = engine.sql(f"SELECT * FROM (VALUES {spelled}) AS t(who, v)")
    whose: dict[str, Any] = {} if most is None else {"person": "who", "rows_per_person": most}
    found = read_tally(open_source(relation), Domain({"v": category(["?"])}), **whose)
    return dict(zip(found.values, found.counts.tolist(), strict=True))


def moves(first: dict[Any, int], second: dict[Any, int]) -> list[int]:
    return [first.get(v, 0) - second.get(v, 0) for v in {**first, **second}]


def test_a_replaced_row_moves_one_count_down_and_one_up(engine: Any) -> None:
    tables = {
        chosen: tally(engine, tuple(("p", v) for v in chosen), None)
        for chosen in combinations_with_replacement(sorted(VALUES, key=repr), 3)
    }
    seen = 0
    for first, second in product(tables, tables):
        rest = list(second)
        kept = sum(v in rest and rest.remove(v) is None for v in first)
        if kept == 2:
            moved = moves(tables[first], tables[second])
            assert sum(map(abs, moved)) <= 2
            assert max(map(abs, moved), default=0) <= 1
            seen = max(seen, sum(map(abs, moved)))
    assert seen == 2


@pytest.mark.parametrize("most", [1, 2])
def test_the_rows_of_a_person_move_no_more_than_so_many_counts(engine: Any, most: int) -> None:
    """One person's three rows are whatever they like; another's stay. Who has as many rows as before is a neighbour."""
    others = (("q", "a"), ("q", "b"), ("q", "b"))
    tables = [
        tally(engine, (*others, *(("p", v) for v in chosen)), most)
        for chosen in combinations_with_replacement(("a", "b", "c", "d"), 3)
    ]
    largest = max(sum(map(abs, moves(first, second))) for first, second in product(tables, tables))
    assert largest == 2 * most
    unbounded = [tally(engine, (*others, *(("p", v) for _ in range(3))), 3) for v in "cd"]
    assert sum(map(abs, moves(*unbounded))) > 2 * most  # a bound that is forgotten shows


def test_values_that_no_category_can_list_are_left_out_by_what_they_are(engine: Any) -> None:
    rows = (("p", "a"), ("p", "a  "), ("p", "x\ty"), ("p", "z" * 129), ("p", ""), ("p", None), ("p", "b"))
    assert tally(engine, rows, None) == {"a": 2, "b": 1, None: 1}
