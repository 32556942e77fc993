"""From least squares counts to likelier ones: empty and even stretches are recognised. Post-processing; anybody.

All bins together are one box of n rows. Boxes are cut in two again and again, down to single bins, and each cut shares
a box's rows among its halves. Least squares says how, with noise of known variance; a prior says what is usual: that
halves are even, nearly even, or that one is empty. How usual each of these is at a depth is learned from the noisy
counts themselves. So where noise is large counts are shared evenly, which is what a partition into even runs would do
(Li, Hay & Miklau 2014) at a price; and where noise is small the least squares counts stay.

In several attributes, boxes that are cut at the same place of one of them make up a strip. Where attributes have little
to do with each other all boxes of a strip are shared alike, so what the others say is one more thing that is usual.

Counts have one axis for each attribute. Nothing here looks at data: the result is a function of released answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
T = TypeVar("T", bound=np.generic)
Corner = tuple[Places, ...]  # of many boxes: one array for each axis

Variance = Callable[[Corner, Corner], Floats]  # of the counts of boxes, for noise of variance 1, from their corners

# The prior of a half's share: normal around its even share with these standard deviations, beside that of chance (so
# that 0 is as even as rows drawn alike are), then anything between 0 and 1 alike, then nothing at all, then everything.
# `_USUAL` is how usual each of these is thought to be before the first cut. In several attributes a share may also be
# near the share s of the other boxes of its strip, with a standard deviation of s (1 - s): if they have nothing in one
# half, neither has this one. `ALIKE_USUAL` is how usual that is thought to be.
SPREADS = (0.0, 0.08, 0.25)
_USUAL = np.array([0.3, 0.2, 0.2, 0.15, 0.075, 0.075])
ALIKE_USUAL = 0.13
_CUTS = 2.0  # how many cuts the depth above counts for, when a depth learns what is usual
_ROUNDS = 6  # of expectation maximisation
_LEARNED_FROM = 4096  # cuts of a depth, at most
_LEAST = 1e-9  # the variance of a count that is certain, in rows squared


@dataclass(frozen=True, eq=False)
class Cuts:
    """The cuts of one depth: first halves are low <= i < first_end on every axis, second ones second_low <= i < end."""

    boxes: NDArray[np.bool_]  # which of the boxes of this depth are cut; the others are single bins
    low: Corner
    end: Corner
    first_end: Corner
    second_low: Corner

    @property
    def even(self) -> Floats:
        """The share of a box's bins that its first half has."""
        return np.asarray(_size(self.low, self.first_end) / _size(self.low, self.end))

    @property
    def strips(self) -> Places:
        """A number for every cut, the same for those that go across one axis between the same two places of it."""
        low, end = np.stack(self.low), np.stack(self.end)
        across = (np.stack(self.first_end) < end).argmax(axis=0)[None]
        places = end.max() + 1
        of = (across * places + np.take_along_axis(low, across, 0)) * places + np.take_along_axis(end, across, 0)
        return np.unique(of[0], return_inverse=True)[1]


def shared(
    sums: Floats,
    variance: Variance,
    spans: Sequence[Sequence[int]],
    *,
    noise: float,
    first: float = 0.5,
    axis: int = 0,
    total: float | None = None,
) -> Floats:
    """The count of every bin, from least squares sums over all bins before each place (of all axes; they start at 0).

    The counts are at least 0, and add up to `total`, by default the last of the sums. `noise` is the variance of the
    noise. `spans` are the runs of bins that were counted together, of each axis: cuts lie between them, so that noise
    is independent. `first` is the share of the bins before the first cut, and `axis` the one that it goes across.
    """
    sizes = tuple(length - 1 for length in sums.shape)
    rows = np.array([float(sums[sizes] if total is None else total)])
    usual = _USUAL if len(sizes) == 1 else np.insert((1 - ALIKE_USUAL) * _USUAL, len(SPREADS), ALIKE_USUAL)
    place: Corner = tuple(np.zeros(1, dtype=np.intp) for _ in sizes)  # where each box starts
    for cuts in depths(sizes, spans, first, axis):
        whole = rows[cuts.boxes]
        left, right, both = (
            variance(low, end)
            for low, end in ((cuts.low, cuts.first_end), (cuts.second_low, cuts.end), (cuts.low, cuts.end))
        )
        # What least squares says about a half once its box is known: the box's error is shared by covariance.
        with_box, unsure = (left + both - right) / 2, both > 1e-9 * left
        slope = np.divide(with_box, both, out=np.full(both.shape, 0.5), where=unsure)
        spread = np.maximum(noise * (left - np.where(unsure, slope * with_box, 0.0)), _LEAST)
        seen = box(sums, cuts.low, cuts.first_end) + slope * (whole - box(sums, cuts.low, cuts.end))
        alike = None if len(sizes) == 1 else _alike(whole, seen, spread, cuts, usual)
        half, usual = _halves(whole, seen, spread, cuts.even, usual, alike)
        rows = _twins(_with(rows, cuts.boxes, half), _with(rows, cuts.boxes, whole - half), cuts.boxes)
        starts = zip(place, cuts.second_low, strict=True)
        place = tuple(_twins(start, _with(start, cuts.boxes, second), cuts.boxes) for start, second in starts)
    found = np.zeros(sizes)
    found[place] = rows
    return found


def depths(sizes: tuple[int, ...], spans: Sequence[Sequence[int]], first: float = 0.5, axis: int = 0) -> Iterator[Cuts]:
    """The cuts of all depths. A box is cut across the axis along which it is the larger part of all bins; where that is
    the same for several, across the preferred one."""
    low: Corner = tuple(np.zeros(1, dtype=np.intp) for _ in sizes)
    end: Corner = tuple(np.full(1, size, dtype=np.intp) for size in sizes)
    while True:
        lengths = np.stack([(e - s) / size for s, e, size in zip(low, end, sizes, strict=True)])
        lengths[np.stack([e - s < 2 for s, e in zip(low, end, strict=True)])] = 0.0
        lengths[axis] *= 1.01  # so that of two that are as long this one is cut
        boxes, across = lengths.max(axis=0) > 0, lengths.argmax(axis=0)
        if not boxes.any():
            return
        first_end, second_low = [], []
        for side, (s, e) in enumerate(zip(low, end, strict=True)):
            here, middle = boxes & (across == side), _middle(s, e, spans[side], first)
            first_end.append(np.where(here, middle, e))
            second_low.append(np.where(here, middle, s))
        corners = (tuple(side[boxes] for side in corner) for corner in (low, end, first_end, second_low))
        yield Cuts(boxes, *corners)
        low = tuple(_twins(s, m, boxes) for s, m in zip(low, second_low, strict=True))
        end = tuple(_twins(m, e, boxes) for m, e in zip(first_end, end, strict=True))
        first = 0.5


def corridor(prefixes: Floats, raw: Floats) -> Floats:
    """Prefixes that rise, moved no farther from least squares ones than rising asks for.

    Between the least of the raw prefixes from a place on, and the largest up to it. There an error is at most the
    largest of the raw ones and at least the least, as true prefixes rise: so whatever bounds the errors of all raw
    prefixes, or of all intervals, holds for these. Both bounds rise, so what rises between them still does.
    """
    least = np.minimum.accumulate(raw[::-1])[::-1]
    return np.clip(prefixes, least, np.maximum.accumulate(raw))


def box(sums: Floats, low: Sequence[Places], end: Sequence[Places]) -> Floats:
    """What lies between the corners, by sums from the origin to each of them."""
    signs = itertools.product((1, -1), repeat=len(low))
    return np.asarray(
        sum(
            math.prod(sign) * sums[tuple(e if one > 0 else s for one, s, e in zip(sign, low, end, strict=True))]
            for sign in signs
        )
    )


def _middle(low: Places, end: Places, spans: Sequence[int], first: float) -> Places:
    """Where to cut: between the larger runs that a box consists of, half of them on either side."""
    run = np.ones_like(low)
    for span in sorted(spans):
        run = np.where(span < end - low, span, run)
    runs = -(-(end - low) // run)
    before = np.clip(np.ceil(first * runs).astype(np.intp), 1, np.maximum(runs - 1, 1))
    return np.asarray(low + before * run)


def _alike(whole: Floats, seen: Floats, spread: Floats, cuts: Cuts, usual: Floats) -> Floats:
    """The share that the other boxes of a cut's strip have, all together.

    Every box says what it is, seen / whole with variance spread / whole². What they say by least squares is then made
    likelier, as if they were one box. A box's own noise must not speak for it twice, so it is left out.
    """
    strips = cuts.strips
    said = whole, whole * seen / spread, whole**2 / spread
    rows, told, sure = (np.bincount(strips, one)[strips] - one for one in said)
    rows, sure = np.maximum(rows, 1e-9), np.maximum(sure, 1e-9)
    chances, means = _kinds(rows, np.clip(told / sure, -5.0, 6.0) * rows, rows**2 / sure, cuts.even)
    weights = chances * np.delete(usual, len(SPREADS))[:, None]
    return np.asarray((weights * means).sum(axis=0) / weights.sum(axis=0) / rows)


def _halves(
    whole: Floats, seen: Floats, spread: Floats, even: Floats, usual: Floats, alike: Floats | None
) -> tuple[Floats, Floats]:
    """The expected rows of first halves, and how usual each kind of share was found to be."""
    chances, means = _kinds(whole, seen, spread, even, alike)
    some = chances[:, :: -(-whole.size // _LEARNED_FROM)]
    learned = usual
    for _ in range(_ROUNDS):
        likely = (some / (learned @ some)).sum(axis=1) * learned
        likely[-2:] = likely[-2:].mean()  # which half is empty is chance
        learned = (likely + _CUTS * usual) / (some.shape[1] + _CUTS)
    weights = chances * learned[:, None]
    return np.clip((weights * means).sum(axis=0) / weights.sum(axis=0), 0.0, whole), learned


def _kinds(
    whole: Floats, seen: Floats, spread: Floats, even: Floats, alike: Floats | None = None
) -> tuple[Floats, Floats]:
    """How well each kind of share explains what was seen, up to a factor; and the rows that it then expects."""
    from scipy.special import ndtr  # imported where it is needed: it takes a while

    logs, means = [], []
    around = [(even, (width * whole) ** 2) for width in SPREADS]
    if alike is not None:
        around.append((alike, (alike * (1 - alike) * whole) ** 2))
    for share, beside in around:
        own = beside + share * (1 - share) * whole
        off = seen - share * whole
        logs.append(-(off**2) / (own + spread) / 2 - np.log(own + spread) / 2)
        means.append(share * whole + off * own / (own + spread))
    deviation = np.sqrt(spread)
    low, high = -seen / deviation, (whole - seen) / deviation
    # The part of the normal law between both ends, of whichever tail it lies in: differences keep their digits there.
    near, far = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
    part = np.maximum(ndtr(far) - ndtr(near), 1e-300)
    density = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
    logs.append(np.log(part * math.sqrt(2 * math.pi) / np.maximum(whole, 1e-9)))
    means.append(np.where(part > 1e-12, seen + deviation * density / math.sqrt(2 * math.pi) / part, seen))
    for all_or_none in (0.0, 1.0):
        logs.append(-((seen - all_or_none * whole) ** 2) / spread / 2 - np.log(spread) / 2)
        means.append(all_or_none * whole)
    found = np.array(logs)
    return np.exp(np.maximum(found - found.max(axis=0), -700.0)), np.clip(np.array(means), 0.0, whole)


def _size(low: Corner, end: Corner) -> Places:
    return np.asarray(math.prod(e - s for s, e in zip(low, end, strict=True)))


def _with(all_of: NDArray[T], boxes: NDArray[np.bool_], new: NDArray[T]) -> NDArray[T]:
    found = all_of.copy()
    found[boxes] = new
    return found


def _twins(first: NDArray[T], second: NDArray[T], boxes: NDArray[np.bool_]) -> NDArray[T]:
    """Both halves of what is cut, one after the other; once what is not."""
    return np.stack([first, second], axis=1)[np.stack([np.ones_like(boxes), boxes], axis=1)]
