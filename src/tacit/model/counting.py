"""Trusted words: which tables an answer is made of, where rows stay in an engine and only counts come back.

A question about few values is answered from the whole table of its attributes, which serves others about the same ones.
Where that table would be large, the conditions on single attributes are left to the engine, which counts the rows that
meet all of them; what is tied together or weighed is still counted value by value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.certificate import Certificate, Certificates, Conjunctions
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, Product, Question

_SMALL = 2**16  # cells of a table that is counted whole, conditions or not
MAX_COUNTED_CELLS = 2**26  # cells of any other

Counts = NDArray[np.int64]


class Group(NamedTuple):
    """Rows counted by the values of these attributes; with conditions, those that meet all of them apart."""

    names: tuple[str, ...]
    where: tuple[Factor, ...] = ()

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """The table's shape: an axis for each attribute, and with conditions one for rows that fail or meet them."""
        return (*(domain.sizes[name] for name in self.names), *((2,) if self.where else ()))


def group(names: Iterable[str], factors: Iterable[Factor], domain: Domain) -> tuple[Group, tuple[Factor, ...]]:
    """What is counted for the sums over rows of a product of factors, by the values of `names`.

    Returned with the factors that are still to be multiplied. The attributes of these stand after `names`.
    """
    names, factors = tuple(names), tuple(factors)
    whole = Group(_joined(names, factors))
    if math.prod(whole.shape(domain)) <= _SMALL:
        return whole, factors
    where = tuple(one for one in factors if one.unit == 1 and len(one.scope) == 1)
    rest = tuple(one for one in factors if one.unit > 1 or len(one.scope) > 1)
    return Group(_joined(names, rest), where), rest


def groups(question: Question, domain: Domain) -> list[Group]:
    """Everything that is counted for a question, in the order in which it is asked for."""
    if isinstance(question, Query):
        return [group((), question.factors, domain)[0]]
    if isinstance(question, Marginal):
        met = group(question.names, question.where.factors, domain)[0]
        return [met, *([Group(question.names)] if question.where.complement else [])]
    if isinstance(question, Statistic):
        return [Group(question.scope)]
    if isinstance(question, Certificate | Certificates):
        return [Group(one.names) for _, one in in_turn(question)]
    if isinstance(question, Residuals):
        return [Group(scope) for scope in question.scopes]
    if isinstance(question, Product):
        return [Group((question.first.name, question.second.name))]
    return [Group((question.name,))]


def in_turn(question: Certificate | Certificates) -> list[tuple[int, Conjunctions]]:
    """All lists, each with the place of its certificate, in an order in which every table is counted once.

    After a list about some attributes come all others about these, or fewer of them: then its table may be forgotten.
    """
    lists = [(i, listed) for i, one in enumerate(question.each) for listed in one.lists]
    wider = within(frozenset(listed.names) for _, listed in lists)
    turn = {scope: i for i, scope in enumerate(dict.fromkeys(wider.values()))}
    return sorted(lists, key=lambda one: (turn[wider[frozenset(one[1].names)]], -len(one[1].names)))


def within(scopes: Iterable[frozenset[str]]) -> dict[frozenset[str], frozenset[str]]:
    """For each set of attributes one that has them all and is within no other here: itself, or the first larger one."""
    found = dict[frozenset[str], frozenset[str]]()
    for _, of_size in groupby(sorted(dict.fromkeys(scopes), key=len, reverse=True), key=len):
        larger = [scope for scope, wider in found.items() if scope == wider]
        found |= {scope: next((one for one in larger if scope < one), scope) for scope in of_size}
    return found


def check_cells(question: Question, domain: Domain) -> None:
    """Refuse what would be made of too large a table. No data involved."""
    for one in groups(question, domain):
        cells = math.prod(one.shape(domain))
        if cells > MAX_COUNTED_CELLS:
            raise InvalidQuery(
                f"the question weighs or ties together {', '.join(one.names)}: {cells:,} cells, and at most "
                f'{MAX_COUNTED_CELLS:,} are counted where rows stay in the engine (held = "engine").'
            )


def check_table(domain: Domain, names: Iterable[str], where: Query | None) -> Domain:
    """The attributes of a table; refuses one that is too large, and rows that are chosen by weights."""
    onto = domain.project(names)
    if onto.size > MAX_COUNTED_CELLS:
        raise InvalidQuery(
            f"a table of {onto.size:,} cells is too large; at most {MAX_COUNTED_CELLS:,} can be counted."
        )
    if where is not None and where.unit > 1:
        raise InvalidQuery("the rows of a table are chosen by conditions, not by weights.")
    return onto


def weighed(table: Counts, names: Sequence[str], factors: Sequence[Factor]) -> int:
    """The sum of the product of the factors, from the table of their attributes."""
    single = [factor.scope for factor in factors] == [(name,) for name in names]
    if single and sum(factor.unit > 1 for factor in factors) < 2:
        for factor in reversed(factors):  # the last one has the last axis
            table = table @ factor.weights.astype(np.int64)
        return int(table)
    return int((table * Query(tuple(factors), complement=False).table(names, table.shape)).sum())


def answer(query: Query, rows: int, domain: Domain, count: Callable[[Group], Counts]) -> int:
    """The answer in grid steps, from the tables that `count` gives for groups."""
    one, rest = group((), query.factors, domain)
    total = weighed(_met(one, count), one.names, rest)
    return query.unit * rows - total if query.complement else total


def table(names: Sequence[str], where: Query | None, domain: Domain, count: Callable[[Group], Counts]) -> Counts:
    """The table of these attributes among the rows that meet a condition, likewise."""
    where = where or Query.constant(everyone=True)
    one, rest = group(names, where.factors, domain)
    found = _met(one, count)
    if rest:
        found = found * Query(rest, complement=False).table(one.names, found.shape)
    met: Counts = found.sum(axis=tuple(range(len(names), len(one.names))))
    return count(Group(tuple(names))) - met if where.complement else met


def _met(one: Group, count: Callable[[Group], Counts]) -> Counts:
    """The counts of the rows that meet the group's conditions."""
    found = count(one)
    return found[..., 1] if one.where else found


def _joined(names: tuple[str, ...], factors: tuple[Factor, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*names, *(name for factor in factors for name in factor.scope)]))
