"""Trusted words: what can be asked: a query, a statistic, a GROUP BY table, or a strategy for all ranges.

What is not such a question cannot be made, and what was made cannot change; `check` says whether it is about a domain.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from tacit.errors import InvalidQuery
from tacit.model import certificate as certificates
from tacit.model.certificate import Certificate
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Convolution, Product, Strategy, Tree, from_form
from tacit.model.strategy import form as strategy_form

MAX_ANSWERS = 2**22  # to one question: a minute of drawing


@dataclass(frozen=True)
class Marginal:
    """The count of every combination of some attributes' values, among the rows that `where` selects."""

    names: tuple[str, ...]
    where: Query

    def __post_init__(self) -> None:
        named = type(self.names) is tuple and all(type(name) is str for name in self.names)
        if not named or not self.names or list(self.names) != sorted(set(self.names)):
            raise InvalidQuery("a table has at least one attribute, and each of them once, in order.")
        if type(self.where) is not Query or self.where.unit > 1:
            raise InvalidQuery("the rows of a table are chosen by conditions, not by weights.")

    def check(self, domain: Domain) -> None:
        """Refuse a table of other attributes than this domain's."""
        if not self.where.fits(domain) or not all(name in domain for name in self.names):
            raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")

    def queries(self, domain: Domain) -> Iterator[Query]:
        for cell in product(*(range(domain[name].size) for name in self.names)):
            values = [Query.among(domain, name, [i]) for name, i in zip(self.names, cell, strict=True)]
            yield Query.all([self.where, *values])

    def size(self, domain: Domain) -> int:
        return math.prod(domain[name].size for name in self.names)


Workload = Marginal | Strategy | Certificate
Question = Query | Statistic | Workload


def marginal(domain: Domain, *names: str, where: Query | None = None) -> Marginal:
    """The table over these attributes. The order of the names does not matter to the question, so they are sorted."""
    found = [domain.resolve(name) for name in names]
    if not found or len(set(found)) < len(found):
        raise InvalidQuery("a table has at least one attribute, and each of them once.")
    if where is not None and where.is_constant and not where.is_everyone:
        raise InvalidQuery("no row can meet the condition, so every cell of the table is 0.")
    return Marginal(tuple(sorted(found)), where or Query.constant(everyone=True))


def histogram(domain: Domain) -> Marginal:
    """Every cell of X."""
    return marginal(domain, *domain.names)


def check(question: Question, domain: Domain) -> None:
    """Refuse what is no question about this domain, or has too many answers."""
    kind = type(question)
    if kind is Query:
        if not question.fits(domain):  # type: ignore[union-attr]
            raise InvalidQuery(f"the question was made for another domain than that of {', '.join(domain)}.")
        return
    if kind not in (Statistic, Marginal, Tree, Convolution, Product, Certificate):
        raise InvalidQuery("a question is a query or a workload.")
    question.check(domain)  # type: ignore[union-attr]
    if not isinstance(question, Query | Statistic) and not 1 <= (size := question.size(domain)) <= MAX_ANSWERS:
        raise InvalidQuery(f"the question has {size:,} answers; one measurement takes 1 to {MAX_ANSWERS:,}.")


def unit(question: Question) -> int:
    """Grid steps in a count of the answers."""
    return question.unit if isinstance(question, Query | Statistic) else 1


def key(question: Question) -> str:
    """The identity of a question: equal for two ways of asking the same."""
    if isinstance(question, Query | Statistic):
        return question.key
    words: list[str | list[str]]
    if isinstance(question, Marginal):
        words = ["marginal", list(question.names), question.where.key]
    elif isinstance(question, Certificate):
        words = ["certificate", json.dumps(certificates.form(question), sort_keys=True)]
    else:
        words = ["strategy", json.dumps(strategy_form(question), sort_keys=True)]
    return hashlib.sha256(json.dumps(["tacit workload 1", *words]).encode()).hexdigest()


def to_dict(question: Question) -> dict[str, Any]:
    """A question's JSON form, for transcripts."""
    if isinstance(question, Query):
        return {"kind": "query", **question.to_dict()}
    if isinstance(question, Statistic):
        return {"kind": "statistic", **question.to_dict()}
    if isinstance(question, Marginal):
        return {"kind": "marginal", "names": list(question.names), "where": question.where.to_dict()}
    return certificates.form(question) if isinstance(question, Certificate) else strategy_form(question)


def from_dict(form: dict[str, Any]) -> Question:
    """The question of a JSON form."""
    match form["kind"]:
        case "query":
            return Query.from_dict(form)
        case "statistic":
            return Statistic.from_dict(form)
        case "marginal":
            return Marginal(tuple(form["names"]), Query.from_dict(form["where"]))
        case "tree" | "convolution" | "product":
            return from_form(form)
        case "certificate":
            return certificates.from_form(form)
        case unknown:
            raise InvalidQuery(f"there is no kind of question called {unknown!r}.")
