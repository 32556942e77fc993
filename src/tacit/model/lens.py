"""Trusted words: the public functions of a true count that gates and comparisons look through.

Whatever a lens shows moves by at most one count when the truth moves by one, so a noisy comparison of it has the price
of a count. A lens cannot be made wrong, and cannot change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery
from tacit.model.query import GRID

MAX_DATABASES = 2**20  # behind one lens
MOST = 2.0**40  # counts: with GRID steps each, sums of three such numbers stay within 64 bits
FAR = 2.0**32  # counts: the longest reach for which the rounding of floats is allowed for
_SHRINK = 1 - 2.0**-12  # see `look`


@dataclass(frozen=True, slots=True)
class Distance:
    """The lens |x - guess|, in counts: how far a public guess is from the truth."""

    guess: float

    def __post_init__(self) -> None:
        count(self.guess, "a guess")

    @property
    def words(self) -> list[object]:
        """Equal only for lenses that show the same."""
        return ["distance", round(self.guess * GRID)]


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How far many public databases are from the truth: reach · (1 - r), in counts, with r the median mechanism's score

        r(x) = mean over the databases of exp(-|x - value| / reach)        (Roth & Roughgarden 2010, equation 4)

    where reach is their epsilon times n. It is 0 where all agree with the truth, and at most reach.
    """

    values: ArrayLike  # what each database answers, in counts
    reach: float
    steps: NDArray[np.int64] = field(init=False, repr=False)  # the values, in steps of the fine grid

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 1 or not 1 <= values.size <= MAX_DATABASES or not (np.abs(values) < MOST).all():
            raise InvalidQuery(f"1 to {MAX_DATABASES:,} databases each answer with a count.")
        if type(self.reach) not in (int, float) or not 1 <= self.reach < FAR:
            raise InvalidQuery(f"the reach of a lens is a count from 1 to {FAR:,.0f}, not {self.reach!r}.")
        steps = np.rint(values * GRID).astype(np.int64)
        object.__setattr__(self, "steps", np.frombuffer(steps.tobytes(), dtype=np.int64))  # a view of bytes

    @property
    def words(self) -> list[object]:
        """Equal only for lenses that show the same."""
        return ["disagreement", float(self.reach) * GRID, self.steps.tolist()]


Lens = Distance | Disagreement


def count(value: float, what: str) -> float:
    """A number that can stand in a comparison without meeting the limits of 64 bits, or a refusal."""
    if type(value) not in (int, float) or not abs(value) < MOST:  # false for NaN
        raise InvalidQuery(f"{what} is a count, not {value!r}.")
    return float(value)


def look(lens: Lens, truth: int) -> int:
    """What a lens shows of a number; both in steps of the fine grid.

    Guarantee: moves by at most GRID when the truth does. u → reach (1 - exp(-|u|/reach)) has slopes between -1 and 1,
        and so has a mean of shifted copies of it. The computed mean is within 2^-46 of the real one (a few units in the
        last place of each term, and numpy's pairwise sum), so with reach < 2^32 counts the result is within 64 steps;
        shrinking it by 2^-12 takes 256 steps off the largest move, which covers that twice, and the final rounding.
    Formula: |x - guess|; reach (1 - 2^-12) mean(1 - exp(-|x - value|/reach)).
    Source: Roth & Roughgarden 2010, equation 4; lemma 4.9 bounds its sensitivity, twice as high as it is.
    """
    if isinstance(lens, Distance):
        return abs(truth - round(lens.guess * GRID))
    reach = float(lens.reach) * GRID
    apart = np.abs(lens.steps - truth) / reach  # whole numbers below 2^63 until they are divided
    return round(float(-np.expm1(-apart).mean()) * (_SHRINK * reach))
