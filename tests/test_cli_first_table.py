"""From a file to a configuration that fits it: `tacit init`, `tacit check` and `tacit try`."""

from __future__ import annotations

import csv
import datetime as dt
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import tacit as package
from people import answered, refused, tacit
from tacit.cli import main
from tacit.cli.draft import identifies, says_whose
from tacit.config import read_config
from tacit.errors import DataError, InvalidDomain, InvalidQuery
from tacit.load.columns import TableColumn
from tacit.load.engines import CsvFile
from tacit.load.look import Seen
from tacit.model import sql
from tacit.model.description import values_of

VISITS = 600


@pytest.fixture
def folder(here: Path) -> Path:
    """Visits to a hospital: people with several rows, flags, a measurement with an outlier, gaps, timestamps."""
    with (here / "visits.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["subject_id", "last_name", "ward", "flag", "took", "ct", "moment"])
        for i in range(VISITS):
            ward = ["north", "south", "other"][i % 3]
            took = 1_000_000 if i == 7 else i % 90
            ct = "" if i % 20 == 0 else f"{i % 37 / 10}"
            at = dt.datetime(2023, 1, 1) + dt.timedelta(hours=7 * i)
            writer.writerow([i // 2, f"name {i}", ward, i % 2, took, ct, at])
    return here


def drafted(*options: str) -> dict[str, Any]:
    made = tacit("init", "visits.csv", "--force", *options)
    assert made.exit_code == 0, made.output
    return tomllib.loads(Path("tacit.toml").read_text())


# -- the draft ---------------------------------------------------------------------------------------------------------


def test_a_draft_knows_types_and_leaves_out_who_is_who(folder: Path) -> None:
    made = drafted()
    kinds = {name: table["kind"] for name, table in made["domain"].items()}
    assert kinds == {
        "ward": "category", "flag": "integer", "took": "integer", "ct": "numeric",
        "moment": "date", "moment_hour": "hour", "moment_weekday": "weekday",
    }  # fmt: skip
    assert made["domain"]["ward"]["other"] == "other"
    said = tacit("init", "visits.csv", "--force").stderr
    assert "subject_id, last_name" in said
    assert 'person = "subject_id"' in said
    assert "with 7 attributes from 7 columns" in said  # two were left out, and a moment has two parts


def test_what_is_peeked_at_is_never_refused(folder: Path) -> None:
    """Values that are also labels, dates that stand for none, text that no category lists, and huge whole numbers."""
    with (folder / "odd.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["state", "note", "until", "code"])
        for i in range(400):
            state = ["unknown", "Missing", "other", ""][i % 4]
            until = "9999-12-31" if i == 5 else f"2021-0{1 + i % 9}-03"
            writer.writerow([state, ["a", "b\tc"][i % 2], until, [2**60, 2**60 + 2**20][i % 2]])
    assert tacit("init", "odd.csv", "--force", "--peek-at-values").exit_code == 0
    domain = tomllib.loads((folder / "tacit.toml").read_text())["domain"]
    assert domain["state"] == {
        "kind": "category", "values": ["Missing", "other", "unknown"], "other": "another", "missing": "no value",
    }  # fmt: skip
    assert domain["note"]["values"] == ["a"]
    assert [str(domain["until"][end])[:4] for end in ("low", "high")] == ["2021", "2021"]
    assert domain["code"]["kind"] == "numeric"
    checked = tacit("check")
    assert checked.exit_code == 0, checked.output


def test_a_draft_of_public_values_fits_the_table(folder: Path) -> None:
    """No outlier ruins the bins, flags are true or false, and a value called "other" is not taken for the rest."""
    made = drafted("--peek-at-values", "--person", "SUBJECT_ID", "--rows-per-person", "2")
    assert made["data"] == {"source": "visits.csv", "person": "subject_id", "rows_per_person": 2}
    domain = made["domain"]
    assert domain["flag"]["kind"] == "boolean"
    assert domain["took"]["high"] < 200
    assert domain["ward"] == {"kind": "category", "values": ["north", "other", "south"], "other": "another"}
    assert domain["ct"]["missing"] == "unknown"
    assert answered("ask", "--start", "SELECT COUNT(*) FROM data WHERE hour(moment) < 12")[0]["source"] == "measured"


def test_the_five_things_are_options(folder: Path) -> None:
    people = "--person", "subject_id", "--rows-per-person", "4"
    made = drafted(*people, "--epsilon", "0.5", "--questions", "70", "--ledger", "v.tacit")
    assert (made["budget"]["epsilon"], made["session"]["questions"], made["session"]["ledger"]) == (0.5, 70, "v.tacit")
    assert made["data"]["rows_per_person"] == 4
    refused(tacit("init", "visits.csv", "--force", "--person", "nobody"), "there is no column nobody")
    for wrong in ("-1", "0"):
        refused(tacit("init", "visits.csv", "--force", "--epsilon", wrong), "epsilon is a number from")
    refused(tacit("init", "visits.csv", "--force", "--rows-per-person", "2"), "--person", code=2)


def test_at_a_terminal_the_five_things_are_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.cli.draft.at_terminal", lambda: True)
    done = CliRunner().invoke(
        main, ["init", "visits.csv"], input="subject_di\nsubject_id\n2\n0.5\n100\nn\nhere.tacit\n"
    )
    assert done.exit_code == 0, done.output
    made = tomllib.loads((folder / "tacit.toml").read_text())
    assert made["data"]["person"] == "subject_id"
    assert (made["budget"]["epsilon"], made["session"]["questions"]) == (0.5, 100)
    assert made["session"]["ledger"] == "here.tacit"
    for words in (
        "Who is protected?",
        "It could be subject_id",
        "is it public",
        "epsilon",
    ):
        assert words.lower() in done.stderr.lower()
    assert "there is no column subject_di; the columns are" in done.stderr  # and it was asked for again
    whole = CliRunner().invoke(main, ["init", "visits.csv", "--force"], input="\n\n\n\n\n")
    assert whole.exit_code == 0, whole.output
    assert "person" not in tomllib.loads((folder / "tacit.toml").read_text())["data"]


def test_a_draft_says_how_a_time_with_a_zone_becomes_local(folder: Path) -> None:
    times = "SELECT CAST(moment AS TIMESTAMPTZ) AS seen, ward FROM 'visits.csv'"
    duckdb.sql(f"COPY ({times}) TO 'zoned.parquet'")
    assert tacit("init", "zoned.parquet").exit_code == 0
    (line,) = (line for line in (folder / "tacit.toml").read_text().splitlines() if "AT TIME ZONE" in line)
    source = tomllib.loads(line.removeprefix("# "))["source"]
    assert tacit("init", source, "-o", "local.toml").exit_code == 0
    assert tomllib.loads((folder / "local.toml").read_text())["domain"]["seen_hour"]["of"] == "seen"


def test_names_that_say_whose_row_it_is() -> None:
    assert all(map(says_whose, ("id", "subject_id", "patient", "UUID", "customerId")))
    assert not any(map(says_whose, ("age", "paid", "width", "humid", "idle")))
    text = [TableColumn(name, "text") for name in ("last_name", "e_mail", "clinic_name", "payor")]
    assert [identifies(column, None) for column in text] == [True, True, False, False]
    few, many = (Seen(0, 9, True, None, False, different) for different in (0.001, 0.7))
    assert not identifies(TableColumn("test_id", "number"), few)  # called so, but it names kinds of tests
    assert identifies(TableColumn("test_id", "number"), many)


def test_a_rare_number_is_no_flag_and_no_outlier(here: Path) -> None:
    # of the 1,000 values that are nearly all 0 and 1, two lie beyond; a draft of yes or no refused them
    rows = [f"{i % 2},{i % 2}" for i in range(998)] + ["2,70000"] * 2
    (here / "few.csv").write_text("answer,count\n" + "\n".join(rows) + "\n")
    assert tacit("init", "few.csv", "--peek-at-values").exit_code == 0
    domain = tomllib.loads((here / "tacit.toml").read_text())["domain"]
    assert [domain["answer"][key] for key in ("kind", "low", "high")] == ["integer", 0, 2]
    assert [domain["count"][key] for key in ("kind", "low", "high", "clamp")] == ["integer", 0, 1, True]
    assert tacit("check").exit_code == 0
    assert read_config(here / "tacit.toml").about.title == "few", "the page is not called after tacit.toml"


# -- check -------------------------------------------------------------------------------------------------------------

BAD = """
[data]
source = "visits.csv"
[budget]
epsilon = 1.0
delta = 1e-9
[session]
ledger = "visits.tacit"
[domain.ward]
kind = "category"
values = ["north", "south"]
[domain.took]
kind = "integer"
low = 0
high = 49
clamp = true
[domain.ct]
kind = "numeric"
edges = [0, 2, 4]
[domain.flag]
kind = "integer"
low = 0
high = 9
width = 10
[domain.nowhere]
kind = "boolean"
"""


def test_a_check_lists_everything_at_once(folder: Path) -> None:
    (folder / "tacit.toml").write_text(BAD)
    shown = tacit("check")
    assert shown.exit_code == 1
    text = " ".join(shown.stdout.split())
    assert "For the owner alone" in text
    assert "ward: 200 rows (33 %) have values that are not declared (other in 200)" in text
    assert 'ct: 30 rows (5 %) have no value. Add missing = "unknown"' in text
    assert "no column nowhere" in text
    assert "! took: 251 rows (42 %) have values that are not declared (50.0 to 1000000.0); clamp" in text
    assert "flag: all rows have the same value or bin" in text
    assert "subject_id repeats: 300 different values in 600 rows" in text
    assert "3 problems" in text
    assert not (folder / "visits.tacit").exists()


@pytest.mark.parametrize(("share", "mark"), [(200, "!"), (6, "✓")])
def test_many_rows_that_count_as_other_are_remarked_on(folder: Path, share: int, mark: str) -> None:
    """As many as clamping may move without a remark: less than 2 % of the rows."""
    rows = "".join(f"{'x' if i < share else 'north'},{i % 9}\n" for i in range(600))
    (folder / "few.csv").write_text("ward,n\n" + rows)
    (folder / "tacit.toml").write_text(
        '[data]\nsource = "few.csv"\n[budget]\nepsilon = 1\ndelta = 1e-9\n[session]\nledger = "l.tacit"\n'
        '[domain.ward]\nkind = "category"\nvalues = ["north", "south"]\nother = "other"\n'
    )
    text = " ".join(tacit("check").stdout.split())
    assert f"{mark} ward: {share} rows" in text


def test_a_check_of_many_columns_makes_one_relation_of_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, relation = list[int](), CsvFile.relation

    def noted(file: CsvFile, connection: Any, types: dict[str, str]) -> Any:
        made.append(len(types))
        return relation(file, connection, types)

    monkeypatch.setattr(CsvFile, "relation", noted)
    (folder / "tacit.toml").write_text(BAD.replace("[domain.nowhere]", "[domain.back]"))
    (folder / "visits.csv").write_text("ward,took,ct,flag,back\nnorth,1,2,3,true\n")
    assert tacit("check").exit_code == 0
    assert made == [0, 4], "one to see which columns there are, and one for all of them"


def test_a_check_of_people_says_how_many_rows_are_left_out(folder: Path) -> None:
    drafted("--peek-at-values", "--person", "subject_id", "--rows-per-person", "1")
    shown = tacit("check")
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert "subject_id: 300 people with 2 rows at most; rows_per_person = 1 leaves out 300 rows (50 %)" in text
    assert "The rows fit what is declared." in text
    drafted("--peek-at-values", "--person", "subject_id", "--rows-per-person", "5")
    (facts,) = answered("check")
    assert facts["owner_only"] is True
    assert "rows_per_person = 2 would be enough, with less noise." in facts["remarks"]


def test_a_check_of_a_draft_lists_every_attribute_that_is_not_filled_in(folder: Path) -> None:
    drafted()
    shown = tacit("check")
    assert shown.exit_code == 1
    assert "ward, flag, took, ct, moment: still to be discovered" in " ".join(shown.stdout.split())


def test_a_check_of_what_is_no_number(folder: Path) -> None:
    (folder / "tacit.toml").write_text(BAD.replace("[domain.flag]", "[domain.last_name]"))
    text = " ".join(tacit("check").stdout.split())
    assert "column last_name of visits.csv holds something that is not a number" in text
    assert "ward: 200 rows" in text  # the others are looked at all the same


# -- try ---------------------------------------------------------------------------------------------------------------


def test_a_rehearsal_needs_no_rows_and_spends_nothing(folder: Path) -> None:
    drafted("--peek-at-values", "--person", "subject_id", "--rows-per-person", "2")
    (folder / "visits.csv").unlink()
    asked = [
        "SELECT COUNT(*) FROM data WHERE ward = 'north' AND hour(moment) < 12",
        "SELECT dayname(moment), AVG(took) FROM data GROUP BY 1",
    ]
    first, table = answered("try", "--rows", "2000", *asked)
    assert first["rehearsal"] is True
    assert 0 < first["value"] < 2000
    assert len(table["rows"]) == 7
    assert answered("try", "--rows", "2000", asked[0])[0]["question"] == first["question"]
    assert not list(folder.glob("*.tacit"))
    refused(tacit("try"), "prompt opens", code=2)


# -- parts of dates and times ------------------------------------------------------------------------------------------

TIMES = package.Domain(
    {
        "moment": package.date("2023-01-01", "2023-12-31", by="month"),
        "hour": package.hour("moment", width=6),
        "day": package.weekday("moment"),
        "season": package.month("moment"),
    }
)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_parts_of_timestamps_are_counted_exactly(folder: Path, form: str) -> None:
    duckdb.sql(f"COPY (SELECT moment FROM 'visits.csv') TO 'times.{form}'")
    with package.open(
        data=f"times.{form}", domain=TIMES, budget=package.Budget(epsilon=1000.0, delta=1e-9), ledger="t.tacit",
        mechanism="direct", questions=10,
    ) as session:  # fmt: skip
        for condition in (
            "hour(moment) >= 6 AND hour(moment) < 18",
            "dayname(moment) IN ('Monday', 'Friday')",
            "month(moment) = 2",
        ):
            ((true,),) = duckdb.sql(f"SELECT COUNT(*) FROM 'times.{form}' WHERE {condition}").fetchall()
            assert session.ask(f"SELECT COUNT(*) FROM data WHERE {condition}").value == true


def test_parts_in_sql_are_the_declared_attributes() -> None:
    def same(one: str, other: str) -> None:
        assert sql.parse(f"SELECT COUNT(*) FROM data WHERE {one}", TIMES) == sql.parse(
            f"SELECT COUNT(*) FROM data WHERE {other}", TIMES
        )

    same("hour(moment) < 12", "hour < 12")
    same("EXTRACT(hour FROM moment) < 12", "hour < 12")
    same("dayname(moment) = 'Sunday'", "day = 'Sunday'")
    same("date_trunc('month', moment) = '2023-02'", "moment = '2023-02'")
    for wrong, words in (
        ("EXTRACT(minute FROM moment) = 3", "can, where they are declared"),
        ("hour(seen) = 3", 'kind = "hour" and of = "seen"'),
        ("date_trunc('day', moment) = '2023-02-01'", "declared by month"),
    ):
        with pytest.raises(InvalidQuery, match=words):
            sql.parse(f"SELECT COUNT(*) FROM data WHERE {wrong}", TIMES)


def test_a_part_is_kept_in_the_domain_and_needs_a_column_of_times(folder: Path) -> None:
    assert package.Domain.from_toml(TIMES.to_toml()) == TIMES
    assert TIMES.key != package.Domain({**dict(TIMES.items()), "hour": package.hour("seen", width=6)}).key
    with pytest.raises(InvalidDomain, match="of is the name of the column"):
        package.hour("")
    with pytest.raises(DataError, match="which holds numbers"):
        package.open(
            data="SELECT took FROM 'visits.csv'", domain=package.Domain({"hour": package.hour("took")}),
            budget=package.Budget(epsilon=1.0, delta=1e-9), ledger="t.tacit",
        )  # fmt: skip
    assert values_of(TIMES["hour"]) == "the hour of moment: 0 to 23 in steps of 6"


def test_a_rehearsal_makes_no_missing_times_where_a_part_has_no_label_for_them(folder: Path) -> None:
    (folder / "tacit.toml").write_text(
        '[data]\nsource = "p.csv"\n[budget]\nepsilon = 1.0\n[session]\nledger = "p.tacit"\nmechanism = "direct"\n'
        '[domain.seen]\nkind = "date"\nlow = 2020-01-01\nhigh = 2020-03-31\nby = "month"\nmissing = "unknown"\n'
        '[domain.hour]\nkind = "hour"\nof = "seen"\n'
    )
    (answer,) = answered("try", "--rows", "500", "SELECT COUNT(*) FROM data WHERE hour < 12")
    assert answer["rehearsal"] is True


def test_parts_of_a_day_that_is_to_be_discovered_have_a_place_for_rows_without_one(here: Path) -> None:
    """`tacit discover` gives every attribute one. Rows without a day have no weekday, and would be refused."""
    (here / "stays.csv").write_text("Admission Date,n\n" + "2024-03-01,1\n,2\n" * 20)
    assert tacit("init", "stays.csv").exit_code == 0
    text = (here / "tacit.toml").read_text()
    drafted = tomllib.loads(text)["domain"]
    assert drafted["Admission Date"]["discover"] is True
    assert drafted["Admission Date_weekday"]["missing"] == "unknown"
    assert 'dayname("Admission Date")' in text  # as SQL takes it


def test_one_column_is_said_as_one(folder: Path) -> None:
    (folder / "one.csv").write_text("ward\na\nb\n")
    assert "with 1 attribute from 1 column." in tacit("init", "one.csv", "--force").stderr
