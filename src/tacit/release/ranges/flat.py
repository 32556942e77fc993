"""All that a released table says about one of its ordered attributes: counts, CDF, quantiles, mean. Post-processing.

A range has the number here that its count has anywhere else: the sum of its cells or, where these are fewer, n less the
sum of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.noise_law import quantile_of_sum
from tacit.model.values import Listed
from tacit.release.hypothesis.noisy_table import NoisyTable, weighted_width
from tacit.release.ranges.distribution import Average, Counts, Curve, Located

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class FlatTable:
    """An ordered attribute as a table knows it. `confidence` is that of every bar by itself, and of the whole band."""

    def __init__(self, table: NoisyTable, name: str, domain: Domain, rows: int, confidence: float) -> None:
        self.name, self.rows, self.confidence = name, rows, confidence
        self.attribute: Attribute = domain[name]
        self.receipt, self.words = table.receipt, table.words
        self.noise = table.noise
        counts, self._each = table.sums(name)
        self._sums = np.concatenate([[0], np.cumsum(counts)])

    @property
    def bins(self) -> int:
        return self.attribute.bins

    def counts(self, first: ArrayLike, last: ArrayLike) -> Counts:
        """Rows in the bins first <= i <= last, for many such pairs at once."""
        low, end = np.asarray(first, dtype=np.intp), np.asarray(last, dtype=np.intp) + 1
        inside = self._sums[end] - self._sums[low]
        outside, size = self._sums[-1] - inside, self.attribute.size
        few = end - low
        # Of two halves the one without the first value is the question: as in `answer_from`.
        add = (2 * few < size) | ((2 * few == size) & (low > 0))
        return Counts(np.where(add, inside, self.rows - outside).astype(np.float64), self._widths(few))

    def histogram(self, cuts: Sequence[int] | None = None) -> Counts:
        """Rows between neighbouring cuts."""
        at = np.arange(self.bins + 1) if cuts is None else np.asarray(cuts, dtype=np.intp)
        return self.counts(at[:-1], at[1:] - 1)

    def cdf(self) -> Curve:
        """The cumulative counts, with a band that holds for all of them at once.

        Those up to the middle are partial sums from the left, the others n less partial sums from the right. The noise
        is symmetric and independent, so Lévy's inequality Pr[max |S_k| > x] <= 2 Pr[|S_m| > x] bounds each half by its
        longest sum: a quarter of 1 - confidence for each.
        """
        ends = tuple(float(self.attribute.edge(i + 1)) for i in range(self.bins))
        at = np.arange(self.bins)
        values = self.counts(np.zeros_like(at), at).values
        return Curve(ends, values, self.half_width, self.confidence, "bounded by the longest sums")

    @property
    def half_width(self) -> float:
        """Of the band around all cumulative counts at once."""
        longest = max(1, self.attribute.size // 2) * self._each
        width = quantile_of_sum(self.noise, longest, 1 - (1 - self.confidence) / 4)
        return min(float(width), float(self.rows))

    def quantile(self, share: float) -> Located:
        """The first bin by whose end at least this share of the rows (in bins) has come.

        A rank is F(t) - share * F(bins). Where every row is in a bin F(bins) is n. Its noise is symmetric, so each bar
        is wrong on the side that matters with half the probability, and the interval holds at the confidence.
        """
        at = np.arange(self.bins + 1)
        if self.attribute.extras:
            inside = self._sums[: self.bins + 1].astype(np.float64)
            rank = inside - share * inside[-1]
            squares = self._each * (at * (1 - share) ** 2 + (self.bins - at) * share**2)
            bars = np.array([float(weighted_width(self.noise, s, self.confidence)) for s in squares.tolist()])
        else:
            found = self.counts(np.zeros(self.bins, dtype=np.intp), np.arange(self.bins))
            rank = np.append(0.0, found.values) - share * self.rows
            bars = np.append(0.0, found.errors)
            bars[-1] = 0.0  # all rows have come, for certain
        come = np.flatnonzero(rank[1:] >= 0)
        held = int(come[0]) if come.size else self.bins - 1
        low, high = rank - bars, rank + bars
        low[0] = min(low[0], -math.ulp(0.0))  # before the first bin nobody has come, for certain
        could = np.append(np.flatnonzero((low[:-1] < 0) & (high[1:] >= 0)), held)
        return Located(share, held, int(could.min()), int(could.max()), self.confidence)

    def mean(self) -> Average:
        """The mean of the values in bins, each taken for the middle of its bin.

        With m the middle of all bins and T = Σ (middle - m) * count it is m + T / B. The number B of rows in bins is n,
        or has a bar of its own: then each bar has half of what may go wrong, and the error is at most
        (bar of T + |T / B| * bar of B) / (B - bar of B).
        """
        values = self.attribute.values
        assert not isinstance(values, Listed)
        edges = np.array([self.attribute.edge(i) for i in range(self.bins + 1)], dtype=np.float64)
        lows, highs = edges[:-1], edges[1:] - values.whole
        middles = (lows + highs) / 2
        centre, counts = float(middles.mean()), np.diff(self._sums[: self.bins + 1]).astype(np.float64)
        far = float(np.abs(middles - centre).max()) or 1.0
        weights = (middles - centre) / far
        top, squares = float(weights @ counts), self._each * float(weights @ weights)
        if self.attribute.extras:
            half = 1 - (1 - self.confidence) / 2
            whole = self.counts(0, self.bins - 1)
            bottom = float(whole.values)
            few = min(self.bins, self.attribute.size - self.bins) * self._each
            unsure = float(quantile_of_sum(self.noise, few, half))
        else:
            half, bottom, unsure = self.confidence, float(self.rows), 0.0
        found = min(max(top / max(bottom, 1.0), -1.0), 1.0)
        bar, widest = float(weighted_width(self.noise, squares, half)), float(np.ptp(edges))
        error = far * (bar + abs(found) * unsure) / (bottom - unsure) if bottom > unsure else widest
        return Average(centre + far * found, min(error, widest), float((highs - lows).max() / 2), self.confidence)

    def _widths(self, few: Places) -> Floats:
        summed = np.maximum(1, np.minimum(few, self.attribute.size - few)) * self._each
        known = {k: quantile_of_sum(self.noise, k, self.confidence) for k in set(np.ravel(summed).tolist())}
        return np.array([float(known[k]) for k in np.ravel(summed).tolist()]).reshape(np.shape(summed))
