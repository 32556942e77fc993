"""The fit against a general optimiser on the same objective, against plain proportional fitting, and at its edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import wrightomega

import tacit
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise, variance
from tacit.model.query import Query
from tacit.model.workload import Marginal, Question, key, marginal
from tacit.release.hypothesis import fit as fit_module
from tacit.release.hypothesis import terms as terms_module
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.fit import Fitted, fit
from tacit.release.hypothesis.terms import omega, solve_normaliser

DOMAIN = Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.boolean(), "d": tacit.integer(0, 4)})
N = 1000
Array = NDArray[np.float64]


def truth(seed: int = 1, domain: Domain = DOMAIN, rows: int = N) -> Array:
    """Counts of rows with dependent attributes and some empty cells."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.3, size=domain.shape)
    return rng.multinomial(rows, weights.ravel() / weights.sum()).reshape(domain.shape).astype(float)


def weights_of(question: Question, domain: Domain) -> list[Array]:
    queries = [question] if isinstance(question, Query) else list(question.queries(domain))  # type: ignore[union-attr]
    return [query.table(domain.names, domain.shape) / query.unit for query in queries]


def release(
    question: Question, counts: Array, noise: Noise, rng: np.random.Generator, domain: Domain = DOMAIN
) -> Measured:
    """A released answer, with noise of the right spread, on the grid of the question."""
    steps = question.unit if isinstance(question, Query) else 1
    exact = np.array([(weights * counts).sum() for weights in weights_of(question, domain)])
    drawn = rng.normal(0, math.sqrt(variance(noise)), exact.shape)
    values = np.rint(exact * steps + drawn).astype(np.int64)
    return Measured(
        key=key(question),
        question=question,
        values=values,
        unit=steps,
        noise=noise,
        cost=Loss("rho", 1),
        receipt=Receipt(1, "0" * 64),
    )


def some_answers(seed: int = 2, scale: float = 12.0) -> list[Measured]:
    rng, counts = np.random.default_rng(seed), truth()
    noise, fine = Noise("gaussian", scale), Noise("gaussian", scale * 2**20)
    questions: list[tuple[Question, Noise]] = [(marginal(DOMAIN, name), noise) for name in DOMAIN.names]
    questions += [(marginal(DOMAIN, *pair), Noise("gaussian", 2 * scale)) for pair in ("ab", "bc", "ad", "bd")]
    questions += [
        (marginal(DOMAIN, "a", "b", "c"), Noise("laplace", scale)),
        (Query.among(DOMAIN, "a", [0, 2]) & Query.among(DOMAIN, "d", [1]), noise),
        (~(Query.among(DOMAIN, "a", [1]) & Query.among(DOMAIN, "c", [1])), noise),
        (Query.weighted(DOMAIN, ["d"], [0, 0.25, 0.5, 0.75, 1]), fine),
        (Query.among(DOMAIN, "d", [0, 1, 2]), noise),
        (marginal(DOMAIN, "b", where=Query.among(DOMAIN, "a", [0, 1])), noise),
    ]
    return [release(question, counts, law, rng) for question, law in questions]


class Objective:
    """The definition, with its gradient in the cells' shares, from the queries' weights over all of X."""

    def __init__(self, measured: Sequence[Measured], pull: float) -> None:
        self.start, self.pull = start_of(measured).ravel(), pull
        self.weights = np.array([w.ravel() for one in measured for w in weights_of(one.question, DOMAIN)])
        self.said = np.concatenate([one.values / one.unit for one in measured])
        self.spread = np.concatenate([np.full(one.values.size, variance(one.noise) / one.unit**2) for one in measured])

    def __call__(self, cells: Array) -> tuple[float, Array]:
        logs = np.log(np.maximum(cells.ravel(), 1e-300) / self.start)
        gaps = N * (self.weights @ cells.ravel()) - self.said
        value = self.pull * N * float(cells.ravel() @ logs) + float((gaps**2 / self.spread).sum()) / 2
        return value, self.pull * N * (logs + 1) + N * (gaps / self.spread) @ self.weights

    def minimum(self) -> Array:
        def of_logits(logits: Array) -> tuple[float, Array]:
            cells = np.exp(logits - logits.max())
            cells /= cells.sum()
            value, gradient = self(cells)
            return value, cells * (gradient - float(gradient @ cells))

        options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
        found = minimize(of_logits, np.log(self.start), jac=True, method="L-BFGS-B", options=options)
        cells = np.exp(found.x - found.x.max()).reshape(DOMAIN.shape)
        return np.asarray(cells / cells.sum())


def start_of(measured: Sequence[Measured]) -> Array:
    """Attributes that are independent, each as all tables together say it: the mean of theirs, by their variances."""
    cells = np.ones(DOMAIN.shape)
    for axis, name in enumerate(DOMAIN.names):
        size, linear, precision = DOMAIN[name].size, 0.0, 0.0
        for one in measured:
            question = one.question
            if isinstance(question, Marginal) and question.where.is_everyone and name in question.names:
                table = one.values.reshape([DOMAIN[other].size for other in question.names])
                own = table.sum(axis=tuple(i for i, other in enumerate(question.names) if other != name))
                sure = size / one.values.size / variance(one.noise)
                linear, precision = linear + sure * (own - own.mean()), precision + sure
        share = np.maximum(linear / precision + N / size, 0.5)
        cells = cells * (share / share.sum()).reshape([-1 if i == axis else 1 for i in range(len(DOMAIN))])
    return np.asarray(cells / cells.sum())


def cells_of(fitted: Fitted) -> Array:
    return fitted.hypothesis.marginal(fitted.hypothesis.domain.names)


@pytest.mark.parametrize("pull", [1.0, 0.1])
def test_the_fit_is_the_minimum_that_a_general_optimiser_finds(pull: float) -> None:
    measured = some_answers()
    fitted = fit(DOMAIN, measured, N, pull=pull, close=1e-5, sweeps=400)
    objective = Objective(measured, pull)
    best = objective.minimum()
    least = objective(best)[0]
    assert objective(cells_of(fitted))[0] <= least * (1 + 1e-6)
    np.testing.assert_allclose(cells_of(fitted), best, atol=2e-5)
    # The control: with one table's variance off by two, the same comparison notices.
    wrong = [*measured[:5], _with_noise(measured[5], math.sqrt(2)), *measured[6:]]
    other = fit(DOMAIN, wrong, N, pull=pull, close=1e-5, sweeps=400)
    assert objective(cells_of(other))[0] > least * (1 + 1e-5)
    assert np.abs(cells_of(other) - best).max() > 1e-4


def _with_noise(measured: Measured, factor: float) -> Measured:
    noise = Noise(measured.noise.kind, measured.noise.scale * factor)
    return Measured(
        key=measured.key,
        question=measured.question,
        values=measured.values,
        unit=measured.unit,
        noise=noise,
        cost=measured.cost,
        receipt=measured.receipt,
    )


def pairs_of(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(p, q) for i, p in enumerate(names) for q in names[i + 1 :]]


def test_each_interaction_has_the_pull_that_expects_its_energy() -> None:
    # a and b depend on each other, the others on nothing: so only that pair's pull is small.
    rng, rows = np.random.default_rng(7), 20_000
    a = rng.integers(0, 4, rows)
    codes = [a, np.where(rng.random(rows) < 0.7, a % 3, 0), rng.integers(0, 2, rows), rng.integers(0, 5, rows)]
    counts = np.zeros(DOMAIN.shape)
    np.add.at(counts, tuple(codes), 1)
    measured = [release(marginal(DOMAIN, *pair), counts, Noise("gaussian", 40.0), rng) for pair in pairs_of("abcd")]
    fitted = fit(DOMAIN, measured, rows)
    order = sorted(range(4), key=lambda axis: (DOMAIN.shape[axis], axis))
    pulls = {frozenset("abcd"[order[i]] for i in axes): pull for axes, pull in fitted.pulls.items()}
    others = [pull for names, pull in pulls.items() if len(names) == 2 and names != {"a", "b"}]
    assert pulls[frozenset("ab")] < 0.2 * min(others)
    # Its energy is known here: what the table has beyond independence.
    shares = counts.sum(axis=(2, 3)) / rows
    beyond = shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))
    expected = (1 - 1 / 4) * (1 - 1 / 3) / (rows * float((beyond**2).sum()))
    assert pulls[frozenset("ab")] == pytest.approx(max(expected, fit_module._LEAST_PULL), rel=0.3)

    def learned(found: Fitted, p: str, q: str) -> Array:
        """What the pair shows beyond independence."""
        table = found.hypothesis.marginal([p, q])
        return np.asarray(table - np.outer(table.sum(axis=1), table.sum(axis=0)))

    # The control: with one pull for all, either the noise of the others is learned or the one that counts is not.
    loose, tight = (fit(DOMAIN, measured, rows, pull=pull, sweeps=100) for pull in (1e-3, 1.0))
    off = [float(np.abs(learned(one, "a", "b") - beyond).sum()) for one in (fitted, tight)]
    assert off[0] < 0.5 * off[1]
    noise = [sum(float(np.abs(learned(one, *pair)).sum()) for pair in pairs_of("abcd")[1:]) for one in (fitted, loose)]
    assert noise[0] < 0.8 * noise[1]


def test_consistent_tables_without_noise_give_what_proportional_fitting_gives() -> None:
    counts, sure = truth() + 1.0, Noise("gaussian", 1e-3)
    rows = int(counts.sum())
    rng = np.random.default_rng(0)
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    measured = [release(marginal(DOMAIN, *pair), counts, sure, rng) for pair in pairs]
    fitted = fit(DOMAIN, measured, rows, pull=1e-3, close=1e-3, sweeps=300)
    cells = np.full(DOMAIN.shape, 1 / DOMAIN.size)
    for _ in range(200):
        for pair in pairs:
            others = tuple(i for i, name in enumerate(DOMAIN.names) if name not in pair)
            cells = cells * (counts.sum(axis=others, keepdims=True) / rows / cells.sum(axis=others, keepdims=True))
    np.testing.assert_allclose(cells_of(fitted), cells, atol=1e-5)


def test_noise_is_not_learned() -> None:
    # All pairs with much noise: the fit is much nearer to the data than the tables, and than a fit without pull.
    counts, names, pairs = truth(rows=N), DOMAIN.names, pairs_of(DOMAIN.names)
    pulled, free = 0.0, 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        measured = [release(marginal(DOMAIN, name), counts, Noise("gaussian", 30.0), rng) for name in names]
        measured += [release(marginal(DOMAIN, *pair), counts, Noise("gaussian", 60.0), rng) for pair in pairs]

        def error(fitted: Fitted) -> float:
            sums = [tuple(i for i, name in enumerate(names) if name not in pair) for pair in pairs]
            return float(np.mean([np.abs(cells_of(fitted).sum(axis=s) - counts.sum(axis=s) / N).sum() for s in sums]))

        pulled += error(fit(DOMAIN, measured, N)) / 5
        free += error(fit(DOMAIN, measured, N, pull=1e-3, sweeps=100)) / 5
    raw = float(np.mean([one.values.size * 60.0 * math.sqrt(2 / math.pi) / N for one in measured[4:]]))
    assert pulled < 0.6 * raw
    assert pulled < 0.9 * free


def test_the_same_arguments_give_the_same_bits() -> None:
    first, again = fit(DOMAIN, some_answers(), N), fit(DOMAIN, some_answers(), N)
    assert first.pulls == again.pulls
    assert (cells_of(first) == cells_of(again)).all()
    halves = [fit(DOMAIN, some_answers(), N, before=fit(DOMAIN, some_answers()[:6], N)) for _ in range(2)]
    assert (cells_of(halves[0]) == cells_of(halves[1])).all()


def test_going_on_from_an_earlier_fit_ends_in_the_same_place_sooner() -> None:
    measured = some_answers()
    before = fit(DOMAIN, measured[:-1], N, pull=0.05, close=1e-5, sweeps=300)
    after = fit(DOMAIN, measured, N, pull=0.05, close=1e-5, sweeps=300, before=before)
    afresh = fit(DOMAIN, measured, N, pull=0.05, close=1e-5, sweeps=300)
    np.testing.assert_allclose(cells_of(after), cells_of(afresh), atol=1e-6)
    assert fit(DOMAIN, measured, N, pull=0.05, before=after).sweeps == 1
    assert fit(DOMAIN, measured, N, pull=0.05).sweeps > 1


@pytest.mark.parametrize("cluster", [1, 30, 10**9])
def test_clusters_decide_the_time_and_not_the_result(cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cells_of(fit(DOMAIN, some_answers(), N, pull=0.05, close=1e-5, sweeps=300))
    monkeypatch.setattr(fit_module, "_CLUSTERS", (cluster, 10**9))
    fitted = fit(DOMAIN, some_answers(), N, pull=0.05, close=1e-5, sweeps=300)
    np.testing.assert_allclose(cells_of(fitted), expected, atol=1e-6)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e6])
def test_impossible_answers_leave_a_distribution(scale: float) -> None:
    # Cells far below 0, tables that sum to nothing like n, a question answered with more than everyone.
    noise, receipt = Noise("gaussian", scale), Receipt(1, "0" * 64)
    tables = [marginal(DOMAIN, "a", "b"), marginal(DOMAIN, "b", "d"), marginal(DOMAIN, "a")]
    sizes = [12, 15, 4]
    measured = [
        Measured(
            key=key(t),
            question=t,
            values=np.resize([-5000, 0, 3 * N, 7], size),
            unit=1,
            noise=noise,
            cost=Loss("rho", 1),
            receipt=receipt,
        )
        for t, size in zip(tables, sizes, strict=True)
    ]
    query = Query.among(DOMAIN, "c", [1])
    measured.append(
        Measured(
            key=query.key,
            question=query,
            values=np.array([9 * N]),
            unit=1,
            noise=noise,
            cost=Loss("rho", 1),
            receipt=receipt,
        )
    )
    fitted = fit(DOMAIN, measured, N)
    cells = cells_of(fitted)
    assert np.isfinite(cells).all()
    assert (cells >= 0).all()
    assert cells.sum() == pytest.approx(1)
    assert all(np.isfinite(tilts).all() for tilts in fitted.tilts.values())


def test_nothing_known_is_uniform() -> None:
    np.testing.assert_allclose(cells_of(fit(DOMAIN, [], N)), 1 / DOMAIN.size)


def test_progress_reaches_its_total() -> None:
    told: list[tuple[int, int]] = []
    fit(DOMAIN, some_answers(), N, progress=lambda done, total: told.append((done, total)))
    most = 2 * fit_module._SWEEPS  # pairs, then what three attributes show beyond them
    assert told[0] == (1, most)
    assert told[-1] == (most, most)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_omega_is_that_of_scipy() -> None:
    values = np.r_[np.linspace(-700, 60, 100_001), np.geomspace(60, 1e300, 10_001), 0.0, 1.0, np.e]
    # Its logarithm is the value less itself, so that a value of 700 has a rounding of 1e-13.
    np.testing.assert_allclose(omega(values), wrightomega(values), rtol=5e-13)
    assert (omega(np.array([-1e9, -701.0])) < 1e-300).all()


@pytest.mark.parametrize("softness", [1e-12, 1e-4, 1.0, 1e6])
@pytest.mark.parametrize("shift", [-1e5, 0.0, 1e5])
def test_the_normaliser_is_found_from_anywhere(softness: float, shift: float) -> None:
    base = np.random.default_rng(5).normal(shift, 50, 100)
    z = solve_normaliser(base, softness)
    assert softness * float(wrightomega(base - z).sum()) == pytest.approx(1, rel=1e-6)


def test_the_hypothesis_is_an_ordinary_one() -> None:
    fitted = fit(DOMAIN, some_answers(), N)
    assert isinstance(fitted.hypothesis, Dense)
    query = Query.among(DOMAIN, "a", [0])
    assert fitted.hypothesis.answer(query) == pytest.approx(float(cells_of(fitted)[0].sum()))


@pytest.mark.parametrize("deviation", [0.3, 1.0, 3.0])
def test_little_noise_is_no_trouble(deviation: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables disagree about what they share by their noise; the less of it, the deeper the tilts that say so."""
    counts, rng = truth(seed=3, rows=20_000), np.random.default_rng(4)
    pairs = [marginal(DOMAIN, a, b) for i, a in enumerate(DOMAIN.names) for b in DOMAIN.names[i + 1 :]]
    measured = [release(table, counts, Noise("gaussian", deviation), rng) for table in pairs]

    def worst(fitted: Fitted) -> float:
        found = [fitted.hypothesis.marginal(table.names).ravel() for table in pairs]
        told = [[(w * counts).sum() / 20_000 for w in weights_of(table, DOMAIN)] for table in pairs]
        return max(float(np.abs(one - two).max()) for one, two in zip(found, told, strict=True))

    fitted = fit(DOMAIN, measured, 20_000)
    assert fitted.settled
    assert worst(fitted) < 0.002
    monkeypatch.setattr(terms_module, "DEEPEST", 0.1)  # the planted bug
    if deviation == 1.0:
        broken = fit(DOMAIN, measured, 20_000)
        assert not broken.settled
        assert worst(broken) > 0.05
