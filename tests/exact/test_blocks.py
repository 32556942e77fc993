"""Blocks, against enumeration: all small tables of two blocks, and all that differ in one row of one block.

A question over both is one question for each; a row moves what is asked of its own block alone. So what two ledgers
release, each for the whole budget and each chosen by what the other has said, is as private as one. What breaks that on
purpose (a row in two blocks, a question that looks at another block's rows) is caught.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from tacit.blocks.terms import part_of
from tacit.exact.price import total
from tacit.model.attribute import integer
from tacit.model.block import of_each_block, table_of_each_block, with_blocks
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise, pmf
from tacit.model.query import Query
from tacit.model.workload import marginal
from tacit.release.groups import Levels
from tacit.trusted.records import Records

DOMAIN = Domain({"age": integer(0, 2), "ill": integer(0, 1)})
LABELS = ("a", "b")
WHOLE = with_blocks(DOMAIN, "block", LABELS)
OLD, ILL = Query.among(WHOLE, "age", [2]), Query.among(WHOLE, "ill", [1])
FIRST = Query.among(WHOLE, "block", [0])
QUESTIONS = {
    "all blocks": OLD & ILL,
    "one block": OLD & FIRST,
    "the other": OLD & ~FIRST,
    "a block or a condition": FIRST | ILL,
    "not both": ~(FIRST & OLD),
    "one condition here, another there": (FIRST & OLD) | (~FIRST & ILL),
    "weighted": Query.weighted(WHOLE, ["age", "block"], [[0, 1], [0.5, 0.25], [1, 0]]),
    "of a block alone": FIRST,
}
Cells = tuple[int, ...]


def tables(rows: int) -> list[Cells]:
    return list(combinations_with_replacement(range(DOMAIN.size), rows))


def neighbours(cells: Cells) -> Iterator[Cells]:
    for place, other in product(range(len(cells)), range(DOMAIN.size)):
        yield tuple(sorted((*cells[:place], other, *cells[place + 1 :])))


def records(cells: Sequence[int], domain: Domain = DOMAIN, first: Sequence[int] = ()) -> Records:
    codes = [np.array(column, dtype=np.uint32) for column in np.unravel_index(np.array(cells), DOMAIN.shape)]
    leading = [np.array(first, dtype=np.uint32)] if domain is WHOLE else []
    return Records(domain, [*leading, *codes], np.ones(len(cells), dtype=np.int64))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_over_blocks_is_the_sum_of_one_for_each(name: str) -> None:
    query = QUESTIONS[name]
    each = of_each_block(query, "block", 2)
    for one, two in product(tables(2), tables(1)):
        whole = records([*one, *two], WHOLE, [0] * len(one) + [1] * len(two)).answer(query)
        apart = [
            records(rows).answer(asked) * (query.unit // asked.unit)
            for rows, asked in zip((one, two), each, strict=True)
        ]
        assert sum(apart) == whole


def test_a_table_over_blocks_is_one_table_for_each() -> None:
    asked = marginal(WHOLE, "block", "ill", where=OLD | FIRST)
    each = table_of_each_block(asked, "block", 2)
    for one, two in product(tables(2), tables(1)):
        whole = records([*one, *two], WHOLE, [0, 0, 1]).table(asked.names, asked.where)
        apart = [records(rows).table(t.names, t.where) for rows, t in zip((one, two), each, strict=True)]
        assert (np.stack(apart, axis=asked.names.index("block")) == whole).all()


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_row_moves_what_is_asked_of_its_own_block_alone(name: str) -> None:
    each = of_each_block(QUESTIONS[name], "block", 2)
    for one, two in product(tables(2), tables(2)):
        before = [records(rows).answer(asked) for rows, asked in zip((one, two), each, strict=True)]
        for other in neighbours(one):
            after = [records(rows).answer(asked) for rows, asked in zip((other, two), each, strict=True)]
            assert abs(after[0] - before[0]) <= each[0].unit
            assert after[1] == before[1]


EPSILON = 0.7
SCALE = 1 / EPSILON  # of a count, for the whole budget of a block
REACH = 30


def transcript(one: Cells, two: Cells) -> np.ndarray:
    """The law of what two ledgers say, each for the whole budget: the second is asked by what the first has said."""
    questions = [of_each_block(query, "block", 2)[1] for query in (OLD, ILL)]
    first = records(one).answer(of_each_block(OLD, "block", 2)[0])
    said = np.arange(-REACH, REACH + 1)
    law = pmf(Noise("laplace", SCALE), said - first)
    then = [pmf(Noise("laplace", SCALE), said - records(two).answer(query)) for query in questions]
    return np.stack([p * (then[0] if value > 1 else then[1]) for p, value in zip(law, said, strict=True)])


def largest_ratio(pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> float:
    return max(float(np.abs(np.log(a) - np.log(b)).max()) for a, b in pairs)


def test_two_ledgers_of_the_whole_budget_are_as_private_as_one() -> None:
    of_first = ((transcript(one, (0, 5)), transcript(other, (0, 5))) for one in tables(2) for other in neighbours(one))
    of_second = ((transcript((0, 5), two), transcript((0, 5), other)) for two in tables(2) for other in neighbours(two))
    for pairs in (of_first, of_second):
        found = largest_ratio(pairs)
        assert found <= EPSILON + 1e-9
        assert found > 0.9 * EPSILON  # it is what the budget says, and not a weaker mechanism


def test_a_row_in_two_blocks_is_caught() -> None:
    """The same row appended under two labels: its ledgers' losses add up."""
    pairs = (
        (transcript((row, 0), (row, 1)), transcript((other, 0), (other, 1)))
        for row, other in product(range(DOMAIN.size), repeat=2)
    )
    assert largest_ratio(pairs) > 1.5 * EPSILON


def test_a_question_that_looks_at_another_blocks_rows_is_caught() -> None:
    """A label that stands for other rows than its own: what is asked of the second block reads the first one's."""

    def planted(one: Cells, two: Cells) -> np.ndarray:
        return transcript(one, one)

    pairs = ((planted(one, (0, 5)), planted(other, (0, 5))) for one in tables(2) for other in neighbours(one))
    assert largest_ratio(pairs) > 1.5 * EPSILON


GROUPED = Levels((1, 2), (60, 40), (1.0, 1.0))


def of_levels(one: Cells, two: Cells, budgets: Sequence[float], group: Sequence[int] = (0, 1)) -> np.ndarray:
    """The law of what the ledgers of two blocks and of their group say, each question chosen by what was said before.

    The group's is about the rows of both, joined as the series joins them.
    """
    said = np.arange(-4, 7)
    blocks = [records(one), records(two)]
    joined = blocks[group[0]].joined([blocks[place] for place in group[1:]])
    questions = [Query.among(DOMAIN, "age", [2]), Query.among(DOMAIN, "ill", [1])]

    def law(rows: Records, query: Query, budget: float) -> np.ndarray:
        return pmf(Noise("laplace", 1 / budget), said - rows.answer(query))

    first = law(blocks[0], questions[0], budgets[0])
    then = [law(blocks[1], query, budgets[0]) for query in questions]
    last = [law(joined, query, budgets[1]) for query in questions]
    asked = [then[0] if value > 1 else then[1] for value in said]
    both = np.stack([p * law for p, law in zip(first, asked, strict=True)])
    third = [last[0] if value > 0 else last[1] for value in said]
    return np.stack([both[:, [at]] * third[at][None, :] for at in range(len(said))], axis=1)


def pairs_of_levels(budgets: Sequence[float], **more: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    fixed = (0, 5)
    for rows in tables(2):
        for other in neighbours(rows):
            yield of_levels(rows, fixed, budgets, **more), of_levels(other, fixed, budgets, **more)
            yield of_levels(fixed, rows, budgets, **more), of_levels(fixed, other, budgets, **more)


def shares(levels: Levels, epsilon: float = EPSILON) -> list[float]:
    return [part_of(Budget(epsilon=epsilon), levels.share(level)).epsilon for level in range(len(levels.sizes))]


def test_ledgers_of_all_levels_are_together_as_private_as_one() -> None:
    found = largest_ratio(pairs_of_levels(shares(GROUPED)))
    assert found <= EPSILON + 1e-9
    assert found > 0.9 * EPSILON


def test_a_level_that_is_not_paid_for_is_caught() -> None:
    assert largest_ratio(pairs_of_levels([EPSILON, EPSILON])) > 1.5 * EPSILON
    assert largest_ratio(pairs_of_levels([shares(GROUPED)[0], EPSILON])) > 1.2 * EPSILON


def test_a_block_that_is_twice_in_a_group_is_caught() -> None:
    assert largest_ratio(pairs_of_levels(shares(GROUPED), group=(0, 0))) > 1.2 * EPSILON


def test_joined_rows_are_those_of_all_parts() -> None:
    for one, two in product(tables(2), tables(1)):
        joined = records(one).joined([records(two)])
        assert joined.rows == 3
        assert (joined.table(DOMAIN.names) == records([*one, *two]).table(DOMAIN.names)).all()
        for query in (Query.among(DOMAIN, "age", [2]), ~Query.among(DOMAIN, "ill", [1])):
            assert joined.answer(query) == records(one).answer(query) + records(two).answer(query)


@pytest.mark.parametrize(
    "budget",
    [Budget(epsilon=1.0), Budget(epsilon=0.3), Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=4.0, delta=1e-6)],
)
@pytest.mark.parametrize("weights", [(100,), (60, 40), (50, 22, 15, 13), (34, 33, 33), (97, 1, 1, 1)])
def test_the_budgets_of_all_levels_add_up_to_the_whole(budget: Budget, weights: tuple[int, ...]) -> None:
    levels = Levels(tuple(2**level for level in range(len(weights))), weights, (1.0,) * len(weights))
    each = [part_of(budget, levels.share(level)) for level in range(len(weights))]
    for measure in ("epsilon",) if budget.delta == 0 else ("gdp", "rho"):
        whole = total(budget, measure).atoms
        assert sum(total(one, measure).atoms for one in each) <= whole
        assert sum(total(one, measure).atoms for one in each) > 0.999 * whole or measure == "rho"


@pytest.mark.parametrize(
    "budget", [Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=4.0, delta=1e-6)]
)
@pytest.mark.parametrize("blocks", [1, 2, 12, 100])
def test_the_budget_of_a_person_over_blocks_adds_up_to_the_whole(budget: Budget, blocks: int) -> None:
    each = part_of(budget, Fraction(1, blocks))
    measures = ("epsilon",) if budget.delta == 0 else ("gdp", "rho")
    for measure in measures:
        assert blocks * total(each, measure).atoms <= total(budget, measure).atoms
    # And it is not much less than could be had.
    more = Budget(epsilon=each.epsilon * 1.001, delta=budget.delta)
    assert blocks == 1 or any(blocks * total(more, m).atoms > total(budget, m).atoms for m in measures)
    assert blocks * total(budget).atoms > total(budget).atoms or blocks == 1  # the whole for each is caught
    assert math.isfinite(each.epsilon)
