"""A ledger explains itself: read without data and without its configuration, which it gives back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import tacit
from people import answered, configuration, refused
from people import tacit as run
from tacit.config import read_config
from tacit.errors import ConfigError, LedgerError, NeedsData
from tacit.model.budget import Budget
from tacit.trusted.ledger import Ledger

ASKED = "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age < 30"


def written(**settings: Any) -> str:
    return configuration("sex", "age", "smoker", epsilon=8.0, questions=40, **settings)


@pytest.fixture
def folder(here: Path) -> Path:
    rows = "".join(f"{'FM'[i % 2]},{i % 100},{str(i % 4 == 0).lower()}\n" for i in range(3000))
    (here / "people.csv").write_text("sex,age,smoker\n" + rows)
    (here / "tacit.toml").write_text(written())
    return here


@pytest.fixture(params=["direct"])
def used(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A folder whose data are gone, and what was answered before."""
    more = {"iterative": {"warm": 0.5, "certify": 0.2}, "median": {"databases": 10}}.get(request.param, {})
    (folder / "tacit.toml").write_text(written(mechanism=request.param, **more))
    run("start", "--yes")
    (before,) = answered("ask", ASKED)
    (folder / "people.csv").rename(folder / "elsewhere.csv")
    return folder, before


@pytest.mark.parametrize("used", ["direct", "histogram", "iterative", "median"], indirect=True)
def test_a_ledger_answers_and_publishes_without_data(used: tuple[Path, dict[str, Any]]) -> None:
    folder, before = used
    with tacit.reopen(folder / "people.tacit") as session:
        again = session.ask(ASKED)
        assert isinstance(again, tacit.Answer)
        assert (again.value, again.cost.atoms) == (before["value"], 0)
        spent = session.spent
        with pytest.raises(NeedsData):
            session.ask(ASKED, within=0.5)
    run("publish", "-o", "by-ledger.tacit")
    (folder / "elsewhere.csv").rename(folder / "people.csv")
    with read_config("tacit.toml").open() as session:
        assert session.spent == spent
        session.publish(folder / "by-session.tacit")
    assert (folder / "by-ledger.tacit").read_bytes() == (folder / "by-session.tacit").read_bytes()


def test_commands_about_what_was_released_read_no_data(used: tuple[Path, dict[str, Any]]) -> None:
    assert not (used[0] / "people.csv").exists()
    (status,) = answered("status")
    assert status["rows"] == 3000
    assert status["percent_spent"] > 0
    assert len(answered("history")) == len(status["history"]) > 0
    for words in (["publish", "-o", "p.tacit"], ["report", "-o", "r.html"]):
        assert run(*words).exit_code == 0
    assert run("verify", "p.tacit", "-c", "tacit.toml").exit_code == 0
    refused(run("ask", ASKED), "people.csv", "Nothing was spent")


def test_other_terms_are_named_and_do_not_lock_the_owner_out(used: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = used
    text = (
        (folder / "tacit.toml")
        .read_text()
        .replace("epsilon = 8.0", "epsilon = 9.0")
        .replace("width = 10", "width = 20")
    )
    (folder / "tacit.toml").write_text(text)
    shown = run("status")
    assert shown.exit_code == 0
    said = (
        "budget is epsilon = 8, delta = 1e-09, not epsilon = 9, delta = 1e-09",
        "age is integer (0 to 99 in steps of 10)",
    )
    assert all(words in shown.stderr for words in said)
    refused(run("ask", ASKED), *said, "tacit init --from people.tacit")


def test_the_configuration_is_written_back(used: tuple[Path, dict[str, Any]]) -> None:
    folder, before = used
    (folder / "elsewhere.csv").rename(folder / "people.csv")
    (folder / "tacit.toml").unlink()
    assert "what people.tacit was made with" in run("init", "--from", "people.tacit", "people.csv").stderr
    (again,) = answered("ask", ASKED)
    assert again["value"] == before["value"]
    refused(run("init", "--from", "people.tacit"), "exists already", "--force")
    assert "where the table is" in run("init", "--from", "people.tacit", "--force").stderr
    assert read_config("tacit.toml").data == "DATA"


def test_people_are_in_it_too(folder: Path) -> None:
    whose = {"person": "age", "rows_per_person": 2}
    settings: dict[str, Any] = {"domain": {"sex": tacit.category(["F", "M"])}, "budget": Budget(epsilon=1.0)}
    with tacit.open(data="people.csv", ledger="whose.tacit", mechanism="direct", **settings, **whose) as session:
        rows = session.rows
    with tacit.reopen("whose.tacit") as session:
        assert (session.rows, session.rows_per_person) == (rows, 2)
    run("init", "--from", "whose.tacit", "people.csv", "-o", "whose.toml")
    assert {name: read_config("whose.toml").options[name] for name in whose} == whose


def test_a_prior_is_named_again(folder: Path) -> None:
    rows = "".join(f"{'FM'[i % 2]},{i % 90},{str(i % 5 == 0).lower()}\n" for i in range(900))
    (folder / "last-year.csv").write_text("sex,age,smoker\n" + rows)
    (folder / "tacit.toml").write_text(written(mechanism="iterative", warm=0.5, prior="last-year.csv"))
    run("start", "--yes")
    assert run("status").exit_code == 0
    with pytest.raises(ConfigError, match="name the same one"):
        tacit.reopen("people.tacit")


def test_what_is_no_ledger_is_refused(folder: Path) -> None:
    with pytest.raises(LedgerError, match=r"There is no ledger gone\.tacit"):
        tacit.reopen("gone.tacit")
    with pytest.raises(LedgerError, match="not a file of this program"):
        tacit.reopen("people.csv")


def test_a_ledger_of_an_earlier_version_opens_with_its_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It kept neither the domain nor the number of rows."""
    make = Ledger.open

    def earlier(path: Path, *, binding: dict[str, Any], **more: Any) -> Ledger:
        kept = {name: value for name, value in binding.items() if name not in ("declared", "rows")}
        return make(path, binding=kept, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "open", earlier)
        (before,) = answered("ask", ASKED)
    with pytest.raises(LedgerError, match="an earlier version"):
        tacit.reopen("people.tacit")
    assert answered("status")[0]["rows"] == 3000
    assert answered("ask", ASKED)[0]["value"] == before["value"]
    refused(run("init", "--from", "people.tacit", "--force"), "did not keep the domain")


def test_reading_a_copy_does_not_move_the_place_of_the_ledger(folder: Path) -> None:
    """Else whoever reads a copy and deletes the ledger could begin again with the whole budget."""
    (folder / "tacit.toml").write_text(written(mechanism="direct"))
    answered("ask", ASKED)
    shutil.copy("people.tacit", "copy.tacit")
    with tacit.reopen("copy.tacit") as session:
        assert session.spent.atoms > 0
    for file in folder.glob("people.tacit*"):
        file.unlink()
    refused(run("ask", ASKED), "another ledger at people.tacit that has answered questions and is gone")
