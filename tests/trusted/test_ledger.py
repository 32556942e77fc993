"""What the ledger promises, apart from crashes (see tests/crash): charges, answers, races, old copies, tampering."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError, TacitError
from tacit.model.budget import Budget, Loss
from tacit.trusted import durable
from tacit.trusted.anchor import Anchor
from tacit.trusted.ledger import Ledger, Outcome, Reservation

PRICE = Loss("epsilon", 10)


def terms(folder: Path, answers: int = 100) -> dict[str, Any]:
    return {
        "budget": Budget(epsilon=1.0, delta=0.0),
        "total": Loss("epsilon", answers * PRICE.atoms),
        "binding": {"domain": "secret-domain-hash", "data": "secret-fingerprint"},
        "anchor": Anchor(folder / "state" / "anchors.sqlite"),
    }


def reopen(folder: Path, answers: int = 100, **more: Any) -> Ledger:
    return Ledger.open(folder / "people.tacit", **{**terms(folder, answers), **more})


def ask(ledger: Ledger, key: str, body: str = '{"value":1}', charge: int = PRICE.atoms) -> str:
    return ledger.settle(ledger.reserve(PRICE, purpose="count"), [Outcome(key, charge, body)])[0].body


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "people.tacit", **terms(tmp_path)) as made:
        yield made


def raw(folder: Path, *statements: str) -> None:
    """Somebody with an SQLite shell."""
    db = sqlite3.connect(folder / "people.tacit", isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def backup(folder: Path, name: str) -> Path:
    """A consistent copy, as `sqlite3 .backup` makes it."""
    source, target = sqlite3.connect(folder / "people.tacit"), sqlite3.connect(folder / name)
    source.backup(target)
    source.close()
    target.close()
    return folder / name


def restore(folder: Path, copy: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (folder / f"people.tacit{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, folder / "new")
    os.replace(folder / "new", folder / "people.tacit")


# -- charges and answers ----------------------------------------------------------------------------------------------


def test_an_answer_is_charged_stored_and_found(ledger: Ledger) -> None:
    reservation = ledger.reserve(PRICE, purpose="count")
    assert (reservation, ledger.spent) == (Reservation(1, 10), PRICE)
    [entry] = ledger.settle(reservation, [Outcome("k", 7, '{"value":3}')])
    assert (entry.seq, entry.kind, entry.key, entry.intent, entry.atoms, entry.spent) == (2, "outcome", "k", 1, 7, 7)
    assert ledger.find("k") == entry
    assert (ledger.spent, ledger.left) == (Loss("epsilon", 7), Loss("epsilon", 993))
    assert ledger.head == (2, entry.hash)
    assert ledger.verify() == 2


def test_everything_is_there_after_reopening(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k", '{"value":"é\\u0000"}')
    ledger.reserve(PRICE, purpose="count")
    entries, head = list(ledger.entries()), ledger.head
    ledger.close()
    again = reopen(tmp_path)
    assert (list(again.entries()), again.head) == (entries, head)
    assert again.spent.atoms == 20  # the reservation without outcome counts
    assert [e.kind for e in again.entries(after=1)] == ["outcome", "intent"]
    assert [e.seq for e in again.entries(kind="intent")] == [1, 3]


@pytest.mark.parametrize("body", ["0", "null", "", '""', "false"])
def test_a_released_nothing_is_an_answer(ledger: Ledger, body: str) -> None:
    ask(ledger, "", body)
    found = ledger.find("")
    assert found is not None
    assert found.body == body
    assert ask(ledger, "", "1") == body


def test_unknown_keys_are_not_found(ledger: Ledger) -> None:
    ask(ledger, "k")
    assert ledger.find("other") is None
    assert ledger.find_many([]) == {}
    assert set(ledger.find_many(["k", "other", "k"])) == {"k"}


def test_batches_and_pages_longer_than_one_statement(ledger: Ledger) -> None:
    keys = [f"k{i}" for i in range(1201)]
    entries = ledger.settle(None, [Outcome(key, 0, key) for key in keys])
    assert [entry.body for entry in entries] == keys
    assert list(ledger.find_many(keys).values()) == entries
    assert list(ledger.entries()) == entries
    assert ledger.verify() == 1201


def test_a_batch_shares_its_reservation(ledger: Ledger) -> None:
    reservation = ledger.reserve(Loss("epsilon", 30), purpose="batch")
    entries = ledger.settle(reservation, [Outcome("a", 10, "1"), Outcome("b", 0, "2"), Outcome("a", 5, "3")])
    assert [entry.body for entry in entries] == ["1", "2", "1"]  # a key has one answer, also within a batch
    assert ledger.spent.atoms == 15
    assert ledger.verify() == 4


def test_the_budget_is_never_passed(ledger: Ledger) -> None:
    ledger.reserve(Loss("epsilon", 995), purpose="most")
    head = ledger.head
    with pytest.raises(BudgetExhausted, match=r"costs epsilon = 1e-11 and epsilon = 5e-12 is left.*Nothing was spent"):
        ledger.reserve(PRICE, purpose="one too many")
    with pytest.raises(BudgetExhausted):
        ledger.reserve(Loss("epsilon", 6), purpose="one atom too many")
    assert ledger.head == head
    ledger.reserve(Loss("epsilon", 5), purpose="exactly what is left")
    assert ledger.left.atoms == 0
    ledger.settle(ledger.reserve(Loss("epsilon", 0), purpose="nothing"), [Outcome("a", 0, "1")])
    ledger.settle(None, [Outcome("b", 0, "2")])
    assert ledger.verify() == 5


def test_a_refusal_by_less_than_is_printed_says_so(tmp_path: Path) -> None:
    total = Loss("epsilon", 10**12 - 1)
    ledger = Ledger.create(tmp_path / "people.tacit", **{**terms(tmp_path), "total": total})
    with pytest.raises(BudgetExhausted, match="costs epsilon = 1 and slightly less is left"):
        ledger.reserve(Loss("epsilon", 10**12), purpose="all")


def test_wrong_calls_are_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="counts epsilon"):
        ledger.reserve(Loss("rho", 1), purpose="other measure")
    with pytest.raises(ValueError, match="at least 0"):
        ledger.reserve(Loss("epsilon", -1), purpose="refill")
    reservation = ledger.reserve(PRICE, purpose="count")
    for outcomes in ([], [Outcome("k", 11, "1")], [Outcome("k", 12, "1"), Outcome("l", -2, "1")]):
        with pytest.raises(ValueError, match="at most the 10 atoms"):
            ledger.settle(reservation, outcomes)
    with pytest.raises(ValueError, match="at most the 0 atoms"):
        ledger.settle(None, [Outcome("k", 1, "1")])
    for forged in (Reservation(99, 10), Reservation(reservation.seq, 500)):
        with pytest.raises(ValueError, match="not one of this ledger"):
            ledger.settle(forged, [Outcome("k", 10, "1")])
    assert ledger.find("k") is None
    ledger.settle(reservation, [Outcome("k", 10, "1")])
    with pytest.raises(ValueError, match="settled before"):
        ledger.settle(reservation, [Outcome("l", 10, "1")])
    with pytest.raises(ValueError, match="not one of this ledger"):
        ledger.settle(Reservation(2, 10), [Outcome("l", 10, "1")])  # an outcome is no intent
    assert (ledger.spent.atoms, ledger.verify()) == (10, 2)


# -- threads and processes --------------------------------------------------------------------------------------------


def test_threads_spend_exactly_the_budget(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "people.tacit", **terms(tmp_path, answers=40))
    refused = []

    def work(name: int) -> None:
        for i in range(8):
            try:
                ask(ledger, f"{name}/{i}")
            except BudgetExhausted:
                refused.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(refused), len(list(ledger.entries(kind="outcome"))), ledger.left.atoms) == (24, 40, 0)
    assert ledger.verify() == 80


def hammer(folder: Path, name: int) -> list[str]:
    """One process: distinct questions until the budget is gone."""
    shown = []
    with reopen(folder) as ledger:
        for i in range(20):
            try:
                shown.append(ask(ledger, f"{name}/{i}", f'"{name}/{i}"'))
            except BudgetExhausted:
                break
    return shown


def same_questions(folder: Path, name: int) -> list[str]:
    """One process: the questions that all ask, each looked up first, under the lock."""
    shown = []
    with reopen(folder) as ledger:
        for i in range(20):
            with ledger.lock():
                found = ledger.find(f"shared/{i}")
                shown.append(found.body if found else ask(ledger, f"shared/{i}", f'"{name}"'))
    return shown


def in_processes(work: Any, folder: Path) -> list[list[str]]:
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        return pool.starmap(work, [(folder, name) for name in range(8)], chunksize=1)


def test_processes_spend_exactly_the_budget(ledger: Ledger, tmp_path: Path) -> None:
    shown = [body for bodies in in_processes(hammer, tmp_path) for body in bodies]
    assert len(shown) == len(set(shown)) == 100  # of the 160 asked
    assert {entry.body for entry in ledger.entries(kind="outcome")} == set(shown)
    assert (ledger.left.atoms, ledger.verify()) == (0, 200)


def test_processes_that_take_turns_pay_once(ledger: Ledger, tmp_path: Path) -> None:
    shown = in_processes(same_questions, tmp_path)
    assert all(bodies == shown[0] for bodies in shown)
    assert (ledger.spent.atoms, ledger.verify()) == (20 * PRICE.atoms, 40)


def test_threads_that_take_turns_pay_once(ledger: Ledger) -> None:
    def work() -> None:
        for i in range(10):
            with ledger.lock(), ledger.lock():
                if ledger.find(str(i)) is None:
                    ask(ledger, str(i))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent.atoms == 10 * PRICE.atoms


def test_a_lost_race_shows_the_first_answer_and_still_pays(ledger: Ledger, tmp_path: Path) -> None:
    other = reopen(tmp_path)
    ours, theirs = ledger.reserve(PRICE, purpose="count"), other.reserve(PRICE, purpose="count")
    [first] = other.settle(theirs, [Outcome("k", 10, '"theirs"')])
    assert ledger.settle(ours, [Outcome("k", 10, '"ours"'), Outcome("l", 0, '"more"')])[0] == first
    assert (ledger.spent.atoms, ledger.verify()) == (20, 5)
    assert not any("ours" in entry.body for entry in ledger.entries())


def test_a_forked_child_does_not_share_the_connection(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the parent's connection, the child would read what the parent has not committed."""
    monkeypatch.setattr(durable, "_PRAGMAS", ("PRAGMA busy_timeout=20", *durable._PRAGMAS[1:]))
    with ledger._file.transaction() as db:
        ledger._append(db, ledger._head(), "outcome", atoms=0, spent=0, body="not committed", key="k")
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if ledger.find("k") is None else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert ledger.find("k") is not None
    assert ledger.verify() == 1


def test_parent_and_forked_child_both_go_on(ledger: Ledger) -> None:
    ask(ledger, "before")
    with ledger.lock():
        child = os.fork()
    if child == 0:
        try:
            with ledger.lock():
                ask(ledger, "child")
            os._exit(0)
        finally:
            os._exit(1)
    ask(ledger, "parent")
    assert os.waitpid(child, 0)[1] == 0
    assert len(ledger.find_many(["before", "child", "parent"])) == 3
    assert ledger.verify() == 6


# -- which ledger is this? --------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_it(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    with ledger.lock():
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir() if p.is_file()}
    assert modes == dict.fromkeys([f"people.tacit{s}" for s in ("", "-wal", "-shm", ".lock")], 0o600)


def test_create_replaces_nothing(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(tmp_path / "people.tacit", **terms(tmp_path))
    assert ledger.verify() == 2
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(tmp_path / "empty", **terms(tmp_path))
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.create(tmp_path / "no" / "folder", **terms(tmp_path))


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("age,sex\n" * 1000)
    for name, mode in (("database", "DELETE"), ("wal-database", "WAL")):
        db = sqlite3.connect(tmp_path / name)
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE entries (x)")
        db.close()
    for path in list(tmp_path.iterdir()):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(LedgerError) as caught:
            Ledger.open(path, **terms(tmp_path))
        assert path.name in caught.value.sentence
        assert "SELECT" not in caught.value.sentence
        assert (path.read_bytes() if path.is_file() else b"") == before
    with pytest.raises(LedgerError, match="There is no ledger missing"):
        Ledger.open(tmp_path / "missing", **terms(tmp_path))
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"budget": Budget(epsilon=2.0, delta=0.0)}, "budget"),
        ({"total": Loss("epsilon", 2000)}, "total"),
        ({"binding": {"domain": "secret-domain-hash", "data": "secret-other"}}, "data"),
        ({"binding": {"domain": "secret-other"}}, "data and domain"),
    ],
)
def test_other_terms_are_refused_by_name_only(ledger: Ledger, tmp_path: Path, changed: Any, named: str) -> None:
    ledger.close()
    with pytest.raises(LedgerError, match=f"made with another {named}\\.") as caught:
        reopen(tmp_path, **changed)
    assert "secret" not in str(caught.value)


# -- tampering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["UPDATE entries SET spent = 0", "DELETE FROM entries", "DELETE FROM meta"])
def test_entries_cannot_be_changed_by_accident(ledger: Ledger, tmp_path: Path, statement: str) -> None:
    ask(ledger, "k")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw(tmp_path, statement)


@pytest.mark.parametrize(
    ("change", "first_bad"),
    [
        ("UPDATE entries SET body = '{\"value\":2}' WHERE seq = 4", 4),
        ("UPDATE entries SET spent = spent - 10 WHERE seq >= 3", 3),
        ("UPDATE entries SET time = '' WHERE seq = 5", 5),
        ("DELETE FROM entries WHERE seq = 3", 4),
        ("UPDATE entries SET kind = 'refund' WHERE seq = 6", 6),
    ],
)
def test_verify_names_the_first_bad_entry(ledger: Ledger, tmp_path: Path, change: str, first_bad: int) -> None:
    for key in "abcd":
        ask(ledger, key)
    assert ledger.verify() == 8
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "DROP TRIGGER entries_DELETE", change)
    with pytest.raises(LedgerError, match=f"entry {first_bad} does not follow"):
        ledger.verify()


@pytest.mark.parametrize("spent", [0, 5, 25])
def test_verify_derives_the_running_totals(ledger: Ledger, spent: int) -> None:
    """A well-hashed chain with a wrong total, as a bug would write it."""
    ask(ledger, "a")
    with ledger._file.transaction() as db:
        ledger._append(db, ledger._head(), "intent", atoms=10, spent=spent, body="{}")
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        ledger.verify()


@pytest.mark.parametrize("values", [{"atoms": 11}, {"atoms": 0, "intent": 1}, {"atoms": 5}, {"atoms": -1}])
def test_verify_knows_what_an_outcome_may_charge(ledger: Ledger, values: dict[str, int]) -> None:
    """More than reserved, an intent settled before, a charge without intent, a negative charge."""
    ask(ledger, "a")
    intent = ledger.reserve(PRICE, purpose="count").seq
    link: dict[str, Any] = {"intent": intent} if values["atoms"] in (11, -1) else {}
    link |= values
    with ledger._file.transaction() as db:
        head = ledger._head()
        spent = head.spent + link["atoms"] - (10 if link.get("intent") == intent else 0)
        ledger._append(db, head, "outcome", spent=spent, body="{}", key="b", **link)
    with pytest.raises(LedgerError, match="entry 4 does not follow"):
        ledger.verify()


def test_a_changed_end_is_noticed_when_opening(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    ledger.close()
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "UPDATE entries SET spent = 0 WHERE seq = 2")
    with pytest.raises(LedgerError, match="entry 2 does not follow"):
        reopen(tmp_path)


@pytest.mark.parametrize("answers", [0, 1])
def test_a_raised_total_is_noticed(ledger: Ledger, tmp_path: Path, answers: int) -> None:
    for i in range(answers):
        ask(ledger, str(i))
    ledger.close()
    raw(tmp_path, "DROP TRIGGER meta_UPDATE", "UPDATE meta SET value = '[\"epsilon\",5000]' WHERE key = 'total'")
    with pytest.raises(LedgerError, match=r"does not follow|differs from"):
        reopen(tmp_path, total=Loss("epsilon", 5000))


# -- old copies -------------------------------------------------------------------------------------------------------


def test_an_old_copy_is_refused_and_never_refills(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    copy = backup(tmp_path, "old")
    ask(ledger, "b")
    ledger.close()
    restore(tmp_path, copy)
    with pytest.raises(LedgerError, match=r"its last entry is 2, the anchor has seen 4.*accept-rollback"):
        reopen(tmp_path)
    with pytest.raises(LedgerError, match="accept_rollback"):
        reopen(tmp_path, accept_rollback="")
    with reopen(tmp_path, accept_rollback="the disk broke") as again:
        assert again.spent.atoms == 20  # as the anchor saw, not as the copy says
        [override] = again.entries(kind="override")
        assert override.seq == 5  # past what was lost
        assert "the disk broke" in override.body
        assert ask(again, "b", '"new"') == '"new"'
        assert again.verify() == 5
    with reopen(tmp_path, accept_rollback="no need") as again:  # accepted once, for good
        assert (again.spent.atoms, len(list(again.entries(kind="override")))) == (30, 1)


def test_an_old_copy_of_the_new_history_is_refused_too(ledger: Ledger, tmp_path: Path) -> None:
    empty = backup(tmp_path, "empty")
    for key in "abcdef":
        ask(ledger, key)
    ledger.close()
    restore(tmp_path, empty)
    reopen(tmp_path, accept_rollback="lost").close()
    accepted = backup(tmp_path, "accepted")
    with reopen(tmp_path) as again:
        ask(again, "g")
    restore(tmp_path, accepted)
    with pytest.raises(LedgerError, match="its last entry is 13, the anchor has seen 15"):
        reopen(tmp_path)


def test_two_continuations_of_one_copy_both_count(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    copy = backup(tmp_path, "copy")
    ask(ledger, "b")
    ledger.close()
    elsewhere = {"anchor": Anchor(tmp_path / "elsewhere" / "anchors.sqlite")}
    restore(tmp_path, copy)
    with reopen(tmp_path, **elsewhere, accept_rollback="moved") as moved:
        assert moved.spent.atoms == 10
        for key in "cd":
            ask(moved, key)
    with pytest.raises(LedgerError, match="differs from"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="came back") as again:
        assert again.spent.atoms == 50  # at least the 40 that were spent here and there
        assert again.verify() == 8


def test_without_an_anchor_it_may_be_an_old_copy(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    ledger.close()
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(LedgerError, match="anchor does not know this ledger"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="new machine") as again:
        assert '"lost":"unknown"' in next(again.entries(kind="override")).body
        assert again.spent.atoms == 10
    reopen(tmp_path).close()


def test_a_new_ledger_may_move(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    shutil.rmtree(tmp_path / "state")
    reopen(tmp_path).close()


def test_an_override_that_the_anchor_missed_is_finished(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = backup(tmp_path, "old")
    ask(ledger, "a")
    ledger.close()
    restore(tmp_path, copy)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "advance", crash)
        with pytest.raises(KeyboardInterrupt):
            reopen(tmp_path, accept_rollback="lost")
    with reopen(tmp_path) as again:
        assert again.spent.atoms == 10
        assert again._anchor.newest(again.id) == again._head()


def test_a_stored_answer_is_anchored_before_it_is_shown(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer died before the anchor knew. Once somebody else shows it, an old copy without it must be refused."""
    reader = reopen(tmp_path)
    copy = backup(tmp_path, "old")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Anchor, "advance", crash)
        with pytest.raises(KeyboardInterrupt):
            ask(ledger, "k")
    assert reader.find("k") is not None
    reader.close()
    ledger.close()
    restore(tmp_path, copy)
    with pytest.raises(LedgerError, match="older than"):
        reopen(tmp_path)


def test_a_file_replaced_under_a_session_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    copy = backup(tmp_path, "old")
    reservation = ledger.reserve(PRICE, purpose="count")
    ask(ledger, "a")
    restore(tmp_path, copy)
    with pytest.raises(LedgerError, match=r"cannot be read|replaced or removed"):
        ledger.reserve(PRICE, purpose="count")
    with pytest.raises(AnswerWithheld):
        ledger.settle(reservation, [Outcome("b", 10, "1")])


@pytest.mark.parametrize("spender", ["this session", "another process"])
def test_an_old_copy_written_into_the_open_file_is_refused(ledger: Ledger, tmp_path: Path, spender: str) -> None:
    copy = backup(tmp_path, "old")
    if spender == "this session":
        ledger.reserve(PRICE, purpose="count")  # an intent, of which the anchor does not know
    else:
        with reopen(tmp_path) as other:
            ask(other, "a")
    source, target = sqlite3.connect(copy), sqlite3.connect(tmp_path / "people.tacit")
    source.backup(target)
    target.close()
    assert ledger.spent.atoms == 0  # the session really sees the old copy
    with pytest.raises(LedgerError, match=r"replaced by another copy|older than"):
        ledger.reserve(PRICE, purpose="count")
    with pytest.raises(LedgerError, match=r"replaced by another copy|older than"):
        ledger.verify()


# -- disks that fail --------------------------------------------------------------------------------------------------


class Failing:
    """A connection whose COMMIT fails while `armed` names an error."""

    armed: str | None = None

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        if Failing.armed and sql == "COMMIT":
            error = sqlite3.OperationalError("INSERT INTO entries: private words")
            error.sqlite_errorname = Failing.armed
            raise error
        return self.db.execute(sql, values)

    def close(self) -> None:
        self.db.close()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("SQLITE_IOERR_FSYNC", "the disk reported an error"),
        ("SQLITE_FULL", "the disk is full"),
        ("SQLITE_SOMETHING", "cannot be used"),
    ],
)
def test_a_failing_disk_withholds_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, sentence: str
) -> None:
    monkeypatch.setattr(durable, "_connect", Failing)
    monkeypatch.setattr(Failing, "armed", None)
    ledger = Ledger.create(tmp_path / "people.tacit", **terms(tmp_path))
    reservation = ledger.reserve(PRICE, purpose="count")
    Failing.armed = error
    with pytest.raises(AnswerWithheld, match=f"{sentence}.*stays spent") as caught:
        ledger.settle(reservation, [Outcome("k", 5, "1")])
    assert "Nothing was spent" not in str(caught.value)
    with pytest.raises(LedgerError, match=f"{sentence}.*Nothing was spent") as refused:
        ledger.reserve(PRICE, purpose="count")
    for raised in (caught, refused):
        assert "private" not in str(raised.value)
        assert raised.value.__suppress_context__
    Failing.armed = None
    assert ledger.find("k") is None
    assert (ledger.spent.atoms, ledger.verify()) == (10, 1)


def test_an_anchor_that_cannot_follow_withholds_the_answer(ledger: Ledger, tmp_path: Path) -> None:
    reservation = ledger.reserve(PRICE, purpose="count")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(AnswerWithheld, match="stays spent"):
        ledger.settle(reservation, [Outcome("k", 10, "1")])
    with pytest.raises(LedgerError):
        ledger.reserve(PRICE, purpose="count")


def test_a_ledger_held_too_long_is_reported(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_PRAGMAS", ("PRAGMA busy_timeout=20", *durable._PRAGMAS[1:]))
    other = reopen(tmp_path)
    with ledger._file.transaction(), pytest.raises(LedgerError, match="held by another process"):
        other.reserve(PRICE, purpose="count")
    ask(other, "k")


def test_the_log_does_not_grow_for_ever(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_CHECKPOINT_EVERY", 8)
    sizes = Counter[int]()
    for i in range(60):
        ledger.settle(None, [Outcome(str(i), 0, "x" * 500)])
        sizes[(tmp_path / "people.tacit-wal").stat().st_size] += 1
    assert max(sizes) < 400_000


def test_a_damaged_file_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    for i in range(30):
        ledger.settle(None, [Outcome(str(i), 0, "x" * 500)])
    ledger.close()
    content = bytearray((tmp_path / "people.tacit").read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    (tmp_path / "people.tacit").write_bytes(content)
    with pytest.raises(TacitError, match="is damaged"):
        reopen(tmp_path)
