"""The warm start of ordered attributes with many bins: a tree of two levels, fitted level by level."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from support import once
from tacit.model.budget import Loss
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import Tree, marginal
from tacit.release import warm_start as module
from tacit.release.hypothesis.fit import fit
from tacit.release.ranges.choice import two_levels
from tacit.release.warm_start import WarmStart, wanted, warm_start
from tacit.session import Session

BINS, N = 512, 30_000
DOMAIN = tacit.Domain({"x": tacit.integer(0, BINS - 1), "a": tacit.integer(0, 4), "b": tacit.integer(0, 2)})
MEMORY = Path("/dev/shm")  # these ledgers need not survive anything


def make_rows() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, N)
    x = rng.normal(np.array([0.2, 0.5, 0.8])[kind] * BINS, np.array([0.04, 0.1, 0.07])[kind] * BINS)
    law = {name: rng.dirichlet(np.full(DOMAIN[name].size, 0.6), 3)[kind].cumsum(1) for name in ("a", "b")}
    codes = {name: (rng.random(N)[:, None] > one).sum(1).clip(0, DOMAIN[name].size - 1) for name, one in law.items()}
    return pd.DataFrame({"x": np.clip(x, 0, BINS - 1).astype(int), **codes})


ROWS = make_rows()
SOURCE = once(ROWS)
BELOW = np.bincount(ROWS["x"], minlength=BINS).cumsum() / N


def start(folder: Path, **changes: object) -> Session:
    settings = {"mechanism": "iterative", "warm": 0.8, "hits": 5, "questions": 500} | changes
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    return tacit.open(
        start=True,
        data=SOURCE,
        domain=DOMAIN,
        budget=budget,
        ledger=folder / "l.tacit",
        anchor=folder / "a.sqlite",
        **settings,
    )  # type: ignore[arg-type]


def started(session: Session) -> WarmStart:
    return warm_start(session._public, session._curator, loss=Loss(session.total.measure, session.total.atoms // 2))


def range_errors(found: WarmStart) -> NDArray[np.float64]:
    """Of all thresholds and of intervals between some of them."""
    gaps = found.hypothesis.marginal(["x"]).cumsum() - BELOW
    return np.abs(np.concatenate([gaps, (gaps[:, None] - gaps[None, ::16]).ravel()]))


def test_it_is_chosen_by_public_sizes_where_it_pays() -> None:
    assert two_levels("x", 17, "rho") is None  # Adult's ages
    assert two_levels("x", 50, "gdp") is None
    assert two_levels("x", 85, "gdp") == Tree("x", (9, 10), (1, 1))
    assert two_levels("x", 1024, "rho") == Tree("x", (32, 32), (1, 1))
    assert two_levels("x", 256, "epsilon") is None
    assert two_levels("x", 2048, "epsilon") is not None
    assert two_levels("x", 3, "rho") is None


def test_a_tree_takes_no_more_of_the_budget_than_what_it_stands_beside(tmp_path: Path) -> None:
    """Also where single attributes are all that is measured: with one attribute there is nothing else."""
    alone = tacit.Domain({"x": DOMAIN["x"]})
    plan = {"data": ROWS[["x"]], "domain": alone, "budget": tacit.Budget(epsilon=1.0, delta=1e-9)}
    places = {"ledger": tmp_path / "l.tacit", "anchor": tmp_path / "a.sqlite"}
    with tacit.open(mechanism="iterative", warm=0.8, hits=5, questions=500, **plan, **places) as session:
        loss = session.total.split(2)
        (interactions, first), (tree, second) = wanted(session._public, loss)
        assert isinstance(interactions, Residuals)
        assert isinstance(tree, Tree)
        assert 0.49 * loss.atoms < second.atoms <= first.atoms <= 0.5 * loss.atoms
        found = warm_start(session._public, session._curator, loss=loss)
        assert range_errors(found).mean() < 0.02


def test_ranges_are_surer_than_from_a_plain_table(monkeypatch: pytest.MonkeyPatch) -> None:
    # Means over 5 starts, about half of the plain table's.
    means, largest = {}, {}
    for words in ("tree", "plain"):
        if words == "plain":
            monkeypatch.setattr(module, "two_levels", lambda *arguments: None)
        errors = []
        for _ in range(5):
            with (
                tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name,
                start(Path(name)) as session,
            ):
                found = started(session)
                assert found.fitted.settled
                errors.append(range_errors(found))
        means[words] = np.mean([error.mean() for error in errors])
        largest[words] = np.mean([error.max() for error in errors])
    assert means["tree"] < 0.85 * means["plain"]
    assert largest["tree"] < 0.95 * largest["plain"]


def test_it_replays_and_later_tables_are_fitted_with_it(tmp_path: Path) -> None:
    queries = [Query.among(DOMAIN, "x", range(first, first + 99)) for first in range(0, 400, 40)]
    with start(tmp_path) as session:
        before = session.ask_many(queries)
        assert before[0].source == "measured"
        assert any("tree" in past.question for past in session.history)
        assert session._public.find([marginal(DOMAIN, "x")])[0] is None
        session._curator.measure([marginal(DOMAIN, "a", "b", "x")], Loss(session.total.measure, 10**9))
        assert session.knowledge is not None
        session._mechanism._catch_up(buy=True)  # type: ignore[attr-defined]
        known = session.knowledge.hypothesis.answer_many(queries)  # type: ignore[attr-defined]
        spent = session.spent
    with start(tmp_path) as session:
        assert [a.value for a in session.ask_many(queries)] == [a.value for a in before]
        session._mechanism._catch_up(buy=True)  # type: ignore[attr-defined]
        assert (session.knowledge.hypothesis.answer_many(queries) == known).all()  # type: ignore[union-attr]
        assert session.spent == spent


def test_a_fit_of_a_tree_alone_agrees_with_all_levels() -> None:
    # With next to no noise the fit must give the levels back: a level that is left out or misplaced would not.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tacit.open(
            start=True,
            data=SOURCE,
            domain=DOMAIN,
            budget=tacit.Budget(epsilon=500.0, delta=1e-9),
            ledger=folder / "l.tacit",
            anchor=folder / "a.sqlite",
            mechanism="direct",
        ) as session:
            loss = Loss(session.total.measure, session.total.atoms // 3)
            measured = session._curator.measure([Tree("x", (16, 32), (1, 1))], loss)
            found = fit(DOMAIN, measured, N, pull=1e-3)
            assert np.abs(found.hypothesis.marginal(["x"]).cumsum() - BELOW).max() < 0.002
            assert found.misfit < 4
            measured[0].values[:16] = np.roll(measured[0].values[:16], 1)  # the control: a level in the wrong order
            assert fit(DOMAIN, measured, N, pull=1e-3).misfit > 100
