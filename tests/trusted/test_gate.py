"""The gate: what it compares, that it shuts, that it survives a restart, and that planted bugs in it are caught."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from curators import open_curator, private_of, public_of
from tacit.errors import AnswerWithheld, BudgetExhausted, InvalidBudget, InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer, GateTerms, Intent, decode
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.request import Disagreement, Distance
from tacit.model.workload import marginal
from tacit.store.chain import Line
from tacit.store.log import Log
from tacit.trusted import gate as gate_module
from tacit.trusted.curator import Curator
from tacit.trusted.gate import Gate
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

DOMAIN = Domain({"sex": category(["F", "M"]), "age": integer(0, 9)})
BUDGET = Budget(epsilon=10.0, delta=0.0)
EPSILON = Loss.of("epsilon", 1.0)
N = 100
WOMEN = Query.among(DOMAIN, "sex", [0])  # 70 of them


def curator_at(folder: Path) -> Curator:
    rows = pa.table({"sex": ["F"] * 70 + ["M"] * 30, "age": [i % 10 for i in range(N)]})
    return open_curator(folder, rows, DOMAIN, BUDGET)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    made = curator_at(tmp_path)
    yield made
    made._ledger.close()


class Draws:
    """Stands in for the one-sided noise: hands out what it is told to, in counts, and remembers the scales."""

    def __init__(self, *draws: float) -> None:
        self.left, self.scales = list(draws), list[float]()

    def __call__(self, scale: float, size: int) -> NDArray[np.int64]:
        self.scales.append(scale)
        return np.array([round((self.left.pop(0) if self.left else 0.0) * GRID) for _ in range(size)], dtype=np.int64)


@pytest.mark.parametrize(
    ("guess", "threshold", "bar_noise", "noise", "hit"),
    [
        (70, 1, 0, 0, False),  # a perfect guess: only the means stand between the value and the bar
        (40, 10, 0, 0, True),
        (40, 10, 25, 0, False),  # distance 30 against 10 + 25 (less the difference of the means)
        (40, 10, 25, 9, True),
        (100, 10, 0, 0, True),  # from above as from below
        (70.25, 10, 0, 10.6, True),
        (70.25, 10, 0, 10.3, False),
    ],
)
def test_compares_what_it_says(
    curator: Curator,
    monkeypatch: pytest.MonkeyPatch,
    guess: float,
    threshold: float,
    bar_noise: float,
    noise: float,
    hit: bool,
) -> None:
    # |truth - guess| + noise - mean >= threshold + bar noise - mean, all in counts; the scales are 2.59 and 3.26.
    draws = Draws(bar_noise, noise)
    monkeypatch.setattr(gate_module, "draw_geometric", draws)
    gate = curator.open_gate(threshold, EPSILON)
    s1, s2 = (scale / GRID for scale in (gate.terms.threshold_scale * GRID, gate.terms.comparison_scale * GRID))
    assert (s1, s2) == pytest.approx((2.587, 3.26), rel=1e-3)
    expected = abs(70 - guess) + noise - s2 >= threshold + bar_noise - s1
    found = gate.first_above([WOMEN], [Distance(guess)])
    assert (found is not None) == expected == hit
    assert draws.scales == [gate.terms.threshold_scale * GRID, gate.terms.comparison_scale * GRID]


def test_a_weighted_question_and_a_disagreement(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "draw_geometric", Draws())
    half = Query.weighted(DOMAIN, ["sex"], [0.5, 0.0])  # 35
    near, far = Disagreement(np.array([35.0, 36.0]), 50.0), Disagreement(np.array([95.0, 99.0]), 50.0)  # 0.5, and 35
    gate = curator.open_gate(20, EPSILON)
    questions = [half, half, half, WOMEN]
    found = gate.first_above(questions, [Distance(35), near, far, far])
    assert found is not None
    assert found[0] == 2


def test_pays_once_before_it_compares_for_any_number(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches charging after the release, and charging by the question.
    spent_when_looked_at = []
    answer = Records.answer
    monkeypatch.setattr(
        Records,
        "answer",
        lambda self, query: (spent_when_looked_at.append(public_of(curator).spent), answer(self, query))[1],
    )
    gate = curator.open_gate(10_000, EPSILON)
    assert gate.first_above([WOMEN] * 1000, [Distance(0)] * 1000) is None
    assert set(spent_when_looked_at) == {EPSILON}
    assert public_of(curator).spent == EPSILON
    assert gate.terms.atoms == EPSILON.atoms


@pytest.mark.parametrize("place", [0, 1, 255, 256, 300, 599])
def test_every_comparison_has_a_draw_of_its_own(curator: Curator, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    # All draws are 0 but one, which passes any bar: the question that it belongs to is the only one that passes.
    # Catches noise that several comparisons share, of which no finite epsilon is true.
    draws = iter([0] * (place + 1) + [10_000 * GRID] + [0] * 600)  # the first is the threshold's
    monkeypatch.setattr(
        gate_module, "draw_geometric", lambda scale, size: np.array([next(draws) for _ in range(size)], dtype=np.int64)
    )
    gate = curator.open_gate(1000, EPSILON)
    found = gate.first_above([WOMEN] * 600, [Distance(0)] * 600)
    assert found is not None
    assert found[0] == place


def test_a_shut_gate_has_cost_its_whole_price(curator: Curator) -> None:
    gate = curator.open_gate(-1000, EPSILON)
    assert gate.first_above([WOMEN], [Distance(0)]) is not None
    assert public_of(curator).spent == EPSILON


def check_shut_after_a_hit(curator: Curator) -> None:
    gate = curator.open_gate(-1000, EPSILON)  # everything is above
    assert gate.first_above([WOMEN], [Distance(0)]) is not None
    for again in (gate, Gate(gate._ledger, gate._records, gate._intent, _terms(gate))):
        with pytest.raises(InvalidQuery, match="shut"):
            again.first_above([WOMEN], [Distance(0)])
    assert curator.resume_gate() is None


def _terms(gate: Gate) -> GateTerms:
    line = next(line for line in gate._ledger.log.lines() if line.seq == gate._intent)
    intent = decode(line.kind, line.body)
    assert isinstance(intent, Intent)
    assert isinstance(intent.purpose, GateTerms)
    return intent.purpose


def test_is_shut_after_its_first_hit_for_everybody(curator: Curator) -> None:
    check_shut_after_a_hit(curator)


def test_another_process_sees_it_shut(tmp_path: Path, curator: Curator) -> None:
    mine = curator.open_gate(-1000, EPSILON)
    other = curator_at(tmp_path)
    theirs = other.resume_gate()
    assert theirs is not None
    assert mine.first_above([WOMEN], [Distance(0)]) is not None
    with pytest.raises(InvalidQuery, match="shut"):
        theirs.first_above([WOMEN], [Distance(0)])
    other._ledger.close()


def noise_of(gate: Gate) -> str | None:
    return private_of(gate._ledger.log, gate._intent)


def check_a_restart_neither_pays_nor_learns(curator: Curator, folder: Path) -> None:
    gate = curator.open_gate(50, EPSILON)
    noise = noise_of(gate)
    assert noise is not None
    curator._ledger.close()
    again = curator_at(folder)
    resumed = again.resume_gate()
    assert resumed is not None
    assert (noise_of(resumed), resumed.threshold, resumed.terms.atoms) == (noise, 50, EPSILON.atoms)
    assert again.resume_gate(owner="somebody else") is None
    assert public_of(again).spent == EPSILON
    again._ledger.close()


def test_held_until_what_it_said_is_stored_and_then_the_same(curator: Curator) -> None:
    # Catches a gate that goes on although what it said before was lost: the same noise would then answer for ever.
    gate = curator.open_gate(10_000, EPSILON)
    noise = noise_of(gate)
    assert gate.first_above([WOMEN], [Distance(0)]) is None
    assert noise_of(gate) is None
    assert curator.resume_gate() is None
    with pytest.raises(InvalidQuery, match="held"):
        gate.first_above([WOMEN], [Distance(0)])
    public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)
    assert noise_of(gate) == noise
    assert gate.first_above([WOMEN], [Distance(0)]) is None


def ask_one(curator: Curator, gate: Gate) -> None:
    if gate.first_above([WOMEN], [Distance(0)]) is None:
        public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)


def test_whatever_goes_wrong_hit_or_not_looks_the_same(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # A full disk must not tell a hit from a miss, nor leave a gate that can be asked again.
    def broken(self: Ledger, *_: Any, **__: Any) -> Any:
        raise AnswerWithheld("The disk is full.")

    said = []
    for threshold in (-1000, 10_000):
        gate = curator.open_gate(threshold, EPSILON)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "settle", broken)
            with pytest.raises(AnswerWithheld) as caught:
                ask_one(curator, gate)
        said.append(str(caught.value))
        assert curator.resume_gate() is None
    assert said[0] == said[1]


def test_a_failure_while_comparing_says_nothing_and_loses_the_gate(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Records, query: Query) -> int:
        raise MemoryError(70)

    gate = curator.open_gate(10, EPSILON)
    monkeypatch.setattr(Records, "answer", broken)
    with pytest.raises(AnswerWithheld) as caught:
        gate.first_above([WOMEN], [Distance(0)])
    assert caught.value.__context__ is None
    assert "70" not in str(caught.value)
    assert curator.resume_gate() is None


def test_a_restart_neither_pays_nor_learns(curator: Curator, tmp_path: Path) -> None:
    check_a_restart_neither_pays_nor_learns(curator, tmp_path)


def check_every_gate_has_a_threshold_of_its_own(curator: Curator) -> None:
    noises = []
    for _ in range(6):
        gate = curator.open_gate(-1000, EPSILON)
        noises.append(noise_of(gate))
        gate.first_above([WOMEN], [Distance(0)])
    assert len(set(noises)) > 1


def test_every_gate_has_a_threshold_of_its_own(curator: Curator) -> None:
    check_every_gate_has_a_threshold_of_its_own(curator)


def check_the_threshold_is_in_nothing_that_is_hashed_or_shown(curator: Curator) -> None:
    gate = curator.open_gate(50, EPSILON)
    noise = noise_of(gate)
    assert noise is not None
    for entry in curator._ledger.log.lines():
        assert noise not in entry.body


def test_the_threshold_is_in_nothing_that_is_hashed_or_shown(curator: Curator) -> None:
    # A seal is public. If the noise were in what it seals, it could be found by trying.
    check_the_threshold_is_in_nothing_that_is_hashed_or_shown(curator)


@pytest.mark.parametrize(
    ("queries", "lenses"),
    [
        ([WOMEN], []),
        ([WOMEN], [lambda x: 1000 * x]),
        ([WOMEN], [None]),
        ([marginal(DOMAIN, "sex")], [Distance(0)]),
        (["WOMEN"], [Distance(0)]),
        ([Query((), complement=True), Query.among(Domain({"x": integer(0, 3)}), "x", [1])], [Distance(0), Distance(0)]),
    ],
)
def test_bad_lenses_and_questions_are_refused(curator: Curator, queries: Any, lenses: Any) -> None:
    gate = curator.open_gate(10, EPSILON)
    with pytest.raises(InvalidQuery):
        gate.first_above(queries, lenses)
    assert curator.resume_gate() is not None  # nothing was compared, and the gate still stands


def test_a_gate_that_is_not_affordable_is_not_opened(curator: Curator) -> None:
    with pytest.raises(BudgetExhausted):
        curator.open_gate(10, Loss.of("epsilon", 10.5))
    for threshold in (float("nan"), 1e30):
        with pytest.raises(InvalidQuery):
            curator.open_gate(threshold, EPSILON)
    assert public_of(curator).spent.atoms == 0


# Planted bugs: each must be caught by a check above.


def reuse(function: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[float, Any] = {}
    return lambda scale, size: kept.setdefault((scale, size), function(scale, size))


def test_planted_gate_not_shut(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def put_back_instead(self: Gate) -> str:
        self._ledger.log._file.transact(lambda db: db.execute("UPDATE private SET value = '7'"))
        return "a receipt"

    monkeypatch.setattr(Gate, "_shut", put_back_instead)
    with pytest.raises(pytest.fail.Exception):
        check_shut_after_a_hit(curator)


def test_planted_threshold_not_refreshed(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "draw_geometric", reuse(gate_module.draw_geometric))
    with pytest.raises(AssertionError):
        check_every_gate_has_a_threshold_of_its_own(curator)


def test_planted_threshold_redrawn_at_restart(
    curator: Curator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_intents = Log.kept_intents

    def redraws(self: Log) -> list[Line]:
        found = kept_intents(self)
        for line in found:
            self.write(lambda transaction, seq=line.seq: transaction.keep(seq, str(next(counter))))
        return found

    monkeypatch.setattr(Log, "kept_intents", redraws)
    counter = iter(range(100))
    with pytest.raises(AssertionError):
        check_a_restart_neither_pays_nor_learns(curator, tmp_path)


def test_planted_threshold_in_the_chain(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = Ledger.reserve

    def leaky(self: Ledger, loss: Loss, *, purpose: Any, private: str | None = None) -> Any:
        return reserve(self, loss, purpose=replace(purpose, owner=private), private=private)

    monkeypatch.setattr(Ledger, "reserve", leaky)
    with pytest.raises(AssertionError):
        check_the_threshold_is_in_nothing_that_is_hashed_or_shown(curator)


def test_a_gate_whose_noise_could_meet_the_limits_of_64_bits_is_refused(curator: Curator) -> None:
    # One-sided noise that is cut off at the top is not private: shifting it by one row fails there.
    with pytest.raises(InvalidBudget):
        curator.open_gate(10, Loss("epsilon", 100))
    assert public_of(curator).spent.atoms == 0


def test_a_copy_of_a_held_gate_cannot_put_it_back_twice(curator: Curator) -> None:
    # Catches a fork, or a copied object, that compares again with a threshold whose hit was already told.
    gate = curator.open_gate(-1000, EPSILON)
    assert gate._ledger.take_private(gate._intent) is not None  # as if another held it
    with pytest.raises(InvalidQuery, match="held"):
        gate.first_above([WOMEN], [Distance(0)])
    quiet = curator.open_gate(10_000, EPSILON)
    assert quiet.first_above([WOMEN], [Distance(0)]) is None
    twin = copy.copy(quiet)
    public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], quiet)
    with pytest.raises(AnswerWithheld):
        public_of(curator).tell([FreeAnswer(~WOMEN, 30, "")], twin)


def test_an_interrupt_loses_the_gate(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    gate = curator.open_gate(10, EPSILON)
    with monkeypatch.context() as patch:
        patch.setattr(gate_module, "first_passing", interrupted)
        with pytest.raises(KeyboardInterrupt):
            gate.first_above([WOMEN], [Distance(0)])
    public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)  # stores the answer, and has nothing to put back
    assert curator.resume_gate() is None


def test_a_gate_of_another_ledger_is_refused(curator: Curator, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = curator_at(folder)
    gate = other.open_gate(10_000, EPSILON)
    assert gate.first_above([WOMEN], [Distance(0)]) is None
    with pytest.raises(InvalidQuery):
        public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)
    with pytest.raises(InvalidQuery):
        public_of(other).tell([], gate)
    public_of(other).tell([FreeAnswer(WOMEN, 70, "")], gate)
    assert other.resume_gate() is not None
    other._ledger.close()


class LooksLikeAGate:
    """Whatever it holds, it was never opened."""

    def __init__(self, gate: Gate, held: Any) -> None:
        self._ledger, self._held, self._asked, self.terms, self.threshold = gate._ledger, held, None, gate.terms, 0.0


def test_what_only_looks_like_a_gate_is_refused(curator: Curator) -> None:
    gate = curator.open_gate(10_000, EPSILON)
    assert gate.first_above([WOMEN], [Distance(0)]) is None
    for held in (gate._held, replace(gate._held, value="0"), replace(gate._held, token="0")):
        with pytest.raises(InvalidQuery):
            public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], LooksLikeAGate(gate, held))  # type: ignore[arg-type]
    public_of(curator).tell([FreeAnswer(WOMEN, 70, "")], gate)  # it was not touched


def values_in(error: BaseException) -> str:
    """All that a verbose traceback would print."""
    found, frame = list[str](), error.__traceback__
    assert error.__context__ is None
    while frame is not None:
        if "tacit" in frame.tb_frame.f_code.co_filename and "tests" not in frame.tb_frame.f_code.co_filename:
            found.append(f"{frame.tb_frame.f_code.co_name} {frame.tb_frame.f_locals!r}")
        frame = frame.tb_next
    return "\n".join(found)


def interrupted_look(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What tracebacks show after Ctrl-C in the middle of a look: of a gate, and of a measurement."""
    gate, noise, shown = curator.open_gate(10, EPSILON), "123456789", list[str]()
    curator._ledger.log._file.transact(lambda db: db.execute("UPDATE private SET value = ?", (noise,)))

    def interrupt(*_: Any) -> Any:
        truth = 987654321  # noqa: F841 - what a frame would show
        raise KeyboardInterrupt

    monkeypatch.setattr(Records, "answer", interrupt)
    looks = (lambda: gate.first_above([WOMEN], [Distance(0)]), lambda: curator.measure([WOMEN], EPSILON))
    for look in looks:
        with pytest.raises(KeyboardInterrupt) as caught:
            look()
        shown.append(values_in(caught.value))
    return shown


def test_an_interrupt_shows_neither_noise_nor_truth(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in interrupted_look(curator, monkeypatch):
        assert "123456789" not in text
        assert "987654321" not in text
        assert "first_passing" not in text.replace("function first_passing", "")


def test_planted_interrupts_with_their_frames(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("gate", "curator"):
        monkeypatch.setattr(f"tacit.trusted.{module}.unseen", lambda look, failed: look())
    assert "first_passing" in interrupted_look(curator, monkeypatch)[0]
