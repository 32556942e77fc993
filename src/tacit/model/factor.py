"""Trusted words: the weights of a question over a few attributes, of which queries are products.

Weights live on an integer grid (0 and 1 for predicates, multiples of 2^-20 otherwise), so that true answers are exact
integers. What was made cannot change: the weights are views of bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from msgspec.json import encode
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import MAX_BINS

GRID = 2**20  # grid steps in a weight of 1, for queries that are not predicates
MAX_TABLE = 2**20  # entries of one factor
MAX_JOINED = 8  # attributes of one factor: the search for its irreducible parts tries their subsets
Weights = NDArray[np.integer[Any]]
_SHORT = 2**14  # cells of a factor that is worth keeping
_WIDE, _PER_RUN = 2**8, 64  # cells from which on a factor is written in runs, where each stands for so many of them
_MOST_AXES = 64  # of a shape that is read: how many there may be is said later, in better words
_MOST_IN_RUNS = MAX_BINS + 2  # cells: the values of the widest attribute, and what is other or missing
_HEX = re.compile("[0-9a-f]+")
_HALVES = re.compile("[\ud800-\udfff]")  # of characters: two of them would be spelled as one
TYPES: dict[int, type[np.integer[Any]]] = {1: np.uint8, GRID: np.int32}  # of the canonical form, by its grid


@dataclass(frozen=True, eq=False, slots=True)
class Factor:
    """Weights over a small scope: integers from 0 to `unit`, one axis for each attribute, the scope in sorted order."""

    scope: tuple[str, ...]
    weights: Weights
    unit: int

    def __post_init__(self) -> None:
        if type(self.unit) is not int or self.unit not in (1, GRID):
            raise InvalidQuery("the weights of a question are whole steps of its grid.")
        named = type(self.scope) is tuple and all(type(name) is str for name in self.scope)
        if not named or list(self.scope) != sorted(set(self.scope)) or _HALVES.search("".join(self.scope)):
            raise InvalidQuery("the weights of a question are about attributes, each named once and in order.")
        weights = np.array(self.weights)
        if weights.ndim != len(self.scope) or not weights.size or weights.dtype.kind not in "iu":
            raise InvalidQuery("the weights of a question are whole numbers, with an axis for each attribute.")
        if weights.min() < 0 or weights.max() > self.unit:
            raise InvalidQuery("the weights of a question lie between 0 and 1, all of them.")
        if len(self.scope) > 1:
            check_size(self.scope, weights.shape)
        object.__setattr__(self, "weights", frozen(weights, TYPES[self.unit]))

    @classmethod
    def among(cls, name: str, size: int, indices: Iterable[int]) -> Factor:
        """Weight 1 for the listed values of an attribute, and 0 for its other ones."""
        weights = np.zeros(size, dtype=np.uint8)
        if isinstance(indices, range) and indices.start >= 0 and indices.step > 0:  # a million values are one stroke
            weights[indices.start : indices.stop : indices.step] = 1
        else:
            weights[list(indices)] = 1
        return unchecked((name,), weights, 1)

    def __reduce__(self) -> tuple[type[Factor], tuple[object, ...]]:
        return Factor, (self.scope, self.weights, self.unit)  # what is unpickled is checked, and frozen, again

    def flipped(self) -> Factor:
        return unchecked(self.scope, self.unit - self.weights, self.unit)


def frozen(values: NDArray[Any], kind: type[np.integer[Any]]) -> NDArray[Any]:
    """A copy that is a view of bytes, which nobody can make writable: what is checked is what is looked at.

    numpy lets dtype and shape of any array be set, also of this one: `Query.fits` refuses what came of that.
    """
    return np.frombuffer(values.astype(kind).tobytes(), dtype=kind).reshape(values.shape)


def unchecked(scope: tuple[str, ...], weights: NDArray[Any], unit: int) -> Factor:
    """A factor of weights that were worked out here, and need no check."""
    made = object.__new__(Factor)
    object.__setattr__(made, "scope", scope)
    object.__setattr__(made, "weights", frozen(weights, TYPES[unit]))
    object.__setattr__(made, "unit", unit)
    return made


def multiply(a: NDArray[Any], unit_a: int, b: NDArray[Any], unit_b: int) -> tuple[NDArray[np.int64], int]:
    """The product of two arrays of weights on their grids, rounded to the grid: the one rounding rule everywhere."""
    product = np.multiply(a, b, dtype=np.int64)
    if unit_a > 1 and unit_b > 1:
        return (product + GRID // 2) // GRID, GRID
    return product, max(unit_a, unit_b)


def join(a: Factor, b: Factor) -> Factor:
    """The product of two factors as one table over both scopes."""
    scope = tuple(sorted({*a.scope, *b.scope}))
    sizes = dict(zip(a.scope, a.weights.shape, strict=True)) | dict(zip(b.scope, b.weights.shape, strict=True))
    check_size(scope, [sizes[name] for name in scope])
    spread = [f.weights.reshape([sizes[n] if n in f.scope else 1 for n in scope]) for f in (a, b)]
    weights, unit = multiply(spread[0], a.unit, spread[1], b.unit)
    return unchecked(scope, weights, unit)


def check_size(scope: Sequence[str], shape: Sequence[int]) -> None:
    if len(scope) > 1 and (len(scope) > MAX_JOINED or math.prod(shape) > MAX_TABLE):  # one attribute is no tie
        raise InvalidQuery(
            f"the question ties {len(scope)} attributes together ({', '.join(scope)}: {math.prod(shape):,} values); "
            f"at most {MAX_JOINED} attributes and {MAX_TABLE:,} values can be. A conjunction has no such limit."
        )


def everyday(factor: Factor) -> bool:
    """Whether this is a condition on one attribute that some of its values meet and others do not."""
    weights = factor.weights
    return len(factor.scope) == 1 and factor.unit == 1 and 0 < int(np.count_nonzero(weights)) < weights.size


def turned(weights: Weights) -> bool:
    """Whether a lone condition is the complement of its canonical form, which meets fewer values.

    Of two halves, the one without the first value is canonical.
    """
    twice = 2 * int(np.count_nonzero(weights))
    return twice > weights.size or (twice == weights.size and bool(weights.flat[0]))


def rank(factor: Factor) -> tuple[int, bytes]:
    """Orders a table and its complement: the one that selects fewer comes first, and no two compare equal."""
    weights = factor.weights
    return int(weights.sum(dtype=np.int64)), weights.astype(weights.dtype.newbyteorder(">")).tobytes()


ONE = unchecked((), np.ones(()), 1)


def reduced(factor: Factor) -> Factor:
    """Without the attributes on which the weights do not depend, and as 0/1 where they are."""
    scope, weights = list(factor.scope), factor.weights
    if everyday(factor):
        return factor
    for axis in reversed(range(len(scope))):
        first = weights.take([0], axis)
        if (weights == first).all():
            weights = first.squeeze(axis)
            del scope[axis]
    if factor.unit > 1 and ((weights == 0) | (weights == factor.unit)).all():
        return unchecked(tuple(scope), weights > 0, 1)
    return unchecked(tuple(scope), weights, factor.unit)


def irreducible(factor: Factor) -> list[Factor]:
    """The finest product of 0/1 tables that a 0/1 table is; weighted tables stay whole.

    A set is a product over a split of its attributes exactly when its size is the product of its projections' sizes.
    The finest such split is unique, so it does not matter in which order splits are tried.
    """
    if factor.unit > 1 or len(factor.scope) < 2:
        return [factor]
    weights = _longest_innermost(factor.weights)
    if _hang_together(weights):  # the search below takes many times as long, and announcing it few characters
        return [factor]
    axes, total, onto = range(weights.ndim), int(np.count_nonzero(weights)), _projections(weights)
    for size in range(1, len(axes) // 2 + 1):
        for some in combinations(axes, size):
            rest = tuple(axis for axis in axes if axis not in some)
            if np.count_nonzero(onto(some)) * np.count_nonzero(onto(rest)) == total:
                return [
                    part
                    for kept in (some, rest)
                    for part in irreducible(unchecked(tuple(factor.scope[a] for a in kept), onto(kept), 1))
                ]
    return [factor]


def _longest_innermost(weights: Weights) -> Weights:
    """The same table, in memory with its longest axis innermost: sums along many short axes take a hundredth so."""
    order = np.argsort(weights.shape, kind="stable")
    return np.ascontiguousarray(weights.transpose(order)).transpose(np.argsort(order))


def _projections(weights: Weights) -> Callable[[tuple[int, ...]], Weights]:
    """Projects a 0/1 table onto some of its axes: which of their values are met together by anything.

    Each projection is made of one with a single axis more, and kept: all 2^d of them together look at little more than
    Π (n_i + 1) cells, and not at all cells 2^d times.
    """
    axes = tuple(range(weights.ndim))
    known = {axes: weights}

    def onto(kept: tuple[int, ...]) -> Weights:
        if kept not in known:
            gone = min((axis for axis in axes if axis not in kept), key=lambda axis: weights.shape[axis])
            wider = tuple(sorted((*kept, gone)))
            known[kept] = onto(wider).max(axis=wider.index(gone))
        return known[kept]

    return onto


def _hang_together(weights: Weights) -> bool:
    """Whether every attribute depends on the first one, in a 0/1 table: then no split makes a product of it.

    In a product over a split, any value of one side and any of the other are met together as often as the product of
    how often each is met, over all. So two attributes of which that is not true stand on one side, and so do all.
    """
    axes = range(weights.ndim)

    def met(*kept: int) -> NDArray[np.int64]:
        others = tuple(axis for axis in axes if axis not in kept)
        return np.asarray(weights.sum(axis=others, dtype=np.int64))

    first = met(0)
    total = first.sum()
    return all((met(0, axis) * total != np.outer(first, met(axis))).any() for axis in axes[1:])


def written(factor: Factor) -> str:
    """A factor in its one JSON spelling, of which the key of a query is a hash."""
    scope, weights, unit = factor.scope, factor.weights, factor.unit
    if unit == 1 and weights.size < _WIDE:  # nearly all are, and every question has a key
        return f'{_about(scope, weights.shape, unit)}"{np.packbits(weights).tobytes().hex()}"}}'
    return f"{_about(scope, weights.shape, unit)}{encode(write_weights(factor)).decode()}}}"


@lru_cache(maxsize=4096)
def _about(scope: tuple[str, ...], shape: tuple[int, ...], unit: int) -> str:
    """What stands before the weights of a factor."""
    form = json.dumps({"scope": scope, "shape": shape, "unit": unit}, separators=(",", ":"))
    return f'{form[:-1]},"weights":'


def conditions_in_digits(size: int) -> str | None:
    """A pattern of the digits, in quotes, of all conditions on so few values that some meet and others do not.

    None of one value, or of so many that some are written in runs.
    """
    if not 1 < size < _WIDE:
        return None
    digits = _digits(size)
    spare = 4 * digits - size
    every = format((1 << size) - 1 << spare, f"0{digits}x")
    last = {0: "[0-9a-f]", 1: "[02468ace]", 2: "[048c]", 3: "[08]"}[spare % 4] + "0" * (spare // 4)
    return f'"(?!0+"|{every}")[0-9a-f]{{{digits - 1 - spare // 4}}}{last}"'


def alone_in_digits(size: int, digits: str) -> bool | None:
    """Whether a condition on an attribute of so many values may stand by itself, by its digits.

    None unless some values meet it and others do not, and these digits are the one form that `write_weights` gives it.
    For readers of many questions: a `Factor` takes ten times as long.
    """
    bits = _bits_of(size, digits)
    if bits is None:
        return None
    met = bits.bit_count()
    return _is_canonical(met, size, bool(bits >> size - 1)) if 0 < met < size else None


def alone_in_rows(rows: int, size: int, digits: str) -> bool | None:
    """As `alone_in_digits`, of a table over two attributes, the second of which has `size` values.

    None also of a product of two conditions, or of one: in these all rows that meet anything are alike, and so are all
    columns. By itself a table is no question if its complement is a product.
    """
    bits = _bits_of(rows * size, digits)
    if bits is None:
        return None
    cells = format(bits, f"0{rows * size}b")
    if rows <= size:
        lines = {cells[start : start + size] for start in range(0, len(cells), size)}
    else:  # there are fewer columns
        lines = {cells[start::size] for start in range(size)}
    longer = max(rows, size)
    if len(lines - {"0" * longer}) < 2:
        return None
    return len(lines - {"1" * longer}) > 1 and _is_canonical(bits.bit_count(), len(cells), cells[0] == "1")


def _bits_of(cells: int, digits: str) -> int | None:
    """The bits of a table, by the digits that `write_weights` gives it; None of others."""
    if len(digits) != _digits(cells) or _HEX.fullmatch(digits) is None:
        return None
    bits = int(digits, 16)
    spare = 4 * len(digits) - cells  # the last byte may have more bits than there are cells
    if bits & (1 << spare) - 1:
        return None
    bits >>= spare
    if cells >= _WIDE and ((bits ^ bits >> 1) & (1 << cells - 1) - 1).bit_count() <= cells // _PER_RUN:
        return None  # between so few cells that differ it is written in runs
    return bits


def alone_in_runs(size: int, runs: Sequence[int]) -> bool | None:
    """As `alone_in_digits`, of a condition that is written in runs."""
    first, *others = runs
    whole = first >= 0 and min(others, default=0) > 0 and first + sum(others) == size
    edges, met = len(others) - (first == 0), sum(runs[1::2])
    if not whole or size < _WIDE or edges > size // _PER_RUN or not 0 < met < size:
        return None
    return _is_canonical(met, size, first == 0)


def alone_in_steps(size: int, steps: Sequence[int]) -> bool | None:
    """As `alone_in_digits`, of weights on the grid, which are written as whole steps of it.

    None also of what is no weight but a condition, or the same for all values: those are written in other ways.
    """
    if len(steps) != size or not 0 <= min(steps) < max(steps) <= GRID or not any(0 < step < GRID for step in steps):
        return None
    twice, most = 2 * sum(steps), size * GRID
    return twice < most or (twice == most and list(steps) <= [GRID - step for step in steps])  # see `rank`


def _is_canonical(met: int, size: int, first: bool) -> bool:
    """Whether a lone condition that so many values meet, perhaps the first of them, is not `turned`."""
    return 2 * met < size or (2 * met == size and not first)


def write_weights(factor: Factor) -> str | list[int]:
    """The weights in their one JSON form: bits, or runs where an attribute is so wide that they are much shorter."""
    wide = factor.unit == 1 and factor.weights.size >= _WIDE
    if wide and (runs := _runs(factor.weights.ravel())) is not None:
        return runs
    return np.packbits(factor.weights).tobytes().hex() if factor.unit == 1 else factor.weights.ravel().tolist()


def _runs(flat: Weights) -> list[int] | None:
    """The lengths of the runs of 0 and of 1 by turns, 0 first; None of weights that are ragged."""
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    if len(edges) > flat.size // _PER_RUN:
        return None
    ends = [-1, *edges.tolist(), flat.size - 1]  # few: numpy's `diff` takes five times as long
    lengths: list[int] = [last - before for before, last in pairwise(ends)]
    return [0, *lengths] if flat[0] else lengths


def _digits(cells: int) -> int:
    """How many hexadecimal digits the bits of so many cells are written with."""
    return 2 * -(-cells // 8)


def read_factor(form: dict[str, Any]) -> Factor:
    """A factor of its JSON form; see `Query.to_dict`."""
    scope, shape, unit, weights = tuple(form["scope"]), tuple(form["shape"]), form["unit"], form["weights"]
    if not _fit(weights, shape, unit):
        raise InvalidQuery("the weights of a question do not have its shape.")  # before any array is made of them
    if len(shape) > 1:
        check_size(scope, shape)
    if unit != 1:
        return Factor(scope, np.array(weights).reshape(shape), unit)
    written = weights if isinstance(weights, str) else tuple(weights)
    # Many questions have the same conditions, and a factor cannot be changed: so they may share it.
    cells = math.prod(shape)
    short = cells <= _SHORT and (isinstance(written, str) or len(written) <= 2 + cells // _PER_RUN)
    make = _of_bits_or_runs if short else _of_bits_or_runs.__wrapped__
    return make(scope, shape, written)


def _fit(weights: object, shape: tuple[Any, ...], unit: object) -> bool:
    """Whether these are digits, lengths of runs or numbers for as many cells as a table of this shape has."""
    whole = all(type(number) is int for number in (*shape, unit))
    if not whole or len(shape) > _MOST_AXES or not all(1 <= size <= _MOST_IN_RUNS for size in shape):
        return False
    cells: int = math.prod(shape)
    if unit == 1 and isinstance(weights, str):
        return len(weights) == _digits(cells) and _HEX.fullmatch(weights) is not None
    if not isinstance(weights, list) or not all(type(number) is int for number in weights):
        return False
    if unit != 1:
        return len(weights) == cells
    first, others = weights[:1], weights[1:]
    return min(first, default=0) >= 0 and min(others, default=1) > 0 and cells == sum(weights) <= _MOST_IN_RUNS


@lru_cache(maxsize=4096)
def _of_bits_or_runs(scope: tuple[str, ...], shape: tuple[int, ...], written: str | tuple[int, ...]) -> Factor:
    if isinstance(written, str):
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(written), dtype=np.uint8), count=math.prod(shape))
    else:
        bits = np.repeat(np.arange(len(written), dtype=np.uint8) % 2, written)
    return Factor(scope, bits.reshape(shape), 1)
