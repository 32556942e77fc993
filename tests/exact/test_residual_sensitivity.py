"""Residuals against enumeration: all small databases, all their neighbours, many scopes and weights.

What is stated must be attained in squared L2 distance and never exceeded in L1. Where floats are used, they are
compared with whole numbers of any length. Mistakes planted in the formula must be caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from itertools import chain, combinations, combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact.price import Sensitivity
from tacit.model import residuals
from tacit.model.attribute import Attribute, category, integer
from tacit.model.domain import Domain
from tacit.model.residuals import Residuals, residual
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import sensitivity, truth

Ints = NDArray[np.int64]
Rule = Callable[[Residuals, Domain], Sensitivity]
Term = tuple[int, Sequence[int], Sequence[bool]]  # of one scope: its weight, the sizes, which of them a row changes

DOMAINS: dict[str, Domain] = {
    "2x2": Domain({"a": integer(0, 1), "b": category(["x", "y"])}),
    "2x3": Domain({"b": integer(0, 1), "a": integer(0, 1, missing="unknown")}),  # declared in another order
    "5": Domain({"a": integer(0, 4)}),
    "2x2x3": Domain({"a": integer(0, 1), "b": integer(0, 1), "c": integer(0, 2)}),
    "4x3": Domain({"a": integer(0, 3), "b": integer(0, 1, other="else")}),
}
ROWS = (1, 2, 3)


def over(*sizes: int) -> Domain:
    attributes: dict[str, Attribute] = {f"a{i:02}": integer(0, size - 1) for i, size in enumerate(sizes)}
    return Domain(attributes)


def scopes_up_to(domain: Domain, order: int) -> list[tuple[str, ...]]:
    names = sorted(domain.names)
    return [scope for size in range(1, order + 1) for scope in combinations(names, size)]


def cases() -> Iterator[tuple[str, Residuals]]:
    chance = np.random.default_rng(16)
    for name, domain in DOMAINS.items():
        every = scopes_up_to(domain, len(domain))
        for scopes in (every, every[:1], every[-1:], every[1:] or every, every[::2], every[: len(domain)]):
            yield name, Residuals(tuple(scopes), (1,) * len(scopes))
            for _ in range(3):
                weights = tuple(chance.integers(1, 30, len(scopes)).tolist())
                yield name, Residuals(tuple(scopes), weights)


CASES = list(dict.fromkeys(cases()))


def records(domain: Domain, counts: Ints, rows_per_person: int = 1) -> Records:
    held = np.flatnonzero(counts)
    codes = [part.astype(np.uint8) for part in np.unravel_index(held, domain.shape)]
    return Records(domain, codes, counts[held], rows_per_person)


@cache
def databases(name: str, rows: int) -> Ints:
    """The histograms of all databases of so many rows."""
    cells = DOMAINS[name].size
    return np.array([np.bincount(one, minlength=cells) for one in combinations_with_replacement(range(cells), rows)])


@cache
def neighbours(name: str, rows: int, replaced: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of all pairs of databases of which one is the other with up to so many rows replaced."""
    tables = databases(name, rows)
    first, second = np.nonzero(np.abs(tables[:, None] - tables[None]).sum(axis=2) <= 2 * replaced)
    return first[first < second], second[first < second]


@cache
def worst(question: Residuals, name: str, rows: int, replaced: int = 1) -> tuple[int, int]:
    """The largest L1 and squared L2 distance between the true answers of neighbours, as the curator works them out."""
    answers = np.array([truth(question, records(DOMAINS[name], counts)) for counts in databases(name, rows)])
    first, second = neighbours(name, rows, replaced)
    moved = np.abs(answers[first] - answers[second])
    return int(moved.sum(axis=1).max()), int((moved**2).sum(axis=1).max())


def test_the_squared_distance_is_attained_and_the_plain_one_never_exceeded() -> None:
    assert len(CASES) > 80
    for name, question in CASES:
        claimed = sensitivity(question, DOMAINS[name])
        for rows in ROWS:
            l1, l2_squared = worst(question, name, rows)
            assert claimed.l2_squared == l2_squared, (name, question)
            assert l1 <= claimed.l1, (name, question)


def test_a_single_table_is_exact_in_the_plain_distance_too() -> None:
    alone = [(name, question) for name, question in CASES if len(question.scopes) == 1]
    assert len(alone) > 20
    for name, question in alone:
        assert sensitivity(question, DOMAINS[name]).l1 == worst(question, name, 2)[0], (name, question)


def test_a_large_table_is_bounded_by_the_norms_of_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {sizes: residuals._largest_l1(sizes) for sizes in [(2,), (2, 2), (2, 3), (2, 2, 3), (4, 4, 4), (2,) * 6]}
    monkeypatch.setattr(residuals, "_TRIED", 0)
    for sizes, largest in exact.items():
        assert largest <= residuals._largest_l1.__wrapped__(sizes) == 2 * math.prod(2 * (n - 1) for n in sizes)


@pytest.mark.parametrize("each", [2, 3])
def test_people_with_several_rows(each: int) -> None:
    for name, question in CASES[::3]:
        claimed = sensitivity(question, DOMAINS[name]).times(each)
        l1, l2_squared = worst(question, name, 3, each)
        assert claimed.l2_squared == l2_squared
        assert l1 <= claimed.l1


def matrix(question: Residuals, domain: Domain) -> Ints:
    """One line for each answer, one column for each cell, from the words: weight · Xi_A · (sums over the others)."""
    blocks = []
    for scope, weight in zip(question.scopes, question.weights, strict=True):
        names = sorted(domain.names)  # the cells in the order of the names, in which scopes are too
        factors = [
            domain[name].size * np.eye(domain[name].size, dtype=np.int64) - 1
            if name in scope
            else np.ones((1, domain[name].size), dtype=np.int64)
            for name in names
        ]
        blocks.append(weight * reduce(np.kron, factors))
    return np.concatenate(blocks)


@pytest.mark.parametrize(("name", "question"), CASES[::5])
def test_the_truth_is_the_matrix_times_the_cells(name: str, question: Residuals) -> None:
    domain, chance = DOMAINS[name], np.random.default_rng(1)
    counts = chance.integers(0, 1000, domain.size)
    by_name = counts.reshape(domain.shape).transpose(np.argsort(domain.names)).ravel()
    found = truth(question, records(domain, counts))
    assert found.dtype == np.int64
    assert found.shape == (question.size(domain),)
    assert found.tolist() == (matrix(question, domain) @ by_name).tolist()


def test_residuals_and_the_number_of_rows_give_every_table_back() -> None:
    domain = over(2, 3, 4)
    table = np.random.default_rng(2).integers(0, 100, domain.shape)
    # N = Σ over subsets of the axes of their residual / Π of all sizes, spread over the other axes.
    parts = np.zeros(domain.shape)
    for axes in chain.from_iterable(combinations(range(3), size) for size in range(4)):
        others = tuple(axis for axis in range(3) if axis not in axes)
        own = residual(table.sum(axis=others)) if axes else table.sum()
        parts += np.expand_dims(own, others) / domain.size
    assert np.allclose(parts, table)


def test_the_largest_answers_stay_within_64_bits() -> None:
    domain = over(2, 16)
    question = Residuals((("a00", "a01"),), (2**27,))  # weight times cells: 2^32
    question.check(domain)
    rows = 2**30
    assert question.exact(domain, rows)
    assert not question.exact(domain, rows + 1)
    for cells in ([0], [0, 1], [0, 31], list(range(32))):
        counts = np.zeros(32, dtype=np.int64)
        counts[cells] = rows // len(cells)
        expected = matrix(question, domain).astype(object) @ counts.astype(object)
        assert truth(question, records(domain, counts)).tolist() == expected.tolist()


# -- many attributes --------------------------------------------------------------------------------------------------


def l2_squared(question: Residuals, domain: Domain) -> int:
    """Worked out anew, whatever was remembered."""
    return residuals._largest_l2_squared(question, {name: domain[name].size for name in question.names})


def whole(question: Residuals, domain: Domain) -> int:
    """What the allowance is a share of."""
    sizes = [[domain[name].size for name in scope] for scope in question.scopes]
    return sum(2 * w * w * math.prod(n * (n - 1) for n in s) for w, s in zip(question.weights, sizes, strict=True))


def large_cases() -> Iterator[tuple[Residuals, Domain]]:
    chance = np.random.default_rng(13)
    for trial in range(12):
        sizes = [2] * 13 if trial % 3 == 0 else chance.integers(2, 9, 13).tolist()
        domain = over(*sizes)
        every = scopes_up_to(domain, 3)
        chosen = [every[i] for i in sorted(chance.choice(len(every), 150, replace=False))]
        if len({name for scope in chosen for name in scope}) < 13:
            chosen = every
        # Small and huge weights: with the huge ones no float holds the numbers.
        limits = [2**32 // math.prod(domain[name].size for name in scope) for scope in chosen]
        weights = [int(chance.integers(1, limit if trial % 2 else 9)) for limit in limits]
        yield Residuals(tuple(chosen), tuple(weights)), domain


LARGE = list(large_cases())


def test_floats_are_never_below_whole_numbers_and_hardly_above(monkeypatch: pytest.MonkeyPatch) -> None:
    floats = [l2_squared(*case) for case in LARGE]
    monkeypatch.setattr(residuals, "_LISTED", 13)
    exact = [l2_squared(*case) for case in LARGE]
    for case, rounded, largest in zip(LARGE, floats, exact, strict=True):
        assert largest <= rounded <= largest + 2 * (whole(*case) // 2**47 + 1)


def test_without_the_allowance_floats_are_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals, "_ALLOWANCE", 2**200)
    floats = [l2_squared(*case) for case in LARGE]
    monkeypatch.setattr(residuals, "_LISTED", 13)
    exact = [l2_squared(*case) for case in LARGE]
    assert any(rounded < largest for rounded, largest in zip(floats, exact, strict=True))


def test_floats_and_single_tables_are_sound_where_all_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches for many attributes, on few."""
    for listed, rounded in ((0, 20), (0, 0)):
        monkeypatch.setattr(residuals, "_LISTED", listed)
        monkeypatch.setattr(residuals, "_ROUNDED", rounded)
        for name, question in CASES:
            claimed = l2_squared(question, DOMAINS[name])
            assert claimed >= worst(question, name, 2)[1]
            if len(question.scopes) == 1 and not rounded:
                assert claimed == worst(question, name, 2)[1]


def test_beyond_twenty_attributes_the_bound_is_at_most_twice_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = over(*([2, 3, 5] * 7))
    question = Residuals(tuple(scopes_up_to(domain, 2)), tuple(range(1, 232)))
    bound = l2_squared(question, domain)
    assert len(question.names) == 21
    monkeypatch.setattr(residuals, "_ROUNDED", 21)
    closer = l2_squared(question, domain)
    assert whole(question, domain) <= closer <= bound <= 2 * closer


def test_the_stated_distances_are_those_of_some_vector_for_any_number_of_attributes() -> None:
    for attributes in (1, 2, 12, 13, 15, 21, 30):
        domain = over(*([2, 3, 4] * 10)[:attributes])
        scopes = scopes_up_to(domain, 2)
        found = sensitivity(Residuals(tuple(scopes), (3,) * len(scopes)), domain)  # `Sensitivity` checks itself
        assert 2 * found.l2_squared <= found.l1**2  # answers add up to 0, so no single one moves by more than half


# -- planted mistakes -------------------------------------------------------------------------------------------------


def by_formula(
    term: Callable[[Term], int],
    changed: Callable[[Sequence[str]], Iterator[tuple[str, ...]]] | None = None,
    kept: slice = slice(None),
) -> Rule:
    """max over sets of changed attributes of the sum over scopes, term by term."""

    def rule(question: Residuals, domain: Domain) -> Sensitivity:
        largest = 0
        pairs = list(zip(question.scopes, question.weights, strict=True))[kept]
        for chosen in (changed or all_subsets)(question.names):
            terms = [(w, [domain[n].size for n in scope], [n in chosen for n in scope]) for scope, w in pairs]
            largest = max(largest, sum(map(term, terms)))
        return Sensitivity(max(1, sensitivity(question, domain).l1, largest), max(1, largest))

    return rule


def all_subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))


def right(term: Term) -> int:
    w, sizes, changed = term
    product = math.prod(-1 if c else n - 1 for n, c in zip(sizes, changed, strict=True))
    return 2 * w**2 * math.prod(sizes) * (math.prod(n - 1 for n in sizes) - product)


def wrong_sign(term: Term) -> int:
    w, sizes, changed = term
    product = math.prod(1 if c else n - 1 for n, c in zip(sizes, changed, strict=True))
    return 2 * w**2 * math.prod(sizes) * (math.prod(n - 1 for n in sizes) - product)


def without_the_product(term: Term) -> int:
    """As if the two columns were orthogonal."""
    w, sizes, changed = term
    return 2 * w**2 * math.prod(n * (n - 1) for n in sizes) * any(changed)


def weight_not_squared(term: Term) -> int:
    return right(term) // term[0]


def sizes_forgotten(term: Term) -> int:
    return right(term) // math.prod(term[1])


def one_column(term: Term) -> int:
    """As if a row were added, not replaced."""
    return right(term) // 2


MUTANTS: dict[str, Rule] = {
    "the sign of what changes": by_formula(wrong_sign),
    "columns taken for orthogonal": by_formula(without_the_product),
    "weights not squared": by_formula(weight_not_squared),
    "sizes forgotten": by_formula(sizes_forgotten),
    "a factor 2 forgotten": by_formula(one_column),
    "the first scope forgotten": by_formula(right, kept=slice(1, None)),
    "the last scope forgotten": by_formula(right, kept=slice(None, -1)),
    "single attributes alone": by_formula(right, lambda names: ((name,) for name in names)),
    "all attributes alone": by_formula(right, lambda names: iter([tuple(names)])),
}


def holds(rule: Rule, name: str, question: Residuals) -> bool:
    claimed, (l1, l2) = rule(question, DOMAINS[name]), worst(question, name, 2)
    return l1 <= claimed.l1 and l2 <= claimed.l2_squared


def test_the_formula_term_by_term_is_the_same() -> None:
    for name, question in CASES:
        assert by_formula(right)(question, DOMAINS[name]).l2_squared == sensitivity(question, DOMAINS[name]).l2_squared


@pytest.mark.parametrize("mutant", MUTANTS)
def test_planted_mistakes_are_caught(mutant: str) -> None:
    assert not all(holds(MUTANTS[mutant], name, question) for name, question in CASES)
    assert all(holds(sensitivity, name, question) for name, question in CASES)
