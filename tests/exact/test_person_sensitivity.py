"""People with several rows, against enumeration: all small tables, all that differ in one person's two rows.

What is checked is what the curator does: the scale that the samplers are given and the charge in the ledger, against
how far true answers, lenses and scores really move. Factors forgotten on purpose must be caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from curators import curating, public_of
from tacit.exact.price import Sensitivity
from tacit.model.attribute import integer
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.request import Disagreement, Distance, Lens, look
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Convolution, Product, Question, Tree, histogram, marginal, unit
from tacit.trusted import curator as curator_module
from tacit.trusted import gate as gate_module
from tacit.trusted.curator import Curator
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth

DOMAIN = Domain({"age": integer(0, 2, missing="unknown"), "ill": integer(0, 1)})
CELLS = DOMAIN.size
ROWS, EACH = 4, 2  # rows of a table, and of one person at most
OLD = Query.among(DOMAIN, "age", [2])
WEIGHTED = Query.weighted(DOMAIN, ["age"], [0, 0.1, 1, 0.3])
QUESTIONS: dict[str, Question] = {
    "query": OLD,
    "complement": ~OLD,
    "weighted": WEIGHTED,
    "statistic": Statistic("quantile_distance", ("age",), (1, 2, 0, 3)),
    "stump": Statistic("stump", ("age", "ill"), (3, 1)),
    "table": marginal(DOMAIN, "ill"),
    "table of some": marginal(DOMAIN, "age", where=Query.among(DOMAIN, "ill", [1])),
    "histogram": histogram(DOMAIN),
    "tree": Tree("age", (2, 2), (1, 2)),
    "convolution": Convolution("age", 4, cyclic=False),
    "residuals": Residuals((("age",), ("ill",), ("age", "ill")), (3, 2, 1)),
    "product": Product(Tree("age", (4,), (1,)), Tree("ill", (2,), (3,))),
}
LENSES: dict[str, Lens] = {
    "distance": Distance(1.0),
    "disagreement": Disagreement(np.array([0.0, 2.0, 3.0]), 2.0),
}
Steps = NDArray[np.int64]


def records(counts: Steps, rows_per_person: int = EACH) -> Records:
    held = np.flatnonzero(counts)
    codes = [part.astype(np.uint8) for part in np.unravel_index(held, DOMAIN.shape)]
    return Records(DOMAIN, codes, counts[held], rows_per_person)


@cache
def tables() -> Steps:
    """The histograms of all tables."""
    found = combinations_with_replacement(range(CELLS), ROWS)
    return np.array([np.bincount(table, minlength=CELLS) for table in found])


@cache
def neighbours(replaced: int = EACH) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of all pairs of tables of which one is the other with so many rows replaced, or fewer."""
    distance = np.abs(tables()[:, None, :] - tables()[None, :, :]).sum(axis=2)
    first, second = np.nonzero(distance <= 2 * replaced)
    return first, second


@cache
def everywhere() -> list[Records]:
    """The records of every table: for their true answers."""
    return [records(counts) for counts in tables()]


@cache
def truths(question: Question) -> Steps:
    """The curator's own true answers on every table, one line each, in grid steps."""
    return np.array([truth(question, held) for held in everywhere()])


def farthest(values: Steps, replaced: int = EACH) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between the values of neighbours."""
    first, second = neighbours(replaced)
    moved = np.abs(values[first] - values[second])
    return int(moved.sum(axis=1).max()), int((moved**2).sum(axis=1).max())


@pytest.fixture(params=["epsilon", "rho"])
def curator(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Curator]:
    budget = Budget(epsilon=50.0, delta=0.0 if request.param == "epsilon" else 1e-6)
    with curating(tmp_path, records(tables()[100]), DOMAIN, budget) as made:
        yield made


@pytest.fixture
def scales(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scales that samplers are given, in order. What they return does not matter here."""
    given: list[float] = []

    def add_noise(values: Steps, noise: Any) -> Steps:
        given.append(noise.scale)
        return values

    def draw_geometric(scale: float, size: int) -> Steps:
        given.append(scale)
        return np.zeros(size, dtype=np.int64)

    def noisy_max(scores: Steps, scale: float, measure: Measure) -> int:
        given.append(scale)
        return 0

    monkeypatch.setattr(curator_module, "add_noise", add_noise)
    monkeypatch.setattr(curator_module, "noisy_max", noisy_max)
    for module in (curator_module, gate_module):
        monkeypatch.setattr(module, "draw_geometric", draw_geometric)
    return given


def additive(scale: float, l1: int, l2_squared: int, measure: Measure) -> Fraction:
    """What noise costs that is added to a vector that moves so far: laplace for epsilon, gaussian for rho."""
    return l1 / Fraction(scale) if measure == "epsilon" else l2_squared / (2 * Fraction(scale) ** 2)


def gated(given: list[float], move: int, measure: Measure) -> Fraction:
    epsilon = move / Fraction(given[0]) + 2 * move / Fraction(given[1])
    return epsilon if measure == "epsilon" else epsilon**2 / 2


def measured(curator: Curator, given: list[float], name: str) -> tuple[Loss, Fraction]:
    """What measuring was charged, and what it cost."""
    question = QUESTIONS[name]
    cost = curator.measure([question], Loss.of(public_of(curator).total.measure, 0.1))[0].cost
    return cost, additive(given[0], *farthest(truths(question)), cost.measure)


def lens_move(question: Question, lens: Lens) -> int:
    values = [[look(lens, int(x) * (GRID // cast(Query, question).unit))] for x in truths(question).ravel()]
    return farthest(np.array(values))[0]


def compared(curator: Curator, given: list[float], name: str) -> tuple[Loss, Fraction]:
    cost = curator.compare(OLD, LENSES[name], 1.0, Loss.of(public_of(curator).total.measure, 0.1)).cost
    move = lens_move(OLD, LENSES[name])
    return cost, additive(given[0], move, move**2, cost.measure)


def through_a_gate(curator: Curator, given: list[float], name: str) -> tuple[Loss, Fraction]:
    gate = curator.open_gate(1.0, Loss.of(public_of(curator).total.measure, 0.1))
    gate.first_above([OLD], [LENSES[name]])
    cost = Loss(public_of(curator).total.measure, gate.terms.atoms)
    return cost, gated(given, lens_move(OLD, LENSES[name]), cost.measure)


def first_far(curator: Curator, given: list[float], name: str) -> tuple[Loss, Fraction]:
    cost = curator.first_far([OLD], [1.0], 1.0, Loss.of(public_of(curator).total.measure, 0.1)).cost
    return cost, gated(given, lens_move(OLD, LENSES["distance"]), cost.measure)


def chosen(curator: Curator, given: list[float], name: str) -> tuple[Loss, Fraction]:
    """Scores are L1 distances to a public guess: here, that all rows lie in a table's first cell."""
    candidates = [cast(Query, QUESTIONS[part]) for part in name.split(" and ")]
    sizes = [truths(one).shape[1] for one in candidates]
    guesses = [np.array([ROWS if size > 1 else 0] + [0] * (size - 1)) for size in sizes]
    cost = curator.select_worst(candidates, guesses, Loss.of(public_of(curator).total.measure, 0.1)).cost
    scores = [
        np.array([[np.abs(truth(one, held) * (GRID // unit(one)) - guess * GRID).sum()] for held in everywhere()])
        for one, guess in zip(candidates, guesses, strict=True)
    ]
    move = max(farthest(line)[0] for line in scores)
    epsilon = 2 * move / Fraction(given[0])
    return cost, epsilon if cost.measure == "epsilon" else epsilon**2 / 8


Operation = Callable[[Curator, list[float], str], tuple[Loss, Fraction]]
CASES: list[tuple[Operation, str]] = [
    *((measured, name) for name in QUESTIONS),
    *((compared, name) for name in LENSES),
    *((through_a_gate, name) for name in LENSES),
    (first_far, "distance"),
    (chosen, "query and weighted"),
    (chosen, "table and query"),
    (chosen, "histogram"),
]
names = [f"{operation.__name__} {name}" for operation, name in CASES]


@pytest.mark.parametrize(("operation", "name"), CASES, ids=names)
def test_what_is_charged_is_what_a_person_of_two_rows_costs(
    curator: Curator, scales: list[float], operation: Operation, name: str
) -> None:
    charged, cost = operation(curator, scales, name)
    assert 0 < cost <= charged.exact
    assert public_of(curator).spent == charged <= Loss.of(charged.measure, 0.1)


# Each of these moves by its whole sensitivity for some pair of neighbours, so that half the noise must show.
TIGHT = [case for case in CASES if case[1] not in ("list", "disagreement")]


@pytest.mark.parametrize("curator", ["epsilon"], indirect=True)
@pytest.mark.parametrize(("operation", "name"), TIGHT, ids=[f"{o.__name__} {n}" for o, n in TIGHT])
def test_a_forgotten_factor_is_caught(
    curator: Curator, scales: list[float], operation: Operation, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sensitivity, "times", lambda self, rows: self)
    charged, cost = operation(curator, scales, name)
    assert cost > charged.exact


@pytest.mark.parametrize("curator", ["epsilon"], indirect=True)
@pytest.mark.parametrize(
    ("operation", "name"), [(measured, "histogram"), (compared, "distance"), (first_far, "distance"), (chosen, "query")]
)
def test_a_factor_forgotten_by_the_curator_alone_is_caught(
    curator: Curator, scales: list[float], operation: Operation, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curator, "declared", curator.declared._replace(rows_per_person=1))
    charged, cost = operation(curator, scales, name)
    assert cost > charged.exact


@pytest.mark.parametrize("curator", ["rho"], indirect=True)
def test_squares_need_the_square_of_the_factor(
    curator: Curator, scales: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def linear(self: Sensitivity, rows: int) -> Sensitivity:
        return Sensitivity(rows * self.l1, rows * self.l2_squared)  # as if the rows of a person moved independently

    monkeypatch.setattr(Sensitivity, "times", linear)
    charged, cost = measured(curator, scales, "histogram")
    assert cost > charged.exact


@pytest.mark.parametrize("name", QUESTIONS)
def test_two_rows_move_at_most_twice_as_far_as_one(name: str) -> None:
    one, two = farthest(truths(QUESTIONS[name]), 1), farthest(truths(QUESTIONS[name]), 2)
    assert two[0] <= 2 * one[0]
    assert two[1] <= 4 * one[1]
