"""The anchor remembers the newest state of each ledger, moves forward only, and notices when it is taken away."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tacit.errors import LedgerError
from tacit.store.anchor import Anchor, Mark, default_path


def test_knows_nothing_at_first_and_then_the_newest(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "state" / "anchors.sqlite")
    assert anchor.newest("a") is None
    anchor.advance("a", Mark(3, "x", 30))
    anchor.advance("b", Mark(1, "y", 5))
    assert anchor.newest("a") == (3, "x", 30)
    assert Anchor(anchor.path).newest("b") == (1, "y", 5)


@pytest.mark.parametrize("older", [Mark(2, "o", 99), Mark(3, "o", 99)])
def test_moves_forward_only(tmp_path: Path, older: Mark) -> None:
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(3, "x", 30))
    anchor.advance("a", older)
    assert anchor.newest("a") == (3, "x", 30)


def test_remembers_the_last_ledger_at_a_path(tmp_path: Path) -> None:
    anchor, here, there = Anchor(tmp_path / "anchors.sqlite"), tmp_path / "here", tmp_path / "there"
    assert anchor.at(here) is None
    assert anchor.advance("b", Mark(0, "x", 0), here) == (0, "x", 0)
    anchor.advance("a", Mark(1, "y", 5), here)
    anchor.advance("a", Mark(2, "z", 6))
    assert (anchor.at(here), anchor.at(there)) == ("a", None)
    anchor.advance("a", Mark(2, "z", 6), there)
    assert (anchor.at(here), anchor.at(there)) == (None, "a")


def test_a_new_file_has_a_new_id_and_keeps_it(tmp_path: Path) -> None:
    ids = [Anchor(tmp_path / name / "anchors.sqlite").id for name in ("x", "y", "x")]
    assert ids[0] == ids[2] != ids[1]


def test_tells_which_mark_it_has(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(4, "ours", 10))
    assert anchor.advance("a", Mark(4, "another", 10)) == (4, "ours", 10)
    assert anchor.advance("a", Mark(3, "older", 99)) == (4, "ours", 10)


def test_threads_leave_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "anchors.sqlite"
    anchors = [Anchor(path) for _ in range(4)]  # each makes the file if it is first
    threads = [
        threading.Thread(target=lambda a=anchor, k=k: [a.advance("a", Mark(i, str(i), i)) for i in range(k, 40, 4)])
        for k, anchor in enumerate(anchors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [anchor.newest("a") for anchor in anchors] == [(39, "39", 39)] * 4


def test_is_private(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "state" / "anchors.sqlite")
    anchor.advance("a", Mark(1, "x", 1))
    assert stat.S_IMODE(os.stat(anchor.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(anchor.path.parent).st_mode) == 0o700
    assert sorted(p.name.removeprefix("anchors.sqlite") for p in anchor.path.parent.iterdir()) == ["", "-shm", "-wal"]


def test_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TACIT_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local/state/tacit/anchors.sqlite"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert default_path() == tmp_path / "xdg/tacit/anchors.sqlite"
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "own"))
    assert Anchor().path == default_path() == tmp_path / "own/anchors.sqlite"


def test_says_when_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerError, match="TACIT_STATE"):
        Anchor(tmp_path / "file" / "anchors.sqlite").newest("a")


def test_a_damaged_anchor_is_refused(tmp_path: Path) -> None:
    (tmp_path / "anchors.sqlite").write_text("not a database" * 100)
    with pytest.raises(LedgerError, match=r"anchors\.sqlite is not a file of this program"):
        Anchor(tmp_path / "anchors.sqlite").newest("a")


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_an_anchor_that_disappears_is_noticed(tmp_path: Path, suffix: str) -> None:
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(1, "x", 1))
    os.unlink(f"{anchor.path}{suffix}")
    with pytest.raises(LedgerError, match=r"cannot be read|replaced or removed"):
        anchor.newest("a")
    with pytest.raises(LedgerError):
        anchor.advance("a", Mark(2, "y", 2))
