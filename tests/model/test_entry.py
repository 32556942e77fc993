"""One record for each kind of line: what is encoded is read back as it was, and what is wrong cannot be made."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidQuery
from tacit.model.attribute import category, date, integer
from tacit.model.domain import Domain
from tacit.model.entry import (
    Comparison,
    Discovered,
    Dropped,
    Entry,
    Found,
    FreeAnswer,
    GateTerms,
    Intent,
    LaterTerms,
    Measured,
    Measurement,
    Selection,
    Shut,
    Told,
    decode,
    encode,
)
from tacit.model.facts import FREE, NOISE, Bar, about_of
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Tree, marginal, to_dict
from tacit.store.chain import Mark, Override, canonical

DOMAIN = Domain({"sex": category(["F", "M"]), "age": integer(0, 9)})
WOMEN = Query.among(DOMAIN, "sex", [0])
HALF = Query.weighted(DOMAIN, ["age"], [0.5] * 5 + [0.25] * 5)
ENTRIES: dict[str, list[Entry]] = {
    "intent": [Intent("measure 1"), Intent(GateTerms("iterative", 30.0, 1.5, 2.25, 10**12))],
    "told": [
        FreeAnswer(WOMEN, 0, ""),
        FreeAnswer(~WOMEN & HALF, -3, "not checked", (Bar(0, NOISE, 0.95), Bar(3, FREE, 0.5))),
        FreeAnswer(Statistic("stump", ("age", "sex"), (4, 1)), 7, "x", (Bar(2**63 - 1, about_of(""), 0.95),)),
    ],
    "chosen": [Selection(None, 3), Selection(0, 1, WOMEN), Selection(2, 5, marginal(DOMAIN, "age", where=WOMEN))],
    "compared": [Comparison(WOMEN, False), Comparison(HALF, True)],
    "found": [
        Found("clinic", ("Ä", None), (70, 60), 55, 2, Noise("gaussian", 9.5)),
        Found("ward", (), (), 55, 1, Noise("gaussian", 9.5)),
        Found("ward", (3, -1), (90, 80), 55, 1, Noise("gaussian", 9.5)),
    ],
    "terms": [LaterTerms("ab" * 32)],
    "shut": [Shut(7)],
    "dropped": [Dropped(3)],
    "override": [
        Override("lost", None, "ab", None, "unknown"),
        Override("lost", Mark(3, "cd", 5), "ab", "ef", "counted as spent"),
    ],
}


def test_a_discovered_measurement_has_a_domain_of_its_own() -> None:
    wide = Domain({"joined": date("1990-01-01", "2029-12-31", by="year", missing="unknown", clamp=True)})
    measured = Measurement(Tree("joined", (41,), (1,)), np.arange(41), 1, Noise("gaussian", 3.0))
    entry = Discovered(wide, 600, measured)
    kind, body = encode(entry)
    again = decode(kind, body)
    assert (kind, encode(again)) == ("discovered", (kind, body))
    assert isinstance(again, Discovered)
    assert (again.domain, again.rows, again.key) == (wide, 600, entry.key)


@pytest.mark.parametrize(("kind", "entry"), [(kind, entry) for kind, some in ENTRIES.items() for entry in some])
def test_what_is_encoded_is_read_back(kind: str, entry: Entry) -> None:
    found, body = encode(entry)
    assert (found, decode(found, body)) == (kind, entry)
    assert canonical(json.loads(body)) == body


@pytest.mark.parametrize("question", [WOMEN, HALF, marginal(DOMAIN, "sex", "age"), Tree("age", (2, 5), (3, 4))])
def test_noisy_answers_are_read_back(question: Any) -> None:
    entry = Measurement(question, np.array([0, -5, 2**63 - 1]), 1, Noise("gaussian", 2.5))
    kind, body = encode(entry)
    read = decode(kind, body)
    assert isinstance(read, Measurement)
    assert (kind, read.question, read.unit, read.noise) == ("measured", question, 1, Noise("gaussian", 2.5))
    assert read.values.dtype == np.int64
    assert read.values.tolist() == entry.values.tolist()
    assert encode(read) == (kind, body)


def test_a_reader_who_asked_gets_the_very_question() -> None:
    asked = Query.among(DOMAIN, "sex", [0])
    read = decode(*encode(FreeAnswer(WOMEN, 3, "")), asked)
    assert isinstance(read, FreeAnswer)
    assert read.question is asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 1.5},
        {"value": True},
        {"value": "1"},
        {"value": 2**63},
        {"value": -(2**63) - 1},
        {"bars": (Bar(-1, NOISE, 0.95),)},
        {"bars": (Bar(1, NOISE, 0.95), Bar(2**63, NOISE, 0.95))},
        {"bars": (Bar(0.5, NOISE, 0.95),)},
        {"bars": (Bar(np.int64(3), NOISE, 0.95),)},
        {"bars": (Bar(float("inf"), NOISE, 0.95),)},
        {"bars": (Bar(1, about_of("\ud800"), 0.95),)},
        {"bars": (Bar(1, NOISE, 1.0),)},
        {"bars": (Bar(1, NOISE, float("nan")),)},
        {"note": None},
        {"note": b"x"},
        {"note": "\ud800"},  # a lone surrogate would come back as another text
    ],
)
def test_a_free_answer_that_could_not_be_read_back_cannot_be_made(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"question": WOMEN, "value": 1, "note": "ok"}
    with pytest.raises(InvalidQuery, match=r"what is told|half width|confidence"):
        FreeAnswer(**given | wrong)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("outcome", "{}"),
        ("measured", "{}"),
        ("measured", '{"noise":{"kind":"cauchy","scale":1.0},"question":{},"unit":1,"values":[]}'),
        ("told", "[]"),
        ("told", '{"bars":[],"note":"","question":{"kind":"nothing"},"told":1}'),
        ("compared", f'{{"compared":1,"question":{canonical(to_dict(marginal(DOMAIN, "sex")))}}}'),
        ("override", '{"anchor":1}'),
        ("intent", "null"),
    ],
)
def test_what_is_no_entry_is_an_error(kind: str, body: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, InvalidQuery)):
        decode(kind, body)


@pytest.mark.parametrize("record", [Measured, Told])
def test_what_was_released_is_made_by_the_names_of_its_fields(record: type) -> None:
    """Seven values in a row are easily mixed up, and some are of one type."""
    kinds = {one.kind for one in inspect.signature(record).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
