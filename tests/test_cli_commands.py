"""Every command on one made table: what it prints, what it writes, what it refuses, and what it leaves alone."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from people import answered, configuration, refused, tacit
from support import PATIENCE
from tacit.cli.options import Options, opened
from tacit.cli.show import curve, error_bar
from tacit.cli.statements import Statement, split
from tacit.config import read_config
from tacit.errors import InvalidQuery, WouldSpend
from tacit.model.statistic_check import owned

CONFIG = configuration("sex", "age", "smoker", epsilon=8.0, mechanism="direct", questions=40).replace(
    '"M"', '"M", "a;b"'
)
ROWS = 3000
F = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
M = "SELECT COUNT(*) FROM data WHERE sex = 'M'"
MECHANISM = 'mechanism = "direct"'
CONTINUES = f'{MECHANISM}\ncontinues = "people.tacit"'


@pytest.fixture
def folder(here: Path) -> Path:
    rows = "".join(f"{'FM'[i % 2]},{i % 100},{str(i % 4 == 0).lower()}\n" for i in range(ROWS))
    (here / "people.csv").write_text("sex,age,smoker\n" + rows)
    (here / "tacit.toml").write_text(CONFIG)
    return here


def spent() -> float:
    (facts,) = answered("status")
    return float(facts["spent"]["gdp"])


def test_the_configuration_is_named_by_its_place_or_with_c(folder: Path) -> None:
    (folder / "other.toml").write_text(CONFIG)
    (folder / "tacit.toml").unlink()
    for words in (["check"], ["plan", "--rows", "10"], ["start", "--yes"], ["status"], ["history"]):
        for named in (["other.toml"], ["-c", "other.toml"], ["--config", "other.toml"]):
            assert tacit(*words, *named).exit_code == 0
    assert tacit("ask", "-c", "other.toml", F).exit_code == 0
    for words in (["report", "-o", "a.html"], ["publish", "-o", "a.json"], ["synthesize", "-n", "5", "-o", "a.csv"]):
        assert tacit(*words, "other.toml").exit_code == 0
        assert tacit(*words, "-c", "other.toml", "--force").exit_code == 0
    refused(tacit("status", "tacit.toml", "-c", "other.toml"), "by its place or with -c", code=2)
    refused(tacit("status", "other.toml", "--published", "a.json"), "instead of --config", code=2)
    refused(tacit("serve", "-c", "none.toml"))


def test_prices_are_per_cent_of_the_budget_and_units_are_behind_a_flag(folder: Path) -> None:
    for words in (["ask", "--dry-run", F], ["ask", F], ["table", "smoker"], ["quantile", "age", "0.5"], ["history"]):
        shown = tacit(*words).stdout
        assert "2.5 %" in shown or "10 %" in shown, shown
        assert "gdp" not in shown
    assert "gdp" not in tacit("status").stdout
    for words in (["ask", "--dry-run", F], ["ask", F], ["table", "smoker"], ["quantile", "age", "0.5"], ["history"]):
        assert "gdp = " in tacit(*words, "--units").stdout or words[:2] == ["ask", "--dry-run"]  # which is known now
    assert "gdp = " in tacit("status", "--units").stdout
    other = "SELECT COUNT(*) FROM data WHERE sex = 'M' AND smoker"
    assert "gdp = " in tacit("ask", "--dry-run", other, "--units").stdout
    assert answered("history")[0]["percent"] == pytest.approx(2.5)
    assert answered("ask", other)[0]["percent"] == pytest.approx(2.5)


def test_a_dry_run_is_not_given_together_with_what_writes_to_the_ledger(folder: Path) -> None:
    assert tacit("ask", F).exit_code == 0
    before = (folder / "people.tacit").read_bytes()
    refused(tacit("start", "--dry-run", "--accept-rollback", "a copy"), "--accept-rollback writes", code=2)
    refused(tacit("discover", "--dry-run", "--accept-rollback", "a copy"), "--accept-rollback writes", code=2)
    refused(tacit("ask", "--dry-run", F, "--accept-rollback", "a copy"), "--accept-rollback writes", code=2)
    refused(tacit("ask", "--dry-run", F, "--start"), "--start writes", code=2)
    assert (folder / "people.tacit").read_bytes() == before


OWN = """
import tacit
domain = tacit.Domain({"smoker": tacit.boolean()})

@tacit.statistic("larger side", domain, "smoker")
def larger(tables):
    return tables.max(axis=1)
"""


def test_the_owners_file_of_statistics_is_run_first(folder: Path) -> None:
    asked = "SELECT LARGER_SIDE() FROM data"
    refused(tacit("ask", asked), "LARGER_SIDE()")
    for text, words in (
        ("1 / 0", "own.py cannot be run: ZeroDivisionError"),
        (OWN.replace("tables.max", "2 * tables.max"), "'larger side' is refused: its value is"),
    ):
        (folder / "own.py").write_text(text)
        refused(tacit("--statistics", "own.py", "ask", asked), words)
    refused(tacit("--statistics", "none.py", "ask", asked), "none.py cannot be run: FileNotFoundError")
    assert spent() == 0
    (folder / "own.py").write_text(OWN)
    with mock.patch.dict(owned):
        (answer,) = answered("--statistics", "own.py", "ask", asked)
    assert answer["question"] == "larger side of smoker"
    assert abs(answer["value"] - 2250) < 200  # of noise with a standard deviation of about 6 rows
    (line,) = answered("history")
    assert line["question"] == "larger side of smoker"


# -- several statements ------------------------------------------------------------------------------------------------


def test_a_file_of_statements(folder: Path) -> None:
    (folder / "q.sql").write_text(
        f"-- first; of two\n{F};\nSELECT COUNT(*)\n FROM data WHERE sex = 'a;b' /* ; */;\n;\n"
        "SELECT smoker, COUNT(*) FROM data GROUP BY smoker"
    )
    first, second, table = answered("ask", "--file", "q.sql")
    assert (first["question"], second["question"]) == ("sex = F", "sex = a;b")
    assert table["columns"] == ["smoker", "value"]
    (again,) = answered("ask", "-f", "-", given=F + ";")
    assert (again["value"], again["source"]) == (first["value"], "repeat")


def test_a_bad_statement_is_named_by_its_line_and_nothing_is_asked(folder: Path) -> None:
    (folder / "q.sql").write_text(f"{F};\n\n  SELECT COUNT(*)\n  FROM data WHERE agee > 3;\nSELECT 'open")
    refused(tacit("ask", "-f", "q.sql"), "quotation mark")
    (folder / "q.sql").write_text(f"{F};\n\n  SELECT COUNT(*)\n  FROM data WHERE agee > 3;\n")
    refused(tacit("ask", "-f", "q.sql"), "q.sql, line 3: unknown column 'agee' (line 4, column 19)")
    (folder / "q.sql").write_text(f"{F}; SELECT COUNT(*) FROM data WHERE agee > 3;\n")
    refused(tacit("ask", "-f", "q.sql"), f"(line 1, column {len(F) + 3 + 32})")
    assert spent() == 0
    (folder / "q.sql").write_text(" ;; -- nothing\n")
    refused(tacit("ask", "-f", "q.sql"), "q.sql has no statement")
    refused(tacit("ask", "-f", "nowhere.sql"), "there is no file nowhere.sql")
    (folder / "q.sql").write_bytes(b"\xff\xfe\x00")
    refused(tacit("ask", "-f", "q.sql"), "text file")


def test_splitting_keeps_letters_beyond_ascii_and_places() -> None:
    text = "-- häß; 😀\nSELECT 'ü;😀' ;\n\n  SELECT \"a;b\" $$;"
    with pytest.raises(InvalidQuery):
        split(text)
    made = split("-- häß; 😀\nSELECT 'ü;😀' ;\n\n  SELECT \"a;b\", 3;", "f")
    assert made == [Statement("SELECT 'ü;😀'", "f", 2, 1), Statement('SELECT "a;b", 3', "f", 4, 3)]
    with pytest.raises(InvalidQuery, match="10,001 statements"):
        split("SELECT 1;" * 10_001)


LOOKS = (["ask", "--dry-run", F], ["start", "--dry-run"], ["status"], ["history"])


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_who_only_looks_makes_no_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """So that the domain can still be changed after a first price; nothing is left in the system's folder either."""
    passing = folder / "passing"
    passing.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(passing))
    before = sorted(folder.iterdir())
    assert tacit(*words).exit_code == 0
    assert sorted(folder.iterdir()) == before
    assert list(passing.iterdir()) == []
    (folder / "tacit.toml").write_text(CONFIG.replace("width = 10", "width = 20"))
    assert tacit("ask", F).exit_code == 0
    (facts,) = answered("status")  # from then on it is the ledger that is looked at
    assert facts["spent"]["gdp"] > 0


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_a_ledger_that_is_gone_is_missed_by_who_only_looks(folder: Path, words: list[str]) -> None:
    tacit("ask", F)
    for file in folder.glob("people.tacit*"):
        file.unlink()
    refused(tacit(*words), "has answered questions and is gone")


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_who_only_looks_closes_no_ledger_that_a_new_one_continues(folder: Path, words: list[str]) -> None:
    tacit("ask", F)
    (folder / "tacit.toml").write_text(CONFIG.replace("people.tacit", "next.tacit").replace(MECHANISM, CONTINUES))
    refused(tacit(*words), "making it closes people.tacit for good")
    assert not list(folder.glob("next.tacit*"))
    (folder / "tacit.toml").write_text(CONFIG)
    assert tacit("ask", M).exit_code == 0  # it is as open as it was


@pytest.mark.parametrize("words", [LOOKS[0], LOOKS[2], ["status", "--block", "F"]], ids=" ".join)
def test_who_only_looks_makes_no_series(folder: Path, words: list[str]) -> None:
    (folder / "tacit.toml").write_text(CONFIG + '[blocks]\ncolumn = "sex"\n')
    before = sorted(folder.iterdir())
    refused(tacit(*words), "has no block yet: `tacit append` adds the first")
    assert sorted(folder.iterdir()) == before


def test_who_only_looks_makes_nothing_behind_a_link_or_after_a_ledger_without_answers(folder: Path) -> None:
    (folder / "people.tacit").symlink_to(folder / "elsewhere.tacit")
    assert tacit("status").exit_code == 0
    assert not (folder / "elsewhere.tacit").exists()
    (folder / "people.tacit").unlink()
    read_config(folder / "tacit.toml").open().close()
    for file in folder.glob("people.tacit*"):
        file.unlink()
    before = sorted(folder.iterdir())
    assert tacit("status").exit_code == 0
    assert sorted(folder.iterdir()) == before


def test_who_only_looks_can_buy_nothing(folder: Path) -> None:
    with opened(Options(str(folder / "tacit.toml")), looking=True) as session, pytest.raises(WouldSpend):
        session.ask(F)


def test_who_only_looks_makes_no_encoded_copy_and_uses_one_that_is_there(folder: Path) -> None:
    """A copy is of the domain as it was: one that a look had made stood in the way of other bins."""
    held = CONFIG.replace('"people.csv"', '"people.csv"\nheld = "engine"')
    (folder / "tacit.toml").write_text(held)
    before, copy = sorted(folder.iterdir()), folder / "people.tacit.codes"
    assert tacit("ask", "--dry-run", F).exit_code == 0
    assert sorted(folder.iterdir()) == before
    (folder / "tacit.toml").write_text(held.replace("width = 10", "width = 20"))
    assert tacit("encode").exit_code == 0
    made = copy.stat().st_mtime_ns
    assert tacit("ask", "--dry-run", F).exit_code == 0
    assert tacit("ask", F).exit_code == 0
    assert copy.stat().st_mtime_ns == made
    assert not tacit("forget").exit_code
    assert not copy.exists()


def test_dry_run_spends_nothing_and_says_what_is_known(folder: Path) -> None:
    (new,) = answered("ask", "--dry-run", F)
    assert (new["question"], new["known"]) == (F, False)
    assert new["cost_at_most"]["gdp"] > 0
    assert spent() == 0
    tacit("ask", F)
    (known,) = answered("ask", "--dry-run", "SELECT COUNT(*) FROM data WHERE NOT sex <> 'F'")
    assert known["known"]
    assert known["cost_at_most"] == {"gdp": 0.0}


def test_one_bar_is_shown_and_all_are_behind_a_word(folder: Path) -> None:
    # A gate for so many questions hardly ever calls one hard whose guess is right.
    learning = CONFIG.replace('"direct"', '"iterative"').replace("questions = 40", "questions = 10000000\nhits = 3")
    (folder / "tacit.toml").write_text(learning)
    young = "SELECT COUNT(*) FROM data WHERE age < 50"
    plain = tacit("ask", young).stdout
    assert plain.count("±") == 1
    assert "(95%, for this answer, " in plain
    every = tacit("ask", "--bars", young).stdout
    assert every.count("±") == 3  # the answer's own line, and one for each bar
    assert "for all free answers at once)" in every
    (facts,) = answered("ask", young)
    assert [bar["about"] for bar in facts["bars"]] == ["this answer", "all free answers at once"]
    assert facts["error"] == facts["bars"][0]["width"] < facts["bars"][1]["width"]


# -- the other questions -----------------------------------------------------------------------------------------------


def test_tables_as_text_csv_and_picture(folder: Path) -> None:
    (facts,) = answered("table", "age", "--where", "smoker", "--csv", "t.csv", "--svg", "t.svg")
    assert [row[0] for row in facts["rows"]][:2] == ["0–9", "10–19"]
    header, *rows = csv.reader((folder / "t.csv").open(newline=""))
    assert header == ["age", "rows", "error"]
    assert [float(row[1]) for row in rows] == [row[1] for row in facts["rows"]]
    assert (folder / "t.svg").read_text().startswith("<svg")
    text = tacit("table", "age", "--where", "smoker").stdout
    assert "free" in text
    assert "━" in text
    refused(tacit("table", "age", "--where", "smokr"), "'smokr' (line 1, column 1)")
    refused(tacit("table", "agee"), "did you mean 'age'?")
    refused(tacit("table", "age", "--where", " "), "no condition", code=2)
    refused(tacit("table"), "NAMES", code=2)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_bought(folder: Path) -> None:
    for option in ("--csv", "--svg"):
        refused(tacit("table", "sex", option, "no/such/folder.x"), "cannot be written. Nothing was spent.")
        refused(tacit("table", "sex", option, "."), "cannot be written. Nothing was spent.")
    refused(tacit("cdf", "age", "--svg", "no/such/folder.x"), "cannot be written. Nothing was spent.")
    refused(tacit("table", "sex", "age", "smoker", "--svg", "x.svg"), "one or two attributes", code=2)
    assert spent() == 0
    # A disk that fills up afterwards: the answer was bought, and the sentence does not say that nothing was spent.
    shown = tacit("table", "sex", "--csv", "/dev/full")
    refused(shown, "asking again is free")
    assert "Nothing was spent" not in shown.stderr


def test_a_curve_and_its_quantiles(folder: Path) -> None:
    shown = tacit("cdf", "age", "--svg", "a.svg")
    assert shown.exit_code == 0, shown.output
    assert "100% ┤" in shown.stdout
    assert "0.95" in shown.stdout
    assert (folder / "a.svg").read_text().startswith("<svg")
    before = spent()
    quarter, half = answered("quantile", "age", "0.25", "0.5")
    assert (quarter["value"], half["share"]) == ("20–29", 0.5)
    assert half["value"] in ("40–49", "50–59")
    assert spent() == before
    refused(tacit("quantile", "age", "1.5"), "1.5")
    refused(tacit("quantile", "age", "half"), "half", code=2)
    refused(tacit("cdf", "sex"), "sex")


def test_a_quantile_of_some_rows(folder: Path) -> None:
    (found,) = answered("quantile", "age", "0.5", "--where", "sex = 'F'")
    assert found["value"] in ("40–49", "50–59")
    refused(tacit("quantile", "age", "0.5", "--where", "sexx = 'F'"), "'sexx' (line 1, column 1)")


def test_history(folder: Path) -> None:
    assert tacit("history").stdout == ""
    for age in range(10, 100, 10):
        tacit("ask", f"SELECT COUNT(*) FROM data WHERE age < {age}")
    assert len(answered("history", "--all")) == 9
    newest = answered("history", "-n", "2")
    assert all(past["question"].startswith("age") for past in newest)
    assert newest[0]["entry"] < newest[1]["entry"]
    shown = tacit("history", "-n", "3")
    assert "3 of 9" in shown.stderr
    refused(tacit("history", "-n", "0"), "-n", code=2)


# -- what leaves the house ---------------------------------------------------------------------------------------------


def test_published_answers_need_no_data(folder: Path) -> None:
    (measured,) = answered("ask", F)
    (wrote,) = answered("publish", "-o", "public.tacit")
    assert wrote["bytes"] == (folder / "public.tacit").stat().st_size
    refused(tacit("publish", "-o", "public.tacit"), "public.tacit")
    assert tacit("publish", "-o", "public.tacit", "--force").exit_code == 0
    (checked,) = answered("verify", "public.tacit", "--config", "tacit.toml")
    compared = tacit("verify", "public.tacit", "--config", "tacit.toml").stderr
    assert "compared with the ledger of tacit.toml" in compared
    assert "compared" not in tacit("verify", "public.tacit").output
    assert checked["measured"] == 1
    receipt = [str(measured["entry"]), measured["seal"]]
    assert tacit("verify", "public.tacit", "--receipt", *receipt).exit_code == 0
    refused(tacit("verify", "public.tacit", "--receipt", receipt[0], "0" * 64), "receipt")
    for name in ("people.csv", "people.tacit", "tacit.toml"):
        (folder / name).unlink()
    (read,) = answered("ask", "--published", "public.tacit", F)
    assert (read["value"], read["error"]) == (measured["value"], measured["error"])
    refused(tacit("ask", "--published", "public.tacit", "SELECT COUNT(*) FROM data WHERE smoker"), "bought")
    refused(tacit("ask", "--published", "public.tacit", "-c", "x.toml", F), "instead of --config", code=2)
    refused(tacit("ask", "--published", "nowhere.tacit", F), "nowhere.tacit")
    changed = (folder / "public.tacit").read_text().replace(measured["seal"][:20], "0" * 20)
    (folder / "public.tacit").write_text(changed)
    refused(tacit("verify", "public.tacit"), "public.tacit")


def test_a_whole_ledger_is_verified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (measured,) = answered("ask", F)
    (checked,) = answered("verify", "people.tacit")
    assert (checked["measured"], checked["entries"], checked["open"], checked["seal"]) == (1, 2, 0, measured["seal"])
    assert "follow from one another" in tacit("verify", "people.tacit").output
    refused(tacit("verify", "people.tacit", "--receipt", "1", "0" * 64), "published", code=2)
    refused(tacit("verify", "people.tacit", "--anchor", "nowhere"), "no anchor at")
    assert not (folder / "nowhere").exists()
    with sqlite3.connect(folder / "people.tacit") as db:
        shutil.copy(folder / "people.tacit", folder / "copy.tacit")
        db.execute("DROP TRIGGER entries_UPDATE")
        db.execute("UPDATE entries SET body = replace(body, '1', '2') WHERE seq = 2")
    refused(tacit("verify", "people.tacit"), "is damaged: entry 2")
    (folder / "people.tacit").write_bytes((folder / "copy.tacit").read_bytes()[:5000])
    refused(tacit("verify", "people.tacit"), "people.tacit")


def test_every_kind_of_question_of_a_published_file(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG.replace('"direct"', '"histogram"'))
    commands = (["table", "sex", "smoker"], ["cdf", "age"], ["quantile", "age", "0.5"], ["history"])
    for command in commands[:-1]:  # so that nothing is new any more
        answered(*command)
    before = [answered(*command)[0] for command in commands]
    assert answered("publish", "-o", "public.tacit")
    (folder / "people.csv").unlink()
    for command, first in zip(commands, before, strict=True):
        read = answered(*command, "--published", "public.tacit")[0]
        for key in ("rows", "value", "question"):
            assert read.get(key) == first.get(key)
    assert "every question is free from now on" in tacit("status", "--published", "public.tacit").stdout
    assert tacit("report", "-o", "r.html", "--published", "public.tacit").exit_code == 0
    assert tacit("synthesize", "--rows", "9", "-o", "s.csv", "--published", "public.tacit").exit_code == 0


def test_synthetic_rows_follow_their_seed(folder: Path) -> None:
    refused(tacit("synthesize", "--rows", "5", "-o", "a.csv"), "nothing is published yet")
    (folder / "tacit.toml").write_text(CONFIG.replace('"direct"', '"histogram"').replace("people.tacit", "other.tacit"))
    tacit("table", "sex", "smoker")
    before = spent()
    for name, seed in (("a.csv", "1"), ("b.csv", "1"), ("c.csv", "2")):
        (wrote,) = answered("synthesize", "--rows", "50", "--seed", seed, "-o", name)
        assert (wrote["rows"], wrote["seed"]) == (50, int(seed))
    a, b, c = ((folder / name).read_text() for name in ("a.csv", "b.csv", "c.csv"))
    assert a == b != c
    assert a.splitlines()[0] == "sex,age,smoker"
    assert len(a.splitlines()) == 51
    assert spent() == before
    refused(tacit("synthesize", "--rows", "5", "-o", "a.csv"), "--force replaces it")
    refused(tacit("synthesize", "--rows", "5", "-o", "a.xlsx"), ".parquet", code=2)
    refused(tacit("synthesize", "--rows", "0", "-o", "d.csv"), "--rows", code=2)


def test_a_report_shows_what_was_released(folder: Path) -> None:
    tacit("ask", F)
    before = spent()
    (wrote,) = answered("report", "-o", "report.html", "--title", "Our <people>")
    page = (folder / "report.html").read_text()
    assert wrote["bytes"] > 1000
    assert "Our &lt;people&gt;" in page
    assert "<script" not in page
    assert spent() == before
    refused(tacit("report", "-o", "report.html"), "--force replaces it")
    refused(tacit("report", "-o", "no/such/folder.html"), "folder.html")


# -- how it is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["ask", "SELECT COUNT(*) FROM data WHERE agee = 3"], "invalid_query", 1),
        (["ask", "--nonsense"], "usage", 2),
        (["ask"], "usage", 2),
        (["status", "-c", "nowhere.toml"], "config", 1),
        (["nonsense"], "usage", 2),
        (["bench", "--rows", "3"], "usage", 2),
    ],
)
def test_errors_are_json_too(folder: Path, arguments: list[str], code: str, exit_code: int) -> None:
    shown = tacit(*arguments, "--json")
    assert shown.exit_code == exit_code
    assert shown.stdout == ""
    error = json.loads(shown.stderr)["error"]
    assert set(error) == {"code", "message", "nothing_spent"}
    assert (error["code"], error["nothing_spent"]) == (code, True)
    refused(tacit(*arguments), "", code=exit_code)


def test_an_exhausted_budget_as_json(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG.replace("questions = 40", "questions = 1"))
    tacit("ask", F)
    shown = tacit("ask", "SELECT COUNT(*) FROM data WHERE smoker", "--json")
    assert shown.exit_code == 3
    assert json.loads(shown.stderr)["error"]["code"] == "budget_exhausted"


def test_of_several_questions_a_refused_one_is_honest_about_the_others(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG.replace("questions = 40", "questions = 1"))
    shown = tacit("ask", F, "SELECT COUNT(*) FROM data WHERE smoker")
    assert shown.exit_code == 3
    assert "measured" in shown.stdout  # the first was bought, and is shown
    assert "stays spent" in shown.stderr
    assert "Nothing was spent" not in shown.stderr
    again = tacit("ask", F, "SELECT COUNT(*) FROM data WHERE smoker", "--json")
    assert json.loads(again.stderr)["error"]["nothing_spent"]  # the first is free now


def test_a_pipe_gets_data_alone_and_no_colours(folder: Path) -> None:
    """Not even where colours were asked for: NO_COLOR wins, and the spinner needs a terminal."""
    environment = {**os.environ, "NO_COLOR": "1"}
    code = "from tacit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "table", "sex"], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_bench_compares_with_independent_noise() -> None:
    (facts,) = answered("bench", "--rows", "2000", "--columns", "3", "--values", "3", "--questions", "50")
    base, *others = facts["measured"]
    assert base["mechanism"] == "independent noise"
    assert base["mean_ratio"] == 1.0
    assert {"noisy histogram", "iterative, uniform start"} <= {one["mechanism"] for one in others}
    for one in others:
        assert one["mean_ratio"] == pytest.approx(one["mean_error"] / base["mean_error"])
    refused(tacit("bench", "--epsilon", "-1"), "epsilon")


def test_small_pictures() -> None:
    assert error_bar(0, 0, 0, width=5) == "     "
    assert error_bar(-10, 2, 100, width=10).startswith("┃")
    assert error_bar(1000, 20, 100, width=10).endswith("┃")
    lines = curve([0, 1, 2], [0.0, 0.5, 1.0], 0.0, width=10, height=4)
    assert len(lines) == 4
    assert {len(line) for line in lines} == {16}
    steep = curve([0, 1, 1.001, 2], [0.0, 0.0, 1.0, 1.0], 0.0, width=10, height=4)
    assert all(set(line[6:]) != {chr(0x2800)} for line in steep)  # no gap where it jumps


# -- files, stopping, completion ---------------------------------------------------------------------------------------


def test_an_answer_is_written_as_its_file_ends(folder: Path) -> None:
    table = "SELECT sex, COUNT(*) FROM data GROUP BY sex"
    for name, words in (
        ("t.csv", "sex,value,error\n"),
        ("t.json", '"columns"'),
        ("t.md", "| sex |"),
        ("t.svg", "<svg"),
    ):
        done = tacit("ask", "-o", name, table)
        assert done.exit_code == 0, done.output
        assert words in (folder / name).read_text()
    refused(tacit("ask", "-o", "t.pdf", table), "t.pdf does not", code=2)
    refused(tacit("ask", "-o", "t.csv", table, F), "one question", code=2)
    refused(tacit("report", "-o", "r.pdf"), "ends in .html", code=2)
    assert not (folder / "r.pdf").exists()


def test_who_stops_a_command_is_told_what_was_spent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.session import Session

    before = spent()
    answer = Session.answer

    def stop(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    def stop_late(*given: object, **more: object) -> None:
        answer(*given, **more)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "answer", stop)
    early = tacit("ask", F)
    assert early.exit_code == 130
    assert early.stderr == "tacit: Stopped. Nothing was spent.\n"
    assert spent() == before
    monkeypatch.setattr(Session, "answer", stop_late)
    late = tacit("ask", F)
    assert late.exit_code == 130
    assert "2.5 % of the budget was spent in this run; what it bought is kept" in late.stderr
    assert spent() > before
    monkeypatch.setattr(Session, "answer", answer)
    close = Session.close

    def stop_closing(session: Session) -> None:
        close(session)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "close", stop_closing)
    ended = tacit("ask", "SELECT COUNT(*) FROM data WHERE age < 30")
    assert ended.exit_code == 130
    assert "2.5 % of the budget was spent in this run" in ended.stderr, "it had answered, and was closing its files"


def test_who_stops_a_start_is_told_how_it_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.session import Session

    (folder / "tacit.toml").write_text(CONFIG.replace('"direct"', '"histogram"').replace("questions = 40\n", ""))
    start = Session.start

    def stop_late(session: Session) -> None:
        start(session)
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "start", stop_late)
    stopped = tacit("start", "--yes")
    assert stopped.exit_code == 130
    assert "what it bought is kept, and `tacit start` goes on where it stopped" in stopped.stderr
    assert "free" not in stopped.stderr


def test_nothing_left_is_an_exhausted_budget_also_after_a_rollback(folder: Path) -> None:
    (folder / "tacit.toml").write_text(CONFIG.replace('"direct"', '"histogram"').replace("questions = 40\n", ""))
    read_config(folder / "tacit.toml").open().close()  # makes a ledger, and asks nothing
    kept = (folder / "people.tacit").read_bytes()
    assert tacit("ask", F).exit_code == 0
    for name in ("people.tacit-wal", "people.tacit-shm"):
        (folder / name).unlink(missing_ok=True)
    (folder / "people.tacit").write_bytes(kept)
    refused(tacit("ask", "--accept-rollback", "restored", F), "nothing of the budget is left", code=3)


def test_completion_scripts(folder: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_TACIT_COMPLETE" in tacit("completion", shell).stdout
    refused(tacit("completion", "csh"), code=2)


def test_a_quantile_that_follows_from_what_is_published_is_worked_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked_out(_session: Any, _what: str, ask: Any) -> list[Any]:
        return [replace(one, facts=replace(one.facts, source="hypothesis")) for one in ask()]

    monkeypatch.setattr("tacit.cli.ask.starting", worked_out)
    assert tacit("quantile", "age", "0.25").stdout.splitlines()[-1].startswith("worked out, ")
