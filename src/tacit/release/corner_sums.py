"""Answers of the base as sums at corners: what a question asks of each attribute, and cumulative sums of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.release.classes import BOXES, FEW_VALUES, SAMPLE, ramps

MOST_MIXED = 3  # boxes that an answer is a mixture of: the gate does better on more


class Side(NamedTuple):
    """What a question asks of one attribute: a condition, or weights from 0 to 1.

    ends: (place, weight): the answer is the sum of these weights times what comes before their places.
    whole: the same for the rows that it is about: those that meet the condition, or all where values are weighted.
    listed: it is in a random list's class: a range or two, any set of values without order, or a ramp of the values,
        which is of the list `ramp`.
    boxes: how many boxes it is a mixture of, at most. Weights w are the mixture of the sets {w >= t} over all t from 0
        to 1, and a set is as many boxes as it has runs: over all t that is half of what w rises and falls in all. So
        an answer's error is at most so many times the largest error of all boxes.
    flipped: `listed` and `boxes` are those of the other rows, of which the number of rows less the answer are.
    """

    name: str
    ends: tuple[tuple[int, int], ...]
    whole: tuple[tuple[int, int], ...]
    unit: int
    listed: bool
    boxes: float
    flipped: bool = False
    ramp: str = ""

    @classmethod
    def of(cls, factor: Factor, domain: Domain, runs: int) -> Side:
        """`runs`: how many runs of values a listed condition has at most, where they have an order."""
        name, weights, unit = factor.scope[0], factor.weights.astype(np.int64), factor.unit
        attribute = domain[name]
        if weights.size != attribute.size:
            raise InvalidQuery(f"the question was made for another domain than that of {', '.join(domain)}.")
        steps = np.diff(weights, prepend=0, append=0)
        ends = tuple((place, -int(steps[place])) for place in np.flatnonzero(steps).tolist() if place)
        if attribute.ordered:
            boxes = float(np.abs(steps).sum()) / 2
        else:
            boxes = float(weights.max() if attribute.size <= FEW_VALUES else weights.sum())
        if unit == 1:
            return cls(name, ends, ends, 1, not attribute.ordered or boxes <= runs, boxes)
        kinds = ramps(domain, name).items()
        ramp = next((kind for kind, some in kinds if any(np.array_equal(weights, one) for one in some)), "")
        return cls(name, ends, ((attribute.size, 1),), unit, bool(ramp), boxes / unit, ramp=ramp)

    @classmethod
    def alone(cls, factor: Factor, domain: Domain, runs: int) -> Side:
        """What a question of one attribute asks: of its rows or of the others, whichever is certified.

        The answer is the number of rows less that of the others, so that the error is the same.
        """
        side, other = cls.of(factor, domain, runs), cls.of(factor.flipped(), domain, runs)
        if (other.listed, -other.boxes) <= (side.listed, -side.boxes):
            return side
        return side._replace(listed=other.listed, boxes=other.boxes, flipped=True, ramp=other.ramp)


def certified_by(sides: Sequence[Side], most: Mapping[str, int]) -> tuple[str, float]:
    """The list whose class a question with these sides is of, and the boxes that it is a mixture of; "" and 0 of none.

    most: by the name of a list, how many attributes its questions have at most.
    """
    kind, boxes = next((side.ramp for side in sides if side.unit > 1), SAMPLE), 1.0
    for side in sides:
        boxes *= side.boxes
        if not side.listed:
            kind = ""
    return (
        kind if len(sides) <= most.get(kind, 0) else "",
        boxes if boxes <= MOST_MIXED and len(sides) <= most.get(BOXES, 0) else 0.0,
    )


class Sums(NamedTuple):
    """The cumulative sums of a table: what comes before some value of each attribute, in one line of numbers."""

    values: NDArray[np.int64]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, table: NDArray[np.int64]) -> Sums:
        table = np.pad(table, [(1, 0)] * table.ndim)
        for axis in range(table.ndim):
            table = np.cumsum(table, axis=axis)
        return cls(table.ravel(), tuple(math.prod(table.shape[axis + 1 :]) for axis in range(table.ndim)))

    def inside(self, sides: Sequence[Sequence[tuple[int, int]]]) -> int:
        """The weighted sum of the cells: inclusion and exclusion at the ends of each side."""
        corners = [(0, 1)]
        for stride, ends in zip(self.strides, sides, strict=True):
            corners = [(at + end * stride, weight * more) for at, weight in corners for end, more in ends]
        item = self.values.item
        return sum([weight * item(at) for at, weight in corners])
