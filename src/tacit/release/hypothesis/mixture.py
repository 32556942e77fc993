"""A distribution over a domain too large to list: a mixture of products. The hypothesis of large domains.

P(x) = sum over components k of weights[k] * product over attributes j of laws[j][k, x_j]. Within a component the
attributes are independent, so that a conjunction costs one small sum for each attribute, however many cells X has. A
mixture of enough products is any distribution (latent classes: Lazarsfeld & Henry 1968; as a hypothesis for private
answers: Aydore et al. 2021, Liu, Vietri & Wu 2021). Answers do not depend on what they are asked together with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import Array, even_places

MAX_MIXED_VALUES = (
    2**11
)  # of all attributes together: a fit holds a number for each pair of them, and goes through them often
_ROOM = 2**22  # numbers worked on at a time
_AT_ONCE = 2**10  # rows of synthetic data, or questions, worked on at a time


class Mixture:
    """Components with their weights, and for each attribute the law of its values in each component.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
    >>> laws = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])]
    >>> mixture = Mixture(domain, np.array([0.25, 0.75]), laws)
    >>> mixture.answer(Query.among(domain, "hair", [1])), mixture.marginal(["hair"]).tolist()
    (0.5, [0.125, 0.5, 0.375])
    """

    def __init__(self, domain: Domain, weights: Array, laws: Sequence[Array]) -> None:
        if sum(domain.shape) > MAX_MIXED_VALUES:
            raise InvalidDomain(
                f"the attributes have {sum(domain.shape):,} values together, and the domain {domain.size:,} cells; "
                f"what does not list the cells takes at most {MAX_MIXED_VALUES:,} values. "
                'mechanism="median" takes more.'
            )
        self.domain = domain
        self.weights = _frozen(weights)
        self.laws = tuple(_frozen(law) for law in laws)
        shapes = [(self.weights.size, size) for size in domain.shape]
        if self.weights.ndim != 1 or [law.shape for law in self.laws] != shapes:
            raise InvalidDomain("a mixture has one law for each attribute, with a row for each component.")
        if any((part < 0).any() or not np.allclose(part.sum(axis=-1), 1) for part in (self.weights, *self.laws)):
            raise InvalidDomain("the weights of a mixture, and each law in it, are probabilities that sum to 1.")

    @classmethod
    def uniform(cls, domain: Domain) -> Mixture:
        """One component, in which all cells are equally probable."""
        return cls(domain, np.ones(1), [np.full((1, size), 1 / size) for size in domain.shape])

    def answer(self, query: Query) -> float:
        """The query's value: its expected weight, in [0, 1]."""
        return float(self.answer_many([query])[0])

    def answer_many(self, queries: Sequence[Query]) -> Array:
        """The values of many; a condition that several have in common is worked out once."""
        if not all(query.fits(self.domain) for query in queries):
            raise InvalidQuery("the question was made for another domain.")
        values = np.empty(len(queries))
        for start in range(0, len(queries), _AT_ONCE):
            part = queries[start : start + _AT_ONCE]
            means = np.ones((len(part), self.weights.size))
            known: dict[tuple[tuple[str, ...], bytes], Array] = {}
            for i, query in enumerate(part):
                for factor in query.factors:
                    key = factor.scope, factor.weights.tobytes()
                    if key not in known:
                        known[key] = self.component_means(factor)
                    means[i] *= known[key]
            values[start : start + len(part)] = (means * self.weights).sum(axis=1)
        complements = np.array([query.complement for query in queries], dtype=bool)
        return np.clip(np.where(complements, 1 - values, values), 0.0, 1.0)

    def component_means(self, factor: Factor) -> Array:
        """The expected weight of one factor, in each component."""
        if not factor.scope:
            return np.full(self.weights.size, int(factor.weights) / factor.unit)
        laws = [self.laws[self.domain.names.index(name)] for name in factor.scope]
        if len(laws) == 1:
            return np.asarray((laws[0] * factor.weights).sum(axis=1) / factor.unit)
        means = np.empty(self.weights.size)
        for some in self._parts(factor.weights.size // factor.weights.shape[0]):
            table = laws[0][some] @ factor.weights.reshape(factor.weights.shape[0], -1)
            for law in laws[1:]:
                table = (table.reshape(len(table), law.shape[1], -1) * law[some][:, :, None]).sum(axis=1)
            means[some] = table[:, 0]
        return means / factor.unit

    def marginal(self, names: Sequence[str]) -> Array:
        """The distribution of these attributes, with one axis for each in the given order."""
        axes = [self.domain.names.index(self.domain.resolve(name)) for name in names]
        if len(set(axes)) < len(axes):
            raise InvalidQuery("a table has each of its attributes once.")
        if not axes:
            return np.ones(())
        shape = [self.domain.shape[axis] for axis in axes]
        flat = np.zeros((math.prod(shape[:-1]), shape[-1]))
        for some in self._parts(len(flat)):
            rows = self.weights[some][:, None]
            for axis in axes[:-1]:
                rows = (rows[:, :, None] * self.laws[axis][some][:, None, :]).reshape(len(rows), -1)
            flat += rows.T @ self.laws[axes[-1]][some]
        return flat.reshape(shape)

    def arrays(self) -> list[Array]:
        """All of it, in numbers whose bits can be compared."""
        return [self.weights, *self.laws]

    def draw(self, rows: int, rng: np.random.Generator, *, even: bool = False) -> list[NDArray[np.intp]]:
        """Independent rows from the distribution, as one column of codes for each attribute.

        With `even` a component has as many as it should, or one more or less.
        """
        bounds = np.cumsum(self.weights)
        components = np.minimum(
            np.searchsorted(bounds, even_places(rows, rng, even=even) * bounds[-1], side="right"), self.weights.size - 1
        )
        columns = []
        for law in self.laws:
            ends = np.cumsum(law, axis=1)
            column = np.empty(rows, dtype=np.intp)
            for start in range(0, rows, _AT_ONCE):
                mine = ends[components[start : start + _AT_ONCE]]
                places = rng.random(len(mine)) * mine[:, -1]
                column[start : start + len(mine)] = (mine <= places[:, None]).sum(axis=1)
            columns.append(np.minimum(column, law.shape[1] - 1))
        return columns

    def _parts(self, numbers: int) -> Iterator[slice]:
        """The components, as many at a time as leave room for `numbers` numbers for each."""
        step = max(1, _ROOM // max(1, numbers))
        for start in range(0, self.weights.size, step):
            yield slice(start, min(start + step, self.weights.size))


def _frozen(array: Array) -> Array:
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy
