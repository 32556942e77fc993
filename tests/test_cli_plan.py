"""`tacit plan` as an owner meets it: figures without a look at the data, one sentence for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from people import configuration, refused, tacit


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "tacit.toml").write_text(configuration("sex", "age", "active", epsilon=1.0, questions=5000))
    return here


def plan(*arguments: str) -> Result:
    return tacit("plan", *arguments)


def test_a_plan_needs_no_data(folder: Path) -> None:
    """There is no people.csv: only the configuration is read, and no ledger is made."""
    shown = plan("--rows", "40000", "--accuracy", "0.01")
    assert shown.exit_code == 0, shown.output
    for words in ("40,000 rows", "5,000", "histogram", "In [session]", "theorem 7"):
        assert words in shown.stdout
    assert [path.name for path in folder.iterdir()] == ["tacit.toml"]


def test_json_and_a_picture(folder: Path) -> None:
    shown = plan("tacit.toml", "--rows", "40000", "--questions", "20", "--epsilon", "2", "--svg", "plan.svg", "--json")
    assert shown.exit_code == 0, shown.output
    facts = json.loads(shown.stdout)
    assert facts["budget"] == {"epsilon": 2.0, "delta": 1e-9}
    assert facts["questions"] == 20
    assert facts["options"]["mechanism"] == facts["mechanism"]
    assert (folder / "plan.svg").read_text().startswith("<svg")


def test_rows_are_counted_only_when_asked_for(folder: Path) -> None:
    (folder / "people.csv").write_text("sex,age,active\n" + "F,33,true\n" * 123)
    shown = plan("--count-rows", "--json")
    assert json.loads(shown.stdout)["rows"] == 123
    assert not (folder / "people.tacit").exists()


@pytest.mark.parametrize("arguments", [(), ("--rows", "10", "--count-rows"), ("--rows", "ten")])
def test_wrong_usage(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "people.csv").write_text("sex,age,active\nF,33,true\n")
    shown = plan(*arguments)
    assert shown.exit_code == 2
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rows", "0"), "rows is a whole number"),
        (("--rows", "10", "--questions", "0"), "questions is a whole number"),
        (("--rows", "10", "--accuracy", "5"), "accuracy is a fraction"),
        (("--rows", "10", "--epsilon", "-1"), "epsilon is a number"),
        (("--rows", "10", "--svg", "no/such/folder.svg"), "cannot be written"),
        (("other.toml", "--rows", "10"), "there is no file other.toml"),
        (("--count-rows",), "people.csv"),
    ],
)
def test_one_sentence_for_every_mistake(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    refused(plan(*arguments), words)


def test_help_has_examples() -> None:
    shown = plan("--help")
    assert "tacit plan people.toml --rows 48842" in shown.stdout
    assert "public" in shown.stdout
