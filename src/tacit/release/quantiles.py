"""Quantiles of an ordered attribute: the bin that holds one, or a number for each group of a statement.

Called by `answering`, and by `statement` for what is worked out from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import QuantileAnswer
from tacit.model.ask import GroupBy, Quantile
from tacit.model.bands import gathered
from tacit.model.facts import EXACT, Facts
from tacit.model.formula import IF_ANY, bounds_of
from tacit.model.noise_law import Noise
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.span import Spans
from tacit.model.workload import marginal
from tacit.release.estimate import TableEstimate
from tacit.release.evidence import (
    FEW,
    MAX_SEPARATE,
    Floats,
    Found,
    Need,
    Setting,
    answer_to,
    cells_of,
    facts_of,
    least_sure,
    need_of_table,
    once,
    release_of,
    rows_in,
    sure,
    with_widest,
)
from tacit.release.noise_sum import weighted_widths
from tacit.release.ranges.distribution import Located, located
from tacit.release.ranges.rectangles import Rectangles

BinPlaces = NDArray[np.intp]


class Ranks(NamedTuple):
    """The cumulative counts before each bin and after the last, the bars of their ranks, and the bar of the last count.

    Of those bins alone that a row of the condition can be in; where there is none, nobody has a quantile, for certain.

    A rank is F(t) - q * F(end). The bin that truly holds the quantile stays in the interval if two bars hold: that of
    the rank before it and that of the rank at its end. They do at the `confidence`. From one table the ranks' noise is
    symmetric and each bar is wrong on the side that matters with probability (1-c)/2: so the interval holds at c. From
    separate answers it holds at 1 - 3(1-c): two cumulative counts and the total.
    """

    counts: Floats
    bars: Floats
    last: float
    confidence: float
    bins: BinPlaces

    @property
    def nobody(self) -> bool:
        return not self.bins.size

    def located(self, q: float) -> Located:
        """The bin that holds a quantile, the first and the last that could."""
        if self.nobody:
            return Located(0, 0, 0)
        rank = self.counts - q * self.counts[-1]
        at = located(rank, rank - self.bars, rank + self.bars)
        return Located(*(int(self.bins[one]) for one in (at.bin, at.first, at.last)))


NOBODY = Ranks(np.zeros(1), np.zeros(1), 0.0, 1.0, np.zeros(0, dtype=np.intp))  # of a group that no row can be in


def cumulative(ask: Quantile, setting: Setting, group: Sequence[Query] = ()) -> tuple[Query, ...]:
    """The cumulative counts, among the rows of the condition that are in a group."""
    domain, bins = setting.domain, setting.domain[ask.name].bins
    return tuple(Query.all([ask.where, *group, Query.among(domain, ask.name, range(t + 1))]) for t in range(bins))


# -- the bin that holds a quantile ------------------------------------------------------------------------------------


def needs_of(ask: Quantile, setting: Setting) -> tuple[Need, ...]:
    """What a quantile under a condition asks: the table of the attribute, or its cumulative counts."""
    domain, bins = setting.domain, setting.domain[ask.name].bins
    if _sole(ask, setting) is not None:
        return ()
    if setting.fresh and bins >= FEW:
        return (marginal(domain, ask.name, where=ask.where),)
    if bins > MAX_SEPARATE:
        raise InvalidQuery(
            f"{ask.name} has {bins:,} bins; a quantile under a condition takes at most {MAX_SEPARATE:,}."
        )
    return once(cumulative(ask, setting))


def quantile(text: str, ask: Quantile, found: Found, setting: Setting) -> QuantileAnswer:
    label, bins = setting.domain[ask.name].label, _bins(ask, (), setting)[0]
    released = release_of(ask.name, ask.share, found) if ask.from_ranges else None
    if (sole := _sole(ask, setting)) is not None:
        at, facts = sole, setting.public(IF_ANY).within(0, EXACT)
    elif released is not None:
        assert not isinstance(released.ranges, Rectangles)
        at, facts = released.ranges.quantile(ask.q), released.facts.within(released.ranges.half_width)
    else:
        ranks, facts = _ranks(ask, found, setting)
        at = ranks.located(ask.q)
    places = label(at.bin), label(at.first), label(at.last)
    return QuantileAnswer(text, ask.q, *places, facts, (label(int(bins[0])), label(int(bins[-1]))))


def _sole(ask: Quantile, setting: Setting) -> Located | None:
    """The only bin that a row of the condition can be in, if it is one: whichever rows there are, it holds all."""
    bins = _bins(ask, (), setting)[0]
    return Located(*(3 * bins.tolist())) if bins.size == 1 and not ask.from_ranges else None


def _ranks(ask: Quantile, found: Found, setting: Setting) -> tuple[Ranks, Facts]:
    """The ranks under a condition, and the facts."""
    bins = _bins(ask, (), setting)[0]
    needs: tuple[Need, ...] = once(cumulative(ask, setting)) if ask.from_ranges else needs_of(ask, setting)
    table = found[needs[0]]
    if isinstance(table, TableEstimate) and table.noise is not None:
        ranks, facts = _of_table(ask, table.values, table.noise, table.draws, bins, setting), table.facts
    else:
        counts = cumulative(ask, setting)
        if isinstance(table, TableEstimate) and table.read is not None:
            found = {**found, **{query: table.read(query) for query in counts}}
        ranks = _of_counts(ask, counts, found, bins, setting)
        facts = facts_of(needs, found, ranks.confidence, setting)
    return ranks, with_widest(facts, ranks.bars.tolist(), needs, found)


def _bins(ask: Quantile, groups: tuple[GroupBy, ...], setting: Setting) -> list[BinPlaces]:
    """The bins that a row of each group (one, without groups) can be in, by the condition and what is declared."""
    order, bins = [*(group.name for group in groups), ask.name], setting.domain[ask.name].bins
    found = possible(ask.where, order, setting.domain.shape_of(order))[..., :bins]
    for axis, group in enumerate(groups):
        found = gathered(np.logical_or, found, group.parts(setting.domain), axis)
    return [np.flatnonzero(row) for row in found.reshape(-1, bins)]


def _of_table(
    ask: Quantile, cells: NDArray[np.integer[Any]], noise: Noise, draws: int, bins: BinPlaces, setting: Setting
) -> Ranks:
    """The ranks by a table of the attribute, each cell with so many draws of one noise."""
    t = np.arange(bins.size + 1)
    terms = draws * (t * (1 - ask.q) ** 2 + (bins.size - t) * ask.q**2)
    if bins.size <= 2:
        # Of a table of two cells the first is n less the second: both have one draw (`NoisyTable.table`).
        terms = np.maximum(terms, draws)
    bars = weighted_widths(noise, terms, setting.confidence)
    last = weighted_widths(noise, np.array([draws * bins.size]), setting.confidence)
    return Ranks(np.concatenate([[0.0], np.cumsum(cells[bins])]), bars, float(last[0]), setting.confidence, bins)


def _of_counts(ask: Quantile, counts: Sequence[Query], found: Found, bins: BinPlaces, setting: Setting) -> Ranks:
    """The ranks by cumulative counts that have an answer each."""
    answers = [answer_to("", counts[at], found, setting.rows) for at in bins]
    errors = [math.inf if answer.error is None else answer.error for answer in answers]
    values = np.array([0.0, *(answer.value for answer in answers)])
    confidence = sure(3, least_sure([answer.facts for answer in answers], setting))
    return Ranks(values, np.array([0.0, *errors]) + ask.q * errors[-1], errors[-1], confidence, bins)


# -- a number for each group ------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """A number for each group, how far it can be off, the chance that one is farther, and what numbers there can be.

    Where no row can be in a group there is no number, and that is certain.
    """

    spans: Spans
    errors: Floats
    unsure: float
    limits: tuple[float, float]
    note: str = ""


def number_needs(ask: Quantile, groups: tuple[GroupBy, ...], setting: Setting) -> tuple[Need, ...]:
    """What the quantiles of all groups ask: one table where all noise is fresh, else the cumulative counts of each."""
    domain, bins = setting.domain, setting.domain[ask.name].bins
    table = marginal(domain, *(group.name for group in groups), ask.name, where=ask.where)
    if setting.fresh:
        return (need_of_table(table, domain),)
    cells = cells_of(groups, setting.domain)
    if len(cells) * bins > MAX_SEPARATE:
        raise InvalidQuery(
            f"a quantile for each of {len(cells):,} groups of {bins:,} bins is too much at once; {MAX_SEPARATE:,} bins "
            "are the most, all groups together."
        )
    return once(count for cell in cells for count in cumulative(ask, setting, rows_in(groups, cell, setting.domain)))


def numbers(ask: Quantile, groups: tuple[GroupBy, ...], found: Found, setting: Setting) -> Numbers:
    """A quantile of each group (one, without groups) as a number: the middle of its bin.

    The interval goes from the start of the first bin that could hold it to the end of the last. It has no ends where
    the group may have no rows.
    """
    attribute = setting.domain[ask.name]
    starts, middles, ends = bounds_of(attribute)
    released = release_of(ask.name, ask.share, found) if ask.from_ranges and not groups else None
    if released is not None:
        assert not isinstance(released.ranges, Rectangles)
        all_bins, unsure = released.ranges.counts(0, attribute.bins - 1), 1 - setting.confidence
        places, rows, error = [released.ranges.quantile(ask.q)], all_bins.values, all_bins.errors
        nobody = np.zeros(1, dtype=np.bool_)
    elif not groups and (sole := _sole(ask, setting)) is not None:
        places, rows, error, unsure, nobody = [sole], np.ones(1), np.zeros(1), 0.0, np.zeros(1, dtype=np.bool_)
    else:
        every = _ranks_of(ask, groups, found, setting)
        unsure = 1 - min(ranks.confidence for ranks in every)
        places = [ranks.located(ask.q) for ranks in every]
        rows, error = np.array([ranks.counts[-1] for ranks in every]), np.array([ranks.last for ranks in every])
        nobody = np.array([ranks.nobody for ranks in every])
    spans = Spans(
        np.where(rows > 0, middles[[at.bin for at in places]], np.nan),
        np.where(rows > error, starts[[at.first for at in places]], np.where(nobody, np.nan, -np.inf)),
        np.where(rows > error, ends[[at.last for at in places]], np.where(nobody, np.nan, np.inf)),
    )
    bins = _bins(ask, (), setting)[0]
    limits = float(starts[bins[0]]), float(ends[bins[-1]])
    return Numbers(spans, spans.error, unsure, limits, "" if unsure else IF_ANY)


def _ranks_of(ask: Quantile, groups: tuple[GroupBy, ...], found: Found, setting: Setting) -> list[Ranks]:
    """The ranks of each group."""
    if not groups:
        return [_ranks(ask, found, setting)[0]]
    cells = cells_of(groups, setting.domain)
    table = found[number_needs(ask, groups, setting)[0]]
    if isinstance(table, TableEstimate) and table.noise is not None:
        return _of_one_table(ask, groups, table, table.noise, setting)
    counts = [cumulative(ask, setting, rows_in(groups, cell, setting.domain)) for cell in cells]
    if isinstance(table, TableEstimate) and table.read is not None:
        found = {**found, **{query: table.read(query) for some in counts for query in some}}
    return [
        _of_counts(ask, some, found, bins, setting) if bins.size else NOBODY
        for some, bins in zip(counts, _bins(ask, groups, setting), strict=True)
    ]


def _of_one_table(
    ask: Quantile, groups: tuple[GroupBy, ...], table: TableEstimate, noise: Noise, setting: Setting
) -> list[Ranks]:
    """The ranks of each group by one table of all groups and the attribute."""
    cells, order = cells_of(groups, setting.domain), [*(group.name for group in groups), ask.name]
    counts = table.values.transpose([sorted(order).index(name) for name in order])
    counts = np.where(possible(ask.where, order, counts.shape), counts, 0)  # the others hold noise alone
    for axis, group in enumerate(groups):
        counts = gathered(np.add, counts, group.parts(setting.domain), axis)
    rows = zip(cells, counts.reshape(len(cells), -1), _bins(ask, groups, setting), strict=True)
    return [
        _of_table(ask, row, noise, table.draws * math.prod(map(len, cell)), bins, setting) if bins.size else NOBODY
        for cell, row, bins in rows
    ]
