"""What is already bought: what each release tells, and bars that hold by the law of its noise, counted out exactly."""

from __future__ import annotations

import itertools
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from support import once
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.facts import NOISE, Receipt
from tacit.model.noise_law import Noise, pmf
from tacit.model.query import Query
from tacit.model.workload import GRAIN, Convolution, Marginal, Product, Strategy, Tree, marginal
from tacit.release import range_parts
from tacit.release.evidence import RangesOf
from tacit.release.purchases import Purchase, split
from tacit.release.ranges.flat_table import FlatTable

DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 4, missing="unknown"),
        "pay": tacit.integer(0, 3),
        "sex": tacit.category(["F", "M"]),
    }
)
ROWS = 400
RNG = np.random.Generator(np.random.PCG64(8))
CELLS: NDArray[np.int64] = RNG.multinomial(ROWS, np.full(DOMAIN.size, 1 / DOMAIN.size)).reshape(DOMAIN.shape)
LAWS = [Noise("laplace", 0.7), Noise("gaussian", 0.9)]


def purchase(
    question: Marginal | Strategy, values: NDArray[np.int64], noise: Noise, confidence: float = 0.9
) -> Purchase:
    measured = Measured(
        key="k",
        question=question,
        values=values.ravel(),
        unit=1,
        noise=noise,
        cost=Loss.of("epsilon", 1.0),
        receipt=Receipt(3, "s"),
    )
    return Purchase(measured, DOMAIN, ROWS, confidence)


def counts(*names: str, where: Query | None = None) -> NDArray[np.int64]:
    """The true table of some attributes, in the order of their names."""
    weights = np.ones(DOMAIN.shape, dtype=np.int64) if where is None else where.table(DOMAIN.names, DOMAIN.shape)
    beyond = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in names)
    kept = [name for name in DOMAIN.names if name in names]
    table = (CELLS * weights).sum(axis=beyond)
    return np.transpose(table, [kept.index(name) for name in sorted(names)])


def truth(query: Query) -> int:
    return int((query.table(DOMAIN.names, DOMAIN.shape) * CELLS).sum())


def among(name: str, *values: int) -> Query:
    return Query.among(DOMAIN, name, values)


def exact(noise: Noise, draws: int) -> NDArray[np.float64]:
    """The law of a sum of independent draws, from -r to r for an r beyond which nothing counts."""
    one = pmf(noise, np.arange(-40, 41))
    return reduce(np.convolve, [one] * draws)


QUERIES = [
    among("age", 1),
    ~among("age", 1),
    among("age", 0, 1, 2, 3),
    among("pay", 0, 2),
    among("sex", 0),
    among("sex", 1),
    among("age", 0, 1) & among("pay", 3),
    ~(among("age", 0, 1) & among("pay", 3)),
    Query.weighted(DOMAIN, ["pay"], [0, 0.25, 0.5, 1.0]),
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_without_noise_every_release_tells_the_truth(query: Query) -> None:
    quiet = Noise("laplace", 0.01)
    tables = [("age", "pay", "sex"), ("age", "pay"), ("age",), ("pay",), ("sex",)]
    told = [purchase(marginal(DOMAIN, *names), counts(*names), quiet) for names in tables]
    told += [purchase(Tree("pay", (4,), (1,)), counts("pay"), quiet)]
    told += [purchase(Convolution("age", 0, False), GRAIN * counts("age"), quiet)]
    nodes = [Tree("age", (6,), (1,)), Tree("pay", (4,), (1,))]
    told += [purchase(Product(nodes[0], nodes[1]), counts("age", "pay"), quiet)]
    telling = [one for one in told if one.covers(query)]
    assert telling
    for one in telling:
        assert one.estimate(query).value == truth(query)
        assert one.scope.issuperset(query.scope)


@pytest.mark.parametrize("noise", LAWS, ids=lambda noise: noise.kind)
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_bar_read_off_a_table_holds_by_the_exact_law(query: Query, noise: Noise) -> None:
    """The miss of the bar is summed up from the probabilities of all sums of noise that are larger."""
    for names in (query.scope, ("age", "pay", "sex")):
        table = purchase(marginal(DOMAIN, *names), counts(*names), noise)
        for confidence in (0.5, 0.9, 0.995):
            width = table.release.law(query, confidence)
            weights = query.table(sorted(names), [DOMAIN[name].size for name in sorted(names)])
            side = (
                weights if np.count_nonzero(weights) <= np.count_nonzero(query.unit - weights) else query.unit - weights
            )
            if query.unit == 1:
                law = exact(noise, int(np.count_nonzero(side)))
                reach = len(law) // 2
                sizes = np.abs(np.arange(-reach, reach + 1))
                assert law[sizes > width].sum() <= 1 - confidence + 1e-9
            # Around any value whatever the bar is as much wider as the value is off.
            shown = truth(query) + 7 * query.unit
            off = abs(shown - table.release.value(query))
            assert table.release.reach(query, shown, confidence) == off + width


def test_weights_count_by_their_squares() -> None:
    table = purchase(marginal(DOMAIN, "age"), counts("age"), Noise("gaussian", 20.0))
    light, heavy = (Query.weighted(DOMAIN, ["age"], [*[weight] * 5, 0.0]) for weight in (0.1, 0.9))
    assert table.release.law(light, 0.95) < table.release.law(heavy, 0.95) / 1.2


def test_a_table_of_some_rows_tells_what_lies_among_them() -> None:
    women, young = among("sex", 0), among("age", 0, 1)
    quiet = Noise("laplace", 0.01)
    table = purchase(marginal(DOMAIN, "pay", where=women), counts("pay", where=women), quiet)
    for query in (women & among("pay", 2), women, women & among("pay", 0, 3), ~(women & among("pay", 1))):
        assert table.covers(query)
        assert table.estimate(query).value == truth(query)
    for query in (among("pay", 2), among("sex", 1) & among("pay", 2), women & young, women & among("pay", 2) & young):
        assert not table.covers(query)
    own = purchase(marginal(DOMAIN, "age", where=young), counts("age", where=young), quiet)
    assert own.estimate(among("age", 1)).value == truth(among("age", 1))
    assert not own.covers(among("age", 3))
    both = purchase(marginal(DOMAIN, "age", where=young & women), counts("age", where=young & women), quiet)
    assert both.estimate(women & among("age", 1)).value == truth(women & among("age", 1))
    assert not both.covers(women & among("age", 3))
    assert not both.covers(among("age", 1))


@pytest.mark.parametrize("noise", LAWS, ids=lambda noise: noise.kind)
def test_the_band_of_a_table_holds_for_all_cumulative_counts_at_once(noise: Noise) -> None:
    """All combinations of noise in the cells of one attribute, each with its probability."""
    truths = counts("pay")
    reach = np.arange(-9, 10)
    drawn = np.array(list(itertools.product(reach, repeat=4)))
    chance = pmf(noise, drawn).prod(axis=1)
    confidence, missed = 0.8, 0.0
    bought = purchase(marginal(DOMAIN, "pay"), truths, noise, confidence)
    table = bought.ranges(("pay",))
    assert isinstance(table, FlatTable)
    width, steps = table.cdf().half_width, np.cumsum(truths)
    # Up to the middle sums from the left, then n less sums from the right.
    left, right = np.cumsum(drawn, axis=1)[:, :1], np.cumsum(drawn[:, ::-1], axis=1)[:, :2]
    errors = np.abs(np.concatenate([left, right], axis=1)).max(axis=1)
    missed = float(chance[errors > width].sum()) + (1 - float(chance.sum()))
    assert missed <= 1 - confidence
    assert float(chance[errors > width / 2].sum()) > 1 - confidence  # half as wide it would not hold
    assert (np.abs(table.cdf().values - steps) <= width).all()


def test_the_shares_of_what_may_go_wrong_add_up() -> None:
    for confidence in (0.5, 0.95, 0.999):
        found = split(confidence)
        assert (1 - found.read) + (1 - found.others) == pytest.approx(1 - confidence)
        assert 1 - found.read == pytest.approx((1 - confidence) / 10)


ROWS_OF_PEOPLE = pd.DataFrame(
    {"age": RNG.integers(0, 5, 2_000), "pay": RNG.integers(0, 4, 2_000), "sex": RNG.choice(["F", "M"], 2_000)}
)
SOURCE = once(ROWS_OF_PEOPLE)


def session(folder: Path, **changes: Any) -> tacit.Session:
    given: dict[str, Any] = {"mechanism": "iterative", "questions": 50, "hits": 4, "warm": 0.6, "start": True}
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    return tacit.open(data=SOURCE, domain=DOMAIN, budget=budget, ledger=folder / "l.tacit", **(given | changes))


def test_a_free_answer_inside_a_table_has_the_bar_of_that_table_too(tmp_path: Path) -> None:
    with session(tmp_path) as asked:
        cells = [tacit.count(age=age, sex=sex) for age in (0, 1, 2, 3, 4, None) for sex in "FM"]
        answers = asked.ask_many(cells)
        read = [[bar for bar in one.bars if bar.about == NOISE] for one in answers if one.source != "measured"]
        assert any(read)
        for one in answers:
            assert one.error == min(bar.width for bar in one.bars)
        again = asked.ask_many(cells)
        assert [one.bars for one in again] == [one.bars for one in answers]
        table = asked.table("age", "sex")
        assert table.error == max(one.error for one in answers if one.error is not None)
        asked.cdf("age", share=0.05)  # what is bought later changes no bar
        assert [one.bars for one in asked.ask_many(cells)] == [one.bars for one in answers]
    with session(tmp_path) as later:
        assert [one.bars for one in later.ask_many(cells)] == [one.bars for one in answers]


def test_shown_bars_hold_as_often_as_they_say(tmp_path: Path) -> None:
    """In 60 sessions: fewer than one in twenty would be no accident at a false alarm rate of 1e-9 from 23 on."""
    questions = [tacit.count(age=age) for age in range(5)] + [tacit.count(age=age, pay=1) for age in range(5)]
    missed = 0
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        with session(folder, confidence=0.95) as asked:
            one = asked.ask_many(questions)[number % len(questions)]
        age = number % len(questions) % 5
        rows = ROWS_OF_PEOPLE.age == age
        true = int((rows & (ROWS_OF_PEOPLE.pay == 1)).sum() if number % len(questions) >= 5 else rows.sum())
        assert one.error is not None
        missed += abs(one.value - true) > one.error
    assert missed <= 14  # 60 draws of 5 %: more than 14 have a chance below 1e-6


def test_ranges_that_were_bought_by_another_strategy_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version chose otherwise; what it bought is what is answered from, with a share or without."""
    domain = tacit.Domain({"x": tacit.integer(0, 299), "y": tacit.category(["a", "b"])})
    data = pd.DataFrame({"x": np.arange(600) % 300, "y": ["a"] * 600})
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)

    def opened() -> tacit.Session:
        return tacit.open(data=data, domain=domain, budget=budget, ledger=tmp_path / "l.tacit", mechanism="direct")

    with monkeypatch.context() as earlier, opened() as session:
        earlier.setattr(range_parts, "signal", lambda rows, loss: np.inf)
        before = session.cdf("x", share=0.1)
        assert before.cost.atoms
        assert "factorisation" in before.why
    with opened() as session:
        again = session.cdf("x", share=0.1)
        assert not again.cost.atoms
        assert "factorisation" in again.why
        np.testing.assert_array_equal(again.values, before.values)
        assert (
            session._parts.ranges.strategy(RangesOf(("x",), None))
            != session._parts.bought.ranges_of(("x",))[0].measured.question
        )
