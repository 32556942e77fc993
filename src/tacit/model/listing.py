"""What a user gets back for a statement with several values, an order or a limit: rows, each value with its own bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.model.answer import SHOWN, Answered, Limits, Says, aligned, bar_words, left_out, says
from tacit.model.facts import Facts
from tacit.show.frames import Frame, FrameColumn

if TYPE_CHECKING:
    from tacit.show.chart import Chart

_LEAST_FIRST: tuple[Says, ...] = ("nothing", "rough", "sharp")


@dataclass(frozen=True)
class Row:
    """One row: the labels of its group, its values, and the error bar of each; None where nothing is guaranteed."""

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

    @property
    def says(self) -> Says:
        """As in `Answer`, for the value in the middle: at least half of the values say as much."""
        words = sorted((word for row in self.listed for word in self.words(row)), key=_LEAST_FIRST.index)
        return words[len(words) // 2] if words else "sharp"

    def words(self, row: Row) -> list[Says]:
        """What each value of a row says."""
        return [says(*one) for one in zip(row.values, row.errors, self.limits, strict=True)]

    def rows(self) -> Iterator[tuple[tuple[str, ...], tuple[float, ...]]]:
        """Each row's labels with its values."""
        yield from ((row.labels, row.values) for row in self.listed)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "question": self.question,
            "columns": [*self.names, *self.titles],
            "rows": [[*row.labels, *row.values] for row in self.listed],
            "errors": [list(row.errors) for row in self.listed],
            "says": self.says,
            **self.facts.to_dict(),
        }

    def frame(self) -> Frame:
        """A row for each row: a column for each attribute's labels, then each value and its error."""
        labels = [
            FrameColumn(name, "text", [row.labels[i] for row in self.listed]) for i, name in enumerate(self.names)
        ]
        values = [
            column
            for i, title in enumerate(self.titles)
            for column in (
                FrameColumn(title, "real", [row.values[i] for row in self.listed]),
                FrameColumn(
                    f"{title} error" if len(self.titles) > 1 else "error", "real", [r.errors[i] for r in self.listed]
                ),
            )
        ]
        return Frame((*labels, *values))

    def chart(self) -> Chart:
        """Bars of one value, in the order of the rows."""
        from tacit.show.figures import listing_figure

        return listing_figure(self)

    @property
    def caption(self) -> str:
        if not self.titles:
            return self.note
        said = bar_words(self)
        return said if self.error is None else f"at most {said}"

    def __str__(self) -> str:
        lines = [[*self.names, *self.titles], *self.cells()]
        return "\n".join([*aligned(lines, len(self.names)), *left_out(len(self.listed)), self.caption])

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        head = [*self.names, *self.titles]
        notes, grey = [*left_out(len(self.listed)), self.caption], self.says == "nothing"
        return notebook(head=head, rows=self.cells(), notes=notes, grey=grey)

    def cells(self, most: int = SHOWN) -> list[list[str]]:
        """The first rows as text, each value with its bar, and with a word where it says nothing."""
        return [[*row.labels, *map(_with_bar, row.values, row.errors, self.words(row))] for row in self.listed[:most]]


def _with_bar(value: float, error: float | None, word: Says) -> str:
    bar = "" if error is None else f" ± {_number(error)}"
    return f"{_number(value)}{bar}{' (says nothing)' if word == 'nothing' else ''}"


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4g}"
