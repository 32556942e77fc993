"""Lenses move by at most one count when the truth does, in the arithmetic that is used; comparisons and prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curators import curating, public_of
from tacit.errors import AnswerWithheld, BudgetExhausted, InvalidQuery
from tacit.exact.price import Sensitivity, noise_for, price
from tacit.model import request as lens_module
from tacit.model.attribute import category
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.noise_law import Noise, pmf
from tacit.model.query import Query
from tacit.model.request import Disagreement, Distance, Lens, look
from tacit.trusted import curator as curator_module
from tacit.trusted.curator import Curator
from tacit.trusted.noise import add_noise

DOMAIN = Domain({"sex": category(["F", "M"])})
WOMEN = Query.among(DOMAIN, "sex", [0])  # 70 of them
N = 100


def largest_move(lens: Lens, truths: list[int]) -> int:
    return max(abs(look(lens, truth + GRID) - look(lens, truth)) for truth in truths)


@settings(max_examples=200)
@given(
    st.lists(st.floats(0, 10_000), min_size=1, max_size=20),
    st.one_of(st.floats(1, 1e4), st.floats(1e4, 2.0**32, exclude_max=True)),
    st.lists(st.integers(0, 10_000 * GRID), min_size=1, max_size=20),
)
def test_a_disagreement_moves_by_at_most_one_count(values: list[float], reach: float, truths: list[int]) -> None:
    lens = Disagreement(np.array(values), reach)
    edges = [round(value * GRID) + shift for value in values[:5] for shift in (-GRID, -1, 0, 1)]
    assert largest_move(lens, [*truths, *(edge for edge in edges if edge >= 0)]) <= GRID


def test_the_steepest_disagreement_is_within_its_slope_and_a_steeper_one_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All databases on one side of a far truth move together: the whole slope of 1, far from where it levels off.
    rng = np.random.Generator(np.random.PCG64(1))
    reach = 2.0**32 - 1
    lens = Disagreement(rng.uniform(0, 1000, size=999), reach)
    truths = [int(t) for t in rng.integers(1000 * GRID, 2000 * GRID, size=3000)]
    assert 0.999 * GRID < largest_move(lens, truths) <= GRID
    monkeypatch.setattr(lens_module, "_SHRINK", 1.0 + 2.0**-16)  # a planted bug
    assert largest_move(lens, truths) > GRID


def test_a_disagreement_is_the_papers_score() -> None:
    values, reach = np.array([10.0, 20.0, 50.0]), 25.0
    ours = Disagreement(values, reach)
    for truth in (0, 10, 33, 100):
        r = sum(math.exp(-abs(truth - v) / reach) for v in values) / 3  # equation (4), with epsilon n = reach
        assert look(ours, truth * GRID) / GRID == pytest.approx(reach * (1 - r), rel=3e-4, abs=1e-5)
    assert look(Disagreement(np.full(7, 12.0), 5.0), 12 * GRID) == 0


WRONG: list[Callable[[], object]] = [
    lambda: Disagreement(np.array([]), 5.0),
    lambda: Disagreement(np.zeros((2, 2)), 5.0),
    lambda: Disagreement(np.array([math.nan]), 5.0),
    lambda: Disagreement(np.array([2.0**41]), 5.0),
    lambda: Disagreement(np.array([1.0]), 0.5),
    lambda: Disagreement(np.array([1.0]), math.inf),
    lambda: Disagreement(np.array([1.0]), 2.0**33),
    lambda: Disagreement(np.array([1.0]), np.float64(5)),  # type: ignore[arg-type]
    lambda: Distance(math.nan),
    lambda: Distance(math.inf),
    lambda: Distance("7"),  # type: ignore[arg-type]
    lambda: Distance(2.0**40),
]


@pytest.mark.parametrize("make", WRONG)
def test_what_is_no_lens_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidQuery):
        make()


def test_our_copy_does_not_change_with_the_original() -> None:
    values = np.array([10.0, 20.0])
    ours = Disagreement(values, 5.0)
    before = look(ours, 15 * GRID)
    values[:] = 0
    assert look(ours, 15 * GRID) == before


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    rows = pa.table({"sex": ["F"] * 70 + ["M"] * 30})
    with curating(tmp_path, rows, DOMAIN, Budget(epsilon=10.0, delta=0.0)) as made:
        yield made


EPSILON = Loss.of("epsilon", 1.0)


def test_a_comparison_is_noisy_paid_for_and_remembered(curator: Curator) -> None:
    near, far = Distance(70.0), Distance(10.0)
    first = curator.compare(WOMEN, far, 30.0, EPSILON)  # 60 against 30: missed with probability e^-30
    assert first.passed
    assert first.cost <= EPSILON
    assert public_of(curator).spent == first.cost
    assert not curator.compare(WOMEN, near, 30.0, EPSILON).passed
    again = curator.compare(WOMEN, far, 30.0, EPSILON)
    assert again.passed
    assert again.cost.atoms == 0
    assert again.receipt == first.receipt
    with pytest.raises(InvalidQuery):
        curator.compare(WOMEN, far, math.inf, EPSILON)
    # At the threshold or a little beyond: without noise all would pass.
    said = {curator.compare(WOMEN, Distance(40.0 - i / 1e6), 30.0, Loss.of("epsilon", 0.01)).passed for i in range(60)}
    assert said == {True, False}
    with pytest.raises(BudgetExhausted):
        curator.compare(WOMEN, far, 31.0, Loss.of("epsilon", 9.0))
    assert {kind for kind, *_ in public_of(curator).account.since()} == {"compared"}


def test_a_comparison_that_fails_says_nothing(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> int:
        raise OverflowError("70")

    monkeypatch.setattr(curator_module, "shown", broken)
    with pytest.raises(AnswerWithheld) as caught:
        curator.compare(WOMEN, Distance(0.0), 5.0, EPSILON)
    assert "70" not in str(caught.value)
    assert public_of(curator).spent.atoms > 0


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_a_comparisons_ratio_is_its_price(measure: Any) -> None:
    # Over a coarse grid: the bit's probability on both neighbours, for every threshold.
    loss, z = Loss.of(measure, 0.5), np.arange(-400, 401)
    noise = noise_for(loss, Sensitivity(1, 1), 4)
    law = np.array([pmf(noise, int(k)) for k in z])
    tail = np.concatenate([law[::-1].cumsum()[::-1], [0.0]])  # Pr[noise >= z]
    if measure == "rho":
        assert price(noise, Sensitivity(1, 1), 4, measure) <= loss
        return
    worst = 0.0
    for bar in range(340, 461):
        here, there = tail[bar], tail[bar - 4]  # the neighbour's value is one count, 4 steps, higher
        worst = max(worst, math.log(there / here), math.log((1 - here) / (1 - there)))
    assert 0.45 < worst <= 0.5 + 1e-9
    assert worst > float(loss) / 2 * 1.5  # a scale that is half as large as it should be would be seen


# What a comparison is made of, and remembered by

HALVES = Query.weighted(DOMAIN, ["sex"], [0.5, 0.25])  # 42.5 of the rows


def test_a_comparison_is_in_steps_of_the_fine_grid_whatever_the_question(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Catches noise for the question's own grid, a millionth of what it should be, and a truth on the wrong one.
    seen: list[tuple[list[int], Noise]] = []

    def recorded(values: Any, noise: Noise) -> Any:
        seen.append((values.tolist(), noise))
        return values

    monkeypatch.setattr(curator_module, "add_noise", recorded)
    assert (WOMEN.unit, HALVES.unit) == (1, GRID)
    assert curator.compare(WOMEN, Distance(10.0), 60.0, EPSILON).passed
    assert not curator.compare(WOMEN, Distance(10.0), 60.0 + 1 / GRID, EPSILON).passed
    assert curator.compare(HALVES, Distance(12.5), 30.0, EPSILON).passed
    assert not curator.compare(HALVES, Distance(12.5), 30.0 + 1 / GRID, EPSILON).passed
    assert seen == [([count * GRID], Noise("laplace", 1.0 * GRID)) for count in (60, 60, 30, 30)]


def times_passed(curator: Curator, query: Query, truth: float) -> int:
    # One count above the threshold, with noise of 20 counts. Other guesses make other questions, if hardly.
    loss = Loss.of("epsilon", 0.05)
    near = [Distance(truth - 30 - i / GRID) for i in range(60)]
    return sum(curator.compare(query, lens, 29.0, loss).passed for lens in near)


@pytest.mark.parametrize(("query", "truth"), [(WOMEN, 70.0), (HALVES, 42.5)], ids=["count", "weighted"])
def test_one_count_makes_little_difference_to_a_cheap_comparison(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, query: Query, truth: float
) -> None:
    # Each passes with probability 1 - exp(-1/20)/2 = 0.524: fewer than 5 or more than 55 of 60 have chance 1e-10.
    assert 5 <= times_passed(curator, query, truth) <= 55
    monkeypatch.setattr(  # a planted bug: noise for the grid of a count
        curator_module, "add_noise", lambda values, noise: add_noise(values, Noise(noise.kind, noise.scale / GRID))
    )
    assert times_passed(curator, query, truth - 1 / 2**10) == 60


def test_the_same_comparison_in_other_words_is_free(curator: Curator) -> None:
    values = np.array([3.0, 80.0])
    first = curator.compare(WOMEN, Disagreement(values, 5), 0.0, EPSILON)
    spellings = [
        (WOMEN, Disagreement(values, 5.0), 0.0),
        (WOMEN, Disagreement(np.array([3, 80]), 5.0), -0.0),
        (WOMEN, Disagreement(values, 5.0), 0),
        (WOMEN, Disagreement(values, 5.0), 1e-9),  # the same step
        (Query.among(DOMAIN, "SEX", [0]), Disagreement(values, 5.0), -1e-9),
    ]
    for query, lens, threshold in spellings:
        again = curator.compare(query, lens, threshold, EPSILON)
        assert again.receipt == first.receipt
        assert again.cost.atoms == 0
    assert public_of(curator).spent == first.cost


def test_another_comparison_is_never_read_back(curator: Curator) -> None:
    # Catches a key without the threshold, the noise, the reach, the guess or the question.
    small, values = Loss.of("epsilon", 0.1), np.array([10.0, 20.0])
    asked: list[tuple[Query, Lens, float, Loss]] = [
        (WOMEN, Disagreement(values, 5.0), 50.0, small),
        (WOMEN, Disagreement(values, 6.0), 50.0, small),
        (WOMEN, Disagreement(values + 1, 5.0), 50.0, small),
        (WOMEN, Disagreement(values[:1], 5.0), 50.0, small),
        (WOMEN, Distance(10.0), 50.0, small),
        (WOMEN, Distance(20.0), 50.0, small),
        (WOMEN, Distance(10.0), 50.0 + 1 / GRID, small),
        (WOMEN, Distance(10.0), -50.0, small),
        (WOMEN, Distance(10.0), 50.0, Loss.of("epsilon", 0.2)),
        (~WOMEN, Distance(10.0), 50.0, small),
    ]
    compared = [curator.compare(*one) for one in asked]
    assert len({one.receipt for one in compared}) == len(asked)
    assert [one.cost for one in compared] == [loss for *_, loss in asked]
