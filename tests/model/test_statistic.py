"""Statistics: what the constructors mean and refuse, their identity, and what the owner may register."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import count as counter
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidQuery
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.sql import parse
from tacit.model.statistic import Statistic, Unbound, definition
from tacit.model.workload import from_dict, key, to_dict

DOMAIN = Domain(
    {
        "Age": tacit.integer(0, 9, width=2, missing="unknown"),
        "ill": tacit.boolean(),
        "ward": tacit.category(["north", "east", "south"]),
        "pay": tacit.numeric([0, 10, 30, 40]),
        "role": tacit.category(["donor", "patient", "both"], missing="unknown"),
        "blood": tacit.category(["O", "A", "B", "AB"], missing="unknown"),
        "fine": tacit.integer(0, 9_999),
        "day": tacit.date("2024-01-01", "2024-12-31", by="month"),
        "one": tacit.integer(3, 3),
    }
)
GIVES = {"O": ["O", "A", "B", "AB"], "A": ["A", "AB"], "B": ["B", "AB"], "AB": ["AB"]}
numbers = counter()


def fresh() -> str:
    """A name that nobody registered: the registry lasts as long as the process."""
    return f"test {next(numbers)}"


SOME = {
    "stump": tacit.stump("age", predicts="ill"),
    "stump of one value": tacit.stump("AGE", predicts="ward", value="east"),
    "mean": tacit.largest_mean("pay", by="ward", smallest=0.05),
    "mean of two": tacit.largest_mean("pay", by=["ward", "ill"], smallest=0.05),
    "mean of a share": tacit.largest_mean("ill", by="ward", smallest=1 / 3),
    "matching": tacit.matching("role", "donor", "patient", on="blood", compatible=GIVES),
    "equals": tacit.matching("role", ["donor", "both"], "patient", on="blood"),
    "quantile": tacit.quantile_distance("age", 0.5, high=5),
    "quantile in a range": tacit.quantile_distance("pay", 0.9, low=10, high=30),
    "quantile of dates": tacit.quantile_distance("day", 0.25, high="2024-03-31"),
}


def test_constructors_find_attributes_and_values() -> None:
    bound = {name: unbound.bind(DOMAIN) for name, unbound in SOME.items()}
    assert bound["stump"] == Statistic("stump", ("Age", "ill"), (5, 1))
    assert bound["stump of one value"] == Statistic("stump", ("Age", "ward"), (5, 1))
    assert bound["mean"].scope == ("pay", "ward")
    assert bound["mean"].arguments == (1, 20, GRID // 8, GRID // 2, GRID * 7 // 8)  # 5, 20 and 35 out of 0 to 40
    assert bound["mean of two"].scope == ("pay", "ill", "ward")
    assert bound["mean of a share"].arguments == (1, 3, 0, GRID)
    relation = "11110" + "01010" + "00110" + "00010" + "00000"
    assert bound["matching"].arguments == ("1000", "0100", relation)
    equal = "10000" + "01000" + "00100" + "00010" + "00000"  # missing is not equal to missing
    assert bound["equals"].arguments == ("1010", "0100", equal)
    assert bound["quantile"] == Statistic("quantile_distance", ("Age",), (1, 2, 0, 3))
    assert bound["quantile in a range"].arguments == (9, 10, 1, 2)
    assert bound["quantile of dates"].arguments == (1, 4, 0, 3)
    ages = tacit.largest_mean("age", by="ward", smallest=0.5).bind(DOMAIN).arguments
    assert ages[2:] == tuple(round(Fraction(2 * i * 2 + 1, 18) * GRID) for i in range(5))  # 0.5, 2.5, … out of 0 to 9


def test_one_question_has_one_key_and_different_ones_different_keys() -> None:
    bound = [unbound.bind(DOMAIN) for unbound in SOME.values()]
    assert len({question.key for question in bound}) == len(bound) == len(set(bound))
    two = [tacit.stump("age", predicts="ill", value=value).bind(DOMAIN) for value in (None, True, False)]
    assert len({question.key for question in two}) == 1  # the same rows are told apart
    groups = [tacit.largest_mean("pay", by=by, smallest=0.1).bind(DOMAIN) for by in (["ill", "ward"], ("WARD", "ill"))]
    assert groups[0].key == groups[1].key
    near = [
        Statistic("x", ("a",), (1,)),
        Statistic("x", ("a",), ("1",)),
        Statistic("x", ("a", "1")),
        Statistic("x", ()),
    ]
    assert len({question.key for question in near}) == 4


@pytest.mark.parametrize("unbound", SOME.values(), ids=SOME)
def test_a_statistic_looks_like_a_query(unbound: Unbound) -> None:
    question = unbound.bind(DOMAIN)
    assert question.fits(DOMAIN)
    assert question.core is question
    assert (question.complement, question.is_constant) == (False, False)
    assert question.unit == (GRID if question.name == "largest_mean" else 1)
    assert key(question) == question.key
    again = from_dict(json.loads(json.dumps(to_dict(question))))
    assert again == question
    assert hash(again) == hash(question)
    assert not question.fits(Domain({"x": tacit.boolean()}))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stump", "errors of the best threshold on Age that tells ill = true"),
        ("mean of two", "largest mean of pay by ill, ward, times the smallest group (1/20 of all rows)"),
        ("equals", "pairs in a largest matching of role = donor or both with patient on blood"),
        ("quantile", "rows to replace for the 1/2-quantile of Age to lie in 0–1 … 4–5"),
        ("quantile in a range", "rows to replace for the 9/10-quantile of pay to lie in [10, 30)"),
    ],
)
def test_in_words(name: str, words: str) -> None:
    assert describe(SOME[name].bind(DOMAIN), DOMAIN) == words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (tacit.stump("agee", predicts="ill"), "did you mean 'Age'"),
        (tacit.stump("ward", predicts="ill"), "ward has no order"),
        (tacit.stump("age", predicts="ward"), "ward has 3 values; give the one"),
        (tacit.stump("age", predicts="ward", value="west"), "no value 'west'"),
        (tacit.stump("age", predicts="AGE", value="unknown"), "each of its attributes once"),
        (tacit.stump("age", predicts="one", value=3), "one of several values"),
        (tacit.largest_mean("ward", by="ill", smallest=0.1), "ward has no order, so it has no mean"),
        (tacit.largest_mean("one", by="ill", smallest=0.1), "one value only"),
        (tacit.largest_mean("pay", by=[], smallest=0.1), "over groups"),
        (tacit.largest_mean("pay", by=7, smallest=0.1), "over groups"),  # type: ignore[arg-type]
        (tacit.largest_mean("pay", by="PAY", smallest=0.1), "each of its attributes once"),
        (tacit.largest_mean("pay", by="ward", smallest=0.0), "a fraction above 0"),
        (tacit.largest_mean("pay", by="ward", smallest=1.5), "a fraction above 0"),
        (tacit.largest_mean("pay", by="ward", smallest=math.nan), "a fraction above 0"),
        (tacit.largest_mean("pay", by="ward", smallest=1e-9), "at least 1/1,048,576"),
        (tacit.largest_mean("fine", by="ward", smallest=0.1), "at most 4,096 arguments"),
        (tacit.largest_mean("age", by=["fine", "role", "blood", "pay"], smallest=0.1), None),
        (
            tacit.largest_mean("age", by=["fine", "role", "blood", "pay", "ward"], smallest=0.1),
            "at most 4,194,304 cells",
        ),
        (tacit.matching("role", "donor", "donor", on="blood"), "different values of role"),
        (tacit.matching("role", [], "donor", on="blood"), "different values of role"),
        (tacit.matching("role", "giver", "patient", on="blood"), "no value 'giver'"),
        (tacit.matching("role", "donor", "patient", on="blood", compatible={"O": ["0"]}), "no value '0'"),
        (tacit.matching("role", "donor", "patient", on="blood", compatible=["O"]), "compatible lists"),  # type: ignore[arg-type]
        (tacit.matching("role", "donor", "patient", on="blood", compatible={"O": "AB"}), "compatible lists"),
        (tacit.matching("role", "donor", "patient", on="blood", compatible={}), "some of blood fit"),
        (tacit.matching("role", "donor", "patient", on="fine"), "at most 256 values"),
        (tacit.quantile_distance("ward", 0.5, high="east"), "no order"),
        (tacit.quantile_distance("age", 0.5), "low, high or both"),
        (tacit.quantile_distance("age", 0.5, high=4), "nearest bins end with 3 and 5"),
        (tacit.quantile_distance("age", 0.5, high=90), "takes 0 to 9"),
        (tacit.quantile_distance("age", 0.5, low=8, high=1), "not empty"),
        (tacit.quantile_distance("pay", 0.5, low=0), "lies in all of its bins"),
        (tacit.quantile_distance("age", 0.5, low=0), None),  # a missing value lies in none
        (tacit.quantile_distance("age", 50, high=1), "a fraction above 0"),
    ],
    ids=str,
)
def test_what_has_no_meaning_is_refused(wrong: Unbound, words: str | None) -> None:
    if words is None:
        wrong.bind(DOMAIN)
        return
    with pytest.raises(InvalidQuery, match=words) as refusal:
        wrong.bind(DOMAIN)
    assert "Nothing was spent" in str(refusal.value)


def test_a_relation_that_ties_too_much_together_is_refused() -> None:
    domain = Domain({"side": tacit.boolean(), "kind": tacit.integer(0, 19)})
    chain = {i: [i, (i + 1) % 20] for i in range(20)}
    with pytest.raises(InvalidQuery, match="ties 20 kinds"):
        tacit.matching("side", True, False, on="kind", compatible=chain).bind(domain)


def test_the_fraction_does_not_depend_on_the_size_of_the_database() -> None:
    chance = np.random.Generator(np.random.PCG64(3))
    for name in ("stump", "mean", "matching", "quantile"):
        question = SOME[name].bind(DOMAIN)
        shape = [DOMAIN[one].size for one in question.scope]
        tables = chance.integers(0, 9, (40, *shape))
        sizes = tables.reshape(40, -1).sum(axis=1)
        for times in (2, 7, 1000):
            one, many = question.evaluate(tables) / sizes, question.evaluate(tables * times) / (sizes * times)
            np.testing.assert_allclose(one / question.unit, many / question.unit, atol=float((2 / sizes).max()))
    both = np.concatenate([tables, tables * 5])  # databases of different sizes at once
    np.testing.assert_array_equal(question.evaluate(both)[40:], question.evaluate(tables * 5))


def test_a_name_read_from_json_brings_no_code() -> None:
    # It can be read and shown, so that a ledger stays readable where its statistics are not registered, and no more.
    name = fresh()
    unknown = from_dict({"kind": "statistic", "name": name, "scope": ["ill"], "arguments": [3]})
    assert isinstance(unknown, Statistic)
    assert describe(unknown, DOMAIN) == f"{name} of ill (3)"
    assert not unknown.fits(DOMAIN)
    for use in (
        lambda: unknown.unit,
        lambda: unknown.evaluate(np.ones((1, 2), np.int64)),
        lambda: unknown.check(DOMAIN),
    ):
        with pytest.raises(InvalidQuery, match="is registered in this process"):
            use()
    with pytest.raises(InvalidQuery):
        definition(name)  # reading it has registered nothing
    for wrong in (
        {"name": 3, "scope": [], "arguments": []},
        {"name": "x", "scope": "ill", "arguments": []},
        {"name": "x", "scope": [["ill"]], "arguments": []},
        {"name": "x", "scope": ["ill"], "arguments": [1.5]},
        {"name": "x", "scope": ["ill"], "arguments": [True]},
        {"name": "x", "scope": ["ill"], "arguments": [[1]]},
    ):
        with pytest.raises(InvalidQuery):
            from_dict({"kind": "statistic", **wrong})


def test_sql_leads_to_no_statistic_that_has_no_name_of_its_own() -> None:
    with pytest.raises(InvalidQuery):
        parse("SELECT statistic('x') FROM data", DOMAIN)


# What the owner registers.


def test_an_owner_registers_a_statistic() -> None:
    name = fresh()

    @tacit.statistic(name, DOMAIN, "ward", "ill")
    def fullest(tables: Any) -> Any:
        """The fullest ward."""
        return tables.sum(axis=2).max(axis=1)

    question = fullest()
    assert question == Statistic(name, ("ward", "ill"))
    assert fullest.__doc__ == "The fullest ward."
    assert question.evaluate(np.array([[[1, 2], [0, 1], [4, 1]]])).tolist() == [5]
    assert describe(question, DOMAIN) == f"{name} of ward, ill"
    assert not Statistic(name, ("ill", "ward")).fits(DOMAIN)  # the axes are in the registered order
    other = Domain({"ward": tacit.category(["north", "east", "west"]), "ill": tacit.boolean()})
    assert not question.fits(other)
    with pytest.raises(InvalidQuery, match="registered already"):
        tacit.statistic(name, DOMAIN, "ward")(lambda tables: tables.max(axis=1))
    with pytest.raises(InvalidQuery, match="registered already"):
        tacit.statistic("stump", DOMAIN, "ward")(lambda tables: tables.max(axis=1))
    with pytest.raises(InvalidQuery, match="takes other arguments"):
        fullest(1)


def test_only_the_arguments_that_were_checked_can_be_asked() -> None:
    name = fresh()

    @tacit.statistic(name, DOMAIN, "ward", unit=GRID, arguments=[(1,), (2,)])
    def weighted(tables: Any, part: int) -> Any:
        return tables.max(axis=1) * (GRID // part)

    assert weighted(2).evaluate(np.array([[3, 4, 0]])).tolist() == [2 * GRID]
    assert weighted(1).key != weighted(2).key
    for wrong in ((), (3,), ("1",), (1, 1)):
        with pytest.raises(InvalidQuery, match="takes other arguments"):
            weighted(*wrong)
    with pytest.raises(InvalidQuery, match="whole numbers and texts as arguments"):
        weighted(True)
    with pytest.raises(InvalidQuery, match="one replaced row moves it"):
        tacit.statistic(fresh(), DOMAIN, "ward", arguments=[(1,), (2,)])(lambda tables, k: tables.max(axis=1) // 2 * k)


def writes(tables: Any) -> Any:
    tables[:] = 0
    return tables.max(axis=1)


class Forgetful:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tables: Any) -> Any:
        self.calls += 1
        return np.full(len(tables), self.calls % 2)


def threshold(tables: Any) -> Any:
    # Jumps where the first value has a third of the rows: no small database shows it, a walk does.
    sizes = tables.sum(axis=1)
    return np.where((sizes > 50) & (3 * tables[:, 0] > sizes), sizes, 0)


def wraps(tables: Any) -> Any:
    return np.abs(tables[:, 0] ** 3) % (tables.sum(axis=1) + 1) * (tables.sum(axis=1) > 10**8)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda tables: 2 * tables.max(axis=1) // 2 * 2, "outside 0 to 1|moves it by 2"),
        (
            lambda tables: np.minimum(2 * tables[:, 0], tables.sum(axis=1)),
            "one replaced row moves it by 2 steps, and 1",
        ),
        (threshold, r"one replaced row moves it by \d+ steps"),
        (wraps, "one replaced row moves it|outside"),
        (lambda tables: tables.max(axis=1) - 1 - tables.min(axis=1), "its value is -1, outside 0 to"),
        (lambda tables: tables.max(axis=1) + 1, "its value is 2, outside 0 to 1"),
        (lambda tables: tables.max(axis=1) / 1, "one whole number, in an array of int64"),
        (lambda tables: tables.max(axis=1).astype(np.int32), "one whole number, in an array of int64"),
        (lambda tables: tables.max(), "one whole number, in an array of int64"),
        (lambda tables: tables[:1].max(axis=1), "one whole number, in an array of int64"),
        (lambda tables: tables.max(axis=1).tolist(), "one whole number, in an array of int64"),
        (lambda tables: None, "one whole number, in an array of int64"),
        (writes, "it raises ValueError"),
        (lambda tables: tables[:, 9].copy(), "it raises IndexError"),
        (Forgetful(), "two values for the same table"),
        (lambda tables: np.full(len(tables), int(tables.sum() > 5)), "another value by itself than among others"),
    ],
)
def test_what_breaks_the_promise_is_not_registered(function: Callable[..., Any], words: str) -> None:
    name = fresh()
    with pytest.raises(InvalidQuery, match=words) as refusal:
        tacit.statistic(name, DOMAIN, "ward")(function)
    assert repr(name) in str(refusal.value)
    with pytest.raises(InvalidQuery):
        definition(name)


def test_the_counterexample_is_shown() -> None:
    with pytest.raises(
        InvalidQuery, match=r"from \{1 at \(0,\)(, .*)?\} to \{.*\}\.|from \{.*\} to \{1 at \(0,\).*\}\."
    ):
        tacit.statistic(fresh(), DOMAIN, "ward")(lambda tables: np.minimum(2 * tables[:, 0], tables.sum(axis=1)))


def test_large_tables_are_checked_in_reasonable_time() -> None:
    domain = Domain({"a": tacit.integer(0, 255), "b": tacit.integer(0, 255)})
    tacit.statistic(fresh(), domain, "a", "b")(lambda tables: tables.reshape(len(tables), -1).max(axis=1))
    with pytest.raises(InvalidQuery, match="moves it by 2"):
        tacit.statistic(fresh(), domain, "a", "b")(
            lambda tables: np.minimum(2 * tables.max(axis=(1, 2)), tables.sum(axis=(1, 2)))
        )


@pytest.mark.parametrize(
    ("register", "words"),
    [
        (lambda: tacit.statistic("", DOMAIN, "ward"), "1 to 64 characters"),
        (lambda: tacit.statistic("x\n", DOMAIN, "ward"), "printable"),
        (lambda: tacit.statistic("x", DOMAIN), "the attributes it depends on"),
        (lambda: tacit.statistic("x", "ward", "ill"), "for a domain"),  # type: ignore[arg-type]
        (lambda: tacit.statistic("x", DOMAIN, "wart"), "did you mean 'ward'"),
        (lambda: tacit.statistic("x", DOMAIN, "ward", "WARD"), "each attribute once"),
        (lambda: tacit.statistic("x", DOMAIN, "fine", "Age", "role"), "at most 65,536 cells"),
        (lambda: tacit.statistic("x", DOMAIN, "ward", unit=2), "1 or 1,048,576 steps"),
        (lambda: tacit.statistic("x", DOMAIN, "ward", unit=True), "1 or 1,048,576 steps"),
        (lambda: tacit.statistic("x", DOMAIN, "ward", arguments=[]), "listed as tuples"),
        (lambda: tacit.statistic("x", DOMAIN, "ward", arguments=[(0.5,)]), "listed as tuples"),  # type: ignore[list-item]
    ],
)
def test_registrations_without_meaning_are_refused(register: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        register()


def test_values_out_of_range_are_moved_to_the_ends() -> None:
    # The check looks at certain sizes; this one hides at 6 rows. Clipping keeps neighbours together.
    name = fresh()

    @tacit.statistic(name, DOMAIN, "ward")
    def strays(tables: Any) -> Any:
        sizes = tables.sum(axis=1)
        return tables[:, 0] + np.where(sizes == 6, np.where(tables[:, 1] > 0, 100, -100), 0)

    assert strays().evaluate(np.array([[5, 1, 0], [5, 0, 1], [2, 0, 0]])).tolist() == [6, 0, 2]
