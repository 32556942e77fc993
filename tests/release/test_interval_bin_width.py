"""Bin widths: finer bins round less and cost more noise, and the table shows where they balance."""

from __future__ import annotations

from itertools import pairwise

import pytest

import tacit
from tacit.exact.price import noise_for
from tacit.model.attribute import integer
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, Tree
from tacit.release.ranges.bin_width import bin_widths, noise_of
from tacit.release.ranges.choice import choose
from tacit.trusted.sensitivity import sensitivity

WIDTHS = [1000 / 2**k for k in range(12)]


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_rounding_falls_and_noise_grows(measure: str) -> None:
    loss = Loss.of(measure, 0.05 if measure == "epsilon" else 0.002)  # type: ignore[arg-type]
    found = bin_widths(0, 1000, 5000, loss, WIDTHS, denser=5)
    assert [c.bins for c in found] == [2**k for k in range(12)]
    assert all(a.rounding >= b.rounding for a, b in pairwise(found))
    assert all(a.noise < b.noise for a, b in pairwise(found))
    assert found[0].noise == 0
    best = min(found, key=lambda c: c.total)
    assert found[0].bins < best.bins < found[-1].bins


def test_denser_data_and_more_budget_ask_for_finer_bins() -> None:
    def best(epsilon: float, denser: float, rows: int = 5000) -> int:
        found = bin_widths(0, 1000, rows, Loss.of("epsilon", epsilon), WIDTHS, denser=denser)
        return min(found, key=lambda c: c.total).bins

    assert best(0.1, 2) < best(1.0, 2) <= best(10.0, 2)
    assert best(1.0, 1) < best(1.0, 50)
    assert best(1.0, 5, rows=500) < best(1.0, 5, rows=50_000)


def test_the_worst_case_is_half_of_everybody() -> None:
    one = bin_widths(0, 10, 100, Loss.of("epsilon", 1.0), [0.5], denser=1e9)[0]
    assert one.rounding == 50
    assert one.bins == 20


def test_nonsense_is_refused() -> None:
    loss = Loss.of("epsilon", 1.0)
    for low, high, rows, widths, denser in (
        (1, 0, 10, [1], 1), (0, 1, 0, [1], 1), (0, 1, 10, [0], 1), (0, 1, 10, [-1], 1), (0, 1, 10, [1], 0.5),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"range|width"):
            bin_widths(low, high, rows, loss, widths, denser=denser)


def test_a_whole_budget_and_a_picture() -> None:
    budget = Budget(epsilon=1.0, delta=0.0)
    found = tacit.bin_widths(0, 1000, 5000, budget, WIDTHS, denser=5)
    assert found == bin_widths(0, 1000, 5000, Loss.of("epsilon", 1.0), WIDTHS, denser=5)
    svg = tacit.bin_width_chart(found).svg()
    assert all(word in svg for word in ("noise", "rounding", "together", "best"))


@pytest.mark.parametrize("bins", [2, 7, 64, 1000])
def test_planned_noise_is_the_curators(bins: int) -> None:
    domain = Domain({"x": integer(0, bins - 1)})
    asked: list[tuple[Measure, Tree | Convolution]] = [
        ("epsilon", choose("x", bins, "epsilon").strategy),
        ("rho", choose("x", bins, "rho").strategy),
        ("rho", choose("x", bins, "rho", about="thresholds").strategy),
    ]
    for measure, strategy in asked:
        loss = Loss.of(measure, 0.3)
        assert noise_of(strategy, bins, loss) == noise_for(loss, sensitivity(strategy, domain), 1)
