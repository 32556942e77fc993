"""Both steps against their formulas over all cells, and the drop in relative entropy that their bounds rest on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights

DOMAIN = Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.integer(0, 1)})
CELLS = DOMAIN.size


def weights_of(query: Query) -> NDArray[np.float64]:
    return query.table(DOMAIN.names, DOMAIN.shape) / query.unit


def queries(rng: np.random.Generator) -> list[Query]:
    box = Query.among(DOMAIN, "a", [0, 2]) & Query.among(DOMAIN, "b", [0, 1])
    weighted = Query.weighted(DOMAIN, ["a"], rng.uniform(0, 1, 4)) & Query.among(DOMAIN, "c", [0])
    joint = Query.weighted(DOMAIN, ["b", "c"], rng.uniform(0, 0.3, (3, 2)))
    return [
        box,
        ~box,
        weighted,
        ~weighted,
        joint,
        ~joint,
        Query.among(DOMAIN, "a", [1]) | Query.among(DOMAIN, "c", [1]),
    ]


def relative_entropy(data: NDArray[np.float64], hypothesis: NDArray[np.float64]) -> float:
    seen = data > 0
    return float((data[seen] * np.log(data[seen] / hypothesis[seen])).sum())


@pytest.mark.parametrize("answer", [0.0, 0.2, 0.9])
def test_the_textbook_step_is_its_formula(answer: float) -> None:
    rng = np.random.default_rng(1)
    rule = MultiplicativeWeights(DOMAIN, 0.3, step="textbook")
    for query in queries(rng):
        cells = rng.dirichlet(np.ones(CELLS)).reshape(DOMAIN.shape)
        weights = weights_of(query)
        penalty = weights if answer < float((weights * cells).sum()) else 1 - weights
        expected = cells * np.exp(-0.15 * penalty)
        found = rule.update(Dense(DOMAIN, cells), query, answer).marginal(DOMAIN.names)
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_the_exact_step_agrees_with_the_answer_and_tilts_by_the_query_alone(share: float) -> None:
    rng = np.random.default_rng(2)
    rule = MultiplicativeWeights(DOMAIN, 0.001, tolerance=0.0)
    for query in queries(rng):
        cells = rng.dirichlet(np.ones(CELLS)).reshape(DOMAIN.shape)
        weights = weights_of(query)
        answer = float(weights.min() + share * (weights.max() - weights.min()))
        hypothesis = rule.update(Dense(DOMAIN, cells), query, answer)
        assert hypothesis.answer(query) == pytest.approx(answer, abs=1e-11)
        tilts = np.log(hypothesis.marginal(DOMAIN.names) / cells)
        slope, level = np.polyfit(weights.ravel(), tilts.ravel(), 1)
        np.testing.assert_allclose(tilts, level + slope * weights, atol=1e-7)


def test_the_closed_form_is_the_one_of_log_odds() -> None:
    rule = MultiplicativeWeights(DOMAIN, 0.1, tolerance=0.0)
    query = Query.among(DOMAIN, "a", [3])  # a quarter of the cells
    cells = rule.update(rule.initial(), query, 0.6).marginal(["a"])
    assert cells[3] / cells[0] == pytest.approx((0.6 * 0.75) / (0.25 * 0.4))


@pytest.mark.parametrize("answer", [-0.3, 0.0, 1.0, 1.2])
def test_extreme_answers_rule_out_no_cell(answer: float) -> None:
    rule = MultiplicativeWeights(DOMAIN, 0.1, tolerance=0.0)
    for query in queries(np.random.default_rng(3)):
        cells = rule.update(rule.initial(), query, answer).marginal(DOMAIN.names)
        assert cells.min() > 0
        assert cells.sum() == pytest.approx(1)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    which=st.integers(0, 6),
    alpha=st.sampled_from([0.02, 0.1, 0.3]),
    off=st.floats(-1, 1),
    share=st.sampled_from([1.0, 0.5, 0.1]),
    step=st.sampled_from(["exact", "textbook"]),
)
def test_each_update_lowers_the_relative_entropy_by_what_the_bound_needs(
    seed: int, which: int, alpha: float, off: float, share: float, step: Any
) -> None:
    rng = np.random.default_rng(seed)
    query = queries(rng)[which]
    data = rng.multinomial(5, rng.dirichlet(np.full(CELLS, 0.2))) / 5
    cells = rng.dirichlet(np.full(CELLS, 0.5)) + 1e-9
    cells /= cells.sum()
    weights = weights_of(query).ravel()
    truth, guess = float(weights @ data), float(weights @ cells)
    if abs(truth - guess) < alpha:
        return
    rule = MultiplicativeWeights(DOMAIN, alpha, step=step, tolerance=share * alpha)
    answer = truth + 0.999 * off * rule.tolerance
    found = rule.update(Dense(DOMAIN, cells.reshape(DOMAIN.shape)), query, answer).marginal(DOMAIN.names).ravel()
    drop = relative_entropy(data, cells) - relative_entropy(data, found)
    assert drop >= math.log(CELLS) / rule.max_updates(alpha) - 1e-9


def test_without_the_guard_an_answer_beyond_the_truth_loses() -> None:
    """The data has 5 %, the hypothesis 15 %, the answer is 0: within alpha, but a projection on it does harm."""
    domain = Domain({"a": tacit.integer(0, 19)})
    query = Query.among(domain, "a", [0])
    data = np.full(20, 0.05)
    start = np.array([0.15] + [0.85 / 19] * 19)
    drops = {}
    for tolerance in (0.0, 0.1):
        rule = MultiplicativeWeights(domain, 0.1, tolerance=tolerance)
        found = rule.update(Dense(domain, start), query, 0.0).marginal(["a"])
        drops[tolerance] = relative_entropy(data, start) - relative_entropy(data, found)
    assert drops[0.0] < 0 < 0.1**2 / 2 <= drops[0.1]


def test_bounds() -> None:
    textbook, exact = MultiplicativeWeights(DOMAIN, 0.1, step="textbook"), MultiplicativeWeights(DOMAIN, 0.1)
    assert textbook.max_updates(0.1) == pytest.approx(4 * math.log(24) / 0.01)
    assert textbook.max_updates(0.2) < textbook.max_updates(0.1) < textbook.max_updates(0.06)
    assert textbook.max_updates(0.05) == math.inf
    assert exact.max_updates(0.1) == exact.max_updates(0.3) == pytest.approx(2 * math.log(24) / 0.01)
    assert exact.max_updates(0.09) == math.inf


def test_refitting_brings_past_answers_back_within_their_noise() -> None:
    rng = np.random.default_rng(5)
    data = rng.dirichlet(np.full(CELLS, 0.3))
    asked = [Query.among(DOMAIN, name, [i]) for name in DOMAIN.names for i in range(DOMAIN[name].size)]
    asked += queries(rng)
    past = [(query, float(weights_of(query).ravel() @ data), 0.01) for query in asked]
    rule = MultiplicativeWeights(DOMAIN, 0.05, tolerance=0.01)
    hypothesis = rule.initial()
    for query, answer, _ in past:
        hypothesis = rule.update(hypothesis, query, answer)
    misses = [abs(hypothesis.answer(query) - answer) for query, answer, _ in past]
    assert max(misses) > 0.011
    before = relative_entropy(data, hypothesis.marginal(DOMAIN.names).ravel())
    hypothesis = rule.refit(hypothesis, past, sweeps=100)
    assert max(abs(hypothesis.answer(query) - answer) for query, answer, _ in past) <= 0.01 + 1e-9
    assert relative_entropy(data, hypothesis.marginal(DOMAIN.names).ravel()) < before


def test_refitting_stops_when_nothing_is_spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = MultiplicativeWeights(DOMAIN, 0.1, tolerance=0.0)
    one, other = Query.among(DOMAIN, "a", [0]), Query.among(DOMAIN, "b", [0])
    past = [(one, 0.3, 0.01), (~other, 0.5, 0.0)]
    hypothesis = rule.refit(rule.initial(), past, sweeps=10)
    assert hypothesis.answer(one) == pytest.approx(0.29)  # the nearest end
    assert hypothesis.answer(other) == pytest.approx(0.5)
    cells = hypothesis.marginal(DOMAIN.names)
    monkeypatch.setattr(Dense, "scale", None)
    satisfied = [(query, answer, 0.02) for query, answer, _ in past]
    assert (rule.refit(hypothesis, satisfied, sweeps=5).marginal(DOMAIN.names) == cells).all()


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0}, {"alpha": math.nan}, {"alpha": 0.1, "tolerance": 0.2}, {"alpha": 0.1, "step": "giant"}]
)
def test_what_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"alpha|step"):
        MultiplicativeWeights(DOMAIN, **wrong)
