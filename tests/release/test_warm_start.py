"""The warm start on a real curator: what it buys, what it learns, that it is replayed for nothing, what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import curating, open_curator, public_of
from tacit.errors import BudgetExhausted, InvalidBudget, InvalidDomain, InvalidQuery
from tacit.load import open_source
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.release.hypothesis.dense import Dense
from tacit.release.warm_start import choose_plan, closure, prices, warm_start
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


def error(curator: Curator, hypothesis: Dense, *names: str) -> float:
    """The L1 distance of a table from the data's, as a fraction of n."""
    exact = curator._records.table(tuple(sorted(names))) / N
    return float(np.abs(hypothesis.marginal(sorted(names)) - exact).sum())


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_pairs_are_learned_within_the_price(make: Make, delta: float) -> None:
    curator = make(Budget(epsilon=2.0, delta=delta))
    loss = public_of(curator).total.split(2)
    built = warm_start(public_of(curator), curator, loss=loss)
    assert built.plan == "pairs"
    assert [len(step.names) for step in built.steps] == [1] * 5 + [2] * 10
    assert public_of(curator).spent <= loss
    assert built.bought == public_of(curator).spent
    assert public_of(curator).spent.atoms > 0.99 * loss.atoms
    independent = warm_start(public_of(curator), curator, loss=loss, interest=1)
    for pair in (("a", "b"), ("b", "d"), ("c", "d")):
        assert error(curator, built.hypothesis, *pair) < 0.05
    assert error(curator, built.hypothesis, "a", "b", "d") < 0.1
    # The control: without the pairs, the same bound does not hold.
    assert error(curator, independent.hypothesis, "a", "b") > 0.3


@pytest.mark.parametrize("plan", ["pairs", "adaptive"])
def test_the_same_call_again_is_free_and_gives_the_same_bits(make: Make, plan: Any) -> None:
    curator = make()
    loss = public_of(curator).total.split(2)
    built, spent = warm_start(public_of(curator), curator, loss=loss, plan=plan), public_of(curator).spent
    cells = built.hypothesis.marginal(DOMAIN.names)
    curator = make()
    again = warm_start(public_of(curator), curator, loss=loss, plan=plan)
    assert public_of(curator).spent == spent
    assert again.steps == built.steps
    assert again.bought == built.bought
    assert (again.hypothesis.marginal(DOMAIN.names) == cells).all()


def test_rounds_find_what_no_pair_shows(make: Make) -> None:
    curator = make()
    loss = public_of(curator).total.split(2)
    built = warm_start(public_of(curator), curator, loss=loss, plan="adaptive")
    assert public_of(curator).spent <= loss
    assert built.bought.atoms >= public_of(curator).spent.atoms
    assert any({"c", "d", "e"} <= set(step.names) for step in built.steps)
    assert error(curator, built.hypothesis, "c", "d", "e") < 0.1
    assert len(built.steps) == len({step.names for step in built.steps})
    # The control: pairs alone, with the same budget, cannot.
    other = make(name="other")
    pairs = warm_start(public_of(other), other, loss=loss, plan="pairs")
    assert error(other, pairs.hypothesis, "c", "d", "e") > 0.2


def test_an_interest_is_closed_under_taking_part() -> None:
    tables = closure(DOMAIN, [["b", "a", "d"], ["E"]])
    assert [t.names for t in tables] == [
        ("a",), ("b",), ("d",), ("e",), ("a", "b"), ("a", "d"), ("b", "d"), ("a", "b", "d"),
    ]  # fmt: skip
    assert len(closure(DOMAIN, 3)) == 5 + 10 + 10
    wide = Domain({f"c{i}": tacit.integer(0, 999) for i in range(3)})
    assert max(t.size(wide) for t in closure(wide, 2)) <= 2**18


def test_only_the_interest_is_bought(make: Make) -> None:
    curator = make()
    built = warm_start(
        public_of(curator), curator, loss=public_of(curator).total.split(2), interest=[["a", "b"], ["c"]]
    )
    assert [step.names for step in built.steps] == [("a",), ("b",), ("c",), ("a", "b")]


def test_prices_share_the_loss_by_size() -> None:
    tables = closure(DOMAIN, 2)
    for measure, power in (("rho", 1 / 3), ("epsilon", 2 / 9)):
        loss = Loss(measure, 10**11)  # type: ignore[arg-type]
        shares = prices(DOMAIN, tables, loss)
        assert 0.999 * loss.atoms < sum(share.atoms for share in shares) <= loss.atoms
        ratio = shares[-1].atoms / shares[0].atoms
        assert ratio == pytest.approx((tables[-1].size(DOMAIN) / tables[0].size(DOMAIN)) ** power, rel=1e-6)


def test_the_plan_follows_from_what_is_public(make: Make) -> None:
    curator = make()
    tables = closure(DOMAIN, 3)
    assert choose_plan(public_of(curator), tables, public_of(curator).total) == "pairs"
    assert (
        choose_plan(public_of(curator), tables, Loss("rho", 10**4)) == "adaptive"
    )  # noise of 17,000 rows in every cell
    assert public_of(curator).spent.atoms == 0


def test_too_little_for_anything_ends_with_a_distribution(make: Make) -> None:
    curator = make()
    built = warm_start(public_of(curator), curator, loss=Loss("rho", 10**5))
    assert built.plan == "adaptive"
    assert np.isfinite(built.hypothesis.marginal(DOMAIN.names)).all()
    assert public_of(curator).spent.atoms <= 10**5


@pytest.mark.parametrize("plan", ["pairs", "adaptive"])
def test_progress_reaches_its_total(make: Make, plan: Any) -> None:
    told: list[tuple[int, int]] = []
    curator = make()
    loss = public_of(curator).total.split(2)
    warm_start(
        public_of(curator), curator, loss=loss, plan=plan, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize(
    ("arguments", "error_type"),
    [
        ({"interest": 0}, InvalidQuery),
        ({"interest": True}, InvalidQuery),
        ({"interest": []}, InvalidQuery),
        ({"interest": ["ab"]}, InvalidQuery),
        ({"interest": [["nothing"]]}, InvalidQuery),
        ({"plan": "best"}, InvalidQuery),
        ({"pull": -1.0}, InvalidQuery),
        ({"loss": Loss("epsilon", 10**9)}, InvalidBudget),
        ({"loss": Loss("rho", 0)}, InvalidBudget),
        ({"loss": Loss("rho", 10**15)}, BudgetExhausted),
        ({"loss": Loss("rho", 10**15), "plan": "adaptive"}, BudgetExhausted),
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
