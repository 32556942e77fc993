"""What releases say of one ordered attribute, made likelier before it is fitted. Post-processing; for the fits only.

A fit has no counts below 0, so it tells of noise in empty bins as rows that are there: hundreds of them in the long
tail of a skewed attribute. Its bins have an order, though, and whole stretches of them are empty or even: what
`ranges.shrinkage` learns from the noisy counts themselves, leaves and the coarse levels of trees together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tacit.model.domain import Domain
from tacit.model.values import Listed
from tacit.model.workload import MAX_WEIGHT, Tree
from tacit.release.hypothesis.cell_weights import Array
from tacit.release.hypothesis.terms import Axes, Interaction, Term
from tacit.release.ranges.decoder import Decoder

FEWEST = 48  # bins: noise in fewer empty ones adds up to little, and values that stand apart are best left alone
MOST_NOISE = 0.2  # of the rows: the noise of all bins together, above which even and uneven look the same


def with_likely_singles(
    interactions: Mapping[Axes, Interaction], terms: Sequence[Term], domain: Domain, order: Sequence[int], rows: int
) -> tuple[dict[Axes, Interaction], list[Term]]:
    """Interactions whose ordered attributes are as they most likely are, and the terms that do not say so already."""
    found, left = dict(interactions), list(terms)
    for axes, one in interactions.items():
        size = one.shares.size
        if len(axes) > 1 or size < FEWEST or isinstance(domain[domain.names[order[axes[0]]]].values, Listed):
            continue
        if math.sqrt(size * one.variance) > MOST_NOISE:
            continue
        levels = _nested([term for term in left if term.axes == axes and term.groups is not None])
        shares = _likely(one, levels, rows)
        found[axes] = replace(one, shares=shares - shares.mean())
        left = [term for term in left if all(term is not level for level in levels)]
    return found, left


def _nested(levels: Sequence[Term]) -> list[Term]:
    """Levels of one tree, from the coarsest on; of others, those that fit between them."""
    found = list[Term]()
    for term in sorted(levels, key=lambda term: (_span(term), term.variance)):
        if not found or (_span(term) > _span(found[-1]) and _span(term) % _span(found[-1]) == 0):
            found.append(term)
    return found[::-1]


def _span(term: Term) -> int:
    assert term.groups is not None
    return int(np.count_nonzero(term.groups == 0))


def _likely(leaves: Interaction, levels: Sequence[Term], rows: int) -> Array:
    size = leaves.shares.size
    spans = [*(_span(level) for level in levels), 1]
    branching = [-(-size // spans[0]), *(above // below for above, below in pairwise(spans))]
    variances = [*(level.variance for level in levels), leaves.variance]
    counts = [*(level.shares for level in levels), leaves.shares + 1 / size]
    # Precise levels have large weights, and the noise of weight 1 is what that leaves for them.
    weights = [max(1, round(MAX_WEIGHT * np.sqrt(min(variances) / variance))) for variance in variances]
    decoder = Decoder(Tree("", tuple(branching), tuple(weights)), size)
    values = np.concatenate([weight * rows * count for weight, count in zip(weights, counts, strict=True)])
    noise = rows**2 * min(variances) * MAX_WEIGHT**2
    return np.diff(decoder.likely(decoder.prefixes(values, rows), noise)) / rows
