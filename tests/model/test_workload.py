"""Workloads: what their queries add up to, their identity, and their JSON form."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import boolean, category, integer
from tacit.model.domain import Domain
from tacit.model.expression import count, weigh
from tacit.model.query import Query
from tacit.model.workload import (
    Marginal,
    Question,
    from_dict,
    histogram,
    key,
    marginal,
    to_dict,
)

DOMAIN = Domain(
    {"sex": category(["F", "M"]), "Age": integer(0, 3, other="else", missing="unknown"), "flag": boolean(missing="na")}
)


def tables(question: Any) -> list[NDArray[np.int64]]:
    return [query.table(DOMAIN.names, DOMAIN.shape) for query in question.queries(DOMAIN)]


@pytest.mark.parametrize("where", [None, count(flag=True), ~count(sex="F", age=2), count(sex="F") | count(age=None)])
@pytest.mark.parametrize("names", [("sex",), ("AGE", "sex"), ("flag", "sex", "age")])
def test_a_table_sorts_every_counted_row_into_the_cell_of_its_values(names: tuple[str, ...], where: Any) -> None:
    condition = None if where is None else where.bind(DOMAIN)
    table = marginal(DOMAIN, *names, where=condition)
    found = tables(table)
    assert len(found) == table.size(DOMAIN)
    counted = np.ones(DOMAIN.shape) if condition is None else condition.table(DOMAIN.names, DOMAIN.shape)
    np.testing.assert_array_equal(np.sum(found, axis=0), counted)
    axes = [DOMAIN.names.index(name) for name in table.names]
    order = list(product(*(range(DOMAIN.shape[axis]) for axis in axes)))  # the last name fastest
    for cell in product(*map(range, DOMAIN.shape)):
        home = order.index(tuple(cell[axis] for axis in axes))
        assert [int(weights[cell]) for weights in found] == [
            int(counted[cell]) * (i == home) for i in range(len(found))
        ]


def test_the_histogram_is_every_cell_once() -> None:
    found = tables(histogram(DOMAIN))
    assert len(found) == DOMAIN.size
    assert all(weights.sum() == 1 for weights in found)
    np.testing.assert_array_equal(np.sum(found, axis=0), np.ones(DOMAIN.shape))


SOME: list[Question] = [
    count(sex="F").bind(DOMAIN),
    marginal(DOMAIN, "sex"),
    marginal(DOMAIN, "sex", where=count(flag=True).bind(DOMAIN)),
    marginal(DOMAIN, "age", "sex"),
    marginal(DOMAIN, "age"),
    weigh("sex", weights=[0.5, 0.25]).bind(DOMAIN),
]


def test_different_questions_have_different_keys() -> None:
    assert len({key(question) for question in SOME}) == len(SOME)


def test_one_question_has_one_key() -> None:
    red = marginal(DOMAIN, "SEX", "age", where=count(flag=True).bind(DOMAIN))
    blue = marginal(DOMAIN, "Age", "sex", where=(~~count(flag=[True, True])).bind(DOMAIN))
    assert red == blue
    assert key(red) == key(blue)
    assert key(marginal(DOMAIN, "sex")) == key(marginal(DOMAIN, "sex", where=Query.constant(everyone=True)))


@pytest.mark.parametrize("question", SOME, ids=lambda question: type(question).__name__)
def test_json_round_trip(question: Question) -> None:
    again = from_dict(json.loads(json.dumps(to_dict(question))))
    assert type(again) is type(question)
    assert again == question
    assert key(again) == key(question)


def test_what_is_no_question_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="no kind of question called 'cdf'"):
        from_dict({"kind": "cdf", "name": "age"})
    for names in ((), ("sex", "SEX")):
        with pytest.raises(InvalidQuery, match="at least one attribute, and each of them once"):
            marginal(DOMAIN, *names)
    with pytest.raises(InvalidQuery, match="did you mean 'Age'"):
        marginal(DOMAIN, "agee")
    with pytest.raises(InvalidQuery, match="unknown column"):
        marginal(DOMAIN, ["sex", "age"])  # type: ignore[arg-type]
    with pytest.raises(InvalidQuery, match="not by weights"):
        marginal(DOMAIN, "sex", where=weigh("sex", weights=[0.5, 1]).bind(DOMAIN))
    with pytest.raises(InvalidQuery, match="no row can meet the condition"):
        marginal(DOMAIN, "sex", where=count(age=[]).bind(DOMAIN))
    assert Marginal(("sex",), Query.constant(everyone=False)).size(DOMAIN) == 2
