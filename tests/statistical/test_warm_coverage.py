"""Error bars fail at most as often as they say, over many sessions of every mechanism, with new noise in each.

What fails is counted over independent trials, each with the stated chance at most, so their number is at most binomial.
A check rejects what has a probability below FALSE_ALARM under that law; the noise is from a seed (`seeded_noise.py`),
so that what it finds once it finds always. Controls: bars that would be too narrow for their errors, bars made for
another confidence, and a gate's bar that forgets that its threshold is noisy.
An analyst who knows the data finds the last one; questions at random would not, since most guesses are good.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta, binom

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.bench_coverage import CASES, Case, Coverage, coverage, play
from benchmarks.coverage import analysts
from benchmarks.coverage.analysts import ALL_EASY, CONFIDENCE, EACH, EASY, FEW_COUNTS, HARD, INTERVAL, Promise

from tacit.release.online_terms import Terms

FALSE_ALARM = 1e-6  # of each check
BY_NAME = {case.name: case for case in CASES}
SESSIONS = {"direct": 150, "histogram": 150, "iterative": 80, "median": 30}
FEWEST = 20  # sessions of a part of the audit: so many can show a bar that is too narrow
STEPPED = (EASY, HARD, INTERVAL, FEW_COUNTS)  # errors in whole bins, or mostly none: no factor makes them fail often


def seen(case: Case, sessions: int, confidence: float = CONFIDENCE) -> dict[Promise, Coverage]:
    return coverage([play(case, seed, confidence) for seed in range(sessions)])


def too_narrow(covered: Coverage) -> Coverage:
    """The control: answers that are off, with bars so much narrower than these errors need that the check must reject.

    As many errors must lie outside as have a chance below FALSE_ALARM, and each does with a probability at which fewer
    have a chance below FALSE_ALARM too. How much narrower that is follows from the law of the errors; the exponential
    one of Laplace noise needs the most. Where nothing was told, or nothing was wrong, no bar is too narrow.
    """
    off = Coverage(covered.errors[covered.errors > 0], covered.stated)
    rejected = binom.isf(FALSE_ALARM, off.trials, 1 - off.stated) + 1
    outside = beta.isf(FALSE_ALARM, rejected, off.trials - rejected + 1)
    return off.shrunk(off.width * math.log(1 - off.stated) / math.log(outside))


def forgetful(terms: Terms, threshold: float, most_gates: float | None = None) -> float:
    """As if the threshold's noise were never above its mean by more than the least it can be below."""
    return threshold + terms.comparison_scale - terms.threshold_scale


def test_the_check_itself() -> None:
    # Exact: of 200 trials 43 may fail and 44 may not, at 1e-6; the law of 0.1 has a tail of 4.7e-7 from 44 on.
    errors = np.r_[np.full(43, 1.5), np.full(157, 0.5)]
    assert Coverage(errors).failures == 43
    assert Coverage(errors).holds(FALSE_ALARM)
    assert not Coverage(np.r_[np.full(44, 1.5), np.full(156, 0.5)]).holds(FALSE_ALARM)
    assert Coverage(np.ones(200)).failures == 0  # within the bar, just so
    assert Coverage(np.linspace(0, 0.5, 101)).width == pytest.approx(1 / 0.45)
    assert not Coverage(errors).shrunk(2.1).holds(FALSE_ALARM)


def test_bars_hold_by_themselves_and_against_an_analyst_who_knows_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    direct, trouble = BY_NAME["direct, Gaussian"], BY_NAME["uniform start, trouble"]
    assert seen(direct, 6)[EACH].holds(FALSE_ALARM)
    assert not seen(direct, 6, confidence=0.5)[EACH].holds(FALSE_ALARM)
    assert seen(trouble, 25)[ALL_EASY].holds(FALSE_ALARM)
    monkeypatch.setattr(Terms, "shown", forgetful)
    assert not seen(trouble, 25)[ALL_EASY].holds(FALSE_ALARM)


@pytest.mark.audit
@pytest.mark.parametrize("name", BY_NAME)
def test_bars_fail_at_most_as_often_as_stated(name: str, size: float) -> None:
    case = BY_NAME[name]
    for promise, covered in seen(case, max(FEWEST, round(size * SESSIONS[case.mechanism]))).items():
        assert covered.holds(FALSE_ALARM) or not promise.meant, promise
        if promise not in STEPPED and covered.width < math.inf and case.asks is not analysts.trouble:
            assert not too_narrow(covered).holds(FALSE_ALARM), promise


# After a warm start the first hit buys a table that ends the trouble: too few wrong answers are left to be counted.
TROUBLED = ["uniform start, trouble", "uniform start, trouble, pure"]


@pytest.mark.audit
@pytest.mark.parametrize("name", TROUBLED)
def test_planted_bar_that_forgets_the_threshold_noise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Terms, "shown", forgetful)
    assert not seen(BY_NAME[name], 80)[ALL_EASY].holds(FALSE_ALARM)
