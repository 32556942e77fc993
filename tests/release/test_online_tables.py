"""Whole tables bought on a miss: one commit with the answer, the table's own error bar, and a better hypothesis."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import once
from tacit.model.budget import Loss
from tacit.model.entry import Measured, Told
from tacit.model.facts import ANSWER, FREE, NOISE, Bar
from tacit.model.query import Query
from tacit.model.workload import Marginal, marginal
from tacit.release import iterative
from tacit.release.hypothesis.noisy_table import half_width_within
from tacit.release.iterative import Weights
from tacit.release.online import Online
from tacit.release.public import Public
from tacit.release.purchases import Purchase
from tacit.release.recall import expected_noise, measure_around
from tacit.session import Session
from tacit.trusted.ledger import Ledger

SIZES = {"a": 6, "b": 5, "c": 4, "d": 3}
DOMAIN = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
N = 20_000
MEMORY = Path("/dev/shm")  # these ledgers need not survive anything


def make_rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 5, N)
    laws = {name: rng.dirichlet(np.full(size, 0.5), 5)[kind].cumsum(1) for name, size in SIZES.items()}
    return pd.DataFrame({n: (rng.random(N)[:, None] > law).sum(1).clip(0, SIZES[n] - 1) for n, law in laws.items()})


ROWS = make_rows()
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=2.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "iterative",
        "questions": 500,
        "hits": 20,
    }
    return tacit.open(start=True, **(settings | changes))


def cells(count: int, seed: int) -> list[Query]:
    """Different single cells of one to three attributes."""
    rng = np.random.default_rng(seed)
    made: dict[Query, None] = {}
    while len(made) < count:
        names = rng.choice(list(SIZES), rng.integers(1, 4), replace=False)
        made[Query.all([Query.among(DOMAIN, name, [int(rng.integers(SIZES[name]))]) for name in names])] = None
    return list(made)


def knowledge(session: Session) -> Weights:
    mechanism = session._mechanism
    assert isinstance(mechanism, Online)
    mechanism._catch_up(buy=True)
    assert isinstance(mechanism.knowledge, Weights)
    return mechanism.knowledge


def from_tables(answers: list[tacit.Answer]) -> list[int]:
    return [i for i, answer in enumerate(answers) if answer.source == "measured" and "from the table" in answer.note]


def test_a_hard_question_buys_its_table_and_is_answered_from_it(tmp_path: Path) -> None:
    queries = cells(60, seed=1)
    with start(tmp_path) as session:
        answers = session.ask_many(queries)
        bought = from_tables(answers)
        assert bought
        mechanism = session._mechanism
        assert isinstance(mechanism, Online)
        for i in bought:
            table = session._public.find([marginal(DOMAIN, *queries[i].scope)])[0]
            assert isinstance(table, Measured)
            said = Purchase(table, DOMAIN, N, session.confidence).estimate(queries[i].core)
            value = N - said.value if queries[i].complement else said.value
            assert (answers[i].value, answers[i].error) == (value, said.facts.width)
            # The next gate is paid for with it, while there is enough; the first question pays for the first gate too.
            gates = (answers[i].cost.atoms - table.cost.atoms) / mechanism.terms.gate_loss.atoms
            assert gates in ((1, 2) if i == 0 else (0, 1))
            assert table.cost <= mechanism.terms.answer_loss
            # The hypothesis has learned every cell of it, up to a few standard deviations of its noise.
            known = knowledge(session).hypothesis.marginal(table.question.names).ravel() * N  # type: ignore[union-attr]
            assert np.abs(known - table.values).max() < 6 * table.noise.scale
        assert sum(answer.cost.atoms for answer in answers) == session.spent.atoms


def test_fewer_questions_are_hard_than_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = cells(150, seed=2)
    hard, errors = {}, {}
    for words in ("tables", "single"):
        if words == "single":
            monkeypatch.setattr(Weights, "purchase", lambda self, query: query)
        folder = tmp_path / words
        folder.mkdir()
        with start(folder, hits=60) as session:
            answers = session.ask_many(queries)
            exact = np.array([session._curator._records.answer(query) for query in queries])
            hard[words] = sum(answer.source == "measured" for answer in answers)
            errors[words] = float(np.abs(np.array([answer.value for answer in answers]) - exact).mean())
    assert hard["tables"] < 0.8 * hard["single"]  # about half as many; the next test has the law of the choice itself
    assert errors["tables"] < 1.2 * errors["single"]


@pytest.mark.parametrize("warm", [0.0, 0.3])
def test_a_restart_rebuilds_everything_to_the_last_bit(tmp_path: Path, warm: float) -> None:
    queries = cells(80, seed=3)
    with start(tmp_path, warm=warm) as session:
        before = session.ask_many(queries)
        assert from_tables(before) or warm
        known, spent = knowledge(session).hypothesis.answer_many(queries), session.spent
    with start(tmp_path, warm=warm) as session:
        after = session.ask_many(queries)
        assert [(a.value, a.error, a.note) for a in after] == [(a.value, a.error, a.note) for a in before]
        assert {a.source for a in after} == {"repeat"}
        assert (knowledge(session).hypothesis.answer_many(queries) == known).all()
        assert session.spent == spent


def test_the_choice_is_by_public_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(tmp_path) as session:
        known = knowledge(session)
        one = Query.among(DOMAIN, "a", [1])
        assert isinstance(known.purchase(one), Marginal)
        with monkeypatch.context() as patch:
            patch.setattr(iterative, "MAX_FITTED", DOMAIN.size - 1)
            assert known.purchase(one) == one  # a fit of so many cells takes too long
        session._curator.measure([marginal(DOMAIN, "a")], Loss(session.total.measure, session.total.atoms // 100))
        assert known.purchase(one) == one  # the table is there already
    for changes in ({"hits": 20_000}, {"data": ROWS[:100]}):  # much noise for the rows that there are: nothing to learn
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        with start(folder, **changes) as session:
            wide = Query.all([Query.among(DOMAIN, name, range(size // 2)) for name, size in SIZES.items()])
            assert knowledge(session).purchase(wide) == wide


def test_a_table_asked_for_is_bought_as_one(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        found = session.table("a", "b")
        assert found.source == "measured"
        assert session._public.find([marginal(DOMAIN, "a", "b")])[0] is not None
        kinds = [kind for kind, *_ in session._public.account.since()]
        assert kinds.count("measured") < 8


def test_a_gate_proves_two_bars_and_a_repeat_has_both(tmp_path: Path) -> None:
    with start(tmp_path, warm=0.05, hits=5) as session:
        answers = session.ask_many(cells(200, seed=4))
        free = next(answer for answer in answers if answer.source == "hypothesis")
        # What the table of its attributes says about it may be narrower, and stands where its width says.
        assert [bar.about.words for bar in free.bars if bar.about.words != "this noise"] == [
            "this answer",
            "all free answers at once",
        ]
        assert free.error == free.bars[0].width == min(bar.width for bar in free.bars)
        assert {
            "width": free.bars[-1].width,
            "about": "all free answers at once",
            "confidence": 0.95,
        } in free.to_dict()["bars"]
        bought = [answer for answer in answers[1:] if answer.source == "measured"]  # the first one pays for the start
        assert bought
        assert {tuple(bar.about for bar in answer.bars) for answer in bought} <= {(NOISE,)}
    with start(tmp_path, warm=0.05, hits=5) as session:
        again = session.ask_many(cells(200, seed=4))
        assert {answer.source for answer in again} == {"repeat"}
        assert [answer.bars for answer in again] == [answer.bars for answer in answers]
        table = session.table("a", "b")
        told = session.ask_many(list(marginal(DOMAIN, "a", "b").queries(DOMAIN)))
        assert table.error == max(answer.bars[0].width for answer in told)
        for kind in (ANSWER, FREE):
            widths = [next((b.width for b in a.bars if b.about == kind), a.bars[0].width) for a in told]
            assert max(widths) in [bar.width for bar in table.bars]


# --- the curator's part -----------------------------------------------------------------------------------------------


TEN = Bar(10, NOISE, 0.95)


def loss_of(session: Session) -> Loss:
    return Loss(session.total.measure, session.total.atoms // 50)


def test_a_crash_between_a_table_and_its_answer_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query.all([Query.among(DOMAIN, "a", [1]), Query.among(DOMAIN, "b", [2, 3])])
    table = marginal(DOMAIN, "a", "b")
    settled = []
    settle = Ledger.settle

    def watch(self: Ledger, reservation: Any, outcomes: Any, **more: Any) -> Any:
        settled.append(len(outcomes))
        return settle(self, reservation, outcomes, **more)

    def cut(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with start(tmp_path) as session:
        curator = session._curator
        assert curator is not None
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "settle", cut)
            with pytest.raises(KeyboardInterrupt):
                measure_around(session._public, curator, query, loss_of(session), TEN, "")
        assert session._public.find([table, query]) == [
            None,
            None,
        ]  # what was reserved is spent, and nothing was said
        lone = Query.among(DOMAIN, "c", [0])
        with monkeypatch.context() as patch:
            patch.setattr(Public, "tell", cut)
            with pytest.raises(KeyboardInterrupt):
                measure_around(session._public, curator, lone, loss_of(session), TEN, "")
        before, table_of_c = session.spent, session._public.find([marginal(DOMAIN, "c")])[0]
        assert isinstance(table_of_c, Measured)
        _, late = measure_around(session._public, curator, lone, loss_of(session), TEN, "")
        assert (late.value, session.spent) == (int(table_of_c.values[0]), before)  # the table was there, and tells it
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "settle", watch)
            measured, told = measure_around(session._public, curator, query, loss_of(session), TEN, "words")
        assert settled == [1, 1]  # the table, and then what follows from it
        assert isinstance(told, Told)
        said = Purchase(measured, DOMAIN, N, 0.95).estimate(query)
        assert (told.value, told.bars, told.note) == (said.value, (TEN,), "words")
        spent = session.spent
        again = measure_around(session._public, curator, query, loss_of(session), Bar(99, NOISE, 0.95), "other words")
        assert again[1] == told
        assert (again[0].values == measured.values).all()
        # Another question about a table that is there is told from it, for nothing.
        other = Query.all([Query.among(DOMAIN, "a", [2]), Query.among(DOMAIN, "b", [0])])
        _, free = measure_around(session._public, curator, other, loss_of(session), Bar(7, NOISE, 0.95), "")
        assert isinstance(free, Told)
        assert free.value == measured.values.reshape(6, 5)[2, 0]
        assert session.spent == spent


def test_what_cannot_be_measured_around_is_refused_before_it_is_paid(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        some = Query.all([Query.among(DOMAIN, "a", [1]), Query.among(DOMAIN, "b", [2])])
        for query, width in ((Query.constant(everyone=True), 1), (~some, 1), (some, -1), (some, 1.5)):
            bar = Bar(width, NOISE, 0.95)
            with pytest.raises(tacit.InvalidQuery):
                measure_around(session._public, session._curator, query, loss_of(session), bar, "")
        assert session.spent.atoms == 0


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_bars_from_tables_cover(delta: float) -> None:
    # 60 bars of confidence 0.8, each from a table of its own: at least 31 hold. The control, bars of a tenth of the
    # width, has at most 10 % or so within and must be far below.
    query = Query.all([Query.among(DOMAIN, "a", [1, 2]), Query.among(DOMAIN, "b", [2]), Query.among(DOMAIN, "c", [0])])
    within = narrow = 0
    for _ in range(60):
        with (
            tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
            start(Path(name), budget=tacit.Budget(epsilon=2.0, delta=delta), anchor=Path(name) / "a.sqlite") as session,
        ):
            noise = expected_noise(session._public, marginal(DOMAIN, "a", "b", "c"), loss_of(session))
            width = half_width_within(query, DOMAIN, noise, 0.8)
            bar = Bar(width, NOISE, 0.8)
            _, told = measure_around(session._public, session._curator, query, loss_of(session), bar, "")
            assert isinstance(told, Told)
            error = abs(told.value - session._curator._records.answer(query))
            within += error <= width
            narrow += error <= width / 10
    assert within >= 31
    assert narrow < 31
