"""A series of which something is gone: the rows of a block, a ledger, or the newest lines of its manifest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import tacit
from tacit.block_ledgers import BlockLedgers
from test_series_groups import LABELS, LONG, made, month, value


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
        cut.setattr(BlockLedgers, "group_up", lambda *_: None)
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
