"""Trusted words: many tables at once, each less what smaller tables say: one measurement with one noise scale.

For a set A of attributes with n_i values each, let N_A be the table of counts over A (names sorted, the last one runs
fastest). Its *residual* is Xi_A N_A, with Xi_A the Kronecker product over A of (n_i I - 1 1'): along each axis, n_i
times the table less its sum along that axis. It is whole, and its sums along every axis are 0. It is what the table
says that no smaller table does, as interactions are in the analysis of variance: N_A follows from n and the residuals
of all subsets of A. So all tables are recovered from residuals, and agree with each other.

The basis is that of ResidualPlanner (Xiao, He, Zhang & Kifer 2023), as is the idea to price all of it together. The
weights of the scopes, and the exact price for replaced rows, are worked out here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain

MAX_ENTRY = 2**32  # weight times cells of a table: what one row can add to an answer
MAX_TOTAL = 2**62  # the same times the rows: half of what 64 bits hold

_LISTED = 12  # up to that many attributes, all sets of attributes that a row can change are tried in exact integers
_ROUNDED = 20  # up to that many, in floats with an allowance; beyond, each table is taken at its own worst
_ALLOWANCE = 2**47  # see `_largest_l2_squared`
_TRIED = 6  # attributes of one table, up to which its L1 distance is exact


@dataclass(frozen=True)
class Residuals:
    """The residuals of the tables over these scopes, times their weights, one after the other.

    Scopes are sorted by how many names they have, then by the names, which are sorted too.
    """

    scopes: tuple[tuple[str, ...], ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        # Copies that nobody else holds: a list that changes after it was priced would be looked at unpriced.
        object.__setattr__(self, "scopes", tuple(tuple(scope) for scope in self.scopes))
        object.__setattr__(self, "weights", tuple(self.weights))
        if not all(type(name) is str for scope in self.scopes for name in scope):
            raise InvalidQuery("the attributes of a residual are named.")
        # The number of rows is public, so the table of no attribute is nothing to measure.
        if not all(scope and list(scope) == sorted(set(scope)) for scope in self.scopes):
            raise InvalidQuery("a residual has at least one attribute, and each of them once, in order.")
        if not self.scopes or list(self.scopes) != sorted(set(self.scopes), key=lambda scope: (len(scope), scope)):
            raise InvalidQuery("there is at least one residual, and each of them once, the smaller ones first.")
        whole = all(type(weight) is int and weight >= 1 for weight in self.weights)
        if not whole or len(self.weights) != len(self.scopes):
            raise InvalidQuery("every residual has a weight, a whole number from 1 on.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All attributes, in order."""
        return tuple(sorted({name for scope in self.scopes for name in scope}))

    def check(self, domain: Domain) -> None:
        """Refuse residuals of other attributes than this domain's, and entries that are too large."""
        if not all(name in domain for name in self.names):
            raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")
        for name in self.names:
            if domain[name].size == 1:
                raise InvalidQuery(f"{name} has a single value, so its residuals are 0.")
        if self._largest_entry(domain) > MAX_ENTRY:
            raise InvalidQuery(f"the weight of a residual times the cells of its table is at most {MAX_ENTRY:,}.")

    def exact(self, domain: Domain, rows: int) -> bool:
        """Whether the answers about that many rows stay within 64 bits, and so does every step on the way to them.

        After some axes an entry is a sum over rows of products of n_i - 1 and -1, one factor for each of these axes: at
        most rows Π n_i. So are its sum along the next axis, and n_i times it once that axis is counted in.
        """
        return rows * self._largest_entry(domain) <= MAX_TOTAL

    def size(self, domain: Domain) -> int:
        return sum(domain.size_of(scope) for scope in self.scopes)

    def answers(self, tables: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The answers, from the table of counts over each scope, in order."""
        return np.concatenate([w * residual(table).ravel() for w, table in zip(self.weights, tables, strict=True)])

    def moves(self, domain: Domain) -> tuple[int, int]:
        """How far the answers move when one row is replaced: in L1, and in squared L2 distance.

        Guarantee: neither is too small. The second is attained where the scopes have up to 12 attributes together.
        Formula and proof: `_largest_l1` and `_largest_l2_squared`.
        """
        return _moves(self, domain.shape_of(self.names))

    def _largest_entry(self, domain: Domain) -> int:
        entries = (w * domain.size_of(scope) for scope, w in zip(self.scopes, self.weights, strict=True))
        return max(entries)


def residual(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """A table less what smaller tables say: along each axis, its length times the table less the sum along that axis.

    >>> residual(np.array([[3, 1], [0, 0]])).tolist()
    [[2, -2], [-2, 2]]
    """
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


@lru_cache(maxsize=256)
def _moves(question: Residuals, sizes: tuple[int, ...]) -> tuple[int, int]:
    size = dict(zip(question.names, sizes, strict=True))
    scopes = [tuple(size[name] for name in scope) for scope in question.scopes]
    l1 = sum(w * _largest_l1(tuple(sorted(scope))) for scope, w in zip(scopes, question.weights, strict=True))
    return l1, _largest_l2_squared(question, size)


def _largest_l2_squared(question: Residuals, size: dict[str, int]) -> int:
    """The largest squared L2 distance between the answers of neighbours.

    Guarantee: never too small; attained for up to 12 attributes.
    Formula: max over sets S of attributes of Σ over scopes A of c_A (Π_A (n_i - 1) - Π_{A∩S} (-1) Π_{A-S} (n_i - 1)),
        with c_A = 2 weight_A² Π_A n_i.
    Proof: a row in cell x adds weight_A ⊗ (n_i e_{x_i} - 1) to the answers of A. The product of two such factors for
        the values a and b is n_i² [a = b] - n_i: n_i (n_i - 1) if they are equal, -n_i if not. So for rows x and x'
        that differ in S, |u - u'|² = |u|² + |u'|² - 2 u·u' is the sum above, and every S occurs, since n_i >= 2.

    The second part is a polynomial, of degree 1 in each of d variables that are n_i - 1 (i not in S) or -1 (i in S).
    An array over subsets of attributes, which has c_A in the place of A, becomes the array of its values for all S in d
    steps, one for each variable. In floats every term is rounded at most 1 + 2 d <= 41 times by a factor within
    1 ± 2^-53, and |-1| <= n_i - 1. So the sum is off by less than 2^-47 of Σ c_A Π_A (n_i - 1), which is added.
    Beyond 20 attributes the maximum of each scope is added up. That is at S = {i}, i its attribute of fewest values:
    no S makes -Π larger, since every further attribute only takes a factor n_j - 1 away.
    """
    scopes = [[size[name] for name in scope] for scope in question.scopes]
    factors = [2 * w * w * math.prod(scope) for scope, w in zip(scopes, question.weights, strict=True)]
    unchanged = [math.prod(n - 1 for n in scope) for scope in scopes]
    if len(size) > _ROUNDED:
        return sum(c * (p + p // (min(scope) - 1)) for c, p, scope in zip(factors, unchanged, scopes, strict=True))
    whole = sum(c * p for c, p in zip(factors, unchanged, strict=True))
    exact = len(size) <= _LISTED
    values = np.zeros(2 ** len(size), dtype=object if exact else np.float64)
    place = {name: 1 << bit for bit, name in enumerate(size)}
    for scope, c in zip(question.scopes, factors, strict=True):
        values[sum(place[name] for name in scope)] = c if exact else float(c)
    for bit, n in enumerate(size.values()):
        pairs = values.reshape(-1, 2, 1 << bit)
        absent, present = pairs[:, 0], pairs[:, 1]
        values = np.stack([absent + (n - 1) * present, absent - present], axis=1).reshape(-1)
    least: int = math.floor(values.min())
    return whole - least + (0 if exact else -(-whole // _ALLOWANCE))


@lru_cache(maxsize=4096)
def _largest_l1(sizes: tuple[int, ...]) -> int:
    """The largest L1 distance between the residuals of one table on neighbours; up to 6 attributes attained.

    Every scope at its own worst bounds all of them together. For rows x and x' the entry at y is Π u_i - Π u'_i with
    u_i = n_i - 1 if y_i = x_i and -1 if not, u'_i likewise: so along an attribute in which they differ there are three
    kinds of values (x's, x''s and n_i - 2 others), along another one two. Beyond 6 attributes |u|_1 + |u'|_1 bounds it.
    """
    if len(sizes) > _TRIED:
        return 2 * math.prod(2 * (n - 1) for n in sizes)
    return _farthest([(1, 1, 1)], sizes)


def _farthest(entries: list[tuple[int, int, int]], sizes: tuple[int, ...]) -> int:
    """`_largest_l1`, where so many entries are Π u_i and Π u'_i over the attributes that were looked at already."""
    if not sizes:
        return sum(many * abs(own - others) for own, others, many in entries)
    n, rest = sizes[0], sizes[1:]
    alike = (n - 1, n - 1, 1), (-1, -1, n - 1)
    differ = (n - 1, -1, 1), (-1, n - 1, 1), (-1, -1, n - 2)
    return max(
        _farthest([(own * u, others * v, many * k) for own, others, many in entries for u, v, k in kinds], rest)
        for kinds in (alike, differ)
    )
