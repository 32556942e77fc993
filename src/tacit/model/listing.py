"""What a user gets back for a statement with several values, an order or a limit: rows, each value with its own bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.model.answer import Answered, bar_words
from tacit.model.facts import Facts
from tacit.show.frames import Column, Frame

if TYPE_CHECKING:
    from tacit.show.chart import Chart

_SHOWN = 200


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
            **self.facts.to_dict(),
        }

    def frame(self) -> Frame:
        """A row for each row: a column for each attribute's labels, then each value and its error."""
        labels = [Column(name, "text", [row.labels[i] for row in self.listed]) for i, name in enumerate(self.names)]
        values = [
            column
            for i, title in enumerate(self.titles)
            for column in (
                Column(title, "real", [row.values[i] for row in self.listed]),
                Column(
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
        lines = [[*self.names, *self.titles], *self._cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        labels = len(self.names)
        text = [
            "  ".join(
                c.ljust(w) if i < labels else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*(line.rstrip() for line in text), *self._left_out(), self.caption])

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        head = [*self.names, *self.titles]
        return notebook(head=head, rows=self._cells(), notes=[*self._left_out(), self.caption])

    def _cells(self) -> list[list[str]]:
        return [
            [*row.labels, *(_with_bar(value, error) for value, error in zip(row.values, row.errors, strict=True))]
            for row in self.listed[:_SHOWN]
        ]

    def _left_out(self) -> list[str]:
        left_out = len(self.listed) - _SHOWN
        return [f"… and {left_out:,} more rows"] if left_out > 0 else []


def _with_bar(value: float, error: float | None) -> str:
    return f"{_number(value)} ± {_number(error)}" if error is not None else f"{_number(value)} (no guarantee)"


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4g}"
