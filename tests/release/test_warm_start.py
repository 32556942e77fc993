"""The warm start on a real curator: what it buys, what it learns, that it is replayed for nothing, what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import curating, open_curator, public_of
from tacit.errors import BudgetExhausted, InvalidBudget, InvalidDomain
from tacit.load import open_source
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import Marginal, key
from tacit.release import allocation
from tacit.release import warm_start as warm
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.fit import fit
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.warm_start import WarmStart, recalled, wanted, warm_start
from tacit.store.chain import digest
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator

DOMAIN = Domain(
    {
        "a": tacit.integer(0, 5),
        "b": tacit.integer(0, 2),
        "c": tacit.boolean(),
        "d": tacit.integer(0, 3),
        "e": tacit.boolean(),
    }
)
N = 20_000
MILD = Budget(epsilon=2.0, delta=1e-9)
Make = Callable[..., Curator]
RECEIPT = Receipt(1, "0" * 64)


def rows() -> dict[str, Any]:
    """b depends on a; e is the parity of c and d > 0, up to some errors, which no pair shows as c is a fair coin."""
    rng = np.random.default_rng(1)
    a = rng.choice(6, N, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    b = np.where(rng.random(N) < 0.7, a % 3, 0)
    c = rng.random(N) < 0.5
    d = rng.choice(4, N, p=[0.7, 0.1, 0.1, 0.1])
    return {"a": a, "b": b, "c": c, "d": d, "e": (d > 0) ^ c ^ (rng.random(N) < 0.05)}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Opens the same ledger again each time, as after a restart."""
    opened: list[Curator] = []
    records = read_records(open_source(pa.table(rows())), DOMAIN)

    def close() -> None:
        while opened:
            opened.pop()._ledger.close()

    def again(budget: Budget = MILD, name: str = "l") -> Curator:
        close()
        opened.append(open_curator(tmp_path, records, DOMAIN, budget, name))
        return opened[-1]

    yield again
    close()


def error(curator: Curator, hypothesis: Dense | Mixture, *names: str) -> float:
    """The L1 distance of a table from the data's, as a fraction of n."""
    exact = curator._records.table(tuple(sorted(names))) / N
    return float(np.abs(hypothesis.marginal(sorted(names)) - exact).sum())


def scopes(curator: Curator, loss: Loss) -> list[tuple[str, ...]]:
    found = list[tuple[str, ...]]()
    for question, _ in wanted(public_of(curator), loss):
        if isinstance(question, Residuals):
            found += question.scopes
        elif isinstance(question, Marginal):
            found.append(question.names)
    return found


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_pairs_are_learned_within_the_price(make: Make, delta: float) -> None:
    curator = make(Budget(epsilon=2.0, delta=delta))
    loss = public_of(curator).total.split(2)
    built = warm_start(public_of(curator), curator, loss=loss)
    assert len(built.measured) == (1 if delta else len(scopes(curator, loss)))
    assert public_of(curator).spent <= loss
    assert built.bought == public_of(curator).spent
    assert public_of(curator).spent.atoms > 0.99 * loss.atoms
    for pair in (("a", "b"), ("b", "d"), ("c", "d")):
        assert error(curator, built.hypothesis, *pair) < 0.05
    assert error(curator, built.hypothesis, "a", "b", "d") < 0.1
    # The control: without the pairs, the same bound does not hold.
    other = make(Budget(epsilon=2.0, delta=delta), name="other")
    singles = [other.measure([Marginal((name,), Query.constant(everyone=True))], loss.split(8))[0] for name in "abcde"]
    independent = fit(DOMAIN, singles, N).hypothesis
    assert error(other, independent, "a", "b") > 0.3


def test_the_same_call_again_is_free_and_gives_the_same_bits(make: Make) -> None:
    curator = make()
    loss = public_of(curator).total.split(2)
    built, spent = warm_start(public_of(curator), curator, loss=loss), public_of(curator).spent
    cells = built.hypothesis.marginal(DOMAIN.names)
    curator = make()
    for again in (warm_start(public_of(curator), curator, loss=loss), recalled(public_of(curator))):
        assert again is not None
        assert public_of(curator).spent == spent
        assert [one.key for one in again.measured] == [one.key for one in built.measured]
        assert again.bought == built.bought
        assert (again.hypothesis.marginal(DOMAIN.names) == cells).all()


def test_three_attributes_show_what_no_pair_does(make: Make) -> None:
    curator = make(Budget(epsilon=8.0, delta=1e-9))
    loss = public_of(curator).total.split(2)
    built = warm_start(public_of(curator), curator, loss=loss)
    assert ("c", "d", "e") in scopes(curator, loss)
    assert error(curator, built.hypothesis, "c", "d", "e") < 0.1
    # The control: pairs alone, without noise, cannot.
    tables = [Marginal(pair, Query.constant(everyone=True)) for pair in combinations(DOMAIN.names, 2)]
    exact = [
        Measured(
            key=key(table),
            question=table,
            values=curator._records.table(table.names).ravel(),
            unit=1,
            noise=Noise("gaussian", 1.0),
            cost=loss,
            receipt=RECEIPT,
        )
        for table in tables
    ]
    assert error(curator, fit(DOMAIN, exact, N).hypothesis, "c", "d", "e") > 0.2


def test_three_attributes_show_it_too_where_cells_are_too_many_to_list(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "MAX_LISTED_CELLS", 1)
    for limit, most in (("MAX_TRIPLED_CELLS", 0), ("MAX_LISTED_CELLS", 0)):
        monkeypatch.setattr(allocation, limit, most)
    allocation.allocation.cache_clear()
    try:
        curator = make(Budget(epsilon=8.0, delta=1e-9))
        loss = public_of(curator).total.split(2)
        built = warm_start(public_of(curator), curator, loss=loss)
        assert isinstance(built.hypothesis, Mixture)
        assert ("c", "d", "e") in scopes(curator, loss)
        assert error(curator, built.hypothesis, "c", "d", "e") < 0.1
        # Fits of pairs alone are what they were, so they keep their name: what was certified of them stays so.
        (release,) = built.measured
        pairs = Residuals((("a",), ("b",), ("a", "b")), (1, 1, 1))
        ways = [digest([way, release.receipt.seal]) for way in ("mixture 4", "mixture 5")]
        names = [
            warm.fit_name([replace(release, question=one)], None, mixture=True) for one in (pairs, release.question)
        ]
        assert names == ways
        # Between the two sizes a fit would go through all cells too often.
        monkeypatch.setattr(allocation, "MAX_LISTED_CELLS", 2**27)
        allocation.allocation.cache_clear()
        assert max(map(len, scopes(curator, loss))) == 2
    finally:
        allocation.allocation.cache_clear()


def test_what_is_wanted_follows_from_what_is_public(make: Make) -> None:
    """Single attributes first, pairs where there is some budget, triples where there is much; each on those within."""
    curator = make()
    sizes = [max(map(len, scopes(curator, Loss("gdp", atoms)))) for atoms in (10**4, 10**9, 10**12)]
    assert sizes == [1, 2, 3]
    for atoms in (10**6, 10**8, 10**10, 10**12):
        found = set(scopes(curator, Loss("gdp", atoms)))
        assert all(set(combinations(scope, size)) <= found for scope in found for size in range(1, len(scope)))
    assert public_of(curator).spent.atoms == 0
    pure = make(Budget(epsilon=2.0, delta=0.0), name="pure")
    many = [len(scopes(pure, Loss("epsilon", atoms))) for atoms in (10**9, 10**11, 10**12)]
    assert many == sorted(many)
    assert many[0] < many[-1]
    assert max(map(len, scopes(pure, Loss("epsilon", 10**12)))) == 2  # triples would drown
    assert public_of(pure).spent.atoms == 0


def test_too_little_for_anything_ends_with_a_distribution(make: Make) -> None:
    curator = make()
    built = warm_start(public_of(curator), curator, loss=Loss("gdp", 10**5))
    assert np.isfinite(built.hypothesis.marginal(DOMAIN.names)).all()
    assert public_of(curator).spent.atoms <= 10**5


def test_an_attribute_with_a_single_value_is_no_trouble(tmp_path: Path) -> None:
    one = Domain({**{name: DOMAIN[name] for name in DOMAIN.names}, "only": tacit.category(["x"])})
    with curating(tmp_path, pa.table(rows() | {"only": ["x"] * N}), one, MILD) as curator:
        built = warm_start(public_of(curator), curator, loss=public_of(curator).total.split(2))
        assert built.hypothesis.marginal(["only"]).tolist() == pytest.approx([1.0])


def cells(built: WarmStart | None) -> Any:
    assert built is not None
    return built.hypothesis.marginal(DOMAIN.names)


@pytest.mark.parametrize("cut", [1, 3, 7])
@pytest.mark.parametrize("theirs", [[], [("a", "b")], [("a",), ("c", "d")]])
def test_a_start_that_is_cut_short_and_gone_on_with_is_recalled_as_it_was_made(
    make: Make, monkeypatch: pytest.MonkeyPatch, cut: int, theirs: list[tuple[str, ...]]
) -> None:
    pure = Budget(epsilon=2.0, delta=0.0)
    curator = make(pure)
    loss = public_of(curator).total.split(2)
    for names in theirs:
        curator.measure([Marginal(names, Query.constant(everyone=True))], loss.split(50))
    real, bought = Curator.measure, list[int]()

    def interrupted(self: Curator, *given: Any, **more: Any) -> Any:
        bought.append(0)
        if len(bought) > cut:
            raise KeyboardInterrupt
        return real(self, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            warm_start(public_of(curator), curator, loss=loss)
    curator = make(pure)
    built = warm_start(public_of(curator), curator, loss=loss)
    again = recalled(public_of(make(pure)))
    assert (cells(built) == cells(again)).all()
    assert len({one.receipt.entry for one in built.measured}) == len(built.measured)
    assert again is not None
    assert [one.key for one in again.measured] == [one.key for one in built.measured]


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_start_whose_every_part_others_have_bought_is_marked_all_the_same(make: Make, delta: float) -> None:
    budget = Budget(epsilon=2.0, delta=delta)
    curator = make(budget)
    loss = public_of(curator).total.split(3)
    for question, price in wanted(public_of(curator), loss):
        curator.measure([question], price)
    built = warm_start(public_of(curator), curator, loss=loss)
    assert (cells(built) == cells(recalled(public_of(make(budget))))).all()


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_an_attribute_with_more_bins_than_a_table_may_have_is_left_out(tmp_path: Path, delta: float) -> None:
    wide = Domain({"a": tacit.integer(0, 2**18), "b": tacit.boolean(), "c": tacit.integer(0, 3)})
    rows = pa.table({"a": [1, 2, 3, 4], "b": [True, False] * 2, "c": [0, 1, 2, 3]})
    with curating(tmp_path, rows, wide, Budget(epsilon=2.0, delta=delta)) as curator:
        names = {name for scope in scopes(curator, public_of(curator).total) for name in scope}
        assert "b" in names
        assert "a" not in names


def test_a_domain_without_choices_is_refused_in_words(tmp_path: Path) -> None:
    only = Domain({"a": tacit.category(["x"])})
    with curating(tmp_path, pa.table({"a": ["x", "x"]}), only, MILD) as curator:
        with pytest.raises(InvalidDomain, match="two values"):
            warm_start(public_of(curator), curator, loss=public_of(curator).total)
        assert public_of(curator).spent.atoms == 0


def test_progress_reaches_its_total(make: Make) -> None:
    told: list[tuple[int, int]] = []
    curator = make()
    loss = public_of(curator).total.split(2)
    warm_start(public_of(curator), curator, loss=loss, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize(
    ("arguments", "error_type"),
    [
        ({"loss": Loss("epsilon", 10**9)}, InvalidBudget),
        ({"loss": Loss("gdp", 0)}, InvalidBudget),
        ({"loss": Loss("gdp", 10**15)}, BudgetExhausted),
    ],
)
def test_what_is_refused_costs_nothing(make: Make, arguments: dict[str, Any], error_type: type[Exception]) -> None:
    curator = make()
    with pytest.raises(error_type):
        warm_start(public_of(curator), curator, **({"loss": public_of(curator).total.split(2)} | arguments))
    assert public_of(curator).spent.atoms == 0


def test_a_domain_beyond_memory_is_refused_with_both_numbers(tmp_path: Path) -> None:
    wide = Domain({f"c{i}": tacit.integer(0, 2047) for i in range(3)})
    with curating(tmp_path, pa.table({name: [1, 2] for name in wide.names}), wide, MILD) as curator:
        with pytest.raises(InvalidDomain, match=r"6,144 values.*8,589,934,592 cells.*at most 2,048 values"):
            warm_start(public_of(curator), curator, loss=public_of(curator).total)
        assert public_of(curator).spent.atoms == 0
