"""Trusted words: nonlinear statistics of a table that one replaced row moves by at most one count, with their proofs.

`model.statistic` registers them; analysts ask them through its constructors. Every function takes tables of whole
numbers, one database to each entry of the first axis, and gives whole numbers: no floats. A database's size n is the
sum of its table, so that the same function serves the private table and any ensemble of smaller databases. All proofs
are for replace-one neighbours, which have the same n; they use that minima, maxima and floors keep a bound on a move:
|min f - min g| <= max |f - g|, the same for max, and |floor x - floor y| <= d whenever |x - y| <= d and d is whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import GRID

Argument = int | str
Arguments = tuple[Argument, ...]
Tables = NDArray[np.int64]
MAX_CLASSES = 12  # kinds of values on the smaller side of a connected part of a relation: its cuts are listed
_CUTS_AT_A_TIME = 2**22


@dataclass(frozen=True)
class Definition:
    """What a statistic's name stands for.

    function: from tables int64[N, *shape] and the arguments to int64[N], in steps of 1/unit of a count.
    check: refuses a scope or arguments that mean nothing in a domain.
    words: the question in words.
    """

    unit: int
    function: Callable[..., NDArray[np.int64]]
    check: Callable[[Domain, tuple[str, ...], Arguments], None]
    words: Callable[[Domain, tuple[str, ...], Arguments], str]


def stump(tables: Tables, bins: int, label: int) -> NDArray[np.int64]:
    """The errors of the best threshold classifier (decision stump) over (feature, label) tables.

    A classifier guesses from the feature whether a row has the label: "yes" from some bin on and "no" below, or the
    other way round, and yes or no for each value without a place in the order (other, missing).

    1/n-sensitive: the errors of one fixed classifier are the number of rows in a fixed set of cells, which one row
    moves by at most 1. The statistic is their minimum over all classifiers. It lies between 0 and n/2.
    """
    positive = tables[:, :, label]
    negative = tables.sum(axis=2) - positive
    yes_below, no_below = _below(positive[:, :bins]), _below(negative[:, :bins])
    yes_from_here = yes_below + (no_below[:, -1:] - no_below)
    no_from_here = no_below + (yes_below[:, -1:] - yes_below)
    best: NDArray[np.int64] = np.minimum(yes_from_here, no_from_here).min(axis=1)
    return np.asarray(best + np.minimum(positive[:, bins:], negative[:, bins:]).sum(axis=1))


def exceptions(tables: Tables, first: int, second: int) -> NDArray[np.int64]:
    """The rows that the best rule from the first attribute to the second gets wrong, over tables of both.

    Only the first values of either are looked at: those without a place among them (other, missing) follow no rule.
    0 where the first determines the second. 1/n-sensitive: the errors of one fixed rule are the number of rows in a
    fixed set of cells, which one row moves by at most 1. The statistic is their minimum over all rules.
    """
    listed = tables[:, :first, :second]
    return np.asarray(listed.sum(axis=(1, 2)) - listed.max(axis=2).sum(axis=1))


def largest_mean(tables: Tables, numerator: int, denominator: int, *values: int) -> NDArray[np.int64]:
    """The largest group mean times the smallest group, over (measured, *groups) tables; in steps of 2^-20.

    A row of measured bin i has the value values[i]/2^20 in [0, 1]; a row beyond the listed bins has none and is in no
    group. With c = ceil(n · numerator/denominator), the statistic is the largest c · S/max(k, c) over the groups, where
    a group has k rows whose values add up to S: c times its mean, or S itself in a group of fewer than c rows, which
    counts as if it were filled up with zeros.

    1/n-sensitive: c is public, and a replaced row touches at most two groups, whose maximum moves by no more than the
    one that moves more. So let one group lose or gain a row of value v, or have its value changed.
    Changed: S moves by at most 1 and is multiplied by c/max(k, c) <= 1.
    Lost, k <= c: S becomes S - v, which is at most 1 away.
    Lost, k > c: c·S/k becomes c·(S-v)/(k-1), which is c·(vk-S)/(k(k-1)) away. Since v <= S <= v + (k-1), vk - S lies
    between -(1-v)(k-1) and v(k-1), so the move is at most c/k < 1.
    Gained: the same backwards. Divided with c-1 for c, or without the max, the bound fails.
    The floor to the grid keeps the bound, because 2^20 steps are a whole number. The statistic is between 0 and c.
    """
    weights = np.array(values, dtype=np.int64)
    listed = tables.reshape(len(tables), tables.shape[1], -1)[:, : len(values)]
    rows, sums = listed.sum(axis=1), (listed * weights[None, :, None]).sum(axis=1)
    sizes = _sizes(tables)
    smallest = _share(sizes, numerator, denominator)[:, None]
    below = np.maximum(rows, smallest)
    if int(sizes.max(initial=0)) ** 2 * GRID >= 2**62:  # the product needs more than 64 bits: Python's integers
        exact = (smallest.astype(object) * sums.astype(object)) // below.astype(object)
        return np.asarray(exact.astype(np.int64).max(axis=1, initial=0))
    return np.asarray(((smallest * sums) // below).max(axis=1, initial=0))


def matching(tables: Tables, left: str, right: str, relation: str) -> NDArray[np.int64]:
    """The pairs in a largest matching of left rows with right rows, over (side, type) tables.

    `left` and `right` mark with 1 which values of the side belong to them; `relation` marks, left type by left type,
    which right types fit. Each row is in at most one pair.

    1/n-sensitive: by the max-flow min-cut theorem (Ford & Fulkerson 1956; for matchings König 1931), the largest
    matching has as many pairs as the lightest cut: the least, over all sets A of left types, number of left rows whose
    type is not in A plus right rows whose type fits one in A. For one fixed A that is the number of rows in a fixed set
    of cells, which one row moves by at most 1, and the statistic is their minimum. It counts pairs, at most n/2: the
    number of matched rows is twice that and moves by 2. Parts of the relation that share no type are cut separately.
    """
    givers = tables[:, _marks(left)].sum(axis=1)
    takers = tables[:, _marks(right)].sum(axis=1)
    total = np.zeros(len(tables), dtype=np.int64)
    for packed in _cuts(relation, tables.shape[2]):
        rows = np.frombuffer(packed, dtype=np.int8).reshape(-1, 2 * tables.shape[2]).T.astype(np.int64)
        at_a_time = max(1, _CUTS_AT_A_TIME // rows.shape[1])
        for start in range(0, len(tables), at_a_time):
            some = slice(start, start + at_a_time)
            both = np.concatenate([givers[some], takers[some]], axis=1)
            total[some] += (both @ rows).min(axis=1)
    return total


def quantile_distance(tables: Tables, numerator: int, denominator: int, first: int, end: int) -> NDArray[np.int64]:
    """How many rows must be replaced for the q-quantile to lie in the bins from `first` up to but not including `end`.

    The q-quantile of n rows is the value of the row of rank t = ceil(q·n), q = numerator/denominator; rows without a
    place in the order come last. It is in the bins if and only if fewer than t rows lie before them and at least t
    before their end. If A rows lie before them, A - t + 1 must go; if B lie before their end, t - B must come; as
    A <= B never both. So the distance is max(0, A - t + 1, t - B).

    1/n-sensitive: t is public, A and B move by at most 1, and the statistic is a maximum of what moves as they do. (So
    is every distance, in replaced rows, to any set of databases.) It lies between 0 and n.
    """
    below = _below(tables)
    rank = _share(_sizes(tables), numerator, denominator)
    return np.asarray(np.maximum(np.maximum(below[:, first] - rank + 1, rank - below[:, end]), 0))


def _sizes(tables: Tables) -> NDArray[np.int64]:
    return np.asarray(tables.reshape(len(tables), -1).sum(axis=1))


def _share(sizes: NDArray[np.int64], numerator: int, denominator: int) -> NDArray[np.int64]:
    """A share of each size, rounded up."""
    return -(-sizes * numerator // denominator)


def _below(counts: Tables) -> NDArray[np.int64]:
    """How many rows lie in the first k bins, for k = 0, 1, … up to all bins."""
    return np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), counts.cumsum(axis=1)], axis=1)


def _marks(text: str) -> NDArray[np.bool_]:
    return np.asarray(np.frombuffer(text.encode(), dtype=np.uint8) == ord("1"))


@lru_cache(maxsize=4)
def _cuts(relation: str, types: int) -> tuple[bytes, ...]:
    """For each connected part of a relation its cuts, as rows of 0 and 1 over the left types, then the right types.

    As bytes, because what is remembered must be what nobody can change.
    """
    fits = _marks(relation).reshape(types, types)
    found = []
    for left, right in _parts(fits):
        here = np.zeros_like(fits)
        here[np.ix_(left, right)] = fits[np.ix_(left, right)]
        sides = [(here, left), (here.T, right)]
        classes = [list(dict.fromkeys(side[one].tobytes() for one in chosen)) for side, chosen in sides]
        smaller = 0 if len(classes[0]) <= len(classes[1]) else 1
        side, chosen = sides[smaller]
        alike = [[one for one in chosen if side[one].tobytes() == kind] for kind in classes[smaller]]
        if len(alike) > MAX_CLASSES:
            raise InvalidQuery(
                f"the relation ties {len(alike)} kinds of values together on its smaller side; at most {MAX_CLASSES}."
            )
        cuts = []
        for inside in chain.from_iterable(combinations(alike, size) for size in range(len(alike) + 1)):
            kept = [one for kind in inside for one in kind]
            own, other = np.zeros(types, dtype=np.int8), side[kept].any(axis=0).astype(np.int8)
            own[[one for one in chosen if one not in kept]] = 1
            cuts.append(np.concatenate([own, other] if smaller == 0 else [other, own]))
        found.append(np.array(cuts, dtype=np.int8).tobytes())
    return tuple(found)


def _parts(fits: NDArray[np.bool_]) -> Iterator[tuple[list[int], list[int]]]:
    """The connected parts of a relation: left types and right types that hang together."""
    waiting = set(np.flatnonzero(fits.any(axis=1)).tolist())
    while waiting:
        left = np.arange(len(fits)) == min(waiting)
        while True:
            right = np.asarray(fits[left].any(axis=0))
            more = np.asarray(fits[:, right].any(axis=1))
            if (more == left).all():
                break
            left = more
        yield np.flatnonzero(left).tolist(), np.flatnonzero(right).tolist()
        waiting -= set(np.flatnonzero(left).tolist())


def _check_stump(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> None:
    bins, label = _whole(arguments, 2)
    feature, labels = _roles(domain, scope, 2)
    _ordered(domain, feature)
    size = domain[labels].size
    # Of two labels the errors are the same, so that the second stands for both.
    if bins != domain[feature].bins or size < 2 or not int(size == 2) <= label < size:
        raise InvalidQuery(f"a stump guesses one of several values of {labels} from all bins of {feature}.")


def _check_exceptions(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> None:
    if _whole(arguments, 2) != [domain[name].bins for name in _roles(domain, scope, 2)]:
        raise InvalidQuery("exceptions are counted among all values that are listed.")


def _check_largest_mean(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> None:
    numerator, denominator, *values = _whole(arguments, None, least=3)
    if len(scope) < 2 or list(scope[1:]) != sorted(scope[1:]):
        raise InvalidQuery("a largest mean names what is measured, and then the groups in order.")
    _check_share(numerator, denominator, "the smallest group's share")
    if len(values) != domain[scope[0]].bins or not all(0 <= value <= GRID for value in values):
        raise InvalidQuery(f"a mean of {scope[0]} has a value from 0 to 1 for each of its bins.")


def _check_matching(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> None:
    side, types = _roles(domain, scope, 2)
    sizes = domain[side].size, domain[side].size, domain[types].size ** 2
    if [type(a) for a in arguments] != [str] * 3 or any(set(str(a)) - {"0", "1"} for a in arguments):
        raise InvalidQuery("a matching has two sides and a relation, as zeros and ones.")
    left, right, relation = (str(a) for a in arguments)
    if tuple(map(len, (left, right, relation))) != sizes:
        raise InvalidQuery("the matching was made for another domain.")
    if "1" not in left or "1" not in right or (_marks(left) & _marks(right)).any() or "1" not in relation:
        raise InvalidQuery(f"the two sides of a matching are different values of {side}, and some of {types} fit.")
    _cuts(relation, domain[types].size)


def _check_quantile_distance(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> None:
    numerator, denominator, first, end = _whole(arguments, 4)
    (name,) = _roles(domain, scope, 1)
    _ordered(domain, name)
    _check_share(numerator, denominator, "a quantile")
    if not 0 <= first < end <= domain[name].bins:
        raise InvalidQuery(f"a quantile of {name} is compared with a range of its bins, which is not empty.")
    if end - first == domain[name].size:
        raise InvalidQuery(f"every quantile of {name} lies in all of its bins.")


def _check_share(numerator: int, denominator: int, what: str) -> None:
    if not 0 < numerator <= denominator <= GRID or math.gcd(numerator, denominator) > 1:
        raise InvalidQuery(f"{what} is a fraction above 0 and at most 1, in lowest terms, of at most {GRID:,} parts.")


def _whole(arguments: Arguments, number: int | None, least: int = 0) -> list[int]:
    found = [argument for argument in arguments if type(argument) is int]
    if len(found) != len(arguments) or len(found) < least or number not in (None, len(found)):
        raise InvalidQuery("the statistic has other arguments than these.")
    return found


def _roles(domain: Domain, scope: tuple[str, ...], number: int) -> Sequence[str]:
    if len(scope) != number:
        raise InvalidQuery(f"the statistic is about {number} attribute{'s' * (number > 1)}, not {len(scope)}.")
    return scope


def _ordered(domain: Domain, name: str) -> None:
    if not domain[name].ordered:
        raise InvalidQuery(f"{name} has no order, so it has no thresholds.")


def _say_stump(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> str:
    label = domain[scope[1]].label(int(arguments[1]))
    return f"errors of the best threshold on {scope[0]} that tells {scope[1]} = {label}"


def _say_exceptions(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> str:
    return f"rows whose {scope[1]} does not follow from their {scope[0]}"


def _say_largest_mean(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> str:
    share = f"{int(arguments[0])}/{int(arguments[1])}"
    return f"largest mean of {scope[0]} by {', '.join(scope[1:])}, times the smallest group ({share} of all rows)"


def _say_matching(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> str:
    side, (left, right) = domain[scope[0]], (np.flatnonzero(_marks(str(a))) for a in arguments[:2])
    words = [" or ".join(side.label(int(i)) for i in chosen[:6]) for chosen in (left, right)]
    return f"pairs in a largest matching of {scope[0]} = {words[0]} with {words[1]} on {scope[1]}"


def _say_quantile_distance(domain: Domain, scope: tuple[str, ...], arguments: Arguments) -> str:
    numerator, denominator, first, end = (int(a) for a in arguments)
    labels = " … ".join(dict.fromkeys(domain[scope[0]].label(i) for i in (first, end - 1)))
    return f"rows to replace for the {numerator}/{denominator}-quantile of {scope[0]} to lie in {labels}"


LIBRARY = {
    "stump": Definition(1, stump, _check_stump, _say_stump),
    "exceptions": Definition(1, exceptions, _check_exceptions, _say_exceptions),
    "largest_mean": Definition(GRID, largest_mean, _check_largest_mean, _say_largest_mean),
    "matching": Definition(1, matching, _check_matching, _say_matching),
    "quantile_distance": Definition(1, quantile_distance, _check_quantile_distance, _say_quantile_distance),
}
