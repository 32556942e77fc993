"""Synthetic rows: made from published answers alone, so that they may be handed on like those.

They are drawn from what a mechanism knows. One that knows nothing beyond its answers has these fitted: from accurate
answers to any questions one can reconstruct a database that agrees with them (Roth & Roughgarden 2010, footnote 5).

They say how far they are from what was released. Distances are fractions of all rows. A released count has noise, and
rows are drawn at random, so that even perfect rows would be some way off: both are said beside the distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.values import Value
from tacit.model.workload import Convolution, Marginal, Product, Tree, marginal
from tacit.release.estimate import Answerer
from tacit.release.hypothesis.noisy_residuals import NoisyResiduals
from tacit.release.public import Public
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import Rectangles
from tacit.release.warm_start import fit_all
from tacit.show.frames import ColumnKind, Frame, FrameColumn, Framed

MAX_COMPARED_CELLS = 2**22  # cells of a table of made-up rows that is worked out for a comparison
_AT_95 = 1.96  # standard deviations of Gaussian noise in its bar at 95 %
_SHOWN = 20  # rows, in a notebook
_KINDS: dict[str, ColumnKind] = {"boolean": "truth", "integer": "whole", "numeric": "real", "date": "day"}


CodeColumns = Sequence[NDArray[np.integer]]
Counts = NDArray[np.int64]
Tally = Callable[[tuple[str, ...]], Counts]


def draw(public: Public, mechanism: Answerer, rows: int, rng: np.random.Generator) -> CodeColumns:
    """Rows of what the mechanism knows; where that has none, of the distribution that fits all released answers."""
    try:
        return mechanism.draw(rows, rng)
    except InvalidQuery:
        told = [counted(one, public.domain, public.rows) for one in public.released()]
        told = [one for one in told if isinstance(one.question, Query | Marginal | Residuals | Tree)]
        if not told:
            raise
        return fit_all(public.domain, told, public.rows).hypothesis.draw(rows, rng)


def counted(one: Measured, domain: Domain, rows: int) -> Measured:
    """A release of ranges as the table that it makes of its bins: fits go by tables. Others are themselves.

    The noise stands for that of a bin, which is all that a fit asks of it.
    """
    question = one.question
    if not isinstance(question, Convolution | Product):
        return one
    trees = (question.first, question.second) if isinstance(question, Product) else (question,)
    names = [tree.name for tree in trees]
    sizes = domain.shape_of(names)
    if sizes != tuple(domain[name].bins for name in names):
        return one  # values outside the bins share a leaf, or stand in none
    at = np.indices(sizes)
    if isinstance(question, Convolution):
        counts = Distribution(one, domain, rows).counts(at[0], at[0])
    else:
        counts = Rectangles(one, domain, rows).counts((at[0], at[1]), (at[0], at[1]))
    noise = Noise("gaussian", max(1.0, float(counts.errors.mean()) / _AT_95))
    asked = marginal(domain, *names)
    values = np.asarray(counts.values).transpose([names.index(name) for name in asked.names])
    return replace(one, question=asked, values=np.rint(values).astype(np.int64).ravel(), unit=1, noise=noise)


@dataclass(frozen=True, slots=True)
class TableDistance:
    """One comparison: a released table, an attribute of it, or all released single questions together.

    largest, mean: over the cells, |share of the made-up rows - released share|.
    noise: the standard deviation of a released share. drawing: that of a share of as many rows drawn at random.
    """

    about: str
    cells: int
    largest: float
    mean: float
    noise: float
    drawing: float


@dataclass(frozen=True, eq=False, repr=False)
class Synthetic(Framed):
    """A made-up table with the declared attributes. A bin is stood for by a value in its middle, a missing one by None.

    >>> from tacit.model.attribute import category, integer
    >>> domain = Domain({"sex": category(["F", "M"]), "age": integer(20, 39, width=10)})
    >>> list(Synthetic.of(domain, [np.array([0, 1]), np.array([1, 0])]).rows())
    [('F', 35), ('M', 25)]
    """

    domain: Domain
    codes: tuple[NDArray[np.integer], ...]
    population: int = 0  # the rows of the table that the answers are about
    released: tuple[Measured, ...] = field(default=())

    @classmethod
    def of(
        cls,
        domain: Domain,
        codes: Sequence[NDArray[np.integer]],
        population: int = 0,
        released: Sequence[Measured] = (),
    ) -> Synthetic:
        """The rows whose attributes have these codes, to be compared with what was released about `population` rows."""
        pairs = zip(domain.shape, codes, strict=True)
        small = tuple(column.astype(np.min_scalar_type(size)) for size, column in pairs)
        return cls(domain, small, population, tuple(released))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.domain.names)

    @cached_property
    def columns(self) -> tuple[tuple[Value | None, ...], ...]:
        """The values, attribute by attribute."""
        return tuple(tuple(map(values.__getitem__, places.tolist())) for values, places in self._coded)

    @cached_property
    def distances(self) -> tuple[TableDistance, ...]:
        """How far these rows are from the released tables and questions, as fractions of all rows."""
        return distances(self.domain, self.codes, self.population, self.released) if self.population else ()

    @property
    def note(self) -> str:
        """The distances in one line."""
        if not self.distances:
            return "no released table or count to compare these rows with"
        worst = max(self.distances, key=lambda one: one.largest)
        cells = sum(one.cells for one in self.distances)
        mean = sum(one.mean * one.cells for one in self.distances) / cells
        return (
            f"off the released shares by {_percent(mean)} of the rows on average over {cells:,} cells, at most by "
            f"{_percent(worst.largest)} ({worst.about}), where the release's noise is {_percent(worst.noise)} and that "
            f"of drawing {len(self):,} rows {_percent(worst.drawing)}"
        )

    def __len__(self) -> int:
        return len(self.codes[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Synthetic):
            return NotImplemented
        same = zip(self.codes, other.codes, strict=False)
        return self.domain == other.domain and all(np.array_equal(a, b) for a, b in same)

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> Iterator[tuple[Value | None, ...]]:
        yield from zip(*self.columns, strict=True)

    def to_dict(self) -> dict[str, list[Value | None]]:
        """Columns by name, as plain Python values."""
        return dict(zip(self.names, map(list, self.columns), strict=True))

    def frame(self) -> Frame:
        """A column for each attribute. One that has an `other` value is text throughout."""
        attributes = [self.domain[name] for name in self.names]
        return Frame(
            tuple(
                FrameColumn(name, _kind(attribute), values, places)
                for name, attribute, (values, places) in zip(self.names, attributes, self._coded, strict=True)
            )
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the rows to a .csv or .parquet file: all of them or nothing."""
        return self.frame().save(path, overwrite=overwrite)

    def __repr__(self) -> str:
        return f"Synthetic({len(self):,} rows of {', '.join(self.names)}; {self.note})"

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        few = Synthetic(self.domain, tuple(column[:_SHOWN] for column in self.codes))
        about = f"{len(self):,} synthetic rows"
        return notebook(caption=about, head=self.names, rows=few.rows(), notes=[self.note], text_only=True)

    @cached_property
    def _coded(self) -> list[tuple[list[Value | None], NDArray[np.integer]]]:
        """For each attribute the values that occur, and each row's place among them."""
        found = []
        for name, column in zip(self.names, self.codes, strict=True):
            attribute = self.domain[name]
            used: NDArray[np.integer] = np.flatnonzero(np.bincount(column, minlength=1))
            places = np.zeros(attribute.size, dtype=np.intp)
            places[used] = np.arange(len(used))
            found.append(([attribute.typical(int(code)) for code in used], places[column]))
        return found


def distances(domain: Domain, codes: CodeColumns, rows: int, released: Iterable[Measured]) -> tuple[TableDistance, ...]:
    """Every released table, then every attribute that only wider tables tell of, then the single questions as one."""
    measured = list(released)
    tally = _tally(domain, codes)
    tables = [one for one in measured if isinstance(one.question, Marginal) and _small(_scope(one.question), domain)]
    found = [_table(one, domain, tally, len(codes[0]), rows) for one in tables]
    found += [part for one in measured for part in _residuals(one, domain, tally, len(codes[0]), rows)]
    told = {name for one in measured if isinstance(one.question, Residuals) for name in one.question.names}
    found += [one for one in _attributes(tables, domain, tally, len(codes[0]), rows) if one.about not in told]
    singles = [one for one in measured if isinstance(one.question, Query)]
    parts = [part for one in singles if (part := _single(one, domain, tally, len(codes[0]), rows)) is not None]
    if parts:
        found.append(_together("single question" if len(parts) == 1 else "single questions", parts))
    return tuple(found)


def _table(one: Measured, domain: Domain, tally: Tally, drawn: int, rows: int) -> TableDistance:
    assert isinstance(one.question, Marginal)
    names = one.question.names
    shape = domain.shape_of(names)
    scope = _scope(one.question)
    chosen = one.question.where.table(scope, domain.shape_of(scope))
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


def _residuals(one: Measured, domain: Domain, tally: Tally, drawn: int, rows: int) -> Iterator[TableDistance]:
    """Each table of a release of many, put together from its parts; nothing where it is another release."""
    if not isinstance(one.question, Residuals):
        return
    read = NoisyResiduals(one, domain, rows, 0.95)
    for scope in one.question.scopes:
        asked = marginal(domain, *scope)
        if read.has(asked) and _small(scope, domain):
            noise = math.sqrt(read.spread(scope)) / rows
            yield _distance(describe(asked, domain), tally(scope) / drawn, read.counts(scope) / rows, noise, drawn)


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
        shape = domain.shape_of(best.question.names)
        others = tuple(axis for axis, other in enumerate(best.question.names) if other != name)
        share = best.values.reshape(shape).sum(axis=others) / (rows * best.unit)
        yield _distance(name, tally((name,)) / drawn, share, math.sqrt(noise) / rows, drawn)


def _single(one: Measured, domain: Domain, tally: Tally, drawn: int, rows: int) -> TableDistance | None:
    assert isinstance(one.question, Query)
    scope = one.question.scope
    if not _small(scope, domain):
        return None
    inside = one.question.table(scope, domain.shape_of(scope)) / one.question.unit
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
    return domain.size_of(scope) <= MAX_COMPARED_CELLS


def _tally(domain: Domain, codes: CodeColumns) -> Tally:
    columns = dict(zip(domain.names, codes, strict=True))

    @lru_cache(maxsize=64)
    def tally(names: tuple[str, ...]) -> Counts:
        """How many of the made-up rows there are of each combination."""
        shape = domain.shape_of(names)
        place = np.zeros(len(codes[0]), dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            place = place * size + columns[name]
        return np.bincount(place, minlength=math.prod(shape)).reshape(shape)

    return tally


def _kind(attribute: Attribute) -> ColumnKind:
    """The kind of its values in a frame: from the declaration alone, so that it does not depend on the rows drawn."""
    if attribute.other is not None:
        return "text"
    listed = "whole" if isinstance(attribute.typical(0), int) else "text"
    return _KINDS.get(attribute.kind, listed)  # type: ignore[arg-type]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
