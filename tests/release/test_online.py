"""The online construction: what is easy is free, what is hard is bought and learned, and the ledger is all it needs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from curators import private_of
from support import once
from tacit.model.ask import Count
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.release.iterative import Weights
from tacit.release.online import OWNER, Online
from tacit.release.online_terms import Terms
from tacit.release.public import Public
from tacit.session import Session
from tacit.trusted import gate as gate_module
from tacit.trusted.curator import Curator
from tacit.trusted.noise import draw_geometric
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth as exact_truth

DOMAIN = tacit.Domain(
    {"a": tacit.integer(0, 5), "b": tacit.category(["x", "y", "z"]), "c": tacit.boolean(), "d": tacit.integer(0, 3)}
)
N = 20_000


def rows(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.choice(6, N, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    b = np.where(rng.random(N) < 0.8, np.array(["x", "y", "z"])[a % 3], "x")
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(N) < a / 8, "d": rng.choice(4, N, p=[0.7, 0.1, 0.1, 0.1])})


ROWS = rows()
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=2.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "iterative",
        "questions": 500,
        "hits": 40,
    }
    return tacit.open(start=True, **(settings | changes))


def conjunctions(count: int, seed: int) -> list[Query]:
    rng = np.random.default_rng(seed)
    made = []
    while len(made) < count:
        names = rng.choice(len(DOMAIN), rng.integers(1, 4), replace=False)
        parts = []
        for name in (DOMAIN.names[i] for i in names):
            size = DOMAIN[name].size
            parts.append(Query.among(DOMAIN, name, rng.choice(size, rng.integers(1, size), replace=False)))
        made.append(Query.all(parts))
    return made


def truth(session: Session, queries: list[Query]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([session._curator._records.answer(query) / query.unit for query in queries])


def online(session: Session) -> Online[Weights]:
    assert isinstance(session._mechanism, Online)
    return session._mechanism


def test_easy_is_free_hard_is_paid_and_all_is_within_the_bar(tmp_path: Path) -> None:
    queries = conjunctions(500, seed=2)
    with start(tmp_path, confidence=1 - 1e-9, hits=120) as session:
        answers = [answer for i in range(0, 500, 50) for answer in session.ask_many(queries[i : i + 50])]
        hard = [answer for answer in answers if answer.source == "measured"]
        assert 0 < len(hard) < 120
        # Whoever finds no gate open pays for one, and that is the first question only: a hard one pays for the next.
        paid = [i for i, answer in enumerate(answers) if answer.cost.atoms and answer.source != "measured"]
        assert paid in ([], [0])
        assert sum(answer.cost.atoms for answer in answers) == session.spent.atoms
        assert sum(past.cost.atoms for past in session.history) == session.spent.atoms
        for answer, exact in zip(answers, truth(session, queries), strict=True):
            assert abs(answer.value - exact) <= answer.bars[-1].width  # all at once
        # It learned: fresh questions are mostly easy now, and their answers better than the bar promises.
        fresh = conjunctions(300, seed=3)
        answers = session.ask_many(fresh)
        errors = np.abs([a.value for a in answers] - truth(session, fresh)) / N
        assert sum(answer.source == "measured" for answer in answers) < 20  # some of them perfect guesses: false hits
        assert errors.mean() < 0.02


def check_the_ledger_is_all_it_needs(folder: Path) -> None:
    queries = conjunctions(120, seed=4)
    with start(folder) as session:
        before = session.ask_many(queries)
        hypothesis = online(session).knowledge.hypothesis.answer_many(queries)
        left, hits_left = session.left, online(session).hits_left
        gate = session._curator.resume_gate(owner=OWNER)
        noise = gate and private_of(session._ledger.log, gate._intent)
    with start(folder) as session:
        after = session.ask_many(queries)
        online(session)._catch_up(buy=True)
        assert (online(session).knowledge.hypothesis.answer_many(queries) == hypothesis).all()
        assert [a.value for a in after] == [a.value for a in before]
        assert {a.source for a in after} == {"repeat"}
        assert (session.left, online(session).hits_left) == (left, hits_left)
        resumed = session._curator.resume_gate(owner=OWNER)
        assert noise == (resumed and private_of(session._ledger.log, resumed._intent))


def test_the_ledger_is_all_it_needs(tmp_path: Path) -> None:
    check_the_ledger_is_all_it_needs(tmp_path)


def test_planted_update_driven_by_the_true_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An update that looks at the data leaves a hypothesis that the released answers do not give again.
    measure, secret = Curator.measure, list[Records]()

    def leaky(self: Curator, *given: Any) -> Any:
        secret.append(self._records)
        measured = measure(self, *given)
        for one in measured:
            one.values[:] = exact_truth(one.question, self._records)
        return measured

    since = Public.since
    live = {"on": True}

    def leaky_since(self: Public, after: int) -> Any:
        head, news = since(self, after)
        measured = list(news)
        for one in measured:
            if live["on"]:
                one.values[:] = exact_truth(one.question, secret[-1])
        live["on"] = head.seq < 200 and live["on"]
        return head, measured

    monkeypatch.setattr(Curator, "measure", leaky)
    monkeypatch.setattr(Public, "since", leaky_since)
    opened = []
    real = Online.__init__

    def second_life_is_honest(self: Online[Weights], *arguments: Any, **named: Any) -> None:
        opened.append(self)
        live["on"] = len(opened) == 1
        real(self, *arguments, **named)

    monkeypatch.setattr(Online, "__init__", second_life_is_honest)
    with pytest.raises(AssertionError):
        check_the_ledger_is_all_it_needs(tmp_path)


def test_planted_counter_reset_at_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives: list[Any] = []
    real, left = Online.__init__, Public.left

    def born(self: Online[Weights], *arguments: Any, **named: Any) -> None:
        lives.append(self)
        real(self, *arguments, **named)

    def forgetful(self: Public) -> Loss:
        return left.fget(self) if len(lives) < 2 else self.total  # type: ignore[attr-defined, no-any-return]

    monkeypatch.setattr(Online, "__init__", born)
    monkeypatch.setattr(Public, "left", property(forgetful))
    with pytest.raises(AssertionError):
        check_the_ledger_is_all_it_needs(tmp_path)


def check_the_answer_has_noise_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison's noise must say nothing about the answer's: their draws are different calls."""
    from tacit.trusted import curator as curator_module

    drawn: list[Any] = []
    added: list[Any] = []
    real = curator_module.add_noise

    def draw(scale: float, size: int) -> Any:
        drawn.append(draw_geometric(scale, size))
        return drawn[-1]

    def add(values: Any, noise: Any) -> Any:
        added.append(real(values, noise) - values)
        return values + added[-1]

    monkeypatch.setattr(gate_module, "draw_geometric", draw)
    monkeypatch.setattr(curator_module, "add_noise", add)
    with start(folder) as session:
        answers = session.ask_many(conjunctions(60, seed=5))
        hard = [answer for answer in answers if answer.source == "measured"]
        assert hard
        assert len(added) == len(hard)


def test_a_hard_answer_has_noise_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_the_answer_has_noise_of_its_own(tmp_path, monkeypatch)


def test_planted_comparison_noise_reused_as_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Curator._measure

    def reuse(self: Curator, *arguments: Any, **named: Any) -> Any:
        from tacit.trusted import curator as curator_module

        monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)
        return measure(self, *arguments, **named)

    monkeypatch.setattr(Curator, "_measure", reuse)
    with pytest.raises(AssertionError):
        check_the_answer_has_noise_of_its_own(tmp_path, monkeypatch)


def test_after_the_last_hard_answer_it_goes_on_and_says_so(tmp_path: Path) -> None:
    with start(tmp_path, hits=2) as session:
        answers = session.ask_many(conjunctions(200, seed=6))
        assert sum(answer.source == "measured" for answer in answers) == 2
        ended = [answer for answer in answers if answer.error is None]
        assert ended
        assert all("guarantee has ended" in answer.note for answer in ended)
        assert "nothing is promised" in str(ended[0])
        assert {answer.says for answer in ended} == {"nothing"}
        assert str(ended[0]).endswith("says nothing")
        assert "guarantee has ended" in ended[0].to_dict()["note"]
        assert session.cost_at_most(tacit.count(a=(0, 3), d=1)).atoms == 0
    with start(tmp_path, hits=2, halt=True) as session, pytest.raises(tacit.BudgetExhausted, match="halts"):
        session.ask(tacit.count(a=(1, 2), b="z", d=2))


def test_a_dry_run_of_a_session_that_has_halted_says_what_it_refuses(tmp_path: Path) -> None:
    questions = conjunctions(200, seed=6)
    with start(tmp_path, hits=2, halt=True) as session:
        assert "refused" not in session.dry_run(questions[0]).why
        with pytest.raises(tacit.BudgetExhausted):
            session.ask_many(questions)
        spent = session.spent
        table = "SELECT b, d, COUNT(*) FROM data WHERE a IN (1, 4) GROUP BY b, d"
        for asked in (questions[-1], table):
            found = session.dry_run(asked)
            assert (found.known, found.why) == (
                False,
                "all 2 hard answers are used, and this session halts then: it is refused",
            )
            assert not found.cost_at_most <= session.left
            assert not str(found).startswith("free")
            with pytest.raises(tacit.BudgetExhausted, match="Nothing was spent"):
                session.ask(asked)
        assert session.dry_run(questions[0]).known
        assert "halts" not in session.dry_run("SELECT MEDIAN(a) FROM data").why  # it is bought by itself
        assert session.spent == spent


def test_a_crash_between_hit_and_answer_costs_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Curator, *arguments: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    with start(tmp_path, hits=2) as session:
        with monkeypatch.context() as patch:
            patch.setattr(Curator, "_measure", crash)
            with pytest.raises(KeyboardInterrupt):
                session.ask_many(conjunctions(100, seed=7))
        assert session.spent == online(session).terms.gate_loss
        answers = session.ask_many(conjunctions(100, seed=7))
        assert sum(answer.source == "measured" for answer in answers) <= 2
        assert session.left.atoms >= 0


def test_complements_tables_and_constants(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        some, rest = session.ask_many([tacit.count(a=0), ~tacit.count(a=0)])
        assert some.value + rest.value == N
        assert rest.cost.atoms == 0
        table = session.table("b", "c")
        again = session.table("c", "b")
        assert again.source == "repeat"
        assert again.values.T.tolist() == table.values.tolist()
        cell = session.ask(tacit.count(b="y", c=True))
        assert isinstance(cell, tacit.Answer)
        assert cell.value == table.values[1, 1]
        where = session.table("b", where=tacit.count(b=["x", "y"]))
        assert where.values[2] == 0


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_the_bar_holds_in_nearly_all_sessions(tmp_path: Path, delta: float) -> None:
    # Confidence 0.8 over whole sessions of 80 questions: of 16 sessions at least 7 hold.
    kept = 0
    queries = conjunctions(80, seed=8)
    for i in range(16):
        folder = tmp_path / str(i)
        folder.mkdir()
        budget = tacit.Budget(epsilon=3.0, delta=delta)
        with start(folder, confidence=0.8, budget=budget, hits=8, questions=80) as session:
            answers = session.ask_many(queries)
            exact = truth(session, queries)
            pairs = zip(answers, exact, strict=True)
            easy = [(a, t) for a, t in pairs if a.source == "hypothesis" and a.bars]
            kept += all(abs(a.value - t) <= a.bars[-1].width for a, t in easy)
    assert kept >= 7


def test_terms_follow_the_stated_formulas() -> None:
    terms = Terms.of(Loss.of("epsilon", 1.0), hits=10, confidence=0.95)
    assert terms.gate_loss == Loss.of("epsilon", 0.08)
    assert terms.answer_loss == Loss.of("epsilon", 0.02)
    s1, s2 = terms.threshold_scale, terms.comparison_scale
    assert (s1, s2) == pytest.approx((2.5874 / 0.08, 2 * 1.62996 / 0.08), rel=1e-4)
    threshold = terms.threshold(1000)
    assert threshold == pytest.approx(s2 * (math.log(1000) - 1) + s1)
    assert terms.shown(threshold) == pytest.approx(threshold + s2 + s1 * (math.log(12.5 / 0.05) - 1))
    # One perfect guess passes with probability at most 1/1000: exp(-(T + s2 - s1)/s2).
    assert math.exp(-(threshold + s2 - s1) / s2) == pytest.approx(1e-3)


def test_the_guessed_number_of_questions_doubles_when_it_is_passed(tmp_path: Path) -> None:
    # Catches a threshold that stays where the first guess put it: every gate stands as if the questions so far, rounded
    # up to the guess times a power of two, were all there would be.
    queries = conjunctions(200, seed=9)
    with start(tmp_path, questions=8, hits=60) as session:
        for i in range(0, 200, 20):
            session.ask_many(queries[i : i + 20])
        terms, seen = online(session).terms, set()
        for entry in session._ledger.log.lines(kinds=["intent"]):
            purpose = json.loads(entry.body)["purpose"]
            if isinstance(purpose, dict):
                guessed = 8 * 2 ** math.ceil(math.log2(max(1.0, (entry.seq - 1) / 8)))
                assert purpose["threshold"] == terms.threshold(guessed)
                seen.add(guessed)
    assert len(seen) > 2


def test_a_gate_that_another_process_died_with_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noises = iter([2**45, 0, 2**45, 0])  # of a threshold that nothing passes, and of one comparison; twice
    monkeypatch.setattr(gate_module, "draw_geometric", lambda scale, size: np.full(size, next(noises)))
    first, second = conjunctions(2, seed=7)
    with start(tmp_path) as session:
        session.answer(Count(first))
        mine = online(session)._open
        assert mine is not None  # it need not be looked for again
        spent = session.spent.atoms
        assert session._ledger.take_private(mine._intent) is not None  # as a process does that dies right after it
        answer = session.answer(Count(second))
        assert answer.source == "hypothesis"
        assert session.spent.atoms == spent + mine.terms.atoms  # for a new gate
        assert online(session)._open is not mine


def test_who_may_pay_for_an_answer_and_not_for_the_next_gate_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an analyst whose quota ends there."""
    with start(tmp_path, hits=5) as session:
        first, second, third = conjunctions(3, seed=7)
        monkeypatch.setattr(gate_module, "first_passing", lambda *compared: None)
        assert session.ask(first).cost == online(session).terms.gate_loss
        monkeypatch.setattr(gate_module, "first_passing", lambda *compared: 0)
        with session.spending(online(session).terms.answer_loss):
            found = session.ask(second)
        assert (found.source, found.cost <= online(session).terms.answer_loss) == ("measured", True)
        assert session._public.has_gate(OWNER) is False
        before = session.spent
        monkeypatch.setattr(gate_module, "first_passing", lambda *compared: None)
        assert session.ask(third).cost.atoms == session.spent.atoms - before.atoms > 0
