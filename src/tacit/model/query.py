"""Trusted words: linear queries in factored form, and the canonical form by which two spellings are one question.

A query gives every cell of X a weight in [0, 1]; its answer is the sum of the weights over the rows. Weights live on an
integer grid (0 and 1 for predicates, multiples of 2^-20 otherwise), so that true answers are exact integers.

What is not such a query cannot be made, and what was made cannot change: the weights are views of bytes. So whoever
holds a `Query` need only ask whether it `fits` a domain. Prices rest on that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain

# A question and its weights are imported from here.
from tacit.model.factor import GRID as GRID
from tacit.model.factor import (
    ONE,
    TYPES,
    check_size,
    everyday,
    irreducible,
    join,
    rank,
    read_factor,
    reduced,
    turned,
    unchecked,
    write_weights,
    written,
)
from tacit.model.factor import Factor as Factor
from tacit.model.factor import multiply as multiply

MOST_READ = 2**28  # weights of a question that is asked or read, all of its factors together
_KEYED = tuple(f'tacit query 2\x00{{"complement":{word},"factors":['.encode() for word in ("false", "true"))


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
        shape = domain.shape_of(names)
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
        check_size(names, shape)
        order = sorted(range(len(names)), key=lambda i: names[i])
        grid = np.rint(array * GRID).astype(np.int32).transpose(order)
        return _canonical([unchecked(tuple(names[i] for i in order), grid, GRID)], complement=False)

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
            and factor.weights.dtype == TYPES[factor.unit]
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
        """The identity of the question: a hash of its canonical form as `to_dict` has it, in one spelling."""
        return query_key(",".join(map(written, self.factors)).encode(), complement=self.complement)

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
        factors, cells = list[Factor](), 0
        for one in form["factors"]:
            factors.append(read_factor(one))
            cells += factors[-1].weights.size
            _check_cells(cells)  # few characters may announce many cells
        return cls(tuple(factors), form["complement"])


def check_readable(query: Query) -> None:
    """Refuse a question that could be paid for, and not be read again."""
    _check_cells(sum([factor.weights.size for factor in query.factors]))


def _check_cells(cells: int) -> None:
    if cells > MOST_READ:
        raise InvalidQuery(f"a question has at most {MOST_READ:,} weights.")


def _query(factors: tuple[Factor, ...], complement: bool) -> Query:
    """A query of factors that are in canonical form already."""
    made = object.__new__(Query)
    object.__setattr__(made, "factors", factors)
    object.__setattr__(made, "complement", complement)
    return made


def plain_product(query: Query) -> tuple[Factor, ...]:
    """The query as a plain product; a complement of several factors becomes one table over their joint scope."""
    if not query.complement:
        return query.factors
    if not query.factors:
        return (unchecked((), np.zeros(()), 1),)
    return (reduce(join, query.factors).flipped(),)


def _merge(factors: Iterable[Factor]) -> list[Factor]:
    """The same product over disjoint scopes: factors that share an attribute are joined."""
    factors, disjoint = list(factors), list[Factor]()
    names = [name for factor in factors for name in factor.scope]
    if len(set(names)) == len(names):
        return factors
    for factor in factors:
        overlapping = [f for f in disjoint if not set(f.scope).isdisjoint(factor.scope)]
        disjoint = [f for f in disjoint if f not in overlapping] + [reduce(join, overlapping, factor)]
    return disjoint


def _canonical(factors: Iterable[Factor], *, complement: bool) -> Query:
    """The one form of a query: irreducible factors in order of scope, a lone factor in its canonical orientation."""
    factors = list(factors)
    if factors and all(map(everyday, factors)):
        return _conjunction(factors, complement=complement)
    parts = [part for factor in factors for part in irreducible(reduced(factor))]
    if any(not part.weights.any() for part in parts):
        return _query((), not complement)
    scalars = [part for part in parts if not part.scope]
    parts = sorted((part for part in parts if part.scope), key=lambda part: part.scope)
    constant = reduce(join, scalars, ONE)
    if not constant.weights:  # several, whose product was rounded to nothing
        return _query((), not complement)
    if constant.weights != constant.unit:  # a weight between 0 and 1 that every row has
        if parts:  # joined and rounded, the first may be a constant in its turn
            return _canonical([join(parts[0], constant), *parts[1:]], complement=complement)
        parts = [constant]
    if len(parts) == 1:
        flipped = irreducible(reduced(parts[0].flipped()))
        if len(flipped) > 1 or rank(flipped[0]) < rank(parts[0]):
            parts, complement = sorted(flipped, key=lambda part: part.scope), not complement
    return _query(tuple(parts), complement)


def _conjunction(factors: list[Factor], *, complement: bool) -> Query:
    """The canonical form of everyday conditions: what `_canonical` comes to where none of its special cases arises."""
    if len(factors) > 1:
        return _query(tuple(sorted(factors, key=lambda factor: factor.scope)), complement)
    (only,) = factors
    if turned(only.weights):
        return _query((only.flipped(),), not complement)
    return _query((only,), complement)


def query_key(factors: bytes, *, complement: bool) -> str:
    """The key of a query, by what is written of its factors, one after the other."""
    return hashlib.sha256(b"".join((_KEYED[complement], factors, b"]}"))).hexdigest()
