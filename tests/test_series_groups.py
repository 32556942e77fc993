"""Ledgers for groups of blocks: over their blocks' rows, for a part of the budget, asked where they are sharper."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from people import tacit as command
from support import PATIENCE
from tacit.blocks.series import Series
from tacit.exact.price import total
from tacit.owner.manifest import Manifest
from tacit.owner.manifest_entry import Block, GroupLedger
from tacit.release.groups import ALONE, WHOLE, BlockGroup, Levels
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.store.log import Log

DOMAIN = tacit.Domain({"ward": tacit.category(["a", "b"]), "stay": tacit.integer(0, 7)})
BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
LONG = "SELECT COUNT(*) FROM data WHERE stay >= 4"
LABELS = [f"2026-0{number + 1}" for number in range(7)]


def month(number: int, rows: int = 400) -> pd.DataFrame:
    chance = np.random.default_rng(number)
    return pd.DataFrame(
        {"who": np.arange(rows) // 2, "ward": chance.choice(["a", "b"], rows), "stay": chance.integers(0, 8, rows)}
    )


def made(folder: Path, months: int = 7, start: bool = True, **terms: object) -> Series:
    """Months of which three are a group: planned for quarters."""
    given = {"mechanism": "histogram", "budget": BUDGET, "expected": 9, "windows": [3], **terms}
    series = tacit.series(ledger=folder / "stays.tacit", domain=DOMAIN, **given)  # type: ignore[arg-type]
    for number in range(months):
        path = folder / f"{number + 1}.csv"
        month(number).to_csv(path, index=False)
        series.append(str(path), LABELS[number], start=start)
    return series


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Series]:
    """Seven months, of which six are two quarters. Nothing is bought of it any more."""
    with made(tmp_path_factory.mktemp("groups")) as found:
        yield found


def value(asked: tacit.Series | tacit.Session, question: str) -> float:
    found = asked.ask(question)
    assert isinstance(found, tacit.Answer)
    return found.value


def of_group(series: Series, level: int, place: int) -> tacit.Session:
    return series._ledgers.light(series._ledgers.groups[BlockGroup(level, place)])


def test_a_window_is_put_together_from_groups_where_they_are_sharper(series: Series) -> None:
    assert series.groups == ["2026-01 to 2026-03", "2026-04 to 2026-06"]
    assert "groups of 3 blocks" in series.plan
    quarters = [value(of_group(series, 1, place), LONG) for place in range(2)]
    months = [value(series.block(label), LONG) for label in LABELS]
    assert value(series, f"{LONG} AND block <= '2026-03'") == quarters[0]
    assert value(series, LONG) == sum(quarters) + months[6]
    # A window that begins inside a group is the group without what is before it, where that is fewer ledgers.
    inside = value(series, f"{LONG} AND block BETWEEN '2026-02' AND '2026-06'")
    assert inside == sum(quarters) - months[0]
    # Each block by itself, and what ends before its group does, has no groups.
    assert value(series, f"{LONG} AND block = '2026-02'") == months[1]
    assert value(series, f"{LONG} AND block <= '2026-02'") == months[0] + months[1]
    table = series.ask(f"SELECT block, COUNT(*) {LONG[LONG.index('FROM') :]} GROUP BY block")
    assert isinstance(table, tacit.Table)
    assert table.values.tolist() == months


def test_a_group_is_asked_and_published_by_itself(series: Series, tmp_path: Path) -> None:
    quarter = series.block("2026-01 to 2026-03")
    assert value(quarter, LONG) == value(series, f"{LONG} AND block <= '2026-03'")
    quarter.publish(tmp_path / "quarter.jsonl")
    with tacit.read(tmp_path / "quarter.jsonl") as published:
        assert value(published, LONG) == value(quarter, LONG)


def test_a_histogram_that_is_known_is_asked_without_its_ledger(series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a window over more blocks than have their files open costs no file."""
    session = series._ledgers.light(series._ledgers.listed[0])
    session.ask(LONG)
    before = value(session, "SELECT COUNT(*) FROM data WHERE stay < 3")

    def read(*_: object) -> None:
        raise AssertionError("the ledger was looked at")

    monkeypatch.setattr("tacit.store.log.Log._read", read)
    assert value(session, "SELECT COUNT(*) FROM data WHERE stay < 3") == before
    assert value(session, "SELECT COUNT(*) FROM data WHERE stay < 2 AND ward = 'a'") is not None


def test_a_groups_rows_are_those_of_its_blocks(tmp_path: Path) -> None:
    with made(tmp_path, budget=tacit.Budget(epsilon=500.0)) as series:
        rows = pd.concat([month(number) for number in range(3)])
        ward = series.table("ward", where=f"block <= '{LABELS[2]}'")
        assert ward.values.tolist() == [(rows["ward"] == name).sum() for name in "ab"]
        assert value(series, f"{LONG} AND block <= '2026-03'") == (rows["stay"] >= 4).sum()
        both = pd.concat([month(number) for number in range(1, 6)])
        question = "SELECT AVG(stay) FROM data WHERE block BETWEEN '2026-02' AND '2026-06'"
        assert value(series, question) == pytest.approx(both["stay"].mean(), abs=1e-5)
        assert series.cdf("stay").values[-1] == 2_800


def test_bars_of_groups_are_those_of_their_noise(series: Series) -> None:
    whole = series.ask(f"{LONG} AND block <= '2026-06'")
    months = [series.block(label).ask(LONG).error for label in LABELS[:6]]
    assert whole.error is not None
    assert whole.error < float(np.sqrt(sum(one**2 for one in months if one is not None)))
    assert whole.confidence == 0.95


def test_curves_tables_and_quantiles_over_groups(series: Series) -> None:
    rows = pd.concat([month(number) for number in range(7)])
    curve = series.cdf("stay")
    assert curve.rows == 2_800
    assert curve.error is not None
    assert np.abs(curve.values - np.cumsum(np.bincount(rows["stay"]))).max() <= 5 * curve.error  # not by chance
    ward = series.ask("SELECT ward, COUNT(*) FROM data GROUP BY ward")
    assert isinstance(ward, tacit.Table)
    assert ward.error is not None
    assert np.abs(ward.values - rows["ward"].value_counts().sort_index().to_numpy()).max() <= 5 * ward.error
    assert series.quantile("stay", 0.5).value in ("2", "3", "4")


def test_all_ledgers_of_a_row_stay_within_its_budget(series: Series) -> None:
    levels = series._ledgers.levels
    each = [series._ledgers.light(series._ledgers.listed[0]), of_group(series, 1, 0)]
    assert len(levels.sizes) == 2
    assert sum(one.total.atoms for one in each) <= total(BUDGET, each[0].total.measure).atoms
    status = series.status()
    assert status.spent.atoms == sum(one.spent.atoms for one in each)
    assert status.spent.atoms <= status.total.atoms
    assert [one.label for one in status.groups] == series.groups


def test_what_a_question_costs_is_what_a_row_pays_in_all_its_ledgers(tmp_path: Path) -> None:
    with made(tmp_path, mechanism="direct") as series:
        question = f"{LONG} AND block BETWEEN '2026-02' AND '2026-06'"  # two quarters, less January
        most = series.dry_run(question).cost_at_most
        paid = series.ask(question).cost
        assert paid == most
        ledgers = [series._ledgers.light(series._ledgers.listed[0]), of_group(series, 1, 0)]
        assert paid.atoms == sum(one.spent.atoms for one in ledgers)
        assert series.ask(question).cost.atoms == 0
        assert series.status().spent == paid


def test_groups_are_read_back_and_asked_without_rows(tmp_path: Path) -> None:
    with made(tmp_path) as first:
        said = value(first, LONG)
    for file in tmp_path.glob("*.csv"):
        file.unlink()
    with tacit.series(ledger=tmp_path / "stays.tacit") as again:
        assert value(again, LONG) == said
        assert again.groups == ["2026-01 to 2026-03", "2026-04 to 2026-06"]


def test_rows_of_earlier_blocks_are_read_again_where_they_came_from(tmp_path: Path) -> None:
    with made(tmp_path, months=2, start=False):
        pass
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        month(2).to_csv(tmp_path / "3.csv", index=False)
        series.append(str(tmp_path / "3.csv"), LABELS[2], start=True)
        assert series.groups == ["2026-01 to 2026-03"]
        assert of_group(series, 1, 0).rows == 1_200
        assert series.start() == ["2026-01", "2026-02"]


def test_a_group_whose_rows_are_gone_is_not_made(tmp_path: Path) -> None:
    terms = {"mechanism": "histogram", "budget": BUDGET, "expected": 9, "windows": [3]}
    with tacit.series(ledger=tmp_path / "stays.tacit", domain=DOMAIN, **terms) as series:  # type: ignore[arg-type]
        series.append(month(0), LABELS[0], start=True)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        for number in (1, 2):
            series.append(month(number), LABELS[number], start=True)
        assert series.groups == []
        months = [series._ledgers.light(block) for block in series._ledgers.listed]
        assert value(series, LONG) == sum(value(one, LONG) for one in months)


def test_rows_that_changed_make_no_group(tmp_path: Path) -> None:
    with made(tmp_path, months=2):
        pass
    month(9).to_csv(tmp_path / "1.csv", index=False)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        month(2).to_csv(tmp_path / "3.csv", index=False)
        series.append(str(tmp_path / "3.csv"), LABELS[2], start=True)
        (tmp_path / "2.csv").unlink()
        assert (series.groups, series.start()) == ([], [])
        month(0).to_csv(tmp_path / "1.csv", index=False)
        month(1).to_csv(tmp_path / "2.csv", index=False)
        assert (series.start(), series.groups) == ([], [])  # it was missed, for good


def test_a_group_has_one_ledger_and_levels_are_written_once(series: Series) -> None:
    manifest, before = series._ledgers._manifest, len(series.groups)
    for level, place in ((1, 0), (1, 2), (2, 0)):  # there already; not complete; not planned
        with pytest.raises(tacit.LedgerError, match="A group has one ledger"):
            manifest.add_group(GroupLedger(level, place, "again", 1_200, "x.tacit", "0" * 64))
    with pytest.raises(tacit.LedgerError, match="is divided already"):
        manifest.divide(ALONE, "again")
    assert len(series.groups) == before


def test_a_ledger_stands_in_one_block_or_group(tmp_path: Path) -> None:
    manifest = Manifest.open(tmp_path / "stays.tacit", {}, Anchor(tmp_path / "anchor"), make=True)
    manifest.divide(Levels((1, 2), (WHOLE // 2, WHOLE // 2), (1.0, 1.0)), "of two levels")
    manifest.add(Block("one", 400, "1.tacit", "1" * 64, "rows of one"))
    with pytest.raises(tacit.LedgerError, match=r"1\.tacit is the ledger of another"):
        manifest.add(Block("two", 400, "1.tacit", "2" * 64, "rows of two"))
    manifest.add(Block("two", 400, "2.tacit", "2" * 64, "rows of two"))
    with pytest.raises(tacit.LedgerError, match=r"2\.tacit is the ledger of another"):
        manifest.add_group(GroupLedger(1, 0, "both", 800, "2.tacit", "3" * 64))
    manifest.add_group(GroupLedger(1, 0, "both", 800, "3.tacit", "3" * 64))
    with pytest.raises(tacit.LedgerError, match=r"3\.tacit is the ledger of another"):
        manifest.add(Block("three", 400, "3.tacit", "4" * 64, "rows of three"))
    assert [block.ledger for block in manifest.said.blocks] == ["1.tacit", "2.tacit"]
    manifest.close()


def test_another_groups_ledger_is_not_taken_for_its_own(tmp_path: Path) -> None:
    with made(tmp_path) as series:
        one, two = (group.ledger for group in series._ledgers.groups.values())
    folder = tmp_path / "stays.tacit.blocks"
    shutil.copy(folder / two, folder / one)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series, pytest.raises(tacit.LedgerError):
        series.ask(LONG)


def test_groups_cost_a_person_over_blocks_too_much(tmp_path: Path) -> None:
    terms = {"person": "who", "rows_per_person": 2, "protects": "person over blocks", "most_blocks": 9}
    with made(tmp_path, months=3, **terms) as series:
        assert series.groups == []
        assert series.plan.startswith("blocks alone: a person's rows")


def test_a_person_within_a_block_is_as_well_protected_by_groups(tmp_path: Path) -> None:
    with made(tmp_path, months=3, person="who", rows_per_person=1) as series:
        group = of_group(series, 1, 0)
        assert group.rows == 3 * 200  # one row of each person in each block
        assert group.rows_per_person == 1


@pytest.mark.parametrize(
    "terms", [{"expected": 0}, {"expected": True}, {"expected": 2}, {"expected": None}, {"windows": []}]
)
def test_expectations_that_say_nothing_are_refused(tmp_path: Path, terms: dict[str, object]) -> None:
    with pytest.raises(tacit.ConfigError, match=r"expected|windows"):
        made(tmp_path, months=0, **terms)


def test_a_series_keeps_what_was_expected(tmp_path: Path) -> None:
    made(tmp_path, months=1).close()
    made(tmp_path, months=0).close()
    with pytest.raises(tacit.LedgerError, match="another expected"):
        made(tmp_path, months=0, expected=10)
    tacit.series(ledger=tmp_path / "plain.tacit", domain=DOMAIN, budget=BUDGET).close()
    with pytest.raises(tacit.LedgerError, match="another expected"):
        tacit.series(ledger=tmp_path / "plain.tacit", expected=12)


@pytest.mark.parametrize(
    ("terms", "drawn"),
    [
        ({"windows": [1, 3]}, False),
        ({"windows": [1]}, True),
        ({"windows": None}, True),
        ({"windows": [3], "prior": True}, True),
        ({"windows": None, "prior": False}, False),
    ],
)
def test_blocks_are_drawn_to_each_other_unless_windows_of_several_count(
    tmp_path: Path, terms: dict[str, object], drawn: bool
) -> None:
    with made(tmp_path, months=0, **terms) as series:
        assert series.terms.prior is drawn


def test_what_does_not_pay_is_not_bought(tmp_path: Path) -> None:
    with made(tmp_path, months=1, expected=3, windows=None) as series:
        assert series.plan.startswith("blocks alone: over windows of all lengths")
        assert series.groups == []
        assert series._ledgers.light(series._ledgers.listed[0]).total == series.total


def test_the_command_line_says_what_was_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("months.toml").write_text(
        '[budget]\nepsilon = 1.0\ndelta = 1e-9\n[session]\nledger = "s.tacit"\nmechanism = "histogram"\n'
        f"[blocks]\nexpected = 3\nwindows = [3]\n\n{DOMAIN.to_toml()}"
    )
    for number in range(3):
        month(number).to_csv(f"{number}.csv", index=False)
        command("append", f"{number}.csv", "--label", LABELS[number], "--start", "-c", "months.toml")
    found = json.loads(command("status", "-c", "months.toml", "--json").output)
    assert [one["block"] for one in found["groups"]] == ["2026-01 to 2026-03"]
    assert found["plan"].startswith("groups of 3 blocks")
    assert "groups of 3 blocks" in command("status", "-c", "months.toml").output


def test_threads_that_read_a_manifest_at_once_read_each_block_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server does, when a block was appended. A block that is listed twice would be in its group twice."""
    with made(tmp_path, months=1) as series, tacit.series(ledger=tmp_path / "stays.tacit") as served:
        path = tmp_path / "2.csv"
        month(1).to_csv(path, index=False)
        series.append(str(path), LABELS[1])
        beside, read = threading.Thread(target=lambda: served.blocks), Log.lines

        def lines(log: Log, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
            for line in read(log, after, kinds):
                if line.kind == "block" and not beside.ident:
                    beside.start()
                    beside.join(PATIENCE)  # it reads the same line
                yield line

        monkeypatch.setattr(Log, "lines", lines)
        assert served.blocks == LABELS[:2]
        beside.join()
        assert beside.ident
        assert served.blocks == LABELS[:2]
        assert served.rows == 800
        assert served.start(LABELS[1]) == [LABELS[1]]
        assert served.groups == []


def test_a_block_that_is_appended_while_the_manifest_is_read_is_listed_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process. One that was never listed could be appended again, with a budget of its own."""
    with made(tmp_path, months=1) as series, tacit.series(ledger=tmp_path / "stays.tacit") as served:
        log, read, late = served._ledgers._manifest._log, Log.lines, [LABELS[2]]
        series.append(month(1), LABELS[1])

        def lines(asked: Log, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
            yield from read(asked, after, kinds)
            if asked is log and late:
                series.append(month(2), late.pop())

        monkeypatch.setattr(Log, "lines", lines)
        assert served.blocks == LABELS[:2]
        assert not late
        assert served.blocks == LABELS[:3]


def test_a_child_that_is_forked_while_a_manifest_is_read_reads_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path, months=1) as series, tacit.series(ledger=tmp_path / "stays.tacit") as served:
        log, read, children = served._ledgers._manifest._log, Log.lines, list[int]()
        series.append(month(1), LABELS[1])

        def lines(asked: Log, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
            for line in read(asked, after, kinds):
                if asked is log and not children:
                    children.append(os.fork())
                    if not children[0]:
                        signal.alarm(PATIENCE)  # it ends, should it wait for what its parent is doing
                        try:
                            os._exit(0 if served.blocks == LABELS[:2] else 1)
                        finally:
                            os._exit(2)
                yield line

        monkeypatch.setattr(Log, "lines", lines)
        assert served.blocks == LABELS[:2]
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


def test_a_block_is_in_a_group_once(tmp_path: Path) -> None:
    with made(tmp_path, months=2, start=False) as series:
        tables, (first, second) = series._ledgers._tables, series._ledgers.listed
        assert tables.joined([first, second]).rows == 800
        with pytest.raises(tacit.LedgerError, match="is in it once"):
            tables.joined([first, second, first])
