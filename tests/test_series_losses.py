"""A series of which something is gone: the rows of a block, a ledger, or the newest lines of its manifest."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.blocks.ledgers import BlockLedgers
from tacit.model.budget import Budget
from tacit.owner.manifest import Manifest
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft
from tacit.store.log import Log
from test_series_groups import BUDGET, DOMAIN, LABELS, LONG, made, month, value

MORE = Budget(epsilon=2.0, delta=1e-9)


def again(folder: Path, **given: object) -> tacit.Series:
    return tacit.series(ledger=folder / "stays.tacit", **given)  # type: ignore[arg-type]


def append(folder: Path, series: tacit.Series, number: int, *, start: bool = True) -> tacit.Session:
    path = folder / f"{number + 1}.csv"
    month(number).to_csv(path, index=False)
    return series.append(str(path), LABELS[number], start=start)


def restore(folder: Path, copy: Path) -> None:
    """The manifest as it was in a copy; the ledgers stay what they are."""
    for file in folder.glob("stays.tacit*"):
        if file.is_file():
            file.unlink()
    for file in copy.glob("stays.tacit*"):
        if file.is_file():
            shutil.copy(file, folder)


def test_rows_that_are_gone_stop_their_own_group_alone(tmp_path: Path) -> None:
    made(tmp_path, months=2).close()
    (tmp_path / "1.csv").write_text("no such columns\n1\n")  # for the owner alone to hear of
    with again(tmp_path) as series:
        for number in range(2, 6):
            append(tmp_path, series, number)
        assert series.groups == ["2026-04 to 2026-06"]
        assert series.start() == []


def test_a_manifest_that_went_back_past_a_group_makes_no_other_and_starts_its_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path, months=2) as series, monkeypatch.context() as cut:
        cut.setattr(BlockLedgers, "group_up", lambda *_, **__: None)
        append(tmp_path, series, 2, start=False)
    shutil.copytree(tmp_path, tmp_path / "copy")
    with again(tmp_path) as series:
        assert series.start("2026-01") == ["2026-01 to 2026-03"]
    restore(tmp_path, tmp_path / "copy")
    with again(tmp_path, accept_rollback="restored a backup") as series:
        assert series.start() == ["2026-03"]
        assert series.groups == []
        months = [value(series.block(label), LONG) for label in LABELS[:3]]
        assert value(series, LONG) == sum(months)


def test_what_an_append_bought_before_it_failed_is_said_to_be_spent(tmp_path: Path) -> None:
    with made(tmp_path, months=6) as series:
        one, two = (group.ledger for group in series._ledgers.groups.values())
    folder = tmp_path / "stays.tacit.blocks"
    shutil.copy(folder / two, folder / one)
    with again(tmp_path) as series:
        with pytest.raises(tacit.LedgerError, match="stays spent") as refused:
            append(tmp_path, series, 6)
        assert not refused.value.nothing_spent
        assert series.known(LABELS[6]).spent.atoms > 0


def test_a_series_that_is_extended_before_its_first_block_has_groups(tmp_path: Path) -> None:
    with made(tmp_path, months=0) as series:
        series.extend(MORE)
        for number in range(3):
            append(tmp_path, series, number)
        assert series.groups == ["2026-01 to 2026-03"]
        assert [one.budget for one in series.extensions] == [MORE]
        assert series.status().spent.atoms <= series.total.atoms


def test_a_line_that_a_manifest_does_not_take_is_refused_in_words(tmp_path: Path) -> None:
    with made(tmp_path, months=1) as series:
        manifest = series._ledgers._manifest
        with pytest.raises(tacit.LedgerError, match="takes no such line"):
            manifest._write(Draft("intent", 1, "{}"))
        manifest._write(Draft("levels", 0, '{"levels":[[1],[100],[1.0]],"why":"later"}'))
    with pytest.raises(tacit.LedgerError, match="is damaged"):  # the budget is divided before there is a block
        again(tmp_path)


def test_a_manifest_that_went_back_past_an_extension_promises_no_answers(tmp_path: Path) -> None:
    made(tmp_path, months=1).close()
    shutil.copytree(tmp_path, tmp_path / "copy")
    with again(tmp_path) as series:
        series.extend(MORE)
    restore(tmp_path, tmp_path / "copy")
    with again(tmp_path, accept_rollback="restored a backup") as series:
        with pytest.raises(tacit.LedgerError, match="If the manifest is an older copy, bring the newer one back"):
            series.ask(LONG)
        with pytest.raises(tacit.LedgerError, match="unless the budget was raised after that copy"):
            append(tmp_path, series, 1)


def test_a_group_that_was_missed_answers_nothing_later(tmp_path: Path) -> None:
    """Its rows come back after a window over its blocks was answered: what was answered stays."""
    made(tmp_path, months=2, mechanism="direct").close()
    (tmp_path / "1.csv").rename(tmp_path / "away")
    with again(tmp_path) as series:
        append(tmp_path, series, 2)
        (tmp_path / "away").rename(tmp_path / "1.csv")
        question = f"{LONG} AND block <= '2026-03'"
        first = value(series, question)
        append(tmp_path, series, 3)
        series.start()
        assert series.groups == []
        assert value(series, question) == first
        assert series.ask(question).cost.atoms == 0
        for number in (4, 5):
            append(tmp_path, series, number)
        assert series.groups == ["2026-04 to 2026-06"]
    with again(tmp_path) as series:
        assert series.start() == []
        assert value(series, question) == first


def test_a_ledger_that_an_append_left_behind_is_not_opened_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def opened(ledger: Path, budget: Budget) -> tacit.Session:
        return tacit.open(data=str(tmp_path / "2.csv"), domain=DOMAIN, budget=budget, ledger=ledger)

    with made(tmp_path, months=1, expected=None, windows=None) as series:
        with monkeypatch.context() as cut:
            cut.setattr(Manifest, "add", killed)
            cut.setattr(BlockLedgers, "_forget", lambda *_: None)
            with pytest.raises(KeyboardInterrupt):
                append(tmp_path, series, 1)
        append(tmp_path, series, 1)
        listed = {block.ledger for block in series._ledgers.listed}
    (left,) = (one for one in (tmp_path / "stays.tacit.blocks").glob("*.tacit") if one.name not in listed)
    with pytest.raises(tacit.LedgerError, match="its series does not list"):
        opened(left, BUDGET)
    with opened(tmp_path / "stays.tacit.blocks" / series._ledgers.listed[1].ledger, BUDGET) as one:
        assert one.started


def test_a_block_of_a_copy_of_its_series_that_the_anchor_refused_is_not_opened_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both copies append the same rows at once, each with a budget for them: one of the two ledgers may be asked."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    made(first, months=1, mechanism="direct", expected=None, windows=None).close()
    shutil.copytree(first, second)
    plain = Log._tell_anchor

    def too_late(self: Log, *given: Any) -> None:
        if self.path == second / "stays.tacit" and self._known[0].seq > 1:
            monkeypatch.setattr(Log, "_tell_anchor", plain)
            append(first, one, 1, start=False)
        plain(self, *given)

    def opened(folder: Path) -> tacit.Session:
        (ledger,) = (folder / "stays.tacit.blocks").glob("2026-02*.tacit")
        return tacit.open(data=str(folder / "2.csv"), domain=DOMAIN, budget=BUDGET, ledger=ledger)

    with again(first) as one, again(second) as other:
        monkeypatch.setattr(Log, "_tell_anchor", too_late)
        with pytest.raises(tacit.LedgerError, match="another history"):
            append(second, other, 1, start=False)
    with pytest.raises(tacit.LedgerError, match="and its series stays"):
        opened(second)
    with opened(first) as session:
        assert session.rows == 400


def test_a_block_by_itself_does_not_move_the_anchor_to_a_forged_line_of_its_series(tmp_path: Path) -> None:
    """A sound copy of the manifest, which the owner brings back, would be refused for it."""
    with made(tmp_path, months=1, mechanism="direct", expected=None, windows=None) as series:
        log = series._ledgers._manifest._log
        known = log._anchor.newest(log.identity.id)
        (ledger,) = (tmp_path / "stays.tacit.blocks").glob("2026-01*.tacit")
    with closing(sqlite3.connect(tmp_path / "stays.tacit")) as db:
        db.execute("INSERT INTO entries VALUES (9, 'block', 'block 9', NULL, 0, 0, '', '00', '{}')")
        db.commit()
    with pytest.raises(tacit.LedgerError, match="entry 9 does not follow"):
        tacit.open(data=str(tmp_path / "1.csv"), domain=DOMAIN, budget=BUDGET, ledger=ledger)
    assert Anchor(None).newest(log.identity.id) == known is not None


def test_a_block_is_not_called_like_a_group(tmp_path: Path) -> None:
    with made(tmp_path, months=0) as series, pytest.raises(tacit.ConfigError, match="how groups are named"):
        series.append(month(0), "2026-01 to 2026-03")
    with tacit.series(ledger=tmp_path / "alone.tacit", domain=DOMAIN, budget=BUDGET) as series:
        assert series.append(month(0), "ages 0 to 17").rows == 400  # where there are no groups


def test_an_accepted_rollback_of_a_block_is_that_of_its_series(tmp_path: Path) -> None:
    terms = {"mechanism": "direct", "expected": None, "windows": None}
    made(tmp_path, months=2, **terms).close()
    folder = tmp_path / "stays.tacit.blocks"
    shutil.copytree(folder, tmp_path / "copy")
    with again(tmp_path) as series:
        first, spent = value(series, LONG), series.status().spent
    for file in folder.glob("2026-01*"):
        file.unlink()
    for file in (tmp_path / "copy").glob("2026-01*"):
        shutil.copy(file, folder)
    with again(tmp_path) as series, pytest.raises(tacit.LedgerError):
        series.status()
    with again(tmp_path, accept_rollback="restored a backup") as series:
        assert series.status().spent == spent  # what was spent stays spent
        assert value(series, LONG) != first
    with again(tmp_path) as series:
        assert series.status().spent.atoms > spent.atoms


def test_a_lost_ledger_of_a_group_stops_the_windows_over_it_alone(tmp_path: Path) -> None:
    with made(tmp_path, months=3) as series:
        said, spent = value(series, f"{LONG} AND block <= '2026-02'"), series.status().spent
    for file in (tmp_path / "stays.tacit.blocks").glob("group-1-0*"):
        file.unlink()
    with again(tmp_path) as series:
        append(tmp_path, series, 3)
        assert series.start() == []
        assert series.started
        status = series.status()
        (lost,) = status.groups
        assert (lost.label, lost.spent, lost.started) == ("2026-01 to 2026-03", lost.total, False)  # none knows better
        assert spent.atoms <= status.spent.atoms <= status.total.atoms
        assert value(series, f"{LONG} AND block <= '2026-02'") == said
        with pytest.raises(tacit.LedgerError, match="of the block 2026-01 to 2026-03 is gone"):
            series.ask(LONG)
