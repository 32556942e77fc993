"""Trusted with counts: one statement that counts a copy by several sets of columns, and how its result is read.

Called by `copies`. Whole numbers come back, several codes packed into each. For DuckDB there are joint tables: fewer,
larger ones that all wanted tables follow from by adding up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.model.counting import Group
from tacit.model.domain import Domain

Counts = NDArray[np.int64]

JOINT = 18  # bits of the codes of a joint table
MOST_JOINT = 50_000  # tables times attributes, beyond which joint tables are not looked for
_WORD = 62  # bits


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
        """The table of each set, in order; its axes are the set's columns.

        Where a row has a code that nobody declared they are empty: the core refuses what does not add up.
        """
        *words, counts = result
        codes = dict[str, Counts]()
        for word, packed in zip(words, self._words(), strict=True):
            for column, shift in packed:
                codes[column] = (word >> shift) & (2 ** bits_of(self.sizes[column]) - 1)
        has = np.zeros(len(counts), dtype=np.int64)
        declared = True
        alone = len(self.sets) == 1  # then a code of every column is there, however many they are
        for bit, (column, size) in enumerate(self.sizes.items()):
            declared &= not len(counts) or int(codes[column].max()) <= size - alone
            if not alone:
                has |= (codes[column] < size).astype(np.int64) << bit
        if not declared:
            has[:] = -1  # which no set has
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


def joined(groups: Sequence[Group], domain: Domain) -> list[Group]:
    """Tables that all of these follow from by adding up, each small enough to be counted directly; or these themselves.

    DuckDB counts by up to 20 bits of codes without hashing, in one scan of just these columns, and takes as long
    for five attributes as for two; `GROUPING SETS` hashes every row once for each set. Each time the largest table
    that is left is joined with the attributes that bring the most others along.
    """
    if len(groups) * len(domain) > MOST_JOINT:
        return list(groups)
    bits = [bits_of(size) for size in domain.shape]
    place = {name: i for i, name in enumerate(domain)}
    scopes = {sum(1 << place[name] for name in one.names) for one in groups}
    left = sorted(scopes, key=lambda scope: -_sum(scope, bits))
    found = list[Group]()
    while left:
        joint = left[0]
        while True:
            fits = [joint | 1 << i for i in range(len(bits)) if not joint >> i & 1]
            fits = [wider for wider in fits if _sum(wider, bits) <= JOINT]
            if not fits:
                break
            joint = max(fits, key=lambda wider: sum(not scope & ~wider for scope in left))
        left = [scope for scope in left if scope & ~joint]
        found.append(Group(tuple(name for name, i in place.items() if joint >> i & 1)))
    return found


def _sum(scope: int, bits: Sequence[int]) -> int:
    """The bits of the attributes in a scope, which is a set of places as a number."""
    return sum(many for i, many in enumerate(bits) if scope >> i & 1)
