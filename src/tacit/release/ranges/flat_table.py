"""All that released tables say about one of their ordered attributes: counts, CDF, quantiles, mean. Post-processing.

A range has the number here that its count has anywhere else: the sum of its cells or, where these are fewer, n less the
sum of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.formula import middles_of
from tacit.release.hypothesis.noisy_residuals import MainEffect
from tacit.release.hypothesis.noisy_table import CellSums
from tacit.release.ranges.distribution import Average, Counts, Curve, Located, located

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
ValueCounts = CellSums | MainEffect  # the noisy counts of one attribute's values, and the law of their errors


class FlatTable:
    """An ordered attribute as a table knows it. `confidence` is that of every bar by itself, and of the whole band."""

    def __init__(self, counts: ValueCounts, name: str, domain: Domain, rows: int, confidence: float) -> None:
        self.name, self.rows, self.confidence = name, rows, confidence
        self.attribute: Attribute = domain[name]
        self._law = counts
        self._sums = np.concatenate([[0], np.cumsum(self._law.counts)])

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
        if self._law.steps > 1:  # fractions of a row are rounded, those of a question's core up
            outside = self.rows * self._law.steps - inside
        values = np.where(add, self._whole(inside), self.rows - self._whole(outside))
        return Counts(values.astype(np.float64), self._widths(few))

    def histogram(self, cuts: Sequence[int]) -> Counts:
        """Rows between neighbouring cuts."""
        at = np.asarray(cuts, dtype=np.intp)
        return self.counts(at[:-1], at[1:] - 1)

    def cdf(self) -> Curve:
        """The cumulative counts, with a band that holds for all of them at once."""
        at = np.arange(self.bins)
        return Curve(self.counts(np.zeros_like(at), at).values, self.half_width)

    @property
    def half_width(self) -> float:
        """Of the band around all cumulative counts at once. They are not cut to 0 … n, so it may be wider than that."""
        return float(self._law.band(self.confidence))

    def quantile(self, share: float) -> Located:
        """The first bin by whose end at least this share of the rows (in bins) has come.

        A rank is F(t) - share * F(bins). Where every row is in a bin F(bins) is n. Its noise is symmetric, so each bar
        is wrong on the side that matters with half the probability, and the interval holds at the confidence.
        """
        at = np.arange(self.bins + 1)
        if self.attribute.extras:
            inside = self._sums[: self.bins + 1].astype(np.float64) / float(self._law.steps)
            rank = inside - share * inside[-1]
            totals, squares = at - self.bins * share, at * (1 - share) ** 2 + (self.bins - at) * share**2
            pairs = zip(totals.tolist(), squares.tolist(), strict=True)
            bars = np.array([float(self._law.weighted(*pair, self.confidence)) for pair in pairs])
        else:
            found = self.counts(np.zeros(self.bins, dtype=np.intp), np.arange(self.bins))
            rank = np.append(0.0, found.values) - share * self.rows
            bars = np.append(0.0, found.errors)
            bars[-1] = 0.0  # all rows have come, for certain
        return located(rank, rank - bars, rank + bars)

    def mean(self) -> Average:
        """The mean of the values in bins, each taken for the middle of its bin.

        With m the middle of all bins and T = Σ (middle - m) * count it is m + T / B. The number B of rows in bins is n,
        or has a bar of its own: then each bar has half of what may go wrong, and the error is at most
        (bar of T + |T / B| * bar of B) / (B - bar of B).
        """
        middles, rounding, widest = middles_of(self.attribute)
        centre, counts = float(middles.mean()), np.diff(self._sums[: self.bins + 1]).astype(np.float64)
        counts /= float(self._law.steps)
        far = float(np.abs(middles - centre).max()) or 1.0
        weights = (middles - centre) / far
        top, total, squares = float(weights @ counts), float(weights.sum()), float(weights @ weights)
        if self.attribute.extras:
            half = 1 - (1 - self.confidence) / 2
            bottom = float(self.counts(0, self.bins - 1).values)
            unsure = float(self._law.some(self.bins, half))
        else:
            half, bottom, unsure = self.confidence, float(self.rows), 0.0
        found = min(max(top / max(bottom, 1.0), -1.0), 1.0)
        bar = float(self._law.weighted(total, squares, half))
        error = far * (bar + abs(found) * unsure) / (bottom - unsure) if bottom > unsure else widest
        return Average(centre + far * found, min(error, widest), rounding)

    def _widths(self, few: Places) -> Floats:
        known = {k: float(self._law.some(k, self.confidence)) for k in set(np.ravel(few).tolist())}
        return np.array([known[k] for k in np.ravel(few).tolist()]).reshape(np.shape(few))

    def _whole(self, steps: NDArray[Any]) -> NDArray[Any]:
        """Rounded to rows, a half up: as in `NoisyResiduals.value`."""
        return np.asarray((2 * steps + self._law.steps) // (2 * self._law.steps))
