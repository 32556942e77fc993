"""A budget is raised by a decision of the owner: a line of its own, which changes nothing that was bought."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from forgery import resealed
from people import answered, configuration, refused
from people import tacit as run
from tacit.errors import BudgetExhausted, ConfigError, InvalidBudget, LedgerError, NeedsData
from tacit.exact.price import extension, raised_to, total
from tacit.model.budget import ATOMS, Budget, Loss
from tacit.model.entry import GateTerms, Intent, decode
from tacit.model.facts import FREE
from tacit.release.online import Online
from tacit.store.log import Log

ROWS = pd.DataFrame({"sex": ["F", "M"] * 300, "age": [i % 10 for i in range(600)]})
DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 9)})
PURE, LARGER = Budget(epsilon=1.0), Budget(epsilon=2.0)


def opened(folder: Path, budget: Budget = PURE, **settings: Any) -> tacit.Session:
    settings = {"mechanism": "direct", "questions": 3, **settings}
    files = {"ledger": folder / "people.tacit", "anchor": folder / "anchors.sqlite"}
    return tacit.open(data=ROWS, domain=DOMAIN, budget=budget, **files, **settings)


def ask_until_refused(session: tacit.Session, ages: range) -> list[tacit.Answer]:
    found = list[tacit.Answer]()
    for age in ages:
        try:
            found.append(session.ask(tacit.count(age=age)))
        except BudgetExhausted:
            break
    return found


# -- the account ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "larger", "settings", "measure"),
    [
        (PURE, LARGER, {}, "epsilon"),
        (Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=2.0, delta=1e-9), {}, "gdp"),
        (Budget(1.0, 1e-9), Budget(2.0, 1e-8), {"mechanism": "iterative", "questions": 50, "hits": 3}, "rho"),
    ],
)
def test_a_larger_budget_is_worth_what_it_would_have_been_worth_from_the_first(
    tmp_path: Path, first: Budget, larger: Budget, settings: dict[str, Any], measure: Any
) -> None:
    with opened(tmp_path, first, **settings) as session:
        answer = session.ask(tacit.count(age=1))
        before, spent = session.history, session.spent
        done = session.extend(larger)
        assert done.total == session.total == total(larger, measure)
        assert (session.budget, session.extensions) == (larger, (done,))
        assert (session.spent, session.left) == (spent, session.total - spent)
        assert [one.receipt for one in session.history] == [one.receipt for one in before]
        again = session.ask(tacit.count(age=1))
        assert (again.value, again.cost.atoms) == (answer.value, 0)
    with opened(tmp_path, larger, **settings) as session:
        assert (session.total, session.spent, session.budget) == (done.total, spent, larger)


def test_prices_stay_and_there_are_as_many_more_questions(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        before = ask_until_refused(session, range(10))
        session.extend(LARGER)
    with opened(tmp_path, LARGER) as session:
        after = ask_until_refused(session, range(10))
    assert (len(before), len(after)) == (3, 6)
    assert {answer.cost.atoms for answer in before} == {ATOMS // 3}
    assert [answer.value for answer in after[:3]] == [answer.value for answer in before]
    assert [answer.cost.atoms for answer in after] == [0] * 3 + [ATOMS // 3] * 3


def test_a_process_that_has_the_ledger_open_goes_on_with_it(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        assert len(ask_until_refused(session, range(10))) == 3
        tacit.extend(tmp_path / "people.tacit", LARGER, anchor=tmp_path / "anchors.sqlite")
        assert (session.budget, session.total) == (LARGER, Loss("epsilon", 2 * ATOMS))
        assert len(ask_until_refused(session, range(3, 10))) == 3
        with pytest.raises(BudgetExhausted, match=r"16\.7 % of the budget"):  # a third of half
            session.ask(tacit.count(sex="F"))


@pytest.mark.parametrize("asked", [0, 1])
def test_a_raise_that_the_anchor_never_heard_of_counts_once(
    tmp_path: Path, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the commit of the raise and the word to the anchor: it counts, and no more than once."""

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(tmp_path) as session:
        ask_until_refused(session, range(asked))
        with monkeypatch.context() as patch:
            patch.setattr(Log, "_tell_anchor", dies)
            with pytest.raises(KeyboardInterrupt):
                session.extend(LARGER)
    with opened(tmp_path, LARGER) as session:
        assert session.total == Loss("epsilon", 2 * ATOMS)
        ask_until_refused(session, range(10))
        assert (session.spent.atoms, len(session.history)) == (6 * (ATOMS // 3), 6)


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (PURE, PURE, "is not more than"),
        (PURE, Budget(epsilon=0.5), "is not more than"),
        (PURE, Budget(epsilon=2.0, delta=1e-9), "leave delta 0"),
        (Budget(1.0, 1e-9), LARGER, "keep a delta"),
        (Budget(1.0, 1e-9), Budget(2.0, 1e-12), "is not more than"),
        (Budget(1.0, 1e-9), Budget(0.9, 1e-3), "is not more than"),
    ],
)
def test_a_budget_is_only_raised_and_in_its_own_measure(
    tmp_path: Path, first: Budget, other: Budget, said: str
) -> None:
    with opened(tmp_path, first) as session:
        with pytest.raises(InvalidBudget, match=said):
            session.extend(other)
        assert (session.entries, session.budget, session.extensions) == (0, first, ())


def test_two_who_raise_it_at_once(tmp_path: Path) -> None:
    """Each names what the budget shall be; whoever comes second adds to what stands then, or is refused."""
    with opened(tmp_path) as one, opened(tmp_path) as other:
        one.extend(LARGER)
        with pytest.raises(InvalidBudget, match="is not more than epsilon = 2"):
            other.extend(LARGER)
        other.extend(Budget(epsilon=2.5))
        assert one.total == other.total == Loss("epsilon", 25 * ATOMS // 10)
        assert [raised.budget.epsilon for raised in one.extensions] == [2.0, 2.5]


def test_what_was_kept_of_delta_for_values_is_not_given_out_again() -> None:
    first, larger, aside = Budget(1.0, 1e-9), Budget(2.0, 1e-9), 1e-10
    whole = total(first, "gdp", aside=aside)
    more = extension(whole, first, larger, aside=aside)
    assert whole + more == total(larger, "gdp", aside=aside)
    assert (whole + more).atoms < total(larger, "gdp").atoms
    assert raised_to(first, whole, [(larger, more.atoms)], aside=aside) == (larger, whole + more)
    for wrong in (more.atoms + more.atoms // 1000, more.atoms // 2, 0):
        with pytest.raises(InvalidBudget):
            raised_to(first, whole, [(larger, wrong)], aside=aside)


# -- gates ------------------------------------------------------------------------------------------------------------


def online(session: tacit.Session) -> Online[Any]:
    mechanism = session._mechanism
    assert isinstance(mechanism, Online)
    return mechanism


def gates(session: tacit.Session) -> list[GateTerms]:
    entries = (decode(line.kind, line.body) for line in session.lines() if line.kind == "intent")
    return [one.purpose for one in entries if isinstance(one, Intent) and isinstance(one.purpose, GateTerms)]


def test_an_open_gate_goes_on_and_more_can_be_opened(tmp_path: Path) -> None:
    settings = {"mechanism": "iterative", "questions": 50, "hits": 2}
    with opened(tmp_path, Budget(1.0, 1e-9), **settings) as session:
        session.ask(tacit.count(age=1))
        (gate,), spent, hits = gates(session), session.spent, online(session).hits_left
        session.extend(Budget(3.0, 1e-9))
        answer = session.ask(tacit.count(age=2))
        assert (gates(session), session.spent, answer.cost.atoms) == ([gate], spent, 0)
        assert online(session).hits_left > hits + 2
        assert online(session).terms.each.atoms == session.made_with[1].atoms // 2


def test_the_bar_for_all_free_answers_divides_one_chance_among_all_gates_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the budget is raised, and however often, the shares of all gates together are one chance at most."""
    with opened(tmp_path, Budget(1.0, 1e-9), mechanism="iterative", questions=50, hits=4) as session:
        mechanism, gate = online(session), online(session).terms.gate_loss.atoms
        opened_by, mosts = [2, 5], [mechanism.most_gates]
        for epsilon, before in zip((1.5, 3.0), opened_by, strict=True):
            done = session.extend(Budget(epsilon, 1e-9))
            mechanism._opened_before[done.receipt.entry] = before
            mosts.append(mechanism.most_gates)
        last = session.total.atoms / gate - opened_by[-1]  # that can still be opened
        chance = 2 / mosts[0] + 3 / mosts[1] + last / mosts[2]
        assert mosts == sorted(mosts)
        assert chance == pytest.approx(1, abs=1e-9)


def test_where_no_chance_is_left_there_is_no_bar_for_all(tmp_path: Path) -> None:
    with opened(tmp_path, Budget(1.0, 1e-9), mechanism="iterative", questions=50, hits=1) as session:
        done = session.extend(Budget(3.0, 1e-9))
        mechanism = online(session)
        mechanism._opened_before[done.receipt.entry] = 10**6
        free = [bar.about for bar in session.ask(tacit.count(age=1)).facts.bars]
        assert FREE not in free
        assert free


# -- the command line, and what is published --------------------------------------------------------------------------


@pytest.fixture
def folder(here: Path) -> Path:
    ROWS.assign(age=ROWS["age"] * 9).to_csv(here / "people.csv", index=False)
    (here / "tacit.toml").write_text(configuration("sex", "age", epsilon=1.0, questions=4, mechanism="direct"))
    return here


def test_a_budget_is_raised_by_a_command_and_never_by_a_file(folder: Path) -> None:
    answered("ask", "SELECT COUNT(*) FROM data WHERE sex = 'F'")
    text = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(text.replace("epsilon = 1.0", "epsilon = 2.0"))
    refused(run("ask", "SELECT COUNT(*) FROM data"), "`tacit extend --epsilon 2`", "Nothing was spent")
    assert "tacit extend --epsilon 2" in run("status").stderr
    refused(run("extend", "--epsilon", "2"), "say --yes", "From epsilon = 1, delta = 1e-09 to epsilon = 2", code=2)
    refused(run("extend", "--epsilon", "0.5", "--yes"), "only raised")
    (done,) = answered("extend", "--epsilon", "2", "--yes")
    assert (done["before"]["epsilon"], done["budget"]["epsilon"], done["entry"]) == (1.0, 2.0, 3)
    (status,) = answered("status")
    assert status["budget"]["epsilon"] == 2.0
    assert [one["entry"] for one in status["extensions"]] == [3]
    assert "raised to epsilon = 2, delta = 1e-09 on 20" in run("status").stdout
    assert "raised once" in run("verify", "people.tacit").stdout
    (folder / "tacit.toml").write_text(text)
    refused(run("ask", "SELECT COUNT(*) FROM data"), "budget is epsilon = 2, delta = 1e-09, not epsilon = 1")
    run("init", "--from", "people.tacit", "people.csv", "-o", "again.toml")
    assert "epsilon = 2.0" in (folder / "again.toml").read_text()


def test_a_command_says_what_to_write_into_the_file(folder: Path) -> None:
    answered("ask", "SELECT COUNT(*) FROM data WHERE sex = 'F'")
    shutil.copy("people.tacit", "copy")
    said = run("extend", "--epsilon", "2", "--yes")
    assert "Write epsilon = 2 into [budget] of tacit.toml" in said.stderr
    assert "3." in said.stdout  # times as much to spend, in gdp
    shutil.copy("copy", "people.tacit")  # which does not know what the budget is by now
    refused(run("extend", "--epsilon", "3"), "older than, or differs from, the newest one seen")


def test_a_published_file_states_every_budget_that_there_was(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    with opened(tmp_path) as session:
        ask_until_refused(session, range(10))
        session.publish(tmp_path / "before.jsonl")
        session.extend(LARGER)
        ask_until_refused(session, range(10))
        session.publish(path)
        assert tacit.verify(path, session=session).budget == LARGER
        tacit.verify(tmp_path / "before.jsonl", session=session)  # what was published before is a part of it
    with tacit.read(path) as known:
        assert (known.budget, known.made_with[0], known.total.atoms) == (LARGER, PURE, 2 * ATOMS)
        assert known.told == 0
        with pytest.raises(NeedsData):
            known.extend(Budget(epsilon=3.0))
    assert "epsilon = 2 (pure), raised once" in str(tacit.verify(path))
    assert json.loads(path.read_text().splitlines()[0])["budget"] == {"delta": 0.0, "epsilon": 1.0}


def forged(path: Path, **change: Any) -> Path:
    """The file as somebody would seal it who changes the line that raises the budget."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    at = next(i for i, line in enumerate(lines) if line.get("kind") == "extended")
    lines[at] |= change
    resealed(path.with_name("forged.jsonl"), lines)
    return path.with_name("forged.jsonl")


@pytest.mark.parametrize(
    "change",
    [
        {"atoms": 3 * ATOMS},
        {"atoms": ATOMS // 2},
        {"body": '{"delta":0.0,"epsilon":1.5}'},
        {"body": '{"delta":0.0,"epsilon":0.5}'},
        {"body": '{"delta":1e-09,"epsilon":2.0}'},
        {"body": '{"delta":0.0,"epsilon":2.0,"more":1}'},
        {"intent": 1},
    ],
)
def test_a_published_extension_adds_what_its_budget_is_worth(tmp_path: Path, change: dict[str, Any]) -> None:
    with opened(tmp_path) as session:
        ask_until_refused(session, range(2))
        session.extend(LARGER)
        session.ask(tacit.count(age=3))
        session.publish(tmp_path / "people.jsonl")
    tacit.verify(forged(tmp_path / "people.jsonl"))
    with pytest.raises(ConfigError):
        tacit.verify(forged(tmp_path / "people.jsonl", **change))


# -- copies -----------------------------------------------------------------------------------------------------------


def test_a_copy_from_before_the_extension_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        ask_until_refused(session, range(10))
    shutil.copy(tmp_path / "people.tacit", tmp_path / "copy")
    anchor = tmp_path / "anchors.sqlite"
    tacit.extend(tmp_path / "people.tacit", LARGER, anchor=anchor)
    shutil.copy(tmp_path / "copy", tmp_path / "people.tacit")
    with pytest.raises(LedgerError, match="older than, or differs from, the newest one seen"):
        tacit.extend(tmp_path / "people.tacit", LARGER, anchor=anchor)
    with pytest.raises(LedgerError, match="older than, or differs from, the newest one seen"):
        opened(tmp_path)


def test_what_has_no_session_is_not_extended(tmp_path: Path) -> None:
    path, anchor = tmp_path / "people.tacit", tmp_path / "anchors.sqlite"
    with pytest.raises(LedgerError, match="There is no ledger"):
        tacit.extend(path, LARGER)
    columns = {"age": {"kind": "integer", "discover": True, "low": 0, "high": 99}}
    tacit.discover(data=ROWS, columns=columns, budget=Budget(1.0, 1e-9), ledger=path, anchor=anchor)
    with pytest.raises(LedgerError, match="holds a discovery"):
        tacit.extend(path, Budget(2.0, 1e-9), anchor=anchor)
