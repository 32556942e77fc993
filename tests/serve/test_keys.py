"""The file of keys: hashes only, mode 0600, atomic, and revocation that a running server sees."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tacit.errors import ConfigError
from tacit.serve import list_keys, make_key, revoke_key
from tacit.serve.audit import Audit
from tacit.serve.keys import KeyRing, digest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tacit.keys"


def test_a_key_is_seen_once_and_kept_as_a_hash(file: Path) -> None:
    old = os.umask(0)
    try:
        key = make_key(file, "ana", "analyst", 0.25)
    finally:
        os.umask(old)
    assert key.startswith("tacit_")
    assert len(key) == 6 + 43  # 256 bits
    assert file.stat().st_mode & 0o777 == 0o600
    for path in file.parent.iterdir():
        assert key.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0
    (made,) = list_keys(file)
    assert (made.name, made.role, made.quota, made.revoked) == ("ana", "analyst", 0.25, None)
    assert make_key(file, "bob", "reader") != key


def test_only_the_right_secret_opens(file: Path) -> None:
    key = make_key(file, "ana", "analyst")
    ring = KeyRing(file)
    found = ring.find(key)
    assert found is not None
    assert found.name == "ana"
    for wrong in ("", key[:-1], key + "x", key.swapcase(), "tacit_" + "A" * 43, "\udc80"):
        assert ring.find(wrong) is None
    assert ring.get(found.id) == found
    assert ring.get(0) is None
    ring.close()


def test_a_secret_whose_hash_is_nearly_right_opens_nothing(file: Path) -> None:
    """Catches a comparison of a part of the hash: one wrong byte, wherever it is, is a wrong key."""
    secret = make_key(file, "ana", "analyst")
    ring, right = KeyRing(file), digest(secret)
    for place in range(len(right)):
        nearly = bytes(byte ^ (i == place) for i, byte in enumerate(right))
        with sqlite3.connect(file) as db:
            db.execute("UPDATE keys SET hash = ?", (nearly,))
        db.close()
        assert ring.find(secret) is None, place
    with sqlite3.connect(file) as db:
        db.execute("UPDATE keys SET hash = ?", (right,))
    db.close()
    assert ring.find(secret) is not None
    ring.close()


def test_a_running_server_sees_new_and_revoked_keys(file: Path) -> None:
    first = make_key(file, "ana", "analyst")
    ring = KeyRing(file)
    assert ring.find(first)
    second = make_key(file, "bob", "owner")
    assert ring.find(second)
    revoked = revoke_key(file, "ana")
    assert revoked.revoked is not None
    assert ring.find(first) is None
    third = make_key(file, "ana", "reader")  # the name is free again
    assert ring.find(first) is None
    assert ring.find(third)
    with pytest.raises(ConfigError, match="no key in use"):
        revoke_key(file, "carl")
    os.replace(_other(file), file)  # another file in its place
    assert ring.find(third) is None
    ring.close()


def _other(file: Path) -> Path:
    other = file.with_name("other.keys")
    make_key(other, "zoe", "owner")
    for end in ("-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)
    return other


@pytest.mark.parametrize(
    ("name", "role", "quota"),
    [
        ("", "analyst", None),
        (" ana", "analyst", None),
        ("a" * 65, "analyst", None),
        ("a\nb", "analyst", None),
        ("ana", "admin", None),
        ("ana", "analyst", 0),
        ("ana", "analyst", 1.5),
        ("ana", "analyst", True),
        ("ana", "analyst", float("nan")),
        ("ana", "reader", 0.5),
    ],
)
def test_what_cannot_be_a_key(file: Path, name: str, role: str, quota: float | None) -> None:
    with pytest.raises(ConfigError):
        make_key(file, name, role, quota)  # type: ignore[arg-type]
    assert not file.exists() or not list_keys(file)


def test_a_name_is_in_use_once_whoever_is_quicker(file: Path) -> None:
    made, refused = [], []

    def work() -> None:
        try:
            made.append(make_key(file, "ana", "analyst"))
        except ConfigError:
            refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 7)


def test_files_that_are_not_ours_are_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="make the first key: `tacit token make NAME --role owner`"):
        KeyRing(file)
    file.write_bytes(b"no keys at all" * 100)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="not a file of keys"):
        KeyRing(file)
    with pytest.raises(ConfigError):
        make_key(file, "ana", "analyst")
    file.unlink()
    make_key(file, "ana", "analyst")
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        KeyRing(file)


def test_what_a_name_has_used_adds_up_and_lasts(file: Path) -> None:
    make_key(file, "ana", "analyst", 0.5)
    ring = KeyRing(file)
    ring.use("people", "ana", 5)
    ring.use("people", "ana", 7)
    ring.close()
    again = KeyRing(file)
    assert (again.used("people", "ana"), again.used("people", "bob"), again.used("others", "ana")) == (12, 0, 0)
    again.close()


def test_the_audit_log_is_bounded_and_survives_a_torn_line(tmp_path: Path) -> None:
    log = Audit(tmp_path / "people.audit", max_file=2_000, files=3)
    for number in range(200):
        log.write([{"who": "ana", "number": number}], paid=number % 50 == 0)
        log.sync()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3 * 2_000
    assert len(list(tmp_path.iterdir())) == 3
    assert [record["number"] for record in log.last(30)] == list(range(199, 169, -1))
    log.close()
    with (tmp_path / "people.audit").open("ab") as torn:
        torn.write(b'{"time": "20')
    log = Audit(tmp_path / "people.audit")
    log.write([{"who": "bob", "number": 200}], paid=True)
    assert [record["number"] for record in log.last(2)] == [200, 199]
    log.close()


def test_a_line_that_a_full_disk_cut_short_takes_no_other_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, write = Audit(tmp_path / "people.audit"), os.write

    def full(file: int, text: bytes) -> int:
        if len(text) < 20:
            raise OSError(28, "No space left on device")
        return write(file, text[:-19])

    log.write([{"who": "ana", "number": 1}], paid=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            log.write([{"who": "ana", "number": 2}], paid=True)
    for number in (3, 4):
        log.write([{"who": "ana", "number": number}], paid=True)
    assert [record["number"] for record in log.last(9)] == [4, 3, 1]
    assert b"\n\n" not in log.path.read_bytes()
    log.close()


@pytest.mark.parametrize("how", ["unlinked", "moved", "replaced"])
def test_an_audit_log_that_is_taken_away_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str) -> None:
    path = tmp_path / "people.audit"
    log = Audit(path)
    log.write([{"who": "ana", "number": 1}], paid=True)
    if how == "unlinked":
        path.unlink()
    else:
        path.rename(tmp_path / "elsewhere")
    if how == "replaced":
        path.write_text("")
    log.write([{"who": "ana", "number": 2}], paid=True)
    log.sync()
    newest = log.last(5)
    assert [record.get("number") for record in newest] == [2, None]
    assert "taken away" in newest[1]["note"]
    assert "taken away" in caplog.text
    log.close()


def test_what_was_paid_is_synced_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.audit"
    log = Audit(path)
    synced: list[bool] = []
    broken = False

    def fsync(file: int) -> None:
        synced.append(os.path.samestat(os.fstat(file), os.stat(path)))
        if broken:
            raise OSError("the disk is gone")

    monkeypatch.setattr(os, "fsync", fsync)
    log.write([{"who": "rea", "free": 1}], paid=False)
    log.sync()
    assert synced == []  # what is free need not be on the disk
    for _ in range(2):
        log.write([{"who": "ana", "cost": 1}], paid=True)
        log.sync()
    assert synced == [True, True]
    broken = True
    log.write([{"who": "ana", "cost": 1}], paid=True)
    for _ in range(2):  # and as long as it is not there, nobody else is told that it is
        with pytest.raises(OSError, match="gone"):
            log.sync()
    assert len(synced) == 4
    broken = False
    log.sync()
    log.close()
    assert synced == [True] * 6


def test_a_file_of_keys_on_a_read_only_disk_is_called_that(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_key(file, "ana", "analyst")

    class ReadOnly(sqlite3.OperationalError):
        sqlite_errorname = "SQLITE_READONLY_DIRECTORY"

    def connect(*_: object, **__: object) -> sqlite3.Connection:
        raise ReadOnly

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(ConfigError, match="cannot be written where it is"):
        KeyRing(file)


@pytest.mark.parametrize("how", ["os.open", "sqlite3.connect", "Verifier.of"])
def test_keys_on_a_file_system_that_is_mounted_read_only_say_so(
    file: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def read_only(*_: object, **__: object) -> Any:
        if how == "os.open":
            raise OSError(errno.EROFS, "Read-only file system")
        raise sqlite3.OperationalError("attempt to write a readonly database")

    make_key(file, "ana", "analyst")
    if how != "os.open":
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    monkeypatch.setattr(f"tacit.serve.keys.{how}", read_only)
    with pytest.raises(ConfigError, match="cannot be written: it is on a file system that is mounted read-only"):
        make_key(file, "bob", "analyst")
