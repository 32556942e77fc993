"""The private table as distinct cells with integer counts. Only the curator may hold it; it never leaves trusted/.

Every cell is one small code for each attribute, so true answers are integer dot products over the distinct cells, and
|X| may be astronomically larger than memory. `cells.read_records` makes them and says what holds between neighbours.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.counting import check_table, weighed
from tacit.model.domain import Domain
from tacit.model.query import GRID, Factor, Query, multiply
from tacit.model.statistic import Statistic
from tacit.model.workload import Question

MAX_ROWS = 2**62 // GRID  # so that no sum of counts times weights overflows
_REMEMBERED = 2**14  # cells of a table that is kept for further questions about the same attributes

Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.int64]
Places = NDArray[np.intp]


class Records:
    """Sparse integer counts over the domain; never leaves trusted/."""

    __slots__ = ("_codes", "_counts", "_tables", "domain", "rows", "rows_per_person")
    counted = None  # whether they stay in an engine: `copy.Counted`

    def __init__(self, domain: Domain, codes: Sequence[Codes], counts: Counts, rows_per_person: int = 1) -> None:
        self.domain = domain
        self.rows = int(counts.sum())
        self.rows_per_person = rows_per_person  # how many rows neighbours differ in: what every price is multiplied by
        self._codes = dict(zip(domain.names, codes, strict=True))
        self._counts = counts
        self._tables = lru_cache(maxsize=1024)(self.table)  # the same few attributes are asked about again and again

    def prepare(self, questions: Iterable[Question]) -> None:
        """Nothing: they are all here."""

    def answer(self, query: Query | Statistic) -> int:
        """The true answer, in grid steps.

        Guarantee: exact; replacing one row moves it by at most `query.unit`, and m rows by m times that.
        Formula: Σ over cells of count · weight, weight = the product of the factors; unit · n minus that if complement.
            For a statistic, its function of the table over its attributes.
        Source: products of weights are rounded by `model.query.multiply`; what moves a statistic is proved where the
            function stands, in `model.statistic_library`.
        """
        if isinstance(query, Statistic):
            return int(query.evaluate(self.table(query.scope)[None])[0])
        small = query.scope and math.prod(self.domain.sizes[name] for name in query.scope) <= _REMEMBERED
        table = self._tables(query.scope) if small else None
        total = self._from_cells(query) if table is None else weighed(table, query.scope, query.factors)
        return query.unit * self.rows - total if query.complement else total

    def _from_cells(self, query: Query) -> int:
        chosen = self._chosen([factor for factor in query.factors if factor.unit == 1])
        counts = self._counts if chosen is None else self._counts[chosen]
        weights: Counts | None = None
        unit = 1
        for factor in query.factors:
            if factor.unit == 1:
                continue
            found = self._look_up(factor, chosen)
            weights, unit = (found, factor.unit) if weights is None else multiply(weights, unit, found, factor.unit)
        return int(counts.sum()) if weights is None else int(np.dot(counts, weights))

    def table(self, names: Iterable[str], where: Query | None = None) -> Counts:
        """The true counts of a marginal, among the rows that meet a condition.

        Guarantee: exact; replacing one row moves one entry down by at most 1 and one up by at most 1.
        Formula: one count for each combination of the named attributes' values, in the given order.
        """
        onto = check_table(self.domain, names, where)
        chosen = None if where is None else self._chosen(where.factors, where.complement)
        counts = self._counts if chosen is None else self._counts[chosen]
        # The sums are below 2**42, so float64 holds them exactly.
        sums = np.bincount(self._flat(onto.names, chosen), weights=counts, minlength=onto.size)
        return sums.astype(np.int64).reshape(onto.shape)

    def project(self, names: Iterable[str]) -> Records:
        """The same rows, over these attributes alone."""
        onto = self.domain.project(names)
        table = self.table(onto.names)
        cells = np.nonzero(table)
        codes = [place.astype(np.uint32) for place in cells]
        return Records(onto, codes, table[cells], self.rows_per_person)

    def joined(self, others: Sequence[Records]) -> Records:
        """These rows and others, over one domain. Guarantee: where a part has a neighbour, as many rows differ here."""
        parts = (self, *others)
        codes = [np.concatenate([part._codes[name] for part in parts]) for name in self.domain]
        return Records(self.domain, codes, np.concatenate([part._counts for part in parts]), self.rows_per_person)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash by which a ledger knows its data again.

        Guarantee: equal for the same rows in any order, on any engine; of joined records, for the same parts in the
            same order. Says nothing about the rows without the key.
        Formula: BLAKE2b (RFC 7693) with `key` over the domain and the cells in sorted order.
        """
        packed = np.zeros((self.domain.slots[-1].word + 1, len(self._counts)), dtype="<i8")
        for slot, codes in zip(self.domain.slots, self._codes.values(), strict=True):
            packed[slot.word] |= codes.astype(np.int64) << slot.shift
        order = np.lexsort(packed)
        digest = hashlib.blake2b(self.domain.key.encode(), key=key, digest_size=32)
        for column in (*packed, self._counts.astype("<i8")):
            digest.update(column[order].tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"Records({self.rows:,} rows, {self.domain!r})"

    def __reduce__(self) -> Any:
        raise TypeError("records stay where they were loaded")

    def _chosen(self, factors: Sequence[Factor], complement: bool = False) -> Places | None:
        """The places of the cells that meet every one of these 0/1 factors, or of the others; None for all cells."""
        met: NDArray[np.bool_] | None = None
        for factor in sorted(factors, key=lambda factor: len(factor.scope)):  # the cheap ones first
            if len(factor.scope) == 1:
                one = _meets(self._codes[factor.scope[0]], factor.weights)
            else:
                one = self._look_up(factor, None).astype(np.bool_)
            met = one if met is None else np.logical_and(met, one, out=met)
        if complement:
            met = np.zeros(len(self._counts), dtype=np.bool_) if met is None else ~met
        # Indexing by place is up to five times faster than by mask where the mask is dense and irregular.
        return None if met is None else np.flatnonzero(met)

    def _look_up(self, factor: Factor, chosen: Places | None) -> Counts:
        weights: Counts = factor.weights.reshape(-1)[self._flat(factor.scope, chosen)].astype(np.int64)
        return weights

    def _flat(self, names: Sequence[str], chosen: Places | None) -> Counts:
        """Each chosen cell's place in a table over these attributes."""
        flat: Counts = np.zeros(len(self._counts) if chosen is None else len(chosen), dtype=np.int64)
        for name in names:
            codes = self._codes[name] if chosen is None else self._codes[name][chosen]
            flat *= self.domain[name].size
            flat += codes
        return flat


def _meets(codes: Codes, weights: NDArray[Any]) -> NDArray[np.bool_]:
    """Which codes have weight 1: by comparison where they are one run of values, which reads at memory speed."""
    chosen = np.flatnonzero(weights)
    met: NDArray[np.bool_]
    if len(chosen) == 1:
        met = codes == int(chosen[0])
    elif len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1:  # unsigned: codes below wrap around to above
        met = codes - codes.dtype.type(chosen[0]) < len(chosen)
    elif codes.dtype == np.uint8:  # a byte for a byte, several times faster than indexing
        spelled = codes.tobytes().translate(weights.astype(np.uint8).tobytes().ljust(256, b"\0"))
        met = np.frombuffer(bytearray(spelled), dtype=np.bool_)
    else:
        met = weights.astype(np.bool_)[codes]
    return met
