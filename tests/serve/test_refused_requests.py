"""What a request that is refused, or answered in steps, has paid: to the atom what went from the budget meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.budget import Loss
from tacit.serve.dataset import Dataset, ServerLock
from tacit.serve.keys import KeyRing, make_key
from tacit.serve.question import read
from tacit.serve.refusal import Refusal
from tacit.serve.writer import charges
from tacit.session import Session

ROWS = 40_000
DOMAIN = tacit.Domain({"a": tacit.integer(0, 19), "b": tacit.integer(0, 19), "x": tacit.integer(0, 9)})
# Three quarters of the rows are alike. A session without a start takes all rows for equally likely, so what is about
# them is off by thousands of rows, and gates have noise of tens: by chance they miss that less than once in 10^20 runs.
PLAIN: dict[str, Any] = {"mechanism": "iterative", "warm": 0.0}


def opened(folder: Path, epsilon: float, hits: int) -> Session:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({name: rng.integers(0, DOMAIN[name].size, ROWS) for name in DOMAIN})
    rows.loc[rows.index < 3 * ROWS // 4, ["a", "b", "x"]] = [7, 7, 9]
    budget = tacit.Budget(epsilon=epsilon, delta=1e-6)
    return tacit.open(data=rows, domain=DOMAIN, ledger=folder / "l.tacit", budget=budget, hits=hits, **PLAIN)


@contextmanager
def served(folder: Path, session: Session, quota: float) -> Iterator[tuple[Dataset, Any]]:
    secret = make_key(folder / "keys", "mia", "analyst", quota)
    ring = KeyRing(folder / "keys")
    dataset = Dataset("t", session, folder / "l.tacit", ring, ServerLock(folder / "l.tacit"))
    try:
        yield dataset, ring.find(secret)
    finally:
        dataset.close()


def test_a_table_in_steps_costs_what_it_needs_beside_its_cells_too(tmp_path: Path) -> None:
    session = opened(tmp_path, 5.0, 200)
    steps = session.in_steps(session.question("SELECT a, b, COUNT(*), SUM(x) FROM data GROUP BY a, b"), 250)
    in_steps = 0
    while True:
        try:
            in_steps += sum(facts.cost.atoms for facts in next(steps))
        except StopIteration as end:
            answer = end.value
            break
    assert answer.cost.atoms == session.spent.atoms
    assert answer.cost.atoms > in_steps > 0  # the sum of the cell that most rows are in was bought after the counts
    assert answer.source == "measured"


def test_what_a_refused_request_had_paid_is_on_its_quota(tmp_path: Path) -> None:
    session = opened(tmp_path, 5.0, 10)
    each = session.dry_run("SELECT COUNT(*) FROM data WHERE x <= 4").cost_at_most.atoms / session.total.atoms
    # One hard answer fits into the quota, with its gate and the next, and a second one does not.
    with served(tmp_path, session, 1.05 * each) as (dataset, key):
        asked = read("SELECT COUNT(*) FILTER (WHERE x <= 4), COUNT(*) FILTER (WHERE a < 3) FROM data", DOMAIN)
        with pytest.raises(Refusal, match=r"quota.* What was paid for before that stays spent"):
            dataset.ask(key, [asked]).result()
        assert dataset.spent_by(key).atoms == session.spent.atoms > 0


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 1.05, 1.3])
def test_what_a_batch_had_paid_before_it_failed_is_somebodys(tmp_path: Path, share: float) -> None:
    """Wherever it is cut, between a gate and its answer or after it, nothing that was spent is left over."""
    session = opened(tmp_path, 5.0, 10)
    asks = [session.question(tacit.count(**where)) for where in ({"x": (0, 4)}, {"a": (0, 3)}, {"b": (0, 3)})]
    one = session.price(asks[0]).cost_at_most
    most = Loss(one.measure, int(share * one.atoms))
    with pytest.raises(tacit.TacitError) as caught, session.spending(most):
        session.answer_many(asks)
    paid = charges(session, caught.value, asks)
    assert sum(paid.values()) == session.spent.atoms <= most.atoms
    assert set(paid) <= {ask.query.core.key for ask in asks}
    assert sum(atoms for _, atoms in session.paid_since(0)) == session.spent.atoms
