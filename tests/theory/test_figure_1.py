"""Figure 1 step by step on tables small enough for pencil and paper, and once with the paper's own constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import tacit
from curators import public_of
from support import once
from tacit.errors import BudgetExhausted, ConfigError, InvalidQuery
from tacit.load import Source
from tacit.model.factor import GRID
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.theory.figure_1 import FigureOne, MedianBasic, MedianDoubling
from tacit.theory.median_paper import PaperConstants, Phase, Thresholds
from tacit.trusted import curator as curator_module
from tacit.trusted.curator import Curator

DOMAIN = tacit.Domain({"x": tacit.category(["a", "b", "c"])})
A, B, C = (Query.among(DOMAIN, "x", [i]) for i in range(3))
FIGURE = FigureOne(alpha=0.5, records=2, epsilon_each=0.5, thresholds=Thresholds(0.2), hard_limit=9)
"""Reach alpha n = 2 counts; gamma > 3/20, so the only threshold is 3/4, at 2 (1 - 3/4) = 0.5 counts of disagreement."""


@cache
def letters(rows: str) -> Source:
    return once(pd.DataFrame({"x": list(rows)}))


@contextmanager
def curator(folder: Path, rows: str = "aabc", *, epsilon: float = 100.0, delta: float = 0.0) -> Iterator[Curator]:
    """n = 4, two of them a, one b, one c."""
    with tacit.open(
        data=letters(rows),
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=epsilon, delta=delta),
        ledger=folder / "l.tacit",
        mechanism="direct",
        questions=10,
    ) as session:
        yield session._curator


@pytest.fixture
def noises(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The next draws, in counts, in place of the curator's noise."""

    def script(*counts: float) -> None:
        left = list(counts)

        def add(values: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
            unit = GRID if noise.scale > 1000 else 1  # comparisons are on the fine grid, counts on whole numbers
            return values + round(left.pop(0) * unit)

        monkeypatch.setattr(curator_module, "add_noise", add)

    return script


def left(mechanism: MedianBasic) -> list[str]:
    """The databases that are left, in words."""
    counts = mechanism.databases.net.counts[mechanism.databases.kept]
    return ["".join(name * int(count) for name, count in zip("abc", row, strict=True)) for row in counts]


def start(held: Curator, figure: FigureOne = FIGURE) -> MedianBasic:
    return MedianBasic(public_of(held), held, figure, seed=1, confidence=0.95)


def test_four_questions_by_hand(tmp_path: Path, noises: Callable[..., None]) -> None:
    with curator(tmp_path) as held:
        m = start(held)
        assert left(m) == ["aa", "ab", "ac", "bb", "bc", "cc"]

        # f_a on them: 1, 1/2, 1/2, 0, 0, 0; truth 1/2. r = (2 + 4/e)/6 = 0.5786, 2 (1 - r) = 0.8428 >= 0.5: hard.
        # The answer is 2 + 0 counts, 1/2: only databases within alpha/50 = 0.01 of it stay.
        noises(0, 0)
        answer = m.ask(A)
        assert (answer.facts.source, answer.value, float(answer.facts.cost)) == (
            "measured",
            2,
            0.75,
        )  # epsilon'/2 + epsilon'
        assert left(m) == ["ab", "ac"]

        # f_b: 1/2 and 0, the truth is 1/4. r = exp(-1/2) = 0.6065, 2 (1 - r) = 0.7869: hard. The answer is 1 + 1.
        noises(0, 1)
        assert m.ask(B).value == 2
        assert left(m) == ["ab"]

        # f_c: 0, the truth is 1/4. r = exp(-1/2) again, and noise makes it 0.7869 - 0.4 < 0.5: easy, the median of {0}.
        noises(-0.4)
        answer = m.ask(C)
        assert (answer.facts.source, answer.value, float(answer.facts.cost)) == ("hypothesis", 0, 0.25)  # epsilon'/2
        assert left(m) == ["ab"]
        assert m.hard == 2

        # "a or b" is n less c: the same question, free.
        noises()
        answer = m.ask(A | B)
        assert (answer.facts.source, answer.value, float(answer.facts.cost)) == ("repeat", 4, 0)
        assert float(public_of(held).spent) == pytest.approx(0.75 + 0.75 + 0.25)


def test_an_easy_answer_is_the_lower_median_and_leaves_the_set_alone(
    tmp_path: Path, noises: Callable[..., None]
) -> None:
    with curator(tmp_path) as held:
        m = start(held)
        noises(-0.4)  # 0.8428 - 0.4 < 0.5
        answer = m.ask(A)  # 0, 0, 0, 1/2, 1/2, 1: the third of six
        assert (answer.facts.source, answer.value) == ("hypothesis", 0)
        assert len(left(m)) == 6
        # confidence 0.95: comparison noise of scale 4 counts on a reach of 2 says nothing, so the bar is all of n
        assert answer.facts.width == 4


@pytest.mark.parametrize(("noise", "source"), [(-0.342, "measured"), (-0.344, "hypothesis")])
def test_the_comparison_is_where_equation_4_puts_it(
    tmp_path: Path, noises: Callable[..., None], noise: float, source: str
) -> None:
    # 2 (1 - (2 + 4/e)/6) = 0.842827, less 0.5: hard down to noise of -0.342827 (the lens shows 0.0002 less)
    assert 2 * (1 - (2 + 4 / math.e) / 6) - 0.5 == pytest.approx(0.342827, abs=1e-6)
    with curator(tmp_path) as held:
        noises(noise, 0)
        assert start(held).ask(A).facts.source == source


def test_thresholds_are_public_differ_between_questions_and_do_not_change(tmp_path: Path) -> None:
    domain = tacit.Domain({"x": tacit.integer(0, 999)})
    figure = FigureOne(alpha=0.5, records=1, epsilon_each=0.5, thresholds=Thresholds(0.01), hard_limit=9)
    with tacit.open(
        data=pd.DataFrame({"x": [1, 2, 3]}),
        domain=domain,
        budget=tacit.Budget(epsilon=1, delta=0),
        ledger=tmp_path / "l",
        mechanism="direct",
        questions=1,
    ) as session:
        doors = session._public, session._curator
        one, same, other = (MedianBasic(*doors, figure, seed=s, confidence=0.95) for s in (1, 1, 2))
        queries = [Query.among(domain, "x", [i]) for i in range(1000)]
        drawn = [one.threshold(query) for query in queries]
        assert drawn == [same.threshold(query) for query in queries] == [one.threshold(~query) for query in queries]
        assert drawn != [other.threshold(query) for query in queries]
        counts = np.bincount([round((t - 0.75) / 0.01) for t in drawn], minlength=16)
        # j with chance 2^-j/(2 - 2^-15): the seed is fixed, so this either holds or does not; 4 deviations
        for j in range(6):
            chance = Thresholds(0.01).probability(j)
            assert abs(counts[j] - 1000 * chance) < 4 * math.sqrt(1000 * chance * (1 - chance))
        assert session._public.spent.atoms == 0


def test_it_halts_after_more_hard_answers_than_allowed(tmp_path: Path, noises: Callable[..., None]) -> None:
    figure = FigureOne(alpha=0.5, records=2, epsilon_each=0.5, thresholds=Thresholds(0.2), hard_limit=1)
    with curator(tmp_path) as held:
        m = start(held, figure)
        noises(0, 0, 0, 1)
        m.ask(A)
        assert m.ask(B).facts.source == "measured"  # the second of "more than 1"
        spent = public_of(held).spent
        with pytest.raises(BudgetExhausted, match=r"More than 1 .* Nothing was spent"):
            m.ask(C)
        assert public_of(held).spent == spent
        assert m.ask(B).facts.source == "repeat"  # what was answered stays answered


def test_it_halts_when_no_database_fits(tmp_path: Path, noises: Callable[..., None]) -> None:
    with curator(tmp_path) as held:
        m = start(held)
        noises(0, 1)
        assert m.ask(A).value == 3  # no database of two records has 3/4
        assert left(m) == []
        with pytest.raises(BudgetExhausted, match="No database of 2 records"):
            m.ask(B)


def test_a_second_process_goes_on_where_the_first_one_stopped(tmp_path: Path, noises: Callable[..., None]) -> None:
    with curator(tmp_path) as held:
        noises(0, 0)
        start(held).ask(A)
        spent = public_of(held).spent
    with curator(tmp_path) as held:
        again = start(held)
        assert left(again) == ["ab", "ac"]
        assert again.hard == 1
        noises()
        assert (again.ask(A).facts.source, again.ask(A).value) == ("repeat", 2)
        assert public_of(held).spent == spent


def test_a_comparison_whose_answer_was_lost_is_not_paid_again(
    tmp_path: Path, noises: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with curator(tmp_path) as held:
        with monkeypatch.context() as patch:
            patch.setattr(Curator, "measure", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            noises(0)
            with pytest.raises(KeyboardInterrupt):
                start(held).ask(A)
        assert float(public_of(held).spent) == 0.25
        noises(0)
        assert float(start(held).ask(A).facts.cost) == 0.5
        assert float(public_of(held).spent) == 0.75


def test_a_question_that_could_not_be_answered_is_not_compared(tmp_path: Path) -> None:
    with curator(tmp_path, epsilon=0.7) as held:
        with pytest.raises(BudgetExhausted, match=r"epsilon = 0\.75"):
            start(held).ask(A)
        assert public_of(held).spent.atoms == 0


def test_what_is_constant_or_meaningless_is_refused_for_free(tmp_path: Path) -> None:
    with curator(tmp_path) as held:
        with pytest.raises(InvalidQuery, match="nothing to ask"):
            start(held).ask(A | B | C)
        with pytest.raises(ConfigError, match="less than one of 4 rows"):
            start(held, FigureOne(alpha=0.2, records=2, epsilon_each=1, thresholds=Thresholds(1), hard_limit=1))
        with pytest.raises(ConfigError, match="positive"):
            FigureOne(alpha=0.2, records=2, epsilon_each=0, thresholds=Thresholds(1), hard_limit=1)
        assert public_of(held).spent.atoms == 0


def test_with_zcdp_the_prices_are_half_squares(tmp_path: Path) -> None:
    with curator(tmp_path, epsilon=20, delta=1e-9) as held:
        answer = start(held).ask(A)
        # rho = (1/4)^2/2 to compare and (1/2)^2/2 to answer
        compared, answered = 1 / 32, 1 / 8
        assert float(public_of(held).spent) == pytest.approx(
            compared + (answered if answer.facts.source == "measured" else 0), rel=1e-6
        )
        with pytest.raises(ConfigError, match="delta must be 0"):
            MedianBasic.of_paper(public_of(held), held, alpha=0.5, questions=2, seed=1, confidence=0.95)


# --- real noise, free constants -------------------------------------------------------------------------------------


@pytest.mark.real_noise
def test_every_answer_of_a_real_run_is_within_its_bar(tmp_path: Path) -> None:
    """confidence 1 - 1e-10 for each of at most 6 answers: a false alarm once in more than 1e9 runs."""
    n = 400_000
    letters = np.repeat(list("abcd"), [n // 2, n // 4, n // 8, n // 8])
    domain = tacit.Domain({"x": tacit.category(list("abcd"))})
    queries = [Query.among(domain, "x", some) for some in ([0], [1], [2], [3], [0, 1], [0, 2])]
    figure = FigureOne(
        alpha=0.1, records=20, epsilon_each=0.05, thresholds=Thresholds(0.02), hard_limit=5, tolerance=0.06
    )
    with tacit.open(
        data=pd.DataFrame({"x": letters}),
        domain=domain,
        budget=tacit.Budget(epsilon=1.0, delta=0),
        ledger=tmp_path / "l",
        mechanism="direct",
        questions=10,
    ) as session:
        m = MedianBasic(session._public, session._curator, figure, seed=3, confidence=1 - 1e-10)
        answers = [m.ask(query) for query in queries]
        for query, answer in zip(queries, answers, strict=True):
            truth = session._curator._records.answer(query)
            assert answer.facts.width is not None
            assert answer.facts.width < 0.1 * n  # alpha
            assert abs(answer.value - truth) <= answer.facts.width
        # All noise is so small here (scales 0.001 on r, 20 rows on answers) that what is hard does not depend on it:
        # r is 0.16, 0.35, 0.50 and 0.62, then 0.84 for the fifth question, whose threshold is lower, and 0.72.
        assert m.threshold(queries[4]) < 0.82
        assert [answer.facts.source for answer in answers] == ["measured"] * 4 + ["hypothesis", "measured"]
        assert float(session.spent) == pytest.approx(len(queries) * 0.025 + m.hard * 0.05)


# --- the paper's constants ------------------------------------------------------------------------------------------

SEX = tacit.Domain({"sex": tacit.category(["F", "M"])})


def table(folder: Path, rows: int) -> Any:
    """Three in ten are women."""
    made = duckdb.sql(f"SELECT CASE WHEN range % 10 < 3 THEN 'F' ELSE 'M' END AS sex FROM range({rows})")
    budget = tacit.Budget(epsilon=1.0, delta=0)
    return tacit.open(data=made, domain=SEX, budget=budget, ledger=folder / "l", mechanism="direct", questions=2)


def test_too_few_rows_are_refused_with_the_number_needed(tmp_path: Path) -> None:
    with table(tmp_path, 1000) as session:
        # m = ceil(160000 ln 2 ln(1/0.999)/0.999^2) = 112; 30 ln 4 * 720 * 112 ln 2/0.999 = 2,326,951
        with pytest.raises(ConfigError, match=r"need 2,326,951 rows .* the table has 1,000\. Nothing was spent"):
            MedianBasic.of_paper(session._public, session._curator, alpha=0.999, questions=2, seed=1, confidence=0.95)
        with pytest.raises(ConfigError, match=r"alpha is 1.5; it must be between 0 and 1.* Nothing was spent"):
            MedianBasic.of_paper(session._public, session._curator, alpha=1.5, questions=2, seed=1, confidence=0.95)
        assert session.spent.atoms == 0
    with pytest.raises(ConfigError, match=r"need 2.88e\+16 rows for alpha = 0.1 on 1,000 questions at epsilon = 1;"):
        FigureOne.of_paper(PaperConstants.of(0.1, 1.0, 1000, 1000), rows=48_842)


def test_more_questions_than_plain_composition_pays_for_are_refused() -> None:
    many = PaperConstants(0.5, 1.0, 20_000, math.e, 10)  # more than 1400 M = 14,000
    with pytest.raises(ConfigError, match=r"one by one they cost epsilon = 1\.4"):
        FigureOne.of_paper(many, rows=math.ceil(many.rows_needed))


@pytest.mark.real_noise
def test_with_the_rows_that_equation_6_asks_for_it_answers_within_alpha(tmp_path: Path) -> None:
    """The answer's noise has scale 1/(n epsilon') = 0.024: beyond 0.999 once in e^41 runs, easy or hard."""
    n, alpha = 2_330_000, 0.999
    constants = PaperConstants.of(alpha, 1.0, 2, 2)
    assert constants.rows_needed <= n
    assert constants.net_has_a_witness
    queries = [Query.among(SEX, "sex", [0]), Query.weighted(SEX, ["sex"], [0.25, 0.75])]
    with table(tmp_path, n) as session:
        m = MedianBasic.of_paper(session._public, session._curator, alpha=alpha, questions=2, seed=1, confidence=0.95)
        assert (m.figure.records, len(m.databases), m.figure.hard_limit) == (112, 113, 1552)
        for query, truth in zip(queries, (0.3 * n, (0.3 * 0.25 + 0.7 * 0.75) * n), strict=True):
            assert abs(m.ask(query).value / query.unit - truth) <= alpha * n
        assert float(session.spent) <= constants.one_by_one * (1 + 1e-6)
        assert constants.one_by_one < 1e-4  # of epsilon = 1


FIVE = tacit.Domain({"x": tacit.category(list("abcde"))})
SUBSETS = [Query.among(FIVE, "x", [i for i in range(5) if mask >> i & 1]) for mask in range(1, 16)]  # 15 questions


def doubling(session: tacit.Session, **changes: Any) -> MedianDoubling:
    def figure(phase: Phase) -> FigureOne:
        return FigureOne.of_phase(phase, alpha=0.2, records=12, hard=6, rows=session.rows, tolerance=0.09)

    settings: dict[str, Any] = {"first": 2, "seed": 1, "confidence": 0.95}
    assert session._curator is not None
    return MedianDoubling(session._public, session._curator, figure, **settings | changes)


def test_an_unknown_number_of_questions_is_answered_in_phases_that_double(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": list("abcde") * 400 + ["a"] * 2_000})
    settings: dict[str, Any] = {"data": rows, "domain": FIVE, "budget": tacit.Budget(epsilon=40.0)}
    settings |= {"ledger": tmp_path / "l.tacit", "mechanism": "direct", "questions": 10}
    with tacit.open(**settings) as session:
        mechanism, phases, prices = doubling(session), [], []
        for query in SUBSETS[:9]:
            phases.append(mechanism.phase)
            each = mechanism.mechanism.figure.epsilon_each
            answer = mechanism.ask(query)
            prices.append(float(answer.facts.cost) / each)
        assert phases == [0, 0, 1, 1, 1, 1, 2, 2, 2]  # 2 questions, then 4, then 8
        assert all(price == pytest.approx(0.5) or price == pytest.approx(1.5) for price in prices)
        kept, hard = mechanism.mechanism.databases.kept.tolist(), mechanism.mechanism.hard
        assert hard <= 3  # of this phase's own questions
    with tacit.open(**settings) as session:  # another process goes on in the same phase, with the same databases
        again = doubling(session)
        assert (again.asked, again.phase) == (9, 2)
        assert (again.mechanism.databases.kept.tolist(), again.mechanism.hard) == (kept, hard)
        assert again.ask(SUBSETS[0]).facts.cost.atoms == 0
        for query in SUBSETS[9:]:
            again.ask(query)
        assert (again.asked, again.phase) == (15, 3)
        assert session.spent <= session.total
        truth = session._curator._records
        assert all(abs(again.ask(q).value - truth.answer(q)) <= 0.2 * session.rows for q in SUBSETS)


def test_phases_have_equal_parts_where_most_is_known_and_a_pure_budget(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": list("abcde") * 400})
    settings: dict[str, Any] = {"data": rows, "domain": FIVE, "mechanism": "direct", "questions": 10}
    with tacit.open(**settings, budget=tacit.Budget(epsilon=40.0), ledger=tmp_path / "l.tacit") as session:
        mechanism = doubling(session, most=5)
        for query in SUBSETS[:5]:
            mechanism.ask(query)
        with pytest.raises(BudgetExhausted, match="at most 5 questions"):
            mechanism.ask(SUBSETS[5])
        assert mechanism.ask(SUBSETS[4]).facts.cost.atoms == 0
        assert session.spent <= session.total
    settings |= {"budget": tacit.Budget(epsilon=4.0, delta=1e-9), "ledger": tmp_path / "r.tacit"}
    with tacit.open(**settings) as session, pytest.raises(ConfigError, match="delta must be 0"):
        doubling(session)
