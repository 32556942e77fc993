"""A single ordered attribute with many bins: what is bought with the whole budget is the release of all its ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.workload import Convolution, Marginal, Tree
from tacit.release.histogram import _MANY, everything
from tacit.session import Session

BINS, N = 1_024, 20_000
DOMAIN = tacit.Domain({"x": tacit.integer(0, BINS - 1)})
VALUES = np.random.default_rng(3).normal(400, 90, N).clip(0, BINS - 1).astype(int)
PURE, MILD = tacit.Budget(epsilon=1.0, delta=0.0), tacit.Budget(epsilon=1.0, delta=1e-9)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {"budget": PURE, "ledger": folder / "l.tacit", "start": True}
    return tacit.open(data=pd.DataFrame({"x": VALUES}), domain=DOMAIN, **(settings | changes))


def test_what_is_bought_follows_from_the_domain_alone() -> None:
    assert isinstance(everything(DOMAIN, "epsilon"), Tree)
    assert isinstance(everything(DOMAIN, "rho"), Convolution)
    few = tacit.Domain({"x": tacit.integer(0, _MANY - 2)})
    two = tacit.Domain({"x": tacit.integer(0, 99), "y": tacit.boolean()})
    unordered = tacit.Domain({"x": tacit.category(list(range(200)))})
    both = tacit.Domain({"x": tacit.integer(0, 99, other="else", missing="unknown")})  # two beyond the bins
    assert all(isinstance(everything(domain, "rho"), Marginal) for domain in (few, two, unordered, both))


@pytest.mark.parametrize("budget", [PURE, MILD])
def test_auto_buys_it_and_every_form_is_read_off_it(tmp_path: Path, budget: tacit.Budget) -> None:
    with start(tmp_path, budget=budget) as session:
        assert session.choice.mechanism == "histogram"
        session.start()
        assert session.left.atoms < session.total.atoms / 100
        spent, curve = session.spent, session.cdf("x")
        count = session.ask(tacit.count(x=(100, 399)))
        assert isinstance(count, tacit.Answer)
        assert session.range("x", 100, 399).value == count.value == curve.values[399] - curve.values[99]
        assert session.fraction(tacit.count(x=(100, 399))).value == count.value / N
        table = session.table("x")
        assert table.values[100:400].sum() == count.value
        assert session.ask(tacit.count(x=7)).value == table.values[7]  # type: ignore[union-attr]
        assert session.spent == spent
        true = np.searchsorted(np.sort(VALUES), np.arange(BINS), side="right")
        assert np.abs(curve.values - true).max() <= curve.error
        assert count.error is not None
        assert abs(count.value - ((VALUES >= 100) & (VALUES < 400)).sum()) <= count.error
        rows = session.synthetic(1_000).to_pandas()
        assert abs(rows.x.mean() - VALUES.mean()) < 30
        session.publish(tmp_path / "p.jsonl")
        value = count.value
    with tacit.read(tmp_path / "p.jsonl") as reader:
        assert reader.ask(tacit.count(x=(100, 399))).value == value  # type: ignore[union-attr]
    assert tacit.verify(tmp_path / "p.jsonl")


def test_ranges_are_surer_than_sums_of_cells() -> None:
    """By the forecast, which is by law: what the flat histogram of as many values without an order would show."""
    flat = tacit.Domain({"x": tacit.category(list(range(BINS)))})
    ranged, cells = (tacit.plan(rows=N, domain=domain, budget=PURE, questions=1000) for domain in (DOMAIN, flat))
    sure, rough = (next(one for one in made.forecasts if one.mechanism == "histogram") for made in (ranged, cells))
    assert sure.bar is not None
    assert rough.bar is not None
    assert 2 * sure.bar < rough.bar


def test_a_band_around_values_that_are_not_cut_is_not_cut_either(tmp_path: Path) -> None:
    """Noise of 20,000 rows in each of five cells: all four sums lie within 0 … 20 with a chance of 6e-14."""
    rows, domain = pd.DataFrame({"a": [0, 1, 2, 3, 4] * 4}), tacit.Domain({"a": tacit.integer(0, 4)})
    budget = tacit.Budget(epsilon=1e-4, delta=0.0)
    ledger, anchor = tmp_path / "few.tacit", tmp_path / "few.sqlite"
    with tacit.open(
        start=True, data=rows, domain=domain, budget=budget, ledger=ledger, anchor=anchor, mechanism="histogram"
    ) as session:
        found = session.cdf("a")
        beyond = max(float(found.values.max()) - 20, -float(found.values.min()))
        assert beyond > 0
        assert found.error > 20
