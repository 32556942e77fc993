"""The private table as distinct cells with integer counts. Only the curator may hold it; it never leaves trusted/.

Every cell is one small code for each attribute, so true answers are integer dot products over the distinct cells, and
|X| may be astronomically larger than memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import GRID, Factor, Query, multiply
from tacit.model.statistic import Statistic
from tacit.trusted.loss import MOST_PER_PERSON
from tacit.trusted.sources import Progress, open_source
from tacit.trusted.statement import MAX_CELLS, Person, Slot, build, slots

MAX_ROWS = 2**62 // GRID  # so that no sum of counts times weights overflows
MAX_TABLE = 2**26
_REMEMBERED = 2**14  # cells of a table that is kept for further questions about the same attributes

Codes = NDArray[np.unsignedinteger[Any]]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Records:
    """Sparse integer counts over the domain; never leaves trusted/."""

    __slots__ = ("_codes", "_counts", "_tables", "domain", "rows", "rows_per_person")

    def __init__(
        self, domain: Domain, codes: Sequence[Codes], counts: NDArray[np.int64], rows_per_person: int = 1
    ) -> None:
        self.domain = domain
        self.rows = int(counts.sum())
        self.rows_per_person = rows_per_person  # how many rows neighbours differ in: what every price is multiplied by
        self._codes = dict(zip(domain.names, codes, strict=True))
        self._counts = counts
        self._tables = lru_cache(maxsize=1024)(self.table)  # the same few attributes are asked about again and again

    @classmethod
    def load(
        cls,
        data: object,
        domain: Domain,
        table: str | None = None,
        *,
        person: str | None = None,
        rows_per_person: int = 1,
        progress: Progress | None = None,
    ) -> Records:
        """The cells of a table, grouped by its engine. `person` names the column that says whose row it is.

        `progress` is told the share of the work that is done, where the engine knows it: for the owner, who waits.

        Guarantee: every row is in exactly one declared cell, or the load is refused without naming a value or a count.
            With a person, at most `rows_per_person` rows of each are among them, and no other person's rows decide
            which: so all that is known here differs in that many rows between neighbours.
        Formula: one GROUP BY; a reserved code shows that some row fell nowhere declared; `statement.bounded`.
        Source: docs/ARCHITECTURE.md, "From a table to cells"; docs/PRIVACY.md, "People with several rows".
        """
        check_person(person, rows_per_person)
        source = open_source(data, table)
        columns = source.types(domain) if person is None else source.types(domain, person)
        whose = None if person is None else Person(columns[person], rows_per_person)
        select = build(domain, columns, whose)
        words, counts = source.run(select) if progress is None else source.run(select, progress)
        if len(counts) == 0:
            raise DataError("the table has no rows." if person is None else "the table has no rows that name a person.")
        if len(counts) > MAX_CELLS:
            raise DataError(_too_many_cells(domain))
        if int(counts.max()) >= MAX_ROWS or int(counts.sum()) >= MAX_ROWS:
            raise DataError(f"the table has {MAX_ROWS:,} rows or more; sum it up before it is loaded.")
        codes = [_decode(words[slot.word], slot, size) for slot, size in zip(slots(domain), domain.shape, strict=True)]
        problems = [
            problem
            for name, code in zip(domain.names, codes, strict=True)
            for problem in _undeclared(domain, name, code)
        ]
        if problems:
            raise DataError("; ".join(problems) + ".")
        return cls(domain, codes, counts, rows_per_person)

    @property
    def cells(self) -> int:
        """How many distinct cells hold a row. Private: never shown."""
        return len(self._counts)

    def answer(self, query: Query | Statistic) -> int:
        """The true answer, in grid steps.

        Guarantee: exact; replacing one row moves it by at most `query.unit`, and m rows by m times that.
        Formula: Σ over cells of count · weight, weight = the product of the factors; unit · n minus that if complement.
            For a statistic, its function of the table over its attributes.
        Source: docs/ARCHITECTURE.md; the rounding of products of weights is `model.query.multiply`; for statistics the
            proofs stand with the functions, in `model.statistic_library`.
        """
        if isinstance(query, Statistic):
            return int(query.evaluate(self.table(query.scope)[None])[0])
        total = self._from_table(query)
        if total is None:
            total = self._from_cells(query)
        return query.unit * self.rows - total if query.complement else total

    def _from_table(self, query: Query) -> int | None:
        """The product's sum from a remembered table of the query's attributes, where that is small."""
        scope = query.scope
        if not scope or math.prod(self.domain[name].size for name in scope) > _REMEMBERED:
            return None
        table: NDArray[np.int64] = self._tables(scope)
        if all(len(factor.scope) == 1 for factor in query.factors) and sum(f.unit > 1 for f in query.factors) < 2:
            for factor in reversed(query.factors):  # factors are in order of scope: the last one has the last axis
                table = table @ factor.weights.astype(np.int64)
            return int(table)
        return int((table * Query(query.factors, complement=False).table(scope, table.shape)).sum())

    def _from_cells(self, query: Query) -> int:
        chosen = _places(self._choose([factor for factor in query.factors if factor.unit == 1]))
        counts = self._counts if chosen is None else self._counts[chosen]
        weights: NDArray[np.int64] | None = None
        unit = 1
        for factor in query.factors:
            if factor.unit > 1:
                looked_up = self._look_up(factor, chosen)
                weights, unit = (
                    (looked_up, factor.unit) if weights is None else multiply(weights, unit, looked_up, factor.unit)
                )
        return int(counts.sum()) if weights is None else int(np.dot(counts, weights))

    def table(self, names: Iterable[str], where: Query | None = None) -> NDArray[np.int64]:
        """The true counts of a marginal, among the rows that meet a condition.

        Guarantee: exact; replacing one row moves one entry down by at most 1 and one up by at most 1.
        Formula: one count for each combination of the named attributes' values, in the given order.
        Source: docs/ARCHITECTURE.md, "From a table to cells".
        """
        onto = self.domain.project(names)
        if onto.size > MAX_TABLE:
            raise InvalidQuery(f"a table of {onto.size:,} cells is too large; at most {MAX_TABLE:,} can be counted.")
        chosen = None
        if where is not None:
            if where.unit > 1:
                raise InvalidQuery("the rows of a table are chosen by conditions, not by weights.")
            met = self._choose(where.factors)
            if where.complement:
                met = np.zeros(self.cells, dtype=np.bool_) if met is None else ~met
            chosen = _places(met)
        counts = self._counts if chosen is None else self._counts[chosen]
        # The sums are below 2**42, so float64 holds them exactly.
        sums = np.bincount(self._flat(onto.names, chosen), weights=counts, minlength=onto.size)
        return sums.astype(np.int64).reshape(onto.shape)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash by which a ledger knows its data again.

        Guarantee: equal for the same rows in any order, on any engine; says nothing about them without the key.
        Formula: BLAKE2b with `key` over the domain and the cells in sorted order.
        Source: RFC 7693.
        """
        packed = np.zeros((slots(self.domain)[-1].word + 1, self.cells), dtype="<i8")
        for slot, codes in zip(slots(self.domain), self._codes.values(), strict=True):
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

    def _choose(self, factors: Sequence[Factor]) -> Mask | None:
        """Which cells meet every one of these 0/1 factors; None for all of them."""
        chosen: Mask | None = None
        for factor in sorted(factors, key=lambda factor: len(factor.scope)):  # the cheap ones first
            if len(factor.scope) == 1:
                met = _meets(self._codes[factor.scope[0]], factor.weights)
            else:
                met = self._look_up(factor, None).astype(np.bool_)
            chosen = met if chosen is None else np.logical_and(chosen, met, out=chosen)
        return chosen

    def _look_up(self, factor: Factor, chosen: Places | None) -> NDArray[np.int64]:
        weights: NDArray[np.int64] = factor.weights.reshape(-1)[self._flat(factor.scope, chosen)].astype(np.int64)
        return weights

    def _flat(self, names: Sequence[str], chosen: Places | None) -> NDArray[np.int64]:
        """Each chosen cell's place in a table over these attributes."""
        flat: NDArray[np.int64] = np.zeros(self.cells if chosen is None else len(chosen), dtype=np.int64)
        for name in names:
            codes = self._codes[name] if chosen is None else self._codes[name][chosen]
            flat *= self.domain[name].size
            flat += codes
        return flat


def check_person(person: str | None, rows_per_person: int) -> None:
    """Refuse a bound without a column that it can be kept by, and one that is none.

    Guarantee: prices are never multiplied by a bound that nothing enforces. Formula, source: `statement.bounded`.
    """
    if type(rows_per_person) is not int or not 1 <= rows_per_person <= MOST_PER_PERSON:
        raise DataError(f"rows_per_person is a whole number from 1 to {MOST_PER_PERSON:,}, not {rows_per_person!r}.")
    if person is None and rows_per_person != 1:
        raise DataError('rows_per_person needs the column that says whose row it is, like person="patient_id".')
    if person is not None and (type(person) is not str or not person):
        raise DataError(f"person is the name of a column, not {person!r}.")


def _too_many_cells(domain: Domain) -> str:
    """What to do about it, from the declared sizes alone."""
    finest = sorted(domain.items(), key=lambda item: -item[1].size)[:3]
    sizes = ", ".join(f"{name} ({attribute.size:,})" for name, attribute in finest)
    return (
        f"the rows fall into more than {MAX_CELLS:,} distinct cells: declare coarser bins or fewer attributes. "
        f"The finest have the most values: {sizes}."
    )


def _meets(codes: Codes, weights: NDArray[Any]) -> Mask:
    """Which codes have weight 1: by comparison where they are one run of values, which reads at memory speed."""
    runs = np.flatnonzero(np.diff(weights.astype(np.int8), prepend=0, append=0))
    first, end = (int(runs[0]), int(runs[-1])) if len(runs) else (0, 0)
    met: Mask
    if len(runs) > 2 and codes.dtype == np.uint8:  # a byte for a byte, several times faster than indexing
        spelled = codes.tobytes().translate(weights.astype(np.uint8).tobytes().ljust(256, b"\0"))
        met = np.frombuffer(bytearray(spelled), dtype=np.bool_)
    elif len(runs) > 2:
        met = weights.astype(np.bool_)[codes]
    elif end - first == 1:
        met = codes == first
    else:  # unsigned: what lies below the run wraps around to above it
        met = codes - codes.dtype.type(first) < end - first
    return met


def _places(mask: Mask | None) -> Places | None:
    # Indexing by place is up to five times faster than by mask where the mask is dense and irregular.
    return None if mask is None else np.flatnonzero(mask)


def _decode(word: NDArray[np.int64], slot: Slot, size: int) -> Codes:
    # Wide enough for the two reserved codes as well.
    dtype = next(t for t in (np.uint8, np.uint16, np.uint32) if size + 1 <= np.iinfo(t).max)
    codes: Codes = ((word >> slot.shift) & (2**slot.bits - 1)).astype(dtype)
    return codes


def _undeclared(domain: Domain, name: str, codes: Codes) -> Iterable[str]:
    attribute = domain[name]
    if int(codes.max()) < attribute.size:
        return
    if (codes == attribute.size).any():
        remedy = 'other="other"' + (" or clamp=True" if attribute.ordered else "")
        yield f"{name} has values outside what is declared ({attribute.takes}): add {remedy} to it, or declare more"
    if (codes == attribute.size + 1).any():
        yield f'{name} has missing values and declares no label for them: add missing="unknown" to it'
