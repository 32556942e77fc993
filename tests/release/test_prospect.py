"""What is foretold of a start once it is bought: the arithmetic, where it is said, and what only a certificate sees."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec import structs

import tacit
from support import once
from tacit.release.prospect import CertifiedError, Errors, Prospect, _raised
from tacit.session import Session

N = 20_000
BITS = "abcdef"


def make_rows() -> pd.DataFrame:
    """Six bits, of which the fourth is the parity of the first three: no three of them show it."""
    bits = np.random.default_rng(5).integers(0, 2, (N, 6))
    bits[:, 3] = bits[:, :3].sum(axis=1) % 2
    return pd.DataFrame(bits, columns=list(BITS))


ROWS = make_rows()
SOURCE = once(ROWS)


def opened(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {"mechanism": "iterative", "hits": 5, "warm": 0.7, "certify": 0.25, "questions": 2_000}
    domain = tacit.Domain({name: tacit.category([0, 1]) for name in BITS})
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    return tacit.open(data=SOURCE, domain=domain, budget=budget, ledger=folder / "l.tacit", **(settings | changes))


def prospect(size: int = 4_000) -> tuple[np.ndarray, Prospect]:
    """A second fit whose errors are exponential; certificates do not count 5 rows of them."""
    gaps = np.random.default_rng(1).exponential(10, size)
    return gaps, Prospect.of(gaps, np.full(size, 5.0), round(0.97 * size))


def test_the_largest_of_k_draws_is_the_mean_over_all_ways_to_draw_them() -> None:
    gaps = np.array([3.0, 1.0, 10.0])
    found = Errors.of(gaps)
    assert found.mean == pytest.approx(14 / 3)
    for place, questions in enumerate((1, 2, 4)):
        drawn = [max(some) for some in product(gaps, repeat=questions)]
        assert found.largest[place] == pytest.approx(np.mean(drawn))
    gaps, whole = prospect()
    assert whole.errors.beyond == pytest.approx(np.maximum(gaps - np.quantile(gaps, 0.95), 0).mean())


@pytest.mark.parametrize("size", [1, 2, 3, 1_000, 40_000])
def test_what_is_too_small_for_a_float_is_not_raised(size: int) -> None:
    shares = np.arange(size + 1) / size
    for power in 2.0 ** np.arange(40):
        assert _raised(shares, power).tobytes() == (shares**power).tobytes()


@pytest.mark.parametrize("times", [0.5, 0.8, 1.0, 1.3, 2.0])
def test_a_sharp_certificate_says_how_many_times_as_far_off_the_first_fit_is(times: float) -> None:
    gaps, found = prospect()
    certified = float(np.sort(times * gaps - 5)[round(0.97 * gaps.size) - 1])
    told = found.expects(1_000, CertifiedError(gaps.size, certified, 0.5))
    assert told.mean == pytest.approx(times * gaps.mean(), rel=0.05)
    assert told.most == pytest.approx(times * np.quantile(gaps, 0.95), rel=0.05)
    blunt = found.expects(
        1_000, CertifiedError(gaps.size, certified, 1e6)
    )  # all noise: what is so as a rule is believed
    assert blunt.mean == pytest.approx(0.87 * gaps.mean(), rel=1e-3)
    drawn = structs.replace(found, drawn=True).expects(1_000, CertifiedError(gaps.size, certified, 1e6))
    assert drawn.mean == pytest.approx(0.77 * gaps.mean(), rel=1e-3)
    between = found.expects(1_000, CertifiedError(gaps.size, certified, 8.0)).mean
    assert 0.95 * min(told.mean, blunt.mean) < between < 1.05 * max(told.mean, blunt.mean)


def test_the_largest_of_all_boxes_bounds_the_largest_of_some_questions_from_both_sides() -> None:
    gaps, found = prospect()
    share = CertifiedError(gaps.size, found.share[12], 1e6)
    alone = found.expects(3_000, share)
    near = CertifiedError(10**6, alone.largest - 5, 1.0)
    assert found.expects(3_000, share, near) == alone
    hidden, length = CertifiedError(10**4, 1_000.0, 1.0), np.log(10**4 / 20)  # what no release has shown
    told = found.expects(3_000, share, hidden)
    assert told.largest == pytest.approx(alone.most + np.log(3_000 / 20) / length * (1_005 - alone.most))
    assert told.mean == pytest.approx(
        alone.mean + 0.05 * (1_005 - alone.most) / length - 0.87 * found.errors.beyond, rel=1e-3
    )
    assert found.expects(10**7, share, hidden).largest == pytest.approx(1_005)
    low = CertifiedError(10**6, alone.largest / 2, 3.0)  # what the second fit got wrong by chance
    assert found.expects(3_000, share, low) == alone._replace(largest=alone.largest / 2 + 5 + 3)
    assert (
        found.expects(3_000, share, CertifiedError(10**6, -100.0, 1.0)).largest == alone.most
    )  # a figure that is all noise
    for one in (near, hidden, low, None):
        errors = [found.expects(2**j, share, one).largest for j in range(20)]
        assert errors == sorted(errors)


def test_what_was_kept_is_read_back_and_nothing_else_is() -> None:
    _, found = prospect()
    assert Prospect.unpacked(found.packed()) == found
    for wrong in (b"", b"{}", found.packed()[:-1], found.packed().replace(b'"mean":', b'"mean":-'), b"\xff"):
        assert Prospect.unpacked(wrong) is None


def test_a_start_foretells_what_no_plan_can_know(tmp_path: Path) -> None:
    """The parity of four bits makes a sixteenth of all rows wrong, 1,250, in a box that a start cannot learn.

    The certificate's figure for the largest of all boxes has a deviation of at most 60 rows; it would have to be off by
    ten of them, which has a chance below 1e-20.
    """
    with opened(tmp_path) as session:
        before = session.base
        started = session.start()
        assert [one.about for one in before.expects] != [one.about for one in started.expects]
        mean, most, largest = started.expects
        assert mean.about == "the mean of questions with up to 4 conditions"
        assert (most.about, largest.about) == ("95% of these", "the largest of 2,000 of these")
        assert max(mean.error, most.error) < largest.error  # the mean has a part of the tail, and may exceed the 95 %
        assert largest.error > 1_250 - 600 > before.expects[1].error
        assert f"± {largest.error:,.0f} rows: the largest of 2,000 of these" in str(started)
        true = ROWS.groupby(list("abcd")).size()
        errors = [abs(told - true.get(tuple(map(int, cell)), 0)) for cell, told in session.table(*"abcd")]
        assert largest.error / 2 < max(errors) < 2 * largest.error
        assert session.base.expects == started.expects
    with opened(tmp_path) as session:  # whoever opens it again is told the same
        assert session.base.expects == started.expects
    (tmp_path / "l.tacit.expected").unlink()  # it only saves time
    with opened(tmp_path) as session:
        assert session.base.expects == ()
        assert session.base.certified == started.certified
