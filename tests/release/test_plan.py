"""The planner: exact laws against direct sums, its choices, and its fitted figures against runs of the warm start."""

from __future__ import annotations

import json
import math
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from curators import curating, public_of
from tacit.errors import ConfigError
from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise, pmf
from tacit.model.query import Query
from tacit.owner.prior import read_prior
from tacit.release.allocation import allocation
from tacit.release.forecast import Outlook, WarmStarted, direct, expected_largest, least_epsilon, mean_size
from tacit.release.plan import Plan, _reason, plan
from tacit.release.warm_start import fit_all, warm_start
from tacit.trusted.cells import read_records

MILD, PURE = Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=1.0, delta=0.0)


def domain_of(*sizes: int) -> Domain:
    return Domain({f"a{i}": tacit.integer(0, size - 1) for i, size in enumerate(sizes)})


ADULT = domain_of(17, 9, 16, 7, 5, 2, 10, 2)  # the sizes of the benchmark's domain


@cache
def adult(questions: int = 20_000, budget: Budget = MILD, accuracy: float | None = 0.01) -> Plan:
    return plan(rows=48_842, domain=ADULT, budget=budget, questions=questions, accuracy=accuracy)


@pytest.mark.parametrize("law", [Noise("laplace", 3.0), Noise("gaussian", 5.0), Noise("gaussian", 0.4)])
def test_expected_sizes_are_those_of_the_law(law: Noise) -> None:
    z = np.arange(-400, 401)
    p = pmf(law, z)
    assert mean_size([law]) == pytest.approx(float((np.abs(z) * p).sum()), rel=1e-9)
    pair = np.maximum(np.abs(z)[:, None], np.abs(z)[None, :])
    assert expected_largest([law], 2) == pytest.approx(float((pair * np.outer(p, p)).sum()), rel=1e-9)


def test_wide_laws_are_stretched_narrow_ones() -> None:
    for k in (1, 1000):
        narrow, wide = (expected_largest([Noise("gaussian", scale)], k) for scale in (900.0, 9e8))
        assert wide / narrow == pytest.approx(1e6, rel=2e-3)
    assert mean_size([Noise("laplace", 1e12)]) == pytest.approx(1e12, rel=2e-3)


def test_direct_is_promised_exactly() -> None:
    """Pr[all of k independent draws within h] reaches the confidence at h, and not at h - 1."""
    found = direct(MILD, questions=50, confidence=0.9)
    scale = math.sqrt(50 / (2 * float(total(MILD))))
    z = np.arange(-5000, 5001)
    p = pmf(Noise("gaussian", scale), z)
    within = [float(p[np.abs(z) <= h].sum()) ** 50 for h in (found.promised - 1, found.promised)]
    assert within[0] < 0.9 <= within[1]


def test_least_epsilon_is_the_least() -> None:
    def error(budget: Budget) -> float:
        return direct(budget, questions=1000, confidence=0.95).promised

    found = least_epsilon(error, 100.0, 1e-9)
    assert found is not None
    assert error(Budget(epsilon=found, delta=1e-9)) <= 100 < error(Budget(epsilon=found * 0.99, delta=1e-9))
    assert least_epsilon(lambda _: 2.0, 1.0, 0.0) is None


def test_fresh_noise_as_it_was_measured_on_adult() -> None:
    """bench_warm_start: 0.0134 and 0.071 for 20,000 questions, by zCDP's total; the exact curve's takes 4.9 % off."""
    found = adult().forecasts[0]
    assert found.mean == pytest.approx(0.0134 * 0.951, rel=0.02)
    assert found.largest == pytest.approx(0.071 * 0.951, rel=0.1)


@pytest.mark.parametrize(
    ("share", "mean", "largest"),
    [
        (1, 0.00079, 0.0061),
        (0.75, 0.00089, 0.0067),
        (0.5, 0.00104, 0.0076),
        (0.25, 0.00137, 0.0104),
        (0.1, 0.00197, 0.0159),
        (0.01, 0.00482, 0.0405),
        (0.001, 0.01168, 0.1191),
    ],
)
def test_warm_start_as_it_was_measured_on_adult(share: float, mean: float, largest: float) -> None:
    start, whole = WarmStarted(ADULT, 48_842, "rho"), total(MILD)
    loss = Loss("rho", int(whole.atoms * share))
    assert 1 / 1.6 < start.mean(loss) / 48_842 / mean < 1.6
    assert 1 / 1.6 < start.largest(loss, 20_000) / 48_842 / largest < 1.6


def test_choices() -> None:
    assert adult().mechanism == "iterative"
    assert adult(20).mechanism == "direct"
    assert adult(budget=PURE).mechanism == "iterative"
    for budget in (MILD, PURE):
        small = plan(rows=40_000, domain=domain_of(2, 10), budget=budget, questions=10_000)
        assert small.mechanism == "histogram"
        assert "one noisy histogram of 20 cells is best" in small.reason
    one = plan(rows=40_000, domain=domain_of(3000), budget=MILD, questions=100_000)
    assert one.mechanism == "histogram"
    assert "two attributes" in one.forecasts[2].note
    huge = plan(rows=40_000, domain=domain_of(*[100] * 8), budget=MILD, questions=20_000)
    assert huge.mechanism == "iterative"  # a mixture of products lists no cells
    assert huge.forecasts[1].mean is None
    wide = plan(rows=40_000, domain=domain_of(*[2000] * 4), budget=MILD, questions=1000)
    assert wide.mechanism == "direct"
    assert wide.forecasts[1].mean is wide.forecasts[2].mean is None
    assert "median" in wide.forecasts[2].note


# The sizes of the flights from New York with 11 attributes, of which no list of cells can be made.
FLIGHTS = domain_of(12, 10, 16, 3, 7, 7, 7, 8, 41, 7, 31)


@pytest.mark.parametrize(("epsilon", "questions"), [(1.0, 2_100), (3.0, 3_000)])
def test_fresh_noise_loses_where_a_release_is_foretold_less(epsilon: float, questions: int) -> None:
    """Both were planned as fresh noise, which erred twice as much as the release would have."""
    budget = Budget(epsilon=epsilon, delta=1e-9)
    made = plan(rows=336_776, domain=FLIGHTS, budget=budget, questions=questions)
    assert made.mechanism == "iterative"
    assert plan(rows=336_776, domain=FLIGHTS, budget=budget, questions=100).mechanism == "direct"


@pytest.mark.parametrize("domain", [ADULT, FLIGHTS, domain_of(2, 10), domain_of(12, 6, 4)])
@pytest.mark.parametrize("budget", [PURE, MILD, Budget(epsilon=0.1, delta=1e-6), Budget(epsilon=8.0, delta=1e-9)])
def test_fresh_noise_is_planned_just_where_nothing_is_foretold_less(domain: Domain, budget: Budget) -> None:
    for questions in (1, 5, 30, 200, 1_000, 10_000):
        made = plan(rows=30_000, domain=domain, budget=budget, questions=questions)
        means = {one.mechanism: one.mean for one in made.forecasts if one.mean is not None}
        others = [mean for name, mean in means.items() if name != "direct"]
        assert (made.mechanism == "direct") == (means["direct"] < min(others))
        assert made.expected.mean is not None
        assert made.expected.mean <= means["direct"]


def test_a_prior_is_foretold_to_help_the_more_rows_it_has() -> None:
    loss = total(MILD)
    means = [WarmStarted(ADULT, 20_000, "gdp", prior_rows=rows).mean(loss) for rows in (0, 100, 20_000, 10**7)]
    assert means == sorted(means, reverse=True)
    assert means[2] < 0.9 * means[0]
    huge = [WarmStarted(FLIGHTS, 20_000, "gdp", prior_rows=rows).mean(loss) for rows in (0, 10**7)]
    assert huge[1] < 0.9 * huge[0]
    # However many rows the prior has, a start must find out that it is right: with little budget it hardly can.
    gains = []
    for epsilon in (0.03, 1.0):
        little = total(Budget(epsilon=epsilon, delta=1e-9))
        known, sizes = WarmStarted(ADULT, 20_000, "gdp", prior_rows=10**7), allocation(ADULT, 20_000)
        left = math.sqrt(float((sizes._counts / 20_000 * sizes._of_energy)[sizes._kind].sum()))  # as if it were known
        gains.append(known.mean(little) / left)
    assert gains[0] > 1.2 * gains[1]
    made = plan(rows=20_000, domain=ADULT, budget=MILD, questions=52, prior_rows=20_000)
    assert made.mechanism == "iterative"
    assert plan(rows=20_000, domain=ADULT, budget=MILD, questions=52).mechanism == "direct"
    assert "a prior of 20,000 rows" in str(made)
    assert made.to_dict()["prior_rows"] == 20_000


def test_adult_gets_a_warm_start_and_a_small_safety_net() -> None:
    made = adult()
    settings = {"warm": made.warm, "certify": made.certify, "hits": made.hits}
    assert made.options == {"mechanism": "iterative", "questions": 20_000, **settings}
    assert made.warm is not None
    assert 0.7 <= made.warm <= 0.9
    assert made.hits is not None
    assert 3 <= made.hits <= 10
    chosen = made.expected
    assert chosen.largest is not None
    assert chosen.promised is not None
    assert chosen.mean is not None
    assert chosen.mean < 0.0016
    assert chosen.largest < 0.014
    assert chosen.largest < chosen.promised < 0.05
    assert chosen.worst_case is not None
    assert chosen.worst_case > chosen.promised


def test_more_epsilon_and_rows_are_never_worse_and_more_questions_never_better() -> None:
    def largest(rows: int = 48_842, epsilon: float = 1.0, questions: int = 1000) -> list[float]:
        budget = Budget(epsilon=epsilon, delta=1e-9)
        made = plan(rows=rows, domain=ADULT, budget=budget, questions=questions)
        return [one.largest or math.inf for one in made.forecasts]

    for better, worse in [
        (largest(epsilon=2.0), largest()),
        (largest(rows=100_000), largest()),
        (largest(), largest(questions=10_000)),
    ]:
        assert all(a <= b for a, b in zip(better, worse, strict=True))


def test_epsilon_needed_reaches_the_accuracy() -> None:
    for one in adult(accuracy=0.02).forecasts:
        assert one.epsilon_needed is not None
        again = adult(budget=Budget(epsilon=one.epsilon_needed * 1.001, delta=1e-9), accuracy=None)
        found = next(other for other in again.forecasts if other.mechanism == one.mechanism)
        assert found.promised is not None
        assert found.promised <= 0.02


def test_what_is_not_measured_stays_unknown() -> None:
    """On a domain too large for triples no epsilon makes pairs say what only three attributes together say."""
    wide = WarmStarted(domain_of(*[40] * 5), 10**6, "rho")
    assert wide.mean(Loss.of("rho", 100.0)) == pytest.approx(wide.mean(Loss.of("rho", 1000.0)), rel=0.05)
    small = WarmStarted(domain_of(*[8] * 5), 10**6, "rho")
    assert small.mean(Loss.of("rho", 1000.0)) < 0.4 * small.mean(Loss.of("rho", 100.0))


def test_shown_as_text_table_picture_and_json() -> None:
    made = adult()
    text = str(made)
    assert "48,842 rows" in text
    assert "epsilon needed" in text
    assert "Roth, lecture 12" in text
    assert "know sizes, not the table" in text
    assert max(map(len, text.splitlines()[3:])) <= 120
    assert "epsilon needed" not in str(adult(accuracy=None))
    facts = json.loads(json.dumps(made.to_dict()))
    assert [one["mechanism"] for one in facts["forecasts"]] == ["direct", "histogram", "iterative"]
    assert facts["forecasts"][2]["largest"]["kind"] == "expected"
    assert facts["forecasts"][2]["worst_case"]["says_nothing"]
    svg = made.chart().svg()
    assert svg.startswith("<svg")
    assert "warm start" in svg
    assert "wanted" in svg
    assert "<pre>" in made._repr_html_()
    assert made.table().row_count == 3
    assert plan(rows=1, domain=ADULT, budget=Budget(epsilon=1e-4, delta=0.0), questions=10**9).chart().svg()


def test_nonsense_is_refused() -> None:
    good = {"rows": 100, "domain": ADULT, "budget": MILD, "questions": 10}
    wrong = [
        {"rows": 0},
        {"rows": True},
        {"rows": 1.5},
        {"questions": 0},
        {"questions": 10**10},
        {"accuracy": 0.0},
        {"accuracy": 1},
        {"accuracy": math.nan},
        {"confidence": 1.0},
        {"prior_rows": -1},
        {"prior_rows": None},
        {"domain": "adult"},
        {"budget": 1.0},
    ]
    for given in wrong:
        with pytest.raises(ConfigError):
            plan(**(good | given))  # type: ignore[arg-type]
    assert tacit.plan is plan


# The check: other tables than those that the figures were fitted to. Rows are draws of a few latent classes.
CASES = {
    "survey": (8_000, (12, 6, 4, 3, 2), 5, 0.7, MILD, 101),
    "clinic": (60_000, (20, 10, 5, 5, 2), 8, 0.5, Budget(epsilon=0.5, delta=1e-9), 102),
    "flags": (25_000, (2,) * 10, 5, 1.0, MILD, 103),
    "pure": (100_000, (9, 8, 7, 6), 6, 0.5, PURE, 104),
    "few": (1_500, (10, 5, 4, 3), 4, 1.0, Budget(epsilon=2.0, delta=1e-6), 105),
    "large": (500_000, (15, 12, 6, 4, 2, 2), 7, 0.8, Budget(epsilon=0.3, delta=1e-9), 106),
}
# The classes of these differ so much that three attributes together show far more than pairs: nothing public tells
# that, and one question in thousands meets it.
LARGEST_OFF = {"clinic": 2.2, "pure": 2.2}


@pytest.mark.parametrize("name", ["survey", "few"])
def test_figures_of_the_warm_start_are_realistic(name: str, tmp_path: Path) -> None:
    seen, said = measured(name, tmp_path, runs=1), foretold(name)
    assert all(1 / 2.5 < b / a < 2.5 for a, b in zip(seen, said, strict=True))


def test_figures_with_a_prior_are_realistic(tmp_path: Path) -> None:
    """The prior is another sample of the same population."""
    seen, said = measured("few", tmp_path, runs=1, prior_rows=50_000), foretold("few", prior_rows=50_000)
    assert all(1 / 2.5 < b / a < 2.5 for a, b in zip(seen, said, strict=True))
    assert said[0] < 0.9 * foretold("few")[0]


@pytest.mark.parametrize("wrong", [Budget(epsilon=0.1, delta=1e-9), Budget(epsilon=20.0, delta=1e-9)])
def test_the_check_would_notice_figures_for_another_budget(wrong: Budget, tmp_path: Path) -> None:
    seen, said = measured("survey", tmp_path, runs=1), foretold("survey", wrong)
    assert not 1 / 2.5 < said[0] / seen[0] < 2.5


@pytest.mark.audit
@pytest.mark.parametrize("name", CASES)
def test_the_table_of_the_planning_page(name: str) -> None:
    """`pytest tests/release/test_plan.py -m audit -s` prints it."""
    with tempfile.TemporaryDirectory() as folder:
        seen, said = measured(name, Path(folder), runs=5), foretold(name)
    rows, sizes, classes, spread, budget, _ = CASES[name]
    shape = " × ".join(map(str, sizes)) if len(set(sizes)) > 1 else f"2^{len(sizes)}"
    figures = " | ".join(f"{a:.5f} | {b:.5f} | {b / a:.2f}" for a, b in zip(seen, said, strict=True))
    print(f"\n| {name} | {rows:,} | {shape} | {classes}, {spread} | {budget} | {figures} |")
    assert 1 / 1.5 < said[0] / seen[0] < 1.5
    assert 1 / 1.5 < said[1] / seen[1] < 1.5
    assert 1 / LARGEST_OFF.get(name, 1.5) < said[2] / seen[2] < 1.5


def foretold(name: str, budget: Budget | None = None, prior_rows: int = 0) -> tuple[float, float, float]:
    rows, sizes, _, _, own, _ = CASES[name]
    budget = budget or own
    start, loss = WarmStarted(domain_of(*sizes), rows, budget.measure, prior_rows=prior_rows), total(budget)
    return start.mean(loss) / rows, start.most(loss) / rows, start.largest(loss, 3000) / rows


def measured(name: str, folder: Path, runs: int, prior_rows: int = 0) -> tuple[float, float, float]:
    """The mean error of 3,000 conjunctions, what 95 % stay within and the largest, of starts with the whole budget."""
    rows, sizes, classes, spread, budget, seed = CASES[name]
    rng = np.random.Generator(np.random.PCG64(seed))
    domain = domain_of(*sizes)
    drawn = made_up(rows + prior_rows, sizes, classes, spread, rng)
    records = read_records(open_source(drawn[prior_rows:].reset_index(drop=True)), domain)
    prior = read_prior(drawn[:prior_rows].reset_index(drop=True), domain) if prior_rows else None
    queries = conjunctions(domain, 3000, rng)
    truth = np.array([records.answer(query) for query in queries]) / rows
    errors = []
    for run in range(runs):
        with curating(folder, records, domain, budget, name=str(run)) as curator:
            built = warm_start(public_of(curator), curator, loss=total(budget))
        fitted = fit_all(domain, built.measured, rows, prior=prior)
        errors.append(np.abs(fitted.hypothesis.answer_many(queries) - truth))
    figures = [[e.mean(), np.quantile(e, 0.95), e.max()] for e in errors]
    mean, most, largest = np.mean(figures, axis=0).tolist()
    return mean, most, largest


def made_up(rows: int, sizes: tuple[int, ...], classes: int, spread: float, rng: np.random.Generator) -> pd.DataFrame:
    """Each row belongs to a class, and each class has a law of its own for each attribute."""
    belongs = rng.choice(classes, rows, p=rng.dirichlet(np.ones(classes)))
    columns: dict[str, NDArray[np.int64]] = {}
    for i, size in enumerate(sizes):
        sums = np.cumsum(rng.dirichlet(np.full(size, spread), classes), axis=1)[belongs]
        columns[f"a{i}"] = np.minimum((rng.random(rows)[:, None] > sums).sum(axis=1), size - 1)
    return pd.DataFrame(columns)


def conjunctions(domain: Domain, count: int, rng: np.random.Generator) -> list[Query]:
    made = []
    for _ in range(count):
        names = [domain.names[i] for i in rng.choice(len(domain), size=rng.integers(1, 4), replace=False)]
        sizes = [domain[name].size for name in names]
        values = [rng.choice(size, size=rng.integers(1, size), replace=False) for size in sizes]
        made.append(Query.all([Query.among(domain, n, chosen) for n, chosen in zip(names, values, strict=True)]))
    return made


@pytest.mark.parametrize(("bar", "said"), [(10.2, "about as wide"), (15.0, "1.5 times as wide")])
def test_what_is_nearly_the_same_is_not_once_as_wide(bar: float, said: str) -> None:
    names = ["histogram", "iterative"]
    found = {name: Outlook(1.0, 2.0, width, 3.0) for name, width in zip(names, (10.0, bar), strict=True)}
    assert f"the next best, are {said}." in _reason(names, found, 10_000, domain_of(4, 5))
