"""The listed distribution on a device of PyTorch: its processor, where there is no card; without PyTorch, ours."""

from __future__ import annotations

import builtins
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidDomain
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis import dense_gpu
from tacit.release.hypothesis.dense import Dense
from tacit.release.hypothesis.dense_gpu import GpuDense, listed

DOMAIN = Domain({"a": tacit.integer(0, 4), "b": tacit.integer(0, 6), "c": tacit.integer(0, 11), "d": tacit.boolean()})


def test_without_a_card_the_processor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_gpu, "MAX_CELLS", 10)  # as if X were large
    assert type(listed(DOMAIN)) is Dense or dense_gpu.room()
    ordinary = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return ordinary(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert dense_gpu.room() == 0
    assert type(listed(DOMAIN)) is Dense


if find_spec("torch") is not None:  # the extra `gpu`

    def test_steps_answers_tables_and_rows_are_the_same() -> None:
        rng = np.random.default_rng(0)
        plain, other = Dense(DOMAIN), GpuDense(DOMAIN, device="cpu")
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
            GpuDense(DOMAIN, np.ones(3), device="cpu")
