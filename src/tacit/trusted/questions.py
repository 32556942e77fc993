"""The curator's own copy of a question: plain, checked and canonical. Everything that prices rest on is settled here.

A question comes from code that is not trusted. Its arrays may change after they were looked at, and its methods may
lie; so the curator reads its fields once, into objects that nobody else holds, and uses nothing else afterwards.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidBudget, InvalidQuery
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.query import GRID, Factor, Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Strategy, checked
from tacit.model.workload import MAX_ANSWERS, Marginal, Question


def own(question: Question, domain: Domain) -> Question:
    """A private copy of a question, in canonical form; refuses what is not one about this domain.

    Guarantee: the copy shares nothing with the original; every cell has a weight in [0, 1] on the grid; scopes are
        disjoint; attributes are the domain's; its key is that of every other way of asking the same. A statistic has a
        registered name, and arguments for which that was proved or, if the owner registered it, vouched for.
    Formula: exact types, 0 <= weights <= unit, unit in {1, 2^20}, shapes of the domain; then the canonical form, which
        is remembered in plain values by the plain values that were read: the question itself is read each time.
    Source: this module; `model.query` for the canonical form.
    """
    if type(question) is Query:
        return _query(question, domain)
    if type(question) is Statistic:
        return _statistic(question, domain)
    if type(question) is Marginal:
        names = tuple(_name(name, domain) for name in question.names)
        where = _query(question.where, domain)
        if not names or names != tuple(sorted(set(names))) or where.unit > 1:
            raise InvalidQuery("a table names each attribute once, in order, and its rows are chosen without weights.")
        return _sized(Marginal(names, where), domain)
    if isinstance(question, Strategy):
        return _sized(checked(question, domain), domain)  # of exactly these types, or refused
    raise InvalidQuery("a question is a query or a workload.")


def own_loss(loss: Loss, measure: Measure) -> Loss:
    """The curator's own copy of an amount to spend.

    Guarantee: a plain Loss in the ledger's own measure. Formula: exact types. Source: this module.
    """
    given: tuple[Any, Any] = (loss.atoms, loss.measure) if type(loss) is Loss else (None, None)
    atoms = given[0]
    if type(atoms) is not int or type(given[1]) is not str or given[1] != measure:
        raise InvalidBudget(f"a loss is an amount of {measure}, which this budget is counted in.")
    return Loss(measure, atoms)


def plain(values: ArrayLike, dtype: type[np.float64] | None = None) -> NDArray[Any]:
    """A plain array that nobody else holds, whatever was given.

    Guarantee: no subclass, no shared memory: an object that makes itself an array may hand out memory that it goes on
        writing to, even when it is asked for a copy. Formula: an array, then a copy of it. Source: this module.
    """
    return np.array(values, dtype=dtype, subok=False).copy()


def unit(question: Question) -> int:
    """Grid steps in a count: 1 for a table or a strategy, whose rows count whole."""
    return question.unit if isinstance(question, Query | Statistic) else 1


def _sized(question: Question, domain: Domain) -> Question:
    assert not isinstance(question, Query | Statistic)
    size = question.size(domain)
    if not 1 <= size <= MAX_ANSWERS:
        raise InvalidQuery(f"the question has {size:,} answers; one measurement takes 1 to {MAX_ANSWERS:,}.")
    return question


def _query(query: Query, domain: Domain) -> Query:
    """A new object each time, in memory of its own: what is remembered is held by nobody else.

    An array over remembered bytes could be written to, read-only or not, by whoever is handed the copy and knows their
    address.
    """
    form = _form(query, domain)
    small = sum(_OVERHEAD + len(weights) for _, _, _, weights in form[1]) <= _REMEMBERED_BYTES
    complement, factors, key = _canonical_before(form) if small else _canonical(form)
    parts = [Factor.of_bytes(scope, shape, unit, bytes(memoryview(held))) for scope, shape, unit, held in factors]
    copy = Query(tuple(parts), complement)
    object.__setattr__(copy, "_key", key)  # worked out together with the canonical form
    return copy


# A query in plain values that cannot change: whether it is a complement; scope, shape, unit and weights of each factor.
_Table = tuple[tuple[str, ...], tuple[int, ...], int, bytes]
_Form = tuple[bool, tuple[_Table, ...]]
_REMEMBERED, _REMEMBERED_BYTES = 2**14, 2**11  # more queries than a batch has, and half of what one takes: 64 MB
_OVERHEAD = 256  # of a factor, beside its weights


def _form(query: Query, domain: Domain) -> _Form:
    complement = query.complement if type(query) is Query else None  # once: copying the factors runs the asker's code
    if type(complement) is not bool:
        raise InvalidQuery("a question is a query or a workload.")
    factors = tuple([_table(factor, domain) for factor in tuple(query.factors)])
    scope = [name for factor in factors for name in factor[0]]
    if len(set(scope)) < len(scope):
        raise InvalidQuery("an attribute stands in two factors of the question.")
    return complement, factors


def _canonical(form: _Form) -> tuple[bool, tuple[_Table, ...], str]:
    """The canonical form and its key: a function of plain values, each of exactly its type, to plain values."""
    made = Query.product([Factor.of_bytes(*factor) for factor in form[1]], complement=form[0])
    tables = [(f.scope, f.weights.shape, f.unit, f.weights.tobytes()) for f in made.factors]
    return made.complement, tuple(tables), made.key


_canonical_before = lru_cache(_REMEMBERED)(_canonical)  # a question is looked at several times in one turn


def _statistic(question: Statistic, domain: Domain) -> Statistic:
    scope = tuple(_name(name, domain) for name in tuple(question.scope))
    name, arguments = question.name, tuple(question.arguments)
    if type(name) is not str or any(type(argument) not in (int, str) for argument in arguments):
        raise InvalidQuery("a statistic has a name, and whole numbers and texts as arguments.")
    if any(abs(argument) >= 2**63 for argument in arguments if isinstance(argument, int)):
        raise InvalidQuery("the arguments of a statistic are of 64 bits.")
    copy = Statistic(name, scope, arguments)
    copy.check(domain)
    return copy


def _table(factor: Factor, domain: Domain) -> _Table:
    steps = factor.unit if type(factor) is Factor else 0  # once, as above
    if type(steps) is not int or steps not in (1, GRID):
        raise InvalidQuery("the weights of a question are whole steps of its grid.")
    scope = tuple([_name(name, domain) for name in factor.scope])
    sizes, given = tuple([domain[name].size for name in scope]), factor.weights
    if type(given) is np.ndarray and given.dtype == np.uint8 and given.shape == sizes and steps == 1:
        # Bytes are a copy already. All that is said of them is checked on the copy: the array may change meanwhile.
        held = given.tobytes()
        if len(scope) < 2 and len(held) == math.prod(sizes) and not held.strip(b"\x00\x01"):
            return scope, sizes, steps, held
    weights = plain(given)
    if scope != tuple(sorted(scope)) or weights.shape != sizes:
        raise InvalidQuery("the question was made for another domain.")
    if weights.dtype.kind not in "iu" or weights.min() < 0 or weights.max() > steps:
        raise InvalidQuery("the weights of the question lie between 0 and 1, all of them.")
    return scope, sizes, steps, weights.astype(np.uint8 if steps == 1 else np.int32).tobytes()


def _name(name: str, domain: Domain) -> str:
    if type(name) is not str or name not in domain:
        raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")
    return sys.intern(name)  # one text for each name, however many questions are remembered
