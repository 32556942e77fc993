"""A question in words: the same for every spelling, different for different questions."""

from __future__ import annotations

import pytest

from tacit.model.attribute import boolean, category, date, integer, numeric
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.expression import Expression, count, weigh
from tacit.model.query import Query
from tacit.model.workload import Marginal, histogram, marginal

DOMAIN = Domain(
    {
        "sex": category(["F", "M"]),
        "age": integer(0, 99, width=10, missing="unknown"),
        "hair": category(["red", "fair", "dark", "grey", "<script>"], other="dyed", missing="unknown"),
        "flag": boolean(),
        "day": date("2024-01-01", "2024-12-31", by="month"),
        "pay": numeric([0, 1.5, 10]),
        "letter": category(list("abcdefghij")),
    }
)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (count(), "all rows"),
        (~count(), "no row"),
        (count(sex="F"), "sex = F"),
        (~count(sex="F"), "sex = M"),
        (~~count(sex="F"), "sex = F"),
        (count(age=(20, 39)), "age in 20–29 … 30–39"),
        (count(age=(20, 29)), "age = 20–29"),
        (~count(age=(20, 99)), "age in 0–9 … 10–19"),
        (count(age=None), "age = unknown"),
        (~count(age=None), "age in 0–9 … 90–99"),
        (count(age=(0, 9)) | count(age=(20, 29)), "age in {0–9, 20–29}"),
        (count(hair="<script>"), "hair = <script>"),
        (count(hair=["red", "dyed"]), "hair in {red, dyed}"),
        (~count(hair=["red", None]), "hair in {fair, dark, grey, <script>, dyed}"),
        (~count(hair=None), "hair ≠ unknown"),
        (count(letter=list("abcdefgh")), "letter in {a, b, c, d, e, f, …}"),
        (~count(letter="c"), "letter ≠ c"),
        (count(flag=True), "flag = true"),
        (count(day="2024-02"), "day = 2024-02"),
        (count(pay=(0, 1.5)), "pay = [0, 1.5)"),
        (count(sex="F", age=(20, 39), flag=False), "age in 20–29 … 30–39 and flag = false and sex = F"),
        (~count(sex="F", flag=True), "not (flag = true and sex = F)"),
        (count(sex="F") | count(flag=True), "not (flag = false and sex = M)"),
        (count(sex="F", flag=True) | count(sex="M", flag=False), "a condition on flag, sex"),
        (weigh("sex", weights=[0.5, 1]), "weights on sex"),
        (weigh("sex", weights=[1, 0]), "sex = F"),
        (weigh("sex", weights=[0.25, 0.25]), "0.25 of all rows"),
        (~weigh("sex", weights=[0.25, 0.25]), "0.75 of all rows"),
        (weigh("sex", weights=[1, 1]), "all rows"),
    ],
)
def test_queries_in_words(expression: Expression, words: str) -> None:
    assert describe(expression.bind(DOMAIN), DOMAIN) == words


def test_workloads_in_words() -> None:
    women, nobody = count(sex="F").bind(DOMAIN), Query.constant(everyone=False)
    for question, words in (
        (marginal(DOMAIN, "sex", "AGE"), "table of age, sex"),
        (marginal(DOMAIN, "age", where=women), "table of age where sex = F"),
        (Marginal(("age",), nobody), "table of age where no row"),
        (histogram(DOMAIN), "table of age, day, flag, hair, letter, pay, sex"),
    ):
        assert describe(question, DOMAIN) == words


def test_single_conditions_read_differently_when_they_are_different() -> None:
    queries = [Query.among(DOMAIN, "hair", [i for i in range(7) if bits >> i & 1]) for bits in range(2**7)]
    words = {describe(query, DOMAIN) for query in queries}
    assert len(words) == len(queries)
