"""What is read off a release of residuals: answers without noise are the truth, and bars hold by the exact law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from curators import curating, public_of
from support import events
from tacit.model.budget import Loss
from tacit.model.entry import Measured, Start
from tacit.model.facts import Facts, Receipt
from tacit.model.noise_law import Noise, pmf, quantile, quantile_of_sum, variance
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import marginal
from tacit.release.classes import _answers
from tacit.release.estimate import Estimate
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.noisy_residuals import NoisyResiduals
from tacit.release.noise_sum import Draws, width_of_bridge, width_of_sum
from tacit.release.purchases import Bought, Purchase, split
from tacit.release.ranges.flat_table import FlatTable
from tacit.release.synthetic import Synthetic
from tacit.show.events import pictures
from tacit.show.report import page

Ints = NDArray[np.int64]

DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 2, missing="unknown"),
        "pay": tacit.integer(0, 4),
        "one": tacit.category(["x"]),
        "sex": tacit.category(["F", "M"]),
    }
)
SMALL = tacit.Domain({"a": tacit.integer(0, 2), "b": tacit.category(["x", "y"])})
ROWS = 437
LAWS = [Noise("laplace", 0.7), Noise("gaussian", 0.9), Noise("gaussian", 2.5)]


def cells(domain: tacit.Domain) -> Ints:
    found: Ints = np.random.default_rng(8).multinomial(ROWS, np.full(domain.size, 1 / domain.size))
    return found.reshape(domain.shape)


def counts(domain: tacit.Domain, scope: tuple[str, ...]) -> Ints:
    """The true table of some attributes, in the order of their names."""
    kept = [name for name in domain.names if name in scope]
    table = cells(domain).sum(axis=tuple(axis for axis, name in enumerate(domain.names) if name not in scope))
    return np.transpose(table, [kept.index(name) for name in scope])


def residuals(domain: tacit.Domain, order: int) -> Residuals:
    names = sorted(name for name in domain.names if domain[name].size > 1)
    scopes = [scope for k in range(1, order + 1) for scope in itertools.combinations(names, k)]
    return Residuals(tuple(scopes), tuple(3 + 5 * i % 7 for i in range(len(scopes))))


def answers(domain: tacit.Domain, question: Residuals) -> Ints:
    return question.answers(counts(domain, scope) for scope in question.scopes)


def purchase(
    domain: tacit.Domain, question: Residuals, values: Ints, noise: Noise = LAWS[0], confidence: float = 0.9
) -> Purchase:
    measured = Measured(
        key="k",
        question=question,
        values=values,
        unit=1,
        noise=noise,
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(3, "s"),
    )
    return Purchase(measured, domain, ROWS, confidence)


def released(domain: tacit.Domain, question: Residuals, values: Ints, noise: Noise = LAWS[0]) -> NoisyResiduals:
    found = purchase(domain, question, values, noise).release
    assert isinstance(found, NoisyResiduals)
    return found


def truth(domain: tacit.Domain, query: Query) -> int:
    return int((query.table(domain.names, domain.shape) * cells(domain)).sum())


def among(domain: tacit.Domain, name: str, *values: int) -> Query:
    return Query.among(domain, name, values)


def queries() -> list[Query]:
    age, pay, sex = (lambda *v, name=name: among(DOMAIN, name, *v) for name in ("age", "pay", "sex"))
    ramp = Query.weighted(DOMAIN, ["pay"], np.linspace(0, 1, 5))
    slope = Query.weighted(DOMAIN, ["age"], [0.1, 1 / 3, 0.7, 0])
    tied = Query.weighted(DOMAIN, ["age", "sex"], [[0, 1], [1, 1], [0, 1], [1, 0]])
    plain = [age(1), age(0, 3), pay(0, 1, 2), sex(0), sex(1), age(0, 1) & pay(3), age(2) & pay(0, 4) & sex(1), tied]
    weighted = [ramp, ramp & sex(0), ramp & sex(1) & age(0, 2), ramp & slope, Query.weighted(DOMAIN, ["sex"], [0.3, 1])]
    return [one for query in (*plain, tied & pay(2), *weighted) for one in (query, ~query)]


@pytest.mark.parametrize("query", queries(), ids=range(len(queries())))
def test_without_noise_the_truth_is_read_off(query: Query) -> None:
    question = residuals(DOMAIN, 3)
    found = purchase(DOMAIN, question, answers(DOMAIN, question))
    assert found.covers(query)
    assert found.estimate(query).value == truth(DOMAIN, query)
    assert found.release.reach(query, truth(DOMAIN, query) + 5, 0.9) == 5 + found.release.law(query, 0.9)


def test_counts_beyond_64_bits_on_the_way_are_exact() -> None:
    """Weights, cells and rows as large as one release takes: what is summed up on the way has up to 90 bits."""
    question = Residuals((("a",), ("b",), ("a", "b")), (2**20, 2**21 - 1, 2**19 + 1))
    rows = cells(SMALL) * 2**31
    values = question.answers([rows.sum(axis=1), rows.sum(axis=0), rows])
    measured = Measured(
        key="k",
        question=question,
        values=values,
        unit=1,
        noise=LAWS[0],
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(3, "s"),
    )
    found = NoisyResiduals(measured, SMALL, ROWS * 2**31, 0.9)
    ramp = Query.weighted(SMALL, ["a"], [0.25, 1 / 3, 1])
    for query in (among(SMALL, "a", 1), among(SMALL, "a", 1) & among(SMALL, "b", 0), ramp, ramp & among(SMALL, "b", 1)):
        assert found.value(query) == int((query.table(SMALL.names, SMALL.shape) * rows).sum())
    assert found.table(marginal(SMALL, "a", "b")).values.tolist() == rows.tolist()
    ranges = FlatTable(found.values_of("a"), "a", SMALL, ROWS * 2**31, 0.9)
    assert ranges.cdf().values.tolist() == np.cumsum(rows.sum(axis=1)).tolist()
    true = float(np.arange(3) @ rows.sum(axis=1)) / float(rows.sum())
    assert ranges.mean().value == pytest.approx(true)


def test_what_lacks_a_residual_is_not_covered() -> None:
    pairs = residuals(DOMAIN, 2)
    some = Residuals(pairs.scopes[1:], pairs.weights[1:])  # without the first attribute by itself
    age, pay, sex = among(DOMAIN, "age", 1), among(DOMAIN, "pay", 1), among(DOMAIN, "sex", 1)
    for question, covered in ((pairs, [age, pay, age & pay, pay & sex]), (some, [pay, pay & sex])):
        found = purchase(DOMAIN, question, answers(DOMAIN, question))
        for query in (age, pay, age & pay, pay & sex, age & pay & sex, Query.constant(everyone=True)):
            assert found.covers(query) == (query in covered)
    found = purchase(DOMAIN, some, answers(DOMAIN, some))
    assert found.ranges(("age",)) is None
    assert found.ranges(("pay", "age")) is None
    assert found.table(marginal(DOMAIN, "age", "pay")) is None


# -- the law ----------------------------------------------------------------------------------------------------------


def coefficients(query: Query, question: Residuals, unit: int = 1) -> list[Fraction]:
    """What each released number counts for in an answer, by moving it by so much that nothing is rounded."""
    step = 2**20 * 3**4 * math.prod(question.weights)
    values = np.zeros(question.size(SMALL), dtype=np.int64)
    level = released(SMALL, question, values).value(query)
    found = []
    for i in range(values.size):
        moved = values.copy()
        moved[i] = step
        found.append(Fraction(released(SMALL, question, moved).value(query) - level, step * unit))
    return found


def law_of(weights: list[Fraction], noise: Noise, reach: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sums that independent draws with these weights can come to, and their probabilities."""
    whole = math.lcm(*(weight.denominator for weight in weights))
    laws = []
    for weight in weights:
        if many := abs(int(weight * whole)):
            spread = np.zeros(2 * reach * many + 1)
            spread[::many] = pmf(noise, np.arange(-reach, reach + 1))
            laws.append(spread)
    law = reduce(np.convolve, laws)
    middle = len(law) // 2
    return np.arange(-middle, middle + 1) / whole, law


SMALL_QUERIES = [
    among(SMALL, "a", 1),
    among(SMALL, "a", 0, 2),
    among(SMALL, "b", 0),
    among(SMALL, "a", 1) & among(SMALL, "b", 1),
    ~(among(SMALL, "a", 0, 1) & among(SMALL, "b", 0)),
    Query.weighted(SMALL, ["a", "b"], [[1, 0], [0, 1], [0, 0]]),
    Query.weighted(SMALL, ["a"], [0, 0.5, 1.0]),
    Query.weighted(SMALL, ["a"], [0, 0.5, 1.0]) & among(SMALL, "b", 1),
]


@pytest.mark.parametrize("noise", LAWS, ids=str)
@pytest.mark.parametrize("query", SMALL_QUERIES, ids=range(len(SMALL_QUERIES)))
def test_a_bar_holds_by_the_exact_law(query: Query, noise: Noise) -> None:
    question = Residuals((("a",), ("b",), ("a", "b")), (1, 1, 1))
    read = released(SMALL, question, answers(SMALL, question), noise)
    weights = coefficients(query, question, query.unit)
    squares = float(sum(weight**2 for weight in weights))
    spread = read._drawn(query)
    assert spread.squares == pytest.approx(squares, rel=1e-9)
    assert spread.largest == pytest.approx(float(max(map(abs, weights))), rel=1e-9)
    assert spread.draws >= sum(weight != 0 for weight in weights)
    errors, law = law_of(weights, noise, reach=int(9 * noise.scale) + 9)
    assert law @ errors**2 == pytest.approx(squares * variance(noise), rel=1e-3)
    for confidence in (0.5, 0.9, 0.995):
        width = read.law(query, confidence)
        missed = float(law[np.abs(np.floor(errors * query.unit + 0.5)) > width].sum()) + max(0.0, 1 - float(law.sum()))
        assert missed <= 1 - confidence + 1e-9
        # A third as wide it would not hold, where rounding has no say.
        if query.unit > 1 and confidence >= 0.9:
            assert float(law[np.abs(errors * query.unit) > width / 3].sum()) > 1 - confidence


@pytest.mark.parametrize(
    "noise",
    [Noise("gaussian", 0.6), Noise("gaussian", 3.0), Noise("gaussian", 12.0), LAWS[0], Noise("laplace", 6.0)],
    ids=str,
)
def test_the_bar_of_a_weighted_sum_holds_by_the_exact_law(noise: Noise) -> None:
    for weights in ([1], [1, 1], [1, -2, 3], [5, 1, 1, 1, 1], [2] * 6):
        errors, law = law_of([Fraction(weight) for weight in weights], noise, reach=int(9 * noise.scale) + 9)
        for confidence in (0.5, 0.9, 0.99, 0.99995):
            given = sum(w * w for w in weights), max(map(abs, weights)), len(weights)
            width = width_of_sum(Draws(noise, *given), confidence)
            assert float(law[np.abs(errors) > width].sum()) <= 1 - confidence + 1e-9


def test_laplace_bars_are_close_to_those_of_plain_sums() -> None:
    """Of equal weights, for which the quantile is known exactly."""
    noise = Noise("laplace", 300.0)
    for terms, most in ((1, 1.08), (4, 1.03), (40, 1.015), (1000, 1.01)):
        for confidence in (0.9, 0.95, 0.995):
            plain = quantile_of_sum(noise, terms, confidence)
            found = width_of_sum(Draws(noise, terms, 1.0, terms), confidence)
            assert plain <= found + 1 <= most * plain


def test_gaussian_bars_are_those_of_a_normal_sum_where_the_scale_is_large() -> None:
    for confidence in (0.9, 0.95, 0.995):
        plain = quantile(Noise("gaussian", 4000.0), confidence)
        found = width_of_sum(Draws(Noise("gaussian", 4000.0), 1.0, 0.1, 200_000), confidence)
        assert plain <= found + 1 <= 1.005 * plain + 1


@pytest.mark.parametrize(
    ("noise", "draws", "reach"),
    [(LAWS[0], 4, 11), (LAWS[1], 4, 7), (Noise("gaussian", 4.0), 3, 30), (Noise("gaussian", 4.0), 2, 40)],
    ids=str,
)
def test_the_band_of_a_bridge_holds_for_all_prefixes_at_once(noise: Noise, draws: int, reach: int) -> None:
    drawn = np.array(list(itertools.product(range(-reach, reach + 1), repeat=draws)))
    chance = pmf(noise, drawn).prod(axis=1)
    sums = np.cumsum(drawn, axis=1)
    largest = np.abs(sums - sums[:, -1:] * np.arange(1, draws + 1) / draws).max(axis=1)
    for confidence in (0.5, 0.8, 0.98):
        width = width_of_bridge(noise, draws, confidence)
        assert float(chance[largest > width].sum()) + (1 - float(chance.sum())) <= 1 - confidence
        if confidence >= 0.8:
            assert float(chance[largest > width / 3].sum()) > 1 - confidence  # a third as wide it would not hold


def test_the_band_of_many_values_is_kolmogorovs() -> None:
    width = width_of_bridge(Noise("gaussian", 1e5), 400, 0.95)
    assert 1.358 * 20 * 1e5 <= width <= 1.365 * 20 * 1e5


# -- tables and ranges ------------------------------------------------------------------------------------------------


def noisy(question: Residuals, domain: tacit.Domain = DOMAIN, scale: float = 400.0) -> Ints:
    draws = np.random.default_rng(5).normal(0, scale, question.size(domain))
    return answers(domain, question) + np.rint(draws).astype(np.int64)


@pytest.mark.parametrize("names", [("sex",), ("age",), ("age", "sex"), ("age", "one"), ("age", "pay", "sex")], ids=str)
@pytest.mark.parametrize("where", [None, among(DOMAIN, "sex", 1), among(DOMAIN, "age", 0, 2)], ids=range(3))
def test_every_cell_of_a_table_is_its_own_question(names: tuple[str, ...], where: Query | None) -> None:
    question = residuals(DOMAIN, 3)
    asked = marginal(DOMAIN, *names, where=where)
    for scale in (0.0, 1.0, 400.0):  # around 0, halves of a row are frequent
        found = purchase(DOMAIN, question, noisy(question, scale=scale), Noise("gaussian", scale or 0.01))
        table = found.table(asked)
        assert table is not None
        laws = []
        for cell, value in zip(asked.queries(DOMAIN), table.values.flat, strict=True):
            if not cell.is_constant:
                assert value == found.estimate(cell).value
                laws.append(found.release.law(cell, 0.9))
        assert table.facts.width == max(laws)


@pytest.mark.parametrize("name", ["age", "pay"])
def test_ranges_have_the_counts_that_they_have_anywhere_else(name: str) -> None:
    question = residuals(DOMAIN, 2)
    for scale in (0.0, 1.0, 400.0):
        found = purchase(DOMAIN, question, noisy(question, scale=scale), Noise("gaussian", scale or 0.01))
        ranges = found.ranges((name,))
        assert isinstance(ranges, FlatTable)
        for first in range(DOMAIN[name].bins):
            for last in range(first, DOMAIN[name].bins):
                query = among(DOMAIN, name, *range(first, last + 1))
                told = ranges.counts(first, last)
                if not query.is_constant:
                    assert float(told.values) == found.estimate(query).value
                    assert float(told.errors) == found.release.law(query, 0.9)
        band, curve = ranges.cdf().half_width, np.cumsum(counts(DOMAIN, (name,)))[: DOMAIN[name].bins]
        if scale:
            assert band >= float(ranges.counts(0, 1).errors)
        else:
            assert ranges.cdf().values.tolist() == curve.tolist()
            assert band == 0
            middles = np.arange(DOMAIN[name].bins)
            true = float(middles @ counts(DOMAIN, (name,))[: DOMAIN[name].bins]) / curve[-1]
            assert ranges.mean().value == pytest.approx(true)
            at = ranges.quantile(0.5)
            assert at.first <= int(np.searchsorted(curve, curve[-1] / 2)) <= at.last


# -- through the ledger -----------------------------------------------------------------------------------------------

DATA = pd.DataFrame({"a": [0, 0, 0, 1, 1, 2] * 50, "b": ["x", "x", "y", "x", "y", "y"] * 50})
BUDGET = tacit.Budget(epsilon=20, delta=1e-6)


def test_what_learns_has_bars_from_it_and_its_own_say(tmp_path: Path) -> None:
    question = Residuals((("a",), ("b",), ("a", "b")), (2, 3, 1))
    query = among(SMALL, "a", 0) & among(SMALL, "b", 0)
    true = 100
    with curating(tmp_path, DATA, SMALL, BUDGET) as curator:
        public = public_of(curator)
        (measured,) = curator.measure([question], Loss.of("gdp", 1.0), start=Start(0))
        learning, other = Bought(public, 0.95, learned=True), Bought(public, 0.95, learned=False)
        learning.catch_up()
        other.catch_up()
        assert learning.first(query) is None
        assert learning.source(("a",)) is None
        assert learning.ranges_of(("a",)) is None
        assert other.ranges_of(("a",)) is None
        first = other.first(query)
        assert first is not None
        told = other.told(query, None)
        assert told is not None
        assert abs(told.value - true) <= (told.facts.width or 0)  # by the seed
        assert next(other.tables(marginal(SMALL, "a", "b")))[1].values[0, 0] == told.value
        # An answer of another source gets the bar that this release gives it, and nothing before it does.
        free, sure = Loss("rho", 0), split(0.95).read
        for entry, bars in ((measured.receipt.entry + 1, 1), (measured.receipt.entry, 0)):
            answer = Estimate(true + 30, Facts("hypothesis", free, 0.95, Receipt(entry, "s")))
            barred = learning.barred(query, answer).facts.bars
            assert [bar.width for bar in barred] == [first.release.reach(query, true + 30, sure)] * bars
        rows = np.array([150.0, 250.0, 300.0])
        width = learning.band("a", rows, measured.receipt.entry + 1)
        assert width is not None
        assert 0 < width < 100
        assert learning.band("a", rows, measured.receipt.entry) is None


def test_made_up_rows_are_compared_with_every_table_of_the_release() -> None:
    question = residuals(SMALL, 2)
    codes = [np.repeat(places, cells(SMALL).ravel()) for places in np.indices(SMALL.shape).reshape(2, -1)]
    noise = Noise("gaussian", 50.0)
    measured = purchase(SMALL, question, noisy(question, SMALL, 50.0), noise).measured
    found = Synthetic.of(SMALL, codes, ROWS, [measured]).distances
    assert [one.about for one in found] == ["table of a", "table of b", "table of a, b"]
    assert [one.cells for one in found] == [3, 2, 6]
    for one in found:  # the rows are the table itself, so noise is all that they are off by
        assert one.noise > 0
        assert one.largest < 5 * one.noise
        assert one.noise / 5 < one.mean


def test_what_a_hypothesis_would_answer_is_what_the_same_table_answers() -> None:
    question = residuals(DOMAIN, 3)
    twin = Dense(DOMAIN, cells(DOMAIN) / ROWS)
    assert _answers(question, twin, ROWS) == pytest.approx(answers(DOMAIN, question).astype(np.float64), abs=1e-6)


def test_a_report_draws_each_attribute_of_the_release(tmp_path: Path) -> None:
    with tacit.open(
        start=True, data=DATA, domain=SMALL, budget=BUDGET, ledger=tmp_path / "l", mechanism="direct"
    ) as session:
        assert session._curator is not None
        session._curator.measure([residuals(SMALL, 2)], Loss.of("gdp", 0.1))
        (event,) = [one for one in events(session) if isinstance(one.answer, Measured)]
        assert event.kind == "table"
        shown = list(pictures(event, session))
        assert [one.question for one in shown] == [f"{name}, from the {event.question}" for name in ("a", "b")]
        assert [float(one.values.sum()) for one in shown] == pytest.approx([300, 300], abs=2)
        assert event.question in page(session)
        # A table that is asked for later is read off it, for nothing.
        spent = session.spent
        assert session.table("a", "b").values.shape == (3, 2)
        assert session.cdf("a").values[-1] == 300
        assert session.spent == spent
