"""Trusted with counts: the tables of a copy that are remembered, up to so many cells. Held by `copies.Copy`."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
EncodedWhere = tuple[tuple[str, bytes], ...]  # conditions on single attributes: its name, and which codes meet it
Key = tuple[frozenset[str], EncodedWhere]

LEAST_CELLS = (
    300  # cells that a table counts as at least: with its key and all that points to it a small one takes 2.4 KB
)


def weight(key: Key, size: int) -> int:
    """The cells, of eight bytes, that a table of so many takes with all that belongs to it."""
    return max(size, LEAST_CELLS) + sum(len(codes) for _, codes in key[1]) // 8


class Tables:
    """Tables by what they are of, the one that is forgotten next in front.

    weight: of all of them. It is kept as they come and go: to add it up anew for each that goes took a minute.
    """

    def __init__(self) -> None:
        self._tables = OrderedDict[Key, Counts]()
        self._weights = dict[Key, int]()
        self._plain = dict[Key, None]()  # those without conditions, from which others follow by adding up
        self.weight = 0

    def __getitem__(self, key: Key) -> Counts:
        return self._tables[key]

    def __contains__(self, key: Key) -> bool:
        return key in self._tables

    def __len__(self) -> int:
        return len(self._tables)

    def weight_of(self, key: Key) -> int:
        return self._weights[key]

    def keep(self, key: Key, table: Counts) -> None:
        """Remember it, in the place of what was of the same."""
        self.weight -= self._weights.get(key, 0)
        self._tables[key], self._weights[key] = table, weight(key, table.size)
        self.weight += self._weights[key]
        if not key[1]:
            self._plain[key] = None

    def use(self, key: Key) -> None:
        """Put it behind the others: it will be needed."""
        self._tables.move_to_end(key)

    def shrink(self, room: int) -> None:
        """Forget the oldest until no more than that is remembered."""
        while self.weight > room:
            key, _ = self._tables.popitem(last=False)
            self.weight -= self._weights.pop(key)
            self._plain.pop(key, None)

    def clear(self) -> None:
        self._tables.clear()
        self._weights.clear()
        self._plain.clear()
        self.weight = 0

    def nearest(self, wanted: Key) -> Key | None:
        """The table that this one is, or follows from by adding up: the smallest such."""
        if wanted in self._tables or wanted[1]:
            return wanted if wanted in self._tables else None
        larger = [key for key in self._plain if wanted[0] < key[0]]
        return min(larger, key=lambda key: self._tables[key].size, default=None)
