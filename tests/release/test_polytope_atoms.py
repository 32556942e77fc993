"""Atoms counted without listing X, against listing it."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers import fractions as polytope_atoms
from tacit.release.samplers.fractions import atoms

DOMAIN = Domain({"c": category(["u", "v"]), "a": category(["x", "y", "z"]), "b": category(range(4))})


def random_query(rng: np.random.Generator, domain: Domain) -> Query:
    names = [str(name) for name in rng.permutation(domain.names)]
    kind = rng.integers(5)
    if kind == 0:
        shape = [domain[name].size for name in names[:2]]
        return Query.weighted(domain, names[:2], rng.integers(0, 4, size=shape) / 3)
    parts = [
        Query.among(domain, name, rng.permutation(domain[name].size)[: rng.integers(1, domain[name].size)].tolist())
        for name in names[: rng.integers(1, 4)]
    ]
    if kind == 1:
        return Query.any(parts)
    if kind == 2:
        return ~Query.all(parts)
    if kind == 3 and len(parts) > 1:
        return Query.weighted(domain, names[-1:], rng.random(domain[names[-1]].size).round(1)) & parts[0]
    return Query.all(parts)


def listed(domain: Domain, queries: list[Query]) -> dict[tuple[float, ...], float]:
    """Patterns and how many cells have them, cell by cell."""
    columns = [query.table(domain.names, domain.shape).ravel() / query.unit for query in queries]
    rows, counts = np.unique(np.round(np.column_stack(columns), 5), axis=0, return_counts=True)
    return dict(zip(map(tuple, rows.tolist()), counts.astype(float).tolist(), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_atoms_are_those_of_the_listed_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries = [random_query(rng, DOMAIN) for _ in range(rng.integers(1, 9))]
    queries = [query for query in queries if not query.is_constant]
    found = atoms(DOMAIN, queries)
    summed: dict[tuple[float, ...], float] = {}
    for row, size in zip(np.round(found.weights, 5).tolist(), found.sizes.tolist(), strict=True):
        summed[tuple(row)] = summed.get(tuple(row), 0) + size
    assert summed == listed(DOMAIN, queries)


@pytest.mark.parametrize("seed", range(20))
def test_a_split_divides_each_atom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries = [random_query(rng, DOMAIN) for _ in range(5)]
    before = atoms(DOMAIN, queries[:4])
    after, parent = before.split(queries[4])
    assert np.bincount(parent, weights=after.sizes).tolist() == before.sizes.tolist()
    assert (after.weights[:, :4] == before.weights[parent]).all()
    assert (after.newest == after.weights[:, 4]).all()


def test_more_queries_than_a_word_has_bits() -> None:
    domain = Domain({name: integer(0, 9) for name in "abc"})
    rng = np.random.default_rng(1)
    queries = [random_query(rng, domain) for _ in range(70)]
    queries = [query for query in queries if not query.is_constant]
    found = atoms(domain, queries)
    assert found.patterns.shape[1] > 1
    assert found.sizes.sum() == domain.size
    assert len({*map(tuple, np.round(found.weights, 5).tolist())}) == len(listed(domain, queries))


def test_large_domains_are_not_listed() -> None:
    domain = Domain({f"digit {i}": integer(0, 9) for i in range(30)})
    everyone = atoms(domain, [])
    assert everyone.sizes == pytest.approx([1e30])
    queries = [
        Query.among(domain, f"digit {i}", [i % 10]) & Query.among(domain, f"digit {i + 1}", [3]) for i in range(8)
    ]
    found = atoms(domain, queries)
    assert found.sizes.sum() == pytest.approx(1e30)
    assert found.sizes @ found.weights == pytest.approx(1e28)


def test_too_many_atoms_and_too_large_blocks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain({f"bit {i}": category([0, 1]) for i in range(22)})
    monkeypatch.setattr(polytope_atoms, "MAX_ATOMS", 1_000)
    with pytest.raises(InvalidQuery, match="more than 1,000 kinds"):
        atoms(domain, [Query.among(domain, name, [1]) for name in domain.names])
    monkeypatch.setattr(polytope_atoms, "MAX_BLOCK", 7)
    tied = Query.any([Query.all([Query.among(domain, f"bit {i}", [v]) for i in range(3)]) for v in (0, 1)])
    with pytest.raises(InvalidQuery, match="tie bit 0, bit 1, bit 2 together"):
        atoms(domain, [tied])
    with pytest.raises(InvalidQuery, match="another domain"):
        atoms(DOMAIN, [tied])
