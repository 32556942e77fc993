"""The small tables of `bench_coverage`, the conditions that are drawn about them, and what is true of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from benchmarks.accuracy.tables import SEED, made_up
from tacit.load import open_source
from tacit.model.query import Query
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

Where = Mapping[str, Sequence[int]]  # the codes that each attribute may have; all others may have any
Counts = NDArray[np.int64]
ROWS, VALUES = 8_000, 96
SIZES = {"a": 16, "b": 4, "c": 3, "d": 2}
FOUR = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
LINE = tacit.Domain({"x": tacit.integer(0, VALUES - 1)})
PLANE = tacit.Domain({"x": tacit.integer(0, 23), "y": tacit.integer(0, 15)})
MIXED = tacit.Domain({"a": tacit.integer(0, 15), "b": tacit.category(list("wxyz")), "c": tacit.category(["n", "y"])})
MIXED_ROWS = 3_000


@dataclass(frozen=True, eq=False)
class Table:
    """What a session is opened on, and the truth beside it."""

    data: pd.DataFrame
    domain: tacit.Domain
    records: Records

    @cached_property
    def cells(self) -> Counts:
        return np.asarray(self.records.table(self.domain.names))

    def where(self, where: Where) -> Query:
        return Query.all(Query.among(self.domain, name, codes) for name, codes in where.items())

    def along(self, name: str, where: Where) -> Counts:
        """How many rows of a condition have each value of an attribute."""
        cells = self.cells
        for axis, other in enumerate(self.domain.names):
            if other in where:
                inside = np.isin(np.arange(cells.shape[axis]), where[other])
                cells = cells * inside.reshape([-1 if i == axis else 1 for i in range(cells.ndim)])
        return np.asarray(cells.sum(axis=tuple(i for i, n in enumerate(self.domain.names) if n != name)))

    def count(self, where: Where) -> int:
        return int(self.along(self.domain.names[0], where).sum())

    def sum(self, name: str, where: Where) -> float:
        counts = self.along(name, where)
        return float(counts @ np.arange(counts.size))


@cache
def table(kind: str) -> Table:
    """pairs: pairs of attributes tell all; triples: a parity of three, which no pair shows; mixed: with categories."""
    made = {"line": _line, "plane": _plane, "mixed": lambda: made_up(MIXED, MIXED_ROWS, SEED, classes=4)}
    data = made[kind]() if kind in made else _four(kind)
    domain = {"line": LINE, "plane": PLANE, "mixed": MIXED}.get(kind, FOUR)
    return Table(data, domain, read_records(open_source(data, None), domain))


def _four(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    a = rng.binomial(15, np.where(rng.random(ROWS) < 0.6, 0.2, 0.75))
    if kind == "triples":
        b, c = rng.integers(0, 4, ROWS), rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])
        d = (b + (c > 0)) % 2
    else:
        b = np.where(rng.random(ROWS) < 0.7, a // 4, rng.integers(0, 4, ROWS))
        c = np.where(rng.random(ROWS) < 0.6, b % 3, 0)
        d = (rng.random(ROWS) < 0.2 + 0.3 * c).astype(int)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


def _line() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    x = np.where(rng.random(ROWS) < 0.5, rng.normal(30, 11, ROWS), rng.uniform(0, VALUES, ROWS))
    return pd.DataFrame({"x": np.clip(x, 0, VALUES - 1).astype(int)})


def _plane() -> pd.DataFrame:
    rng = np.random.default_rng(13)
    x = np.clip(rng.normal(10, 5, ROWS), 0, 23).astype(int)
    return pd.DataFrame({"x": x, "y": np.clip(x / 2 + rng.normal(2, 2, ROWS), 0, 15).astype(int)})


def drawn(domain: tacit.Domain, names: Sequence[str], rng: np.random.Generator) -> dict[str, list[int]]:
    """Conditions on these attributes as certificates list them, by another program.

    A range, each as likely; of a category a set, of a size that is as likely as any other.
    """
    found = dict[str, list[int]]()
    for name in names:
        size = domain[name].size
        if domain[name].ordered:
            ranges = [(a, b) for a in range(size) for b in range(a + 1, size + 1) if b - a < size]
            found[name] = list(range(*ranges[rng.integers(len(ranges))]))
        else:
            found[name] = sorted(rng.permutation(size)[: rng.integers(1, size)].tolist())
    return found


def some(names: Sequence[str], most: int, rng: np.random.Generator) -> list[str]:
    """One to so many of the names, each number as likely."""
    return [str(name) for name in rng.permutation(list(names))[: rng.integers(1, most + 1)]]


def boxes(domain: tacit.Domain, count: int, seed: int) -> list[Query]:
    """Different conditions on one to three attributes, each met by a random set of values."""
    rng = np.random.default_rng(seed)
    made: dict[Query, None] = {}
    while len(made) < count:
        names = rng.choice(domain.names, rng.integers(1, 4), replace=False)
        sizes = [domain[name].size for name in names]
        chosen = [rng.choice(size, rng.integers(1, size), replace=False) for size in sizes]
        parts = [Query.among(domain, name, codes) for name, codes in zip(names, chosen, strict=True)]
        made[Query.all(parts).core] = None
    return list(made)
