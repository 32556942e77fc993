"""The result of a question: its columns by name and type, and the rows of an answer in their order. Pure."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tacit.model.answer import Answer, QuantileAnswer, bar_words
from tacit.model.ask import Ask, Crosstab, Derived, Quantile, Select
from tacit.model.derived import Folded
from tacit.model.domain import Domain
from tacit.model.outer import Given
from tacit.model.select import GroupBy
from tacit.model.table import Answers, Listing, Table
from tacit.serve.postgres.types import BOOL, DATE, FLOAT8, INT8, TEXT, group_type

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
                group = _group_of(ask, i) if kind == "text" else None
                found.append(_label(at, group, domain) if kind == "text" else ResultColumn(False, at, FLOAT8))
            return tuple(found)
        case Crosstab():
            groups = [_label(i, GroupBy(name, name), domain) for i, name in enumerate(ask.names)]
            return (*groups, ResultColumn(False, 0, FLOAT8))
        case Quantile():
            return (ResultColumn(False, 0, group_type(domain[ask.name])),)
    return (ResultColumn(False, 0, FLOAT8),)


def _label(at: int, group: GroupBy | None, domain: Domain) -> ResultColumn:
    if group is None:  # text that was written, in a CASE
        return ResultColumn(True, at, TEXT)
    attribute = domain[group.name]
    return ResultColumn(True, at, TEXT if group.width is not None else group_type(attribute), attribute.missing)


def _group_of(source: Select | Folded | Derived, column: int) -> GroupBy | None:
    """The group whose labels a column has, if it has such."""
    if isinstance(source, Select):
        return source.groups[column] if column < len(source.groups) else None
    if isinstance(source, Folded):
        return _group_of(source.source, source.by[column]) if column < len(source.by) else None
    node = source.shown[column].node
    return _group_of(source.source, node.index) if isinstance(node, Given) else None


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
    words = bar_words(answer)
    return words[0].upper() + words[1:]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _shown(label: str, place: ResultColumn) -> Any:
    if label == place.missing:
        return None
    if place.type == INT8:
        return int(label)
    if place.type == DATE:
        return dt.date.fromisoformat(label)
    return label == "true" if place.type == BOOL else label
