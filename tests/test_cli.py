"""The command line as a newcomer meets it: two commands to an answer, one sentence for every mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from people import CSV, configuration, refused, tacit
from support import PATIENCE
from tacit.cli.demo import _interval
from tacit.demo.contest import conditions, query_of
from tacit.model.answer import Answer
from tacit.model.budget import Loss
from tacit.model.facts import NOISE, Bar, Facts

CONFIG = configuration("sex", "age", "active", mechanism="direct", questions=3)


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "people.csv").write_text(CSV)
    return here


def test_from_a_csv_to_an_answer(folder: Path) -> None:
    assert tacit("init", "people.csv", "--peek-at-values").exit_code == 0
    asked = tacit(
        "ask",
        "--json",
        "--start",
        "SELECT COUNT(*) FROM data WHERE sex = 'F'",
        "SELECT sex, COUNT(*) FROM data GROUP BY sex",
    )
    assert asked.exit_code == 0, asked.output
    number, table = (json.loads(line) for line in asked.stdout.splitlines())
    assert number["source"] == "measured"
    assert abs(number["value"] - 151) <= 10 * number["error"]
    assert [row[0] for row in table["rows"]] == ["F", "M", "other"]
    again = json.loads(tacit("ask", "--json", "SELECT COUNT(*) FROM data WHERE NOT sex <> 'F'").stdout)
    assert (again["value"], again["source"], again["entry"]) == (number["value"], "hypothesis", number["entry"])


def test_a_draft_looks_at_no_value_unless_told_to(folder: Path) -> None:
    assert tacit("init", "people.csv").exit_code == 0
    drafted = (folder / "tacit.toml").read_text()
    for value in ("Wilhelmina", '"p1"', "2020-03", "low = 20", "seen"):
        assert value not in drafted.replace("low = 2020-01-01", "")
    for column in ("sex", "age", "active", "joined"):
        assert f"\n[domain.{column}]" in drafted
    assert "\n# [domain.name]" in drafted  # it names somebody
    refused(tacit("ask", "SELECT COUNT(*) FROM data"), "sex, age", "still to be discovered", "tacit discover")
    refused(tacit("init", "people.csv"), "exists already")
    peeked = tacit("init", "people.csv", "--peek-at-values", "-o", "peeked.toml")
    assert "public" in peeked.stderr
    text = (folder / "peeked.toml").read_text()
    assert 'values = ["F", "M"]   # seen' in text
    assert "# [domain.name]" in text  # 301 different names: left out
    assert "Wilhelmina" not in text


def test_status_shows_the_budget_and_what_was_bought(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    tacit("ask", "SELECT COUNT(*) FROM data WHERE active")
    facts = json.loads(tacit("status", "--json").stdout)
    assert facts["rows"] == 301
    assert facts["cells"] == 40
    assert [past["question"] for past in facts["history"]] == ["active = true"]
    assert facts["spent"]["gdp"] + facts["left"]["gdp"] == pytest.approx(facts["total"]["gdp"], rel=1e-12)
    assert 0 < facts["epsilon_spent"] < 5
    text = tacit("status").stdout
    assert "301 rows" in text
    assert "active = true" in text


def test_dry_run_spends_nothing(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    question = "SELECT COUNT(*) FROM data WHERE active"
    assert "% of the budget" in tacit("ask", "--dry-run", question).stdout
    assert json.loads(tacit("status", "--json").stdout)["spent"] == {"gdp": 0.0}
    tacit("ask", question)
    assert "free" in tacit("ask", "--dry-run", question).stdout


def test_one_bad_question_of_several_spends_nothing(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    refused(tacit("ask", "SELECT COUNT(*) FROM data WHERE active", "SELECT COUNT(*) FROM data WHERE agee = 3"), "agee")
    assert json.loads(tacit("status", "--json").stdout)["spent"] == {"gdp": 0.0}


def test_an_exhausted_budget_has_its_own_exit_code(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    for age in (20, 30, 40):
        assert tacit("ask", f"SELECT COUNT(*) FROM data WHERE age >= {age}").exit_code == 0
    refused(tacit("ask", "SELECT COUNT(*) FROM data WHERE age >= 50"), "left", "Nothing was spent", code=3)
    assert tacit("ask", "SELECT COUNT(*) FROM data WHERE age >= 40").exit_code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("epsilon = 5.0", ""), ["[budget]", "epsilon"]),
        (("epsilon = 5.0", "epsilon = -1"), ["epsilon"]),
        (("epsilon = 5.0", 'epsilon = "one"'), ["epsilon", "number"]),
        (("epsilon = 5.0", "epsilon = nan"), ["epsilon"]),
        (("questions = 3", "questions = true"), ["questions"]),
        (("questions = 3", "queries = 3"), ["queries", "questions"]),
        (("[budget]", "[budgett]"), ["[budgett]"]),
        (("[budget]", "[budget"), ["TOML"]),
        (('"people.csv"', '"nowhere.csv"'), ["nowhere.csv"]),
        (('"people.csv"', '"broken.parquet"'), ["broken.parquet"]),
        (('"people.csv"', '"secret.csv"'), ["age"]),
        (('"people.csv"', '"empty.csv"'), []),
        (('"people.csv"', "\"SELECT 1/0 AS sex, '31337' AS age\""), []),
        (('mechanism = "direct"', 'mechanism = "oracle"'), ["oracle", "histogram"]),
        (("[domain.age]", "[domain.agee]"), ["agee"]),
        (("high = 99", "high = -1"), ["[domain.age]"]),
        (('kind = "boolean"', 'kind = "boolish"'), ["[domain.active]", "boolean"]),
        (('kind = "boolean"', 'kind = "boolean"\nsize = 3'), ["[domain.active]"]),
        (('"people.tacit"', '"no/where/people.tacit"'), ["people.tacit"]),
        (('"people.tacit"', '"people.csv"'), ["people.csv"]),
    ],
)
def test_every_mistake_is_one_sentence(folder: Path, change: tuple[str, str], words: list[str]) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1 gold-vault 31337 not really")
    (folder / "secret.csv").write_text("sex,age,active\nF,gold-vault,true\nM,31337,false\n")
    (folder / "empty.csv").write_text("sex,age,active\n")
    assert change[0] in CONFIG
    (folder / "tacit.toml").write_text(CONFIG.replace(*change))
    refused(tacit("status"), *words)


def test_the_ledger_of_another_table_is_refused(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    tacit("ask", "SELECT COUNT(*) FROM data WHERE active")
    (folder / "people.csv").write_text(CSV.replace("Wilhelmina,F,44", "Wilhelmina,M,44"))
    changed = ("people.csv has changed since the ledger people.tacit was made", 'continues = "people.tacit"')
    asked = ("ask", "SELECT COUNT(*) FROM data WHERE active")
    refused(tacit(*asked), *changed, "tacit ask --published FILE", "Nothing was spent.")
    (folder / "people.csv").write_text(CSV[: CSV.rindex("Wilhelmina")])
    refused(tacit(*asked), *changed)
    # Where the file is gone, what was answered is still there.
    (folder / "people.csv").unlink()
    refused(tacit(*asked), "there is no file people.csv. What was answered", "`tacit publish -o FILE`")
    assert tacit("publish", "-o", "public.tacit").exit_code == 0
    assert tacit(*asked, "--published", "public.tacit").exit_code == 0
    (folder / "people.tacit").rename(folder / "elsewhere.tacit")
    assert "What was answered" not in tacit(*asked).stderr


def test_help_teaches() -> None:
    for command in ([], ["init"], ["ask"], ["status"], ["demo"]):
        result = tacit(*command, "--help")
        assert result.exit_code == 0
    assert "Examples:" in tacit("ask", "--help").stdout
    assert "Exit codes" in tacit("--help").stdout
    assert tacit("ask").exit_code == 2


def test_the_demo_beats_fresh_noise_and_catches_the_worst_question() -> None:
    result = tacit("demo", "--json")
    assert result.exit_code == 0, result.output
    shown: dict[str, Any] = json.loads(result.stdout)
    fresh, ours = shown["compared"]
    assert fresh["questions"] == ours["questions"] == 1000
    assert fresh["mean_error"] > 3 * ours["mean_error"]
    assert fresh["budget_left"] < 0.001 < ours["budget_left"]
    assert (fresh["next_question"], ours["next_question"]) == ("refused", "free")
    first, again = shown["answers"][:2]
    assert first["value"] == again["value"]  # the same question in other words
    worst = shown["worst"]
    assert worst["source"] == "measured"
    # Its bar is two deviations of its noise: whatever the draw is, it is not beyond eight, but for a chance of 1e-15.
    assert abs(worst["value"] - worst["truth"]) < 4 * worst["error"] < abs(worst["published"] - worst["truth"])


def test_the_demo_asks_what_its_words_say() -> None:
    asked = conditions(100)
    assert len({query.core.key for query in asked.values()}) == 100  # no question twice, nor the rest of one
    for words, query in asked.items():
        assert query_of(words) == query


def test_the_demo_marks_a_truth_outside_of_its_bar() -> None:
    """Also where it is so near to the end that rounding to a letter would put it there."""
    answer = Answer("", 188.0, Facts("measured", Loss("rho", 0), 0.95, bars=(Bar(91.0, NOISE, 0.95),)))
    assert _interval(answer, 279) == "  ├────┼────[bold green]●[/]  "
    assert _interval(answer, 280) == "  ├────┼────┤[bold yellow]●[/] "
    assert _interval(answer, 96) == " [bold yellow]●[/]├────┼────┤  "


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG)
    command = f"{sys.executable} -m tacit ask --json 'SELECT COUNT(*) FROM data' | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in done.stderr
