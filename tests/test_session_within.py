"""The dial: one answer bought to the accuracy asked for, at a price that is said first, beside what was told before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from people import CSV, answered, configuration, refused
from people import tacit as command
from support import once
from tacit.model.budget import Loss
from tacit.model.noise_law import quantile
from tacit.release.dial import least_loss
from tacit.session import Session
from tacit.trusted.sensitivity import noise_of, price_of

DOMAIN = tacit.Domain(
    {"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10), "active": tacit.boolean()}
)
N = 9_000
ROWS = pd.DataFrame(
    {"sex": ["F", "M", "F"] * (N // 3), "age": [i % 100 for i in range(N)], "active": [True, False] * (N // 2)}
)
WOMEN = tacit.count(sex="F")
MECHANISMS: dict[str, dict[str, Any]] = {
    "direct": {"mechanism": "direct", "questions": 1000},
    "histogram": {"mechanism": "histogram"},
    "iterative": {"mechanism": "iterative", "hits": 50},
    "certified": {"mechanism": "iterative", "warm": 0.4, "certify": 0.1, "hits": 5},
    "median": {"mechanism": "median", "warm": 0, "databases": 20, "records": 50, "hits": 50},
}
SOURCE = once(ROWS)


def opened(folder: Path, name: str = "direct", *, delta: float = 1e-9, **changes: Any) -> Session:
    budget = tacit.Budget(epsilon=1.0, delta=delta)
    given: dict[str, Any] = {"data": SOURCE, "domain": DOMAIN, "budget": budget, "ledger": folder / "l.tacit"}
    return tacit.open(**(given | MECHANISMS[name] | {"start": True} | changes))


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("steps", [0, 7, 60, 5_000])
def test_the_price_is_the_least_whose_noise_is_narrow_enough(delta: float, people: int, steps: int) -> None:
    measure = tacit.Budget(epsilon=1.0, delta=delta).measure
    query = WOMEN.bind(DOMAIN)
    loss = least_loss(query, steps, 0.95, DOMAIN, measure, people)

    def width(atoms: int) -> int:
        return quantile(noise_of(query, DOMAIN, Loss(measure, atoms), people), 0.95)

    assert width(loss.atoms) <= steps
    assert width(loss.atoms - 1 - loss.atoms // 10**9) > steps  # any less, and it would be too wide
    assert price_of(query, DOMAIN, noise_of(query, DOMAIN, loss, people), measure, people) <= loss


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_costs_what_was_said_and_is_as_sharp_as_asked(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, name, start=False) as session:
        said = session.dry_run(WOMEN, within=50)
        assert not said.known
        before = session.spent
        answer = session.ask(WOMEN, within=50)
        assert answer.error is not None
        assert answer.error <= 50
        assert (answer.cost, answer.source) == (said.cost_at_most, "measured")
        assert session.spent - before == answer.cost
        assert abs(answer.value - 6_000) <= 200
        again = session.ask(WOMEN, within=50)
        assert (again.value, again.cost.atoms, again.source) == (answer.value, 0, "repeat")
        assert session.dry_run(WOMEN, within=50).known
        assert session.ask("SELECT COUNT(*) FROM data WHERE sex <> 'F'", within=60).value == N - answer.value
        plain = session.ask(WOMEN)  # nobody had asked it before
        assert (plain.value, plain.cost.atoms) == (answer.value, 0)
        assert "sharper" not in plain.note


@pytest.mark.parametrize("name", ["direct", "iterative", "certified", "median"])
def test_what_was_told_before_stays_and_says_that_a_sharper_one_was_bought(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, name) as session:
        plain = session.ask(WOMEN)
        assert plain.error is not None
        half = 0.7 * plain.error
        sharp = session.ask(WOMEN, within=half)
        assert sharp.error is not None
        assert sharp.error <= half
        assert sharp.cost.atoms
        again = session.ask(WOMEN)
        assert (again.value, again.error, again.cost.atoms) == (plain.value, plain.error, 0)
        assert "a sharper answer was bought, ± " in again.note
        assert str(sharp.receipt.entry if sharp.receipt else "") in again.note
        quarter = 0.8 * sharp.error
        sharper = session.ask(WOMEN, within=quarter)
        assert sharper.cost.atoms
        assert session.ask(WOMEN, within=half).value == sharper.value  # the sharpest that was bought
        session.publish(tmp_path / "p.jsonl")
        assert tacit.verify(tmp_path / "p.jsonl", session=session)
    with opened(tmp_path, name) as session:  # and in another process
        again = session.ask(WOMEN)
        assert (again.value, again.error) == (plain.value, plain.error)
        assert "a sharper answer was bought" in again.note
        assert session.ask(WOMEN, within=quarter).value == sharper.value
    read = tacit.read(tmp_path / "p.jsonl")
    assert read.ask(WOMEN).value == plain.value
    assert read.ask(WOMEN, within=quarter).value == sharper.value
    with pytest.raises(tacit.NeedsData):
        read.ask(WOMEN, within=1)


def test_after_a_histogram_the_plain_answer_stays_its_own(tmp_path: Path) -> None:
    with opened(tmp_path, "histogram") as session:
        session.ask(tacit.count(sex="F", active=True), within=40)
        plain = session.ask(WOMEN)  # buys the histogram with the rest
        assert session.left.atoms < session.total.atoms // 100
        with pytest.raises(
            tacit.BudgetExhausted, match=r"% of the budget, and .* is left, which buys .*Nothing was spent"
        ):
            session.ask(WOMEN, within=2)
        assert session.ask(WOMEN).value == plain.value


def test_more_than_is_left_is_refused_with_the_narrowest_bar_that_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        assert "it is refused" in session.dry_run(WOMEN, within=1).why
        with pytest.raises(tacit.BudgetExhausted, match=r"100 % is left, which buys ± \d+ at best") as refused:
            session.ask(WOMEN, within=1)
        assert session.spent.atoms == 0
        best = int(str(refused.value).split("± ")[-1].split()[0])
        assert "it is refused" in session.dry_run(WOMEN, within=best - 1).why
        assert session.ask(WOMEN, within=best).error == best
        assert session.spent.atoms > 0.8 * session.total.atoms  # a row less costs about a fifth more


def test_sums_are_bought_too_and_what_depends_on_values_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, delta=0.0) as session:
        total = session.ask("SELECT SUM(age) FROM data WHERE sex = 'F'", within=4_000)
        assert total.error is not None
        assert 3_500 < total.error <= 4_000
        assert session.ask("SELECT SUM(age) FROM data WHERE sex = 'F'", within=4_000).cost.atoms == 0
        spent = session.spent
        for question in (
            "SELECT AVG(age) FROM data WHERE sex = 'F'",
            "SELECT sex, COUNT(*) FROM data GROUP BY sex",
            "SELECT MEDIAN(age) FROM data",
        ):
            with pytest.raises(tacit.InvalidQuery, match="within is for one count"):
                session.ask(question, within=10)
        for wrong in (0, -1, float("nan"), float("inf"), True, "50"):
            with pytest.raises(tacit.InvalidQuery, match="within is a half width above 0"):
                session.ask(WOMEN, within=wrong)  # type: ignore[arg-type]
        assert session.ask(tacit.count(), within=1).value == N  # which everybody knows
        assert session.spent == spent


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_fraction_and_a_mean_of_all_rows_are_bought_in_their_own_unit(tmp_path: Path, name: str) -> None:
    """They are a count and a sum over the number of rows, which is public. What is below another line is refused."""
    share, mean = "SELECT AVG(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM data", "SELECT AVG(age) FROM data"
    with opened(tmp_path, name, start=False) as session:
        for question, within, truth in ((share, 0.01, 2 / 3), (mean, 1.0, 49.5)):
            said, before = session.dry_run(question, within=within), session.spent
            answer = session.ask(question, within=within)
            assert isinstance(answer, tacit.Answer)
            assert answer.error is not None
            assert 0.9 * within < answer.error <= within
            assert answer.confidence == 0.95
            assert (answer.cost, answer.source) == (said.cost_at_most, "measured")
            assert session.spent - before == answer.cost
            assert abs(answer.value - truth) <= 5 * within  # beyond 1e-9 that is noise
            assert session.ask(question, within=within).cost.atoms == 0
        assert session.ask(WOMEN, within=90).cost.atoms == 0  # the same count
        with pytest.raises(tacit.InvalidQuery, match="other fractions and means are made of two answers"):
            session.ask(f"{share} WHERE active", within=0.01)
        with pytest.raises(tacit.InvalidQuery, match="other fractions and means are made of two answers"):
            session.ask(f"{share} WHERE sex = 'M'", within=0.5)  # nobody, of a group whose size is noisy
        with pytest.raises(tacit.InvalidQuery, match="rounded to a grid"):
            session.ask(mean, within=1e-9)


def test_what_is_known_well_enough_is_given_back_for_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, questions=4) as session:
        plain = session.ask(WOMEN)
        assert plain.error is not None
        same = session.ask(WOMEN, within=plain.error)
        assert (same.value, same.cost.atoms) == (plain.value, 0)


def test_the_bars_cover(tmp_path: Path) -> None:
    """Of 300 answers about 285 are within what was asked for, and far fewer within half of it. One run for ever."""
    ages = [tacit.count(age=(low, 9 + high)) for low in range(0, 100, 10) for high in range(low, 100, 10)]
    asked = [one & two for one in ages for two in (tacit.count(sex="F"), tacit.count(active=True), tacit.count())]
    with opened(tmp_path, budget=tacit.Budget(epsilon=900.0, delta=0.0)) as session:
        assert session._curator is not None
        records, missed = session._curator._records, []
        for one in asked * 2:
            query = one.bind(DOMAIN)
            if not query.is_constant:
                answer = session.ask(one, within=40 - len(missed) % 30)
                assert answer.error
                missed.append(abs(answer.value - records.answer(query)) / answer.error)
        within, half = (sum(one <= part for one in missed) / len(missed) for part in (1, 0.5))
        assert len(missed) > 300
        assert within >= 0.92  # with 95 % each, the chance of so few is below 0.01
        assert half < 0.88  # the control: a bar half as wide would be noticed


def test_a_share_of_questions_is_no_promise_about_this_answer(tmp_path: Path) -> None:
    with opened(tmp_path, "certified") as session:
        question = tacit.count(sex="F", age=(0, 49), active=True)  # no release tells three attributes
        plain = session.ask(question)
        assert plain.facts.bars[0].about.words.startswith("95%")
        width = plain.facts.bars[0].width
        assert session.ask(question, within=width).cost.atoms


# -- the command line --------------------------------------------------------------------------------------------------

SMOKERS = "SELECT COUNT(*) FROM data WHERE sex = 'F'"


@pytest.fixture
def table(here: Path) -> Path:
    (here / "people.csv").write_text(CSV)
    (here / "tacit.toml").write_text(configuration("sex", "age", mechanism="direct", questions=1000))
    return here


def test_the_command_says_the_price_asks_and_buys(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = answered("ask", "--within", "8", "--dry-run", SMOKERS)
    assert (said["known"], said["within"]) == (False, 8.0)
    price = said["cost_at_most"]["gdp"]
    refused(command("ask", "--within", "8", SMOKERS), "--yes", "% of the budget", code=2)
    refused(command("ask", "--yes", SMOKERS), "--yes about --within", code=2)
    refused(command("ask", "--within", "0.001", "--yes", SMOKERS), "which buys ±", "Nothing was spent", code=3)
    monkeypatch.setattr("tacit.cli.options.at_terminal", lambda: True)
    assert command("ask", "--within", "8", SMOKERS, given="n\n").exit_code == 1
    assert answered("status")[0]["spent"] == {"gdp": 0.0}
    bought = command("ask", "--within", "8", SMOKERS, given="y\n")
    assert bought.exit_code == 0, bought.output
    assert "Buy this for" in bought.stderr
    assert answered("status")[0]["spent"] == {"gdp": price}
    (again,) = answered("ask", "--within", "8", SMOKERS)  # known as well as that: nothing to ask
    assert again["error"] <= 8
    assert again["cost"]["gdp"] == 0.0


@pytest.mark.parametrize("name", ["direct", "iterative"])
def test_no_answer_is_bought_that_would_spoil_the_question_for_everybody(tmp_path: Path, name: str) -> None:
    """The first answer to a question stays, so the dial sells none for less than a thousandth of the budget."""
    with opened(tmp_path, name) as session:
        said = session.dry_run(WOMEN, within=1e12).cost_at_most
        answer = session.ask(WOMEN, within=1e12)
        assert answer.cost == said
        assert 0.999 * session.total.split(1000).atoms <= answer.cost.atoms <= session.total.split(1000).atoms
        for width in (1e308, 10**400):
            with pytest.raises(tacit.InvalidQuery, match="within"):
                session.ask(WOMEN, within=width)


@pytest.mark.parametrize("name", ["direct", "iterative"])
def test_a_sharper_answer_is_told_in_the_words_and_the_unit_of_the_question(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, name) as session:
        for sql, words in [
            ("SELECT SUM(age) FROM data WHERE sex = 'F'", "the sum of age where sex = F"),
            ("SELECT COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) FROM data", "the fraction of rows with sex = F"),
        ]:
            plain = session.ask(sql)
            assert plain.error is not None
            sharp = session.ask(sql, within=0.7 * plain.error)
            assert sharp.error is not None
            assert sharp.receipt is not None
            said = f"{words}: a sharper answer was bought, ± {sharp.error:,.4g}, entry {sharp.receipt.entry}"
            again = session.ask(sql)
            assert said in again.note
            assert again.note.count("a sharper answer") == 1
