"""Easier questions from which all ranges of an ordered attribute are recovered. Public; anybody may call it.

"Try to answer an easier set of queries and recover the answers to the queries you want" (Smith & Ullman's notes). The
answers are integers, and one noise scale serves them all, so a level that should be more precise has a larger weight.

The *leaves* of an attribute are its bins and, where rows can have a missing or other value, one more for those rows. So
every row lies in exactly one leaf, and the total over the leaves is n, which is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain

GRAIN = 2**16  # the first entry of a kernel; the others are smaller
MAX_WEIGHT = 2**16
MAX_EXPONENT = 60  # hundredths: beyond it a kernel no longer fades, and helps nobody


@dataclass(frozen=True)
class Tree:
    """Counts of the nodes of a tree over the leaves, level by level from the top. The root is n and is not asked.

    `branching` and `weights` have one entry for each level, from the children of the root down to the leaves. The last
    node of a level may have fewer children. An answer is weight * count.
    """

    name: str
    branching: tuple[int, ...]
    weights: tuple[int, ...]

    def spans(self) -> tuple[int, ...]:
        """How many leaves a node of each level covers (the last node: at most so many)."""
        return tuple(math.prod(self.branching[level + 1 :]) for level in range(len(self.branching)))

    def widths(self, leaves: int) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(-(-leaves // span) for span in self.spans())

    def size(self, domain: Domain) -> int:
        return sum(self.widths(leaves(domain[self.name])))


@dataclass(frozen=True)
class Convolution:
    """The counts of the leaves, convolved with the coefficients of (1 - x)^(-exponent/100), rounded to a grid.

    Not cyclic: the factor R of L = R' R, L the matrix of all prefixes; exponent 50 is the square root of Fichtenberger,
    Henzinger & Upadhyay 2023. Cyclic: the leaves lie on a circle, which loses nothing because the total is public, and
    then the error of an interval depends on its length alone.
    """

    name: str
    exponent: int
    cyclic: bool

    def size(self, domain: Domain) -> int:
        return leaves(domain[self.name])


@dataclass(frozen=True)
class Product:
    """Counts of all pairs of nodes of two trees over two attributes, for ranges in both at once."""

    first: Tree
    second: Tree

    def size(self, domain: Domain) -> int:
        return self.first.size(domain) * self.second.size(domain)


Strategy = Tree | Convolution | Product


def leaves(attribute: Attribute) -> int:
    """The bins, and one more where rows can lie in none of them."""
    return attribute.bins + bool(attribute.extras)


def kernel(size: int, exponent: int) -> NDArray[np.int64]:
    """The coefficients of (1 - x)^(-p) times 2^16, rounded; p in hundredths.

    One product of IEEE quotients after the other, so every machine gets the same integers. Worked out afresh each time:
    true answers are made with it, so nobody else may hold the array.

    >>> kernel(4, 50).tolist()
    [65536, 32768, 24576, 20480]
    """
    steps = np.arange(1, size, dtype=np.float64)
    ratios = (100 * (steps - 1) + exponent) / (100 * steps)
    found: NDArray[np.int64] = np.rint(GRAIN * np.cumprod(np.concatenate([[1.0], ratios]))).astype(np.int64)
    return found


def checked(strategy: Strategy, domain: Domain) -> Strategy:
    """A plain copy of a strategy about this domain; refuses what is not one."""
    if type(strategy) is Product:
        if type(strategy.first) is not Tree or type(strategy.second) is not Tree:
            raise InvalidQuery("a product is made of two trees.")
        first, second = _tree(strategy.first, domain), _tree(strategy.second, domain)
        if not first.name < second.name:
            raise InvalidQuery("a product has trees over two attributes, in the order of their names.")
        if max(first.weights) * max(second.weights) > MAX_WEIGHT:  # times 2^42 rows: still within 64 bits
            raise InvalidQuery(f"the weights of a product's nodes are at most {MAX_WEIGHT:,}, multiplied.")
        return Product(first, second)
    if type(strategy) is Tree:
        return _tree(strategy, domain)
    if type(strategy) is not Convolution:
        raise InvalidQuery("a strategy is a tree, a convolution or a product of two trees.")
    name, exponent, cyclic = _ordered(strategy.name, domain), strategy.exponent, strategy.cyclic
    if type(exponent) is not int or not 0 <= exponent <= MAX_EXPONENT or type(cyclic) is not bool:
        raise InvalidQuery(f"the exponent of a convolution is a whole number from 0 to {MAX_EXPONENT} hundredths.")
    return Convolution(name, exponent, cyclic and exponent > 0)  # without a kernel there is no circle to run round


def form(strategy: Strategy) -> dict[str, Any]:
    """Its JSON form."""
    if isinstance(strategy, Product):
        return {"kind": "product", "first": form(strategy.first), "second": form(strategy.second)}
    kind = type(strategy).__name__.lower()
    if isinstance(strategy, Tree):
        shape = {"branching": list(strategy.branching), "weights": list(strategy.weights)}
        return {"kind": kind, "name": strategy.name, **shape}
    return {"kind": kind, "name": strategy.name, "exponent": strategy.exponent, "cyclic": strategy.cyclic}


def words(strategy: Strategy) -> str:
    """What a history calls it.

    >>> words(Tree("age", (16, 16), (8, 12)))
    'all ranges of age (16 x 16 tree)'
    """
    if isinstance(strategy, Product):
        shapes = [" x ".join(map(str, tree.branching)) for tree in (strategy.first, strategy.second)]
        return f"all ranges of {strategy.first.name} and {strategy.second.name} (trees {shapes[0]} and {shapes[1]})"
    if isinstance(strategy, Tree):
        return f"all ranges of {strategy.name} ({' x '.join(map(str, strategy.branching))} tree)"
    where = "on a circle" if strategy.cyclic else "in a row"
    return f"all ranges of {strategy.name} (factorisation with exponent {strategy.exponent / 100:g}, {where})"


def from_form(given: dict[str, Any]) -> Strategy:
    """The strategy of a JSON form."""
    match given["kind"]:
        case "tree":
            return Tree(given["name"], tuple(given["branching"]), tuple(given["weights"]))
        case "convolution":
            return Convolution(given["name"], given["exponent"], given["cyclic"])
        case "product":
            first, second = from_form(given["first"]), from_form(given["second"])
            if isinstance(first, Tree) and isinstance(second, Tree):
                return Product(first, second)
    raise InvalidQuery(f"there is no kind of strategy called {given['kind']!r}.")


def _tree(tree: Tree, domain: Domain) -> Tree:
    name, branching, weights = _ordered(tree.name, domain), tuple(tree.branching), tuple(tree.weights)
    if not branching or len(branching) != len(weights) or any(type(x) is not int for x in (*branching, *weights)):
        raise InvalidQuery("a tree has a branching factor and a weight for each of its levels, all whole numbers.")
    if len(branching) > 64 or min(branching) < 2 or not 1 <= min(weights) <= max(weights) <= MAX_WEIGHT:
        raise InvalidQuery(f"a tree has branching factors of at least 2 and weights from 1 to {MAX_WEIGHT:,}.")
    copy, number = Tree(name, branching, weights), leaves(domain[name])
    if not copy.spans()[0] < max(number, 2) <= copy.spans()[0] * branching[0]:
        raise InvalidQuery(f"a tree over {name} has one root over {number:,} leaves, and two nodes or more below it.")
    children = max(2, -(-number // copy.spans()[0]))  # the root has no more than it needs: equal trees look equal
    return Tree(name, (children, *branching[1:]), weights)


def _ordered(name: str, domain: Domain) -> str:
    if type(name) is not str or name not in domain:
        raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")
    if not domain[name].ordered:
        raise InvalidQuery(f"{name} has no order, so it has no ranges.")
    return name
