"""Whether ledgers for groups of blocks pay, and which: from how many blocks are expected, and public sizes alone.

What groups have of the budget, single blocks have not: months get worse, and years better. Compared is the geometric
mean of the errors to expect, over windows of all the lengths that count: a per cent here is worth a per cent there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.release.groups import ALONE, WHOLE, Levels, pays

PAYS = 0.95  # of the error of blocks alone: what groups must stay below, since they take time, files and rows
_BRANCHINGS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30)  # as many of one level are one of the next
_BLOCKS = (40, 50, 60, 70, 80, 90)  # weights of single blocks that are looked at
_FALLS = (1.0, 0.7)  # of the weights from level to level
_POSITIONS = 16  # of windows of one length
_COMMON = 0.1  # see `ExpectedErrors`
_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples hit no grid of borders more often than another


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
    if least > PAYS:
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
