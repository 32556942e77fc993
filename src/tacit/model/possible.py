"""Which values a row that meets a condition can have: by the condition and the declared domain alone. Public words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.model.query import Query

Bools = NDArray[np.bool_]


def possible(where: Query, names: Sequence[str], shape: Sequence[int]) -> Bools:
    """For each combination of these attributes' values whether a row that meets the condition can have it.

    The factors of a condition have no attribute in common, so each is looked at by itself and no table of all is made.
    A product is 0 where one factor is, whatever else a row has; one minus a product is 0 where all factors are full.
    """
    held = np.ones(tuple(shape), dtype=np.bool_)
    for factor in where.factors:
        beyond = tuple(axis for axis, name in enumerate(factor.scope) if name not in names)
        kept = [name for name in factor.scope if name in names]
        full = (factor.weights == factor.unit).all(axis=beyond)
        some = (factor.weights > 0).any(axis=beyond)
        axes = [names.index(name) for name in kept]
        found = np.asarray(full if where.complement else some).transpose(np.argsort(axes))
        held = held & np.expand_dims(found, tuple(set(range(len(names))) - set(axes)))
    return ~held if where.complement else held
