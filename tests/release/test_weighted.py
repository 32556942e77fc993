"""Databases that share their records: they follow hard answers, keep past ones, and are spread as they should be."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import InvalidQuery
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.release.samplers import plausible_databases as plausible_module
from tacit.release.samplers import weighted_records as weighted
from tacit.release.samplers.plausible_databases import plausible
from tacit.release.samplers.weighted_records import Weighted
from tacit.release.warm_start import WarmStart, recalled

DOMAIN = tacit.Domain({"a": tacit.integer(0, 7), "b": tacit.category(["x", "y", "z"]), "c": tacit.boolean()})
N = 20_000


def some(databases: int = 30, records: int = 400, seed: int = 1) -> Weighted:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=records) for size in DOMAIN.shape])
    weights = rng.gamma(2.0, size=(databases, records))
    return Weighted(DOMAIN, codes, weights / weights.sum(axis=1, keepdims=True))


def rows(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = np.minimum(rng.geometric(0.3, N) - 1, 7)
    b = np.where(rng.random(N) < 0.6, np.array(["x", "y", "z"])[a % 3], "x")
    return pd.DataFrame({"a": a, "b": b, "c": rng.random(N) < a / 9})


def started(folder: Path) -> tuple[WarmStart, Any]:
    with tacit.open(
        data=rows(),
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=0.5, delta=1e-9),
        ledger=folder / "l.tacit",
        mechanism="median",
        warm=0.8,
        databases=10,
        records=100,
    ) as session:
        session.start()
        found = recalled(session._public)
        assert found is not None
        return found, session._curator._records


def test_values_are_those_of_the_weighted_records(monkeypatch: pytest.MonkeyPatch) -> None:
    databases = some()
    a, c = databases.codes[0], databases.codes[2]
    query = Query.among(DOMAIN, "a", [1, 2, 5]) & Query.among(DOMAIN, "c", [1])
    exact = databases.weights[:, np.isin(a, [1, 2, 5]) & (c == 1)].sum(axis=1)
    assert databases.values(query) == pytest.approx(exact)
    assert databases.values(~query) == pytest.approx(1 - exact)
    monkeypatch.setattr(weighted, "_LISTED", 1)
    assert databases.values(query) == pytest.approx(exact)
    stump = tacit.stump("a", predicts="c").bind(DOMAIN)
    best = [
        min(databases.weights[i, ((a >= cut) != (c == 1)) != flip].sum() for cut in range(9) for flip in (False, True))
        for i in range(len(databases))
    ]
    assert databases.values(stump) == pytest.approx(np.array(best), abs=1e-5)


@pytest.mark.parametrize("weights", [[0, 0, 1, 1, 0, 1, 0, 0], [0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0]])
def test_an_answer_is_learned_and_past_ones_are_kept(weights: list[float]) -> None:
    first = tacit.weigh("a", weights=weights).bind(DOMAIN)
    second = Query.among(DOMAIN, "b", [0]) & Query.among(DOMAIN, "a", [0, 1, 2, 3])
    third = Query.among(DOMAIN, "b", [0])
    databases = some().restrict(first, 0.6, 0.01, seed=1).restrict(second, 0.05, 0.01, seed=2)
    databases = databases.restrict(third, 0.5, 0.02, seed=3)
    for query, centre, width in ((first, 0.6, 0.01), (second, 0.05, 0.01), (third, 0.5, 0.02)):
        assert np.abs(databases.values(query) - centre).max() <= 1.1 * width
    assert databases.outside == 0
    assert databases.weights.sum(axis=1) == pytest.approx(1)
    assert (databases.weights >= 0).all()
    # What they are told with noise they believe with noise: they are not all at the answer itself.
    assert databases.values(third).std() > 0.02 / 10


def test_planted_deaf_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Weighted, "_moved", lambda self, question, targets: self)
    databases = some().restrict(Query.among(DOMAIN, "c", [1]), 0.9, 0.01, seed=1)
    assert databases.outside == len(databases)
    assert "30 of 30 databases disagree" in databases.note


def test_answers_that_contradict_each_other_are_said_to() -> None:
    query = Query.among(DOMAIN, "c", [1])
    assert "disagree" in some().restrict(query, 0.2, 0.01, seed=1).restrict(query, 0.8, 0.01, seed=2).note


def test_a_question_that_no_record_is_about_is_learned_too() -> None:
    databases = some(records=40)
    rare = Query.among(DOMAIN, "a", [3]) & Query.among(DOMAIN, "b", [2]) & Query.among(DOMAIN, "c", [0])
    databases = Weighted(DOMAIN, np.where(databases.codes == 3, 2, databases.codes), databases.weights)
    assert (databases.values(rare) == 0).all()
    after = databases.restrict(rare, 0.3, 0.02, seed=1)
    assert np.abs(after.values(rare) - 0.3).max() <= 0.02 + 1e-6
    most = databases.restrict(~rare, 0.7, 0.02, seed=1)
    assert np.abs(most.values(rare) - 0.3).max() <= 0.02 + 1e-6


def test_a_statistic_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    databases, stump = some(), tacit.stump("a", predicts="c").bind(DOMAIN)
    assert isinstance(stump, Statistic)
    before = databases.values(stump)
    assert before.min() > 0.3
    after = databases.restrict(stump, 0.2, 0.01, seed=1)
    assert np.abs(after.values(stump) - 0.2).max() <= 0.01 + 1e-3
    monkeypatch.setattr(weighted, "_TRIED", 3)
    with pytest.raises(InvalidQuery, match="not learned"):
        databases.restrict(stump, 0.2, 0.01, seed=1)


def test_what_makes_no_sense_is_refused() -> None:
    query = Query.among(DOMAIN, "c", [1])
    for centre, width in ((math.nan, 0.1), (0.5, -1.0), (0.5, math.inf)):
        with pytest.raises(InvalidQuery):
            some().restrict(query, centre, width, seed=1)
    databases = some()
    assert databases.restrict(Query.constant(everyone=True), 1.0, 0.1, seed=1) is databases


def test_databases_are_spread_around_the_fit_as_the_noise_was(tmp_path: Path) -> None:
    found, records = started(tmp_path)
    steps: list[tuple[int, int]] = []
    drawn = plausible(
        found, DOMAIN, N, databases=200, records=4_000, seed=1, progress=lambda done, most: steps.append((done, most))
    )
    assert steps[-1][0] == steps[-1][1]
    again = plausible(found, DOMAIN, N, databases=200, records=4_000, seed=1)
    assert (drawn.weights == again.weights).all()
    # The release is one of residuals: a value's count has the noise of its main effect.
    (release,) = found.measured
    inside, fit = 0, found.hypothesis
    for name in DOMAIN.names:
        size = DOMAIN[name].size
        weight = release.question.weights[release.question.scopes.index((name,))]
        noise = math.sqrt(variance(release.noise) * (1 - 1 / size)) / (weight * size * N)
        for code in range(size):
            query = Query.among(DOMAIN, name, [code])
            votes, foretold = drawn.values(query), fit.answer(query)
            assert abs(float(np.median(votes)) - foretold) <= noise / 2 + 1e-4
            if foretold > 5 * noise:
                assert 0.5 * noise <= votes.std() <= 2 * noise
            inside += abs(records.answer(query) / N - float(np.median(votes))) <= 6 * noise
    assert inside == sum(DOMAIN.shape)


def test_planted_databases_that_are_all_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plausible_module, "_targets", lambda names, drawn, shares: np.tile(shares.ravel(), (200, 1)))
    with pytest.raises(AssertionError):
        test_databases_are_spread_around_the_fit_as_the_noise_was(tmp_path)
