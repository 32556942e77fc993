"""The median update rule over a listed net of databases (Roth, lecture 8; lecture notes on nonlinear queries).

Its hypothesis is a set of databases that may still be the data, and answers with the median of theirs. It asks nothing
of a query but that databases have values, so statistics, which are nonlinear, are welcome; but the net is listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic

MAX_NET_DATABASES = 2_000_000
MAX_ENTRIES = 2**28  # counts in all databases together
_USUAL = 2**17  # databases of a net that nobody chose: a round goes through all of them for each question
_CHUNK = 2**20  # counts that are read at a time

NetCounts = NDArray[np.unsignedinteger[Any]]
NetFunction = Callable[[NetCounts], NDArray[np.float64]]
"""Any query: from a matrix with one database in each row, as counts of the cells of X in order, to a value in [0, 1]
for each row. The bounds of the median mechanism need it to change by at most 1/n when one record does."""


@dataclass(frozen=True, eq=False)
class Databases:
    """A median data structure: the databases of a net that are not ruled out.

    `consistent` turns false for good when an answer would have ruled out all of them, and was ignored.
    """

    net: MedianNet
    kept: NDArray[np.intp]
    consistent: bool = True

    def __len__(self) -> int:
        return len(self.kept)

    def answer(self, query: Query | Statistic | NetFunction) -> float:
        """The (lower) median of the databases' values, which is the value of one of them."""
        return _median(self.net.values(query, self.kept))

    def answer_statistic(self, statistic: Statistic) -> float:
        """The same, of a statistic."""
        return self.answer(statistic)


class MedianNet:
    """The update rule that keeps the databases on the answer's side of the median.

    If the answer is below the median, the databases with values at least the median go, otherwise those with values at
    most the median: the median's own go in either case, so that at least half go, however many tie. (Removing only
    those strictly beyond the median keeps all ties, and may remove nothing.) If the net holds the data D, then D stays:
    in an update sequence the answer is on the same side of the median as D's value. So 1 <= |net| / 2^updates.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"])})
    >>> rule = MedianNet.databases(domain, 4)
    >>> women = Query.among(domain, "sex", [0])
    >>> before = rule.initial()
    >>> after = rule.update(before, women, 1.0)
    >>> len(before), before.answer(women), len(after), after.answer(women)
    (5, 0.5, 2, 0.75)
    """

    def __init__(self, domain: Domain, counts: ArrayLike) -> None:
        """A net of these databases, one in each row: the counts of the cells of X in order, none of them empty."""
        given = np.asarray(counts)
        if given.ndim != 2 or not len(given) or given.shape[1] != domain.size or given.dtype.kind not in "iu":
            raise InvalidDomain(f"a net is a matrix of counts with {domain.size:,} columns, one for each cell.")
        if (given < 0).any() or not given.any(axis=1).all():
            raise InvalidDomain("the counts of a database are at least 0, and not all of them are 0.")
        self.domain = domain
        self.counts: NetCounts = given.astype(np.min_scalar_type(int(given.max())))
        self.counts.setflags(write=False)

    @classmethod
    def usual(cls, domain: Domain, rows: int) -> Self:
        """The trivial net, all databases of n records, where it is short; else all of as many records as is short."""
        low, high = 0, rows  # `low` records are short; bisection, as the number of databases rises with the records
        while low < high:
            middle = (low + high + 1) // 2
            number = _number_of_databases(domain.size, middle)[0]
            short = number is not None and number <= _USUAL and number * domain.size <= MAX_ENTRIES
            low, high = (middle, high) if short else (low, middle - 1)
        return cls.databases(domain, max(1, low))

    @classmethod
    def sampled(cls, domain: Domain, records: int, databases: int, *, seed: int) -> Self:
        """Some of all databases of that many records, each as likely as any other: for nets too long to list.

        Shares that are uniform over all distributions, and records that are drawn from them, make every database
        equally likely. The bound on updates holds; that one of the net is near the data does not follow.
        """
        if not 1 <= databases <= MAX_NET_DATABASES or databases * domain.size > MAX_ENTRIES or records < 1:
            raise InvalidDomain(f"a net has 1 to {MAX_NET_DATABASES:,} databases and at most {MAX_ENTRIES:,} counts.")
        rng = np.random.Generator(np.random.PCG64(seed))
        return cls(domain, rng.multinomial(records, rng.dirichlet(np.ones(domain.size), size=databases)))

    @classmethod
    def databases(cls, domain: Domain, size: int) -> Self:
        """All databases of `size` records: the trivial net if that is n, an alpha-net if it is large enough for alpha.

        By sampling from the data, log|C| / alpha² records are enough for k = |C| linear queries (Roth, lecture 8). For
        nonlinear ones the trivial net is a net for every alpha: it has the data themselves.
        """
        if size < 1:
            raise InvalidDomain(f"a database has at least 1 record, not {size}.")
        number, words = _number_of_databases(domain.size, size)
        if number is None or number > MAX_NET_DATABASES or number * domain.size > MAX_ENTRIES:
            raise InvalidDomain(
                f"there are {words} databases of {size:,} records over {domain.size:,} cells; a net that is listed "
                f"has at most {MAX_NET_DATABASES:,} databases and {MAX_ENTRIES:,} counts."
            )
        # Cell by cell: every count that is still left for it, the largest first. Each of these stands in as many
        # databases as there are ways to spread what is left then over the cells that follow.
        found = np.empty((number, domain.size), dtype=np.min_scalar_type(size))
        left = np.array([size], dtype=np.int64)
        for cell in range(domain.size - 1):
            times = left + 1
            first = np.repeat(np.cumsum(times) - times, times)
            after = np.arange(len(first)) - first  # what is left for the other cells
            others = domain.size - 1 - cell
            ways = np.array([math.comb(rest + others - 1, rest) for rest in range(size + 1)], dtype=np.int64)
            found[:, cell] = np.repeat(np.repeat(left, times) - after, ways[after])
            left = after
        found[:, -1] = left
        return cls(domain, found)

    def __len__(self) -> int:
        return len(self.counts)

    def initial(self) -> Databases:
        """The whole net."""
        return Databases(self, np.arange(len(self)))

    def update(self, hypothesis: Databases, query: Query | Statistic | NetFunction, answer: float) -> Databases:
        """The databases on the answer's side of the median; all of them, marked inconsistent, if there are none."""
        values = self.values(query, hypothesis.kept)
        median = _median(values)
        stay = values < median if answer < median else values > median
        if not stay.any():
            return replace(hypothesis, consistent=False)
        return replace(hypothesis, kept=hypothesis.kept[stay])

    def max_updates(self, alpha: float) -> float:
        """B(alpha) = log2 |net|, for every alpha for which it is a net."""
        return math.log2(len(self))

    def values(self, query: Query | Statistic | NetFunction, kept: NDArray[np.intp]) -> NDArray[np.float64]:
        """The query's value on each of these databases."""
        if isinstance(query, Query):
            evaluate = self._linear(query)
        else:
            evaluate = self._nonlinear(query) if isinstance(query, Statistic) else query
        rows = max(1, _CHUNK // self.domain.size)
        values = np.empty(len(kept))
        for start in range(0, len(kept), rows):
            part = kept[start : start + rows]
            found = np.asarray(evaluate(self.counts[part]), dtype=np.float64)
            if found.shape != part.shape or not ((found >= 0) & (found <= 1)).all():
                raise InvalidQuery("the function gives each database (each row of the matrix) one value from 0 to 1.")
            values[start : start + rows] = found
        return values

    def _linear(self, query: Query) -> NetFunction:
        if not query.fits(self.domain):
            raise InvalidQuery("the question was made for another domain.")
        weights = query.table(self.domain.names, self.domain.shape).ravel().astype(np.float64)

        def evaluate(counts: NetCounts) -> NDArray[np.float64]:
            sums = counts.astype(np.float64) @ weights  # of integers below 2^53: exact
            values: NDArray[np.float64] = sums / (counts.sum(axis=1, dtype=np.int64) * float(query.unit))
            return values

        return evaluate

    def _nonlinear(self, statistic: Statistic) -> NetFunction:
        statistic.check(self.domain)
        shape = self.domain.shape
        axes = [self.domain.names.index(name) for name in statistic.scope]
        others = tuple(axis + 1 for axis in range(len(shape)) if axis not in axes)
        order = [0, *(1 + sorted(axes).index(axis) for axis in axes)]

        def evaluate(counts: NetCounts) -> NDArray[np.float64]:
            tables = counts.reshape(-1, *shape).sum(axis=others, dtype=np.int64).transpose(order)
            sizes = counts.sum(axis=1, dtype=np.int64) * float(statistic.unit)
            return np.asarray(statistic.evaluate(tables) / sizes)

        return evaluate


def _median(values: NDArray[np.float64]) -> float:
    """The lower median: the value of an element, with at most half of them below it and at most half above."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def _number_of_databases(cells: int, size: int) -> tuple[int | None, str]:
    """How many multisets of `size` cells there are, and that in words; astronomical numbers only in words."""
    few = min(size, cells - 1)
    digits = int(few * (math.log10(cells + size - 1) - math.log10(few))) if few else 0
    if digits > 15:
        return None, f"more than 10^{digits}"
    number = math.comb(cells + size - 1, few)
    return number, f"{number:,}"
