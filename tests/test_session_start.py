"""The base of a session is a purchase of its own: said before it is bought, asked for, and never made by a question
unless the owner said so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from people import CSV, answered, configuration, refused
from people import tacit as command
from support import once
from tacit.cli import options
from tacit.config import read_config
from tacit.model.status import Started
from tacit.session import Session

DOMAIN = tacit.Domain(
    {"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10), "active": tacit.boolean()}
)
ROWS = pd.DataFrame(
    {"sex": ["F", "M", "F"] * 700, "age": [i % 100 for i in range(2100)], "active": [True, False] * 1050}
)
WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
WITH_BASE: dict[str, dict[str, Any]] = {
    "iterative": {"mechanism": "iterative", "warm": 0.8, "hits": 5},
    "histogram": {"mechanism": "histogram"},
    "median": {"mechanism": "median", "databases": 20, "records": 500},
}
WITHOUT: dict[str, dict[str, Any]] = {
    "direct": {"mechanism": "direct"},
    "cold": {"mechanism": "iterative"},
    "median": {"mechanism": "median", "warm": 0, "databases": 20, "records": 50, "hits": 5},
}
SOURCE = once(ROWS)


def opened(folder: Path, **changes: Any) -> Session:
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    given: dict[str, Any] = {"data": SOURCE, "domain": DOMAIN, "budget": budget, "ledger": folder / "l.tacit"}
    return tacit.open(**(given | changes))


@pytest.mark.parametrize("name", WITH_BASE)
def test_a_question_does_not_buy_the_base_and_says_what_start_would(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, **WITH_BASE[name]) as session:
        base = session.base
        assert (session.started, base.bought) == (False, False)
        share = round(100 * base.cost.atoms / session.total.atoms)
        with pytest.raises(tacit.NotStarted, match=rf"{share} % of the budget.*session.start.*Nothing was spent"):
            session.ask(WOMEN)
        assert "not started" in session.dry_run(WOMEN).why
        for question in ([tacit.count(sex="F")], [tacit.count(), tacit.count(age=(0, 49))]):
            with pytest.raises(tacit.NotStarted):
                session.ask_many(question)
        with pytest.raises(tacit.NotStarted):
            session.table("sex")
        assert session.spent.atoms == 0
        assert session.entries == 0
        assert session.ask("SELECT COUNT(*) FROM data").value == 2100  # which everybody knows


@pytest.mark.parametrize("name", WITH_BASE)
def test_start_buys_what_was_said_once(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, **WITH_BASE[name]) as session:
        said = session.base
        started = session.start()
        assert isinstance(started, Started)
        assert (started.what, started.bought) == (said.what, True)
        assert bool(started.expects) == bool(said.expects)
        # After a certificate, more is known than sizes.
        assert (started.expects == said.expects) == (not started.certified)
        assert 0 < started.cost.atoms == session.spent.atoms <= said.cost.atoms
        assert session.started
        assert session.base.bought
        assert session.base.cost.atoms == 0
        assert session.start().cost.atoms == 0
        assert session.spent == started.cost
        answer = session.ask(WOMEN)
        assert session.ask(WOMEN).value == answer.value
    with opened(tmp_path) as session:  # whoever opens it again finds it started
        assert session.started
        assert session.ask(WOMEN).value == answer.value
        session.publish(tmp_path / "p.jsonl")
    assert tacit.read(tmp_path / "p.jsonl").ask(WOMEN).value == answer.value


@pytest.mark.parametrize("name", WITH_BASE)
def test_the_owner_may_let_questions_start_it(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, **WITH_BASE[name], start=True) as session:
        before = session.base.cost
        assert session.ask(WOMEN).cost.atoms > 0
        assert session.started
        assert session.spent.atoms >= 0.99 * before.atoms


@pytest.mark.parametrize("name", WITHOUT)
def test_without_a_base_there_is_nothing_to_start(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, **WITHOUT[name]) as session:
        assert session.started
        assert (session.base.what, session.base.cost.atoms, session.base.bought) == ("", 0, False)
        assert session.start().cost.atoms == 0
        assert session.ask(WOMEN).error is not None


def test_ranges_are_a_purchase_of_their_own_and_what_was_answered_needs_no_start(tmp_path: Path) -> None:
    with opened(tmp_path, **WITH_BASE["iterative"]) as session:
        assert session.cdf("age", share=0.1).cost.atoms
        assert session.cdf("age", share=0.1).cost.atoms == 0
        assert not session.started
        session.release([WOMEN], rounds=1, share=0.01)
        with pytest.raises(tacit.NotStarted):
            session.ask(tacit.count(active=True))
        assert session.start().bought  # 80 % are still left
    with opened(tmp_path) as session:
        assert session.ask(tacit.count(active=True)).error is not None


def test_with_too_little_left_a_session_goes_on_without_its_base(tmp_path: Path) -> None:
    with opened(tmp_path, **WITH_BASE["iterative"]) as session:
        session.cdf("age", share=0.92)
        assert session.started
        assert "too little" in str(session.base).lower()
        assert not session.start().bought
        assert "too little left" in session.ask(WOMEN).note


def test_start_is_true_or_false_and_stands_in_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(tacit.ConfigError, match="start is true or false, not 'yes'"):
        opened(tmp_path, start="yes")
    (tmp_path / "people.csv").write_text(CSV)
    for given in (True, False):
        (tmp_path / "t.toml").write_text(configuration("sex", "age", start=given))
        assert read_config(tmp_path / "t.toml").options["start"] is given


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.fixture
def unstarted(here: Path) -> Path:
    (here / "people.csv").write_text(CSV)
    (here / "tacit.toml").write_text(configuration("sex", "age", mechanism="histogram", start=False))
    return here


def test_the_command_says_it_asks_and_buys(unstarted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = answered("start", "--dry-run")
    assert (said["bought"], said["percent"]) == (False, 100.0)
    assert "gdp" not in command("start", "--dry-run").stdout
    assert "cost gdp = " in command("start", "--dry-run", "--units").stdout
    refused(command("start"), "--yes", "100 % of the budget", code=2)
    refused(command("ask", WOMEN), "not started", "100 % of the budget", "Nothing was spent")
    for words in (["table", "sex"], ["quantile", "age", "0.5"], ["cdf", "age"]):
        refused(command(*words), "not started")
    monkeypatch.setattr(options, "at_terminal", lambda: True)
    assert command("start", given="n\n").exit_code == 1
    assert answered("status")[0]["spent"] == {"gdp": 0.0}
    (bought,) = answered("start", "--yes")
    assert (bought["bought"], round(bought["percent"], 6)) == (True, 100.0)
    assert answered("start")[0]["percent"] == 0.0
    assert answered("ask", WOMEN)[0]["cost"] == {"gdp": 0.0}


def test_at_a_terminal_a_question_asks_whether_to_start(unstarted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "at_terminal", lambda: True)
    said = command("ask", WOMEN, given="n\n")
    assert said.exit_code == 1
    assert "Buy it now?" in said.stderr
    assert answered("status")[0]["spent"] == {"gdp": 0.0}
    said = command("ask", WOMEN, given="y\n")
    assert said.exit_code == 0
    assert "100 % of the budget" in said.stderr
    assert "±" in said.stdout


def test_a_question_with_start_buys_it_at_once(unstarted: Path) -> None:
    assert answered("ask", WOMEN, "--start")[0]["cost"]["gdp"] > 0
    refused(command("ask", "--published", "p", "--start", WOMEN), "not with them", code=2)
