"""What queries and tables say of many small databases at once: look-ups, never a listing of X. For the sampler.

Databases are codes [N, A, m]: the value of attribute a of record i of database c, as a small integer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Factor, Query, multiply

Codes = NDArray[np.unsignedinteger[Any]]
_MOST_RUNS = 6  # comparisons of whole columns are vectorised, look-ups are not
_MOST_CELLS = 2**26  # of all databases' tables together


def counts(codes: Codes, domain: Domain, query: Query) -> NDArray[np.int64]:
    """The query's sum over each database's records, in its grid steps: exact integers [N]."""
    if not query.fits(domain):
        raise InvalidQuery("the question was made for another domain.")
    number, _, records = codes.shape
    if query.unit == 1:
        inside = np.ones((number, records), dtype=bool)
        for k, factor in enumerate(query.factors):
            part = _allowed(codes, domain, factor)
            inside = part if k == 0 else np.logical_and(inside, part, out=inside)
        total = np.count_nonzero(inside, axis=1).astype(np.int64)
    else:
        weights, unit = np.ones((number, records), dtype=np.int64), 1
        for factor in query.factors:
            found = factor.weights.ravel()[_cells(codes, domain, factor.scope)]
            weights, unit = multiply(weights, unit, found, factor.unit)
        total = weights.sum(axis=1)
    return np.asarray(records * query.unit - total if query.complement else total)


def tables(codes: Codes, domain: Domain, names: Sequence[str]) -> NDArray[np.int64]:
    """Contingency tables [N, *shape]: how many records of each database have each combination of values."""
    names = [domain.resolve(name) for name in names]
    shape = tuple(domain[name].size for name in names)
    cells, number = math.prod(shape), len(codes)
    if cells * number > _MOST_CELLS:
        raise InvalidQuery(f"{number:,} tables of {cells:,} cells are more than the {_MOST_CELLS:,} cells allowed.")
    index = _cells(codes, domain, names) + np.arange(number)[:, None] * cells
    return np.bincount(index.ravel(), minlength=number * cells).reshape(number, *shape)


def _allowed(codes: Codes, domain: Domain, factor: Factor) -> NDArray[np.bool_]:
    """Which records a 0/1 factor allows [N, m]."""
    flags = factor.weights.ravel() > 0
    if len(factor.scope) > 1:
        return np.asarray(flags[_cells(codes, domain, factor.scope)])
    column = codes[:, domain.names.index(factor.scope[0]), :]
    few = flags if np.count_nonzero(flags[1:] & ~flags[:-1]) <= _MOST_RUNS else None
    if few is None:
        return np.asarray(np.take(flags, column))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    result = np.zeros(column.shape, dtype=bool)
    for k, (first, after) in enumerate(edges.reshape(-1, 2)):
        if after - first == 1:
            run = column == column.dtype.type(first)
        else:  # unsigned: a value below `first` wraps to a large one
            run = column - column.dtype.type(first) < column.dtype.type(after - first)
        result = run if k == 0 else np.logical_or(result, run, out=result)
    return result


def _cells(codes: Codes, domain: Domain, names: Sequence[str]) -> NDArray[np.int64]:
    """Each record's cell among the combinations of these attributes, as a flat index [N, m]."""
    index = np.zeros((codes.shape[0], codes.shape[2]), dtype=np.int64)
    for name in names:
        index *= domain[name].size
        index += codes[:, domain.names.index(name), :]
    return index
