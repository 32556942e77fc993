"""What the online loop asks of whatever it teaches: what is known, and what it guesses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.model.entry import Measured
from tacit.model.query import Query
from tacit.model.request import Lens
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.warm_start import WarmStart


@dataclass(frozen=True, eq=False)
class Guesses:
    """What public knowledge says about some questions. Values are in counts, and so is whatever is not said otherwise.

    lenses: what shows how far each truth is from what is known; all of one kind.
    floor: what a lens shows where what is known is as good as it can be.
    note: a warning that belongs to every answer given now, or nothing.
    """

    values: NDArray[np.float64]
    lenses: Sequence[Lens]
    floor: float = 0.0
    note: str = ""


class Knowledge(Protocol):
    """What is public so far: a fold over released answers and public seeds, and so never a matter of privacy."""

    note: str

    def start_from(self, found: WarmStart, *, tables: bool) -> None:
        """Go on from a start, before anything is learned. Without `tables`, hard questions are bought one by one."""
        ...

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        """Refuse what cannot be guessed, before anything is paid."""
        ...

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        """Take in what was measured since the last time, in order. The ledger has `entries` entries now."""
        ...

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses: ...

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        """What to buy when a question was hard: itself, or the whole table of its attributes. By what is public."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Rows that look like what is known: a column of codes for each attribute."""
        ...

    def arrays(self) -> Iterable[NDArray[Any]]:
        """All that is known, in numbers whose bits can be compared."""
        ...
