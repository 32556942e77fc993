"""What a user gets back that has many values: a table of counts, the rows of a statement, cumulative counts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import (
    ANY,
    SHARP,
    Answer,
    Answered,
    Limits,
    QuantileAnswer,
    Says,
    bar_words,
    circumstances,
    cost_words,
    ends,
    note_words,
    number,
    percent,
    says,
    source_words,
)
from tacit.model.facts import Facts
from tacit.show.frames import Frame, FrameColumn

if TYPE_CHECKING:
    from tacit.show.chart import Chart

_SHOWN = 200  # rows of a table, as text
MOST_WIDEST = 4  # columns whose widest bars stand below a table
MOST_SHOWN = 100  # steps of a curve, in a notebook's table
_LEAST_FIRST: tuple[Says, ...] = ("nothing", "rough", "sharp")


@dataclass(frozen=True, eq=False)
class Table(Answered):
    """Counts of all combinations of some attributes' values. `errors` hold for each cell by itself.

    `error` is the widest of them. own: where they differ, the error of each cell; 0 of those that the condition leaves
    no row for.
    """

    question: str
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    values: NDArray[np.float64]
    facts: Facts
    limits: Limits = ANY  # of each cell; the cells add up to no more than the upper one
    along: str | None = None  # the attribute whose values follow one another, as blocks do
    own: NDArray[np.float64] | None = None

    @property
    def errors(self) -> NDArray[np.float64]:
        """How far each cell can be off; infinite without a bar."""
        if self.own is not None:
            return self.own
        return np.full(self.values.shape, np.inf if self.error is None else self.error)

    @property
    def says(self) -> Says:
        """What the cell in the middle says, as in `Answer`; "nothing" too where the cells add up to a tenth too much.

        Noise does that where it is as large as what the cells hold.
        """
        if np.maximum(self.values, 0).sum() > (1 + SHARP) * self.limits[1]:
            return "nothing"
        errors = self.errors.ravel()
        open_ones = np.flatnonzero(errors) if errors.any() else np.arange(errors.size)
        in_order = open_ones[np.argsort(self.values.ravel()[open_ones], kind="stable")]
        middle = float(errors[in_order[in_order.size // 2]])
        value = float(np.median(self.values.ravel()[open_ones]))
        return says(value, None if np.isinf(middle) else middle, self.limits)

    def rows(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Each combination of labels with its value, the last attribute fastest."""
        yield from zip(product(*self.labels), self.values.ravel().tolist(), strict=True)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float]]:
        return self.rows()

    def __len__(self) -> int:
        """How many combinations there are."""
        return int(self.values.size)

    def _values(self) -> dict[str, Any]:
        rows = [[*labels, value] for labels, value in self.rows()]
        sizes: dict[str, Any] = {"shape": list(self.values.shape), "limits": ends(self.limits)}
        sizes |= {} if self.along is None else {"along": self.along}
        sizes |= {} if self.own is None else {"own": _known(self.own)}
        return {"columns": [*self.names, "value"], "rows": rows, "error": self.error, **sizes, "says": self.says}

    def frame(self) -> Frame:
        """A row for each combination: a column of labels for each attribute, then value and error."""
        places = np.indices(self.values.shape).reshape(len(self.names), -1)
        axes = zip(self.names, self.labels, places, strict=True)
        labels = [FrameColumn(name, "text", values, place) for name, values, place in axes]
        if self.own is None:
            errors = FrameColumn("error", "real", [self.error], np.zeros(self.values.size, dtype=np.intp))
        else:
            errors = FrameColumn("error", "real", _known(self.own))
        return Frame((*labels, FrameColumn("value", "real", self.values.ravel()), errors))

    def chart(self) -> Chart:
        """Bars for one attribute, a heat map for two; along blocks, lines with their bands."""
        from tacit.show.pages import table_figure

        return table_figure(self)

    @property
    def caption(self) -> str:
        return f"each {'' if self.own is None or self.error is None else 'at most '}{bar_words(self)}"

    def __str__(self) -> str:
        lines = [[*self.names, "value"], *([*labels, words] for labels, words in self._shown())]
        return "\n".join([*aligned(lines, len(self.names)), *left_out(self.values.size), self.caption])

    def _page(self) -> dict[str, Any]:
        rows = [[*labels, words] for labels, words in self._shown()]
        picture = {"picture": self.chart()} if len(self.names) <= 2 else {}
        notes = [*left_out(self.values.size), self.caption]
        return {"head": [*self.names, "value"], "rows": rows, "notes": notes, **picture}

    def _shown(self) -> list[tuple[tuple[str, ...], str]]:
        """The first combinations, with their values in words, and with their bars where these differ."""
        some = zip(islice(self.rows(), _SHOWN), self.errors.flat, strict=False)
        plain = self.own is None
        return [(labels, number(v) + ("" if plain or np.isinf(e) else f" ± {number(e)}")) for (labels, v), e in some]


@dataclass(frozen=True)
class Row:
    """One row: the labels of its group, its values, and the error bar of each; None where nothing is guaranteed.

    A value that is NULL for certain, such as the mean of a group that no row can be in, has a bar of 0.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    errors: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Listing(Answered):
    """Rows in the order that was asked for. Each value's error bar holds by itself, at least at the confidence.

    `names` are the columns of labels, `titles` those of values. `error` is the widest bar; None where a value has none.
    """

    question: str
    names: tuple[str, ...]
    titles: tuple[str, ...]
    listed: tuple[Row, ...]
    facts: Facts
    limits: tuple[Limits, ...]  # of each column of values
    plain: tuple[bool, ...] = ()  # whether a column of values has no bars: it is about bars itself, or was written

    @property
    def says(self) -> Says:
        """What the value in the middle says, as in `Answer`: at least half of the values say as much.

        Of a group that no row can be in, NULL is all there is to say, and does not count.
        """
        said = (zip(self.words(row), self._bare, row.values, row.errors, strict=True) for row in self.listed)
        words = sorted(
            (word for row in said for word, bare, value, error in row if not bare and not _surely_null(value, error)),
            key=_LEAST_FIRST.index,
        )
        return words[len(words) // 2] if words else "nothing" if self.titles and not self.listed else "sharp"

    @property
    def _bare(self) -> tuple[bool, ...]:
        return self.plain or (False,) * len(self.titles)

    def words(self, row: Row) -> list[Says]:
        """What each value of a row says."""
        return [says(*one) for one in zip(row.values, row.errors, self.limits, strict=True)]

    def rows(self) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
        """Each row's labels with its values."""
        yield from ((row.labels, row.values) for row in self.listed)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
        return self.rows()

    def __len__(self) -> int:
        return len(self.listed)

    def __bool__(self) -> bool:
        """True: an answer without rows is an answer."""
        return True

    def _values(self) -> dict[str, Any]:
        rows = [[*row.labels, *map(_null, row.values)] for row in self.listed]
        errors = [list(row.errors) for row in self.listed]
        columns = {"columns": [*self.names, *self.titles], "labels": len(self.names), "plain": list(self.plain)}
        limits = [ends(one) for one in self.limits]
        return {**columns, "rows": rows, "errors": errors, "limits": limits, "says": self.says}

    def frame(self) -> Frame:
        """A row for each row: a column for each attribute's labels, then each value and its error."""
        labels = [
            FrameColumn(name, "text", [row.labels[i] for row in self.listed]) for i, name in enumerate(self.names)
        ]
        values = list[FrameColumn]()
        for i, (title, bare) in enumerate(zip(self.titles, self._bare, strict=True)):
            values.append(FrameColumn(title, "real", [_null(row.values[i]) for row in self.listed]))
            if not bare:
                named = f"{title} error" if len(self.titles) > 1 else "error"
                values.append(FrameColumn(named, "real", [row.errors[i] for row in self.listed]))
        return Frame((*labels, *values))

    def chart(self) -> Chart:
        """Bars of one value, in the order of the rows."""
        from tacit.show.pages import listing_figure

        return listing_figure(self)

    @property
    def caption(self) -> str:
        if not self.listed:
            return f"no rows ({source_words(self)}, {cost_words(self.facts)}){note_words(self)}"
        if not self.titles:
            return self.note
        widest = self.widest()
        # A bar without a title is that of the only column that has bars.
        each = ", ".join(f"± {number(error)}" + (f" for {title}" if title else "") for title, error in widest)
        return f"at most {each} {circumstances(self)}" if each else circumstances(self)

    def widest(self) -> list[tuple[str, float]]:
        """The widest bar of each column, with the column's title where there are several.

        Columns have units of their own, so there is no widest of all. None where a value has no bar, or where there are
        too many columns for a line.
        """
        columns = [i for i, bare in enumerate(self._bare) if not bare]
        if self.error is None or len(columns) > MOST_WIDEST:
            return []
        bars = [max((row.errors[i] or 0.0 for row in self.listed), default=0.0) for i in columns]
        return [(self.titles[i] if len(columns) > 1 else "", bar) for i, bar in zip(columns, bars, strict=True)]

    def unbarred(self) -> tuple[int, int]:
        """How many values have no bar, of how many that could have one."""
        could = [error for row in self.listed for error, bare in zip(row.errors, self._bare, strict=True) if not bare]
        return could.count(None), len(could)

    def _unpromised(self) -> str:
        without, every = self.unbarred()
        if without == every:
            return super()._unpromised()
        have = "has" if without == 1 else "have"
        return f"{without:,} of {every:,} values {have} no bar, {percent(self.facts.confidence)} for the others"

    def __str__(self) -> str:
        lines = [[*self.names, *self.titles], *self.cells()]
        return "\n".join([*aligned(lines, len(self.names)), *left_out(len(self.listed)), self.caption])

    def _page(self) -> dict[str, Any]:
        notes = [*left_out(len(self.listed)), self.caption]
        return {"head": [*self.names, *self.titles], "rows": self.cells(), "notes": notes}

    def cells(self, most: int = _SHOWN) -> list[list[str]]:
        """The first rows as text, each value with its bar, and with a word where it says nothing."""
        return [
            [*row.labels, *map(_with_bar, row.values, row.errors, self.grey(row), self._bare)]
            for row in self.listed[:most]
        ]

    def grey(self, row: Row) -> list[bool]:
        """Which values of a row are shown with the word that they say nothing."""
        return [
            value == value and not bare and word == "nothing"
            for value, bare, word in zip(row.values, self._bare, self.words(row), strict=True)
        ]


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
        """What a step says that half of the rows lie below, as in `Answer`."""
        return says(self.rows / 2, self.error, (0, self.rows))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The counts as fractions of all rows."""
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
        from tacit.show.pages import curve_figure

        return curve_figure(self)

    def _values(self) -> dict[str, Any]:
        rows = [list(row) for row in zip(self.labels, self.values.tolist(), strict=True)]
        columns = [self.name, "rows up to its end"]
        axis = {"start": self.start, "ends": self.ends.tolist(), "dated": self.dated, "limits": [0, self.rows]}
        said = {"simultaneous": True, **({"why": self.why} if self.why else {}), "says": self.says}
        return {"columns": columns, "rows": rows, "error": self.error, **axis, **said}

    def __str__(self) -> str:
        return f"{self.question}: {len(self.values):,} steps {bar_words(self)}"

    def _page(self) -> dict[str, Any]:
        rows = [
            [label, *(f"{number:,.0f}" for number in numbers)]
            for label, *numbers in zip(self.labels, *self.band, self.values, strict=True)
        ]
        step = -(-len(rows) // MOST_SHOWN)
        few = rows if step == 1 else [*rows[step - 1 :: step], *([] if len(rows) % step == 0 else rows[-1:])]
        notes = [f"one in {step:,} of {len(rows):,} bins"] * (step > 1) + [bar_words(self)]
        head = [self.name, "low", "high", "rows up to its end"]
        return {"picture": self.chart(), "folded": "Numbers", "head": head, "rows": few, "notes": notes}


Answers = Answer | Table | CdfAnswer | QuantileAnswer | Listing


def aligned(lines: Sequence[Sequence[str]], labels: int) -> list[str]:
    """Lines of text in columns: labels begin where their column does, values end where it ends."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust if i < labels else str.rjust for i in range(len(widths))]
    text = ("  ".join(side(c, w) for side, c, w in zip(sides, line, widths, strict=True)) for line in lines)
    return [line.rstrip() for line in text]


def left_out(rows: int) -> list[str]:
    """What is said where rows are not shown; nothing where all are."""
    return [f"… and {rows - _SHOWN:,} more rows"] if rows > _SHOWN else []


def _known(errors: NDArray[np.float64]) -> list[float | None]:
    """The errors of cells, one after the other; None where there is no bar."""
    return [None if np.isinf(error) else error for error in errors.ravel().tolist()]


def _null(value: float) -> float | None:
    """NULL, which is no number, as None."""
    return None if value != value else value


def _surely_null(value: float, error: float | None) -> bool:
    """Whether there is certainly no value: a bar of 0 around none."""
    return value != value and error == 0


def _with_bar(value: float, error: float | None, grey: bool, bare: bool) -> str:
    if value != value:
        return "–"
    if bare:
        return number(value, 10)
    bar = "" if error is None else f" ± {number(error, 10)}"
    return f"{number(value, 10)}{bar}{' (says nothing)' if grey else ''}"
