"""Which releases may tell a question: found by what they are about, as trying each takes longer the more there are.

Everything here is public, and anybody may call it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import merge

from tacit.model.factor import Factor
from tacit.model.query import Query, plain_product

Scopes = tuple[tuple[str, ...], ...]


class Candidates:
    """The places of releases in a list. What tells a question is always among its candidates; most others are not.

    A release tells what depends on the attributes of its `scope` alone. A table under a condition asks more: what that
    says of other attributes, the factors `apart`, are all of them factors of the question, or all of its complement.
    So releases are alike by their scope and by what these factors are about, and the weights tell them apart.
    """

    def __init__(self) -> None:
        self._alike: dict[tuple[frozenset[str], Scopes], dict[tuple[int, ...], list[int]]] = {}
        self._added = 0

    def add(self, scope: frozenset[str], apart: Sequence[Factor]) -> None:
        """The next release of the list."""
        alike = self._alike.setdefault((scope, tuple(factor.scope for factor in apart)), {})
        alike.setdefault(tuple(map(_form, apart)), []).append(self._added)
        self._added += 1

    def of(self, query: Query) -> Iterator[int]:
        """The places of releases that may tell a question, in order."""
        near = [(scopes, alike) for (scope, scopes), alike in self._alike.items() if scope.issuperset(query.scope)]
        if not near:
            return iter(())
        sides, found = (_Side(query), _Side(~query)), list[list[int]]()
        for scopes, alike in near:
            found += [alike[some] for some in {side.forms(scopes) for side in sides} if some in alike]
        return merge(*found)


class _Side:
    """A query or its complement as a plain product, which is worked out where a release asks for factors like its own.

    As one factor a complement may be larger than a question may have; then no condition has such a factor either.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._scopes = {query.scope} if query.complement else {factor.scope for factor in query.factors}

    def forms(self, scopes: Scopes) -> tuple[int, ...] | None:
        """The forms of its factors with these scopes; None where it has not all of them."""
        return tuple([self._forms[scope] for scope in scopes]) if self._scopes.issuperset(scopes) else None

    @cached_property
    def _forms(self) -> dict[tuple[str, ...], int]:
        return {factor.scope: _form(factor) for factor in plain_product(self._query)}


def _form(factor: Factor) -> int:
    """In place of the weights, which may be many. Two that have one hash by accident are one candidate too many."""
    return hash(factor.weights.tobytes())
