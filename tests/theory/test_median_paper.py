"""Roth & Roughgarden 2010, number by number: what the paper claims, what holds, and where the two differ."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.release.plan import says_nothing
from tacit.theory.lecture_8 import sampled_net_rows
from tacit.theory.median_efficient import Efficient
from tacit.theory.median_paper import (
    BAD,
    HARD,
    LOWEST,
    SHRINKS,
    PaperConstants,
    Thresholds,
    agreement,
    agreement_sensitivity,
    alpha_reached,
    easy_error,
    sample_records,
)

ALPHAS = st.floats(0.01, 0.99)
EPSILONS = st.floats(0.01, 3.9)
QUESTIONS = st.integers(2, 10**9)
CELLS = st.integers(2, 10**12)
CONSTANTS = st.builds(PaperConstants.of, ALPHAS, EPSILONS, QUESTIONS, CELLS)


# --- equations (1) to (6) -------------------------------------------------------------------------------------------


def test_the_constants_by_hand() -> None:
    # m = 160000 ln(1000) ln(10)/0.01 = 160000 * 6.907755 * 2.302585 * 100 = 254,491,1xx
    c = PaperConstants.of(0.1, 1.0, 1000, 1000)
    assert c.records == pytest.approx(160_000 * 6.907755 * 2.302585 * 100, rel=1e-6)
    # epsilon' = 1/(720 * 2.54491e8 * 6.907755) = 7.9006e-13
    assert c.epsilon_each == pytest.approx(7.9006e-13, rel=1e-4)
    # n = 30 ln(2000) log2(1000)/(7.9006e-13 * 0.1) = 30 * 7.600902 * 9.965784/7.9006e-14 = 2.876e16
    assert c.rows_needed == pytest.approx(2.876e16, rel=1e-3)
    assert 1e16 < c.rows_needed < 1e17
    # 20 m ln|X| = 20 * 2.54491e8 * 6.907755
    assert c.hard_limit == pytest.approx(3.5159e10, rel=1e-4)


def test_figures_need_at_least_two_questions_two_cells_and_a_small_epsilon() -> None:
    for alpha, epsilon, questions, cells in ((1.0, 1, 2, 2), (0.1, 4, 2, 2), (0.1, 1, 1, 2), (0.1, 1, 2, 1)):
        with pytest.raises(ValueError, match="must be"):
            PaperConstants.of(alpha, epsilon, questions, cells)


@given(CONSTANTS)
def test_gamma_at_the_needed_rows_leaves_thresholds_to_choose_from(c: PaperConstants) -> None:
    # (3) over (6): 4/(30 log2 k) = 2/(15 log2 k), below 3/20 as soon as log2 k > 8/9
    gamma = c.gamma(c.rows_needed)
    assert gamma == pytest.approx(2 / (15 * math.log2(c.questions)))
    assert gamma < 3 / 20
    assert c.thresholds(c.rows_needed).last >= 1
    assert c.gamma(10 * c.rows_needed) == pytest.approx(gamma / 10)


@given(CONSTANTS)
def test_theta_of_equation_6_has_its_exponents(c: PaperConstants) -> None:
    # (6) with everything put in: 30 * 720 * 160000 = 3.456e9
    k, a = c.questions, c.alpha
    power = 3.456e9 * math.log(c.cells) * math.log(k) * math.log2(k) * math.log(2 * k / c.epsilon)
    exact = power * math.log(1 / a) / (c.epsilon * a**3)
    assert exact <= c.rows_needed <= exact * (1 + 1 / (c.records - 1 + 1e-9)) * (1 + 1e-9)  # m is rounded up


@given(st.floats(1e9, 1e18), EPSILONS, st.integers(2, 10**6), st.integers(2, 10**6))
@settings(max_examples=30)
def test_alpha_reached_is_the_inverse_of_the_rows_needed(n: float, epsilon: float, questions: int, cells: int) -> None:
    alpha = alpha_reached(n=n, epsilon=epsilon, questions=questions, cells=cells)
    assume(alpha < 1)
    assert PaperConstants.of(alpha, epsilon, questions, cells).rows_needed <= n * (1 + 1e-9)
    assert PaperConstants.of(alpha * 0.999, epsilon, questions, cells).rows_needed > n


def test_a_census_table_is_promised_nothing() -> None:
    assert says_nothing(alpha_reached(n=48_842, epsilon=1, questions=20_000, cells=3_000_000))


# --- figure 1, step (b): thresholds ---------------------------------------------------------------------------------


def test_thresholds_by_hand() -> None:
    # gamma = 0.05: 3/(20 gamma) = 3, so j = 0 ... 3 at 0.75, 0.80, 0.85, 0.90, in proportion 8 : 4 : 2 : 1
    t = Thresholds(0.05)
    assert t.last == 3
    assert [t.value(j) for j in range(4)] == pytest.approx([0.75, 0.80, 0.85, 0.90])
    assert [t.probability(j) for j in range(4)] == pytest.approx([8 / 15, 4 / 15, 2 / 15, 1 / 15])
    # gamma = 0.06: 2.5, so three thresholds, the largest of them 0.87 and not 9/10
    assert Thresholds(0.06).last == 2
    assert Thresholds(0.06).value(2) == pytest.approx(0.87)
    assert Thresholds(0.2).last == 0  # above 3/20: nothing is random
    assert Thresholds(0.2).probability(0) == 1


@given(st.floats(1e-6, 10))
def test_thresholds_are_a_distribution_in_the_range(gamma: float) -> None:
    t = Thresholds(gamma)
    js = range(min(t.last, 200) + 1)
    assert math.fsum(t.probability(j) for j in js) == pytest.approx(1)
    assert all(3 / 4 <= t.value(j) <= 9 / 10 for j in (0, t.last))
    assert t.value(t.last) + gamma > 9 / 10 * (1 - 1e-9)
    for j, after in pairwise(js):
        assert t.probability(j) == 2 * t.probability(after)


@given(st.floats(0.005, 1), st.floats(0, 1, exclude_max=True))
def test_a_place_is_where_the_distribution_function_passes(gamma: float, uniform: float) -> None:
    t = Thresholds(gamma)
    j = t.place(uniform)
    below = math.fsum(t.probability(i) for i in range(j))
    assert below <= uniform + 1e-12
    assert uniform <= below + t.probability(j) + 1e-12
    assert 0 <= j <= t.last


@given(CONSTANTS)
def test_the_largest_threshold_has_chance_at_most_1_in_k(c: PaperConstants) -> None:
    # lemma 4.10 ignores the normalising constant; with it: 1/(2^(J+1) - 1), and 2^(J+1) > k^(9/8), so at least k + 1
    t = c.thresholds(c.rows_needed)
    assert t.probability(t.last) <= 1 / c.questions * (1 + 1e-9)


@given(st.floats(0.001, 0.15))
def test_lemma_4_10_claims_a_half_where_a_third_is_the_truth(gamma: float) -> None:
    t = Thresholds(gamma)
    tails = [math.fsum(t.probability(j) for j in range(start, t.last + 1)) for start in range(t.last + 1)]
    ratios = [after / tail for tail, after in pairwise(tails)]
    assert all(ratio < 1 / 2 for ratio in ratios[-40:])  # the paper has >= 1/2; far from the end it is 1/2 in floats
    assert min(ratios) == ratios[-1] == pytest.approx(1 / 3)
    assert 6 * HARD < BAD - 1  # so the lemma's 159 M are still above six times 20 M


@given(gamma=st.floats(0.001, 0.15), r=st.floats(0, 1))
def test_lemma_4_10_divides_its_cases_at_the_largest_threshold(gamma: float, r: float) -> None:
    t = Thresholds(gamma)
    first = max(0, t.last - 100)
    bad = [j for j in range(first, t.last + 1) if r < t.value(j) + gamma - 1e-9]
    if r >= t.value(t.last):
        assert bad in ([], [t.last])
    else:
        assert len(bad) >= 2


def test_lemma_4_10_at_nine_tenths_would_be_wrong() -> None:
    # gamma = 0.06: with r = 0.88 < 9/10 only the threshold 0.87 has r < t + gamma, and it is not above r
    t = Thresholds(0.06)
    assert [t.value(j) for j in range(t.last + 1) if t.value(j) + t.gamma > 0.88] == pytest.approx([0.87])


# --- lemma 4.9: the sensitivity of r --------------------------------------------------------------------------------


@given(st.data())
def test_r_moves_by_no_more_than_its_exact_sensitivity(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 50))
    alpha = data.draw(st.floats(0.01, 2))
    truth = data.draw(st.integers(0, n - 1))
    values = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    moved = abs(agreement(truth / n, values, alpha) - agreement((truth + 1) / n, values, alpha))
    assert moved <= agreement_sensitivity(alpha=alpha, n=n) + 1e-12


@given(st.floats(1e-3, 10), st.integers(1, 10**6))
def test_the_exact_sensitivity_is_reached_and_below_half_of_the_papers(alpha: float, n: int) -> None:
    h = 1 / (alpha * n)
    exact = agreement_sensitivity(alpha=alpha, n=n)
    assert exact <= h  # so half of lemma 4.9's 2h, whatever alpha n is
    assert agreement(0, [0, 0], alpha) - agreement(1 / n, [0, 0], alpha) == pytest.approx(exact, abs=1e-12)
    if h <= 1:  # the lemma's own step
        assert math.exp(h) <= 1 + 2 * h
    else:  # where the step can fail, the claim is empty
        assert 2 * h > 1 >= exact


def test_the_step_of_lemma_4_9_fails_where_alpha_n_is_small() -> None:
    assert math.exp(1.3) > 1 + 2 * 1.3


# --- lemmas 4.3 to 4.7 and theorem 4.2: accuracy --------------------------------------------------------------------


def test_lemma_4_5_by_hand() -> None:
    assert 0.51 + 0.49 / math.e == pytest.approx(0.690, abs=1e-3)
    assert 0.51 + 0.49 / math.e < 0.74
    # 2 * 0.74 - 1 = 0.48, and -ln 0.48 = 0.734
    assert easy_error(alpha=1, threshold=0.75, noise=0.01) == pytest.approx(0.734, abs=1e-3)
    assert easy_error(alpha=1, threshold=0.75, noise=0.066) < 1 < easy_error(alpha=1, threshold=0.75, noise=0.067)
    assert easy_error(alpha=1, threshold=0.75, noise=0.25) == math.inf


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15), st.floats(0, 1), st.floats(0.05, 1), st.floats(0, 0.2))
def test_an_easy_median_is_as_near_as_the_lemma_says(values: list[float], truth: float, alpha: float, t: float) -> None:
    threshold = LOWEST + t * 3 / 4
    noise = max(0.0, threshold - agreement(truth, values, alpha))  # the least that makes it easy
    lower_median = sorted(values)[(len(values) - 1) // 2]
    assert abs(lower_median - truth) <= easy_error(alpha=alpha, threshold=threshold, noise=noise) + 1e-9


def test_lemma_4_5_rejects_a_bound_that_is_a_tenth_too_small() -> None:
    # half of the databases right, half of them off by 0.5 on one side, the lower median among those
    values, alpha = [0.0, 0.5], 0.5
    r = agreement(0.5, values, alpha)  # (1 + 1/e)/2
    assert 0.9 * easy_error(alpha=alpha, threshold=r, noise=0) < 0.5
    assert easy_error(alpha=alpha, threshold=r, noise=0) == pytest.approx(0.5)


def test_lemma_4_7_by_hand() -> None:
    assert 0.94 * math.exp(-1 / 50) > 0.92  # as written
    # but the databases that stay are within alpha/50 of an answer that is off by up to alpha/100: 3/100 in all
    assert 0.94 * math.exp(-3 / 100) > 0.912 > 0.91
    assert 16.16 < 1 / math.log(100 / 94) == 1 / SHRINKS < 16.17 < 20


def test_lemma_4_7_as_written_has_a_counterexample_and_the_repaired_step_has_none() -> None:
    # D = 0, a = alpha/100, 94 % of the databases at 3 alpha/100 (they stay), the others far away
    alpha = 0.1
    values = np.r_[np.full(94, 3 * alpha / 100), np.full(6, 1e9)]
    assert (np.abs(values - alpha / 100) <= alpha / 50 + 1e-15).sum() == 94
    r = agreement(0, values, alpha)
    assert r == pytest.approx(0.9122, abs=1e-4)
    assert 0.91 < r < 0.92


@given(CONSTANTS)
def test_hard_answers_stay_below_the_limit(c: PaperConstants) -> None:
    assert c.hard_answers < 20 * c.log_net - 1 < c.hard_limit + 1
    assert math.lgamma(c.cells + c.records) - math.lgamma(c.cells) - math.lgamma(c.records + 1) <= c.log_net * 1.000001


@given(ALPHAS, QUESTIONS, st.floats(1e-9, 0.5))
def test_proposition_4_6_is_hoeffding_and_a_union_bound(alpha: float, questions: int, beta: float) -> None:
    size = sample_records(alpha=alpha, questions=questions, beta=beta)
    assert 2 * questions * math.exp(-2 * size * alpha**2) == pytest.approx(beta)


def test_where_equation_1_has_records_enough_for_proposition_4_6() -> None:
    def enough(alpha: float, k: int, part: int) -> bool:
        return PaperConstants.of(alpha, 1.0, k, 2).records >= sampled_net_rows(alpha=alpha / part, queries=k)

    # alpha/400: ln(1/alpha) > ln(2k)/(2 ln k), so alpha < 1/e = 0.368 for k = 2, and < exp(-0.55) = 0.577 for 1000
    assert enough(0.36, 2, 400)
    assert not enough(0.38, 2, 400)
    assert enough(0.57, 1000, 400)
    assert not enough(0.58, 1000, 400)
    # alpha/100, which is what lemma 4.7 uses: alpha < exp(-1/16) = 0.939 for k = 2, and < 0.966 for 1000
    assert enough(0.93, 2, 100)
    assert not enough(0.95, 2, 100)
    assert enough(0.96, 1000, 100)
    assert not enough(0.97, 1000, 100)


@given(st.floats(0.01, 0.93), EPSILONS, QUESTIONS, CELLS)
def test_there_is_a_witness_for_every_alpha_up_to_93_percent(a: float, epsilon: float, k: int, cells: int) -> None:
    assert PaperConstants.of(a, epsilon, k, cells).net_has_a_witness


def test_beyond_that_small_domains_have_one_by_rounding_and_large_ones_may_not() -> None:
    assert PaperConstants.of(0.999, 1, 2, 2).net_has_a_witness  # m = 112: 2/(4 * 112) = 0.0045 < 0.00999
    assert not PaperConstants.of(0.999, 1, 2, 1000).net_has_a_witness


@given(st.integers(2, 6), st.integers(1, 20), st.data())
def test_rounding_moves_predicates_by_a_quarter_of_the_cells_at_most(cells: int, m: int, data: st.DataObject) -> None:
    counts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=cells, max_size=cells)))
    assume(counts.sum() > 0)
    shares = counts / counts.sum() * m
    rounded = np.floor(shares + 1e-9)
    order = np.argsort(rounded - shares)  # largest remainders first
    rounded[order[: round(m - rounded.sum())]] += 1
    worst = np.maximum(rounded - shares, 0).sum() / m  # over all predicates
    assert rounded.sum() == m
    assert worst <= cells / (4 * m) + 1e-9


@given(CONSTANTS, st.floats(1e-9, 0.5))
def test_rows_for_a_failure_keep_it(c: PaperConstants, beta: float) -> None:
    n = c.rows_for(beta)
    assert n >= c.rows_needed
    assert c.failure(n) <= beta * (1 + 1e-9)
    assert c.failure(2 * n) < c.failure(n) or c.failure(n) == 0


def test_the_failure_bounds_are_laplace_tails() -> None:
    # At (6) alpha n epsilon' = 30 ln(2000) 9.965784 = 2272.5; noise on r has scale 2/2272.5, on answers alpha/2272.5
    c = PaperConstants.of(0.1, 1, 1000, 1000)
    n = c.rows_needed
    assert c.noisy_agreement(n) == pytest.approx(1000 * math.exp(-2272.45 / 200), rel=1e-3)
    assert c.noisy_answers(n) == pytest.approx(1000 * math.exp(-2272.45 / 100), rel=1e-2)
    assert c.failure(n) == pytest.approx(0.0116, abs=1e-4)


def test_theorem_4_2_says_nothing_for_few_questions() -> None:
    # k (2k/epsilon)^(-0.15 log2 k) < 1 needs ln(2k/epsilon) > ln 2/0.15 = 4.62, 2k/epsilon > 101.6
    def failure(k: int) -> float:
        c = PaperConstants.of(0.1, 1.0, k, 1000)
        return c.failure(c.rows_needed)

    assert failure(50) > 1 > failure(60)
    assert failure(10**6) < 1e-6


# --- lemma 4.10 and theorem 4.8: privacy ----------------------------------------------------------------------------


@given(CONSTANTS)
def test_theorem_4_8_adds_up(c: PaperConstants) -> None:
    assert c.privacy == pytest.approx(c.epsilon)
    good = 1 - c.epsilon / (4 * c.questions)  # (11)
    assert -c.questions * math.log(good) <= c.epsilon / 2
    assert c.gamma(c.rows_needed) >= 4 / (c.alpha * c.rows_needed)  # gamma/2 covers lemma 4.9's 2/(alpha n)
    exponent = c.gamma(1e9) * c.epsilon_each * c.alpha * 1e9 / 4
    assert math.exp(-exponent) / 2 == pytest.approx(c.epsilon / (4 * c.questions))
    # with one hard answer more than 20 M, and easy ones at epsilon' each, there is still room
    assert (2 * (c.hard_limit + 1) + BAD * c.log_net) * c.epsilon_each <= c.epsilon / 2


@given(CONSTANTS)
def test_tau_is_negligible(c: PaperConstants) -> None:
    assert c.log_tau <= -0.4 * c.log_net + 5


def test_tau_by_simulation_on_a_toy() -> None:
    # The worst that the proof allows, with M = 3: below the largest threshold each question is bad with chance 1/2 and
    # hard with a sixth of it, until 20 M + 1 are hard. The bound's last two parts must hold; a seed, no false alarms.
    rng = np.random.Generator(np.random.PCG64(1))
    m, hard_limit = 3, 60
    runs = 2000
    passed = sum(
        rng.binomial(int(trials), 0.5) >= 159 * m
        for trials in hard_limit + 1 + rng.negative_binomial(hard_limit + 1, 1 / 12, size=runs)
    )
    constants = PaperConstants(0.5, 1.0, 2, math.e, m)
    assert constants.hard_limit == hard_limit
    assert passed / runs <= math.exp(constants.log_tau)
    assert passed > 0  # so that a bound that is far too small would be noticed


@given(CONSTANTS)
def test_paid_one_by_one_it_is_within_epsilon_up_to_360_m_ln_x(c: PaperConstants) -> None:
    if c.questions <= 360 * c.log_net:
        assert 2 * c.epsilon_each * c.questions <= c.epsilon * (1 + 1e-9)  # the crude bound (10)
    if c.questions <= 1400 * c.log_net - 2:
        assert c.one_by_one <= c.epsilon


def test_paid_one_by_one_it_is_not_within_epsilon_for_ever() -> None:
    few, many = (PaperConstants(0.5, 1.0, k, math.e, 10) for k in (13_997, 14_001))  # M = 10
    assert few.one_by_one <= 1 < many.one_by_one


@pytest.mark.parametrize("questions", [2, 1000, 10**6, 10**9])
def test_lemma_4_10_saves_nothing_for_less_than_a_billion_questions(questions: int) -> None:
    # for alpha <= 1/2 even |X| = 2 has 1400 M above 1400 * 160000 * 2.77 * 0.69 ln k = 4.3e8 ln k
    assert PaperConstants.of(0.5, 1, questions, 2).one_by_one < 1
    assert PaperConstants.of(0.1, 1, 1000, 1000).one_by_one == pytest.approx(1.185e-9, rel=1e-3)


# --- section 5 ------------------------------------------------------------------------------------------------------


@given(st.integers(2, 200), st.integers(4, 200))
def test_lemma_5_3_counts_points_with_at_most_m_records(cells: int, m: int) -> None:
    assert math.comb(cells + m, m) <= cells**m


def test_lemma_5_3_does_not_for_tiny_m() -> None:
    assert math.comb(2 + 3, 3) > 2**3


@given(CONSTANTS)
def test_lemma_5_4_has_twice_as_many_hard_answers(c: PaperConstants) -> None:
    e = Efficient(c)
    assert e.hard_answers < 40 * c.log_net
    # exact prices: (60 + 160) M epsilon' <= 360 M epsilon'; the paper's own, (80 + 320) M epsilon', are too much
    assert e.privacy_at_forty == pytest.approx(c.epsilon * (220 / 720 + 1 / 2))
    assert 400 * c.log_net * c.epsilon_each > c.epsilon / 2


def test_lemma_5_6_misses_the_points_with_little_mass() -> None:
    # A uniform point of C_0 has mass below (1 - s) m with chance (1 - s)^|X|: nearly always for |X| = 2, s = alpha/400.
    rng = np.random.Generator(np.random.PCG64(2))
    points = rng.dirichlet(np.ones(3), size=4000)[:, :2]  # uniform over the triangle: two cells and what is missing
    light = (points.sum(axis=1) < 1 - 0.1 / 400).mean()
    c = PaperConstants.of(0.1, 1, 1000, 2)
    assert light > 0.99
    assert math.exp(Efficient(c).log_bad_samples(c.rows_needed)) == pytest.approx(light, abs=0.01)
    assert Efficient(c).log_bad_histograms < -1e8  # which is what the paper has instead


def test_lemma_5_7_needs_a_domain_larger_than_the_square_of_n() -> None:
    small = Efficient(PaperConstants.of(0.3, 1, 1000, 1e30))
    assert small.bad_databases(small.constants.rows_needed) == 1
    large = Efficient(PaperConstants.of(0.3, 1, 1000, 1e40))
    n = large.constants.rows_needed
    assert large.bad_databases(n) == pytest.approx(n**2 / 1e40)
    assert n**2 / 1e40 < 1e-7


@given(st.integers(2, 6), st.integers(2, 5))
def test_lemma_5_7s_collisions(n: int, log_cells: int) -> None:
    # Pr_U[repeat] <= n^2/|X|; under Dirichlet(1, ..., 1), Pr_N[no repeat] = product of (|X| - i)/(|X| + i)
    cells = 10**log_cells
    uniform = 1 - math.prod((cells - i) / cells for i in range(n))
    sampled = 1 - math.prod((cells - i) / (cells + i) for i in range(n))
    assert uniform <= n**2 / cells
    assert sampled <= 2 * n**2 / cells
