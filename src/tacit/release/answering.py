"""A question taken apart, and its answer put together: two pure functions of the question and of what is public.

`parts` says what has to be known to answer; `combine` makes the answer of it. A dry run prices the parts; an answer
fetches them. A bar for one answer holds at the session's confidence c; a value made of k noisy answers holds at
1 - k(1 - c), by the union bound, whatever their noise has to do with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Figure, Weighed
from tacit.model.answer import Answer, Limits, QuantileAnswer
from tacit.model.ask import Aggregate, Ask, Cdf, Count, Crosstab, Group, Histogram, Mean, Quantile, Range, Select, Stat
from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.facts import EXACT, NOISE, Bar, Facts, about, joined, widest
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.table import CdfAnswer, Listing, Row, Table
from tacit.model.values import Days, Listed
from tacit.model.workload import MAX_ANSWERS, Marginal, marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.hypothesis.noisy_table import weighted_width
from tacit.release.parts import Interval, Need, Part, RangesOf, Released
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.flat import FlatTable
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
    piecewise: Callable[[tuple[str, ...], Sequence[Query]], bool]  # whether ranges are put together from counts
    offer: Callable[[tuple[str, ...]], str] = lambda _: ""  # what would be sharper about ranges, in words
    band: Callable[[str, Floats, int], float | None] = lambda *_: None  # of cumulative counts

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
        case Cdf() | Histogram() | Range():
            return _of_ranges(ask, setting)
        case Quantile() | Mean() if ask.from_ranges:
            return _of_ranges(ask, setting)
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
    ranged = isinstance(ask, Cdf | Histogram | Range) or (isinstance(ask, Quantile | Mean) and ask.from_ranges)
    if ranged and (offer := _offer(ask, found, setting)):
        made = _combined(ask, found, setting, text)
        return replace(made, facts=replace(made.facts, note=joined((made.facts.note, offer))))
    return _combined(ask, found, setting, text)


def _combined(ask: Ask, found: Found, setting: Setting, text: str) -> Answers:
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
        case Mean() if ask.from_ranges and (released := _released(ask.name, ask.share, found)):
            return _mean(text, ask, released, setting)
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


# -- ordered attributes: what one release of ranges tells, or counts put together -------------------------------------


def _of_ranges(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Need, ...]:
    """What a question about the ranges of an attribute needs: a release of them, or counts that are known apart."""
    names = ask.query.scope if isinstance(ask, Range) else (ask.name,)
    if ask.share is not None:
        return (RangesOf(names, ask.share),)
    pieces = _pieces(ask, setting)
    if pieces and setting.piecewise(names, pieces):
        return _once(pieces)
    return (RangesOf(names, None, _intervals(ask, setting)),)


def _offer(ask: Ask, found: Found, setting: Setting) -> str:
    """What would be sharper, where an answer about ranges is not read off a release that was bought for them."""
    assert isinstance(ask, Cdf | Histogram | Range | Quantile | Mean)
    released = [part for part in found.values() if isinstance(part, Released)]
    if ask.share is not None or any(not isinstance(one.ranges, FlatTable) for one in released):
        return ""
    return setting.offer(ask.query.scope if isinstance(ask, Range) else (ask.name,))


def _intervals(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Interval, ...]:
    """The counts of neighbouring bins that an answer shows; none where they are too many to look up."""
    if isinstance(ask, Histogram) and len(ask.cuts) <= MAX_SEPARATE:
        return tuple(pairwise(ask.cuts))
    bins = 0 if isinstance(ask, Range) else setting.domain[ask.name].bins
    if isinstance(ask, Cdf) and bins <= MAX_SEPARATE:
        return tuple((0, end + 1) for end in range(bins))
    return ()


def _pieces(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Query, ...]:
    """The counts that an answer can be put together from; none where they are too many."""
    domain = setting.domain
    if isinstance(ask, Range):
        return (ask.query,)
    if isinstance(ask, Mean):
        return tuple(part.query(domain) for part in ask.formula.parts)
    if isinstance(ask, Quantile):
        return _edges(ask, setting) if domain[ask.name].bins <= MAX_SEPARATE else ()
    return tuple(Query.among(domain, ask.name, range(*interval)) for interval in _intervals(ask, setting))


def _released(name: str, share: float | None, found: Found) -> Released | None:
    """The release of an attribute's ranges among the parts, where the answer is read off one."""
    for need, part in found.items():
        if isinstance(need, RangesOf) and (need.names, need.share) == ((name,), share):
            assert isinstance(part, Released)
            return part
    return None


def _cdf(text: str, ask: Cdf, found: Found, setting: Setting) -> CdfAnswer:
    released = _released(ask.name, ask.share, found)
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        return curve(text, released.ranges, released.facts, released.why, released.told)
    needs = _pieces(ask, setting)
    answers = [_one("", query, found, setting.rows) for query in needs]
    values = np.array([answer.value for answer in answers], dtype=np.float64)
    facts = _at_once(needs, answers, found, setting)
    width = None if facts.receipt is None else setting.band(ask.name, values, facts.receipt.entry)
    if width is not None and width < setting.rows:
        bars = (*facts.bars, Bar(width, NOISE, setting.confidence))
        facts = replace(facts, bars=tuple(sorted(bars, key=lambda bar: bar.width)))
    return _curve(text, ask.name, setting.domain[ask.name], values, facts, setting.rows)


def _at_once(needs: Sequence[Query], answers: Sequence[Answer], found: Found, setting: Setting) -> Facts:
    """The facts of counts of which all are to hold at once.

    Bars that hold for many answers at once are one event for all of them; each other bar counts by itself.
    """
    chosen = [next((bar for bar in a.bars if bar.about.endswith("at once")), *a.bars[:1]) for a in answers if a.bars]
    together = {bar.about for bar in chosen if bar.about.endswith("at once")}
    alone = sum(bar.about not in (*together, EXACT) for bar in chosen)
    facts = _facts(needs, found, sure(len(together) + alone, setting.confidence), setting)
    if len(chosen) < len(answers) or facts.confidence <= 0:
        return facts
    farthest = max(max(answer.value, setting.rows - answer.value) for answer in answers)
    width = min(float(farthest), max(bar.width for bar in chosen))
    return facts.within(width, about(chosen, facts.confidence))


def curve(
    text: str,
    ranges: Distribution | FlatTable,
    facts: Facts,
    why: str = "",
    told: Mapping[Interval, Estimate] | None = None,
) -> CdfAnswer:
    """The cumulative counts of one release, in which those that were told before stay as they were.

    The band holds for what the release itself says, so it is as much wider as it takes to hold what was told before.
    """
    cdf, values = ranges.cdf(), ranges.cdf().values.copy()
    for (_, end), one in (told or {}).items():
        values[end - 1] = one.value
    width = cdf.half_width + float(np.abs(values - cdf.values).max(initial=0.0))
    # A count lies within 0 … n, so this is how far any of these values can be off; they need not lie there themselves.
    farthest = float(np.maximum(values, ranges.rows - values).max(initial=0.0))
    facts = facts.within(min(width, farthest))
    return _curve(text, ranges.name, ranges.attribute, values, facts, ranges.rows, why)


def _curve(
    text: str, name: str, attribute: Attribute, values: Floats, facts: Facts, rows: int, why: str = ""
) -> CdfAnswer:
    return CdfAnswer(
        question=text,
        name=name,
        labels=tuple(attribute.label(i) for i in range(attribute.bins)),
        start=float(attribute.edge(0)),
        ends=np.array([float(attribute.edge(i + 1)) for i in range(attribute.bins)]),
        values=values,
        rows=rows,
        facts=facts,
        dated=isinstance(attribute.values, Days),
        why=why,
    )


def _histogram(text: str, ask: Histogram, found: Found, setting: Setting) -> Table:
    attribute, released = setting.domain[ask.name], _released(ask.name, ask.share, found)
    labels = [attribute.label(a) if b == a + 1 else _between(attribute, a, b) for a, b in pairwise(ask.cuts)]
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        counts, told, at = released.ranges.histogram(list(ask.cuts)), released.told, list(pairwise(ask.cuts))
        values = [told[i].value if i in told else v for i, v in zip(at, counts.values.tolist(), strict=True)]
        errors = [told[i].half_width if i in told else e for i, e in zip(at, counts.errors.tolist(), strict=True)]
        facts = released.facts.within(None if None in errors else max(e for e in errors if e is not None))
    else:
        needs = _pieces(ask, setting)
        answers = [_one("", query, found, setting.rows) for query in needs]
        values = [answer.value for answer in answers]
        facts = replace(_facts(needs, found, setting.confidence, setting), bars=widest([a.bars for a in answers]))
    return Table(text, (ask.name,), (tuple(labels),), np.array(values, dtype=np.float64), facts, (0, setting.rows))


def _between(attribute: Attribute, first: int, end: int) -> str:
    assert not isinstance(attribute.values, Listed)
    return attribute.values.label(attribute.edge(first), attribute.edge(end))


def _range(text: str, ask: Range, found: Found, setting: Setting) -> Answer:
    released = next((part for part in found.values() if isinstance(part, Released)), None)
    if released is None:
        return _one(text, ask.query, found, setting.rows)
    if isinstance(released.ranges, Rectangles):
        (a, b), (c, d) = ask.sides
        counts = released.ranges.counts((a, c), (b, d))
    else:
        counts = released.ranges.counts(*ask.sides[0])
    return Answer(text, float(counts.values), released.facts.within(float(counts.errors)), (0, setting.rows))


def _mean(text: str, ask: Mean, released: Released, setting: Setting) -> Answer:
    assert not isinstance(released.ranges, Rectangles)
    mean = released.ranges.mean()
    note = f"values taken for the middle of their bin; off by at most {mean.rounding:g} more" if mean.rounding else ""
    facts = replace(released.facts, note=joined((released.facts.note, note))).within(mean.error)
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
    return _once(_edges(ask, setting))


def _edges(ask: Quantile, setting: Setting) -> tuple[Query, ...]:
    """The cumulative counts, among the rows of the condition."""
    domain, bins = setting.domain, setting.domain[ask.name].bins
    return tuple(Query.all([ask.where, Query.among(domain, ask.name, range(t + 1))]) for t in range(bins))


def _quantile(text: str, ask: Quantile, found: Found, setting: Setting) -> QuantileAnswer:
    label, bins = setting.domain[ask.name].label, setting.domain[ask.name].bins
    released = _released(ask.name, ask.share, found) if ask.from_ranges else None
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        located = released.ranges.quantile(ask.q)
        at, first, last = located.bin, located.first, located.last
        facts = released.facts.within(released.ranges.half_width)
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
    bins = setting.domain[ask.name].bins
    needs: tuple[Need, ...] = _once(_edges(ask, setting)) if ask.from_ranges else _of_quantile(ask, setting)
    table = found[needs[0]]
    if isinstance(table, TableEstimate) and table.noise is not None:
        counts = np.concatenate([[0.0], np.cumsum(table.values[:bins])])
        t = np.arange(bins + 1)
        terms = table.draws * (t * (1 - ask.q) ** 2 + (bins - t) * ask.q**2)
        bars = _bars(table.noise, terms, setting.confidence)
        facts = table.facts
    else:
        edges = _edges(ask, setting)
        if isinstance(table, TableEstimate) and table.read is not None:
            found = {**found, **{query: table.read(query) for query in edges}}
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
    asked = [_of_groups(part, groups, setting) for part in formula.parts]
    confidence = sure(sum(not _exact(need, found) for need in asked), setting.confidence)
    rows: Sequence[Sequence[Figure]] = list(zip(*columns, strict=True)) if columns else [()]
    figures = [formula.put_together(row, setting.rows) for row in rows]
    if confidence <= 0:
        figures = [Figure(figure.value, None) for figure in figures]
    unsure = formula.doubt if any(figure.error is None for figure in figures) else ""
    needs = [one for need in asked for one in ([need] if isinstance(need, Marginal) else need)]
    facts = _facts(needs, found, confidence, setting, formula.note, unsure)
    return Composed(figures, _widest_of(facts, [figure.error for figure in figures], needs, found))


def _exact(need: list[Query] | Marginal, found: Found) -> bool:
    """Whether something follows from what is public. A bar of 0 does not say so: noise may be small, a figure low."""
    parts = [found[one].facts.bars[:1] for one in ([need] if isinstance(need, Marginal) else need)]
    return all(bars and bars[0].about == EXACT for bars in parts)


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
        plain = not part.name and all(group.width is None for group in groups)
        if plain or table.read is None or _size(groups, setting) > MAX_SEPARATE:
            return _from_table(part, groups, need, table, setting)
        # Every sum of cells has the answer that its own question has.
        need = _of_each(part, groups, setting)
        found = {query: table.read(query) for query in need}
    answers = [_one("", query, found, setting.rows) for query in need]
    return [Figure(float(answer.value), answer.error) for answer in answers]


def _size(groups: tuple[Group, ...], setting: Setting) -> int:
    return math.prod(len(group.parts(setting.domain)) for group in groups)


def _of_groups(part: Weighed, groups: tuple[Group, ...], setting: Setting) -> list[Query] | Marginal:
    """What is asked: a question for each group, or one table that has them all."""
    domain = setting.domain
    if not groups:
        return [part.query(domain)]
    names = tuple(group.name for group in groups)
    size = _size(groups, setting)
    plain = not part.name and all(group.width is None for group in groups)
    if plain or (setting.fresh and size >= FEW):
        table = marginal(domain, *dict.fromkeys((*names, part.name) if part.name else names), where=part.where)
        need = _of_table(table, domain)
        return [part.query(domain)] if isinstance(need, Query) else need
    marginal(domain, *names, where=part.where)  # refuses what has no table
    if size > MAX_SEPARATE:
        raise InvalidQuery(f"a value for each of {size:,} groups is too many at once; the most is {MAX_SEPARATE:,}.")
    return _of_each(part, groups, setting)


def _of_each(part: Weighed, groups: tuple[Group, ...], setting: Setting) -> list[Query]:
    """The question of each group."""
    domain, names = setting.domain, [group.name for group in groups]
    cells = product(*(group.parts(domain) for group in groups))
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
    """Bars for sums of noise with weights in [-1, 1] whose squares add up to at most `terms`."""
    whole = np.maximum(1, np.ceil(terms - 1e-9)).astype(np.int64)
    if whole.size > 64:  # to the next quarter of an octave: a few bounds serve all
        whole = np.ceil(2 ** (np.ceil(np.log2(whole) * 4) / 4)).astype(np.int64)
    known = {k: weighted_width(noise, k, confidence) for k in set(whole.tolist())}
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
