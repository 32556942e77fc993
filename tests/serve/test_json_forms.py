"""Every kind of question has a JSON form: what a client writes of it, a server reads as the same question."""

from __future__ import annotations

import typing

import msgspec
import pytest

import tacit
from tacit.client.message import written
from tacit.errors import InvalidQuery
from tacit.model import sql
from tacit.model.ask import (
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Mean,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
)
from tacit.model.derivation import identity
from tacit.model.expression import stump
from tacit.serve.question import read

DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 79, width=10, clamp=True),
        "pay": tacit.integer(0, 39, width=10, missing="unknown"),
        "sex": tacit.category(["F", "M"]),
    }
)
WOMEN = tacit.count(sex="F").bind(DOMAIN)
OLD = tacit.count(age=(60, 79)).bind(DOMAIN)
LISTED = "SELECT sex, COUNT(*) AS n, AVG(pay) AS pay FROM data GROUP BY sex"
QUESTIONS: list[Ask] = [
    Count(WOMEN),
    Stat(stump("age", predicts="sex", value="F").bind(DOMAIN)),
    Crosstab(DOMAIN, ("sex", "age")),
    Crosstab(DOMAIN, ("pay",), WOMEN),
    Fraction(WOMEN),
    Fraction(WOMEN, OLD),
    Sum(DOMAIN, "pay", WOMEN),
    Mean(DOMAIN, "pay"),
    Mean(DOMAIN, "pay", WOMEN, 0.2),
    Variance(DOMAIN, "pay", OLD),
    Variance(DOMAIN, "pay", OLD, sample=False, root=True),
    Covariance(DOMAIN, ("age", "pay"), WOMEN, sample=False),
    Covariance(DOMAIN, ("age", "pay"), correlation=True, sample=False),
    Quantile(DOMAIN, "age", 0.5),
    Quantile(DOMAIN, "pay", 0.9, OLD, 0.2),
    Cdf(DOMAIN, "age"),
    Cdf(DOMAIN, "age", 0.3, "tree"),
    Histogram(DOMAIN, "age", 20, 0.1),
    Range.between(DOMAIN, {"age": (20, 59)}, 0.2),
    sql.parse(LISTED, DOMAIN),
    sql.parse(f"{LISTED} ORDER BY n DESC LIMIT 1", DOMAIN),
]


def test_every_kind_of_question_is_among_them() -> None:
    assert {type(ask) for ask in QUESTIONS} == set(typing.get_args(Ask))


@pytest.mark.parametrize("ask", QUESTIONS, ids=lambda ask: type(ask).__name__)
def test_what_a_client_writes_is_read_as_an_equal_question(ask: Ask) -> None:
    body = msgspec.json.decode(msgspec.json.encode(written(ask)))
    assert read(body, DOMAIN).ask == ask


def test_a_statement_without_its_text_is_refused_by_its_words() -> None:
    select = sql.parse(LISTED, DOMAIN).selects[0]
    assert isinstance(select, Select)
    for ask in (Select(DOMAIN, select.columns, select.groups), identity(select)):
        assert isinstance(ask, Select | Derived)
        with pytest.raises(InvalidQuery, match="by its text"):
            written(ask)
