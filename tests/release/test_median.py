"""The median mechanism in use: databases vote, surprises are bought, and the ledger is all that it needs."""

from __future__ import annotations

import math
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
from tacit.model.request import Disagreement, look
from tacit.release import knowledge as knowledge_module
from tacit.release import median as median_module
from tacit.release import samplers
from tacit.release.median import Voters
from tacit.release.online import Online
from tacit.release.online_terms import Terms, farthest
from tacit.release.samplers.databases import Ensemble
from tacit.release.samplers.fractions import Fractions
from tacit.release.settings import MedianSettings
from tacit.session import Session
from tacit.trusted.curator import Curator

DOMAIN = tacit.Domain({"a": tacit.integer(0, 5), "b": tacit.category(["x", "y", "z"]), "c": tacit.boolean()})
N = 20_000


def make_rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    a = rng.choice(6, N, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    b = np.where(rng.random(N) < 0.8, np.array(["x", "y", "z"])[a % 3], "x")
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(N) < a / 8})


ROWS = make_rows()
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=4.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "median",
        "questions": 200,
        "hits": 12,
        "databases": 40,
        "records": 100,
        "warm": 0,
    }
    return tacit.open(**(settings | changes))


def boxes(count: int, seed: int) -> list[Query]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        names = rng.choice(DOMAIN.names, rng.integers(1, 4), replace=False)
        sizes = [DOMAIN[name].size for name in names]
        chosen = [rng.choice(size, rng.integers(1, size), replace=False) for size in sizes]
        made.append(Query.all([Query.among(DOMAIN, name, c) for name, c in zip(names, chosen, strict=True)]))
    return made


def truth(session: Session, queries: list[Query]) -> NDArray[np.float64]:
    return np.array([session._curator._records.answer(query) / query.unit for query in queries])


def voters(session: Session) -> Voters:
    mechanism = session._mechanism
    assert isinstance(mechanism, Online)
    mechanism._catch_up(buy=True)
    assert isinstance(mechanism.knowledge, Voters)
    return mechanism.knowledge


def test_easy_is_free_hard_is_paid_and_all_is_within_the_bar(tmp_path: Path) -> None:
    queries = boxes(150, seed=2)
    with start(tmp_path, confidence=1 - 1e-9, hits=40) as session:
        answers = session.ask_many(queries)
        hard = [answer for answer in answers if answer.source == "measured"]
        assert 0 < len(hard) < 40
        paid = [i for i, answer in enumerate(answers) if answer.cost.atoms and answer.source != "measured"]
        assert paid in ([], [0])  # for the first gate
        assert sum(answer.cost.atoms for answer in answers) == session.spent.atoms
        for answer, exact in zip(answers, truth(session, queries), strict=True):
            assert abs(answer.value - exact) <= answer.bars[-1].width  # all at once
        # Every database agrees with every hard answer, up to the slab's width.
        votes = voters(session).votes
        assert isinstance(votes, Ensemble)
        assert len(votes.slabs) == len(hard)
        assert votes.diagnostics is not None
        assert votes.diagnostics.infeasible == 0


def check_the_ledger_is_all_it_needs(folder: Path, **changes: Any) -> None:
    queries = boxes(40, seed=4)
    with start(folder, **changes) as session:
        before = session.ask_many(queries)
        votes, reach = voters(session).guess(queries).values, voters(session).reach
        made = session.synthetic(50, seed=3)
    with start(folder, **changes) as session:
        after = session.ask_many(queries)
        assert (voters(session).guess(queries).values == votes).all()
        assert voters(session).reach == reach
        assert [a.value for a in after] == [a.value for a in before]
        assert {a.source for a in after} == {"repeat"}
        assert session.synthetic(50, seed=3) == made
        assert session.synthetic(50, seed=4) != made


def test_the_ledger_is_all_it_needs(tmp_path: Path) -> None:
    check_the_ledger_is_all_it_needs(tmp_path)


WARM = {"warm": 0.4, "databases": 30, "records": 500, "start": True}


def test_the_ledger_is_all_it_needs_after_a_warm_start(tmp_path: Path) -> None:
    check_the_ledger_is_all_it_needs(tmp_path, **WARM)


def test_planted_seed_of_the_day_after_a_warm_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    monkeypatch.setattr(Voters, "_seed", lambda self, *words: int(rng.integers(2**62)))
    with pytest.raises(AssertionError):
        check_the_ledger_is_all_it_needs(tmp_path, **WARM)


def test_a_session_that_names_no_start_has_one(tmp_path: Path) -> None:
    with start(tmp_path, warm=None, certify=None, hits=None, databases=20, records=500) as session:
        settings: Any = session.choice.settings
        assert (settings.warm, settings.certify, settings.hits) == (0.7, 0.1, 5)
        stump = tacit.stump("a", predicts="c")
        with pytest.raises(tacit.NotStarted):
            session.ask(stump)
        with pytest.raises(InvalidQuery, match="start the session"):
            session.votes(stump)
        assert session.spent.atoms == 0
        assert 0.79 < session.start().cost.atoms / session.total.atoms <= 0.8
        # Conjunctions are certified, and answered without the databases; these are asked what the base cannot say.
        queries, knowledge = boxes(40, seed=3), session.knowledge
        assert isinstance(knowledge, Voters)
        answers = session.ask_many(queries)
        assert {answer.source for answer in answers} == {"hypothesis"}
        assert knowledge._settled is None
        exact = truth(session, queries)
        assert np.abs(np.array([answer.value for answer in answers]) - exact).max() <= 0.02 * N
        for query, answer in zip(queries, answers, strict=True):
            votes = session.votes(query)
            assert (np.diff(votes) >= 0).all()
            assert abs(np.median(votes) - answer.value) <= 0.01 * N
        first = session.ask(stump)
        assert isinstance(first, tacit.Answer)
        assert first.error is not None
        assert abs(first.value - session._curator._records.answer(stump.bind(DOMAIN))) <= first.error
        assert len(session.synthetic(100).to_dict()["a"]) == 100
    with start(tmp_path, mechanism="auto", warm=None, hits=None, databases=20, records=500) as session:
        assert session.choice.mechanism == "median"
        assert (session.votes(queries[0]) == votes_of(session, queries[0])).all()
    other = tmp_path / "other"
    other.mkdir()
    with start(other, mechanism="direct", warm=None) as session, pytest.raises(InvalidQuery, match="median"):
        session.votes(queries[0])


def votes_of(session: Session, query: Query) -> NDArray[np.float64]:
    return np.sort(voters(session).votes.values(query)) * N


def test_too_little_left_for_a_warm_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge_module, "_LEAST_SHARE", 0.5)
    with start(tmp_path, **WARM) as session:
        loss = tacit.model.budget.Loss(session.total.measure, int(session.total.atoms * 0.7))
        session._curator.measure([Query.among(DOMAIN, "c", [1])], loss)
        session.ask(tacit.stump("a", predicts="c"))
        assert isinstance(voters(session).votes, Ensemble)
        assert "too little left" in voters(session).guess(boxes(1, seed=1)).note


def test_planted_slab_around_the_true_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Databases that follow the truth instead of the released answer are not rebuilt from the ledger.
    real, opened = Voters._restricted, list[Voters]()

    def leaky(self: Voters, settled: Any, measured: Any) -> Any:
        if self not in opened:
            opened.append(self)
        if len(opened) == 1:
            measured.values[0] = secret.answer(measured.question)
        return real(self, settled, measured)

    with start(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path) as session:
        secret = session._curator._records
    monkeypatch.setattr(Voters, "_restricted", leaky)
    with pytest.raises(AssertionError):  # many records, so that the noise is seen after rounding to whole ones
        check_the_ledger_is_all_it_needs(tmp_path, databases=10, records=2000)


def test_planted_seed_of_the_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    monkeypatch.setattr(Voters, "_seed", lambda self, *words: int(rng.integers(2**62)))
    with pytest.raises(AssertionError):
        check_the_ledger_is_all_it_needs(tmp_path)


def test_the_sampling_belongs_to_the_ledger(tmp_path: Path) -> None:
    with start(tmp_path):
        pass
    other = {"databases": 61}, {"records": 201}, {"seed": 1}, {"sampler": "fractions"}, {"mechanism": "iterative"}
    for change in other:
        with pytest.raises(LedgerError):
            start(tmp_path, **change)


@pytest.mark.parametrize(
    "sampling",
    [
        {"databases": 9},
        {"records": 0},
        {"seed": -1},
        {"databases": True},
        {"databases": 10**5, "records": 10**5},
        {"sampler": "dice"},
    ],
)
def test_sampling_that_makes_no_sense_is_refused(tmp_path: Path, sampling: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        start(tmp_path, **sampling)
    assert not (tmp_path / "l.tacit").exists()


def test_the_error_bar_is_what_the_lens_implies() -> None:
    # The worst case for every shown value: half of the databases sit exactly at the bar's end, half at the truth.
    far = Disagreement(np.zeros(1), 800.0)
    for shown in (1.0, 10.0, 100.0, 350.0):
        error = farthest(far, shown)
        assert error is not None
        for end in (0.98 * error - 2, 1.02 * error + 2):
            values = np.array([1000.0] * 5 + [1000.0 + end] * 5)
            lens = look(Disagreement(values[::-1], 800.0), 1000 * 2**20) / 2**20
            assert (lens > shown) == (end > error)
    assert farthest(far, 400.0) is None  # half of them may be anywhere
    assert farthest(far, 1.0) == pytest.approx(3.0, abs=0.02)  # twice what is shown, and one for rounding


def test_a_vote_is_the_lower_median(tmp_path: Path) -> None:
    knowledge = Voters(DOMAIN, N, 100.0, MedianSettings(hits=10, databases=11, records=20))
    query = Query.among(DOMAIN, "c", [1])
    found = knowledge.guess([query])
    (guess,), (lens,) = found.values, found.lenses
    assert isinstance(lens, Disagreement)
    assert sorted(lens.values)[5] == guess
    assert (lens.values == knowledge.votes.values(query) * N).all()


def test_statistics_are_asked_like_counts(tmp_path: Path) -> None:
    with start(tmp_path, hits=8, budget=tacit.Budget(epsilon=8.0, delta=1e-9)) as session:
        stump = tacit.stump("a", predicts="c")
        first = session.ask(stump)
        exact = session._curator._records.answer(stump.bind(DOMAIN))
        assert isinstance(first, tacit.Answer)
        assert first.error is not None
        assert abs(first.value - exact) <= 2 * first.error
        again = session.ask(stump)
        assert isinstance(again, tacit.Answer)
        assert again.value == first.value
        assert again.cost.atoms == 0
        if first.source == "measured":  # the databases now answer it themselves
            values = voters(session).votes.values(stump.bind(DOMAIN)) * N
            assert np.abs(values - first.value).max() <= 0.06 * N
        with pytest.raises(InvalidQuery, match="conditions"):
            session.table("a", where=stump)  # type: ignore[arg-type]
    with start(tmp_path / "x" if (tmp_path / "x").mkdir() is None else tmp_path, mechanism="iterative") as session:
        assert session.ask(stump).source == "measured"  # by itself


def test_stirring_follows_the_ledger_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(median_module, "STIR_EVERY", 3)
    queries = boxes(80, seed=6)
    with start(tmp_path) as session:
        for i in range(0, 80, 10):
            session.ask_many(queries[i : i + 10])
        knowledge = voters(session)
        assert knowledge._stirred > 0
        votes = knowledge.votes.values(queries[0])
        assert knowledge._settled is not None
        assert (votes != knowledge._settled.values(queries[0])).any()
    with start(tmp_path) as session:
        assert (voters(session).votes.values(queries[0]) == votes).all()


def test_contradictory_answers_are_said_to_be(tmp_path: Path) -> None:
    knowledge = Voters(DOMAIN, N, 100.0, MedianSettings(hits=10, databases=20, records=50))
    query = Query.among(DOMAIN, "c", [1])
    assert knowledge.votes.note == ""
    settled = knowledge.votes.restrict(query, 0.2, 0.02, seed=1).restrict(query, 0.8, 0.02, seed=2)
    knowledge._settled, knowledge._stirred_votes = settled, None
    assert "disagree with past answers" in knowledge.votes.note
    assert 0 <= knowledge.guess([query]).values[0] <= N


def test_fractional_databases_vote_too(tmp_path: Path) -> None:
    queries = boxes(60, seed=9)
    with start(tmp_path, sampler="fractions", confidence=1 - 1e-9, hits=30) as session:
        answers = session.ask_many(queries)
        assert {"hypothesis", "measured"} <= {answer.source for answer in answers}
        for answer, exact in zip(answers, truth(session, queries), strict=True):
            assert not answer.bars or abs(answer.value - exact) <= answer.bars[-1].width
        votes = voters(session).votes
        assert isinstance(votes, Fractions)
        guesses = voters(session).guess(queries).values
        assert len(session.synthetic(5).to_dict()["a"]) == 5  # from the answers themselves
        with pytest.raises(
            tacit.BudgetExhausted, match="Nothing was spent"
        ):  # it is bought by itself, and not for free
            session.ask(tacit.stump("a", predicts="c"))
    with start(tmp_path, sampler="fractions", confidence=1 - 1e-9, hits=30) as session:
        assert (voters(session).guess(queries).values == guesses).all()


def test_halting_and_going_on_without_a_guarantee(tmp_path: Path) -> None:
    queries = boxes(80, seed=7)
    with start(tmp_path, hits=2, budget=tacit.Budget(epsilon=2.0, delta=1e-9)) as session:
        answers = session.ask_many(queries)
        assert sum(answer.source == "measured" for answer in answers) == 2
        assert answers[-1].error is None
        assert "guarantee has ended" in answers[-1].note
    with start(tmp_path, hits=2, budget=tacit.Budget(epsilon=2.0, delta=1e-9), halt=True) as session:
        other = boxes(1, seed=8)[0]
        assert "halts then: it is refused" in session.dry_run(other).why
        with pytest.raises(tacit.TacitError, match="halts"):
            session.ask(other)


def test_terms_choose_a_reach_that_leaves_room(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        mechanism: Any = session._mechanism
        terms: Terms = mechanism.terms
        shown = terms.shown(terms.threshold(200) + voters(session).floor)
        error = farthest(Disagreement(np.zeros(1), voters(session).reach), shown)
        assert error is not None
        assert 2 * shown < error < 2.4 * shown
        assert math.isclose(voters(session).reach, 8 * shown)
        assert isinstance(session._curator, Curator)


@pytest.mark.parametrize("sampler", ["databases", "fractions"])
def test_without_numba_it_is_refused_before_there_is_a_ledger(
    sampler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "tacit-dp\[median\]"\. Nothing was spent'):
        start(tmp_path, sampler=sampler)
    assert not (tmp_path / "l.tacit").exists()
    with start(tmp_path, mechanism="direct"):
        pass  # the others do without
    with pytest.raises(ConfigError, match="needs numba"):
        Voters(DOMAIN, N, 1.0, MedianSettings(sampler=sampler))
