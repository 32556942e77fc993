"""The dense hypothesis against exp over all cells, and its caches and lazy total against recomputation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis import cell_weights
from tacit.release.hypothesis.cell_weights import Dense


def make_domain(*shape: int) -> Domain:
    return Domain({f"c{i}": tacit.integer(0, size - 1) for i, size in enumerate(shape)})


DOMAIN = make_domain(5, 4, 3, 2, 6)


def random_query(rng: np.random.Generator, domain: Domain = DOMAIN) -> Query:
    """A conjunction of sets and weights, a disjunction, or the complement of one."""
    parts = []
    for name in rng.choice(domain.names, size=rng.integers(1, 4), replace=False):
        size = domain[name].size
        if rng.random() < 0.2:
            parts.append(Query.weighted(domain, [name], rng.uniform(0, 1, size)))
        else:
            parts.append(Query.among(domain, name, rng.choice(size, size=rng.integers(1, size), replace=False)))
    query = Query.any(parts) if rng.random() < 0.2 else Query.all(parts)
    if rng.random() < 0.1:
        names = list(rng.choice(domain.names, size=2, replace=False))
        query &= Query.weighted(domain, names, rng.uniform(0, 1, [domain[name].size for name in names]))
    return ~query if rng.random() < 0.3 else query


def weights_of(query: Query, domain: Domain = DOMAIN) -> NDArray[np.float64]:
    return query.table(domain.names, domain.shape) / query.unit


class Slow:
    """The definition: log-weights of all cells, normalised at every question."""

    def __init__(self, domain: Domain) -> None:
        self.domain, self.logs = domain, np.zeros(domain.shape)

    def scale(self, query: Query, tilt: float) -> None:
        self.logs += tilt * weights_of(query, self.domain)

    def cells(self) -> NDArray[np.float64]:
        cells = np.exp(self.logs - self.logs.max())
        return np.asarray(cells / cells.sum())

    def answer(self, query: Query) -> float:
        return float((weights_of(query, self.domain) * self.cells()).sum())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("few", [0, 100, 10**9])  # always by marginals, either way, always from the cells themselves
def test_random_interleavings_agree_with_the_definition(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_weights, "_FEW", few)
    rng = np.random.default_rng(seed)
    fast, slow = Dense(DOMAIN), Slow(DOMAIN)
    for _ in range(60):
        match rng.integers(0, 4):
            case 0:
                query, tilt = random_query(rng), float(rng.normal(0, 2))
                fast.scale(query, tilt)
                slow.scale(query, tilt)
            case 1:
                query = random_query(rng)
                assert fast.answer(query) == pytest.approx(slow.answer(query), abs=1e-12)
            case 2:
                names = list(rng.permutation(DOMAIN.names)[: rng.integers(0, 6)])
                others = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
                order = np.argsort(np.argsort([DOMAIN.names.index(name) for name in names])).astype(int)
                expected = slow.cells().sum(axis=others).transpose(order)
                np.testing.assert_allclose(fast.marginal(names), expected, atol=1e-12)
            case _:
                query = random_query(rng)
                values, chances = fast.profile(query)
                assert chances.sum() == pytest.approx(1)
                for power in (1, 2, 3):
                    moment = float((weights_of(query) ** power * slow.cells()).sum())
                    assert float(values**power @ chances) == pytest.approx(moment, abs=1e-12)


def test_gathered_and_sliced_cells_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    queries = [random_query(rng) for _ in range(30)]
    cells = []
    for piece in (0, 10**9):
        monkeypatch.setattr(cell_weights, "_SMALL_PIECE", piece)
        hypothesis = Dense(DOMAIN)
        for query in queries:
            hypothesis.scale(query, 0.3)
        cells.append(hypothesis.marginal(DOMAIN.names))
    np.testing.assert_allclose(cells[0], cells[1], rtol=1e-12)


def test_the_lazy_total_does_not_drift_over_ten_thousand_changes() -> None:
    rng = np.random.default_rng(4)
    domain = make_domain(4, 5, 6)
    queries = [random_query(rng, domain) for _ in range(50)]
    fast, slow = Dense(domain), Slow(domain)
    for _ in range(10_000):
        query, tilt = queries[rng.integers(0, 50)], float(rng.choice([-0.1, 0.1]))
        fast.scale(query, tilt)
        slow.scale(query, tilt)
    assert fast._total == pytest.approx(float(fast._weights.sum()), rel=1e-10)
    np.testing.assert_allclose(fast.marginal(domain.names), slow.cells(), rtol=1e-9)


@pytest.mark.parametrize("tilt", [150.0, -150.0])
def test_totals_beyond_all_bounds_are_brought_back(tilt: float) -> None:
    hypothesis = Dense(DOMAIN)
    query = Query.weighted(DOMAIN, ["c0"], [0.9, 1, 0.95, 0.9, 0.9])
    for _ in range(40):
        hypothesis.scale(query, tilt)
        assert hypothesis.marginal(["c0"]).sum() == pytest.approx(1)
    assert hypothesis.marginal(["c0"])[1] == pytest.approx(float(tilt > 0))


def test_a_total_that_almost_vanishes_is_summed_afresh() -> None:
    rng = np.random.default_rng(5)
    domain = make_domain(3, 3)
    hypothesis = Dense(domain, rng.random(domain.shape))
    first = Query.among(domain, "c0", [0])
    before = hypothesis.answer(first)
    for tilt in rng.uniform(20, 34, 10):  # a rounding error of up to exp(34) units in the last place, each
        hypothesis.scale(first, tilt)
        hypothesis.scale(first, -tilt)
        assert hypothesis.answer(first) == pytest.approx(before, abs=1e-10)


def test_more_attributes_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_weights, "_REMEMBERED", 60)
    monkeypatch.setattr(cell_weights, "_LARGEST", 40)
    monkeypatch.setattr(cell_weights, "_FEW", 0)
    rng = np.random.default_rng(6)
    hypothesis, slow = Dense(DOMAIN), Slow(DOMAIN)
    for query in [random_query(rng) for _ in range(100)]:
        assert hypothesis.answer(query) == pytest.approx(slow.answer(query), abs=1e-12)
        assert hypothesis._remembered == sum(array.size for array in hypothesis._marginals.values()) <= 60
        if rng.random() < 0.2:
            hypothesis.scale(query, 0.5)
            slow.scale(query, 0.5)


def test_what_was_asked_before_changes_no_bit() -> None:
    rng = np.random.default_rng(7)
    queries = [random_query(rng) for _ in range(40)]
    hypothesis = Dense(DOMAIN, rng.random(DOMAIN.shape))
    forwards = [hypothesis.answer(query) for query in queries]
    fresh = Dense(DOMAIN, hypothesis._weights)
    assert [fresh.answer(query) for query in reversed(queries)][::-1] == forwards
    assert fresh.answer_many(queries).tolist() == forwards
    assert [hypothesis.copy().answer(query) for query in queries] == forwards


def test_a_copy_is_independent() -> None:
    hypothesis = Dense(DOMAIN)
    query = Query.among(DOMAIN, "c4", [0, 1])
    hypothesis.answer(query)
    other = hypothesis.copy()
    other.scale(query, 1.0)
    assert hypothesis.answer(query) == pytest.approx(1 / 3)
    assert other.answer(query) == pytest.approx(math.e / (math.e + 2))


def test_constants() -> None:
    hypothesis = Dense(DOMAIN)
    half = Query.weighted(DOMAIN, ["c0"], [0.25] * 5)
    everyone, nobody = Query.constant(everyone=True), Query.constant(everyone=False)
    for query in (half, everyone, nobody, ~half):
        hypothesis.scale(query, 3.0)
    assert [hypothesis.answer(query) for query in (everyone, nobody, half, ~half)] == [1, 0, 0.25, 0.75]
    assert hypothesis.marginal(["c3"]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Dense(make_domain(1000, 1000, 1000)), InvalidDomain),
        (lambda: Dense(DOMAIN, np.ones(3)), InvalidDomain),
        (lambda: Dense(DOMAIN, np.zeros(DOMAIN.shape)), InvalidDomain),
        (lambda: Dense(DOMAIN, np.full(DOMAIN.shape, -1.0)), InvalidDomain),
        (lambda: Dense(DOMAIN, np.full(DOMAIN.shape, np.nan)), InvalidDomain),
        (lambda: Dense(DOMAIN).answer(Query.among(make_domain(7), "c0", [6])), InvalidQuery),
        (lambda: Dense(DOMAIN).marginal(["c0", "C0"]), InvalidQuery),
        (lambda: Dense(DOMAIN).scale(Query.among(DOMAIN, "c0", [1]), 1000.0), ValueError),
        (lambda: Dense(DOMAIN).scale(Query.among(DOMAIN, "c0", [1]), math.nan), ValueError),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_the_refusal_names_both_numbers() -> None:
    with pytest.raises(InvalidDomain, match=r"1,000,000,000 cells.*at most 134,217,728"):
        Dense(make_domain(1000, 1000, 1000))


@pytest.mark.parametrize("shape", [(5, 4, 3, 2, 6), (2, 2, 2), (40, 30, 20), (7, 1, 130)])
@pytest.mark.parametrize("together", [1, 2**15])
def test_what_else_is_asked_does_not_matter_to_the_last_bit(
    shape: tuple[int, ...], together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_weights, "_FEW", 8)
    monkeypatch.setattr(cell_weights, "_TOGETHER", together)
    rng = np.random.default_rng(11)
    domain = make_domain(*shape)
    hypothesis = Dense(domain, rng.random(shape))
    names = [name for name in domain.names if domain[name].size > 1]

    def conjunction() -> Query:
        picked = rng.choice(names, size=rng.integers(1, min(3, len(names)) + 1), replace=False)
        sizes = [domain[name].size for name in picked]
        chosen = [rng.choice(size, size=rng.integers(1, size), replace=False) for size in sizes]
        query = Query.all(Query.among(domain, name, c) for name, c in zip(picked, chosen, strict=True))
        return ~query if rng.random() < 0.3 else query

    queries = [conjunction() for _ in range(300)]
    one_by_one = [hypothesis.answer(query) for query in queries]
    assert hypothesis.answer_many(queries).tolist() == one_by_one
    order = rng.permutation(len(queries))[:137]
    some = Dense(domain, hypothesis.marginal(domain.names) * hypothesis._total).answer_many([queries[i] for i in order])
    np.testing.assert_allclose(some, np.array(one_by_one)[order], rtol=1e-9)
    assert hypothesis.answer_many([queries[i] for i in order]).tolist() == [one_by_one[i] for i in order]
    truth = [float((weights_of(query, domain) * hypothesis.marginal(domain.names)).sum()) for query in queries]
    np.testing.assert_allclose(one_by_one, truth, atol=1e-12)
