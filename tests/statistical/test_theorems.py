"""The theorems of `tacit.theory`, run: all answers within alpha, except with probability beta; at most B updates.

A run fails if any of its answers is off by more than alpha, or if it makes more than B updates (it may make 2B). The
theorem allows that with probability beta, so the number of failures is at most binomial, whatever the tables. A check
rejects above that law's 1 - FALSE_ALARM quantile, which a theorem that holds reaches with probability FALSE_ALARM at
most; and never by chance, since the noise is from a seed (`seeded_noise.py`). Three controls must be rejected:
alpha/20, B/100, and tables of 1/200 of the rows that are needed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from scipy.stats import binom

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.bench_theorems import CASES, Case, Run, TrivialCase, run, trivial

from tacit.release.rules.median_net import MedianNet

FALSE_ALARM = 1e-6
RUNS, MANY = 18, 60

QUICK = (
    Case("exponential", "textbook", 3, 20, alpha=0.4),
    Case("exponential", "exact", 6, 20, alpha=0.1, delta=1e-9),
    Case("exponential", "median", 2, 6, alpha=0.3),
    Case("sparse", "textbook", 3, 20, alpha=0.6),
    Case("online", "textbook", 4, 20, alpha=0.4, delta=1e-9),
    Case("online", "median", 2, 6, alpha=0.45),
)
CONTROLS = tuple(case for case in QUICK if case.rule != "exact")  # an exact step is often far better than alpha


def name(case: Case) -> str:
    return f"{case.construction}-{case.rule}-{case.domain.size}-{case.alpha}"


@cache
def runs_of(case: Case, count: int) -> list[Run]:
    return [run(case, seed) for seed in range(count)]


def accepts(runs: Sequence[Run], alpha: float, most_updates: float, beta: float) -> bool:
    """Whether so many failures are plausible where each has probability beta at most."""
    failures = sum(one.error > alpha or one.updates > most_updates for one in runs)
    return failures <= int(binom.isf(FALSE_ALARM, len(runs), beta))


@pytest.mark.parametrize("case", QUICK, ids=name)
def test_all_answers_are_within_alpha_and_the_updates_within_their_bound(case: Case) -> None:
    assert accepts(runs_of(case, RUNS), case.alpha, case.most_updates, case.beta)


@pytest.mark.parametrize("case", CONTROLS, ids=name)
def test_a_twentieth_of_alpha_is_rejected(case: Case) -> None:
    # Must fail: otherwise the check accepts anything.
    assert not accepts(runs_of(case, RUNS), case.alpha / 20, case.most_updates, case.beta)


@pytest.mark.parametrize("case", [case for case in QUICK if case.construction == "online"], ids=name)
def test_a_table_with_too_few_rows_is_rejected(case: Case) -> None:
    # Must fail: the theorem asks for rows because of the noise, and here it drowns the answers.
    assert not accepts(runs_of(replace(case, fewer=200), RUNS), case.alpha, case.most_updates, case.beta)


@pytest.mark.parametrize("case", [case for case in QUICK if case.rule == "textbook"], ids=name)
def test_a_hundredth_of_the_updates_is_rejected(case: Case) -> None:
    # Must fail: the tables are far from uniform, and small steps do not get there so soon.
    assert not accepts(runs_of(case, RUNS), case.alpha, case.most_updates / 100, case.beta)


@pytest.mark.audit
@pytest.mark.parametrize("case", CASES, ids=name)
def test_all_answers_are_within_alpha_in_many_runs(case: Case, size: float) -> None:
    assert accepts(runs_of(case, max(RUNS, round(size * MANY))), case.alpha, case.most_updates, case.beta)


def test_the_trivial_net_answers_nonlinear_queries_within_alpha() -> None:
    case = TrivialCase(2, 0.1, 160.0)
    net = MedianNet.databases(case.domain, case.n)
    assert len(net) == case.n + 1
    assert case.theorem.alpha_reached(n=case.n, epsilon=160.0) <= 0.1
    runs = [trivial(case, net, seed) for seed in range(4)]
    assert max(run.error for run in runs) <= case.alpha
    assert 1 <= max(run.updates for run in runs) <= math.log2(len(net)) < case.most_updates
    # A control that must fail: a twentieth of the alpha that was asked for is not reached by chance.
    assert max(run.error for run in runs) > case.alpha / 20
