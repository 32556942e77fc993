"""The exact convolution of whole numbers, by floats that are proved close enough. Called by `trusted.sensitivity`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_PROVED = 2.0**40  # up to this product of norms a convolution by floats, rounded, is exact: see `convolve`


def convolve(counts: Counts, factor: Counts, *, most: int) -> Counts:
    """The exact linear convolution of two non-negative integer vectors; `most` publicly bounds the first's norm.

    Guarantee: exact. How it is worked out depends on sizes, the factor and `most`, never on single counts.
    Formula: floats, rounded. For transforms of length 2^m the error of an entry is below
        |x| |y| ((1+e)^(3m) (1+e sqrt 5)^(3m+1) (1+b)^(3m) - 1), e = 2^-53, |x| and |y| the Euclidean norms and b the
        error of the roots of unity: below 2^-44 |x| |y| for m <= 23 and b <= e, so below 1/16 up to a product of 2^40.
        Counts whose norm could be larger are split into digits first.
    Source: Percival 2003, theorem 5.1; Brent, Percival & Zimmermann 2007.
    """
    norm = math.sqrt(float(np.dot(factor.astype(np.float64), factor))) + 1
    if norm >= _PROVED:
        raise ValueError("the factor is too large for an exact convolution")
    length = 1 << max(0, counts.size + factor.size - 2).bit_length()
    if most * norm <= _PROVED:
        return _rounded(counts, factor, length)
    bits = math.floor(math.log2(_PROVED / norm / math.sqrt(counts.size)))
    if bits < 1:
        raise ValueError("the vectors are too long for an exact convolution")
    found = np.zeros(counts.size + factor.size - 1, dtype=np.int64)
    for shift in range(0, most.bit_length(), bits):
        found += _rounded((counts >> shift) & ((1 << bits) - 1), factor, length) << shift
    return found


def _rounded(counts: Counts, factor: Counts, length: int) -> Counts:
    spectra = np.fft.rfft(counts.astype(np.float64), length), np.fft.rfft(factor.astype(np.float64), length)
    product = np.fft.irfft(spectra[0] * spectra[1], length)
    return np.rint(product[: counts.size + factor.size - 1]).astype(np.int64)
