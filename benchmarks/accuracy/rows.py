"""A line of the accuracy tables, what it says in print, and the picture of all of them. For `bench_accuracy`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.needed import ALPHA
from tacit.show.chart import Axis, Chart, Points

HEADINGS = f"{'mechanism':<33}{'max':>16}{'99 %':>8}{'mean':>17}{'hard':>6}"
HEADINGS += f"  {'epsilon needed':<30}{'answers within':<17}{'seconds':>8}"


@dataclass
class Row:
    """One mechanism asked by one analyst, some times over. Errors are fractions of n.

    needed: the epsilon for (0.05, 0.001), and how that is known. within: how many questions, and how that is known.
    """

    name: str
    runs: list[NDArray[np.float64]] = field(default_factory=list)
    hard: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    needed: str = "-"
    within: str = ""
    note: str = ""

    def add(self, errors: NDArray[np.float64], hard: int | None, seconds: float) -> None:
        self.runs.append(errors)
        self.seconds.append(seconds)
        if hard is not None:
            self.hard.append(hard)

    def over_runs(self, figure: Callable[[NDArray[np.float64]], float]) -> tuple[float, float, float]:
        """The mean over the runs, the least and the largest."""
        found = [float(figure(errors)) for errors in self.runs]
        return sum(found) / len(found), min(found), max(found)

    @property
    def first_miss(self) -> int | None:
        """How many questions of a run were answered before one was off by more than alpha; the least of all runs."""
        misses = [int(np.argmax(errors > ALPHA)) for errors in self.runs if (errors > ALPHA).any()]
        return min(misses, default=None)

    def __str__(self) -> str:
        if not self.runs:
            return f"{self.name:<33}  {self.note}"
        hard = f"{max(self.hard):,}" if self.hard else ""
        middle, quantile = _spread(*self.over_runs(np.max), 4), self.over_runs(lambda e: float(np.quantile(e, 0.99)))[0]
        mean = _spread(*self.over_runs(np.mean), 5)
        seconds = f"{sum(self.seconds) / len(self.seconds):.1f}"
        line = f"{self.name:<33}{middle:>16}{quantile:>8.4f}{mean:>17}{hard:>6}  {self.needed:<30}{self._within:<17}"
        return f"{line}{seconds:>8}  {self.note}".rstrip()

    @property
    def _within(self) -> str:
        if self.within:
            return self.within
        miss = self.first_miss
        return f"all {len(self.runs[0]):,} asked" if miss is None else f"{miss:,} (seen)"


def _spread(middle: float, low: float, high: float, digits: int) -> str:
    if not math.isfinite(middle) or low == high:
        return f"{middle:.{digits}f}"
    return f"{low:.{digits}f}–{high:.{digits}f}"


def picture(title: str, rows: Sequence[Row], note: str) -> Chart:
    """Largest and mean errors of every mechanism, with the spread of the runs."""
    shown = [row for row in rows if row.runs]
    marks = []
    for name, figure, shape in (("largest error", np.max, "diamond"), ("mean error", np.mean, "circle")):
        found = [row.over_runs(figure) for row in shown]
        middle, low, high = (np.array(column) for column in zip(*found, strict=True))
        marks.append(
            Points(middle, np.arange(len(shown)), low=low, high=high, name=name, shape=shape, across=True)  # type: ignore[arg-type]
        )
    axis = Axis("error, as a fraction of all rows", log=True)
    categories = Axis(categories=[row.name for row in shown])
    return Chart(title, x=axis, y=categories, marks=marks, width=760, note=note)
