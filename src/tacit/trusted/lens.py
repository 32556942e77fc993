"""Lenses: the public functions of a true count that gates and comparisons look through. Called by gate and curator.

Whatever a lens shows moves by at most one count when the truth moves by one, so a noisy comparison of it has the price
of a count. That is checked, or true by construction with the rounding of floats allowed for, in the curator's own copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.query import GRID
from tacit.trusted.questions import plain

MAX_DATABASES = 2**20  # behind one lens
_MOST = 2.0**40  # counts
_FAR = 2.0**32  # counts: the longest reach for which the rounding of floats is allowed for
_SHRINK = 1 - 2.0**-12


Counts = NDArray[np.float64] | NDArray[np.int64]  # our own copies are whole steps


@dataclass(frozen=True, slots=True)
class Distance:
    """The lens |x - guess|, in counts: how far a public guess is from the truth."""

    guess: float


@dataclass(frozen=True, eq=False)
class Disagreement:
    """How far many public databases are from the truth: reach · (1 - r), in counts, with r the median mechanism's score

        r(x) = mean over the databases of exp(-|x - value| / reach)        (Roth & Roughgarden 2010, equation 4)

    where reach is their epsilon times n. It is 0 where all agree with the truth, and at most reach.
    """

    values: Counts  # what each database answers, in counts
    reach: float


Lens = Distance | Disagreement


def own_lens(lens: Lens) -> Lens:
    """The curator's own copy of a lens; what it holds is in steps of the fine grid.

    Guarantee: `look` through the copy moves by at most GRID steps when the truth moves by at most GRID steps.
    Formula: exact types; then by construction.
    Source: docs/understand/privacy.md, "The gate".
    """
    if type(lens) is Distance:
        guess = lens.guess
        if type(guess) not in (int, float) or not abs(guess) < _MOST:
            raise InvalidQuery("a guess is a count.")
        return Distance(round(guess * GRID))
    if type(lens) is Disagreement:
        values, reach = plain(lens.values, np.float64), lens.reach
        if values.ndim != 1 or not 1 <= values.size <= MAX_DATABASES or not (np.abs(values) < _MOST).all():
            raise InvalidQuery(f"1 to {MAX_DATABASES:,} databases each answer with a count.")
        if type(reach) not in (int, float) or not 1 <= reach < _FAR:
            raise InvalidQuery(f"the reach of a lens is a count from 1 to {_FAR:,.0f}, not {reach!r}.")
        return Disagreement(np.rint(values * GRID).astype(np.int64), float(reach) * GRID)
    raise InvalidQuery("a lens is a distance from a guess, or a disagreement of databases.")


def look(lens: Lens, truth: int) -> int:
    """What one of our own lenses shows of a true value; both in steps of the fine grid.

    Guarantee: moves by at most GRID when the truth does. u → reach (1 - exp(-|u|/reach)) has slopes between -1 and 1,
        and so has a mean of shifted copies of it. The computed mean is within 2^-46 of the real one (a few units in the
        last place of each term, and numpy's pairwise sum), so with reach < 2^32 counts the result is within 64 steps;
        shrinking it by 2^-12 takes 256 steps off the largest move, which covers that twice, and the final rounding.
    Formula: |x - guess|; reach (1 - 2^-12) mean(1 - exp(-|x - value|/reach)).
    Source: Roth & Roughgarden 2010, equation 4; lemma 4.9 bounds its sensitivity, twice as high as it is.
    """
    if isinstance(lens, Distance):
        return abs(truth - int(lens.guess))
    apart = np.abs(lens.values - truth) / lens.reach  # whole numbers below 2^63 until they are divided
    return round(float(-np.expm1(-apart).mean()) * (_SHRINK * lens.reach))


def words(lens: Lens) -> list[str | float | list[int]]:
    """One of our own lenses in words that are equal only for lenses that show the same.

    Guarantee: public. Formula: its kind and what it holds. Source: this module.
    """
    if isinstance(lens, Distance):
        return ["distance", lens.guess]
    return ["disagreement", lens.reach, lens.values.tolist()]
