"""Groups of a column's values as SQL writes them: FLOOR(age / 20) * 20, YEAR(d), date_trunc('month', d).

For `sql.condition` and `sql.group`. A group is compared by its value: 40, 2022, the first day of a month.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import GroupBy
from tacit.model.attribute import Attribute
from tacit.model.bands import FITTING, Bands, Period, as_texts, by_label, by_period, by_width, cuts_period
from tacit.model.block import HOLDS
from tacit.model.expression import All, Among, Between, Compare, Comparison, Expression, Not, OfOne
from tacit.model.sql.reading import GROUP_WORK, Reading, column, finite, only, plain_value, stripped, text
from tacit.model.values import MAX_LABEL, Days, Listed, Value

MAX_RESULT_ROWS = 2**20  # of a result
# How strftime writes a month and a year, and how much of a day that is.
_WRITTEN: dict[str, Period] = {"%Y-%m": "month", "%Y": "year"}
_LETTERS: dict[Period, int] = {"month": len("2024-05"), "year": len("2024")}
_SHORTEST = {"day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}  # days of such a period, at least
TRUNCATED = (exp.DateTrunc, exp.TimestampTrunc)


@dataclass(frozen=True)
class AmongPlaces(OfOne):
    """The attribute's value is among some that were found by their labels; for values in neither list it is unknown."""

    met: frozenset[int]
    failed: frozenset[int]

    def indices(self, attribute: Attribute, wanted: bool) -> Iterable[int]:
        return self.met if wanted else self.failed


def banded(node: exp.Expr, read: Reading) -> GroupBy | None:
    """The column and the groups of its values that an expression is; None if it is no such expression."""
    node = stripped(node)
    if isinstance(node, exp.Column):
        return None if node.args.get("table") else read.groups.get(node.name.lower())
    return _by_width(node, read) or _by_period(node, read) or _coalesced(node, read)


# -- expressions ------------------------------------------------------------------------------------------------------


def _by_width(node: exp.Expr, read: Reading) -> GroupBy | None:
    """FLOOR(age / 10) * 10, age / 10 * 10, age // 10 * 10."""
    if not isinstance(node, exp.Mul):
        return None
    inner, factor = stripped(node.this), node.expression
    if isinstance(factor, exp.Floor | exp.Div | exp.IntDiv):
        inner, factor = factor, node.this
    floor = isinstance(inner, exp.Floor) and only(inner, "this")
    quotient = stripped(inner.this) if floor else inner
    if not isinstance(quotient, exp.Div | exp.IntDiv) or not isinstance(stripped(quotient.this), exp.Column):
        return None
    name = column(stripped(quotient.this), read)
    width, again = plain_value(stripped(quotient.expression)), plain_value(stripped(factor))
    attribute = read.domain[name]
    if attribute.kind not in ("integer", "numeric"):
        raise InvalidQuery(f"{name} is not a number, so it has no bins to widen; group by {name} itself.")
    if not isinstance(width, int | float) or not 0 < width < 1e300 or width != again:
        raise InvalidQuery(f"bins are written FLOOR({name} / 10) * 10, with the same number twice.")
    if not floor and (attribute.kind == "numeric" or attribute.edge(0) < 0):
        raise InvalidQuery(f"write FLOOR({name} / {width}) * {width}: without FLOOR engines do not agree on it.")
    check_cells(attribute.size)
    return GroupBy(name, name, by_width(name, attribute, width, lambda number: read.meter.takes(GROUP_WORK * number)))


def _by_period(node: exp.Expr, read: Reading) -> GroupBy | None:
    """YEAR(d), EXTRACT(YEAR FROM d), date_trunc('quarter', d), strftime(d, '%Y-%m')."""
    written = _WRITTEN.get(node.text("format")) if isinstance(node, exp.TimeToStr) else None
    if isinstance(node, TRUNCATED):
        period, of = node.text("unit").lower(), node.this
    elif written is not None:
        period, of = written, node.this
    elif isinstance(node, exp.Year) or (isinstance(node, exp.Extract) and node.name.upper() == "YEAR"):
        period, of = "year", node.this if isinstance(node, exp.Year) else node.expression
    else:
        return None
    if not isinstance(of, exp.Column):
        raise InvalidQuery(f"{text(node)} cannot be asked; it takes a declared column.")
    name = column(of, read)
    attribute = read.domain[name]
    if not isinstance(attribute.values, Days):
        raise InvalidQuery(f"{text(node)} cannot be asked: {name} is declared as {attribute.kind}.")
    fit = FITTING[attribute.values.by]
    if period not in fit:
        raise InvalidQuery(
            f"{text(node)} cannot be asked: {name} is declared by {attribute.values.by}, so that what fits is "
            f"{', '.join(fit)}."
        )
    check_cells(attribute.size)
    read.meter.takes(GROUP_WORK * (attribute.size // (_SHORTEST[period] // _SHORTEST[attribute.values.by]) + 1))
    if attribute.other is not None and cuts_period(attribute.values, period):
        read.notes.append(f"{name} takes {attribute.takes}: days before and after are {attribute.other}")
    if written is not None:
        return GroupBy(name, text(node), as_texts(by_period(name, attribute, written), _LETTERS[written]))
    numbered = not isinstance(node, TRUNCATED)
    return GroupBy(name, text(node), by_period(name, attribute, period, numbered=numbered))


def _coalesced(node: exp.Expr, read: Reading) -> GroupBy | None:
    """COALESCE(region, 'none'): the listed values, with missing ones under another name or at another value."""
    if not isinstance(node, exp.Coalesce) or not isinstance(node.this, exp.Column) or len(node.expressions) != 1:
        return None
    name, value = column(node.this, read), plain_value(node.expressions[0])
    attribute = read.domain[name]
    if not isinstance(attribute.values, Listed):
        raise InvalidQuery(f"{text(node)} is not answered here; missing values are asked for with {name} IS NULL.")
    check_cells(attribute.size)
    read.meter.takes(GROUP_WORK * attribute.size)
    text_or_number = str if attribute.kind == "boolean" else type(attribute.values.values[0])
    label = checked_label(value)
    if not isinstance(label, text_or_number):
        raise InvalidQuery(f"{text(node)} is not answered here: {label!r} is no value like those of {name}.")
    found = dict[str | int | float | None, list[int]]()
    for i in range(attribute.size):
        known = attribute.label(i) if text_or_number is str or i >= attribute.bins else attribute.values.values[i]
        found.setdefault(label if i == attribute.missing_index else known, []).append(i)
    return GroupBy(name, text(node), by_label(name, found))


def checked_label(value: Value) -> str | int | float:
    """A label of a group that a statement gives it."""
    found = _named(value)
    if isinstance(found, str) and not (found.isprintable() and 0 < len(found) <= MAX_LABEL):
        raise InvalidQuery(f"the label of a group is a text of 1 to {MAX_LABEL} printable characters.")
    if not isinstance(found, str):
        finite(found)
    assert not isinstance(found, dt.date)
    return found


def check_cells(cells: int) -> None:
    if cells > MAX_RESULT_ROWS:
        raise InvalidQuery(f"the result would have up to {cells:,} rows; the most is {MAX_RESULT_ROWS:,}.")


# -- comparisons ------------------------------------------------------------------------------------------------------


def equal(group: GroupBy, wanted: Sequence[Value], read: Reading) -> Expression:
    """The rows of the groups that have one of these values, or labels."""
    bands = _bands(group)
    at = [_place(group, value) for value in wanted]
    if bands.end is None:
        return _chosen(group, set(at))
    each = tuple(_rows(group, place, read) for place in at)
    return each[0] if len(each) == 1 else Not(All(tuple(Not(one) for one in each)))


def compare(group: GroupBy, sign: Comparison, value: Value, read: Reading) -> Expression:
    """The rows of the groups whose value is below or above one."""
    bands, point = _bands(group), _point(group, value)
    values = _known(bands)
    if isinstance(point, str) and bands.end is None:
        raise InvalidQuery(f"{group.title} has no order, so {group.title} {sign} {value!r} has no meaning.")
    if bands.end is None:
        numbers = {i: one for i, one in enumerate(bands.values) if isinstance(one, int | float)}
        return _chosen(group, {i for i, one in numbers.items() if HOLDS[sign](one, point)}, numbers)
    if not values[0] <= point <= bands.end:
        raise _outside(group, value)
    cut = (bisect_left if sign in ("<", ">=") else bisect_right)(values, point)
    return Compare(group.name, "<" if sign.startswith("<") else ">=", _edge(group, cut, read))


def between(group: GroupBy, low: Value, high: Value, read: Reading) -> Expression:
    if _point(group, low) > _point(group, high):
        raise InvalidQuery(f"a range of {group.title} goes from the lower end to the higher, not from {low} to {high}.")
    return All((compare(group, ">=", low, read), compare(group, "<=", high, read)))


def missing(group: GroupBy) -> Expression:
    """The rows whose group is NULL."""
    bands = _bands(group)
    if bands.end is not None:
        return Among(group.name, (None,))
    listed = zip(bands.parts, bands.labels, strict=True)
    null = frozenset(i for part, label in listed if label == bands.null for i in part)
    return AmongPlaces(group.name, null, frozenset(i for part in bands.parts for i in part) - null)


def _bands(group: GroupBy) -> Bands:
    assert group.bands is not None
    return group.bands


def _known(bands: Bands) -> list[Any]:
    """The values of its groups: all numbers, all days or all texts."""
    return [value for value in bands.values if value is not None]


def _place(group: GroupBy, value: Value) -> int:
    """Which group has a value or a label."""
    bands = _bands(group)
    if isinstance(value, str) and value in bands.labels and value:
        return bands.labels.index(value)
    point = _point(group, value)
    if point not in bands.values:
        raise _outside(group, value)
    return bands.values.index(point)


def _point(group: GroupBy, value: Value) -> Any:
    """A value as the groups have it: a number, a day or a text."""
    example = next(iter(_known(_bands(group))), None)
    if isinstance(example, dt.date):
        try:
            return dt.date.fromisoformat(str(value))
        except ValueError:
            raise InvalidQuery(f"{group.title} takes dates like {example}, the question asks {value!r:.60}.") from None
    value = _named(value)
    if isinstance(value, str) != isinstance(example, str):
        raise _outside(group, value)
    return value


def _named(value: Value) -> Value:
    """A value as labels have it: true and false are texts there."""
    return str(value).lower() if isinstance(value, bool) else value


def _outside(group: GroupBy, value: Value) -> InvalidQuery:
    bands = _bands(group)
    values = _known(bands)
    takes = ", ".join(map(str, values[:8])) + (", …" if len(values) > 8 else "")
    return InvalidQuery(f"{group.title} is one of {takes}; the question asks {value!r:.60}.")


def _rows(group: GroupBy, place: int, read: Reading) -> Expression:
    """The rows of one of the groups that lie in a row, or of another or missing value."""
    bands = _bands(group)
    if bands.values[place] is None:
        return Among(group.name, (bands.labels[place],))
    attribute = read.domain[group.name]
    if attribute.other_index is not None and bands.whole:  # what lies outside is in none of them
        return AmongPlaces(
            group.name, frozenset(bands.parts[place]), _not_missing(attribute) - frozenset(bands.parts[place])
        )
    return Between(group.name, _edge(group, place, read), _edge(group, place + 1, read), "<")


def _chosen(group: GroupBy, places: Collection[int], among: Iterable[int] | None = None) -> AmongPlaces:
    """The rows of some groups; for those of groups without a value, or not among some, it is unknown."""
    bands = _bands(group)
    known = [i for i, value in enumerate(bands.values) if value is not None] if among is None else among
    met = frozenset(i for place in places for i in bands.parts[place])
    return AmongPlaces(group.name, met, frozenset(i for place in known for i in bands.parts[place]) - met)


def _not_missing(attribute: Attribute) -> frozenset[int]:
    return frozenset(range(attribute.size)) - {attribute.missing_index}


def _edge(group: GroupBy, place: int, read: Reading) -> Value:
    """Where one of the groups that lie in a row begins; behind the last, where that ends."""
    bands, attribute = _bands(group), read.domain[group.name]
    inside = len(_known(bands))
    return edge_value(attribute, bands.parts[place][0] if place < inside else attribute.bins)


def edge_value(attribute: Attribute, index: int) -> Value:
    """An edge of a declared bin, as a condition has it."""
    edge = attribute.edge(index)
    return dt.date.fromordinal(int(edge)) if isinstance(attribute.values, Days) else edge
