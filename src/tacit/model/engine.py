"""Trusted words: what is asked of an engine. `load/` does it, and is checked by `trusted/`, which never imports it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from tacit.model.counting import Group
from tacit.model.domain import Domain

Counts = NDArray[np.int64]
Progress = Callable[[float], None]
Run = Callable[[Sequence[str]], Sequence[Sequence[Counts]]]  # the columns of each statement's result
# Of one attribute: its value, a function of a column; its code, a function of that value and of its place in a list;
# and the list, which may be empty.
Coded = tuple[exp.Expr, exp.Expr, Sequence[exp.Expr]]


class Loadable(Protocol):
    """A table in an engine, as `load/` knows it."""

    def names(self) -> tuple[str, exp.Table, exp.Expr]:
        """The engine's dialect, and what the table and the order of bytes are called in it."""

    def version(self) -> str:
        """Another one after the table was written to, as far as that is known without reading it."""

    def coded(self, domain: Domain, person: str | None) -> tuple[Sequence[Coded], tuple[str, bool] | None]:
        """How each attribute is coded, and the person's column, with whether it holds text rather than numbers."""

    def run(self, statements: Sequence[str], progress: Progress | None = None) -> Sequence[Sequence[Counts]]:
        """The columns of each statement's result, all from one state of the table."""

    def fetch(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement's result."""


class Countable(Protocol):
    """An encoded copy of a table in an engine: a row of codes for each row that counts."""

    def write(
        self, kept: str, check: Callable[[Sequence[Counts], Run], None], progress: Progress | None = None
    ) -> None:
        """Make it, of the rows that a statement selects, each as the words of its codes.

        `check` is given how many rows have each code of each attribute, the two reserved ones last; and what runs its
        own statements on the table that the copy was made of, in the very state of then where the engine has one. The
        copy comes to be only when that has returned: whatever happens before, there is none.
        """

    def delete(self) -> None:
        """Make it gone."""

    def rows(self) -> int:
        """How many rows it has."""

    def count(self, one: Group) -> Counts:
        """The table of a group."""

    def prepare(self, wanted: Sequence[Group]) -> None:
        """Count all of these in few scans: they will be asked for, in this order. What is too much is counted later."""

    def sums(self, key: bytes) -> tuple[Sequence[int], Counts]:
        """Numbers that are the same for the same rows in any order, and for other rows only by a rare chance.

        And from the same scan, a row for each attribute: how many rows have a code of it, the least and the most code.
        """

    def check(self) -> None:
        """Refuse whatever was put in its place, or written to it, since it was opened."""

    def distrust(self) -> None:
        """Let `check` refuse from now on: what it counts is not what was opened."""
