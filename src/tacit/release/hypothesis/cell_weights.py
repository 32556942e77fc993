"""A distribution over X held as one array: the hypothesis of multiplicative weights on domains that can be listed.

The array lies in memory, or on a graphics card for domains of up to 10^10 cells; all that is small is in memory. The
weights are not normalised. A change touches only the cells that its query selects and moves the total along with
them, so that a narrow question about 10^8 cells costs what its own cells cost. Every answer is a function of the
changes made alone, to the last bit: what is cached decides how long an answer takes, never what it is. A card's answers
are those of memory up to rounding.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.hypothesis.arrays import MEMORY, Device, room, torch_device

MAX_LISTED_CELLS = 2**27  # one gigabyte
MAX_TILT = 200.0  # a cell's weight times this power of e stays a number
Array = NDArray[np.float64]

_REMEMBERED = 2**22  # cells of all marginals that are kept between two changes
_LARGEST = 2**20  # cells of one such marginal
_FEW = 2**12  # cells of a support that are summed where they are, without a marginal
_LONG = 64  # neighbouring cells that make summing over an axis fast
_TOGETHER = 2**15  # cells of marginals that are worked on at once
_SMALL_PIECE = 256  # cells: below this, gathering cells one by one beats slicing them out
_RANGE = (1e-100, 1e100)  # where the total may wander before the weights are divided by it
_LOOSE = 1e-11  # relative rounding error at which the total is summed afresh
_BLOCK = 2**20  # cells on a card that rows are drawn from together


def listed(domain: Domain) -> Dense:
    """The uniform distribution over X: in memory where X fits there, else on a card if there is one with room."""
    return Dense(domain, device=torch_device() if MAX_LISTED_CELLS < domain.size <= room() else MEMORY)


class Dense:
    """A distribution over X: weights in an array of the domain's shape, and their sum.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> hypothesis = Dense(domain)
    >>> red = Query.among(domain, "hair", [0])
    >>> hypothesis.scale(red, math.log(4))
    >>> round(hypothesis.answer(red), 3), hypothesis.marginal(["sex"]).tolist()
    (0.667, [0.5, 0.5])
    """

    def __init__(self, domain: Domain, weights: ArrayLike | None = None, *, device: Device = MEMORY) -> None:
        """The uniform distribution, or the one proportional to these weights (which are copied)."""
        most = MAX_LISTED_CELLS if device.name == "cpu" else room()
        if domain.size > most:
            raise InvalidDomain(
                f"the domain has {domain.size:,} cells; a distribution over all of them has at most {most:,}."
            )
        self.domain, self._device = domain, device
        if weights is None:
            self._weights = device.xp.ones(domain.shape, dtype=device.xp.float64, device=device.name)
        else:
            self._weights = device.hold(weights, "float64")
        if tuple(self._weights.shape) != domain.shape:
            raise InvalidDomain(f"the weights have shape {tuple(self._weights.shape)}; the domain's is {domain.shape}.")
        if not bool((self._weights >= 0).all()) or not 0 < float(self._weights.sum()) < math.inf:
            raise InvalidDomain(
                "the weights of a distribution are numbers from 0, and one of them at least is above 0."
            )
        self._fast_axes = sorted(range(len(domain)), key=self._cost)
        self._marginals: OrderedDict[tuple[int, ...], Array] = OrderedDict()
        self._remembered = 0
        self._last: tuple[str, Array, Array] | None = None
        self._total = 0.0
        self._rounding = 0.0
        self._resum()

    def answer(self, query: Query) -> float:
        """The query's value: its expected weight, in [0, 1]."""
        return float(self.answer_many([query])[0])

    def answer_many(self, queries: Sequence[Query]) -> Array:
        """The same values as from `answer`, to the last bit; conjunctions about the same attributes go together."""
        values = np.empty(len(queries))
        boxes: dict[tuple[str, ...], list[int]] = {}
        others: list[int] = []
        for i, query in enumerate(queries):
            self._check(query)
            if self._is_box(query):
                boxes.setdefault(query.scope, []).append(i)
            else:
                others.append(i)
        for places in boxes.values():
            values[places] = self._box_values([queries[i].factors for i in places])
        for i in sorted(others, key=lambda i: queries[i].scope):  # the next one may need the same marginal
            values[i] = self._value(queries[i].core)
        flipped = np.array([query.complement for query in queries], dtype=np.bool_)
        return np.where(flipped, 1 - values, values)

    def marginal(self, names: Sequence[str]) -> Array:
        """The distribution of these attributes, with one axis for each in the given order."""
        axes = [self.domain.names.index(self.domain.resolve(name)) for name in names]
        if len(set(axes)) < len(axes):
            raise InvalidQuery("a table has each of its attributes once.")
        sums = self._marginal(tuple(sorted(axes)))
        shares: Array = sums.transpose(np.argsort(np.argsort(axes))) / self._total
        return shares

    def answer_table(self, table: Marginal) -> Array:
        """The shares in all cells of a table, in the order of its queries."""
        if table.where.is_everyone:
            return self.marginal(table.names).ravel()
        return self.answer_many(list(table.queries(self.domain)))

    def arrays(self) -> list[Array]:
        """All of it, in numbers whose bits can be compared."""
        return [self.marginal(self.domain.names)]

    @property
    def weights(self) -> Array:
        """The weights of all cells, as they are held: not divided by their sum."""
        return self._device.back(self._weights)

    def profile(self, query: Query) -> tuple[Array, Array]:
        """The weights that the query gives, and how probable each is: all that a tilt by this query depends on."""
        self._check(query)
        values, masses = self._profile(query.core)
        return 1 - values if query.complement else values, masses / masses.sum()

    def scale(self, query: Query, tilt: float) -> None:
        """Multiplies the probability of each cell x by exp(tilt * q(x)), in place, and renormalises.

        Only ratios matter, so scaling by a complement 1 - q is scaling by q the other way: the fewer cells are touched.
        No cell may gain or lose more than a factor of exp(200).
        """
        self._check(query)
        if query.is_constant or tilt == 0:
            return
        core = query.core
        tilt = -tilt if query.complement else tilt
        values, masses = self._profile(core)
        if not abs(tilt) * float(values.max()) <= MAX_TILT:
            raise ValueError(f"a tilt of {tilt} would scale cells by more than exp({MAX_TILT}).")
        gain = float((masses * np.expm1(tilt * values)).sum())
        _support(core, self.domain.names, self.domain.shape).scale(self._weights, tilt, self._device)
        self._forget()
        before, self._total = self._total, self._total + gain
        # A sum over millions of cells is off by 1e-14 of itself or so; the total is off by its last bit.
        self._rounding += 2e-16 * before + 1e-14 * abs(gain)
        if self._rounding > _LOOSE * self._total or not _RANGE[0] < self._total < _RANGE[1]:
            self._resum()

    def draw(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> list[NDArray[np.intp]]:
        """Independent rows from the distribution, as one column of codes for each attribute.

        With `even` they are a systematic sample instead: a cell has as many as it should, or one more or less.
        A card first finds the block of cells that a row lies in, and then its cell; memory has one block.
        """
        xp, flat, size = self._device.xp, self._weights.reshape(-1), self.domain.size
        length = size if xp is np else _BLOCK

        @lru_cache(maxsize=1)
        def sums(block: int) -> Any:
            return xp.cumsum(flat[block * length : (block + 1) * length], 0)

        ends = np.cumsum([float(sums(block)[-1]) for block in range(-(-size // length))])
        places = even_places(rows, rng, even=even) * ends[-1]
        blocks = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
        cells = np.empty(rows, dtype=np.intp)
        for block in np.unique(blocks).tolist():
            mine = np.flatnonzero(blocks == block)
            within = self._device.hold(places[mine] - (ends[block - 1] if block else 0.0))
            found = self._device.back(xp.searchsorted(sums(block), within, side="right"))
            cells[mine] = block * length + np.minimum(found, len(sums(block)) - 1)
        return list(np.unravel_index(cells, self.domain.shape))

    def copy(self) -> Dense:
        """An independent one; marginals computed so far are shared, since they are never written to."""
        other = Dense.__new__(Dense)
        other.__dict__.update(self.__dict__)
        other._weights = self._weights + 0.0
        other._marginals = self._marginals.copy()
        return other

    def _is_box(self, query: Query) -> bool:
        """Whether a marginal is the way to a conjunction's value. By the query alone: the way decides the last bit."""
        size, cells = 1, self.domain.size
        for factor in query.factors:
            if len(factor.scope) > 1 or factor.unit > 1:
                return False
            length = len(factor.weights)
            size *= length
            cells = cells // length * int(np.count_nonzero(factor.weights))
        return bool(query.scope) and cells > _FEW and size <= _LARGEST

    def _box_values(self, conjunctions: Sequence[tuple[Factor, ...]]) -> Array:
        """The values of conjunctions about the same attributes: the marginal, summed over one axis after the other.

        Each sum runs along contiguous numbers of one query, so that it does not matter what else is asked.
        """
        names = self.domain.names
        places = [names.index(factor.scope[0]) for factor in conjunctions[0]]
        table = self._marginal(tuple(sorted(places)))
        met = [  # for each axis of the table, a row of weights for each query
            np.frombuffer(b"".join([factors[i].weights.tobytes() for factors in conjunctions]), dtype=np.uint8)
            .reshape(len(conjunctions), -1)
            .astype(np.float64)
            for i in np.argsort(places)
        ]
        values, step = np.empty(len(conjunctions)), max(1, _TOGETHER // table.size)
        for start in range(0, len(conjunctions), step):
            part = slice(start, start + step)
            sums = np.broadcast_to(table, (len(values[part]), *table.shape))
            for weights in reversed(met):
                rows = weights[part].reshape(sums.shape[0], *[1] * (sums.ndim - 2), -1)
                sums = np.multiply(sums, rows, out=np.empty(sums.shape)).sum(axis=-1)
            values[part] = sums
        return np.clip(values / self._total, 0.0, 1.0)

    def _value(self, query: Query) -> float:
        if query.is_constant:
            return int(query.table((), ())) / query.unit
        names, shape = self.domain.names, self.domain.shape
        support = _support(query, names, shape)
        axes = tuple(axis for axis, name in enumerate(names) if name in query.scope)
        sizes = [shape[axis] for axis in axes]
        if support.cells <= _FEW or math.prod(sizes) > _LARGEST:
            values, masses = self._profile(query, support)
        else:
            local = _support(query, [names[axis] for axis in axes], sizes)
            values, masses = local.values(), local.masses(self._marginal(axes), MEMORY)
        value = float((values * masses).sum()) / self._total
        return min(1.0, max(0.0, value))

    def _profile(self, query: Query, support: Support | None = None) -> tuple[Array, Array]:
        """The query's weights and the unnormalised masses of the cells that have them, from the cells themselves."""
        if self._last is None or self._last[0] != query.key:
            if query.is_constant:
                values, masses = np.array([int(query.table((), ())) / query.unit]), np.array([self._total])
            else:
                support = support or _support(query, self.domain.names, self.domain.shape)
                values, masses = support.values(), support.masses(self._weights, self._device)
                rest = max(0.0, self._total - float(masses.sum()))
                if support.partial:
                    values, masses = np.append(values, 0.0), np.append(masses, rest)
            self._last = query.key, values, masses
        return self._last[1:]

    def _marginal(self, axes: tuple[int, ...]) -> Array:
        """Unnormalised sums over all other axes, in an order of summation that depends on the axes alone."""
        if len(axes) == len(self.domain):
            return self._summed(())
        if axes in self._marginals:
            self._marginals.move_to_end(axes)
            return self._marginals[axes]
        others = [axis for axis in self._fast_axes if axis not in axes]  # summed over in this order
        size = math.prod(self.domain.shape[axis] for axis in axes)
        wider = sorted((*axes, others[-1]))
        if len(others) > 1 and size * self.domain.shape[others[-1]] <= _LARGEST:
            result = np.asarray(self._marginal(tuple(wider)).sum(axis=wider.index(others[-1])))
        else:
            result = self._summed(tuple(others))
        result.setflags(write=False)
        if size <= _LARGEST:
            self._marginals[axes] = result
            self._remembered += size
            while self._remembered > _REMEMBERED:
                self._remembered -= self._marginals.popitem(last=False)[1].size
        return result

    def _summed(self, axes: tuple[int, ...]) -> Array:
        return self._device.back(self._weights.sum(axis=axes) if axes else self._weights)

    def _cost(self, axis: int) -> tuple[bool, int]:
        shape = self.domain.shape
        return math.prod(shape[axis + 1 :]) < _LONG, -shape[axis]

    def _resum(self) -> None:
        """Sums the weights afresh, and brings them back to where products neither overflow nor vanish."""
        self._total, self._rounding = float(self._weights.sum()), 0.0
        if not _RANGE[0] < self._total < _RANGE[1]:
            self._weights /= self._total
            self._total = float(self._weights.sum())

    def _forget(self) -> None:
        self._marginals.clear()
        self._remembered = 0
        self._last = None

    def _check(self, query: Query) -> None:
        if not query.fits(self.domain):
            raise InvalidQuery("the question was made for another domain.")


def even_places(rows: int, rng: np.random.Generator, *, even: bool) -> Array:
    """Numbers from 0 to 1: independent ones, or evenly spaced from a random first one."""
    return (np.arange(rows) + rng.random()) / rows if even else rng.random(rows)


class Support(NamedTuple):
    """Where a query without complement has weights above 0: pieces of the array, and a table of weights or just 1."""

    pieces: list[tuple[slice | NDArray[np.intp], ...]]
    table: Array | None  # one axis for each of the array's, of length 1 where the weights do not depend on it
    cells: int
    partial: bool  # whether there are cells in no piece

    def values(self) -> Array:
        return np.ones(1) if self.table is None else self.table.ravel()

    def masses(self, array: Any, device: Device) -> Array:
        """The sum of the cells that have each of the values."""
        parts = (array[piece] for piece in self._pieces(device))
        if self.table is None:
            return np.array([sum(float(part.sum()) for part in parts)])
        axes = tuple(axis for axis, length in enumerate(self.table.shape) if length == 1)
        sums = np.zeros(self.table.shape)
        for part in parts:
            sums += device.back(part.sum(axis=axes, keepdims=True) if axes else part)
        return sums.ravel()

    def scale(self, array: Any, tilt: float, device: Device) -> None:
        factor = math.exp(tilt) if self.table is None else device.hold(np.exp(tilt * self.table))
        for piece in self._pieces(device):
            array[piece] *= factor

    def _pieces(self, device: Device) -> Iterator[tuple[Any, ...]]:
        for piece in self.pieces:
            yield tuple(part if isinstance(part, slice) else device.hold(part) for part in piece)


def _support(query: Query, names: Sequence[str], shape: Sequence[int]) -> Support:
    """Conditions on one attribute each select a box; whatever else there is becomes one table of weights on it."""
    chosen: dict[int, NDArray[np.intp]] = {}
    others = []
    for factor in query.factors:
        if len(factor.scope) == 1 and factor.unit == 1:
            chosen[names.index(factor.scope[0])] = np.flatnonzero(factor.weights)
        else:
            others.append(factor)
    table: Array | None = None
    if others:
        joint = Query(tuple(others), complement=False)
        axes = [axis for axis, name in enumerate(names) if name in joint.scope]
        steps = joint.table([names[axis] for axis in axes], [shape[axis] for axis in axes])
        table = (steps / joint.unit).reshape([length if axis in axes else 1 for axis, length in enumerate(shape)])
    runs = [_runs(chosen[axis]) if axis in chosen else [slice(None)] for axis in range(len(shape))]
    cells = math.prod(len(chosen[axis]) if axis in chosen else length for axis, length in enumerate(shape))
    number = math.prod(map(len, runs))
    pieces: Iterable[tuple[slice | NDArray[np.intp], ...]] = product(*runs)
    if number > 1 and cells < number * _SMALL_PIECE:
        pieces = [np.ix_(*(chosen.get(axis, np.arange(length)) for axis, length in enumerate(shape)))]
    return Support(list(pieces), table, cells, partial=bool(chosen))


def _runs(indices: NDArray[np.intp]) -> list[slice]:
    """Slices that hold these ascending indices: a single one where they are evenly spaced."""
    if len(indices) == 1:  # most conditions, in a twentieth of the time
        return [slice(int(indices[0]), int(indices[0]) + 1)]
    steps = np.diff(indices)
    if len(steps) and (steps == steps[0]).all():
        return [slice(int(indices[0]), int(indices[-1]) + 1, int(steps[0]))]
    return [slice(int(run[0]), int(run[-1]) + 1) for run in np.split(indices, np.flatnonzero(steps > 1) + 1)]
