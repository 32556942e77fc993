"""A file is there whole or not at all, with the rights that were asked for, and nothing is left beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.errors import ConfigError
from tacit.whole_file import whole, write_whole


def test_whoever_may_read_it_is_said_or_left_to_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name, mode in (("usual", None), ("public", 0o644), ("own", 0o600)):
            write_whole(tmp_path / name, [b"a", b"b"], overwrite=False, mode=mode)
    finally:
        os.umask(before)
    assert {path.name: (path.stat().st_mode & 0o777, path.read_bytes()) for path in tmp_path.iterdir()} == {
        "usual": (0o640, b"ab"),
        "public": (0o644, b"ab"),
        "own": (0o600, b"ab"),
    }


def test_what_is_there_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    write_whole(tmp_path / "x", [b"old"], overwrite=False)
    with pytest.raises(ConfigError, match="x exists already"):
        write_whole(tmp_path / "x", [b"new"], overwrite=False)
    assert (tmp_path / "x").read_bytes() == b"old"
    write_whole(tmp_path / "x", [b"new"], overwrite=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"new")]


def test_what_stops_halfway_leaves_what_was_there(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    write_whole(tmp_path / "x", [b"old"], overwrite=False)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "x", lines(), overwrite=True)
    with pytest.raises(ConfigError, match="y cannot be written"), whole(tmp_path / "no" / "y", overwrite=True):
        pass
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"old")]


def test_a_file_system_without_links_gets_the_file_too_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    write_whole(tmp_path / "x", [b"new"], overwrite=False)
    with pytest.raises(ConfigError, match="x exists already"):
        write_whole(tmp_path / "x", [b"newer"], overwrite=False)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"new")]


def test_a_file_system_without_links_keeps_no_empty_file_of_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise PermissionError

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", fails)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fails)
        with pytest.raises(ConfigError, match="x cannot be written"):
            write_whole(tmp_path / "x", [b"new"], overwrite=False)
        assert list(tmp_path.iterdir()) == []
        patched.setattr(os, "replace", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_whole(tmp_path / "x", [b"new"], overwrite=False)
    assert list(tmp_path.iterdir()) == []
    write_whole(tmp_path / "x", [b"new"], overwrite=False)  # nothing is in its way
    assert (tmp_path / "x").read_bytes() == b"new"


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("place", ["/", "a\0b", "no/\ud800"])
def test_a_place_that_cannot_be_is_refused_in_a_sentence(place: str, overwrite: bool) -> None:
    with pytest.raises(ConfigError, match="cannot be written") as refused:
        write_whole(Path(place), [b"new"], overwrite=overwrite)
    assert (Path(place).name or place) in str(refused.value)


def test_a_name_may_be_as_long_as_any(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 250), [b"new"], overwrite=False)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]
