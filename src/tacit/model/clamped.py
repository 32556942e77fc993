"""What has to be said where values of an attribute were moved to the ends of its range. Public words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tacit.model.ask import (
    EVERYONE,
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Range,
    Select,
    Stat,
)
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.expression import All, Compare, Expression, Not, OfOne
from tacit.model.possible import possible
from tacit.model.query import Query


def clamped_ends(condition: Expression, domain: Domain) -> tuple[str, ...]:
    """A sentence for each clamped attribute at whose ends the condition tells rows apart; for a condition that binds.

    What lies outside was taken for the nearest end. `stay >= 25` is right about that, and `stay > 30` is not, nor are
    `stay <= 30` and `stay = 30`.
    """
    return _said(_touched(condition, domain), domain) if domain.clamps else ()


def clamped_values(ask: Ask, domain: Domain) -> tuple[str, ...]:
    """A sentence for each clamped attribute whose values a question shows, adds up, spreads out or groups by.

    Not where its condition leaves out both ends, since everything that was moved lies there.
    """

    def at_an_end(name: str, where: Query) -> bool:
        attribute = domain[name]
        return attribute.clamp and bool(possible(where, (name,), (attribute.size,))[[0, attribute.bins - 1]].any())

    return _said((name for name, where in _values(ask) if at_an_end(name, where)), domain)


def _said(names: Iterable[str], domain: Domain) -> tuple[str, ...]:
    return tuple(
        f"{name} is clamped: what lies outside {domain[name].takes} counts at the nearest end"
        for name in dict.fromkeys(names)
    )


def _values(ask: Ask) -> Iterator[tuple[str, Query]]:
    """The attributes that a question is about by their values, and the rows that it is about."""
    match ask:
        case Cdf() | Histogram():
            yield ask.name, EVERYONE
        case Crosstab() | Covariance():
            yield from ((name, ask.where) for name in ask.names)
        case Select():
            for column in ask.columns:
                yield from _values(column.value)
                yield from ((group.name, column.value.where) for group in ask.groups)
        case Derived():
            for select in ask.selects:
                yield from _values(select)
        case Count() | Fraction() | Stat() | Range():
            return
        case _:  # an aggregate of one attribute, or a quantile
            yield ask.name, ask.where


def _touched(condition: Expression, domain: Domain) -> Iterator[str]:
    match condition:
        case All(parts):
            for part in parts:
                yield from _touched(part, domain)
        case Not(part):
            yield from _touched(part, domain)
        case OfOne():
            name, attribute = domain.named(condition.name)
            if attribute.clamp and _at_an_end(condition, attribute):
                yield name


def _at_an_end(condition: OfOne, attribute: Attribute) -> bool:
    chosen, bins = set(condition.indices(attribute, True)), attribute.bins
    if isinstance(condition, Compare):  # at an end it is met by every value there is, or by none
        return len(chosen) in (0, bins)
    return not chosen.isdisjoint({0, bins - 1})
