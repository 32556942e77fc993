"""How far made-up rows are from what was released. Post-processing; called by `Synthetic`.

Distances are fractions of all rows. A released count has noise, and rows are drawn at random, so that even perfect rows
would be some way off: both are said beside the distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import Measured
from tacit.model.describe import describe
from tacit.model.domain import Domain
from tacit.model.noise_law import variance
from tacit.model.query import Query
from tacit.model.workload import Marginal

MAX_TABLE = 2**22  # cells of a table of made-up rows that is worked out for a comparison
Codes = Sequence[NDArray[np.integer]]
Counts = NDArray[np.int64]
Tally = Callable[[tuple[str, ...]], Counts]


@dataclass(frozen=True, slots=True)
class TableDistance:
    """One comparison: a released table, an attribute of it, or all released single questions together.

    largest, mean: over the cells, |share of the made-up rows - released share|.
    noise: the standard deviation of a released share. drawing: that of a share of so many rows drawn at random.
    """

    about: str
    cells: int
    largest: float
    mean: float
    noise: float
    drawing: float


def distances(domain: Domain, codes: Codes, rows: int, released: Iterable[Measured]) -> tuple[TableDistance, ...]:
    """Every released table, then every attribute that only wider tables tell of, then the single questions as one."""
    measured = list(released)
    tally = _tally(domain, codes)
    tables = [one for one in measured if isinstance(one.question, Marginal) and _small(_scope(one.question), domain)]
    found = [_table(one, domain, tally, len(codes[0]), rows) for one in tables]
    found += _attributes(tables, domain, tally, len(codes[0]), rows)
    singles = [one for one in measured if isinstance(one.question, Query)]
    parts = [part for one in singles if (part := _single(one, domain, tally, len(codes[0]), rows)) is not None]
    if parts:
        found.append(_together("single question" if len(parts) == 1 else "single questions", parts))
    return tuple(found)


def _table(one: Measured, domain: Domain, tally: Tally, drawn: int, rows: int) -> TableDistance:
    assert isinstance(one.question, Marginal)
    names = one.question.names
    shape = [domain[name].size for name in names]
    scope = _scope(one.question)
    chosen = one.question.where.table(scope, [domain[name].size for name in scope])
    beyond = tuple(axis for axis, name in enumerate(scope) if name not in names)
    made = (tally(scope) * chosen).sum(axis=beyond).reshape(shape)
    scale = rows * one.unit
    return _distance(
        describe(one.question, domain),
        made / drawn,
        one.values.reshape(shape) / scale,
        math.sqrt(variance(one.noise)) / scale,
        drawn,
    )


def _attributes(
    tables: Sequence[Measured], domain: Domain, tally: Tally, drawn: int, rows: int
) -> Iterator[TableDistance]:
    """Each attribute that has no table of its own, from the table that tells least noisily about it."""
    for name in domain.names:
        told: list[tuple[float, Measured]] = []
        for one in tables:
            assert isinstance(one.question, Marginal)
            if name in one.question.names and one.question.where.is_everyone:
                told.append((variance(one.noise) * one.values.size / domain[name].size / one.unit**2, one))
        if not told or any(one.values.size == domain[name].size for _, one in told):
            continue
        noise, best = min(told, key=lambda pair: pair[0])
        assert isinstance(best.question, Marginal)
        shape = [domain[other].size for other in best.question.names]
        others = tuple(axis for axis, other in enumerate(best.question.names) if other != name)
        share = best.values.reshape(shape).sum(axis=others) / (rows * best.unit)
        yield _distance(name, tally((name,)) / drawn, share, math.sqrt(noise) / rows, drawn)


def _single(one: Measured, domain: Domain, tally: Tally, drawn: int, rows: int) -> TableDistance | None:
    assert isinstance(one.question, Query)
    scope = one.question.scope
    if not _small(scope, domain):
        return None
    inside = one.question.table(scope, [domain[name].size for name in scope]) / one.question.unit
    made = np.array([(tally(scope) * inside).sum() / drawn])
    scale = rows * one.unit
    return _distance("", made, one.values / scale, math.sqrt(variance(one.noise)) / scale, drawn)


def _distance(
    about: str, made: NDArray[np.float64], told: NDArray[np.float64], noise: float, drawn: int
) -> TableDistance:
    apart = np.abs(made - told)
    drawing = math.sqrt(float(np.mean(made * (1 - np.clip(made, 0, 1)))) / drawn)
    return TableDistance(about, apart.size, float(apart.max()), float(apart.mean()), noise, drawing)


def _together(about: str, parts: Sequence[TableDistance]) -> TableDistance:
    """Many comparisons of one cell as one of many cells."""
    noise = math.sqrt(math.fsum(part.noise**2 for part in parts) / len(parts))
    drawing = math.sqrt(math.fsum(part.drawing**2 for part in parts) / len(parts))
    largest, mean = max(part.largest for part in parts), math.fsum(part.mean for part in parts) / len(parts)
    return TableDistance(about, len(parts), largest, mean, noise, drawing)


def _scope(question: Marginal) -> tuple[str, ...]:
    return tuple(sorted({*question.names, *question.where.scope}))


def _small(scope: tuple[str, ...], domain: Domain) -> bool:
    return math.prod(domain[name].size for name in scope) <= MAX_TABLE


def _tally(domain: Domain, codes: Codes) -> Tally:
    columns = dict(zip(domain.names, codes, strict=True))

    @lru_cache(maxsize=64)
    def tally(names: tuple[str, ...]) -> Counts:
        """How many of the made-up rows there are of each combination."""
        shape = [domain[name].size for name in names]
        place = np.zeros(len(codes[0]), dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            place = place * size + columns[name]
        return np.bincount(place, minlength=math.prod(shape)).reshape(shape)

    return tally
