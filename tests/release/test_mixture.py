"""The mixture of products: every answer against the listed distribution, and its fit against gradients and noise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import InvalidDomain, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.workload import Tree, marginal
from tacit.release.hypothesis import fit_mixture as fitting
from tacit.release.hypothesis import mixture, mixture_problem
from tacit.release.hypothesis.fit_mixture import fit_mixture
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.hypothesis.mixture_problem import Problem, softmax

DOMAIN = Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.integer(0, 4), "d": tacit.boolean()})


def some_mixture(components: int = 5, seed: int = 0) -> Mixture:
    rng = np.random.default_rng(seed)
    laws = [rng.dirichlet(np.ones(size), components) for size in DOMAIN.shape]
    return Mixture(DOMAIN, rng.dirichlet(np.ones(components)), laws)


def listed(mix: Mixture) -> np.ndarray:
    """All of X, by brute force."""
    cells = np.zeros(DOMAIN.shape)
    for k, weight in enumerate(mix.weights):
        cells += weight * np.einsum("a,b,c,d->abcd", *(law[k] for law in mix.laws))
    return cells


def questions() -> list[Query]:
    rng = np.random.default_rng(1)
    a, b, d = (Query.among(DOMAIN, name, codes) for name, codes in (("a", [0, 2]), ("b", [1]), ("d", [1])))
    joined = Query.weighted(DOMAIN, ["b", "c"], rng.random((3, 5)))
    three = Query.weighted(DOMAIN, ["c", "a", "d"], rng.random((5, 4, 2)))
    xor = (a & ~d) | (~a & d)
    return [
        a,
        ~a,
        a & b,
        a & b & d,
        ~(a & b),
        a | b,
        joined,
        joined & a,
        ~joined,
        three,
        xor,
        Query.constant(everyone=True),
    ]


def exact(cells: np.ndarray, query: Query) -> float:
    return float((query.table(DOMAIN.names, DOMAIN.shape) / query.unit * cells).sum())


def test_answers_are_those_of_the_listed_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    mix = some_mixture()
    cells = listed(mix)
    expected = [exact(cells, query) for query in questions()]
    assert np.allclose(mix.answer_many(questions()), expected, rtol=0, atol=2e-6)  # weights on a grid of 2^-20
    monkeypatch.setattr(mixture, "_ROOM", 8)  # component by component
    assert np.allclose(mix.answer_many(questions()), expected, rtol=0, atol=2e-6)


def test_an_answer_does_not_depend_on_its_company() -> None:
    mix = some_mixture(components=37)
    together = mix.answer_many(questions() * 200)
    assert [mix.answer(query) for query in questions()] == together[: len(questions())].tolist()
    assert (together.reshape(200, -1) == together[: len(questions())]).all()


@pytest.mark.parametrize("names", [["a"], ["c", "a"], ["a", "c"], ["d", "b", "c"], ["a", "b", "c", "d"]])
def test_marginals(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    mix = some_mixture()
    axes = [DOMAIN.names.index(name) for name in names]
    others = tuple(axis for axis in range(4) if axis not in axes)
    expected = listed(mix).sum(axis=others).transpose(np.argsort(np.argsort(axes)))
    assert np.allclose(mix.marginal(names), expected)
    monkeypatch.setattr(mixture, "_ROOM", 10)
    assert np.allclose(mix.marginal(names), expected)
    with pytest.raises(InvalidQuery):
        mix.marginal(["a", "a"])


def test_rows_follow_the_law() -> None:
    mix = some_mixture()
    rows = 400_000
    codes = mix.draw(rows, np.random.default_rng(2))
    seen = np.bincount(np.ravel_multi_index(codes, DOMAIN.shape), minlength=DOMAIN.size)
    expected = listed(mix).ravel() * rows
    # 119 degrees of freedom: above 240 by chance with probability 3e-10
    assert float(((seen - expected) ** 2 / expected).sum()) < 240
    wrong = np.roll(expected, 1)
    assert float(((seen - wrong) ** 2 / wrong).sum()) > 240
    again = mix.draw(rows, np.random.default_rng(2))
    assert all((one == two).all() for one, two in zip(codes, again, strict=True))


def test_what_is_no_mixture_is_refused() -> None:
    mix = some_mixture()
    for weights, laws in [
        (mix.weights[:-1], mix.laws),
        (mix.weights * 2, mix.laws),
        (mix.weights, mix.laws[:-1]),
        (mix.weights, [-law for law in mix.laws]),
    ]:
        with pytest.raises(InvalidDomain):
            Mixture(DOMAIN, weights, laws)
    with pytest.raises(InvalidQuery):
        mix.answer(Query.among(Domain({"a": tacit.integer(0, 9)}), "a", [0]))
    with pytest.raises(ValueError, match="read-only"):
        mix.weights[0] = 1


def released(cells: np.ndarray, rows: int, asked: list, deviation: float, seed: int) -> list[Measured]:
    rng, found = np.random.default_rng(seed), []
    for i, question in enumerate(asked):
        if isinstance(question, Query):
            truth, unit = np.array([exact(cells, question) * rows]), question.unit
        else:
            names = question.names
            others = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
            truth, unit = cells.sum(axis=others).ravel() * rows, 1
        noisy = np.rint((truth + rng.normal(0, deviation, truth.shape)) * unit).astype(np.int64)
        noise = Noise("gaussian", deviation * unit)
        found.append(
            Measured(
                key=str(i),
                question=question,
                values=noisy,
                unit=unit,
                noise=noise,
                cost=Loss("rho", 0),
                receipt=Receipt(i, ""),
            )
        )
    return found


def everything(cells: np.ndarray, deviation: float = 20.0) -> list[Measured]:
    pairs = [marginal(DOMAIN, *names) for size in (1, 2) for names in itertools.combinations(DOMAIN.names, size)]
    queries = [query for query in questions() if not query.is_constant]
    tables = released(cells, 10_000, [*pairs, marginal(DOMAIN, "a", "c", "d"), *queries], deviation, seed=3)
    tree, shares = Tree("c", (3, 2), (2, 1)), cells.sum(axis=(0, 1, 3))
    nodes = np.concatenate([2 * np.add.reduceat(shares, [0, 2, 4]), shares]) * 10_000
    noisy = np.rint(nodes + np.random.default_rng(9).normal(0, deviation, 8)).astype(np.int64)
    return [*tables, replace(tables[0], key="tree", question=tree, values=noisy)]


def test_the_gradient_is_that_of_the_objective() -> None:
    """Every kind of answer at once, by central differences in double precision."""
    problem = Problem(DOMAIN, everything(listed(some_mixture())), 10_000, pull=50.0)
    rng = np.random.default_rng(4)
    logits, log_weights = rng.normal(0, 0.5, (3, problem.width)), rng.normal(0, 0.5, 3)

    def objective(logits: np.ndarray, log_weights: np.ndarray) -> float:
        laws = softmax(np, logits, problem.blocks)
        weights = softmax(np, log_weights[None], [slice(0, 3)])[0]
        surprise = (laws * (np.log(laws) - problem.start)).sum(axis=1)
        return problem.misfit(laws, weights) / 2 + problem.pull * float(weights @ surprise)

    by_logits, by_weights = problem.slopes(logits.astype(np.float32), log_weights.astype(np.float32), problem.tables)
    for values, slopes in ((logits, by_logits), (log_weights, by_weights)):
        found = np.empty(values.shape)
        for place in np.ndindex(values.shape):
            kept, ends = values[place], []
            for sign in (1, -1):
                values[place] = kept + sign * 1e-5
                ends.append(objective(logits, log_weights))
            values[place] = kept
            found[place] = (ends[0] - ends[1]) / 2e-5
        assert np.abs(found - slopes).max() <= 2e-3 * np.abs(found).max()


def triples(cells: np.ndarray, deviation: float) -> list[Measured]:
    """All tables of up to three attributes."""
    tables = [marginal(DOMAIN, *names) for size in (1, 2, 3) for names in itertools.combinations(DOMAIN.names, size)]
    return released(cells, 50_000, tables, deviation, seed=5)


def test_tables_that_take_turns_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of the gradients of single tables is that of all, and each has its turn before another has two."""
    problem = Problem(DOMAIN, triples(listed(some_mixture()), 20.0), 50_000, pull=50.0)
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.5, (3, problem.width)), rng.normal(0, 0.5, 3)
    together = problem.slopes(*values, problem.tables)
    alone = zip(*(problem.slopes(*values, [table]) for table in problem.tables), strict=True)
    for whole, parts in zip(together, alone, strict=True):
        assert np.allclose(np.mean(parts, axis=0), whole, rtol=1e-5, atol=1e-5 * np.abs(whole).max())
    assert [len(some) for some in itertools.islice(problem.turns(rng), 3)] == [4, 4, 4]
    for name, most in (("_AT_A_TIME", 2), ("_CELLS_AT_A_TIME", 80)):  # they have 38 cells on average
        with monkeypatch.context() as patched:
            patched.setattr(mixture_problem, name, most)
            turns = [sorted(map(id, some)) for some in itertools.islice(problem.turns(rng), 6)]
        assert all(sorted(turns[i] + turns[i + 1]) == sorted(map(id, problem.tables)) for i in (0, 2, 4))


def test_components_double_until_they_can_follow_three_attributes() -> None:
    cells = listed(some_mixture(components=12, seed=7))
    told: list[tuple[int, int]] = []
    known = triples(cells, 5.0)
    few, more = (
        fit_mixture(DOMAIN, known, 50_000, components=2, steps=steps, progress=lambda *step: told.append(step))
        for steps in (fitting.STEPS, None)
    )
    assert (len(few.log_weights), len(more.log_weights)) == (2, 8)
    assert more.misfit < 0.2 * few.misfit
    assert told[-1] == (1800, 1800)
    # The control: where the noise allows it, two stay two.
    assert len(fit_mixture(DOMAIN, triples(cells, 50_000.0), 50_000, components=2).log_weights) == 2


def test_a_fit_is_nearer_to_the_truth_than_its_noise() -> None:
    truth = some_mixture(components=3, seed=7)
    cells = listed(truth)
    pairs = [marginal(DOMAIN, *names) for size in (1, 2) for names in itertools.combinations(DOMAIN.names, size)]
    measured = released(cells, 50_000, pairs, 50.0, seed=5)
    fitted = fit_mixture(DOMAIN, measured, 50_000, components=20)
    assert fitted.settled
    sizes = [[DOMAIN[name].size - 1 for name in one.question.names] for one in measured]  # type: ignore[union-attr]
    free = sum(math.prod(1 + size for size in some) - 1 for some in sizes)  # the total of a table is known
    assert fitted.numbers == free
    gaps = [
        np.abs(fitted.hypothesis.marginal(pair.names) - truth.marginal(pair.names)).mean() * 50_000 for pair in pairs
    ]
    assert np.mean(gaps) < 0.8 * 50 * np.sqrt(2 / np.pi)
    uniform = [np.abs(1 / pair.size(DOMAIN) - truth.marginal(pair.names)).mean() * 50_000 for pair in pairs]
    assert np.mean(gaps) < 0.1 * np.mean(uniform)


NOISES = 300.0, 60.0, 12.0, 3.0  # rows: as of an epsilon up to 100 times as large


def scopes_of(attributes: int) -> list[tuple[str, ...]]:
    return list(itertools.combinations(DOMAIN.names, attributes))


def off(fitted: fitting.FittedMixture, truth: Mixture, attributes: int) -> float:
    """The mean distance of all tables of so many attributes from the true ones."""
    found = [np.abs(fitted.hypothesis.marginal(one) - truth.marginal(one)).sum() for one in scopes_of(attributes)]
    return float(np.mean(found))


@pytest.mark.parametrize("order", [2, 3])
def test_less_noise_never_makes_what_is_measured_worse(order: int) -> None:
    """All releases have the same draws, larger or smaller, from a fixed seed: chance has no part in it.

    Going on moves what is measured by a fraction of its noise: the search has come to its end. After a thirtieth of its
    steps it has not, which is the control.
    """
    truth = some_mixture(components=12, seed=7)
    asked = [marginal(DOMAIN, *one) for size in range(1, order + 1) for one in scopes_of(size)]
    errors, unmeasured = [], []
    for deviation in NOISES:
        measured = released(listed(truth), 50_000, asked, deviation, seed=1)
        fitted = fit_mixture(DOMAIN, measured, 50_000, components=20)
        assert fitted.settled
        errors.append(off(fitted, truth, order))
        unmeasured.append(off(fitted, truth, 3))
        further = fit_mixture(DOMAIN, measured, 50_000, before=fitted, steps=200)
        moved = [further.hypothesis.marginal(one) - fitted.hypothesis.marginal(one) for one in scopes_of(order)]
        assert 50_000 * np.mean([np.abs(one).mean() for one in moved]) < 0.2 * deviation
    assert all(after < 0.6 * before for before, after in itertools.pairwise(errors))
    # What nobody measured follows from no noise: which of all tables with these pairs is found may differ a little.
    assert all(after < 1.25 * before for before, after in itertools.pairwise(unmeasured))
    hasty = fit_mixture(DOMAIN, measured, 50_000, components=20, steps=fitting.STEPS // 30)
    assert not hasty.settled


def test_the_same_seed_gives_the_same_bits_and_another_fit_goes_on() -> None:
    cells = listed(some_mixture(seed=8))
    measured = everything(cells, deviation=5.0)
    first, again = (fit_mixture(DOMAIN, measured[:10], 10_000, components=10, steps=60) for _ in range(2))
    assert (first.hypothesis.weights == again.hypothesis.weights).all()
    assert all((one == two).all() for one, two in zip(first.hypothesis.laws, again.hypothesis.laws, strict=True))
    xor = questions()[10]
    told = released(cells, 10_000, [xor], 1.0, seed=6)
    better = fit_mixture(DOMAIN, [*measured[:10], *told], 10_000, before=first)
    before, after = (abs(fit.hypothesis.answer(xor) - exact(cells, xor)) for fit in (first, better))
    assert after < 0.3 * before


def test_answers_that_contradict_each_other_do_not_settle() -> None:
    a = marginal(DOMAIN, "a")
    cells = listed(some_mixture())
    one = released(cells, 10_000, [a], 1.0, seed=1)[0]
    other = Measured(
        key="x",
        question=marginal(DOMAIN, "a", "b"),
        values=np.full(12, 833),
        unit=1,
        noise=one.noise,
        cost=one.cost,
        receipt=one.receipt,
    )
    assert not fit_mixture(DOMAIN, [one, other], 10_000, components=5).settled


def test_a_session_over_ten_to_the_nine_cells(tmp_path: Path) -> None:
    """Warm start, gate, hard answers, restart, synthetic rows and a published file, with nothing that lists X."""
    wide = Domain({f"a{i}": tacit.integer(0, 9) for i in range(9)})
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 10, (8_000, 1))
    values = (hidden + rng.integers(0, 3, (8_000, 9))) % 10
    odd = rng.random(8_000) < 0.5  # what no pair shows: a0 + a1 + a2 is even for these rows
    values[odd, :2] = rng.integers(0, 10, (odd.sum(), 2))
    values[odd, 2] = (values[odd, 0] + values[odd, 1]) % 2 + 2 * rng.integers(0, 5, odd.sum())
    table = pd.DataFrame(values, columns=list(wide.names))
    opened = {
        "data": table,
        "domain": wide,
        "budget": tacit.Budget(epsilon=20.0, delta=1e-9),
        "ledger": tmp_path / "w.tacit",
        "anchor": tmp_path / "w.anchor",
        "mechanism": "iterative",
        "warm": 0.5,
        "hits": 10,
        "questions": 100,
        "confidence": 1 - 1e-8,
    }
    rng = np.random.default_rng(2)
    questions = [
        tacit.count(**{str(name): (0, int(rng.integers(2, 8))) for name in rng.choice(wide.names, 2, replace=False)})
        for _ in range(60)
    ]
    parity = Query.weighted(wide, ["a0", "a1", "a2"], (np.indices((10, 10, 10)).sum(axis=0) % 2 == 0).astype(float))
    with tacit.open(start=True, **opened) as session:
        answers = session.ask_many(questions)
        truths = [exact_count(values, wide, question.bind(wide)) for question in questions]
        errors = np.abs(np.array([answer.value for answer in answers]) - truths)
        assert errors.mean() < 0.01 * 8_000
        bars = [(error, answer.error, answer.source) for error, answer in zip(errors, answers, strict=True)]
        assert all(error <= bar for error, bar, _ in bars), bars
        before = session.knowledge.hypothesis.answer(parity)  # type: ignore[union-attr]
        hard = session.ask(parity)
        assert hard.source == "measured"
        after = session.knowledge.hypothesis.answer(parity)  # type: ignore[union-attr]
        truth = exact_count(values, wide, parity) / 8_000
        assert abs(after - truth) < 0.5 * abs(before - truth)
        rows = session.synthetic(50, seed=3)
        tacit.publish(session, tmp_path / "w.public")
    with tacit.open(start=True, **opened) as session:
        assert session.synthetic(50, seed=3) == rows
        assert [answer.value for answer in session.ask_many(questions)] == [answer.value for answer in answers]
        known = tacit.read(tmp_path / "w.public")
        fresh = [tacit.count(a3=(0, i), a7=(i, 9)) for i in range(1, 9)]
        bound = [question.bind(wide) for question in fresh]
        live = session.knowledge.hypothesis.answer_many(bound)  # type: ignore[union-attr]
        assert [a.value for a in known.ask_many(fresh)] == [round(value * 8_000) for value in live]
    assert tacit.verify(tmp_path / "w.public").entries > 0


def exact_count(values: np.ndarray, domain: Domain, query: Query) -> float:
    found = np.ones(len(values))
    for factor in query.factors:
        found *= factor.weights[tuple(values[:, domain.names.index(name)] for name in factor.scope)] / factor.unit
    return len(values) - found.sum() if query.complement else float(found.sum())
