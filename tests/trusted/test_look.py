"""The look before a domain exists: paid first, delta by the number of its intent, one chain with the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import AnswerWithheld, BudgetExhausted, InvalidBudget, LedgerError
from tacit.exact.price import threshold_of, total, values_noise
from tacit.model.attribute import integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import Discovered, Found, decode
from tacit.model.noise_law import Noise
from tacit.model.workload import Tree
from tacit.store.anchor import Anchor
from tacit.store.log import made_of
from tacit.trusted import discovery
from tacit.trusted.cells import Tally
from tacit.trusted.discovery import discover
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

BUDGET = Budget(epsilon=2.0, delta=1e-6)
ASIDE = 1e-7
WIDE = Domain({"age": integer(0, 7)})


def opened(folder: Path, aside: float = ASIDE, binding: Any = None, **more: Any) -> Ledger:
    terms: dict[str, Any] = {"budget": BUDGET, "total": total(BUDGET, aside=aside), "aside": aside}
    return Ledger.open(folder / "l", binding=binding or {}, anchor=Anchor(folder / "a"), **terms, **more)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with opened(tmp_path, make="missing") as found:
        yield found


def tallied(*counts: int, name: str = "clinic", people: int = 1) -> Tally:
    return Tally(name, tuple(f"v{i}" for i in range(len(counts))), np.array(counts, dtype=np.int64), people)


def records(people: int = 1) -> Records:
    return Records(WIDE, [np.arange(8, dtype=np.uint8)], np.full(8, 100), people)


def part(ledger: Ledger, share: float = 0.1) -> Loss:
    return Loss(ledger.total.measure, int(ledger.total.atoms * share))


def test_values_that_enough_rows_have_are_told_and_others_are_not(ledger: Ledger) -> None:
    loss = part(ledger)
    (line,) = discover(ledger, [tallied(100_000, 1, 50_000)], [], loss)
    found = decode(line.kind, line.body)
    assert isinstance(found, Found)
    assert found.values == ("v0", "v2")  # the chance that v1 passes is below 1e-7
    assert found.threshold == threshold_of(values_noise(loss, 1), 1, ASIDE, line.intent or 0, 1)
    assert 0 < ledger.spent.atoms <= loss.atoms


def test_what_is_told_of_a_value_is_its_count_with_noise(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    laws: list[Noise] = []

    def add_noise(values: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        laws.append(noise)
        return values + (np.array([1000, 2000, 3]) if values.size == 3 else np.arange(1, values.size + 1) * 1000)

    monkeypatch.setattr(discovery, "add_noise", add_noise)
    loss = part(ledger)
    values, answers = discover(ledger, [tallied(7, 9, 1)], [(Tree("age", (8,), (1,)), records())], loss)
    told, wide = decode(values.kind, values.body), decode(answers.kind, answers.body)
    assert isinstance(told, Found)
    assert isinstance(wide, Discovered)
    assert dict(zip(told.values, told.counts, strict=True)) == {"v0": 1007, "v1": 2009}  # and 4 is below the threshold
    assert 4 < told.threshold < 1007
    assert wide.measured.values.tolist() == [100 + 1000 * i for i in range(1, 9)]
    assert laws == [values_noise(loss, 1), wide.measured.noise]


def test_no_value_and_a_value_called_none_are_two(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "add_noise", lambda counts, noise: counts)
    tally = Tally("clinic", ("None", None, "a"), np.full(3, 100_000), 1)
    (line,) = discover(ledger, [tally], [], part(ledger))
    found = decode(line.kind, line.body)
    assert isinstance(found, Found)
    assert found.values == ("None", "a", None)


def test_a_wide_question_is_paid_for_like_any_other(ledger: Ledger) -> None:
    (line,) = discover(ledger, [], [(Tree("age", (8,), (1,)), records())], part(ledger))
    found = decode(line.kind, line.body)
    assert isinstance(found, Discovered)
    assert (found.domain, found.rows, line.key) == (WIDE, 800, found.key)
    assert ledger.spent.atoms == line.atoms <= part(ledger).atoms


def test_what_was_discovered_is_read_back_for_nothing(ledger: Ledger) -> None:
    asked: Any = [tallied(5000)], [(Tree("age", (8,), (1,)), records())], part(ledger)
    first = discover(ledger, *asked)
    spent = ledger.spent
    assert discover(ledger, *asked) == first
    assert ledger.spent == spent


def test_without_a_delta_values_are_refused_and_ranges_are_not(tmp_path: Path) -> None:
    with opened(tmp_path, aside=0.0, make="missing") as ledger:
        with pytest.raises(InvalidBudget, match="without a delta"):
            discover(ledger, [tallied(9)], [], part(ledger))
        assert ledger.spent.atoms == 0
        discover(ledger, [], [(Tree("age", (8,), (1,)), records())], part(ledger))


def test_columns_that_are_looked_at_together_share_the_delta_and_later_looks_have_less(ledger: Ledger) -> None:
    noise = values_noise(part(ledger, 0.01), 1)
    first = discover(ledger, [tallied(9, name="a"), tallied(9, name="b")], [], part(ledger, 0.01))
    later = discover(ledger, [tallied(9, name="b"), tallied(9, name="c")], [], part(ledger, 0.01))
    found = [decode(line.kind, line.body) for line in (*first, later[1])]
    assert [entry.among for entry in found if isinstance(entry, Found)] == [2, 2, 1]
    intents = [line.intent or 0 for line in (first[0], later[1])]
    assert intents[0] == 1 < intents[1]
    told = [entry.threshold for entry in found if isinstance(entry, Found)]
    assert told[0] == told[1] == threshold_of(noise, 1, ASIDE, intents[0], 2)
    assert told[2] == threshold_of(noise, 1, ASIDE, intents[1], 1)


def test_a_look_that_fails_keeps_its_reservation_and_its_part_of_delta(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(discovery, "add_noise", lambda *_: 1 / 0)
        with pytest.raises(AnswerWithheld):
            discover(ledger, [tallied(9)], [], part(ledger))
    assert ledger.spent.atoms > 0
    (line,) = discover(ledger, [tallied(9)], [], part(ledger))
    assert line.intent == 2  # a quarter of what was set aside, no more than that


def test_more_than_is_left_is_refused_before_anything_is_looked_at(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "add_noise", lambda *_: pytest.fail("looked"))
    with pytest.raises(BudgetExhausted):
        discover(ledger, [tallied(9, name="a"), tallied(9, name="b")], [], part(ledger, 0.7))


def test_people_with_several_rows_have_more_noise_and_a_higher_threshold(ledger: Ledger) -> None:
    lines = discover(ledger, [tallied(9, name="a"), tallied(9, name="b", people=3)], [], part(ledger, 0.1))
    one, three = (decode(line.kind, line.body) for line in lines)
    assert isinstance(one, Found)
    assert isinstance(three, Found)
    assert three.noise.scale == pytest.approx(3 * one.noise.scale, rel=1e-3)
    assert three.threshold > 3 * one.threshold


def test_after_an_accepted_rollback_no_values_are_discovered(tmp_path: Path) -> None:
    with opened(tmp_path, make="missing") as ledger:
        discover(ledger, [tallied(9)], [], part(ledger))
    (tmp_path / "l").unlink()
    with (
        opened(tmp_path, make="missing", accept_rollback="lost") as ledger,
        pytest.raises(LedgerError, match="rollback"),
    ):
        discover(ledger, [tallied(9)], [], part(ledger))


# -- the terms of the session that follows -----------------------------------------------------------------------------


def test_a_ledger_is_bound_to_later_terms_once(tmp_path: Path) -> None:
    with opened(tmp_path, make="missing") as ledger:
        discover(ledger, [tallied(9)], [], part(ledger))
        spent = ledger.spent
        ledger.log.complete({"domain": "d", "data": lambda secret: secret.hex()[:4]})
        ledger.log.complete({"domain": "d", "data": lambda secret: secret.hex()[:4]})  # the same: nothing happens
        with pytest.raises(LedgerError, match="other terms"):
            ledger.log.complete({"domain": "e"})
        secret = ledger.log.identity.secret
        assert ledger.log.verify() == 3
    data = secret.hex()[:4]
    identity, _ = made_of(tmp_path / "l") or pytest.fail("it is gone")
    assert identity.terms["domain"] == "d"
    with opened(tmp_path, binding={"domain": "d", "data": data}) as ledger:
        assert ledger.spent == spent
        assert data not in str(ledger.log.snapshot())  # what the terms are made of is no part of what is published
    for wrong in ({}, {"domain": "e", "data": data}):
        with pytest.raises(LedgerError, match="other terms"):
            opened(tmp_path, binding=wrong)


def test_later_terms_that_were_changed_are_noticed(tmp_path: Path) -> None:
    import sqlite3

    with opened(tmp_path, make="missing") as ledger:
        ledger.log.complete({"domain": "d"})
    db = sqlite3.connect(tmp_path / "l")
    with db:
        db.execute("""UPDATE later SET terms = '{"domain":"e"}'""")
    db.close()
    with pytest.raises(LedgerError, match="damaged"):
        opened(tmp_path, binding={"domain": "e"})


def test_a_discovery_does_not_make_the_total_larger() -> None:
    assert total(BUDGET, aside=ASIDE).atoms < total(BUDGET).atoms
    with pytest.raises(InvalidBudget):
        total(BUDGET, aside=BUDGET.delta)
