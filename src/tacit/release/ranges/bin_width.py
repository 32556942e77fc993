"""How fine should the bins be: rounding error against noise, from public knowledge alone. Anybody may call it.

Smith & Ullman, "The Domain Size": finer bins round less and need more noise, and the best width cannot be found
without prior knowledge of what the data look like. That knowledge is one number here: how much denser than uniform the
densest place is expected to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact.price import Sensitivity, noise_for, total
from tacit.model.budget import Budget, Loss
from tacit.model.noise_law import Noise, variance
from tacit.model.workload import Convolution, Tree, kernel
from tacit.release.ranges.choice import choose
from tacit.release.ranges.decoder import Decoder

if TYPE_CHECKING:
    from tacit.show.chart import Chart

_ENDS = 400  # thresholds by which a plan's variance is judged


@dataclass(frozen=True)
class BinWidth:
    """One candidate. Errors are in rows, for a threshold anywhere: twice the typical noise, and the worst rounding."""

    width: float
    bins: int
    noise: float
    rounding: float

    @property
    def total(self) -> float:
        return self.noise + self.rounding


def bin_widths(
    low: float,
    high: float,
    rows: int,
    loss: Loss | Budget,
    candidates: Iterable[float],
    *,
    denser: float,
    rows_per_person: int = 1,
) -> list[BinWidth]:
    """What each candidate width would cost, in the given order; `min(..., key=lambda c: c.total)` is the best.

    low, high: the declared range. rows: n. loss: what the release may spend, or a whole budget.
    denser: the densest place holds at most this many times the rows of a uniform distribution; from (high - low)/width
    on it says nothing (the worst case).
    rows_per_person: how many rows of one person are protected together; noise is that many times as wide.
    A threshold is rounded to the nearest edge, so it is wrong by at most half the rows of one bin.
    """
    if not -math.inf < low < high < math.inf or rows < 1 or not denser >= 1:
        raise ValueError("a range goes up, rows are at least 1, and the densest place is at least as dense as uniform")
    loss = total(loss) if isinstance(loss, Budget) else loss
    found = []
    for width in candidates:
        bins = math.ceil((high - low) / width - 1e-9) if width > 0 else 0
        if bins < 1:
            raise ValueError(f"a bin width is above 0 and at most the range, not {width!r}")
        rounding = rows * min(1.0, denser * width / (high - low)) / 2
        found.append(BinWidth(width, bins, rows_per_person * _noise(bins, loss) if bins > 1 else 0.0, rounding))
    return found


def bin_width_chart(candidates: Sequence[BinWidth]) -> Chart:
    """Rounding against noise, on log axes, with the best width marked."""
    from tacit.show.chart import Axis, Chart, Polyline, Rule

    candidates = sorted(candidates, key=lambda one: one.width)
    widths = [one.width for one in candidates]
    noisy = [one.width for one in candidates if one.noise > 0]  # a single bin has none: its count is n
    return Chart(
        "Rounding against noise",
        x=Axis("bin width", log=True),
        y=Axis("error of a threshold, rows", log=True),
        marks=[
            Polyline(noisy, [one.noise for one in candidates if one.noise > 0], name="noise"),
            Polyline(widths, [one.rounding for one in candidates], name="rounding"),
            Polyline(widths, [one.total for one in candidates], name="together"),
            Rule(x=min(candidates, key=lambda one: one.total).width, name="best"),
        ],
    )


def _noise(bins: int, loss: Loss) -> float:
    """Two standard deviations of a threshold, on average."""
    strategy = choose("x", bins, loss.measure, loss="mean", about="intervals").strategy
    ends = np.unique(np.linspace(1, bins - 1, min(bins - 1, _ENDS)).astype(np.int64))
    spread = Decoder(strategy, bins).interval_variance(0, ends).mean()
    return 2 * math.sqrt(variance(noise_of(strategy, bins, loss)) * float(spread))


def noise_of(strategy: Tree | Convolution, leaves: int, loss: Loss) -> Noise:
    """The noise that `loss` buys for a strategy over leaves, for planning. The curator works it out itself."""
    if isinstance(strategy, Tree):
        squares = sum(w * w for w in strategy.weights)
        return noise_for(loss, Sensitivity(2 * sum(strategy.weights), 2 * squares), 1)
    g = kernel(leaves, strategy.exponent).astype(np.float64)
    length = 1 << (2 * leaves - 1).bit_length()
    overlap = np.fft.irfft(np.abs(np.fft.rfft(g, length)) ** 2, length)[:leaves]
    if strategy.cyclic:
        farthest = 2 * (overlap[0] - overlap[1:] - overlap[1:][::-1]).max()
    else:
        farthest = (overlap[0] + np.cumsum(g * g)[:-1][::-1] - 2 * overlap[1:]).max()
    return noise_for(loss, Sensitivity(2 * int(g.sum()), round(float(farthest))), 1)
