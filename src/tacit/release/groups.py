"""Groups of blocks: ledgers over several blocks in a row, for long windows. Public; used by `tacit.series` alone.

A block's row is in one ledger of every level: its block's, and that of each group that its block is in. Each level has
a public part of the row's budget, and the parts add up to 1 at most: docs/understand/privacy.md, "Blocks", says why
that is private. A window is put together from the ledgers with the least error to expect; `window` has its bars.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from tacit.errors import LedgerError

WHOLE = 100  # weights are hundredths of a row's budget


class BlockGroup(NamedTuple):
    """The blocks of one ledger: as many in a row as its level has, and which such row it is. A block is of level 0."""

    level: int
    place: int


class Taken(NamedTuple):
    """A ledger that a window is put together from, and whether what it says is added (1) or taken off (-1)."""

    group: BlockGroup
    sign: int


class LedgerRun(NamedTuple):
    """Ledgers of one level beside each other, from one index to before another, all added or all taken off."""

    level: int
    first: int
    end: int
    sign: int


class _Way(NamedTuple):
    """From an end of a window to a border between groups of a level: the variance on it, and its ledgers."""

    spread: float
    runs: tuple[LedgerRun, ...]

    def on(self, run: LedgerRun, spread: float) -> _Way:
        return _Way(self.spread + (run.end - run.first) * spread, (*self.runs, run))


@dataclass(frozen=True)
class Levels:
    """How many blocks a ledger of each level has, what part of a row's budget, and the variance to expect of a count.

    Level 0 is the blocks themselves. Variances count beside each other alone.

    Guarantee: the shares of all levels add up to at most 1. A row is in one ledger of each level, so all its ledgers
        together have no more than the whole budget.
    """

    sizes: tuple[int, ...] = (1,)
    weights: tuple[int, ...] = (WHOLE,)
    spreads: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        inside = zip(self.sizes, self.sizes[1:], strict=False)
        nested = self.sizes[:1] == (1,) and all(0 < small < large and large % small == 0 for small, large in inside)
        if not nested or not len(self.sizes) == len(self.weights) == len(self.spreads):
            raise LedgerError("levels of groups have sizes that divide each other, and a weight and a variance each.")
        if any(type(one) is not int or one < 1 for one in self.weights) or sum(self.weights) > WHOLE:
            raise LedgerError(f"the weights of levels are whole numbers that add up to {WHOLE} at most.")
        if not all(0 < one < float("inf") for one in self.spreads) or not pays(self.sizes, self.spreads):
            raise LedgerError(
                "the variances of levels are above 0, and no group's is above that of its parts together."
            )

    def share(self, level: int) -> Fraction:
        """The part of a row's budget that the ledgers of a level have."""
        return Fraction(self.weights[level], WHOLE)

    def blocks(self, group: BlockGroup) -> range:
        """The places of a group's blocks."""
        size = self.sizes[group.level]
        return range(group.place * size, (group.place + 1) * size)

    def complete(self, blocks: int) -> Iterator[BlockGroup]:
        """The groups, beyond single blocks, all of whose blocks are among the first `blocks`: small ones first."""
        for level, size in enumerate(self.sizes[1:], start=1):
            yield from (BlockGroup(level, index) for index in range(blocks // size))

    def cover(self, first: int, end: int, has: Callable[[BlockGroup], bool]) -> list[Taken]:
        """The ledgers that the blocks from `first` to before `end` are put together from.

        A group that there is not is its parts instead.
        """
        signs = Counter[BlockGroup]()
        for level, start, until, sign in self.cheapest(first, end):
            for index in range(start, until):
                for there in self._there(BlockGroup(level, index), has):
                    signs[there] += sign
        return [Taken(group, sign) for group, sign in signs.items() if sign]

    def cheapest(self, first: int, end: int) -> tuple[LedgerRun, ...]:
        """The ledgers with the least variance together, where all groups are there.

        None of them reaches beyond the window's end, so what is appended later changes no window that was asked about.
        At its beginning one may: the blocks before are then taken off.
        """
        # From the left the nearest border of a level is behind or ahead; from the right it is behind.
        left, right, at = {first: _Way(0.0, ())}, _Way(0.0, ()), end
        found = list[_Way]()
        for level, spread in enumerate(self.spreads):
            for start, way in left.items():
                if start <= at:
                    whole = way.on(LedgerRun(level, start, at, 1), spread)
                    found.append(_Way(whole.spread + right.spread, (*whole.runs, *right.runs)))
            if level + 1 < len(self.sizes):
                ratio = self.sizes[level + 1] // self.sizes[level]
                left = _borders(left, level, ratio, spread)
                border = at // ratio
                right, at = right.on(LedgerRun(level, border * ratio, at, 1), spread), border
        return tuple(run for run in min(found, key=lambda way: way.spread).runs if run.first < run.end)

    def _there(self, group: BlockGroup, has: Callable[[BlockGroup], bool]) -> Iterator[BlockGroup]:
        if group.level == 0 or has(group):
            yield group
            return
        ratio = self.sizes[group.level] // self.sizes[group.level - 1]
        for index in range(group.place * ratio, (group.place + 1) * ratio):
            yield from self._there(BlockGroup(group.level - 1, index), has)


def pays(sizes: Sequence[int], spreads: Sequence[float]) -> bool:
    """Whether a group of every level says more than the sum of its parts."""
    levels = range(1, len(sizes))
    return all(spreads[level] <= spreads[level - 1] * (sizes[level] // sizes[level - 1]) for level in levels)


ALONE = Levels()  # blocks, and no groups


def _borders(ways: dict[int, _Way], level: int, ratio: int, spread: float) -> dict[int, _Way]:
    """The ways on to the borders of the next level, behind and ahead, by the border's place among them."""
    found = dict[int, _Way]()
    for at, way in ways.items():
        for border in {at // ratio, -(-at // ratio)}:
            ahead = border * ratio >= at
            run = LedgerRun(level, at, border * ratio, 1) if ahead else LedgerRun(level, border * ratio, at, -1)
            new = way.on(run, spread)
            if border not in found or new.spread < found[border].spread:
                found[border] = new
    return found


def runs(asked: Sequence[object]) -> Iterator[tuple[int, int]]:
    """The places from which to before which the same is asked, in order."""
    first = 0
    for place in range(1, len(asked) + 1):
        if place == len(asked) or asked[place] != asked[first]:
            yield first, place
            first = place
