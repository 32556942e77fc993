"""How means and fractions are put together: of what their rows have and the rest, or of what they have and how many.

By their rest they have the narrower bar. They are made of their number where that is public, and where a part would
have to be bought: the number is asked for by others too. In a group they are as under the group's condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Aggregate, Fraction, Mean
from tacit.model.ask import GroupBy
from tacit.model.bands import gathered
from tacit.model.block import column_of_blocks
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.formula import Formula
from tacit.model.possible import possible
from tacit.model.query import Query, plain_product
from tacit.release.evidence import Setting, rows_in

MOST_WEIGHED_UP = 10_000  # groups that are looked at one by one, where they may differ


def formula_of(ask: Aggregate, setting: Setting) -> Formula:
    """How a value is put together without groups."""
    if isinstance(ask, Mean | Fraction) and ask.by_rest is not None and _by_rest(ask, (), setting):
        return ask.by_rest
    return ask.formula


def formulas_of(ask: Aggregate, groups: Sequence[GroupBy], setting: Setting) -> tuple[Formula, ...]:
    """How a value is put together in groups: in one way, or in two ways that are about some of the groups each."""
    if not groups or not isinstance(ask, Mean | Fraction):
        return (formula_of(ask, setting),)
    by_rest = ask.by_rest if isinstance(ask, Mean) else ask.by_others
    domain, names = setting.domain, [group.name for group in groups]
    opened = possible(_rows(ask), names, domain.shape_of(names))
    for axis, group in enumerate(groups):
        opened = gathered(np.logical_or, opened, group.parts(domain), axis)
    alike = _alike(ask, groups)
    if by_rest is None or not opened.any() or (not alike and opened.sum() > MOST_WEIGHED_UP):
        return (ask.formula,)
    cells = [tuple(cell) for cell in np.argwhere(opened).tolist()]
    chosen, certain = np.zeros_like(opened), np.zeros_like(opened)
    for cell in cells[:1] if alike else cells:
        inside = rows_in(groups, [one.parts(domain)[at] for one, at in zip(groups, cell, strict=True)], domain)
        certain[cell] = any(part.query(domain, inside).is_constant for part in by_rest.parts)
        chosen[cell] = not certain[cell] and _by_rest(ask, inside, setting)
    if chosen.any():  # where all rows of a group have the value, or none can, its rest is as good as their number
        chosen |= certain
    if alike or chosen[opened].all() or not chosen.any():
        return (by_rest if chosen.any() else ask.formula,)
    try:
        return tuple(
            _in_some(formula, groups, some, domain) for formula, some in ((ask.formula, ~chosen), (by_rest, chosen))
        )
    except InvalidQuery:  # the groups tie more attributes together than a question can
        return (ask.formula,)


def _by_rest(ask: Mean | Fraction, inside: Sequence[Query], setting: Setting) -> bool:
    """Whether the rows that also lie `inside` have a value by its rest: both parts are certified."""
    domain = setting.domain
    if isinstance(ask, Fraction):
        if inside:  # as it is under these conditions, whichever of its own they make needless
            ask, inside = Fraction(*(Query.all([one, *inside]) for one in (ask.where, ask.given))), ()
        if not _like_the_certified(ask.telling, domain):
            return False
    rows = Query.all([_rows(ask), *inside])
    # How many rows there are is public, in all of them and in each block.
    counted = rows.is_everyone or set(rows.scope) == {column_of_blocks(domain)}
    if counted and not (isinstance(ask, Mean) and domain[ask.name].extras):
        return False
    made = ask.by_rest
    return made is not None and all(setting.certifies(part.query(domain, inside)) for part in made.parts)


def _rows(ask: Mean | Fraction) -> Query:
    return ask.where if isinstance(ask, Mean) else ask.given


def _like_the_certified(telling: Factor | None, domain: Domain) -> bool:
    """Whether rows that do not meet a condition are like those that are certified: one range, if it has an order."""
    if telling is None:
        return False
    edges = int(np.count_nonzero(np.diff(telling.flipped().weights, prepend=0, append=0)))
    return edges <= 2 or not domain[telling.scope[0]].ordered


def _alike(ask: Mean | Fraction, groups: Sequence[GroupBy]) -> bool:
    """Whether what is asked of one group is what is asked of any other, but for the group's own values."""
    names = {group.name for group in groups}
    conditions = (ask.where,) if isinstance(ask, Mean) else (ask.where, ask.given)
    met = [[one for one in plain_product(where) if names.intersection(one.scope)] for where in conditions]
    same = {frozenset((one.scope, one.weights.tobytes()) for one in some) for some in met}
    simple = all(len(one.scope) == 1 for some in met for one in some)
    return simple and len(same) == 1 and all(group.each_value for group in groups)


def _in_some(formula: Formula, groups: Sequence[GroupBy], some: NDArray[np.bool_], domain: Domain) -> Formula:
    """A formula for some of the groups: in the others no row counts, and nothing is asked."""
    named = {group.name: axis for axis, group in enumerate(groups)}
    weights = np.zeros(domain.shape_of(list(named)), dtype=np.uint8)
    parts = [group.parts(domain) for group in groups]
    for cell in np.argwhere(some).tolist():
        weights[np.ix_(*(list(each[at]) for each, at in zip(parts, cell, strict=True)))] = 1
    scope = tuple(sorted(named))
    among = Factor(scope, weights.transpose([named[name] for name in scope]), 1)
    where = Query.product([among], complement=False)
    return replace(formula, parts=tuple(replace(one, where=Query.all([one.where, where])) for one in formula.parts))
