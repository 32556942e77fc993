"""A public prior: that a right one helps and a wrong one does no harm, who is told of it, and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from tacit.config import read_config
from tacit.errors import ConfigError, LedgerError
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.workload import key, marginal
from tacit.owner.prior import read_prior
from tacit.release.hypothesis import prior as prior_module
from tacit.release.hypothesis.fit import fit
from tacit.release.hypothesis.fit_mixture import fit_mixture
from tacit.release.hypothesis.prior import Awaited, Drawn, Prior, awaited
from tacit.release.hypothesis.terms import centred, interactions_of
from tacit.store.chain import canonical

DOMAIN = Domain(
    {
        "a": tacit.integer(0, 5),
        "b": tacit.integer(0, 2),
        "c": tacit.boolean(),
        "d": tacit.integer(0, 3),
        "e": tacit.category(["x", "y", "z"]),
    }
)
PAIRS = [(one, other) for i, one in enumerate(DOMAIN.names) for other in DOMAIN.names[i + 1 :]]
N = 4000
Array = NDArray[Any]


def table(seed: int, rows: int = N) -> dict[str, Array]:
    """Codes of rows from one population, whose attributes depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.choice(6, rows, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    b = np.where(rng.random(rows) < 0.7, a % 3, rng.integers(0, 3, rows))
    c = rng.random(rows) < 0.2 + 0.5 * (b == 1)
    d = np.where(rng.random(rows) < 0.6, (a + c) % 4, 0)
    return {"a": a, "b": b, "c": c.astype(int), "d": d, "e": rng.choice(3, rows, p=[0.6, 0.3, 0.1])}


def frame(seed: int, rows: int = N) -> pd.DataFrame:
    return pd.DataFrame({k: [DOMAIN[k].typical(int(c)) for c in column] for k, column in table(seed, rows).items()})


def prior_of(columns: dict[str, Array]) -> Prior:
    cells, counts = np.unique(np.stack(list(columns.values())), axis=1, return_counts=True)
    return Prior.of(list(columns), list(cells), counts)


def released(columns: dict[str, Array], seed: int, scale: float) -> list[Measured]:
    """Noisy tables of all attributes and all pairs."""
    rng, found = np.random.default_rng(seed), []
    for names in [(name,) for name in DOMAIN.names] + PAIRS:
        question, shape = marginal(DOMAIN, *names), [DOMAIN[name].size for name in sorted(names)]
        flat = np.ravel_multi_index([columns[name] for name in sorted(names)], shape)
        exact = np.bincount(flat, minlength=int(np.prod(shape)))
        values = np.rint(exact + rng.normal(0, scale, exact.size)).astype(np.int64)
        noise = Noise("gaussian", scale)
        found.append(
            Measured(
                key=key(question),
                question=question,
                values=values,
                unit=1,
                noise=noise,
                cost=Loss("rho", 1),
                receipt=Receipt(1, "0" * 64),
            )
        )
    return found


def error(hypothesis: Any, columns: dict[str, Array]) -> float:
    """The mean L1 distance of the tables of three attributes."""
    found = []
    for names in (("a", "b", "c"), ("a", "c", "d"), ("b", "d", "e"), ("a", "b", "d")):
        shape = [DOMAIN[name].size for name in names]
        exact = np.bincount(
            np.ravel_multi_index([columns[name] for name in names], shape), minlength=int(np.prod(shape))
        )
        found.append(np.abs(hypothesis.marginal(names) - exact.reshape(shape) / N).sum())
    return float(np.mean(found))


MISLEADING = {  # other values in the place of each: nothing is right but the sizes
    name: np.random.default_rng(i).permutation(DOMAIN[name].size)[::-1] for i, name in enumerate(DOMAIN.names)
}


@pytest.mark.parametrize("scale", [10.0, 60.0, 300.0])
def test_a_right_prior_helps_and_a_wrong_one_does_little_harm(scale: float) -> None:
    mine, none, right, wrong, shuffled, weights = table(1), 0.0, 0.0, 0.0, 0.0, []
    rng = np.random.default_rng(3)
    other = table(2)
    priors = [
        prior_of(other),
        prior_of({name: MISLEADING[name][codes] for name, codes in other.items()}),
        prior_of({name: rng.permutation(codes) for name, codes in other.items()}),
    ]
    for seed in range(6):
        measured = released(mine, seed, scale)
        none += error(fit(DOMAIN, measured, N).hypothesis, mine)
        found = [error(fit(DOMAIN, measured, N, prior=prior).hypothesis, mine) for prior in priors]
        right, wrong, shuffled = right + found[0], wrong + found[1], shuffled + found[2]
        order = range(len(DOMAIN))
        known = interactions_of(measured, DOMAIN, N, order)
        weights.append([Drawn.of(prior, DOMAIN, order, known, N).weight for prior in priors[:2]])
    assert right < none * {10.0: 0.95, 60.0: 0.75, 300.0: 0.5}[scale]
    assert wrong < 1.04 * none
    assert shuffled < 1.04 * none
    if scale < 300:
        assert np.mean(weights, axis=0)[0] > 0.85
        assert np.mean(weights, axis=0)[1] < 0.1


def test_a_mixture_is_drawn_to_it_too() -> None:
    mine, right, wrong = table(1), prior_of(table(2)), prior_of({k: MISLEADING[k][c] for k, c in table(2).items()})
    measured = released(mine, 1, 150.0)
    none, helped, misled = (
        error(fit_mixture(DOMAIN, measured, N, components=20, steps=150, prior=prior).hypothesis, mine)
        for prior in (None, right, wrong)
    )
    assert helped < 0.7 * none
    assert misled < 1.05 * none


def test_the_fit_is_the_best_by_its_own_objective() -> None:
    """At the minimum the distribution is the start times its tilts, and every residual says its own tilt."""
    measured, prior = released(table(1), 1, 60.0), prior_of(table(2))
    fitted = fit(DOMAIN, measured, N, prior=prior, pull=0.05, close=1e-7, sweeps=400)
    order = sorted(range(len(DOMAIN)), key=lambda axis: (DOMAIN.shape[axis], axis))
    drawn = Drawn.of(prior, DOMAIN, order, interactions_of(measured, DOMAIN, N, order), N)
    cells = fitted.hypothesis.marginal(DOMAIN.names).transpose(order)
    logs = np.log(cells / drawn.cells())
    for axes, tilts in fitted.tilts.items():
        logs = logs - tilts.reshape([cells.shape[i] if i in axes else 1 for i in range(cells.ndim)])
        one = drawn.interactions[axes]
        residual = one.shares - centred(cells.sum(axis=tuple(i for i in range(cells.ndim) if i not in axes)))
        np.testing.assert_allclose(residual, 0.05 * N * one.variance * tilts, atol=1e-8)
    assert np.ptp(logs) < 1e-8
    again = fit(DOMAIN, measured, N, prior=prior, pull=0.05, close=1e-7, sweeps=400)
    assert (again.hypothesis.marginal(DOMAIN.names) == fitted.hypothesis.marginal(DOMAIN.names)).all()


def test_the_start_is_a_distribution_that_rules_out_nothing() -> None:
    """Also where the prior has some of the attributes, and lacks a value of one."""
    other = {name: column[table(2)["a"] < 5] for name, column in table(2).items() if name in "ae"}
    measured = released(table(1), 1, 60.0)
    order = [4, 2, 0, 3, 1]
    drawn = Drawn.of(prior_of(other), DOMAIN, order, interactions_of(measured, DOMAIN, N, order), N)
    cells = drawn.cells()
    assert cells.shape == tuple(DOMAIN.shape[axis] for axis in order)
    assert (cells > 0).all()
    np.testing.assert_allclose(cells.sum(), 1)
    ends = [(1, 2, 3, 4), (0, 2, 3, 4), (0, 1, 3, 4), (0, 1, 2, 4), (0, 1, 2, 3)]
    for axis, others in enumerate(ends):  # third is the attribute that lacks a value
        np.testing.assert_allclose(cells.sum(axis=others), drawn.ones[axis], atol=0.06 if axis == 2 else 1e-3)
    assert set(drawn.rests) == {(0, 2)}


def test_where_nothing_was_measured_the_prior_gets_no_weight() -> None:
    drawn = Drawn.of(prior_of(table(2)), DOMAIN, range(len(DOMAIN)), {}, N)
    assert drawn.weight == 0
    assert drawn.with_pairs() == {}
    singles = interactions_of(released(table(1), 1, 60.0)[: len(DOMAIN)], DOMAIN, N, range(len(DOMAIN)))
    assert Drawn.of(prior_of(table(2)), DOMAIN, range(len(DOMAIN)), singles, N).weight > 0.9


def test_rows_in_another_order_are_the_same_prior_and_too_many_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = table(2)
    cells, counts = np.unique(np.stack(list(columns.values())), axis=1, return_counts=True)
    order = np.random.default_rng(1).permutation(len(counts))
    prior = Prior.of(DOMAIN.names, list(cells), counts)
    assert prior == Prior.of(DOMAIN.names, list(cells[:, order]), counts[order])
    assert prior.digest == Prior.of(DOMAIN.names, list(cells[:, order]), counts[order]).digest
    assert prior.rows == N
    monkeypatch.setattr(prior_module, "MOST_PRIOR_CELLS", 50)
    thinned = Prior.of(DOMAIN.names, list(cells), counts)
    assert thinned.rows == 50
    thinned.check(DOMAIN)
    assert abs(np.average(thinned.codes[0], weights=thinned.counts) - columns["a"].mean()) < 0.1
    monkeypatch.setattr(prior_module, "MOST_PRIOR_CELLS", 2**18)
    even = Prior.of(["a"], [np.arange(6)], np.full(6, 7))
    assert even.codes == [[0, 1, 2, 3, 4, 5]]
    assert even.counts == [7] * 6


@pytest.mark.parametrize(
    "wrong",
    [
        Prior(["a", "a"], [[0], [0]], [1]),
        Prior(["z"], [[0]], [1]),
        Prior(["a"], [[0], [0]], [1]),
        Prior(["a"], [[0]], [0]),
        Prior(["a"], [[0, 1]], [1]),
        Prior(["a"], [[6]], [1]),
        Prior(["a"], [[0, 1]], [2**42 - 1, 1]),
    ],
)
def test_what_is_no_table_of_the_domain_is_refused(wrong: Prior) -> None:
    with pytest.raises(ConfigError):
        wrong.check(DOMAIN)


def opened(folder: Path, **more: Any) -> Any:
    given: dict[str, Any] = {"mechanism": "iterative", "warm": 0.6, "certify": 0.2, "hits": 3, "start": True}
    given |= {"data": frame(1), "domain": DOMAIN, "budget": tacit.Budget(epsilon=0.3, delta=1e-9)}
    return tacit.open(ledger=folder / "l.tacit", anchor=folder / "anchor", **(given | more))


QUESTION = "SELECT COUNT(*) FROM data WHERE a = 0 AND b = 0 AND c"


def test_whoever_knows_the_prior_gives_the_same_answers(tmp_path: Path) -> None:
    other = frame(2)
    with opened(tmp_path, prior=other) as session:
        session.start()
        answer = session.ask(QUESTION)
        tacit.publish(session, tmp_path / "p.jsonl")
        verified = tacit.verify(tmp_path / "p.jsonl", session=session)
        assert session.prior.rows == N
    with tacit.read(tmp_path / "p.jsonl") as reader:
        assert reader.ask(QUESTION) == answer
        assert reader.prior == session.prior
    with opened(tmp_path, prior=other.sample(frac=1, random_state=1)) as session:  # in any order
        assert session.ask(QUESTION) == answer
        assert tacit.verify(tmp_path / "p.jsonl", session=session) == verified
    for wrong in (None, frame(3)):
        with pytest.raises(LedgerError, match=r"other terms: prior\..*Nothing was spent"):
            opened(tmp_path, prior=wrong)
    (tmp_path / "none").mkdir()
    with opened(tmp_path / "none") as session:
        tacit.publish(session, tmp_path / "none.jsonl")
        assert session.prior is None
        assert '"prior"' not in (tmp_path / "none.jsonl").read_text()
    with pytest.raises(LedgerError, match="other terms: prior"):
        opened(tmp_path / "none", prior=other)


def test_a_published_file_is_a_prior_also_with_other_bins(tmp_path: Path) -> None:
    theirs = {**dict(DOMAIN.items()), "a": tacit.integer(0, 5, missing="none"), "f": tacit.boolean()}
    del theirs["e"]
    with opened(tmp_path, data=frame(2).assign(f=True), domain=Domain(theirs), budget=tacit.Budget(3.0, 1e-9)) as last:
        last.ask(QUESTION)
        tacit.publish(last, tmp_path / "last.jsonl")
    declared = Domain({**dict(DOMAIN.items()), "a": tacit.integer(0, 5, width=2, missing="none")})
    prior = read_prior(str(tmp_path / "last.jsonl"), declared)
    prior.check(declared)
    assert prior.attributes == ["a", "b", "c", "d"]
    assert prior.rows == N
    shares = np.bincount(prior.codes[0], weights=prior.counts, minlength=4) / N
    assert np.abs(shares - np.bincount(table(2)["a"] // 2, minlength=4) / N).max() < 0.05
    with pytest.raises(ConfigError, match="values of a are missing in it"):
        read_prior(tmp_path / "last.jsonl", DOMAIN)
    with pytest.raises(ConfigError, match="b takes 0 to 1"):
        read_prior(tmp_path / "last.jsonl", Domain({"b": tacit.integer(0, 1)}))
    with pytest.raises(ConfigError, match="no attribute of the domain"):
        read_prior(tmp_path / "last.jsonl", Domain({"e": tacit.boolean()}))


def test_a_configuration_names_it(tmp_path: Path) -> None:
    frame(1).to_csv(tmp_path / "mine.csv", index=False)
    frame(2).drop(columns="d").to_csv(tmp_path / "other.csv", index=False)
    text = f"""
[data]
source = "mine.csv"
[budget]
epsilon = 0.3
delta = 1e-9
[session]
ledger = "l.tacit"
anchor = "anchor"
mechanism = "iterative"
warm = 0.6
prior = "other.csv"
{DOMAIN.to_toml()}"""
    (tmp_path / "tacit.toml").write_text(text)
    with read_config(tmp_path / "tacit.toml").open() as session:
        assert session.prior.attributes == ["a", "b", "c", "e"]
    (tmp_path / "tacit.toml").write_text(text.replace('prior = "other.csv"\n', ""))
    with pytest.raises(LedgerError, match="other terms: prior"):
        read_config(tmp_path / "tacit.toml").open()


@pytest.mark.parametrize(
    ("prior", "why"),
    [
        (pd.DataFrame({"z": [1, 2]}), "it has no attribute of the domain"),
        (frame(2, 5)[:0], "the table has no rows"),
        ("nowhere.csv", "there is no file nowhere.csv"),
        (7, "data of type int is not accepted"),
        (frame(2, 5).assign(b=3), "b has values outside what is declared"),
    ],
)
def test_what_cannot_be_a_prior_is_refused_before_there_is_a_ledger(tmp_path: Path, prior: object, why: str) -> None:
    with pytest.raises(ConfigError, match=f"The prior cannot be used: {why}.*Nothing was spent"):
        opened(tmp_path, prior=prior)
    assert not (tmp_path / "l.tacit").exists()


def test_the_private_table_is_no_prior_of_itself(tmp_path: Path) -> None:
    private, file = frame(3), str(tmp_path / "private.csv")
    private.to_csv(file, index=False)
    (tmp_path / "link.csv").symlink_to(file)
    copied = private.sample(frac=1.0, random_state=1)
    for data, prior in [
        (private, private),
        (file, str(tmp_path / "link.csv")),
        (file, f"SELECT * FROM '{file}'"),
        (private, copied),
    ]:
        with pytest.raises(ConfigError, match=r"the private table itself.*Nothing was spent"):
            opened(tmp_path, data=data, prior=prior)
        assert not (tmp_path / "l.tacit").exists()
    with opened(tmp_path, data=private, prior=copied[1:]) as session:  # another table, if by one row
        assert session._public.prior is not None


@pytest.mark.parametrize("without", [{"mechanism": "direct"}, {"warm": 0.0, "certify": 0.0}])
def test_without_a_warm_start_a_prior_is_refused(tmp_path: Path, without: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a prior is for a warm start"):
        opened(tmp_path, prior=frame(2), **without)
    assert not (tmp_path / "l.tacit").exists()


@pytest.mark.parametrize(
    "prior",
    [
        {"attributes": ["a"], "codes": [[9]], "counts": [1]},
        {"attributes": ["a"], "codes": [[-1]], "counts": [1]},
        {"attributes": ["a"], "codes": [[0.5]], "counts": [1]},
        {"attributes": [], "codes": [], "counts": []},
        {"attributes": ["a"], "codes": [[0]], "counts": [1], "more": 1},
        {"attributes": ["a"], "codes": [[0]]},
        [],
    ],
)
def test_a_file_with_a_prior_that_is_none_is_refused(tmp_path: Path, prior: object) -> None:
    with opened(tmp_path, mechanism="direct", warm=0.0, certify=0.0) as session:
        tacit.publish(session, tmp_path / "p.jsonl")
    header, *rest = (tmp_path / "p.jsonl").read_bytes().splitlines(keepends=True)
    changed = canonical({**json.loads(header), "prior": prior}).encode() + b"\n" + b"".join(rest[:-1])
    last = f'{{"sha256":"{hashlib.sha256(changed).hexdigest()}"}}\n'.encode()
    (tmp_path / "p.jsonl").write_bytes(changed + last)
    with pytest.raises(ConfigError, match="its terms are wrong"):
        tacit.read(tmp_path / "p.jsonl")


def test_a_forecast_trusts_a_prior_as_far_as_noisy_tables_can_bear_it_out() -> None:
    """Least is what two samples of 20,000 rows are apart."""
    least, strengths = 1e-4, [1e-2, 1e-3, 3e-2]
    found = []
    for noise in (1e-6, 1e-3, 1.0):
        some = [Awaited(noise, strength, 5) for strength in strengths for _ in range(10)]
        weight, ones, pairs = awaited(some, some, least, 20_000)
        assert min(*ones, *pairs) >= least
        found.append((-weight, max(ones), max(pairs)))
    assert found == sorted(found)
    assert found[0][0] < -0.95
    assert max(found[0][1:]) < 3 * least
    assert min(found[2][1:]) > 30 * least
    alone = awaited([Awaited(1e-6, 1e-2, 5)] * 10, [], least, 20_000)
    assert alone[0] > 0.9  # single attributes tell, where no pair is measured
    assert alone[2] == []
