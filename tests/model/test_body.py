"""Who reads a part of an entry's body reads what the codec writes: the same names, the same values."""

from __future__ import annotations

import numpy as np
from msgspec.json import Decoder

from tacit.model.attribute import category, integer
from tacit.model.body import Announcement, MeasuredQuery, ScopedAnswer, ToldQuery
from tacit.model.domain import Domain
from tacit.model.entry import Discovered, FreeAnswer, Measurement, encode
from tacit.model.facts import FREE, Bar
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.workload import marginal

DOMAIN = Domain({"sex": category(["F", "M"]), "age": integer(0, 9)})
WOMEN, NOISE = Query.among(DOMAIN, "sex", [0]), Noise("laplace", 3.5)
BOTH = WOMEN & Query.weighted(DOMAIN, ["age"], [0.5] * 5 + [0.25] * 5)


def measured(question: Query, values: list[int]) -> Measurement:
    return Measurement(question, np.array(values), 1, NOISE)


def test_the_size_of_a_question_is_read_wherever_it_stands() -> None:
    read = Decoder(Announcement).decode
    body = encode(measured(BOTH, [4]))[1]
    asked = read(body).question
    assert asked is not None
    assert [one.shape for one in asked.factors] == [list(factor.weights.shape) for factor in BOTH.factors]
    table = marginal(DOMAIN, "age", where=WOMEN)
    found = read(encode(Measurement(table, np.arange(10), 1, NOISE))[1]).question
    assert found is not None
    assert found.where is not None
    assert [one.shape for one in found.where.factors] == [[2]]
    inner = read(encode(Discovered(DOMAIN, 5, measured(BOTH, [4])))[1]).measured
    assert inner == read(body)


def test_what_a_purchase_was_about_is_read() -> None:
    question = Decoder(ScopedAnswer).decode(encode(measured(BOTH, [4]))[1]).question
    assert question.kind == "query"
    assert {name for factor in question.factors for name in factor.scope} == set(BOTH.scope)


def test_a_count_is_read_whole_but_for_its_conditions() -> None:
    everyone = Query.constant(everyone=True)
    bought = Decoder(MeasuredQuery).decode(encode(measured(everyone, [7]))[1])
    assert (bought.noise.kind, bought.noise.scale, bought.unit, bought.values) == ("laplace", 3.5, 1, (7,))
    told = Decoder(ToldQuery).decode(encode(FreeAnswer(everyone, 7, "a note", (Bar(3, FREE, 0.5),)))[1])
    assert (told.told, told.note, told.bars) == (7, "a note", [(3, FREE.words, 0.5)])
    assert (told.question.kind, told.question.complement) == ("query", everyone.complement)
