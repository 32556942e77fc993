"""Past hard answers as slabs on exact sums, in the flat arrays that the moves read. For the database sampler only.

A slab bounds a query's sum over a database's m records. A 0/1 query is *counted*. It is a product of parts over
disjoint attributes, so x is in it if every part allows x's values. All counted queries are tested at once: bit j of
`masks[offsets[a] + v]` says whether query j allows value v of attribute a, and the words of a record are the bitwise
AND over its attributes. A part over several attributes cannot be split like that: its table is looked up. A weighted
query is a *gauge*: its weights are looked up and multiplied, on the grid of 2^-20 as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query

Codes = NDArray[np.unsignedinteger[Any]]
Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
LONGEST = 3  # attributes that a resampling draws together, at most
_NEAR = 1e-9  # m * (centre - width) is an integer up to rounding


@dataclass(frozen=True)
class Slab:
    """The databases whose sum of a query, not a complement, is `low` to `high` of its grid steps (records, if 0/1)."""

    query: Query
    low: int
    high: int


def slab(query: Query, centre: float, width: float, records: int) -> Slab:
    """|query - centre| <= width in whole grid steps, rounded outwards and moved into 0..records: never empty.

    >>> from tacit.model.attribute import category
    >>> red = Query.among(Domain({"hair": category(["red", "fair", "dark"])}), "hair", [0])
    >>> [(s.low, s.high) for s in (slab(red, 0.42, 0.05, 10), slab(red, -0.2, 0.01, 10))]
    [(3, 5), (0, 0)]
    """
    if query.complement:  # |1 - q - a| <= w says |q - (1 - a)| <= w
        return slab(query.core, 1 - centre, width, records)
    if query.is_constant:
        raise InvalidQuery("the query weighs every row the same: its answer is known, and is no constraint.")
    most = records * query.unit
    low, high = math.floor(most * (centre - width) + _NEAR), math.ceil(most * (centre + width) - _NEAR)
    return Slab(query, min(max(low, 0), most), min(max(high, 0), most))


class CountedQueries(NamedTuple):
    """The 0/1 queries. chance[j] is 2^64 times the share of query j among the cells of its scope.

    scope[j] lists j's attributes and parts[j] its parts, padded. The scopes of the gauges follow those of the queries.
    """

    low: Ints
    high: Ints
    chance: Words
    scope: Ints
    scope_length: Ints
    parts: Ints
    part_count: Ints


class QueryParts(NamedTuple):
    """The factors of the 0/1 queries: part p covers the attributes attributes[p] with strides strides[p], padded.

    Its allowed cells are cells[first_cell[p] :][: cell_count[p]].
    """

    attributes: Ints
    strides: Ints
    first_cell: Ints
    cell_count: Ints
    cells: Ints


class JointParts(NamedTuple):
    """The parts over several attributes, whose 0/1 tables are looked up: from first_entry on, among the entries."""

    part: Ints
    query: Ints
    first_entry: Ints
    entries: NDArray[np.uint8]


class Gauges(NamedTuple):
    """The weighted queries: g has the parts start[g] to start[g + 1]; `fine` ones are on the grid, the others 0/1."""

    low: Ints
    high: Ints
    start: Ints
    attributes: Ints
    strides: Ints
    first: Ints
    fine: Ints
    weights: Ints


class Program(NamedTuple):
    """Slabs and the attributes that may move, as flat arrays. `A`, the number of attributes, is padding's attribute.

    Bit j of masks[offsets[a] + v] says whether query j allows value v of attribute a.
    """

    moving: Ints
    sizes: Ints
    offsets: Ints
    masks: Words
    counted: CountedQueries
    parts: QueryParts
    joints: JointParts
    gauges: Gauges

    @property
    def stride(self) -> int:
        """Random words that one step may use: two, and one for each attribute that it draws."""
        return 2 + max(LONGEST, int(self.counted.scope.shape[1]))


class Chains(NamedTuple):
    """N chains, or one of them, without the first axis: codes [N, A, m], and what follows from them. Changed in place.

    members [N, m, words]: bit j of a record says whether it lies in query j. counts [N, h]: how many records do.
    full and bare [N, words]: the queries whose count may not rise, may not fall. sums [N, g]: of the gauges.
    """

    codes: Codes
    members: Words
    counts: Ints
    full: Words
    bare: Words
    sums: Ints

    def take(self, rows: Ints) -> Chains:
        """A copy of some chains."""
        return Chains._make(part[rows] for part in self)

    def put(self, rows: Ints, others: Chains) -> None:
        """Overwrites some chains."""
        for mine, theirs in zip(self, others, strict=True):
            mine[rows] = theirs


def program(domain: Domain, slabs: Sequence[Slab], also_moving: Sequence[str] = ()) -> Program:
    """The arrays of these slabs. Attributes outside every scope, and not `also_moving`, do not move: they are free."""
    gauges, slabs = [one for one in slabs if one.query.unit > 1], [one for one in slabs if one.query.unit == 1]
    place = {name: a for a, name in enumerate(domain.names)}
    sizes = np.array([*domain.shape, 1], dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes[:-1])))
    words = max(1, -(-len(slabs) // 64))
    masks = np.zeros((int(offsets[-1]) + 1, words), dtype=np.uint64)
    factors = [(j, factor) for j, one in enumerate(slabs) for factor in one.query.factors]
    attributes_of, strides = _layout([factor for _, factor in factors], place)
    allowed, joint, tables = [], [], []
    for j in range(len(slabs)):
        masks[:, j // 64] |= np.uint64(1 << (j % 64))
    for p, (j, factor) in enumerate(factors):
        where = [place[name] for name in factor.scope]
        flat = factor.weights.ravel() > 0
        allowed.append(np.flatnonzero(flat))
        if len(where) == 1:
            rows = slice(int(offsets[where[0]]), int(offsets[where[0]] + sizes[where[0]]))
            masks[rows, j // 64] &= np.where(flat, ~np.uint64(0), ~np.uint64(1 << (j % 64)))
        else:
            joint.append(p)
            tables.append(flat.astype(np.uint8))
    scopes = [[place[name] for name in one.query.scope] for one in (*slabs, *gauges)]
    weighted = [factor for one in gauges for factor in one.query.factors]
    gauge_attributes, gauge_strides = _layout(weighted, place)
    parts = [[p for p, (owner, _) in enumerate(factors) if owner == j] for j in range(len(slabs))]
    counts = [len(cells) for cells in allowed]
    moving = {a for scope in scopes for a in scope} | {place[name] for name in also_moving}
    return Program(
        moving=_ints(sorted(moving)),
        sizes=sizes,
        offsets=offsets,
        masks=masks,
        counted=CountedQueries(
            low=_ints([one.low for one in slabs]),
            high=_ints([one.high for one in slabs]),
            chance=np.array([_share(one.query) for one in slabs], dtype=np.uint64),
            scope=_padded(scopes, len(place)),
            scope_length=_ints([len(scope) for scope in scopes]),
            parts=_padded(parts, 0),
            part_count=_ints([len(own) for own in parts]),
        ),
        parts=QueryParts(
            attributes=attributes_of,
            strides=strides,
            first_cell=_running(counts),
            cell_count=_ints(counts),
            cells=np.concatenate([*allowed, np.zeros(1, dtype=np.int64)]).astype(np.int64),
        ),
        joints=JointParts(
            part=_ints(joint),
            query=_ints([factors[p][0] for p in joint]),
            first_entry=_running([len(table) for table in tables]),
            entries=np.concatenate([*tables, np.zeros(1, dtype=np.uint8)]),
        ),
        gauges=Gauges(
            low=_ints([one.low for one in gauges]),
            high=_ints([one.high for one in gauges]),
            start=_running([len(one.query.factors) for one in gauges]),
            attributes=gauge_attributes,
            strides=gauge_strides,
            first=_running([factor.weights.size for factor in weighted]),
            fine=_ints([factor.unit > 1 for factor in weighted]),
            weights=np.concatenate([*(factor.weights.ravel() for factor in weighted), [0]]).astype(np.int64),
        ),
    )


def _layout(factors: Sequence[Factor], place: dict[str, int]) -> tuple[Ints, Ints]:
    """The attributes of each factor and their strides in its table, padded."""
    attributes = _padded([[place[name] for name in factor.scope] for factor in factors], len(place))
    strides = [np.cumprod([1, *factor.weights.shape[:0:-1]])[::-1].tolist() for factor in factors]
    return attributes, _padded(strides, 1)


def _ints(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)


def _running(lengths: Sequence[int]) -> Ints:
    """Where each of several lists begins, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _share(query: Query) -> int:
    """2^64 |in| / |cells of the scope|, rounded down; the query is not constant, so it is below 2^64."""
    inside = math.prod(int(np.count_nonzero(factor.weights)) for factor in query.factors)
    return (inside << 64) // math.prod(factor.weights.size for factor in query.factors)


def _padded(lists: Sequence[Sequence[int]], filler: int) -> Ints:
    padded = np.full((len(lists), max(map(len, lists), default=1)), filler, dtype=np.int64)
    for row, entries in zip(padded, lists, strict=True):
        row[: len(entries)] = entries
    return padded
