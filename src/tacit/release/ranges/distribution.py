"""All that one release says about an ordered attribute: counts, CDF, quantiles, histograms, mean. Post-processing.

Every answer is read off one vector of prefixes, so all of them agree with each other, and the vector is a function of
the released answers alone, so it is the same whenever it is worked out again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.formula import middles_of
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.workload import Convolution, Tree, leaves
from tacit.release.noise_sum import half_widths
from tacit.release.ranges.band import Band, band
from tacit.release.ranges.decoder import Decoder

Floats = NDArray[np.float64]
_DUST = 1e-6  # of a row: what floats may add to a bar that is then cut to whole rows


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts; each true one lies within its `errors`, at the confidence, by itself."""

    values: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class Curve:
    """Rows below the end of each bin. All of them lie within `half_width` of the truth at once, at the confidence."""

    values: Floats
    half_width: float


@dataclass(frozen=True)
class Located:
    """The bin that holds a quantile, and the first and the last that could, at the confidence."""

    bin: int
    first: int
    last: int


@dataclass(frozen=True)
class Average:
    """The mean if every value were its bin's middle. The true mean is within `error` + `rounding` of it."""

    value: float
    error: float
    rounding: float


@dataclass(frozen=True, eq=False)
class Runs:
    """Weights of leaves, of which many neighbours weigh the same: of each run, between two bounds, the one weight.

    A range of a wide attribute is two or three runs, and what is said of it is read off as many prefixes.
    """

    bounds: NDArray[np.intp]
    weights: NDArray[np.int64]


def located(rank: Floats, low: Floats, high: Floats) -> Located:
    """Where a quantile lies: by ranks before each bin and after the last, and the least and most that each can be."""
    come, last = np.flatnonzero(rank[1:] >= 0), rank.size - 2
    held = int(come[0]) if come.size else last
    low[0] = min(low[0], -math.ulp(0.0))  # before the first bin nobody has come, for certain
    could = np.append(np.flatnonzero((low[:-1] < 0) & (high[1:] >= 0)), held)
    return Located(held, int(could.min()), int(could.max()))


def cut_errors(values: Floats, raw: Floats, bar: Floats, rows: int) -> Floats:
    """How far values are from the truth, which lies within a bar around raw ones, and between 0 and n."""
    above = np.clip(raw + bar, 0.0, rows) - values
    below = values - np.clip(raw - bar, 0.0, rows)
    whole = np.floor(np.maximum(above, below) + _DUST)  # counts are whole, and so is what lies between two of them
    return np.maximum(whole, 1.0)  # cut to nothing, it would read as certainty


class Distribution:
    """An ordered attribute as one release knows it.

    Bins are numbered from 0. Rows with a missing or other value are in none of them. `confidence` is that of every
    error bar by itself, and of the band of `cdf` as a whole.
    """

    def __init__(self, measured: Measured, domain: Domain, rows: int, confidence: float = 0.95) -> None:
        strategy = measured.question
        if not isinstance(strategy, Tree | Convolution):
            raise TypeError("ranges are read off a tree or a convolution")
        self.name = strategy.name
        self.attribute: Attribute = domain[strategy.name]
        self.decoder = Decoder(strategy, leaves(self.attribute))
        self.noise: Noise = measured.noise
        self.rows, self.confidence = rows, confidence
        self.receipt = measured.receipt
        self._raw = self.decoder.prefixes(measured.values, rows)
        # Whole numbers, as counts are: so a range is the same number in whichever form it is asked.
        self._prefixes = np.rint(self.decoder.likely(self._raw, variance(self.noise)))

    def at(self, confidence: float) -> Distribution:
        """This distribution with error bars of another confidence."""
        found = copy(self)
        found.__dict__.pop("_band", None)
        found.confidence = confidence
        return found

    @property
    def bins(self) -> int:
        return self.attribute.bins

    @property
    def prefixes(self) -> Floats:
        """Rows below each bin's start, and below the last one's end: bins + 1 numbers that rise from 0."""
        return self._prefixes[: self.bins + 1]

    @property
    def whole(self) -> Floats:
        """The prefixes with all rows: the last number is n, and those before it leave out what lies in no bin."""
        return self._prefixes

    def counts(self, first: ArrayLike, last: ArrayLike) -> Counts:
        """Rows in the bins first <= i <= last, for many such pairs at once.

        The error bar is about the least squares estimate, whose law is known; how far the value is from that is
        added on the side where it matters, and the bar is cut at 0 and n.
        """
        low, end = np.asarray(first, dtype=np.intp), np.asarray(last, dtype=np.intp) + 1
        if low.size and not (low.min() >= 0 and end.max(initial=0) <= self.bins and bool(np.all(low <= end))):
            raise InvalidQuery(f"{self.name} has the bins 0 to {self.bins - 1}, and a range goes up.")
        values = self._prefixes[end] - self._prefixes[low]
        return Counts(values, self._errors(values, low, end))

    def covers(self, query: Query) -> bool:
        """Whether the query is about this attribute alone, and weighs all rows outside its bins the same."""
        return query.scope == (self.name,) and self._runs(query) is not None

    def value(self, query: Query) -> int:
        """The query's answer in grid steps."""
        runs = self._runs(query)
        assert runs is not None
        return int(runs.weights @ np.diff(self._prefixes[runs.bounds]).astype(np.int64))

    def law(self, query: Query, confidence: float) -> float:
        """The bar of the least squares estimate, in grid steps."""
        runs = self._runs(query)
        assert runs is not None
        return query.unit * self._bar(runs, query.unit, confidence)

    def reach(self, query: Query, shown: int, confidence: float) -> int:
        """How far the truth is from a value at most, in grid steps: as far as the least squares estimate, and its bar.

        As in `counts`, the bar is cut at 0 and at n times the largest weight.
        """
        runs, unit = self._runs(query), query.unit
        assert runs is not None
        raw = float(runs.weights.astype(np.float64) @ np.diff(self._raw[runs.bounds]))
        bar = unit * self._bar(runs, unit, confidence)
        low, high = max(0.0, raw - bar), min(float(self.rows * unit), raw + bar)
        return max(1, math.floor(max(high - shown, shown - low) + unit * _DUST))

    def histogram(self, cuts: Sequence[int]) -> Counts:
        """Rows between neighbouring cuts, which are numbers of bins from 0 to all. They add up."""
        at = np.asarray(cuts, dtype=np.intp)
        if at.size < 2 or at[0] < 0 or at[-1] > self.bins or np.any(np.diff(at) < 1):
            raise InvalidQuery(f"cuts go up from 0 to {self.bins}.")
        return self.counts(at[:-1], at[1:] - 1)

    def cdf(self) -> Curve:
        """The cumulative counts with a band that holds for all of them at once. Divide by n for shares."""
        return Curve(self.prefixes[1:], self.half_width)

    @property
    def half_width(self) -> float:
        """The half width of the band around all prefixes at once."""
        return min(float(self.rows), math.floor(self._band.prefixes + 0.5 + _DUST))

    def quantile(self, share: float) -> Located:
        """The first bin by whose end at least this share of the rows (in bins) has come.

        A bin could hold the quantile unless the noise would have to be larger than its error bar for that: too many
        rows before it, or too few up to its end. The least squares prefixes are asked, not the shown ones, in which
        imprecise prefixes pull precise ones along, so that their bars would not hold.
        """
        if not 0 < share < 1:
            raise InvalidQuery(f"a quantile is a share above 0 and below 1, not {share!r}.")
        raw = self._raw[: self.bins + 1] - share * self._raw[self.bins]
        bar = half_widths(self.noise, self._rank_variance(share), self.confidence)
        return located(self.prefixes - share * self.prefixes[-1], raw - bar, raw + bar)

    def mean(self) -> Average:
        """The mean of the values in bins, each taken for the middle of its bin.

        The error is that of Σ (middle - mean) * count / rows in bins: exact where every row is in a bin, to first order
        where the number of rows in bins is itself noisy. `rounding` is half the widest bin, 0 for single whole numbers.
        """
        middles, rounding, widest = middles_of(self.attribute)
        counts = np.diff(self.prefixes)
        inside = max(float(self.prefixes[-1]), 1.0)
        value = float(middles @ counts) / inside if counts.any() else float(middles.mean())
        weights = np.zeros(self.decoder.leaves)
        weights[: self.bins] = (middles - value) / inside
        moved = abs(float(weights @ (np.diff(self._prefixes) - np.diff(self._raw))))
        bar = float(half_widths(self.noise, self.decoder.functional_variance(weights), self.confidence))
        return Average(value, min(bar + moved, widest), rounding)

    @cached_property
    def _band(self) -> Band:
        return band(self.decoder, self.noise, self.confidence)

    def _errors(self, values: Floats, low: NDArray[np.intp], end: NDArray[np.intp]) -> Floats:
        raw = self._raw[end] - self._raw[low]
        spread = self.decoder.interval_variance(low, end)
        bar = half_widths(self.noise, spread, self.confidence, self.decoder.distinct)
        return cut_errors(values, raw, bar, self.rows)

    def _runs(self, query: Query) -> Runs | None:
        """The query's weights of leaves, in grid steps; None where rows outside the bins weigh differently."""
        (factor,) = query.factors  # it is about this attribute alone
        each = factor.weights
        edges = np.flatnonzero(each[1:] != each[:-1]) + 1
        if edges.size and edges[-1] > self.bins:
            return None
        weights = each[np.append(0, edges)].astype(np.int64)
        bounds = np.concatenate([[0], edges, [self.decoder.leaves]])
        return Runs(bounds, query.unit - weights if query.complement else weights)

    def _bar(self, runs: Runs, unit: int, confidence: float) -> float:
        """The bar of a weighted sum of leaves: of an interval's, or its complement's, as in `counts`."""
        for weights in (runs.weights, unit - runs.weights):
            inside = np.flatnonzero(weights)
            if inside.size == 1 and weights[inside[0]] == unit:
                first, end = runs.bounds[inside[0] : inside[0] + 2].tolist()
                spread = self.decoder.interval_variance(first, end)
                return float(half_widths(self.noise, spread, confidence, self.decoder.distinct))
        leaves = np.repeat(runs.weights / unit, np.diff(runs.bounds))
        return float(half_widths(self.noise, self.decoder.functional_variance(leaves), confidence))

    def _rank_variance(self, share: float) -> Floats:
        """The variance of F(t) - share * F(bins), t = 0 .. bins, from those of prefixes and of what lies above."""
        t = np.arange(self.bins + 1)
        before, after = self.decoder.interval_variance(0, t), self.decoder.interval_variance(t, self.bins)
        whole = float(before[-1])
        together = (before + whole - after) / 2
        return np.maximum(before + share**2 * whole - 2 * share * together, 0.0)
