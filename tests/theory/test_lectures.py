"""Every number is derived by hand in the comments; the rest are properties that no formula may break."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.exact.price import gate_scales
from tacit.model.attribute import integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.release.forecast import worst_case
from tacit.release.plan import says_nothing
from tacit.theory.lecture_8 import (
    LECTURE_8,
    PROVED,
    Bound,
    Slack,
    Task,
    TrivialNet,
    exponential_distinguisher,
    median_offline_alpha,
    median_updates,
    net_updates,
    offline,
    offline_plan,
    sampled_net_rows,
    sampled_net_updates,
    step_epsilon,
)
from tacit.theory.lecture_12 import (
    FRESH_NOISE,
    LECTURE_12,
    SparseVector,
    online,
    online_plan,
    sparse_accuracy,
    sparse_distinguisher,
    weights_online_alpha,
    weights_updates,
)
from tacit.theory.median_paper import Phase, doubling_phases

PURE = Task(queries=1000, beta=0.05, delta=0)
APPROXIMATE = Task(queries=1000, beta=0.05, delta=1e-6)


# --- steps and distinguishers ---------------------------------------------------------------------------------------


def test_steps_of_a_pure_budget_share_it() -> None:
    # 2B = 2 * 50 steps: 1/(2 * 50) = 0.01
    assert step_epsilon(epsilon=1, delta=0, steps=100) == pytest.approx(0.01)


def test_steps_of_an_approximate_budget() -> None:
    # log(1/delta) = 4: epsilon/(4 sqrt(B * 4)) with B = 25: 1/(4 * 10) = 0.025
    assert step_epsilon(epsilon=1, delta=math.exp(-4), steps=50) == pytest.approx(0.025)


def test_the_approximate_split_keeps_the_budget_up_to_its_limit_and_not_beyond() -> None:
    # steps of e0 cost rho = steps e0^2/2, in all rho + 2 sqrt(rho log(1/delta)); at epsilon = 8 * 4 = 32 just epsilon
    def total(e0: float, steps: int) -> float:
        rho = steps * e0**2 / 2
        return rho + 2 * math.sqrt(rho * 4)

    at_the_limit = step_epsilon(epsilon=32, delta=math.exp(-4), steps=7)
    assert total(at_the_limit, 7) == pytest.approx(32)
    assert total(at_the_limit * 1.01, 7) > 32 * 1.01
    assert total(step_epsilon(epsilon=3, delta=math.exp(-4), steps=7), 7) < 3
    with pytest.raises(ValueError, match="proved up to 32"):
        step_epsilon(epsilon=33, delta=math.exp(-4), steps=7)


def test_exponential_mechanism_as_distinguisher() -> None:
    # 2/(100 * 0.5) * log(e^3 / e^-2) = 0.04 * 5 = 0.2
    f = exponential_distinguisher(n=100, epsilon=0.5, queries=math.exp(3), gamma=math.exp(-2))
    assert f == pytest.approx(0.2)


def test_sparse_vector_as_distinguisher() -> None:
    # 4 (3 + log 2 + 2)/(0.5 * 100) = 0.08 * 5.693147 = 0.4554518
    f = sparse_distinguisher(n=100, epsilon=0.5, queries=math.exp(3), gamma=math.exp(-2))
    assert f == pytest.approx(0.4554518, rel=1e-6)


def test_sparse_vector_accuracy() -> None:
    # 4 * 10 * (3 + log 2 + 2)/(2 * 1000) = 0.02 * 5.693147
    pure = sparse_accuracy(n=1000, epsilon=2, delta=0, hits=10, comparisons=math.exp(3), beta=math.exp(-2))
    assert pure == pytest.approx(0.11386294)
    # sqrt(128 * 2 * 4) = 32; 32 * 5.693147/(2 * 1000)
    mild = sparse_accuracy(n=1000, epsilon=2, delta=math.exp(-4), hits=2, comparisons=math.exp(3), beta=math.exp(-2))
    assert mild == pytest.approx(0.09109035)


# --- how many updates -----------------------------------------------------------------------------------------------


def test_a_net_is_halved() -> None:
    assert net_updates(10.0)(0.1) == 10.0  # |net| = 1024
    assert net_updates(10.0)(0.9) == 10.0


def test_rows_of_the_sampled_net() -> None:
    # log(2 * 50)/(2 * 0.01) = 4.60517/0.02 = 230.26: 231 rows; 2 * 50 * exp(-2 m 0.01) is 0.985 for 231, 1.005 for 230
    assert sampled_net_rows(alpha=0.1, queries=50) == 231
    assert 100 * math.exp(-2 * 231 * 0.01) < 1 <= 100 * math.exp(-2 * 230 * 0.01)
    assert sampled_net_updates(cells=1024, queries=50)(0.1) == pytest.approx(2310)  # log2(1024) = 10


def test_the_sampled_net_has_a_database_near_every_database() -> None:
    # X = {0, 1}, one query: the fraction of ones. m rows give 0, 1/m, ..., 1, so some is strictly within alpha of any p
    m = sampled_net_rows(alpha=0.3, queries=1)  # log 2/0.18 = 3.85: 4
    assert m == 4
    assert all(min(abs(p / 1000 - i / m) for i in range(m + 1)) < 0.3 for p in range(1001))


def test_theorem_10() -> None:
    assert median_updates(cells=math.exp(6), queries=math.exp(4))(0.5) == pytest.approx(96)  # 6 * 4/0.25


@given(st.integers(7, 10**9), st.integers(2, 10**12), st.floats(0.001, 0.05))
def test_theorem_10_with_natural_logs_covers_the_exact_net_from_seven_queries_on(c: int, x: int, alpha: float) -> None:
    # (log(2c)/(2 a^2) + 1) log2(x) against log(x) log(c)/a^2: the rounding costs at most log2(x)
    exact, stated = (
        sampled_net_updates(cells=x, queries=c)(alpha),
        median_updates(cells=x, queries=c)(alpha),
    )
    assert exact <= stated + math.log2(x)


def test_with_six_queries_natural_logs_fall_short() -> None:
    assert sampled_net_updates(cells=2, queries=6)(1e-4) > median_updates(cells=2, queries=6)(1e-4) + 1


def test_multiplicative_weights() -> None:
    assert weights_updates(cells=math.exp(6))(0.5) == pytest.approx(96)  # 4 * 6/0.25


@given(st.floats(0.01, 1), st.lists(st.floats(0, 1), min_size=2, max_size=5), st.data())
def test_a_weights_step_lowers_the_entropy_by_as_much_as_its_bound_says(
    alpha: float, query: list[float], data: st.DataObject
) -> None:
    weights = st.lists(st.floats(0.01, 1), min_size=len(query), max_size=len(query))
    truth, guess = ([w / sum(raw) for w in raw] for raw in (data.draw(weights), data.draw(weights)))
    gap = sum(q * (b - a) for q, a, b in zip(query, truth, guess, strict=True))
    sign = math.copysign(1, gap)
    alpha = min(alpha, abs(gap))
    for step, least in (
        (alpha / 2, alpha**2 / 4),
        (4 * alpha, 2 * alpha**2),
    ):  # log|X|/B for 4 log|X|/a^2 and log|X|/(2 a^2)
        normal = sum(b * math.exp(-sign * step * q) for q, b in zip(query, guess, strict=True))
        fall = -sign * step * sum(q * a for q, a in zip(query, truth, strict=True)) - math.log(normal)
        assert fall >= least - 1e-12


# --- the offline construction ---------------------------------------------------------------------------------------


def test_only_the_notes_constants_reach_alpha() -> None:
    assert PROVED.reached == 1.0  # 3/4 + 1/8 + 1/8
    assert LECTURE_8.reached == 1.5  # 3/4 + 1/4 + 1/2


@pytest.mark.parametrize(("slack", "pure", "mild"), [(LECTURE_8, 8, 16), (PROVED, 32, 64)])
def test_theorem_7_of_lecture_8(slack: Slack, pure: float, mild: float) -> None:
    # B = 10, beta = 0.05: gamma = 0.05/20 = 0.0025, log(1000/0.0025) = log 400,000 = 12.899220
    bound = offline(net_updates(10), PURE, slack=slack)
    assert bound.n_needed(alpha=0.1, epsilon=2) == pytest.approx(pure * 10 * 12.899220 / (0.1 * 2))
    # sqrt(10 * log 1e6) = sqrt(138.15511) = 11.753940
    bound = offline(net_updates(10), APPROXIMATE, slack=slack)
    assert bound.n_needed(alpha=0.1, epsilon=2) == pytest.approx(mild * 11.753940 * 12.899220 / (0.1 * 2))


def test_the_noise_term_can_be_the_larger_one() -> None:
    # slack (100, 1), one query, B = 1: 100 log(2/0.05) = 368.88795 against 2 log(2/0.05); times 2 steps, over 0.5
    bound = offline(net_updates(1), Task(queries=1, beta=0.05, delta=0), slack=Slack(100, 1))
    assert bound.demand(0.5) == pytest.approx(368.88795 * 2 / 0.5)


def test_offline_plan_satisfies_the_condition_it_was_solved_from() -> None:
    rule = weights_updates(cells=1e6)
    plan = offline_plan(rule, PURE, n=1e7, epsilon=1)
    b = 4 * math.log(1e6) / (plan.alpha / 2) ** 2
    assert plan.rounds == math.floor(b)
    assert plan.epsilon0 == pytest.approx(1 / (2 * b))
    assert plan.gamma == pytest.approx(0.05 / (2 * b))
    assert plan.stop_at == pytest.approx(0.75 * plan.alpha)
    f = exponential_distinguisher(n=1e7, epsilon=plan.epsilon0, queries=1000, gamma=plan.gamma)
    assert plan.alpha == pytest.approx(max(8 * math.log(2 * b / 0.05) / (plan.epsilon0 * 1e7), 8 * f))
    assert 2 * plan.rounds * plan.epsilon0 <= 1


@pytest.mark.parametrize(("slack", "constant"), [(LECTURE_8, 32), (PROVED, 128)])
def test_theorem_11(slack: Slack, constant: float) -> None:
    # log|X| = 6, log|C| = 4, log(|C|/gamma) = 4 + 1, n epsilon = 15,000: constant * 24 * 5/15,000 = constant * 0.008
    x, c, gamma = math.exp(6), math.exp(4), math.exp(-1)
    pure = median_offline_alpha(n=5000, epsilon=3, delta=0, cells=x, queries=c, gamma=gamma, slack=slack)
    assert pure**3 == pytest.approx(constant * 0.008)
    # sqrt(24 * log(1/delta)) = 12 with log(1/delta) = 6: constant * 12 * 5/15,000 = constant * 0.004
    mild = median_offline_alpha(n=5000, epsilon=3, delta=math.exp(-6), cells=x, queries=c, gamma=gamma, slack=slack)
    assert mild**2 == pytest.approx(constant * 0.004)


@pytest.mark.parametrize("setting", [PURE, APPROXIMATE])
@pytest.mark.parametrize("slack", [PROVED, LECTURE_8])
def test_theorem_11_is_the_solver_at_the_gamma_that_the_solver_finds(setting: Task, slack: Slack) -> None:
    plan = offline_plan(median_updates(cells=1e6, queries=1000), setting, n=1e8, epsilon=1, slack=slack)
    closed = median_offline_alpha(
        n=1e8, epsilon=1, delta=setting.delta, cells=1e6, queries=1000, gamma=plan.gamma, slack=slack
    )
    assert closed == pytest.approx(plan.alpha, rel=1e-12)


@pytest.mark.parametrize(("slack", "constant"), [(LECTURE_8, 16), (PROVED, 64)])
def test_trivial_net(slack: Slack, constant: float) -> None:
    # log2|X| = 10, n = 1e6, log(1/delta) = 13.815511: sqrt(138.15511) = 11.753940
    # B = 1e7: 2 * 1000 * 1e7/0.05 = 4e11, log = 26.714731
    net = TrivialNet(APPROXIMATE, 1024, slack)
    assert net.alpha_reached(n=1e6, epsilon=2) == pytest.approx(constant * 11.753940 * 26.714731 / (1000 * 2))


def test_pure_privacy_gets_no_bound_from_the_trivial_net() -> None:
    net = TrivialNet(PURE, 1024)
    # 32 * 10 * log(2 * 1000 * 10 n/0.05) = 320 * 26.714731 for n = 1e6
    assert net.alpha_reached(n=1e6, epsilon=1) == pytest.approx(320 * 26.714731)
    assert net.alpha_reached(n=1e12, epsilon=1) > net.alpha_reached(n=1e6, epsilon=1)
    with pytest.raises(ValueError, match="no n is enough"):
        net.n_needed(alpha=0.1, epsilon=1)


def test_trivial_net_with_a_goal_that_any_n_meets() -> None:
    assert TrivialNet(APPROXIMATE, 1024).n_needed(alpha=1e9, epsilon=1) == 4.0


# --- the online construction ----------------------------------------------------------------------------------------


def test_theorem_7_of_lecture_12() -> None:
    # B = 20: a = 4 * 20 * (log 2000 + log 40)/(2 n) = 40 * 11.289782/n; at a = 0.1, that is 3a = 0.3, n = 4515.9128
    bound = online(net_updates(20), PURE, sparse=LECTURE_12)
    assert bound.n_needed(alpha=0.3, epsilon=2) == pytest.approx(4515.9128)
    # 7 * 20 * log(3 * 1000/0.05)/(2 * 0.1) = 700 * 11.002100
    assert online(net_updates(20), PURE).n_needed(alpha=0.3, epsilon=2) == pytest.approx(7701.4700)


@pytest.mark.parametrize("setting", [PURE, APPROXIMATE])
def test_online_plan_of_the_lecture(setting: Task) -> None:
    plan = online_plan(weights_updates(cells=1e6), setting, n=1e7, epsilon=1, sparse=LECTURE_12)
    c = 4 * math.log(1e6) / plan.update_at**2
    assert plan.hits == math.floor(c)
    assert plan.alpha == pytest.approx(3 * plan.update_at)
    assert plan.answer_epsilon == 0  # the seed reuses the noise
    accuracy = sparse_accuracy(n=1e7, epsilon=1, delta=setting.delta, hits=c, comparisons=2000, beta=0.05)
    assert plan.threshold == pytest.approx(2 * accuracy)
    if setting.delta == 0:
        assert plan.threshold == pytest.approx(8 * c * (math.log(2000) + math.log(40)) / 1e7)


@pytest.mark.parametrize("setting", [PURE, APPROXIMATE])
def test_online_plan_with_fresh_noise_holds_what_its_docstring_derives(setting: Task) -> None:
    plan = online_plan(weights_updates(cells=1e6), setting, n=1e7, epsilon=1)
    scales = math.log(3 * 1000 / 0.05)
    gate = (4 + 2) / (plan.gate_epsilon * 1e7) * scales
    answer = 1 / (plan.answer_epsilon * 1e7) * scales
    assert gate == pytest.approx(plan.update_at)
    assert answer == pytest.approx(plan.update_at)
    assert plan.threshold - gate == pytest.approx(plan.update_at)  # a hit is a valid update
    assert plan.threshold + gate == pytest.approx(plan.alpha)  # no hit is a good enough guess
    paid = plan.hits * (plan.gate_epsilon + plan.answer_epsilon)
    assert setting.delta > 0 or paid <= 1


def test_fresh_noise_covers_the_gates_as_they_are_sold() -> None:
    assert sum(gate_scales(Loss.of("epsilon", 1), 1)) <= 4 + 2


def test_theorem_8_with_its_constant() -> None:
    # log|X| = 6, |C| = 1000, beta = 0.05: 16 * 6 * log(80,000)/(epsilon n) = 96 * 11.289782/1e6 = 0.00108381907
    alpha = weights_online_alpha(PURE, n=1e6, epsilon=1, cells=math.exp(6), sparse=LECTURE_12)
    assert alpha**3 == pytest.approx(27 * 0.00108381907)
    # with fresh noise 28 * 6 * log(60,000)/1e6 = 168 * 11.002100/1e6
    assert weights_online_alpha(PURE, n=1e6, epsilon=1, cells=math.exp(6)) ** 3 == pytest.approx(27 * 0.0018483528)


def test_theorem_9_with_its_constant() -> None:
    # (512 * 6 * 6)^(1/2) = 135.764502 with log(1/delta) = 6; times 11.289782/1e6: 0.00153275163
    mild = Task(queries=1000, beta=0.05, delta=math.exp(-6))
    alpha = weights_online_alpha(mild, n=1e6, epsilon=1, cells=math.exp(6), sparse=LECTURE_12)
    assert alpha**2 == pytest.approx(9 * 0.00153275163)
    # (1568 * 36)^(1/2) = 237.587878; times 11.002100/1e6
    assert weights_online_alpha(mild, n=1e6, epsilon=1, cells=math.exp(6)) ** 2 == pytest.approx(9 * 0.0026139656)


@pytest.mark.parametrize("setting", [PURE, APPROXIMATE])
@pytest.mark.parametrize("sparse", [LECTURE_12, FRESH_NOISE])
def test_theorems_8_and_9_are_the_solver_s(setting: Task, sparse: SparseVector) -> None:
    solved = online(weights_updates(cells=1e6), setting, sparse=sparse).alpha_reached(n=48_842, epsilon=0.7)
    closed = weights_online_alpha(setting, n=48_842, epsilon=0.7, cells=1e6, sparse=sparse)
    assert solved == pytest.approx(closed, rel=1e-12)


# --- an unknown number of questions ---------------------------------------------------------------------------------


def test_doubling_without_a_limit() -> None:
    # 100 + 200 + 400 = 700 < 701 <= 1500: four phases with 1/2, 1/6, 1/12, 1/20
    phases = doubling_phases(questions=701, first=100, epsilon=1, delta=1e-6, beta=0.05)
    assert [p.questions for p in phases] == [100, 200, 400, 800]
    assert [p.epsilon for p in phases] == pytest.approx([1 / 2, 1 / 6, 1 / 12, 1 / 20])
    assert phases[3].delta == pytest.approx(1e-6 / 20)
    assert phases[3].beta == pytest.approx(0.05 / 20)
    assert len(doubling_phases(questions=700, first=100, epsilon=1, delta=0, beta=0.05)) == 3


def test_doubling_with_a_limit() -> None:
    # at most 1,500 questions: four phases, a quarter each, of which 300 questions reach two
    phases = doubling_phases(questions=300, first=100, epsilon=1, delta=0, beta=0.05, most=1500)
    assert phases == (Phase(100, 0.25, 0, 0.0125), Phase(200, 0.25, 0, 0.0125))
    with pytest.raises(ValueError, match="must be at most `most`, which is 10"):
        doubling_phases(questions=11, first=1, epsilon=1, delta=0, beta=0.05, most=10)


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.one_of(st.none(), st.integers(0, 10**9)))
def test_phases_hold_the_questions_and_the_budget(questions: int, first: int, more: int | None) -> None:
    most = None if more is None else questions + more
    phases = doubling_phases(questions=questions, first=first, epsilon=2, delta=1e-6, beta=0.1, most=most)
    assert sum(p.questions for p in phases) >= questions > sum(p.questions for p in phases[:-1])
    for spent, total in (("epsilon", 2), ("delta", 1e-6), ("beta", 0.1)):
        assert sum(getattr(p, spent) for p in phases) <= total * (1 + 1e-12)


# --- what must hold of every bound ----------------------------------------------------------------------------------

Solvable = Bound | TrivialNet
KINDS: dict[str, Callable[[Task, float], Solvable]] = {
    "offline, weights": lambda s, x: offline(weights_updates(cells=x), s),
    "offline, median": lambda s, x: offline(median_updates(cells=x, queries=s.queries), s, slack=LECTURE_8),
    "offline, sampled net": lambda s, x: offline(sampled_net_updates(cells=x, queries=s.queries), s),
    "online, weights": lambda s, x: online(weights_updates(cells=x), s),
    "online, median": lambda s, x: online(median_updates(cells=x, queries=s.queries), s, sparse=LECTURE_12),
    "online, fixed net": lambda s, x: online(net_updates(math.log2(x)), s),
    "trivial net": TrivialNet,
}
kinds = st.sampled_from(sorted(KINDS))
deltas = st.sampled_from([0.0, 1e-9, 1e-3])
cells = st.floats(2, 1e30)
queries = st.floats(2, 1e12)
betas = st.floats(1e-9, 0.5)
epsilons = st.floats(0.01, 5)  # ten times as much is still below 8 log(1/delta)


@settings(max_examples=300)
@given(kinds, deltas, cells, queries, betas, st.floats(1e-3, 3), epsilons)
def test_inverses_agree(kind: str, delta: float, x: float, k: float, beta: float, alpha: float, epsilon: float) -> None:
    if kind == "trivial net" and delta == 0:
        return
    bound = KINDS[kind](Task(queries=k, beta=beta, delta=delta), x)
    n = bound.n_needed(alpha=alpha, epsilon=epsilon)
    assert bound.alpha_reached(n=n, epsilon=epsilon) == pytest.approx(alpha, rel=1e-9)
    assert bound.epsilon_needed(alpha=alpha, n=n) == pytest.approx(epsilon, rel=1e-9)


@settings(max_examples=200)
@given(kinds, deltas, cells, queries, betas, st.floats(100, 1e12), epsilons, st.floats(1.01, 10))
def test_more_of_a_good_thing_never_hurts(
    kind: str, delta: float, x: float, k: float, beta: float, n: float, epsilon: float, more: float
) -> None:
    def reached(x: float = x, k: float = k, beta: float = beta, n: float = n, epsilon: float = epsilon) -> float:
        return KINDS[kind](Task(queries=k, beta=beta, delta=delta), x).alpha_reached(n=n, epsilon=epsilon)

    base = reached()
    assert reached(epsilon=epsilon * more) <= base
    assert reached(x=x * more) >= base
    assert reached(k=k * more) >= base
    assert reached(beta=beta / more) >= base
    if kind != "trivial net" or delta > 0:
        assert reached(n=n * more) <= base
    if kind != "offline, sampled net":  # whose B jumps, so that alpha may stay at a jump
        assert reached(epsilon=epsilon * more) < base < reached(beta=beta / more)


@settings(max_examples=50)
@given(cells, queries, betas, st.floats(1e5, 1e12))
def test_a_delta_helps_where_there_are_many_steps(x: float, k: float, beta: float, n: float) -> None:
    rule = weights_updates(cells=x)
    plans = [offline_plan(rule, Task(queries=k, beta=beta, delta=d), n=n, epsilon=1) for d in (0, 1e-9)]
    if plans[0].rounds > 8 * math.log(1e9):
        assert plans[1].alpha < plans[0].alpha


def test_an_empty_promise_is_returned_and_said_to_be_empty() -> None:
    alpha = online(weights_updates(cells=3e6), PURE).alpha_reached(n=10, epsilon=0.1)
    assert alpha > 1
    assert says_nothing(alpha)
    assert says_nothing(1.0)
    assert not says_nothing(0.999)


@given(
    st.floats(0.01, 30), st.sampled_from([0.0, 1e-9]), st.integers(10, 10**8), st.integers(1, 10**9), st.integers(1, 9)
)
def test_a_plan_states_theorem_7_as_it_is_here(epsilon: float, delta: float, rows: int, k: int, people: int) -> None:
    domain = Domain({"a": integer(0, 999)})
    budget = Budget(epsilon=epsilon, delta=delta)
    stated = worst_case(domain, rows, budget, questions=k, confidence=0.95, rows_per_person=people)
    bound = online(weights_updates(cells=1000), Task(queries=k, beta=1 - 0.95, delta=delta))
    assert stated == pytest.approx(rows * bound.alpha_reached(n=rows / people, epsilon=epsilon), rel=1e-9)


def test_a_plan_states_no_theorem_where_there_is_none() -> None:
    domain, most = Domain({"a": integer(0, 999)}), 8 * math.log(1e9)
    settings = {"questions": 10, "confidence": 0.95}
    assert worst_case(domain, 100, Budget(epsilon=most * 0.999, delta=1e-9), **settings) is not None
    assert worst_case(domain, 100, Budget(epsilon=most * 1.001, delta=1e-9), **settings) is None
    assert worst_case(Domain({"a": integer(0, 0)}), 100, Budget(epsilon=1.0, delta=1e-9), **settings) is None


def test_an_update_rule_that_hardly_needs_updates_counts_as_one_round() -> None:
    plan = offline_plan(net_updates(0.1), PURE, n=1e6, epsilon=1)
    assert plan.rounds == 1
    assert plan.epsilon0 == 0.5


def test_a_rule_whose_step_is_too_long_for_small_errors_stops_there() -> None:
    # B is infinite below 0.2, and 10 from there on: 3 * 0.2 is the best that any n gives
    bound = online(lambda alpha: 10 if alpha >= 0.2 else math.inf, PURE)
    assert bound.alpha_reached(n=1e9, epsilon=1) == pytest.approx(0.6)
    assert bound.n_needed(alpha=0.59, epsilon=1) == math.inf


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Task(queries=0, beta=0.1, delta=0), "queries is 0; it must be a number of at least 1."),
        (
            lambda: Task(queries=1, beta=0, delta=0),
            "beta is 0; it must be between 0 and 1, both excluded.",
        ),
        (
            lambda: Task(queries=1, beta=0.1, delta=1),
            "delta is 1; it must be 0 (pure privacy) or a number below 1.",
        ),
        (lambda: weights_updates(cells=1), "cells is 1; it must be a number of at least 2."),
        (
            lambda: median_updates(cells=2, queries=1),
            "queries is 1; theorem 10 of lecture 8 needs at least 2",
        ),
        (lambda: net_updates(0.0), "log2_net is 0.0; it must be a positive number."),
        (lambda: sampled_net_rows(alpha=-1, queries=5), "alpha is -1; it must be a positive number."),
        (lambda: step_epsilon(epsilon=1, delta=0, steps=0), "steps is 0; it must be a number of at least 1."),
        (
            lambda: exponential_distinguisher(n=1, epsilon=math.nan, queries=1, gamma=0.1),
            "epsilon is nan; it must be a positive number.",
        ),
        (
            lambda: sparse_distinguisher(n=1, epsilon=1, queries=1, gamma=1),
            "gamma is 1; it must be between 0 and 1, both excluded.",
        ),
        (
            lambda: online(lambda a: 1, PURE).alpha_reached(n=math.inf, epsilon=1),
            "n is inf; it must be a positive number.",
        ),
        (lambda: online(lambda a: 0, PURE).demand(0.5), "it must be a positive number."),
        (
            lambda: online(lambda a: 1, APPROXIMATE).epsilon_needed(alpha=0.01, n=1),
            "composition with delta = 1e-06 is proved up to 110.524.",
        ),
        (lambda: TrivialNet(APPROXIMATE, 1).alpha_reached(n=5, epsilon=1), "cells is 1; it must be"),
        (
            lambda: doubling_phases(questions=0, first=1, epsilon=1, delta=0, beta=0.1),
            "questions is 0; it must be",
        ),
    ],
)
def test_wrong_parameters_are_named(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        call()
    assert sentence in str(refused.value)
