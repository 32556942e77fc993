"""The median update rule: an example by hand, ties, nonlinear queries, inconsistent answers, nets too large to list."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.rules.median_net import MedianNet, NetCounts

TWO = Domain({"sex": tacit.category(["F", "M"])})
SIX = Domain({"sex": tacit.category(["F", "M"]), "hair": tacit.category(["red", "fair", "dark"])})
WOMEN = Query.among(TWO, "sex", [0])


def most_common(counts: NetCounts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The share of the most common cell: not linear, and one record moves it by at most 1/n."""
    return np.asarray(counts.max(axis=1) / counts.sum(axis=1))


def test_all_databases_are_listed_once() -> None:
    net = MedianNet.databases(SIX, 3)
    assert len(net) == math.comb(8, 3) == len({tuple(row) for row in net.counts.tolist()})
    assert (net.counts.sum(axis=1) == 3).all()
    assert net.max_updates(0.1) == math.log2(56)


def test_an_example_by_hand() -> None:
    """Five databases of 4 records with 0, 1, 2, 3 or 4 women; the data has 1."""
    rule = MedianNet.databases(TWO, 4)
    hypothesis = rule.initial()
    assert sorted(rule.values(WOMEN, hypothesis.kept)) == [0, 0.25, 0.5, 0.75, 1]
    assert hypothesis.answer(WOMEN) == 0.5
    hypothesis = rule.update(hypothesis, WOMEN, 0.3)  # below: 2, 3 and 4 women go
    assert sorted(rule.values(WOMEN, hypothesis.kept)) == [0, 0.25]
    assert hypothesis.answer(WOMEN) == 0  # the lower median
    hypothesis = rule.update(hypothesis, WOMEN, 0.2)
    assert hypothesis.answer(WOMEN) == 0.25
    assert len(hypothesis) == 1
    assert hypothesis.consistent


def test_ties_go_so_that_each_update_halves() -> None:
    """Nine of ten databases tie at the median. Removing only what is strictly beyond it would remove none of them."""
    counts = np.array([[2, 2]] * 9 + [[1, 3]])
    rule = MedianNet(TWO, counts)
    hypothesis = rule.initial()
    values = rule.values(WOMEN, hypothesis.kept)
    assert np.count_nonzero(values > hypothesis.answer(WOMEN)) == 0  # what the strict rule would remove
    assert len(rule.update(hypothesis, WOMEN, 0.3)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_every_consistent_update_at_least_halves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rule = MedianNet.databases(SIX, 3)
    hypothesis = rule.initial()
    for _ in range(20):
        query = Query.weighted(SIX, SIX.names, rng.integers(0, 2, SIX.shape) * rng.choice([0.5, 1.0]))
        after = rule.update(hypothesis, query, float(rng.uniform(0, 1)))
        assert len(after) <= len(hypothesis) / 2 if after.consistent else len(after) == len(hypothesis)
        hypothesis = rule.initial() if not after.consistent else after


def test_an_answer_that_no_database_has_is_ignored_and_said_so() -> None:
    rule = MedianNet(TWO, [[1, 3], [2, 2]])
    hypothesis = rule.initial()
    after = rule.update(hypothesis, WOMEN, 0.1)  # below both
    assert hypothesis.consistent
    assert not after.consistent
    assert after.kept.tolist() == hypothesis.kept.tolist()
    assert not rule.update(after, WOMEN, 0.5).consistent


def test_an_earlier_hypothesis_is_left_as_it_was() -> None:
    rule = MedianNet.databases(TWO, 4)
    first = rule.initial()
    rule.update(first, WOMEN, 1.0)
    assert len(first) == 5
    with pytest.raises(ValueError, match="read-only"):
        rule.counts[0, 0] = 9


def test_nonlinear_queries() -> None:
    rule = MedianNet.databases(TWO, 4)
    hypothesis = rule.initial()
    assert hypothesis.answer(most_common) == 0.75  # of 1/2, 3/4, 3/4, 1, 1
    assert rule.counts[rule.update(hypothesis, most_common, 0.5).kept].tolist() == [[2, 2]]
    assert sorted(rule.counts[rule.update(hypothesis, most_common, 0.9).kept].max(axis=1)) == [4, 4]


def test_databases_of_different_sizes_are_compared_by_shares() -> None:
    assert MedianNet(TWO, [[1, 1], [3, 1], [1, 9]]).initial().answer(WOMEN) == 0.5


def test_large_nets_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    hypothesis = MedianNet.databases(SIX, 4).initial()
    query = Query.weighted(SIX, ["hair"], [0.1, 0.7, 0.3])
    whole = hypothesis.answer(query), hypothesis.answer(most_common)
    monkeypatch.setattr("tacit.release.rules.median_net._CHUNK", 50)
    assert (hypothesis.answer(query), hypothesis.answer(most_common)) == whole


def test_what_cannot_be_listed_is_refused_with_the_number() -> None:
    with pytest.raises(InvalidDomain, match=r"96,560,646 databases of 100 records over 6 cells"):
        MedianNet.databases(SIX, 100)
    with pytest.raises(InvalidDomain, match=r"more than 10\^\d+ databases"):
        MedianNet.databases(Domain({f"c{i}": tacit.integer(0, 99) for i in range(50)}), 48_842)
    with pytest.raises(InvalidDomain, match=r"100,000 databases of 1 records"):
        MedianNet.databases(Domain({"a": tacit.integer(0, 99_999)}), 1)
    with pytest.raises(InvalidDomain, match="at least 1 record"):
        MedianNet.databases(SIX, 0)


@pytest.mark.parametrize("counts", [[[1, 2, 3]], [1, 2], [[0, 0]], [[-1, 2]], [[0.5, 0.5]], np.zeros((0, 2), int)])
def test_nets_that_are_refused(counts: object) -> None:
    with pytest.raises(InvalidDomain):
        MedianNet(TWO, counts)  # type: ignore[arg-type]


def test_queries_that_are_refused() -> None:
    hypothesis = MedianNet.databases(TWO, 2).initial()
    with pytest.raises(InvalidQuery):
        hypothesis.answer(Query.among(SIX, "hair", [0]))
    with pytest.raises(InvalidQuery, match="each row"):
        hypothesis.answer(lambda counts: np.array([0.5]))
    with pytest.raises(InvalidQuery, match="from 0 to 1"):
        hypothesis.answer(lambda counts: counts[:, 0] * 1.0)
