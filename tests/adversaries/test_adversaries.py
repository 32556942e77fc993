"""Adversaries against whole sessions prove no more privacy loss than is paid for, and much more where a bug is planted.

Here a few sessions each, with noise of the right law from a seed. `make audit` has 100,000 transcripts each with the
system's noise: then a bound is above the price by chance once in 2 * 10^10 times, so that all of them together cry
wolf less often than once in a billion runs.
"""

from __future__ import annotations

from dataclasses import asdict

import pytest
from bounds import WRONG, Transcript, epsilon_of, least_epsilon, lower, upper
from scipy.stats import binom

from adversaries import ADVERSARIES, Adversary, run, run_control
from audit_record import record
from support import Stopwatch

TRANSCRIPTS = 100_000  # of each adversary, in the whole audit
SOON = {"direct": 100, "gate": 400, "choice": 100, "online": 100, "median": 100}  # show their bugs soon
OFTEN = 1e-3  # the chance that a bound from a seed is too high: it is the same in every run


def named(adversary: Adversary) -> str:
    return adversary.name


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=named)
def test_a_few_sessions_prove_nothing_that_is_not_paid_for(adversary: Adversary) -> None:
    found = run(adversary, 25, OFTEN)
    assert found.bound <= found.price


@pytest.mark.parametrize("adversary", [one for one in ADVERSARIES if one.name in SOON], ids=named)
def test_a_planted_bug_shows_soon(adversary: Adversary) -> None:
    found = run_control(adversary, SOON[adversary.name], OFTEN)
    assert found.bound > found.price


@pytest.mark.audit
@pytest.mark.real_noise  # for the chances see the module and `Adversary.least`
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=named)
def test_no_adversary_proves_more_than_is_paid_for(adversary: Adversary, size: float) -> None:
    watch = Stopwatch()
    found = run(adversary, round(size * TRANSCRIPTS / 2))
    planted = run_control(adversary, adversary.least)
    record("adversaries", adversary.name, **asdict(found), bug=adversary.bug, control=planted.bound, taken=str(watch))
    print(
        f"\n{adversary.name}: epsilon at least {found.bound:.3f} of {found.price:.3f} paid (delta = {found.delta:g}) "
        f"in {found.transcripts:,} transcripts; planted, {adversary.bug}: {planted.bound:.3f}; {watch}"
    )
    assert found.bound <= found.price
    assert planted.bound > planted.price


def test_there_is_an_adversary_for_every_way_to_look() -> None:
    names = {one.name for one in ADVERSARIES}
    assert names >= {"direct", "histogram", "ranges", "gate", "certificate", "choice", "warm start", "median"}
    assert len(ADVERSARIES) * WRONG < 1e-9


@pytest.mark.parametrize(("hits", "tries"), [(0, 50), (1, 50), (17, 50), (50, 50)])
def test_bounds_on_chances_are_those_of_clopper_and_pearson(hits: int, tries: int) -> None:
    low, high = lower(hits, tries, 1e-6), upper(hits, tries, 1e-6)
    if hits:
        assert binom.sf(hits - 1, tries, low) == pytest.approx(1e-6)
    if hits < tries:
        assert binom.cdf(hits, tries, high) == pytest.approx(1e-6)
    assert low <= hits / tries <= high


def test_a_bound_is_no_more_than_the_two_chances_are_apart() -> None:
    assert epsilon_of(0, 0, 100, 0.0, OFTEN) == 0
    assert epsilon_of(100, 0, 100, 0.0, OFTEN) > 2
    assert epsilon_of(100, 0, 100, 0.5, OFTEN) < epsilon_of(100, 0, 100, 0.0, OFTEN)
    same = [Transcript("a", 1.0), Transcript("b", -1.0)] * 100
    assert least_epsilon(same, same, 0.0, OFTEN) == 0
    told = [Transcript("a", 0.0)] * 200, [Transcript("b", 0.0)] * 200
    assert least_epsilon(*told, 0.0, OFTEN) > 2
