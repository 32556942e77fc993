"""An answer as rows: the columns that were asked for, in their order, in their types. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from tacit.model.answer import Answer, QuantileAnswer, bar_words
from tacit.model.table import Listing, Table
from tacit.release.answering import Answers
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.select import TableSelect
from tacit.serve.postgres.types import BOOL, DATE, INT8
from tacit.serve.question import Question

Row = Sequence[Any]


def rows_of(select: TableSelect, question: Question, answer: Answers) -> Iterator[Row]:
    """The rows of an answer, with a value of its field's type, or None, for each column of the statement."""
    if isinstance(answer, Answer):
        yield (answer.value,)
    elif isinstance(answer, QuantileAnswer):
        yield (_group(answer.value, select.fields[0], None),)
    elif isinstance(answer, Table | Listing):
        missing = _missing(select, question, answer)
        for labels, values in answer.rows():
            listed = values if isinstance(values, tuple) else (values,)
            yield tuple(
                _group(labels[place.at], field, missing[place.at]) if place.group else listed[place.at]
                for place, field in zip(select.places, select.fields, strict=True)
            )
    else:
        raise AssertionError("SQL asks for no curve")


def notice(answer: Answers) -> str:
    """Where an answer comes from, how sure it is, and what it cost."""
    words = bar_words(answer)
    return words[0].upper() + words[1:]


def _missing(select: TableSelect, question: Question, answer: Table | Listing) -> list[str | None]:
    """The label that stands for a missing value in each column of labels."""
    groups = getattr(question.ask, "groups", None)
    domain = select.dataset.session.domain
    names = answer.names if groups is None else [group.name for group in groups]
    return [domain[name].missing for name in names]


def _group(label: str, field: Field, missing: str | None) -> Any:
    if label == missing:
        return None
    if field.type == INT8:
        return int(label)
    if field.type == DATE:
        return dt.date.fromisoformat(label)
    if field.type == BOOL:
        return label.lower() == "true"
    return label
