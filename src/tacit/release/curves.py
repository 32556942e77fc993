"""Answers about ordered attributes: what one release of their ranges tells, or counts put together. For `answering`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tacit.model.answer import Answer
from tacit.model.ask import Ask, Cdf, Histogram, Mean, Quantile, Range
from tacit.model.attribute import Attribute
from tacit.model.facts import EXACT, NOISE, Bar, Facts, about, joined, widest
from tacit.model.query import Query
from tacit.model.table import CdfAnswer, Table
from tacit.model.values import Days, Listed
from tacit.release import quantiles
from tacit.release.estimate import Estimate
from tacit.release.evidence import (
    MAX_SEPARATE,
    Floats,
    Found,
    Interval,
    Need,
    RangesOf,
    Released,
    Setting,
    answer_to,
    facts_of,
    least_sure,
    once,
    release_of,
    separate,
    sure,
)
from tacit.release.quotients import formula_of
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.flat_table import FlatTable
from tacit.release.ranges.rectangles import Rectangles


def needs_of(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Need, ...]:
    """What a question about the ranges of an attribute needs: a release of them, or counts that are known apart."""
    names = ask.query.scope if isinstance(ask, Range) else (ask.name,)
    if ask.share is not None:
        return (RangesOf(names, ask.share, strategy=ask.strategy if isinstance(ask, Cdf) else None),)
    pieces = _pieces(ask, setting)
    if pieces and setting.piecewise(names, pieces):
        return once(pieces)
    return (RangesOf(names, None, _intervals(ask, setting)),)


def offer(ask: Ask, found: Found, setting: Setting) -> str:
    """What would be sharper, where an answer about ranges is not read off a release that was bought for them."""
    assert isinstance(ask, Cdf | Histogram | Range | Quantile | Mean)
    released = [part for part in found.values() if isinstance(part, Released)]
    if ask.share is not None or any(not isinstance(one.ranges, FlatTable) for one in released):
        return ""
    return setting.offer(ask.query.scope if isinstance(ask, Range) else (ask.name,))


def _intervals(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Interval, ...]:
    """The counts of neighbouring bins that an answer shows; none where they are too many to look up."""
    if isinstance(ask, Histogram) and separate(len(ask.cuts) - 1, setting.domain[ask.name].size):
        return tuple(pairwise(ask.cuts))
    if isinstance(ask, Cdf):
        attribute = setting.domain[ask.name]
        if separate(attribute.bins, attribute.size):
            return tuple((0, end + 1) for end in range(attribute.bins))
    return ()


def _pieces(ask: Cdf | Histogram | Range | Quantile | Mean, setting: Setting) -> tuple[Query, ...]:
    """The counts that an answer can be put together from; none where they are too many."""
    domain = setting.domain
    if isinstance(ask, Range):
        return (ask.query,)
    if isinstance(ask, Mean):
        return tuple(part.query(domain) for part in formula_of(ask, setting).parts)
    if isinstance(ask, Quantile):
        return quantiles.cumulative(ask, setting) if domain[ask.name].bins <= MAX_SEPARATE else ()
    return tuple(Query.among(domain, ask.name, range(*interval)) for interval in _intervals(ask, setting))


def cdf(text: str, ask: Cdf, found: Found, setting: Setting) -> CdfAnswer:
    released = release_of(ask.name, ask.share, found)
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        return curve(text, released.ranges, released.facts, released.why, released.told)
    needs = _pieces(ask, setting)
    answers = [answer_to("", query, found, setting.rows) for query in needs]
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
    chosen = [next((bar for bar in a.bars if bar.about.at_once), *a.bars[:1]) for a in answers if a.bars]
    together = {bar.about for bar in chosen if bar.about.at_once}
    alone = sum(bar.about not in (*together, EXACT) for bar in chosen)
    least = least_sure([answer.facts for answer in answers], setting)
    facts = facts_of(needs, found, sure(len(together) + alone, least), setting)
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


def histogram(text: str, ask: Histogram, found: Found, setting: Setting) -> Table:
    attribute, released = setting.domain[ask.name], release_of(ask.name, ask.share, found)
    labels = [attribute.label(a) if b == a + 1 else _between(attribute, a, b) for a, b in pairwise(ask.cuts)]
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        counts, told, at = released.ranges.histogram(list(ask.cuts)), released.told, list(pairwise(ask.cuts))
        values = [told[i].value if i in told else v for i, v in zip(at, counts.values.tolist(), strict=True)]
        errors = [told[i].facts.width if i in told else e for i, e in zip(at, counts.errors.tolist(), strict=True)]
        facts = released.facts.within(None if None in errors else max(e for e in errors if e is not None))
    else:
        needs = _pieces(ask, setting)
        answers = [answer_to("", query, found, setting.rows) for query in needs]
        values = [answer.value for answer in answers]
        facts = replace(facts_of(needs, found, setting.confidence, setting), bars=widest([a.bars for a in answers]))
    return Table(text, (ask.name,), (tuple(labels),), np.array(values, dtype=np.float64), facts, (0, setting.rows))


def _between(attribute: Attribute, first: int, end: int) -> str:
    assert not isinstance(attribute.values, Listed)
    return attribute.values.label(attribute.edge(first), attribute.edge(end))


def range_count(text: str, ask: Range, found: Found, setting: Setting) -> Answer:
    released = next((part for part in found.values() if isinstance(part, Released)), None)
    if released is None:
        return answer_to(text, ask.query, found, setting.rows)
    if isinstance(released.ranges, Rectangles):
        (a, b), (c, d) = ask.sides
        counts = released.ranges.counts((a, c), (b, d))
    else:
        counts = released.ranges.counts(*ask.sides[0])
    return Answer(text, float(counts.values), released.facts.within(float(counts.errors)), (0, setting.rows))


def mean(text: str, ask: Mean, released: Released, setting: Setting) -> Answer:
    assert not isinstance(released.ranges, Rectangles)
    made = released.ranges.mean()
    note = f"values taken for the middle of their bin; off by at most {made.rounding:g} more" if made.rounding else ""
    facts = replace(released.facts, note=joined((released.facts.note, note))).within(made.error)
    return Answer(text, made.value, facts, ask.formula.limits(setting.rows), made.rounding)
