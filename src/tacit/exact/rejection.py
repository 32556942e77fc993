"""Long vectors of wide discrete Gaussian noise, by exact rejection. Called by `trusted.noise` only.

A magnitude is z = 2**shift cell + offset. The cell comes from a table of about a thousand entries, with the Gaussian's
law at the cell's left end; the offset is uniform; and the pair is kept with probability exp(-x), where x is what the
exponent grows by from there to z. (Karney 2016, algorithms N and D, has cells as wide as the scale; with cells of at
most 1/64 of it, more than 99 in 100 are kept.) A draw takes two random words, whatever the scale.

The coin is exact. A number C, uniform on [0, 1), is known by its first bits only, and the pair is refused if C lies
below 1 - exp(-x), which is between x / (1 + x) and x. Floats decide if C is outside of these two by more than the
floats can be wrong (`_refusal`). If not, x is a fraction, exp(-x) is enclosed between whole numbers, and C gets more
bits until it is on one side. So no rounding ever moves a probability.

How long a draw takes depends on the scale, on the size asked for and on the random bits. How often a pair is refused
tells nothing about those that are kept. The values that the noise is for never come here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.exact.table import DrawWords, Law, draw, enclose_exp, system_words
from tacit.model.noise_law import Noise

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_WIDTH = 64
_CHUNK = 1 << 15  # proposals at a time, so that they stay in the processor's cache
_FINE = 6  # a scale is 2**6 to 2**7 cells
_ENTRIES = 10 << _FINE + 1  # of a table, about
_NARROWEST, _WIDEST = 2.0**10, 2.0**40  # of the scales: below, one table of all magnitudes is as fast
_MARGIN = 2.0**-40  # relative; the floats are wrong by less than 2**-49


@dataclass(frozen=True, slots=True)
class Cells:
    """How the magnitudes of a Gaussian of this scale are split: 2**shift of them to a cell."""

    scale: Fraction
    shift: int

    def law(self) -> Law:
        """The law of the cell: Pr[cell] ∝ exp(-(2**shift cell)² / (2 scale²))."""
        first = Fraction(1 << 2 * self.shift) / (2 * self.scale**2)
        return Law(first, 2 * first)

    def growth(self, cell: int, offset: int) -> Fraction:
        """x = (z² - (2**shift cell)²) / (2 scale²) = offset (2**(shift+1) cell + offset) / (2 scale²)."""
        return offset * ((cell << self.shift + 1) + offset) / (2 * self.scale**2)


def suits(noise: Noise, size: int) -> bool:
    """Whether `size` draws are fastest from here, even if the table must be made first.

    Only public numbers decide. A draw elsewhere costs at least as much as eight entries (benchmarks/bench_noise.py).
    """
    return noise.kind == "gaussian" and _NARROWEST <= noise.scale <= _WIDEST and 8 * size >= _ENTRIES


def draw_gaussian(scale: float, size: int) -> Integers:
    """`size` independent draws of discrete Gaussian noise.

    Guarantee: exactly the law Pr[z] ∝ exp(-z²/(2 scale²)) over the integers.
    Formula: rejection, in rounds; the k-th pair that is kept is the k-th draw, so no draw depends on a round's length.
    Source: Karney 2016; Canonne, Kamath & Steinke 2020 for the law.
    """
    cells = Cells(Fraction(scale), max(0, math.frexp(scale)[1] - 1 - _FINE))
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        kept = propose(cells, min(_CHUNK, size - filled))
        drawn[filled : filled + kept.size] = kept
        filled += kept.size
    return drawn


def propose(cells: Cells, count: int, words: DrawWords = system_words, width: int = _WIDTH) -> Integers:
    """The draws that are kept of `count` proposals, in their order.

    Guarantee: given their number, independent draws of the law, if `words` are uniform over the `width`-bit numbers.
    Formula: Pr[cell] 2**-shift exp(-x) / 2 ∝ exp(-z²/(2 scale²)) for each sign; -0 is refused, or 0 would count twice.
    Source: see the module. Of the second word the last bit is the sign, then come the offset and C's first bits.
    """
    cell = draw(cells.law(), count, words, width)
    if cell.max(initial=0) >> 61 - cells.shift:  # its chance is below exp(-2**40); better no answer than a wrapped one
        raise OverflowError("a draw of noise beyond 64 bits")
    word = words(count)
    negative = (word & np.uint64(1)).astype(np.bool_)
    offset = (word >> np.uint64(1) & np.uint64((1 << cells.shift) - 1)).astype(np.int64)
    coin, bits = word >> np.uint64(1 + cells.shift), width - 1 - cells.shift
    low, high = _refusal(cells, cell, offset)
    kept: NDArray[np.bool_] = coin >= high * 2.0**bits
    for i in np.flatnonzero(~kept & (coin + np.uint64(1) > low * 2.0**bits)):
        kept[i] = _keeps(cells.growth(int(cell[i]), int(offset[i])), int(coin[i]), bits, words, width)
    z: Integers = (cell << cells.shift) + offset
    signed: Integers = np.where(negative, -z, z)
    kept &= ~(negative & (z == 0))
    return signed[kept]


def _refusal(cells: Cells, cell: Integers, offset: Integers) -> tuple[Floats, Floats]:
    """Bounds around 1 - exp(-x), with room to convert what they are compared with.

    Guarantee: low (1 + 2**-41) <= 1 - exp(-x) <= high (1 - 2**-41).
    Formula: x / (1 + x) <= 1 - exp(-x) <= x, because exp(y) >= 1 + y for y = x and for y = -x. In floats x takes five
        roundings (two whole numbers below 2**63, the rate, two products) and x / (1 + x) two more. Each is to nearest;
        nothing is subtracted, nothing overflows, and what is not 0 is above 2**-1000: so each is a factor within
        1 ± 2**-53. As x / (1 + x) changes by a smaller factor than x does, both bounds are wrong by a factor within
        1 ± 2**-49. The margin, of 1 ± 2**-40, is exact, and its product rounds once more. A coin, or its successor,
        rounds once when it is compared; the power of two that it is compared on never does.
    Source: IEEE 754; Higham 2002, lemma 3.1.
    """
    rate = float(1 / (2 * cells.scale**2))
    x = offset.astype(np.float64) * ((cell << cells.shift + 1) + offset).astype(np.float64) * rate
    return x / (1 + x) * (1 - _MARGIN), x * (1 + _MARGIN)


def _keeps(x: Fraction, coin: int, bits: int, words: DrawWords, width: int) -> bool:
    """Whether C >= 1 - exp(-x), in whole numbers: coin / 2**bits <= C < (coin + 1) / 2**bits. Reads on if need be."""
    while True:
        low, high = enclose_exp(x, bits)
        if coin + low >= 1 << bits:
            return True
        if coin + 1 + high <= 1 << bits:
            return False
        coin, bits = coin << width | int(words(1)[0]), bits + width
