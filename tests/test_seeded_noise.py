"""The noise that tests run on: from a seed, of the right law, and replaced by the system's where a test asks for it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seeded_noise
import tacit
from tacit.model.budget import Measure
from tacit.model.noise_law import Noise, NoiseKind, pmf
from tacit.trusted import curator, gate, noise

DRAWS = 100_000


def answers(folder: Path) -> list[float]:
    """Three counts and a gate's threshold, with noise of a scale of 10^6 rows."""
    folder.mkdir()
    with tacit.open(
        start=True,
        data=pd.DataFrame({"a": [0, 1]}),
        domain=tacit.Domain({"a": tacit.integer(0, 9)}),
        budget=tacit.Budget(epsilon=1e-5, delta=0.0),
        ledger=folder / "l.tacit",
        mechanism="direct",
        questions=10,
    ) as session:
        threshold = gate.draw_geometric(1e6, 1)[0]
        return [float(threshold), *(float(session.ask(tacit.count(a=i)).value) for i in range(3))]


def test_a_seed_gives_the_same_answers_again(tmp_path: Path) -> None:
    first = answers(tmp_path / "first")
    following = answers(tmp_path / "following")
    seeded_noise.begin()
    assert answers(tmp_path / "again") == first
    assert not set(first) & set(following)


@pytest.mark.real_noise
def test_the_system_does_not(tmp_path: Path) -> None:
    """No value of such noise has a chance above 1e-6: four of them are those of another run with one below 1e-23."""
    first = answers(tmp_path / "first")
    seeded_noise.begin(real=True)
    assert answers(tmp_path / "again") != first
    seeded_noise.begin()
    assert answers(tmp_path / "seeded") != first
    assert curator.add_noise is not noise.add_noise


def distance(drawn: list[int], law: list[float]) -> float:
    """Between the shares of the outcomes 0, 1, 2, … and their law, in standard deviations of the farthest."""
    shares = np.bincount(drawn, minlength=len(law))[: len(law)] / len(drawn)
    chances = np.array(law)
    return float(np.max(np.abs(shares - chances) / np.sqrt(chances * (1 - chances) / len(drawn))))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.6, 3.0, 100.0])
def test_the_law_is_the_right_one(kind: NoiseKind, scale: float) -> None:
    law = Noise(kind, scale)
    steps = range(-math.ceil(2 * scale), math.ceil(2 * scale) + 1)
    drawn = curator.add_noise(np.zeros(DRAWS, dtype=np.int64), law) - steps[0]
    drawn[drawn < 0] = len(steps)
    assert distance(drawn.tolist(), pmf(law, steps).tolist()) < 5
    assert distance(drawn.tolist(), pmf(Noise(kind, 2 * scale), steps).tolist()) > 6  # the control


def test_one_sided_noise_and_choices() -> None:
    drawn = curator.draw_geometric(3.0, DRAWS)
    assert distance(drawn.tolist(), [math.exp(-z / 3) * -math.expm1(-1 / 3) for z in range(10)]) < 5
    scores = np.array([0, 2, 4], dtype=np.int64)
    laws: dict[Measure, list[float]] = {"rho": [math.exp(s / 2) for s in scores.tolist()]}
    chosen = [curator.noisy_max(scores, 2.0, "rho") for _ in range(20_000)]
    assert distance(chosen, [weight / sum(laws["rho"]) for weight in laws["rho"]]) < 5
    assert curator.noisy_max(np.array([0, 0, 500]), 1.0, "epsilon") == 2
