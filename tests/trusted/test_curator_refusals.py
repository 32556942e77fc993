"""What the curator refuses before it pays, and what it never shows when something goes wrong after it has looked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curators import public_of
from tacit.errors import AnswerWithheld, InvalidBudget, InvalidQuery, WouldSpend
from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.attribute import category, integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.request import Distance, WorstOf
from tacit.model.workload import Tree, marginal
from tacit.store.anchor import Anchor
from tacit.trusted import curator as curator_module
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.gate import tell
from tacit.trusted.ledger import Ledger

DOMAIN = Domain({"sex": category(["F", "M"]), "age": integer(0, 6)})
WOMEN = Query.among(DOMAIN, "sex", [0])  # 70 of 100
BUDGET = Budget(epsilon=20.0, delta=0.0)
EPSILON = Loss.of("epsilon", 1.0)
ATOMS = EPSILON.atoms


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    rows = pa.table({"sex": ["F"] * 70 + ["M"] * 30, "age": [i % 7 for i in range(100)]})
    anchor = Anchor(tmp_path / "a.sqlite")
    ledger = Ledger.open(
        tmp_path / "l.tacit", make="new", budget=BUDGET, total=total(BUDGET), binding={}, anchor=anchor
    )
    yield Curator(read_records(open_source(rows), DOMAIN), ledger)
    ledger.close()


def nothing_happened(curator: Curator) -> bool:
    return public_of(curator).spent.atoms == 0 and not list(curator._ledger.log.lines())


USES: dict[str, Callable[[Curator, Loss], object]] = {
    "measure": lambda curator, loss: curator.measure([WOMEN], loss),
    "compare": lambda curator, loss: curator.compare(WOMEN, Distance(0.0), 50.0, loss),
    "first_far": lambda curator, loss: curator.first_far([WOMEN], [0.0], 50.0, loss),
    "select_worst": lambda curator, loss: curator.select_worst([WOMEN, ~WOMEN], [0.0, 0.0], loss),
    "open_gate": lambda curator, loss: curator.open_gate(50.0, loss),
}


@pytest.mark.parametrize("use", USES)
def test_an_amount_that_is_not_one_of_this_budget_is_refused(curator: Curator, use: str) -> None:
    # Noise for rho, charged as if it were epsilon, would cost a hundredth of its price.
    for loss in (Loss("rho", ATOMS), Loss("epsilon", 0), Loss("epsilon", -ATOMS), None, 0.5):
        with pytest.raises(InvalidBudget):
            USES[use](curator, loss)  # type: ignore[arg-type]
    assert nothing_happened(curator)


@pytest.mark.parametrize("use", USES)
def test_an_honest_amount_is_taken_once(curator: Curator, use: str) -> None:
    USES[use](curator, EPSILON)
    spent = public_of(curator).spent
    assert 0 < spent.atoms <= ATOMS
    if use != "open_gate":  # asked again in the same words, it is read back for nothing
        USES[use](curator, EPSILON)
        assert public_of(curator).spent == spent


@pytest.mark.parametrize("threshold", [True, np.float64(5), "5", None, float("nan"), 2.0**40], ids=repr)
def test_a_gate_stands_at_a_plain_count(curator: Curator, threshold: Any) -> None:
    for use in (
        lambda: curator.open_gate(threshold, EPSILON),
        lambda: curator.first_far([WOMEN], [0.0], threshold, EPSILON),
        lambda: curator.compare(WOMEN, Distance(0.0), threshold, EPSILON),
    ):
        with pytest.raises(InvalidQuery):
            use()
    assert nothing_happened(curator)


# -- what a traceback shows -------------------------------------------------------------------------------------------


def inside(shown: object) -> Iterator[int]:
    """The whole numbers in a value, as a report that prints local variables would show them."""
    if isinstance(shown, int | np.integer):
        yield int(shown)
    elif isinstance(shown, dict):
        yield from inside(list(shown.values()))
    elif isinstance(shown, list | tuple | set | np.ndarray):
        for part in shown:
            yield from inside(part)


def locals_of(trace: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == curator_module.__file__:
            for name, value in frame.f_locals.items():
                yield from ((frame.f_code.co_name, name, number) for number in inside(value))


def fail_to_settle(curator: Curator, monkeypatch: pytest.MonkeyPatch, use: str) -> list[tuple[str, str, int]]:
    def broken(*_: Any, **__: Any) -> Any:
        raise AnswerWithheld("could not be stored")

    monkeypatch.setattr(curator._ledger, "settle", broken)
    with pytest.raises(AnswerWithheld) as caught:
        USES[use](curator, EPSILON)
    assert caught.value.__context__ is None
    return list(locals_of(caught.value.__traceback__))


TRUE = {70, 70 * GRID, 30, 30 * GRID}  # of either sex, in counts and in steps: also the scores against guesses of 0
LOOKS = ["measure", "compare", "first_far", "select_worst"]


@pytest.mark.parametrize("use", LOOKS)
def test_no_true_value_is_left_in_a_traceback(curator: Curator, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values + 12_345)
    shown = fail_to_settle(curator, monkeypatch, use)
    assert shown  # the walk sees the curator's frames
    assert [found for found in shown if found[2] in TRUE] == []


@pytest.mark.parametrize("use", LOOKS)
def test_what_goes_wrong_while_looking_is_not_told(curator: Curator, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("the truth is 70")

    monkeypatch.setattr(curator._records.__class__, "answer", broken)
    with pytest.raises(AnswerWithheld) as caught:
        USES[use](curator, EPSILON)
    assert "70" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert public_of(curator).spent.atoms > 0


def test_the_noise_of_a_search_is_not_left_in_a_traceback(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # Who knows the threshold's noise knows more than the search was paid to tell.
    monkeypatch.setattr(curator_module, "draw_geometric", lambda scale, size: np.full(size, 987_654_321))
    assert [found for found in fail_to_settle(curator, monkeypatch, "first_far") if found[2] == 987_654_321] == []


def test_planted_truths_in_a_traceback_are_found(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def talkative(ledger: Ledger, cost: Loss, purpose: str, draw: Any) -> Any:
        truth = curator._records.answer(WOMEN)
        return ledger.settle(truth, draw(truth))

    talkative.__code__ = talkative.__code__.replace(co_filename=curator_module.__file__)
    monkeypatch.setattr(curator_module, "paid", talkative)
    assert ("talkative", "truth", 70) in fail_to_settle(curator, monkeypatch, "measure")


# -- what is checked is what is looked at, also where the caller's lists change meanwhile ------------------------------


def test_a_tree_keeps_copies_of_its_lists() -> None:
    branching, weights = [7], [1]
    tree = Tree("age", branching, weights)  # type: ignore[arg-type]
    branching[0], weights[0] = 2, 65_536
    assert (tree.branching, tree.weights) == ((7,), (1,))


class Sly:
    """A guess that changes the list of candidates while it is read."""

    def __init__(self, candidates: list[Any], becomes: Any) -> None:
        self.candidates, self.becomes = candidates, becomes

    def __array__(self, *_: Any, **__: Any) -> Any:
        self.candidates[0] = self.becomes
        return np.array([0.0])


def test_a_candidate_that_changes_after_its_check_is_not_chosen(curator: Curator) -> None:
    tree: Any = Tree("age", (7,), (65_536,))
    candidates = [WOMEN, ~WOMEN]
    asked = WorstOf.of(curator.declared, candidates, [Sly(candidates, tree), 0.0])  # type: ignore[list-item]
    assert candidates[0] is tree
    assert asked.candidates == (WOMEN, ~WOMEN)


def test_a_candidate_of_another_domain_is_refused(curator: Curator) -> None:
    other = Query.among(Domain({"sex": category(["F", "M", "X"])}), "sex", [2])
    with pytest.raises(InvalidQuery):
        curator.select_worst([other], [0.0], EPSILON)
    assert nothing_happened(curator)


def test_questions_that_change_while_a_turn_is_awaited_are_measured_as_checked(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    young = Query.among(DOMAIN, "age", [0, 1])
    asked, log = [WOMEN, young], curator._ledger.log
    turn = log.turn

    def reversed_meanwhile() -> Any:
        asked.reverse()
        return turn()

    monkeypatch.setattr(log, "turn", reversed_meanwhile)
    measured = curator.measure(asked, EPSILON)
    assert [one.question for one in measured] == [WOMEN, young]
    assert [one.key for one in measured] == [WOMEN.key, young.key]


def test_free_answers_have_the_key_of_a_question(curator: Curator) -> None:
    table: Any = marginal(DOMAIN, "sex")
    for key, question in ((5, WOMEN), ("a table", table)):
        with pytest.raises(InvalidQuery):
            tell(curator._ledger, [(key, FreeAnswer(question, 1, ""))])  # type: ignore[list-item]
    assert nothing_happened(curator)


def test_a_gate_keeps_its_noise_where_nothing_may_be_told(curator: Curator) -> None:
    gate = curator.open_gate(1e6, EPSILON)
    assert gate.first_above([WOMEN], [Distance(70.0)]) is None
    with curator._ledger.log.conditions.read_only(), pytest.raises(WouldSpend):
        tell(curator._ledger, [(WOMEN.key, FreeAnswer(WOMEN, 70, ""))], gate)
    tell(curator._ledger, [(WOMEN.key, FreeAnswer(WOMEN, 70, ""))], gate)
    assert gate.first_above([WOMEN], [Distance(70.0)]) is None  # it goes on
