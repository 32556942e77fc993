"""Groups of blocks: their covers add up to the window, the cheapest is found, and plans keep to what is public."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from tacit.errors import LedgerError
from tacit.exact.price import total
from tacit.model.attribute import integer
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.release.groups import _PAYS, ALONE, WHOLE, BlockGroup, Levels, Taken, expected_error, planned, runs

DOMAIN = Domain({"age": integer(0, 9), "ill": integer(0, 1), "stay": integer(0, 9)})
GAUSSIAN, PURE = total(Budget(epsilon=1.0, delta=1e-9)), total(Budget(epsilon=1.0))
BLOCKS = 13


def added_up(levels: Levels, cover: list[Taken]) -> Counter[int]:
    found = Counter[int]()
    for group, sign in cover:
        for place in levels.blocks(group):
            found[place] += sign
    return Counter({place: times for place, times in found.items() if times})


def least(levels: Levels, first: int, end: int) -> float:
    """The least variance of all ways from one border to another over ledgers that end by the window's end."""
    known = {first: 0.0}
    edges = [
        (levels.blocks(BlockGroup(level, place)), spread)
        for level, (size, spread) in enumerate(zip(levels.sizes, levels.spreads, strict=True))
        for place in range(end // size)
    ]
    for _ in range(2 * BLOCKS):
        for blocks, spread in edges:
            for one, other in ((blocks.start, blocks.stop), (blocks.stop, blocks.start)):
                if one in known and known[one] + spread < known.get(other, float("inf")):
                    known[other] = known[one] + spread
    return known[end]


LEVELS = {
    "alone": ALONE,
    "equal": Levels((1, 3, 9), (40, 30, 30), (1.0, 1.0, 1.0)),
    "quarters and a year": Levels((1, 3, 12), (60, 20, 20), (1.7, 5.0, 5.0)),
    "dear groups": Levels((1, 2, 4), (80, 10, 10), (1.0, 1.9, 2.5)),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_cover_is_its_window_for_the_least_variance(name: str) -> None:
    levels = LEVELS[name]
    for first, end in product(range(BLOCKS), range(1, BLOCKS + 1)):
        if first >= end:
            continue
        cover = levels.cover(first, end, lambda group: True)
        assert added_up(levels, cover) == Counter(range(first, end))
        assert max(levels.blocks(group).stop for group, _ in cover) <= end  # later blocks change nothing
        assert sum(levels.spreads[group.level] for group, _ in cover) == pytest.approx(least(levels, first, end))


@pytest.mark.parametrize("name", LEVELS)
def test_groups_that_there_are_not_are_their_blocks(name: str) -> None:
    levels = LEVELS[name]
    for first, end in product(range(BLOCKS), range(1, BLOCKS + 1)):
        if first < end:
            for there in (set[BlockGroup](), {BlockGroup(1, 0)}, {BlockGroup(1, 1), BlockGroup(2, 0)}):
                cover = levels.cover(first, end, there.__contains__)
                assert added_up(levels, cover) == Counter(range(first, end))
                assert {group for group, _ in cover if group.level} <= there


def test_a_row_is_in_one_ledger_of_each_level() -> None:
    for levels in LEVELS.values():
        for level in range(1, len(levels.sizes)):
            found = [place for one in levels.complete(BLOCKS) if one.level == level for place in levels.blocks(one)]
            assert len(found) == len(set(found))
            assert max(found, default=0) < BLOCKS
        assert sum(map(levels.share, range(len(levels.sizes)))) <= 1


@pytest.mark.parametrize(
    ("sizes", "weights"),
    [((1, 2), (60, 41)), ((1, 2), (100, 0)), ((1, 3, 4), (40, 30, 30)), ((2,), (100,)), ((1, 2), (100,)), ((), ())],
)
def test_levels_that_cost_more_than_a_budget_or_overlap_are_refused(
    sizes: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    with pytest.raises(LedgerError, match="levels"):
        Levels(sizes, weights, (1.0,) * len(sizes))


def test_groups_that_say_less_than_their_blocks_are_refused() -> None:
    with pytest.raises(LedgerError, match="that of its parts together"):
        Levels((1, 2), (80, 20), (1.0, 2.5))


def test_runs_of_the_same() -> None:
    assert list(runs("aabccc")) == [(0, 2), (2, 3), (3, 6)]
    assert list(runs("")) == []


def test_groups_are_planned_where_they_pay() -> None:
    noise, pure = expected_error(DOMAIN, 1_000, GAUSSIAN, 0.0), expected_error(DOMAIN, 1_000, PURE, 0.0)
    assert planned(12, noise).levels == ALONE
    long = planned(120, noise)
    assert long.levels != ALONE
    assert planned(120, pure).levels == ALONE  # levels are dear in pure epsilon
    year = planned(12, noise, [1, 12])
    assert year.levels.sizes == (1, 12)
    assert "groups of 12 blocks" in year.why
    fitted = planned(12, expected_error(DOMAIN, 4_000, GAUSSIAN, 0.7), [1, 3, 12])
    assert 12 in fitted.levels.sizes  # what a fit leaves out of each month adds up over a year
    for plan in (long, year, fitted):
        assert sum(plan.levels.weights) <= WHOLE
        assert plan.levels.share(0) >= Fraction(2, 5)
    assert _PAYS < 1
