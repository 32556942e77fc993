"""The ledger's file: its names, its neighbours, damage, full disks, closing, and many starting at once."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from ledger_tools import PRICE, ask, raw, reopen, terms

from support import PATIENCE, processes, until
from tacit.errors import LedgerError, TacitError
from tacit.model.budget import Loss
from tacit.store import file as durable
from tacit.store.anchor import Anchor
from tacit.trusted.ledger import Ledger, Outcome

# -- names ------------------------------------------------------------------------------------------------------------


def test_a_symbolic_link_is_the_same_ledger(ledger: Ledger, tmp_path: Path) -> None:
    os.symlink(tmp_path / "people.tacit", tmp_path / "link")
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path, tmp_path / "folder" / "up")
    for path in ("link", "folder/up/people.tacit"):
        with Ledger.open(tmp_path / path, **terms(tmp_path)) as other:
            ask(other, path)
            assert other.log.path == ledger.log.path
        assert ledger.find(path) is not None
    assert not list(tmp_path.glob("link-*"))


def test_a_relative_path_does_not_follow_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger.open("people.tacit", make="new", **{**terms(tmp_path), "anchor": Anchor(Path("a.sqlite"))}) as ledger:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        with ledger.log.turn():
            ask(ledger, "k")
        assert not list((tmp_path / "elsewhere").iterdir())


def test_a_hard_link_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    os.link(tmp_path / "people.tacit", tmp_path / "second.tacit")
    for name in ("people.tacit", "second.tacit"):
        with pytest.raises(LedgerError, match="a hard link"):
            Ledger.open(tmp_path / name, **terms(tmp_path))


def test_a_maker_killed_between_its_two_names_is_tidied_up(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    os.link(tmp_path / "people.tacit", tmp_path / ".people.tacit.x1y2")
    (tmp_path / ".people.tacit.swp").touch()  # somebody else's
    reopen(tmp_path).close()
    assert sorted(p.name for p in tmp_path.glob(".*")) == [".people.tacit.swp"]


def test_folders_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Anchor(tmp_path / "x" / "y" / "anchors.sqlite").newest("a")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("x", "x/y")] == [0o700, 0o700]


# -- closing ----------------------------------------------------------------------------------------------------------


def test_a_closed_ledger_is_not_opened_again_by_use(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a", '"mine"')
    ledger.close()
    ledger.close()
    with Ledger.open(tmp_path / "other.tacit", make="new", **terms(tmp_path)) as other:
        ask(other, "a", '"other"')
    os.replace(tmp_path / "other.tacit", tmp_path / "people.tacit")
    uses: list[Any] = [lambda: ledger.find("a"), lambda: ledger.spent, ledger.log.turn, ledger.log.verify]
    for use in [*uses, lambda: ledger.reserve(PRICE, purpose="count")]:
        with pytest.raises(LedgerError, match="was closed"):
            use()


def test_a_file_let_go_of_must_be_the_same_afterwards(ledger: Ledger, tmp_path: Path) -> None:
    ledger.log._file.release()
    ask(ledger, "a")
    ledger.log._file.release()
    (tmp_path / "copy").write_bytes((tmp_path / "people.tacit").read_bytes())
    os.replace(tmp_path / "copy", tmp_path / "people.tacit")
    with pytest.raises(LedgerError, match="was replaced"):
        ledger.find("a")


def test_closing_from_many_threads(ledger: Ledger) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                ledger.log._file.release()
                ledger.log._file.read(lambda db: db.execute("SELECT 1").fetchall())
            ledger.close()
        except LedgerError:
            pass
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_closing_leaves_no_file_open(ledger: Ledger, tmp_path: Path) -> None:
    with ledger.log.turn():
        ask(ledger, "k")
    ledger.close()
    with pytest.raises(LedgerError, match="other terms: total"):
        reopen(tmp_path, answers=5)
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    assert not [link for link in links if os.path.exists(link) and str(tmp_path) in os.readlink(link)]


# -- starting at once, waiting, hanging -------------------------------------------------------------------------------


def start(folder: Path, number: int) -> str:
    (folder / f"here {number}").touch()
    until((folder / "go").exists)
    with Ledger.open(folder / "people.tacit", make="missing", **terms(folder)) as ledger:
        return ledger.log.identity.id


def test_of_many_that_start_at_once_one_makes_the_ledger(tmp_path: Path) -> None:
    with processes(4) as pool:
        for attempt in range(5):
            folder = tmp_path / str(attempt)
            folder.mkdir()
            ids = pool.starmap_async(start, [(folder, i) for i in range(4)], chunksize=1)
            until(lambda: len(list(folder.glob("here *"))) == 4)  # noqa: B023
            (folder / "go").touch()
            assert len(set(ids.get(PATIENCE))) == 1


def test_a_turn_of_somebody_who_hangs_is_not_waited_for_for_ever(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = reopen(tmp_path)
    monkeypatch.setattr(durable, "_PATIENCE", 0.1)
    with ledger.log.turn():
        with pytest.raises(LedgerError, match="held by another process for too long"):
            other.log.turn()
        with ledger.log.turn():
            pass
        with pytest.raises(LedgerError, match="held by another process"):
            other.log.turn()  # the inner turn did not end the outer one
    with other.log.turn():
        other.close()


def test_a_reader_left_open_does_not_hold_up_checkpoints(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "_CHECKPOINT_EVERY", 2)
    ask(ledger, "a")
    reader = sqlite3.connect(tmp_path / "people.tacit", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchall()
    said: list[str] = []
    connect = durable._connect

    def watched(path: Path) -> Any:
        db = connect(path)
        db.set_trace_callback(said.append)
        return db

    monkeypatch.setattr(durable, "_connect", watched)
    ledger.log._file.release()
    for key in "bcd":
        ask(ledger, key)
    synced: list[str] = []
    monkeypatch.setattr(durable, "_sync", lambda path: synced.append(path.name))
    reopen(tmp_path).close()
    assert synced[:1] == ["people.tacit-wal"]  # where the checkpoint cannot prove it, the log is synced by itself
    waits = [before for before, pragma in itertools.pairwise(said) if "wal_checkpoint" in pragma]
    assert set(waits) == {"PRAGMA busy_timeout=100"}  # milliseconds, and not the minute that is waited for a turn
    assert len(waits) >= 4
    reader.close()


@pytest.mark.parametrize("name", ["people.tacit", "anchors.sqlite"])
def test_every_connection_has_the_settings_that_durability_rests_on(ledger: Ledger, name: str) -> None:
    ask(ledger, "a")
    file = {"people.tacit": ledger.log._file, "anchors.sqlite": ledger.log._anchor._file}[name]
    assert file.path.name == name
    for _ in range(2):
        settings = [
            file.read(lambda db, of=of: db.execute(f"PRAGMA {of}").fetchall()[0][0])
            for of in ("journal_mode", "synchronous", "wal_autocheckpoint")
        ]
        assert settings == ["wal", 2, 0]  # 2 is FULL
        file.release()  # and the next connection


# -- disks and damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", ["people.tacit", "anchors.sqlite"])
def test_a_disk_nearly_full_is_met_before_the_charge(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    reservation = ledger.reserve(PRICE, purpose="count")
    folder = tmp_path if full == "people.tacit" else tmp_path / "state"
    real = os.statvfs

    def statvfs(path: Path) -> Any:
        found = real(path)
        return os.statvfs_result([*found[:4], 10, *found[5:]]) if path == folder else found

    monkeypatch.setattr(os, "statvfs", statvfs)
    with pytest.raises(LedgerError, match=rf"holds {full} is nearly full\. Nothing was spent"):
        ledger.reserve(PRICE, purpose="count")
    ledger.settle(reservation, [Outcome("k", 10, "measured", "1")])  # what is paid for is still answered
    assert ledger.spent.atoms == 10


def test_a_log_without_its_file_is_not_played_into_a_new_one(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    log = (tmp_path / "people.tacit-wal").read_bytes()
    ledger.close()
    (tmp_path / "people.tacit").unlink()
    (tmp_path / "people.tacit-wal").write_bytes(log)
    with pytest.raises(LedgerError, match=r"people\.tacit-wal is still there"):
        Ledger.open(tmp_path / "people.tacit", make="missing", **terms(tmp_path), accept_rollback="gone")


def test_an_old_file_under_the_current_log_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """A tool copied the two at different times: the pages do not belong together, though both ends look right."""

    def put(*names: int) -> None:
        for name in names:
            ledger.settle(None, [Outcome(f"{name * 7919 % 1000:016x}", 0, "told", "x" * (50 + name * 37 % 350))])
        ledger.log._file.read(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())

    put(*range(60))
    old = (tmp_path / "people.tacit").read_bytes()
    put(*range(60, 90))
    ledger.settle(None, [Outcome("last", 0, "told", "x")])
    log = (tmp_path / "people.tacit-wal").read_bytes()
    ledger.close()
    (tmp_path / "people.tacit").write_bytes(old)
    (tmp_path / "people.tacit-wal").write_bytes(log)
    with pytest.raises(LedgerError, match="is damaged"):
        reopen(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET body = x'00ff' WHERE seq = 2",
        "UPDATE entries SET atoms = 'many' WHERE seq = 2",
        "UPDATE meta SET value = 'no json' WHERE key = 'terms'",
        "UPDATE meta SET value = '[1]' WHERE key = 'terms'",
        "UPDATE meta SET value = '[]' WHERE key = 'terms'",
        "UPDATE meta SET value = 'xyz' WHERE key = 'secret'",
        "DELETE FROM meta WHERE key = 'id'",
        "DELETE FROM meta WHERE key = 'secret'",
        "INSERT INTO entries VALUES (3, 'override', NULL, NULL, 0, 10, '', '', 'not json')",
        "INSERT INTO entries VALUES (3, 'override', NULL, NULL, 0, 10, '', '', '[]')",
    ],
)
def test_damage_is_a_public_sentence(ledger: Ledger, tmp_path: Path, change: str) -> None:
    ask(ledger, "a")
    ledger.close()
    drop = [f"DROP TRIGGER {table}_{verb}" for table in ("meta", "entries") for verb in ("UPDATE", "DELETE")]
    forgiving = [
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'kind TEXT NOT NULL', 'kind')",
    ]
    raw(tmp_path, *drop, *(forgiving if "NULL WHERE" in change else ()))
    raw(tmp_path, change)
    for accept in (None, "whatever it is"):
        with pytest.raises(TacitError, match=r"damaged|made with other terms"):
            reopen(tmp_path, accept_rollback=accept)


def test_a_damaged_entry_is_noticed_in_use(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "UPDATE entries SET body = x'00ff' WHERE seq = 2")
    for use in (lambda: ledger.find("a"), ledger.log.verify):
        with pytest.raises(LedgerError, match="entry 2 is not one"):
            use()


def test_a_budget_beyond_counting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="too large to be counted"):
        Ledger.open(tmp_path / "people.tacit", make="new", **{**terms(tmp_path), "total": Loss("epsilon", 2**63)})
    assert not (tmp_path / "people.tacit").exists()


def test_the_head_does_not_read_bodies(ledger: Ledger) -> None:
    """SQLite finds a column by reading those before it, so a body is not read if it is last and not asked for."""
    read: set[str] = set()

    def note(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table == "entries":
            read.add(str(column))
        return sqlite3.SQLITE_OK

    ledger.settle(None, [Outcome("big", 0, "told", "x" * 20_000_000)])
    ledger.log._file.read(lambda db: db.set_authorizer(note))
    assert ledger.spent.atoms == 0
    columns = ledger.log._file.read(lambda db: db.execute("SELECT name FROM pragma_table_info('entries')").fetchall())
    assert columns[-1] == ("body",)
    assert "spent" in read
    assert "body" not in read
    assert ledger.find("big") is not None
    assert "body" in read  # the control
