"""Several charts in one picture, and a budget as one bar. Anybody may call it; see `tacit.show.chart`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.show.chart.figure import EDGE, Chart, heading
from tacit.show.chart.marks import numbers
from tacit.show.chart.paint import SERIES, Drawing, Picture, box, p, paint, rectangles, text
from tacit.show.chart.text import clip, escape, number, width, wrap

BAR = 22  # pixels of a gauge's bar
LINE = 18  # pixels of a line that says how much is taken
SAMPLE, AFTER = 12, 18  # pixels of a colour's sample, and from its start to its name
LONGEST = 200  # pixels of a part's name


@dataclass(frozen=True, eq=False)
class Grid(Picture):
    """Small multiples: charts in rows. With `same_y` they share the y axis, so that heights can be compared."""

    title: str
    charts: Sequence[Chart]
    columns: int = 2
    same_y: bool = False

    def __post_init__(self) -> None:
        if self.columns < 1 or not self.charts:
            raise ValueError("A grid needs a chart and a column.")
        object.__setattr__(self, "charts", tuple(self.charts))

    def drawing(self) -> Drawing:
        drawn = [chart.drawing() for chart in (_level(self.charts) if self.same_y else self.charts)]
        rows = [drawn[i : i + self.columns] for i in range(0, len(drawn), self.columns)]
        columns = [max(row[j].width for row in rows if j < len(row)) for j in range(len(rows[0]))]
        body, top = heading(self.title, sum(columns))
        for row in rows:
            for j, one in enumerate(row):
                body += f'<g transform="translate({p(sum(columns[:j]))} {p(top)})">{one.body}</g>'
            top += max(one.height for one in row)
        words = " ".join(f"{chart.title}: {one.words}" for chart, one in zip(self.charts, drawn, strict=True))
        return Drawing(sum(columns), top, body, words)


@dataclass(frozen=True, eq=False)
class Gauge(Picture):
    """How much of a whole is taken, and by what: one bar, with what is left in the colour of the grid."""

    title: str
    parts: Sequence[tuple[str, float]]
    total: float
    unit: str = ""
    width: int = 640

    def __post_init__(self) -> None:
        sizes = numbers([size for _, size in self.parts], "parts")
        numbers([self.total], "total")
        if self.total <= 0 or (sizes < 0).any():
            raise ValueError("A gauge's total must be above 0, and no part negative.")
        if sizes.sum() > self.total * (1 + 1e-9):
            raise ValueError("The parts of a gauge must not exceed its total.")
        if not 200 <= self.width <= 4000:
            raise ValueError("A gauge is 200 to 4000 pixels wide.")

    def drawing(self) -> Drawing:
        body, top = heading(self.title, self.width)
        long = self.width - 2 * EDGE
        taken = sum(size for _, size in self.parts)
        unit = f" {self.unit}" if self.unit else ""
        said = f"{number(taken)} of {number(self.total)}{unit} ({taken / self.total:.0%})"
        for one in wrap(said, long):
            body += text(EDGE, top + SAMPLE, one)
            top += LINE
        top += 6
        body += f'<path d="{rectangles([(EDGE, top, long, BAR)])}" {paint(fill="grid")}/>'
        x = float(EDGE)
        parts = [(name, size, str(i % SERIES)) for i, (name, size) in enumerate(self.parts)]
        for name, size, role in parts:
            wide = long * size / self.total
            gap = 1 if wide > 4 else 0
            words = escape(clip(f"{name}: {number(size)}{unit}", 2000))
            body += f"<rect {box(x, top, wide - gap, BAR)} {paint(fill=role)}><title>{words}</title></rect>"
            x += wide
        rest = ("left", max(0.0, self.total - taken), "grid")
        key, top = _key([*parts, rest], long, top + 34)
        each = ", ".join(f"{clip(name, 1000)} {number(size)}" for name, size, _ in parts)
        words = f"{said}. {each}{'; ' if each else ''}left {number(rest[1])}."
        return Drawing(self.width, top + LINE + EDGE, body + key, words)


def _key(parts: Sequence[tuple[str, float, str]], long: float, top: float) -> tuple[str, float]:
    """Samples and names in rows, and where the last row is."""
    out, x = "", float(EDGE)
    for name, size, role in parts:
        label = f"{clip(name, LONGEST)} {number(size)}"
        if x > EDGE and x + AFTER + width(label) > EDGE + long:
            x, top = float(EDGE), top + 20
        out += f'<path d="{rectangles([(x, top, SAMPLE, SAMPLE)])}" {paint(fill=role)}/>'
        out += text(x + AFTER, top + 10, f"{name} {number(size)}", most=min(long - AFTER, max(width(label), 40)))
        x += AFTER + width(label) + 16
    return out, top


def _level(charts: Sequence[Chart]) -> list[Chart]:
    """The same charts, with the widest range of all on every y axis of numbers; linear and logarithmic ones apart."""
    found = list(charts)
    for log in (False, True):
        own = [i for i, one in enumerate(charts) if not one.is_empty and not one.y.categories and one.y.log == log]
        scales = [charts[i].scales()[1] for i in own]
        for i in own:
            low, high = min(scale.low for scale in scales), max(scale.high for scale in scales)
            found[i] = replace(charts[i], y=replace(charts[i].y, low=low, high=high))
    return found
