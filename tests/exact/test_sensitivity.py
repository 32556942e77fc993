"""Sensitivities against enumeration: all small databases, all their neighbours, every kind of question."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact.price import Sensitivity
from tacit.model.attribute import boolean, category, integer, numeric
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.workload import Marginal, Question, histogram
from tacit.trusted.sensitivity import sensitivity

Rule = Callable[[Question, Domain], Sensitivity]

DOMAINS = {
    "plain": Domain({"age": integer(0, 3), "sex": category(["F", "M"])}),
    "missing": Domain({"age": integer(0, 2, missing="unknown"), "flag": boolean()}),
    "other and missing": Domain({"age": integer(0, 4, other="else", missing="unknown")}),
    "extras everywhere": Domain(
        {"pay": numeric([0, 1, 5], other="else"), "hair": category(["red", "fair"], missing="unknown")}
    ),
    "one bin": Domain({"age": integer(0, 0), "sex": category(["F", "M"])}),
    "one bin or missing": Domain({"age": integer(0, 0, missing="unknown"), "sex": category(["F", "M"])}),
    "two bins": Domain({"age": integer(0, 1)}),
    "one cell": Domain({"age": integer(0, 0)}),
    "wide": Domain({"age": integer(0, 6)}),
}
ROWS = (1, 2, 3)


@cache
def neighbours(name: str, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The histograms of every database of so many rows, twice: before and after one row is replaced, for all pairs."""
    cells = DOMAINS[name].size
    before, after = [], []
    for database in combinations_with_replacement(range(cells), rows):
        for row, new in product(range(rows), range(cells)):
            before.append(np.bincount(database, minlength=cells))
            after.append(np.bincount((*database[:row], new, *database[row + 1 :]), minlength=cells))
    return np.array(before), np.array(after)


def worst(question: Question, name: str, rows: int) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between the answers of neighbours, in grid steps and their squares."""
    domain = DOMAINS[name]
    queries = [question] if isinstance(question, Query) else list(question.queries(domain))
    if not queries:
        return 0, 0
    weights = [query.table(domain.names, domain.shape).ravel() * (GRID // query.unit) for query in queries]
    before, after = neighbours(name, rows)
    moved = np.abs(before @ np.array(weights).T - after @ np.array(weights).T)
    return int(moved.sum(axis=1).max()), int((moved**2).sum(axis=1).max())


def holds(rule: Rule, question: Question, name: str) -> bool:
    claimed = rule(question, DOMAINS[name])
    return all(
        l1 <= claimed.l1 * GRID and l2_squared <= claimed.l2_squared * GRID**2
        for l1, l2_squared in (worst(question, name, rows) for rows in ROWS)
    )


def tight(question: Question, name: str) -> bool:
    claimed = sensitivity(question, DOMAINS[name])
    return all(worst(question, name, rows) == (claimed.l1 * GRID, claimed.l2_squared * GRID**2) for rows in ROWS)


def predicates(domain: Domain) -> list[Query]:
    singles = [
        Query.among(domain, name, chosen)
        for name, attribute in domain.items()
        for size in range(attribute.size + 1)
        for chosen in combinations(range(attribute.size), size)
    ]
    chance = random.Random(7)
    mixed = [Query.all(chance.sample(singles, 2)) for _ in range(20)]
    mixed += [Query.any(chance.sample(singles, 2)) for _ in range(20)]
    return [
        Query.constant(everyone=True),
        Query.constant(everyone=False),
        *singles,
        *mixed,
        *(~query for query in mixed),
    ]


def weighted(domain: Domain) -> list[Query]:
    chance = np.random.default_rng(7)
    found = []
    for name, attribute in domain.items():
        for _ in range(5):
            found.append(Query.weighted(domain, [name], chance.random(attribute.size)))
        found.append(Query.weighted(domain, [name], np.full(attribute.size, 0.5)))
        found.append(Query.weighted(domain, [name], np.full(attribute.size, 0.9)))
        found.append(Query.weighted(domain, [name], np.linspace(0, 1, attribute.size)))
    found.append(Query.weighted(domain, domain.names, chance.random(domain.shape)))
    return [*found, *(~query for query in found), found[0] & found[-1], found[1] | found[-1]]


def marginals(domain: Domain, where: list[Query]) -> Iterator[Marginal]:
    for size in range(1, len(domain) + 1):
        for names in combinations(sorted(domain.names), size):
            for condition in where:
                yield Marginal(names, condition)


def questions(domain: Domain) -> list[Question]:
    singles = predicates(domain)
    return [
        *singles,
        *weighted(domain),
        *marginals(domain, singles),
    ]


@pytest.mark.parametrize("name", DOMAINS)
def test_no_neighbour_is_further_away_than_claimed(name: str) -> None:
    for question in questions(DOMAINS[name]):
        assert holds(sensitivity, question, name), question


@pytest.mark.parametrize("name", DOMAINS)
def test_predicates_are_tight(name: str) -> None:
    for query in predicates(DOMAINS[name]):
        assert tight(query, name), query


@pytest.mark.parametrize("name", DOMAINS)
def test_tables_are_tight(name: str) -> None:
    domain = DOMAINS[name]
    seen = 0
    for table in marginals(domain, predicates(domain)):
        counted = sum(not query.is_constant or query.is_everyone for query in table.queries(domain))
        if counted == 1 < table.size(domain):
            continue  # the condition leaves one cell of the table: 2 is claimed where 1 would do
        assert tight(table, name), table
        seen += 1
    assert seen > 0
    assert tight(histogram(domain), name)


def claim(bound: int) -> Sensitivity:
    return Sensitivity(bound, bound)


def table_as_one_count(question: Question, domain: Domain) -> Sensitivity:
    assert isinstance(question, Marginal)
    return claim(1)


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        (table_as_one_count, Marginal),
    ],
)
def test_planted_mistakes_are_caught(mutant: Rule, kind: type) -> None:
    asked = [
        (question, name) for name in DOMAINS for question in questions(DOMAINS[name]) if isinstance(question, kind)
    ]
    caught = [question for question, name in asked if not holds(mutant, question, name)]
    assert caught, "the checker accepts a sensitivity that is too small"
    assert len(caught) < len(asked)  # and it is the mistake that it catches, not the kind of question
