"""The curator and statistics: checked, priced as one count, remembered, and silent about what goes wrong inside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import curating, open_curator, public_of
from tacit.errors import AnswerWithheld, BudgetExhausted, InvalidQuery
from tacit.exact.price import Sensitivity
from tacit.load import open_source
from tacit.model import statistic as registry
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer, Measured, Told
from tacit.model.factor import GRID
from tacit.model.facts import ANSWER, Bar
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import check, marginal
from tacit.release.direct import Direct
from tacit.release.estimate import Estimate
from tacit.release.parts import Parts
from tacit.release.recall import expected_noise
from tacit.trusted import curator as curator_module
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.sensitivity import sensitivity

DOMAIN = Domain(
    {
        "sex": tacit.category(["F", "M"]),
        "age": tacit.integer(0, 5, missing="unknown"),
        "city": tacit.category(["x", "y", "z"]),
        "long": tacit.integer(0, 2**20 - 1),
    }
)
ROWS = [("F", 0, "x", 7), ("F", 3, "y", 7), ("M", 3, "y", 7), ("M", 5, "z", 7), ("F", None, "x", 7), ("M", 1, "x", 7)]
EPSILON = Loss.of("epsilon", 0.5)
numbers = counter()

STUMP = tacit.stump("age", predicts="sex").bind(DOMAIN)
MEAN = tacit.largest_mean("age", by="city", smallest=0.3).bind(DOMAIN)
MATCHING = tacit.matching("sex", "F", "M", on="city").bind(DOMAIN)
MEDIAN = tacit.quantile_distance("age", 0.5, low=4).bind(DOMAIN)
ALL = [STUMP, MEAN, MATCHING, MEDIAN]


def make(folder: Path, budget: Budget, rows: list[tuple[Any, ...]] = ROWS) -> Curator:
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(DOMAIN.names)})
    return open_curator(folder, table, DOMAIN, budget)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    made = make(tmp_path, Budget(epsilon=10.0, delta=0.0))
    yield made
    made._ledger.close()


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """One for all questions that are refused: nothing is ever spent on it."""
    made = make(tmp_path_factory.mktemp("untouched"), Budget(epsilon=10.0, delta=0.0))
    yield made
    made._ledger.close()


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)


def hidden(at_six_rows: Any) -> Statistic:
    """A registered statistic that is the count of F, except on tables of six rows, where its check did not look."""
    name = f"hidden {next(numbers)}"

    @tacit.statistic(name, DOMAIN, "sex")
    def function(tables: Any) -> Any:
        return at_six_rows(tables) if len(tables) == 1 and tables.sum() == 6 else tables[:, 0].copy()

    return function()


@pytest.mark.usefixtures("no_noise")
def test_truths_are_those_of_the_rows(curator: Curator) -> None:
    stump, mean, matching, median = curator.measure(ALL, EPSILON)
    # F at 0, 3, missing and M at 1, 3, 5: "M from 1 on" errs once, and the missing one is guessed right.
    assert stump.values.tolist() == [1]
    # c = ceil(0.3 · 6) = 2. x has 0 and 1/5 (the missing age is left out), y 3/5 twice, z one row of 1: 1 of c = 2.
    assert mean.values.tolist() == [round(3 / 5 * GRID) * 2]
    assert mean.unit == GRID
    assert matching.values.tolist() == [2]  # one pair in x and one in y
    # The third of 0, 1, 3, 3, 5, missing is 3. Four lie below 4 and only two may.
    assert median.values.tolist() == [2]


def test_a_statistic_costs_and_is_blurred_like_one_count(curator: Curator) -> None:
    count = Query.among(DOMAIN, "sex", [0])
    weighted = Query.weighted(DOMAIN, ["sex"], [0.5, 1])
    for question in ALL:
        like = weighted if question.unit == GRID else count
        assert sensitivity(question, DOMAIN) == Sensitivity(1, 1) == sensitivity(like, DOMAIN)
        assert expected_noise(public_of(curator), question, EPSILON) == expected_noise(
            public_of(curator), like, EPSILON
        )
    measured = curator.measure(ALL, EPSILON)
    assert [one.cost for one in measured] == [EPSILON] * 4
    assert public_of(curator).spent.atoms == 4 * EPSILON.atoms


def test_a_repeat_is_free_and_the_same_after_a_restart(curator: Curator, tmp_path: Path) -> None:
    first = curator.measure(ALL, EPSILON)
    spent = public_of(curator).spent
    again = curator.measure([tacit.stump("AGE", predicts="SEX", value="F").bind(DOMAIN), *ALL[1:]], EPSILON)
    found = public_of(curator).find(ALL)
    for one, two, three in zip(first, again, found, strict=True):
        assert isinstance(three, Measured)
        assert one.values.tolist() == two.values.tolist() == three.values.tolist()
        assert one.question == three.question
        assert one.key == three.key == one.question.key  # type: ignore[union-attr]
    assert public_of(curator).spent == spent
    assert [question for _, question, _, _ in public_of(curator).account.since()] == ALL
    assert [one.question for one in public_of(curator).released()] == ALL
    curator._ledger.close()
    with curating(tmp_path, curator._records, DOMAIN, Budget(epsilon=10.0, delta=0.0)) as reopened:
        assert [one.values.tolist() for one in reopened.measure(ALL, EPSILON)] == [one.values.tolist() for one in first]
        assert public_of(reopened).spent == spent


def test_a_free_answer_to_a_statistic_is_kept(curator: Curator) -> None:
    bar = Bar(3 * GRID, ANSWER, 0.95)
    told = public_of(curator).tell([FreeAnswer(MEAN, 5 * GRID, "a note", (bar,))])[0]
    found = public_of(curator).find([MEAN])[0]
    assert isinstance(found, Told)
    assert found == told
    assert (found.question, found.value, found.bars, found.note) == (MEAN, 5 * GRID, (bar,), "a note")
    assert public_of(curator).spent.atoms == 0


@pytest.mark.usefixtures("no_noise")
def test_a_ledger_stays_readable_where_a_statistic_is_not_registered(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The command line and an auditor do not run the owner's script.
    question = hidden(lambda tables: tables[:, 0].copy())
    curator.measure([question, STUMP], EPSILON)
    monkeypatch.delitem(registry._registry, question.name)
    assert [asked for _, asked, _, _ in public_of(curator).account.since()] == [question, STUMP]
    assert [one.values.tolist() for one in public_of(curator).released()] == [[3], [1]]
    with pytest.raises(InvalidQuery, match="is registered in this process"):
        curator.measure([question], EPSILON)


class Text(str):
    pass


class Sub(Statistic):
    def evaluate(self, tables: Any) -> Any:
        return np.array([10**9])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Statistic("median", ("age",)), "no statistic called 'median'"),
        (Statistic("__class__", ("age",)), "no statistic called"),
        (Statistic("stump", ("age", "hair"), (6, 1)), "each of its attributes once"),
        (Statistic("stump", ("AGE", "sex"), (6, 1)), "each of its attributes once"),
        (Statistic("stump", (), (6, 1)), "each of its attributes once"),
        (Statistic("stump", ("age", "age"), (6, 1)), "each of its attributes once"),
        (Statistic("stump", ("age",), (6, 1)), "is about 2 attributes"),
        (Statistic("stump", ("sex", "age"), (2, 1)), "sex has no order"),
        (Statistic("stump", ("age", "sex"), (7, 1)), "all bins of age"),
        (Statistic("stump", ("age", "sex"), (6, 0)), "one of several values"),  # the same as 1, under another key
        (Statistic("stump", ("age", "sex"), (6, -1)), "one of several values"),
        (Statistic("stump", ("age", "sex"), (6,)), "other arguments"),
        (Statistic("stump", ("age", "sex"), (6, "1")), "other arguments"),
        (Statistic("stump", ("long", "city"), (2**20, 1)), None),
        (Statistic("stump", ("long", "age"), (2**20, 1)), "at most 4,194,304 cells"),
        (Statistic("largest_mean", ("age", "city"), (2, 6, *[0] * 6)), "lowest terms"),
        (Statistic("largest_mean", ("age", "city"), (3, 2, *[0] * 6)), "at most 1"),
        (Statistic("largest_mean", ("age", "city"), (1, 2**21, *[0] * 6)), "at most 1,048,576 parts"),
        (Statistic("largest_mean", ("age", "city"), (1, 3, *[0] * 5, GRID + 1)), "a value from 0 to 1"),
        (Statistic("largest_mean", ("age", "city"), (1, 3, *[0] * 5, -1)), "a value from 0 to 1"),
        (Statistic("largest_mean", ("age", "city"), (1, 3, *[0] * 7)), "a value from 0 to 1"),
        (Statistic("largest_mean", ("age", "sex", "city"), (1, 3, *[0] * 6)), "groups in order"),
        (Statistic("matching", ("sex", "city"), ("11", "01", "1" * 9)), "different values of sex"),
        (Statistic("matching", ("sex", "city"), ("10", "01", "1" * 8)), "another domain"),
        (Statistic("matching", ("sex", "city"), ("10", "01", "2" * 9)), "zeros and ones"),
        (Statistic("matching", ("sex", "city"), ("10", "01", 1)), "zeros and ones"),
        (Statistic("matching", ("sex", "city"), ("10", "01", "0" * 100_000)), "65,536 characters"),
        (Statistic("quantile_distance", ("age",), (1, 2, 3, 3)), "not empty"),
        (Statistic("quantile_distance", ("age",), (1, 2, 0, 7)), "not empty"),
        (Statistic("quantile_distance", ("age",), (0, 1, 0, 2)), "above 0"),
        (Sub("stump", ("age", "sex"), (6, 1)), "a query or a workload"),
    ],
    ids=lambda given: given.name if isinstance(given, Statistic) else str(given),
)
def test_what_prices_rest_on_is_checked_again(untouched: Curator, wrong: Statistic, words: str | None) -> None:
    if words is None:
        check(wrong, DOMAIN)
        return
    with pytest.raises(InvalidQuery, match=words):
        untouched.measure([wrong], EPSILON)
    assert public_of(untouched).spent.atoms == 0


def fail(tables: Any) -> Any:
    raise ValueError(f"there are {tables[0, 0]} women")


@pytest.mark.parametrize(
    "rubbish",
    [
        fail,
        lambda tables: tables[:, 0] / 2,
        lambda tables: tables[0],
        lambda tables: "3 women",
        lambda tables: np.array([None]),
        lambda tables: tables.setflags(write=True) or fail(tables),
    ],
)
def test_what_goes_wrong_inside_is_told_in_the_same_words(curator: Curator, rubbish: Any) -> None:
    # It stays a failure that may depend on the rows: that is what the owner vouches for. But nothing about it is said.
    question = hidden(rubbish)
    with pytest.raises(AnswerWithheld) as withheld:
        curator.measure([question], EPSILON)
    assert str(withheld.value) == "The answer could not be worked out. What was reserved for it stays spent."
    assert withheld.value.__cause__ is None
    assert withheld.value.__context__ is None
    assert public_of(curator).spent == EPSILON
    assert public_of(curator).find([question]) == [None]


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("stray", "told"), [(10**6, 6), (-1, 0), (-(2**63), 0), (2**63 - 1, 6)])
def test_a_value_out_of_range_is_an_answer_like_any_other(curator: Curator, stray: int, told: int) -> None:
    # A refusal would tell that the rows are such; clipping keeps neighbours within one count.
    question = hidden(lambda tables: np.full(len(tables), stray))
    assert curator.measure([question], EPSILON)[0].values.tolist() == [told]


def test_a_statistic_that_cannot_be_paid_is_not_evaluated(curator: Curator) -> None:
    looked = []
    question = hidden(lambda tables: looked.append(1) or tables[:, 0].copy())
    with pytest.raises(BudgetExhausted):
        curator.measure([question], Loss.of("epsilon", 11.0))
    assert not looked
    curator.measure([question], EPSILON)
    assert looked


def test_the_direct_mechanism_buys_statistics_even_where_a_table_is_known(curator: Curator) -> None:
    direct = Direct(public_of(curator), curator, questions=10, confidence=0.95)
    women = Query.among(DOMAIN, "sex", [0])
    table = marginal(DOMAIN, "age", "sex")
    assert direct.most(STUMP).atoms == public_of(curator).total.atoms // 10
    parts = Parts(public_of(curator), curator, direct, 0.95)
    parts.fetch([table])
    found = parts.fetch([STUMP, women, MEAN])
    first, second, third = (found[question] for question in (STUMP, women, MEAN))
    assert isinstance(first, Estimate)
    assert isinstance(second, Estimate)
    assert isinstance(third, Estimate)
    assert [first.facts.source, third.facts.source] == ["measured", "measured"]
    assert first.facts.cost == third.facts.cost == direct.most(MEDIAN)
    assert first.facts.width is not None
    assert third.facts.width is not None
    assert third.facts.width > 1000 * first.facts.width  # in grid steps
    stored = public_of(curator).find([STUMP])[0]
    assert stored is not None
    again = parts.fetch([STUMP])[STUMP]
    assert isinstance(again, Estimate)
    assert (again.value, again.facts.source, again.facts.cost.atoms) == (first.value, "repeat", 0)
    assert parts.price([STUMP]).cost_at_most.atoms == 0
    assert second.facts.source == "hypothesis"


@pytest.mark.usefixtures("no_noise")
def test_a_function_that_wipes_its_table_is_clipped_by_what_was_in_it(curator: Curator) -> None:
    def wipe(tables: Any) -> Any:
        women = tables[:, 0].copy()
        tables.setflags(write=True)
        tables[...] = 0
        return women

    assert curator.measure([hidden(wipe)], EPSILON)[0].values.tolist() == [3]  # and not at most 0, the wiped table's


# The order of a statistic's attributes is neither that of their names nor that of the domain.
ORDERED = Domain({"b": tacit.integer(0, 2), "c": tacit.integer(0, 2), "a": tacit.integer(0, 2)})
CELLS = np.random.Generator(np.random.PCG64(5)).binomial(2, [0.2, 0.4, 0.7], size=(60, 3))


def direct(question: Statistic) -> int:
    """Its value on a table that is counted row by row."""
    counts = np.zeros([3] * len(question.scope), dtype=np.int64)
    for row in CELLS.tolist():
        counts[tuple(row[ORDERED.names.index(name)] for name in question.scope)] += 1
    return int(question.evaluate(counts[None])[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: tacit.stump(x, predicts=y, value=2),
        lambda x, y: tacit.largest_mean(x, by=y, smallest=0.3),
        lambda x, y: tacit.matching(x, [0, 1], 2, on=y, compatible={0: [0, 1], 1: [2]}),
        lambda x, y: tacit.quantile_distance(x, 0.5, low=2),
    ],
    ids=["stump", "largest_mean", "matching", "quantile_distance"],
)
def test_what_is_compared_is_the_statistic_of_the_rows(make: Any) -> None:
    # Measuring and comparing find their truths on different ways. Catches tables with their axes in another order.
    records = read_records(open_source(pa.table(dict(zip(ORDERED.names, CELLS.T, strict=True)))), ORDERED)
    questions = [make(x, y).bind(ORDERED) for x in ORDERED for y in ORDERED if x != y]
    values = [records.answer(question) for question in questions]
    assert values == [direct(question) for question in questions]
    if len(questions[0].scope) == 2:
        there = dict(zip([question.scope for question in questions], values, strict=True))
        assert any(there[y, x] != value for (x, y), value in there.items())  # the order matters here


def test_the_order_of_its_attributes_is_part_of_a_question(tmp_path: Path) -> None:
    # Catches a key by which the errors of b from a would be read back as those of a from b.
    first, second = (tacit.stump(x, predicts=y, value=2).bind(ORDERED) for x, y in ("ab", "ba"))
    assert first.arguments == second.arguments
    assert direct(first) != direct(second)
    assert first.key != second.key
    assert first != second
