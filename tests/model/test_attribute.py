"""Attributes: where values lie, against a brute force over every small value; and what is refused, with which words."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.attribute import MAX_BINS, Attribute, boolean, category, date, integer, numeric

DAY = dt.timedelta(days=1)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except InvalidQuery:
        return True
    return False


@pytest.mark.parametrize("low", [-7, 0, 3])
@pytest.mark.parametrize("count", [1, 2, 10, 13])
@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_integers_against_brute_force(low: int, count: int, width: int) -> None:
    high = low + count - 1
    attribute = integer(low, high, width=width)
    bins: list[list[int]] = []  # the members of each bin, dealt out one by one
    for value in range(low, high + 1):
        if (value - low) % width == 0:
            bins.append([])
        bins[-1].append(value)
    assert attribute.bins == attribute.size == len(bins)
    for index, members in enumerate(bins):
        first, last = members[0], members[-1]
        expected = str(first) if first == last else f"{first}–{last}" if first >= 0 else f"{first} to {last}"
        assert attribute.label(index) == expected
    for value in range(low - 3, high + 4):
        home = next((i for i, members in enumerate(bins) if value in members), None)
        if home is None:
            assert refused(lambda v=value: attribute.locate("a", v))
            assert refused(lambda v=value: attribute.find("a", v))
        else:
            assert attribute.locate("a", value) == attribute.locate("a", float(value)) == home
            alone = len(bins[home]) == 1
            assert refused(lambda v=value: attribute.find("a", v)) == (not alone)
            assert not alone or attribute.find("a", value) == home
        for included in (False, True):
            inside = [[v for v in members if v < value or (included and v == value)] for members in bins]
            whole = all(len(part) in (0, len(members)) for part, members in zip(inside, bins, strict=True))
            in_range = low <= value + included <= high + 1
            if whole and in_range:
                assert attribute.below("a", value, included=included) == sum(map(bool, inside))
            else:
                assert refused(lambda v=value, i=included: attribute.below("a", v, included=i))


@pytest.mark.parametrize(
    ("low", "high", "by"),
    [
        ("2023-12-30", "2024-03-02", "day"),
        ("2023-11-01", "2024-03-31", "month"),
        ("2024-02-01", "2024-02-29", "month"),
        ("2022-01-01", "2024-12-31", "year"),
        ("1900-01-01", "1900-12-31", "year"),
    ],
)
def test_dates_against_brute_force(low: str, high: str, by: Any) -> None:
    attribute = date(low, high, by=by)
    first, last = dt.date.fromisoformat(low), dt.date.fromisoformat(high)
    days = [first + i * DAY for i in range((last - first).days + 1)]
    name: Callable[[dt.date], str] = {"day": str, "month": lambda d: str(d)[:7], "year": lambda d: str(d)[:4]}[by]
    labels = list(dict.fromkeys(map(name, days)))
    assert [attribute.label(i) for i in range(attribute.size)] == labels
    for day in [first - DAY, *days, last + DAY]:
        if day not in days:
            assert refused(lambda d=day: attribute.locate("d", d))
            continue
        home = labels.index(name(day))
        assert attribute.locate("d", day) == attribute.locate("d", str(day)) == home
        assert attribute.find("d", labels[home]) == home  # a whole bin by its name in tables
        if by == "day":
            assert attribute.find("d", day) == home
        else:
            assert refused(lambda d=day: attribute.find("d", d)) or str(day) == labels[home]
        starts = name(day - DAY) != name(day)
        ends = name(day + DAY) != name(day)
        for cut, included, allowed, answer in ((day, False, starts, home), (day, True, ends, home + 1)):
            if allowed:
                assert attribute.below("d", cut, included=included) == answer
                assert attribute.below("d", str(cut), included=included) == answer
            else:
                assert refused(lambda c=cut, i=included: attribute.below("d", c, included=i))


@given(
    st.lists(st.integers(-8, 8), min_size=2, max_size=6, unique=True).map(sorted),
    st.integers(-40, 40).map(lambda quarter: quarter / 4),
)
def test_numbers_against_brute_force(edges: list[int], value: float) -> None:
    attribute = numeric(edges)
    home = [i for i in range(len(edges) - 1) if edges[i] <= value < edges[i + 1]]
    assert attribute.bins == len(edges) - 1
    if home:
        assert [attribute.locate("x", value)] == home
    else:
        assert refused(lambda: attribute.locate("x", value))
    assert refused(lambda: attribute.find("x", value))  # a bin of real numbers never holds one value alone
    if value in edges:
        assert attribute.below("x", value) == sum(edge < value for edge in edges)
    else:
        assert refused(lambda: attribute.below("x", value))
    with pytest.raises(InvalidQuery):
        attribute.below("x", value, included=True)


def test_listed_values() -> None:
    hair = category(["red", "fair", "", "it's"], other="dyed", missing="unknown")
    assert [hair.label(i) for i in range(hair.size)] == ["red", "fair", "", "it's", "dyed", "unknown"]
    assert [hair.find("hair", hair.label(i)) for i in range(hair.size)] == list(range(6))
    assert (hair.bins, hair.other_index, hair.missing_index) == (4, 4, 5)
    grade = category([3, 1, 2])
    assert [grade.find("grade", v) for v in (1, 2, 3)] == [1, 2, 0]
    flag = boolean(missing="unknown")
    assert [flag.label(i) for i in range(3)] == ["false", "true", "unknown"]
    assert [flag.find("flag", v) for v in (False, True, 0, 1, "FALSE", "true", "unknown")] == [0, 1, 0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (category(["F", "M"]), True),
        (category(["F", "M"]), 0),
        (category(["F", "M"]), "f"),
        (category([0, 1]), True),
        (category([0, 1]), 1.0),
        (category([0, 1]), "1"),
        (category(["F", "M"]), ["F"]),
        (category(["F", "M"]), None),
        (category(["F", "M"]), 10**5000),
        (category(["F", "M"]), "F" * 10**6),
        (boolean(), 2),
        (boolean(), "yes"),
        (integer(0, 9), True),
        (integer(0, 9), "5"),
        (integer(0, 9), 5.5),
        (integer(0, 9), math.nan),
        (integer(0, 9), math.inf),
        (integer(0, 9), 10**5000),
        (integer(0, 9), None),
        (integer(0, 9), [5]),
        (numeric([0, 1]), math.nan),
        (numeric([0, 1]), -(10**5000)),
        (numeric([0, 1]), "0"),
        (date("2020-01-01", "2020-12-31"), 2020),
        (date("2020-01-01", "2020-12-31"), "2020"),
        (date("2020-01-01", "2020-12-31"), "2020-05"),
        (date("2020-01-01", "2020-12-31", by="month"), "2020"),
        (date("2020-01-01", "2020-12-31"), "2020-02-30"),
        (date("2020-01-01", "2020-12-31"), dt.datetime(2020, 5, 5, 12)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_value_is_refused(attribute: Attribute, value: Any) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        attribute.find("name", value)
    assert refusal.value.sentence.startswith("name ")
    assert len(refusal.value.sentence) < 300
    assert refusal.value.sentence.endswith((".", "?"))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: integer(0, 99, width=10).below("age", 25),
            "age cannot be cut at 25: the nearest bin edges are 20 and 30.",
        ),
        (
            lambda: integer(0, 99, width=10).below("age", 24, included=True),
            "age cannot be cut after 24: the nearest bins end with 19 and 29.",
        ),
        (
            lambda: integer(0, 99, width=10).below("age", 3, included=True),
            "age cannot be cut after 3: the nearest bins end with 9.",
        ),
        (
            lambda: integer(17, 90, width=5).below("age", 89),
            "age cannot be cut at 89: the nearest bin edges are 87 and 91.",
        ),
        (lambda: integer(0, 99, width=10).find("age", 25), "age = 25 lies in the bin 20–29; ask for whole bins."),
        (lambda: integer(0, 99).locate("age", 120), "age takes 0 to 99, the question asks 120."),
        (lambda: integer(0, 99).below("age", 120), "age takes 0 to 99, the question asks 120."),
        (
            lambda: numeric([0, 0.1, 2.5]).below("pay", 1),
            "pay cannot be cut at 1: the nearest bin edges are 0.1 and 2.5.",
        ),
        (
            lambda: numeric([0, 0.1 + 0.2, 1]).below("pay", 0.3),
            "pay cannot be cut at 0.3: the nearest bin edges are 0 and 0.30000000000000004.",
        ),
        (
            lambda: numeric([0, 2, 5]).below("pay", 2, included=True),
            "the bins of pay are half-open, so a bin may start but never end with 2: ask pay < 2 or pay >= 2.",
        ),
        (lambda: numeric([0, 2, 5]).locate("pay", 5), "pay takes 0 to below 5, the question asks 5."),
        (
            lambda: date("2020-01-01", "2020-12-31", by="month").below("day", "2020-03-10"),
            "day cannot be cut at 2020-03-10: the nearest bin edges are 2020-03-01 and 2020-04-01.",
        ),
        (
            lambda: date("2020-01-01", "2020-12-31").locate("day", "2021-01-01"),
            "day takes 2020-01-01 to 2020-12-31, the question asks 2021-01-01.",
        ),
        (
            lambda: date("2020-01-01", "2020-12-31").locate("day", "hello"),
            "day takes dates like 2024-05-31, the question asks 'hello'.",
        ),
        (
            lambda: date("2020-01-01", "2020-12-31", by="year").locate("day", "2020-01-01 12:00"),
            "day takes dates like 2024-05-31, the question asks '2020-01-01 12:00'.",
        ),
        (
            lambda: category(["north", "south"]).find("region", "nort"),
            "region has no value 'nort'; did you mean 'north'?",
        ),
        (
            lambda: category(["north", "south"], missing="unknown").find("region", "x"),
            "region has no value 'x'; it takes north, south, unknown.",
        ),
        (
            lambda: category(list("abcdefghij")).find("x", "zzz"),
            "x has no value 'zzz'; it takes a, b, c, d, e, f, g, h, ….",
        ),
    ],
)
def test_refusals_name_what_is_allowed(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        call()
    assert refusal.value.sentence == sentence
    assert str(refusal.value) == sentence + " Nothing was spent."
    assert refusal.value.suggestion == ("north" if "did you mean" in sentence else None)


def test_other_and_missing_come_after_the_bins() -> None:
    age = integer(0, 9, width=5, other="elsewhere", missing="unknown")
    assert [age.label(i) for i in range(age.size)] == ["0–4", "5–9", "elsewhere", "unknown"]
    assert [age.find("age", label) for label in ("elsewhere", "unknown")] == [2, 3]
    assert age.below("age", 10) == 2
    assert (integer(0, 9).other_index, integer(0, 9).missing_index) == (None, None)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: category([]),
        lambda: category("FM"),
        lambda: category({"F", "M"}),
        lambda: category(["F", "F"]),
        lambda: category(["F", 1]),
        lambda: category([0, True]),
        lambda: category([False, 1]),
        lambda: category([True]),
        lambda: category([1.5]),
        lambda: category([None]),
        lambda: category([["F"]]),
        lambda: category([2**53]),
        lambda: category(["F "]),
        lambda: category(["line\nbreak"]),
        lambda: category(["\x7f"]),
        lambda: category(["\ud800"]),
        lambda: category(["\x1b[31m"]),
        lambda: category(["F"], missing="F"),
        lambda: category(["F"], other="F"),
        lambda: category(["F"], other="x", missing="x"),
        lambda: category(["F"], other=""),
        lambda: category(["F"], other="1"),
        lambda: category(["F"], other="x "),
        lambda: category(["F"], missing=0),
        lambda: category(["F"], missing=True),
        lambda: boolean(missing="TRUE"),
        lambda: integer(1, 0),
        lambda: integer(0, 9, width=0),
        lambda: integer(0, 9, width=-1),
        lambda: integer(0, 9, width=True),
        lambda: integer(0.0, 9),
        lambda: integer("0", 9),
        lambda: integer(0, 2**52),
        lambda: integer(0, 10**400),
        lambda: integer(0, MAX_BINS),
        lambda: integer(0, 9, clamp="yes"),
        lambda: integer(0, 9, clamp=1),
        lambda: integer(0, 9, clamp=True, other="x"),
        lambda: numeric([]),
        lambda: numeric([1]),
        lambda: numeric([0, 0]),
        lambda: numeric([-0.0, 0.0]),
        lambda: numeric([1, 0]),
        lambda: numeric([0, math.nan]),
        lambda: numeric([0, math.inf]),
        lambda: numeric([0, 10**400]),
        lambda: numeric([False, True]),
        lambda: numeric(["0", "1"]),
        lambda: numeric("01"),
        lambda: date("2020-01-01", "2019-12-31"),
        lambda: date("2020-01-01", "soon"),
        lambda: date("2020-01-02", "2020-12-31", by="month"),
        lambda: date("2020-01-01", "2020-12-30", by="year"),
        lambda: date("2020-01-01", "2020-12-31", by="week"),
        lambda: date("2020-01-01", dt.date.max),
        lambda: date(2020, 2021),
        lambda: date(dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
    ],
)
def test_bad_declarations_are_refused_with_one_sentence(declare: Callable[[], object]) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        declare()
    sentence = refusal.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 600


def test_minus_zero_is_zero() -> None:
    assert numeric([-0.0, 1]) == numeric([0, 1.0])
    assert numeric([-0.0, 1]).label(0) == "[0, 1)"


def test_bins_by_the_million_cost_nothing() -> None:
    wide = integer(0, MAX_BINS - 1, clamp=True)
    assert wide.bins == MAX_BINS
    assert wide.below("x", MAX_BINS - 1, included=True) == MAX_BINS
    assert wide.label(MAX_BINS - 1) == str(MAX_BINS - 1)
