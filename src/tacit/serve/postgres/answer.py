"""The result of a question: its columns by name and type, and the rows of an answer in their order. Pure."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tacit.model.answer import Answer, QuantileAnswer, bar_words
from tacit.model.ask import Ask, Crosstab, Derived, Quantile, Select
from tacit.model.calculation import Case, Constant, Given, Outer
from tacit.model.derivation import Folded
from tacit.model.domain import Domain
from tacit.model.select import GroupBy
from tacit.model.table import Answers, Listing, Table
from tacit.serve.postgres.types import BOOL, DATE, FLOAT8, INT8, TEXT, band_type, group_type

Row = Sequence[Any]


class ResultColumn(NamedTuple):
    """What stands at one position of a result: a label or a value, and which of them; its type, and what is NULL."""

    label: bool
    at: int
    type: int
    missing: str | None = None


def places_of(ask: Ask, domain: Domain) -> tuple[ResultColumn, ...]:
    """The columns of a question's result."""
    match ask:
        case Select() | Derived():
            kinds = ask.kinds
            found = list[ResultColumn]()
            for i, kind in enumerate(kinds):
                at = sum((other == "text") == (kind == "text") for other in kinds[:i])
                found.append(_label(at, _origin(ask, i), domain) if kind == "text" else ResultColumn(False, at, FLOAT8))
            return tuple(found)
        case Crosstab():
            groups = [_label(i, GroupBy(name, name), domain) for i, name in enumerate(ask.names)]
            return (*groups, ResultColumn(False, 0, FLOAT8))
        case Quantile():
            return (ResultColumn(False, 0, group_type(domain[ask.name])),)
    return (ResultColumn(False, 0, FLOAT8),)


def _label(at: int, origin: GroupBy | Outer, domain: Domain) -> ResultColumn:
    if isinstance(origin, GroupBy):
        if origin.bands is not None:
            return ResultColumn(True, at, band_type(origin.bands), origin.bands.null)
        attribute = domain[origin.name]
        return ResultColumn(True, at, group_type(attribute), attribute.missing)
    written = set(_written(origin))
    # NULL has no text in an answer, where nobody has written that one.
    missing = "" if None in written and "" not in written else None
    return ResultColumn(True, at, BOOL if written <= {"true", "false", None} else TEXT, missing)


def _written(node: Outer) -> Iterator[object]:
    """The texts that an expression may be, None for NULL; a comparison is one of 'true' and 'false'."""
    if isinstance(node, Case):
        for one in (*(value for _, value in node.branches), node.otherwise):
            yield from _written(one)
    else:
        yield node.value if isinstance(node, Constant) else node


def _origin(source: Select | Folded | Derived, column: int) -> GroupBy | Outer:
    """Where a column of texts comes from: the group whose labels it has, or an expression."""
    if isinstance(source, Select):
        return source.groups[column]
    if isinstance(source, Folded):
        return _origin(source.source, source.by[column])
    node = source.shown[column].node
    return _origin(source.source, node.index) if isinstance(node, Given) else node


def rows_of(places: Sequence[ResultColumn], answer: Answers) -> Iterator[Row]:
    """The rows of an answer: a value of its type, or None, for each column."""
    if isinstance(answer, Table | Listing):
        for labels, values in answer.rows():
            numbers = values if isinstance(values, tuple) else (values,)
            yield tuple(
                _shown(labels[place.at], place) if place.label else _number(numbers[place.at]) for place in places
            )
    elif isinstance(answer, Answer | QuantileAnswer):
        value = answer.value
        yield (_shown(value, places[0]) if isinstance(value, str) else _number(value),)
    else:
        raise AssertionError("SQL asks for no curve")


def notice(answer: Answers) -> str:
    """Where an answer comes from, how sure it is, and what it cost."""
    words = answer.caption if isinstance(answer, Listing) and answer.titles else bar_words(answer)
    return words[0].upper() + words[1:]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _shown(label: str, place: ResultColumn) -> Any:
    if label == place.missing:
        return None
    if place.type == INT8:
        return int(label)
    if place.type == FLOAT8:
        return float(label)
    if place.type == DATE:
        return dt.date.fromisoformat(label)
    return label == "true" if place.type == BOOL else label
