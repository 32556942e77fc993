"""Values made of weighted counts, such as means, sums and variances, one for each group. For `answering`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.ask import Aggregate, GroupBy
from tacit.model.bands import gathered
from tacit.model.facts import EXACT, Facts, joined, without
from tacit.model.formula import Figure, Formula, Weighed
from tacit.model.noise_law import quantile_of_sum
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.workload import MAX_ANSWERS, Marginal, marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.evidence import (
    FEW,
    MAX_SEPARATE,
    Found,
    Setting,
    answer_to,
    cells_of,
    facts_of,
    held_for_all,
    least_sure,
    need_of_table,
    rows_in,
    sure,
    with_widest,
)
from tacit.release.noise_sum import weighted_widths
from tacit.release.quotients import formula_of, formulas_of


class Composed(NamedTuple):
    """A figure for each group (one, without groups), the facts about all of them, and which of the parts are noisy.

    `unsure` is the chance that the bar of one noisy part does not hold.
    """

    figures: list[Figure]
    facts: Facts
    noisy: list[Weighed]
    unsure: float


class _OneWay(NamedTuple):
    """What a formula comes to: its parts and its value in each group, and in which groups a row can count at all."""

    formula: Formula
    told: list[list[Figure]]
    figures: list[Figure]
    opened: NDArray[np.bool_]
    needs: list[Query | Marginal]
    noisy: list[Weighed]
    confidence: float


class _Column(NamedTuple):
    """A weighted count for each group, and the least confidence of their bars."""

    figures: list[Figure]
    confidence: float


def figures(
    ask: Aggregate, groups: tuple[GroupBy, ...], found: Found, setting: Setting, *, at_once: bool = False
) -> Composed:
    """The figures of an aggregate. With `at_once`, the bars of a part hold for all groups at once, and not for each.

    What is declared says all about a group that no row of the condition can be in.
    """
    ways = [_way(one, groups, found, setting, at_once=at_once) for one in formulas_of(ask, groups, setting)]
    formula, told = ways[0].formula, ways[0].told
    # The bar of a sum over blocks may be less sure than the session is.
    least = min([setting.confidence, *(way.confidence for way in ways)])
    # Each group has its value in one of these ways. For all groups at once the bars of all of them have to hold.
    unknown = [part for way in ways for part in way.noisy] if at_once else max((way.noisy for way in ways), key=len)
    confidence = sure(len(unknown), least)
    figures = [way.figures for way in ways]
    if confidence <= 0:
        figures = [[Figure(figure.value, None) for figure in some] for some in figures]
    shown = figures[0]
    if groups and formula.parts:
        nobody, opened = _of_nobody(formula, setting.rows), np.array([way.opened for way in ways])
        shown = [
            figures[way][at] if inside else nobody
            for at, (way, inside) in enumerate(
                zip(opened.argmax(axis=0).tolist(), opened.max(axis=0).tolist(), strict=True)
            )
        ]
    unsure = formula.doubt if any(figure.error is None for figure in shown) else ""
    needs = list(dict.fromkeys(need for way in ways for need in way.needs))
    facts = facts_of(needs, found, confidence, setting, formula.note, unsure)
    facts = _sharper(facts, ask, groups, told, needs, found, setting)
    facts = with_widest(facts, [figure.error for figure in shown], needs, found)
    return Composed(shown, facts, unknown, 1 - least)


def _way(formula: Formula, groups: tuple[GroupBy, ...], found: Found, setting: Setting, *, at_once: bool) -> _OneWay:
    """What a formula comes to in the groups that it is about."""
    opened = [_open(part, groups, setting) for part in formula.parts]
    columns = [
        _column(part, groups, found, setting, some, at_once=at_once)
        for part, some in zip(formula.parts, opened, strict=True)
    ]
    asked = [needs_of(part, groups, setting) for part in formula.parts]
    told = [column.figures for column in columns]
    rows: Sequence[Sequence[Figure]] = list(zip(*told, strict=True)) if told else [()]
    return _OneWay(
        formula=formula,
        told=told,
        figures=[formula.put_together(row, setting.rows) for row in rows],
        opened=np.any(opened, axis=0) if opened else np.zeros(0, dtype=np.bool_),
        needs=[one for need in asked for one in ([need] if isinstance(need, Marginal) else need)],
        noisy=_noisy(formula, groups, found, setting),
        confidence=min([setting.confidence, *(column.confidence for column in columns)]),
    )


def noisy(ask: Aggregate, found: Found, setting: Setting) -> list[Weighed]:
    """The parts of a value without groups that do not follow from what is public."""
    return _noisy(formula_of(ask, setting), (), found, setting)


def _noisy(formula: Formula, groups: tuple[GroupBy, ...], found: Found, setting: Setting) -> list[Weighed]:
    return [part for part in formula.parts if not _exact(needs_of(part, groups, setting), found)]


def _exact(need: list[Query] | Marginal, found: Found) -> bool:
    """Whether something follows from what is public. A bar of 0 does not say so: noise may be small, a figure low."""
    parts = [found[one].facts.bars[:1] for one in ([need] if isinstance(need, Marginal) else need)]
    return all(bars and bars[0].about == EXACT for bars in parts)


def _sharper(
    facts: Facts,
    ask: Aggregate,
    groups: tuple[GroupBy, ...],
    told: Sequence[Sequence[Figure]],
    needs: Sequence[Query | Marginal],
    found: Found,
    setting: Setting,
) -> Facts:
    """Facts that say of counts which were bought more sharply later so in the words and the unit of the question.

    A width is said where everything else that the value is made of is exact, so that the question itself was bought. A
    plain count among others keeps its own words.
    """
    note, words = facts.note, ask.words(setting.domain)
    for need in needs:
        part = found[need]
        if not isinstance(need, Query) or not isinstance(part, Estimate) or part.sharper is None:
            continue
        width = None
        if not groups:
            formula = formula_of(ask, setting)
            at = [one.query(setting.domain) for one in formula.parts].index(need)
            parts = [figures[0] for figures in told]
            parts[at] = Figure(parts[at].value, part.sharper.steps / need.unit)
            alone = all(figure.error == 0 for i, figure in enumerate(parts) if i != at)
            width = formula.put_together(parts, setting.rows).error if alone else None
        if width is None and part.sharper.said:
            continue
        said = part.sharper.note(words if width is not None else f"a part of {words}", width)
        note = joined((without(note, part.sharper.said), said))
    return replace(facts, note=note)


def _of_nobody(formula: Formula, rows: int) -> Figure:
    """The value of a group that no row can be in, which is public: NULL, where it would be divided by their number."""
    value, error = formula.put_together([Figure(0.0, 0.0)] * len(formula.parts), rows)
    return Figure(math.nan if error is None else value, 0.0)


def _open(part: Weighed, groups: tuple[GroupBy, ...], setting: Setting) -> NDArray[np.bool_]:
    """For each group whether a row in it can count at all, by the condition and what is declared."""
    domain, names = setting.domain, [group.name for group in groups]
    order = list(dict.fromkeys([*names, part.name])) if part.name else names
    weighed = bool(part.name) and not part.also and domain.size_of(order) <= MAX_ANSWERS
    order = order if weighed else names
    found = possible(part.where, order, domain.shape_of(order))
    if weighed:
        found = found & (np.reshape(part.weights, [-1 if name == part.name else 1 for name in order]) > 0)
    for axis, group in enumerate(groups):
        found = gathered(np.logical_or, found, group.parts(domain), axis)
    return found.any(axis=tuple(range(len(names), found.ndim))).ravel()


def _column(
    part: Weighed,
    groups: tuple[GroupBy, ...],
    found: Found,
    setting: Setting,
    opened: NDArray[np.bool_],
    *,
    at_once: bool,
) -> _Column:
    """A part for each group; `opened` says in which of them a row can count."""
    told = _told(part, groups, found, setting, int(opened.sum()), at_once=at_once)
    if not groups:
        return told
    some = zip(told.figures, opened.tolist(), strict=True)
    return told._replace(figures=[figure if inside else Figure(0.0, 0.0) for figure, inside in some])


def _told(
    part: Weighed, groups: tuple[GroupBy, ...], found: Found, setting: Setting, many: int, *, at_once: bool
) -> _Column:
    need = needs_of(part, groups, setting)
    if isinstance(need, Marginal):
        table = found[need]
        assert isinstance(table, TableEstimate)
        plain = not part.name and all(group.each_value for group in groups)
        if plain or table.read is None or _size(groups, setting) > MAX_SEPARATE:
            sums = _from_table(part, groups, need, table, setting, many if at_once else None)
            return _Column(sums, setting.confidence if at_once else least_sure([table.facts], setting))
        # Every sum of cells has the answer that its own question has.
        need = _of_each(part, groups, setting)
        found = {query: table.read(query) for query in need}
    answers = [answer_to("", query, found, setting.rows) for query in need]
    errors = [held_for_all(answer.bars) if at_once else answer.error for answer in answers]
    counts = [Figure(float(answer.value), error) for answer, error in zip(answers, errors, strict=True)]
    return _Column(counts, setting.confidence if at_once else least_sure([a.facts for a in answers], setting))


def _size(groups: tuple[GroupBy, ...], setting: Setting) -> int:
    return math.prod(len(group.parts(setting.domain)) for group in groups)


def needs_of(part: Weighed, groups: tuple[GroupBy, ...], setting: Setting) -> list[Query] | Marginal:
    """What is asked: a question for each group, or one table that has them all."""
    domain = setting.domain
    if not groups:
        return [part.query(domain)]
    names = tuple(group.name for group in groups)
    size = _size(groups, setting)
    plain = not part.name and all(group.each_value for group in groups)
    if plain or (setting.fresh and size >= FEW and not part.also):
        table = marginal(domain, *dict.fromkeys((*names, part.name) if part.name else names), where=part.where)
        need = need_of_table(table, domain)
        return [part.query(domain)] if isinstance(need, Query) else need
    marginal(domain, *names, where=part.where)  # refuses what has no table
    if size > MAX_SEPARATE:
        raise InvalidQuery(f"a value for each of {size:,} groups is too many at once; the most is {MAX_SEPARATE:,}.")
    return _of_each(part, groups, setting)


def _of_each(part: Weighed, groups: tuple[GroupBy, ...], setting: Setting) -> list[Query]:
    """The question of each group."""
    domain = setting.domain
    return [part.query(domain, rows_in(groups, cell, domain)) for cell in cells_of(groups, domain)]


def _from_table(
    part: Weighed,
    groups: tuple[GroupBy, ...],
    need: Marginal,
    table: TableEstimate,
    setting: Setting,
    many: int | None,
) -> list[Figure]:
    """Sums of a table's cells, one for each group. The bars hold for `many` groups at once, or each by itself."""
    # Of m bars that fail with a chance of 1/m of what is allowed each, one fails with a chance of all of it, at most.
    sure = 1 - (1 - setting.confidence) / max(1, many or 1)
    names = [group.name for group in groups]
    beyond = bool(part.name) and part.name not in names
    order = [*names, part.name] if beyond else names
    cells = table.values.transpose([need.names.index(name) for name in order]).astype(np.float64)
    cells = np.where(possible(part.where, order, cells.shape), cells, 0.0)  # the others hold noise alone
    if not part.name and all(group.each_value for group in groups):
        error = None if table.facts.width is None else float(table.facts.width)
        if many is not None and table.noise is not None:
            error = float(quantile_of_sum(table.noise, table.draws, sure))
        elif many is not None:
            error = held_for_all(table.facts.bars)
        elif table.own is not None:
            own = table.own.transpose([need.names.index(name) for name in order]).ravel().tolist()
            return [Figure(value, one) for value, one in zip(cells.ravel().tolist(), own, strict=True)]
        return [Figure(value, error) for value in cells.ravel().tolist()]
    assert table.noise is not None
    weights, terms = np.asarray(part.weights, dtype=np.float64), 1.0
    if beyond:
        cells, terms = cells @ weights, float(weights @ weights)
    elif part.name:
        cells = cells * weights.reshape([-1 if name == part.name else 1 for name in names])
    for axis, group in enumerate(groups):
        parts = group.parts(setting.domain)
        cells = gathered(np.add, cells, parts, axis)
        terms *= max(map(len, parts))
    error = float(weighted_widths(table.noise, np.array([table.draws * terms]), sure)[0])
    return [Figure(value, error) for value in cells.ravel().tolist()]
