"""Old copies, other anchors, tampering, deleted files: nothing refills the budget or changes an answer unnoticed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from ledger_tools import PRICE, ask, backup, raw, reopen, restore, terms, write

from curators import open_intents
from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError
from tacit.model.budget import Loss
from tacit.store import log as log_module
from tacit.store import rows
from tacit.store.anchor import Anchor, Identity
from tacit.store.chain import Draft, Mark, seal
from tacit.store.conditions import now
from tacit.store.log import Log
from tacit.trusted.ledger import Ledger, Outcome

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
    assert ledger.log.verify() == 8
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "DROP TRIGGER entries_DELETE", change)
    with pytest.raises(LedgerError, match=f"entry {first_bad} does not follow"):
        ledger.log.verify()


@pytest.mark.parametrize("spent", [0, 5, 25])
def test_verify_derives_the_running_totals(ledger: Ledger, spent: int) -> None:
    """A well-hashed chain with a wrong total, as a bug would write it."""
    ask(ledger, "a")
    write(ledger, "intent", atoms=10, spent=spent, body="{}")
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        ledger.log.verify()


def test_verify_asks_for_the_next_number(ledger: Ledger) -> None:
    """A well-hashed chain in which a number is left out, as if an entry had been taken away before it was sealed."""
    ask(ledger, "a")

    def skips(db: Any) -> None:
        head = rows.head(db)
        assert head is not None
        rows.insert(db, [seal(head, Draft("intent", 0, "{}"), head.spent, now(), seq=head.seq + 2)])

    ledger.log._file.transact(skips)
    with pytest.raises(LedgerError, match="entry 4 does not follow"):
        ledger.log.verify()


@pytest.mark.parametrize("values", [{"atoms": 11}, {"atoms": 0, "intent": 1}, {"atoms": 5}, {"atoms": -1}])
def test_verify_knows_what_an_outcome_may_charge(ledger: Ledger, values: dict[str, int]) -> None:
    """More than reserved, an intent settled before, a charge without intent, a negative charge."""
    ask(ledger, "a")
    intent = ledger.reserve(PRICE, purpose="count")
    link: dict[str, Any] = {"intent": intent} if values["atoms"] in (11, -1) else {}
    link |= values
    spent = ledger.spent.atoms + link["atoms"] - (10 if link.get("intent") == intent else 0)
    write(ledger, "measured", spent=spent, body="{}", key="b", **link)
    with pytest.raises(LedgerError, match="entry 4 does not follow"):
        ledger.log.verify()


def test_a_changed_end_is_noticed_when_opening(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "k")
    ledger.close()
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "UPDATE entries SET spent = 0 WHERE seq = 2")
    with pytest.raises(LedgerError, match="entry 2 does not follow"):
        reopen(tmp_path)


def test_a_changed_extension_is_noticed_when_opening(ledger: Ledger, tmp_path: Path) -> None:
    """It says what may be spent, and lies neither first nor after the line that the anchor knows."""
    ask(ledger, "before")
    write(ledger, "extended", atoms=10, spent=10)
    ask(ledger, "after")
    ledger.close()
    reopen(tmp_path).close()
    raw(tmp_path, "DROP TRIGGER entries_UPDATE", "UPDATE entries SET atoms = 5000 WHERE seq = 3")
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        reopen(tmp_path)


@pytest.mark.parametrize("answers", [0, 1])
def test_a_raised_total_is_noticed(ledger: Ledger, tmp_path: Path, answers: int) -> None:
    for i in range(answers):
        ask(ledger, str(i))
    ledger.close()
    raised = "UPDATE meta SET value = json_set(value, '$.total', '[\"epsilon\",5000]') WHERE key = 'terms'"
    raw(tmp_path, "DROP TRIGGER meta_UPDATE", raised)
    with pytest.raises(LedgerError, match=r"does not follow|differs from"):
        reopen(tmp_path, total=Loss("epsilon", 5000))


# -- old copies -------------------------------------------------------------------------------------------------------


def test_an_old_copy_is_refused_and_never_refills(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    copy = backup(tmp_path, "old")
    ask(ledger, "b")
    ledger.close()
    restore(tmp_path, copy)
    with pytest.raises(LedgerError, match=r"entry 4, which the anchor has seen, is not in it.*accept-rollback"):
        reopen(tmp_path)
    with pytest.raises(LedgerError, match="accept_rollback"):
        reopen(tmp_path, accept_rollback="")
    with reopen(tmp_path, accept_rollback="the disk broke") as again:
        assert again.spent.atoms == 20  # as the anchor saw, not as the copy says
        [override] = again.log.lines(kinds=["override"])
        assert override.seq == 5  # past what was lost
        assert "the disk broke" in override.body
        assert ask(again, "b", '"new"') == '"new"'
        assert again.log.verify() == 5
    with reopen(tmp_path, accept_rollback="no need") as again:  # accepted once, for good
        assert (again.spent.atoms, len(list(again.log.lines(kinds=["override"])))) == (30, 1)


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
    with pytest.raises(LedgerError, match="entry 15, which the anchor has seen, is not in it"):
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
    with pytest.raises(LedgerError, match="with another anchor"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="came back") as again:
        assert again.spent.atoms == 40  # what was spent here and there, and what is common to both once
        assert again.log.verify() == 8


def test_without_an_anchor_it_may_be_an_old_copy(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    ledger.close()
    shutil.rmtree(tmp_path / "state")
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"There is no anchor at .*anchors\.sqlite, .*may be an old copy"):
            reopen(tmp_path)
        assert not (tmp_path / "state").exists()  # none is made that would hide what happened
    with reopen(tmp_path, accept_rollback="new machine") as again:
        assert '"lost":"unknown"' in next(again.log.lines(kinds=["override"])).body
        assert again.spent.atoms == 10
    reopen(tmp_path).close()


def test_an_anchor_from_before_the_ledger_does_not_vouch_for_it(ledger: Ledger, tmp_path: Path) -> None:
    """The right anchor by its id, put back to when it had not heard of this ledger: any old copy would do then."""
    ask(ledger, "a")
    ledger.close()
    with sqlite3.connect(tmp_path / "state" / "anchors.sqlite") as db:
        db.execute("DELETE FROM anchors")
        db.execute("DELETE FROM marks")
    db.close()
    with pytest.raises(LedgerError, match="does not know this ledger"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="the anchor was restored") as again:
        assert again.spent == PRICE


def test_another_anchor_needs_an_override_even_for_a_new_ledger(ledger: Ledger, tmp_path: Path) -> None:
    """Else each of two copies of an empty ledger would have a budget of its own."""
    ledger.close()
    elsewhere = {"anchor": Anchor(tmp_path / "elsewhere" / "anchors.sqlite")}
    with pytest.raises(LedgerError, match="There is no anchor"):
        reopen(tmp_path, **elsewhere)
    assert elsewhere["anchor"].id
    with pytest.raises(LedgerError, match="with another anchor"):
        reopen(tmp_path, **elsewhere)
    reopen(tmp_path, **elsewhere, accept_rollback="moved").close()
    reopen(tmp_path, **elsewhere).close()
    with pytest.raises(LedgerError, match="with another anchor"):
        reopen(tmp_path)


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
        newest = again.log._anchor.newest(again.log.identity.id)
        assert newest == again.log._file.read(lambda db: rows.told(db, 3, again.log.identity.origin))


def test_a_stored_answer_is_anchored_before_it_is_shown(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer died before the anchor knew. Once somebody else shows it, an old copy without it must be refused."""
    reader = reopen(tmp_path)
    copy = backup(tmp_path, "old")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        intent = ledger.reserve(PRICE, purpose="count")
        patch.setattr(Anchor, "advance", crash)
        with pytest.raises(KeyboardInterrupt):
            ledger.settle(intent, [Outcome("k", 10, "measured", "1")])
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
        ledger.settle(reservation, [Outcome("b", 10, "measured", "1")])


@pytest.mark.parametrize("spender", ["this session", "another process"])
def test_an_old_copy_written_into_the_open_file_is_refused(ledger: Ledger, tmp_path: Path, spender: str) -> None:
    copy = backup(tmp_path, "old")
    if spender == "this session":
        ledger.reserve(PRICE, purpose="count")
    else:
        with reopen(tmp_path) as other:
            ask(other, "a")
    source, target = sqlite3.connect(copy), sqlite3.connect(tmp_path / "people.tacit")
    source.backup(target)
    target.close()
    if spender == "this session":
        with pytest.raises(LedgerError, match="replaced by another copy"):
            _ = ledger.spent
        with pytest.raises(LedgerError, match="replaced by another copy"):
            list(ledger.log.since(0)[1])
    with pytest.raises(LedgerError, match=r"replaced by another copy|older than"):
        ledger.reserve(PRICE, purpose="count")
    with pytest.raises(LedgerError, match=r"replaced by another copy|older than"):
        ledger.log.verify()


# -- while in use -----------------------------------------------------------------------------------------------------


def overwrite(folder: Path, copy: Path) -> None:
    """Another history written into the file in place, while sessions have it open."""
    source, target = sqlite3.connect(copy), sqlite3.connect(folder / "people.tacit")
    source.backup(target)
    source.close()
    target.close()


def test_reading_does_not_move_the_anchor_to_an_unchecked_file(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    copy = backup(tmp_path, "copy")
    for key in "bcd":
        ask(ledger, key, '"original"')
    known = ledger.log._anchor.newest(ledger.log.identity.id)
    (tmp_path / "fork").mkdir()
    restore(tmp_path / "fork", copy)
    elsewhere = {"anchor": Anchor(tmp_path / "elsewhere" / "anchors.sqlite")}
    with reopen(tmp_path / "fork", **elsewhere, accept_rollback="moved") as fork:
        for key in "bcdef":
            ask(fork, key, '"fork"', charge=2)
    overwrite(tmp_path, backup(tmp_path / "fork", "longer"))
    for use in (
        lambda: ledger.find("b"),
        lambda: ledger.find("f"),
        lambda: list(ledger.log.lines()),
        ledger.log.verify,
    ):
        with pytest.raises(LedgerError, match=r"replaced by another copy|with another anchor"):
            use()
    assert ledger.log._anchor.newest(ledger.log.identity.id) == known
    with pytest.raises(LedgerError, match="with another anchor"):
        reopen(tmp_path)


def test_a_line_that_the_anchor_refused_is_not_told_under_the_number_of_another(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The anchor has seen line 2 of the file. Another line 2, of a copy, is written into the file in place."""
    other, advance = reopen(tmp_path), Anchor.advance
    (tmp_path / "fork").mkdir()

    def while_ours_is_told(anchor: Anchor, *given: Any) -> Mark | None:
        monkeypatch.setattr(Anchor, "advance", advance)
        restore(tmp_path / "fork", backup(tmp_path, "copy"))
        with reopen(tmp_path / "fork", anchor=Anchor(anchor.path)) as fork:
            monkeypatch.setattr(Anchor, "advance", while_theirs_is_told)
            with pytest.raises(AnswerWithheld):
                fork.settle(None, [Outcome("theirs", 0, "told", "1")])
        return advance(anchor, *given)

    def while_theirs_is_told(anchor: Anchor, *given: Any) -> Mark | None:
        monkeypatch.setattr(Anchor, "advance", advance)
        ask(other, "ours")
        return advance(anchor, *given)

    monkeypatch.setattr(Anchor, "advance", while_ours_is_told)
    ledger.reserve(PRICE, purpose="count")
    overwrite(tmp_path, backup(tmp_path / "fork", "longer"))
    with pytest.raises(LedgerError, match="which the anchor has seen, is not in it"):
        ledger.find("theirs")
    other.close()


@pytest.mark.parametrize(
    "forged", ["(21,'intent',NULL,NULL,0,0,'','00','{}')", "(25,'override',NULL,NULL,0,0,'','00','{\"anchor\":null}')"]
)
def test_one_insert_refills_nothing(tmp_path: Path, forged: str) -> None:
    ledger = Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path, answers=10))
    for i in range(10):
        ask(ledger, str(i))
    known = ledger.log._anchor.newest(ledger.log.identity.id)
    raw(tmp_path, f"INSERT INTO entries VALUES {forged}")
    for use in (
        lambda: ask(ledger, "x"),
        lambda: ledger.settle(None, [Outcome("y", 0, "told", "1")]),
        ledger.log.verify,
    ):
        with pytest.raises((LedgerError, AnswerWithheld), match="is damaged: entry 2"):
            use()
    ledger.close()
    with pytest.raises(LedgerError, match="is damaged: entry 2"):
        reopen(tmp_path, answers=10)
    assert Anchor(tmp_path / "state" / "anchors.sqlite").newest(ledger.log.identity.id) == known


def test_a_forged_answer_is_not_shown(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    raw(tmp_path, "INSERT INTO entries VALUES (3,'told','zz',NULL,0,10,'','00','\"forged\"')")
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        ledger.find("zz")
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        ledger.log.verify()
    assert ledger.log._anchor.newest(ledger.log.identity.id)[0] == 2


def test_an_end_that_the_anchor_has_not_seen_is_derived_when_opening(ledger: Ledger, tmp_path: Path) -> None:
    """Hashes all right, as by somebody who computes them; the first and the last entry, too."""
    ask(ledger, "a")
    write(ledger, "intent", atoms=0, spent=0, body="{}")
    write(ledger, "intent", atoms=0, spent=0, body="{}")
    ledger.close()
    with pytest.raises(LedgerError, match="entry 3 does not follow"):
        reopen(tmp_path)


def test_what_others_added_is_derived_again(ledger: Ledger, tmp_path: Path) -> None:
    """Charges, refunds of what was reserved before, and batches, all made by another session meanwhile."""
    ours = ledger.reserve(PRICE, purpose="ours")
    with reopen(tmp_path) as other:
        theirs = other.reserve(PRICE, purpose="theirs")
        ask(other, "a")
        other.settle(ours, [Outcome("b", 3, "measured", "1"), Outcome("c", 2, "measured", "1")])
        other.settle(theirs, [Outcome("d", 4, "measured", "1")])
        other.reserve(PRICE, purpose="left open")
    assert ask(ledger, "e") == '{"value":1}'
    assert (ledger.spent.atoms, ledger.log.verify()) == (10 + 5 + 4 + 10 + 10, 10)
    write(ledger, "measured", atoms=0, spent=29, body="{}", key="f", intent=ours)  # settled before
    with pytest.raises(LedgerError, match="entry 11 does not follow"):
        ledger.reserve(PRICE, purpose="count")


def test_a_second_refund_by_others_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ours = ledger.reserve(PRICE, purpose="ours")
    with reopen(tmp_path) as other:
        other.settle(ours, [Outcome("a", 10, "measured", "1")])
        other.reserve(PRICE, purpose="theirs")
        write(other, "measured", atoms=0, spent=10, body="{}", key="b", intent=ours)
    with pytest.raises(LedgerError, match="entry 4 does not follow"):
        ledger.reserve(PRICE, purpose="count")


# -- anchors ----------------------------------------------------------------------------------------------------------


def test_two_copies_of_an_empty_ledger_both_count(ledger: Ledger, tmp_path: Path) -> None:
    empty = backup(tmp_path, "empty")
    for key in "abcd":
        ask(ledger, key)
    ledger.close()
    restore(tmp_path, empty)
    elsewhere = {"anchor": Anchor(tmp_path / "elsewhere" / "anchors.sqlite")}
    with reopen(tmp_path, **elsewhere, accept_rollback="moved") as moved:
        for key in "efghi":
            ask(moved, key)
    with reopen(tmp_path, accept_rollback="came back") as again:
        assert again.spent.atoms == 90


def test_an_original_that_turns_up_after_its_copy_was_used_counts_on_top(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    old = backup(tmp_path, "old")
    for key in "bcdefg":
        ask(ledger, key)
    ledger.close()
    newest = backup(tmp_path, "newest")
    shutil.rmtree(tmp_path / "state")
    restore(tmp_path, old)
    with reopen(tmp_path, accept_rollback="the disk broke") as again:
        for key in "hijk":
            ask(again, key)
    restore(tmp_path, newest)
    with pytest.raises(LedgerError, match="with another anchor"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="found the disk") as again:
        assert again.spent.atoms == 120  # 110 were spent, 10 of them in both


def test_a_reservation_is_no_budget_again_after_a_restore(ledger: Ledger, tmp_path: Path) -> None:
    """A copy that lacks only intents lacks what was looked at, and would give back what was set aside for it."""
    ask(ledger, "a")
    copy = backup(tmp_path, "copy")
    ledger.reserve(Loss("epsilon", 700), purpose="most")
    ledger.close()
    restore(tmp_path, copy)
    with pytest.raises(LedgerError, match="entry 3, which the anchor has seen, is not in it"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="restored") as again:
        assert again.spent.atoms == 710


def stored_unseen(ledger: Ledger, *outcomes: Outcome, intent: int | None = None) -> None:
    """Store answers and die before the anchor knows: nobody has seen them, and whoever opens the file shows them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "_tell_anchor", lambda *_: None)
        ledger.settle(intent or ledger.reserve(PRICE, purpose="count"), outcomes)


def both_branches(folder: Path, ledger: Ledger, reserved: int, charges: tuple[int, int]) -> tuple[int, int]:
    """A copy with an answer that the anchor never saw, an original that went on: what is counted, what was spent.

    Both branches settle one reservation that was made before they parted, and charge to it what `charges` says.
    """
    ask(ledger, "a")
    intent = ledger.reserve(Loss("epsilon", reserved), purpose="most")
    backup(folder, "copy")
    (folder / "apart").mkdir()
    restore(folder / "apart", folder / "copy")
    with reopen(folder / "apart", anchor=Anchor(folder / "state" / "anchors.sqlite")) as copy:
        stored_unseen(copy, Outcome("b", charges[0], "measured", "1"), intent=intent)
        stored_unseen(copy, Outcome("c", 10, "measured", "1"))
    ledger.settle(intent, [Outcome("b", charges[1], "measured", "2")])
    ask(ledger, "d")
    ledger.close()
    restore(folder, folder / "apart" / "people.tacit")
    with pytest.raises(LedgerError, match="differs from"):
        reopen(folder)
    with reopen(folder, accept_rollback="restored") as again:
        assert again.find("c") is not None  # both branches are known now
        again.log.verify()
        return again.spent.atoms, 10 + sum(charges) + 10 + 10


@pytest.mark.parametrize("charges", [(400, 400), (0, 400), (400, 0), (0, 0), (10, 3)])
def test_two_branches_of_which_the_anchor_saw_one_both_count(
    ledger: Ledger, tmp_path: Path, charges: tuple[int, int]
) -> None:
    counted, spent = both_branches(tmp_path, ledger, 400, charges)
    assert counted == spent


def test_planted_the_larger_branch_alone_counted(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    override = Identity.override

    def largest(self: Identity, db: Any, anchor: Anchor, head: Any, reason: str) -> Any:
        number, draft = override(self, db, anchor, head, reason)
        seen = anchor.newest(self.id)
        return number, replace(draft, atoms=max(head.spent, seen.spent if seen else 0) - head.spent)

    monkeypatch.setattr(Identity, "override", largest)
    counted, spent = both_branches(tmp_path, ledger, 400, (400, 400))
    assert counted < spent


def test_what_was_open_before_an_override_is_never_settled(ledger: Ledger, tmp_path: Path) -> None:
    """Its answer may have been given in the branch that was lost, and that is counted by the override alone."""
    copy = backup(tmp_path, "copy")
    ask(ledger, "a")
    ledger.close()
    restore(tmp_path, copy)
    with reopen(tmp_path, accept_rollback="lost") as before:
        ours = before.reserve(PRICE, purpose="count")
        other = Anchor(tmp_path / "elsewhere" / "anchors.sqlite")
        reopen(tmp_path, anchor=other, accept_rollback="moved").close()
    with reopen(tmp_path, anchor=other) as again:
        assert open_intents(again.log) == []
        with pytest.raises(ValueError, match="never made, or settled before"):
            again.settle(ours, [Outcome("b", 10, "measured", "1")])
        assert (again.spent.atoms, again.log.verify()) == (20, 3)


def test_restoring_twice_does_not_count_twice(ledger: Ledger, tmp_path: Path) -> None:
    """A copy without override, of a ledger that never had another anchor, is part of what the anchor saw."""
    ask(ledger, "a")
    copy = backup(tmp_path, "copy")
    ask(ledger, "b")
    ledger.close()
    for restored in (1, 2):
        restore(tmp_path, copy)
        with reopen(tmp_path, accept_rollback="again") as again:
            assert again.spent.atoms == 10 * (restored + 1)
            ask(again, f"c{restored}")


def test_an_override_elsewhere_stops_a_session_under_the_old_anchor(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    elsewhere = {"anchor": Anchor(tmp_path / "elsewhere" / "anchors.sqlite")}
    reopen(tmp_path, **elsewhere, accept_rollback="moved").close()
    with pytest.raises(LedgerError, match="with another anchor"):
        ledger.reserve(PRICE, purpose="count")


def deleted(anchor: Path) -> None:
    anchor.unlink()


def an_older_file(anchor: Path) -> None:
    os.replace(anchor.with_name("old"), anchor)


def older_bytes(anchor: Path) -> None:
    source, target = sqlite3.connect(anchor.with_name("old")), sqlite3.connect(anchor)
    source.backup(target)
    source.close()
    target.close()


def nothing_of_this_ledger(anchor: Path) -> None:
    with sqlite3.connect(anchor) as db:
        db.execute("DELETE FROM anchors")


@pytest.mark.parametrize("loss", [deleted, an_older_file, older_bytes, nothing_of_this_ledger])
def test_an_anchor_that_is_lost_while_in_use_stops_every_answer(ledger: Ledger, tmp_path: Path, loss: Any) -> None:
    """As on a share that is gone, comes back stale, or was restored under a running process."""
    anchor = tmp_path / "state" / "anchors.sqlite"
    ask(ledger, "a")
    source, target = sqlite3.connect(anchor), sqlite3.connect(anchor.with_name("old"))
    source.backup(target)
    source.close()
    target.close()
    ask(ledger, "b")
    intent = ledger.reserve(PRICE, purpose="open")
    loss(anchor)
    with pytest.raises(LedgerError):
        ledger.reserve(PRICE, purpose="count")  # so nothing is looked at
    for free in (None, intent):
        with pytest.raises(AnswerWithheld):
            ledger.settle(free, [Outcome("c", 0, "told", "1")])
    ledger.close()


def test_an_anchor_that_cannot_be_written_stops_every_answer(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: Any) -> Any:
        raise LedgerError("anchors.sqlite cannot be written.")

    ask(ledger, "a")
    with monkeypatch.context() as patch:
        patch.setattr(ledger.log._anchor._file, "transact", read_only)
        with pytest.raises(LedgerError, match=r"anchors\.sqlite cannot be written") as caught:
            ledger.reserve(PRICE, purpose="count")
        assert not caught.value.nothing_spent  # it is set aside by now, and nothing gives it back
        with pytest.raises(AnswerWithheld, match="cannot be written"):
            ledger.settle(None, [Outcome("b", 0, "told", "1")])
        with pytest.raises(LedgerError, match="cannot be written"):
            ledger.spent  # not even that something was stored is told before the anchor knows it  # noqa: B018
    assert ledger.spent.atoms == 20


def test_a_copy_that_stored_too_late_tells_nothing_of_what_it_stored(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many lines a gate's look leaves tells whether it hit. Of two copies both may look, and both may store."""
    ask(ledger, "a")
    said = set()
    for stored in (1, 3):
        copy = backup(tmp_path, f"copy{stored}")
        with Ledger.open(copy, **terms(tmp_path)) as late:
            tell = late.log._tell_anchor

            def first(told: Mark, tell: Any = tell, key: str = f"other{stored}") -> None:
                ask(ledger, key)  # between what the copy stores and its telling the anchor so
                tell(told)

            with monkeypatch.context() as patch:
                patch.setattr(late.log, "_tell_anchor", first)
                with pytest.raises(AnswerWithheld):
                    late.settle(None, [Outcome(f"{stored}{one}", 0, "told", "1") for one in range(stored)])
            log = late.log
            for asked in (log.head, log.unpaid_count, log.limits, log.kept_intents, log.snapshot, log.verify):
                with pytest.raises(LedgerError) as refused:
                    asked()
                assert not refused.value.nothing_spent or asked == log.verify
                said.add(refused.value.sentence.replace(str(ledger.log.head().seq), "N").replace(copy.name, "copy"))
        with pytest.raises(LedgerError) as refused:
            Ledger.open(copy, **terms(tmp_path))
        said.add(refused.value.sentence.replace(str(ledger.log.head().seq), "N").replace(copy.name, "copy"))
    assert len(said) == 2, said  # while it is open, and when it is opened again; the same for one line and for three


def test_who_verifies_a_line_has_told_the_anchor_of_it(ledger: Ledger, tmp_path: Path) -> None:
    """A process may die between what it stores and the anchor: what is told of that then is no copy's any more."""
    ask(ledger, "a")
    anchor = terms(tmp_path)["anchor"]
    for look in (lambda: ledger.log.verify(), lambda: ledger.log.remember()):
        before = anchor.newest(ledger.log.identity.id)
        with mock.patch.object(ledger.log, "_tell_anchor", return_value=None):
            ask(ledger, f"b{before.seq}")
        assert anchor.newest(ledger.log.identity.id) == before
        look()
        assert anchor.newest(ledger.log.identity.id).seq == before.seq + 2


def test_a_ledger_of_an_earlier_version_goes_on(ledger: Ledger, tmp_path: Path) -> None:
    """It has no salts, and its anchor knows the plain hash of its last line."""
    ask(ledger, "a")
    head = ledger.log.head()
    ledger.close()
    raw(tmp_path, "DROP TABLE salts")
    with sqlite3.connect(tmp_path / "state" / "anchors.sqlite") as db:
        db.execute("UPDATE anchors SET hash = ?", (head.hash,))
        db.execute("DROP TABLE marks")
    with reopen(tmp_path) as again:
        ask(again, "b")
        assert again.log.verify() == 4
    reopen(tmp_path).close()


def test_several_ledgers_of_one_anchor_do_not_mind_each_other(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other.tacit", make="new", **terms(tmp_path)) as other:
        for key in "abc":
            ask(ledger, key)
            ask(other, key)
        copy = backup(tmp_path, "copy")
        ask(ledger, "d")
        with pytest.raises(LedgerError, match="entry 8, which the anchor has seen, is not in it"):
            Ledger.open(copy, **terms(tmp_path))
        assert ask(other, "d") == ask(ledger, "e")
        assert (ledger.log.verify(), other.log.verify()) == (10, 8)


# -- deleted and made anew --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["new", "missing"])
def test_a_ledger_made_in_the_place_of_another_is_not_a_new_budget(ledger: Ledger, tmp_path: Path, make: Any) -> None:
    for i in range(9):
        ask(ledger, str(i))
    ledger.close()
    (tmp_path / "people.tacit").unlink()
    with pytest.raises(LedgerError, match=r"remembers another ledger at people\.tacit.*accept_rollback"):
        Ledger.open(tmp_path / "people.tacit", make=make, **terms(tmp_path))
    assert not (tmp_path / "people.tacit").exists()
    with Ledger.open(
        tmp_path / "people.tacit", make=make, **terms(tmp_path), accept_rollback="deleted by mistake"
    ) as again:
        assert again.spent.atoms == 90
        assert f'"replaces":"{ledger.log.identity.id}"' in next(again.log.lines()).body
        ask(again, "k")
        assert again.log.verify() == 3
    reopen(tmp_path).close()
    with Ledger.open(tmp_path / "other.tacit", make=make, **terms(tmp_path)) as other:  # another name is another ledger
        assert other.spent.atoms == 0


def test_a_maker_that_died_before_the_override_changes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    ledger.close()
    (tmp_path / "people.tacit").unlink()
    new = Ledger.open(tmp_path / "new.tacit", make="new", **terms(tmp_path))
    new.close()
    os.rename(tmp_path / "new.tacit", tmp_path / "people.tacit")
    with pytest.raises(LedgerError, match="remembers another ledger"):
        reopen(tmp_path)
    with reopen(tmp_path, accept_rollback="yes") as again:
        assert again.spent.atoms == 10


def test_a_ledger_that_moved_leaves_its_place_free(ledger: Ledger, tmp_path: Path) -> None:
    ask(ledger, "a")
    ledger.close()
    os.rename(tmp_path / "people.tacit", tmp_path / "moved.tacit")
    with Ledger.open(tmp_path / "moved.tacit", **terms(tmp_path)) as moved:
        assert moved.find("a") is not None
    Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path)).close()


def test_an_override_may_pass_the_total(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve(Loss("epsilon", 700), purpose="most")
    ask(ledger, "a")
    ledger.close()
    newest = backup(tmp_path, "newest")
    shutil.rmtree(tmp_path / "state")  # another anchor, of which no mark is in the copy that comes back
    reopen(tmp_path, accept_rollback="moved").close()
    restore(tmp_path, newest)
    with reopen(tmp_path, accept_rollback="back") as again:
        assert again.spent.atoms == 1420 >= again.total.atoms
        with pytest.raises(BudgetExhausted, match="0 % is left"):
            again.reserve(Loss("epsilon", 1), purpose="count")
        again.settle(again.reserve(Loss("epsilon", 0), purpose="free"), [Outcome("z", 0, "told", "1")])
        again.log.verify()


def test_an_outcome_does_not_tell_how_long_the_data_were_looked_at(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are published, with their times."""
    seconds = iter(range(10))
    monkeypatch.setattr(log_module, "now", lambda: f"2031-01-01T00:00:0{next(seconds)}.000+00:00")
    ask(ledger, "key")
    intent, outcome = ledger.log.lines()
    assert intent.time == outcome.time == "2031-01-01T00:00:00.000+00:00"
    assert intent.time[19:23] == ".000"
