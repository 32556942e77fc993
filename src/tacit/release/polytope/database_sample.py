"""DatabaseSample of Roth & Roughgarden 2010, section 5.3: databases of a population that is itself drawn at random.

It says which databases the efficient median mechanism is useful for: almost all of those that are drawn like this
(lemma 5.6), and, since small ones are close to uniform, almost all small databases (lemma 5.7). It reads no data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidDomain
from tacit.model.domain import Domain


def population(cells: int, seed: int) -> NDArray[np.float64]:
    """The distribution that a uniform point of C_0 induces: a uniform point of the simplex.

    Each of its masses is Beta(1, |X| - 1). (Before it is divided by its sum, a coordinate of C_0 is Beta(1, |X|).)
    """
    drawn = _rng(seed).standard_exponential(cells)
    masses: NDArray[np.float64] = drawn / drawn.sum()
    return masses


def database_sample(domain: Domain, rows: int, seed: int) -> NDArray[np.int64]:
    """A database of independent rows from such a population: value indices, one row for each record.

    The population is not listed. Given t rows, the next is a copy of a random one of them with probability
    t / (t + |X|), and otherwise a uniform cell: Pólya's urn, which is the same law (Blackwell & MacQueen 1973).

    >>> from tacit.model.attribute import integer
    >>> domain = Domain({f"digit {i}": integer(0, 9) for i in range(12)})
    >>> database_sample(domain, 3, seed=1).shape
    (3, 12)
    """
    if rows < 0:
        raise InvalidDomain(f"a database has 0 or more rows, not {rows}.")
    rng = _rng(seed)
    records = np.column_stack([rng.integers(size, size=rows) for size in domain.shape])
    before = np.arange(rows)
    copies = np.flatnonzero(rng.random(rows) < before / (before + float(domain.size)))
    sources = rng.integers(np.maximum(before, 1))  # for all rows: the stream must not depend on what is copied
    for row in copies.tolist():  # in order: what is copied may be a copy
        records[row] = records[sources[row]]
    return records


def repetitions(records: NDArray[np.int64]) -> int:
    """How many pairs of rows are equal: C(n, 2) 2 / (|X| + 1) in expectation, C(n, 2) / |X| for uniform rows."""
    _, counts = np.unique(records, axis=0, return_counts=True)
    return int((counts * (counts - 1) // 2).sum())


def _rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))
