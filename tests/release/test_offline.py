"""The offline construction: it finds what is wrong, learns it, stops when nothing is, and can be replayed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from curators import public_of
from support import once
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, marginal
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.offline import Constructed, guess, plan
from tacit.release.rules import RULES, NamedRule, rule_of
from tacit.release.rules.median_net import MedianNet
from tacit.session import Session
from tacit.theory import lecture_8, lecture_12
from tacit.trusted.records import Records

DOMAIN = tacit.Domain(
    {"a": tacit.integer(0, 5), "b": tacit.category(["x", "y", "z"]), "c": tacit.boolean(), "d": tacit.integer(0, 3)}
)
N = 20_000
PAIRS = [[p, q] for i, p in enumerate(DOMAIN.names) for q in DOMAIN.names[i + 1 :]]
THRESHOLDS = [tacit.count(a=(0, i)) for i in range(5)] + [tacit.count(b=b, c=c) for b in "xyz" for c in (True, False)]


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    a = rng.choice(6, N, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    b = np.where(rng.random(N) < 0.8, np.array(["x", "y", "z"])[a % 3], "x")
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(N) < a / 8, "d": rng.choice(4, N, p=[0.7, 0.1, 0.1, 0.1])})


SOURCE = once(rows())


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=2.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "direct",
        "questions": 10,
    }
    return tacit.open(**(settings | changes))


def worst(session: Session, built: Any, workload: list[Any]) -> float:
    records = session._curator._records
    errors = []
    for item in workload:
        if isinstance(item, list):
            names = tuple(sorted(item))
            now = built.hypothesis.marginal(names)
            errors.append(float(np.abs(now - records.table(names) / N).max()))
        else:
            query = item.bind(DOMAIN)
            errors.append(abs(built.hypothesis.answer(query) - records.answer(query) / N))
    return max(errors)


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_queries_are_learned_until_nothing_is_wrong(tmp_path: Path, distinguisher: Any, delta: float) -> None:
    with start(tmp_path, budget=tacit.Budget(epsilon=8.0, delta=delta)) as session:
        assert worst(session, Constructed(Dense(DOMAIN)), THRESHOLDS) > 0.2
        built = session.release(THRESHOLDS, rounds=30, share=0.9, alpha=0.05, distinguisher=distinguisher)
        assert built.accurate
        assert 1 < len(built.steps) <= 30
        assert worst(session, built, THRESHOLDS) <= 0.05


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
def test_a_candidate_bought_before_with_more_noise_is_not_called_accurate(tmp_path: Path, distinguisher: Any) -> None:
    # What was bought stays as it was bought; a later, richer construction must not take it for the truth.
    with start(tmp_path, budget=tacit.Budget(epsilon=8.0, delta=0.0)) as session:
        session.release(THRESHOLDS[:1], rounds=1, share=0.0002, alpha=0.001)
        built = session.release(THRESHOLDS[:1], rounds=10, share=0.9, alpha=0.05, distinguisher=distinguisher)
        assert not built.accurate or worst(session, built, THRESHOLDS[:1]) <= 0.05


def test_whole_tables_are_candidates(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        built = session.release(PAIRS, rounds=8, share=0.9, alpha=0.02)
        assert worst(session, built, PAIRS) <= 0.02
        spent = session.spent
        # What it learned reaches beyond the tables: an interaction of three attributes through their pairs.
        query = tacit.count(a=(0, 1), b="x", d=0).bind(DOMAIN)
        assert abs(built.hypothesis.answer(query) - session._curator._records.answer(query) / N) < 0.05
    assert spent.atoms <= 0.9 * session_total(tmp_path).atoms


def session_total(folder: Path) -> tacit.Loss:
    with start(folder) as session:
        return session.total


@pytest.mark.parametrize(("workload", "distinguisher"), [(PAIRS, "exponential"), (THRESHOLDS, "sparse")])
def test_a_restart_rebuilds_the_same_hypothesis_for_nothing(tmp_path: Path, workload: Any, distinguisher: Any) -> None:
    with start(tmp_path) as session:
        built = session.release(workload, rounds=5, share=0.5, alpha=0.01, distinguisher=distinguisher)
        spent, steps = session.spent, built.steps
        answers = built.hypothesis.marginal(DOMAIN.names)
    with start(tmp_path) as session:
        again = session.release(workload, rounds=5, share=0.5, alpha=0.01, distinguisher=distinguisher)
        assert session.spent == spent
        assert again.steps == steps
        assert (again.hypothesis.marginal(DOMAIN.names) == answers).all()


def test_a_table_of_some_rows_is_learned_cell_by_cell(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        from tacit.release.offline import construct
        from tacit.release.rules.multiplicative_weights import MultiplicativeWeights

        some = marginal(DOMAIN, "b", where=Query.among(DOMAIN, "a", [0, 1]))
        rule = MultiplicativeWeights(DOMAIN, 0.01, tolerance=0.005)
        built = construct(session._public, session._curator, [some], rule, rounds=2, loss=session.total, alpha=0.01)
        exact = session._curator._records.table(some.names, some.where) / N
        assert np.abs(guess(built.hypothesis, some) - exact).max() < 0.01


@pytest.mark.parametrize(
    "arguments",
    [
        {"workload": []},
        {"workload": "SELECT COUNT(*) FROM data"},
        {"workload": [["nothing"]]},
        {"workload": [tacit.count(a=77)]},
        {"workload": [42]},
        {"rounds": 0},
        {"rounds": 1.5},
        {"share": 0},
        {"share": 1.5},
        {"share": float("nan")},
        {"alpha": 0.0},
        {"alpha": 2.0},
        {"workload": PAIRS, "distinguisher": "sparse"},
    ],
)
def test_bad_releases_cost_nothing(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with start(tmp_path) as session:
        with pytest.raises(tacit.InvalidQuery):
            session.release(**({"workload": THRESHOLDS, "rounds": 2, "share": 0.5, "alpha": 0.1} | arguments))
        assert session.spent.atoms == 0


def test_a_choice_is_kept_under_its_question(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        curator = session._curator
        queries = [query.bind(DOMAIN) for query in THRESHOLDS]
        loss = session.total.split(10)
        chosen = curator.select_worst(queries, [0.0] * len(queries), loss)
        spent = session.spent
        assert curator.select_worst(queries, [0.0] * len(queries), loss).index == chosen.index
        assert session.spent == spent == chosen.cost
        assert chosen.index == 4  # a <= 4 holds for nearly everyone
        for bad in ([0.0], [float("nan")] * len(queries), ["x"] * len(queries)):
            with pytest.raises((tacit.InvalidQuery, ValueError)):
                curator.select_worst(queries, bad, loss)
        assert session.spent == spent


# The net has steps of 1/12, and the sparse distinguisher goes on until nothing is off by half of alpha.
@pytest.mark.parametrize(("distinguisher", "alpha"), [("exponential", 0.1), ("sparse", 0.25)])
def test_the_median_over_a_net_is_an_update_rule_too(tmp_path: Path, distinguisher: Any, alpha: float) -> None:
    from tacit.release.offline import construct

    small = tacit.Domain({"b": tacit.category(["x", "y", "z"]), "c": tacit.boolean()})
    queries = [tacit.count(b=b, c=c).bind(small) for b in "xyz" for c in (True, False)]
    queries += [tacit.count(b=b).bind(small) for b in "xyz"]
    rule = MedianNet.databases(small, 12)
    with start(tmp_path, domain=small, budget=tacit.Budget(epsilon=8.0, delta=0.0)) as session:
        curator = session._curator
        built = construct(
            session._public,
            curator,
            queries,
            rule,
            rounds=20,
            loss=session.total,
            alpha=alpha,
            distinguisher=distinguisher,
        )
        assert built.accurate
        assert len(built.steps) <= rule.max_updates(alpha) + 1
        errors = [abs(built.hypothesis.answer(query) - curator._records.answer(query) / N) for query in queries]
        assert max(errors) <= alpha
        with pytest.raises(tacit.InvalidQuery):
            construct(
                public_of(curator), curator, [marginal(small, "b")], rule, rounds=1, loss=session.total, alpha=0.1
            )


class Halfway:
    """A rule of one's own: a listed distribution that goes half of the way to each answer. This is all it takes."""

    def __init__(self, domain: tacit.Domain, alpha: float) -> None:
        self._domain = domain

    def initial(self) -> Listed:
        return Listed(self._domain, np.full(self._domain.size, 1 / self._domain.size))

    def update(self, hypothesis: Listed, query: Query, answer: float) -> Listed:
        weights, guess = hypothesis.weights(query), hypothesis.answer(query)
        wanted = (guess + answer) / 2
        cells = hypothesis.cells * (weights * wanted / guess + (1 - weights) * (1 - wanted) / (1 - guess))
        return Listed(self._domain, cells / cells.sum())

    def max_updates(self, alpha: float) -> float:
        return 8 * np.log(self._domain.size) / alpha**2


@dataclass(frozen=True, eq=False)
class Listed:
    domain: tacit.Domain
    cells: Any

    def weights(self, query: Query) -> Any:
        return query.table(self.domain.names, self.domain.shape).ravel() / query.unit

    def answer(self, query: Query) -> float:
        return float(self.weights(query) @ self.cells)


def test_a_rule_of_ones_own_is_one_line_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "halfway", NamedRule(lambda domain, alpha, _: Halfway(domain, alpha)))
    asked: dict[str, Any] = {"rounds": 12, "share": 0.9, "alpha": 0.1, "rule": "halfway"}
    with start(tmp_path, budget=tacit.Budget(epsilon=8.0, delta=1e-9)) as session:
        built = session.release(THRESHOLDS, **asked)
        assert isinstance(built.hypothesis, Listed)
        assert worst(session, built, THRESHOLDS) < worst(
            session, Constructed(Halfway(DOMAIN, 0.1).initial()), THRESHOLDS
        )
        spent = session.spent
        again = session.release(THRESHOLDS, **asked)
        assert (again.hypothesis.cells == built.hypothesis.cells).all()
        assert session.spent == spent
        with pytest.raises(tacit.InvalidQuery, match="lists all cells"):
            session.release(PAIRS, **asked)
        with pytest.raises(tacit.InvalidQuery, match="median, halfway, or an update rule, not 'magic'"):
            session.release(THRESHOLDS, **asked | {"rule": "magic"})


class Beliefs:
    """A rule of one's own that learns whatever databases have values for: it doubts those whose value is far off."""

    def __init__(self, domain: tacit.Domain) -> None:
        self._net = MedianNet.databases(domain, 6)

    def initial(self) -> Believed:
        return Believed(self._net, np.full(len(self._net), 1 / len(self._net)))

    def update(self, hypothesis: Believed, query: Query | Statistic, answer: float) -> Believed:
        chances = hypothesis.chances * np.exp(-20 * np.abs(hypothesis.values(query) - answer))
        return Believed(self._net, chances / chances.sum())

    def max_updates(self, alpha: float) -> float:
        return len(self._net)


@dataclass(frozen=True, eq=False)
class Believed:
    net: MedianNet
    chances: Any

    @property
    def domain(self) -> tacit.Domain:
        return self.net.domain

    def values(self, query: Query | Statistic) -> Any:
        return self.net.values(query, np.arange(len(self.net)))

    def answer(self, query: Query) -> float:
        return float(self.values(query) @ self.chances)

    def answer_statistic(self, statistic: Statistic) -> float:
        return float(self.values(statistic) @ self.chances)

    def answer_table(self, table: Marginal) -> Any:
        return np.array([self.answer(query) for query in table.queries(self.domain)])


def test_a_rule_of_ones_own_may_learn_statistics_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "beliefs", NamedRule(lambda domain, *_: Beliefs(domain), statistics=True))
    before, data = Beliefs(SMALL).initial(), pd.DataFrame({"b": "x", "c": np.arange(N) % 2 == 0})
    with start(tmp_path, data=data, domain=SMALL, budget=tacit.Budget(epsilon=20.0)) as session:
        statistic, table = NONLINEAR[0].bind(SMALL), marginal(SMALL, "b")
        records = session._curator._records
        built = session.release(NONLINEAR[:1], alpha=0.05, share=0.3, rule="beliefs")
        truth = records.answer(statistic) / (N * statistic.unit)
        now, then = (one.answer_statistic(statistic) for one in (built.hypothesis, before))
        assert abs(now - truth) < abs(then - truth)
        built = session.release([["b"]], alpha=0.05, share=0.3, rounds=3, rule="beliefs")
        shares, spent = records.table(table.names) / N, session.spent
        now, then = (np.abs(one.answer_table(table) - shares).max() for one in (built.hypothesis, before))
        assert now < then
        with pytest.raises(tacit.InvalidQuery, match='rule="median" or rule="beliefs" learns statistics too'):
            session.release(NONLINEAR, alpha=0.3, share=0.01, rule="textbook_weights")
        assert session.spent == spent


def test_a_rule_says_itself_that_one_serves_every_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[float]()

    def make(domain: tacit.Domain, alpha: float, _: int) -> Halfway:
        made.append(alpha)
        return Halfway(domain, alpha)

    for single, alphas in ((True, [1.0]), (False, [0.1, 0.2])):
        made.clear()
        monkeypatch.setitem(RULES, "halfway", NamedRule(make, for_every_alpha=single))
        of_alpha = rule_of("halfway", DOMAIN, 100)
        assert [of_alpha(alpha) is of_alpha(0.1) for alpha in (0.1, 0.2)] == [True, single]
        assert made == alphas


def test_what_is_left_out_is_planned_as_the_theorem_has_it(tmp_path: Path) -> None:
    # With more candidates than rounds, the plan is lecture 8's own. In rho the budget's epsilon and delta do not
    # matter: the theorem's epsilon is the one whose steps cost the same rho.
    updates = lecture_12.weights_updates(cells=100)
    for measure, amount, delta in (("epsilon", 40.0, 0.0), ("rho", 3.0, 1e-6)):
        budget = dict.fromkeys(("total", "whole", "left"), Loss.of(measure, 90))
        public = SimpleNamespace(rows=10**5, rows_per_person=1, **budget)
        epsilon = amount if measure == "epsilon" else math.sqrt(16 * amount * math.log(1 / delta))
        theirs = lecture_8.offline_plan(
            updates, lecture_8.Task(queries=10**6, beta=0.05, delta=delta), n=10**5, epsilon=epsilon
        )
        loss = Loss.of(measure, amount)
        ours = plan(public, updates, 10**6, measured=10**6, confidence=0.95, loss=loss)  # type: ignore[arg-type]
        assert ours.rounds == pytest.approx(theirs.rounds, rel=0.01)  # ours are whole, and alpha follows
        assert ours.alpha == pytest.approx(theirs.alpha, rel=0.01)
        back = plan(public, updates, 10**6, measured=10**6, confidence=0.95, alpha=ours.alpha)  # type: ignore[arg-type]
        assert float(back.loss) == pytest.approx(amount, rel=0.02)
        assert back.rounds == pytest.approx(ours.rounds, rel=0.01)
    few = plan(public, updates, 8, measured=8, confidence=0.95, loss=loss)  # type: ignore[arg-type]
    assert few.rounds == 8
    with pytest.raises(tacit.InvalidQuery, match="alpha"):
        plan(public, updates, 8, measured=8, confidence=0.95)  # type: ignore[arg-type]
    with pytest.raises(tacit.BudgetExhausted, match="Name a share"):
        plan(public, updates, 8, measured=8, confidence=0.95, alpha=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_what_a_release_learned_answers_later_questions(tmp_path: Path, distinguisher: Any, delta: float) -> None:
    changes: dict[str, Any] = {"budget": tacit.Budget(epsilon=8.0, delta=delta), "confidence": 0.999999999}
    with start(tmp_path, **changes) as session:
        everyone = tacit.count()
        built = session.release([*THRESHOLDS, everyone], share=0.6, distinguisher=distinguisher)
        assert built.note == "left out, as the number of rows tells it: all rows"
        assert built.accurate
        assert built.within is not None
        assert worst(session, built, THRESHOLDS) * N <= built.within
        spent, records = session.spent, session._curator._records
        answers = session.ask_many(THRESHOLDS)
        assert session.spent == spent
        for query, answer in zip(THRESHOLDS, answers, strict=True):
            assert abs(answer.value - records.answer(query.bind(DOMAIN))) <= answer.bars[0].width
        told = [answer for answer in answers if "of one release at once" in answer.bars[0].about.words]
        assert told
        assert {answer.bars[0].width for answer in told} == {math.ceil(built.within)}
        assert session.synthetic(500).distances
    with start(tmp_path, **changes) as session:
        assert [answer.value for answer in session.ask_many(THRESHOLDS)] == [answer.value for answer in answers]
        again = session.release([*THRESHOLDS, everyone], share=0.6, distinguisher=distinguisher)
        assert (again.within, session.spent) == (built.within, spent)
        session.publish(tmp_path / "p.jsonl")
    reading = tacit.read(tmp_path / "p.jsonl")
    assert [answer.to_dict() for answer in reading.ask_many(THRESHOLDS)] == [
        answer.to_dict() for answer in session_answers(tmp_path, changes)
    ]


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
def test_a_bar_is_proved_for_what_is_told(tmp_path: Path, distinguisher: Any) -> None:
    """The median of two databases is the lower one: for a question and for the rest these are not the same database."""
    domain = tacit.Domain({"a": tacit.boolean(), "b": tacit.boolean()})
    n, rest = 100_000, "SELECT COUNT(*) FROM data WHERE NOT (a AND b)"
    with start(
        tmp_path,
        data=pd.DataFrame({"a": [True] * n, "b": [True] * n}),
        domain=domain,
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        mechanism="direct",
        confidence=1 - 1e-9,
    ) as session:
        net = MedianNet(domain, np.array([[2, 0, 0, 0], [0, 0, 0, 2]]))
        built = session.release([rest], alpha=0.5, share=0.5, rounds=3, rule=net, distinguisher=distinguisher)
        assert built.within is not None
        answer = session.ask(rest)
        assert answer.error is not None
        assert abs(answer.value) <= answer.error < n / 2  # the truth is 0


def session_answers(folder: Path, changes: dict[str, Any]) -> list[tacit.Answer]:
    with start(folder, **changes) as session:
        return session.ask_many(THRESHOLDS)


SMALL = tacit.Domain({"b": tacit.category(["x", "y", "z"]), "c": tacit.boolean()})
NONLINEAR = [
    tacit.matching("c", True, False, on="b"),
    tacit.largest_mean("c", by="b", smallest=0.2),
    tacit.count(b="x"),
    tacit.count(b="x", c=True),
    tacit.count(c=False),
]


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_statistics_are_released_offline_with_the_median_rule(tmp_path: Path, distinguisher: Any, delta: float) -> None:
    # The seed's main theorem for nonlinear queries, on a net of all databases of 24 records.
    changes: dict[str, Any] = {"domain": SMALL, "budget": tacit.Budget(epsilon=20.0, delta=delta)}
    with start(tmp_path, **changes, confidence=0.999999999) as session:
        built = session.release(NONLINEAR, alpha=0.3, share=0.9, rule="median", distinguisher=distinguisher)
        assert built.accurate
        assert len(built.steps) <= math.log2(len(built.hypothesis.net)) + 1
        assert built.within is not None
        records, spent = session._curator._records, session.spent
        for asked in NONLINEAR:
            query = asked.bind(SMALL)
            truth = records.answer(query) / query.unit
            assert abs(built.hypothesis.answer(query) * N - truth) <= built.within
            answer = session.ask(asked)
            assert isinstance(answer, tacit.Answer)
            assert abs(answer.value - truth) <= answer.bars[0].width
        assert session.spent == spent
        session.publish(tmp_path / "p.jsonl")
        with pytest.raises(tacit.InvalidQuery, match='rule="median"'):
            session.release(NONLINEAR, alpha=0.3, share=0.01)
        assert session.spent == spent
    tacit.verify(tmp_path / "p.jsonl")


def test_nets_are_all_small_databases_a_list_or_a_sample(tmp_path: Path) -> None:
    with start(tmp_path, domain=SMALL, budget=tacit.Budget(epsilon=20.0)) as session:
        sampled = MedianNet.sampled(SMALL, 40, 3_000, seed=1)
        assert (sampled.counts.sum(axis=1) == 40).all()
        for rule in (sampled, MedianNet.databases(SMALL, 6), MedianNet(SMALL, np.eye(6, dtype=int) * 3 + 1)):
            built = session.release(NONLINEAR, alpha=0.9, share=0.1, rule=rule)
            assert built.hypothesis.net is rule
    assert len(MedianNet.usual(tacit.Domain({"c": tacit.boolean()}), 500)) == 501  # the trivial net: n + 1 databases
    assert int(MedianNet.usual(SMALL, 10**9).counts.sum(axis=1)[0]) == 24


def test_a_net_values_statistics_as_each_database_has_them() -> None:
    domain = tacit.Domain({"b": tacit.category(["x", "y"]), "a": tacit.integer(0, 2), "c": tacit.boolean()})
    net = MedianNet.databases(domain, 3)
    for asked in (tacit.stump("a", predicts="c"), tacit.matching("c", True, False, on="a"), tacit.count(a=1)):
        query = asked.bind(domain)
        values = net.values(query, np.arange(len(net)))
        for place in range(0, len(net), 37):
            counts = net.counts[place]
            cells = np.array(np.unravel_index(np.flatnonzero(counts), domain.shape)).astype(np.uint8)
            records = Records(domain, list(cells), counts[counts > 0].astype(np.int64))
            assert values[place] == records.answer(query) / (3 * query.unit)
