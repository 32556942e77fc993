"""What strategies cost and what they are truly answered: exact integers. Called by the curator and its sensitivity.

`model.strategy` says what they are; `release/ranges` recovers ranges from their noisy answers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.model.strategy import Convolution, Product, Strategy, Tree, kernel, leaves
from tacit.trusted.loss import Sensitivity

if TYPE_CHECKING:
    from tacit.trusted.records import Records

_PROVED = 2.0**40  # up to this product of norms a convolution by floats, rounded, is exact: see `convolve`


def strategy_sensitivity(strategy: Strategy, domain: Domain) -> Sensitivity:
    """The joint sensitivity of a strategy's answers.

    Guarantee: between databases that differ in one replaced row, the vector of answers moves by at most l1 in L1 and
        by at most l2_squared in squared L2 distance.
    Formula: a tree with weights w: 2 Σ w and 2 Σ w², as a row leaves one path of nodes and enters another; a product
        of trees: 2 Σ w Σ w' and 2 Σ w² Σ w'²; a convolution: the largest distance between two columns of its matrix.
    Source: Smith & Ullman, claim 2.2; `_convolution` for the last. Checked by enumeration in tests/exact.
    """
    if isinstance(strategy, Convolution):
        return _convolution(leaves(domain[strategy.name]), strategy.exponent, strategy.cyclic)
    trees = (strategy.first, strategy.second) if isinstance(strategy, Product) else (strategy,)
    if all(leaves(domain[tree.name]) == 1 for tree in trees):
        return Sensitivity(0, 0)  # every row lies in the only leaf
    l1 = math.prod(sum(tree.weights) for tree in trees)
    l2_squared = math.prod(sum(w * w for w in tree.weights) for tree in trees)
    return Sensitivity(2 * l1, 2 * l2_squared)


def strategy_truth(strategy: Strategy, records: Records) -> NDArray[np.int64]:
    """The exact answers. Never leaves the curator without noise.

    Guarantee: exact; replacing one row moves them by at most `strategy_sensitivity`.
    Formula: sums of leaves times weights, or the integer convolution of the leaves with the kernel.
    Source: `model.strategy`; `convolve` for its exactness.
    """
    if isinstance(strategy, Product):
        table = records.table((strategy.first.name, strategy.second.name))
        for tree in (strategy.first, strategy.second):  # each time the first axis is answered and becomes the last
            table = np.moveaxis(_nodes(_leaf_counts(table, tree.name, records.domain), tree), 0, -1)
        return np.ascontiguousarray(table).ravel()
    counts = _leaf_counts(records.table((strategy.name,)), strategy.name, records.domain)
    if isinstance(strategy, Tree):
        return _nodes(counts, strategy)
    full = convolve(counts, kernel(counts.size, strategy.exponent), most=records.rows)
    answers = full[: counts.size].copy()
    if strategy.cyclic:
        answers[: full.size - counts.size] += full[counts.size :]
    return answers


def convolve(counts: NDArray[np.int64], factor: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
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


def _rounded(counts: NDArray[np.int64], factor: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    spectra = np.fft.rfft(counts.astype(np.float64), length), np.fft.rfft(factor.astype(np.float64), length)
    product = np.fft.irfft(spectra[0] * spectra[1], length)
    return np.rint(product[: counts.size + factor.size - 1]).astype(np.int64)


@lru_cache(maxsize=64)
def _convolution(size: int, exponent: int, cyclic: bool) -> Sensitivity:
    """The largest distance between two columns, which are copies of the kernel g, one shifted by j against the other.

    Cyclic: |g|² + |g|² - 2 r_j, r_j the cyclic autocorrelation. Not cyclic: column i ends after size - i entries, and
    the squared distance of columns i < i + j is a sum of size - i squares that do not depend on i otherwise: so i = 0
    is the worst, with |g|² + (sum of the first size - j squares of g) - 2 r_j, r_j the plain autocorrelation.
    """
    if size == 1:
        return Sensitivity(0, 0)
    g = kernel(size, exponent)
    both_sides = convolve(g, g[::-1].copy(), most=math.isqrt(int(np.dot(g, g))) + 1)
    overlap = both_sides[size - 1 :]  # Σ g_i g_(i+j) for j = 0, 1, ...
    norm = int(overlap[0])
    if cyclic:
        distances = 2 * (norm - overlap[1:] - overlap[1:][::-1])
    else:
        distances = norm + np.cumsum(g * g)[:-1][::-1] - 2 * overlap[1:]
    return Sensitivity(2 * int(g.sum()), int(distances.max()))


def _leaf_counts(table: NDArray[np.int64], name: str, domain: Domain) -> NDArray[np.int64]:
    """The leaves along the first axis: what lies in no bin is summed up into one more."""
    bins = domain[name].bins
    if not domain[name].extras:
        return table
    return np.concatenate([table[:bins], table[bins:].sum(axis=0, keepdims=True)])


def _nodes(counts: NDArray[np.int64], tree: Tree) -> NDArray[np.int64]:
    """Weight times count for every node, level by level, along the first axis."""
    levels = [
        weight * np.add.reduceat(counts, np.arange(0, counts.shape[0], span), axis=0)
        for span, weight in zip(tree.spans(), tree.weights, strict=True)
    ]
    return np.concatenate(levels)
