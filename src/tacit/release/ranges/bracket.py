"""Rectangles of two attributes between others that were counted with less noise. Post-processing; anybody may call it.

True counts rise with rectangles: whatever bounds the rows of an *outer* rectangle from above bounds those of all that
lie within, and an *inner* one's bound from below holds for all around it. Where rows are few for the noise a rectangle
is best rounded to larger nodes: few rows lie in between, and the noise of many small nodes stays out. To which nodes
follows from public sizes, as if rows were spread evenly. So one bound may fail above and one below, each with half the
chance that a bar may, as noise is symmetric: the bar holds as that of one estimate does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.model.workload import Product

Floats = NDArray[np.float64]
Place = NDArray[np.intp]
Places = list[Place]  # one array for each attribute
Bars = Callable[[Places, Places], Floats]  # of the least squares counts of rectangles low[k] <= i < end[k]


@dataclass(frozen=True, eq=False)
class Brackets:
    """The corners of inner and outer rectangles, the bars of both, and half of what lies between if rows are even."""

    inner: tuple[Places, Places]
    outer: tuple[Places, Places]
    bars: tuple[Floats, Floats]
    half_width: Floats


def brackets(asked: Product, sizes: tuple[int, int], low: Places, end: Places, bars: Bars, rows: float) -> Brackets:
    """For each rectangle those of whole nodes of some level that make its bar the narrowest.

    Leaves are a level too, to which a rectangle is rounded as it is: so no bar is expected to be wider for this. Of all
    pairs of nodes there would be too many levels to try, so there a rectangle stays what it is.
    """
    if not asked.nested:
        own = bars(low, end)
        return Brackets((low, end), (low, end), (own, own), own)
    ends = np.stack(np.broadcast_arrays(*low, *end)).reshape(2, 2, 1, *np.broadcast(*low, *end).shape)
    spans = np.array(list(zip(asked.first.spans(), asked.second.spans(), strict=True))).T
    spans = spans.reshape(*spans.shape, *[1] * (ends.ndim - 3))
    sides = [_rounded(ends[0, axis], ends[1, axis], spans[axis], sizes[axis]) for axis in (0, 1)]
    corners = np.stack(sides, axis=1)  # of inner low, inner end, outer low, outer end: attributes, levels, rectangles
    in_low, in_end, out_low, out_end = (list(corner) for corner in corners)
    between = rows * (_share(out_low, out_end, sizes) - _share(in_low, in_end, sizes))
    both = np.stack([bars(in_low, in_end), bars(out_low, out_end)])
    half_widths = (both.sum(axis=0) + between) / 2
    best = half_widths.argmin(axis=0, keepdims=True)
    taken = np.take_along_axis(corners, best[None, None], axis=2)[:, :, 0]
    inner, outer = np.take_along_axis(both, best[None], axis=1)[:, 0]
    in_low, in_end, out_low, out_end = (list(corner) for corner in taken)
    return Brackets((in_low, in_end), (out_low, out_end), (inner, outer), half_widths.min(axis=0))


def _rounded(low: Place, end: Place, span: Place, size: int) -> Place:
    """The largest run of whole nodes within an interval, perhaps an empty one, and the smallest run around it.

    The last node may be shorter than others: it ends where the attribute does.
    """
    first, last = np.minimum(-(-low // span) * span, size), np.where(end == size, size, end // span * span)
    return np.stack([first, np.maximum(first, last), low // span * span, np.minimum(-(-end // span) * span, size)])


def _share(low: Places, end: Places, sizes: tuple[int, int]) -> Floats:
    """The part of all pairs of leaves that lie in a rectangle."""
    return np.asarray(np.prod([(e - s) / size for s, e, size in zip(low, end, sizes, strict=True)], axis=0))
