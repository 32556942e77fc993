"""What the ledger promises, apart from crashes (see tests/crash): charges, answers, races, old copies, tampering."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_tools import PRICE, ask, backup, reopen, restore, terms

from curators import open_intents, private_of
from support import processes
from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError, TacitError
from tacit.model.budget import Budget, Loss
from tacit.model.entry import GateTerms, Intent, decode
from tacit.store import chain
from tacit.store import file as durable
from tacit.trusted.ledger import Ledger, Outcome

# -- charges and answers ----------------------------------------------------------------------------------------------


def test_an_answer_is_charged_stored_and_found(ledger: Ledger) -> None:
    reservation = ledger.reserve(PRICE, purpose="count")
    assert (reservation, ledger.spent) == (1, PRICE)
    [entry] = ledger.settle(reservation, [Outcome("k", 7, "measured", '{"value":3}')])
    assert (entry.seq, entry.kind, entry.key, entry.intent, entry.atoms, entry.spent) == (2, "measured", "k", 1, 7, 7)
    assert ledger.find("k") == entry
    assert (ledger.spent, ledger.total) == (Loss("epsilon", 7), Loss("epsilon", 1000))
    assert ledger.log.head()[:2] == (2, entry.hash)
    assert ledger.log.verify() == 2


def test_everything_is_there_after_reopening(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k", '{"value":"é\\u0000"}')
    ledger.reserve(PRICE, purpose="count")
    entries, head = list(ledger.log.lines()), ledger.log.head()[:2]
    ledger.close()
    again = reopen(tmp_path)
    assert (list(again.log.lines()), again.log.head()[:2]) == (entries, head)
    assert again.spent.atoms == 20  # the reservation without outcome counts
    assert [e.kind for e in again.log.lines(after=1)] == ["measured", "intent"]
    assert [e.seq for e in again.log.lines(kinds=["intent"])] == [1, 3]


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
    entries = ledger.settle(None, [Outcome(key, 0, "told", key) for key in keys])
    assert [entry.body for entry in entries] == keys
    assert list(ledger.find_many(keys).values()) == entries
    assert list(ledger.log.lines()) == entries
    assert ledger.log.verify() == 1201


def test_a_batch_shares_its_reservation(ledger: Ledger) -> None:
    reservation = ledger.reserve(Loss("epsilon", 30), purpose="batch")
    entries = ledger.settle(
        reservation, [Outcome("a", 10, "measured", "1"), Outcome("b", 0, "told", "2"), Outcome("a", 5, "measured", "3")]
    )
    assert [entry.body for entry in entries] == ["1", "2", "1"]  # a key has one answer, also within a batch
    assert ledger.spent.atoms == 15
    assert ledger.log.verify() == 4


def test_the_budget_is_never_passed(ledger: Ledger) -> None:
    ledger.reserve(Loss("epsilon", 995), purpose="most")
    head = ledger.log.head()[:2]
    with pytest.raises(BudgetExhausted, match=r"costs 1 % of the budget and 0\.5 % is left\. Nothing was spent"):
        ledger.reserve(PRICE, purpose="one too many")
    with pytest.raises(BudgetExhausted):
        ledger.reserve(Loss("epsilon", 6), purpose="one atom too many")
    assert ledger.log.head()[:2] == head
    ledger.reserve(Loss("epsilon", 5), purpose="exactly what is left")
    assert ledger.spent == ledger.total
    ledger.settle(ledger.reserve(Loss("epsilon", 0), purpose="nothing"), [Outcome("a", 0, "told", "1")])
    ledger.settle(None, [Outcome("b", 0, "told", "2")])
    assert ledger.log.verify() == 5


def test_a_refusal_by_less_than_is_printed_says_so(tmp_path: Path) -> None:
    total = Loss("epsilon", 10**12 - 1)
    ledger = Ledger.open(tmp_path / "people.tacit", make="new", **{**terms(tmp_path), "total": total})
    with pytest.raises(BudgetExhausted, match="costs 100 % of the budget and slightly less is left"):
        ledger.reserve(Loss("epsilon", 10**12), purpose="all")


def test_wrong_calls_are_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="counts epsilon"):
        ledger.reserve(Loss("rho", 1), purpose="other measure")
    with pytest.raises(ValueError, match="at least 0"):
        ledger.reserve(Loss("epsilon", -1), purpose="refill")
    intent = ledger.reserve(PRICE, purpose="count")
    with pytest.raises(ValueError, match="at least one"):
        ledger.settle(intent, [])
    with pytest.raises(ValueError, match="more is charged than was reserved"):
        ledger.settle(intent, [Outcome("k", 11, "measured", "1")])
    with pytest.raises(ValueError, match="nothing gives budget back"):
        ledger.settle(intent, [Outcome("k", 10, "measured", "1"), Outcome("l", -2, "measured", "1")])
    with pytest.raises(ValueError, match="an intent that reserved it"):
        ledger.settle(None, [Outcome("k", 1, "told", "1")])
    with pytest.raises(ValueError, match="no line 99"):
        ledger.settle(99, [Outcome("k", 10, "measured", "1")])
    assert ledger.find("k") is None
    ledger.settle(intent, [Outcome("k", 10, "measured", "1")])
    for ended in (intent, 2):  # an outcome is no intent
        with pytest.raises(ValueError, match="never made, or settled before"):
            ledger.settle(ended, [Outcome("l", 10, "measured", "1")])
    assert (ledger.spent.atoms, ledger.log.verify()) == (10, 2)


def test_private_state_is_taken_by_one_and_put_back_with_the_answers(ledger: Ledger, tmp_path: Path) -> None:
    # Catches two processes that compare against one threshold, and a gate that goes on after its answers were lost.
    gate = ledger.reserve(PRICE, purpose="gate", private="0.123")
    other = reopen(tmp_path)
    held = ledger.take_private(gate)
    assert held is not None
    assert held.value == "0.123"
    assert [one.take_private(gate) for one in (other, ledger)] == [None, None]
    assert private_of(other.log, gate) is None
    ledger.settle(None, [Outcome("free", 0, "told", "1")], private=held)
    with pytest.raises(AnswerWithheld):  # a copy of what was taken, in a fork or another object, is worth nothing now
        other.settle(None, [Outcome("more", 0, "told", "1")], private=held)
    again = other.take_private(gate)
    assert again is not None
    other.settle(gate, [Outcome("shut", PRICE.atoms, "measured", "1")])
    with pytest.raises(AnswerWithheld):  # nor is it after the intent was settled
        other.settle(None, [Outcome("more", 0, "told", "1")], private=again)
    assert other.find("more") is None
    assert ledger.take_private(gate) is None
    other.close()


def test_an_override_forgets_private_state(tmp_path: Path) -> None:
    # What is open in an old copy may have been shut since: its noise must not answer again.
    ledger = Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path))
    gate = ledger.reserve(PRICE, purpose="gate", private="0.123")
    copy = backup(tmp_path, "old")
    ledger.settle(gate, [Outcome("shut", PRICE.atoms, "measured", "1")])
    ledger.close()
    restore(tmp_path, copy)
    again = reopen(tmp_path, accept_rollback="lost a disk")
    assert private_of(again.log, gate) is None
    again.close()


def test_private_state_lasts_until_its_intent_is_settled(ledger: Ledger, tmp_path: Path) -> None:
    gate = ledger.reserve(PRICE, purpose=GateTerms("me", 3.0, 1.0, 2.0, 10), private="0.123")
    plain = ledger.reserve(PRICE, purpose="count")
    ledger.settle(None, [Outcome("below", 0, "told", "false")])
    ledger.close()
    again = reopen(tmp_path)
    assert [entry.seq for entry in open_intents(again.log)] == [gate, plain]
    assert decode("intent", open_intents(again.log)[0].body) == Intent(GateTerms("me", 3.0, 1.0, 2.0, 10))
    assert (private_of(again.log, gate), private_of(again.log, plain)) == ("0.123", None)
    assert not any("0.123" in entry.body for entry in again.log.lines())
    again.settle(gate, [Outcome("above", 10, "measured", "true")])
    assert (private_of(again.log, gate), [entry.seq for entry in open_intents(again.log)]) == (None, [plain])
    assert again.log.verify() == 4


# -- threads and processes --------------------------------------------------------------------------------------------


def test_threads_spend_exactly_the_budget(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path, answers=40))
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
    assert (len(refused), len(list(ledger.log.lines(kinds=["measured"])))) == (24, 40)
    assert ledger.spent == ledger.total
    assert ledger.log.verify() == 80


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
            with ledger.log.turn():
                found = ledger.find(f"shared/{i}")
                shown.append(found.body if found else ask(ledger, f"shared/{i}", f'"{name}"'))
    return shown


def in_processes(work: Any, folder: Path) -> list[list[str]]:
    with processes(8) as pool:
        return pool.starmap(work, [(folder, name) for name in range(8)], chunksize=1)


def test_processes_spend_exactly_the_budget(ledger: Ledger, tmp_path: Path) -> None:
    shown = [body for bodies in in_processes(hammer, tmp_path) for body in bodies]
    assert len(shown) == len(set(shown)) == 100  # of the 160 asked
    assert {entry.body for entry in ledger.log.lines(kinds=["measured"])} == set(shown)
    assert (ledger.spent, ledger.log.verify()) == (ledger.total, 200)


def test_processes_that_take_turns_pay_once(ledger: Ledger, tmp_path: Path) -> None:
    shown = in_processes(same_questions, tmp_path)
    assert all(bodies == shown[0] for bodies in shown)
    assert (ledger.spent.atoms, ledger.log.verify()) == (20 * PRICE.atoms, 40)


def test_threads_that_take_turns_pay_once(ledger: Ledger) -> None:
    def work() -> None:
        for i in range(10):
            with ledger.log.turn(), ledger.log.turn():
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
    [first] = other.settle(theirs, [Outcome("k", 10, "measured", '"theirs"')])
    assert ledger.settle(ours, [Outcome("k", 10, "measured", '"ours"'), Outcome("l", 0, "told", '"more"')])[0] == first
    assert (ledger.spent.atoms, ledger.log.verify()) == (20, 5)
    assert not any("ours" in entry.body for entry in ledger.log.lines())


def test_parent_and_forked_child_both_go_on(ledger: Ledger) -> None:
    ask(ledger, "before")
    with ledger.log.turn():
        child = os.fork()
    if child == 0:
        try:
            with ledger.log.turn():
                ask(ledger, "child")
            os._exit(0)
        finally:
            os._exit(1)
    ask(ledger, "parent")
    assert os.waitpid(child, 0)[1] == 0
    assert len(ledger.find_many(["before", "child", "parent"])) == 3
    assert ledger.log.verify() == 6


# -- which ledger is this? --------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_it(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    with ledger.log.turn():
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir() if p.is_file()}
    assert modes == dict.fromkeys([f"people.tacit{s}" for s in ("", "-wal", "-shm", ".lock")], 0o600)


def test_create_replaces_nothing(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path))
    assert ledger.log.verify() == 2
    (tmp_path / "empty").touch()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.open(tmp_path / "empty", make="new", **terms(tmp_path))
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.open(tmp_path / "no" / "folder", make="new", **terms(tmp_path))


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
    with pytest.raises(LedgerError, match=f"made with other terms: {named}\\.") as caught:
        reopen(tmp_path, **changed)
    assert "secret" not in str(caught.value)


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

    @property
    def in_transaction(self) -> bool:
        return self.db.in_transaction

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
    ledger = Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path))
    reservation = ledger.reserve(PRICE, purpose="count")
    Failing.armed = error
    with pytest.raises(AnswerWithheld, match=f"{sentence}.*stays spent") as caught:
        ledger.settle(reservation, [Outcome("k", 5, "measured", "1")])
    assert "Nothing was spent" not in str(caught.value)
    with pytest.raises(LedgerError, match=f"{sentence}.*may or may not count") as refused:
        ledger.reserve(PRICE, purpose="count")
    assert "Nothing was spent" not in str(refused.value)  # the log may hold the commit whose sync failed
    for raised in (caught, refused):
        assert "private" not in str(raised.value)
        assert raised.value.__suppress_context__
    Failing.armed = None
    assert ledger.find("k") is None
    assert (ledger.spent.atoms, ledger.log.verify()) == (10, 1)


@pytest.mark.parametrize("error", ["SQLITE_CANTOPEN", "SQLITE_READONLY_CANTINIT"])
def test_a_read_only_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    """SQLite says no more than of any other file that it cannot open."""
    Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path)).close()
    monkeypatch.setattr(durable, "_connect", Failing)
    monkeypatch.setattr(Failing, "armed", error)
    with pytest.raises(LedgerError) as another:
        Ledger.open(tmp_path / "people.tacit", **terms(tmp_path))
    assert "read-only" not in str(another.value)
    flags = list(os.statvfs(tmp_path))
    flags[8] |= os.ST_RDONLY
    monkeypatch.setattr(durable.os, "statvfs", lambda path: os.statvfs_result(flags))
    with pytest.raises(
        LedgerError, match=r"^people\.tacit cannot be .*: it is on a file system that is mounted read-only"
    ):
        Ledger.open(tmp_path / "people.tacit", **terms(tmp_path))


def test_a_turn_on_a_read_only_file_system_says_so(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(durable.io, "FileIO", refuse)
    with pytest.raises(LedgerError, match=r"\.lock cannot be locked: it is on a file system that is mounted read-only"):
        ledger.log._file.turn()


def test_an_anchor_that_cannot_follow_withholds_the_answer(ledger: Ledger, tmp_path: Path) -> None:
    reservation = ledger.reserve(PRICE, purpose="count")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(AnswerWithheld, match="stays spent"):
        ledger.settle(reservation, [Outcome("k", 10, "measured", "1")])
    with pytest.raises(LedgerError):
        ledger.reserve(PRICE, purpose="count")


def test_a_ledger_held_too_long_is_reported(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_PATIENCE", 0.02)
    other = reopen(tmp_path)

    def hold(_: Any) -> None:
        with pytest.raises(LedgerError, match="held by another process"):
            other.reserve(PRICE, purpose="count")

    ledger.log._file.transact(hold)
    ask(other, "k")


def test_the_log_does_not_grow_for_ever(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_CHECKPOINT_EVERY", 8)
    sizes = Counter[int]()
    for i in range(60):
        ledger.settle(None, [Outcome(str(i), 0, "told", "x" * 500)])
        sizes[(tmp_path / "people.tacit-wal").stat().st_size] += 1
    assert max(sizes) < 400_000


def test_a_damaged_file_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    for i in range(30):
        ledger.settle(None, [Outcome(str(i), 0, "told", "x" * 500)])
    ledger.close()
    content = bytearray((tmp_path / "people.tacit").read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    (tmp_path / "people.tacit").write_bytes(content)
    with pytest.raises(TacitError, match="is damaged"):
        reopen(tmp_path)


@given(st.lists(st.none() | st.integers(-(2**62), 2**63 - 1) | st.text(), max_size=5))
def test_lines_are_sealed_by_the_one_spelling_of_json(fields: list[Any]) -> None:
    """A quicker speller is used where it says the same; text of any kind is sealed by the same hash as ever."""
    assert chain._sealed(fields) == chain.digest(fields)


@pytest.mark.parametrize("text", ["\x7f", "\x00\x1f", "é", "\ud800", "\U0001f600", '"\\/'])
def test_awkward_text_is_sealed_by_the_one_spelling_of_json(text: str) -> None:
    assert chain._sealed([text, 1, None]) == chain.digest([text, 1, None])
