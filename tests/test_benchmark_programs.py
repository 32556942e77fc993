"""The accuracy benchmark's own programs: analysts ask what they should, and formulas say what simulations show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from benchmarks.accuracy import needed, ways
from benchmarks.accuracy.analysts import conjunctions, drill_down, query_of, stream
from benchmarks.accuracy.fresh import opendp_rho
from benchmarks.accuracy.noisy_tables import equality_variances, every, question_variances, released, size
from benchmarks.accuracy.rows import Row, picture
from benchmarks.accuracy.tables import MILD, Table, codes, made_up
from numpy.typing import NDArray

import tacit
from tacit.exact.bounds import rho_from
from tacit.load.source import open_source
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.cells import read_records

DOMAIN = Domain(
    {
        "a": tacit.integer(0, 9, width=2),
        "b": tacit.integer(0, 3),
        "c": tacit.category(["x", "y", "z"]),
        "d": tacit.integer(0, 1),
    }
)
ROWS = 3_000


@pytest.fixture(scope="module")
def table() -> Table:
    data = made_up(DOMAIN, ROWS, seed=5)
    return Table("made-up", data, read_records(open_source(data), DOMAIN))


def truthful(table: Table) -> Callable[[Sequence[Query]], NDArray[np.float64]]:
    return lambda queries: np.array([table.records.answer(query) for query in queries], dtype=np.float64)


def test_made_up_rows_and_their_codes(table: Table) -> None:
    columns = codes(table.records)
    assert {len(column) for column in columns.values()} == {ROWS}
    for name, column in columns.items():
        assert np.array_equal(np.bincount(column, minlength=DOMAIN[name].size), table.records.table([name]))


def test_random_conjunctions_are_valid_and_asked_in_order(table: Table) -> None:
    queries = conjunctions(DOMAIN, 2_500, np.random.default_rng(3))
    assert all(query.fits(DOMAIN) and not query.is_constant and len(query.scope) <= 3 for query in queries)
    asked = stream(queries)(truthful(table))
    assert asked.queries == queries
    assert asked.errors(table.records.answer, ROWS).max() == 0


def test_the_drill_down_asks_distinct_valid_questions_and_goes_deep(table: Table) -> None:
    asked = drill_down(DOMAIN, ROWS, questions=150)(truthful(table))
    assert len(asked.queries) == len(asked.answers) == 150
    cells = {(query.key, query.complement) for query in asked.queries}
    assert len(cells) == 150
    assert all(query.fits(DOMAIN) and not query.is_constant for query in asked.queries)
    depths = [len(query.scope) for query in asked.queries]
    assert set(depths[: sum(DOMAIN.shape)]) == {1}
    assert max(depths) == 3
    assert asked.errors(table.records.answer, ROWS).max() == 0  # answers stay beside their questions


def test_the_drill_down_follows_the_surprise() -> None:
    """Independent attributes but for one cell: that cell is refined before all other pairs of its kind."""
    counts = np.full((3, 3, 4), 100.0)
    counts[1, 2] *= 5
    domain = Domain({"u": tacit.integer(0, 2), "v": tacit.integer(0, 2), "w": tacit.integer(0, 3)})
    rows = int(counts.sum())

    def ask(queries: Sequence[Query]) -> NDArray[np.float64]:
        return np.array([float((query.table(("u", "v", "w"), (3, 3, 4)) * counts).sum()) for query in queries])

    asked = drill_down(domain, rows, questions=100)(ask)
    threes = [query for query in asked.queries if len(query.scope) == 3]
    planted = query_of(domain, ((0, 1), (1, 2)))
    first = threes[0].table(("u", "v", "w"), (3, 3, 4)) * (1 - planted.table(("u", "v", "w"), (3, 3, 4)))
    assert first.sum() == 0  # it lies within the planted cell
    shuffled = drill_down(domain, rows, questions=100)(lambda queries: np.zeros(len(queries)))
    assert [q.key for q in shuffled.queries] != [q.key for q in asked.queries]  # it does react


def test_the_drill_down_ends_when_there_is_nothing_left(table: Table) -> None:
    asked = drill_down(DOMAIN, ROWS, questions=10_000, deepest=2)(truthful(table))
    pairs = sum(size(DOMAIN, scope) for scope in every(DOMAIN, 2))
    assert len(asked.queries) == sum(DOMAIN.shape) + pairs


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_what_fresh_noise_needs_is_what_a_simulation_shows(law: str) -> None:
    """8,000 sessions of 50 questions at beta = 0.1, with a seed."""
    k, within, beta, sessions = 50, 200.0, 0.1, 8_000
    rng = np.random.Generator(np.random.PCG64(7))

    def missed(epsilon: float) -> float:
        if law == "laplace":
            noise = np.abs(rng.geometric(-math.expm1(-epsilon / k), (2, sessions, k)).astype(np.int64))
            drawn = np.abs(noise[0] - noise[1])
        else:
            drawn = np.abs(np.rint(rng.normal(scale=math.sqrt(k / (2 * rho_from(epsilon, 1e-9))), size=(sessions, k))))
        return float((drawn > within).any(axis=1).mean())

    formula = needed.laplace_epsilon if law == "laplace" else needed.gaussian_epsilon
    epsilon, spread = formula(k, within, beta), math.sqrt(beta * (1 - beta) / sessions)
    assert abs(missed(epsilon) - beta) < 5.5 * spread
    assert missed(0.9 * epsilon) > beta + 5.5 * spread  # a control: a tenth less is not enough
    most = needed.laplace_questions if law == "laplace" else needed.gaussian_questions
    assert most(epsilon * (1 + 1e-5), within, beta) == k


def test_variances_of_released_tables_are_what_a_simulation_shows(table: Table) -> None:
    """300 releases: a sample variance is within a factor of 1.6, which is 7 standard deviations."""
    scopes = every(DOMAIN, 3)
    queries = conjunctions(DOMAIN, 12, np.random.default_rng(4))
    truth = truthful(table)(queries)
    errors = np.array([released(table.records, 3, MILD).ask(queries) - truth for _ in range(300)])
    foretold = question_variances(DOMAIN, scopes, queries) / rho_from(MILD.epsilon, MILD.delta)
    ratios = (errors**2).mean(axis=0) / foretold
    assert ((ratios > 1 / 1.6) & (ratios < 1.6)).all()
    wrong = question_variances(DOMAIN, every(DOMAIN, 4), queries) / rho_from(MILD.epsilon, MILD.delta)
    assert (abs(np.log((errors**2).mean(axis=0) / wrong)) > math.log(1.6)).any()  # a control


def test_the_union_over_sums_is_safe_and_counts_in_order() -> None:
    variances = np.array([1.0, 4.0, 100.0])
    epsilon = needed.sums_epsilon(variances, 50.0, 0.01)
    rho = rho_from(epsilon, 1e-9)
    rng = np.random.Generator(np.random.PCG64(8))
    missed = (np.abs(rng.normal(size=(400_000, 3)) * np.sqrt(variances / rho)) > 50).any(axis=1).mean()
    assert missed < 0.01 + 5.5 * math.sqrt(0.01 / 400_000)
    assert missed > 0.008  # the union is nearly tight here
    assert needed.sums_questions(variances, epsilon * 1.0001, 50.0, 0.01) == 3
    assert needed.sums_questions(variances, epsilon / 3, 50.0, 0.01) == 2
    assert equality_variances(DOMAIN, every(DOMAIN, 3)).size == sum(
        size(DOMAIN, scope) for attributes in (1, 2, 3) for scope in every(DOMAIN, attributes)
    )


def test_promises_and_trials() -> None:
    gate = needed.gate_epsilon(50, 1_000, 500.0, 0.001)
    assert gate is not None
    assert needed.gate_epsilon(50, 1_000, 1_000.0, 0.001) < gate
    planned = needed.planned_epsilon(DOMAIN, ROWS, 1_000, 300.0, 0.001)
    assert planned is not None
    promise = tacit.plan(
        rows=ROWS, domain=DOMAIN, budget=Budget(epsilon=planned, delta=1e-9), questions=1_000, confidence=0.999
    ).expected.promised
    assert promise is not None
    assert promise * ROWS <= 300
    tried = needed.tried_epsilon(lambda epsilon: 3 / epsilon, 5.0, low=0.1, high=8.0, steps=12)
    assert tried == pytest.approx(0.6, rel=0.01)
    assert needed.tried_epsilon(lambda epsilon: 99.0, 5.0, low=0.1, high=8.0, steps=3) == math.inf


def test_opendp_and_tacit_turn_a_budget_into_the_same_rho() -> None:
    assert opendp_rho(1.0, 1e-9) == pytest.approx(rho_from(1.0, 1e-9), rel=1e-6)


@pytest.mark.parametrize("way", [way for way in ways.WAYS if way is not ways.MEDIAN], ids=lambda way: way.name)
def test_every_way_answers_both_analysts(table: Table, way: ways.Way) -> None:
    budget = Budget(epsilon=5.0, delta=0.0 if way is ways.LAPLACE else 1e-9)
    queries = conjunctions(DOMAIN, 40, np.random.default_rng(6))
    for analyst in (stream([*queries, ~queries[0]]), drill_down(DOMAIN, ROWS, questions=60)):
        with way.open(table, budget, 100) as opened:
            asked = analyst(opened.ask)
        errors = asked.errors(table.records.answer, ROWS)
        assert errors.shape == (len(asked.queries),)
        assert errors.max() < (0.6 if way is ways.TEXTBOOK else 0.25)
        if len(asked.queries) == 41 and way is not ways.PAIRS:  # a question and its complement are one
            assert asked.answers[0] + asked.answers[-1] == pytest.approx(ROWS, abs=1e-6)


def test_rows_and_their_picture() -> None:
    row = Row("a way")
    row.add(np.array([0.01, 0.02, 0.06, 0.01]), 3, 1.5)
    row.add(np.array([0.01, 0.02, 0.03, 0.01]), 4, 2.5)
    assert row.first_miss == 2
    assert "0.0300–0.0600" in str(row)
    assert "2 (seen)" in str(row)
    assert row.over_runs(np.max) == pytest.approx((0.045, 0.03, 0.06))
    missing = Row("not finished", note="not finished in 600 s")
    assert "600 s" in str(missing)
    assert picture("Errors", [row, missing], "a note").svg().startswith("<svg")
