"""Folders that Spark writes, and their marks: what is ours is deleted, and nothing else. Spark itself is not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_files import HadoopFiles, StandIn

import tacit
from tacit.errors import ConfigError, DataError
from tacit.load import BEGUN, quietly
from tacit.load.spark import Spark

SMALL = {"a": tacit.integer(0, 2)}


def keep(frame: StandIn, place: Path, check: Any = lambda *_: None, progress: Any = None) -> None:
    """As a copy is written: what an engine says is not told."""
    engine = Spark(frame)
    quietly(lambda: engine.keep("SELECT 1 AS c0", str(place), "about", check, progress), "it could not be written.")


def forget(place: Path) -> bool:
    return tacit.forget(data=StandIn(), domain=SMALL, ledger=place.parent / "l.tacit", copy=str(place))


def test_a_copy_is_begun_before_it_is_written_and_made_when_it_was_checked(tmp_path: Path) -> None:
    place, seen, told = tmp_path / "codes", list[str | None](), list[float]()
    frame = StandIn(lambda: seen.append(Spark(StandIn()).made_for(str(place))))
    keep(frame, place, lambda *_: seen.append(Spark(StandIn()).made_for(str(place))), told.append)
    assert seen == [BEGUN, BEGUN]
    assert told == [0.5, 1.0]
    assert Spark(frame).made_for(str(place)) == "about"
    assert forget(place)
    assert not place.exists()
    assert not forget(place)


def test_what_a_run_has_left_that_was_cut_short_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    place = tmp_path / "codes"
    with pytest.raises(KeyboardInterrupt):
        keep(StandIn(killed), place)
    assert not place.exists()
    monkeypatch.setattr(Spark, "drop", lambda *_: None)  # a power cut: nothing is tidied up
    with pytest.raises(KeyboardInterrupt):
        keep(StandIn(killed), place)
    monkeypatch.undo()
    assert Spark(StandIn()).made_for(str(place)) == BEGUN
    assert forget(place)
    assert not place.exists()


def test_a_folder_that_is_not_ours_is_not_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "results"
    (place / "2026").mkdir(parents=True)
    (place / "2026" / "part-0.parquet").write_text("of value")
    with pytest.raises(ConfigError, match="no copy that Tacit has made, and stays"):
        forget(place)
    assert (place / "2026" / "part-0.parquet").read_text() == "of value"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_nothing_is_written_to_a_folder_that_is_there(
    tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it deleted, whenever it came to be there."""
    place, create = tmp_path / "results", HadoopFiles.create

    def made() -> None:
        place.mkdir()
        (place / "part-7.parquet").write_text("of value")

    def created(self: HadoopFiles, path: Any, overwrite: bool) -> Any:
        made()
        return create(self, path, overwrite)

    if when == "before":
        made()
    else:
        monkeypatch.setattr(HadoopFiles, "create", created)
    with pytest.raises(DataError, match="is there already, and stays"):
        keep(StandIn(), place)
    assert [(one.name, one.read_text()) for one in place.iterdir()] == [("part-7.parquet", "of value")]


def test_of_two_runs_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "codes"
    keep(StandIn(), place)
    monkeypatch.setattr(HadoopFiles, "exists", lambda *_: False)  # both have looked before either began
    with pytest.raises(DataError, match="could not be written"):
        keep(StandIn(), place)
    monkeypatch.undo()
    assert Spark(StandIn()).made_for(str(place)) == "about"
