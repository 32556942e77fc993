"""Domains: the TOML form, identity, names, and the size of X."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.attribute import Attribute, boolean, category, date, integer, numeric
from tacit.model.domain import WORD_BITS, Domain

# Text as people and attackers write it; what cannot be printed is refused, so it is filtered here and tested below.
AWKWARD = st.sampled_from(
    ["'", '"', "\\", "\\u0041", "]", "#", "=", "[x]", "\U0001f600", "é", "名", '"""', "<b>", ".", " "]
)
TEXT = st.lists(AWKWARD | st.characters(exclude_categories=("C",)), max_size=6).map("".join).filter(str.isprintable)
VALUE = TEXT.map(lambda text: text.rstrip(" "))
LABEL = VALUE.map(lambda text: "o" + text).filter(lambda label: label.lower() not in ("true", "false"))
NAME = TEXT.filter(lambda text: bool(text.strip()))


@st.composite
def extras(draw: st.DrawFn, taken: tuple[object, ...] = ()) -> dict[str, Any]:
    labels = draw(st.lists(LABEL.filter(lambda label: label not in taken), max_size=2, unique=True))
    return dict(zip(draw(st.permutations(["other", "missing"])), labels, strict=False))


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    kind = draw(st.sampled_from(["category", "codes", "boolean", "integer", "numeric", "date"]))
    if kind == "category":
        values = draw(st.lists(VALUE, min_size=1, max_size=5, unique=True))
        return category(values, **draw(extras(tuple(values))))
    if kind == "codes":
        codes = draw(st.lists(st.integers(-(2**53) + 1, 2**53 - 1), min_size=1, max_size=5, unique=True))
        return category(codes, **draw(extras()))
    more = draw(extras())
    if kind == "boolean":
        return boolean(**more)
    if "other" not in more:
        more["clamp"] = draw(st.booleans())
    if kind == "integer":
        low = draw(st.integers(-(2**50), 2**50))
        return integer(low, low + draw(st.integers(0, 10**6)), width=draw(st.integers(1, 10**6)), **more)
    if kind == "numeric":
        edges = draw(st.lists(st.floats(-1e299, 1e299), min_size=2, max_size=6, unique=True))
        return numeric(sorted(edges), **more)
    year, by = draw(st.integers(1, 9900)), draw(st.sampled_from(["day", "month", "year"]))
    return date(dt.date(year, 1, 1), dt.date(year + draw(st.integers(0, 9)), 12, 31), by=by, **more)


DOMAINS = st.dictionaries(NAME, attributes(), min_size=1, max_size=4).filter(
    lambda tables: len({name.lower() for name in tables}) == len(tables)
)


@given(DOMAINS)
def test_toml_round_trip(tables: dict[str, Attribute]) -> None:
    domain = Domain(tables)
    text = domain.to_toml()
    again = Domain.from_toml(text)
    assert list(tomllib.loads(text)["domain"]) == list(tables)
    assert again == domain
    assert again.key == domain.key
    assert hash(again) == hash(domain)
    assert again.shape == domain.shape
    for name, attribute in tables.items():
        assert again[name] == attribute
        assert [again[name].label(i) for i in range(min(9, attribute.size))] == [
            attribute.label(i) for i in range(min(9, attribute.size))
        ]


@given(DOMAINS, DOMAINS)
def test_keys_are_equal_exactly_when_everything_declared_is(a: dict[str, Attribute], b: dict[str, Attribute]) -> None:
    def declared(tables: dict[str, Attribute]) -> str:
        return repr([(name, repr(attribute)) for name, attribute in tables.items()])

    assert (Domain(a).key == Domain(b).key) == (declared(a) == declared(b))


def test_different_domains_have_different_keys() -> None:
    variants = [
        {"a": category(["x", "y"])},
        {"a": category(["y", "x"])},
        {"a": category(["x", "y"], missing="m")},
        {"a": category(["x", "y"], other="m")},
        {"A": category(["x", "y"])},
        {"a": category(["x"]), "b": category(["y"])},
        {"b": category(["y"]), "a": category(["x"])},
        {"a": category(["0", "1"])},
        {"a": category([0, 1])},
        {"a": boolean()},
        {"a": integer(0, 1)},
        {"a": integer(0, 1, clamp=True)},
        {"a": integer(0, 1, width=2)},
        {"a": numeric([0, 1])},
        {"a": numeric([0, 1, 2])},
        {"a": date("2020-01-01", "2020-12-31", by="month")},
        {"a": date("2020-01-01", "2020-12-31", by="year")},
        {'a"]': boolean()},
    ]
    domains = [Domain(tables) for tables in variants]
    assert len({domain.key for domain in domains}) == len(domains)
    for i, one in enumerate(domains):
        assert [one == other for other in domains] == [i == j for j in range(len(domains))]


def test_thirty_digits_of_cells() -> None:
    domain = Domain({f"a{i}": integer(0, 999) for i in range(10)})
    assert domain.size == 10**30
    assert math.prod(domain.shape) == domain.size
    assert domain.index({f"a{i}": i for i in range(10)}) == tuple(range(10))
    assert "1,000,000,000,000,000,000,000,000,000,000 cells" in repr(domain)
    assert Domain.from_toml(domain.to_toml()).size == 10**30


def test_names_are_found_in_any_case_and_suggested() -> None:
    domain = Domain({"Age": integer(0, 9), "sex": category(["F", "M"]), "ÉTAT": boolean()})
    assert [domain.resolve(name) for name in ("age", "AGE", "Age", "SEX", "état")] == [
        "Age",
        "Age",
        "Age",
        "sex",
        "ÉTAT",
    ]
    assert domain["AGE"] is domain["Age"]
    assert domain.index({"AGE": 3, "Sex": "M", "état": True}) == (3, 1, 1)
    for name, (hint, meant) in {
        "agee": ("unknown column 'agee'; did you mean 'Age'?", "Age"),
        "SXE": ("unknown column 'SXE'; did you mean 'sex'?", "sex"),
        "zzz": ("unknown column 'zzz'; the columns are Age, sex, ÉTAT.", None),
    }.items():
        with pytest.raises(InvalidQuery) as refusal:
            domain.resolve(name)
        assert (refusal.value.sentence, refusal.value.suggestion) == (hint, meant)
    for odd in (None, 3, ["Age"], ("Age",), b"Age"):
        with pytest.raises(InvalidQuery, match="unknown column"):
            domain.resolve(odd)  # type: ignore[arg-type]


def test_project_and_index() -> None:
    domain = Domain({"a": integer(0, 4), "b": boolean(), "c": category(["x"])})
    small = domain.project(["C", "a"])
    assert (small.names, small.shape) == (("c", "a"), (1, 5))
    for cell in ({"a": 1, "b": True}, {"a": 1, "b": True, "c": "x", "d": 1}, {}):
        with pytest.raises(InvalidQuery):
            domain.index(cell)
    with pytest.raises(InvalidQuery):
        domain.index({"a": 1, "b": True, "c": ["x"]})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "tables",
    [
        {},
        None,
        [("a", boolean())],
        {"": boolean()},
        {"  ": boolean()},
        {"a\nb": boolean()},
        {"a\x7f": boolean()},
        {"a\x00": boolean()},
        {"\ud800": boolean()},
        {"a" * 129: boolean()},
        {1: boolean()},
        {"a": "boolean"},
        {"a": None},
        {"a": boolean(), "A": boolean()},
        {f"a{i}": boolean() for i in range(257)},
    ],
    ids=lambda tables: repr(tables)[:30],
)
def test_bad_domains_are_refused_with_one_sentence(tables: Any) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        Domain(tables)
    assert refusal.value.sentence.endswith(".")
    assert "\n" not in refusal.value.sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "1 to 256 names"),
        ("[domain", "not valid TOML"),
        ("domain = 5", "one table for each attribute"),
        ("[domain]\nage = 5", "[domain.age] needs kind"),
        ('[domain.age]\nkind = "int"', "[domain.age] needs kind"),
        ("[domain.age]\nkind = []", "[domain.age] needs kind"),
        ('[domain.age]\nkind = "integer"\nlow = 0', "needs high and low"),
        ('[domain.age]\nkind = "integer"\nlow = 0\nhigh = 9\nmax = 3', "may have clamp, missing, other, width"),
        ('[domain.age]\nkind = "integer"\nlow = 9\nhigh = 0', "[domain.age]: an integer attribute has whole numbers"),
        ('[domain.age]\nkind = "integer"\nlow = 0\nhigh = 9\nclamp = "yes"', "clamp is true or false"),
        ('[domain.age]\nkind = "integer"\nlow = 0\nhigh = ' + "9" * 5000, "not valid TOML"),
        ('[domain.day]\nkind = "date"\nlow = 2020-02-30\nhigh = 2020-03-01', "not valid TOML"),
        ('[domain.day]\nkind = "date"\nlow = 2020-02-01T00:00:00\nhigh = 2020-03-01', "from a first to a last day"),
        ('[domain.sex]\nkind = "category"\nvalues = "FM"', "lists its values"),
        ('[domain.sex]\nkind = "category"\nvalues = [["F"]]', "all text or all whole numbers"),
        ('[domain.sex]\nkind = "category"\nvalues = ["F"]\nmissing = 1', "begins with a letter"),
        ("x = " + "[" * 5000, "not valid TOML"),
    ],
)
def test_bad_toml_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        Domain.from_toml(text)
    assert words in refusal.value.sentence


@given(st.text(alphabet='[]domain.age="kicategoryvalues,0123 \n', max_size=80) | st.text(max_size=40))
def test_any_text_is_a_domain_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidDomain):
        Domain.from_toml(text)


def test_codes_share_no_bit_and_words_stay_below_62_bits() -> None:
    # Catches a word that overflows BIGINT: |X| is about 10^30 here.
    domain = Domain({f"c{i}": integer(0, 10 ** (i % 4 + 1) - 1, other="other", missing="unknown") for i in range(12)})
    seen: set[tuple[int, int]] = set()
    for slot, size in zip(domain.slots, domain.shape, strict=True):
        bits = {(slot.word, slot.shift + b) for b in range(slot.bits)}
        assert size + 1 < 2**slot.bits
        assert slot.shift + slot.bits <= WORD_BITS
        assert not bits & seen
        seen |= bits
    assert domain.size > 10**29
    assert {word for word, _ in seen} == {0, 1}
