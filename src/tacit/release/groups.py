"""Trusted with budgets: groups of blocks, with ledgers of their own, for long windows. Public; for `tacit.series`.

A block's row is in one ledger of every level: its block's, and that of each group that its block is in. Each level has
a public part of the row's budget, and the parts add up to 1 at most: docs/understand/privacy.md, "Blocks", says why
that is private. A window is put together from the ledgers with the least error to expect; `block_parts` has its bars.

Whether groups pay, and which, is planned from how many blocks are expected, and public sizes alone. What groups have of
the budget, single blocks have not: months get worse, and years better. Compared is the geometric mean of the errors to
expect, over windows of all the lengths that count: a per cent here is worth a per cent there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tacit.errors import LedgerError
from tacit.model.budget import Loss
from tacit.model.domain import Domain

WHOLE = 100  # weights are hundredths of a row's budget
_PAYS = 0.95  # of the error of blocks alone: what groups must stay below, since they take time, files and rows
_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30)  # as many of one level are one of the next
_BLOCKS = (40, 50, 60, 70, 80, 90)  # weights of single blocks that are looked at
_FALLS = (1.0, 0.7)  # of the weights from level to level
_POSITIONS = 16  # of windows of one length
_COMMON = 0.1  # see `ExpectedErrors`
_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples hit no grid of borders more often than another


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


# -- which groups pay --------------------------------------------------------------------------------------------------


class ExpectedErrors(NamedTuple):
    """The errors to expect of counts.

    of: in a ledger of a number of blocks, with a part of the budget.
    common: the part of a squared error that all ledgers have alike, so that it adds up linearly: what a fit leaves out
        of one month it leaves out of the next. Fitted to twelve months of Adult, where it was 0.06 to 0.2.
    """

    of: Callable[[int, Fraction], float]
    common: float


@dataclass(frozen=True)
class GroupPlan:
    """The levels, and why, in a sentence."""

    levels: Levels
    why: str


def expected_error(domain: Domain, rows: int, whole: Loss, warm: float, rows_per_person: int = 1) -> ExpectedErrors:
    """By what a mechanism starts from: a fit of tables that are bought for a part `warm` of the budget, or noise alone.

    `rows` are those of one block. The error of noise alone is the same whatever rows there are.
    """
    if not warm:
        power = 1.0 if whole.measure == "epsilon" else 0.5
        return ExpectedErrors(lambda size, share: float(1 / share) ** power, 0.0)
    from tacit.release.forecast import WarmStarted  # only a series that expects a number of blocks is planned for

    @lru_cache(maxsize=4096)
    def error(size: int, share: Fraction) -> float:
        loss = Loss(whole.measure, int(whole.atoms * share * Fraction(warm)))
        return WarmStarted(domain, rows * size, whole.measure, rows_per_person).mean(loss)

    return ExpectedErrors(error, _COMMON)


def planned(expected: int, errors: ExpectedErrors, windows: Sequence[int] | None = None) -> GroupPlan:
    """The levels for a number of blocks.

    windows: lengths of windows, in blocks, that count alike: periods from a multiple of their length on. By default
        windows of 1, 2, 4, … and of all blocks, wherever they begin.
    """
    asked, block = _windows(expected, windows), errors.of(1, Fraction(1))
    alone = [_error(ALONE, [block], some, errors.common) for some in asked]
    best, least = ALONE, 1.0
    for sizes, weights in _candidates(expected, windows):
        each = [errors.of(size, Fraction(weight, WHOLE)) for size, weight in zip(sizes, weights, strict=True)]
        spreads = tuple(one**2 for one in each)
        if not pays(sizes, spreads):
            continue
        levels = Levels(sizes, weights, spreads)
        found = [_error(levels, each, some, errors.common) for some in asked]
        mean = math.exp(sum(math.log(a / b) for a, b in zip(found, alone, strict=True)) / len(asked))
        if mean < least:
            best, least = levels, mean
    lengths = "all lengths" if windows is None else f"{', '.join(map(str, windows))} blocks"
    over = f"over windows of {lengths}, among {expected:,} blocks,"
    if best == ALONE:
        return GroupPlan(ALONE, f"blocks alone: {over} errors would only grow with groups of them.")
    blocks = errors.of(1, best.share(0)) / block - 1
    groups = " and of ".join(f"{size:,}" for size in best.sizes[1:])
    change = f"{over} errors are expected to change by {least - 1:+.0%}, and those of single blocks by {blocks:+.0%}."
    if least > _PAYS:
        return GroupPlan(ALONE, f"blocks alone: with groups of {groups} blocks, {change}")
    return GroupPlan(best, f"groups of {groups} blocks have {WHOLE - best.weights[0]} % of the budget: {change}")


def _windows(expected: int, windows: Sequence[int] | None) -> list[list[tuple[int, int]]]:
    """The windows of each length, first and end."""
    if windows is not None:
        every = (
            [(at, at + size) for at in range(0, expected - size + 1, size)] for size in windows if size <= expected
        )
        return [_some(one) for one in every]
    lengths = [2**power for power in range(expected.bit_length()) if 2**power < expected]
    return [_some([(at, at + size) for at in range(expected - size + 1)]) for size in (*lengths, expected)]


def _some(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All, or a few that are spread evenly."""
    if len(windows) <= _POSITIONS:
        return windows
    return [windows[int(len(windows) * (step * _GOLDEN % 1))] for step in range(_POSITIONS)]


def _error(levels: Levels, errors: Sequence[float], windows: Sequence[tuple[int, int]], common: float) -> float:
    """The mean error over some windows."""
    found = 0.0
    for first, end in windows:
        apart = alike = 0.0
        for level, start, until, sign in levels.cheapest(first, end):
            apart += (until - start) * errors[level] ** 2
            alike += sign * (until - start) * errors[level]
        found += math.sqrt((1 - common) * apart + common * alike**2)
    return found / len(windows)


def _candidates(expected: int, windows: Sequence[int] | None) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for sizes in sorted({*_powers(expected), *_chains(windows or (), expected)}):
        for blocks in _BLOCKS:
            for fall in _FALLS if len(sizes) > 2 else (1.0,):
                parts = [fall**level for level in range(len(sizes) - 1)]
                rest = [int((WHOLE - blocks) * part / sum(parts)) for part in parts]
                if min(rest):
                    yield sizes, (blocks, *rest)


def _powers(expected: int) -> Iterator[tuple[int, ...]]:
    for branching in _BRANCHINGS:
        sizes = [1]
        while sizes[-1] * branching <= expected:
            sizes.append(sizes[-1] * branching)
            yield tuple(sizes)


def _chains(windows: Sequence[int], expected: int) -> Iterator[tuple[int, ...]]:
    """The lengths that were named, as far as each divides the next; and each of them by itself."""
    named = sorted(size for size in set(windows) if 1 < size <= expected)
    chain = [1]
    for size in named:
        yield 1, size
        if size % chain[-1] == 0:
            chain.append(size)
    if len(chain) > 1:
        yield tuple(chain)
