"""Trusted words: what can be asked: a query, a statistic, tables of counts, a certificate, a strategy for all ranges.

What is not such a question cannot be made, and what was made cannot change; `check` says whether it is about a domain.

A strategy asks easier questions, from which all ranges of an ordered attribute are recovered: "Try to answer an easier
set of queries and recover the answers to the queries you want" (Smith & Ullman's notes). The answers are integers, and
one noise scale serves them all, so a level that should be more precise has a larger weight. The *leaves* of an
attribute are its bins and, where rows can have a missing or other value, one more for those rows. So every row lies in
exactly one leaf, and the total over the leaves is n, which is public.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.certificate import Certificate, Certificates
from tacit.model.domain import Domain
from tacit.model.query import Query, check_readable
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic

MAX_ANSWERS = 2**22  # to one question: a minute of drawing
GRAIN = 2**16  # the first entry of a kernel; the others are smaller
MAX_WEIGHT = 2**16
MAX_EXPONENT = 60  # hundredths: beyond it a kernel no longer fades, and helps nobody


@dataclass(frozen=True)
class Marginal:
    """The count of every combination of some attributes' values, among the rows that `where` selects."""

    names: tuple[str, ...]
    where: Query

    def __post_init__(self) -> None:
        named = type(self.names) is tuple and all(type(name) is str for name in self.names)
        if not named or not self.names or list(self.names) != sorted(set(self.names)):
            raise InvalidQuery("a table has at least one attribute, and each of them once, in order.")
        if type(self.where) is not Query or self.where.unit > 1:
            raise InvalidQuery("the rows of a table are chosen by conditions, not by weights.")

    def check(self, domain: Domain) -> None:
        """Refuse a table of other attributes than this domain's."""
        if not self.where.fits(domain) or not all(name in domain for name in self.names):
            raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")
        check_readable(self.where)

    def queries(self, domain: Domain) -> Iterator[Query]:
        for cell in product(*(range(domain[name].size) for name in self.names)):
            values = [Query.among(domain, name, [i]) for name, i in zip(self.names, cell, strict=True)]
            yield Query.all([self.where, *values])

    def size(self, domain: Domain) -> int:
        return domain.size_of(self.names)


@dataclass(frozen=True)
class Tree:
    """Counts of the nodes of a tree over the leaves, level by level from the top. The root is n and is not asked.

    `branching` and `weights` have one entry for each level, from the children of the root down to the leaves. The last
    node of a level may have fewer children. An answer is weight * count.
    """

    name: str
    branching: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        # Copies that nobody else holds: a list that changes after it was priced would be looked at unpriced.
        object.__setattr__(self, "branching", tuple(self.branching))
        object.__setattr__(self, "weights", tuple(self.weights))
        numbers = (*self.branching, *self.weights)
        whole = type(self.name) is str and all(type(number) is int for number in numbers)
        if not whole or not self.branching or len(self.branching) != len(self.weights):
            raise InvalidQuery("a tree has a branching factor and a weight for each of its levels, all whole numbers.")
        if len(self.branching) > 64 or min(numbers) < 1 or max(self.weights) > MAX_WEIGHT:
            raise InvalidQuery(f"a tree has up to 64 levels of branching, and weights from 1 to {MAX_WEIGHT:,}.")

    @classmethod
    def over(cls, name: str, leaves: int, branching: tuple[int, ...], weights: tuple[int, ...]) -> Tree:
        """A tree whose root has no more children than its leaves need: so equal trees look equal."""
        return cls(name, (_children(leaves, math.prod(branching[1:])), *branching[1:]), weights)

    def check(self, domain: Domain) -> None:
        """Refuse a tree that is not one over this domain's attribute."""
        _check_ordered(self.name, domain)
        number, span = leaves(domain[self.name]), self.spans()[0]
        if min(self.branching) < 2 or not span < max(number, 2) or self.branching[0] != _children(number, span):
            raise InvalidQuery(
                f"a tree over {self.name} has one root over {number:,} leaves, and two nodes or more below each node."
            )

    def spans(self) -> tuple[int, ...]:
        """How many leaves a node of each level covers (the last node: at most that many)."""
        return tuple(math.prod(self.branching[level + 1 :]) for level in range(len(self.branching)))

    def widths(self, leaves: int) -> tuple[int, ...]:
        """How many nodes each level has."""
        return tuple(-(-leaves // span) for span in self.spans())

    def size(self, domain: Domain) -> int:
        return sum(self.widths(leaves(domain[self.name])))

    def nodes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The answers: weight times count for every node, level by level, from the leaves along the first axis."""
        levels = [
            weight * np.add.reduceat(counts, np.arange(0, counts.shape[0], span), axis=0)
            for span, weight in zip(self.spans(), self.weights, strict=True)
        ]
        return np.concatenate(levels)


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

    def __post_init__(self) -> None:
        whole = type(self.name) is str and type(self.exponent) is int and type(self.cyclic) is bool
        if not whole or not 0 <= self.exponent <= MAX_EXPONENT:
            raise InvalidQuery(f"the exponent of a convolution is a whole number from 0 to {MAX_EXPONENT} hundredths.")
        # Without a kernel there is no circle to run round.
        object.__setattr__(self, "cyclic", self.cyclic and self.exponent > 0)

    def check(self, domain: Domain) -> None:
        """Refuse a convolution over what is no ordered attribute of this domain."""
        _check_ordered(self.name, domain)

    def size(self, domain: Domain) -> int:
        return leaves(domain[self.name])


@dataclass(frozen=True)
class Product:
    """Counts of all pairs of nodes of two trees over two attributes, for ranges in both at once.

    `nested`: of nodes of the same level only, level by level. Then both trees have as many levels, and rectangles are
    cut into smaller ones, as in a quad-tree.
    """

    first: Tree
    second: Tree
    nested: bool = False

    def __post_init__(self) -> None:
        if type(self.first) is not Tree or type(self.second) is not Tree or not self.first.name < self.second.name:
            raise InvalidQuery("a product has trees over two attributes, in the order of their names.")
        if type(self.nested) is not bool or (self.nested and len(self.first.weights) != len(self.second.weights)):
            raise InvalidQuery("the trees of a nested product have as many levels.")
        if max(self.first.weights) * max(self.second.weights) > MAX_WEIGHT:  # times 2^42 rows: still within 64 bits
            raise InvalidQuery(f"the weights of a product's nodes are at most {MAX_WEIGHT:,}, multiplied.")

    def check(self, domain: Domain) -> None:
        """Refuse a product of trees that are not ones over this domain's attributes."""
        self.first.check(domain)
        self.second.check(domain)

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the pairs of levels that are asked. A row lies in one pair of nodes of each."""
        sides = self.first.weights, self.second.weights
        pairs = zip(*sides, strict=True) if self.nested else product(*sides)
        return tuple(one * other for one, other in pairs)

    def size(self, domain: Domain) -> int:
        if not self.nested:
            return self.first.size(domain) * self.second.size(domain)
        widths = (tree.widths(leaves(domain[tree.name])) for tree in (self.first, self.second))
        return sum(one * other for one, other in zip(*widths, strict=True))

    def nodes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The answers: weight times count for every pair of nodes that is asked, from the counts of pairs of leaves."""
        if not self.nested:
            return self.second.nodes(self.first.nodes(counts).T).T.ravel()
        found = []
        for weight, *spans in zip(self.weights, self.first.spans(), self.second.spans(), strict=True):
            level = counts
            for axis, span in enumerate(spans):
                level = np.add.reduceat(level, np.arange(0, counts.shape[axis], span), axis=axis)
            found.append(weight * level.ravel())
        return np.concatenate(found)


Strategy = Tree | Convolution | Product
Workload = Marginal | Residuals | Strategy | Certificate | Certificates
Question = Query | Statistic | Workload


def marginal(domain: Domain, *names: str, where: Query | None = None) -> Marginal:
    """The table over these attributes. The order of the names does not matter to the question, so they are sorted."""
    found = [domain.resolve(name) for name in names]
    if not found or len(set(found)) < len(found):
        raise InvalidQuery("a table has at least one attribute, and each of them once.")
    if where is not None and where.is_constant and not where.is_everyone:
        raise InvalidQuery("no row can meet the condition, so every cell of the table is 0.")
    return Marginal(tuple(sorted(found)), where or Query.constant(everyone=True))


def histogram(domain: Domain) -> Marginal:
    """Every cell of X."""
    return marginal(domain, *domain.names)


def check(question: Question, domain: Domain) -> None:
    """Refuse what is no question about this domain, or has too many answers."""
    kind = type(question)
    if kind is Query:
        if not question.fits(domain):  # type: ignore[union-attr]
            raise InvalidQuery(f"the question was made for another domain than that of {', '.join(domain)}.")
        check_readable(question)  # type: ignore[arg-type]
        return
    if kind not in (Statistic, Marginal, Residuals, Tree, Convolution, Product, Certificate, Certificates):
        raise InvalidQuery("a question is a query or a workload.")
    question.check(domain)  # type: ignore[union-attr]
    if not isinstance(question, Query | Statistic) and not 1 <= (size := question.size(domain)) <= MAX_ANSWERS:
        raise InvalidQuery(f"the question has {size:,} answers; one measurement takes 1 to {MAX_ANSWERS:,}.")


def unit(question: Question) -> int:
    """Grid steps in a count of the answers."""
    return question.unit if isinstance(question, Query | Statistic) else 1


def key(question: Question) -> str:
    """The identity of a question: equal for two ways of asking the same."""
    if isinstance(question, Query | Statistic):
        return question.key
    if isinstance(question, Marginal):
        return table_key(question.names, question.where.key)
    kind = "certificate" if isinstance(question, Certificate | Certificates) else "strategy"
    return _workload_key(kind, json.dumps(to_dict(question), sort_keys=True))


def table_key(names: Sequence[str], where: str) -> str:
    """The key of a table of these attributes, by that of its condition."""
    return _workload_key("marginal", list(names), where)


def _workload_key(*words: str | list[str]) -> str:
    return hashlib.sha256(json.dumps(["tacit workload 1", *words]).encode()).hexdigest()


def to_dict(question: Question) -> dict[str, Any]:
    """A question's JSON form, for transcripts; `from_dict` reads it back."""
    match question:
        case Query() | Statistic() | Certificate() | Certificates():
            return {"kind": type(question).__name__.lower(), **question.to_dict()}
        case Marginal(names, where):
            return {"kind": "marginal", "names": list(names), "where": where.to_dict()}
        case Residuals(scopes, weights):
            return {"kind": "residuals", "scopes": [list(scope) for scope in scopes], "weights": list(weights)}
        case Tree(name, branching, weights):
            return {"kind": "tree", "name": name, "branching": list(branching), "weights": list(weights)}
        case Convolution(name, exponent, cyclic):
            return {"kind": "convolution", "name": name, "exponent": exponent, "cyclic": cyclic}
        case Product(first, second, nested):
            # What is not nested keeps the form, and so the key, that it had before there was another kind.
            sides = {"first": to_dict(first), "second": to_dict(second)}
            return {"kind": "product", **sides, **({"nested": True} if nested else {})}


def from_dict(form: dict[str, Any]) -> Question:
    """The question of a JSON form."""
    match form["kind"]:
        case "query":
            return Query.from_dict(form)
        case "statistic":
            return Statistic.from_dict(form)
        case "certificate":
            return Certificate.from_dict(form)
        case "certificates":
            return Certificates.from_dict(form)
        case "marginal":
            return Marginal(tuple(form["names"]), Query.from_dict(form["where"]))
        case "residuals":
            return Residuals(tuple(map(tuple, form["scopes"])), tuple(form["weights"]))
        case "tree":
            return Tree(form["name"], tuple(form["branching"]), tuple(form["weights"]))
        case "convolution":
            return Convolution(form["name"], form["exponent"], form["cyclic"])
        case "product":
            first, second = from_dict(form["first"]), from_dict(form["second"])
            if isinstance(first, Tree) and isinstance(second, Tree):
                return Product(first, second, form.get("nested", False))
    raise InvalidQuery(f"there is no kind of question called {form['kind']!r}.")


def leaves(attribute: Attribute) -> int:
    """The bins, and one more where rows can lie in none of them."""
    return attribute.bins + bool(attribute.extras)


def leaf_counts(table: NDArray[np.int64], attribute: Attribute) -> NDArray[np.int64]:
    """The counts of the leaves along the first axis of a table: what lies in no bin is summed up into one more."""
    if not attribute.extras:
        return table
    return np.concatenate([table[: attribute.bins], table[attribute.bins :].sum(axis=0, keepdims=True)])


def _children(leaves: int, span: int) -> int:
    """How many children a root over these leaves needs, each of which covers `span`: at least two."""
    return max(2, -(-leaves // span))


def kernel(size: int, exponent: int) -> NDArray[np.int64]:
    """The coefficients of (1 - x)^(-p) times 2^16, rounded; p in hundredths.

    One product of IEEE quotients after the other, so every machine gets the same integers.

    >>> kernel(4, 50).tolist()
    [65536, 32768, 24576, 20480]
    """
    steps = np.arange(1, size, dtype=np.float64)
    ratios = (100 * (steps - 1) + exponent) / (100 * steps)
    found: NDArray[np.int64] = np.rint(GRAIN * np.cumprod(np.concatenate([[1.0], ratios]))).astype(np.int64)
    return found


def _check_ordered(name: str, domain: Domain) -> None:
    if name not in domain:
        raise InvalidQuery(f"the question is about attributes other than {', '.join(domain)}.")
    if not domain[name].ordered:
        raise InvalidQuery(f"{name} has no order, so it has no ranges.")
