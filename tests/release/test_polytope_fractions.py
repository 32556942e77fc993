"""The ensemble of fractional databases: what the median mechanism asks of it."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import InvalidQuery
from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers import fractions as fractional
from tacit.release.samplers.fractions import Fractions

SMALL = Domain({"a": integer(0, 3), "b": integer(0, 4), "c": integer(0, 1)})
A, B = Query.among(SMALL, "a", [0]), Query.among(SMALL, "b", [1, 2])


def test_the_same_seeds_give_the_same_samples() -> None:
    def run(seed: int) -> Fractions:
        return Fractions.start(SMALL, 50, seed).restrict(A & B, 0.3, 0.02).restrict(~A, 0.5, 0.02).stir(3)

    first, again, other = run(1), run(1), run(2)
    assert first.values(B).tobytes() == again.values(B).tobytes()
    assert first.values(B).tobytes() != other.values(B).tobytes()
    once, twice = first.values(B), first.values(B)
    assert (once == twice).all(), "asking changes nothing"
    assert (first.stir(1, seed=9).values(B) != first.stir(1).values(B)).any()


def test_narrow_slabs_are_stirred_until_the_samples_have_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(width: float, sweeps: int | None) -> Fractions:
        ensemble = Fractions.start(SMALL, 100, 1)
        for query, answer in ((A, 0.4), (B, 0.5), (A & B, 0.3)):
            ensemble = ensemble.restrict(query, answer, width, sweeps=sweeps)
        return ensemble

    few, enough = told(0.001, 2), told(0.01, None)
    assert few.memory > 0.5
    assert "not mixed" in few.note
    assert enough.memory <= fractional.FORGOTTEN < told(0.01, 2).memory
    assert enough.note == ""
    monkeypatch.setattr(fractional, "MOST_SWEEPS", 20)
    assert told(0.001, None).memory == told(0.001, 20).memory


def test_restricting_leaves_the_old_ensemble_alone() -> None:
    before = Fractions.start(SMALL, 50, 1)
    values = before.values(A)
    after = before.restrict(A, 0.9, 0.01)
    assert (before.values(A) == values).all()
    assert np.abs(after.values(A) - 0.9).max() <= 0.01
    assert len(before.atoms) == 1
    assert len(after.atoms) == 2


def test_a_complement_is_one_less_the_query() -> None:
    ensemble = Fractions.start(SMALL, 80, 3).restrict(~(A & B), 0.6, 0.03)
    assert (ensemble.values(~(A & B)) == 1 - ensemble.values(A & B)).all()
    assert np.abs(ensemble.values(A & B) - 0.4).max() <= 0.03 + 1e-12
    assert np.median(ensemble.values(~(A & B))) == pytest.approx(0.6, abs=0.03)


def test_constants_are_known() -> None:
    ensemble = Fractions.start(SMALL, 5, 3)
    assert ensemble.values(Query.constant(everyone=True)).tolist() == [1] * 5
    assert ensemble.values(Query.constant(everyone=False)).tolist() == [0] * 5
    assert ensemble.restrict(Query.constant(everyone=True), 1.0, 0.1) is ensemble


def test_a_weighted_query_can_be_asked_and_restricted() -> None:
    tilt = Query.weighted(SMALL, ["a", "c"], np.linspace(0, 1, 8).reshape(4, 2))
    ensemble = Fractions.start(SMALL, 60, 4).restrict(tilt, 0.7, 0.02)
    assert np.abs(ensemble.values(tilt) - 0.7).max() <= 0.02 + 1e-9


def test_answers_that_contradict_each_other_show() -> None:
    ensemble = Fractions.start(SMALL, 60, 5).restrict(A, 0.1, 0.02).restrict(A, 0.9, 0.02)
    assert ensemble.diagnostics(5).infeasible == len(ensemble)
    assert ensemble.slabs.violation(ensemble.samples.values).max() > 0.3


@pytest.mark.parametrize("digits", [4, 6, 12])
def test_large_domains(digits: int) -> None:
    """10^12 cells: the samples agree with 8 answers of a table far from uniform, and no cell is listed."""
    domain = Domain({f"digit {i}": integer(0, 9) for i in range(digits)})
    rng = np.random.default_rng(6)
    ensemble = Fractions.start(domain, 60, 7)
    asked = []
    for _ in range(8):
        first, second = (str(name) for name in rng.permutation(domain.names)[:2])
        query = Query.among(domain, first, [int(rng.integers(3))]) & Query.among(domain, second, [int(rng.integers(3))])
        answer = 0.02 + 0.05 * float(rng.random())
        ensemble = ensemble.restrict(query, answer, 0.005, sweeps=4)
        asked.append((query, answer))
    for query, answer in asked:
        assert np.abs(ensemble.values(query) - answer).max() <= 0.005 + 1e-9
    found = ensemble.diagnostics(10)
    assert found.infeasible == 0
    assert len(ensemble.slabs.low) == 8
    assert found.drift < 2.5
    assert -1 < found.memory < 1
    assert ensemble.atoms.sizes.sum() == pytest.approx(domain.size)


@pytest.mark.parametrize("from_the_centre", [True, False])
def test_drift_tells_samples_that_are_still_on_their_way(
    from_the_centre: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10^5 cells: 20 sweeps are enough from the centre's law, and too few from where the last answer left them."""
    monkeypatch.setattr(fractional, "LARGE", 0 if from_the_centre else np.inf)
    domain = Domain({f"digit {i}": integer(0, 9) for i in range(5)})
    rng = np.random.default_rng(8)
    ensemble = Fractions.start(domain, 400, 8)
    for _ in range(12):
        first, second = (str(name) for name in rng.permutation(domain.names)[:2])
        query = Query.among(domain, first, range(2)) & Query.among(domain, second, range(2))
        ensemble = ensemble.restrict(query, 0.12 + 0.02 * float(rng.random()), 0.005, sweeps=0)
    found = ensemble.stir(20).diagnostics(20)
    assert found.infeasible == 0
    assert found.mixed == from_the_centre


def test_wrong_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidQuery, match="at least 1"):
        Fractions.start(SMALL, 0, 1)
    other = Query.among(Domain({"z": integer(0, 9)}), "z", [1])
    with pytest.raises(InvalidQuery, match="another domain"):
        Fractions.start(SMALL, 5, 1).values(other)
    with pytest.raises(InvalidQuery, match="width above 0"):
        Fractions.start(SMALL, 5, 1).restrict(A, 0.5, 0.0)
    monkeypatch.setattr(fractional, "MAX_MASSES", 5)
    with pytest.raises(InvalidQuery, match="kinds of cells"):
        Fractions.start(SMALL, 5, 1).restrict(A, 0.5, 0.1)
