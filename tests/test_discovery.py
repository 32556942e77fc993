"""Private discovery, from the command line and from Python: what it finds, what it costs, and what goes on from it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tomllib
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import tacit
from forgery import resealed
from tacit.cli import main
from tacit.cli.discovery import with_tables
from tacit.cli.rehearsal import _rehearsal
from tacit.config import read_config
from tacit.errors import DataError
from tacit.exact import price
from tacit.exact.price import threshold_of
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise
from tacit.owner import discovery
from tacit.owner.discovery import left_after_discovery, offer
from tacit.public import file
from tacit.public.check import check
from tacit.release.sought_columns import Sought
from tacit.store import log
from tacit.store.chain import canonical
from tacit.trusted.cells import read_tally

ROWS = 4000
BUDGET = tacit.Budget(epsilon=20.0, delta=1e-6)
COLUMNS: dict[str, Any] = {
    "clinic": {"kind": "category", "discover": True},
    "city": {"kind": "category", "discover": True},
    "cost": {"kind": "numeric", "discover": 4},
    "age": {"kind": "integer", "discover": True, "low": 0, "high": 500},
    "seen": {"kind": "date", "discover": True},
    "smoker": {"kind": "boolean"},
}
TOML = """\
[data]
source = "visits.csv"

[budget]
epsilon = 8.0
delta = 1e-6

[session]
ledger = "visits.tacit"
mechanism = "direct"

# where they were
[domain.clinic]
kind = "category"
discover = true   # all that many rows have
description = "where they were seen"

[domain."city"]
# a remark about the search
kind = "category"

discover = true
# what follows is about costs

[domain.cost]
kind = "numeric"
discover = 4

[domain.smoker]   # declared
kind = "boolean"
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten clinics in three cities, a rare one that one row has, a value called other, and an outlier."""
    path = tmp_path_factory.mktemp("data") / "visits.csv"
    rng = np.random.default_rng(3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["patient", "clinic", "city", "cost", "age", "seen", "smoker"])
        for i in range(ROWS):
            clinic = int(rng.integers(10))
            named = "other" if clinic == 9 else f"clinic {clinic}"
            cost = 1e9 if i == 0 else round(float(rng.exponential(200)), 2)
            day = f"20{18 + i % 4}-0{1 + i % 9}-1{i % 9} 11:30:00"
            shown = "Atlantis" if i == 1 else "" if i % 40 == 3 else named
            writer.writerow(
                [
                    f"p{i // 2}",
                    shown,
                    f"city {clinic % 3}",
                    cost,
                    20 + int(rng.integers(60)),
                    day,
                    bool(rng.integers(2)),
                ]
            )
    return path


@pytest.fixture
def folder(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(table, tmp_path / "visits.csv")
    (tmp_path / "tacit.toml").write_text(TOML)
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(folder: Path, **more: Any) -> Any:
    given: dict[str, Any] = {"data": str(folder / "visits.csv"), "columns": COLUMNS, "budget": BUDGET, "share": 0.3}
    return tacit.discover(**{**given, "ledger": folder / "visits.tacit", **more})


@pytest.fixture(scope="module")
def made(table: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A discovery of everything, with its folder, which a session may go on in."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(table, folder / "visits.csv")
    return folder, found(folder, anchor=folder / "anchor")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


# -- what is found -----------------------------------------------------------------------------------------------------


def test_what_enough_rows_have_is_found_and_what_one_row_has_is_not(made: tuple[Path, Any]) -> None:
    _, all_of_it = made
    clinic = all_of_it.tables["clinic"]
    assert sorted(clinic["values"]) == [*(f"clinic {i}" for i in range(9)), "other"]
    assert (clinic["other"], clinic["missing"]) == ("another", "unknown")  # "other" is a value here
    assert "Atlantis" not in str(all_of_it)
    assert all_of_it.tables["city"]["values"] == ["city 0", "city 1", "city 2"]
    assert any(note.startswith("clinic determines city") for note in all_of_it.notes)
    assert not any("smoker" in note for note in all_of_it.notes)


def test_bounds_and_bins_hold_nearly_all_rows_in_spite_of_an_outlier(made: tuple[Path, Any]) -> None:
    _, all_of_it = made
    age, cost, seen = (all_of_it.tables[name] for name in ("age", "cost", "seen"))
    assert 15 <= age["low"] <= 30
    assert 70 <= age["high"] <= 95
    assert cost["edges"][-1] <= 5000
    assert len(cost["edges"]) >= 4
    assert [str(seen["low"])[:4], str(seen["high"])[:4]] == ["2018", "2021"]
    assert Domain.from_dict(all_of_it.tables) == all_of_it.domain


def test_it_costs_what_was_offered_and_again_nothing(folder: Path) -> None:
    few = {name: COLUMNS[name] for name in ("city", "age")}
    priced = offer(few, BUDGET, folder / "visits.tacit", share=0.3)
    assert priced.cost.atoms / priced.total.atoms == pytest.approx(0.3, abs=1e-6)
    assert not (folder / "visits.tacit").exists()
    first = found(folder, columns=few)
    assert 0 < first.cost.atoms <= priced.cost.atoms
    again = found(folder, columns=few)
    assert (again.tables, again.notes, again.cost.atoms) == (first.tables, first.notes, 0)
    assert offer(few, BUDGET, folder / "visits.tacit").cost.atoms == 0
    more = found(folder, columns={"patient": {"kind": "category", "discover": True}}, share=0.1)
    assert more.empty == ("patient",)
    assert more.cost.atoms > 0


def test_an_older_copy_of_the_ledger_offers_nothing(folder: Path) -> None:
    """What it does not know any more would be offered for sale again, and from another number of rows on."""
    ledger, both = folder / "visits.tacit", {name: COLUMNS[name] for name in ("city", "age")}
    found(folder, columns={"city": COLUMNS["city"]}, share=0.1)
    shutil.copy(ledger, folder / "copy")
    found(folder, columns=both, share=0.1)
    shutil.copy(folder / "copy", ledger)
    for refused in (lambda: offer(both, BUDGET, ledger), lambda: found(folder, columns=both)):
        with pytest.raises(tacit.LedgerError, match="older than, or differs from, the newest one seen"):
            refused()
    assert not offer(both, BUDGET, ledger, accept_rollback="restored a backup").columns[1].known
    with pytest.raises(tacit.LedgerError, match=r"There is no anchor at .*another"):
        offer(both, BUDGET, ledger, anchor=folder / "another")


def test_what_is_declared_wrongly_does_not_hide_what_was_paid_for(folder: Path) -> None:
    few = {"city": COLUMNS["city"], "clinic": {"kind": "category", "values": ["clinic 1", "clinic 2"]}}
    made = found(folder, columns=few)
    assert made.tables["city"]["values"] == ["city 0", "city 1", "city 2"]
    (note,) = [note for note in made.notes if "was not looked at" in note]
    assert "Keep this to yourself" in note
    assert "clinic" not in note  # which column it is says more about the rows than has to be said


def test_people_with_several_rows_are_bounded(folder: Path) -> None:
    whose: dict[str, Any] = {"person": "patient", "rows_per_person": 2}
    both = [
        found(folder, ledger=folder / f"{i}.tacit", columns={"city": COLUMNS["city"]}, share=0.01, **more)
        for i, more in enumerate((whose, {}))
    ]
    thresholds = [int(one.notes[0].split("about ")[1].split()[0].replace(",", "")) for one in both]
    assert thresholds[0] > 1.8 * thresholds[1]


@pytest.mark.parametrize("bound", [0, -1, 1.5, True])
def test_what_bounds_no_rows_is_refused_before_there_is_a_ledger(folder: Path, bound: Any) -> None:
    city = {"city": COLUMNS["city"]}
    for asked in (
        lambda: found(folder, columns=city, person="patient", rows_per_person=bound),
        lambda: offer(city, BUDGET, folder / "visits.tacit", rows_per_person=bound),
    ):
        with pytest.raises(tacit.DataError, match="rows_per_person is a whole number from 1 to"):
            asked()
    assert not (folder / "visits.tacit").exists()


def test_whole_numbers_of_a_database_are_found_as_numbers(tmp_path: Path) -> None:
    import duckdb

    rows = duckdb.sql("SELECT CAST(100 + i % 3 AS INTEGER) AS ward FROM range(3000) AS t(i)")
    made = tacit.discover(
        data=rows,
        columns={"ward": {"kind": "category", "discover": True}},
        budget=BUDGET,
        ledger=tmp_path / "w.tacit",
        anchor=tmp_path / "a",
    )
    assert made.tables["ward"]["values"] == [100, 101, 102]


# -- one chain with the session ----------------------------------------------------------------------------------------


def test_the_session_goes_on_with_what_is_left(made: tuple[Path, Any]) -> None:
    folder, all_of_it = made
    domain = Domain.from_dict({**all_of_it.tables, "smoker": {"kind": "boolean"}})
    given: dict[str, Any] = {
        "data": str(folder / "visits.csv"), "budget": BUDGET, "ledger": folder / "visits.tacit",
        "anchor": folder / "anchor",
    }  # fmt: skip
    with tacit.open(domain=domain, mechanism="direct", questions=10, **given) as session:
        assert session.spent == all_of_it.cost
        for value in range(10):
            session.ask(f"SELECT COUNT(*) FROM data WHERE age < {domain['age'].edge(value + 1)}")
        assert session.left.atoms < session.total.atoms / 100
        assert session.epsilon_spent <= BUDGET.epsilon
        words = [past.question for past in session.history]
        assert "discovered: the values of clinic" in words
        tacit.report(session, folder / "report.html")
        tacit.publish(session, folder / "public.tacit")
    verified = tacit.verify(folder / "public.tacit")
    assert verified.spent.atoms > 0.99 * verified.total.atoms
    with tacit.read(folder / "public.tacit") as public:
        assert [past.question for past in public.history] == words
        assert public.aside == pytest.approx(1e-7)
    with tacit.open(domain=domain, **given) as session:  # its terms are known from now on
        assert session.choice.settings.questions == 10
    with pytest.raises(tacit.ConfigError, match="answers questions already"):
        found(folder, anchor=folder / "anchor")
    with pytest.raises(tacit.LedgerError, match="other terms"):
        tacit.open(domain=domain.project(["age", "smoker"]), **given)


def test_it_resets_no_budget(folder: Path) -> None:
    few = {"city": COLUMNS["city"]}
    found(folder, columns=few)
    given: dict[str, Any] = {"data": str(folder / "visits.csv"), "domain": {"smoker": tacit.boolean()}}
    with pytest.raises(tacit.LedgerError, match="budget is"):
        tacit.open(budget=tacit.Budget(epsilon=21.0, delta=1e-6), ledger=folder / "visits.tacit", **given)
    with pytest.raises(tacit.LedgerError, match="person"):
        tacit.open(
            budget=BUDGET,
            ledger=folder / "visits.tacit",
            person="patient",
            rows_per_person=1,
            mechanism="direct",
            **given,
        )
    (folder / "visits.tacit").unlink()
    with pytest.raises(tacit.LedgerError, match="remembers another ledger"):
        tacit.open(budget=BUDGET, ledger=folder / "visits.tacit", **given)
    with pytest.raises(tacit.LedgerError, match="remembers another ledger"):
        found(folder, columns=few)


@pytest.fixture(scope="module")
def published(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    shutil.copy(table, folder / "visits.csv")
    few = found(folder, columns={name: COLUMNS[name] for name in ("clinic", "city")}, anchor=folder / "anchor")
    with tacit.open(
        data=str(folder / "visits.csv"),
        budget=BUDGET,
        ledger=folder / "visits.tacit",
        anchor=folder / "anchor",
        domain=few.domain,
        mechanism="direct",
    ) as session:
        tacit.publish(session, folder / "p")
    return folder / "p"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda body: body | {"threshold": body["threshold"] - 9}, "told from"),
        (lambda body: body | {"threshold": body["threshold"] - 1}, "told from"),
        (lambda body: body | {"among": 1}, "told from|share its delta"),
        (lambda body: body | {"counts": [1, *body["counts"][1:]]}, "too few rows"),
        (lambda body: body | {"values": body["values"][:-1]}, "one count each"),
        (lambda body: body | {"name": "ward"}, "key"),
        (lambda body: body | {"noise": {"kind": "gaussian", "scale": body["noise"]["scale"] * 2}}, "told from|price"),
        (lambda body: body | {"noise": {"kind": "laplace", "scale": body["noise"]["scale"]}}, "delta"),
    ],
)
def test_a_published_discovery_that_was_changed_is_refused(
    published: Path, tmp_path: Path, change: Any, why: str
) -> None:
    """Sealed again, as a forger would: the price and the threshold follow from what is public."""
    check(published, file.load(published))
    lines = [json.loads(line) for line in published.read_text().splitlines()]
    for line in lines[1:-1]:
        if line["kind"] == "found":
            line["body"] = canonical(change(json.loads(line["body"])))
    resealed(tmp_path / "p", lines)
    with pytest.raises(tacit.ConfigError, match=why):
        check(published, file.load(tmp_path / "p"))


def test_all_columns_of_a_look_state_among_how_many_its_delta_is_shared(published: Path, tmp_path: Path) -> None:
    """Else each could take the whole of it, with the threshold that goes with that."""
    lines = [json.loads(line) for line in published.read_text().splitlines()]
    for line in [line for line in lines[1:-1] if line["kind"] == "found"][1:]:
        form = json.loads(line["body"])
        noise = Noise(form["noise"]["kind"], form["noise"]["scale"])
        form |= {"among": 1, "threshold": threshold_of(noise, 1, lines[0]["aside"], line["intent"], 1)}
        line["body"] = canonical(form)
    resealed(tmp_path / "p", lines)
    with pytest.raises(tacit.ConfigError, match="another number of columns than its look has"):
        check(published, file.load(tmp_path / "p"))


def test_times_are_from_before_the_data_were_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long that took may depend on how many values there are."""

    def slow(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(log, "now", lambda: "2099-01-01T00:00:00.000+00:00")
        return read_tally(*given, **more)

    monkeypatch.setattr(discovery, "read_tally", slow)
    few = found(folder, columns={"city": COLUMNS["city"], "smoker": COLUMNS["smoker"]})
    shared = {"budget": BUDGET, "ledger": folder / "visits.tacit", "domain": few.domain, "mechanism": "direct"}
    with tacit.open(data=str(folder / "visits.csv"), **shared) as session:
        times = [line.time for line in session.transcript()[1]]
    assert len(times) >= 3
    assert not [one for one in times if one.startswith("2099")]


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_without_delta_categories_are_refused_and_ranges_are_not(folder: Path) -> None:
    pure = tacit.Budget(epsilon=8.0, delta=0.0)
    with pytest.raises(tacit.InvalidBudget, match="without a delta"):
        found(folder, budget=pure)
    made = found(folder, budget=pure, columns={"age": COLUMNS["age"]})
    assert made.tables["age"]["kind"] == "integer"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"kind": "boolean", "discover": True}, "kind = one of"),
        ({"kind": "category", "discover": True, "values": ["a"]}, "may have"),
        ({"kind": "category", "discover": 5}, "how many bins"),
        ({"kind": "numeric", "discover": 1}, "how many bins"),
        ({"kind": "numeric", "discover": True, "low": 0}, "together"),
        ({"kind": "numeric", "discover": True, "low": 5, "high": 0}, "below"),
        ({"kind": "integer", "discover": True, "low": "a", "high": "b"}, "numbers"),
        ({"kind": "date", "discover": True, "low": 1, "high": 2}, "dates"),
    ],
)
def test_what_cannot_be_sought_is_refused_in_words(table: dict[str, Any], why: str) -> None:
    with pytest.raises(tacit.ConfigError, match=why):
        Sought.of("x", table)


# -- the command -------------------------------------------------------------------------------------------------------


def test_who_stops_a_discovery_is_not_told_that_nothing_was_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(**terms: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.owner.discovery.discover", stopped)
    shown = run("discover", "--yes")
    assert shown.exit_code == 130
    assert "`tacit status` says what was spent" in shown.output
    assert "Nothing" not in shown.output


def test_the_command_says_its_price_first_and_writes_the_configuration(folder: Path) -> None:
    dry = run("discover", "--dry-run", "--share", "0.2")
    assert dry.exit_code == 0, dry.output
    assert "20 % of the budget" in dry.output
    assert "rows or more have" in dry.output
    refused = run("discover")
    assert refused.exit_code == 2
    assert "say --yes" in refused.output
    assert not (folder / "visits.tacit").exists()
    still = run("check")
    assert "clinic, city, cost: still to be discovered" in " ".join(still.output.split())
    done = run("discover", "--yes", "--share", "0.2", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["wrote"] == "tacit.toml"
    assert told["percent"] == pytest.approx(20, abs=0.1)
    config = read_config(folder / "tacit.toml")
    assert list(config.domain) == ["clinic", "city", "cost", "smoker"]
    assert config.domain.to_dict()["clinic"] == told["domain"]["clinic"]
    assert run("check").exit_code == 0
    early = run("status")  # which would bind the ledger to the domain before its owner has edited it
    assert early.exit_code == 1
    assert "holds a discovery and no session yet" in early.output
    assert run("verify", "visits.tacit").exit_code == 0
    asked = run("ask", "--start", "SELECT COUNT(*) FROM data WHERE city = 'city 1'")
    assert asked.exit_code == 0, asked.output
    status = run("status")
    assert "purchases of `tacit discover`, before the session: 20 % of the budget" in status.stdout
    assert "discovered:" not in status.stdout
    assert "discovered: the values of city" in run("history").stdout
    # A rehearsal has what is left.
    config = read_config(folder / "tacit.toml")
    left = left_after_discovery(config.budget, config.ledger)
    assert (left.delta, left_after_discovery(config.budget, folder / "none")) == (config.budget.delta, config.budget)
    whole = price.total(config.budget, aside=1e-7).atoms
    assert price.total(left).atoms == pytest.approx(0.8 * whole, rel=0.01)
    with _rehearsal("tacit.toml", 500, 0) as (session, _):
        assert session.budget == left


def test_other_parts_of_the_configuration_stay_as_they_are(folder: Path) -> None:
    tables = {"clinic": {"kind": "category", "values": ["a" * 60, "b" * 60], "other": "other"}}
    text = with_tables(TOML, tables, ("city",))
    parsed = tomllib.loads(text)
    assert parsed["domain"]["clinic"] == {**tables["clinic"], "description": "where they were seen"}
    assert "city" not in parsed["domain"]
    assert parsed["domain"]["cost"] == {"kind": "numeric", "discover": 4}
    for kept in ("# where they were", "# what follows is about costs", "[domain.smoker]   # declared"):
        assert kept in text
    assert "# a remark about the search" not in text
    assert with_tables(TOML, {}) == TOML


def test_bounds_say_how_many_rows_they_leave_outside(tmp_path: Path) -> None:
    """20 % of 3,000 rows lay outside the bounds that a tenth of epsilon 1 found, and nothing said so."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"age": rng.normal(50, 18, 100_000).astype(int)})
    files = {"ledger": tmp_path / "l.tacit", "anchor": tmp_path / "a"}
    columns = {"age": {"kind": "integer", "discover": True}}
    found = tacit.discover(data=rows, columns=columns, budget=tacit.Budget(epsilon=1.0, delta=1e-9), **files)
    low, high = found.tables["age"]["low"], found.tables["age"]["high"]
    (note,) = found.notes
    below, above, sure = (float(x) / 100 for x in re.findall(r"([0-9.e+]+) %", note)[:3])
    assert 0.002 < sure < 0.01
    # Each is right to its bar at 95 %, and 3.5 bars are more than six deviations: less than one in 10^9 draws.
    assert abs((rows["age"] < low).mean() - below) < 3.5 * sure
    assert abs((rows["age"] > high).mean() - above) < 3.5 * sure


SECRET = "Wilhelmina"
UNREADABLE: dict[str, bytes] = {
    "torn.csv": f'name,sex\n{SECRET},"F\n'.encode() + b"x" * 100,
    "bytes.csv": f"name,sex\n{SECRET}".encode() + b"\xff\xfe,F\n" * 50,
    "long.csv": b"name,sex\n" + SECRET.encode() * 300_000 + b",F\n",
    "none.csv": b"",
    "torn.parquet": b"PAR1" + SECRET.encode() * 10 + b"PAR1",
    "torn.json": f'{{"name":"{SECRET}","sex":{SECRET}}}\n'.encode(),
}
ASKED = (
    *(name for name in UNREADABLE if not name.endswith("json")),
    "SELECT sex FROM read_json('{}/torn.json')",
    "SELECT sex FROM read_csv('{}/bytes.csv')",
    "SELECT sex FROM read_csv('{}/torn.csv', strict_mode=true)",
    "SELECT sex FROM read_csv('{}/long.csv')",
    "SELECT sex FROM '{}/nothing.csv'",
)


@pytest.mark.parametrize("data", ASKED)
def test_what_an_engine_says_of_rows_is_never_shown(tmp_path: Path, data: str) -> None:
    for name, content in UNREADABLE.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refusal:
        tacit.discover(
            data=data.format(tmp_path) if " " in data else tmp_path / data,
            columns={"sex": {"kind": "category", "discover": True}},
            budget=BUDGET,
            ledger=tmp_path / "names.tacit",
            anchor=tmp_path / "anchor",
        )
    assert SECRET not in "".join(traceback.format_exception(refusal.value))
    assert "duckdb" not in "".join(traceback.format_exception(refusal.value)).lower().replace("engines.py", "")
