"""The bar of one easy answer by itself: the closed form against the gate's own comparison, summed over its noise."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.model.budget import Loss
from tacit.model.factor import GRID
from tacit.release.online_terms import Terms
from tacit.trusted import gate as gate_module

FAR = 400  # steps: what lies beyond has a chance below e^-40


def passes(value: int, threshold: float, scales: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> float:
    """The chance that a lens of `value` steps passes for easy: every pair of draws through the gate's own code."""
    first, second = (np.exp(-np.arange(FAR) / scale) * -math.expm1(-1 / scale) for scale in scales)
    chance = 0.0
    monkeypatch.setattr(gate_module, "shown", lambda records, query, lens: value)
    for z in range(FAR):
        monkeypatch.setattr(gate_module, "draw_geometric", lambda scale, size, z=z: np.full(size, z))
        asked: Any = SimpleNamespace(queries=[None], lenses=[None], threshold=threshold, prepare=lambda queries: None)
        low, high = 0, FAR  # the least noise of the threshold with which it passes for easy: monotone, so bisected
        while low < high:
            middle = (low + high) // 2
            hit = gate_module.first_passing(asked, asked, scales, middle)
            low, high = (low, middle) if hit is None else (middle + 1, high)
        chance += float(second[z] * first[low:].sum())
    return chance


def closed(value: int, threshold: float, scales: tuple[float, float]) -> float:
    """Pr[R >= Z + value - threshold - mean of Z + mean of R + 1]."""
    s1, s2 = scales
    d = value - round(threshold * GRID) - round(s2) + round(s1) + 1
    return (1 - math.exp(-1 / s2)) / (1 - math.exp(-1 / s1 - 1 / s2)) * math.exp(-d / s1)


def terms(scales: tuple[float, float], confidence: float) -> Terms:
    nothing = Loss("rho", 1)
    return Terms(5, nothing, nothing, scales[0] / GRID, scales[1] / GRID, confidence)


@pytest.mark.parametrize("scales", [(6.4, 8.1), (3.0, 9.7), (9.9, 4.2)])
@pytest.mark.parametrize("threshold", [20 / GRID, 33.4 / GRID])
def test_the_chance_to_pass_is_the_closed_form(
    scales: tuple[float, float], threshold: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for beyond in (4, 11, 30):
        value = round(threshold * GRID) + round(scales[1]) - round(scales[0]) - 1 + beyond
        found = passes(value, threshold, scales, monkeypatch)
        assert found == pytest.approx(closed(value, threshold, scales), rel=1e-9)
        assert found != pytest.approx(math.exp(-beyond / scales[0]), rel=0.1)  # the control: a law without Z


@pytest.mark.parametrize("confidence", [0.6, 0.95, 1 - 1e-6])
@pytest.mark.parametrize("scales", [(6.4, 8.1), (9.9, 4.2)])
def test_the_bar_is_safe_and_no_wider_than_it_must_be(
    scales: tuple[float, float], confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threshold in (20 / GRID, 31.5 / GRID, 60.49 / GRID):
        bar = math.ceil(terms(scales, confidence).shown_alone(threshold) * GRID)
        assert passes(bar + 1, threshold, scales, monkeypatch) <= 1 - confidence
        assert passes(bar - 5, threshold, scales, monkeypatch) > 1 - confidence  # a bar that is 5 steps narrower fails


def test_it_is_narrower_than_the_bar_of_the_whole_session() -> None:
    for measure in ("rho", "epsilon"):
        found = Terms.of(Loss.of(measure, 0.1), hits=1, confidence=0.95)  # type: ignore[arg-type]
        assert found.shown_alone(100.0) < found.shown(100.0)
        many = Terms.of(Loss.of(measure, 0.1), hits=100, confidence=0.95)  # type: ignore[arg-type]
        gain = many.shown(1e5) - many.shown_alone(1e5)
        share = many.threshold_scale / (many.threshold_scale + many.comparison_scale)
        assert gain == pytest.approx(many.threshold_scale * (math.log(125) - math.log(share)), rel=1e-3)
