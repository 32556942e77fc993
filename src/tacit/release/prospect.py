"""Which errors to expect of a start, once it is bought: from what it has released. Public, and no promise.

A plan knows sizes only. A start knows its own table: what it would get wrong of one that is just like its hypothesis,
by noise of the same law, is about what it gets wrong of the rows (the parametric bootstrap: Efron & Tibshirani 1993,
section 6.5). What no release has shown is missing there, an interaction that was not measured or has drowned in noise.
The certificate has measured that too: a high share of the errors, and the largest one of all boxes.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

SHARE = 0.95
TIMES = np.exp(np.linspace(-1.5, 1.5, 25))  # how many times as far off as the second fit the first may be
# What it is as a rule, without and with a prior, and the deviation of its logarithm: a hypothesis has noise of its own,
# so a second fit finds a rougher table, and a prior that is less like it. By some thirty starts on insured and three
# made-up tables; `bench_accuracy --forecast` checks them on others.
_AS_A_RULE, _SPREAD = {False: 0.87, True: 0.77}, 0.2
_FINE = np.linspace(math.log(TIMES[0]), math.log(TIMES[-1]), 601)
_ONE_IN = 1 / (1 - SHARE)
_MOST_DOUBLINGS = 40  # of a number of questions

Floats = NDArray[np.float64]
ProspectRows = Annotated[float, Meta(ge=0, lt=2**53)]


class CertifiedError(NamedTuple):
    """What a certificate says of the errors of that many questions, in rows, and the deviation of its noise."""

    questions: int
    error: float
    deviation: float


class Expects(NamedTuple):
    """The mean error to expect, what 95 % of all questions stay within, and the largest of them."""

    mean: float
    most: float
    largest: float


class Errors(Struct, frozen=True, forbid_unknown_fields=True):
    """The errors of a list of questions, in rows: those of a second fit, which gets wrong what the first says.

    mean, most: on average, and what 95 % of all questions stay within. beyond: the mean of what goes beyond that.
    largest: of 1, 2, 4, 8, ... questions.
    """

    mean: ProspectRows
    most: ProspectRows
    beyond: ProspectRows
    largest: Annotated[list[ProspectRows], Meta(min_length=1, max_length=_MOST_DOUBLINGS)]

    @classmethod
    def of(cls, gaps: Floats) -> Errors:
        errors, shares = np.sort(gaps), np.arange(gaps.size + 1) / gaps.size
        doublings = range(min(_MOST_DOUBLINGS, 1 + math.ceil(math.log2(gaps.size))))
        # The largest of k draws is at most the i-th of m errors with probability (i/m)^k.
        largest = [float(errors @ np.diff(_raised(shares, 2.0**j))) for j in doublings]
        most = float(np.quantile(errors, SHARE))
        return cls(float(errors.mean()), most, float(np.maximum(errors - most, 0).mean()), largest)

    def largest_of(self, questions: int) -> float:
        return float(np.interp(math.log2(max(1, questions)), np.arange(len(self.largest)), self.largest))


def _raised(shares: Floats, power: float) -> Floats:
    """`shares ** power`, to the last bit, where shares rise from 0 to 1 in equal steps."""
    found = np.zeros(shares.size)
    # No float is between 0 and exp(-746). What is below is 0, and raising it to find that out takes ten times as long.
    first = int((shares.size - 1) * math.exp(-746.0 / power))
    found[first:] = shares[first:] ** power
    return found


class Prospect(Struct, frozen=True, forbid_unknown_fields=True):
    """What a second fit says, and what certificates would say if it were right.

    share: the certified share of the errors, if these were as many times the second fit's as `TIMES` has it.
    offset: what certificates do not count of an error, on average: see `Certificate.steps`.
    drawn: whether the start is drawn to a prior.
    """

    errors: Errors
    share: Annotated[list[float], Meta(min_length=TIMES.size, max_length=TIMES.size)]
    offset: ProspectRows
    drawn: bool = False

    @classmethod
    def of(cls, gaps: Floats, offsets: Floats, rank: int, *, drawn: bool = False) -> Prospect:
        """From what the second fit gets wrong, question by question, and what a certificate does not count of it."""
        share = [float(np.partition(times * gaps - offsets, rank - 1)[rank - 1]) for times in TIMES]
        return cls(Errors.of(gaps), share, float(offsets.mean()), drawn)

    def expects(self, questions: int, share: CertifiedError, boxes: CertifiedError | None = None) -> Expects:
        """The errors to expect of that many questions, by what was certified of a share of them and of all boxes.

        From what one question in twenty exceeds to what the worst of all boxes reaches, the tail of the errors is taken
        for exponential: at most one in twenty times (questions of the list / 20)^-t is farther off than the part t of
        the way. Neither the mean nor the largest is below what follows from it, and none exceeds the worst of boxes.
        """
        found, times = self.errors, self.times(share)
        most = times * found.most
        own = times * found.largest_of(questions)
        if boxes is None:
            return Expects(times * found.mean, most, own)
        worst, length = self.offset + boxes.error, math.log(max(math.e, boxes.questions / _ONE_IN))
        part = min(1.0, math.log(max(1.0, questions / _ONE_IN)) / length)
        beyond = max(0.0, (worst - most) / length / _ONE_IN - times * found.beyond)
        largest = max(min(own, worst + boxes.deviation), most + part * (worst - most), most)
        return Expects(times * found.mean + beyond, most, largest)

    def times(self, share: CertifiedError) -> float:
        """How many times as far off as the second fit the first is.

        The mean of its logarithm, which is normal before the certificate is read; its noise is about normal, too.
        """
        said = np.interp(_FINE, np.log(TIMES), self.share)
        before = (_FINE - math.log(_AS_A_RULE[self.drawn])) / _SPREAD
        chances = -(before**2 + ((share.error - said) / share.deviation) ** 2) / 2
        weights = np.exp(chances - chances.max())
        return math.exp(float(weights @ _FINE / weights.sum()))

    def packed(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def unpacked(cls, content: bytes) -> Prospect | None:
        """What was packed; None where the bytes are no such thing."""
        try:
            return msgspec.json.decode(content, type=cls)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None
