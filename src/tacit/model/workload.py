"""Many queries asked at once: a GROUP BY table, all prefixes or all intervals of an ordered attribute, or any list."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Strategy, from_form
from tacit.model.strategy import form as strategy_form


@dataclass(frozen=True)
class Marginal:
    """The count of every combination of some attributes' values, among the rows that `where` selects."""

    names: tuple[str, ...]
    where: Query

    def queries(self, domain: Domain) -> Iterator[Query]:
        for cell in product(*(range(domain[name].size) for name in self.names)):
            values = [Query.among(domain, name, [i]) for name, i in zip(self.names, cell, strict=True)]
            yield Query.all([self.where, *values])

    def size(self, domain: Domain) -> int:
        return math.prod(domain[name].size for name in self.names)


@dataclass(frozen=True)
class Prefixes:
    """The count below the end of every bin of an ordered attribute. Rows with a missing or other value are in none."""

    name: str

    def queries(self, domain: Domain) -> Iterator[Query]:
        for end in range(1, domain[self.name].bins + 1):
            yield Query.among(domain, self.name, range(end))

    def size(self, domain: Domain) -> int:
        return domain[self.name].bins


@dataclass(frozen=True)
class Intervals:
    """The count between every two bins of one ordered attribute, both included."""

    name: str

    def queries(self, domain: Domain) -> Iterator[Query]:
        bins = domain[self.name].bins
        for first in range(bins):
            for end in range(first + 1, bins + 1):
                yield Query.among(domain, self.name, range(first, end))

    def size(self, domain: Domain) -> int:
        bins = domain[self.name].bins
        return bins * (bins + 1) // 2


@dataclass(frozen=True)
class Queries:
    """Any list of queries."""

    listed: tuple[Query, ...]

    def queries(self, domain: Domain) -> Iterator[Query]:
        return iter(self.listed)

    def size(self, domain: Domain) -> int:
        return len(self.listed)


Workload = Marginal | Prefixes | Intervals | Queries | Strategy
Question = Query | Statistic | Workload


def marginal(domain: Domain, *names: str, where: Query | None = None) -> Marginal:
    """The table over these attributes. The order of the names does not matter to the question, so they are sorted."""
    found = [domain.resolve(name) for name in names]
    if not found or len(set(found)) < len(found):
        raise InvalidQuery("a table has at least one attribute, and each of them once.")
    if where is not None and where.unit > 1:
        raise InvalidQuery("the rows of a table are chosen by conditions, not by weights.")
    if where is not None and where.is_constant and not where.is_everyone:
        raise InvalidQuery("no row can meet the condition, so every cell of the table is 0.")
    return Marginal(tuple(sorted(found)), where or Query.constant(everyone=True))


def prefixes(domain: Domain, name: str) -> Prefixes:
    """All prefixes of an ordered attribute: its cumulative counts."""
    return Prefixes(_ordered(domain, name))


def intervals(domain: Domain, name: str) -> Intervals:
    """All intervals of an ordered attribute."""
    return Intervals(_ordered(domain, name))


def histogram(domain: Domain) -> Marginal:
    """Every cell of X."""
    return marginal(domain, *domain.names)


def _ordered(domain: Domain, name: str) -> str:
    if not domain[name].ordered:
        raise InvalidQuery(f"{domain.resolve(name)} has no order, so it has no ranges.")
    return domain.resolve(name)


def key(question: Question) -> str:
    """The identity of a question: equal for two ways of asking the same."""
    if isinstance(question, Query | Statistic):
        return question.key
    words: list[str | list[str]]
    if isinstance(question, Marginal):
        words = ["marginal", list(question.names), question.where.key]
    elif isinstance(question, Queries):
        words = ["queries", [query.key for query in question.listed]]
    elif isinstance(question, Strategy):
        words = ["strategy", json.dumps(strategy_form(question), sort_keys=True)]
    else:
        words = [type(question).__name__.lower(), question.name]
    return hashlib.sha256(json.dumps(["tacit workload 1", *words]).encode()).hexdigest()


def to_dict(question: Question) -> dict[str, Any]:
    """A question's JSON form, for transcripts."""
    if isinstance(question, Query):
        return {"kind": "query", **question.to_dict()}
    if isinstance(question, Statistic):
        return {"kind": "statistic", **question.to_dict()}
    if isinstance(question, Marginal):
        return {"kind": "marginal", "names": list(question.names), "where": question.where.to_dict()}
    if isinstance(question, Queries):
        return {"kind": "queries", "listed": [query.to_dict() for query in question.listed]}
    if isinstance(question, Strategy):
        return strategy_form(question)
    return {"kind": type(question).__name__.lower(), "name": question.name}


def from_dict(form: dict[str, Any]) -> Question:
    """The question of a JSON form."""
    match form["kind"]:
        case "query":
            return Query.from_dict(form)
        case "statistic":
            return Statistic.from_dict(form)
        case "marginal":
            return Marginal(tuple(form["names"]), Query.from_dict(form["where"]))
        case "queries":
            return Queries(tuple(map(Query.from_dict, form["listed"])))
        case "prefixes":
            return Prefixes(form["name"])
        case "intervals":
            return Intervals(form["name"])
        case "tree" | "convolution" | "product":
            return from_form(form)
        case unknown:
            raise InvalidQuery(f"there is no kind of question called {unknown!r}.")
