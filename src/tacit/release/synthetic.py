"""Synthetic rows: made from published answers alone, so that they may be handed on like those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import Measured
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.values import Value
from tacit.release.distances import TableDistance, distances
from tacit.show.frames import Column, Frame, Framed, Kind

_SHOWN = 20  # rows, in a notebook
_KINDS: dict[str, Kind] = {"boolean": "truth", "integer": "whole", "numeric": "real", "date": "day"}


@dataclass(frozen=True, eq=False, repr=False)
class Synthetic(Framed):
    """A made-up table with the declared attributes. A bin is stood for by a value in its middle, a missing one by None.

    >>> from tacit.model.attribute import category, integer
    >>> domain = Domain({"sex": category(["F", "M"]), "age": integer(20, 39, width=10)})
    >>> list(Synthetic.of(domain, [np.array([0, 1]), np.array([1, 0])]).rows())
    [('F', 35), ('M', 25)]
    """

    domain: Domain
    codes: tuple[NDArray[np.integer], ...]
    population: int = 0  # the rows of the table that the answers are about
    released: tuple[Measured, ...] = field(default=())

    @classmethod
    def of(
        cls,
        domain: Domain,
        codes: Sequence[NDArray[np.integer]],
        population: int = 0,
        released: Sequence[Measured] = (),
    ) -> Synthetic:
        """The rows whose attributes have these codes, to be compared with what was released about `population` rows."""
        pairs = zip(domain.shape, codes, strict=True)
        small = tuple(column.astype(np.min_scalar_type(size)) for size, column in pairs)
        return cls(domain, small, population, tuple(released))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.domain.names)

    @cached_property
    def columns(self) -> tuple[tuple[Value | None, ...], ...]:
        """The values, attribute by attribute."""
        return tuple(tuple(map(values.__getitem__, places.tolist())) for values, places in self._coded)

    @cached_property
    def distances(self) -> tuple[TableDistance, ...]:
        """How far these rows are from the released tables and questions, as fractions of all rows."""
        return distances(self.domain, self.codes, self.population, self.released) if self.population else ()

    @property
    def note(self) -> str:
        """The distances in one line."""
        if not self.distances:
            return "no released table or count to compare these rows with"
        worst = max(self.distances, key=lambda one: one.largest)
        cells = sum(one.cells for one in self.distances)
        mean = sum(one.mean * one.cells for one in self.distances) / cells
        return (
            f"off the released shares by {_percent(mean)} of the rows on average over {cells:,} cells, at most by "
            f"{_percent(worst.largest)} ({worst.about}), where the release's noise is {_percent(worst.noise)} and that "
            f"of drawing {len(self):,} rows {_percent(worst.drawing)}"
        )

    def __len__(self) -> int:
        return len(self.codes[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Synthetic):
            return NotImplemented
        same = zip(self.codes, other.codes, strict=False)
        return self.domain == other.domain and all(np.array_equal(a, b) for a, b in same)

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> Iterator[tuple[Value | None, ...]]:
        yield from zip(*self.columns, strict=True)

    def to_dict(self) -> dict[str, list[Value | None]]:
        """Columns by name, as plain Python values."""
        return dict(zip(self.names, map(list, self.columns), strict=True))

    def frame(self) -> Frame:
        """A column for each attribute. One that has an `other` value is text throughout."""
        attributes = [self.domain[name] for name in self.names]
        return Frame(
            tuple(
                Column(name, _kind(attribute), values, places)
                for name, attribute, (values, places) in zip(self.names, attributes, self._coded, strict=True)
            )
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the rows to a .csv or .parquet file: all of them or nothing."""
        return self.frame().save(path, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Synthetic({len(self):,} rows of {', '.join(self.names)}; {self.note})"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        few = Synthetic(self.domain, tuple(column[:_SHOWN] for column in self.codes))
        about = f"{len(self):,} synthetic rows"
        return notebook(caption=about, head=self.names, rows=few.rows(), notes=[self.note], text_only=True)

    @cached_property
    def _coded(self) -> list[tuple[list[Value | None], NDArray[np.integer]]]:
        """For each attribute the values that occur, and each row's place among them."""
        found = []
        for name, column in zip(self.names, self.codes, strict=True):
            attribute = self.domain[name]
            used: NDArray[np.integer] = np.flatnonzero(np.bincount(column, minlength=1))
            places = np.zeros(attribute.size, dtype=np.intp)
            places[used] = np.arange(len(used))
            found.append(([attribute.typical(int(code)) for code in used], places[column]))
        return found


def _kind(attribute: Attribute) -> Kind:
    """Of its values in a frame; from the declaration alone, so that it does not depend on the rows drawn."""
    if attribute.other is not None:
        return "text"
    listed = "whole" if isinstance(attribute.typical(0), int) else "text"
    return _KINDS.get(attribute.kind, listed)  # type: ignore[arg-type]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
