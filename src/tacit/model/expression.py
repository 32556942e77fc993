"""Questions as people write them: conditions on named attributes, not yet tied to a domain.

NULL follows SQL: a comparison with a missing value is neither true nor false, so `age < 30` and `NOT age < 30` both
leave out the rows whose age is missing. `IS NULL`, and the missing value's declared label, are ordinary conditions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.values import Value

Comparison = Literal["<", "<=", ">", ">="]


class Expression(ABC):
    """A condition on a row. Combine with &, | and ~; `bind` ties it to a domain."""

    def __and__(self, other: Expression) -> Expression:
        return All((self, other))

    def __or__(self, other: Expression) -> Expression:
        return Not(All((Not(self), Not(other))))

    def __invert__(self) -> Expression:
        return Not(self)

    def __bool__(self) -> bool:
        raise InvalidQuery("conditions are combined with &, | and ~; Python's and, or and not do not work on them.")

    def bind(self, domain: Domain) -> Query:
        """The query that counts the rows for which this is true."""
        try:
            return self.truth(domain, True)
        except RecursionError:
            raise InvalidQuery("the condition is nested too deeply.") from None

    @abstractmethod
    def truth(self, domain: Domain, wanted: bool) -> Query:
        """The rows for which this is true (wanted) or false; rows for which it is neither are in no case counted."""


@dataclass(frozen=True)
class All(Expression):
    """Every part holds; with no parts, everyone."""

    parts: tuple[Expression, ...]

    def truth(self, domain: Domain, wanted: bool) -> Query:
        parts = (part.truth(domain, wanted) for part in self.parts)
        return Query.all(parts) if wanted else Query.any(parts)


@dataclass(frozen=True)
class Not(Expression):
    """The part is false."""

    part: Expression

    def truth(self, domain: Domain, wanted: bool) -> Query:
        return self.part.truth(domain, not wanted)


@dataclass(frozen=True)
class Among(Expression):
    """The attribute has one of these values; None stands for the missing value."""

    name: str
    values: tuple[Value | None, ...]

    def truth(self, domain: Domain, wanted: bool) -> Query:
        attribute = domain[self.name]
        listed = {attribute.find(self.name, value) for value in self.values if value is not None}
        if None in self.values and attribute.missing_index is not None:  # where none is declared, no row is missing
            listed.add(attribute.missing_index)
        if not wanted:  # a missing value is not equal to anything, nor different from it
            listed = set(range(attribute.size)) - listed - {attribute.missing_index}
        return Query.among(domain, self.name, listed)


@dataclass(frozen=True)
class Compare(Expression):
    """The attribute is below or above a value, which must be an edge of its bins.

    A row whose value is missing, or only known to lie outside the bins, is neither.
    """

    name: str
    operator: Comparison
    value: Value

    def truth(self, domain: Domain, wanted: bool) -> Query:
        attribute = domain[self.name]
        cut, below = self.cut(attribute), self.operator.startswith("<") == wanted
        return Query.among(domain, self.name, range(cut) if below else range(cut, attribute.bins))

    def cut(self, attribute: Attribute) -> int:
        """How many bins lie below the cut."""
        if not attribute.ordered:
            raise InvalidQuery(
                f"{self.name} has no order, so {self.name} {self.operator} {self.value!r} has no meaning."
            )
        return attribute.below(self.name, self.value, included=self.operator in ("<=", ">"))


@dataclass(frozen=True, eq=False)
class Weigh(Expression):
    """Every row counts with a weight from 0 to 1 that depends on its values of a few attributes."""

    names: tuple[str, ...]
    weights: Any

    def truth(self, domain: Domain, wanted: bool) -> Query:
        query = Query.weighted(domain, self.names, self.weights)
        return query if wanted else ~query


def count(*conditions: Expression, **where: Any) -> Expression:
    """The rows for which all conditions hold: `count(sex="F", age=(20, 39), region=["north", "east"])`.

    A value asks for equality, a list for any of its values, a pair for a range (both ends included; for numeric
    attributes the upper end excluded), None for the missing value.
    """
    for condition in conditions:
        if not isinstance(condition, Expression):
            raise InvalidQuery(f"a condition is written like count(sex='F'), not {type(condition).__name__}.")
    return All((*conditions, *(_condition(name, value) for name, value in where.items())))


def weigh(*names: str, weights: Any) -> Expression:
    """Every row counts with the weight listed for its values: `weigh("age", weights=[0, 0.25, 1])`."""
    return Weigh(names, weights)


def _condition(name: str, value: Any) -> Expression:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InvalidQuery(f"{name}: a range is a pair (low, high); list several values in [ ].")
        return Between(name, _plain(value[0]), _plain(value[1]))
    if isinstance(value, list | set | frozenset | range | np.ndarray):
        return Among(name, tuple(_plain(v) for v in value))
    return Among(name, (_plain(value),))


@dataclass(frozen=True)
class Between(Expression):
    """A range of whole bins, from `low` on. `upper` says whether `high` itself is in it.

    By default it is; for numeric attributes it is not, as their bins are half-open.
    """

    name: str
    low: Value
    high: Value
    upper: Comparison | None = None

    def truth(self, domain: Domain, wanted: bool) -> Query:
        attribute = domain[self.name]
        upper: Comparison = self.upper or ("<" if attribute.kind == "numeric" else "<=")
        first = Compare(self.name, ">=", self.low).cut(attribute)
        end = Compare(self.name, upper, self.high).cut(attribute)
        outside = [*range(first), *range(end, attribute.bins)]
        return Query.among(domain, self.name, range(first, end) if wanted else outside)


def _plain(value: Any) -> Any:
    """A Python value for a numpy scalar; anything that is no value at all is refused here rather than deep inside."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, Value):
        raise InvalidQuery(
            f"a condition is a value, a list of values or a pair (low, high), not {type(value).__name__}."
        )
    return value
