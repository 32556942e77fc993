"""Ranges, CDFs, quantiles, histograms and means as a session gives them: one purchase, then everything agrees."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import tacit
from support import once
from tacit.errors import BudgetExhausted, InvalidQuery
from tacit.model.table import Listing
from tacit.release.ranges.choice import LADDER
from tacit.session import Session

N = 20_000
RNG = np.random.default_rng(3)
ROWS = pd.DataFrame(
    {
        "age": np.clip(RNG.normal(45, 18, N), 17, 90).astype(int),
        "income": RNG.lognormal(10, 0.6, N).clip(0, 99_999),
        "born": pd.to_datetime("2000-01-01") + pd.to_timedelta(RNG.integers(0, 366, N), unit="D"),
        "sex": RNG.choice(["F", "M"], N),
    }
)
ROWS["born"] = ROWS["born"].dt.date
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(17, 90, missing="unknown"),
        "income": tacit.numeric(list(range(0, 100_001, 5_000)), clamp=True),
        "born": tacit.date("2000-01-01", "2000-12-31", by="month"),
        "sex": tacit.category(["F", "M"]),
    }
)
MILD, PURE = tacit.Budget(epsilon=1.0, delta=1e-9), tacit.Budget(epsilon=1.0, delta=0.0)
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": MILD,
        "ledger": folder / "l.tacit",
        "mechanism": "direct",
        "confidence": 1 - 1e-6,
    }
    return tacit.open(start=True, **(settings | changes))


@pytest.mark.parametrize("budget", [MILD, PURE])
def test_one_purchase_answers_everything_and_it_all_agrees(tmp_path: Path, budget: tacit.Budget) -> None:
    with start(tmp_path, budget=budget) as session:
        cdf = session.cdf("age", share=0.2)
        assert cdf.source == "measured"
        assert cdf.cost == session.spent
        assert float(cdf.cost) == pytest.approx(0.2 * float(session.total), rel=1e-3)
        spent = session.spent
        true = np.array([(ROWS.age < end).sum() for end in cdf.ends])
        assert np.abs(cdf.values - true).max() <= cdf.error < 0.05 * N
        middle = session.range("age", 30, 49)
        assert middle.source == "repeat"
        assert middle.error is not None
        assert abs(middle.value - ROWS.age.between(30, 49).sum()) <= middle.error
        assert middle.value == cdf.values[49 - 17] - cdf.values[29 - 17]
        wide = session.range("age", 20, 85)  # more than half of the bins
        assert wide.error is not None
        assert abs(wide.value - ROWS.age.between(20, 85).sum()) <= wide.error
        assert wide.value == cdf.values[85 - 17] - cdf.values[19 - 17]
        assert session.range("age", 17, 90).value == cdf.values[-1]  # all that have an age
        assert session.histogram("age", width=1e12).values.size == 1  # wider than the range: one bin has all
        by_ten = session.histogram("age", width=10)
        assert by_ten.labels[0][:2] == ("17–26", "27–36")
        assert by_ten.values.sum() == cdf.values[-1]
        assert by_ten.values[0] == cdf.values[9]
        assert session.histogram("age").values.size == 74
        median = session.quantile("age", 0.5)
        assert int(median.low) <= np.median(ROWS.age) <= int(median.high)
        mean = session.mean("age")
        assert mean.error is not None
        assert abs(mean.value - ROWS.age.mean()) <= mean.error < 2
        assert session.spent == spent


def test_it_is_free_for_ever_after(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        before = session.cdf("age")
        spent = session.spent
    with start(tmp_path) as session:
        after = session.cdf("age", share=0.9)
        assert after.source == "repeat"
        assert after.cost.atoms == 0
        assert after.receipt == before.receipt
        assert (after.values == before.values).all()
        assert session.spent == spent
        assert "ranges of age" in session.history[0].question


def test_a_histogram_answers_ranges_too(tmp_path: Path) -> None:
    for budget, folder in ((MILD, tmp_path / "a"), (PURE, tmp_path / "b")):
        folder.mkdir()
        small = tacit.Domain({name: DOMAIN[name] for name in ("age", "sex")})
        with start(folder, budget=budget, domain=small, mechanism="histogram") as session:
            assert session.cdf("age").source == "measured"
            assert session.left.atoms < 10**6  # the first question buys the histogram, with everything
            cdf = session.cdf("age")
            assert cdf.source == "repeat"
            true = np.array([(ROWS.age < end).sum() for end in cdf.ends])
            assert np.abs(cdf.values - true).max() <= cdf.error
            assert session.mean("age").cost.atoms == 0


def test_rectangles(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        first = session.rectangle({"income": (10_000, 40_000), "age": (20, 39)}, share=0.5)
        exact = (ROWS.age.between(20, 39) & (ROWS.income >= 10_000) & (ROWS.income < 40_000)).sum()
        assert first.error is not None
        assert abs(first.value - exact) <= first.error < 0.1 * N
        again = session.rectangle({"age": (17, 30), "income": (0, 20_000)})
        assert again.cost.atoms == 0
        assert len(session.history) == 1
        # all rectangles of a grid add up to the whole of it
        pieces = [
            session.rectangle({"age": (a, b), "income": (c, d)}).value
            for (a, b), (c, d) in itertools.product([(17, 40), (41, 89)], [(0, 50_000), (50_000, 95_000)])
        ]
        assert sum(pieces) == pytest.approx(session.rectangle({"age": (17, 89), "income": (0, 95_000)}).value)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.cdf("sex"), "no order"),
        (lambda s: s.cdf("agee"), "age"),
        (lambda s: s.quantile("age", 0), "share above 0"),
        (lambda s: s.quantile("age", 1.5), "share above 0"),
        (lambda s: s.range("age", 39, 20), "from the lower end to the higher"),
        (lambda s: s.range("income", 1, 5_000), "nearest bin edges"),
        (lambda s: s.range("age", 20, 200), "takes"),
        (lambda s: s.range("income", 0, 100_000), "all there is"),
        (lambda s: s.rectangle({"age": (17, 20), "sex": "F"}), "no order"),
        (lambda s: s.rectangle({}), "two ends"),
        (lambda s: s.rectangle({1: (2, 3)}), "two ends"),
        (lambda s: s.range(5, 1, 2), "two ends"),
        (lambda s: s.histogram("income", width=7_000), "nearest bin edges"),
        (lambda s: s.histogram("income", width=2_500), "finer"),
        (lambda s: s.histogram("income", width=5e-324), "finer"),
        (lambda s: s.histogram("income", width=-1), "above 0"),
        (lambda s: s.histogram("born", width=2), "dates"),
        (lambda s: s.cdf("age", share=0), "share"),
        (lambda s: s.cdf("age", share=True), "share"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_costs_nothing(tmp_path: Path, ask: Any, words: str) -> None:
    with start(tmp_path) as session:
        with pytest.raises(InvalidQuery, match=words) as refused:
            ask(session)
        assert refused.value.nothing_spent
        assert session.spent.atoms == 0


def test_too_dear_is_refused(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.cdf("age", share=0.8)
        with pytest.raises(BudgetExhausted) as refused:
            session.cdf("income", share=0.3)
        assert refused.value.nothing_spent


def test_dates_and_pictures(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        cdf = session.cdf("born")
        assert cdf.labels[0] == "2000-01"
        assert "2000-01" in cdf.chart().svg()
        ElementTree.fromstring(cdf.chart().svg())
        ElementTree.fromstring(session.histogram("age", width=10).chart().svg())
        assert "2000-" in str(session.quantile("born", 0.25))
        with pytest.raises(InvalidQuery, match="no mean"):
            session.mean("born")
        assert "factorisation" in cdf.why
        form = cdf.to_dict()
        assert form["simultaneous"] is True
        assert len(form["rows"]) == 12
        assert "<svg" in cdf._repr_html_()
        assert session.quantile("born", 0.5).to_dict()["interval"]


def whole(session: Session) -> list[Any]:
    """Everything that is about all rows and an ordered attribute."""
    return [
        session.ask("SELECT AVG(age) FROM data"),
        session.ask("SELECT MEDIAN(age) FROM data"),
        session.cdf("age"),
        session.range("age", 20, 39),
        session.histogram("age", width=10),
        session.quantile("age", 0.9),
    ]


@pytest.mark.parametrize("budget", [MILD, PURE])
@pytest.mark.parametrize("mechanism", ["direct", "histogram"])
def test_a_table_answers_them_when_the_budget_is_used_up(tmp_path: Path, mechanism: str, budget: tacit.Budget) -> None:
    small = tacit.Domain({name: DOMAIN[name] for name in ("age", "sex")})
    settings = {"domain": small, "mechanism": mechanism, "questions": 1, "budget": budget, "confidence": 0.999}
    with start(tmp_path, **settings) as session:
        session.table("age", "sex")
        assert session.left.atoms < session.total.atoms // 1_000
        spent = session.spent
        mean, median, cdf, some, bars, _ = told = whole(session)
        assert session.spent == spent
        assert all(one.cost.atoms == 0 and one.receipt.entry == 2 for one in told)
        assert abs(mean.value - ROWS.age.mean()) <= mean.error
        assert int(median.low) <= np.median(ROWS.age) <= int(median.high)
        assert np.abs(cdf.values - [(ROWS.age < end).sum() for end in cdf.ends]).max() <= cdf.error
        assert abs(some.value - ROWS.age.between(20, 39).sum()) <= some.error
        assert some.value == session.ask(tacit.count(age=(20, 39))).value  # type: ignore[union-attr]
        assert bars.values[1] == session.ask(tacit.count(age=(27, 36))).value  # type: ignore[union-attr]
    with start(tmp_path, **settings) as session:
        assert [one.to_dict() | {"source": ""} for one in whole(session)] == [
            one.to_dict() | {"source": ""} for one in told
        ]


def test_what_has_started_answers_them_and_offers_something_sharper(tmp_path: Path) -> None:
    settings = {"mechanism": "iterative", "warm": 0.6, "hits": 5, "questions": 200, "confidence": 0.95}
    with start(tmp_path, **settings) as session:
        session.ask(tacit.count(sex="F"))
        begun = [past.receipt for past in session.history]  # a tree of age among them
        mean, median, cdf, some, *_ = first = whole(session)
        assert "release of all ranges of age" in mean.note
        assert "10 % of the budget: share=0.1" in mean.note
        assert not any("ranges of age" in past.question for past in session.history if past.receipt not in begun)
        assert abs(mean.value - ROWS.age.mean()) <= mean.error
        assert int(median.low) <= np.median(ROWS.age) <= int(median.high)
        assert np.abs(cdf.values - [(ROWS.age < end).sum() for end in cdf.ends]).max() <= cdf.error
        assert some.value == session.ask(tacit.count(age=(20, 39))).value  # type: ignore[union-attr]
        bought = session.cdf("age", share=0.1)  # as sharp as a share makes it, and said to be another
        assert bought.source == "measured"
        assert bought.error < cdf.error
        again = whole(session)
        for before, after in zip(first, again, strict=True):  # what was told first stays, in value and in bar
            kept = ("value", "error", "rows", "interval")
            assert {k: v for k, v in before.to_dict().items() if k in kept} == {
                k: v for k, v in after.to_dict().items() if k in kept
            }
        assert "a later release is sharper" in session.range("age", 20, 39).note


@pytest.mark.parametrize("strategy", LADDER)
@pytest.mark.parametrize("budget", [MILD, PURE])
def test_every_rung_of_the_ladder_is_bought_by_its_name(tmp_path: Path, strategy: str, budget: tacit.Budget) -> None:
    with start(tmp_path, budget=budget, confidence=1 - 1e-9) as session:
        if strategy in ("square root", "circle") and budget == PURE:
            with pytest.raises(InvalidQuery, match="Gaussian noise"):
                session.cdf("income", strategy=strategy)
            return
        cdf = session.cdf("income", strategy=strategy, share=0.3)
        assert float(cdf.cost) == pytest.approx(0.3 * float(session.total), rel=1e-3)
        assert cdf.why == f"asked for: {strategy}."
        true = np.array([(ROWS.income < end).sum() for end in cdf.ends[:-1]])
        assert np.abs(cdf.values[:-1] - true).max() <= cdf.error
        spent = session.spent
        again = session.cdf("income", strategy=strategy, share=0.3)
        assert np.array_equal(again.values, cdf.values)
        assert session.spent == spent
        usual = session.cdf("age", strategy=strategy)
        assert float(usual.cost) == pytest.approx(0.1 * float(session.total), rel=1e-3)
        with pytest.raises(InvalidQuery, match="strategy is one of cells, binary tree"):
            session.cdf("income", strategy="ladder")
        with pytest.raises(InvalidQuery, match="no order"):
            session.cdf("sex", strategy=strategy)


BESIDE = [
    "SELECT SUM(a), AVG(a) FROM data",
    "SELECT COUNT(*), SUM(a), AVG(a), COUNT(*) FILTER (WHERE b = 1) FROM data",
    f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE a <= {i})' for i in range(11))}, MEDIAN(a) FROM data",
]
PLAIN: list[dict[str, Any]] = [
    {"mechanism": "direct"},
    {"mechanism": "iterative", "hits": 5, "warm": 0.0},
    {"mechanism": "median", "hits": 5, "warm": 0.0},
    {"mechanism": "histogram", "start": True},
]


@pytest.mark.parametrize("settings", PLAIN, ids=lambda settings: settings["mechanism"])
@pytest.mark.parametrize("sql", BESIDE)
def test_a_release_and_the_counts_that_it_tells_are_bought_in_one_statement(
    tmp_path: Path, settings: dict[str, Any], sql: str
) -> None:
    """What is shown stays, alone and together, and costs what was spent: the release comes before the counts."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"a": rng.integers(0, 12, 3_000), "b": rng.integers(0, 5, 3_000)})
    domain = tacit.Domain({"a": tacit.integer(0, 11), "b": tacit.category(list(range(5)))})
    budget = tacit.Budget(epsilon=1.0, delta=0.0)
    with tacit.open(data=rows, domain=domain, budget=budget, ledger=tmp_path / "l.tacit", **settings) as session:
        most = session.dry_run(sql).cost_at_most.atoms
        first = session.ask(sql)
        assert isinstance(first, Listing)
        assert 0 < first.cost.atoms == session.spent.atoms <= most
        again = session.ask(sql)
        assert isinstance(again, Listing)
        assert again.listed == first.listed
        values = dict(zip(first.titles, first.listed[0].values, strict=True))
        for title in {"SUM(a)", "AVG(a)", "COUNT(*) FILTER(WHERE a <= 3)"} & set(values):
            assert session.ask(f"SELECT {title} FROM data").value == values[title]
        assert session.spent.atoms == first.cost.atoms
