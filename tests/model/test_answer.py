"""Answers as people and programs see them: escaped, serialisable, and a released 0 is an answer."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from tacit.model.answer import ANY, Answer
from tacit.model.attribute import category, integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.facts import ANSWER, EXACT, NOISE, Bar, Facts, Receipt, about, about_of, all_of, share_of, widest
from tacit.model.facts import FREE as ALL
from tacit.model.table import Listing, Row, Table
from tacit.serve.page.answer import _said
from tacit.serve.postgres.answer import notice
from tacit.show.chart import Bars
from tacit.show.chart.paint import GREY

EVIL = "<script>alert('x')</script>"
FREE, PAID = Loss("rho", 0), Loss.of("rho", 0.02)


def answer(**changes: Any) -> Answer:
    given = {"question": "sex = F", "value": 1234.0, "error": 12.5, "limits": ANY}
    facts = Facts("measured", PAID, 0.95, Receipt(3, "ab" * 32))
    return Answer(**_with(given, facts, changes))


def _with(given: dict[str, Any], facts: Facts, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of an answer's own fields, of its bar, and of the facts about it."""
    error = changes.pop("error", given.pop("error"))
    told = {name: changes[name] for name in changes if name not in given}
    said = replace(facts, **told).within(error)
    return given | {k: v for k, v in changes.items() if k in given} | {"facts": said}


def table(**changes: Any) -> Table:
    domain = Domain({"sex": category(["F", EVIL]), "age": integer(0, 29, width=10)})
    given: dict[str, Any] = {
        "question": "table of sex, age",
        "names": ("sex", "age"),
        "labels": tuple(tuple(domain[n].label(i) for i in range(domain[n].size)) for n in domain),
        "values": np.array([[0.0, 1.0, 1200.0], [-3.0, 4.25, 0.0]]),
        "error": 7.0,
        "limits": ANY,
    }
    return Table(**_with(given, Facts("hypothesis", FREE, 0.95), changes))


class Page(HTMLParser):
    """The tags and the text of a piece of HTML, as a browser would take it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self.tags[-1] in ("td", "th") and self.rows:
            self.rows[-1].append(data)


def test_an_answer_in_one_line() -> None:
    assert str(answer()) == "1,234 ± 12.50 (95%, for this noise, measured, cost rho = 0.02)"
    assert str(answer(total=Loss.of("rho", 0.5))) == "1,234 ± 12.50 (95%, for this noise, measured, 4 % of the budget)"
    assert answer(total=Loss.of("rho", 0.5)).to_dict()["percent"] == 4.0
    assert str(answer(cost=FREE, source="repeat")) == "1,234 ± 12.50 (95%, for this noise, repeat, free)"
    assert answer().interval == (1221.5, 1246.5)


@pytest.mark.parametrize(
    ("confidence", "shown"), [(0.95, "95%"), (0.999, "99.9%"), (0.9999999, "99.99999%"), (0.5, "50%")]
)
def test_confidence_is_never_rounded_to_certainty(confidence: float, shown: str) -> None:
    assert f"({shown}, " in str(answer(confidence=confidence))
    assert f"({shown}, for this noise" in answer(confidence=confidence)._repr_html_()
    assert f"({shown}, " in table(confidence=confidence).caption


def test_an_interval_is_cut_to_what_the_value_can_be() -> None:
    assert answer(value=5.0, limits=(0, 1300)).interval == (0, 17.5)
    assert answer(value=1295, limits=(0, 1300)).interval == (1282.5, 1300)
    assert answer(value=-20.0, limits=(0, 1300)).interval == (
        0,
        0,
    )  # the bar missed the truth
    assert answer(value=5.0, limits=(0, 1300)).to_dict()["interval"] == [0, 17.5]
    assert answer(error=None).to_dict()["interval"] is None


@pytest.mark.parametrize(
    ("value", "error", "limits", "word"),
    [
        (1000, 100, (0, 20_000), "sharp"),  # a tenth of the value
        (1000, 101, (0, 20_000), "rough"),
        (97, 1229, (0, 48_842), "rough"),  # they are few
        (0, 5, (0, 48_842), "rough"),
        (0, 0, (0, 48_842), "sharp"),
        (97, 1229, (0, 1326), "nothing"),  # the interval is all that a count can be
        (97, 1229, (0, 1339), "nothing"),  # or nearly all
        (97, 1229, (0, 1340), "rough"),  # the control: a hundredth is ruled out
        (44.49999, 42.5, (2.0, 87.0), "nothing"),
        (500, 490, (0, 1000), "rough"),
        (500, 500, (0, 1000), "nothing"),
        (-40, 1040, (0, 1000), "nothing"),
        (0.5, 0.5, (0, 1), "nothing"),
        (30, None, (0, 1000), "nothing"),
        (1990, 10, (1900, 2000), "sharp"),
        (1990, 11, (1900, 2000), "rough"),  # small beside the value, not beside the years that it can be
        (7, 0, (7, 7), "sharp"),  # it can be nothing else, and is exact
    ],
)
def test_an_answer_says_whether_it_says_anything(
    value: float, error: float | None, limits: tuple[float, float], word: str
) -> None:
    told = answer(value=value, error=error, limits=limits)
    assert told.says == told.to_dict()["says"] == word
    assert str(told).endswith(" · says nothing") == (word == "nothing")
    assert ("opacity" in told._repr_html_()) == (word == "nothing")


@pytest.mark.parametrize(
    ("cells", "error", "word"),
    [
        ([400.0, 350.0, 300.0, 40.0], 30.0, "sharp"),
        ([400.0, 350.0, 300.0, 40.0], 40.0, "rough"),
        ([400.0, 350.0, 250.0, -90.0], 40.0, "rough"),
        ([600.0, 350.0, 250.0, -300.0], 40.0, "nothing"),  # what is above 0 adds up to 1.2 times the 1,000 rows
        ([600.0, 250.0, 250.0, -300.0], 40.0, "rough"),  # the control: to 1.1 times
        ([400.0, 350.0, 250.0, 0.0], None, "nothing"),
        ([400.0, 350.0, 250.0, 0.0], 1000.0, "nothing"),
    ],
)
def test_a_table_says_what_its_middle_cell_says_unless_noise_is_all_there_is(
    cells: list[float], error: float | None, word: str
) -> None:
    told = table(names=("x",), labels=(tuple("abcd"),), values=np.array(cells), error=error, limits=(0, 1000))
    assert told.says == told.to_dict()["says"] == word
    assert told.caption.endswith(" · says nothing") == (word == "nothing")
    (bars,) = told.chart().marks
    assert isinstance(bars, Bars)
    assert (bars.colour == GREY) == (word == "nothing")
    if error is not None:  # whiskers end where a count can be
        assert np.asarray(bars.low).min() >= min(0, *cells)
        assert np.asarray(bars.high).max() <= 1000


@pytest.mark.parametrize("zero", [0.0, 0, np.float64(0)])
def test_a_released_zero_is_an_answer(zero: float) -> None:
    nothing = answer(value=zero, error=zero)
    assert str(nothing).startswith("0 ± 0 (")
    assert "<b>0</b> ± 0" in nothing._repr_html_()
    form = json.loads(json.dumps(nothing.to_dict()))
    assert form["value"] == 0
    assert form["value"] is not None
    assert form["error"] == 0
    assert nothing.interval == (0, 0)
    first = answer(receipt=Receipt(0, "00" * 32)).to_dict()
    assert first["entry"] == 0


def test_an_answer_is_json() -> None:
    form = json.loads(json.dumps(answer().to_dict()))
    assert form == {
        "question": "sex = F",
        "value": 1234.0,
        "error": 12.5,
        "interval": [1221.5, 1246.5],
        "says": "sharp",
        "confidence": 0.95,
        "bars": [{"width": 12.5, "about": "this noise", "confidence": 0.95}],
        "source": "measured",
        "cost": {"rho": 0.02},
        "entry": 3,
        "seal": "ab" * 32,
        "limits": [None, None],
    }
    assert {"entry", "seal"}.isdisjoint(answer(receipt=None).to_dict())


def test_a_question_is_escaped() -> None:
    page = Page(answer(question=f"name = {EVIL}")._repr_html_())
    assert "script" not in page.tags
    assert f"name = {EVIL}" in page.text


def test_a_table_prints_its_rows() -> None:
    assert str(table()).splitlines() == [
        "sex                          age    value",
        "F                            0–9        0",
        "F                            10–19      1",
        "F                            20–29  1,200",
        f"{EVIL}  0–9       -3",
        f"{EVIL}  10–19   4.25",
        f"{EVIL}  20–29      0",
        "each ± 7 (95%, for this noise, worked out, free)",
    ]
    assert list(table().rows())[2] == (("F", "20–29"), 1200.0)


def test_a_table_in_html() -> None:
    page = Page(table()._repr_html_())
    assert "script" not in page.tags
    assert page.rows[0] == ["sex", "age", "value"]
    assert page.rows[1:] == [
        ["F", "0–9", "0"],
        ["F", "10–19", "1"],
        ["F", "20–29", "1,200"],
        [EVIL, "0–9", "-3"],
        [EVIL, "10–19", "4.25"],
        [EVIL, "20–29", "0"],
    ]
    odd = Page(table(names=("<b>", "age"), question=EVIL)._repr_html_())
    assert "b" not in odd.tags
    assert "script" not in odd.tags
    assert odd.rows[0][0] == "<b>"


def test_a_table_is_json() -> None:
    form = json.loads(json.dumps(table().to_dict()))
    assert form["columns"] == ["sex", "age", "value"]
    assert form["rows"][0] == ["F", "0–9", 0.0]
    assert form["rows"][3] == [EVIL, "0–9", -3.0]
    assert len(form["rows"]) == 6
    assert form["cost"] == {"rho": 0.0}


@pytest.mark.parametrize(("rows", "left_out"), [(1, 0), (199, 0), (200, 0), (201, 1), (5000, 4800)])
def test_long_tables_are_cut_when_shown_and_whole_in_json(rows: int, left_out: int) -> None:
    long = table(names=("x",), labels=(tuple(map(str, range(rows))),), values=np.zeros(rows))
    shown = str(long).splitlines()
    assert len(shown) == 1 + min(rows, 200) + bool(left_out) + 1
    assert (f"… and {left_out:,} more rows" in shown) == bool(left_out)
    assert ("more rows" in long._repr_html_()) == bool(left_out)
    assert len(long.to_dict()["rows"]) == rows


def test_a_receipt_is_short() -> None:
    assert str(Receipt(7, "0123456789abcdef" * 4)) == "#7 0123456789ab"


def test_what_bars_are_about() -> None:
    like = answer(source="hypothesis", cost=FREE)
    like = replace(like, facts=like.facts.within(110, share_of(0.95, 698_648)))
    assert str(like) == "1,234 ± 110 (95% of 698,648 questions like this one, worked out, free)"
    every = replace(like, facts=like.facts.within(243, all_of(698_648)))
    assert str(every) == "1,234 ± 243 (95%, for all 698,648 questions of this kind at once, worked out, free)"
    exact = replace(like, facts=like.facts.within(0, EXACT))
    assert str(exact) == "1,234 ± 0 (exact, worked out, free)"
    assert share_of(0.95, 698_648).words == "95% of 698,648 questions like this one"
    assert all_of(698_648).words == "all 698,648 questions of this kind at once"


def test_what_a_bar_is_about_that_is_put_together() -> None:
    parts = [Bar(110, share_of(0.95, 65_529), 0.95), Bar(84, share_of(0.95, 262_140), 0.95), Bar(0, EXACT, 0.95)]
    assert about(parts[:1], 0.95).words == "95% of 65,529 questions like this one"
    assert about(parts, 0.9).words == "questions like this one"
    assert about([*parts, Bar(3, NOISE, 0.95)], 0.85).words == "questions like this one and this noise"
    assert about(parts[2:], 0.95) == EXACT
    # With its figures and without it is the same thing, and said once.
    mixed = [Bar(1, about_of(f"{parts[0].about} and {NOISE}"), 0.9), Bar(2, about_of("questions like this one"), 0.9)]
    assert about(mixed, 0.9).words == f"{parts[0].about} and {NOISE}"


def test_the_widest_bars_of_parts_hold_for_each_of_them() -> None:
    gate, noise = (Bar(92, ANSWER, 0.95), Bar(101, ALL, 0.95)), (Bar(95, NOISE, 0.9),)
    exact = (Bar(0, EXACT, 0.95),)
    assert widest([gate, noise, exact]) == (
        Bar(95, about_of(f"{ANSWER} and {NOISE}"), 0.9),
        Bar(101, about_of(f"{ALL} and {NOISE}"), 0.9),
    )
    assert widest([exact, exact]) == exact
    assert widest([gate, ()]) == ()  # nothing is proved of the second


def listing(titles: tuple[str, ...], *rows: tuple[float | None, ...]) -> Listing:
    """A table whose values are all 40, with these bars."""
    facts = Facts("hypothesis", FREE, 0.9)
    bars = [error for row in rows for error in row]
    told = facts if None in bars else facts.within(max(error or 0.0 for error in bars), NOISE)
    listed = tuple(Row((f"ward {i}",), (40.0,) * len(row), row) for i, row in enumerate(rows))
    return Listing("means", ("ward",), titles, listed, told, (ANY,) * len(titles))


def test_a_table_says_how_many_values_have_no_bar_and_how_sure_the_others_are() -> None:
    some = listing(("AVG(los)",), (1.5,), (None,), (2.5,))
    assert some.caption == "(1 of 3 values has no bar, 90% for the others, worked out, free)"
    assert notice(some) == some.caption
    assert str(some).endswith(some.caption)
    assert _said(some) == (
        "Each value that has a bar is by itself within it of the truth (1 of 3 values has no bar, 90% for the others)."
    )
    none = listing(("AVG(los)",), (None,), (None,))
    assert none.caption == "(nothing is promised, worked out, free) · says nothing"
    assert _said(none) == "Nothing is promised about these."


def test_columns_of_different_units_have_no_widest_bar_in_common() -> None:
    one = listing(("AVG(los)",), (1.5,), (2.5,))
    assert one.caption == "at most ± 2.50 (90%, for this noise, worked out, free)"
    two = listing(("COUNT(*)", "AVG(cost)"), (12.0, 1897.79), (14.0, 300.0))
    assert two.caption == "at most ± 14 for COUNT(*), ± 1,897.79 for AVG(cost) (90%, for this noise, worked out, free)"
    assert notice(two)[1:] == two.caption[1:]
    assert "at most ± 14 for COUNT(*), ± 1,898 for AVG(cost) of the truth" in _said(two)
    five = listing(tuple("abcde"), (1.0, 2.0, 3.0, 4.0, 5.0))
    assert five.caption == "(90%, for this noise, worked out, free)"
    assert "within its bar of the truth" in _said(five)
