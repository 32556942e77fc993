"""Sessions that start warm: the first question buys noisy tables; everything after it is replayed from the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from support import once
from tacit.errors import ConfigError, InvalidQuery, LedgerError
from tacit.model.query import Query
from tacit.release import knowledge as knowledge_module
from tacit.release import warm_start as warm_start_module
from tacit.release.iterative import Weights
from tacit.release.online import Online
from tacit.release.online_terms import GATE_SHARE
from tacit.release.purchases import split
from tacit.session import Session
from tacit.trusted.curator import Curator

SIZES = {"a": 12, "b": 8, "c": 6, "d": 5, "e": 2}
DOMAIN = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
N = 30_000


def make_rows() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 6, N)
    chances = {name: rng.dirichlet(np.full(size, 0.6), 6) for name, size in SIZES.items()}
    draws = {name: (rng.random(N)[:, None] > chances[name][kind].cumsum(1)).sum(1) for name in SIZES}
    return pd.DataFrame({name: drawn.clip(0, SIZES[name] - 1) for name, drawn in draws.items()})


ROWS = make_rows()
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=1.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "iterative",
        "questions": 500,
        "hits": 5,
        "warm": 0.8,
    }
    return tacit.open(**({"start": True} | settings | changes))


def boxes(count: int, seed: int) -> list[Query]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        names = rng.choice(list(SIZES), rng.integers(1, 4), replace=False)
        chosen = [rng.choice(SIZES[name], rng.integers(1, SIZES[name]), replace=False) for name in names]
        made.append(Query.all([Query.among(DOMAIN, name, c) for name, c in zip(names, chosen, strict=True)]))
    return made


def errors(session: Session, queries: list[Query], answers: list[tacit.Answer]) -> NDArray[np.float64]:
    exact = [session._curator._records.answer(query) for query in queries]
    return np.abs(np.array([answer.value for answer in answers]) - exact) / N


def weights(session: Session) -> Weights:
    mechanism = session._mechanism
    assert isinstance(mechanism, Online)
    mechanism._catch_up(buy=True)
    assert isinstance(mechanism.knowledge, Weights)
    return mechanism.knowledge


def test_the_first_question_buys_the_start_and_the_rest_is_good_and_free(tmp_path: Path) -> None:
    queries = boxes(400, seed=1)
    with start(tmp_path) as session:
        most = session.cost_at_most(queries[0])
        assert session.spent.atoms == 0
        first = session.ask_many(queries[:1])[0]
        assert first.source == "measured"
        assert first.cost <= most
        assert 0.79 * float(session.total) < float(first.cost) < 0.86 * float(session.total)
        answers = [first, *session.ask_many(queries[1:])]
        hard = sum(answer.source == "measured" for answer in answers[1:])
        assert hard <= 2
        found = errors(session, queries, answers)
        assert found.mean() < 0.004  # fresh noise for 400 questions has a mean of 0.0031 and says nothing about others
        assert found.max() < 0.03
        later = boxes(1000, seed=2)
        assert errors(session, later, session.ask_many(later)).mean() < 0.004
    with start(tmp_path / "cold" if (tmp_path / "cold").mkdir() is None else tmp_path, warm=0) as session:
        assert errors(session, queries, session.ask_many(queries)).mean() > 2 * found.mean()


def test_a_restart_rebuilds_it_to_the_last_bit_for_nothing(tmp_path: Path) -> None:
    queries = boxes(100, seed=3)
    with start(tmp_path) as session:
        before = session.ask_many(queries)
        known, spent = weights(session).hypothesis.answer_many(queries), session.spent
        made = session.synthetic(20)
    with start(tmp_path) as session:
        assert session.synthetic(20) == made
        assert (weights(session).hypothesis.answer_many(queries) == known).all()
        assert [a.value for a in session.ask_many(queries)] == [a.value for a in before]
        assert session.spent == spent
    for change in ({"warm": 0.7}, {"warm": 0}):
        with pytest.raises(LedgerError):
            start(tmp_path, **change)


def buys_again(*_: object, **__: object) -> None:
    raise AssertionError("a replay chooses, prices and buys nothing")


PURE = {"budget": tacit.Budget(epsilon=1.0, delta=0.0)}


@pytest.mark.parametrize("name", ["one release", "tables", "tables that others bought"])
def test_a_replay_reads_what_was_bought_and_chooses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    changes: dict[str, Any] = {} if name == "one release" else PURE
    queries = boxes(30, seed=3)
    with start(tmp_path, **changes) as session:
        if name == "tables that others bought":
            session.release([["b"], ["c", "d"]], rounds=2, share=0.05, alpha=0.001)
        before = session.ask_many(queries)
        arrays = [array.copy() for array in session.arrays()]
        marks = [one.start for one in session._public.released() if one.start is not None]
        assert (len(marks) == 1) == (name == "one release")
        assert any(mark.beside for mark in marks) == (name == "tables that others bought")
        bars = session._mechanism.most_gates  # type: ignore[attr-defined]
        tacit.publish(session, tmp_path / "p.jsonl")
    # A later version may think of other tables and other prices: what was bought is as it was.
    for what in ("allocation", "wanted", "_buy"):
        monkeypatch.setattr(warm_start_module, what, buys_again)
    monkeypatch.setattr(knowledge_module, "warm_start", buys_again)
    reading = tacit.read(tmp_path / "p.jsonl")
    assert all((one == two).all() for one, two in zip(reading.arrays(), arrays, strict=True))
    with start(tmp_path, **changes) as session:
        assert all((one == two).all() for one, two in zip(session.arrays(), arrays, strict=True))
        assert [a.value for a in session.ask_many(queries)] == [a.value for a in before]
        assert session._mechanism.most_gates == bars  # type: ignore[attr-defined]


def test_a_start_that_was_cut_short_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, bought = Curator.measure, list[int]()

    def cut(self: Curator, *given: Any, **more: Any) -> Any:
        bought.append(len(bought))
        if len(bought) == 5:
            raise KeyboardInterrupt
        return real(self, *given, **more)

    with start(tmp_path, **PURE) as session:
        monkeypatch.setattr(Curator, "measure", cut)
        with pytest.raises(KeyboardInterrupt):
            session.ask(boxes(1, seed=1)[0])
        monkeypatch.setattr(Curator, "measure", real)
    with start(tmp_path, **PURE) as session:
        assert len(list(session._public.released())) == 4
        session.ask(boxes(1, seed=1)[0])
        arrays = [array.copy() for array in session.arrays()]
        marks = [one.start for one in session._public.released() if one.start is not None]
        assert len(marks) > 5
        assert [mark.left for mark in marks] == list(range(len(marks) - 1, -1, -1))
    with start(tmp_path, **PURE) as session:
        assert all((one == two).all() for one, two in zip(session.arrays(), arrays, strict=True))


def test_the_first_question_says_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with start(tmp_path, progress=lambda done, most: told.append((done, most))) as session:
        assert told == []
        session.ask_many(boxes(1, seed=1))
        assert len(told) > 1
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1]
        before = len(told)
        session.ask_many(boxes(5, seed=2))
        assert len(told) == before


def test_rows_are_not_made_before_anything_is_published(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        with pytest.raises(InvalidQuery, match="start the session"):
            session.synthetic(5)
        assert session.spent.atoms == 0


def test_what_cannot_be_paid_any_more_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge_module, "_LEAST_SHARE", 0.6)
    with start(tmp_path) as session:
        session.cdf("a", share=0.5)
        spent = session.spent
        answer = session.ask_many(boxes(1, seed=4))[0]
        assert "too little left for the warm start" in answer.note or answer.source == "measured"
        assert session.spent.atoms - spent.atoms < 0.2 * session.total.atoms
        # What the start did not cost can be spent on more gates than were planned: the bars must allow for them all.
        mechanism = session._mechanism
        assert isinstance(mechanism, Online)
        gates = session.total.atoms / mechanism.terms.gate_loss.atoms
        assert mechanism.most_gates == pytest.approx(gates)
        threshold = mechanism.terms.threshold(500)
        told = [a for a in session.ask_many(boxes(40, seed=6)) if a.source == "hypothesis"]
        # A gate's bars have nine tenths of what may go wrong: the rest is for bars that are read off releases.
        sure = replace(mechanism.terms, confidence=split(mechanism.terms.confidence).others)
        assert told[0].bars[-1].width == pytest.approx(sure.shown(threshold, gates), abs=1)
        assert mechanism.terms.shown(threshold, gates) > mechanism.terms.shown(threshold) + 1


def test_a_start_that_was_bought_leaves_as_many_gates_as_planned(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.ask_many(boxes(1, seed=4))
        mechanism = session._mechanism
        assert isinstance(mechanism, Online)
        assert mechanism.most_gates == pytest.approx(5 / GATE_SHARE, rel=0.01)


def test_auto_is_the_plan(tmp_path: Path) -> None:
    with start(tmp_path, mechanism="auto", warm=None, hits=None, questions=None) as session:
        assert session.choice.mechanism == "iterative"
        assert (
            session.choice.reason == tacit.plan(rows=N, domain=DOMAIN, budget=session.budget, questions=10_000).reason
        )
        queries = boxes(300, seed=5)
        found = errors(session, queries, session.ask_many(queries))
        assert found.mean() < 0.004


@pytest.mark.parametrize("warm", [1, -0.1, True, "half"])
def test_a_share_is_a_share(tmp_path: Path, warm: Any) -> None:
    with pytest.raises(ConfigError, match="warm"):
        start(tmp_path, warm=warm)
