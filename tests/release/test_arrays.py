"""Hypotheses on a device of PyTorch: its processor, where there is no card; without PyTorch, numpy."""

from __future__ import annotations

import builtins
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from test_mixture import DOMAIN as MIXED
from test_mixture import everything, some_mixture
from test_mixture import listed as cells_of

import tacit
from tacit.errors import InvalidDomain
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis import arrays, cell_weights
from tacit.release.hypothesis import fit_mixture as fitting
from tacit.release.hypothesis.arrays import MEMORY, Device, torch_device
from tacit.release.hypothesis.cell_weights import Dense, listed
from tacit.release.hypothesis.mixture_problem import Problem

DOMAIN = Domain({"a": tacit.integer(0, 4), "b": tacit.integer(0, 6), "c": tacit.integer(0, 11), "d": tacit.boolean()})


def test_without_a_card_the_processor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_weights, "MAX_LISTED_CELLS", 10_000)
    monkeypatch.setattr(cell_weights, "room", lambda: 0)
    assert listed(DOMAIN)._device is MEMORY
    ordinary = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return ordinary(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert arrays.room() == 0


if find_spec("torch") is not None:  # the extra `gpu`

    def test_steps_answers_tables_and_rows_are_the_same() -> None:
        rng = np.random.default_rng(0)
        plain, other = Dense(DOMAIN), Dense(DOMAIN, device=torch_device("cpu"))
        for i in range(30):
            codes = [rng.choice(DOMAIN[name].size, 2, replace=False) for name in ("a", "b", "c")]
            query = Query.all([Query.among(DOMAIN, n, c) for n, c in zip("abc", codes, strict=True)][: 1 + i % 3])
            if i % 4 == 3:
                query = query & Query.weighted(DOMAIN, ["d", "c"], rng.random((2, 12)))
            if i % 5 == 4:
                query = ~query
            for one in (plain, other):
                one.scale(query, 0.3 - 0.1 * (i % 6))
            assert other.answer(query) == pytest.approx(plain.answer(query), abs=1e-12)
            for names in (["c"], ["b", "a"], ["d", "c", "a", "b"]):
                assert np.allclose(other.marginal(names), plain.marginal(names), rtol=0, atol=1e-12)
            for one, two in zip(other.profile(query), plain.profile(query), strict=True):
                assert np.allclose(one, two, rtol=0, atol=1e-12)
        kept = other.copy()
        other.scale(Query.among(DOMAIN, "a", [0]), 1.0)
        assert np.allclose(kept.marginal(["a"]), plain.marginal(["a"]))
        rows = kept.draw(200_000, rng)
        seen = np.bincount(np.ravel_multi_index(rows, DOMAIN.shape), minlength=DOMAIN.size)
        expected = 200_000 * plain.marginal(DOMAIN.names).ravel()
        assert float(((seen - expected) ** 2 / expected).sum()) < 839 + 10 * np.sqrt(2 * 839)
        with pytest.raises(InvalidDomain):
            Dense(DOMAIN, np.ones(3), device=torch_device("cpu"))

    def test_a_large_domain_goes_to_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cell_weights, "MAX_LISTED_CELLS", 10)  # as if X were large
        monkeypatch.setattr(cell_weights, "room", lambda: 1_000)
        monkeypatch.setattr(cell_weights, "torch_device", lambda: Device(torch_device("cpu").xp, "cpu:0"))
        assert listed(DOMAIN)._device.name == "cpu:0"
        monkeypatch.setattr(cell_weights, "room", lambda: 100)  # too little
        with pytest.raises(InvalidDomain, match="at most 10"):
            listed(DOMAIN)

    def test_a_mixture_has_the_same_gradient_and_fits_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
        measured = everything(cells_of(some_mixture()))
        problems = [
            Problem(MIXED, measured, 10_000, pull=50.0, device=device) for device in (MEMORY, torch_device("cpu"))
        ]
        rng = np.random.default_rng(1)
        at = rng.normal(0, 0.5, (3, problems[0].width)).astype(np.float32), rng.normal(0, 0.5, 3).astype(np.float32)
        pairs = [problem.slopes(*(problem.device.hold(one) for one in at)) for problem in problems]
        for one, other in zip(*pairs, strict=True):
            assert np.allclose(one, other.numpy(), rtol=0, atol=1e-5 * np.abs(one).max())
        plain = fitting.fit_mixture(MIXED, measured, 10_000, components=10)
        monkeypatch.setattr(fitting, "_FOR_A_CARD", 0)
        monkeypatch.setattr(fitting, "room", lambda: 1)
        monkeypatch.setattr(fitting, "torch_device", lambda: torch_device("cpu"))
        card = fitting.fit_mixture(MIXED, measured, 10_000, components=10)
        assert card.misfit == pytest.approx(plain.misfit, rel=0.05)
        again = fitting.fit_mixture(MIXED, measured, 10_000, before=card)
        assert again.misfit == pytest.approx(plain.misfit, rel=0.05)
