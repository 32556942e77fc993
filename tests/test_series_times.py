"""Published times of a series: one request has one time in all ledgers, however long other blocks were looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.blocks import budgets as block_budgets
from tacit.blocks import payments as block_payments
from tacit.blocks import rows as block_rows
from tacit.model.budget import Budget
from tacit.owner import rows as owner_rows
from tacit.store import conditions
from tacit.trusted.records import Records
from test_series_groups import LABELS, LONG, made, month

MORE = Budget(epsilon=2.0, delta=1e-9)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever rows are read or looked at, an hour goes by; and no time otherwise."""
    hours = [0]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours[0])

    def takes_long(of: Any, name: str) -> None:
        does: Callable[..., Any] = getattr(of, name)

        def after_an_hour(*given: Any, **named: Any) -> Any:
            hours[0] += 1
            return does(*given, **named)

        monkeypatch.setattr(of, name, after_an_hour)

    for module in (conditions, block_payments):
        monkeypatch.setattr(module, "datetime", Clock)
    for look in ("answer", "table", "fingerprint"):
        takes_long(Records, look)
    takes_long(block_rows, "read_records")
    takes_long(owner_rows, "open_source")


def cut_short(series: tacit.Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision that stands in the manifest and in no ledger."""

    def never(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr(block_budgets, "raise_budget", never)
        with pytest.raises(KeyboardInterrupt):
            series.extend(MORE)


def times(series: tacit.Series, *labels: str) -> dict[str, set[str]]:
    return {label: {line.time for line in series.known(label).transcript()[1]} for label in labels}


@pytest.mark.usefixtures("slow")
def test_a_question_over_blocks_has_one_time_in_all_their_ledgers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path, months=3, start=False, mechanism="direct", expected=None, windows=None) as series:
        cut_short(series, monkeypatch)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        series.ask(LONG)
        found = times(series, *LABELS[:3])
    assert all(found.values())
    assert len(set().union(*found.values())) == 1  # of the decision, too, which the question finished


@pytest.mark.usefixtures("slow")
def test_a_start_of_blocks_and_groups_has_one_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(tmp_path, months=3, start=False) as series:
        cut_short(series, monkeypatch)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        labels = [*LABELS[:3], *series.groups]
        assert series.start() == labels
        found = times(series, *labels)
    assert all(found.values())
    assert len(set().union(*found.values())) == 1


@pytest.mark.usefixtures("slow")
def test_what_is_appended_has_one_time_in_the_ledgers_of_its_block_and_its_group(tmp_path: Path) -> None:
    with made(tmp_path, months=2) as series:
        series.extend(MORE)
        month(2).to_csv(tmp_path / "3.csv", index=False)
        series.append(str(tmp_path / "3.csv"), LABELS[2], start=True)
        found = times(series, LABELS[2], *series.groups)
    assert len(found) == 2
    assert len(set().union(*found.values())) == 1


@pytest.mark.usefixtures("slow")
def test_a_table_that_is_split_has_one_time_in_the_ledgers_of_all_its_blocks(tmp_path: Path) -> None:
    with made(tmp_path, months=0, expected=None, windows=None) as series:
        table = month(0).assign(half=["first", "second"] * 200)
        assert series.append_by(table, "half", start=True) == ["first", "second"]
        found = times(series, "first", "second")
    assert all(found.values())
    assert len(set().union(*found.values())) == 1
