"""What bars are about: values that are put together, asked for their kind, said in one spelling and read again."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.model.answer import Answer
from tacit.model.attribute import category
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer, decode, encode, spells
from tacit.model.facts import ANSWER, EXACT, FREE, NOISE, ROWS, About, Bar, Facts, about, about_of, all_of, share_of
from tacit.model.query import Query
from tacit.release.curves import _at_once
from tacit.release.estimate import Estimate
from tacit.release.evidence import Setting, held_for_all

DOMAIN = Domain({"sex": category(["F", "M"])})
LIKE, RELEASE = About("like"), About("release", 40)
MANY = st.integers(0, 10**18)
SHARES = st.builds(share_of, st.floats(0, 1), MANY)
RELEASES = MANY.map(lambda many: About("release", many))
SINGLE = st.one_of(st.sampled_from([NOISE, ANSWER, FREE, EXACT, ROWS, LIKE]), SHARES, MANY.map(all_of), RELEASES)
FOREIGN = st.text(max_size=20).filter(lambda said: "and" not in said).map(about_of)
CONFIDENCES = st.sampled_from([0.9, 0.95])
BARS = st.lists(st.builds(Bar, st.just(1.0), SINGLE | FOREIGN, CONFIDENCES), max_size=5)
KNOWN = {
    "this noise": NOISE,
    "this answer": ANSWER,
    "all free answers at once": FREE,
    "exact": EXACT,
    "all rows that went into it at once": ROWS,
    "questions like this one": LIKE,
    "95% of 698,648 questions like this one": About("share", 698_648, 95.0),
    "99.9% of 7 questions like this one": share_of(0.999, 7),
    "all 698,648 questions of this kind at once": all_of(698_648),
    "all 40 questions of one release at once": RELEASE,
    "95% of 7 questions like this one and this noise": about([Bar(1, NOISE, 0.9), Bar(1, share_of(0.95, 7), 0.9)], 0.9),
}
# Words that no version of this program wrote, or not so: they are carried as they stand.
OTHERS = [
    "", "x", " exact", "Exact", "exact and this noise", "this noise and this answer", "this noise and this noise",
    " and ", "this noise and ", "all 1000 questions of this kind at once", "all 1,00 questions of this kind at once",
    "all 5,5,5 questions of this kind at once", "all 5% questions of this kind at once",
    "all -5 questions of this kind at once", "all 5x questions of this kind at once",
    "all ² questions of this kind at once", "all ٣ questions of this kind at once",
    f"all {'9' * 5000} questions of this kind at once", "all 5 questions of this kind at once, perhaps",
    "95.0% of 5 questions like this one", "95 of 5 questions like this one", "1e999% of 5 questions like this one",
    "questions like this one and 95% of 5 questions like this one", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("said", KNOWN)
def test_the_words_of_answers_ledgers_and_published_files(said: str) -> None:
    assert KNOWN[said].words == str(KNOWN[said]) == f"{KNOWN[said]}" == said
    assert about_of(said) == KNOWN[said]


@given(BARS, CONFIDENCES)
def test_what_is_said_is_read_again(bars: list[Bar], confidence: float) -> None:
    for one in [about(bars, confidence), *(bar.about for bar in bars)]:
        assert about_of(one.words) == one
        assert about_of(one.words).kind == one.kind
        assert deepcopy(one) == one


@given(st.text() | st.sampled_from(OTHERS) | st.lists(SINGLE.map(str) | st.text(max_size=3)).map(" and ".join))
def test_no_words_are_changed_by_being_read(said: str) -> None:
    assert about_of(said).words == said


@pytest.mark.parametrize("said", OTHERS)
def test_words_that_this_program_would_not_say_so_are_carried_and_promise_nothing(said: str) -> None:
    assert about_of(said) == About("other", said=said)
    assert held_for_all([Bar(3, about_of(said), 0.95)]) is None
    assert not about_of(said).at_once


def test_a_line_with_words_of_another_version_is_the_same_line_again() -> None:
    for said in [*KNOWN, "all boxes at once"]:
        body = encode(FreeAnswer(Query.among(DOMAIN, "sex", [0]), 5, "", (Bar(3, about_of(said), 0.95),)))
        entry = decode(*body)
        assert spells(entry, *body)
        assert isinstance(entry, FreeAnswer)
        assert entry.bars[0].about.words == said


@pytest.mark.parametrize("said", [None, 5, True, ["this noise"], {"kind": "noise"}])
def test_a_line_whose_bar_has_no_words_is_none(said: object) -> None:
    kind, body = encode(FreeAnswer(Query.among(DOMAIN, "sex", [0]), 5, "", (Bar(3, NOISE, 0.95),)))
    form = json.loads(body)
    form["bars"][0][1] = said
    with pytest.raises((TypeError, AttributeError)):
        decode(kind, json.dumps(form))


@given(BARS, CONFIDENCES)
def test_bars_are_about_the_same_in_any_order_and_however_often(bars: list[Bar], confidence: float) -> None:
    once = about(bars, confidence)
    assert about(bars[::-1] + bars, confidence) == once
    assert about([Bar(1, once, confidence)], confidence) == once
    # In two steps too: what was put together is put together again.
    some = Bar(1, about(bars[:2], confidence), confidence)
    assert about([some, *bars[2:]], confidence) == once


def test_exact_is_about_nothing_else_and_figures_are_said_once() -> None:
    parts = [Bar(1, one, 0.95) for one in (EXACT, LIKE, share_of(0.95, 7), NOISE)]
    together = {about(some, 0.95).words for some in permutations(parts)}
    assert together == {"95% of 7 questions like this one and this noise"}
    assert about([], 0.95) == about(parts[:1], 0.5) == EXACT
    assert about(parts[:2], 0.95) == LIKE


def test_a_share_among_other_things_loses_its_figures_where_a_bar_is_less_sure() -> None:
    mixed = about([Bar(1, share_of(0.95, 7), 0.95), Bar(1, all_of(9), 0.95), Bar(1, NOISE, 0.95)], 0.95)
    assert about([Bar(1, mixed, 0.95)], 0.9).words == (
        "all 9 questions of this kind at once and questions like this one and this noise"
    )


def test_what_holds_for_all_answers_as_surely_as_for_one() -> None:
    for one in (FREE, EXACT, all_of(9)):
        assert held_for_all([Bar(2, share_of(0.95, 9), 0.95), Bar(3, NOISE, 0.95), Bar(5, one, 0.95)]) == 5
    both = about([Bar(1, FREE, 0.95), Bar(1, all_of(9), 0.95)], 0.95)  # two events
    for one in (NOISE, ANSWER, LIKE, share_of(1.0, 9), share_of(0.95, 9), RELEASE, ROWS, both):
        assert held_for_all([Bar(5, one, 0.95)]) is None


def test_what_is_about_a_share_as_well_is_not_about_all_at_once() -> None:
    both = about([Bar(1, FREE, 0.95), Bar(1, all_of(9), 0.95)], 0.95)
    assert all(one.at_once for one in (FREE, all_of(9), RELEASE, both))
    for one in (NOISE, ANSWER, EXACT, LIKE, share_of(0.95, 9)):
        assert not one.at_once
        if one != EXACT:
            assert not about([Bar(1, one, 0.95), Bar(1, all_of(9), 0.95)], 0.95).at_once


@pytest.mark.parametrize(("others", "confidence"), [((), 0.95), ((share_of(0.95, 7),), 0.9), ((NOISE,), 0.9)])
def test_a_curve_whose_bars_are_about_a_share_as_well_rests_on_each_of_them(
    others: tuple[About, ...], confidence: float
) -> None:
    bar = Bar(3, about([Bar(3, one, 0.95) for one in (all_of(9), *others)], 0.95), 0.95)
    facts = Facts("hypothesis", Loss("rho", 0), 0.95, bars=(bar,))
    needs = [Query.among(DOMAIN, "sex", [0]), Query.among(DOMAIN, "sex", [1])]
    setting = Setting(DOMAIN, 100, 0.95, Loss("rho", 0), fresh=False, piecewise=lambda _, __: True)
    answers = [Answer("", 40.0, facts)] * 2
    assert _at_once(needs, answers, {need: Estimate(40, facts) for need in needs}, setting).confidence == confidence
