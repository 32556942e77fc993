"""What a user gets back: a number or a table with its error bar, where it came from, what it cost, and a receipt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import inf
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Loss, percent_of
from tacit.model.facts import EXACT, Bar, Facts, Receipt, Source
from tacit.show.frames import Frame, FrameColumn, Framed

if TYPE_CHECKING:
    from tacit.show.chart import Chart


Says = Literal["sharp", "rough", "nothing"]
Limits = tuple[float, float]  # the least and the most that a value can be at all
ANY: Limits = (-inf, inf)
SHOWN = 200  # rows of a table, as text
SHARP = 0.1  # of a value, and of what it can be: a bar up to this is small beside it
ALL = 0.99  # of what a value can be: an interval that leaves so much says nothing


class Answered(Framed):
    """What every kind of answer has: an error bar, and the facts about it under names of their own."""

    __slots__ = ()
    facts: Facts

    @property
    def says(self) -> Says:
        """Whether the answer says anything: "sharp", "rough" or "nothing". From public facts, like the bar."""
        raise NotImplementedError

    @property
    def error(self) -> float | None:
        """The half width of the bar that is shown: the narrowest that is proved; None where none is."""
        return self.facts.width

    @property
    def bars(self) -> tuple[Bar, ...]:
        """Every bar that is proved, the one that is shown first."""
        return self.facts.bars

    @property
    def confidence(self) -> float:
        """The confidence of the error bar."""
        return self.bars[0].confidence if self.bars else self.facts.confidence

    @property
    def source(self) -> Source:
        """Where the answer comes from: see `Facts`."""
        return self.facts.source

    @property
    def cost(self) -> Loss:
        """What the answer cost now."""
        return self.facts.cost

    @property
    def receipt(self) -> Receipt | None:
        """Where the answer stands in the ledger."""
        return self.facts.receipt

    @property
    def note(self) -> str:
        """What else has to be said about the answer."""
        return self.facts.note


@dataclass(frozen=True, slots=True)
class Answer(Answered):
    """One answer. With probability at least `confidence`, `value` is within `error` of the truth.

    `source` says where it comes from: "measured" (bought now), "repeat" (the same question was answered before),
    "hypothesis" (worked out from published answers) or "public" (follows from the number of rows alone).

    `bars` has every error bar that is proved, and says what each is about; `error` is the width of the first, which is
    the narrowest. See docs/understand/guarantees.md.
    """

    question: str
    value: float
    facts: Facts
    limits: Limits = ANY

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the truth lies, at the stated confidence, cut to the limits; None where nothing is promised."""
        return None if self.error is None else within(self.value, self.error, self.limits)

    @property
    def says(self) -> Says:
        """Whether the answer says anything: "sharp", "rough" or "nothing" (see `says`)."""
        return says(self.value, self.error, self.limits)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        error = self.error
        return {
            "question": self.question,
            "value": self.value,
            "error": error,
            "interval": None if error is None else list(within(self.value, error, self.limits)),
            "says": says(self.value, error, self.limits),
            **self.facts.to_dict(),
        }

    def frame(self) -> Frame:
        """One row: the question, its value and error, and what else the answer says of itself."""
        return Frame((*one_row(question=self.question, value=self.value, error=self.error), *fact_columns(self)))

    def __str__(self) -> str:
        return f"{_number(self.value)} {bar_words(self)}"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        said = f"({sure_words(self)} · {self.source} · {cost_words(self.facts)})"
        return notebook(
            question=self.question,
            value=_number(self.value),
            bar=_plus_minus(self.error),
            small=f"{said}{_note(self)}{says_words(self)}",
            grey=self.says == "nothing",
        )


@dataclass(frozen=True, eq=False)
class Table(Answered):
    """Counts of all combinations of some attributes' values. `error` holds for each cell by itself."""

    question: str
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: NDArray[np.float64]
    facts: Facts
    limits: Limits = ANY  # of each cell; the cells add up to no more than the upper one

    @property
    def says(self) -> Says:
        """As in `Answer`, for the cell in the middle; "nothing" too where the cells add up to a tenth too much.

        Noise does that where it is as large as what the cells hold.
        """
        if np.maximum(self.values, 0).sum() > (1 + SHARP) * self.limits[1]:
            return "nothing"
        return says(float(np.median(self.values)), self.error, self.limits)

    def rows(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Each combination of labels with its value, the last attribute fastest."""
        yield from zip(product(*self.labels), self.values.ravel().tolist(), strict=True)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "question": self.question,
            "columns": [*self.names, "value"],
            "rows": [[*labels, value] for labels, value in self.rows()],
            "error": self.error,
            "says": self.says,
            **self.facts.to_dict(),
        }

    def frame(self) -> Frame:
        """A row for each combination: a column of labels for each attribute, then value and error."""
        places = np.indices(self.values.shape).reshape(len(self.names), -1)
        axes = zip(self.names, self.labels, places, strict=True)
        labels = [FrameColumn(name, "text", values, place) for name, values, place in axes]
        errors = FrameColumn("error", "real", [self.error], np.zeros(self.values.size, dtype=np.intp))
        return Frame((*labels, FrameColumn("value", "real", self.values.ravel()), errors))

    def chart(self) -> Chart:
        """Bars for one attribute, a heat map for two."""
        from tacit.show.figures import table_figure

        return table_figure(self)

    @property
    def caption(self) -> str:
        return f"each {bar_words(self)}"

    def __str__(self) -> str:
        lines = [[*self.names, "value"], *([*labels, _number(value)] for labels, value in self._shown())]
        return "\n".join([*aligned(lines, len(self.names)), *left_out(self.values.size), self.caption])

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        rows = [[*labels, _number(value)] for labels, value in self._shown()]
        picture = {"picture": self.chart()} if len(self.names) <= 2 else {}
        notes, grey = [*left_out(self.values.size), self.caption], self.says == "nothing"
        return notebook(head=[*self.names, "value"], rows=rows, notes=notes, grey=grey, **picture)

    def _shown(self) -> list[tuple[tuple[str, ...], float]]:
        return list(islice(self.rows(), SHOWN))


def aligned(lines: Sequence[Sequence[str]], labels: int) -> list[str]:
    """Lines of text in columns: labels begin where their column does, values end where it ends."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust if i < labels else str.rjust for i in range(len(widths))]
    text = ("  ".join(side(c, w) for side, c, w in zip(sides, line, widths, strict=True)) for line in lines)
    return [line.rstrip() for line in text]


def left_out(rows: int) -> list[str]:
    """What is said where rows are not shown; nothing where all are."""
    return [f"… and {rows - SHOWN:,} more rows"] if rows > SHOWN else []


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"  # a fraction, whose error may be small


def says(value: float, error: float | None, limits: Limits) -> Says:
    """What a value with its bar says.

    "nothing" without a bar, or where the interval leaves all that the value could be but a hundredth; "sharp" where the
    bar is at most a tenth of the value, and of the range that it could be in; else "rough".
    """
    if error is None:
        return "nothing"
    (low, high), span = within(value, error, limits), limits[1] - limits[0]
    if error and high - low >= ALL * span:
        return "nothing"
    return "sharp" if error <= SHARP * min(abs(value), span) else "rough"


def within(value: float, error: float, limits: Limits) -> tuple[float, float]:
    """The part of the interval around a value in which it can be at all."""
    least, most = limits
    return min(max(value - error, least), most), max(min(value + error, most), least)


def bar_words(shown: Answered) -> str:
    """The error bar that is shown and its circumstances in words."""
    start = f"{_plus_minus(shown.error)} ".lstrip()
    return f"{start}({sure_words(shown)}, {shown.source}, {cost_words(shown.facts)}){_note(shown)}{says_words(shown)}"


def bar_line(bar: Bar) -> str:
    """A bar by itself, and what it is about."""
    return f"{_plus_minus(bar.width)} ({_confident(bar)})"


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {_number(error)}"


def sure_words(shown: Answered) -> str:
    """The confidence of the bar that is shown, and what it is about."""
    return _confident(shown.bars[0]) if shown.bars else "nothing is promised"


def _confident(bar: Bar) -> str:
    sure = f"{100 * bar.confidence:.10g}%"  # 0.999 is not 100%
    # A share of many questions is its own confidence: it is not said twice.
    return bar.about if bar.about == EXACT or bar.about.startswith(f"{sure} of ") else f"{sure}, for {bar.about}"


def says_words(shown: Answered) -> str:
    return " · says nothing" if shown.says == "nothing" else ""


def _note(shown: Answered) -> str:
    return f" · {shown.note}" if shown.note else ""


def cost_words(facts: Facts) -> str:
    """What an answer cost: in per cent of the budget, where that is known."""
    if not facts.cost.atoms:
        return "free"
    return f"cost {facts.cost}" if facts.total is None else f"{percent_of(facts.cost, facts.total)} of the budget"


def one_row(**cells: float | str | None) -> list[FrameColumn]:
    """A column of one value for each name: text, or a number."""
    return [FrameColumn(name, "text" if isinstance(cell, str) else "real", [cell]) for name, cell in cells.items()]


def fact_columns(shown: Answered) -> list[FrameColumn]:
    """What every kind of answer says of itself, as columns of one row; the cost is in the budget's own measure."""
    entry, seal = (None, None) if shown.receipt is None else (shown.receipt.entry, shown.receipt.seal)
    return [
        *one_row(confidence=shown.confidence, source=shown.source, cost=float(shown.cost)),
        FrameColumn("entry", "whole", [entry]),
        FrameColumn("seal", "text", [seal]),
        FrameColumn("note", "text", [shown.note]),
    ]
