"""Trusted words: linear queries in factored form, and the canonical form by which two spellings are one question.

A query gives every cell of X a weight in [0, 1]; its answer is the sum of the weights over the rows. Weights live on an
integer grid (0 and 1 for predicates, multiples of 2^-20 otherwise), so that true answers are exact integers.

What is not such a query cannot be made, and what was made cannot change: the weights are views of bytes. So whoever
holds a `Query` need only ask whether it `fits` a domain. Prices rest on that.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import MAX_BINS
from tacit.model.domain import Domain

GRID = 2**20  # grid steps in a weight of 1, for queries that are not predicates
MAX_TABLE = 2**20  # entries of one factor
MAX_JOINED = 8  # attributes of one factor: the search for its irreducible parts tries their subsets
Weights = NDArray[np.integer[Any]]
_SHORT = 4096  # digits of weights that are worth keeping
_WIDE, _PER_RUN = 2**14, 64  # cells from which on a factor is written in runs, where each stands for so many of them
_MOST_IN_RUNS = MAX_BINS + 2  # cells: the values of the widest attribute, and what is other or missing
_KEYED = (b"tacit query 1\x00\x00", b"tacit query 1\x00\x01")  # what the key of a query begins with; of a complement
_TYPES: dict[int, type[np.integer[Any]]] = {1: np.uint8, GRID: np.int32}  # of the canonical form, by its grid


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
        if not named or list(self.scope) != sorted(set(self.scope)):
            raise InvalidQuery("the weights of a question are about attributes, each named once and in order.")
        weights = np.array(self.weights)
        if weights.ndim != len(self.scope) or not weights.size or weights.dtype.kind not in "iu":
            raise InvalidQuery("the weights of a question are whole numbers, with an axis for each attribute.")
        if weights.min() < 0 or weights.max() > self.unit:
            raise InvalidQuery("the weights of a question lie between 0 and 1, all of them.")
        if len(self.scope) > 1:
            _check_size(self.scope, weights.shape)
        object.__setattr__(self, "weights", frozen(weights, _TYPES[self.unit]))

    @classmethod
    def among(cls, name: str, size: int, indices: Iterable[int]) -> Factor:
        """Weight 1 for the listed ones of so many values of an attribute, and 0 for the others."""
        weights = np.zeros(size, dtype=np.uint8)
        if isinstance(indices, range) and indices.start >= 0 and indices.step > 0:  # a million values are one stroke
            weights[indices.start : indices.stop : indices.step] = 1
        else:
            weights[list(indices)] = 1
        return _factor((name,), weights, 1)

    def __reduce__(self) -> tuple[type[Factor], tuple[object, ...]]:
        return Factor, (self.scope, self.weights, self.unit)  # what is unpickled is checked, and frozen, again

    def flipped(self) -> Factor:
        return _factor(self.scope, self.unit - self.weights, self.unit)


@dataclass(frozen=True, eq=False)
class Query:
    """A product of factors over disjoint scopes, or one minus such a product: a conjunction never materialises X.

    Queries are always in canonical form: predicates that agree on every cell have equal keys, however they were built.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> woman, red = Query.among(domain, "sex", [0]), Query.among(domain, "hair", [0])
    >>> (woman & red).key == (~(~red | ~woman)).key
    True
    """

    factors: tuple[Factor, ...]
    complement: bool

    def __post_init__(self) -> None:
        if type(self.complement) is not bool or not all(type(factor) is Factor for factor in self.factors):
            raise InvalidQuery("a query is a product of weights, or one minus that.")
        scope = [name for factor in self.factors for name in factor.scope]
        if len(set(scope)) < len(scope):
            raise InvalidQuery("an attribute stands in two factors of the question.")
        made = _canonical(self.factors, complement=self.complement)
        object.__setattr__(self, "factors", made.factors)
        object.__setattr__(self, "complement", made.complement)

    def __reduce__(self) -> tuple[type[Query], tuple[object, ...]]:
        return Query, (self.factors, self.complement)

    @classmethod
    def constant(cls, *, everyone: bool) -> Query:
        """All rows, or none."""
        return _query((), not everyone)

    @classmethod
    def among(cls, domain: Domain, name: str, indices: Iterable[int]) -> Query:
        """The rows whose value of one attribute is among the listed indices."""
        known, attribute = domain.named(name)
        return _canonical([Factor.among(known, attribute.size, indices)], complement=False)

    @classmethod
    def weighted(cls, domain: Domain, names: Sequence[str], weights: ArrayLike) -> Query:
        """Any weights in [0, 1] over the values of a few attributes; rounded to the grid of 2^-20."""
        names = [domain.resolve(name) for name in names]
        if len(set(names)) < len(names):
            raise InvalidQuery("an attribute is weighted twice.")
        shape = tuple(domain[name].size for name in names)
        try:
            given = np.asarray(weights)
        except (TypeError, ValueError):  # ragged
            given = np.asarray(None)
        if given.dtype.kind not in "biuf":  # numpy would read '0.5' and None as numbers too
            raise InvalidQuery(f"the weights of {', '.join(names)} are numbers from 0 to 1.")
        array = given.astype(np.float64)
        if array.shape != shape:
            raise InvalidQuery(f"the weights of {', '.join(names)} have shape {shape}, not {array.shape}.")
        if not ((array >= 0) & (array <= 1)).all():  # false for NaN
            raise InvalidQuery(f"the weights of {', '.join(names)} lie between 0 and 1, all of them.")
        _check_size(names, shape)
        order = sorted(range(len(names)), key=lambda i: names[i])
        grid = np.rint(array * GRID).astype(np.int32).transpose(order)
        return _canonical([_factor(tuple(names[i] for i in order), grid, GRID)], complement=False)

    @classmethod
    def product(cls, factors: Iterable[Factor], *, complement: bool) -> Query:
        """The query of these factors, in canonical form."""
        return _canonical(_merge(factors), complement=complement)

    @classmethod
    def all(cls, queries: Iterable[Query]) -> Query:
        """The product of the weights: all of several conditions."""
        return cls.product((factor for query in queries for factor in plain_product(query)), complement=False)

    @classmethod
    def any(cls, queries: Iterable[Query]) -> Query:
        """One minus the product of the complements: any of several conditions."""
        return ~cls.all(~query for query in queries)

    @cached_property
    def unit(self) -> int:
        """Grid steps in a weight of 1."""
        return max([factor.unit for factor in self.factors], default=1)

    @cached_property
    def scope(self) -> tuple[str, ...]:
        """The attributes that the answer depends on, sorted."""
        return tuple(sorted([name for factor in self.factors for name in factor.scope]))

    def fits(self, domain: Domain) -> bool:
        """Whether the query was made for this domain, or one that looks the same to it, and is as it was made."""
        sizes = domain.sizes
        return all(
            factor.weights.shape == tuple([sizes.get(name) for name in factor.scope])
            and factor.weights.dtype == _TYPES[factor.unit]
            for factor in self.factors
        )

    @cached_property
    def is_constant(self) -> bool:
        """Whether every row counts the same, so that the answer follows from n alone."""
        return not self.scope

    @property
    def is_everyone(self) -> bool:
        """Whether every row counts fully."""
        return not self.factors and not self.complement

    @property
    def core(self) -> Query:
        """The query or its complement, whichever is the canonical one: one answer gives both, since n is public."""
        return self._alone if self.complement else self

    @cached_property
    def _alone(self) -> Query:
        return _query(self.factors, complement=False)

    @cached_property
    def key(self) -> str:
        """A hash of the canonical form: the identity of the question."""
        return query_key(self.complement, map(sealed, self.factors))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __invert__(self) -> Query:
        return _canonical(self.factors, complement=not self.complement)

    def __and__(self, other: Query) -> Query:
        return Query.all((self, other))

    def __or__(self, other: Query) -> Query:
        return Query.any((self, other))

    def __repr__(self) -> str:
        about = ", ".join(self.scope) or "constant"
        return f"Query({about}; {self.key[:12]})"

    def table(self, names: Sequence[str], shape: Sequence[int]) -> NDArray[np.int64]:
        """The weights over all values of `names` (at least the scope), in grid steps, as an array of this shape."""
        result = np.ones(tuple(shape), dtype=np.int64)
        unit = 1
        for factor in self.factors:
            axes = [names.index(name) for name in factor.scope]
            others = tuple(set(range(len(names))) - set(axes))
            spread = np.expand_dims(factor.weights.transpose(np.argsort(axes)), others)
            result, unit = multiply(result, unit, spread, factor.unit)
        return unit - result if self.complement else result

    def to_dict(self) -> dict[str, Any]:
        """A JSON form, for transcripts; `from_dict` reads it back."""
        return {
            "complement": self.complement,
            "factors": [
                {"scope": list(f.scope), "shape": list(f.weights.shape), "unit": f.unit, "weights": write_weights(f)}
                for f in self.factors
            ],
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Query:
        """Read a JSON form; one that was not written by `to_dict` comes back in canonical form, or is refused."""
        return cls(tuple([read_factor(factor) for factor in form["factors"]]), form["complement"])


def frozen(values: NDArray[Any], kind: type[np.integer[Any]]) -> NDArray[Any]:
    """A copy that is a view of bytes, which nobody can make writable: what is checked is what is looked at.

    numpy lets dtype and shape of any array be set, also of this one: `Query.fits` refuses what came of that.
    """
    return np.frombuffer(values.astype(kind).tobytes(), dtype=kind).reshape(values.shape)


def _factor(scope: tuple[str, ...], weights: NDArray[Any], unit: int) -> Factor:
    """A factor of weights that were worked out here, and need no check."""
    made = object.__new__(Factor)
    object.__setattr__(made, "scope", scope)
    object.__setattr__(made, "weights", frozen(weights, _TYPES[unit]))
    object.__setattr__(made, "unit", unit)
    return made


def _query(factors: tuple[Factor, ...], complement: bool) -> Query:
    """A query of factors that are in canonical form already."""
    made = object.__new__(Query)
    object.__setattr__(made, "factors", factors)
    object.__setattr__(made, "complement", complement)
    return made


def multiply(a: NDArray[Any], unit_a: int, b: NDArray[Any], unit_b: int) -> tuple[NDArray[np.int64], int]:
    """The product of two arrays of weights on their grids, rounded to the grid: the one rounding rule everywhere."""
    product = np.multiply(a, b, dtype=np.int64)
    if unit_a > 1 and unit_b > 1:
        return (product + GRID // 2) // GRID, GRID
    return product, max(unit_a, unit_b)


def plain_product(query: Query) -> tuple[Factor, ...]:
    """The query as a plain product; a complement of several factors becomes one table over their joint scope."""
    if not query.complement:
        return query.factors
    if not query.factors:
        return (_factor((), np.zeros(()), 1),)
    return (reduce(_join, query.factors).flipped(),)


def _join(a: Factor, b: Factor) -> Factor:
    """The product of two factors as one table over both scopes."""
    scope = tuple(sorted({*a.scope, *b.scope}))
    sizes = dict(zip(a.scope, a.weights.shape, strict=True)) | dict(zip(b.scope, b.weights.shape, strict=True))
    _check_size(scope, [sizes[name] for name in scope])
    spread = [f.weights.reshape([sizes[n] if n in f.scope else 1 for n in scope]) for f in (a, b)]
    weights, unit = multiply(spread[0], a.unit, spread[1], b.unit)
    return _factor(scope, weights, unit)


def _check_size(scope: Sequence[str], shape: Sequence[int]) -> None:
    if len(scope) > 1 and (len(scope) > MAX_JOINED or math.prod(shape) > MAX_TABLE):  # one attribute is no tie
        raise InvalidQuery(
            f"the question ties {len(scope)} attributes together ({', '.join(scope)}: {math.prod(shape):,} values); "
            f"at most {MAX_JOINED} attributes and {MAX_TABLE:,} values can be. A conjunction has no such limit."
        )


def _merge(factors: Iterable[Factor]) -> list[Factor]:
    """The same product over disjoint scopes: factors that share an attribute are joined."""
    factors, disjoint = list(factors), list[Factor]()
    names = [name for factor in factors for name in factor.scope]
    if len(set(names)) == len(names):
        return factors
    for factor in factors:
        overlapping = [f for f in disjoint if not set(f.scope).isdisjoint(factor.scope)]
        disjoint = [f for f in disjoint if f not in overlapping] + [reduce(_join, overlapping, factor)]
    return disjoint


def _canonical(factors: Iterable[Factor], *, complement: bool) -> Query:
    """The one form of a query: irreducible factors in order of scope, a lone factor in its canonical orientation."""
    factors = list(factors)
    if factors and all(map(_everyday, factors)):
        return _conjunction(factors, complement=complement)
    parts = [part for factor in factors for part in _irreducible(_reduced(factor))]
    if any(not part.weights.any() for part in parts):
        return _query((), not complement)
    scalars = [part for part in parts if not part.scope]
    parts = sorted((part for part in parts if part.scope), key=lambda part: part.scope)
    constant = reduce(_join, scalars, _ONE)
    if constant.weights != constant.unit:  # a weight between 0 and 1 that every row has
        parts = [_join(parts[0], constant), *parts[1:]] if parts else [constant]
    if len(parts) == 1:
        flipped = _irreducible(_reduced(parts[0].flipped()))
        if len(flipped) > 1 or _size(flipped[0]) < _size(parts[0]):
            parts, complement = sorted(flipped, key=lambda part: part.scope), not complement
    return _query(tuple(parts), complement)


def _everyday(factor: Factor) -> bool:
    """Whether this is a condition on one attribute that some of its values meet and others do not."""
    weights = factor.weights
    return len(factor.scope) == 1 and factor.unit == 1 and 0 < int(np.count_nonzero(weights)) < weights.size


def _conjunction(factors: list[Factor], *, complement: bool) -> Query:
    """The canonical form of everyday conditions: what `_canonical` comes to where none of its special cases arises."""
    if len(factors) > 1:
        return _query(tuple(sorted(factors, key=lambda factor: factor.scope)), complement)
    (only,) = factors
    if _turned(only.weights):
        return _query((only.flipped(),), not complement)
    return _query((only,), complement)


def _turned(weights: Weights) -> bool:
    """Whether a lone condition is the complement of its canonical form, which meets fewer values.

    Of two halves, the one without the first value is canonical.
    """
    twice = 2 * int(np.count_nonzero(weights))
    return twice > weights.size or (twice == weights.size and bool(weights.flat[0]))


def _size(factor: Factor) -> tuple[int, bytes]:
    """Orders a table and its complement: the one that selects fewer comes first, and no two compare equal."""
    return int(factor.weights.sum(dtype=np.int64)), factor.weights.tobytes()


_ONE = _factor((), np.ones(()), 1)


def _reduced(factor: Factor) -> Factor:
    """Without the attributes on which the weights do not depend, and as 0/1 where they are."""
    scope, weights = list(factor.scope), factor.weights
    if _everyday(factor):
        return factor
    for axis in reversed(range(len(scope))):
        first = weights.take([0], axis)
        if (weights == first).all():
            weights = first.squeeze(axis)
            del scope[axis]
    if factor.unit > 1 and ((weights == 0) | (weights == factor.unit)).all():
        return _factor(tuple(scope), weights > 0, 1)
    return _factor(tuple(scope), weights, factor.unit)


def _irreducible(factor: Factor) -> list[Factor]:
    """The finest product of 0/1 tables that a 0/1 table is; weighted tables stay whole.

    A set is a product over a split of its attributes exactly when its size is the product of its projections' sizes.
    The finest such split is unique, so it does not matter in which order splits are tried.
    """
    if factor.unit > 1 or len(factor.scope) < 2:
        return [factor]
    axes, total = range(len(factor.scope)), int(np.count_nonzero(factor.weights))
    for size in range(1, len(axes) // 2 + 1):
        for some in combinations(axes, size):
            rest = tuple(axis for axis in axes if axis not in some)
            onto_some, onto_rest = (factor.weights.max(axis=axis) for axis in (rest, some))
            if np.count_nonzero(onto_some) * np.count_nonzero(onto_rest) == total:
                return [
                    part
                    for kept, weights in ((some, onto_some), (rest, onto_rest))
                    for part in _irreducible(_factor(tuple(factor.scope[a] for a in kept), weights, 1))
                ]
    return [factor]


def query_key(complement: bool, factors: Iterable[bytes]) -> str:
    """The key of a query by the seals of its factors, in their order."""
    return hashlib.sha256(_KEYED[complement] + b"".join(factors)).hexdigest()


def sealed(factor: Factor) -> bytes:
    """What a factor adds to the key of a query."""
    weights = factor.weights
    return _header(factor.scope, factor.unit, weights.shape, weights.dtype.str) + weights.tobytes()


def sealed_digits(name: str, size: int, digits: str) -> tuple[bytes, bool] | None:
    """`sealed` of a condition on an attribute of so many values, by its digits, and whether it may stand by itself.

    None unless some values meet it and others do not, and these digits are the one form that `write_weights` gives it.
    For readers of many questions: a `Factor` takes ten times as long.
    """
    packed = bytes.fromhex(digits)
    bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8))
    weights = bits[:size]
    met = int(np.count_nonzero(weights))
    whole = len(digits) == _written(size, 1) and packed.hex() == digits and met == int(np.count_nonzero(bits))
    if not whole or size >= _WIDE or not 0 < met < size:
        return None
    return _header((name,), 1, (size,), weights.dtype.str) + weights.tobytes(), not _turned(weights)


@lru_cache(maxsize=4096)
def _header(scope: tuple[str, ...], unit: int, shape: tuple[int, ...], kind: str) -> bytes:
    """What a factor's weights are, as JSON, before the weights themselves."""
    names = ", ".join(map(json.dumps, scope))
    return f"[[{names}], {unit}, [{', '.join(map(str, shape))}], {json.dumps(kind)}]\x00".encode()


def write_weights(factor: Factor) -> str | list[int]:
    """The weights in their one JSON form: bits, or runs where an attribute is so wide that they are much shorter."""
    wide = factor.unit == 1 and factor.weights.size >= _WIDE
    if wide and (runs := _runs(factor.weights.ravel())) is not None:
        return runs
    return np.packbits(factor.weights).tobytes().hex() if factor.unit == 1 else factor.weights.ravel().tolist()


def _runs(flat: Weights) -> list[int] | None:
    """The lengths of the runs of 0 and of 1 by turns, 0 first; None of weights that are ragged."""
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if len(edges) > flat.size // _PER_RUN:
        return None
    lengths: list[int] = np.diff(edges, prepend=0, append=flat.size).tolist()
    return [0, *lengths] if flat[0] else lengths


def _of_runs(scope: tuple[str, ...], shape: tuple[int, ...], runs: list[int]) -> Factor:
    whole = all(type(length) is int and length >= 0 for length in runs)
    if not whole or sum(runs) != math.prod(shape) or sum(runs) > _MOST_IN_RUNS:
        raise InvalidQuery("the weights of a question do not have its shape.")
    bits = np.repeat(np.arange(len(runs), dtype=np.uint8) % 2, runs)
    return Factor(scope, bits.reshape(shape), 1)


def _written(cells: int, unit: int) -> int:
    """How many hexadecimal digits, or numbers, so many weights are written with."""
    return 2 * -(-cells // 8) if unit == 1 else cells


def read_factor(form: dict[str, Any]) -> Factor:
    """A factor of its JSON form; see `Query.to_dict`."""
    shape, unit = tuple(form["shape"]), form["unit"]
    whole = all(type(number) is int for number in (*shape, unit)) and min(shape, default=1) >= 1
    if whole and unit == 1 and isinstance(form["weights"], list):
        return _of_runs(tuple(form["scope"]), shape, form["weights"])
    if not whole or len(form["weights"]) != _written(math.prod(shape), unit):
        raise InvalidQuery("the weights of a question do not have its shape.")  # before any array is made of them
    if unit == 1:
        # Many questions have the same conditions, and a factor cannot be changed: so they may share it.
        make = _of_bits if len(form["weights"]) <= _SHORT else _of_bits.__wrapped__
        return make(tuple(form["scope"]), shape, form["weights"])
    return Factor(tuple(form["scope"]), np.array(form["weights"]).reshape(shape), unit)


@lru_cache(maxsize=4096)
def _of_bits(scope: tuple[str, ...], shape: tuple[int, ...], digits: str) -> Factor:
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=math.prod(shape))
    return Factor(scope, bits.reshape(shape), 1)
