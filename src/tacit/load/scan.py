"""One statement that counts the rows of an encoded copy by several sets of columns, and how its result is read.

Called by `copies`. Whole numbers come back, several codes packed into each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError

Counts = NDArray[np.int64]

_WORD = 62  # bits
_DAMAGED = "the copy of the table is damaged: make it again with `tacit encode`."


@dataclass(frozen=True)
class Scan:
    """One statement that counts by several sets of columns at once, and the tables that its result holds.

    sizes: how many values each column has. met: columns that say whether a row meets conditions, 0 or 1.
    """

    sets: list[list[str]]
    sizes: dict[str, int]
    met: dict[str, str] = field(default_factory=dict)

    def sql(self, table: str) -> str:
        """A code that a set does not have is the size of its column, which no row has."""
        words, by = list[str](), ", ".join(self.sizes)
        for word in self._words():
            words.append(" + ".join(f"COALESCE(CAST({c} AS BIGINT), {self.sizes[c]}) * {2**s}" for c, s in word))
        chosen = ", ".join(f"{word} AS w{w}" for w, word in enumerate(words))
        rows = table
        if self.met:
            columns = [*(c for c in self.sizes if c not in self.met), *(f"{sql} AS {c}" for c, sql in self.met.items())]
            rows = f"(SELECT {', '.join(columns)} FROM {table}) AS rows_of"
        sets = ", ".join(f"({', '.join(one)})" for one in self.sets)
        grouped = by if len(self.sets) == 1 else f"GROUPING SETS ({sets})"
        counted = f"SELECT {by}, COUNT(*) AS n FROM {rows} GROUP BY {grouped}"
        return f"SELECT {chosen}, CAST(n AS BIGINT) AS n FROM ({counted}) AS counted"

    def tables(self, result: Sequence[Counts]) -> list[Counts]:
        """The table of each set, in order; its axes are the set's columns."""
        *words, counts = result
        codes = dict[str, Counts]()
        for word, packed in zip(words, self._words(), strict=True):
            for column, shift in packed:
                codes[column] = (word >> shift) & (2 ** bits_of(self.sizes[column]) - 1)
        has = np.zeros(len(counts), dtype=np.int64)
        alone = len(self.sets) == 1  # then a code of every column is there, however many they are
        for bit, (column, size) in enumerate(self.sizes.items()):
            if len(counts) and int(codes[column].max()) > size - alone:
                raise DataError(_DAMAGED)
            if not alone:
                has |= (codes[column] < size).astype(np.int64) << bit
        order = np.argsort(has, kind="stable")
        sorted_has = has[order]
        found = list[Counts]()
        for one in self.sets:
            bits = 0 if alone else sum(1 << bit for bit, column in enumerate(self.sizes) if column in one)
            rows = order[slice(*np.searchsorted(sorted_has, [bits, bits + 1]))]
            places = np.zeros(len(rows), dtype=np.int64)
            for column in one:
                places = places * self.sizes[column] + codes[column][rows]
            shape = [self.sizes[column] for column in one]
            # The sums are below 2**53, so floats hold them exactly.
            sums = np.bincount(places, weights=counts[rows], minlength=math.prod(shape))
            found.append(sums.astype(np.int64).reshape(shape))
        return found

    def _words(self) -> list[list[tuple[str, int]]]:
        """Which columns are packed into which word, and above how many bits."""
        words: list[list[tuple[str, int]]] = [[]]
        shift = 0
        for column, size in self.sizes.items():
            if shift + bits_of(size) > _WORD:
                words.append([])
                shift = 0
            words[-1].append((column, shift))
            shift += bits_of(size)
        return words


def bits_of(size: int) -> int:
    """How many bits hold the codes below a size, and one code more: the size itself."""
    return size.bit_length()
