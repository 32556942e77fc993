"""Other terms over the same people: a new ledger goes on from an old one, and what was spent carries over."""

from __future__ import annotations

import json
import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest

import tacit
from forgery import resealed
from people import answered, configuration, refused
from people import tacit as run
from tacit.errors import BudgetExhausted, ConfigError, InvalidBudget, LedgerError
from tacit.exact.price import carried, total
from tacit.model.budget import ATOMS, Budget, Loss
from tacit.owner import continuation
from tacit.owner.inspection import inspect
from tacit.owner.terms import made_with
from tacit.store.log import Log

ROWS = pd.DataFrame({"sex": ["F", "M"] * 300, "age": [i % 10 for i in range(600)]})
DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 9)})
COARSER = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 9, width=5)})
PURE = Budget(epsilon=1.0)


def opened(folder: Path, name: str, budget: Budget = PURE, **settings: Any) -> tacit.Session:
    settings = {"domain": DOMAIN, "mechanism": "direct", "questions": 4, **settings}
    if "continues" in settings:
        settings["continues"] = folder / settings["continues"]
    return tacit.open(data=ROWS, budget=budget, ledger=folder / name, anchor=folder / "anchors.sqlite", **settings)


def ask(session: tacit.Session, *ages: int) -> list[tacit.Answer]:
    return [session.ask(tacit.count(age=age)) for age in ages]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger of epsilon 1, a quarter of which is spent."""
    with opened(tmp_path, "old.tacit") as session:
        ask(session, 1)
    return tmp_path


def go_on(folder: Path, budget: Budget = PURE, **more: Any) -> tacit.Session:
    return opened(folder, "new.tacit", budget, **{"domain": COARSER, "continues": "old.tacit", **more})


# -- the account ------------------------------------------------------------------------------------------------------


def test_what_was_spent_carries_over_and_the_old_ledger_is_closed(old: Path) -> None:
    with go_on(old, questions=3) as session:
        assert (session.spent.atoms, session.left.atoms) == (ATOMS // 4, 3 * ATOMS // 4)
        found = [
            session.ask(tacit.count(sex=sex, age=age)) for sex, age in (("F", (0, 4)), ("M", (0, 4)), ("F", (5, 9)))
        ]
        assert {answer.cost.atoms for answer in found} == {ATOMS // 4}  # a third of what was left
        assert session.left.atoms == 0
        with pytest.raises(BudgetExhausted):
            session.ask(tacit.count(sex="F"))
    with opened(old, "old.tacit") as session:
        (again,) = ask(session, 1)
        assert again.cost.atoms == 0
        with pytest.raises(BudgetExhausted, match="Another ledger continues this one"):
            ask(session, 2)
        with pytest.raises(LedgerError, match="raise the budget of that one"):
            session.extend(Budget(epsilon=3.0))
        assert session.epsilon_spent == 0.25  # what went to the other one was not released here
    for name in ("old.tacit", "new.tacit"):
        inspect(old / name, old / "anchors.sqlite")
    with go_on(old, questions=3) as session:  # the same file opens it ever after
        assert session.left.atoms == 0
    (old / "old.tacit").unlink()
    with go_on(old, questions=3) as session:
        assert session.spent.atoms == ATOMS


@pytest.mark.parametrize(
    ("first", "second", "settings", "measure"),
    [
        (Budget(1.0, 1e-9), Budget(1.0, 1e-9), {}, "gdp"),
        (Budget(1.0, 1e-9), Budget(2.0, 1e-8), {"mechanism": "iterative", "questions": 50, "hits": 3}, "gdp"),
        (PURE, Budget(2.0, 1e-9), {}, "gdp"),
        (PURE, Budget(2.0, 1e-9), {"mechanism": "iterative", "questions": 50, "hits": 3}, "rho"),
        (PURE, Budget(epsilon=0.5), {}, "epsilon"),  # a promise that is smaller, where what was spent fits
    ],
)
def test_the_new_ledger_counts_what_the_old_one_did_in_its_own_measure(
    tmp_path: Path, first: Budget, second: Budget, settings: dict[str, Any], measure: Any
) -> None:
    with opened(tmp_path, "old.tacit", first) as session:
        ask(session, 1)
        spent = session.spent
    with go_on(tmp_path, second, **settings) as session:
        assert session.total == total(second, measure)
        assert session.spent == carried(spent, measure)
        assert session.continues is not None
        assert session.continues.spent == spent


def test_pure_pieces_cost_no_more_one_by_one_than_their_sum_does() -> None:
    for parts in ([Fraction(1, 4)] * 4, [Fraction(1, 3), Fraction(1, 7)], [Fraction(1)]):
        for measure in ("rho", "gdp"):
            whole = carried(Loss.of("epsilon", sum(parts, Fraction(0))), measure)  # type: ignore[arg-type]
            each = sum(Loss.of_pure(measure, part).atoms for part in parts)  # type: ignore[arg-type]
            assert each <= whole.atoms + len(parts)
    with pytest.raises(InvalidBudget):
        carried(Loss("gdp", 5), "rho")
    with pytest.raises(InvalidBudget):
        carried(Loss("rho", 5), "epsilon")


def test_an_extended_ledger_and_one_that_continues_are_continued_too(old: Path) -> None:
    tacit.extend(old / "old.tacit", Budget(epsilon=1.5), anchor=old / "anchors.sqlite")
    with go_on(old) as session:
        session.ask(tacit.count(sex="F"))
        spent = session.spent
    assert spent.atoms == ATOMS // 4 + 3 * ATOMS // 16
    with opened(old, "third.tacit", continues="new.tacit") as session:
        assert session.spent == spent


def test_what_cannot_be_continued_is_refused_before_anything_is_written(old: Path) -> None:
    before = (old / "old.tacit").read_bytes()
    for words, more in (
        ("nothing would be left", {"budget": Budget(epsilon=0.25)}),
        ("protects a row", {"person": "age", "rows_per_person": 2}),
        ("There is no ledger missing", {"continues": "missing.tacit"}),
        ("no ledger was lost", {"accept_rollback": "a reason"}),
    ):
        with pytest.raises((ConfigError, InvalidBudget, LedgerError), match=words):
            go_on(old, **more)
        assert not (old / "new.tacit").exists()
    assert (old / "old.tacit").read_bytes() == before
    with opened(old, "plain.tacit", Budget(1.0, 1e-9)) as session:
        ask(session, 1)
    with pytest.raises(InvalidBudget, match="has no pure epsilon"):
        go_on(old, continues="plain.tacit")
    with pytest.raises(LedgerError, match="continues no other ledger"):
        opened(old, "plain.tacit", Budget(1.0, 1e-9), continues="old.tacit")


def test_one_ledger_goes_on_from_another(old: Path) -> None:
    go_on(old).close()
    with pytest.raises(LedgerError, match="is continued by another ledger already"):
        opened(old, "third.tacit", continues="old.tacit")
    assert not (old / "third.tacit").exists()
    with opened(old, "other.tacit"):
        pass
    with pytest.raises(LedgerError, match="continues another ledger than other"):
        go_on(old, continues="other.tacit")


def test_of_two_that_go_on_at_once_one_does(old: Path) -> None:
    """Both have looked before either has closed it."""
    close_for = continuation.Before.close_for

    def late(before: Any, *given: Any) -> Any:
        with mock.patch.object(continuation.Before, "close_for", close_for):
            opened(old, "first.tacit", continues="old.tacit").close()
        return close_for(before, *given)

    refusal = pytest.raises(LedgerError, match="is continued by another ledger already")
    with mock.patch.object(continuation.Before, "close_for", late), refusal:
        go_on(old)


def test_what_was_kept_of_delta_stays_kept(tmp_path: Path) -> None:
    budget, files = Budget(1.0, 1e-9), {"ledger": tmp_path / "old.tacit", "anchor": tmp_path / "anchors.sqlite"}
    columns = {"sex": {"kind": "category", "discover": True}}
    tacit.discover(data=ROWS, columns=columns, budget=budget, share=0.5, **files)
    with opened(tmp_path, "old.tacit", budget) as session:
        aside, spent = session.aside, session.spent
    with go_on(tmp_path, budget) as session:
        assert session.aside == aside > 0
        assert (session.total, session.spent) == (total(budget, "gdp", aside=aside), spent)
        session.publish(tmp_path / "new.jsonl")
    tacit.verify(tmp_path / "new.jsonl")


# -- the order of the two commits ---------------------------------------------------------------------------------


class Died(BaseException):
    """The process dies here."""


def dies(folder: Path, at: int) -> None:
    """Go on from the old ledger, and die before the transaction of this number."""
    write, seen = Log.write, [0]

    def counted(log: Log, work: Any) -> Any:
        seen[0] += 1
        if seen[0] == at:
            raise Died
        return write(log, work)

    with mock.patch.object(Log, "write", counted), pytest.raises(Died):
        go_on(folder, questions=3)


@pytest.mark.parametrize("at", [1, 2])
def test_a_crash_in_the_middle_gives_nothing_twice(old: Path, at: int) -> None:
    dies(old, at)
    with opened(old, "old.tacit") as session:
        assert session.left.atoms == (3 * ATOMS // 4 if at == 1 else 0)
    with pytest.raises(LedgerError, match="has not taken over yet"):
        opened(old, "new.tacit", domain=COARSER, questions=3)
    with pytest.raises(LedgerError, match="has not taken over yet"):
        tacit.reopen(old / "new.tacit", anchor=old / "anchors.sqlite")
    with go_on(old, questions=3) as session:
        assert (session.spent.atoms, session.left.atoms) == (ATOMS // 4, 3 * ATOMS // 4)
    with opened(old, "old.tacit") as session:
        assert session.left.atoms == 0


def test_what_is_bought_between_the_file_and_the_closing_is_carried(old: Path) -> None:
    close_for = continuation.Before.close_for

    def late(before: Any, *given: Any) -> Any:
        with opened(old, "old.tacit") as session:
            ask(session, 2)
        return close_for(before, *given)

    with mock.patch.object(continuation.Before, "close_for", late), go_on(old) as session:
        assert session.spent.atoms == ATOMS // 2


def test_what_is_used_up_meanwhile_is_not_continued(old: Path) -> None:
    """The new file was made, and all that was left was bought in the old ledger before it was closed."""
    dies(old, 1)
    with opened(old, "old.tacit") as session:
        ask(session, 2, 3, 4)
    with pytest.raises(InvalidBudget, match="nothing would be left"):
        go_on(old, questions=3)
    with opened(old, "old.tacit") as session:
        assert session.continued_by is None


def test_nothing_is_bought_before_the_first_line(old: Path) -> None:
    """Were the order wrong, the rules of the ledger would still refuse."""
    with mock.patch("tacit.owner.opening.take_over"), go_on(old) as session, pytest.raises(BudgetExhausted):
        session.ask(tacit.count(sex="F"))


# -- copies -----------------------------------------------------------------------------------------------------------


def test_copies_of_the_old_ledger_are_noticed(old: Path) -> None:
    shutil.copy(old / "old.tacit", old / "copy.tacit")
    go_on(old).close()
    os.replace(old / "copy.tacit", old / "old.tacit")
    with pytest.raises(LedgerError, match="older than, or differs from"):
        opened(old, "old.tacit")
    with pytest.raises(LedgerError, match="older than, or differs from"):
        opened(old, "third.tacit", continues="old.tacit")
    with opened(old, "old.tacit", accept_rollback="tried") as session:  # what was left is gone all the same
        assert session.left.atoms == 0
        with pytest.raises(LedgerError, match="went on from an older copy"):
            session.extend(Budget(epsilon=3.0))
    with pytest.raises(LedgerError, match="went on from an older copy"):
        tacit.extend(old / "old.tacit", Budget(epsilon=3.0), anchor=old / "anchors.sqlite")
    with pytest.raises(LedgerError, match="went on from an older copy"):  # the first one has spent what was left
        opened(old, "third.tacit", Budget(epsilon=3.0), domain=COARSER, continues="old.tacit")
    assert not (old / "third.tacit").exists()


def test_a_rollback_while_another_ledger_goes_on_is_noticed(old: Path) -> None:
    shutil.copy(old / "old.tacit", old / "copy.tacit")
    dies(old, 2)  # the old ledger is closed, and the new one has not begun
    os.replace(old / "copy.tacit", old / "old.tacit")
    opened(old, "old.tacit", accept_rollback="tried").close()
    with pytest.raises(LedgerError, match="went on from an older copy"):
        go_on(old, questions=3)
    # Whoever looked before the rollback was accepted is refused in the transaction.
    before = continuation.Before(old / "old.tacit", made_with(old / "old.tacit"), Loss("epsilon", 0), closed=False)
    with (
        mock.patch.object(continuation.Before, "of", return_value=before),
        pytest.raises(LedgerError, match="went on from an older copy"),
    ):
        opened(old, "third.tacit", Budget(epsilon=3.0), domain=COARSER, continues="old.tacit")


def test_copies_of_the_new_ledger_are_noticed(old: Path) -> None:
    dies(old, 2)
    shutil.copy(old / "new.tacit", old / "copy.tacit")
    with go_on(old, questions=3) as session:
        session.ask(tacit.count(sex="F"))
    os.replace(old / "copy.tacit", old / "new.tacit")
    for suffix in ("-wal", "-shm"):
        (old / f"new.tacit{suffix}").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="older than, or differs from"):
        go_on(old, questions=3)


# -- what is published, and the command line --------------------------------------------------------------------------


def test_both_published_files_name_each_other(old: Path) -> None:
    with go_on(old) as session:
        session.ask(tacit.count(sex="F"))
        session.publish(old / "new.jsonl")
    with opened(old, "old.tacit") as session:
        session.publish(old / "old.jsonl")
    for name in ("old.jsonl", "new.jsonl"):
        tacit.verify(old / name)
    with tacit.read(old / "old.jsonl") as first, tacit.read(old / "new.jsonl") as second:
        assert second.continues is not None
        assert (second.continues.ledger, first.continued_by) == (first.origin, second.origin)
        last = first.transcript()[1][-1]
        assert (second.continues.entry, second.continues.seal) == (last.seq, last.hash)
        assert second.continues.spent.atoms == last.spent - last.atoms
        assert (first.told, second.told) == (0, 0)


def test_a_published_file_goes_on_from_what_it_names(old: Path) -> None:
    with go_on(old) as session:
        session.ask(tacit.count(sex="F"))
        session.publish(old / "new.jsonl")
    lines = [json.loads(line) for line in (old / "new.jsonl").read_text().splitlines()]
    origin = lines[0]["continues"]
    resealed(old / "same.jsonl", lines)
    tacit.verify(old / "same.jsonl")
    for change in (
        {"continues": "0" * 64},
        {"continues": None},
    ):
        forged = [{**lines[0], **change}, *lines[1:]]
        forged[0] = {name: value for name, value in forged[0].items() if value is not None}
        resealed(old / "forged.jsonl", forged)
        with pytest.raises(ConfigError):
            tacit.verify(old / "forged.jsonl")
    assert origin == json.loads(lines[1]["body"])["ledger"]
    for change in ({"atoms": 5, "spent": 5}, {"body": lines[1]["body"].replace("250000000000", "240000000000")}):
        resealed(old / "forged.jsonl", [lines[0], {**lines[1], **change}, lines[-1]])
        with pytest.raises(ConfigError, match="Entry 1 is wrong"):
            tacit.verify(old / "forged.jsonl")


def test_a_command_goes_on_with_other_terms(here: Path) -> None:
    ROWS.assign(age=ROWS["age"] * 9).to_csv(here / "people.csv", index=False)
    text = configuration("sex", "age", epsilon=1.0, questions=4, mechanism="direct")
    (here / "tacit.toml").write_text(text)
    asked = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    answered("ask", asked)
    coarser = text.replace("width = 10", "width = 20")
    (here / "tacit.toml").write_text(coarser)
    refused(run("ask", asked), 'continues = "people.tacit"', "Nothing was spent")
    again = coarser.replace('ledger = "people.tacit"', 'ledger = "again.tacit"\ncontinues = "people.tacit"')
    (here / "again.toml").write_text(again)
    answered("ask", asked, "-c", "again.toml")
    (status,) = answered("status", "-c", "again.toml")
    assert status["percent_spent"] == pytest.approx(25 + 75 / 4)
    assert "continues the ledger" in run("status", "-c", "again.toml").stdout
    (here / "tacit.toml").write_text(text)
    assert "continued by the ledger" in run("status").stdout
    (other,) = answered("status")
    assert (other["continued_by"], status["continues"]) == (
        tacit.reopen("again.tacit").origin,
        tacit.reopen("people.tacit").origin,
    )
