"""Values made of weighted counts, such as means, sums and variances, one for each group. For `answering`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.ask import Aggregate, GroupBy
from tacit.model.facts import EXACT, Facts
from tacit.model.formula import Figure, Weighed
from tacit.model.noise_law import quantile_of_sum
from tacit.model.query import Query
from tacit.model.workload import Marginal, marginal
from tacit.release.estimate import TableEstimate
from tacit.release.evidence import (
    FEW,
    MAX_SEPARATE,
    Found,
    Setting,
    answer_to,
    facts_of,
    held_for_all,
    least_sure,
    need_of_table,
    noise_bars,
    sure,
    with_widest,
)


class Composed(NamedTuple):
    """A figure for each group (one, without groups), the facts about all of them, and which of the parts are noisy.

    `unsure` is the chance that the bar of one noisy part does not hold.
    """

    figures: list[Figure]
    facts: Facts
    noisy: list[Weighed]
    unsure: float


class _Column(NamedTuple):
    """A weighted count for each group, and the least confidence of their bars."""

    figures: list[Figure]
    confidence: float


def figures(
    ask: Aggregate, groups: tuple[GroupBy, ...], found: Found, setting: Setting, *, at_once: bool = False
) -> Composed:
    """The figures of an aggregate. With `at_once`, the bars of a part hold for all groups at once, and not for each."""
    formula = ask.formula
    columns = [_column(part, groups, found, setting, at_once=at_once) for part in formula.parts]
    asked = [needs_of(part, groups, setting) for part in formula.parts]
    unknown = noisy(ask, groups, found, setting)
    # The bar of a sum over blocks may be less sure than the session is.
    least = min([setting.confidence, *(column.confidence for column in columns)])
    confidence = sure(len(unknown), least)
    told = [column.figures for column in columns]
    rows: Sequence[Sequence[Figure]] = list(zip(*told, strict=True)) if told else [()]
    figures = [formula.put_together(row, setting.rows) for row in rows]
    if confidence <= 0:
        figures = [Figure(figure.value, None) for figure in figures]
    unsure = formula.doubt if any(figure.error is None for figure in figures) else ""
    needs = [one for need in asked for one in ([need] if isinstance(need, Marginal) else need)]
    facts = facts_of(needs, found, confidence, setting, formula.note, unsure)
    facts = with_widest(facts, [figure.error for figure in figures], needs, found)
    return Composed(figures, facts, unknown, 1 - least)


def noisy(ask: Aggregate, groups: tuple[GroupBy, ...], found: Found, setting: Setting) -> list[Weighed]:
    """The parts of a value that do not follow from what is public."""
    return [part for part in ask.formula.parts if not _exact(needs_of(part, groups, setting), found)]


def _exact(need: list[Query] | Marginal, found: Found) -> bool:
    """Whether something follows from what is public. A bar of 0 does not say so: noise may be small, a figure low."""
    parts = [found[one].facts.bars[:1] for one in ([need] if isinstance(need, Marginal) else need)]
    return all(bars and bars[0].about == EXACT for bars in parts)


def _column(part: Weighed, groups: tuple[GroupBy, ...], found: Found, setting: Setting, *, at_once: bool) -> _Column:
    need = needs_of(part, groups, setting)
    if isinstance(need, Marginal):
        table = found[need]
        assert isinstance(table, TableEstimate)
        plain = not part.name and all(group.width is None for group in groups)
        if plain or table.read is None or _size(groups, setting) > MAX_SEPARATE:
            sums = _from_table(part, groups, need, table, setting, at_once=at_once)
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
    plain = not part.name and all(group.width is None for group in groups)
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
    domain, names = setting.domain, [group.name for group in groups]
    cells = product(*(group.parts(domain) for group in groups))
    return [
        part.query(domain, [Query.among(domain, name, among) for name, among in zip(names, cell, strict=True)])
        for cell in cells
    ]


def _from_table(
    part: Weighed, groups: tuple[GroupBy, ...], need: Marginal, table: TableEstimate, setting: Setting, *, at_once: bool
) -> list[Figure]:
    # Of m bars that fail with a chance of 1/m of what is allowed each, one fails with a chance of all of it, at most.
    sure = 1 - (1 - setting.confidence) / (_size(groups, setting) if at_once else 1)
    names = [group.name for group in groups]
    beyond = bool(part.name) and part.name not in names
    order = [*names, part.name] if beyond else names
    cells = table.values.transpose([need.names.index(name) for name in order]).astype(np.float64)
    if not part.name and all(group.width is None for group in groups):
        error = None if table.facts.width is None else float(table.facts.width)
        if at_once and table.noise is not None:
            error = float(quantile_of_sum(table.noise, table.draws, sure))
        elif at_once:
            error = held_for_all(table.facts.bars)
        return [Figure(value, error) for value in cells.ravel().tolist()]
    assert table.noise is not None
    weights, terms = np.asarray(part.weights, dtype=np.float64), 1.0
    if beyond:
        cells, terms = cells @ weights, float(weights @ weights)
    elif part.name:
        cells = cells * weights.reshape([-1 if name == part.name else 1 for name in names])
    for axis, group in enumerate(groups):
        ranges = group.parts(setting.domain)
        cells = np.add.reduceat(cells, [one.start for one in ranges], axis=axis)
        terms *= max(map(len, ranges))
    error = float(noise_bars(table.noise, np.array([table.draws * terms]), sure)[0])
    return [Figure(value, error) for value in cells.ravel().tolist()]
