"""A question taken apart, and its answer put together: two pure functions of the question and of what is public.

`parts` says what has to be known to answer; `combine` makes the answer of it. A dry run prices the parts; an answer
fetches them. A bar for one answer holds at the session's confidence c; a value made of k noisy answers holds at
1 - k(1 - c), by the union bound, whatever their noise has to do with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Figure, Weighed
from tacit.model.answer import Answer, Limits, Table
from tacit.model.ask import Aggregate, Ask, Cdf, Count, Crosstab, Group, Histogram, Mean, Quantile, Range, Select, Stat
from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.distribution_answer import CdfAnswer, QuantileAnswer
from tacit.model.domain import Domain
from tacit.model.facts import EXACT, Facts, about, joined
from tacit.model.listing import Listing, Row
from tacit.model.noise_law import Noise, quantile_of_sum
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.values import Days, Listed
from tacit.model.workload import MAX_ANSWERS, Marginal, marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.parts import Need, Part, RangesOf, Released
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import Rectangles

T = TypeVar("T")
Floats = NDArray[np.float64]
Found = Mapping[Need, Part]
Answers = Answer | Table | CdfAnswer | QuantileAnswer | Listing
FEW = 3  # from so many questions on, one table is the better bargain where every question has fresh noise
MAX_SEPARATE = 2_000  # questions that one value, or one column of values, is made of


@dataclass(frozen=True)
class Setting:
    """What is public about a session, and what answers depend on beside their parts."""

    domain: Domain
    rows: int
    confidence: float
    free: Loss
    fresh: bool  # every new question has noise of its own, and a price

    def public(self, note: str = "") -> Facts:
        """The facts of what follows from the declared domain and the number of rows."""
        return Facts("public", self.free, self.confidence, note=note)


def parts(ask: Ask, setting: Setting) -> tuple[Need, ...]:
    """All that a question needs to be answered, each once. Refuses what has no answer."""
    domain = setting.domain
    match ask:
        case Count():
            return (ask.query,)
        case Stat():
            return (ask.statistic,)
        case Crosstab():
            return (_of_table(ask.table, domain),)
        case Cdf() | Histogram():
            return (RangesOf((ask.name,), ask.share),)
        case Range():
            return (RangesOf(ask.query.scope, ask.share),)
        case Quantile() | Mean() if ask.from_ranges:
            return (RangesOf((ask.name,), ask.share),)
        case Quantile():
            return _of_quantile(ask, setting)
        case Select() if ask.crosstab is not None:
            return parts(ask.crosstab, setting)
        case Select(groups=()):
            return _once(need for column in ask.columns for need in parts(column.value, setting))
        case Select():
            needs = (_of_groups(part, ask.groups, setting) for part in _weighed(ask))
            return _once(one for need in needs for one in ([need] if isinstance(need, Marginal) else need))
    return _once(part.query(domain) for part in ask.formula.parts)


def combine(ask: Ask, found: Found, setting: Setting, words: str | None = None) -> Answers:
    """The answer to a question from its parts; `words` are the question's own, where they are known already."""
    text = words if words is not None else ask.words(setting.domain)
    match ask:
        case Count():
            return _one(text, ask.query, found, setting.rows)
        case Stat():
            return _one(text, ask.statistic, found, setting.rows)
        case Crosstab():
            return _table(text, ask, found, setting)
        case Cdf():
            return _cdf(text, ask, found, setting)
        case Histogram():
            return _histogram(text, ask, found, setting)
        case Range():
            return _range(text, ask, found, setting)
        case Quantile():
            return _quantile(text, ask, found, setting)
        case Mean() if ask.from_ranges:
            return _mean(text, ask, found, setting)
        case Select():
            return _selected(ask, found, setting)
    values = _composed(ask, (), found, setting)
    return Answer(text, values.figures[0].value, values.facts, ask.formula.limits(setting.rows))


# -- single numbers and tables ----------------------------------------------------------------------------------------


def _one(text: str, query: Query | Statistic, found: Found, rows: int) -> Answer:
    estimate = found[query]
    assert isinstance(estimate, Estimate)
    return one_answer(text, query, estimate, rows)


def one_answer(text: str, query: Query | Statistic, estimate: Estimate, rows: int) -> Answer:
    """An estimate, which is in grid steps, as an answer in counts, which lie between 0 and the number of rows."""
    facts, unit = estimate.facts, query.unit
    if unit == 1:
        return Answer(text, estimate.value, facts, (0, rows))
    bars = tuple(replace(bar, width=bar.width / unit) for bar in facts.bars)
    return Answer(text, estimate.value / unit, replace(facts, bars=bars), (0, rows))


def _of_table(table: Marginal, domain: Domain) -> Query | Marginal:
    """A table of one cell is the same question as its condition."""
    size = table.size(domain)
    if size > MAX_ANSWERS:
        raise InvalidQuery(f"the table would have {size:,} cells; the most is {MAX_ANSWERS:,}.")
    return table.where if size == 1 else table


def _table(text: str, ask: Crosstab, found: Found, setting: Setting) -> Table:
    domain = setting.domain
    labels = tuple(tuple(domain[n].label(i) for i in range(domain[n].size)) for n in ask.names)
    need = _of_table(ask.table, domain)
    if isinstance(need, Query):
        one = _one(text, need, found, setting.rows)
        values = np.full((1,) * len(ask.names), float(one.value))
        return Table(text, ask.names, labels, values, one.facts, one.limits)
    estimate = found[need]
    assert isinstance(estimate, TableEstimate)
    values = np.ascontiguousarray(estimate.values.transpose([ask.table.names.index(name) for name in ask.names]))
    return Table(text, ask.names, labels, values, estimate.facts, (0, setting.rows))


# -- what one release of ranges tells ---------------------------------------------------------------------------------


def _released(name: str, share: float, found: Found) -> tuple[Distribution, Released]:
    released = found[RangesOf((name,), share)]
    assert isinstance(released, Released)
    assert isinstance(released.ranges, Distribution)
    return released.ranges, released


def _cdf(text: str, ask: Cdf, found: Found, setting: Setting) -> CdfAnswer:
    ranges, released = _released(ask.name, ask.share, found)
    return curve(text, ranges, released.facts, released.why)


def curve(text: str, ranges: Distribution, facts: Facts, why: str = "") -> CdfAnswer:
    """The cumulative counts of one release."""
    cdf, attribute = ranges.cdf(), ranges.attribute
    return CdfAnswer(
        question=text,
        name=ranges.name,
        labels=tuple(attribute.label(i) for i in range(attribute.bins)),
        start=float(attribute.edge(0)),
        ends=np.array([float(attribute.edge(i + 1)) for i in range(attribute.bins)]),
        values=cdf.values,
        rows=ranges.rows,
        facts=facts.within(cdf.half_width),
        dated=isinstance(attribute.values, Days),
        why=why,
    )


def _histogram(text: str, ask: Histogram, found: Found, setting: Setting) -> Table:
    ranges, released = _released(ask.name, ask.share, found)
    counts, attribute = ranges.histogram(list(ask.cuts)), ranges.attribute
    labels = [attribute.label(a) if b == a + 1 else _between(attribute, a, b) for a, b in pairwise(ask.cuts)]
    facts = released.facts.within(float(counts.errors.max()))
    return Table(text, (ask.name,), (tuple(labels),), counts.values, facts, (0, setting.rows))


def _between(attribute: Attribute, first: int, end: int) -> str:
    assert not isinstance(attribute.values, Listed)
    return attribute.values.label(attribute.edge(first), attribute.edge(end))


def _range(text: str, ask: Range, found: Found, setting: Setting) -> Answer:
    released = found[RangesOf(ask.query.scope, ask.share)]
    assert isinstance(released, Released)
    if isinstance(released.ranges, Rectangles):
        (a, b), (c, d) = ask.sides
        counts = released.ranges.counts((a, c), (b, d))
    else:
        counts = released.ranges.counts(*ask.sides[0])
    return Answer(text, float(counts.values), released.facts.within(float(counts.errors)), (0, setting.rows))


def _mean(text: str, ask: Mean, found: Found, setting: Setting) -> Answer:
    ranges, released = _released(ask.name, ask.share, found)
    mean = ranges.mean()
    note = f"values taken for the middle of their bin; off by at most {mean.rounding:g} more" if mean.rounding else ""
    facts = replace(released.facts, note=note).within(mean.error)
    return Answer(text, mean.value, facts, ask.formula.limits(setting.rows))


# -- quantiles --------------------------------------------------------------------------------------------------------


def _of_quantile(ask: Quantile, setting: Setting) -> tuple[Need, ...]:
    """What a quantile under a condition asks: the table of the attribute, or its cumulative counts."""
    domain, bins = setting.domain, setting.domain[ask.name].bins
    if setting.fresh and bins >= FEW:
        return (marginal(domain, ask.name, where=ask.where),)
    if bins > MAX_SEPARATE:
        raise InvalidQuery(
            f"{ask.name} has {bins:,} bins; a quantile under a condition takes at most {MAX_SEPARATE:,}."
        )
    return _once(Query.all([ask.where, Query.among(domain, ask.name, range(t + 1))]) for t in range(bins))


def _quantile(text: str, ask: Quantile, found: Found, setting: Setting) -> QuantileAnswer:
    label, bins = setting.domain[ask.name].label, setting.domain[ask.name].bins
    if ask.from_ranges:
        ranges, released = _released(ask.name, ask.share, found)
        located = ranges.quantile(ask.q)
        at, first, last = located.bin, located.first, located.last
        facts = released.facts.within(ranges.half_width)
    else:
        at, first, last, facts = _located(ask, found, setting)
    return QuantileAnswer(text, ask.q, label(at), label(first), label(last), facts, (label(0), label(bins - 1)))


def _located(ask: Quantile, found: Found, setting: Setting) -> tuple[int, int, int, Facts]:
    """The bin that holds a quantile under a condition, the first and the last that could, and the facts.

    The bin that truly holds it stays in the interval if two bars hold: that of the rank before it and that of the rank
    at its end. A rank is F(t) - q * F(end). From one table the ranks' noise is symmetric and each bar is wrong on the
    side that matters with probability (1-c)/2: so the interval holds at c. From separate answers it holds at
    1 - 3(1-c): two cumulative counts and the total.
    """
    needs, bins = _of_quantile(ask, setting), setting.domain[ask.name].bins
    table = found[needs[0]]
    if isinstance(table, TableEstimate):
        assert table.noise is not None
        counts = np.concatenate([[0.0], np.cumsum(table.values[:bins])])
        t = np.arange(bins + 1)
        terms = table.draws * (t * (1 - ask.q) ** 2 + (bins - t) * ask.q**2)
        bars = _bars(table.noise, terms, setting.confidence)
        facts = table.facts
    else:
        edges = [Query.all([ask.where, Query.among(setting.domain, ask.name, range(t + 1))]) for t in range(bins)]
        answers = [_one("", query, found, setting.rows) for query in edges]
        counts = np.array([0.0, *(answer.value for answer in answers)])
        errors = [math.inf if answer.error is None else answer.error for answer in answers]
        bars = np.array([0.0, *errors]) + ask.q * errors[-1]
        facts = _facts(needs, found, sure(3, setting.confidence), setting)
    rank = counts - ask.q * counts[-1]
    at = min(int(np.argmax(rank[1:] >= 0)), bins - 1) if (rank[1:] >= 0).any() else bins - 1
    low, high = rank - bars, rank + bars
    low[0] = min(low[0], -math.ulp(0.0))  # before the first bin nobody has come, for certain
    could = np.append(np.flatnonzero((low[:-1] < 0) & (high[1:] >= 0)), at)
    return at, int(could.min()), int(could.max()), _widest_of(facts, bars.tolist(), needs, found)


# -- values made of weighted counts, for each group -------------------------------------------------------------------


class Composed(NamedTuple):
    """A figure for each group (one, without groups), and the facts about all of them."""

    figures: list[Figure]
    facts: Facts


def _composed(ask: Aggregate, groups: tuple[Group, ...], found: Found, setting: Setting) -> Composed:
    formula = ask.formula
    columns = [_column(part, groups, found, setting) for part in formula.parts]
    noisy = sum(any(figure.error != 0 for figure in column) for column in columns)
    confidence = sure(noisy, setting.confidence)
    rows: Sequence[Sequence[Figure]] = list(zip(*columns, strict=True)) if columns else [()]
    figures = [formula.put_together(row, setting.rows) for row in rows]
    if confidence <= 0:
        figures = [Figure(figure.value, None) for figure in figures]
    unsure = formula.doubt if any(figure.error is None for figure in figures) else ""
    asked = [_of_groups(part, groups, setting) for part in formula.parts]
    needs = [one for need in asked for one in ([need] if isinstance(need, Marginal) else need)]
    facts = _facts(needs, found, confidence, setting, formula.note, unsure)
    return Composed(figures, _widest_of(facts, [figure.error for figure in figures], needs, found))


def _facts(needs: Sequence[Need], found: Found, confidence: float, setting: Setting, *notes: str) -> Facts:
    """The facts of a value that these parts were put together to."""
    told = [found[need].facts for need in dict.fromkeys(needs)]
    return Facts.of([*told, setting.public(joined(notes))], confidence)


def _widest_of(facts: Facts, errors: Sequence[float | None], needs: Sequence[Need], found: Found) -> Facts:
    """The facts with the widest bar of some values; with none where a value has none."""
    sure = [math.inf if error is None else error for error in errors]
    width = max(sure, default=0.0)
    shown = (bar for need in needs for bar in found[need].facts.bars[:1])
    return facts.within(None if math.isinf(width) else width, about(shown, facts.confidence))


def _column(part: Weighed, groups: tuple[Group, ...], found: Found, setting: Setting) -> list[Figure]:
    """A weighted count for each group."""
    need = _of_groups(part, groups, setting)
    if isinstance(need, Marginal):
        table = found[need]
        assert isinstance(table, TableEstimate)
        return _from_table(part, groups, need, table, setting)
    answers = [_one("", query, found, setting.rows) for query in need]
    return [Figure(float(answer.value), answer.error) for answer in answers]


def _of_groups(part: Weighed, groups: tuple[Group, ...], setting: Setting) -> list[Query] | Marginal:
    """What is asked: a question for each group, or one table that has them all."""
    domain = setting.domain
    if not groups:
        return [part.query(domain)]
    names = tuple(group.name for group in groups)
    groupings = [group.parts(domain) for group in groups]
    size = math.prod(map(len, groupings))
    plain = not part.name and all(group.width is None for group in groups)
    if plain or (setting.fresh and size >= FEW):
        table = marginal(domain, *dict.fromkeys((*names, part.name) if part.name else names), where=part.where)
        need = _of_table(table, domain)
        return [part.query(domain)] if isinstance(need, Query) else need
    marginal(domain, *names, where=part.where)  # refuses what has no table
    if size > MAX_SEPARATE:
        raise InvalidQuery(f"a value for each of {size:,} groups is too many at once; the most is {MAX_SEPARATE:,}.")
    cells = product(*groupings)
    return [
        part.query(domain, [Query.among(domain, name, among) for name, among in zip(names, cell, strict=True)])
        for cell in cells
    ]


def _from_table(
    part: Weighed, groups: tuple[Group, ...], need: Marginal, table: TableEstimate, setting: Setting
) -> list[Figure]:
    names = [group.name for group in groups]
    beyond = bool(part.name) and part.name not in names
    order = [*names, part.name] if beyond else names
    cells = table.values.transpose([need.names.index(name) for name in order]).astype(np.float64)
    if not part.name and all(group.width is None for group in groups):
        error = None if table.half_width is None else float(table.half_width)
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
    error = float(_bars(table.noise, np.array([table.draws * terms]), setting.confidence)[0])
    return [Figure(value, error) for value in cells.ravel().tolist()]


def sure(noisy: int, confidence: float) -> float:
    """How sure several bars are at once: the union bound."""
    return round(max(0.0, 1 - noisy * (1 - confidence)), 12) if noisy else confidence


def _bars(noise: Noise, terms: Floats, confidence: float) -> Floats:
    """Bars for sums of noise with weights in [-1, 1] whose squares add up to at most `terms`.

    A draw's log moment generating function divided by the square of its argument rises, because all its even cumulants
    are positive (discrete Laplace: a difference of geometrics) or it is subgaussian (discrete Gaussian). So weights
    count by their squares, and whole draws stand for them in `quantile_of_sum`.
    """
    whole = np.maximum(1, np.ceil(terms - 1e-9)).astype(np.int64)
    if whole.size > 64:  # to the next quarter of an octave: a few bounds serve all
        whole = np.ceil(2 ** (np.ceil(np.log2(whole) * 4) / 4)).astype(np.int64)
    # One term asks for two: of a single draw only the plain quantile is known, and a weighted one is not whole.
    known = {k: quantile_of_sum(noise, max(2, k), confidence, weighted=True) for k in set(whole.tolist())}
    return np.array([float(known[k]) for k in whole.tolist()])


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
            figures, facts = _composed(column.value, select.groups, found, setting)
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
    facts = _facts(needs, found, min(one.confidence for one in told), setting)
    facts = _widest_of(facts, [error for row in rows for error in row.errors], needs, found)
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


def _once(needs: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(needs))
