"""A question as a server reads it, and an answer as it writes it: the JSON of docs/reference/http.md. Pure.

SQL stays text. An answer is read back into the class that a session gives, field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any, TypeVar, assert_never

import numpy as np
from msgspec import UNSET, UnsetType

from tacit.errors import InvalidQuery, ServerError
from tacit.model.answer import Answer, Limits, QuantileAnswer
from tacit.model.ask import (
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Mean,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
)
from tacit.model.budget import Loss, Measure
from tacit.model.facts import Bar, Facts, Receipt, about_of, joined
from tacit.model.query import Query
from tacit.model.table import Answers, CdfAnswer, Listing, Row, Table
from tacit.replies import AnswerLine, given

Json = dict[str, Any]
T = TypeVar("T")
LOST = "the connection broke when this was first asked: what it cost then, if anything, was paid, and once"


def loss(amount: Mapping[Measure, float]) -> Loss:
    """A loss of its JSON. Whole atoms below 10^15 have at most 15 digits, so the decimal tells them exactly."""
    ((measure, number),) = amount.items()
    return Loss.of(measure, number)


def read_answer(line: AnswerLine, *, again: bool = False) -> Answers:
    """The answer. `again`: an earlier try to ask may have reached the server and paid."""
    facts = _facts(line, again=again)
    if line.share is not UNSET:
        low, high = _there(line.interval) or ("", "")
        first, last = _there(line.limits)
        return QuantileAnswer(
            question=line.question,
            share=line.share,
            value=str(line.value),
            low=low,
            high=high,
            facts=facts,
            limits=(first, last),
        )
    if line.errors is not UNSET:
        return _listing(line, line.errors, facts)
    if line.ends is not UNSET:
        return _curve(line, line.ends, facts)
    if line.columns is not UNSET:
        return _table(line, line.columns, facts)
    beyond = float(given(line.beyond) or 0)
    return Answer(line.question, _number(line.value), facts, _limits(_there(line.limits)), beyond)


def _facts(line: AnswerLine, *, again: bool) -> Facts:
    entry, seal, note = given(line.entry), given(line.seal), given(line.note) or ""
    asked, total = given(line.asked_confidence), given(line.total)
    if again and line.source == "repeat":
        note = joined((note, LOST))
    return Facts(
        source=line.source,
        cost=loss(line.cost),
        confidence=line.confidence if asked is None else asked,
        receipt=None if entry is None or seal is None else Receipt(entry, seal),
        note=note,
        bars=tuple(Bar(bar.width, about_of(bar.about), bar.confidence) for bar in line.bars),
        total=None if total is None else loss(total),
    )


def _table(line: AnswerLine, columns: list[str], facts: Facts) -> Table:
    """The labels of an axis stand where those of all axes after it have gone round once."""
    rows, shape = _there(line.rows), _there(line.shape)
    labels, step = list[tuple[str, ...]](), len(rows)
    for axis, size in enumerate(shape):
        step //= size
        labels.append(tuple(rows[place * step][axis] for place in range(size)))
    values = np.array([row[-1] for row in rows]).reshape(shape)  # whole numbers stay whole
    own = None
    if not isinstance(line.own, UnsetType):
        own = np.array([inf if error is None else error for error in line.own], dtype=np.float64).reshape(shape)
    return Table(
        question=line.question,
        names=tuple(columns[:-1]),
        labels=tuple(labels),
        values=values,
        facts=facts,
        limits=_limits(_there(line.limits)),
        along=given(line.along),
        own=own,
    )


def _listing(line: AnswerLine, errors: Sequence[Sequence[float | None]], facts: Facts) -> Listing:
    columns, many = _there(line.columns), _there(line.labels)
    listed = tuple(
        Row(tuple(row[:many]), tuple(_number(value) for value in row[many:]), tuple(bars))
        for row, bars in zip(_there(line.rows), errors, strict=True)
    )
    limits = tuple(_limits(one) for one in _there(line.limits))
    names, titles = tuple(columns[:many]), tuple(columns[many:])
    return Listing(
        question=line.question,
        names=names,
        titles=titles,
        listed=listed,
        facts=facts,
        limits=limits,
        plain=tuple(_there(line.plain)),
    )


def _curve(line: AnswerLine, ends: Sequence[float], facts: Facts) -> CdfAnswer:
    rows = _there(line.rows)
    return CdfAnswer(
        question=line.question,
        name=_there(line.columns)[0],
        labels=tuple(row[0] for row in rows),
        start=_there(line.start),
        ends=np.array(ends, dtype=np.float64),
        values=np.array([row[1] for row in rows], dtype=np.float64),
        rows=_there(line.limits)[1],
        facts=facts,
        dated=_there(line.dated),
        why=given(line.why) or "",
    )


def _number(value: Any) -> Any:
    """JSON has no NaN: where there is no value, it says null."""
    return nan if value is None else value


def _limits(given: Sequence[Any]) -> Limits:
    low, high = given
    return -inf if low is None else low, inf if high is None else high


def _there(value: T | UnsetType) -> T:
    if isinstance(value, UnsetType):
        raise other_version()
    return value


def other_version() -> ServerError:
    error = ServerError("The server's answer cannot be read: it is of another version. Asking again is free.")
    error.nothing_spent = False
    return error


def written(ask: Ask | str) -> str | Json:
    """The JSON of a question. Conditions are written as weights, which mean the same rows wherever they are read."""
    match ask:
        case str():
            return ask
        case Count():
            return {"count": _rows(ask.query)}
        case Stat():
            form = ask.statistic.to_dict()
            return {"statistic": form["name"], "scope": form["scope"], "arguments": form["arguments"]}
        case Crosstab():
            return {"table": list(ask.names), **_where(ask.where)}
        case Fraction():
            return {"fraction": _rows(ask.where), "given": _rows(ask.given)}
        case Sum():
            return {"sum": ask.name, **_where(ask.where)}
        case Mean():
            return {"mean": ask.name, **_where(ask.where), **_given(share=ask.share)}
        case Variance():
            return {"stddev" if ask.root else "variance": ask.name, **_where(ask.where), "sample": ask.sample}
        case Covariance() if ask.correlation:
            return {"correlation": list(ask.names), **_where(ask.where)}
        case Covariance():
            return {"covariance": list(ask.names), **_where(ask.where), "sample": ask.sample}
        case Quantile():
            return {"quantile": ask.name, "q": ask.q, **_where(ask.where), **_given(share=ask.share)}
        case Cdf():
            return {"cdf": ask.name, **_given(share=ask.share, strategy=ask.strategy)}
        case Histogram():
            return {"histogram": ask.name, **_given(width=ask.width, share=ask.share)}
        case Range():
            return {"range": _rows(ask.query), **_given(share=ask.share)}
        case Select() | Derived() if ask.text:
            return ask.text
        case Select() | Derived():
            raise InvalidQuery("a statement is asked of a server by its text, with ask.")
    assert_never(ask)  # a class without a case does not pass the type check


def _rows(query: Query) -> list[Json]:
    return [query.to_dict()]


def _where(where: Query) -> Json:
    return {} if where.is_everyone else {"where": _rows(where)}


def _given(**options: object) -> Json:
    return {name: value for name, value in options.items() if value is not None}
