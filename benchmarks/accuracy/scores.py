"""The errors of every way, family by family, and the table that is printed of them. For `bench_accuracy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.show.chart import Axis, Chart, Points

Figure = Callable[[NDArray[np.float64]], float]
FIGURES: dict[str, Figure] = {
    "mean": lambda errors: float(np.mean(errors)),
    "95 %": lambda errors: float(np.quantile(errors, 0.95)),
    "99 %": lambda errors: float(np.quantile(errors, 0.99)),
    "largest": lambda errors: float(np.max(errors)),
}
SIZES = ((1, 10), (10, 100), (100, 1_000), (1_000, 10**12))  # rows of a group
UNIT = 1e-4  # errors are printed in ten-thousandths


@dataclass
class Scores:
    """One way on one table with one budget: each figure of each run, by the row of the printed table."""

    name: str
    ours: bool = False
    figures: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    note: str = ""
    words: str = ""  # its name in pictures

    def add(self, family: str, errors: NDArray[np.float64]) -> None:
        for name, figure in FIGURES.items():
            self.figures.setdefault((family, name), []).append(figure(errors))

    def add_relative(self, truth: NDArray[np.float64], answers: NDArray[np.float64]) -> None:
        """The mean error of groups of some size, as a share of the group."""
        for low, high in SIZES:
            chosen = (truth >= low) & (truth < high)
            if chosen.any():
                words = f"{low:,} to {high:,} rows" if high < 10**12 else f"{low:,} rows or more"
                errors = np.abs(answers - truth)[chosen] / truth[chosen]
                self.figures.setdefault(("relative error of cells", words), []).append(float(errors.mean()))

    def mean(self, row: tuple[str, str]) -> float:
        return float(np.mean(self.figures.get(row, [np.nan])))


def printed(scores: Sequence[Scores]) -> str:
    """A column for each way, and for each of ours how many times the best peer's error it has."""
    found = [one for one in scores if one.figures]
    peers, ours = [one for one in found if not one.ours], [one for one in found if one.ours]
    rows = list(dict.fromkeys(row for one in found for row in one.figures))
    heads = [one.name for one in found] + [f"{one.name}/best" if len(ours) > 1 else "/best" for one in ours if peers]
    lines = [f"{'':<42}" + "".join(f"{head:>10}" for head in heads)]
    for row in rows:
        figures = {one.name: one.mean(row) for one in found}
        best = min((figures[one.name] for one in peers if not np.isnan(figures[one.name])), default=np.nan)
        unit = 1.0 if row[0].startswith("relative") else UNIT
        cells = [_shown(figures[one.name] / unit) for one in found]
        cells += [_shown(figures[one.name] / best) if best > 0 else "-" for one in ours if peers]
        lines.append(f"{f'{row[0]}, {row[1]}':<42}" + "".join(f"{cell:>10}" for cell in cells))
    lines.append(f"{'seconds':<42}" + "".join(f"{_shown(float(np.mean(one.seconds))):>10}" for one in found))
    lines += [f"{one.name}: {one.note}" for one in scores if one.note]
    return "\n".join(lines)


def _shown(figure: float) -> str:
    if np.isnan(figure):
        return "-"
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def picture(title: str, scores: Sequence[Scores], family: str, note: str) -> Chart:
    """Largest and mean errors of every way, with the spread of the runs."""
    shown = [one for one in scores if not np.isnan(one.mean((family, "mean")))]
    marks = []
    for name, figure, mark in (("largest error", "largest", "diamond"), ("mean error", "mean", "circle")):
        found = [one.figures[family, figure] for one in shown]
        middle, low, high = (np.array([f(one) for one in found]) for f in (np.mean, np.min, np.max))
        places = np.arange(len(shown))
        marks.append(Points(middle, places, low=low, high=high, name=name, shape=mark, across=True))  # type: ignore[arg-type]
    axis = Axis("error, as a fraction of all rows", log=True)
    categories = Axis(categories=[one.words or one.name for one in shown])
    return Chart(title, x=axis, y=categories, marks=marks, width=760, note=note)
