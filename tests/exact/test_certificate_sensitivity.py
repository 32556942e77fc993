"""Certificates against enumeration: all small databases, all their neighbours, guesses and lists of several kinds."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.exact.price import Sensitivity
from tacit.model.attribute import category, integer
from tacit.model.certificate import Certificate, Certificates, Conjunctions
from tacit.model.domain import Domain
from tacit.model.factor import GRID, Factor
from tacit.model.query import Query
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import order_statistics, sensitivity, truth

DOMAIN = Domain({"age": integer(0, 2, missing="unknown"), "sex": category(["F", "M"])})
ROWS = 3
AGES = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], dtype=np.uint8)
SEXES = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.uint8)
WEIGHTS = np.array([0, GRID // 3, GRID, GRID // 7])
STEPS = {"flat": (), "rising": ((0, 0), (1, 1), (2, 3)), "falling": ((0, 2), (1, 0))}
Statistic = Callable[[Any, Records], NDArray[np.int64]]


def lists(seed: int) -> tuple[Conjunctions, ...]:
    """Questions about one attribute, about both in all combinations, and about both in pairs; guesses off the grid."""
    rng = np.random.Generator(np.random.PCG64(seed))

    def guess(*shape: int) -> NDArray[np.int64]:
        return rng.integers(0, ROWS * GRID, size=shape)

    return (
        Conjunctions(("age",), guess(4), (AGES,), False),
        Conjunctions(("age", "sex"), guess(4, 2), (AGES, SEXES), False),
        Conjunctions(("sex", "age"), guess(2, 4), (SEXES, AGES[:3]), True),
        Conjunctions(("sex", "age"), guess(2, 4), (SEXES,), True, WEIGHTS),
        Conjunctions(("sex", "age"), guess(2, 4), (SEXES,), False, WEIGHTS[::-1]),
        Conjunctions(("age",), guess(4), (), True, WEIGHTS),
    )


def certificate(seed: int, steps: str = "flat") -> Certificate:
    asked = lists(seed)
    number = sum(one.size for one in asked)
    ranks = (1, number // 2, round(0.95 * number), number)
    return Certificate("a guess", "a list", 2, number, ranks, STEPS[steps], asked)


def records(cells: NDArray[np.int64]) -> Records:
    places = np.unravel_index(np.arange(DOMAIN.size), DOMAIN.shape)
    return Records(DOMAIN, [place.astype(np.uint8) for place in places], cells)


def databases() -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(DOMAIN.size), ROWS))


def several(seed: int) -> Certificates:
    """A certificate of each list, with a rank and offsets of its own."""
    steps = [STEPS[kind] for kind in ("flat", "rising", "falling")]
    return Certificates(
        tuple(
            Certificate("a guess", f"list {i}", 2, one.size, (1 + (seed + i) % one.size,), steps[i % 3], (one,))
            for i, one in enumerate(lists(seed))
        )
    )


def worst(asked: Certificate | Certificates, statistic: Statistic) -> tuple[int, int, int]:
    """The most that one figure moves between neighbours, and the vector's L1 and squared L2 distance."""
    found = {rows: statistic(asked, records(np.bincount(rows, minlength=DOMAIN.size))) for rows in databases()}
    moves = np.array(
        [
            np.abs(found[rows] - found[tuple(sorted((*rows[:i], new, *rows[i + 1 :])))])
            for rows in databases()
            for i, new in product(range(ROWS), range(DOMAIN.size))
        ]
    )
    return int(moves.max()), int(moves.sum(axis=1).max()), int((moves**2).sum(axis=1).max())


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("seed", range(6))
def test_no_neighbour_moves_a_figure_by_more_than_one(seed: int, steps: str) -> None:
    asked = certificate(seed, steps)
    claimed = sensitivity(asked, DOMAIN)
    one, l1, l2_squared = worst(asked, truth)
    assert one == 1
    assert l1 <= claimed.l1 == len(asked.ranks)
    assert l2_squared <= claimed.l2_squared == len(asked.ranks)


def test_the_bound_is_met() -> None:
    """Where all questions are the same one, all figures move together."""
    same = Conjunctions(("sex",), np.zeros(2, dtype=np.int64), (SEXES[[0, 0, 0, 0]],), False)
    assert worst(Certificate("a guess", "a list", 1, 4, (1, 2, 3, 4), (), (same,)), truth) == (1, 4, 4)


@pytest.mark.parametrize("seed", range(6))
def test_no_neighbour_moves_the_largest_of_several_figures_by_more_than_one(seed: int) -> None:
    asked = several(seed)
    assert worst(asked, truth) == (1, 1, 1)
    assert sensitivity(asked, DOMAIN) == Sensitivity(1, 1)
    table = records(np.array([2, 0, 1, 1, 0, 3, 0, 1]))
    assert truth(asked, table).tolist() == [max(int(order_statistics(one, table)[0]) for one in asked.each)]


def test_people_move_it_once_for_each_row() -> None:
    assert sensitivity(certificate(0), DOMAIN).times(3) == Sensitivity(12, 36)


def test_the_figures_are_those_of_every_question_asked_by_itself() -> None:
    """The matrices against queries, one by one: the reference is `Records.answer`, which knows nothing of lists."""
    asked = certificate(1, "rising")
    table = records(np.array([2, 0, 1, 1, 0, 3, 0, 1]))
    errors = []
    for one in asked.lists:
        paired = one.paired and len(one.conditions) > 0
        rows = zip(*one.conditions, strict=True) if paired else product(*one.conditions)
        weights = [] if one.weights is None else [one.weights]
        for conditions in rows:
            sides = [*(row.astype(np.int64) * GRID for row in conditions), *weights]
            asked_of = zip(one.names, sides, strict=True)
            query = Query.product([Factor((name,), side, GRID) for name, side in asked_of], complement=False)
            cells = reduce(np.multiply.outer, [side.astype(object) for side in sides])
            guess = int((one.guess * cells).sum()) // GRID ** len(sides)
            offset = [rows for start, rows in STEPS["rising"] if guess >= start * GRID][-1]
            true = table.answer(query) * (GRID // query.unit)
            assert abs(true - int((table.table(one.names) * cells).sum()) // GRID ** (len(sides) - 1)) <= 1
            gap = int(((table.table(one.names) * GRID - one.guess) * cells).sum()) // GRID ** len(sides)
            errors.append(abs(gap) - offset * GRID)
    expected = [-(-sorted(errors)[rank - 1] // GRID) for rank in asked.ranks]
    assert order_statistics(asked, table).tolist() == expected


@pytest.mark.parametrize("rows", [3, 2**21, 2**31 - 1, 2**32 - 5, 2**33 + 1, 2**40 - 1, 2**42 - 1])
def test_sums_over_any_number_of_rows_are_exact(rows: int) -> None:
    """As whole numbers of Python's, which have no end, add up: of tables, of guesses, and of what is between them."""
    rng = np.random.Generator(np.random.PCG64(rows))
    tried = 0
    for one in lists(0):
        nothing, alone = np.zeros_like(one.guess), np.zeros_like(one.guess)
        alone.flat[0] = rows
        for _ in range(20):
            table = rng.multinomial(rows, rng.dirichlet(np.full(one.guess.size, 0.3))).reshape(one.guess.shape)
            guess = rng.permutation(table.ravel()).reshape(table.shape) * GRID + rng.integers(
                0, GRID // 16, table.shape
            )
            for steps, less in (
                (table * GRID, nothing),
                (table * GRID, guess),
                (guess, table * GRID),
                (alone * GRID, guess),
            ):
                assert one.sums(steps, less).tolist() == _in_python(one, steps, less)
                tried += int(steps.sum()) + int(less.sum()) >= 2**54  # floats alone would be wrong about some of these
    assert bool(tried) == (rows > 2**33)


def test_one_step_more_than_floats_hold_is_counted() -> None:
    both = Conjunctions(("sex",), np.zeros(2, dtype=np.int64), (np.ones((1, 2), dtype=np.uint8),), False)
    for steps in ([2**53, 1], [2**53 - 1, 2], [2**62 - 2**20, 2**20 - 1]):
        assert both.sums(np.array(steps)).tolist() == [sum(steps)]


@pytest.mark.parametrize("times", [1, 2**20])
def test_whether_a_table_is_large_follows_from_what_is_public(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of as many rows are added up in the same way, wherever their rows are: it takes twice as long in one."""
    parts, joined = set[int](), Conjunctions._joined

    def noted(self: Conjunctions, found: list[NDArray[np.float64]]) -> NDArray[np.int64]:
        parts.add(len(found))
        return joined(self, found)

    monkeypatch.setattr(Conjunctions, "_joined", noted)
    rows = 3 * 2**12 * times  # where a guess is far off or near, the steps in between are more or fewer than 2^53
    guess = np.full((4, 2), rows * GRID // 8)
    one = replace(lists(0)[1], guess=guess)
    for cells in ([rows, *[0] * 7], [rows // 8] * 8):
        one.sums(np.array(cells).reshape(4, 2) * GRID, guess)
    assert parts == {1 if times == 1 else 2}


def _in_python(one: Conjunctions, steps: NDArray[np.int64], less: NDArray[np.int64]) -> list[int]:
    sides = [matrix.astype(object) for matrix in one.conditions]
    paired = one.paired and one.conditions
    found = []
    for conditions in zip(*sides, strict=True) if paired else product(*sides):
        factors = [*conditions, *([] if one.weights is None else [one.weights.astype(object)])]
        total = int(((steps.astype(object) - less) * reduce(np.multiply.outer, factors)).sum())
        found.append(total if one.weights is None else total // GRID)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_no_neighbour_of_a_large_table_moves_a_figure_by_more_than_one(seed: int) -> None:
    """Each row that there may be, replaced by each other one, where sums in floats alone would no longer be exact."""
    rng = np.random.Generator(np.random.PCG64(seed))
    cells = rng.multinomial(2**42 - 1, rng.dirichlet(np.ones(DOMAIN.size)))
    scale = (2**42 - 1) // (ROWS * DOMAIN.size)
    large = [replace(one, guess=one.guess * scale + rng.integers(0, GRID, one.guess.shape)) for one in lists(seed)]
    number = sum(one.size for one in large)
    ranks, steps = (1, number // 2, number), ((0, 1), (2**33, 5), (2**39, 2**30))
    asked = Certificate("a guess", "a list", 2, number, ranks, steps, tuple(large))
    before, met = order_statistics(asked, records(cells)), set[int]()
    for left, entered in product(range(DOMAIN.size), range(DOMAIN.size)):
        after = cells.copy()
        after[left] -= 1
        after[entered] += 1
        met |= set(np.abs(order_statistics(asked, records(after)) - before).tolist())
    assert met == {0, 1}


def test_what_could_not_be_added_up_exactly_is_refused() -> None:
    some = np.zeros((2**22 + 1,), dtype=np.int64)
    with pytest.raises(InvalidQuery, match="4,194,304 values are weighed"):
        Conjunctions(("age",), some, (), True, some)
    # Added up in 64 bits, some of these would seem to be few.
    for guess in (np.full(4, 2**62), np.full(4, 3 * 2**60), np.full(4, 2**63 - 1), np.array([2**62, 2**61, 0, 0])):
        with pytest.raises(InvalidQuery, match=r"fewer than .* times the rows"):
            Conjunctions(("age",), guess, (AGES,), False)
    with pytest.raises(InvalidQuery, match="from 0"):
        Conjunctions(("sex",), np.array([2, -1]), (SEXES,), False)
    for rows, exact in ((2**42 - 1, True), (2**42, False)):
        assert certificate(0).exact(rows) == exact


def test_an_array_of_another_type_is_refused() -> None:
    """Its bytes cannot be changed, but it can be told that they are other numbers: weights of millions, say."""
    for change in ("weights", "guess", "conditions"):
        asked = certificate(0)
        asked.check(DOMAIN)
        listed = asked.lists[3]
        array = {"weights": listed.weights, "guess": listed.guess, "conditions": listed.conditions[0]}[change]
        assert array is not None
        array.dtype = np.dtype("i1") if change == "conditions" else np.dtype(">i8")
        with pytest.raises(InvalidQuery, match="another domain"):
            asked.check(DOMAIN)


# -- planted bugs, which the enumeration must see ---------------------------------------------------------------------


def _sum_instead(asked: Certificate, table: Records) -> NDArray[np.int64]:
    """Of all errors, in place of one of them."""
    found = 0
    for one in asked.lists:
        errors = np.abs(one.sums(table.table(one.names) * GRID, one.guess))
        found += int((errors - asked.offset(one.sums(one.guess)) * GRID).sum())
    return np.array([found // GRID] * len(asked.ranks))


def _offset_by_the_truth(asked: Certificate, table: Records) -> NDArray[np.int64]:
    """The offset of a question's true size, not of its guess: it moves with the data."""
    found = []
    for one in asked.lists:
        true = one.sums(table.table(one.names) * GRID)
        found.append(np.abs(true - one.sums(one.guess)) - asked.offset(true) * GRID)
    errors = np.sort(np.concatenate(found))
    return -(-errors[np.array(asked.ranks) - 1] // GRID)


def _rank_by_the_data(asked: Certificate, table: Records) -> NDArray[np.int64]:
    """The rank among the questions that somebody meets: their number moves with the data."""
    found = []
    for one in asked.lists:
        true = one.sums(table.table(one.names) * GRID)
        found.append(np.abs(true - one.sums(one.guess))[true > 0])
    errors = np.sort(np.concatenate(found))
    return -(-errors[[len(errors) * rank // (asked.questions + 1) for rank in asked.ranks]] // GRID)


def _squared(asked: Certificate, table: Records) -> NDArray[np.int64]:
    return order_statistics(asked, table) ** 2


def test_a_sum_of_several_figures_is_seen_to_move_more() -> None:
    def added(asked: Certificates, table: Records) -> NDArray[np.int64]:
        return np.sum([order_statistics(one, table) for one in asked.each], axis=0)

    assert max(worst(several(seed), added)[0] for seed in range(6)) > 1


def test_figures_of_several_guesses_or_ranks_are_not_taken_together() -> None:
    one, other = (Certificate(base, "a list", 1, 3, (3,)) for base in ("a guess", "another"))
    with pytest.raises(InvalidQuery, match="same guess"):
        Certificates((one, other))
    with pytest.raises(InvalidQuery, match="one rank each"):
        Certificates((one, Certificate("a guess", "a list", 1, 3, (1, 3))))
    for none in ((), (one,) * 65, (Query.constant(everyone=True),)):
        with pytest.raises(InvalidQuery, match="1 to 64 certificates"):
            Certificates(none)  # type: ignore[arg-type]
    assert Certificates.from_dict(Certificates((one,)).to_dict()) == Certificates((one,))


@pytest.mark.parametrize("bug", [_sum_instead, _offset_by_the_truth, _rank_by_the_data, _squared])
def test_a_planted_bug_is_seen(bug: Statistic) -> None:
    assert max(worst(certificate(seed, "rising"), bug)[0] for seed in range(6)) > 1


def test_a_condition_that_counts_a_row_twice_cannot_be_made() -> None:
    with pytest.raises(InvalidQuery, match="0 or 1"):
        Conjunctions(("sex",), np.zeros(2, dtype=np.int64), (np.array([[2, 0]], dtype=np.uint8),), False)


@pytest.mark.parametrize("weights", [[-1, 0], [0, GRID + 1]])
def test_a_weight_beyond_one_cannot_be_made(weights: list[int]) -> None:
    with pytest.raises(InvalidQuery, match="between 0 and 1"):
        Conjunctions(("sex",), np.zeros(2, dtype=np.int64), (), True, np.array(weights))


def test_what_is_listed_is_what_was_checked() -> None:
    conditions, guess = np.array([[1, 0]], dtype=np.uint8), np.zeros(2, dtype=np.int64)
    made = Conjunctions(("sex",), guess, (conditions,), False)
    conditions[0, 0], guess[0] = 200, 7
    assert made.conditions[0][0, 0] == 1
    assert made.guess[0] == 0
    for array in (made.conditions[0], made.guess):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_copies_are_checked_and_frozen_too() -> None:
    made, table = lists(0)[4], np.ones((2, 4), dtype=np.int64)
    for again in (deepcopy(made), pickle.loads(pickle.dumps(made))):  # noqa: S301
        assert again.sums(table).tolist() == made.sums(table).tolist()
        with pytest.raises(ValueError, match="read-only"):
            again.conditions[0][:] = 255


def test_a_list_of_another_kind_is_refused() -> None:
    class Louder(Conjunctions):
        def sums(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
            return super().sums(table) * 10**6

    loud = Louder(("sex",), np.zeros(2, dtype=np.int64), (SEXES,), False)
    with pytest.raises(InvalidQuery, match="lists of conjunctions"):
        Certificate("a guess", "a list", 1, 3, (3,), (), (loud,))
    with pytest.raises(InvalidQuery, match="whole"):
        Conjunctions(("sex",), np.zeros(2), (SEXES,), False)
    with pytest.raises(InvalidQuery, match="too large"):
        Conjunctions(("sex",), np.zeros(2, dtype=np.int64), (np.array([[257, 0]]),), False)


def test_long_lists_are_worked_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    paired = [one for one in lists(0) if one.paired]
    tables = [records(np.arange(DOMAIN.size)).table(one.names) for one in paired]
    whole = [one.sums(table).tolist() for one, table in zip(paired, tables, strict=True)]
    monkeypatch.setattr("tacit.model.certificate._AT_ONCE", 1)
    assert [one.sums(table).tolist() for one, table in zip(paired, tables, strict=True)] == whole
