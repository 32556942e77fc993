"""What a user gets back about an ordered attribute: its cumulative counts with a band, and its quantiles."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import (
    Answered,
    Says,
    bar_words,
    cost_words,
    fact_columns,
    one_row,
    says,
    says_words,
    sure_words,
)
from tacit.model.facts import Facts
from tacit.show.frames import Frame, FrameColumn

if TYPE_CHECKING:
    from tacit.show.chart import Chart


MOST_SHOWN = 100  # steps, in a notebook's table


@dataclass(frozen=True, eq=False)
class CdfAnswer(Answered):
    """How many rows lie below the end of each bin; *all* are within `error` of the truth, at the `confidence`.

    `labels` names the bins, `ends` is where they end on the attribute's axis (for dates, `dated`: in days).
    """

    question: str
    name: str
    labels: tuple[str, ...]
    start: float
    ends: NDArray[np.float64]
    values: NDArray[np.float64]
    rows: int
    facts: Facts
    dated: bool = False
    why: str = ""  # this way of measuring it was chosen

    @property
    def error(self) -> float:
        """The half width of the band; all rows where nothing is proved."""
        return self.bars[0].width if self.bars else float(self.rows)

    @property
    def says(self) -> Says:
        """As in `Answer`, for a step that half of the rows lie below."""
        return says(self.rows / 2, self.error, (0, self.rows))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The same as fractions of all rows."""
        return self.values / self.rows

    @property
    def band(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the most that each count can be."""
        return np.clip(self.values - self.error, 0, self.rows), np.clip(self.values + self.error, 0, self.rows)

    def frame(self) -> Frame:
        """A row for each bin: its label, where it ends (`below`, not included), the rows below that, and the band."""
        ends = [dt.date.fromordinal(int(end)) for end in self.ends] if self.dated else self.ends
        counts = {"count": self.values, **dict(zip(("low", "high"), self.band, strict=True))}
        named = [
            FrameColumn(self.name, "text", self.labels),
            FrameColumn("below", "day" if self.dated else "real", ends),
        ]
        return Frame((*named, *(FrameColumn(name, "real", column) for name, column in counts.items())))

    def chart(self) -> Chart:
        """The curve with the band around it."""
        from tacit.show.figures import curve_figure

        return curve_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "question": self.question,
            "columns": [self.name, "rows up to its end"],
            "rows": [[label, value] for label, value in zip(self.labels, self.values.tolist(), strict=True)],
            "error": self.error,
            "simultaneous": True,
            "says": self.says,
            **self.facts.to_dict(),
        }

    def __str__(self) -> str:
        return f"{self.question}: {len(self.values):,} steps {bar_words(self)}"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        rows = [
            [label, *(f"{number:,.0f}" for number in numbers)]
            for label, *numbers in zip(self.labels, *self.band, self.values, strict=True)
        ]
        step = -(-len(rows) // MOST_SHOWN)
        few = rows if step == 1 else [*rows[step - 1 :: step], *([] if len(rows) % step == 0 else rows[-1:])]
        notes = [f"one in {step:,} of {len(rows):,} bins"] * (step > 1) + [bar_words(self)]
        head = [self.name, "low", "high", "rows up to its end"]
        grey = self.says == "nothing"
        return notebook(picture=self.chart(), folded="Numbers", head=head, rows=few, notes=notes, grey=grey)


@dataclass(frozen=True)
class QuantileAnswer(Answered):
    """The bin that holds a quantile. With probability `confidence` the true one starts no earlier than `low` and ends
    no later than `high`. Its `bars` are those of the ranks that it was read off, in rows."""

    question: str
    share: float
    value: str
    low: str
    high: str
    facts: Facts
    limits: tuple[str, str] = ("", "")  # the first and the last bin

    @property
    def error(self) -> None:
        """None: its interval is lopsided."""

    @property
    def says(self) -> Says:
        """As in `Answer`: "sharp" where only one bin can hold it, "nothing" where every bin can."""
        if (self.low, self.high) == self.limits:
            return "nothing"
        return "sharp" if self.low == self.high else "rough"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "question": self.question,
            "share": self.share,
            "value": self.value,
            "interval": [self.low, self.high],
            "says": self.says,
            **self.facts.to_dict(),
        }

    def frame(self) -> Frame:
        """One row: the question, the bin that holds the quantile, and the first and last that could."""
        said = one_row(question=self.question, share=self.share, value=self.value, low=self.low, high=self.high)
        return Frame((*said, *fact_columns(self)))

    def __str__(self) -> str:
        said = f"{self.low} to {self.high} at {sure_words(self)}, {self.source}, {cost_words(self.facts)}"
        return f"{self.value} ({said}){says_words(self)}"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        return notebook(question=self.question, value=str(self), grey=self.says == "nothing")
