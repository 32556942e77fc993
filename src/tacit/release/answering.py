"""A question taken apart, and its answer put together: two pure functions of the question and of what is public.

`parts` says what has to be known to answer; `combine` makes the answer of it. A dry run prices the parts; an answer
fetches them. A bar for one answer holds at the session's confidence c; a value made of k noisy answers holds at
1 - k(1 - c), by the union bound, whatever their noise has to do with each other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from operator import itemgetter
from typing import TypeVar

import numpy as np

from tacit.model.answer import Answer, Limits, QuantileAnswer
from tacit.model.ask import Ask, Cdf, Count, Crosstab, Histogram, Mean, Quantile, Range, Select, Stat
from tacit.model.facts import EXACT, Facts, joined
from tacit.model.formula import Figure, Weighed
from tacit.model.query import Query
from tacit.model.table import CdfAnswer, Listing, Row, Table
from tacit.model.workload import Marginal
from tacit.release import composed, curves
from tacit.release.estimate import TableEstimate
from tacit.release.evidence import Found, Setting, answer_to, facts_of, need_of_table, once, with_widest
from tacit.release.need import Need

T = TypeVar("T")
Answers = Answer | Table | CdfAnswer | QuantileAnswer | Listing


def parts(ask: Ask, setting: Setting) -> tuple[Need, ...]:
    """All that a question needs to be answered, each once. Refuses what has no answer."""
    domain = setting.domain
    match ask:
        case Count():
            return (ask.query,)
        case Stat():
            return (ask.statistic,)
        case Crosstab():
            return (need_of_table(ask.table, domain),)
        case Cdf() | Histogram() | Range():
            return curves.needs_of(ask, setting)
        case Quantile() | Mean() if ask.from_ranges:
            return curves.needs_of(ask, setting)
        case Quantile():
            return curves.quantile_needs(ask, setting)
        case Select() if ask.crosstab is not None:
            return parts(ask.crosstab, setting)
        case Select(groups=()):
            return once(need for column in ask.columns for need in parts(column.value, setting))
        case Select():
            needs = (composed.needs_of(part, ask.groups, setting) for part in _weighed(ask))
            return once(one for need in needs for one in ([need] if isinstance(need, Marginal) else need))
    return once(part.query(domain) for part in ask.formula.parts)


def combine(ask: Ask, found: Found, setting: Setting, words: str | None = None) -> Answers:
    """The answer to a question from its parts; `words` are the question's own, where they are known already."""
    text = words if words is not None else ask.words(setting.domain)
    ranged = isinstance(ask, Cdf | Histogram | Range) or (isinstance(ask, Quantile | Mean) and ask.from_ranges)
    if ranged and (offer := curves.offer(ask, found, setting)):
        made = _combined(ask, found, setting, text)
        return replace(made, facts=replace(made.facts, note=joined((made.facts.note, offer))))
    return _combined(ask, found, setting, text)


def _combined(ask: Ask, found: Found, setting: Setting, text: str) -> Answers:
    match ask:
        case Count():
            return answer_to(text, ask.query, found, setting.rows)
        case Stat():
            return answer_to(text, ask.statistic, found, setting.rows)
        case Crosstab():
            return _table(text, ask, found, setting)
        case Cdf():
            return curves.cdf(text, ask, found, setting)
        case Histogram():
            return curves.histogram(text, ask, found, setting)
        case Range():
            return curves.range_count(text, ask, found, setting)
        case Quantile():
            return curves.quantile(text, ask, found, setting)
        case Mean() if ask.from_ranges and (released := curves.release_of(ask.name, ask.share, found)):
            return curves.mean(text, ask, released, setting)
        case Select():
            return _selected(ask, found, setting)
    values = composed.figures(ask, (), found, setting)
    return Answer(text, values.figures[0].value, values.facts, ask.formula.limits(setting.rows))


# -- single numbers and tables ----------------------------------------------------------------------------------------


def _table(text: str, ask: Crosstab, found: Found, setting: Setting) -> Table:
    domain = setting.domain
    labels = tuple(tuple(domain[n].label(i) for i in range(domain[n].size)) for n in ask.names)
    need = need_of_table(ask.table, domain)
    if isinstance(need, Query):
        one = answer_to(text, need, found, setting.rows)
        values = np.full((1,) * len(ask.names), float(one.value))
        return Table(text, ask.names, labels, values, one.facts, one.limits)
    estimate = found[need]
    assert isinstance(estimate, TableEstimate)
    values = np.ascontiguousarray(estimate.values.transpose([ask.table.names.index(name) for name in ask.names]))
    return Table(text, ask.names, labels, values, estimate.facts, (0, setting.rows))


# -- statements -------------------------------------------------------------------------------------------------------


def _weighed(select: Select) -> list[Weighed]:
    return [
        part
        for column in select.columns
        if not isinstance(column.value, Quantile)
        for part in column.value.formula.parts
    ]


def _selected(select: Select, found: Found, setting: Setting) -> Answers:
    if not select.columns:
        return _declared(select, setting)
    if len(select.columns) == 1 and not select.groups:
        column = select.columns[0]
        one = combine(column.value, found, setting)
        if isinstance(one, Answer) and column.scale != 1:
            bars = tuple(replace(bar, width=column.scale * bar.width) for bar in one.bars)
            facts = replace(one.facts, bars=bars)
            one = Answer(one.question, column.scale * one.value, facts, _scaled(one.limits, column.scale))
        return _noted(one, select)
    if select.crosstab is not None:
        return _noted(combine(select.crosstab, found, setting), select)
    return _listing(select, found, setting)


def _scaled(limits: Limits, scale: float) -> Limits:
    return scale * limits[0], scale * limits[1]


def _noted(answer: Answers, select: Select) -> Answers:
    return replace(answer, facts=replace(answer.facts, note=joined((answer.facts.note, *select.notes))))


def _listing(select: Select, found: Found, setting: Setting) -> Listing:
    columns, told, limits = list[list[Figure]](), list[Facts](), list[Limits]()
    for column in select.columns:
        assert not isinstance(column.value, Quantile)
        if select.groups:
            figures, facts = composed.figures(column.value, select.groups, found, setting)
        else:
            one = combine(column.value, found, setting)
            assert isinstance(one, Answer)
            figures, facts = [Figure(one.value, one.error)], one.facts
        scale = column.scale
        columns.append([Figure(scale * v, None if e is None else scale * e) for v, e in figures])
        told.append(facts)
        limits.append(_scaled(column.value.formula.limits(setting.rows), scale))
    cells = list(product(*(range(len(group.parts(setting.domain))) for group in select.groups)))
    labels = [group.labels(setting.domain) for group in select.groups]
    order = list(range(len(cells)))
    for key in reversed(select.order):  # sorts keep the order of equals, so the first key is sorted by last
        ranks = [cell[key.index] for cell in cells] if key.by == "group" else [f.value for f in columns[key.index]]
        order.sort(key=ranks.__getitem__, reverse=key.descending)
    rows = [
        Row(
            tuple(names[at] for names, at in zip(labels, cells[i], strict=True)),
            tuple(column[i].value for column in columns),
            tuple(column[i].error for column in columns),
        )
        for i in _cut(order, select)
    ]
    # Columns may share parts, and each part is paid once.
    needs = parts(select, setting)
    facts = facts_of(needs, found, min(one.confidence for one in told), setting)
    facts = with_widest(facts, [error for row in rows for error in row.errors], needs, found)
    return Listing(
        question=select.summary(setting.domain),
        names=tuple(group.title for group in select.groups),
        titles=_distinct([column.title for column in select.columns]),
        listed=tuple(rows),
        facts=replace(facts, note=joined((*(one.note for one in told), *select.notes))),
        limits=tuple(limits),
    )


def _declared(select: Select, setting: Setting) -> Listing:
    """What SELECT DISTINCT gives: all combinations of declared values, whether a row has them or not."""
    labels = [group.labels(setting.domain) for group in select.groups]
    cells = list(product(*(range(len(names)) for names in labels)))
    for key in reversed(select.order):
        cells.sort(key=itemgetter(key.index), reverse=key.descending)
    rows = [Row(tuple(n[at] for n, at in zip(labels, cell, strict=True)), (), ()) for cell in _cut(cells, select)]
    return Listing(
        question=select.words(setting.domain),
        names=tuple(group.title for group in select.groups),
        titles=(),
        listed=tuple(rows),
        facts=setting.public("declared values, whether a row has them or not").within(0.0, EXACT),
        limits=(),
    )


def _cut(rows: list[T], select: Select) -> list[T]:
    end = None if select.limit is None else select.offset + select.limit
    return rows[select.offset : end]


def _distinct(titles: list[str]) -> tuple[str, ...]:
    """Titles that differ: the second of two equal ones is numbered."""
    seen: list[str] = []
    for title in titles:
        same = sum(title == other for other in titles[: len(seen)])
        seen.append(f"{title} ({same + 1})" if same else title)
    return tuple(seen)
