"""The curator: pays before it looks, checks what prices rest on, and measures what was asked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curators import open_curator, public_of
from tacit.errors import AnswerWithheld, BudgetExhausted, InvalidQuery, TacitError
from tacit.exact.price import Sensitivity
from tacit.model.attribute import category, integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.factor import GRID, Factor
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.workload import Convolution, Marginal, Tree, histogram, marginal
from tacit.release.public import Public
from tacit.release.recall import expected_noise
from tacit.trusted import curator as curator_module
from tacit.trusted import gate as gate_module
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth

DOMAIN = Domain(
    {"sex": category(["F", "M"]), "age": integer(0, 5, missing="unknown"), "city": category(["x", "y", "z"])}
)
EVERYONE = Query.constant(everyone=True)
TREE = Tree("age", (3, 3), (1, 1))
ROWS = [("F", 0, "x"), ("F", 3, "y"), ("M", 3, "y"), ("M", 5, "z"), ("F", None, "x"), ("M", 1, "x")]


def make(folder: Path, budget: Budget, rows: list[tuple[Any, ...]] = ROWS) -> Curator:
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(DOMAIN.names)})
    return open_curator(folder, table, DOMAIN, budget)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    made = make(tmp_path, Budget(epsilon=10.0, delta=0.0))
    yield made
    made._ledger.close()


EPSILON = Loss.of("epsilon", 0.5)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)


@pytest.mark.usefixtures("no_noise")
def test_truths_are_those_of_the_rows(curator: Curator) -> None:
    # Every kind of question, against the queries it stands for, evaluated row by row. Catches a wrong order of cells
    # and weights on the wrong grid.
    weighted = Query.weighted(DOMAIN, ["age"], [0, 0.1, 0.2, 0.3, 0.4, 0.5, 1])
    questions = [
        Query.among(DOMAIN, "sex", [0]),
        weighted,
        weighted & Query.among(DOMAIN, "city", [0, 1]),
        marginal(DOMAIN, "city", "sex"),
        marginal(DOMAIN, "age", where=Query.among(DOMAIN, "sex", [1])),
        histogram(DOMAIN),
    ]
    measured = curator.measure(questions, EPSILON)
    for question, found in zip(questions, measured, strict=True):
        parts = [question] if isinstance(question, Query) else list(question.queries(DOMAIN))
        expected = []
        for part in parts:
            names = DOMAIN.names
            weights = part.table(names, DOMAIN.shape)
            cells = [
                tuple(
                    DOMAIN[n].missing_index if v is None else DOMAIN[n].locate(n, v)
                    for n, v in zip(names, row, strict=True)
                )
                for row in ROWS
            ]
            expected.append(sum(int(weights[cell]) for cell in cells) * (found.unit // part.unit))
        assert found.values.tolist() == expected, question


def test_pays_exactly_the_price_and_repeats_are_free(curator: Curator) -> None:
    query = Query.among(DOMAIN, "sex", [0])
    first = curator.measure([query], EPSILON)[0]
    assert public_of(curator).spent == EPSILON == first.cost
    again = curator.measure([query, query], EPSILON)
    assert [m.values.tolist() for m in again] == [first.values.tolist()] * 2
    assert public_of(curator).spent == EPSILON


def test_anew_is_paid_again_and_what_was_there_stays(curator: Curator) -> None:
    question, public = Query.among(DOMAIN, "sex", [0]), public_of(curator)
    first = curator.measure([question], EPSILON)[0]
    twice = Loss.of("epsilon", 1.0)
    second = curator.measure([question], twice, anew=True)[0]
    assert public.spent == first.cost + second.cost
    assert second.noise == expected_noise(public, question, twice)
    assert (second.question, second.key != first.key, second.receipt != first.receipt) == (question, True, True)
    third = curator.measure([question, question & question], twice, anew=True)[0]
    assert len({first.key, second.key, third.key}) == 3
    assert public.spent == first.cost + second.cost + third.cost  # one question, however often it is named
    assert [found.receipt for found in public.find([question]) if found] == [first.receipt]  # who asks again gets this
    assert curator.measure([question], EPSILON)[0].receipt == first.receipt
    with pytest.raises(BudgetExhausted):
        curator.measure([question], Loss.of("epsilon", 9.0), anew=True)
    assert [last.receipt for last in public.sharpest([question]) if last] == [third.receipt]


def test_a_batch_is_all_or_nothing(curator: Curator) -> None:
    # Catches a charge for the affordable half of a batch.
    many = [Query.among(DOMAIN, "age", range(i)) & Query.among(DOMAIN, "sex", [0]) for i in range(1, 7)]
    with pytest.raises(BudgetExhausted):
        curator.measure(many, Loss.of("epsilon", 2.0))
    assert public_of(curator).spent.atoms == 0
    assert public_of(curator).find(many) == [None] * 6


def test_the_scale_follows_from_public_facts_alone(tmp_path: Path) -> None:
    # Catches a private n, or anything else of the data, in the noise scale.
    scales = []
    for i, rows in enumerate((ROWS, [("M", 5, "z")] * 6)):
        folder = tmp_path / str(i)
        folder.mkdir()
        curator = make(folder, Budget(epsilon=1.0, delta=1e-6), rows)
        loss = Loss(public_of(curator).total.measure, public_of(curator).total.atoms // 20)
        questions = [Query.among(DOMAIN, "sex", [0]), marginal(DOMAIN, "city"), Tree("age", (7,), (1,))]
        scales.append([m.noise for m in curator.measure(questions, loss)])
    assert scales[0] == scales[1]


def test_noise_is_scaled_to_joint_sensitivity(curator: Curator) -> None:
    # A table costs twice a query's noise, a tree of two levels four times. Catches unscaled noise.
    queries = [Query.among(DOMAIN, "sex", [0]), marginal(DOMAIN, "city"), TREE, Tree("age", (3, 3), (1, 2))]
    noises = [expected_noise(public_of(curator), q, EPSILON) for q in queries]
    assert noises == [Noise("laplace", s / 0.5) for s in (1, 2, 4, 6)]
    weighted = Query.weighted(DOMAIN, ["sex"], [0.5, 0.0])  # one count is as many steps of its grid as the noise is
    assert expected_noise(public_of(curator), weighted, EPSILON) == Noise("laplace", weighted.unit / 0.5)
    assert weighted.unit > 1


def forged(weights: Any, unit: int, scope: tuple[str, ...] = ("sex",)) -> Query:
    return Query((Factor(scope, np.array(weights), unit),), complement=False)


@pytest.mark.parametrize(
    "question",
    [
        forged([0, 1, 0], 1),
        forged([0, 1], 1, ("nobody",)),
        Marginal(("nobody",), EVERYONE),
        Marginal(("sex",), forged([0, 1, 0], 1)),
        EVERYONE,
        Tree("city", (3,), (1,)),
        Tree("nobody", (3,), (1,)),
        forged([0, 1], 1, ("SEX",)),
        Marginal(("SEX",), EVERYONE),
        "SELECT COUNT(*) FROM data",
    ],
)
def test_questions_about_another_domain_are_refused_unpaid(curator: Curator, question: Any) -> None:
    # What is no question at all cannot be made: tests/model/test_question_values.py.
    with pytest.raises(InvalidQuery):
        curator.measure([Query.among(DOMAIN, "age", [1]), question], EPSILON)
    assert public_of(curator).spent.atoms == 0
    assert list(curator._ledger.log.lines()) == []


def test_the_charge_is_durable_before_the_data_are_looked_at(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches "charge after the release": at the moment of the true answer the intent must stand in the ledger.
    seen = []
    truth = Records.answer

    def spy(self: Records, query: Query) -> int:
        seen.append(public_of(curator).spent)
        return truth(self, query)

    monkeypatch.setattr(Records, "answer", spy)
    curator.measure([Query.among(DOMAIN, "sex", [0])], EPSILON)
    assert seen == [EPSILON]


def test_a_failure_after_the_reservation_keeps_it_spent(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Records, query: Query) -> int:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Records, "answer", broken)
        with pytest.raises(AnswerWithheld) as caught:
            curator.measure([Query.among(DOMAIN, "sex", [0])], EPSILON)
    assert "stays spent" in str(caught.value)
    assert caught.value.__context__ is None  # what went wrong may depend on the data
    assert public_of(curator).spent == EPSILON
    curator.measure([Query.among(DOMAIN, "sex", [0])], EPSILON)
    assert public_of(curator).spent == EPSILON + EPSILON


def test_questions_measured_together_have_noise_of_their_own(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # The draws are 1, 2, 3, …: every number that is released must have taken one that no other has.
    drawn = itertools.count(1)
    questions = [Query.among(DOMAIN, "sex", [0]), Query.among(DOMAIN, "age", [1, 2]), marginal(DOMAIN, "city"), TREE]
    monkeypatch.setattr(
        curator_module, "add_noise", lambda values, noise: values + [next(drawn) for _ in range(values.size)]
    )
    found = curator.measure(questions, EPSILON)
    noise = [
        (one.values - truth(question, curator._records)).tolist()
        for one, question in zip(found, questions, strict=True)
    ]
    assert sorted(itertools.chain(*noise)) == list(range(1, sum(one.values.size for one in found) + 1))


def test_a_search_draws_its_threshold_and_one_noise_for_each_question(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    women = Query.among(DOMAIN, "sex", [0])  # 3 of them, so the third guess is far off
    asked = [women] * 3, [3.0, 3.0, 300.0]
    drawn: list[int] = []

    def none(scale: float, size: int) -> Any:
        drawn.append(size)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(gate_module, "draw_geometric", none)
    monkeypatch.setattr(curator_module, "draw_geometric", none)
    assert curator.first_far(*asked, 100.0, EPSILON).index == 2
    assert drawn == [1, 3]
    monkeypatch.setattr(curator_module, "draw_geometric", lambda scale, size: np.full(size, 1000 * GRID))
    assert curator.first_far(*asked, 101.0, EPSILON).index is None  # the threshold's noise is above all


@pytest.mark.usefixtures("no_noise")
def test_a_released_zero_is_an_answer(curator: Curator) -> None:
    # Catches `if not answer`.
    nobody = Query.among(DOMAIN, "age", [4])
    assert curator.measure([nobody], EPSILON)[0].values.tolist() == [0]
    assert curator.measure([nobody], EPSILON)[0].values.tolist() == [0]
    assert public_of(curator).spent == EPSILON


def test_released_replays_everything_in_order(curator: Curator) -> None:
    questions = [Query.among(DOMAIN, "sex", [0]), marginal(DOMAIN, "city"), TREE, Convolution("age", 4, cyclic=False)]
    questions.append(Query.weighted(DOMAIN, ["age"], [0, 0.1, 0.2, 0.3, 0.4, 0.5, 1]))
    measured = [curator.measure([question], EPSILON)[0] for question in questions]
    replayed = list(public_of(curator).released())
    assert [m.question for m in replayed] == questions
    assert [m.values.tolist() for m in replayed] == [m.values.tolist() for m in measured]
    assert [m.receipt for m in replayed] == [m.receipt for m in measured]
    assert next(public_of(curator).released(after=replayed[2].receipt.entry)).question == questions[3]


@pytest.mark.usefixtures("no_noise")
def test_other_spellings_of_a_query_are_one_question(curator: Curator) -> None:
    # Catches a key taken from how it was written: uint8, int64 and grid weights.
    spellings = [
        Query.among(DOMAIN, "sex", [0]),
        Query.among(DOMAIN, np.str_("sex"), [0]),
        forged([1, 0], 1),
        forged([GRID, 0], GRID),
    ]
    measured = curator.measure(spellings, EPSILON)
    assert len({m.receipt for m in measured}) == 1
    assert public_of(curator).spent == EPSILON


# Planted bugs: each test above must fail when the thing it tests is broken.


def test_planted_charge_after_the_release(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve, settle = Ledger.reserve, Ledger.settle
    later: list[Any] = []

    def lazy_reserve(self: Ledger, loss: Loss, **named: Any) -> Any:
        later.append((loss, named))
        return None

    def pay_at_last(self: Ledger, reservation: Any, outcomes: Any, **named: Any) -> Any:
        loss, purpose = later.pop()
        return settle(self, reserve(self, loss, **purpose), outcomes, **named)

    monkeypatch.setattr(Ledger, "reserve", lazy_reserve)
    monkeypatch.setattr(Ledger, "settle", pay_at_last)
    with pytest.raises(AssertionError):
        test_the_charge_is_durable_before_the_data_are_looked_at(curator, monkeypatch)


def test_planted_private_size_in_the_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure, noise_of = Curator._measure, curator_module.noise_of

    def leaky(self: Curator, *given: Any) -> Any:
        def scaled(*about: Any) -> Noise:
            public = noise_of(*about)
            return Noise(public.kind, public.scale * (1 + len(self._records._counts)))

        monkeypatch.setattr(curator_module, "noise_of", scaled)
        return measure(self, *given)

    monkeypatch.setattr(Curator, "_measure", leaky)
    with pytest.raises(AssertionError):
        test_the_scale_follows_from_public_facts_alone(tmp_path)


def test_planted_noise_not_scaled(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.trusted.sensitivity.sensitivity", lambda question, domain: Sensitivity(1, 1))
    with pytest.raises(AssertionError):
        test_noise_is_scaled_to_joint_sensitivity(curator)


def test_planted_domain_not_checked(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.model.request.check", lambda question, domain: None)
    with pytest.raises((pytest.fail.Exception, TacitError)):
        test_questions_about_another_domain_are_refused_unpaid(curator, forged([0, 1, 0], 1))


def test_planted_released_zero_treated_as_missing(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    find_many = Ledger.find_many

    def forgetful(self: Ledger, keys: Any) -> Any:
        return {k: entry for k, entry in find_many(self, keys).items() if '"values":[0]' not in entry.body}

    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)
    monkeypatch.setattr(Ledger, "find_many", forgetful)
    with pytest.raises((AssertionError, TacitError)):
        test_a_released_zero_is_an_answer(curator)


def test_planted_counter_that_forgets_reservations(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Public, "spent", property(lambda self: Loss("epsilon", 0)))
    with pytest.raises(AssertionError):
        test_pays_exactly_the_price_and_repeats_are_free(curator)
