"""The calibrated median mechanism, exactly: every transcript of its gate on all neighbours of small tables.

The lens is the one that is used, on a grid of 8 steps to a count. Questions and databases are adaptive: which ones come
next depends on what was said before, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact.price import gate_price, gate_scales
from tacit.model.budget import Loss
from tacit.model.request import Disagreement, look
from tacit.trusted import gate as gate_module

STEPS = 8
ROWS = 4
EPSILON = 1.0
R = np.arange(2500)  # of the threshold's noise: what is left out has probability below e^-60
Table = tuple[int, ...]  # rows of a domain with three cells
Shown = Callable[[NDArray[np.float64], float, int], int]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "GRID", STEPS)
    monkeypatch.setattr("tacit.model.request.GRID", STEPS)
    monkeypatch.setattr("tacit.model.request._SHRINK", 1.0)  # on so few rows floats round by less than a step


def tables() -> Iterator[Table]:
    yield from product(range(3), repeat=ROWS)


def neighbours(table: Table) -> Iterator[Table]:
    for place, value in product(range(ROWS), range(3)):
        yield (*table[:place], value, *table[place + 1 :])


QUESTIONS = ((0,), (0, 1), (2,))  # the cells that each counts
DATABASES = {  # what the databases answer, in counts: other ones after a bought answer of each kind
    "start": np.array([[0.5, 1.0, 2.0, 4.0], [2.0, 2.5, 3.0, 4.0], [0.0, 0.5, 1.0, 3.0]]),
    "low": np.array([[0.0, 0.5, 1.0, 1.0], [1.0, 2.0, 2.5, 3.0], [1.0, 2.0, 3.0, 3.5]]),
    "high": np.array([[3.0, 3.5, 4.0, 4.0], [3.0, 3.0, 4.0, 4.0], [0.0, 0.0, 0.5, 1.0]]),
}


def honest(values: NDArray[np.float64], reach: float, truth: int) -> int:
    return look(Disagreement(values, reach), truth * STEPS)


def chance(table: Table, known: str, said: tuple[bool, ...], shown: Shown, scales: tuple[float, float]) -> float:
    """Pr[the gate says this about the first questions], summed over the threshold's noise; threshold 1.5 counts."""
    law = -math.expm1(-1 / scales[0]) * np.exp(-R / scales[0])
    for place, hit in enumerate(said):
        truth = sum(row in QUESTIONS[place] for row in table)
        value = shown(DATABASES[known][place], 2.0, truth)
        above = np.exp(-np.maximum(1.5 * STEPS + R - value, 0) / scales[1])
        law = law * (above if hit else 1 - above)
    return float(law.sum())


def transcripts() -> Iterator[tuple[bool, ...]]:
    for length in (1, 2, 3):
        yield (False,) * (length - 1) + (True,)
    yield (False,) * 3


def largest_loss(shown: Shown, scales: tuple[float, float]) -> float:
    worst = 0.0
    for known, said, table in product(DATABASES, transcripts(), tables()):
        here = chance(table, known, said, shown, scales)
        for other in neighbours(table):
            there = chance(other, known, said, shown, scales)
            if here > 1e-12:
                worst = max(worst, math.log(here / there) if there > 0 else math.inf)
    return worst


def test_a_gate_over_databases_costs_what_it_is_charged() -> None:
    scales = gate_scales(Loss.of("epsilon", EPSILON), STEPS)
    assert gate_price(*scales, STEPS, "epsilon") == Loss.of("epsilon", EPSILON)
    loss = largest_loss(honest, scales)
    assert 0.3 < loss <= EPSILON + 1e-9  # these few tables do not reach the worst case


def steep(values: NDArray[np.float64], reach: float, truth: int) -> int:
    return 4 * honest(values, reach, truth)  # a sum over databases where a mean belongs


def follows_the_truth(values: NDArray[np.float64], reach: float, truth: int) -> int:
    followed = float(truth) if truth % 2 else 50.0  # databases that were chosen with the data
    return honest(np.full(values.size, followed), 3 * reach, truth)


def fraction_within(values: NDArray[np.float64], reach: float, truth: int) -> int:
    return round(
        4 * STEPS * float((np.abs(values - truth) > 0.75).mean())
    )  # the obvious score, which the paper warns of


@pytest.mark.parametrize("bug", [steep, follows_the_truth, fraction_within])
def test_planted_scores_cost_more(bug: Shown) -> None:
    assert largest_loss(bug, gate_scales(Loss.of("epsilon", EPSILON), STEPS)) > 1.2 * EPSILON
