"""The anchor remembers the newest state of each ledger, moves forward only, and notices when it is taken away."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tacit.errors import LedgerError
from tacit.store.anchor import Anchor, Mark, default_path


def test_knows_nothing_at_first_and_then_the_newest(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "state" / "anchors.sqlite")
    assert anchor.newest("a") is None
    anchor.advance("a", Mark(3, "x", 30), None)
    anchor.advance("b", Mark(1, "y", 5), None)
    assert anchor.newest("a") == (3, "x", 30)
    assert Anchor(anchor.path).newest("b") == (1, "y", 5)


@pytest.mark.parametrize("older", [Mark(2, "o", 99), Mark(3, "o", 99)])
def test_moves_forward_only(tmp_path: Path, older: Mark) -> None:
    anchor, newest = Anchor(tmp_path / "anchors.sqlite"), Mark(3, "x", 30)
    anchor.advance("a", newest, None)
    assert anchor.advance("a", older, newest) == newest
    assert anchor.newest("a") == newest


@pytest.mark.parametrize("replaced", [None, Mark(2, "another", 20), Mark(2, "x", 21), Mark(1, "x", 20)])
def test_a_mark_is_replaced_by_who_names_it(tmp_path: Path, replaced: Mark | None) -> None:
    """Whoever goes on from another mark than the one that stands here has another history."""
    anchor, here = Anchor(tmp_path / "anchors.sqlite"), Mark(2, "x", 20)
    anchor.advance("a", here, None)
    assert anchor.advance("a", Mark(9, "z", 90), replaced, tmp_path / "copy") == here
    assert (anchor.newest("a"), anchor.at(tmp_path / "copy")) == (here, None)
    assert anchor.advance("b", Mark(9, "z", 90), here) is None  # of another ledger nothing stands here
    assert anchor.advance("a", Mark(9, "z", 90), here) == (9, "z", 90)
    assert anchor.marks("a") == {2: "x", 9: "z"}
    assert anchor.marks("b") == {}


def test_an_anchor_of_an_earlier_version_gets_what_it_lacks(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(2, "x", 20), None)
    anchor.close()
    with contextlib.closing(sqlite3.connect(anchor.path)) as db:
        db.execute("DROP TABLE marks")
    again = Anchor(anchor.path)
    assert again.marks("a") == {}
    assert again.advance("a", Mark(3, "y", 30), Mark(2, "x", 20)) == (3, "y", 30)
    assert again.marks("a") == {3: "y"}


def test_remembers_the_last_ledger_at_a_path(tmp_path: Path) -> None:
    anchor, here, there = Anchor(tmp_path / "anchors.sqlite"), tmp_path / "here", tmp_path / "there"
    assert anchor.at(here) is None
    assert anchor.advance("b", Mark(0, "x", 0), None, here) == (0, "x", 0)
    anchor.advance("a", Mark(1, "y", 5), None, here)
    anchor.advance("a", Mark(2, "z", 6), Mark(1, "y", 5))
    assert (anchor.at(here), anchor.at(there)) == ("a", None)
    anchor.advance("a", Mark(2, "z", 6), Mark(2, "z", 6), there)
    assert (anchor.at(here), anchor.at(there)) == (None, "a")


def test_a_new_file_has_a_new_id_and_keeps_it(tmp_path: Path) -> None:
    ids = [Anchor(tmp_path / name / "anchors.sqlite").id for name in ("x", "y", "x")]
    assert ids[0] == ids[2] != ids[1]


def test_of_many_threads_each_mark_has_one_successor(tmp_path: Path) -> None:
    path, won = tmp_path / "anchors.sqlite", list[Mark]()
    anchors = [Anchor(path) for _ in range(4)]  # each makes the file if it is first

    def race(anchor: Anchor, name: str) -> None:
        for i in range(10):
            seen, ours = anchor.newest("a"), Mark(i, name, i)
            if (seen is None or seen.seq < i) and anchor.advance("a", ours, seen) == ours:
                won.append(ours)

    threads = [threading.Thread(target=race, args=(anchor, str(k))) for k, anchor in enumerate(anchors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {mark.seq: mark.hash for mark in won} == anchors[0].marks("a")
    assert len({mark.seq for mark in won}) == len(won)
    assert [anchor.newest("a") for anchor in anchors] == [max(won)] * 4


def test_is_private(tmp_path: Path) -> None:
    anchor = Anchor(tmp_path / "state" / "anchors.sqlite")
    anchor.advance("a", Mark(1, "x", 1), None)
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


def test_a_file_put_in_the_place_of_one_in_use_is_refused(tmp_path: Path) -> None:
    """What the process has open is no longer the file of that name: whatever it wrote would be lost with it."""
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(1, "x", 1), None)
    shutil.copy(anchor.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", anchor.path)
    with pytest.raises(LedgerError, match="replaced or removed while in use"):
        anchor.advance("a", Mark(2, "y", 2), Mark(1, "x", 1))


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_an_anchor_that_disappears_is_noticed(tmp_path: Path, suffix: str) -> None:
    anchor = Anchor(tmp_path / "anchors.sqlite")
    anchor.advance("a", Mark(1, "x", 1), None)
    os.unlink(f"{anchor.path}{suffix}")
    with pytest.raises(LedgerError, match=r"cannot be read|replaced or removed"):
        anchor.newest("a")
    with pytest.raises(LedgerError):
        anchor.advance("a", Mark(2, "y", 2), Mark(1, "x", 1))
