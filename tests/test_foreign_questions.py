"""A question is bound to a domain when it is made, and asked of no other: it is refused, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import InvalidQuery
from tacit.model.ask import (
    Cdf,
    Column,
    Count,
    Covariance,
    Crosstab,
    Fraction,
    GroupBy,
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
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.session import Session

OURS = Domain(
    {
        "age": tacit.integer(0, 99, width=10),
        "pay": tacit.integer(0, 9),
        "sex": tacit.category(["F", "M"]),
    }
)
# The same names with other bins, and a column that is not ours.
THEIRS = Domain(
    {
        "age": tacit.integer(0, 49, width=10),
        "pay": tacit.integer(0, 4),
        "sex": tacit.category(["F", "M", "X"]),
        "job": tacit.category(["a", "b"]),
    }
)
WHERE: dict[str, Callable[[Domain], Query]] = {
    "a range": lambda domain: tacit.count(age=(0, 19)).bind(domain),
    "a value": lambda domain: tacit.count(sex="F").bind(domain),
    "both": lambda domain: tacit.count(sex="F", age=(0, 19)).bind(domain),
}
ASKS: dict[str, Callable[[Domain], Any]] = {
    **{f"count of {name}": lambda domain, where=where: Count(where(domain)) for name, where in WHERE.items()},
    "fraction": lambda domain: Fraction(WHERE["a value"](domain)),
    "statistic": lambda domain: Stat(tacit.stump("age", predicts="sex", value="F").bind(domain)),
    "sum": lambda domain: Sum(domain, "pay"),
    "sum of some": lambda domain: Sum(domain, "pay", WHERE["a value"](domain)),
    "mean": lambda domain: Mean(domain, "pay"),
    "mean of some": lambda domain: Mean(domain, "pay", WHERE["a value"](domain)),
    "variance": lambda domain: Variance(domain, "pay"),
    "covariance": lambda domain: Covariance(domain, ("pay", "age")),
    "table": lambda domain: Crosstab(domain, ("age",)),
    "quantile": lambda domain: Quantile(domain, "pay", 0.5),
    "quantile of some": lambda domain: Quantile(domain, "pay", 0.5, WHERE["a value"](domain)),
    "cdf": lambda domain: Cdf(domain, "pay"),
    "histogram": lambda domain: Histogram(domain, "pay"),
    "range": lambda domain: Range.between(domain, {"pay": (1, 2)}),
    "statement": lambda domain: _grouped(domain),
    "statement over a statement": lambda domain: identity(_grouped(domain)),
}
NO_QUESTIONS: dict[str, Callable[[], Any]] = {
    "a count of text": lambda: Count("abc"),  # type: ignore[arg-type]
    "a fraction of text": lambda: Fraction("abc"),  # type: ignore[arg-type]
    "a statistic that is text": lambda: Stat("abc"),  # type: ignore[arg-type]
    "a range of text": lambda: Range(OURS, "abc"),  # type: ignore[arg-type]
    "a sum over text": lambda: Sum(OURS, "pay", "abc"),  # type: ignore[arg-type]
    "a condition on rows of another table": lambda: Sum(OURS, "pay", WHERE["a value"](THEIRS)),
    "a statement of a value of another table": lambda: Select(OURS, (Column(Sum(THEIRS, "pay"), "sum"),)),
    "an expression, which is not bound": lambda: Count(tacit.count(sex="F")),  # type: ignore[arg-type]
    "a number": lambda: 7,
}


def _grouped(domain: Domain) -> Select:
    return Select(domain, (Column(Count(WHERE["a range"](domain)), "count"),), (GroupBy("sex", "sex"),))


@pytest.fixture(scope="module", params=["direct", "histogram", "iterative", "certified"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("foreign")
    rng = np.random.default_rng(1)
    columns = {"age": rng.integers(0, 100, 2_000), "pay": rng.integers(0, 10, 2_000)}
    settings: dict[str, Any] = {"mechanism": request.param}
    if request.param == "certified":
        settings = {"mechanism": "iterative", "warm": 0.6, "certify": 0.2}
    found = tacit.open(
        data=pd.DataFrame({**columns, "sex": rng.choice(["F", "M"], 2_000)}),
        domain=OURS,
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        ledger=folder / "ours.tacit",
        anchor=folder / "anchor",
        start=True,
        **settings,
    )
    found.start()
    return found


@pytest.mark.parametrize("verb", ["answer", "answer_many", "price"])
@pytest.mark.parametrize("kind", ASKS)
def test_what_was_made_for_another_domain_is_refused_and_costs_nothing(session: Session, kind: str, verb: str) -> None:
    before = session.spent
    foreign = ASKS[kind](THEIRS)
    with pytest.raises(InvalidQuery, match=r"made for another domain|unknown column|other than|a stump guesses"):
        getattr(session, verb)([foreign] if verb == "answer_many" else foreign)
    assert session.spent == before


@pytest.mark.parametrize("kind", NO_QUESTIONS)
def test_what_is_no_question_is_refused_and_costs_nothing(session: Session, kind: str) -> None:
    before = session.spent
    for verb in (session.answer, session.price):
        with pytest.raises(InvalidQuery):
            verb(NO_QUESTIONS[kind]())
    assert session.spent == before


@pytest.mark.parametrize("kind", ASKS)
def test_the_same_question_of_an_equal_domain_is_priced(session: Session, kind: str) -> None:
    """So what is refused above is refused for its domain, and for nothing else."""
    equal = Domain.from_toml(OURS.to_toml())
    ask = ASKS[kind](equal)
    if session.choice.mechanism == "iterative" and isinstance(ask, Stat):
        return  # which it takes from nobody
    session.price(ask)


def test_a_dial_is_turned_for_our_own_questions_only(session: Session) -> None:
    before = session.spent
    with pytest.raises(InvalidQuery, match="another domain"):
        session.answer(Count(WHERE["a value"](THEIRS)), within=500)
    with pytest.raises(InvalidQuery, match="another domain"):
        session.price(Sum(THEIRS, "pay"), within=500)
    assert session.spent == before
