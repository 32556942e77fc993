"""What every update rule promises, checked on all of them, and mutants that the checks must reject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.rules import RULES as NAMED
from tacit.release.rules import StatisticHypothesis, UpdateRule
from tacit.release.rules.median_net import Databases, MedianNet
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights

SHAPES = [(2, 3), (3, 2, 2), (4, 3)]
ROWS = 4
ALPHAS = [0.15, 0.4]


def make_domain(shape: Sequence[int]) -> Domain:
    return Domain({f"c{i}": tacit.integer(0, size - 1) for i, size in enumerate(shape)})


def conjunctions(domain: Domain) -> list[Query]:
    """Every conjunction of sets of values."""
    choices = []
    for name in domain.names:
        values = range(domain[name].size)
        sets = chain.from_iterable(combinations(values, k) for k in range(1, len(values) + 1))
        choices.append([Query.among(domain, name, some) for some in sets])
    return sorted({Query.all(parts) for parts in product(*choices)}, key=lambda query: query.key)


def mixed(domain: Domain, rng: np.random.Generator) -> list[Query]:
    """Conjunctions, disjunctions, complements, weights, their products, and constants."""
    plain = list(rng.permutation(np.array(conjunctions(domain), dtype=object))[:12])
    weighted = [
        Query.weighted(domain, [name], rng.uniform(0, 1, domain[name].size)) for name in (*domain.names, *domain.names)
    ]
    joint = Query.weighted(domain, domain.names[:2], rng.uniform(0, 1, domain.shape[:2]))
    found = [*plain, *weighted, joint, plain[0] | plain[1], weighted[0] & weighted[1], weighted[1] & plain[2]]
    found += [~query for query in found]
    return [*found, Query.constant(everyone=True), Query.constant(everyone=False)]


def table(domain: Domain, query: Query) -> NDArray[np.float64]:
    return query.table(domain.names, domain.shape).ravel() / query.unit


@dataclass
class Refitting:
    """Exact multiplicative weights that re-fits everything it has been told."""

    rule: MultiplicativeWeights
    past: list[tuple[Query, float, float]] = field(default_factory=list)

    def initial(self) -> Dense:
        self.past.clear()
        return self.rule.initial()

    def update(self, hypothesis: Dense, query: Query, answer: float) -> Dense:
        self.past.append((query, answer, self.rule.alpha))
        return self.rule.refit(self.rule.update(hypothesis, query, answer), self.past, sweeps=3)

    def max_updates(self, alpha: float) -> float:
        return self.rule.max_updates(alpha)


Rule = UpdateRule[Any]


def named(name: str, domain: Domain, alpha: float) -> Rule:
    return NAMED[name].make(domain, alpha, ROWS)


RULES: dict[str, Callable[[Domain, float], Rule]] = {
    **{name: partial(named, name) for name in NAMED},  # those that users may name
    "textbook": lambda domain, alpha: MultiplicativeWeights(domain, alpha, step="textbook"),
    "exact": lambda domain, alpha: MultiplicativeWeights(domain, alpha, step="exact"),
    "exact, refitted": lambda domain, alpha: Refitting(MultiplicativeWeights(domain, alpha)),
    "median net": lambda domain, alpha: MedianNet.databases(domain, ROWS),
}


def brute_force(hypothesis: Any, weights: NDArray[np.float64]) -> float:
    """The answer from the hypothesis' own cells, one by one."""
    if isinstance(hypothesis, Dense):
        cells = hypothesis.marginal(hypothesis.domain.names).ravel()
        return float(sum(w * c for w, c in zip(weights, cells, strict=True)))
    counts = hypothesis.net.counts[hypothesis.kept].tolist()
    values = sorted(sum(w * c for w, c in zip(weights, row, strict=True)) / sum(row) for row in counts)
    return float(values[(len(values) - 1) // 2])


# The checks. Each takes any rule, so that mutants can be given to it as well.


def check_bound(
    rule: Rule, domain: Domain, hidden: NDArray[np.int64], alpha: float, push: Callable[[int], float]
) -> int:
    """An adversary who knows a hidden database asks the worst query and answers at the edge of what is allowed."""
    queries = conjunctions(domain)
    truths = np.array([table(domain, query) for query in queries]) @ (hidden / hidden.sum())
    limit = rule.max_updates(alpha)
    hypothesis = rule.initial()
    updates = 0
    while True:
        errors = np.abs([hypothesis.answer(query) for query in queries] - truths)
        worst = int(np.argmax(errors))
        if errors[worst] < alpha:
            return updates
        updates += 1
        assert updates <= limit
        answer = truths[worst] + 0.999 * alpha * push(updates)
        hypothesis = rule.update(hypothesis, queries[worst], float(answer))


def check_answers(rule: Rule, domain: Domain, seed: int) -> None:
    """Between updates: answers in [0, 1], equal to brute force, complements add up to 1, constants are 0 and 1."""
    rng = np.random.default_rng(seed)
    hypothesis = rule.initial()
    queries = mixed(domain, rng)
    for query in rng.permutation(np.array(queries, dtype=object))[:8]:
        for other in queries:
            value = hypothesis.answer(other)
            assert 0 <= value <= 1
            assert value == pytest.approx(brute_force(hypothesis, table(domain, other)), abs=1e-9)
        assert hypothesis.answer(Query.constant(everyone=True)) == 1
        assert hypothesis.answer(Query.constant(everyone=False)) == 0
        hypothesis = rule.update(hypothesis, query, float(rng.uniform(0, 1)))


def check_replay(rule: Rule, domain: Domain, seed: int) -> None:
    """The same updates give the same bits, whatever was asked in between."""
    rng = np.random.default_rng(seed)
    queries = mixed(domain, rng)
    updates = [(queries[i], float(rng.uniform(0, 1))) for i in rng.integers(0, len(queries), 12)]

    def replay(asked: int) -> list[float]:
        hypothesis = rule.initial()
        for query, answer in updates:
            for other in queries[:asked]:
                hypothesis.answer(other)
            hypothesis = rule.update(hypothesis, query, answer)
        return [hypothesis.answer(query) for query in queries]

    assert replay(asked=0) == replay(asked=0) == replay(asked=len(queries))


def check_progress(rule: Rule, domain: Domain) -> None:
    """Told 9 tenths, the hypothesis moves up; told 1 tenth, down."""
    query = Query.among(domain, domain.names[0], [0])
    for answer in (0.1, 0.9):
        before = rule.initial()
        value = before.answer(query)
        assert (rule.update(before, query, answer).answer(query) - value) * (answer - value) > 0


PUSHES: dict[str, Callable[[int], float]] = {
    "low": lambda _: -1.0,
    "high": lambda _: 1.0,
    "alternating": lambda i: (-1.0) ** i,
    "true": lambda _: 0.0,
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_adversary_gets_more_updates_than_the_bound(name: str, shape: tuple[int, ...], alpha: float) -> None:
    domain = make_domain(shape)
    rng = np.random.default_rng(5)
    one_cell = np.zeros(domain.size, dtype=np.int64)
    one_cell[-1] = ROWS
    spread = np.bincount(rng.integers(0, domain.size, ROWS), minlength=domain.size)
    for hidden, push in product((one_cell, spread), PUSHES.values()):
        check_bound(RULES[name](domain, alpha), domain, hidden, alpha, push)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_answers_are_those_of_brute_force(name: str, shape: tuple[int, ...]) -> None:
    domain = make_domain(shape)
    for seed in range(2):
        check_answers(RULES[name](domain, 0.1), domain, seed)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_replay_gives_the_same_bits(name: str, shape: tuple[int, ...]) -> None:
    domain = make_domain(shape)
    check_replay(RULES[name](domain, 0.1), domain, 3)


@pytest.mark.parametrize("name", NAMED)
def test_the_table_of_rules_says_which_learn_statistics(name: str) -> None:
    rule = RULES[name](make_domain((2, 3)), 0.2)
    assert isinstance(rule.initial(), StatisticHypothesis) == NAMED[name].statistics


@pytest.mark.parametrize("name", RULES)
def test_an_update_moves_towards_the_answer(name: str) -> None:
    domain = make_domain((2, 3))
    check_progress(RULES[name](domain, 0.2), domain)


# Mutants: planted bugs that the checks above must find.


class Backwards(MultiplicativeWeights):
    """Moves away from the answer."""

    def _textbook_tilt(self, *given: Any) -> float:
        return -super()._textbook_tilt(*given)


class StaleDense(Dense):
    """Keeps its marginals when it changes."""

    def _forget(self) -> None:
        self._last = None


class Stale(MultiplicativeWeights):
    def initial(self) -> Dense:
        return StaleDense(self.domain)


class Unnormalised(MultiplicativeWeights):
    """Forgets to move the total."""

    def update(self, hypothesis: Dense, query: Query, answer: float) -> Dense:
        total = hypothesis._total
        super().update(hypothesis, query, answer)._total = total
        return hypothesis


class Strict(MedianNet):
    """Removes only what is strictly beyond the median (as in some notes), so ties stay."""

    def update(self, hypothesis: Databases, query: Any, answer: float) -> Databases:
        values, median = self.values(query, hypothesis.kept), hypothesis.answer(query)
        return replace(hypothesis, kept=hypothesis.kept[values <= median if answer < median else values >= median])


def test_the_bound_rejects_an_update_with_the_wrong_sign() -> None:
    domain = make_domain((2, 3))
    hidden = np.array([0, 0, 0, 0, 0, ROWS])
    mutant = Backwards(domain, 0.3, step="textbook")
    with pytest.raises(AssertionError):
        check_bound(mutant, domain, hidden, 0.3, PUSHES["true"])
    with pytest.raises(AssertionError):
        check_progress(mutant, domain)


def test_the_bound_rejects_a_strict_median() -> None:
    domain = make_domain((2, 3))
    with pytest.raises(AssertionError):
        check_bound(Strict(domain, MedianNet.databases(domain, ROWS).counts), domain, np.eye(6, dtype=int)[5], 0.1, abs)


def test_brute_force_rejects_stale_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.release.hypothesis.cell_weights._FEW", 0)
    domain = make_domain((3, 2, 2))
    with pytest.raises(AssertionError):
        check_answers(Stale(domain, 0.1), domain, 0)
    with pytest.raises(AssertionError):
        check_replay(Stale(domain, 0.1), domain, 0)


def test_brute_force_rejects_a_wrong_total() -> None:
    domain = make_domain((3, 2, 2))
    with pytest.raises(AssertionError):
        check_answers(Unnormalised(domain, 0.1), domain, 0)
