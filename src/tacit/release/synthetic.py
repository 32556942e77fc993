"""Synthetic rows: made from published answers alone, so that they may be handed on like those."""

from __future__ import annotations

import csv
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.model.values import Value

_SHOWN = 20  # rows, in a notebook


@dataclass(frozen=True)
class Synthetic:
    """A made-up table with the declared attributes. A bin is stood for by a value in its middle, a missing one by None.

    >>> from tacit.model.attribute import category, integer
    >>> domain = Domain({"sex": category(["F", "M"]), "age": integer(20, 39, width=10)})
    >>> list(Synthetic.of(domain, [np.array([0, 1]), np.array([1, 0])]).rows())
    [('F', 35), ('M', 25)]
    """

    names: tuple[str, ...]
    columns: tuple[tuple[Value | None, ...], ...]

    @classmethod
    def of(cls, domain: Domain, codes: Sequence[NDArray[np.intp]]) -> Synthetic:
        """The rows whose attributes have these codes."""
        columns = []
        for name, column in zip(domain.names, codes, strict=True):
            used, places = np.unique(column, return_inverse=True)
            values = [domain[name].typical(int(code)) for code in used]
            columns.append(tuple(values[place] for place in places))
        return cls(tuple(domain.names), tuple(columns))

    def __len__(self) -> int:
        return len(self.columns[0])

    def rows(self) -> Iterator[tuple[Value | None, ...]]:
        yield from zip(*self.columns, strict=True)

    def to_dict(self) -> dict[str, list[Value | None]]:
        """Columns by name: what pandas.DataFrame, polars.DataFrame and pyarrow.table take."""
        return dict(zip(self.names, map(list, self.columns), strict=True))

    def save(self, path: str | Path) -> None:
        """Write the rows to a CSV file."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.names)
            writer.writerows(self.rows())

    def __repr__(self) -> str:
        return f"Synthetic({len(self):,} rows of {', '.join(self.names)})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        shown = [row for row, _ in zip(self.rows(), range(_SHOWN), strict=False)]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(v))}</td>' for v in row)}</tr>" for row in shown)
        more = f"<caption>{len(self):,} synthetic rows</caption>"
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
